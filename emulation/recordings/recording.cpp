#include "emulation/recordings/recording.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <optional>

#include "emulation/recordings/models.h"
#include "lib/cli.h"
#include "lib/error.h"
#include "lib/mapped_file.h"

namespace halfulp {
namespace {

constexpr std::string_view kSchema = "halfulp.recording/1";
constexpr std::string_view kSampleMeaning =
    "answers to the inputs k * 0x9e3779b1 mod the number of inputs, k = 0, 1, …";

constexpr std::string_view kRunMeaning =
    "elements 16 * run to 16 * run + 15: codes as they are stored, and the scale of their block; of runs that the CPU "
    "of "
    "the build that recorded makes otherwise there are `mismatches`";

std::string hex(uint64_t word, int bits) { return fmt::format("0x{:0{}x}", word, (bits + 3) / 4); }

// A value of the file with its place, for messages.
class Entry {
 public:
  Entry(const std::string& file, const Json& value, std::string place = "")
      : file_(file), value_(value), place_(std::move(place)) {}

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError({.file = file_}, (place_.empty() ? "" : place_ + ": ") + message);
  }

  bool has(const std::string& key) const { return value_.is_object() && value_.contains(key); }
  Entry at(const std::string& key) const {
    if (!value_.is_object()) fail("expected an object");
    if (!value_.contains(key)) fail("has no member '" + key + "'");
    return {file_, value_.at(key), place_.empty() ? key : place_ + "/" + key};
  }
  Entry at(std::size_t index) const { return {file_, value_.at(index), fmt::format("{}[{}]", place_, index)}; }

  std::size_t size() const {
    if (!value_.is_array()) fail("expected a list");
    return value_.size();
  }
  const Json& members() const {
    if (!value_.is_object()) fail("expected an object");
    return value_;
  }
  std::string text() const {
    if (!value_.is_string()) fail("expected a string, got " + value_.dump());
    return value_.get<std::string>();
  }
  // Of a place that need not be there.
  std::string text(const std::string& key) const { return has(key) ? at(key).text() : ""; }
  uint64_t number(uint64_t most) const {
    if (!value_.is_number_unsigned() || value_.get<uint64_t>() > most)
      fail(fmt::format("expected a number from 0 to {}, got {}", most, value_.dump()));
    return value_.get<uint64_t>();
  }
  // Hexadecimal digits, "0x" before them or not.
  uint64_t word(int bits) const {
    std::string digits = text();
    if (digits.starts_with("0x")) digits.erase(0, 2);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size() || value > low_mask(bits))
      fail(fmt::format("expected {} bits as hexadecimal digits, got '{}'", bits, text()));
    return value;
  }

 private:
  const std::string& file_;
  const Json& value_;
  std::string place_;
};

// What a sweep's numbers must agree with.
struct SweepShape {
  CvtInputs inputs;
  uint64_t count;
  uint32_t chunks;
  int answer_bits;
};

SweepShape shape_of(int id, CvtInputs inputs) {
  const PtxCvt& op = conversion(id);
  return {inputs, count_inputs(domain_of(op), inputs), count_chunks(domain_of(op), inputs), answer_bits(op, inputs)};
}

std::vector<uint32_t> all_chunks(const SweepShape& shape) {
  std::vector<uint32_t> chunks(shape.chunks);
  std::iota(chunks.begin(), chunks.end(), 0u);
  return chunks;
}

std::vector<uint32_t> read_chunks(const Entry& entry, const SweepShape& shape) {
  std::vector<uint32_t> chunks;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    chunks.push_back(uint32_t(entry.at(i).number(shape.chunks - 1)));
    if (i > 0 && chunks[i] <= chunks[i - 1]) entry.at(i).fail("chunks do not ascend");
  }
  return chunks;
}

std::vector<uint64_t> read_checksums(const Entry& entry, std::size_t expected) {
  std::vector<uint64_t> sums;
  if (entry.size() != expected) entry.fail(fmt::format("expected {} checksums, got {}", expected, entry.size()));
  for (std::size_t i = 0; i < entry.size(); ++i) sums.push_back(entry.at(i).word(64));
  return sums;
}

uint32_t sample_input(const SweepShape& shape, uint32_t k) { return uint32_t(k * kSampleStride & (shape.count - 1)); }

std::vector<RecordedAnswer> read_sample(const Entry& entry, const SweepShape& shape) {
  std::vector<RecordedAnswer> sample;
  for (uint32_t k = 0; k < entry.size(); ++k)
    sample.push_back({sample_input(shape, k), uint32_t(entry.at(k).word(shape.answer_bits))});
  return sample;
}

std::vector<RecordedAnswer> read_differing(const Entry& entry, const SweepShape& shape) {
  std::vector<RecordedAnswer> answers;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    const Entry number = entry.at(i).at("input");
    const uint64_t input = number.word(32);
    if (input >= shape.count) number.fail(fmt::format("there are {} inputs", shape.count));
    answers.push_back({uint32_t(input), uint32_t(entry.at(i).at("answer").word(shape.answer_bits))});
  }
  return answers;
}

RecordedSweep read_sweep(const Entry& entry, const SweepShape& shape) {
  if (const uint64_t inputs = entry.at("inputs").number(shape.count); inputs != shape.count)
    entry.at("inputs").fail(fmt::format("expected {}, got {}", shape.count, inputs));
  RecordedSweep sweep{.inputs = shape.inputs, .chunks = {}, .checksums = {}, .sample = {}, .differing = {}};
  sweep.chunks = entry.has("chunks") ? read_chunks(entry.at("chunks"), shape) : all_chunks(shape);
  sweep.checksums = read_checksums(entry.at("checksums"), sweep.chunks.size());
  sweep.sample = read_sample(entry.at("sample"), shape);
  sweep.mismatches = entry.at("mismatches").number(shape.count);
  sweep.differing = read_differing(entry.at("differing"), shape);
  return sweep;
}

int id_of(const Entry& entry, const std::string& name) {
  if (const int id = find_ptx_cvt(name); id >= 0) return id;
  std::vector<std::string> names;
  for (const PtxCvtRow& row : kPtxCvts) names.emplace_back(row.name);
  entry.fail("is no conversion that this halfulp knows" + did_you_mean(name, names));
}

RecordedInstruction read_instruction(const Entry& entry, const std::string& name) {
  RecordedInstruction instruction{.ptx_cvt_id = id_of(entry, name), .sweeps = {}};
  const PtxCvt& op = conversion(instruction.ptx_cvt_id);
  if (const std::string form = entry.at("form").text(); form != "native")
    entry.at("form").fail("expected 'native', what hardware answered, got '" + form + "'");
  const Entry sweeps = entry.at("sweeps");
  for (const auto& [kind, value] : sweeps.members().items()) {
    const auto row = std::ranges::find(kCvtInputs, kind, &CvtInputsEntry::name);
    const CvtInputs inputs = CvtInputs(row - kCvtInputs.begin());
    if (row == kCvtInputs.end() || !has_inputs(op, inputs)) sweeps.at(kind).fail("no inputs of this instruction");
    instruction.sweeps.push_back(read_sweep(sweeps.at(kind), shape_of(instruction.ptx_cvt_id, inputs)));
  }
  return instruction;
}

bool read_form(const Entry& entry) {
  const std::string form = entry.text();
  if (form != "native" && form != "software") entry.fail("expected 'native' or 'software', got '" + form + "'");
  return form == "native";
}

KernelForms read_forms(const Entry& entry) {
  KernelForms forms{.native_elements = read_form(entry.at("elements")), .native_scales = {}};
  if (entry.has("scales")) forms.native_scales = read_form(entry.at("scales"));
  return forms;
}

std::vector<KernelChunk> read_kernel_chunks(const Entry& entry) {
  const Entry codes = entry.at("codes"), scales = entry.at("scales");
  if (codes.size() < 1 || codes.size() > kKernelChunks)
    codes.fail(fmt::format("expected 1 to {} checksums, got {}", kKernelChunks, codes.size()));
  const std::vector<uint64_t> of_codes = read_checksums(codes, codes.size());
  const std::vector<uint64_t> of_scales = read_checksums(scales, codes.size());
  std::vector<KernelChunk> chunks;
  for (std::size_t i = 0; i < of_codes.size(); ++i) chunks.push_back({of_codes[i], of_scales[i]});
  return chunks;
}

std::vector<RecordedRun> read_runs(const Entry& entry, uint64_t runs) {
  std::vector<RecordedRun> result;
  for (std::size_t i = 0; i < entry.size(); ++i) {
    const Entry codes = entry.at(i).at("codes");
    RecordedRun& run = result.emplace_back(RecordedRun{.run = uint32_t(entry.at(i).at("run").number(runs - 1)),
                                                       .codes = {},
                                                       .scale = uint32_t(entry.at(i).at("scale").word(32))});
    if (codes.size() != kRunElements) codes.fail(fmt::format("expected {} codes, got {}", kRunElements, codes.size()));
    for (std::size_t k = 0; k < kRunElements; ++k) run.codes.push_back(uint32_t(codes.at(k).word(32)));
  }
  return result;
}

RecordedKernel read_kernel(const Entry& entry, const std::string& recipe, const std::string& dtype_name) {
  const std::optional<Dtype> dtype = dtype_named(dtype_name);
  if (!dtype || std::ranges::find(kKernelDtypes, *dtype) == std::end(kKernelDtypes))
    entry.fail("expected one of F32, F16, BF16");
  RecordedKernel kernel{.recipe = recipe,
                        .dtype = *dtype,
                        .forms = read_forms(entry.at("form")),
                        .chunks = read_kernel_chunks(entry),
                        .differing = {}};
  const uint64_t runs = kernel.chunks.size() * kKernelChunk.elements() / kRunElements;
  kernel.mismatches = entry.at("mismatches").number(runs);
  kernel.differing = read_runs(entry.at("differing"), runs);
  return kernel;
}

// In order of recipe and dtype.
std::vector<RecordedKernel> read_kernels(const Entry& recipes) {
  std::vector<RecordedKernel> kernels;
  for (const auto& [recipe, dtypes] : recipes.members().items())
    for (const auto& [dtype, value] : recipes.at(recipe).members().items())
      kernels.push_back(read_kernel(recipes.at(recipe).at(dtype), recipe, dtype));
  std::ranges::sort(kernels, {}, [](const RecordedKernel& kernel) { return std::pair(kernel.recipe, kernel.dtype); });
  return kernels;
}

// An older file's checksums, and its table of answers where it has one.
RecordedInstruction read_older(const Entry& file, const std::string& name) {
  const Entry entry = file.at("ops").at(name);
  const int id = id_of(entry, name);
  const SweepShape shape = shape_of(id, CvtInputs::equal);
  if (!has_inputs(conversion(id), CvtInputs::equal)) entry.fail("has no inputs that are equal");
  RecordedSweep sweep{
      .inputs = CvtInputs::equal, .chunks = all_chunks(shape), .checksums = {}, .sample = {}, .differing = {}};
  sweep.checksums = read_checksums(entry, sweep.chunks.size());
  if (file.has("tables") && file.at("tables").has(name)) {
    const Entry table = file.at("tables").at(name);
    if (table.size() != shape.count) table.fail(fmt::format("expected {} answers, got {}", shape.count, table.size()));
    for (uint32_t i = 0; i < table.size(); ++i)
      sweep.sample.push_back({i, uint32_t(table.at(i).number(low_mask(shape.answer_bits)))});
  }
  return {.ptx_cvt_id = id, .sweeps = {sweep}};
}

// How a JSON text is wrong, by the byte.
Json parse(const std::string& path) {
  if (path.ends_with(".safetensors"))
    throw InputError({.file = path}, "is a safetensors file; recordings of conversions are JSON");
  const MappedFile file(path);
  const auto* text = reinterpret_cast<const char*>(file.bytes().data());
  try {
    return Json::parse(text, text + file.bytes().size());
  } catch (const Json::parse_error& error) {
    const bool ends = error.byte > file.bytes().size();
    throw InputError({.file = path, .tensor = {}, .byte = ends ? file.bytes().size() : error.byte - 1},
                     ends ? "the file ends within its JSON: was it cut off?" : "is not JSON");
  } catch (const Json::exception&) {
    throw InputError({.file = path}, "has a number that no JSON reader takes");
  }
}

void read_members(const Entry& file, Recording& recording) {
  constexpr std::string_view kRead[] = {"schema",       "device",   "compute", "target", "driver",
                                        "cuda",         "halfulp",  "ops",     "tables", "inputs",
                                        "instructions", "checksum", "sample",  "script", "kernels"};
  recording.device = file.at("device").text();
  recording.compute = file.text("compute");
  recording.target = file.text("target");
  recording.driver = file.text("driver");
  recording.cuda = file.text("cuda");
  recording.halfulp = file.text("halfulp");
  for (const auto& [key, value] : file.members().items())
    if (std::ranges::find(kRead, key) == std::end(kRead)) recording.ignored.push_back(key);
}

Json hex_list(const std::vector<uint64_t>& words) {
  Json list = Json::array();
  for (const uint64_t word : words) list.push_back(fmt::format("{:016x}", word));
  return list;
}

Json sweep_json(int id, const RecordedSweep& sweep) {
  const SweepShape shape = shape_of(id, sweep.inputs);
  Json sample = Json::array(), differing = Json::array();
  for (const RecordedAnswer& answer : sweep.sample) sample.push_back(hex(answer.answer, shape.answer_bits));
  for (const RecordedAnswer& answer : sweep.differing)
    differing.push_back({{"input", hex(answer.input, 32)}, {"answer", hex(answer.answer, shape.answer_bits)}});
  Json json = {{"inputs", shape.count},
               {"checksums", hex_list(sweep.checksums)},
               {"sample", sample},
               {"mismatches", sweep.mismatches},
               {"differing", differing}};
  if (sweep.chunks.size() != shape.chunks) json["chunks"] = sweep.chunks;
  return json;
}

Json kernel_json(const RecordedKernel& kernel) {
  const auto form = [](bool native) { return native ? "native" : "software"; };
  Json forms = {{"elements", form(kernel.forms.native_elements)}}, differing = Json::array();
  if (kernel.forms.native_scales) forms["scales"] = form(*kernel.forms.native_scales);
  std::vector<uint64_t> codes, scales;
  for (const KernelChunk& chunk : kernel.chunks) codes.push_back(chunk.codes), scales.push_back(chunk.scales);
  for (const RecordedRun& run : kernel.differing) {
    Json list = Json::array();
    for (const uint32_t code : run.codes) list.push_back(hex(code, 4));
    differing.push_back({{"run", run.run}, {"codes", list}, {"scale", hex(run.scale, 8)}});
  }
  return {{"form", forms},
          {"codes", hex_list(codes)},
          {"scales", hex_list(scales)},
          {"mismatches", kernel.mismatches},
          {"differing", differing}};
}

Json kernels_json(const std::vector<RecordedKernel>& kernels) {
  Json recipes = Json::object();
  for (const RecordedKernel& kernel : kernels)
    recipes[kernel.recipe][std::string(row(kernel.dtype).name)] = kernel_json(kernel);
  return {{"inputs", kKernelInputsMeaning},
          {"checksum", kKernelChecksumMeaning},
          {"run", kRunMeaning},
          {"recipes", recipes}};
}

}  // namespace

Recording read_recording(const std::string& path) {
  const Json json = parse(path);
  const Entry file(path, json);
  Recording recording;
  const bool older = !file.has("schema") && file.has("ops");
  if (!older && (!file.has("schema") || file.at("schema").text() != kSchema))
    file.fail(fmt::format("is no recording that this halfulp reads: expected the schema '{}'{}", kSchema,
                          file.has("schema") ? ", got '" + file.at("schema").text() + "'" : ""));
  read_members(file, recording);
  const Entry instructions = file.at(older ? "ops" : "instructions");
  for (const auto& [name, value] : instructions.members().items())
    recording.instructions.push_back(older ? read_older(file, name) : read_instruction(instructions.at(name), name));
  std::ranges::sort(recording.instructions, {}, &RecordedInstruction::ptx_cvt_id);
  if (file.has("kernels")) recording.kernels = read_kernels(file.at("kernels").at("recipes"));
  return recording;
}

std::string recording_text(const Recording& recording) {
  Json inputs = Json::object(), instructions = Json::object();
  for (const CvtInputsEntry& row : kCvtInputs) inputs[std::string(row.name)] = row.meaning;
  for (const RecordedInstruction& instruction : recording.instructions) {
    Json& json = instructions[std::string(kPtxCvts[std::size_t(instruction.ptx_cvt_id)].name)];
    json = {{"form", "native"}, {"sweeps", Json::object()}};
    for (const RecordedSweep& sweep : instruction.sweeps)
      json["sweeps"][std::string(kCvtInputs[std::size_t(sweep.inputs)].name)] =
          sweep_json(instruction.ptx_cvt_id, sweep);
  }
  Json json = {{"schema", kSchema},
               {"device", recording.device},
               {"compute", recording.compute},
               {"target", recording.target},
               {"driver", recording.driver},
               {"cuda", recording.cuda},
               {"halfulp", recording.halfulp},
               {"checksum", kChecksumMeaning},
               {"sample", kSampleMeaning},
               {"inputs", inputs},
               {"instructions", instructions}};
  if (!recording.kernels.empty()) json["kernels"] = kernels_json(recording.kernels);
  return dump_json(json);
}

}  // namespace halfulp
