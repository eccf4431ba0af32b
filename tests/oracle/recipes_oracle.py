"""recipes_oracle.py HALFULP: quantize and dequantize of the program against recipes_numpy.py, byte for byte.

Every group of cases of a recipe is a safetensors file of a few tensors; what differs is printed with the input's bits,
and the exit status is 1. Two NaNs of a dequantized value count as equal: the publishers' kernels leave the payload open.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from recipes_numpy import DEQUANTIZE, QUANTIZE, decode_half, encode_half

SEED = 20250929
ELEMENTS = 1 << 22  # of the random tensors of each recipe, in all
DTYPES = {"F32": np.float32, "BF16": np.uint16, "F16": np.float16, "U16": np.uint16, "U8": np.uint8,
          "F8_E4M3": np.uint8, "F8_E5M2": np.uint8, "F8_E8M0": np.uint8, "F64": np.float64, "I32": np.int32}


def write_safetensors(path, tensors):
    """tensors: name -> (dtype name, array)."""
    header, offset = {}, 0
    for name, (dtype, array) in tensors.items():
        end = offset + array.nbytes
        header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, array in tensors.values():
            file.write(array.tobytes())


def read_safetensors(path):
    """name -> array, by name of dtype; and the metadata."""
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        tensors[name] = (entry["dtype"], np.frombuffer(data[begin:end], DTYPES[entry["dtype"]]).reshape(entry["shape"]))
    return tensors, metadata


def values_of(dtype, array):
    """The numbers of a source tensor as the recipe's input: float32, or the array's own type where that is wider."""
    if dtype == "BF16":
        return decode_half(array, 7, 8)
    if dtype == "F16":
        return decode_half(array.view(np.uint16), 10, 5)
    return array


# ------------------------------------------------------------------------------------------------------------- inputs


def from_bits(bits):
    return np.asarray(bits, np.uint32).view(np.float32)


def any_bits(rng, shape):
    """Uniform over all float32 bit patterns: every exponent, NaN, Inf, subnormals."""
    return rng.integers(0, 2**32, shape, np.uint32).view(np.float32)


def near(rng, values, shape):
    """Values of a list, or one of the float32 neighbours on either side, with either sign."""
    bits = np.asarray(rng.choice(values, shape), np.float32).view(np.uint32).astype(np.int64)
    bits = np.maximum(bits + rng.integers(-1, 2, shape), 0)
    return from_bits(bits.astype(np.uint32) | (rng.integers(0, 2, shape, np.uint32) << 31))


def grid_and_ties(rng, shape):
    """Every E2M1, E4M3 and E5M2 value and every midpoint, times a power of two, one ulp either side."""
    mantissas = np.concatenate([np.arange(16, 32) / 16, [1.0, 1.5]])
    return near(rng, (mantissas[:, None] * 2.0 ** np.arange(-12, 12)).ravel(), shape)


def amax_edges(rng, shape):
    """Each row's largest element sits at an edge of a scale rule; the row is otherwise smaller."""
    edges = [448, 464, 480, 512, 1.75, 1.8125, 1.9375, 2.0, 57344, 61440, 65504, 6, 2688, 1, 2.0**-126, 2.0**-133]
    powers = 2.0 ** rng.integers(-100, 100, shape[0])
    with np.errstate(over="ignore", under="ignore"):
        amax = (near(rng, edges, shape[:1]).astype(np.float64) * powers).astype(np.float32)
        x = amax[:, None] * rng.uniform(-1, 1, shape).astype(np.float32)
    x[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = amax
    return x


def range_ends(rng, shape):
    """Rows near the largest and smallest magnitudes of float32, E8M0 and the scale chain."""
    exponents = rng.choice([127, 126, 120, 119, -118, -119, -120, -126, -127, -133, -140, -149], shape[0])
    x = rng.uniform(0.5, 2, shape) * np.ldexp(1.0, exponents)[:, None] * rng.choice([-1, 1], shape)
    return np.clip(x, -np.finfo(np.float32).max, np.finfo(np.float32).max).astype(np.float32)


def with_specials(rng, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    specials = from_bits([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 1,
                          0x80000001, 0x7F7FFFFF, 0xFF7FFFFF])
    rows = rng.integers(0, shape[0], shape[0] // 4)
    x[rows, rng.integers(0, shape[1], len(rows))] = rng.choice(specials, len(rows))
    return x


def with_nan(rng, shape):
    """NaN but no Inf, so that a tensor scale stays an ordinary one."""
    x = rng.standard_normal(shape).astype(np.float32)
    x[rng.random(shape) < 0.01] = np.nan
    return x


def whole_blocks(_rng, shape):
    """Blocks of one value each: zeros of both signs, Inf, NaN, subnormals, the ends."""
    values = from_bits([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001, 1, 0x807FFFFF, 0x00800000,
                        0x7F7FFFFF, 0xFF7FFFFF, 0x3F800000, 0xBF800000, 0x3FC00000, 0x43E00000, 0x43E00001])
    blocks = np.repeat(values, shape[1] // len(values))
    return np.tile(blocks, (shape[0], 1))


def scale_underflow(rng, shape):
    """One huge element, and blocks so small that their scales round to zero or to subnormals of E4M3."""
    x = rng.standard_normal(shape) * 2.0 ** rng.integers(-34, -8, (shape[0], shape[1] // 16)).repeat(16, 1)
    x[0, 0] = 1024
    return x.astype(np.float32)


def subnormals(rng, shape):
    return from_bits(rng.integers(0, 0x01000000, shape, np.uint32) | (rng.integers(0, 2, shape, np.uint32) << 31))


def outliers(rng, shape):
    x = rng.standard_t(3, shape)
    x[:, :: shape[1] // 8] *= 2.0**12
    return x.astype(np.float32)


def constant(bits):
    return lambda _rng, shape: np.full(shape, from_bits([bits])[0])


# name -> (generator, share of ELEMENTS)
MAKERS = {
    "normal": (lambda rng, shape: rng.standard_normal(shape).astype(np.float32), 1 / 4),
    "any_bits": (any_bits, 1 / 8),
    "grid_and_ties": (grid_and_ties, 1 / 4),
    "amax_edges": (amax_edges, 1 / 8),
    "range_ends": (range_ends, 1 / 16),
    "with_specials": (with_specials, 1 / 32),
    "with_nan": (with_nan, 1 / 32),
    "scale_underflow": (scale_underflow, 1 / 16),
    "subnormals": (subnormals, 1 / 32),
    "outliers": (outliers, 1 / 32),
    "whole_blocks": (whole_blocks, 1 / 64),
    "zero": (constant(0), 1 / 1024),
    "negative_zero": (constant(0x80000000), 1 / 1024),
    "one": (constant(0x3F800000), 1 / 1024),
    "all_nan": (constant(0xFFC00001), 1 / 1024),
    "all_inf": (constant(0xFF800000), 1 / 1024),
    "smallest": (constant(1), 1 / 1024),
    "amax_1e-36": (constant(0x03AA2425), 1 / 1024),
    "largest": (constant(0x7F7FFFFF), 1 / 1024),
}


def finite_or_tiny(rng, shape):
    """Finite and wide: for recipes with a tensor scale, whose Inf makes every block alike."""
    with np.errstate(over="ignore"):
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, (shape[0], 1))).astype(np.float32)


def many_amaxes(rng):
    """Small BF16 tensors, each with a largest magnitude of its own: formulas of the tensor scale that differ in their
    order of operations give other bytes for about one block in a thousand."""
    return {f"amax{i:03}": ("BF16", encode_half(rng.standard_normal((128, 32)) * rng.uniform(1, 2), 7, 8))
            for i in range(256)}


def sources(rng):
    """The float32 tensors, and 16-bit ones made of their upper halves."""
    tensors = {}
    for name, (make, share) in MAKERS.items():
        tensors[name] = ("F32", make(rng, (max(int(ELEMENTS * share) // 512, 1), 512)))
    tensors["wide"] = ("F32", finite_or_tiny(rng, (128, 512)))
    for name in ("normal", "grid_and_ties", "amax_edges", "with_specials", "scale_underflow"):
        x = tensors[name][1][:512]
        tensors[name + "_bf16"] = ("BF16", encode_half(x, 7, 8))
        tensors[name + "_f16"] = ("F16", encode_half(x, 10, 5).view(np.float16))
    bits = np.arange(65536, dtype=np.uint16).reshape(-1, 512)
    tensors["all_bf16"] = ("BF16", bits)
    tensors["all_f16"] = ("F16", bits.view(np.float16))
    tensors |= many_amaxes(rng)
    tensors["vector"] = ("F32", rng.standard_normal(96).astype(np.float32))
    tensors["cube"] = ("F32", rng.standard_normal((3, 5, 64)).astype(np.float32))
    tensors["empty"] = ("F32", np.zeros((0, 64), np.float32))
    return tensors


def elementwise_sources(rng):
    """Doubles and integers, which the elementwise recipes round once."""
    x = rng.standard_normal((64, 511)) * 2.0 ** rng.integers(-160, 140, (64, 1))
    near_tie = (1 + np.ldexp(1.0, -8) * rng.integers(0, 256, (64, 511))) * (1 + rng.integers(-1, 2, (64, 511)) * 2.0**-52)
    return {"f64": ("F64", x), "f64_ties": ("F64", near_tie),
            "i32": ("I32", rng.integers(-(2**31), 2**31, (64, 33), np.int32)),
            "scalar": ("F32", np.array(1.00390625, np.float32))}


# --------------------------------------------------------------------------------------------------------- comparison


def unpack(dtype, array, shape):
    """Codes, one per element: two to a byte where the tensor holds half as many bytes along its last dimension."""
    if array.shape == tuple(shape):
        return np.atleast_1d(array).reshape(-1).view(np.uint16 if array.itemsize == 2 else np.uint8)
    low, high = array.reshape(-1) & 15, array.reshape(-1) >> 4
    return np.stack([low, high], 1).reshape(-1)


class Report:
    def __init__(self):
        self.failures = 0
        self.compared = 0

    def compare(self, what, expected, got, x=None):
        expected, got = np.atleast_1d(expected).reshape(-1), np.atleast_1d(got).reshape(-1)
        if expected.dtype.kind == "f":
            same_nan = np.isnan(expected) & np.isnan(got) if got.dtype.kind == "f" else False
            width = np.uint32
            expected, got = expected.view(width), got.view(width)
        else:
            same_nan = False
        self.compared += expected.size
        if expected.shape != got.shape:
            self.failures += 1
            print(f"FAIL {what}: {got.size} values, expected {expected.size}")
            return
        differs = np.flatnonzero((expected != got) & ~np.broadcast_to(same_nan, expected.shape))
        if len(differs) == 0:
            return
        self.failures += 1
        print(f"FAIL {what}: {len(differs)} of {expected.size} differ")
        for i in differs[:5]:
            source = f", input {float(x[i]):.9g} = 0x{int(np.float32(x[i]).view(np.uint32)):08x}" if x is not None else ""
            print(f"  [{i}] expected 0x{int(expected[i]):x}, got 0x{int(got[i]):x}{source}")


def check_tensor(report, recipe, name, source, quantized, dequantized):
    x = values_of(*source)
    flat = x.reshape(-1)
    with np.errstate(all="ignore"):
        want = QUANTIZE[recipe](flat)
        back = DEQUANTIZE[recipe](want)
    what = f"{recipe} {name}"
    parts = dict(quantized)
    report.compare(f"{what} codes", want.codes, unpack(*parts.pop(f"{name}.codes"), x.shape), flat)
    for part in ("scales", "global_scale", "amax"):
        value = getattr(want, part)
        if value is None:
            continue
        got = parts.pop(f"{name}.{part}")[1]
        report.compare(f"{what} {part}", value, got if part != "scales" else got.view(np.uint8))
    dtype, got = dequantized[name]
    if dtype != "F32" or got.shape != x.shape:
        report.failures += 1
        print(f"FAIL {what}: dequantized to {dtype} {got.shape}, expected F32 {x.shape}")
    report.compare(f"{what} values", back, got, flat)


def check_recipe(report, halfulp, folder, recipe, tensors):
    source, codes, values = (folder / name for name in ("x.safetensors", "q.safetensors", "y.safetensors"))
    write_safetensors(source, tensors)
    subprocess.run([halfulp, "quantize", source, "-r", recipe, "-o", codes, "--progress", "none"], check=True,
                   stderr=subprocess.DEVNULL)
    subprocess.run([halfulp, "dequantize", codes, "-o", values, "--progress", "none"], check=True)
    quantized, metadata = read_safetensors(codes)
    dequantized, _ = read_safetensors(values)
    if metadata["recipe"] != recipe:
        report.failures += 1
        print(f"FAIL {recipe}: metadata says {metadata['recipe']}")
    for name, tensor in tensors.items():
        check_tensor(report, recipe, name, tensor, {k: v for k, v in quantized.items() if k.startswith(name + ".")},
                     dequantized)


def main():
    halfulp = sys.argv[1]
    report = Report()
    for number, recipe in enumerate(QUANTIZE):
        rng = np.random.Generator(np.random.Philox(key=SEED + number))
        tensors = sources(rng)
        if recipe in ("bf16", "f16"):
            tensors |= elementwise_sources(rng)
        before = report.compared
        with tempfile.TemporaryDirectory() as folder:
            check_recipe(report, halfulp, pathlib.Path(folder), recipe, tensors)
        print(f"{recipe}: {sum(t.size for _, t in tensors.values())} elements, {report.compared - before} values compared")
    print(f"{report.failures} differences")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
