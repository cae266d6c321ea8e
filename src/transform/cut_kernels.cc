// A kernel of several loops over iterations becomes several kernels.
// Input: a mesh function whose kernels hold no collectives. Output: where cores are GPUs, a kernel that `spread_cores`
// would leave one block for each core is cut before and after its Persistent loops, so that each loop gets blocks.
// Before:  with T.Kernel(R, C) as (r, c): tile = ...; for i in T.Persistent([n]): f(tile); A[r] = 0; for ...: g(tile)
// After:   with T.Kernel(R, C) as (r, c): tile = ...; for i in T.Persistent([n]): f(tile)
//          with T.Kernel(R, C) as (r, c): A[r] = 0
//          with T.Kernel(R, C) as (r, c): tile = ...; for ...: g(tile)
// Launches of a core run one after the other, as the statements did. A cut is made where no value crosses it: none of a
// scalar that was loaded, and none of the kernel's own buffers, of which a Persistent loop takes nothing along:
// contents of before it are undefined in its iterations. A loop with a copy that others wait for, mbarriers and blocks
// of other cores keep a kernel whole.
#include <algorithm>

#include "core_loop.h"
#include "crossing.h"
#include "helve/analysis/early_copies.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

class KernelCutter {
 public:
  KernelCutter(const Kernel& kernel, const Function& f) : kernel_(kernel), f_(f) {}

  Stmt run() {
    const std::vector<Stmt> all = statements_of(kernel_.body);
    const bool has_loop = std::ranges::any_of(all, is_persistent_loop);
    if (!has_loop || core_loop(all, f_.may_alias) != nullptr) return Stmt(&kernel_);
    gather(all);
    if (!may_cut()) return Stmt(&kernel_);
    const std::vector<std::vector<Stmt>> pieces = merged(cut());
    const bool spreads = std::ranges::any_of(
        pieces, [&](const std::vector<Stmt>& piece) { return core_loop(piece, f_.may_alias) != nullptr; });
    if (pieces.size() < 2 || !spreads) return Stmt(&kernel_);
    std::vector<Stmt> out;
    for (const std::vector<Stmt>& piece : pieces) out.push_back(kernel_of(piece));
    return seq(std::move(out), kernel_.span);
  }

 private:
  /// Takes out the allocations, and scalars that can be computed anywhere.
  void gather(const std::vector<Stmt>& all) {
    Substitution values;
    for (const Stmt& original : all) {
      const Stmt s = substitute(original, values);
      if (const Alloc* a = as<Alloc>(s)) {
        buffers_.push_back(a->buffer);
      } else if (const Bind* b = as<Bind>(s); b && !has_load(b->value)) {
        values[b->var.get()] = b->value;
      } else {
        stmts_.push_back(s);
      }
    }
  }

  bool may_cut() const {
    const auto waits = [](const TileOp& op) {
      return op.begins_copy() || op.op == TileOpcode::WaitAsync || op.barriers() != nullptr;
    };
    const auto counts = [](const TileOp& op) { return op.barriers() != nullptr; };
    return std::ranges::all_of(stmts_, [&](const Stmt& s) {
      bool meets = false;
      walk(s, [&](const Stmt& inner) { meets |= as<Peer>(inner) != nullptr; });
      return !meets && (is_persistent_loop(s) ? !has_operation(s, counts) : !has_operation(s, waits));
    });
  }

  /// Is there a value before statement `at` that it, or one after it, needs?
  bool crosses(size_t at) const {
    const auto middle = stmts_.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<Stmt> after;  // without loops, which take nothing along
    std::copy_if(middle, stmts_.end(), std::back_inserter(after), [](const Stmt& s) { return !is_persistent_loop(s); });
    const Touch later = touch_of(after), earlier = touch_of({stmts_.begin(), middle});
    const bool carries = std::ranges::any_of(buffers_, [&](const BufferRef& b) {
      return earlier.written.contains(b.get()) && later.exposed.contains(b.get());
    });
    if (carries) return true;
    return std::any_of(stmts_.begin(), middle, [&](const Stmt& s) {
      const VarRef name = named_by(s);
      return name && std::any_of(middle, stmts_.end(), [&](const Stmt& user) { return uses(user, name.get()); });
    });
  }

  static bool uses(const Stmt& s, const Var* var) {
    bool found = false;
    walk(s, [&](const Stmt& inner) {
      for_each_part(inner, [&](const Expr& e) { found |= mentions(e, var); }, [](const Stmt&) {});
    });
    return found;
  }

  /// The statements, cut beside loops wherever nothing crosses.
  std::vector<std::vector<Stmt>> cut() const {
    std::vector<std::vector<Stmt>> out;
    for (size_t i = 0; i < stmts_.size(); ++i) {
      const bool beside = i > 0 && (is_persistent_loop(stmts_[i]) || is_persistent_loop(stmts_[i - 1]));
      if (i == 0 || (beside && !crosses(i))) out.emplace_back();
      out.back().push_back(stmts_[i]);
    }
    return out;
  }

  /// Pieces that every block may execute stand with the loop after them.
  std::vector<std::vector<Stmt>> merged(const std::vector<std::vector<Stmt>>& pieces) const {
    std::vector<std::vector<Stmt>> out;
    bool joins = false;  // the last one of `out` waits for a loop
    for (const std::vector<Stmt>& piece : pieces) {
      std::vector<Stmt> both;
      if (joins) both = out.back();
      both.insert(both.end(), piece.begin(), piece.end());
      if (joins && core_loop(both, f_.may_alias) != nullptr) {
        out.back() = both;
        joins = false;
        continue;
      }
      out.push_back(piece);
      joins = std::ranges::none_of(piece, is_persistent_loop);
    }
    return out;
  }

  Stmt kernel_of(const std::vector<Stmt>& piece) const {
    BufferMap fresh;
    std::vector<Stmt> body;
    const Touch touch = touch_of(piece);
    for (const BufferRef& b : buffers_) {
      if (!touch.used.contains(b.get())) continue;
      fresh.emplace(b.get(), declare_again(*b));
      body.push_back(alloc(fresh.at(b.get()), b->span));
    }
    for (const Stmt& s : piece) body.push_back(replace_buffers(s, fresh));
    Substitution values;
    std::vector<VarRef> vars;
    for (const VarRef& v : kernel_.vars) {
      vars.push_back(make_var(v->name, v->dtype, v->span));
      values.emplace(v.get(), Expr(vars.back()));
    }
    const Stmt own = substitute(seq(std::move(body)), values);
    return Stmt(copy_with(kernel_, [&](Kernel& copy) {
      copy.vars = vars;
      copy.body = own;
      return true;
    }));
  }

  const Kernel& kernel_;
  const Function& f_;
  std::vector<BufferRef> buffers_;
  std::vector<Stmt> stmts_;
};

}  // namespace

FunctionRef cut_kernels(const FunctionRef& f, const PassOptions& options) {
  if (!f->mesh || !options.cores_are_devices) return f;
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     return kernel ? KernelCutter(*kernel, *f).run() : s;
                   }));
}

}  // namespace helve
