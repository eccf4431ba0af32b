"""Holds formats_numpy.py, recipes_numpy.py and recipes_packages.py to values printed elsewhere: conversions recorded on
a B200 and by CUDA's host headers, Random123's known answers, TransformerEngine's chain of scales, arithmetic done by
hand, and what the publishers' packages answer (tests/golden/recipes)."""

import pathlib
import unittest

import numpy as np

from formats_numpy import (E2M1, E2M3, E3M2, E4M3, E5M2, F32, encode_e4m3_overflowing, encode_stochastic, encode_table,
                           philox4x32, random_hadamard, rs_fields_e2m1x4, rs_fields_e4m3x4, te_random_block, to_bf16)
from recipes_numpy import (ceil_to_power_of_two, e8m0_floor, e8m0_up_satfinite, four_over_six_candidate,
                           global_encode_scale, quantize_nvfp4_te, te_inverse)
from recipes_oracle import RECIPES, codes_of, read_safetensors, values_of
from recipes_packages import (EMAX, MANTISSA_BITS, ggml_ue4m3, sum_in_pytorch_order, torchao_fp8_scale, torchao_main,
                              torchao_release)

GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "recipes"

# Every E2M1 value and midpoint times a little less than 1, largest first; all exact in bf16.
BLOCK = np.array([1, -1, .9140625, .75, .66796875, .58203125, .5, .416015625, .333984375, .291015625, .25, .208984375,
                  .166015625, .125, .0830078125, .041748046875], F32)


def from_bits(*bits):
    return np.array(bits, np.uint32).view(F32)


def hex_bits(value):
    return f"{int(np.asarray(value, F32).view(np.uint32)):08x}"


def hex_codes(codes):
    return "".join(f"{code:x}" for code in codes)


def te_block(values, amax, words=None):
    x = np.asarray(values, F32).reshape(1, 16)
    q = quantize_nvfp4_te(x, amax, words=words)
    inverse = te_inverse(q.scales, global_encode_scale(F32(amax)))
    return f"{q.scales[0]:02x} {hex_bits(inverse[0])} {hex_codes(q.codes)}"


