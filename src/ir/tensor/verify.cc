// The verifier: one walk that knows what encloses each statement.
// Users meet it after parsing, authors of passes after each pass, so what it refuses never reaches a later room. What
// cannot be written in the language at all (a name out of scope) is a fault of helve, everything else a coded error.
#include "helve/ir/tensor/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "helve/ir/expr/multiprocessors.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/call_facts.h"
#include "helve/ir/tensor/code_hints.h"
#include "helve/ir/tensor/core_blocks.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/support/own_thread.h"
#include "helve/support/text.h"
#include "verify_rules.h"

namespace helve {

namespace {

using namespace verify_rules;

/// The mesh axes that a value may vary over, one bit an axis.
using AxisSet = uint64_t;

/// A condition or loop around a statement, and the axes over which it decides differently.
struct Control {
  Span span;
  AxisSet axes;
  const char* what;
};

/// The value of a condition that constants decide, as far as comparisons and connectives go.
std::optional<bool> constant_truth(const Expr& e) {
  if (const int64_t* v = int_value(e)) return *v != 0;
  const Apply* node = as<Apply>(e);
  if (!node) return std::nullopt;
  if (node->op == Op::And || node->op == Op::Or) {
    const bool decides = node->op == Op::Or;
    const std::optional<bool> a = constant_truth(node->args[0]), b = constant_truth(node->args[1]);
    if (a == decides || b == decides) return decides;
    return a && b ? std::optional(!decides) : std::nullopt;
  }
  if (node->op == Op::Not) {
    const std::optional<bool> a = constant_truth(node->args[0]);
    return a ? std::optional(!*a) : std::nullopt;
  }
  const int64_t* a = int_value(node->args[0]);
  const int64_t* b = node->args.size() == 2 ? int_value(node->args[1]) : nullptr;
  if (!a || !b || !node->args[0]->dtype.is_index()) return std::nullopt;
  switch (node->op) {
    case Op::Lt: return *a < *b;
    case Op::Le: return *a <= *b;
    case Op::Gt: return *a > *b;
    case Op::Ge: return *a >= *b;
    case Op::Eq: return *a == *b;
    case Op::Ne: return *a != *b;
    default: return std::nullopt;
  }
}

class Verifier {
 public:
  explicit Verifier(const Function& f) : f_(f) {}

  void run() {
    for (const VarRef& dim : f_.dims) define(dim.get(), dim->name);
    for (const Param& param : f_.params) {
      std::visit([&](const auto& p) { define(p.get(), p->name); }, param);
    }
    for (const Param& param : f_.params) {
      if (const BufferRef* buffer = std::get_if<BufferRef>(&param)) visit_declaration(**buffer, (*buffer)->span);
    }
    for (const VarRef& dim : f_.dims) require_bound(*dim);
    verify_placement(f_);
    for (const MayAlias& each : f_.may_alias) check(each);
    for (const Assumption& each : f_.assumptions) check(each);
    visit(f_.body);
  }

 private:
  /// A call learns a dynamic extent from a parameter that has it for an extent, itself and not in an expression.
  void require_bound(const Var& dim) const {
    if (is_multiprocessors(dim)) return;
    for (const Param& param : f_.params) {
      const BufferRef* buffer = std::get_if<BufferRef>(&param);
      if (!buffer) continue;
      for (const Expr& extent : (*buffer)->shape) {
        if (extent.get() == &dim) return;
      }
    }
    throw UserError(Code::UnboundExtent, first_use(dim), {{"variable", dim.name}});
  }

  /// The parameter that first needs the extent, or the function.
  Span first_use(const Var& dim) const {
    for (const Param& param : f_.params) {
      const BufferRef* buffer = std::get_if<BufferRef>(&param);
      if (!buffer) continue;
      for (const std::vector<Expr>* exprs : {&(*buffer)->shape, &(*buffer)->strides}) {
        for (const Expr& e : *exprs) {
          if (mentions(e, &dim)) return (*buffer)->span;
        }
      }
    }
    return f_.span;
  }

