// The plots, one row each: {id, title, note, of: what kind of record, has(record, all), draw(record, all)}; `all` are
// the records of its list. One that has several drawings to choose from has {choice: their label, choose(record):
// [name, drawing]} instead of draw.

const kOverview = {
  id: "overview",
  title: "All tensors",
  note: "A point is a tensor under a recipe. A click opens it.",
  wide: true
};

const kPlots = [
  {
    id: "decomposition",
    of: "tensor",
    title: "What the error is made of",
    note: "An exact sum: the squared error that each step of the recipe adds. Lines: two standard errors.",
    has: (r) => isObject(at(r, "decomposition/rel_mse")),
    draw: (r) => decompositionDrawing(r, "rel_mse")
  },
  {
    id: "shrinkage-parts",
    of: "tensor",
    title: "What the shrinkage is made of",
    note: "Positive parts make values smaller, negative ones larger.",
    has: (r) => isObject(at(r, "decomposition/shrinkage")),
    draw: (r) => decompositionDrawing(r, "shrinkage")
  },
  {
    id: "codes",
    of: "tensor",
    title: "Histogram over the format's grid",
    note: "How many elements have each value of the element format.",
    has: (r) => listOf(at(r, "codes/histogram")).length > 0,
    draw: (r) => histogramDrawing(r.codes.histogram, r.codes.values ?? formatsOf(r).element?.values, "value")
  },
  {
    id: "scales",
    of: "tensor",
    title: "Histogram of block scales",
    note: "How many blocks have each scale; unused codes at both ends are left out.",
    has: (r) => listOf(at(r, "scales/histogram")).length > 0,
    draw: (r) => histogramDrawing(r.scales.histogram, r.scales.values ?? formatsOf(r).scale?.values, "scale")
  },
  {
    id: "steps",
    of: "tensor",
    title: "Over steps",
    note: "The same tensor at every step. Band: two standard errors.",
    wide: true,
    has: (r, all) => stepsOf(r, all).length > 1,
    draw: stepsDrawing
  },
  {
    id: "binades",
    of: "tensor",
    title: "Mean error by binade of x",
    note: "Beyond the dashed lines, 4 standard errors, is bias.",
    wide: true,
    has: (r) => strataOf(r, "by_binade").length > 0,
    choice: "Figure ",
    choose: (r) => binadeDrawings(strataOf(r, "by_binade").sort(byNumber))
  },
  {
    id: "eighths",
    of: "tensor",
    title: "Mean error by place in the binade",
    note: "Eighths of a binade, from the power of two up.",
    has: (r) => strataOf(r, "by_eighth").length > 0,
    draw: (r) => strataDrawing(strataOf(r, "by_eighth").sort(byNumber), "eighth of the binade", "mean error")
  },
  {
    id: "signs",
    of: "tensor",
    title: "Mean error by sign of x",
    note: "Opposite signs of the same size are shrinkage; equal signs are drift.",
    has: (r) => strataOf(r, "by_sign").length > 0,
    draw: (r) => strataDrawing(strataOf(r, "by_sign"), "sign", "mean error")
  },
  {
    id: "bias",
    of: "conversion",
    title: "Bias on the number line",
    note: "E[q(x)] − x in ulp, within the format's range: zero where rounding is right on average.",
    wide: true,
    has: (r) => listOf(at(r, "curve/bias_ulp")).length > 0,
    choice: "Range ",
    choose: (r) => rangeDrawings(r, [["bias_ulp", "bias_ulp", "line"]], "bias in ulp")
  },
  {
    id: "bias-absolute",
    of: "conversion",
    title: "Bias and noise",
    note: "E[q(x)] − x, and the standard deviation of q(x).",
    wide: true,
    has: (r) => listOf(at(r, "curve/bias")).length > 0,
    choice: "Range ",
    choose: noiseDrawings
  },
  {
    id: "conversion-binades",
    of: "conversion",
    title: "Mean error by binade",
    note: "Over the numbers of a range, uniform or log-uniform in density.",
    wide: true,
    has: (r) => listOf(r.binades).length > 0,
    draw: binadesDrawing
  },
  {
    id: "concentration",
    of: "product",
    title: "Error of the mean of draws",
    note:
        "Noise falls along the dashed line, a factor of 4 for each 4 times the draws. Bias stays: the curve leaves the line.",
    wide: true,
    has: (r) => listOf(at(r, "concentration/draws")).length > 0,
    draw: concentrationDrawing
  },
  {
    id: "split",
    of: "mma",
    title: "Whose error it is",
    note: "Against the product before quantization: total = operands + accumulator + crossed.",
    has: (r) => isObject(at(r, "split/rel_mse")),
    draw: splitDrawing
  },
];

// Two beside each other where they are not wide; one that would be left alone is wide too.
function plotsOf(kind, record, all, placeOf) {
  const shown = kPlots.filter(({of, has}) => of === kind && has(record, all)), narrow = shown.filter(({wide}) => !wide);
  const alone = narrow.length % 2 === 1 ? narrow.at(-1) : null;
  return shown.map((plot) => new Figure({
                               plot: plot === alone ? {...plot, wide: true} : plot,
                               drawings: plot.choose ? plot.choose(record) : [["", plot.draw(record, all)]],
                               place: placeOf({plot: plot.id})
                             }).element);
}
