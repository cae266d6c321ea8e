// TMA copies of boxes by tensor maps.
// A map is a parameter of the kernel, which the host creates from the call's tensor; thread 0 issues copies by the map
// and the coordinates of a box.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

/// A map takes 128 bytes of a kernel's parameters, of which there are at most 32,764.
constexpr size_t kMaxMaps = 200;

CopyBoxes boxes_of(const TileOp& s) {
  std::string reason;
  std::optional<CopyBoxes> boxes = helve::copy_boxes(s.region(0), s.region(1), &reason);
  HELVE_CHECK(boxes, "a copy by a tensor map is none: " + reason);
  return *std::move(boxes);
}

}  // namespace

void KernelEmitter::find_maps() {
  walk(source_.stmt->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || op->op != TileOpcode::CpAsyncBulkTensor) return;
    const CopyBoxes boxes = boxes_of(*op);
    const Buffer* tensor = op->region(boxes.tensor).buffer.get();
    const auto serves = [&](const BoxMap& map) { return map.serves(tensor, boxes); };
    if (std::any_of(maps_.begin(), maps_.end(), serves)) return;
    if (maps_.size() == kMaxMaps) {
      throw UserError(Code::NoSchedule, op->span, {{"operation", operation_text(*op)}},
                      {{{},
                        fmt::format("'tma_tensor' declined: a kernel takes {} tensor maps, one for each tensor and "
                                    "box",
                                    kMaxMaps)}},
                      {"copy tiles of fewer shapes, or ask for other copies by dispatch=\"cp_async\""});
    }
    maps_.push_back({tensor, boxes.box, boxes.swizzle});
  });
}

void KernelEmitter::map_parameters(std::vector<std::string>& out) {
  for (BoxMap& map : maps_) {
    need("tensor_map");
    map.name = names_.fresh(map.tensor->name + "_boxes");
    out.push_back("const __grid_constant__ helve_tensor_map " + map.name);
    kernel_.maps.push_back({static_cast<int64_t>(position_.at(map.tensor)), map.box, map.swizzle});
  }
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
                                [&](const BoxMap& each) { return each.serves(tensor.buffer.get(), boxes); });
  HELVE_CHECK(map != maps_.end(), "a copy has no tensor map");
  std::vector<Expr> extents;
  for (const CopyBoxes::Loop& loop : boxes.loops) extents.push_back(int_imm(loop.count));
  loop_nest(extents, s.span, [&](const std::vector<Expr>& at) {
    const std::vector<Expr> first = boxes.begin(tensor, true, at);
    const std::string begin = fmt::format("{{{}}}", join(first, ", ", [&](const Expr& e) { return coordinate(e); }));
    const Expr sum = address_of(*memory.buffer, boxes.begin(memory, false, at), facts_).sum;
    const std::string box = fmt::format("{} + {}", names_.of(memory.buffer.get(), memory.buffer->name),
                                        text(sum, c::precedence_of("+") + 1));
    if (boxes.tensor == 1) {
      return line(call("store_box", "", fmt::format("{}, {}, {}", map->name, begin, box)) + ";", s.span);
    }
    const int64_t bytes = boxes.elements() * tensor.buffer->dtype.bytes();
    line(call("load_box", "", fmt::format("{}, {}, {}, {}, {}", box, map->name, begin, bytes, arrival(s))) + ";",
         s.span);
  });
}

}  // namespace helve::cuda
