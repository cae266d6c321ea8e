// Collectives.
// A collective sees the cores of one group at once: it gathers from all of them before it stores to any.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "helve/ir/tensor/group_operands.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "tile_op_code.h"

namespace helve::interp {

namespace {

std::vector<View> views(const Operands& op, std::string_view name, const Group& group) {
  std::vector<View> out;
  for (Frame* core : group) out.push_back(op.region(name).view(*core));
  return out;
}

/// The sources of all cores in the evaluation dtype of dst, to be copied; all are read before anything is written.
std::vector<Elements> sources(const Operands& op, const Group& group) {
  const Buffer& dst = op.region("dst").buffer();
  std::vector<Elements> out;
  for (const View& view : views(op, "src", group)) {
    out.push_back(gather_for(dst, view, evaluation_dtype(dst.dtype), op.span));
  }
  return out;
}

Elements sized(int64_t count) { return {std::vector<Scalar>(static_cast<size_t>(count)), {}}; }

template <class Values>
void deliver(const Operands& op, const View& dst, const Values& values) {
  scatter(dst, values, evaluation_dtype(dst.dtype()), op.span);
}

std::vector<int64_t> without_ones(std::vector<int64_t> shape) {
  std::erase(shape, 1);
  return shape;
}

/// Where no dimension is named, those of extent 1 are left aside.
void require_result(const Operands& op, const std::vector<int64_t>& expected, const View& dst) {
  const bool same_rule = op.node->row().rule == TileRule::CommSame || op.node->row().rule == TileRule::CommPut;
  if (same_rule ? without_ones(dst.shape()) == without_ones(expected) : dst.shape() == expected) return;
  throw UserError(Code::CollectiveShape, op.span,
                  {{"operation", op.operation()},
                   {"expected", shape_text(expected)},
                   {"buffer", op.region("dst").buffer().name},
                   {"given", shape_text(dst.shape())}});
}

[[noreturn]] void bad_argument(const Operands& op, const char* param, DiagnosticArg value, std::string reason,
                               std::string remedy) {
  throw UserError(Code::BadArgument, op.node->place(op.row->index_of(param)),
                  {{"function", op.operation()},
                   {"value", std::move(value)},
                   {"parameter", param},
                   {"reason", std::move(reason)},
                   {"remedy", std::move(remedy)}});
}

/// Elements before `dim` and from `dim` on, as counts.
int64_t count_before(const std::vector<int64_t>& shape, size_t dim) {
  return product({shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(dim)});
}

/// The extent of a part when dimension `dim` of src is cut into one part for each core of the group.
int64_t part_extent(const Operands& op, const std::vector<int64_t>& src, size_t dim, size_t parts) {
  const int64_t k = static_cast<int64_t>(parts);
  if (src[dim] % k != 0) {
    bad_argument(op, "dim", static_cast<int64_t>(dim), fmt::format("{} elements are not {} equal parts", src[dim], k),
                 "make the extent a multiple of the number of cores in the group");
  }
  return src[dim] / k;
}

}  // namespace

namespace {

/// What every core of the group computes alike for an operand.
template <class Value, class Text>
Value alike(const Operands& op, const char* param, const Group& group, const MeshShape& mesh,
            const std::function<Value(Frame&)>& value_on, const Text& text) {
  const Value value = value_on(*group.front());
  const auto on = [&](const Value& found, const Frame& core) {
    return fmt::format("{} on core {}", text(found), shape_text(coordinates_of(core.rank, mesh.extents)));
  };
  for (Frame* core : group) {
    const Value other = value_on(*core);
    if (other == value) continue;
    const Span& place = op.node->place(op.row->index_of(param));
    throw UserError(Code::DivergentOperand, place,
                    {{"parameter", std::string(param)},
                     {"operation", op.operation()},
                     {"axis", op.node->axis() ? *op.node->axis() : "all"}},
                    {{{}, fmt::format("it is {} and {}", on(value, *group.front()), on(other, *core))}});
  }
  return value;
}

int64_t index_of_group(const Operands& op, const char* param, const Group& group, const Scope& scope) {
  return alike<int64_t>(
      op, param, group, scope.mesh(), [&](Frame& core) { return op.value(param).eval(core).i; },
      [](int64_t value) { return fmt::format("{}", value); });
}

/// Values of an operand that counts members or cores.
void require_members(const Operands& op, const char* param, const std::vector<int64_t>& values, const Scope& scope) {
  size_t next = 0;
  for (const MemberOperand& each : members_of(*op.node, scope.mesh())) {
    if (each.operand != op.row->index_of(param)) continue;
    const int64_t value = values[next++];
    if (value < 0 || value >= each.count) bad_argument(op, param, value, each.reason, each.remedy);
  }
}

size_t root_of(const Operands& op, const Group& group, const Scope& scope) {
  const int64_t root = index_of_group(op, "root", group, scope);
  require_members(op, "root", {root}, scope);
  return static_cast<size_t>(root);
}

}  // namespace

void run_broadcast(const Operands& op, const Group& group, const Scope& scope) {
  const size_t root = root_of(op, group, scope);
  const Elements src = sources(op, {group[root]}).front();
  const std::vector<int64_t> shape = views(op, "src", group)[root].shape();
  for (const View& dst : views(op, "dst", group)) {
    require_result(op, shape, dst);
    deliver(op, dst, src);
  }
}

namespace {

/// The rank of the core named by a coordinate operand, the same on all cores.
size_t named_core(const Operands& op, const char* param, const Group& group, const Scope& scope) {
  const MeshShape& mesh = scope.mesh();
  const std::vector<int64_t> at = alike<std::vector<int64_t>>(
      op, param, group, mesh, [&](Frame& core) { return eval_all(op.coord(param), core); },
      [](const std::vector<int64_t>& core) { return shape_text(core); });
  require_members(op, param, at, scope);
  return static_cast<size_t>(*rank_of(at, mesh.extents));
}

}  // namespace

void run_put(const Operands& op, const Group& group, const Scope& scope) {
  const Group from = {group[named_core(op, "src_core", group, scope)]};
  const Group to = {group[named_core(op, "dst_core", group, scope)]};
  const Elements values = sources(op, from).front();
  const View dst = views(op, "dst", to).front();
  require_result(op, views(op, "src", from).front().shape(), dst);
  deliver(op, dst, values);
}

namespace {

/// dst is (before, K, after) for src (before, after), whether K is a dimension of its own or part of one.
void gather_to(const Operands& op, const Group& group, const Group& receivers) {
  const int64_t k = static_cast<int64_t>(group.size());
  const std::vector<Elements> src = sources(op, group);
  const std::vector<View> from = views(op, "src", group);
  for (const View& dst : views(op, "dst", receivers)) {
    const std::vector<int64_t> part = from.front().shape();
    const bool own = dst.dims.size() != part.size();
    const size_t dim = dimension_of(op, own ? part.size() + 1 : part.size());
    std::vector<int64_t> expected = part;
    if (own) {
      expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(dim), k);
    } else {
      expected[dim] *= k;
    }
    require_result(op, expected, dst);
    const int64_t before = count_before(part, dim);
    const int64_t after = before == 0 ? 0 : product(part) / before;
    Elements values = sized(before * k * after);
    for (int64_t b = 0; b < before; ++b) {
      for (int64_t core = 0; core < k; ++core) {
        copy_block(src[static_cast<size_t>(core)], b * after, after, values, (b * k + core) * after);
      }
    }
    deliver(op, dst, values);
  }
}

}  // namespace

