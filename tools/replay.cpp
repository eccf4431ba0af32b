// halfulp replay: recorded answers of GPUs against the models.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>

#include "lib/error.h"
#include "lib/notice.h"
#include "lib/threads.h"
#include "tools/instruction_name.h"
#include "tools/kernel_text.h"
#include "tools/matrix_recordings.h"
#include "tools/mma_product.h"
#include "tools/options.h"
#include "tools/replay_text.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr uint32_t kMostChunks = 256;

constexpr std::string_view kNotes =
    R"(A recording is what 'halfulp record' writes, or one of tests/golden/h200. No GPU is needed.
Its answers are compared one by one, and its checksums over chunks of 2^24 inputs with those of the models: of each
sweep the --sample chunks spread over it, and those where answers differed when they were recorded; with --full every
chunk. The table says how much that was. A full recording takes hours of processor time, the sample minutes.
Kernels are compared in all of their chunks, in seconds; of runs of 16 elements that the recording keeps each code is
shown. --instruction and --recipe choose: where one is given, only what is named is compared. --csv has conversions,
or matrix instructions where there are only those.
Inputs are named by numbers, and the file says what they are: of f32 sources number 0x3f800000 is 1.0 in lane 0.
A .safetensors of 'halfulp record --matrices', or a folder of them, is compared output by output with the accumulator of
its instruction on its GPU, or with the one that --accumulator names.
Exit code 1 where anything differs.)";

uint32_t chunks_of(const Arguments& arguments) {
  if (!arguments.flag("--full")) return uint32_t(arguments.unsigned_integer("--sample", 1, kMostChunks));
  if (arguments.has("--sample")) throw UsageError("--full and --sample: it is one or the other");
  return kMostChunks;
}

bool names_any(const Arguments& arguments) { return arguments.has("--instruction") || arguments.has("--recipe"); }

// Leaves the instructions and recipes that --instruction and --recipe name; all where there is neither.
void select(const Arguments& arguments, const std::string& path, Recording& recording) {
  if (!names_any(arguments)) return;
  std::vector<int> ids;
  for (const std::string& name : arguments.list("--instruction")) ids.push_back(instruction_named(name));
  const std::vector<std::string> recipes = arguments.list("--recipe");
  std::erase_if(recording.instructions, [&](const RecordedInstruction& instruction) {
    return std::ranges::find(ids, instruction.ptx_cvt_id) == ids.end();
  });
  std::erase_if(recording.kernels, [&](const RecordedKernel& kernel) {
    return std::ranges::find(recipes, kernel.recipe) == recipes.end();
  });
  if (recording.instructions.empty() && recording.kernels.empty())
    throw InputError({.file = path}, "has nothing that --instruction and --recipe name");
}

bool is_of_matrices(const std::string& path) { return path.ends_with(".safetensors") && is_matrix_recording(path); }

// A folder stands for the .safetensors in it.
std::vector<std::string> paths_of(const Arguments& arguments) {
  std::vector<std::string> paths;
  for (const std::string& path : arguments.positionals("RECORDING")) {
    if (!std::filesystem::is_directory(path)) {
      paths.push_back(path);
      continue;
    }
    const std::size_t before = paths.size();
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.path().extension() == ".safetensors") paths.push_back(entry.path().string());
    if (paths.size() == before) throw InputError({.file = path}, "has no .safetensors");
    std::sort(paths.begin() + std::ptrdiff_t(before), paths.end());
  }
  return paths;
}

std::vector<MatrixFile> replay_matrices(const Arguments& arguments) {
  const Accumulator* const named =
      arguments.has("--accumulator") ? &accumulator_named(arguments.string("--accumulator")) : nullptr;
  std::vector<std::string> paths = paths_of(arguments);
  std::erase_if(paths, [](const std::string& path) { return !is_of_matrices(path); });
  if (!paths.empty() && names_any(arguments))
    throw UsageError(
        fmt::format("--instruction and --recipe choose among conversions and kernels; {} is of a matrix "
                    "instruction",
                    paths.front()));
  std::vector<MatrixFile> files(paths.size());
  parallel_for(paths.size(), threads_of(arguments), [&](std::size_t i) { files[i] = replay_matrix(paths[i], named); });
  return files;
}

std::vector<ReplayedFile> read_files(const Arguments& arguments) {
  std::vector<ReplayedFile> files;
  for (const std::string& path : paths_of(arguments)) {
    if (is_of_matrices(path)) continue;
    files.push_back({.path = path, .recording = read_recording(path), .sweeps = {}, .kernels = {}});
    select(arguments, path, files.back().recording);
  }
  for (ReplayedFile& file : files) file.kernels = kernels_to_replay(file.path, file.recording);
  return files;
}

