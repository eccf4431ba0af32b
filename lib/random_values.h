#pragma once
// Random numbers of a distribution as a function of (seed, stream, index): the same bits on every IEEE 754 machine and
// with every C++ library, because only + - * / and sqrt, which IEEE 754 rounds correctly, are used. Not a generator:
// words come from lib/philox.h. Two distributions read from one stream share words; give each its own stream.

#include <cmath>
#include <cstdint>

#include "lib/bits.h"
#include "lib/host_device.h"
#include "lib/philox.h"

namespace halfulp {

// The upper 52 bits as a number strictly between 0 and 1, symmetric about 1/2; exact.
HOST_DEVICE constexpr double unit_interval(uint64_t bits) { return (double(bits >> 12) + 0.5) * 0x1p-52; }

// c[0] + c[1] x + ... + c[n-1] x^(n-1)
template <int n>
HOST_DEVICE constexpr double polynomial(const double (&c)[n], double x) {
  double sum = c[n - 1];
  for (int i = n - 2; i >= 0; --i) sum = sum * x + c[i];
  return sum;
}

// Natural logarithm of a positive normal x. Not libm's, which differs between machines. With x = m 2^e, m in
// [sqrt(1/2), sqrt(2)), s = (m - 1) / (m + 1): log x = e log 2 + 2 s (1 + s^2/3 + s^4/5 + ...). |s| < 0.1716, so the
// first term left out, s^20/21, is below 2^-55.
HOST_DEVICE constexpr double portable_log(double x) {
  constexpr double kLog2High = 0x1.62e42fefa38p-1;       // 42 bits: its product with an exponent is exact
  constexpr double kLog2Low = 0x1.ef35793c7673p-45;      // log 2 - kLog2High
  constexpr uint64_t kSqrtHalf = 0x3fe6'a09e'667f'3bcd;  // bits of sqrt(1/2)
  constexpr double kSeries[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,
                                1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17, 1.0 / 19};
  const uint64_t bits = bit_cast<uint64_t>(x);
  const int64_t e = int64_t(bits - kSqrtHalf) >> 52;
  const double m = bit_cast<double>(bits - (uint64_t(e) << 52));
  const double s = (m - 1) / (m + 1);
  return double(e) * kLog2High + (2 * s * polynomial(kSeries, s * s) + double(e) * kLog2Low);
}

// Wichura, algorithm AS 241 (PPND16), Applied Statistics 37 (1988): |q| <= 0.425, q the probability less 1/2.
HOST_DEVICE constexpr double normal_quantile_center(double q) {
  constexpr double kA[] = {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
                           1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
                           3.3430575583588128105e4, 2.5090809287301226727e3};
  constexpr double kB[] = {1.0,
                           4.2313330701600911252e1,
                           6.8718700749205790830e2,
                           5.3941960214247511077e3,
                           2.1213794301586595867e4,
                           3.9307895800092710610e4,
                           2.8729085735721942674e4,
                           5.2264952788528545610e3};
  const double r = 0.180625 - q * q;
  return q * polynomial(kA, r) / polynomial(kB, r);
}

// The same algorithm's upper tail; r = sqrt(-log(probability above)).
HOST_DEVICE constexpr double normal_quantile_tail(double r) {
  constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0, 5.76949722146069140550e0,
                           3.64784832476320460504e0,  1.27045825245236838258e0, 2.41780725177450611770e-1,
                           2.27238449892691845833e-2, 7.74545014278341407640e-4};
  constexpr double kD[] = {1.0,
                           2.05319162663775882187e0,
                           1.67638483018380384940e0,
                           6.89767334985100004550e-1,
                           1.48103976427480074590e-1,
                           1.51986665636164571966e-2,
                           5.47593808499534494600e-4,
                           1.05075007164441684324e-9};
  constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,  1.78482653991729133580e0,
                           2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
                           2.71155556874348757815e-5, 2.01033439929228813265e-7};
  constexpr double kF[] = {1.0,
                           5.99832206555887937690e-1,
                           1.36929880922735805310e-1,
                           1.48753612908506148525e-2,
                           7.86869131145613259100e-4,
                           1.84631831751005468180e-5,
                           1.42151175831644588870e-7,
                           2.04426310338993978564e-15};
  return r <= 5 ? polynomial(kC, r - 1.6) / polynomial(kD, r - 1.6)  //
                : polynomial(kE, r - 5) / polynomial(kF, r - 5);
}

// The x below which a standard normal variable lies with probability p, 0 < p < 1. Within 4 ulps.
HOST_DEVICE inline double normal_quantile(double p) {
  const double q = p - 0.5;
  if (-0.425 <= q && q <= 0.425) return normal_quantile_center(q);
  const double x = normal_quantile_tail(std::sqrt(-portable_log(q < 0 ? p : 1 - p)));
  return q < 0 ? -x : x;
}

HOST_DEVICE constexpr double uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  return unit_interval(random_bits64(seed, stream, index));
}

HOST_DEVICE inline double normal(uint64_t seed, uint64_t stream, uint64_t index) {
  return normal_quantile(uniform(seed, stream, index));
}

// Student's t with 3 degrees of freedom: weights with heavy tails. z0 / sqrt((z1^2 + z2^2 + z3^2) / 3), from the
// normals 4 * index .. 4 * index + 3 of the stream.
HOST_DEVICE inline double student_t3(uint64_t seed, uint64_t stream, uint64_t index) {
  const double z1 = normal(seed, stream, 4 * index + 1);
  const double z2 = normal(seed, stream, 4 * index + 2);
  const double z3 = normal(seed, stream, 4 * index + 3);
  return normal(seed, stream, 4 * index) / std::sqrt((z1 * z1 + z2 * z2 + z3 * z3) / 3);
}

}  // namespace halfulp