  /// Two tensor parameters or more, each once.
  void check(const MayAlias& n) {
    const auto refuse = [&](size_t i, const std::string& reason, const std::string& remedy) {
      const Span& place = i < n.places.size() && n.places[i].known() ? n.places[i] : n.span;
      refuse_argument("T.may_alias", "tensors", fmt::format("'{}'", n.buffers[i]->name), reason, remedy, place);
    };
    HELVE_CHECK(!n.buffers.empty(), "T.may_alias of nothing");
    for (size_t i = 0; i < n.buffers.size(); ++i) {
      if (n.buffers[i]->scope != MemoryScope::Param) {
        refuse(i, "it is no tensor parameter", "name tensor parameters of the function");
      }
      require_known(n.buffers[i].get(), n.buffers[i]->name);
      if (std::find(n.buffers.begin(), n.buffers.begin() + static_cast<std::ptrdiff_t>(i), n.buffers[i]) !=
          n.buffers.begin() + static_cast<std::ptrdiff_t>(i)) {
        refuse(i, "it is named twice", "name each tensor once");
      }
    }
    if (n.buffers.size() == 1) refuse(0, "it is alone", "name the tensors whose memory it may share");
  }

  void check(const Assumption& n) {
    const std::optional<AssumptionFault> fault = fault_of_assumption(f_, n.condition);
    if (!fault) return;
    refuse_argument("T.assume", "condition", fmt::format("'{}'", to_text(n.condition)), fault->reason, fault->remedy,
                    n.condition->span.known() ? n.condition->span : n.span);
  }

  // Scopes.

  void define(const Object* object, const std::string& name) {
    HELVE_CHECK(known_.insert(object).second, fmt::format("'{}' is defined twice", name));
    order_.push_back(object);
  }
  void require_known(const Object* object, const std::string& name) {
    HELVE_CHECK(known_.contains(object), fmt::format("'{}' is used where it is not defined", name));
  }
  /// Runs `f` in a scope of its own: what it defines ends with it.
  template <class F>
  void scoped(F&& f) {
    const size_t depth = order_.size();
    f();
    while (order_.size() > depth) {
      known_.erase(order_.back());
      order_.pop_back();
    }
  }
  void visit_body(const Stmt& s) {
    scoped([&] { visit(s); });
  }

  void visit_declaration(const Buffer& buffer, const Span& span) {
    for (const Expr& e : buffer.shape) visit(e, span);
    for (const Expr& e : buffer.strides) visit(e, span);
  }

  // Expressions.

  /// Names and accesses below `e`; tiles are read in the value of a tile store only. All but the first operand of a
  /// selection, `and`, `or` may never be evaluated.
  void visit(const Expr& e, const Span& outer, bool in_tile_store = false) {
    require_writable(e);
    Seen certain, doubtful;
    visit_below(e, outer, in_tile_store, {&certain, &doubtful});
  }
  /// `seen`: by whether the part is evaluated whenever the whole is.
  void visit_below(const Expr& e, const Span& outer, bool in_tile_store, const std::array<Seen*, 2>& seen) {
    if (!seen[doubtful_ > 0]->is_new(e)) return;
    visit_node(e, outer, in_tile_store);
    bool first = true;
    const bool lazy = as_op(e, Op::Select) || as_op(e, Op::And) || as_op(e, Op::Or);
    for_each_child(e, [&](const Expr& child) {
      const bool doubtful = lazy && !first;
      first = false;
      doubtful_ += doubtful;
      visit_below(child, outer, in_tile_store, seen);
      doubtful_ -= doubtful;
    });
  }

  void visit_node(const Expr& node, const Span& outer, bool in_tile_store) {
    if (const Var* var = as<Var>(node)) {
      require_known(var, var->name);
    } else if (const Load* load = as<Load>(node)) {
      const Buffer& buffer = buffer_of(load->buffer);
      const Span span = span_of(node, outer);
      check_element(buffer, load->indices, span);
      if (load->width) verify_vector_access("T.load_vector", "src", buffer, load->indices, load->width, lanes_, span);
    } else if (const TileLoad* load = as<TileLoad>(node)) {
      require_known(load->buffer.get(), load->buffer->name);
      HELVE_CHECK(tiles_, "a tile load is outside a tile loop");
      verify_tile_load(*tiles_, *load, outer, doubtful_ == 0);
      if (!in_tile_store) throw UserError(Code::TileValue, span_of(node, outer), {{"buffer", load->buffer->name}});
    } else if (const Misalignment* place = as<Misalignment>(node)) {
      const Buffer& buffer = buffer_of(place->buffer);
      require_known(&buffer, buffer.name);
      const Span span = span_of(node, outer);
      if (!kernel_) wrong_scope("T.misalignment", "host", "ask for it inside T.Kernel", span);
      verify_misalignment(buffer, place->unit, span);
    }
  }

