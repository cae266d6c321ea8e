// The exact text of every refused call.
#include "arrays.h"

namespace helve::testing {
namespace {

class Calls : public ::testing::Test {
 protected:
  VarRef m = make_var("M");
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {m, idx(3)});
  BufferRef b = make_buffer("B", kFloat32, MemoryScope::Param, {m, idx(2)}, {}, {idx(4), idx(1)});
  VarRef s = make_var("s", {TypeCode::Int, 8});
  FunctionRef f = dynamic_function("main", {m}, {a, b, s}, seq({}));
  std::vector<float> data = std::vector<float>(64);

  Arg given(std::vector<int64_t> shape, std::vector<int64_t> strides = {}) {
    return TensorArg{data.data(), std::move(shape), std::move(strides)};
  }
  Arg good_a() { return given({5, 3}); }
  Arg good_b() { return given({5, 2}, {4, 1}); }
};

TEST_F(Calls, AreAcceptedWhenTheyFit) {
  EXPECT_EQ(error_text(f, {good_a(), good_b(), scalar(int64_t{-128})}), "no error");
  EXPECT_EQ(error_text(f, {given({1, 3}, {77, 1}), given({1, 2}, {4, 1}), scalar(int64_t{0})}), "no error");
}

TEST_F(Calls, Counts) {
  EXPECT_EQ(error_text(f, {good_a(), scalar(int64_t{1})}),
            "error[HV0601]: 'main' takes 2 tensor arguments, not 1\nhelp: its tensor parameters are: A, B");
  EXPECT_EQ(error_text(f, {good_a(), good_b()}),
            "error[HV0602]: 'main' takes 1 scalar argument, not 0\nhelp: its scalar parameters are: s");
  EXPECT_EQ(error_text(f, {good_a(), scalar(int64_t{1}), good_b()}),
            "error[HV0108]: 'main' cannot take a scalar for 'B': it is a tensor\nhelp: pass the arguments in the order "
            "of the parameters");
}

TEST_F(Calls, Shapes) {
  EXPECT_EQ(error_text(f, {given({5}), good_b(), scalar(int64_t{1})}),
            "error[HV0604]: 'A' has 2 dimensions, the argument has 1\nhelp: pass a tensor of 2 dimensions");
  EXPECT_EQ(error_text(f, {given({5, 4}), good_b(), scalar(int64_t{1})}),
            "error[HV0605]: dimension 1 of 'A' is 3, the argument's is 4\nhelp: pass a tensor of shape (5, 3)");
  EXPECT_EQ(error_text(f, {good_a(), given({6, 2}, {4, 1}), scalar(int64_t{1})}),
            "error[HV0606]: dimension 0 of 'B' is 'M', which 'A' set to 5; the argument's is 6\n"
            "help: pass arguments that agree on 'M'");
  EXPECT_EQ(error_text(f, {given({-1, 3}), good_b(), scalar(int64_t{1})}),
            "error[HV0607]: dimension 0 of the argument of 'A' is -1\nhelp: an extent is 0 or more");
}

TEST_F(Calls, StridesAndData) {
  EXPECT_EQ(error_text(f, {given({5, 3}, {1, 5}), good_b(), scalar(int64_t{1})}),
            "error[HV0608]: 'A' has strides (3, 1), the argument has (1, 5)\n"
            "help: pass a contiguous copy of the argument, or declare its strides on the parameter");
  EXPECT_EQ(error_text(f, {good_a(), given({5, 2}), scalar(int64_t{1})}),
            "error[HV0608]: 'B' has strides (4, 1), the argument has (2, 1)\n"
            "help: pass a tensor with strides (4, 1), or declare those of the argument: strides=(2, 1)");
  EXPECT_EQ(error_text(f, {TensorArg{nullptr, {5, 3}, {}}, good_b(), scalar(int64_t{1})}),
            "error[HV0613]: the argument of 'A' has 15 elements and no data\nhelp: pass a tensor that owns memory");
}

TEST_F(Calls, Scalars) {
  EXPECT_EQ(error_text(f, {good_a(), good_b(), scalar(1.5)}),
            "error[HV0614]: 's' is int8, the argument 1.5 is a float\nhelp: pass an integer, for example by int(x)");
  EXPECT_EQ(error_text(f, {good_a(), good_b(), scalar(int64_t{128})}),
            "error[HV0615]: 's' is int8, which cannot hold 128\nhelp: pass a value from -128 to 127");
}

TEST_F(Calls, EveryDynamicExtentIsSomeonesExtent) {
  const BufferRef twice = make_buffer("A", kFloat32, MemoryScope::Param, {Expr(m) * idx(2)});
  EXPECT_EQ(error_text(dynamic_function("main", {m}, {twice}, seq({})), {given({4})}),
            "error[HV0703]: 'M' is not the extent of any tensor parameter\n"
            "help: give one dimension of a tensor parameter the extent 'M' itself");
}

}  // namespace
}  // namespace helve::testing
