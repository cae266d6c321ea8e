// Loops whose iterations the cores of a cluster run, one each, with all that stands around them done by every core.
// Before:  with T.Kernel(8) as b:                      After:  with T.Kernel(8, 4) as (b, c):
//              part = alloc_shared((4,))                           part = alloc_shared((1,))
//              for c in serial(4):
//                  part[c] = A[b, c]                               part[0] = A[b, c]
//              total[0] = 0
//              for v in serial(4):                                 total_cores = alloc_shared((1,))
//                  update(total[0], part[v], "add")                T.comm.all_reduce(part, total_cores, axis="y")
//                                                                  total[0] = total_cores[0]
//              for d in serial(4):
//                  B[b, d] = total[0]                              B[b, c] = total[0]
// Memory that a loop's iterations use by their own number is divided among the cores; a nest that combines all parts of
// it is a collective. Other memory is every core's own. The result is a program of cores, which means loops
// (analysis/core_phases.h); that these do what the program did is for the checker.
#include "share_cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "helve/analysis/core_phases.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "loop_form.h"
#include "shared_loops.h"

namespace helve {

namespace {

std::string reduction_of_cores(StoreMode mode) {
  switch (mode) {
    case StoreMode::Mul: return "prod";
    case StoreMode::Max: return "max";
    case StoreMode::Min: return "min";
    default: return "sum";
  }
}

bool has_single_element(const Expr& extent) {
  const int64_t* value = int_value(extent);
  return value && *value == 1;
}

class CoreProgram {
 public:
  CoreProgram(const FunctionRef& f, const Arguments& arguments) : f_(f), arguments_(arguments), shared_(f, arguments) {}

  Rewrite made() {
    Edited edited{f_, Forwarding()};
    for (const Cursor& loop : shared_.loops()) {
      const Cursor at = *edited.forward(loop);
      const size_t count = block_of(as<For>(required_at(edited.function, at))->body).size();
      edited = edited.then(move(edited.function, {at.child("body", 0), count}, at));
      edited = edited.then(erase(edited.function, {at.at(at.position() + count), 1}));
    }
    std::vector<Ref<const TileOp>> collectives;
    for (const Merge& merge : shared_.merges()) {
      const std::vector<Stmt> here = collective(merge);
      collectives.emplace_back(as<TileOp>(here[1]));
      edited = edited.then(replace(edited.function, {*edited.forward(merge.at), 1}, here));
    }
    for (const Merge& merge : shared_.merges()) {
      edited = edited.then(erase(edited.function, {*edited.forward(merge.fill_at), 1}));
    }
    core_ = make_var(as<For>(required_at(f_, arguments_.cursor(0)))->vars[0]->name);
    const Kernel* now = as<Kernel>(statement_at(*edited.function, shared_.kernel()));
    edited = edited.then(revise(edited.function, shared_.kernel(), Stmt(copy_with(*now, [&](Kernel& grid) {
                                  grid.vars.push_back(core_);
                                  grid.extents.push_back(int_imm(shared_.cores()));
                                  grid.body = of_one_core(now->body);
                                }))));
    Ref<Function> placed = make_ref<Function>(*edited.function);
    placed->mesh = shared_.mesh();
    edited.function = FunctionRef(placed);
    Rewrite out{edited, {shared_.kernel(), 1}, {shared_.kernel(), 1}, {}, {}, {shared_.kernel()}};
    add_meaning(out, collectives);
    return out;
  }

