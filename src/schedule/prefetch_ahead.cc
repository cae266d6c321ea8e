// The primitive that asks for memory before it is read: prefetch.
// A prefetch has no effect on results and may lie outside of its tensor, so there is nothing to prove.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"

namespace helve {

namespace {

bool mentions_any(const std::vector<Expr>& indices, const std::vector<VarRef>& vars) {
  return std::any_of(indices.begin(), indices.end(), [&](const Expr& index) {
    return std::any_of(vars.begin(), vars.end(), [&](const VarRef& var) { return mentions(index, var.get()); });
  });
}

/// The statement of the innermost loop around `reader`, from `loop` inwards, whose variable the subscripts use.
Cursor place_of_hint(const FunctionRef& f, const Cursor& loop, const Cursor& reader, const std::vector<Expr>& indices) {
  Cursor place = reader;
  for (Cursor at = reader; at != loop; place = at) {
    const Cursor inner = at;
    at = at.parent();
    const Stmt around = required_at(f, at);
    const For* each = as<For>(around);
    if (at == loop || (each && mentions_any(indices, each->vars))) return inner;
  }
  return place;
}

/// The elements of the buffer that the statement itself reads.
std::vector<const Load*> loads_by_name(const Stmt& s, const std::string& buffer, std::vector<std::string>& known) {
  std::vector<const Load*> out;
  const auto visit = [&](const Expr& node) {
    const Load* load = as<Load>(node);
    if (!load) return;
    if (load->buffer->name == buffer) out.push_back(load);
    if (std::find(known.begin(), known.end(), load->buffer->name) == known.end()) known.push_back(load->buffer->name);
  };
  for_each_part(s, [&](const Expr& e) { walk(e, visit); }, [](const Stmt&) {});
  return out;
}

}  // namespace

/// prefetch(i, "B", 2): `for i in serial(n): A[i] = B[i]` becomes `for i in serial(n)` with `prefetch(B[i + 2])` in
/// front of `A[i] = B[i]`.
Rewrite prefetch_ahead(const FunctionRef& f, const Arguments& arguments) {
  const Cursor& at = arguments.cursor(0);
  const For& loop = arguments.loop(f, at);
  const Stmt s = required_at(f, at);
  const VarRef var = loop.vars[0];
  std::map<Cursor, std::vector<Stmt>> asked;
  std::vector<std::string> known;
  bool read = false;
  walk_cursors(s, at, [&](const Cursor& reader, const Stmt& each) {
    if (each->kind != StmtKind::Store) return;
    for (const Load* load : loads_by_name(each, arguments.text(1), known)) {
      read = true;
      if (!mentions_any(load->indices, {var})) continue;
      std::vector<Expr> ahead;
      for (const Expr& index : load->indices) {
        ahead.push_back(simplify(substitute(index, {{var.get(), Expr(var) + int_imm(arguments.integer(2))}})));
      }
      std::vector<Stmt>& here = asked[place_of_hint(f, at, reader, load->indices)];
      const bool again = std::any_of(here.begin(), here.end(), [&](const Stmt& other) {
        const std::vector<Expr>& indices = as<Prefetch>(other)->indices;
        return std::equal(indices.begin(), indices.end(), ahead.begin(), ahead.end(), same_expr);
      });
      if (!again) here.push_back(helve::prefetch(buffer_ref(load->buffer), std::move(ahead), each->span));
    }
  });
  if (!read) {
    throw UserError(Code::ScheduleNothingFound, arguments.place,
                    {{"function", f->name},
                     {"what", fmt::format("read of '{}' in '{}'", arguments.text(1), head_text(s))},
                     {"known", fmt::format("{}", fmt::join(known, ", "))}});
  }
  if (asked.empty()) {
    arguments.refuse(fmt::format("all iterations read the same elements of '{}'", arguments.text(1)), s,
                     "name a loop that moves through the buffer");
  }
  Edited edited{f, Forwarding()};
  for (auto place = asked.rbegin(); place != asked.rend(); ++place) {  // from the last one on, so that places stay
    edited = edited.then(insert(edited.function, place->first, place->second));
    Cursor around = place->first.parent();
    while (required_at(edited.function, around)->kind != StmtKind::For) around = around.parent();
    edited = edited.then(marked(edited.function, around));
  }
  edited = edited.then(marked(edited.function, at));
  return {edited, {at, 1}, {at, 1}, {}, {}, {at}};
}

}  // namespace helve
