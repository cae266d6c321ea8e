// Collectives inside a kernel: a group barrier, every core reads its peers' sources, a second group barrier.
// Blocks of a cluster read each other's shared memory. If a group spans more cores, sources are Global buffers and the
// barrier is a counter in global memory, for which the launch is cooperative. Small all-gathers and all-reductions of a
// cluster are pushed instead (emit_push.cc).
#include <fmt/format.h>

#include <algorithm>

#include "exchange.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

/// Decides how the cores synchronize, and what each does between the barriers.
void KernelEmitter::find_collectives() {
  const Kernel& kernel = *source_.stmt;
  if (!has_collective(kernel.body)) return;
  const bool on_mesh = source_.mesh && kernel.vars.size() == source_.mesh->extents.size();
  HELVE_CHECK(on_mesh, "a collective in a kernel of no mesh");
  span_ = span_of_collectives(kernel, *source_.mesh);
  kernel_.cooperative = span_.cores > machine_.cluster_blocks;
  if (kernel_.cooperative) span_ = whole_span(*source_.mesh);
  if (!kernel_.cooperative) kernel_.cluster = span_.cores;
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective()) return;
    const CoreGroup group = group_of(*op, *source_.mesh, kernel.vars, span_);
    if (kernel_.cooperative) find_uses(helve::bind(make_var("place"), group.place));
    if (op->op == TileOpcode::CommBarrier) return;
    if (!kernel_.cooperative) find_push(*op, group);
    const auto source = [&](const Expr& member, std::vector<Stmt>& before) { return peer(*op, member, before); };
    const Stmt loop = exchange(*op, group, *source_.mesh, kernel.threads, source);
    find_uses(loop);
    exchanges_.emplace(op, loop);
  });
}

/// The global memory of another core is addressed by its number in the mesh, its shared memory by the number in the
/// cluster; a parameter is the same memory for all cores.
BufferRef KernelEmitter::peer(const TileOp& s, const Expr& member, std::vector<Stmt>& before) {
  const BufferRef& source = s.region(0).buffer;
  if (source->scope == MemoryScope::Param) return source;
  if (source->scope == MemoryScope::Shared && kernel_.cluster == 1) return source;
  const CoreSpan span = source->scope == MemoryScope::Global ? whole_span(*source_.mesh) : span_;
  const CoreGroup group = group_of(s, *source_.mesh, source_.stmt->vars, span);
  Ref<Buffer> other = make_ref<Buffer>(*source);
  other->name += "_peer";
  const PushBuffer* buffer = push_buffer(s);
  if (buffer) other->layout.reset();  // pushed elements arrive in row-major order
  const BufferRef out(other);
  const Expr core = simplify(buffer || s.op == TileOpcode::CommPut ? member : group.number(member), facts_);
  peers_.emplace(out.get(), Peer{source.get(), core, buffer});
  before.push_back(helve::alloc(out));
  find_uses(helve::bind(make_var("core"), core));
  return out;
}

void KernelEmitter::declare_peer(const Buffer& buffer) {
  const Peer& peer = peers_.at(&buffer);
  const std::string type = element_type(buffer);
  const auto instance = std::find_if(instances_.begin(), instances_.end(),
                                     [&](const Instance& each) { return each.buffer == peer.source; });
  std::string value;
  if (peer.pushed) {
    value = slot_of(*peer.pushed, text(peer.core, c::precedence_of("+") + 1), "const " + type);
  } else if (instance == instances_.end()) {
    need("peer");
    value = fmt::format("helve_peer({}, {})", names_.of(peer.source, peer.source->name), text(peer.core));
  } else {
    value = fmt::format("(const {}*)((const unsigned char*){} + {} * {})", type, instance->cores,
                        text(peer.core, c::precedence_of("*")), instance->stride);
  }
  line(fmt::format("const {}* const {} = {};", type, names_.define(&buffer, buffer.name), value));
}

/// The groups of a cooperative launch count arrivals, each at a word of its own.
void KernelEmitter::declare_group_barriers() {
  declare_push_buffers();
  if (!kernel_.cooperative) return;
  walk(source_.stmt->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective()) return;
    const std::string axis = op->axis() ? *op->axis() : "all";
    if (arrivals_.contains(axis)) return;
    const std::string name = names_.fresh("arrived_" + axis);
    arrivals_.emplace(axis, name);
    line(fmt::format("unsigned {} = 0;", name));
  });
}

void KernelEmitter::group_barrier(const TileOp& s) {
  const MeshShape& mesh = *source_.mesh;
  const CoreGroup group = group_of(s, mesh, source_.stmt->vars, span_);
  if (kernel_.cooperative ? group.members == 1 : kernel_.cluster == 1) return line("__syncthreads();", s.span);
  if (!kernel_.cooperative) {
    need("cluster_sync");
    return line("helve_cluster_sync();", s.span);
  }
  const std::optional<size_t> axis = axis_of(s, mesh);
  int64_t word = axis ? 1 : 0;  // first the word of all cores, then those of each axis
  for (size_t a = 0; axis && a < *axis; ++a) word += mesh.size() / mesh.extents[a];
  need("group_barrier");
  line(fmt::format("helve_group_barrier({} + ({}), {} += {});", workspace_,
                   text(simplify(int_imm(word) + group.place, facts_)), arrivals_.at(s.axis() ? *s.axis() : "all"),
                   group.members),
       s.span);
}

void KernelEmitter::collective(const TileOp& s) {
  HELVE_CHECK(!thread_, "a collective of one thread");
  if (const PushBuffer* buffer = push_buffer(s)) {
    push(s, *buffer);
    return wait_pushed(s, *buffer);
  }
  group_barrier(s);
  if (s.op == TileOpcode::CommBarrier) return;
  stmt(exchanges_.at(&s));
  group_barrier(s);
}

}  // namespace helve::cuda
