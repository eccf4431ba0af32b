# Are the digests of a build with another compiler those of the usual build?
include(${CMAKE_CURRENT_LIST_DIR}/digests.cmake)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${OTHER_DIR} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
                        -DHALFULP_CUDA=OFF -DHALFULP_INSTALL=OFF -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1
                RESULT_VARIABLE failure OUTPUT_VARIABLE output ERROR_VARIABLE output)
if(failure)
  message(FATAL_ERROR "cannot be configured for ${CXX}:\n${output}")
endif()
build_target(${BUILD_DIR} digest)
build_target(${OTHER_DIR} digest)
expect_same_digests(${USUAL} ${OTHER_DIR}/bin/digest)
