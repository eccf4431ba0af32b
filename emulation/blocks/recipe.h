#pragma once
// What a recipe is: a bit-exact function from a tensor to codes and scales, as data, formulas included. The named ones
// are rows of emulation/blocks/recipes.h.

#include <string_view>

#include "emulation/blocks/formula.h"
#include "formats/catalog.h"
#include "formats/policy.h"

namespace halfulp {

// A format of the catalog, by name in a row; none where the name is empty.
class FormatName {
 public:
  consteval FormatName(const char* name) : FormatName(std::string_view(name).empty() ? -1 : format_id(name)) {}
  constexpr explicit FormatName(int id)
      : id_(id),
        storage_bits_(id < 0 ? 0 : kFormats[std::size_t(id)].storage_bits),
        format_(id < 0 ? Format{} : kFormats[std::size_t(id)].format) {}

  constexpr bool empty() const { return id_ < 0; }
  constexpr std::string_view name() const { return empty() ? std::string_view() : entry().name; }
  constexpr const FormatEntry& entry() const { return kFormats[std::size_t(id_)]; }
  HOST_DEVICE constexpr const Format& format() const { return format_; }
  HOST_DEVICE constexpr int storage_bits() const { return storage_bits_; }
  friend constexpr bool operator==(const FormatName&, const FormatName&) = default;

 private:
  int id_;
  int storage_bits_;
  Format format_;
};

// Rows and columns of the elements that share a scale; columns lie along the axis that is quantized.
struct Extent {
  static constexpr int kWhole = 0;  // as many as the tensor has
  int rows;
  int cols;
  friend constexpr bool operator==(const Extent&, const Extent&) = default;
};

// What a NaN does to the largest magnitude of a block or tensor.
enum class AmaxNan {
  ignored,
  propagates,           // one NaN makes it NaN
  propagates_from_all,  // it is NaN where every element is (CUDA __hmax)
};

// The last block of a row, or of rows, where the tensor is not whole blocks.
enum class Edge {
  refused,
  partial,  // its scale comes from the elements that there are
};

// The random bits of stochastic rounding.
enum class RandomSource {
  ideal,  // 32 for each element, from Philox(seed, tensor, element)
  te,     // one word for 4 elements, as cvt.rs takes it, from Transformer Engine's Philox: (seed, block, word)
};

// What becomes of the losses of a block's elements, in FP32.
enum class LossTotal {
  sequential,  // the sum, element by element
  torch,       // the sum as PyTorch's CPU kernel forms it: sum_of_losses() in block_sums.h
  largest,     // no sum
};

// A second scale of the block, `alternative`, is taken instead where its error is less. The error is the total of
// `loss`, a function of x and of v = `estimate`, a function of c, s, x and m.
struct Choice {
  Formula alternative{};  // as `unrounded`
  Formula estimate{};
  Formula loss{};
  LossTotal total{};
};

// After its elements are coded, each block's scale becomes `scale`, a function of s and v, converted by `policy`.
// v = sum y * y / sum y * c over a group of elements, 1 where the divisor is 0.
struct Correction {
  int group = 0;  // elements of a row, a multiple of the block; 0: there is none
  Formula scale{};
  Policy policy{};
};

struct Recipe {
  std::string_view name;
  FormatName element;    // of the codes
  Policy policy;         // of the elements' conversion
  Extent block{1, 1};    // of elements that share a scale
  FormatName scale{""};  // of the scales; none where elements are converted by themselves
  Policy scale_policy{};
  AmaxNan amax_nan{};
  Edge edge{};
  RandomSource random{};
  Formula encode{};     // S_enc of A
  Formula decode{};     // S_dec of A, S_enc
  Formula unrounded{};  // d of a, sum, squares, S_enc, S_dec
  Formula factor{};     // m of s, a, S_enc, S_dec
  Formula scaled{};     // what is converted to a code, of x, m, S_enc; empty: x
  Formula value{};      // what an element stands for, of c, s, A, S_enc, S_dec; empty: c
  Choice choice{};
  Correction correction{};
  std::string_view summary;
  std::string_view source;
};

constexpr bool has_scale(const Recipe& r) { return !r.scale.empty(); }
constexpr bool has_outer_scale(const Recipe& r) { return !r.decode.empty(); }
constexpr bool has_choice(const Recipe& r) { return !r.choice.alternative.empty(); }
constexpr bool has_correction(const Recipe& r) { return r.correction.group > 0; }

// Whether its result depends on random bits.
constexpr bool is_random(const Recipe& r) {
  return is_stochastic(r.policy.rounding) || (has_correction(r) && is_stochastic(r.correction.policy.rounding));
}

// Whether the fields of a recipe fit each other. Which symbols a formula may name is said at its field.
constexpr bool is_sound(const Recipe& r) {
  const bool blocks = r.block != Extent{1, 1};
  const bool scaled = !r.unrounded.empty() && !r.factor.empty() && !r.scaled.empty() && !r.value.empty();
  if (r.element.empty() || has_scale(r) != blocks || (has_scale(r) && !scaled)) return false;
  if (has_choice(r) && (r.choice.estimate.empty() || r.choice.loss.empty())) return false;
  if (has_correction(r) && r.correction.scale.empty()) return false;
  return r.decode.empty() ? r.encode.empty() : true;
}

}  // namespace halfulp
