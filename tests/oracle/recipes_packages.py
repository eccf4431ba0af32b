"""More recipes in NumPy: those of packages that a user installs and runs, and of two projects' source.

Written from the packages' sources, one np.float32 operation at a time, and sharing nothing with the C++; which
releases, and what their own functions answer, is in tests/golden/recipes, to which recipes_self_test.py holds this
file. Their float log2 is the nearest float32 to log2 (measured of PyTorch, NumPy and the C library, in every binade).

In Quantized, open_codes and open_scales mark what is no answer of the package's but its machine's; a Recipe's
machine_made says why.
"""

import numpy as np

from formats_numpy import E2M1, E2M3, E3M2, E4M3, E5M2, F32, decode_table, encode_table, to_bf16
from recipes_numpy import (Quantized, Recipe, amax_dropping_nan, amax_with_nan, bits_of, dequantize_mx, e8m0_inverse,
                           from_blocks, power_of_two, scale_values, to_blocks)

NAN_CODES = "4 and 6 bits hold no NaN: its code follows from its bits, and those of 0 / 0 from the processor"
MX_BLOCK = (1, 32)


def float_log2(x):
    return np.log2(np.asarray(x, np.float64)).astype(F32)


def float_exp2(exponent):
    """Of whole numbers, Infinities and NaN."""
    whole = np.where(np.isfinite(exponent), exponent, 0).astype(np.int64)
    special = np.where(np.isnan(exponent), exponent, np.where(exponent > 0, F32(np.inf), F32(0)))
    return np.where(np.isfinite(exponent), power_of_two(whole), special).astype(F32)


def clamp(x, low, high):
    """torch.clamp: NaN stays NaN."""
    return np.minimum(np.maximum(x, F32(low)), F32(high))


def amax_of(x, amax):
    """The tensor's largest magnitude, which NaN makes NaN, unless the caller gives it."""
    return amax_with_nan(np.asarray(x, F32), None) if amax is None else F32(amax)


def without_signed_zero(codes, scaled):
    """A zero has no sign; what rounds to zero keeps its."""
    return np.where(scaled == 0, 0, codes).astype(np.uint8)


def encode_ties_to_zero(x):
    """E2M1 by thresholds passed strictly, without a sign; NaN passes none."""
    return np.sum(np.abs(x)[..., None] > ((E2M1[1:] + E2M1[:-1]) / 2).astype(F32), -1).astype(np.uint8)


# ------------------------------------------------------------------------------------------------------------ torchao

EMAX = {len(E4M3): 8, len(E5M2): 15, len(E2M1): 2}
MANTISSA_BITS = {len(E4M3): 3, len(E5M2): 2, len(E2M1): 1}
SIX_BITS = {"e2m3": (2, 3), "e3m2": (4, 2)}


def torchao_exponent(amax, mode, mantissa_bits):
    """mx_tensor.py to_mx: the exponent field that a mode takes, and whether EVEN rounded a number up to Inf."""
    bits = bits_of(amax)
    if mode == "even":
        bits = (bits + (1 << (22 - mantissa_bits))) & 0xFF800000
    exponent = ((bits >> 23) & 255) - 127
    return exponent + ((bits & 0x7FFFFF) > 0 if mode == "ceil" else 0), (bits & 0x7F800000) == 0x7F800000


def torchao_mx(scales_and_scaled, table):
    def quantize(x):
        blocks = to_blocks(x, MX_BLOCK)
        byte, scaled = scales_and_scaled(blocks, amax_with_nan(blocks, 1))
        is_open = (np.isnan(scaled) | (byte == 255)[:, None]).reshape(-1) if table[-1] < 448 else False
        return Quantized(encode_table(scaled, table).reshape(-1), byte, open_codes=is_open)

    return Recipe(MX_BLOCK, quantize, lambda q, shape: dequantize_mx(q, table), machine_made=NAN_CODES)


