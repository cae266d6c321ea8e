// What stands at block scope: memory, loops over threads, barriers.
// All shared memory is one array of the launch; each buffer has a place of its own in it.
#include <fmt/format.h>

#include "helve/codegen/c/c_types.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

/// The elements of an array from dimension `first` on; at least one, so that it has a size.
int64_t elements(const Buffer& buffer, size_t first) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  HELVE_CHECK(shape, "block memory '" + buffer.name + "' has a dynamic shape");
  int64_t count = 1;
  for (size_t d = first; d < shape->size(); ++d) count *= (*shape)[d];
  return std::max<int64_t>(count, 1);
}

int64_t round_up(int64_t n, int64_t unit) { return (n + unit - 1) / unit * unit; }

/// The multiple of bytes at which block memory begins: a swizzle's period at least, so that its XOR acts on addresses.
int64_t shared_alignment(const Buffer& buffer) {
  if (!buffer.layout) return kSharedAlignment;
  return std::max(kSharedAlignment, buffer.layout->swizzle().period() * buffer.dtype.bytes());
}

}  // namespace

void KernelEmitter::alloc(const Alloc& s) {
  const Buffer& buffer = *s.buffer;
  if (!used(&buffer)) return;
  const std::string type = element_type(buffer);
  switch (buffer.scope) {
    case MemoryScope::Shared: {
      const int64_t alignment = shared_alignment(buffer);
      const int64_t begin = round_up(kernel_.shared_bytes, alignment);
      kernel_.shared_bytes = round_up(begin + memory_elements(buffer) * buffer.dtype.bytes(), kSharedAlignment);
      return line(fmt::format("{0}* const {1} = ({0}*)(helve_shared + {2});", type,
                              names_.define(&buffer, buffer.name), begin),
                  s.span);
    }
    case MemoryScope::Fragment: {
      const int64_t* threads = int_value(buffer.shape.at(0));
      HELVE_CHECK(!thread_ && threads && *threads == kernel_.threads,
                  "fragment '" + buffer.name + "' has a first dimension of the block's threads");
      return line(fmt::format("{} {}[{}];", type, names_.define(&buffer, buffer.name), elements(buffer, 1)), s.span);
    }
    case MemoryScope::Local:
      HELVE_CHECK(thread_, "local memory '" + buffer.name + "' belongs to a thread");
      return line(fmt::format("{} {}[{}];", type, names_.define(&buffer, buffer.name), elements(buffer, 0)), s.span);
    case MemoryScope::Param:
    case MemoryScope::Global: break;
  }
  HELVE_FAIL("a kernel allocates block memory");
}

void KernelEmitter::tile_op(const TileOp& s) {
  if (s.row().rule == TileRule::MatrixMove) return matrix_move(s);
  HELVE_CHECK(s.op == TileOpcode::SyncThreads && !thread_,
              "tile operation " + std::string(s.row().name) + " in a kernel in thread form");
  line("__syncthreads();", s.span);
}

void KernelEmitter::thread_loop(const For& s) {
  const int64_t* begin = int_value(s.begins[0]);
  const int64_t* extent = int_value(s.extents[0]);
  HELVE_CHECK(s.vars.size() == 1 && begin && *begin == 0 && extent && *extent == kernel_.threads && !thread_,
              "a loop over threads runs over all threads of the block, once");
  auto body = [&] {
    const VarRef& var = s.vars[0];
    names_.alias(var.get(), "tx");
    wide_[var.get()] = false;
    facts_.bind_loop(var, s.begins[0], s.extents[0]);
    thread_ = var.get();
    thread_decisions_ = decisions_.size();
    walk(s.body, [&](const Stmt& each) {
      if (const Bind* bind = as<Bind>(each)) own_values_.insert(bind->var.get());
    });
    stmt(s.body);
    thread_ = nullptr;
  };
  if (as<Seq>(s.body)) return block("", s.span, body);
  Place place(*this);  // one statement needs no braces
  body();
}

}  // namespace helve::cuda
