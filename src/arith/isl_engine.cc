// The context of isl.
// Its options hold for all sets and relations of the engine.
#include "isl_engine.h"

#include <isl/ast_build.h>
#include <isl/options.h>

namespace helve {

ExactEngine::State::State(int64_t limit) : context(isl_ctx_alloc()), limit(limit) {
  isl_options_set_on_error(context, ISL_ON_ERROR_CONTINUE);  // errors are exceptions here, not text
  isl_options_set_ast_build_detect_min_max(context, 1);      // shorter than selections
}

ExactEngine::State::~State() { isl_ctx_free(context); }

ExactEngine::ExactEngine(int64_t operation_limit) : state_(std::make_shared<State>(operation_limit)) {}

bool is_quota(const isl::exception& error, isl_ctx* context) {
  return dynamic_cast<const isl::exception_quota*>(&error) || isl_ctx_last_error(context) == isl_error_quota;
}

}  // namespace helve
