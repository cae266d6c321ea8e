// Small collectives of a cluster by distributed shared memory: every core stores its elements to every member of its
// group and waits until as many bytes have arrived in its own slots.
// This avoids a cluster barrier, which would also wait for all stores to global memory. The slots are doubled, and the
// exchanges alternate between the halves: a core that has received exchange p + 1 from all members knows that they have
// read exchange p, so it may overwrite it with exchange p + 2. This needs a store from every member in every exchange,
// so only all-gathers and all-reductions are pushed.
#include "push_buffers.h"

#include <algorithm>

#include "exchange.h"
#include "helve/analysis/element_address.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/text.h"

namespace helve {

namespace {

constexpr int64_t kMaxPushBytes = 8192;  // of both halves; larger sources are read in place

/// The axes of the groups in one spelling.
std::string axes_text(const TileOp& op, const MeshShape& mesh) {
  const bool all = axes_of(op, mesh) == *axes_named(mesh, "all");
  return all ? "all" : *op.axis();
}

/// The elements of a source that can be pushed: a whole buffer in shared memory, of 4- or 8-byte elements.
std::optional<int64_t> pushed_elements(const TileOp& op) {
  if (op.op != TileOpcode::CommAllGather && op.op != TileOpcode::CommAllReduce) return std::nullopt;
  const Region& source = op.region(0);
  const int64_t bytes = source.buffer->dtype.bytes();
  const std::optional<std::vector<int64_t>> shape = constant_shape(source.buffer->shape);
  if (source.buffer->scope != MemoryScope::Shared || !source.whole() || !shape) return std::nullopt;
  if (bytes != 4 && bytes != 8) return std::nullopt;
  int64_t count = 1;
  for (int64_t extent : *shape) count *= extent;
  return count;
}

Region element(const BufferRef& buffer, const std::vector<Expr>& indices) {
  Region out{buffer, {}};
  for (const Expr& index : indices) out.ranges.push_back({index, int_imm(1), true});
  return out;
}

}  // namespace

PushBuffers::Key PushBuffers::key_of(const TileOp& op) const {
  return {axes_text(op, mesh_), to_string(op.region(0).buffer->dtype)};
}

PushBuffers::PushBuffers(const Kernel& kernel, const MeshShape& mesh, int64_t offset) : kernel_(kernel), mesh_(mesh) {
  std::map<Key, DType> dtypes;
  walk(kernel.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective()) return;
    const std::optional<int64_t> count = pushed_elements(*op);
    const int64_t members = group_of(*op, mesh, kernel.vars, whole_span(mesh)).members;
    if (!count || *count == 0 || members == 1) return;
    const DType dtype = op->region(0).buffer->dtype;
    if (2 * members * *count * dtype.bytes() > kMaxPushBytes) return;
    PushBuffer& buffer = buffers_[key_of(*op)];
    buffer.members = members;
    buffer.count = std::max(buffer.count, *count);
    dtypes.emplace(key_of(*op), dtype);
    pushed_.insert(op);
  });
  const auto place = [&](const BufferRef& buffer) {
    offset = (offset + kSharedUnit - 1) / kSharedUnit * kSharedUnit;
    const BufferRef out = at_offset(buffer, offset, {});
    offset += shared_size(*out);
    return out;
  };
  for (auto& [key, buffer] : buffers_) {
    const std::string axis = join(names_of_axes(key.first), "_", [](const std::string& name) { return name; });
    buffer.arrivals = place(make_buffer("arrivals_" + axis, {TypeCode::UInt, 64}, MemoryScope::Shared, {int_imm(2)}));
    buffer.slots = place(make_buffer("slots_" + axis, dtypes.at(key), MemoryScope::Shared,
                                     {int_imm(2), int_imm(buffer.members), int_imm(buffer.count)}));
    buffer.half =
        make_buffer("half_" + axis, {TypeCode::Int, 32}, MemoryScope::Fragment, {int_imm(kernel.threads), int_imm(1)});
  }
}

