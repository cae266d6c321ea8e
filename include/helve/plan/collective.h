// Which collective a transfer is.
// A collective is no idea of its own: it is a transfer of a certain form. The form is guessed from what each axis of
// the mesh does, then proved, for all devices at once, to move exactly what is needed (need.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "helve/plan/transfer.h"

namespace helve {

/// Within every group of devices that differ on the collective's axes alone:
enum class CollectiveForm {
  Local,          ///< nothing moves
  AllGather,      ///< everyone receives all blocks
  AllReduce,      ///< everyone receives the reduction of all blocks
  ReduceScatter,  ///< everyone receives its part of the reduction of all blocks
  AllToAll,       ///< everyone sends parts of its block, each part to one device
  Permute,        ///< everyone sends its block, whole, to one device and receives one
  Broadcast,      ///< one device sends its block to all
  Scatter,        ///< one device sends parts of its block, each part to one device
  Gather,         ///< one device receives all blocks
  Reduce,         ///< one device receives the reduction of all blocks
  Exchange,       ///< the direct exchange: pairs of devices send each other what is needed
};
/// "local", "all_gather", ...
std::string_view to_string(CollectiveForm form);
/// Does it combine terms? Never for forms other than all_reduce, reduce_scatter, reduce and exchange.
bool reduces(CollectiveForm form);

/// A transfer with its form.
struct CollectiveStep {
  CollectiveForm form;
  std::vector<size_t> axes;  ///< of the mesh, by place there: those on which a sender and a receiver differ
  Transfer transfer;
  int64_t root = -1;         ///< the member of a group that sends or receives alone, row-major over `axes`; -1: none
};

/// Does the axis do something else in the second distribution: does it cut at another place, have another coordinate
/// with the data, hold terms of another operator, or none?
bool changes(const Distribution& from, const Distribution& to, Axis axis);

/// The form that the roles of the axes suggest; what no table row fits is an exchange. Not proved.
CollectiveForm suggested_form(const Transfer& transfer);

/// Do some devices show that the transfer is not of this form? Takes microseconds; false proves nothing.
bool refuted(const Transfer& transfer, CollectiveForm form);

/// The transfer with the axes that it needs and the suggested form, if that is proved to move what is needed; otherwise
/// as the exchange, which is by definition.
CollectiveStep derive(const Transfer& transfer);

}  // namespace helve
