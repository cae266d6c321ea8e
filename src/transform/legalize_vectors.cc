// Vectorized loops become what a processor executes as vectors, or plain loops.
// Input: any function. Output: each Vectorized loop has one variable, a constant extent that is a power of two from 2
// to 64, and lanes that may run in step (analysis/lanes.h); none is inside another.
// Before:  for l in T.vectorized(100): Y[l] = X[l] * a
// After:   for v in T.serial(3):
//              for l in T.vectorized(32): Y[v * 32 + l] = X[v * 32 + l] * a
//          for l in T.vectorized(4): Y[l + 96] = X[l + 96] * a
// Iterations of a Vectorized loop are independent, so that any order of them is one that the program allows. A
// scheduled one whose lanes cannot run in step is refused (ScheduledLoop).
#include <bit>

#include "helve/analysis/lanes.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"
#include "with_value.h"

namespace helve {

namespace {

constexpr int64_t kChunkLanes = 32;  // of these

class Legalization {
 public:
  explicit Legalization(const Function& f) : may_alias_(f.may_alias) {}

  Stmt visit(const Stmt& s, bool in_vector) const {
    if (!s) return s;
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Vectorized) return parts(s, in_vector);
    const int64_t* extent = loop->extents.size() == 1 ? int_value(loop->extents[0]) : nullptr;
    const bool in_step = lanes_independent(*loop, may_alias_);
    if (loop->scheduled && extent && *extent > 1 && (in_vector || !in_step)) refuse(*loop, in_vector);
    if (in_vector || !extent || *extent < 2 || !in_step) {
      const Ref<const For> plain = copy_with(*loop, [](For& copy) { copy.loop = LoopKind::Serial; });
      return parts(Stmt(plain), in_vector);
    }
    const Stmt whole = parts(s, true);
    return is_legal(*extent) ? whole : chunks(*as<For>(whole), *extent);
  }

 private:
  [[noreturn]] static void refuse(const For& loop, bool in_vector) {
    throw UserError(
        Code::ScheduledLoop, loop.span,
        {{"loop", "T.vectorized"},
         {"reason", in_vector ? "it is inside another vectorized loop" : "its lanes cannot be shown to run in step"},
         {"remedy", in_vector ? "vectorize one loop of the nest"
                              : "store to other elements in each lane, without loops of different bounds, "
                                "allocations or updates; or make the loop T.serial"}});
  }

  static bool is_legal(int64_t lanes) {
    return lanes <= kMaxLanes && std::has_single_bit(static_cast<uint64_t>(lanes));
  }

  Stmt parts(const Stmt& s, bool in_vector) const {
    return map_parts(s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return visit(part, in_vector); });
  }

  /// Chunks of a power of two: of other counts of lanes LLVM 19 makes gathers that overwrite the register of their own
  /// addresses, which no processor executes, and fails to select instructions for some.
  static Stmt chunks(const For& loop, int64_t extent) {
    std::vector<Stmt> out;
    const int64_t loops = extent > kMaxLanes ? extent / kChunkLanes : 0;
    if (loops > 0) {
      const VarRef v = make_var("v");
      out.push_back(
          for_loop(LoopKind::Serial, v, int_imm(loops), chunk(loop, Expr(v) * int_imm(kChunkLanes), kChunkLanes)));
    }
    for (int64_t done = loops * kChunkLanes, lanes = 0; done < extent; done += lanes) {
      lanes = std::min(kMaxLanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(extent - done))));
      out.push_back(chunk(loop, int_imm(done), lanes));
    }
    return seq(std::move(out), loop.span);
  }

  /// The iterations from `begin` on, counted from the loop's own begin.
  static Stmt chunk(const For& loop, const Expr& begin, int64_t lanes) {
    const VarRef lane = make_var(loop.vars[0]->name);
    const Expr at = simplify(loop.begins[0] + begin + (lanes == 1 ? int_imm(0) : Expr(lane)));
    const Stmt body = renewed(with_value(loop.body, loop.vars[0].get(), at));
    if (lanes == 1) return body;
    return for_loop(LoopKind::Vectorized, std::vector<VarRef>{lane}, {int_imm(0)}, {int_imm(lanes)}, body, 1, loop.span,
                    loop.scheduled);
  }

  const std::vector<MayAlias>& may_alias_;
};

}  // namespace

FunctionRef legalize_vectors(const FunctionRef& f, const PassOptions&) {
  return with_body(f, Legalization(*f).visit(f->body, false));
}

}  // namespace helve
