// Elements that some threads touch, compared.
// The variables that both accesses share have one value: extents a large one, loops of the block their first iteration.
#include "witness.h"

#include <algorithm>
#include <optional>

#include "helve/arith/evaluator.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"

namespace helve::barriers {

namespace {

constexpr int64_t kPoints = 256;  // of each access
constexpr int64_t kExtent = 1 << 20;  // of a dimension that the call gives

/// What one thread touches.
struct Point {
  int64_t thread;
  std::vector<int64_t> element;  ///< without the dimensions in which an index is not known
};

/// The points of an access for some values of its own variables and one value of all others.
class Points {
 public:
  /// `iteration`: of the innermost loop of the block around it.
  Points(const Function& f, const BlockAccess& access, const std::vector<bool>& compared, int64_t iteration)
      : access_(access) {
    for (const VarRange& range : access.inner) vars_.push_back(range.var);
    for (size_t d = 0; d < compared.size(); ++d) {
      if (compared[d]) mention(access.indices[d]);
    }
    for (const Expr& condition : access.conditions) mention(condition);
    for (const VarRange& range : access.inner) mention(range);
    for (const BlockLoop* loop = access.loop; loop; loop = loop->parent) {
      for (const VarRange& range : loop->ranges) {
        add(range.var);
        mention(range);
      }
    }
    values_.resize(vars_.size());
    for (const VarRef& dim : f.dims) set(dim, kExtent);
    enter(*access.loop, iteration);
    for (size_t d = 0; d < compared.size(); ++d) {
      if (compared[d]) indices_.emplace_back(access.indices[d], vars_);
    }
    for (const Expr& condition : access.conditions) conditions_.emplace_back(condition, vars_);
    for (const VarRange& range : access.inner) choose(range);
  }

  /// Calls `f` with points, the thread changing first, until it returns true.
  template <class F>
  bool any(F&& f) {
    for (int64_t n = 0; n < kPoints; ++n) {
      if (holds()) {
        Point point{access_.thread ? value(access_.thread) : 0, {}};
        for (const Evaluator& index : indices_) {
          const std::optional<int64_t> place = index.at(values_);
          if (!place) break;
          point.element.push_back(*place);
        }
        if (point.element.size() == indices_.size() && f(std::move(point))) return true;
      }
      if (!step()) return false;
    }
    return false;
  }

 private:
  struct Choice {
    size_t var;
    int64_t begin, count;
  };

  void add(const VarRef& var) {
    if (std::find(vars_.begin(), vars_.end(), var) == vars_.end()) vars_.push_back(var);
  }
  void mention(const Expr& e) {
    if (!e) return;
    walk(e, [&](const Expr& node) {
      if (as<Var>(node)) add(VarRef(as<Var>(node)));
    });
  }
  void mention(const VarRange& range) {
    mention(range.begin);
    mention(range.extent);
  }

  size_t position(const VarRef& var) const {
    return static_cast<size_t>(std::find(vars_.begin(), vars_.end(), var) - vars_.begin());
  }
  int64_t value(const VarRef& var) const { return values_[position(var)]; }
  void set(const VarRef& var, int64_t value) {
    if (const size_t at = position(var); at < values_.size()) values_[at] = value;
  }
  std::optional<int64_t> value_of(const Expr& e) const { return Evaluator(e, vars_).at(values_); }

  /// Puts the loops of the block into an iteration, the outermost first.
  void enter(const BlockLoop& loop, int64_t iteration) {
    if (loop.parent) enter(*loop.parent, 0);
    for (const VarRange& range : loop.ranges) {
      set(range.var, range.begin ? value_of(range.begin).value_or(0) + iteration : iteration);
      iteration = 0;  // of the other variables
      require(range);
    }
  }

  /// The range is a condition.
  void require(const VarRange& range) {
    if (range.begin) conditions_.emplace_back(apply(Op::Le, {range.begin, Expr(range.var)}), vars_);
    if (range.begin && range.extent) {
      conditions_.emplace_back(less(Expr(range.var), range.begin + range.extent), vars_);
    }
  }

  /// Lets an own variable take the values of its range where this is constant; else it stays at its begin.
  void choose(const VarRange& range) {
    const int64_t* begin = range.begin ? int_value(range.begin) : nullptr;
    const int64_t* extent = range.extent ? int_value(range.extent) : nullptr;
    if (range.begin) set(range.var, value_of(range.begin).value_or(0));
    if (!begin || !extent) return require(range);
    const bool is_thread = range.var == access_.thread;
    choices_.insert(is_thread ? choices_.begin() : choices_.end(), {position(range.var), *begin, *extent});
  }

  bool holds() const {
    return std::all_of(choices_.begin(), choices_.end(), [](const Choice& each) { return each.count > 0; }) &&
           std::all_of(conditions_.begin(), conditions_.end(),
                       [&](const Evaluator& each) { return each.at(values_).value_or(0) != 0; });
  }

  /// The next values; false after the last.
  bool step() {
    for (const Choice& each : choices_) {
      if (++values_[each.var] < each.begin + each.count) return true;
      values_[each.var] = each.begin;
    }
    return false;
  }

  const BlockAccess& access_;
  std::vector<VarRef> vars_;  ///< the own ones first
  std::vector<int64_t> values_;
  std::vector<Evaluator> conditions_, indices_;
  std::vector<Choice> choices_;
};

}  // namespace

bool found_in_conflict(const Function& f, const BlockAccess& a, const BlockAccess& b, bool carried) {
  std::vector<bool> compared;
  for (size_t d = 0; d < a.indices.size(); ++d) compared.push_back(a.indices[d] && b.indices[d]);
  std::vector<Point> earlier;
  Points(f, a, compared, 0).any([&](Point point) {
    earlier.push_back(std::move(point));
    return false;
  });
  if (earlier.empty()) return false;
  const auto before = [](const Point& x, const Point& y) { return x.element < y.element; };
  std::stable_sort(earlier.begin(), earlier.end(), before);
  return Points(f, b, compared, carried ? 1 : 0).any([&](const Point& point) {
    const auto [first, last] = std::equal_range(earlier.begin(), earlier.end(), point, before);
    return std::any_of(first, last,
                       [&](const Point& other) { return !a.thread || !b.thread || other.thread != point.thread; });
  });
}

}  // namespace helve::barriers