  void check_element(const Buffer& buffer, const std::vector<Expr>& indices, const Span& span) {
    require_known(&buffer, buffer.name);
    check_index_types(buffer, indices, span);
    if (tiles_) {
      throw UserError(Code::NoMatchingTile, span, {{"buffer", buffer.name}, {"tile", shape_text(tiles_->buffer->tile)}},
                      {declaration_note(buffer), {tiles_->span, "inside a tile loop subscripts denote tiles"}});
    }
    if (doubtful_) return;  // a guard may know better: what never happens is no fault
    check_indices(buffer, indices, span);
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t* index = int_value(indices[d]);
      const int64_t* extent = int_value(buffer.shape[d]);
      if (!index || !extent || *index < *extent) continue;
      throw UserError(
          Code::OutOfBounds, span_of(indices[d], span),
          {{"index", *index}, {"dim", static_cast<int64_t>(d)}, {"buffer", buffer.name}, {"extent", *extent}},
          {declaration_note(buffer)}, {range_remedy(static_cast<int64_t>(d), *extent)});
    }
  }

  /// The axes over which the value varies by the core's own coordinates, as far as expressions show it.
  AxisSet axes_of(const Expr& e) const {
    AxisSet axes = 0;
    walk(e, [&](const Expr& node) {
      if (auto it = axes_.find(node.get()); it != axes_.end()) axes |= it->second;
    });
    return axes;
  }

  // Statements.

  void visit(const Stmt& s) {
    dispatch(s, [&](const auto& node) { check(node); });
  }

  void check(const Seq& n) {
    for (const Stmt& s : n.stmts) visit(s);
  }

  void check(const Bind& n) {
    visit(n.value, n.span);
    define(n.var.get(), n.var->name);
    if (AxisSet axes = axes_of(n.value)) axes_[n.var.get()] = axes;
  }

  void check(const Alloc& n) {
    const Buffer& buffer = *n.buffer;
    const std::string function = fmt::format("T.alloc_{}", to_string(buffer.scope));
    HELVE_CHECK(buffer.scope != MemoryScope::Param, "a parameter is allocated");
    visit_declaration(buffer, n.span);
    const bool global = buffer.scope == MemoryScope::Global;
    if (global && kernel_)
      wrong_scope(function, "kernel", "allocate it before the kernel", n.span, {kernel_->span, "the kernel"});
    if (!global && !kernel_)
      wrong_scope(function, "host", "allocate it inside T.Kernel, or use T.alloc_global", n.span);
    if (!global && !constant_shape(buffer.shape)) {
      refuse_argument(function, "shape", shape_text(buffer.shape), "memory of a kernel has constant extents",
                      "use constants, or T.alloc_global before the kernel", n.span);
    }
    if (!global) check_size(buffer, function, n.span);
    if (buffer.place == ArrayPlace::Stack) check_stack(buffer, function, n.span);
    if (buffer.layout && buffer.scope == MemoryScope::Fragment) check_threads(buffer, n.span);
    define(&buffer, buffer.name);
  }

  void check(const Peer& n) {
    require_known(n.source.get(), n.source->name);
    for (const Expr& e : n.core) visit(e, n.span);
    if (!kernel_) wrong_scope("T.peer", "host", "put it inside T.Kernel", n.span);
    if (!f_.mesh) throw UserError(Code::CollectiveWithoutMesh, n.span, {{"operation", "T.peer"}});
    verify_peer(n, *f_.mesh);
    define(n.buffer.get(), n.buffer->name);
    peers_.insert(n.buffer.get());
  }

  /// What another core has is only read, T.st_async aside.
  void check_written(const Buffer& buffer, const Span& span) const {
    if (!peers_.contains(&buffer)) return;
    refuse_argument("T.peer", "buffer", fmt::format("'{}'", buffer.name), "it is stored to here",
                    "store to another core by T.st_async", span);
  }

