#!/usr/bin/env python3
"""Writes inputs.safetensors: what publishers.py gives to every publisher's quantizer.

Each tensor is of one kind, named by it, and ends in its type. Needs numpy 2.4.6.
"""

import pathlib

import numpy as np

import tensor_file

FLT_MAX = np.float32(3.4028235e38)
E2M1_MIDPOINTS = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0]
# The largest value of each element format, and of E2M1 times E4M3.
LARGEST = [448.0, 57344.0, 6.0, 7.5, 28.0, 2688.0, 1536.0, 1.0]


def to_bf16(values):
    """Bits, rounded to nearest even; NaN stays NaN."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(values), (bits >> 16) | 0x40, rounded).astype(np.uint16)


def neighbour(values, steps):
    """`steps` floats away from positive values."""
    return (np.asarray(values, np.float32).view(np.int32) + np.asarray(steps, np.int32)).view(np.float32)


def blocks_with_amax(rng, amaxes, block, columns=128):
    """One block for each amax: the others are smaller, and the amax is at a random place with a random sign."""
    amaxes = np.resize(np.asarray(amaxes, np.float32), len(amaxes) + -len(amaxes) % (columns // block))
    values = (rng.uniform(-0.95, 0.95, (len(amaxes), block)) * amaxes[:, None].astype(np.float64)).astype(np.float32)
    place = rng.integers(0, block, len(amaxes))
    values[np.arange(len(amaxes)), place] = amaxes * rng.choice([-1, 1], len(amaxes)).astype(np.float32)
    return values.reshape(-1, columns)


def gauss(rng, rows):
    return rng.standard_normal((rows, 128)).astype(np.float32)


def heavy_tails(rng, rows):
    """Student's t of 2 degrees, times a power of two for each row."""
    return (rng.standard_t(2, (rows, 128)) * np.exp2(rng.integers(-6, 7, (rows, 1)))).astype(np.float32)


def equal_blocks(rng):
    """Every element of a block of 32 is the same."""
    values = rng.uniform(0.001, 3, (16, 4)).astype(np.float32) * rng.choice([-1, 1], (16, 4))
    return np.repeat(values, 32, axis=1)


def midpoints(exponent_bits, mantissa_bits, largest):
    """The midpoints of the neighbouring values of a format, up to its largest."""
    bias = 2 ** (exponent_bits - 1) - 1
    found = [2.0 ** (1 - bias - mantissa_bits) * (i + 0.5) for i in range(2**mantissa_bits)]
    for exponent in range(1 - bias, 40):
        step = 2.0 ** (exponent - mantissa_bits)
        found += [2.0**exponent + step * (i + 0.5) for i in range(2**mantissa_bits)]
    return [m for m in found if m < largest]


def ties(rng):
    """Values that lie between two codes once a scale that is a power of two has divided them.

    The tensor's amax is 2688, so that the outer scale of NVFP4 is 1.
    """
    formats = [(2, 1, 6.0), (4, 3, 448.0), (5, 2, 57344.0), (2, 3, 7.5), (3, 2, 28.0), (2, 1, 6.0)]
    rows = []
    for row in range(16):
        exponent_bits, mantissa_bits, largest = formats[row % len(formats)]
        for _ in range(4):
            scale = 2.0 ** rng.integers(-12, -5)
            block = rng.choice(midpoints(exponent_bits, mantissa_bits, largest), 32) * rng.choice([-1, 1], 32)
            block[rng.integers(0, 16)] = largest
            block[rng.integers(16, 32)] = -largest
            rows.append(block * scale)
    values = np.array(rows, np.float32).reshape(16, 128)
    values[0, :16] = 448 * rng.choice(E2M1_MIDPOINTS, 16)
    values[0, 5] = 2688
    return values


def near_ties(rng):
    """As ties, but two of three elements are the floats beside."""
    values = ties(rng)
    step = np.resize([0, 1, -1], values.shape)
    step[0, 5] = 0
    magnitude = neighbour(np.abs(values), step)
    return np.where(np.abs(values) == np.float32(448.0), values, np.copysign(magnitude, values))


def fp8_ties(rng):
    """Between two values of E4M3, in a tensor and in rows whose amax is 448: scale 1."""
    values = rng.choice(midpoints(4, 3, 448.0), (16, 128)) * rng.choice([-1, 1], (16, 128))
    values[:, 7] = 448
    return values.astype(np.float32)


def subnormal(rng, lowest_exponent):
    """From the least subnormal up to the least normal numbers, in blocks of all lengths of mantissa."""
    exponent = rng.integers(lowest_exponent, -118, (16, 128))
    ceiling = np.repeat(rng.integers(lowest_exponent + 1, -117, (16, 8)), 16, axis=1)
    values = np.ldexp(rng.uniform(1, 2, (16, 128)), np.minimum(exponent, ceiling))
    return (values * rng.choice([-1, 1], (16, 128))).astype(np.float32)


