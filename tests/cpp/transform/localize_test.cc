// Annotated tensors as the part of one core: even and uneven blocks, and what needs another core's part.
#include "helve/transform/localize.h"

#include "run_pass.h"

namespace helve::testing {
namespace {

/// A mesh of 3 x 2 cores; A (100, 64) and B (102, 64) are cut over both axes in tiles of (16, 32).
struct Mesh {
  BufferRef a = param("A", kFloat32, {100, 64}), b = param("B", kFloat32, {102, 64});
  BufferRef tile = shared("tile", kFloat32, {16, 32});
  VarRef rid = make_var("rid"), cid = make_var("cid");

  FunctionRef function(std::vector<Stmt> body, bool with_b = true) const {
    body.insert(body.begin(), alloc(tile));
    std::vector<MeshTensor> placed = {{a, {{"x", 0}, {"y", 1}}, {16, 32}, {}}};
    if (with_b) placed.push_back({b, {{"x", 0}, {"y", 1}}, {16, 32}, {}});
    return mesh_function("main", mesh_xy(3, 2), std::move(placed), {a, b},
                         kernel({rid, cid}, {idx(3), idx(2)}, 128, seq(std::move(body))));
  }
  Stmt copy(const Region& from, const Region& to) const {
    return tile_op(TileOpcode::MeshTensorCopy, {from, to, std::vector<Expr>{idx(1), idx(0)}, f32(2)});
  }
};

TEST(Localize, GivesParametersTheExtentsOfABlock) {
  const Mesh m;
  const FunctionRef f =
      m.function({m.copy(whole_region(m.a), whole_region(m.tile)), m.copy(whole_region(m.tile), whole_region(m.b))});
  EXPECT_EQ(print(localize(f)), R"(A_0 = T.dyn("A_0")

@T.prim_func(mesh=T.Mesh((3, 2), ("x", "y")))
def main(A: T.Tensor((A_0, 32), "float32"), B: T.Tensor((34, 32), "float32")):
    with T.Kernel(3, 2) as (rid, cid):
        tile = T.alloc_shared((16, 32), "float32")
        T.copy(A[T.index(1) * 16:T.index(1) * 16 + 16, T.index(0) * 32:T.index(0) * 32 + 32], tile, pad=2.0)
        T.copy(tile, B[T.index(1) * 16:T.index(1) * 16 + 16, T.index(0) * 32:T.index(0) * 32 + 32], pad=2.0)
)");
}

TEST(Localize, RefusesWhatNeedsTheOthersParts) {
  const Mesh m;
  const auto told = [](const FunctionRef& f) {
    try {
      localize(f);
    } catch (const UserError& error) {
      return error.diagnostic().message();
    }
    return std::string("accepted");
  };
  const Stmt read = m.copy(whole_region(m.a), whole_region(m.tile));
  const Stmt direct = store(m.tile, {idx(0), idx(0)}, load(m.a, {Expr(m.rid), idx(0)}));
  EXPECT_EQ(
      told(m.function({direct})),
      "on a mesh of processes each has its own part of 'A': only T.mesh_tensor_copy is known to stay inside of it");
  EXPECT_EQ(told(m.function({read, store(m.b, {Expr(m.rid), Expr(m.cid)}, f32(1))}, false)),
            "on a mesh of processes each has its own part of 'B': it is written, and no annotation says which part is "
            "whose");
  EXPECT_EQ(
      told(m.function({tile_op(TileOpcode::Fill, {whole_region(m.b), f32(1)})})),
      "on a mesh of processes each has its own part of 'B': only T.mesh_tensor_copy is known to stay inside of it");
}

}  // namespace
}  // namespace helve::testing
