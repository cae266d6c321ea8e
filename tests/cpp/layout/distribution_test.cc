// Distributions: blocks by counting elements, the known placements, and what is refused.
#include "helve/layout/distribution.h"

#include "oracle.h"

namespace helve {
namespace {

const std::vector<Axis>& device_axes() {
  static const std::vector<Axis> all = {Axis::make("da", AxisKind::Device), Axis::make("db", AxisKind::Device),
                                        Axis::make("dc", AxisKind::Device)};
  return all;
}

std::vector<MeshAxis> mesh_of(const std::vector<int64_t>& extents) {
  std::vector<MeshAxis> mesh;
  for (size_t a = 0; a < extents.size(); ++a) mesh.push_back({device_axes()[a], extents[a]});
  return mesh;
}

/// What one level says of one axis of the mesh.
struct Deal {
  char entry;    // 'x' + dimension, '*' or '0' + number
  int64_t extent;
};

/// Whether a device holds an element, and where: block numbers by division, level after level as one count.
bool holds(const std::vector<Deal>& deals, const std::vector<int64_t>& shape, const std::vector<int64_t>& device,
           const std::vector<int64_t>& element, int64_t& address) {
  address = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t devices = 1;
    int64_t mine = 0;
    for (size_t a = 0; a < deals.size(); ++a) {
      if (deals[a].entry != static_cast<char>('x' + d)) continue;
      devices *= deals[a].extent;
      mine = mine * deals[a].extent + device[a];
    }
    int64_t block = std::max<int64_t>(1, (shape[d] + devices - 1) / devices);
    if (element[d] / block != mine) return false;
    address = address * block + element[d] % block;
  }
  for (size_t a = 0; a < deals.size(); ++a) {
    if (deals[a].entry >= '0' && deals[a].entry <= '9' && device[a] != deals[a].entry - '0') return false;
  }
  return true;
}

/// Every device and every element: the layout places it exactly where the definition says, and the parts agree.
void check(const std::vector<Deal>& deals, const std::vector<int64_t>& shape) {
  std::string text = shape.size() == 1 ? "x -> " : "xy -> ";
  std::vector<int64_t> extents;
  for (const Deal& deal : deals) {
    text += deal.entry;
    extents.push_back(deal.extent);
  }
  std::vector<MeshAxis> mesh = mesh_of(extents);
  Distribution made = distribute({text}, shape, mesh);
  ASSERT_TRUE(made.layout.is_injective()) << text;
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  int64_t devices = 1;
  for (int64_t extent : extents) devices *= extent;
  for (size_t d = 0; d < shape.size(); ++d) ASSERT_GE(made.domain[d], shape[d]);
  for (int64_t rank = 0; rank < devices; ++rank) {
    std::vector<int64_t> device = unflatten(rank, extents);
    int64_t held = 0;
    auto part = made.part(device);
    for (int64_t e = 0; e < elements; ++e) {
      std::vector<int64_t> element = unflatten(e, shape);
      int64_t address = 0;
      bool here = holds(deals, shape, device, element, address);
      held += here;
      oracle::Place expected = oracle::place({{axes::m(), address}});
      for (size_t a = 0; a < mesh.size(); ++a) {
        if (device[a] != 0) expected[mesh[a].axis] = device[a];
      }
      auto places = oracle::points(made.layout, flatten(element, made.domain));
      bool found = false;
      for (const oracle::Place& place : places) {
        bool same = true;
        for (const MeshAxis& each : mesh) {
          auto it = place.find(each.axis);
          auto mine = expected.find(each.axis);
          same = same && (it == place.end() ? 0 : it->second) == (mine == expected.end() ? 0 : mine->second);
        }
        if (same) {
          ASSERT_EQ(place, expected) << text;
        }
        found = found || same;
      }
      ASSERT_EQ(found, here) << text;
      if (here) {
        for (size_t d = 0; d < shape.size(); ++d) {
          ASSERT_GE(element[d], part->begin[d]);
          ASSERT_LT(element[d], part->begin[d] + part->extents[d]);
        }
      }
    }
    int64_t stated = part ? 1 : 0;
    if (part) {
      for (int64_t extent : part->extents) stated *= extent;
    }
    ASSERT_EQ(stated, held) << text << " on device " << rank;
  }
}

TEST(LayoutDistribution, EveryPlacementOfSmallTensors) {
  std::vector<std::vector<int64_t>> shapes = {{1}, {5}, {6}, {0}, {4, 6}, {5, 7}, {1, 3}, {2, 0}};
  std::vector<std::vector<int64_t>> meshes = {{1}, {2}, {4}, {2, 3}, {3, 2}, {1, 4}, {2, 1, 3}};
  int count = 0;
  for (const auto& shape : shapes) {
    for (const auto& extents : meshes) {
      std::string choices = shape.size() == 1 ? "x*0" : "xy*0";
      std::vector<size_t> choice(extents.size(), 0);
      while (true) {
        std::vector<Deal> deals;
        bool once = true;
        for (size_t a = 0; a < extents.size(); ++a) {
          char entry = choices[choice[a]];
          if (entry == '0') entry = static_cast<char>('0' + extents[a] - 1);
          for (const Deal& deal : deals) once = once && !(deal.entry == entry && (entry == 'x' || entry == 'y'));
          deals.push_back({entry, extents[a]});
        }
        if (once) {
          ++count;
          check(deals, shape);
          if (HasFatalFailure()) return;
        }
        size_t a = 0;
        while (a < choice.size() && ++choice[a] == choices.size()) choice[a++] = 0;
        if (a == choice.size()) break;
      }
    }
  }
  EXPECT_GT(count, 400);
}

TEST(LayoutDistribution, KnownPlacements) {
  auto text = [](const std::vector<std::string>& levels, const std::vector<int64_t>& shape,
                 const std::vector<int64_t>& extents) {
    return to_string(distribute(levels, shape, mesh_of(extents)).layout);
  };
  EXPECT_EQ(text({"x -> x"}, {100}, {10}), "S[(10, 10) : (1@da, 1)]");
  EXPECT_EQ(text({"xy -> x"}, {100, 100}, {10}), "S[(10, 10, 100) : (1@da, 100, 1)]");
  EXPECT_EQ(text({"xy -> xy"}, {100, 100}, {10, 10}), "S[(10, 10, 10, 10) : (1@da, 10, 1@db, 1)]");
  EXPECT_EQ(text({"xy -> xy0"}, {100, 100}, {10, 10, 10}), "S[(10, 10, 10, 10) : (1@da, 10, 1@db, 1)] + 0@dc");
  EXPECT_EQ(text({"xy -> x y *"}, {100, 100}, {10, 10, 10}),
            "S[(10, 10, 10, 10) : (1@da, 10, 1@db, 1)] + R[10 : 1@dc]");
  EXPECT_EQ(text({"xyz -> xy"}, {100, 100, 100}, {10, 10}), "S[(10, 10, 10, 10, 100) : (1@da, 1000, 1@db, 100, 1)]");
  EXPECT_EQ(text({"xy -> yx"}, {4, 6}, {2, 4}), "S[(4, 2, 3) : (1@db, 1@da, 1)]");
  EXPECT_EQ(text({"row col -> row *"}, {4, 6}, {2, 2}), "S[(2, 2, 6) : (1@da, 6, 1)] + R[2 : 1@db]");
  EXPECT_EQ(text({"->*"}, {}, {3}), "S[() : ()] + R[3 : 1@da]");
}

TEST(LayoutDistribution, ColoursOfA4x4TensorOnTwoPlanes) {
  Distribution made = distribute({"xy -> xy*"}, {4, 4}, mesh_of({2, 2, 2}));
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      std::set<std::vector<int64_t>> devices;
      for (const Point& p : made.layout.apply({i, j}, {4, 4})) {
        devices.insert({p.at(device_axes()[0]), p.at(device_axes()[1]), p.at(device_axes()[2])});
      }
      EXPECT_EQ(devices, (std::set<std::vector<int64_t>>{{i / 2, j / 2, 0}, {i / 2, j / 2, 1}}));
    }
  }
}

