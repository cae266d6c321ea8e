// Is a buffer used before anything is written to it?
// What a kernel allocates holds undefined values. Only a use that certainly comes first is a warning: no access of the
// buffer stands in front of it, no condition around it, and the loops around it run.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"
#include "obligations.h"

namespace helve::proofs {

namespace {

/// Buffers that a statement reads before any statement in front of it accesses them, in program order; nothing if the
/// program has statements that others may overtake, or whose memory has two names.
std::vector<const Buffer*> read_first(const Stmt& body) {
  std::unordered_map<const Buffer*, bool> first;  // allocated buffers, and whether the first access was seen
  std::vector<const Buffer*> out;
  bool in_order = true;
  walk(body, [&](const Stmt& s) {
    in_order &= s->kind != StmtKind::Role && s->kind != StmtKind::Peer && s->kind != StmtKind::Outline;
    if (const Alloc* alloc = as<Alloc>(s)) first.emplace(alloc->buffer.get(), false);
    for (const RegionAccess& access : direct_accesses(s)) {
      const auto found = first.find(access.region.buffer.get());
      if (found == first.end() || std::exchange(found->second, true)) continue;
      if (!access.write) out.push_back(found->first);
    }
  });
  return in_order ? out : std::vector<const Buffer*>();
}

/// Is the element used where it is read? A copy passes undefined values on, except to a tensor of the call.
bool is_use(const Access& read) {
  if (const auto* store = as<Store>(Stmt(read.stmt))) {
    const bool passed_on = read.load && store->value.get() == read.load;
    return !passed_on || store->buffer->scope == MemoryScope::Param;
  }
  const auto* op = as<TileOp>(Stmt(read.stmt));
  if (!op) return false;
  const TileRule rule = op->row().rule;
  if (rule == TileRule::Copy) return op->region(1).buffer->scope == MemoryScope::Param;
  return rule == TileRule::Gemm || rule == TileRule::Reduce || rule == TileRule::Scan;
}

/// Are the steps inside of the allocation loops, whose first iteration comes before all others?
bool runs_at_once(const Path& path, size_t home) {
  return std::all_of(path.begin() + static_cast<ptrdiff_t>(home), path.end(),
                     [](const StepRef& step) { return step->stmt && !step->vars.empty() && !step->condition; });
}

std::string remedy(const Access& read) {
  const std::string clear = fmt::format("write it first, for example with T.clear({})", read.buffer->name);
  const auto* op = as<TileOp>(Stmt(read.stmt));
  if (!op || op->clears().value_or(true)) return clear;
  for (size_t i = 0; i < op->row().params.size(); ++i) {
    if (op->row().params[i].writes() && op->region(i).buffer == read.buffer) return clear + ", or pass clear=True";
  }
  return clear;
}

}  // namespace

std::vector<Diagnostic> find_undefined_reads(const Function& f) {
  const std::vector<const Buffer*> candidates = read_first(f.body);
  std::vector<Diagnostic> out;
  if (candidates.empty()) return out;
  const AccessModel model = access_model(f);
  Budget budget;
  for (const Buffer* buffer : candidates) {
    const auto first = std::find_if(model.accesses.begin(), model.accesses.end(),
                                    [&](const Access& each) { return each.buffer.get() == buffer; });
    const auto home = model.home.find(buffer);
    if (first == model.accesses.end() || home == model.home.end() || first->write) continue;
    if (!is_use(*first) || !runs_at_once(first->path, home->second.size())) continue;
    Query query(model);
    for (const StepRef& step : first->path) query.add(*step);
    for (const Range& range : first->ranges) query.require(less(int_imm(0), range.extent));
    for (const Access& each : model.accesses) {  // of a copy to a tensor of the call: it has an element there
      if (each.visit != first->visit || !each.write || !each.may_pass_end) continue;
      for (size_t d = 0; d < each.ranges.size(); ++d) query.require(less(each.ranges[d].begin, each.limits[d]));
    }
    if (query.excludes(bool_imm(true), budget).verdict != ProofVerdict::Refuted) continue;
    out.push_back({Code::UndefinedRead,
                   first->span,
                   {{"buffer", buffer->name}, {"remedy", remedy(*first)}},
                   {{buffer->span, fmt::format("'{}' is allocated here", buffer->name)}},
                   {}});
  }
  return out;
}

}  // namespace helve::proofs
