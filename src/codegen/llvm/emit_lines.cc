// Walks over vectors that begin where lines of the cache begin.
// A store of a whole line goes around the caches for the price of its bytes, one of a part waits for the rest of the
// line. So the walk is moved to the first line of the row; what is before and after goes through the caches. And it
// goes by turns over the halves or quarters of the row: memory serves several pages at a time better than one.
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

namespace {

constexpr int64_t kPage = 4096;    // bytes
constexpr int64_t kMaxTurnsLog = 2;  // the logarithm of it

}  // namespace

/// The loop as a walk that can be moved, where it writes what may go around the caches in vectors of whole lines.
std::optional<VectorWalk> KernelEmitter::walk_of_lines(const For& s, const VarRef& shift) {
  std::optional<VectorWalk> out = vector_walk(s, shift);
  if (!out || !stream_if_.contains(out->store->buffer.get())) return std::nullopt;
  return out->lanes * out->store->buffer->dtype.bytes() % kCacheLine == 0 ? out : std::nullopt;
}

void KernelEmitter::whole_lines(const For& s, const VectorWalk& walk, const VarRef& shift) {
  const size_t known = early_reads_.size();
  for (size_t i = 0; i < known; ++i) {
    if (early_reads_[i].loop != walk.original) continue;
    early_reads_.push_back(early_reads_[i]);
    early_reads_.back().loop = walk.vectors;
  }
  Value* begin = expr(s.begins[0]);
  Value* extent = expr(s.extents[0]);
  for (int64_t inner : walk.extents) extent = b_.CreateMul(extent, b_.getInt64(static_cast<uint64_t>(inner)));
  Value* first = first_place(begin, walk, shift);
  const auto bytes = static_cast<uint64_t>(walk.store->buffer->dtype.bytes());
  Value* past = b_.CreateAnd(b_.CreateNeg(b_.CreatePtrToInt(first, b_.getInt64Ty())), b_.getInt64(kCacheLine - 1));
  Value* skipped = b_.CreateUDiv(past, b_.getInt64(bytes));
  env_[shift.get()] = Binding{skipped, nullptr, 0};
  Value* vectors = b_.CreateSub(extent, b_.CreateZExt(b_.CreateIsNotNull(skipped), b_.getInt64Ty()));
  Value* turns = turns_of(extent, walk.lanes * walk.store->buffer->dtype.bytes());
  stores_ = Stores::Lines;
  counted_loop(vectors,
               [&](Value* turn) {
                 bind_vector(begin, by_turns(turn, vectors, turns), walk);
                 stmt(walk.body);
               },
               {llvm::MDNode::get(context_, {llvm::MDString::get(context_, "llvm.loop.unroll.disable")})});
  stores_ = Stores::Parts;
  place_anew(walk.body);
  part_lines(begin, extent, walk, skipped);
  place_anew(walk.body);
  early_reads_.resize(known);
}

/// Gives the buffers of an iteration other memory, for what is stored under a mask does not become a register. Memory
/// of the same kind: what has no other place must not seem apart from what takes its old one.
void KernelEmitter::place_anew(const Stmt& body) {
  helve::walk(body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    const auto found = n ? places_.find(n->buffer.get()) : places_.end();
    if (found == places_.end() || found->second.begin >= 0) return;
    stack_used_ -= found->second.stack;
    places_.erase(found);
  });
}

/// Gives the loops' variables their values in vector `at`, which is -1 before the first.
void KernelEmitter::bind_vector(Value* begin, Value* at, const VectorWalk& walk) {
  for (size_t k = walk.extents.size(); k-- > 0;) {
    Value* extent = b_.getInt64(static_cast<uint64_t>(walk.extents[k]));
    Value* counted = b_.CreateAdd(at, extent);  // not negative
    env_[walk.vars[k + 1].get()] = Binding{b_.CreateURem(counted, extent), nullptr, 0};
    at = b_.CreateSub(b_.CreateUDiv(counted, extent), b_.getInt64(1));
  }
  env_[walk.vars[0].get()] = Binding{b_.CreateAdd(begin, at), nullptr, 0};
}

/// Where the walk stores its first element.
Value* KernelEmitter::first_place(Value* begin, const VectorWalk& walk, const VarRef& shift) {
  env_[shift.get()] = env_[walk.vectors->vars[0].get()] = Binding{b_.getInt64(0), nullptr, 0};
  bind_vector(begin, b_.getInt64(0), walk);
  may_lie_outside_ = true;  // the walk may be empty
  Value* first = address(*walk.store->buffer, walk.store->indices).pointer;
  may_lie_outside_ = false;
  return first;
}

/// The logarithm of the number of parts that take turns: each has a page or more.
Value* KernelEmitter::turns_of(Value* extent, int64_t bytes) {
  Value* turns = b_.getInt64(0);
  for (int64_t log = 1; log <= kMaxTurnsLog; ++log) {
    Value* pages = b_.CreateICmpSGE(extent, b_.getInt64(static_cast<uint64_t>((kPage << log) / bytes)));
    turns = b_.CreateAdd(turns, b_.CreateZExt(pages, b_.getInt64Ty()));
  }
  return turns;
}

/// The vector whose turn it is: of the first part, of the second, and so on; then those that make no whole round.
Value* KernelEmitter::by_turns(Value* turn, Value* vectors, Value* turns) {
  Value* part = b_.CreateLShr(vectors, turns);
  Value* round = b_.CreateLShr(turn, turns);
  Value* which = b_.CreateSub(turn, b_.CreateShl(round, turns));
  Value* inside = b_.CreateICmpSLT(turn, b_.CreateShl(part, turns));
  return b_.CreateSelect(inside, b_.CreateAdd(round, b_.CreateMul(which, part)), turn);
}

/// The `skipped` elements before the first whole line, and what is left after the last vector: a vector before the
/// first and the last one, each with the lanes on that are elements of the walk.
void KernelEmitter::part_lines(Value* begin, Value* extent, const VectorWalk& walk, Value* skipped) {
  Value* any = b_.CreateAnd(b_.CreateIsNotNull(skipped), b_.CreateICmpSGT(extent, b_.getInt64(0)));
  const auto lanes = static_cast<unsigned>(walk.lanes);
  Value* first_lane = b_.CreateVectorSplat(lanes, b_.CreateSub(b_.getInt64(lanes), skipped));
  HELVE_CHECK(mask_ == nullptr, "lines are walked where all lanes run");
  counted_loop(b_.CreateSelect(any, b_.getInt64(2), b_.getInt64(0)),
               [&](Value* end) {
                 Value* last = b_.CreateIsNotNull(end);
                 Value* before = b_.getInt64(static_cast<uint64_t>(-1));
                 bind_vector(begin, b_.CreateSelect(last, b_.CreateSub(extent, b_.getInt64(1)), before), walk);
                 lanes_ = lanes;
                 Value* low = b_.CreateICmpULT(lanes_from(b_.getInt64(0), 1), first_lane);
                 lanes_ = 0;
                 mask_ = b_.CreateICmpEQ(low, b_.CreateVectorSplat(lanes, last));
                 ends_walk_ = last;
                 stmt(walk.body);
                 mask_ = ends_walk_ = nullptr;
               },
               {});
}

/// One line of the vector is written in part, the last: those before it are whole after the walk, and none before it.
void KernelEmitter::store_parts(Value* raw, Value* pointer, const Store& s) {
  auto* type = llvm::cast<llvm::FixedVectorType>(raw->getType());
  const auto line = static_cast<unsigned>(kCacheLine / s.buffer->dtype.bytes());
  const unsigned whole = type->getNumElements() - line;
  const auto place = [&](unsigned first) { return b_.CreateConstGEP1_64(type->getElementType(), pointer, first); };
  llvm::BasicBlock* lines = llvm::BasicBlock::Create(context_, "lines", function_);
  llvm::BasicBlock* rest = llvm::BasicBlock::Create(context_, "rest", function_);
  b_.CreateCondBr(ends_walk_, lines, rest);
  b_.SetInsertPoint(lines);
  for (unsigned first = 0; first < whole; first += line) {
    store_around(part(raw, first, line), place(first), kCacheLine, s);
  }
  b_.CreateBr(rest);
  b_.SetInsertPoint(rest);
  const llvm::Align align(static_cast<uint64_t>(s.buffer->dtype.bytes()));
  mark(b_.CreateMaskedStore(part(raw, whole, line), place(whole), align, part(mask_, whole, line)), *s.buffer);
}

}  // namespace helve::cpu
