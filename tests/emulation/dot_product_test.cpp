// Dot products against what an H200's matrix instructions answered, against probes that tell architectures apart, and
// against models that are wrong by a little, which the same data must refuse.

#include "emulation/matmul/dot_product.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "formats/catalog.h"
#include "lib/tensor_source.h"

namespace halfulp {
namespace {

const std::string kGolden = HALFULP_TEST_DATA "/";

const FormatEntry& format_named(std::string_view name) { return kFormats[std::size_t(find_format(name))]; }
const Accumulator& accumulator(std::string_view name) { return kAccumulators[std::size_t(find_accumulator(name))]; }

// A tensor's elements, shifted to codes of a format of theirs.
std::vector<uint32_t> codes_of(const Tensor& tensor, int shift) {
  const std::size_t bytes = std::size_t(row(tensor.dtype).bits) / 8;
  std::vector<uint32_t> codes(tensor.elements());
  for (std::size_t i = 0; i < codes.size(); ++i) {
    std::memcpy(&codes[i], tensor.bytes.data() + i * bytes, bytes);
    codes[i] >>= shift;
  }
  return codes;
}

struct Recording {
  Format a_format, b_format;
  std::size_t tiles, m, n, k;
  std::vector<uint32_t> a, b, c, d;
};

struct RecordingCase {
  std::string_view file, a_format, b_format, accumulator;
};
constexpr RecordingCase kRecordings[] = {
    {"mma_m16n8k16_f16", "f16", "f16", "sm90.hmma.f32"},
    {"mma_m16n8k16_bf16", "bf16", "bf16", "sm90.hmma.f32"},
    {"mma_m16n8k8_tf32", "tf32", "tf32", "sm90.hmma_tf32.f32"},
    {"mma_m16n8k32_e4m3", "e4m3", "e4m3", "sm90.mma_sync_fp8.f32"},
    {"mma_m16n8k32_e5m2", "e5m2", "e5m2", "sm90.mma_sync_fp8.f32"},
    {"wgmma_m64n8k16_f16", "f16", "f16", "sm90.hmma.f32"},
    {"wgmma_m64n8k16_bf16", "bf16", "bf16", "sm90.hmma.f32"},
    {"wgmma_m64n8k32_e4m3", "e4m3", "e4m3", "sm90.qgmma.f32"},
    {"wgmma_m64n8k32_e4m3_e5m2", "e4m3", "e5m2", "sm90.qgmma.f32"},
    {"wgmma_m64n8k32_e5m2", "e5m2", "e5m2", "sm90.qgmma.f32"},
};

Recording load(const RecordingCase& is) {
  std::map<std::string, Tensor> tensors;
  for (const Tensor& tensor : open_tensors(kGolden + "h200/mma/" + std::string(is.file) + ".safetensors"))
    tensors.emplace(tensor.name, tensor);
  const FormatEntry &a = format_named(is.a_format), &b = format_named(is.b_format);
  const std::vector<uint64_t> of_a = tensors.at("a").shape, of_b = tensors.at("b").shape;
  return {.a_format = a.format,
          .b_format = b.format,
          .tiles = of_a[0],
          .m = of_a[1],
          .n = of_b[1],
          .k = of_a[2],
          .a = codes_of(tensors.at("a"), a.storage_shift),
          .b = codes_of(tensors.at("b"), b.storage_shift),
          .c = codes_of(tensors.at("c"), 0),
          .d = codes_of(tensors.at("d"), 0)};
}

std::size_t mismatches(const Accumulator& model, const Recording& r) {
  std::size_t wrong = 0, i = 0;
  for (std::size_t tile = 0; tile < r.tiles; ++tile)
    for (std::size_t row = 0; row < r.m; ++row)
      for (std::size_t col = 0; col < r.n; ++col, ++i) {
        const DotOperand a{r.a_format, &r.a[(tile * r.m + row) * r.k]}, b{r.b_format, &r.b[(tile * r.n + col) * r.k]};
        wrong += dot_product(model, a, b, int(r.k), r.c[i]) != r.d[i];
      }
  return wrong;
}

class RecordedTiles : public testing::TestWithParam<RecordingCase> {};

TEST_P(RecordedTiles, AreTheModels) {
  const Recording recording = load(GetParam());
  EXPECT_EQ(recording.d.size(), 40960u);
  EXPECT_EQ(mismatches(accumulator(GetParam().accumulator), recording), 0u);
}

TEST_P(RecordedTiles, RefuseABitMoreOrLess) {
  const Recording recording = load(GetParam());
  for (const int difference : {-1, 1}) {
    Accumulator model = accumulator(GetParam().accumulator);
    model.kept_bits += difference;
    EXPECT_GT(mismatches(model, recording), 0u) << model.kept_bits << " bits";
  }
}

TEST_P(RecordedTiles, RefuseHalfTheBlock) {
  Accumulator model = accumulator(GetParam().accumulator);
  model.block /= 2;
  EXPECT_GT(mismatches(model, load(GetParam())), 0u);
}

// FP8 takes two paths on an H200, by the instruction: each refuses the other's order.
TEST(RecordedFp8Tiles, RefuseTheOrderOfTheOtherPath) {
  for (const RecordingCase& is : kRecordings) {
    if (!is.a_format.starts_with("e")) continue;
    Accumulator model = accumulator(is.accumulator);
    model.order = model.order == SumOrder::ascending ? SumOrder::pairs_of_four : SumOrder::ascending;
    EXPECT_GT(mismatches(model, load(is)), 0u) << is.file;
  }
}

std::string recording_name(const testing::TestParamInfo<RecordingCase>& instance) {
  return std::string(instance.param.file);
}
INSTANTIATE_TEST_SUITE_P(H200, RecordedTiles, testing::ValuesIn(kRecordings), recording_name);

// Probes.

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);) parts.push_back(part);
  return parts;
}

