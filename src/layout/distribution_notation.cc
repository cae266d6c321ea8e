// From a distribution back to its notation, and from a layout to a distribution.
// Both try what describes it and compare, so that neither repeats how blocks are dealt.
#include <fmt/format.h>

#include <algorithm>

#include "helve/layout/distribution.h"
#include "helve/support/text.h"

namespace helve {

namespace {

std::string dimension_name(size_t d) {
  constexpr std::string_view kLetters = "ijklmn";
  return d < kLetters.size() ? std::string(1, kLetters[d]) : fmt::format("d{}", d);
}

/// One level for every cut of the dimension that is cut most often; in each, the axes that cut next.
class LevelWriter {
 public:
  explicit LevelWriter(const Distribution& distribution) : distribution_(distribution) {
    for (size_t d = 0; d < distribution.cut.size(); ++d) {
      left_ += (d ? " " : "") + dimension_name(d);
      count_ = std::max(count_, distribution.cut[d].size());
    }
    dealt_.resize(distribution.mesh.size());
  }

  std::vector<std::string> write() {
    std::vector<std::string> out;
    for (size_t level = 0; level < count_; ++level) {
      std::vector<std::string> entries;
      for (size_t a = 0; a < distribution_.mesh.size(); ++a) {
        const std::string entry = dealt_[a] ? "" : entry_of(distribution_.mesh[a].axis, level);
        if (entry.empty()) continue;
        const auto next = std::find(dealt_.begin(), dealt_.end(), false) - dealt_.begin();
        const bool in_turn = next == static_cast<ptrdiff_t>(a);
        entries.push_back(in_turn ? entry : fmt::format("{}:{}", distribution_.mesh[a].axis.name(), entry));
        dealt_[a] = true;
      }
      out.push_back(fmt::format("{} -> {}", left_, fmt::join(entries, " ")));
    }
    return out;
  }

 private:
  /// What the level says of the axis: nothing while its cut belongs to a later one. What cuts nothing comes as soon as
  /// nothing before it is left open.
  std::string entry_of(Axis axis, size_t level) const {
    for (size_t d = 0; d < distribution_.cut.size(); ++d) {
      for (size_t k = 0; k < distribution_.cut[d].size(); ++k) {
        if (distribution_.cut[d][k].axis == axis) return k == level ? dimension_name(d) : "";
      }
    }
    const bool open = std::any_of(distribution_.mesh.begin(), distribution_.mesh.end(), [&](const MeshAxis& each) {
      const size_t a = static_cast<size_t>(&each - distribution_.mesh.data());
      return !dealt_[a] && each.axis != axis && a < place_of(axis);
    });
    if (open && level + 1 < count_) return "";
    if (const Partial* partial = distribution_.partial_over(axis)) {
      return partial->op == PartialOp::Sum ? "+" : std::string(to_string(partial->op));
    }
    return distribution_.holds_copies(axis) ? "*" : std::to_string(distribution_.layout.offset(axis));
  }

  size_t place_of(Axis axis) const {
    size_t a = 0;
    while (distribution_.mesh[a].axis != axis) ++a;
    return a;
  }

  const Distribution& distribution_;
  std::string left_;
  size_t count_ = 1;
  std::vector<bool> dealt_;
};

/// Deals the device axes of a shard, in order, to the dimensions, and compares.
class LayoutReader {
 public:
  LayoutReader(const Layout& layout, const std::vector<int64_t>& shape, const std::vector<MeshAxis>& mesh)
      : layout_(layout), shape_(shape), mesh_(mesh), cut_(shape.size()) {}

  std::optional<Distribution> read() {
    std::vector<MeshAxis> used;
    const auto note = [&](Axis axis) {
      const auto found = std::find_if(mesh_.begin(), mesh_.end(), [&](const MeshAxis& m) { return m.axis == axis; });
      if (found == mesh_.end()) return false;
      used.push_back(*found);
      return true;
    };
    for (const Iter& each : layout_.shard()) {
      if (each.axis == axes::m()) continue;
      if (!note(each.axis) || each.extent != used.back().extent) return std::nullopt;
      order_.push_back(used.back());
    }
    for (const Iter& each : layout_.replica()) {
      if (!note(each.axis) || each.extent != used.back().extent) return std::nullopt;
    }
    for (const auto& [axis, value] : layout_.offset()) {
      if (!note(axis)) return std::nullopt;
      fixed_[axis] = value;
    }
    for (const MeshAxis& each : mesh_) {
      const auto times = std::count(used.begin(), used.end(), each);
      if (times > 1 || (times == 0 && each.extent > 1)) return std::nullopt;
    }
    return deal(0, 0);
  }

 private:
  std::optional<Distribution> deal(size_t d, size_t next) {
    if (d == shape_.size()) {
      if (next != order_.size()) return std::nullopt;
      Distribution made = make_distribution(shape_, mesh_, cut_, fixed_, {});
      if (made.layout.size() == layout_.size() && made.layout.equivalent(layout_)) return made;
      return std::nullopt;
    }
    for (size_t end = next; end <= order_.size(); ++end) {
      cut_[d].assign(order_.begin() + static_cast<ptrdiff_t>(next), order_.begin() + static_cast<ptrdiff_t>(end));
      if (std::optional<Distribution> found = deal(d + 1, end)) return found;
    }
    return std::nullopt;
  }

  const Layout& layout_;
  const std::vector<int64_t>& shape_;
  const std::vector<MeshAxis>& mesh_;
  std::vector<MeshAxis> order_;
  std::vector<std::vector<MeshAxis>> cut_;
  Point fixed_;
};

}  // namespace

std::vector<std::string> notation_of(const Distribution& distribution) { return LevelWriter(distribution).write(); }

std::optional<Distribution> distribution_of(const Layout& layout, const std::vector<int64_t>& shape,
                                            const std::vector<MeshAxis>& mesh) {
  return LayoutReader(layout, shape, mesh).read();
}

}  // namespace helve
