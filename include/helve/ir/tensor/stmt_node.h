// What all statements of the tensor IR have in common: a kind, a place in the source, a depth.
// The depth is computed where a node is made, so that no pass meets one that is deeper than its stack.
#pragma once

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <vector>

#include "helve/ir/expr/build.h"

namespace helve {

enum class StmtKind {
#define HELVE_STMT(name) name,
#include "helve/ir/tensor/stmt_nodes.inc"
#undef HELVE_STMT
};

/// The limit of nested statements, not counting sequences: passes recurse, so it bounds the stack that they need. Text
/// has a lower limit (helve.parse), and passes add a few levels.
inline constexpr int kStmtDepthLimit = 400;

struct StmtNode : Node {
  using Part = Ref<const StmtNode>;
  const StmtKind kind;
  int depth() const { return depth_; }

 protected:
  explicit StmtNode(StmtKind k) : kind(k) {}

 private:
  template <class N>
    requires std::is_base_of_v<StmtNode, N>
  friend void measure(N& node);
  int depth_ = 1;
};
using Stmt = Ref<const StmtNode>;

/// Refuses a statement that contains `part` at too great a depth (NestingDepth).
[[noreturn]] void refuse_depth(const StmtNode& part);

/// Computes the depth from the fields. NestingDepth beyond the limit.
template <class N>
  requires std::is_base_of_v<StmtNode, N>
void measure(N& node) {
  constexpr bool counts = N::kKind != StmtKind::Seq;
  int depth = 0;
  const auto part = [&](const Stmt& s) {
    if (!s) return;
    if (counts && s->depth_ >= kStmtDepthLimit) refuse_depth(*s);
    depth = std::max(depth, s->depth_);
  };
  for_each_field<N>([&](const auto& each) {
    using M = std::decay_t<decltype(node.*each.member)>;
    if constexpr (std::is_same_v<M, Stmt>) {
      part(node.*each.member);
    } else if constexpr (std::is_same_v<M, std::vector<Stmt>>) {
      for (const Stmt& s : node.*each.member) part(s);
    }
  });
  node.depth_ = depth + counts;
}

}  // namespace helve
