// What loops share whose iterations go to the cores of a cluster.
// Memory is divided where all of its uses in the loops count by the loop's own number, in one dimension.
#include "shared_loops.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/find.h"
#include "loop_form.h"

namespace helve {

namespace {

/// Calls `use` with the subscripts of what the statement itself touches of the buffer; with nothing for other uses.
void for_each_use(const Stmt& s, const Buffer& buffer, const std::function<void(const std::vector<Expr>*)>& use) {
  const auto expr = [&](const Expr& e) {
    walk(e, [&](const Expr& node) {
      const Load* load = as<Load>(node);
      if (load && load->buffer.get() == &buffer) use(&load->indices);
    });
    return e;
  };
  const Stmt own = map_parts(s, expr, [](const Stmt& part) { return part; });
  if (const Store* store = as<Store>(s); store && store->buffer.get() == &buffer) use(&store->indices);
  if (s->kind == StmtKind::TileOp || s->kind == StmtKind::TileStore || s->kind == StmtKind::ForTiles) {
    if (replace_buffers(own, {{&buffer, declare_again(buffer)}}) != own) use(nullptr);
  }
}

}  // namespace

int64_t cores_of(const Arguments& arguments, const Stmt& loop) {
  const For* range = as<For>(loop);
  const Expr cores = range ? simplified(range->extents[0]) : int_imm(0);
  const int64_t* count = int_value(cores);
  if (count && *count >= 1 && *count <= kMostCores) return *count;
  arguments.refuse(fmt::format("a cluster has 1 to {} cores, the loop {} iterations", kMostCores,
                               count ? std::to_string(*count) : "an unknown number of"),
                   loop, "split() the loop so that the outer one has as many iterations as a cluster cores");
}

void refuse_dealt(const Arguments& arguments, const Stmt& around, const Stmt& loop) {
  bool found = false;
  walk(around, [&](const Stmt& s) {
    const For* each = as<For>(s);
    found |= each && each->loop == LoopKind::Persistent;
  });
  if (!found) return;
  arguments.refuse("a T.Persistent loop deals its iterations to all blocks of the grid", loop,
                   "make it serial() first, in a grid of one block");
}

MeshShape mesh_of(const Arguments& arguments, const std::vector<Expr>& grid, const Stmt& loop) {
  MeshShape mesh;
  for (const Expr& extent : grid) {
    const int64_t* value = int_value(extent);
    if (!value || *value < 1 || grid.size() != 2) {
      arguments.refuse("a mesh has a constant number of clusters, along one axis", loop,
                       "give the grid one coordinate of constant extent, for example by split(), and bind() it first");
    }
    mesh.extents.push_back(*value);
  }
  mesh.names = {"x", "y"};
  return mesh;
}

SharedLoops::SharedLoops(const FunctionRef& f, const Arguments& arguments) : f_(f), arguments_(arguments) {
  find_loops();
  find_memory();
  find_merges();
}

const Cursor* SharedLoops::loop_around(const Cursor& at) const {
  const auto found = std::find_if(loops_.begin(), loops_.end(), [&](const Cursor& loop) { return at.within(loop); });
  return found == loops_.end() ? nullptr : &*found;
}
VarRef SharedLoops::var_of(const Cursor& loop) const { return as<For>(required_at(f_, loop))->vars[0]; }

const Divided* SharedLoops::divided(const Storage* buffer) const {
  const auto is_it = [&](const Divided& each) { return each.all.get() == buffer; };
  const auto at = std::find_if(divided_.begin(), divided_.end(), is_it);
  return at == divided_.end() ? nullptr : &*at;
}

void SharedLoops::find_loops() {
  loops_.push_back(arguments_.cursor(0));
  for (const Cursor& each : arguments_.cursors(2)) loops_.push_back(each);
  std::sort(loops_.begin(), loops_.end());
  const Stmt first = required_at(f_, arguments_.cursor(0));
  arguments_.loop(f_, arguments_.cursor(0));
  kernel_at_ = arguments_.cursor(0);
  while (kernel_at_.has_parent() && !as<Kernel>(required_at(f_, kernel_at_))) kernel_at_ = kernel_at_.parent();
  const Kernel* kernel = as<Kernel>(required_at(f_, kernel_at_));
  if (!kernel) arguments_.refuse("the loop is in no T.Kernel", first, "bind a loop that a kernel holds");
  if (f_->mesh) arguments_.refuse("the grid of a mesh function is its mesh", first, "leave the loop to each core");
  if (kernel_at_.steps.size() != 1 || block_of(f_->body).size() != 1) {
    arguments_.refuse("the kernel is not all that the function does", first, "bind() the loop to blocks instead");
  }
  count_ = cores_of(arguments_, first);
  for (size_t n = 0; n < loops_.size(); ++n) check_loop(n);
  refuse_dealt(arguments_, required_at(f_, kernel_at_), first);
  std::vector<Expr> grid = kernel->extents;
  grid.push_back(int_imm(count_));
  mesh_ = mesh_of(arguments_, grid, first);
}

void SharedLoops::check_loop(size_t n) {
  const Cursor& at = loops_[n];
  const For& loop = arguments_.loop(f_, at);
  const Stmt s = required_at(f_, at);
  for (size_t other = 0; other < loops_.size(); ++other) {
    if (other != n && at.within(loops_[other])) {
      arguments_.refuse("one of the loops is in another one", s, "name loops beside each other, each once");
    }
  }
  const int64_t* begin = int_value(loop.begins[0]);
  if (!begin || *begin != 0) arguments_.refuse("the loop does not begin at 0", s, "shift() it first");
  if (cores_of(arguments_, s) != count_) {
    arguments_.refuse(fmt::format("the loop has {} iterations, and the first one {}", cores_of(arguments_, s), count_),
                      s, "split() the loops so that each has as many iterations as the cluster cores");
  }
  for (Cursor around = at.parent(); around != kernel_at_; around = around.parent()) {
    const Stmt outer = required_at(f_, around);
    const For* each = as<For>(outer);
    const bool in_order =
        each && (each->loop == LoopKind::Serial || each->loop == LoopKind::Pipelined || each->loop == LoopKind::Unroll);
    if (in_order || as<If>(outer)) continue;
    arguments_.refuse(fmt::format("'{}' around the loop is no loop in order, and no branch", head_text(outer)), s,
                      "make loops around it serial()");
  }
}

/// The dimension that all iterations of the loops subscript by their own number; nothing if there is none.
std::optional<size_t> SharedLoops::dimension_of_cores(const BufferRef& buffer) const {
  if (!buffer->tile.empty() || buffer->layout || buffer->offset) return std::nullopt;
  std::vector<bool> fits(buffer->rank());
  for (size_t d = 0; d < fits.size(); ++d) {
    const int64_t* extent = int_value(buffer->shape[d]);
    fits[d] = extent && *extent == count_;
  }
  bool used = false;
  walk_cursors(*f_, [&](const Cursor& at, const Stmt& s) {
    const Cursor* loop = loop_around(at);
    if (!loop || at == *loop) return;
    const VarRef own = var_of(*loop);
    for_each_use(s, *buffer, [&](const std::vector<Expr>* indices) {
      used = true;
      for (size_t d = 0; d < fits.size(); ++d) fits[d] = fits[d] && indices && as<Var>((*indices)[d]) == own.get();
    });
  });
  const auto found = std::find(fits.begin(), fits.end(), true);
  return used && found != fits.end() ? std::optional(static_cast<size_t>(found - fits.begin())) : std::nullopt;
}

void SharedLoops::find_memory() {
  walk_cursors(required_at(f_, kernel_at_), kernel_at_, [&](const Cursor& at, const Stmt& s) {
    const Alloc* memory = as<Alloc>(s);
    if (!memory || loop_around(at)) return;
    const std::optional<size_t> dim = dimension_of_cores(memory->buffer);
    if (!dim) {
      own_.push_back(memory->buffer);
      return;
    }
    std::vector<Expr> shape = memory->buffer->shape;
    shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(*dim));
    if (shape.empty()) shape.push_back(int_imm(1));
    const Buffer& all = *memory->buffer;
    const BufferRef part = make_buffer(all.name, all.dtype, all.scope, shape, {}, {}, all.span);
    divided_.push_back({memory->buffer, part, *dim});
  });
}