def with_zero_blocks(rng):
    """Blocks of +0, of -0, of both, and of zeros beside ordinary numbers, by turns; whole rows of each as well."""
    values = gauss(rng, 16)
    values[:, 0:32] = 0.0
    values[:, 32:48] = -0.0
    values[:, 64:80] = np.copysign(0.0, rng.choice([-1, 1], (16, 16)))
    values[:, 96:128:3] = -0.0
    values[3] = 0.0
    values[7] = -0.0
    values[11, :32] = gauss(rng, 1)[0, :32]
    return values


def with_special(rng, specials):
    """Each special at the first, the last and random places of some blocks."""
    values = gauss(rng, 16)
    for i, special in enumerate(specials):
        values[2 * i + 1, 0] = special
        values[2 * i + 1, 63] = special
        values[2 * i + 1, 64 + rng.integers(0, 32)] = special
    return values


def tiny_beside_huge(rng):
    """Blocks from 2^-149 to 2^100 in one tensor."""
    exponents = rng.permutation(np.linspace(-148, 100, 128).astype(int))
    values = np.ldexp(rng.uniform(-2, 2, (128, 16)), exponents[:, None])
    return values.astype(np.float32).reshape(16, 128)


def near_flt_max(rng):
    """Each row's amax is at or below FLT_MAX, in the binades where scales and products overflow."""
    amaxes = [FLT_MAX, neighbour(FLT_MAX, -1), 2.0**127, neighbour(2.0**127, -1), 1.75 * 2.0**127, 1.9375 * 2.0**127]
    amaxes += [neighbour(1.9375 * 2.0**127, -1), 1.5 * 2.0**127, 2.0**126, 2.0**120, 1.0, 448.0, 2.0**64, 1.875 * 2.0**127]
    return blocks_with_amax(rng, np.resize(amaxes, 64), 32)


def range_ends(rng, step):
    """A block for each amax where a scale's exponent changes: largest values, powers of two, and their neighbours."""
    ends = LARGEST + [449.0, 480.0, 511.0, 512.0, 7.0, 2.0, 4.0, 1.5, 1.75, 1.875, 1.9375, 3.0, 464.0, 256.0, 384.0]
    ends = np.array(ends + [61440.0, 2.0**-6, 2.0**-9], np.float32)
    as_bits = [ends, neighbour(ends, step), neighbour(ends, -step), ends * np.float32(2.0**-20), ends * np.float32(2.0**15)]
    return blocks_with_amax(rng, np.concatenate(as_bits)[:128], 32)


def powers_of_two(rng):
    """amax / largest is a power of two, or a few floats from it: where a log2 rounded to a float goes wrong."""
    steps = [0, 1, 2, 3, 5, 6, 11, 12, 22, 23, 24, -1, -2, -5, -11, -22, -44, -45]
    amaxes = []
    for i in range(64):
        power = np.float32(LARGEST[i % 3 if i % 4 else 7]) * np.float32(2.0 ** int(rng.integers(-110, 100)))
        amaxes.append(neighbour(power, steps[i % len(steps)]))
    return blocks_with_amax(rng, np.array(amaxes), 32)


def scale_steps(rng):
    """Block scales that lie between two values of E4M3, or a float beside, in a tensor whose outer scale is 1."""
    middles = np.array(midpoints(4, 3, 448.0), np.float32)
    amaxes = np.concatenate([6 * middles, neighbour(6 * middles, 1), neighbour(6 * middles[:3], -1), [2688.0]])
    return blocks_with_amax(rng, amaxes[:256], 16)


def make():
    rng = np.random.Generator(np.random.PCG64(20240229))
    kinds = {
        "gauss_small_bf16": gauss(rng, 8),
        "gauss_bf16": gauss(rng, 32),
        "gauss_f32": gauss(rng, 32),
        "heavy_bf16": heavy_tails(rng, 32),
        "heavy_f32": heavy_tails(rng, 32),
        "equal_bf16": equal_blocks(rng),
        "ties_bf16": ties(rng),
        "near_ties_f32": near_ties(rng),
        "fp8_ties_bf16": fp8_ties(rng),
        "subnormal_f32": subnormal(rng, -149),
        "subnormal_bf16": subnormal(rng, -133),
        "zero_blocks_bf16": with_zero_blocks(rng),
        "zero_f32": np.resize(np.array([0.0, -0.0, 0.0], np.float32), (16, 128)),
        "nan_f32": with_special(rng, [np.nan, -np.nan]),
        "nan_bf16": with_special(rng, [np.nan]),
        "inf_f32": with_special(rng, [np.inf, -np.inf]),
        "tiny_beside_huge_f32": tiny_beside_huge(rng),
        "near_flt_max_f32": near_flt_max(rng),
        "range_ends_f32": range_ends(rng, 1),
        "range_ends_bf16": range_ends(rng, 1 << 16),
        "powers_of_two_f32": powers_of_two(rng),
        "scale_steps_f32": scale_steps(rng),
        "tile_bf16": heavy_tails(rng, 128),
    }
    return {
        name: ("BF16", to_bf16(values)) if name.endswith("bf16") else ("F32", np.asarray(values, np.float32))
        for name, values in kinds.items()
    }


if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    tensor_file.save(here / "inputs.safetensors", make(), {"made_by": "tests/golden/recipes/inputs.py"})
