// Collectives inside a kernel: the cores of a group meet, every core reads its peers' sources, they meet again.
// Blocks of a cluster read each other's block memory; where a group spans more, sources are Global buffers and cores
// meet at a counter in global memory, for which the launch keeps all blocks on the device together. Few elements that
// every core of a cluster wants from every other are posted instead (emit_post.cc).
#include <fmt/format.h>

#include <algorithm>

#include "exchange.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

/// Decides how the cores meet, and what each does in between.
void KernelEmitter::find_collectives() {
  const Kernel& kernel = *source_.stmt;
  if (!has_collective(kernel.body)) return;
  const bool on_mesh = source_.mesh && kernel.vars.size() == source_.mesh->extents.size();
  HELVE_CHECK(on_mesh, "a collective in a kernel of no mesh");
  span_ = span_of_collectives(kernel, *source_.mesh);
  kernel_.cooperative = span_.cores > cluster_blocks_;
  if (kernel_.cooperative) span_ = whole_span(*source_.mesh);
  if (!kernel_.cooperative) kernel_.cluster = span_.cores;
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective()) return;
    const CoreGroup group = group_of(*op, *source_.mesh, kernel.vars, span_);
    if (kernel_.cooperative) find_uses(helve::bind(make_var("place"), group.place));
    if (op->op == TileOpcode::CommBarrier) return;
    if (!kernel_.cooperative) find_post(*op, group);
    const auto source = [&](const Expr& member, std::vector<Stmt>& before) { return peer(*op, member, before); };
    const Stmt loop = exchange(*op, group, *source_.mesh, kernel.threads, source);
    find_uses(loop);
    exchanges_.emplace(op, loop);
  });
}

/// Global memory of another core is found by its number in the mesh, block memory by that in the cluster; a parameter
/// is one memory for all cores.
BufferRef KernelEmitter::peer(const TileOp& s, const Expr& member, std::vector<Stmt>& before) {
  const BufferRef& source = s.region(0).buffer;
  if (source->scope == MemoryScope::Param) return source;
  if (source->scope == MemoryScope::Shared && kernel_.cluster == 1) return source;
  const CoreSpan span = source->scope == MemoryScope::Global ? whole_span(*source_.mesh) : span_;
  const CoreGroup group = group_of(s, *source_.mesh, source_.stmt->vars, span);
  Ref<Buffer> other = make_ref<Buffer>(*source);
  other->name += "_peer";
  const PostBox* box = post_box(s);
  if (box) other->layout.reset();  // what is posted lies row by row
  const BufferRef out(other);
  const Expr core = simplify(box || s.op == TileOpcode::CommPut ? member : group.number(member), facts_);
  peers_.emplace(out.get(), Peer{source.get(), core, box});
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
  if (peer.box) {
    value = slot_of(*peer.box, text(peer.core, c::precedence_of("+") + 1), "const " + type);
  } else if (instance == instances_.end()) {
    need("peer");
    value = fmt::format("helve_peer({}, {})", names_.of(peer.source, peer.source->name), text(peer.core));
  } else {
    value = fmt::format("(const {}*)((const unsigned char*){} + {} * {})", type, instance->cores,
                        text(peer.core, c::precedence_of("*")), instance->stride);
  }
  line(fmt::format("const {}* const {} = {};", type, names_.define(&buffer, buffer.name), value));
}

/// A group of a cooperative launch counts its meetings, each group of its kind at a word of its own.
void KernelEmitter::begin_meetings() {
  begin_posts();
  if (!kernel_.cooperative) return;
  walk(source_.stmt->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective()) return;
    const std::string axis = op->axis() ? *op->axis() : "all";
    if (meetings_.contains(axis)) return;
    const std::string name = names_.fresh("met_" + axis);
    meetings_.emplace(axis, name);
    line(fmt::format("unsigned {} = 0;", name));
  });
}

void KernelEmitter::meet(const TileOp& s) {
  const MeshShape& mesh = *source_.mesh;
  const CoreGroup group = group_of(s, mesh, source_.stmt->vars, span_);
  fence();
  if (kernel_.cooperative ? group.members == 1 : kernel_.cluster == 1) return line("__syncthreads();", s.span);
  if (!kernel_.cooperative) {
    need("cluster_sync");
    return line("helve_cluster_sync();", s.span);
  }
  const std::optional<size_t> axis = axis_of(s, mesh);
  int64_t word = axis ? 1 : 0;  // the words of all cores, then those of each axis
  for (size_t a = 0; axis && a < *axis; ++a) word += mesh.size() / mesh.extents[a];
  need("meet");
  line(fmt::format("helve_meet({} + ({}), {} += {});", workspace_, text(simplify(int_imm(word) + group.place, facts_)),
                   meetings_.at(s.axis() ? *s.axis() : "all"), group.members),
       s.span);
}

void KernelEmitter::collective(const TileOp& s) {
  HELVE_CHECK(!thread_, "a collective of one thread");
  if (const PostBox* box = post_box(s)) {
    post(s, *box);
    return collect(s, *box);
  }
  meet(s);
  if (s.op == TileOpcode::CommBarrier) return;
  stmt(exchanges_.at(&s));
  meet(s);
}

}  // namespace helve::cuda
