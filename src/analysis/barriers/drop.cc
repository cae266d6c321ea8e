// Removal of superfluous barriers.
// Sequences are balanced trees here, so that the path from a barrier to the root is short.
#include "drop.h"

#include <memory>
#include <optional>
#include <utility>

namespace helve::barriers {

namespace {

/// A part, or a run of parts of one sequence, with its effect.
struct Node {
  Part* part = nullptr;  ///< null: the two children in sequence
  Node* parent = nullptr;
  std::vector<std::unique_ptr<Node>> children;
  Effect effect;
};
using NodePtr = std::unique_ptr<Node>;

class Drops {
 public:
  Drops(AccessTable& table, ConflictQueries& conflicts, const std::function<bool(const Part&)>& tried)
      : table_(table), conflicts_(conflicts), tried_(tried) {}

  std::vector<Found> run(Part& kernel) {
    const NodePtr root = sequence(kernel.parts, 0, kernel.parts.size());
    for (Node* barrier : barriers_) attempt(*barrier);
    return std::move(undecided_);
  }

 private:
  NodePtr node(Part& part) {
    NodePtr out = std::make_unique<Node>();
    out->part = &part;
    for (const PartRef& body : part.parts) adopt(*out, sequence(body->parts, 0, body->parts.size()));
    out->effect = effect(*out);
    if (part.kind == Part::Kind::Barrier && tried_(part)) barriers_.push_back(out.get());
    return out;
  }

  NodePtr sequence(std::vector<PartRef>& parts, size_t begin, size_t end) {
    if (end - begin == 1) return node(*parts[begin]);
    NodePtr out = std::make_unique<Node>();
    if (begin == end) return out;
    const size_t middle = begin + (end - begin) / 2;
    adopt(*out, sequence(parts, begin, middle));
    adopt(*out, sequence(parts, middle, end));
    out->effect = effect(*out);
    return out;
  }

  static void adopt(Node& parent, NodePtr child) {
    child->parent = &parent;
    parent.children.push_back(std::move(child));
  }

  Effect effect(const Node& node) {
    if (!node.part) {
      Effect out = node.children[0]->effect;
      append(out, node.children[1]->effect);
      return out;
    }
    return effect_of(*node.part, table_, [&](size_t i) -> const Effect& { return node.children[i]->effect; });
  }

  /// Removes the barrier unless that creates a conflict.
  void attempt(Node& barrier) {
    std::vector<std::pair<Node*, Effect>> before;
    std::optional<Found> found;
    barrier.part->is_dropped = true;
    const auto replace = [&](Node& node) {
      before.emplace_back(&node, std::exchange(node.effect, effect(node)));
      return node.effect != before.back().second;
    };
    for (Node* node = &barrier; replace(*node) && node->parent; node = node->parent) {
      const std::optional<Found> here = new_conflict(*node->parent, *node, before.back().second);
      if (here && (!found || here->conflict != Conflict::Undecided)) found = here;
      if (found && found->conflict != Conflict::Undecided) break;
    }
    if (!found) return;
    barrier.part->is_dropped = false;
    for (auto& [node, effect] : before) node->effect = std::move(effect);
    if (found->conflict == Conflict::Undecided && barrier.part->is_inserted) undecided_.push_back(*found);
  }

  /// A conflict among the children of `parent` that did not exist when `changed` had the effect `before`; a decided one
  /// if there is one.
  std::optional<Found> new_conflict(const Node& parent, const Node& changed, const Effect& before) {
    const bool loops = parent.part && parent.part->kind == Part::Kind::Loop;
    if (parent.part && !loops) return {};
    const Node &first = *parent.children.front(), &second = *parent.children.back();
    std::optional<Found> found;
    const auto look = [&](const AccessSet& earlier, const AccessSet& later) {
      for (AccessId a : earlier) {
        for (AccessId b : later) {
          if (found && found->conflict != Conflict::Undecided) return;
          const Conflict conflict = conflicts_.ask(a, b, loops);
          if (conflict != Conflict::None && (!found || conflict != Conflict::Undecided))
            found = {a, b, nullptr, conflict};
        }
      }
    };
    if (&changed == &first) {
      look(first.effect.pending.without(before.pending), second.effect.exposed);
      for (const auto& [queue, copies] : first.effect.flight) {
        look(copies.without(of(before.flight, queue)), of(second.effect.exposed_flight, queue));
      }
    }
    if (&changed == &second) {
      look(first.effect.pending, second.effect.exposed.without(before.exposed));
      for (const auto& [queue, copies] : first.effect.flight) {
        look(copies, of(second.effect.exposed_flight, queue).without(of(before.exposed_flight, queue)));
      }
    }
    if (found) found->place = part_in(second, found->later);
    return found;
  }

  static AccessSet of(const QueuedAccesses& sets, QueueId queue) {
    const auto at = sets.find(queue);
    return at == sets.end() ? AccessSet() : at->second;
  }

  /// The first part of a node with that access.
  const Part* part_in(const Node& node, AccessId id) {
    if (node.part) return part_with(*node.part, id, table_);
    for (const NodePtr& child : node.children) {
      if (const Part* found = part_in(*child, id)) return found;
    }
    return nullptr;
  }

  AccessTable& table_;
  ConflictQueries& conflicts_;
  const std::function<bool(const Part&)>& tried_;
  std::vector<Node*> barriers_;  ///< in program order
  std::vector<Found> undecided_;
};

}  // namespace

std::vector<Found> drop_superfluous(Part& kernel, AccessTable& table, ConflictQueries& conflicts,
                                    const std::function<bool(const Part&)>& tried) {
  return Drops(table, conflicts, tried).run(kernel);
}

}  // namespace helve::barriers
