# copy_sources(TREE): the sources that a test may change, copied from SOURCE_DIR.
function(copy_sources tree)
  file(REMOVE_RECURSE ${tree})
  foreach(item IN ITEMS CMakeLists.txt cmake lib formats emulation tools tests/emulation tests/formats tests/oracle)
    get_filename_component(parent ${tree}/${item} DIRECTORY)
    file(COPY ${SOURCE_DIR}/${item} DESTINATION ${parent})
  endforeach()
endfunction()

# replace_once(PATH TEXT REPLACEMENT): an error if TEXT is not in the file exactly once.
function(replace_once path text replacement)
  file(READ ${path} content)
  string(FIND "${content}" "${text}" first)
  string(FIND "${content}" "${text}" last REVERSE)
  if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "${path} does not hold this text exactly once; bring the row up to date:\n${text}")
  endif()
  string(REPLACE "${text}" "${replacement}" content "${content}")
  file(WRITE ${path} "${content}")
endfunction()

# build_test(TREE TEST PROGRAM): tests/formats/TEST of the tree, unoptimised.
function(build_test tree test program)
  execute_process(
    COMMAND ${CXX} -std=c++20 -O0 -ffp-contract=off -I${tree}
            ${tree}/tests/formats/${test} -o ${program} -lgtest -lgtest_main -lpthread
    RESULT_VARIABLE failed ERROR_VARIABLE errors)
  if(failed)
    message(FATAL_ERROR "the changed tree does not compile:\n${errors}")
  endif()
endfunction()

# build_recipe_test(TREE TEST PROGRAM): tests/emulation/TEST of the tree with what it has of recipes, unoptimised; the
# rest of the libraries as it was built, which knows no recipes.
function(build_recipe_test tree test program)
  separate_arguments(flags UNIX_COMMAND "${FLAGS}")
  execute_process(
    COMMAND ${CXX} -std=c++20 ${flags} -O0 -ffp-contract=off -I${tree} -DHALFULP_TEST_DATA="${SOURCE_DIR}/tests/golden"
            ${tree}/tests/emulation/${test} ${tree}/emulation/blocks/quantize.cpp
            ${tree}/emulation/blocks/quantize_elementwise.cpp ${tree}/emulation/blocks/formula_arrays.cpp
            ${EMULATION} ${LIB} -o ${program} -lgtest -lgtest_main -lhwy -lfmt -ltbb -lpthread
    RESULT_VARIABLE failed ERROR_VARIABLE errors)
  if(failed)
    message(FATAL_ERROR "the changed tree does not compile:\n${errors}")
  endif()
endfunction()

# run_test(PROGRAM FILTER RESULT OUTPUT)
function(run_test program filter result output)
  execute_process(COMMAND ${program} --gtest_filter=${filter} --gtest_fail_fast
                  RESULT_VARIABLE code OUTPUT_VARIABLE text ERROR_VARIABLE text)
  set(${result} ${code} PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()
