// Elements of the page. Whatever comes out of a result becomes text, never markup.

function element(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null) continue;
    if (name.startsWith("on"))
      made.addEventListener(name.slice(2), value);
    else if (name === "style")
      Object.assign(made.style, value);
    else
      made.setAttribute(name, value);
  }
  made.append(...children.flat().filter((child) => child !== undefined && child !== null));
  return made;
}

const linkTo = (place) => "#" + new URLSearchParams(place).toString();

function tell(words) {
  const told = document.getElementById("told");
  told.textContent = words;
  setTimeout(() => {
    if (told.textContent === words) told.textContent = "";
  }, 2000);
}

// A link to this place, which also goes to the clipboard where the browser lets it.
function anchor(place, title) {
  const copy = (event) => {
    const url = event.currentTarget.href;
    navigator.clipboard?.writeText(url).then(() => tell("Link copied"), () => tell("The link is in the address bar"));
  };
  return element(
      "a", {class: "anchor", href: linkTo(place), "aria-label": "Link to " + title, title: "Copy link", onclick: copy},
      "#");
}

function heading(level, title, place) {
  return element("h" + level, null, title, anchor(place, title));
}

const kChips = {
  biased: ["bad", "▲ "],
  differs: ["bad", "✗ "],
  dependent: ["bad", "▲ "],
  exact: ["good", "✓ "],
  agrees: ["good", "✓ "],
  fits: ["good", "✓ "],
  independent: ["good", "✓ "],
};

function chip(word) {
  const [look, sign] = Object.hasOwn(kChips, word) ? kChips[word] : ["none", "○ "];
  return element("span", {class: "chip " + look}, element("span", {"aria-hidden": "true"}, sign), word);
}

function tiles(facts) {
  const tile = ([title, value]) => {
    const look = value.length > 16 ? "long" : null;
    return element("div", {class: "tile"}, element("dt", null, title), element("dd", {class: look}, value));
  };
  return element("dl", {class: "tiles"}, facts.map(tile));
}

function factList(facts) {
  return element(
      "dl", {class: "facts"},
      facts.map(([name, value]) => element("div", null, element("dt", null, name), element("dd", null, value))));
}

// Runs `build` when the element comes near the screen, or goes to paper.
const kWaiting = new Map();
const kNear = new IntersectionObserver((entries) => {
  for (const {isIntersecting, target} of entries)
    if (isIntersecting) buildNow(target);
}, {rootMargin: "300px"});

function buildWhenNear(target, build) {
  kWaiting.set(target, build);
  kNear.observe(target);
}

function forget(target) {
  kWaiting.delete(target);
  kNear.unobserve(target);
}

function buildNow(target) {
  const build = kWaiting.get(target);
  forget(target);
  build?.();
}
