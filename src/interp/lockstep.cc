// Cores that go together.
// The one place that decides whether control flow around a collective is uniform enough.
#include <fmt/format.h>

#include <algorithm>

#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "stmt_code.h"

namespace helve::interp {

void StmtCode::include(const StmtCode& part) {
  for (const SyncPoint& point : part.syncs_) add_sync(point);
}

void StmtCode::add_sync(SyncPoint point) {
  const auto same = [&](const SyncPoint& p) { return p.axis == point.axis; };
  if (std::none_of(syncs_.begin(), syncs_.end(), same)) syncs_.push_back(std::move(point));
}

void synchronise(const CoreSet& cores) {
  if (Trace* trace = cores.front()->trace) trace->checker().synchronise(cores);
}

int64_t group_of(const MeshShape& mesh, const std::string& axis, int64_t rank, const Span& span) {
  if (axis == kNoAxis) return rank;
  const std::optional<uint64_t> axes = axes_named(mesh, axis);
  if (!axes) {
    const auto name = [](const std::string& n) { return n; };
    throw UserError(Code::UnknownMeshAxis, span, {{"axis", axis}, {"axes", join(mesh.names, ", ", name) + ", all"}});
  }
  int64_t first = rank, stride = 1;
  for (size_t d = mesh.extents.size(); d-- > 0; stride *= mesh.extents[d]) {
    if ((*axes >> d & 1) != 0) first -= rank / stride % mesh.extents[d] * stride;
  }
  return first;
}

void require_uniform(const StmtCode& code, const MeshShape& mesh, const CoreSet& cores,
                     const std::vector<int64_t>& choices, const Span& control, const std::string& subject,
                     std::string (*explain)(int64_t choice)) {
  for (const SyncPoint& point : code.syncs()) {
    for (size_t i = 0; i < cores.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        if (choices[i] == choices[k]) continue;
        const int64_t group = group_of(mesh, point.axis, cores[i]->rank, point.span);
        if (group != group_of(mesh, point.axis, cores[k]->rank, point.span)) continue;
        const auto at = [&](size_t n) { return shape_text(coordinates_of(cores[n]->rank, mesh.extents)); };
        throw UserError(Code::DivergentCollective, point.span, {{"operation", point.operation}, {"axis", point.axis}},
                        {{control, fmt::format("{} {} on core {} and {} on core {}", subject, explain(choices[k]),
                                               at(k), explain(choices[i]), at(i))}});
      }
    }
  }
}

std::vector<CoreSet> partition(const CoreSet& cores, const std::vector<int64_t>& choices) {
  std::vector<int64_t> seen;
  std::vector<CoreSet> out;
  for (size_t i = 0; i < cores.size(); ++i) {
    size_t at = static_cast<size_t>(std::find(seen.begin(), seen.end(), choices[i]) - seen.begin());
    if (at == seen.size()) {
      seen.push_back(choices[i]);
      out.emplace_back();
    }
    out[at].push_back(cores[i]);
  }
  return out;
}

}  // namespace helve::interp
