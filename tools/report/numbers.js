// Numbers out of a result, and as the program prints them.

// JSON has no NaN or infinity: a result has them as words. What is absent is NaN.
const kWords = {nan: NaN, inf: Infinity, "-inf": -Infinity};

function toNumber(value) {
  if (typeof value === "number") return value;
  return typeof value === "string" && value in kWords ? kWords[value] : NaN;
}

function isNumber(value) {
  return typeof value === "number" || (typeof value === "string" && value in kWords);
}

const withoutEndZeros = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);

// As printf's %.{digits}g.
function shownNumber(value, digits = 4) {
  const x = toNumber(value);
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (Object.is(x, -0)) return "-0";
  const [mantissa, exponent] = x.toExponential(digits - 1).split("e");
  const power = Number(exponent);
  if (power >= -4 && power < digits) return withoutEndZeros(x.toFixed(digits - 1 - power));
  const sign = power < 0 ? "-" : "+";
  return withoutEndZeros(mantissa) + "e" + sign + String(Math.abs(power)).padStart(2, "0");
}

const shownCount = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, ",");
const shownPercent = (share, digits = 3) => (isNumber(share) ? shownNumber(100 * toNumber(share), digits) + "%" : "–");
const shownShape = (shape) => (Array.isArray(shape) ? "(" + shape.join(", ") + ")" : "–");
const plural = (n, noun) => shownCount(n) + " " + noun + (n === 1 ? "" : "s");

const unique = (values) => [...new Set(values)];
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const listOf = (value) => (Array.isArray(value) ? value : []);
const entriesOf = (value) => (isObject(value) ? Object.entries(value) : []);

// result["a"]["b"] of "a/b", undefined where there is none.
function at(value, path) {
  for (const key of path.split("/")) value = isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

function quantile(sorted, share) {
  return sorted.length === 0 ? NaN : sorted[Math.round(share * (sorted.length - 1))];
}

const bitsOf = (code, width) => (code >>> 0).toString(2).padStart(width, "0");
const hexOf = (code, width) => "0x" + (code >>> 0).toString(16).padStart(Math.ceil(width / 4), "0");

const kSuperscripts = {"-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹"};
const superscript = (integer) => [...String(integer)].map((digit) => kSuperscripts[digit]).join("");
const powerOf2 = (exponent) => "2" + superscript(exponent);

// A figure with its proof: {value, se, z, least: what would have been found, verdict, unit, method}.
const kBiasedAt = 4;

function figureOf(given) {
  const value = toNumber(given.value ?? given.mean_error), se = toNumber(given.se);
  return {...given, value, se, z: toNumber(given.z), least: toNumber(given.minimum_detectable)};
}

// A figure of bias: what a verb leaves out is made here by the verbs' own rule.
function judged(given) {
  const figure = figureOf(given), {value, se} = figure;
  const z = Number.isNaN(figure.z) ? value / se : figure.z;
  const found = Number.isNaN(z) ? undefined : Math.abs(z) >= kBiasedAt ? "biased" : "not detected";
  return {...figure, z, least: Number.isNaN(figure.least) ? kBiasedAt * se : figure.least, verdict: given.verdict ?? found};
}

// A tensor's bias figure: with its proof where the verb gave one, else from its value and its standard error.
function biasFigure(record, name) {
  const proven = at(record, "bias/" + name);
  return judged(isObject(proven) ? proven : {value: record[name], se: at(record, "se/" + name)});
}
