// Forms of transfers: a table from the roles of axes, and the proof.
// What the table guesses costs nothing if it is wrong: the exchange stands in its place.
#include "helve/plan/collective.h"

#include <algorithm>
#include <optional>

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
      : transfer_(transfer), space_(transfer.from()), need_(need(engine_, space_, transfer)) {}

  CollectiveStep derive(CollectiveForm suggested) {
    CollectiveStep out{CollectiveForm::Exchange, {}, transfer_};
    if (is_proved(need_.emptiness())) {
      out.form = CollectiveForm::Local;
      return out;
    }
    for (size_t a = 0; a < space_.receiver.size(); ++a) {
      const IntegerSet apart = where(
          logical_and(apply(Op::Ne, {Expr(space_.receiver[a]), Expr(space_.sender[a])}), is_needed(space_, transfer_)));
      if (!is_proved(apart.emptiness())) out.axes.push_back(a);
    }
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
    std::vector<Expr> conditions = {holds(transfer_.from(), space_.sender, space_.element), space_.apart()};
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
    if (!whole) conditions.push_back(holds(transfer_.to(), space_.receiver, space_.element));
    for (size_t a = 0; a < axes.size(); ++a) {
      const bool combined = transfer_.roles()[axes[a]].reduced;
      if (combined != reduces(form)) return false;  // an axis of terms in a form without terms, or the other way round
    }
    const IntegerSet moved = where(conjunction(conditions));
    if (!is_proved(need_.is_subset_of(moved)) || !is_proved(moved.is_subset_of(need_))) return false;
    return whole || goes_to_one_device(form);
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

  /// Does what is needed give each value of `from` one value of `to`?
  bool is_one_to_one(const std::vector<VarRef>& from, const std::vector<VarRef>& to) const {
    std::vector<Expr> image(from.begin(), from.end());
    std::vector<VarRef> locals;
    for (const VarRef& var : space_.tuple()) {
      const auto is = [&](const VarRef& each) { return each.get() == var.get(); };
      if (std::none_of(to.begin(), to.end(), is)) locals.push_back(var);
    }
    return is_proved(IntegerRelation(engine_, to, image, is_needed(space_, transfer_), locals).is_injective());
  }

  const Transfer& transfer_;
  ExactEngine engine_;
  TransferSpace space_;
  IntegerSet need_;
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

CollectiveStep derive(const Transfer& transfer) { return Derivation(transfer).derive(suggested_form(transfer)); }

}  // namespace helve
