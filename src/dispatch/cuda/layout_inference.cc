// Which block buffers live in registers, and how loops are divided among the threads of a block.
// Every attempt either succeeds or names one buffer that has to stay in memory; there are finitely many, so it ends.
#include "helve/dispatch/layout_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "loop_units.h"

namespace helve {

int64_t register_budget(int64_t threads) { return std::min<int64_t>(255, 65536 / threads) - 24; }

namespace {

/// A buffer that cannot be where the attempt put it.
struct Evicted {
  const Buffer* buffer;
  std::string reason;
};

class Inference {
 public:
  Inference(const Kernel& kernel, const Facts& facts) : kernel_(kernel), units_(loop_units(kernel, facts)) {
    walk_allocations();
    for (const auto& [buffer, reason] : units_.memory) evict(buffer, reason);
  }

  BlockLayouts run() {
    for (;;) {
      BlockLayouts out;
      std::optional<Evicted> evicted = attempt(&out);
      if (!evicted) evicted = over_budget(out);
      if (!evicted) {
        for (const BufferRef& buffer : allocated_) {
          auto it = evicted_.find(buffer.get());
          const bool registers = out.registers.contains(buffer.get());
          out.places.push_back({buffer, registers,
                                registers              ? ""
                                : it == evicted_.end() ? "nothing uses it"
                                                       : it->second});
        }
        return out;
      }
      evict(evicted->buffer, evicted->reason);
    }
  }

 private:
  void walk_allocations() {
    for (const BufferRef& buffer : units_.allocated) {
      allocated_.push_back(buffer);
      candidates_.insert(buffer.get());
    }
  }

  void evict(const Buffer* buffer, const std::string& reason) {
    if (candidates_.erase(buffer)) evicted_.emplace(buffer, reason);
  }

  bool in_registers(const LoopUse& use) const { return candidates_.contains(use.buffer); }

  std::optional<Evicted> attempt(BlockLayouts* out) {
    std::vector<const LoopUnit*> order;
    for (const LoopUnit& unit : units_.units) order.push_back(&unit);
    std::stable_sort(order.begin(), order.end(), [](const LoopUnit* a, const LoopUnit* b) {
      if (a->extents.size() != b->extents.size()) return a->extents.size() > b->extents.size();
      return a->elements() > b->elements();
    });
    for (const LoopUnit* unit : order) {
      if (std::optional<Evicted> evicted = divide(*unit, out)) return evicted;
    }
    return std::nullopt;
  }

  /// Finds the division of one loop and gives it to the loop's fragments.
  std::optional<Evicted> divide(const LoopUnit& unit, BlockLayouts* out) {
    const LoopUse* fragment = nullptr;  // whose layout decides
    const LoopUse* any = nullptr;
    for (const LoopUse& use : unit.uses) {
      if (!in_registers(use)) continue;
      any = &use;
      if (!fragment && out->registers.contains(use.buffer) && unit.covered_by(use)) fragment = &use;
    }
    if (any && !unit.constant()) return Evicted{any->buffer, "a loop over it has an extent that only the call knows"};
    ThreadLayout layout =
        fragment ? lifted(unit, *fragment, out->registers.at(fragment->buffer)) : founded(unit, any != nullptr);
    for (const LoopUse& use : unit.uses) {
      if (!in_registers(use)) continue;
      if (any && !layout.layout().replica().empty() && unit.updates_memory(candidates_)) {
        return Evicted{use.buffer, "threads that hold copies of it would update memory more than once"};
      }
      if (std::optional<Evicted> evicted = place(use, layout, out)) return evicted;
    }
    out->loops.insert_or_assign(unit.stmt, std::move(layout));
    return std::nullopt;
  }

  /// The division by a fragment that has every dimension of the loop.
  static ThreadLayout lifted(const LoopUnit& unit, const LoopUse& use, const ThreadLayout& known) {
    std::vector<size_t> kept;
    std::vector<int64_t> domain;
    for (size_t d = 0; d < unit.extents.size(); ++d) {
      const auto at = std::find(use.dims.begin(), use.dims.end(), static_cast<int>(d));
      if (at == use.dims.end()) {
        domain.push_back(1);
        continue;
      }
      kept.push_back(static_cast<size_t>(at - use.dims.begin()));
      domain.push_back(known.domain()[kept.back()]);
    }
    return ThreadLayout(known.project(kept).layout(), std::move(domain));
  }

  ThreadLayout founded(const LoopUnit& unit, bool fragments) const {
    int64_t vector = 1;
    for (const LoopUnit& other : units_.units) {
      if (other.extents.empty() || unit.extents.empty() || unit.whole) continue;
      if (same_expr_extent(other.extents.back(), unit.extents.back())) vector = std::max(vector, other.vector);
    }
    std::vector<int64_t> shape;
    for (size_t d = 0; d < unit.extents.size(); ++d) {
      const int64_t* extent = int_value(unit.extents[d]);
      const bool last = d + 1 == unit.extents.size();
      // Without registers one pass over the threads is enough: the rest is a loop around it.
      const int64_t pass = last ? kernel_.threads * vector : kernel_.threads;
      shape.push_back(!extent ? pass : fragments ? *extent : std::min(*extent, pass));
    }
    if (!fragments) one_pass(&shape, vector);
    if (unit.reduced >= 0 || unit.at_once) keep_together(unit, &shape);
    return spread(shape, kernel_.threads, vector);
  }

