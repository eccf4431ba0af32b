// Drawings of results, as figure.js takes them.


const numberColumn = (title, key, digits) => ({title, kind: "number", digits, get: (row) => row[key]});
const wordColumn = (title, key) => ({title, get: (row) => row[key]});
const briefColumn = (title, key) => ({title, kind: "word", get: (row) => row[key]});

const finite = (points) => points.filter(({x, y}) => Number.isFinite(x) && Number.isFinite(y));

function largestBy(rows, measure) {
  return rows.reduce((best, row) => (measure(row) > measure(best) ? row : best), rows[0]);
}

// Bars or dots with their standard errors, for each of some named strata.
function strataDrawing(strata, title, unit) {
  const rows = strata.map(([name, given]) => ({name, elements: given.elements, ...judged(given)}));
  const names = rows.map(({name}) => name);
  const worst = largestBy(rows, ({z}) => Math.abs(z) || 0);
  return {
    x: {scale: "category", labels: names, title},
    y: {title: unit},
    series: [
      {label: "mean error", look: "dots", points: rows.map(({value}) => value)},
      {look: "whiskers", color: 0, points: rows.map(({value, se}) => [value - 2 * se, value + 2 * se])},
    ],
    words: worst ?
        "Clearest at " + worst.name + ": " + shownNumber(worst.value) + ", z = " + shownNumber(worst.z, 3) + "." :
        "",
    columns: [
      wordColumn(title, "name"), {title: "elements", kind: "count", get: ({elements}) => elements},
      numberColumn("mean_error", "value"), numberColumn("se", "se", 2), numberColumn("z", "z", 3),
      {title: "verdict", kind: "verdict", get: ({verdict}) => verdict}
    ],
    rows,
  };
}

// Mean errors in standard errors: what lies beyond the dashed lines is bias.
function zDrawing(strata, title) {
  const drawing = strataDrawing(strata, title, "z");
  const limit = (sign) => ({look: "limit", color: 5, points: drawing.rows.map(() => sign * kBiasedAt)});
  const bars = {label: "z", look: "bars", points: drawing.rows.map(({z}) => z)};
  return {...drawing, series: [bars, limit(-1), limit(1)]};
}

// Errors of binades differ by as much as the binades do: told in standard errors, or by the lower ends, they fit one
// axis.
function binadeDrawings(strata) {
  const named = strata.map(([exponent, given]) => [powerOf2(exponent), given]);
  const scaled = (exponent, x) => toNumber(x) * 2 ** -Number(exponent);
  const byLowerEnd = strata.map(([exponent, given]) => {
    const {value, se, ...rest} = figureOf(given);
    return [powerOf2(exponent), {...rest, value: scaled(exponent, value), se: scaled(exponent, se)}];
  });
  return [
    ["z, in standard errors", zDrawing(named, "binade")], ["mean error", strataDrawing(named, "binade", "mean error")],
    ["mean error / lower end of the binade", strataDrawing(byLowerEnd, "binade", "mean error / lower end")]
  ];
}

const byNumber = ([a], [b]) => Number(a) - Number(b);
const strataOf = (record, name) =>
    entriesOf(at(record, "bias/" + name) ?? record[name]).filter(([, value]) => isObject(value));

// A histogram by code, over the values of codes where they are known.
function histogramDrawing(counts, values, title) {
  const known = listOf(values).length >= counts.length;
  const rows = counts.map((count, code) => ({code, count, value: known ? toNumber(values[code]) : NaN}));
  const ordered = known ?
      rows.filter(({value}) => !Number.isNaN(value)).sort((a, b) => a.value - b.value || b.code - a.code) :
      rows;
  const used = trimmed(ordered);
  const total = rows.reduce((sum, {count}) => sum + count, 0);
  const most = largestBy(used, ({count}) => count);
  return {
    x: {
      scale: "category",
      title: known ? title : "code of the " + title,
      labels: used.map(({code, value}) => (known ? shownNumber(Object.is(value, -0) ? 0 : value) : hexOf(code, 8)))
    },
    y: {title: "count"},
    series: [{label: "count", look: "bars", points: used.map(({count}) => count)}],
    words: most ? shownPercent(most.count / total) + " have code " + hexOf(most.code, 4) + "." : "",
    columns: [
      {title: "code", kind: "code", get: ({code}) => hexOf(code, counts.length > 16 ? 8 : 4)},
      numberColumn("value", "value"), {title: "count", kind: "count", get: ({count}) => count},
      {title: "share", kind: "percent", get: ({count}) => count / total}
    ],
    rows: ordered,
  };
}

