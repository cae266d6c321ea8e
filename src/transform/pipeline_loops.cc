// Copies of pipelined loops are issued iterations before they are used.
// Input: kernels with tile operations, whose shared memory has no tiles. Output: T.Pipelined loops whose copies can be
// issued early become serial ones with asynchronous copies; other loops are unchanged.
// Before:  for k in T.Pipelined(n, num_stages=3):
//              T.copy(A[k, :], X)
//              ... X[i] ...
// After:   for ahead in T.serial(T.min(2, n)):
//              T.copy_async(A[ahead, :], X[ahead, :])
//          for k in T.serial(n):
//              if k + 1 < n:
//                  T.wait_async(pending=1)
//              else:
//                  T.wait_async()
//              T.sync_threads()
//              if k + 2 < n:
//                  T.copy_async(A[k + 2, :], X[(k + 2) % 3, :])
//              ... X[k % 3, i] ...
// Every iteration reads the same data as before, and no copy is in flight after the loop. The barrier has two purposes:
// after it every thread sees this iteration's copies, and has finished with the stage that is filled next.
// Where a statement becomes a product that runs while the program goes on (T.wgmma), the next copies are issued behind
// the first of these: the stage that they fill is that of the product before, so that one of the two is always running.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "helve/analysis/early_copies.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"
#include "stage_memory.h"

namespace helve {

namespace {

/// The loop with its copies issued ahead.
class Pipeline {
 public:
  /// `product`: the position of the first statement that goes on while later ones run, if there is one.
  Pipeline(const For& loop, std::vector<EarlyCopy> copies, std::optional<size_t> product)
      : loop_(loop), copies_(std::move(copies)), product_(product) {
    for (const EarlyCopy& copy : copies_) {
      const BufferRef& buffer = copy.op->region(1).buffer;
      stages_.emplace(buffer.get(), in_stages(*buffer, loop.num_stages));
    }
  }

  const BufferMap& stages() const { return stages_; }

  Stmt run() {
    std::vector<Stmt> out;
    const Expr begin = at_entry(loop_.begins[0], "first", &out);
    const Expr count = at_entry(loop_.extents[0], "count", &out);
    const VarRef& var = loop_.vars[0];
    const Expr turn = simplify(Expr(var) - begin);
    const int64_t stages = loop_.num_stages;
    const VarRef ahead = make_var("ahead");
    out.push_back(for_loop(LoopKind::Serial, ahead, simplify(min(int_imm(stages - 1), count)),
                           begun(simplify(begin + Expr(ahead)), Expr(ahead)), loop_.span));
    std::vector<Stmt> body = {waited(turn, count), tile_op(TileOpcode::SyncThreads, {}, loop_.span)};
    const Expr later = int_imm(stages - 1);
    const Stmt refill =
        if_then(simplify(less(turn + later, count)),
                begun(Expr(var) + later, simplify(floor_mod(turn + later, int_imm(stages)))), {}, loop_.span);
    if (!product_) body.push_back(refill);
    const std::vector<Stmt> statements = statements_of(loop_.body);
    for (size_t i = 0; i < statements.size(); ++i) {
      const bool early =
          std::any_of(copies_.begin(), copies_.end(), [&](const EarlyCopy& c) { return c.position == i; });
      if (!early) body.push_back(staged(statements[i], simplify(floor_mod(turn, int_imm(stages)))));
      if (product_ == i) body.push_back(refill);
    }
    out.push_back(
        for_loop(LoopKind::Serial, {var}, {begin}, {count}, seq(std::move(body)), 1, loop_.span, loop_.scheduled));
    return seq(std::move(out), loop_.span);
  }

 private:
  /// A bound has its value at the loop's entry, whatever the body writes.
  static Expr at_entry(const Expr& e, const char* name, std::vector<Stmt>* out) {
    if (!has_load(e)) return e;
    const VarRef var = make_var(name);
    out->push_back(bind(var, e));
    return Expr(var);
  }

  /// The copies of iteration `value` into `stage`.
  Stmt begun(const Expr& value, const Expr& stage) const {
    std::vector<Stmt> out;
    for (const EarlyCopy& copy : copies_) {
      const Stmt here = substitute(Stmt(copy.op), {{loop_.vars[0].get(), value}});
      std::vector<TileOperand> operands = as<TileOp>(here)->operands;
      operands[1] = staged(std::get<Region>(operands[1]), stage);
      out.push_back(tile_op(TileOpcode::CopyAsync, std::move(operands), copy.op->span, copy.op->places));
    }
    return seq(std::move(out));
  }