void SharedLoops::find_merges() {
  std::vector<std::pair<Cursor, Stmt>> found;
  walk_cursors(required_at(f_, kernel_at_), kernel_at_, [&](const Cursor& at, const Stmt& s) {
    if (loop_around(at)) return;
    size_t uses = 0;
    for (const Divided& of : divided_) {
      for_each_use(s, *of.all, [&](const std::vector<Expr>*) {
        if (!as<Store>(s) || ++uses > 1) refuse_use(*of.all, s);
      });
    }
    if (uses > 0) found.emplace_back(at, s);
  });
  for (const auto& [at, s] : found) merges_.push_back(merge(at, *as<Store>(s)));
}

void SharedLoops::refuse_use(const Buffer& all, const Stmt& s) const {
  arguments_.refuse(
      fmt::format("'{}' has a part for each core, and '{}' is no reduction of all of them", all.name, head_text(s)), s,
      "name all loops over the parts in also=, and combine the parts as rfactor() does");
}

/// The nest around the store, as far as its loops count elements or parts.
Cursor SharedLoops::nest_around(const Cursor& store_at, const Store& store) const {
  Cursor out = store_at;
  while (out.parent() != kernel_at_) {
    const Cursor outer = out.parent();
    const For* loop = as<For>(required_at(f_, outer));
    if (!loop || loop->vars.size() != 1 || block_of(loop->body).size() != 1) break;
    const auto counts = [&](const std::vector<Expr>& indices) {
      return std::any_of(indices.begin(), indices.end(),
                         [&](const Expr& e) { return mentions(e, loop->vars[0].get()); });
    };
    const Load* from = as<Load>(store.value);
    if (!counts(store.indices) && !(from && counts(from->indices))) break;
    out = outer;
  }
  return out;
}

