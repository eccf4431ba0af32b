# cmake -DSOURCE_DIR= -DWORK_DIR= -DCXX= -DPART=codec|cli -P made_up_format.cmake
# Adds one row, e1m6, to the catalog of a copy and shows that it is enough: codec: its tests appear and pass; cli: what
# the program prints of formats, built from the copy, has it.
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

# The table that `halfulp formats` prints and the description of one row, from the program's own sources for them.
function(check_cli)
  file(WRITE ${tree}/print_formats.cpp [=[
#include <iostream>
#include "tools/catalogs.h"
int main() {
  const halfulp::Catalog catalog = halfulp::format_catalog();
  std::cout << halfulp::to_text(halfulp::to_table(catalog.list()), halfulp::Color::off)
            << halfulp::to_lines(catalog.describe("e1m6").facts);
}
]=])
  set(sources print_formats.cpp tools/describe_format.cpp tools/facts.cpp tools/number_text.cpp)
  list(TRANSFORM sources PREPEND ${tree}/)
  execute_process(
    COMMAND ${CXX} -std=c++20 -O0 -ffp-contract=off -I${tree} ${sources} ${LIB} -o ${tree}/print_formats -lfmt -ltbb
    RESULT_VARIABLE failed ERROR_VARIABLE errors)
  if(failed)
    message(FATAL_ERROR "the changed tree does not compile:\n${errors}")
  endif()
  execute_process(COMMAND ${tree}/print_formats OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "e1m6" found "${output}")
  list(LENGTH found times)
  if(times LESS 2 OR NOT output MATCHES "made up by a test")
    message(FATAL_ERROR "'halfulp formats' does not print e1m6:\n${output}")
  endif()
  message(STATUS "halfulp formats, and of e1m6:\n${output}")
endfunction()

if(PART STREQUAL "cli")
  check_cli()
else()
  check_codec()
endif()
file(REMOVE_RECURSE ${tree})
