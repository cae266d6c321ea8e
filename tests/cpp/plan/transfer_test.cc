// Transfers, element by element: what is received is what is to be held, once, from devices that hold it.
// Brute force over devices and elements is slow and plain, so meshes and shapes are small.
#include "helve/plan/transfer.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "every_distribution.h"
#include "helve/support/diagnostic.h"

namespace helve {
namespace {

using namespace plan_test;
using Index = std::vector<int64_t>;

std::string text(const Index& index) {
  std::string out;
  for (int64_t each : index) out += std::to_string(each) + " ";
  return out;
}

/// Who an element, or a term of it, may come from.
bool may_send(const Transfer& transfer, const Index& receiver, const Index& sender, const Index& element) {
  if (!holds(transfer.from(), sender, element)) return false;
  for (size_t a = 0; a < sender.size(); ++a) {
    const Axis axis = transfer.from().mesh[a].axis;
    const bool terms_stay = transfer.from().partial_over(axis) && transfer.to().partial_over(axis);
    if ((transfer.from().holds_copies(axis) || terms_stay) && sender[a] != receiver[a]) return false;
  }
  return true;
}

void check(const Distribution& from, const Distribution& to) {
  const Transfer transfer(from, to);
  std::map<std::pair<Index, Index>, std::vector<std::pair<Index, Index>>> received, sent;  // by receiver and sender
  for (const Index& device : devices(from.mesh)) {
    std::map<Index, std::vector<Index>> senders;  // by element
    int64_t from_others = 0;
    for (const TransferBox& piece : transfer.received(device)) {
      received[{device, piece.peer}].emplace_back(piece.begin, piece.extents);
      for (Index element : indices(piece.extents)) {
        for (size_t d = 0; d < element.size(); ++d) element[d] += piece.begin[d];
        senders[element].push_back(piece.peer);
        from_others += piece.peer != device;
      }
    }
    for (const TransferBox& piece : transfer.sent(device))
      sent[{piece.peer, device}].emplace_back(piece.begin, piece.extents);
    ASSERT_EQ(from_others, transfer.elements_received(device));
    std::set<Index> senders_of, receivers_of;
    for (const TransferBox& piece : transfer.received(device)) senders_of.insert(piece.peer);
    for (const TransferBox& piece : transfer.sent(device)) receivers_of.insert(piece.peer);
    senders_of.erase(device), receivers_of.erase(device);
    ASSERT_LE(std::max(senders_of.size(), receivers_of.size()), static_cast<size_t>(transfer.partners(device)));
    for (const Index& element : indices(from.shape)) {
      bool wanted = holds(to, device, element);
      for (size_t a = 0; a < device.size(); ++a) {  // of terms that begin, coordinate 0 has the value
        const Axis axis = from.mesh[a].axis;
        wanted &= !(to.partial_over(axis) && !from.partial_over(axis) && device[a] != 0);
      }
      std::vector<Index> expected;
      for (const Index& sender : devices(from.mesh)) {
        if (wanted && may_send(transfer, device, sender, element)) expected.push_back(sender);
      }
      ASSERT_EQ(expected.size(), wanted ? static_cast<size_t>(transfer.terms()) : 0);
      ASSERT_EQ(senders[element], expected) << text(device) << ": " << text(element);
    }
  }
  ASSERT_EQ(received, sent);
}

class EveryPair : public ::testing::TestWithParam<std::pair<Index, Index>> {};
INSTANTIATE_TEST_SUITE_P(Transfer, EveryPair,
                         ::testing::Values(std::pair(Index{2}, Index{17, 5}), std::pair(Index{4}, Index{10, 5}),
                                           std::pair(Index{1}, Index{3, 2}), std::pair(Index{2, 2}, Index{7, 5}),
                                           std::pair(Index{3, 2}, Index{1, 3}), std::pair(Index{2, 2}, Index{0, 4}),
                                           std::pair(Index{2, 3}, Index{5}), std::pair(Index{2, 1}, Index{}),
                                           std::pair(Index{2, 2, 2}, Index{5})));

TEST_P(EveryPair, IsExact) {
  const auto& [extents, shape] = GetParam();
  const std::vector<Distribution> all = all_distributions(shape, mesh_of(extents));
  for (const Distribution& from : all) {
    for (const Distribution& to : all) {
      SCOPED_TRACE(notation_of(from).front() + " to " + notation_of(to).front());
      check(from, to);
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Transfer, TermsOfTwoOperatorsAreNotReducedAtOnce) {
  const std::vector<MeshAxis> mesh = mesh_of({2, 2});
  const Distribution from = distribute({"i -> + max"}, {4}, mesh), to = distribute({"i -> * *"}, {4}, mesh);
  try {
    Transfer(from, to);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostic().message(),
              "'i -> + max' cannot become 'i -> * *': it would reduce by sum and by max at once");
  }
  EXPECT_EQ(Transfer(from, distribute({"i -> * max"}, {4}, mesh)).terms(), 2);
}

TEST(Transfer, ShapesAndMeshesAgree) {
  const auto refused = [](const Distribution& from, const Distribution& to) {
    try {
      Transfer(from, to);
    } catch (const UserError& error) {
      return error.diagnostic().message();
    }
    return std::string();
  };
  EXPECT_EQ(refused(distribute({"i -> i"}, {4}, mesh_of({2})), distribute({"i -> *"}, {5}, mesh_of({2}))),
            "'i -> i' cannot become 'i -> *': the tensor is (4,) there and (5,) here");
  EXPECT_EQ(refused(distribute({"i -> i"}, {4}, mesh_of({2})), distribute({"i -> *"}, {4}, mesh_of({3}))),
            "'i -> i' cannot become 'i -> *': the mesh is (px=2) there and (px=3) here");
}

}  // namespace
}  // namespace helve
