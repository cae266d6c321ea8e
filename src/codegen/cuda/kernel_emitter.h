// One kernel in thread form as a CUDA function.
// Statements at block scope are run by all threads alike; a loop over threads is a block in which tx is the number of
// the thread.
#pragma once

#include <map>

#include "helve/analysis/box_copy.h"
#include "helve/analysis/core_groups.h"
#include "helve/analysis/element_address.h"
#include "helve/analysis/kernel_interface.h"
#include "helve/codegen/c/c_emitter.h"
#include "helve/codegen/cuda/cuda_module.h"
#include "helve/ir/tensor/group_product.h"
#include "prelude.h"

namespace helve::cuda {

class KernelEmitter final : public c::CEmitter {
 public:
  KernelEmitter(const KernelSource& source, const CudaOptions& options, Prelude& prelude);

  CudaKernel emit();
  /// The text of the function, valid after `emit`.
  const std::string& function_text() const { return out_.text(); }

 private:
  /// Whose register a thread reads: its own without `with`, else by the bits in which their numbers differ, or by the
  /// number of the lane.
  struct Exchange {
    Expr with;
    bool flips = false;
  };

  /// How the groups over some axes meet: by the variable that counts arrivals, and a word of the workspace each.
  struct Arrival {
    std::string name;
    int64_t word = 0;  ///< of the first group
  };

  /// The operand of an element access.
  struct Element {
    std::string name;  ///< of the array
    Expr offset;  ///< in elements
    Exchange exchange;  ///< of a fragment
  };

  /// Elements that a vector loop moves at once, before or after its lanes.
  struct Staged {
    const Buffer* buffer = nullptr;
    Expr start;  ///< offset of lane 0
    int64_t width = 0;  ///< bytes of an access
    std::string name;  ///< of the array with an element a lane
    bool writes = false;
    bool rounds = false;  ///< the array contains floats, which the access rounds
  };

  /// What a buffer is on another core.
  struct OtherCore {
    const Buffer* source;
    Expr number;  ///< of the core: in the cluster, of a Global buffer in the mesh
  };

  /// An array of mbarriers.
  struct Ring {
    std::string name;
    std::string begun;  ///< the variable that counts groups
    std::string ended;  ///< the variable that counts those that were waited for
    int64_t length = 0;
  };

  /// The variables of a role for a ring that hands over buffers.
  struct RingPlaces {
    std::string name;
    int64_t slots = 0;
    std::string next;  ///< the slot to acquire or to wait for next, and its phase
    std::string freed;  ///< of the role that takes: the slot to release next
    std::string open;  ///< and how many it has taken and not released
    bool shared = false;  ///< with the other blocks of the cluster
    std::vector<BufferRef> buffers;
  };

  /// A Global buffer of a mesh function: parameters with the first core's instance and the distance of instances in
  /// bytes.
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
  void atomic_store(const Store& s);
  void exchange_until_kept(const Store& s, const std::string& place, const VarRef& previous);
  Element element(const Buffer& buffer, const std::vector<Expr>& indices) const;
  Facts facts_of_operand() const;
  Exchange exchange_of(const Buffer& buffer, const Expr& owner) const;
  std::string element_text(const Element& e);
  std::string raw_load(const Load& l);
  std::string value_for(const Store& s);
  static const Expr& stored(const Store& s);

  // emit_collective.cc
  void find_collectives();
  void declare_group_barriers();
  void peer(const Peer& s) override;
  void init_phases(const TileOp& s);

  // emit_bulk.cc
  void begin_pieces(const TileOp& s);
  std::string arrival(const TileOp& s) const;
  void loop_nest(const std::vector<Expr>& extents, const Span& span,
                 const std::function<void(const std::vector<Expr>& at)>& body);

  // emit_roles.cc
  void role(const Role& s) override;
  void role_barrier(const TileOp& s);
  void slots(const Alloc& s);
  void open_ring(const TileOp& s);
  const RingPlaces& places(const TileOp& s) const;

  // emit_boxes.cc
  void cluster();
  void map_parameters(std::vector<std::string>& out);
  void begin_boxes(const TileOp& s);
  std::string coordinate(const Expr& e);

  // emit_report.cc
  void report(const Report& s) override;
  std::string word(const Expr& value);

  // emit_block.cc
  void alloc(const Alloc& s) override;
  void array(const Alloc& s, const char* alignment, int64_t count);
  void tile_op(const TileOp& s) override;
#define HELVE_INSTRUCTION(function, ...) void function(const TileOp& s);
#include "instruction_table.inc"
#undef HELVE_INSTRUCTION
  void thread_loop(const For& s) override;
  void need(const std::string& part) override { prelude_.need(part); }
  void need(const PreludePart& part) { prelude_.need(part); }

  // group_product.cc
  void find_products();
  void declare_words(const Buffer& factor, const Span& span);
  static int64_t word_count(const Buffer& factor);
  void hold_sums(const Span& span);
  std::string descriptor(const Region& factor, const MatrixDescriptor& d, const std::vector<Expr>& first);

  // vector_loop.cc
  void vector_loop(const For& s) override;
  Expr vector_start(const For& s, const Buffer& buffer, const std::vector<Expr>& indices);
  bool move_packed(const For& s);
  void stage(const For& s);
  void stage(const For& s, const Object* node, const Buffer& buffer, const std::vector<Expr>& indices, int64_t width,
             const Store* store);
  void load_staged(const For& s, int64_t lanes);
  void store_staged();
  static bool rounds_in_pairs(const Store& s);

  const KernelSource& source_;
  Prelude& prelude_;
  const Machine& machine_;
  KernelInterface interface_;
  CudaKernel kernel_;
  std::unordered_map<const Buffer*, size_t> position_;  ///< in the interface
  std::unordered_set<const Buffer*> loaded_;  ///< by expressions
  std::vector<Instance> instances_;
  std::vector<std::string> scalar_names_;
  std::string first_core_, core_;  ///< in a mesh function: the parameter, and the block's own number
  CoreSpan span_;  ///< the cores that synchronize with each other
  VarRef place_;  ///< of the block in its cluster, where blocks of it copy together
  std::unordered_map<const Buffer*, OtherCore> peers_;
  std::unordered_map<const Buffer*, std::string> phases_;  ///< of mbarriers that count bytes: the variable of the phase
  std::map<uint64_t, Arrival> arrivals_;  ///< of the groups over a set of axes
  std::string workspace_;  ///< of a cooperative launch: the words of its group barriers
  std::string faults_;  ///< the parameter with the memory of a fault, where the kernel can end with one
  std::unordered_map<const Buffer*, Ring> rings_;
  const Role* role_ = nullptr;  ///< around the current place
  std::unordered_map<const Buffer*, RingPlaces> ring_places_;  ///< of this role
  std::unordered_map<const Buffer*, std::string> slots_;  ///< of buffers that rings hand over: the first slot
  std::vector<std::pair<BoxMap, std::string>> maps_;  ///< tensor maps, and their names
  std::vector<std::pair<const Buffer*, int64_t>> sums_;  ///< of products by warpgroups, and their registers
  std::unordered_map<const TileOp*, std::vector<const Buffer*>> packed_;  ///< factors in registers, by their fence
  std::unordered_map<const Buffer*, std::string> words_;  ///< of these
  const Var* thread_ = nullptr;  ///< of the loop over threads around the current place
  std::vector<Staged> staged_;
  std::unordered_map<const Object*, size_t> stage_of_;  ///< of loads and stores
  std::string lane_index_;  ///< index of the current lane in the arrays of staged_
};

}  // namespace helve::cuda
