// Numbering of accesses.
// Expressions are numbered by structure, each node once, so a chain of named values costs its length.
#include "access_table.h"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "helve/analysis/access.h"
#include "helve/arith/facts.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve::barriers {

bool is_never_empty(const VarRange& range) {
  const int64_t* extent = int_value(range.extent);
  return !range.begin || (extent && *extent > 0);
}

bool runs(const BlockLoop& loop) {
  const auto is_known = [](const VarRange& range) { return range.begin && is_never_empty(range); };
  return !loop.ranges.empty() && std::all_of(loop.ranges.begin(), loop.ranges.end(), is_known);
}

/// Numbers of expressions: equal structures are one number.
struct AccessTable::Expressions {
  uint64_t number(const Expr& e) {
    if (!e) return 0;
    if (auto it = by_node.find(e.get()); it != by_node.end()) return it->second;
    std::vector<uint64_t> key = {static_cast<uint64_t>(e->kind), type(e->dtype)};
    if (e->kind == ExprKind::Var) key.push_back(reinterpret_cast<uintptr_t>(e.get()));
    if (const IntImm* n = as<IntImm>(e)) key.push_back(static_cast<uint64_t>(n->value));
    if (const FloatImm* n = as<FloatImm>(e)) key.push_back(std::bit_cast<uint64_t>(n->value));
    if (const Apply* n = as<Apply>(e)) key.push_back(static_cast<uint64_t>(n->op));
    if (const Load* n = as<Load>(e)) key.push_back(reinterpret_cast<uintptr_t>(n->buffer.get()));
    for_each_child(e, [&](const Expr& part) { key.push_back(number(part)); });
    const uint64_t out = by_structure.emplace(std::move(key), by_structure.size() + 1).first->second;
    by_node.emplace(e.get(), out);
    keep.push_back(e);
    return out;
  }
  static uint64_t type(DType t) { return static_cast<uint64_t>(t.code) << 8 | t.bits; }

  std::unordered_map<const ExprNode*, uint64_t> by_node;
  std::map<std::vector<uint64_t>, uint64_t> by_structure;
  std::vector<Expr> keep;  ///< keeps the keys alive
};

AccessTable::AccessTable(const Function& f) : expressions_(std::make_unique<Expressions>()) {
  loops_.push_back(std::make_unique<BlockLoop>());
  for (const MayAlias& each : f.may_alias) join_memories(each.buffers);
  std::vector<BufferRef> placed;
  walk(f.body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || !place_of(*n->buffer)) return;
    for (const BufferRef& other : placed) {
      if (share_memory(*other, *n->buffer)) join_memories({other, n->buffer});
    }
    placed.push_back(n->buffer);
  });
}

void AccessTable::join_memories(const std::vector<BufferRef>& buffers) {
  const uint32_t shared = memory_count_++;
  for (const BufferRef& buffer : buffers) {
    const uint32_t before = memories_.emplace(buffer.get(), shared).first->second;
    for (auto& [other, memory] : memories_) {
      if (memory == before) memory = shared;
    }
  }
}

AccessTable::~AccessTable() = default;

QueueId AccessTable::queue(const CopyQueue& queue) {
  const auto at = std::find(queues_.begin(), queues_.end(), queue);
  if (at != queues_.end()) return static_cast<QueueId>(at - queues_.begin());
  queues_.push_back(queue);
  return static_cast<QueueId>(queues_.size() - 1);
}

const BlockLoop* AccessTable::kernel_loop() { return loops_.front().get(); }

const BlockLoop* AccessTable::loop(const BlockLoop* parent, const Object* identity, std::vector<VarRange> ranges) {
  std::vector<uint64_t> key = {reinterpret_cast<uintptr_t>(parent), reinterpret_cast<uintptr_t>(identity)};
  for (const VarRange& range : ranges) {
    for (const Expr& e : {Expr(range.var), range.begin, range.extent}) key.push_back(expressions_->number(e));
  }
  const auto [it, fresh] = known_loops_.emplace(std::move(key), nullptr);
  if (!fresh) return it->second;
  keep_.push_back(Ref<const Object>(identity));
  for (const VarRange& range : ranges) depths_[range.var.get()] = parent->depth + 1;
  loops_.push_back(std::make_unique<BlockLoop>(BlockLoop{parent, parent->depth + 1, std::move(ranges)}));
  return it->second = loops_.back().get();
}

void AccessTable::define_unknown(const VarRef& name, const BlockLoop* loop) {
  depths_[name.get()] = loop->depth;
  keep_.push_back(name);
}

