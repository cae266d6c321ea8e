// The operators of the table and the Cast node as LLVM instructions.
// Integers wrap, // and % are floor, NaN wins in min and max, and no operation of a kernel traps.
#include "arithmetic.h"

#include "helve/support/diagnostic.h"
#include "math_functions.h"

namespace helve::cpu {

using llvm::Value;

llvm::Type* Arithmetic::value_type(DType t) const {
  if (t.is_bool()) return b_.getInt1Ty();
  if (t.is_float()) return t.bits == 64 ? b_.getDoubleTy() : b_.getFloatTy();
  if (t.bits < 8) throw UserError(Code::DTypeOnTarget, {}, {{"dtype", to_string(t)}, {"target", "llvm"}});
  return b_.getIntNTy(t.bits);
}

llvm::Type* Arithmetic::memory_type(DType t) const {
  if (t.is_bool()) return b_.getInt8Ty();
  if (t.is_small_float()) return b_.getIntNTy(t.bits);
  return value_type(t);
}

llvm::Type* Arithmetic::shaped(llvm::Type* scalar, const Value* v) {
  const auto* vector = llvm::dyn_cast<llvm::VectorType>(v->getType());
  return vector ? llvm::VectorType::get(scalar, vector->getElementCount()) : scalar;
}

void Arithmetic::unify(llvm::MutableArrayRef<Value*> values) {
  const llvm::VectorType* wide = nullptr;
  for (const Value* v : values) {
    if (const auto* t = llvm::dyn_cast<llvm::VectorType>(v->getType())) wide = t;
  }
  if (!wide) return;
  for (Value*& v : values) {
    if (!v->getType()->isVectorTy()) v = b_.CreateVectorSplat(wide->getElementCount(), v);
  }
}

Value* Arithmetic::fma(Value* a, Value* b, Value* c) {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

Value* Arithmetic::call_library(const char* name, llvm::ArrayRef<Value*> args) {
  llvm::Type* result = args[0]->getType();
  llvm::Type* scalar = result->getScalarType();
  const std::string symbol = scalar->isDoubleTy() ? name : std::string(name) + "f";
  llvm::SmallVector<llvm::Type*, 2> types(args.size(), scalar);
  llvm::Module* module = b_.GetInsertBlock()->getModule();
  llvm::FunctionCallee callee = module->getOrInsertFunction(symbol, llvm::FunctionType::get(scalar, types, false));
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  function->setDoesNotAccessMemory();
  function->setWillReturn();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(result);
  if (!vector) return b_.CreateCall(callee, args);
  Value* out = llvm::PoisonValue::get(result);
  for (unsigned lane = 0; lane < vector->getNumElements(); ++lane) {
    llvm::SmallVector<Value*, 2> parts;
    for (Value* a : args) parts.push_back(b_.CreateExtractElement(a, lane));
    out = b_.CreateInsertElement(out, b_.CreateCall(callee, parts), lane);
  }
  return out;
}

Value* Arithmetic::apply(Op op, DType t, llvm::SmallVector<Value*, 3> args, bool exact) {
  unify(args);
  switch (op) {
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq:
    case Op::Ne: return compare(op, t, args[0], args[1]);
    case Op::And: return b_.CreateLogicalAnd(args[0], args[1]);
    case Op::Or: return b_.CreateLogicalOr(args[0], args[1]);
    case Op::Not: return b_.CreateNot(args[0]);
    case Op::Select: return b_.CreateSelect(args[0], args[1], args[2]);
    default: break;
  }
  HELVE_CHECK(!t.is_bool(), "operator " + std::string(row_of(op).name) + " on bool");
  return t.is_float() ? apply_float(op, t, args) : apply_integer(op, t, args, exact);
}

Value* Arithmetic::compare(Op op, DType t, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  const bool flt = t.is_float();
  const bool sgn = t.is_signed();
  P p = P::BAD_ICMP_PREDICATE;
  switch (op) {
    case Op::Lt: p = flt ? P::FCMP_OLT : sgn ? P::ICMP_SLT : P::ICMP_ULT; break;
    case Op::Le: p = flt ? P::FCMP_OLE : sgn ? P::ICMP_SLE : P::ICMP_ULE; break;
    case Op::Gt: p = flt ? P::FCMP_OGT : sgn ? P::ICMP_SGT : P::ICMP_UGT; break;
    case Op::Ge: p = flt ? P::FCMP_OGE : sgn ? P::ICMP_SGE : P::ICMP_UGE; break;
    case Op::Eq: p = flt ? P::FCMP_OEQ : P::ICMP_EQ; break;
    case Op::Ne: p = flt ? P::FCMP_UNE : P::ICMP_NE; break;
    default: HELVE_FAIL("not a comparison");
  }
  return flt ? b_.CreateFCmp(p, x, y) : b_.CreateICmp(p, x, y);
}

// Division by zero gives 0 and the least integer // -1 wraps: the divisor is replaced where the machine would trap.
Value* Arithmetic::floor_divide(DType t, Value* x, Value* y, bool remainder) {
  llvm::Type* type = x->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* one = llvm::ConstantInt::get(type, 1);
  const llvm::Constant* constant = llvm::dyn_cast<llvm::Constant>(y);
  const auto* divisor =
      constant ? llvm::dyn_cast_or_null<llvm::ConstantInt>(type->isVectorTy() ? constant->getSplatValue() : constant)
               : nullptr;
  if (divisor && divisor->getValue().isPowerOf2() && !(t.is_signed() && divisor->isNegative())) {
    const unsigned k = divisor->getValue().logBase2();
    if (remainder) return b_.CreateAnd(x, llvm::ConstantInt::get(type, divisor->getValue() - 1));
    return t.is_signed() ? b_.CreateAShr(x, k) : b_.CreateLShr(x, k);
  }
  const bool safe = divisor && !divisor->isZero() && !divisor->isMinusOne();
  Value* by_zero = b_.CreateICmpEQ(y, zero);
  if (!t.is_signed()) {
    Value* d = safe ? y : b_.CreateSelect(by_zero, one, y);
    Value* r = remainder ? b_.CreateURem(x, d) : b_.CreateUDiv(x, d);
    return safe ? r : b_.CreateSelect(by_zero, zero, r);
  }
  Value* by_minus_one = b_.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type));
  Value* d = safe ? y : b_.CreateSelect(b_.CreateOr(by_zero, by_minus_one), one, y);
  Value* r = b_.CreateSRem(x, d);
  Value* crosses = b_.CreateAnd(b_.CreateICmpNE(r, zero), b_.CreateICmpSLT(b_.CreateXor(r, d), zero));
  if (remainder) {
    return b_.CreateSelect(crosses, b_.CreateAdd(r, d), r);  // the replaced divisor 1 leaves 0
  }
  Value* q = b_.CreateSDiv(x, d);
  q = b_.CreateSub(q, b_.CreateZExt(crosses, type));
  if (safe) return q;
  q = b_.CreateSelect(by_minus_one, b_.CreateNeg(x), q);
  return b_.CreateSelect(by_zero, zero, q);
}

