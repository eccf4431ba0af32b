"""A second implementation of the recipes, in NumPy, from what their publishers say and publish.

It shares nothing with the C++. The arithmetic of scales and elements runs in np.float32, one operation at a time, in
the order that the source gives; a function's docstring names the source, and says what the source leaves to its caller
or leaves open. A tensor comes as a matrix [rows, columns]; scales lie as [row blocks, column blocks].
"""

from typing import Callable, NamedTuple

import numpy as np

from formats_numpy import (E2M1, E2M3, E3M2, E4M3, E5M2, F32, FLT_MAX, decode_e8m0, decode_half, decode_table,
                           encode_half, encode_stochastic, encode_table, rs_fields_e2m1x4,
                           to_bf16)


class Quantized(NamedTuple):
    codes: np.ndarray  # one code per element, u8 or u16, in row order
    scales: np.ndarray | None = None  # u8 bytes or float32 decode scales, one per block
    global_scale: np.ndarray | None = None  # float32 decode factor
    amax: np.ndarray | None = None  # float32
    open_codes: np.ndarray | bool = False  # where the source leaves the code to the machine
    open_scales: np.ndarray | bool = False


class Recipe(NamedTuple):
    block: tuple[int, int]  # rows and columns under one scale; (0, 0) is the whole tensor, (1, 0) a row
    quantize: Callable  # matrix -> Quantized
    dequantize: Callable  # Quantized, shape -> values in row order
    columns: int = 1  # of which a row must be a multiple, where it is more than the block
    # Where a step is random: matrix -> (which part, the numbers that it rounds, in row order of that part).
    stochastic: Callable | None = None
    machine_made: str = ""  # why open_codes and open_scales are


# ------------------------------------------------------------------------------------------------------------- blocks


