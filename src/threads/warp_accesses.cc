// The simultaneous accesses of a warp's threads to a buffer.
// One access of the program is one access of each warp; contiguous lanes of a vector are one access of several
// elements, up to 16 bytes.
#include "warp_accesses.h"

#include <algorithm>
#include <array>

#include "helve/analysis/access.h"
#include "helve/analysis/async_run.h"
#include "helve/analysis/box_copy.h"
#include "helve/arith/evaluator.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/matrix_move.h"

namespace helve {

namespace {

constexpr int64_t kWarpsSampled = 4;

Operand zero_of(DType dtype) {
  if (dtype.is_bool()) return false;
  return dtype.is_float() ? Operand(0.0) : Operand(int64_t{0});
}

class Sampling {
 public:
  Sampling(const Kernel& kernel, const Machine& machine)
      : threads_(kernel.threads), machine_(machine), model_(access_model(Stmt(&kernel))) {
    for (const Access& each : model_.accesses) sample(each);
  }
  WarpAccesses take() { return std::move(out_); }

 private:
  void sample(const Access& access) {
    thread_ = {};
    vector_ = nullptr;
    conditions_.clear();
    for (const StepRef& step : access.path) {
      if (step->condition) conditions_.push_back(step->condition);
      const bool loops = step->stmt && step->stmt->kind == StmtKind::For;
      const LoopKind kind = loops ? static_cast<const For&>(*step->stmt).loop : LoopKind::Serial;
      if (kind == LoopKind::Thread) thread_ = step->vars[0];
      if (kind == LoopKind::Vectorized) vector_ = step.get();
    }
    const bool is_operand = !access.load && access.stmt->kind == StmtKind::TileOp;
    return is_operand ? operand(access, static_cast<const TileOp&>(*access.stmt)) : element(access);
  }

  void operand(const Access& access, const TileOp& op) {
    if (moves_matrices(op)) return matrices(access, op);
    if (op.op == TileOpcode::CpAsync) return run(access, op);
    if (op.row().rule == TileRule::CopyInstruction) return copy_of_block(access, op);
  }

  static std::vector<Expr> begins(const Access& access) {
    std::vector<Expr> out;
    for (const Range& range : access.ranges) out.push_back(range.begin);
    return out;
  }

  /// The value by thread and lane of the vector loop, with 0 for every other variable; null if it is not known.
  std::optional<Evaluator> by_thread(const Expr& e, const VarRef& thread) const {
    if (has_load(e) || model_.names_stay(e)) return std::nullopt;
    std::vector<VarRef> own = {thread};
    if (vector_) own.push_back(vector_->vars[0]);
    Substitution others;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      const auto is_var = [&](const VarRef& each) { return each.get() == var; };
      if (!var || std::any_of(own.begin(), own.end(), is_var)) return;
      others.emplace(var, constant_of(zero_of(node->dtype), node->dtype));
    });
    return Evaluator(simplify(substitute(e, others)), own);
  }

