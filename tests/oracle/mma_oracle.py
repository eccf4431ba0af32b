"""mma_oracle.py HALFULP GOLDEN: matrix products of the program against integers of any size, bit by bit.

Operands are what `halfulp quantize` writes, codes and scales replaced by harder ones where a case says so, and values
under the rows of matrix instructions without scales. Everything here is written from descriptions of the instructions:
Python's integers hold every product, and a result is rounded once, from the exact sum of what the cut leaves. The
functions are held to the probes of tests/golden first. What differs is printed with its bits; the exit status is 1.
"""

import json
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

# ------------------------------------------------------------------------------------------------------------- formats

# exponent bits, mantissa bits, bias, specials: "ieee" (Inf and NaN), "nan" (all ones), "none"
FORMATS = {
    "e2m1": (2, 1, 1, "none"),
    "e2m3": (2, 3, 1, "none"),
    "e3m2": (3, 2, 3, "none"),
    "e4m3": (4, 3, 7, "nan"),
    "e5m2": (5, 2, 15, "ieee"),
    "f16": (5, 10, 15, "ieee"),
    "bf16": (8, 7, 127, "ieee"),
    "tf32": (8, 10, 127, "ieee"),
    "f32": (8, 23, 127, "ieee"),
}

NAN, INF, NUMBER = "nan", "inf", "number"


class Term:
    """(-1)^negative * integer * 2^lowest; `exponent` is what it is aligned by."""

    def __init__(self, kind, negative, integer=0, lowest=0, exponent=0):
        self.kind, self.negative, self.integer, self.lowest, self.exponent = kind, negative, integer, lowest, exponent


def term_of(name, code):
    exponent_bits, mantissa_bits, bias, specials = FORMATS[name]
    negative = bool(code >> (exponent_bits + mantissa_bits) & 1)
    field = code >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = code & ((1 << mantissa_bits) - 1)
    ones = field == (1 << exponent_bits) - 1
    if specials == "nan" and ones and mantissa == (1 << mantissa_bits) - 1:
        return Term(NAN, negative)
    if specials == "ieee" and ones:
        return Term(NAN if mantissa else INF, negative)
    exponent = (field or 1) - bias
    integer = mantissa | (1 << mantissa_bits if field else 0)
    return Term(NUMBER, negative, integer, exponent - mantissa_bits, exponent)


def widened_to_f16(term):
    """FP8 as F16 has it, where its subnormals are normal numbers."""
    if term.kind == NUMBER and term.integer:
        term.exponent = max(term.integer.bit_length() - 1 + term.lowest, -14)
    return term


def times(x, y):
    negative = x.negative != y.negative
    if x.kind == NUMBER and y.kind == NUMBER:
        return Term(NUMBER, negative, x.integer * y.integer, x.lowest + y.lowest, x.exponent + y.exponent)
    zero = (x.kind == NUMBER and x.integer == 0) or (y.kind == NUMBER and y.integer == 0)
    return Term(NAN if NAN in (x.kind, y.kind) or zero else INF, negative)


def scale_of(name, byte):
    """(is NaN, integer, lowest, exponent)"""
    if name == "e8m0":
        return byte == 255, 1, byte - 127, byte - 127
    byte &= 0x7F
    field, mantissa = byte >> 3, byte & 7
    return byte == 0x7F, mantissa | (8 if field else 0), (field or 1) - 10, (field or 1) - 7


# ------------------------------------------------------------------------------------------------------------ roundings


def rounded(value, lowest, exponent_bits, mantissa_bits, nearest):
    """The code of value * 2^lowest, `value` a Python integer; zero is +0, what is too large Inf."""
    if value == 0:
        return 0
    sign, magnitude = int(value < 0) << (exponent_bits + mantissa_bits), abs(value)
    bias = (1 << (exponent_bits - 1)) - 1
    quantum = max(magnitude.bit_length() - 1 + lowest, 1 - bias) - mantissa_bits
    shift = quantum - lowest
    kept = magnitude >> shift if shift > 0 else magnitude << -shift
    if nearest and shift > 0:
        rest, half = magnitude - (kept << shift), 1 << (shift - 1)
        kept += rest > half or (rest == half and kept & 1)
    code = (quantum + mantissa_bits + bias - 1 << mantissa_bits) + kept
    infinite = ((1 << exponent_bits) - 1) << mantissa_bits
    code = min(code, infinite)
    return sign | code if code else 0


