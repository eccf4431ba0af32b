// `halfulp identify A B D`: products of `halfulp mma` are told by their bits, and what it refuses.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
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

class IdentifyVerb : public testing::Test {
 protected:
  void SetUp() override {
    write_values("x", {24, 512}, 1), write_values("w", {16, 512}, 2);
    for (const char* name : {"x", "w"}) quantize(name, "fp8/te", std::string(name) + ".q");
  }

  void write_values(const std::string& name, const Shape& shape, uint64_t seed) {
    Array values{.shape = shape, .x = std::vector<float>(product(shape, 0, shape.size()))};
    for (std::size_t i = 0; i < values.x.size(); ++i) values.x[i] = float(normal(seed, 0, i));
    write_file(folder_ / (name + ".npy"), npy_of(values));
  }
  void quantize(const std::string& name, const std::string& recipe, const std::string& to, const Words& options = {}) {
    const ProgramRun run =
        run_halfulp(joined({"quantize", folder_ / (name + ".npy"), "-r", recipe, "-o", folder_ / to}, options));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  void mma(const std::string& a, const std::string& b, const Words& options) {
    const ProgramRun run =
        run_halfulp(joined({"mma", folder_ / a, folder_ / b, "-o", folder_ / "d.npy", "--compare", "0"}, options));
    ASSERT_EQ(run.exit_code, 0) << run.err;
  }
  ProgramRun identify(const Words& files, const Words& options = {}) {
    Words words{"identify"};
    for (const std::string& file : files) words.push_back(folder_ / file);
    return run_halfulp(joined(words, options));
  }
  Json json(const Words& files, int exit_code = 0, const Words& options = {}) {
    const ProgramRun run = identify(files, joined(options, {"--json"}));
    EXPECT_EQ(run.exit_code, exit_code) << run.err;
    return Json::parse(run.out);
  }

  TemporaryDirectory folder_;
};

TEST_F(IdentifyVerb, FindsAnAccumulatorAndItsPromotion) {
  mma("x.q", "w.q", {"-a", "sm90.qgmma.f32", "--promote-every", "64"});
  const Json found = json({"x.q", "w.q", "d.npy"});
  EXPECT_EQ(found.at("schema"), "halfulp.identify/1");
  bool promoted = false;
  for (const Json& fit : found.at("fitting")) {
    EXPECT_EQ(fit.at("accumulator"), "sm90.qgmma.f32");
    promoted = promoted || fit.at("promote_every") == 64;
  }
  EXPECT_TRUE(promoted);
}

TEST_F(IdentifyVerb, FindsWhatAddedScalesOfBlocks) {
  for (const auto& [recipe, row] : {std::pair{"mxfp8/te", "sm100.utcqmma_mx.f32"},
                                    {"nvfp4/te", "sm100.omma.f32"},
                                    {"fp8/deepseek-1x128", "deepgemm.sm90.fp8"}}) {
    quantize("x", recipe, "x.q"), quantize("w", recipe, "w.q");
    mma("x.q", "w.q", {"-a", row});
    EXPECT_EQ(json({"x.q", "w.q", "d.npy"}).at("fitting").at(0).at("accumulator"), row) << recipe;
  }
}

TEST_F(IdentifyVerb, TriesTransformerEnginesAlpha) {
  for (const char* name : {"x", "w"}) quantize(name, "nvfp4/te", std::string(name) + ".q", {"--amax", "5.7"});
  const auto number = [&](const char* file, const char* tensor) {
    float value;
    std::memcpy(&value, stored_file(folder_ / file).tensors.at(tensor).bytes.data(), sizeof(value));
    return value;
  };
  const float alpha = number("x.q", "x.amax") * number("w.q", "w.amax") * float(1.0 / 7225344);
  ASSERT_NE(alpha, number("x.q", "x.global_scale") * number("w.q", "w.global_scale"));
  mma("x.q", "w.q", {"-a", "sm100.omma.f32", "--alpha", fmt::format("{:a}", alpha)});
  const Json fit = json({"x.q", "w.q", "d.npy"}).at("fitting").at(0);
  EXPECT_EQ(fit.at("text"), "sm100.omma.f32, alpha as Transformer Engine rounds it");
  EXPECT_EQ(fit.at("alpha").get<double>(), double(alpha));
}

// What an H200 answered: the row of its datapath comes first, and rows of other arithmetic do not come at all.
TEST_F(IdentifyVerb, TellsTheDatapathsOfAnH200Apart) {
  for (const auto& [name, a, b, row] : {std::tuple{"mma_m16n8k16_f16", "f16", "f16", "sm90.hmma.f32"},
                                        std::tuple{"mma_m16n8k16_bf16", "bf16", "bf16", "sm90.hmma.f32"},
                                        std::tuple{"mma_m16n8k8_tf32", "tf32", "tf32", "sm90.hmma_tf32.f32"},
                                        std::tuple{"mma_m16n8k32_e4m3", "e4m3", "e4m3", "sm90.mma_sync_fp8.f32"},
                                        std::tuple{"mma_m16n8k32_e5m2", "e5m2", "e5m2", "sm90.mma_sync_fp8.f32"},
                                        std::tuple{"wgmma_m64n8k16_f16", "f16", "f16", "sm90.hmma.f32"},
                                        std::tuple{"wgmma_m64n8k16_bf16", "bf16", "bf16", "sm90.hmma.f32"},
                                        std::tuple{"wgmma_m64n8k32_e4m3", "e4m3", "e4m3", "sm90.qgmma.f32"},
                                        std::tuple{"wgmma_m64n8k32_e4m3_e5m2", "e4m3", "e5m2", "sm90.qgmma.f32"},
                                        std::tuple{"wgmma_m64n8k32_e5m2", "e5m2", "e5m2", "sm90.qgmma.f32"}}) {
    const std::string file = std::string(HALFULP_TEST_DATA "/h200/mma/") + name + ".safetensors";
    const ProgramRun run = run_halfulp({"identify", file + ":a", file + ":b", file + ":d", "-c", file + ":c",
                                        "--a-format", a, "--b-format", b, "--json"});
    ASSERT_EQ(run.exit_code, 0) << name << run.err;
    for (const Json& fit : Json::parse(run.out).at("fitting")) EXPECT_EQ(fit.at("accumulator"), row) << name;
  }
}

TEST_F(IdentifyVerb, ReadsValuesWithTheirFormats) {
  const Words formats{"--a-format", "e4m3", "--b-format", "e4m3"};
  const std::vector<float> ones(64, 1);
  write_file(folder_ / "a.npy", npy_of({{2, 32}, ones}));
  mma("a.npy", "a.npy", joined({"-a", "ref.fp64"}, formats));
  EXPECT_GT(json({"a.npy", "a.npy", "d.npy"}, 0, formats).at("fitting").size(), 4u);  // ones are added alike by all
  EXPECT_EQ(identify({"a.npy", "a.npy", "d.npy"}).exit_code, 2);
}

TEST_F(IdentifyVerb, RefutesAFlippedBit) {
  mma("x.q", "w.q", {"-a", "sm90.qgmma.f32"});
  std::string d = read_file(folder_ / "d.npy");
  d[d.size() - 4 * (24 * 16 - (3 * 16 + 5)) + 1] ^= 0x40;
  write_file(folder_ / "d.npy", d);
  const Json found = json({"x.q", "w.q", "d.npy"}, 1);
  EXPECT_EQ(found.at("fitting").size(), 0u);
  const Json& refutation = found.at("refutation");
  EXPECT_EQ(refutation.at("row"), 3);
  EXPECT_EQ(refutation.at("col"), 5);
  EXPECT_EQ(refutation.at("candidate").at("accumulator"), "sm90.qgmma.f32");
  const ProgramRun run = identify({"x.q", "w.q", "d.npy"});
  for (const char* words : {"None of ", "refuted by D[3, 5]", "observed", "mma --explain 3,5"})
    EXPECT_NE(run.out.find(words), std::string::npos) << run.out;
}

TEST_F(IdentifyVerb, KnowsThatTwoFilesAreForRecipes) {
  const ProgramRun run = identify({"x.npy", "x.q"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("does not identify"), std::string::npos) << run.err;
  EXPECT_EQ(identify({"x.q", "w.q", "x.q", "w.q"}).exit_code, 2);
}

TEST_F(IdentifyVerb, RefusesAProductOfAnotherShapeOrType) {
  write_file(folder_ / "d.npy", npy_of({{16, 24}, std::vector<float>(384)}));
  EXPECT_EQ(identify({"x.q", "w.q", "d.npy"}).exit_code, 3);
  write_file(folder_ / "d.npy", npy_file("<i4", "(24, 16)", std::string(1536, '\0')));
  const ProgramRun run = identify({"x.q", "w.q", "d.npy"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_NE(run.err.find("I32"), std::string::npos) << run.err;
}

TEST_F(IdentifyVerb, BytesDoNotDependOnTheNumberOfThreads) {
  mma("x.q", "w.q", {"-a", "sm100.utcqmma.f32"});
  const std::string one = identify({"x.q", "w.q", "d.npy"}, {"--json", "-j", "1"}).out;
  EXPECT_EQ(identify({"x.q", "w.q", "d.npy"}, {"--json", "-j", "5"}).out, one);
}

}  // namespace
}  // namespace halfulp
