# One library a room, with its own include view.
# A room sees only the headers of the rooms that it links, so the order of the house cannot be broken by an include;
# the link check does the same for calls.

# What is compiled quickly, as against -O3.
set(HELVE_QUICK $<$<CONFIG:Release>:-O1>)

# helve_room(<path> [HOT] [BRUTE_FORCE] USES <path>... [MAY_USE <path>...] [LIBRARIES <target>...] [TEST_USES <path>...])
#   path: folder below src/ and include/helve/, for example ir/expr. Target: helve_ir_expr. Sources are all .cc below the folder.
#   HOT: calls and compiles spend their time in this room. The others are compiled quickly instead (-O1), which takes two
#   thirds of the time from nothing, and costs a compile that a user waits for 1 to 3 %.
#   BRUTE_FORCE: the room's tests go through millions of cases. Those of the others are compiled quickly instead, which
#   takes two thirds of the time; half of a build from nothing is tests.
#   MAY_USE: rooms that are used where this build has them.
#   TEST_USES: rooms that only the room's tests see, for example the interpreter as the judge of passes. Tests that see the
#   printer record the functions that they verify (tests/cpp/record_functions.cc).
function(helve_room path)
  cmake_parse_arguments(ARG "HOT;BRUTE_FORCE" "" "USES;MAY_USE;LIBRARIES;PRIVATE_LIBRARIES;TEST_USES" ${ARGN})
  string(REPLACE "/" "_" room ${path})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${path}/*.cc)
  add_library(helve_${room} STATIC ${sources})
  set_target_properties(helve_${room} PROPERTIES UNITY_BUILD ${HELVE_UNITY})
  if(NOT ARG_HOT)
    target_compile_options(helve_${room} PRIVATE ${HELVE_QUICK})
  endif()

  set(view ${PROJECT_BINARY_DIR}/rooms/${room})
  get_filename_component(parent helve/${path} DIRECTORY)
  file(MAKE_DIRECTORY ${view}/${parent} ${PROJECT_SOURCE_DIR}/include/helve/${path})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/include/helve/${path} ${view}/helve/${path} SYMBOLIC)
  target_include_directories(helve_${room} PUBLIC $<BUILD_INTERFACE:${view}> $<INSTALL_INTERFACE:include>
    PRIVATE ${PROJECT_SOURCE_DIR}/src/${path})

  foreach(used ${ARG_USES})
    string(REPLACE "/" "_" used_room ${used})
    if(NOT TARGET helve_${used_room})
      message(FATAL_ERROR "room ${path} uses ${used}, which does not stand below it in src/CMakeLists.txt")
    endif()
    target_link_libraries(helve_${room} PUBLIC helve_${used_room})
  endforeach()
  foreach(used ${ARG_MAY_USE})
    string(REPLACE "/" "_" used_room ${used})
    if(TARGET helve_${used_room})
      target_link_libraries(helve_${room} PUBLIC helve_${used_room})
    endif()
  endforeach()
  target_link_libraries(helve_${room} PUBLIC ${ARG_LIBRARIES}
    PRIVATE $<BUILD_INTERFACE:helve_flags> ${ARG_PRIVATE_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY HELVE_ROOMS helve_${room})

  # Upward calls would be hidden where all archives meet; this binary holds the room, whole, and what it may use, nothing
  # else. --no-gc-sections: a dropped section would take its unresolved calls with it.
  if(HELVE_TESTS)
    set(check ${PROJECT_BINARY_DIR}/rooms/check_main.cc)
    if(NOT EXISTS ${check})
      file(WRITE ${check} "int main() { return 0; }\n")
    endif()
    add_executable(link_${room} ${check})
    target_link_libraries(link_${room} PRIVATE helve_flags $<LINK_LIBRARY:WHOLE_ARCHIVE,helve_${room}>
      -Wl,--no-gc-sections -Wl,--no-undefined)
    add_test(NAME link.${room} COMMAND link_${room})

    file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cpp/${path}/*.cc)
    if(tests)
      add_executable(test_${room} ${tests})
      target_include_directories(test_${room} PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp)
      target_link_libraries(test_${room} PRIVATE helve_${room} helve_flags GTest::gtest_main)
      if(NOT ARG_BRUTE_FORCE)
        target_compile_options(test_${room} PRIVATE ${HELVE_QUICK})
        # GCC warns of code from a precompiled header as if it were the project's, where it optimises or instruments.
        if(NOT HELVE_SANITIZE AND TARGET test_support AND NOT room STREQUAL support)
          target_precompile_headers(test_${room} REUSE_FROM test_support)
        elseif(NOT HELVE_SANITIZE)
          target_precompile_headers(test_${room} PRIVATE <gtest/gtest.h>)
        endif()
      endif()
      foreach(used ${ARG_TEST_USES})
        string(REPLACE "/" "_" used_room ${used})
        target_link_libraries(test_${room} PRIVATE helve_${used_room})
      endforeach()
      if(print IN_LIST ARG_USES OR print IN_LIST ARG_TEST_USES)
        target_sources(test_${room} PRIVATE ${PROJECT_SOURCE_DIR}/tests/cpp/record_functions.cc)
        target_link_options(test_${room} PRIVATE -Wl,--wrap=_ZN5helve6verifyERKNS_3RefIKNS_8FunctionEEE)
      endif()
      target_link_options(test_${room} PRIVATE -Wl,--gc-sections -Wl,--as-needed)
      add_test(NAME cpp.${room} COMMAND test_${room})
      # Tests ask for more memory than there is, and start threads in a forked child: answers to them, not faults.
      set(of_threads allocator_may_return_null=1:die_after_fork=0)
      string(APPEND of_threads ":suppressions=${PROJECT_SOURCE_DIR}/tests/cpp/thread_sanitizer.supp")
      set_tests_properties(cpp.${room} PROPERTIES ENVIRONMENT
        "ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=${of_threads}")
    endif()
  endif()
endfunction()
