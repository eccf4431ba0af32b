// halfulp record: what the conversion instructions of a GPU answer and what its kernels compute, into a file that
// `halfulp replay` checks anywhere.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <optional>
#include <utility>

#include "emulation/recordings/kernel_name.h"
#include "emulation/recordings/kernels.h"
#include "emulation/recordings/models.h"
#include "emulation/recordings/record.h"
#include "lib/atomic_file.h"
#include "lib/error.h"
#include "lib/notice.h"
#include "lib/threads.h"
#include "tools/backends.h"
#include "tools/facts.h"
#include "tools/halfulp_version.h"
#include "tools/instruction_name.h"
#include "tools/kernel_text.h"
#include "tools/matrix_recordings.h"
#include "tools/options.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr uint32_t kEveryChunk = 256, kQuickChunks = 16;
constexpr uint64_t kTiles = 16, kQuickTiles = 2;  // of matrix instructions, in each mode
using KernelOf = std::pair<const Recipe*, Dtype>;

constexpr std::string_view kNotes =
    R"(Every conversion of the catalog that the GPU's code has as an instruction is asked for all its inputs: for f32 sources
all 2^32 values in every lane, and 2^32 pairs of values near ties and limits; of narrower sources every register; with
.rs random words of both kinds. What is emulated on this GPU is never recorded. The GPU is cuda:0 unless --device names
another.
Then every recipe that has a kernel of its own is computed from F32, F16 and BF16, on a matrix of 2^22 numbers of every
kind, and compared with the CPU: checksums of codes and scales go into the file, and the form of the conversions in
them, native or software. --instruction and --recipe choose: where one is given, only what is named is recorded.
With --matrices FOLDER the matrix instructions that the GPU's code has, mma.sync, wgmma (sm_90a) or tcgen05 (sm_100a,
sm_103a), are recorded too: a safetensors file for each with 16 tiles (--quick: 2) in each of nine modes and the directed
probes that are of its formats, compared with the accumulator of the instruction. Blackwell's were compiled, and have
never run on such a GPU.
The file has the definitions of inputs and checksums in words; per instruction a checksum for each of 256 chunks of
inputs, 64 answers as they are, how many answers the models do not give, and up to 16 of those.
It is written whole after each instruction and recipe. Where it exists already, what it lacks is added: an interrupted recording
goes on where it ended.
Exit code 0 means recorded, whatever the answers are: 'halfulp replay' tells, and shows what differs.)";

// What is recorded where, and what the file has already.
struct Job {
  const Backend* backend;
  DeviceInfo device;
  std::string path;
  RecordJob work;
  std::vector<KernelOf> kernels;  // by dtype
  uint32_t kernel_chunks;
  Recording recording;
};

std::vector<int> native_instructions(const DeviceInfo& device) {
  std::vector<int> ids;
  for (std::size_t id = 0; id < device.native.size(); ++id)
    if (device.native[id]) ids.push_back(int(id));
  return ids;
}

std::vector<int> instructions_of(const Arguments& arguments, const DeviceInfo& device) {
  if (!arguments.has("--instruction"))
    return arguments.has("--recipe") ? std::vector<int>() : native_instructions(device);
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

// The recipes that have a kernel: all, those that are named, or none where only instructions are.
std::vector<KernelOf> kernels_of(const Arguments& arguments, const Backend& backend) {
  std::vector<std::string> names = arguments.list("--recipe");
  const bool all = names.empty() && !arguments.has("--instruction");
  std::vector<KernelOf> kernels;
  for (const Dtype dtype : kKernelDtypes)
    for (const Recipe& recipe : backend.kernels)
      if (all || std::ranges::find(names, stated_name(recipe)) != names.end()) kernels.emplace_back(&recipe, dtype);
  for (const KernelOf& kernel : kernels) std::erase(names, stated_name(*kernel.first));
  if (names.empty()) return kernels;
  throw UsageError(
      fmt::format("--recipe {}: has no kernel of its own; 'halfulp doctor' lists those that have", names.front()));
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
          .kernels = {},
          .kernel_chunks = arguments.flag("--quick") ? kQuickKernelChunks : kKernelChunks,
          .recording = {}};
  job.work = {.ptx_cvt_ids = instructions_of(arguments, job.device),
              .most_chunks = arguments.flag("--quick") ? kQuickChunks : kEveryChunk,
              .recorded = arguments.flag("--force") ? Recorded::again : Recorded::skip};
  job.kernels = kernels_of(arguments, *job.backend);
  job.recording = recording_in(job.path, job.device);
  return job;
}

