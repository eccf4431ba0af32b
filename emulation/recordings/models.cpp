#include "emulation/recordings/models.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

namespace halfulp {
namespace {

constexpr uint32_t kBatch = 1024;

using HashInputs = uint64_t (*)(std::span<const CvtInput>, CvtInputs, uint32_t first);

// Compiled for each instruction, which is four times as fast as reading what it does for each input.
template <int id>
uint64_t hash_lane(std::span<const CvtInput> inputs, uint32_t first) {
  uint64_t sum = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const uint32_t code = convert_lane(kPtxCvtAt<id>, inputs[i].sources[0], 0, 0);
    sum += answer_hash(first + uint32_t(i), code << kPtxCvtAt<id>.to.storage_shift);
  }
  return sum;
}

template <int id>
uint64_t hash_registers(std::span<const CvtInput> inputs, uint32_t first) {
  uint64_t sum = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    sum += answer_hash(first + uint32_t(i), convert_register(kPtxCvtAt<id>, inputs[i].sources, inputs[i].word));
  return sum;
}

template <int id>
uint64_t hash_inputs(std::span<const CvtInput> inputs, CvtInputs kind, uint32_t first) {
  if constexpr (has_inputs(kPtxCvtAt<id>, CvtInputs::equal)) {
    if (kind == CvtInputs::equal) return hash_lane<id>(inputs, first);
  }
  if constexpr (has_inputs(kPtxCvtAt<id>, CvtInputs::every)) return hash_registers<id>(inputs, first);
  return 0;
}

struct Model {
  PtxCvt op;
  HashInputs hash;
};

template <std::size_t... id>
constexpr std::array<Model, sizeof...(id)> models(std::index_sequence<id...>) {
  return {Model{kPtxCvtAt<int(id)>, hash_inputs<int(id)>}...};
}
constexpr auto kModels = models(std::make_index_sequence<kPtxCvts.size()>{});

}  // namespace

const PtxCvt& conversion(int ptx_cvt_id) { return kModels[std::size_t(ptx_cvt_id)].op; }

uint32_t model_answer(int ptx_cvt_id, CvtInputs inputs, uint32_t input) {
  const PtxCvt& op = conversion(ptx_cvt_id);
  const CvtInput operands = cvt_input(domain_of(op), inputs, input);
  return convert_register(op, operands.sources, operands.word) & uint32_t(low_mask(answer_bits(op, inputs)));
}

uint64_t model_checksum(int ptx_cvt_id, CvtInputs inputs, uint32_t chunk) {
  const CvtDomain domain = domain_of(conversion(ptx_cvt_id));
  const uint32_t count = uint32_t(chunk_inputs(domain, inputs));
  uint64_t sum = 0;
  std::array<CvtInput, kBatch> batch;
  for (uint32_t at = 0; at < count; at += kBatch) {
    const uint32_t first = chunk * count + at, size = std::min(kBatch, count - at);
    for (uint32_t i = 0; i < size; ++i) batch[i] = cvt_input(domain, inputs, first + i);
    sum += kModels[std::size_t(ptx_cvt_id)].hash(std::span(batch).first(size), inputs, first);
  }
  return sum;
}

}  // namespace halfulp
