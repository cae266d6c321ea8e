// Scans over threads: registers, then lanes, then warps.
// The coordinate along the scan is a number whose digits are registers, lanes and warps. They are closed one by one,
// the fastest first: within the closed digits each register holds its running sum, and each thread knows the total.
// Closing a digit adds the totals of the preceding places to the running sums.
#include "helve/dispatch/scan.h"

#include "digits.h"
#include "helve/support/diagnostic.h"
#include "thread_operations.h"
#include "warp_digits.h"

namespace helve {

namespace {

/// A digit of the elements that a thread holds.
struct RegisterDigit {
  int64_t extent;
  int64_t stride;  ///< in the register numbers of the layout
};

using Values = std::vector<Expr>;  ///< of digits, in their order

/// The number of a combination of digits, the last one fastest.
Expr combination(const std::vector<RegisterDigit>& digits, const Values& values) {
  Expr number = int_imm(0);
  for (size_t i = 0; i < digits.size(); ++i) number = number * int_imm(digits[i].extent) + values[i];
  return number;
}

int64_t combinations(const std::vector<RegisterDigit>& digits) {
  int64_t count = 1;
  for (const RegisterDigit& digit : digits) count *= digit.extent;
  return count;
}

Expr register_number(const std::vector<RegisterDigit>& digits, const Values& values) {
  Expr number = int_imm(0);
  for (size_t i = 0; i < digits.size(); ++i) number = number + values[i] * int_imm(digits[i].stride);
  return number;
}

/// Unrolled loops over the digits around `body`.
Stmt over(const std::vector<RegisterDigit>& digits, const std::function<Stmt(const Values&)>& body) {
  std::vector<VarRef> vars;
  Values values;
  for (size_t i = 0; i < digits.size(); ++i) {
    vars.push_back(make_var("r"));
    values.push_back(Expr(vars.back()));
  }
  Stmt out = body(values);
  for (size_t i = digits.size(); i-- > 0;) {
    out = for_loop(LoopKind::Unroll, vars[i], int_imm(digits[i].extent), out);
  }
  return out;
}

class ScanDivision {
 public:
  ScanDivision(const TileOp& op, const DividedKernel& kernel, const Facts& facts)
      : scan_(scan_of(op)),
        kernel_(kernel),
        facts_(facts),
        layout_(kernel.layout_of(op)),
        span_(op.span),
        extents_(scan_.src.shape()) {
    for (size_t d = 0; d < extents_.size(); ++d) {
      const int64_t* extent = int_value(extents_[d]);
      HELVE_CHECK(extent && *extent <= layout_.domain()[d], "a scan whose elements do not fit its layout");
      dims_.push_back(static_cast<int>(d));
      for (const Iter& iter : layout_.block(d)) {
        if (iter.axis == axes::reg() && iter.extent > 1) open_.push_back({iter.extent, iter.stride});
      }
    }
    sums_ = fragment("sums", layout_.registers());
    total_ = fragment("total", combinations(open_));
  }

  Stmt run() {
    read();
    const Iters iters = layout_.block(scan_.dim);
    for (size_t i = iters.size(); i-- > 0;) {
      if (iters[i].axis == axes::reg() && iters[i].extent > 1) close_register({iters[i].extent, iters[i].stride});
      for (const ThreadDigit& digit : split_at_warps(iters[i])) {
        if (digit.in_warp())
          close_lanes(digit);
        else
          close_warps(digit);
        threads_.push_back(digit);
      }
    }
    write();
    return seq(std::move(out_), span_);
  }

 private:
  BufferRef fragment(const char* name, int64_t registers) {
    const BufferRef buffer =
        make_buffer(name, scan_.acc, MemoryScope::Fragment, {int_imm(kernel_.threads), int_imm(registers)});
    out_.push_back(alloc(buffer));
    return buffer;
  }

  void on_threads(const std::function<Stmt(const Expr& tx)>& body) {
    out_.push_back(thread_loop(kernel_.threads, body, span_));
  }

  /// `body` for the elements that exist.
  void on_elements(bool vector, const std::function<Stmt(const Expr& tx, const Digits& digits)>& body) {
    on_threads([&](const Expr& tx) {
      Facts known = facts_;
      known.bind_loop(VarRef(as<Var>(tx)), int_imm(0), int_imm(kernel_.threads));
      const Digits digits(layout_, extents_, tx, known);
      return digits.nest(body(tx, digits), vector);
    });
  }

  /// Adds `value` to an element of a fragment.
  static Stmt add(const BufferRef& buffer, const std::vector<Expr>& at, const Expr& value) {
    return store(buffer, at, load(buffer, at) + value);
  }

