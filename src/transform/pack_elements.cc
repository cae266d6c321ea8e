// Elements of which two share a byte become bytes.
// Input: any function. Output: no buffer and no value has a packed dtype, int4 or float4_e2m1.
// Before:  W: T.Tensor((N, K), "int4")
//          w = T.alloc_shared((64, 64), "int4"); T.copy(W[n:n + 64, k:k + 64], w); x = T.cast(w[i, j], "float32")
// After:   W: T.Tensor((N, K // 2), "uint8")
//          w = T.alloc_shared((64, 32), "uint8"); T.copy(W[n:n + 64, k // 2:k // 2 + 32], w)
//          x = T.cast(T.cast((w[i, j // 2] << 28 - j % 2 * 4) >> 28, "int8"), "float32")
// Parameters are packed, since callers see them; a dynamic extent K of theirs becomes twice an extent of bytes. Shared
// memory is packed if all that writes it copies whole bytes. All other memory has an element a byte, so its elements
// may be stored by anyone. Of packed memory only whole bytes are stored: two executors that store the two halves of a
// byte would race. Copies to a parameter go through a buffer with an element a byte and one of pairs; a store of an
// element, or a copy that may begin or end inside of a byte, is refused.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "helve/analysis/effects.h"
#include "helve/analysis/multiple.h"
#include "helve/analysis/operation_loops.h"
#include "helve/ir/expr/rounding.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/inline.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"
#include "packed_values.h"
#include "scope_facts.h"

namespace helve {

namespace {

constexpr DType kByte{TypeCode::UInt, 8};

bool is_packed(const Buffer& b) { return b.dtype.is_packed(); }

bool has_packed(const Function& f) {
  bool found = false;
  for (const Param& param : f.params) {
    std::visit([&](const auto& p) { found |= p->dtype.is_packed(); }, param);
  }
  walk(f.body, [&](const Stmt& s) {
    if (const Alloc* n = as<Alloc>(s)) found |= is_packed(*n->buffer);
  });
  walk_exprs(f.body, [&](const Expr& e) { found |= e->dtype.is_packed(); });
  return found;
}

/// The function with 2 * n for each dynamic extent that is the last one of a packed parameter. Errors show parameters
/// as they were declared: `declared` gets those that changed.
FunctionRef with_even_rows(const FunctionRef& f, BufferMap* declared) {
  ParameterValues values;
  Ref<Function> out = make_ref<Function>(*f);
  for (VarRef& dim : out->dims) {
    const bool is_row = std::any_of(f->params.begin(), f->params.end(), [&](const Param& param) {
      const BufferRef* b = std::get_if<BufferRef>(&param);
      return b && is_packed(**b) && (*b)->shape.back().get() == dim.get();
    });
    if (!is_row) continue;
    const VarRef pairs = make_var(dim->name + "_pairs", dim->dtype, dim->span);
    values.scalars.emplace(dim.get(), Expr(pairs) * int_imm(2));
    dim = pairs;
  }
  if (values.scalars.empty()) return f;
  const auto now = [&](std::vector<Expr>& all) {
    for (Expr& e : all) e = substitute(e, values.scalars);
  };
  for (Param& param : out->params) {
    BufferRef* b = std::get_if<BufferRef>(&param);
    if (!b) continue;
    Ref<Buffer> own = make_ref<Buffer>(**b);
    now(own->shape);
    now(own->strides);
    values.buffers.emplace(b->get(), BufferRef(own));
    declared->emplace(own.get(), *b);
    *b = BufferRef(own);
  }
  for (MayAlias& each : out->may_alias) {
    for (BufferRef& b : each.buffers) b = values.buffers.at(b.get());
  }
  for (Assumption& each : out->assumptions) each.condition = substitute(each.condition, values.scalars);
  out->body = inline_body(*f, std::move(values), {});
  return FunctionRef(out);
}

[[noreturn]] void refuse_packed_store(const Buffer& buffer, const BufferMap& declared, const Span& span,
                                      const std::string& reason, const std::string& remedy) {
  const auto was = declared.find(&buffer);
  throw UserError(Code::PackedStore, span,
                  {{"buffer", buffer.name}, {"dtype", to_string(buffer.dtype)}, {"reason", reason}, {"remedy", remedy}},
                  {declaration_note(was == declared.end() ? buffer : *was->second)});
}

bool is_copy(const TileOp& op) { return op.op == TileOpcode::Copy || op.op == TileOpcode::CopyAsync; }

/// Does the region consist of whole bytes of packed memory?
bool has_whole_bytes(const Region& region, const Facts& facts) {
  const Range& last = region.ranges.back();
  return !last.point && is_multiple(last.begin, 2, facts) && is_multiple(last.extent, 2, facts);
}

/// Which memory is packed: parameters, and shared memory into which nothing but whole bytes of packed memory is copied.
class PackedMemory final : public ScopedRewriter {
 public:
  explicit PackedMemory(const Function& f) : ScopedRewriter(f) {
    for (const Param& param : f.params) {
      const BufferRef* b = std::get_if<BufferRef>(&param);
      if (b && is_packed(**b)) add(**b);
    }
    walk(f.body, [&](const Stmt& s) {
      const Alloc* n = as<Alloc>(s);
      if (n && may_be_packed(*n->buffer)) add(*n->buffer);
    });
    do {
      changed_ = false;
      rewrite(f.body);
    } while (changed_);
  }

