// The table of axes.
// Axes are few and live as long as the process, so that a layout can hold them by pointer and compare them by identity.
#include "helve/layout/axis.h"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "helve/layout/layout_error.h"

namespace helve {

std::string_view to_string(AxisKind kind) {
  switch (kind) {
    case AxisKind::Device: return "device";
    case AxisKind::Thread: return "thread";
    case AxisKind::Memory: return "memory";
  }
  HELVE_FAIL("an axis kind without a name");
}

namespace {

bool is_identifier(std::string_view name) {
  if (name.empty()) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool digit = c >= '0' && c <= '9';
    if (!letter && !(digit && i > 0)) return false;
  }
  return true;
}

/// The axes that were made so far, the built-in ones first.
class AxisRegistry {
 public:
  static AxisRegistry& instance() {
    static auto* registry = new AxisRegistry();
    return *registry;
  }

  /// The axis of that name, made with `kind` when it is new.
  Axis intern(std::string_view name, AxisKind kind) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (auto it = records_.find(name); it != records_.end()) return Axis(it->second);
    made_.push_back(std::make_unique<const AxisRecord>(AxisRecord::make(name, kind)));
    records_.emplace(made_.back()->name, made_.back().get());
    return Axis(made_.back().get());
  }

  std::optional<Axis> find(std::string_view name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = records_.find(name);
    if (it == records_.end()) return std::nullopt;
    return Axis(it->second);
  }

 private:
  AxisRegistry() {
#define HELVE_AXIS(name, kind) records_.emplace(#name, &axes::records::name);
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
  }

  std::mutex mutex_;
  std::map<std::string_view, const AxisRecord*> records_;
  std::vector<std::unique_ptr<const AxisRecord>> made_;
};

}  // namespace

Axis Axis::make(std::string_view name, AxisKind kind) {
  if (!is_identifier(name)) throw_layout_error(Code::AxisName, {{"name", std::string(name)}});
  Axis axis = AxisRegistry::instance().intern(name, kind);
  if (axis.kind() != kind) {
    throw_layout_error(Code::AxisKindConflict, {{"name", std::string(name)},
                                                {"kind", std::string(to_string(axis.kind()))},
                                                {"other", std::string(to_string(kind))}});
  }
  return axis;
}

std::optional<Axis> Axis::find(std::string_view name) { return AxisRegistry::instance().find(name); }

namespace axes::records {
#define HELVE_AXIS(name, kind) constinit const AxisRecord name = AxisRecord::make(#name, AxisKind::kind);
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
}  // namespace axes::records

}  // namespace helve
