// Small collectives of a cluster by distributed shared memory: every core pushes its elements to every member of its
// group (st.async) and waits at an mbarrier until as many bytes have arrived in its own push buffer.
// This avoids a cluster barrier, which would also wait for all stores to global memory. A push buffer is doubled, and
// the phases of the exchange alternate: a core that has received phase p + 1 from all members knows that they have read
// phase p, so it may overwrite it with phase p + 2. This needs a push from every member in every phase, so only
// all-gathers and all-reductions are pushed.
// The wait is placed before the first statement that needs the result; the statements up to there run during the
// transfer. A block barrier precedes the push; those statements need no other order with what precedes the collective.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr int64_t kMaxPushBytes = 8192;  // of both phases; larger sources are read in place
constexpr int64_t kArrivalBytes = 16;

std::string axis_name(const TileOp& s) { return s.axis() ? *s.axis() : "all"; }

/// The size of a source that can be pushed: a whole buffer in shared memory, of 4- or 8-byte elements.
std::optional<int64_t> pushed_bytes(const TileOp& s) {
  if (s.op != TileOpcode::CommAllGather && s.op != TileOpcode::CommAllReduce) return std::nullopt;
  const Region& source = s.region(0);
  const int64_t element = source.buffer->dtype.bytes();
  const std::optional<std::vector<int64_t>> shape = constant_shape(source.buffer->shape);
  if (source.buffer->scope != MemoryScope::Shared || !source.whole() || !shape) return std::nullopt;
  if (element != 4 && element != 8) return std::nullopt;
  int64_t bytes = element;
  for (int64_t extent : *shape) bytes *= extent;
  return bytes;
}

/// Does a statement access the collective's result, write its source, or contain a collective?
bool needs_result(const Stmt& s, const TileOp& collective) {
  if (has_collective(s)) return true;
  const std::vector<BufferEffect> effects = buffer_effects(s);
  return std::any_of(effects.begin(), effects.end(), [&](const BufferEffect& effect) {
    return effect.buffer == collective.region(1).buffer ||
           (effect.written && effect.buffer == collective.region(0).buffer);
  });
}

}  // namespace

void KernelEmitter::find_push(const TileOp& s, const CoreGroup& group) {
  const std::optional<int64_t> bytes = pushed_bytes(s);
  if (!bytes || *bytes == 0 || group.members == 1 || 2 * group.members * *bytes > kMaxPushBytes) return;
  PushBuffer& buffer = push_buffers_[axis_name(s)];
  buffer.members = group.members;
  buffer.bytes = std::max(buffer.bytes, (*bytes + 7) / 8 * 8);
  pushed_.insert(&s);
  for (const Expr& used : {group.me, group.first}) find_uses(helve::bind(make_var("core"), used));
}

const KernelEmitter::PushBuffer* KernelEmitter::push_buffer(const TileOp& s) const {
  return pushed_.contains(&s) ? &push_buffers_.at(axis_name(s)) : nullptr;
}

/// The mbarriers are initialized in every block of the cluster before the first push.
void KernelEmitter::declare_push_buffers() {
  if (push_buffers_.empty()) return;
  need("push");
  need("cluster_sync");
  for (auto& [axis, buffer] : push_buffers_) {
    buffer.arrivals = names_.fresh("arrivals_" + axis);
    buffer.slots = names_.fresh("slots_" + axis);
    buffer.phase = names_.fresh("phase_" + axis);
    const int64_t begin = more_shared(kArrivalBytes + 2 * buffer.members * buffer.bytes);
    line(fmt::format("unsigned long long* const {} = (unsigned long long*)(helve_shared + {});", buffer.arrivals,
                     begin));
    line(fmt::format("unsigned char* const {} = helve_shared + {};", buffer.slots, begin + kArrivalBytes));
    line(fmt::format("unsigned {} = 0;", buffer.phase));
    line(fmt::format("helve_open({}, 2);", buffer.arrivals));
  }
  line("helve_cluster_sync();");
}

std::string KernelEmitter::slot_of(const PushBuffer& buffer, const std::string& member, const std::string& type) const {
  return fmt::format("({}*)({} + (({} & 1) * {} + {}) * {})", type, buffer.slots, buffer.phase, buffer.members, member,
                     buffer.bytes);
}

/// The address of element number `item` in row-major order.
Expr KernelEmitter::element_address(const Buffer& buffer, const Expr& item) const {
  if (!buffer.layout) return item;
  std::vector<Expr> indices(buffer.rank());
  int64_t below = 1;
  for (size_t d = buffer.rank(); d-- > 0;) {
    const int64_t extent = *int_value(buffer.shape[d]);
    indices[d] = simplify(floor_mod(floor_div(item, int_imm(below)), int_imm(extent)), facts_);
    below *= extent;
  }
  return address_of(buffer, indices, facts_).swizzled();
}

void KernelEmitter::push(const TileOp& s, const PushBuffer& buffer) {
  const CoreGroup group = group_of(s, *source_.mesh, source_.stmt->vars, span_);
  const Buffer& source = *s.region(0).buffer;
  const int64_t bytes = *pushed_bytes(s), count = bytes / source.dtype.bytes();
  const std::string type = element_type(source);
  line("__syncthreads();", s.span);  // the source is written
  const VarRef member = make_var("member");
  const int64_t pushes = buffer.members * count;
  const VarRef number = make_var("at");
  const bool once = pushes <= kernel_.threads;
  const std::string at = once ? "tx" : names_.fresh("at");
  const std::string head = once ? fmt::format("if (tx < {})", pushes)
                                : fmt::format("for (int {0} = tx; {0} < {1}; {0} += {2})", at, pushes, kernel_.threads);
  block(head, s.span, [&] {
    names_.alias(number.get(), at);
    wide_[number.get()] = false;
    facts_.bind_loop(number, int_imm(0), int_imm(pushes));
    const Expr item = simplify(floor_mod(Expr(number), int_imm(count)), facts_);
    names_.alias(member.get(), count == 1 ? at : names_.fresh("member"));
    wide_[member.get()] = false;
    if (count > 1) line(fmt::format("const int {} = {} / {};", names_.of(member.get(), "member"), at, count));
    const Expr core = simplify(group.number(Expr(member)), facts_);
    line(fmt::format("helve_push({} + {}, {}[{}], {}, {} + ({} & 1));",
                     slot_of(buffer, text(group.me, c::precedence_of("+") + 1), type),
                     text(item, c::precedence_of("+") + 1), names_.of(&source, source.name),
                     text(element_address(source, item)), text(core), buffer.arrivals, buffer.phase));
  });
}

void KernelEmitter::wait_pushed(const TileOp& s, const PushBuffer& buffer) {
  line(fmt::format("helve_wait_pushed({}, {}, {});", buffer.arrivals, buffer.phase, buffer.members * *pushed_bytes(s)),
       s.span);
  stmt(exchanges_.at(&s));
  line(fmt::format("++{};", buffer.phase));
  line("__syncthreads();");
}

void KernelEmitter::seq(const Seq& s) {
  const TileOp* pushed = nullptr;
  const auto finish_pushed = [&] {
    if (pushed) wait_pushed(*pushed, *push_buffer(*pushed));
    pushed = nullptr;
  };
  for (const Stmt& each : s.stmts) {
    if (pushed && needs_result(each, *pushed)) finish_pushed();
    const TileOp* op = as<TileOp>(each);
    const PushBuffer* buffer = op ? push_buffer(*op) : nullptr;
    if (!buffer) {
      stmt(each);
      continue;
    }
    push(*op, *buffer);
    pushed = op;
  }
  finish_pushed();
}

}  // namespace helve::cuda