  BufferMap bytes;  ///< the bytes of each

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (const Store* n = as<Store>(s)) drop(*n->buffer);
    const TileOp* op = as<TileOp>(s);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      if (op->is_region(i) && bytes.contains(op->region(i).buffer.get()) && !keeps_packed(*op, i, facts)) {
        drop(*op->region(i).buffer);
      }
    }
    return s;
  }

 private:
  static bool may_be_packed(const Buffer& b) {
    const int64_t* last = b.shape.empty() ? nullptr : int_value(b.shape.back());
    return is_packed(b) && b.scope == MemoryScope::Shared && last && *last % 2 == 0 && !is_tiled(b) && !b.layout &&
           !b.slots;
  }

  bool keeps_packed(const TileOp& op, size_t i, const Facts& facts) const {
    if (op.op == TileOpcode::Clear) return has_whole_bytes(op.region(i), facts);
    if (!is_copy(op)) return false;
    const Region &src = op.region(0), &dst = op.region(1);
    if (i == 0) return true;
    return src.buffer->dtype == dst.buffer->dtype && bytes.contains(src.buffer.get()) && has_whole_bytes(src, facts) &&
           has_whole_bytes(dst, facts);
  }

  void add(const Buffer& b) {
    Ref<Buffer> own = make_ref<Buffer>(b);
    own->dtype = kByte;
    own->shape.back() = simplify(floor_div(b.shape.back(), int_imm(2)));
    bytes.emplace(&b, BufferRef(own));
  }

  void drop(const Buffer& b) {
    if (b.scope != MemoryScope::Param && bytes.erase(&b) > 0) changed_ = true;
  }

  bool changed_ = false;
};

