// `halfulp mma`: operands from values and from what `quantize` wrote, the epilogue, the comparison, the walk, and what
// it refuses.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "lib/json.h"
#include "lib/random_values.h"
#include "tests/lib/test_files.h"
#include "tests/tools/npy_bytes.h"
#include "tests/tools/run_program.h"
#include "tests/tools/stored_tensors.h"

namespace halfulp {
namespace {

Array normals(const Shape& shape, uint64_t seed) {
  Array values{.shape = shape, .x = std::vector<float>(product(shape, 0, shape.size()))};
  for (std::size_t i = 0; i < values.x.size(); ++i) values.x[i] = float(normal(seed, 0, i));
  return values;
}

// Small integers, which every format holds and every accumulator adds exactly.
Array integers(const Shape& shape, uint64_t seed) {
  Array values = normals(shape, seed);
  for (float& x : values.x) x = std::clamp(std::round(x), -2.0f, 2.0f);
  return values;
}

std::vector<float> product_of(const Array& a, const Array& b) {
  std::vector<float> d;
  for (std::size_t i = 0; i < a.shape[0]; ++i)
    for (std::size_t j = 0; j < b.shape[0]; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < a.shape[1]; ++k) sum += a.x[i * a.shape[1] + k] * b.x[j * a.shape[1] + k];
      d.push_back(sum);
    }
  return d;
}

class Mma : public testing::Test {
 protected:
  void write(const std::string& name, const Array& values) { write_file(folder_ / (name + ".npy"), npy_of(values)); }

  void quantize(const std::string& name, const std::string& recipe, const std::string& to, const Words& options = {}) {
    const ProgramRun run = run_halfulp(joined(
        {"quantize", folder_ / (name + ".npy"), "-r", recipe, "-o", folder_ / to, "--progress", "none"}, options));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }

  // Operands by their names in the folder.
  ProgramRun mma(const std::string& a, const std::string& b, const std::string& accumulator,
                 const Words& options = {}) {
    return run_halfulp(
        joined({"mma", folder_ / a, folder_ / b, "--accumulator", accumulator, "--progress", "none"}, options));
  }

  Json json(const std::string& a, const std::string& b, const std::string& accumulator, const Words& options = {}) {
    const ProgramRun run = mma(a, b, accumulator, joined(options, {"--json"}));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? Json::parse(run.out) : Json();
  }

  std::vector<float> d(const std::string& a, const std::string& b, const std::string& accumulator,
                       const Words& options = {}) {
    const ProgramRun run = mma(a, b, accumulator, joined(options, {"-o", folder_ / "d.npy"}));
    EXPECT_EQ(run.exit_code, 0) << run.err;
    return run.exit_code == 0 ? npy_floats(folder_ / "d.npy") : std::vector<float>();
  }

  void refuses(const ProgramRun& run, int code, const std::vector<std::string>& says) {
    EXPECT_EQ(run.exit_code, code) << run.err << run.out;
    EXPECT_EQ(run.out, "");
    for (const std::string& words : says) EXPECT_NE(run.err.find(words), std::string::npos) << run.err;
  }

