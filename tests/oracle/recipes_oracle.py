"""recipes_oracle.py HALFULP [RECIPE...]: quantize and dequantize of the program against NumPy, bit by bit.

Every recipe of recipes_numpy.py and recipes_packages.py that the program knows, or the ones named. The cases of a
recipe are a safetensors file of tensors; what differs is printed with the input's bits, and the exit status is 1. Two
NaNs of a dequantized value or of an FP32 scale count as equal: the publishers leave the payload open. Where a recipe
rounds at random, the result must be one of the two neighbours, and their numbers must fit the probabilities. Codes and
scales that the publisher leaves to the machine are left out, and counted with the reason.
"""

import inspect
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

from formats_numpy import E2M1, E4M3, decode_half, sign_bit_of, split_at_grid
from oracle_inputs import elementwise_sources, sources
from recipes_numpy import RECIPES as PUBLISHED
from recipes_packages import PACKAGE_RECIPES

RECIPES = PUBLISHED | PACKAGE_RECIPES

SEED = 20250929
BYTE_TYPES = ("U8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F6_E2M3", "F6_E3M2", "F4")
DTYPES = {"F32": np.float32, "BF16": np.uint16, "F16": np.float16, "U16": np.uint16, "F64": np.float64, "I32": np.int32}


# --------------------------------------------------------------------------------------------------------------- files


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
    """name -> (dtype name, shape, flat array of numbers or bytes), and the metadata."""
    data = pathlib.Path(path).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + at for at in entry["data_offsets"])
        dtype = np.uint8 if entry["dtype"] in BYTE_TYPES else DTYPES[entry["dtype"]]
        tensors[name] = (entry["dtype"], tuple(entry["shape"]), np.frombuffer(data[begin:end], dtype))
    return tensors, metadata


def values_of(dtype, array):
    """The numbers of a source tensor as the recipe's input, a matrix: float32, or the array's own type if wider."""
    if dtype == "BF16":
        array = decode_half(array, 7, 8)
    elif dtype == "F16":
        array = decode_half(array.view(np.uint16), 10, 5)
    return array.reshape(-1, array.shape[-1] if array.ndim else 1)


def codes_of(stored, count):
    """One code per element, from codes stored one, two or four-in-three to a byte, or as 16 bits."""
    _, _, array = stored
    if array.size == count:
        return array.view(np.uint16 if array.itemsize == 2 else np.uint8)
    if array.size * 2 == count:
        return np.stack([array & 15, array >> 4], 1).reshape(-1)
    bits = np.unpackbits(array, bitorder="little").reshape(-1, 6)
    return (bits << np.arange(6, dtype=np.uint8)).sum(1, dtype=np.uint8)


# ---------------------------------------------------------------------------------------------------------- comparison


class Report:
    def __init__(self):
        self.failures = 0
        self.compared = 0
        self.left_out = 0

    def fail(self, what):
        self.failures += 1
        print(f"FAIL {what}", flush=True)

    def compare(self, what, expected, got, x=None, left_out=False):
        """As bits; NaNs of FP32 are alike, and anything goes where left_out is."""
        expected, got = np.atleast_1d(expected).reshape(-1), np.atleast_1d(got).reshape(-1)
        self.compared += expected.size
        if expected.shape != got.shape or expected.dtype != got.dtype:
            self.fail(f"{what}: {got.size} of {got.dtype}, expected {expected.size} of {expected.dtype}")
            return
        same = expected == got
        if expected.dtype == np.float32:
            both_nan = np.isnan(expected) & np.isnan(got)
            expected, got = expected.view(np.uint32), got.view(np.uint32)
            same = (expected == got) | both_nan
        differs = np.flatnonzero(~(same | left_out))
        if len(differs) == 0:
            return
        self.fail(f"{what}: {len(differs)} of {expected.size} differ")
        for i in differs[:5]:
            source = "" if x is None else f", input {float(x[i]):.9g} = 0x{int(np.float32(x[i]).view(np.uint32)):08x}"
            print(f"  [{i}] expected 0x{int(expected[i]):x}, got 0x{int(got[i]):x}{source}")

    def compare_random(self, what, wanted, codes, table):
        """Each code is next to its number, and of those away from zero there are as many as fractions say (5 sigma)."""
        self.compared += codes.size
        ordinary = np.isfinite(wanted)
        below, fraction = split_at_grid(wanted[ordinary], table)
        away = (codes[ordinary] & (sign_bit_of(table) - 1)).astype(np.int64) - below
        wrong = (away < 0) | (away > 1) | ((away == 1) & (fraction == 0))
        if wrong.any():
            i = np.flatnonzero(wrong)[0]
            self.fail(f"{what}: {wrong.sum()} are no neighbours, first {wanted[ordinary][i]} = {codes[ordinary][i]:#x}")
        spread = np.sqrt((fraction * (1 - fraction)).sum())
        z = (away - fraction).sum() / spread if spread > 0 else 0
        if abs(z) > 5:
            self.fail(f"{what}: {away.sum()} went away from zero, {fraction.sum():.1f} expected, z = {z:.1f}")