  /// Conditions on extents, blocks and loops are assumed to hold: they do, except at tails.
  bool depends_on_thread_alone(const Expr& e, const VarRef& thread) const {
    bool alone = true;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      alone &= !var || var == thread.get() || (vector_ && var == vector_->vars[0].get());
    });
    return alone;
  }

  /// Where a thread's lane makes an access.
  struct FlatIndex {
    std::vector<int64_t> shape;
    std::vector<Evaluator> conditions;
    std::vector<std::optional<Evaluator>> indices;

    /// None if the thread makes no access; `*known` is false if that is unknown.
    std::optional<int64_t> at(int64_t thread, int64_t lane, bool* known) const {
      const std::array<int64_t, 2> values = {thread, lane};
      for (const Evaluator& condition : conditions) {
        if (condition.at(values) == 0) return std::nullopt;
      }
      int64_t flat = 0;
      for (size_t d = 0; d < shape.size(); ++d) {
        const std::optional<int64_t> index = indices[d] ? indices[d]->at(values) : std::nullopt;
        if (!index) *known = false;
        if (!index || *index < 0 || *index >= shape[d]) return std::nullopt;
        flat = flat * shape[d] + *index;
      }
      return flat;
    }
  };

  FlatIndex flat_index(const std::vector<int64_t>& shape, const std::vector<Expr>& indices,
                       const VarRef& thread) const {
    FlatIndex out{shape, {}, {}};
    for (const Expr& condition : conditions_) {
      if (!depends_on_thread_alone(condition, thread)) continue;
      if (std::optional<Evaluator> known = by_thread(condition, thread)) out.conditions.push_back(std::move(*known));
    }
    for (const Expr& index : indices) out.indices.push_back(by_thread(index, thread));
    return out;
  }

  void element(const Access& access) {
    const Buffer& buffer = *access.buffer;
    const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
    if (buffer.scope != MemoryScope::Shared || !thread_ || !shape) return;
    const FlatIndex place = flat_index(*shape, begins(access), thread_);
    const int64_t* lanes = vector_ ? int_value(vector_->extents[0]) : nullptr;
    int64_t width = 1;
    if (lanes && side_by_side(place, *lanes)) {
      MemoryAccesses& all = out_[&buffer];
      all.together = std::max(all.together, *lanes);
      width = vector_width(buffer, place, *lanes);
    }
    add(buffer, place, width);
  }

  /// Threads of the sampled warps.
  int64_t sampled() const { return std::min(kWarpsSampled, threads_ / kWarp) * kWarp; }

  /// Are the lanes of every thread contiguous?
  bool side_by_side(const FlatIndex& place, int64_t lanes) const {
    for (int64_t t = 0; t < sampled(); ++t) {
      bool known = true;
      const std::optional<int64_t> first = place.at(t, 0, &known);
      if (!known) return false;
      for (int64_t lane = 1; first && lane < lanes; ++lane) {
        if (place.at(t, lane, &known) != *first + lane) return false;
      }
    }
    return true;
  }

  /// Elements of the widest access to contiguous lanes that every thread could make.
  int64_t vector_width(const Buffer& buffer, const FlatIndex& place, int64_t lanes) const {
    int64_t width = std::max<int64_t>(1, machine_.vector_bytes / buffer.dtype.bytes());
    while (lanes % width != 0) width /= 2;
    for (int64_t t = 0; t < sampled(); ++t) {
      bool known = true;
      const std::optional<int64_t> first = place.at(t, 0, &known);
      while (first && *first % width != 0) width /= 2;
    }
    return width;
  }

  void add(const Buffer& buffer, const FlatIndex& place, int64_t width) {
    for (int64_t begin = 0; begin < sampled(); begin += kWarp) {
      BankAccess one{{}, width};
      bool known = true;
      for (int64_t t = begin; t < begin + kWarp && known; ++t) {
        one.first.push_back(place.at(t, 0, &known).value_or(BankAccess::kInactive));
      }
      if (known) out_[&buffer].warps.push_back(std::move(one));
    }
  }

  /// A run of an asynchronous copy.
  void run(const Access& access, const TileOp& op) {
    const Buffer& buffer = *access.buffer;
    const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
    if (buffer.scope != MemoryScope::Shared || !shape) return;
    const int64_t length = run_length(op);
    whole(buffer, length);
    add(buffer, flat_index(*shape, begins(access), thread_), length);
  }

  void copy_of_block(const Access& access, const TileOp& op) {
    const bool boxes = op.op == TileOpcode::CpAsyncBulkTensor;
    const std::optional<Swizzle> swizzle = boxes ? box_swizzle(op) : std::nullopt;
    MemoryAccesses& all = out_[access.buffer.get()];
    if (!all.boxes) all.boxes = swizzle;
    all.rows |= !swizzle || all.boxes != swizzle;
  }

  void whole(const Buffer& buffer, int64_t length) {
    MemoryAccesses& all = out_[&buffer];
    all.together = std::max(all.together, length);
    all.whole = true;
  }

  /// Each thread names a row of 8 elements; eight rows are a phase.
  void matrices(const Access& access, const TileOp& op) {
    const MatrixOperands operands = matrix_operands(op);
    const Region& region = *operands.memory;
    if (access.buffer != region.buffer) return;
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
      for (const Range& range : access.ranges) indices.push_back(range.point ? range.begin : range.begin + row[next++]);
      add(*region.buffer, flat_index(*shape, indices, tx), kMatrixRows);
    }
  }

  const int64_t threads_;
  const Machine& machine_;
  const AccessModel model_;
  VarRef thread_;                  ///< of the access, like those below
  const Step* vector_ = nullptr;   ///< the vector loop around it
  std::vector<Expr> conditions_;
  WarpAccesses out_;
};

}  // namespace

WarpAccesses warp_accesses(const Kernel& kernel, const Machine& machine) { return Sampling(kernel, machine).take(); }

}  // namespace helve