def torchao_release(mode, emax, mantissa_bits, largest):
    """torchao 0.18.0 mx_tensor.py to_mx: divides by a scale of at least 2^-126; only NaN makes a scale NaN."""

    def by_bits(blocks, amax):
        exponent, _ = torchao_exponent(amax, mode, mantissa_bits)
        byte = np.where(np.isnan(amax), 255, np.clip(exponent - emax, -127, 128) + 127).astype(np.uint8)
        scale = np.maximum((byte.astype(np.uint32) << 23).view(F32), F32(2.0**-126))
        return byte, blocks / scale[:, None]

    def by_log2(blocks, amax):
        """_to_mx_rceil. A scale byte of 0 multiplies by 1."""
        exponent = np.ceil(float_log2(amax / F32(largest)))
        known = np.where(np.isnan(exponent), 0, clamp(exponent, -127, 127)).astype(np.int64) + 127
        byte = np.where(np.isnan(amax), 255, np.where(np.isinf(amax), 254, known)).astype(np.uint8)
        factor = np.where(byte == 0, F32(1), e8m0_inverse(byte))
        return byte, blocks * factor[:, None]

    return by_log2 if mode == "rceil" else by_bits


def torchao_main(mode, emax, mantissa_bits, largest):
    """pytorch/ao at 36027d8: multiplies by the inverse of the scale, and what is not finite makes it NaN."""

    def by_bits(blocks, amax):
        exponent, overflows = torchao_exponent(amax, mode, mantissa_bits)
        byte = np.where(overflows | ~np.isfinite(amax), 255, np.clip(exponent - emax, -127, 128) + 127)
        return byte.astype(np.uint8), blocks * e8m0_inverse(byte.astype(np.uint8))[:, None]

    def by_product(blocks, amax):
        bits = bits_of(amax * (F32(1) / F32(largest)))
        exponent, mantissa = (bits >> 23) & 255, bits & 0x7FFFFF
        up = np.where(exponent == 0, mantissa > 0x400000, mantissa != 0)
        byte = np.where(np.isfinite(amax), exponent + up, 255).astype(np.uint8)
        return byte, blocks * e8m0_inverse(byte)[:, None]

    return by_product if mode == "rceil" else by_bits


def torchao_mx_recipes():
    recipes = {}
    for mode in ("floor", "ceil", "even", "rceil"):
        for name, table in (("mxfp8/torchao-{}", E4M3), ("mxfp8/torchao-{}-e5m2", E5M2), ("mxfp4/torchao-{}", E2M1)):
            arguments = (mode, EMAX[len(table)], MANTISSA_BITS[len(table)], table[-1])
            recipes[name.format(mode)] = torchao_mx(torchao_release(*arguments), table)
            if mode != "floor":  # main's FLOOR is the OCP rule
                recipes[name.format("main-" + mode)] = torchao_mx(torchao_main(*arguments), table)
        for element, table in (("e2m3", E2M3), ("e3m2", E3M2)):
            scales = torchao_release(mode, *SIX_BITS[element], table[-1])
            recipes[f"mxfp6/torchao-{mode}-{element}"] = torchao_mx(scales, table)
    return recipes


def quantize_nvfp4_torchao(x, amax=None):
    """torchao 0.18.0 nvfp4_tensor.py nvfp4_quantize, per_tensor_amax_to_scale: scales of at least 2^-6, no guards."""
    amax = amax_of(x, amax)
    outer = amax / F32(2688)
    blocks = to_blocks(x, (1, 16))
    byte = encode_table(clamp(amax_with_nan(blocks, 1) / F32(6) / outer, 2.0**-6, 448), E4M3)
    factor = F32(1) / outer / decode_table(byte, E4M3)
    scaled = blocks * factor[:, None]
    return Quantized(encode_table(scaled, E2M1).reshape(-1), byte, outer, amax, np.isnan(scaled).reshape(-1))