def scales_as_stored(scales, stored):
    """FP32 scales that are powers of two may be stored as E8M0."""
    dtype, _, _ = stored
    if scales.dtype == np.float32 and dtype == "F8_E8M0":
        return (scales.view(np.uint32) >> 23).astype(np.uint8)
    return scales


WORD_SEED = 2**40 + 7


def program_words(stream_name, count):
    """lib/philox.h: word i is lane i % 4 of block i // 4 of the stream that a name's 64-bit FNV-1a (RFC 9923) is."""
    stream = 0xCBF29CE484222325
    for byte in stream_name.encode():
        stream = (stream ^ byte) * 0x100000001B3 % 2**64
    block = np.arange(-(-count // 4), dtype=np.uint64)
    low = np.uint64(2**32 - 1)
    k0, k1 = WORD_SEED % 2**32, WORD_SEED >> 32
    c0, c1 = block & low, block >> np.uint64(32)
    c2, c3 = np.full_like(block, stream % 2**32), np.full_like(block, stream >> 32)
    for _ in range(10):
        first, second = np.uint64(0xD2511F53) * c0, np.uint64(0xCD9E8D57) * c2
        c0, c1, c2, c3 = ((second >> np.uint64(32)) ^ c1 ^ np.uint64(k0), second & low,
                          (first >> np.uint64(32)) ^ c3 ^ np.uint64(k1), first & low)
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return np.stack([c0, c1, c2, c3], 1).reshape(-1)[:count].astype(np.uint32)


def check_scale_shape(report, what, recipe, shape, stored):
    rows, columns = recipe.block
    expected = (-(-shape[0] // (rows or shape[0])), -(-shape[1] // (columns or shape[1])))
    if stored[1] != expected:
        report.fail(f"{what}: shape {list(stored[1])}, expected {list(expected)}")


def check_random_part(report, what, recipe, x, parts, name):
    """The part that is rounded at random, by what any random words must give."""
    part, wanted = recipe.stochastic(x)
    stored = parts[f"{name}.{part}"]
    if part == "codes":
        report.compare_random(f"{what} codes", wanted, codes_of(stored, x.size), E2M1)
    else:
        report.compare_random(f"{what} scales", wanted, stored[2], E4M3)


def check_tensor(report, recipe_name, name, source, parts, dequantized, amax):
    recipe, what = RECIPES[recipe_name], f"{recipe_name} {name}"
    x = values_of(*source)
    arguments = {} if amax is None else {"amax": np.float32(amax)}
    with np.errstate(all="ignore"):
        if recipe.stochastic:
            part, wanted = recipe.stochastic(x)
            arguments["words"] = program_words(name + (".scales" if part == "scales" else ""), np.size(wanted))
        want = recipe.quantize(x, **arguments)
        got_codes = codes_of(parts[f"{name}.codes"], x.size)
        if recipe.stochastic:
            check_random_part(report, what, recipe, x, parts, name)
        report.compare(f"{what} codes", want.codes, got_codes, x.reshape(-1), want.open_codes)
        report.left_out += np.sum(want.open_codes) + np.sum(want.open_scales)
        for part in ("scales", "global_scale", "amax"):
            value, stored = getattr(want, part), parts.get(f"{name}.{part}")
            if (value is None) != (stored is None):
                report.fail(f"{what}: {part} is {'missing' if stored is None else 'not of this recipe'}")
            elif value is not None:
                value = scales_as_stored(value, stored) if part == "scales" else np.float32(value)
                left_out = want.open_scales if part == "scales" else False
                report.compare(f"{what} {part}", value, stored[2], left_out=left_out)
        if want.scales is not None and source[1].ndim == 2 and x.size:
            check_scale_shape(report, f"{what} scales", recipe, x.shape, parts[f"{name}.scales"])
        back = recipe.dequantize(want, x.shape)
    dtype, shape, got = dequantized[name]
    if dtype != "F32" or shape != source[1].shape:
        report.fail(f"{what}: dequantized to {dtype} {shape}, expected F32 {source[1].shape}")
    back = np.asarray(back, np.float32)
    report.compare(f"{what} values", back, got, x.reshape(-1), want.open_codes & ~np.isnan(back))


def run(arguments):
    """The program; what it said, where it failed."""
    process = subprocess.run(arguments, capture_output=True, text=True)
    return None if process.returncode == 0 else process.stderr.strip()


def check_file(report, halfulp, folder, name, tensors, options=(), amax=None):
    source, codes, values = (folder / file for file in ("x.safetensors", "q.safetensors", "y.safetensors"))
    write_safetensors(source, tensors)
    seed = ["--seed", str(WORD_SEED)] if RECIPES[name].stochastic else []
    error = run([halfulp, "quantize", source, "-r", name, "-o", codes, "--progress", "none", *seed, *options])
    error = error or run([halfulp, "dequantize", codes, "-o", values, "--progress", "none"])
    if error:
        report.fail(f"{name}: {error}")
        return
    quantized, metadata = read_safetensors(codes)
    dequantized, _ = read_safetensors(values)
    if metadata["recipe"] != name:
        report.fail(f"{name}: metadata says {metadata['recipe']}")
    for tensor, stored in tensors.items():
        parts = {key: value for key, value in quantized.items() if key.rsplit(".", 1)[0] == tensor}
        check_tensor(report, name, tensor, stored, parts, dequantized, amax)


def check_recipe(report, halfulp, folder, name, seed):
    recipe = RECIPES[name]
    rng = np.random.Generator(np.random.Philox(key=seed))
    columns = max(recipe.block[1], recipe.columns, 32)
    tensors = sources(rng, recipe.block, columns)
    if name in ("bf16", "f16"):
        tensors |= elementwise_sources(rng)
    check_file(report, halfulp, folder, name, tensors)
    if "amax" in inspect.signature(recipe.quantize).parameters and not recipe.stochastic:
        few = {key: tensors[key] for key in ("normal_bf16", "scale_underflow", "with_nan", "all_f16", "zero")}
        for amax in (0.015625, 3, 1e20):  # far below and far above what is there: scales over- and underflow
            check_file(report, halfulp, folder, name, few, ["--amax", str(amax)], amax)
    return sum(array.size for _, array in tensors.values())


def main():
    halfulp, only = sys.argv[1], sys.argv[2:]
    listing = subprocess.run([halfulp, "formats", "--json"], check=True, capture_output=True, text=True).stdout
    known = [row["name"] for row in json.loads(listing)["recipes"]]
    report, skipped = Report(), []
    for number, name in enumerate(RECIPES):
        if only and name not in only:
            continue
        if name not in known:
            skipped.append(name)
            continue
        before, left_out = report.compared, report.left_out
        with tempfile.TemporaryDirectory() as folder:
            elements = check_recipe(report, halfulp, pathlib.Path(folder), name, SEED + number)
        print(f"{name}: {elements} elements, {report.compared - before} values compared", flush=True)
        if report.left_out > left_out:
            print(f"  LEFT OUT {report.left_out - left_out} of them: {RECIPES[name].machine_made}", flush=True)
    for name in skipped:
        print(f"SKIPPED {name}: the program does not know it")
    others = sorted(set(known) - set(RECIPES))
    print(f"not held against NumPy: {', '.join(others) or 'none'}")
    print(f"{len(skipped)} skipped, {report.failures} differences")
    return 1 if report.failures else 0


if __name__ == "__main__":
    sys.exit(main())
