// Where a thread keeps what it has for itself: in registers, packed in registers, or in memory.
// Input: the program of the threads of a block. Output: the same; each Fragment and Local buffer has its place.
// Before:  x = T.alloc_fragment((32, 8), "bfloat16")       # loaded early, used once
//          s = T.alloc_local((64,), "float16")              # s[I[tx]] is read
// After:   x = T.alloc_fragment((32, 8), "bfloat16", place="packed")
//          s = T.alloc_local((64,), "float16", place="memory")
// Memory is for subscripts that only the run knows: NVVM moves a load of such an array out of a loop that contains
// inline assembly as if it were aligned to one byte, and accesses it byte by byte; ptxas then sometimes takes a byte
// for a 16-bit element. So code generation declares it volatile, which is compiled correctly. Elements smaller than a
// register stay packed, as they came from memory, until the only place that uses them: loads that are issued early are
// not waited for before it, and instructions on matrices take words. The CUDA C compiler unrolls loops with constant
// bounds if that keeps an array in registers, so their variables are constants here.
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "helve/analysis/effects.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// Iterations of a serial loop that is certainly unrolled.
constexpr int64_t kUnrolled = 16;

/// The subscripts of what threads have for themselves.
class Subscripts {
 public:
  Subscripts(const Stmt& body, int64_t registers) : registers_(registers) {
    walk(body, [&](const Stmt& s) {
      if (const For* loop = as<For>(s)) add(*loop);
      const Bind* bind = as<Bind>(s);
      if (bind && is_constant(bind->value, constants_)) constants_.insert(bind->var.get());
      if (const TileOp* op = as<TileOp>(s)) {
        for (const TileOperand& operand : op->operands) {
          if (const Region* region = std::get_if<Region>(&operand)) operands_.insert(region->buffer.get());
        }
      }
    });
    for (const ElementUse& use : element_uses(body)) {
      if (!use.write) read_.insert(use.buffer);
      add(*use.buffer, *use.indices);
    }
  }

  /// The arrays that loads and stores alone access, and loads read, at least once with a subscript that does not become
  /// constant by unrolling. The first subscript of a fragment is the thread and does not count.
  std::unordered_set<const Buffer*> indexed() const {
    std::unordered_set<const Buffer*> out;
    for (const auto& [buffer, index] : subscripts_) {
      if (read_.contains(buffer) && !operands_.contains(buffer) && !is_constant(*buffer, index)) out.insert(buffer);
    }
    return out;
  }

 private:
  void add(const For& loop) {
    if (loop.loop == LoopKind::Thread) return;
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      const int64_t* extent = int_value(loop.extents[d]);
      if (!extent || !is_constant(loop.begins[d], constants_)) continue;
      counted_.insert(loop.vars[d].get());
      const bool unrolled = loop.loop == LoopKind::Unroll || loop.loop == LoopKind::Vectorized;
      if (unrolled || *extent <= kUnrolled) constants_.insert(loop.vars[d].get());
    }
  }

  void add(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer.scope != MemoryScope::Local && buffer.scope != MemoryScope::Fragment) return;
    for (size_t d = buffer.scope == MemoryScope::Fragment ? 1 : 0; d < indices.size(); ++d) {
      subscripts_.emplace_back(&buffer, indices[d]);
    }
  }

  static bool is_constant(const Expr& index, const std::unordered_set<const Var*>& constants) {
    bool constant = true;
    walk(index, [&](const Expr& e) {
      const Var* var = as<Var>(e);
      constant &= !as<Load>(e) && (!var || constants.contains(var));
    });
    return constant;
  }

  /// Only elements smaller than a word have been seen to be miscompiled; an array of words in a loop that is not
  /// unrolled is at worst slow.
  bool is_constant(const Buffer& buffer, const Expr& index) const {
    if (is_constant(index, constants_)) return true;
    int64_t words = buffer.dtype.bytes() / 4;
    for (size_t d = buffer.scope == MemoryScope::Fragment ? 1 : 0; d < buffer.rank(); ++d) {
      words *= *int_value(buffer.shape[d]);
    }
    return buffer.dtype.bytes() >= 4 && words <= registers_ && is_constant(index, counted_);
  }

  const int64_t registers_;  ///< the words of an array that a thread may keep in registers
  std::unordered_set<const Var*> constants_;  ///< after unrolling
  std::unordered_set<const Var*> counted_;  ///< of loops with constant bounds
  std::unordered_set<const Buffer*> operands_;
  std::unordered_set<const Buffer*> read_;
  std::vector<std::pair<const Buffer*, Expr>> subscripts_;
};

/// How often loads read each array; the fragments of which an instruction takes words are read once.
std::unordered_map<const Buffer*, size_t> places_that_read(const Kernel& kernel) {
  std::unordered_map<const Buffer*, size_t> out;
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (op && (op->op == TileOpcode::Wgmma || op->op == TileOpcode::StoreMatrix)) out[op->region(0).buffer.get()] = 1;
  });
  for (const ElementUse& use : element_uses(kernel.body)) {
    if (!use.write) ++out[use.buffer];
  }
  return out;
}

/// The arrays of a kernel whose place is another than their declaration says.
void add_places(const Kernel& kernel, int64_t registers, BufferMap* out) {
  std::unordered_map<const Buffer*, size_t> reads = places_that_read(kernel);
  const std::unordered_set<const Buffer*> indexed = Subscripts(kernel.body, registers).indexed();
  walk(kernel.body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || (n->buffer->scope != MemoryScope::Fragment && n->buffer->scope != MemoryScope::Local)) return;
    const Buffer& buffer = *n->buffer;
    ArrayPlace place = ArrayPlace::Registers;
    if (indexed.contains(&buffer)) {
      place = ArrayPlace::Memory;
    } else if (buffer.scope == MemoryScope::Fragment && buffer.dtype.bytes() < 4 && reads[&buffer] == 1) {
      place = ArrayPlace::Packed;
    }
    if (place != buffer.place) out->emplace(&buffer, at_place(n->buffer, place));
  });
}

}  // namespace

FunctionRef place_arrays(const FunctionRef& f, const PassOptions& options) {
  BufferMap places;
  walk(f->body, [&](const Stmt& s) {
    if (const Kernel* kernel = as<Kernel>(s)) add_places(*kernel, options.machine.thread_registers, &places);
  });
  return places.empty() ? f : with_body(f, redeclare_buffers(f->body, places));
}

}  // namespace helve
