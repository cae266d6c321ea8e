// Long sequences of statements as functions of their own.
// The time of LLVM's register allocation grows with the square of a function, since what does not change in the loop
// over blocks (constants above all) is kept for all of it. Statements that follow one another share little, so a part
// of a few thousand instructions is compiled as well alone; the call costs nothing beside it.
#include <llvm/Transforms/Utils/CodeExtractor.h>

#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

namespace {

constexpr size_t kMinPart = 1024;       // instructions
constexpr size_t kLargeFunction = 4096;  // beyond it a function is cut

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

/// The blocks become a function that nothing is inlined from.
void outline(llvm::ArrayRef<llvm::BasicBlock*> blocks, const llvm::CodeExtractorAnalysisCache& known) {
  llvm::CodeExtractor extractor(blocks);
  HELVE_CHECK(extractor.isEligible(), "statements that are no function");
  llvm::Function* part = extractor.extractCodeRegion(known);
  HELVE_CHECK(part, "statements that do not become a function");
  part->addFnAttr(llvm::Attribute::NoInline);
}

}  // namespace

/// Cuts the body where it has grown too large; what it was before is the sequence of calls.
void KernelEmitter::outline_parts() {
  if (boundaries_.empty() || function_->getInstructionCount() <= kLargeFunction) return;
  const llvm::CodeExtractorAnalysisCache known(*function_);
  for (const std::vector<llvm::BasicBlock*>& places : boundaries_) {
    for (size_t first = 0; first + 1 < places.size();) {
      llvm::SmallVector<llvm::BasicBlock*, 64> blocks;
      size_t instructions = 0;
      size_t last = first;
      while (last + 1 < places.size() && instructions < kMinPart) {
        for (llvm::BasicBlock* block : blocks_between(places[last], places[last + 1])) {
          blocks.push_back(block);
          instructions += block->size();
        }
        ++last;
      }
      if (instructions >= kMinPart) outline(blocks, known);
      first = last;
    }
  }
}

}  // namespace helve::cpu
