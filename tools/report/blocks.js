// The worst blocks of a tensor, down to the bits of each element.

// A code's bits by field, where the page knows the format: {sign_bits, exponent_bits, mantissa_bits}.
function bitFields(code, format, width) {
  if (!format) return element("span", {class: "mono bits"}, bitsOf(code, width));
  const bits = bitsOf(code, format.sign_bits + format.exponent_bits + format.mantissa_bits);
  const cut = format.sign_bits + format.exponent_bits;
  return element(
      "span", {class: "mono bits"}, element("span", {class: "sign"}, bits.slice(0, format.sign_bits)), " ",
      element("span", {class: "exponent"}, bits.slice(format.sign_bits, cut)), " ",
      element("span", {class: "mantissa"}, bits.slice(cut)));
}

function fp32Bits(x) {
  const view = new DataView(new ArrayBuffer(4));
  view.setFloat32(0, x);
  return view.getUint32(0);
}

function elementsOf(block, formats) {
  const rows =
      block.x.map((x, i) => ({i, x: toNumber(x), q: toNumber(listOf(block.q)[i]), code: listOf(block.codes)[i]}));
  const width = formats.element?.bits ?? (rows.every(({code}) => code < 16) ? 4 : 8);
  const fields = {
    title: "code bits",
    get: ({code}) => code,
    kind: "bits",
    show: ({code}) => bitFields(code, formats.element, width)
  };
  return briefTable(
      "Elements of the block at row " + block.row + ", column " + block.col,
      [
        {title: "i", kind: "count", get: ({i}) => i},
        numberColumn("x", "x", 9),
        {title: "x as FP32", kind: "code", get: ({x}) => hexOf(fp32Bits(x), 32)},
        {title: "code", kind: "code", get: ({code}) => (isNumber(code) ? hexOf(code, width) : null)},
        ...(rows.every(({code}) => isNumber(code)) ? [fields] : []),
        numberColumn("q", "q", 9),
        {title: "q − x", kind: "number", get: ({x, q}) => q - x},
        {
          title: "share of error",
          kind: "share",
          get: ({x, q}) => (q - x) ** 2 / rows.reduce((sum, row) => sum + (row.q - row.x) ** 2, 0)
        },
      ],
      rows);
}

function blockDetail(block, formats) {
  const scale =
      formats.scale && isNumber(block.scale_code) ? ["scale's bits", bitFields(block.scale_code, formats.scale)] : null;
  const facts = [
    ["scale", isNumber(block.scale) ? shownNumber(block.scale, 9) : "–"], scale,
    ...kParts.map(([key, name]) => isNumber(at(block, "parts/" + key)) ? [name, shownNumber(block.parts[key])] : null)
  ];
  return element(
      "div", null, factList(facts.filter((fact) => fact !== null)),
      Array.isArray(block.x) ? elementsOf(block, formats) : null);
}

function worstBlocks(record, formats, placeOf) {
  const blocks = listOf(record.worst_blocks);
  if (blocks.length === 0) return null;
  const width = formats.scale?.bits ?? 8;
  const part = (key, title) => ({title, kind: "number", digits: 3, get: (block) => at(block, "parts/" + key)});
  const table = sortableTable({
    caption: "Worst blocks of " + record.tensor,
    columns: [
      {title: "row", kind: "count", get: ({row}) => row},
      {title: "col", kind: "count", get: ({col}) => col},
      numberColumn("rel_mse", "rel_mse"),
      numberColumn("squared_error", "squared_error"),
      numberColumn("scale", "scale"),
      {
        title: "scale_code",
        kind: "code",
        get: ({scale_code}) => (isNumber(scale_code) ? hexOf(scale_code, width) : null)
      },
      ...kParts.filter(([key]) => blocks.some((block) => isNumber(at(block, "parts/" + key))))
          .map(([key, name]) => part(key, name)),
    ],
    rows: blocks,
    expand: (block) => blockDetail(block, formats),
  });
  return element(
      "div", {class: "plot wide blocks", "data-plot": "blocks"}, heading(4, "Worst blocks", placeOf({plot: "blocks"})),
      element("p", {class: "note"}, "Blocks with the largest squared error. Open one for its elements and their bits."),
      table);
}
