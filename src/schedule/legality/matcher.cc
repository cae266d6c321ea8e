// The comparison of old and new expressions.
// An index that reads nothing that changes is compared by its value, anything else by its structure.
#include "matcher.h"

#include <algorithm>

#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "inlined.h"

namespace helve::legality {

namespace {

std::vector<Expr> children_of(const Expr& e) {
  std::vector<Expr> out;
  for_each_child(e, [&](const Expr& child) { out.push_back(child); });
  return out;
}

/// The visit of the name's definition that holds at `visit`; nothing if it stands outside of the region.
std::optional<size_t> definition(const AccessModel& model, const Var* var, size_t visit) {
  for (size_t v = visit; v-- > 0;) {
    const Stmt stmt(model.visits[v].stmt);
    if (named_by(stmt).get() != var) continue;
    size_t parent = v;
    while (parent > 0 && model.visits[--parent].end <= v) {
    }
    if (model.visits[parent].end > visit) return v;
  }
  return std::nullopt;
}

/// The value of an update of a partial result, which may be of a wider float than the element.
const Expr& value_given(const Store& update, const Reduction& was) {
  const Cast* widened = as<Cast>(update.value);
  const bool is_wider = widened && update.value->dtype == update.buffer->dtype && widened->value->dtype.is_float() &&
                        widened->value->dtype == was.operand->dtype && update.value->dtype != was.operand->dtype;
  return is_wider ? widened->value : update.value;
}

}  // namespace

bool Matcher::is_staged(const Storage* buffer) const {
  return rewrite_.staged.contains(static_cast<const Buffer*>(buffer));
}

bool Matcher::reads_staged(const Expr& e) const {
  bool found = false;
  walk(e, [&](const Expr& node) {
    const Load* load = as<Load>(node);
    found |= load && is_staged(load->buffer.get());
  });
  return found;
}

bool Matcher::same(const Expr& old, const Expr& now) {
  const AccessModel &before = rewrite_.before.model, &after = rewrite_.after;
  if (old->dtype.is_index() && now->dtype.is_index() && !before.names_stay(old) && !after.names_stay(now)) {
    const Expr here = substitute(old, copy_.values);
    const bool fixed = !changes(here, before.constant) && !changes(now, before.constant) &&
                       (rewrite_.staged.empty() || (!reads_staged(here) && !reads_staged(now)));
    if (fixed && same_index(here, now)) return true;
    if (!has_load(old)) return false;
  }
  if (old->dtype != now->dtype) return false;
  if (const Load* was = as<Load>(old); was && (elsewhere_ || is_staged(was->buffer.get()) || inlined_at(*was))) {
    return moves_ && same_load(*was, now);
  }
  if (old->kind != now->kind) return false;
  if (const Var* var = as<Var>(old)) return same_name(var, as<Var>(now));
  const bool large = is_large(old);
  if (large && known_.contains({old.get(), now.get()})) return true;
  const std::vector<Expr> olds = children_of(old), nows = children_of(now);
  if (olds.size() != nows.size()) return false;
  for (size_t i = 0; i < olds.size(); ++i) {
    if (olds[i]->dtype != nows[i]->dtype || !same(olds[i], nows[i])) return false;
  }
  size_t at = 0;
  if (!same_expr(map_children(old, [&](const Expr&) { return nows[at++]; }), now)) return false;
  if (large) known_.emplace(old.get(), now.get());
  return true;
}

const InlinedLoad* Matcher::inlined_at(const Load& old) const {
  const auto is_it = [&](const InlinedLoad& each) { return each.load == &old; };
  const auto at = std::find_if(copy_.inlined.begin(), copy_.inlined.end(), is_it);
  return at == copy_.inlined.end() ? nullptr : &*at;
}

/// Which write the load sees is for the check of values.
bool Matcher::same_load(const Load& old, const Expr& now) {
  if (const InlinedLoad* inlined = inlined_at(old)) {
    std::optional<std::vector<LoadPair>> loads = loads_of_value(rewrite_, *inlined, now);
    if (loads) inlined_.push_back({inlined, std::move(*loads)});
    return loads.has_value();
  }
  const Load* is = as<Load>(now);
  if (!is || !is_judged(*is) || (!elsewhere_ && !is_staged(is->buffer.get()))) return false;
  moved_.emplace_back(&old, is);
  return true;
}

bool Matcher::same_elsewhere(const Expr& old, const Expr& now) {
  moves_ = elsewhere_ = true;
  return same(old, now);
}

/// Is it told what the load sees, wherever it stands? Of memory that changes, and is not judged by values, only the
/// order of old accesses is.
bool Matcher::is_judged(const Load& load) const {
  return is_staged(load.buffer.get()) || rewrite_.before.model.constant.contains(load.buffer.get());
}

bool Matcher::same_index(const Expr& here, const Expr& now) {
  const Answer answer = always_equal(rewrite_, copy_, here, now);
  if (answer.verdict == Verdict::Refuted && difference_.verdict != Verdict::Refuted) difference_ = answer;
  return answer.verdict == Verdict::Proved;
}

/// A name whose value cannot change is the same where the value is; another one where its definition runs for the same
/// old instance.
bool Matcher::same_name(const Var* old, const Var* now) {
  const std::optional<size_t> was = definition(rewrite_.before.model, old, rewrite_.was(copy_).visit);
  const std::optional<size_t> is = definition(rewrite_.after, now, copy_.now->visit);
  if (!was || !is) return !was && !is && old == now;
  const Stmt one(rewrite_.before.model.visits[*was].stmt), other(rewrite_.after.visits[*is].stmt);
  if (!as<Bind>(one) || !as<Bind>(other)) return same_statement_at(*was, *is);  // what an atomic store found
  const Expr &value = as<Bind>(one)->value, &new_value = as<Bind>(other)->value;
  if (value->dtype != new_value->dtype || !same(value, new_value)) return false;
  return !changes(value, rewrite_.before.model.constant) || same_statement_at(*was, *is);
}

bool Matcher::same_place(const Step& old, const Step& now) const {
  return old.stmt && now.stmt && same_statement_at(old.visit, now.visit);
}

bool Matcher::same_statement_at(size_t old_visit, size_t now_visit) const {
  const auto by_visit = [&](const Copy& each) { return each.now->visit == now_visit; };
  const auto at = std::find_if(rewrite_.copies.begin(), rewrite_.copies.end(), by_visit);
  if (at == rewrite_.copies.end() || rewrite_.was(*at).visit != old_visit) return false;
  const std::vector<VarRef>& vars = rewrite_.was(*at).vars;
  return std::all_of(vars.begin(), vars.end(), [&](const VarRef& var) {
    return copy_.values.contains(var.get()) &&
           always_equal(rewrite_, copy_, at->values.at(var.get()), copy_.values.at(var.get())).verdict ==
               Verdict::Proved;
  });
}

bool Matcher::same_statement() {
  const Stmt now(copy_.now->stmt);
  Stmt old(rewrite_.was(copy_).stmt);
  if (old->kind != now->kind) return false;
  moves_ = true;
  const Store *from = as<Store>(old), *to = as<Store>(now);
  if (const Partial* partial = to ? rewrite_.partial(to->buffer.get()) : nullptr) {
    const std::optional<Reduction> reduction = reduction_of(*from);
    return reduction && from->buffer.get() == partial->into && reduction->mode == partial->mode &&
           (to->mode == partial->mode || to->mode == StoreMode::Write) &&
           same(reduction->operand, value_given(*to, *reduction));
  }
  if (from && to && is_staged(from->buffer.get()) && is_staged(to->buffer.get())) {
    return from->mode == to->mode && from->buffer->dtype == to->buffer->dtype && same(from->value, to->value);
  }
  if (!rewrite_.buffers.empty()) {
    BufferMap back;  // several may stand for one old buffer, of which a statement uses its own
    for (size_t a = copy_.now->first; a < copy_.now->last; ++a) {
      const BufferRef& used = rewrite_.after.accesses[a].buffer;
      const auto stands_for = rewrite_.buffers.find(used.get());
      if (stands_for != rewrite_.buffers.end()) back.emplace(stands_for->second.get(), used);
    }
    old = replace_buffers(old, back);
  }
  const auto parts_of = [](const Stmt& s, std::vector<Expr>& exprs, std::vector<Stmt>& stmts) {
    for_each_part(s, [&](const Expr& e) { exprs.push_back(e); }, [&](const Stmt& part) { stmts.push_back(part); });
  };
  std::vector<Expr> olds, nows;
  std::vector<Stmt> old_stmts, now_stmts;
  parts_of(old, olds, old_stmts);
  parts_of(now, nows, now_stmts);
  if (copy_.now->pure) {  // the condition, bounds or value; the rest are statements of their own
    if (olds.size() != nows.size()) return false;
    for (size_t i = 0; i < olds.size(); ++i) {
      if (!same(olds[i], nows[i])) return false;
    }
    return true;
  }
  if (!old_stmts.empty()) return structural_equal(substitute(old, copy_.values), now);
  if (olds.size() != nows.size()) return false;
  for (size_t i = 0; i < olds.size(); ++i) {
    if (olds[i]->dtype != nows[i]->dtype || !same(olds[i], nows[i])) return false;
  }
  size_t at = 0;
  return structural_equal(
      map_parts(old, [&](const Expr&) { return nows[at++]; }, [](const Stmt& s) { return s; }), now);
}

}  // namespace helve::legality
