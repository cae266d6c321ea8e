// What loops share whose iterations go to the cores of a cluster: memory of which each core has a part, and nests that
// combine these parts.
// It is found in the program's form; that nothing else is shared is for the checker.
#pragma once

#include <memory>
#include <vector>

#include "helve/target/machine.h"
#include "nest_boxes.h"

namespace helve {

inline const int64_t kMostCores = most_cluster_blocks();  ///< of a cluster, on any GPU

/// The number of a cluster's cores that run the iterations of a loop; refused if it is none.
int64_t cores_of(const Arguments& arguments, const Stmt& loop);

/// Refuses a statement that deals iterations to the blocks of the grid, which must not change then.
void refuse_dealt(const Arguments& arguments, const Stmt& around, const Stmt& loop);

/// The mesh of a grid whose last axis is a cluster; refused unless it has two constant extents.
MeshShape mesh_of(const Arguments& arguments, const std::vector<Expr>& grid, const Stmt& loop);

/// Memory of which each core has a part: all with one number in a dimension.
struct Divided {
  BufferRef all, part;
  size_t dim;
};

/// A nest that combines the parts of all cores, and what fills its result.
struct Merge {
  Cursor at, fill_at;
  std::shared_ptr<NestBoxes> nest, filling;  ///< of one store each
  VarRef core;  ///< of the nest's loop over the parts
  std::vector<VarRef> elements;  ///< of the others, in the order of the result's dimensions
  Region part, result;  ///< of the buffer with all parts, of the result
  BufferRef combined;  ///< the result on each core

  const Store& update() const { return *nest->stores()[0].store; }
};

/// Finds what is shared by the loops of bind(c, to="core", also=[d]); refused where there is no form for it.
class SharedLoops {
 public:
  SharedLoops(const FunctionRef& f, const Arguments& arguments);

  const Cursor& kernel() const { return kernel_at_; }
  const std::vector<Cursor>& loops() const { return loops_; }
  int64_t cores() const { return count_; }
  const MeshShape& mesh() const { return mesh_; }
  const std::vector<Divided>& memory() const { return divided_; }
  const std::vector<BufferRef>& own() const { return own_; }  ///< memory that every core has for itself
  const std::vector<Merge>& merges() const { return merges_; }

  /// The loop that the place is in, or is; null outside of them.
  const Cursor* loop_around(const Cursor& at) const;
  VarRef var_of(const Cursor& loop) const;
  /// Null for memory that is not divided.
  const Divided* divided(const Storage* buffer) const;

 private:
  void find_loops();
  void check_loop(size_t n);
  std::optional<size_t> dimension_of_cores(const BufferRef& buffer) const;
  void find_memory();
  void find_merges();
  [[noreturn]] void refuse_use(const Buffer& all, const Stmt& s) const;
  Cursor nest_around(const Cursor& store_at, const Store& store) const;
  Merge merge(const Cursor& store_at, const Store& update);
  void find_fill(Merge& merge);

  const FunctionRef f_;
  const Arguments& arguments_;
  std::vector<Cursor> loops_;
  Cursor kernel_at_;
  int64_t count_ = 0;
  MeshShape mesh_;
  std::vector<Divided> divided_;
  std::vector<BufferRef> own_;
  std::vector<Merge> merges_;
};

}  // namespace helve
