// Buffers that values do not need: which are removed, which must stay, and that results do not change.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// Loops of 8 vectors of 8 over 64 elements.
struct Rows {
  BufferRef a = param("A", kFloat32, {64}), b = param("B", kFloat32, {64});
  BufferRef x = shared("x", kFloat32, {64});

  /// for v: for l: body(v * 8 + l)
  static Stmt nest(const std::function<Stmt(const Expr& at, const Expr& l)>& body, int64_t count = 8,
                   int64_t begin = 0) {
    const VarRef v = make_var("v");
    return serial(v, idx(count), {lanes(Expr(v) * idx(8) + idx(begin), body)});
  }
  static Stmt lanes(const Expr& start, const std::function<Stmt(const Expr& at, const Expr& l)>& body,
                    int64_t width = 8) {
    const VarRef l = make_var("l");
    return for_loop(LoopKind::Vectorized, l, idx(width), body(start + Expr(l), Expr(l)));
  }
  Stmt set_x(const Expr& at, const Expr& value) const { return store(x, {at}, value); }
  Expr get_x(const Expr& at) const { return load(x, {at}); }
  FunctionRef make(std::vector<Stmt> body) const {
    body.insert(body.begin(), alloc(x));
    return function("main", {a, b}, one_block(std::move(body)));
  }
};

bool allocates(const FunctionRef& f, const std::string& name, int64_t elements) {
  bool found = false;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    found |= n && n->buffer->name == name && *int_value(n->buffer->shape[0]) == elements;
  });
  return found;
}

TEST(ContractBuffers, ACopyIsReadWhereItLiesAndAnIterationKeepsItsOwnValues) {
  const Rows r;
  const BufferRef part = shared("part", kFloat32, {8});
  const VarRef v = make_var("v"), w = make_var("v");
  const Expr start = Expr(v) * idx(8), again = Expr(w) * idx(8);
  const FunctionRef f = r.make({
      alloc(part),
      Rows::lanes(idx(0), [&](const Expr&, const Expr& l) { return store(part, {l}, f32(0)); }),
      serial(v, idx(8),
             {Rows::lanes(start, [&](const Expr& at, const Expr&) { return r.set_x(at, load(r.a, {at})); }),
              Rows::lanes(start, [&](const Expr& at,
                                     const Expr& l) { return store(part, {l}, load(part, {l}) + r.get_x(at)); })}),
      serial(w, idx(8),
             {Rows::lanes(again,
                          [&](const Expr& at, const Expr&) { return r.set_x(at, r.get_x(at) * load(part, {idx(0)})); }),
              Rows::lanes(again, [&](const Expr& at, const Expr&) { return store(r.b, {at}, r.get_x(at)); })}),
  });
  expect_prints(contract_buffers, f, R"(
@T.prim_func
def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(1) as bx:
        part = T.alloc_shared((8,), "float32")
        for l in T.vectorized(8):
            part[l] = 0.0
        for v in T.serial(8):
            for l_1 in T.vectorized(8):
                part[l_1] = part[l_1] + A[v * 8 + l_1]
        for v_1 in T.serial(8):
            x = T.alloc_local((8,), "float32")
            for l_2 in T.vectorized(8):
                x[l_2] = A[v_1 * 8 + l_2] * part[0]
            for l_3 in T.vectorized(8):
                B[v_1 * 8 + l_3] = x[l_3]
)");
  expect_same_results(contract_buffers, f);
}

TEST(ContractBuffers, ValuesForALaterLoopStay) {
  const Rows r;
  const FunctionRef f =
      r.make({Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, load(r.a, {at}) * f32(2)); }),
              Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, r.get_x(at)); })});
  expect_untouched(contract_buffers, f);
}

TEST(ContractBuffers, NeighboursOverlapsAndRepeatedElementsStay) {
  const Rows r;
  const auto copy_in = [&] {
    return Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, load(r.a, {at})); });
  };
  const VarRef t = make_var("t"), u = make_var("u");
  for (const FunctionRef& f : {
           r.make({copy_in(),
                   Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, r.get_x(at + idx(1))); }, 7)}),
           r.make(
               {copy_in(), Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, r.get_x(at)); }, 7)}),
           r.make({copy_in(),
                   Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, r.get_x(idx(63) - at)); })}),
           // The element of iteration t is overwritten by that of t + 4.
           r.make({serial(t, idx(8), {r.set_x(floor_mod(Expr(t), idx(4)), load(r.a, {Expr(t)}))}),
                   serial(u, idx(8), {store(r.b, {Expr(u)}, r.get_x(floor_mod(Expr(u), idx(4))))})}),
       }) {
    expect_untouched(contract_buffers, f);
    expect_same_results(contract_buffers, f);
  }
}

TEST(ContractBuffers, WhatIsWrittenMeanwhileIsNotReadAgain) {
  const Rows r;
  const FunctionRef f = r.make(
      {Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, load(r.b, {at})); }),
       Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, load(r.a, {at})); }),
       Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, load(r.b, {at}) + r.get_x(at)); })});
  expect_untouched(contract_buffers, f);
}

TEST(ContractBuffers, AConditionOrAWhileLoopKeepsTheBuffer) {
  const Rows r;
  const auto copy_in = [&] {
    return Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, load(r.a, {at})); });
  };
  const auto out = [&] {
    return Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, r.get_x(at)); });
  };
  const Expr positive = less(f32(0), load(r.a, {idx(0)}));
  expect_untouched(
      contract_buffers,
      r.make({copy_in(),
              if_then(positive, Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, f32(1)); })), out()}));
  const VarRef t = make_var("t");
  const Expr extent = cast(r.get_x(idx(0)) - r.get_x(idx(0)), kIndex) + idx(3);
  expect_untouched(contract_buffers, r.make({copy_in(), serial(t, extent, {store(r.b, {Expr(t)}, f32(1))}), out()}));
}

