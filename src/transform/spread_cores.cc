// The iterations of a core become blocks of its GPU.
// Input: a mesh function whose kernels hold no collectives. Output: where cores are GPUs, a kernel that is one
// Persistent loop has blocks of each core, in the dimensions of its grid behind the mesh.
// Before:  with T.Kernel(R, C) as (r, c): tile = ...; for i in T.Persistent([n]): f(i, tile)
// After:   with T.Kernel(R, C, n) as (r, c, block): tile = ...; for i in T.Persistent([n]): f(i, tile)
// The iterations of a Persistent loop are independent and share nothing that the kernel allocates, so the blocks may
// take them in any way. Every block executes what stands around the loop: that touches only the block's own memory, and
// reads of other memory what nobody writes. A kernel of another form keeps one block for each core, which is slow and
// right. How many blocks there are changes no result: it is the number of iterations, where the host knows it, else a
// few for each multiprocessor.
#include <algorithm>

#include "core_loop.h"
#include "helve/analysis/early_copies.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr int64_t kBlocksOfMultiprocessor = 8;

class CoreSpreader {
 public:
  CoreSpreader(const Kernel& kernel, const Function& f, const Machine& machine)
      : kernel_(kernel), f_(f), machine_(machine) {}

  Stmt run() const {
    const For* loop = core_loop(statements_of(kernel_.body), f_.may_alias);
    if (loop == nullptr) return Stmt(&kernel_);
    const Expr blocks = count_of(*loop);
    if (const int64_t* known = int_value(blocks); known && *known <= 1) return Stmt(&kernel_);
    return Stmt(copy_with(kernel_, [&](Kernel& copy) {
      copy.vars.push_back(make_var("block"));
      copy.extents.push_back(blocks);
      return true;
    }));
  }

 private:
  /// The number of blocks: of iterations, if neither memory nor the kernel decides about it.
  Expr count_of(const For& loop) const {
    int64_t constant = 1;
    Expr iterations;
    for (const Expr& extent : loop.extents) {
      bool is_known = !has_load(extent);
      const auto decides = [&](const VarRef& var) { is_known = is_known && !mentions(extent, var.get()); };
      for (const VarRef& var : kernel_.vars) decides(var);
      walk(kernel_.body, [&](const Stmt& s) {
        if (const VarRef var = named_by(s)) decides(var);
      });
      if (!is_known) return int_imm(kBlocksOfMultiprocessor * machine_.processors);
      const int64_t* value = int_value(extent);
      if (value) {
        constant *= std::max<int64_t>(*value, 0);
      } else {
        const Expr count = max(int_imm(0), extent);
        iterations = iterations ? iterations * count : count;
      }
    }
    if (!iterations) return int_imm(constant);
    return constant == 1 ? iterations : iterations * int_imm(constant);
  }

  const Kernel& kernel_;
  const Function& f_;
  const Machine& machine_;
};

}  // namespace

FunctionRef spread_cores(const FunctionRef& f, const PassOptions& options) {
  if (!f->mesh || !options.cores_are_devices) return f;
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     return kernel ? CoreSpreader(*kernel, *f, options.machine).run() : s;
                   }));
}

}  // namespace helve
