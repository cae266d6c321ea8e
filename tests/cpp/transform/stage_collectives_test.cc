// Where the sources of collectives stand: in shared memory for a cluster, in global memory for more cores.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// One collective of a mesh kernel from `from` to `to`, which are buffers of the kernel.
FunctionRef reducing(int64_t rows, int64_t columns, const char* axis, bool in_place = false) {
  const BufferRef a = param("A", kFloat32, {rows, columns, 4});
  const BufferRef part = shared("part", kFloat32, {4}), total = in_place ? part : shared("total", kFloat32, {4});
  const VarRef r = make_var("r"), c = make_var("c");
  const Region mine{a, {{Expr(r), idx(1), true}, {Expr(c), idx(1), true}, {idx(0), idx(4), false}}};
  std::vector<Stmt> body = {alloc(part)};
  if (!in_place) body.push_back(alloc(total));
  body.push_back(tile_op(TileOpcode::Copy, {mine, whole_region(part), f32(0)}));
  body.push_back(tile_op(TileOpcode::CommAllReduce,
                         {whole_region(part), whole_region(total), std::string("sum"), std::string(axis)}));
  body.push_back(tile_op(TileOpcode::Copy, {whole_region(total), mine, f32(0)}));
  return mesh_function("main", mesh_xy(rows, columns), {}, {a},
                       kernel({r, c}, {idx(rows), idx(columns)}, 128, seq(std::move(body))));
}

PassOptions clusters_of(int64_t blocks) {
  PassOptions options;
  options.machine.cluster_blocks = blocks;
  return options;
}

std::vector<BufferRef> homes(const FunctionRef& f, MemoryScope scope) {
  std::vector<BufferRef> out;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* alloc = as<Alloc>(s);
    if (alloc && alloc->buffer->scope == scope && alloc->buffer->name == "part_home") out.push_back(alloc->buffer);
  });
  return out;
}

TEST(StageCollectives, GroupsOfAClusterStayAsTheyAre) {
  expect_untouched(stage_collectives, reducing(2, 4, "y"), clusters_of(4));
  expect_untouched(stage_collectives, reducing(2, 3, "x"), clusters_of(6));
}

TEST(StageCollectives, LargerGroupsReadGlobalMemory) {
  for (const auto& [rows, columns, axis, blocks] :
       {std::tuple{2, 4, "y", 3}, std::tuple{2, 3, "x", 5}, std::tuple{4, 4, "all", 8}, std::tuple{1, 2, "y", 1}}) {
    const FunctionRef before = reducing(rows, columns, axis);
    const FunctionRef after = stage_collectives(before, clusters_of(blocks));
    verify(after);
    EXPECT_EQ(homes(after, MemoryScope::Global).size(), 1u) << print(after);
    EXPECT_EQ(interpret(before), interpret(after));
  }
}

TEST(StageCollectives, ACollectiveInPlaceReadsACopy) {
  const FunctionRef before = reducing(2, 4, "y", true);
  const FunctionRef after = stage_collectives(before, clusters_of(8));
  verify(after);
  EXPECT_EQ(homes(after, MemoryScope::Shared).size(), 1u) << print(after);
  EXPECT_EQ(interpret(before), interpret(after));
}

TEST(SplitMeshKernels, CoresThatMeetInAKernelAreNotSplit) {
  PassOptions options;
  options.cores_synchronize = true;
  expect_untouched(split_mesh_kernels, reducing(2, 4, "y"), options);
}

}  // namespace
}  // namespace helve::testing
