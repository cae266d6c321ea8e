// What holds along the paths of an access model.
// A step adds to what holds in front of it.
#include "helve/analysis/path_facts.h"

#include "helve/ir/tensor/call_facts.h"

namespace helve {

PathFacts::PathFacts(const AccessModel& model) : model_(model) {
  if (model.function) root_ = facts_of_calls(*model.function);
}

const Facts& PathFacts::after(const Path& path, size_t count) {
  if (count == 0) return root_;
  const Step* step = path[count - 1].get();
  auto it = known_.find(step);
  if (it != known_.end()) return it->second;
  Facts facts = after(path, count - 1);
  learn(facts, *step, model_.constant);
  return known_.emplace(step, std::move(facts)).first->second;
}

}  // namespace helve
