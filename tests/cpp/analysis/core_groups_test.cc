// Groups of cores: numbers of members against the mesh's coordinates, one by one.
#include "helve/analysis/core_groups.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

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

TEST(CoreGroups, MembersAreTheCoresThatDifferOnTheAxesOnly) {
  const MeshShape mesh{{2, 3, 4}, {"x", "y", "z"}};
  const std::vector<VarRef> vars = {make_var("a"), make_var("b"), make_var("c")};
  const std::map<std::string, std::vector<size_t>> named = {
      {"x", {0}}, {"y", {1}}, {"z", {2}}, {"x, y", {0, 1}}, {"x, z", {0, 2}}, {"y, z", {1, 2}}, {"all", {0, 1, 2}}};
  for (const auto& [text, axes] : named) {
    const Stmt s = barrier(text.c_str());
    const TileOp& op = *as<TileOp>(s);
    for (size_t from = 0; from <= axes[0]; ++from) {
      int64_t cores = 1;
      for (size_t a = from; a < 3; ++a) cores *= mesh.extents[a];
      const CoreGroup group = group_of(op, mesh, vars, {from, cores});
      std::map<int64_t, std::set<int64_t>> members;  // by the group's number
      for (int64_t number = 0; number < 24; ++number) {
        const std::vector<int64_t> core = {number / 12, number / 4 % 3, number % 4};
        int64_t wanted = 0;  // row-major over the axes
        for (const size_t axis : axes) wanted = wanted * mesh.extents[axis] + core[axis];
        const int64_t me = at(group.me, vars, core);
        EXPECT_EQ(me, wanted) << text << from;
        if (number < cores) members[at(group.place, vars, core)].insert(me);
        for (int64_t m = 0; m < group.members; ++m) {
          const std::vector<Expr> there = member_coordinates(axes_of(op, mesh), mesh, vars, int_imm(m));
          std::vector<int64_t> other;
          for (const Expr& coordinate : there) other.push_back(at(coordinate, vars, core));
          for (size_t a = 0; a < 3; ++a) {
            const bool named_axis = std::find(axes.begin(), axes.end(), a) != axes.end();
            EXPECT_TRUE(named_axis || other[a] == core[a]) << text;
          }
          EXPECT_EQ(at(group.me, vars, other), m) << text;
          EXPECT_EQ(at(group.place, vars, other), at(group.place, vars, core)) << text;
        }
      }
      EXPECT_EQ(static_cast<int64_t>(members.size()), cores / group.members) << text << from;
      for (const auto& [place, all] : members) EXPECT_EQ(static_cast<int64_t>(all.size()), group.members) << place;
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
