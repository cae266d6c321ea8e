// Matrix products on a GPU without tensor cores.
// All sums of a thread advance together, a few k after the other, so that an element of A or B is read once for all
// sums that use it. Each sum adds in the order of k either way.
#include "element_nest.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"
#include "over_elements.h"
#include "schedules.h"

namespace helve::cuda {

namespace {

/// The number of k that a sum advances by at a time: reads of contiguous elements become one, and elements of A leave
/// their registers before the next row's come. With one k of all sums at a time they stay for the whole group.
constexpr int64_t kTogether = 4;

class Product {
 public:
  Product(const TileOp& op, const Facts& facts)
      : a_(op.region(0)),
        b_(op.region(1)),
        c_(op.region(2)),
        transpose_a_(op.transposes(0)),
        transpose_b_(op.transposes(1)),
        clears_(*op.clears()),
        depth_(a_.shape()[transpose_a_ ? 0 : 1]),
        wide_(c_.buffer->dtype.is_small_float() ? kFloat32 : c_.buffer->dtype),
        facts_(facts) {}

  Stmt lower() const {
    const auto in_registers = [](const Region& region) { return region.buffer->scope == MemoryScope::Fragment; };
    const bool reads_shared = !in_registers(a_) && !in_registers(b_);
    return in_registers(c_) && reads_shared ? sums_together() : sum_by_sum();
  }

 private:
  Expr term(const Expr& i, const Expr& j, const Expr& k, const Expr& sum) const {
    const auto element = [&](const Region& region, bool transposed, const Expr& row, const Expr& column) {
      const std::vector<Expr> at = transposed ? std::vector<Expr>{column, row} : std::vector<Expr>{row, column};
      return cast(load(region.buffer, region_indices(region, at)), wide_);
    };
    const Expr left = element(a_, transpose_a_, i, k), right = element(b_, transpose_b_, k, j);
    return wide_.is_float() ? apply(Op::Fma, {left, right, sum}) : sum + left * right;
  }

  Expr start(const std::vector<Expr>& place) const {
    return clears_ ? number_imm(0, wide_) : cast(load(c_.buffer, place), wide_);
  }

  Stmt over_sums(const std::function<Stmt(const std::vector<Expr>&)>& body) const {
    return over_elements(c_.shape(), facts_, [&](const std::vector<Expr>& at, const Facts&) { return body(at); });
  }

  /// for piece: for i, j in Parallel: C[i, j] += A[i, k] * B[k, j], for each k of the piece. The sums are C itself, if
  /// it has their type.
  Stmt sums_together() const {
    const bool in_place = c_.buffer->dtype == wide_;
    const BufferRef sums = in_place ? c_.buffer : make_buffer("sums", wide_, MemoryScope::Fragment, c_.shape());
    const auto place = [&](const std::vector<Expr>& at) { return in_place ? region_indices(c_, at) : at; };
    std::vector<Stmt> out;
    if (!in_place) out.push_back(alloc(sums));
    if (!in_place || clears_) {
      out.push_back(over_sums(
          [&](const std::vector<Expr>& at) { return store(sums, place(at), start(region_indices(c_, at))); }));
    }
    const auto add = [&](const Expr& first, int64_t count) {
      return over_sums([&](const std::vector<Expr>& at) {
        std::vector<Stmt> steps;
        for (int64_t k = 0; k < count; ++k) {
          steps.push_back(store(sums, place(at), term(at[0], at[1], first + int_imm(k), load(sums, place(at)))));
        }
        return seq(std::move(steps));
      });
    };
    add_steps(add, &out);
    if (!in_place) {
      out.push_back(over_sums([&](const std::vector<Expr>& at) {
        return store(c_.buffer, region_indices(c_, at), cast(load(sums, at), c_.buffer->dtype));
      }));
    }
    return seq(std::move(out));
  }

  /// All k in order: whole groups of kTogether, then the rest.
  void add_steps(const std::function<Stmt(const Expr& first, int64_t count)>& add, std::vector<Stmt>* out) const {
    const Expr together = int_imm(kTogether);
    const Expr pieces = simplify(floor_div(depth_, together), facts_);
    const Expr rest = simplify(floor_mod(depth_, together), facts_);
    const VarRef piece = make_var("piece"), k = make_var("k");
    out->push_back(for_loop(LoopKind::Serial, piece, pieces, add(Expr(piece) * together, kTogether)));
    const int64_t* none = int_value(rest);
    if (!none || *none != 0) {
      out->push_back(for_loop(LoopKind::Serial, k, rest, add(pieces * together + Expr(k), 1)));
    }
  }

  /// for i, j in Parallel: for k: one thread computes a whole sum before the next.
  Stmt sum_by_sum() const {
    return over_sums([&](const std::vector<Expr>& at) {
      const BufferRef sum = make_buffer("sum", wide_, MemoryScope::Local, {int_imm(1)});
      const std::vector<Expr> only = {int_imm(0)};
      const std::vector<Expr> place = region_indices(c_, at);
      const VarRef k = make_var("k");
      const Stmt step = store(sum, only, term(at[0], at[1], Expr(k), load(sum, only)));
      return seq({alloc(sum), store(sum, only, start(place)), for_loop(LoopKind::Serial, k, depth_, step),
                  store(c_.buffer, place, cast(load(sum, only), c_.buffer->dtype))});
    });
  }

  const Region &a_, &b_, &c_;
  bool transpose_a_, transpose_b_, clears_;
  Expr depth_;
  DType wide_;
  const Facts& facts_;
};

}  // namespace

Stmt lower_gemm(const TileOp& op, const LoweringContext& context, std::string*) {
  return Product(op, *context.facts).lower();
}

}  // namespace helve::cuda
