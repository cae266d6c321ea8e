// One lowered kernel as LLVM functions.
// An entry of the runtime's form unpacks arguments and calls the body, whose pointer parameters carry what is known of
// aliasing.
#pragma once

#include "arithmetic.h"
#include "helve/analysis/kernel_interface.h"
#include "helve/analysis/lanes.h"
#include "helve/codegen/llvm/cpu_module.h"

namespace helve::cpu {

/// The functions of the runtime that kernels call (runtime/kernel_reports.h).
inline constexpr const char* kReportFault = "helve_report_fault";
inline constexpr const char* kReportLine = "helve_report_line";

class KernelEmitter {
 public:
  KernelEmitter(llvm::Module& module, Features features, const CpuOptions& options, const KernelSource& source);

  /// Adds the entry function `symbol` and its body to the module.
  void emit(const std::string& symbol, const std::function<void(llvm::Function&)>& set_attributes);
  int64_t scratch_bytes() const { return scratch_peak_; }

 private:
  /// A scalar variable. In vector code `value` may be a vector; `first` then is its value in lane 0 where `step`, its
  /// constant step from lane to lane, is known.
  struct Binding {
    llvm::Value* value = nullptr;
    llvm::Value* first = nullptr;
    std::optional<int64_t> step = 0;
  };

  /// Where a buffer lies: address of element 0 and strides in elements.
  struct Place {
    llvm::Value* base = nullptr;
    llvm::Type* element = nullptr;
    llvm::SmallVector<llvm::Value*, 4> strides;
    size_t loop_depth = 0;  ///< parallel loops around its allocation
    int64_t begin = -1, end = -1;  ///< bytes of scratch, when it stands there
  };

  /// The address of an access in all lanes: `base` alone when they are one, `lanes` a vector of addresses, or `base` of
  /// lane 0 with elements side by side.
  struct Address {
    enum Kind { Uniform, Contiguous, Lanes } kind;
    llvm::Value* pointer;
  };

  /// A parallel loop, and the mark of accesses of which iterations promise that none waits for another.
  struct ParallelLoop {
    const For* loop;
    llvm::MDNode* group;
    std::unordered_map<const Buffer*, bool> reuses;  ///< private memory, as scratch of one iteration after the other
  };

  // kernel_emitter.cc
  llvm::Function* declare_body(const std::string& symbol);
  void emit_entry(const std::string& symbol, llvm::Function* body,
                  const std::function<void(llvm::Function&)>& set_attributes);
  void emit_body(llvm::Function* body);
  void bind_arguments(llvm::Function* body);
  void emit_blocks(llvm::Function* body);
  void place_instances(llvm::Function* body, llvm::Value* block);
  void separate_buffers();

  // emit_stmt.cc
  void stmt(const Stmt& s);
  void seq(const Seq& s);
  void alloc(const Alloc& s);
  void bind(const Bind& s);
  void if_then(const If& s);
  void branch(llvm::Value* condition, const Stmt& then_body, const Stmt& else_body);
  void while_loop(const While& s);
  void loop(const For& s);
  void loop_dimension(const For& s, size_t dim, llvm::MDNode* group);
  void vector_loop(const For& s);
  /// Runs `body` for 0 <= iv < extent.
  void counted_loop(llvm::Value* extent, const std::function<void(llvm::Value*)>& body,
                    llvm::ArrayRef<llvm::Metadata*> hints);

  // outline.cc
  void outline(const Outline& s);
  void extract_outlines();

  // emit_expr.cc
  llvm::Value* expr(const Expr& e);
  llvm::Value* apply(const Apply& a);
  llvm::Value* convert(const Cast& c);
  bool narrows(const Apply& a, bool vector) const;
  bool fits64(const Expr& e) const;
  llvm::Value* select(const Apply& a);
  llvm::Value* short_circuit(const Apply& a);
  llvm::Value* under_branch(llvm::Value* condition, const std::function<llvm::Value*()>& then,
                            const std::function<llvm::Value*()>& otherwise);
  llvm::Value* under_mask(llvm::Value* mask, const std::function<llvm::Value*()>& value);
  llvm::Value* first_lane(const Expr& e);
  std::optional<int64_t> step(const Expr& e);
  std::optional<int64_t> step_of(const Var* v) const;
  llvm::Value* lanes_from(llvm::Value* first, int64_t step);

  // emit_access.cc
  llvm::Value* load(const Load& l);
  llvm::Value* paired_load(const Load& l);
  llvm::Value* both_of_pairs(llvm::Value* vector);
  llvm::Value* every_second(llvm::Value* vector, unsigned which);
  llvm::Value* part(llvm::Value* vector, unsigned first, unsigned count);
  llvm::Value* masked_load(const Address& a, llvm::Type* element, const Buffer& buffer);
  void masked_store(llvm::Value* raw, const Address& a, const Buffer& buffer);
  void store(const Store& s);
  void atomic_store(const Store& s);
  llvm::Value* atomic_update(const Store& s);
  llvm::Value* combined(const Store& s, llvm::Value* raw, llvm::Value* value);
  llvm::Value* exchange_until_kept(const Store& s, llvm::Value* pointer, llvm::Value* value);
  Address address(const Buffer& buffer, const std::vector<Expr>& indices);
  llvm::Value* all_lanes(llvm::Value* mask);
  llvm::Value* safe_pointer(llvm::Value* pointer);
  bool reuses(ParallelLoop& around, const Buffer& buffer);
  llvm::Instruction* mark(llvm::Instruction* access, const Buffer& buffer);
  Place place(const Buffer& buffer, llvm::Value* base);
  llvm::Value* stack_slot(llvm::Type* type, uint64_t count);

  // emit_traffic.cc
  void nontemporal_store(llvm::Value* raw, const Address& a, const Store& s);
  void order_nontemporal_stores();
  void prefetch(const Prefetch& s);

  // emit_report.cc
  void report(const Report& s);

  llvm::Module& module_;
  llvm::LLVMContext& context_;
  llvm::IRBuilder<> b_;
  Arithmetic arithmetic_;
  const CpuOptions options_;
  const KernelSource& source_;
  KernelInterface interface_;
  int64_t instance_count_ = 0;

  llvm::Function* function_ = nullptr;
  llvm::Value* scratch_ = nullptr;
  llvm::Value* harmless_ = nullptr;  ///< readable memory for loads whose lanes are all off
  std::unordered_map<const Var*, Binding> env_;
  std::unordered_map<const Buffer*, Place> places_;
  std::vector<std::pair<llvm::Instruction*, const Buffer*>> marked_;
  std::vector<ParallelLoop> parallel_loops_;  ///< around this point
  unsigned lanes_ = 0;  ///< 0: scalar code
  const Var* lane_ = nullptr;  ///< the variable of the lanes, where it is even in lane 0
  llvm::Value* mask_ = nullptr;  ///< lanes that are on; null: all
  bool in_first_lane_ = false;  ///< expressions are evaluated for lane 0
  bool may_lie_outside_ = false;  ///< addresses are not read or written, so they need not lie in their buffer
  bool has_nontemporal_stores_ = false;
  std::vector<std::pair<llvm::BasicBlock*, llvm::BasicBlock*>> outlines_;  ///< where each begins, and what follows it
  int64_t scratch_used_ = 0;
  int64_t scratch_peak_ = 0;
};

}  // namespace helve::cpu
