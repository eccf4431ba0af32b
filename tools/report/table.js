// A table that sorts by a click on a column, filters, and puts its rows on the page in slices.
//
// A column: {title, get(row), kind, digits, help}. get gives what is sorted and filtered by; kind says how it looks.

const kSlice = 100;

const kKinds = {
  text: {show: (value) => String(value ?? "–")},
  code: {show: (value) => element("span", {class: "mono"}, String(value ?? "–"))},
  count: {right: true, show: (value) => (isNumber(value) ? shownCount(value) : "–")},
  number: {right: true, show: (value, {digits}) => (isNumber(value) ? shownNumber(value, digits) : "–")},
  percent: {right: true, show: (value, {digits}) => shownPercent(value, digits)},
  word: {show: (value) => String(value ?? "–")},
  bits: {show: (value, column, row) => column.show(row)},
  share: {show: (value, {largest}) => shareBar(toNumber(value), largest ?? 1)},
  verdict: {show: (value) => (value ? chip(value) : "–")},
};

// A bar and its number; the largest of a column fills its place.
function shareBar(share, largest) {
  const width = Math.min(1, Math.abs(share / largest) || 0);
  return [
    element("span", {class: "meter", "aria-hidden": "true"}, element("span", {style: {width: 100 * width + "%"}})),
    shownPercent(share)
  ];
}

// A number with its standard error.
function cellWithError(value, column, row) {
  const shown = kKinds.number.show(value, column), se = column.se(row);
  return isNumber(se) ? [shown, element("span", {class: "se"}, " ± " + shownNumber(se, 2))] : shown;
}

function cellOf(column, row) {
  const kind = kKinds[column.kind ?? "text"], value = column.get(row);
  const shown = column.se ? cellWithError(value, column, row) : kind.show(value, column, row);
  const look = kind.right ? "right" : column.kind ?? "text";
  const open = () => element(
      "button", {class: "open", type: "button", title: value, onclick: () => column.open(row)},
      shown === "" ? "(empty name)" : shown);
  const content = column.open ? open() : shown;
  return element("td", {class: look}, content);
}

const inWords = (a, b) => String(a ?? "").localeCompare(String(b ?? ""), "en", {numeric: true});

// A column with numbers goes by them, and what is none comes last either way; another goes by its words.
function sorted(rows, column, direction) {
  const isKnown = (row) => !Number.isNaN(toNumber(column.get(row)));
  const known = rows.filter(isKnown), get = column.get;
  if (known.length === 0) return [...rows].sort((a, b) => direction * inWords(get(a), get(b)));
  known.sort((a, b) => direction * (toNumber(get(a)) - toNumber(get(b))) || 0);
  return [...known, ...rows.filter((row) => !isKnown(row))];
}

const kComparisons = {
  "<": (x, y) => x < y,
  "<=": (x, y) => x <= y,
  ">": (x, y) => x > y,
  ">=": (x, y) => x >= y,
};

// A word of the filter: NAME<NUMBER and its like for a column of that title, else text that some column has.
function wordTest(word, columns) {
  const parts = /^(.+?)(<=|>=|<|>)(.+)$/.exec(word);
  const column = parts && columns.find(({title}) => title.toLowerCase().replaceAll(" ", "_") === parts[1]);
  if (column) return (row) => kComparisons[parts[2]](toNumber(column.get(row)), Number(parts[3]));
  return (row) => columns.some((each) => String(each.get(row) ?? "").toLowerCase().includes(word));
}

function filtered(rows, columns, text) {
  const tests = text.toLowerCase().split(/\s+/).filter((word) => word !== "").map((word) => wordTest(word, columns));
  return rows.filter((row) => tests.every((test) => test(row)));
}

