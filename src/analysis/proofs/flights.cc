// How instances of copies age and move from iteration to iteration.
// Their number stays small: waits end them, iterations far back are not told apart, and where a copy has many instances
// all the same, as one in a nest of loops without a wait, those of other iterations become one.
#include "flights.h"

#include <algorithm>

#include "helve/ir/expr/build.h"

namespace helve::proofs {

namespace {

constexpr int64_t kOldest = 64;  // greater ages are not distinguished
constexpr int64_t kFar = 16;  // nor are iterations further back
constexpr int kMost = 32;  // instances of a copy
constexpr size_t kMostOfAll = 256;  // and of all copies

}  // namespace

bool Flights::merge(Key key, const TileOp* copy, const Flight& flight) {
  static const Instance kThis;
  const int place = key.first;
  if (is_crowded(place) && key.second != kThis) {
    key.second = {};
    key.second.any = true;
  }
  const auto [at, fresh] = of.emplace(key, std::pair(copy, flight));
  Flight& mine = at->second.second;
  const Flight both{std::min(mine.age, flight.age), mine.read && flight.read};
  const bool news = fresh || both.age != mine.age || both.read != mine.read;
  mine = both;
  if (!fresh || is_crowded(place)) return news;
  const auto begin = of.lower_bound({place, kThis});
  const auto end = std::find_if(begin, of.end(), [&](const auto& each) { return each.first.first != place; });
  crowded_->all |= of.size() > kMostOfAll;
  if (std::distance(begin, end) > kMost) crowded_->copies.insert(place);
  return news;
}

bool Flights::join(const Flights& other) {
  if (!crowded_) crowded_ = other.crowded_;
  bool news = false;
  for (const auto& [key, entry] : other.of) news |= merge(key, entry.first, entry.second);
  return news;
}

void Flights::age(const CopyQueue& queue) {
  for (auto& [key, entry] : of) {
    if (copy_queue(*entry.first) == queue) entry.second.age = std::min(entry.second.age + 1, kOldest);
  }
}

void Flights::complete(const CopyQueue& queue, int64_t pending, bool sources) {
  const auto is_done = [&](const std::pair<const TileOp*, Flight>& entry) {
    return entry.second.age >= pending && copy_queue(*entry.first) == queue;
  };
  for (auto& [key, entry] : of) entry.second.read |= is_done(entry);
  std::erase_if(of, [&](const auto& each) {
    return is_done(each.second) && !(sources && is_global(*each.second.first->region(1).buffer));
  });
}

template <class F>
void Flights::rename(F&& f) {
  Flights out(crowded_);
  for (const auto& [key, entry] : of) {
    Key now = key;
    if (f(now.second, entry.first)) out.merge(now, entry.first, entry.second);
  }
  *this = std::move(out);
}

void Flights::enter(const LoopBody& loop) {
  if (!loop.counted) return;
  rename([&](Instance& at, const TileOp*) {
    at.since.emplace(loop.counted, 0);
    return true;
  });
}

void Flights::next_iteration(const LoopBody& loop) {
  rename([&](Instance& at, const TileOp* copy) {
    const bool own = loop.own.contains(copy);
    at.moved |= own;
    if (own && loop.divided) at.elsewhere = true;
    if (own && !loop.divided && !loop.is_inside) at.elsewhere = false;
    const For* counted = loop.counted;
    if (!counted) return true;
    if (const auto since = at.since.find(counted); since != at.since.end()) {
      if (++since->second > kFar) at.since.erase(since);
    } else if (own && !at.values.contains(counted) && !at.lost.contains(counted) && ++at.ago[counted] > kFar) {
      at.ago.erase(counted);
      at.lost.insert(counted);
    }
    return true;
  });
}

Flights Flights::seen_by_next(const LoopBody& loop) const {
  const int64_t* extent = loop.counted ? int_value(loop.counted->extents[0]) : nullptr;
  Flights out = *this;
  if (!extent) return out;
  const auto is_within = [&](const Counts& counts) {
    const auto found = counts.find(loop.counted);
    return found == counts.end() || found->second < *extent;
  };
  out.rename([&](const Instance& at, const TileOp*) { return is_within(at.ago) && is_within(at.since); });
  return out;
}

void Flights::leave(const LoopBody& loop) {
  const For* counted = loop.counted;
  if (!counted) return;
  const int64_t* begin = int_value(counted->begins[0]);
  const int64_t* extent = int_value(counted->extents[0]);
  rename([&](Instance& at, const TileOp*) {
    at.since.erase(counted);
    const auto ago = at.ago.find(counted);
    if (ago == at.ago.end()) return true;
    const int64_t back = ago->second;
    at.ago.erase(ago);
    if (begin && extent) {
      at.values[counted] = *begin + *extent - back;
      return back <= *extent;
    }
    at.lost.insert(counted);
    return true;
  });
}

Expr Renaming::operator()(const Expr& subscript) {
  const auto known = [&](const Var* var) -> std::optional<Expr> {
    const auto is_of = [&](const For* loop) { return loop->vars[0].get() == var; };
    for (const auto& [loop, ago] : at_.ago) {
      if (is_of(loop)) return Expr(loop->vars[0]) - int_imm(ago);
    }
    for (const auto& [loop, value] : at_.values) {
      if (is_of(loop)) return int_imm(value);
    }
    if (std::any_of(at_.lost.begin(), at_.lost.end(), is_of)) return std::nullopt;
    if (!at_.moved || fixed_.contains(var)) return Expr(VarRef(var));
    return std::nullopt;
  };
  walk(subscript, [&](const Expr& e) {
    const Var* var = as<Var>(e);
    if (!var || then_.contains(var)) return;
    const std::optional<Expr> now = known(var);
    then_.emplace(var, now ? *now : Expr(make_var(var->name, var->dtype, var->span)));
  });
  return then_.empty() ? subscript : substitute(subscript, then_);
}

Expr Renaming::condition() const {
  Expr out = bool_imm(true);
  for (const auto& [loop, since] : at_.since) {
    out = logical_and(out, apply(Op::Eq, {Expr(loop->vars[0]), loop->begins[0] + int_imm(since)}));
  }
  return out;
}

}  // namespace helve::proofs
