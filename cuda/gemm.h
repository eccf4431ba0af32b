#pragma once
// A @ B^T as a row of accumulator.h adds it up, on any GPU: the bits of gemm().

#include <cstdint>
#include <span>

#include "emulation/matmul/gemm.h"

namespace halfulp {

// Starts the job on the default stream. Its spans, and d[m, n], are memory of the present GPU; refusal() must be empty.
// Rows that keep all bits of a product are left to the CPU: std::logic_error.
void gemm_on_gpu(const GemmJob& job, std::span<uint32_t> d);

// gemm(), by the present GPU: the job's spans and `d` are memory of the host.
void gemm_by_gpu(const GemmJob& job, std::span<uint32_t> d);

}  // namespace halfulp
