// halfulp explain: one value into a format, or one block through a recipe, every step shown.

#include <fmt/ranges.h>

#include <iostream>

#include "emulation/blocks/quantize.h"
#include "emulation/panels.h"
#include "lib/error.h"
#include "lib/utf8.h"
#include "tools/explain_block.h"
#include "tools/explain_value.h"
#include "tools/inputs.h"
#include "tools/options.h"
#include "tools/recipe_option.h"
#include "tools/verbs.h"

namespace halfulp {
namespace {

constexpr std::string_view kNotes =
    R"(A VALUE is a decimal, a hexadecimal number (0x1.8p+1), inf, nan, or the bits of its type (bits:0x404ccccd). It is
rounded once, to the type of --as, and the first line says what came of that. Negative values need no '--'.
With --recipe the values are one block; without --amax the block is the whole tensor. A recipe without blocks (bf16)
takes any number of values. With --block, VALUE is FILE[:TENSOR] and the tensor's own largest magnitude counts. With
--pad zeros are added to values that are fewer than a block, or to a tensor that is not whole blocks.)";

// Throws where one of the options is given.
void refuse(const Arguments& arguments, std::initializer_list<std::string_view> options, std::string_view belongs_to) {
  for (const std::string_view option : options)
    if (arguments.has(option)) throw UsageError(fmt::format("{} goes with {}", option, belongs_to));
}

SourceType source_type_of(const Arguments& arguments) {
  std::vector<std::string> names;
  for (const SourceTypeEntry& row : kSourceTypes) names.emplace_back(row.name);
  const std::string name = arguments.choice("--as", names);
  return SourceType(std::find(names.begin(), names.end(), name) - names.begin());
}

std::vector<SourceNumber> values_of(const Arguments& arguments) {
  std::vector<SourceNumber> values;
  for (const std::string& text : arguments.positionals("VALUE"))
    values.push_back(read_source_number(text, source_type_of(arguments)));
  return values;
}

int random_bits_of(const Arguments& arguments) { return int(arguments.integer("--random-bits", 1, 32)); }

void explain_values(const Arguments& arguments) {
  const int format_id = format_of(arguments.string("--format"));
  Json body = {{"values", Json::array()}};
  std::string text;
  for (const SourceNumber& value : values_of(arguments)) {
    const ValueExplanation explanation = explain_value(value, format_id, random_bits_of(arguments));
    body["values"].push_back(to_json(explanation));
    text += (text.empty() ? "" : "\n\n") + to_text(explanation, color_of(arguments));
  }
  std::cout << (arguments.flag("--json") ? dump_result("explain", body) : text);
}

// Elements that are explained together; `given` where the recipe takes any number.
std::size_t elements_of_block(const Recipe& recipe, std::size_t given) {
  const std::size_t rows = std::size_t(recipe.block.rows);
  if (!has_scale(recipe)) return given;
  if (recipe.block.cols == Extent::kWhole) return std::max<std::size_t>((given + rows - 1) / rows, 1) * rows;
  return std::size_t(std::max(recipe.block.cols, recipe.correction.group)) * std::size_t(recipe.block.rows);
}

std::vector<float> block_of_values(const Arguments& arguments, const Recipe& recipe) {
  if (source_type_of(arguments) == SourceType::f64)
    throw UsageError("--as f64: a recipe is explained for float32, float16 or bfloat16 values");
  std::vector<float> block;
  for (const SourceNumber& value : values_of(arguments)) block.push_back(float(value.value));
  const std::size_t size = elements_of_block(recipe, block.size());
  if (arguments.flag("--pad")) block.resize(std::max(block.size(), size));
  if (has_scale(recipe) && block.size() != size) {
    throw UsageError(fmt::format("recipe {} has blocks of {} elements, and {} values are given{}", recipe.name, size,
                                 block.size(), block.size() < size ? " (--pad adds zeros)" : ""));
  }
  return block;
}

// A block of the recipe, and what its tensor tells of it.
struct Block {
  std::vector<float> x;
  std::optional<float> amax;
  std::string origin;  // a sentence; empty for values of the command line
  Randomness random;
};

// How the tensor is read, --pad included; throws where the recipe cannot take it.
Reading reading_of_blocks(const Arguments& arguments, const Recipe& recipe, const Tensor& tensor) {
  const Reading plain{.layout = tensor_layout(recipe, tensor.shape, -1, Padding::none), .rotation = {}};
  const Reading padded{.layout = tensor_layout(recipe, tensor.shape, -1, Padding::zeros), .rotation = {}};
  const Reading& reading = arguments.flag("--pad") ? padded : plain;
  std::string reason = refusal(recipe, tensor, reading, padded);
  if (reason.empty() && element_kind(tensor.dtype) != ElementKind::narrow_float)
    reason = fmt::format("{} elements: a recipe is explained for floats of up to 32 bits", row(tensor.dtype).name);
  if (!reason.empty()) throw InputError(where(tensor), reason);
  return reading;
}

Matrix shape_of_block(const Recipe& recipe, const MatrixView& view) {
  const uint64_t cols = !has_scale(recipe) ? 1
                        : recipe.block.cols == Extent::kWhole
                            ? view.along
                            : uint64_t(std::max(recipe.block.cols, recipe.correction.group));
  return {.rows = uint64_t(recipe.block.rows), .cols = cols};
}

// Blocks in the order of their elements along the last axis.
Block block_of_tensor(const Arguments& arguments, const Recipe& recipe) {
  const Tensor tensor = open_input(arguments, arguments.positional("VALUE"));
  const Reading reading = reading_of_blocks(arguments, recipe, tensor);
  const MatrixView& view = reading.layout.padded;
  const Matrix shape = shape_of_block(recipe, view);
  const uint64_t per_row = std::max<uint64_t>(view.along / shape.cols, 1);
  const uint64_t blocks = view.outer / shape.rows * (view.along / shape.cols);
  if (blocks == 0) throw InputError(where(tensor), "has no whole block");
  const uint64_t number = arguments.unsigned_integer("--block", 0, blocks - 1);
  const Panel panel{
      .first_row = number / per_row * shape.rows, .first_col = number % per_row * shape.cols, .shape = shape};
  Progress silent("explain", tensor.elements(), ProgressUnit::elements, ProgressMode::none);
  Block block{.x = std::vector<float>(shape.elements()),
              .amax = amax_of(arguments, recipe, tensor, reading, 1, silent),
              .origin = {},
              .random = panel_randomness(randomness_of(arguments, recipe, tensor, 0), recipe, view.shape(), panel)};
  load_panel<float>(tensor, reading.layout, panel, block.x);
  const uint64_t padding = shape.elements() - without_padding(reading.layout, panel).elements();
  block.origin =
      fmt::format("Block {} of {} in tensor '{}' of {}, from element {} on{}.", number, blocks, printable(tensor.name),
                  printable(tensor.file), reading.layout.source.position(panel.first_row, panel.first_col),
                  padding > 0 ? fmt::format("; {} of its elements are added zeros", padding) : "");
  return block;
}

Block block_of(const Arguments& arguments, const Recipe& recipe) {
  if (arguments.has("--block")) return block_of_tensor(arguments, recipe);
  Block block{.x = block_of_values(arguments, recipe), .amax = {}, .origin = {}, .random = {}};
  if (arguments.has("--amax")) block.amax = given_amax(arguments);
  if (is_random(recipe)) block.random.seed = arguments.unsigned_integer("--seed", 0, ~uint64_t{0});
  return block;
}

void explain_recipe(const Arguments& arguments) {
  const std::vector<const Recipe*> recipes = recipes_of(arguments);
  if (recipes.size() != 1) throw UsageError("--recipe: explain walks through one recipe");
  check_amax(arguments, recipes);
  check_seed(arguments, recipes);
  const Block block = block_of(arguments, *recipes[0]);
  const BlockExplanation explanation = explain_block(*recipes[0], block.x, block.amax, block.random);
  if (arguments.flag("--json")) {
    Json body = to_json(explanation);
    if (!block.origin.empty()) body["origin"] = block.origin;
    std::cout << dump_result("explain", body);
  } else {
    std::cout << block.origin << (block.origin.empty() ? "" : "\n") << to_text(explanation, color_of(arguments));
  }
}

ExitCode run(const Arguments& arguments) {
  if (arguments.has("--format") == arguments.has("--recipe"))
    throw UsageError("one of --format and --recipe is needed: a value into a format, or a block through a recipe?");
  if (!arguments.has("--block")) refuse(arguments, {"--dtype"}, "--block");
  if (arguments.has("--format")) {
    refuse(arguments, {"--amax", "--seed", "--block", "--pad"}, "--recipe");
    explain_values(arguments);
  } else {
    refuse(arguments, {"--random-bits"}, "--format");
    if (arguments.has("--block")) refuse(arguments, {"--as"}, "values");
    explain_recipe(arguments);
  }
  return ExitCode::good;
}

}  // namespace