// An amount of the width or more (a negative one counts as huge) shifts everything out.
Value* Arithmetic::shift(Op op, DType t, Value* x, Value* amount) {
  llvm::Type* type = x->getType();
  Value* width = llvm::ConstantInt::get(type, t.bits);
  Value* zero = llvm::Constant::getNullValue(type);
  Value* last = llvm::ConstantInt::get(type, t.bits - 1);
  Value* inside = b_.CreateICmpULT(amount, width);
  Value* legal = b_.CreateSelect(inside, amount, last);
  if (op == Op::ShiftLeft) return b_.CreateSelect(inside, b_.CreateShl(x, legal), zero);
  if (t.is_signed()) return b_.CreateAShr(x, legal);
  return b_.CreateSelect(inside, b_.CreateLShr(x, legal), zero);
}

Value* Arithmetic::apply_integer(Op op, DType t, llvm::ArrayRef<Value*> a, bool exact) {
  using llvm::Intrinsic::ID;
  const bool sgn = t.is_signed();
  auto binary = [&](ID id) { return b_.CreateBinaryIntrinsic(id, a[0], a[1]); };
  switch (op) {
    case Op::Add: return b_.CreateAdd(a[0], a[1], "", false, exact);
    case Op::Sub: return b_.CreateSub(a[0], a[1], "", false, exact);
    case Op::Mul: return b_.CreateMul(a[0], a[1], "", false, exact);
    case Op::Neg: return b_.CreateSub(llvm::Constant::getNullValue(a[0]->getType()), a[0], "", false, exact);
    case Op::FloorDiv: return floor_divide(t, a[0], a[1], false);
    case Op::FloorMod: return floor_divide(t, a[0], a[1], true);
    case Op::Min: return binary(sgn ? llvm::Intrinsic::smin : llvm::Intrinsic::umin);
    case Op::Max: return binary(sgn ? llvm::Intrinsic::smax : llvm::Intrinsic::umax);
    case Op::BitAnd: return b_.CreateAnd(a[0], a[1]);
    case Op::BitOr: return b_.CreateOr(a[0], a[1]);
    case Op::BitXor: return b_.CreateXor(a[0], a[1]);
    case Op::BitNot: return b_.CreateNot(a[0]);
    case Op::ShiftLeft:
    case Op::ShiftRight: return shift(op, t, a[0], a[1]);
    case Op::Abs: return sgn ? b_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, a[0], b_.getInt1(false)) : a[0];
    default: HELVE_FAIL("operator " + std::string(row_of(op).name) + " on integers");
  }
}

