// The five edits of a function, and what each does to cursors.
// An edit is known by one row of data; a cursor is carried along by the row alone, never by a look at the program.
#include "helve/schedule/edit.h"

#include <algorithm>

#include "helve/support/diagnostic.h"

namespace helve {

namespace {

/// The number of the step of `at` into the block of `first`; nothing if it leads elsewhere.
std::optional<size_t> step_into(const Cursor& at, const Cursor& first) {
  const size_t last = first.steps.size() - 1;
  const bool leads_there = at.steps.size() > last && at.steps[last].field == first.steps[last].field &&
                           std::equal(first.steps.begin(), first.steps.end() - 1, at.steps.begin());
  return leads_there ? std::optional(last) : std::nullopt;
}

}  // namespace

bool Block::holds(const Cursor& at) const {
  const std::optional<size_t> step = step_into(at, first);
  return step && at.steps[*step].position >= first.position() && at.steps[*step].position < first.position() + size;
}

namespace {

/// The step of `at` into the block that the edit is in; null if it leads elsewhere.
CursorStep* step_of(Cursor& at, const Block& block) {
  const std::optional<size_t> step = step_into(at, block.first);
  return step ? &at.steps[*step] : nullptr;
}

/// A place behind `block` after `size` statements took its place.
void shift(Cursor& at, const Block& block, size_t size) {
  CursorStep* step = step_of(at, block);
  const size_t end = block.first.position() + block.size;
  if (step && step->position >= end) step->position = step->position - block.size + size;
}

/// Where what stands at the place of a deleted statement is: the block's first position after it.
Cursor after_deletion(Cursor at, const Block& block) {
  CursorStep* step = step_of(at, block);
  const size_t first = block.first.position();
  if (step && step->position >= first && step->position < first + block.size) {
    at.steps.resize(block.first.steps.size());
    at.steps.back().position = first;
    return at;
  }
  shift(at, block, 0);
  return at;
}

Cursor moved(const Forwarding::Row& row, const Cursor& at) {
  const Cursor target = after_deletion(row.target, row.block);
  if (row.block.holds(at)) {
    const size_t depth = row.block.first.steps.size();
    Cursor top{{at.steps.begin(), at.steps.begin() + static_cast<ptrdiff_t>(depth)}};
    return at.rebased(top, target.at(target.position() + top.position() - row.block.first.position()));
  }
  Cursor out = after_deletion(at, row.block);
  shift(out, {target, 0}, row.block.size);
  return out;
}

std::optional<Cursor> carried(const Forwarding::Row& row, Cursor&& at, bool as_gap) {
  const Block& block = row.block;
  switch (row.kind) {
    case Forwarding::Kind::Revise: return std::move(at);
    case Forwarding::Kind::Insert: shift(at, block, row.size); return std::move(at);
    case Forwarding::Kind::Delete:
    case Forwarding::Kind::Replace:
      if (block.holds(at)) {
        if (!as_gap || at.steps.size() > block.first.steps.size()) return std::nullopt;
        return block.first;
      }
      shift(at, block, row.size);
      return std::move(at);
    case Forwarding::Kind::Wrap:
      if (block.holds(at)) {
        const size_t depth = block.first.steps.size();
        const Cursor top{{at.steps.begin(), at.steps.begin() + static_cast<ptrdiff_t>(depth)}};
        return at.rebased(top, block.first.child(row.field, top.position() - block.first.position()));
      }
      shift(at, block, 1);
      return std::move(at);
    case Forwarding::Kind::Move: return moved(row, at);
  }
  __builtin_unreachable();
}

using Difference = std::vector<Stmt>::difference_type;

void require(const FunctionRef& f, const Block& block) {
  const size_t size = block_of(body_around(*f, block.first)).size();
  HELVE_CHECK(block.first.position() + block.size <= size, "an edit of statements that are not there");
}

FunctionRef spliced(const FunctionRef& f, const Block& block, const std::vector<Stmt>& stmts) {
  require(f, block);
  return with_block(f, block.first, [&](std::vector<Stmt>& list) {
    const auto first = list.begin() + static_cast<Difference>(block.first.position());
    const auto next = list.erase(first, first + static_cast<Difference>(block.size));
    list.insert(next, stmts.begin(), stmts.end());
  });
}

Edited spliced_in(const FunctionRef& f, Forwarding::Kind kind, const Block& block, const std::vector<Stmt>& stmts) {
  // Sequences dissolve where they are put, so what is put there is counted without them.
  std::vector<Stmt> flat;
  for (const Stmt& s : stmts) {
    for (const Stmt& each : block_of(s)) flat.push_back(each);
  }
  return {spliced(f, block, flat), Forwarding({Forwarding::Row{kind, block, flat.size(), {}}})};
}

}  // namespace

std::vector<Stmt> statements_of(const FunctionRef& f, const Block& block) {
  require(f, block);
  const std::vector<Stmt> list = block_of(body_around(*f, block.first));
  const auto first = list.begin() + static_cast<Difference>(block.first.position());
  return {first, first + static_cast<Difference>(block.size)};
}

std::optional<Cursor> Forwarding::operator()(const Cursor& at) const {
  std::optional<Cursor> out = at;
  for (const Row& row : rows_) {
    if (out) out = carried(row, *std::move(out), false);
  }
  return out;
}

std::optional<Cursor> Forwarding::gap(const Cursor& at) const {
  std::optional<Cursor> out = at;
  for (const Row& row : rows_) {
    if (out) out = carried(row, *std::move(out), true);
  }
  return out;
}

Forwarding Forwarding::then(const Forwarding& later) const {
  std::vector<Row> rows = rows_;
  rows.insert(rows.end(), later.rows_.begin(), later.rows_.end());
  return Forwarding(std::move(rows));
}

Edited insert(const FunctionRef& f, const Cursor& before, std::vector<Stmt> stmts) {
  return spliced_in(f, Forwarding::Kind::Insert, {before, 0}, stmts);
}

Edited erase(const FunctionRef& f, const Block& block) { return spliced_in(f, Forwarding::Kind::Delete, block, {}); }

Edited replace(const FunctionRef& f, const Block& block, std::vector<Stmt> stmts) {
  return spliced_in(f, Forwarding::Kind::Replace, block, stmts);
}

Edited revise(const FunctionRef& f, const Cursor& at, Stmt stmt) {
  HELVE_CHECK(same_form(statement_at(*f, at), stmt), "a revised statement of another form");
  return {spliced(f, {at, 1}, {std::move(stmt)}),
          Forwarding({Forwarding::Row{Forwarding::Kind::Revise, {at, 1}, 1, {}}})};
}

Edited wrap(const FunctionRef& f, const Block& block, const std::string& field,
            const std::function<Stmt(Stmt)>& around) {
  const std::vector<Stmt> inside = statements_of(f, block);
  const Stmt outer = around(seq(inside));
  return {spliced(f, block, {outer}), Forwarding({Forwarding::Row{Forwarding::Kind::Wrap, block, 1, field}})};
}

Edited move(const FunctionRef& f, const Block& block, const Cursor& target) {
  const bool inside = block.holds(target) && (target.steps.size() > block.first.steps.size());
  HELVE_CHECK(!inside, "statements moved into themselves");
  const std::vector<Stmt> stmts = statements_of(f, block);
  const Cursor place = after_deletion(target, block);
  return {spliced(spliced(f, block, {}), {place, 0}, stmts),
          Forwarding({Forwarding::Row{Forwarding::Kind::Move, block, stmts.size(), {}, target}})};
}

bool same_form(const Stmt& a, const Stmt& b) {
  const std::vector<Stmt> left = block_of(a), right = block_of(b);
  if (left.size() != right.size()) return false;
  for (size_t i = 0; i < left.size(); ++i) {
    if (left[i]->kind != right[i]->kind) return false;
    std::vector<Stmt> below_left, below_right;
    for_each_block(left[i], [&](const std::string&, const Stmt& body) { below_left.push_back(body); });
    for_each_block(right[i], [&](const std::string&, const Stmt& body) { below_right.push_back(body); });
    for (size_t k = 0; k < below_left.size(); ++k) {
      if (!same_form(below_left[k], below_right[k])) return false;
    }
  }
  return true;
}

}  // namespace helve
