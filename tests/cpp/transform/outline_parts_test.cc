// Which statements become functions of their own.
#include "helve/ir/tensor/code_hints.h"
#include "run_pass.h"

namespace helve::testing {
namespace {

/// Y[i] = X[i] * 2 for each i, one statement after the other, `first` before them.
FunctionRef long_sequence(int64_t count, std::vector<Stmt> first = {}, const Expr& factor = int_imm(2, kInt32)) {
  const BufferRef x = param("X", kInt32, {count}), y = param("Y", kInt32, {count});
  std::vector<Stmt> body = std::move(first);
  for (int64_t i = 0; i < count; ++i) body.push_back(store(y, {idx(i)}, load(x, {idx(i)}) * factor));
  return function("main", {x, y}, one_block(std::move(body)));
}

/// The statements of each function, and those of the kernel beside them.
std::vector<size_t> parts(const FunctionRef& f, size_t* others = nullptr) {
  std::vector<size_t> out;
  walk(f->body, [&](const Stmt& s) {
    if (const Outline* n = as<Outline>(s)) out.push_back(as<Seq>(n->body)->stmts.size());
    const Kernel* kernel = as<Kernel>(s);
    if (!kernel || !others) return;
    for (const Stmt& each : as<Seq>(kernel->body)->stmts) *others += !as<Outline>(each);
  });
  return out;
}

TEST(OutlineParts, CutsLongSequences) {
  const FunctionRef f = long_sequence(800);
  size_t others = 0;
  EXPECT_EQ(parts(outline_parts(f, {}), &others), std::vector<size_t>({171, 171, 171, 171}));
  EXPECT_EQ(others, 116u);
  expect_same_results(outline_parts, f);
}

TEST(OutlineParts, LeavesSmallKernels) { expect_untouched(outline_parts, long_sequence(600)); }

TEST(OutlineParts, KeepsWhatIsDefinedForOthersOutside) {
  const BufferRef own = make_buffer("own", kInt32, MemoryScope::Local, {idx(1)});
  const VarRef three = make_var("three", kInt32);
  const Expr factor = load(own, {idx(0)}) + Expr(three);
  const std::vector<Stmt> first = {alloc(own), store(own, {idx(0)}, int_imm(3, kInt32)),
                                   bind(three, load(own, {idx(0)}))};
  const FunctionRef f = long_sequence(800, first, factor);
  const FunctionRef after = outline_parts(f, {});
  verify(after);
  const std::vector<Stmt>& stmts = as<Seq>(as<Kernel>(after->body)->body)->stmts;
  EXPECT_TRUE(as<Alloc>(stmts[0]) && as<Store>(stmts[1]) && as<Bind>(stmts[2]) && as<Outline>(stmts[3]));
  expect_same_results(outline_parts, f);
}

TEST(OutlineParts, EndsWhereValuesAreUsed) {
  const BufferRef x = param("X", kInt32, {600}), y = param("Y", kInt32, {600});
  std::vector<Stmt> body = {store(y, {idx(0)}, int_imm(1, kInt32))};  // so that no use is at 1024 instructions
  for (int64_t i = 0; i < 600; ++i) {
    const VarRef value = make_var("value", kInt32);
    body.push_back(bind(value, load(x, {idx(i)}) + int_imm(1, kInt32)));
    if (i % 2) body.push_back(store(y, {idx(i - 1)}, Expr(value)));
    body.push_back(store(y, {idx(i)}, Expr(value) * Expr(value)));
  }
  const FunctionRef f = function("main", {x, y}, one_block(std::move(body)));
  const FunctionRef after = outline_parts(f, {});
  size_t others = 0;
  EXPECT_EQ(parts(after, &others).size(), 5u);
  EXPECT_LT(others, 200u);  // the end of the sequence
  expect_same_results(outline_parts, f);
}

TEST(OutlineParts, AllocatesWhatOthersUseBefore) {
  // The buffer is used by all statements, but the first ones.
  const BufferRef own = make_buffer("own", kInt32, MemoryScope::Local, {idx(1)});
  const BufferRef x = param("X", kInt32, {900}), y = param("Y", kInt32, {900});
  std::vector<Stmt> body;
  for (int64_t i = 0; i < 900; ++i) {
    if (i == 100) body.insert(body.end(), {alloc(own), store(own, {idx(0)}, load(x, {idx(3)}))});
    body.push_back(store(y, {idx(i)}, load(x, {idx(i)}) * (i < 100 ? int_imm(2, kInt32) : load(own, {idx(0)}))));
  }
  const FunctionRef f = function("main", {x, y}, one_block(std::move(body)));
  const FunctionRef after = outline_parts(f, {});
  verify(after);
  const std::vector<Stmt>& stmts = as<Seq>(as<Kernel>(after->body)->body)->stmts;
  EXPECT_TRUE(as<Alloc>(stmts[0]) && as<Outline>(stmts[1]));
  expect_same_results(outline_parts, f);
}

TEST(OutlineParts, OutlinesNothingInOutlinedParts) {
  // A branch that is long itself stands among the statements of a long sequence.
  const BufferRef x = param("X", kInt32, {800}), y = param("Y", kInt32, {800});
  const auto sequence = [&](int64_t count) {
    std::vector<Stmt> out;
    for (int64_t i = 0; i < count; ++i) out.push_back(store(y, {idx(i)}, load(x, {idx(i)}) * int_imm(2, kInt32)));
    return out;
  };
  std::vector<Stmt> body = sequence(400);
  body.insert(body.begin() + 50, if_then(less(load(x, {idx(0)}), int_imm(0, kInt32)), seq(sequence(800))));
  const FunctionRef f = function("main", {x, y}, one_block(std::move(body)));
  const FunctionRef after = outline_parts(f, {});
  verify(after);
  EXPECT_EQ(parts(after), std::vector<size_t>({171, 171, 171, 171, 171, 171}));
  expect_same_results(outline_parts, f);
}

TEST(OutlineParts, LeavesLoopsWhole) {
  const FunctionRef f = long_sequence(800);
  const VarRef i = make_var("i");
  const Stmt repeated = rewrite(
      f->body, [&](const Stmt& s) -> Stmt { return as<Seq>(s) ? for_loop(LoopKind::Serial, i, idx(2), s) : s; });
  expect_untouched(outline_parts, with_body(f, repeated));
}

TEST(OutlineParts, IsDecidedAnew) {
  const FunctionRef f = long_sequence(800);
  EXPECT_TRUE(structural_equal(without_code_hints(outline_parts(f, {})), f));
}

}  // namespace
}  // namespace helve::testing
