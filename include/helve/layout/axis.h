// A named axis of places: of devices, of threads or of memory.
// A layout sends an element to a point whose coordinates are named, so that one object can speak of all levels at once.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace helve {

/// What the coordinates of an axis count. The order is the order in which axes are listed.
enum class AxisKind : int { Device, Thread, Memory };

/// "device", "thread", "memory".
std::string_view to_string(AxisKind kind);

/// An interned axis: as cheap as a pointer, equal by identity, ordered by kind and then by name (the same in every
/// run).
class Axis {
 public:
  /// The memory axis `m`.
  Axis();

  /// The axis called `name`, made at the first call. Throws LayoutError when the name is no identifier or is already
  /// an axis of another kind.
  static Axis make(std::string_view name, AxisKind kind);

  /// The axis called `name`, if one was made.
  static std::optional<Axis> find(std::string_view name);

  const std::string& name() const { return record_->name; }
  AxisKind kind() const { return record_->kind; }
  /// Depends on the name only, so that it is the same in every run.
  uint64_t hash() const { return record_->hash; }

  friend bool operator==(Axis a, Axis b) { return a.record_ == b.record_; }
  friend std::strong_ordering operator<=>(Axis a, Axis b) {
    if (a.record_ == b.record_) return std::strong_ordering::equal;
    if (a.kind() != b.kind()) return a.kind() <=> b.kind();
    return a.name().compare(b.name()) <=> 0;
  }

 private:
  friend class AxisRegistry;
  struct Record {
    std::string name;
    AxisKind kind;
    uint64_t hash;
  };
  explicit Axis(const Record* record) : record_(record) {}

  const Record* record_;
};

/// The built-in axes: `axes::laneid()`, `axes::m()`, ...
namespace axes {
#define HELVE_AXIS(name, kind) Axis name();
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
}  // namespace axes

}  // namespace helve

template <>
struct std::hash<helve::Axis> {
  size_t operator()(helve::Axis axis) const noexcept { return static_cast<size_t>(axis.hash()); }
};
