// Transfers, device by device.
// Blocks are intervals in each dimension, so the partners of a device are the blocks of the other side that meet its
// own: a box of block numbers, whose digits are coordinates.
#include "helve/plan/transfer.h"

#include <fmt/format.h>

#include <algorithm>

#include "boxes.h"
#include "helve/plan/describe.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve {

namespace {

[[noreturn]] void refuse(const Distribution& from, const Distribution& to, std::string reason, std::string remedy) {
  throw UserError(Code::Redistribution, {},
                  {{"from", quoted_notation(from)},
                   {"to", quoted_notation(to)},
                   {"reason", std::move(reason)},
                   {"remedy", std::move(remedy)}});
}

}  // namespace

Transfer::Side Transfer::side_of(const Distribution& distribution) {
  const std::vector<MeshAxis>& mesh = distribution.mesh;
  Side out;
  out.cuts.resize(mesh.size());
  out.numbers.assign(mesh.size(), -1);
  for (size_t a = 0; a < mesh.size(); ++a) {
    if (distribution.layout.offset().count(mesh[a].axis)) out.numbers[a] = distribution.layout.offset(mesh[a].axis);
  }
  for (size_t d = 0; d < distribution.cut.size(); ++d) {
    int64_t weight = 1;
    for (size_t k = distribution.cut[d].size(); k-- > 0;) {
      const MeshAxis& each = distribution.cut[d][k];
      const size_t a = static_cast<size_t>(std::find(mesh.begin(), mesh.end(), each) - mesh.begin());
      out.cuts[a] = {static_cast<int64_t>(d), weight};
      weight *= each.extent;
    }
  }
  return out;
}

Transfer::Transfer(const Distribution& from, const Distribution& to)
    : from_(from), to_(to), from_side_(side_of(from)), to_side_(side_of(to)), roles_(from.mesh.size()) {
  if (from.shape != to.shape) {
    refuse(from, to, fmt::format("the tensor is {} there and {} here", shape_text(from.shape), shape_text(to.shape)),
           "redistribute to a distribution of the tensor's own shape");
  }
  if (from.mesh != to.mesh) {
    refuse(from, to, fmt::format("the mesh is {} there and {} here", mesh_text(from.mesh), mesh_text(to.mesh)),
           "give both one mesh; what crosses meshes is gathered first");
  }
  std::optional<PartialOp> op;
  for (size_t a = 0; a < from.mesh.size(); ++a) {
    const Partial* terms = from.partial_over(from.mesh[a].axis);
    const Partial* wanted = to.partial_over(from.mesh[a].axis);
    AxisRole& role = roles_[a];
    role.reduced = terms && !(wanted && wanted->op == terms->op);
    role.begun = wanted && !(terms && wanted->op == terms->op);
    role.kept = (terms && !role.reduced) || from.holds_copies(from.mesh[a].axis);
    if (!role.reduced) continue;
    terms_ *= from.mesh[a].extent;
    if (op && *op != terms->op) {
      refuse(from, to, fmt::format("it would reduce by {} and by {} at once", to_string(*op), to_string(terms->op)),
             "redistribute twice, an axis of terms at a time, in the order that you mean");
    }
    op = terms->op;
  }
  for (const Partial& one : to.partial) {  // of both orders of reducing them, no terms are right for both
    for (const Partial& other : to.partial) {
      const auto axis =
          std::find_if(from.mesh.begin(), from.mesh.end(), [&](const MeshAxis& each) { return each.axis == one.axis; });
      if (one.op == other.op || !roles_[static_cast<size_t>(axis - from.mesh.begin())].begun) continue;
      refuse(
          from, to,
          fmt::format("it would begin terms of {} beside terms of {}, and which are reduced first decides the result",
                      to_string(one.op), to_string(other.op)),
          "let the axes of terms have one operator, and reduce those of the other one first");
    }
  }
  op_ = op.value_or(PartialOp::Sum);
}

bool Transfer::receives(const std::vector<int64_t>& device) const {
  for (size_t a = 0; a < device.size(); ++a) {
    if (to_side_.numbers[a] >= 0 && device[a] != to_side_.numbers[a]) return false;
    if (roles_[a].begun && device[a] != 0) return false;
  }
  return true;
}

