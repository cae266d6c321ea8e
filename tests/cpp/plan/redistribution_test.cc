// Forms of collectives against their definitions, device by device, and the choice between them.
// Brute force over devices and elements is slow and plain, so meshes and shapes are small.
#include "helve/plan/redistribution.h"

#include <gtest/gtest.h>

#include <chrono>

#include "every_distribution.h"
#include "helve/plan/describe.h"

namespace helve {
namespace {

using namespace plan_test;
using Index = std::vector<int64_t>;
using enum CollectiveForm;

bool in_one_group(const std::vector<size_t>& axes, const Index& a, const Index& b) {
  for (size_t k = 0; k < a.size(); ++k) {
    if (a[k] != b[k] && std::find(axes.begin(), axes.end(), k) == axes.end()) return false;
  }
  return true;
}

int64_t member(const CollectiveStep& step, const Index& device) {
  int64_t out = 0;
  for (size_t a : step.axes) out = out * step.transfer.from().mesh[a].extent + device[a];
  return out;
}

/// What a device has from another one after a collective of this form, by the definition of the form alone.
bool gives(const CollectiveStep& step, const Index& sender, const Index& receiver, const Index& element) {
  const Distribution &from = step.transfer.from(), &to = step.transfer.to();
  if (!in_one_group(step.axes, sender, receiver) || !holds(from, sender, element)) return false;
  bool is_given = holds(to, receiver, element);  // where terms begin, others than coordinate 0 have the identity
  for (size_t a = 0; a < receiver.size(); ++a) is_given &= !step.transfer.roles()[a].begun || receiver[a] == 0;
  switch (step.form) {
    case AllGather:
    case AllReduce: return true;
    case Broadcast: return member(step, sender) == step.root;
    case Gather:
    case Reduce: return member(step, receiver) == step.root;
    case Scatter: return member(step, sender) == step.root && is_given;
    case ReduceScatter:
    case AllToAll:
    case Permute: return is_given;
    default: return false;
  }
}

using Moves = std::vector<std::pair<Index, Index>>;  ///< senders, which are other devices, and elements; sorted

Moves needed_by(const Transfer& transfer, const Index& receiver) {
  Moves out;
  for (const TransferBox& piece : transfer.received(receiver)) {
    if (piece.peer == receiver) continue;
    for (Index element : indices(piece.extents)) {
      for (size_t d = 0; d < element.size(); ++d) element[d] += piece.begin[d];
      out.emplace_back(piece.peer, element);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Moves moved_to(const CollectiveStep& step, const Index& receiver) {
  Moves out;
  if (step.form == Local) return out;
  for (const Index& sender : devices(step.transfer.from().mesh)) {
    for (const Index& element : indices(step.transfer.from().shape)) {
      if (sender != receiver && gives(step, sender, receiver, element)) out.emplace_back(sender, element);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

void check_form(const CollectiveStep& step) {
  if (step.form == Exchange) return;
  const Distribution& from = step.transfer.from();
  for (const Index& receiver : devices(from.mesh)) {
    const Moves needed = needed_by(step.transfer, receiver);
    ASSERT_EQ(moved_to(step, receiver), needed);
    if (step.form != Permute) continue;
    std::vector<Index> partners;
    for (const auto& [sender, element] : needed) partners.push_back(sender);
    std::sort(partners.begin(), partners.end());
    ASSERT_LE(std::unique(partners.begin(), partners.end()) - partners.begin(), 1);
  }
}

class Forms : public ::testing::TestWithParam<std::pair<Index, Index>> {};
INSTANTIATE_TEST_SUITE_P(Redistribution, Forms,
                         ::testing::Values(std::pair(Index{4}, Index{10, 5}), std::pair(Index{2}, Index{0, 4}),
                                           std::pair(Index{2, 2}, Index{5, 4}), std::pair(Index{2, 3}, Index{6})));

TEST_P(Forms, MoveWhatTheirDefinitionSays) {
  const auto& [extents, shape] = GetParam();
  const std::vector<Distribution> all = all_distributions(shape, mesh_of(extents));
  for (const Distribution& from : all) {
    for (const Distribution& to : all) {
      SCOPED_TRACE(quoted_notation(from) + " to " + quoted_notation(to));
      check_form(derive(Transfer(from, to)));
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Forms, CornersRefuteNoFormThatMovesWhatIsNeeded) {
  const auto& [extents, shape] = GetParam();
  const std::vector<Distribution> all = all_distributions(shape, mesh_of(extents));
  int64_t right = 0, wrong = 0, seen = 0;
  for (const Distribution& from : all) {
    for (const Distribution& to : all) {
      const Transfer transfer(from, to);
      std::vector<size_t> axes;
      for (size_t a = 0; a < extents.size(); ++a) {
        bool apart = false;
        for (const Index& receiver : devices(from.mesh)) {
          for (const auto& [sender, element] : needed_by(transfer, receiver)) apart |= sender[a] != receiver[a];
        }
        if (apart) axes.push_back(a);
      }
      for (CollectiveForm form : {Local, AllGather, ReduceScatter, AllToAll, Gather, Broadcast, Scatter}) {
        CollectiveStep step{form, axes, transfer, 0};
        const Distribution& side = form == Gather ? to : from;
        bool moves = true;  // forms with a root have one on each of their axes
        for (size_t a : axes) {
          step.root = step.root * from.mesh[a].extent + side.layout.offset(from.mesh[a].axis);
          const bool has_root = form == Gather || form == Broadcast || form == Scatter;
          moves = moves && (!has_root || side.layout.offset().count(from.mesh[a].axis) > 0);
        }
        for (const Index& receiver : devices(from.mesh))
          moves = moves && moved_to(step, receiver) == needed_by(transfer, receiver);
        const bool is_refuted = refuted(transfer, form);
        ++(moves ? right : wrong);
        seen += is_refuted;
        ASSERT_FALSE(moves && is_refuted)
            << to_string(form) << ": " << quoted_notation(from) << " to " << quoted_notation(to);
      }
    }
  }
  EXPECT_GT(right, 0);
  EXPECT_GE(2 * seen, wrong);
}

TEST_P(Forms, ChainsEndWhereTheyShould) {
  const auto& [extents, shape] = GetParam();
  const std::vector<Distribution> all = all_distributions(shape, mesh_of(extents));
  for (size_t k = 0; k < all.size() * all.size(); k += 3) {
    const Distribution &from = all[k / all.size()], &to = all[k % all.size()];
    SCOPED_TRACE(quoted_notation(from) + " to " + quoted_notation(to));
    const Redistribution plan = redistribute(from, to, 4);
    const Distribution* at = &from;
    for (const CollectiveStep& step : plan.steps) {
      ASSERT_EQ(step.transfer.from().layout, at->layout);
      at = &step.transfer.to();
      check_form(step);
    }
    ASSERT_EQ(at->layout, to.layout);
    ASSERT_EQ(at->partial, to.partial);
    ASSERT_LE(plan.steps.size(), 3u);
    if (HasFatalFailure()) return;
  }
}

/// The forms of a plan: "all_gather over px".
std::vector<std::string> forms(const std::vector<std::string>& from, const std::vector<std::string>& to,
                               const Index& shape, const Index& mesh) {
  const Network by_bytes{.latency = 1e-12};
  const Redistribution plan =
      redistribute(distribute(from, shape, mesh_of(mesh)), distribute(to, shape, mesh_of(mesh)), 4, by_bytes);
  std::vector<std::string> out;
  for (const CollectiveStep& step : plan.steps) {
    std::string text(to_string(step.form));
    for (size_t a : step.axes) text += std::string(" ") + "xyz"[a];
    if (step.root >= 0) text += " from " + std::to_string(step.root);
    out.push_back(text);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(Redistribution, OneAxis) {
  const Index shape = {64, 32}, mesh = {4};
  EXPECT_EQ(forms({"i j -> i"}, {"i j -> *"}, shape, mesh), (Texts{"all_gather x"}));
  EXPECT_EQ(forms({"i j -> i"}, {"i j -> j"}, shape, mesh), (Texts{"all_to_all x"}));
  EXPECT_EQ(forms({"i j -> +"}, {"i j -> *"}, shape, mesh), (Texts{"all_reduce x"}));
  EXPECT_EQ(forms({"i j -> +"}, {"i j -> j"}, shape, mesh), (Texts{"reduce_scatter x"}));
  EXPECT_EQ(forms({"i j -> *"}, {"i j -> i"}, shape, mesh), (Texts{"local"}));
  EXPECT_EQ(forms({"i j -> 2"}, {"i j -> *"}, shape, mesh), (Texts{"broadcast x from 2"}));
  EXPECT_EQ(forms({"i j -> 2"}, {"i j -> i"}, shape, mesh), (Texts{"scatter x from 2"}));
  EXPECT_EQ(forms({"i j -> i"}, {"i j -> 1"}, shape, mesh), (Texts{"gather x from 1"}));
  EXPECT_EQ(forms({"i j -> +"}, {"i j -> 1"}, shape, mesh), (Texts{"reduce x from 1"}));
  EXPECT_EQ(forms({"i j -> 1"}, {"i j -> 2"}, shape, mesh), (Texts{"permute x"}));
  EXPECT_EQ(forms({"i j -> i"}, {"i j -> i"}, shape, mesh), Texts());
}

TEST(Redistribution, SeveralAxesAreOneGroup) {
  const Index shape = {64, 32}, mesh = {2, 4};
  EXPECT_EQ(forms({"i j -> + +"}, {"i j -> * *"}, shape, mesh), (Texts{"all_reduce x y"}));
  EXPECT_EQ(forms({"i j -> + +"}, {"i j -> i j"}, shape, mesh), (Texts{"reduce_scatter x y"}));
  EXPECT_EQ(forms({"i j -> i", "i j -> i"}, {"i j -> * *"}, shape, mesh), (Texts{"all_gather x y"}));
  EXPECT_EQ(forms({"i j -> i j"}, {"i j -> i *"}, shape, mesh), (Texts{"all_gather y"}));
  EXPECT_EQ(forms({"i j -> i j"}, {"i j -> j i"}, shape, {2, 2}), (Texts{"permute x y"}));
  EXPECT_EQ(forms({"i -> px:i", "i -> py:i"}, {"i -> py:i", "i -> px:i"}, {64}, {2, 2}), (Texts{"permute x y"}));
  EXPECT_EQ(forms({"i j -> + i"}, {"i j -> * *"}, shape, mesh), (Texts{"all_reduce x", "all_gather y"}));
}

/// Blocks are of ceil(17 / 4) = 5 elements over both axes and of 9 over one: what one coordinate of x gathers is not
/// its block, so no all_gather over y is one.
TEST(Redistribution, UnevenBlocksAreExchanged) {
  EXPECT_EQ(forms({"i -> i", "i -> i"}, {"i -> i *"}, {16}, {2, 2}), (Texts{"all_gather y"}));
  EXPECT_EQ(forms({"i -> i", "i -> i"}, {"i -> i *"}, {17}, {2, 2}), (Texts{"exchange x y"}));
}

TEST(Redistribution, VolumesAreCounted) {
  const auto of = [](const std::string& from, const std::string& to) {
    const Volume out = volume(redistribute(distribute({from}, {64, 32}, mesh_of({4})),
                                           distribute({to}, {64, 32}, mesh_of({4})), 2, {.latency = 1e-12}));
    return std::pair(out.most, out.total);
  };
  const int64_t block = 64 * 32 * 2 / 4;
  EXPECT_EQ(of("i j -> i", "i j -> *"), std::pair(3 * block, 4 * 3 * block));
  EXPECT_EQ(of("i j -> i", "i j -> j"), std::pair(block * 3 / 4, 3 * block));
  EXPECT_EQ(of("i j -> +", "i j -> *"), std::pair(2 * 3 * block, 4 * 2 * 3 * block));
  EXPECT_EQ(of("i j -> +", "i j -> i"), std::pair(3 * block, 4 * 3 * block));
  EXPECT_EQ(of("i j -> i", "i j -> 0"), std::pair(3 * block, 3 * block));
  EXPECT_EQ(of("i j -> *", "i j -> j"), std::pair(int64_t{0}, int64_t{0}));
  EXPECT_EQ(of("i j -> 0", "i j -> *"), std::pair(4 * block, 3 * 4 * block));
}

TEST(Redistribution, PlansAreAsLargeForManyDevices) {
  const auto text = [](const Index& mesh) {
    return to_text(redistribute(distribute({"i j -> i j"}, {8192, 8192}, mesh_of(mesh)),
                                distribute({"i j -> j i"}, {8192, 8192}, mesh_of(mesh)), 4))
        .size();
  };
  EXPECT_LT(text({256, 256}), text({2, 2}) + 40);
}

TEST(Redistribution, TextSaysWhatMoves) {
  EXPECT_EQ(to_text(redistribute(distribute({"i j -> + i"}, {6, 8}, mesh_of({2, 3})),
                                 distribute({"i j -> j *"}, {6, 8}, mesh_of({2, 3})), 4)),
            "(6, 8) over (px=2, py=3), 'i j -> + i' to 'i j -> j *', elements of 4 bytes\n"
            "1. reduce_scatter over px, sum, to 'i j -> j i': 32 bytes a device at most, 192 in all\n"
            "2. all_gather over py, to 'i j -> j *': 64 bytes a device at most, 384 in all\n");
}

}  // namespace
}  // namespace helve
