// Which statements of a region may depend on each other.
// Accesses of one statement with one answer are asked about once, and hulls leave few pairs of them; the order of two
// instances is a case for each loop that carries it, so that program order needs no time vectors.
#include "helve/analysis/dependence.h"

#include <algorithm>

#include "access_pairs.h"
#include "dependence_pairs.h"
#include "helve/analysis/instance_pair.h"
#include "helve/analysis/path_conditions.h"
#include "helve/analysis/region_order.h"

namespace helve {

bool is_forgotten(const StmtNode& loop, const Buffer& buffer) {
  const bool persistent = loop.kind == StmtKind::For && static_cast<const For&>(loop).loop == LoopKind::Persistent;
  return persistent && !is_global(buffer);
}

bool is_private(const StmtNode& loop, const Buffer& buffer) {
  return buffer.scope == MemoryScope::Local || is_forgotten(loop, buffer);
}

namespace {

/// Is the statement below the place of the allocation? Another visit of it, in which one statement stands at several
/// places, is not.
bool is_below(const AccessModel& model, const RegionStatement& s, const Buffer& buffer) {
  const auto home = model.home.find(&buffer);
  return home != model.home.end() && home->second.size() <= s.path.size() &&
         std::equal(home->second.begin(), home->second.end(), s.path.begin());
}

/// A case for each loop that may carry the dependence, and one that none does; `outside`: as if the memory were
/// allocated around the region.
OrderCases orders_of(const AccessModel& model, const RegionStatement& first, const RegionStatement& second,
                     const InstancePair& two, const Access* a, bool outside) {
  const bool inside = a && !outside && is_below(model, first, *a->buffer) && is_below(model, second, *a->buffer);
  const size_t home = inside ? loops_around(model, *a->buffer) : 0;
  const auto agree = [&](const VarRef& var) { return two.agree(var); };
  const auto before = [&](size_t l, const VarRef& var) {
    const StmtNode& loop = *first.loops[l]->stmt;
    const bool ordered = !is_independent(loop) || (a && is_private(loop, *a->buffer));
    return l >= home && ordered ? two.before(var) : Expr();
  };
  return order_cases(first, second, agree, before, first.visit < second.visit);
}

/// Accesses of one statement to the same elements, between which dependences do not differ.
struct Class {
  size_t access;  ///< the one that stands for them; one that writes, if any does
  size_t statement;
};

class Finder {
 public:
  /// With `only`, dependences through that buffer, allocated around the region.
  explicit Finder(const Dependences& d, const Buffer* only = nullptr) : d_(d), only_(only) {}

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

  /// The pairs of classes that may conflict, each once.
  std::vector<std::pair<size_t, size_t>> pairs() const {
    PathFacts facts(d_.model);
    std::vector<const Access*> all;
    for (const Class& c : classes_) all.push_back(&access(c));
    return conflicting_pairs(all, SharedNames(*d_.function), facts);
  }

  void add(const Class& one, const Class& other) {
    const Access &a = access(one), &b = access(other);
    const bool alike = a.buffer == b.buffer && a.write && b.write && a.mode == b.mode;
    add(one.statement, other.statement, &a, &b, alike && is_update(a.mode));
  }

  void add(size_t first, size_t second, const Access* a, const Access* b, bool reduction = false) {
    const RegionStatement &one = d_.statements[first], &other = d_.statements[second];
    PathConditions none(d_.model);
    InstancePair two(none);
    for (const VarRef& var : other.vars) two.separate(var);
    OrderCases orders = orders_of(d_.model, one, other, two, a, only_ != nullptr);
    if (orders.empty()) return;
    const auto number = [&](const Access* access) {
      return access ? std::optional(static_cast<size_t>(access - d_.model.accesses.data())) : std::nullopt;
    };
    std::vector<VarRef> second_vars;
    for (const VarRef& var : other.vars) second_vars.emplace_back(as<Var>(two.second(Expr(var))));
    out_.push_back(
        {first, second, number(a), number(b), reduction, std::move(second_vars), std::move(orders), new_question()});
  }

  const Dependences& d_;
  const Buffer* const only_;
  std::vector<Dependence> out_;
  std::vector<Class> classes_;
};

}  // namespace

Dependences dependences(const Function& f, const Stmt& region, const ExactEngine& engine) {
  Dependences out{&f, region, engine, access_model(f, region), {}, {}, std::make_shared<Contradictions>(engine)};
  out.statements = region_statements(out.model);
  out.list = Finder(out).run();
  return out;
}

std::vector<Dependence> dependences_through(const Dependences& all, const Buffer& buffer) {
  return Finder(all, &buffer).run();
}

}  // namespace helve
