// Pairs of devices, box against box.
// A pair costs a few comparisons, however many partners a device has.
#include "corners.h"

#include <algorithm>

namespace helve {

namespace {

constexpr int64_t kMaxDevices = 32;

/// The first coordinates, and the last; of many axes the ends alone.
std::vector<int64_t> ends_of(int64_t extent, size_t axes) {
  std::vector<int64_t> out = {0};
  if (axes <= 5 && extent > 1) out.push_back(extent - 1);
  if (axes <= 3 && extent > 2) out.push_back(1);
  return out;
}

int64_t shared_elements(const Box& a, const Box& b) {
  int64_t out = 1;
  for (size_t d = 0; d < a.begin.size(); ++d) {
    const int64_t begin = std::max(a.begin[d], b.begin[d]);
    out *= std::max<int64_t>(0, std::min(a.begin[d] + a.extents[d], b.begin[d] + b.extents[d]) - begin);
  }
  return out;
}

}  // namespace

Corners::Corners(const Transfer& transfer) : transfer_(transfer), apart_(transfer.from().mesh.size(), false) {
  const std::vector<MeshAxis>& mesh = transfer.from().mesh;
  std::vector<std::vector<int64_t>> ends;
  std::vector<int64_t> counts;
  for (const MeshAxis& each : mesh) {
    ends.push_back(ends_of(each.extent, mesh.size()));
    counts.push_back(static_cast<int64_t>(ends.back().size()));
  }
  for_each_index(counts, [&](const std::vector<int64_t>& index) {
    if (devices_.size() >= static_cast<size_t>(kMaxDevices)) return;
    std::vector<int64_t>& device = devices_.emplace_back();
    for (size_t a = 0; a < index.size(); ++a) device.push_back(ends[a][static_cast<size_t>(index[a])]);
  });
  for (const std::vector<int64_t>& device : devices_) {
    held_.push_back(box_of(transfer.from(), device));
    wanted_.push_back(transfer.receives(device) ? box_of(transfer.to(), device) : held_.back());
    if (!transfer.receives(device)) wanted_.back().extents.assign(transfer.to().shape.size(), 0);
  }
  for (size_t r = 0; r < devices_.size(); ++r) {
    for (size_t s = 0; s < devices_.size(); ++s) {
      if (r == s || !transfer.pairs(devices_[r], devices_[s]) || shared_elements(wanted_[r], held_[s]) == 0) continue;
      moves_ = true;
      for (size_t a = 0; a < apart_.size(); ++a) apart_[a] = apart_[a] || devices_[r][a] != devices_[s][a];
    }
  }
}

bool Corners::refute(CollectiveForm form) const {
  using enum CollectiveForm;
  if (form == Exchange || form == Local) return form == Local && moves_;
  const bool whole = form == AllGather || form == AllReduce || form == Broadcast || form == Gather || form == Reduce;
  const bool to_root = form == Gather || form == Reduce;
  std::vector<int64_t> root;  // by axis, -1 where there is none
  for (const MeshAxis& each : transfer_.to().mesh) {
    const Point& offset = transfer_.to().layout.offset();
    const auto found = offset.find(each.axis);
    root.push_back(found == offset.end() ? -1 : found->second);
  }
  const auto may_move = [&](const std::vector<int64_t>& receiver, const std::vector<int64_t>& sender) {
    for (size_t a = 0; a < receiver.size(); ++a) {
      if (!apart_[a] && receiver[a] != sender[a]) return false;
      if (apart_[a] && to_root && root[a] >= 0 && receiver[a] != root[a]) return false;
    }
    return true;
  };
  for (size_t r = 0; r < devices_.size(); ++r) {
    for (size_t s = 0; s < devices_.size(); ++s) {
      if (r == s || !may_move(devices_[r], devices_[s])) continue;
      const int64_t both = shared_elements(wanted_[r], held_[s]);
      const int64_t needed = transfer_.pairs(devices_[r], devices_[s]) ? both : 0;
      if (needed != (whole ? elements_of(held_[s]) : both)) return true;
    }
  }
  return false;
}

}  // namespace helve
