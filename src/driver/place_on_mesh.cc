// The mesh a function is compiled for.
// A function may bring its mesh by annotation, or get it at compile; where both are present they must agree.
#include <fmt/format.h>

#include "helve/driver/compile.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

/// The place of a mesh conflict: the grid of the first kernel, or the function if it has none.
Span grid_span(const FunctionRef& f) {
  Span span = f->span;
  bool found = false;
  walk(f->body, [&](const Stmt& s) {
    if (found || s->kind != StmtKind::Kernel) return;
    span = s->span;
    found = true;
  });
  return span;
}

}  // namespace

FunctionRef place_on_mesh(const FunctionRef& f, const std::optional<MeshShape>& mesh) {
  FunctionRef placed = f;
  if (mesh && f->mesh && f->mesh->extents != mesh->extents) {
    throw UserError(Code::MeshGrid, grid_span(f), {{"grid", to_string(*f->mesh)}, {"mesh", to_string(*mesh)}},
                    {{f->span, fmt::format("'{}' is written for the mesh {}, and compiled for {}", f->name,
                                           to_string(*f->mesh), to_string(*mesh))}},
                    {fmt::format("compile it with mesh=helve.Mesh({0}), or write it for {1}: its own mesh, or the "
                                 "nrows and ncols of its annotations, and the grid of each T.Kernel",
                                 to_string(*f->mesh), to_string(*mesh))});
  }
  if (mesh && !f->mesh) {
    Ref<Function> copy = make_ref<Function>(*f);
    copy->mesh = mesh;
    placed = FunctionRef(copy);
  }
  verify(placed);
  return placed;
}

}  // namespace helve
