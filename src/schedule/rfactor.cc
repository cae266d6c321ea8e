// The primitive rfactor: iterations of a loop reduce to partial results of their own, which are merged afterwards.
// It builds memory, fills and merges; that each update counts once, and in time, is for the checker.
#include <fmt/format.h>

#include <algorithm>

#include "footprint.h"
#include "helve/analysis/access.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"

namespace helve {

namespace {

/// What a loop reduces.
struct Reduced {
  BufferRef buffer;
  StoreMode mode;
  std::vector<const Store*> updates;
};

/// "T.update(C[i], ..., "add")" for `C[i] = C[i] + x`.
std::string update_text(const Store& store) {
  const std::optional<Op> op = combination(update_of(store));
  std::string element = store.buffer->name;
  for (const StoreMode mode : {StoreMode::Add, StoreMode::Mul, StoreMode::Max, StoreMode::Min}) {
    if (op != combining_operator(mode)) continue;
    std::vector<std::string> at;
    for (const Expr& e : store.indices) at.push_back(brief_text(e));
    return fmt::format("T.update({}[{}], ..., \"{}\")", element, fmt::join(at, ", "), to_string(mode));
  }
  return {};
}

bool is_allocated_in(const Stmt& s, const Buffer& buffer) {
  bool found = false;
  walk(s, [&](const Stmt& each) {
    const Alloc* n = as<Alloc>(each);
    found |= n && n->buffer.get() == &buffer;
  });
  return found;
}

/// The one buffer that the loop reduces by one operator.
Reduced reduced_by(const Stmt& loop, const Arguments& arguments) {
  std::optional<Reduced> out;
  const Store* ordered = nullptr;
  walk(loop, [&](const Stmt& s) {
    const Store* store = as<Store>(s);
    if (!store || is_allocated_in(loop, *store->buffer)) return;
    const std::optional<Reduction> reduction = reduction_of(*store);
    if (!reduction) {
      if (!update_text(*store).empty()) ordered = store;
      return;
    }
    if (!out) out = Reduced{store->buffer, reduction->mode, {}};
    if (out->buffer != store->buffer || out->mode != reduction->mode) {
      arguments.refuse("the loop has several reductions", s, "give each a loop of its own by fission() first");
    }
    out->updates.push_back(store);
  });
  if (ordered) {
    const std::string& name = ordered->buffer->name;
    const bool rounds = ordered->buffer->dtype.is_float();
    arguments.refuse(
        rounds ? fmt::format("updates of '{}' keep their order, since rounding depends on it", name)
               : fmt::format("the store to '{}' is no update by one operator", name),
        Stmt(ordered),
        rounds ? fmt::format("write {}, if any order will do", update_text(*ordered))
               : fmt::format("write {} with the term, of the other sign for a difference", update_text(*ordered)));
  }
  if (!out) arguments.refuse("the loop updates nothing", loop, "name a loop around a T.update");
  for (const Store* store : out->updates) {
    for (const Expr& index : store->indices) {
      if (mentions(index, as<For>(loop)->vars[0].get())) {
        arguments.refuse(
            fmt::format("the subscript {} of '{}' depends on the loop", brief_text(index), out->buffer->name),
            Stmt(store), "name a loop over which an element is reduced");
      }
    }
  }
  return *out;
}

/// Does the statement use the buffer in another way than to reduce it by the operator?
bool uses_otherwise(const Stmt& s, const Reduced& what) {
  const AccessModel model = access_model(s);
  return std::any_of(model.accesses.begin(), model.accesses.end(), [&](const Access& access) {
    if (access.buffer != what.buffer) return false;
    const Store* store = access.stmt->kind == StmtKind::Store ? static_cast<const Store*>(access.stmt) : nullptr;
    const std::optional<Reduction> reduction = store ? reduction_of(*store) : std::nullopt;
    return !reduction || store->buffer != what.buffer || reduction->mode != what.mode ||
           (!access.write && access.load != reduction->old);
  });
}

/// The outermost loop around `loop`, or that itself, that reduces elements, as long as nothing else is done with them.
Cursor reduction_around(const FunctionRef& f, const Cursor& loop, const Reduced& what) {
  Cursor out = loop, at = loop;
  while (at.has_parent()) {
    at = at.parent();
    const Stmt s = required_at(f, at);
    const For* outer = as<For>(s);
    const If* branch = as<If>(s);
    if ((!outer && !(branch && !branch->else_body)) || (outer && outer->loop == LoopKind::Thread)) break;
    if (is_allocated_in(s, *what.buffer) || uses_otherwise(s, what)) break;
    const bool reduces = outer && std::none_of(what.updates.begin(), what.updates.end(), [&](const Store* store) {
                           return std::any_of(store->indices.begin(), store->indices.end(), [&](const Expr& e) {
                             return std::any_of(outer->vars.begin(), outer->vars.end(),
                                                [&](const VarRef& v) { return mentions(e, v.get()); });
                           });
                         });
    if (reduces) out = at;
  }
  return out;
}

/// A dimension of the partial results: of the loop's iterations, or of one of the buffer.
struct Dimension {
  std::optional<size_t> of;  ///< the buffer's
  Expr begin, extent;
  int64_t most;
};

/// Partial results: their memory, and what its subscripts count.
struct Partials {
  BufferRef memory;
  std::vector<Dimension> dims;
  Footprint box;
};

/// The widest dtype in which one of the updates combines its value.
DType partial_dtype_of(const Reduced& what) {
  DType out = what.buffer->dtype;
  for (const Store* store : what.updates) {
    const DType each = partial_dtype(what.mode, what.buffer->dtype, reduction_of(*store)->operand->dtype);
    if (each.bits > out.bits) out = each;
  }
  return out;
}

/// Is a loop inside of this one over elements of the buffer?
bool holds_loop_over_elements(const Stmt& loop, const Reduced& what) {
  bool found = false;
  walk(loop, [&](const Stmt& s) {
    const For* inner = as<For>(s);
    if (!inner || s == loop) return;
    for (const Store* store : what.updates) {
      for (const Expr& e : store->indices) {
        for (const VarRef& var : inner->vars) found |= mentions(e, var.get());
      }
    }
  });
  return found;
}

Partials partials_of(const FunctionRef& f, const Arguments& arguments, const Cursor& around, const Reduced& what) {
  const Stmt loop = required_at(f, arguments.cursor(0));
  const For& range = *as<For>(loop);
  const int64_t* extent = int_value(range.extents[0]);
  if (!extent) {
    arguments.refuse(fmt::format("the extent {} of the loop is no constant", brief_text(range.extents[0])), loop,
                     "split() the loop by a constant first, and name the inner one");
  }
  const FootprintResult found = footprint(f, around, *what.buffer);
  if (!found.box) arguments.refuse(found.reason, loop, "name a loop whose subscripts are affine");
  Partials out{{}, {}, *found.box};
  const Dimension iterations{{}, range.begins[0], range.extents[0], std::max<int64_t>(*extent, 0)};
  // The innermost loop has the last dimension, so that lanes are neighbours.
  const bool first = holds_loop_over_elements(loop, what);
  if (first) out.dims.push_back(iterations);
  for (size_t d = 0; d < what.buffer->rank(); ++d) {
    const Expr& size = out.box.extent[d];
    const int64_t* number = int_value(size);
    if (number && *number == 1) continue;
    if (!out.box.most[d]) {
      arguments.refuse(
          fmt::format("the extent {} of dimension {} of '{}' is no constant", brief_text(size), d, what.buffer->name),
          required_at(f, around), "split() the loop by a constant, or name a loop inside of it as 'around'");
    }
    out.dims.push_back({d, out.box.begin[d], size, *out.box.most[d]});
  }
  if (!first) out.dims.push_back(iterations);
  std::vector<Expr> shape;
  for (const Dimension& dim : out.dims) shape.push_back(int_imm(dim.most));
  const std::string& scope = arguments.text(2);
  const std::string name = fresh_var(f, fmt::format("{}_{}", what.buffer->name, scope))->name;
  out.memory = make_buffer(name, partial_dtype_of(what), memory_named(scope), shape, {}, {}, loop->span);
  return out;
}

/// Does each partial result get one update, which no branch guards? Every loop around the update is then a dimension.
bool is_updated_once(const Stmt& around, const Stmt& loop, const Reduced& what, const Partials& partials) {
  if (what.updates.size() != 1) return false;
  std::vector<VarRef> vars;
  Stmt s = around;
  for (; const For* each = as<For>(s); s = each->body) {
    const bool iterates = each->vars.size() == 1 && int_value(each->extents[0]) && block_of(each->body).size() == 1;
    if (!iterates) return false;
    if (s != loop) vars.push_back(each->vars[0]);
  }
  if (as<Store>(s) != what.updates[0]) return false;
  for (const Dimension& dim : partials.dims) {
    if (!dim.of) continue;
    const Expr& index = what.updates[0]->indices[*dim.of];
    const auto var = std::find_if(vars.begin(), vars.end(), [&](const VarRef& v) { return mentions(index, v.get()); });
    const auto is_fixed = [&](const Expr& e) {
      return std::none_of(vars.begin(), vars.end(), [&](const VarRef& v) { return mentions(e, v.get()); });
    };
    if (var == vars.end() || !is_fixed(simplify(index - Expr(*var)))) return false;
    vars.erase(var);
  }
  return vars.empty();
}

/// Updates below the loop with the variable become those of partial results, or what these are.
Stmt redirected(const Stmt& s, const StmtNode* loop, bool inside, const Reduced& what, const Partials& partials,
                const Expr& iteration, bool once) {
  const bool here = inside || s.get() == loop;
  const Store* store = as<Store>(s);
  if (!store) {
    return map_parts(
        s, [](const Expr& e) { return e; },
        [&](const Stmt& part) { return redirected(part, loop, here, what, partials, iteration, once); });
  }
  if (!here || std::find(what.updates.begin(), what.updates.end(), store) == what.updates.end()) return s;
  std::vector<Expr> at;
  for (const Dimension& dim : partials.dims) {
    at.push_back(simplify(simplify(dim.of ? store->indices[*dim.of] : iteration) - dim.begin));
  }
  const Expr value = reduction_of(*store)->operand;
  return once ? Stmt(helve::store(partials.memory, at, value, s->span))
              : update(partials.memory, at, value, what.mode, s->span);
}

/// Loops over the partial results, each of which fills one, or merges it into its element.
Stmt for_each_partial(const FunctionRef& f, const Reduced& what, const Partials& partials, bool merge,
                      const Span& span) {
  std::vector<VarRef> vars;
  std::vector<Expr> cell, element = partials.box.begin;
  for (size_t d = 0; d < partials.dims.size(); ++d) {
    vars.push_back(fresh_var(f, fmt::format("{}{}", merge ? "v" : "w", d)));
    cell.emplace_back(vars.back());
    if (const auto of = partials.dims[d].of) element[*of] = simplify(element[*of] + cell.back());
  }
  Stmt out = merge ? update(what.buffer, element, load(partials.memory, cell), what.mode, span)
                   : store(partials.memory, cell, identity_imm(what.mode, partials.memory->dtype), span);
  for (size_t d = vars.size(); d-- > 0;) {
    out = for_loop(LoopKind::Serial, vars[d], partials.dims[d].extent, out, span);
  }
  return out;
}

/// The launch around a statement.
Cursor launch_around(const FunctionRef& f, Cursor at) {
  while (at.has_parent() && !as<Kernel>(required_at(f, at))) at = at.parent();
  return at;
}

}  // namespace

/// rfactor(ki): `for ko: for ki in serial(4): update(C[0], S)` becomes `W = alloc_local(4)`, a loop with `W[w0] = 0`,
/// `for ko: for ki in serial(4): update(W[ki], S)` and a loop with `update(C[0], W[v0])`. Without the loop `ko`,
/// `W[ki] = S` is all of a partial result. Global memory is allocated in front of the launch, so that fission() may
/// give partial results a launch of their own.
Rewrite factor_reduction(const FunctionRef& f, const Arguments& arguments) {
  const Cursor inner = arguments.cursor(0);
  const For& range = arguments.loop(f, inner);
  const Stmt loop = required_at(f, inner);
  const std::vector<Cursor>& named = arguments.cursors(1);
  if (named.size() > 1) arguments.refuse("several statements are named as 'around'", loop, "name one");
  const Reduced what = reduced_by(loop, arguments);
  const Cursor at = named.empty() ? reduction_around(f, inner, what) : named[0];
  const Stmt around = required_at(f, at);
  if (!inner.within(at)) arguments.refuse("the loop is not inside of 'around'", around, "name a loop around it");
  require_outside(arguments, around, *what.buffer);
  const Partials partials = partials_of(f, arguments, at, what);
  const bool once = is_updated_once(around, loop, what, partials);
  Edited edited = revise(f, at, redirected(around, loop.get(), false, what, partials, Expr(range.vars[0]), once));
  const Stmt merge = for_each_partial(f, what, partials, true, around->span);
  edited = edited.then(insert(edited.function, at.at(at.position() + 1), {merge}));
  const Stmt memory = alloc(partials.memory, around->span);
  const bool global = partials.memory->scope == MemoryScope::Global;
  std::vector<Stmt> first;
  if (!global) first.push_back(memory);
  if (!once) first.push_back(for_each_partial(f, what, partials, false, around->span));
  if (!first.empty()) edited = edited.then(insert(edited.function, at, first));
  Rewrite out{edited, {at, 1}, {at, first.size() + 2}, {}, {}, {}};
  for (size_t n = global ? 0 : 1; n < first.size() + 2; ++n) out.results.push_back(at.at(at.position() + n));
  if (!global) return out;
  const Cursor launch = launch_around(f, at);
  const Edited outside = insert(edited.function, launch, {memory});
  for (Cursor& each : out.results) each = *outside.forward(each);
  return {edited.then(outside), {launch, 1}, {launch, 2}, {}, {}, out.results};
}

}  // namespace helve