std::vector<std::vector<std::string>> rows_of(const std::string& file) {
  std::ifstream stream(kGolden + "../../emulation/recordings/" + file);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(stream, line);)
    if (!line.empty() && line[0] != '#') rows.push_back(split(line, '\t'));
  return rows;
}

uint32_t hex(const std::string& text) { return uint32_t(std::stoul(text, nullptr, 16)); }

std::vector<uint32_t> hex_list(const std::string& text, int shift = 0) {
  std::vector<uint32_t> values;
  for (const std::string& part : split(text, ',')) values.push_back(hex(part) >> shift);
  return values;
}

// Which row a column of probes.tsv is about, by its inputs and outputs. The last two are an H200's answers.
const std::map<std::string, std::vector<std::string_view>> kProbeColumns{
    {"f16->f32",
     {"sm70.hmma.f32", "sm80.hmma.f32", "", "sm90.hmma.f32", "sm100.utchmma.f32", "", "sm90.hmma.f32",
      "sm90.hmma.f32"}},
    {"bf16->f32",
     {"", "sm80.hmma.f32", "", "sm90.hmma.f32", "sm100.utchmma.f32", "", "sm90.hmma.f32", "sm90.hmma.f32"}},
    {"tf32->f32",
     {"", "sm80.hmma_tf32.f32", "", "sm90.hmma_tf32.f32", "", "", "sm90.hmma_tf32.f32", "sm90.hmma_tf32.f32"}},
    {"f16->f16", {"sm70.hmma.f16", "sm80.hmma.f16", "", "sm90.hmma.f16", "", "", "sm90.hmma.f16", "sm90.hmma.f16"}},
    {"e4m3->f32",
     {"", "", "sm89.qmma.f32", "sm90.qgmma.f32", "sm100.utcqmma.f32", "sm90.mma_sync_fp8.f32", "sm90.qgmma.f32",
      "sm90.mma_sync_fp8.f32"}},
};

TEST(Probes, TellArchitecturesApart) {
  std::size_t compared = 0;
  for (const std::vector<std::string>& probe : rows_of("probes.tsv")) {
    if (probe[1] == "in->out") continue;
    const FormatEntry& in = format_named(probe[1].substr(0, probe[1].find("->")));
    const std::vector<uint32_t> a = hex_list(probe[3], in.storage_shift), b = hex_list(probe[4], in.storage_shift);
    const std::vector<std::string_view>& columns = kProbeColumns.at(probe[1]);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns[i].empty() || probe[6 + i] == "-") continue;
      const uint32_t got = dot_product(accumulator(columns[i]), {in.format, a.data()}, {in.format, b.data()},
                                       int(a.size()), hex(probe[5]));
      EXPECT_EQ(got, hex(probe[6 + i])) << probe[1] << " " << probe[0] << " by " << columns[i];
      ++compared;
    }
  }
  EXPECT_GT(compared, 700u);
}