/// Tile operations in terms of bytes, of memory with an element a byte, and of single elements.
class Operations final : public ScopedRewriter {
 public:
  Operations(const Function& f, const BufferMap& bytes, const BufferMap& declared)
      : ScopedRewriter(f), bytes_(bytes), declared_(declared) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const TileOp* op = as<TileOp>(s);
    return op ? operation(*op, facts) : s;
  }

 private:
  Stmt operation(const TileOp& op, const Facts& facts) const {
    std::vector<size_t> packed;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (op.is_region(i) && is_packed(*op.region(i).buffer)) packed.push_back(i);
    }
    if (packed.empty()) return Stmt(&op);
    if (is_copy(op)) return copy(op, facts);
    if (op.op == TileOpcode::Fill || op.op == TileOpcode::Clear) return fill(op, facts);
    for (const size_t i : packed) {
      if (in_bytes(op.region(i)) || !computes_in_range(op, i)) refuse(op, i);
    }
    return Stmt(&op);
  }

  /// Is what the operation makes of elements that are kept in wider ones the same?
  static bool computes_in_range(const TileOp& op, size_t i) {
    switch (op.op) {
      case TileOpcode::Gemm: return i < 2;
      case TileOpcode::ReduceMax:
      case TileOpcode::ReduceMin:
      case TileOpcode::CommBroadcast:
      case TileOpcode::CommPut:
      case TileOpcode::CommScatter:
      case TileOpcode::CommGather:
      case TileOpcode::CommAllGather:
      case TileOpcode::CommAllToAll:
      case TileOpcode::CommPermute: return true;
      default: return false;
    }
  }

  [[noreturn]] static void refuse(const TileOp& op, size_t i) {
    const DType t = op.region(i).buffer->dtype;
    throw UserError(Code::WrongType, op.place(i),
                    {{"what", fmt::format("'{}' of {}", op.row().params[i].name, operation_text(op))},
                     {"given", to_string(t)},
                     {"expected", std::string("a dtype of 8 bits or more")}},
                    {declaration_note(*op.region(i).buffer)},
                    {fmt::format("T.copy it to a buffer of {}, and use that", to_string(computed_as(t)))});
  }

  [[noreturn]] void refuse_part(const TileOp& op, const Buffer& buffer, const std::string& what) const {
    refuse_packed_store(buffer, declared_, op.span, fmt::format("this {} may begin or end inside of a byte", what),
                        "begin at an even index and end before one");
  }

  bool in_bytes(const Region& region) const { return bytes_.contains(region.buffer.get()); }

  Region bytes_of(const Region& region, const Facts& facts) const {
    Region out{bytes_.at(region.buffer.get()), region.ranges};
    const size_t last = region.ranges.size() - 1;
    for (size_t d = 0; d < last; ++d) {
      if (region.covers(d)) out.ranges[d].extent = out.buffer->shape[d];
    }
    const auto half = [&](const Expr& e) { return simplify(floor_div(e, int_imm(2)), facts); };
    out.ranges[last].begin = half(region.ranges[last].begin);
    out.ranges[last].extent = region.covers(last) ? out.buffer->shape[last] : half(region.ranges[last].extent);
    return out;
  }

  Stmt copy(const TileOp& op, const Facts& facts) const {
    const Region &src = op.region(0), &dst = op.region(1);
    const DType from = src.buffer->dtype, to = dst.buffer->dtype;
    if (in_bytes(dst) && !has_whole_bytes(dst, facts)) {
      refuse_part(op, *dst.buffer, "copy");
    }
    if (from == to && in_bytes(src) && in_bytes(dst) && has_whole_bytes(src, facts)) {
      return tile_op(op.op, {bytes_of(src, facts), bytes_of(dst, facts), pair_of(op.expr(2), to), op.text(3)}, op.span,
                     op.places);
    }
    if (in_bytes(dst)) return in_pairs(op, facts);
    if (!in_bytes(src) && (from == to || !to.is_packed())) return Stmt(&op);
    return by_elements(op);
  }

  /// Through a buffer with an element a byte and one of pairs, each of which one executor makes.
  Stmt in_pairs(const TileOp& op, const Facts& facts) const {
    const Region& dst = op.region(1);
    std::vector<Expr> shape = dst.shape();
    for (Expr& extent : shape) {
      extent = simplify(extent, facts);
      if (!int_value(extent)) {
        refuse_packed_store(*dst.buffer, declared_, op.span, "the extents of this copy are not constants",
                            "copy tiles of constant extents, which end where the tensor ends");
      }
    }
    const BufferRef values = make_buffer(dst.buffer->name, dst.buffer->dtype, MemoryScope::Shared, shape, {}, {});
    const Region all = whole_region(values);
    const Stmt fill =
        copy(*as<TileOp>(tile_op(TileOpcode::Copy, {op.region(0), all, op.expr(2), op.text(3)}, op.span)), facts);
    shape.back() = int_imm(*int_value(shape.back()) / 2);
    const BufferRef pairs = make_buffer(dst.buffer->name, kByte, MemoryScope::Shared, shape, {}, {});
    std::vector<VarRef> vars;
    std::vector<Expr> at;
    for (size_t d = 0; d < shape.size(); ++d) {
      vars.push_back(make_var(d + 1 == shape.size() ? "pair" : "i"));
      at.emplace_back(vars.back());
    }
    const auto element = [&](int64_t which) {
      std::vector<Expr> place = at;
      place.back() = place.back() * int_imm(2) + int_imm(which);
      return load(values, place, op.span);
    };
    // Loads of elements are mapped like all others, and are then of the dtype that pairs are made from.
    const DType packed = dst.buffer->dtype;
    const Expr pair = packed_pair(cast(element(0), computed_as(packed)), cast(element(1), computed_as(packed)), packed);
    const std::vector<Expr> begins(shape.size(), int_imm(0));
    const Stmt join = for_loop(LoopKind::Parallel, vars, begins, shape, store(pairs, at, pair, op.span), 1, op.span);
    return seq({alloc(values, op.span), fill, alloc(pairs, op.span), join,
                tile_op(TileOpcode::Copy, {whole_region(pairs), bytes_of(dst, facts)}, op.span)},
               op.span);
  }

  /// The loops over elements that the copy means.
  static Stmt by_elements(const TileOp& op) {
    if (!op.text(3).empty()) {
      throw UserError(
          Code::NoSchedule, op.place(3), {{"operation", operation_text(op)}},
          {{{}, fmt::format("dispatch=\"{}\" copies bytes, and the elements of this copy are converted", op.text(3))}},
          {"leave dispatch= out"});
    }
    const Stmt plain = tile_op(TileOpcode::Copy, op.operands, op.span, op.places);
    const std::optional<OperationLoops> loops = operation_loops(*as<TileOp>(plain));
    HELVE_CHECK(loops.has_value(), "extents known at the call decide which dimensions of a copy match");
    std::vector<Stmt> out;
    for (const OperationLoops::Part& part : loops->parts) out.push_back(part.loop);
    return seq(std::move(out), op.span);
  }

  Stmt fill(const TileOp& op, const Facts& facts) const {
    const Region& dst = op.region(0);
    if (!in_bytes(dst)) return Stmt(&op);
    if (!has_whole_bytes(dst, facts)) {
      refuse_part(op, *dst.buffer, operation_text(op));
    }
    const Region bytes = bytes_of(dst, facts);
    if (op.op == TileOpcode::Clear) return tile_op(op.op, {bytes}, op.span, op.places);
    return tile_op(op.op, {bytes, pair_of(op.expr(1), dst.buffer->dtype)}, op.span, op.places);
  }

  /// The byte of an element twice.
  static Expr pair_of(const Expr& value, DType packed) {
    std::optional<uint64_t> code;
    if (const IntImm* n = as<IntImm>(value)) code = static_cast<uint64_t>(n->value) & 15;
    if (const FloatImm* n = as<FloatImm>(value)) code = float_bits(round_to(n->value, packed), packed);
    if (code) return int_imm(static_cast<int64_t>(*code * 17), kByte);
    const Expr one = cast(value, computed_as(packed));
    return packed_pair(one, one, packed);
  }

  const BufferMap& bytes_;
  const BufferMap& declared_;
};

