// Collectives on meshes of several shapes against their definitions, and what stands around them.
#include <algorithm>
#include <functional>

#include "arrays.h"

namespace helve::testing {
namespace {

struct Mesh {
  int64_t rows, cols;
};

/// What core (r, c) holds at element e before a collective: no two are equal.
int held(int64_t rank, int64_t e) { return static_cast<int>(rank * 1000 + e); }

/// Runs one collective on every core of a mesh. Each core's src, of shape `src`, holds held(rank, e); `out[rank]` is
/// its dst, of shape `dst`, filled with -1 before.
class Collective {
 public:
  Collective(Mesh mesh, std::vector<int64_t> src, std::vector<int64_t> dst)
      : mesh_(mesh), src_shape_(std::move(src)), dst_shape_(std::move(dst)) {}

  std::vector<std::vector<int32_t>> run(const std::function<Stmt(Region src, Region dst)>& make) const {
    const int64_t cores = mesh_.rows * mesh_.cols;
    const BufferRef src = shared("src", kInt32, src_shape_), dst = shared("dst", kInt32, dst_shape_);
    std::vector<int64_t> out_shape = dst_shape_;
    out_shape.insert(out_shape.begin(), cores);
    const BufferRef out = param("out", kInt32, out_shape);
    const VarRef r = make_var("r"), c = make_var("c");
    const Expr rank = Expr(r) * idx(mesh_.cols) + c;
    std::vector<Expr> at;
    const Stmt fill = fill_from(src, rank, at);
    Region mine{out, {{rank, idx(1), true}}};
    for (int64_t e : dst_shape_) mine.ranges.push_back({idx(0), idx(e), false});
    const Stmt body =
        seq({alloc(src), alloc(dst), fill, tile_op(TileOpcode::Fill, {whole_region(dst), int_imm(-1, kInt32)}),
             make(whole_region(src), whole_region(dst)),
             tile_op(TileOpcode::Copy, {whole_region(dst), mine, int_imm(0, kInt32)})});
    const FunctionRef f = mesh_function("main", mesh_xy(mesh_.rows, mesh_.cols), {}, {out},
                                        kernel({r, c}, {idx(mesh_.rows), idx(mesh_.cols)}, 128, body));
    const std::vector<int32_t> flat = output_of<int32_t>(f, out_shape);
    const size_t size = flat.size() / static_cast<size_t>(cores);
    std::vector<std::vector<int32_t>> result;
    for (size_t k = 0; k < static_cast<size_t>(cores); ++k) {
      result.emplace_back(flat.begin() + static_cast<std::ptrdiff_t>(k * size),
                          flat.begin() + static_cast<std::ptrdiff_t>((k + 1) * size));
    }
    return result;
  }

 private:
  /// Loops that store held(rank, e) to every element of src.
  Stmt fill_from(const BufferRef& src, const Expr& rank, std::vector<Expr>& at) const {
    if (at.size() == src_shape_.size()) {
      Expr e = idx(0);
      for (size_t d = 0; d < at.size(); ++d) e = e * idx(src_shape_[d]) + at[d];
      return store(src, at, cast(rank * idx(1000) + e, kInt32));
    }
    const VarRef i = make_var("i");
    const int64_t extent = src_shape_[at.size()];
    at.push_back(i);
    return serial(i, idx(extent), {fill_from(src, rank, at)});
  }

