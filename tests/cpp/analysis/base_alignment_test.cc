// What accesses demand of the bases of buffers, and which of them stay constant.
#include "helve/analysis/base_alignment.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "helve/analysis/constant_buffers.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

TEST(BaseAlignment, IsThatOfTheWidestAccess) {
  const BufferRef a = param("A", kFloat32, {256}), b = param("B", kFloat32, {256}),
                  c = param("C", {TypeCode::Int, 8}, {256});
  const BufferRef d = param("D", kFloat64, {256}), s = shared("S", kFloat32, {256});
  const VarRef v = make_var("v");
  const Expr at(v);
  const Stmt lanes = for_loop(LoopKind::Vectorized, v, idx(4),
                              seq({store_vector(b, {at}, load_vector(a, {at}, 8), 16), store(b, {at}, load(d, {at}))}));
  EXPECT_EQ(base_alignments(lanes, {a, b, c, d}), (std::vector<int64_t>{8, 16, 1, 8}));
  const Stmt run = tile_op(TileOpcode::CpAsync, {box(a, {{idx(0), 2}}), box(s, {{idx(0), 2}})});
  EXPECT_EQ(base_alignments(run, {a, b}), (std::vector<int64_t>{8, 4}));
  const Stmt bulk = tile_op(TileOpcode::CpAsyncBulk, {whole_region(s), whole_region(b)});
  EXPECT_EQ(base_alignments(seq({run, bulk}), {a, b}), (std::vector<int64_t>{8, 16}));
}

/// The names of the constant buffers of a kernel.
std::vector<std::string> constant_in(const Stmt& body, const std::vector<MayAlias>& may_alias = {}) {
  const Stmt whole = kernel({make_var("b")}, {idx(1)}, 32, body);
  const Kernel& k = *as<Kernel>(whole);
  std::vector<std::string> out;
  for (const Buffer* buffer : constant_buffers(k, kernel_interface(k), may_alias)) out.push_back(buffer->name);
  std::sort(out.begin(), out.end());
  return out;
}

TEST(ConstantBuffers, AreReadAndNeverWritten) {
  const BufferRef a = param("A", kFloat32, {256}), b = param("B", kFloat32, {256}), c = param("C", kFloat32, {256});
  const Stmt copies = store(b, {idx(0)}, load(a, {idx(0)}) + load(c, {idx(1)}));
  EXPECT_EQ(constant_in(copies), (std::vector<std::string>{"A", "C"}));
  EXPECT_EQ(constant_in(copies, {MayAlias{{a, b}, {}, {}}}),
            (std::vector<std::string>{}));  // A may be B, and is loaded
  EXPECT_EQ(constant_in(seq({copies, store(a, {idx(1)}, load(b, {idx(1)}))})), (std::vector<std::string>{}));
}

}  // namespace
}  // namespace helve::testing
