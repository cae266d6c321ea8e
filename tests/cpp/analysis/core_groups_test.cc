// Groups of cores: numbers of members against the mesh's coordinates, one by one.
#include "helve/analysis/core_groups.h"

#include <gtest/gtest.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

Stmt barrier(const char* axis) { return tile_op(TileOpcode::CommBarrier, {std::string(axis)}); }

int64_t at(const Expr& e, const std::vector<VarRef>& vars, const std::vector<int64_t>& core) {
  Substitution values;
  for (size_t a = 0; a < vars.size(); ++a) values.emplace(vars[a].get(), int_imm(core[a]));
  return *constant_value(substitute(e, values));
}

TEST(CoreGroups, MembersAreTheCoresThatDifferOnTheAxisOnly) {
  const MeshShape mesh{{2, 3, 4}, {"x", "y", "z"}};
  const std::vector<VarRef> vars = {make_var("a"), make_var("b"), make_var("c")};
  for (const char* axis : {"x", "y", "z", "all"}) {
    const Stmt s = barrier(axis);
    const TileOp& op = *as<TileOp>(s);
    const size_t first_axis = axis_of(op, mesh).value_or(0);
    for (size_t from = 0; from <= first_axis; ++from) {
      int64_t cores = 1;
      for (size_t a = from; a < 3; ++a) cores *= mesh.extents[a];
      const CoreGroup group = group_of(op, mesh, vars, {from, cores});
      for (int64_t x = 0; x < 2; ++x)
        for (int64_t y = 0; y < 3; ++y)
          for (int64_t z = 0; z < 4; ++z) {
            const std::vector<int64_t> core = {x, y, z};
            const int64_t number = ((x * 3 + y) * 4 + z) % cores;
            const int64_t me = at(group.me, vars, core);
            EXPECT_EQ(at(group.number(int_imm(me)), vars, core), number) << axis << from;
            for (int64_t m = 0; m < group.members; ++m) {
              std::vector<int64_t> other = core;
              if (axis_of(op, mesh)) {
                other[first_axis] = m;
              } else {
                other = {m / 12, m / 4 % 3, m % 4};
              }
              const int64_t there = ((other[0] * 3 + other[1]) * 4 + other[2]) % cores;
              EXPECT_EQ(at(group.number(int_imm(m)), vars, core), there) << axis << from;
              EXPECT_EQ(at(group.place, vars, core), at(group.place, vars, other));
            }
          }
    }
  }
}

TEST(CoreGroups, TheSpanHoldsEveryGroup) {
  const MeshShape mesh{{2, 3}, {"x", "y"}};
  const std::vector<VarRef> vars = {make_var("a"), make_var("b")};
  const auto span = [&](std::vector<Stmt> body) {
    const Stmt k = kernel(vars, {int_imm(2), int_imm(3)}, 32, seq(std::move(body)));
    return span_of_collectives(*as<Kernel>(k), mesh);
  };
  EXPECT_EQ(span({barrier("y")}).cores, 3);
  EXPECT_EQ(span({barrier("y")}).axis, 1u);
  EXPECT_EQ(span({barrier("x")}).cores, 6);
  EXPECT_EQ(span({barrier("y"), barrier("all")}).cores, 6);
  EXPECT_EQ(whole_span(mesh).cores, 6);
}

}  // namespace
}  // namespace helve::testing
