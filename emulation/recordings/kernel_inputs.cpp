#include "emulation/recordings/kernel_inputs.h"

#include <bit>
#include <cstring>

#include "formats/catalog.h"
#include "lib/splitmix.h"

namespace halfulp {
namespace {

// One element of the matrix, by the words that kKernelInputsMeaning says.
class KernelElement {
 public:
  KernelElement(const Format& format, uint64_t i)
      : exponent_bits_(format.exponent_bits), mantissa_bits_(format.mantissa_bits), i_(i), r_(splitmix64(i)) {}

  uint32_t bits() const {
    const uint32_t uneven = uint32_t(bias() - 8 + group() % 17);
    switch (i_ >> 16 & 7) {
      case 0: return number(bias() + 1);
      case 1: return number(uneven);
      case 2: return coarse(uneven);
      case 3: return (r_ >> 40) % 64 == 0 ? special(group()) : number(uneven);
      case 4: return uint32_t(r_) & mask(1 + exponent_bits_ + mantissa_bits_);
      case 5: return number(uint32_t(group() % 24));
      case 6: return of_run(uneven);
      default: return number(uint32_t(mask(exponent_bits_) - 1 - group() % 8));
    }
  }

 private:
  static uint32_t mask(int bits) { return uint32_t((uint64_t{1} << bits) - 1); }
  uint32_t bias() const { return mask(exponent_bits_ - 1); }
  uint64_t group() const { return splitmix64((uint64_t{1} << 63) + i_ / 16); }
  uint64_t run() const { return splitmix64((uint64_t{1} << 62) + i_ / 128); }

  uint32_t join(uint64_t sign, uint32_t exponent, uint32_t mantissa) const {
    return uint32_t(sign) << (exponent_bits_ + mantissa_bits_) | exponent << mantissa_bits_ | mantissa;
  }
  uint32_t number(uint32_t exponent) const {
    const uint64_t tail = r_ >> 23 & ((uint64_t{1} << 40) - 1);
    const uint32_t zeros = tail == 0 ? 40 : uint32_t(std::countr_zero(tail));
    return join(r_ >> 63, exponent > zeros ? exponent - zeros : 0, uint32_t(r_) & mask(mantissa_bits_));
  }
  uint32_t coarse(uint32_t exponent) const {
    if (i_ % 16 == 0) return join(0, exponent, uint32_t{1} << (mantissa_bits_ - 1));
    return number(exponent) & ~mask(mantissa_bits_ - 3);
  }
  uint32_t special(uint64_t word) const {
    const uint32_t all = mask(exponent_bits_), most = mask(mantissa_bits_), quiet = uint32_t{1} << (mantissa_bits_ - 1);
    const uint32_t exponents[8] = {0, 0, 0, 1, bias(), all - 1, all, all};
    const uint32_t mantissas[8] = {0, 1, most, 0, 0, most, 0, quiet};
    return join(word >> 3 & 1, exponents[word % 8], mantissas[word % 8]);
  }
  uint32_t of_run(uint32_t uneven) const {
    const uint64_t h = run();
    const bool is_the_one = i_ % 128 == h / 64 % 128;
    switch (h % 4) {
      case 0: return special(h / 4);
      case 1: return is_the_one ? special(h / 4) : 0;
      case 2: return special(r_);
      default: return is_the_one ? special(h / 4) : number(uneven);
    }
  }

  int exponent_bits_, mantissa_bits_;
  uint64_t i_, r_;
};

const Format& format_of(Dtype dtype) {
  const char* name = dtype == Dtype::f32 ? "f32" : dtype == Dtype::f16 ? "f16" : "bf16";
  return kFormats[std::size_t(find_format(name))].format;
}

}  // namespace

std::vector<std::byte> kernel_elements(Dtype dtype, uint64_t first, uint64_t count) {
  const Format& format = format_of(dtype);
  const std::size_t bytes = std::size_t(row(dtype).bits) / 8;
  std::vector<std::byte> elements(count * bytes);
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t bits = KernelElement(format, first + i).bits();
    for (std::size_t k = 0; k < bytes; ++k) elements[i * bytes + k] = std::byte(bits >> 8 * k);
  }
  return elements;
}

uint64_t bytes_checksum(std::span<const std::byte> bytes) {
  uint64_t sum = 0;
  for (std::size_t k = 0; 4 * k < bytes.size(); ++k) {
    uint64_t word = 0;
    for (std::size_t b = 4 * k; b < std::min(4 * k + 4, bytes.size()); ++b)
      word |= uint64_t(bytes[b]) << 8 * (b - 4 * k);
    sum += splitmix64(uint64_t{k} << 32 | word);
  }
  return sum;
}

}  // namespace halfulp
