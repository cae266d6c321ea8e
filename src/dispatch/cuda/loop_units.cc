// The loops over elements and the reductions of a kernel, with what each uses of which buffer.
// A use that is not one plain element an iteration puts its buffer into block memory, where any element may be read.
#include "loop_units.h"

#include <algorithm>
#include <utility>

#include "helve/analysis/memory_traffic.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/divide.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

constexpr int64_t kVectorBytes = 16;

bool is_parallel(const Stmt& s) {
  const For* loop = as<For>(s);
  return loop && is_element_loop(*loop);
}

bool mentions_any(const Expr& e, const std::vector<VarRef>& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](const VarRef& var) { return mentions(e, var.get()); });
}

/// The loops that stand perfectly in `loop`, itself first, with bounds that depend on none of them.
std::vector<const For*> perfect_nest(const For& loop) {
  std::vector<const For*> nest = {&loop};
  std::vector<VarRef> vars = loop.vars;
  for (;;) {
    const For* inner = as<For>(nest.back()->body);
    if (!inner || !is_element_loop(*inner)) return nest;
    for (size_t d = 0; d < inner->vars.size(); ++d) {
      if (mentions_any(inner->begins[d], vars) || mentions_any(inner->extents[d], vars)) return nest;
    }
    nest.push_back(inner);
    vars.insert(vars.end(), inner->vars.begin(), inner->vars.end());
  }
}

class Collector {
 public:
  Collector(const Kernel& kernel, const Facts& facts) : facts_(facts) { visit(kernel.body); }
  LoopUnits take() { return std::move(out_); }

 private:
  /// Block memory and fragments; private memory that the block allocates holds the same in every thread, so it is like
  /// a fragment.
  bool is_block_buffer(const Buffer& b) const {
    if (b.scope != MemoryScope::Local) return b.scope == MemoryScope::Shared || b.scope == MemoryScope::Fragment;
    return std::any_of(out_.allocated.begin(), out_.allocated.end(),
                       [&](const BufferRef& each) { return each.get() == &b; });
  }

  void visit(const Stmt& s) {
    if (!s) return;
    const StmtNode* outer = std::exchange(stmt_, s.get());
    statement(s);
    stmt_ = outer;
  }

  void statement(const Stmt& s) {
    if (const Alloc* n = as<Alloc>(s)) return allocate(n->buffer);
    if (const Store* n = as<Store>(s)) return scalar_store(*n, s);
    if (const TileOp* n = as<TileOp>(s)) return operation(*n, s.get());
    if (const For* loop = as<For>(s); loop && is_element_loop(*loop) && !is_divided_inside(*loop)) {
      return divided(*loop, s.get());
    }
    for_each_part(
        s, [&](const Expr& e) { scalar(e); }, [&](const Stmt& part) { visit(part); });
  }

  void allocate(const BufferRef& buffer) {
    if (is_global(*buffer)) return;
    out_.allocated.push_back(buffer);
    if (!constant_shape(buffer->shape)) in_memory(*buffer, "its shape is not constant");
    if (buffer->layout && buffer->scope == MemoryScope::Shared) in_memory(*buffer, "annotated");
  }

  void in_memory(const Buffer& buffer, const std::string& reason) {
    if (is_block_buffer(buffer)) out_.memory.push_back({&buffer, reason, stmt_});
  }

  /// A store to the only element of a buffer is a loop over nothing: every thread can hold the element. Another one is
  /// memory's.
  void scalar_store(const Store& n, const Stmt& self) {
    for (const Expr& index : n.indices) scalar(index);
    LoopUnit unit;
    unit.stmt = self.get();
    if (!is_single(*n.buffer)) in_memory(*n.buffer, "it is stored to outside of a loop over elements");
    stored(n, {}, &unit);
    walk(n.value, [&](const Expr& node) {
      const Load* l = as<Load>(node);
      if (!l) return;
      const Buffer& buffer = buffer_of(l->buffer);
      if (!is_single(buffer)) in_memory(buffer, "it is read outside of a loop over elements");
      access(buffer, l->indices, false, {}, &unit);
    });
    out_.units.push_back(std::move(unit));
  }

  static bool is_single(const Buffer& buffer) {
    return std::all_of(buffer.shape.begin(), buffer.shape.end(), [](const Expr& e) {
      const int64_t* extent = int_value(e);
      return extent && *extent == 1;
    });
  }

  void scalar(const Expr& e) {
    walk(e, [&](const Expr& node) {
      if (const Load* l = as<Load>(node)) in_memory(buffer_of(l->buffer), "it is read outside of a loop over elements");
    });
  }

