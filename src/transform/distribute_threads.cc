// The program of a block becomes that of its threads.
// Input: kernels of loops over elements, reductions, collectives and scalar code of the block. Output: the same kernels
// in thread form: code that every thread of the block runs, with T.threads loops for the work of each thread;
// fragments, and shared memory that fits, become registers: F[thread, register]. Barriers are inserted later
// (insert_barriers).
// Before:  x = T.alloc_fragment((1024,), "float32")
//          for i in T.Parallel(1024): x[i] = A[b, i]
// After:   x_1 = T.alloc_fragment((128, 8), "float32")
//          for tx in T.threads(128):
//              for r in T.unroll(2):
//                  for v in T.vectorized(4):
//                      x_1[tx, r * 4 + v] = A[b, (r * 128 + tx) * 4 + v]
// Every iteration of a loop runs on one thread, or with the same result on several of which one stores to memory.
// In a kernel that has T.threads loops from the beginning, these loops and the fragments that they access are as the
// program says, and what stands beside them is work of the block: its loops over elements are divided, and its stores
// made once.
// T.Parallel inside of T.threads is a loop of one thread, and becomes serial.
#include <algorithm>

#include "helve/analysis/thread_form.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/threads/thread_operation.h"
#include "helve/transform/convert_layouts.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"
#include "undivided.h"

namespace helve {

namespace {

/// A thread runs the independent loops inside of its T.threads loop by itself, one iteration after the other.
Stmt with_serial_loops(const Stmt& s) {
  return rewrite(s, [](const Stmt& part) {
    const For* loop = as<For>(part);
    return loop && loop->loop == LoopKind::Parallel ? serial_nest(*loop, loop->body) : part;
  });
}

bool is_thread_loop(const Stmt& s) {
  const For* loop = as<For>(s);
  return loop && loop->loop == LoopKind::Thread;
}

using Buffers = std::unordered_set<const Buffer*>;

/// Is it an operation that the threads of a kernel in thread form divide? All others are what each thread executes, as
/// instructions on registers of threads are.
bool is_of_block(const TileOp& op) {
  if (op.row().rule != TileRule::Instruction) return thread_operation(op) != nullptr;
  return std::any_of(op.operands.begin(), op.operands.end(), [](const TileOperand& operand) {
    const Region* region = std::get_if<Region>(&operand);
    return region && region->buffer->scope == MemoryScope::Fragment && region->buffer->layout;
  });
}

/// What a kernel in thread form does beside its loops over threads. Of its allocations those of the block's own
/// fragments and scalars: memory of threads and shared memory are as they are.
Stmt work_of_block(const Stmt& s, const Buffers& registers) {
  if (!s) return s;
  const TileOp* op = as<TileOp>(s);
  const Alloc* n = as<Alloc>(s);
  const bool kept = n && (n->buffer->scope == MemoryScope::Shared || registers.contains(n->buffer.get()));
  if (is_thread_loop(s) || kept || (op && !is_of_block(*op))) return seq({});
  const For* loop = as<For>(s);
  if (loop && is_element_loop(*loop)) return s;
  return map_parts(
      s, [](const Expr& e) { return e; }, [&](const Stmt& part) { return work_of_block(part, registers); });
}

class Distribution {
 public:
  Distribution(const Kernel& kernel, BlockLayouts layouts)
      : thread_form_(is_written_for_threads(kernel)), kernel_{kernel.threads, std::move(layouts), {}} {
    for (const BufferPlace& place : kernel_.layouts.places) kernel_.buffers.emplace(place.buffer.get(), placed(place));
  }

  Stmt statement(const Stmt& s, const Facts& facts) {
    if (!s) return s;
    switch (s->kind) {
      case StmtKind::Seq: return sequence(*as<Seq>(s), facts);
      case StmtKind::Alloc: return allocation(*as<Alloc>(s), s);
      case StmtKind::Store: return stored(s, facts);
      case StmtKind::For: return loop(*as<For>(s), s, facts);
      case StmtKind::If: return conditional(*as<If>(s), facts);
      case StmtKind::Report: return report(s);
      case StmtKind::TileOp: return operation(*as<TileOp>(s), s, facts);
      default:
        return map_parts(
            s, [&](const Expr& e) { return kernel_.place(e); },
            [&](const Stmt& part) { return statement(part, facts); });
    }
  }

 private:
  /// A register of the program's own is stored by the thread that has it.
  Stmt stored(const Stmt& s, const Facts& facts) const {
    const Store& n = *as<Store>(s);
    if (n.buffer->scope == MemoryScope::Fragment && !kernel_.buffers.contains(n.buffer.get())) return s;
    return n.previous ? fetch(s, facts) : divide_store(s, kernel_, facts);
  }

  PlacedBuffer placed(const BufferPlace& place) const {
    const Buffer& b = *place.buffer;
    if (place.registers) {
      const int64_t registers = kernel_.layouts.registers.at(&b).registers();
      return {make_buffer(b.name, b.dtype, MemoryScope::Fragment, {int_imm(kernel_.threads), int_imm(registers)}, {},
                          {}, b.span),
              true};
    }
    if (b.scope == MemoryScope::Shared) return {place.buffer, false};
    return {make_buffer(b.name, b.dtype, MemoryScope::Shared, b.shape, {}, {}, b.span), false};
  }

  /// One thread updates the element and tells the others what it found.
  Stmt fetch(const Stmt& s, const Facts& facts) const {
    const VarRef& previous = as<Store>(s)->previous;
    const BufferRef told =
        make_buffer(previous->name, previous->dtype, MemoryScope::Shared, {int_imm(1)}, {}, {}, s->span);
    const VarRef found = make_var(previous->name, previous->dtype, previous->span);
    const Stmt update = Stmt(copy_with(*as<Store>(s), [&](Store& out) { out.previous = found; }));
    const Stmt tell = store(told, {int_imm(0)}, Expr(found), s->span);
    return seq({alloc(told, s->span), divide_store(s, seq({update, tell}), kernel_, facts),
                bind(previous, load(told, {int_imm(0)}, s->span), s->span)},
               s->span);
  }

