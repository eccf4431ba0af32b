"""Number formats, random words and the Hadamard transform in NumPy, from their definitions alone.

It shares nothing with the C++: 16-bit formats round by quotient and remainder in float64, 8-, 6- and 4-bit formats by
tables of values. Not fast, and not a library.

Sources: IEEE 754-2019 §4.3.1 (bf16, f16; a NaN answers 7fff as cvt does), OCP MX v1.0 table 1 to 5, PTX ISA 9.0 cvt,
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (Philox4x32-10), TransformerEngine
common/hadamard_transform/hadamard_transform_utils.cuh (the transform), PyTorch c10/util/Float8_e4m3fn.h.
"""

import numpy as np

F32 = np.float32
FLT_MAX = np.finfo(F32).max

# ---------------------------------------------------------------------------------------------------- 16-bit formats


def encode_half(x, mantissa_bits, exponent_bits):
    """Nearest-even into an IEEE-like 16-bit format: the quotient by the ulp, then the remainder decides."""
    with np.errstate(invalid="ignore"):  # a signalling NaN
        x = np.asarray(x, np.float64)
    bias = 2 ** (exponent_bits - 1) - 1
    magnitude = np.abs(x)
    finite = np.isfinite(magnitude)
    safe = np.where(finite, magnitude, 0.0)
    _, exponent = np.frexp(safe)
    exponent = np.where(safe == 0, 1 - bias, np.clip(exponent - 1, 1 - bias, bias + 1))
    scaled = np.ldexp(safe, mantissa_bits - exponent)
    # A float64 so far above the format that ldexp overflows is an overflow anyway.
    scaled = np.minimum(scaled, 2.0 ** (mantissa_bits + 2))
    whole = np.floor(scaled)
    rest = scaled - whole
    up = (rest > 0.5) | ((rest == 0.5) & (np.mod(whole, 2) == 1))
    units = (whole + up).astype(np.int64)
    code = units + ((exponent + bias - 1).astype(np.int64) << mantissa_bits)
    infinity = (2**exponent_bits - 1) << mantissa_bits
    code = np.where(finite, np.minimum(code, infinity), infinity)
    code = code | np.where(np.signbit(x), 0x8000, 0)
    return np.where(np.isnan(x), 0x7FFF, code).astype(np.uint16)


def decode_half(code, mantissa_bits, exponent_bits):
    """The value of each code as a float32; a NaN keeps sign and payload in the top bits, as a widening does."""
    code = code.astype(np.int64)
    bias = 2 ** (exponent_bits - 1) - 1
    mantissa = code & (2**mantissa_bits - 1)
    exponent = (code >> mantissa_bits) & (2**exponent_bits - 1)
    significand = mantissa + np.where(exponent > 0, 2**mantissa_bits, 0)
    value = np.ldexp(significand.astype(np.float64), np.maximum(exponent, 1) - bias - mantissa_bits)
    with np.errstate(over="ignore"):  # an Inf or NaN code, replaced below
        bits = value.astype(F32).view(np.uint32).astype(np.int64)
    special = exponent == 2**exponent_bits - 1
    bits = np.where(special, 0x7F800000 | (mantissa << (23 - mantissa_bits)), bits)
    bits |= (code & 0x8000) << 16
    return bits.astype(np.uint32).view(F32)


def to_bf16(x):
    """The nearest bf16, as float32."""
    return decode_half(encode_half(x, 7, 8), 7, 8)


# --------------------------------------------------------------------------------------------- 8-, 6- and 4-bit formats


def magnitudes(mantissa_bits, bias, count):
    """The finite non-negative values, code order."""
    table = []
    for code in range(count):
        exponent, mantissa = divmod(code, 2**mantissa_bits)
        hidden = 1 if exponent > 0 else 0
        table.append((hidden + mantissa / 2**mantissa_bits) * 2.0 ** (max(exponent, 1) - bias))
    return np.array(table)


E4M3 = magnitudes(3, 7, 0x7F)
E5M2 = magnitudes(2, 15, 0x7C)
E2M3 = magnitudes(3, 1, 0x20)
E3M2 = magnitudes(2, 3, 0x20)
E2M1 = magnitudes(1, 1, 8)


def sign_bit_of(table):
    return {len(E4M3): 0x80, len(E5M2): 0x80, len(E2M3): 0x20, len(E2M1): 0x8}[len(table)]


def nan_code_of(table):
    """What cvt answers for a NaN of either sign: +7f in 8 bits, the largest magnitude in 6 and 4."""
    return 0x7F if sign_bit_of(table) == 0x80 else len(table) - 1


def with_sign_and_nan(code, x, table):
    code = code | np.where(np.signbit(x), sign_bit_of(table), 0)
    return np.where(np.isnan(x), nan_code_of(table), code).astype(np.uint8)


