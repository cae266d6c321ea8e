# Finds LLVM 19 and gives the target helve_llvm: the components of the CPU target, static.
# One place for the component list, so that every binary with LLVM inside carries the same one. Symbols are hidden and
# unused sections dropped where the final module is linked, not here: the link check of a room must see everything.
find_package(LLVM ${HELVE_LLVM_VERSION} CONFIG REQUIRED HINTS /usr/lib/llvm-19/lib/cmake/llvm)
if(NOT LLVM_VERSION_MAJOR EQUAL 19)
  message(FATAL_ERROR "helve needs LLVM 19, found ${LLVM_VERSION} in ${LLVM_DIR}; configure with -DHELVE_LLVM=OFF to "
    "build without the CPU target")
endif()

# `native` is the host's back end alone: code generator, assembler, disassembler, target information.
llvm_map_components_to_libnames(HELVE_LLVM_LIBRARIES core support orcjit passes native)
add_library(helve_llvm INTERFACE)
target_include_directories(helve_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
separate_arguments(HELVE_LLVM_DEFINITIONS NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_options(helve_llvm INTERFACE ${HELVE_LLVM_DEFINITIONS})
target_link_libraries(helve_llvm INTERFACE ${HELVE_LLVM_LIBRARIES})