class Formats(unittest.TestCase):
    def test_e2m1_ties_and_specials(self):
        x = from_bits(0x3E800000, 0x3E800001, 0x3F400000, 0x3FA00000, 0x3FE00000, 0x40200000, 0x40600000, 0x40A00000,
                      0x40A00001, 0x40E00000, 0xBE800000, 0x80000000, 0xFFC00000, 0xFF800000)
        self.assertEqual(hex_codes(encode_table(x, E2M1)), "0122446677887f")

    def test_e4m3_ties_and_specials(self):
        x = from_bits(0x3A800000, 0x3A800001, 0x3B400000, 0x3BA00000, 0x3C700000, 0x3F880000, 0x3F980000, 0x43E80001,
                      0xFF800000, 0xFFC00000, 0x80000001)
        self.assertEqual(encode_table(x, E4M3).tobytes().hex(), "000102020838" + "3a7efe7f80")

    def test_e5m2_and_six_bits(self):
        x = from_bits(0x37000000, 0x37000001, 0x3F900000, 0x3FB00000, 0x47700000, 0xFFFFFFFF)
        self.assertEqual(encode_table(x, E5M2).tobytes().hex(), "00013c3e7b7f")
        self.assertEqual(int(encode_table(F32(7.75), E2M3)), 0x1F)
        self.assertEqual(int(encode_table(F32(0.21875), E3M2)), 0x04)
        self.assertEqual(int(encode_table(F32(-np.nan), E3M2)), 0x1F)

    def test_e4m3_of_pytorch_overflows_to_nan_with_the_sign(self):
        x = np.array([464, np.nextafter(F32(464), F32(500)), -1000, -np.inf, np.nan], F32)
        self.assertEqual(encode_e4m3_overflowing(x).tobytes().hex(), "7e7fffff7f")

    def test_stochastic_threshold(self):
        cases = [(0.75, 0x7FFF, 1), (0.75, 0x8000, 2), (0.1, 0xCCCC, 0), (0.1, 0xCCCD, 1), (-0.3, 0x6666, 8),
                 (-0.3, 0x6667, 9), (5.9, 0x0CCC, 6), (5.9, 0x0CCD, 7), (6.5, 0, 7), (6.5, 0xFFFF, 7)]
        for x, random, code in cases:
            self.assertEqual(int(encode_stochastic(F32(x), E2M1, np.int64(random), 16)), code, (x, random))
        cases = [(1.0625, 0x7FFF, 0x38), (1.0625, 0x8000, 0x39), (2.0**-10, 0x7FFF, 0), (2.0**-10, 0x8000, 1),
                 (2.0**-17, 0xFEFF, 0), (2.0**-17, 0xFF00, 1), (470, 0xFFFF, 0x7E)]
        for x, random, code in cases:
            self.assertEqual(int(encode_stochastic(F32(x), E4M3, np.int64(random), 16)), code, (x, random))

    def test_stochastic_with_32_bits(self):
        x = F32(1 + 2.0**-23)  # 2^-20 of an ulp above 1
        for random, code in [(0, 0x38), (2**32 - 2**12 - 1, 0x38), (2**32 - 2**12, 0x39), (2**32 - 1, 0x39)]:
            self.assertEqual(int(encode_stochastic(x, E4M3, np.int64(random), 32)), code)

    def test_random_fields(self):
        # Operands a, b, e, f are the last to the first of the lanes.
        fields = rs_fields_e4m3x4(0x12345678)[::-1]
        self.assertEqual([f"{v:04x}" for v in fields], ["2c48", "1234", "1e6a", "5678"])
        fields = rs_fields_e2m1x4(0x12345678)[::-1]
        self.assertEqual([f"{v:04x}" for v in fields], ["6a48", "1256", "1e2c", "3478"])

    def test_recorded_stochastic_registers(self):
        a, b, e, f = from_bits(0x3E7FFFF9, 0x3E800003, 0x3F000000, 0x3F400000)
        codes = encode_stochastic(np.array([f, e, b, a]), E2M1, rs_fields_e2m1x4(0x00200000), 16)
        self.assertEqual(hex_codes(codes[::-1]), "0011")
        a, b, e, f = from_bits(0x40E00000, 0x40FFFFFF, 0x41000000, 0x42C80000)
        codes = encode_stochastic(np.array([f, e, b, a]), E4M3, rs_fields_e4m3x4(0x7F80817E), 16)
        self.assertEqual(codes[::-1].tobytes().hex(), "4e50506d")

    def test_philox(self):
        ones = 2**32 - 1
        self.assertEqual(philox4x32((0, 0), (0, 0, 0, 0)), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8))
        self.assertEqual(philox4x32((ones,) * 2, (ones,) * 4), (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD))
        self.assertEqual(te_random_block(1234, 0, 0), (0x2090B348, 0xDA7CF0AB, 0x4401906F, 0xCBCA470E))
        self.assertEqual(te_random_block(1234, 1, 0), (0xD115A128, 0x52FC7C75, 0xC7F33F17, 0x0F1539DB))

    def test_hadamard(self):
        e0, e3 = np.eye(16)[0], np.eye(16)[3]
        self.assertTrue((random_hadamard(e0) == 0.25).all())
        self.assertEqual("".join("-" if v < 0 else "+" for v in random_hadamard(e3)), "-++--++--++--++-")
        self.assertEqual(random_hadamard(np.arange(1, 17)).tolist(),
                         [-15.5, -7.5, 7.5, -0.5, 7.5, -0.5, -15.5, 8.5, 8.5, 16.5, 1.5, 1.5, 1.5, -2.5, 10.5, -17.5])


