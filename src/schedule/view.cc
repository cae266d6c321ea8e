// Accesses of parameters as accesses of what they stand for.
// The elements of a view are a function of the parameter's subscripts, one dimension at a time.
#include "view.h"

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

class Viewed {
 public:
  explicit Viewed(const Views& views) : views_(views) {}

  Stmt operator()(const Stmt& s) {
    const Stmt below =
        map_parts(s, [&](const Expr& e) { return expr(e); }, [&](const Stmt& part) { return (*this)(part); });
    if (const Store* store = as<Store>(below)) {
      const View* view = of(*store->buffer);
      return view ? Stmt(copy_with(*store, [&](Store& out) { move(out, *view); })) : below;
    }
    if (const Prefetch* prefetch = as<Prefetch>(below)) {
      const View* view = of(*prefetch->buffer);
      return view ? Stmt(copy_with(*prefetch, [&](Prefetch& out) { move(out, *view); })) : below;
    }
    if (const TileOp* op = as<TileOp>(below)) {
      return Stmt(copy_with(*op, [&](TileOp& out) {
        for (TileOperand& operand : out.operands) {
          if (Region* region = std::get_if<Region>(&operand)) move(*region);
        }
      }));
    }
    return below;
  }

 private:
  const View* of(const Storage& buffer) const {
    const auto found = views_.find(static_cast<const Buffer*>(&buffer));
    return found == views_.end() ? nullptr : &found->second;
  }

  Expr expr(const Expr& e) {
    return known_.of(e, [&] {
      const Expr below = map_children(e, [&](const Expr& child) { return expr(child); });
      const Load* from = as<Load>(below);
      const View* view = from ? of(*from->buffer) : nullptr;
      return view ? load(view->buffer, subscripts(from->indices, *view), e->span) : below;
    });
  }

  static Expr place(const ViewDim& dim, const Expr& x) { return simplify(dim.begin + x * int_imm(dim.step)); }
  static std::vector<Expr> subscripts(const std::vector<Expr>& indices, const View& view) {
    std::vector<Expr> out;
    for (const ViewDim& dim : view.dims) out.push_back(dim.of ? place(dim, indices[*dim.of]) : dim.begin);
    return out;
  }
  template <class Access>
  static void move(Access& access, const View& view) {
    access.indices = subscripts(access.indices, view);
    access.buffer = view.buffer;
  }
  void move(Region& region) const {
    const View* view = of(*region.buffer);
    if (!view) return;
    HELVE_CHECK(view->is_box(), "a region of what is no box");
    Region out{view->buffer, {}};
    for (const ViewDim& dim : view->dims) {
      out.ranges.push_back({dim.begin, int_imm(1), true});
      if (!dim.of) continue;
      const Range& range = region.ranges[*dim.of];
      out.ranges.back() = {place(dim, range.begin), range.extent, range.point};
    }
    region = std::move(out);
  }

  const Views& views_;
  Memo<Expr> known_;
};

}  // namespace

bool View::is_box() const {
  std::optional<size_t> last;
  for (const ViewDim& dim : dims) {
    if (!dim.of) continue;
    if (dim.step != 1 || (last && *dim.of <= *last)) return false;
    last = dim.of;
  }
  return true;
}

Stmt with_views(const Stmt& s, const Views& views) { return Viewed(views)(s); }

bool has_region_of(const Stmt& s, const Buffer& parameter) {
  return has_operation(s, [&](const TileOp& op) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (op.is_region(i) && op.region(i).buffer.get() == &parameter) return true;
    }
    return false;
  });
}

}  // namespace helve