bool Transfer::sends(const std::vector<int64_t>& device) const {
  for (size_t a = 0; a < device.size(); ++a) {
    if (from_side_.numbers[a] >= 0 && device[a] != from_side_.numbers[a]) return false;
  }
  return true;
}

std::vector<int64_t> Transfer::coordinates(const Side& side, const std::vector<int64_t>& numbers) const {
  std::vector<int64_t> out = side.numbers;
  for (size_t a = 0; a < out.size(); ++a) {
    const Side::Cut& cut = side.cuts[a];
    if (cut.dim >= 0) out[a] = numbers[static_cast<size_t>(cut.dim)] / cut.weight % from_.mesh[a].extent;
  }
  return out;
}

std::vector<TransferBox> Transfer::received(const std::vector<int64_t>& device) const {
  std::vector<TransferBox> out;
  if (!receives(device)) return out;
  const Box mine = box_of(to_, device);
  std::vector<int64_t> terms(device.size(), 1);
  for (size_t a = 0; a < device.size(); ++a) {
    if (roles_[a].reduced) terms[a] = from_.mesh[a].extent;
  }
  for_each_block(mine, from_.block, [&](const std::vector<int64_t>& numbers, const Box& box) {
    std::vector<int64_t> sender = coordinates(from_side_, numbers);
    for (size_t a = 0; a < device.size(); ++a) {
      if (roles_[a].kept) sender[a] = device[a];
    }
    for_each_index(terms, [&](const std::vector<int64_t>& term) {
      for (size_t a = 0; a < device.size(); ++a) {
        if (roles_[a].reduced) sender[a] = term[a];
      }
      out.push_back({sender, box.begin, box.extents});
    });
  });
  return out;
}

std::vector<TransferBox> Transfer::sent(const std::vector<int64_t>& device) const {
  std::vector<TransferBox> out;
  if (!sends(device)) return out;
  const Box mine = box_of(from_, device);
  for_each_block(mine, to_.block, [&](const std::vector<int64_t>& numbers, const Box& box) {
    std::vector<int64_t> receiver = coordinates(to_side_, numbers);
    std::vector<int64_t> copies(device.size(), 1);
    for (size_t a = 0; a < device.size(); ++a) {
      if (roles_[a].begun) receiver[a] = 0;
      if (receiver[a] >= 0) {
        if (roles_[a].kept && receiver[a] != device[a]) return;  // another copy of this block sends there
      } else if (roles_[a].kept) {
        receiver[a] = device[a];
      } else {
        copies[a] = from_.mesh[a].extent;
      }
    }
    for_each_index(copies, [&](const std::vector<int64_t>& copy) {
      for (size_t a = 0; a < device.size(); ++a) {
        if (copies[a] > 1) receiver[a] = copy[a];
        if (receiver[a] < 0) receiver[a] = 0;  // an axis of extent 1
      }
      out.push_back({receiver, box.begin, box.extents});
    });
  });
  return out;
}

bool Transfer::pairs(const std::vector<int64_t>& receiver, const std::vector<int64_t>& sender) const {
  for (size_t a = 0; a < receiver.size(); ++a) {
    if (roles_[a].kept && receiver[a] != sender[a]) return false;
  }
  return receives(receiver) && sends(sender);
}

int64_t Transfer::partners(const std::vector<int64_t>& device) const {
  int64_t copies = 1, members = 1;
  for (size_t a = 0; a < device.size(); ++a) {
    const bool free = !roles_[a].kept && !roles_[a].begun && to_side_.cuts[a].dim < 0 && to_side_.numbers[a] < 0;
    if (free) copies *= from_.mesh[a].extent;
    members *= from_.mesh[a].extent;
  }
  const int64_t senders = receives(device) ? terms_ * blocks_met(box_of(to_, device), from_.block) : 0;
  const int64_t receivers = sends(device) ? copies * blocks_met(box_of(from_, device), to_.block) : 0;
  return std::min(members - 1, std::max(senders, receivers));
}

int64_t Transfer::elements_received(const std::vector<int64_t>& device) const {
  if (!receives(device)) return 0;
  const Box mine = box_of(to_, device);
  int64_t out = terms_ * elements_of(mine);
  if (sends(device)) out -= elements_of(intersection(mine, box_of(from_, device)));
  return out;
}

}  // namespace helve
