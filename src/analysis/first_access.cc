// The kinds of first access, over the paths through a statement.
// A sequence goes on to its next part only on paths that have accessed nothing yet.
#include "helve/analysis/first_access.h"

#include "helve/analysis/effects.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// Over all paths: what the first access may be, and whether there may be none.
struct First {
  bool read = false;
  bool write = false;
  bool none = true;

  void then(const First& next) {
    if (!none) return;
    read |= next.read;
    write |= next.write;
    none = next.none;
  }
};

First either(const First& a, const First& b) { return {a.read || b.read, a.write || b.write, a.none || b.none}; }

bool may_skip_operands(const Stmt& s) {
  bool found = false;
  const auto look = [&](const Expr& node) {
    const Apply* apply = as<Apply>(node);
    found |= apply && (apply->op == Op::Select || apply->op == Op::And || apply->op == Op::Or);
  };
  for_each_part(s, [&](const Expr& e) { walk(e, look); }, [](const Stmt&) {});
  return found;
}

First first_access(const Stmt& s, const Buffer& buffer) {
  if (!s) return {};
  First out;
  for (const RegionAccess& access : direct_accesses(s)) {
    if (access.region.buffer.get() != &buffer) continue;
    const bool skipped = !access.write && may_skip_operands(s);
    out.then({!access.write, access.write, skipped});
  }
  if (const If* n = as<If>(s)) {
    out.then(either(first_access(n->then_body, buffer), first_access(n->else_body, buffer)));
    return out;
  }
  First parts;
  for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { parts.then(first_access(part, buffer)); });
  if (s->kind == StmtKind::While) parts = either(parts, {});
  out.then(parts);
  return out;
}

}  // namespace

bool is_read_first(const Stmt& s, const Buffer& buffer) {
  const First first = first_access(s, buffer);
  return first.read && !first.write;
}

}  // namespace helve
