# Finds nvcc and sets HALFULP_HAS_CUDA. Everything else works without it.
set(HALFULP_HAS_CUDA OFF)
if(HALFULP_CUDA STREQUAL "OFF")
  return()
endif()

include(CheckLanguage)
check_language(CUDA)
if(NOT CMAKE_CUDA_COMPILER)
  if(HALFULP_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HALFULP_CUDA=ON, but no CUDA compiler was found. Install the CUDA Toolkit (12.8 or later "
                        "for Blackwell targets), put nvcc on PATH, or configure with -DHALFULP_CUDA=AUTO.")
  endif()
  message(STATUS "No CUDA compiler: building for the CPU only")
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