/// Values and accesses of elements.
class Elements {
 public:
  Elements(const BufferMap& bytes, const BufferMap& declared) : bytes_(bytes), declared_(declared) {}

  Stmt body(const Stmt& s) {
    walk(s, [&](const Stmt& each) {
      if (const Kernel* kernel = as<Kernel>(each)) {
        for (const VarRef& var : kernel->vars) kernel_of_.emplace(var.get(), kernel);
      }
      if (const For* loop = as<For>(each)) {
        for (const VarRef& var : loop->vars) loops_.insert(var.get());
      }
      const Alloc* n = as<Alloc>(each);
      if (!n || !is_packed(*n->buffer) || bytes_.contains(n->buffer.get())) return;
      Ref<Buffer> own = make_ref<Buffer>(*n->buffer);
      own->dtype = kept_as(n->buffer->dtype);
      kept_.emplace(n->buffer.get(), BufferRef(own));
    });
    const Stmt out = rewrite(
        s, [&](const Stmt& each) { return statement(each); },
        [&](const Expr& e) { return rewrite(e, [&](const Expr& node) { return value(node); }); });
    return redeclare_buffers(out, kept_);
  }

 private:
  Expr value(const Expr& e) {
    const DType t = e->dtype;
    if (const Cast* n = as<Cast>(e)) {
      return t.is_packed() ? cast_to_packed(n->value, t) : cast(n->value, t, e->span);
    }
    if (const Misalignment* n = as<Misalignment>(e)) {
      const auto bytes = bytes_.find(&buffer_of(n->buffer));
      return bytes == bytes_.end() ? e : misalignment(bytes->second, n->unit, e->span);
    }
    if (!t.is_packed()) return e;
    const DType as_computed = computed_as(t);
    if (const IntImm* n = as<IntImm>(e)) return int_imm(n->value, as_computed, e->span);
    if (const FloatImm* n = as<FloatImm>(e)) return float_imm(n->value, as_computed, e->span);
    if (const Var* n = as<Var>(e)) return Expr(named(*n));
    if (const Load* n = as<Load>(e)) return loaded(*n, t);
    if (const TileLoad* n = as<TileLoad>(e)) {
      return cast(tile_load(kept_.at(&buffer_of(n->buffer)), n->indices, e->span), as_computed, e->span);
    }
    const Apply* n = as<Apply>(e);
    HELVE_CHECK(n != nullptr, "a packed value of unknown kind");
    const Expr out = apply(n->op, n->args, e->span);
    return t.is_float() || stays_in_range(n->op) ? out : in_range(out, t);
  }

