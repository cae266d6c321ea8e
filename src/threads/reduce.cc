// Reductions over threads: registers, then lanes, then warps.
// After each step a thread has the combination of more threads along the reduced dimension; in the end all of them have
// the result, as the layout of the destination requires.
#include "helve/dispatch/reduction.h"

#include <algorithm>

#include "digits.h"
#include "helve/arith/simplify.h"
#include "helve/support/diagnostic.h"
#include "thread_operations.h"
#include "warp_digits.h"

namespace helve {

namespace {

class ReduceDivision {
 public:
  ReduceDivision(const TileOp& op, const DividedKernel& kernel, const Facts& facts)
      : reduction_(reduction_of(op)),
        kernel_(kernel),
        facts_(facts),
        layout_(kernel.layout_of(op)),
        span_(op.span),
        extents_(reduction_.src.shape()),
        kept_layout_(layout_) {
    for (size_t d = 0; d < extents_.size(); ++d) {
      if (d != reduction_.dim) kept_.push_back(d);
    }
    kept_layout_ = layout_.project(std::vector<int>(kept_.begin(), kept_.end()));
    for (size_t d : kept_) kept_extents_.push_back(extents_[d]);
    partial_ = make_buffer("partial", reduction_.acc, MemoryScope::Fragment,
                           {int_imm(kernel_.threads), int_imm(kept_layout_.registers())});
  }

  Stmt run() {
    check_whole_pass();
    out_.push_back(alloc(partial_));
    combine_registers();
    std::vector<ThreadDigit> digits;
    for (const Iter& iter : layout_.block(reduction_.dim)) {
      for (const ThreadDigit& digit : split_at_warps(iter)) digits.push_back(digit);
    }
    for (const ThreadDigit& digit : digits) {
      if (digit.in_warp()) combine_lanes(digit);
    }
    for (const ThreadDigit& digit : digits) {
      if (!digit.in_warp()) combine_warps(digit, digits);
    }
    write();
    return seq(std::move(out_), span_);
  }

 private:
  using Body = std::function<Stmt(const Expr& tx, const Digits& digits)>;

  /// The kept dimensions must fit the layout in one pass, since each thread keeps its results in registers.
  void check_whole_pass() const {
    for (size_t k = 0; k < kept_.size(); ++k) {
      const int64_t* extent = int_value(kept_extents_[k]);
      HELVE_CHECK(extent && *extent <= kept_layout_.domain()[k], "a reduction whose results do not fit its layout");
    }
  }

  void on_threads(const ThreadLayout& layout, const std::vector<Expr>& extents, const Body& body) {
    out_.push_back(thread_loop(
        kernel_.threads,
        [&](const Expr& tx) {
          Facts known = facts_;
          known.bind_loop(VarRef(as<Var>(tx)), int_imm(0), int_imm(kernel_.threads));
          return body(tx, Digits(layout, extents, tx, known));
        },
        span_));
  }

  /// One statement for each register of the partial results.
  void on_registers(const std::function<Stmt(const Expr& tx, const Expr& number)>& body) {
    on_threads(kept_layout_, kept_extents_, [&](const Expr& tx, const Digits& digits) {
      std::vector<int> dims;
      std::vector<size_t> all;
      for (size_t k = 0; k < kept_.size(); ++k) {
        dims.push_back(static_cast<int>(k));
        all.push_back(k);
      }
      return digits.register_nest(body(tx, digits.register_of(kept_layout_, dims)), all);
    });
  }

  void combine_registers() {
    on_registers(
        [&](const Expr& tx, const Expr& number) { return store(partial_, {tx, number}, reduction_.identity()); });
    on_threads(layout_, extents_, [&](const Expr& tx, const Digits& digits) {
      std::vector<int> dims;
      for (size_t d : kept_) dims.push_back(static_cast<int>(d));
      const std::vector<Expr> at = {tx, digits.register_of(kept_layout_, dims)};
      return digits.nest(store(partial_, at, reduction_.merge(load(partial_, at), element(tx, digits))), false);
    });
  }

  Expr element(const Expr& tx, const Digits& digits) const {
    const Buffer& buffer = *reduction_.src.buffer;
    const ThreadLayout* registers = kernel_.registers_of(buffer);
    if (!registers) return kernel_.place(reduction_.element(digits.coords()));
    std::vector<int> dims;
    for (size_t d = 0; d < extents_.size(); ++d) dims.push_back(static_cast<int>(d));
    const BufferRef& placed = kernel_.buffers.at(&buffer).buffer;
    return reduction_.partial(load(placed, {tx, digits.register_of(*registers, dims)}));
  }

  /// A butterfly: after the step over a mask, lanes that differ in it have the combination of both.
  void combine_lanes(const ThreadDigit& digit) {
    const BufferRef other = make_buffer("other", reduction_.acc, MemoryScope::Fragment, partial_->shape);
    out_.push_back(alloc(other));
    for (int64_t mask = digit.stride; mask < digit.stride * digit.extent; mask *= 2) {
      on_registers([&](const Expr& tx, const Expr& number) {
        const Expr lane = apply(Op::BitXor, {tx, int_imm(mask)});
        return store(other, {tx, number}, load(partial_, {lane, number}));
      });
      on_registers([&](const Expr& tx, const Expr& number) {
        const std::vector<Expr> at = {tx, number};
        return store(partial_, at, reduction_.merge(load(partial_, at), load(other, at)));
      });
    }
  }

