// Fragments get the layouts that the schedules of their operations demand.
// Input: any stage before tile operations are lowered. Output: the same, with layouts on such fragments. It runs before
// layouts are inferred, so the loops over a fragment follow the operation. Layouts of the program, or of an operation
// before, are kept; a schedule that declines even so gives none. Fragments that are copies of placed ones are placed
// alike.
// Before:  C = T.alloc_fragment((64, 64), "float32")
//          T.gemm(A, B, C, dispatch="mma")
// After:   C = T.alloc_fragment((64, 64), "float32", layout="S[(2, 2, 2, 8, ...) : (...)]")
//          T.gemm(A, B, C, dispatch="mma")
#include <utility>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

/// A fragment without a layout that a placed one is copied to or from gets the same one, so that the copy moves nothing
/// and what follows (T.stmatrix) finds it.
void place_copies(const Stmt& body, BufferMap* fragments) {
  const auto is_fragment = [](const Region& region) {
    return region.buffer->scope == MemoryScope::Fragment && region.whole();
  };
  for (bool news = true; news;) {
    news = false;
    walk(body, [&](const Stmt& s) {
      const TileOp* op = as<TileOp>(s);
      if (!op || op->op != TileOpcode::Copy || !is_fragment(op->region(0)) || !is_fragment(op->region(1))) return;
      for (const size_t i : {0, 1}) {
        const BufferRef &from = op->region(i).buffer, &to = op->region(1 - i).buffer;
        const auto placed = fragments->find(from.get());
        if (placed == fragments->end() || to->layout || fragments->contains(to.get())) continue;
        if (!constant_shape(to->shape) || constant_shape(to->shape) != constant_shape(from->shape)) continue;
        fragments->emplace(to.get(), with_layout(declare_again(*to), *placed->second->layout, op->span));
        news = true;
      }
    });
  }
}

class Placement final : public ScopedRewriter {
 public:
  Placement(const Function& f, const PassOptions& options) : ScopedRewriter(f), schedules_(*options.schedules) {
    context_.function = &f;
    context_.machine = &options.machine;
  }

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (const TileOp* op = as<TileOp>(s); op && enclosing_kernel()) place(*op, facts);
    const Kernel* kernel = as<Kernel>(s);
    BufferMap placed = kernel ? std::exchange(placed_, {}) : BufferMap();
    if (placed.empty()) return s;
    place_copies(kernel->body, &placed);
    return Stmt(copy_with(*kernel, [&](Kernel& copy) { copy.body = redeclare_buffers(kernel->body, placed); }));
  }

 private:
  /// The layouts that the schedule of an operation demands, beside those of operations before.
  void place(const TileOp& op, const Facts& facts) {
    context_.kernel = enclosing_kernel();
    context_.facts = &facts;
    const Stmt simple =
        map_parts(replace_buffers(Stmt(&op), placed_), [&](const Expr& e) { return simplify(e, facts); },
                  [](const Stmt& part) { return part; });
    for (const auto& [buffer, layout] : asked_schedule(*as<TileOp>(simple), schedules_, context_).layouts) {
      if (!buffer->layout) placed_.emplace(buffer.get(), with_layout(declare_again(*buffer), layout, op.span));
    }
  }

  const std::vector<TileSchedule>& schedules_;
  LoweringContext context_;
  BufferMap placed_;  ///< of the kernel that is being read
};

}  // namespace

FunctionRef place_operands(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Placement(*f, options).rewrite(f->body));
}

}  // namespace helve
