// What the threads of a warp touch of a buffer at once.
// One access of the text is one of each warp; lanes of a vector that lie side by side are one access of as many
// elements, up to 16 bytes.
#include "warp_accesses.h"

#include <algorithm>

#include "helve/analysis/async_run.h"
#include "helve/analysis/box_copy.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

constexpr int64_t kWarpsSampled = 4;
constexpr int64_t kVectorBytes = 16;

Operand zero_of(DType dtype) {
  if (dtype.is_bool()) return false;
  return dtype.is_float() ? Operand(0.0) : Operand(int64_t{0});
}

class Sampling {
 public:
  explicit Sampling(const Kernel& kernel) : threads_(kernel.threads) { statement(kernel.body); }
  WarpAccesses take() { return std::move(out_); }

 private:
  void statement(const Stmt& s) {
    if (!s) return;
    if (const Bind* n = as<Bind>(s)) {
      expression(n->value);
      if (!add_value(names_, n->var, n->value)) names_.erase(n->var.get());  // an index that cannot be told
      return;
    }
    if (const Store* n = as<Store>(s)) {
      for (const Expr& index : n->indices) expression(index);
      expression(n->value);
      return access(*n->buffer, n->indices);
    }
    if (const For* n = as<For>(s)) return loop(*n);
    if (const If* n = as<If>(s)) return conditional(*n);
    const TileOp* op = as<TileOp>(s);
    if (op && moves_matrices(*op)) return matrices(*op);
    if (op && op->op == TileOpcode::CpAsync) return run(*op);
    if (op && op->row().rule == TileRule::CopyInstruction) return copy_of_block(*op);
    for_each_part(s, [&](const Expr& e) { expression(e); }, [&](const Stmt& part) { statement(part); });
  }

  void loop(const For& n) {
    const Var* thread = thread_;
    const For* vector = vector_;
    if (n.loop == LoopKind::Thread) thread_ = n.vars[0].get();
    if (n.loop == LoopKind::Vectorized) vector_ = &n;
    statement(n.body);
    thread_ = thread;
    vector_ = vector;
  }

  void conditional(const If& n) {
    expression(n.condition);
    conditions_.push_back(substitute(n.condition, names_));
    statement(n.then_body);
    conditions_.back() = apply(Op::Not, {conditions_.back()});
    statement(n.else_body);
    conditions_.pop_back();
  }

  void expression(const Expr& e) {
    walk(e, [&](const Expr& node) {
      if (const Load* l = as<Load>(node)) access(buffer_of(l->buffer), l->indices);
    });
  }

  /// The value where the thread is `t`, the lane of the vector loop `lane`, and every other variable 0.
  std::optional<int64_t> value_of(const Expr& e, const Var* thread, int64_t t, int64_t lane) const {
    Substitution values;
    walk(e, [&](const Expr& node) {
      if (as<Var>(node)) values.emplace(as<Var>(node), constant_of(zero_of(node->dtype), node->dtype));
    });
    if (has_load(e)) return std::nullopt;
    values[thread] = int_imm(t);
    if (vector_) values[vector_->vars[0].get()] = int_imm(lane);
    return constant_value(substitute(e, values));
  }

