# HELVE_SANITIZE=address,undefined or thread: instruments everything that is built here.
# Its own build folders (`make test-long`), because -g doubles the time of a compile.
set(HELVE_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them; empty for none")
if(HELVE_SANITIZE)
  add_compile_options(-fsanitize=${HELVE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -O1)
  add_link_options(-fsanitize=${HELVE_SANITIZE})
endif()
