#include "emulation/recordings/replay.h"

#include <algorithm>
#include <set>

#include "emulation/recordings/models.h"
#include "emulation/recordings/record.h"
#include "lib/threads.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostDifferingChunks = 4;

CvtDomain domain_of(int id) { return domain_of(conversion(id)); }

// Those of the recorded chunks that are spread over them, and the first ones that differed where they were recorded.
std::vector<uint32_t> chunks_to_compare(int id, const RecordedSweep& sweep, uint32_t most) {
  std::set<uint32_t> chunks, differed;
  for (const uint32_t i : spread_chunks(uint32_t(sweep.chunks.size()), most)) chunks.insert(sweep.chunks[i]);
  for (const RecordedAnswer& answer : sweep.differing) {
    const uint32_t chunk = uint32_t(answer.input / chunk_inputs(domain_of(id), sweep.inputs));
    const bool is_recorded = std::ranges::binary_search(sweep.chunks, chunk);
    if (is_recorded && differed.size() < kMostDifferingChunks) differed.insert(chunk);
  }
  chunks.merge(differed);
  return {chunks.begin(), chunks.end()};
}

void compare_answers(const std::vector<RecordedAnswer>& answers, SweepReplay& result) {
  for (const auto& [input, answer] : answers) {
    ++result.answers_compared;
    const uint32_t model = model_answer(result.ptx_cvt_id, result.inputs, input);
    if (model != answer) result.wrong_answers.push_back({input, answer, model});
  }
}

uint64_t checksum_of(const RecordedSweep& sweep, uint32_t chunk) {
  return sweep.checksums[std::size_t(std::ranges::lower_bound(sweep.chunks, chunk) - sweep.chunks.begin())];
}

// One chunk of one sweep.
struct Task {
  const RecordedSweep* sweep;
  SweepReplay* result;
  uint32_t chunk;
  bool agrees = false;
};

std::vector<Task> tasks_of(const Recording& recording, std::vector<SweepReplay>& results) {
  std::vector<Task> tasks;
  auto result = results.begin();
  for (const RecordedInstruction& instruction : recording.instructions) {
    for (const RecordedSweep& sweep : instruction.sweeps) {
      for (const uint32_t chunk : result->chunks) tasks.push_back({&sweep, &*result, chunk});
      compare_answers(sweep.differing, *result);
      compare_answers(sweep.sample, *result);
      ++result;
    }
  }
  return tasks;
}

}  // namespace

std::vector<SweepReplay> plan_replay(const Recording& recording, uint32_t most_chunks) {
  std::vector<SweepReplay> plan;
  for (const auto& [id, sweeps] : recording.instructions) {
    for (const RecordedSweep& sweep : sweeps) {
      const uint64_t inputs = chunk_inputs(domain_of(id), sweep.inputs);
      SweepReplay& result = plan.emplace_back(SweepReplay{.ptx_cvt_id = id,
                                                          .inputs = sweep.inputs,
                                                          .inputs_in_all = count_inputs(domain_of(id), sweep.inputs),
                                                          .inputs_recorded = sweep.chunks.size() * inputs});
      result.chunks = chunks_to_compare(id, sweep, most_chunks);
      result.inputs_compared = result.chunks.size() * inputs;
    }
  }
  return plan;
}

uint64_t inputs_of(const std::vector<SweepReplay>& plan) {
  uint64_t inputs = 0;
  for (const SweepReplay& sweep : plan) inputs += sweep.inputs_compared;
  return inputs;
}

std::vector<SweepReplay> replay(const Recording& recording, const ReplayOptions& options,
                                const std::function<void(uint64_t)>& advance) {
  std::vector<SweepReplay> results = plan_replay(recording, options.most_chunks);
  std::vector<Task> tasks = tasks_of(recording, results);
  parallel_for(tasks.size(), options.threads, [&](std::size_t i) {
    Task& task = tasks[i];
    const SweepReplay& result = *task.result;
    task.agrees = model_checksum(result.ptx_cvt_id, result.inputs, task.chunk) == checksum_of(*task.sweep, task.chunk);
    advance(chunk_inputs(domain_of(result.ptx_cvt_id), result.inputs));
  });
  for (const Task& task : tasks)
    if (!task.agrees) task.result->wrong_chunks.push_back(task.chunk);
  return results;
}

}  // namespace halfulp
