// Open MPI, loaded at run time.
// helve starts on machines without it; its own declarations make mpi.h unnecessary. A test compares them with mpi.h.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace helve::runtime::mpi {

// Handles and structures by the ABI of libmpi.so.40, which Open MPI 4 and 5 share.
using MpiComm = struct ompi_communicator_t*;
using MpiErrhandler = struct ompi_errhandler_t*;
using MpiDatatype = struct ompi_datatype_t*;
using MpiRequest = struct ompi_request_t*;

struct MpiStatus {
  int source;
  int tag;
  int error;
  int cancelled;
  size_t bytes;
};

constexpr int kMpiSuccess = 0;
constexpr int kMpiThreadSerialized = 2;
constexpr int kMpiThreadMultiple = 3;
constexpr int kMpiErrorText = 256;  ///< characters of an error's text

/// The functions of the table, and the handles that mpi.h makes of the addresses of objects.
struct MpiLibrary {
  std::string path;
#define HELVE_MPI_FUNCTION(member, symbol, parameters) int(*member) parameters = nullptr;
#include "helve/runtime/mpi/mpi_table.inc"
#undef HELVE_MPI_FUNCTION
  MpiComm world = nullptr;
  MpiDatatype byte = nullptr;
  MpiErrhandler errors_return = nullptr;
};

/// The library that the process has loaded already, the first of the paths that exists, or the system's. Loaded once.
/// UserError ProcessesMissing.
const MpiLibrary& mpi_library(std::span<const std::string> paths);

}  // namespace helve::runtime::mpi
