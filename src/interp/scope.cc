// Slots and frames.
// A frame holds only what one executor may see, so that nothing leaks between cores.
#include "scope.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/support/diagnostic.h"

namespace helve::interp {

Scope::Scope(const FunctionRef& f, const Options& options) : function_(f), options_(options) {
  for (const VarRef& dim : f->dims) define(dim);
  for (const Param& param : f->params) {
    std::visit([&](const auto& p) { define(p); }, param);
  }
  if (!f->mesh) return;
  for (const std::string& name : f->mesh->names) {
    core_.push_back(make_var("core_" + name));
    define(core_.back());
  }
}

size_t Scope::define(const VarRef& var) { return vars_.try_emplace(var.get(), vars_.size()).first->second; }

size_t Scope::define(const BufferRef& buffer) {
  const auto [at, fresh] = slots_.try_emplace(buffer.get(), slots_.size());
  if (fresh) buffers_.push_back(buffer);
  return at->second;
}

size_t Scope::queue(const CopyQueue& queue) {
  const auto at = std::find(queues_.begin(), queues_.end(), queue);
  if (at != queues_.end()) return static_cast<size_t>(at - queues_.begin());
  queues_.push_back(queue);
  return queues_.size() - 1;
}

size_t Scope::slot(const Var& var) const {
  const auto at = vars_.find(&var);
  HELVE_CHECK(at != vars_.end(), fmt::format("variable '{}' is used before its definition", var.name));
  return at->second;
}

size_t Scope::slot(const Storage& buffer) const {
  const auto at = slots_.find(&buffer);
  HELVE_CHECK(at != slots_.end(), fmt::format("buffer '{}' is used before its definition", buffer.name));
  return at->second;
}

Frame Scope::make_frame(int64_t rank) const {
  Frame frame;
  frame.vars.resize(vars_.size());
  frame.buffers.resize(buffers_.size());
  for (const BufferRef& buffer : buffers_) {
    frame.owned.push_back(buffer->scope == MemoryScope::Param ? nullptr : std::make_unique<Instance>(buffer));
    frame.buffers[frame.owned.size() - 1] = frame.owned.back().get();
  }
  frame.rank = rank;
  if (has_mesh()) {
    const std::vector<int64_t> at = coordinates_of(rank, mesh().extents);
    for (size_t d = 0; d < at.size(); ++d) frame.vars[slot(*core_[d])] = of_int(at[d]);
  }
  return frame;
}

std::vector<int64_t> coordinates_of(int64_t linear, const std::vector<int64_t>& extents) {
  std::vector<int64_t> at(extents.size());
  for (size_t d = extents.size(); d-- > 0;) {
    at[d] = linear % extents[d];
    linear /= extents[d];
  }
  return at;
}

std::optional<int64_t> rank_of(const std::vector<int64_t>& at, const std::vector<int64_t>& extents) {
  if (at.size() != extents.size()) return std::nullopt;
  int64_t rank = 0;
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < 0 || at[d] >= extents[d]) return std::nullopt;
    rank = rank * extents[d] + at[d];
  }
  return rank;
}

}  // namespace helve::interp
