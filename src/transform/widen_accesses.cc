// Lanes access memory together, as vectors.
// Input: the program of the threads of a block. Output: the same; loads and stores that all lanes of a vectorized loop
// make, of elements that follow one another at an address that is proved to be aligned, have a width: reads come before
// the lanes, the write after them. A condition that is equal for all lanes stands around their loop.
// Before:  for v in T.vectorized(4):
//              B[b, tx * 4 + v] = A[b, tx * 4 + v] * I[v]          # A, B: 64 float32 a row, I: int32 of another tensor
// After:   for v in T.vectorized(4):
//              T.store_vector(B[b, tx * 4 + v], T.load_vector(A[b, tx * 4 + v], 16) * T.load_vector(I[v], 16), 16)
// A copy between memory and packed registers (place_arrays) has a width on both sides, and so has a store that rounds
// floats to packed registers, two to a word. Widths of tensors demand that
// their bases are aligned so (analysis/base_alignment.h); calls of other tensors take narrow_accesses.
#include "lane_accesses.h"

#include <algorithm>
#include <unordered_set>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

constexpr int64_t kLoopLanes = 64;

/// The body with widths.
class Widths {
 public:
  explicit Widths(const std::unordered_map<const Object*, VectorWidth>& widths) : widths_(widths) {}

  Stmt operator()(const Stmt& s) {
    const Stmt out =
        map_parts(s, [&](const Expr& e) { return expression(e); }, [&](const Stmt& part) { return (*this)(part); });
    const auto found = widths_.find(s.get());
    if (found == widths_.end()) return out;
    return Stmt(copy_with(*as<Store>(out), [&](Store& store) {
      store.width = found->second.width;
      store.indices = found->second.indices;
    }));
  }

 private:
  Expr expression(const Expr& e) {
    if (const auto known = done_.find(e.get()); known != done_.end()) return known->second;
    Expr out = map_children(e, [&](const Expr& child) { return expression(child); });
    if (const auto found = widths_.find(e.get()); found != widths_.end()) {
      const Load& load = *as<Load>(e);
      out = load_vector(load.buffer, found->second.indices, found->second.width, load.span);
    }
    return done_[e.get()] = out;
  }

  const std::unordered_map<const Object*, VectorWidth>& widths_;
  std::unordered_map<const ExprNode*, Expr> done_;
};

/// The value before the store's conversion.
const Expr& stored(const Store& s) {
  const Cast* cast = as<Cast>(s.value);
  return cast && cast->dtype == s.buffer->dtype ? cast->value : s.value;
}

class Widening final : public ScopedRewriter {
 public:
  Widening(const Function& f, const Machine& machine)
      : ScopedRewriter(f), may_alias_(f.may_alias), widest_(machine.vector_bytes) {
    walk(f.body, [&](const Stmt& s) {
      const For* loop = as<For>(s);
      if (loop && loop->loop == LoopKind::Thread) threads_.insert(loop->vars[0].get());
    });
  }

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    return loop && loop->loop == LoopKind::Vectorized ? widened(s, *loop, facts) : s;
  }

 private:
  Stmt widened(const Stmt& self, const For& loop, const Facts& facts) const {
    const If* guard = as<If>(loop.body);
    if (guard && !mentions(guard->condition, loop.vars[0].get()) && !has_load(guard->condition)) {
      const auto lanes_of = [&](const Stmt& body, const Expr& holds) {
        if (!body) return Stmt();
        Facts inner = facts;
        inner.assume(holds);
        const Stmt lanes =
            for_loop(loop.loop, loop.vars, loop.begins, loop.extents, body, 1, loop.span, loop.scheduled);
        return widened(lanes, *as<For>(lanes), inner);
      };
      return if_then(guard->condition, lanes_of(guard->then_body, guard->condition),
                     lanes_of(guard->else_body, apply(Op::Not, {guard->condition})), guard->span);
    }
    const int64_t* lanes = int_value(loop.extents[0]);
    if (!lanes || *lanes < 2 || *lanes > kLoopLanes) return self;
    std::unordered_map<const Object*, VectorWidth> widths = packed_move(loop, facts);
    if (widths.empty()) widths = packed_rounding(loop, facts);
    if (widths.empty()) widths = vector_widths(loop, facts, may_alias_, widest_);
    if (widths.empty()) return self;
    return Stmt(copy_with(loop, [&](For& out) { out.body = Widths(widths)(loop.body); }));
  }

  /// Is the access to the thread's own registers?
  bool is_own(const Expr& owner, const Facts& facts) const {
    if (const Var* var = as<Var>(owner); var && threads_.contains(var)) return true;
    return std::any_of(threads_.begin(), threads_.end(), [&](const Var* thread) {
      return can_prove(apply(Op::Eq, {owner, Expr(VarRef(thread))}), facts);
    });
  }

  /// The widths of a copy between memory and packed registers, if that is what the loop is.
  std::unordered_map<const Object*, VectorWidth> packed_move(const For& loop, const Facts& facts) const {
    const Store* store = as<Store>(loop.body);
    const Load* load = store && !store->is_atomic() ? as<Load>(stored(*store)) : nullptr;
    if (!load || load->dtype != store->buffer->dtype) return {};
    const Buffer &from = buffer_of(load->buffer), &to = *store->buffer;
    const bool reads = to.scope == MemoryScope::Fragment;
    const Buffer &registers = reads ? to : from, &memory = reads ? from : to;
    if (registers.place != ArrayPlace::Packed || memory.scope == MemoryScope::Fragment ||
        memory.scope == MemoryScope::Local) {
      return {};
    }
    if (!is_own((reads ? store->indices : load->indices)[0], facts)) return {};
    Facts inside = facts;
    inside.bind_loop(loop.vars[0], loop.begins[0], loop.extents[0]);
    const int64_t width =
        std::min(width_of(to, store->indices, loop, facts, inside), width_of(from, load->indices, loop, facts, inside));
    if (width == 0) return {};
    return {{store, {width, store->indices}}, {load, {width, load->indices}}};
  }

  /// The width of a store to packed registers, of floats of registers that it rounds, if that is what the loop is.
  std::unordered_map<const Object*, VectorWidth> packed_rounding(const For& loop, const Facts& facts) const {
    const Store* store = as<Store>(loop.body);
    if (!store || store->is_atomic()) return {};
    const Buffer& to = *store->buffer;
    const Expr& value = stored(*store);
    const bool rounds =
        to.dtype.is_small_float() && to.dtype.bits == 16 && value->dtype.is_float() && value->dtype.bits == 32;
    if (!rounds || to.place != ArrayPlace::Packed || !is_own(store->indices[0], facts)) return {};
    bool apart = true;
    walk(value, [&](const Expr& e) {
      const Load* load = as<Load>(e);
      apart &= !load || (buffer_of(load->buffer).scope == MemoryScope::Fragment && &buffer_of(load->buffer) != &to);
    });
    if (!apart) return {};
    Facts inside = facts;
    inside.bind_loop(loop.vars[0], loop.begins[0], loop.extents[0]);
    const int64_t width = width_of(to, store->indices, loop, facts, inside);
    if (width == 0) return {};
    return {{store, {width, store->indices}}};
  }

  int64_t width_of(const Buffer& buffer, const std::vector<Expr>& indices, const For& loop, const Facts& facts,
                   const Facts& inside) const {
    const bool registers = buffer.scope == MemoryScope::Fragment;
    const Address address =
        registers ? Address{element_offset(buffer, indices, 1), {}} : address_of(buffer, indices, inside);
    if (has_load(address.sum) && reads_registers(address.sum)) return 0;
    const Expr first = expr_of(sum_of(substitute(address.sum, {{loop.vars[0].get(), loop.begins[0]}})));
    return vector_width(buffer, address, first, loop, facts, widest_);
  }

  static bool reads_registers(const Expr& index) {
    bool found = false;
    walk(index, [&](const Expr& e) {
      const Load* load = as<Load>(e);
      const MemoryScope scope = load ? buffer_of(load->buffer).scope : MemoryScope::Param;
      found |= scope == MemoryScope::Fragment || scope == MemoryScope::Local;
    });
    return found;
  }

  const std::vector<MayAlias>& may_alias_;
  const int64_t widest_;
  std::unordered_set<const Var*> threads_;  ///< variables of loops over threads
};

}  // namespace

FunctionRef widen_accesses(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Widening(*f, options.machine).rewrite(f->body));
}

}  // namespace helve
