// The checks of a call: exact text of every code, and what must be accepted.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "helve/runtime/executor.h"
#include "helve/runtime/minifloat.h"
#include "helve/support/diagnostic.h"
#include "host_tensor.h"

namespace helve::runtime {
namespace {

using P = ScalarProgram;

/// f(A: float32[4, n], B: float32[n, 2 * n] written), a scalar k: int8.
Plan plan_of_two() {
  Plan plan;
  plan.name = "f";
  plan.slots = {"n", "k"};
  plan.params = {{"A", kFloat32, {P(4), BindSlot{0}}, {}, true, false, {}},
                 {"B", kFloat32, {BindSlot{0}, P::binary(ScalarOp::Mul, 2, P::slot(0))}, {}, false, true, {}}};
  plan.scalar_params = {{"k", {kDLInt, 8, 1}, 1}};
  return plan;
}

std::string error_of(const Plan& plan, const std::vector<TensorArgument>& tensors,
                     const std::vector<ScalarArgument>& scalars = {}, const CallOptions& options = {}) {
  try {
    Executor(plan, {}).call(tensors, scalars, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "accepted";
}

const std::vector<ScalarArgument> kOne = {int64_t{1}};

TEST(Arguments, Accepted) {
  HostTensor a(kFloat32, {4, 3}), b(kFloat32, {3, 6});
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(true), b.arg()}, kOne), "accepted");
}

TEST(Arguments, Counts) {
  HostTensor a(kFloat32, {4, 3}), b(kFloat32, {3, 6});
  EXPECT_EQ(error_of(plan_of_two(), {a.arg()}, kOne),
            "error[HV0601]: 'f' takes 2 tensor arguments, not 1\nhelp: its tensor parameters are: A, B");
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}),
            "error[HV0602]: 'f' takes 1 scalar argument, not 0\nhelp: its scalar parameters are: k");
  EXPECT_EQ(error_of(Plan{}, {}, kOne),
            "error[HV0602]: '' takes 0 scalar arguments, not 1\nhelp: its scalar parameters are: none");
}

TEST(Arguments, TypeRankAndShape) {
  HostTensor a(kFloat32, {4, 3}), b(kFloat32, {3, 6}), f64({kDLFloat, 64, 1}, {4, 3}), flat(kFloat32, {4}),
      wide(kFloat32, {5, 3}), odd(kFloat32, {3, 5}), longer(kFloat32, {4, 8});
  EXPECT_EQ(error_of(plan_of_two(), {f64.arg(), b.arg()}, kOne),
            "error[HV0603]: 'A' is float32, the argument is float64\nhelp: convert the argument to float32");
  EXPECT_EQ(error_of(plan_of_two(), {flat.arg(), b.arg()}, kOne),
            "error[HV0604]: 'A' has 2 dimensions, the argument has 1\nhelp: pass a tensor of 2 dimensions");
  EXPECT_EQ(error_of(plan_of_two(), {wide.arg(), b.arg()}, kOne),
            "error[HV0605]: dimension 0 of 'A' is 4, the argument's is 5\nhelp: pass a tensor of shape (4, 3)");
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), odd.arg()}, kOne),
            "error[HV0605]: dimension 1 of 'B' is 6, the argument's is 5\nhelp: pass a tensor of shape (3, 6)");
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), longer.arg()}, kOne),
            "error[HV0606]: dimension 0 of 'B' is 'n', which 'A' set to 3; the argument's is 4\nhelp: pass arguments "
            "that agree on 'n'");
  Plan plan = plan_of_two();
  plan.scalar_params[0].slot = 0;
  EXPECT_EQ(error_of(plan, {a.arg(), b.arg()}, {int64_t{9}}),
            "error[HV0606]: dimension 1 of 'A' is 'n', which 'k' set to 9; the argument's is 3\nhelp: pass arguments "
            "that agree on 'n'");
  int64_t negative[] = {4, -1};
  a.view().shape = negative;
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne),
            "error[HV0607]: dimension 1 of the argument of 'A' is -1\nhelp: an extent is 0 or more");
}

