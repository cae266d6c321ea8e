// The frame of a kernel: its signature, scalars from their 64-bit slots, the block's coordinates.
// Pointers to memory that nothing changes are __restrict__ (analysis/constant_buffers.h). A pointer that is written is
// not: the compiler would assume that no other thread writes the memory, and move reads from after a barrier to before
// it.
#include "kernel_emitter.h"

#include <fmt/format.h>

#include <limits>

#include "helve/analysis/base_alignment.h"
#include "helve/analysis/constant_buffers.h"
#include "helve/analysis/effects.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/tensor/core_blocks.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve::cuda {

namespace {}  // namespace

KernelEmitter::KernelEmitter(const KernelSource& source, const CudaOptions& options, Prelude& prelude)
    : CEmitter(source.bounds, options.line_directives),
      source_(source),
      prelude_(prelude),
      machine_(options.machine),
      interface_(source.interface ? *source.interface : kernel_interface(*source.stmt)) {
  kernel_.name = c::symbol_of(source.name);
  kernel_.threads = launched_threads(*source.stmt);
  kernel_.own_threads = source.stmt->threads;
  for (size_t i = 0; i < interface_.buffers.size(); ++i) {
    position_[interface_.buffers[i].get()] = i;
  }
  kernel_.faults = has_faults(source.reports);
  kernel_.alignments = base_alignments(source.stmt->body, interface_.buffers);
}

CudaKernel KernelEmitter::emit() {
  find_uses(source_.stmt->body);
  for (const ElementUse& use : element_uses(source_.stmt->body)) {
    if (!use.write) loaded_.insert(use.buffer);
  }
  find_collectives();
  find_products();
  signature();
  {
    Place place(*this);
    TextDocument::Indent indent = out_.indent();
    bool threads = has_collective(source_.stmt->body), shared = false;
    walk(source_.stmt->body, [&](const Stmt& s) {
      const For* loop = as<For>(s);
      const TileOp* op = as<TileOp>(s);
      threads |= (loop && loop->loop == LoopKind::Thread) ||
                 (op && (op->row().rule == TileRule::Instruction || op->is_by_tma()));
      const Alloc* alloc = as<Alloc>(s);
      shared |= alloc && alloc->buffer->scope == MemoryScope::Shared && used(alloc->buffer.get());
    });
    if (shared) line("extern __shared__ __align__(1024) unsigned char helve_shared[];");
    if (threads) line("const int tx = threadIdx.x;");
    unpack_scalars();
    for (const Expr& guard : source_.guards) facts_.assume(guard);
    grid();
    cluster();
    instances();
    kernel_.shared_bytes = shared_bytes(source_.stmt->body);
    declare_group_barriers();
    stmt(source_.stmt->body);
  }
  line("}");
  return kernel_;
}

void KernelEmitter::signature() {
  std::vector<std::string> list;
  parameters(list);
  bool alone = false;  // budgets are those of the only block of a multiprocessor
  walk(source_.stmt->body, [&](const Stmt& s) { alone |= as<Role>(s) && as<Role>(s)->registers != 0; });
  const std::string head =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}{})", kernel_.threads, alone ? ", 1" : "");
  const std::string one = fmt::format("{}({}) {{", kernel_.name, join(list, ", ", [](const auto& p) { return p; }));
  line(head, source_.stmt->span);
  if (one.size() <= 120) return line(one);
  line(kernel_.name + "(");
  TextDocument::Indent indent = out_.indent();
  for (size_t i = 0; i < list.size(); ++i) line(list[i] + (i + 1 < list.size() ? "," : ") {"));
}