// mma.sync takes FP8 as F16, in which E4M3's 2^-9 is 1 * 2^-9 and not 1/8 * 2^-6: times E5M2's 2^15 its product's
// exponent is 6 and not 9, and 2^-19 is kept. Found where an H200 multiplied E4M3 by E5M2.
TEST(Probes, OfFp8AsF16TakeSubnormalsAsNormal) {
  const std::vector<uint32_t> a{0x01, 0x81, 0, 0, 0x01}, b{0x78, 0x78, 0, 0, 0x14};  // 2^6 - 2^6 + 2^-19
  const DotOperand of_a{format_named("e4m3").format, a.data()}, of_b{format_named("e5m2").format, b.data()};
  Accumulator model = accumulator("sm90.mma_sync_fp8.f32");
  EXPECT_EQ(dot_product(model, of_a, of_b, 5, 0), 0x3600'0000u);
  model.operands = SumInputs::as_they_are;
  EXPECT_EQ(dot_product(model, of_a, of_b, 5, 0), 0u);
}

struct ScaledProbe {
  Format scale_format;
  std::vector<uint32_t> a, b, sa, sb;
  uint32_t c, expected;
};

// "ue4m3 sa=78,78 sb=78,78", or of E8M0 without its name.
ScaledProbe scaled_probe(const std::vector<std::string>& row) {
  const std::string& scales = row[4];
  const std::size_t sa = scales.find("sa="), sb = scales.find(" sb=");
  return {.scale_format = format_named(scales.starts_with("ue4m3") ? "ue4m3" : "e8m0").format,
          .a = hex_list(row[2]),
          .b = hex_list(row[3]),
          .sa = hex_list(scales.substr(sa + 3, sb - sa - 3)),
          .sb = hex_list(scales.substr(sb + 4)),
          .c = hex(row[5]),
          .expected = hex(row[6])};
}

uint32_t answer(const Accumulator& model, const Format& format, const ScaledProbe& p) {
  const auto operand = [&](const std::vector<uint32_t>& codes, const std::vector<uint32_t>& scales) {
    return DotOperand{format, codes.data(), p.scale_format, scales.data(), int(codes.size() / scales.size())};
  };
  return dot_product(model, operand(p.a, p.sa), operand(p.b, p.sb), int(p.a.size()), p.c);
}

TEST(Probes, OfBlockScaledProductsAreAsPublished) {
  std::map<std::string, std::size_t> compared;
  for (const std::vector<std::string>& row : rows_of("probes_blockscaled.tsv")) {
    const bool fp4 = row[0] == "FP4";
    const ScaledProbe probe = scaled_probe(row);
    const Accumulator& model = accumulator(fp4 ? "sm100.omma.f32" : "sm100.utcqmma_mx.f32");
    EXPECT_EQ(answer(model, format_named(fp4 ? "e2m1" : "e4m3").format, probe), probe.expected) << row[1];
    ++compared[row[0]];
  }
  EXPECT_EQ(compared["FP4"], 28u);
  EXPECT_EQ(compared["MX8"], 17u);
}

TEST(Probes, OfFp4RefuseABitMoreOrLess) {
  for (const int difference : {-1, 1}) {
    Accumulator model = accumulator("sm100.omma.f32");
    model.kept_bits += difference;
    std::size_t wrong = 0;
    for (const std::vector<std::string>& row : rows_of("probes_blockscaled.tsv"))
      if (row[0] == "FP4")
        wrong += answer(model, format_named("e2m1").format, scaled_probe(row)) != scaled_probe(row).expected;
    EXPECT_GT(wrong, 0u) << model.kept_bits;
  }
}

// Properties.

class EveryAccumulator : public testing::TestWithParam<std::size_t> {
 protected:
  static constexpr int kK = 64;
  const Accumulator& model_ = kAccumulators[GetParam()];
  const Format format_ = format_named(model_.inputs.substr(0, model_.inputs.find(','))).format;
  const Format scale_ = format_named(model_.scales == SumScales::groups ? "ue4m3" : "e8m0").format;
  const int scaled_ = model_.scales == SumScales::groups ? kSumGroup : 32;
  std::mt19937 random_{unsigned(GetParam())};
  std::vector<uint32_t> a_ = codes(kK, format_), b_ = codes(kK, format_);
  std::vector<uint32_t> scales_ = codes(kK / kSumGroup, scale_);

  std::vector<uint32_t> codes(int count, const Format& f) {
    std::vector<uint32_t> codes;
    for (int i = 0; i < count; ++i) codes.push_back(uint32_t(random_()) & f.code_mask());
    return codes;
  }
  DotOperand operand(const std::vector<uint32_t>& codes, int first = 0) const {
    return {format_, codes.data() + first, scale_, scales_.data() + first / scaled_, scaled_};
  }
};

TEST_P(EveryAccumulator, IsTheSameForEveryOrderInABlock) {
  for (int trial = 0; trial < 200; ++trial) {
    a_ = codes(kK, format_), b_ = codes(kK, format_);
    const uint32_t expected = dot_product(model_, operand(a_), operand(b_), kK, 0);
    const int unit = model_.scales == SumScales::groups    ? kSumGroup
                     : model_.order == SumOrder::ascending ? model_.block
                                                           : 2;
    for (int first = 0; first < kK; first += unit) {
      std::vector<int> order(static_cast<std::size_t>(unit));
      for (int i = 0; i < unit; ++i) order[std::size_t(i)] = first + i;
      std::ranges::shuffle(order, random_);
      const std::vector<uint32_t> a = a_, b = b_;
      for (int i = 0; i < unit; ++i) {
        a_[std::size_t(first + i)] = a[std::size_t(order[std::size_t(i)])];
        b_[std::size_t(first + i)] = b[std::size_t(order[std::size_t(i)])];
      }
    }
    ASSERT_EQ(dot_product(model_, operand(a_), operand(b_), kK, 0), expected);
  }
}

TEST_P(EveryAccumulator, ChainsItsBlocks) {
  for (int trial = 0; trial < 200; ++trial) {
    a_ = codes(kK, format_), b_ = codes(kK, format_);
    uint32_t chained = 0;
    for (int first = 0; first < kK; first += model_.block)
      chained = dot_product(model_, operand(a_, first), operand(b_, first), model_.block, chained);
    ASSERT_EQ(dot_product(model_, operand(a_), operand(b_), kK, 0), chained);
  }
}

// Terms have their largest exponents together, significands below 2 each and so products below 4, sums of groups at
// most 16 * 6 * 6: in units of the last kept bit that is the bound, which the terms themselves come near.
TEST_P(EveryAccumulator, HasSumsThatFitTheirInteger) {
  const bool groups = model_.scales == SumScales::groups;
  const double units = std::ldexp(1.0, model_.kept_bits);
  const double bound = groups ? (model_.block / kSumGroup * 576 * 4.0 + 2) * units : (model_.block * 4.0 + 2) * units;
  EXPECT_LT(bound, std::ldexp(1.0, 63));
  const Operand largest = operand_of(format_, format_.max_code());
  BlockSum sum(model_.kept_bits, model_.least_exponent);
  for (int pass = 0; pass < 2; ++pass)
    for (int k = 0; k < model_.block && !groups; ++k)
      pass == 0 ? sum.see(product_of(largest, largest)) : sum.add(product_of(largest, largest));
  const double significand = std::ldexp(double(largest.significand), -largest.fraction_bits);
  EXPECT_EQ(double(sum.total().significand), groups ? 0 : model_.block * significand * significand * units);
}

TEST_P(EveryAccumulator, HasOneZeroAndOneNan) {
  const Format& sum = model_.sum.format;
  std::ranges::fill(a_, format_.sign_mask());  // -0
  std::ranges::fill(b_, 0u);
  EXPECT_EQ(dot_product(model_, operand(a_), operand(b_), kK, sum.sign_mask()), 0u);
  EXPECT_EQ(dot_product(model_, operand(a_), operand(b_), kK, sum.code_mask() - 1), sum.magnitude_mask());
}

// References are gemm_test.cpp's.
std::vector<std::size_t> rows_of_instructions() {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < kAccumulators.size(); ++i)
    if (kAccumulators[i].kept_bits != kAllBits) rows.push_back(i);
  return rows;
}
INSTANTIATE_TEST_SUITE_P(Rows, EveryAccumulator, testing::ValuesIn(rows_of_instructions()), [](const auto& instance) {
  std::string name(kAccumulators[instance.param].name);
  std::ranges::replace(name, '.', '_');
  return name;
});

}  // namespace
}  // namespace halfulp
