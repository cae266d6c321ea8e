// A mesh kernel with collectives becomes kernels and collectives of the host body.
// Input: a mesh function whose kernel contains collectives. Output: kernels without collectives; the collectives are in
// the host body between them, on global buffers (one instance per core) that hold the values that cross.
// Before:  with T.Kernel(R, C) as (r, c): for b in T.Persistent([n]): f(part); T.comm.all_gather(part, parts); g(parts)
// After:   part_home, parts_home = T.alloc_global(...)
//          for b in T.serial(n):
//              with T.Kernel(R, C) as (r, c): f(part); T.copy(part, part_home)
//              T.comm.all_gather(part_home, parts_home)
//              with T.Kernel(R, C) as (r, c): T.copy(parts_home, parts); g(parts)
// Every core runs the host body of a mesh function: it launches its own block and enters the collectives of its groups.
// So control flow around a collective moves there unchanged; cores may diverge in it, and reconverge at its end, as in
// the kernel. A condition or bound that depends on memory or on the core's coordinates is stored by a kernel to a
// global buffer of one element, its control, which the host body reads: the value is the one that the kernel would have
// used. If it is the same for all iterations of a Persistent loop, it is stored before the loop.
// On a target whose cores can synchronize inside a kernel, only two kinds of kernels are split: those with such control
// flow around a collective, unless it depends only on coordinates that are the same for all cores that wait for each
// other, and those that the host body may launch on some of the cores only. There, members of a group that diverge
// would wait for each other forever; the host body detects them. With a chunk of k iterations the kernels loop over k
// and one collective serves all of them, on homes with a leading dimension k, of which it moves what the round's
// iterations wrote; where no number is given, k is all iterations whose homes fit kChunkBytes. Every core executes the
// same statements in the same order as before; iterations of a Persistent loop are independent, so a chunk may
// interleave them. A part saves only what a later part needs and restores only what it needs itself; a buffer lives for
// one iteration of the loops around its allocation.
#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "helve/analysis/core_groups.h"
#include "helve/analysis/effects.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"
#include "kernel_parts.h"

namespace helve {

namespace {

/// What the homes of a kernel take of a device's memory where the pass chooses how many iterations share a collective.
constexpr int64_t kChunkBytes = int64_t{1} << 28;
/// Iterations that share one where their number is known at the call alone.
constexpr int64_t kOpenChunk = 1024;

/// Where a crossing buffer is kept between parts. Contents never pass from outside a Persistent loop to its iterations.
using HomeKey = std::pair<const Buffer*, const Part*>;

/// Iterations of the Persistent loop that one round of the host loop serves.
struct Chunk {
  int64_t size = 1;
  Expr start;  ///< first iteration of the round
  Expr count;  ///< iterations in this round, at most `size`
};

class Splitter {
 public:
  Splitter(const Kernel& kernel, const std::unordered_set<const Buffer*>& written, const PassOptions& options)
      : kernel_(kernel), options_(options), parts_(parts_of(kernel, written)) {
    find_demands();
  }

  /// May cores that wait for each other disagree about the collectives that they execute?
  bool may_part(const MeshShape& mesh) const {
    if (parts_.memory_decides) return true;
    const size_t first = span_of_collectives(kernel_, mesh).axis;
    return std::any_of(kernel_.vars.begin() + static_cast<std::ptrdiff_t>(first), kernel_.vars.end(),
                       [&](const VarRef& var) { return parts_.deciding.contains(var.get()); });
  }

  Stmt run() {
    std::vector<Stmt> body = emit(parts_.parts, nullptr, nullptr);
    std::vector<Stmt> out;
    for (const BufferRef& control : parts_.controls) out.push_back(alloc(control, control->span));
    for (const BufferRef& home : home_order_) out.push_back(alloc(home, home->span));
    out.insert(out.end(), body.begin(), body.end());
    return seq(std::move(out), kernel_.span);
  }

 private:
  bool is_split_buffer(const Buffer* b) const {
    return std::any_of(parts_.buffers.begin(), parts_.buffers.end(), [&](const BufferRef& x) { return x.get() == b; });
  }

