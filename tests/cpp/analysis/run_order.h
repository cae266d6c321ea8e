// The instances of a region in the order in which they run, by running its loops: the oracle of dependences and
// rewrites. It knows loops, conditions, names, allocations, stores, fills and copies, and shares nothing with what it
// judges.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "arith/evaluate.h"
#include "helve/ir/tensor/visit.h"

namespace helve::testing {

/// One element that an instance touches; each execution of an allocation is a memory of its own.
struct Touch {
  const Buffer* buffer;
  size_t memory;  ///< number of the allocation's execution; 0 of what is allocated outside
  std::vector<int64_t> element;
  bool write;
  StoreMode mode;
};

struct LoopAt {
  size_t visit;
  bool independent;
  std::vector<int64_t> values;
};

struct Ran {
  size_t visit;  ///< of the statement
  std::vector<int64_t> at;  ///< values of the loops around it
  Assignment where;  ///< of all variables
  std::vector<Touch> touches;
  std::vector<LoopAt> around;
};

inline bool conflict(const Touch& a, const Touch& b) {
  if (a.buffer != b.buffer || a.memory != b.memory || a.element != b.element || (!a.write && !b.write)) return false;
  const bool atomics = is_atomic(a.mode) && a.mode == b.mode && a.write && b.write;
  return !atomics;
}
/// Do they meet only as updates by one operator?
inline bool only_update(const Ran& a, const Ran& b) {
  for (const Touch& x : a.touches) {
    for (const Touch& y : b.touches) {
      if (conflict(x, y) && (!is_update(x.mode) || x.mode != y.mode)) return false;
    }
  }
  return true;
}
inline bool conflict(const Ran& a, const Ran& b) {
  for (const Touch& x : a.touches) {
    for (const Touch& y : b.touches) {
      if (conflict(x, y)) return true;
    }
  }
  return false;
}
/// Do they belong to different iterations of an independent loop?
inline bool have_no_order(const Ran& a, const Ran& b) {
  for (size_t l = 0; l < a.around.size() && l < b.around.size(); ++l) {
    const LoopAt &x = a.around[l], &y = b.around[l];
    if (x.visit != y.visit) return false;
    if (x.values != y.values) return x.independent;
  }
  return false;
}

class RegionRun {
 public:
  std::vector<Ran> ran;

  RegionRun(const Stmt& region, Assignment around) : at_(std::move(around)) { run(region, 0); }

 private:
  int64_t value(const Expr& e) const { return static_cast<int64_t>(*evaluate(e, at_)); }

  static size_t count(const Stmt& s) {
    size_t n = 0;
    walk(s, [&](const Stmt&) { ++n; });
    return n;
  }

  /// Elements of the loads of an expression, as far as it is evaluated.
  void read(const Expr& e, std::vector<Touch>& into) {
    if (const Apply* node = as_op(e, Op::Select)) {
      read(node->args[0], into);
      return read(node->args[value(node->args[0]) ? 1 : 2], into);
    }
    for_each_child(e, [&](const Expr& child) { read(child, into); });
    if (const Load* load = as<Load>(e)) {
      into.push_back(touch(static_cast<const Buffer*>(load->buffer.get()), load->indices, false));
    }
  }
  Touch touch(const Buffer* buffer, const std::vector<Expr>& indices, bool write, StoreMode mode = StoreMode::Write) {
    std::vector<int64_t> element;
    for (const Expr& index : indices) element.push_back(value(index));
    const auto memory = memory_.find(buffer);
    return {buffer, memory == memory_.end() ? 0 : memory->second, element, write, mode};
  }
  void touch_box(const Region& region, bool write, std::vector<Touch>& into) {
    std::vector<Expr> at;
    each_of(region, 0, at, [&] { into.push_back(touch(region.buffer.get(), at, write)); });
  }
  template <class F>
  void each_of(const Region& region, size_t d, std::vector<Expr>& at, F&& f) {
    if (d == region.ranges.size()) return f();
    const int64_t begin = value(region.ranges[d].begin), extent = value(region.ranges[d].extent);
    for (int64_t i = 0; i < extent; ++i) {
      at.push_back(int_imm(begin + i));
      each_of(region, d + 1, at, f);
      at.pop_back();
    }
  }

  void add(size_t visit, std::vector<Touch> touches) {
    Ran out{visit, {}, at_, std::move(touches), around_};
    for (const LoopAt& loop : around_) out.at.insert(out.at.end(), loop.values.begin(), loop.values.end());
    ran.push_back(std::move(out));
  }

  void loop(const For& n, size_t d, LoopAt here, size_t visit) {
    if (d == n.vars.size()) {
      around_.push_back(here);
      run(n.body, visit + 1);
      around_.pop_back();
      return;
    }
    const int64_t begin = value(n.begins[d]), extent = value(n.extents[d]);
    for (int64_t i = 0; i < extent; ++i) {
      at_[n.vars[d].get()] = begin + i;
      LoopAt next = here;
      next.values.push_back(begin + i);
      loop(n, d + 1, next, visit);
    }
  }

  void run(const Stmt& s, size_t visit) {
    if (const Seq* n = as<Seq>(s)) {
      size_t next = visit + 1;
      for (const Stmt& part : n->stmts) {
        run(part, next);
        next += count(part);
      }
    } else if (const For* n = as<For>(s)) {
      const bool ordered = n->loop == LoopKind::Serial || n->loop == LoopKind::Unroll || n->loop == LoopKind::Pipelined;
      loop(*n, 0, {visit, !ordered, {}}, visit);
    } else if (const If* n = as<If>(s)) {
      if (value(n->condition)) {
        run(n->then_body, visit + 1);
      } else if (n->else_body) {
        run(n->else_body, visit + 1 + count(n->then_body));
      }
    } else if (const Bind* n = as<Bind>(s)) {
      at_[n->var.get()] = value(n->value);
    } else if (const Alloc* n = as<Alloc>(s)) {
      memory_[n->buffer.get()] = ++executions_;
    } else if (const Store* n = as<Store>(s)) {
      std::vector<Touch> touches;
      read(n->value, touches);
      if (n->is_update()) touches.push_back(touch(n->buffer.get(), n->indices, false, n->mode));
      touches.push_back(touch(n->buffer.get(), n->indices, true, n->mode));
      add(visit, std::move(touches));
    } else if (const TileOp* n = as<TileOp>(s)) {
      std::vector<Touch> touches;
      for (size_t i = 0; i < n->operands.size(); ++i) {
        if (n->is_region(i)) touch_box(n->region(i), n->row().params[i].writes(), touches);
      }
      add(visit, std::move(touches));
    } else {
      FAIL() << "a statement that the oracle does not run";
    }
  }

  Assignment at_;
  std::vector<LoopAt> around_;
  std::map<const Buffer*, size_t> memory_;
  size_t executions_ = 0;
};

}  // namespace helve::testing