  /// A fragment's layout speaks of all threads of the block, so that each knows what it holds.
  void check_threads(const Buffer& buffer, const Span& span) const {
    const int64_t given = thread_layout_of(buffer).span(axes::tx());
    if (given == kernel_->threads) return;
    const bool divides = kernel_->threads % given == 0;
    throw UserError(
        Code::BufferLayoutThreads, span, {{"buffer", buffer.name}, {"given", given}, {"threads", kernel_->threads}},
        {{kernel_->span, "the kernel"}},
        {divides ? fmt::format("let the other threads hold copies: + R[{} : {}@tx]", kernel_->threads / given, given)
                 : "give the kernel as many threads as the layout has, or the other way round"});
  }

  /// Shared memory fits near a core: a buffer larger than any cache should be a tensor. And no sum of sizes overflows.
  void check_size(const Buffer& buffer, const std::string& function, const Span& span) {
    constexpr double kMaxBytes = 0x1p32;
    const std::vector<int64_t> shape = *constant_shape(buffer.shape);
    double bytes = static_cast<double>(buffer.dtype.bytes());
    for (size_t d = 0; d < shape.size(); ++d) {
      const double tile = buffer.tile.empty() ? 1 : static_cast<double>(buffer.tile[d]);
      bytes *= std::ceil(static_cast<double>(shape[d]) / tile) * tile;
    }
    if (buffer.layout && buffer.scope != MemoryScope::Fragment) {
      bytes = static_cast<double>(buffer.dtype.bytes()) * static_cast<double>(memory_elements(buffer));
    }
    if (bytes <= kMaxBytes) return;
    refuse_argument(function, "shape", shape_text(shape), "memory of a block is at most 4 GiB, with padding",
                    "use a smaller shape or tile, or T.alloc_global before the kernel", span);
  }

  void check_stack(const Buffer& buffer, const std::string& function, const Span& span) {
    stack_bytes_ += block_bytes(buffer);
    if (stack_bytes_ <= kStackBytes) return;
    refuse_argument(function, "place", "\"stack\"",
                    fmt::format("the buffers of a kernel have at most {} bytes there, up to this one {}", kStackBytes,
                                stack_bytes_),
                    "leave out the place of the largest", span);
  }

  /// A tile loop stores each element of a tile once, so there is nothing to say of an order.
  void check_update_place(const Store& n) {
    if (!tiles_ || !n.is_update()) return;
    refuse_argument("T.update", "dst", fmt::format("'{}'", n.buffer->name), "its subscripts denote a tile here",
                    "store the tile, 'X[i, j] = X[i, j] + ...', or update elements in a loop over elements", n.span,
                    {{tiles_->span, "the tile loop"}});
  }

  void check(const Store& n) {
    check_update_place(n);
    for (const Expr& index : n.indices) visit(index, n.span);
    visit(n.value, n.span);
    check_element(*n.buffer, n.indices, n.span);
    check_written(*n.buffer, n.span);
    const std::string operation = n.is_update()   ? "T.update"
                                  : n.is_atomic() ? fmt::format("T.{}", to_string(n.mode))
                                                  : "a store";
    if (!kernel_) wrong_scope(operation, "host", "put it inside T.Kernel", n.span);
    if (n.is_atomic()) check_atomic_target(operation, *n.buffer, n.span);
    if (n.piece) verify_nontemporal_store(n, lanes_);
    if (n.width) verify_vector_access("T.store_vector", "dst", *n.buffer, n.indices, n.width, lanes_, n.span);
    if (!n.previous) return;
    HELVE_CHECK(n.is_atomic(), "a plain store that names what stood before");
    define(n.previous.get(), n.previous->name);
  }

  /// The element is not accessed, so the subscripts may have any value.
  void check(const Prefetch& n) {
    for (const Expr& index : n.indices) visit(index, n.span);
    require_known(n.buffer.get(), n.buffer->name);
    check_index_types(*n.buffer, n.indices, n.span);
    if (!kernel_) wrong_scope("T.prefetch", "host", "put it inside T.Kernel", n.span);
    verify_prefetch(n);
  }

  void check(const Report& n) {
    const std::string operation = n.fault ? "T.fail" : "T.print";
    for (const Expr& value : n.values) visit(value, n.span);
    if (!kernel_) wrong_scope(operation, "host", "put it inside T.Kernel", n.span);
    if (!tiles_) return;
    wrong_scope(operation, "tile", "put it in a loop over elements, T.Parallel or T.serial", n.span,
                {tiles_->span, "inside a tile loop subscripts denote tiles"});
  }

