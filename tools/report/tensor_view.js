// Tensors under recipes, of halfulp error and halfulp bias.

const kPlace = ["phase", "role", "layer", "step"];

// A name as sentences take it.
function brief(name) {
  const text = String(name);
  return text === "" ? "(empty name)" : text.length > 80 ? text.slice(0, 50) + " … " + text.slice(-20) : text;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const finding = (text, look, subject) => ({text, look, subject});
const resultsOf = (result) => listOf(result.results).filter(isObject);

const zColumn = (title, name) =>
    ({title, kind: "number", digits: 3, get: (r) => biasFigure(r, name).z, help: "in standard errors"});

const kTensorColumns = [
  {title: "tensor", get: (r) => r.tensor},
  {title: "recipe", kind: "word", get: (r) => r.recipe},
  {title: "elements", kind: "count", get: (r) => r.elements},
  {title: "sqnr_db", kind: "number", get: (r) => r.sqnr_db},
  withError("rel_mse", (r) => r.rel_mse, (r) => at(r, "se/rel_mse")),
  withError("shrinkage", (r) => r.shrinkage, (r) => biasFigure(r, "shrinkage").se, 3),
  zColumn("z_shrinkage", "shrinkage"),
  withError("mean_error", (r) => r.mean_error, (r) => biasFigure(r, "mean_error").se, 3),
  zColumn("z_mean", "mean_error"),
  {title: "clipped", kind: "number", digits: 3, get: (r) => r.clipped},
  {title: "dead_zone", kind: "number", digits: 3, get: (r) => r.dead_zone},
  {title: "crest_p50", kind: "number", digits: 3, get: (r) => at(r, "crest/p50")},
  {title: "file", get: (r) => r.file},
];
const kCaptureColumns = [
  ...["layer", "phase", "role", "step"].map((key) => ({title: key, kind: "word", get: (r) => r[key]})),
  ...kTensorColumns.slice(1, -1),
];

const kTotals = {
  part: "totals",
  title: "Over all tensors",
  build: (r) => listOf(r.totals).length > 0 ?
      sortableTable({caption: "Over all tensors", columns: kTensorColumns.slice(1, -1), rows: r.totals}) :
      null
};

function tensorFacts(result) {
  const records = resultsOf(result);
  const tensors = new Map(records.map((record) => [JSON.stringify([record.file, record.tensor]), record]));
  return [
    ["Tensors", shownCount(tensors.size)],
    ["Elements", shownCount(sum([...tensors.values()].map(({elements}) => elements ?? 0)))],
    ["Recipes", unique(records.map(({recipe}) => recipe)).join(", ")],
    ["Skipped", shownCount(listOf(result.skipped).length)],
  ];
}

// Sentences on a recipe's results, each {text, look}; together they are one finding.
function errorSentences(records) {
  const measured = records.filter((r) => isNumber(r.rel_mse));
  if (measured.length === 0) return [];
  const worst = largestBy(measured, (r) => toNumber(r.rel_mse));
  const middle = quantile(measured.map((r) => toNumber(r.sqnr_db)).sort((a, b) => a - b), .5);
  const half = measured.length > 1 ? "Half of the tensors are above " + shownNumber(middle) + " dB, worst is " : "";
  return [{
    text: half + brief(worst.tensor) + " at " + shownNumber(worst.sqnr_db) + " dB (rel_mse " +
        shownNumber(worst.rel_mse) + ")."
  }];
}

function biasSentences(records, name) {
  const figures = records.map((record) => ({record, ...biasFigure(record, name)})).filter(({verdict}) => verdict);
  const biased = figures.filter(({verdict}) => verdict === "biased");
  if (figures.length === 0) return [];
  if (biased.length === 0) {
    const least = Math.max(...figures.map(({least}) => least));
    return [{
      text: "No bias of " + name + " found; " + shownNumber(least, 2) + " would have been in every tensor.",
      look: "good"
    }];
  }
  const worst = largestBy(biased, ({value}) => Math.abs(value));
  return [{
    text: "Biased " + name + " in " + biased.length + " of " + plural(figures.length, "tensor") + ", most in " +
        brief(worst.record.tensor) + ": " + shownNumber(worst.value, 3) + ", z = " + shownNumber(worst.z, 3) + ".",
    look: "bad"
  }];
}

function clipSentences(records) {
  const worst = largestBy(records, ({clipped}) => toNumber(clipped) || 0);
  return toNumber(worst.clipped) > 0 ?
      [{text: "Clips up to " + shownPercent(worst.clipped) + ", of " + brief(worst.tensor) + "."}] :
      [];
}

function recipeFinding(recipe, records) {
  const sentences = [
    ...errorSentences(records), ...biasSentences(records, "shrinkage"), ...biasSentences(records, "mean_error"),
    ...clipSentences(records)
  ];
  const looks = sentences.map(({look}) => look);
  return finding(
      sentences.map(({text}) => text).join(" "),
      looks.includes("bad")      ? "bad" :
          looks.includes("good") ? "good" :
                                   undefined,
      recipe);
}

function skippedFindings(result) {
  const all = listOf(result.skipped);
  const byReason =
      unique(all.map(({reason}) => reason)).map((reason) => [reason, all.filter((each) => each.reason === reason)]);
  return byReason.map(
      ([reason, skipped]) => finding(
          "Skipped " + brief(skipped[0].tensor) + (skipped.length > 1 ? " and " + (skipped.length - 1) + " more" : "") +
          ": " + reason));
}

function streamFindings(result) {
  const streams = result.streams;
  if (!isObject(streams)) return [];
  const pairs = isNumber(streams.pairs) ?
      " (" + plural(streams.pairs, "pair") + " compared, worst z " + shownNumber(streams.worst_z, 3) + ")" :
      "";
  return [
    streams.independent ? finding("The random streams are independent" + pairs + ".", "good") :
                          finding("The random streams are not independent" + pairs + ": no verdict holds.", "bad")
  ];
}

function tensorFindings(result) {
  const records = resultsOf(result);
  const ofRecipe = (recipe) => recipeFinding(recipe, records.filter((r) => r.recipe === recipe));
  return [
    ...unique(records.map(({recipe}) => recipe)).map(ofRecipe), ...streamFindings(result), ...skippedFindings(result)
  ];
}

const tensorFactsOf = (r) => [
    ["dtype", String(r.dtype ?? "–")],
    ["shape", shownShape(r.shape)],
    ["file", String(r.file ?? "–")],
    ...["sqnr_db", "rel_mse", "rate_bits", "residual", "max_abs_error"]
        .filter((name) => isNumber(r[name]))
        .map((name) => [name, shownNumber(r[name])]),
    ...["shrinkage", "mean_error"].flatMap((name) => proofOf(name, biasFigure(r, name))),
    ...["clipped", "dead_zone"].filter((name) => isNumber(r[name])).map((name) => [name, shownPercent(r[name])]),
    ...["scale_min", "scale_max"].filter((name) => isNumber(r[name])).map((name) => [name, shownNumber(r[name])]),
    ...entriesOf(r.crest).map(([name, value]) => ["crest " + name, shownNumber(value)]),
    ...["entropy_bits", "used"]
        .filter((name) => isNumber(at(r, "codes/" + name)))
        .map((name) => ["codes: " + name, shownNumber(r.codes[name])]),
];

const tensorList = (columns) => ({
  part: "tensors",
  title: "Tensors",
  key: "tensor",
  of: "tensor",
  records: resultsOf,
  nameOf: (r) => String(r.tensor ?? ""),
  kindKey: "recipe",
  kindOf: (r) => r.recipe,
  columns,
  sortBy: "rel_mse",
  details: tensorFactsOf,
  figures: () => [],
  overview: tensorOverview,
});
