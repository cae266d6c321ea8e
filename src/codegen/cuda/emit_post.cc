// Small collectives of a cluster, by post: every core sends its elements to every member of its group, and waits until
// as much has arrived in its own box.
// Nobody waits for a cluster's barrier, which would wait for all stores to global memory as well. A box has two turns:
// a core that has received turn t + 1 of all members knows that they have read turn t, so it may post turn t + 2 over
// it. That needs posts from all members in every turn: gathers and reductions of all are posted, nothing else.
// What was posted is collected where it is first needed: the statements up to there run while it is on its way. The
// block meets before it posts, which is all the order that those statements were promised against what stands before
// the collective.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr int64_t kBoxBytes = 8192;      // of both turns: more is read in place
constexpr int64_t kArrivalBytes = 16;

std::string axis_name(const TileOp& s) { return s.axis() ? *s.axis() : "all"; }

/// The elements of a source that lies whole in block memory, in words that can be posted.
std::optional<int64_t> posted_bytes(const TileOp& s) {
  if (s.op != TileOpcode::CommAllGather && s.op != TileOpcode::CommAllReduce) return std::nullopt;
  const Region& source = s.region(0);
  const int64_t element = source.buffer->dtype.bytes();
  const std::optional<std::vector<int64_t>> shape = constant_shape(source.buffer->shape);
  if (source.buffer->scope != MemoryScope::Shared || !source.whole() || !shape) return std::nullopt;
  if (element != 4 && element != 8) return std::nullopt;
  int64_t bytes = element;
  for (int64_t extent : *shape) bytes *= extent;
  return bytes;
}

/// Does a statement need what the collective brings, write what it sends, or meet other cores itself?
bool needs_collected(const Stmt& s, const TileOp& collective) {
  if (has_collective(s)) return true;
  const std::vector<BufferEffect> effects = buffer_effects(s);
  return std::any_of(effects.begin(), effects.end(), [&](const BufferEffect& effect) {
    return effect.buffer == collective.region(1).buffer ||
           (effect.written && effect.buffer == collective.region(0).buffer);
  });
}

}  // namespace

void KernelEmitter::find_post(const TileOp& s, const CoreGroup& group) {
  const std::optional<int64_t> bytes = posted_bytes(s);
  if (!bytes || *bytes == 0 || group.members == 1 || 2 * group.members * *bytes > kBoxBytes) return;
  PostBox& box = boxes_[axis_name(s)];
  box.members = group.members;
  box.bytes = std::max(box.bytes, (*bytes + 7) / 8 * 8);
  posted_.insert(&s);
  for (const Expr& used : {group.me, group.first}) find_uses(helve::bind(make_var("core"), used));
}

const KernelEmitter::PostBox* KernelEmitter::post_box(const TileOp& s) const {
  return posted_.contains(&s) ? &boxes_.at(axis_name(s)) : nullptr;
}

/// The boxes are open in every block of the cluster before anybody posts.
void KernelEmitter::begin_posts() {
  if (boxes_.empty()) return;
  need("post");
  need("cluster_sync");
  for (auto& [axis, box] : boxes_) {
    box.arrivals = names_.fresh("arrivals_" + axis);
    box.slots = names_.fresh("slots_" + axis);
    box.turn = names_.fresh("turn_" + axis);
    const int64_t begin = kernel_.shared_bytes, bytes = kArrivalBytes + 2 * box.members * box.bytes;
    kernel_.shared_bytes += (bytes + kSharedAlignment - 1) / kSharedAlignment * kSharedAlignment;
    line(fmt::format("unsigned long long* const {} = (unsigned long long*)(helve_shared + {});", box.arrivals, begin));
    line(fmt::format("unsigned char* const {} = helve_shared + {};", box.slots, begin + kArrivalBytes));
    line(fmt::format("unsigned {} = 0;", box.turn));
    line(fmt::format("helve_open({}, 2);", box.arrivals));
  }
  line("helve_cluster_sync();");
}

std::string KernelEmitter::slot_of(const PostBox& box, const std::string& member, const std::string& type) const {
  return fmt::format("({}*)({} + (({} & 1) * {} + {}) * {})", type, box.slots, box.turn, box.members, member,
                     box.bytes);
}

/// Where the element with the number `item`, row by row, lies.
Expr KernelEmitter::element_address(const Buffer& buffer, const Expr& item) const {
  if (!buffer.layout) return item;
  std::vector<Expr> indices(buffer.rank());
  int64_t below = 1;
  for (size_t d = buffer.rank(); d-- > 0;) {
    const int64_t extent = *int_value(buffer.shape[d]);
    indices[d] = simplify(floor_mod(floor_div(item, int_imm(below)), int_imm(extent)), facts_);
    below *= extent;
  }
  return address_of(buffer, indices, facts_).swizzled();
}

void KernelEmitter::post(const TileOp& s, const PostBox& box) {
  const CoreGroup group = group_of(s, *source_.mesh, source_.stmt->vars, span_);
  const Buffer& source = *s.region(0).buffer;
  const int64_t bytes = *posted_bytes(s), count = bytes / source.dtype.bytes();
  const std::string type = element_type(source);
  fence();
  line("__syncthreads();", s.span);  // the source is written
  const VarRef member = make_var("member");
  const int64_t posts = box.members * count;
  const VarRef number = make_var("at");
  const bool once = posts <= kernel_.threads;
  const std::string at = once ? "tx" : names_.fresh("at");
  const std::string head = once ? fmt::format("if (tx < {})", posts)
                                : fmt::format("for (int {0} = tx; {0} < {1}; {0} += {2})", at, posts, kernel_.threads);
  block(head, s.span, [&] {
    names_.alias(number.get(), at);
    wide_[number.get()] = false;
    facts_.bind_loop(number, int_imm(0), int_imm(posts));
    const Expr item = simplify(floor_mod(Expr(number), int_imm(count)), facts_);
    names_.alias(member.get(), count == 1 ? at : names_.fresh("member"));
    wide_[member.get()] = false;
    if (count > 1) line(fmt::format("const int {} = {} / {};", names_.of(member.get(), "member"), at, count));
    const Expr core = simplify(group.number(Expr(member)), facts_);
    line(fmt::format("helve_post({} + {}, {}[{}], {}, {} + ({} & 1));",
                     slot_of(box, text(group.me, c::precedence_of("+") + 1), type),
                     text(item, c::precedence_of("+") + 1), names_.of(&source, source.name),
                     text(element_address(source, item)), text(core), box.arrivals, box.turn));
  });
}

void KernelEmitter::collect(const TileOp& s, const PostBox& box) {
  line(fmt::format("helve_collect({}, {}, {});", box.arrivals, box.turn, box.members * *posted_bytes(s)), s.span);
  stmt(exchanges_.at(&s));
  line(fmt::format("++{};", box.turn));
  line("__syncthreads();");
}

void KernelEmitter::seq(const Seq& s) {
  const TileOp* posted = nullptr;
  const auto collect_posted = [&] {
    if (posted) collect(*posted, *post_box(*posted));
    posted = nullptr;
  };
  for (const Stmt& each : s.stmts) {
    if (posted && needs_collected(each, *posted)) collect_posted();
    const TileOp* op = as<TileOp>(each);
    const PostBox* box = op ? post_box(*op) : nullptr;
    if (!box) {
      stmt(each);
      continue;
    }
    post(*op, *box);
    posted = op;
  }
  collect_posted();
}

}  // namespace helve::cuda
