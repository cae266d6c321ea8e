// Primitives that copy a part of a buffer to memory of its own for the time of a statement: cache_read, cache_write.
// They build copies of the footprint; that each read sees what it saw is for the checker.
#include <fmt/format.h>

#include <algorithm>

#include "footprint.h"
#include "helve/analysis/access.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"

namespace helve {

namespace {

/// The buffer of that name that the statement uses.
BufferRef used_buffer(const FunctionRef& f, const Stmt& s, const Arguments& arguments, size_t argument) {
  std::vector<std::string> known;
  const AccessModel model = access_model(*f, s);
  for (const Access& access : model.accesses) {
    if (access.buffer->name == arguments.text(argument)) {
      require_outside(arguments, s, *access.buffer);
      return access.buffer;
    }
    if (std::find(known.begin(), known.end(), access.buffer->name) == known.end()) known.push_back(access.buffer->name);
  }
  throw UserError(Code::ScheduleNothingFound, arguments.place,
                  {{"function", f->name},
                   {"what", fmt::format("buffer '{}' in '{}'", arguments.text(argument), head_text(s))},
                   {"known", fmt::format("{}", fmt::join(known, ", "))}});
}

/// Loads, and with `stores` stores, of one buffer become those of another one, whose first element is `begin`.
class Redirect {
 public:
  Redirect(const Buffer& from, BufferRef to, const std::vector<Expr>& begin, bool stores)
      : from_(from), to_(std::move(to)), begin_(begin), stores_(stores) {}

  Stmt operator()(const Stmt& s) {
    const Stmt below =
        map_parts(s, [&](const Expr& e) { return expr(e); }, [&](const Stmt& part) { return (*this)(part); });
    const Store* store = as<Store>(below);
    if (!store || !stores_ || store->buffer.get() != &from_) return below;
    return Stmt(copy_with(*store, [&](Store& out) {
      out.buffer = to_;
      out.indices = moved(store->indices);
    }));
  }

 private:
  Expr expr(const Expr& e) {
    return known_.of(e, [&] {
      const Expr below = map_children(e, [&](const Expr& child) { return expr(child); });
      const Load* from = as<Load>(below);
      return from && from->buffer.get() == &from_ ? load(to_, moved(from->indices), e->span) : below;
    });
  }
  std::vector<Expr> moved(const std::vector<Expr>& indices) const {
    std::vector<Expr> out;
    for (size_t d = 0; d < indices.size(); ++d) out.push_back(simplify(simplify(indices[d]) - begin_[d]));
    return out;
  }