def dequantize_nvfp4_torchao(q, shape):
    scale = q.global_scale * decode_table(q.scales, E4M3)
    return decode_table(q.codes, E2M1) * scale_values(scale, (1, 16), shape)


def quantize_nvfp4_torchao_one_level(x):
    """The same without a tensor scale."""
    blocks = to_blocks(x, (1, 16))
    byte = encode_table(clamp(amax_with_nan(blocks, 1) / F32(6), 2.0**-6, 448), E4M3)
    scaled = blocks * (F32(1) / decode_table(byte, E4M3))[:, None]
    return Quantized(encode_table(scaled, E2M1).reshape(-1), byte, open_codes=np.isnan(scaled).reshape(-1))


def dequantize_nvfp4_one_level(q, shape):
    return decode_table(q.codes, E2M1) * scale_values(decode_table(q.scales, E4M3), (1, 16), shape)


def torchao_fp8_scale(amax, table):
    """torchao 0.18.0 float8_utils.py amax_to_scale: an encode scale, by way of a float64 reciprocal."""
    amax = np.maximum(np.asarray(amax, np.float64), 1e-12)
    return (1 / amax * table[-1]).astype(F32)


def quantize_fp8_torchao(x, table, amax=None):
    amax = amax_of(x, amax)
    scale = torchao_fp8_scale(amax, table)
    return Quantized(encode_table(np.asarray(x, F32) * scale, table).reshape(-1), None, F32(1) / scale, amax)


def fp8_torchao(table):
    return Recipe((0, 0), lambda x, amax=None: quantize_fp8_torchao(x, table, amax),
                  lambda q, shape: decode_table(q.codes, table) / torchao_fp8_scale(q.amax, table))


def quantize_fp8_torchao_rowwise(x):
    """config.py's rowwise recipe sets round_scales_to_power_of_2; its scales divide when decoding."""
    x = np.asarray(x, F32)
    scale = float_exp2(np.floor(float_log2(torchao_fp8_scale(amax_with_nan(x, 1), E4M3))))
    return Quantized(encode_table(x * scale[:, None], E4M3).reshape(-1), scale)


def dequantize_fp8_torchao_rowwise(q, shape):
    return (decode_table(q.codes, E4M3).reshape(shape) / q.scales[:, None]).reshape(-1)


# ----------------------------------------------------------------------------------------------------------- modelopt


def quantize_mxfp8_modelopt(x):
    """nvidia-modelopt 0.47.0 mxfp8_tensor.py: NaN is not above zero, so that its block has the least scale."""
    blocks = to_blocks(x, MX_BLOCK)
    wanted = amax_with_nan(blocks, 1) / F32(448)
    exponent = np.where(wanted > 0, np.ceil(float_log2(wanted)), F32(-127))
    byte = (clamp(exponent, -127, 127) + 127).astype(np.uint8)
    return Quantized(encode_table(blocks * e8m0_inverse(byte)[:, None], E4M3).reshape(-1), byte)


def quantize_mxfp4_modelopt(x):
    """mxfp4_tensor.py: ties toward zero, and zero is -0. An exponent of NaN or Inf becomes the byte 0 on x86."""
    blocks = to_blocks(x, MX_BLOCK)
    exponent = np.ceil(np.maximum(float_log2(amax_with_nan(blocks, 1) / F32(6)), F32(-127)))
    scaled = blocks / float_exp2(exponent)[:, None]
    byte = np.where(np.isfinite(exponent), exponent + 127, 0).astype(np.uint8)
    codes = encode_ties_to_zero(scaled) | np.where(scaled > 0, 0, 8)
    return Quantized(codes.reshape(-1).astype(np.uint8), byte)


def modelopt_codes(blocks, byte, outer):
    """nvfp4_tensor.py _cast_fp4: a NaN is the largest, and positive; so is a zero."""
    scaled = blocks / (decode_table(byte, E4M3) * outer)[:, None]
    return without_signed_zero(encode_table(scaled, E2M1), scaled).reshape(-1)