class Nvfp4(unittest.TestCase):
    def test_te_tensor_scale(self):
        for amax, encode, decode in [(2688, "3f800000", "3f800000"), (1, "45280000", "39c30c31"),
                                     (3, "44600000", "3a924925"), (5, "44066666", "3af3cf3e"),
                                     (0, "3f800000", "3f800000"), (np.inf, "3f800000", "3f800000"),
                                     (np.nan, "7f7fffff", "00200000"), (1e-36, "7f7fffff", "00200000")]:
            with np.errstate(all="ignore"):
                scale = global_encode_scale(F32(amax))
                self.assertEqual((hex_bits(scale), hex_bits(F32(1) / scale)), (encode, decode), amax)

    def test_te_blocks(self):
        values = [6, -6, 5, 4, 3.5, 3, 2.5, 2, 1.75, 1.5, 1.25, 1, .75, .5, .25, -0.0]
        self.assertEqual(te_block(values, 2688), "38 3f800000 7f66654443222108")
        self.assertEqual(te_block(BLOCK, 1), "7e 40c00000 7f76655443332211")
        self.assertEqual(te_block(BLOCK, 3), "71 40c71c71 7f76665544332211")

    def test_te_stochastic_blocks(self):
        words = te_random_block(1234, 0, 0)
        self.assertEqual(te_block(BLOCK, 3, words), "71 40c71c71 7f67665444322111")
        self.assertEqual(te_block(BLOCK, 3, [0] * 4), "71 40c71c71 7f66655443322110")
        self.assertEqual(te_block(BLOCK, 3, [2**32 - 1] * 4), "71 40c71c71 7f77766554433221")

    def test_te_ends_of_the_scale(self):
        with np.errstate(all="ignore"):
            self.assertEqual(te_block([0.0] * 8 + [-0.0] * 8, 0), "00 7f7fffff 0000000088888888")
            tiny = [2.0**-20] * 8 + [-(2.0**-20)] * 4 + [0, 0, -0.0, -0.0]
            self.assertEqual(te_block(tiny, 1024), "00 7f7fffff 77777777ffff0088")
            self.assertEqual(te_block([1] * 15 + [np.inf], np.inf), "7e 3b124925 0000000000000007")
            self.assertEqual(te_block([1e-36] * 16, 1e-36), "66 7c924925 7777777777777777")

    def test_te_order_of_operations(self):
        amax, block = from_bits(0x3F820000, 0x3C430000)
        q = quantize_nvfp4_te(np.full((1, 16), block), amax)
        self.assertEqual(int(q.scales[0]), 0x4B)
        divided = block / F32(6) * global_encode_scale(amax)
        self.assertEqual(int(encode_table(divided, E4M3)), 0x4A)

    def test_four_over_six(self):
        for values, amax, picked, errors in [
                ([4, -4, 3, 2, 1.5, 1, .5, 0] + [4] * 8, 6, 0x7E, ("00000000", "3eebc14b")),
                ([6, -6, 3, 2, 1.5, 1, .5, 0] + [4] * 8, 6, 0x7E, ("00000000", "00000000")),
                ([1] * 16, 8, 0x66, ("3d149b91", "00000000"))]:
            x = np.array(values, F32).reshape(1, 16)
            q = RECIPES["nvfp4/te-4over6-mse"].quantize(x, F32(amax))
            self.assertEqual(int(q.scales[0]), picked)
            encode = global_encode_scale(F32(amax))
            base = np.abs(x).max() / F32(6) * encode
            for byte, error in zip((np.fmin(base * F32(1.5), 448), base), errors):
                byte = encode_table(np.array([byte]), E4M3)
                got = four_over_six_candidate(x, byte, encode, F32(amax), 448, True)[1][0]
                self.assertEqual(hex_bits(got), error)

    def test_fast_math_drops_the_sign_of_zero(self):
        x = np.array([[1.0, -0.0, 0.0, -1e-30] + [0.5] * 12], F32)
        self.assertEqual(hex_codes(RECIPES["nvfp4/te-fast-math"].quantize(x).codes[:4]), "7008")
        self.assertEqual(hex_codes(RECIPES["nvfp4/te"].quantize(x).codes[:4]), "7808")

    def test_tile_takes_the_amax_of_its_sixteen_rows(self):
        x = np.ones((32, 32), F32)
        x[17, 3] = 6
        q = RECIPES["nvfp4/te-2d"].quantize(x)
        self.assertEqual(q.scales.tolist(), [0x69, 0x69, 0x7E, 0x69])
        codes = q.codes.reshape(32, 32)
        self.assertEqual((codes[17, 3], codes[16, 0], codes[0, 0]), (7, 2, 7))

    def test_zero_and_nan_blocks_part_the_kernels(self):
        x = np.ones((1, 64), F32)
        x[0, 16:32] = -0.0
        x[0, 32] = np.nan
        x[0, 48:] = np.nan
        with np.errstate(all="ignore"):
            bytes_of = {name: RECIPES[name].quantize(x).scales.tolist()
                        for name in ("nvfp4/te", "nvfp4/flashinfer", "nvfp4/cutlass")}
        self.assertEqual(bytes_of["nvfp4/te"], [0x7E, 0, 0x7E, 0])
        self.assertEqual(bytes_of["nvfp4/flashinfer"], [0x7E, 0, 0x7E, 0x7F])
        self.assertEqual(bytes_of["nvfp4/cutlass"], [0x7E, 0, 0x7F, 0x7F])

    def test_ms_eden_scales_grow_by_the_ratio(self):
        rng = np.random.default_rng(1)
        x = rng.standard_normal((64, 128)).astype(F32)
        recipe = RECIPES["nvfp4/ms-eden"]
        part, wanted = recipe.stochastic(x)
        self.assertEqual(part, "scales")
        always_up = recipe.quantize(x, words=np.full(wanted.size, 2**32 - 1))
        always_down = recipe.quantize(x, words=np.zeros(wanted.size))
        flat = x.reshape(-1).astype(np.float64)
        overlap = [(recipe.dequantize(q, x.shape) * flat).sum() / (flat * flat).sum() for q in (always_down, always_up)]
        self.assertLess(overlap[0], 1)
        self.assertGreater(overlap[1], 1)


