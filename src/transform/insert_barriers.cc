// Barriers between threads that touch one element.
// Input: the program of the threads of a block without the barriers that it needs. Output: the same with T.sync_threads
// wherever two accesses of an element by different threads, one a write, would not be ordered; none whose removal the
// check accepts. Where the check's budget did not suffice a barrier stands, with a warning.
//
// Before:  for tx in T.threads(128):          After:  for tx in T.threads(128):
//              S[tx] = A[tx]                              S[tx] = A[tx]
//          for tx in T.threads(128):                  T.sync_threads()
//              B[tx] = S[127 - tx]                    for tx in T.threads(128):
//                                                         B[tx] = S[127 - tx]
#include <fmt/format.h>

#include "helve/analysis/barriers.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// One warning a kernel, at the first place.
Diagnostic warning_of(const std::vector<UnorderedAccesses>& undecided) {
  const UnorderedAccesses& first = undecided.front();
  const std::string what = fmt::format("it is asked of '{}', which is accessed here before", first.buffer->name);
  return {Code::BarrierUndecided,
          first.later->span,
          {{"count", static_cast<int64_t>(undecided.size())}},
          {{first.earlier->span, what}},
          {}};
}

}  // namespace

FunctionRef insert_barriers(const FunctionRef& f, const PassOptions& options) {
  BarrierAnalysis analysis(f);
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     std::vector<UnorderedAccesses> undecided;
                     const Ref<const Kernel> ordered =
                         analysis.with_barriers(Ref<const Kernel>(kernel), &undecided);
                     HELVE_CHECK(analysis.unordered(*ordered).empty(), "inserted barriers do not suffice");
                     if (!undecided.empty() && options.warnings) options.warnings->push_back(warning_of(undecided));
                     return Stmt(ordered);
                   }));
}

}  // namespace helve
