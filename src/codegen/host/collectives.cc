// The boxes and strides of a collective's regions.
// A gathered dimension becomes a member stride; all others form the box that is moved.
#include "collectives.h"

#include <algorithm>

#include "helve/analysis/core_groups.h"
#include "helve/arith/simplify.h"
#include "helve/codegen/host/host_module.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/runtime/communicator.h"
#include "helve/support/diagnostic.h"

namespace helve {

using runtime::Collective;
using runtime::CollectiveKind;
using runtime::ScalarOp;
using runtime::ScalarProgram;

namespace {

ScalarProgram multiply(const ScalarProgram& a, const ScalarProgram& b) {
  if (a.is_constant() && a.code[0].value == 1) return b;
  if (b.is_constant() && b.code[0].value == 1) return a;
  if (a.is_constant() && b.is_constant()) return ScalarProgram(a.code[0].value * b.code[0].value);
  return ScalarProgram::binary(ScalarOp::Mul, a, b);
}

ScalarProgram add(const ScalarProgram& a, const ScalarProgram& b) {
  if (a.is_constant() && a.code[0].value == 0) return b;
  if (b.is_constant() && b.code[0].value == 0) return a;
  return ScalarProgram::binary(ScalarOp::Add, a, b);
}

/// The dimensions of a region that are not points, as extents and strides in elements, and where it starts.
struct Box {
  ScalarProgram offset;
  std::vector<Expr> extents;
  std::vector<ScalarProgram> strides;
};

Box box_of(const Region& region, const HostScalars& scalars) {
  const Buffer& buffer = *region.buffer;
  std::vector<ScalarProgram> strides(buffer.rank(), ScalarProgram(1));
  for (size_t d = buffer.rank(); d-- > 1;) {
    strides[d - 1] = multiply(strides[d], scalars.required(buffer.shape[d], "an extent of '" + buffer.name + "'"));
  }
  Box box;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const Range& range = region.ranges[d];
    box.offset =
        add(box.offset,
            multiply(scalars.required(range.begin, "the begin of a region of '" + buffer.name + "'"), strides[d]));
    if (range.point) continue;
    box.extents.push_back(range.extent);
    box.strides.push_back(strides[d]);
  }
  return box;
}

class CollectiveBuilder {
 public:
  CollectiveBuilder(const TileOp& op, const MeshShape& mesh, HostScalars& scalars)
      : op_(op), mesh_(mesh), scalars_(scalars) {}

  Collective build(const std::function<int64_t(const Buffer&)>& id_of) {
    set_axes();
    if (op_.op == TileOpcode::CommBarrier) {
      step_.kind = CollectiveKind::Barrier;
      return step_;
    }
    const Region& src = op_.region(0);
    const Region& dst = op_.region(1);
    HELVE_CHECK(src.buffer->scope == MemoryScope::Global && dst.buffer->scope == MemoryScope::Global,
                "a collective of the host body works on Global buffers");
    step_.src = id_of(*src.buffer);
    step_.dst = id_of(*dst.buffer);
    step_.dtype = to_dlpack(src.buffer->dtype);
    src_ = box_of(src, scalars_);
    dst_ = box_of(dst, scalars_);
    set_kind();
    return step_;
  }

 private:
  size_t param(std::string_view name) const { return op_.row().index_of(name); }

  void set_axes() {
    step_.axes = axes_of(op_, mesh_);
    members_ = runtime::group_size(mesh_.extents, step_.axes);
  }

  void set_kind() {
    switch (op_.op) {
      case TileOpcode::CommBroadcast:
        step_.kind = CollectiveKind::Broadcast;
        step_.root = root();
        return same_boxes();
      case TileOpcode::CommScatter:
        step_.kind = CollectiveKind::Scatter;
        step_.root = root();
        step_.member_stride_src = take_member(src_, dst_);
        return same_boxes();
      case TileOpcode::CommReduce:
        step_.kind = CollectiveKind::Reduce;
        step_.op = reduce_op();
        step_.root = root();
        return same_boxes();
      case TileOpcode::CommAllReduce:
        step_.kind = CollectiveKind::AllReduce;
        step_.op = reduce_op();
        return same_boxes();
      case TileOpcode::CommPermute: permute(source_of(op_, members_)); return same_boxes();
      case TileOpcode::CommPut: permute(source_of_put()); return same_boxes();
      case TileOpcode::CommGather:
        step_.kind = CollectiveKind::Gather;
        step_.root = root();
        step_.member_stride_dst = take_member(dst_, src_);
        return same_boxes();
      case TileOpcode::CommAllGather:
        step_.kind = CollectiveKind::AllGather;
        step_.member_stride_dst = take_member(dst_, src_);
        return same_boxes();
      case TileOpcode::CommReduceScatter:
        step_.kind = CollectiveKind::ReduceScatter;
        step_.op = reduce_op();
        step_.member_stride_src = take_member(src_, dst_);
        return same_boxes();
      case TileOpcode::CommAllToAll: step_.kind = CollectiveKind::AllToAll; return parts();
      default: HELVE_FAIL("not a collective: " + std::string(op_.row().name));
    }
  }

