// Selection of parts.
// The table contains the whole text of the prelude.
#include "prelude.h"

#include <algorithm>
#include <string_view>

#include "helve/support/diagnostic.h"

namespace helve::cuda {

namespace {

struct Part {
  std::string_view name;
  std::string_view uses;  ///< one other part, or empty
  std::string_view text;
};

constexpr Part kParts[] = {
#define HELVE_PRELUDE(name, uses, text) {name, uses, text},
#include "prelude_table.inc"
#undef HELVE_PRELUDE
};

}  // namespace

void Prelude::need(const std::string& name) {
  if (!parts_.insert(name).second) return;
  const Part* part = std::find_if(std::begin(kParts), std::end(kParts), [&](const Part& p) { return p.name == name; });
  HELVE_CHECK(part != std::end(kParts), "the prelude has no part '" + name + "'");
  if (!part->uses.empty()) need(std::string(part->uses));
}

std::string Prelude::text() const {
  std::string out;
  for (const Part& part : kParts) {
    if (parts_.contains(std::string(part.name))) out += part.text.substr(1);
  }
  return out;
}

}  // namespace helve::cuda
