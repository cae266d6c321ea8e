// The plain loops that a kernel of cores means which collectives order.
// Before:  with T.Kernel(8, 4) as (b, c):                  After:  with T.Kernel(8) as b:
//              part = alloc_shared((1,))                               part_all = alloc_shared((4, 1))
//              total = alloc_shared((1,))                              total_all = alloc_shared((4, 1))
//              part[0] = A[b, c]                                       for c in Parallel(4):
//                                                                          part_all[c, 0] = A[b, c]
//              T.comm.all_reduce(part, total, axis="y")                for c in Parallel(4):
//                                                                          total_all[c, 0] = 0
//                                                                      for c in Parallel(4):
//                                                                          for d in serial(4):
//                                                                              update(total_all[c, 0], part_all[d, 0])
//              B[b, c] = total[0]                                      for c in Parallel(4):
//                                                                          B[b, c] = total_all[c, 0]
// The interpreter, which runs cores in step, gives both the same results.
#include "helve/analysis/core_phases.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/core_groups.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

std::optional<StoreMode> mode_of_collective(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum: return StoreMode::Add;
    case ReduceKind::Prod: return StoreMode::Mul;
    case ReduceKind::Max: return StoreMode::Max;
    case ReduceKind::Min: return StoreMode::Min;
    case ReduceKind::AbsMax:
    case ReduceKind::Any:
    case ReduceKind::All: return std::nullopt;
  }
  __builtin_unreachable();
}

bool counts_one(const Expr& e) {
  const int64_t* value = int_value(e);
  return value && *value == 1;
}

class PhaseBuilder {
 public:
  PhaseBuilder(const Kernel& kernel, const MeshShape& mesh, CoreMemories memories)
      : kernel_(kernel), mesh_(mesh), core_(kernel.vars.back()), cores_(int_imm(mesh.extents.back())) {
    out_.memories = std::move(memories);
  }

  std::optional<CorePhases> run(std::string& reason) {
    const std::vector<Stmt> body = phases_of(kernel_.body);
    if (!reason_.empty()) {
      reason = reason_;
      return std::nullopt;
    }
    out_.kernel = Stmt(copy_with(kernel_, [&](Kernel& out) {
      out.vars.pop_back();
      out.extents.pop_back();
      out.body = seq(body, kernel_.body->span);
    }));
    return std::move(out_);
  }

 private:
  void refuse(std::string reason) {
    if (reason_.empty()) reason_ = std::move(reason);
  }

  /// What every core runs up to a collective, and behind it.
  std::vector<Stmt> phases_of(const Stmt& block) {
    std::vector<Stmt> out, members;
    const auto finish = [&] {
      if (members.empty()) return;
      const VarRef core = make_var(core_->name);
      std::vector<Stmt> now;
      for (const Stmt& each : members) now.push_back(member(each, core));
      out.push_back(for_loop(LoopKind::Parallel, core, cores_, seq(std::move(now)), members[0]->span));
      members.clear();
    };
    const Seq* several = as<Seq>(block);
    const std::vector<Stmt> list = several ? several->stmts : std::vector<Stmt>{block};
    for (size_t n = 0; n < list.size(); ++n) {
      const Stmt& each = list[n];
      const Alloc* memory = as<Alloc>(each);
      const Bind* name = as<Bind>(each);
      if ((memory || name) && !is_used_in_one_phase(list, n)) {
        if (memory) {
          out.push_back(memory_of_all(*memory));
        } else {
          if (differs(name->value)) refuse(fmt::format("the value of '{}' may differ between cores", name->var->name));
          out.push_back(each);
        }
      } else if (named_by(each) && !is_used_in_one_phase(list, n)) {
        refuse(fmt::format("the value of '{}' may differ between cores", named_by(each)->name));
      } else if (has_collective(each)) {
        finish();
        const std::vector<Stmt> around = spanning(each);
        out.insert(out.end(), around.begin(), around.end());
      } else {
        members.push_back(each);
      }
    }
    finish();
    return out;
  }

  /// Is what the statement defines used up to the next collective only?
  bool is_used_in_one_phase(const std::vector<Stmt>& list, size_t at) const {
    const Alloc* memory = as<Alloc>(list[at]);
    if (memory && out_.memories.contains(memory->buffer.get())) return false;
    const auto uses = [&](const Stmt& s) {
      if (memory) return replace_buffers(s, {{memory->buffer.get(), declare_again(*memory->buffer)}}) != s;
      bool found = false;
      walk_exprs(s, [&](const Expr& e) { found |= as<Var>(e) == named_by(list[at]).get(); });
      return found;
    };
    const auto next = std::find_if(list.begin() + static_cast<std::ptrdiff_t>(at), list.end(), has_collective);
    return std::none_of(next, list.end(), uses);
  }