void compare(const Arguments& arguments, std::vector<ReplayedFile>& files) {
  const ReplayOptions options{.most_chunks = chunks_of(arguments), .threads = threads_of(arguments)};
  uint64_t inputs = 0;
  for (const ReplayedFile& file : files) {
    inputs += inputs_of(plan_replay(file.recording, options.most_chunks));
    for (const RecordedKernel& kernel : file.recording.kernels) inputs += elements_of(kernel);
  }
  Progress progress("replay", inputs, ProgressUnit::elements, progress_of(arguments));
  const auto advance = [&](uint64_t count) { progress.advance(count); };
  for (ReplayedFile& file : files) {
    replay_kernels(file.kernels, options.threads, advance);
    file.sweeps = replay(file.recording, options, advance);
  }
}

std::string csv_of(const std::vector<ReplayedFile>& files) {
  std::vector<Facts> all;
  for (const ReplayedFile& file : files) {
    for (Facts& row : instruction_rows(file)) {
      row.insert(row.begin(), {"file", file.path});
      all.push_back(std::move(row));
    }
  }
  return to_csv(to_table(all));
}

std::vector<Facts> rows_of(const std::vector<MatrixFile>& files) {
  std::vector<Facts> rows;
  for (const MatrixFile& file : files) rows.push_back(row_of(file));
  return rows;
}

std::string matrices_text(const std::vector<MatrixFile>& files, Color color) {
  if (files.empty()) return "";
  std::string text = to_text(to_table(rows_of(files)), color);
  for (const MatrixFile& file : files)
    if (!file.differing.empty())
      text += fmt::format("\nFirst outputs of {} that differ:\n{}", file.path,
                          to_text(to_table(differing_rows(file)), color));
  return text;
}

void print(const std::vector<ReplayedFile>& files, const std::vector<MatrixFile>& matrices, OutputMode mode,
           Color color) {
  if (mode == OutputMode::csv) {
    std::cout << (files.empty() ? to_csv(to_table(rows_of(matrices))) : csv_of(files));
  } else if (mode == OutputMode::json) {
    Json list = Json::array();
    for (const ReplayedFile& file : files) list.push_back(to_json(file));
    Json products = to_json(rows_of(matrices));
    for (std::size_t i = 0; i < matrices.size(); ++i) products[i]["differing"] = to_json(differing_rows(matrices[i]));
    std::cout << dump_result("replay", {{"files", list}, {"matrices", products}});
  } else {
    std::string_view separator = "";
    for (const ReplayedFile& file : files) {
      std::cout << separator << to_text(file, color);
      separator = "\n";
    }
    std::cout << matrices_text(matrices, color);
  }
}

ExitCode run(const Arguments& arguments) {
  const OutputMode mode = output_mode_of(arguments);
  const Color color = color_of(arguments);
  std::vector<ReplayedFile> files = read_files(arguments);
  compare(arguments, files);
  for (const ReplayedFile& file : files)
    if (!file.recording.ignored.empty())
      notice(fmt::format("{}: not compared: {}", file.path, fmt::join(file.recording.ignored, ", ")));
  const std::vector<MatrixFile> matrices = replay_matrices(arguments);
  print(files, matrices, mode, color);
  const bool good = std::ranges::all_of(files, [](const ReplayedFile& file) { return file.agrees(); }) &&
                    std::ranges::all_of(matrices, [](const MatrixFile& file) { return file.differing.empty(); });
  return good ? ExitCode::good : ExitCode::check_failed;
}

}  // namespace

Verb replay_verb() {
  return {
      .name = "replay",
      .summary = "compares recorded answers of GPUs, and bytes of their kernels, with the models",
      .examples = {{"halfulp replay tests/golden/h200/cvt_all.json -i cvt.rn.bf16.f32,cvt.rn.satfinite.e4m3x2.f32",
                    "two instructions of an H200, a sample of their inputs"},
                   {"halfulp replay b200.json", "what `halfulp record` wrote"},
                   {"halfulp replay tests/golden/h200/mma", "an H200's matrix instructions"},
                   {"halfulp replay b200.json --full --threads 32", "every input, for some minutes"}},
      .positionals = {{.name = "RECORDING",
                       .help = "FILE.json, FILE.safetensors or a folder of those",
                       .count = Positional::Count::at_least_one}},
      .options = {"--instruction", "--recipe", "--accumulator", "--sample", "--full", "--json", "--csv", "--color",
                  "--threads", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp
