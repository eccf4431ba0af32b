#pragma once
// tcgen05: the tensor cores of sm_100, sm_103 and sm_110, which read operands in shared memory and scales in Tensor
// Memory, and add up there. Where the target has none, its model behind the same functions: it reads the same bytes of
// shared memory through the descriptors' fields. All threads of a CTA of 128 call each function together.
// The instructions have been compiled and never run: no such GPU was at hand.

#include <cstdint>

#include "cuda/arch/capability.h"
#include "cuda/arch/joined_name.cuh"
#include "cuda/arch/model.cuh"
#include "cuda/arch/tcgen05_descriptors.h"

namespace halfulp::arch {

inline constexpr int kTcgen05Threads = 128;

namespace detail {
// Variables, because device code may not call what constant expressions may.
inline constexpr bool kHasTcgen05 = has_target("100a 100f 103a 103f 110a 110f", kTarget.name());

template <Tcgen05Kind kind>
inline constexpr Tcgen05KindEntry kTcgen05Kind = kTcgen05Kinds[std::size_t(kind)];
template <Tcgen05Kind kind>
struct Tcgen05Name {
  static constexpr JoinedName<kTcgen05Kind<kind>.name.size()> value{kTcgen05Kind<kind>.name};
};
template <Tcgen05Kind kind>
inline constexpr Accumulator kTcgen05Sum = kAccumulators[std::size_t(find_accumulator(kTcgen05Kind<kind>.accumulator))];
template <Tcgen05Kind kind>
inline constexpr Format kTcgen05Scale = is_block_scaled(kind)
                                            ? kFormats[std::size_t(find_format(kTcgen05Kind<kind>.scale))].format
                                            : Format{};

struct NumberedFormats {
  Format of[8];
};
constexpr NumberedFormats numbered_formats(Tcgen05Kind kind) {
  NumberedFormats formats{};
  for (uint32_t number = 0; number < 8; ++number)
    if (const int id = tcgen05_format(kind, number); id >= 0) formats.of[number] = kFormats[std::size_t(id)].format;
  return formats;
}
}  // namespace detail

__host__ __device__ constexpr bool has_tcgen05() { return detail::kHasTcgen05; }

__device__ __forceinline__ uint32_t shared_address(const void* in_shared) {
  return uint32_t(__cvta_generic_to_shared(in_shared));
}

// A CTA's part of Tensor Memory. `model` has kTensorLanes words for each column, in global memory, where there is no
// Tensor Memory, and is null elsewhere.
struct TensorMemory {
  uint32_t base;
  uint32_t* model;

  __device__ uint32_t address(uint32_t column) const { return tensor_address(base, 0, column); }
  __device__ uint32_t& word(uint32_t column, uint32_t lane) const { return model[column * kTensorLanes + lane]; }
};

// `slot` is a word of shared memory. Ends with a barrier.
template <int columns>
__device__ __forceinline__ TensorMemory allocate_tensor_memory(uint32_t* slot, uint32_t* model) {
  static_assert(columns >= 32 && columns <= 512 && (columns & (columns - 1)) == 0);
  if constexpr (!has_tcgen05()) return {0, model};
  if (threadIdx.x < 32) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(slot)),
                 "n"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  }
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  return {*slot, nullptr};
}

// By the warp that allocated it, after all reads. Begins with a barrier.
template <int columns>
__device__ __forceinline__ void free_tensor_memory(const TensorMemory& memory) {
  if constexpr (!has_tcgen05()) return;
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  __syncthreads();
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  if (threadIdx.x < 32)
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(memory.base), "n"(columns));
}

