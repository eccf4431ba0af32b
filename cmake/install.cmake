# What `cmake --install` copies, and the package that find_package(halfulp) reads.
include(CMakePackageConfigHelpers)

set(halfulp_package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/halfulp)

# The include root is the repository root, so each folder keeps its name below include/halfulp.
install(TARGETS halfulp_numeric_flags EXPORT halfulp)
foreach(library lib formats emulation)
  install(TARGETS halfulp_${library} EXPORT halfulp)
  install(DIRECTORY ${library} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/halfulp FILES_MATCHING PATTERN *.h)
endforeach()
install(EXPORT halfulp NAMESPACE halfulp:: FILE halfulp-targets.cmake DESTINATION ${halfulp_package_dir})
if(HALFULP_TOOLS)
  install(TARGETS halfulp)
endif()

configure_package_config_file(cmake/halfulp-config.cmake.in ${PROJECT_BINARY_DIR}/package/halfulp-config.cmake
                              INSTALL_DESTINATION ${halfulp_package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/package/halfulp-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/package/halfulp-config.cmake ${PROJECT_BINARY_DIR}/package/halfulp-config-version.cmake
        DESTINATION ${halfulp_package_dir})
