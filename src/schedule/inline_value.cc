// The primitive that computes a value where it is read: inline.
// Loads become what the store computes for their element; that each of them sees this store, and that its operands are
// still the same there, is for the checker.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/update.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "last_writer.h"
#include "loop_form.h"

namespace helve {

namespace {

size_t statements_below(const Stmt& s) {
  size_t count = 0;
  for_each_block(s, [&](const std::string&, const Stmt& body) { count += block_of(body).size(); });
  return count;
}

/// The store that the statement is, or that is all its loops hold.
Cursor only_store(const FunctionRef& f, const Arguments& arguments) {
  Cursor at = arguments.cursor(0);
  while (required_at(f, at)->kind == StmtKind::For && statements_below(required_at(f, at)) == 1) {
    at = at.child("body", 0);
  }
  const Stmt s = required_at(f, at);
  const Store* store = as<Store>(s);
  if (!store) {
    arguments.refuse(fmt::format("'{}' is no store to one element", head_text(s)), s, "name the store of a value");
  }
  if (store->mode != StoreMode::Write) {
    arguments.refuse("an update does not say what the element becomes", s, "name a plain store of a value");
  }
  return at;
}

/// The outermost loop or branch that holds the statement alone.
Cursor alone(const FunctionRef& f, Cursor at) {
  while (at.has_parent()) {
    const Stmt around = required_at(f, at.parent());
    if ((around->kind != StmtKind::For && around->kind != StmtKind::If) || statements_below(around) != 1) break;
    at = at.parent();
  }
  return at;
}

/// Index expressions in their normal form, all else as it is.
Expr with_simple_indices(const Expr& e, const Facts& facts) {
  if (e->dtype.is_index()) return simplify(e, facts);
  return map_children(e, [&](const Expr& child) { return with_simple_indices(child, facts); });
}

/// Loads of the buffer become values.
class InlineLoads {
 public:
  InlineLoads(const FunctionRef& f, const Cursor& writer, Rewrite& out)
      : f_(f), store_(*as<Store>(required_at(f, writer))), writer_(writer), last_(f, writer), out_(out) {}

  /// The statement at the place with values in its own expressions.
  Stmt operator()(const Cursor& at, const Stmt& s) {
    Memo<Expr> known;
    return map_parts(s, [&](const Expr& e) { return expr(e, at, known); }, [](const Stmt& part) { return part; });
  }
  const std::string& reason() const { return last_.reason(); }

 private:
  Expr expr(const Expr& e, const Cursor& at, Memo<Expr>& known) {
    return known.of(e, [&] {
      const Expr below = map_children(e, [&](const Expr& child) { return expr(child, at, known); });
      const Load* from = as<Load>(below);
      if (!from || from->buffer.get() != store_.buffer.get()) return below;
      const std::optional<LoopValues> values = last_.at(at, from->indices);
      if (!values) return below;
      Substitution instance;
      for (const auto& [var, value] : *values) instance[var.get()] = value;
      out_.inlined.push_back({at, as<Load>(e), writer_, *values});
      return with_simple_indices(substitute(as_stored(store_.value), instance), facts_at(f_, at));
    });
  }

  const FunctionRef& f_;
  const Store& store_;
  const Cursor writer_;
  LastWriter last_;
  Rewrite& out_;
};

/// The first place of the innermost block that holds all of them.
Cursor common_block(const std::vector<Cursor>& places) {
  Cursor out = places.at(0).at(0);
  for (const Cursor& at : places) {
    while (!Block{out, SIZE_MAX}.holds(at)) out = out.parent().at(0);
  }
  return out;
}

std::optional<Cursor> allocation_of(const FunctionRef& f, const Buffer& buffer) {
  std::optional<Cursor> out;
  walk_cursors(*f, [&](const Cursor& at, const Stmt& s) {
    const Alloc* allocation = as<Alloc>(s);
    if (allocation && allocation->buffer.get() == &buffer) out = at;
  });
  return out;
}

/// A name that the statement at `writer` uses and that is not defined at `reader`; loops aside.
std::string hidden_name(const FunctionRef& f, const Cursor& writer, const Cursor& reader) {
  std::string out;
  const Stmt s = required_at(f, writer);
  walk_cursors(*f, [&](const Cursor& at, const Stmt& definition) {
    const Block behind{at, SIZE_MAX - at.position()};
    if (!behind.holds(writer) || behind.holds(reader)) return;
    if (const std::string name = used_behind(definition, s); !name.empty()) out = name;
  });
  return out;
}

/// The buffers that the store reads and something around it writes.
std::vector<BufferRef> changing_operands(const Stmt& store, const Stmt& around) {
  std::vector<BufferRef> out;
  const std::vector<BufferEffect> all = buffer_effects(around);
  for (const BufferEffect& operand : buffer_effects(store)) {
    const auto is_written = [&](const BufferEffect& each) { return each.buffer == operand.buffer && each.written; };
    if (operand.read && std::any_of(all.begin(), all.end(), is_written)) out.push_back(operand.buffer);
  }
  return out;
}

/// Takes the store away where nobody reads the buffer any more, and the buffer where nobody uses it.
Edited without_store(const Edited& edited, const Cursor& store, const Cursor& allocation, const Buffer& buffer) {
  const Edited less = edited.then(erase(edited.function, {alone(edited.function, store), 1}));
  bool read = false, used = false;
  for (const BufferEffect& effect : buffer_effects(less.function->body)) {
    if (effect.buffer.get() != &buffer) continue;
    read |= effect.read;
    used = true;
  }
  if (read) return edited;
  return used ? less : less.then(erase(less.function, {*less.forward(allocation), 1}));
}

}  // namespace

/// inline(B): `for x in serial(n): B[x] = S(x)` and `C[i] = R(B[i + 1])` become `C[i] = R(S(i + 1))`.
Rewrite inline_value(const FunctionRef& f, const Arguments& arguments) {
  const Cursor writer = only_store(f, arguments);
  const Stmt s = required_at(f, writer);
  const Store& store = *as<Store>(s);
  Rewrite out{{f, Forwarding()}, {}, {}, {}, {}, {}};
  InlineLoads inlined(f, writer, out);
  std::vector<Cursor> places{writer};
  walk_cursors(*f, [&](const Cursor& at, const Stmt&) {
    if (at == writer) return;
    const Stmt old = required_at(out.edited.function, at), now = inlined(at, old);
    if (now == old) return;
    if (const std::string name = hidden_name(f, writer, at); !name.empty()) {
      arguments.refuse(fmt::format("the value uses '{}', which is not defined where it is read", name), old,
                       "inline what that holds first, or write the value without it");
    }
    places.push_back(at);
    out.edited = out.edited.then(revise(out.edited.function, at, now));
  });
  if (!inlined.reason().empty()) {
    arguments.refuse(inlined.reason(), s, "inline a store whose subscripts are affine, one element an iteration");
  }
  if (places.size() == 1) {
    arguments.refuse(fmt::format("no other statement loads '{}'", store.buffer->name), s,
                     "name the store of a value that others read");
  }
  const std::optional<Cursor> allocation = allocation_of(f, *store.buffer);
  if (allocation) {
    out.edited = without_store(out.edited, writer, *allocation, *store.buffer);
    places.push_back(*allocation);
  }
  const Cursor first = common_block(places);
  const Stmt around = body_around(*f, first);
  out.by_value = changing_operands(s, around);
  if (!out.edited.forward(writer)) out.by_value.push_back(store.buffer);
  out.before = {first, block_of(around).size()};
  out.after = {first, block_of(body_around(*out.edited.function, first)).size()};
  for (size_t n = 1; n < places.size() - (allocation ? 1 : 0); ++n) {
    out.results.push_back(*out.edited.forward(places[n]));
  }
  return out;
}

}  // namespace helve