  Stmt clear(const BufferRef& buffer, const Expr& tx) const {
    return over(
        open_, [&](const Values& values) { return store(buffer, {tx, combination(open_, values)}, scan_.identity()); });
  }

  /// Each thread reads its elements (the neutral element where none exist), as sums of one element.
  void read() {
    on_threads([&](const Expr& tx) {
      return over(open_, [&](const Values& values) {
        return store(sums_, {tx, register_number(open_, values)}, scan_.identity());
      });
    });
    on_elements(false, [&](const Expr& tx, const Digits& digits) {
      return store(sums_, {tx, digits.register_of(layout_, dims_)}, element(tx, digits));
    });
    on_threads([&](const Expr& tx) {
      return over(open_, [&](const Values& values) {
        return store(total_, {tx, combination(open_, values)}, load(sums_, {tx, register_number(open_, values)}));
      });
    });
  }

  Expr element(const Expr& tx, const Digits& digits) const {
    const Buffer& buffer = *scan_.src.buffer;
    const ThreadLayout* registers = kernel_.registers_of(buffer);
    if (!registers) return kernel_.place(scan_.element(digits.coords()));
    const BufferRef& placed = kernel_.buffers.at(&buffer).buffer;
    return scan_.partial(load(placed, {tx, digits.register_of(*registers, dims_)}));
  }

  /// Adds the values of `before` for their open digits to the running sums.
  Stmt add_before(const Expr& tx, const Values& values, const Expr& before) const {
    return over(closed_, [&](const Values& inner) {
      const Expr number = register_number(open_, values) + register_number(closed_, inner);
      return add(sums_, {tx, number}, before);
    });
  }

  void close_register(const RegisterDigit& digit) {
    const std::vector<RegisterDigit> all = open_;
    const BufferRef totals = total_;
    const size_t place = static_cast<size_t>(
        std::find_if(all.begin(), all.end(), [&](const RegisterDigit& d) { return d.stride == digit.stride; }) -
        all.begin());
    open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(place));
    total_ = fragment("total", combinations(open_));
    on_threads([&](const Expr& tx) { return clear(total_, tx); });
    on_threads([&](const Expr& tx) {
      return over(open_, [&](const Values& values) {
        const VarRef step = make_var("r");
        const Expr at = scan_.reverse ? int_imm(digit.extent - 1) - Expr(step) : Expr(step);
        Values with = values;
        with.insert(with.begin() + static_cast<std::ptrdiff_t>(place), at);
        const std::vector<Expr> here = {tx, combination(open_, values)};
        const Stmt sums = over(closed_, [&](const Values& inner) {
          return add(sums_, {tx, register_number(all, with) + register_number(closed_, inner)}, load(total_, here));
        });
        const Stmt total = add(total_, here, load(totals, {tx, combination(all, with)}));
        return for_loop(LoopKind::Unroll, step, int_imm(digit.extent), seq({sums, total}));
      });
    });
    closed_.push_back(digit);
  }

  /// A butterfly: after the step over a mask, lanes that differ in it know the total of both, and the later half has
  /// the sum of what precedes it.
  void close_lanes(const ThreadDigit& digit) {
    const BufferRef before = fragment("before", combinations(open_));
    const BufferRef other = fragment("other", combinations(open_));
    on_threads([&](const Expr& tx) { return clear(before, tx); });
    for (int64_t mask = digit.stride; mask < digit.stride * digit.extent; mask *= 2) {
      on_threads([&](const Expr& tx) {
        return over(open_, [&](const Values& values) {
          const Expr number = combination(open_, values);
          return store(other, {tx, number}, load(total_, {apply(Op::BitXor, {tx, int_imm(mask)}), number}));
        });
      });
      on_threads([&](const Expr& tx) {
        const Expr later =
            apply(Op::Eq, {floor_mod(floor_div(tx, int_imm(mask)), int_imm(2)), int_imm(scan_.reverse ? 0 : 1)});
        return over(open_, [&](const Values& values) {
          const std::vector<Expr> at = {tx, combination(open_, values)};
          return seq({if_then(later, add(before, at, load(other, at))), add(total_, at, load(other, at))});
        });
      });
    }
    add_to_sums(before);
  }

  void add_to_sums(const BufferRef& before) {
    on_threads([&](const Expr& tx) {
      return over(open_, [&](const Values& values) {
        return add_before(tx, values, load(before, {tx, combination(open_, values)}));
      });
    });
  }

