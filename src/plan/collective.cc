// Forms of transfers: a table from the roles of axes, and the proof.
// What the table guesses costs nothing if it is wrong: the exchange stands in its place.
#include "helve/plan/collective.h"

#include <algorithm>
#include <optional>

#include "corners.h"
#include "helve/arith/relation.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/chain.h"
#include "helve/plan/need.h"

namespace helve {

std::string_view to_string(CollectiveForm form) {
  constexpr std::string_view kNames[] = {"local",      "all_gather", "all_reduce", "reduce_scatter",
                                         "all_to_all", "permute",    "broadcast",  "scatter",
                                         "gather",     "reduce",     "exchange"};
  return kNames[static_cast<int>(form)];
}

bool reduces(CollectiveForm form) {
  return form == CollectiveForm::AllReduce || form == CollectiveForm::ReduceScatter || form == CollectiveForm::Reduce;
}

namespace {

/// What an axis does in a distribution.
enum class Role { Cut, Copies, Fixed, Terms };

Role role_of(const Distribution& distribution, Axis axis) {
  if (distribution.partial_over(axis)) return Role::Terms;
  if (distribution.layout.offset().count(axis)) return Role::Fixed;
  return distribution.holds_copies(axis) ? Role::Copies : Role::Cut;
}

/// The table: what a transfer is if all axes that change go from one role to one other.
CollectiveForm form_of(Role from, Role to) {
  using enum CollectiveForm;
  constexpr CollectiveForm kForms[4][4] = {
      //            Cut            Copies     Fixed     Terms
      /* Cut    */ {AllToAll, AllGather, Gather, Exchange},
      /* Copies */ {Local, Local, Local, Local},
      /* Fixed  */ {Scatter, Broadcast, Permute, Permute},
      /* Terms  */ {ReduceScatter, AllReduce, Reduce, Exchange},
  };
  return kForms[static_cast<int>(from)][static_cast<int>(to)];
}

bool is_proved(const Answer& answer) { return answer.verdict == Verdict::Proved; }

/// The devices of a corner of the mesh have at most one partner each: what a permutation has everywhere.
bool has_one_partner(const Transfer& transfer) {
  const std::vector<MeshAxis>& mesh = transfer.from().mesh;
  std::vector<int64_t> first(mesh.size(), 0), last;
  for (const MeshAxis& each : mesh) last.push_back(each.extent - 1);
  for (const std::vector<int64_t>& device : {first, last}) {
    if (transfer.partners(device) > 1) return false;
  }
  return transfer.terms() == 1;
}

/// The questions about one transfer.
class Derivation {
 public:
  explicit Derivation(const Transfer& transfer)
      : transfer_(transfer), corners_(transfer), space_(transfer.from()), received_(is_received(space_, transfer)) {}

  CollectiveStep derive(CollectiveForm suggested) {
    CollectiveStep out{CollectiveForm::Exchange, {}, transfer_};
    if (!corners_.moves() && is_proved(where(is_needed(space_, transfer_)).emptiness())) {
      out.form = CollectiveForm::Local;
      return out;
    }
    out.axes = axes_apart();
    if (corners_.refute(suggested)) return out;
    if (suggested == CollectiveForm::Local || suggested == CollectiveForm::Exchange) return out;
    if (const std::optional<int64_t> root = root_of(suggested, out.axes)) {
      if (moves_what_is_needed(suggested, out.axes)) {
        out.form = suggested;
        out.root = *root;
      }
    }
    return out;
  }

 private:
  /// The axes on which a receiver and a sender differ. Where corners show no two, it is proved that there are none, of
  /// all such axes at once where that holds.
  std::vector<size_t> axes_apart() const {
    std::vector<Expr> open;
    for (size_t a = 0; a < space_.receiver.size(); ++a) {
      if (!corners_.apart()[a]) open.push_back(apart_on(a));
    }
    const bool none = open.empty() || never_needed(chain(Op::Or, open));
    std::vector<size_t> out;
    for (size_t a = 0; a < space_.receiver.size(); ++a) {
      if (corners_.apart()[a] || (!none && !never_needed(apart_on(a)))) out.push_back(a);
    }
    return out;
  }
  Expr apart_on(size_t a) const { return apply(Op::Ne, {Expr(space_.receiver[a]), Expr(space_.sender[a])}); }
  bool never_needed(const Expr& condition) const {
    return is_proved(where(logical_and(condition, received_)).emptiness());
  }

  IntegerSet where(const Expr& condition) const { return IntegerSet(engine_, space_.tuple(), condition); }

  /// The root of the form, -1 for forms that have none; nothing if the transfer has no such root.
  std::optional<int64_t> root_of(CollectiveForm form, const std::vector<size_t>& axes) const {
    const bool sends = form == CollectiveForm::Broadcast || form == CollectiveForm::Scatter;
    const bool receives = form == CollectiveForm::Gather || form == CollectiveForm::Reduce;
    if (!sends && !receives) return -1;
    const Distribution& side = sends ? transfer_.from() : transfer_.to();
    int64_t root = 0;
    for (size_t a : axes) {
      const Axis axis = side.mesh[a].axis;
      if (!side.layout.offset().count(axis)) return std::nullopt;
      root = root * side.mesh[a].extent + side.layout.offset(axis);
    }
    return root;
  }