// Without the unused codes at both ends.
function trimmed(rows) {
  const used = rows.map(({count}) => count > 0);
  return used.includes(true) ? rows.slice(used.indexOf(true), used.lastIndexOf(true) + 1) : rows;
}

const kParts = [["grid", "grid noise"], ["scale", "scale rounding"], ["dead_zone", "dead zone"], ["clip", "clipping"]];

function decompositionDrawing(record, figure) {
  const parts = record.decomposition[figure], se = at(record, "decomposition/se/" + figure) ?? {};
  const rows =
      [...kParts, ["total", "total"]].filter(([key]) => isNumber(parts[key])).map(([key, name]) => ({
                                                                                    name,
                                                                                    value: toNumber(parts[key]),
                                                                                    se: toNumber(se[key]),
                                                                                    share: toNumber(parts[key]) /
                                                                                        toNumber(parts.total)
                                                                                  }));
  const most = largestBy(rows.filter(({name}) => name !== "total"), ({value}) => Math.abs(value));
  return {
    sideways: true,
    x: {scale: "category", labels: rows.map(({name}) => name)},
    y: {title: figure},
    series: [
      {label: figure, look: "bars", points: rows.map(({value}) => value)},
      {look: "whiskers", color: 5, points: rows.map(({value, se}) => [value - 2 * se, value + 2 * se])},
    ],
    words: most ?
        "Most is " + most.name + ": " + shownPercent(most.share) + " of " + shownNumber(toNumber(parts.total)) + "." :
        "",
    columns: [
      wordColumn("part", "name"), numberColumn(figure, "value"), numberColumn("se", "se", 2),
      {title: "share", kind: "percent", get: ({share}) => share}
    ],
    rows,
  };
}

// "0.0156 to 0.0313, and 13 binades like it": a row of a conversion's ranges.
function rangeName({from, to, binades}) {
  const alike = toNumber(binades) > 1 ? ", and " + plural(binades - 1, "binade") + " like it" : "";
  return shownNumber(from, 3) + " to " + shownNumber(to, 3) + alike;
}

function curveWithin(curve, from, to) {
  const kept = listOf(curve.x).map((x) => toNumber(x) >= from && toNumber(x) <= to);
  return Object.fromEntries(entriesOf(curve).map(([key, list]) => [key, listOf(list).filter((_, i) => kept[i])]));
}

const kSeenAtOnce = 4;  // binades

// The curve over each of a conversion's ranges, that of most binades first, and over all of them: what lies beyond
// saturates, and would hide the rest.
function rangeDrawings({curve, binades}, lines, yTitle) {
  const ranges = [...listOf(binades)].sort((a, b) => toNumber(b.binades) - toNumber(a.binades));
  const end = Math.max(...ranges.map(({to}) => toNumber(to)));
  const drawingOf = (from, to) => curveDrawing(curveWithin(curve, from, to), lines, yTitle);
  const whole = ["all", ranges.length > 0 ? drawingOf(-end, end) : curveDrawing(curve, lines, yTitle)];
  const parts = ranges.map((range) => [rangeName(range), drawingOf(toNumber(range.from), toNumber(range.to))]);
  const shown = parts.filter(([, {rows}]) => rows.length > 1);
  const isWide = sum(ranges.map((range) => toNumber(range.binades))) > kSeenAtOnce;
  return withCloseUp(isWide ? [...shown, whole] : [whole, ...shown], curve, lines, yTitle);
}

const kDense = 640, kCloseUp = 160;  // points of a curve

// Before drawings of which the first is too dense to be seen, the beginning of the curve of that one.
function withCloseUp(drawings, curve, lines, yTitle) {
  const [[, {rows}]] = drawings;
  if (rows.length <= kDense) return drawings;
  const from = rows[0].x, to = rows[kCloseUp].x;
  return [["close-up", curveDrawing(curveWithin(curve, from, to), lines, yTitle)], ...drawings];
}

