// The copy between a mesh tensor and a core's tile.
// The end of the core's block, not only the end of the tensor, bounds what is read and written.
#include <algorithm>

#include "helve/support/diagnostic.h"
#include "tile_op_code.h"

namespace helve::interp {

namespace {

/// A tile of the executing core's block on one side, a region of the core's own memory on the other.
class MeshTensorCopyCode final : public PlainCode {
 public:
  MeshTensorCopyCode(const TileOp& node, Scope& scope) : operands_(node, scope) {
    const Buffer& src = operands_.region("src").buffer();
    const Buffer& dst = operands_.region("dst").buffer();
    tensor_ = scope.function().mesh_tensor(&src);
    reads_ = tensor_ != nullptr;
    if (!reads_) tensor_ = scope.function().mesh_tensor(&dst);
    if (!tensor_) {
      const Buffer& global = dst.scope == MemoryScope::Param ? dst : src;
      throw UserError(Code::NotSharded, node.span, {{"tensor", global.name}});
    }
    std::vector<Expr> core(scope.core().begin(), scope.core().end());
    begins_ = prepare(shard_begin(scope.mesh(), *tensor_, core), scope);
    blocks_ = prepare(sharded_shape(scope.mesh(), *tensor_), scope);
  }

  void run(Frame& frame) const override {
    const View global = block_tile(frame);
    const View local = operands_.region(reads_ ? "dst" : "src").view(frame);
    require_shape(squeezed(local.shape()) == squeezed(tensor_->tiling), operands_, "the tiling and the tile",
                  tensor_->tiling, local.shape());
    const View& from = reads_ ? global : local;
    const View& to = reads_ ? local : global;
    const Scalar pad = operands_.value("pad").eval(frame);
    const Elements elements = gather_for(to.instance->declaration(), from, to.dtype(), operands_.span, pad);
    scatter(to, elements, to.dtype(), operands_.span);
  }

 private:
  View block_tile(Frame& frame) const {
    const RegionCode& global = operands_.region(reads_ ? "src" : "dst");
    View view{&global.instance(frame), 0, {}, false, frame.trace, &global.site()};
    const std::vector<int64_t> coord = eval_all(operands_.coord("coord"), frame);
    HELVE_CHECK(coord.size() == begins_.size(), "a tile coordinate of another rank");
    for (size_t d = 0; d < coord.size(); ++d) {
      const int64_t tile = tensor_->tiling[d];
      const int64_t inside = coord[d] * tile;
      const int64_t block = blocks_[d]->eval(frame).i;
      if (inside < 0) out_of_bounds(view.instance->declaration(), d, inside, block, operands_.span);
      const int64_t begin = begins_[d]->eval(frame).i + inside;
      const int64_t room = std::min(block - inside, view.instance->extent(d) - begin);
      const int64_t stride = view.instance->stride(d);
      view.dims.push_back({tile, stride, std::clamp<int64_t>(room, 0, tile)});
      view.base += begin * stride;
    }
    return view;
  }

  Operands operands_;
  const MeshTensor* tensor_ = nullptr;
  bool reads_ = false;
  std::vector<ExprCodeRef> begins_;
  std::vector<ExprCodeRef> blocks_;
};

}  // namespace

StmtCodeRef prepare_mesh_tensor_copy(const TileOp& s, Scope& scope) {
  require_mesh(s, scope);
  return std::make_unique<MeshTensorCopyCode>(s, scope);
}

}  // namespace helve::interp
