// Partitions of cores by control value.
// All members of a group must reach its collective; the interpreter reports a violation in the same words.
#include "cores.h"

#include <fmt/format.h>

#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve::runtime {

namespace {

std::vector<int64_t> coordinates(int64_t core, std::span<const int64_t> mesh) {
  std::vector<int64_t> at(mesh.size());
  for (size_t a = at.size(); a-- > 0; core /= mesh[a]) at[a] = core % mesh[a];
  return at;
}

bool same_group(int64_t a, int64_t b, std::span<const int64_t> mesh, uint64_t axes) {
  for (size_t d = mesh.size(); d-- > 0; a /= mesh[d], b /= mesh[d]) {
    if ((axes >> d & 1) == 0 && a % mesh[d] != b % mesh[d]) return false;
  }
  return true;
}

std::string_view subject(ControlUse use) {
  switch (use) {
    case ControlUse::Condition: return "the condition is";
    case ControlUse::Value: return "the loop begins at";
    case ControlUse::Count: return "the loop runs";
    case ControlUse::Operand: return "it is";
  }
  HELVE_FAIL("an unknown use");
}

std::string answer(ControlUse use, int64_t value) {
  if (use == ControlUse::Condition) return value != 0 ? "true" : "false";
  if (use == ControlUse::Value || use == ControlUse::Operand) return fmt::format("{}", value);
  return fmt::format("{} iteration{}", value, value == 1 ? "" : "s");
}

}  // namespace

void find_ranges(std::span<const int64_t> cores, std::vector<BlockRange>& out) {
  for (int64_t core : cores) {
    if (!out.empty() && out.back().end == core) {
      ++out.back().end;
    } else {
      out.push_back({core, core + 1});
    }
  }
}

std::vector<CoresOfValue> by_value(std::span<const int64_t> cores, std::span<const int64_t> found) {
  std::vector<CoresOfValue> out;
  for (size_t i = 0; i < cores.size(); ++i) {
    auto at = std::find_if(out.begin(), out.end(), [&](const CoresOfValue& each) { return each.value == found[i]; });
    if (at == out.end()) at = out.insert(out.end(), {found[i], {}});
    at->cores.push_back(cores[i]);
  }
  return out;
}

void keep_true(std::vector<int64_t>& cores, std::span<const int64_t> found) {
  size_t kept = 0;
  for (size_t i = 0; i < cores.size(); ++i) {
    if (found[i] != 0) cores[kept++] = cores[i];
  }
  cores.resize(kept);
}

void require_uniform(const ControlValue& control, std::span<const int64_t> mesh, std::span<const int64_t> cores,
                     std::span<const int64_t> found) {
  if (all_equal(found)) return;
  for (const UniformityCheck& check : control.checks) {
    for (size_t i = 0; i < cores.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (found[i] == found[k] || !same_group(cores[i], cores[k], mesh, check.axes)) continue;
        const auto on = [&](size_t n) {
          return fmt::format("{} on core {}", answer(control.use, found[n]), shape_text(coordinates(cores[n], mesh)));
        };
        Diagnostic fault = check.fault;
        fault.notes.push_back({control.span, fmt::format("{} {} and {}", subject(control.use), on(k), on(i))});
        throw UserError(std::move(fault));
      }
    }
  }
}

}  // namespace helve::runtime
