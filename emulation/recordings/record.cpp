#include "emulation/recordings/record.h"

#include <algorithm>

#include "emulation/recordings/models.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostDiffering = 16;
// Chunks between two looks at whether the user wants to stop: a second on a small GPU.
constexpr std::size_t kChunksAtATime = 16;

std::vector<CvtInputs> kinds_of(int id) {
  std::vector<CvtInputs> kinds{CvtInputs::equal, CvtInputs::every, CvtInputs::pairs};
  std::erase_if(kinds, [&](CvtInputs kind) { return !has_inputs(conversion(id), kind); });
  return kinds;
}

std::vector<RecordedAnswer> record_sample(const Backend& backend, int id, CvtInputs inputs) {
  const uint64_t count = count_inputs(domain_of(conversion(id)), inputs);
  const uint32_t samples = uint32_t(std::min<uint64_t>(kSamples, count));
  const std::vector<uint32_t> answers =
      backend.convert(id, inputs, {.first = 0, .stride = kSampleStride, .count = samples});
  std::vector<RecordedAnswer> sample;
  for (uint32_t k = 0; k < samples; ++k) sample.push_back({uint32_t(k * kSampleStride & (count - 1)), answers[k]});
  return sample;
}

// The first answers of a chunk that the model does not give.
void add_differing(const Backend& backend, int id, uint32_t chunk, std::size_t most, RecordedSweep& sweep) {
  const uint32_t count = uint32_t(chunk_inputs(domain_of(conversion(id)), sweep.inputs)), first = chunk * count;
  const std::vector<uint32_t> answers =
      backend.convert(id, sweep.inputs, {.first = first, .stride = 1, .count = count});
  for (uint32_t i = 0; i < count && most > 0; ++i) {
    if (model_answer(id, sweep.inputs, first + i) == answers[i]) continue;
    sweep.differing.push_back({first + i, answers[i]});
    --most;
  }
}

RecordedSweep record_sweep(const Backend& backend, int id, CvtInputs inputs, uint32_t most_chunks,
                           const std::function<void(uint64_t)>& advance) {
  const CvtDomain domain = domain_of(conversion(id));
  RecordedSweep sweep{.inputs = inputs,
                      .chunks = spread_chunks(count_chunks(domain, inputs), most_chunks),
                      .checksums = {},
                      .sample = record_sample(backend, id, inputs),
                      .differing = {}};
  std::vector<uint32_t> differing;
  for (std::size_t at = 0; at < sweep.chunks.size(); at += kChunksAtATime) {
    throw_if_interrupted();
    const std::span<const uint32_t> some =
        std::span(sweep.chunks).subspan(at).first(std::min(kChunksAtATime, sweep.chunks.size() - at));
    const std::vector<CvtChunk> answers = backend.sweep_cvt(id, inputs, some);
    for (std::size_t i = 0; i < some.size(); ++i) {
      sweep.checksums.push_back(answers[i].checksum);
      sweep.mismatches += answers[i].mismatches;
      if (answers[i].mismatches > 0) differing.push_back(some[i]);
    }
    advance(some.size() * chunk_inputs(domain, inputs));
  }
  // From chunks as far apart as there are, because the first ones of one cause may be all alike.
  const std::vector<uint32_t> shown = spread_chunks(uint32_t(differing.size()), kMostDiffering);
  for (const uint32_t i : shown) add_differing(backend, id, differing[i], kMostDiffering / shown.size(), sweep);
  return sweep;
}

bool has_chunks(const RecordedInstruction& instruction, uint32_t most_chunks) {
  return std::ranges::all_of(kinds_of(instruction.ptx_cvt_id), [&](CvtInputs kind) {
    const auto sweep = std::ranges::find(instruction.sweeps, kind, &RecordedSweep::inputs);
    const uint32_t all = count_chunks(domain_of(conversion(instruction.ptx_cvt_id)), kind);
    return sweep != instruction.sweeps.end() && sweep->chunks.size() >= std::min(all, most_chunks);
  });
}

}  // namespace

std::vector<uint32_t> spread_chunks(uint32_t all, uint32_t most) {
  const uint64_t count = std::min(all, most);
  std::vector<uint32_t> chunks;
  for (uint64_t k = 1; k <= count; ++k) chunks.push_back(uint32_t(k * all / count) - 1);
  return chunks;
}

Recording begin_recording(const DeviceInfo& device, std::string_view version) {
  return {.device = device.name,
          .compute = device.compute,
          .target = device.target,
          .driver = device.driver,
          .cuda = device.cuda,
          .halfulp = std::string(version),
          .instructions = {},
          .kernels = {},
          .ignored = {}};
}

std::vector<int> missing_instructions(const Recording& recording, const RecordJob& job) {
  std::vector<int> missing = job.ptx_cvt_ids;
  if (job.recorded == Recorded::again) return missing;
  std::erase_if(missing, [&](int id) {
    const auto found = std::ranges::find(recording.instructions, id, &RecordedInstruction::ptx_cvt_id);
    return found != recording.instructions.end() && has_chunks(*found, job.most_chunks);
  });
  return missing;
}

uint64_t inputs_of(std::span<const int> ptx_cvt_ids, uint32_t most_chunks) {
  uint64_t inputs = 0;
  for (const int id : ptx_cvt_ids)
    for (const CvtInputs kind : kinds_of(id))
      inputs += std::min(count_chunks(domain_of(conversion(id)), kind), most_chunks) *
                chunk_inputs(domain_of(conversion(id)), kind);
  return inputs;
}

void record_instruction(const Backend& backend, int ptx_cvt_id, uint32_t most_chunks, Recording& recording,
                        const std::function<void(uint64_t)>& advance) {
  RecordedInstruction instruction{.ptx_cvt_id = ptx_cvt_id, .sweeps = {}};
  for (const CvtInputs kind : kinds_of(ptx_cvt_id))
    instruction.sweeps.push_back(record_sweep(backend, ptx_cvt_id, kind, most_chunks, advance));
  std::vector<RecordedInstruction>& all = recording.instructions;
  std::erase_if(all, [&](const RecordedInstruction& other) { return other.ptx_cvt_id == ptx_cvt_id; });
  all.insert(std::ranges::upper_bound(all, ptx_cvt_id, {}, &RecordedInstruction::ptx_cvt_id), std::move(instruction));
}

}  // namespace halfulp