def to_blocks(x, block):
    """[rows, columns] -> [blocks, elements of a block]; missing rows and columns are zeros."""
    rows, columns = block
    x = np.asarray(x, F32)
    x = np.pad(x, ((0, -x.shape[0] % rows), (0, -x.shape[1] % columns)))
    tiles = x.reshape(x.shape[0] // rows, rows, x.shape[1] // columns, columns).transpose(0, 2, 1, 3)
    return tiles.reshape(-1, rows * columns)


def from_blocks(blocks, block, shape):
    """The inverse of to_blocks, in row order."""
    rows, columns = block
    down, across = -(-shape[0] // rows), -(-shape[1] // columns)
    x = blocks.reshape(down, across, rows, columns).transpose(0, 2, 1, 3).reshape(down * rows, across * columns)
    return x[: shape[0], : shape[1]].reshape(-1)


def scale_values(values, block, shape):
    """One value per block, spread over the elements, in row order."""
    return from_blocks(np.repeat(values.reshape(-1, 1), block[0] * block[1], 1), block, shape)


def amax_dropping_nan(x, axis=None):
    return np.max(np.where(np.isnan(x), F32(0), np.abs(x)), axis=axis, initial=F32(0)).astype(F32)


def amax_with_nan(x, axis):
    return np.maximum.reduce(np.abs(x), axis=axis, initial=F32(0)).astype(F32)


def tensor_amax(x, amax):
    return amax_dropping_nan(np.asarray(x, F32)) if amax is None else F32(amax)


def bits_of(value):
    return np.asarray(value, F32).view(np.uint32).astype(np.int64)


def power_of_two(exponent):
    return np.ldexp(np.ones(np.shape(exponent)), exponent).astype(F32)


# --------------------------------------------------------------------------------------------- scales of powers of two


def e8m0_floor(amax, emax):
    """OCP MX v1.0 §6.3: 2^(floor(log2 amax) - emax), clamped to the format; a NaN or Inf makes the scale NaN."""
    exponent = ((bits_of(amax) >> 23) & 255) - 127
    byte = np.clip(exponent - emax, -127, 127) + 127
    return np.where(np.isfinite(amax), byte, 255).astype(np.uint8)


def e8m0_up_satfinite(value):
    """cvt.rp.satfinite.ue8m0: the smallest power of two not below the value."""
    exponents = np.arange(-127, 128)
    powers = np.ldexp(np.ones(len(exponents)), exponents)
    byte = np.minimum(np.searchsorted(powers, value.astype(np.float64), side="left"), 254)
    return np.where(np.isnan(value), 255, byte).astype(np.uint8)


def e8m0_inverse(byte):
    """2^(127 - byte) as float32; 255 is NaN."""
    return np.where(byte == 255, F32(np.nan), power_of_two(127 - byte.astype(np.int64)))


def mx(table, scales):
    """The MX shape: blocks of 32, elements times the inverse of an E8M0 scale, nearest-even, saturating."""

    def quantize(x):
        blocks = to_blocks(x, (1, 32))
        byte = scales(blocks)
        return Quantized(encode_table(blocks * e8m0_inverse(byte)[:, None], table).reshape(-1), byte)

    return Recipe((1, 32), quantize, lambda q, shape: dequantize_mx(q, table))


def dequantize_mx(q, table):
    return (decode_table(q.codes, table).reshape(-1, 32) * decode_e8m0(q.scales)[:, None]).reshape(-1)


def floor_scales(emax):
    """OCP MX v1.0 §6.3, with torchao's NaN-propagating amax where the specification leaves NaN open."""
    return lambda blocks: e8m0_floor(amax_with_nan(blocks, 1), emax)


def up_scales(largest):
    """TransformerEngine common/cast/mxfp8/quantize_mxfp8.cuh and common/util/ptx_arch_spec.cuh float_to_e8m0."""
    return lambda blocks: e8m0_up_satfinite(amax_dropping_nan(blocks, 1) * (F32(1) / F32(largest)))


def quantize_mxfp4_gpt_oss(x):
    """triton_kernels numerics_details/mxfp.py downcast_to_mxfp, ROUND_UP, which gpt_oss/triton/moe.py runs."""
    blocks = to_blocks(x, (1, 32))
    wanted = amax_dropping_nan(blocks, 1) / F32(6)
    byte = (((bits_of(wanted) + 0x7FFFFF) & 0x7F800000) >> 23).astype(np.uint8)
    scale = (byte.astype(np.uint32) << 23).view(F32)
    factor = np.where(scale == 0, F32(0), F32(1) / scale)
    return Quantized(encode_table(blocks * factor[:, None], E2M1).reshape(-1), byte)


def mxfp4_tseng_scaled(x):
    """amazon-science/mxfp4-llm microxcaling.patch, 'dither_scale': floor scale, 3 x / 2^(e + 2)."""
    blocks = to_blocks(x, (1, 32))
    byte = e8m0_floor(amax_with_nan(blocks, 1), 2)
    shifted = power_of_two(byte.astype(np.int64) - 127 + 2)
    scaled = np.where(byte[:, None] == 255, F32(np.nan), (F32(3) * blocks) / shifted[:, None])
    return byte, scaled


def quantize_mxfp4_tseng(x, words=None):
    """With 32-bit words, one per element: the publisher draws torch.rand, whose bits nobody promises."""
    byte, scaled = mxfp4_tseng_scaled(x)
    flat = scaled.reshape(-1)
    codes = encode_table(flat, E2M1) if words is None else encode_stochastic(flat, E2M1, words, 32)
    return Quantized(codes, byte)


def dequantize_mxfp4_tseng(q, shape):
    """The same patch: A 2^(e + 2) / 3; 4/3 here on each operand is the paper's 16/9 on the product."""
    shifted = power_of_two(q.scales.astype(np.int64) - 127 + 2)
    shifted = np.where(q.scales == 255, F32(np.nan), shifted)
    return ((decode_table(q.codes, E2M1).reshape(-1, 32) * shifted[:, None]) / F32(3)).reshape(-1)


def quantize_mxfp4_quartet(x):
    """QuTLASS epilogue_quant.h op_32, is_quartet, after its rotation: the scale from the standard deviation, with
    double arithmetic in the middle. Sums run over the block in order, without contraction into FMA."""
    blocks = to_blocks(x, (1, 32))
    total = np.zeros(len(blocks), F32)
    squares = np.zeros(len(blocks), F32)
    for column in blocks.T:
        total = total + column
        squares = squares + column * column
    mean = total / F32(32)
    variance = squares / F32(32) - mean * mean
    deviation = np.sqrt(np.where(variance >= 0, variance, F32(0))).astype(np.float64)
    wanted = np.where(variance >= 0, (deviation * (2.92247856 / 6.0) + 1e-8).astype(F32), F32(1))
    exponent = bits_of(wanted) & 0x7F800000
    scale = exponent.astype(np.uint32).view(F32)
    codes = encode_table(blocks / scale[:, None], E2M1)
    return Quantized(codes.reshape(-1), (exponent >> 23).astype(np.uint8))


# -------------------------------------------------------------------------------------------------------------- NVFP4


def global_encode_scale(amax, e4m3_max=448):
    """core_nvfp4.cuh compute_global_encode_scaling_factor_FP4: 1 for an amax of 0 or Inf."""
    encode = np.fmin(F32(e4m3_max * 6) / amax, FLT_MAX)
    return F32(1) if amax == 0 or encode == 0 else encode


def te_block_scale(block_amax, encode):
    """core_nvfp4.cuh compute_decoding_scaling_factor."""
    return encode_table(np.fmin(block_amax * (encode * (F32(1) / F32(6))), FLT_MAX), E4M3)


def te_inverse(byte, encode):
    """core_nvfp4.cuh compute_scaling_coefficient<float>."""
    return np.fmin(F32(1) / (decode_table(byte, E4M3) * (F32(1) / encode)), FLT_MAX)


def quantize_nvfp4_te(x, amax=None, block=(1, 16), words=None):
    """quantize_transpose_nvfp4.cuh. Words: one per four elements, in the order of a block."""
    amax = tensor_amax(x, amax)
    encode = global_encode_scale(amax)
    blocks = to_blocks(x, block)
    byte = te_block_scale(amax_dropping_nan(blocks, 1), encode)
    scaled = blocks * te_inverse(byte, encode)[:, None]
    if words is None:
        codes = encode_table(scaled, E2M1)
    else:
        random = rs_fields_e2m1x4(words).reshape(scaled.shape)
        codes = encode_stochastic(scaled, E2M1, random, 16)
    return Quantized(from_blocks(codes, block, x.shape), byte, F32(1) / encode, amax)


def quantize_nvfp4_te_fast_math(x, amax=None):
    """specialized/quantize_transpose_nvfp4_tuned_1D.cuh with NVTE_USE_FAST_MATH: a bf16 factor, and an FMA that adds
    +0 (common/util/ptx_arch_spec.cuh), so that a zero loses its sign."""
    amax = tensor_amax(x, amax)
    encode = global_encode_scale(amax)
    blocks = to_blocks(x, (1, 16))
    byte = te_block_scale(amax_dropping_nan(blocks, 1), encode)
    bf16_max = F32(float.fromhex("0x1.FEp127"))
    factor = to_bf16(np.fmin(encode / decode_table(byte, E4M3), bf16_max))
    scaled = np.where(blocks == 0, F32(0), blocks * factor[:, None])
    return Quantized(encode_table(scaled, E2M1).reshape(-1), byte, F32(1) / encode, amax)


def four_over_six_candidate(blocks, byte, encode, amax, e4m3_max, squared):
    codes = encode_table(blocks * te_inverse(byte, encode)[:, None], E2M1)
    value = (decode_table(codes, E2M1) * decode_table(byte, E4M3)[:, None] * amax) / F32(6 * e4m3_max)
    difference = value - blocks
    terms = difference * difference if squared else np.abs(difference)
    error = np.zeros(len(blocks), F32)
    for column in terms.T:
        error = error + column
    return codes, error


def quantize_nvfp4_four_over_six(x, e4m3_max, squared, amax=None):
    """quantize_4over6_nvfp4.cuh: the block's amax goes to 6, or to 4 where that has the smaller error."""
    amax = tensor_amax(x, amax)
    encode = global_encode_scale(amax, e4m3_max)
    blocks = to_blocks(x, (1, 16))
    base = amax_dropping_nan(blocks, 1) / F32(6) * encode
    byte4 = encode_table(np.fmin(base * F32(1.5), F32(448)), E4M3)
    byte6 = encode_table(np.fmin(base, F32(448)), E4M3)
    codes4, error4 = four_over_six_candidate(blocks, byte4, encode, amax, e4m3_max, squared)
    codes6, error6 = four_over_six_candidate(blocks, byte6, encode, amax, e4m3_max, squared)
    four = error4 < error6
    codes = np.where(four[:, None], codes4, codes6)
    return Quantized(codes.reshape(-1), np.where(four, byte4, byte6), F32(1) / encode, amax)


def quantize_nvfp4_flashinfer(x, amax=None):
    """quantization_utils.cuh cvt_warp_fp16_to_fp4 with TE_EXACT_NVFP4. The caller gives the tensor scale: here TE's."""
    amax = tensor_amax(x, amax)
    encode = global_encode_scale(amax)
    blocks = to_blocks(x, (1, 16))
    block_amax = np.where(np.isnan(blocks).all(1), F32(np.nan), amax_dropping_nan(blocks, 1))
    wanted = np.where(block_amax != 0, block_amax * (encode * (F32(1) / F32(6))), F32(0))
    byte = encode_table(wanted, E4M3)
    factor = np.where(block_amax != 0, te_inverse(byte, encode), F32(0))
    return Quantized(encode_table(blocks * factor[:, None], E2M1).reshape(-1), byte, F32(1) / encode, amax)


def quantize_nvfp4_cutlass(x, amax=None):
    """CUTLASS sm100_visitor_store_tma_warpspecialized.hpp, Sm100BlockScaleFactorRowStore. rcp.approx.ftz is the nearest
    reciprocal for 6 and every E4M3 value (measured on an H200). The caller gives norm_constant: here TE's scale, of an
    amax that NaN makes NaN, as a block's."""
    amax = amax_with_nan(np.asarray(x, F32), None) if amax is None else F32(amax)
    norm = global_encode_scale(amax)
    blocks = to_blocks(x, (1, 16))
    byte = encode_table(amax_with_nan(blocks, 1) * (norm * (F32(1) / F32(6))), E4M3)
    factor = np.minimum(norm * (F32(1) / decode_table(byte, E4M3)), FLT_MAX)
    return Quantized(encode_table(blocks * factor[:, None], E2M1).reshape(-1), byte, F32(1) / norm, amax)


def quantize_nvfp4_cublaslt(x, amax=None):
    """cuBLAS documentation, "1D Block Quantization". The caller gives scale_D: here TE's. A scale of zero is not
    documented: its conversion factor is taken as the largest float, as TransformerEngine and CUTLASS do."""
    amax = tensor_amax(x, amax)
    encode = global_encode_scale(amax)
    blocks = to_blocks(x, (1, 16)) * encode
    byte = encode_table(amax_dropping_nan(blocks, 1) / F32(6), E4M3)
    factor = np.fmin(F32(1) / decode_table(byte, E4M3), FLT_MAX)
    return Quantized(encode_table(blocks * factor[:, None], E2M1).reshape(-1), byte, F32(1) / encode, amax)


def sum_of_group(terms):
    """[groups, 128] -> [groups]: eight in order, then halves folded onto each other."""
    partial = terms.reshape(len(terms), 16, 8)
    total = np.zeros(partial.shape[:2], F32)
    for k in range(8):
        total = total + partial[:, :, k]
    while total.shape[1] > 1:
        half = total.shape[1] // 2
        total = total[:, :half] + total[:, half:]
    return total[:, 0]


def ms_eden_parts(x, amax):
    """Quartet II, kernels/csrc eden_fp4_kernel, on an input that is already rotated in groups of 128: codes nearest,
    and the scales times <y, y> / <y, q> of the group, which a random step then rounds to E4M3."""
    amax = tensor_amax(x, amax)
    largest = F32(6) / F32(17 / 16 * 0.93)
    decode = F32(1) if amax == 0 else amax / F32(255.99) / largest
    blocks = to_blocks(x, (1, 16))
    byte = encode_table(amax_dropping_nan(blocks, 1) / largest / decode, E4M3)
    scale = decode_table(byte, E4M3)
    scale = np.where(scale == 0, F32(1), scale)
    scaled = blocks * (F32(1) / (scale * decode))[:, None]
    codes = encode_table(scaled, E2M1)
    groups, rounded = scaled.reshape(-1, 128), decode_table(codes, E2M1).reshape(-1, 128)
    own, cross = sum_of_group(groups * groups), sum_of_group(groups * rounded)
    correction = np.where(cross == 0, F32(1), own / cross)
    return codes.reshape(-1), (scale.reshape(-1, 8) * correction[:, None]).reshape(-1), decode, amax


def quantize_nvfp4_ms_eden(x, amax=None, words=None):
    """Words: one of 32 bits per block. (The publisher's own rounding takes 16 bits, and none below 2^-6.)"""
    codes, scale, decode, amax = ms_eden_parts(x, amax)
    byte = encode_table(scale, E4M3) if words is None else encode_stochastic(scale, E4M3, words, 32)
    return Quantized(codes, byte, decode, amax)


def dequantize_nvfp4_te(q, block, shape, e4m3_max=448):
    """dequantize_nvfp4.cuh: e2m1 * (float(sf) * amax * (1 / (6 * 448))), left to right in fp32."""
    factor = (decode_table(q.scales, E4M3) * q.amax) * (F32(1) / F32(6 * e4m3_max))
    return decode_table(q.codes, E2M1) * scale_values(factor, block, shape)


def dequantize_nvfp4_factored(q, shape):
    """e2m1 * (float(sf) * decode factor): of quantizers whose publisher has no dequantizer."""
    factor = decode_table(q.scales, E4M3) * q.global_scale
    return decode_table(q.codes, E2M1) * scale_values(factor, (1, 16), shape)


def dequantize_nvfp4_ms_eden(q, shape):
    """nvfp4_triton.py: x_fp4 * scales * s_dec, left to right."""
    return decode_table(q.codes, E2M1) * scale_values(decode_table(q.scales, E4M3), (1, 16), shape) * q.global_scale


def nvfp4_te(quantize, block=(1, 16), e4m3_max=448):
    return Recipe(block, quantize, lambda q, shape: dequantize_nvfp4_te(q, block, shape, e4m3_max))


def nvfp4_four_over_six(e4m3_max, squared):
    return nvfp4_te(lambda x, amax=None: quantize_nvfp4_four_over_six(x, e4m3_max, squared, amax), (1, 16), e4m3_max)


# ---------------------------------------------------------------------------------------------------------------- FP8


def quantize_fp8_te(x, table, amax=None):
    """TransformerEngine common/recipe/recipe_common.cuh compute_scale_from_amax, epsilon 0, any scale allowed; the
    elements of cast_fp8 are x * scale, saturating, and what is stored is 1 / scale."""
    amax = tensor_amax(x, amax)
    scale = F32(1) if amax == 0 or not np.isfinite(amax) else F32(table[-1]) / amax
    scale = FLT_MAX if np.isinf(scale) else scale
    return Quantized(encode_table(np.asarray(x, F32) * scale, table).reshape(-1), None, F32(1) / scale, F32(amax))


def fp8_te(table):
    return Recipe((0, 0), lambda x, amax=None: quantize_fp8_te(x, table, amax),
                  lambda q, shape: decode_table(q.codes, table) * q.global_scale)


def ceil_to_power_of_two(scale):
    """DeepGEMM deep_gemm/utils/math.py ceil_to_ue8m0: by the bits, between 2^-126 and 2^127, also for Inf and NaN."""
    bits = bits_of(scale)
    exponent = ((bits >> 23) & 255) + ((bits & 0x7FFFFF) != 0)
    return (np.clip(exponent, 1, 254).astype(np.uint32) << 23).view(F32)


def quantize_fp8_deepseek(x, block, power_of_two_scale):
    """DeepGEMM math.py per_token_cast_to_fp8 and per_block_cast_to_fp8 on a GPU, where PyTorch divides by 448 as a
    product with its reciprocal (ATen cuda/BinaryDivTrueKernel.cu), NaN has no sign, and casts to E4M3 saturate (since
    PyTorch 2.12)."""
    blocks = to_blocks(x, block)
    amax = np.maximum(amax_with_nan(blocks, 1), F32(1e-4))
    scale = amax * (F32(1) / F32(448))
    scale = ceil_to_power_of_two(scale) if power_of_two_scale else scale
    codes = encode_table(blocks * (F32(1) / scale)[:, None], E4M3)
    return Quantized(from_blocks(codes, block, x.shape), scale)


def fp8_deepseek(block, power_of_two_scale=False):
    return Recipe(block, lambda x: quantize_fp8_deepseek(x, block, power_of_two_scale),
                  lambda q, shape: decode_table(q.codes, E4M3) * scale_values(q.scales, block, shape))


# ------------------------------------------------------------------------------------------------------------ recipes


def elementwise(mantissa_bits, exponent_bits):
    return Recipe((1, 1), lambda x: Quantized(encode_half(x, mantissa_bits, exponent_bits).reshape(-1)),
                  lambda q, shape: decode_half(q.codes, mantissa_bits, exponent_bits))


RECIPES = {
    "bf16": elementwise(7, 8),
    "f16": elementwise(10, 5),
    "mxfp8/ocp": mx(E4M3, floor_scales(8)),
    "mxfp8/ocp-e5m2": mx(E5M2, floor_scales(15)),
    "mxfp8/te": mx(E4M3, up_scales(448)),
    "mxfp8/te-e5m2": mx(E5M2, up_scales(57344)),
    "mxfp6/ocp-e2m3": mx(E2M3, floor_scales(2)),
    "mxfp6/ocp-e3m2": mx(E3M2, floor_scales(4)),
    "mxfp4/ocp": mx(E2M1, floor_scales(2)),
    "mxfp4/round-up": mx(E2M1, up_scales(6)),
    "mxfp4/gpt-oss": Recipe((1, 32), quantize_mxfp4_gpt_oss, lambda q, shape: dequantize_mx(q, E2M1)),
    "mxfp4/tseng": Recipe((1, 32), quantize_mxfp4_tseng, dequantize_mxfp4_tseng,
                          stochastic=lambda x: ("codes", mxfp4_tseng_scaled(x)[1].reshape(-1))),
    "mxfp4/quartet": Recipe((1, 32), quantize_mxfp4_quartet, lambda q, shape: dequantize_mx(q, E2M1)),
    "nvfp4/te": nvfp4_te(quantize_nvfp4_te),
    "nvfp4/te-2d": nvfp4_te(lambda x, amax=None: quantize_nvfp4_te(x, amax, (16, 16)), (16, 16)),
    "nvfp4/te-fast-math": nvfp4_te(quantize_nvfp4_te_fast_math),
    "nvfp4/te-4over6-mae": nvfp4_four_over_six(448, False),
    "nvfp4/te-4over6-mse": nvfp4_four_over_six(448, True),
    "nvfp4/te-4over6-mae-256": nvfp4_four_over_six(256, False),
    "nvfp4/te-4over6-mse-256": nvfp4_four_over_six(256, True),
    "nvfp4/flashinfer": Recipe((1, 16), quantize_nvfp4_flashinfer, dequantize_nvfp4_factored),
    "nvfp4/cutlass": Recipe((1, 16), quantize_nvfp4_cutlass, dequantize_nvfp4_factored),
    "nvfp4/cublaslt": Recipe((1, 16), quantize_nvfp4_cublaslt, dequantize_nvfp4_factored),
    "nvfp4/ms-eden": Recipe((1, 16), quantize_nvfp4_ms_eden, dequantize_nvfp4_ms_eden, columns=128,
                            stochastic=lambda x: ("scales", ms_eden_parts(x, None)[1])),
    "fp8/te": fp8_te(E4M3),
    "fp8/te-e5m2": fp8_te(E5M2),
    "fp8/deepseek-1x128": fp8_deepseek((1, 128)),
    "fp8/deepseek-128x128": fp8_deepseek((128, 128)),
    "fp8/deepseek-1x128-ue8m0": fp8_deepseek((1, 128), True),
    "fp8/deepseek-128x128-ue8m0": fp8_deepseek((128, 128), True),
}
