// Statements of the block: memory, loops over threads, barriers.
// All shared memory is one array of the launch, in which each buffer has its offset.
#include <fmt/format.h>

#include "helve/analysis/async_run.h"
#include "helve/analysis/element_address.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

/// The elements of an array from dimension `first` on; at least one, since C has no empty arrays.
int64_t elements(const Buffer& buffer, size_t first) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  HELVE_CHECK(shape, "shared memory '" + buffer.name + "' has a dynamic shape");
  int64_t count = 1;
  for (size_t d = first; d < shape->size(); ++d) count *= (*shape)[d];
  return std::max<int64_t>(count, 1);
}

}  // namespace

void KernelEmitter::alloc(const Alloc& s) {
  const Buffer& buffer = *s.buffer;
  if (!used(&buffer)) return;
  const std::string type = element_type(buffer);
  switch (buffer.scope) {
    case MemoryScope::Shared: {
      HELVE_CHECK(buffer.offset, "shared memory '" + buffer.name + "' has no place");
      kernel_.shared.push_back({buffer.name, shared_size(buffer), buffer.span});
      if (buffer.slots > 0) return slots(s);
      return line(fmt::format("{0}* const {1} = ({0}*)(helve_shared + {2});", type, names_.define(&buffer, buffer.name),
                              *buffer.offset),
                  s.span);
    }
    case MemoryScope::Fragment: {
      const int64_t* threads = int_value(buffer.shape.at(0));
      HELVE_CHECK(!thread_ && threads && *threads == source_.stmt->threads,
                  "fragment '" + buffer.name + "' is not divided");
      const int64_t count = elements(buffer, 1);
      array(s, buffer.place == ArrayPlace::Packed && count > 1 ? "__align__(16) " : "", count);
      return declare_words(buffer, s.span);
    }
    case MemoryScope::Local:
      HELVE_CHECK(thread_, "local memory '" + buffer.name + "' belongs to a thread");
      return array(s, "", elements(buffer, 0));
    case MemoryScope::Param:
    case MemoryScope::Global: break;
  }
  HELVE_FAIL("a kernel allocates memory of this scope");
}

/// An array of a thread.
void KernelEmitter::array(const Alloc& s, const char* alignment, int64_t count) {
  const Buffer& buffer = *s.buffer;
  line(fmt::format("{}{}{} {}[{}];", buffer.place == ArrayPlace::Memory ? "volatile " : "", alignment,
                   element_type(buffer), names_.define(&buffer, buffer.name), count),
       s.span);
}

void KernelEmitter::tile_op(const TileOp& s) {
  const bool of_thread = s.row().scope == OpScope::Iteration;
  HELVE_CHECK(of_thread == (thread_ != nullptr), "tile operation " + std::string(s.row().name) + " of a thread");
  using enum TileOpcode;
#define HELVE_INSTRUCTION(function, ...)        \
  for (const TileOpcode each : {__VA_ARGS__}) { \
    if (s.op == each) return function(s);       \
  }
#include "instruction_table.inc"
#undef HELVE_INSTRUCTION
  HELVE_FAIL("tile operation " + std::string(s.row().name) + " in a kernel in thread form");
}

void KernelEmitter::barrier(const TileOp& s) {
  if (role_) return role_barrier(s);
  line("__syncthreads();", s.span);
}

/// Barriers 1 and 2 are those of roles.
void KernelEmitter::warpgroup_barrier(const TileOp& s) {
  HELVE_CHECK(!role_ || (role_->first == 0 && !role_->elect), "a barrier of the warpgroups of another role");
  need("warpgroup_sync");
  line("helve_sync_warpgroup<3>();", s.span);
}

void KernelEmitter::cluster_barrier(const TileOp&) {
  HELVE_CHECK(!role_ && !thread_, "a barrier of a cluster is one of all threads");
  need("cluster_sync");
  line("helve_cluster_sync();");
}

void KernelEmitter::fence(const TileOp& s) { line(call("fence_async", "", "") + ";", s.span); }

/// One run, which is past the end of its tensor either entirely or not at all.
void KernelEmitter::copy_async(const TileOp& s) {
  const Region &src = s.region(0), &dst = s.region(1);
  const int64_t bytes = run_length(s) * src.buffer->dtype.bytes();
  const auto address = [&](const Region& region) {
    const Buffer& buffer = *region.buffer;
    const Expr offset = address_of(buffer, region_begin(region), facts_).swizzled_by_digits(facts_);
    return fmt::format("{} + {}", names_.of(&buffer, buffer.name), text(offset, c::precedence_of("+") + 1));
  };
  std::string operands = address(dst) + ", " + address(src);
  if (const Expr inside = begins_inside(src, facts_)) operands += ", " + text(inside, c::kConditional);
  line(call("copy_async", std::to_string(bytes), operands) + ";", s.span);
}

void KernelEmitter::thread_loop(const For& s) {
  const int64_t* begin = int_value(s.begins[0]);
  const int64_t* extent = int_value(s.extents[0]);
  HELVE_CHECK(s.vars.size() == 1 && begin && *begin == 0 && extent && *extent == source_.stmt->threads && !thread_,
              "a loop over threads runs over all threads of the block, once");
  auto body = [&] {
    const VarRef& var = s.vars[0];
    names_.alias(var.get(), "tx");
    wide_[var.get()] = false;
    facts_.bind_loop(var, s.begins[0], s.extents[0]);
    thread_ = var.get();
    stmt(s.body);
    thread_ = nullptr;
  };
  if (as<Seq>(s.body)) return block("", s.span, body);
  Place place(*this);  // one statement needs no braces
  body();
}

}  // namespace helve::cuda