TEST(LayoutDistribution, TwoLevelsCountTheirDevicesTogether) {
  Distribution made = distribute({"xy -> x y", "xy -> x"}, {10, 4}, mesh_of({2, 2, 3}));
  EXPECT_EQ(made.block, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(made.domain, (std::vector<int64_t>{12, 4}));
  EXPECT_EQ(made.part({1, 0, 1})->begin, (std::vector<int64_t>{8, 0}));
  EXPECT_EQ(made.part({1, 1, 1})->extents, (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(made.part({1, 1, 2})->extents, (std::vector<int64_t>{0, 2}));
  Distribution sum = distribute({"x -> x +"}, {8}, mesh_of({2, 4}));
  EXPECT_EQ(sum.partial, (std::vector<Partial>{{device_axes()[1], PartialOp::Sum}}));
  EXPECT_EQ(to_string(sum.layout), "S[(2, 4) : (1@da, 1)]");
}

TEST(LayoutDistribution, Refusals) {
  std::string help =
      "\nhelp: a distribution reads like 'x y -> x y': the tensor's dimensions, then for each mesh axis the dimension "
      "that "
      "it cuts, '*' for copies, a number for the one coordinate that holds the data, '+' for the terms of a sum, "
      "'prod', 'max' or 'min' for those of other reductions";
  auto refused = [](const std::vector<std::string>& levels) {
    return oracle::refusal<LayoutError>([&] { distribute(levels, {4, 6}, mesh_of({2, 3})); });
  };
  EXPECT_EQ(refused({"xy"}), "error[HV0506]: distribution 'xy': it has one '->' a level" + help);
  EXPECT_EQ(refused({"xyz -> xy"}),
            "error[HV0506]: distribution 'xyz -> xy': it names 3 dimensions of a tensor of 2" + help);
  EXPECT_EQ(refused({"xx -> x*"}),
            "error[HV0506]: distribution 'xx -> x*': dimension 'x' is named twice on the left" + help);
  EXPECT_EQ(refused({"x1 -> x*"}), "error[HV0506]: distribution 'x1 -> x*': '1' cannot name a dimension" + help);
  EXPECT_EQ(refused({"xy -> x"}), "error[HV0506]: distribution 'xy -> x': it has 1 entry for a mesh of 2 axes" + help);
  EXPECT_EQ(refused({"xy -> xy*"}),
            "error[HV0506]: distribution 'xy -> xy*': it has more entries than the mesh has axes, 2" + help);
  EXPECT_EQ(refused({"xy -> xx"}),
            "error[HV0506]: distribution 'xy -> xx': dimension 'x' is cut twice in one level; give two levels" + help);
  EXPECT_EQ(refused({"xy -> xz"}),
            "error[HV0506]: distribution 'xy -> xz': 'z' is no dimension on the left, no number, '*' nor '+'" + help);
  EXPECT_EQ(refused({"xy -> x3"}),
            "error[HV0506]: distribution 'xy -> x3': coordinate 3 is outside axis 'db' of extent 3" + help);
  EXPECT_EQ(refused({"xy -> x", "x -> x"}),
            "error[HV0506]: distribution 'xy -> x; x -> x': it names 1 dimension of a tensor of 2" + help);
  EXPECT_THROW(distribute({"x -> x"}, {-1}, mesh_of({2})), ShapeError);
  Distribution made = distribute({"xy -> x y"}, {4, 6}, mesh_of({2, 3}));
  EXPECT_THROW(made.part({2, 0}), BoundsError);
  EXPECT_THROW(made.part({1}), ShapeError);
}

}  // namespace
}  // namespace helve