def scales_of_torchao(source, mode, table, amaxes):
    """The bytes of blocks with these largest magnitudes."""
    amaxes = np.array(amaxes, F32)
    with np.errstate(all="ignore"):
        byte, _ = source(mode, EMAX[len(table)], MANTISSA_BITS[len(table)], table[-1])(amaxes[:, None], amaxes)
    return byte.tobytes().hex()


class Mx(unittest.TestCase):
    def test_scales_of_e4m3(self):
        cases = [(448, 0x7F, 0x7F), (449, 0x7F, 0x80), (480, 0x7F, 0x80), (511, 0x7F, 0x80), (512, 0x80, 0x80),
                 (1, 0x77, 0x77), (1.75, 0x77, 0x77), (1.8125, 0x77, 0x78), (1.9375, 0x77, 0x78), (0, 0, 0),
                 (1.17549e-38, 0, 0), (3.38953e38, 0xF6, 0xF7), (np.inf, 0xFF, 0xFE), (np.nan, 0xFF, 0xFF)]
        amax = np.array([case[0] for case in cases], F32)
        self.assertEqual(e8m0_floor(amax, 8).tolist(), [case[1] for case in cases])
        self.assertEqual(e8m0_up_satfinite(amax * (F32(1) / F32(448))).tolist(), [case[2] for case in cases])

    def test_scales_of_e5m2(self):
        amax = np.array([57344, 57345, 1.75, 1.8125], F32)
        self.assertEqual(e8m0_floor(amax, 15).tolist(), [0x7F, 0x7F, 0x70, 0x70])
        self.assertEqual(e8m0_up_satfinite(amax * (F32(1) / F32(57344))).tolist(), [0x7F, 0x80, 0x70, 0x71])

    def test_scales_of_torchao_main(self):
        amaxes = [448, 449, 480, 511, 512, 1, 1.75, 1.8125, 1.9375, 0, 1.17549e-38, 3.38953e38, np.inf, np.nan]
        self.assertEqual(scales_of_torchao(torchao_main, "ceil", E4M3, amaxes), "8080808080777878780000f7ffff")
        self.assertEqual(scales_of_torchao(torchao_main, "even", E4M3, amaxes), "7f7f7f8080777777780000ffffff")
        self.assertEqual(scales_of_torchao(torchao_main, "rceil", E4M3, amaxes), "7f80808080777778780000f7ffff")
        # Below 2^-127 times 448, and halfway between 0 and 2^-127 there, which a subnormal passes strictly.
        self.assertEqual(scales_of_torchao(torchao_main, "rceil", E4M3, [2.0**-127, 448 * 2.0**-127, 450 * 2.0**-127]),
                         "000001")

    def test_scales_of_torchao_of_e5m2_and_e2m1(self):
        amaxes = [57344, 57345, 1.75, 1.8125]
        for source in (torchao_main, torchao_release):
            self.assertEqual(scales_of_torchao(source, "floor", E5M2, amaxes), "7f7f7070")
            self.assertEqual(scales_of_torchao(source, "rceil", E5M2, amaxes), "7f807071")
            self.assertEqual(scales_of_torchao(source, "ceil", E5M2, amaxes), "80807171")
            self.assertEqual(scales_of_torchao(source, "even", E5M2, amaxes), "7f7f7070")
            self.assertEqual(scales_of_torchao(source, "even", E5M2, [1.874, 1.875]), "7071")
            self.assertEqual(scales_of_torchao(source, "even", E2M1, [6.875, 7, 1.75, 1.7]), "7f807e7d")

    def test_torchao_release_and_main_part_at_the_ends(self):
        ends = [3.38953e38, np.inf, np.nan]
        self.assertEqual(scales_of_torchao(torchao_release, "ceil", E4M3, ends), "f7f7ff")
        self.assertEqual(scales_of_torchao(torchao_release, "even", E4M3, ends), "f7f7ff")
        self.assertEqual(scales_of_torchao(torchao_release, "rceil", E4M3, ends), "f7feff")
        tiny = np.full((1, 32), 2.0**-120, F32)
        codes = {name: int(RECIPES[f"mxfp8/torchao-{name}"].quantize(tiny).codes[0])
                 for name in ("main-ceil", "ceil", "main-rceil", "rceil")}
        self.assertEqual(codes, {"main-ceil": 0x70, "ceil": 0x68, "main-rceil": 0x70, "rceil": 0x00})
        # A float32 log2 does not see one ulp above 2^20.
        above = [448 * 2.0**20, np.nextafter(F32(448 * 2.0**20), F32(np.inf))]
        self.assertEqual(scales_of_torchao(torchao_main, "rceil", E4M3, above), "9394")
        self.assertEqual(scales_of_torchao(torchao_release, "rceil", E4M3, above), "9393")
        # It divides by 448 and 57344: a product with their reciprocals is one ulp more here (torchao 0.18.0 says so).
        self.assertEqual(scales_of_torchao(torchao_release, "rceil", E4M3, from_bits(0x3FE00002)), "77")
        self.assertEqual(scales_of_torchao(torchao_release, "rceil", E5M2, from_bits(0x3FE00004)), "70")

    def test_quartet_absmax_takes_three_times_the_quotient(self):
        x = np.zeros((4, 32), F32)
        x[0, :4] = [1.5, -1, 0.5, -0.0]  # of 2^0: 4.5, -3, 1.5
        x[2, :2] = [np.inf, 1]
        x[3, 0] = 2.0**127  # three times which no float holds
        recipe = RECIPES["mxfp4/quartet-absmax"]
        with np.errstate(all="ignore"):
            q = recipe.quantize(x)
            values = recipe.dequantize(q, x.shape)
        self.assertEqual(q.scales.tolist(), [127, 100, 255, 254])
        self.assertEqual([hex_codes(row) for row in q.codes.reshape(x.shape)[[0, 2, 3], :4]], ["6d38", "7000", "5000"])
        self.assertEqual(values[:3].tolist(), [F32(4) / F32(3), -1, 0.5])
        x = np.tile(np.array([2.0, 5 / 3], F32), (1, 16))  # codes of 3 and 2.5, the tie to 2, times 2
        q = recipe.quantize(x)
        self.assertEqual((q.scales[0], hex_codes(q.codes[:2])), (128, "54"))
        self.assertEqual(hex_bits(recipe.dequantize(q, x.shape)[1]), hex_bits(F32(4) / F32(3)))

    def test_edges_of_rounding_up(self):
        amax = from_bits(0x43DFFFFF, 0x43E00000, 0x43E00001)
        self.assertEqual([hex_bits(v) for v in amax * (F32(1) / F32(448))], ["3f800000", "3f800000", "3f800001"])

    def test_elements(self):
        x = np.zeros((1, 32), F32)
        x[0, :5] = [1, -0.5, 0.0078125, 0.001, -0.0]
        self.assertEqual(RECIPES["mxfp8/te"].quantize(x).codes[:5].tobytes().hex(), "78f0402880")
        x = np.zeros((1, 32), F32)
        x[0, :3] = [1.9375, 1.75, -1.9375]
        self.assertEqual(RECIPES["mxfp8/ocp"].quantize(x).codes[:3].tobytes().hex(), "7e7efe")
        self.assertEqual(RECIPES["mxfp8/te"].quantize(x).codes[:3].tobytes().hex(), "7876f8")

    def test_mxfp4_scales(self):
        x = np.zeros((6, 32), F32)
        x[:, 0] = [6, np.nextafter(F32(6), F32(7)), 4, 1e-40, 0, np.inf]
        with np.errstate(all="ignore"):
            scales = {name: RECIPES[name].quantize(x).scales.tolist()
                      for name in ("mxfp4/ocp", "mxfp4/round-up", "mxfp4/gpt-oss", "mxfp4/tseng")}
        self.assertEqual(scales["mxfp4/ocp"], [127, 127, 127, 0, 0, 255])
        self.assertEqual(scales["mxfp4/round-up"], [127, 128, 127, 0, 0, 254])
        self.assertEqual(scales["mxfp4/gpt-oss"], [127, 128, 127, 1, 0, 255])
        self.assertEqual(scales["mxfp4/tseng"], [127, 127, 127, 0, 0, 255])

    def test_tseng_takes_three_quarters_and_gives_them_back(self):
        x = np.zeros((1, 32), F32)
        x[0, :3] = [7.999, -4, 1]
        recipe = RECIPES["mxfp4/tseng"]
        part, scaled = recipe.stochastic(x)
        self.assertEqual(part, "codes")
        self.assertEqual(scaled[1:3].tolist(), [-3, 0.75])
        up = recipe.quantize(x, np.full(32, 2**32 - 1))
        self.assertEqual(hex_codes(up.codes[:3]), "7d2")
        self.assertEqual(hex_codes(recipe.quantize(x, np.zeros(32)).codes[:3]), "6d1")
        self.assertEqual(recipe.dequantize(up, x.shape)[:3].tolist(), [8, -4, F32(4) / F32(3)])

    def test_quartet_scale_comes_from_the_deviation(self):
        x = np.tile(np.array([3.0, -3.0], F32), 16).reshape(1, 32)  # deviation 3, times .487 is 1.46
        q = RECIPES["mxfp4/quartet"].quantize(x)
        self.assertEqual((int(q.scales[0]), hex_codes(q.codes[:2])), (127, "5d"))
        q = RECIPES["mxfp4/quartet"].quantize(np.zeros((1, 32), F32))
        self.assertEqual((int(q.scales[0]), int(q.codes[0])), (0x64, 0))


