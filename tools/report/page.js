// The page: a section for each result, places in links, the theme, and paper.

// {section, part, plot, tensor...} of the address.
const placeInAddress = () => Object.fromEntries(new URLSearchParams(location.hash.slice(1)));

// What cannot be shown is said where it would have been; the rest of the page stays.
function guarded(title, build) {
  try {
    return build();
  } catch (error) {
    return element(
        "p", {class: "note"},
        title + " cannot be shown: this part of the result is not as expected (" + error.message + ").");
  }
}

function findingList(findings) {
  return element(
      "ul", {class: "findings"},
      findings.map(
          ({subject, text, look}) =>
              element("li", {class: look}, subject ? element("b", null, subject + " ") : null, text)));
}

// The records of a result: a table of all, and one of them opened below it.
class RecordList {
  constructor(list, result, section) {
    Object.assign(this, {list, section, records: list.records(result).filter(isObject)});
    const open = (record) => this.choose(record);
    const [first, ...others] = list.columns;
    this.table = sortableTable(
        {caption: list.title, sortBy: list.sortBy, rows: this.records, columns: [{...first, open}, ...others]});
    this.select = element(
        "select", {
          "aria-label": "Which of the " + list.title,
          onchange: () => this.show(this.records[this.select.selectedIndex])
        },
        this.records.map((record) => element("option", null, this.fullName(record))));
    this.opened = element("div", {class: "record"});
    this.element = element("div", null, this.parts());
    this.show(list.sortBy ? largestBy(this.records, (r) => toNumber(r[list.sortBy]) || 0) : this.records[0]);
  }

  parts() {
    const {title, part, overview} = this.list;
    const all = overview && this.records.length > 2 ?
        new Figure({
          plot: kOverview,
          drawings: [["", overview(this.records, (record) => this.choose(record))]],
          place: this.place({plot: "overview"})
        }).element :
        "";
    const step = (by) => () =>
        this.show(this.records[(this.select.selectedIndex + by + this.records.length) % this.records.length]);
    const picker = element(
        "div", {class: "tools"}, element("button", {class: "plain", type: "button", onclick: step(-1)}, "‹ Previous"),
        this.select, element("button", {class: "plain", type: "button", onclick: step(1)}, "Next ›"));
    return [
      element("div", {"data-part": part}, heading(3, title, this.place({part})), this.table),
      element("div", {class: "plots"}, all),
      element(
          "div", {"data-part": this.list.key},
          heading(3, "One of the " + title.toLowerCase(), this.place({part: this.list.key})),
          this.records.length > 1 ? picker : "", this.opened)
    ];
  }

  fullName(record) {
    const kind = this.list.kindOf(record);
    return (this.list.nameOf(record) || "(empty name)") + (kind ? " — " + kind : "");
  }

  place(more) {
    return {section: this.section, ...more};
  }

  placeOf(record, more) {
    return this.place({
      [this.list.key]: this.list.nameOf(record),
      [this.list.kindKey]: String(this.list.kindOf(record) ?? ""),
      ...more
    });
  }

  show(record) {
    this.select.selectedIndex = this.records.indexOf(record);
    const placeOf = (more) => this.placeOf(record, more);
    const figures = this.list.figures(record), name = this.fullName(record);
    dropFigures(this.opened);
    this.opened.replaceChildren(
        heading(4, name, placeOf({})), factList(this.list.details(record)),
        figures.length > 0 ? figureTable("Figures of " + name, figures) : "",
        element(
            "div", {class: "plots"}, guarded("The plots", () => plotsOf(this.list.of, record, this.records, placeOf)),
            guarded("The worst blocks", () => worstBlocks(record, formatsOf(record), placeOf)) ?? ""),
        ...(this.list.tables?.(record) ?? []));
    for (const row of this.table.querySelectorAll("tbody tr")) row.classList.toggle("chosen", row.record === record);
  }

  // By a click: the address leads, so that it can be shared and gone back from.
  choose(record) {
    const link = linkTo(this.placeOf(record, {}));
    if (location.hash === link) return goAgain();
    location.hash = link;
  }

  find(place) {
    return this.records.find(
        (r) => this.list.nameOf(r) === place[this.list.key] &&
            [undefined, String(this.list.kindOf(r) ?? "")].includes(place[this.list.kindKey]));
  }
}

