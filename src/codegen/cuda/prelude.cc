// Selection of parts.
// A part of the table is named; one that stands with its only caller is given.
#include "prelude.h"

#include <algorithm>

#include "helve/support/diagnostic.h"

namespace helve::cuda {

namespace {

constexpr PreludePart kParts[] = {
#define HELVE_PRELUDE(name, uses, text) {name, uses, text},
#include "prelude_table.inc"
#undef HELVE_PRELUDE
};

}  // namespace

void Prelude::need(const std::string& name) {
  if (!parts_.insert(name).second) return;
  const PreludePart* part =
      std::find_if(std::begin(kParts), std::end(kParts), [&](const PreludePart& p) { return p.name == name; });
  HELVE_CHECK(part != std::end(kParts), "the prelude has no part '" + name + "'");
  if (!part->uses.empty()) need(std::string(part->uses));
}

void Prelude::need(const PreludePart& part) {
  if (!others_.emplace(part.name, &part).second) return;
  if (!part.uses.empty()) need(std::string(part.uses));
}

void Prelude::need(const std::string& name, const std::string& text) { made_.emplace(name, text); }

std::string Prelude::text() const {
  std::string out;
  for (const PreludePart& part : kParts) {
    if (parts_.contains(std::string(part.name))) out += part.text.substr(1);
  }
  for (const auto& [name, part] : others_) out += part->text.substr(1);
  for (const auto& [name, part] : made_) out += part.substr(1);
  return out;
}

}  // namespace helve::cuda
