// Packed element types, of which two share a byte: what a tensor of a call and a mesh may be.
// Checked before lowering, so that the error is at the line that names the type.
#include <fmt/format.h>

#include <algorithm>

#include "driver_targets.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

[[noreturn]] void refuse(const Buffer& b, const std::string& reason, const std::string& remedy) {
  throw UserError(Code::PackedParameter, b.span,
                  {{"parameter", b.name}, {"dtype", to_string(b.dtype)}, {"reason", reason}, {"remedy", remedy}});
}

void check(const Function& f, const Buffer& b) {
  if (f.mesh) {
    refuse(b, "a mesh may divide between the two", fmt::format("declare '{}' as uint8, and unpack its bytes", b.name));
  }
  if (b.shape.empty()) refuse(b, "it has no dimension", "give it one, of an even extent");
  if (!b.strides.empty()) refuse(b, "its strides are declared", "leave strides= out, and pass a compact array");
  const Expr& last = b.shape.back();
  const int64_t* extent = int_value(last);
  const bool is_even = extent && *extent % 2 == 0;
  const bool is_dim =
      std::any_of(f.dims.begin(), f.dims.end(), [&](const VarRef& dim) { return dim.get() == last.get(); });
  if (!is_even && !is_dim) {
    refuse(b, fmt::format("its last extent is {}", to_text(last)), "let the last extent be an even number, or a T.dyn");
  }
}

}  // namespace

void check_dtypes(const Function& f, Target target) {
  for (const Param& param : f.params) {
    if (const BufferRef* b = std::get_if<BufferRef>(&param)) {
      if ((*b)->dtype.is_packed()) check(f, **b);
      continue;
    }
    const VarRef& var = std::get<VarRef>(param);
    if (!var->dtype.is_packed()) continue;
    throw UserError(Code::DTypeOnTarget, var->span,
                    {{"dtype", to_string(var->dtype)}, {"target", std::string(to_string(target))}}, {},
                    {fmt::format("no number of a call is packed: declare '{}' as {}", var->name,
                                 var->dtype.is_float() ? "float32" : "int8")});
  }
}

}  // namespace helve