  /// One lane of those with the same totals stores them to shared memory, and every thread adds those of its group of
  /// warps.
  void close_warps(const ThreadDigit& digit) {
    const BufferRef warps =
        make_buffer("warps", scan_.acc, MemoryScope::Shared,
                    {int_imm(kernel_.threads / kWarp), int_imm(lanes_kept(threads_)), int_imm(combinations(open_))});
    out_.push_back(alloc(warps));
    const auto warp_of = [](const Expr& tx) { return floor_div(tx, int_imm(kWarp)); };
    on_threads([&](const Expr& tx) {
      const Stmt leave = over(open_, [&](const Values& values) {
        const Expr number = combination(open_, values);
        return store(warps, {warp_of(tx), lane_place(tx, threads_), number}, load(total_, {tx, number}));
      });
      const Expr first = is_first_lane(tx);
      return first ? if_then(first, leave) : leave;
    });
    const BufferRef before = fragment("before", combinations(open_));
    on_threads([&](const Expr& tx) { return seq({clear(before, tx), clear(total_, tx)}); });
    on_threads([&](const Expr& tx) {
      const Expr own = floor_mod(floor_div(warp_of(tx), int_imm(digit.stride / kWarp)), int_imm(digit.extent));
      return over(open_, [&](const Values& values) {
        const Expr number = combination(open_, values);
        const VarRef w = make_var("w");
        const Expr source = warp_of(tx) + (Expr(w) - own) * int_imm(digit.stride / kWarp);
        const Expr value = load(warps, {source, lane_place(tx, threads_), number});
        const Expr earlier = scan_.reverse ? less(own, Expr(w)) : less(Expr(w), own);
        const std::vector<Expr> at = {tx, number};
        return for_loop(LoopKind::Unroll, w, int_imm(digit.extent),
                        seq({if_then(earlier, add(before, at, value)), add(total_, at, value)}));
      });
    });
    add_to_sums(before);
  }

  /// Is the thread the first of its lanes with the same totals? Null if each has its own.
  Expr is_first_lane(const Expr& tx) const {
    Expr first;
    for (const ThreadDigit& digit : threads_) {
      if (!digit.in_warp()) continue;
      const Expr zero = apply(Op::Eq, {thread_digit({digit.extent, digit.stride, axes::tx()}, tx, 0), int_imm(0)});
      first = first ? logical_and(first, zero) : zero;
    }
    return first;
  }

  void write() {
    on_elements(true, [&](const Expr& tx, const Digits& digits) {
      const Expr sum = load(sums_, {tx, digits.register_of(layout_, dims_)});
      const Buffer& buffer = *scan_.dst.buffer;
      const auto placed = kernel_.buffers.find(&buffer);
      const BufferRef target = placed == kernel_.buffers.end() ? scan_.dst.buffer : placed->second.buffer;
      if (const ThreadLayout* registers = kernel_.registers_of(buffer)) {
        return store(target, {tx, digits.register_of(*registers, dims_)}, cast(sum, target->dtype));
      }
      std::vector<Expr> at = region_indices(scan_.dst, digits.coords());
      for (Expr& index : at) index = kernel_.place(index);
      const Stmt result = store(target, at, cast(sum, target->dtype));
      const Expr first = is_first_replica(layout_, tx, kernel_.threads);
      return first ? if_then(first, result) : result;
    });
  }

  Scan scan_;
  const DividedKernel& kernel_;
  const Facts& facts_;
  const ThreadLayout& layout_;
  Span span_;
  std::vector<Expr> extents_;
  std::vector<int> dims_;
  std::vector<RegisterDigit> open_;  ///< of all dimensions; those of the scan that are not closed
  std::vector<RegisterDigit> closed_;
  std::vector<ThreadDigit> threads_;  ///< closed
  BufferRef sums_;  ///< running, within the closed digits
  BufferRef total_;  ///< of the closed digits, for each combination of the open ones
  std::vector<Stmt> out_;
};

}  // namespace

OperationDemand threads::demand_scan(const TileOp& op) {
  OperationDemand out;
  out.extents = op.region(0).shape();
  std::vector<int> all;
  for (size_t d = 0; d < out.extents.size(); ++d) all.push_back(static_cast<int>(d));
  out.elements = {{&op.region(0), all, false}, {&op.region(1), all, true}};
  out.at_once = true;
  return out;
}

Stmt threads::divide_scan(const TileOp& op, const DividedKernel& kernel, const Facts& facts) {
  return ScanDivision(op, kernel, facts).run();
}

}  // namespace helve