Verb explain_verb() {
  return {
      .name = "explain",
      .summary = "walks one value into a format, or one block through a recipe, step by step",
      .examples = {{"halfulp explain 3.2 --format e2m1", "neighbours, midpoint, and what each rounding answers"},
                   {"halfulp explain 448 464 465 -1000 --format e4m3", "around the end of a format's range"},
                   {"halfulp explain -f bf16 bits:0x3f808000 --random-bits 8", "a tie, given by its bits"},
                   {"halfulp explain -r nvfp4/te 1 -1 .9 .75 .67 .58 .5 .42 .33 .29 .25 .21 .17 .13 .08 .04 --amax 3",
                    "a block of 16 through NVFP4, in a tensor whose largest magnitude is 3"},
                   {"halfulp explain -r bf16 tests/golden/files/f4_c.npy --block 3",
                    "an element of a tensor in a file (of the sources)"}},
      .positionals = {{.name = "VALUE",
                       .help = "numbers; with --recipe as many as a block has; with --block FILE[:TENSOR]",
                       .count = Positional::Count::at_least_one}},
      .options = {"--format", "--recipe", "--as", "--pad", "--random-bits", "--amax", "--seed", "--block", "--dtype",
                  "--json", "--color"},
      .run = run,
      .notes = kNotes,
  };
}

}  // namespace halfulp
