// Random loop nests with affine subscripts, for comparisons with runs.
// Bounds may depend on outer loops, guards and allocations stand between; two small tensors meet often.
#pragma once

#include <random>
#include <vector>

#include "helve/ir/tensor/function.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {

class RandomNest {
 public:
  /// `plain`: serial loops and stores only. With `size`, extents are this variable's as often as constants.
  explicit RandomNest(uint32_t seed, bool plain = false, VarRef size = {})
      : random_(seed), plain_(plain), size_(std::move(size)) {
    one_ = param("A", kInt32, {64});
    two_ = param("B", kInt32, {64, 64});
  }

  /// A function with the nest as its body.
  FunctionRef make() {
    std::vector<Stmt> parts;
    const int64_t count = number(1, 2);
    for (int64_t i = 0; i < count; ++i) parts.push_back(statement(2));
    const std::vector<VarRef> dims = size_ ? std::vector{size_} : std::vector<VarRef>();
    return dynamic_function("f", dims, {one_, two_}, seq(std::move(parts)));
  }

 private:
  int64_t number(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool chance(int64_t of) { return number(1, of) == 1; }

  Expr count(int64_t low, int64_t high) {
    if (size_ && chance(2)) return Expr(size_) + idx(number(0, 1));
    return idx(number(low, high));
  }
  Expr index() {
    Expr out = idx(number(0, 2));
    for (const VarRef& var : vars_) {
      const int64_t factor = number(-1, 2);
      if (chance(2)) out = out + Expr(var) * idx(factor);
    }
    return !plain_ && chance(6) ? floor_div(out, idx(2)) : !plain_ && chance(6) ? floor_mod(out, idx(3)) : out;
  }
  Expr element() {
    if (!locals_.empty() && chance(3)) return load(locals_.back(), {floor_mod(index(), idx(2))});
    return chance(2) ? load(one_, {index()}) : load(two_, {index(), index()});
  }
  Stmt leaf() {
    Expr value = chance(3) ? int_imm(1, kInt32) : element();
    if (chance(3)) value = value + element();
    if (!plain_ && chance(6)) value = select(less(index(), index()), element(), value);
    if (!plain_ && chance(8))
      return tile_op(TileOpcode::Fill, {box(one_, {{index(), number(0, 2)}}), int_imm(1, kInt32)});
    if (!plain_ && chance(8)) return store(one_, {index()}, value, {}, StoreMode::AtomicAdd);
    if (chance(5)) return store(one_, {index()}, value, {}, StoreMode::Add);
    if (!locals_.empty() && chance(3)) return store(locals_.back(), {floor_mod(index(), idx(2))}, value);
    return chance(2) ? store(one_, {index()}, value) : store(two_, {index(), index()}, value);
  }
  Stmt statement(int depth) {
    if (depth == 0 || chance(6)) return leaf();
    if (!vars_.empty() && chance(4)) {
      const Expr condition = less(index(), index());
      const Stmt then_body = statement(depth - 1);
      return if_then(condition, then_body, chance(3) ? statement(depth - 1) : Stmt());
    }
    const VarRef var = make_var(std::string(1, static_cast<char>('i' + vars_.size())));
    const Expr begin = chance(2) || vars_.empty() ? idx(number(-1, 1)) : Expr(vars_.back());
    const Expr extent = !vars_.empty() && chance(3) ? count(2, 4) - Expr(vars_.back()) : count(0, 3);
    vars_.push_back(var);
    std::vector<Stmt> parts;
    const bool allocates = !plain_ && chance(4);
    if (allocates) {
      locals_.push_back(shared("S", kInt32, {2}));
      parts.push_back(alloc(locals_.back()));
    }
    const int64_t count = number(1, 2);
    for (int64_t i = 0; i < count; ++i) parts.push_back(statement(depth - 1));
    if (allocates) locals_.pop_back();
    vars_.pop_back();
    const LoopKind kind = !plain_ && chance(5) ? LoopKind::Parallel : LoopKind::Serial;
    return for_loop(kind, {var}, {begin}, {extent}, seq(std::move(parts)));
  }

  std::mt19937 random_;
  const bool plain_;
  const VarRef size_;
  BufferRef one_, two_;
  std::vector<VarRef> vars_;
  std::vector<BufferRef> locals_;
};

}  // namespace helve::testing