std::optional<size_t> AccessTable::depth_of(const Var* var) const {
  auto it = depths_.find(var);
  return it == depths_.end() ? std::nullopt : std::optional(it->second);
}

AccessId AccessTable::intern(BlockAccess access) {
  const auto forget = [&](Expr& e) {
    if (!e || !changes(e, constant_)) return;
    e = {};
    access.exact = false;
  };
  for (VarRange& range : access.inner) {
    forget(range.begin);
    forget(range.extent);
  }
  for (Expr& index : access.indices) forget(index);
  for (Expr& condition : access.conditions) forget(condition);
  std::erase(access.conditions, Expr());
  keep_mentioned(access);
  for (const VarRange& range : access.inner) access.exact &= static_cast<bool>(range.begin);
  rename(access);
  const auto [it, fresh] = known_.emplace(key_of(access), static_cast<AccessId>(entries_.size()));
  if (fresh) {
    const auto [memory, is_new] = memories_.emplace(access.buffer.get(), memory_count_);
    memory_count_ += is_new;
    std::vector<Place> places = places_of(access);
    entries_.push_back({std::move(access), memory->second, std::move(places)});
  }
  return it->second;
}

/// An access keeps those of its own variables that its indices and conditions depend on, in the order in which they
/// occur there, the thread, and those whose range may be empty.
void AccessTable::keep_mentioned(BlockAccess& access) {
  std::unordered_map<const Var*, size_t> position;
  for (size_t i = 0; i < access.inner.size(); ++i) position[access.inner[i].var.get()] = i;
  std::vector<VarRange> kept;
  std::vector<bool> seen(access.inner.size());
  const auto keep = [&](size_t i) {
    if (seen[i]) return;
    seen[i] = true;
    kept.push_back(access.inner[i]);
  };
  const auto mention = [&](const Expr& e) {
    if (!e) return;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (auto it = var ? position.find(var) : position.end(); it != position.end()) keep(it->second);
    });
  };
  for (const Expr& index : access.indices) mention(index);
  for (const Expr& condition : access.conditions) mention(condition);
  if (access.thread) keep(position.at(access.thread.get()));
  for (size_t i = 0; i < access.inner.size(); ++i) {
    if (!is_never_empty(access.inner[i])) keep(i);
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    const VarRange range = kept[i];
    mention(range.begin);
    mention(range.extent);
  }
  access.inner = std::move(kept);
}

/// Renames its own variables to the table's, by position, so that equal accesses are equal expressions.
void AccessTable::rename(BlockAccess& access) {
  Substitution names;
  const VarRef thread = access.thread;
  for (size_t i = 0; i < access.inner.size(); ++i) {
    const VarRef var = access.inner[i].var;
    VarRef& name = names_[{Expressions::type(var->dtype), i}];
    if (!name) name = make_var("own", var->dtype);
    if (name != var) names.emplace(var.get(), Expr(name));
    access.inner[i].var = name;
    if (thread == var) access.thread = name;
  }
  if (names.empty()) return;
  const auto now = [&](Expr& e) {
    if (e) e = substitute(e, names);
  };
  for (VarRange& range : access.inner) {
    now(range.begin);
    now(range.extent);
  }
  for (Expr& index : access.indices) now(index);
  for (Expr& condition : access.conditions) now(condition);
}

std::vector<uint64_t> AccessTable::key_of(const BlockAccess& access) {
  std::vector<uint64_t> key = {reinterpret_cast<uintptr_t>(access.buffer.get()),
                               reinterpret_cast<uintptr_t>(access.loop),
                               static_cast<uint64_t>(access.write) | static_cast<uint64_t>(access.exact) << 1 |
                                   static_cast<uint64_t>(access.in_async_proxy) << 2 |
                                   static_cast<uint64_t>(access.mode) << 3,
                               reinterpret_cast<uintptr_t>(access.thread.get()),
                               access.inner.size(),
                               static_cast<uint64_t>(access.first_thread),
                               static_cast<uint64_t>(access.warpgroup.value_or(-1))};
  for (const VarRange& range : access.inner) {
    for (const Expr& e : {Expr(range.var), range.begin, range.extent}) key.push_back(expressions_->number(e));
  }
  for (const Expr& index : access.indices) key.push_back(expressions_->number(index));
  std::vector<uint64_t> conditions;
  for (const Expr& condition : access.conditions) conditions.push_back(expressions_->number(condition));
  std::sort(conditions.begin(), conditions.end());
  conditions.erase(std::unique(conditions.begin(), conditions.end()), conditions.end());
  key.insert(key.end(), conditions.begin(), conditions.end());
  return key;
}