  static bool stays_in_range(Op op) {
    switch (op) {
      case Op::Min:
      case Op::Max:
      case Op::Select:
      case Op::FloorMod:
      case Op::BitAnd:
      case Op::BitOr:
      case Op::BitXor:
      case Op::BitNot:
      case Op::ShiftRight: return true;
      default: return false;
    }
  }

  Expr loaded(const Load& n, DType t) const {
    const Buffer& buffer = buffer_of(n.buffer);
    const auto bytes = bytes_.find(&buffer);
    if (bytes == bytes_.end()) return cast(load(kept_.at(&buffer), n.indices, n.span), computed_as(t), n.span);
    return unpacked(load(bytes->second, byte_at(n.indices), n.span), n.indices.back(), t);
  }

  static std::vector<Expr> byte_at(std::vector<Expr> indices) {
    indices.back() = simplify(floor_div(indices.back(), int_imm(2)));
    return indices;
  }

  VarRef named(const Var& var) {
    VarRef& out = names_[&var];
    if (!out) out = make_var(var.name, computed_as(var.dtype), var.span);
    return out;
  }

  Stmt statement(const Stmt& s) {
    if (const Bind* n = as<Bind>(s); n && n->var->dtype.is_packed()) return bind(named(*n->var), n->value, s->span);
    if (const Alloc* n = as<Alloc>(s)) {
      const auto bytes = bytes_.find(n->buffer.get());
      return bytes == bytes_.end() ? s : alloc(bytes->second, s->span);
    }
    if (const Prefetch* n = as<Prefetch>(s)) {
      const auto bytes = bytes_.find(n->buffer.get());
      return bytes == bytes_.end() ? s : prefetch(bytes->second, byte_at(n->indices), s->span);
    }
    if (const Store* n = as<Store>(s); n && is_packed(*n->buffer)) return stored(*n);
    if (const TileStore* n = as<TileStore>(s); n && is_packed(*n->buffer)) {
      return tile_store(kept_.at(n->buffer.get()), n->indices, in_memory(n->value, n->buffer->dtype), s->span);
    }
    if (const TileOp* n = as<TileOp>(s)) return with_values(*n);
    return s;
  }

  Stmt stored(const Store& n) const {
    if (bytes_.contains(n.buffer.get())) {
      refuse_packed_store(*n.buffer, declared_, n.span, "this stores one of them", remedy_of(n));
    }
    return store(kept_.at(n.buffer.get()), n.indices, in_memory(n.value, n.buffer->dtype), n.span);
  }

