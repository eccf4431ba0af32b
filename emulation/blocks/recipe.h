#pragma once
// Every recipe: a row. A recipe is a bit-exact function from a tensor to codes and scales, named after its publisher.

#include <array>
#include <string_view>
#include <utility>

#include "formats/catalog.h"
#include "formats/policy.h"

namespace halfulp {

// How a block's scale, and the factor that its elements are multiplied by, come from the block's largest magnitude.
enum class ScaleRule {
  none,          // no scale: every element is converted by itself
  mx_floor,      // E8M0 2^(floor(log2 amax) - emax), OCP MX v1.0 §6.3; amax Inf or NaN: NaN
  mx_round_up,   // E8M0 of amax * fl(1/max), rounded up, saturating
  nvfp4_encode,  // E4M3 of amax * (S_enc * fl(1/max)), to nearest; elements times min(1 / (scale * S_dec), FLT_MAX)
};

// A scale for the whole tensor, beside the blocks'.
enum class OuterScale {
  none,
  encode,  // S_enc = min(448 * 6 / amax, FLT_MAX), 1 where that is 0 or amax is 0; S_dec = 1 / S_enc
};

// What a NaN does to the largest magnitude of its block.
enum class AmaxNan { ignored, propagates };

struct Recipe {
  std::string_view name;
  std::string_view element;  // format of the codes
  Policy policy;             // of the elements' conversion
  int block;                 // elements of one row that share a scale; 1 where there is none
  std::string_view scale;    // format of the scales; empty where there is none
  ScaleRule scale_rule;
  OuterScale outer;
  AmaxNan amax_nan;
  std::string_view summary;
  std::string_view source;
};

inline constexpr Policy kCast{.rounding = Rounding::nearest_even, .overflow = Overflow::to_special};
inline constexpr Policy kSaturatingCast{.rounding = Rounding::nearest_even, .overflow = Overflow::saturate};

// clang-format off
inline constexpr auto kRecipes = std::to_array<Recipe>({
    {.name = "bf16", .element = "bf16", .policy = kCast,
     .block = 1, .scale = "", .scale_rule = ScaleRule::none, .outer = OuterScale::none, .amax_nan = AmaxNan::ignored,
     .summary = "each element to the nearest BF16",
     .source = "PTX ISA 9.0, cvt.rn.bf16.f32"},
    {.name = "f16", .element = "f16", .policy = kCast,
     .block = 1, .scale = "", .scale_rule = ScaleRule::none, .outer = OuterScale::none, .amax_nan = AmaxNan::ignored,
     .summary = "each element to the nearest FP16; beyond 65504 to Inf",
     .source = "PTX ISA 9.0, cvt.rn.f16.f32"},
    {.name = "mxfp8/ocp", .element = "e4m3", .policy = kSaturatingCast,
     .block = 32, .scale = "e8m0", .scale_rule = ScaleRule::mx_floor, .outer = OuterScale::none,
     .amax_nan = AmaxNan::propagates,
     .summary = "32 elements of E4M3 share a power of two, rounded down: the largest can clip",
     .source = "OCP MX v1.0 §6.3; pytorch/ao torchao/prototype/mx_formats/mx_tensor.py, FLOOR"},
    {.name = "mxfp8/ocp-e5m2", .element = "e5m2", .policy = kSaturatingCast,
     .block = 32, .scale = "e8m0", .scale_rule = ScaleRule::mx_floor, .outer = OuterScale::none,
     .amax_nan = AmaxNan::propagates,
     .summary = "32 elements of E5M2 share a power of two, rounded down: the largest can clip",
     .source = "OCP MX v1.0 §6.3; pytorch/ao torchao/prototype/mx_formats/mx_tensor.py, FLOOR"},
    {.name = "mxfp8/te", .element = "e4m3", .policy = kSaturatingCast,
     .block = 32, .scale = "e8m0", .scale_rule = ScaleRule::mx_round_up, .outer = OuterScale::none,
     .amax_nan = AmaxNan::ignored,
     .summary = "32 elements of E4M3 share a power of two, rounded up so that the largest fits",
     .source = "NVIDIA/TransformerEngine common/cast/mxfp8/quantize_mxfp8.cuh, common/util/ptx.cuh"},
    {.name = "mxfp8/te-e5m2", .element = "e5m2", .policy = kSaturatingCast,
     .block = 32, .scale = "e8m0", .scale_rule = ScaleRule::mx_round_up, .outer = OuterScale::none,
     .amax_nan = AmaxNan::ignored,
     .summary = "32 elements of E5M2 share a power of two, rounded up so that the largest fits",
     .source = "NVIDIA/TransformerEngine common/cast/mxfp8/quantize_mxfp8.cuh, common/util/ptx.cuh"},
    {.name = "nvfp4/te", .element = "e2m1", .policy = kSaturatingCast,
     .block = 16, .scale = "ue4m3", .scale_rule = ScaleRule::nvfp4_encode, .outer = OuterScale::encode,
     .amax_nan = AmaxNan::ignored,
     .summary = "16 elements of E2M1 share an E4M3 scale, under one FP32 scale of the tensor",
     .source = "NVIDIA/TransformerEngine common/cast/nvfp4/core_nvfp4.cuh, quantize_transpose_nvfp4.cuh, "
               "dequantize_nvfp4.cuh"},
});
// clang-format on

constexpr bool has_scale(const Recipe& recipe) { return recipe.scale_rule != ScaleRule::none; }
constexpr bool has_outer_scale(const Recipe& recipe) { return recipe.outer != OuterScale::none; }
constexpr const FormatEntry& element_of(const Recipe& recipe) {
  return kFormats[std::size_t(find_format(recipe.element))];
}
// Requires has_scale(recipe).
constexpr const FormatEntry& scale_of(const Recipe& recipe) { return kFormats[std::size_t(find_format(recipe.scale))]; }

// Catalog position -> constants, so that nothing is looked up at run time. kScaleFormat requires has_scale().
template <int recipe_id>
inline constexpr Format kElementFormat = element_of(kRecipes[recipe_id]).format;
template <int recipe_id>
inline constexpr Format kScaleFormat = scale_of(kRecipes[recipe_id]).format;

// Catalog position by name; -1 if there is none.
constexpr int find_recipe(std::string_view name) {
  for (std::size_t id = 0; id < kRecipes.size(); ++id)
    if (kRecipes[id].name == name) return int(id);
  return -1;
}

// Calls visitor.template operator()<id>() for one catalog position. Requires 0 <= id < kRecipes.size().
template <class Visitor>
constexpr void with_recipe(int id, Visitor&& visitor) {
  [&]<std::size_t... row>(std::index_sequence<row...>) {
    (void)((id == int(row) && (visitor.template operator()<int(row)>(), true)) || ...);
  }
  (std::make_index_sequence<kRecipes.size()>{});
}

namespace detail {
constexpr bool recipes_are_sound() {
  for (std::size_t i = 0; i < kRecipes.size(); ++i) {
    const Recipe& r = kRecipes[i];
    if (find_recipe(r.name) != int(i) || find_format(r.element) < 0 || r.source.empty()) return false;
    if (has_scale(r) != (find_format(r.scale) >= 0) || has_scale(r) != (r.block > 1)) return false;
  }
  return true;
}
static_assert(recipes_are_sound(), "a recipe's name stands twice, or it names no format");
}  // namespace detail

}  // namespace halfulp
