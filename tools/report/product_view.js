// Products over draws, of halfulp bias.

const productName =
    (r) => [r.phase, r.layer, r.step, r.product].filter((word) => word !== undefined && word !== null).join("/");
const operandNames = (r) => listOf(r.operands).map((o) => o.name ?? o.role).join(" × ");
const operandRecipes = (r) => unique(listOf(r.operands).map(({recipe}) => recipe)).join(" × ");
const productColumn = (name) => withError(name, (r) => toNumber(at(r, name + "/value")), (r) => at(r, name + "/se"));

const kProductList = {
  part: "products",
  title: "Products",
  key: "product",
  of: "product",
  nameOf: productName,
  kindKey: "recipe",
  kindOf: operandRecipes,
  columns: [
    {title: "product", get: productName},
    {title: "operands", kind: "word", get: operandNames},
    {title: "recipe", kind: "word", get: operandRecipes},
    {title: "shape", kind: "word", get: (r) => shownShape(r.shape)},
    {title: "draws", kind: "count", get: (r) => r.draws},
    productColumn("rel_error"),
    productColumn("squared_bias"),
    {title: "z_bias", kind: "number", digits: 3, get: (r) => at(r, "squared_bias/z")},
    productColumn("noise"),
    productColumn("projection"),
    {title: "verdict", kind: "verdict", get: (r) => at(r, "squared_bias/verdict")},
  ],
  details: (r) => [
      ["operands", operandNames(r)], ["recipe", operandRecipes(r)], ["shape", shownShape(r.shape)],
      ["draws", shownCount(r.draws ?? "–")], ["held fixed", String(r.fixed ?? "–")]],
  figures: (r) => [...figuresIn(r), ...figuresIn(r.population, "population: ")],
};

const kShownProducts = 6;

function productFinding(r) {
  const {value, z, least, verdict} = judged(r.squared_bias);
  const proof = shownNumber(value, 3) + " of the product's square";
  const text = verdict === "biased" ?
      "Biased: squared bias " + proof + ", z = " + shownNumber(z, 3) + "." :
      verdict === "exact" ?
      "Nothing is random: all of the error, " + proof + ", is bias for these operands." :
      "No bias found: " + proof + ", z = " + shownNumber(z, 3) + "; " + shownNumber(least, 2) + " would have been.";
  return finding(text, {biased: "bad", exact: ""}[verdict] ?? "good", productName(r) + ", " + operandRecipes(r));
}

// Of many products those with the largest squared bias, and how many there are of each verdict.
function productFindings(records) {
  const judgedOnes = records.filter((r) => isObject(r.squared_bias));
  if (judgedOnes.length <= kShownProducts) return judgedOnes.map(productFinding);
  const size = (r) => Math.abs(toNumber(r.squared_bias.value)) || 0;
  const counts =
      unique(judgedOnes.map((r) => r.squared_bias.verdict))
          .map((verdict) => judgedOnes.filter((r) => r.squared_bias.verdict === verdict).length + " " + verdict);
  return [
    finding(judgedOnes.length + " products: " + counts.join(", ") + ". Those with the largest squared bias:", ""),
    ...[...judgedOnes].sort((a, b) => size(b) - size(a)).slice(0, kShownProducts).map(productFinding)
  ];
}