def quantize_nvfp4_modelopt(x, amax=None):
    """nvfp4_tensor.py quantize, get_weights_scaling_factor, _cast_per_block_scale_to_fp8."""
    amax = amax_of(x, amax)
    outer = amax / F32(2688)
    blocks = to_blocks(x, (1, 16))
    wanted = amax_with_nan(blocks, 1) / (F32(6) * outer)
    wanted = clamp(np.where(wanted == 0, F32(1), wanted), 2.0**-9, 448)
    byte = encode_table(wanted, E4M3)
    return Quantized(modelopt_codes(blocks, byte, outer), byte, outer, amax)


def quantize_nvfp4_modelopt_static(x, amax=None):
    """get_weights_scaling_factor_from_quantizer after max calibration, which refuses NaN and Inf (calib/max.py)."""
    amax = amax_of(x, amax)
    outer = amax / F32(2688)
    blocks = to_blocks(x, (1, 16))
    wanted = amax_with_nan(blocks, 1) / F32(6)
    wanted = np.where(wanted == 0, F32(1), wanted) * F32(448) / (amax / F32(6))
    byte = encode_table(clamp(wanted, 2.0**-9, 448), E4M3)
    return Quantized(modelopt_codes(blocks, byte, outer), byte, outer, amax)


def dequantize_nvfp4_modelopt(q, shape):
    """Its table has 0 for -0."""
    value = decode_table(q.codes, E2M1) + F32(0)
    return value * scale_values(decode_table(q.scales, E4M3) * q.global_scale, (1, 16), shape)


# -------------------------------------------------------------------------------------------------- compressed-tensors


def quantize_nvfp4_compressed_tensors(x, to_dtype, amax=None):
    """compressed-tensors 0.20.1 helpers.py generate_gparam, calculate_qparams, forward_helpers.py _quantize. What the
    observer of llm-compressor hands over, and so the arithmetic on it, is in the weights' type."""
    amax = amax_of(x, amax)
    outer = to_dtype(to_dtype(F32(1) / np.maximum(amax, F32(2.0**-126))) * F32(2688))
    outer = outer if np.isfinite(outer) else F32(1)
    blocks = to_blocks(x, (1, 16))
    wanted = clamp(outer * to_dtype(amax_with_nan(blocks, 1) / F32(6)), -448, 448)
    byte = encode_table(wanted, E4M3)
    byte = np.where(byte == 0, 0x20, byte).astype(np.uint8)
    scaled = blocks / (decode_table(byte, E4M3) / outer)[:, None]
    codes = without_signed_zero(encode_table(scaled, E2M1), scaled)
    return Quantized(codes.reshape(-1), byte, F32(1) / outer, amax, np.isnan(scaled).reshape(-1))


def nvfp4_compressed_tensors(to_dtype):
    def dequantize(q, shape):
        """compressors/nvfp4: divides by the encode scale, which is not what is kept."""
        amax = q.amax
        outer = to_dtype(to_dtype(F32(1) / np.maximum(amax, F32(2.0**-126))) * F32(2688))
        outer = outer if np.isfinite(outer) else F32(1)
        return decode_table(q.codes, E2M1) * scale_values(decode_table(q.scales, E4M3) / outer, (1, 16), shape)

    return Recipe((1, 16), lambda x, amax=None: quantize_nvfp4_compressed_tensors(x, to_dtype, amax), dequantize,
                  machine_made=NAN_CODES)


