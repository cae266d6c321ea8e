// Stores that go around the caches, and reads that begin early.
// A tensor that does not fit into the caches pays for each line twice when it is written through them: the line is
// fetched first. Whether it fits, and whether its rows allow such stores, is known at the call: loops that write it
// exist in both forms.
#include <algorithm>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

namespace {

constexpr int64_t kStreamBytes = 16;  // of the least store around the caches; alignment of its address

/// Calls `f(store, loop, direct)` with every store of the vector loops in `s` and its loop; `direct` says that no other
/// loop, and no condition, stands around it.
template <class F>
void vector_stores(const Stmt& s, bool direct, F&& f) {
  if (!s) return;
  const For* loop = as<For>(s);
  if (loop && loop->loop == LoopKind::Vectorized) {
    walk(loop->body, [&](const Stmt& inner) {
      if (const Store* n = as<Store>(inner)) f(*n, *loop, direct);
    });
    return;
  }
  const bool still = direct && as<Seq>(s);
  for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { vector_stores(part, still, f); });
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

/// Does lane 0 of this store stand where a store around the caches may, if the rows of the tensor do?
bool KernelEmitter::can_stream(const Store& s, const For& vectors) const {
  const int64_t unit = kStreamBytes / s.buffer->dtype.bytes();
  const int64_t* begin = int_value(vectors.begins[0]);
  return stream_if_.contains(s.buffer.get()) && !s.indices.empty() && begin && *begin % unit == 0 &&
         starts_aligned(s.indices.back(), vectors.vars[0].get(), unit);
}

/// The tensors that a form of this loop writes around the caches as its vectors stand. None where a loop deeper in it
/// could write others so: then each loop decides for what it writes itself.
KernelEmitter::Streams KernelEmitter::streams_of(const For& s) const {
  Streams own, deeper;
  const auto note = [&](const Store& each, const For& vectors, bool direct) {
    if (can_stream(each, vectors)) (direct ? own : deeper).insert(each.buffer.get());
  };
  const bool is_vector = s.loop == LoopKind::Vectorized;
  vector_stores(is_vector ? Stmt(Ref<const For>(&s)) : s.body, true, note);
  const bool alone = std::all_of(deeper.begin(), deeper.end(), [&](const Buffer* b) { return own.contains(b); });
  return alone ? own : Streams();
}

/// Emits the loop in two forms when it writes what may go around the caches; false when it does not. The condition of
/// the first form is made from the very tensors that it may write so.
bool KernelEmitter::two_forms(const For& s) {
  if (stores_ != Stores::Undecided || lanes_ != 0 || stream_if_.empty()) return false;
  const VarRef shift = make_var("shift");
  const std::optional<VectorWalk> lines = walk_of_lines(s, shift);
  Streams streams;
  llvm::SmallVector<Value*, 2> conditions;
  if (lines) {
    streams.insert(lines->store->buffer.get());
    conditions.push_back(stream_if_.at(lines->store->buffer.get()).large);
  } else {
    streams = streams_of(s);
    for (const Buffer* buffer : streams) conditions.push_back(stream_if_.at(buffer).lies_well);
  }
  if (conditions.empty()) return false;
  llvm::BasicBlock* around = llvm::BasicBlock::Create(context_, "around", function_);
  llvm::BasicBlock* through = llvm::BasicBlock::Create(context_, "through", function_);
  llvm::BasicBlock* join = llvm::BasicBlock::Create(context_, "join", function_);
  b_.CreateCondBr(b_.CreateAnd(conditions), around, through);
  b_.SetInsertPoint(around);
  streams_ = std::move(streams);
  if (lines) {
    whole_lines(s, *lines, shift);
  } else {
    stores_ = Stores::Around;
    loop(s);
  }
  streams_.clear();
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
  if (!streams_.contains(s.buffer.get())) return false;
  const bool lines = stores_ == Stores::Lines;
  if (!lines && !can_stream(s, *vectors_)) return false;
  auto* type = llvm::cast<llvm::FixedVectorType>(raw->getType());
  const int64_t bytes = lines ? kCacheLine : kStreamBytes;
  const unsigned piece = static_cast<unsigned>(bytes / s.buffer->dtype.bytes());
  if (type->getNumElements() % piece != 0) return false;
  for (unsigned first = 0; first < type->getNumElements(); first += piece) {
    Value* place = b_.CreateConstInBoundsGEP1_64(type->getElementType(), pointer, first);
    store_around(part(raw, first, piece), place, bytes, s);
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
