// Expressions of a kernel.
// What a condition guards is evaluated only where the condition holds: by a branch when all lanes agree, by a mask when
// not.
#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

Value* KernelEmitter::expr(const Expr& e) {
  switch (e->kind) {
    case ExprKind::IntImm:
      return llvm::ConstantInt::get(arithmetic_.value_type(e->dtype), static_cast<uint64_t>(as<IntImm>(e)->value),
                                    true);
    case ExprKind::FloatImm: return llvm::ConstantFP::get(arithmetic_.value_type(e->dtype), as<FloatImm>(e)->value);
    case ExprKind::Var: {
      auto found = env_.find(as<Var>(e));
      HELVE_CHECK(found != env_.end(), "variable '" + as<Var>(e)->name + "' is not bound in the kernel");
      return in_first_lane_ && found->second.first ? found->second.first : found->second.value;
    }
    case ExprKind::Apply: return apply(*as<Apply>(e));
    case ExprKind::Cast: return convert(*as<Cast>(e));
    case ExprKind::Bitcast: {
      const Expr& value = as<Bitcast>(e)->value;
      return arithmetic_.reinterpret(expr(value), value->dtype, e->dtype);
    }
    case ExprKind::Load: return load(*as<Load>(e));
    case ExprKind::Misalignment: {
      const Misalignment& place = *as<Misalignment>(e);
      Value* address = b_.CreatePtrToInt(places_.at(&buffer_of(place.buffer)).base, b_.getInt64Ty());
      return b_.CreateAnd(address, b_.getInt64(static_cast<uint64_t>(place.unit - 1)));
    }
    case ExprKind::TileLoad: HELVE_FAIL("a tile access in lowered code");
  }
  __builtin_unreachable();
}

Value* KernelEmitter::apply(const Apply& a) {
  if (a.op == Op::Select) return select(a);
  if (a.op == Op::And || a.op == Op::Or) return short_circuit(a);
  llvm::SmallVector<Value*, 3> args;
  bool vector = false;
  for (const Expr& arg : a.args) {
    args.push_back(expr(arg));
    vector |= args.back()->getType()->isVectorTy();
  }
  const DType t = a.args[0]->dtype;
  if (!t.is_index()) return arithmetic_.apply(a.op, t, std::move(args));
  if (!narrows(a, vector)) return arithmetic_.apply(a.op, t, std::move(args), fits64(Expr(&a)));
  for (Value*& arg : args) arg = b_.CreateTrunc(arg, Arithmetic::shaped(b_.getInt32Ty(), arg));
  Value* out = arithmetic_.apply(a.op, kInt32, std::move(args), true);
  return a.dtype.is_bool() ? out : b_.CreateSExt(out, Arithmetic::shaped(b_.getInt64Ty(), out));
}

/// Is the operator done in 32 bits? Lanes are narrower that way, and a division is several times faster; a scalar in a
/// register gains nothing else. Products of an address never come here: they are formed in emit_access.cc, in 64 bits.
bool KernelEmitter::narrows(const Apply& a, bool vector) const {
  const bool divides = a.op == Op::FloorDiv || a.op == Op::FloorMod;
  if (!source_.bounds || !(vector || divides)) return false;
  for (const Expr& arg : a.args) {
    if (!source_.bounds->fits32(arg)) return false;
  }
  return a.dtype.is_bool() || source_.bounds->fits32(Expr(&a));
}

bool KernelEmitter::fits64(const Expr& e) const { return source_.bounds && source_.bounds->fits64(e); }

Value* KernelEmitter::convert(const Cast& c) {
  Value* v = expr(c.value);
  const DType from = c.value->dtype;
  const bool narrow = from.is_index() && c.dtype.is_float() && v->getType()->isVectorTy() && source_.bounds &&
                      source_.bounds->fits32(c.value);  // few processors convert lanes of 64 bits
  if (!narrow) return arithmetic_.convert(v, from, c.dtype);
  return arithmetic_.convert(b_.CreateTrunc(v, Arithmetic::shaped(b_.getInt32Ty(), v)), kInt32, c.dtype);
}