  void check(const Breakpoint& n) {
    for (const Expr& value : n.values) visit(value, n.span);
    for (const Region& region : n.buffers) require_known(region.buffer.get(), region.buffer->name);
    if (!kernel_) wrong_scope("T.breakpoint", "host", "put it inside T.Kernel", n.span);
    if (!tiles_) return;
    wrong_scope("T.breakpoint", "tile", "put it in front of the loop, or in a loop over elements", n.span,
                {tiles_->span, "inside a tile loop subscripts denote tiles"});
  }

  void check(const TileStore& n) {
    HELVE_CHECK(tiles_, "a tile store is outside a tile loop");
    require_known(n.buffer.get(), n.buffer->name);
    for (const Expr& index : n.indices) visit(index, n.span);
    verify_tile_store(*tiles_, n, doubtful_ == 0);
    visit(n.value, n.span, true);
  }

  void check(const For& n) {
    AxisSet axes = 0;
    bool empty = false;
    for (size_t d = 0; d < n.vars.size(); ++d) {
      visit(n.begins[d], n.span);
      visit(n.extents[d], n.span);
      axes |= axes_of(n.begins[d]) | axes_of(n.extents[d]);
      if (const int64_t* extent = int_value(n.extents[d])) {
        if (*extent < 0) throw UserError(Code::NegativeExtent, span_of(n.extents[d], n.span), {{"extent", *extent}});
        empty |= *extent == 0;
      }
    }
    if (n.loop == LoopKind::Pipelined && n.num_stages < 1) {
      throw UserError(Code::StageCount, n.span, {{"stages", int64_t{n.num_stages}}});
    }
    if (n.scheduled) check_scheduled(n);
    const bool parallel = n.loop == LoopKind::Parallel || n.loop == LoopKind::Vectorized || n.loop == LoopKind::Thread;
    const std::string name = fmt::format("T.{}", to_string(n.loop));
    if (parallel && !kernel_) wrong_scope(name, "host", "put it inside T.Kernel", n.span);
    if (n.loop == LoopKind::Thread) check_threads(n);
    inside({n.span, axes, "loop"}, parallel ? &n : nullptr, empty, [&] {
      if (n.loop == LoopKind::Vectorized) lanes_ = &n;
      for (const VarRef& var : n.vars) {
        define(var.get(), var->name);
        if (axes) axes_[var.get()] = axes;
      }
      visit(n.body);
    });
  }

  /// What is written out, or has lanes, has a number of them that the program states.
  static void check_scheduled(const For& n) {
    const bool counted = n.loop == LoopKind::Unroll || n.loop == LoopKind::Vectorized;
    if (!counted || int_value(n.extents[0])) return;
    throw UserError(Code::ScheduledLoop, n.span,
                    {{"loop", fmt::format("T.{}", to_string(n.loop))},
                     {"reason", "its extent is not constant"},
                     {"remedy", "divide the loop, so that the inner one has a constant extent"}});
  }

  /// A loop over threads is one over all threads of the block, and a thread is not divided again.
  void check_threads(const For& n) {
    if (iteration_) {
      wrong_scope("T.threads", "iteration", "divide the block's work once", n.span,
                  {iteration_->span, "an iteration of this loop is executed by a part of the block only"});
    }
    if (role_ && role_->first != 0) {
      wrong_scope("T.threads", "iteration", "divide work in the first role, whose threads are those of the kernel",
                  n.span, {role_->span, "this role's threads run everything alike"});
    }
    const int64_t* begin = int_value(n.begins[0]);
    const int64_t* extent = int_value(n.extents[0]);
    if (begin && extent && *begin == 0 && *extent == kernel_->threads) return;
    refuse_argument("T.threads", "count", extent ? std::to_string(*extent) : "an expression",
                    fmt::format("the block has {} threads", kernel_->threads), "give the number that T.Kernel states",
                    n.span, {{kernel_->span, "the kernel"}});
  }

