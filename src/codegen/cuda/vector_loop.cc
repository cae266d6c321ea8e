// Loops whose lanes access memory as vectors.
// An access with a width becomes some of so many bytes: loads before the lanes are computed, stores after them. Other
// accesses are made lane by lane.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

/// Calls `on_load` and `on_store` with the vector accesses below a statement, in the order of a lane's execution.
template <class OnLoad, class OnStore>
void vector_accesses(const Stmt& s, const OnLoad& on_load, const OnStore& on_store) {
  const std::function<void(const Expr&)> read = [&](const Expr& e) {
    for_each_child(e, read);
    if (const Load* load = as<Load>(e); load && load->width) on_load(*load);
  };
  for_each_part(s, read, [&](const Stmt& part) { vector_accesses(part, on_load, on_store); });
  if (const Store* store = as<Store>(s); store && store->width) on_store(*store);
}

}  // namespace

/// Where the first lane's element stands in memory, or among the thread's registers.
Expr KernelEmitter::vector_start(const For& s, const Buffer& buffer, const std::vector<Expr>& indices) {
  Facts inside = facts_;
  inside.bind_loop(s.vars[0], s.begins[0], s.extents[0]);
  const bool registers = buffer.scope == MemoryScope::Fragment;
  Address address = registers ? Address{element_offset(buffer, indices, 1), {}} : address_of(buffer, indices, inside);
  address.sum = expr_of(sum_of(substitute(address.sum, {{s.vars[0].get(), s.begins[0]}})));
  return address.swizzled_by_digits(facts_);
}

/// One array for the lanes of each access; equal loads share one.
void KernelEmitter::stage(const For& s, const Object* node, const Buffer& buffer, const std::vector<Expr>& indices,
                          int64_t width, const Store* store) {
  const Expr start = vector_start(s, buffer, indices);
  auto same = std::find_if(staged_.begin(), staged_.end(), [&](const Staged& other) {
    return !store && !other.writes && other.buffer == &buffer && same_expr(other.start, start);
  });
  if (same == staged_.end()) {
    const bool rounds = store && rounds_in_pairs(*store);
    staged_.push_back({&buffer, start, width, names_.fresh(buffer.name + "_v"), store != nullptr, rounds});
    same = staged_.end() - 1;
  }
  stage_of_[node] = static_cast<size_t>(same - staged_.begin());
}

void KernelEmitter::stage(const For& s) {
  vector_accesses(
      s.body, [&](const Load& n) { stage(s, &n, buffer_of(n.buffer), n.indices, n.width, nullptr); },
      [&](const Store& n) { stage(s, &n, *n.buffer, n.indices, n.width, &n); });
}

/// 16-bit elements are kept as floats until the access, which converts two at a time.
bool KernelEmitter::rounds_in_pairs(const Store& s) {
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
    const bool registers = each.buffer->scope == MemoryScope::Fragment;
    const std::string part = !each.rounds ? "store" : registers ? "keep_rounded" : "store_rounded";
    if (each.rounds) need("pair_" + c::small_float_name(each.buffer->dtype));
    need(part);
    line(fmt::format("helve_{}<{}>({}, {});", part, each.width, to, each.name));
  }
}

/// A copy between memory and packed registers: both sides are vectors.
bool KernelEmitter::move_packed(const For& s) {
  const Store* store = as<Store>(s.body);
  const Load* load = store && store->width ? as<Load>(stored(*store)) : nullptr;
  if (!load || !load->width) return false;
  const Buffer &from = buffer_of(load->buffer), &to = *store->buffer;
  if (from.scope != MemoryScope::Fragment && to.scope != MemoryScope::Fragment) return false;
  const auto place = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    return fmt::format("{} + {}", names_.of(&buffer, buffer.name),
                       text(vector_start(s, buffer, indices), c::precedence_of("+") + 1));
  };
  need("move");
  const std::string into = place(to, store->indices);
  line(fmt::format("helve_move<{}, {}>({}, {});", store->width, *int_value(s.extents[0]), into,
                   place(from, load->indices)),
       s.span);
  return true;
}

void KernelEmitter::vector_loop(const For& s) {
  HELVE_CHECK(s.vars.size() == 1, "a vector loop has one variable");
  HELVE_CHECK(staged_.empty(), "a vector loop in another");
  if (move_packed(s)) return;
  Place place(*this);
  stage(s);
  if (staged_.empty()) return serial_loop(s, "unroll", [&] { stmt(s.body); });
  block("", s.span, [&] {
    load_staged(s, *int_value(s.extents[0]));
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
