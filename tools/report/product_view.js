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

function productFindings(records) {
  return records.filter((r) => isObject(r.squared_bias)).map((r) => {
    const {value, z, least, verdict} = judged(r.squared_bias);
    const proof = shownNumber(value, 3) + " of the product's square, z = " + shownNumber(z, 3);
    const text = verdict === "biased" ? "Biased: squared bias " + proof + "." :
                                        "No bias found: " + proof + "; " + shownNumber(least, 2) + " would have been.";
    return finding(text, verdict === "biased" ? "bad" : "good", productName(r) + ", " + operandRecipes(r));
  });
}
