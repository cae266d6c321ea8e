// The primitive that puts a tile operation in the place of a nest of loops: tensorize.
// It finds the operands. Whether the nest does what the operation means is decided by the checker, which compares it
// with the loops that define the operation (analysis/operation_loops.h).
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "helve/analysis/operation_loops.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"
#include "nest_boxes.h"
#include "plain_update.h"

namespace helve {

namespace {

/// An operation with what its loops run of the nest: for each variable of the loops, as operation_loops has them, that
/// of the nest; and for each of its parts, the store of the nest.
struct Found {
  Ref<const TileOp> op;
  bool swapped = false;
  std::vector<VarRef> vars;
  std::vector<const ElementStore*> parts;
  std::vector<VarRef> single = {};  ///< of the nest, of one value each, for which the loops have no dimension
  std::vector<VarRef> whole = {};  ///< those that run to the end of their loops, whatever branches say
};

Ref<const TileOp> operation(TileOpcode op, std::vector<TileOperand> operands, const Span& span) {
  return Ref<const TileOp>(as<TileOp>(tile_op(op, std::move(operands), span)));
}

const Load* load_below_casts(Expr e) {
  while (const Cast* cast = as<Cast>(e)) e = cast->value;
  return as<Load>(e);
}

bool holds(const std::vector<VarRef>& vars, const VarRef& var) {
  return std::find(vars.begin(), vars.end(), var) != vars.end();
}

class Operands {
 public:
  Operands(NestBoxes& nest, const Arguments& arguments)
      : nest_(nest), arguments_(arguments), tail_is_whole_(arguments.text(2) == "whole") {}

  Found run(TileOpcode op) {
    Found out = found(op);
    out.whole = whole_;
    return out;
  }

 private:
  Found found(TileOpcode op) {
    switch (op) {
      case TileOpcode::Gemm: return gemm();
      case TileOpcode::Copy: return copy();
      case TileOpcode::Fill: return fill();
      default: return reduction(op);
    }
  }

  [[noreturn]] void refuse(const std::string& reason, const ElementStore& at, std::string help) const {
    arguments_.refuse(reason, Stmt(at.store), std::move(help));
  }

  /// The store that computes the result, and the one before it that clears it, if there is one.
  const ElementStore& last(size_t most) const {
    const std::vector<ElementStore>& all = nest_.stores();
    if (all.empty() || all.size() > most) {
      arguments_.refuse(fmt::format("the nest has {} stores", all.size()), nest_.stmt(),
                        "divide it by fission(), and name the nest of one operation");
    }
    return all.back();
  }
  const ElementStore* first() const { return nest_.stores().size() == 2 ? &nest_.stores().front() : nullptr; }

  Box target(const ElementStore& s) {
    if (tail_is_whole_ && whole_.empty()) whole_ = nest_.box(s, s.store->buffer, s.store->indices).vars;
    return nest_.box(s, s.store->buffer, s.store->indices, whole_);
  }
  /// After the target, whose dimensions are those that may be whole.
  Box source(const ElementStore& s, const Load& load) {
    return nest_.box(s, BufferRef(&buffer_of(load.buffer)), load.indices, whole_);
  }

  /// The value that an update combines with its element; of `C = C + x` it is x.
  static Expr term(const ElementStore& s) { return as<Store>(plain_update(Stmt(s.store)))->value; }

  /// The store is a part of the operation; its variables are among the first `count`.
  void add(Found& found, const ElementStore& s, size_t count) const {
    const std::vector<VarRef> known(found.vars.begin(), found.vars.begin() + static_cast<std::ptrdiff_t>(count));
    for (const VarRef& var : s.vars) {
      if (holds(known, var) || holds(found.single, var)) continue;
      refuse(fmt::format("'{}' is none of the operation's dimensions", var->name), s,
             "name the loop inside, and leave the others around the operation");
    }
    found.parts.push_back(&s);
  }

  Found gemm() {
    const ElementStore& s = last(2);
    const Expr value = term(s);
    const Apply* product = as_op(value, Op::Mul);
    const Load *left = product ? load_below_casts(product->args[0]) : nullptr,
               *right = product ? load_below_casts(product->args[1]) : nullptr;
    if (!left || !right) {
      refuse("a matrix product adds products of two elements", s,
             "write T.update(C[i, j], A[i, k] * B[k, j], \"add\")");
    }
    const Box c = target(s);
    Box a = source(s, *left), b = source(s, *right);
    const bool matrices = c.vars.size() == 2 && a.vars.size() == 2 && b.vars.size() == 2;
    const bool swapped = matrices && !holds(a.vars, c.vars[0]);
    if (swapped) std::swap(a, b);
    const bool rows = matrices && holds(a.vars, c.vars[0]) && holds(b.vars, c.vars[1]);
    const VarRef depth = rows ? a.vars[a.vars[0] == c.vars[0] ? 1 : 0] : VarRef();
    if (!depth || !holds(b.vars, depth) || depth == c.vars[1]) {
      refuse("it is no product of matrices C[m, n] += A[m, k] * B[k, n]", s,
             "name the loops over m, n and k; A and B may be transposed");
    }
    const bool transpose_a = a.vars[0] == depth, transpose_b = b.vars[1] == depth;
    Found out{operation(TileOpcode::Gemm,
                        {a.region, b.region, c.region, transpose_a, transpose_b, first() != nullptr, std::string()},
                        s.store->span),
              swapped,
              {c.vars[0], c.vars[1], depth},
              {}};
    if (first()) add(out, *first(), out.vars.size() - 1);
    add(out, s, out.vars.size());
    return out;
  }

  Found copy() {
    const ElementStore& s = last(1);
    const Load* from = s.store->is_update() ? nullptr : load_below_casts(s.store->value);
    if (!from) refuse("the statement does not copy an element", s, "name a nest such as A[i, j] = B[i, j]");
    const Box dst = target(s);
    const Box src = source(s, *from);
    if (src.vars != dst.vars) {
      refuse("dimensions of source and destination are not in one order", s,
             "T.copy neither transposes nor broadcasts; name a loop inside");
    }
    Found out{operation(TileOpcode::Copy, {src.region, dst.region}, s.store->span), false, {}, {}};
    const std::vector<Expr> shape = dst.region.shape();
    for (size_t d = 0; d < dst.vars.size(); ++d) {  // copies match regions without dimensions of extent 1
      const int64_t* extent = int_value(shape[d]);
      (extent && *extent == 1 ? out.single : out.vars).push_back(dst.vars[d]);
    }
    add(out, s, out.vars.size());
    return out;
  }

  Found fill() {
    const ElementStore& s = last(1);
    const Box dst = target(s);
    for (const VarRef& var : s.vars) {
      if (s.store->is_update() || mentions(s.store->value, var.get())) {
        refuse("the statement does not store one value to all elements", s, "name a nest such as A[i, j] = 0.0");
      }
    }
    Found out{operation(TileOpcode::Fill, {dst.region, s.store->value}, s.store->span), false, dst.vars, {}};
    add(out, s, out.vars.size());
    return out;
  }

  Found reduction(TileOpcode op) {
    const ElementStore& s = last(2);
    Expr value = term(s);
    const Apply* magnitude = as_op(value, Op::Abs);
    if (magnitude && reduce_kind(op) == ReduceKind::AbsMax) value = magnitude->args[0];
    const Load* from = load_below_casts(value);
    if (!from) {
      refuse("a reduction combines elements of one buffer", s,
             "write T.update(S[i], A[i, k], op), op as the operation");
    }
    Box dst = target(s);
    const Box src = source(s, *from);
    // The only element of a buffer is all of it, which a block may hold in registers.
    const int64_t* extent = s.store->buffer->rank() == 1 ? int_value(s.store->buffer->shape[0]) : nullptr;
    if (extent && *extent == 1 && dst.vars.empty() && src.vars.size() == 1) dst.region = whole_region(s.store->buffer);
    std::vector<VarRef> rest = src.vars;
    std::erase_if(rest, [&](const VarRef& var) { return holds(dst.vars, var); });
    const VarRef reduced = rest.size() == 1 ? rest[0] : VarRef();
    std::vector<VarRef> all = dst.vars;
    const int64_t place = std::find(src.vars.begin(), src.vars.end(), reduced) - src.vars.begin();
    const int64_t dim = place + 1 == static_cast<int64_t>(src.vars.size()) ? -1 : place;  // as programs have it
    std::vector<VarRef> kept = src.vars;
    std::erase(kept, reduced);
    if (!reduced || kept != dst.vars) {
      refuse("it does not reduce one dimension and keep the order of the others", s,
             "name the loops over the elements of one result, or the one that is reduced");
    }
    all.push_back(reduced);
    Found out{operation(op, {src.region, dst.region, dim, first() != nullptr}, s.store->span), false, all, {}};
    if (first()) add(out, *first(), out.vars.size() - 1);
    add(out, s, out.vars.size());
    return out;
  }

