#pragma once
// A @ B^T as a row of accumulator.h adds it up, with the promotions and slices of K that a kernel adds to its
// instructions. Knows no files; factors of the epilogue are the caller's.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include "emulation/matmul/accumulator.h"

namespace halfulp {

struct GemmOperand {
  Format format;
  std::span<const uint32_t> codes;  // [rows, k]; bits beyond the format's are ignored
  Format scale_format{};
  std::span<const uint32_t> scales{};         // codes, [rows, ceil(k / scaled)]; none: 1
  std::size_t scaled = 0;                     // elements that share one
  std::span<const float> promotion_scales{};  // [rows, ceil(k / promotion.every)]; none: 1
};

struct GemmJob {
  Accumulator row;
  std::size_t m, n, k;
  GemmOperand a, b;               // [m, k] and [n, k]
  std::span<const uint32_t> c{};  // [m, n] as codes of row.sum.format; none: 0
};

// Why a row cannot take a job, by its formats, scales and K; empty where it can.
std::string refusal(const GemmJob& job);

// Element [i, j], by definition: what gemm() is tested against. Requires that refusal() is empty.
uint32_t gemm_element(const GemmJob& job, std::size_t i, std::size_t j);

// d[m, n], codes of row.sum.format. Any number of threads gives the same. `advance` is told of multiply-adds as they
// are done. Requires that refusal() is empty.
void gemm(const GemmJob& job, int threads, std::span<uint32_t> d, const std::function<void(uint64_t)>& advance = {});

}  // namespace halfulp
