// Detection of the host, the pool of target machines, the JIT session.
// All three live as long as the process: making them anew costs more than a small kernel.
#include "host_machine.h"

#include <llvm/ExecutionEngine/Orc/ExecutionUtils.h>
#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>

#include <mutex>

#include "helve/support/diagnostic.h"
#include "helve/target/machine.h"

namespace helve::cpu {

void check_llvm(llvm::Error error, const char* what) {
  if (error) HELVE_FAIL(std::string(what) + ": " + llvm::toString(std::move(error)));
}

namespace {

/// LLVM 19 takes elements at (5 * i) % 64 for ones 5 apart, under a check that they do not begin anew which it then
/// leaves out. So it must not join strided accesses to one of a whole vector, which stay gathers, nor vectorize a loop
/// whose dependences rest on such checks.
void distrust_checks_of_strides() {
  llvm::StringMap<llvm::cl::Option*>& options = llvm::cl::getRegisteredOptions();
  for (const auto& [name, value] :
       {std::pair{"enable-interleaved-mem-accesses", "false"}, std::pair{"vectorize-scev-check-threshold", "0"}}) {
    const auto option = options.find(name);
    HELVE_CHECK(option != options.end(), std::string("LLVM has no option ") + name);
    HELVE_CHECK(!option->second->addOccurrence(0, name, value), std::string("LLVM refuses the option ") + name);
  }
}

llvm::orc::JITTargetMachineBuilder detect(bool native, int optimization) {
  static const bool initialized = [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    distrust_checks_of_strides();
    return true;
  }();
  (void)initialized;
  auto builder = take(llvm::orc::JITTargetMachineBuilder::detectHost(), "detection of the processor");
  if (!native) {
    builder.setCPU(builder.getTargetTriple().isX86() ? "x86-64" : "generic");
    builder.getFeatures() = llvm::SubtargetFeatures();
  }
  builder.setRelocationModel(llvm::Reloc::PIC_);
  builder.setCodeGenOptLevel(static_cast<llvm::CodeGenOptLevel>(optimization));
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // only T.fma contracts
  builder.setOptions(options);
  return builder;
}

struct Pool {
  std::mutex mutex;
  std::vector<std::unique_ptr<llvm::TargetMachine>> idle[2][4];
};

Pool& pool() {
  static Pool* const instance = new Pool;
  return *instance;
}

HostTarget describe(bool native) {
  auto builder = detect(native, 3);
  HostTarget h;
  h.triple = builder.getTargetTriple().str();
  h.cpu = builder.getCPU();
  h.features = builder.getFeatures().getString();
  auto has = [&](const char* name) {
    return ("," + h.features + ",").find(std::string(",+") + name + ",") != std::string::npos;
  };
  const bool x86 = builder.getTargetTriple().isX86();
  h.arithmetic.fma = !x86 || has("fma");
  h.arithmetic.half = !x86 || has("f16c");
  h.arithmetic.scale = has("avx512f");
  constexpr int64_t kLeastVector = 16;  // bytes, which every processor of the architecture has
  h.prefer_vector_width = std::to_string(8 * (native ? host_machine().vector_bytes : kLeastVector));
  return h;
}

}  // namespace

const HostTarget& host_target(bool native) {
  static const HostTarget* const targets[] = {new HostTarget(describe(false)), new HostTarget(describe(true))};
  return *targets[native];
}

MachineLease::MachineLease(bool native, int optimization) {
  HELVE_CHECK(optimization >= 0 && optimization <= 3, "optimization levels are 0 to 3");
  Pool& p = pool();
  home_ = &p.idle[native][optimization];
  {
    std::lock_guard lock(p.mutex);
    if (!home_->empty()) {
      machine_ = std::move(home_->back());
      home_->pop_back();
      return;
    }
  }
  machine_ = take(detect(native, optimization).createTargetMachine(), "the target machine");
}

MachineLease::~MachineLease() {
  std::lock_guard lock(pool().mutex);
  home_->push_back(std::move(machine_));
}

llvm::orc::LLJIT& jit_session() {
  static llvm::orc::LLJIT* const session = [] {
    llvm::orc::LLJITBuilder builder;
    builder.setJITTargetMachineBuilder(detect(true, 3));
    builder.setPlatformSetUp(llvm::orc::setUpInactivePlatform);
    auto jit = take(builder.create(), "the JIT session");
    return jit.release();
  }();
  return *session;
}

}  // namespace helve::cpu
