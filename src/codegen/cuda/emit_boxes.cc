// TMA copies of boxes by tensor maps.
// A map is a parameter of the kernel, which the host creates from the call's tensor; thread 0 issues copies by the map
// and the coordinates of a box.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "kernel_emitter.h"

namespace helve::cuda {

void KernelEmitter::map_parameters(std::vector<std::string>& out) {
  for (const BoxMap& map : box_maps(source_.stmt->body)) {
    need("tensor_map");
    maps_.emplace_back(map, names_.fresh(map.tensor->name + "_boxes"));
    out.push_back("const __grid_constant__ helve_tensor_map " + maps_.back().second);
    kernel_.maps.push_back({static_cast<int64_t>(position_.at(map.tensor.get())), map.box, map.swizzle});
  }
}

/// Blocks that copy for each other are launched as clusters, neighbours one after the other.
void KernelEmitter::cluster() {
  if (!has_shared_rings(source_.stmt->body)) return;
  kernel_.cluster = source_.stmt->cluster;
  place_ = make_var("place");
  facts_.bind_loop(place_, int_imm(0), int_imm(kernel_.cluster));
  declare(place_, "int", fmt::format("blockIdx.x % {}", kernel_.cluster), source_.stmt->span);
}

std::string KernelEmitter::coordinate(const Expr& e) {
  const c::CExpr value = expr(e);
  return value.wide ? call("coordinate", "", value.text) : value.text;
}

/// A box begins at a multiple of its swizzle's period, which the swizzle does not change.
void KernelEmitter::begin_boxes(const TileOp& s) {
  const CopyBoxes boxes = boxes_of(s);
  const Region &tensor = s.region(boxes.tensor), &memory = s.region(1 - boxes.tensor);
  const auto map = std::find_if(maps_.begin(), maps_.end(),
                                [&](const auto& each) { return each.first.serves(tensor.buffer.get(), boxes); });
  HELVE_CHECK(map != maps_.end(), "a copy has no tensor map");
  std::vector<Expr> extents;
  for (const CopyBoxes::Loop& loop : boxes.loops) extents.push_back(int_imm(loop.count));
  if (boxes.blocks > 1) extents[0] = int_imm(boxes.loops[0].count / boxes.blocks);
  loop_nest(extents, s.span, [&](const std::vector<Expr>& turns) {
    std::vector<Expr> at = turns;
    if (boxes.blocks > 1) at[0] = at[0] * int_imm(boxes.blocks) + Expr(place_);
    const std::vector<Expr> first = boxes.begin(tensor, true, at);
    const std::string begin = fmt::format("{{{}}}", join(first, ", ", [&](const Expr& e) { return coordinate(e); }));
    const Expr sum = address_of(*memory.buffer, boxes.begin(memory, false, at), facts_).sum;
    const std::string box = fmt::format("{} + {}", names_.of(memory.buffer.get(), memory.buffer->name),
                                        text(sum, c::precedence_of("+") + 1));
    if (boxes.tensor == 1) {
      return line(call("store_box", "", fmt::format("{}, {}, {}", map->second, begin, box)) + ";", s.span);
    }
    const int64_t bytes = boxes.elements() * tensor.buffer->dtype.bytes();
    const std::string operands =
        fmt::format("{}, {}, {}, {}, {}", box, map->second, begin, bytes * boxes.blocks, arrival(s));
    if (boxes.blocks == 1) return line(call("load_box", "", operands) + ";", s.span);
    line(call("share_box", "", fmt::format("{}, {}", operands, (1 << boxes.blocks) - 1)) + ";", s.span);
  });
}

}  // namespace helve::cuda