  TemporaryDirectory folder_;
};

const Words kE4m3{"--a-format", "e4m3", "--b-format", "e4m3"};

TEST_F(Mma, IsAMatrixTimesTheOthersTranspose) {
  const Array a = integers({5, 70}, 1), b = integers({3, 70}, 2);
  write("a", a), write("b", b);
  for (const char* accumulator : {"sm90.qgmma.f32", "sm90.mma_sync_fp8.f32", "cutlass.sm90.fp8", "ref.fp64"})
    EXPECT_EQ(d("a.npy", "b.npy", accumulator, kE4m3), product_of(a, b)) << accumulator;
}

TEST_F(Mma, WritesTheShapeOfTheProduct) {
  write("a", integers({5, 16}, 1)), write("b", integers({3, 16}, 2));
  d("a.npy", "b.npy", "ref.fp64");
  EXPECT_NE(read_file(folder_ / "d.npy").find("'shape': (5, 3)"), std::string::npos);
}

TEST_F(Mma, TakesTilesOneByOne) {
  const Array a = integers({2, 4, 32}, 1), b = integers({2, 3, 32}, 2);
  write("a", a), write("b", b);
  std::vector<float> expected;
  for (std::size_t tile = 0; tile < 2; ++tile) {
    const Array one{{4, 32}, {a.x.begin() + long(tile) * 128, a.x.begin() + long(tile + 1) * 128}};
    const Array other{{3, 32}, {b.x.begin() + long(tile) * 96, b.x.begin() + long(tile + 1) * 96}};
    for (const float x : product_of(one, other)) expected.push_back(x);
  }
  EXPECT_EQ(d("a.npy", "b.npy", "sm90.hmma.f32", {"--a-format", "bf16", "--b-format", "bf16"}), expected);
  EXPECT_NE(read_file(folder_ / "d.npy").find("'shape': (2, 4, 3)"), std::string::npos);
}

TEST_F(Mma, WritesHalvesUnderARowWithHalves) {
  write("a", integers({2, 16}, 1)), write("b", integers({2, 16}, 2));
  d("a.npy", "b.npy", "sm90.hmma.f16", {"--a-format", "f16", "--b-format", "f16"});
  EXPECT_NE(read_file(folder_ / "d.npy").find("'descr': '<f2'"), std::string::npos);
}

TEST_F(Mma, StartsAccumulatorsWithC) {
  write("a", integers({2, 32}, 1)), write("b", integers({2, 32}, 2)), write("c", {{2, 2}, {1, 2, 3, 1024}});
  std::vector<float> expected = product_of(integers({2, 32}, 1), integers({2, 32}, 2));
  for (std::size_t i = 0; i < 4; ++i) expected[i] += std::vector<float>{1, 2, 3, 1024}[i];
  EXPECT_EQ(d("a.npy", "b.npy", "sm90.hmma.f32", {"--a-format", "f16", "--b-format", "f16", "-c", folder_ / "c.npy"}),
            expected);
}

// 1 + 2^-24 in one rounding, 1 in two.
TEST_F(Mma, AddsBetaTimesCInOneRoundingWithAlphaTimesTheSum) {
  write("a", {{1, 1}, {1}}), write("b", {{1, 1}, {1}}), write("c", {{1, 1}, {0x1p-24f}});
  const float alpha = 1 + 0x1p-23f;
  const Words options{"-c", folder_ / "c.npy", "--beta", "1", "--alpha", "0x1.000002p0"};
  EXPECT_EQ(d("a.npy", "b.npy", "ref.fp64", options), std::vector<float>{std::fma(alpha, 1.0f, 0x1p-24f)});
}

TEST_F(Mma, MultipliesBothTensorScalesFirst) {
  write("a", normals({4, 64}, 1)), write("b", normals({3, 64}, 2));
  quantize("a", "nvfp4/te", "qa"), quantize("b", "nvfp4/te", "qb");
  const auto scale = [&](const char* file, const char* tensor) {
    float value;
    std::memcpy(&value, stored_file(folder_ / file).tensors.at(tensor).bytes.data(), 4);
    return value;
  };
  const float alpha = scale("qa", "a.global_scale") * scale("qb", "b.global_scale");
  const std::vector<float> scaled = d("qa", "qb", "sm100.omma.f32"),
                           sums = d("qa", "qb", "sm100.omma.f32", {"--alpha", "1"});
  for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(scaled[i], alpha * sums[i]);
}

// The same codes and scales, however they were stored.
TEST_F(Mma, UnderstandsEveryLayoutOfQuantize) {
  write("w", normals({128, 64}, 3)), write("x", normals({32, 64}, 4));
  std::vector<float> transposed(128 * 64);
  const Array w = normals({128, 64}, 3);
  for (std::size_t i = 0; i < 128; ++i)
    for (std::size_t k = 0; k < 64; ++k) transposed[k * 128 + i] = w.x[i * 64 + k];
  write("wt", {{64, 128}, transposed});
  for (const auto& [recipe, row] : {std::pair{"nvfp4/te", "sm100.omma.f32"}, {"mxfp8/te", "sm100.utcqmma_mx.f32"}}) {
    quantize("x", recipe, "qx"), quantize("w", recipe, "q");
    const std::vector<float> expected = d("qx", "q", row);
    for (const char* layout : {"padded-128x4", "swizzled-128x4"}) {
      quantize("w", recipe, "q", {"--scale-layout", layout});
      EXPECT_EQ(d("qx", "q", row), expected) << recipe << layout;
    }
    for (const Words& options : {Words{}, Words{"--transpose"}, Words{"--scale-layout", "swizzled-128x4"}}) {
      quantize("wt", recipe, "q", joined({"--axis", "0"}, options));
      EXPECT_EQ(d("qx", "q", row), expected) << recipe;
    }
  }
  quantize("w", "nvfp4/te", "q"), quantize("x", "nvfp4/te", "qx");
  const std::vector<float> expected = d("qx", "q", "sm100.omma.f32");
  for (const char* nibbles : {"even-high", "split-halves"}) {
    quantize("w", "nvfp4/te", "q", {"--nibbles", nibbles});
    EXPECT_EQ(d("qx", "q", "sm100.omma.f32"), expected) << nibbles;
  }
}

TEST_F(Mma, TakesTilesOfScalesAndDropsRowsOfPadding) {
  write("w", normals({20, 40}, 3));
  quantize("w", "nvfp4/te-2d", "q", {"--pad"});
  EXPECT_EQ(d("q", "q", "sm100.omma.f32").size(), 400u);
  EXPECT_LT(json("q", "q", "sm100.omma.f32", {"--source-a", folder_ / "w.npy", "--source-b", folder_ / "w.npy"})
                .at("split")
                .at("rel_mse")
                .at("total")
                .at("value")
                .get<double>(),
            0.03);
}

TEST_F(Mma, PutsScalesOfDeepseeksBlocksIntoThePromotions) {
  write("a", normals({4, 256}, 1)), write("b", normals({128, 256}, 2));
  quantize("a", "fp8/deepseek-1x128", "qa"), quantize("b", "fp8/deepseek-128x128", "qb");
  const Json result =
      json("qa", "qb", "deepgemm.sm90.fp8", {"--source-a", folder_ / "a.npy", "--source-b", folder_ / "b.npy"});
  EXPECT_LT(result.at("split").at("rel_mse").at("total").at("value").get<double>(), 0.003);
  EXPECT_LT(result.at("comparison").at("rel_mse").at("value").get<double>(), 1e-6);
}

TEST_F(Mma, MultipliesByTheScalesOfWholeRows) {
  write("a", normals({4, 64}, 1)), write("b", normals({3, 64}, 2));
  quantize("a", "fp8/torchao-rowwise", "qa"), quantize("b", "fp8/torchao-rowwise", "qb");
  const Json result =
      json("qa", "qb", "cutlass.sm90.fp8", {"--source-a", folder_ / "a.npy", "--source-b", folder_ / "b.npy"});
  EXPECT_LT(result.at("split").at("rel_mse").at("total").at("value").get<double>(), 0.003);
}

TEST_F(Mma, TakesOperandsThatWereRotatedAlike) {
  write("a", normals({4, 64}, 1)), write("b", normals({3, 64}, 2));
  quantize("a", "nvfp4/te", "qa", {"--hadamard", "16"}), quantize("b", "nvfp4/te", "qb", {"--hadamard", "16"});
  quantize("b", "nvfp4/te", "plain");
  const Json result =
      json("qa", "qb", "sm100.omma.f32", {"--source-a", folder_ / "a.npy", "--source-b", folder_ / "b.npy"});
  EXPECT_LT(result.at("split").at("rel_mse").at("total").at("value").get<double>(), 0.05);
  refuses(mma("qa", "plain", "sm100.omma.f32"), 3, {"plain: is not rotated", "rotated by 16 te"});
}

TEST_F(Mma, TakesElementsWithoutScalesFromRecipesWithout) {
  write("a", normals({4, 64}, 1)), write("b", normals({3, 64}, 2));
  quantize("a", "bf16", "qa"), quantize("b", "bf16", "qb");
  EXPECT_EQ(d("qa", "qb", "sm90.hmma.f32").size(), 12u);
}

// K = 32768 of 1/16 * 1/16 is 128; the sum stalls at 64 unless it is promoted. DeepSeek-V3 saw as much.
TEST_F(Mma, StallsAt64WithThirteenBitsAndNotWithPromotion) {
  write("s", {{1, 32768}, std::vector<float>(32768, 1 / 16.0f)});
  EXPECT_EQ(d("s.npy", "s.npy", "sm90.qgmma.f32", kE4m3), std::vector<float>{64});
  EXPECT_EQ(d("s.npy", "s.npy", "sm90.qgmma.f32", joined(kE4m3, {"--promote-every", "128"})), std::vector<float>{128});
  EXPECT_EQ(d("s.npy", "s.npy", "sm90.mma_sync_fp8.f32", kE4m3), std::vector<float>{128});
  EXPECT_EQ(d("s.npy", "s.npy", "sm90.qgmma.f32", joined(kE4m3, {"--slices", "4"})), std::vector<float>{128});
}

TEST_F(Mma, RoundsCorrectlyByDefinitionUnderTheExactReference) {
  write("a", normals({7, 100}, 1)), write("b", normals({5, 100}, 2));
  EXPECT_EQ(json("a.npy", "b.npy", "ref.fp64").at("comparison").at("correctly_rounded_share"), 1.0);
}

// The exact product has the tensors' scales unrounded; their product, alpha, is rounded.
TEST_F(Mma, CountsTheRoundingOfAlphaAsAnError) {
  write("a", normals({16, 64}, 1)), write("b", normals({16, 64}, 2));
  quantize("a", "nvfp4/te", "qa"), quantize("b", "nvfp4/te", "qb");
  const auto share = [&](const Words& options) {
    return json("qa", "qb", "ref.fp64", options).at("comparison").at("correctly_rounded_share").get<double>();
  };
  EXPECT_EQ(share({"--alpha", "1"}), 1.0);
  EXPECT_LT(share({}), 1.0);
}

TEST_F(Mma, FindsTheSourcesOfOperandsAlongAnotherAxis) {
  write("a", normals({64, 8}, 1)), write("b", normals({6, 64}, 2));
  quantize("a", "mxfp8/te", "qa", {"--axis", "0"}), quantize("b", "mxfp8/te", "qb");
  const Json result =
      json("qa", "qb", "sm100.utcqmma_mx.f32", {"--source-a", folder_ / "a.npy", "--source-b", folder_ / "b.npy"});
  EXPECT_EQ(result.at("shape"), Json({8, 6}));
  EXPECT_LT(result.at("split").at("rel_mse").at("operands").at("value").get<double>(), 0.003);
  refuses(mma("qa", "qb", "sm100.utcqmma_mx.f32", {"--source-a", folder_ / "b.npy", "--source-b", folder_ / "b.npy"}),
          3, {"tensor 'b': has shape (6, 64)", "(64, 8)"});
}

// Without blocks rows are along the last dimension, unless a transposed copy says otherwise.
TEST_F(Mma, FindsTheRowsOfOperandsWithoutBlocks) {
  write("a", normals({64, 8}, 1)), write("b", normals({6, 64}, 2)), write("one", normals({64, 1}, 3));
  const auto error = [&](const std::string& a) {
    return json("q" + a, "qb", "sm90.hmma.f32", {"--source-a", folder_ / (a + ".npy"), "--source-b", folder_ / "b.npy"})
        .at("split")
        .at("rel_mse")
        .at("total")
        .at("value")
        .get<double>();
  };
  quantize("b", "bf16", "qb");
  quantize("a", "bf16", "qa", {"--axis", "0", "--transpose"}),
      quantize("one", "bf16", "qone", {"--axis", "0", "--transpose"});
  EXPECT_LT(error("a"), 1e-4);
  EXPECT_LT(error("one"), 1e-4);
  EXPECT_EQ(d("qb", "qb", "sm90.hmma.f32").size(), 36u);
}

TEST_F(Mma, HasTheFiguresOfItsContractInItsJson) {
  write("a", integers({4, 32}, 1));
  const Json result =
      json("a.npy", "a.npy", "ref.fp64", {"--source-a", folder_ / "a.npy", "--source-b", folder_ / "a.npy"});
  EXPECT_EQ(result.at("schema"), "halfulp.mma/1");
  for (const char* key : {"rel_mse", "bias", "bias_ulps", "toward_zero_ulps", "mean_abs_ulps", "shrinkage"})
    for (const char* part : {"value", "se", "z"}) EXPECT_TRUE(result.at("comparison").at(key).contains(part)) << key;
  for (const char* key : {"outputs", "correctly_rounded", "not_finite", "overflowed", "largest_error", "largest_ulps"})
    EXPECT_TRUE(result.at("comparison").contains(key)) << key;
  for (const char* part : {"total", "operands", "accumulator", "crossed"})
    EXPECT_EQ(result.at("split").at("rel_mse").at(part).at("value"), 0) << part;
}

TEST_F(Mma, ComparesAsManyOutputsAsAreAskedFor) {
  write("a", integers({7, 100}, 1)), write("b", integers({5, 100}, 2));
  EXPECT_EQ(json("a.npy", "b.npy", "ref.fp64").at("comparison").at("outputs"), 35);
  EXPECT_LE(json("a.npy", "b.npy", "ref.fp64", {"--compare", "9"}).at("comparison").at("outputs"), 9);
  EXPECT_EQ(json("a.npy", "b.npy", "ref.fp64", {"--compare", "0"}).at("comparison").at("outputs"), 0);
}

TEST_F(Mma, BytesDoNotDependOnTheNumberOfThreads) {
  write("a", normals({33, 96}, 1)), write("b", normals({17, 96}, 2));
  quantize("a", "mxfp8/te", "qa"), quantize("b", "mxfp8/te", "qb");
  const std::string one = mma("qa", "qb", "sm100.utcqmma_mx.f32", {"--json", "-j", "1"}).out;
  for (const char* threads : {"2", "5"})
    EXPECT_EQ(mma("qa", "qb", "sm100.utcqmma_mx.f32", {"--json", "-j", threads}).out, one);
}

TEST_F(Mma, ExitsWithOneWhereAThresholdIsPassed) {
  write("s", {{1, 32768}, std::vector<float>(32768, 1 / 16.0f)});
  EXPECT_EQ(mma("s.npy", "s.npy", "sm90.qgmma.f32", joined(kE4m3, {"--fail-on", "max_abs_ulps>1"})).exit_code, 1);
  EXPECT_EQ(mma("s.npy", "s.npy", "ref.fp64", joined(kE4m3, {"--fail-on", "max_abs_ulps>1"})).exit_code, 0);
}

TEST_F(Mma, ExplainsWhatABlockCuts) {
  write("s", {{1, 32}, std::vector<float>(32, 1 / 16.0f)}), write("c", {{1, 1}, {64}});
  const ProgramRun run =
      mma("s.npy", "s.npy", "sm90.qgmma.f32", joined(kE4m3, {"--explain", "0,0", "-c", folder_ / "c.npy"}));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  for (const char* words :
       {"lowest kept bit 2^-7", "k = 31", "0.00390625", "The exact value is 64.125; D has 0x42800000"})
    EXPECT_NE(run.out.find(words), std::string::npos) << run.out;
}

TEST_F(Mma, ExplainsTheOutputThatItComputes) {
  write("a", normals({4, 256}, 1)), write("b", normals({3, 256}, 2));
  quantize("a", "fp8/deepseek-1x128", "qa"), quantize("b", "fp8/deepseek-1x128", "qb");
  const Json all = json("qa", "qb", "deepgemm.sm90.fp8"),
             one = json("qa", "qb", "deepgemm.sm90.fp8", {"--explain", "2,1"});
  EXPECT_EQ(one.at("d"), all.at("d").at(2 * 3 + 1).at("bits"));
}

TEST_F(Mma, HasNothingToAddWithoutProducts) {
  write("a", {{3, 0}, {}}), write("b", {{2, 0}, {}}), write("none", {{0, 32}, {}}), write("one", integers({1, 32}, 1));
  EXPECT_EQ(d("a.npy", "b.npy", "sm90.qgmma.f32", kE4m3), std::vector<float>(6, 0.0f));
  EXPECT_TRUE(d("none.npy", "one.npy", "sm90.qgmma.f32", kE4m3).empty());
  EXPECT_TRUE(d("one.npy", "none.npy", "sm90.qgmma.f32", kE4m3).empty());
  EXPECT_EQ(d("one.npy", "one.npy", "sm90.qgmma.f32", kE4m3).size(), 1u);
}

TEST_F(Mma, CarriesNaNAndInfThrough) {
  write("a", {{2, 2}, {NAN, 1, INFINITY, 1}}), write("b", {{2, 2}, {1, 1, 0, 1}});
  const std::vector<float> result = d("a.npy", "b.npy", "sm90.hmma.f32", {"--a-format", "bf16", "--b-format", "bf16"});
  EXPECT_TRUE(std::isnan(result[0]) && std::isnan(result[1]) && std::isnan(result[3]));
  EXPECT_EQ(result[2], INFINITY);
  EXPECT_EQ(json("a.npy", "b.npy", "sm90.hmma.f32", {"--a-format", "bf16", "--b-format", "bf16"})
                .at("comparison")
                .at("not_finite"),
            4);
}

// Tiles as an H200 multiplied them: whole files through the program.
TEST_F(Mma, MakesWhatAnH200Made) {
  for (const auto& [name, accumulator, a, b] :
       {std::tuple{"wgmma_m64n8k32_e4m3_e5m2", "sm90.qgmma.f32", "e4m3", "e5m2"},
        std::tuple{"mma_m16n8k32_e4m3", "sm90.mma_sync_fp8.f32", "e4m3", "e4m3"},
        std::tuple{"mma_m16n8k16_bf16", "sm90.hmma.f32", "bf16", "bf16"},
        std::tuple{"mma_m16n8k8_tf32", "sm90.hmma_tf32.f32", "tf32", "tf32"}}) {
    const std::string file = std::string(HALFULP_TEST_DATA "/h200/mma/") + name + ".safetensors";
    const ProgramRun run = run_halfulp({"mma", file + ":a", file + ":b", "-c", file + ":c", "-a", accumulator,
                                        "--a-format", a, "--b-format", b, "-o", folder_ / "d.npy", "--compare", "0"});
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const std::string d = stored_file(file).tensors.at("d").bytes, got = read_file(folder_ / "d.npy");
    EXPECT_EQ(got.substr(got.size() - d.size()), d) << name;
  }
}

// ----------------------------------------------------------------------------------------------------- what it refuses

TEST_F(Mma, RefusesCodesThatTheFormatDoesNotHave) {
  write_file(folder_ / "a.npy", npy_file("|u1", "(1, 16)", std::string(16, '\x12')));
  refuses(mma("a.npy", "a.npy", "ref.fp64", {"--a-format", "e2m1", "--b-format", "e2m1"}), 3,
          {"element [0, 0] is 0x12", "a code of e2m1 has 4 bits"});
  refuses(mma("a.npy", "a.npy", "ref.fp64", {"--a-format", "bf16", "--b-format", "bf16"}), 3,
          {"U8 elements, which are bits", "codes of bf16 are U16"});
}

TEST_F(Mma, RefusesAValueThatTheFormatDoesNotHold) {
  write("a", {{2, 2}, {1, 1, 0.3f, 1}}), write("b", {{1, 2}, {1, 1}});
  refuses(mma("a.npy", "b.npy", "sm90.qgmma.f32", kE4m3), 3,
          {"a.npy: tensor 'a': byte 136: element [1, 0] is 0.3", "which e4m3 does not hold", "0x29 (0.28125)",
           "0x2a (0.3125)"});
}

TEST_F(Mma, RefusesNaNAndInfWhereTheFormatHasNone) {
  write("nan", {{1, 16}, std::vector<float>(16, NAN)}), write("inf", {{1, 16}, std::vector<float>(16, INFINITY)});
  refuses(mma("nan.npy", "nan.npy", "ref.fp64", {"--a-format", "e2m1", "--b-format", "e2m1"}), 3, {"it has no NaN"});
  refuses(mma("inf.npy", "inf.npy", "sm90.qgmma.f32", kE4m3), 3, {"it has no Inf; its largest is 0x7e (448)"});
}

TEST_F(Mma, RefusesUnequalKAndWrongRanks) {
  write("a", integers({2, 32}, 1)), write("b", integers({2, 48}, 2)), write("v", integers({32}, 1));
  write("t", integers({2, 2, 32}, 1));
  refuses(mma("a.npy", "b.npy", "sm90.qgmma.f32", kE4m3), 3, {"b.npy: has K = 48", "32"});
  refuses(mma("v.npy", "a.npy", "sm90.qgmma.f32", kE4m3), 3, {"tensor 'v': shape (32,)", "[rows, K]"});
  refuses(mma("t.npy", "a.npy", "sm90.qgmma.f32", kE4m3), 3, {"2 tiles"});
}

TEST_F(Mma, RefusesCOfAnotherShape) {
  write("a", integers({2, 32}, 1)), write("c", integers({2, 3}, 2));
  refuses(mma("a.npy", "a.npy", "sm90.qgmma.f32", joined(kE4m3, {"-c", folder_ / "c.npy"})), 3,
          {"tensor 'c'", "(2, 3)", "D has (2, 2)"});
}

TEST_F(Mma, SuggestsAnAccumulator) {
  write("a", integers({2, 32}, 1));
  refuses(mma("a.npy", "a.npy", "sm90.qgma.f32", kE4m3), 2, {"did you mean 'sm90.qgmma.f32'?", "ref.fp64"});
}

TEST_F(Mma, NeedsAFormatWhereNothingSaysIt) {
  write("a", integers({2, 32}, 1));
  refuses(mma("a.npy", "a.npy", "sm90.qgmma.f32"), 2, {"--a-format is needed", "F32", "e4m3,e5m2"});
}

TEST_F(Mma, RefusesFormatsThatTheRowDoesNotTake) {
  write("a", integers({2, 32}, 1));
  refuses(mma("a.npy", "a.npy", "sm90.hmma.f32", kE4m3), 3, {"e4m3", "sm90.hmma.f32 takes f16,bf16"});
}

TEST_F(Mma, RefusesBlocksWithoutScalesAndScalesWithoutAPlace) {
  write("a", integers({2, 64}, 1));
  quantize("a", "mxfp8/te", "q");
  refuses(mma("a.npy", "a.npy", "sm100.omma.f32"), 3, {"needs scales of blocks"});
  refuses(mma("q", "q", "sm90.qgmma.f32"), 3, {"tensor 'a'", "e8m0 scales of 32", "sm100.utcqmma_mx.f32"});
}

TEST_F(Mma, RefusesScalesOfAnotherFormatThanTheInstructions) {
  write("a", normals({2, 128}, 1));
  quantize("a", "fp8/deepseek-1x128", "q"), quantize("a", "nvfp4/te", "four");
  refuses(mma("q", "q", "sm100.utcqmma_mx.f32"), 3, {"f32 scales", "takes e8m0 ones"});
  refuses(mma("four", "four", "sm100.utcqmma_mx.f32"), 3, {"ue4m3 scales", "takes e8m0 ones"});
}

TEST_F(Mma, RefusesGroupsThatAreNotWhole) {
  write("a", {{2, 24}, std::vector<float>(48, 1)});
  quantize("a", "mxfp4/ocp", "q", {"--pad"});
  EXPECT_EQ(d("q", "q", "sm100.omma.f32").size(), 4u);  // padded to 32
  refuses(run_halfulp({"quantize", folder_ / "a.npy", "-r", "nvfp4/te", "-o", folder_ / "r"}), 3, {"multiple of 16"});
}

TEST_F(Mma, RefusesPromotionsThatDivideABlock) {
  write("a", integers({2, 64}, 1));
  refuses(mma("a.npy", "a.npy", "sm90.qgmma.f32", joined(kE4m3, {"--promote-every", "48"})), 2,
          {"multiples of 32", "--promote-every"});
}

TEST_F(Mma, RefusesAnEpilogueOfHalves) {
  write("a", integers({2, 32}, 1));
  refuses(mma("a.npy", "a.npy", "sm90.qgmma.f16", joined(kE4m3, {"--alpha", "2"})), 2, {"sums in FP16"});
}

TEST_F(Mma, RefusesScalesThatAreMissing) {
  write("a", normals({2, 64}, 1));
  quantize("a", "nvfp4/te", "q");
  StoredFile file = stored_file(folder_ / "q");
  file.tensors.erase("a.scales");
  write_stored(folder_ / "q", file);
  refuses(mma("q", "q", "sm100.omma.f32"), 3, {"tensor 'a.scales': is missing"});
}

TEST_F(Mma, RefusesOptionsThatMeanNothing) {
  write("a", integers({2, 32}, 1));
  for (const Words& options : {Words{"--beta", "1"}, Words{"--source-a", folder_ / "a.npy"}, Words{"--explain", "0"},
                               Words{"--explain", "2,0"}, Words{"-o", "d.safetensors"}, Words{"--fail-on", "beauty>1"},
                               Words{"--explain", "0,0", "-o", "d.npy"}})
    EXPECT_EQ(mma("a.npy", "a.npy", "sm90.qgmma.f32", joined(kE4m3, options)).exit_code, 2) << options[0];
  EXPECT_EQ(mma("a.npy", "a.npy", "ref.fp64", joined(kE4m3, {"--explain", "0,0"})).exit_code, 2);
}

TEST_F(Mma, RefusesAnUnknownFigureBeforeItWorks) {
  write("a", integers({2, 32}, 1));
  const ProgramRun run =
      mma("a.npy", "a.npy", "sm90.qgmma.f32", joined(kE4m3, {"--fail-on", "beauty>1", "-o", folder_ / "d.npy"}));
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_EQ(folder_.file_count(), 1u);
}

TEST_F(Mma, LeavesNothingBehindWhereItCannotWrite) {
  write("a", integers({2, 32}, 1));
  EXPECT_EQ(mma("a.npy", "a.npy", "sm90.qgmma.f32", joined(kE4m3, {"-o", folder_ / "no/d.npy"})).exit_code, 4);
  EXPECT_EQ(folder_.file_count(), 1u);
}

}  // namespace
}  // namespace halfulp
