# cmake -DSOURCE_DIR= -DWORK_DIR= -DCXX= -DMUTANT=name [-DFLAGS= -DEMULATION= -DLIB=] -P run_mutant.cmake
# Succeeds if the tests that the mutant's row names fail. That they pass on the sources as they are, the usual tests show.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/copy.cmake)

function(expect_noticed build name file test filter text replacement)
  if(NOT name STREQUAL MUTANT)
    return()
  endif()
  set(tree ${WORK_DIR}/${name})
  copy_sources(${tree})
  replace_once(${tree}/${file} "${text}" "${replacement}")
  cmake_language(CALL ${build} ${tree} ${test} ${tree}/changed)
  run_test(${tree}/changed "${filter}" code output)
  if(NOT code EQUAL 1)  # a crash does not count, and no test at all exits 0
    message(FATAL_ERROR "${test} does not notice the mutant (exit code ${code}):\n${text}\n=>\n${replacement}")
  endif()
  string(REGEX MATCH "[^\n]*: Failure\n[^\n]*" failure "${output}")
  message(STATUS "noticed: ${failure}")
  file(REMOVE_RECURSE ${tree})
endfunction()

function(mutant name file test filter text replacement)
  expect_noticed(build_test "${name}" "${file}" "${test}" "${filter}" "${text}" "${replacement}")
endfunction()

function(recipe_mutant name file test filter text replacement)
  expect_noticed(build_recipe_test "${name}" "${file}" "${test}" "${filter}" "${text}" "${replacement}")
endfunction()

include(${CMAKE_CURRENT_LIST_DIR}/mutants.cmake)