void run_all_gather(const Operands& op, const Group& group, const Scope&) { gather_to(op, group, group); }

void run_gather(const Operands& op, const Group& group, const Scope& scope) {
  gather_to(op, group, {group[root_of(op, group, scope)]});
}

namespace {

ReduceKind combination(const Operands& op) {
  const std::string& name = *op.node->combination();
  const std::optional<ReduceKind> kind = parse_reduce_kind(name);
  if (!kind) bad_argument(op, "op", "'" + name + "'", "it is no combination", "write sum, prod, max or min");
  return *kind;
}

/// The elementwise combination of all sources in order of the core's index.
std::vector<Scalar> combined(const Operands& op, const Group& group) {
  const Fold fold = fold_of(combination(op), op.region("dst").buffer().dtype, op.span);
  const DType to = evaluation_dtype(op.region("dst").buffer().dtype);
  std::vector<std::vector<Scalar>> src;
  for (const View& view : views(op, "src", group)) src.push_back(gather(view, to, op.span));
  std::vector<Scalar> out = src.front();
  for (size_t core = 1; core < src.size(); ++core) {
    require_shape(src[core].size() == out.size(), op, "the sources", {static_cast<int64_t>(out.size())},
                  {static_cast<int64_t>(src[core].size())});
    for (size_t i = 0; i < out.size(); ++i) out[i] = fold(out[i], src[core][i]);
  }
  return out;
}

void reduce_to(const Operands& op, const Group& group, const Group& receivers) {
  const std::vector<Scalar> values = combined(op, group);
  const std::vector<int64_t> shape = views(op, "src", group).front().shape();
  for (const View& dst : views(op, "dst", receivers)) {
    require_result(op, shape, dst);
    deliver(op, dst, values);
  }
}

/// Each core gets its part of `whole`, which is (before, K, after) for dst (before, after).
void deal(const Operands& op, const Group& group, const Elements& values, const std::vector<int64_t>& whole) {
  const int64_t k = static_cast<int64_t>(group.size());
  const std::vector<View> to = views(op, "dst", group);
  const size_t dim = dimension_of(op, whole.size());
  for (int64_t core = 0; core < k; ++core) {
    const View& dst = to[static_cast<size_t>(core)];
    std::vector<int64_t> expected = whole;
    if (dst.dims.size() + 1 == whole.size() && whole[dim] == k) {
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(dim));
    } else {
      expected[dim] = part_extent(op, whole, dim, group.size());
    }
    require_result(op, expected, dst);
    const int64_t before = count_before(whole, dim);
    const int64_t after = before == 0 ? 0 : product(expected) / before;
    Elements part = sized(before * after);
    for (int64_t b = 0; b < before; ++b) copy_block(values, (b * k + core) * after, after, part, b * after);
    deliver(op, dst, part);
  }
}

}  // namespace

