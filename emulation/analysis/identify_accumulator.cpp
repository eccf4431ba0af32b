#include "emulation/analysis/identify_accumulator.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "emulation/matmul/slices.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr int kPromotions[] = {32,  64,  96,  128, 160, 192, 224, 256,  288,  320,
                               352, 384, 416, 448, 480, 512, 768, 1024, 2048, 4096};
constexpr int kSlices[] = {1, 2, 3, 4, 5, 6, 8, 12, 16, 32};
constexpr std::size_t kTiles[] = {16, 32, 64, 128, 256};

// -----------------------------------------------------------------------------------------------------------
// candidates

// What decides the bits of a row.
bool same_sums(const Accumulator& x, const Accumulator& y) {
  return x.block == y.block && x.kept_bits == y.kept_bits && x.sum.format == y.sum.format &&
         x.sum.rounding == y.sum.rounding && x.sum.unused_bits == y.sum.unused_bits &&
         x.least_exponent == y.least_exponent && x.scales == y.scales && x.operands == y.operands &&
         x.order == y.order && x.promotion.every == y.promotion.every && x.promotion.step == y.promotion.step;
}

// A row with sums in FP16 writes them as they are.
bool takes(const Observation& observation, const Accumulator& row, const Format& d_format) {
  GemmJob job = observation.tiles.front().job;
  job.row = row;
  if (row.sum.format.bits() == 16 && row.sum.format != d_format) return false;
  if (row.sum.format.bits() == 16 && !observation.tiles.front().epilogue.is_nothing()) return false;
  return refusal(job).empty();
}

// Rows with promotions and slices, each arithmetic once.
class Variants {
 public:
  Variants(std::span<const Observation> observations, const Format& d_format) : d_format_(d_format) {
    for (std::size_t o = 0; o < observations.size(); ++o) {
      if (observations[o].tiles.empty()) continue;
      for (const Accumulator& row : observations[o].rows)
        add_promotions(observations[o], o, plain(observations[o], row));
    }
  }
  std::vector<SumCandidate> all;

 private:
  // Promotions by scales that are all 1 are additions.
  static Accumulator plain(const Observation& observation, Accumulator row) {
    const GemmJob& job = observation.tiles.front().job;
    if (job.a.promotion_scales.empty() && job.b.promotion_scales.empty()) row.promotion.step = PromotionStep::add;
    return row;
  }

  void add_promotions(const Observation& observation, std::size_t o, const Accumulator& row) {
    add_slices(observation, o, row);
    if (row.kept_bits == kAllBits || row.promotion.every != 0) return;
    for (const int every : kPromotions) {
      if (std::size_t(every) >= observation.tiles.front().job.k) break;
      Accumulator promoted = row;
      promoted.promotion.every = every;
      add_slices(observation, o, promoted);
    }
  }

  void add_slices(const Observation& observation, std::size_t o, const Accumulator& row) {
    for (const int slices : kSlices) {
      Accumulator sliced = row;
      if (row.slices == 1) sliced.slices = slices;
      if (!takes(observation, sliced, d_format_)) continue;
      GemmJob job = observation.tiles.front().job;
      job.row = sliced;
      const std::size_t length = slice_length(job);
      if (sliced.slices > 1) sliced.slices = int(std::max<std::size_t>(1, (job.k + length - 1) / length));
      if (slices > 1 && sliced.slices <= 1) break;  // slices have all of K
      add({.observation = o, .row = sliced});
      if (row.slices != 1) break;
    }
  }

  void add(const SumCandidate& candidate) {
    const auto same = [&](const SumCandidate& other) {
      return other.observation == candidate.observation && other.row.slices == candidate.row.slices &&
             same_sums(other.row, candidate.row);
    };
    const auto found = std::ranges::find_if(all, same);
    if (found == all.end()) {
      all.push_back(candidate);
    } else if (found->row.name != candidate.row.name &&
               std::ranges::find(found->also, candidate.row.name) == found->also.end()) {
      found->also.push_back(candidate.row.name);
    }
  }

  Format d_format_;
};

// The products that must stay together.
std::size_t unit_of(const Observation& observation, const Accumulator& row) {
  const GemmJob& job = observation.tiles.front().job;
  std::size_t unit = row.block == kAllProducts ? 1 : std::size_t(row.block);
  for (const std::size_t other : {std::size_t(row.promotion.every), job.a.scaled, job.b.scaled})
    if (other != 0) unit = std::lcm(unit, other);
  return unit;
}

