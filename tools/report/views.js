// What the page shows of each verb's result: a row of kViews by schema, and by "kind" for the results of bias.
//
// A view: {title, facts(result), findings(result), lists: [list]}. A list is records of a result with a table, and plots
// of one of them at a time: {part, title, key: its name in links, of: what plots take, records(result), nameOf(record),
// kindOf(record): what tells records of one name apart, columns, sortBy, details(record), figures(record)}.

// A name as sentences take it.
function brief(name) {
  const text = String(name);
  return text === "" ? "(empty name)" : text.length > 80 ? text.slice(0, 50) + " … " + text.slice(-20) : text;
}

const sum = (values) => values.reduce((total, value) => total + value, 0);
const finding = (text, look, subject) => ({text, look, subject});
const resultsOf = (result) => listOf(result.results).filter(isObject);

const withError = (title, get, se, digits = 4) => ({title, kind: "number", digits, get, se});
const zColumn = (title, name) => ({title, kind: "number", digits: 3, get: (r) => biasFigure(r, name).z, help: "in standard errors"});

const kTensorColumns = [
  {title: "tensor", get: (r) => r.tensor}, {title: "recipe", kind: "word", get: (r) => r.recipe},
  {title: "elements", kind: "count", get: (r) => r.elements}, {title: "sqnr_db", kind: "number", get: (r) => r.sqnr_db},
  withError("rel_mse", (r) => r.rel_mse, (r) => at(r, "se/rel_mse")),
  withError("shrinkage", (r) => r.shrinkage, (r) => biasFigure(r, "shrinkage").se, 3), zColumn("z_shrinkage", "shrinkage"),
  withError("mean_error", (r) => r.mean_error, (r) => biasFigure(r, "mean_error").se, 3), zColumn("z_mean", "mean_error"),
  {title: "clipped", kind: "number", digits: 3, get: (r) => r.clipped}, {title: "dead_zone", kind: "number", digits: 3, get: (r) => r.dead_zone},
  {title: "crest_p50", kind: "number", digits: 3, get: (r) => at(r, "crest/p50")}, {title: "file", get: (r) => r.file},
];
const kCaptureColumns = [
  ...["layer", "phase", "role", "step"].map((key) => ({title: key, kind: "word", get: (r) => r[key]})), ...kTensorColumns.slice(1, -1),
];

const kTotals = {part: "totals", title: "Over all tensors", build: (r) => listOf(r.totals).length > 0
  ? sortableTable({caption: "Over all tensors", columns: kTensorColumns.slice(1, -1), rows: r.totals}) : null};

function tensorFacts(result) {
  const records = resultsOf(result), names = unique(records.map(({file, tensor}) => JSON.stringify([file, tensor])));
  const firstRecipe = records.filter(({recipe}) => recipe === records[0].recipe);
  return [
    ["Tensors", shownCount(names.length)], ["Elements", shownCount(sum(firstRecipe.map(({elements}) => elements ?? 0)))],
    ["Recipes", unique(records.map(({recipe}) => recipe)).join(", ")], ["Skipped", shownCount(listOf(result.skipped).length)],
  ];
}

// Sentences on a recipe's results, each {text, look}; together they are one finding.
function errorSentences(records) {
  const measured = records.filter((r) => isNumber(r.rel_mse));
  if (measured.length === 0) return [];
  const worst = largestBy(measured, (r) => toNumber(r.rel_mse));
  const middle = quantile(measured.map((r) => toNumber(r.sqnr_db)).sort((a, b) => a - b), .5);
  const half = measured.length > 1 ? "Half of the tensors are above " + shownNumber(middle) + " dB, worst is " : "";
  return [{text: half + brief(worst.tensor) + " at " + shownNumber(worst.sqnr_db) + " dB (rel_mse " + shownNumber(worst.rel_mse) + ")."}];
}

function biasSentences(records, name) {
  const figures = records.map((record) => ({record, ...biasFigure(record, name)})).filter(({verdict}) => verdict);
  const biased = figures.filter(({verdict}) => verdict === "biased");
  if (figures.length === 0) return [];
  if (biased.length === 0) {
    const least = Math.max(...figures.map(({least}) => least));
    return [{text: "No bias of " + name + " found; " + shownNumber(least, 2) + " would have been in every tensor.", look: "good"}];
  }
  const worst = largestBy(biased, ({value}) => Math.abs(value));
  return [{text: "Biased " + name + " in " + biased.length + " of " + plural(figures.length, "tensor") + ", most in " + brief(worst.record.tensor) + ": " +
                 shownNumber(worst.value, 3) + ", z = " + shownNumber(worst.z, 3) + ".", look: "bad"}];
}