class Fp8(unittest.TestCase):
    def test_te_guards(self):
        for amax, stored in [(448, 1), (0, 1), (np.inf, 1), (np.nan, 1), (1e-38, 2.0**-128)]:
            with np.errstate(all="ignore"):
                q = RECIPES["fp8/te"].quantize(np.zeros((1, 1), F32), F32(amax))
            self.assertEqual(float(q.global_scale), stored)

    def test_deepseek_scales(self):
        x = np.zeros((2, 256), F32)
        x[0, 0], x[0, 128], x[1, 0] = 448, np.inf, np.nan
        with np.errstate(all="ignore"):
            row = RECIPES["fp8/deepseek-1x128"].quantize(x)
            power = RECIPES["fp8/deepseek-1x128-ue8m0"].quantize(x)
            tile = RECIPES["fp8/deepseek-128x128"].quantize(x)
        floor = F32(1e-4) * (F32(1) / F32(448))
        np.testing.assert_array_equal(row.scales, np.array([1, np.inf, np.nan, floor], F32))
        self.assertEqual(power.scales.tolist(), [1, 2.0**127, 2.0**127, 2.0**-22])
        self.assertEqual(tile.scales.shape, (2,))
        self.assertEqual((row.codes[0], row.codes[128], row.codes[129], row.codes[257]), (0x7E, 0x7F, 0, 0x7F))
        self.assertEqual((power.codes[128], power.codes[256], power.codes[257]), (0x7E, 0x7F, 0))

    def test_ceil_to_power_of_two(self):
        x = from_bits(0x3F800000, 0x3F800001, 0x00000001, 0x7F7FFFFF, 0x7F800000)
        self.assertEqual(ceil_to_power_of_two(x).tolist(), [1, 2, 2.0**-126, 2.0**127, 2.0**127])

    def test_torchao_takes_a_reciprocal_of_the_amax(self):
        self.assertEqual(torchao_fp8_scale(F32([448, 0, np.inf]), E4M3).tolist(), [1, F32(448e12), 0])

    def test_sums_are_in_the_order_of_pytorch(self):
        """torch.sum of PyTorch 2.15.0 on a CPU, of reciprocals in a scattered order."""
        for size, first, total in [(16, 1, "40585dde"), (16, 2, "401c21a2"), (256, 1, "40c3faa2"),
                                   (256, 2, "40a41a83")]:
            x = F32(1) / (np.arange(size) * 37 % size + first).astype(F32)
            self.assertEqual(hex_bits(sum_in_pytorch_order(x[None])[0]), total)

    def test_ggml_scales_round_by_one_bit(self):
        x = np.array([1.0624, 1.0625, 1.1874, 247.9, 248, 500, 2.0**-6 * 0.99, 2.0**-10, 0, np.nan], F32)
        self.assertEqual(ggml_ue4m3(x).tobytes().hex(), "383939777e7e07010000")