  /// What extents, blocks and loops decide counts as held: most of them are whole.
  bool depends_on_thread_alone(const Expr& e, const Var* thread) const {
    bool alone = true;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      alone &= !var || var == thread || (vector_ && var == vector_->vars[0].get());
    });
    return alone;
  }

  /// The flat index; none where the thread makes no access, `*known` false where it cannot be told.
  std::optional<int64_t> flat_index(const std::vector<int64_t>& shape, const std::vector<Expr>& indices,
                                    const Var* thread, int64_t t, int64_t lane, bool* known) const {
    for (const Expr& condition : conditions_) {
      if (depends_on_thread_alone(condition, thread) && value_of(condition, thread, t, lane) == 0) return std::nullopt;
    }
    int64_t flat = 0;
    for (size_t d = 0; d < shape.size(); ++d) {
      const std::optional<int64_t> index = value_of(indices[d], thread, t, lane);
      if (!index) *known = false;
      if (!index || *index < 0 || *index >= shape[d]) return std::nullopt;
      flat = flat * shape[d] + *index;
    }
    return flat;
  }

  void access(const Buffer& buffer, const std::vector<Expr>& indices) {
    const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
    if (buffer.scope != MemoryScope::Shared || !thread_ || !shape) return;
    std::vector<Expr> plain;
    for (const Expr& index : indices) plain.push_back(substitute(index, names_));
    const int64_t* lanes = vector_ ? int_value(vector_->extents[0]) : nullptr;
    int64_t width = 1;
    if (lanes && side_by_side(*shape, plain, *lanes)) {
      MemoryAccesses& all = out_[&buffer];
      all.together = std::max(all.together, *lanes);
      width = vector_width(buffer, *shape, plain, *lanes);
    }
    add(buffer, *shape, plain, thread_, width);
  }

  /// Threads of the warps that are looked at.
  int64_t sampled() const { return std::min(kWarpsSampled, threads_ / kWarp) * kWarp; }

  /// Do the lanes of every thread lie side by side?
  bool side_by_side(const std::vector<int64_t>& shape, const std::vector<Expr>& indices, int64_t lanes) const {
    for (int64_t t = 0; t < sampled(); ++t) {
      bool known = true;
      const std::optional<int64_t> first = flat_index(shape, indices, thread_, t, 0, &known);
      if (!known) return false;
      for (int64_t lane = 1; first && lane < lanes; ++lane) {
        if (flat_index(shape, indices, thread_, t, lane, &known) != *first + lane) return false;
      }
    }
    return true;
  }

  /// Elements of the widest access of lanes side by side that every thread could make.
  int64_t vector_width(const Buffer& buffer, const std::vector<int64_t>& shape, const std::vector<Expr>& indices,
                       int64_t lanes) const {
    int64_t width = std::max<int64_t>(1, kVectorBytes / buffer.dtype.bytes());
    while (lanes % width != 0) width /= 2;
    for (int64_t t = 0; t < sampled(); ++t) {
      bool known = true;
      const std::optional<int64_t> first = flat_index(shape, indices, thread_, t, 0, &known);
      while (first && *first % width != 0) width /= 2;
    }
    return width;
  }

  void add(const Buffer& buffer, const std::vector<int64_t>& shape, const std::vector<Expr>& indices, const Var* thread,
           int64_t width) {
    for (int64_t begin = 0; begin < sampled(); begin += kWarp) {
      BankAccess one{{}, width};
      bool known = true;
      for (int64_t t = begin; t < begin + kWarp && known; ++t) {
        one.first.push_back(flat_index(shape, indices, thread, t, 0, &known).value_or(BankAccess::kInactive));
      }
      if (known) out_[&buffer].warps.push_back(std::move(one));
    }
  }

  /// A run of an asynchronous copy.
  void run(const TileOp& op) {
    for (size_t i : {0, 1}) {
      const Region& region = op.region(i);
      const std::optional<std::vector<int64_t>> shape = constant_shape(region.buffer->shape);
      if (region.buffer->scope != MemoryScope::Shared || !shape) continue;
      std::vector<Expr> indices;
      for (const Range& range : region.ranges) indices.push_back(substitute(range.begin, names_));
      const int64_t length = run_length(op);
      whole(*region.buffer, length);
      add(*region.buffer, *shape, indices, thread_, length);
    }
  }

  void copy_of_block(const TileOp& op) {
    const bool boxes = op.op == TileOpcode::CpAsyncBulkTensor;
    const std::optional<Swizzle> swizzle = boxes ? box_swizzle(op) : std::nullopt;
    for (size_t i : {0, 1}) {
      MemoryAccesses& all = out_[op.region(i).buffer.get()];
      if (!all.boxes) all.boxes = swizzle;
      all.rows |= !swizzle || all.boxes != swizzle;
    }
  }

  void whole(const Buffer& buffer, int64_t length) {
    MemoryAccesses& all = out_[&buffer];
    all.together = std::max(all.together, length);
    all.whole = true;
  }

  /// Each thread names a row of 8 elements; eight rows are a phase.
  void matrices(const TileOp& op) {
    const MatrixOperands operands = matrix_operands(op);
    const Region& region = *operands.memory;
    const std::optional<std::vector<int64_t>> shape = constant_shape(region.buffer->shape);
    std::string reason;
    const std::optional<MatrixMove> move = matrix_move(operands.layout, *constant_shape(region.shape()), &reason);
    if (!shape || !move) return;
    whole(*region.buffer, kMatrixRows);
    const VarRef tx = make_var("tx");
    for (int64_t first = 0; first < move->matrices; first += move->at_once) {
      const std::vector<Expr> row = matrix_row(*move, Expr(tx), first);
      std::vector<Expr> indices;
      size_t next = 0;
      for (const Range& range : region.ranges) {
        indices.push_back(substitute(range.point ? range.begin : range.begin + row[next++], names_));
      }
      add(*region.buffer, *shape, indices, tx.get(), kMatrixRows);
    }
  }

  int64_t threads_;
  const Var* thread_ = nullptr;
  const For* vector_ = nullptr;  ///< the vector loop around this place
  Substitution names_;
  std::vector<Expr> conditions_;
  WarpAccesses out_;
};

}  // namespace

WarpAccesses warp_accesses(const Kernel& kernel) { return Sampling(kernel).take(); }

}  // namespace helve
