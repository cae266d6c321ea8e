// Which block buffers live in registers, and how loops are divided among the threads of a block.
// An attempt either succeeds or demotes one buffer to shared memory, so the number of attempts is bounded.
#include "helve/threads/layout_inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "helve/ir/tensor/buffer_layout.h"
#include "loop_units.h"

namespace helve {

namespace {

/// A buffer that the attempt cannot keep in registers.
struct Demotion {
  const Buffer* buffer;
  std::string reason;
};

class Inference {
 public:
  Inference(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts, const Machine& machine,
            const MemoryBuffers& memory)
      : kernel_(kernel), may_alias_(may_alias), machine_(machine), units_(loop_units(kernel, facts, machine)) {
    walk_allocations();
    for (const auto& [buffer, reason] : memory) demote(buffer, reason);
    for (const MemoryUse& use : units_.memory) {
      if (annotated_.contains(use.buffer)) conflict({use.stmt, use.buffer, use.reason, {}});
      demote(use.buffer, use.reason);
    }
    always_ = conflict_;
    keep_transposed();
  }

  BlockLayouts run() {
    for (;;) {
      BlockLayouts out;
      conflict_ = always_;
      for (const auto& [buffer, layout] : annotated_) out.registers.emplace(buffer, layout);
      std::optional<Demotion> demoted = attempt(&out);
      if (!demoted) demoted = over_budget(out);
      if (!demoted) {
        for (const BufferRef& buffer : allocated_) {
          auto it = demoted_.find(buffer.get());
          const bool registers = out.registers.contains(buffer.get());
          out.places.push_back({buffer, registers,
                                annotated_.contains(buffer.get()) ? "annotated"
                                : registers                       ? ""
                                : it == demoted_.end()            ? "nothing uses it"
                                                                  : it->second});
        }
        out.conflict = std::move(conflict_);
        return out;
      }
      demote(demoted->buffer, demoted->reason);
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

  void demote(const Buffer* buffer, const std::string& reason) {
    if (annotated_.contains(buffer)) return;
    if (candidates_.erase(buffer)) demoted_.emplace(buffer, reason);
  }

  /// Keeps a buffer that loops traverse in different orders in shared memory: its purpose is a transposition, and in
  /// registers one of the loops could not have coalesced global accesses.
  void keep_transposed() {
    std::unordered_map<const Buffer*, bool> in_order;
    for (const LoopUnit& unit : units_.units) {
      for (const LoopUse& use : unit.uses) {
        std::vector<int> dims = use.dims;
        std::erase(dims, -1);
        const bool ordered = std::is_sorted(dims.begin(), dims.end());
        const auto [known, first] = in_order.try_emplace(use.buffer, ordered);
        if (first || known->second == ordered || use.buffer->scope != MemoryScope::Shared) continue;
        demote(use.buffer, "loops go through it in different orders");
      }
    }
  }

  void conflict(LayoutConflict found) {
    if (!conflict_) conflict_ = std::move(found);
  }

  /// A buffer does not fit the loop: it is demoted, or keeps the layout that the program gives and the loop conflicts.
  std::optional<Demotion> misfit(const LoopUnit& unit, const Buffer* buffer, const std::string& reason,
                                 const ThreadLayout* division) {
    if (!annotated_.contains(buffer)) return Demotion{buffer, reason};
    conflict({unit.stmt, buffer, reason, division ? std::optional(*division) : std::nullopt});
    return std::nullopt;
  }

  bool has_annotated(const LoopUnit& unit) const {
    return std::any_of(unit.uses.begin(), unit.uses.end(),
                       [&](const LoopUse& use) { return annotated_.contains(use.buffer) && unit.covered_by(use); });
  }

  bool in_registers(const LoopUse& use) const { return candidates_.contains(use.buffer); }

  std::optional<Demotion> attempt(BlockLayouts* out) {
    std::vector<const LoopUnit*> order;
    for (const LoopUnit& unit : units_.units) order.push_back(&unit);
    std::stable_sort(order.begin(), order.end(), [&](const LoopUnit* a, const LoopUnit* b) {
      if (const bool first = has_annotated(*a); first != has_annotated(*b)) return first;
      if (a->extents.size() != b->extents.size()) return a->extents.size() > b->extents.size();
      return a->elements() > b->elements();
    });
    while (!order.empty()) {
      // Known layouts propagate before a loop gets a seed layout, with which the others might disagree.
      auto next = std::find_if(order.begin(), order.end(),
                               [&](const LoopUnit* unit) { return source_of_layout(*unit, *out) != nullptr; });
      if (next == order.end()) next = order.begin();
      if (std::optional<Demotion> demoted = divide(**next, out)) return demoted;
      order.erase(next);
    }
    return std::nullopt;
  }

  /// The fragment whose known layout propagates to the loop; one whose layout the program gives comes first.
  const LoopUse* source_of_layout(const LoopUnit& unit, const BlockLayouts& out) const {
    const LoopUse* found = nullptr;
    for (const LoopUse& use : unit.uses) {
      if (!in_registers(use) || !out.registers.contains(use.buffer) || !unit.covered_by(use)) continue;
      if (!found || (annotated_.contains(use.buffer) && !annotated_.contains(found->buffer))) found = &use;
    }
    return found;
  }

  /// Finds the layout of one loop and propagates it to the loop's fragments.
  std::optional<Demotion> divide(const LoopUnit& unit, BlockLayouts* out) {
    const LoopUse* fragment = source_of_layout(unit, *out);
    const bool any =
        std::any_of(unit.uses.begin(), unit.uses.end(), [&](const LoopUse& use) { return in_registers(use); });
    if (any && !unit.constant()) {
      for (const LoopUse& use : unit.uses) {
        if (!in_registers(use)) continue;
        const char* reason = "a loop over it has an extent that only the call knows";
        if (std::optional<Demotion> demoted = misfit(unit, use.buffer, reason, nullptr)) return demoted;
      }
      return std::nullopt;
    }
    ThreadLayout layout =
        fragment ? propagated(unit, *fragment, out->registers.at(fragment->buffer)) : seed_layout(unit, any);
    for (const LoopUse& use : unit.uses) {
      if (!in_registers(use)) continue;
      std::optional<Demotion> demoted;
      if (any && !layout.layout().replica().empty() && unit.updates_memory(candidates_, may_alias_)) {
        const char* reason = "threads that hold copies of it would update memory more than once";
        demoted = misfit(unit, use.buffer, reason, nullptr);
      } else {
        demoted = place(unit, use, layout, out);
      }
      if (demoted) return demoted;
    }
    out->loops.insert_or_assign(unit.stmt, std::move(layout));
    return std::nullopt;
  }

  /// The layout of a fragment that has every dimension of the loop, as the loop's layout.
  static ThreadLayout propagated(const LoopUnit& unit, const LoopUse& use, const ThreadLayout& known) {
    std::vector<int> dims;
    for (size_t d = 0; d < unit.extents.size(); ++d) {
      const auto at = std::find(use.dims.begin(), use.dims.end(), static_cast<int>(d));
      dims.push_back(at == use.dims.end() ? -1 : static_cast<int>(at - use.dims.begin()));
    }
    return known.project(dims);
  }

  /// The layout of a loop that no fragment decides: vectors as wide as its global accesses allow, side by side.
  ThreadLayout seed_layout(const LoopUnit& unit, bool fragments) const {
    int64_t vector = 1;
    for (const LoopUnit& other : units_.units) {
      if (other.extents.empty() || unit.extents.empty() || unit.whole) continue;
      if (same_expr_extent(other.extents.back(), unit.extents.back())) vector = std::max(vector, other.vector);
    }
    std::vector<int64_t> shape;
    for (size_t d = 0; d < unit.extents.size(); ++d) {
      const int64_t* extent = int_value(unit.extents[d]);
      const bool last = d + 1 == unit.extents.size();
      // Without fragments the layout covers one pass over the threads; the rest is a loop around it.
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

  /// Cuts leading dimensions to what the threads cover in one pass.
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

  std::optional<Demotion> place(const LoopUnit& unit, const LoopUse& use, const ThreadLayout& layout,
                                BlockLayouts* out) {
    // Other threads with copies of the element would not see the store of one thread. A reduction gives its result to
    // all of them.
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

  /// The buffer to demote when registers do not suffice: the largest of T.alloc_shared, then the largest fragment.
  std::optional<Demotion> over_budget(const BlockLayouts& out) const {
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
    if (!largest) return std::nullopt;  // layouts of the program are kept, at the price of spills
    return Demotion{largest, fmt::format("{} registers a thread are needed and {} are there", words, budget)};
  }

  /// The interval of loops, by number, in which a buffer holds values, and its size in a thread.
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

  /// Values that only the next loop uses flow from one loop to the other element by element; they are never all live at
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
  std::unordered_map<const Buffer*, std::string> demoted_;
  std::unordered_map<const Buffer*, ThreadLayout> annotated_;  ///< the layouts that the program gives
  std::optional<LayoutConflict> always_;  ///< found in every attempt
  std::optional<LayoutConflict> conflict_;  ///< of this attempt
};

}  // namespace

BlockLayouts infer_layouts(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                           const Machine& machine, const MemoryBuffers& memory) {
  return Inference(kernel, may_alias, facts, machine, memory).run();
}

}  // namespace helve
