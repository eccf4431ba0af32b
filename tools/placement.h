#pragma once
// Where the codes, scales or values of a panel lie in an array. Moves them there and back; changes none.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "emulation/blocks/layout.h"
#include "emulation/panels.h"

namespace halfulp {

// Takes bytes to their place in an array.
using Sink = std::function<void(uint64_t byte_offset, std::span<const std::byte> bytes)>;

// The elements of `panel`, `bits` each and in the panel's row order, to their places. Requires that elements of 4 bits
// that lie side by side in the array come in whole bytes.
void place(const MatrixView& view, const Panel& panel, int bits, std::span<const std::byte> elements, const Sink& sink);

// The elements of `panel` from an array, in the panel's row order.
std::vector<std::byte> gather(const MatrixView& view, const Panel& panel, int bits, std::span<const std::byte> array);

// The values of a panel to the tensor's own order, less what is padding.
void place_values(const TensorLayout& layout, const Panel& panel, std::span<const float> values, const Sink& sink);

// The scales of a view of codes and of one of its panels.
MatrixView scale_view(const Recipe& recipe, const MatrixView& codes, ScaleAxes axes);
Panel scale_panel(const Recipe& recipe, const MatrixView& codes, const Panel& panel);

}  // namespace halfulp
