// What the primitives on loops share: names of new variables, chains of loops, loops with other headers.
// They build and look; none of them decides.
#include "loop_form.h"

#include <fmt/format.h>

#include <unordered_set>

#include "helve/analysis/path_conditions.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/schedule/find.h"

namespace helve {

namespace {

/// "i" of "i_12".
std::string without_number(const std::string& name) {
  const size_t end = name.find_last_not_of("0123456789");
  const bool numbered = end != std::string::npos && end > 0 && end + 1 < name.size() && name[end] == '_';
  return numbered ? name.substr(0, end) : name;
}

}  // namespace

NewName fresh_names(const FunctionRef& f) {
  std::unordered_set<std::string> taken;
  const Definitions defined(f->body);
  for (const VarRef& var : defined.vars) taken.insert(var->name);
  for (const BufferRef& buffer : defined.buffers) taken.insert(buffer->name);
  for (const VarRef& dim : f->dims) taken.insert(dim->name);
  for (const Param& param : f->params) std::visit([&](const auto& p) { taken.insert(p->name); }, param);
  return [taken = std::move(taken)](const std::string& hint) mutable {
    if (hint == "_") return hint;
    const std::string stem = without_number(hint);
    std::string name = stem;
    for (int n = 1; taken.contains(name); ++n) name = fmt::format("{}_{}", stem, n);
    taken.insert(name);
    return name;
  };
}

VarRef fresh_var(const FunctionRef& f, const std::string& hint) { return make_var(fresh_names(f)(hint)); }

MemoryScope memory_named(const std::string& word) {
  if (word == "fragment") return MemoryScope::Fragment;
  if (word == "global") return MemoryScope::Global;
  return word == "shared" ? MemoryScope::Shared : MemoryScope::Local;
}

Expr simplified(const Expr& e) { return simplify(e); }

Stmt with_values(const Stmt& s, const Substitution& values) {
  Memo<Expr> known;
  const auto expr = [&](auto&& self, const Expr& e) -> Expr {
    return known.of(e, [&] {
      if (e->kind != ExprKind::Var && !e->dtype.is_index()) {
        return map_children(e, [&](const Expr& child) { return self(self, child); });
      }
      const Expr now = substitute(e, values);
      return now == e || !e->dtype.is_index() ? now : simplify(now);
    });
  };
  return map_parts(
      s, [&](const Expr& e) { return expr(expr, e); }, [&](const Stmt& part) { return with_values(part, values); });
}

Stmt required_at(const FunctionRef& f, const Cursor& at) {
  Stmt s = statement_at(*f, at);
  HELVE_CHECK(s, "a cursor to no statement");
  return s;
}

void mark(For& loop) {
  const bool counted = loop.loop == LoopKind::Unroll || loop.loop == LoopKind::Vectorized;
  loop.scheduled = loop.loop != LoopKind::Thread && (!counted || int_value(loop.extents[0]));
}

Edited marked(const FunctionRef& f, const Cursor& at) {
  const Stmt s = required_at(f, at);
  const For* loop = as<For>(s);
  return loop ? revise(f, at, Stmt(copy_with(*loop, mark))) : Edited{f, Forwarding()};
}

Stmt with_header(const For& loop, LoopKind kind, std::vector<VarRef> vars, std::vector<Expr> begins,
                 std::vector<Expr> extents, Stmt body) {
  return Stmt(copy_with(loop, [&](For& out) {
    out.loop = kind;
    out.vars = std::move(vars);
    out.begins = std::move(begins);
    out.extents = std::move(extents);
    out.body = std::move(body);
    if (kind != LoopKind::Pipelined) out.num_stages = 1;
    mark(out);
  }));
}

const Stmt* only_statement(const std::vector<Stmt>& block) { return block.size() == 1 ? &block[0] : nullptr; }

std::string body_field(const Stmt& s) { return s->kind == StmtKind::If ? "then_body" : "body"; }

Edited swap_nested(const FunctionRef& f, const Cursor& outer, const Cursor& inner) {
  const Stmt a = required_at(f, outer), b = required_at(f, inner);
  const std::string in_a = body_field(a), in_b = body_field(b);
  HELVE_CHECK(inner == outer.child(in_a, 0), "only neighbours of a nest change places");
  std::vector<Stmt> below;
  for_each_block(b, [&](const std::string& field, const Stmt& body) {
    if (field == in_b) below = block_of(body);
  });
  // The inner one goes in front of the outer one and leaves it its statements, then the outer one goes into it.
  Edited edited = move(f, {inner, 1}, outer);
  const Cursor behind = outer.at(outer.position() + 1);
  edited = edited.then(move(edited.function, {outer.child(in_b, 0), below.size()}, behind.child(in_a, 0)));
  edited = edited.then(move(edited.function, {behind, 1}, outer.child(in_b, 0)));
  edited = edited.then(marked(edited.function, outer));
  return edited.then(marked(edited.function, outer.child(in_b, 0)));
}

Cursor allocation_named(const FunctionRef& f, const Arguments& arguments, size_t argument) {
  std::vector<Cursor> found;
  std::vector<std::string> known;
  walk_cursors(*f, [&](const Cursor& at, const Stmt& s) {
    const Alloc* alloc = as<Alloc>(s);
    if (!alloc) return;
    known.push_back(alloc->buffer->name);
    if (alloc->buffer->name == arguments.text(argument)) found.push_back(at);
  });
  if (found.size() == 1) return found[0];
  if (!found.empty()) {
    arguments.refuse(fmt::format("{} buffers have the name '{}'", found.size(), arguments.text(argument)),
                     required_at(f, found[0]), "give each buffer a name of its own");
  }
  throw UserError(Code::ScheduleNothingFound, arguments.place,
                  {{"function", f->name},
                   {"what", fmt::format("allocation of '{}'", arguments.text(argument))},
                   {"known", fmt::format("{}", fmt::join(known, ", "))}});
}

void require_outside(const Arguments& arguments, const Stmt& s, const Buffer& buffer) {
  walk(s, [&](const Stmt& each) {
    const Alloc* n = as<Alloc>(each);
    if (!n || n->buffer.get() != &buffer) return;
    arguments.refuse(fmt::format("'{}' is allocated inside of the statement", buffer.name), each,
                     "name a statement behind the allocation, or lift() it first");
  });
}

Facts facts_at(const FunctionRef& f, const Cursor& at) {
  const AccessModel model = access_model(*f, statement_at(*f, at));
  PathConditions around(model);
  for (const StepRef& step : model.around) {
    if (says_something(*step)) around.add(*step);
  }
  return around.facts();
}

std::string used_behind(const Stmt& s, const Stmt& later) {
  if (s->kind != StmtKind::Alloc && s->kind != StmtKind::Peer && !named_by(s)) return {};
  const Definitions defined(s);
  for (const VarRef& var : defined.vars) {
    if (substitute(later, {{var.get(), Expr(make_var(var->name, var->dtype))}}) != later) return var->name;
  }
  for (const BufferRef& buffer : defined.buffers) {
    if (replace_buffers(later, {{buffer.get(), declare_again(*buffer)}}) != later) return buffer->name;
  }
  return {};
}

}  // namespace helve