std::vector<SumCandidate> with_orders(std::span<const Observation> observations,
                                      const std::vector<SumCandidate>& candidates) {
  std::vector<SumCandidate> all = candidates;
  for (const SumCandidate& candidate : candidates) {
    const Observation& observation = observations[candidate.observation];
    const std::size_t k = observation.tiles.front().job.k, unit = unit_of(observation, candidate.row);
    const auto slices = std::size_t(candidate.row.slices);
    if (candidate.row.promotion.step == PromotionStep::scaled || candidate.row.block == kAllProducts) continue;
    const auto add = [&](KOrder order, std::size_t tile) {
      all.push_back(candidate);
      all.back().order = order, all.back().tile = tile;
    };
    if (k > unit && k % unit == 0 && slices == 1) add(KOrder::descending, unit);
    for (const std::size_t tile : kTiles)
      if (slices > 1 && tile % unit == 0 && k % (tile * slices) == 0 && k / (tile * slices) > 1)
        add(KOrder::interleaved, tile);
  }
  return all;
}

std::vector<SumCandidate> with_starts(std::span<const Observation> observations,
                                      const std::vector<SumCandidate>& candidates) {
  std::vector<SumCandidate> all = candidates;
  for (const SumCandidate& candidate : candidates) {
    const ObservedTile& tile = observations[candidate.observation].tiles.front();
    if (tile.job.c.empty() || adds_in_f32(candidate.row) || candidate.row.sum.format.bits() != 32) continue;
    all.push_back(candidate);
    all.back().start = StartPlace::last;
  }
  return all;
}

// -----------------------------------------------------------------------------------------------------------
// evaluation

// Units of K in the order in which a candidate takes them.
std::vector<std::size_t> units_of(const SumCandidate& candidate, std::size_t k) {
  const std::size_t count = k / candidate.tile, slices = std::size_t(candidate.row.slices);
  std::vector<std::size_t> units;
  for (std::size_t u = 0; candidate.order == KOrder::descending && u < count; ++u) units.push_back(count - 1 - u);
  for (std::size_t s = 0; candidate.order == KOrder::interleaved && s < slices; ++s)
    for (std::size_t u = s; u < count; u += slices) units.push_back(u);
  return units;
}

// Chosen rows of a matrix of `width` columns, and its column units in another order: none, all as they are.
template <class T>
std::vector<T> taken(std::span<const T> from, std::size_t width, std::span<const std::size_t> rows,
                     std::span<const std::size_t> units, std::size_t unit) {
  std::vector<T> out;
  if (from.empty()) return out;
  for (const std::size_t row : rows) {
    const std::span<const T> line = from.subspan(row * width, width);
    if (units.empty()) out.insert(out.end(), line.begin(), line.end());
    for (const std::size_t u : units) {
      const std::span<const T> part = line.subspan(u * unit, unit);
      out.insert(out.end(), part.begin(), part.end());
    }
  }
  return out;
}

// Rows of an operand with their own storage.
struct OwnOperand {
  GemmOperand like;
  std::vector<uint32_t> codes, scales;
  std::vector<float> promotion_scales;

  OwnOperand(const GemmOperand& x, std::size_t all_rows, std::size_t k, std::span<const std::size_t> rows,
             std::span<const std::size_t> units, std::size_t unit)
      : like(x),
        codes(taken(x.codes, k, rows, units, unit)),
        scales(taken(x.scales, x.scales.size() / std::max<std::size_t>(all_rows, 1), rows, units,
                     x.scaled == 0 ? 0 : unit / x.scaled)),
        promotion_scales(
            taken(x.promotion_scales, x.promotion_scales.size() / std::max<std::size_t>(all_rows, 1), rows, {}, 0)) {}

  GemmOperand view() const {
    GemmOperand x = like;
    x.codes = codes, x.scales = scales, x.promotion_scales = promotion_scales;
    return x;
  }
};

std::vector<std::size_t> numbers_below(std::size_t count) {
  std::vector<std::size_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

// At most `most` of `count`, spread evenly.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < std::min(count, most); ++i) numbers.push_back(i * count / std::min(count, most));
  return numbers;
}

uint32_t output_code(const Format& sum, const Format& d, uint32_t code) {
  if (sum == d) return code;
  return encode(d, {.rounding = Rounding::nearest_even, .overflow = Overflow::to_special}, decode(sum, code));
}

// Outputs of a tile, by rows and columns.
struct Selection {
  std::vector<std::size_t> rows, cols;
};

