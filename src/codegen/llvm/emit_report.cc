// Reports of a kernel.
// They are calls of the runtime with the number of the report and a word for each value; a fault does not return.
#include "helve/ir/tensor/report.h"

#include <algorithm>

#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cpu {

using llvm::Value;

void KernelEmitter::report(const Report& s) {
  HELVE_CHECK(lanes_ == 0, "a report in vector code");
  const auto at = std::find(source_.reports.begin(), source_.reports.end(), described(s));
  HELVE_CHECK(at != source_.reports.end(), "a report that the kernel does not list");
  llvm::Type* word = b_.getInt64Ty();
  Value* words = stack_slot(word, std::max<size_t>(s.values.size(), 1));
  const std::vector<Expr> values = reported_values(s);
  for (size_t i = 0; i < values.size(); ++i) {
    Value* value = expr(values[i]);
    Value* bits = value->getType()->isDoubleTy() ? b_.CreateBitCast(value, word) : b_.CreateZExtOrTrunc(value, word);
    b_.CreateStore(bits, b_.CreateConstInBoundsGEP1_64(word, words, i));
  }
  auto* type = llvm::FunctionType::get(b_.getVoidTy(), {word, b_.getPtrTy()}, false);
  llvm::FunctionCallee callee = module_.getOrInsertFunction(s.fault ? kReportFault : kReportLine, type);
  auto* function = llvm::cast<llvm::Function>(callee.getCallee());
  function->setDoesNotThrow();
  if (s.fault) {
    function->setDoesNotReturn();
    function->addFnAttr(llvm::Attribute::Cold);
  }
  b_.CreateCall(callee, {b_.getInt64(static_cast<uint64_t>(at - source_.reports.begin())), words});
}

}  // namespace helve::cpu
