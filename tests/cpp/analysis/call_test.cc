// What a call means, and which arguments it takes.
#include "helve/analysis/call.h"

#include <gtest/gtest.h>

#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "helve/support/diagnostic.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

Span line(int number) { return {intern_file("k.py"), number, 1, number, 9}; }

/// scale(A: (M,), B: (M,), s): B = A * s through a buffer of the host body, in M blocks.
class Calls : public ::testing::Test {
 protected:
  const VarRef m = make_var("M"), s = make_var("s", kInt32), b = make_var("b"), d = make_var("b");
  const BufferRef from = tensor("A", {Expr(m)}), to = tensor("B", {Expr(m)});
  const BufferRef through = make_buffer("t", kInt32, MemoryScope::Global, {Expr(m)});

  static BufferRef tensor(const char* name, std::vector<Expr> shape, DType dtype = kInt32) {
    return make_buffer(name, dtype, MemoryScope::Param, std::move(shape));
  }

  FunctionRef scale() const {
    const auto blocks = [&](const VarRef& var, Stmt body) { return kernel({var}, {Expr(m)}, 128, std::move(body)); };
    return dynamic_function(
        "scale", {m}, {from, to, s},
        seq({alloc(through, line(2)),
             blocks(b, store(through, {Expr(b)}, load(from, {Expr(b)}, line(3)) * Expr(s), line(3))),
             blocks(d, store(to, {Expr(d)}, load(through, {Expr(d)}), line(4)))}));
  }
  static std::vector<CallArgument> values(const BufferRef& x, const BufferRef& y, Expr factor) {
    return {{x, line(20)}, {y, line(21)}, {std::move(factor), line(22)}};
  }
  std::string fault(const std::vector<CallArgument>& arguments, const Caller& caller = {}) const {
    try {
      call(scale(), arguments, caller, line(10));
    } catch (const UserError& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(Calls, TheBodyStandsInPlaceOfTheCall) {
  const BufferRef x = param("X", kInt32, {6}), y = param("Y", kInt32, {6});
  const Stmt once = call(scale(), values(x, y, int_imm(3, kInt32)), {}, line(10));
  const Stmt twice = call(scale(), values(y, x, load(y, {idx(0)})), {}, line(11));
  const FunctionRef f = function("main", {x, y}, seq({once, twice}));
  verify(f);
  EXPECT_EQ(print(f), R"(@T.prim_func
def main(X: T.Tensor((6,), "int32"), Y: T.Tensor((6,), "int32")):
    t = T.alloc_global((6,), "int32")
    with T.Kernel(6) as b:
        t[b] = X[b] * 3
    with T.Kernel(6) as b_1:
        Y[b_1] = t[b_1]
    s = Y[0]
    t_1 = T.alloc_global((6,), "int32")
    with T.Kernel(6) as b_2:
        t_1[b_2] = Y[b_2] * s
    with T.Kernel(6) as b_3:
        X[b_3] = t_1[b_3]
)");
}

TEST_F(Calls, PlacesKnowTheirCall) {
  const BufferRef x = param("X", kInt32, {6}), y = param("Y", kInt32, {6});
  Stmt body = call(scale(), values(x, y, int_imm(3, kInt32)), {}, line(10));
  Ref<Function> outer = make_ref<Function>(*function("outer", {x, y}, body));
  body = call(FunctionRef(outer), {{x, line(30)}, {y, line(31)}}, {}, line(29));
  std::vector<int> lines;
  walk(body, [&](const Stmt& each) {
    if (!as<Store>(each)) return;
    for (const Span* at = &each->span; at; at = at->caller) lines.push_back(at->line);
  });
  EXPECT_EQ(lines, (std::vector<int>{3, 10, 29, 4, 10, 29}));
  EXPECT_EQ(called_from(line(3), line(10)), called_from(line(3), line(10)));
  EXPECT_NE(called_from(line(3), line(10)), called_from(line(3), line(11)));
  EXPECT_FALSE(called_from({}, line(10)).known());
  const Diagnostic fault{Code::ZeroDivisor, called_from(called_from(line(3), line(10)), line(29)), {}, {}, {}};
  EXPECT_EQ(to_text(fault),
            "error[HV0208]: division by zero\n  --> k.py:3:1\nnote: the function is called here (k.py:10:1)\n"
            "note: the function is called here (k.py:29:1)\nhelp: the divisor must not be 0");
}

TEST_F(Calls, ExtentsThatAreEqualInEveryCase) {
  const VarRef n = make_var("N"), k = make_var("K");
  const auto pair = [&](Expr first, Expr second) {
    return fault(values(tensor("X", {std::move(first)}), tensor("Y", {std::move(second)}), int_imm(1, kInt32)));
  };
  EXPECT_EQ(pair(Expr(n), Expr(n)), "accepted");
  EXPECT_EQ(pair(Expr(n) + Expr(k), Expr(k) + Expr(n)), "accepted");
  EXPECT_EQ(pair(Expr(n) * idx(2) + idx(2), (Expr(n) + idx(1)) * idx(2)), "accepted");
  EXPECT_EQ(pair(Expr(n), Expr(k)),
            "error[HV0606]: dimension 0 of 'B' is 'M', which dimension 0 of 'A' set to N; the argument's is K\n"
            "  --> k.py:21:1\nnote: 'B' is declared here\n"
            "help: a call needs extents that are equal in every case: write one for both");
  EXPECT_EQ(pair(idx(4), idx(5)),
            "error[HV0606]: dimension 0 of 'B' is 'M', which dimension 0 of 'A' set to 4; the argument's is 5\n"
            "  --> k.py:21:1\nnote: 'B' is declared here\nhelp: pass arguments that agree on 'M'");
}

TEST_F(Calls, MemoryIsApartUnlessTheCalleeSaysOtherwise) {
  const BufferRef x = param("X", kInt32, {6}), y = param("Y", kInt32, {6});
  const std::string shared =
      "error[HV0611]: the arguments of 'A' and 'B' share memory, and 'B' is written\n  --> k.py:21:1\n"
      "note: the argument of 'A' (k.py:20:1)\n"
      "help: pass tensors that do not overlap, or declare at the head of the function that they may: T.may_alias(A, "
      "B) (then target=\"interp\" with check=\"races\" tells whether iterations or blocks depend on each other)";
  EXPECT_EQ(fault(values(x, y, int_imm(1, kInt32))), "accepted");
  EXPECT_EQ(fault(values(x, x, int_imm(1, kInt32))), shared);
  EXPECT_EQ(fault(values(x, y, int_imm(1, kInt32)), {{}, {}, {{{x, y}, {}, {}}}, {}}), shared);
  Ref<Function> declared = make_ref<Function>(*scale());
  declared->may_alias = {{{from, to}, {}, {}}};
  EXPECT_NO_THROW(call(FunctionRef(declared), values(x, x, int_imm(1, kInt32)), {}, {}));
}

TEST_F(Calls, ScalarsAreConvertedAsInAStore) {
  const BufferRef x = param("X", kInt32, {6}), y = param("Y", kInt32, {6});
  EXPECT_EQ(fault(values(x, y, idx(3))), "accepted");
  EXPECT_EQ(fault(values(x, y, int_imm(3, {TypeCode::Int, 8}))), "accepted");
  EXPECT_NE(fault(values(x, y, f32(3))).find("HV0206"), std::string::npos);
}

}  // namespace
}  // namespace helve::testing
