// Reads and writes of statements.
// Loads are found in every expression of a statement by its fields; tile operations follow the kinds of their
// parameters.
#include "helve/analysis/effects.h"

#include <algorithm>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

Region element(const BufferRef& buffer, const std::vector<Expr>& indices) {
  Region region{buffer, {}};
  for (const Expr& index : indices) region.ranges.push_back({index, int_imm(1), true});
  return region;
}

/// The elements of tile `indices`; a buffer without a tile has tiles of one element.
Region tile(const BufferRef& buffer, const std::vector<Expr>& indices) {
  if (!is_tiled(*buffer)) return element(buffer, indices);
  Region region{buffer, {}};
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr extent = int_imm(buffer->tile[d]);
    const int64_t* number = int_value(indices[d]);
    region.ranges.push_back({number ? int_imm(*number * buffer->tile[d]) : indices[d] * extent, extent, false});
  }
  return region;
}

void add_loads(const Expr& e, std::vector<RegionAccess>& out) {
  walk(e, [&](const Expr& node) {
    if (const Load* load = as<Load>(node)) {
      out.push_back({element(buffer_ref(load->buffer), load->indices), false, node->span});
    } else if (const TileLoad* load = as<TileLoad>(node)) {
      out.push_back({tile(buffer_ref(load->buffer), load->indices), false, node->span});
    }
  });
}

void add_operands(const TileOp& op, const Span& span, std::vector<RegionAccess>& out) {
  std::vector<RegionAccess> writes;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (!op.is_region(i)) continue;
    const OperandEffect effect = operand_effect(op, i);
    if (effect.reads) out.push_back({op.region(i), false, span});
    if (effect.writes) writes.push_back({op.region(i), true, span});
  }
  out.insert(out.end(), writes.begin(), writes.end());
}

void add_element_uses(const Stmt& s, std::vector<ElementUse>& out) {
  if (!s) return;
  const auto loads = [&](const Expr& e) {
    walk(e, [&](const Expr& node) {
      if (const Load* load = as<Load>(node)) out.push_back({&buffer_of(load->buffer), &load->indices, false});
    });
  };
  for_each_part(s, loads, [&](const Stmt& part) { add_element_uses(part, out); });
  const Store* n = as<Store>(s);
  if (n && n->is_update()) out.push_back({n->buffer.get(), &n->indices, false});
  if (n) out.push_back({n->buffer.get(), &n->indices, true});
}

void add(std::vector<BufferEffect>& effects, const RegionAccess& access) {
  auto it = std::find_if(effects.begin(), effects.end(),
                         [&](const BufferEffect& e) { return e.buffer == access.region.buffer; });
  if (it == effects.end()) it = effects.insert(it, {access.region.buffer, false, false});
  (access.write ? it->written : it->read) = true;
}

}  // namespace

OperandEffect operand_effect(const TileOp& op, size_t i) {
  const TileParam& param = op.row().params[i];
  HELVE_CHECK(op.is_region(i), "an effect of an operand that is no region");
  if (param.kind == ParamKind::Barriers) return {false, true, StoreMode::AtomicAdd};
  if (!param.writes()) return {true, false};
  if (op.row().rule == TileRule::Atomic) return {true, true, atomic_mode(op.op)};
  const std::optional<bool> clears = op.clears();
  return {clears ? !*clears : param.reads(), true};
}

std::vector<RegionAccess> direct_accesses(const Stmt& s) {
  std::vector<RegionAccess> out;
  for_each_part(s, [&](const Expr& e) { add_loads(e, out); }, [](const Stmt&) {});
  if (const Store* store = as<Store>(s)) {
    if (store->mode != StoreMode::Write) out.push_back({element(store->buffer, store->indices), false, s->span});
    out.push_back({element(store->buffer, store->indices), true, s->span});
  } else if (const TileStore* store = as<TileStore>(s)) {
    out.push_back({tile(store->buffer, store->indices), true, s->span});
  } else if (const TileOp* op = as<TileOp>(s)) {
    add_operands(*op, s->span, out);
  }
  return out;
}

std::vector<RegionAccess> accesses(const Stmt& s) {
  std::vector<RegionAccess> out;
  walk(s, [&](const Stmt& node) {
    std::vector<RegionAccess> own = direct_accesses(node);
    out.insert(out.end(), own.begin(), own.end());
  });
  return out;
}

std::vector<ElementUse> element_uses(const Stmt& s) {
  std::vector<ElementUse> out;
  add_element_uses(s, out);
  return out;
}

bool uses_elements(const Stmt& s, const Buffer& buffer) {
  const std::vector<ElementUse> uses = element_uses(s);
  return std::any_of(uses.begin(), uses.end(), [&](const ElementUse& use) { return use.buffer == &buffer; });
}

std::vector<BufferEffect> buffer_effects(const Stmt& s) {
  std::vector<BufferEffect> effects;
  for (const RegionAccess& access : accesses(s)) add(effects, access);
  return effects;
}

std::unordered_set<const Buffer*> written_memory(const Stmt& s, const std::vector<MayAlias>& may_alias) {
  std::unordered_set<const Buffer*> written;
  walk(s, [&](const Stmt& each) {
    if (const Store* n = as<Store>(each)) written.insert(n->buffer.get());
    if (const TileStore* n = as<TileStore>(each)) written.insert(n->buffer.get());
    const TileOp* op = as<TileOp>(each);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      if (op->is_region(i) && operand_effect(*op, i).writes) written.insert(op->region(i).buffer.get());
    }
  });
  std::unordered_set<const Buffer*> out = written;
  for (const MayAlias& each : may_alias) {
    const bool any = std::any_of(each.buffers.begin(), each.buffers.end(),
                                 [&](const BufferRef& b) { return written.contains(b.get()); });
    for (const BufferRef& b : each.buffers) {
      if (any) out.insert(b.get());
    }
  }
  return out;
}

std::unordered_set<const Buffer*> written_memory(const Function& f) { return written_memory(f.body, f.may_alias); }

std::unordered_set<const Buffer*> constant_memory(const Stmt& s, const std::vector<MayAlias>& may_alias) {
  const std::unordered_set<const Buffer*> written = written_memory(s, may_alias);
  std::unordered_set<const Buffer*> out;
  for (const ElementUse& use : element_uses(s)) {
    if (!use.write && !written.contains(use.buffer)) out.insert(use.buffer);
  }
  return out;
}

std::vector<BufferEffect> param_effects(const Function& f) {
  std::vector<BufferEffect> effects;
  for (const Param& param : f.params) {
    if (const BufferRef* buffer = std::get_if<BufferRef>(&param)) effects.push_back({*buffer, false, false});
  }
  for (const RegionAccess& access : accesses(f.body)) {
    for (BufferEffect& effect : effects) {
      if (effect.buffer == access.region.buffer) (access.write ? effect.written : effect.read) = true;
    }
  }
  return effects;
}

}  // namespace helve
