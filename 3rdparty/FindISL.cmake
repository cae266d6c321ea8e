# Finds isl and gives the target ISL::isl.
# Shared on purpose: Debian's static libraries are not position-independent, and a shared GMP can be replaced by its
# user, as its licence asks. GMP is named explicitly so that the wheel can carry both and find both beside the module.
find_path(ISL_INCLUDE_DIR isl/cpp.h)
find_library(ISL_LIBRARY NAMES isl)
find_library(GMP_LIBRARY NAMES gmp)
mark_as_advanced(ISL_INCLUDE_DIR ISL_LIBRARY GMP_LIBRARY)

# No header states the version; the description for pkg-config beside the library does.
if(ISL_LIBRARY)
  get_filename_component(folder ${ISL_LIBRARY} DIRECTORY)
  if(EXISTS ${folder}/pkgconfig/isl.pc)
    file(STRINGS ${folder}/pkgconfig/isl.pc version REGEX "^Version:")
    string(REGEX REPLACE "^Version: *" "" ISL_VERSION "${version}")
  endif()
endif()

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(ISL REQUIRED_VARS ISL_LIBRARY GMP_LIBRARY ISL_INCLUDE_DIR VERSION_VAR ISL_VERSION
  REASON_FAILURE_MESSAGE "on Debian: apt-get install libisl-dev libgmp-dev")

if(ISL_FOUND AND NOT TARGET ISL::isl)
  add_library(ISL::gmp UNKNOWN IMPORTED)
  set_target_properties(ISL::gmp PROPERTIES IMPORTED_LOCATION ${GMP_LIBRARY})
  add_library(ISL::isl UNKNOWN IMPORTED)
  set_target_properties(ISL::isl PROPERTIES
    IMPORTED_LOCATION ${ISL_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${ISL_INCLUDE_DIR}
    INTERFACE_LINK_LIBRARIES ISL::gmp)
endif()