// What a candidate makes of the selected outputs.
std::vector<uint32_t> evaluate(const SumCandidate& candidate, const ObservedTile& tile, const Selection& selection,
                               const Format& d_format, int threads) {
  const GemmJob& job = tile.job;
  const std::vector<std::size_t> units =
      candidate.order == KOrder::ascending ? std::vector<std::size_t>() : units_of(candidate, job.k);
  const OwnOperand a(job.a, job.m, job.k, selection.rows, units, candidate.tile);
  const OwnOperand b(job.b, job.n, job.k, selection.cols, units, candidate.tile);
  std::vector<uint32_t> c;
  for (const std::size_t i : selection.rows)
    for (const std::size_t j : selection.cols)
      if (!job.c.empty()) c.push_back(job.c[i * job.n + j]);
  const bool last = candidate.start == StartPlace::last;
  const GemmJob part{.row = candidate.row,
                     .m = selection.rows.size(),
                     .n = selection.cols.size(),
                     .k = job.k,
                     .a = a.view(),
                     .b = b.view(),
                     .c = last ? std::span<const uint32_t>() : std::span<const uint32_t>(c)};
  std::vector<uint32_t> d(part.m * part.n);
  gemm(part, threads, d);
  for (std::size_t at = 0; at < d.size(); ++at) {
    if (last) d[at] = f32_code(bit_cast<float>(d[at]) + bit_cast<float>(c[at]));
    d[at] = tile.epilogue.apply(d[at], selection.rows[at / part.n], selection.cols[at % part.n], job.n);
    d[at] = output_code(candidate.row.sum.format, d_format, d[at]);
  }
  return d;
}

// -------------------------------------------------------------------------------------------------------------- scores

// How far outputs are from the observed ones.
struct Score {
  uint64_t outputs = 0, mismatches = 0;
  double distance = 0;  // in codes
};

double order_of(const Format& f, uint32_t code) {
  const double magnitude = double(code & f.magnitude_mask());
  return (code & f.sign_mask()) != 0 ? -magnitude : magnitude;
}

template <class Fn>
void for_each_output(const ObservedTile& tile, const Selection& selection, std::span<const uint32_t> d, Fn&& fn) {
  for (std::size_t at = 0; at < d.size(); ++at) {
    const std::size_t i = selection.rows[at / selection.cols.size()], j = selection.cols[at % selection.cols.size()];
    fn(i, j, tile.d[i * tile.job.n + j], d[at]);
  }
}

Score score_of(const SumCandidate& candidate, const Observation& observation, std::size_t most_tiles,
               const std::function<Selection(const ObservedTile&)>& select, const Format& d_format, int threads) {
  Score score;
  for (const std::size_t t : spread(observation.tiles.size(), most_tiles)) {
    const ObservedTile& tile = observation.tiles[t];
    const Selection selection = select(tile);
    const std::vector<uint32_t> d = evaluate(candidate, tile, selection, d_format, threads);
    for_each_output(tile, selection, d, [&](std::size_t, std::size_t, uint32_t observed, uint32_t computed) {
      ++score.outputs;
      score.mismatches += observed != computed;
      score.distance += std::abs(order_of(d_format, observed) - order_of(d_format, computed));
    });
  }
  return score;
}

Selection few_outputs(const ObservedTile& tile) { return {spread(tile.job.m, 2), spread(tile.job.n, 8)}; }
Selection more_outputs(const ObservedTile& tile) { return {spread(tile.job.m, 16), spread(tile.job.n, 32)}; }
Selection all_outputs(const ObservedTile& tile) { return {numbers_below(tile.job.m), numbers_below(tile.job.n)}; }

struct Scored {
  SumCandidate candidate;
  Score score;
};

// Candidates on some outputs, in their order.
std::vector<Scored> scored(std::span<const Observation> observations, const std::vector<SumCandidate>& candidates,
                           std::size_t most_tiles, const std::function<Selection(const ObservedTile&)>& select,
                           const Format& d_format, int threads) {
  std::vector<Scored> all(candidates.size());
  parallel_for(candidates.size(), threads, [&](std::size_t i) {
    const Observation& observation = observations[candidates[i].observation];
    all[i] = {candidates[i], score_of(candidates[i], observation, most_tiles, select, d_format, 1)};
  });
  return all;
}

std::size_t nonzero_products(const GemmJob& job, std::size_t i, std::size_t j) {
  std::size_t count = 0;
  for (std::size_t k = 0; k < job.k; ++k)
    count += (job.a.codes[i * job.k + k] & job.a.format.magnitude_mask()) != 0 &&
             (job.b.codes[j * job.k + k] & job.b.format.magnitude_mask()) != 0;
  return count;
}

std::optional<Refutation> refute(const SumCandidate& candidate, const Observation& observation, const Format& d_format,
                                 int threads) {
  std::optional<Refutation> smallest;
  for (std::size_t t = 0; t < observation.tiles.size(); ++t) {
    const ObservedTile& tile = observation.tiles[t];
    const Selection selection = all_outputs(tile);
    const std::vector<uint32_t> d = evaluate(candidate, tile, selection, d_format, threads);
    for_each_output(tile, selection, d, [&](std::size_t i, std::size_t j, uint32_t observed, uint32_t computed) {
      if (observed == computed) return;
      const std::size_t products = nonzero_products(tile.job, i, j);
      if (!smallest || products < smallest->products)
        smallest = Refutation{candidate, t, i, j, observed, computed, products};
    });
  }
  return smallest;
}

