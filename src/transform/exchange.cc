// A core's part of a collective.
// Every element of the destination is computed by one thread; its source member, and the place there, are index
// arithmetic. If members have separate parts in the destination, threads of one pass read from several of them.
#include "exchange.h"

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr int64_t kUnrolledMembers = 16;  // the reads of so many are in flight together

using Coordinates = std::vector<Expr>;

bool is_one(const Expr& e) {
  const int64_t* value = int_value(e);
  return value && *value == 1;
}

}  // namespace

Stmt over_box(const ThreadLoop& loop, const std::vector<Expr>& extents,
              const std::function<Stmt(const Coordinates&)>& body) {
  Expr count = int_imm(1);
  for (const Expr& e : extents) count = count * e;
  const VarRef turn = make_var("turn"), at = make_var("at");
  Facts facts;
  facts.bind_loop(loop.tx, int_imm(0), int_imm(loop.threads));
  count = simplify(count, facts);
  const int64_t* constant = int_value(count);
  const bool once = constant && *constant <= loop.threads;
  const Expr place = once ? Expr(loop.tx) : Expr(at);
  Coordinates coordinates;
  for (const Expr& at_dimension : unravel(place, extents)) coordinates.push_back(simplify(at_dimension, facts));
  Stmt inner = body(coordinates);
  if (!constant || *constant % loop.threads != 0) inner = if_then(less(place, count), inner);
  if (!once) {
    inner = seq({bind(at, Expr(turn) * int_imm(loop.threads) + Expr(loop.tx)), inner});
    inner = for_loop(LoopKind::Serial, turn, simplify(ceil_div(count, int_imm(loop.threads)), facts), inner);
  }
  return for_loop(LoopKind::Thread, loop.tx, int_imm(loop.threads), inner, loop.span);
}

BufferRef on_other_core(const BufferRef& source) {
  Ref<Buffer> out = make_ref<Buffer>(*source);
  out->name += "_peer";
  return BufferRef(out);
}

namespace {

class Exchange {
 public:
  Exchange(const TileOp& op, const MeshShape& mesh, const std::vector<VarRef>& core, const ThreadLoop& loop,
           const MemberElement& element)
      : op_(op),
        group_(group_of(op, mesh, core, whole_span(mesh))),
        mesh_(mesh),
        core_(core),
        loop_(loop),
        element_(element),
        src_(op.region(0)),
        dst_(op.region(1)) {}

  Stmt loop() const {
    switch (op_.op) {
      case TileOpcode::CommBroadcast:
        return squeezed([&](const auto& from, const auto& to) { return move(op_.root(), from, to); });
      case TileOpcode::CommPermute: return permute();
      case TileOpcode::CommPut: return put();
      case TileOpcode::CommReduce: return on_root(all_reduce());
      case TileOpcode::CommAllReduce: return all_reduce();
      case TileOpcode::CommGather: return on_root(gather());
      case TileOpcode::CommAllGather: return gather();
      case TileOpcode::CommScatter:
        return part([&](const auto& from, const auto& to) { return move(op_.root(), from, to); });
      case TileOpcode::CommReduceScatter: return part([&](const auto& from, const auto& to) { return fold(from, to); });
      case TileOpcode::CommAllToAll: return all_to_all();
      default: HELVE_FAIL("not a collective that moves values: " + std::string(op_.row().name));
    }
  }

 private:
  Stmt over(const std::vector<Expr>& extents, const std::function<Stmt(const Coordinates&)>& body) const {
    return over_box(loop_, extents, body);
  }

  /// A loop over two boxes that are equal except for dimensions of extent 1.
  Stmt squeezed(const std::function<Stmt(const Coordinates& from, const Coordinates& to)>& body) const {
    const std::vector<Expr> from = src_.shape(), to = dst_.shape();
    if (from.size() == to.size()) {
      return over(to, [&](const Coordinates& at) { return body(at, at); });
    }
    std::vector<Expr> kept;
    for (const Expr& e : to) {
      if (!is_one(e)) kept.push_back(e);
    }
    const auto spread = [](const std::vector<Expr>& extents, const Coordinates& at) {
      Coordinates out;
      size_t next = 0;
      for (const Expr& e : extents) out.push_back(is_one(e) ? int_imm(0) : at[next++]);
      return out;
    };
    return over(kept, [&](const Coordinates& at) { return body(spread(from, at), spread(to, at)); });
  }

  Expr element_of(const Expr& member, const Coordinates& at, std::vector<Stmt>& before) const {
    return element_(member_coordinates(axes_of(op_, mesh_), mesh_, core_, member), member, region_indices(src_, at),
                    before);
  }

  Stmt move(const Expr& member, const Coordinates& from, const Coordinates& to) const {
    std::vector<Stmt> body;
    const Expr value = element_of(member, from, body);
    body.push_back(store(dst_.buffer, region_indices(dst_, to), value));
    return seq(std::move(body));
  }

