// How many CPUs this process may use.
// The pool spins only where its threads do not outnumber them.
#pragma once

namespace helve::runtime {

/// CPUs in the affinity mask, within the cgroup's quota; at least 1.
int available_cpus();

}  // namespace helve::runtime
