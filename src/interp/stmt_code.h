// Statements prepared for running.
// A statement runs on one executor, or on the cores of a mesh in lockstep when something below it makes cores wait for
// each other.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "expr_code.h"

namespace helve::interp {

/// Cores in ascending rank.
using CoreSet = std::vector<Frame*>;

/// The axis of what cores do in lockstep without waiting for others: every core is a group of its own.
inline constexpr const char* kNoAxis = "";

/// Something that the cores of each group over `axis` enter together: a collective, or a launch over the mesh.
struct SyncPoint {
  std::string operation;
  std::string axis;
  Span span;
};

class StmtCode {
 public:
  virtual ~StmtCode() = default;

  /// Runs on one executor; never called on a statement with sync points in a mesh function.
  virtual void run(Frame& frame) const = 0;

  /// Runs on all cores of the set: together when there are sync points below, otherwise core after core.
  void run_all(const CoreSet& cores) const {
    if (!syncs_.empty()) return run_lockstep(cores);
    for (Frame* core : cores) {
      if (core->trace) core->trace->make_current();
      run(*core);
    }
  }

  const std::vector<SyncPoint>& syncs() const { return syncs_; }

 protected:
  virtual void run_lockstep(const CoreSet& cores) const = 0;
  /// Takes over the sync points of a part, the first of each axis.
  void include(const StmtCode& part);
  void add_sync(SyncPoint point);

 private:
  std::vector<SyncPoint> syncs_;
};
using StmtCodeRef = std::unique_ptr<const StmtCode>;

/// A statement without parts: it has no lockstep of its own.
class PlainCode : public StmtCode {
 protected:
  void run_lockstep(const CoreSet& cores) const final {
    for (Frame* core : cores) run(*core);
  }
};

StmtCodeRef prepare(const Stmt& s, Scope& scope);
StmtCodeRef prepare_loop(const For& s, Scope& scope);
StmtCodeRef prepare_tile_loop(const ForTiles& s, Scope& scope);
StmtCodeRef prepare_kernel(const Kernel& s, Scope& scope);
StmtCodeRef prepare_tile_op(const TileOp& s, Scope& scope);
StmtCodeRef prepare_peer(const Peer& s, Scope& scope);
/// Roles that stand side by side.
StmtCodeRef prepare_roles(const std::vector<const Role*>& roles, Scope& scope);

/// In a checked run, what each of the cores did is now visible to all of them.
void synchronise(const CoreSet& cores);

/// The group over `axis` that the core of this rank belongs to, as the rank of its first member (UnknownMeshAxis).
int64_t group_of(const MeshShape& mesh, const std::string& axis, int64_t rank, const Span& span);

/// Refuses (DivergentCollective) choices, one a core of `cores`, that part the cores of a group over the axis of a sync
/// point. `explain` says what a choice means: "is true".
void require_uniform(const StmtCode& code, const MeshShape& mesh, const CoreSet& cores,
                     const std::vector<int64_t>& choices, const Span& control, const std::string& subject,
                     std::string (*explain)(int64_t choice));

/// The cores with each value of `choices`, in order of first appearance.
std::vector<CoreSet> partition(const CoreSet& cores, const std::vector<int64_t>& choices);

}  // namespace helve::interp
