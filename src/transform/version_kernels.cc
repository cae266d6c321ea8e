// Kernels that can access vectors if rows begin at multiples of them get a version for the calls where they do.
// Input: kernels without tiles. Output: the same, or two launches between which the host chooses by extents and
// strides.
// Before:  with T.Kernel(T.ceildiv(N, 64), M) as (b, r):            # A: (M, N) of float32
//              T.copy(A[r, b * 64:b * 64 + 64], x)
// After:   if N % 4 == 0:
//              with T.Kernel(T.ceildiv(N, 64), M) as (b, r):        # 4 elements are moved at once
//                  T.copy(A[r, b * 64:b * 64 + 64], x)
//          else:
//              with T.Kernel(T.ceildiv(N, 64), M) as (b_1, r_1):
//                  T.copy(A[r_1, b_1 * 64:b_1 * 64 + 64], x_1)
// Both branches are the whole kernel, so whatever later passes derive from the condition is correct by construction.
// There is one condition for all accesses of a kernel: two versions, not one for each tensor. Unchanged are kernels
// whose rows are constant or never contain vectors, and those on a mesh, where a core's block has strides of its own.
#include <algorithm>
#include <numeric>

#include "helve/analysis/access.h"
#include "helve/analysis/multiple.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/threads/element_loop.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

/// A distance between rows that must be a multiple of a number of elements.
struct Wanted {
  Expr distance;
  int64_t lanes;
};

/// The distances between rows of a buffer that only the call knows; compact rows have only the innermost one, of which
/// the others are multiples. Nothing if elements of a row are not contiguous.
std::vector<Expr> open_distances(const Buffer& buffer) {
  if (!is_global(buffer) || buffer.rank() < 2) return {};
  std::vector<Expr> distances = {buffer.shape.back()};
  if (!buffer.strides.empty()) {
    const int64_t* last = int_value(buffer.strides.back());
    if (!last || *last != 1) return {};
    distances.assign(buffer.strides.begin(), buffer.strides.end() - 1);
  }
  std::erase_if(distances, [](const Expr& e) { return int_value(e) != nullptr; });
  return distances;
}

/// The innermost loop around an access, if it is a loop over elements.
const Step* innermost_loop(const Path& path) {
  const auto at = std::find_if(path.rbegin(), path.rend(), [](const StepRef& step) { return !step->extents.empty(); });
  if (at == path.rend() || (*at)->stmt->kind != StmtKind::For) return nullptr;
  return is_element_loop(static_cast<const For&>(*(*at)->stmt)) ? at->get() : nullptr;
}

/// How many elements of a row the access could move at once; 1 if it is scalar.
int64_t lanes_of(const Access& access, int64_t vector_bytes, const Facts& facts) {
  if (access.mode != StoreMode::Write || access.ranges.empty()) return 1;
  const Range& last = access.ranges.back();
  std::optional<int64_t> extent = constant_value(simplify(last.extent, facts));
  if (!extent) return 1;
  Expr begin = last.begin;
  if (*extent == 1) {
    const Step* loop = innermost_loop(access.path);
    extent = loop ? constant_value(loop->extents.back()) : std::nullopt;
    if (!extent) return 1;
    const Var* var = loop->vars.back().get();
    begin = simplify(substitute(begin, {{var, int_imm(0)}}), facts);
    const Expr step = simplify(substitute(last.begin, {{var, int_imm(1)}}) - begin, facts);
    if (const int64_t* one = int_value(step); !one || *one != 1) return 1;
  }
  int64_t lanes = std::gcd(*extent, vector_bytes / std::max<int64_t>(1, access.buffer->dtype.bytes()));
  while (lanes > 1 && !is_multiple(begin, lanes, facts)) lanes /= 2;
  return lanes;
}

class Versions final : public ScopedRewriter {
 public:
  Versions(const Function& f, const Machine& machine)
      : ScopedRewriter(f), model_(access_model(f)), vector_bytes_(machine.vector_bytes) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (!as<Kernel>(s)) return s;
    std::vector<Wanted> wanted;
    for (const Access& access : model_.accesses) {
      const bool inside = std::any_of(access.path.begin(), access.path.end(),
                                      [&](const StepRef& step) { return step->stmt == s.get(); });
      if (inside) add(access, facts, &wanted);
    }
    if (wanted.empty()) return s;
    std::vector<Expr> conditions;
    for (const Wanted& each : wanted) {
      conditions.push_back(apply(Op::Eq, {floor_mod(each.distance, int_imm(each.lanes)), int_imm(0)}));
    }
    return if_then(conjunction(conditions), s, renewed(s), s->span);
  }

 private:
  void add(const Access& access, const Facts& facts, std::vector<Wanted>* wanted) const {
    const std::vector<Expr> distances = open_distances(*access.buffer);
    const int64_t lanes = distances.empty() ? 1 : lanes_of(access, vector_bytes_, facts);
    if (lanes == 1) return;
    for (const Expr& distance : distances) {
      if (has_load(distance) || is_multiple(distance, lanes, facts)) continue;
      const auto known = std::find_if(wanted->begin(), wanted->end(),
                                      [&](const Wanted& each) { return same_expr(each.distance, distance); });
      if (known == wanted->end()) {
        wanted->push_back({distance, lanes});
      } else {
        known->lanes = std::max(known->lanes, lanes);
      }
    }
  }

  const AccessModel model_;
  const int64_t vector_bytes_;
};

bool has_open_distances(const Function& f) {
  bool found = false;
  const auto look = [&](const Buffer& buffer) { found |= !open_distances(buffer).empty(); };
  for (const Param& param : f.params) {
    if (const BufferRef* buffer = std::get_if<BufferRef>(&param)) look(**buffer);
  }
  walk(f.body, [&](const Stmt& s) {
    if (const Alloc* n = as<Alloc>(s)) look(*n->buffer);
  });
  return found;
}

}  // namespace

FunctionRef version_kernels(const FunctionRef& f, const PassOptions& options) {
  if (f->mesh || !has_open_distances(*f)) return f;
  return with_body(f, Versions(*f, options.machine).rewrite(f->body));
}

}  // namespace helve
