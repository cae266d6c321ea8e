// Memory that each iteration of a loop without order has for itself, when the loop gets an order, or is taken apart.
// The old program's dependences know one memory only, so what an iteration finds in its own is asked apart from them.
#include <gtest/gtest.h>

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef i = make_var("i");
const BufferRef a = param("A", kInt32, {8}), b = param("B", kInt32, {8}),
                own = make_buffer("L", kInt32, MemoryScope::Local, {idx(9)});

Stmt loop(const Stmt& body, LoopKind kind = LoopKind::Parallel) {
  return for_loop(kind, {i}, {idx(0)}, {idx(8)}, body);
}
Stmt into(const Expr& place) { return store(own, {place}, load(b, {Expr(i)})); }
Stmt from(const Expr& value) { return store(a, {Expr(i)}, value); }

/// What is said of `after` in the place of `before`, both behind the allocation, with the same stores in their order.
std::string said(const Stmt& before, const Stmt& after) {
  const FunctionRef f = function("f", {a, b}, seq({alloc(own), before}));
  const auto stores = [](const Stmt& region) {
    std::vector<std::pair<const StmtNode*, size_t>> out;
    size_t visit = 0;
    walk(region, [&](const Stmt& s) {
      if (s->kind == StmtKind::Store) out.emplace_back(s.get(), visit);
      ++visit;
    });
    return out;
  };
  const auto old = stores(before), now = stores(after);
  std::vector<Origin> origins;
  for (size_t n = 0; n < now.size(); ++n) origins.push_back({now[n].first, now[n].second, old[n].second, {}});
  return text_of(check_rewrite(*f, before, after, origins, ExactEngine()));
}

std::string in_order(const Stmt& body) { return said(loop(body), loop(body, LoopKind::Serial)); }

const std::string kNotWritten = "iterations over 'i' have 'L' for themselves, and one reads what it has not written";

TEST(Private, AnIterationSeesNoWriteOfAnother) {
  EXPECT_EQ(in_order(seq({into(Expr(i) + idx(1)), from(load(own, {Expr(i)}))})), kNotWritten);
  EXPECT_EQ(in_order(seq({into(idx(0)), from(load(own, {idx(0)}))})), "");
  EXPECT_EQ(in_order(from(load(own, {Expr(i)}))), "");
}

/// The one element that it wrote says nothing of the other one.
TEST(Private, EachElementIsOneThatItWrote) {
  EXPECT_EQ(in_order(seq({into(Expr(i)), from(load(own, {Expr(i)}) + load(own, {idx(0)}))})), kNotWritten);
}

TEST(Private, WhatItMayHaveWrittenItNeedNotHave) {
  const Stmt guarded = if_then(less(int_imm(3, kInt32), load(b, {Expr(i)})), into(idx(0)));
  EXPECT_EQ(in_order(seq({guarded, from(load(own, {idx(0)}))})), kNotWritten);
}

TEST(Private, WhatItWroteAndWhatItReadsStayTogether) {
  const Stmt in = into(Expr(i)), out = from(load(own, {Expr(i)}));
  const std::string apart = "iterations over 'i' have 'L' for themselves, and what it wrote and what it reads would be "
                            "taken apart";
  EXPECT_EQ(said(loop(seq({in, out})), seq({loop(in), loop(out)})), apart);
}

}  // namespace
}  // namespace helve::testing
