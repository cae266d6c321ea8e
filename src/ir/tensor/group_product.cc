// Products of matrices in shared memory by warpgroups.
// A descriptor has two distances and a swizzle; a layout that is grouped by slabs has the same numbers as strides, so
// one follows from the other or does not exist.
#include "helve/ir/tensor/group_product.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/notation.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int64_t kUnitBits = 128;  ///< that a swizzle leaves together
constexpr int64_t kCoreRows = 8;  ///< rows after which the swizzle repeats
constexpr int64_t kMostBytes = int64_t{1} << 18;  ///< of a descriptor's distance
constexpr int kSwizzleShift = 3;

const Axis kOnThreads = axes::tx(), kInRegisters = axes::reg(), kInMemory = axes::m();

/// Elements of 16 bytes.
int64_t unit_of(int64_t bits) { return kUnitBits / bits; }

int64_t slab_width(int64_t columns, int64_t bits) {
  for (const int64_t units : {8, 4, 2}) {
    if (columns % (units * unit_of(bits)) == 0) return units * unit_of(bits);
  }
  return unit_of(bits);
}

int log_of(int64_t power) { return std::countr_zero(static_cast<uint64_t>(power)); }

Swizzle swizzle_of_width(int64_t width, int64_t bits) {
  const int units = log_of(width / unit_of(bits));
  return units == 0 ? Swizzle{} : Swizzle{units, log_of(unit_of(bits)), kSwizzleShift};
}

/// The width of slabs with this swizzle; nothing where no slab has it.
std::optional<int64_t> width_of_swizzle(const Swizzle& swizzle, int64_t bits) {
  for (const int64_t units : {1, 2, 4, 8}) {
    if (swizzle == swizzle_of_width(units * unit_of(bits), bits)) return units * unit_of(bits);
  }
  return std::nullopt;
}

int64_t width_of(const MatrixDescriptor& d, int64_t bits) {
  return d.swizzle == 0 ? unit_of(bits) : d.swizzle * 8 / bits;
}

/// The one stride of a block of iters in memory; `otherwise` where it has a single index, nothing where there are more.
std::optional<int64_t> stride_of(const Iters& iters, int64_t otherwise) {
  if (iters.empty()) return otherwise;
  if (iters.size() > 1 || iters[0].axis != kInMemory) return std::nullopt;
  return iters[0].stride;
}

Layout without_swizzle(const Layout& layout) { return Layout(layout.shard(), layout.replica(), layout.offset()); }

}  // namespace

FactorTile tile_of_a(const ProductShape& s) {
  return s.transpose_a ? FactorTile{s.k, s.m, false, s.bits} : FactorTile{s.m, s.k, true, s.bits};
}
FactorTile tile_of_b(const ProductShape& s) {
  return s.transpose_b ? FactorTile{s.n, s.k, true, s.bits} : FactorTile{s.k, s.n, false, s.bits};
}

Layout factor_layout(const FactorTile& tile, int64_t part) {
  const auto& [rows, columns, depth_last, bits] = tile;
  HELVE_CHECK(part % unit_of(bits) == 0 && columns % part == 0, "a factor whose rows are no multiples of 16 bytes");
  const int64_t width = slab_width(part, bits);
  Iters iters = {{rows, width, kInMemory}};
  if (columns > width) iters.push_back({columns / width, rows * width, kInMemory});
  iters.push_back({width, 1, kInMemory});
  return Layout(iters, {}, {}, swizzle_of_width(width, bits));
}

std::optional<Layout> tile_layout(const Region& region, std::string* reason) {
  const Buffer& buffer = *region.buffer;
  const auto fails = [&](std::string why) -> std::optional<Layout> {
    *reason = std::move(why);
    return std::nullopt;
  };
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer.shape);
  bool whole = shape && region.ranges.size() >= 2;
  for (size_t d = 0; whole && d < region.ranges.size(); ++d) {
    whole = d + 2 >= region.ranges.size() ? region.covers(d) : region.ranges[d].point;
  }
  if (!whole) return fails(fmt::format("it takes a part of the last two dimensions of '{}'", buffer.name));
  const size_t rank = shape->size();
  if (!buffer.layout)
    return Layout({{(*shape)[rank - 2], (*shape)[rank - 1], kInMemory}, {(*shape)[rank - 1], 1, kInMemory}});
  if (layout_domain(buffer) != *shape) return fails(fmt::format("the layout of '{}' has gaps", buffer.name));
  const Swizzle& swizzle = buffer.layout->swizzle();
  const GroupedLayout grouped = buffer.layout->group(*shape);
  Iters iters;
  for (size_t d = 0; d < rank; ++d) {
    for (const Iter& iter : grouped.block(d)) {
      if (d + 2 >= rank) {
        iters.push_back(iter);
      } else if (iter.stride % swizzle.period() != 0) {
        return fails(fmt::format("tiles of '{}' begin within the period of its swizzle", buffer.name));
      }
    }
  }
  return Layout(iters, {}, {}, swizzle);
}

