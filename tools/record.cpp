// halfulp record: what the conversion instructions of a GPU answer, into a file that `halfulp replay` checks anywhere.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "emulation/recordings/models.h"
#include "emulation/recordings/record.h"
#include "lib/atomic_file.h"
#include "lib/error.h"
#include "lib/notice.h"
#include "tools/backends.h"
#include "tools/facts.h"
#include "tools/halfulp_version.h"
#include "tools/instruction_name.h"
#include "tools/options.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr uint32_t kEveryChunk = 256, kQuickChunks = 16;

constexpr std::string_view kNotes =
    R"(Every conversion of the catalog that the GPU's code has as an instruction is asked for all its inputs: for f32 sources
all 2^32 values in every lane, and 2^32 pairs of values near ties and limits; of narrower sources every register; with
.rs random words of both kinds. What is emulated on this GPU is never recorded. The GPU is cuda:0 unless --device names
another.
The file has the definitions of inputs and checksums in words; per instruction a checksum for each of 256 chunks of
inputs, 64 answers as they are, how many answers the models do not give, and up to 16 of those.
It is written whole after each instruction. Where it exists already, what it lacks is added: an interrupted recording
goes on where it ended.
Exit code 0 means recorded, whatever the answers are: 'halfulp replay' tells, and shows what differs.)";

// What is recorded where, and what the file has already.
struct Job {
  const Backend* backend;
  DeviceInfo device;
  std::string path;
  RecordJob work;
  Recording recording;
};

std::vector<int> native_instructions(const DeviceInfo& device) {
  std::vector<int> ids;
  for (std::size_t id = 0; id < device.native.size(); ++id)
    if (device.native[id]) ids.push_back(int(id));
  return ids;
}

