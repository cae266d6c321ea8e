// Stores that go around the caches, and reads that begin early.
// A tensor that does not fit into the caches pays for each line twice when it is written through them: the line is
// fetched first. Whether it fits, and whether its rows allow such stores, is known at the call: loops that write it
// exist in both forms.
#include <numeric>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

namespace {

constexpr int64_t kStreamBytes = 16;  // of the least store around the caches; alignment of its address

/// Calls `f` with the stores of the vector loops that stand directly in `s`, and their variables.
void vector_stores(const Stmt& s, const std::function<void(const Store&, const Var*)>& f) {
  if (const Seq* n = as<Seq>(s)) {
    for (const Stmt& part : n->stmts) vector_stores(part, f);
  }
  const For* loop = as<For>(s);
  if (!loop || loop->loop != LoopKind::Vectorized) return;
  walk(loop->body, [&](const Stmt& inner) {
    if (const Store* n = as<Store>(inner)) f(*n, loop->vars[0].get());
  });
}

}  // namespace

/// At the start of the body: for each parameter that may be written around the caches, whether it should.
void KernelEmitter::decide_streams() {
  if (!arithmetic_.features().streams) return;
  for (const BufferRef& ref : interface_.buffers) {
    const Buffer& buffer = *ref;
    if (!streamed_.contains(&buffer)) continue;
    const Place& p = places_.at(&buffer);
    Value* bytes = b_.getInt64(static_cast<uint64_t>(buffer.dtype.bytes()));
    Value* bits = b_.CreatePtrToInt(p.base, b_.getInt64Ty());
    Value* total = bytes;
    for (size_t d = 0; d < buffer.rank(); ++d) {
      if (d + 1 < buffer.rank()) bits = b_.CreateOr(bits, b_.CreateMul(p.strides[d], bytes));
      total = b_.CreateMul(total, expr(buffer.shape[d]));
    }
    Value* aligned = b_.CreateICmpEQ(b_.CreateAnd(bits, b_.getInt64(kStreamBytes - 1)), b_.getInt64(0));
    Value* large = b_.CreateICmpUGE(total, b_.getInt64(static_cast<uint64_t>(options_.stream_bytes)));
    stream_if_[&buffer] = {large, b_.CreateAnd(aligned, large)};
  }
}

bool KernelEmitter::can_stream(const Store& s, const Var* lane) const {
  const int64_t unit = kStreamBytes / s.buffer->dtype.bytes();
  return stream_if_.contains(s.buffer.get()) && !s.indices.empty() && starts_aligned(s.indices.back(), lane, unit);
}

/// When the stores of this loop may go around the caches as they stand; null when never.
Value* KernelEmitter::where_streams(const For& s) {
  llvm::SmallVector<Value*, 2> conditions;
  std::unordered_set<const Buffer*> seen;
  auto note = [&](const Store& each, const Var* lane) {
    if (!can_stream(each, lane) || !seen.insert(each.buffer.get()).second) return;
    conditions.push_back(stream_if_.at(each.buffer.get()).lies_well);
  };
  if (s.loop == LoopKind::Vectorized) {
    walk(s.body, [&](const Stmt& inner) {
      if (const Store* n = as<Store>(inner)) note(*n, s.vars[0].get());
    });
  } else {
    vector_stores(s.body, note);
  }
  return conditions.empty() ? nullptr : b_.CreateAnd(conditions);
}

/// Emits the loop in two forms when it writes what may go around the caches; false when it does not.
bool KernelEmitter::two_forms(const For& s) {
  if (stores_ != Stores::Undecided || lanes_ != 0 || stream_if_.empty()) return false;
  const VarRef shift = make_var("shift");
  const std::optional<VectorWalk> lines = walk_of_lines(s, shift);
  Value* condition = lines ? stream_if_.at(lines->store->buffer.get()).large : where_streams(s);
  if (!condition) return false;
  llvm::BasicBlock* around = llvm::BasicBlock::Create(context_, "around", function_);
  llvm::BasicBlock* through = llvm::BasicBlock::Create(context_, "through", function_);
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", function_);
  b_.CreateCondBr(condition, around, through);
  b_.SetInsertPoint(around);
  if (lines) {
    whole_lines(s, *lines, shift);
  } else {
    stores_ = Stores::Around;
    loop(s);
  }
  b_.CreateBr(join);
  b_.SetInsertPoint(through);
  stores_ = Stores::Through;
  loop(s);
  b_.CreateBr(join);
  stores_ = Stores::Undecided;
  b_.SetInsertPoint(join);
  return true;
}

/// The vector in pieces that the processor writes without reading the line; false when this store goes through the
/// caches.
bool KernelEmitter::stream(Value* raw, Value* pointer, const Store& s) {
  const bool lines = stores_ == Stores::Lines && stream_if_.contains(s.buffer.get());
  if (!lines && (stores_ != Stores::Around || !can_stream(s, lane_))) return false;
  auto* type = llvm::cast<llvm::FixedVectorType>(raw->getType());
  const int64_t bytes = lines ? kCacheLine : kStreamBytes;
  const unsigned piece = static_cast<unsigned>(bytes / s.buffer->dtype.bytes());
  if (type->getNumElements() % piece != 0) return false;
  for (unsigned first = 0; first < type->getNumElements(); first += piece) {
    llvm::SmallVector<int, 64> lanes(piece);
    std::iota(lanes.begin(), lanes.end(), static_cast<int>(first));
    Value* place = b_.CreateConstInBoundsGEP1_64(type->getElementType(), pointer, first);
    store_around(b_.CreateShuffleVector(raw, lanes), place, bytes, s);
  }
  return true;
}

void KernelEmitter::store_around(Value* piece, Value* place, int64_t alignment, const Store& s) {
  llvm::MDNode* once = llvm::MDNode::get(context_, {llvm::ConstantAsMetadata::get(b_.getInt32(1))});
  llvm::Instruction* store = b_.CreateAlignedStore(piece, place, llvm::Align(static_cast<uint64_t>(alignment)));
  store->setMetadata(llvm::LLVMContext::MD_nontemporal, once);
  mark(store, *s.buffer);
}

/// Stores around the caches are ordered by nothing else: what follows the kernel must see them.
void KernelEmitter::order_streams() {
  if (!stream_if_.empty()) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

/// Asks for the lines of elements that are read soon.
void KernelEmitter::fetch_early(const For& s, unsigned lanes) {
  for (const EarlyRead& read : early_reads_) {
    if (read.loop != &s) continue;
    may_lie_outside_ = true;
    in_first_lane_ = true;
    const Address a = address(*read.buffer, read.indices);
    in_first_lane_ = false;
    may_lie_outside_ = false;
    const int64_t bytes = lanes * read.buffer->dtype.bytes();
    for (int64_t at = 0; at < bytes; at += kCacheLine) {
      Value* line = b_.CreateGEP(b_.getInt8Ty(), a.pointer, b_.getInt64(static_cast<uint64_t>(at)));
      Value* how[] = {line, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)};  // for reading, to the first level, data
      b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, how);
    }
  }
}

}  // namespace helve::cpu
