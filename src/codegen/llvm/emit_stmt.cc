// Statements of a kernel.
// Loops keep their promise in metadata (independent iterations) or become explicit vectors, and LLVM transforms no loop
// that is scheduled, and copies no body of one that is rolled; buffers of a block get their memory.
#include <algorithm>
#include <numeric>

#include "helve/analysis/multiple.h"
#include "helve/ir/tensor/code_hints.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

void KernelEmitter::stmt(const Stmt& s) {
  if (!s) return;
  switch (s->kind) {
    case StmtKind::Seq: return seq(*as<Seq>(s));
    case StmtKind::Alloc: return alloc(*as<Alloc>(s));
    case StmtKind::Bind: return bind(*as<Bind>(s));
    case StmtKind::Store: return store(*as<Store>(s));
    case StmtKind::Prefetch: return prefetch(*as<Prefetch>(s));
    case StmtKind::Report: return report(*as<Report>(s));
    case StmtKind::For: return loop(*as<For>(s));
    case StmtKind::While: return while_loop(*as<While>(s));
    case StmtKind::If: return if_then(*as<If>(s));
    case StmtKind::Outline: return outline(*as<Outline>(s));
    case StmtKind::Breakpoint:
    case StmtKind::Peer:
    case StmtKind::Role:
    case StmtKind::TileStore:
    case StmtKind::ForTiles:
    case StmtKind::Kernel:
    case StmtKind::TileOp: break;
  }
  HELVE_FAIL("a statement that is not of the lowered form");
}

/// The scratch memory of buffers that end with this sequence is free for what follows.
void KernelEmitter::seq(const Seq& s) {
  const int64_t used = scratch_used_;
  for (const Stmt& each : s.stmts) stmt(each);
  scratch_used_ = used;
}

Value* KernelEmitter::stack_slot(llvm::Type* type, uint64_t count) {
  llvm::IRBuilder<> entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
  llvm::AllocaInst* slot = entry.CreateAlloca(llvm::ArrayType::get(type, count));
  slot->setAlignment(llvm::Align(kBlockAlignment));
  return slot;
}

void KernelEmitter::alloc(const Alloc& s) {
  const Buffer& buffer = *s.buffer;
  HELVE_CHECK(buffer.scope != MemoryScope::Param && buffer.scope != MemoryScope::Global,
              "a kernel allocates buffers of a block");
  if (buffer.place == ArrayPlace::Stack) {
    const std::vector<int64_t> shape = *constant_shape(buffer.shape);
    const int64_t elements = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
    llvm::Type* element = arithmetic_.memory_type(buffer.dtype);
    places_[&buffer] = place(buffer, stack_slot(element, static_cast<uint64_t>(std::max<int64_t>(elements, 1))));
    return;
  }
  const int64_t begin = scratch_used_;
  scratch_used_ += block_bytes(buffer);
  scratch_peak_ = std::max(scratch_peak_, scratch_used_);
  Place p = place(buffer, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), scratch_, static_cast<uint64_t>(begin)));
  p.begin = begin;
  p.end = scratch_used_;
  places_[&buffer] = std::move(p);
}

void KernelEmitter::bind(const Bind& s) {
  const std::optional<int64_t> moves = lanes_ == 0 ? std::optional<int64_t>(0) : step(s.value);
  if (moves == 0) {
    env_[s.var.get()] = Binding{first_lane(s.value), nullptr, 0};
    return;
  }
  Binding binding{expr(s.value), nullptr, moves};
  if (moves) binding.first = first_lane(s.value);
  env_[s.var.get()] = binding;
}

void KernelEmitter::branch(Value* condition, const Stmt& then_body, const Stmt& else_body) {
  llvm::BasicBlock* then_block = llvm::BasicBlock::Create(context_, "then", function_);
  llvm::BasicBlock* else_block = else_body ? llvm::BasicBlock::Create(context_, "else", function_) : nullptr;
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", function_);
  b_.CreateCondBr(condition, then_block, else_block ? else_block : join);
  b_.SetInsertPoint(then_block);
  stmt(then_body);
  b_.CreateBr(join);
  if (else_block) {
    b_.SetInsertPoint(else_block);
    stmt(else_body);
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
}

void KernelEmitter::if_then(const If& s) {
  Value* condition = expr(s.condition);
  const int64_t used = scratch_used_;
  if (!condition->getType()->isVectorTy()) {
    branch(condition, s.then_body, s.else_body);
  } else {
    Value* outer = mask_;
    mask_ = outer ? b_.CreateAnd(outer, condition) : condition;
    stmt(s.then_body);
    if (s.else_body) {
      Value* off = b_.CreateNot(condition);
      mask_ = outer ? b_.CreateAnd(outer, off) : off;
      stmt(s.else_body);
    }
    mask_ = outer;
  }
  scratch_used_ = used;
}

void KernelEmitter::while_loop(const While& s) {
  HELVE_CHECK(lanes_ == 0, "a while loop in vector code");
  llvm::BasicBlock* header = llvm::BasicBlock::Create(context_, "while", function_);
  llvm::BasicBlock* body = llvm::BasicBlock::Create(context_, "while.body", function_);
  llvm::BasicBlock* exit = llvm::BasicBlock::Create(context_, "while.end", function_);
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  b_.CreateCondBr(expr(s.condition), body, exit);
  b_.SetInsertPoint(body);
  stmt(s.body);
  b_.CreateBr(header);
  b_.SetInsertPoint(exit);
}

void KernelEmitter::counted_loop(Value* extent, const std::function<void(Value*)>& body,
                                 llvm::ArrayRef<llvm::Metadata*> hints) {
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* header = llvm::BasicBlock::Create(context_, "loop", function_);
  llvm::BasicBlock* inside = llvm::BasicBlock::Create(context_, "loop.body", function_);
  llvm::BasicBlock* exit = llvm::BasicBlock::Create(context_, "loop.end", function_);
  b_.CreateBr(header);
  b_.SetInsertPoint(header);
  llvm::PHINode* iv = b_.CreatePHI(b_.getInt64Ty(), 2);
  iv->addIncoming(b_.getInt64(0), before);
  b_.CreateCondBr(b_.CreateICmpSLT(iv, extent), inside, exit);
  b_.SetInsertPoint(inside);
  const int64_t used = scratch_used_;
  body(iv);
  scratch_used_ = used;
  iv->addIncoming(b_.CreateAdd(iv, b_.getInt64(1), "", true, true), b_.GetInsertBlock());
  llvm::BranchInst* back = b_.CreateBr(header);
  if (!hints.empty()) {
    llvm::SmallVector<llvm::Metadata*, 4> operands{nullptr};
    operands.append(hints.begin(), hints.end());
    llvm::MDNode* id = llvm::MDNode::getDistinct(context_, operands);
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
  }
  b_.SetInsertPoint(exit);
}

void KernelEmitter::loop(const For& s) {
  if (s.loop == LoopKind::Vectorized) return vector_loop(s);
  llvm::MDNode* group = nullptr;
  if (s.loop == LoopKind::Parallel && lanes_ == 0) {
    group = llvm::MDNode::getDistinct(context_, {});
    parallel_loops_.push_back({&s, group, {}});
  }
  loop_dimension(s, 0, group);
  if (group) parallel_loops_.pop_back();
}

void KernelEmitter::loop_dimension(const For& s, size_t dim, llvm::MDNode* group) {
  if (dim == s.vars.size()) return stmt(s.body);
  llvm::SmallVector<llvm::Metadata*, 2> hints;
  const auto named = [&](const char* name) { return llvm::MDString::get(context_, name); };
  if (group) hints.push_back(llvm::MDNode::get(context_, {named("llvm.loop.parallel_accesses"), group}));
  if (s.scheduled) {
    hints.push_back(llvm::MDNode::get(context_, {named("llvm.loop.disable_nonforced")}));
  } else if (s.loop == LoopKind::Unroll) {
    hints.push_back(llvm::MDNode::get(context_, {named("llvm.loop.unroll.enable")}));
  } else if (s.rolled) {
    hints.push_back(llvm::MDNode::get(context_, {named("llvm.loop.unroll.disable")}));
  }
  Value* begin = first_lane(s.begins[dim]);
  Value* extent = first_lane(s.extents[dim]);
  counted_loop(
      extent,
      [&](Value* iv) {
        const VarRef& var = s.vars[dim];
        env_[var.get()] = Binding{b_.CreateAdd(begin, iv, "", false, fits64(Expr(var))), nullptr, 0};
        loop_dimension(s, dim + 1, group);
      },
      hints);
}

/// The lanes of a loop that legalize_vectors has left or made.
void KernelEmitter::vector_loop(const For& s) {
  const int64_t* lanes = int_value(s.extents[0]);
  HELVE_CHECK(lanes_ == 0 && lanes && *lanes > 1 && *lanes <= kMaxLanes, "a vector loop that no processor executes");
  Value* begin = expr(s.begins[0]);
  lanes_ = static_cast<unsigned>(*lanes);
  lane_ = is_multiple(s.begins[0], 2, {}) ? s.vars[0].get() : nullptr;
  env_[s.vars[0].get()] = Binding{lanes_from(begin, 1), begin, 1};
  stmt(s.body);
  lanes_ = 0;
}

}  // namespace helve::cpu
