#pragma once
// Which accumulators, orders of K, slices, promotions and places of c make every bit of a product that some kernel
// computed. A search; reads no files.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "emulation/matmul/epilogue.h"
#include "emulation/matmul/gemm.h"

namespace halfulp {

// A product and what came out of it. The job's row is not looked at.
struct ObservedTile {
  GemmJob job;
  Epilogue epilogue;
  std::span<const uint32_t> d;  // codes
};

// Tiles as these rows take their operands: scales in the instruction, in the promotions, or in neither.
struct Observation {
  std::vector<ObservedTile> tiles;
  std::vector<Accumulator> rows;
};

enum class KOrder {
  ascending,
  descending,   // blocks, promotions and scales whole
  interleaved,  // slice s of S has the tiles s, s + S, s + 2 S, ... of K
};
enum class StartPlace {
  row,   // where the row has c: before the first product, or after the last slice or promotion
  last,  // added in FP32 to the sum of the products from zero
};

struct SumCandidate {
  std::size_t observation;
  Accumulator row;                       // with promotion and slices
  std::vector<std::string_view> also{};  // names of rows that are the same arithmetic, promotion included
  KOrder order = KOrder::ascending;
  std::size_t tile = 0;  // products that are moved together, where the order is not ascending
  StartPlace start = StartPlace::row;
};

struct RefutedCandidate {
  SumCandidate candidate;
  uint64_t outputs, mismatches;  // that were compared; that differ
};

// The output of fewest products that refutes the nearest candidate.
struct Refutation {
  SumCandidate candidate;
  std::size_t tile, row, col;
  uint32_t observed, computed;
  std::size_t products;  // that are not zero
};

struct Identification {
  std::vector<SumCandidate> fitting;      // all outputs are theirs; what adds least to its row comes first
  std::vector<RefutedCandidate> refuted;  // the nearest of each row, plain before varied, the nearest first
  std::optional<Refutation> refutation;   // where nothing fits
  std::size_t tried = 0;                  // candidates
  uint64_t outputs = 0;
};

// `d_format` is that of d: the rows' own, or FP32 sums are rounded to it, to nearest even. Any number of threads gives
// the same. Requires a candidate's row to be able to take the operands by their formats: others are passed over.
Identification identify_accumulator(std::span<const Observation> observations, const Format& d_format, int threads);

// How much a candidate adds to its row: 0 for the row as it is.
int additions_to(const SumCandidate& candidate);

// "sm90.qgmma.f32, promoted every 128 products, 4 interleaved slices of tiles of 64, c last"
std::string candidate_text(const SumCandidate& candidate);

}  // namespace halfulp
