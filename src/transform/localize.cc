// Annotated tensors become the part of one core.
// Input: a mesh function. Output: the same program for a core that holds its own part of each annotated tensor: a
// parameter has the extents of the core's block, and no annotation.
// Before:  def main(A: T.Tensor((100, 64), "float32")):                    (a mesh of 3 x 2)
//              T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [16, 16]}}, ...)
//              ... T.mesh_tensor_copy(A, tile, coord=[i, j])
// After:   def main(A: T.Tensor((A_0, 32), "float32")):                    (A_0 is 34, 34, 32)
//              ... T.copy(A[i * 16 : i * 16 + 16, j * 16 : j * 16 + 16], tile)
// A dimension whose blocks differ has an extent that the argument binds. Copies of tiles are clipped at the end of the
// block, as before, which now is the end of the tensor. Every other access would need the part of another core.
// Parameters without an annotation are the same on all cores, so nobody writes them.
#include "helve/transform/localize.h"

#include <fmt/format.h>

#include "helve/analysis/effects.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

[[noreturn]] void refuse(const Buffer& tensor, std::string reason, std::string remedy, Span span) {
  std::vector<Note> notes;
  if (tensor.span.known()) notes.push_back({tensor.span, fmt::format("'{}' is declared here", tensor.name)});
  throw UserError(Code::NotOfOwnPart, span,
                  {{"tensor", tensor.name}, {"reason", std::move(reason)}, {"remedy", std::move(remedy)}},
                  std::move(notes));
}

class Localizer {
 public:
  explicit Localizer(const FunctionRef& f) : f_(*f), out_(make_ref<Function>(*f)) {}

  FunctionRef run() {
    for (const MeshTensor& tensor : f_.mesh_tensors) own_.emplace(tensor.buffer.get(), own_part(tensor));
    check_others();
    out_->mesh_tensors.clear();
    for (Param& param : out_->params) {
      const BufferRef* buffer = std::get_if<BufferRef>(&param);
      if (buffer != nullptr && own_.contains(buffer->get())) param = own_.at(buffer->get());
    }
    for (MayAlias& each : out_->may_alias) {
      for (BufferRef& buffer : each.buffers) {
        if (own_.contains(buffer.get())) buffer = own_.at(buffer.get());
      }
    }
    check_accesses();
    out_->body = rewrite(f_.body, [&](const Stmt& s) { return with_own(s); });
    HELVE_CHECK(replace_buffers(out_->body, own_) == out_->body, "an access to a whole tensor that nobody has");
    return FunctionRef(out_);
  }

 private:
  BufferRef own_part(const MeshTensor& tensor) {
    const Buffer& b = *tensor.buffer;
    if (!b.strides.empty())
      refuse(b, "its strides are those of the whole tensor", "declare it without strides", tensor.span);
    std::vector<Expr> shape = b.shape;
    for (size_t d = 0; d < shape.size(); ++d) {
      const int64_t count = shard_count(*f_.mesh, tensor, static_cast<int64_t>(d));
      if (count == 1) continue;
      const int64_t* extent = int_value(shape[d]);
      if (extent == nullptr) {
        refuse(b, fmt::format("the extent of dimension {}, which is cut, is known at the call alone", d),
               "make the function for each shape", tensor.span);
      }
      if (*extent % count == 0) {
        shape[d] = int_imm(*extent / count);
      } else {
        out_->dims.push_back(make_var(fmt::format("{}_{}", b.name, d)));
        shape[d] = Expr(out_->dims.back());
      }
    }
    return make_buffer(b.name, b.dtype, b.scope, std::move(shape), b.tile, {}, b.span);
  }

  /// No parameter that all cores have alike is written.
  void check_others() const {
    for (const BufferEffect& effect : param_effects(f_)) {
      if (effect.written && !own_.contains(effect.buffer.get())) {
        refuse(*effect.buffer, "it is written, and no annotation says which part is whose",
               "add it to T.annotate_mesh_tensor", effect.buffer->span);
      }
    }
  }

  void check_accesses() const {
    const auto outside = [&](const Buffer* buffer, Span span) {
      if (!own_.contains(buffer)) return;
      refuse(*buffer, "only T.mesh_tensor_copy is known to stay inside of it", "copy its tiles by T.mesh_tensor_copy",
             span);
    };
    walk(f_.body, [&](const Stmt& s) {
      if (const Store* n = as<Store>(s)) outside(n->buffer.get(), s->span);
      for_each_part(
          s,
          [&](const Expr& e) {
            walk(e, [&](const Expr& node) {
              if (const Load* load = as<Load>(node)) outside(static_cast<const Buffer*>(load->buffer.get()), s->span);
            });
          },
          [](const Stmt&) {});
      const TileOp* op = as<TileOp>(s);
      if (op == nullptr || op->op == TileOpcode::MeshTensorCopy) return;
      for (size_t i = 0; i < op->operands.size(); ++i) {
        if (op->is_region(i)) outside(op->region(i).buffer.get(), op->place(i));
      }
    });
  }

  Stmt with_own(const Stmt& s) const {
    const TileOp* op = as<TileOp>(s);
    if (op == nullptr || op->op != TileOpcode::MeshTensorCopy) return s;
    const bool reads = own_.contains(op->region(0).buffer.get());
    const MeshTensor& tensor = *f_.mesh_tensor(op->region(reads ? 0 : 1).buffer.get());
    Region tile{own_.at(tensor.buffer.get()), {}};
    for (size_t d = 0; d < tensor.tiling.size(); ++d)
      tile.ranges.push_back({op->exprs(2)[d] * int_imm(tensor.tiling[d]), int_imm(tensor.tiling[d]), false});
    Region local = op->region(reads ? 1 : 0);
    std::vector<TileOperand> operands = {reads ? tile : std::move(local), reads ? op->region(1) : tile, op->expr(3)};
    return tile_op(TileOpcode::Copy, std::move(operands), s->span);
  }

  const Function& f_;
  Ref<Function> out_;
  BufferMap own_;
};

}  // namespace

FunctionRef localize(const FunctionRef& f) {
  HELVE_CHECK(f->mesh.has_value(), "a function without a mesh has no parts");
  return Localizer(f).run();
}

}  // namespace helve
