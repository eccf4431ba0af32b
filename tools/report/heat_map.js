// The heat map of a capture: layers down, phases and roles across. A table whose cells have colours.

const kHeatFigures = [
  {name: "rel_mse", title: "rel_mse", get: (r) => toNumber(r.rel_mse), log: true},
  {name: "shrinkage", title: "shrinkage", get: (r) => toNumber(r.shrinkage)},
  {name: "z", title: "|z| of shrinkage", get: (r) => Math.abs(biasFigure(r, "shrinkage").z)},
  {name: "mean_error", title: "mean_error", get: (r) => toNumber(r.mean_error)},
  {name: "clipped", title: "clipped", get: (r) => toNumber(r.clipped)},
];

const naturally = (a, b) => String(a).localeCompare(String(b), "en", {numeric: true});

// 0 to 1 over the values, by logarithm where they span decades.
function heatScale(values, log) {
  const usable = values.map(Math.abs).filter((v) => Number.isFinite(v) && (!log || v > 0));
  const place = log ? Math.log : (v) => v;
  const low = place(Math.min(...usable)), high = place(Math.max(...usable));
  return (value) =>
             (!Number.isFinite(value) || (log && value === 0) ? null :
                  high > low                                  ? (place(Math.abs(value)) - low) / (high - low) :
                                                                .5);
}

// One hue, light to dark; the text tells the sign, and the number itself.
const heatColor = (share) =>
    "color-mix(in srgb, var(--series-2) calc(6% + " + share.toFixed(3) + " * var(--heat)), var(--page))";

function heatCell(record, figure, scale, placeOf) {
  if (record === undefined) return element("td", null, "");
  const value = figure.get(record), share = scale(value);
  return element(
      "td", {style: share === null ? {} : {background: heatColor(share)}},
      element(
          "a", {href: linkTo(placeOf(record)), title: record.tensor + ", " + record.recipe}, shownNumber(value, 3)));
}

const cellKey = ({phase, role, layer}) => JSON.stringify([phase, role, layer]);

function heatTable(records, figure, placeOf) {
  const columns = unique(records.map(({phase, role}) => JSON.stringify([phase, role]))).map((text) => JSON.parse(text));
  const layers = unique(records.map(({layer}) => layer)).sort(naturally);
  const cells = new Map(records.map((record) => [cellKey(record), record]));
  const scale = heatScale(records.map(figure.get), figure.log);
  const cell = (layer, [phase, role]) => heatCell(cells.get(cellKey({phase, role, layer})), figure, scale, placeOf);
  const row = (layer) =>
      element("tr", null, element("th", {scope: "row"}, layer), columns.map((column) => cell(layer, column)));
  const columnHead = ([phase, role]) => element("th", {scope: "col", class: "right"}, phase, element("br"), role);
  const head = element("tr", null, element("th", {scope: "col"}, "layer"), columns.map(columnHead));
  const caption = figure.title + " by layer, phase and role";
  return element(
      "div", {class: "scroll heat-frame", tabindex: "0", role: "region", "aria-label": caption},
      element(
          "table", {class: "heat"}, element("caption", null, caption), element("thead", null, head),
          element("tbody", null, layers.map(row))));
}

function choice(title, names, changed) {
  const select = element(
      "select", {"aria-label": title, onchange: changed},
      names.map(([value, name]) => element("option", {value}, name)));
  return {select, element: element("label", null, title + " ", select)};
}

function heatMap(records, placeOf) {
  const body = element("div");
  const update = () => {
    const figure = kHeatFigures[figures.select.selectedIndex];
    const shown = records.filter(
        (r) => ["", String(r.role)].includes(roles.select.value) && String(r.step) === steps.select.value);
    body.replaceChildren(heatTable(shown, figure, placeOf));
  };
  const namesOf = (values) => unique(values.map(String)).sort(naturally).map((name) => [name, name]);
  const roles = choice("Role", [["", "all"], ...namesOf(records.map(({role}) => role))], update);
  const steps = choice("Step", namesOf(records.map(({step}) => step)), update);
  const figures = choice("Figure", kHeatFigures.map(({name, title}) => [name, title]), update);
  const key = element(
      "span", {class: "note"}, "small", element("span", {
        class: "key",
        "aria-hidden": "true",
        style: {background: "linear-gradient(to right, " + heatColor(0) + ", " + heatColor(1) + ")"}
      }),
      "large");
  update();
  return element(
      "div", null,
      element(
          "div", {class: "tools"}, roles.element, steps.select.length > 1 ? steps.element : null, figures.element, key),
      body);
}