  const Buffer& from_;
  const BufferRef to_;
  const std::vector<Expr>& begin_;
  const bool stores_;
  Memo<Expr> known_;
};

/// Loops over the box, with the copy of one element inside; `f` names what is taken.
Stmt copy_box(const FunctionRef& f, const Footprint& box, const BufferRef& buffer, const BufferRef& cache, bool back,
              const Span& span) {
  std::vector<VarRef> vars;
  std::vector<Expr> here, there;
  for (size_t d = 0; d < box.begin.size(); ++d) {
    const int64_t* extent = int_value(box.extent[d]);
    vars.push_back(extent && *extent == 1 ? VarRef() : fresh_var(f, fmt::format("{}{}", back ? "v" : "w", d)));
    here.push_back(vars.back() ? Expr(vars.back()) : int_imm(0));
    there.push_back(simplify(box.begin[d] + here.back()));
  }
  Stmt out = back ? store(buffer, there, load(cache, here), span) : store(cache, here, load(buffer, there), span);
  for (size_t d = vars.size(); d-- > 0;) {
    if (vars[d]) out = for_loop(LoopKind::Serial, vars[d], box.extent[d], out, span);
  }
  return out;
}

/// The box of `buffer` at the place of a statement, and the memory for it.
struct Cache {
  Footprint box;
  BufferRef memory;
};

Cache cache_of(const FunctionRef& f, const Cursor& at, const BufferRef& buffer, const Arguments& arguments,
               const std::vector<Stmt>& within = {}) {
  const Stmt s = required_at(f, at);
  const FootprintResult found = footprint(f, at, *buffer, within);
  if (!found.box) arguments.refuse(found.reason, s, "name a statement whose subscripts are affine");
  std::vector<Expr> shape;
  for (size_t d = 0; d < buffer->rank(); ++d) {
    const std::optional<int64_t> most = found.box->most[d];
    if (!most) {
      arguments.refuse(fmt::format("the extent {} of dimension {} of '{}' is no constant",
                                   brief_text(found.box->extent[d]), d, buffer->name),
                       s, "split() the loop by a constant first, and name the inner one");
    }
    shape.push_back(int_imm(std::max<int64_t>(*most, 0)));
  }
  const std::string& scope = arguments.text(2);
  const std::string name = fresh_var(f, fmt::format("{}_{}", buffer->name, scope))->name;
  return {*found.box, make_buffer(name, buffer->dtype, memory_named(scope), shape, {}, {}, s->span)};
}

}  // namespace

/// cache_read(i, "A", "local"): `for i in serial(4): S(A[k + i])` becomes `W = alloc_local(4)`, a loop with
/// `W[w0] = A[k + w0]` and `for i in serial(4): S(W[i])`. With statements `within`, these alone read the copy.
Rewrite cache_read(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const Stmt s = required_at(f, at);
  const BufferRef buffer = used_buffer(f, s, arguments, 1);
  std::vector<Stmt> within;
  for (const Cursor& each : arguments.cursors(3)) {
    within.push_back(required_at(f, each));
    if (!each.within(at)) {
      arguments.refuse("a statement of 'within' is not inside of the one at which the copy is made", within.back(),
                       "name statements below it");
    }
  }
  const Cache cache = cache_of(f, at, buffer, arguments, within);
  if (!cache.box.reads) {
    arguments.refuse(fmt::format("the statement does not read '{}'", buffer->name), s,
                     "cache_write() copies what is written");
  }
  Redirect redirect(*buffer, cache.memory, cache.box.begin, false);
  Edited edited{f, Forwarding()};
  for (const Cursor& each : within.empty() ? std::vector<Cursor>{at} : arguments.cursors(3)) {
    edited = edited.then(revise(edited.function, each, redirect(required_at(edited.function, each))));
  }
  const Stmt in = copy_box(f, cache.box, buffer, cache.memory, false, s->span);
  edited = edited.then(insert(edited.function, at, {alloc(cache.memory, s->span), in}));
  return {edited, {at, 1}, {at, 3}, {}, {}, {at.at(at.position() + 1), at.at(at.position() + 2)}};
}

/// cache_write(k, "C", "local"): `for k in serial(n): C[i] = C[i] + S` becomes `W = alloc_local(1)`, `W[0] = C[i]`,
/// `for k in serial(n): W[0] = W[0] + S` and `C[i] = W[0]`. What the loop writes before it reads is not copied in.
Rewrite cache_write(const FunctionRef& f, const Arguments& arguments) {
  const Cursor at = arguments.cursor(0);
  const Stmt s = required_at(f, at);
  const BufferRef buffer = used_buffer(f, s, arguments, 1);
  const Cache cache = cache_of(f, at, buffer, arguments);
  Edited edited = revise(f, at, Redirect(*buffer, cache.memory, cache.box.begin, true)(s));
  const Stmt back = copy_box(f, cache.box, buffer, cache.memory, true, s->span);
  edited = edited.then(insert(edited.function, at.at(at.position() + 1), {back}));
  std::vector<Stmt> in{alloc(cache.memory, s->span)};
  if (needs_old(f, at, *buffer, cache.box)) in.push_back(copy_box(f, cache.box, buffer, cache.memory, false, s->span));
  edited = edited.then(insert(edited.function, at, in));
  Rewrite out{edited, {at, 1}, {at, in.size() + 2}, {}, {}, {}};
  for (size_t n = 1; n < in.size() + 2; ++n) out.results.push_back(at.at(at.position() + n));
  return out;
}

}  // namespace helve
