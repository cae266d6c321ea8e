// Milliseconds of the check of a rewrite, dependences included, for regions with dynamic extents.
// A schedule of a dozen steps asks as often, so that a check must take a few milliseconds.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"
#include "schedule/rewrites.h"

using namespace helve;
using namespace helve::testing;

namespace {

double thread_milliseconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

/// Of the thread, so that other programs on the machine count little; the least of several.
double milliseconds(const std::function<void()>& f) {
  double best = 1e9;
  for (int n = 0; n < 20; ++n) {
    const double start = thread_milliseconds();
    f();
    best = std::min(best, thread_milliseconds() - start);
  }
  return best;
}

/// One dimension of a nest: its loops in the new program, outermost first, and its value there.
struct Dim {
  VarRef var;
  Expr extent;
  std::vector<std::pair<VarRef, Expr>> loops;
  Expr value;
  bool guarded = false;
};

/// Splits by each of the factors, the largest first, with a guard if the extent is not constant.
Dim tiled(const VarRef& var, const Expr& extent, std::vector<int64_t> factors) {
  Dim out{var, extent, {}, {}, !factors.empty() && !int_value(extent)};
  Expr left = extent;
  for (size_t n = 0; n <= factors.size(); ++n) {
    const VarRef loop = make_var(var->name + std::to_string(n));
    const int64_t step = n < factors.size() ? factors[n] : 1;
    out.loops.emplace_back(loop, n == 0 ? ceil_div(extent, int_imm(step)) : int_imm(factors[n - 1] / step));
    const Expr part = Expr(loop) * int_imm(step);
    out.value = out.value ? out.value + part : part;
  }
  if (factors.empty()) out.value = Expr(out.loops[0].first);
  return out;
}

/// The statement in the loops of all dimensions, level by level, under the guards.
Rewritten tiled_nest(const Stmt& leaf, size_t visit, const std::vector<Dim>& dims) {
  Tree tree;
  tree.kind = leaf->kind;
  tree.stmt = leaf;
  tree.before_visit = visit;
  Substitution values;
  std::vector<Expr> guards;
  for (const Dim& dim : dims) {
    values[dim.var.get()] = dim.value;
    tree.values.emplace_back(dim.var, Expr(dim.var));
    if (dim.guarded) guards.push_back(less(dim.value, dim.extent));
  }
  substitute_in(tree, values);
  if (!guards.empty()) {
    Tree guarded;
    guarded.kind = StmtKind::If;
    guarded.condition = conjunction(guards);
    guarded.parts = {tree};
    tree = guarded;
  }
  size_t levels = 0;
  for (const Dim& dim : dims) levels = std::max(levels, dim.loops.size());
  for (size_t level = levels; level-- > 0;) {
    for (size_t d = dims.size(); d-- > 0;) {
      if (level >= dims[d].loops.size()) continue;
      const auto& [var, extent] = dims[d].loops[level];
      tree = loop_tree(LoopKind::Serial, var, int_imm(0), extent, {tree});
    }
  }
  return rewritten(tree);
}

void report(const char* name, const Function& f, const Rewritten& after) {
  Legality found;
  // With the dependences, which remember what they are asked.
  const double took =
      milliseconds([&] { found = check_rewrite(f, f.body, after.region, after.origins, ExactEngine()); });
  std::printf("%-36s %6.2f ms  %s%s\n", name, took, std::string(to_string(found.verdict)).c_str(),
              found.reason.c_str());
}

const VarRef i = make_var("i"), j = make_var("j"), k = make_var("k"), l = make_var("l"), t = make_var("t");
const VarRef M = make_var("M"), N = make_var("N"), K = make_var("K"), L = make_var("L");

BufferRef tensor(const char* name, std::vector<Expr> shape) {
  return make_buffer(name, kFloat32, MemoryScope::Param, std::move(shape));
}
Stmt nest(const std::vector<std::pair<VarRef, Expr>>& loops, Stmt body) {
  for (size_t n = loops.size(); n-- > 0;) body = serial(loops[n].first, loops[n].second, {body});
  return body;
}

void products() {
  const BufferRef A = tensor("A", {M, K}), B = tensor("B", {K, N}), C = tensor("C", {M, N});
  const Stmt leaf = store(C, {i, j}, load(C, {i, j}) + load(A, {i, k}) * load(B, {k, j}));
  const FunctionRef f = dynamic_function("gemm", {M, N, K}, {A, B, C}, nest({{i, M}, {j, N}, {k, K}}, leaf));
  report("GEMM, nothing", *f, tiled_nest(leaf, 3, {tiled(i, M, {}), tiled(j, N, {}), tiled(k, K, {})}));
  report("GEMM, one level", *f, tiled_nest(leaf, 3, {tiled(i, M, {32}), tiled(j, N, {32}), tiled(k, K, {8})}));
  report("GEMM, two levels", *f,
         tiled_nest(leaf, 3, {tiled(i, M, {32, 8}), tiled(j, N, {32, 4}), tiled(k, K, {16, 4})}));
  report("GEMM, two levels, k reversed tiles", *f,
         tiled_nest(leaf, 3, {tiled(k, K, {16, 4}), tiled(i, M, {32, 8}), tiled(j, N, {32, 4})}));
}

void factorization() {
  const BufferRef A = tensor("A", {M, N}), B = tensor("B", {M, K, L}), C = tensor("C", {K, N}), D = tensor("D", {L, N});
  const Expr value = load(B, {i, k, l}) * load(C, {k, j}) * load(D, {l, j});
  for (const bool update : {true, false}) {
    const Stmt leaf = update ? store(A, {i, j}, value, {}, StoreMode::Add) : store(A, {i, j}, load(A, {i, j}) + value);
    const FunctionRef f =
        dynamic_function("mttkrp", {M, N, K, L}, {A, B, C, D}, nest({{i, M}, {j, N}, {k, K}, {l, L}}, leaf));
    const char* const kind = update ? "T.update" : "+=";
    report((std::string("MTTKRP by ") + kind + ", one level").c_str(), *f,
           tiled_nest(leaf, 4, {tiled(i, M, {32}), tiled(j, N, {32}), tiled(k, K, {8}), tiled(l, L, {8})}));
    report((std::string("MTTKRP by ") + kind + ", two levels").c_str(), *f,
           tiled_nest(leaf, 4, {tiled(i, M, {32, 8}), tiled(j, N, {32, 8}), tiled(k, K, {8, 4}), tiled(l, L, {8, 4})}));
  }
}

void stencil() {
  const VarRef T = make_var("T"), s = make_var("s"), io = make_var("io"), ii = make_var("ii"), to = make_var("to"),
               ti = make_var("ti");
  const BufferRef A = tensor("A", {T + int_imm(1), M});
  const Expr value = load(A, {t, i - int_imm(1)}) + load(A, {Expr(t), Expr(i)}) + load(A, {t, i + int_imm(1)});
  const Stmt leaf = store(A, {t + int_imm(1), i}, value);
  const Stmt inner = for_loop(LoopKind::Serial, {i}, {int_imm(1)}, {M - int_imm(2)}, leaf);
  const FunctionRef f = dynamic_function("stencil", {T, M}, {A}, for_loop(LoopKind::Serial, t, T, inner));
  const auto rewrite = [&](bool skewed) {
    Tree tree;
    tree.kind = leaf->kind;
    tree.stmt = leaf;
    tree.before_visit = 2;
    tree.values = {{t, Expr(t)}, {i, Expr(i)}};
    const Expr time = Expr(to) * int_imm(8) + Expr(ti);
    const Expr place = Expr(io) * int_imm(16) + Expr(ii);
    const Expr at = skewed ? place - time : place;
    substitute_in(tree, {{t.get(), time}, {i.get(), at}});
    Tree guarded;
    guarded.kind = StmtKind::If;
    guarded.condition = conjunction({less(time, T), apply(Op::Le, {int_imm(1), at}), less(at, M - int_imm(1))});
    guarded.parts = {tree};
    tree = loop_tree(LoopKind::Serial, ii, int_imm(0), int_imm(16), {guarded});
    tree = loop_tree(LoopKind::Serial, ti, int_imm(0), int_imm(8), {tree});
    tree = loop_tree(LoopKind::Serial, io, int_imm(0), ceil_div(M + T, int_imm(16)), {tree});
    tree = loop_tree(LoopKind::Serial, to, int_imm(0), ceil_div(T, int_imm(8)), {tree});
    return rewritten(tree);
  };
  report("stencil, skewed and tiled", *f, rewrite(true));
  report("stencil, tiled without skew", *f, rewrite(false));
}

}  // namespace

int main() {
  products();
  factorization();
  stencil();
}
