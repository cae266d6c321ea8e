// The loops over elements and the reductions of a kernel, with their uses of buffers.
// A use other than one element per iteration places its buffer in shared memory, where any element can be accessed.
#include "loop_units.h"

#include <algorithm>
#include <utility>

#include "helve/analysis/element_address.h"
#include "helve/analysis/multiple.h"
#include "helve/ir/tensor/visit.h"
#include "helve/threads/thread_operation.h"

namespace helve {

namespace {

class Collector {
 public:
  Collector(const Kernel& kernel, const Facts& facts, const Machine& machine) : facts_(facts), machine_(machine) {
    visit(kernel.body);
  }
  LoopUnits take() { return std::move(out_); }

 private:
  /// Shared memory and fragments. Private memory that the block allocates has the same contents in every thread, so it
  /// is treated as a fragment.
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
    if (const TileOp* n = as<TileOp>(s)) return operation(*n, s);
    if (const For* loop = as<For>(s); loop && is_element_loop(*loop) && !is_divided_inside(*loop)) {
      return divided(*loop, s.get());
    }
    for_each_part(s, [&](const Expr& e) { scalar(e); }, [&](const Stmt& part) { visit(part); });
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

  /// A store to the only element of a buffer is a loop of one iteration: every thread can hold the element. Other
  /// scalar stores need memory.
  void scalar_store(const Store& n, const Stmt& self) {
    for (const Expr& index : n.indices) scalar(index);
    LoopUnit unit;
    unit.stmt = self.get();
    if (!is_single(*n.buffer)) in_memory(*n.buffer, "it is stored to outside of a loop over elements");
    stored(n, {}, &unit);
    if (n.previous) in_memory_all(self);
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

  void operation(const TileOp& op, const Stmt& self) {
    const ThreadOperation* row = thread_operation(op);
    if (!row) {
      in_memory_all(op);
      return for_each_part(self, [&](const Expr& e) { scalar(e); }, [](const Stmt&) {});
    }
    const OperationDemand demand = row->demand(op);
    for (const auto& [region, reason] : demand.memory) in_memory(*region->buffer, std::string(reason));
    if (demand.elements.empty()) return;
    LoopUnit unit;
    unit.stmt = self.get();
    unit.extents = demand.extents;
    unit.reduced = demand.reduced;
    unit.at_once = demand.at_once;
    for (const OperationDemand::Elements& each : demand.elements) {
      operand(*each.region, each.dims, each.written, &unit);
    }
    out_.units.push_back(std::move(unit));
  }

  void in_memory_all(const TileOp& op) {
    for (const TileOperand& operand : op.operands) {
      if (const Region* region = std::get_if<Region>(&operand)) {
        in_memory(*region->buffer, "it is an operand of " + operation_text(op));
      }
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

  /// Each iteration moves its own run between two memories.
  void run(const TileOp& op, LoopUnit* unit) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Region* region = std::get_if<Region>(&op.operands[i]);
      if (region) unit->touched.emplace_back(region->buffer.get(), op.row().params[i].writes());
    }
    in_memory_all(op);
    unit->vector = 1;
    unit->whole = true;
  }

  /// Atomic stores combine in memory, one element at a time.
  void stored(const Store& n, const ElementLoop& loop, LoopUnit* unit) {
    if (!n.is_atomic()) return access(*n.buffer, n.indices, true, loop, unit);
    unit->touched.emplace_back(n.buffer.get(), true);
    in_memory(*n.buffer, "it is updated atomically");
    if (n.previous) in_memory_all(loop.body);
  }

  /// One thread runs the whole iteration, since one update finds each value: no other one holds registers of it.
  void in_memory_all(const Stmt& body) {
    for (const ElementUse& use : element_uses(body)) in_memory(*use.buffer, "its loop names what atomic updates found");
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices, bool written, const ElementLoop& loop,
              LoopUnit* unit) {
    unit->touched.emplace_back(&buffer, written);
    if (is_global(buffer)) {
      unit->vector = std::max(unit->vector, width(buffer, indices, loop));
      return;
    }
    if (!is_block_buffer(buffer)) return;
    std::optional<std::vector<int>> dims = element_dims(loop, buffer, indices);
    if (!dims) return in_memory(buffer, "an access is not the element of its loop's iteration");
    for (LoopUse& known : unit->uses) {
      if (known.buffer != &buffer) continue;
      known.written |= written;
      if (known.dims == *dims) return;
      return in_memory(buffer, "a loop reads it in two orders");
    }
    unit->uses.push_back({&buffer, std::move(*dims), written});
  }

  /// The widest run of elements that consecutive iterations of the last variable access as one aligned vector.
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
    for (int64_t lanes = std::max<int64_t>(1, machine_.vector_bytes / buffer.dtype.bytes()); lanes > 1; lanes /= 2) {
      if (*extent % lanes != 0) continue;
      const Expr first = substitute(address, {{last.get(), Expr(run) * int_imm(lanes)}});
      if (is_multiple(first, lanes, facts_)) return lanes;
    }
    return 1;
  }

  const Facts& facts_;
  const Machine& machine_;
  const StmtNode* stmt_ = nullptr;  ///< the innermost statement around this place that is not inside of a divided loop
  LoopUnits out_;
};

}  // namespace

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

LoopUnits loop_units(const Kernel& kernel, const Facts& facts, const Machine& machine) {
  return Collector(kernel, facts, machine).take();
}

}  // namespace helve