  void check(const ForTiles& n) {
    const Buffer& buffer = *n.buffer;
    require_known(&buffer, buffer.name);
    if (tiles_) throw UserError(Code::NestedTileLoops, n.span, {}, {{tiles_->span, "the outer tile loop"}});
    if (!is_tiled(buffer)) {
      refuse_argument("T.foreach_tiles", "buffer", fmt::format("'{}'", buffer.name), "it has no tiles",
                      "allocate it with T.alloc_shared_tiles", n.span, {declaration_note(buffer)});
    }
    if (n.vars.size() != buffer.rank()) {
      throw UserError(Code::IndexCount, n.span,
                      {{"buffer", buffer.name},
                       {"rank", static_cast<int64_t>(buffer.rank())},
                       {"given", static_cast<int64_t>(n.vars.size())}},
                      {declaration_note(buffer)}, {"a tile loop has one variable for each dimension"});
    }
    tiles_ = &n;
    inside({n.span, 0, "loop"}, &n, false, [&] {
      for (const VarRef& var : n.vars) define(var.get(), var->name);
      visit(n.body);
    });
    tiles_ = nullptr;
  }

  void check(const While& n) {
    visit(n.condition, n.span);
    const bool runs = constant_truth(n.condition) == true;
    inside({n.span, axes_of(n.condition), "condition"}, nullptr, !runs, [&] { visit(n.body); });
  }

  void check(const If& n) {
    visit(n.condition, n.span);
    const Control control{n.span, axes_of(n.condition), "condition"};
    const std::optional<bool> truth = constant_truth(n.condition);
    inside(control, nullptr, truth != true, [&] { visit(n.then_body); });
    if (n.else_body) inside(control, nullptr, truth != false, [&] { visit(n.else_body); });
  }

  /// Runs `f` in a scope under `control`. `iteration` is set where the loop's iterations are independent; `doubtful`
  /// where it may be that nothing runs.
  template <class F>
  void inside(const Control& control, const StmtNode* iteration, bool doubtful, F&& f) {
    const StmtNode* outer = iteration_;
    if (iteration) iteration_ = iteration;
    const For* lanes = std::exchange(lanes_, nullptr);
    controls_.push_back(control);
    doubtful_ += doubtful;
    scoped(f);
    doubtful_ -= doubtful;
    controls_.pop_back();
    lanes_ = lanes;
    iteration_ = outer;
  }

  void check(const Kernel& n) {
    if (kernel_) {
      wrong_scope("T.Kernel", "kernel", "launch kernels one after the other", n.span,
                  {kernel_->span, "the outer kernel"});
    }
    for (const Expr& extent : n.extents) {
      visit(extent, n.span);
      if (const int64_t* v = int_value(extent); v && *v < 0) {
        throw UserError(Code::NegativeExtent, span_of(extent, n.span), {{"extent", *v}});
      }
    }
    verify_launch(n, f_.mesh.has_value());
    if (f_.mesh) check_grid(n);
    kernel_ = &n;
    roles_end_ = 0;
    stack_bytes_ = 0;
    kernel_controls_ = controls_.size();
    scoped([&] {
      for (size_t d = 0; d < n.vars.size(); ++d) {
        define(n.vars[d].get(), n.vars[d]->name);
        if (d < first_block_dim(n, f_.mesh)) axes_[n.vars[d].get()] = AxisSet{1} << d;
      }
      visit(n.body);
    });
    verify_barrier_uses(n);
    verify_copies_end(n);
    kernel_ = nullptr;
  }

  /// Roles stand side by side behind what the whole block does; the first has the threads of the kernel.
  void check(const Role& n) {
    if (!kernel_) wrong_scope("T.role", "host", "put it inside T.Kernel", n.span);
    if (role_ || controls_.size() != kernel_controls_) {
      wrong_scope("T.role", "iteration", "put it at the first level of T.Kernel", n.span,
                  {kernel_->span, "the kernel"});
    }
    verify_role(n, *kernel_, roles_end_);
    roles_end_ += n.threads;
    role_ = &n;
    scoped([&] { visit(n.body); });
    role_ = nullptr;
  }

  /// A function is called, so what it is made of is not a part of something that lanes or threads do in step.
  void check(const Outline& n) {
    if (!kernel_) wrong_scope("T.outline", "host", "put it inside T.Kernel", n.span);
    if (iteration_) {
      wrong_scope("T.outline", "iteration", "put it around the loop", n.span,
                  {iteration_->span, "an iteration of this loop is executed by a part of the block only"});
    }
    if (outline_) {
      wrong_scope("T.outline", "outline", "put them one after the other", n.span, {outline_->span, "the outer one"});
    }
    outline_ = &n;
    scoped([&] { visit(n.body); });
    outline_ = nullptr;
  }