/// An index keeps its slot's name and type; other scalars are unpacked from it.
void KernelEmitter::parameters(std::vector<std::string>& out) {
  std::unordered_map<const Buffer*, bool> written;
  for (const BufferEffect& effect : buffer_effects(source_.stmt->body)) written[effect.buffer.get()] = effect.written;
  const std::unordered_set<const Buffer*> constant = constant_buffers(*source_.stmt, interface_, source_.may_alias);
  for (const BufferRef& buffer : interface_.buffers) {
    const bool per_core = source_.mesh && buffer->scope == MemoryScope::Global;
    const std::string name =
        per_core ? names_.fresh(buffer->name + "_cores") : names_.define(buffer.get(), buffer->name);
    if (per_core) instances_.push_back({buffer.get(), name, {}});
    const std::string type = element_type(*buffer);
    out.push_back(fmt::format("{}{}* {}{}", written[buffer.get()] ? "" : "const ", type,
                              constant.contains(buffer.get()) ? "__restrict__ " : "", name));
    for (const Expr& extent : buffer->shape) {
      if (const Var* var = as<Var>(extent)) facts_.bind(var, {0, kLargestExtent});
    }
  }
  for (const VarRef& var : interface_.scalars) {
    scalar_names_.push_back(var->dtype.is_index() ? define(var, true) : names_.fresh(var->name + "_slot"));
    out.push_back("long long " + scalar_names_.back());
  }
  for (Instance& each : instances_) {
    each.stride = names_.fresh(each.buffer->name + "_stride");
    out.push_back("long long " + each.stride);
  }
  if (source_.mesh) {
    first_core_ = names_.fresh("first_core");
    out.push_back("long long " + first_core_);
  }
  if (kernel_.cooperative) {
    workspace_ = names_.fresh("words");
    out.push_back("unsigned* " + workspace_);
  }
  if (kernel_.faults) {
    faults_ = names_.fresh("fault");
    out.push_back("long long* " + faults_);
  }
  map_parameters(out);
}

/// The type of an element in memory; adds its definition to the prelude.
std::string KernelEmitter::element_type(const Buffer& buffer) {
  if (buffer.dtype.is_small_float()) need(c::small_float_name(buffer.dtype));
  return c::memory_type(buffer.dtype);
}

/// Unpacks all scalars: those that the body does not use are needed by an extent of the grid or a stride of a
/// parameter.
void KernelEmitter::unpack_scalars() {
  for (size_t i = 0; i < interface_.scalars.size(); ++i) {
    const VarRef& var = interface_.scalars[i];
    const DType t = var->dtype;
    if (t.is_index()) continue;
    const std::string& slot = scalar_names_[i];
    std::string value;
    if (t.is_small_float()) {
      need(c::small_float_name(t));
      const char* bits = t.bits == 16 ? "unsigned short" : "unsigned char";
      value = fmt::format("helve_to_float({}{{({}){}}})", c::memory_type(t), bits, slot);
    } else if (t.is_float()) {
      value = fmt::format(fmt::runtime(t.bits == 64 ? "__longlong_as_double({})" : "__int_as_float((int){})"), slot);
    } else {
      value = t.is_bool() ? slot + " != 0" : fmt::format("({}){}", c::value_type(t), slot);
    }
    declare(var, c::value_type(t), value);
    wide_.erase(var.get());
  }
}

/// Coordinates of the block, row-major. The launch has at most 2^31 - 1 blocks.
void KernelEmitter::grid() {
  const Kernel& kernel = *source_.stmt;
  const size_t rank = kernel.vars.size(), first_block = first_block_dim(kernel, source_.mesh);
  constexpr int64_t most = std::numeric_limits<int32_t>::max() - 1;
  std::string rest = "blockIdx.x";
  if (source_.mesh) {
    std::string own;  // blocks of a core
    for (size_t d = first_block; d < rank; ++d) own += " / " + text(kernel.extents[d], c::kUnary);
    core_ = names_.fresh("core");
    line(fmt::format("const unsigned {} = (unsigned){} + blockIdx.x{};", core_, first_core_, own));
    if (first_block == rank) rest = core_;
  }
  for (size_t d = rank; d-- > 0;) {
    const VarRef& var = kernel.vars[d];
    if (source_.mesh && d + 1 == first_block) rest = core_;
    std::string value = rest;
    if (d > 0) {
      const std::string extent = text(kernel.extents[d], c::kUnary);
      value = fmt::format("{} % {}", rest, extent);
      rest = fmt::format("{} / {}", rest, extent);
    }
    if (used(var.get())) declare(var, "int", value, kernel.span);
    facts_.bind_loop(var, int_imm(0), kernel.extents[d]);
    facts_.bind(var, {0, most});
  }
}

/// A core of a mesh has its own instance of each Global buffer.
void KernelEmitter::instances() {
  for (const Instance& each : instances_) {
    const std::string type = element_type(*each.buffer);
    line(fmt::format("{0}* const {1} = ({0}*)((unsigned char*){2} + {3} * {4});", type,
                     names_.define(each.buffer, each.buffer->name), each.cores, core_, each.stride));
  }
}

}  // namespace helve::cuda
