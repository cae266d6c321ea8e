// Loads and stores.
// In vector code the step of each index decides: one element for all lanes, elements side by side, each for a lane or
// for two, or an address for each lane.
#include <numeric>

#include "helve/analysis/iteration_scratch.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

namespace {

llvm::Align alignment_of(const Buffer& buffer) { return llvm::Align(static_cast<uint64_t>(buffer.dtype.bytes())); }

}  // namespace

KernelEmitter::Place KernelEmitter::place(const Buffer& buffer, Value* base) {
  Place p;
  p.base = base;
  p.element = arithmetic_.memory_type(buffer.dtype);
  p.loop_depth = parallel_loops_.size();
  p.strides.resize(buffer.rank(), b_.getInt64(1));
  if (!buffer.strides.empty()) {
    for (size_t d = 0; d < buffer.rank(); ++d) p.strides[d] = expr(buffer.strides[d]);
    return p;
  }
  for (size_t d = buffer.rank(); d-- > 1;) {
    p.strides[d - 1] = b_.CreateMul(p.strides[d], expr(buffer.shape[d]));
  }
  return p;
}

KernelEmitter::Address KernelEmitter::address(const Buffer& buffer, const std::vector<Expr>& indices) {
  auto found = places_.find(&buffer);
  HELVE_CHECK(found != places_.end(), "buffer '" + buffer.name + "' has no memory in the kernel");
  const Place& p = found->second;
  const bool scalar = lanes_ == 0 || in_first_lane_;
  int64_t total = 0;
  bool known = true;
  for (size_t d = 0; d < indices.size() && !scalar; ++d) {
    const std::optional<int64_t> s = step(indices[d]);
    const auto* stride = llvm::dyn_cast<llvm::ConstantInt>(p.strides[d]);
    known &= s && (*s == 0 || stride);
    int64_t moved;
    if (known && *s != 0) {
      known =
          !__builtin_mul_overflow(*s, stride->getSExtValue(), &moved) && !__builtin_add_overflow(total, moved, &total);
    }
  }
  const bool exact = source_.bounds && source_.bounds->address_fits64(buffer, indices);
  Value* offset = b_.getInt64(0);
  for (size_t d = 0; d < indices.size(); ++d) {
    Value* parts[] = {known ? first_lane(indices[d]) : expr(indices[d]), p.strides[d]};
    arithmetic_.unify(parts);
    Value* terms[] = {offset, b_.CreateMul(parts[0], parts[1], "", false, exact)};
    arithmetic_.unify(terms);
    offset = b_.CreateAdd(terms[0], terms[1], "", false, exact);
  }
  // Under a mask lane 0 may be off, and its address outside of the buffer.
  const bool inside = mask_ == nullptr && known && !may_lie_outside_;
  Value* pointer = b_.CreateGEP(p.element, p.base, offset, "",
                                inside ? llvm::GEPNoWrapFlags::inBounds() : llvm::GEPNoWrapFlags::none());
  if (!known) {
    HELVE_CHECK(offset->getType()->isVectorTy(), "an index of unknown step is equal in all lanes");
    return {Address::Lanes, pointer};
  }
  if (scalar || total == 0) return {Address::Uniform, pointer};
  if (total == 1) return {Address::Contiguous, pointer};
  return {Address::Lanes, b_.CreateGEP(p.element, pointer, lanes_from(b_.getInt64(0), total))};
}

Value* KernelEmitter::all_lanes(Value* mask) {
  return mask ? mask : llvm::ConstantInt::get(llvm::FixedVectorType::get(b_.getInt1Ty(), lanes_), 1);
}

/// `pointer`, or readable memory when no lane is on.
Value* KernelEmitter::safe_pointer(Value* pointer) {
  return mask_ ? b_.CreateSelect(b_.CreateOrReduce(mask_), pointer, harmless_) : pointer;
}

/// Do iterations of the loop use one element of private memory in turn? Each has it for itself, so this keeps the
/// promise that they depend on nothing; the machine has it once.
bool KernelEmitter::reuses(ParallelLoop& around, const Buffer& buffer) {
  if (buffer.scope != MemoryScope::Local) return false;
  const auto [known, is_new] = around.reuses.try_emplace(&buffer, false);
  if (is_new) known->second = iterations_may_conflict(*around.loop, buffer);
  return known->second;
}

/// Notes what is known of the access: its buffer, and the parallel loops around it that the buffer outlives and whose
/// iterations keep apart in it.
llvm::Instruction* KernelEmitter::mark(llvm::Instruction* access, const Buffer& buffer) {
  marked_.emplace_back(access, &buffer);
  const size_t depth = places_.at(&buffer).loop_depth;
  llvm::SmallVector<llvm::Metadata*, 2> groups;
  for (size_t i = depth; i < parallel_loops_.size(); ++i) {
    if (!reuses(parallel_loops_[i], buffer)) groups.push_back(parallel_loops_[i].group);
  }
  if (groups.size() == 1) access->setMetadata(llvm::LLVMContext::MD_access_group, llvm::cast<llvm::MDNode>(groups[0]));
  if (groups.size() > 1) access->setMetadata(llvm::LLVMContext::MD_access_group, llvm::MDNode::get(context_, groups));
  return access;
}

