# Two interface targets that every halfulp target links, and the function that makes a library.

# The only place for flags that change results. GCC, clang and nvcc all fuse a*b+c by default where the target has
# an FMA, which changes bits; one rounding per operation is the contract of every function in this project.
add_library(halfulp_numeric_flags INTERFACE)
add_library(halfulp::numeric_flags ALIAS halfulp_numeric_flags)
set_target_properties(halfulp_numeric_flags PROPERTIES EXPORT_NAME numeric_flags)
target_compile_features(halfulp_numeric_flags INTERFACE cxx_std_20)
target_compile_options(halfulp_numeric_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-fast-math>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -ftz=false -prec-div=true -prec-sqrt=true -Xcompiler=-ffp-contract=off>)

add_library(halfulp_warnings INTERFACE)
target_compile_options(halfulp_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wconversion -Wshadow -Werror>
  # GCC bug 105651: a false alarm for "literal" + std::string, fixed in GCC 13.
  $<$<AND:$<COMPILE_LANG_AND_ID:CXX,GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>
  $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Wall,-Wextra>)

# halfulp_add_library(formats INTERFACE)           a header-only library, or
# halfulp_add_library(lib STATIC a.cpp b.cpp)      a compiled one.
# Makes halfulp::NAME with the repository root as include root.
function(halfulp_add_library name kind)
  set(target halfulp_${name})
  add_library(${target} ${kind} ${ARGN})
  add_library(halfulp::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON CXX_EXTENSIONS OFF)
  if(kind STREQUAL "INTERFACE")
    set(scope INTERFACE)
  else()
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:halfulp_warnings>)
  endif()
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/halfulp>)
  target_link_libraries(${target} ${scope} halfulp::numeric_flags)
endfunction()
