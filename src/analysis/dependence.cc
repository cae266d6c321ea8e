// The relations of a region's dependences.
// Accesses of one statement with one answer are asked about once, and hulls leave few pairs of them; a relation is a
// union over the loop that carries it, so that program order needs no time vectors.
#include "helve/analysis/dependence.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "helve/arith/contradictions.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/call_facts.h"
#include "helve/ir/tensor/visit.h"
#include "hulls.h"
#include "instance_pair.h"

namespace helve {

namespace {

/// Memory of which iterations of the loop have copies, although it is allocated outside.
bool is_private(const StmtNode& loop, const Buffer& buffer) {
  const bool persistent = loop.kind == StmtKind::For && static_cast<const For&>(loop).loop == LoopKind::Persistent;
  return buffer.scope == MemoryScope::Local || (persistent && !is_global(buffer));
}

/// One relation: of two accesses, or of two statements as such.
class PairQuery {
 public:
  /// `outside`: as if the memory were allocated around the region.
  PairQuery(const Dependences& d, const RegionStatement& first, const RegionStatement& second, bool outside,
            Contradictions& contradictions)
      : d_(d),
        first_(first),
        second_(second),
        outside_(outside),
        contradictions_(contradictions),
        query_(d.model),
        two_(query_) {}

  /// Nothing if there are no pairs.
  std::optional<Dependence> run(const Access* a, const Access* b) {
    for (const StepRef& loop : second_.loops) two_.separate({loop}, 0);
    std::vector<std::vector<Expr>> orders = first_runs_before_second(a);
    if (orders.empty()) return std::nullopt;
    for (const Expr& condition : conditions_of_calls(*d_.function)) query_.require(condition);
    for (const StepRef& step : d_.model.around) {
      if (says_something(*step)) query_.add(*step);
    }
    const size_t outside = query_.vars().size();
    std::unordered_set<const Var*> fixed;
    for (const VarRef& var : query_.vars()) fixed.insert(var.get());
    for (const VarRef& dim : d_.function->dims) fixed.insert(dim.get());
    const size_t inside = d_.model.around.size();
    const Path& path = b ? b->path : second_.path;
    two_.first_runs(a ? a->path : first_.path, inside, InstancePair::Names::Open);
    two_.separate(path, inside);
    two_.second_runs(path, inside, InstancePair::Names::Open);
    std::vector<Expr> touching;
    if (a && b) meet(*a, *b, touching);
    std::vector<Expr> all = query_.conditions();
    std::erase_if(orders, [&](const std::vector<Expr>& order) {
      all.insert(all.end(), order.begin(), order.end());
      const bool never = contradictions_.found(all, fixed, query_.conditions().size());
      all.resize(query_.conditions().size());
      return never;
    });
    if (orders.empty()) return std::nullopt;
    std::optional<IntegerRelation> pairs = relation(outside, orders);
    if (!pairs) return std::nullopt;
    std::vector<VarRef> second_vars = pairs->image();
    return Dependence{
        0, 0, {}, {}, std::move(*pairs), false, std::move(second_vars), std::move(touching), std::move(orders)};
  }

 private:
  /// How many of the common loops stand around the allocation of the memory.
  size_t loops_around(const Buffer& buffer) const {
    const auto home = d_.model.home.find(&buffer);
    if (home == d_.model.home.end()) return 0;
    size_t count = 0;
    for (size_t i = d_.model.around.size(); i < home->second.size(); ++i) {
      for (const RegionStatement* s : {&first_, &second_}) {
        if (i >= s->path.size() || s->path[i] != home->second[i]) return 0;  // of another execution of one statement
      }
      count += !home->second[i]->begins.empty();
    }
    return count;
  }

  /// A case for each loop that may carry the dependence, and one that none does.
  std::vector<std::vector<Expr>> first_runs_before_second(const Access* a) {
    const size_t home = a && !outside_ ? loops_around(*a->buffer) : 0;
    std::vector<std::vector<Expr>> cases;
    std::vector<Expr> equal;
    const size_t common = common_loops(first_, second_);
    for (size_t l = 0; l < common; ++l) {
      const Step& loop = *first_.loops[l];
      const bool ordered = !is_independent(*loop.stmt) || (a && is_private(*loop.stmt, *a->buffer));
      for (const VarRef& var : loop.vars) {
        if (l >= home && ordered) {
          equal.push_back(two_.before(var));
          cases.push_back(equal);
          equal.pop_back();
        }
        equal.push_back(two_.agree(var));
      }
    }
    if (first_.visit < second_.visit) cases.push_back(equal);
    return cases;
  }

  void meet(const Access& a, const Access& b, std::vector<Expr>& touching) {
    if (a.buffer != b.buffer) {
      return query_.doubt(fmt::format("'{}' and '{}' may share memory", a.buffer->name, b.buffer->name));
    }
    const bool absolute = a.placed != b.placed || (a.placed && common_loops(first_, second_) == 0);
    touching = {two_.touch(a, b, absolute).condition};
    query_.require(touching[0]);
  }

