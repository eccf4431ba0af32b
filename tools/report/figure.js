// A plot on the page: a Chart.js chart with a heading, a link, words for who cannot see it, and its numbers as a table.
//
// A drawing, which plots.js makes: {type, series, x, y, words, columns, rows, height}.
// A series: {label, points, look, shape}; an axis: {title, scale, ticks(value)}.

const kShapes = ["circle", "rectRot", "triangle", "rect", "crossRot", "star"];
const kFigures = new Set();

const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
const seriesColor = (i) => colorOf("series-" + (1 + (i % kShapes.length)));

const faded = (color, alpha) => color + Math.round(255 * alpha).toString(16).padStart(2, "0");

const kOnTop = -1;

// What a series looks like: rows of Chart.js's dataset options, by name.
const kLooks = {
  line: (color) => (
      {borderColor: color, backgroundColor: color, borderWidth: 2, pointStyle: "line", pointRadius: 0, showLine: true}),
  points: (color, shape) =>
      ({borderColor: color, backgroundColor: faded(color, .55), pointStyle: shape, pointRadius: 4, showLine: false}),
  marked: (color, shape) =>
      ({borderColor: color, backgroundColor: color, pointStyle: shape, pointRadius: 4, borderWidth: 2, showLine: true}),
  dashed: (color) => ({
    borderColor: color,
    backgroundColor: color,
    borderDash: [6, 4],
    borderWidth: 1.5,
    pointStyle: "line",
    pointRadius: 0,
    showLine: true
  }),
  limit: (color) =>
      ({type: "line", order: kOnTop, borderColor: color, borderDash: [6, 4], borderWidth: 1.5, pointRadius: 0}),
  band: (color) =>
      ({borderColor: "transparent", backgroundColor: faded(color, .18), pointRadius: 0, showLine: true, fill: "-1"}),
  edge: () => ({borderColor: "transparent", pointRadius: 0, showLine: true}),
  bars: (color) => ({type: "bar", backgroundColor: faded(color, .85), borderColor: color}),
  whiskers: (color) => ({type: "bar", order: kOnTop, backgroundColor: color, barThickness: 2, grouped: false}),
  dots: (color, shape) => ({
    type: "line",
    order: kOnTop,
    showLine: false,
    borderColor: color,
    backgroundColor: color,
    pointStyle: shape,
    pointRadius: 4
  }),
};

function datasetOf(series, i) {
  const color = seriesColor(series.color ?? i);
  return {label: series.label, data: series.points, ...kLooks[series.look](color, kShapes[i % kShapes.length])};
}

const tickText = (value) =>
    (Number.isInteger(value) && Math.abs(value) < 1e7 ? shownCount(value) : shownNumber(value, 3));

// Names give way to each other; of numbers Chart.js would leave out every second tick too, zero among them.
function ticksOf(axis) {
  const color = colorOf("quiet");
  if (axis.scale === "category") return {color, autoSkipPadding: 12, maxRotation: 50};
  return {
    color,
    autoSkip: false,
    maxTicksLimit: 9,
    includeBounds: false,
    maxRotation: 0,
    callback: axis.ticks ?? tickText
  };
}

function scaleOf(axis) {
  const ticksAt = (scale) => {
    scale.ticks = axis.at.map((value) => ({value}));
  };
  return {
    type: axis.scale ?? "linear",
    min: axis.min,
    max: axis.max,
    ticks: ticksOf(axis),
    offset: axis.scale === "category",
    afterBuildTicks: axis.at ? ticksAt : undefined,
    grid: {color: colorOf("grid"), borderColor: colorOf("line")},
    title: {display: Boolean(axis.title), text: axis.title, color: colorOf("quiet")},
  };
}

// Limits and helpers of the eye have no place in the legend and no words under the mouse.
const isAside = (label) => label === undefined;

function pluginsOf(drawing) {
  const named = drawing.series.filter(({label}) => !isAside(label));
  return {
    legend: {
      display: named.length > 1,
      position: "bottom",
      labels: {color: colorOf("text"), usePointStyle: true, boxHeight: 7, filter: ({text}) => !isAside(text)}
    },
    tooltip:
        {filter: ({dataset}) => !isAside(dataset.label), callbacks: drawing.tooltip ? {label: drawing.tooltip} : {}},
  };
}