 private:
  std::vector<Stmt> collective(const Merge& merge) const {
    const Span& span = merge.update().span;
    const Divided& of = *shared_.divided(merge.part.buffer.get());
    Region region{of.part, merge.part.ranges};
    region.ranges.erase(region.ranges.begin() + static_cast<std::ptrdiff_t>(of.dim));
    if (region.ranges.empty()) region = whole_region(of.part);
    const Stmt exchange = tile_op(
        TileOpcode::CommAllReduce,
        {region, whole_region(merge.combined), reduction_of_cores(merge.update().mode), shared_.mesh().names.back()},
        span);
    std::vector<VarRef> vars;
    std::vector<Expr> from, to;
    for (const Range& range : merge.result.ranges) {
      if (!range.point) {
        vars.push_back(fresh_var(f_, fmt::format("w{}", vars.size())));
        from.emplace_back(vars.back());
      }
      to.push_back(range.point ? range.begin : simplify(range.begin + Expr(vars.back())));
    }
    if (from.empty()) from.push_back(int_imm(0));
    Stmt copy = store(merge.result.buffer, to, load(merge.combined, from, span), span);
    for (size_t d = vars.size(); d-- > 0;) {
      copy = for_loop(LoopKind::Serial, vars[d], merge.combined->shape[d], copy, span);
    }
    return {alloc(merge.combined, span), exchange, copy};
  }

  /// Iterations become the core's number, and the memory of all cores its part.
  Stmt of_one_core(const Stmt& body) const {
    Substitution numbers;
    for (const Cursor& loop : shared_.loops()) numbers.emplace(shared_.var_of(loop).get(), Expr(core_));
    const auto indices = [](std::vector<Expr> all, const Divided& of) {
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(of.dim));
      if (all.empty()) all.push_back(int_imm(0));
      return all;
    };
    const auto expr = [&](const Expr& e) {
      return rewrite(substitute(e, numbers), [&](const Expr& node) {
        const Load* read = as<Load>(node);
        const Divided* of = read ? shared_.divided(read->buffer.get()) : nullptr;
        return of ? load(of->part, indices(read->indices, *of), node->span) : node;
      });
    };
    return rewrite(
        body,
        [&](const Stmt& s) -> Stmt {
          if (const Alloc* memory = as<Alloc>(s)) {
            const Divided* of = shared_.divided(memory->buffer.get());
            return of ? alloc(of->part, s->span) : s;
          }
          const Store* write = as<Store>(s);
          const Divided* of = write ? shared_.divided(write->buffer.get()) : nullptr;
          if (!of) return s;
          return Stmt(copy_with(*write, [&](Store& out) {
            out.buffer = of->part;
            out.indices = indices(write->indices, *of);
          }));
        },
        expr);
  }