  /// Does a collective of this form, in groups over the axes, move exactly the need? Every form gives a receiver what
  /// senders of its group hold: whole blocks, or the part that it is to hold.
  bool moves_what_is_needed(CollectiveForm form, const std::vector<size_t>& axes) const {
    using enum CollectiveForm;
    std::vector<Expr> conditions = {holds(transfer_.from(), space_.sender, space_.element)};
    for (size_t a = 0; a < space_.receiver.size(); ++a) {
      if (std::find(axes.begin(), axes.end(), a) == axes.end()) conditions.push_back(space_.agree(a));
      conditions.push_back(apply(Op::Le, {int_imm(0), Expr(space_.receiver[a])}));
      conditions.push_back(less(Expr(space_.receiver[a]), int_imm(transfer_.from().mesh[a].extent)));
    }
    if (form == Gather || form == Reduce) {
      for (size_t a : axes) {
        const int64_t root = transfer_.to().layout.offset(transfer_.to().mesh[a].axis);
        conditions.push_back(apply(Op::Eq, {Expr(space_.receiver[a]), int_imm(root)}));
      }
    }
    const bool whole = form == AllGather || form == AllReduce || form == Broadcast || form == Gather || form == Reduce;
    if (!whole) conditions.push_back(is_given(space_, transfer_));
    for (size_t a = 0; a < axes.size(); ++a) {
      const bool combined = transfer_.roles()[axes[a]].reduced;
      if (combined != reduces(form)) return false;  // an axis of terms in a form without terms, or the other way round
    }
    // Of parts, both sides are what senders hold and receivers are given: that devices agree on all axes but these is
    // proved already, and where no other condition is there, that is all of it.
    bool is_all = !whole;
    for (size_t a = 0; a < transfer_.roles().size(); ++a) {
      const bool is_axis = std::find(axes.begin(), axes.end(), a) != axes.end();
      is_all = is_all && !(transfer_.roles()[a].kept && is_axis);
    }
    return (is_all || is_same(conjunction(conditions))) && (whole || goes_to_one_device(form));
  }

  /// Is that what is received? What devices have from themselves is compared, too, where a form changes nothing: that
  /// two devices differ is a disjunction, with which isl takes ten times as long.
  bool is_same(const Expr& moved) const {
    const IntegerSet ours = where(received_), theirs = where(moved);
    return is_proved(ours.is_subset_of(theirs)) && is_proved(theirs.is_subset_of(ours));
  }

  /// No element of a sender goes to two receivers; in a permutation, nor does a device have two partners.
  bool goes_to_one_device(CollectiveForm form) const {
    std::vector<VarRef> from = space_.sender, to = space_.receiver;
    if (form != CollectiveForm::Permute) {
      from.insert(from.end(), space_.element.begin(), space_.element.end());
      return is_one_to_one(from, to);
    }
    return is_one_to_one(from, to) && is_one_to_one(to, from);
  }

  /// Does what is received give each value of `from` one value of `to`?
  bool is_one_to_one(const std::vector<VarRef>& from, const std::vector<VarRef>& to) const {
    std::vector<Expr> image(from.begin(), from.end());
    std::vector<VarRef> locals;
    for (const VarRef& var : space_.tuple()) {
      const auto is = [&](const VarRef& each) { return each.get() == var.get(); };
      if (std::none_of(to.begin(), to.end(), is)) locals.push_back(var);
    }
    return is_proved(IntegerRelation(engine_, to, image, received_, locals).is_injective());
  }

  const Transfer& transfer_;
  Corners corners_;
  ExactEngine engine_;
  TransferSpace space_;
  Expr received_;
};

}  // namespace

bool changes(const Distribution& from, const Distribution& to, Axis axis) {
  const auto place = [&](const Distribution& side) {  // the dimension that the axis cuts, and its place in the cut
    for (size_t d = 0; d < side.cut.size(); ++d) {
      for (size_t k = 0; k < side.cut[d].size(); ++k) {
        if (side.cut[d][k].axis == axis) return std::pair(d, k);
      }
    }
    return std::pair(side.cut.size(), size_t{0});
  };
  const Partial *was = from.partial_over(axis), *is = to.partial_over(axis);
  return place(from) != place(to) || from.layout.offset().count(axis) != to.layout.offset().count(axis) ||
         from.layout.offset(axis) != to.layout.offset(axis) || !was != !is || (was && was->op != is->op);
}

CollectiveForm suggested_form(const Transfer& transfer) {
  const Distribution &from = transfer.from(), &to = transfer.to();
  std::optional<CollectiveForm> out;
  for (size_t a = 0; a < from.mesh.size(); ++a) {
    const Axis axis = from.mesh[a].axis;
    const Role was = role_of(from, axis), is = role_of(to, axis);
    if (from.mesh[a].extent == 1 || !changes(from, to, axis)) continue;
    const CollectiveForm form = form_of(was, is);
    if (form == CollectiveForm::Local) continue;  // copies suit any form: the proof decides
    if (out && *out != form) return CollectiveForm::Exchange;
    out = form;
  }
  if (!out) return CollectiveForm::Local;
  return *out == CollectiveForm::AllToAll && has_one_partner(transfer) ? CollectiveForm::Permute : *out;
}

bool refuted(const Transfer& transfer, CollectiveForm form) { return Corners(transfer).refute(form); }

CollectiveStep derive(const Transfer& transfer) { return Derivation(transfer).derive(suggested_form(transfer)); }

}  // namespace helve