  /// Does it show that no two blocks store to one row: are the variables of the kernel subscripts before the last, and
  /// is the last one of loops alone?
  bool has_own_row(const std::vector<Expr>& indices) const {
    bool of_loops = true;
    walk(indices.back(), [&](const Expr& e) { of_loops = of_loops && (!as<Var>(e) || loops_.contains(as<Var>(e))); });
    std::unordered_set<const Var*> leading;
    const Kernel* kernel = nullptr;
    for (size_t d = 0; d + 1 < indices.size(); ++d) {
      const auto found = kernel_of_.find(as<Var>(indices[d]));
      if (found == kernel_of_.end()) continue;
      leading.insert(found->first);
      kernel = found->second;
    }
    return of_loops && kernel && std::all_of(kernel->vars.begin(), kernel->vars.end(), [&](const VarRef& var) {
             return leading.contains(var.get());
           });
  }

  /// Where to store an element instead: a row that the block has for itself, unless blocks share rows.
  std::string remedy_of(const Store& n) const {
    constexpr int64_t kLongestRow = 8192;  // that is written as it is
    const int64_t* extent = int_value(n.buffer->shape.back());
    if (!extent || *extent > kLongestRow || !has_own_row(n.indices)) {
      return "let a block store to a buffer of T.alloc_shared or T.alloc_fragment, and T.copy whole rows of it, or an "
             "even number of elements from an even index on";
    }
    std::string row;
    for (size_t d = 0; d + 1 < n.indices.size(); ++d) row += brief_text(n.indices[d]) + ", ";
    return fmt::format("store to row[{}] of row = T.alloc_shared(({},), \"{}\"), and then T.copy(row, {}[{}:]), which "
                       "writes whole bytes",
                       brief_text(n.indices.back()), *extent, to_string(n.buffer->dtype), n.buffer->name, row);
  }

  /// A float is rounded where it is stored; an integer has wrapped where it was computed.
  static Expr in_memory(const Expr& value, DType packed) {
    return packed.is_float() ? cast(in_range(value, packed), kept_as(packed)) : value;
  }

  /// The value of a fill, or the pad of a copy, in the dtype of memory with an element a byte.
  Stmt with_values(const TileOp& op) const {
    const size_t dst = op.op == TileOpcode::Fill ? 0 : 1, value = dst + 1;
    const bool has_value = op.op == TileOpcode::Fill || is_copy(op);
    if (!has_value || !is_packed(*op.region(dst).buffer)) return Stmt(&op);
    return Stmt(copy_with(
        op, [&](TileOp& out) { out.operands[value] = in_memory(op.expr(value), op.region(dst).buffer->dtype); }));
  }

  const BufferMap& bytes_;
  const BufferMap& declared_;
  BufferMap kept_;  ///< memory with an element a byte
  std::unordered_map<const Var*, VarRef> names_;
  std::unordered_map<const Var*, const Kernel*> kernel_of_;  ///< by its variables
  std::unordered_set<const Var*> loops_;  ///< variables of loops
};

}  // namespace

FunctionRef pack_elements(const FunctionRef& f, const PassOptions&) {
  if (!has_packed(*f)) return f;
  BufferMap declared;
  const FunctionRef even = with_even_rows(f, &declared);
  const PackedMemory memory(*even);
  const Stmt operations = Operations(*even, memory.bytes, declared).rewrite(even->body);
  const Stmt body = Elements(memory.bytes, declared).body(operations);
  Ref<Function> out = make_ref<Function>(*even);
  out->body = body;
  const auto in_bytes = [&](BufferRef& b) {
    if (const auto bytes = memory.bytes.find(b.get()); bytes != memory.bytes.end()) b = bytes->second;
  };
  for (Param& param : out->params) {
    if (BufferRef* b = std::get_if<BufferRef>(&param)) in_bytes(*b);
  }
  for (MayAlias& each : out->may_alias) {
    for (BufferRef& b : each.buffers) in_bytes(b);
  }
  return FunctionRef(out);
}

}  // namespace helve