std::vector<Place> AccessTable::places_of(const BlockAccess& access) {
  Facts facts;
  std::unordered_set<const Var*> own;
  for (const VarRange& range : access.inner) {
    own.insert(range.var.get());
    if (range.begin && range.extent) facts.bind_loop(range.var, range.begin, range.extent);
  }
  std::vector<Place> out;
  for (const Expr& index : access.indices) {
    Place& place = out.emplace_back();
    if (!index) continue;
    Sum base, offset;
    const Sum whole = ordered(sum_of(index));
    offset.constant = whole.constant;
    for (const Term& term : whole.terms) {
      bool inner = false;
      size_t depth = 0;
      for (const Expr& factor : term.factors) {
        walk(factor, [&](const Expr& node) {
          const Var* var = as<Var>(node);
          if (!var) return;
          inner |= own.contains(var);
          depth = std::max(depth, depth_of(var).value_or(0));
        });
      }
      (inner ? offset : base).terms.push_back(term);
      if (!inner) place.depth = std::max(place.depth, depth);
    }
    place.base_value = expr_of(base);
    place.offset_value = expr_of(offset);
    place.base = static_cast<uint32_t>(expressions_->number(place.base_value));
    place.offset = interval_of(offset, facts);
    place.step = residue_of(offset, facts);
  }
  return out;
}

AccessId AccessTable::seen_from(AccessId id, size_t depth) {
  while (this->depth(id) > depth) id = outside(id);
  return id;
}

bool AccessTable::have_same_bases(AccessId a, AccessId b) const {
  const BlockAccess &one = access(a), &other = access(b);
  if (one.buffer != other.buffer || one.loop != other.loop || one.in_async_proxy != other.in_async_proxy) return false;
  return std::equal(places(a).begin(), places(a).end(), places(b).begin(), places(b).end(),
                    [](const Place& x, const Place& y) { return x.base == y.base; });
}

std::optional<AccessId> AccessTable::box_around(AccessId id) {
  if (entries_[id].box) return *entries_[id].box;
  std::vector<AccessId> members;
  for (AccessId each = 0; each < entries_.size(); ++each) {
    if (have_same_bases(each, id)) members.push_back(each);
  }
  const std::optional<AccessId> box = members.size() > 1 ? std::optional(intern_box(members)) : std::nullopt;
  if (box) entries_[*box].box = std::optional<AccessId>();  // which is no member of a larger one
  for (const AccessId each : members) {
    if (!entries_[each].box) entries_[each].box = box;
  }
  return box;
}

AccessId AccessTable::intern_box(const std::vector<AccessId>& members) {
  BlockAccess box = access(members[0]);
  box.write = true;
  box.mode = StoreMode::Write;
  box.inner.clear();
  box.thread = {};
  box.warpgroup = {};
  box.conditions.clear();
  box.exact = false;
  for (size_t d = 0; d < box.indices.size(); ++d) {
    Interval offset = places(members[0])[d].offset;
    for (const AccessId each : members) offset = unite(offset, places(each)[d].offset);
    const Expr base = places(members[0])[d].base_value;
    box.indices[d] = {};
    int64_t last = 0;
    if (!base || !offset.low || !offset.high || __builtin_sub_overflow(*offset.high, *offset.low, &last)) continue;
    if (last == INT64_MAX) continue;
    const VarRef place = make_var("place");
    box.inner.push_back({place, int_imm(*offset.low), int_imm(last + 1)});
    box.indices[d] = base + Expr(place);
  }
  return intern(std::move(box));
}

AccessId AccessTable::outside(AccessId id) {
  if (entries_[id].outside) return *entries_[id].outside;
  BlockAccess access = entries_[id].access;
  const BlockLoop& left = *access.loop;
  std::unordered_set<const Var*> taken;
  access.inner.insert(access.inner.end(), left.ranges.begin(), left.ranges.end());
  for (const VarRange& range : access.inner) taken.insert(range.var.get());
  const auto name_values = [&](const Expr& e) {
    if (!e) return;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (!var || depth_of(var) != left.depth || !taken.insert(var).second) return;
      access.inner.push_back({VarRef(var), {}, {}});
    });
  };
  for (const Expr& index : access.indices) name_values(index);
  for (const Expr& condition : access.conditions) name_values(condition);
  for (size_t i = 0; i < access.inner.size(); ++i) {
    const VarRange range = access.inner[i];
    name_values(range.begin);
    name_values(range.extent);
  }
  access.loop = left.parent;
  const AccessId out = intern(std::move(access));
  entries_[id].outside = out;
  return out;
}

}  // namespace helve::barriers