  void add_meaning(Rewrite& out, const std::vector<Ref<const TileOp>>& collectives) const {
    std::string reason;
    const FunctionRef& made = out.edited.function;
    const Kernel& grid = *as<Kernel>(required_at(made, shared_.kernel()));
    CoreMemories memories;  // the only dimension of memory cannot be left out, so that such memory becomes another one
    for (const Divided& of : shared_.memory()) {
      if (of.all->rank() > 1) memories.emplace(of.part.get(), CoreMemory{of.all, of.dim});
    }
    const std::optional<CorePhases> phases = core_phases(grid, shared_.mesh(), memories, reason);
    if (!phases) {
      arguments_.refuse(reason, required_at(f_, shared_.kernel()),
                        "cores combine values of 32 bits or more, where they all run the same loops and branches");
    }
    Ref<Function> meaning = make_ref<Function>(*made);
    meaning->mesh = std::nullopt;
    meaning->body = phases->kernel;
    out.meaning = Meaning{{FunctionRef(meaning), Forwarding()}, {shared_.kernel(), 1}, RegionForm::Program};
    std::unordered_map<const StmtNode*, Cursor> at;
    walk_cursors(*out.meaning->edited.function, [&](const Cursor& place, const Stmt& s) { at.emplace(s.get(), place); });
    std::unordered_map<const StmtNode*, const CorePhases::Member*> members;
    for (const CorePhases::Member& each : phases->members) members.emplace(each.was, &each);
    walk_cursors(required_at(f_, shared_.kernel()), shared_.kernel(), [&](const Cursor& place, const Stmt&) {
      const bool known = !out.pieces.empty() && place.within(out.pieces.back().before);
      const auto holds = [&](const Cursor& loop) { return loop.within(place); };
      if (known || std::any_of(shared_.loops().begin(), shared_.loops().end(), holds)) return;
      const std::optional<Cursor> now = out.edited.forward(place);
      const auto member = now ? members.find(required_at(made, *now).get()) : members.end();
      if (member == members.end()) return;
      const Cursor* loop = shared_.loop_around(place);
      LoopValues values;
      if (loop) values.emplace_back(shared_.var_of(*loop), Expr(member->second->core));
      out.pieces.push_back({place, at.at(member->second->now), values});
    });
    for (size_t n = 0; n < shared_.merges().size(); ++n) {
      const auto is_it = [&](const CorePhases::Combined& each) { return each.was == collectives[n].get(); };
      const auto found = std::find_if(phases->combined.begin(), phases->combined.end(), is_it);
      HELVE_CHECK(found != phases->combined.end(), "a collective that means nothing");
      add_combined(out, shared_.merges()[n], *found, at);
      out.by_value.push_back(phases->memories.at(shared_.merges()[n].combined.get()).all);
    }
    const auto by_value = [&](const BufferRef& was, const BufferRef& now) {
      out.by_value.push_back(was);
      const auto all = phases->memories.find(now.get());
      if (all != phases->memories.end()) out.by_value.push_back(all->second.all);
    };
    for (const BufferRef& each : shared_.own()) by_value(each, each);
    for (const Divided& of : shared_.memory()) {
      if (of.all->rank() == 1) by_value(of.all, of.part);
    }
  }

  /// The coordinates of an element of the merge's result, with those of one element only.
  std::vector<Expr> coordinates(const Merge& merge, const std::vector<VarRef>& at) const {
    std::vector<Expr> out;
    size_t next = 0;
    for (size_t d = 0; d < merge.elements.size(); ++d) {
      out.push_back(has_single_element(merge.combined->shape[d]) ? int_imm(0) : Expr(at[next++]));
    }
    return out;
  }

  void add_combined(Rewrite& out, const Merge& merge, const CorePhases::Combined& loops,
                    const std::unordered_map<const StmtNode*, Cursor>& at) const {
    NestBoxes& nest = *merge.nest;
    const ElementStore& store = nest.stores()[0];
    LoopValues updates{{merge.core, Expr(loops.member)}};
    const std::vector<Expr> updated = coordinates(merge, loops.update_at), filled = coordinates(merge, loops.fill_at);
    for (size_t d = 0; d < merge.elements.size(); ++d) {
      updates.emplace_back(merge.elements[d], simplify(nest.values(store, merge.elements[d]).begin + updated[d]));
    }
    out.pieces.push_back({store.at, at.at(loops.update), updates});
    NestBoxes& filling = *merge.filling;
    const ElementStore& fill = filling.stores()[0];
    const Box box = filling.box(fill, merge.result.buffer, fill.store->indices);
    LoopValues fills;
    size_t var = 0, element = 0;
    for (size_t d = 0; d < box.region.ranges.size(); ++d) {
      const Range& range = merge.result.ranges[d];
      const Expr index = range.point ? range.begin : range.begin + filled[element++];
      if (box.region.ranges[d].point) continue;
      const VarRef& counts = box.vars[var++];
      fills.emplace_back(counts, simplify(filling.values(fill, counts).begin + (index - box.region.ranges[d].begin)));
    }
    out.pieces.push_back({fill.at, at.at(loops.fill), fills});
  }

  const FunctionRef f_;
  const Arguments& arguments_;
  const SharedLoops shared_;
  VarRef core_;
};

}  // namespace

Rewrite share_cores(const FunctionRef& f, const Arguments& arguments) { return CoreProgram(f, arguments).made(); }

}  // namespace helve