def toward_zero_f32(value, lowest):
    return rounded(value, lowest, 8, 23, nearest=False)


def toward_zero_e8m13(value, lowest):
    code = rounded(value, lowest, 8, 13, nearest=False) << 10
    return (code & 0x7FFFFFFF) | (code >> 33 << 31) | (int(value < 0) << 31 if code else 0)


def nearest_f16(value, lowest):
    return rounded(value, lowest, 5, 10, nearest=True)


def integer_of(bits):
    term = term_of("f32", bits)
    return (-term.integer if term.negative else term.integer), term.lowest


def is_finite(bits):
    return bits >> 23 & 255 != 255


def as_float(bits):
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def add_f32(x, y):
    """Rounded to nearest even; NaN is all ones."""
    if not (is_finite(x) and is_finite(y)):
        total = as_float(x) + as_float(y)
        return 0x7FFFFFFF if total != total else struct.unpack("<I", struct.pack("<f", total))[0]
    (a, i), (b, j) = integer_of(x), integer_of(y)
    low = min(i, j)
    total = (a << (i - low)) + (b << (j - low))
    if total == 0:
        return 0x80000000 if x == y == 0x80000000 else 0
    return rounded(total, low, 8, 23, nearest=True)


def add_f16(x, y):
    terms = [term_of("f16", x), term_of("f16", y)]
    infinities = {term.negative for term in terms if term.kind == INF}
    if any(term.kind == NAN for term in terms) or len(infinities) == 2:
        return 0x7FFF
    if infinities:
        return 0x7C00 | infinities.pop() << 15
    low = min(term.lowest for term in terms)
    total = sum((-1 if term.negative else 1) * (term.integer << (term.lowest - low)) for term in terms)
    return nearest_f16(total, low) if total else (0x8000 if x == y == 0x8000 else 0)


def multiply_f32(x, y):
    if not (is_finite(x) and is_finite(y)):
        product = as_float(x) * as_float(y)
        return 0x7FFFFFFF if product != product else struct.unpack("<I", struct.pack("<f", product))[0]
    (a, i), (b, j) = integer_of(x), integer_of(y)
    code = rounded(a * b, i + j, 8, 23, nearest=True)
    return code | ((x ^ y) & 0x80000000)


# ---------------------------------------------------------------------------------------------------------------- sums


def add_cut(terms, kept_bits, floor, convert, exponents=()):
    """One block: `terms` with the accumulator among them; `exponents` count whatever their terms are."""
    infinities = {term.negative for term in terms if term.kind == INF}
    canonical = 0x7FFF if convert is nearest_f16 else 0x7FFFFFFF
    if any(term.kind == NAN for term in terms) or len(infinities) == 2:
        return canonical
    if infinities:
        inf = 0x7C00 if convert is nearest_f16 else 0x7F800000
        return inf | (infinities.pop() << (15 if convert is nearest_f16 else 31))
    largest = max([floor, *exponents, *(term.exponent for term in terms if term.integer)])
    quantum, total = largest - kept_bits, 0
    for term in terms:
        shift = term.lowest - quantum
        units = term.integer << shift if shift >= 0 else term.integer >> -shift
        total += -units if term.negative else units
    return convert(total, quantum)