def mx_compressed_tensors(table, offset):
    """mxfp_utils.py round_to_power_2, generate_mx_scales: up from 1.75 times a power of two, for either element. From
    1.75 2^127 on the scale is Inf before x86 makes it the byte 7f."""

    def quantize(x):
        blocks = to_blocks(x, MX_BLOCK)
        amax = amax_with_nan(blocks, 1)
        power = bits_of(amax) + (1 << 21) & 0x7F800000
        overflows = power == 0x7F800000
        byte = np.where(overflows, 0x7F, np.maximum((power >> 23) - offset, 0)).astype(np.uint8)
        scale = np.where(overflows, F32(np.inf), power_of_two(byte.astype(np.int64) - 127))
        scaled = blocks / scale[:, None]
        codes = encode_table(scaled, table)
        codes = without_signed_zero(codes, scaled) if table is E2M1 else codes
        is_open = np.isnan(amax)
        open_codes = is_open[:, None] | (np.isnan(scaled) if table is E2M1 else False)
        open_codes = np.broadcast_to(open_codes, scaled.shape).reshape(-1)
        return Quantized(codes.reshape(-1), byte, open_codes=open_codes, open_scales=is_open)

    return Recipe(MX_BLOCK, quantize, lambda q, shape: dequantize_mx(q, table),
                  machine_made="the bits of a NaN go into its block's exponent; 4 bits hold no NaN")


# ---------------------------------------------------------------------------------------------------------------- ggml


def search_e2m1(x, half_scale):
    """The first of 0, 1, 2, 3, 4, 6, 8, 12, 0, -1 ... -12 times half the scale that is nearest; a NaN distance of
    every value leaves the first."""
    values = np.concatenate([2 * E2M1, -2 * E2M1]).astype(F32)
    best = np.zeros(x.shape, np.uint8)
    least = np.abs(values[0] * half_scale - x)
    for code in range(1, 16):
        distance = np.abs(values[code] * half_scale - x)
        nearer = distance < least
        best, least = np.where(nearer, np.uint8(code), best), np.where(nearer, distance, least)
    return best


def quantize_mxfp4_ggml(x):
    """gguf 0.19.0 quants.py, MXFP4. Exponents below -127 wrap around, and Inf's is 0, as x86 casts them."""
    blocks = to_blocks(x, MX_BLOCK)
    amax = amax_with_nan(blocks, 1)
    exponent = np.floor(float_log2(np.where((amax > 0) & np.isfinite(amax), amax, F32(1)))).astype(np.int64) + 125
    byte = np.where((amax > 0) & np.isfinite(amax), exponent % 256, 0).astype(np.uint8)
    half_scale = power_of_two(byte.astype(np.int64) - 128)
    return Quantized(search_e2m1(blocks, half_scale[:, None]).reshape(-1), byte)


def dequantize_mxfp4_ggml(q, shape):
    """Half the scale times twice the value; the byte ff is a power of two as others are."""
    half_scale = power_of_two(q.scales.astype(np.int64) - 128)
    return ((decode_table(q.codes, E2M1) * F32(2)).reshape(-1, 32) * half_scale[:, None]).reshape(-1)


def ggml_ue4m3(x):
    """ggml-impl.h ggml_fp32_to_ue4m3: half up by the fourth bit alone, and everything from 248 on is 448."""
    bounded = np.where(x > 0, np.minimum(x, F32(448)), F32(0)).astype(F32)
    bits = bits_of(bounded)
    exponent, mantissa = (bits >> 23) - 127 + 7, (bits & 0x7FFFFF) >> 19
    subnormal = np.minimum((bounded * F32(512) + F32(0.5)).astype(np.int64), 7)
    normal = (exponent << 3) + ((mantissa + 1) >> 1)
    normal = np.where(normal >= 15 << 3, 0x7E, normal)
    return np.where(bounded == 0, 0, np.where(exponent <= 0, subnormal, normal)).astype(np.uint8)


def quantize_nvfp4_ggml(x):
    """ggml 0.25.3 ggml-quants.c quantize_row_nvfp4_ref: no tensor scale; a scale of zero leaves zeros."""
    blocks = to_blocks(x, (1, 16))
    byte = ggml_ue4m3(amax_dropping_nan(blocks, 1) / F32(6))
    half_scale = decode_table(byte, E4M3) * F32(0.5)
    return Quantized(search_e2m1(blocks, half_scale[:, None]).reshape(-1), byte)


