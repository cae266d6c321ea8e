// A rewrite as the checker sees it: statements of the new region, each with the statement that it comes from and the
// instances of that which it runs.
// The three questions (is it the same statement, does each instance run once, is an order turned) share this.
#pragma once

#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/analysis/region_order.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"

namespace helve::legality {

struct Copy;

/// A load in whose place the value of a store stands.
struct InlinedLoad {
  const ExprNode* load;
  std::shared_ptr<const Copy> writer;  ///< the store, as if the new statement ran it
};

/// A statement of the new region.
struct Copy {
  const RegionStatement* now;
  size_t was;  ///< position of the old statement in Dependences::statements
  Substitution values;  ///< of the old statement's variables
  std::vector<Expr> conditions;  ///< of its path inside the region
  std::vector<const Step*> steps;  ///< that the conditions are of
  std::vector<VarRef> locals;  ///< other variables of the conditions: names of values
  std::vector<InlinedLoad> inlined;

  /// What the conditions say of ranges, learned when somebody asks; the model is that of the statement.
  const Facts& facts(const AccessModel& model) const;
  /// For sets of the conditions; uses this object and the model.
  Translation translation(const AccessModel& model) const {
    return {[this, &model]() -> const Facts& { return facts(model); }, &model.constant};
  }

 private:
  mutable std::optional<Facts> facts_ = {};
};

/// A buffer that the rewrite made for partial results of a reduction: statements without an origin fill it with the
/// identity and merge it by updates, and its updates stand for old ones of another buffer.
struct Partial {
  const Buffer* memory;
  const Buffer* into;
  StoreMode mode;
};

struct Rewrite {
  const Dependences& before;
  AccessModel after;
  std::vector<RegionStatement> statements;
  std::unordered_map<size_t, const Origin*> origins;  ///< by visit of the new region
  std::vector<Copy> copies;
  std::vector<Expr> given;  ///< what holds around the region
  BufferMap buffers = {};  ///< allocated in the new region, to those of the old one that they stand for
  /// Buffers judged by the values that reads see: what statements without an origin copy from or to, and what the
  /// rewrite names. Those of the copies that only the new region has are `made`.
  std::unordered_set<const Buffer*> staged = {}, made = {};
  RegionForm form = RegionForm::Program;
  /// Buffers of both regions whose allocation has other loops of the region around it now, so that accesses in one
  /// execution of it may be other ones.
  std::unordered_set<const Buffer*> moved = {};
  std::vector<Partial> partials = {};

  /// The partial results in the buffer, if it holds any.
  const Partial* partial(const Buffer* memory) const;
  /// Those that a statement without an origin merges.
  const Partial* merged_by(const StmtNode& s) const;
  /// The operator by which the old statement reduces the element of the buffer, if the access is of that element.
  std::optional<StoreMode> reduces(const RegionStatement& was, const Access& access) const;
  /// Does the old access, of the copy's statement, take effect when a partial result is merged?
  bool is_deferred(const Copy& copy, const Access& access) const;
  const RegionStatement& was(const Copy& copy) const { return before.statements[copy.was]; }
};

/// The conditions under which an instance runs, as those of a copy are given.
void add_conditions(Copy& copy, const AccessModel& model, const RegionStatement& statement);

/// The rewrite; or why it is none: a statement without an origin, or of a statement that is none.
std::optional<Rewrite> make_rewrite(const Dependences& before, const Stmt& after, const std::vector<Origin>& origins,
                                    const std::vector<BufferRef>& by_value, Legality& fault);

/// Is the old statement a store whose values alone count, so that it may run again, or not at all? Where it runs its
/// reads see what they saw, hence it writes what it wrote; who reads that is asked of each reader.
bool counts_by_value(const Rewrite& rewrite, const RegionStatement& was);

/// { instance of the new statement -> instance of the old one }, under all conditions; what is not affine makes it a
/// superset.
IntegerRelation instances_of(const Rewrite& rewrite, const Copy& copy);

/// The instance of the old statement that the copy runs at the values.
Instance instance_at(const Rewrite& rewrite, const Copy& copy, const Witness& at);

/// Is the index expression the same in all instances of the copy? With the instance where it is not, if there is one.
Answer always_equal(const Rewrite& rewrite, const Copy& copy, const Expr& a, const Expr& b);

/// Is every copy the statement that it comes from, at the instance that it runs? May add to `buffers`.
Legality check_statements(Rewrite& rewrite);
/// Does every instance run, and none twice? Stores whose values alone count may.
Legality check_instances(const Rewrite& rewrite);
/// Do the blocks of a grid run what they ran of loops that deal their iterations to them?
Legality check_dealt(const Rewrite& rewrite);
/// Does every read of staged memory see the same write, and does such memory hold the same in the end?
Legality check_values(const Rewrite& rewrite);
/// Do iterations of loops without order leave staged and moved memory of each other alone?
Legality check_iterations(const Rewrite& rewrite);
/// Do partial results begin with the identity, and is each merged once, into its element, in the order of other
/// accesses of that?
Legality check_reductions(const Rewrite& rewrite);
/// Do reads of memory that iterations have for themselves see no write of another iteration?
Legality check_private(const Rewrite& rewrite);
/// Are dependent instances, through memory that is not staged, in their old order and in one memory?
Legality check_order(const Rewrite& rewrite);

/// Makes a verdict worse: refuted is worse than unknown, which is worse than proved. Returns whether it is refuted.
bool worsen(Legality& verdict, Legality found);

}  // namespace helve::legality