  /// May a name's value, or a condition, be another one on another core?
  bool differs(const Expr& e) const { return mentions(e, core_.get()) || has_load(e); }

  /// A loop or branch around collectives, or a collective.
  std::vector<Stmt> spanning(const Stmt& s) {
    if (const TileOp* op = as<TileOp>(s)) return combined(*op);
    const For* loop = as<For>(s);
    const If* branch = as<If>(s);
    const bool iterates =
        loop && (loop->loop == LoopKind::Serial || loop->loop == LoopKind::Pipelined || loop->loop == LoopKind::Unroll);
    if (!iterates && !branch) {
      refuse("a collective stands in a loop that is no loop over a range");
      return {};
    }
    bool same = true;
    const auto expr = [&](const Expr& e) {
      same &= !differs(e);
      return e;
    };
    const Stmt out = map_parts(s, expr, [&](const Stmt& part) { return part ? seq(phases_of(part)) : part; });
    if (!same) refuse("a collective stands in a loop or branch that reads memory, or the number of the core");
    return {out};
  }

  Stmt memory_of_all(const Alloc& n) {
    const BufferRef& own = n.buffer;
    const auto [at, is_new] = out_.memories.try_emplace(own.get());
    if (is_new) {
      std::vector<Expr> shape = own->shape;
      shape.insert(shape.begin(), cores_);
      at->second = {make_buffer(own->name + "_all", own->dtype, own->scope, shape, {}, {}, own->span), 0};
    }
    if (!own->tile.empty() || own->layout || own->offset) {
      refuse(fmt::format("'{}' has tiles or a layout", own->name));
    }
    return alloc(at->second.all, n.span);
  }

  const CoreMemory* memory(const Storage* buffer) const {
    const auto at = out_.memories.find(static_cast<const Buffer*>(buffer));
    return at == out_.memories.end() ? nullptr : &at->second;
  }

  static std::vector<Expr> on_core(std::vector<Expr> indices, const CoreMemory& memory, const Expr& core) {
    indices.insert(indices.begin() + static_cast<std::ptrdiff_t>(memory.dim), core);
    return indices;
  }

  Expr value(const Expr& e, const Expr& core) const {
    return rewrite(e, [&](const Expr& node) {
      const Load* read = as<Load>(node);
      const CoreMemory* all = read ? memory(read->buffer.get()) : nullptr;
      return all ? load(all->all, on_core(read->indices, *all, core), node->span) : node;
    });
  }

  Region region(const Region& of, const Expr& core) const {
    const CoreMemory* all = memory(of.buffer.get());
    if (!all) return of;
    Region out{all->all, of.ranges};
    out.ranges.insert(out.ranges.begin() + static_cast<std::ptrdiff_t>(all->dim), Range{core, int_imm(1), true});
    return out;
  }

  /// The statement with single elements, and regions, of memory of all cores.
  Stmt member(const Stmt& s, const VarRef& core) {
    const Stmt own = substitute(s, {{core_.get(), Expr(core)}});
    const auto expr = [&](const Expr& e) { return value(e, Expr(core)); };
    const auto stmt = [&](const Stmt& each) -> Stmt {
      if (const Store* write = as<Store>(each)) {
        const CoreMemory* all = memory(write->buffer.get());
        if (!all) return each;
        return Stmt(copy_with(*write, [&](Store& out) {
          out.buffer = all->all;
          out.indices = on_core(write->indices, *all, Expr(core));
        }));
      }
      const TileOp* op = as<TileOp>(each);
      if (!op) return each;
      return Stmt(copy_with(*op, [&](TileOp& out) {
        for (TileOperand& operand : out.operands) {
          if (Region* of = std::get_if<Region>(&operand)) *of = region(*of, Expr(core));
        }
      }));
    };
    const Stmt now = rewrite(own, stmt, expr);
    BufferMap left;
    for (const auto& [buffer, all] : out_.memories) left.emplace(buffer, declare_again(*buffer));
    if (replace_buffers(now, left) != now) refuse("a statement uses tiles of memory that cores keep");
    add_members(s, now, core);
    return now;
  }