  Mesh mesh_;
  std::vector<int64_t> src_shape_;
  std::vector<int64_t> dst_shape_;
};

/// The ranks of the group of `rank` over `axis`, in order.
std::vector<int64_t> group(Mesh m, const std::string& axis, int64_t rank) {
  std::vector<int64_t> out;
  const int64_t r = rank / m.cols, c = rank % m.cols;
  if (axis == "x") {
    for (int64_t i = 0; i < m.rows; ++i) out.push_back(i * m.cols + c);
  } else if (axis == "y") {
    for (int64_t j = 0; j < m.cols; ++j) out.push_back(r * m.cols + j);
  } else {
    for (int64_t k = 0; k < m.rows * m.cols; ++k) out.push_back(k);
  }
  return out;
}

struct Place {
  Mesh mesh;
  std::string axis;
};

class Collectives : public ::testing::TestWithParam<Place> {
 protected:
  Mesh mesh() const { return GetParam().mesh; }
  const std::string& axis() const { return GetParam().axis; }
  int64_t cores() const { return mesh().rows * mesh().cols; }
  std::vector<int64_t> group_of(int64_t rank) const { return group(mesh(), axis(), rank); }
  int64_t size() const { return static_cast<int64_t>(group_of(0).size()); }
  int64_t index_of(int64_t rank) const {
    const std::vector<int64_t> g = group_of(rank);
    return std::find(g.begin(), g.end(), rank) - g.begin();
  }
};

TEST_P(Collectives, Broadcast) {
  for (int64_t root = 0; root < size(); ++root) {
    const auto out = Collective(mesh(), {2, 3}, {2, 3}).run([&](Region s, Region d) {
      return tile_op(TileOpcode::CommBroadcast, {s, d, root, axis()});
    });
    for (int64_t k = 0; k < cores(); ++k) {
      for (int64_t e = 0; e < 6; ++e) {
        EXPECT_EQ(out[static_cast<size_t>(k)][static_cast<size_t>(e)], held(group_of(k)[static_cast<size_t>(root)], e));
      }
    }
  }
}

TEST_P(Collectives, AllGatherWithADimensionOfItsOwn) {
  const int64_t n = size();
  for (int64_t dim : {0, 1, 2, -1}) {
    std::vector<int64_t> shape = {2, 3};
    const int64_t at = dim < 0 ? dim + 3 : dim;
    shape.insert(shape.begin() + at, n);
    const auto out = Collective(mesh(), {2, 3}, shape).run([&](Region s, Region d) {
      return tile_op(TileOpcode::CommAllGather, {s, d, axis(), dim});
    });
    for (int64_t k = 0; k < cores(); ++k) {
      for (int64_t e = 0; e < 6 * n; ++e) {
        const std::vector<int64_t> index = {e / (shape[1] * shape[2]), e / shape[2] % shape[1], e % shape[2]};
        std::vector<int64_t> inside = index;
        inside.erase(inside.begin() + at);
        const int64_t from = group_of(k)[static_cast<size_t>(index[static_cast<size_t>(at)])];
        EXPECT_EQ(out[static_cast<size_t>(k)][static_cast<size_t>(e)], held(from, inside[0] * 3 + inside[1]));
      }
    }
  }
}

TEST_P(Collectives, AllGatherConcatenates) {
  const int64_t n = size();
  for (int64_t dim : {0, 1}) {
    const std::vector<int64_t> shape = {dim == 0 ? 2 * n : 2, dim == 1 ? 3 * n : 3};
    const auto out = Collective(mesh(), {2, 3}, shape).run([&](Region s, Region d) {
      return tile_op(TileOpcode::CommAllGather, {s, d, axis(), dim});
    });
    for (int64_t k = 0; k < cores(); ++k) {
      for (int64_t e = 0; e < 6 * n; ++e) {
        const int64_t r = e / shape[1], c = e % shape[1];
        const int64_t from = group_of(k)[static_cast<size_t>(dim == 0 ? r / 2 : c / 3)];
        EXPECT_EQ(out[static_cast<size_t>(k)][static_cast<size_t>(e)], held(from, r % 2 * 3 + c % 3));
      }
    }
  }
}

/// The elementwise combination of a group by the definition of `op`, on wrapping 32-bit integers.
int32_t combination(const std::string& op, const std::vector<int64_t>& members, int64_t e) {
  uint32_t value = static_cast<uint32_t>(held(members[0], e));
  for (size_t i = 1; i < members.size(); ++i) {
    const uint32_t v = static_cast<uint32_t>(held(members[i], e));
    value = op == "sum" ? value + v : op == "prod" ? value * v : op == "max" ? std::max(value, v) : std::min(value, v);
  }
  return static_cast<int32_t>(value);
}

TEST_P(Collectives, AllReduce) {
  for (const std::string op : {"sum", "prod", "max", "min"}) {
    const auto out = Collective(mesh(), {5}, {5}).run([&](Region s, Region d) {
      return tile_op(TileOpcode::CommAllReduce, {s, d, op, axis()});
    });
    for (int64_t k = 0; k < cores(); ++k) {
      for (int64_t e = 0; e < 5; ++e) {
        EXPECT_EQ(out[static_cast<size_t>(k)][static_cast<size_t>(e)], combination(op, group_of(k), e)) << op;
      }
    }
  }
}

TEST_P(Collectives, ReduceScatter) {
  const int64_t n = size();
  const auto apart = Collective(mesh(), {2, n, 3}, {2, 3}).run([&](Region s, Region d) {
    return tile_op(TileOpcode::CommReduceScatter, {s, d, std::string("sum"), axis(), int64_t{1}});
  });
  const auto within = Collective(mesh(), {2, 3 * n}, {2, 3}).run([&](Region s, Region d) {
    return tile_op(TileOpcode::CommReduceScatter, {s, d, std::string("max"), axis(), int64_t{-1}});
  });
  for (int64_t k = 0; k < cores(); ++k) {
    for (int64_t e = 0; e < 6; ++e) {
      const int64_t element = (e / 3 * n + index_of(k)) * 3 + e % 3;  // of both (2, n, 3) and (2, 3 * n)
      EXPECT_EQ(apart[static_cast<size_t>(k)][static_cast<size_t>(e)], combination("sum", group_of(k), element));
      EXPECT_EQ(within[static_cast<size_t>(k)][static_cast<size_t>(e)], combination("max", group_of(k), element));
    }
  }
}

TEST_P(Collectives, AllToAll) {
  const int64_t n = size();
  for (int64_t dim : {0, 1}) {
    const std::vector<int64_t> shape = {dim == 0 ? 2 * n : 2, dim == 1 ? 3 * n : 3};
    const auto out = Collective(mesh(), shape, shape).run([&](Region s, Region d) {
      return tile_op(TileOpcode::CommAllToAll, {s, d, axis(), dim});
    });
    for (int64_t k = 0; k < cores(); ++k) {
      for (int64_t e = 0; e < 6 * n; ++e) {
        const int64_t r = e / shape[1], c = e % shape[1];
        const int64_t part = dim == 0 ? r / 2 : c / 3;
        const int64_t row = dim == 0 ? index_of(k) * 2 + r % 2 : r, column = dim == 1 ? index_of(k) * 3 + c % 3 : c;
        EXPECT_EQ(out[static_cast<size_t>(k)][static_cast<size_t>(e)],
                  held(group_of(k)[static_cast<size_t>(part)], row * shape[1] + column));
      }
    }
  }
}

TEST_P(Collectives, Permute) {
  const int64_t n = size();
  for (int64_t shift : {1, 0, -1, 7}) {
    const auto out = Collective(mesh(), {4}, {4}).run([&](Region s, Region d) {
      return tile_op(TileOpcode::CommPermute, {s, d, shift, axis()});
    });
    for (int64_t k = 0; k < cores(); ++k) {
      const int64_t from = ((index_of(k) - shift) % n + n) % n;
      EXPECT_EQ(out[static_cast<size_t>(k)][3], held(group_of(k)[static_cast<size_t>(from)], 3));
    }
  }
}

TEST_P(Collectives, BarrierChangesNothing) {
  const auto out = Collective(mesh(), {4}, {4}).run([&](Region s, Region d) {
    return seq({tile_op(TileOpcode::Copy, {s, d, int_imm(0, kInt32)}), tile_op(TileOpcode::CommBarrier, {axis()})});
  });
  for (int64_t k = 0; k < cores(); ++k) EXPECT_EQ(out[static_cast<size_t>(k)][2], held(k, 2));
}

TEST_P(Collectives, SourceAndDestinationMayBeOneBuffer) {
  const auto out = Collective(mesh(), {4}, {4}).run([&](Region s, Region d) {
    return seq({tile_op(TileOpcode::CommPermute, {s, s, int64_t{1}, axis()}),
                tile_op(TileOpcode::Copy, {s, d, int_imm(0, kInt32)})});
  });
  for (int64_t k = 0; k < cores(); ++k) {
    const int64_t from = (index_of(k) + size() - 1) % size();
    EXPECT_EQ(out[static_cast<size_t>(k)][1], held(group_of(k)[static_cast<size_t>(from)], 1));
  }
}

INSTANTIATE_TEST_SUITE_P(Places, Collectives,
                         ::testing::Values(Place{{1, 1}, "all"}, Place{{1, 1}, "x"}, Place{{2, 2}, "x"},
                                           Place{{2, 2}, "y"}, Place{{2, 2}, "all"}, Place{{2, 3}, "x"},
                                           Place{{2, 3}, "y"}, Place{{2, 3}, "all"}, Place{{3, 2}, "x"},
                                           Place{{3, 2}, "y"}, Place{{3, 2}, "all"}));

TEST(Put, MovesBetweenTwoCores) {
  const std::vector<Expr> from = {idx(1), idx(2)}, to = {idx(0), idx(1)};
  const auto out = Collective({2, 3}, {4}, {4}).run([&](Region s, Region d) {
    return tile_op(TileOpcode::CommPut, {s, d, from, to});
  });
  for (size_t k = 0; k < 6; ++k) EXPECT_EQ(out[k][3], k == 1 ? held(5, 3) : -1);
}

TEST(Lockstep, ACollectiveMayStandUnderWhatIsUniformOverItsAxis) {
  // core row r runs r iterations of a loop with an all_reduce over y, and only row 2 passes the branch
  const BufferRef out = param("out", kInt32, {3, 2}), v = shared("v", kInt32, {1});
  const VarRef r = make_var("r"), c = make_var("c"), i = make_var("i");
  const Stmt sum =
      tile_op(TileOpcode::CommAllReduce, {whole_region(v), whole_region(v), std::string("sum"), std::string("y")});
  const Stmt body = seq({alloc(v), store(v, {idx(0)}, cast(Expr(c) + idx(1), kInt32)), serial(i, r, {sum}),
                         if_then(apply(Op::Eq, {r, idx(2)}), sum), store(out, {r, c}, load(v, {idx(0)}))});
  const FunctionRef f = mesh_function("main", mesh_xy(3, 2), {}, {out}, kernel({r, c}, {idx(3), idx(2)}, 128, body));
  EXPECT_EQ(output_of<int32_t>(f, {3, 2}), (std::vector<int32_t>{1, 2, 3, 3, 12, 12}));
}

TEST(Lockstep, WhileLoopsEndTogether) {
  // each core adds its neighbours' values until the sum over the mesh passes 100
  const BufferRef out = param("out", kInt32, {2, 2}), v = shared("v", kInt32, {1});
  const VarRef r = make_var("r"), c = make_var("c");
  const Stmt sum =
      tile_op(TileOpcode::CommAllReduce, {whole_region(v), whole_region(v), std::string("sum"), std::string("all")});
  const Stmt body =
      seq({alloc(v), store(v, {idx(0)}, int_imm(1, kInt32)),
           while_loop(less(load(v, {idx(0)}), int_imm(100, kInt32)), sum), store(out, {r, c}, load(v, {idx(0)}))});
  const FunctionRef f = mesh_function("main", mesh_xy(2, 2), {}, {out}, kernel({r, c}, {idx(2), idx(2)}, 128, body));
  EXPECT_EQ(output_of<int32_t>(f, {2, 2}), (std::vector<int32_t>{256, 256, 256, 256}));
}

TEST(HostBody, GlobalBuffersLivePerCoreAcrossKernels) {
  const BufferRef out = param("out", kInt32, {2, 3});
  const BufferRef g = make_buffer("g", kInt32, MemoryScope::Global, {idx(2)});
  const BufferRef all = make_buffer("all", kInt32, MemoryScope::Global, {idx(2), idx(3)});
  const VarRef r1 = make_var("r"), c1 = make_var("c"), r2 = make_var("r"), c2 = make_var("c"), b = make_var("b");
  const Stmt first =
      kernel({r1, c1}, {idx(2), idx(3)}, 128,
             seq({store(g, {idx(0)}, cast(r1, kInt32)), store(g, {idx(1)}, cast(Expr(c1) + b, kInt32))}));
  const Stmt gather =
      tile_op(TileOpcode::CommAllGather, {whole_region(g), whole_region(all), std::string("y"), int64_t{-1}});
  Expr total = load(all, {idx(0), idx(0)}) * int_imm(100, kInt32);
  for (int64_t k = 0; k < 3; ++k) total = total + load(all, {idx(1), idx(k)});
  const Stmt second = kernel({r2, c2}, {idx(2), idx(3)}, 128, store(out, {r2, c2}, load(out, {r2, c2}) + total));
  const FunctionRef f = mesh_function("main", mesh_xy(2, 3), {}, {out},
                                      seq({alloc(g), alloc(all), serial(b, idx(2), {first, gather, second})}));
  // iterations b = 0, 1: 100 * row + (0 + 1 + 2) + 3 * b
  EXPECT_EQ(output_of<int32_t>(f, {2, 3}), (std::vector<int32_t>{9, 9, 9, 209, 209, 209}));
}

TEST(HostBody, ALaunchFollowsTheWholeLaunchBefore) {
  // the second kernel reads what the last core of the first wrote
  const BufferRef out = param("out", kInt32, {4});
  const VarRef r1 = make_var("r"), c1 = make_var("c"), r2 = make_var("r"), c2 = make_var("c");
  const Stmt first = kernel({r1, c1}, {idx(2), idx(2)}, 128,
                            store(out, {Expr(r1) * idx(2) + c1}, cast(Expr(r1) * idx(2) + c1 + idx(5), kInt32)));
  const BufferRef seen = param("seen", kInt32, {4});
  const Stmt second = kernel({r2, c2}, {idx(2), idx(2)}, 128,
                             store(seen, {Expr(r2) * idx(2) + c2}, load(out, {idx(3) - (Expr(r2) * idx(2) + c2)})));
  const FunctionRef f = mesh_function("main", mesh_xy(2, 2), {}, {out, seen}, seq({first, second}));
  std::vector<int32_t> a(4), b(4);
  interp::run(f, {tensor(a, {4}), tensor(b, {4})});
  EXPECT_EQ(b, (std::vector<int32_t>{8, 7, 6, 5}));
}

TEST(MeshTensorCopy, MovesTilesOfTheOwnBlock) {
  // (7, 10) over 2 x 3: blocks (4, 4), the last short; tiles (3, 3)
  const int64_t m = 7, n = 10;
  const BufferRef a = param("A", kInt32, {m, n}), seen = param("seen", kInt32, {2, 3, 2, 2, 3, 3}),
                  b = param("B", kInt32, {m, n});
  const std::vector<std::pair<std::string, int64_t>> sharding = {{"x", 0}, {"y", 1}};
  const BufferRef t = shared("t", kInt32, {3, 3});
  const VarRef r = make_var("r"), c = make_var("c"), i = make_var("i"), j = make_var("j");
  const std::vector<Expr> coord = {i, j};
  const Region mine = box(seen, {{r, -1}, {c, -1}, {i, -1}, {j, -1}, {idx(0), 3}, {idx(0), 3}});
  const Stmt body =
      seq({alloc(t), serial(i, idx(2),
                            {serial(j, idx(2),
                                    {tile_op(TileOpcode::MeshTensorCopy,
                                             {whole_region(a), whole_region(t), coord, int_imm(-9, kInt32)}),
                                     tile_op(TileOpcode::Copy, {whole_region(t), mine, int_imm(0, kInt32)}),
                                     tile_op(TileOpcode::MeshTensorCopy,
                                             {whole_region(t), whole_region(b), coord, int_imm(0, kInt32)})})})});
  const FunctionRef f = mesh_function("main", mesh_xy(2, 3), {{a, sharding, {3, 3}, {}}, {b, sharding, {3, 3}, {}}},
                                      {a, b, seen}, kernel({r, c}, {idx(2), idx(3)}, 128, body));
  std::vector<int32_t> in = small_numbers<int32_t>(70, 11, 0, 1000), out(70, -1), tiles(6 * 36);
  interp::run(f, {tensor(in, {m, n}), tensor(out, {m, n}), tensor(tiles, {2, 3, 2, 2, 3, 3})});
  EXPECT_EQ(out, in);
  for (int64_t e = 0; e < 6 * 36; ++e) {
    const int64_t q = e % 3, p = e / 3 % 3, tj = e / 9 % 2, ti = e / 18 % 2, col = e / 36 % 3, row = e / 108;
    const int64_t x = ti * 3 + p, y = tj * 3 + q;  // inside the block
    const bool valid = x < 4 && y < 4 && row * 4 + x < m && col * 4 + y < n;
    EXPECT_EQ(tiles[static_cast<size_t>(e)], valid ? in[static_cast<size_t>((row * 4 + x) * n + col * 4 + y)] : -9);
  }
}

}  // namespace
}  // namespace helve::testing
