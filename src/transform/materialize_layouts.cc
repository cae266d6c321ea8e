// Buffers with tiles or a layout become plain ones that are stored so.
// Input: element accesses X[i, j]. Output: no buffer of shared or private memory has a tile or a layout; the plain
// buffer has a dimension for each digit of the addresses, the largest stride first.
// Before:  X = T.alloc_shared_tiles((128, 128), "float32");                       X[i, j]
//          Y = T.alloc_local((4, 8), "float32", layout="S[(4, 8) : (1, 4)]");     Y[i, j]
// After:   X = T.alloc_shared((4, 4, 32, 32), "float32");     X[i // 32, j // 32, i % 32, j % 32]
//          Y = T.alloc_local((8, 4), "float32");              Y[j, i]
// Padding makes a dimension longer. Addresses that are not digits of one number become one dimension. The plain buffer
// covers the domain of the layout; the map from logical elements to its elements is injective. Swizzles are left out:
// they are for banks, which this memory does not have.
#include <algorithm>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/address_terms.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

bool is_memory(const Buffer& b) { return b.scope == MemoryScope::Shared || b.scope == MemoryScope::Local; }

/// A buffer and the plain one in its place.
class Plain {
 public:
  explicit Plain(const BufferRef& b) : terms_(terms_of(*b)) {
    std::erase_if(terms_, [](const AddressTerm& term) { return term.extent == 1; });
    std::stable_sort(terms_.begin(), terms_.end(), [](const auto& a, const auto& b) { return a.stride > b.stride; });
    nested_ = !terms_.empty() && terms_.back().stride == 1;
    for (size_t k = 0; k + 1 < terms_.size(); ++k) {
      const AddressTerm &outer = terms_[k], &inner = terms_[k + 1];
      nested_ &= outer.stride % inner.stride == 0 && outer.stride / inner.stride >= inner.extent;
    }
    Ref<Buffer> out = make_ref<Buffer>(*b);
    out->tile.clear();
    out->layout.reset();
    out->shape = shape();
    buffer_ = BufferRef(out);
  }

  const BufferRef& buffer() const { return buffer_; }

  std::vector<Expr> indices(const std::vector<Expr>& logical) const {
    std::vector<Expr> out;
    Expr address;
    for (const AddressTerm& term : terms_) {
      Expr digit = term.divisor == 1 ? logical[term.dim] : floor_div(logical[term.dim], int_imm(term.divisor));
      if (!term.outermost) digit = floor_mod(digit, int_imm(term.extent));
      if (nested_) {
        out.push_back(digit);
      } else {
        const Expr summand = digit * int_imm(term.stride);
        address = address ? address + summand : summand;
      }
    }
    return nested_ ? out : std::vector<Expr>{address ? address : int_imm(0)};
  }

 private:
  static std::vector<AddressTerm> terms_of(const Buffer& b) {
    return b.layout && is_memory(b) ? address_terms(*b.layout, layout_domain(b)) : terms_of_tiles(b);
  }

  /// The place in a tile, then the tile: two digits a dimension, also where they are neighbours in memory, since loops
  /// over tiles have a variable for each.
  static std::vector<AddressTerm> terms_of_tiles(const Buffer& b) {
    const std::optional<std::vector<int64_t>> shape = constant_shape(b.shape);
    HELVE_CHECK(shape, "a tiled buffer of dynamic shape");
    std::vector<AddressTerm> out;
    int64_t stride = 1;
    for (const bool inside : {true, false}) {
      for (size_t d = shape->size(); d-- > 0;) {
        const int64_t tile = b.tile[d], blocks = std::max<int64_t>(((*shape)[d] + tile - 1) / tile, 1);
        const int64_t extent = inside ? tile : blocks;
        out.push_back({d, inside ? 1 : tile, extent, stride, axes::m(), !inside});
        stride *= extent;
      }
    }
    return out;
  }

  std::vector<Expr> shape() const {
    if (!nested_) {
      int64_t last = 0;
      for (const AddressTerm& term : terms_) last += (term.extent - 1) * term.stride;
      return {int_imm(last + 1)};
    }
    std::vector<Expr> out{int_imm(terms_[0].extent)};
    for (size_t k = 1; k < terms_.size(); ++k) out.push_back(int_imm(terms_[k - 1].stride / terms_[k].stride));
    return out;
  }

  std::vector<AddressTerm> terms_;
  bool nested_ = false;  ///< are the terms digits of one number?
  BufferRef buffer_;
};

}  // namespace

FunctionRef materialize_layouts(const FunctionRef& f, const PassOptions&) {
  std::unordered_map<const Buffer*, Plain> plain;
  walk(f->body, [&](const Stmt& s) {
    const Alloc* a = as<Alloc>(s);
    if (!a) return;
    const Buffer& b = *a->buffer;
    if (is_tiled(b) || (b.layout && is_memory(b))) plain.emplace(&b, a->buffer);
  });
  if (plain.empty()) return f;
  const auto plain_of = [&](const Buffer& b) -> const Plain* {
    const auto it = plain.find(&b);
    return it == plain.end() ? nullptr : &it->second;
  };
  const auto on_expr = [&](const Expr& e) {
    return rewrite(e, [&](const Expr& node) -> Expr {
      const Load* l = as<Load>(node);
      const Plain* own = l ? plain_of(buffer_of(l->buffer)) : nullptr;
      return own ? load(own->buffer(), own->indices(l->indices), l->span) : node;
    });
  };
  const auto on_stmt = [&](const Stmt& s) -> Stmt {
    const Alloc* a = as<Alloc>(s);
    if (const Plain* own = a ? plain_of(*a->buffer) : nullptr) return alloc(own->buffer(), s->span);
    const Store* n = as<Store>(s);
    const Plain* own = n ? plain_of(*n->buffer) : nullptr;
    if (!own) return s;
    return copy_with(*n, [&](Store& out) {
      out.buffer = own->buffer();
      out.indices = own->indices(n->indices);
    });
  };
  return with_body(f, rewrite(f->body, on_stmt, on_expr));
}

}  // namespace helve