  /// Waits for this iteration's copies; those of the following iterations stay in flight, if there are that many.
  Stmt waited(const Expr& turn, const Expr& count) const {
    const auto wait = [&](int64_t pending) { return tile_op(TileOpcode::WaitAsync, {pending}, loop_.span); };
    const int64_t younger = loop_.num_stages - 2;
    if (younger == 0) return wait(0);
    const Expr full = simplify(less(turn + int_imm(younger), count));
    return if_then(full, wait(younger * static_cast<int64_t>(copies_.size())), wait(0), loop_.span);
  }

  Region staged(Region region, const Expr& stage) const {
    const auto found = stages_.find(region.buffer.get());
    if (found == stages_.end()) return region;
    region.buffer = found->second;
    region.ranges.insert(region.ranges.begin(), {stage, int_imm(1), true});
    return region;
  }

  static std::vector<Expr> at(const Expr& stage, const std::vector<Expr>& indices) {
    std::vector<Expr> out = {stage};
    out.insert(out.end(), indices.begin(), indices.end());
    return out;
  }

  /// The statement with memory of one stage.
  Stmt staged(const Stmt& s, const Expr& stage) const {
    const auto statement = [&](const Stmt& each) -> Stmt {
      const TileOp* op = as<TileOp>(each);
      if (!op) return each;
      Ref<TileOp> out = make_ref<TileOp>(*op);
      bool changed = false;
      for (TileOperand& operand : out->operands) {
        Region* region = std::get_if<Region>(&operand);
        if (!region || !stages_.contains(region->buffer.get())) continue;
        *region = staged(*region, stage);
        changed = true;
      }
      return changed ? Stmt(out) : each;
    };
    const auto element = [&](const Expr& e) -> Expr {
      const Load* l = as<Load>(e);
      const auto found = l ? stages_.find(&buffer_of(l->buffer)) : stages_.end();
      return found == stages_.end() ? e : load(found->second, at(stage, l->indices), l->span);
    };
    return rewrite(s, statement, [&](const Expr& e) { return rewrite(e, element); });
  }

  const For& loop_;
  std::vector<EarlyCopy> copies_;
  std::optional<size_t> product_;
  BufferMap stages_;
};

constexpr const char* kNoCopies = "no T.copy from a global tensor to shared memory stands at the top level of its body";

class Pipelines final : public ScopedRewriter {
 public:
  Pipelines(const Function& f, const PassOptions& options) : ScopedRewriter(f), function_(f), options_(options) {}

  /// The function's body; the memory of its pipelined loops is allocated with stages.
  Stmt run() {
    const Stmt body = rewrite(function_.body);
    warn_of_serial();
    if (stages_.empty()) return body;
    return helve::rewrite(body, [&](const Stmt& s) -> Stmt {
      const Alloc* n = as<Alloc>(s);
      const auto found = n ? stages_.find(n->buffer.get()) : stages_.end();
      return found == stages_.end() ? s : alloc(found->second, s->span);
    });
  }

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (s->kind == StmtKind::Kernel) extra_ = 0;
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Pipelined || loop->num_stages < 2 || !enclosing_kernel()) return s;
    Facts inside = facts;
    enter_loop(inside, loop->vars[0], loop->begins[0], loop->extents[0]);
    ScheduleChoice choice{"T.Pipelined", s->span, "asynchronous copies", {}};
    std::vector<EarlyCopy> early;
    declined_.clear();
    for (EarlyCopy& copy : early_copies(*loop, accesses_of_kernel(), function_.may_alias)) {
      if (copy.reason.empty()) copy.reason = why_at_once(*copy.op, inside);
      if (copy.reason.empty()) copy.reason = why_no_room(*copy.op->region(1).buffer, loop->num_stages);
      const std::string what = fmt::format("copy to '{}'", copy.op->region(1).buffer->name);
      if (copy.reason.empty()) {
        early.push_back(std::move(copy));
      } else {
        choice.declined.push_back({what, copy.reason});
        if (is_global(*copy.op->region(0).buffer)) {
          declined_.push_back({copy.op->span, fmt::format("the {}: {}", what, copy.reason)});
        }
      }
    }
    if (early.empty()) {
      choice.schedule = "serial";
      if (choice.declined.empty()) choice.declined.push_back({"asynchronous copies", kNoCopies});
      const Expr extent = simplify(loop->extents[0], facts);
      const int64_t* turns = int_value(extent);
      const bool asked = !loop->scheduled;  // what a schedule pipelines may have been chosen for the user
      if (asked && (!turns || *turns > 1)) serial_.push_back(serial_pipeline(*loop));
    }
    if (options_.choices) options_.choices->push_back(std::move(choice));
    if (early.empty()) return s;
    Pipeline pipeline(*loop, std::move(early), first_product(*loop, inside));
    stages_.insert(pipeline.stages().begin(), pipeline.stages().end());
    return pipeline.run();
  }