/// A load of half as many elements, each for two lanes, where they are side by side; else null.
Value* KernelEmitter::paired_load(const Load& l) {
  if (lanes_ == 0 || in_first_lane_ || l.indices.empty()) return nullptr;
  const Buffer& buffer = buffer_of(l.buffer);
  const size_t last = l.indices.size() - 1;
  const auto step_here = [this](const Var* v) { return step_of(v); };
  if (!lane_ || pair_step(l.indices[last], lane_, step_here) != 1) return nullptr;
  for (size_t d = 0; d < last; ++d) {
    if (step(l.indices[d]) != 0) return nullptr;
  }
  const auto* stride = llvm::dyn_cast<llvm::ConstantInt>(places_.at(&buffer).strides[last]);
  if (!stride || !stride->isOne()) return nullptr;
  const bool outer = in_first_lane_;
  in_first_lane_ = true;
  const Address first = address(buffer, l.indices);
  in_first_lane_ = outer;
  llvm::Type* type = llvm::FixedVectorType::get(arithmetic_.memory_type(l.dtype), lanes_ / 2);
  const llvm::Align align = alignment_of(buffer);
  if (!mask_) return both_of_pairs(mark(b_.CreateAlignedLoad(type, first.pointer, align), buffer));
  Value* lanes_on[2];
  for (unsigned which : {0u, 1u}) lanes_on[which] = every_second(mask_, which);
  Value* on = b_.CreateOr(lanes_on[0], lanes_on[1]);
  Value* nothing = llvm::Constant::getNullValue(type);
  return both_of_pairs(mark(b_.CreateMaskedLoad(type, first.pointer, align, on, nothing), buffer));
}

/// Each element twice.
Value* KernelEmitter::both_of_pairs(Value* vector) {
  llvm::SmallVector<int, 64> lanes(lanes_);
  for (unsigned lane = 0; lane < lanes_; ++lane) lanes[lane] = static_cast<int>(lane / 2);
  return b_.CreateShuffleVector(vector, lanes);
}

/// The first lane of each two, or the second.
Value* KernelEmitter::every_second(Value* vector, unsigned which) {
  llvm::SmallVector<int, 64> lanes(lanes_ / 2);
  for (unsigned pair = 0; pair < lanes_ / 2; ++pair) lanes[pair] = static_cast<int>(pair * 2 + which);
  return b_.CreateShuffleVector(vector, lanes);
}

Value* KernelEmitter::load(const Load& l) {
  if (Value* pairs = paired_load(l)) return arithmetic_.from_memory(pairs, l.dtype);
  const Buffer& buffer = buffer_of(l.buffer);
  const Address a = address(buffer, l.indices);
  llvm::Type* element = arithmetic_.memory_type(l.dtype);
  const llvm::Align align = alignment_of(buffer);
  if (a.kind == Address::Uniform) {
    llvm::Instruction* raw = mark(b_.CreateAlignedLoad(element, safe_pointer(a.pointer), align), buffer);
    return arithmetic_.from_memory(raw, l.dtype);
  }
  if (a.kind == Address::Lanes || mask_) return arithmetic_.from_memory(masked_load(a, element, buffer), l.dtype);
  llvm::Type* type = llvm::FixedVectorType::get(element, lanes_);
  return arithmetic_.from_memory(mark(b_.CreateAlignedLoad(type, a.pointer, align), buffer), l.dtype);
}

/// Lanes from `first` on.
Value* KernelEmitter::part(Value* vector, unsigned first, unsigned count) {
  if (count == llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements()) return vector;
  llvm::SmallVector<int, 64> lanes(count);
  std::iota(lanes.begin(), lanes.end(), static_cast<int>(first));
  return b_.CreateShuffleVector(vector, lanes);
}

Value* KernelEmitter::masked_load(const Address& a, llvm::Type* element, const Buffer& buffer) {
  llvm::Type* type = llvm::FixedVectorType::get(element, lanes_);
  Value* nothing = llvm::Constant::getNullValue(type);
  const llvm::Align align = alignment_of(buffer);
  return mark(a.kind == Address::Lanes ? b_.CreateMaskedGather(type, a.pointer, align, all_lanes(mask_), nothing)
                                       : b_.CreateMaskedLoad(type, a.pointer, align, all_lanes(mask_), nothing),
              buffer);
}

void KernelEmitter::masked_store(Value* raw, const Address& a, const Buffer& buffer) {
  const llvm::Align align = alignment_of(buffer);
  mark(a.kind == Address::Lanes ? b_.CreateMaskedScatter(raw, a.pointer, align, all_lanes(mask_))
                                : b_.CreateMaskedStore(raw, a.pointer, align, all_lanes(mask_)),
       buffer);
}