TEST(Arguments, Strides) {
  HostTensor b(kFloat32, {3, 6}), column(kFloat32, {4, 3}, {1, 4}), compact(kFloat32, {4, 3}, {3, 1}),
      one(kFloat32, {4, 1}, {1, 77}), b1(kFloat32, {1, 2}, {-5, 1});
  EXPECT_EQ(error_of(plan_of_two(), {column.arg(), b.arg()}, kOne),
            "error[HV0608]: 'A' has strides (3, 1), the argument has (1, 4)\n"
            "help: pass a contiguous copy of the argument, or declare its strides on the parameter");
  EXPECT_EQ(error_of(plan_of_two(), {compact.arg(), b.arg()}, kOne), "accepted");
  EXPECT_EQ(error_of(plan_of_two(), {one.arg(), b1.arg()}, kOne), "accepted");  // strides of extent 1 are not looked at
  Plan plan = plan_of_two();
  plan.params[0].strides = {1, 4};
  EXPECT_EQ(error_of(plan, {column.arg(), b.arg()}, kOne), "accepted");
  EXPECT_EQ(error_of(plan, {compact.arg(), b.arg()}, kOne),
            "error[HV0608]: 'A' has strides (1, 4), the argument has (3, 1)\n"
            "help: pass a tensor with strides (1, 4), or declare those of the argument: strides=(3, 1)");
  HostTensor plain(kFloat32, {4, 3});
  EXPECT_EQ(error_of(plan, {plain.arg(), b.arg()}, kOne),
            "error[HV0608]: 'A' has strides (1, 4), the argument has (3, 1)\n"
            "help: pass a tensor with strides (1, 4), or declare those of the argument: strides=(3, 1)");
}

TEST(Arguments, EmptyTensorsAreLegal) {
  HostTensor a(kFloat32, {4, 0}, {99, -3}), b(kFloat32, {0, 0});
  a.view().data = nullptr;
  b.view().data = nullptr;
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne), "accepted");
}

TEST(Arguments, DeviceAccessAndData) {
  HostTensor a(kFloat32, {4, 3}), b(kFloat32, {3, 6});
  a.view().device = {kDLCUDA, 1};
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne),
            "error[HV0609]: 'f' runs on the CPU, the argument of 'A' is on cuda:1\nhelp: copy the argument to the CPU, "
            "or compile for its device");
  a.view().device = {kDLCUDAHost, 0};
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne), "accepted");
  EXPECT_EQ(
      error_of(plan_of_two(), {a.arg(), b.arg(true)}, kOne),
      "error[HV0610]: 'B' is written, the argument is read-only\nhelp: pass a writable tensor, for example a copy");
  a.view().byte_offset = 2;
  EXPECT_EQ(
      error_of(plan_of_two(), {a.arg(), b.arg()}, kOne),
      "error[HV0612]: the data of the argument of 'A' is not aligned to 4 bytes\nhelp: pass a copy of the argument");
  a.view().data = nullptr;
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne),
            "error[HV0613]: the argument of 'A' has 12 elements and no data\nhelp: pass a tensor that owns memory");
}

TEST(Arguments, ReachBeyond64Bits) {
  const int64_t far = int64_t{1} << 60;
  Plan plan = plan_of_two();
  plan.params[0].strides = {P(far), P(1)};
  plan.params[1].strides = {P(6), P(-far)};
  HostTensor a(kFloat32, {4, 3}), b(kFloat32, {3, 6});
  int64_t rows_apart[] = {far, 1}, backwards[] = {6, -far};
  a.view().strides = rows_apart;
  b.view().strides = backwards;
  const std::string text = " lie further apart than 64-bit addresses reach\nhelp: pass a tensor that fits in memory";
  EXPECT_EQ(error_of(plan, {a.arg(), b.arg()}, kOne), "error[HV0617]: the elements of the argument of 'A'" + text);
  plan.params[0].strides = {P(far / 8), P(1)};
  rows_apart[0] = far / 8;  // 3 * 2^57 * 4 bytes and a little
  EXPECT_EQ(error_of(plan, {a.arg(), b.arg()}, kOne), "error[HV0617]: the elements of the argument of 'B'" + text);
}

