#pragma once
// `halfulp mma --explain`: how one output comes about, as text and as JSON.

#include <cstddef>
#include <string>

#include "lib/json.h"
#include "lib/table.h"
#include "tools/mma_product.h"

namespace halfulp {

struct OutputPosition {
  std::size_t tile, row, col;
};

// "I,J" or "T,I,J" of a product; throws UsageError where it has none such, or where its row cannot be walked.
OutputPosition position_of(const std::string& text, const MmaProduct& product);

Json explain_json(const MmaProduct& product, const OutputPosition& at);
std::string explain_text(const MmaProduct& product, const OutputPosition& at, Color color);

}  // namespace halfulp
