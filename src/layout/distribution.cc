// From the notation to a layout.
// The left side names dimensions, the right side deals axes to them; blocks and the address inside follow.
#include "helve/layout/distribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "helve/support/text.h"
#include "integers.h"

namespace helve {

std::string_view to_string(PartialOp op) {
  constexpr std::string_view kNames[] = {"sum", "prod", "max", "min"};
  return kNames[static_cast<int>(op)];
}

namespace {

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Words between blanks; where there is no blank, characters.
std::vector<std::string> entries(std::string_view side) {
  while (!side.empty() && is_blank(side.front())) side.remove_prefix(1);
  while (!side.empty() && is_blank(side.back())) side.remove_suffix(1);
  bool by_words = std::any_of(side.begin(), side.end(), is_blank);
  std::vector<std::string> all;
  bool open = false;
  for (char c : side) {
    if (is_blank(c)) {
      open = false;
    } else if (by_words && open) {
      all.back() += c;
    } else {
      all.emplace_back(1, c);
      open = true;
    }
  }
  return all;
}

/// The operator that an entry names; a dimension of that name comes first.
std::optional<PartialOp> partial_op(const std::string& entry, const std::vector<std::string>& dims) {
  if (entry == "+") return PartialOp::Sum;
  if (std::find(dims.begin(), dims.end(), entry) != dims.end()) return std::nullopt;
  for (PartialOp op : {PartialOp::Sum, PartialOp::Prod, PartialOp::Max, PartialOp::Min}) {
    if (entry == to_string(op)) return op;
  }
  return std::nullopt;
}

/// Reads levels and deals the axes of the mesh.
class NotationReader {
 public:
  NotationReader(const std::vector<std::string>& levels, size_t rank, const std::vector<MeshAxis>& mesh)
      : cut(rank), text_(join(levels, "; ", [](const std::string& level) { return level; })), mesh_(mesh) {
    for (const std::string& level : levels) read_level(level);
    if (next_ != mesh.size()) {
      refuse(fill_template("it has {given:entry/entries} for a mesh of {axes:axis/axes}",
                           {{"given", static_cast<int64_t>(next_)}, {"axes", static_cast<int64_t>(mesh.size())}}));
    }
  }

  std::vector<std::vector<MeshAxis>> cut;  ///< the axes that cut each dimension, outer first
  std::vector<MeshAxis> copied;
  std::vector<Partial> partial;
  Point fixed;

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    throw_layout_error(Code::DistributionForm, {{"text", text_}, {"reason", reason}});
  }

  void read_level(const std::string& level) {
    size_t arrow = level.find("->");
    if (arrow == std::string::npos || level.find("->", arrow + 2) != std::string::npos)
      refuse("it has one '->' a level");
    std::vector<std::string> dims = entries(std::string_view(level).substr(0, arrow));
    std::vector<std::string> right = entries(std::string_view(level).substr(arrow + 2));
    if (dims.size() != cut.size()) {
      refuse(fill_template("it names {given:dimension} of a tensor of {rank}",
                           {{"given", static_cast<int64_t>(dims.size())}, {"rank", static_cast<int64_t>(cut.size())}}));
    }
    for (size_t d = 0; d < dims.size(); ++d) {
      if (!is_letter(dims[d][0])) refuse(fmt::format("'{}' cannot name a dimension", dims[d]));
      if (std::find(dims.begin(), dims.begin() + static_cast<ptrdiff_t>(d), dims[d]) !=
          dims.begin() + static_cast<ptrdiff_t>(d)) {
        refuse(fmt::format("dimension '{}' is named twice on the left", dims[d]));
      }
    }
    for (size_t k = 0; k < right.size(); ++k) {
      if (next_ == mesh_.size()) {
        refuse(fmt::format("it has more entries than the mesh has axes, {}", mesh_.size()));
      }
      bool again = std::find(right.begin(), right.begin() + static_cast<ptrdiff_t>(k), right[k]) !=
                   right.begin() + static_cast<ptrdiff_t>(k);
      if (again && is_letter(right[k][0]) && !partial_op(right[k], dims)) {
        refuse(fmt::format("dimension '{}' is cut twice in one level; give two levels", right[k]));
      }
      deal(right[k], dims);
    }
  }