// The best variant of each row, the best first.
std::vector<Scored> best_of_rows(std::vector<Scored> all) {
  std::ranges::stable_sort(all, {}, [](const Scored& s) {
    return std::tuple(s.score.mismatches, additions_to(s.candidate), s.score.distance);
  });
  std::vector<Scored> best;
  for (Scored& s : all) {
    const auto same = [&](const Scored& other) { return other.candidate.row.name == s.candidate.row.name; };
    if (std::ranges::none_of(best, same)) best.push_back(std::move(s));
  }
  return best;
}

uint64_t outputs_of(std::span<const Observation> observations) {
  uint64_t outputs = 0;
  for (const Observation& observation : observations)
    if (outputs == 0)
      for (const ObservedTile& tile : observation.tiles) outputs += tile.d.size();
  return outputs;
}

Score score_of_all(const SumCandidate& candidate, const Observation& observation, const Format& d_format, int threads) {
  return score_of(candidate, observation, observation.tiles.size(), all_outputs, d_format, threads);
}

// The rows that have no fit, each by its nearest variant: on some outputs, or on all where those refute nothing.
std::vector<RefutedCandidate> refuted_rows(std::span<const Observation> observations,
                                           const std::vector<Scored>& nearest, const std::vector<SumCandidate>& fitting,
                                           const Format& d_format, int threads) {
  constexpr std::size_t kMostTiles = 32;
  std::vector<SumCandidate> candidates;
  for (const Scored& s : nearest) {
    const auto fits = [&](const SumCandidate& fit) { return fit.row.name == s.candidate.row.name; };
    if (std::ranges::none_of(fitting, fits)) candidates.push_back(s.candidate);
  }
  std::vector<RefutedCandidate> refuted;
  for (const Scored& s : best_of_rows(scored(observations, candidates, kMostTiles, more_outputs, d_format, threads))) {
    const Score score = s.score.mismatches != 0
                            ? s.score
                            : score_of_all(s.candidate, observations[s.candidate.observation], d_format, threads);
    refuted.push_back({s.candidate, score.outputs, score.mismatches});
  }
  std::ranges::stable_sort(refuted, {}, [](const RefutedCandidate& r) {
    return double(r.mismatches) / double(std::max<uint64_t>(r.outputs, 1));
  });
  return refuted;
}

}  // namespace

int additions_to(const SumCandidate& candidate) {
  const Accumulator& named = kAccumulators[std::size_t(find_accumulator(candidate.row.name))];
  return int(candidate.row.promotion.every != named.promotion.every) + int(candidate.row.slices != named.slices) +
         2 * int(candidate.order != KOrder::ascending) + int(candidate.start != StartPlace::row);
}

Identification identify_accumulator(std::span<const Observation> observations, const Format& d_format, int threads) {
  constexpr std::size_t kTilesAtFirst = 4;
  const std::vector<SumCandidate> candidates =
      with_starts(observations, with_orders(observations, Variants(observations, d_format).all));
  Identification result;
  result.tried = candidates.size();
  result.outputs = outputs_of(observations);
  const std::vector<Scored> first = scored(observations, candidates, kTilesAtFirst, few_outputs, d_format, threads);
  for (const Scored& s : first)
    if (s.score.mismatches == 0 &&
        score_of_all(s.candidate, observations[s.candidate.observation], d_format, threads).mismatches == 0)
      result.fitting.push_back(s.candidate);
  std::ranges::stable_sort(result.fitting, {}, additions_to);
  result.refuted = refuted_rows(observations, best_of_rows(first), result.fitting, d_format, threads);
  if (result.fitting.empty() && !result.refuted.empty()) {
    const SumCandidate& nearest = result.refuted.front().candidate;
    result.refutation = refute(nearest, observations[nearest.observation], d_format, threads);
  }
  return result;
}

std::string candidate_text(const SumCandidate& candidate) {
  std::string text(candidate.row.name);
  const Accumulator& named = kAccumulators[std::size_t(find_accumulator(candidate.row.name))];
  const auto number = [](std::size_t x) { return std::to_string(x); };
  if (candidate.row.promotion.every != named.promotion.every)
    text += ", promoted every " + number(std::size_t(candidate.row.promotion.every)) + " products";
  if (candidate.row.slices != 1) {
    text += ", " + number(std::size_t(candidate.row.slices));
    text += candidate.order == KOrder::interleaved ? " interleaved slices of tiles of " + number(candidate.tile)
                                                   : " slices";
  }
  if (candidate.order == KOrder::descending) text += ", blocks of " + number(candidate.tile) + " descending";
  if (candidate.start == StartPlace::last) text += ", c added last";
  return text;
}

}  // namespace halfulp
