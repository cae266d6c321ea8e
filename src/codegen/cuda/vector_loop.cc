// Loops whose lanes access memory as vectors.
// An access with contiguous lanes, at an address proved to be aligned, becomes one of up to 16 bytes: loads before the
// lanes are computed, stores after them. Other accesses are made lane by lane.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "helve/analysis/memory_traffic.h"
#include "helve/arith/simplify.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr int64_t kMaxLanes = 64;

/// One access of a lane to memory, with names of the body replaced by their values.
struct LaneAccess {
  const Object* node;
  const Buffer* buffer;
  std::vector<Expr> indices;
  bool write;
  bool always;  ///< every lane makes the access
};

/// The accesses to memory in the order of a lane's execution.
class LaneWalk {
 public:
  bool collect(const Stmt& s) { return visit(s, true); }
  const std::vector<LaneAccess>& accesses() const { return accesses_; }

 private:
  bool visit(const Stmt& s, bool always) {
    if (!s) return true;
    if (const Seq* n = as<Seq>(s)) {
      return std::all_of(n->stmts.begin(), n->stmts.end(), [&](const Stmt& each) { return visit(each, always); });
    }
    if (const Bind* n = as<Bind>(s)) {
      read(n->value, always);
      return add_value(names_, n->var, n->value);
    }
    if (const Store* n = as<Store>(s)) {
      if (n->is_atomic()) return false;
      for (const Expr& index : n->indices) read(index, always);
      read(n->value, always);
      add(n, *n->buffer, n->indices, true, always);
      return true;
    }
    if (const If* n = as<If>(s)) {
      read(n->condition, always);
      return visit(n->then_body, false) && visit(n->else_body, false);
    }
    return s->kind == StmtKind::Alloc;
  }

  void read(const Expr& e, bool always) {
    const Apply* apply = as<Apply>(e);
    const bool lazy = apply && (apply->op == Op::Select || apply->op == Op::And || apply->op == Op::Or);
    bool first = true;
    for_each_child(e, [&](const Expr& child) {
      read(child, always && (first || !lazy));
      first = false;
    });
    if (const Load* load = as<Load>(e)) add(load, buffer_of(load->buffer), load->indices, false, always);
  }

  void add(const Object* node, const Buffer& buffer, const std::vector<Expr>& indices, bool write, bool always) {
    if (buffer.scope == MemoryScope::Fragment || buffer.scope == MemoryScope::Local) return;
    std::vector<Expr> plain;
    for (const Expr& index : indices) plain.push_back(substitute(index, names_));
    accesses_.push_back({node, &buffer, std::move(plain), write, always});
  }

  Substitution names_;
  std::vector<LaneAccess> accesses_;
};

bool same_element(const LaneAccess& a, const LaneAccess& b) {
  return std::equal(a.indices.begin(), a.indices.end(), b.indices.begin(), b.indices.end(), same_expr);
}

/// Does another buffer that may share memory with `buffer` conflict with it in these accesses?
bool clashes(const std::vector<LaneAccess>& accesses, const Buffer* buffer, const std::vector<MayAlias>& may_alias) {
  const bool written = std::any_of(accesses.begin(), accesses.end(),
                                   [&](const LaneAccess& each) { return each.write && each.buffer == buffer; });
  return std::any_of(accesses.begin(), accesses.end(), [&](const LaneAccess& each) {
    return each.buffer != buffer && (written || each.write) && may_overlap(may_alias, each.buffer, buffer);
  });
}

/// May all reads of the buffer come before the lanes and its write after them? Yes if it is written at most once, by
/// every lane, and its other accesses read the lane's own element before that.
bool moves(const std::vector<LaneAccess>& accesses, const Buffer* buffer, const std::vector<MayAlias>& may_alias) {
  if (clashes(accesses, buffer, may_alias)) return false;
  const LaneAccess* written = nullptr;
  for (const LaneAccess& each : accesses) {
    if (each.buffer != buffer) continue;
    if (written) return false;
    if (each.write) written = &each;
  }
  return !written || std::all_of(accesses.begin(), accesses.end(), [&](const LaneAccess& each) {
    return each.buffer != buffer || same_element(each, *written);
  });
}

