#pragma once
// What the models of formats/ptx_cvt.h answer to numbered inputs, fast enough for whole sweeps.

#include <cstdint>

#include "formats/cvt_inputs.h"

namespace halfulp {

// What a row of kPtxCvts means, without reading its spelling again.
const PtxCvt& conversion(int ptx_cvt_id);

// In the low answer_bits().
uint32_t model_answer(int ptx_cvt_id, CvtInputs inputs, uint32_t input);

uint64_t model_checksum(int ptx_cvt_id, CvtInputs inputs, uint32_t chunk);

}  // namespace halfulp