  void operation(const TileOp& op, const StmtNode* self) {
    const bool scan = op.row().rule == TileRule::Scan;
    if (is_matrix_copy(op)) return matrix_copy(op);
    if (op.row().rule != TileRule::Reduce && !scan) {
      for (const TileOperand& operand : op.operands) {
        if (const Region* region = std::get_if<Region>(&operand)) {
          in_memory(*region->buffer, "it is an operand of " + operation_text(op));
        }
      }
      return;
    }
    const Region& src = op.region(0);
    const Region& dst = op.region(1);
    LoopUnit unit;
    unit.stmt = self;
    unit.extents = src.shape();
    const size_t rank = unit.extents.size();
    std::vector<int> all;
    for (size_t d = 0; d < rank; ++d) all.push_back(static_cast<int>(d));
    operand(src, all, false, &unit);
    if (scan) {
      unit.at_once = true;
      operand(dst, all, true, &unit);
    } else {
      const size_t dim = *op.dimension(rank);
      unit.reduced = static_cast<int>(dim);
      std::vector<int> kept;
      for (size_t d = 0; d < rank; ++d) {
        if (d != dim) kept.push_back(static_cast<int>(d));
        else if (dst.shape().size() == rank) kept.push_back(-1);
      }
      operand(dst, kept, true, &unit);
    }
    out_.units.push_back(std::move(unit));
  }

  /// A copy that is one still is by matrices: between block memory and all registers of a fragment with a layout.
  void matrix_copy(const TileOp& op) {
    for (size_t i : {0, 1}) {
      const Buffer& buffer = *op.region(i).buffer;
      if (buffer.scope != MemoryScope::Fragment) in_memory(buffer, "matrices move between it and a fragment");
    }
  }

  void operand(const Region& region, const std::vector<int>& dims, bool written, LoopUnit* unit) {
    unit->touched.emplace_back(region.buffer.get(), written);
    for (const Range& range : region.ranges) {
      scalar(range.begin);
      scalar(range.extent);
    }
    if (!is_block_buffer(*region.buffer)) return;
    if (!region.whole()) return in_memory(*region.buffer, "a part of it is reduced or scanned");
    const auto known = std::find_if(unit->uses.begin(), unit->uses.end(),
                                    [&](const LoopUse& use) { return use.buffer == region.buffer.get(); });
    if (known == unit->uses.end()) return unit->uses.push_back({region.buffer.get(), dims, written});
    known->written |= written;  // a scan may overwrite its source
  }

  void divided(const For& loop, const StmtNode* self) {
    const ElementLoop flat = element_loop(loop);
    for (const Expr& e : flat.extents) scalar(e);
    LoopUnit unit;
    unit.stmt = self;
    unit.extents = flat.extents;
    walk(flat.body, [&](const Stmt& s) {
      if (const Store* n = as<Store>(s)) stored(*n, flat, &unit);
      if (const TileOp* n = as<TileOp>(s)) run(*n, &unit);
    });
    walk_exprs(flat.body, [&](const Expr& e) {
      if (const Load* l = as<Load>(e)) access(buffer_of(l->buffer), l->indices, false, flat, &unit);
    });
    out_.units.push_back(std::move(unit));
  }