 private:
  /// The warning of a loop none of whose copies can begin early; `declined_` says why.
  Diagnostic serial_pipeline(const For& loop) {
    std::vector<std::string> fixes;
    if (declined_.empty()) {
      declined_.push_back({{}, kNoCopies});
      fixes.push_back("let T.copy fill a buffer of T.alloc_shared with what the loop reads, or leave out num_stages");
    }
    return {Code::SerialPipeline, loop.span, {}, std::exchange(declined_, {}), std::move(fixes)};
  }

  /// Warns of the loops in which nothing overlaps. Of a kernel's versions one that overlaps copies is enough; a loop
  /// that stands in several is one loop.
  void warn_of_serial() const {
    if (!options_.warnings || !options_.choices) return;
    std::vector<Span> done;
    for (const ScheduleChoice& each : *options_.choices) {
      if (each.operation == "T.Pipelined" && each.schedule != "serial") done.push_back(each.span);
    }
    for (const Diagnostic& warning : serial_) {
      if (std::find(done.begin(), done.end(), warning.span) != done.end()) continue;
      done.push_back(warning.span);
      options_.warnings->push_back(warning);
    }
  }

  const AccessModel& accesses_of_kernel() {
    if (known_ != enclosing_kernel()) accesses_ = access_model(enclosing_kernel()->body, function_.may_alias);
    known_ = enclosing_kernel();
    return accesses_;
  }

  LoweringContext context_of(const Facts& facts, std::vector<ScheduleChoice>* chosen) const {
    LoweringContext context;
    context.function = &function_;
    context.kernel = enclosing_kernel();
    context.facts = &facts;
    context.machine = &options_.machine;
    context.choices = chosen;
    return context;
  }

  /// The position of the first product in the loop's body that the target begins and waits for later.
  std::optional<size_t> first_product(const For& loop, const Facts& facts) const {
    const std::vector<Stmt> statements = statements_of(loop.body);
    std::vector<ScheduleChoice> chosen;
    const LoweringContext context = context_of(facts, &chosen);
    for (size_t i = 0; i < statements.size(); ++i) {
      const TileOp* op = as<TileOp>(statements[i]);
      if (!op || op->row().rule != TileRule::Gemm) continue;
      const Stmt lowered = lower_tile_op(*op, *options_.schedules, context);
      if (has_operation(lowered, [](const TileOp& each) { return each.begins_product(); })) return i;
    }
    return std::nullopt;
  }

  /// Why the target cannot make this copy asynchronously, so that pipelining gains nothing.
  std::string why_at_once(const TileOp& op, const Facts& facts) const {
    std::vector<ScheduleChoice> chosen;
    const LoweringContext context = context_of(facts, &chosen);
    const Stmt copy = map_parts(
        tile_op(TileOpcode::CopyAsync, op.operands, op.span, op.places),
        [&](const Expr& e) { return simplify(e, facts); }, [](const Stmt& part) { return part; });
    bool begins = false;
    walk(lower_tile_op(*as<TileOp>(copy), *options_.schedules, context), [&](const Stmt& s) {
      const TileOp* each = as<TileOp>(s);
      begins |= each && each->begins_copy();
    });
    const std::vector<ScheduleChoice::Declined>& declined = chosen.back().declined;
    if (begins) return "";
    if (declined.empty()) return fmt::format("'{}' copies at once", chosen.back().schedule);
    // The last schedule tried is the least demanding.
    return fmt::format("'{}' declined: {}", declined.back().schedule, declined.back().reason);
  }

  std::string why_no_room(const Buffer& buffer, int64_t stages) {
    const int64_t more = bytes_of(*in_stages(buffer, stages)) - bytes_of(buffer);
    std::string reason = helve::why_no_room(*enclosing_kernel(), stages, extra_, more, options_);
    if (reason.empty()) extra_ += more;
    return reason;
  }

  const Function& function_;
  const PassOptions& options_;
  BufferMap stages_;
  const Kernel* known_ = nullptr;
  AccessModel accesses_;  ///< of the kernel that is known
  int64_t extra_ = 0;  ///< bytes that stages of the kernel add
  std::vector<Note> declined_;  ///< why copies of the loop that is being read stay where they are
  std::vector<Diagnostic> serial_;  ///< of the loops that overlap nothing
};

}  // namespace

FunctionRef pipeline_loops(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Pipelines(*f, options).run());
}

}  // namespace helve