  /// May a value that `from` leaves in `b` reach `to`? Each iteration of a loop around the allocation has its own `b`.
  bool reaches(const Part& from, const Part& to, const Buffer* b) const {
    if (from.persistent != to.persistent) return false;
    if (to.position > from.position) return true;
    const auto depth = parts_.depths.find(b);
    const size_t outside = depth == parts_.depths.end() ? 0 : std::min(depth->second, from.loops.size());
    return std::any_of(
        from.loops.begin() + static_cast<std::ptrdiff_t>(outside), from.loops.end(),
        [&](const Part* loop) { return std::find(to.loops.begin(), to.loops.end(), loop) != to.loops.end(); });
  }

  /// Is a value that `from` leaves in `b` needed later?
  bool is_wanted(const Part& from, const Buffer* b) const {
    return std::any_of(parts_.leaves.begin(), parts_.leaves.end(),
                       [&](const Part* to) { return demands_.contains({to, b}) && reaches(from, *to, b); });
  }

  /// A leaf demands the contents of what it reads first, and of what it writes in part and leaves to a leaf that
  /// demands it. Demands propagate against the flow of values to a fixed point.
  void find_demands() {
    for (const Part* leaf : parts_.leaves) {
      for (const Buffer* b : leaf->touch.exposed) demands_.insert({leaf, b});
    }
    for (bool added = true; added;) {
      added = false;
      for (const Part* leaf : parts_.leaves) {
        for (const Buffer* b : leaf->touch.written) {
          if (!leaf->touch.whole.contains(b) && is_wanted(*leaf, b)) added |= demands_.insert({leaf, b}).second;
        }
      }
    }
  }

  bool must_restore(const Part& segment, const Buffer* b) const {
    if (!demands_.contains({&segment, b})) return false;
    return std::any_of(parts_.leaves.begin(), parts_.leaves.end(), [&](const Part* other) {
      return other->touch.written.contains(b) && reaches(*other, segment, b);
    });
  }
  bool must_save(const Part& segment, const Buffer* b) const {
    return segment.touch.written.contains(b) && is_wanted(segment, b);
  }

  BufferRef home_of(const Buffer* b, const Part* persistent, const Chunk* chunk) {
    auto [it, fresh] = homes_.try_emplace(HomeKey{b, persistent});
    if (fresh) {
      std::vector<Expr> shape = b->shape;
      if (chunk && chunk->size > 1) shape.insert(shape.begin(), int_imm(chunk->size));
      it->second = make_buffer(b->name + "_home", b->dtype, MemoryScope::Global, std::move(shape), {}, {}, b->span);
      home_order_.push_back(it->second);
    }
    return it->second;
  }

  std::vector<Stmt> emit(const std::vector<Part>& parts, const Part* persistent, const Chunk* chunk) {
    std::vector<Stmt> out;
    for (const Part& part : parts) {
      switch (part.kind) {
        case Part::Kind::Segment: out.push_back(emit_segment(part, persistent, chunk)); break;
        case Part::Kind::Collective: out.push_back(emit_collective(part, persistent, chunk)); break;
        case Part::Kind::Loop: out.push_back(emit_loop(part, persistent, chunk)); break;
        case Part::Kind::Branch: {
          const If& branch = *as<If>(part.node);
          Stmt yes = seq(emit(part.body, persistent, chunk));
          Stmt no = branch.else_body ? seq(emit(part.otherwise, persistent, chunk)) : Stmt();
          out.push_back(if_then(branch.condition, yes, no, part.node->span));
          break;
        }
      }
    }
    return out;
  }

  Stmt emit_loop(const Part& part, const Part* persistent, const Chunk* chunk) {
    if (const While* loop = as<While>(part.node)) {
      return while_loop(loop->condition, seq(emit(part.body, persistent, chunk)), part.node->span);
    }
    const For& loop = *part.loop();
    if (part.is_persistent()) return emit_persistent(part);
    return serial_nest(loop, seq(emit(part.body, persistent, chunk)));
  }