function clipSentences(records) {
  const worst = largestBy(records, ({clipped}) => toNumber(clipped) || 0);
  return toNumber(worst.clipped) > 0 ? [{text: "Clips up to " + shownPercent(worst.clipped) + ", of " + brief(worst.tensor) + "."}] : [];
}

function recipeFinding(recipe, records) {
  const sentences = [...errorSentences(records), ...biasSentences(records, "shrinkage"), ...biasSentences(records, "mean_error"), ...clipSentences(records)];
  const looks = sentences.map(({look}) => look);
  return finding(sentences.map(({text}) => text).join(" "), looks.includes("bad") ? "bad" : looks.includes("good") ? "good" : undefined, recipe);
}

function skippedFindings(result) {
  const all = listOf(result.skipped);
  const byReason = unique(all.map(({reason}) => reason)).map((reason) => [reason, all.filter((each) => each.reason === reason)]);
  return byReason.map(([reason, skipped]) => finding("Skipped " + brief(skipped[0].tensor) + (skipped.length > 1 ? " and " + (skipped.length - 1) + " more" : "") + ": " + reason));
}

function streamFindings(result) {
  const streams = result.streams;
  if (!isObject(streams)) return [];
  const pairs = isNumber(streams.pairs) ? " (" + plural(streams.pairs, "pair") + " compared, worst z " + shownNumber(streams.worst_z, 3) + ")" : "";
  return [streams.independent ? finding("The random streams are independent" + pairs + ".", "good")
                              : finding("The random streams are not independent" + pairs + ": no verdict holds.", "bad")];
}

function tensorFindings(result) {
  const records = resultsOf(result);
  const ofRecipe = (recipe) => recipeFinding(recipe, records.filter((r) => r.recipe === recipe));
  return [...unique(records.map(({recipe}) => recipe)).map(ofRecipe), ...streamFindings(result), ...skippedFindings(result)];
}

const tensorFactsOf = (r) => [
  ["dtype", String(r.dtype ?? "–")], ["shape", shownShape(r.shape)], ["file", String(r.file ?? "–")],
  ...["sqnr_db", "rel_mse", "rate_bits", "residual", "max_abs_error"].filter((name) => isNumber(r[name])).map((name) => [name, shownNumber(r[name])]),
  ...["shrinkage", "mean_error"].flatMap((name) => proofOf(name, biasFigure(r, name))),
  ...["clipped", "dead_zone"].filter((name) => isNumber(r[name])).map((name) => [name, shownPercent(r[name])]),
  ...["scale_min", "scale_max"].filter((name) => isNumber(r[name])).map((name) => [name, shownNumber(r[name])]),
  ...entriesOf(r.crest).map(([name, value]) => ["crest " + name, shownNumber(value)]),
  ...["entropy_bits", "used"].filter((name) => isNumber(at(r, "codes/" + name))).map((name) => ["codes: " + name, shownNumber(r.codes[name])]),
];

// A figure as facts: its value, and how sure it is.
function proofOf(name, figure) {
  if (Number.isNaN(figure.value)) return [];
  const error = Number.isNaN(figure.se) ? "" : " ± " + shownNumber(figure.se, 2);
  return [[name, element("span", null, shownNumber(figure.value) + error + " ", figure.verdict ? chip(figure.verdict) : "")]];
}

const tensorList = (columns) => ({
  part: "tensors", title: "Tensors", key: "tensor", of: "tensor", records: resultsOf, nameOf: (r) => String(r.tensor ?? ""), kindOf: (r) => r.recipe,
  columns, sortBy: "rel_mse", details: tensorFactsOf, figures: () => [], overview: tensorOverview,
});

const productName = (r) => [r.phase, r.layer, r.step, r.product].filter((word) => word !== undefined && word !== null).join("/");
const operandNames = (r) => listOf(r.operands).map((o) => o.name ?? o.role).join(" × ");
const operandRecipes = (r) => unique(listOf(r.operands).map(({recipe}) => recipe)).join(" × ");
const productColumn = (name) => withError(name, (r) => toNumber(at(r, name + "/value")), (r) => at(r, name + "/se"));