// What this thread wrote to shared memory becomes visible to tcgen05 instructions that are issued after the barrier
// with which it ends; and what it read or wrote in Tensor Memory comes before them.
__device__ __forceinline__ void publish_shared_memory() {
  if constexpr (has_tcgen05()) {
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
  }
  __syncthreads();
  if constexpr (has_tcgen05()) asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

// Instructions of one thread are done in order. No barrier: publish_shared_memory() comes before a sequence of these,
// and commit() after it.

// 32 rows of 16 bytes in shared memory to four columns of lanes 0 to 31, and likewise of the other three times 32.
__device__ inline void copy_scales(const TensorMemory& memory, uint32_t column, uint64_t descriptor) {
  if constexpr (has_tcgen05()) {
    if (threadIdx.x == 0)
      asm volatile("tcgen05.cp.cta_group::1.32x128b.warpx4 [%0], %1;" ::"r"(memory.address(column)), "l"(descriptor)
                   : "memory");
  } else {
    const SharedMatrix matrix = decode_shared_matrix(descriptor);
    const uint32_t lane = threadIdx.x, row = lane % 32;
    const auto* from = static_cast<const uint32_t*>(__cvta_shared_to_generic(chunk_address(matrix, row, 0)));
    for (uint32_t i = 0; i < 4; ++i) memory.word(column + i, lane) = from[i];
    __syncthreads();
  }
}

// Where an instruction finds its operands.
struct Tcgen05Operands {
  uint64_t a, b;                        // descriptors
  uint32_t instruction;                 // likewise
  uint32_t d;                           // column of Tensor Memory; column n is d + n, row m is lane m
  uint32_t a_scales = 0, b_scales = 0;  // columns: row r's word is in lane r % 32 of column r / 32
};

enum class InputD { zero, d };

namespace detail {

template <Tcgen05Kind kind>
__device__ __forceinline__ void multiply_natively(const TensorMemory& memory, const Tcgen05Operands& x, InputD input) {
  if (threadIdx.x != 0) return;
  if constexpr (is_block_scaled(kind)) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.%7 [%0], %1, %2, %3, [%5], [%6], p; }" ::"r"(
            memory.address(x.d)),
        "l"(x.a), "l"(x.b), "r"(x.instruction), "r"(uint32_t(input)), "r"(memory.address(x.a_scales)),
        "r"(memory.address(x.b_scales)), "C"(AsmText<Tcgen05Name<kind>>::text)
        : "memory");
  } else {
    asm volatile("{ .reg .pred p; setp.ne.b32 p, %4, 0; tcgen05.mma.cta_group::1.%5 [%0], %1, %2, %3, p; }" ::"r"(
                     memory.address(x.d)),
                 "l"(x.a), "l"(x.b), "r"(x.instruction), "r"(uint32_t(input)), "C"(AsmText<Tcgen05Name<kind>>::text)
                 : "memory");
  }
}

// What the kinds have in common, so that code for a GPU without them has their model once.
struct Tcgen05Model {
  Accumulator sum;
  NumberedFormats formats;
  Format scale;
  int k, chunk_elements, row_scales;
  int shift;  // of a code in its word
};
template <Tcgen05Kind kind>
static __constant__ const Tcgen05Model kTcgen05Model{kTcgen05Sum<kind>,
                                                     numbered_formats(kind),
                                                     kTcgen05Scale<kind>,
                                                     kTcgen05Kind<kind>.k,
                                                     kTcgen05Kind<kind>.chunk_elements,
                                                     kTcgen05Kind<kind>.row_scales,
                                                     kind == Tcgen05Kind::tf32 ? 13 : 0};

// One code and one scale to a word, as dot_product() takes them.
struct Tcgen05Row {
  uint32_t codes[64], scales[4];

  __device__ void take_codes(const Tcgen05Model& is, const SharedMatrix& matrix, uint32_t row, const Format& format) {
    const int bits = is.shift + format.bits();
    for (int i = 0; i < is.k; ++i) {
      const uint32_t address = chunk_address(matrix, row, uint32_t(i / is.chunk_elements));
      const auto* words = static_cast<const uint32_t*>(__cvta_shared_to_generic(address));
      codes[i] = bits_at(words, i % is.chunk_elements * bits, bits) >> is.shift;
    }
  }
  __device__ void take_scales(const Tcgen05Model& is, const TensorMemory& memory, uint32_t column, uint32_t row,
                              uint32_t first_byte) {
    if (is.row_scales == 0) return;
    const uint32_t word = memory.word(column + row / 32, row % 32);
    for (uint32_t i = 0; i < uint32_t(is.row_scales); ++i) scales[i] = word >> (first_byte + i) * 8 & 0xff;
  }

 private:
  // Of words that follow one another, lowest bit first.
  __device__ static uint32_t bits_at(const uint32_t* words, int first, int bits) {
    const uint64_t word = words[first / 32], next = first % 32 + bits > 32 ? words[first / 32 + 1] : 0;
    return uint32_t((next << 32 | word) >> first % 32 & ((uint64_t{1} << bits) - 1));
  }
};

static_assert(have_modelled_sums(kTcgen05Kinds));

