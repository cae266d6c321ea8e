// The number of threads to start with.
// Apart from the pool, because it reads the environment and files that a test may want to stand elsewhere.
#pragma once

namespace helve::runtime {

/// CPUs in the affinity mask, within the cgroup's quota; at least 1.
int available_cpus();

/// HELVE_NUM_THREADS when set and not empty, otherwise available_cpus(). UserError ThreadCount.
int default_thread_count();

}  // namespace helve::runtime
