// halfulp dequantize: codes and scales back to values.

#include <fmt/format.h>

#include "emulation/blocks/layout.h"
#include "emulation/blocks/quantize.h"
#include "emulation/panels.h"
#include "formats/packing.h"
#include "lib/error.h"
#include "lib/npy.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/placement.h"
#include "tools/quantized_file.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(Reads what 'halfulp quantize' writes and gives each tensor back under its own name, as FP32, with the roundings of
the publisher's own dequantization. A tensor that was rotated first (--hadamard) is rotated back, rounding once, to FP32;
--keep-rotated leaves it as it was quantized, with its padding, and says so in the metadata. The output is a .npy file
if its name ends so (one tensor only), else safetensors.)";

void dequantize_tensor(const QuantizedTensor& source, int threads, const Sink& sink, Progress& progress) {
  const Recipe& recipe = *source.recipe;
  const TensorLayout& layout = source.layout;
  const Panels panels(recipe, layout.padded, source.rotation ? uint64_t(source.rotation->size) : 1);
  const int bits = recipe.element.entry().storage_bits;
  parallel_for(panels.count(), threads, [&](std::size_t number) {
    const Panel panel = panels[number];
    std::vector<float> y(panel.shape.elements());
    std::vector<std::byte> codes = gather(layout.codes, panel, bits, source.codes.bytes), scales;
    if (source.nibbles.order != NibbleOrder::even_low) {
      const std::vector<std::byte> stored = codes;
      reorder_nibbles(source.nibbles, stored, {.order = NibbleOrder::even_low}, codes);
    }
    if (has_scale(recipe))
      scales = gather(scale_view(recipe, layout.codes, source.scale_axes), scale_panel(recipe, layout.codes, panel),
                      recipe.scale.entry().storage_bits, source.scales);
    dequantize(recipe, source.scale, panel.shape, codes, scales, y);
    if (source.rotation) inverse_hadamard(*source.rotation, panel.shape.cols, y, y);
    place_values(layout, panel, y, sink);
    if (layout.padded.inner == 1) {
      const uint64_t first = panel.first_row * layout.codes.along + panel.first_col;
      source.codes.release(packed_bytes(bits, first), packed_bytes(bits, first + y.size()));
    }
    progress.advance(y.size());
  });
}

ExitCode run(const Arguments& arguments) {
  check_device(arguments);
  const std::string output = arguments.string("--output");
  const Rotated rotated = arguments.flag("--keep-rotated") ? Rotated::kept : Rotated::back;
  const QuantizedFile file(arguments.positional("FILE"), rotated);
  const std::vector<QuantizedTensor> sources = file.tensors();
  uint64_t work = 0;
  std::vector<TensorSpec> specs;
  for (const QuantizedTensor& source : sources) {
    work += source.layout.padded.shape().elements();
    specs.push_back({source.name, Dtype::f32, source.shape});
  }
  Progress progress("dequantize", work, ProgressUnit::elements, progress_of(arguments));
  if (output.ends_with(".npy")) {
    if (sources.size() > 1)
      throw UsageError(
          fmt::format("--output: {} has {} tensors, and a .npy file holds one", sources.front().file, sources.size()));
    NpyWriter writer(output, Dtype::f32, specs.front().shape);
    dequantize_tensor(
        sources.front(), threads_of(arguments),
        [&](uint64_t offset, std::span<const std::byte> bytes) { writer.write_at(offset, bytes); }, progress);
    writer.commit();
    return ExitCode::good;
  }
  SafetensorsWriter writer(output, specs, file.metadata_of_values());
  for (std::size_t i = 0; i < sources.size(); ++i)
    dequantize_tensor(
        sources[i], threads_of(arguments),
        [&](uint64_t offset, std::span<const std::byte> bytes) { writer.write(i, offset, bytes); }, progress);
  writer.commit();
  return ExitCode::good;
}

}  // namespace

Verb dequantize_verb() {
  return {
      .name = "dequantize",
      .summary = "codes and scales back to values",
      .examples = {{"halfulp dequantize weights.nvfp4.safetensors -o weights.back.npy", "as FP32"},
                   {"halfulp dequantize c.safetensors --keep-rotated -o rotated.npy", "before the rotation is undone"}},
      .positionals = {{.name = "FILE", .help = "a file that 'halfulp quantize' wrote"}},
      .options = {"--keep-rotated", "--output", "--threads", "--device", "--progress"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp
