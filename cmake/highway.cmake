# Highway compiles emulation/simd for each instruction set and picks one at run time.
find_package(hwy REQUIRED)

# Kept to what the kernels are tested on. SSSE3 would serve processors from before 2008; SVE's vectors have no size that
# a struct could hold; AVX3_DL, which Highway leaves out unless asked, ran no faster than AVX3. EMU128 is the plain C++
# that remains: Highway takes it for broken under GCC before 12.3 because of GCC bug 106322, which is in an operation
# (MulHigh) that is not used here.
set(halfulp_simd_definitions
  HWY_BROKEN_EMU128=0 "HWY_DISABLED_TARGETS=(HWY_SSSE3|HWY_SVE|HWY_SVE2|HWY_SVE_256|HWY_SVE2_128)")

# halfulp_use_simd(target): links what the sources of emulation/simd need. Call it where the target has its sources.
function(halfulp_use_simd target)
  target_link_libraries(${target} PRIVATE hwy::hwy)
  foreach(name amax decode encode matmul targets)
    set_source_files_properties(${PROJECT_SOURCE_DIR}/emulation/simd/${name}.cpp PROPERTIES COMPILE_DEFINITIONS
      "${halfulp_simd_definitions};HWY_TARGET_INCLUDE=\"emulation/simd/${name}_kernels.h\"")
  endforeach()
endfunction()
