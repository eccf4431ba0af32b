"""A second implementation of the recipes, in NumPy, from their published definitions alone.

It shares nothing with the C++: 16-bit formats round by quotient and remainder in float64, 8- and 4-bit formats by tables
of midpoints, and the scale arithmetic runs in np.float32, one operation at a time. Not fast, and not a library.

Sources: TransformerEngine common/cast/nvfp4/core_nvfp4.cuh and common/util/ptx.cuh (nvfp4/te, mxfp8/te), OCP MX v1.0 §6.3
with torchao's NaN-propagating amax (mxfp8/ocp), IEEE 754-2019 §4.3.1 (bf16, f16; a NaN answers 7fff as cvt does).
"""

from typing import NamedTuple

import numpy as np

F32 = np.float32
FLT_MAX = np.finfo(F32).max


class Quantized(NamedTuple):
    codes: np.ndarray  # one code per element, u8 or u16
    scales: np.ndarray | None = None  # u8 bytes, one per block
    global_scale: np.ndarray | None = None  # float32 decode factor
    amax: np.ndarray | None = None  # float32


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


# ------------------------------------------------------------------------------------------------ 8- and 4-bit formats


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
E2M1 = magnitudes(1, 1, 8)


def encode_table(x, table, nan_code, sign_bit):
    """Nearest-even with saturation: count the midpoints passed; a tie is passed where the code above is even."""
    x = np.asarray(x, F32)
    middle = (table[1:] + table[:-1]) / 2
    above = np.arange(1, len(table))
    threshold = np.where(above % 2 == 0, middle, np.nextafter(middle, np.inf))
    code = np.searchsorted(threshold, np.abs(x).astype(np.float64), side="right")
    code = code | np.where(np.signbit(x), sign_bit, 0)
    return np.where(np.isnan(x), nan_code, code).astype(np.uint8)


def decode_table(code, table, sign_bit):
    magnitude = (code & (sign_bit - 1)).astype(np.int64)
    value = np.append(table, [np.inf] + [np.nan] * 4)[np.minimum(magnitude, len(table) + 4)].astype(F32)
    if len(table) == len(E4M3):
        value = np.where(magnitude == 0x7F, F32(np.nan), value)
    return np.where(code & sign_bit, -value, value).astype(F32)


# ------------------------------------------------------------------------------------------------------------- scales


def blocks_of(x, block):
    return np.asarray(x, F32).reshape(-1, block)


def amax_dropping_nan(x, axis=None):
    return np.fmax.reduce(np.abs(x), axis=axis, initial=F32(0)).astype(F32)


def amax_with_nan(x, axis):
    return np.maximum.reduce(np.abs(x), axis=axis, initial=F32(0)).astype(F32)


def e8m0_floor(amax, emax):
    """OCP MX v1.0: 2^(floor(log2 amax) - emax), clamped to the format; a NaN or Inf makes the scale NaN."""
    exponent = ((amax.view(np.uint32) >> 23) & 255).astype(np.int64) - 127
    byte = np.clip(exponent - emax, -127, 128) + 127
    return np.where(np.isfinite(amax), byte, 255).astype(np.uint8)


def e8m0_up_satfinite(value):
    """cvt.rp.satfinite.ue8m0: the smallest power of two not below the value."""
    exponents = np.arange(-127, 128)
    powers = np.ldexp(np.ones(len(exponents)), exponents)
    byte = np.minimum(np.searchsorted(powers, value.astype(np.float64), side="left"), 254)
    return np.where(np.isnan(value), 255, byte).astype(np.uint8)


def e8m0_inverse(byte):
    """2^(127 - byte) as float32; 255 is NaN."""
    value = np.ldexp(np.ones(byte.shape), 127 - byte.astype(np.int64)).astype(F32)
    return np.where(byte == 255, F32(np.nan), value)


def e8m0_value(byte):
    value = np.ldexp(np.ones(byte.shape), byte.astype(np.int64) - 127).astype(F32)
    return np.where(byte == 255, F32(np.nan), value)


# ------------------------------------------------------------------------------------------------------------ recipes


def quantize_mxfp8(x, table, scales):
    blocks = blocks_of(x, 32)
    byte = scales(blocks)
    scaled = blocks * e8m0_inverse(byte)[:, None]
    return Quantized(encode_table(scaled, table, 0x7F, 0x80).reshape(-1), byte)


def ocp_scales(emax):
    return lambda blocks: e8m0_floor(amax_with_nan(blocks, 1), emax)


def te_scales(largest):
    return lambda blocks: e8m0_up_satfinite(amax_dropping_nan(blocks, 1) * (F32(1) / F32(largest)))


def global_encode_scale(amax):
    enc = F32(448 * 6) / amax
    enc = np.fmin(enc, FLT_MAX)
    return F32(1) if amax == 0 or enc == 0 else enc


def quantize_nvfp4_te(x, amax=None):
    blocks = blocks_of(x, 16)
    amax = amax_dropping_nan(blocks) if amax is None else F32(amax)
    enc = global_encode_scale(amax)
    dec = F32(1) / enc
    wanted = np.fmin(amax_dropping_nan(blocks, 1) * (enc * (F32(1) / F32(6))), FLT_MAX)
    byte = encode_table(wanted, E4M3, 0x7F, 0x80)
    inverse = np.fmin(F32(1) / (decode_table(byte, E4M3, 0x80) * dec), FLT_MAX)
    codes = encode_table(blocks * inverse[:, None], E2M1, 0x7, 0x8)
    return Quantized(codes.reshape(-1), byte, np.array(dec, F32), np.array(amax, F32))


def dequantize_mxfp8(q, table):
    value = decode_table(q.codes, table, 0x80).reshape(-1, 32) * e8m0_value(q.scales)[:, None]
    return value.reshape(-1)


def dequantize_nvfp4_te(q):
    """TransformerEngine dequantize_nvfp4.cuh: e2m1 * (float(sf) * amax * (1 / (6 * 448))), left to right in fp32."""
    factor = (decode_table(q.scales, E4M3, 0x80) * q.amax) * (F32(1) / F32(6 * 448))
    return (decode_table(q.codes, E2M1, 0x8).reshape(-1, 16) * factor[:, None]).reshape(-1)


QUANTIZE = {
    "bf16": lambda x: Quantized(encode_half(x, 7, 8)),
    "f16": lambda x: Quantized(encode_half(x, 10, 5)),
    "mxfp8/ocp": lambda x: quantize_mxfp8(x, E4M3, ocp_scales(8)),
    "mxfp8/ocp-e5m2": lambda x: quantize_mxfp8(x, E5M2, ocp_scales(15)),
    "mxfp8/te": lambda x: quantize_mxfp8(x, E4M3, te_scales(448)),
    "mxfp8/te-e5m2": lambda x: quantize_mxfp8(x, E5M2, te_scales(57344)),
    "nvfp4/te": quantize_nvfp4_te,
}

DEQUANTIZE = {
    "bf16": lambda q: decode_half(q.codes, 7, 8),
    "f16": lambda q: decode_half(q.codes, 10, 5),
    "mxfp8/ocp": lambda q: dequantize_mxfp8(q, E4M3),
    "mxfp8/ocp-e5m2": lambda q: dequantize_mxfp8(q, E5M2),
    "mxfp8/te": lambda q: dequantize_mxfp8(q, E4M3),
    "mxfp8/te-e5m2": lambda q: dequantize_mxfp8(q, E5M2),
    "nvfp4/te": dequantize_nvfp4_te,
}