function noiseDrawings(record) {
  const lines = [["bias", "bias", "line"], ["sd", "sd", "dashed"]], yTitle = "in units of x";
  const within = rangeDrawings(record, lines, yTitle), whole = curveDrawing(record.curve, lines, yTitle);
  const saturates = within.every(([, {rows}]) => rows.length < whole.rows.length);
  return saturates ? [...within, ["with what saturates", whole]] : within;
}

// y over x, a line for each of some names of the curve's lists.
function curveDrawing(curve, lines, yTitle) {
  const rows = listOf(curve.x).map(
      (x, i) => Object.assign({x: toNumber(x)}, ...lines.map(([key]) => ({[key]: toNumber(listOf(curve[key])[i])}))));
  const [first] = lines[0],
        worst = largestBy(rows.filter((row) => Number.isFinite(row[first])), (row) => Math.abs(row[first]));
  return {
    x: {title: "x"},
    y: {title: yTitle},
    series: lines.map(
        ([key, label, look]) => ({label, look, points: finite(rows.map((row) => ({x: row.x, y: row[key]})))})),
    words: worst ? "Largest at x = " + shownNumber(worst.x) + ": " + shownNumber(worst[first]) + "." : "",
    columns: [numberColumn("x", "x"), ...lines.map(([key, label]) => numberColumn(label, key))],
    rows,
  };
}

function binadesDrawing({binades}) {
  const rows = binades.map((binade) => ({
                             name: rangeName(binade),
                             ...binade,
                           }));
  const worst = largestBy(rows, ({uniform}) => Math.abs(toNumber(uniform)) || 0);
  return {
    x: {scale: "category", labels: rows.map(({name}) => name), title: "x"},
    y: {title: "mean error in ulp"},
    series: [
      {label: "uniform density", look: "bars", points: rows.map(({uniform}) => toNumber(uniform))},
      {label: "log-uniform density", look: "bars", points: rows.map(({log_uniform}) => toNumber(log_uniform))}
    ],
    words: "Largest in " + worst.name + ": " + shownNumber(worst.uniform) + " ulp.",
    columns: [
      wordColumn("x", "name"), numberColumn("ulp", "ulp"), numberColumn("uniform", "uniform"),
      numberColumn("log_uniform", "log_uniform"), numberColumn("largest", "largest"),
      numberColumn("largest_sd", "largest_sd"), {title: "tie_share", kind: "percent", get: ({tie_share}) => tie_share}
    ],
    rows,
  };
}

// A logarithmic axis as wide as its numbers need, with ticks at 1, 2 and 5 where decades are too few; of numbers alike
// a linear one.
function logAxis(title, numbers) {
  const usable = numbers.filter((x) => x > 0 && Number.isFinite(x)), low = Math.min(...usable),
        high = Math.max(...usable);
  if (high < 4 * low) return {title, min: low / 1.05, max: high * 1.05};
  const ticked = high > 300 * low ? /^1(e|$)/ : /^[125](e|$)/;
  const ticks = (value) => (ticked.test(value.toExponential()) ? shownNumber(value, 3) : null);
  return {scale: "logarithmic", title, ticks, min: low / 1.3, max: high * 1.3};
}

// Error of the mean over B draws. Unbiased rounding falls as 1/B, which the dashed line does; bias ends it on a
// plateau.
function concentrationDrawing({concentration}) {
  const rows = listOf(concentration.draws).map((draws, i) => ({
                                                 x: toNumber(draws),
                                                 y: toNumber(concentration.error[i]),
                                                 se: toNumber(listOf(concentration.se)[i]),
                                                 bits: listOf(concentration.bits)[i],
                                               }));
  const points = finite(rows), [first] = points;
  const slope = figureOf(isObject(concentration.slope) ? concentration.slope : {value: concentration.slope});
  const band = (sign) => points.map(({x, y, se}) => ({x, y: Math.max(y + sign * 2 * (se || 0), y / 100)}));
  return {
    x: {scale: "logarithmic", title: "draws B", at: points.map(({x}) => x), ticks: shownCount},
    y: logAxis("relative squared error", points.map(({x, y}) => [y, first.y * first.x / x]).flat()),
    series: [
      {label: "mean of B draws", look: "marked", points}, {
        label: "slope −1: no bias",
        look: "dashed",
        color: 5,
        points: points.map(({x}) => ({x, y: first.y * first.x / x}))
      },
      {look: "edge", points: band(-1)}, {look: "band", color: 0, points: band(1)}
    ],
    words: "Slope " + shownNumber(slope.value) + " ± " + shownNumber(slope.se, 2) + ".",
    columns: [
      {title: "draws", kind: "count", get: ({x}) => x}, numberColumn("error", "y"), numberColumn("se", "se", 2),
      numberColumn("bits", "bits")
    ],
    rows,
  };
}