function partElement(part, result, placeOf) {
  const built = part.plots ? element("div", {class: "plots"}, plotsOf(part.plots, result, [], placeOf)) :
                             part.build(result, placeOf);
  if (!built?.hasChildNodes()) return null;
  return element("div", {"data-part": part.part}, heading(3, part.title, placeOf({part: part.part})), built);
}

class Section {
  constructor({file, verb, result}, number) {
    const view = viewOf({verb, result}), title = view.title;
    const placeOf = (more) => ({section: number, ...more});
    this.lists = [];
    const listElement = (list) => {
      const made = new RecordList(list, result, number);
      this.lists.push(made);
      return made.element;
    };
    this.element = element(
        "section", {class: "result", "aria-label": title + ", " + file, "data-section": number},
        heading(2, title, placeOf({})),
        element("p", {class: "source"}, "halfulp " + verb + " · ", element("span", {class: "mono"}, file)),
        element(
            "div", {"data-part": "summary"}, guarded("The summary", () => tiles(view.facts(result))),
            guarded("The findings", () => findingList(view.findings(result)))),
        (view.parts ?? []).map((part) => guarded(part.title, () => partElement(part, result, placeOf))),
        (view.lists ?? [])
            .filter((list) => list.records(result).length > 0)
            .map((list) => guarded(list.title, () => listElement(list))));
  }

  open(place) {
    for (const list of this.lists) {
      const record = list.find(place);
      if (record) list.show(record);
      if (record && !place.plot && !place.part) return list.opened;
    }
    const wanted = place.plot ? ["plot", place.plot] : place.part ? ["part", place.part] : null;
    return wanted ? [...this.element.querySelectorAll("[data-" + wanted[0] + "]")].find(
                        (each) => each.dataset[wanted[0]] === wanted[1]) :
                    this.element;
  }
}

function goTo(sections, place) {
  const numbered = sections[Number(place.section) - 1];
  const holds = (section) => section.lists.some((list) => list.find(place));
  const section = numbered ?? sections.find(holds) ?? sections[0];
  const target = section.open(place);
  if (!target) return;
  target.scrollIntoView();
  target.classList.add("targeted");
  target.addEventListener("animationend", () => target.classList.remove("targeted"), {once: true});
}

const goAgain = () => dispatchEvent(new HashChangeEvent("hashchange"));

// A browser does not follow a link to the address that it has.
function followAgain(event) {
  const link = event.target.closest?.("a[href^='#']");
  if (link?.getAttribute("href") === location.hash) goAgain();
}

function showSections(sections, data) {
  document.getElementById("main").append(...sections.map((section) => section.element));
  const names = data.map(
      ({file, verb, result}, i) =>
          element("a", {href: linkTo({section: i + 1}), title: file}, i + 1 + " " + viewOf({verb, result}).title));
  if (sections.length > 1) document.getElementById("sections").append(...names);
  document.title = "halfulp report: " + data.map(({file}) => file).join(", ");
  const follow = () => location.hash.length > 1 && goTo(sections, placeInAddress());
  addEventListener("hashchange", follow);
  addEventListener("click", followAgain);
  follow();
}

const kDark = matchMedia("(prefers-color-scheme: dark)");

function applyTheme(shade) {
  document.documentElement.dataset.shade = shade || (kDark.matches ? "dark" : "light");
  redrawFigures();
}

// Paper is white; charts and slices of tables that nobody has scrolled to belong on it too.
function prepareForPaper() {
  document.documentElement.dataset.shade = "light";
  for (const target of [...kWaiting.keys()]) buildNow(target);
  for (const table of document.querySelectorAll(".sortable")) table.showAll();
  redrawFigures();
}

function start() {
  const {sections} = kData;
  const theme = document.getElementById("theme");
  const chosen = () => applyTheme(theme.value);
  chosen();
  theme.addEventListener("change", chosen);
  kDark.addEventListener("change", chosen);
  addEventListener("beforeprint", prepareForPaper);
  addEventListener("afterprint", chosen);
  showSections(sections.map((section, i) => new Section(section, i + 1)), sections);
}

start();
