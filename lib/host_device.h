#pragma once
// The project's only macro. Marks a function that must give the same bits on CPU and GPU.

#ifdef __FAST_MATH__
#error "halfulp models arithmetic to the bit: it cannot be compiled with fast-math"
#endif

// The attribute makes a row's constants fold: left to itself GCC keeps the larger functions apart and computes the
// constants anew.
#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE [[gnu::always_inline]]
#endif