  /// Do expressions of the host body below `parts` use `var`? Then its iterations cannot share a collective.
  static bool host_uses(const std::vector<Part>& parts, const Var* var) {
    return std::any_of(parts.begin(), parts.end(), [&](const Part& part) {
      if (part.kind == Part::Kind::Segment) return false;
      bool uses = false;
      for_each_part(part.node, [&](const Expr& e) { uses |= mentions(e, var); }, [](const Stmt&) {});
      return uses || host_uses(part.body, var) || host_uses(part.otherwise, var);
    });
  }

  /// Does the part's control flow read a control whose value may differ between iterations?
  bool reads_control(const Part& part) const {
    bool reads = false;
    const auto look = [&](const Expr& node) {
      const Load* load = as<Load>(node);
      reads |= load && !parts_.lasting.contains(&buffer_of(load->buffer));
    };
    if (part.kind == Part::Kind::Loop || part.kind == Part::Kind::Branch) {
      for_each_part(part.node, [&](const Expr& e) { walk(e, look); }, [](const Stmt&) {});
    }
    return reads;
  }

  /// Can one collective serve several iterations? All its operands must have a home, which gets a dimension for the
  /// iterations, or be the same for all of them.
  bool shares_collectives(const std::vector<Part>& parts) const {
    return std::all_of(parts.begin(), parts.end(), [&](const Part& part) {
      if (part.is_persistent() || reads_control(part)) return false;
      if (part.kind != Part::Kind::Collective)
        return shares_collectives(part.body) && shares_collectives(part.otherwise);
      return std::all_of(part.touch.used.begin(), part.touch.used.end(),
                         [&](const Buffer* b) { return is_split_buffer(b) || parts_.lasting.contains(b); });
    });
  }

  /// The iterations of a loop over constant extents.
  static std::optional<int64_t> iterations_of(const For& loop) {
    int64_t out = 1;
    for (const Expr& extent : loop.extents) {
      const int64_t* value = int_value(extent);
      if (!value || __builtin_mul_overflow(out, std::max<int64_t>(*value, 0), &out)) return std::nullopt;
    }
    return out;
  }

  /// The iterations whose homes fit kChunkBytes, of at most `most`, in rounds of about equal length.
  int64_t chunk_that_fits(int64_t most) const {
    int64_t bytes = 0;  // of one iteration, of buffers whose extents are known
    for (const BufferRef& b : parts_.buffers) {
      const std::optional<std::vector<int64_t>> shape = constant_shape(b->shape);
      if (!shape) continue;
      int64_t elements = 1;
      for (int64_t extent : *shape) elements *= extent;
      bytes += elements * b->dtype.bits / 8;
    }
    const int64_t fits = std::max<int64_t>(1, kChunkBytes / std::max<int64_t>(bytes, 1));
    const int64_t rounds = (most + fits - 1) / fits;
    return rounds == 0 ? 1 : (most + rounds - 1) / rounds;
  }

  /// If the number of iterations depends on memory, they cannot share collectives: the host cannot tell a collective
  /// how many to serve.
  Stmt emit_persistent(const Part& part) {
    const For& loop = *part.loop();
    const std::optional<int64_t> known = iterations_of(loop);
    int64_t size =
        options_.persistent_chunk > 0 ? options_.persistent_chunk : chunk_that_fits(known.value_or(kOpenChunk));
    if (known) size = std::min(size, *known);
    const bool is_open =
        std::any_of(loop.extents.begin(), loop.extents.end(), [](const Expr& e) { return has_load(e); });
    const bool decides = std::any_of(loop.vars.begin(), loop.vars.end(),
                                     [&](const VarRef& var) { return host_uses(part.body, var.get()); });
    const bool chunked = size > 1 && !loop.scheduled && !is_open && shares_collectives(part.body) && !decides;
    if (!chunked) return serial_nest(loop, seq(emit(part.body, &part, nullptr)));
    VarRef round = make_var(loop.vars[0]->name + "_round");
    Expr iterations = known ? int_imm(*known) : loop.extents[0];
    for (size_t d = 1; !known && d < loop.extents.size(); ++d) {
      iterations = (d == 1 ? max(int_imm(0), iterations) : iterations) * max(int_imm(0), loop.extents[d]);
    }
    Chunk chunk;
    chunk.size = size;
    chunk.start = Expr(round) * int_imm(chunk.size);
    chunk.count = known && *known % size == 0 ? int_imm(size) : min(int_imm(size), iterations - chunk.start);
    Expr rounds = ceil_div(iterations, int_imm(chunk.size));
    return for_loop(LoopKind::Serial, round, rounds, seq(emit(part.body, &part, &chunk)), part.node->span);
  }

