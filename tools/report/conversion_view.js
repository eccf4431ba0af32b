// Conversions, of halfulp bias.

const kConversionList = {
  part: "conversions",
  title: "Conversions",
  key: "conversion",
  of: "conversion",
  records: resultsOf,
  nameOf: (r) => String(r.name),
  kindKey: "rounding",
  kindOf: (r) => r.rounding,
  columns: [
    {title: "name", get: (r) => r.name},
    {title: "format", kind: "word", get: (r) => r.format},
    {title: "rounding", kind: "word", get: (r) => r.rounding},
    {title: "random_bits", kind: "count", get: (r) => r.random_bits},
    {title: "largest_ulp", kind: "number", get: (r) => worstRange(r, "largest")?.largest},
    {title: "uniform_ulp", kind: "number", get: (r) => worstRange(r, "uniform")?.uniform},
    {title: "largest_covariance_ulp2", kind: "number", get: (r) => at(r, "pair/largest/covariance_ulp2")},
  ],
  details: (r) => [
      ["format", String(r.format)], ["rounding", String(r.rounding)],
      ["random bits", r.random_bits === null ? "none" : String(r.random_bits ?? "–")],
      ...entriesOf(at(r, "pair/largest")).map(([name, value]) => ["pair: " + name, shownNumber(value)]),
      ["convention", String(r.convention ?? "–")]],
  figures: () => [],
  tables: (r) => [["Values", r.values], ["Pairs of lanes", at(r, "pair/values")]]
                     .filter(([, rows]) => listOf(rows).length > 0)
                     .flatMap(
                         ([title, rows]) =>
                             [element("h4", null, title),
                              genericTable(title, rows, ["x", "below", "above", "expectation", "bias", "bias_ulp"])]),
};

// The row of a conversion's ranges with the largest of some figure.
const worstRange = (r, figure) => largestBy(
    listOf(r.binades).filter((range) => isNumber(range[figure])), (range) => Math.abs(toNumber(range[figure])));
const inRange = ({from, to}) => " from " + shownNumber(from, 3) + " to " + shownNumber(to, 3);

function conversionFinding(r) {
  const point = worstRange(r, "largest"), mean = worstRange(r, "uniform");
  if (!point || !mean) return finding("Nothing is said of its ranges.", undefined, r.name);
  const ofNumbers = "The bias of a number is up to " + shownNumber(point.largest) + " ulp" + inRange(point);
  const ofRanges = toNumber(mean.uniform) === 0 ?
      "; over every range it averages out." :
      "; averaged over a range, up to " + shownNumber(mean.uniform) + " ulp" + inRange(mean) + ".";
  return finding(ofNumbers + ofRanges, toNumber(mean.uniform) === 0 ? "good" : "bad", r.name);
}