  /// The statement and all below it; the two have one form.
  void add_members(const Stmt& was, const Stmt& now, const VarRef& core) {
    std::vector<const StmtNode*> all;
    walk(was, [&](const Stmt& each) { all.push_back(each.get()); });
    size_t next = 0;
    walk(now, [&](const Stmt& each) { out_.members.push_back({all.at(next++), each.get(), core}); });
  }

  /// The element at the coordinates of dimensions with more than one element.
  static std::vector<Expr> element(const Region& of, const std::vector<VarRef>& at) {
    std::vector<Expr> coords;
    size_t next = 0;
    for (const Expr& extent : of.shape()) coords.push_back(counts_one(extent) ? int_imm(0) : Expr(at[next++]));
    return region_indices(of, coords);
  }

  std::vector<Stmt> combined(const TileOp& op) {
    const bool known = op.op == TileOpcode::CommAllReduce && axes_of(op, mesh_) == uint64_t{1}
                                                                                       << (mesh_.extents.size() - 1);
    const std::optional<ReduceKind> kind = known ? parse_reduce_kind(*op.combination()) : std::nullopt;
    const std::optional<StoreMode> mode = kind ? mode_of_collective(*kind) : std::nullopt;
    if (!mode) {
      refuse(fmt::format("'{}' is no all_reduce over the last axis", operation_text(op)));
      return {};
    }
    const Region &src = op.region(0), &dst = op.region(1);
    const CoreMemory *from = memory(src.buffer.get()), *to = memory(dst.buffer.get());
    if (!from || !to || from == to) {
      refuse(fmt::format("'{}' works on memory that is not each core's own", operation_text(op)));
      return {};
    }
    if (dst.buffer->dtype.is_small_float()) {
      refuse(fmt::format("'{}' rounds to {} once", operation_text(op), to_string(dst.buffer->dtype)));
      return {};
    }
    std::vector<Expr> extents = dst.shape();
    std::erase_if(extents, counts_one);
    std::vector<Expr> others = src.shape();
    std::erase_if(others, counts_one);
    if (others.size() != extents.size()) {
      refuse(fmt::format("regions of '{}' have different dimensions", operation_text(op)));
      return {};
    }
    for (const Region* each : {&src, &dst}) {
      for (const Range& range : each->ranges) {
        if (differs(range.begin) || differs(range.extent)) refuse("a region of a collective differs between cores");
      }
    }
    CorePhases::Combined out{&op, nullptr, nullptr, {}, {}, make_var("d")};
    const VarRef filler = make_var(core_->name), owner = make_var(core_->name);
    for (size_t n = 0; n < extents.size(); ++n) {
      out.fill_at.push_back(make_var(fmt::format("e{}", n)));
      out.update_at.push_back(make_var(fmt::format("e{}", n)));
    }
    const Stmt fill = store(to->all, on_core(element(dst, out.fill_at), *to, Expr(filler)),
                            identity_imm(*mode, dst.buffer->dtype), op.span);
    const Stmt sum =
        update(to->all, on_core(element(dst, out.update_at), *to, Expr(owner)),
               load(from->all, on_core(element(src, out.update_at), *from, Expr(out.member)), op.span), *mode, op.span);
    out.fill = fill.get();
    out.update = sum.get();
    const auto on_all = [&](const VarRef& core, const std::vector<VarRef>& at, const Stmt& body) {
      std::vector<VarRef> vars{core};
      std::vector<Expr> counts{cores_};
      vars.insert(vars.end(), at.begin(), at.end());
      counts.insert(counts.end(), extents.begin(), extents.end());
      return for_loop(LoopKind::Parallel, vars, std::vector<Expr>(vars.size(), int_imm(0)), counts, body, 1, op.span);
    };
    const Stmt all = for_loop(LoopKind::Serial, out.member, cores_, sum, op.span);
    const std::vector<Stmt> loops{on_all(filler, out.fill_at, fill), on_all(owner, out.update_at, all)};
    out_.combined.push_back(std::move(out));
    return loops;
  }

  const Kernel& kernel_;
  const MeshShape& mesh_;
  const VarRef core_;
  const Expr cores_;
  CorePhases out_;
  std::string reason_;
};

}  // namespace

std::optional<CorePhases> core_phases(const Kernel& kernel, const MeshShape& mesh, CoreMemories memories,
                                      std::string& reason) {
  return PhaseBuilder(kernel, mesh, std::move(memories)).run(reason);
}

}  // namespace helve
