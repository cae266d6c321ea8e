// The engine behind sets and relations: isl's context, and the budget of each query.
// The only room that sees isl's headers; nothing of isl crosses the interface, exceptions included.
#pragma once

#include <fmt/format.h>
#include <isl/cpp.h>

#include <memory>
#include <utility>

#include "helve/arith/relation.h"
#include "helve/support/cancel.h"
#include "helve/support/diagnostic.h"

namespace helve {

struct ExactEngine::State {
  explicit State(int64_t limit);
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  isl_ctx* context;
  int64_t limit;
};

using Engine = std::shared_ptr<ExactEngine::State>;

/// Is the error, or the one that it follows from, an exceeded budget?
bool is_quota(const isl::exception& error, isl_ctx* context);

/// Runs `f` within the budget; false when it was exceeded.
template <class F>
bool within_budget(const Engine& engine, F&& f) {
  throw_if_cancelled();
  isl_ctx_reset_error(engine->context);
  isl_ctx_reset_operations(engine->context);
  isl_ctx_set_max_operations(engine->context, static_cast<unsigned long>(engine->limit));
  bool done = true;
  try {
    f();
  } catch (const isl::exception& error) {
    // What was computed from nothing complains of its own; the first error is what counts.
    done = !is_quota(error, engine->context);
    isl_ctx_set_max_operations(engine->context, 0);
    if (done) HELVE_FAIL(fmt::format("isl refuses a query: {}", error.what()));
  }
  isl_ctx_set_max_operations(engine->context, 0);
  isl_ctx_reset_error(engine->context);
  return done;
}

}  // namespace helve
