// Rows that are read soon are asked for.
// Input and output: lowered loops of a kernel. Where one iteration reads elements more than once, the first time waits
// for memory and the last does not: the last one asks for those of the next iteration. And where short rows are read
// once, it asks for rows some way ahead (analysis/memory_traffic.h).
// Before:  for l in T.vectorized(64):
//              B[r, v * 64 + l] = A[r, v * 64 + l] / s[0]
// After:   for l in T.vectorized(64):
//              B[r, v * 64 + l] = A[r, v * 64 + l] / s[0]
//              T.prefetch(A[r + 1, v * 64 + l])
// A prefetch has no effect on results and may lie outside of its tensor. Scheduled loops get none.
#include <unordered_map>

#include "helve/analysis/memory_traffic.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

Stmt with_prefetches(const Stmt& kernel) {
  std::unordered_map<const StmtNode*, std::vector<Stmt>> asked;
  for (EarlyRead& read : early_reads(*as<Kernel>(kernel))) {
    if (read.loop->scheduled) continue;
    asked[read.loop].push_back(prefetch(read.buffer, std::move(read.indices), read.loop->span));
  }
  if (asked.empty()) return kernel;
  return rewrite(kernel, [&](const Stmt& s) -> Stmt {
    const auto found = asked.find(s.get());
    if (found == asked.end()) return s;
    return Stmt(copy_with(*as<For>(s), [&](For& loop) {
      std::vector<Stmt> body = {loop.body};
      body.insert(body.end(), found->second.begin(), found->second.end());
      loop.body = seq(std::move(body), s->span);
    }));
  });
}

}  // namespace

FunctionRef prefetch_reads(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [](const Stmt& s) { return as<Kernel>(s) ? with_prefetches(s) : s; }));
}

}  // namespace helve