  /// The grid is the mesh. In a lowered program the blocks of a core may follow, which no collective waits for.
  void check_grid(const Kernel& n) {
    const std::vector<Expr> cores(n.extents.begin(),
                                  n.extents.begin() + static_cast<std::ptrdiff_t>(first_block_dim(n, f_.mesh)));
    const std::optional<std::vector<int64_t>> grid = constant_shape(cores);
    if (grid && *grid == f_.mesh->extents && !(has_core_blocks(n, f_.mesh) && meets_cores(n.body))) return;
    throw UserError(Code::MeshGrid, n.span,
                    {{"grid", shape_text(n.extents)},
                     {"mesh", to_string(*f_.mesh)},
                     {"fix", join(f_.mesh->extents, ", ", [](int64_t e) { return std::to_string(e); })}});
  }

  static bool meets_cores(const Stmt& body) {
    bool meets = has_collective(body);
    walk(body, [&](const Stmt& s) { meets |= as<Peer>(s) != nullptr; });
    return meets;
  }

  /// Whoever meets in warpgroups, or has one of them start a copy, has so many threads.
  void check_warpgroups(const TileOp& n) {
    const int64_t threads = role_ ? role_->threads : kernel_ ? kernel_->threads : 0;
    if (n.op == TileOpcode::SyncWarpgroups && threads % kWarpgroup != 0) {
      refuse_argument("T.Kernel", "threads", std::to_string(threads),
                      fmt::format("{} is for warpgroups of 128", operation_text(n)),
                      "give a multiple of 128, or write T.sync_threads()", n.span);
    }
    if (n.warpgroup() > 0 && (n.warpgroup() + 1) * kWarpgroup > threads) {
      refuse_argument(
          operation_text(n), "warpgroup", std::to_string(n.warpgroup()),
          fmt::format("there are {} threads, 128 to a warpgroup", threads),
          threads < 2 * kWarpgroup ? "leave it out" : fmt::format("give a number below {}", threads / kWarpgroup),
          n.place(n.row().index_of("warpgroup")));
    }
  }

  void check(const TileOp& n) {
    for (size_t i = 0; i < n.operands.size(); ++i) visit_operand(n.operands[i], n.place(i));
    const std::string operation = operation_text(n);
    if (!n.row().is_collective() && !kernel_) wrong_scope(operation, "host", "put it inside T.Kernel", n.span);
    if (n.op == TileOpcode::SyncCluster && (role_ || controls_.size() != kernel_controls_)) {
      wrong_scope(operation, "iteration", "put it at the first level of T.Kernel, which all threads execute", n.span,
                  {kernel_->span, "the kernel"});
    }
    check_warpgroups(n);
    if (iteration_ && (n.row().scope != OpScope::Iteration || tiles_)) {
      wrong_scope(operation, "iteration", "make the loop T.serial, or move the operation out of it", n.span,
                  {iteration_->span, "an iteration of this loop is executed by a part of the block only"});
    }
    if (iteration_) verify_run(n);
    verify_tile_op(n, f_.mesh ? &*f_.mesh : nullptr, doubtful_ == 0);
    if (n.row().rule == TileRule::MeshTensorCopy) verify_mesh_tensor_copy(n, f_);
    if (n.op == TileOpcode::StAsync) {
      check_peer(n);
    } else {
      for (size_t i = 0; i < n.operands.size(); ++i) {
        if (n.is_region(i) && n.row().params[i].writes()) check_written(*n.region(i).buffer, n.place(i));
      }
    }
    if (n.row().is_collective()) {
      check_owner(n);
      check_control(n);
      check_of_group(n);
    }
  }

  void check_peer(const TileOp& n) const {
    const Buffer& buffer = *n.region(1).buffer;
    if (peers_.contains(&buffer)) return;
    refuse_argument(operation_text(n), "dst", fmt::format("'{}'", buffer.name), "it is not what another core has",
                    "name a buffer of T.peer", n.place(1), {declaration_note(buffer)});
  }