class Row:
    def __init__(self, block, kept_bits, floor, convert=toward_zero_f32, promote=0, fp8_as_f16=False):
        self.block, self.kept_bits, self.floor, self.convert = block, kept_bits, floor, convert
        self.promote, self.fp8_as_f16 = promote, fp8_as_f16

    def chain(self, products, c):
        form = "f16" if self.convert is nearest_f16 else "f32"
        for first in range(0, len(products), self.block):
            block = products[first : first + self.block]
            if self.fp8_as_f16:
                total = 0
                for pair in (0, 1):
                    part = [p for k, p in enumerate(block) if k % 4 // 2 == pair]
                    total = add_cut([term_of(form, total), *part], self.kept_bits, self.floor, self.convert)
                c = add_f16(total, c) if form == "f16" else add_f32(total, c)
            else:
                c = add_cut([term_of(form, c), *block], self.kept_bits, self.floor, self.convert)
        return c

    def dot(self, products, c):
        if not self.promote:
            return self.chain(products, c)
        total = 0
        for first in range(0, len(products), self.promote):
            total = add_f32(total, self.chain(products[first : first + self.promote], 0))
        return add_f32(total, c)


ROWS = {
    "sm80.hmma.f32": Row(8, 24, -132),
    "sm90.hmma.f32": Row(16, 25, -133),
    "sm90.hmma.f16": Row(16, 25, -21, nearest_f16),
    "sm90.hmma_tf32.f32": Row(8, 25, -133),
    "sm90.qgmma.f32": Row(32, 13, -133, toward_zero_e8m13),
    "sm90.qgmma.f16": Row(32, 13, -133, nearest_f16),
    "sm90.mma_sync_fp8.f32": Row(32, 25, -133, fp8_as_f16=True),
    "sm90.mma_sync_fp8.f16": Row(32, 25, -21, nearest_f16, fp8_as_f16=True),
    "cutlass.sm90.fp8": Row(32, 13, -133, toward_zero_e8m13, promote=128),
    "sm100.utcqmma.f32": Row(32, 25, -133),
}


def scaled_products(form, a, b, scale_form, scales_a, scales_b, width):
    """ST-FDPA: the scales are exponents of the products."""
    products = []
    for k, (x, y) in enumerate(zip(a, b)):
        term = times(term_of(form[0], x), term_of(form[1], y))
        nan_a, _, low_a, exponent_a = scale_of(scale_form, scales_a[k // width])
        nan_b, _, low_b, exponent_b = scale_of(scale_form, scales_b[k // width])
        if nan_a or nan_b:
            term.kind = NAN
        term.lowest += low_a + low_b
        term.exponent += exponent_a + exponent_b
        products.append(term)
    return products


def dot_mx(form, a, b, scale_form, scales_a, scales_b, width, c):
    return Row(32, 25, -133).chain(scaled_products(form, a, b, scale_form, scales_a, scales_b, width), c)


def dot_fp4(a, b, scale_form, scales_a, scales_b, width, c):
    """GST-FDPA: groups of 16 added exactly, aligned by their scales' exponents."""
    for first in range(0, len(a), 64):
        terms, exponents = [term_of("f32", c)], []
        for group in range(first, min(first + 64, len(a)), 16):
            total, any_product = 0, False
            for k in range(group, group + 16):
                product = times(term_of("e2m1", a[k]), term_of("e2m1", b[k]))
                halves = product.integer << (product.lowest + 2)
                total += -halves if product.negative else halves
                any_product = any_product or halves != 0
            nan_a, integer_a, low_a, exponent_a = scale_of(scale_form, scales_a[group // width])
            nan_b, integer_b, low_b, exponent_b = scale_of(scale_form, scales_b[group // width])
            scale = integer_a * integer_b
            exponent = exponent_a + exponent_b
            terms.append(Term(NAN if nan_a or nan_b else NUMBER, total < 0, abs(total) * scale, low_a + low_b - 2, exponent))
            if any_product and scale:
                exponents.append(exponent)
        c = add_cut(terms, 35, -139, toward_zero_f32, exponents)
    return c


# --------------------------------------------------------------------------------------------------------------- files


def write_npy(path, descr, shape, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    length = (10 + len(header) + 1 + 63) // 64 * 64 - 10
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", length) + header.ljust(length - 1).encode() + b"\n" + data)


def write_floats(path, rows):
    flat = [x for row in rows for x in row]
    write_npy(path, "<f4", (len(rows), len(rows[0])), struct.pack(f"<{len(flat)}f", *flat))


def read_words(path):
    data = path.read_bytes()
    begin = 10 + struct.unpack("<H", data[8:10])[0]
    size = 2 if b"'<f2'" in data[:begin] else 4
    return [int.from_bytes(data[at : at + size], "little") for at in range(begin, len(data), size)]


class Quantized:
    """A file of `halfulp quantize`, whose bytes can be replaced."""

    def __init__(self, path, name):
        self.path, self.data = path, bytearray(path.read_bytes())
        length = int.from_bytes(self.data[:8], "little")
        self.header = json.loads(self.data[8 : 8 + length])
        self.begin, self.name = 8 + length, name

    def span(self, part):
        first, end = self.header[f"{self.name}.{part}"]["data_offsets"]
        return slice(self.begin + first, self.begin + end)

    def bytes(self, part):
        return list(self.data[self.span(part)])

    def replace(self, part, values):
        self.data[self.span(part)] = bytes(values)
        self.path.write_bytes(self.data)

    def factor(self):
        if f"{self.name}.global_scale" not in self.header:
            return None
        return int.from_bytes(self.data[self.span("global_scale")], "little")


# --------------------------------------------------------------------------------------------------------------- cases


def floats(rng, kind, rows, k):
    def one():
        if kind == "zeros" and rng.random() < 0.7:
            return 0.0
        if kind == "wide":
            return rng.gauss(0, 1) * 2.0 ** rng.randint(-60, 60)
        if kind == "tiny":
            return rng.gauss(0, 1) * 2.0 ** rng.randint(-140, -120)
        if kind == "large":
            return rng.gauss(0, 1) * 2.0 ** 120
        return rng.gauss(0, 1)

    return [[struct.unpack("<f", struct.pack("<f", one()))[0] for _ in range(k)] for _ in range(rows)]


SCALE_BYTES = {"ue4m3": (0, 1, 7, 8, 0x38, 0x7E, 0x7F), "e8m0": (0, 1, 100, 127, 150, 254, 255)}


def harder_scales(rng, kind, form, count):
    if kind == "any scales":
        return [rng.randrange(128 if form == "ue4m3" else 256) for _ in range(count)]
    if kind == "numbers":
        return [rng.choice(SCALE_BYTES[form][:-1]) for _ in range(count)]
    if kind == "subnormal":
        return [rng.randint(0, 3) if form == "ue4m3" else rng.randint(52, 62) for _ in range(count)]
    if kind == "overflow":
        return [0x7E if form == "ue4m3" else rng.randint(185, 200) for _ in range(count)]
    return [rng.choice(SCALE_BYTES[form]) for _ in range(count)]


def cancelling(rng, codes, bits, k):
    """The second half of each row is the first's negative, but for a few."""
    out = list(codes)
    for row in range(0, len(out), k):
        for i in range(k // 2):
            if rng.random() < 0.9:
                out[row + k // 2 + i] = out[row + i] ^ (1 << (bits - 1))
    return out


RECIPES = {
    # recipe: accumulator, format, bits of a code in a byte, scale format, elements of a scale
    "nvfp4/te": ("sm100.omma.f32", "e2m1", 4, "ue4m3", 16),
    "nvfp4/te-4over6-mse": ("sm100.omma.f32", "e2m1", 4, "ue4m3", 16),
    "mxfp4/ocp": ("sm100.omma.f32", "e2m1", 4, "e8m0", 32),
    "mxfp8/te": ("sm100.utcqmma_mx.f32", "e4m3", 8, "e8m0", 32),
    "mxfp8/te-e5m2": ("sm100.utcqmma_mx.f32", "e5m2", 8, "e8m0", 32),
    "mxfp6/ocp-e2m3": ("sm100.utcqmma_mx.f32", "e2m3", 8, "e8m0", 32),
}
SOURCES = ("normal", "zeros", "wide", "tiny", "large")
HARDER = ("any scales", "extreme scales", "numbers", "subnormal", "overflow", "any codes", "cancelling")


class Campaign:
    def __init__(self, halfulp, folder):
        self.halfulp, self.folder = halfulp, pathlib.Path(folder)
        self.compared = self.failures = 0

    def run(self, *words):
        done = subprocess.run([self.halfulp, *map(str, words)], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(map(str, words))}: exit status {done.returncode}: {done.stderr}")

    def compare(self, what, expected, got):
        self.compared += len(expected)
        if len(expected) != len(got):
            expected, got = [len(expected)], [len(got)]
        wrong = [i for i in range(len(expected)) if expected[i] != got[i]]
        if not wrong:
            return
        self.failures += 1
        print(f"FAIL {what}: {len(wrong)} of {len(expected)} differ")
        for i in wrong[:5]:
            print(f"  [{i}] expected {expected[i]:08x}, got {got[i]:08x}")

    def operand(self, rng, name, recipe, kind, rows, k):
        path, out = self.folder / f"{name}.npy", self.folder / f"{name}.q"
        write_floats(path, floats(rng, kind if kind in SOURCES else "normal", rows, k))
        self.run("quantize", path, "-r", recipe, "-o", out, "--progress", "none")
        file, (_, form, bits, scale_form, _) = Quantized(out, name), RECIPES[recipe]
        if kind in HARDER[:5]:
            file.replace("scales", harder_scales(rng, kind, scale_form, len(file.bytes("scales"))))
        stored = file.bytes("codes")
        codes = [n for byte in stored for n in (byte & 15, byte >> 4)] if bits == 4 else stored
        width = sum(FORMATS[form][:2]) + 1
        if kind == "any codes":
            codes = [rng.randrange(1 << width) for _ in codes]
        if kind == "cancelling" and name == "a":
            codes = cancelling(rng, codes, width, k)
        if kind == "cancelling" and name == "b":
            codes = [codes[i - k // 2] if i % k >= k // 2 else code for i, code in enumerate(codes)]
        packed = [lo | hi << 4 for lo, hi in zip(codes[::2], codes[1::2])] if bits == 4 else codes
        file.replace("codes", packed)
        return file, codes

    def block_scaled(self, recipe, kind, k, seed, with_c):
        rng = random.Random(f"{recipe} {kind} {k} {seed}")
        accumulator, form, _, scale_form, width = RECIPES[recipe]
        m, n = 5, 4
        (a, codes_a), (b, codes_b) = (self.operand(rng, name, recipe, kind, rows, k) for name, rows in (("a", m), ("b", n)))
        c, options = [0] * (m * n), []
        if with_c:
            c = [rng.getrandbits(32) & 0xC3FFFFFF for _ in c]
            write_npy(self.folder / "c.npy", "<f4", (m, n), struct.pack(f"<{m * n}I", *c))
            options = ["-c", self.folder / "c.npy"]
        self.run("mma", a.path, b.path, "-a", accumulator, "-o", self.folder / "d.npy", "--compare", 0, *options)
        alpha = None if a.factor() is None else multiply_f32(a.factor(), b.factor())
        scales_a, scales_b, blocks = a.bytes("scales"), b.bytes("scales"), k // width
        expected = []
        for i in range(m):
            for j in range(n):
                x, y = codes_a[i * k : (i + 1) * k], codes_b[j * k : (j + 1) * k]
                s, t = scales_a[i * blocks : (i + 1) * blocks], scales_b[j * blocks : (j + 1) * blocks]
                start = c[i * n + j]
                d = (dot_fp4(x, y, scale_form, s, t, width, start) if accumulator == "sm100.omma.f32"
                     else dot_mx((form, form), x, y, scale_form, s, t, width, start))
                expected.append(d if alpha is None else multiply_f32(alpha, d))
        self.compare(f"{recipe}, {kind}, K = {k}{', with c' if with_c else ''}", expected, read_words(self.folder / "d.npy"))

    def plain(self, accumulator, forms, kind, k, seed):
        rng = random.Random(f"{accumulator} {forms} {kind} {k} {seed}")
        row, m, n = ROWS[accumulator], 5, 4
        codes = [[plain_code(rng, kind, form, i % k, k) for i in range(rows * k)] for form, rows in zip(forms, (m, n))]
        if kind == "cancelling":
            codes[0] = cancelling(rng, codes[0], 1 + sum(FORMATS[forms[0]][:2]), k)
            codes[1] = [codes[1][i - k // 2] if i % k >= k // 2 else code for i, code in enumerate(codes[1])]
        for name, form, values in zip("ab", forms, codes):
            write_npy(self.folder / f"{name}.npy", "<f4", (len(values) // k, k),
                      struct.pack(f"<{len(values)}f", *(float_of(form, code) for code in values)))
        half = row.convert is nearest_f16
        c = [rng.getrandbits(16) & 0xBFFF if half else rng.getrandbits(32) & 0xC3FFFFFF for _ in range(m * n)]
        write_npy(self.folder / "c.npy", "<f2" if half else "<f4", (m, n), struct.pack(f"<{m * n}{'H' if half else 'I'}", *c))
        self.run("mma", self.folder / "a.npy", self.folder / "b.npy", "-a", accumulator, "--a-format", forms[0],
                 "--b-format", forms[1], "-c", self.folder / "c.npy", "-o", self.folder / "d.npy", "--compare", 0)
        expected = []
        for i in range(m):
            for j in range(n):
                pairs = [(term_of(forms[0], codes[0][i * k + at]), term_of(forms[1], codes[1][j * k + at]))
                         for at in range(k)]
                if row.fp8_as_f16:
                    pairs = [(widened_to_f16(x), widened_to_f16(y)) for x, y in pairs]
                products = [times(x, y) for x, y in pairs]
                expected.append(row.dot(products, c[i * n + j]))
        self.compare(f"{accumulator}, {forms}, {kind}, K = {k}", expected, read_words(self.folder / "d.npy"))


def float_of(form, code):
    term = term_of(form, code)
    if term.kind == NUMBER:
        value = term.integer * 2.0 ** term.lowest
    else:
        value = float("nan" if term.kind == NAN else "inf")
    return -value if term.negative else value


def plain_code(rng, kind, form, k, length):
    exponent_bits, mantissa_bits, bias, _ = FORMATS[form]
    sign = rng.getrandbits(1) << (exponent_bits + mantissa_bits)
    mantissa, most = rng.getrandbits(mantissa_bits), (1 << exponent_bits) - 2
    if kind == "codes":
        return rng.getrandbits(1 + exponent_bits + mantissa_bits)
    if kind == "zeros" and rng.random() < 0.7:
        return sign
    if kind == "subnormal":
        return sign | mantissa
    if kind == "largest":
        return sign | (most - rng.randint(0, 1)) << mantissa_bits | mantissa
    if kind == "wide":
        return sign | rng.randint(0, most) << mantissa_bits | mantissa
    return sign | min(max(bias + rng.randint(-4, 3), 0), most) << mantissa_bits | mantissa


KINDS = ("narrow", "codes", "zeros", "subnormal", "largest", "wide", "cancelling")
PLAIN = [("sm80.hmma.f32", ("f16", "f16")), ("sm90.hmma.f32", ("bf16", "bf16")), ("sm90.hmma.f32", ("f16", "f16")),
         ("sm90.hmma.f16", ("f16", "f16")), ("sm90.hmma_tf32.f32", ("tf32", "tf32")), ("sm90.qgmma.f32", ("e4m3", "e4m3")),
         ("sm90.qgmma.f32", ("e5m2", "e4m3")), ("sm90.qgmma.f16", ("e4m3", "e5m2")),
         ("sm90.mma_sync_fp8.f32", ("e4m3", "e4m3")), ("sm90.mma_sync_fp8.f32", ("e5m2", "e5m2")),
         ("sm90.mma_sync_fp8.f16", ("e4m3", "e5m2")),
         ("cutlass.sm90.fp8", ("e4m3", "e4m3")), ("sm100.utcqmma.f32", ("e3m2", "e2m1"))]


def check_probes(golden):
    """The functions above against the probes' answers."""
    count = 0
    for line in (golden.parent.parent / "emulation/recordings/probes_blockscaled.tsv").read_text().splitlines():
        if line.startswith("#"):
            continue
        kind, name, a, b, scales, c, wanted = line.split("\t")[:7]
        scale_form = "e8m0" if kind == "MX8" or "ue8m0" in scales else "ue4m3"
        words = dict(word.split("=") for word in scales.split() if "=" in word)
        s, t = ([int(x, 16) for x in words[key].split(",")] for key in ("sa", "sb"))
        codes = [[int(x, 16) for x in text.replace(",", " ").split()] for text in (a, b)]
        if kind != "MX8" and len(codes[0]) == 1:
            codes = [[int(x, 16) for x in text] for text in (a, b)]
        got = (dot_mx(("e4m3", "e4m3"), *codes, scale_form, s, t, 32, int(c, 16)) if kind == "MX8"
               else dot_fp4(*codes, scale_form, s, t, 16, int(c, 16)))
        if got != int(wanted, 16):
            sys.exit(f"the oracle is wrong: probe {name}: {got:08x}, not {wanted}")
        count += 1
    return count


def main():
    halfulp, golden = sys.argv[1], pathlib.Path(sys.argv[2])
    probes = check_probes(golden)
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(halfulp, folder)
        for recipe, (_, _, _, _, width) in RECIPES.items():
            for number, kind in enumerate(SOURCES + HARDER):
                for k in (width, 64, 208 if width == 16 else 160):
                    campaign.block_scaled(recipe, kind, k, number, with_c=number % 2 == 1)
        for accumulator, forms in PLAIN:
            for kind in KINDS:
                for k in (7, 64, 300):
                    campaign.plain(accumulator, forms, kind, k, 1)
    print(f"{probes} probes by the oracle; {campaign.compared} outputs compared, {campaign.failures} cases differ")
    sys.exit(campaign.failures != 0)


if __name__ == "__main__":
    main()
