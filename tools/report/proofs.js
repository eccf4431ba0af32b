// Figures with their proof: how they are judged, and as facts and tables.

// A figure with its proof: {value, se, z, least: what would have been found, verdict, unit, method}.
const kBiasedAt = 4;

function figureOf(given) {
  const value = toNumber(given.value ?? given.mean_error), se = toNumber(given.se);
  return {...given, value, se, z: toNumber(given.z), least: toNumber(given.minimum_detectable)};
}

// A figure of bias: what a verb leaves out is made here by the verbs' own rule.
function judged(given) {
  const figure = figureOf(given), {value, se} = figure;
  const z = Number.isNaN(figure.z) ? value / se : figure.z;
  const found = Number.isNaN(z) ? undefined : Math.abs(z) >= kBiasedAt ? "biased" : "not detected";
  return {
    ...figure,
    z,
    least: Number.isNaN(figure.least) ? kBiasedAt * se : figure.least,
    verdict: given.verdict ?? found
  };
}

// A tensor's bias figure: with its proof where the verb gave one, else from its value and its standard error.
function biasFigure(record, name) {
  const proven = at(record, "bias/" + name);
  return judged(isObject(proven) ? proven : {value: record[name], se: at(record, "se/" + name)});
}

// A figure as facts: its value, and how sure it is.
function proofOf(name, figure) {
  if (Number.isNaN(figure.value)) return [];
  const error = Number.isNaN(figure.se) ? "" : " ± " + shownNumber(figure.se, 2);
  return [
    [name, element("span", null, shownNumber(figure.value) + error + " ", figure.verdict ? chip(figure.verdict) : "")]
  ];
}

const withError = (title, get, se, digits = 4) => ({title, kind: "number", digits, get, se});

const intervalOf = (ends) =>
    (Array.isArray(ends) ? "[" + ends.map((end) => shownNumber(end)).join(", ") + "]" : undefined);
// A column of numbers that some figures do not have.
const known = (title, key, digits) =>
    ({title, kind: "number", digits, get: (r) => (Number.isNaN(r[key]) ? undefined : r[key])});

const figureTable = (caption, rows) => sortableTable({
  caption,
  rows,
  columns: [
    briefColumn("figure", "name"),
    withError("value", (r) => r.value, (r) => r.se),
    {title: "ci95", kind: "word", get: (r) => intervalOf(r.ci95)},
    known("z", "z", 3),
    known("minimum_detectable", "least", 2),
    {title: "verdict", kind: "verdict", get: (r) => r.verdict},
    briefColumn("unit", "unit"),
    briefColumn("method", "method"),
  ].filter(({get}) => rows.some((row) => ![undefined, ""].includes(get(row))))
});

function figuresIn(record, before = "") {
  return entriesOf(record)
      .filter(([, value]) => isObject(value) && isNumber(value.value))
      .map(([name, value]) => ({name: before + name, ...figureOf(value)}));
}
