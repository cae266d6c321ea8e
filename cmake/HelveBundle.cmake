# Shared libraries that travel in the wheel.
# The module finds them beside itself through DT_RPATH, which (unlike DT_RUNPATH) also serves the libraries that a
# bundled library needs: libisl finds libgmp without a path of its own.

# helve_bundle(<module> <destination> <target>...): installs each target's library under the name the loader asks for.
function(helve_bundle module destination)
  foreach(target ${ARGN})
    install(CODE "
      execute_process(COMMAND \"${CMAKE_READELF}\" -d \"$<TARGET_FILE:${target}>\" OUTPUT_VARIABLE dynamic
        COMMAND_ERROR_IS_FATAL ANY)
      if(NOT dynamic MATCHES \"SONAME[^[]*\\\\[([^]]+)\\\\]\")
        message(FATAL_ERROR \"$<TARGET_FILE:${target}> has no soname\")
      endif()
      file(REAL_PATH \"$<TARGET_FILE:${target}>\" real)
      file(INSTALL DESTINATION \"\${CMAKE_INSTALL_PREFIX}/${destination}\" TYPE FILE
        FILES \"\${real}\" RENAME \"\${CMAKE_MATCH_1}\")
    ")
  endforeach()
  set_target_properties(${module} PROPERTIES INSTALL_RPATH "$ORIGIN")
  target_link_options(${module} PRIVATE -Wl,--disable-new-dtags)
endfunction()
