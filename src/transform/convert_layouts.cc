// Statements that need a fragment in another layout than the program gives it.
// Before:  F = T.alloc_fragment((64,), "float32", layout="S[64 : 1@tx]")
//          for i in T.Parallel(64): B[i] = F[63 - i]
// After:   F_copy = T.alloc_shared((64,), "float32")
//          for i in T.Parallel(64): F_copy[i] = F[i]
//          for i in T.Parallel(64): B[i] = F_copy[63 - i]
// Every conversion removes one conflicting use, so there are finitely many.
#include "helve/transform/convert_layouts.h"

#include <fmt/format.h>

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/notation.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

/// Is the buffer replaced in all of the statement? Else only in what the statement itself evaluates: its condition,
/// bounds or value.
bool is_whole(const Stmt& s) {
  const For* loop = as<For>(s);
  if (loop) return is_element_loop(*loop) && !is_divided_inside(*loop);
  return s->kind == StmtKind::Store || s->kind == StmtKind::TileOp;
}

struct FragmentUses {
  bool reads = false;
  bool writes = false;
  bool all = false;  ///< every element is written, by stores that no condition guards
};

FragmentUses uses_of(const Stmt& s, const Buffer* buffer) {
  FragmentUses uses;
  bool plain = true;
  walk(s, [&](const Stmt& inner) {
    const For* loop = as<For>(inner);
    plain &= inner->kind != StmtKind::If && inner->kind != StmtKind::While && (!loop || is_element_loop(*loop));
    const TileOp* op = as<TileOp>(inner);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      const Region* region = std::get_if<Region>(&op->operands[i]);
      if (region && region->buffer.get() == buffer) plain &= region->whole();
    }
  });
  for (const RegionAccess& access : accesses(s)) {
    if (access.region.buffer.get() == buffer) (access.write ? uses.writes : uses.reads) = true;
  }
  // A loop over fewer elements than the buffer has is no plain use; it keeps the other elements.
  const For* loop = as<For>(s);
  const auto covers = [&](const Store& n) {
    const ElementLoop flat = element_loop(*loop);
    for (size_t d = 0; d < n.indices.size(); ++d) {
      const auto var = std::find_if(flat.vars.begin(), flat.vars.end(),
                                    [&](const VarRef& v) { return v.get() == n.indices[d].get(); });
      const int64_t* extent = int_value(n.buffer->shape[d]);
      const int64_t* bound =
          var == flat.vars.end() ? nullptr : int_value(flat.extents[static_cast<size_t>(var - flat.vars.begin())]);
      const bool only = extent && *extent == 1;
      if (!only && (!extent || !bound || *extent != *bound)) return false;
    }
    return true;
  };
  if (loop) {
    walk(s, [&](const Stmt& inner) {
      const Store* n = as<Store>(inner);
      if (n && n->buffer.get() == buffer) plain &= covers(*n);
    });
  }
  uses.all = uses.writes && plain && (loop || s->kind == StmtKind::TileOp);
  return uses;
}

Stmt copy_all(const BufferRef& from, const BufferRef& to, const Span& span) {
  std::vector<VarRef> vars;
  for (size_t d = 0; d < from->rank(); ++d) vars.push_back(make_var(std::string(1, static_cast<char>('i' + d % 4))));
  const std::vector<Expr> at(vars.begin(), vars.end());
  return for_loop(LoopKind::Parallel, vars, std::vector<Expr>(vars.size(), int_imm(0)), from->shape,
                  store(to, at, load(from, at)), 1, span);
}

/// The statement with `copy` in place of `buffer`; the copy is filled before and read back after it.
Stmt on_copy(const Stmt& s, const BufferRef& buffer, const BufferRef& copy) {
  const FragmentUses uses = uses_of(s, buffer.get());
  std::vector<Stmt> out = {alloc(copy)};
  if (!is_whole(s)) {
    out.push_back(copy_all(buffer, copy, s->span));
    const auto placed = [&](const Expr& e) {
      return rewrite(e, [&](const Expr& node) -> Expr {
        const Load* l = as<Load>(node);
        return l && l->buffer.get() == buffer.get() ? load(copy, l->indices, l->span) : node;
      });
    };
    out.push_back(map_parts(s, placed, [](const Stmt& part) { return part; }));
    return seq(std::move(out), s->span);
  }
  if (uses.reads || !uses.all) out.push_back(copy_all(buffer, copy, s->span));
  out.push_back(replace_buffers(s, {{buffer.get(), copy}}));
  if (uses.writes) out.push_back(copy_all(copy, buffer, s->span));
  return seq(std::move(out), s->span);
}

Stmt replace_statement(const Stmt& s, const StmtNode* target, const std::function<Stmt(const Stmt&)>& by) {
  if (s.get() == target) return by(s);
  return map_parts(
      s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return replace_statement(part, target, by); });
}

[[noreturn]] void refuse(const LayoutConflict& conflict) {
  std::vector<Note> notes = {{conflict.buffer->span, fmt::format("'{}' has the layout {}", conflict.buffer->name,
                                                                 to_string(*conflict.buffer->layout))}};
  if (conflict.division) {
    notes.push_back(
        {{}, fmt::format("the statement divides its elements by {}", to_string(conflict.division->layout()))});
  }
  throw UserError(Code::LayoutConversion, conflict.stmt->span,
                  {{"buffer", conflict.buffer->name}, {"reason", conflict.reason}}, std::move(notes));
}

}  // namespace

BlockDivision convert_layouts(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                              const Machine& machine, bool strict) {
  Ref<const Kernel> converted(&kernel);
  MemoryBuffers memory;
  for (;;) {
    BlockLayouts layouts = infer_layouts(*converted, may_alias, facts, machine, memory);
    if (!layouts.conflict) return {converted->body, std::move(layouts)};
    const LayoutConflict& conflict = *layouts.conflict;
    if (strict) refuse(conflict);
    if (conflict.stmt->kind == StmtKind::While) {
      throw UserError(Code::LayoutOutOfReach, conflict.stmt->span,
                      {{"buffer", conflict.buffer->name}, {"reason", "the condition is evaluated before each turn"}},
                      {{conflict.buffer->span, fmt::format("'{}' has the layout {}", conflict.buffer->name,
                                                           to_string(*conflict.buffer->layout))}});
    }
    const BufferRef buffer(conflict.buffer);
    const BufferRef copy =
        make_buffer(buffer->name + "_copy", buffer->dtype, MemoryScope::Shared, buffer->shape, {}, {}, buffer->span);
    memory.emplace(copy.get(), fmt::format("it is a copy of '{}' where {}", buffer->name, conflict.reason));
    converted = copy_with(*converted, [&](Kernel& next) {
      next.body = replace_statement(next.body, conflict.stmt, [&](const Stmt& s) { return on_copy(s, buffer, copy); });
    });
  }
}

}  // namespace helve