  Stmt sequence(const Seq& s, const Facts& facts) {
    Facts inner = facts;
    std::vector<Stmt> out;
    for (const Stmt& part : s.stmts) {
      out.push_back(statement(part, inner));
      if (const Bind* b = as<Bind>(part); b && b->var->dtype.is_index()) inner.bind_value(b->var.get(), b->value);
    }
    return seq(std::move(out), s.span);
  }

  Stmt allocation(const Alloc& s, const Stmt& self) const {
    auto it = kernel_.buffers.find(s.buffer.get());
    return it == kernel_.buffers.end() ? self : alloc(it->second.buffer, s.span);
  }

  Stmt loop(const For& s, const Stmt& self, const Facts& facts) {
    if (s.loop == LoopKind::Thread) return with_serial_loops(self);
    if (is_element_loop(s) && !is_divided_inside(s)) return divide_loop(s, kernel_, facts);
    Facts inner = facts;
    for (size_t d = 0; d < s.vars.size(); ++d) enter_loop(inner, s.vars[d], s.begins[d], s.extents[d]);
    if (!is_element_loop(s)) {
      return map_parts(
          self, [&](const Expr& e) { return kernel_.place(e); },
          [&](const Stmt& part) { return statement(part, inner); });
    }
    const Stmt placed =
        map_parts(self, [&](const Expr& e) { return kernel_.place(e); }, [](const Stmt& part) { return part; });
    return serial_nest(*as<For>(placed), statement(s.body, inner));
  }

  Stmt conditional(const If& s, const Facts& facts) {
    Facts holds = facts;
    if (!has_load(s.condition)) holds.assume(s.condition);
    const Stmt then_body = statement(s.then_body, holds);
    const Stmt else_body = statement(s.else_body, facts);
    return if_then(kernel_.place(s.condition), then_body, else_body, s.span);
  }

  Stmt operation(const TileOp& s, const Stmt& self, const Facts& facts) const {
    if (thread_form_ && !is_of_block(s) && s.op != TileOpcode::CpAsync) return self;
    if (const ThreadOperation* row = thread_operation(s)) return row->divide(s, kernel_, facts);
    BufferMap moved;
    for (const auto& [buffer, place] : kernel_.buffers) moved.emplace(buffer, place.buffer);
    const Stmt read =
        map_parts(self, [&](const Expr& e) { return kernel_.place(e); }, [](const Stmt& part) { return part; });
    const Stmt placed = replace_buffers(read, moved);
    if (s.op != TileOpcode::CpAsync) return placed;
    return by_one_thread(placed);  // the only iteration of a loop that was removed
  }

  /// All threads run the block's scalar code alike; what it says is said once.
  Stmt report(const Stmt& s) const {
    return by_one_thread(
        map_parts(s, [&](const Expr& e) { return kernel_.place(e); }, [](const Stmt& part) { return part; }));
  }

  Stmt by_one_thread(const Stmt& s) const {
    return thread_loop(
        kernel_.threads, [&](const Expr& tx) { return if_then(apply(Op::Eq, {tx, int_imm(0)}), s, {}, s->span); },
        s->span);
  }

  bool thread_form_;
  DividedKernel kernel_;
};

class Kernels final : public ScopedRewriter {
 public:
  Kernels(const Function& f, const PassOptions& options)
      : ScopedRewriter(f), may_alias_(f.may_alias), options_(options) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const Kernel* kernel = as<Kernel>(s);
    if (!kernel) return s;
    Facts inner = facts;
    for (size_t d = 0; d < kernel->vars.size(); ++d) enter_loop(inner, kernel->vars[d], int_imm(0), kernel->extents[d]);
    if (is_written_for_threads(*kernel)) {
      refuse_undivided(kernel->body, nullptr, kernel->span, registers_of_threads(*kernel));
      const Stmt body = beside_threads(*kernel, inner);
      return body == kernel->body ? s : Stmt(copy_with(*kernel, [&](Kernel& out) { out.body = body; }));
    }
    BlockDivision division = convert_layouts(*kernel, may_alias_, inner, options_.machine, options_.strict_layouts);
    return Stmt(copy_with(*kernel, [&](Kernel& out) {
      out.body = Distribution(*kernel, std::move(division.layouts)).statement(division.body, inner);
    }));
  }

 private:
  /// The body of a kernel in thread form, with what stands beside its loops over threads divided among them.
  Stmt beside_threads(const Kernel& kernel, const Facts& facts) const {
    const Buffers registers = registers_of_threads(kernel);
    const Stmt body = work_of_block(kernel.body, registers);
    const Ref<const Kernel> work = copy_with(kernel, [&](Kernel& out) { out.body = body; });
    BlockLayouts layouts = infer_layouts(*work, may_alias_, facts, options_.machine);
    if (const std::optional<LayoutConflict>& conflict = layouts.conflict) {
      throw UserError(Code::LayoutConversion, conflict->stmt->span,
                      {{"buffer", conflict->buffer->name}, {"reason", conflict->reason}}, {},
                      {"change the layout, or leave it out: beside T.threads loops nothing is converted"});
    }
    return Distribution(kernel, std::move(layouts)).statement(kernel.body, facts);
  }

  const std::vector<MayAlias>& may_alias_;
  const PassOptions& options_;
};

}  // namespace

FunctionRef distribute_threads(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Kernels(*f, options).rewrite(f->body));
}

}  // namespace helve
