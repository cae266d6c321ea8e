// Sums of arithmetic progressions that complete a set.
// Recognition has to find replicas from the set of points alone: equal sets have many spellings.
#include "replica_set.h"

#include <algorithm>

namespace helve::layout_detail {

std::vector<int64_t> replica_sums(const Iters& iters, Axis axis, StepCounter& counter) {
  std::vector<int64_t> all{0};
  for (const Iter& iter : iters) {
    if (iter.axis != axis) continue;
    counter.step(static_cast<int64_t>(all.size()), iter.extent);
    std::vector<int64_t> next;
    for (int64_t value : all) {
      for (int64_t digit = 0; digit < iter.extent; ++digit) next.push_back(value + digit * iter.stride);
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    all = std::move(next);
  }
  return all;
}

namespace {

/// Law: the reaches of progressions add up, so their sum is fixed; and the least element that is missing comes from a
/// progression whose stride is at most that element. Strides are tried in ascending order.
class Completion {
 public:
  Completion(const std::vector<int64_t>& target, int64_t step, Axis axis, StepCounter& counter)
      : target_(target), step_(step), axis_(axis), counter_(counter) {}

  bool run(const std::vector<int64_t>& start) {
    return std::includes(target_.begin(), target_.end(), start.begin(), start.end()) && extend(start, 1);
  }
  const Iters& iters() const { return iters_; }

 private:
  bool extend(const std::vector<int64_t>& reached, int64_t least_stride) {
    int64_t room = target_.back() - reached.back();
    if (room == 0) return reached == target_;
    int64_t missing = target_.back();
    for (size_t k = 0; k < target_.size(); ++k) {
      if (k < reached.size() && reached[k] == target_[k]) continue;
      missing = target_[k];
      break;
    }
    // A stride is a difference of the target from 0: with the start's 0, it is an element itself.
    for (int64_t stride : target_) {
      if (stride < least_stride || stride % step_ != 0) continue;
      if (stride > missing || stride > room) break;
      for (int64_t extent = room / stride + 1; extent >= 2; --extent) {
        counter_.step();
        if (!std::binary_search(target_.begin(), target_.end(), (extent - 1) * stride)) continue;
        std::vector<int64_t> next = add(reached, extent, stride);
        if (!std::includes(target_.begin(), target_.end(), next.begin(), next.end())) continue;
        iters_.push_back({extent, stride, axis_});
        if (extend(next, stride)) return true;
        iters_.pop_back();
      }
    }
    return false;
  }

  std::vector<int64_t> add(const std::vector<int64_t>& reached, int64_t extent, int64_t stride) {
    std::vector<int64_t> next;
    for (int64_t value : reached) {
      counter_.step(extent);
      for (int64_t digit = 0; digit < extent; ++digit) next.push_back(value + digit * stride);
    }
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    return next;
  }

  const std::vector<int64_t>& target_;
  int64_t step_;
  Axis axis_;
  StepCounter& counter_;
  Iters iters_;
};

}  // namespace

std::optional<Iters> complete_set(const std::vector<int64_t>& target, const std::vector<int64_t>& start, int64_t step,
                                  Axis axis, StepCounter& counter) {
  Completion completion(target, step, axis, counter);
  if (!completion.run(start)) return std::nullopt;
  return completion.iters();
}

}  // namespace helve::layout_detail
