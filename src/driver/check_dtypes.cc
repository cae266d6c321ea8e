// Element types that a target does not support.
// Checked before lowering, so that the error is at the line that names the type.
#include <fmt/format.h>

#include "driver_targets.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

bool is_packed(DType t) { return t.bits < 8; }

[[noreturn]] void refuse(DType t, Target target, const Span& span, std::vector<std::string> fixes = {}) {
  throw UserError(Code::DTypeOnTarget, span, {{"dtype", to_string(t)}, {"target", std::string(to_string(target))}}, {},
                  std::move(fixes));
}

}  // namespace

void check_dtypes(const Function& f, Target target) {
  for (const Param& param : f.params) {
    std::visit(
        [&](const auto& p) {
          if (!is_packed(p->dtype)) return;
          refuse(p->dtype, target, p->span,
                 {fmt::format("no argument of a call is packed: declare '{}' as int8", p->name)});
        },
        param);
  }
  if (target == Target::Interp) return;
  walk(f.body, [&](const Stmt& s) {
    if (const Alloc* a = as<Alloc>(s); a && is_packed(a->buffer->dtype)) refuse(a->buffer->dtype, target, s->span);
    for_each_part(
        s,
        [&](const Expr& e) {
          walk(e, [&](const Expr& node) {
            if (is_packed(node->dtype)) refuse(node->dtype, target, node->span.known() ? node->span : s->span);
          });
        },
        [](const Stmt&) {});
  });
}

}  // namespace helve
