// Random small programs.
// Passes and targets are judged by running a program before and after; the programs mix what single cases keep apart.
#pragma once

#include <random>

#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {

/// A source of choices; equal seeds give equal programs.
class Choices {
 public:
  explicit Choices(unsigned seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random_); }
  bool chance(int percent) { return pick(1, 100) <= percent; }
  template <class T>
  const T& of(const std::vector<T>& items) {
    return items[static_cast<size_t>(pick(0, static_cast<int64_t>(items.size()) - 1))];
  }

 private:
  std::mt19937 random_;
};

inline Expr i32(int64_t v) { return int_imm(v, kInt32); }

/// A mesh kernel on int32 vectors of 5 elements with collectives under loops and uniform conditions, partial writes,
/// and at times a Persistent loop. Parameters: A (cores, buffers, 5) read, B (iterations, cores, buffers, 5) written.
class RandomMeshProgram {
 public:
  static constexpr int64_t kRows = 2, kColumns = 3, kCores = kRows * kColumns, kBuffers = 3, kElements = 5;

  explicit RandomMeshProgram(unsigned seed) : c_(seed) {}

  FunctionRef make() {
    const int64_t iterations = c_.pick(1, 5);
    a_ = param("A", kInt32, {kCores, kBuffers, kElements});
    b_ = param("B", kInt32, {iterations, kCores, kBuffers, kElements});
    rid_ = make_var("rid"), cid_ = make_var("cid");
    std::vector<Stmt> body;
    for (int64_t k = 0; k < kBuffers; ++k) {
      buffers_.push_back(shared("S" + std::to_string(k), kInt32, {kElements}));
      body.push_back(alloc(buffers_.back()));
    }
    const bool persistent = c_.chance(60);
    const VarRef it = make_var("it");
    const Expr iteration = persistent ? Expr(it) : idx(0);
    if (persistent) index_.push_back(it);
    std::vector<Stmt> inner = {fill_from_a()};
    for (Stmt& s : statements(2, 5)) inner.push_back(s);
    inner.push_back(store_to_b(iteration));
    body.push_back(persistent ? for_loop(LoopKind::Persistent, it, idx(iterations), seq(inner)) : seq(inner));
    return mesh_function("main", mesh_xy(kRows, kColumns), {}, {a_, b_},
                         kernel({rid_, cid_}, {idx(kRows), idx(kColumns)}, 128, seq(body)));
  }

 private:
  Expr core() const { return Expr(rid_) * idx(kColumns) + Expr(cid_); }
  Stmt over_elements(const std::function<Stmt(const Expr&)>& body) {
    const VarRef i = make_var("i");
    return for_loop(LoopKind::Parallel, i, idx(kElements), body(Expr(i)));
  }
  Stmt fill_from_a() {
    std::vector<Stmt> out;
    for (size_t k = 0; k < buffers_.size(); ++k) {
      out.push_back(over_elements(
          [&](const Expr& i) { return store(buffers_[k], {i}, load(a_, {core(), idx(static_cast<int64_t>(k)), i})); }));
    }
    return seq(std::move(out));
  }
  Stmt store_to_b(const Expr& iteration) {
    std::vector<Stmt> out;
    for (size_t k = 0; k < buffers_.size(); ++k) {
      out.push_back(over_elements([&](const Expr& i) {
        return store(b_, {iteration, core(), idx(static_cast<int64_t>(k)), i}, load(buffers_[k], {i}));
      }));
    }
    return seq(std::move(out));
  }

  std::vector<Stmt> statements(int depth, int64_t most) {
    std::vector<Stmt> out;
    const size_t scope = index_.size();
    for (int64_t n = c_.pick(1, most); n-- > 0;) {
      if (c_.chance(15)) {  // a scalar without a load, used by what follows
        VarRef v = make_var("v");
        out.push_back(bind(v, Expr(uniform()) * idx(2) + idx(c_.pick(0, 3))));
        index_.push_back(v);
      } else {
        out.push_back(statement(depth));
      }
    }
    index_.resize(scope);
    return out;
  }
  Expr uniform() { return index_.empty() || c_.chance(30) ? idx(c_.pick(0, 4)) : Expr(c_.of(index_)); }

  Stmt statement(int depth) {
    const int64_t kind = c_.pick(0, depth > 0 ? 9 : 6);
    if (kind <= 1) return elementwise();
    if (kind == 2) return store(c_.of(buffers_), {idx(c_.pick(0, kElements - 1))}, i32(c_.pick(-9, 9)));
    if (kind == 3) {  // a partial write under a condition that differs between cores
      return if_then(less(Expr(cid_), idx(c_.pick(0, 2))),
                     store(c_.of(buffers_), {idx(c_.pick(0, 4))}, i32(c_.pick(-9, 9))));
    }
    if (kind <= 6) return collective();
    if (kind <= 8) {
      const VarRef t = make_var("t");
      index_.push_back(t);
      Stmt out = for_loop(LoopKind::Serial, t, idx(c_.pick(0, 3)), seq(statements(depth - 1, 3)));
      index_.pop_back();
      return out;
    }
    Stmt yes = seq(statements(depth - 1, 3));
    return if_then(less(uniform(), idx(c_.pick(1, 3))), yes, c_.chance(50) ? seq(statements(depth - 1, 3)) : Stmt());
  }
  Stmt elementwise() {
    const BufferRef x = c_.of(buffers_), y = c_.of(buffers_), z = c_.of(buffers_);
    const Expr scalar = cast(uniform() + (c_.chance(50) ? core() : idx(1)), kInt32);
    return over_elements([&](const Expr& i) { return store(z, {i}, load(x, {i}) + min(load(y, {i}), scalar)); });
  }
  Region operand(const BufferRef& b, int64_t begin, int64_t extent) { return box(b, {{idx(begin), extent}}); }
  Stmt collective() {
    const std::string axis = c_.of(std::vector<std::string>{"x", "y", "all"});
    const int64_t extent = c_.chance(50) ? kElements : c_.pick(1, kElements - 1);
    const Region src = operand(c_.of(buffers_), c_.pick(0, kElements - extent), extent);
    const Region dst = operand(c_.of(buffers_), c_.pick(0, kElements - extent), extent);
    const Expr root = c_.chance(50) ? floor_mod(uniform(), idx(2)) : idx(c_.pick(0, 1));
    switch (c_.pick(0, 6)) {
      case 5: return tile_op(TileOpcode::CommReduce, {src, dst, std::string("sum"), root, axis});
      case 6: {
        const VarRef me = make_var("me");
        const IndexMap source{me, c_.chance(50) ? Expr(me) - root : root * idx(2) - Expr(me)};
        return tile_op(TileOpcode::CommPermute, {src, dst, int64_t{1}, axis, source});
      }
      case 0: return tile_op(TileOpcode::CommAllReduce, {src, dst, std::string("sum"), axis});
      case 1: return tile_op(TileOpcode::CommPermute, {src, dst, c_.pick(0, 3), axis});
      case 2: return tile_op(TileOpcode::CommBroadcast, {src, dst, root, axis});
      case 3: {
        std::vector<Expr> from = {idx(c_.pick(0, 1)), idx(c_.pick(0, 2))},
                          to = {idx(c_.pick(0, 1)), idx(c_.pick(0, 2))};
        return tile_op(TileOpcode::CommPut, {src, dst, from, to});
      }
      default: return tile_op(TileOpcode::CommBarrier, {axis});
    }
  }

  Choices c_;
  BufferRef a_, b_;
  VarRef rid_, cid_;
  std::vector<BufferRef> buffers_;
  std::vector<VarRef> index_;
};

/// A kernel of a few blocks on int32 matrices in tiled and plain shared memory: copies and fills of boxes at any place,
/// reductions, products, tile loops with broadcast operands. Parameters: A (M, N) read, B (blocks, M, N) written.
class RandomTileProgram {
 public:
  explicit RandomTileProgram(unsigned seed) : c_(seed) {}

  FunctionRef make() {
    m_ = c_.pick(1, 9), n_ = c_.pick(1, 9);
    const int64_t tm = c_.pick(1, 4), tn = c_.pick(1, 4), blocks = c_.pick(1, 3);
    const BufferRef a = param("A", kInt32, {m_, n_}), b = param("B", kInt32, {blocks, m_, n_});
    const VarRef bx = make_var("bx");
    x_ = shared("X", kInt32, {m_, n_}, {tm, tn}), y_ = shared("Y", kInt32, {m_, n_}, {tm, tn});
    z_ = shared("Z", kInt32, {m_, n_});
    v_ = shared("v", kInt32, {m_}, {tm}), w_ = shared("w", kInt32, {n_});
    square_ = shared("Q", kInt32, {n_, n_});
    matrices_ = {x_, y_, z_};
    std::vector<Stmt> body;
    for (const BufferRef& local : {x_, y_, z_, v_, w_, square_}) body.push_back(alloc(local));
    for (const BufferRef& local : matrices_) body.push_back(copy(whole_region(a), whole_region(local)));
    body.push_back(fill(whole_region(v_), cast(Expr(bx), kInt32)));
    body.push_back(fill(whole_region(w_), i32(2)));
    body.push_back(fill(whole_region(square_), i32(1)));
    for (int64_t n = c_.pick(2, 7); n-- > 0;) body.push_back(statement());
    const Region out{b, {{Expr(bx), idx(1), true}, {idx(0), idx(m_), false}, {idx(0), idx(n_), false}}};
    body.push_back(copy(whole_region(c_.of(matrices_)), out));
    return function("main", {a, b}, kernel({bx}, {idx(blocks)}, 128, seq(body)));
  }

 private:
  static Stmt copy(Region src, Region dst) {
    return tile_op(TileOpcode::Copy, {std::move(src), std::move(dst), i32(-3)});
  }
  static Stmt fill(Region dst, Expr value) { return tile_op(TileOpcode::Fill, {std::move(dst), std::move(value)}); }
  Region part(const BufferRef& b, int64_t rows, int64_t columns) {
    return box(b, {{idx(c_.pick(0, m_ - rows)), rows}, {idx(c_.pick(0, n_ - columns)), columns}});
  }

  Stmt statement() {
    switch (c_.pick(0, 7)) {
      case 0: {
        const int64_t rows = c_.pick(0, m_), columns = c_.pick(0, n_);
        return copy(part(c_.of(matrices_), rows, columns), part(c_.of(matrices_), rows, columns));
      }
      case 1:
        return fill(part(c_.of(matrices_), c_.pick(0, m_), c_.pick(0, n_)),
                    load(c_.of(matrices_), {idx(0), idx(n_ - 1)}));
      case 2:
        return tile_op(TileOpcode::ReduceSum,
                       {whole_region(c_.of(matrices_)), whole_region(v_), int64_t{1}, c_.chance(70)});
      case 3:
        return tile_op(TileOpcode::ReduceMax,
                       {whole_region(c_.of(matrices_)), whole_region(w_), int64_t{0}, c_.chance(70)});
      case 4: {
        const BufferRef c = c_.of(matrices_), a = c == x_ ? y_ : x_;
        return tile_op(TileOpcode::Gemm,
                       {whole_region(a), whole_region(square_), whole_region(c), false, c_.chance(50), c_.chance(30)});
      }
      case 5: {
        const VarRef t = make_var("t");
        return for_loop(c_.chance(50) ? LoopKind::Pipelined : LoopKind::Serial, t, idx(c_.pick(0, 3)),
                        tile_loop(Expr(t)));
      }
      case 6: {  // independent iterations over elements, from a begin, in both dimensions
        const VarRef i = make_var("i"), j = make_var("j");
        const int64_t bi = c_.pick(0, m_ - 1), bj = c_.pick(0, n_ - 1);
        Expr value = load(z_, {Expr(i), Expr(j)}) + load(w_, {Expr(j)});
        return for_loop(LoopKind::Parallel, {i, j}, {idx(bi), idx(bj)}, {idx(m_ - bi), idx(n_ - bj)},
                        store(z_, {Expr(i), Expr(j)}, value));
      }
      default: return tile_loop(idx(1));
    }
  }
  Stmt tile_loop(const Expr& scalar) {
    const VarRef i = make_var("i"), j = make_var("j");
    const Expr value = tile_load(y_, {Expr(i), Expr(j)}) + min(tile_load(v_, {Expr(i)}), i32(7)) + cast(scalar, kInt32);
    return for_tiles(x_, {i, j}, c_.chance(50), tile_store(c_.chance(50) ? x_ : y_, {Expr(i), Expr(j)}, value));
  }

  Choices c_;
  int64_t m_ = 0, n_ = 0;
  BufferRef x_, y_, z_, v_, w_, square_;
  std::vector<BufferRef> matrices_;
};

}  // namespace helve::testing
