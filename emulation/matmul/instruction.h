#pragma once
// Matrix instructions of GPUs as rows: what they multiply, which targets have them, and which accumulator adds them up
// there. How they are issued is cuda/arch/'s.

#include <array>
#include <string_view>

#include "emulation/matmul/accumulator.h"
#include "formats/ptx_cvt.h"

namespace halfulp {

// Who issues one.
enum class MatrixUnit {
  warp,       // mma.sync
  warpgroup,  // wgmma
};

// D = A @ B^T + C, of [m, k], [n, k] and [m, n]; C and D in one format.
struct MatrixInstruction {
  std::string_view ptx;
  MatrixUnit unit;
  int m, n, k;
  std::string_view a, b, d;       // formats
  std::string_view targets;       // that have it, as in SinceEntry
  std::string_view accumulators;  // "80 NAME, 90 NAME": from that compute capability on
};

namespace detail {
inline constexpr std::string_view kSince80 = kSinces[std::size_t(Since::sm_80)].targets;
inline constexpr std::string_view kSince89 = kSinces[std::size_t(Since::sm_89)].targets;
inline constexpr std::string_view kOnly90a = "90a";
// mma.sync of sm_100 and sm_103 matches published recordings of a B200 by Hopper's rows (Khattak and Mikaitis).
inline constexpr std::string_view kF16ToF32 = "75 sm75.hmma.f32, 80 sm80.hmma.f32, 90 sm90.hmma.f32";
inline constexpr std::string_view kF16ToF16 = "75 sm75.hmma.f16, 80 sm80.hmma.f16, 90 sm90.hmma.f16";
inline constexpr std::string_view kBf16ToF32 = "80 sm80.hmma.f32, 90 sm90.hmma.f32";
inline constexpr std::string_view kTf32ToF32 = "80 sm80.hmma_tf32.f32, 90 sm90.hmma_tf32.f32";
inline constexpr std::string_view kFp8ToF32 = "89 sm89.qmma.f32, 90 sm90.mma_sync_fp8.f32, 120 sm120.qmma.f32";
inline constexpr std::string_view kFp8ToF16 = "89 sm89.qmma.f16, 90 sm90.mma_sync_fp8.f16";
}  // namespace detail

// PTX ISA 9.0, mma and wgmma.mma_async.
// clang-format off
inline constexpr auto kMatrixInstructions = std::to_array<MatrixInstruction>({
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", MatrixUnit::warp, 16, 8, 16, "f16", "f16", "f32",
     detail::kSince80, detail::kF16ToF32},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", MatrixUnit::warp, 16, 8, 8, "f16", "f16", "f32",
     detail::kSince80, detail::kF16ToF32},
    {"mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", MatrixUnit::warp, 16, 8, 16, "f16", "f16", "f16",
     detail::kSince80, detail::kF16ToF16},
    {"mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16", MatrixUnit::warp, 16, 8, 8, "f16", "f16", "f16",
     detail::kSince80, detail::kF16ToF16},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", MatrixUnit::warp, 16, 8, 16, "bf16", "bf16", "f32",
     detail::kSince80, detail::kBf16ToF32},
    {"mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", MatrixUnit::warp, 16, 8, 8, "bf16", "bf16", "f32",
     detail::kSince80, detail::kBf16ToF32},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", MatrixUnit::warp, 16, 8, 8, "tf32", "tf32", "f32",
     detail::kSince80, detail::kTf32ToF32},
    {"mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32", MatrixUnit::warp, 16, 8, 4, "tf32", "tf32", "f32",
     detail::kSince80, detail::kTf32ToF32},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", MatrixUnit::warp, 16, 8, 32, "e4m3", "e4m3", "f32",
     detail::kSince89, detail::kFp8ToF32},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32", MatrixUnit::warp, 16, 8, 32, "e4m3", "e5m2", "f32",
     detail::kSince89, detail::kFp8ToF32},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e4m3.f32", MatrixUnit::warp, 16, 8, 32, "e5m2", "e4m3", "f32",
     detail::kSince89, detail::kFp8ToF32},
    {"mma.sync.aligned.m16n8k32.row.col.f32.e5m2.e5m2.f32", MatrixUnit::warp, 16, 8, 32, "e5m2", "e5m2", "f32",
     detail::kSince89, detail::kFp8ToF32},
    {"mma.sync.aligned.m16n8k16.row.col.f32.e4m3.e4m3.f32", MatrixUnit::warp, 16, 8, 16, "e4m3", "e4m3", "f32",
     detail::kSince89, detail::kFp8ToF32},
    {"mma.sync.aligned.m16n8k32.row.col.f16.e4m3.e4m3.f16", MatrixUnit::warp, 16, 8, 32, "e4m3", "e4m3", "f16",
     detail::kSince89, detail::kFp8ToF16},
    {"mma.sync.aligned.m16n8k32.row.col.f16.e5m2.e5m2.f16", MatrixUnit::warp, 16, 8, 32, "e5m2", "e5m2", "f16",
     detail::kSince89, detail::kFp8ToF16},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16", MatrixUnit::warpgroup, 64, 8, 16, "f16", "f16", "f32",
     detail::kOnly90a, "90 sm90.hmma.f32"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16", MatrixUnit::warpgroup, 64, 8, 16, "f16", "f16", "f16",
     detail::kOnly90a, "90 sm90.hmma.f16"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16", MatrixUnit::warpgroup, 64, 8, 16, "bf16", "bf16", "f32",
     detail::kOnly90a, "90 sm90.hmma.f32"},
    {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32", MatrixUnit::warpgroup, 64, 8, 8, "tf32", "tf32", "f32",
     detail::kOnly90a, "90 sm90.hmma_tf32.f32"},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3", MatrixUnit::warpgroup, 64, 8, 32, "e4m3", "e4m3", "f32",
     detail::kOnly90a, "90 sm90.qgmma.f32"},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2", MatrixUnit::warpgroup, 64, 8, 32, "e4m3", "e5m2", "f32",
     detail::kOnly90a, "90 sm90.qgmma.f32"},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e4m3", MatrixUnit::warpgroup, 64, 8, 32, "e5m2", "e4m3", "f32",
     detail::kOnly90a, "90 sm90.qgmma.f32"},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f32.e5m2.e5m2", MatrixUnit::warpgroup, 64, 8, 32, "e5m2", "e5m2", "f32",
     detail::kOnly90a, "90 sm90.qgmma.f32"},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f16.e4m3.e4m3", MatrixUnit::warpgroup, 64, 8, 32, "e4m3", "e4m3", "f16",
     detail::kOnly90a, "90 sm90.qgmma.f16"},
    {"wgmma.mma_async.sync.aligned.m64n8k32.f16.e5m2.e5m2", MatrixUnit::warpgroup, 64, 8, 32, "e5m2", "e5m2", "f16",
     detail::kOnly90a, "90 sm90.qgmma.f16"},
});
// clang-format on

