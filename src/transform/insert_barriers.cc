// Barriers between threads that access the same element.
// Input: the program of the threads of a block without the barriers that it needs. Output: the same with T.sync_threads
// wherever two accesses to an element by different threads, one a write, would be unordered; no barrier is superfluous
// by the same check. If the check's budget does not suffice, a barrier is inserted, with a warning.
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

/// The place where the statement stores to the buffer, or else reads it; the statement's if neither is known.
Span place_of(const Stmt& s, const BufferRef& buffer) {
  Span stored, read;
  walk(s, [&](const Stmt& each) {
    const Store* n = as<Store>(each);
    if (n && n->buffer == buffer && !stored.known()) stored = n->span;
  });
  walk_exprs(s, [&](const Expr& e) {
    const Load* n = as<Load>(e);
    if (n && n->buffer == buffer && !read.known()) read = n->span;
  });
  return stored.known() ? stored : read.known() ? read : s->span;
}

/// One warning per kernel, at the first place.
Diagnostic warning_of(const std::vector<UnorderedAccesses>& undecided) {
  const auto& [buffer, earlier, later, certain] = undecided.front();
  return {Code::BarrierUndecided,
          place_of(later, buffer),
          {{"count", static_cast<int64_t>(undecided.size())}},
          {{place_of(earlier, buffer), fmt::format("'{}' is accessed here before", buffer->name)}},
          {}};
}

}  // namespace

FunctionRef insert_barriers(const FunctionRef& f, const PassOptions& options) {
  BarrierAnalysis analysis(f);
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     std::vector<UnorderedAccesses> undecided;
                     const Ref<const Kernel> ordered = analysis.with_barriers(Ref<const Kernel>(kernel), &undecided);
                     HELVE_CHECK(analysis.unordered(*ordered).empty(), "inserted barriers do not suffice");
                     if (!undecided.empty() && options.warnings) options.warnings->push_back(warning_of(undecided));
                     return Stmt(ordered);
                   }));
}

}  // namespace helve