  /// The combination of all members' elements, from the first member on.
  Stmt fold(const Coordinates& from, const Coordinates& to) const {
    const DType dtype = dst_.buffer->dtype, wide = accumulator(dtype);
    const std::optional<ReduceKind> kind = parse_reduce_kind(*op_.combination());
    HELVE_CHECK(kind, "a collective with an unknown reduction");
    const BufferRef sum = make_buffer("sum", wide, MemoryScope::Local, {int_imm(1)});
    const std::vector<Expr> only = {int_imm(0)};
    std::vector<Stmt> body = {alloc(sum)};
    const Expr first = element_of(int_imm(0), from, body);
    body.push_back(store(sum, only, cast(first, wide)));
    const VarRef member = make_var("member");
    std::vector<Stmt> turn;
    const Expr next = element_of(Expr(member), from, turn);
    turn.push_back(store(sum, only, combine(*kind, load(sum, only), cast(next, wide))));
    const LoopKind form = group_.members <= kUnrolledMembers ? LoopKind::Unroll : LoopKind::Serial;
    body.push_back(
        for_loop(form, std::vector<VarRef>{member}, {int_imm(1)}, {int_imm(group_.members - 1)}, seq(std::move(turn))));
    body.push_back(store(dst_.buffer, region_indices(dst_, to), cast(load(sum, only), dtype)));
    return seq(std::move(body));
  }

  /// The place of a member's part in a whole, which has a dimension for the members or concatenates them.
  static Coordinates in_whole(Coordinates at, size_t dim, bool own, const Expr& member, const Expr& part) {
    if (own) {
      at.insert(at.begin() + static_cast<std::ptrdiff_t>(dim), member);
    } else {
      at[dim] = plus(member * part, at[dim]);
    }
    return at;
  }

  Stmt gather() const {
    const std::vector<Expr> part = src_.shape();
    const size_t rank = dst_.shape().size(), dim = *op_.dimension(rank);
    const bool own = rank != part.size();
    return over(with_members(part), [&](const Coordinates& at) {
      const Coordinates from(at.begin() + 1, at.end());
      return move(at[0], from, in_whole(from, dim, own, at[0], own ? Expr() : part[dim]));
    });
  }

  Stmt all_reduce() const {
    return squeezed([&](const auto& from, const auto& to) { return fold(from, to); });
  }

  /// A loop over the core's part of the sources.
  Stmt part(const std::function<Stmt(const Coordinates& from, const Coordinates& to)>& body) const {
    const std::vector<Expr> part = dst_.shape();
    const size_t rank = src_.shape().size(), dim = *op_.dimension(rank);
    const bool own = rank != part.size();
    return over(part, [&](const Coordinates& at) {
      return body(in_whole(at, dim, own, group_.me, own ? Expr() : part[dim]), at);
    });
  }

  Stmt on_root(const Stmt& s) const { return if_then(apply(Op::Eq, {simplify(group_.me), op_.root()}), s); }

  /// Where the source is no member, nothing arrives.
  Stmt permute() const {
    const IndexMap map = source_of(op_, group_.members);
    Facts facts;
    for (size_t a = 0; a < core_.size(); ++a) facts.bind_loop(core_[a], int_imm(0), int_imm(mesh_.extents[a]));
    const Expr source = simplify(substitute(map.value, {{map.var.get(), group_.me}}), facts);
    const Stmt moved = squeezed([&](const auto& from, const auto& to) { return move(source, from, to); });
    const Expr is_member =
        simplify(logical_and(apply(Op::Le, {int_imm(0), source}), less(source, int_imm(group_.members))), facts);
    const int64_t* known = int_value(is_member);
    return known && *known != 0 ? moved : if_then(is_member, moved);
  }

  Stmt all_to_all() const {
    std::vector<Expr> part = src_.shape();
    const size_t dim = *op_.dimension(part.size());
    HELVE_CHECK(part.size() == dst_.shape().size(), "an all-to-all between boxes of other ranks");
    part[dim] = floor_div(part[dim], int_imm(group_.members));
    return over(with_members(part), [&](const Coordinates& at) {
      const Coordinates box(at.begin() + 1, at.end());
      return move(at[0], in_whole(box, dim, false, group_.me, part[dim]), in_whole(box, dim, false, at[0], part[dim]));
    });
  }

  std::vector<Expr> with_members(std::vector<Expr> box) const {
    box.insert(box.begin(), int_imm(group_.members));
    return box;
  }

  Stmt put() const {
    const auto coordinates = [&](std::string_view which) { return op_.exprs(op_.row().index_of(which)); };
    const Coordinates source = coordinates("src_core"), target = coordinates("dst_core");
    const Stmt moved = squeezed([&](const auto& from, const auto& to) {
      std::vector<Stmt> body;
      const Expr value = element_(source, Expr(), region_indices(src_, from), body);
      body.push_back(store(dst_.buffer, region_indices(dst_, to), value));
      return seq(std::move(body));
    });
    return if_then(apply(Op::Eq, {simplify(group_.me), simplify(core_number(target, mesh_))}), moved);
  }

  const TileOp& op_;
  const CoreGroup group_;
  const MeshShape& mesh_;
  const std::vector<VarRef>& core_;
  const ThreadLoop& loop_;
  const MemberElement& element_;
  const Region &src_, &dst_;
};

}  // namespace

Stmt exchange(const TileOp& op, const MeshShape& mesh, const std::vector<VarRef>& core, const ThreadLoop& loop,
              const MemberElement& element) {
  return Exchange(op, mesh, core, loop, element).loop();
}

}  // namespace helve