function splitDrawing({split}) {
  const rows = ["operands", "accumulator", "crossed", "total"]
                   .filter((name) => isObject(split.rel_mse[name]))
                   .map((name) => ({name, ...figureOf(split.rel_mse[name])}));
  return {
    sideways: true,
    x: {scale: "category", labels: rows.map(({name}) => name)},
    y: {title: "rel_mse"},
    series: [
      {label: "rel_mse", look: "bars", points: rows.map(({value}) => value)},
      {look: "whiskers", color: 5, points: rows.map(({value, se}) => [value - 2 * se, value + 2 * se])}
    ],
    words: rows.map(({name, value}) => name + " " + shownNumber(value)).join(", ") + ".",
    columns: [
      wordColumn("error of", "name"), numberColumn("rel_mse", "value"), numberColumn("se", "se", 2),
      numberColumn("z", "z", 3)
    ],
    rows,
  };
}

// Every record as a point, a series for each recipe; a click opens one.
function tensorOverview(records, open) {
  const recipes = unique(records.map(({recipe}) => recipe)), names = unique(records.map(({tensor}) => tensor));
  const place = new Map(names.map((name, i) => [name, i + 1]));
  const pointsOf = (recipe) => records.filter((r) => r.recipe === recipe && toNumber(r.rel_mse) > 0)
                                   .map((r) => ({x: place.get(r.tensor), y: toNumber(r.rel_mse), record: r}));
  return {
    x: {
      title: "tensor, in the order of the file",
      ticks: (value) => (Number.isInteger(value) ? shownCount(value) : null)
    },
    y: logAxis("rel_mse", records.map(({rel_mse}) => toNumber(rel_mse))),
    series: recipes.map((recipe) => ({label: recipe, look: "points", points: pointsOf(recipe)})),
    tooltip: ({raw}) => raw.record.tensor + ", " + raw.record.recipe + ": " + shownNumber(raw.y),
    onClick: (hits) => hits.length > 0 && open(hits[0].element.$context.raw.record),
    words: plural(records.length, "result") + ".",
    columns: [wordColumn("tensor", "tensor"), wordColumn("recipe", "recipe"), numberColumn("rel_mse", "rel_mse")],
    rows: records,
  };
}
// The same tensor at every step of a capture.
const stepsOf = (record, all) => all.filter(
    (other) =>
        isNumber(other.step) && [...kPlace, "recipe"].every((key) => key === "step" || other[key] === record[key]));

function stepsDrawing(record, all) {
  const rows = stepsOf(record, all)
                   .map((r) => ({x: toNumber(r.step), y: toNumber(r.rel_mse), se: toNumber(at(r, "se/rel_mse"))}))
                   .sort((a, b) => a.x - b.x);
  const edge = (sign) => rows.map(({x, y, se}) => ({x, y: y + sign * 2 * (se || 0)}));
  return {
    x: {title: "step"},
    y: {title: "rel_mse"},
    series: [
      {label: "rel_mse", look: "marked", points: rows}, {look: "edge", points: edge(-1)},
      {look: "band", color: 0, points: edge(1)}
    ],
    words: "From " + shownNumber(rows[0].y) + " to " + shownNumber(rows.at(-1).y) + ".",
    columns:
        [{title: "step", kind: "count", get: ({x}) => x}, numberColumn("rel_mse", "y"), numberColumn("se", "se", 2)],
    rows,
  };
}
