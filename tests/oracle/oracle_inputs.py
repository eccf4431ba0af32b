"""Tensors that recipes_oracle.py feeds to a recipe: ordinary numbers, and every place where recipes are known to
part."""

import numpy as np

from formats_numpy import E2M1, E4M3, encode_half

ELEMENTS = 1 << 21  # of the random tensors of each recipe, in all


def from_bits(bits):
    return np.asarray(bits, np.uint32).view(np.float32)


def random_signs(rng, shape):
    return rng.choice(np.array([-1, 1], np.float32), shape)


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


def ties_under_a_scale(table, span):
    """Spans of elements whose largest is the format's maximum times a power of two, so that scales are exact and the
    others, midpoints of the format, are exact ties. 2688 somewhere makes NVFP4's tensor scale 1."""
    middle = np.append((table[1:] + table[:-1]) / 2, table)

    def make(rng, shape):
        spans = (shape[0], shape[1] // span)
        scale = np.ldexp(1.0, rng.integers(-6, 7, spans)).repeat(span, 1)
        x = near(rng, middle, shape) * scale
        first = np.arange(0, shape[1], span)
        x[:, first + rng.integers(0, span, len(first))] = (table[-1] * scale * random_signs(rng, shape))[:, first]
        x[0, 0] = 2688
        return x.astype(np.float32)

    return make


def amax_edges(rng, shape):
    """Each row's largest element sits at an edge of a scale rule; the row is otherwise smaller."""
    edges = [448, 464, 480, 512, 1.75, 1.8125, 1.9375, 2.0, 57344, 61440, 65504, 6, 7, 7.5, 28, 2688, 1, 1e-4,
             2.0**-126, 2.0**-133]
    powers = 2.0 ** rng.integers(-100, 100, shape[0])
    with np.errstate(over="ignore", under="ignore"):
        amax = (near(rng, edges, shape[:1]).astype(np.float64) * powers).astype(np.float32)
        x = amax[:, None] * rng.uniform(-1, 1, shape).astype(np.float32)
    x[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = amax
    return x


def log2_edges(rng, shape):
    """Each row's largest element is a format's largest, or 1, times a power of two, or up to 50 floats away: where a
    float log2 rounds to a whole number."""
    edges = np.array([1, 6, 7.5, 28, 448, 57344], np.float32)
    amax = rng.choice(edges, shape[0]) * (2.0 ** rng.integers(-110, 100, shape[0])).astype(np.float32)
    amax = from_bits((amax.view(np.uint32).astype(np.int64) + rng.integers(-50, 51, shape[0])).astype(np.uint32))
    x = amax[:, None] * rng.uniform(-1, 1, shape).astype(np.float32)
    first = np.arange(0, shape[1], 32)
    x[:, first + rng.integers(0, 32, len(first))] = amax[:, None]
    return x


def deviation_edges(rng, shape):
    """Rows of one magnitude, half of it negative, where 2.92247856 / 6 of the deviation is about a power of two."""
    power = 2.0 ** rng.integers(-30, 30, (shape[0], 1))
    magnitude = ((power - 1e-8) * 6 / 2.92247856).astype(np.float32).view(np.uint32).astype(np.int64)
    magnitude = from_bits((magnitude + rng.integers(-3, 4, (shape[0], 1))).astype(np.uint32))
    return magnitude * np.tile(np.array([1, -1], np.float32), shape[1] // 2)


def range_ends(rng, shape):
    """Rows near the largest and smallest magnitudes of float32, E8M0 and the scale chain."""
    exponents = rng.choice([127, 126, 120, 119, -118, -119, -120, -126, -127, -133, -140, -149], shape[0])
    x = rng.uniform(0.5, 2, shape) * np.ldexp(1.0, exponents)[:, None] * random_signs(rng, shape)
    return np.clip(x, -np.finfo(np.float32).max, np.finfo(np.float32).max).astype(np.float32)


def with_specials(rng, shape):
    x = rng.standard_normal(shape).astype(np.float32)
    specials = from_bits([0, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00000, 0x7F800001, 0xFFFFFFFF, 1,
                          0x80000001, 0x7F7FFFFF, 0xFF7FFFFF])
    rows = rng.integers(0, shape[0], max(shape[0] // 4, 1))
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


def whole_rows(rng, shape):
    """The same in spans of 128 and more, and any other number of its row's alone: tensors whose elements are all equal
    but for their signs."""
    row = rng.standard_normal((shape[0], 1)) * 2.0 ** rng.integers(-20, 20, (shape[0], 1))
    return (row * random_signs(rng, shape)).astype(np.float32)


def zero_and_nan_blocks(rng, shape):
    """Ordinary numbers, with whole blocks of either zero, of NaN, and of a few tiny numbers among zeros."""
    x = rng.standard_normal(shape).astype(np.float32)
    kind = rng.integers(0, 12, (shape[0], shape[1] // 16)).repeat(16, 1)
    x = np.where(kind == 0, 0, x)
    x = np.where(kind == 1, np.float32(-0.0), x)
    x = np.where(kind == 2, np.copysign(np.float32(0), x), x)
    x = np.where(kind == 3, np.float32(np.nan), x)
    return np.where((kind == 4) & (np.abs(x) < 1.5), x * np.float32(1e-30), x).astype(np.float32)


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


def finite_and_wide(rng, shape):
    """For recipes with a tensor scale, whose Inf makes every block alike."""
    with np.errstate(over="ignore"):
        return (rng.standard_normal(shape) * 2.0 ** rng.integers(-20, 20, (shape[0], 1))).astype(np.float32)


def constant(bits):
    return lambda _rng, shape: np.full(shape, from_bits([bits])[0])


# name -> (generator, share of ELEMENTS)
MAKERS = {
    "normal": (lambda rng, shape: rng.standard_normal(shape).astype(np.float32), 1 / 4),
    "any_bits": (any_bits, 1 / 8),
    "grid_and_ties": (grid_and_ties, 1 / 8),
    "fp4_ties": (ties_under_a_scale(E2M1, 16), 1 / 16),
    "fp8_ties": (ties_under_a_scale(E4M3, 128), 1 / 16),
    "amax_edges": (amax_edges, 1 / 8),
    "log2_edges": (log2_edges, 1 / 8),
    "deviation_edges": (deviation_edges, 1 / 16),
    "range_ends": (range_ends, 1 / 16),
    "with_specials": (with_specials, 1 / 32),
    "with_nan": (with_nan, 1 / 32),
    "zero_and_nan_blocks": (zero_and_nan_blocks, 1 / 32),
    "scale_underflow": (scale_underflow, 1 / 16),
    "subnormals": (subnormals, 1 / 32),
    "outliers": (outliers, 1 / 32),
    "wide": (finite_and_wide, 1 / 32),
    "whole_blocks": (whole_blocks, 1 / 64),
    "whole_rows": (whole_rows, 1 / 64),
    "zero": (constant(0), 1 / 1024),
    "negative_zero": (constant(0x80000000), 1 / 1024),
    "one": (constant(0x3F800000), 1 / 1024),
    "all_nan": (constant(0xFFC00001), 1 / 1024),
    "all_inf": (constant(0xFF800000), 1 / 1024),
    "smallest": (constant(1), 1 / 1024),
    "largest": (constant(0x7F7FFFFF), 1 / 1024),
}

# Largest magnitudes of a tensor where a scale over- or underflows, with the neighbours of those of NVFP4's chain.
AMAX_ENDS = from_bits([0x7F7FFFFF, 0x7F000000, 0x7E800000, 0x03AA2425, 0x05280000, 0x0527FFFF, 0x05280001, 0x08280000,
                       0x00800000, 0x007FFFFF, 0x00400000, 0x00000001, 0x00DFFFFF, 0x00E00000, 0x38D1B717, 0x38D1B718,
                       0x41000000, 0x45280000, 0x43E00000, 0x47600000])


def amax_ends(rng, shape):
    """A small tensor for each of AMAX_ENDS."""
    tensors = {}
    for i, amax in enumerate(AMAX_ENDS):
        with np.errstate(under="ignore"):
            x = (rng.uniform(-1, 1, shape) ** 3 * amax).astype(np.float32)
        x[0, rng.integers(0, shape[1])] = amax
        tensors[f"end{i:02}"] = ("F32", x)
    return tensors


def many_amaxes(rng, shape):
    """Small BF16 tensors, each with a largest magnitude of its own: formulas of the tensor scale that differ in their
    order of operations give other bytes for about one block in a thousand."""
    return {f"amax{i:03}": ("BF16", encode_half(rng.standard_normal(shape) * rng.uniform(1, 2), 7, 8))
            for i in range(128)}


def sources(rng, block, columns):
    """The float32 tensors, and 16-bit ones made of their upper halves. Shapes are whole blocks, rows a multiple of
    `columns` long."""
    rows = max(block[0], 1)
    tensors = {}
    for name, (make, share) in MAKERS.items():
        wanted = max(int(ELEMENTS * share) // 512, 1)
        tensors[name] = ("F32", make(rng, (-(-wanted // rows) * rows, 512)))
    for name in ("normal", "grid_and_ties", "fp4_ties", "amax_edges", "with_specials", "scale_underflow",
                 "zero_and_nan_blocks"):
        x = tensors[name][1][:512]
        tensors[name + "_bf16"] = ("BF16", encode_half(x, 7, 8))
        tensors[name + "_f16"] = ("F16", encode_half(x, 10, 5).view(np.float16))
    bits = np.arange(65536, dtype=np.uint16).reshape(-1, 512)
    tensors["all_bf16"] = ("BF16", bits)
    tensors["all_f16"] = ("F16", bits.view(np.float16))
    tensors |= many_amaxes(rng, (128, max(columns, 32)))
    tensors |= amax_ends(rng, (rows, max(columns, 64)))
    if rows == 1:
        tensors["vector"] = ("F32", rng.standard_normal(3 * columns).astype(np.float32))
        tensors["cube"] = ("F32", rng.standard_normal((3, 5, 2 * columns)).astype(np.float32))
    tensors["empty"] = ("F32", np.zeros((0, 2 * columns), np.float32))
    return tensors


def elementwise_sources(rng):
    """Doubles and integers, which the elementwise recipes round once."""
    x = rng.standard_normal((64, 511)) * 2.0 ** rng.integers(-160, 140, (64, 1))
    tie = 1 + np.ldexp(1.0, -8) * rng.integers(0, 256, (64, 511))
    near_tie = tie * (1 + rng.integers(-1, 2, (64, 511)) * 2.0**-52)
    return {"f64": ("F64", x), "f64_ties": ("F64", near_tie),
            "i32": ("I32", rng.integers(-(2**31), 2**31, (64, 33), np.int32)),
            "scalar": ("F32", np.array(1.00390625, np.float32))}
