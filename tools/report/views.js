// What the page shows of each verb's result: a row of kViews by schema, and by "kind" for the results of bias.
//
// A view: {title, facts(result), findings(result), lists: [list]}. A list is records of a result with a table, and
// plots of one of them at a time: {part, title, key: its name in links, of: what plots take, records(result),
// nameOf(record), kindOf(record): what tells records of one name apart, kindKey: its name in links, columns, sortBy,
// details(record), figures(record)}.

// A capture's ranking by "error" or by "bias".
const rankedBy = (by) => ({
  part: "ranking-" + by,
  title: "What hurts most, by " + by,
  build: (result) => rankingTable(by, listOf(result.ranking).filter((row) => row.by === by)),
});

function rankingTable(by, rows) {
  if (rows.length === 0) return null;
  const largest = Math.max(...rows.map(({share}) => toNumber(share) || 0));
  const columns = [
    ...kPlace.map((key) => briefColumn(key, key)), briefColumn("recipe", "recipe"),
    {title: "share", kind: "share", largest, get: ({share}) => share}, numberColumn("value", "value")
  ];
  return sortableTable({caption: "What hurts most, by " + by, columns, rows});
}

function rankingFinding(by, {phase, role, layer, share}) {
  return finding(
      "Hurts most by " + by + ": " + shownPercent(share) + " of all.", "bad", [phase, role, layer].join("/"));
}

function captureFindings(result) {
  const rows = listOf(result.ranking);
  const worst = unique(rows.map(({by}) => by)).map((by) => rankingFinding(by, rows.find((row) => row.by === by)));
  return [...worst, ...tensorFindings(result), ...productFindings(listOf(result.products))];
}

// Any result: its plain values as facts, its lists of objects as tables.
function genericView(verb, result) {
  const lists = flatLists(result, "");
  return {
    title: "Result of halfulp " + verb,
    facts: () => entriesOf(result)
                     .filter(([key, value]) => key !== "schema" && !isObject(value) && !Array.isArray(value))
                     .map(([key, value]) => [key, String(value)]),
    findings: () => [],
    parts: lists.map(([path, rows]) => ({part: path, title: path, build: () => genericTable(path, rows)})),
  };
}

function flatLists(value, path) {
  if (Array.isArray(value)) return value.some(isObject) ? [[path, value]] : [];
  return entriesOf(value).flatMap(([key, inner]) => flatLists(inner, path === "" ? key : path + "/" + key));
}

const kViews = {
  error: {
    title: "Error of recipes",
    facts: tensorFacts,
    findings: tensorFindings,
    parts: [kTotals],
    lists: [tensorList(kTensorColumns)]
  },
  "bias/tensors": {
    title: "Error and bias of recipes",
    facts: tensorFacts,
    findings: tensorFindings,
    parts: [kTotals],
    lists: [tensorList(kTensorColumns)]
  },
  "bias/conversion": {
    title: "Bias of conversions",
    facts: (r) => [
        ["Conversions", shownCount(resultsOf(r).length)],
        ["Formats", unique(resultsOf(r).map(({format}) => format)).join(", ")]],
    findings: (r) => resultsOf(r).map(conversionFinding),
    lists: [kConversionList]
  },
  "bias/products": {
    title: "Bias of products",
    facts: (r) => [
        ["Products", shownCount(resultsOf(r).length)],
        ["Draws", unique(resultsOf(r).map(({draws}) => draws)).map(shownCount).join(", ")]],
    findings: (r) => [...streamFindings(r), ...productFindings(resultsOf(r))],
    lists: [{...kProductList, records: resultsOf}]
  },
  "bias/capture": {
    title: "Bias per phase, role and layer",
    facts: (r) => [["Policy", String(r.policy ?? "–")], ...tensorFacts(r)],
    findings: captureFindings,
    parts: [
      {
        part: "heat-map",
        title: "Phases and layers",
        build: (r, placeOf) => heatMap(resultsOf(r), ({tensor, recipe}) => placeOf({tensor, recipe}))
      },
      rankedBy("error"), rankedBy("bias")
    ],
    lists: [tensorList(kCaptureColumns), {...kProductList, records: (r) => listOf(r.products)}]
  },
  mma: kMma,
  replay: kReplay,
  identify: kIdentify,
};

const viewOf = ({verb, result}) => kViews[verb] ?? kViews[verb + "/" + result.kind] ?? genericView(verb, result);