Value* KernelEmitter::under_branch(Value* condition, const std::function<Value*()>& then,
                                   const std::function<Value*()>& otherwise) {
  llvm::BasicBlock* then_block = llvm::BasicBlock::Create(context_, "then", function_);
  llvm::BasicBlock* else_block = llvm::BasicBlock::Create(context_, "else", function_);
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", function_);
  b_.CreateCondBr(condition, then_block, else_block);
  b_.SetInsertPoint(then_block);
  Value* values[] = {then(), nullptr};
  llvm::BasicBlock* then_end = b_.GetInsertBlock();
  b_.SetInsertPoint(else_block);
  values[1] = otherwise();
  llvm::BasicBlock* else_end = b_.GetInsertBlock();
  llvm::BasicBlock* ends[] = {then_end, else_end};
  for (int side : {0, 1}) {
    b_.SetInsertPoint(ends[side]);
    const auto* wide = llvm::dyn_cast<llvm::VectorType>(values[1 - side]->getType());
    if (wide && !values[side]->getType()->isVectorTy()) {
      values[side] = b_.CreateVectorSplat(wide->getElementCount(), values[side]);
    }
    b_.CreateBr(join);
  }
  b_.SetInsertPoint(join);
  llvm::PHINode* phi = b_.CreatePHI(values[0]->getType(), 2);
  phi->addIncoming(values[0], then_end);
  phi->addIncoming(values[1], else_end);
  return phi;
}

Value* KernelEmitter::under_mask(Value* mask, const std::function<Value*()>& value) {
  Value* outer = mask_;
  mask_ = outer ? b_.CreateAnd(outer, mask) : mask;
  Value* result = value();
  mask_ = outer;
  return result;
}

Value* KernelEmitter::select(const Apply& a) {
  Value* condition = expr(a.args[0]);
  auto then = [&] { return expr(a.args[1]); };
  auto otherwise = [&] { return expr(a.args[2]); };
  if (!has_load(a.args[1]) && !has_load(a.args[2])) {
    Value* x = then();
    return arithmetic_.apply(Op::Select, a.dtype, {condition, x, otherwise()});
  }
  if (!condition->getType()->isVectorTy()) return under_branch(condition, then, otherwise);
  Value* x = under_mask(condition, then);
  Value* y = under_mask(b_.CreateNot(condition), otherwise);
  return arithmetic_.apply(Op::Select, a.dtype, {condition, x, y});
}

Value* KernelEmitter::short_circuit(const Apply& a) {
  Value* left = expr(a.args[0]);
  auto right = [&] { return expr(a.args[1]); };
  if (!has_load(a.args[1])) return arithmetic_.apply(a.op, kBool, {left, right()});
  const bool is_and = a.op == Op::And;
  if (!left->getType()->isVectorTy()) {
    auto known = [&] { return static_cast<Value*>(b_.getInt1(!is_and)); };
    return is_and ? under_branch(left, right, known) : under_branch(left, known, right);
  }
  Value* on = is_and ? left : b_.CreateNot(left);
  Value* r = under_mask(on, right);
  return arithmetic_.apply(a.op, kBool, {left, r});
}

std::optional<int64_t> KernelEmitter::step(const Expr& e) {
  return lane_step(e, [this](const Var* v) { return step_of(v); });
}

std::optional<int64_t> KernelEmitter::step_of(const Var* v) const {
  auto found = env_.find(v);
  return found == env_.end() ? std::nullopt : found->second.step;
}

Value* KernelEmitter::first_lane(const Expr& e) {
  const bool outer = in_first_lane_;
  in_first_lane_ = true;
  Value* v = expr(e);
  in_first_lane_ = outer;
  return v;
}

Value* KernelEmitter::lanes_from(Value* first, int64_t step) {
  llvm::SmallVector<llvm::Constant*, 16> offsets;
  for (unsigned lane = 0; lane < lanes_; ++lane) {
    offsets.push_back(llvm::ConstantInt::get(first->getType(), uint64_t{lane} * static_cast<uint64_t>(step)));
  }
  return b_.CreateAdd(b_.CreateVectorSplat(lanes_, first), llvm::ConstantVector::get(offsets));
}

}  // namespace helve::cpu
