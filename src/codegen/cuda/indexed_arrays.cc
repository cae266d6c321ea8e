// Subscripts that the CUDA C compiler turns into constants.
// It unrolls loops with constant bounds if that keeps an array in registers.
#include "indexed_arrays.h"

#include <utility>
#include <variant>
#include <vector>

#include "helve/analysis/effects.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve::cuda {

namespace {

/// Iterations of a serial loop that is certainly unrolled.
constexpr int64_t kUnrolled = 16;

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

  const int64_t registers_;
  std::unordered_set<const Var*> constants_;  ///< after unrolling
  std::unordered_set<const Var*> counted_;    ///< of loops with constant bounds
  std::unordered_set<const Buffer*> operands_;
  std::unordered_set<const Buffer*> read_;
  std::vector<std::pair<const Buffer*, Expr>> subscripts_;
};

}  // namespace

std::unordered_set<const Buffer*> indexed_arrays(const Stmt& body, int64_t registers) {
  return Subscripts(body, registers).indexed();
}

}  // namespace helve::cuda