Expr PushBuffers::half_of(const PushBuffer& buffer, const VarRef& tx) const {
  return load(buffer.half, {Expr(tx), int_imm(0)});
}

std::vector<Stmt> PushBuffers::begin() const {
  std::vector<Stmt> out, barriers;
  for (const auto& [key, buffer] : buffers_) {
    for (const BufferRef& each : {buffer.arrivals, buffer.slots, buffer.half}) out.push_back(alloc(each));
    out.push_back(tile_op(TileOpcode::MbarrierInit, {whole_region(buffer.arrivals)}));
    const VarRef tx = make_var("tx");
    out.push_back(for_loop(LoopKind::Thread, tx, int_imm(kernel_.threads),
                           store(buffer.half, {Expr(tx), int_imm(0)}, int_imm(0, {TypeCode::Int, 32}))));
    const Stmt barrier = tile_op(TileOpcode::CommBarrier, {key.first});
    const bool again = std::any_of(barriers.begin(), barriers.end(), [&](const Stmt& known) {
      return axes_text(*as<TileOp>(known), mesh_) == key.first;
    });
    if (!again) barriers.push_back(barrier);
  }
  out.insert(out.end(), barriers.begin(), barriers.end());
  return out;
}

Stmt PushBuffers::push(const TileOp& op) const {
  const PushBuffer& buffer = buffer_of(op);
  const BufferRef& source = op.region(0).buffer;
  const ThreadLoop loop{make_var("tx"), kernel_.threads, op.span};
  const Expr me = simplify(group_of(op, mesh_, kernel_.vars, whole_span(mesh_)).me);
  const Expr count = int_imm(*pushed_elements(op));
  const Stmt stores = over_box(loop, {int_imm(buffer.members), count}, [&](const std::vector<Expr>& at) {
    const BufferRef there = on_other_core(buffer.slots);
    std::vector<Expr> from = unravel(at[1], source->shape);
    for (Expr& index : from) index = simplify(index);
    const std::vector<Expr> to = {floor_mod(cast(half_of(buffer, loop.tx), kIndex), int_imm(2)), me, at[1]};
    return seq({peer(there, buffer.slots, member_coordinates(axes_of(op, mesh_), mesh_, kernel_.vars, at[0])),
                tile_op(TileOpcode::StAsync, {element(source, from), element(there, to), whole_region(buffer.arrivals)},
                        op.span)});
  });
  return seq({tile_op(TileOpcode::SyncThreads, {}, op.span), stores}, op.span);  // the source is written
}

Stmt PushBuffers::receive(const TileOp& op) const {
  const PushBuffer& buffer = buffer_of(op);
  const BufferRef& source = op.region(0).buffer;
  const int64_t bytes = buffer.members * *pushed_elements(op) * source->dtype.bytes();
  const ThreadLoop loop{make_var("tx"), kernel_.threads, op.span};
  const auto arrived = [&](const std::vector<Expr>&, const Expr& member, const std::vector<Expr>& indices,
                           std::vector<Stmt>&) {
    const Expr half = floor_mod(cast(half_of(buffer, loop.tx), kIndex), int_imm(2));
    return load(buffer.slots, {half, member, simplify(flat_address(*source, indices))});
  };
  const VarRef tx = make_var("tx");
  const Stmt other_half =
      store(buffer.half, {Expr(tx), int_imm(0)}, int_imm(1, {TypeCode::Int, 32}) - half_of(buffer, tx));
  return seq({tile_op(TileOpcode::CommWaitBytes, {whole_region(buffer.arrivals), bytes, axes_text(op, mesh_)}, op.span),
              exchange(op, mesh_, kernel_.vars, loop, arrived),
              for_loop(LoopKind::Thread, tx, int_imm(kernel_.threads), other_half, op.span),
              tile_op(TileOpcode::SyncThreads, {}, op.span)},
             op.span);
}

}  // namespace helve