  /// The region of a home that holds one iteration's value of the buffer.
  static Region home_region(const BufferRef& home, const Buffer& b, const Expr& turn) {
    Region region{home, {}};
    if (home->rank() > b.rank()) region.ranges.push_back({turn, int_imm(1), true});
    for (const Expr& extent : b.shape) region.ranges.push_back({int_imm(0), extent, false});
    return region;
  }

  /// Does one of the statements issue asynchronous copies? They must complete within their kernel.
  static bool begins_copies(const std::vector<Stmt>& stmts) {
    return std::any_of(stmts.begin(), stmts.end(), [](const Stmt& s) {
      return has_operation(s, [](const TileOp& op) { return op.begins_copy(); });
    });
  }

  /// The mbarriers that the part uses. Each kernel has its own, which count its own copies.
  static std::vector<Region> mbarriers_of(const Part& part) {
    std::vector<Region> out;
    for (const Stmt& s : part.stmts) {
      walk(s, [&](const Stmt& inner) {
        const TileOp* op = as<TileOp>(inner);
        const Region* barriers = op ? op->barriers() : nullptr;
        const auto is_same = [&](const Region& other) { return other.buffer == barriers->buffer; };
        if (barriers && std::none_of(out.begin(), out.end(), is_same)) out.push_back(*barriers);
      });
    }
    return out;
  }
  static bool initializes(const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    return op && op->op == TileOpcode::MbarrierInit;
  }

  /// Waits until the copies have completed that the part counts in mbarriers, or in groups.
  void wait_for_copies(const Part& part, const std::vector<Region>& mbarriers, std::vector<Stmt>& body) const {
    if (!begins_copies(part.stmts)) return;
    for (const Region& each : mbarriers) {
      const CopyQueue queue{CopyQueue::Kind::Barriers, each.buffer.get()};
      const bool counts = std::any_of(part.stmts.begin(), part.stmts.end(), [&](const Stmt& s) {
        return has_operation(s, [&](const TileOp& op) { return op.begins_copy() && copy_queue(op) == queue; });
      });
      if (!counts) continue;
      body.push_back(tile_op(TileOpcode::MbarrierCommit, {each}, kernel_.span));
      body.push_back(tile_op(TileOpcode::MbarrierWait, {each}, kernel_.span));
    }
    body.push_back(tile_op(TileOpcode::WaitAsync, {}, kernel_.span));
  }

  Stmt copied(Region from, Region to) const {
    return tile_op(TileOpcode::Copy, {std::move(from), std::move(to)}, kernel_.span);
  }

