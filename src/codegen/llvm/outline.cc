// Statements that become functions of their own.
// They are emitted in their place and extracted when what is known of aliasing is complete, so that a function takes
// what it uses as arguments.
#include <llvm/Transforms/Utils/CodeExtractor.h>

#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

namespace {

/// The blocks from `begin` on, as far as control does not pass `end`.
llvm::SmallVector<llvm::BasicBlock*, 64> blocks_between(llvm::BasicBlock* begin, const llvm::BasicBlock* end) {
  llvm::SmallVector<llvm::BasicBlock*, 64> out{begin};
  llvm::SmallPtrSet<const llvm::BasicBlock*, 32> seen{begin, end};
  for (size_t i = 0; i < out.size(); ++i) {
    for (llvm::BasicBlock* next : llvm::successors(out[i])) {
      if (seen.insert(next).second) out.push_back(next);
    }
  }
  return out;
}

}  // namespace

void KernelEmitter::outline(const Outline& s) {
  HELVE_CHECK(lanes_ == 0, "a function of lanes");
  const auto boundary = [&] {
    llvm::BasicBlock* block = llvm::BasicBlock::Create(context_, "part", function_);
    b_.CreateBr(block);
    b_.SetInsertPoint(block);
    return block;
  };
  llvm::BasicBlock* begin = boundary();
  const int64_t used = scratch_used_;
  stmt(s.body);
  scratch_used_ = used;
  outlines_.emplace_back(begin, boundary());
}

/// Nothing is inlined from the functions.
void KernelEmitter::extract_outlines() {
  if (outlines_.empty()) return;
  const llvm::CodeExtractorAnalysisCache known(*function_);
  for (const auto& [begin, end] : outlines_) {
    llvm::CodeExtractor extractor(blocks_between(begin, end));
    HELVE_CHECK(extractor.isEligible(), "statements that are no function");
    llvm::Function* part = extractor.extractCodeRegion(known);
    HELVE_CHECK(part, "statements that do not become a function");
    part->addFnAttr(llvm::Attribute::NoInline);
  }
}

}  // namespace helve::cpu