  ScalarProgram root() const { return scalars_.required(op_.root(), "the root of " + operation_text(op_)); }

  void permute(const IndexMap& source) {
    step_.kind = CollectiveKind::Permute;
    step_.member = scalars_.add_slot(source.var);
    step_.source = scalars_.required(source.value, "a source of " + operation_text(op_));
  }

  /// Of all cores one has a source.
  IndexMap source_of_put() const {
    const auto number = [&](const char* core) { return core_number(op_.exprs(param(core)), mesh_); };
    const VarRef core = make_var("k");
    const Expr receives = apply(Op::Eq, {Expr(core), simplify(number("dst_core"))});
    return {core, select(receives, simplify(number("src_core")), int_imm(-1))};
  }

  runtime::ReduceOp reduce_op() const {
    const std::optional<ReduceKind> kind = parse_reduce_kind(op_.text(param("op")));
    HELVE_CHECK(kind, "an unknown reduction");
    switch (*kind) {
      case ReduceKind::Sum: return runtime::ReduceOp::Sum;
      case ReduceKind::Prod: return runtime::ReduceOp::Prod;
      case ReduceKind::Max: return runtime::ReduceOp::Max;
      case ReduceKind::Min: return runtime::ReduceOp::Min;
      default: HELVE_FAIL("a collective does not reduce by " + op_.text(param("op")));
    }
  }

  /// The dimension named by `dim` in a box, negative from the end.
  size_t dimension(const Box& box) const {
    const std::optional<size_t> d = op_.dimension(box.extents.size());
    HELVE_CHECK(d, "a collective along a dimension that does not exist");
    return *d;
  }

  /// The distance of members in `whole`, which contains a `part` of each: a dimension of its own, which is removed from
  /// the box, or a concatenation, whose box is the part's.
  ScalarProgram take_member(Box& whole, const Box& part) const {
    const size_t d = dimension(whole);
    const ScalarProgram stride = whole.strides[d];
    if (whole.extents.size() == part.extents.size() + 1) {
      whole.extents.erase(whole.extents.begin() + static_cast<std::ptrdiff_t>(d));
      whole.strides.erase(whole.strides.begin() + static_cast<std::ptrdiff_t>(d));
      return stride;
    }
    HELVE_CHECK(whole.extents.size() == part.extents.size(), "a collective between boxes of other ranks");
    whole.extents = part.extents;
    return multiply(scalars_.required(part.extents[d], "an extent of a collective"), stride);
  }

  void parts() {
    const size_t d = dimension(src_);
    HELVE_CHECK(src_.extents.size() == dst_.extents.size(), "a collective between boxes of other ranks");
    const Expr part = floor_div(src_.extents[d], int_imm(members_));
    src_.extents[d] = dst_.extents[d] = part;
    const ScalarProgram extent = scalars_.required(part, "an extent of a collective");
    step_.member_stride_src = multiply(extent, src_.strides[d]);
    step_.member_stride_dst = multiply(extent, dst_.strides[d]);
    same_boxes();
  }

  /// Drops dimensions of constant extent 1 where the ranks differ.
  static void drop_ones(Box& box) {
    for (size_t d = box.extents.size(); d-- > 0;) {
      const int64_t* extent = int_value(box.extents[d]);
      if (!extent || *extent != 1) continue;
      box.extents.erase(box.extents.begin() + static_cast<std::ptrdiff_t>(d));
      box.strides.erase(box.strides.begin() + static_cast<std::ptrdiff_t>(d));
    }
  }

  void same_boxes() {
    if (src_.extents.size() != dst_.extents.size()) {
      drop_ones(src_);
      drop_ones(dst_);
    }
    HELVE_CHECK(src_.extents.size() == dst_.extents.size(), "a collective between boxes of other ranks");
    for (const Expr& e : src_.extents) step_.extents.push_back(scalars_.required(e, "an extent of a collective"));
    step_.src_offset = src_.offset;
    step_.dst_offset = dst_.offset;
    step_.src_strides = src_.strides;
    step_.dst_strides = dst_.strides;
  }

  const TileOp& op_;
  const MeshShape& mesh_;
  HostScalars& scalars_;
  Collective step_;
  int64_t members_ = 1;
  Box src_, dst_;
};

}  // namespace

Collective build_collective(const TileOp& op, const MeshShape& mesh, HostScalars& scalars,
                            const std::function<int64_t(const Buffer&)>& id_of) {
  return CollectiveBuilder(op, mesh, scalars).build(id_of);
}

}  // namespace helve