  Stmt emit_segment(const Part& part, const Part* persistent, const Chunk* chunk) {
    const bool chunked = chunk && chunk->size > 1;
    VarRef turn = make_var("turn");
    std::vector<Stmt> allocs;
    std::vector<Stmt> restores;
    std::vector<Stmt> saves;
    BufferMap fresh;
    for (const BufferRef& b : parts_.buffers) {
      if (!part.touch.used.contains(b.get())) continue;
      BufferRef own = declare_again(*b);
      fresh.emplace(b.get(), own);
      allocs.push_back(alloc(own, b->span));
      const bool restore = must_restore(part, b.get());
      const bool save = must_save(part, b.get());
      if (!restore && !save) continue;
      const BufferRef home = home_of(b.get(), persistent, chunk);
      if (restore) restores.push_back(copied(home_region(home, *b, Expr(turn)), whole_region(own)));
      if (save) saves.push_back(copied(whole_region(own), home_region(home, *b, Expr(turn))));
    }
    const std::vector<Region> mbarriers = mbarriers_of(part);
    for (const Region& each : mbarriers) {
      allocs.push_back(replace_buffers(tile_op(TileOpcode::MbarrierInit, {each}, kernel_.span), fresh));
    }
    std::vector<Stmt> own;
    for (const Stmt& s : part.stmts) {
      if (!initializes(s)) own.push_back(s);
    }
    wait_for_copies(part, mbarriers, own);
    std::vector<Stmt> body = restores;
    for (const Stmt& s : own) body.push_back(replace_buffers(s, fresh));
    body.insert(body.end(), saves.begin(), saves.end());

    Substitution values;
    std::vector<VarRef> vars;
    for (const VarRef& v : kernel_.vars) {
      vars.push_back(make_var(v->name, v->dtype, v->span));
      values.emplace(v.get(), Expr(vars.back()));
    }
    Stmt inner = seq(std::move(body));
    if (chunked) {
      const For& loop = *persistent->loop();
      const std::vector<Expr> places = unravel(chunk->start + Expr(turn), loop.extents);
      Substitution iteration;
      for (size_t d = 0; d < places.size(); ++d) iteration.emplace(loop.vars[d].get(), loop.begins[d] + places[d]);
      inner = for_loop(LoopKind::Persistent, turn, chunk->count, substitute(inner, iteration), persistent->node->span);
    }
    allocs.push_back(substitute(inner, values));
    return Stmt(copy_with(kernel_, [&](Kernel& out) {
      out.vars = std::move(vars);
      out.body = seq(std::move(allocs));
    }));
  }

  /// A dimension of the operand, counted after the leading dimension of a chunk.
  static int64_t shifted(int64_t dim) { return dim < 0 ? dim : dim + 1; }

  Stmt emit_collective(const Part& part, const Part* persistent, const Chunk* chunk) {
    Ref<TileOp> op = make_ref<TileOp>(*as<TileOp>(part.node));
    const bool chunked = chunk && chunk->size > 1;
    for (size_t i = 0; i < op->operands.size(); ++i) {
      if (Region* region = std::get_if<Region>(&op->operands[i])) {
        if (!is_split_buffer(region->buffer.get())) continue;
        region->buffer = home_of(region->buffer.get(), persistent, chunk);
        if (chunked) region->ranges.insert(region->ranges.begin(), {int_imm(0), chunk->count, false});
      } else if (chunked && i == op->dim_position()) {
        op->operands[i] = shifted(op->integer(i));
      }
    }
    return Stmt(op);
  }

  const Kernel& kernel_;
  const PassOptions& options_;
  KernelParts parts_;
  std::set<std::pair<const Part*, const Buffer*>> demands_;
  std::map<HomeKey, BufferRef> homes_;
  std::vector<BufferRef> home_order_;
};

/// The kernels below control flow of the host body that reads memory: some of the cores may run them.
std::unordered_set<const Kernel*> kernels_of_parted_cores(const Stmt& body) {
  std::unordered_set<const Kernel*> out;
  walk(body, [&](const Stmt& s) {
    if (!as<If>(s) && !as<For>(s) && !as<While>(s)) return;
    bool reads = false;
    for_each_part(s, [&](const Expr& e) { reads |= has_load(e); }, [](const Stmt&) {});
    if (!reads) return;
    walk(s, [&](const Stmt& inner) {
      if (const Kernel* k = as<Kernel>(inner)) out.insert(k);
    });
  });
  return out;
}

}  // namespace

FunctionRef split_mesh_kernels(const FunctionRef& f, const PassOptions& options) {
  if (!f->mesh) return f;
  const std::unordered_set<const Kernel*> apart = kernels_of_parted_cores(f->body);
  const std::unordered_set<const Buffer*> written = written_memory(*f);
  return with_body(
      f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
        const Kernel* k = as<Kernel>(s);
        if (!k || !has_collective(k->body)) return s;
        Splitter splitter(*k, written, options);
        return options.cores_synchronize && !splitter.may_part(*f->mesh) && !apart.contains(k) ? s : splitter.run();
      }));
}

}  // namespace helve