const kFinest = 1e-12;  // what Chart.js rounds ticks to

// Numbers too small for the ticks of a chart, in units of a power of ten.
function inUnits(drawing) {
  const sizes = drawing.series.flatMap(({points}) => points)
                    .flatMap((point) => point.y ?? point)
                    .map(Math.abs)
                    .filter(Number.isFinite);
  const largest = sizes.reduce((most, size) => Math.max(most, size), 0);
  if (largest === 0 || largest > kFinest || drawing.y.scale !== undefined) return drawing;
  const power = Math.floor(Math.log10(largest)), scaled = (y) => y / Math.pow(10, power);
  const scaledPoint = (point) => Array.isArray(point) ? point.map(scaled) :
      isObject(point)                                 ? {...point, y: scaled(point.y)} :
                                                        scaled(point);
  const series = drawing.series.map((each) => ({...each, points: each.points.map(scaledPoint)}));
  return {...drawing, series, y: {...drawing.y, title: drawing.y.title + ", in 10" + superscript(power)}};
}

function configOf(given) {
  const drawing = inUnits(given);
  const base = drawing.x.scale === "category" ? "bar" : "scatter";
  return {
    type: base,
    data: {labels: drawing.x.labels, datasets: drawing.series.map(datasetOf)},
    options: {
      animation: false,
      responsive: true,
      maintainAspectRatio: false,
      normalized: true,
      indexAxis: drawing.sideways ? "y" : "x",
      interaction: {mode: "nearest", intersect: false, axis: drawing.sideways ? "y" : "x"},
      scales:
          {x: scaleOf(drawing.sideways ? drawing.y : drawing.x), y: scaleOf(drawing.sideways ? drawing.x : drawing.y)},
      plugins: pluginsOf(drawing),
      onClick: (event, hits) => drawing.onClick?.(hits),
    },
  };
}

class Figure {
  // {plot: a row of kPlots, drawings: [name, drawing], of which one is shown, place: its link}
  constructor({plot, drawings, place}) {
    Object.assign(this, {title: plot.title, chart: null, canvas: element("canvas", {role: "img"})});
    this.frame = element("div", {class: "canvas"}, this.canvas);
    this.table = element("details", {ontoggle: () => this.fillTable()}, element("summary", null, "Numbers"));
    this.element = element(
        "figure", {class: plot.wide ? "plot wide" : "plot", "data-plot": plot.id}, heading(4, plot.title, place),
        element("figcaption", {class: "note"}, plot.note), drawings.length > 1 ? this.choice(plot, drawings) : "",
        this.frame, this.table);
    this.take(drawings[0][1]);
    kFigures.add(this);
    buildWhenNear(this.frame, () => this.draw());
  }

  choice(plot, drawings) {
    const select = element("select", null, drawings.map(([name]) => element("option", null, name)));
    select.addEventListener("change", () => {
      this.take(drawings[select.selectedIndex][1]);
      this.draw();
    });
    return element("label", {class: "tools"}, plot.choice, select);
  }

  take(drawing) {
    this.drawing = drawing;
    this.canvas.setAttribute("aria-label", this.title + ". " + (drawing.words ?? ""));
    this.table.querySelector(".sortable")?.remove();
    this.fillTable();
  }

  draw() {
    if (typeof Chart === "undefined")
      return this.frame.replaceWith("This halfulp was built without Chart.js: see the numbers.");
    this.chart?.destroy();
    this.chart = new Chart(this.canvas, configOf(this.drawing));
  }

  drop() {
    forget(this.frame);
    this.chart?.destroy();
    kFigures.delete(this);
  }

  fillTable() {
    if (!this.table.open || this.table.querySelector(".sortable")) return;
    this.table.append(briefTable("Numbers of " + this.title, this.drawing.columns, this.drawing.rows));
  }
}

// In the colours that hold now.
function redrawFigures() {
  for (const figure of kFigures)
    if (figure.chart) figure.draw();
}

// Before an element leaves the page.
function dropFigures(inside) {
  for (const figure of kFigures)
    if (inside.contains(figure.element)) figure.drop();
}
