// What the page shows of each verb's result: a row of kViews by schema, and by "kind" for the results of bias.
//
// A view: {title, facts(result), findings(result), lists: [list]}. A list is records of a result with a table, and
// plots of one of them at a time: {part, title, key: its name in links, of: what plots take, records(result),
// nameOf(record), kindOf(record): what tells records of one name apart, kindKey: its name in links, columns, sortBy,
// details(record), figures(record)}.

function ranking({ranking: rows}) {
  if (listOf(rows).length === 0) return null;
  const largest = Math.max(...rows.map(({share}) => toNumber(share) || 0));
  const columns = columnsOf(rows, [
                    ...kPlace, "share"
                  ]).map((column) => (column.title === "share" ? {...column, kind: "share", largest} : column));
  return sortableTable({caption: "What hurts most", columns, rows});
}

function captureFindings(result) {
  const [first] = listOf(result.ranking);
  const worst = first ? [finding(
                            "Hurts most: " + shownPercent(first.share) + " of the error.", "bad",
                            [first.phase, first.role, first.layer].join("/"))] :
                        [];
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
      {part: "ranking", title: "What hurts most", build: ranking}, {
        part: "heat-map",
        title: "Phases and layers",
        build: (r, placeOf) =>
            heatMap(resultsOf(r), (record) => placeOf({tensor: record.tensor, recipe: record.recipe}))
      }
    ],
    lists: [tensorList(kCaptureColumns), {...kProductList, records: (r) => listOf(r.products)}]
  },
  mma: kMma,
  replay: kReplay,
  identify: kIdentify,
};

const viewOf = ({verb, result}) => kViews[verb] ?? kViews[verb + "/" + result.kind] ?? genericView(verb, result);