void run_all_reduce(const Operands& op, const Group& group, const Scope&) { reduce_to(op, group, group); }

void run_reduce(const Operands& op, const Group& group, const Scope& scope) {
  reduce_to(op, group, {group[root_of(op, group, scope)]});
}

void run_reduce_scatter(const Operands& op, const Group& group, const Scope&) {
  deal(op, group, {combined(op, group), {}}, views(op, "src", group).front().shape());
}

void run_scatter(const Operands& op, const Group& group, const Scope& scope) {
  const Group root = {group[root_of(op, group, scope)]};
  deal(op, group, sources(op, root).front(), views(op, "src", root).front().shape());
}

void run_all_to_all(const Operands& op, const Group& group, const Scope&) {
  const int64_t k = static_cast<int64_t>(group.size());
  const std::vector<Elements> src = sources(op, group);
  const std::vector<int64_t> shape = views(op, "src", group).front().shape();
  const std::vector<View> to = views(op, "dst", group);
  const size_t dim = dimension_of(op, shape.size());
  part_extent(op, shape, dim, group.size());
  const int64_t before = count_before(shape, dim);
  const int64_t after = before == 0 ? 0 : product(shape) / before / k;
  for (int64_t receiver = 0; receiver < k; ++receiver) {
    const View& dst = to[static_cast<size_t>(receiver)];
    require_result(op, shape, dst);
    Elements values = sized(before * k * after);
    for (int64_t b = 0; b < before; ++b) {
      for (int64_t sender = 0; sender < k; ++sender) {
        const int64_t at = (b * k + receiver) * after;
        copy_block(src[static_cast<size_t>(sender)], at, after, values, (b * k + sender) * after);
      }
    }
    deliver(op, dst, values);
  }
}

void run_permute(const Operands& op, const Group& group, const Scope& scope) {
  const int64_t k = static_cast<int64_t>(group.size());
  const std::optional<MapCode>& map = op.map("source");
  const int64_t shift = index_of_group(op, "shift", group, scope);
  const auto source_of = [&](int64_t member) {
    if (!map) return (member - (shift % k + k) % k + k) % k;
    return alike<int64_t>(
        op, "source", group, scope.mesh(), [&](Frame& core) { return map->eval(core, member); },
        [&](int64_t value) { return fmt::format("{} for core {} of the group", value, member); });
  };
  std::vector<int64_t> source_by_core;  // before dst is written, which the map may read
  for (int64_t core = 0; core < k; ++core) source_by_core.push_back(source_of(core));
  const std::vector<Elements> src = sources(op, group);
  const std::vector<View> from = views(op, "src", group);
  const std::vector<View> to = views(op, "dst", group);
  for (int64_t core = 0; core < k; ++core) {
    const int64_t source = source_by_core[static_cast<size_t>(core)];
    if (source < 0 || source >= k) continue;
    const View& dst = to[static_cast<size_t>(core)];
    require_result(op, from[static_cast<size_t>(source)].shape(), dst);
    deliver(op, dst, src[static_cast<size_t>(source)]);
  }
}

/// Lockstep is the barrier.
void run_barrier(const Operands&, const Group&, const Scope&) {}

namespace {

class CollectiveCode final : public StmtCode {
 public:
  CollectiveCode(const TileOp& node, Scope& scope, CollectiveFunction function, bool synchronises)
      : scope_(scope),
        operands_(node, scope),
        function_(function),
        synchronises_(synchronises),
        axis_(node.axis() ? *node.axis() : "all") {
    group_of(scope.mesh(), axis_, 0, node.span);
    add_sync({operands_.operation(), axis_, node.span});
  }
  void run(Frame&) const override { HELVE_FAIL("a core entered a collective on its own"); }

 protected:
  void run_lockstep(const CoreSet& cores) const override {
    std::vector<int64_t> ids;
    for (Frame* core : cores) ids.push_back(group_of(scope_.mesh(), axis_, core->rank, operands_.span));
    for (const CoreSet& group : partition(cores, ids)) {
      HELVE_CHECK(static_cast<int64_t>(group.size()) == group_size(scope_.mesh(), *axes_named(scope_.mesh(), axis_)),
                  "a part of a group entered a collective");
      if (synchronises_) synchronise(group);
      function_(operands_, group, scope_);
      if (synchronises_) synchronise(group);
    }
  }

 private:
  const Scope& scope_;
  Operands operands_;
  CollectiveFunction function_;
  bool synchronises_;
  std::string axis_;
};

}  // namespace

void require_mesh(const TileOp& s, const Scope& scope) {
  if (scope.has_mesh()) return;
  throw UserError(Code::CollectiveWithoutMesh, s.span, {{"operation", operation_text(s)}});
}

StmtCodeRef prepare_collective(const TileOp& s, Scope& scope, CollectiveFunction function, bool synchronises) {
  require_mesh(s, scope);
  return std::make_unique<CollectiveCode>(s, scope, function, synchronises);
}

}  // namespace helve::interp