  NestBoxes& nest_;
  const Arguments& arguments_;
  const bool tail_is_whole_;
  std::vector<VarRef> whole_;
};

/// The words of the primitive, which are the names of operations.
TileOpcode opcode_of(const std::string& word) {
  const auto row = std::find_if(tile_op_rows().begin(), tile_op_rows().end(),
                                [&](const TileOpRow& each) { return each.python == word; });
  HELVE_CHECK(row != tile_op_rows().end(), "a word that is no tile operation");
  return row->op;
}

/// What the loops of the operation run: the nest's store at the begin of its values and so many further.
void add_pieces(Rewrite& out, const Found& found, const OperationLoops& loops, NestBoxes& nest,
                const FunctionRef& meant, const Block& place) {
  size_t part = 0;
  for (size_t n = 0; n < loops.parts.size(); ++n) {
    if (loops.parts[n].pads) continue;
    const ElementStore& was = *found.parts.at(part++);
    LoopValues values;
    for (const VarRef& var : was.vars) {
      if (holds(found.single, var)) {
        values.emplace_back(var, nest.values(*found.parts.back(), var).begin);
        continue;
      }
      const size_t dim = static_cast<size_t>(std::find(found.vars.begin(), found.vars.end(), var) - found.vars.begin());
      const Expr at = Expr(loops.parts[n].vars.at(dim));
      values.emplace_back(var, simplify(nest.values(*found.parts.back(), var).begin + at));
    }
    const Cursor root = place.first.at(place.first.position() + n);
    walk_cursors(statement_at(*meant, root), root, [&](const Cursor& at, const Stmt& s) {
      if (as<Store>(s)) out.pieces.push_back({was.at, at, values});
    });
  }
}

/// The same with stores of their own, which are found by their nodes.
Stmt with_own_stores(const Stmt& s) {
  return rewrite(renewed(s), [](const Stmt& each) {
    const Store* n = as<Store>(each);
    return n ? Stmt(copy_with(*n, [](Store&) {})) : each;
  });
}

/// The loops of a part, as far as the nest runs; with `both`, what they run beyond that stands in a branch of its own.
Stmt loops_of(const OperationLoops::Part& part, const Expr& runs, bool both) {
  const For* loop = as<For>(part.loop);
  if (!runs || !loop) return part.loop;
  return Stmt(copy_with(*loop, [&](For& out) {
    out.body = if_then(runs, loop->body, both ? with_own_stores(loop->body) : Stmt(), loop->span);
  }));
}

/// Where the nest runs the instance of the operation; null if that is everywhere.
Expr runs_in_nest(const Found& found, const OperationLoops::Part& part, NestBoxes& nest) {
  std::vector<Expr> all;
  for (size_t d = 0; d < part.vars.size(); ++d) {
    if (!holds(found.whole, found.vars[d])) continue;
    const Expr extent = nest.values(*found.parts.back(), found.vars[d]).extent;
    if (same_expr(extent, nest.whole_values(*found.parts.back(), found.vars[d]).extent)) continue;
    all.push_back(less(Expr(part.vars[d]), extent));
  }
  return all.empty() ? Expr() : chain(Op::And, all);
}

/// The function with all that the operation does, and the stores that the nest does not run.
std::optional<Unseen> unseen_of(const FunctionRef& f, const Cursor& at, const std::vector<Stmt>& parts) {
  Unseen out{replace(f, {at, 1}, parts).function, {}};
  for (size_t n = 0; n < parts.size(); ++n) {
    const For* loop = as<For>(parts[n]);
    const If* branch = loop ? as<If>(loop->body) : nullptr;
    if (!branch || !branch->else_body) continue;
    const Cursor root = at.at(at.position() + n).child("body", 0).child("else_body", 0);
    walk_cursors(statement_at(*out.function, root), root, [&](const Cursor& each, const Stmt& s) {
      if (as<Store>(s)) out.stores.push_back(each);
    });
  }
  if (out.stores.empty()) return std::nullopt;
  return out;
}

}  // namespace

/// tensorize(i, "gemm"): `for i in serial(4): for j in serial(8): for k in serial(7): update(C[i, j], A[i, k] * B[k,
/// j], "add")` becomes `gemm(A[0:4, 0:7], B[0:7, 0:8], C[0:4, 0:8])`. With the tail "whole", dimensions of the result
/// are as long as their loops, whose branches may cut them off: what is computed behind that must be unseen.
Rewrite tensorize_loops(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  if (!as<For>(required_at(f, at))) {
    arguments.refuse("the statement is no loop over a range", required_at(f, at), "give the outermost loop of a nest");
  }
  NestBoxes nest(f, at, arguments);
  const Found found = Operands(nest, arguments).run(opcode_of(arguments.text(1)));
  const std::optional<OperationLoops> loops = operation_loops(*found.op, found.swapped);
  if (!loops) {
    arguments.refuse("which dimensions of the regions match is known at the call only", required_at(f, at),
                     "split() the loops by constants");
  }
  std::vector<Stmt> meaning, all;
  for (const OperationLoops::Part& part : loops->parts) {
    const Expr runs = runs_in_nest(found, part, nest);
    meaning.push_back(loops_of(part, runs, false));
    all.push_back(loops_of(part, runs, true));
  }
  Rewrite out{replace(f, {at, 1}, {Stmt(found.op)}), {at, 1}, {at, 1}, {}, {}, {at}};
  out.meaning = Meaning{replace(f, {at, 1}, meaning), {at, meaning.size()}};
  add_pieces(out, found, *loops, nest, out.meaning->edited.function, out.meaning->place);
  out.unseen = unseen_of(f, at, all);
  return out;
}

}  // namespace helve