const kProductList = {
  part: "products", title: "Products", key: "product", of: "product", nameOf: productName, kindOf: operandRecipes,
  columns: [
    {title: "product", get: productName}, {title: "operands", kind: "word", get: operandNames}, {title: "recipe", kind: "word", get: operandRecipes}, {title: "shape", kind: "word", get: (r) => shownShape(r.shape)},
    {title: "draws", kind: "count", get: (r) => r.draws}, productColumn("rel_error"), productColumn("squared_bias"),
    {title: "z_bias", kind: "number", digits: 3, get: (r) => at(r, "squared_bias/z")}, productColumn("noise"), productColumn("projection"),
    {title: "verdict", kind: "verdict", get: (r) => at(r, "squared_bias/verdict")},
  ],
  details: (r) => [["operands", operandNames(r)], ["recipe", operandRecipes(r)], ["shape", shownShape(r.shape)], ["draws", shownCount(r.draws ?? "–")], ["held fixed", String(r.fixed ?? "–")]],
  figures: (r) => [...figuresIn(r), ...figuresIn(r.population, "population: ")],
};

function figuresIn(record, before = "") {
  return entriesOf(record).filter(([, value]) => isObject(value) && isNumber(value.value)).map(([name, value]) => ({name: before + name, ...figureOf(value)}));
}

function productFindings(records) {
  return records.filter((r) => isObject(r.squared_bias)).map((r) => {
    const {value, z, least, verdict} = judged(r.squared_bias);
    const proof = shownNumber(value, 3) + " of the product's square, z = " + shownNumber(z, 3);
    const text = verdict === "biased" ? "Biased: squared bias " + proof + "." : "No bias found: " + proof + "; " + shownNumber(least, 2) + " would have been.";
    return finding(text, verdict === "biased" ? "bad" : "good", productName(r) + ", " + operandRecipes(r));
  });
}

const kConversionList = {
  part: "conversions", title: "Conversions", key: "conversion", of: "conversion", records: resultsOf, nameOf: (r) => String(r.name), kindOf: (r) => r.rounding,
  columns: [
    {title: "name", get: (r) => r.name}, {title: "format", kind: "word", get: (r) => r.format}, {title: "rounding", kind: "word", get: (r) => r.rounding},
    {title: "random_bits", kind: "count", get: (r) => r.random_bits},
    {title: "largest_ulp", kind: "number", get: (r) => worstRange(r, "largest")?.largest}, {title: "uniform_ulp", kind: "number", get: (r) => worstRange(r, "uniform")?.uniform}, {title: "largest_covariance_ulp2", kind: "number", get: (r) => at(r, "pair/largest/covariance_ulp2")},
  ],
  details: (r) => [["format", String(r.format)], ["rounding", String(r.rounding)], ["random bits", r.random_bits === null ? "none" : String(r.random_bits ?? "–")],
                   ...entriesOf(at(r, "pair/largest")).map(([name, value]) => ["pair: " + name, shownNumber(value)]),
                   ["convention", String(r.convention ?? "–")]],
  figures: () => [],
  tables: (r) => [["Values", r.values], ["Pairs of lanes", at(r, "pair/values")]].filter(([, rows]) => listOf(rows).length > 0)
                     .flatMap(([title, rows]) => [element("h4", null, title), genericTable(title, rows, ["x", "below", "above", "expectation", "bias", "bias_ulp"])]),
};

// The row of a conversion's ranges with the largest of some figure.
const worstRange = (r, figure) => largestBy(listOf(r.binades).filter((range) => isNumber(range[figure])), (range) => Math.abs(toNumber(range[figure])));
const inRange = ({from, to}) => " from " + shownNumber(from, 3) + " to " + shownNumber(to, 3);

function conversionFinding(r) {
  const point = worstRange(r, "largest"), mean = worstRange(r, "uniform");
  if (!point || !mean) return finding("Nothing is said of its ranges.", undefined, r.name);
  const ofNumbers = "The bias of a number is up to " + shownNumber(point.largest) + " ulp" + inRange(point);
  const ofRanges = toNumber(mean.uniform) === 0 ? "; over every range it averages out." : "; averaged over a range, up to " + shownNumber(mean.uniform) + " ulp" + inRange(mean) + ".";
  return finding(ofNumbers + ofRanges, toNumber(mean.uniform) === 0 ? "good" : "bad", r.name);
}

