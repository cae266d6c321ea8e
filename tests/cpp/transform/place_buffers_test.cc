// Which buffers of a block stand on the stack.
#include "helve/ir/tensor/code_hints.h"
#include "run_pass.h"

namespace helve::testing {
namespace {

/// X + 1 through a buffer of each size, in words.
FunctionRef through(const std::vector<int64_t>& sizes) {
  const BufferRef x = param("X", kInt32, {1}), y = param("Y", kInt32, {1});
  std::vector<Stmt> body;
  Expr value = load(x, {idx(0)});
  for (size_t i = 0; i < sizes.size(); ++i) {
    const MemoryScope scope = i % 2 ? MemoryScope::Local : MemoryScope::Shared;
    const BufferRef own = make_buffer("own", kInt32, scope, {idx(sizes[i])});
    body.push_back(alloc(own));
    body.push_back(store(own, {idx(0)}, value));
    value = load(own, {idx(0)});
  }
  body.push_back(store(y, {idx(0)}, value + int_imm(1, kInt32)));
  return function("main", {x, y}, one_block(std::move(body)));
}

/// Which of the buffers stand there: 's' for the stack, '.' for others.
std::string places(const FunctionRef& f) {
  std::string out;
  walk(f->body, [&](const Stmt& s) {
    if (const Alloc* n = as<Alloc>(s)) out += n->buffer->place == ArrayPlace::Stack ? 's' : '.';
  });
  return out;
}

TEST(PlaceBuffers, SmallOnesStandOnTheStack) {
  expect_prints(place_buffers, through({4, 2049, 2048}), R"(
@T.prim_func
def main(X: T.Tensor((1,), "int32"), Y: T.Tensor((1,), "int32")):
    with T.Kernel(1) as bx:
        own = T.alloc_shared((4,), "int32", place="stack")
        own[0] = X[0]
        own_1 = T.alloc_local((2049,), "int32")
        own_1[0] = own[0]
        own_2 = T.alloc_shared((2048,), "int32", place="stack")
        own_2[0] = own_1[0]
        Y[0] = own_2[0] + 1
)");
  expect_same_results(place_buffers, through({4, 2049, 2048}));
}

TEST(PlaceBuffers, TheStackIsFilledInOrder) {
  EXPECT_EQ(places(place_buffers(through(std::vector<int64_t>(10, 2048)), {})), "ssssssss..");
  // 11 take 5952 bytes each, with their padding; 64 bytes are left for one more.
  std::vector<int64_t> sizes(11, 1488);
  sizes.insert(sizes.end(), {17, 16});
  EXPECT_EQ(places(place_buffers(through(sizes), {})), "sssssssssss.s");
}

TEST(PlaceBuffers, IsDecidedAnew) {
  const FunctionRef f = through({4, 2048});
  EXPECT_TRUE(structural_equal(without_code_hints(place_buffers(f, {})), f));
}

}  // namespace
}  // namespace helve::testing
