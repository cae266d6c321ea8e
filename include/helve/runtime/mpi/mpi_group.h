// The processes that mpirun started.
// MPI is loaded, and initialised if nobody has done it, at the first use.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "helve/runtime/process_group.h"

namespace helve::runtime {

/// All processes of MPI_COMM_WORLD, over a communicator of their own; MPI is initialised if it is not. `paths`: where
/// its library may be, before the system's. Called on all processes. UserError ProcessesMissing.
std::shared_ptr<ProcessGroup> mpi_group(std::span<const std::string> paths, ProcessGroup::Options options);

/// Ends the group, and MPI if mpi_group began it. Where the group is broken it does not wait for the others, but lets
/// them come to their own errors before the end of this process ends them.
void finalize_mpi(ProcessGroup& group);

}  // namespace helve::runtime
