// The data of the page, as tools/packed_json.h packs them.

function unpack({shapes, shared, root}) {
  const open = (packed) => {
    if (!Array.isArray(packed)) return packed;
    const [kind, ...rest] = packed;
    if (kind === -1) return rest.map(open);
    if (kind === -2) return open(shared[rest[0]]);
    return objectOf(shapes[kind], rest.map(open));
  };
  return open(root);
}

// A key may be called anything, "__proto__" too.
function objectOf(keys, values) {
  const made = Object.create(null);
  keys.forEach((key, i) => {
    made[key] = values[i];
  });
  return made;
}

const kData = unpack(JSON.parse(document.getElementById("data").textContent));

// {element, scale} of a record's recipe, each {bits, sign_bits, exponent_bits, mantissa_bits, values by code}; empty
// for a recipe that is in no catalog.
const formatsOf = ({recipe}) => kData.recipes[recipe] ?? {};