def encode_table(x, table):
    """Nearest-even with saturation: count the midpoints passed; a tie is passed where the code above is even."""
    x = np.asarray(x, F32)
    middle = (table[1:] + table[:-1]) / 2
    above = np.arange(1, len(table))
    threshold = np.where(above % 2 == 0, middle, np.nextafter(middle, np.inf))
    code = np.searchsorted(threshold, np.abs(x).astype(np.float64), side="right")
    return with_sign_and_nan(code, x, table)


def encode_e4m3_overflowing(x):
    """PyTorch's float32 to float8_e4m3fn: nearest-even, and NaN of the value's sign above the tie at 464."""
    x = np.asarray(x, F32)
    overflow = np.abs(x) > 464
    return np.where(overflow, 0x7F | np.where(np.signbit(x), 0x80, 0), encode_table(x, E4M3)).astype(np.uint8)


def split_at_grid(x, table):
    """The code below |x| (saturating) and the fraction of the way to the next one, exact in float64."""
    magnitude = np.abs(np.asarray(x, F32)).astype(np.float64)
    magnitude = np.where(np.isnan(magnitude), 0, np.minimum(magnitude, table[-1]))
    below = np.searchsorted(table, magnitude, side="right") - 1
    gap = np.append(np.diff(table), np.inf)[below]
    return below, (magnitude - table[below]) / gap


def encode_stochastic(x, table, random, bits):
    """Away from zero where the first `bits` bits of the discarded fraction, plus the random number, carry."""
    below, fraction = split_at_grid(x, table)
    away = np.floor(np.ldexp(fraction, bits)).astype(np.int64) + random.astype(np.int64) >= 2**bits
    return with_sign_and_nan(below + away, np.asarray(x, F32), table)


def decode_table(code, table):
    sign_bit = sign_bit_of(table)
    magnitude = (code & (sign_bit - 1)).astype(np.int64)
    value = np.append(table, [np.inf] + [np.nan] * 4)[np.minimum(magnitude, len(table) + 4)].astype(F32)
    if len(table) == len(E4M3):
        value = np.where(magnitude == 0x7F, F32(np.nan), value)
    return np.where(code & sign_bit, -value, value).astype(F32)


def decode_e8m0(byte):
    value = np.ldexp(np.ones(byte.shape), byte.astype(np.int64) - 127).astype(F32)
    return np.where(byte == 255, F32(np.nan), value)


# ------------------------------------------------------------------------------------------------------- random words


def philox4x32(key, counter, rounds=10):
    """key: 2 words, counter: 4 words. The four words of the block."""
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(rounds):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


def te_random_block(seed, subsequence, offset):
    """TransformerEngine common/util/curanddx.hpp: four words of the stream of a thread; offset counts such blocks."""
    halves = lambda word: (word % 2**32, word >> 32)
    return philox4x32(halves(seed), halves(offset) + halves(subsequence))


def reverse16(field):
    result = np.zeros_like(field)
    for bit in range(16):
        result |= ((field >> bit) & 1) << (15 - bit)
    return result


def rs_fields_e2m1x4(words):
    """cvt.rs.satfinite.e2m1x4 {y3, y2, y1, y0}: the 16 random bits of y0 to y3, along a new last axis."""
    words = np.asarray(words, np.uint32).astype(np.int64)
    upper = ((words >> 24) << 8) | ((words >> 8) & 0xFF)
    lower = (((words >> 16) & 0xFF) << 8) | (words & 0xFF)
    return np.stack([lower, reverse16(lower), upper, reverse16(upper)], -1)


def rs_fields_e4m3x4(words):
    """cvt.rs.satfinite.e4m3x4 and e5m2x4: the 16 random bits of the operands f, e, b, a (lowest byte first)."""
    words = np.asarray(words, np.uint32).astype(np.int64)
    upper, lower = words >> 16, words & 0xFFFF
    return np.stack([lower, reverse16(lower), upper, reverse16(upper)], -1)


# ----------------------------------------------------------------------------------------------------------- Hadamard


def hadamard(size):
    """Sylvester: entry (r, c) is -1 where r and c share an odd number of set bits."""
    index = np.arange(size)
    shared = index[:, None] & index[None, :]
    return 1.0 - 2.0 * np.array([[bin(v).count("1") % 2 for v in row] for row in shared])


def random_hadamard(x, sign_mask=0xD7E8, size=16):
    """(x diag(s)) H / sqrt(size) on groups along the last axis; the exact sum, rounded once to bf16."""
    signs = np.array([-1.0 if (sign_mask >> i) & 1 else 1.0 for i in range(size)])
    with np.errstate(invalid="ignore"):
        groups = np.asarray(x, np.float64).reshape(-1, size) * signs
        return to_bf16(groups @ hadamard(size) / np.sqrt(size)).reshape(np.shape(x))
