// The pipeline and what watches it.
#include <algorithm>

#include "ir/tensor/programs/rms_norm.h"
#include "run_pass.h"

namespace helve::testing {
namespace {

FunctionRef keep(const FunctionRef& f, const PassOptions&) { return f; }

/// Stores at a variable that nothing defines.
FunctionRef use_an_unknown_variable(const FunctionRef& f, const PassOptions&) {
  const BufferRef& out = *std::get_if<BufferRef>(&f->params[0]);
  return with_body(f, one_block({store(out, {make_var("ghost"), idx(0)}, f32(1))}));
}

/// Stores past the end of the first parameter.
FunctionRef store_past_the_end(const FunctionRef& f, const PassOptions&) {
  const BufferRef& out = *std::get_if<BufferRef>(&f->params[0]);
  return with_body(f, one_block({store(out, {idx(99), idx(0)}, f32(1))}));
}

FunctionRef small() {
  const BufferRef out = param("out", kFloat32, {4, 4});
  return function("main", {out}, one_block({store(out, {idx(0), idx(0)}, f32(1))}));
}

std::string fault_of(PassFunction pass) {
  VerifyInstrument verifier;
  try {
    run_pipeline({{"harmless", keep}, {"broken_pass", pass}}, small(), {}, {&verifier});
  } catch (const InternalError& e) {
    return e.what();
  }
  return "no error";
}

TEST(Pipeline, VerifierNamesTheBrokenPass) {
  EXPECT_EQ(fault_of(keep), "no error");
  const std::string outside = fault_of(store_past_the_end);
  EXPECT_NE(
      outside.find(
          "pass 'broken_pass' made a function that does not verify: error[HV0210]: index 99 of dimension 0 of 'out'"),
      std::string::npos)
      << outside;
  const std::string unknown = fault_of(use_an_unknown_variable);
  EXPECT_NE(unknown.find("pass 'broken_pass' made a function that does not verify: "), std::string::npos) << unknown;
  EXPECT_NE(unknown.find("'ghost' is used where it is not defined"), std::string::npos) << unknown;
}

TEST(Pipeline, TimesAndStagesFollowTheList) {
  TimeInstrument times;
  StageInstrument stages;
  const FunctionRef f = rms_norm_splitk(37, 101, 8, 16, 2, 3);
  const FunctionRef lowered = run_pipeline(cpu_pipeline(), f, {}, {&times, &stages});
  ASSERT_EQ(times.rows().size(), cpu_pipeline().size());
  ASSERT_EQ(stages.stages().size(), cpu_pipeline().size());
  FunctionRef before = f;
  for (size_t i = 0; i < times.rows().size(); ++i) {
    EXPECT_EQ(times.rows()[i].pass, cpu_pipeline()[i].name);
    EXPECT_EQ(stages.stages()[i].pass, cpu_pipeline()[i].name);
    EXPECT_GE(times.rows()[i].seconds, 0);
    EXPECT_EQ(times.rows()[i].changed, stages.stages()[i].function != before);
    EXPECT_EQ(stages.stages()[i].changed, times.rows()[i].changed);
    before = stages.stages()[i].function;
  }
  EXPECT_EQ(before, lowered);
  EXPECT_EQ(times.rows()[0].pass, "drop_breakpoints");
  EXPECT_EQ(times.rows()[3].pass, "lower_updates");
  EXPECT_EQ(times.rows()[4].pass, "pack_elements");
  for (const size_t none : {0, 1, 2, 3, 4}) EXPECT_FALSE(times.rows()[none].changed);
  EXPECT_TRUE(times.rows()[5].changed);
}

TEST(Pipeline, LoweredCodeHoldsNoTiles) {
  const FunctionRef f = run_pipeline(cpu_pipeline(), rms_norm_splitk(37, 101, 8, 16, 2, 3), {}, {});
  const Kernel* inside = nullptr;
  walk(f->body, [&](const Stmt& s) {
    if (const Kernel* k = as<Kernel>(s)) inside = k;
    EXPECT_NE(s->kind, StmtKind::ForTiles);
    EXPECT_NE(s->kind, StmtKind::TileStore);
    if (const TileOp* op = as<TileOp>(s)) {
      EXPECT_TRUE(op->row().is_collective());
    }
    if (const Alloc* a = as<Alloc>(s)) {
      EXPECT_FALSE(is_tiled(*a->buffer)) << a->buffer->name;
    }
    if (const For* l = as<For>(s)) {
      EXPECT_NE(l->loop, LoopKind::Persistent);
      EXPECT_NE(l->loop, LoopKind::Pipelined);
    }
  });
  EXPECT_NE(inside, nullptr);
}

TEST(Pipeline, LoweredCodeIsAFixedPoint) {
  const FunctionRef lowered = run_pipeline(cpu_pipeline(), rms_norm_splitk(37, 101, 8, 16, 2, 3), {}, {});
  for (const Pass& pass : cpu_pipeline()) {
    // Lanes of the loops that tile operations became share one memory on purpose: what one reads no other writes.
    if (pass.run == privatize_scratch) continue;
    EXPECT_EQ(pass.run(lowered, {}), lowered) << pass.name;
  }
}

TEST(Pipeline, RmsNormStagesAgree) {
  // reductions are re-associated by lower_tile_ops, so stages are close, not equal
  const FunctionRef f = rms_norm_splitk(37, 101, 8, 16, 2, 3);
  for (int64_t chunk : {1, 2, 5}) {
    PassOptions options;
    options.persistent_chunk = chunk;
    StageInstrument stages;
    VerifyInstrument verifier;
    run_pipeline(cpu_pipeline(), f, options, {&stages, &verifier});
    const auto floats = [](const Memory& m) {
      std::vector<float> out(m[1].size() / 4);
      std::memcpy(out.data(), m[1].data(), out.size() * 4);
      return out;
    };
    const std::vector<float> expected = floats(interpret(f));
    for (const StageInstrument::Stage& stage : stages.stages()) {
      const std::vector<float> got = floats(interpret(stage.function));
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-5) << stage.pass << " element " << i;
    }
  }
}

}  // namespace
}  // namespace helve::testing