class Packages(unittest.TestCase):
    """Every byte of tests/golden/recipes, whose README.md says which of them are a package's."""

    def recipe_of(self, stem, dtype):
        name = stem.replace("-", "/", 1)
        return RECIPES.get(name + "-bf16" if dtype == "BF16" else name, RECIPES[name])

    def expected_parts(self, recipe, stem, x, metadata):
        with np.errstate(all="ignore"):
            q = recipe.quantize(x)
            values = recipe.dequantize(q, x.shape).astype(F32)
        scales = q.scales
        if scales is None:
            scales = np.atleast_1d(torchao_fp8_scale(q.amax, E5M2 if "e5m2" in stem else E4M3))
        elif recipe.block[0] > 1:  # the file repeats a tile's scale in each of its rows
            rows = np.repeat(scales.reshape(-1, x.shape[1] // recipe.block[1]), recipe.block[0], 0)
            scales = rows[: len(x)].reshape(-1)
        parts = {"codes": q.codes, "scales": scales, "values": to_bf16(values) if "values" in metadata else values}
        if "global_scale" in metadata:
            parts["global_scale"] = np.atleast_1d(q.amax if metadata["global_scale"] == "amax" else q.global_scale)
        return parts, q.open_codes

    def same(self, expected, got, nan_from):
        """Elementwise; NaNs are alike, of which those of 8 bits are the magnitudes from a number on."""
        if expected.dtype == F32:
            return (expected.view(np.uint32) == got.view(np.uint32)) | np.isnan(expected) & np.isnan(got)
        return (expected == got) | ((expected & 0x7F) >= nan_from) & ((got & 0x7F) >= nan_from)

    def compare_tensor(self, stem, name, source, answers, metadata):
        x = values_of(*source)
        recipe = self.recipe_of(stem, source[0])
        parts, open_codes = self.expected_parts(recipe, stem, x, metadata)
        for part, expected in parts.items():
            if f"{name}.{part}" not in answers:
                continue
            got = answers[f"{name}.{part}"][2]
            nan_from = 0x80
            if part == "codes":
                got = codes_of(answers[f"{name}.codes"], x.size)
                nan_from = 0x80 if stem.startswith(("nvfp4", "mxfp4", "mxfp6")) else 0x7D if "e5m2" in stem else 0x7F
            elif part == "scales" and stem.startswith("nvfp4"):
                nan_from = 0x7F
            elif part == "global_scale" and metadata["global_scale"] == "encode":
                with np.errstate(divide="ignore"):
                    got = F32(1) / got
            same = self.same(expected, got, nan_from)
            same = same | open_codes if part == "codes" else same
            self.assertTrue(same.all(), f"{stem} {name}.{part}: {np.flatnonzero(~same)[:5]} differ")

    def test_every_answer(self):
        inputs, _ = read_safetensors(GOLDEN / "inputs.safetensors")
        files = [path for path in sorted(GOLDEN.glob("*.safetensors")) if path.stem != "inputs"]
        self.assertGreaterEqual(len(files), 30)
        for path in files:
            answers, metadata = read_safetensors(path)
            for name, (dtype, shape, array) in inputs.items():
                if any(key.rsplit(".", 1)[0] == name for key in answers):
                    with self.subTest(path.stem, tensor=name):
                        self.compare_tensor(path.stem, name, (dtype, array.reshape(shape)), answers, metadata)


if __name__ == "__main__":
    unittest.main()
