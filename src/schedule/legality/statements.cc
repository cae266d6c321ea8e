// Is every statement of the new region one of the old region?
// Orders mean nothing if the statements differ; buffers that the rewrite declares anew stand for old ones.
#include <fmt/format.h>

#include <algorithm>

#include "helve/schedule/find.h"
#include "matcher.h"
#include "rewrite.h"

namespace helve::legality {

namespace {

/// A tile says only where elements lie, save for statements on tiles.
bool declared_alike(const Buffer& a, const Buffer& b, bool by_tiles) {
  if (a.dtype != b.dtype || a.scope != b.scope || a.rank() != b.rank() || (by_tiles && a.tile != b.tile)) return false;
  for (size_t d = 0; d < a.rank(); ++d) {
    if (!same_expr(a.shape[d], b.shape[d])) return false;
  }
  return true;
}

/// Buffers that only the new region allocates stand for those that the old statement uses in the same places. Where one
/// could stand for two, it does so for the first, and is another buffer than the second, which is the same memory only
/// if both are judged by values.
void align_buffers(Rewrite& rewrite, const Copy& copy, bool by_tiles) {
  const RegionStatement &was = rewrite.was(copy), &now = *copy.now;
  if (was.last - was.first != now.last - now.first) return;  // the comparison will tell
  for (size_t i = 0; i < was.last - was.first; ++i) {
    const BufferRef &old = rewrite.before.model.accesses[was.first + i].buffer,
                    &made = rewrite.after.accesses[now.first + i].buffer;
    if (old == made || rewrite.before.model.home.contains(made.get()) || !rewrite.after.home.contains(made.get()) ||
        !rewrite.before.model.home.contains(old.get()) || rewrite.partial(made.get()) ||
        !declared_alike(*old, *made, by_tiles)) {
      continue;
    }
    rewrite.buffers.emplace(made.get(), old);
  }
}

}  // namespace

Legality check_statements(Rewrite& rewrite) {
  Legality out;
  out.verdict = Verdict::Proved;
  const auto tiles = [](const AccessModel& model) {
    return std::any_of(model.accesses.begin(), model.accesses.end(), [](const Access& each) { return each.tiles; });
  };
  const bool by_tiles = tiles(rewrite.before.model) || tiles(rewrite.after);
  for (const Copy& copy : rewrite.copies) {
    align_buffers(rewrite, copy, by_tiles);
    Matcher matcher(rewrite, copy);
    if (matcher.same_statement()) continue;
    Legality found;
    const Answer& where = matcher.difference();
    found.verdict = where.verdict;
    found.reason = fmt::format("'{}' is not the statement '{}' that it comes from", head_text(Stmt(copy.now->stmt)),
                               head_text(Stmt(rewrite.was(copy).stmt)));
    if (where.verdict == Verdict::Refuted) {
      found.fault = RewriteFault::Changed;
      found.first = instance_at(rewrite, copy, where.witness);
      found.given.assign(where.witness.begin(), where.witness.end() - static_cast<int64_t>(copy.now->vars.size()));
    }
    if (worsen(out, std::move(found))) break;
  }
  return out;
}

}  // namespace helve::legality
