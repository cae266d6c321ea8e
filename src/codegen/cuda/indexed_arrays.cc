// Which subscripts the compiler of CUDA C makes constants.
#include "indexed_arrays.h"

#include <utility>
#include <variant>
#include <vector>

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve::cuda {

namespace {

/// NVVM unrolls serial loops of about as many iterations by itself.
constexpr int64_t kUnrolled = 16;

class Subscripts {
 public:
  explicit Subscripts(const Stmt& body) {
    walk(body, [&](const Stmt& s) {
      if (const For* loop = as<For>(s)) add(*loop);
      if (const Bind* bind = as<Bind>(s); bind && is_constant(bind->value)) constants_.insert(bind->var.get());
      if (const Store* n = as<Store>(s)) add(*n->buffer, n->indices);
      if (const TileOp* op = as<TileOp>(s)) {
        for (const TileOperand& operand : op->operands) {
          if (const Region* region = std::get_if<Region>(&operand)) operands_.insert(region->buffer.get());
        }
      }
    });
    walk_exprs(body, [&](const Expr& e) {
      const Load* load = as<Load>(e);
      if (!load) return;
      read_.insert(&buffer_of(load->buffer));
      add(buffer_of(load->buffer), load->indices);
    });
  }

  std::unordered_set<const Buffer*> indexed() const {
    std::unordered_set<const Buffer*> out;
    for (const auto& [buffer, index] : subscripts_) {
      if (read_.contains(buffer) && !operands_.contains(buffer) && !is_constant(index)) out.insert(buffer);
    }
    return out;
  }

 private:
  void add(const For& loop) {
    for (size_t d = 0; d < loop.vars.size(); ++d) {
      const int64_t* extent = int_value(loop.extents[d]);
      const bool unrolled = loop.loop == LoopKind::Unroll || loop.loop == LoopKind::Vectorized;
      if (loop.loop != LoopKind::Thread && extent && (unrolled || *extent <= kUnrolled)) {
        constants_.insert(loop.vars[d].get());
      }
    }
  }

  void add(const Buffer& buffer, const std::vector<Expr>& indices) {
    if (buffer.scope != MemoryScope::Local && buffer.scope != MemoryScope::Fragment) return;
    for (size_t d = buffer.scope == MemoryScope::Fragment ? 1 : 0; d < indices.size(); ++d) {
      subscripts_.emplace_back(&buffer, indices[d]);
    }
  }

  bool is_constant(const Expr& index) const {
    bool constant = true;
    walk(index, [&](const Expr& e) {
      const Var* var = as<Var>(e);
      constant &= !as<Load>(e) && (!var || constants_.contains(var));
    });
    return constant;
  }

  std::unordered_set<const Var*> constants_;
  std::unordered_set<const Buffer*> operands_;
  std::unordered_set<const Buffer*> read_;
  std::vector<std::pair<const Buffer*, Expr>> subscripts_;
};

}  // namespace

std::unordered_set<const Buffer*> indexed_arrays(const Stmt& body) { return Subscripts(body).indexed(); }

}  // namespace helve::cuda