  /// Cores exchange what is theirs; a tensor of the call is one for all of them.
  void check_owner(const TileOp& n) {
    for (size_t i = 0; i < n.operands.size(); ++i) {
      if (!n.is_region(i) || n.region(i).buffer->scope != MemoryScope::Param) continue;
      const Buffer& tensor = *n.region(i).buffer;
      refuse_argument(operation_text(n), std::string(n.row().params[i].name), fmt::format("'{}'", tensor.name),
                      "it is a tensor of the call, not a core's own", "T.copy its part to or from a buffer of the core",
                      n.place(i), {declaration_note(tensor)});
    }
  }

  void visit_operand(const TileOperand& operand, const Span& span) {
    if (const Region* region = std::get_if<Region>(&operand)) {
      require_known(region->buffer.get(), region->buffer->name);
      if (region->ranges.size() != region->buffer->rank()) {
        throw UserError(Code::IndexCount, span,
                        {{"buffer", region->buffer->name},
                         {"rank", static_cast<int64_t>(region->buffer->rank())},
                         {"given", static_cast<int64_t>(region->ranges.size())}},
                        {declaration_note(*region->buffer)});
      }
      for (const Range& range : region->ranges) {
        visit(range.begin, span);
        visit(range.extent, span);
      }
    } else if (const Expr* e = std::get_if<Expr>(&operand)) {
      visit(*e, span);
    } else if (const std::vector<Expr>* items = std::get_if<std::vector<Expr>>(&operand)) {
      for (const Expr& e : *items) visit(e, span);
    } else if (const IndexMap* map = std::get_if<IndexMap>(&operand)) {
      scoped([&] {
        define(map->var.get(), map->var->name);
        visit(map->value, span);
      });
    }
  }

  /// Control flow around a collective decides alike on all cores of the group.
  void check_control(const TileOp& n) {
    const std::string axis = n.axis() ? *n.axis() : "all";
    const AxisSet group = *axes_named(*f_.mesh, axis);
    for (const Control& control : controls_) {
      if (!(control.axes & group)) continue;
      throw UserError(Code::DivergentCollective, n.span, {{"operation", operation_text(n)}, {"axis", axis}},
                      {{control.span, fmt::format("the {} depends on the core's own coordinates", control.what)}});
    }
  }

  /// So do operands that say which core of the group it is about.
  void check_of_group(const TileOp& n) {
    const std::string axis = n.axis() ? *n.axis() : "all";
    const AxisSet group = *axes_named(*f_.mesh, axis);
    for_each_of_group(n, [&](size_t i, const Expr& e) {
      if (!(axes_of(e) & group)) return;
      throw UserError(
          Code::DivergentOperand, n.place(i),
          {{"parameter", std::string(n.row().params[i].name)}, {"operation", operation_text(n)}, {"axis", axis}},
          {{{}, "it depends on the core's own coordinates"}});
    });
  }

  [[noreturn]] void wrong_scope(const std::string& operation, const std::string& scope, const std::string& remedy,
                                const Span& span, Note note = {}) {
    std::vector<Note> notes;
    if (!note.text.empty()) notes.push_back(std::move(note));
    throw UserError(Code::OperationScope, span, {{"operation", operation}, {"scope", scope}, {"remedy", remedy}},
                    std::move(notes));
  }

  const Function& f_;
  std::unordered_set<const Object*> known_;
  std::vector<const Object*> order_;
  std::unordered_set<const Buffer*> peers_;
  std::unordered_map<const Object*, AxisSet> axes_;
  std::vector<Control> controls_;
  const Kernel* kernel_ = nullptr;
  size_t kernel_controls_ = 0;  ///< that stand around the kernel
  const Role* role_ = nullptr;
  int64_t roles_end_ = 0;  ///< the threads of the kernel's roles so far
  int64_t stack_bytes_ = 0;  ///< of the kernel's buffers so far
  const Outline* outline_ = nullptr;
  const ForTiles* tiles_ = nullptr;
  const StmtNode* iteration_ = nullptr;
  const For* lanes_ = nullptr;  ///< the vectorized loop of which this is a statement
  int doubtful_ = 0;  ///< enclosing conditions and loops that are not known to let anything run
};

}  // namespace

void verify(const FunctionRef& f) {
  with_stack(kWalkStack, [&] { Verifier(*f).run(); });
}

}  // namespace helve