/// Does the subscript read memory that the lanes write, or registers? Then it cannot be computed before the lanes.
bool reads_written(const Expr& index, const std::vector<LaneAccess>& accesses, const std::vector<MayAlias>& may_alias) {
  bool found = false;
  walk(index, [&](const Expr& e) {
    const Load* load = as<Load>(e);
    if (!load) return;
    const Buffer* buffer = &buffer_of(load->buffer);
    found |= buffer->scope == MemoryScope::Fragment || buffer->scope == MemoryScope::Local ||
             std::any_of(accesses.begin(), accesses.end(), [&](const LaneAccess& each) {
               return each.write && may_overlap(may_alias, each.buffer, buffer);
             });
  });
  return found;
}

bool mentions_any(const Expr& e, const std::vector<VarRef>& vars) {
  return std::any_of(vars.begin(), vars.end(), [&](const VarRef& v) { return mentions(e, v.get()); });
}

}  // namespace

/// Bytes of one access if the lanes of `address` are contiguous and `start`, the first one's address before a swizzle,
/// is aligned; else 0.
int64_t KernelEmitter::vector_bytes(const Buffer& buffer, const Address& address, const Expr& start,
                                    const For& s) const {
  const Var* lane = s.vars[0].get();
  const int64_t lanes = *int_value(s.extents[0]);
  if (coefficient_of(sum_of(address.sum), lane) != 1) return 0;
  const int64_t element = buffer.dtype.bytes();
  const Residue residue = residue_of(sum_of(start), facts_);
  const auto multiple_of = [&](int64_t unit) {
    return starts_aligned(start, lane, unit) || residue.remainder_by(unit) == 0;
  };
  // A swizzle keeps the run contiguous if it moves it as a whole.
  if (!address.swizzle.identity() && !(address.keeps(lanes) && multiple_of(lanes))) return 0;
  for (int64_t width = machine_.vector_bytes; width > element; width /= 2) {
    const int64_t unit = width / element;
    if (lanes % unit == 0 && multiple_of(unit)) return width;
  }
  return 0;
}

/// Decides which accesses of the body become vectors.
void KernelEmitter::stage(const For& s) {
  LaneWalk body;
  if (!body.collect(s.body)) return;
  const std::vector<LaneAccess>& accesses = body.accesses();
  const Var* lane = s.vars[0].get();
  Facts inside = facts_;
  inside.bind_loop(s.vars[0], s.begins[0], s.extents[0]);
  for (const LaneAccess& each : accesses) {
    const bool early = std::none_of(each.indices.begin(), each.indices.end(), [&](const Expr& index) {
      return reads_written(index, accesses, source_.may_alias);
    });
    if (!each.always || !early || !moves(accesses, each.buffer, source_.may_alias)) continue;
    const Address address = address_of(*each.buffer, each.indices, inside);
    const Expr first = expr_of(sum_of(substitute(address.sum, {{lane, s.begins[0]}})));
    const int64_t width = vector_bytes(*each.buffer, address, first, s);
    if (width == 0) continue;
    const Expr start = address.swizzled(first);
    auto same = std::find_if(staged_.begin(), staged_.end(), [&](const Staged& other) {
      return !each.write && !other.writes && other.buffer == each.buffer && same_expr(other.start, start);
    });
    if (same == staged_.end()) {
      const bool rounds = each.write && rounds_in_pairs(*static_cast<const Store*>(each.node));
      staged_.push_back({each.buffer, start, width, names_.fresh(each.buffer->name + "_v"), each.write, rounds});
      same = staged_.end() - 1;
    }
    stage_of_[each.node] = static_cast<size_t>(same - staged_.begin());
    if (auto found = position_.find(each.buffer); found != position_.end()) {
      int64_t& alignment = kernel_.alignments[found->second];
      alignment = std::max(alignment, width);
    }
  }
}

/// 16-bit elements are kept as floats until the access, which converts two at a time.
bool KernelEmitter::rounds_in_pairs(const Store& s) const {
  const DType t = s.buffer->dtype;
  const Expr& value = stored(s);
  const bool copied = as<Load>(value) && value->dtype == t;
  return t.is_small_float() && t.bits == 16 && !copied && rounds_through_float(value->dtype);
}

void KernelEmitter::load_staged(const For& s, int64_t lanes) {
  for (const Staged& each : staged_) {
    const std::string type = each.rounds ? "float" : element_type(*each.buffer);
    line(fmt::format("{} {}[{}];", type, each.name, lanes), s.span);
    if (each.writes) continue;
    const std::string from =
        fmt::format("{} + {}", names_.of(each.buffer, each.buffer->name), text(each.start, c::precedence_of("+") + 1));
    line(call("load", std::to_string(each.width), each.name + ", " + from) + ";");
  }
}

