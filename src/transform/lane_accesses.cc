// Legality and alignment of vector accesses.
// Reads may come before all lanes, and a write after them, if no lane meets what another one did between the two. An
// access is aligned if its address is a multiple of its bytes for every value of its variables, relative to a base that
// is.
#include "lane_accesses.h"

#include <algorithm>

#include "helve/analysis/access.h"
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

bool is_own(const Buffer& buffer) {
  return buffer.scope == MemoryScope::Fragment || buffer.scope == MemoryScope::Local;
}

/// Does the body consist of stores, names and conditions?
bool is_straight(const Stmt& s) {
  if (!s) return true;
  if (const Seq* n = as<Seq>(s)) return std::all_of(n->stmts.begin(), n->stmts.end(), is_straight);
  if (const If* n = as<If>(s)) return is_straight(n->then_body) && is_straight(n->else_body);
  const Store* store = as<Store>(s);
  return store ? !store->is_atomic() : s->kind == StmtKind::Bind || s->kind == StmtKind::Alloc;
}

std::vector<Expr> indices_of(const Access& access) {
  std::vector<Expr> out;
  for (const Range& range : access.ranges) out.push_back(range.begin);
  return out;
}

/// The accesses to memory of a lane, in program order.
class LaneAccesses {
 public:
  LaneAccesses(const Stmt& body, const std::vector<MayAlias>& may_alias)
      : may_alias_(may_alias), model_(access_model(body, may_alias)) {
    for (const Access& access : model_.accesses) {
      if (!is_own(*access.buffer)) accesses_.push_back(&access);
    }
  }

  const std::vector<const Access*>& all() const { return accesses_; }

  /// Is the access made by every lane, at an element that is known before the first of them runs, and may it come
  /// before, or after, all lanes?
  bool moves(const Access& access) const {
    const bool always = std::none_of(access.path.begin(), access.path.end(),
                                     [](const StepRef& step) { return step->condition != nullptr; });
    return always &&
           std::all_of(access.ranges.begin(), access.ranges.end(),
                       [&](const Range& range) { return is_known(range.begin); }) &&
           moves(access.buffer.get());
  }

  /// Does the subscript read no memory that the lanes write, and no registers?
  bool is_known(const Expr& index) const {
    bool known = !model_.names_stay(index);
    walk(index, [&](const Expr& e) {
      const Load* load = as<Load>(e);
      if (!load) return;
      const Buffer* buffer = &buffer_of(load->buffer);
      known &= !is_own(*buffer) && std::none_of(accesses_.begin(), accesses_.end(), [&](const Access* each) {
        return each->write && may_overlap(may_alias_, each->buffer.get(), buffer);
      });
    });
    return known;
  }

 private:
  /// Does another buffer that may share memory with `buffer` conflict with it?
  bool clashes(const Buffer* buffer) const {
    const bool written = std::any_of(accesses_.begin(), accesses_.end(),
                                     [&](const Access* each) { return each->write && each->buffer.get() == buffer; });
    return std::any_of(accesses_.begin(), accesses_.end(), [&](const Access* each) {
      return each->buffer.get() != buffer && (written || each->write) &&
             may_overlap(may_alias_, each->buffer.get(), buffer);
    });
  }

  /// May all reads of the buffer come before the lanes and its write after them? Yes if it is written at most once, and
  /// its other accesses read the lane's own element before that.
  bool moves(const Buffer* buffer) const {
    if (clashes(buffer)) return false;
    const Access* written = nullptr;
    for (const Access* each : accesses_) {
      if (each->buffer.get() != buffer) continue;
      if (written) return false;
      if (each->write) written = each;
    }
    return !written || std::all_of(accesses_.begin(), accesses_.end(), [&](const Access* each) {
      return each->buffer.get() != buffer || same_element(*each, *written);
    });
  }

  static bool same_element(const Access& a, const Access& b) {
    return std::equal(a.ranges.begin(), a.ranges.end(), b.ranges.begin(), b.ranges.end(),
                      [](const Range& x, const Range& y) { return same_expr(x.begin, y.begin); });
  }

  const std::vector<MayAlias>& may_alias_;
  const AccessModel model_;
  std::vector<const Access*> accesses_;
};

}  // namespace

int64_t vector_width(const Buffer& buffer, const Address& address, const Expr& start, const For& loop,
                     const Facts& facts, int64_t widest) {
  const Var* lane = loop.vars[0].get();
  const int64_t lanes = *int_value(loop.extents[0]);
  if (coefficient_of(sum_of(address.sum), lane) != 1) return 0;
  const int64_t element = buffer.dtype.bytes();
  const Residue residue = residue_of(sum_of(start), facts);
  const auto multiple_of = [&](int64_t unit) {
    return starts_aligned(start, lane, unit) || residue.remainder_by(unit) == 0;
  };
  // A swizzle keeps the run contiguous if it moves it as a whole.
  if (!address.swizzle.identity() && !(address.keeps(lanes) && multiple_of(lanes))) return 0;
  for (int64_t width = widest; width > element; width /= 2) {
    const int64_t unit = width / element;
    if (lanes % unit == 0 && multiple_of(unit)) return width;
  }
  return 0;
}

std::unordered_map<const Object*, VectorWidth> vector_widths(const For& loop, const Facts& facts,
                                                             const std::vector<MayAlias>& may_alias, int64_t widest) {
  std::unordered_map<const Object*, VectorWidth> out;
  if (!is_straight(loop.body)) return out;
  const LaneAccesses body(loop.body, may_alias);
  Facts inside = facts;
  inside.bind_loop(loop.vars[0], loop.begins[0], loop.extents[0]);
  for (const Access* each : body.all()) {
    if (!body.moves(*each)) continue;
    std::vector<Expr> indices = indices_of(*each);
    const Address address = address_of(*each->buffer, indices, inside);
    const Expr first = expr_of(sum_of(substitute(address.sum, {{loop.vars[0].get(), loop.begins[0]}})));
    const int64_t width = vector_width(*each->buffer, address, first, loop, facts, widest);
    if (width == 0) continue;
    const Object* node = each->load ? static_cast<const Object*>(each->load) : each->stmt;
    out.emplace(node, VectorWidth{width, std::move(indices)});
  }
  return out;
}

}  // namespace helve
