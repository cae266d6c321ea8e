# HELVE_SANITIZE=address,undefined or thread: instruments everything that is built here.
# Its own build folders (`make test-long`), because -g doubles the time of a compile.
set(HELVE_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them; empty for none")
if(HELVE_SANITIZE)
  add_compile_options(-fsanitize=${HELVE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${HELVE_SANITIZE})
  # GCC loses sight of what is initialised behind the calls of the instrumentation.
  if(HELVE_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
endif()
