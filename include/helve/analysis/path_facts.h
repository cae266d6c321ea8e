// What holds along the paths of an access model.
// Paths share their steps, so what holds after a step is learnt once for all accesses below it.
#pragma once

#include <unordered_map>

#include "helve/analysis/access.h"
#include "helve/arith/facts.h"

namespace helve {

/// The model must outlive it. What holds in every call of the model's function is known.
class PathFacts {
 public:
  explicit PathFacts(const AccessModel& model);
  const Facts& after(const Path& path) { return after(path, path.size()); }

 private:
  const Facts& after(const Path& path, size_t count);

  const AccessModel& model_;
  Facts root_;
  std::unordered_map<const Step*, Facts> known_;  ///< a step is on one path only
};

}  // namespace helve