std::optional<MatrixDescriptor> matrix_descriptor(const Layout& layout, const FactorTile& tile, std::string* reason) {
  const auto fails = [&]() -> std::optional<MatrixDescriptor> {
    *reason = fmt::format("its layout {} is none that wgmma reads, as {} is", to_string(layout),
                          to_string(factor_layout(tile)));
    return std::nullopt;
  };
  const std::optional<int64_t> width = width_of_swizzle(layout.swizzle(), tile.bits);
  const int64_t unit = unit_of(tile.bits), bytes = tile.bits / 8;
  if (!tile.depth_last && tile.bits != 16) return fails();
  if (!width || tile.rows % kCoreRows != 0 || tile.columns % *width != 0) return fails();
  std::optional<GroupedLayout> grouped;
  try {
    grouped = layout.group({tile.rows / kCoreRows, kCoreRows, tile.columns / *width, *width});
  } catch (const LayoutError&) {
    return fails();
  }
  const int64_t period = kCoreRows * *width;
  const std::optional<int64_t> groups = stride_of(grouped->block(0), unit), slabs = stride_of(grouped->block(2), unit);
  if (!groups || !slabs || stride_of(grouped->block(1), 0) != *width || stride_of(grouped->block(3), 0) != 1) {
    return fails();
  }
  const bool one_group = tile.rows == kCoreRows, one_slab = tile.columns == *width;
  if ((!one_group && *groups % period != 0) || (!one_slab && *slabs % period != 0)) return fails();
  if (std::max(*groups, *slabs) * bytes >= kMostBytes) return fails();
  MatrixDescriptor out;
  out.swizzle = *width == unit ? 0 : *width * bytes;
  // Without a swizzle a core matrix is 8 rows of 16 bytes, and the next one along the rows is a slab further.
  if (tile.depth_last) {
    out.stride = *groups * bytes;
    if (*width == unit) out.leading = *slabs * bytes;
  } else if (*width == unit) {
    out.stride = *slabs * bytes;
    out.leading = *groups * bytes;
  } else {
    out.stride = *groups * bytes;
    out.leading = *slabs * bytes;
  }
  return out;
}

int64_t described_address(const MatrixDescriptor& d, const FactorTile& tile, int64_t start, int64_t line, int64_t k) {
  const int64_t bytes = tile.bits / 8, unit = unit_of(tile.bits);
  int64_t at = start * bytes;
  const int64_t row = d.swizzle == 0 ? 16 : d.swizzle;  // bytes
  if (tile.depth_last && d.swizzle == 0) {
    at += line / 8 * d.stride + line % 8 * row + k / unit * d.leading + k % unit * bytes;
  } else if (tile.depth_last) {
    at += line / 8 * d.stride + line % 8 * row + k * bytes;
  } else if (d.swizzle == 0) {
    at += line / unit * d.stride + line % unit * bytes + k / 8 * d.leading + k % 8 * row;
  } else {
    const int64_t across = row / bytes;
    at += line / across * d.leading + line % across * bytes + k / 8 * d.stride + k % 8 * row;
  }
  if (d.swizzle != 0) at ^= at / 128 % (d.swizzle / 16) * 16;
  return at / bytes;
}

int64_t descriptor_start(const Layout& layout, const FactorTile& tile, int64_t line, int64_t k) {
  return without_swizzle(layout).apply(tile.at(line, k)).front().at(kInMemory);
}

std::optional<std::string> uneven_for_groups(const ProductShape& shape) {
  const bool some = shape.m > 0 && shape.n > 0 && shape.k > 0;
  const bool even = shape.m % kGroupRows == 0 && shape.n % kProductColumns == 0 && shape.k % shape.depth() == 0;
  if (some && even) return {};
  return fmt::format("M, N, K of {} x {} x {} are no positive multiples of {}, {}, {}", shape.m, shape.n, shape.k,
                     kGroupRows, kProductColumns, shape.depth());
}

