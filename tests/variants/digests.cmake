# Builds and runs digest programs.

function(build_target build_dir target)
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${build_dir} --target ${target} RESULT_VARIABLE failure
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(failure)
    message(FATAL_ERROR "${target} cannot be built:\n${output}")
  endif()
endfunction()

function(expect_same_digests usual other)
  execute_process(COMMAND ${usual} OUTPUT_VARIABLE expected COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${other} OUTPUT_VARIABLE got COMMAND_ERROR_IS_FATAL ANY)
  if(expected STREQUAL "" OR NOT got STREQUAL expected)
    message(FATAL_ERROR "the digests differ. The usual build:\n${expected}\nThis one:\n${got}")
  endif()
endfunction()