TEST(Arguments, ExtentsBeyondAnyMachine) {
  HostTensor a(kFloat32, {4, 0}), b(kFloat32, {0, 0});
  int64_t shape[] = {4, kLargestExtent + 1}, other[] = {kLargestExtent + 1, 0};
  a.view().shape = shape;
  b.view().shape = other;
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne),
            "error[HV0618]: dimension 1 of the argument of 'A' is 281474976710657, more than any machine "
            "addresses\nhelp: pass a tensor "
            "of at most 281474976710656 elements in each dimension");
}

TEST(Arguments, CompactStridesOfHugeShapesSaturate) {
  // No memory holds these: the call ends with an error, whatever the product of the extents.
  Plan plan = plan_of_two();
  plan.params = {{"A", kFloat32, {P(2), P(int64_t{1} << 40), P(int64_t{1} << 40)}, {}, true, false, {}}};
  HostTensor small(kFloat32, {1, 1, 1});
  int64_t shape[] = {2, int64_t{1} << 40, int64_t{1} << 40};
  small.view().shape = shape;
  EXPECT_EQ(
      error_of(plan, {small.arg()}, kOne),
      "error[HV0617]: the elements of the argument of 'A' lie further apart than 64-bit addresses reach\nhelp: pass a "
      "tensor that fits in memory");
}

TEST(Arguments, Overlap) {
  HostTensor memory(kFloat32, {100});
  HostTensor a(kFloat32, {4, 3}), b(kFloat32, {3, 6});
  a.view().data = b.view().data = memory.view().data;
  const std::string text =
      "error[HV0611]: the arguments of 'A' and 'B' share memory, and 'B' is written\n"
      "help: pass tensors that do not overlap, or declare at the head of the function that they may: T.may_alias(A, "
      "B) (then target=\"interp\" with check=\"races\" tells whether iterations or blocks depend on each other)";
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne), text);
  b.view().byte_offset = 11 * 4;
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne), text);
  b.view().byte_offset = 12 * 4;
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, kOne), "accepted");
  b.view().byte_offset = 0;
  for (size_t p : {0u, 1u}) {
    Plan plan = plan_of_two();
    plan.params[p].may_alias = {1 - static_cast<int64_t>(p)};
    EXPECT_EQ(error_of(plan, {a.arg(), b.arg()}, kOne), "accepted");
  }
  Plan plan = plan_of_two();
  plan.params[1].written = false;
  EXPECT_EQ(error_of(plan, {a.arg(), b.arg()}, kOne), "accepted");
}

