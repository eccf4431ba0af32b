#pragma once
// The conversions of the catalog run on the GPU, to compare their answers with the CPU's. Not a fast conversion.

#include <cstdint>
#include <span>
#include <vector>

namespace halfulp {

// Whether this machine has a GPU that this build's code runs on.
bool has_gpu();

enum class CvtForm {
  model,   // the catalog's software, compiled for the GPU
  native,  // the instruction; only where has_native_form()
};

// Whether this machine's GPU has the instruction and cuda/arch/cvt.cuh knows it. Requires has_gpu().
bool has_native_form(int ptx_cvt_id);

// A destination register for each random word: register i from the sources i * lanes and following, lowest lane first.
std::vector<uint32_t> convert_on_gpu(int ptx_cvt_id, CvtForm form, std::span<const uint32_t> sources,
                                     std::span<const uint32_t> words);

}  // namespace halfulp
