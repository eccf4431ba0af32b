# Finds nvcc and sets HALFULP_HAS_CUDA. Everything else works without it.
set(HALFULP_HAS_CUDA OFF)
if(HALFULP_CUDA STREQUAL "OFF")
  return()
endif()

# The first nvcc that says which variant of a target it compiles for, and that knows sm_103a.
set(HALFULP_MIN_CUDA 12.9)

include(CheckLanguage)
check_language(CUDA)
set(halfulp_cuda_lack "no CUDA compiler was found")
if(CMAKE_CUDA_COMPILER)
  execute_process(COMMAND ${CMAKE_CUDA_COMPILER} --version OUTPUT_VARIABLE halfulp_cuda_version ERROR_QUIET)
  string(REGEX MATCH "release ([0-9.]+)" halfulp_cuda_version "${halfulp_cuda_version}")
  set(halfulp_cuda_lack "${CMAKE_CUDA_COMPILER} is too old (${halfulp_cuda_version})")
endif()
if(NOT CMAKE_CUDA_COMPILER OR CMAKE_MATCH_1 VERSION_LESS HALFULP_MIN_CUDA)
  if(HALFULP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HALFULP_CUDA=ON, but ${halfulp_cuda_lack}. Install the CUDA Toolkit, ${HALFULP_MIN_CUDA} or "
                        "later, and put its nvcc on PATH, or configure with -DHALFULP_CUDA=AUTO.")
  endif()
  message(STATUS "Building for the CPU only: ${halfulp_cuda_lack}")
  return()
endif()

# Must be set before enable_language. `native` would fail on a machine without a GPU.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90a-real 100a-real 103a-real 120a-real)
endif()
enable_language(CUDA)

# CMake 3.25.1 (Debian 12) does not know how to ask nvcc 12 and later for C++20.
if(CMAKE_VERSION VERSION_LESS 3.25.2 AND NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION
   AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
find_package(CUDAToolkit REQUIRED)
set(HALFULP_HAS_CUDA ON)
