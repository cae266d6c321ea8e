// What a step costs, and what it moves.
// Bytes are counted on the transfer, whatever way a backend takes later; an all_reduce alone is counted in the form
// that every backend improves on: all terms to all would be as many bytes as there are devices.
#include "cost.h"

#include <algorithm>
#include <bit>
#include <span>

#include "boxes.h"
#include "helve/plan/redistribution.h"

namespace helve {

int64_t members_of(const Transfer& transfer, const std::vector<size_t>& axes) {
  int64_t out = 1;
  for (size_t a : axes) out *= transfer.from().mesh[a].extent;
  return out;
}

int64_t elements_received(const CollectiveStep& step, const std::vector<int64_t>& device) {
  if (step.form != CollectiveForm::AllReduce) return step.transfer.elements_received(device);
  const int64_t members = members_of(step.transfer, step.axes);
  int64_t member = 0;
  for (size_t a : step.axes) member = member * step.transfer.from().mesh[a].extent + device[a];
  const int64_t elements = elements_of(box_of(step.transfer.to(), device));
  const int64_t own = elements / members + (member < elements % members);  // the part that this member reduces
  return (members - 1) * own + elements - own;
}

int64_t rounds(CollectiveForm form, int64_t members, int64_t partners) {
  using enum CollectiveForm;
  const int64_t tree = std::bit_width(static_cast<uint64_t>(std::max<int64_t>(1, members) - 1));
  switch (form) {
    case Local: return 0;
    case Permute: return 1;
    case AllToAll: return members - 1;
    case Exchange: return partners;
    case AllReduce: return 2 * tree;
    default: return tree;
  }
}

namespace {

Volume volume_of(std::span<const CollectiveStep> steps, const std::vector<MeshAxis>& mesh, int64_t element_bytes) {
  Volume out;
  std::vector<int64_t> extents;
  for (const MeshAxis& each : mesh) extents.push_back(each.extent);
  for_each_index(extents, [&](const std::vector<int64_t>& device) {
    int64_t bytes = 0;
    for (const CollectiveStep& step : steps) {
      if (step.form != CollectiveForm::Local) bytes += elements_received(step, device) * element_bytes;
    }
    out.most = std::max(out.most, bytes);
    out.total += bytes;
  });
  return out;
}

}  // namespace

Volume volume(const CollectiveStep& step, int64_t element_bytes) {
  return volume_of({&step, 1}, step.transfer.from().mesh, element_bytes);
}

Volume volume(const Redistribution& plan) { return volume_of(plan.steps, plan.from.mesh, plan.element_bytes); }

}  // namespace helve