  std::optional<IntegerRelation> relation(size_t outside, const std::vector<std::vector<Expr>>& orders) {
    std::vector<VarRef> tuple = first_.vars;
    for (const VarRef& var : second_.vars) tuple.emplace_back(as<Var>(two_.second(Expr(var))));
    std::vector<VarRef> locals;
    for (size_t i = outside; i < query_.vars().size(); ++i) {
      const VarRef& var = query_.vars()[i];
      if (std::find(tuple.begin(), tuple.end(), var) == tuple.end()) locals.push_back(var);
    }
    std::vector<Expr> cases, conditions = query_.conditions();
    for (const std::vector<Expr>& order : orders) cases.push_back(order.empty() ? bool_imm(true) : conjunction(order));
    conditions.push_back(chain(Op::Or, cases));
    const Expr condition = conjunction(conditions);
    for (const VarRef& var : two_.open_names()) {
      if (mentions(condition, var.get())) query_.doubt(fmt::format("the value of '{}' is not known", var->name));
    }
    const Translation translation{&query_.facts(), &d_.model.constant};
    IntegerSet set(d_.engine, std::move(tuple), condition, std::move(locals), translation);
    if (!query_.doubts().empty()) set = as_superset(set, query_.doubts());
    if (set.emptiness().verdict == Verdict::Proved) return std::nullopt;
    return relation_of(set, first_.vars.size());
  }

  const Dependences& d_;
  const RegionStatement& first_;
  const RegionStatement& second_;
  const bool outside_;
  Contradictions& contradictions_;
  PathConditions query_;
  InstancePair two_;
};

/// Accesses of one statement to the same elements, between which dependences do not differ.
struct Class {
  size_t access;  ///< the one that stands for them; one that writes, if any does
  size_t statement;
};

class Finder {
 public:
  /// With `only`, dependences through that buffer, allocated around the region.
  explicit Finder(const Dependences& d, const Buffer* only = nullptr) : d_(d), only_(only), contradictions_(d.engine) {
    walk(d_.function->body, [&](const Stmt& s) {
      if (const Peer* peer = as<Peer>(s)) peers_.insert(peer->buffer.get());
    });
  }

  std::vector<Dependence> run() {
    classify();
    for (const auto& [i, k] : pairs()) {
      add(classes_[i], classes_[k]);
      if (i != k) add(classes_[k], classes_[i]);
    }
    for (size_t s = 0; s < d_.statements.size() && !only_; ++s) {
      for (size_t t = 0; t < d_.statements.size(); ++t) {
        const RegionStatement &a = d_.statements[s], &b = d_.statements[t];
        if (a.orders_all || b.orders_all || (a.starts_copy && b.starts_copy)) add(s, t, nullptr, nullptr);
      }
    }
    std::stable_sort(out_.begin(), out_.end(), [](const Dependence& a, const Dependence& b) {
      return std::pair(a.first, a.second) < std::pair(b.first, b.second);
    });
    return std::move(out_);
  }

 private:
  const Access& access(const Class& c) const { return d_.model.accesses[c.access]; }

  void classify() {
    for (size_t s = 0; s < d_.statements.size(); ++s) {
      const size_t from = classes_.size();
      for (size_t i = d_.statements[s].first; i < d_.statements[s].last; ++i) {
        const Access& a = d_.model.accesses[i];
        if (d_.model.constant.contains(a.buffer.get()) || (only_ && a.buffer.get() != only_)) continue;
        const auto known = std::find_if(classes_.begin() + static_cast<int64_t>(from), classes_.end(), [&](Class& c) {
          return access(c).mode == a.mode && same_elements(access(c), a);
        });
        if (known == classes_.end()) {
          classes_.push_back({i, s});
        } else if (a.write) {
          known->access = i;
        }
      }
    }
  }

  /// The pairs of classes that may meet, each once.
  std::vector<std::pair<size_t, size_t>> pairs() {
    PathFacts facts(d_.model);
    std::vector<const Access*> all;
    for (const Class& c : classes_) all.push_back(&access(c));
    std::vector<std::pair<size_t, size_t>> out = intersecting_hulls(all, facts);
    for (size_t i = 0; i < all.size(); ++i) {
      for (size_t k = i + 1; k < all.size(); ++k) {
        if (all[i]->buffer != all[k]->buffer && may_share(*all[i]->buffer, *all[k]->buffer)) out.emplace_back(i, k);
      }
    }
    return out;
  }

  /// May two buffers be, or hold, one memory?
  bool may_share(const Buffer& a, const Buffer& b) const {
    if (a.offset && b.offset) return true;
    if (peers_.contains(&a) || peers_.contains(&b)) return a.scope == b.scope;
    return may_overlap(d_.function->may_alias, &a, &b);
  }

  void add(const Class& one, const Class& other) {
    const Access &a = access(one), &b = access(other);
    if (!a.write && !b.write) return;
    const bool alike = a.buffer == b.buffer && a.write && b.write && a.mode == b.mode;
    if (alike && is_atomic(a.mode)) return;
    add(one.statement, other.statement, &a, &b, alike && is_update(a.mode));
  }

  void add(size_t first, size_t second, const Access* a, const Access* b, bool reduction = false) {
    std::optional<Dependence> found =
        PairQuery(d_, d_.statements[first], d_.statements[second], only_ != nullptr, contradictions_).run(a, b);
    if (!found) return;
    const auto number = [&](const Access* access) {
      return access ? std::optional(static_cast<size_t>(access - d_.model.accesses.data())) : std::nullopt;
    };
    found->first = first;
    found->second = second;
    found->first_access = number(a);
    found->second_access = number(b);
    found->reduction = reduction;
    out_.push_back(std::move(*found));
  }

  const Dependences& d_;
  const Buffer* const only_;
  Contradictions contradictions_;
  std::vector<Dependence> out_;
  std::vector<Class> classes_;
  std::unordered_set<const Buffer*> peers_;
};

}  // namespace

Dependences dependences(const Function& f, const Stmt& region, const ExactEngine& engine) {
  Dependences out{&f, region, engine, access_model(f, region), {}, {}};
  out.statements = region_statements(out.model);
  out.list = Finder(out).run();
  return out;
}

std::vector<Dependence> dependences_through(const Dependences& all, const Buffer& buffer) {
  return Finder(all, &buffer).run();
}

}  // namespace helve