  /// One lane of each warp stores the warp's result to shared memory, and every thread combines the results of its
  /// group of warps.
  void combine_warps(const ThreadDigit& digit, const std::vector<ThreadDigit>& digits) {
    const int64_t warps = kernel_.threads / kWarp;
    const BufferRef shared = make_buffer("warps", reduction_.acc, MemoryScope::Shared,
                                         {int_imm(warps), int_imm(kWarp), int_imm(kept_layout_.registers())});
    const BufferRef compact = without_reduced_lanes(shared, digits);
    out_.push_back(alloc(compact));
    on_registers([&](const Expr& tx, const Expr& number) {
      const Stmt leave =
          store(compact, {floor_div(tx, int_imm(kWarp)), lane_place(tx, digits), number}, load(partial_, {tx, number}));
      Expr first;
      for (const ThreadDigit& other : digits) {
        if (!other.in_warp()) continue;
        const Expr zero = apply(Op::Eq, {thread_digit({other.extent, other.stride, axes::tx()}, tx, 0), int_imm(0)});
        first = first ? logical_and(first, zero) : zero;
      }
      return first ? if_then(first, leave) : leave;
    });
    on_registers(
        [&](const Expr& tx, const Expr& number) { return store(partial_, {tx, number}, reduction_.identity()); });
    on_registers([&](const Expr& tx, const Expr& number) {
      const int64_t stride = digit.stride / kWarp;
      const Expr warp = floor_div(tx, int_imm(kWarp));
      const Expr own = floor_mod(floor_div(warp, int_imm(stride)), int_imm(digit.extent));
      const VarRef w = make_var("w");
      const Expr source = warp + (Expr(w) - own) * int_imm(stride);
      const std::vector<Expr> at = {tx, number};
      const Expr value = load(compact, {source, lane_place(tx, digits), number});
      return for_loop(LoopKind::Unroll, w, int_imm(digit.extent),
                      store(partial_, at, reduction_.merge(load(partial_, at), value)));
    });
  }

  static BufferRef without_reduced_lanes(const BufferRef& buffer, const std::vector<ThreadDigit>& digits) {
    return make_buffer(buffer->name, buffer->dtype, buffer->scope,
                       {buffer->shape[0], int_imm(lanes_kept(digits)), buffer->shape[2]});
  }

  void write() {
    on_threads(kept_layout_, kept_extents_, [&](const Expr& tx, const Digits& digits) {
      std::vector<int> dims;
      for (size_t k = 0; k < kept_.size(); ++k) dims.push_back(static_cast<int>(k));
      Expr value = load(partial_, {tx, digits.register_of(kept_layout_, dims)});
      const Buffer& buffer = *reduction_.dst.buffer;
      const auto placed = kernel_.buffers.find(&buffer);
      std::vector<Expr> at = reduction_.place(digits.coords());
      BufferRef target = reduction_.dst.buffer;
      Expr first;
      if (placed != kernel_.buffers.end()) target = placed->second.buffer;
      if (const ThreadLayout* registers = kernel_.registers_of(buffer)) {
        at = {tx, digits.register_of(*registers, register_dims(dims))};
      } else {
        for (Expr& index : at) index = kernel_.place(index);
        first = is_first_replica(kept_layout_, tx, kernel_.threads);
      }
      if (!reduction_.clear) value = reduction_.merge(cast(load(target, at), reduction_.acc), value);
      const Stmt result = store(target, at, cast(value, target->dtype));
      return digits.nest(first ? if_then(first, result) : result, true);
    });
  }

  /// The dimensions of the destination: the kept ones, and one of extent 1 if the reduced one stays.
  std::vector<int> register_dims(std::vector<int> dims) const {
    if (reduction_.dst.shape().size() == extents_.size())
      dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(reduction_.dim), -1);
    return dims;
  }

  Reduction reduction_;
  const DividedKernel& kernel_;
  const Facts& facts_;
  const ThreadLayout& layout_;
  Span span_;
  std::vector<Expr> extents_;
  std::vector<size_t> kept_;
  std::vector<Expr> kept_extents_;
  ThreadLayout kept_layout_;
  BufferRef partial_;
  std::vector<Stmt> out_;
};

}  // namespace

OperationDemand threads::demand_reduction(const TileOp& op) {
  const Region &src = op.region(0), &dst = op.region(1);
  OperationDemand out;
  out.extents = src.shape();
  const size_t rank = out.extents.size(), reduced = *op.dimension(rank);
  std::vector<int> all, kept;
  for (size_t d = 0; d < rank; ++d) {
    all.push_back(static_cast<int>(d));
    if (d != reduced)
      kept.push_back(static_cast<int>(d));
    else if (dst.shape().size() == rank)
      kept.push_back(-1);
  }
  out.elements = {{&src, all, false}, {&dst, kept, true}};
  out.reduced = static_cast<int>(reduced);
  return out;
}

Stmt threads::divide_reduction(const TileOp& op, const DividedKernel& kernel, const Facts& facts) {
  return ReduceDivision(op, kernel, facts).run();
}

}  // namespace helve
