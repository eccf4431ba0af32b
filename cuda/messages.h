#pragma once
// What is said where a GPU, its driver, its memory or a pointer is not as it must be. Knows nothing of CUDA's headers,
// so that it is tested where there is no toolkit.

#include <cstdint>
#include <string>
#include <string_view>

namespace halfulp {
namespace detail {

// "13.0" of 13000
inline std::string cuda_version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// "34359738368 bytes (32.0 GiB)"
inline std::string bytes_text(uint64_t bytes) {
  const uint64_t tenths = bytes * 10 >> 30;
  return std::to_string(bytes) + " bytes" +
         (tenths == 0 ? "" : " (" + std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " GiB)");
}

}  // namespace detail

// What the CUDA runtime says of itself and of the driver, 0 where there is none, when it finds no GPU.
struct NoGpu {
  int driver;   // the CUDA version that it supports, 13000 for 13.0
  int runtime;  // likewise, of this build
  bool driver_is_too_old;
  std::string_view error;  // in the runtime's words
};

inline std::string no_gpu_text(const NoGpu& is) {
  if (is.driver == 0) return "no GPU: this machine has no NVIDIA driver";
  if (is.driver_is_too_old) {
    return "the NVIDIA driver is too old: it supports CUDA " + detail::cuda_version_text(is.driver) +
           ", and this build needs " + detail::cuda_version_text(is.runtime) + "; update the driver";
  }
  return "no GPU that can be used: " + std::string(is.error);
}

// Of a GPU that the build has no code for: its name, its compute capability, and what there is code for.
struct NoCode {
  std::string_view gpu;
  int major, minor;
  std::string_view targets;
};

inline std::string no_code_text(const NoCode& is) {
  return std::string(is.gpu) + " (compute capability " + std::to_string(is.major) + "." + std::to_string(is.minor) +
         "): this build has code for " + std::string(is.targets) +
         " only; configure with -DCMAKE_CUDA_ARCHITECTURES=" + std::to_string(is.major * 10 + is.minor) +
         (is.major >= 9 ? "a-real" : "-real");
}

inline std::string out_of_memory_text(uint64_t asked, uint64_t free, uint64_t total) {
  return "the GPU's memory is too small: " + detail::bytes_text(asked) + " were asked for, " +
         detail::bytes_text(free) + " of " + detail::bytes_text(total) +
         " are free; end what else uses the GPU, or compute on the CPU (--device cpu)";
}

// "x lies at 0x7f0000000004, 4 bytes past a multiple of 16"
inline std::string misaligned_text(std::string_view what, uint64_t address, uint64_t alignment) {
  std::string digits;
  for (uint64_t rest = address; rest > 0 || digits.empty(); rest /= 16)
    digits.insert(0, 1, "0123456789abcdef"[rest % 16]);
  return std::string(what) + " lies at 0x" + digits + ", " + std::to_string(address % alignment) +
         (address % alignment == 1 ? " byte" : " bytes") + " past a multiple of " + std::to_string(alignment);
}

}  // namespace halfulp
