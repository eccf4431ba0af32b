// Numbers out of a result, and as the program prints them.

// JSON has no NaN or infinity: a result has them as words. What is absent is NaN.
const kWords = {
  nan: NaN,
  inf: Infinity,
  "-inf": -Infinity
};

function toNumber(value) {
  if (typeof value === "number") return value;
  return typeof value === "string" && Object.hasOwn(kWords, value) ? kWords[value] : NaN;
}

function isNumber(value) {
  return typeof value === "number" || (typeof value === "string" && Object.hasOwn(kWords, value));
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

const kSuperscripts = {
  "-": "⁻",
  0: "⁰",
  1: "¹",
  2: "²",
  3: "³",
  4: "⁴",
  5: "⁵",
  6: "⁶",
  7: "⁷",
  8: "⁸",
  9: "⁹"
};
const superscript = (integer) => [...String(integer)].map((digit) => kSuperscripts[digit]).join("");
const powerOf2 = (exponent) => "2" + superscript(exponent);
