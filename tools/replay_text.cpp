#include "tools/replay_text.h"

#include <algorithm>
#include <span>

#include "emulation/recordings/models.h"
#include "tools/kernel_text.h"
#include "tools/number_text.h"

namespace halfulp {
namespace {

constexpr std::size_t kMostShown = 8;

const PtxCvtRow& row_of(const SweepReplay& sweep) { return kPtxCvts[std::size_t(sweep.ptx_cvt_id)]; }
std::string_view inputs_name(const SweepReplay& sweep) { return kCvtInputs[std::size_t(sweep.inputs)].name; }

// Sums over the sweeps of one instruction, or of all.
struct Totals {
  uint64_t all = 0, recorded = 0, compared = 0, chunks = 0, wrong_chunks = 0, answers = 0, wrong_answers = 0;
};

Totals totals_of(std::span<const SweepReplay> sweeps) {
  Totals sum;
  for (const SweepReplay& sweep : sweeps) {
    sum.all += sweep.inputs_in_all;
    sum.recorded += sweep.inputs_recorded;
    sum.compared += sweep.inputs_compared;
    sum.chunks += sweep.chunks.size();
    sum.wrong_chunks += sweep.wrong_chunks.size();
    sum.answers += sweep.answers_compared;
    sum.wrong_answers += sweep.wrong_answers.size();
  }
  return sum;
}

std::string count_text(uint64_t count) { return count_cell(count).text; }

Fact count_fact(std::string_view key, uint64_t count) { return {key, count, count_text(count)}; }

// The sweeps of each instruction.
std::vector<std::span<const SweepReplay>> by_instruction(std::span<const SweepReplay> sweeps) {
  std::vector<std::span<const SweepReplay>> groups;
  while (!sweeps.empty()) {
    const int id = sweeps.front().ptx_cvt_id;
    const auto end = std::ranges::find_if(sweeps, [&](const SweepReplay& s) { return s.ptx_cvt_id != id; });
    groups.push_back(sweeps.first(std::size_t(end - sweeps.begin())));
    sweeps = sweeps.subspan(groups.back().size());
  }
  return groups;
}

// The lanes of an answer that differ; of equal inputs the answer is lane 0 alone.
std::vector<Facts> lane_rows(const SweepReplay& sweep, const DifferingAnswer& answer) {
  const PtxCvt& op = conversion(sweep.ptx_cvt_id);
  const CvtInput input = cvt_input(domain_of(op), sweep.inputs, answer.input);
  const Format &from = op.from.format, &to = op.to.format;
  const int bits = op.to.storage_bits, lanes = answer_bits(op, sweep.inputs) / bits;
  std::vector<Facts> rows;
  for (int lane = 0; lane < lanes; ++lane) {
    const uint32_t mask = uint32_t(low_mask(bits)), source = input.sources[lane];
    const uint32_t recorded = answer.recorded >> (lane * bits) & mask, model = answer.model >> (lane * bits) & mask;
    if (recorded == model) continue;
    const auto code = [&](uint32_t stored) { return stored >> op.to.storage_shift & to.code_mask(); };
    rows.push_back({{"input", hex_bits(answer.input, 32)},
                    {"lane", lane},
                    {"source", hex_bits(source, from.bits())},
                    {"value", Json(double(decode(from, source))), value_text(from, source)}});
    if (op.random != RandomField::none) {
      const RandomBits random = random_bits(op, input.word, lane);
      rows.back().emplace_back("random", hex_bits(random.word, random.count));
    }
    for (const auto& [who, stored] : {std::pair{"recorded", recorded}, std::pair{"model", model}}) {
      rows.back().emplace_back(who, hex_bits(stored, bits));
      rows.back().emplace_back(fmt::format("{}_fields", who), fields_text(to, code(stored)));
      rows.back().emplace_back(fmt::format("{}_value", who), Json(double(decode(to, code(stored)))),
                               value_text(to, code(stored)));
    }
  }
  return rows;
}

std::vector<Facts> lane_rows(const SweepReplay& sweep) {
  std::vector<Facts> rows;
  for (const DifferingAnswer& answer : sweep.wrong_answers)
    std::ranges::move(lane_rows(sweep, answer), std::back_inserter(rows));
  return rows;
}

// "63 (inputs 0x3f000000 to 0x3fffffff)"
std::string chunk_text(const SweepReplay& sweep, uint32_t chunk) {
  const uint64_t inputs = chunk_inputs(domain_of(conversion(sweep.ptx_cvt_id)), sweep.inputs);
  return fmt::format("{} (inputs {} to {})", chunk, hex_bits(chunk * inputs, 32),
                     hex_bits((chunk + 1) * inputs - 1, 32));
}

std::string wrong_chunks_text(const SweepReplay& sweep) {
  std::string text;
  for (const uint32_t chunk : std::span(sweep.wrong_chunks).first(std::min(kMostShown, sweep.wrong_chunks.size())))
    text += (text.empty() ? "" : ", ") + chunk_text(sweep, chunk);
  if (sweep.wrong_chunks.size() > kMostShown)
    text += fmt::format(" and {} more", sweep.wrong_chunks.size() - kMostShown);
  return text;
}

std::string sweep_text(const SweepReplay& sweep, Color color) {
  std::string text = fmt::format("\n{}, inputs '{}': {} of {} answers differ, and the checksums of {} of {} chunks\n",
                                 row_of(sweep).name, inputs_name(sweep), sweep.wrong_answers.size(),
                                 sweep.answers_compared, sweep.wrong_chunks.size(), sweep.chunks.size());
  if (!sweep.wrong_chunks.empty()) text += "chunks that differ: " + wrong_chunks_text(sweep) + "\n";
  std::vector<Facts> rows = lane_rows(sweep);
  if (rows.empty()) {
    return text + fmt::format(
                      "The recording has no answer that differs. 'halfulp record --force -i {}' on that GPU, "
                      "with this version, keeps some.\n",
                      row_of(sweep).name);
  }
  const std::size_t more = rows.size() > kMostShown ? rows.size() - kMostShown : 0;
  rows.resize(rows.size() - more);
  text += to_text(to_table(rows), color);
  return more == 0 ? text : text + fmt::format("and {} more (--json has them)\n", more);
}

// "sm_100a has 3 more conversions that the recording does not have."
std::string unrecorded_text(const ReplayedFile& file) {
  const std::string& target = file.recording.target;
  if (!target.starts_with("sm_")) return "";
  std::size_t missing = 0;
  for (std::size_t id = 0; id < kPtxCvts.size(); ++id)
    missing += has_target(kSinces[std::size_t(kPtxCvts[id].since)].targets, target.substr(3)) &&
               std::ranges::find(file.recording.instructions, int(id), &RecordedInstruction::ptx_cvt_id) ==
                   file.recording.instructions.end();
  return missing == 0 ? "" : fmt::format(" {} has {} more conversions that are not recorded.", target, missing);
}

std::vector<Facts> kernel_rows(const ReplayedFile& file) {
  std::vector<uint64_t> wrong;
  for (const KernelReplay& kernel : file.kernels) wrong.push_back(kernel.wrong_chunks.size());
  return kernel_rows(file.recording.kernels, "wrong_chunks", wrong);
}

std::string kernel_text(const KernelReplay& kernel, Color color) {
  std::string chunks;
  for (const uint32_t chunk : kernel.wrong_chunks) chunks += fmt::format("{}{}", chunks.empty() ? "" : ", ", chunk);
  std::string text = runs_text(*kernel.recorded, *kernel.recipe, kernel.wrong_runs, color);
  if (!chunks.empty())
    text += fmt::format("chunks that differ: {} of {}: {}\n", kernel.wrong_chunks.size(),
                        kernel.recorded->chunks.size(), chunks);
  return text;
}

std::string kernels_text(const ReplayedFile& file, Color color) {
  if (file.kernels.empty()) return "";
  std::string text = file.sweeps.empty() ? "" : "\n";
  text += "Kernels, by how they convert:\n" + to_text(to_table(kernel_rows(file)), color);
  uint64_t elements = 0, wrong = 0;
  for (const KernelReplay& kernel : file.kernels) {
    elements += elements_of(*kernel.recorded);
    wrong += !kernel.agrees();
    if (!kernel.agrees()) text += kernel_text(kernel, color);
  }
  return text + fmt::format("\n{} kernel{}: {} elements compared by checksum. {}\n", file.kernels.size(),
                            file.kernels.size() == 1 ? "" : "s", count_text(elements),
                            wrong == 0 ? "No mismatch." : fmt::format("Mismatches in {} of them.", wrong));
}

Json kernel_json(const KernelReplay& kernel) {
  const RecordedKernel& recorded = *kernel.recorded;
  Json forms = {{"elements", form_text(recorded.forms.native_elements)}};
  if (recorded.forms.native_scales) forms["scales"] = form_text(recorded.forms.native_scales);
  return {{"recipe", recorded.recipe},
          {"dtype", row(recorded.dtype).name},
          {"form", forms},
          {"elements_compared", elements_of(recorded)},
          {"chunks_compared", recorded.chunks.size()},
          {"wrong_chunks", kernel.wrong_chunks},
          {"wrong_elements", to_json(run_rows(*kernel.recipe, recorded.dtype, kernel.wrong_runs))}};
}

std::string verdict_text(const ReplayedFile& file) {
  const Totals sum = totals_of(file.sweeps);
  const auto instructions = by_instruction(file.sweeps);
  const auto wrong = std::ranges::count_if(instructions, [](const auto& sweeps) {
    return std::ranges::any_of(sweeps, [](const SweepReplay& sweep) { return !sweep.agrees(); });
  });
  const std::size_t count = instructions.size();
  const std::string left_out =
      sum.compared == sum.recorded ? "" : fmt::format(" ({} recorded; --full compares all)", count_text(sum.recorded));
  return fmt::format("{} instruction{}: {} inputs compared by checksum{}, {} answers one by one. {}{}\n", count,
                     count == 1 ? "" : "s", count_text(sum.compared), left_out, count_text(sum.answers),
                     wrong == 0 ? "No mismatch." : fmt::format("Mismatches in {} of them.", wrong),
                     unrecorded_text(file));
}

std::string origin_text(const Recording& recording) {
  std::string text = recording.device;
  if (!recording.target.empty()) text += ", " + recording.target;
  if (!recording.driver.empty()) text += ", driver " + recording.driver;
  if (!recording.cuda.empty()) text += ", CUDA " + recording.cuda;
  if (!recording.halfulp.empty()) text += ", recorded by halfulp " + recording.halfulp;
  return text;
}

Json sweep_json(const SweepReplay& sweep) {
  return {{"inputs", inputs_name(sweep)},
          {"inputs_in_all", sweep.inputs_in_all},
          {"inputs_recorded", sweep.inputs_recorded},
          {"inputs_compared", sweep.inputs_compared},
          {"chunks_compared", sweep.chunks},
          {"wrong_chunks", sweep.wrong_chunks},
          {"answers_compared", sweep.answers_compared},
          {"wrong_answers", sweep.wrong_answers.size()},
          {"wrong_lanes", to_json(lane_rows(sweep))}};
}

}  // namespace

bool ReplayedFile::agrees() const {
  return std::ranges::all_of(sweeps, [](const SweepReplay& sweep) { return sweep.agrees(); }) &&
         std::ranges::all_of(kernels, [](const KernelReplay& kernel) { return kernel.agrees(); });
}

std::vector<Facts> instruction_rows(const ReplayedFile& file) {
  std::vector<Facts> rows;
  for (const auto& sweeps : by_instruction(file.sweeps)) {
    const Totals sum = totals_of(sweeps);
    const PtxCvtRow& row = row_of(sweeps.front());
    rows.push_back({{"instruction", row.name},
                    {"evidence", kEvidenceNames[std::size_t(row.evidence)]},
                    count_fact("inputs", sum.all),
                    count_fact("compared", sum.compared),
                    count_fact("chunks", sum.chunks),
                    count_fact("wrong_chunks", sum.wrong_chunks),
                    count_fact("answers", sum.answers),
                    count_fact("wrong_answers", sum.wrong_answers)});
  }
  return rows;
}

std::string to_text(const ReplayedFile& file, Color color) {
  std::string text = fmt::format("{}: {}\n\n", printable(file.path), printable(origin_text(file.recording)));
  if (!file.sweeps.empty()) text += to_text(to_table(instruction_rows(file)), color);
  for (const SweepReplay& sweep : file.sweeps)
    if (!sweep.agrees()) text += sweep_text(sweep, color);
  if (!file.sweeps.empty() || file.kernels.empty()) text += "\n" + verdict_text(file);
  return text + kernels_text(file, color);
}

Json to_json(const ReplayedFile& file) {
  Json instructions = Json::array();
  for (const auto& sweeps : by_instruction(file.sweeps)) {
    Json list = Json::array();
    for (const SweepReplay& sweep : sweeps) list.push_back(sweep_json(sweep));
    const PtxCvtRow& row = row_of(sweeps.front());
    instructions.push_back(
        {{"instruction", row.name}, {"evidence", kEvidenceNames[std::size_t(row.evidence)]}, {"sweeps", list}});
  }
  Json kernels = Json::array();
  for (const KernelReplay& kernel : file.kernels) kernels.push_back(kernel_json(kernel));
  const Recording& recording = file.recording;
  return {{"file", file.path},          {"device", recording.device},   {"target", recording.target},
          {"driver", recording.driver}, {"cuda", recording.cuda},       {"not_compared", recording.ignored},
          {"agrees", file.agrees()},    {"instructions", instructions}, {"kernels", kernels}};
}

}  // namespace halfulp