// A thread is a lane, and so a row of A and D.
static __device__ __noinline__ void multiply_by_model(const Tcgen05Model* model, Tcgen05Instruction is,
                                                      const TensorMemory memory, const Tcgen05Operands x,
                                                      InputD input) {
  const SharedMatrix b_matrix = decode_shared_matrix(x.b);
  const Format a_format = model->formats.of[is.a_format], b_format = model->formats.of[is.b_format];
  Tcgen05Row a_row, b_row;
  const int scaled = model->row_scales == 0 ? 0 : model->k / model->row_scales;
  const DotOperand a{a_format, a_row.codes, model->scale, a_row.scales, scaled};
  const DotOperand b{b_format, b_row.codes, model->scale, b_row.scales, scaled};
  a_row.take_codes(*model, decode_shared_matrix(x.a), threadIdx.x, a_format);
  a_row.take_scales(*model, memory, x.a_scales, threadIdx.x, is.a_scale_byte);
#pragma unroll 1
  for (uint32_t n = 0; n < is.n && threadIdx.x < is.m; ++n) {
    b_row.take_codes(*model, b_matrix, n, b_format);
    b_row.take_scales(*model, memory, x.b_scales, n, is.b_scale_byte);
    uint32_t& d = memory.word(x.d + n, threadIdx.x);
    d = modelled_sum(&model->sum, &a, &b, model->k, input == InputD::d ? d : 0);
  }
}

}  // namespace detail

// D = A @ B^T + D, or without it. M is 128.
template <Tcgen05Kind kind>
__device__ __forceinline__ void tcgen05_mma(const TensorMemory& memory, const Tcgen05Operands& operands, InputD input) {
  if constexpr (has_tcgen05()) {
    detail::multiply_natively<kind>(memory, operands, input);
  } else {
    detail::multiply_by_model(&detail::kTcgen05Model<kind>, decode_instruction(kind, operands.instruction), memory,
                              operands, input);
  }
}

// A barrier in shared memory that completes a phase when all tcgen05 instructions before a commit() are done.
using CommitBarrier = uint64_t;

// The first user of shared memory or Tensor Memory calls publish_shared_memory() afterwards.
__device__ __forceinline__ void initialize(CommitBarrier& barrier) {
  if constexpr (has_tcgen05()) {
    if (threadIdx.x == 0)
      asm volatile(
          "mbarrier.init.shared::cta.b64 [%0], 1; fence.mbarrier_init.release.cluster;" ::"r"(shared_address(&barrier))
          : "memory");
  }
}

__device__ __forceinline__ void commit(CommitBarrier& barrier) {
  if constexpr (has_tcgen05()) {
    if (threadIdx.x == 0)
      asm volatile(
          "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(&barrier))
          : "memory");
  } else {
    __syncthreads();
  }
}

// Of the commit whose number, from 0 on and of this barrier, has that parity.
__device__ __forceinline__ void wait(CommitBarrier& barrier, uint32_t parity) {
  if constexpr (has_tcgen05()) {
    uint32_t done = 0;
    while (done == 0)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.b32 %0, 1, 0, p; }"
                   : "=r"(done)
                   : "r"(shared_address(&barrier)), "r"(parity)
                   : "memory");
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
  }
}

// Eight columns of this thread's lane, from or to registers.
inline constexpr int kTensorColumns = 8;

__device__ __forceinline__ void load_columns(const TensorMemory& memory, uint32_t column, uint32_t* to) {
  if constexpr (has_tcgen05()) {
    __syncwarp();
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x8.b32 {%0, %1, %2, %3, %4, %5, %6, %7}, [%8]; "
        "tcgen05.wait::ld.sync.aligned;"
        : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]), "=r"(to[4]), "=r"(to[5]), "=r"(to[6]), "=r"(to[7])
        : "r"(tensor_address(memory.base, threadIdx.x / 32 * 32, column))
        : "memory");
  } else {
    for (uint32_t i = 0; i < kTensorColumns; ++i) to[i] = memory.word(column + i, threadIdx.x);
  }
}

__device__ __forceinline__ void store_columns(const TensorMemory& memory, uint32_t column, const uint32_t* from) {
  if constexpr (has_tcgen05()) {
    __syncwarp();
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%8], {%0, %1, %2, %3, %4, %5, %6, %7}; "
        "tcgen05.wait::st.sync.aligned;" ::"r"(from[0]),
        "r"(from[1]), "r"(from[2]), "r"(from[3]), "r"(from[4]), "r"(from[5]), "r"(from[6]), "r"(from[7]),
        "r"(tensor_address(memory.base, threadIdx.x / 32 * 32, column))
        : "memory");
  } else {
    for (uint32_t i = 0; i < kTensorColumns; ++i) memory.word(column + i, threadIdx.x) = from[i];
  }
}

}  // namespace halfulp::arch
