// What is held against a device: halfulp mma, replay and identify.

const kBiasFigures = ["bias", "bias_ulps", "shrinkage", "toward_zero_ulps"];
const judgedBias = (row) => (kBiasFigures.includes(row.name) ? judged(row) : row);

function mmaFindings(result) {
  const comparison = result.comparison;
  if (!isObject(comparison)) return [];
  const shrinkage = judged(comparison.shrinkage ?? {});
  return [
    finding(
        shownCount(comparison.correctly_rounded) + " of " + plural(comparison.outputs, "output") + " (" +
        shownPercent(comparison.correctly_rounded_share) + ") are correctly rounded."),
    shrinkage.verdict === "biased" ?
        finding(
            "Sums come out " + (shrinkage.value > 0 ? "too small" : "too large") + ": shrinkage " +
                shownNumber(shrinkage.value) + ", z = " + shownNumber(shrinkage.z, 3) + ".",
            "bad") :
        finding("No shrinkage of sums found; one of " + shownNumber(shrinkage.least, 2) + " would have been.", "good"),
  ];
}

const kMma = {
  title: "Product of matrices",
  facts: (r) => [
      ["Accumulator", String(at(r, "accumulator/name") ?? r.accumulator ?? "–")], ["Shape", shownShape(r.shape)],
      ["K", shownCount(r.k ?? "–")],
      ["Operands", [at(r, "a/format"), at(r, "b/format")].filter(Boolean).join(" × ") || "–"]],
  findings: mmaFindings,
  parts: [
    {
      part: "figures",
      title: "Against the exact product",
      build: (r) => isObject(r.comparison) ?
          figureTable("Against the exact product", figuresIn(r.comparison).map(judgedBias)) :
          null
    },
    {part: "split", title: "Against the product before quantization", plots: "mma"},
  ],
};

function replayRows(result) {
  const ofSweeps = ({instruction, sweeps, evidence}, {device, file}) => ({
    instruction,
    evidence,
    device,
    file,
    compared: sum(listOf(sweeps).map(({inputs_compared}) => inputs_compared ?? 0)),
    wrong: sum(listOf(sweeps).map(
        (s) => (s.wrong_answers ?? 0) + listOf(s.wrong_chunks).length + listOf(s.wrong_lanes).length)),
  });
  const files =
      listOf(result.files)
          .flatMap((file) => [...listOf(file.instructions), ...listOf(file.kernels)].map((row) => ofSweeps(row, file)));
  const matrices = listOf(result.matrices).map((m) => ({
                                                 instruction: m.instruction,
                                                 evidence: m.accumulator,
                                                 device: m.device,
                                                 file: m.file,
                                                 compared: m.outputs,
                                                 wrong: m.mismatches
                                               }));
  return [...files, ...matrices];
}

const kReplay = {
  title: "Replay of recordings",
  facts: (r) => [
      ["Recorded kernels", shownCount(replayRows(r).length)],
      ["Answers compared", shownCount(sum(replayRows(r).map(({compared}) => compared)))],
      ["Device", unique(replayRows(r).map(({device}) => device)).join(", ")]],
  findings: (r) => {
    const wrong = replayRows(r).filter((row) => row.wrong > 0);
    return wrong.length === 0 ?
        [finding("Every compared answer is what the device gave.", "good")] :
        wrong.map(
            (row) => finding(
                row.instruction + " differs from the device's answers: " + shownCount(row.wrong) + " wrong.", "bad"));
  },
  parts: [{
    part: "instructions",
    title: "Instructions",
    build: (r) => sortableTable({
      caption: "Instructions",
      rows: replayRows(r),
      columns: [
        wordColumn("instruction", "instruction"),
        {title: "verdict", kind: "verdict", get: ({wrong}) => (wrong > 0 ? "differs" : "agrees")},
        wordColumn("model", "evidence"),
        {title: "compared", kind: "count", get: ({compared}) => compared},
        {title: "wrong", kind: "count", get: ({wrong}) => wrong},
        wordColumn("device", "device"),
        wordColumn("file", "file"),
      ]
    })
  }],
};

const kIdentify = {
  title: "Identified accumulator",
  facts: (r) => [
      ["Outputs", shownCount(r.outputs ?? "–")], ["Candidates tried", shownCount(r.tried ?? "–")],
      ["Fitting", shownCount(listOf(r.fitting).length)]],
  findings: (r) => listOf(r.fitting).length > 0 ?
      r.fitting.map(({text}) => finding("Every output is that of " + text + ".", "good")) :
      [finding("No accumulator that is known gives these outputs.", "bad")],
  parts: [
    {part: "fitting", title: "Fitting", build: (r) => genericTable("Fitting", r.fitting, ["text"])}, {
      part: "refuted",
      title: "Refuted",
      build: (r) => genericTable("Refuted", r.refuted, ["text", "mismatches", "outputs"])
    }
  ],
};