Value* Arithmetic::apply_float(Op op, DType t, llvm::ArrayRef<Value*> a) {
  auto unary = [&](llvm::Intrinsic::ID id) { return b_.CreateUnaryIntrinsic(id, a[0]); };
  auto one = [&] { return llvm::ConstantFP::get(a[0]->getType(), 1.0); };
  auto pick =
      [&](Value* first) {  // NaN in either operand wins: the comparison is false for it, and a[1] is the default
        // Kept apart from the outer choice, the inner one is a single instruction of the processor.
        Value* inner = b_.CreateFreeze(b_.CreateSelect(first, a[0], a[1]));
        return b_.CreateSelect(b_.CreateFCmpUNO(a[0], a[0]), a[0], inner);
      };
  const bool own = t.bits <= 32;  // the polynomials serve float32 and what is evaluated in it
  const llvm::IRBuilderBase::FastMathFlagGuard flags(b_);
  // The error bounds of functions rest on each rounding.
  if (op != Op::Add && op != Op::Sub && op != Op::Mul) b_.clearFastMathFlags();
  MathFunctions math(b_, features_.fma, features_.scale);
  switch (op) {
    case Op::Add: return b_.CreateFAdd(a[0], a[1]);
    case Op::Sub: return b_.CreateFSub(a[0], a[1]);
    case Op::Mul: return b_.CreateFMul(a[0], a[1]);
    case Op::Div: return b_.CreateFDiv(a[0], a[1]);
    case Op::Neg: return b_.CreateFNeg(a[0]);
    case Op::Min: return pick(b_.CreateFCmpOLT(a[0], a[1]));
    case Op::Max: return pick(b_.CreateFCmpOGT(a[0], a[1]));
    case Op::Abs: return unary(llvm::Intrinsic::fabs);
    case Op::Floor: return unary(llvm::Intrinsic::floor);
    case Op::Ceil: return unary(llvm::Intrinsic::ceil);
    case Op::Round: return unary(llvm::Intrinsic::roundeven);
    case Op::Sqrt: return unary(llvm::Intrinsic::sqrt);
    case Op::Rsqrt: return b_.CreateFDiv(one(), unary(llvm::Intrinsic::sqrt));
    case Op::Fma: return fma(a[0], a[1], a[2]);
    case Op::Exp: return own ? math.exp(a[0]) : call_library("exp", a);
    case Op::Exp2:
    case Op::Exp2Approx: return own ? math.exp2(a[0]) : call_library("exp2", a);
    case Op::Log: return own ? math.log(a[0]) : call_library("log", a);
    case Op::Tanh: return own ? math.tanh(a[0]) : call_library("tanh", a);
    case Op::Sigmoid: {  // of the exponential that does not overflow: for negative x, e^x / (1 + e^x)
      Value* size = b_.CreateFNeg(unary(llvm::Intrinsic::fabs));
      Value* e = own ? math.exp(size) : call_library("exp", {size});
      Value* negative = b_.CreateFCmpOLT(a[0], llvm::Constant::getNullValue(a[0]->getType()));
      return b_.CreateFDiv(b_.CreateSelect(negative, e, one()), b_.CreateFAdd(one(), e));
    }
    case Op::Log2: return own ? math.log2(a[0]) : call_library("log2", a);
    case Op::Sin: return call_library("sin", a);
    case Op::Cos: return call_library("cos", a);
    case Op::Erf: return own ? math.erf(a[0]) : call_library("erf", a);
    case Op::Pow: return call_library("pow", a);
    default: HELVE_FAIL("operator " + std::string(row_of(op).name) + " on floats");
  }
}

}  // namespace helve::cpu
