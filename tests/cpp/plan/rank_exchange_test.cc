// Steps between processes, against what each device is to hold and against the same step in one process.
// The processes are threads; boxes of all pairs of distributions of small tensors, and large ones that are cut.
#include "helve/plan/rank_exchange.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <random>

#include "helve/plan/redistribution.h"
#include "parts.h"
#include "runtime/thread_carrier.h"

namespace helve {
namespace {

using namespace plan_test;
using Index = std::vector<int64_t>;
using runtime::InterruptPoll;
using runtime::ProcessGroup;

constexpr runtime::DLDataType kInt32{runtime::kDLInt, 32, 1};

/// The step on the process, from all parts to all, of which it takes its own.
void run_step(ProcessGroup& processes, const CollectiveStep& step, const Parts& from, const Parts& to,
              runtime::DLDataType dtype, int times = 1) {
  InterruptPoll poll;
  const auto rank = static_cast<size_t>(processes.rank());
  RankMoves moves = RankExchange(step, processes.rank()).prepare(from.parts[rank], to.parts[rank], dtype);
  for (int k = 0; k < times; ++k) moves.run(processes, poll);
}

/// The exchange, which nobody has to prove.
CollectiveStep direct(const Distribution& from, const Distribution& to) {
  return {CollectiveForm::Exchange, {}, Transfer(from, to)};
}

struct Case {
  CollectiveStep step;
  Parts from, to;
};

TEST(RankExchange, MovesWhatDevicesAreToHold) {
  for (const Index& mesh : std::vector<Index>{{3}, {2, 2}, {2, 3}}) {
    std::deque<Case> cases;
    size_t count = 0;
    for (const Index& shape : std::vector<Index>{{5, 4}, {0, 3}, {1, 7}}) {
      const std::vector<Distribution> all = all_distributions(shape, mesh_of(mesh));
      for (const Distribution& from : all) {
        for (const Distribution& to : all) {
          if (mesh[0] * mesh.back() > 5 && count++ % 4 != 0) continue;  // of the largest mesh a part
          cases.push_back({direct(from, to), Parts(from, cases.size() % 2 == 1), Parts(to, cases.size() % 3 == 1)});
        }
      }
    }
    for (Case& each : cases) {
      const Distribution& from = each.step.transfer.from();
      const std::vector<Index> all = devices(from.mesh);
      for (size_t k = 0; k < all.size(); ++k) {
        for (const Index& element : indices(from.shape)) {
          if (holds(from, all[k], element)) each.from.at(from, k, element) = value_of(element);
        }
      }
    }
    runtime::test::Network network(static_cast<int64_t>(devices(mesh_of(mesh)).size()));
    const auto faults = runtime::test::on_processes(network, {.check = false}, [&](ProcessGroup& processes) {
      for (Case& each : cases) run_step(processes, each.step, each.from, each.to, kInt32);
    });
    for (const std::exception_ptr& fault : faults) {
      if (fault) std::rethrow_exception(fault);
    }
    for (Case& each : cases) {
      const Transfer& transfer = each.step.transfer;
      const std::vector<Index> all = devices(transfer.to().mesh);
      for (size_t k = 0; k < all.size(); ++k) {
        bool begun = false;
        for (size_t a = 0; a < all[k].size(); ++a) begun |= transfer.roles()[a].begun && all[k][a] != 0;
        for (const Index& element : indices(transfer.to().shape)) {
          if (!holds(transfer.to(), all[k], element)) continue;
          const int32_t wanted = begun ? -100 : static_cast<int32_t>(transfer.terms()) * value_of(element);
          ASSERT_EQ(each.to.at(transfer.to(), k, element), wanted) << to_text(each.step) << ", device " << k;
        }
        if (!each.to.memory[k].empty()) {
          ASSERT_EQ(each.to.memory[k].back(), -100) << "beyond the part of device " << k;
        }
      }
    }
  }
}

/// Floats of many sizes, so that another order of a sum has other bits.
void fill(Parts& parts) {
  std::minstd_rand random(7);
  for (auto& memory : parts.memory) {
    for (int32_t& each : memory) {
      const float value = std::ldexp(static_cast<float>(random() % 2001) - 1000.0f, static_cast<int>(random() % 20));
      std::memcpy(&each, &value, sizeof each);
    }
  }
}

TEST(RankExchange, CutsWhatAllMembersGetAndKeepsEveryBit) {
  struct Row {
    const char *from, *to;
    CollectiveForm form;
    Index mesh;
  };
  const std::vector<Row> rows = {
      {"i j -> +", "i j -> *", CollectiveForm::AllReduce, {3}},
      {"i j -> + +", "i j -> * *", CollectiveForm::AllReduce, {2, 2}},
      {"i j -> max i", "i j -> * i", CollectiveForm::AllReduce, {3, 2}},
      {"i j -> +", "i j -> 1", CollectiveForm::Reduce, {4}},
      {"i j -> j +", "i j -> j 2", CollectiveForm::Reduce, {2, 3}},
      {"i j -> 2", "i j -> *", CollectiveForm::Broadcast, {5}},
      {"i j -> 0 1", "i j -> * *", CollectiveForm::Broadcast, {3, 2}},
  };
  for (const Index& shape : std::vector<Index>{{260, 131}, {1, 70001}}) {
    for (const Row& row : rows) {
      for (const bool columns : {false, true}) {
        const std::vector<MeshAxis> mesh = mesh_of(row.mesh);
        const Distribution from = distribute({row.from}, shape, mesh), to = distribute({row.to}, shape, mesh);
        const CollectiveStep step = derive(Transfer(from, to));
        ASSERT_EQ(step.form, row.form) << row.from << " to " << row.to;
        Parts sources(from, columns), there(to, columns), here(to, columns);
        fill(sources);
        constexpr runtime::DLDataType kFloat{runtime::kDLFloat, 32, 1};
        LocalExchange(step.transfer).prepare(sources.parts, here.parts, kFloat).run(nullptr);
        runtime::test::Network network(static_cast<int64_t>(here.parts.size()));
        const auto faults = runtime::test::on_processes(network, {.check = false}, [&](ProcessGroup& processes) {
          run_step(processes, step, sources, there, kFloat, 2);
        });
        for (const std::exception_ptr& fault : faults) {
          if (fault) std::rethrow_exception(fault);
        }
        EXPECT_EQ(there.memory, here.memory) << row.from << " to " << row.to << " of " << shape[0];
      }
    }
  }
}

TEST(RankExchange, SendsNoMoreThanThePlanCounts) {
  const std::vector<MeshAxis> mesh = mesh_of({4});
  const auto at = [&](const char* text) { return distribute({text}, {40, 1000}, mesh); };
  const std::vector<std::pair<const char*, const char*>> pairs = {
      {"i j -> i", "i j -> *"}, {"i j -> +", "i j -> *"}, {"i j -> +", "i j -> j"}, {"i j -> i", "i j -> j"},
      {"i j -> 0", "i j -> *"}, {"i j -> +", "i j -> 0"}, {"i j -> 1", "i j -> i"}, {"i j -> i", "i j -> 2"}};
  for (const auto& [from, to] : pairs) {
    const CollectiveStep step = derive(Transfer(at(from), at(to)));
    const Parts sources(at(from), false), targets(at(to), false);
    runtime::test::Network network(4);
    runtime::test::on_processes(network, {.check = false},
                                [&](ProcessGroup& processes) { run_step(processes, step, sources, targets, kInt32); });
    // A reduction at one device is one at all, and then a gather: more bytes, but fewer at the root.
    const int64_t gathered = step.form == CollectiveForm::Reduce ? 3 * 40 * 1000 : 0;
    EXPECT_EQ(network.bytes, volume(step, 4).total + gathered) << from << " to " << to;
  }
}

}  // namespace
}  // namespace helve
