// A core's part of a collective, between the barriers of its group.
// Every element of the destination is computed by one thread; its source member, and the place there, are index
// arithmetic. If members have separate parts in the destination, threads of one pass read from several of them.
#include "exchange.h"

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/region.h"
#include "helve/support/diagnostic.h"

namespace helve::cuda {

namespace {

constexpr int64_t kUnrolledMembers = 16;  // the reads of so many are in flight together

using Coordinates = std::vector<Expr>;

bool is_one(const Expr& e) {
  const int64_t* value = int_value(e);
  return value && *value == 1;
}

class Exchange {
 public:
  Exchange(const TileOp& op, const CoreGroup& group, const MeshShape& mesh, int64_t threads, const PeerSource& source)
      : op_(op),
        group_(group),
        mesh_(mesh),
        threads_(threads),
        source_(source),
        src_(op.region(0)),
        dst_(op.region(1)) {}

  Stmt loop() const {
    switch (op_.op) {
      case TileOpcode::CommBroadcast:
        return squeezed([&](const auto& from, const auto& to) { return move(int_imm(op_.root()), from, to); });
      case TileOpcode::CommPermute:
        return squeezed([&](const auto& from, const auto& to) {
          const Expr shift = int_imm(op_.integer(op_.row().index_of("shift")));
          return move(floor_mod(group_.me - shift, int_imm(group_.members)), from, to);
        });
      case TileOpcode::CommPut: return put();
      case TileOpcode::CommAllReduce: return squeezed([&](const auto& from, const auto& to) { return fold(from, to); });
      case TileOpcode::CommAllGather: return gather();
      case TileOpcode::CommReduceScatter: return reduce_scatter();
      case TileOpcode::CommAllToAll: return all_to_all();
      default: HELVE_FAIL("not a collective that moves values: " + std::string(op_.row().name));
    }
  }

 private:
  /// A loop of all threads over the coordinates of a box.
  Stmt over(const std::vector<Expr>& extents, const std::function<Stmt(const Coordinates&)>& body) const {
    Expr count = int_imm(1);
    for (const Expr& e : extents) count = count * e;
    const VarRef tx = make_var("tx"), turn = make_var("turn"), at = make_var("at");
    Facts facts;
    facts.bind_loop(tx, int_imm(0), int_imm(threads_));
    count = simplify(count, facts);
    const int64_t* constant = int_value(count);
    const bool once = constant && *constant <= threads_;
    const Expr place = once ? Expr(tx) : Expr(at);
    Coordinates coordinates(extents.size());
    Expr rest = place;
    for (size_t d = extents.size(); d-- > 0;) {
      coordinates[d] = is_one(extents[d]) ? int_imm(0) : d == 0 ? rest : floor_mod(rest, extents[d]);
      if (d > 0 && !is_one(extents[d])) rest = floor_div(rest, extents[d]);
    }
    Stmt inner = body(coordinates);
    if (!constant || *constant % threads_ != 0) inner = if_then(less(place, count), inner);
    if (!once) {
      inner = seq({bind(at, Expr(turn) * int_imm(threads_) + Expr(tx)), inner});
      inner = for_loop(LoopKind::Serial, turn, simplify(ceil_div(count, int_imm(threads_)), facts), inner);
    }
    return for_loop(LoopKind::Thread, tx, int_imm(threads_), inner, op_.span);
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

  Stmt move(const Expr& member, const Coordinates& from, const Coordinates& to) const {
    std::vector<Stmt> body;
    const BufferRef peer = source_(member, body);
    body.push_back(store(dst_.buffer, region_indices(dst_, to), load(peer, region_indices(src_, from))));
    return seq(std::move(body));
  }

  /// The combination of all members' elements, from the first member on.
  Stmt fold(const Coordinates& from, const Coordinates& to) const {
    const DType dtype = dst_.buffer->dtype, wide = accumulator(dtype);
    const std::optional<ReduceKind> kind = parse_reduce_kind(*op_.combination());
    HELVE_CHECK(kind, "a collective with an unknown reduction");
    const BufferRef sum = make_buffer("sum", wide, MemoryScope::Local, {int_imm(1)});
    const std::vector<Expr> only = {int_imm(0)}, at = region_indices(src_, from);
    std::vector<Stmt> body = {alloc(sum)};
    const BufferRef first = source_(int_imm(0), body);
    body.push_back(store(sum, only, cast(load(first, at), wide)));
    const VarRef member = make_var("member");
    std::vector<Stmt> turn;
    const BufferRef peer = source_(Expr(member), turn);
    turn.push_back(store(sum, only, combine(*kind, load(sum, only), cast(load(peer, at), wide))));
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

  Stmt reduce_scatter() const {
    const std::vector<Expr> part = dst_.shape();
    const size_t rank = src_.shape().size(), dim = *op_.dimension(rank);
    const bool own = rank != part.size();
    return over(part, [&](const Coordinates& at) {
      return fold(in_whole(at, dim, own, group_.me, own ? Expr() : part[dim]), at);
    });
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
    const auto number = [&](std::string_view core) {
      Expr out = int_imm(0);
      const std::vector<Expr>& at = op_.exprs(op_.row().index_of(core));
      for (size_t a = 0; a < at.size(); ++a) out = out * int_imm(mesh_.extents[a]) + at[a];
      return out;
    };
    const Stmt moved = squeezed([&](const auto& from, const auto& to) { return move(number("src_core"), from, to); });
    return if_then(apply(Op::Eq, {group_.me, number("dst_core")}), moved);
  }

  const TileOp& op_;
  const CoreGroup& group_;
  const MeshShape& mesh_;
  const int64_t threads_;
  const PeerSource& source_;
  const Region &src_, &dst_;
};

}  // namespace

Stmt exchange(const TileOp& op, const CoreGroup& group, const MeshShape& mesh, int64_t threads,
              const PeerSource& source) {
  return Exchange(op, group, mesh, threads, source).loop();
}

}  // namespace helve::cuda
