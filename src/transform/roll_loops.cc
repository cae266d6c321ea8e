// Loops over wide vectors stay loops.
// Input: vectors that a processor executes (legalize_vectors). Output: the same; a serial or parallel loop that is not
// scheduled and has a wide vector loop directly in its body is rolled.
// Before:  for r in T.serial(64):                    After:  for r in T.serial(64, rolled=True):
//              for l in T.vectorized(64): ...                    for l in T.vectorized(64): ...
// Vectors of several registers side by side hide the latency of one another: copies of the loop that a compiler of
// machine code would make add nothing but code.
#include <algorithm>

#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr int64_t kWideVector = 32;  // lanes

bool holds_wide_vectors(const Stmt& s) {
  if (const Seq* n = as<Seq>(s)) return std::any_of(n->stmts.begin(), n->stmts.end(), holds_wide_vectors);
  const For* loop = as<For>(s);
  const int64_t* extent = loop && loop->loop == LoopKind::Vectorized ? int_value(loop->extents[0]) : nullptr;
  return extent && *extent >= kWideVector;
}

bool may_be_rolled(const For& loop) {
  return !loop.scheduled && !loop.rolled && (loop.loop == LoopKind::Serial || loop.loop == LoopKind::Parallel);
}

}  // namespace

FunctionRef roll_loops(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [](const Stmt& s) {
                     const For* loop = as<For>(s);
                     return loop && may_be_rolled(*loop) && holds_wide_vectors(loop->body) ? rolled(s) : s;
                   }));
}

}  // namespace helve