TEST(ContractBuffers, OneStatementInTwoPlacesIsTwoLoops) {
  const Rows r;
  const BufferRef y = shared("y", kFloat32, {64});
  const VarRef v = make_var("v");
  // The second visit reads what the first one stored, not what it stores itself.
  const Stmt body =
      seq({Rows::lanes(Expr(v) * idx(8), [&](const Expr& at, const Expr&) { return store(y, {at}, r.get_x(at)); }),
           Rows::lanes(Expr(v) * idx(8),
                       [&](const Expr& at, const Expr&) { return r.set_x(at, load(y, {at}) + load(r.a, {at})); })});
  const Stmt twice = for_loop(LoopKind::Serial, v, idx(8), body);
  const FunctionRef f =
      r.make({alloc(y), Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, f32(1)); }), twice, twice,
              Rows::nest([&](const Expr& at, const Expr&) { return store(r.b, {at}, r.get_x(at)); })});
  expect_same_results(contract_buffers, f);
  EXPECT_TRUE(allocates(contract_buffers(f, {}), "y", 8));
  EXPECT_TRUE(allocates(contract_buffers(f, {}), "x", 64));
}

TEST(ContractBuffers, ARowAtATimeWithDynamicTails) {
  const VarRef m = make_var("m"), n = make_var("n");
  const auto dynamic = [&](const char* name) {
    return make_buffer(name, kFloat32, MemoryScope::Param, {Expr(m), Expr(n)});
  };
  const BufferRef a = dynamic("A"), b = dynamic("B"), x = shared("x", kFloat32, {2, 64});
  const VarRef i = make_var("i");
  const auto row = [&](const std::function<Stmt(const Expr&, const Expr&)>& body) {
    const VarRef v = make_var("v"), l = make_var("l"), t = make_var("t");
    return seq({serial(v, floor_div(Expr(n), idx(8)),
                       {for_loop(LoopKind::Vectorized, l, idx(8), body(Expr(i), Expr(v) * idx(8) + l))}),
                serial(t, floor_mod(Expr(n), idx(8)), {body(Expr(i), floor_div(Expr(n), idx(8)) * idx(8) + t)})});
  };
  const Stmt rows = for_loop(
      LoopKind::Parallel, i, min(Expr(m), idx(2)),
      seq({row([&](const Expr& r, const Expr& c) { return store(x, {r, c}, load(a, {r, c})); }),
           row([&](const Expr& r, const Expr& c) { return store(b, {r, c}, load(x, {r, c}) + load(x, {r, c})); })}));
  const FunctionRef f = dynamic_function("main", {m, n}, {a, b}, one_block({alloc(x), rows}));
  EXPECT_FALSE(allocates(contract_buffers(f, {}), "x", 2)) << print(contract_buffers(f, {}));
  for (int64_t extent : {0, 1, 7, 8, 9, 61})
    expect_same_results(contract_buffers, f, {}, {{m.get(), 2}, {n.get(), extent}});
  for (int64_t extent : {0, 1}) expect_same_results(contract_buffers, f, {}, {{m.get(), extent}, {n.get(), 11}});
}

TEST(ContractBuffers, ANameForAValueFromMemoryIsNotMoved) {
  const BufferRef index = param("I", kInt32, {8}), a = param("A", kFloat32, {64}), b = param("B", kFloat32, {8}),
                  x = shared("x", kFloat32, {8});
  const VarRef t = make_var("t"), u = make_var("u"), at = make_var("at");
  const Stmt gather = serial(
      t, idx(8), {bind(at, cast(load(index, {Expr(t)}), kIndex) + idx(4)), store(x, {Expr(t)}, load(a, {Expr(at)}))});
  const FunctionRef f =
      function("main", {index, a, b},
               one_block({alloc(x), gather, serial(u, idx(8), {store(b, {Expr(u)}, load(x, {Expr(u)}))})}));
  expect_untouched(contract_buffers, f);
}

TEST(ContractBuffers, StoresRoundAsBefore) {
  const DType half{TypeCode::Float, 16};
  const BufferRef a = param("A", kFloat32, {16}), b = param("B", kFloat32, {16}), x = shared("x", half, {16}),
                  y = shared("y", half, {16});
  const VarRef t = make_var("t"), u = make_var("u");
  const auto third = [&](const Expr& e) { return e * f32(1.0 / 3); };
  const FunctionRef f =
      function("main", {a, b},
               one_block({alloc(x), alloc(y), serial(t, idx(16), {store(x, {Expr(t)}, load(a, {Expr(t)}))}),
                          serial(u, idx(16),
                                 {store(y, {Expr(u)}, third(cast(load(x, {Expr(u)}), kFloat32))),
                                  store(b, {Expr(u)}, third(cast(load(y, {Expr(u)}), kFloat32)))})}));
  const FunctionRef after = contract_buffers(f, {});
  EXPECT_TRUE(allocates(after, "y", 1)) << print(after);
  EXPECT_FALSE(allocates(after, "x", 16)) << print(after);
  expect_same_results(contract_buffers, f);
}

TEST(ContractBuffers, WhatNobodyReadsIsNotStored) {
  const Rows r;
  const FunctionRef f = r.make({Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, f32(3)); }),
                                Rows::nest([&](const Expr& at, const Expr&) { return r.set_x(at, f32(4)); }),
                                store(r.b, {idx(0)}, f32(5))});
  const FunctionRef after = contract_buffers(f, {});
  EXPECT_FALSE(allocates(after, "x", 64)) << print(after);
  expect_same_results(contract_buffers, f);
}

}  // namespace
}  // namespace helve::testing