  /// Each iteration moves a run of its own, between memory and memory.
  void run(const TileOp& op, LoopUnit* unit) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Region* region = std::get_if<Region>(&op.operands[i]);
      if (!region) continue;
      unit->touched.emplace_back(region->buffer.get(), op.row().params[i].writes());
      in_memory(*region->buffer, "it is an operand of " + operation_text(op));
    }
    unit->vector = 1;
    unit->whole = true;
  }

  /// Atomic stores meet in memory, one element at a time.
  void stored(const Store& n, const ElementLoop& loop, LoopUnit* unit) {
    if (!n.is_atomic()) return access(*n.buffer, n.indices, true, loop, unit);
    unit->touched.emplace_back(n.buffer.get(), true);
    in_memory(*n.buffer, "it is updated atomically");
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices, bool written, const ElementLoop& loop,
              LoopUnit* unit) {
    unit->touched.emplace_back(&buffer, written);
    if (is_global(buffer)) {
      unit->vector = std::max(unit->vector, width(buffer, indices, loop));
      return;
    }
    if (!is_block_buffer(buffer)) return;
    LoopUse use{&buffer, {}, written};
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t* extent = int_value(buffer.shape[d]);
      if (extent && *extent == 1) {
        use.dims.push_back(-1);
        continue;
      }
      const auto var = std::find_if(loop.vars.begin(), loop.vars.end(),
                                    [&](const VarRef& v) { return v.get() == indices[d].get(); });
      const int64_t* bound =
          var == loop.vars.end() ? nullptr : int_value(loop.extents[static_cast<size_t>(var - loop.vars.begin())]);
      const int dim = bound && extent && *bound == *extent ? static_cast<int>(var - loop.vars.begin()) : -1;
      if (dim < 0 || std::find(use.dims.begin(), use.dims.end(), dim) != use.dims.end()) {
        return in_memory(buffer, "an access is not the element of its loop's iteration");
      }
      use.dims.push_back(dim);
    }
    for (LoopUse& known : unit->uses) {
      if (known.buffer != &buffer) continue;
      known.written |= written;
      if (known.dims == use.dims) return;
      return in_memory(buffer, "a loop reads it in two orders");
    }
    unit->uses.push_back(std::move(use));
  }

  /// The widest run of elements that iterations side by side along the last variable access as one aligned vector.
  int64_t width(const Buffer& buffer, const std::vector<Expr>& indices, const ElementLoop& loop) const {
    if (loop.vars.empty()) return 1;
    const VarRef& last = loop.vars.back();
    const int64_t* extent = int_value(loop.extents.back());
    if (!extent) return 1;
    const Expr address = flat_address(buffer, indices);
    const Expr step = simplify(substitute(address, {{last.get(), Expr(last) + int_imm(1)}}) - address, facts_);
    const int64_t* one = int_value(step);
    if (!one || *one != 1) return 1;
    const VarRef run = make_var("run");
    const VarRef lane = make_var("lane");
    for (int64_t lanes = std::max<int64_t>(1, kVectorBytes / buffer.dtype.bytes()); lanes > 1; lanes /= 2) {
      if (*extent % lanes != 0) continue;
      const Expr at = simplify(substitute(address, {{last.get(), Expr(run) * int_imm(lanes) + Expr(lane)}}), facts_);
      if (starts_aligned(at, lane.get(), lanes)) return lanes;
    }
    return 1;
  }

  const Facts& facts_;
  const StmtNode* stmt_ = nullptr;  ///< the innermost one around this place that is not inside a divided loop
  LoopUnits out_;
};

}  // namespace

ElementLoop element_loop(const For& loop) {
  ElementLoop out;
  Substitution begins;
  const std::vector<const For*> nest = perfect_nest(loop);
  for (const For* level : nest) {
    for (size_t d = 0; d < level->vars.size(); ++d) {
      out.vars.push_back(level->vars[d]);
      out.extents.push_back(level->extents[d]);
      const int64_t* begin = int_value(level->begins[d]);
      if (!begin || *begin != 0) begins.emplace(level->vars[d].get(), level->begins[d] + Expr(level->vars[d]));
    }
  }
  const Stmt& body = nest.back()->body;
  out.body = begins.empty() ? body : substitute(body, begins);
  return out;
}

bool is_divided_inside(const For& loop) {
  bool found = false;
  walk(perfect_nest(loop).back()->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    found |= is_parallel(s) || (op && op->row().scope != OpScope::Iteration);
  });
  return found;
}

bool LoopUnit::constant() const {
  return std::all_of(extents.begin(), extents.end(), [](const Expr& e) { return int_value(e) != nullptr; });
}

int64_t LoopUnit::elements() const {
  int64_t count = 1;
  for (const Expr& e : extents) {
    const int64_t* extent = int_value(e);
    if (!extent || __builtin_mul_overflow(count, *extent, &count)) return INT64_MAX;
  }
  return count;
}

bool LoopUnit::covered_by(const LoopUse& use) const {
  for (size_t d = 0; d < extents.size(); ++d) {
    const int64_t* extent = int_value(extents[d]);
    if (extent && *extent == 1) continue;
    if (std::find(use.dims.begin(), use.dims.end(), static_cast<int>(d)) == use.dims.end()) return false;
  }
  return true;
}

bool LoopUnit::updates_memory(const std::unordered_set<const Buffer*>& registers,
                              const std::vector<MayAlias>& may_alias) const {
  return std::any_of(touched.begin(), touched.end(), [&](const auto& written) {
    return written.second && !registers.contains(written.first) &&
           std::any_of(touched.begin(), touched.end(), [&](const auto& read) {
             return !read.second && may_overlap(may_alias, read.first, written.first);
           });
  });
}

LoopUnits loop_units(const Kernel& kernel, const Facts& facts) { return Collector(kernel, facts).take(); }

}  // namespace helve
