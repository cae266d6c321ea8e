// The table of axes.
// Axes are few and live as long as the process, so that a layout can hold them by pointer and compare them by identity.
#include "helve/layout/axis.h"

#include <map>
#include <memory>
#include <mutex>

#include "helve/layout/layout_error.h"
#include "helve/support/hash.h"

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

uint64_t name_hash(std::string_view name) {
  uint64_t seed = 0;
  for (char c : name) seed = hash_mix(seed, static_cast<unsigned char>(c));
  return seed;
}

}  // namespace

class AxisRegistry {
 public:
  static AxisRegistry& instance() {
    static auto* registry = new AxisRegistry();
    return *registry;
  }

  /// The axis of that name, made with `kind` when it is new.
  Axis intern(std::string_view name, AxisKind kind) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = records_.find(name);
    if (it == records_.end()) {
      auto record = std::make_unique<Axis::Record>(Axis::Record{std::string(name), kind, name_hash(name)});
      it = records_.emplace(std::string(name), std::move(record)).first;
    }
    return Axis(it->second.get());
  }

  std::optional<Axis> find(std::string_view name) {
    std::lock_guard<std::mutex> lock(mutex_);
    auto it = records_.find(name);
    if (it == records_.end()) return std::nullopt;
    return Axis(it->second.get());
  }

 private:
  AxisRegistry() {
#define HELVE_AXIS(name, kind) intern(#name, AxisKind::kind);
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
  }

  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Axis::Record>, std::less<>> records_;
};

Axis::Axis() : Axis(axes::m()) {}

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

namespace axes {
#define HELVE_AXIS(name, kind)                                                       \
  Axis name() {                                                                      \
    static const Axis axis = AxisRegistry::instance().intern(#name, AxisKind::kind); \
    return axis;                                                                     \
  }
#include "helve/layout/axis_table.inc"
#undef HELVE_AXIS
}  // namespace axes

}  // namespace helve