Merge SharedLoops::merge(const Cursor& store_at, const Store& update) {
  const Stmt s = required_at(f_, store_at);
  const Load* from = as<Load>(update.value);
  const Divided* of = from ? divided(from->buffer.get()) : nullptr;
  if (!update.is_update() || !of || divided(update.buffer.get())) {
    for (const Divided& each : divided_) {
      for_each_use(s, *each.all, [&](const std::vector<Expr>*) { refuse_use(*each.all, s); });
    }
  }
  HELVE_CHECK(of, "a statement that uses no divided memory");
  const BufferRef& all = of->all;
  const VarRef core(as<Var>(from->indices[of->dim]));
  const Cursor at = nest_around(store_at, update);
  const auto shared = std::make_shared<NestBoxes>(f_, at, arguments_);
  NestBoxes& nest = *shared;
  const ElementStore& element = nest.stores()[0];
  if (!core || std::find(element.vars.begin(), element.vars.end(), core) == element.vars.end()) refuse_use(*all, s);
  const VarValues& values = nest.values(element, core);
  const int64_t *begin = int_value(values.begin), *extent = int_value(values.extent);
  if (!begin || *begin != 0 || !extent || *extent != count_) refuse_use(*all, s);
  Merge out{at, {}, shared, nullptr, core, {}, {}, {}, {}};
  const Box part = nest.box(element, all, from->indices), result = nest.box(element, update.buffer, update.indices);
  std::vector<VarRef> others = part.vars;
  std::erase(others, core);
  if (others != result.vars || update.buffer->dtype != all->dtype) {
    arguments_.refuse(fmt::format("dimensions or type of '{}' and '{}' differ", all->name, update.buffer->name), s,
                      "bring the loops into order by reorder()");
  }
  out.part = part.region;
  out.result = result.region;
  out.elements = result.vars;
  std::vector<Expr> shape;
  for (const VarRef& var : out.elements) shape.push_back(nest.values(element, var).extent);
  if (shape.empty()) shape.push_back(int_imm(1));
  for (const Expr& each : shape) {
    if (int_value(each)) continue;
    arguments_.refuse(fmt::format("the extent {} of '{}' is no constant", brief_text(each), update.buffer->name), s,
                      "split() the loop by a constant");
  }
  const std::string name = fresh_var(f_, fmt::format("{}_cores", update.buffer->name))->name;
  out.combined = make_buffer(name, update.buffer->dtype, MemoryScope::Shared, shape, {}, {}, s->span);
  find_fill(out);
  return out;
}

/// The nest in front of the merge, in its block, that fills the result with the identity of the operator.
void SharedLoops::find_fill(Merge& merge) {
  const BufferRef& result = merge.result.buffer;
  const Expr identity = identity_imm(merge.update().mode, result->dtype);
  for (size_t n = merge.at.position(); n-- > 0;) {
    const Cursor at = merge.at.at(n);
    const Stmt s = required_at(f_, at);
    bool writes = false;
    walk(s, [&](const Stmt& each) {
      const Store* store = as<Store>(each);
      writes |= store && store->buffer == result;
    });
    if (!writes) continue;
    const auto filling = std::make_shared<NestBoxes>(f_, at, arguments_);
    const std::vector<ElementStore>& stores = filling->stores();
    if (stores.size() == 1 && stores[0].store->mode == StoreMode::Write &&
        same_expr(stores[0].store->value, identity)) {
      merge.fill_at = at;
      merge.filling = filling;
      return;
    }
    break;
  }
  arguments_.refuse(
      fmt::format("'{}' is not filled with the identity of the operator in front of the loops", result->name),
      required_at(f_, merge.at), "fill it there, in the block of the loop that combines the parts");
}

}  // namespace helve
