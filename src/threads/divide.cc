// Loops over elements as the program of one thread.
// Before:  for i, j in T.Parallel(4, 256): x[i, j] = A[b, i, j] * 2.0           (x a fragment, 128 threads)
// After:   for tx in T.threads(128):
//              for r in T.unroll(4):
//                  for v in T.vectorized(2): x_1[tx, r * 2 + v] = A[b, r, tx * 2 + v] * 2.0
// If several threads hold copies of one iteration, all compute it and the first of them stores to memory.
#include "helve/threads/divide.h"

#include <algorithm>

#include "digits.h"
#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

const ThreadLayout* DividedKernel::registers_of(const Buffer& buffer) const {
  auto it = layouts.registers.find(&buffer);
  return it == layouts.registers.end() ? nullptr : &it->second;
}

Expr DividedKernel::place(const Expr& e) const {
  return rewrite(e, [&](const Expr& node) -> Expr {
    const Load* l = as<Load>(node);
    if (!l) return node;
    auto it = buffers.find(&buffer_of(l->buffer));
    if (it == buffers.end() || it->second.buffer.get() == &buffer_of(l->buffer)) return node;
    HELVE_CHECK(!it->second.registers, "a register is read outside of the loops over elements");
    return load(it->second.buffer, l->indices, l->span);
  });
}

Stmt thread_loop(int64_t threads, const std::function<Stmt(const Expr&)>& body, Span span) {
  const VarRef tx = make_var("tx");
  return for_loop(LoopKind::Thread, tx, int_imm(threads), body(Expr(tx)), span);
}

namespace {

/// The body of one loop with fragments as registers.
class ElementBody {
 public:
  ElementBody(const ElementLoop& loop, const ThreadLayout& layout, const DividedKernel& kernel, const Digits& digits,
              const Expr& tx, const Expr& first)
      : loop_(loop), layout_(layout), kernel_(kernel), digits_(digits), tx_(tx), first_(first) {}

  Stmt run() const {
    const Stmt placed = rewrite(
        loop_.body, [&](const Stmt& s) { return statement(s); },
        [&](const Expr& e) { return rewrite(e, [&](const Expr& node) { return element(node); }); });
    Substitution values;
    for (size_t d = 0; d < loop_.vars.size(); ++d) values.emplace(loop_.vars[d].get(), digits_.coords()[d]);
    return substitute(placed, values);
  }

 private:
  /// The dimensions of the loop that index a buffer in registers.
  std::vector<int> dims_of(const Buffer& buffer, const std::vector<Expr>& indices) const {
    std::optional<std::vector<int>> dims = element_dims(loop_, buffer, indices);
    HELVE_CHECK(dims, "an access to registers is not the element of its loop's iteration");
    return std::move(*dims);
  }

  std::vector<Expr> register_at(const Buffer& buffer, const std::vector<int>& dims) const {
    return {tx_, digits_.register_of(*kernel_.registers_of(buffer), dims)};
  }

  const PlacedBuffer* placed(const Buffer& buffer) const {
    auto it = kernel_.buffers.find(&buffer);
    return it == kernel_.buffers.end() ? nullptr : &it->second;
  }

  Expr element(const Expr& node) const {
    const Load* l = as<Load>(node);
    if (!l) return node;
    const Buffer& buffer = buffer_of(l->buffer);
    const PlacedBuffer* place = placed(buffer);
    if (!place) return node;
    if (!place->registers) return load(place->buffer, l->indices, l->span);
    return load(place->buffer, register_at(buffer, dims_of(buffer, l->indices)), l->span);
  }

  Stmt statement(const Stmt& s) const {
    if (as<TileOp>(s)) return operation(s);
    if (as<Report>(s)) return first_ ? if_then(first_, s) : s;
    const Store* n = as<Store>(s);
    if (!n) return s;
    const PlacedBuffer* place = placed(*n->buffer);
    if (place && place->registers) {
      const std::vector<int> dims = dims_of(*n->buffer, n->indices);
      HELVE_CHECK(layout_.divides_only(dims),
                  "not all threads that hold an element of '" + n->buffer->name + "' execute its store");
      return store(place->buffer, register_at(*n->buffer, dims), n->value, s->span, n->mode);
    }
    const Stmt moved = place ? Stmt(copy_with(*n, [&](Store& out) { out.buffer = place->buffer; })) : s;
    HELVE_CHECK(!n->previous || !first_, "several threads name what one atomic update found");
    const bool shared = place || n->buffer->scope != MemoryScope::Local;
    return first_ && shared ? if_then(first_, moved) : moved;
  }

  /// The operation with operands in memory.
  Stmt operation(const Stmt& s) const {
    BufferMap moved;
    for (const auto& [buffer, place] : kernel_.buffers) {
      if (!place.registers) moved.emplace(buffer, place.buffer);
    }
    const Stmt out = replace_buffers(s, moved);
    return first_ ? if_then(first_, out) : out;
  }

  const ElementLoop& loop_;
  const ThreadLayout& layout_;
  const DividedKernel& kernel_;
  const Digits& digits_;
  Expr tx_;
  Expr first_;
};

bool uses_registers(const Stmt& body, const DividedKernel& kernel) {
  const std::vector<ElementUse> uses = element_uses(body);
  return std::any_of(uses.begin(), uses.end(),
                     [&](const ElementUse& use) { return kernel.registers_of(*use.buffer) != nullptr; });
}

Stmt divide(const ElementLoop& loop, const ThreadLayout& layout, const DividedKernel& kernel, const Facts& facts,
            const Span& span) {
  return thread_loop(
      kernel.threads,
      [&](const Expr& tx) {
        Facts known = facts;
        known.bind_loop(VarRef(as<Var>(tx)), int_imm(0), int_imm(kernel.threads));
        const Digits digits(layout, loop.extents, tx, known);
        const Expr first = is_first_replica(layout, tx, kernel.threads);
        // Without registers, copies of an iteration are not needed.
        const bool together = uses_registers(loop.body, kernel);
        const Stmt body = ElementBody(loop, layout, kernel, digits, tx, together ? first : Expr()).run();
        const Stmt all = digits.nest(body, true);
        return first && !together ? if_then(first, all) : all;
      },
      span);
}

}  // namespace

Stmt divide_loop(const For& loop, const DividedKernel& kernel, const Facts& facts) {
  ElementLoop flat = element_loop(loop);
  for (Expr& e : flat.extents) e = kernel.place(e);
  return divide(flat, kernel.layout_of(loop), kernel, facts, loop.span);
}

Stmt divide_store(const Stmt& store, const DividedKernel& kernel, const Facts& facts) {
  return divide_store(store, store, kernel, facts);
}

Stmt divide_store(const Stmt& store, const Stmt& body, const DividedKernel& kernel, const Facts& facts) {
  return divide({{}, {}, body}, kernel.layout_of(*store), kernel, facts, store->span);
}

}  // namespace helve
