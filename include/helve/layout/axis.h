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

/// What is known of an axis. The registry owns one for each; the built-in ones are constants.
struct AxisRecord {
  std::string name;
  AxisKind kind;
  uint64_t hash;  ///< depends on the name only
  uint64_t rank;  ///< the kind and the first seven characters: orders all axes but those that agree in these

  static constexpr AxisRecord make(std::string_view name, AxisKind kind) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    for (char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    uint64_t rank = static_cast<uint64_t>(kind);
    for (size_t k = 0; k < 7; ++k) rank = rank << 8 | (k < name.size() ? static_cast<unsigned char>(name[k]) : 0);
    return {std::string(name), kind, hash, rank};
  }
};

namespace axes::records {
#define HELVE_AXIS(name, kind) extern const AxisRecord name;
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
}  // namespace axes::records

/// An interned axis: as cheap as a pointer, equal by identity, ordered by kind and then by name (the same in every
/// run).
class Axis {
 public:
  /// The memory axis `m`.
  constexpr Axis() : record_(&axes::records::m) {}
  constexpr explicit Axis(const AxisRecord* record) : record_(record) {}

  /// The axis called `name`, made at the first call. Throws LayoutError when the name is no identifier or is already
  /// an axis of another kind.
  static Axis make(std::string_view name, AxisKind kind);

  /// The axis called `name`, if one was made.
  static std::optional<Axis> find(std::string_view name);

  const std::string& name() const { return record_->name; }
  AxisKind kind() const { return record_->kind; }
  /// Depends on the name only, so that it is the same in every run.
  uint64_t hash() const { return record_->hash; }

  friend constexpr bool operator==(Axis a, Axis b) { return a.record_ == b.record_; }
  friend std::strong_ordering operator<=>(Axis a, Axis b) {
    if (a.record_ == b.record_) return std::strong_ordering::equal;
    if (a.record_->rank != b.record_->rank) return a.record_->rank <=> b.record_->rank;
    return a.name().compare(b.name()) <=> 0;
  }

 private:
  const AxisRecord* record_;
};

/// The built-in axes: `axes::laneid()`, `axes::m()`, ...
namespace axes {
#define HELVE_AXIS(name, kind) \
  constexpr Axis name() { return Axis(&records::name); }
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
}  // namespace axes

}  // namespace helve

template <>
struct std::hash<helve::Axis> {
  size_t operator()(helve::Axis axis) const noexcept { return static_cast<size_t>(axis.hash()); }
};