void KernelEmitter::store_staged() {
  for (const Staged& each : staged_) {
    if (!each.writes) continue;
    const std::string to =
        fmt::format("{} + {}", names_.of(each.buffer, each.buffer->name), text(each.start, c::precedence_of("+") + 1));
    const std::string part = each.rounds ? "store_" + c::small_float_name(each.buffer->dtype) : "store";
    need(part);
    line(fmt::format("helve_{}<{}>({}, {});", each.rounds ? "store_rounded" : "store", each.width, to, each.name));
  }
}

/// Are several elements of the fragment packed in a register until a single place that unpacks them? Then loads that
/// are issued early are not waited for before it.
bool KernelEmitter::stays_packed(const Buffer& buffer) const {
  const auto reads = reads_.find(&buffer);
  return buffer.scope == MemoryScope::Fragment && buffer.dtype.bytes() < 4 && reads != reads_.end() &&
         reads->second == 1 && !indexed_.contains(&buffer);
}

/// A copy between memory and packed registers.
bool KernelEmitter::move_packed(const For& s) {
  const Store* store = as<Store>(s.body);
  const Load* load = store && !store->is_atomic() ? as<Load>(stored(*store)) : nullptr;
  if (!load || load->dtype != store->buffer->dtype) return false;
  const Buffer &from = buffer_of(load->buffer), &to = *store->buffer;
  const bool reads = to.scope == MemoryScope::Fragment;
  if (reads == (from.scope == MemoryScope::Fragment) || !stays_packed(reads ? to : from)) return false;
  const Var* lane = s.vars[0].get();
  Facts inside = facts_;
  inside.bind_loop(s.vars[0], s.begins[0], s.extents[0]);
  std::string places[2];
  int64_t width = machine_.vector_bytes;
  for (const auto& [buffer, indices, place] :
       {std::tuple{&to, &store->indices, &places[0]}, std::tuple{&from, &load->indices, &places[1]}}) {
    const Element e = element(*buffer, *indices);
    const bool registers = buffer->scope == MemoryScope::Fragment;
    const Address address = registers ? Address{e.offset, {}} : address_of(*buffer, *indices, inside);
    if (e.exchange || reads_written(address.sum, {}, {})) return false;
    const Expr first = expr_of(sum_of(substitute(address.sum, {{lane, s.begins[0]}})));
    width = std::min(width, vector_bytes(*buffer, address, first, s));
    *place = fmt::format("{} + {}", e.name, text(address.swizzled(first), c::precedence_of("+") + 1));
  }
  if (width == 0) return false;
  const Buffer& memory = reads ? from : to;
  if (auto found = position_.find(&memory); found != position_.end()) {
    kernel_.alignments[found->second] = std::max(kernel_.alignments[found->second], width);
  }
  need("move");
  line(fmt::format("helve_move<{}, {}>({}, {});", width, *int_value(s.extents[0]), places[0], places[1]), s.span);
  return true;
}

void KernelEmitter::vector_loop(const For& s) {
  HELVE_CHECK(s.vars.size() == 1, "a vector loop has one variable");
  const If* guard = as<If>(s.body);
  if (guard && !mentions_any(guard->condition, s.vars) && !has_load(guard->condition)) {
    auto lanes_of = [&](const Stmt& body) {
      return body ? helve::for_loop(s.loop, s.vars, s.begins, s.extents, body, 1, s.span, s.scheduled) : Stmt();
    };
    return stmt(helve::if_then(guard->condition, lanes_of(guard->then_body), lanes_of(guard->else_body), guard->span));
  }
  const int64_t* lanes = int_value(s.extents[0]);
  auto lane_loop = [&] { serial_loop(s, "unroll", [&] { stmt(s.body); }); };
  HELVE_CHECK(staged_.empty(), "a vector loop in another");
  if (!lanes || *lanes < 2 || *lanes > kMaxLanes) return lane_loop();
  if (move_packed(s)) return;
  Place place(*this);
  stage(s);
  if (staged_.empty()) return lane_loop();
  block("", s.span, [&] {
    load_staged(s, *lanes);
    serial_loop(s, "unroll", [&] {
      const int64_t* begin = int_value(s.begins[0]);
      const Expr lane = begin && *begin == 0 ? Expr(s.vars[0]) : Expr(s.vars[0]) - s.begins[0];
      lane_index_ = text(lane);
      stmt(s.body);
    });
    store_staged();
  });
  staged_.clear();
  stage_of_.clear();
}

}  // namespace helve::cuda
