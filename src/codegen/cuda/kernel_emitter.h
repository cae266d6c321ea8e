// One kernel in thread form as a CUDA function.
// Statements at block scope are run by all threads alike; a loop over threads is a block in which tx is the thread's
// own.
#pragma once

#include <map>

#include "helve/analysis/box_copy.h"
#include "helve/analysis/core_groups.h"
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

  /// Block memory to which the members of groups along one axis post. Two turns of the box alternate: who has what was
  /// posted in one turn has read what was posted in the turn before.
  struct PostBox {
    int64_t members = 0;
    int64_t bytes = 0;  ///< of a member's slot: the largest source
    std::string slots;  ///< the memory: turn, member, bytes
    std::string arrivals;  ///< two barriers that count arriving bytes
    std::string turn;  ///< the variable that counts the turns
  };

  /// A collective's source as it lies with another core.
  struct Peer {
    const Buffer* source;
    Expr core;  ///< its number in the span of cores, of a Global buffer in the mesh; its member number in a post box
    const PostBox* box = nullptr;  ///< where it lies, if it was posted
  };

  /// The copies that the copy engine makes for the kernel. Whatever counts as a copy, whoever makes it, is a group of
  /// each kind that the kernel has, so that one wait counts all kinds.
  struct BulkCopies {
    bool loads = false;  ///< to block memory
    bool stores = false;  ///< from it, counted
    bool returns = false;  ///< from it, each waited for
    bool threads = true;  ///< threads copy asynchronously beside them, or nobody else does
    bool complete = false;  ///< waits for stores are for the elements in global memory, which somebody reads
    bool any() const { return loads || stores || returns; }
    bool fences = false;  ///< threads write memory that the engine touches: every barrier has a fence
    int64_t ring = 0;  ///< barriers of the loads
    std::string arrivals;  ///< the barriers
    std::string begun;  ///< the variable that counts groups
    std::string ended;  ///< the variable that counts those that were waited for
  };

  /// A tensor map among the kernel's parameters, for copies of boxes of these extents.
  struct BoxMap {
    const Buffer* tensor;
    std::vector<int64_t> box;
    int64_t swizzle;
    std::string name = {};
    bool serves(const Buffer* other, const CopyBoxes& boxes) const {
      return tensor == other && box == boxes.box && swizzle == boxes.swizzle;
    }
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
  void atomic_store(const Store& s);
  Element element(const Buffer& buffer, const std::vector<Expr>& indices) const;
  Facts facts_of_operand() const;
  Expr exchange_of(const Buffer& buffer, const Expr& owner) const;
  std::string element_text(const Element& e);
  std::string raw_load(const Load& l);
  std::string value_for(const Store& s);
  static const Expr& stored(const Store& s);
  void check_exchange(const Expr& bits) const;
  bool warps_agree(const Expr& e) const;

  // emit_collective.cc
  void find_collectives();
  void begin_meetings();
  void collective(const TileOp& s);
  void meet(const TileOp& s);
  BufferRef peer(const TileOp& s, const Expr& member, std::vector<Stmt>& before);
  void declare_peer(const Buffer& buffer);

  // emit_post.cc
  void find_post(const TileOp& s, const CoreGroup& group);
  const PostBox* post_box(const TileOp& s) const;
  void begin_posts();
  void seq(const Seq& s) override;
  void post(const TileOp& s, const PostBox& box);
  void collect(const TileOp& s, const PostBox& box);
  Expr element_address(const Buffer& buffer, const Expr& item) const;
  std::string slot_of(const PostBox& box, const std::string& member, const std::string& type) const;

  // emit_bulk.cc
  void find_bulk();
  void begin_engine();
  void begin_pieces(const TileOp& s);
  std::string arrival() const;
  void loop_nest(const std::vector<Expr>& extents, const Span& span,
                 const std::function<void(const std::vector<Expr>& at)>& body);
  void fence();
  void wait_for_stores(int64_t pending, const Span& span);

  // emit_boxes.cc
  void find_maps();
  void map_parameters(std::vector<std::string>& out);
  void begin_boxes(const TileOp& s);
  void copy_box_elements(const TileOp& s);
  std::string coordinate(const Expr& e);

  // emit_block.cc
  void alloc(const Alloc& s) override;
  void array(const Alloc& s, const char* alignment, int64_t count);
  void tile_op(const TileOp& s) override;
#define HELVE_INSTRUCTION(function, ...) void function(const TileOp& s);
#include "instruction_table.inc"
#undef HELVE_INSTRUCTION
  void thread_loop(const For& s) override;
  void need(const std::string& part) override { prelude_.need(part); }

  // matrix_move.cc
  void require_rows(const TileOp& s, const Buffer& memory, const Address& address) const;

  // vector_loop.cc
  void vector_loop(const For& s) override;
  bool move_packed(const For& s);
  bool stays_packed(const Buffer& buffer) const;
  void stage(const For& s);
  int64_t vector_bytes(const Buffer& buffer, const Address& address, const Expr& start, const For& s) const;
  void load_staged(const For& s, int64_t lanes);
  void store_staged();
  bool rounds_in_pairs(const Store& s) const;

  const KernelSource& source_;
  const bool narrow_;  ///< buffers of the call are aligned as one element is
  Prelude& prelude_;
  const int64_t cluster_blocks_;
  KernelInterface interface_;
  CudaKernel kernel_;
  std::unordered_map<const Buffer*, size_t> position_;  ///< in the interface
  std::unordered_map<const Buffer*, size_t> reads_;  ///< places of the kernel that load from it
  std::unordered_set<const Buffer*> indexed_;  ///< private arrays that stand in memory
  std::vector<Instance> instances_;
  std::vector<std::string> scalar_names_;
  std::string first_core_, core_;  ///< in a mesh function: the parameter, and the block's own number
  CoreSpan span_;  ///< the cores that wait for each other
  std::unordered_map<const TileOp*, Stmt> exchanges_;  ///< what a core does in its collectives
  std::unordered_map<const Buffer*, Peer> peers_;
  std::map<std::string, PostBox> boxes_;  ///< by axis, or "all"
  std::unordered_set<const TileOp*> posted_;
  std::map<std::string, std::string> meetings_;  ///< axis or "all": the variable that counts the group's meetings
  std::string workspace_;  ///< of a cooperative launch: words for groups to meet at
  BulkCopies bulk_;
  std::vector<BoxMap> maps_;
  const Var* thread_ = nullptr;  ///< of the loop over threads around this place
  size_t thread_decisions_ = 0;  ///< those of the block: the rest are the thread's
  std::unordered_set<const Var*> own_values_;  ///< bound by each thread for itself
  std::vector<Staged> staged_;
  std::unordered_map<const Object*, size_t> stage_of_;  ///< of loads and stores
  std::string lane_index_;  ///< the lane's position in the arrays of staged_
};

/// Bytes that a shared buffer takes, and the multiple at which each begins.
constexpr int64_t kSharedAlignment = 128;

}  // namespace helve::cuda
