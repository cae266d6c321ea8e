// Which block buffers live in registers, and how loops are divided among the threads of a block.
// Every attempt either succeeds or names one buffer that has to stay in memory; there are finitely many, so it ends.
#include "helve/threads/layout_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "helve/ir/tensor/buffer_layout.h"
#include "loop_units.h"

namespace helve {

namespace {

/// A buffer that cannot be where the attempt put it.
struct Evicted {
  const Buffer* buffer;
  std::string reason;
};

class Inference {
 public:
  Inference(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts, const Machine& machine,
            const MemoryBuffers& memory)
      : kernel_(kernel), may_alias_(may_alias), machine_(machine), units_(loop_units(kernel, facts)) {
    walk_allocations();
    for (const auto& [buffer, reason] : memory) evict(buffer, reason);
    for (const MemoryUse& use : units_.memory) {
      if (annotated_.contains(use.buffer)) conflict({use.stmt, use.buffer, use.reason, {}});
      evict(use.buffer, use.reason);
    }
    always_ = conflict_;
    keep_turned();
  }

  BlockLayouts run() {
    for (;;) {
      BlockLayouts out;
      conflict_ = always_;
      for (const auto& [buffer, layout] : annotated_) out.registers.emplace(buffer, layout);
      std::optional<Evicted> evicted = attempt(&out);
      if (!evicted) evicted = over_budget(out);
      if (!evicted) {
        for (const BufferRef& buffer : allocated_) {
          auto it = evicted_.find(buffer.get());
          const bool registers = out.registers.contains(buffer.get());
          out.places.push_back({buffer, registers,
                                annotated_.contains(buffer.get()) ? "annotated"
                                : registers                       ? ""
                                : it == evicted_.end()            ? "nothing uses it"
                                                                  : it->second});
        }
        out.conflict = std::move(conflict_);
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
      if (!buffer->layout || buffer->scope != MemoryScope::Fragment) continue;
      annotated_.emplace(buffer.get(), ThreadLayout(thread_layout_of(*buffer), *constant_shape(buffer->shape)));
    }
  }

  void evict(const Buffer* buffer, const std::string& reason) {
    if (annotated_.contains(buffer)) return;
    if (candidates_.erase(buffer)) evicted_.emplace(buffer, reason);
  }

  /// Block memory that loops go through in different orders is there to turn it: in registers one of the loops would
  /// leave the order of its global accesses.
  void keep_turned() {
    std::unordered_map<const Buffer*, bool> in_order;
    for (const LoopUnit& unit : units_.units) {
      for (const LoopUse& use : unit.uses) {
        std::vector<int> dims = use.dims;
        std::erase(dims, -1);
        const bool ordered = std::is_sorted(dims.begin(), dims.end());
        const auto [known, first] = in_order.try_emplace(use.buffer, ordered);
        if (first || known->second == ordered || use.buffer->scope != MemoryScope::Shared) continue;
        evict(use.buffer, "loops go through it in different orders");
      }
    }
  }

  void conflict(LayoutConflict found) {
    if (!conflict_) conflict_ = std::move(found);
  }

  /// A buffer does not fit the loop: it goes to memory, or stays where the program put it and the loop has a conflict.
  std::optional<Evicted> misfit(const LoopUnit& unit, const Buffer* buffer, const std::string& reason,
                                const ThreadLayout* division) {
    if (!annotated_.contains(buffer)) return Evicted{buffer, reason};
    conflict({unit.stmt, buffer, reason, division ? std::optional(*division) : std::nullopt});
    return std::nullopt;
  }

  bool has_annotated(const LoopUnit& unit) const {
    return std::any_of(unit.uses.begin(), unit.uses.end(),
                       [&](const LoopUse& use) { return annotated_.contains(use.buffer) && unit.covered_by(use); });
  }

  bool in_registers(const LoopUse& use) const { return candidates_.contains(use.buffer); }

  std::optional<Evicted> attempt(BlockLayouts* out) {
    std::vector<const LoopUnit*> order;
    for (const LoopUnit& unit : units_.units) order.push_back(&unit);
    std::stable_sort(order.begin(), order.end(), [&](const LoopUnit* a, const LoopUnit* b) {
      if (const bool first = has_annotated(*a); first != has_annotated(*b)) return first;
      if (a->extents.size() != b->extents.size()) return a->extents.size() > b->extents.size();
      return a->elements() > b->elements();
    });
    while (!order.empty()) {
      // What is known spreads before a new division is founded, which its other loops might contradict.
      auto next = std::find_if(order.begin(), order.end(),
                               [&](const LoopUnit* unit) { return deciding_use(*unit, *out) != nullptr; });
      if (next == order.end()) next = order.begin();
      if (std::optional<Evicted> evicted = divide(**next, out)) return evicted;
      order.erase(next);
    }
    return std::nullopt;
  }

  /// The fragment whose known layout divides the loop; one that the program placed comes first.
  const LoopUse* deciding_use(const LoopUnit& unit, const BlockLayouts& out) const {
    const LoopUse* found = nullptr;
    for (const LoopUse& use : unit.uses) {
      if (!in_registers(use) || !out.registers.contains(use.buffer) || !unit.covered_by(use)) continue;
      if (!found || (annotated_.contains(use.buffer) && !annotated_.contains(found->buffer))) found = &use;
    }
    return found;
  }

  /// Finds the division of one loop and gives it to the loop's fragments.
  std::optional<Evicted> divide(const LoopUnit& unit, BlockLayouts* out) {
    const LoopUse* fragment = deciding_use(unit, *out);
    const bool any =
        std::any_of(unit.uses.begin(), unit.uses.end(), [&](const LoopUse& use) { return in_registers(use); });
    if (any && !unit.constant()) {
      for (const LoopUse& use : unit.uses) {
        if (!in_registers(use)) continue;
        const char* reason = "a loop over it has an extent that only the call knows";
        if (std::optional<Evicted> evicted = misfit(unit, use.buffer, reason, nullptr)) return evicted;
      }
      return std::nullopt;
    }
    ThreadLayout layout = fragment ? lifted(unit, *fragment, out->registers.at(fragment->buffer)) : founded(unit, any);
    for (const LoopUse& use : unit.uses) {
      if (!in_registers(use)) continue;
      std::optional<Evicted> evicted;
      if (any && !layout.layout().replica().empty() && unit.updates_memory(candidates_, may_alias_)) {
        const char* reason = "threads that hold copies of it would update memory more than once";
        evicted = misfit(unit, use.buffer, reason, nullptr);
      } else {
        evicted = place(unit, use, layout, out);
      }
      if (evicted) return evicted;
    }
    out->loops.insert_or_assign(unit.stmt, std::move(layout));
    return std::nullopt;
  }

  /// The division by a fragment that has every dimension of the loop.
  static ThreadLayout lifted(const LoopUnit& unit, const LoopUse& use, const ThreadLayout& known) {
    std::vector<int> dims;
    for (size_t d = 0; d < unit.extents.size(); ++d) {
      const auto at = std::find(use.dims.begin(), use.dims.end(), static_cast<int>(d));
      dims.push_back(at == use.dims.end() ? -1 : static_cast<int>(at - use.dims.begin()));
    }
    return known.project(dims);
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

  std::optional<Evicted> place(const LoopUnit& unit, const LoopUse& use, const ThreadLayout& layout,
                               BlockLayouts* out) {
    // What one thread stores, the others that hold copies of the element would not see. A reduction gives all of them
    // its result.
    if (use.written && unit.reduced < 0 && !layout.divides_only(use.dims)) {
      return misfit(unit, use.buffer, "iterations on several threads store to one element", nullptr);
    }
    auto known = out->registers.find(use.buffer);
    if (known == out->registers.end()) {
      out->registers.emplace(use.buffer, layout.project(use.dims));
      return std::nullopt;
    }
    for (size_t k = 0; k < use.dims.size(); ++k) {
      if (use.dims[k] < 0) continue;
      if (known->second.divides_alike(k, layout, static_cast<size_t>(use.dims[k]))) continue;
      const bool annotated = annotated_.contains(use.buffer);
      return misfit(unit, use.buffer,
                    annotated ? fmt::format("its layout divides dimension {} differently", k)
                              : fmt::format("two loops divide its dimension {} differently", k),
                    &layout);
    }
    return std::nullopt;  // all layouts cover all threads: equal digits are equal places
  }

  /// The largest buffer of block memory that went into registers when they do not suffice, then the largest fragment.
  std::optional<Evicted> over_budget(const BlockLayouts& out) const {
    const std::unordered_map<const Buffer*, Life> lives = lives_of(out);
    const int64_t words = most_at_once(lives);
    const int64_t budget = machine_.value_registers(kernel_.threads);
    if (words <= budget) return std::nullopt;
    const Buffer* largest = nullptr;
    int64_t most = 0;
    for (const BufferRef& buffer : allocated_) {
      auto it = lives.find(buffer.get());
      if (it == lives.end() || annotated_.contains(buffer.get())) continue;
      const bool fragment = buffer->scope == MemoryScope::Fragment;
      const int64_t weight = it->second.words + (fragment ? 0 : int64_t{1} << 32);
      if (weight > most) {
        most = weight;
        largest = buffer.get();
      }
    }
    if (!largest) return std::nullopt;  // what the program placed stays, at the price of spills
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
  const std::vector<MayAlias>& may_alias_;
  const Machine& machine_;
  LoopUnits units_;
  std::vector<BufferRef> allocated_;
  std::unordered_set<const Buffer*> candidates_;
  std::unordered_map<const Buffer*, std::string> evicted_;
  std::unordered_map<const Buffer*, ThreadLayout> annotated_;  ///< the fragments that the program placed
  std::optional<LayoutConflict> always_;  ///< whatever the attempt
  std::optional<LayoutConflict> conflict_;  ///< of this attempt
};

}  // namespace

BlockLayouts infer_layouts(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                           const Machine& machine, const MemoryBuffers& memory) {
  return Inference(kernel, may_alias, facts, machine, memory).run();
}

}  // namespace helve
