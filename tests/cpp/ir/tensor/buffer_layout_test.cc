// Layouts of buffers: what stays together in memory, and memory in stages.
#include "helve/ir/tensor/buffer_layout.h"

#include <gtest/gtest.h>

#include "helve/layout/notation.h"

namespace helve {
namespace {

BufferRef memory(const std::vector<int64_t>& shape, const std::string& layout = "") {
  std::vector<Expr> extents;
  for (const int64_t extent : shape) extents.push_back(int_imm(extent));
  const BufferRef plain = make_buffer("x", kFloat32, MemoryScope::Shared, extents);
  return layout.empty() ? plain : with_layout(plain, parse_layout(layout), {});
}

int64_t address(const Layout& layout, int64_t element) { return layout.apply(element).front().at(axes::m()); }

/// The longest run that the buffer keeps, after a look at every one of that length.
int64_t longest_run(const std::string& text, const std::vector<int64_t>& shape) {
  const BufferRef buffer = memory(shape, text);
  const Layout layout = parse_layout(text);
  int64_t longest = 1;
  while (shape.back() % (2 * longest) == 0 && keeps_runs(*buffer, 2 * longest)) longest *= 2;
  for (int64_t first = 0; first < layout.size(); first += longest) {
    EXPECT_EQ(address(layout, first) % longest, 0) << text;
    for (int64_t k = 1; k < longest; ++k) EXPECT_EQ(address(layout, first + k), address(layout, first) + k) << text;
  }
  return longest;
}

TEST(BufferLayout, RunsThatStayTogether) {
  EXPECT_EQ(longest_run("S[(8, 16) : (16, 1)]", {8, 16}), 16);
  EXPECT_EQ(longest_run("S[(8, 16) : (17, 1)]", {8, 16}), 1);
  EXPECT_EQ(longest_run("S[(8, 16) : (20, 1)]", {8, 16}), 4);
  EXPECT_EQ(longest_run("S[(8, 16) : (1, 8)]", {8, 16}), 1);
  EXPECT_EQ(longest_run("S[(8, 4, 4) : (4, 32, 1)]", {8, 16}), 4);
  EXPECT_EQ(longest_run("S[(8, 16) : (16, 1)] ^ Swizzle(2, 3, 3)", {8, 16}), 8);
  EXPECT_EQ(longest_run("S[(8, 16) : (16, 1)] ^ Swizzle(3, 0, 4)", {8, 16}), 1);
  EXPECT_EQ(longest_run("S[(2, 4, 16) : (64, 16, 1)] ^ Swizzle(2, 2, -2)", {2, 4, 16}), 4);
  EXPECT_TRUE(keeps_runs(*memory({8, 12}), 4));
  EXPECT_FALSE(keeps_runs(*memory({8, 12}), 8));
}

TEST(BufferLayout, StagesAreCopiesOfTheBuffer) {
  for (const char* text : {"S[(8, 16) : (16, 1)] ^ Swizzle(2, 3, 3)", "S[(8, 16) : (19, 1)]",
                           "S[(8, 16) : (20, 1)] ^ Swizzle(2, 2, 3)", "S[(8, 16) : (1, 8)]"}) {
    const BufferRef one = memory({8, 16}, text), all = in_stages(*one, 3);
    EXPECT_EQ(constant_shape(all->shape), (std::vector<int64_t>{3, 8, 16}));
    const int64_t stride = address(*all->layout, 128);
    EXPECT_GE(stride, memory_elements(*one)) << text;
    EXPECT_EQ(stride % one->layout->swizzle().period(), 0) << text;
    for (int64_t element = 0; element < 3 * 128; ++element) {
      EXPECT_EQ(address(*all->layout, element), element / 128 * stride + address(*one->layout, element % 128)) << text;
    }
  }
  EXPECT_FALSE(in_stages(*memory({8, 16}), 2)->layout);
}

}  // namespace
}  // namespace helve