TEST(Arguments, OverlapOfStridedTensorsIsExact) {
  std::mt19937 rng(5);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int64_t>(low, high)(rng); };
  HostTensor memory(kFloat32, {1000});
  int met = 0, apart_in_one_range = 0;
  for (int round = 0; round < 3000; ++round) {
    Plan plan;
    plan.name = "g";
    HostTensor tensors[2] = {{kFloat32, {pick(1, 4), pick(1, 4)}}, {kFloat32, {pick(1, 4), pick(1, 4)}}};
    std::set<int64_t> touched[2];
    std::vector<int64_t> strides[2];
    for (int t : {0, 1}) {
      DLTensor& view = tensors[t].view();
      strides[t] = {pick(-12, 12), pick(-4, 4)};
      view.data = memory.view().data;
      const int64_t offset = 400 + pick(-20, 20);
      view.byte_offset = static_cast<uint64_t>(offset) * 4;
      view.strides = strides[t].data();
      for (int64_t i = 0; i < view.shape[0]; ++i) {
        for (int64_t j = 0; j < view.shape[1]; ++j) touched[t].insert(offset + i * strides[t][0] + j * strides[t][1]);
      }
      plan.params.push_back({t == 0 ? "A" : "B",
                             kFloat32,
                             {P(view.shape[0]), P(view.shape[1])},
                             {strides[t][0], strides[t][1]},
                             true,
                             t == 1,
                             {}});
    }
    bool meet = false;
    for (int64_t e : touched[0]) meet = meet || touched[1].count(e) != 0;
    const DLTensor& written = tensors[1].view();
    const bool separate = static_cast<int64_t>(touched[1].size()) == written.shape[0] * written.shape[1];
    const bool accepted = error_of(plan, {tensors[0].arg(), tensors[1].arg()}) == "accepted";
    ASSERT_EQ(accepted, !meet && separate) << round;
    met += meet;
    apart_in_one_range +=
        !meet && *touched[0].begin() <= *touched[1].rbegin() && *touched[1].begin() <= *touched[0].rbegin();
  }
  EXPECT_GT(met, 100);
  EXPECT_GT(apart_in_one_range, 100);
}

TEST(Arguments, HalvesOfAMatrixDoNotOverlap) {
  HostTensor matrix(kFloat32, {1000, 64});
  HostTensor left(kFloat32, {1000, 32}, {64, 1}), right(kFloat32, {1000, 32}, {64, 1});
  left.view().data = right.view().data = matrix.view().data;
  right.view().byte_offset = 32 * 4;
  Plan plan;
  plan.name = "h";
  for (const char* name : {"L", "R"})
    plan.params.push_back({name, kFloat32, {P(1000), P(32)}, {64, 1}, true, true, {}});
  EXPECT_EQ(error_of(plan, {left.arg(), right.arg()}), "accepted");
  right.view().byte_offset = 31 * 4;
  EXPECT_NE(error_of(plan, {left.arg(), right.arg()}), "accepted");
}

std::vector<int64_t> seen;
void record(void* const*, const int64_t* scalars, int64_t, int64_t, std::byte*) { seen.push_back(scalars[0]); }

int64_t scalar_seen(DLDataType dtype, ScalarArgument value) {
  Plan plan;
  plan.name = "s";
  plan.slots = {"v"};
  plan.scalar_params = {{"v", dtype, 0}};
  plan.steps = {{Launch{0, "record", 1, {}, {P::slot(0)}}}};
  seen.clear();
  Executor(plan, {record}).call({}, std::vector{value});
  return seen.at(0);
}

TEST(Arguments, Scalars) {
  HostTensor a(kFloat32, {4, 3}), b(kFloat32, {3, 6});
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, {1.5}),
            "error[HV0614]: 'k' is int8, the argument 1.5 is a float\nhelp: pass an integer, for example by int(x)");
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, {int64_t{128}}),
            "error[HV0615]: 'k' is int8, which cannot hold 128\nhelp: pass a value from -128 to 127");
  EXPECT_EQ(error_of(plan_of_two(), {a.arg(), b.arg()}, {int64_t{-129}}),
            "error[HV0615]: 'k' is int8, which cannot hold -129\nhelp: pass a value from -128 to 127");
  EXPECT_EQ(scalar_seen({kDLInt, 8, 1}, int64_t{-128}), -128);
  EXPECT_EQ(scalar_seen({kDLUInt, 32, 1}, int64_t{4294967295}), 4294967295);
  EXPECT_EQ(scalar_seen({kDLInt, 64, 1}, std::numeric_limits<int64_t>::min()), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(scalar_seen({kDLBool, 8, 1}, int64_t{1}), 1);
  EXPECT_THROW(scalar_seen({kDLBool, 8, 1}, int64_t{2}), UserError);
  EXPECT_THROW(scalar_seen({kDLUInt, 8, 1}, int64_t{-1}), UserError);
  EXPECT_EQ(scalar_seen({kDLFloat, 32, 1}, 1.5), std::bit_cast<uint32_t>(1.5f));
  EXPECT_EQ(scalar_seen({kDLFloat, 32, 1}, int64_t{-2}), std::bit_cast<uint32_t>(-2.0f));
  EXPECT_EQ(scalar_seen({kDLFloat, 64, 1}, 0.1), std::bit_cast<int64_t>(0.1));
  EXPECT_EQ(scalar_seen({kDLFloat, 16, 1}, 1.0), 0x3c00);
  EXPECT_EQ(scalar_seen({kDLBfloat, 16, 1}, 1.0), 0x3f80);
  EXPECT_EQ(scalar_seen({kDLFloat8_e4m3fn, 8, 1}, -1.0), 0xb8);
  EXPECT_EQ(scalar_seen({kDLFloat8_e5m2, 8, 1}, int64_t{1}), 0x3c);
}

