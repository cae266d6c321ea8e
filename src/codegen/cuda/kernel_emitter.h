// One kernel in thread form as a CUDA function.
// Statements at block scope are run by all threads alike; a loop over threads is a block in which tx is the thread's
// own.
#pragma once

#include "helve/analysis/kernel_interface.h"
#include "helve/codegen/c/c_emitter.h"
#include "helve/codegen/cuda/cuda_module.h"
#include "prelude.h"
#include "shared_address.h"

namespace helve::cuda {

class KernelEmitter final : public c::CEmitter {
 public:
  KernelEmitter(const KernelSource& source, const CudaOptions& options, Prelude& prelude);

  CudaKernel emit();
  /// The function, after `emit`.
  const std::string& function_text() const { return out_.text(); }

 private:
  /// What stands behind an element access.
  struct Element {
    std::string name;         ///< of the array
    Expr offset;              ///< in elements
    Expr exchange;            ///< of a fragment: the bits in which owner and reader differ, null when they are one
  };

  /// Elements that a vector loop moves at once, before or after its lanes.
  struct Staged {
    const Buffer* buffer = nullptr;
    Expr start;         ///< offset of lane 0
    int64_t width = 0;  ///< bytes of an access
    std::string name;   ///< of the array with an element a lane
    bool writes = false;
    bool rounds = false;  ///< the array holds floats, which the access rounds
  };

  /// A Global buffer of a mesh function: parameters with the first core's instance and the bytes from one to the next.
  struct Instance {
    const Buffer* buffer;
    std::string cores;
    std::string stride;
  };

  // kernel_emitter.cc
  void signature();
  void parameters(std::vector<std::string>& out);
  void unpack_scalars();
  void grid();
  void instances();
  std::string element_type(const Buffer& buffer);

  // emit_element.cc
  c::CExpr load(const Load& l) override;
  void store(const Store& s) override;
  Element element(const Buffer& buffer, const std::vector<Expr>& indices) const;
  Expr exchange_of(const Buffer& buffer, const Expr& owner) const;
  std::string element_text(const Element& e);
  std::string raw_load(const Load& l);
  std::string value_for(const Store& s);
  static const Expr& stored(const Store& s);
  void check_exchange(const Expr& bits) const;
  bool warps_agree(const Expr& e) const;

  // emit_block.cc
  void alloc(const Alloc& s) override;
  void tile_op(const TileOp& s) override;
  void thread_loop(const For& s) override;
  void need(const std::string& part) override { prelude_.need(part); }

  // matrix_move.cc
  void matrix_move(const TileOp& s);
  void require_rows(const TileOp& s, const Buffer& memory, const Address& address) const;

  // vector_loop.cc
  void vector_loop(const For& s) override;
  void stage(const For& s);
  int64_t vector_bytes(const Buffer& buffer, const Address& address, const Expr& start, const For& s) const;
  void load_staged(const For& s, int64_t lanes);
  void store_staged();
  bool rounds_in_pairs(const Store& s) const;

  const KernelSource& source_;
  Prelude& prelude_;
  KernelInterface interface_;
  CudaKernel kernel_;
  std::unordered_map<const Buffer*, size_t> position_;  ///< in the interface
  std::vector<Instance> instances_;
  std::vector<std::string> scalar_names_;
  const Var* thread_ = nullptr;  ///< of the loop over threads around this place
  size_t thread_decisions_ = 0;                   ///< those of the block: the rest are the thread's
  std::unordered_set<const Var*> own_values_;     ///< bound by each thread for itself
  std::vector<Staged> staged_;
  std::unordered_map<const Object*, size_t> stage_of_;  ///< of loads and stores
  std::string lane_index_;                            ///< the lane's position in the arrays of staged_
};

/// Bytes that a shared buffer takes, and the multiple at which each begins.
constexpr int64_t kSharedAlignment = 128;

}  // namespace helve::cuda
