# The libraries that helve is built with: the oldest versions that serve, and where each is found.
# The one place where a version is pinned, for builds of helve and for programs that use the installed package; those of
# Python packages stand in pyproject.toml. README.md beside this file says what of them a wheel carries.
set(HELVE_FMT_VERSION 9.1)
set(HELVE_ISL_VERSION 0.25)
set(HELVE_LLVM_VERSION 19.1)
set(HELVE_PYBIND11_VERSION 2.13)

find_package(fmt ${HELVE_FMT_VERSION} REQUIRED)
find_package(ISL ${HELVE_ISL_VERSION} REQUIRED)
find_package(Threads REQUIRED)
if(HELVE_LLVM)
  include(HelveLLVM)
endif()
if(HELVE_TESTS)
  find_package(GTest REQUIRED)
endif()