void save(const Job& job) {
  const std::string text = recording_text(job.recording);
  AtomicFile file(job.path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

// What of a job the file lacks.
struct Missing {
  std::vector<int> instructions;
  std::vector<KernelOf> kernels;

  std::size_t count() const { return instructions.size() + kernels.size(); }
};

Missing missing(const Job& job) {
  Missing missing{.instructions = missing_instructions(job.recording, job.work), .kernels = job.kernels};
  if (job.work.recorded == Recorded::skip)
    std::erase_if(missing.kernels, [&](const KernelOf& kernel) {
      return has_kernel(job.recording, stated_name(*kernel.first), kernel.second, job.kernel_chunks);
    });
  return missing;
}

uint64_t elements_of(const Job& job) { return job.kernel_chunks * kKernelChunk.elements(); }

void record_kernels(Job& job, const std::vector<KernelOf>& kernels, Progress& progress) {
  std::vector<std::byte> elements;
  std::optional<Dtype> present;
  for (const auto& [recipe, dtype] : kernels) {
    throw_if_interrupted();
    if (present != dtype) elements = kernel_elements(dtype, 0, elements_of(job));
    present = dtype;
    record_kernel(*job.backend, *recipe, dtype, elements, default_threads(), job.recording);
    save(job);
    progress.advance(elements_of(job));
  }
}

// Saves after each instruction and kernel, so that an interrupt loses the one in work at most.
void record(Job& job, const Missing& missing, ProgressMode mode) {
  const uint64_t inputs = inputs_of(missing.instructions, job.work.most_chunks);
  Progress progress("record", inputs + missing.kernels.size() * elements_of(job), ProgressUnit::elements, mode);
  save(job);  // fails now rather than after the work
  for (const int id : missing.instructions) {
    record_instruction(*job.backend, id, job.work.most_chunks, job.recording,
                       [&](uint64_t count) { progress.advance(count); });
    save(job);
  }
  record_kernels(job, missing.kernels, progress);
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

std::vector<Facts> kernel_rows(const Recording& recording) {
  std::vector<uint64_t> mismatches;
  for (const RecordedKernel& kernel : recording.kernels) mismatches.push_back(kernel.mismatches);
  return kernel_rows(recording.kernels, "mismatches", mismatches);
}

// How many rows have mismatches, which stand last.
std::ptrdiff_t count_different(const std::vector<Facts>& rows) {
  return std::ranges::count_if(rows, [](const Facts& facts) { return facts.back().value != 0; });
}

std::string verdict_of(const Job& job, const std::vector<Facts>& instructions, const std::vector<Facts>& kernels) {
  const auto conversions = count_different(instructions), recipes = count_different(kernels);
  if (conversions + recipes == 0)
    return kernels.empty() ? "Every answer is the model's." : "Everything is the model's.";
  return fmt::format("Not as the models have it: {} conversions, {} recipes; 'halfulp replay {}' shows it, bit by bit.",
                     conversions, recipes, job.path);
}

// The runs of the kernels that differ from the CPU's.
std::string differing_text(const Job& job, Color color) {
  std::string text;
  for (const RecordedKernel& kernel : job.recording.kernels) {
    if (kernel.mismatches == 0) continue;
    const Recipe& recipe = recipe_of_recording(job.path, kernel.recipe);
    text += runs_text(kernel, recipe, differing_runs(kernel, recipe), color);
  }
  return text;
}

std::string text_of(const Job& job, const std::vector<Facts>& rows, std::size_t recorded_now, Color color) {
  const std::vector<Facts> kernels = kernel_rows(job.recording);
  std::string text = rows.empty() ? "" : to_text(to_table(rows), color) + "\n";
  if (!kernels.empty()) {
    text += "Kernels, by how they convert; mismatches are runs of 16 elements:\n" + to_text(to_table(kernels), color);
    text += differing_text(job, color) + "\n";
  }
  return text + fmt::format("{} ({}): in {}: {} instructions, {} kernels, {} recorded now. {}\n", job.device.name,
                            job.device.target, job.path, rows.size(), job.recording.kernels.size(), recorded_now,
                            verdict_of(job, rows, kernels));
}

// Of matrix instructions, where --matrices names a folder for them.
std::vector<MatrixFile> record_matrices(const Arguments& arguments, const Job& job) {
  if (!arguments.has("--matrices")) return {};
  const std::string folder = arguments.string("--matrices");
  std::vector<MatrixFile> files =
      record_matrices_of(*job.backend, job.device, folder, arguments.flag("--quick") ? kQuickTiles : kTiles);
  if (files.empty())
    notice(fmt::format("--matrices {}: the code for {} has none of the instructions that are recorded there", folder,
                       job.device.target));
  return files;
}

std::vector<Facts> matrix_rows(const std::vector<MatrixFile>& files) {
  std::vector<Facts> rows;
  for (const MatrixFile& file : files) rows.push_back(row_of(file));
  return rows;
}

void print(const Arguments& arguments, const Job& job, std::size_t recorded_now,
           const std::vector<MatrixFile>& matrices) {
  std::vector<Facts> rows;
  for (const RecordedInstruction& instruction : job.recording.instructions) rows.push_back(row_of(instruction));
  const OutputMode mode = output_mode_of(arguments);
  if (mode == OutputMode::json) {
    const Json body = {{"device", job.device.name},
                       {"file", job.path},
                       {"recorded_now", recorded_now},
                       {"target", job.device.target},
                       {"instructions", to_json(rows)},
                       {"kernels", to_json(kernel_rows(job.recording))},
                       {"matrices", to_json(matrix_rows(matrices))}};
    std::cout << dump_result("record", body);
  } else if (mode == OutputMode::csv) {
    std::cout << to_csv(to_table(rows));
  } else {
    std::cout << text_of(job, rows, recorded_now, color_of(arguments));
    if (!matrices.empty()) std::cout << "\n" << to_text(to_table(matrix_rows(matrices)), color_of(arguments));
  }
}

ExitCode run(const Arguments& arguments) {
  output_mode_of(arguments);  // refuses what contradicts before the work
  color_of(arguments);
  Job job = job_of(arguments);
  const Missing lacking = missing(job);
  const std::size_t all = job.work.ptx_cvt_ids.size() + job.kernels.size();
  if (lacking.count() < all) {
    notice(fmt::format("{} has {} of the {} instructions and kernels already; --force records them again", job.path,
                       all - lacking.count(), all));
  }
  if (lacking.count() > 0) record(job, lacking, progress_of(arguments));
  print(arguments, job, lacking.count(), record_matrices(arguments, job));
  return ExitCode::good;
}

}  // namespace

Verb record_verb() {
  return {
      .name = "record",
      .summary = "records what the conversion instructions of a GPU answer, and what its kernels compute",
      .examples = {{"halfulp record -o b200.json",
                    "every conversion that the first GPU has, over all inputs, and every kernel"},
                   {"halfulp record -o b200.json --instruction cvt.rs.satfinite.e2m1x4.f32 --force",
                    "one instruction, again"},
                   {"halfulp record -o b200.json --matrices b200", "its matrix instructions too"},
                   {"halfulp record -o quick.json --quick --device cuda:1", "a 16th of the inputs, on the second GPU"}},
      .positionals = {},
      .options = {"--output", "--device", "--instruction", "--recipe", "--matrices", "--quick", "--force", "--json",
                  "--csv", "--color", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp
