// halfulp cvt: a PTX conversion over an array.

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <optional>

#include "emulation/chunks.h"
#include "formats/packing.h"
#include "formats/ptx_cvt.h"
#include "lib/error.h"
#include "lib/npy.h"
#include "lib/philox.h"
#include "lib/tensor_source.h"
#include "lib/threads.h"
#include "tools/facts.h"
#include "tools/inputs.h"
#include "tools/instruction_name.h"
#include "tools/number_text.h"
#include "tools/options.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr uint64_t kMostShown = 64;

constexpr std::string_view kNotes =
    R"(INSTRUCTION is a PTX spelling; 'halfulp formats instructions' lists them, 'halfulp formats INSTRUCTION' tells operand
order and random bits, and whether the model was measured.
IN is a .npy file or FILE.safetensors:TENSOR whose dtype is the instruction's source: F32 for f32; for a narrower source
its own dtype (F16, BF16, F8_E4M3, ...) or its codes as U8 or U16. Nothing is converted on the way in.
The result has one code per element, in the order of the elements and the shape of IN: U8 for results of up to 8 bits,
U16 for 16, U32 for a 32-bit register (tf32: the code above 13 zero bits). With --packed it is a 1-D array of the
instruction's destination registers, element 0 in the lowest lane.
Where the elements do not fill the last register, its missing operands are +0; of their results nothing is written, and
--packed shows them.
A .rs instruction takes one 32-bit word per destination register: from --random, in order, or from --seed, as words
0, 1, 2, ... of the Philox4x32-10 stream that the instruction's name hashes to.
Without -o up to 64 elements are printed.)";

// The dtypes whose elements are codes of the format.
std::vector<Dtype> dtypes_of(const FormatEntry& format) {
  std::vector<Dtype> dtypes;
  if (const std::optional<Dtype> own = dtype_named(format.dtype)) dtypes.push_back(*own);
  if (format.storage_bits <= 8) dtypes.push_back(Dtype::u8);
  if (format.storage_bits == 16) dtypes.push_back(Dtype::u16);
  return dtypes;
}

std::string names_of(const std::vector<Dtype>& dtypes) {
  std::string text;
  for (const Dtype dtype : dtypes) text += (text.empty() ? "" : " or ") + std::string(row(dtype).name);
  return text;
}

void check_dtype(const Tensor& tensor, const std::vector<Dtype>& expected, std::string_view what) {
  if (std::ranges::find(expected, tensor.dtype) != expected.end()) return;
  throw InputError(where(tensor), fmt::format("dtype is {}; {} {}", row(tensor.dtype).name, what, names_of(expected)));
}

// Where the random words of a .rs instruction come from; neither for the others.
struct RandomWords {
  std::optional<Tensor> file;
  uint64_t seed = 0;
  uint64_t stream = 0;

  uint32_t word(uint64_t index) const {
    return file ? load_code<32>(file->bytes.data(), index) : random_word(seed, stream, index);
  }
};

enum class Packing { element, destination };

struct Job {
  PtxCvt op;
  Tensor input;
  RandomWords random;
  Packing packing;

  uint64_t lanes() const { return uint64_t(op.lanes); }
  uint64_t registers() const { return (input.elements() + lanes() - 1) / lanes(); }
  int output_bits() const {
    return packing == Packing::destination ? op.lanes * op.to.storage_bits : std::max(8, op.to.storage_bits);
  }
  Dtype output_dtype() const { return output_bits() == 8 ? Dtype::u8 : output_bits() == 16 ? Dtype::u16 : Dtype::u32; }
  std::vector<uint64_t> output_shape() const {
    return packing == Packing::destination ? std::vector<uint64_t>{registers()} : input.shape;
  }
};

RandomWords random_words_of(const Arguments& arguments, std::string_view name, const PtxCvt& op, uint64_t registers) {
  const bool from_file = arguments.has("--random"), from_seed = arguments.has("--seed");
  if (op.random == RandomField::none) {
    if (from_file || from_seed) throw UsageError(fmt::format("{} takes no random words", name));
    return {};
  }
  if (from_file == from_seed)
    throw UsageError(fmt::format("{} takes random words from one of --random WORDS.npy and --seed N", name));
  if (from_seed) return {.file = {}, .seed = arguments.unsigned_integer("--seed"), .stream = stream_of(name)};
  RandomWords words{.file = open_input(arguments, arguments.string("--random")), .seed = 0, .stream = 0};
  check_dtype(*words.file, {Dtype::u32, Dtype::i32}, "random words are");
  if (words.file->elements() != registers) {
    throw InputError(where(*words.file), fmt::format("has {} words; the input fills {} registers of {} lanes",
                                                     words.file->elements(), registers, op.lanes));
  }
  return words;
}

Job job_of(const Arguments& arguments) {
  const PtxCvtRow& row = kPtxCvts[std::size_t(instruction_named(arguments.positional("INSTRUCTION")))];
  Job job{.op = ptx_cvt(row),
          .input = open_input(arguments, arguments.positional("IN")),
          .random = {},
          .packing = arguments.flag("--packed") ? Packing::destination : Packing::element};
  check_dtype(job.input, dtypes_of(job.op.from), fmt::format("{} reads", row.name));
  job.random = random_words_of(arguments, row.name, job.op, job.registers());
  return job;
}

template <int bits>
void load_codes(const std::byte* bytes, uint64_t first, std::span<uint32_t> codes) {
  for (std::size_t i = 0; i < codes.size(); ++i) codes[i] = load_code<bits>(bytes, first + i);
}

void check_codes(const Job& job, uint64_t first, std::span<const uint32_t> codes) {
  const Format& f = job.op.from.format;
  const auto too_wide = [&](uint32_t code) { return (code & ~f.code_mask()) != 0; };
  const auto found = std::ranges::find_if(codes, too_wide);
  if (found == codes.end()) return;
  throw InputError(where(job.input),
                   fmt::format("element {} is 0x{:x}; a code of {} has {} bits",
                               first + uint64_t(found - codes.begin()), *found, job.op.from.name, f.bits()));
}

// Elements [first, first + count) as codes of the source format, with +0 up to a whole register.
std::vector<uint32_t> load_sources(const Job& job, uint64_t first, uint64_t count) {
  std::vector<uint32_t> sources((count + job.lanes() - 1) / job.lanes() * job.lanes(), 0);
  const std::span<uint32_t> codes(sources.data(), count);
  switch (row(job.input.dtype).bits) {
    case 4: load_codes<4>(job.input.bytes.data(), first, codes); break;
    case 8: load_codes<8>(job.input.bytes.data(), first, codes); break;
    case 16: load_codes<16>(job.input.bytes.data(), first, codes); break;
    default: load_codes<32>(job.input.bytes.data(), first, codes); break;
  }
  check_codes(job, first, codes);
  return sources;
}

// The results of elements [first, first + count); first is a multiple of the lanes.
std::vector<uint32_t> convert(const Job& job, uint64_t first, uint64_t count) {
  const std::vector<uint32_t> sources = load_sources(job, first, count);
  const bool random = job.op.random != RandomField::none, packed = job.packing == Packing::destination;
  std::vector<uint32_t> results;
  results.reserve(sources.size());
  for (uint64_t at = 0; at < sources.size(); at += job.lanes()) {
    const uint32_t word = random ? job.random.word((first + at) / job.lanes()) : 0;
    if (packed) {
      results.push_back(convert_register(job.op, &sources[at], word));
    } else {
      for (int lane = 0; lane < job.op.lanes; ++lane)
        results.push_back(convert_lane(job.op, sources[at + uint64_t(lane)], word, lane) << job.op.to.storage_shift);
    }
  }
  if (!packed) results.resize(count);
  return results;
}

std::vector<std::byte> bytes_of(std::span<const uint32_t> results, int bits) {
  std::vector<std::byte> bytes(results.size() * std::size_t(bits) / 8);
  for (std::size_t i = 0; i < results.size(); ++i) {
    switch (bits) {
      case 8: store_code<8>(bytes.data(), i, results[i]); break;
      case 16: store_code<16>(bytes.data(), i, results[i]); break;
      default: store_code<32>(bytes.data(), i, results[i]); break;
    }
  }
  return bytes;
}

void write(const Arguments& arguments, const Job& job) {
  if (output_mode_of(arguments) != OutputMode::text)
    throw UsageError("--json and --csv are for printing; with -o the result is a .npy file");
  if (arguments.path("--output").extension() == ".safetensors")
    throw UsageError("--output: cvt writes .npy files, not .safetensors");
  const uint64_t total = job.input.elements();
  NpyWriter writer(arguments.string("--output"), job.output_dtype(), job.output_shape());
  Progress progress("cvt", total, ProgressUnit::elements, progress_of(arguments));
  const auto input_bytes = [&](uint64_t elements) { return elements * uint64_t(row(job.input.dtype).bits) / 8; };
  parallel_for((total + kChunkElements - 1) / kChunkElements, threads_of(arguments), [&](std::size_t chunk) {
    const uint64_t first = chunk * kChunkElements, count = std::min(kChunkElements, total - first);
    const uint64_t output = job.packing == Packing::destination ? first / job.lanes() : first;
    writer.write_at(output * uint64_t(job.output_bits()) / 8, bytes_of(convert(job, first, count), job.output_bits()));
    job.input.release(input_bytes(first), input_bytes(first + count));
    progress.advance(count);
  });
  writer.commit();
}

std::vector<Facts> element_rows(const Job& job) {
  const Format &from = job.op.from.format, &to = job.op.to.format;
  const std::vector<uint32_t> sources = load_sources(job, 0, job.input.elements());
  const std::vector<uint32_t> results = convert(job, 0, job.input.elements());
  std::vector<Facts> rows;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const uint32_t code = results[i] >> job.op.to.storage_shift;
    rows.push_back({{"i", int(i)},
                    {"input", Json(double(decode(from, sources[i]))), value_text(from, sources[i])},
                    {"input_bits", hex_bits(sources[i], from.bits())},
                    {"code", hex_bits(results[i], job.op.to.storage_bits)},
                    {"fields", fields_text(to, code)},
                    {"value", Json(double(decode(to, code))), value_text(to, code)}});
  }
  return rows;
}

std::vector<Facts> register_rows(const Job& job) {
  const std::vector<uint32_t> results = convert(job, 0, job.input.elements());
  std::vector<Facts> rows;
  for (std::size_t i = 0; i < results.size(); ++i)
    rows.push_back({{"register", int(i)}, {"bits", hex_bits(results[i], job.output_bits())}});
  return rows;
}

void print(const Arguments& arguments, const Job& job) {
  if (job.input.elements() > kMostShown) {
    throw UsageError(fmt::format("{} elements are more than fit on a screen ({}); give -o OUT.npy",
                                 job.input.elements(), kMostShown));
  }
  const OutputMode mode = output_mode_of(arguments);
  const std::vector<Facts> rows = job.packing == Packing::destination ? register_rows(job) : element_rows(job);
  if (mode == OutputMode::json) {
    const Json body = {{"instruction", arguments.positional("INSTRUCTION")}, {"results", to_json(rows)}};
    std::cout << dump_result("cvt", body);
  } else if (rows.empty()) {
    std::cout << "no elements\n";
  } else {
    std::cout << (mode == OutputMode::csv ? to_csv(to_table(rows)) : to_text(to_table(rows), color_of(arguments)));
  }
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  color_of(arguments);  // refuses what is no colour before the work
  const Job job = job_of(arguments);
  if (arguments.has("--output")) {
    write(arguments, job);
  } else {
    print(arguments, job);
  }
  return ExitCode::good;
}

}  // namespace

Verb cvt_verb() {
  return {
      .name = "cvt",
      .summary = "emulates a PTX conversion over an array",
      .examples = {{"halfulp cvt cvt.rn.satfinite.e4m3x2.f32 tests/golden/files/f4_c.npy",
                    "a small array (of the sources): codes and their values on the screen"},
                   {"halfulp cvt cvt.rn.bf16x2.f32 tests/golden/files/f4_c.npy -o codes.npy",
                    "codes into a file, as U16"},
                   {"halfulp cvt cvt.rs.satfinite.e2m1x4.f32 tests/golden/files/f4_c.npy --seed 1 --packed",
                    "stochastic rounding: the destination registers, four codes in each"}},
      .positionals = {{.name = "INSTRUCTION", .help = "such as cvt.rn.satfinite.e4m3x2.f32"},
                      {.name = "IN", .help = "IN.npy or FILE.safetensors:TENSOR"}},
      .options = {"--random", "--seed", "--dtype", "--output", "--packed", "--json", "--csv", "--color", "--threads",
                  "--device", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp
