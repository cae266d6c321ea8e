// What tile operations mean as loops, next to the interpreter's functions: both run on the same numbers.
// And the law by which such loops are compared with a nest: only updates meet, and the operation combines them.
#include "helve/analysis/operation_loops.h"

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "interp/arrays.h"

namespace helve::testing {
namespace {

/// The loops in the order of the program: iterations that update one element are a race of T.Parallel.
Stmt in_order(const TileOp& op, bool swapped = false) {
  std::vector<Stmt> out;
  const OperationLoops loops = operation_loops(op, swapped).value();
  for (const OperationLoops::Part& part : loops.parts) {
    const For* loop = as<For>(part.loop);
    out.push_back(loop ? serial_nest(*loop, loop->body) : part.loop);
  }
  return seq(std::move(out));
}

const TileOp& as_operation(const Stmt& s) { return *as<TileOp>(s); }

/// Runs the operation, and its loops, on parameters with small numbers; both leave the same.
template <class T>
void compare(const Stmt& op, const std::vector<BufferRef>& params, bool swapped = false) {
  std::vector<std::vector<T>> results[2];
  std::vector<Param> all(params.begin(), params.end());
  for (const bool loops : {false, true}) {
    const FunctionRef f = function("main", all, one_block({loops ? in_order(as_operation(op), swapped) : op}));
    std::vector<std::vector<T>>& data = results[loops];
    for (size_t n = 0; n < params.size(); ++n) {
      size_t size = 1;
      for (const Expr& extent : params[n]->shape) size *= static_cast<size_t>(*int_value(extent));
      data.push_back(small_numbers<T>(size, static_cast<unsigned>(n)));
    }
    std::vector<Arg> args;
    for (size_t n = 0; n < params.size(); ++n) {
      std::vector<int64_t> shape;
      for (const Expr& extent : params[n]->shape) shape.push_back(*int_value(extent));
      args.push_back(tensor(data[n], shape));
    }
    interp::run(f, args);
  }
  EXPECT_EQ(results[0], results[1]) << operation_text(as_operation(op));
}

TEST(OperationLoops, ProductsWithTransposesOfRegions) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const bool clear : {false, true}) {
        const int64_t m = 3, n = 4, k = 5;
        const BufferRef a = param("A", kFloat32, ta ? std::vector{k, m + 1} : std::vector{m + 1, k}),
                        b = param("B", kFloat32, tb ? std::vector{n, k} : std::vector{k, n}),
                        c = param("C", kFloat32, {2, m, n + 2});
        const Region rows = ta ? box(a, {{idx(0), k}, {idx(1), m}}) : box(a, {{idx(1), m}, {idx(0), k}});
        const Stmt op = tile_op(
            TileOpcode::Gemm,
            {rows, whole_region(b), box(c, {{idx(1), -1}, {idx(0), m}, {idx(2), n}}), ta, tb, clear, std::string()});
        compare<float>(op, {a, b, c});
        compare<float>(op, {a, b, c}, true);
      }
    }
  }
}

TEST(OperationLoops, ProductsWithoutDepthOnlyClear) {
  const BufferRef a = param("A", kInt32, {3, 0}), b = param("B", kInt32, {0, 4}), c = param("C", kInt32, {3, 4});
  for (const bool clear : {false, true}) {
    compare<int32_t>(tile_op(TileOpcode::Gemm,
                             {whole_region(a), whole_region(b), whole_region(c), false, false, clear, std::string()}),
                     {a, b, c});
  }
}

TEST(OperationLoops, ReductionsOfEachDimension) {
  const BufferRef src = param("A", kFloat32, {3, 4, 5});
  const std::vector<int64_t> shape = {3, 4, 5};
  for (const TileOpcode opcode : {TileOpcode::ReduceSum, TileOpcode::ReduceProd, TileOpcode::ReduceMax,
                                  TileOpcode::ReduceMin, TileOpcode::ReduceAbsMax}) {
    for (int64_t dim = 0; dim < 3; ++dim) {
      for (const bool keep : {false, true}) {
        for (const bool clear : {false, true}) {
          std::vector<int64_t> kept = shape;
          kept[static_cast<size_t>(dim)] = 1;
          if (!keep) kept.erase(kept.begin() + dim);
          const BufferRef dst = param("S", kFloat32, kept);
          compare<float>(tile_op(opcode, {whole_region(src), whole_region(dst), dim, clear}), {src, dst});
        }
      }
    }
  }
}

TEST(OperationLoops, LogicalReductionsHaveNone) {
  const BufferRef src = param("A", kBool, {3, 4}), dst = param("S", kBool, {3});
  const Stmt op = tile_op(TileOpcode::ReduceAny, {whole_region(src), whole_region(dst), int64_t{1}, true});
  EXPECT_FALSE(operation_loops(as_operation(op)));
}

TEST(OperationLoops, CopiesPastBothEndsPadAndDrop) {
  const BufferRef src = param("A", kFloat32, {5, 1, 7}), dst = param("B", kFloat32, {6, 4});
  for (int64_t from = 0; from <= 4; from += 2) {
    for (int64_t to = 0; to <= 4; to += 2) {
      const Stmt op = tile_op(TileOpcode::Copy, {box(src, {{idx(from), 3}, {idx(0), 1}, {idx(from), 4}}),
                                                 box(dst, {{idx(to), 3}, {idx(to), 4}}), f32(-3)});
      compare<float>(op, {src, dst});
    }
  }
}

TEST(OperationLoops, FillsAndClears) {
  const BufferRef dst = param("A", kFloat32, {5, 7});
  const Region part = box(dst, {{idx(1), 3}, {idx(2), -1}});
  compare<float>(tile_op(TileOpcode::Fill, {part, f32(2.5)}), {dst});
  compare<float>(tile_op(TileOpcode::Clear, {part}), {dst});
}

/// C[i, j] += A[i, k] * B[k, j], and the loops of T.gemm in its place.
struct Product {
  VarRef i = make_var("i"), j = make_var("j"), k = make_var("k");
  BufferRef a = param("A", kFloat32, {3, 5}), b = param("B", kFloat32, {5, 4}), c = param("C", kFloat32, {3, 4});
  Stmt was, after;
  FunctionRef f;
  std::vector<Origin> origins;

  explicit Product(const std::function<Stmt(const Product&, Stmt)>& nest,
                   const std::function<Stmt(const Product&)>& statement) {
    was = statement(*this);
    f = function("f", {a, b, c}, nest(*this, was));
    const Stmt op = tile_op(TileOpcode::Gemm,
                            {whole_region(a), whole_region(b), whole_region(c), false, false, false, std::string()});
    const OperationLoops loops = operation_loops(as_operation(op)).value();
    after = loops.parts.at(0).loop;
    const std::vector<VarRef>& vars = loops.parts[0].vars;
    size_t old_visit = 0, visit = 0;
    walk(f->body, [&](const Stmt& s) { (s == was ? old_visit = visit : visit), ++visit; });
    origins = {
        {as<For>(after)->body.get(), 1, old_visit, {{i, Expr(vars[0])}, {j, Expr(vars[1])}, {k, Expr(vars[2])}}}};
  }
  Legality check(RegionForm form) const { return check_rewrite(*f, f->body, after, origins, ExactEngine(), {}, form); }
};

Stmt in_nest(const Product& p, Stmt body, int64_t depth) {
  return serial(p.k, idx(depth), {serial(p.i, idx(3), {serial(p.j, idx(4), {std::move(body)})})});
}
Stmt full_nest(const Product& p, Stmt body) { return in_nest(p, std::move(body), 5); }
Expr term(const Product& p) { return load(p.a, {Expr(p.i), Expr(p.k)}) * load(p.b, {Expr(p.k), Expr(p.j)}); }
Stmt added(const Product& p) { return update(p.c, {Expr(p.i), Expr(p.j)}, term(p), StoreMode::Add); }

TEST(OperationLegality, UpdatesOfOneElementAreTheOperationsOwn) {
  const Product product(full_nest, added);
  const Legality found = product.check(RegionForm::Operation);
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
  EXPECT_TRUE(found.reassociates);
  EXPECT_EQ(product.check(RegionForm::Program).fault, RewriteFault::AtOnce);
}

TEST(OperationLegality, AllTermsOnce) {
  const auto shorter = [](const Product& p, Stmt body) { return in_nest(p, std::move(body), 4); };
  EXPECT_EQ(Product(shorter, added).check(RegionForm::Operation).fault, RewriteFault::Added);
  const auto longer = [](const Product& p, Stmt body) {
    return seq({full_nest(p, std::move(body)), serial(p.k, idx(2), {store(p.a, {idx(0), Expr(p.k)}, f32(1))})});
  };
  EXPECT_EQ(Product(longer, added).check(RegionForm::Operation).fault, RewriteFault::Lost);
}

TEST(OperationLegality, APlainSumOfFloatsKeepsItsOrder) {
  const auto plain = [](const Product& p) {
    return store(p.c, {Expr(p.i), Expr(p.j)}, load(p.c, {Expr(p.i), Expr(p.j)}) + term(p));
  };
  EXPECT_NE(Product(full_nest, plain).check(RegionForm::Operation).verdict, Verdict::Proved);
}

TEST(OperationLegality, OperandsThatMayBeTheResultAreReadBeforeItIsWritten) {
  Product product(full_nest, added);
  Ref<Function> aliased = make_ref<Function>(*product.f);
  aliased->may_alias = {MayAlias{{product.a, product.c}, {}, {}}};
  product.f = FunctionRef(aliased);
  EXPECT_NE(product.check(RegionForm::Operation).verdict, Verdict::Proved);
}

/// A maximum is the same in any order, a sum of floats need not be.
TEST(OperationLegality, AMaximumIsOfNoOrder) {
  const VarRef i = make_var("i"), k = make_var("k");
  const BufferRef a = param("A", kFloat32, {3, 5}), s = param("S", kFloat32, {3});
  const auto found = [&](TileOpcode opcode, StoreMode mode) {
    const Stmt was = update(s, {Expr(i)}, load(a, {Expr(i), Expr(k)}), mode);
    const FunctionRef f = function("f", {a, s}, serial(i, idx(3), {serial(k, idx(5), {was})}));
    const Stmt op = tile_op(opcode, {whole_region(a), whole_region(s), int64_t{1}, false});
    const OperationLoops loops = operation_loops(as_operation(op)).value();
    const Stmt after = loops.parts.at(0).loop;
    const std::vector<VarRef>& vars = loops.parts[0].vars;
    const Origin origin{as<For>(after)->body.get(), 1, 2, {{i, Expr(vars[0])}, {k, Expr(vars[1])}}};
    return check_rewrite(*f, f->body, after, {origin}, ExactEngine(), {}, RegionForm::Operation);
  };
  const Legality maximum = found(TileOpcode::ReduceMax, StoreMode::Max),
                 sum = found(TileOpcode::ReduceSum, StoreMode::Add);
  EXPECT_EQ(maximum.verdict, Verdict::Proved) << text_of(maximum);
  EXPECT_FALSE(maximum.reassociates);
  EXPECT_EQ(sum.verdict, Verdict::Proved) << text_of(sum);
  EXPECT_TRUE(sum.reassociates);
}

TEST(OperationLegality, WhatNeverRunsNeedsNoOrigin) {
  const VarRef i = make_var("i"), j = make_var("j");
  const BufferRef a = param("A", kFloat32, {8});
  const Stmt was = store(a, {Expr(i)}, f32(1));
  const FunctionRef f = function("f", {a}, serial(i, idx(8), {was}));
  for (const int64_t limit : {8, 7}) {
    const Stmt after = seq({serial(i, idx(8), {was}),
                            serial(j, idx(8), {if_then(less(idx(limit - 1), Expr(j)), store(a, {Expr(j)}, f32(2)))})});
    const Legality found = check_rewrite(*f, f->body, after, {{was.get(), 2, 1, {}}}, ExactEngine());
    EXPECT_EQ(found.verdict, limit == 8 ? Verdict::Proved : Verdict::Refuted) << text_of(found);
  }
}

/// Who knows whether it runs is not who knows that it does not.
TEST(OperationLegality, WhatMayRunNeedsOne) {
  const VarRef i = make_var("i"), j = make_var("j");
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8});
  const Stmt was = store(a, {Expr(i)}, f32(1));
  const FunctionRef f = function("f", {a, b}, serial(i, idx(8), {was}));
  const Stmt extra = if_then(less(load(b, {Expr(j)}), f32(4)), store(a, {Expr(j)}, f32(2)));
  const Stmt after = seq({serial(i, idx(8), {was}), serial(j, idx(8), {extra})});
  const Legality found = check_rewrite(*f, f->body, after, {{was.get(), 2, 1, {}}}, ExactEngine());
  EXPECT_EQ(found.fault, RewriteFault::Added);
}

}  // namespace
}  // namespace helve::testing