/// The element in memory after the store, from what stands there.
Value* KernelEmitter::combined(const Store& s, Value* raw, Value* value) {
  const DType t = s.buffer->dtype;
  const DType computed = t.is_small_float() ? kFloat32 : t;
  Value* sum = arithmetic_.apply(combining_operator(s.mode), computed, {arithmetic_.from_memory(raw, t), value});
  return arithmetic_.to_memory(sum, computed, t);
}

/// Combines with what is read and writes it back if that still stands there, until it does. What stood there at last.
Value* KernelEmitter::exchange_until_kept(const Store& s, Value* pointer, Value* value) {
  llvm::Type* element = arithmetic_.memory_type(s.buffer->dtype);
  llvm::Type* bits = b_.getIntNTy(static_cast<unsigned>(s.buffer->dtype.bits));
  const llvm::Align align = alignment_of(*s.buffer);
  llvm::LoadInst* first = b_.CreateAlignedLoad(bits, pointer, align);
  first->setAtomic(llvm::AtomicOrdering::Monotonic);
  llvm::BasicBlock* before = b_.GetInsertBlock();
  llvm::BasicBlock* turn = llvm::BasicBlock::Create(context_, "combine", function_);
  llvm::BasicBlock* exit = llvm::BasicBlock::Create(context_, "combined", function_);
  b_.CreateBr(turn);
  b_.SetInsertPoint(turn);
  llvm::PHINode* seen = b_.CreatePHI(bits, 2);
  seen->addIncoming(first, before);
  Value* next = combined(s, b_.CreateBitCast(seen, element), value);
  Value* swap = b_.CreateAtomicCmpXchg(pointer, seen, b_.CreateBitCast(next, bits), align,
                                       llvm::AtomicOrdering::Monotonic, llvm::AtomicOrdering::Monotonic);
  seen->addIncoming(b_.CreateExtractValue(swap, 0), b_.GetInsertBlock());
  b_.CreateCondBr(b_.CreateExtractValue(swap, 1), exit, turn);
  b_.SetInsertPoint(exit);
  return b_.CreateBitCast(seen, element);
}

/// Blocks meet in tensors only: what a block owns it updates alone. Its accesses carry no promise that iterations stay
/// apart, since they do not.
void KernelEmitter::atomic_store(const Store& s) {
  Value* previous = atomic_update(s);
  if (!s.previous) return;
  env_[s.previous.get()] = Binding{arithmetic_.from_memory(previous, s.buffer->dtype), nullptr, 0};
}

/// What stood in the element before, as it is in memory.
Value* KernelEmitter::atomic_update(const Store& s) {
  HELVE_CHECK(lanes_ == 0, "lanes update an element in step");
  const Buffer& buffer = *s.buffer;
  HELVE_CHECK(buffer.scope != MemoryScope::Local && buffer.scope != MemoryScope::Fragment,
              "an atomic update of what no other thread reaches");
  const DType t = buffer.dtype;
  Value* value = expr(s.value);
  Value* pointer = address(buffer, s.indices).pointer;
  const llvm::Align align = alignment_of(buffer);
  if (!is_global(buffer)) {
    Value* raw = b_.CreateAlignedLoad(arithmetic_.memory_type(t), pointer, align);
    b_.CreateAlignedStore(combined(s, raw, value), pointer, align);
    return raw;
  }
  if (t.is_float()) return exchange_until_kept(s, pointer, value);
  using Operation = llvm::AtomicRMWInst::BinOp;
  const bool is_signed = t.code == TypeCode::Int;
  Operation operation = Operation::Add;
  if (s.mode == StoreMode::AtomicMax) operation = is_signed ? Operation::Max : Operation::UMax;
  if (s.mode == StoreMode::AtomicMin) operation = is_signed ? Operation::Min : Operation::UMin;
  return b_.CreateAtomicRMW(operation, pointer, value, align, llvm::AtomicOrdering::Monotonic);
}

void KernelEmitter::store(const Store& s) {
  if (s.is_atomic()) return atomic_store(s);
  HELVE_CHECK(s.mode == StoreMode::Write, "an update that lower_updates has left");
  const Buffer& buffer = *s.buffer;
  const Cast* cast = as<Cast>(s.value);
  const Expr& value = cast && cast->dtype == buffer.dtype ? cast->value : s.value;  // the conversion is the store's
  Value* raw = arithmetic_.to_memory(expr(value), value->dtype, buffer.dtype);
  const Address a = address(buffer, s.indices);
  const llvm::Align align = alignment_of(buffer);
  if (a.kind == Address::Uniform) {
    HELVE_CHECK(lanes_ == 0, "lanes store to one element");
    mark(b_.CreateAlignedStore(raw, a.pointer, align), buffer);
    return;
  }
  if (!raw->getType()->isVectorTy()) raw = b_.CreateVectorSplat(lanes_, raw);
  if (s.piece) {
    nontemporal_store(raw, a, s);
  } else if (a.kind == Address::Lanes || mask_) {
    masked_store(raw, a, buffer);
  } else {
    mark(b_.CreateAlignedStore(raw, a.pointer, align), buffer);
  }
}

}  // namespace helve::cpu