  /// The results of a reduction, and all elements of a scan, stay in registers together.
  static void keep_together(const LoopUnit& unit, std::vector<int64_t>* shape) {
    for (size_t d = 0; d < shape->size(); ++d) {
      if (static_cast<int>(d) != unit.reduced && int_value(unit.extents[d])) (*shape)[d] = *int_value(unit.extents[d]);
    }
  }

  /// Cuts leading dimensions to what the threads reach at once.
  void one_pass(std::vector<int64_t>* shape, int64_t vector) const {
    int64_t room = kernel_.threads * vector;
    for (size_t d = shape->size(); d-- > 0;) {
      int64_t& extent = (*shape)[d];
      extent = std::max<int64_t>(1, std::min(extent, room));
      room = std::max<int64_t>(1, room / extent);
    }
  }

  static bool same_expr_extent(const Expr& a, const Expr& b) {
    const int64_t *x = int_value(a), *y = int_value(b);
    return x && y && *x == *y;
  }

  std::optional<Evicted> place(const LoopUse& use, const ThreadLayout& layout, BlockLayouts* out) const {
    auto known = out->registers.find(use.buffer);
    if (known == out->registers.end()) {
      std::vector<size_t> kept;
      for (int d : use.dims) {
        if (d >= 0) kept.push_back(static_cast<size_t>(d));
      }
      const ThreadLayout projected = layout.project(kept);
      // Dimensions of extent 1 have no digits.
      std::vector<int64_t> domain;
      size_t next = 0;
      for (int d : use.dims) domain.push_back(d >= 0 ? projected.domain()[next++] : 1);
      out->registers.emplace(use.buffer, ThreadLayout(projected.layout(), std::move(domain)));
      return std::nullopt;
    }
    for (size_t k = 0; k < use.dims.size(); ++k) {
      if (use.dims[k] < 0) continue;
      if (known->second.divides_alike(k, layout, static_cast<size_t>(use.dims[k]))) continue;
      return Evicted{use.buffer, fmt::format("two loops divide its dimension {} differently", k)};
    }
    return std::nullopt;  // all layouts cover all threads: equal digits are equal places
  }

  /// The largest buffer of block memory that went into registers when they do not suffice, then the largest fragment.
  std::optional<Evicted> over_budget(const BlockLayouts& out) const {
    const std::unordered_map<const Buffer*, Life> lives = lives_of(out);
    const int64_t words = most_at_once(lives);
    const int64_t budget = register_budget(kernel_.threads);
    if (words <= budget) return std::nullopt;
    const Buffer* largest = nullptr;
    int64_t most = 0;
    for (const BufferRef& buffer : allocated_) {
      auto it = lives.find(buffer.get());
      if (it == lives.end()) continue;
      const bool fragment = buffer->scope == MemoryScope::Fragment;
      const int64_t weight = it->second.words + (fragment ? 0 : int64_t{1} << 32);
      if (weight > most) {
        most = weight;
        largest = buffer.get();
      }
    }
    return Evicted{largest, fmt::format("{} registers a thread are needed and {} are there", words, budget)};
  }

  /// The loops, by their numbers, between which a buffer holds values, and its size in a thread.
  struct Life {
    size_t first;
    size_t last;
    int64_t words;
  };

  std::unordered_map<const Buffer*, Life> lives_of(const BlockLayouts& out) const {
    std::unordered_map<const Buffer*, Life> lives;
    for (size_t n = 0; n < units_.units.size(); ++n) {
      for (const LoopUse& use : units_.units[n].uses) {
        auto layout = out.registers.find(use.buffer);
        if (layout == out.registers.end()) continue;
        const int64_t words = (layout->second.registers() * use.buffer->dtype.bytes() + 3) / 4;
        lives.try_emplace(use.buffer, Life{n, n, words}).first->second.last = n;
      }
    }
    return lives;
  }

  /// Values that the very next loop uses up flow from one to the other element by element; they never stand all at
  /// once.
  int64_t most_at_once(const std::unordered_map<const Buffer*, Life>& lives) const {
    int64_t most = 0;
    for (size_t n = 0; n < units_.units.size(); ++n) {
      int64_t words = 0;
      for (const auto& [buffer, life] : lives) {
        if (life.first <= n && n <= life.last && life.last > life.first + 1) words += life.words;
      }
      most = std::max(most, words);
    }
    return most;
  }

  const Kernel& kernel_;
  LoopUnits units_;
  std::vector<BufferRef> allocated_;
  std::unordered_set<const Buffer*> candidates_;
  std::unordered_map<const Buffer*, std::string> evicted_;
};

}  // namespace

BlockLayouts infer_layouts(const Kernel& kernel, const Facts& facts) { return Inference(kernel, facts).run(); }

}  // namespace helve
