// What cores do together: barriers of groups, the memory of other cores, stores to it.
// The cores of a mesh are blocks of a cluster, which address each other's shared memory. If a group spans more cores,
// they address each other's Global buffers, and the barrier is a counter in global memory, for which the launch is
// cooperative.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

/// How the launch lets the cores synchronize.
void KernelEmitter::find_collectives() {
  const Kernel& kernel = *source_.stmt;
  if (!has_collective(kernel.body)) return;
  const bool on_mesh = source_.mesh && kernel.vars.size() == source_.mesh->extents.size();
  HELVE_CHECK(on_mesh, "a collective in a kernel of no mesh");
  const CoreSync sync = core_sync(kernel, *source_.mesh, machine_.cluster_blocks);
  span_ = sync.span;
  kernel_.cooperative = !sync.cluster;
  if (sync.cluster) kernel_.cluster = span_.cores;
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective() || !kernel_.cooperative) return;
    const CoreGroup group = group_of(*op, *source_.mesh, kernel.vars, span_);
    find_uses(helve::bind(make_var("place"), group.place));
  });
}

/// The global memory of another core is addressed by its number in the mesh, its shared memory by the number in the
/// cluster.
void KernelEmitter::peer(const Peer& s) {
  const size_t first = s.source->scope == MemoryScope::Global ? 0 : span_.axis;
  const Expr number = simplify(core_number(s.core, *source_.mesh, first), facts_);
  peers_.insert_or_assign(s.buffer.get(), OtherCore{s.source.get(), number});
  if (!loaded_.contains(s.buffer.get())) return;
  const std::string type = element_type(*s.buffer);
  const auto instance = std::find_if(instances_.begin(), instances_.end(),
                                     [&](const Instance& each) { return each.buffer == s.source.get(); });
  std::string value;
  if (instance == instances_.end()) {
    need("peer");
    value = fmt::format("helve_peer({}, {})", names_.of(s.source.get(), s.source->name), text(number));
  } else {
    value = fmt::format("(const {}*)((const unsigned char*){} + {} * {})", type, instance->cores,
                        text(number, c::precedence_of("*")), instance->stride);
  }
  line(fmt::format("const {}* const {} = {};", type, names_.define(s.buffer.get(), s.buffer->name), value), s.span);
}

/// The groups of a cooperative launch count arrivals, each at a word of its own.
void KernelEmitter::declare_group_barriers() {
  if (!kernel_.cooperative) return;
  walk(source_.stmt->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective()) return;
    const uint64_t axes = axes_of(*op, *source_.mesh);
    const int64_t members = group_size(*source_.mesh, axes);
    if (arrivals_.contains(axes) || members == 1) return;
    const std::string label = join(names_of_axes(*op->axis()), "_", [](const std::string& name) { return name; });
    const std::string name = names_.fresh("arrived_" + label);
    arrivals_.emplace(axes, Arrival{name, kernel_.barrier_words});
    kernel_.barrier_words += source_.mesh->size() / members;
    line(fmt::format("unsigned {} = 0;", name));
  });
}

void KernelEmitter::group_barrier(const TileOp& s) {
  HELVE_CHECK(!thread_, "a collective of one thread");
  const MeshShape& mesh = *source_.mesh;
  const CoreGroup group = group_of(s, mesh, source_.stmt->vars, span_);
  if (kernel_.cooperative ? group.members == 1 : kernel_.cluster == 1) return line("__syncthreads();", s.span);
  if (!kernel_.cooperative) {
    need("cluster_sync");
    return line("helve_cluster_sync();", s.span);
  }
  const Arrival& arrival = arrivals_.at(axes_of(s, mesh));
  need("group_barrier");
  line(fmt::format("helve_group_barrier({} + ({}), {} += {});", workspace_,
                   text(simplify(int_imm(arrival.word) + group.place, facts_)), arrival.name, group.members),
       s.span);
}

/// The mbarriers, and the variable that counts what was waited for: two phases alternate between the two mbarriers.
void KernelEmitter::init_phases(const TileOp& s) {
  const Buffer& array = *s.barriers()->buffer;
  need("push");
  const std::string phase = names_.fresh("phase");
  line(fmt::format("unsigned {} = 0;", phase));
  line(fmt::format("helve_open({}, 2);", names_.of(&array, array.name)), s.span);
  phases_.emplace(&array, phase);
}

void KernelEmitter::store_async(const TileOp& s) {
  const Region& dst = s.region(1);
  const OtherCore& other = peers_.at(dst.buffer.get());
  const Element to = element(*other.source, region_begin(dst));
  const Buffer& array = *s.barriers()->buffer;
  line(fmt::format("helve_push({} + {}, {}, {}, {} + ({} & 1));", to.name, text(to.offset, c::precedence_of("+") + 1),
                   element_text(element(*s.region(0).buffer, region_begin(s.region(0)))), text(other.number),
                   names_.of(&array, array.name), phases_.at(&array)),
       s.span);
}

void KernelEmitter::wait_bytes(const TileOp& s) {
  const Buffer& array = *s.barriers()->buffer;
  line(fmt::format("helve_wait_pushed({}, {}++, {});", names_.of(&array, array.name), phases_.at(&array),
                   s.integer(s.row().index_of("bytes"))),
       s.span);
}

}  // namespace helve::cuda
