// TMA copies of boxes by tensor maps.
// A map is a parameter of the kernel, which the host creates from the call's tensor; thread 0 issues copies by the map
// and the coordinates of a box. In the unaligned variant, whose tensors have no maps, the threads copy the elements.
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

Expr zero_of(DType t) {
  return constant_of(t.is_bool() ? Operand(false) : t.is_float() ? Operand(0.0) : Operand(int64_t{0}), t);
}

}  // namespace

void KernelEmitter::find_maps() {
  if (unaligned_) return;
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
    line(call("load_box", "", fmt::format("{}, {}, {}, {}, {}", box, map->name, begin, bytes, arrival())) + ";",
         s.span);
  });
}

/// All threads copy the elements; those outside of the tensor become zero, or are not written.
void KernelEmitter::copy_box_elements(const TileOp& s) {
  const CopyBoxes boxes = boxes_of(s);
  const Region &tensor = s.region(boxes.tensor), &memory = s.region(1 - boxes.tensor);
  const std::vector<int64_t> extents = *constant_shape(memory.shape());
  int64_t count = 1;
  for (const int64_t extent : extents) count *= extent;
  const int64_t passes = (count + kernel_.threads - 1) / kernel_.threads;
  const VarRef tx = make_var("tx"), pass = make_var("pass");
  Facts facts = facts_;
  facts.bind_loop(tx, int_imm(0), int_imm(kernel_.threads));
  facts.bind_loop(pass, int_imm(0), int_imm(passes));
  const Expr place = simplify(Expr(pass) * int_imm(kernel_.threads) + Expr(tx), facts);
  std::vector<Expr> digits(extents.size());
  Expr rest = place;
  for (size_t k = extents.size(); k-- > 0;) {
    digits[k] = k == 0 ? rest : floor_mod(rest, int_imm(extents[k]));
    rest = floor_div(rest, int_imm(extents[k]));
  }
  const auto element_of = [&](const Region& region) {
    std::vector<Expr> out;
    size_t next = 0;
    for (const Range& range : region.ranges) {
      out.push_back(simplify(range.point ? range.begin : range.begin + digits[next++], facts));
    }
    return out;
  };
  const std::vector<Expr> in_tensor = element_of(tensor), in_memory = element_of(memory);
  Expr inside;
  for (size_t d = 0; d < in_tensor.size(); ++d) {
    const Expr one = simplify(less(in_tensor[d], tensor.buffer->shape[d]), facts);
    if (!can_prove(one, facts)) inside = inside ? logical_and(inside, one) : one;
  }
  const DType t = tensor.buffer->dtype;
  const bool loads = boxes.tensor == 0;
  Stmt one = loads ? helve::store(memory.buffer, in_memory, helve::load(tensor.buffer, in_tensor), s.span)
                   : helve::store(tensor.buffer, in_tensor, helve::load(memory.buffer, in_memory), s.span);
  if (inside) {
    const Stmt zero = loads ? helve::store(memory.buffer, in_memory, zero_of(t), s.span) : Stmt();
    one = helve::if_then(inside, one, zero, s.span);
  }
  const Expr exists = less(place, int_imm(count));
  if (!can_prove(exists, facts)) one = helve::if_then(exists, one, {}, s.span);
  const Stmt turns = helve::for_loop(LoopKind::Serial, pass, int_imm(passes), one, s.span);
  const Stmt threads = helve::for_loop(LoopKind::Thread, tx, int_imm(kernel_.threads), turns, s.span);
  thread_loop(*as<For>(threads));
}

}  // namespace helve::cuda
