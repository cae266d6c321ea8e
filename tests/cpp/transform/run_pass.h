// Passes under test: comparison of trees, and of what programs compute before and after.
// One judge for all passes, so that each test states only its programs.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "helve/interp/interp.h"
#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/pipeline.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {

using PassFunction = FunctionRef (*)(const FunctionRef&, const PassOptions&);

/// The pass turns `before` into `expected`, and both verify.
inline void expect_becomes(PassFunction pass, const FunctionRef& before, const FunctionRef& expected,
                           const PassOptions& options = {}) {
  verify(before);
  verify(expected);
  const FunctionRef after = pass(before, options);
  verify(after);
  std::string path;
  EXPECT_TRUE(structural_equal(after, expected, &path)) << "differs at " << path << "\ngot:\n"
                                                        << print(after) << "\nexpected:\n"
                                                        << print(expected);
}

/// As expect_becomes, with the result as the printer writes it.
inline void expect_prints(PassFunction pass, const FunctionRef& before, const std::string& expected,
                          const PassOptions& options = {}) {
  verify(before);
  const FunctionRef after = pass(before, options);
  verify(after);
  EXPECT_EQ("\n" + print(after), expected);
}

inline void expect_untouched(PassFunction pass, const FunctionRef& f, const PassOptions& options = {}) {
  verify(f);
  EXPECT_EQ(pass(f, options), f) << print(pass(f, options));
}

/// Values of dynamic extents.
using Extents = std::map<const Var*, int64_t>;
/// The bytes of all tensor parameters after a run.
using Memory = std::vector<std::vector<std::byte>>;

/// Interprets `f` on small numbers that depend on `seed` only; parameters of the dtypes float32, int32, bool.
inline Memory interpret(const FunctionRef& f, unsigned seed = 1, const Extents& extents = {},
                        const interp::Options& options = {}) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(-4, 4);
  Memory memory;
  std::vector<interp::Arg> args;
  for (const Param& p : f->params) {
    const Buffer& buffer = **std::get_if<BufferRef>(&p);
    std::vector<int64_t> shape;
    int64_t count = 1;
    for (const Expr& e : buffer.shape) {
      shape.push_back(int_value(e) ? *int_value(e) : extents.at(as<Var>(e)));
      count *= shape.back();
    }
    const size_t bytes = static_cast<size_t>(buffer.dtype.bytes());
    std::vector<std::byte>& data = memory.emplace_back(static_cast<size_t>(count) * bytes + 8);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const int32_t whole = pick(random);
      const float real = static_cast<float>(whole);
      const bool truth = whole > 0;
      const void* from = buffer.dtype.is_float()  ? static_cast<const void*>(&real)
                         : buffer.dtype.is_bool() ? static_cast<const void*>(&truth)
                                                  : &whole;
      std::memcpy(data.data() + i * bytes, from, bytes);
    }
    args.push_back(interp::TensorArg{data.data(), shape, {}});
  }
  interp::run(f, args, options);
  return memory;
}

/// The pass keeps what `f` computes.
inline void expect_same_results(PassFunction pass, const FunctionRef& f, const PassOptions& options = {},
                                const Extents& extents = {}) {
  verify(f);
  const FunctionRef after = pass(f, options);
  verify(after);
  for (unsigned seed : {1u, 2u}) {
    EXPECT_EQ(interpret(f, seed, extents), interpret(after, seed, extents)) << print(f) << "\nbecame\n" << print(after);
  }
}

/// Every stage of the CPU pipeline verifies and computes what `f` computes, where every tensor counts as a large one.
inline void expect_same_on_all_stages(const FunctionRef& f, PassOptions options = {}, const Extents& extents = {}) {
  options.machine.store_line = 64;
  options.stream_bytes = 1;
  verify(f);
  const Memory expected = interpret(f, 1, extents);
  interp::Options anywhere;
  anywhere.placement = 5;
  StageInstrument stages;
  VerifyInstrument verifier;
  run_pipeline(cpu_pipeline(), f, options, {&stages, &verifier});
  for (const StageInstrument::Stage& stage : stages.stages()) {
    ASSERT_EQ(interpret(stage.function, 1, extents, anywhere), expected)
        << "after " << stage.pass << ", chunk " << options.persistent_chunk << "\n"
        << print(f) << "\nbecame\n"
        << print(stage.function);
  }
}

/// The whole text of the UserError that the pass throws.
inline std::string refusal(PassFunction pass, const FunctionRef& f) {
  verify(f);
  try {
    pass(f, {});
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

/// A loop of `kind` over `var` from 0.
inline Stmt loop(LoopKind kind, const VarRef& var, Expr extent, std::vector<Stmt> body) {
  return for_loop(kind, var, std::move(extent), seq(std::move(body)));
}

}  // namespace helve::testing