std::vector<int> instructions_of(const Arguments& arguments, const DeviceInfo& device) {
  if (!arguments.has("--instruction")) return native_instructions(device);
  std::vector<int> ids;
  for (const std::string& name : arguments.list("--instruction")) {
    ids.push_back(instruction_named(name));
    if (device.native[std::size_t(ids.back())]) continue;
    throw EnvironmentError(fmt::format(
        "{}: the code for {} has no such instruction; what is emulated there is not recorded", name, device.target));
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

// What stands in the file already, which must be the same device's.
Recording recording_in(const std::string& path, const DeviceInfo& device) {
  namespace fs = std::filesystem;
  const Recording fresh = begin_recording(device, kVersion);
  if (!fs::exists(path)) return fresh;
  if (!fs::is_regular_file(path)) throw UsageError(path + ": recordings are written to regular files");
  Recording found = read_recording(path);
  const auto same = [&](auto member) { return found.*member == fresh.*member; };
  if (!same(&Recording::device) || !same(&Recording::target) || !same(&Recording::driver) || !same(&Recording::cuda)) {
    throw InputError({.file = path},
                     fmt::format("is a recording of {} ({}), driver '{}', CUDA {}; this is {} ({}), driver '{}', CUDA "
                                 "{}: give the name of another file",
                                 found.device, found.target, found.driver, found.cuda, device.name, device.target,
                                 device.driver, device.cuda));
  }
  found.halfulp = kVersion;
  return found;
}

Job job_of(const Arguments& arguments) {
  if (!arguments.has("--output")) throw UsageError("-o FILE.json: the file to record into is missing");
  const ChosenDevice chosen = chosen_device(arguments, "cuda:0");
  if (chosen.backend == nullptr) throw UsageError("--device cpu: what is recorded are answers of a GPU; say cuda:N");
  Job job{.backend = chosen.backend,
          .device = chosen.backend->open(chosen.index),
          .path = arguments.string("--output"),
          .work = {},
          .recording = {}};
  job.work = {.ptx_cvt_ids = instructions_of(arguments, job.device),
              .most_chunks = arguments.flag("--quick") ? kQuickChunks : kEveryChunk,
              .recorded = arguments.flag("--force") ? Recorded::again : Recorded::skip};
  job.recording = recording_in(job.path, job.device);
  return job;
}

void save(const Job& job) {
  const std::string text = recording_text(job.recording);
  AtomicFile file(job.path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// Saves after each instruction, so that an interrupt loses the one in work at most.
void record(Job& job, std::span<const int> ids, ProgressMode mode) {
  Progress progress("record", inputs_of(ids, job.work.most_chunks), ProgressUnit::elements, mode);
  save(job);  // fails now rather than after the work
  for (const int id : ids) {
    record_instruction(*job.backend, id, job.work.most_chunks, job.recording,
                       [&](uint64_t inputs) { progress.advance(inputs); });
    save(job);
  }
}

Facts row_of(const RecordedInstruction& instruction) {
  const PtxCvtRow& row = kPtxCvts[std::size_t(instruction.ptx_cvt_id)];
  const CvtDomain domain = domain_of(conversion(instruction.ptx_cvt_id));
  uint64_t inputs = 0, mismatches = 0;
  for (const RecordedSweep& sweep : instruction.sweeps) {
    inputs += sweep.chunks.size() * chunk_inputs(domain, sweep.inputs);
    mismatches += sweep.mismatches;
  }
  return {{"instruction", row.name},
          {"evidence", kEvidenceNames[std::size_t(row.evidence)]},
          {"inputs", inputs, count_cell(inputs).text},
          {"mismatches", mismatches, count_cell(mismatches).text}};
}

std::string verdict_of(const Job& job, const std::vector<Facts>& rows) {
  const auto differs = [](const Facts& facts) { return facts.back().value != 0; };
  const auto different = std::ranges::count_if(rows, differs);
  if (different == 0) return "Every answer is the model's.";
  return fmt::format("Answers that the models do not give, in {} of them: 'halfulp replay {}' shows them, bit by bit.",
                     different, job.path);
}

void print(const Arguments& arguments, const Job& job, std::size_t recorded_now) {
  std::vector<Facts> rows;
  for (const RecordedInstruction& instruction : job.recording.instructions) rows.push_back(row_of(instruction));
  const OutputMode mode = output_mode_of(arguments);
  if (mode == OutputMode::json) {
    const Json body = {{"device", job.device.name},
                       {"file", job.path},
                       {"recorded_now", recorded_now},
                       {"target", job.device.target},
                       {"instructions", to_json(rows)}};
    std::cout << dump_result("record", body);
  } else if (mode == OutputMode::csv) {
    std::cout << to_csv(to_table(rows));
  } else {
    std::cout << to_text(to_table(rows), color_of(arguments))
              << fmt::format("\n{} ({}): instructions in {}: {}, {} of them recorded now. {}\n", job.device.name,
                             job.device.target, job.path, rows.size(), recorded_now, verdict_of(job, rows));
  }
}

ExitCode run(const Arguments& arguments) {
  output_mode_of(arguments);  // refuses what contradicts before the work
  color_of(arguments);
  Job job = job_of(arguments);
  const std::vector<int> ids = missing_instructions(job.recording, job.work);
  if (ids.size() < job.work.ptx_cvt_ids.size()) {
    notice(fmt::format("{} has {} of the {} instructions already; --force records them again", job.path,
                       job.work.ptx_cvt_ids.size() - ids.size(), job.work.ptx_cvt_ids.size()));
  }
  if (!ids.empty()) record(job, ids, progress_of(arguments));
  print(arguments, job, ids.size());
  return ExitCode::good;
}

}  // namespace

Verb record_verb() {
  return {
      .name = "record",
      .summary = "records what the conversion instructions of a GPU answer",
      .examples = {{"halfulp record -o b200.json", "every conversion that the first GPU has, over all inputs"},
                   {"halfulp record -o b200.json --instruction cvt.rs.satfinite.e2m1x4.f32 --force",
                    "one instruction, again"},
                   {"halfulp record -o quick.json --quick --device cuda:1", "a 16th of the inputs, on the second GPU"}},
      .positionals = {},
      .options = {"--output", "--device", "--instruction", "--quick", "--force", "--json", "--csv", "--color",
                  "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp
