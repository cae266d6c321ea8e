// Stores that go around the caches, and prefetches.
// Where they pay is decided by passes (stream_stores, prefetch_reads); each is printed as the instructions for it.
#include <algorithm>

#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

namespace {

constexpr int64_t kCacheLine = 64;  // bytes

}  // namespace

void KernelEmitter::nontemporal_store(Value* raw, const Address& a, const Store& s) {
  HELVE_CHECK(a.kind == Address::Contiguous && !mask_, "lanes that go around the caches are whole pieces");
  auto* type = llvm::cast<llvm::FixedVectorType>(raw->getType());
  const auto piece = static_cast<unsigned>(s.piece / s.buffer->dtype.bytes());
  llvm::MDNode* once = llvm::MDNode::get(context_, {llvm::ConstantAsMetadata::get(b_.getInt32(1))});
  for (unsigned first = 0; first < type->getNumElements(); first += piece) {
    Value* place = b_.CreateConstInBoundsGEP1_64(type->getElementType(), a.pointer, first);
    llvm::Instruction* store =
        b_.CreateAlignedStore(part(raw, first, piece), place, llvm::Align(static_cast<uint64_t>(s.piece)));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal, once);
    mark(store, *s.buffer);
  }
  has_nontemporal_stores_ = true;
}

/// Stores around the caches are ordered by nothing else: what follows the kernel must see them.
void KernelEmitter::order_nontemporal_stores() {
  if (has_nontemporal_stores_) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
}

/// Asks for the lines of all lanes' elements, which are next to each other.
void KernelEmitter::prefetch(const Prefetch& s) {
  may_lie_outside_ = true;
  in_first_lane_ = true;
  const Address a = address(*s.buffer, s.indices);
  in_first_lane_ = false;
  may_lie_outside_ = false;
  const int64_t bytes = std::max(lanes_, 1u) * s.buffer->dtype.bytes();
  for (int64_t at = 0; at < bytes; at += kCacheLine) {
    Value* line = b_.CreateGEP(b_.getInt8Ty(), a.pointer, b_.getInt64(static_cast<uint64_t>(at)));
    Value* how[] = {line, b_.getInt32(0), b_.getInt32(3), b_.getInt32(1)};  // for reading, to the first level, data
    b_.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.getPtrTy()}, how);
  }
}

}  // namespace helve::cpu
