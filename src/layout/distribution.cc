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

/// Words where a side has blanks, names an axis, is one name or one operator; else characters.
std::vector<std::string> entries(std::string_view side, const std::vector<std::string>& dims) {
  std::string_view word = side;
  while (!word.empty() && is_blank(word.front())) word.remove_prefix(1);
  while (!word.empty() && is_blank(word.back())) word.remove_suffix(1);
  if (std::any_of(word.begin(), word.end(), is_blank)) return entries(word);
  const auto is_dim = [&](const std::string& name) { return std::find(dims.begin(), dims.end(), name) != dims.end(); };
  const bool is_op = word == "sum" || word == "prod" || word == "max" || word == "min";
  const bool by_dims = std::all_of(word.begin(), word.end(), [&](char c) { return is_dim(std::string(1, c)); });
  const bool one = word.find(':') != std::string_view::npos || is_dim(std::string(word)) || (is_op && !by_dims);
  return one ? std::vector<std::string>{std::string(word)} : entries(word);
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
      : cut(rank),
        text_(join(levels, "; ", [](const std::string& level) { return level; })),
        mesh_(mesh),
        dealt_(mesh.size()) {
    for (const std::string& level : levels) read_level(level);
    const auto given = std::count(dealt_.begin(), dealt_.end(), true);
    if (static_cast<size_t>(given) != mesh.size()) {
      refuse(fill_template("it has {given:entry/entries} for a mesh of {axes:axis/axes}",
                           {{"given", static_cast<int64_t>(given)}, {"axes", static_cast<int64_t>(mesh.size())}}));
    }
  }

  std::vector<std::vector<MeshAxis>> cut;  ///< the axes that cut each dimension, outer first
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
    std::vector<std::string> right = entries(std::string_view(level).substr(arrow + 2), dims);
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
    for (std::string& entry : right) {
      const MeshAxis& axis = next_axis(entry);
      entry = entry.substr(entry.find(':') + 1);
      deal(axis, entry, dims);
    }
    for (size_t k = 0; k < right.size(); ++k) {
      bool again = std::find(right.begin(), right.begin() + static_cast<ptrdiff_t>(k), right[k]) !=
                   right.begin() + static_cast<ptrdiff_t>(k);
      if (again && is_letter(right[k][0]) && !partial_op(right[k], dims)) {
        refuse(fmt::format("dimension '{}' is cut twice in one level; give two levels", right[k]));
      }
    }
  }

  /// The axis of an entry: the one that it names, else the first that has none yet.
  const MeshAxis& next_axis(const std::string& entry) {
    size_t a = 0;
    if (const size_t colon = entry.find(':'); colon != std::string::npos) {
      const std::string name = entry.substr(0, colon);
      while (a < mesh_.size() && mesh_[a].axis.name() != name) ++a;
      if (a == mesh_.size()) refuse(fmt::format("'{}' is no axis of the mesh", name));
      if (dealt_[a]) refuse(fmt::format("axis '{}' has two entries", name));
    } else {
      while (a < mesh_.size() && dealt_[a]) ++a;
      if (a == mesh_.size()) refuse(fmt::format("it has more entries than the mesh has axes, {}", mesh_.size()));
    }
    dealt_[a] = true;
    return mesh_[a];
  }

  void deal(const MeshAxis& axis, const std::string& entry, const std::vector<std::string>& dims) {
    if (entry == "*") return;
    if (std::optional<PartialOp> op = partial_op(entry, dims)) {
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
  std::vector<bool> dealt_;
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

Distribution make_distribution(const std::vector<int64_t>& shape, const std::vector<MeshAxis>& mesh,
                               const std::vector<std::vector<MeshAxis>>& cut, const Point& fixed,
                               const std::vector<Partial>& partial) {
  check_operands(shape, mesh);
  HELVE_CHECK(cut.size() == shape.size(), "a list of axes for each dimension");
  Distribution result{mesh, shape, {}, {}, cut, Layout(), partial};
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t devices = 1;
    for (const MeshAxis& each : cut[d]) {
      devices = layout_detail::checked_multiply(devices, each.extent, "the number of devices");
    }
    int64_t block = std::max<int64_t>(1, shape[d] / devices + (shape[d] % devices != 0));
    result.block.push_back(block);
    result.domain.push_back(layout_detail::checked_multiply(block, devices, "the domain"));
  }
  int64_t stride = layout_detail::shape_product(result.block);
  Iters shard;
  for (size_t d = 0; d < shape.size(); ++d) {
    for (const MeshAxis& each : cut[d]) shard.push_back({each.extent, 1, each.axis});
    stride /= result.block[d];
    if (result.block[d] > 1) shard.push_back({result.block[d], stride, axes::m()});
  }
  Iters replica;
  for (const MeshAxis& each : mesh) {
    if (result.holds_copies(each.axis) && !fixed.count(each.axis)) replica.push_back({each.extent, 1, each.axis});
  }
  result.layout = Layout(std::move(shard), std::move(replica), fixed);
  return result;
}

Distribution distribute(const std::vector<std::string>& levels, const std::vector<int64_t>& shape,
                        const std::vector<MeshAxis>& mesh) {
  check_operands(shape, mesh);
  NotationReader read(levels, shape.size(), mesh);
  return make_distribution(shape, mesh, read.cut, read.fixed, read.partial);
}

const Partial* Distribution::partial_over(Axis axis) const {
  const auto found = std::find_if(partial.begin(), partial.end(), [&](const Partial& p) { return p.axis == axis; });
  return found == partial.end() ? nullptr : &*found;
}

bool Distribution::holds_copies(Axis axis) const {
  const auto is_axis = [&](const MeshAxis& each) { return each.axis == axis; };
  const bool cuts = std::any_of(cut.begin(), cut.end(), [&](const std::vector<MeshAxis>& axes) {
    return std::any_of(axes.begin(), axes.end(), is_axis);
  });
  return !cuts && !partial_over(axis) && layout.offset().count(axis) == 0;
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
