#pragma once
// JSON in fewer bytes, as JSON: what tools/report/packed.js unpacks. Not a general compressor.

#include <string>

#include "lib/json.h"

namespace halfulp {

// {"shapes": [[key, ...], ...], "shared": [packed, ...], "root": packed}, where packed is
//   an object           [s, value of each key of shape s, ...]
//   an array            [-1, element, ...]
//   what comes again    [-2, i]: element i of "shared", a text or an array of plain values
//   anything else       itself; a real number with the digits that tell it from other FP32 numbers where it is one,
//                       else with seven, more than any table shows.
// No "<" is in it, which could end a script element.
std::string packed_json(const Json& value);

}  // namespace halfulp