const kPlace = ["phase", "role", "layer", "step"];

function ranking({ranking: rows}) {
  if (listOf(rows).length === 0) return null;
  const largest = Math.max(...rows.map(({share}) => toNumber(share) || 0));
  const columns = columnsOf(rows, [...kPlace, "share"]).map((column) => (column.title === "share" ? {...column, kind: "share", largest} : column));
  return sortableTable({caption: "What hurts most", columns, rows});
}

function captureFindings(result) {
  const [first] = listOf(result.ranking);
  const worst = first ? [finding("Hurts most: " + shownPercent(first.share) + " of the error.", "bad", [first.phase, first.role, first.layer].join("/"))] : [];
  return [...worst, ...tensorFindings(result), ...productFindings(listOf(result.products))];
}

const kBiasFigures = ["bias", "bias_ulps", "shrinkage", "toward_zero_ulps"];
const judgedBias = (row) => (kBiasFigures.includes(row.name) ? judged(row) : row);

function mmaFindings(result) {
  const comparison = result.comparison;
  if (!isObject(comparison)) return [];
  const shrinkage = judged(comparison.shrinkage ?? {});
  return [
    finding(shownCount(comparison.correctly_rounded) + " of " + plural(comparison.outputs, "output") + " (" + shownPercent(comparison.correctly_rounded_share) + ") are correctly rounded."),
    shrinkage.verdict === "biased" ? finding("Sums come out " + (shrinkage.value > 0 ? "too small" : "too large") + ": shrinkage " + shownNumber(shrinkage.value) + ", z = " + shownNumber(shrinkage.z, 3) + ".", "bad")
                                   : finding("No shrinkage of sums found; one of " + shownNumber(shrinkage.least, 2) + " would have been.", "good"),
  ];
}

const intervalOf = (ends) => (Array.isArray(ends) ? "[" + ends.map((end) => shownNumber(end)).join(", ") + "]" : undefined);
// A column of numbers that some figures do not have.
const known = (title, key, digits) => ({title, kind: "number", digits, get: (r) => (Number.isNaN(r[key]) ? undefined : r[key])});

const figureTable = (caption, rows) => sortableTable({caption, rows, columns: [
  briefColumn("figure", "name"), withError("value", (r) => r.value, (r) => r.se), {title: "ci95", kind: "word", get: (r) => intervalOf(r.ci95)}, known("z", "z", 3),
  known("minimum_detectable", "least", 2), {title: "verdict", kind: "verdict", get: (r) => r.verdict}, briefColumn("unit", "unit"), briefColumn("method", "method"),
].filter(({get}) => rows.some((row) => ![undefined, ""].includes(get(row))))});

const kMma = {
  title: "Product of matrices",
  facts: (r) => [["Accumulator", String(at(r, "accumulator/name") ?? r.accumulator ?? "–")], ["Shape", shownShape(r.shape)], ["K", shownCount(r.k ?? "–")],
                 ["Operands", [at(r, "a/format"), at(r, "b/format")].filter(Boolean).join(" × ") || "–"]],
  findings: mmaFindings,
  parts: [
    {part: "figures", title: "Against the exact product", build: (r) => isObject(r.comparison) ? figureTable("Against the exact product", figuresIn(r.comparison).map(judgedBias)) : null},
    {part: "split", title: "Against the product before quantization", plots: "mma"},
  ],
};

function replayRows(result) {
  const ofSweeps = ({instruction, sweeps, evidence}, {device, file}) => ({
    instruction, evidence, device, file, compared: sum(listOf(sweeps).map(({inputs_compared}) => inputs_compared ?? 0)),
    wrong: sum(listOf(sweeps).map((s) => (s.wrong_answers ?? 0) + listOf(s.wrong_chunks).length + listOf(s.wrong_lanes).length)),
  });
  const files = listOf(result.files).flatMap((file) => [...listOf(file.instructions), ...listOf(file.kernels)].map((row) => ofSweeps(row, file)));
  const matrices = listOf(result.matrices).map((m) => ({instruction: m.instruction, evidence: m.accumulator, device: m.device, file: m.file, compared: m.outputs, wrong: m.mismatches}));
  return [...files, ...matrices];
}

const kReplay = {
  title: "Replay of recordings",
  facts: (r) => [["Recorded kernels", shownCount(replayRows(r).length)], ["Answers compared", shownCount(sum(replayRows(r).map(({compared}) => compared)))],
                 ["Device", unique(replayRows(r).map(({device}) => device)).join(", ")]],
  findings: (r) => {
    const wrong = replayRows(r).filter((row) => row.wrong > 0);
    return wrong.length === 0 ? [finding("Every compared answer is what the device gave.", "good")]
                              : wrong.map((row) => finding(row.instruction + " differs from the device's answers: " + shownCount(row.wrong) + " wrong.", "bad"));
  },
  parts: [{part: "instructions", title: "Instructions", build: (r) => sortableTable({caption: "Instructions", rows: replayRows(r), columns: [
    wordColumn("instruction", "instruction"), {title: "verdict", kind: "verdict", get: ({wrong}) => (wrong > 0 ? "differs" : "agrees")}, wordColumn("model", "evidence"),
    {title: "compared", kind: "count", get: ({compared}) => compared}, {title: "wrong", kind: "count", get: ({wrong}) => wrong}, wordColumn("device", "device"), wordColumn("file", "file"),
  ]})}],
};

const kIdentify = {
  title: "Identified accumulator",
  facts: (r) => [["Outputs", shownCount(r.outputs ?? "–")], ["Candidates tried", shownCount(r.tried ?? "–")], ["Fitting", shownCount(listOf(r.fitting).length)]],
  findings: (r) => listOf(r.fitting).length > 0 ? r.fitting.map(({text}) => finding("Every output is that of " + text + ".", "good"))
                                                : [finding("No accumulator that is known gives these outputs.", "bad")],
  parts: [{part: "fitting", title: "Fitting", build: (r) => genericTable("Fitting", r.fitting, ["text"])},
          {part: "refuted", title: "Refuted", build: (r) => genericTable("Refuted", r.refuted, ["text", "mismatches", "outputs"])}],
};

// Any result: its plain values as facts, its lists of objects as tables.
function genericView(verb, result) {
  const lists = flatLists(result, "");
  return {
    title: "Result of halfulp " + verb, facts: () => entriesOf(result).filter(([key, value]) => key !== "schema" && !isObject(value) && !Array.isArray(value)).map(([key, value]) => [key, String(value)]),
    findings: () => [],
    parts: lists.map(([path, rows]) => ({part: path, title: path, build: () => genericTable(path, rows)})),
  };
}

function flatLists(value, path) {
  if (Array.isArray(value)) return value.some(isObject) ? [[path, value]] : [];
  return entriesOf(value).flatMap(([key, inner]) => flatLists(inner, path === "" ? key : path + "/" + key));
}

const kViews = {
  error: {title: "Error of recipes", facts: tensorFacts, findings: tensorFindings, parts: [kTotals], lists: [tensorList(kTensorColumns)]},
  "bias/tensors": {title: "Error and bias of recipes", facts: tensorFacts, findings: tensorFindings, parts: [kTotals], lists: [tensorList(kTensorColumns)]},
  "bias/conversion": {title: "Bias of conversions", facts: (r) => [["Conversions", shownCount(resultsOf(r).length)], ["Formats", unique(resultsOf(r).map(({format}) => format)).join(", ")]],
                      findings: (r) => resultsOf(r).map(conversionFinding), lists: [kConversionList]},
  "bias/products": {title: "Bias of products", facts: (r) => [["Products", shownCount(resultsOf(r).length)], ["Draws", unique(resultsOf(r).map(({draws}) => draws)).map(shownCount).join(", ")]],
                    findings: (r) => [...streamFindings(r), ...productFindings(resultsOf(r))], lists: [{...kProductList, records: resultsOf}]},
  "bias/capture": {title: "Bias per phase, role and layer", facts: (r) => [["Policy", String(r.policy ?? "–")], ...tensorFacts(r)], findings: captureFindings,
                   parts: [{part: "ranking", title: "What hurts most", build: ranking},
                           {part: "heat-map", title: "Phases and layers", build: (r, placeOf) => heatMap(resultsOf(r), (record) => placeOf({tensor: record.tensor, recipe: record.recipe}))}],
                   lists: [tensorList(kCaptureColumns), {...kProductList, records: (r) => listOf(r.products)}]},
  mma: kMma, replay: kReplay, identify: kIdentify,
};

const viewOf = ({verb, result}) => kViews[verb] ?? kViews[verb + "/" + result.kind] ?? genericView(verb, result);
