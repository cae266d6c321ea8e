// The loops of one thread: together the threads meet every element once a replica, in the register that the layout
// says.
#include "digits.h"

#include <map>
#include <set>

#include "helve/arith/simplify.h"
#include "helve/threads/divide.h"
#include "ir/tensor/programs/build_ir.h"
#include "transform/run_pass.h"
#include "warp_digits.h"

namespace helve::testing {
namespace {

struct Division {
  std::vector<int64_t> domain, extents;
  int64_t threads, vector;
};

// Exact fits, a domain that the loop does not fill, one that it passes several times, threads that hold replicas.
const std::vector<Division> kDivisions = {
    {{4, 256}, {4, 256}, 128, 4}, {{16, 64}, {16, 64}, 32, 2}, {{8}, {8}, 128, 1},
    {{4, 64}, {3, 50}, 64, 1},    {{2, 32}, {7, 96}, 32, 1},   {{1, 8}, {1, 8}, 32, 8},
};

std::vector<int32_t> int32s(const std::vector<std::byte>& memory, size_t count) {
  std::vector<int32_t> out(count);
  std::memcpy(out.data(), memory.data(), count * sizeof(int32_t));
  return out;
}

/// What `body` leaves in a tensor of the division's extents and a last dimension of its threads: each thread has an
/// element of its own, so that replicas do not race.
std::vector<int32_t> run(const Division& division,
                         const std::function<Expr(const ThreadLayout&, const Digits&)>& value) {
  const ThreadLayout layout = spread(division.domain, division.threads, division.vector);
  std::vector<int64_t> shape = division.extents;
  shape.push_back(division.threads);
  const BufferRef out = param("A", kInt32, shape);
  const Stmt clear = [&] {
    std::vector<VarRef> vars;
    std::vector<Expr> begins, at;
    for (size_t d = 0; d < shape.size(); ++d) {
      vars.push_back(make_var("i"));
      begins.push_back(idx(0));
      at.push_back(Expr(vars.back()));
    }
    return for_loop(LoopKind::Parallel, vars, begins, extents(shape), store(out, at, int_imm(-1, kInt32)));
  }();
  const Stmt divided = thread_loop(division.threads, [&](const Expr& tx) {
    const Digits digits(layout, extents(division.extents), tx, {});
    std::vector<Expr> at = digits.coords();
    at.push_back(tx);
    return digits.nest(store(out, at, cast(value(layout, digits), kInt32)), false);
  });
  const FunctionRef f = function(
      "main", {out},
      seq({kernel({make_var("b")}, {idx(1)}, 1, clear), kernel({make_var("b")}, {idx(1)}, division.threads, divided)}));
  size_t count = 1;
  for (int64_t extent : shape) count *= static_cast<size_t>(extent);
  return int32s(interpret(f).front(), count);
}

TEST(Digits, EachElementIsInTheThreadsAndRegistersOfTheLayout) {
  for (const Division& division : kDivisions) {
    std::vector<int> dims;
    for (size_t d = 0; d < division.domain.size(); ++d) dims.push_back(static_cast<int>(d));
    const bool once = division.extents <= division.domain;  // else a register serves several passes
    const std::vector<int32_t> found = run(division, [&](const ThreadLayout& layout, const Digits& digits) {
      return once ? digits.register_of(layout, dims) : idx(0);
    });
    const ThreadLayout layout = spread(division.domain, division.threads, division.vector);
    const int64_t elements = static_cast<int64_t>(found.size()) / division.threads;
    for (int64_t flat = 0; flat < elements; ++flat) {
      std::vector<int64_t> coord(division.extents.size());
      for (size_t d = coord.size(), rest = static_cast<size_t>(flat); d-- > 0;) {
        const size_t extent = static_cast<size_t>(division.extents[d]);
        coord[d] = static_cast<int64_t>(rest % extent) % division.domain[d];
        rest /= extent;
      }
      std::map<int64_t, int64_t> expected;  // thread -> register
      for (const Point& point : layout.layout().apply(coord, division.domain)) {
        expected[point.at(axes::tx())] = once ? point.at(axes::reg()) : 0;
      }
      for (int64_t t = 0; t < division.threads; ++t) {
        const auto place = expected.find(t);
        ASSERT_EQ(found[static_cast<size_t>(flat * division.threads + t)], place == expected.end() ? -1 : place->second)
            << "element " << flat << ", thread " << t << " of " << division.threads;
      }
    }
  }
}

TEST(Digits, OneOfTheThreadsThatHoldAnElementIsTheFirst) {
  const ThreadLayout layout = spread({8}, 128, 1);
  const VarRef tx = make_var("tx");
  const Expr first = is_first_replica(layout, Expr(tx), 128);
  std::map<int64_t, int> firsts;  // element -> threads that say so
  for (int64_t i = 0; i < 8; ++i) {
    for (const Point& point : layout.layout().apply({i}, std::vector<int64_t>{8})) {
      const Expr answer = simplify(substitute(first, {{tx.get(), idx(point.at(axes::tx()))}}));
      firsts[i] += *int_value(answer) != 0;
    }
    EXPECT_EQ(firsts[i], 1) << i;
  }
  EXPECT_EQ(is_first_replica(spread({4, 256}, 128, 4), Expr(tx), 128), nullptr);
}

TEST(WarpDigits, PartAtTheEdgeOfAWarp) {
  const auto parts = [](int64_t extent, int64_t stride) {
    std::vector<std::pair<int64_t, int64_t>> out;
    for (const ThreadDigit& digit : split_at_warps({extent, stride, axes::tx()})) {
      out.emplace_back(digit.extent, digit.stride);
    }
    return out;
  };
  using Parts = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_EQ(parts(8, 2), (Parts{{8, 2}}));
  EXPECT_EQ(parts(128, 1), (Parts{{32, 1}, {4, 32}}));
  EXPECT_EQ(parts(12, 8), (Parts{{4, 8}, {3, 32}}));
  EXPECT_EQ(parts(3, 64), (Parts{{3, 64}}));
  EXPECT_EQ(parts(1, 1), Parts{});
}

TEST(WarpDigits, LanesThatDifferInTheDigitsAloneHaveOnePlace) {
  const std::vector<ThreadDigit> digits = {{2, 1}, {4, 4}, {8, 32}};  // lanes keep the digits of strides 2 and 16
  EXPECT_EQ(lanes_kept(digits), 4);
  const VarRef tx = make_var("tx");
  const Expr place = lane_place(Expr(tx), digits);
  for (int64_t t = 0; t < 64; ++t) {
    const int64_t expected = t / 2 % 2 + t / 16 % 2 * 2;
    EXPECT_EQ(constant_value(substitute(place, {{tx.get(), idx(t)}})), expected) << t;
  }
}

}  // namespace
}  // namespace helve::testing