# --------------------------------------------------------------------------------------------------------- fouroversix


def fouroversix_value(scaled):
    """reference.py fake_quantize_to_e2m1: nothing stops above 6."""
    x = np.abs(scaled)
    value = np.where(x < 2, np.round(x * 2) / 2, np.where(x < 4, np.round(x), 2 * np.round(x / 2)))
    return (value * np.where(np.isnan(scaled), 0, np.sign(scaled))).astype(F32)


def fouroversix_code(value):
    """The value's BF16 exponent and first bit beside its sign: 8 and 10 give the code of -0."""
    x = np.abs(value)
    bits = bits_of(x)
    magnitude = np.where(x >= 1, ((bits >> 23) - 126) << 1 | (bits >> 22) & 1, (x * 2).astype(np.int64))
    return (magnitude & 15 | np.where(np.signbit(value), 8, 0)).astype(np.uint8)


def sum_in_pytorch_order(terms):
    """torch.sum over the last of 16, or of 256, on a CPU: vectors of 8, four of them at a time."""
    blocks, size = terms.shape
    if size == 16:
        partial = terms[:, :8] + terms[:, 8:]
    else:
        steps = terms.reshape(blocks, size // 32, 4, 8)
        rows = np.zeros((blocks, 4, 8), F32)
        for j in range(size // 32):
            rows = rows + steps[:, j]
        partial = ((rows[:, 0] + rows[:, 1]) + rows[:, 2]) + rows[:, 3]
    total = partial[:, 0]
    for i in range(1, 8):
        total = total + partial[:, i]
    return total


LOSSES = {
    "mse": lambda difference: sum_in_pytorch_order(difference * difference),
    "mae": lambda difference: sum_in_pytorch_order(np.abs(difference)),
    "abs-max": lambda difference: np.max(np.abs(difference), 1),
}


class FourOverSix:
    """fouroversix 1.0.5 quantize/pytorch/reference.py quantize_to_nvfp4, select_fouroversix. The decode factor of a
    tensor of zeros is not the package's, which keeps the largest magnitude alone: 1."""

    def __init__(self, rule, block):
        self.rule, self.block = rule, block
        self.largest = F32(4 if rule == "static-4" else 6)
        self.product = self.largest * F32(256 if rule in LOSSES else 448)

    def candidate(self, blocks, wanted, decode):
        byte = encode_table(wanted, E4M3)
        factor = F32(1) / (decode * decode_table(byte, E4M3))
        scaled = np.where((byte == 0)[:, None], F32(0), blocks * factor[:, None])
        return byte, scaled, fouroversix_value(scaled)

    def loss(self, blocks, byte, value, amax):
        restored = value * decode_table(byte, E4M3)[:, None] * amax / self.product
        return LOSSES[self.rule](restored - blocks)

    def quantize(self, x, amax=None):
        amax = amax_of(x, amax)
        encode = F32(0) if amax == 0 else self.product / amax
        decode = F32(1) if amax == 0 else F32(1) / encode
        blocks = to_blocks(x, self.block)
        wanted = amax_with_nan(blocks, 1) / self.largest * encode
        byte, scaled, value = self.candidate(blocks, wanted, decode)
        if self.rule in LOSSES:
            other = self.candidate(blocks, wanted * F32(1.5), decode)
            four = self.loss(blocks, other[0], other[2], amax) < self.loss(blocks, byte, value, amax)
            byte = np.where(four, other[0], byte)
            scaled, value = (np.where(four[:, None], p, q) for p, q in zip(other[1:], (scaled, value)))
        # A scale of the block's own rounds down by a third at most.
        is_open = from_blocks(~(np.abs(scaled) < 10), self.block, x.shape)
        codes = from_blocks(fouroversix_code(value), self.block, x.shape)
        return Quantized(codes, byte, decode, amax, is_open)

    def dequantize(self, q, shape):
        scale = scale_values(decode_table(q.scales, E4M3), self.block, shape)
        return decode_table(q.codes, E2M1) * scale * q.amax / self.product


def fouroversix(rule, block=(1, 16)):
    recipe = FourOverSix(rule, block)
    return Recipe(block, recipe.quantize, recipe.dequantize,
                  machine_made=NAN_CODES + "; values from 10 on, as an --amax too small gives, have no code")


# ------------------------------------------------------------------------------------------------------------- Quartet


def quantize_mxfp4_quartet_absmax(x):
    """QuTLASS epilogue_quant.h, abs_max: the exponent of the largest, and elements times 3."""
    blocks = to_blocks(x, MX_BLOCK)
    byte = (bits_of(amax_dropping_nan(blocks, 1) + F32(1e-8)) >> 23).astype(np.uint8)
    scale = (byte.astype(np.uint32) << 23).view(F32)
    return Quantized(encode_table(blocks / scale[:, None] * F32(3), E2M1).reshape(-1), byte)


def dequantize_mxfp4_quartet_absmax(q, shape):
    return dequantize_mx(q, E2M1) / F32(3)


# ------------------------------------------------------------------------------------------------------------- recipes

PACKAGE_RECIPES = torchao_mx_recipes() | {
    "nvfp4/torchao": Recipe((1, 16), quantize_nvfp4_torchao, dequantize_nvfp4_torchao, machine_made=NAN_CODES),
    "nvfp4/torchao-one-level": Recipe((1, 16), quantize_nvfp4_torchao_one_level, dequantize_nvfp4_one_level,
                                      machine_made=NAN_CODES),
    "fp8/torchao-tensorwise": fp8_torchao(E4M3),
    "fp8/torchao-tensorwise-e5m2": fp8_torchao(E5M2),
    "fp8/torchao-rowwise": Recipe((1, 0), quantize_fp8_torchao_rowwise, dequantize_fp8_torchao_rowwise),
    "mxfp8/modelopt": Recipe(MX_BLOCK, quantize_mxfp8_modelopt, lambda q, shape: dequantize_mx(q, E4M3)),
    "mxfp4/modelopt": Recipe(MX_BLOCK, quantize_mxfp4_modelopt, lambda q, shape: dequantize_mx(q, E2M1)),
    "nvfp4/modelopt": Recipe((1, 16), quantize_nvfp4_modelopt, dequantize_nvfp4_modelopt),
    "nvfp4/modelopt-static": Recipe((1, 16), quantize_nvfp4_modelopt_static, dequantize_nvfp4_modelopt),
    "nvfp4/compressed-tensors": nvfp4_compressed_tensors(lambda x: x),
    "nvfp4/compressed-tensors-bf16": nvfp4_compressed_tensors(to_bf16),
    "mxfp4/compressed-tensors": mx_compressed_tensors(E2M1, 2),
    "mxfp8/compressed-tensors": mx_compressed_tensors(E4M3, 8),
    "mxfp4/ggml": Recipe(MX_BLOCK, quantize_mxfp4_ggml, dequantize_mxfp4_ggml),
    "nvfp4/ggml": Recipe((1, 16), quantize_nvfp4_ggml, dequantize_nvfp4_one_level),
    "mxfp4/quartet-absmax": Recipe(MX_BLOCK, quantize_mxfp4_quartet_absmax, dequantize_mxfp4_quartet_absmax),
} | {f"nvfp4/fouroversix-{rule}": fouroversix(rule) for rule in ("static-6", "static-4", *LOSSES)} | {
    f"nvfp4/fouroversix-{rule}-2d": fouroversix(rule, (16, 16)) for rule in ("static-6", "mse")}
