#pragma once
// A device for tests: the models stand in for a GPU's instructions, and one of them can be made wrong. Fast where
// nothing is wrong.

#include <cstdint>
#include <functional>
#include <vector>

#include "emulation/backend.h"
#include "emulation/recordings/models.h"

namespace halfulp {

// What the "hardware" does otherwise than the model: answers of one instruction, changed.
struct WrongInstruction {
  int ptx_cvt_id = -1;
  std::function<uint32_t(const CvtInput& input, uint32_t answer)> answer = {};
};

inline WrongInstruction& wrong_instruction() {
  static WrongInstruction wrong;
  return wrong;
}

inline int& sweeps_of_fake_device() {
  static int count = 0;
  return count;
}

namespace detail {
inline uint32_t fake_answer(int id, CvtInputs inputs, uint32_t i) {
  const PtxCvt& op = conversion(id);
  const CvtInput input = cvt_input(domain_of(op), inputs, i);
  uint32_t answer = convert_register(op, input.sources, input.word);
  if (id == wrong_instruction().ptx_cvt_id) answer = wrong_instruction().answer(input, answer);
  return answer & uint32_t(low_mask(answer_bits(op, inputs)));
}

inline CvtChunk fake_chunk(int id, CvtInputs inputs, uint32_t chunk) {
  if (id != wrong_instruction().ptx_cvt_id) return {model_checksum(id, inputs, chunk), 0};
  CvtChunk sums{0, 0};
  const uint32_t count = uint32_t(chunk_inputs(domain_of(conversion(id)), inputs));
  for (uint32_t n = 0; n < count; ++n) {
    const uint32_t i = chunk * count + n, answer = fake_answer(id, inputs, i);
    sums.checksum += answer_hash(i, answer);
    sums.mismatches += answer != model_answer(id, inputs, i);
  }
  return sums;
}

inline std::vector<CvtChunk> fake_sweep(int id, CvtInputs inputs, std::span<const uint32_t> chunks) {
  ++sweeps_of_fake_device();
  std::vector<CvtChunk> sums;
  for (const uint32_t chunk : chunks) sums.push_back(fake_chunk(id, inputs, chunk));
  return sums;
}

inline std::vector<uint32_t> fake_convert(int id, CvtInputs inputs, CvtRange range) {
  std::vector<uint32_t> answers(range.count);
  for (uint32_t n = 0; n < range.count; ++n) answers[n] = fake_answer(id, inputs, range.first + n * range.stride);
  return answers;
}

inline DeviceInfo open_fake(int) {
  return {.name = "Fake GPU",
          .compute = "10.0",
          .target = "sm_100a",
          .driver = "1.2.3",
          .cuda = "13.0.88",
          .native = std::vector<bool>(kPtxCvts.size(), true)};
}
}  // namespace detail

inline const Backend kFakeBackend{.name = "fake",
                                  .targets = "sm_100a",
                                  .count = [] { return 1; },
                                  .open = detail::open_fake,
                                  .sweep_cvt = detail::fake_sweep,
                                  .convert = detail::fake_convert};

}  // namespace halfulp
