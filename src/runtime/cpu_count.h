// How many CPUs this process may use.
// The pool spins only if it does not have more threads than CPUs.
#pragma once

namespace helve::runtime {

/// CPUs in the affinity mask, within the cgroup's quota; at least 1.
int available_cpus();

}  // namespace helve::runtime
