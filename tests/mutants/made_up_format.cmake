# cmake -DSOURCE_DIR= -DWORK_DIR= -DCXX= -DPART=codec|cli -P made_up_format.cmake
# Adds one row, e1m6, to the catalog of a copy and shows that it is enough: codec: its tests appear and pass; cli: the
# program, built from the copy, prints it.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/copy.cmake)

set(tree ${WORK_DIR}/made_up_format_${PART})
copy_sources(${tree})
replace_once(${tree}/formats/catalog.h "});\n// clang-format on" [=[
    {.name = "e1m6", .alias = "fp8_e1m6",
     .format = {.sign = Sign::one_bit, .exponent_bits = 1, .mantissa_bits = 6, .bias = 1,
                .specials = Specials::finite_only, .subnormals = Subnormals::yes},
     .storage_bits = 8, .storage_shift = 0, .dtype = "",
     .source = "made up by a test"},
});
// clang-format on]=])

function(check_codec)
  build_test(${tree} codec_test.cpp ${tree}/codec_test)
  run_test(${tree}/codec_test "*/e1m6*" code output)
  string(REGEX MATCH "Running ([0-9]+) tests" ran "${output}")
  # 4 tests of every mode, and 3 of narrow, enumerable and signed formats, in 7 modes; 4 of the format.
  if(NOT code EQUAL 0 OR CMAKE_MATCH_1 LESS 50)
    message(FATAL_ERROR "e1m6 is not tested, or fails:\n${output}")
  endif()
  message(STATUS "e1m6: ${ran}")
endfunction()

function(run_step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE failed OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(failed)
    message(FATAL_ERROR "${ARGN} failed:\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

function(check_cli)
  set(build ${tree}/build)
  run_step(${CMAKE_COMMAND} -S ${tree} -B ${build} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_BUILD_TYPE=Debug
           -DHALFULP_CUDA=OFF -DHALFULP_TESTS=OFF -DHALFULP_BENCH=OFF -DHALFULP_INSTALL=OFF)
  run_step(${CMAKE_COMMAND} --build ${build} --target halfulp --parallel 2)
  run_step(${build}/bin/halfulp formats)
  if(NOT output MATCHES "e1m6")
    message(FATAL_ERROR "'halfulp formats' does not print e1m6:\n${output}")
  endif()
  run_step(${build}/bin/halfulp formats e1m6)
  message(STATUS "halfulp formats e1m6:\n${output}")
endfunction()

if(PART STREQUAL "cli")
  check_cli()
else()
  check_codec()
endif()
file(REMOVE_RECURSE ${tree})