// Position in kMatrixInstructions; -1 if there is none.
constexpr int find_matrix_instruction(std::string_view ptx) {
  for (std::size_t id = 0; id < kMatrixInstructions.size(); ++id)
    if (kMatrixInstructions[id].ptx == ptx) return int(id);
  return -1;
}

// Position in kAccumulators of what adds an instruction up on GPUs of a compute capability, 90 for 9.0; -1 where none
// is known.
constexpr int accumulator_on(const MatrixInstruction& is, int capability) {
  int found = -1;
  for (std::string_view rest = is.accumulators; !rest.empty();) {
    const std::string_view entry = rest.substr(0, rest.find(", "));
    rest.remove_prefix(entry.size() == rest.size() ? rest.size() : entry.size() + 2);
    int since = 0;
    for (const char c : entry.substr(0, entry.find(' '))) since = 10 * since + (c - '0');
    if (since <= capability) found = find_accumulator(entry.substr(entry.find(' ') + 1));
  }
  return found;
}

namespace detail {
constexpr bool matrix_instructions_are_sound() {
  for (std::size_t id = 0; id < kMatrixInstructions.size(); ++id) {
    const MatrixInstruction& is = kMatrixInstructions[id];
    if (find_matrix_instruction(is.ptx) != int(id) || accumulator_on(is, 121) < 0) return false;
    if (find_format(is.a) < 0 || find_format(is.b) < 0 || find_format(is.d) < 0) return false;
  }
  return true;
}
static_assert(matrix_instructions_are_sound(), "an instruction stands twice, or names no accumulator or format");
}  // namespace detail

}  // namespace halfulp
