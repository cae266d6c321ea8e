// The sums of products on tensor cores get the layout of the instruction.
// The product demands it before layouts are inferred, so the loops over C follow the product. Sums that the program
// placed, or that no instruction serves, stay.
// Input: any stage before tile operations are lowered.
// Before:  C = T.alloc_fragment((64, 64), "float32")
//          T.gemm(A, B, C, dispatch="mma")
// After:   C = T.alloc_fragment((64, 64), "float32", layout="S[(2, 2, 2, 8, ...) : (...)]")
//          T.gemm(A, B, C, dispatch="mma")
#include "helve/analysis/tensor_core_product.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

Stmt placed(const Stmt& s) {
  const Kernel* kernel = as<Kernel>(s);
  if (!kernel) return s;
  BufferMap sums;
  walk(kernel->body, [&](const Stmt& inner) {
    const TileOp* op = as<TileOp>(inner);
    if (!op || op->op != TileOpcode::Gemm || op->text(op->row().index_of("dispatch")) != "mma") return;
    const BufferRef& c = op->region(2).buffer;
    std::string reason;
    const std::optional<ProductShape> shape = tensor_core_product(*op, &reason);
    if (!shape || c->layout || sums.contains(c.get())) return;
    const std::optional<WarpGrid> grid = warp_grid(*shape, kernel->threads / kWarp);
    if (!grid) return;
    ProductShape step = *shape;
    step.k = kProductDepth;
    sums.emplace(c.get(), with_layout(declare_again(*c), product_layouts(step, *grid).c, op->span));
  });
  if (sums.empty()) return s;
  return Stmt(copy_with(*kernel, [&](Kernel& copy) { copy.body = redeclare_buffers(kernel->body, sums); }));
}

}  // namespace

FunctionRef place_products(const FunctionRef& f, const PassOptions&) { return with_body(f, rewrite(f->body, placed)); }

}  // namespace helve