  void deal(const std::string& entry, const std::vector<std::string>& dims) {
    const MeshAxis& axis = mesh_[next_++];
    if (entry == "*") {
      copied.push_back(axis);
    } else if (std::optional<PartialOp> op = partial_op(entry, dims)) {
      partial.push_back({axis.axis, *op});
    } else if (std::all_of(entry.begin(), entry.end(), is_digit)) {
      int64_t number = entry.size() > 18 ? std::numeric_limits<int64_t>::max() : std::stoll(entry);
      if (number >= axis.extent) {
        refuse(fmt::format("coordinate {} is outside axis '{}' of extent {}", entry, axis.axis.name(), axis.extent));
      }
      fixed[axis.axis] = number;
    } else {
      auto it = std::find(dims.begin(), dims.end(), entry);
      if (it == dims.end()) refuse(fmt::format("'{}' is no dimension on the left, no number, '*' nor '+'", entry));
      cut[static_cast<size_t>(it - dims.begin())].push_back(axis);
    }
  }

  std::string text_;
  const std::vector<MeshAxis>& mesh_;
  size_t next_ = 0;
};

void check_operands(const std::vector<int64_t>& shape, const std::vector<MeshAxis>& mesh) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] >= 0) continue;
    throw_layout_error(Code::ShapeExtent,
                       {{"shape", shape_text(shape)}, {"extent", shape[d]}, {"dim", static_cast<int64_t>(d)}});
  }
  for (const MeshAxis& each : mesh) {
    HELVE_CHECK(each.extent >= 1 && each.axis.kind() == AxisKind::Device, "a mesh of device axes with extents above 0");
  }
}

}  // namespace

Distribution distribute(const std::vector<std::string>& levels, const std::vector<int64_t>& shape,
                        const std::vector<MeshAxis>& mesh) {
  check_operands(shape, mesh);
  NotationReader read(levels, shape.size(), mesh);
  Distribution result{mesh, shape, {}, {}, read.cut, Layout(), read.partial};
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t devices = 1;
    for (const MeshAxis& each : read.cut[d]) {
      devices = layout_detail::checked_multiply(devices, each.extent, "the number of devices");
    }
    int64_t block = std::max<int64_t>(1, shape[d] / devices + (shape[d] % devices != 0));
    result.block.push_back(block);
    result.domain.push_back(layout_detail::checked_multiply(block, devices, "the domain"));
  }
  int64_t stride = layout_detail::shape_product(result.block);
  Iters shard;
  for (size_t d = 0; d < shape.size(); ++d) {
    for (const MeshAxis& each : read.cut[d]) shard.push_back({each.extent, 1, each.axis});
    stride /= result.block[d];
    if (result.block[d] > 1) shard.push_back({result.block[d], stride, axes::m()});
  }
  Iters replica;
  for (const MeshAxis& each : read.copied) replica.push_back({each.extent, 1, each.axis});
  result.layout = Layout(std::move(shard), std::move(replica), read.fixed);
  return result;
}

std::optional<Distribution::Part> Distribution::part(const std::vector<int64_t>& device) const {
  std::vector<int64_t> extents;
  Point at;
  for (const MeshAxis& each : mesh) extents.push_back(each.extent);
  flatten(device, extents);  // refuses a device outside the mesh
  for (size_t a = 0; a < mesh.size(); ++a) at[mesh[a].axis] = device[a];
  for (const auto& [axis, value] : layout.offset()) {
    if (at[axis] != value) return std::nullopt;
  }
  Part part;
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t index = 0;
    for (const MeshAxis& each : cut[d]) index = index * each.extent + at[each.axis];
    part.begin.push_back(index * block[d]);
    part.extents.push_back(std::clamp<int64_t>(shape[d] - index * block[d], 0, block[d]));
  }
  return part;
}

}  // namespace helve