class SortableTable {
  // {caption, columns, rows, sortBy, expand(row), brief: without a field for a filter}
  constructor(options) {
    Object.assign(this, {direction: 1, text: "", shown: 0}, options);
    this.body = element("tbody");
    this.count = element("span", {class: "count", role: "status"});
    this.heads = this.columns.map((column) => this.head(column));
    this.more =
        element("button", {class: "plain more", type: "button", onclick: () => this.showMore(kSlice)}, "More rows");
    const table = element(
        "table", null, element("caption", null, this.caption), element("thead", null, element("tr", null, this.heads)),
        this.body);
    const frame =
        element("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": this.caption}, table, this.more);
    this.element =
        element("div", {class: "sortable"}, this.rows.length > 8 && !this.brief ? this.field() : null, frame);
    if (this.sortBy) [this.sortedBy, this.direction] = [this.columns.find(({title}) => title === this.sortBy), -1];
    this.update();
    this.element.showAll = () => this.showMore(Infinity);
  }

  head(column) {
    const look = kKinds[column.kind ?? "text"].right ? "right" : null;
    return element(
        "th", {scope: "col", class: look, title: column.help},
        element("button", {type: "button", onclick: () => this.sortByColumn(column)}, column.title));
  }

  field() {
    const changed = (event) => {
      this.text = event.target.value;
      this.update();
    };
    return element(
        "div", {class: "tools"}, element("input", {
          type: "search",
          placeholder: "Filter: words, or sqnr_db<20",
          "aria-label": "Filter " + this.caption,
          oninput: changed
        }),
        this.count);
  }

  // A click on numbers wants the largest first, on words the first letter; the next click turns it round.
  sortByColumn(column) {
    const first = kKinds[column.kind ?? "text"].right ? -1 : 1;
    this.direction = this.sortedBy === column ? -this.direction : first;
    this.sortedBy = column;
    this.update();
  }

  update() {
    const rows = filtered(this.rows, this.columns, this.text);
    this.found = this.sortedBy ? sorted(rows, this.sortedBy, this.direction) : rows;
    this.heads.forEach((head, i) => {
      const here = this.columns[i] === this.sortedBy;
      head.setAttribute("aria-sort", !here ? "none" : this.direction > 0 ? "ascending" : "descending");
    });
    this.count.textContent = this.found.length === this.rows.length ?
        plural(this.rows.length, "row") :
        this.found.length + " of " + plural(this.rows.length, "row");
    this.body.replaceChildren();
    this.shown = 0;
    this.showMore(kSlice);
  }

  showMore(n) {
    const slice = this.found.slice(this.shown, this.shown + n);
    this.body.append(...slice.flatMap((row) => this.rowElements(row)));
    this.shown += slice.length;
    this.more.hidden = this.shown === this.found.length;
    this.more.textContent = "More rows (" + this.shown + " of " + this.found.length + " shown)";
  }

  rowElements(row) {
    const line = element("tr", null, this.columns.map((column) => cellOf(column, row)));
    line.record = row;
    if (!this.expand) return [line];
    const inner = element("tr", {hidden: ""}, element("td", {class: "inner", colspan: this.columns.length}));
    const button =
        element("button", {class: "open", type: "button", "aria-expanded": "false"}, "▸ ", ...line.cells[0].childNodes);
    button.addEventListener("click", () => this.toggle(row, button, inner));
    line.cells[0].replaceChildren(button);
    return [line, inner];
  }

  toggle(row, button, inner) {
    const open = inner.hidden;
    if (open && !inner.cells[0].hasChildNodes()) inner.cells[0].append(this.expand(row));
    inner.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
    button.firstChild.textContent = open ? "▾ " : "▸ ";
  }
}

const sortableTable = (options) => new SortableTable(options).element;
const briefTable = (caption, columns, rows) => sortableTable({caption, columns, rows, brief: true});

// Columns for rows of which little is known: one for each path to a value that is not an object, `first` before others.
function columnsOf(rows, first = []) {
  const paths = unique(rows.flatMap((row) => valuePaths(row, "")));
  return [
    ...first.filter((path) => paths.includes(path)), ...paths.filter((path) => !first.includes(path))
  ].map((path) => {
    const values = rows.map((row) => at(row, path));
    const numbers =
        values.every((value) => isNumber(value) || value === null || value === undefined) && values.some(isNumber);
    const whole = numbers && values.every((value) => value === null || value === undefined || Number.isInteger(value));
    const brief = values.every((value) => String(value).length <= 24);
    return {
      title: path,
      kind: whole ? "count" :
          numbers ? "number" :
          brief   ? "word" :
                    "text",
      get: (row) => plainOf(at(row, path))
    };
  });
}

function valuePaths(value, path) {
  if (!isObject(value)) return Array.isArray(value) && value.some(isObject) ? [] : [path];
  return Object.entries(value).flatMap(([key, inner]) => valuePaths(inner, path === "" ? key : path + "/" + key));
}

const plainOf = (value) => (Array.isArray(value) ? value.join(", ") : value);

function genericTable(caption, rows, first) {
  const objects = listOf(rows).filter(isObject);
  return objects.length > 0 ? sortableTable({caption, columns: columnsOf(objects, first), rows: objects}) : null;
}