TEST(Arguments, NarrowScalarsRoundOnce) {
  // Just above the midpoint of two neighbours; float32 would round it onto the midpoint, which then goes to even.
  EXPECT_EQ(scalar_seen({kDLFloat, 16, 1}, 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 0x3c01);
  EXPECT_EQ(scalar_seen({kDLBfloat, 16, 1}, 1.0 + std::ldexp(1.0, -8) + std::ldexp(1.0, -40)), 0x3f81);
  EXPECT_EQ(scalar_seen({kDLFloat8_e4m3fn, 8, 1}, 1.0 + std::ldexp(1.0, -4) + std::ldexp(1.0, -40)), 0x39);
  EXPECT_EQ(scalar_seen({kDLFloat, 16, 1}, -1.0 - std::ldexp(1.0, -11) - std::ldexp(1.0, -40)), 0xbc01);
  EXPECT_EQ(scalar_seen({kDLFloat, 16, 1}, 1.0 + std::ldexp(1.0, -11) - std::ldexp(1.0, -40)), 0x3c00);
}

TEST(Arguments, BufferSizes) {
  Plan plan;
  plan.name = "b";
  plan.slots = {"n"};
  plan.scalar_params = {{"n", {kDLInt, 64, 1}, 0}};
  plan.buffers = {{"tmp", kFloat32, P::binary(ScalarOp::Sub, P::slot(0), 3), false, 64}};
  plan.steps = {{Allocate{0}}};
  EXPECT_EQ(error_of(plan, {}, {int64_t{3}}), "accepted");
  EXPECT_EQ(error_of(plan, {}, {int64_t{1}}),
            "error[HV0622]: buffer 'tmp' would have -2 elements\nhelp: pass arguments for which 'n - 3' is 0 or more");
  EXPECT_EQ(error_of(plan, {}, {(int64_t{1} << 60) - 1 + 3}),
            "error[HV0623]: buffer 'tmp' of 4611686018427387900 bytes cannot be allocated\nhelp: pass smaller tensors, "
            "or free memory");
  EXPECT_EQ(error_of(plan, {}, {std::numeric_limits<int64_t>::max()}),
            "error[HV0623]: buffer 'tmp' of more than 4611686018427387904 bytes cannot be allocated\n"
            "help: pass smaller tensors, or free memory");
}

TEST(Arguments, FaultsStandAtTheCall) {
  const CallOptions options{nullptr, {intern_file("call.py"), 7, 3, 7, 9}};
  EXPECT_EQ(error_of(plan_of_two(), {}, {}, options),
            "error[HV0601]: 'f' takes 2 tensor arguments, not 0\n  --> call.py:7:3\nhelp: its tensor parameters "
            "are: A, B");
}

}  // namespace
}  // namespace helve::runtime
