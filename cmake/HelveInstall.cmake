# The C++ package: headers, one static library a room, and what find_package(helve) needs.
# It is a component of its own, outside the plain install, so that a wheel carries none of it:
#   cmake --install build --component cpp --prefix <folder>
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY HELVE_ROOMS)
add_library(helve INTERFACE)
target_link_libraries(helve INTERFACE helve_driver)
target_compile_features(helve INTERFACE cxx_std_20)
set(exported helve ${rooms})
if(TARGET helve_llvm)
  list(APPEND exported helve_llvm)
endif()

set(package lib/cmake/helve)
install(TARGETS ${exported} EXPORT helve ARCHIVE DESTINATION lib COMPONENT cpp EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/helve DESTINATION include COMPONENT cpp EXCLUDE_FROM_ALL)
install(EXPORT helve NAMESPACE helve:: FILE helveTargets.cmake DESTINATION ${package} COMPONENT cpp EXCLUDE_FROM_ALL)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/helveConfig.cmake.in ${PROJECT_BINARY_DIR}/helveConfig.cmake
  INSTALL_DESTINATION ${package})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/helveConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/helveConfig.cmake ${PROJECT_BINARY_DIR}/helveConfigVersion.cmake
  ${PROJECT_SOURCE_DIR}/3rdparty/FindISL.cmake DESTINATION ${package} COMPONENT cpp EXCLUDE_FROM_ALL)

# The tutorial is built from the installed package alone, as a user of C++ builds it; nobody installs sanitizers' builds.
if(HELVE_TESTS AND NOT HELVE_SANITIZE)
  set(prefix ${PROJECT_BINARY_DIR}/package)
  add_test(NAME package.install
    COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component cpp --prefix ${prefix})
  set_tests_properties(package.install PROPERTIES FIXTURES_SETUP package)
  add_test(NAME package.use
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${PROJECT_SOURCE_DIR}/tutorials/cpp ${PROJECT_BINARY_DIR}/package-use
      --build-generator ${CMAKE_GENERATOR} --build-options -DCMAKE_PREFIX_PATH=${prefix} -DCMAKE_BUILD_TYPE=Release
      --test-command rms_norm)
  set_tests_properties(package.use PROPERTIES FIXTURES_REQUIRED package)
endif()
