// Stores that nobody sees: no read of another statement meets an element that they write.
// Order is no question: an element that only such stores and its own updates use has no influence on any other,
// whenever they run.
#include "unseen.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "helve/analysis/instance_pair.h"
#include "helve/analysis/region_order.h"
#include "helve/arith/relation.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

Legality proved() {
  Legality out;
  out.verdict = Verdict::Proved;
  return out;
}

Legality unknown(std::string reason) {
  Legality out;
  out.reason = std::move(reason);
  return out;
}

/// Does the access read an element only to write the same one?
bool is_of_update(const Access& access) {
  if (access.mode != StoreMode::Write) return true;
  if (access.stmt->kind != StmtKind::TileOp) return false;
  const TileOp& op = static_cast<const TileOp&>(*access.stmt);
  const bool reduces = op.row().rule == TileRule::Reduce;
  if (op.op != TileOpcode::Gemm && !reduces) return false;
  const size_t result = reduces ? 1 : 2;  // behind the operands
  for (size_t i = 0; i < result; ++i) {
    if (op.region(i).buffer == access.buffer) return false;
  }
  return op.region(result).buffer == access.buffer;
}

/// Is the value defined for all operands?
bool is_total(const Expr& value) {
  bool out = true;
  walk(value, [&](const Expr& e) {
    const Apply* n = as<Apply>(e);
    out &= !n || (n->op != Op::FloorDiv && n->op != Op::FloorMod);
  });
  return out;
}

class UnseenCheck {
 public:
  explicit UnseenCheck(const Unseen& unseen) : model_(access_model(*unseen.function)) {
    for (const Cursor& at : unseen.stores) extra_.insert(statement_at(*unseen.function, at).get());
  }

  Legality run() const {
    for (const Access& access : model_.accesses) {
      if (!extra_.contains(access.stmt) || never(access.path, bool_imm(true))) continue;
      Legality found = stays_inside(access);
      if (found.verdict == Verdict::Proved) found = access.write ? read_by_nobody(access) : was_written(access);
      if (found.verdict != Verdict::Proved) return found;
    }
    return proved();
  }

 private:
  PathConditions around() const {
    PathConditions query = conditions_around(model_);
    for (const VarRef& dim : model_.function->dims) query.require(apply(Op::Le, {int_imm(0), Expr(dim)}));
    return query;
  }

  Answer emptiness(const PathConditions& query) const {
    return IntegerSet(engine_, query.vars(), conjunction(query.conditions()), {}, query.translation()).is_empty();
  }

  /// Is the condition false wherever the path leads?
  bool never(const Path& path, const Expr& condition) const {
    PathConditions query = around();
    for (const StepRef& step : path) query.add(*step);
    query.require(condition);
    return emptiness(query).verdict == Verdict::Proved;
  }

  /// Are all elements of the access in its buffer?
  Legality stays_inside(const Access& access) const {
    if (access.write && !is_total(access.value)) return unknown("a division would run for more operands");
    for (size_t d = 0; d < access.ranges.size(); ++d) {
      const Expr& at = access.ranges[d].begin;
      const Expr outside = apply(Op::Or, {less(at, int_imm(0)), apply(Op::Le, {access.limits[d], at})});
      if (!never(access.path, outside)) {
        return unknown(fmt::format("'{}' may be past the end where the nest does not run", text_of(access)));
      }
    }
    return proved();
  }

  /// Does a statement in front of the read, which runs whenever that does, write all elements that it may read?
  Legality was_written(const Access& read) const {
    if (!model_.home.contains(read.buffer.get())) return proved();  // a tensor of the call has values
    const auto writes_all = [&](const Access& write) {
      if (!write.write || write.buffer != read.buffer || write.visit >= read.visit || extra_.contains(write.stmt)) {
        return false;
      }
      if (write.path.size() > read.path.size()) return false;
      if (!std::equal(write.path.begin(), write.path.end(), read.path.begin())) return false;
      std::vector<Expr> missed;
      for (size_t d = 0; d < read.ranges.size(); ++d) {
        const Range& all = write.ranges[d];
        missed.push_back(less(read.ranges[d].begin, all.begin));
        missed.push_back(apply(Op::Le, {all.begin + all.extent, read.ranges[d].begin}));
      }
      return !write.tiles && never(read.path, chain(Op::Or, missed));
    };
    if (std::any_of(model_.accesses.begin(), model_.accesses.end(), writes_all)) return proved();
    return unknown(fmt::format("'{}' may hold nothing where the nest does not run", text_of(read)));
  }

  Legality read_by_nobody(const Access& written) const {
    const Buffer& buffer = *written.buffer;
    const auto home = model_.home.find(&buffer);
    if (home == model_.home.end() || buffer.offset) {
      return unknown(fmt::format("'{}' is no memory of the function's own", buffer.name));
    }
    if (model_.function->mesh) return unknown(fmt::format("other cores may read '{}'", buffer.name));
    for (const Access& read : model_.accesses) {
      if (read.write || read.buffer.get() != &buffer || extra_.contains(read.stmt) || is_of_update(read)) continue;
      Legality found = apart(written, read, home->second.size());
      if (found.verdict != Verdict::Proved) return found;
    }
    return proved();
  }

  /// Do the two never touch one element in one execution of its allocation, which has `shared` steps around it?
  Legality apart(const Access& written, const Access& read, size_t shared) const {
    PathConditions query = around();
    InstancePair pair(query);
    pair.separate(read.path, shared);
    pair.first_runs(written.path, 0);
    pair.second_runs(read.path, shared);
    query.require(pair.touch(written, read, false).condition);
    const Answer answer = emptiness(query);
    if (answer.verdict == Verdict::Proved) return proved();
    Legality out;
    out.verdict = query.doubts().empty() ? answer.verdict : Verdict::Unknown;
    out.reason = query.doubts().empty() ? answer.reason : query.doubts();
    if (out.verdict != Verdict::Refuted) return out;
    out.fault = RewriteFault::Seen;
    out.first = Instance{read.stmt, read, values_of(read.path, pair.renamed(), answer.witness)};
    out.second = Instance{written.stmt, written, values_of(written.path, {}, answer.witness)};
    return out;
  }

  /// The values of the loops of a path.
  static Witness values_of(const Path& path, const Substitution& renamed, const Witness& all) {
    Witness out;
    for (const StepRef& step : path) {
      if (step->begins.empty()) continue;
      for (const VarRef& var : step->vars) {
        const auto now = renamed.find(var.get());
        const Var* named = now == renamed.end() ? var.get() : as<Var>(now->second);
        if (const std::optional<int64_t> value = value_in(all, named)) out.emplace_back(var, *value);
      }
    }
    return out;
  }

  const AccessModel model_;
  std::unordered_set<const StmtNode*> extra_;
  ExactEngine engine_;
};

}  // namespace

Legality check_unseen(const Unseen& unseen) { return UnseenCheck(unseen).run(); }

}  // namespace helve
