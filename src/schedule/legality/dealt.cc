// Does a statement run as often as it did, where work items are dealt to the blocks of a grid?
// An instance here is one of an iteration, and any block may be the one that runs it. So a statement that was in such a
// loop stays in one; and where a program tells its blocks apart, the loop deals the same items to the same block.
#include <fmt/format.h>

#include <algorithm>

#include "rewrite.h"

namespace helve::legality {

namespace {

/// The launch around a statement, and the loops of the region that deal their iterations to its blocks.
struct Dealt {
  const Kernel* grid = nullptr;
  std::vector<const Step*> steps;  ///< the launch first, where it is in the region
  size_t loops = 0;  ///< of the steps
};

bool is_one_block(const Kernel& grid) {
  return std::all_of(grid.extents.begin(), grid.extents.end(), [](const Expr& extent) {
    const int64_t* count = int_value(extent);
    return count && *count == 1;
  });
}

Dealt dealt_around(const AccessModel& model, const Path& path) {
  Dealt out;
  if (model.function->mesh) return out;  // each core runs all of its own
  for (size_t i = 0; i < path.size(); ++i) {
    const StmtNode* s = path[i]->stmt;
    if (!s || (s->kind != StmtKind::Kernel && s->kind != StmtKind::For)) continue;
    const bool inside = i >= model.around.size();
    if (s->kind == StmtKind::Kernel) {
      out.grid = static_cast<const Kernel*>(s);
      if (inside) out.steps = {path[i].get()};
    } else if (inside && static_cast<const For&>(*s).loop == LoopKind::Persistent && out.grid &&
               !is_one_block(*out.grid)) {
      out.steps.push_back(path[i].get());
      ++out.loops;
    }
  }
  return out;
}

/// Does it matter which block runs what? An item of one loop may need what the same block did for an item of another.
bool tells_blocks_apart(const Kernel& grid) {
  bool found = grid.cluster > 1;
  size_t dealt = 0;
  walk(grid.body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    dealt += loop && loop->loop == LoopKind::Persistent;
  });
  found |= dealt > 1;
  walk_exprs(grid.body, [&](const Expr& e) {
    const auto is_it = [&](const VarRef& var) { return e.get() == var.get(); };
    found |= std::any_of(grid.vars.begin(), grid.vars.end(), is_it);
  });
  return found;
}

class DealtCheck {
 public:
  explicit DealtCheck(const Rewrite& rewrite) : rewrite_(rewrite) {}

  Legality run() {
    for (const Copy& copy : rewrite_.copies) {
      const Dealt was = dealt_around(rewrite_.before.model, rewrite_.was(copy).path),
                  now = dealt_around(rewrite_.after, copy.now->path);
      if (was.loops == 0 && now.loops == 0) continue;
      if (was.loops > now.loops) return unknown("the items of '{}' are dealt to blocks, and all would run them", was);
      if (was.loops < now.loops) return unknown("all blocks run what the items of '{}' would be dealt of", now);
      if (!told_apart(*was.grid) && stay_in_one_block(copy, was, now)) continue;
      if (!are_same(copy, was, now)) return unknown("other blocks would run the items of '{}'", was);
    }
    Legality out;
    out.verdict = Verdict::Proved;
    return out;
  }

 private:
  bool told_apart(const Kernel& grid) {
    const auto [at, fresh] = told_apart_.try_emplace(&grid);
    if (fresh) at->second = tells_blocks_apart(grid);
    return at->second;
  }

  /// Is an item that loops around repeat always the same one of the new loop?
  static bool stay_in_one_block(const Copy& copy, const Dealt& was, const Dealt& now) {
    const Step* first = now.steps[now.steps.size() - now.loops];
    std::vector<VarRef> outer;
    for (const StepRef& loop : copy.now->loops) {
      if (loop.get() == first) break;
      outer.insert(outer.end(), loop->vars.begin(), loop->vars.end());
    }
    for (size_t i = was.steps.size() - was.loops; i < was.steps.size(); ++i) {
      for (const VarRef& var : was.steps[i]->vars) {
        const Expr& value = copy.values.at(var.get());
        if (std::any_of(outer.begin(), outer.end(), [&](const VarRef& v) { return mentions(value, v.get()); })) {
          return false;
        }
      }
    }
    return true;
  }

  /// Do the loops deal alike, in the old instance as in the new one?
  bool are_same(const Copy& copy, const Dealt& was, const Dealt& now) const {
    if (was.steps.size() != now.steps.size() || was.grid->cluster != now.grid->cluster) return false;
    for (size_t i = 0; i < was.steps.size(); ++i) {
      const Step &old = *was.steps[i], &made = *now.steps[i];
      if (old.vars.size() != made.vars.size()) return false;
      for (size_t d = 0; d < old.vars.size(); ++d) {
        const Expr turn = substitute(Expr(old.vars[d]) - old.begins[d], copy.values);
        const Expr extent = substitute(old.extents[d], copy.values);
        if (!holds(copy, turn, Expr(made.vars[d]) - made.begins[d]) || !holds(copy, extent, made.extents[d])) {
          return false;
        }
      }
    }
    return true;
  }

  bool holds(const Copy& copy, const Expr& a, const Expr& b) const {
    return always_equal(rewrite_, copy, a, b).verdict == Verdict::Proved;
  }

  static Legality unknown(const char* reason, const Dealt& dealt) {
    Legality out;
    out.remedy = "leave the loop as it is, or give the grid one block";
    out.reason = fmt::format(fmt::runtime(reason), dealt.steps.back()->vars[0]->name);
    return out;
  }

  const Rewrite& rewrite_;
  std::unordered_map<const Kernel*, bool> told_apart_;
};

}  // namespace

Legality check_dealt(const Rewrite& rewrite) { return DealtCheck(rewrite).run(); }

}  // namespace helve::legality
