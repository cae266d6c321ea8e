// From kernels to callable code: emit, optimise, generate, link.
// Each compile has its own context and its own dynamic library of the session, so that compiles do not meet and code
// can go.
#include "helve/codegen/llvm/cpu_module.h"

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DiagnosticHandler.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <atomic>
#include <chrono>

#include "helve/runtime/kernel_reports.h"
#include "helve/support/cancel.h"
#include "helve/support/diagnostic.h"
#include "host_machine.h"
#include "kernel_emitter.h"

namespace helve {

namespace cpu {
namespace {

/// LLVM's own messages never reach the user's terminal: hints that it could not follow are dropped, errors are faults
/// of helve.
struct Diagnostics final : llvm::DiagnosticHandler {
  bool handleDiagnostics(const llvm::DiagnosticInfo& info) override {
    if (info.getSeverity() != llvm::DS_Error) return true;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    HELVE_FAIL("LLVM reports: " + text);
  }
};

/// The context of one compile.
struct Context : llvm::LLVMContext {
  Context() { setDiagnosticHandler(std::make_unique<Diagnostics>()); }
};

void set_attributes(llvm::Function& f, const HostTarget& host) {
  f.setDoesNotThrow();
  f.addFnAttr("target-cpu", host.cpu);
  f.addFnAttr("target-features", host.features);
  f.addFnAttr("prefer-vector-width", host.prefer_vector_width);
  f.addFnAttr("no-trapping-math", "true");
  // A thread that calls may flush denormals. And where none did, LLVM 19 infers too much: it takes x for positive where
  // |x| > 0, and makes max(max(0, |x|), 0) a choice by x > 0.
  f.addFnAttr("denormal-fp-math", "dynamic,dynamic");
}

std::string symbol_of(size_t index) { return "helve_kernel_" + std::to_string(index); }

/// The kernels as one module; `scratch`, when given, receives each kernel's need.
std::unique_ptr<llvm::Module> emit_module(llvm::LLVMContext& context, llvm::TargetMachine& machine,
                                          const std::vector<KernelSource>& sources, const CpuOptions& options,
                                          std::vector<int64_t>* scratch) {
  auto module = std::make_unique<llvm::Module>("helve", context);
  module->setTargetTriple(machine.getTargetTriple().str());
  module->setDataLayout(machine.createDataLayout());
  const HostTarget& host = host_target(options.native);
  for (size_t i = 0; i < sources.size(); ++i) {
    throw_if_cancelled();
    KernelEmitter emitter(*module, host.arithmetic, options, sources[i]);
    emitter.emit(symbol_of(i), [&](llvm::Function& f) { set_attributes(f, host); });
    if (scratch) scratch->push_back(emitter.scratch_bytes());
  }
  std::string fault;
  llvm::raw_string_ostream stream(fault);
  HELVE_CHECK(!llvm::verifyModule(*module, &stream), "the emitted module is not valid: " + fault);
  return module;
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, int level) {
  llvm::PipelineTuningOptions tuning;
  tuning.LoopVectorization = level > 1;
  tuning.SLPVectorization = level > 1;
  // What nobody waits for ends early: passes that need not run do not, and then neither does the generator.
  llvm::PassInstrumentationCallbacks watchers;
  watchers.registerShouldRunOptionalPassCallback([](llvm::StringRef, llvm::Any) { return !is_cancelled(); });
  llvm::PassBuilder passes(&machine, tuning, std::nullopt, &watchers);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(graphs);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, graphs, modules);
  const llvm::OptimizationLevel levels[] = {llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
                                            llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::ModulePassManager pipeline =
      level == 0 ? passes.buildO0DefaultPipeline(levels[0]) : passes.buildPerModuleDefaultPipeline(levels[level]);
  pipeline.run(module, modules);
  throw_if_cancelled();
}

void generate(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type,
              llvm::SmallVectorImpl<char>& out) {
  llvm::raw_svector_ostream stream(out);
  llvm::legacy::PassManager passes;
  HELVE_CHECK(!machine.addPassesToEmitFile(passes, stream, nullptr, type), "the target emits no code of this kind");
  passes.run(module);
}

/// What kernels call.
void define_runtime(llvm::orc::JITDylib& library) {
  llvm::orc::LLJIT& jit = jit_session();
  llvm::orc::SymbolMap symbols;
  const auto define = [&](const char* name, auto* function) {
    symbols[jit.mangleAndIntern(name)] = {llvm::orc::ExecutorAddr::fromPtr(function),
                                          llvm::JITSymbolFlags::Callable | llvm::JITSymbolFlags::Exported};
  };
  define(kReportFault, &runtime::report_fault);
  define(kReportLine, &runtime::report_line);
  check_llvm(library.define(llvm::orc::absoluteSymbols(std::move(symbols))), "the symbols of the runtime");
}

class Stopwatch {
 public:
  double lap() {
    const auto now = std::chrono::steady_clock::now();
    const double seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    return seconds;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace
}  // namespace cpu

struct CpuModule::Code {
  llvm::orc::JITDylib* library = nullptr;
  ~Code() {
    if (!library) return;
    // A failure leaves the code in memory; there is nobody to tell.
    llvm::consumeError(cpu::jit_session().getExecutionSession().removeJITDylib(*library));
  }
};

CpuModule::CpuModule() : code_(std::make_unique<Code>()) {}
CpuModule::~CpuModule() = default;

std::shared_ptr<CpuModule> compile_cpu(const std::vector<KernelSource>& sources, const CpuOptions& options) {
  std::shared_ptr<CpuModule> result(new CpuModule);
  result->sources_ = sources;
  result->options_ = options;
  result->target_ = cpu::host_target(options.native).text();
  if (sources.empty()) return result;
  llvm::orc::LLJIT& jit = cpu::jit_session();
  cpu::MachineLease machine(options.native, options.optimization);
  cpu::Stopwatch watch;
  CpuCompileTimes& times = result->times_;

  cpu::Context context;
  std::vector<int64_t> scratch;
  std::unique_ptr<llvm::Module> module = cpu::emit_module(context, *machine, sources, options, &scratch);
  times.emit = watch.lap();
  cpu::optimize(*module, *machine, options.optimization);
  times.optimize = watch.lap();
  llvm::SmallVector<char, 0> object;
  cpu::generate(*module, *machine, llvm::CodeGenFileType::ObjectFile, object);
  times.generate = watch.lap();

  static std::atomic<uint64_t> next{0};
  const std::string name = "helve." + std::to_string(next++);
  llvm::orc::JITDylib& library = cpu::take(jit.createJITDylib(name), "a library of the session");
  result->code_->library = &library;
  cpu::define_runtime(library);
  auto buffer = std::make_unique<llvm::SmallVectorMemoryBuffer>(std::move(object), name, false);
  cpu::check_llvm(jit.addObjectFile(library, std::move(buffer)), "adding an object");
  for (size_t i = 0; i < sources.size(); ++i) {
    const llvm::orc::ExecutorAddr address = cpu::take(jit.lookup(library, cpu::symbol_of(i)), "linking a kernel");
    result->kernels_.push_back({sources[i].name, address.toPtr<CpuEntry>(), scratch[i]});
  }
  times.link = watch.lap();
  return result;
}

std::string CpuModule::llvm_ir(bool optimized) const {
  cpu::Context context;
  cpu::MachineLease machine(options_.native, options_.optimization);
  auto module = cpu::emit_module(context, *machine, sources_, options_, nullptr);
  if (optimized) cpu::optimize(*module, *machine, options_.optimization);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

std::string CpuModule::assembly() const {
  cpu::Context context;
  cpu::MachineLease machine(options_.native, options_.optimization);
  auto module = cpu::emit_module(context, *machine, sources_, options_, nullptr);
  cpu::optimize(*module, *machine, options_.optimization);
  llvm::SmallVector<char, 0> text;
  cpu::generate(*module, *machine, llvm::CodeGenFileType::AssemblyFile, text);
  return std::string(text.begin(), text.end());
}

}  // namespace helve