std::optional<GroupProduct> divided_product(const ProductShape& shape, int64_t groups, int64_t unit) {
  for (int64_t rows = groups; rows > 0; --rows) {
    const int64_t columns = groups / rows;
    if (groups % rows != 0 || shape.m % (kGroupRows * rows) != 0 || shape.n % (unit * columns) != 0) continue;
    const int64_t own = shape.n / columns;
    int64_t n = std::min(own, kMostGroupColumns) / unit * unit;
    while (own % n != 0 || (shape.integers && n > 32 && n % 16 != 0)) n -= unit;
    return GroupProduct{{rows, columns}, shape.m / kGroupRows / rows, own / n, shape.k / shape.depth(), n};
  }
  return std::nullopt;
}

int64_t column_unit(const MatrixDescriptor& b, const FactorTile& tile) {
  return tile.depth_last ? kProductColumns : width_of(b, tile.bits);
}

Layout group_sums(const GroupProduct& p) {
  const int64_t own = p.own_columns();
  const Iters rows = {{p.rows, own / 2, kInRegisters},
                      {p.groups.rows, kWarpgroup * p.groups.columns, kOnThreads},
                      {kWarpgroup / kWarp, kWarp, kOnThreads},
                      {2, 2, kInRegisters},
                      {8, 4, kOnThreads}};
  const Iters columns = {
      {p.groups.columns, kWarpgroup, kOnThreads}, {own / 8, 4, kInRegisters}, {4, 1, kOnThreads}, {2, 1, kInRegisters}};
  Iters all;
  for (const Iters* part : {&rows, &columns}) {
    for (const Iter& iter : *part) {
      if (iter.extent > 1) all.push_back(iter);
    }
  }
  return Layout(all);
}

Layout group_factor(const GroupProduct& p, const ProductShape& shape) {
  const int64_t packed = shape.packed(), words = 4 * packed;
  const Iters all = {{p.rows, p.depths * words, kInRegisters},
                     {p.groups.rows, kWarpgroup * p.groups.columns, kOnThreads},
                     {kWarpgroup / kWarp, kWarp, kOnThreads},
                     {2, packed, kInRegisters},
                     {8, 4, kOnThreads},
                     {p.depths, words, kInRegisters},
                     {2, 2 * packed, kInRegisters},
                     {4, 1, kOnThreads},
                     {packed, 1, kInRegisters}};
  Iters iters, copies;
  std::copy_if(all.begin(), all.end(), std::back_inserter(iters), [](const Iter& each) { return each.extent > 1; });
  if (p.groups.columns > 1) copies.push_back({p.groups.columns, kWarpgroup, kOnThreads});
  return Layout(iters, copies);
}

std::optional<GroupProduct> group_product(const ProductShape& shape, const Layout& sums, int64_t unit) {
  const int64_t threads = sums.span(kOnThreads), groups = threads / kWarpgroup;
  if (threads % kWarpgroup != 0 || uneven_for_groups(shape)) return std::nullopt;
  const std::optional<GroupProduct> out = divided_product(shape, groups, unit);
  if (!out || !group_sums(*out).equivalent(sums)) return std::nullopt;
  return out;
}

GroupOperands group_operands(const TileOp& op) {
  HELVE_CHECK(op.op == TileOpcode::Wgmma, "an operation that is no product of warpgroups");
  const auto numbers = [&](std::string_view name) {
    std::vector<int64_t> out;
    for (const Expr& e : op.exprs(op.row().index_of(name))) out.push_back(*int_value(e));
    return out;
  };
  const auto descriptor = [&](std::string_view name) {
    const std::vector<int64_t> d = numbers(name);
    return d.size() == 3 ? MatrixDescriptor{d[0], d[1], d[2]} : MatrixDescriptor();
  };
  const std::vector<int64_t> shape = numbers("shape");
  return {op.region(0),
          op.region(1),
          op.region(2),
          descriptor("descriptor_A"),
          descriptor("descriptor_B"),
          op.layout(op.row().index_of("layout_C")),
          with_types({shape[0], shape[1], shape[2], op.transposes(0), op.transposes(1)}, op.region(0).buffer->dtype)};
}

GroupProduct GroupOperands::product() const {
  const std::optional<GroupProduct> out = group_product(shape, sums, column_unit(descriptor_b, tile_of_b(shape)));
  HELVE_CHECK(out, "sums that no warpgroups hold");
  return *out;
}

std::vector<Expr> descriptor_operand(const MatrixDescriptor& d) {
  return {int_imm(d.leading), int_imm(d.stride), int_imm(d.swizzle)};
}

}  // namespace helve
