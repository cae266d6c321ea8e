// Plans that run: launches, buffers, collectives, control flow, concurrency, interruption, text.
#include "helve/runtime/executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"
#include "host_tensor.h"

namespace helve::runtime {
namespace {

using P = ScalarProgram;

/// out[i] = in[i] + scalars[0] for the blocks of one element each.
void add_kernel(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  const auto* in = static_cast<const float*>(buffers[0]);
  auto* out = static_cast<float*>(buffers[1]);
  for (int64_t i = begin; i < end; ++i) out[i] = in[i] + static_cast<float>(scalars[0]);
}

/// Writes to core c's instance of the per-core buffer 0 the value c + 1, `scalars[0]` times; scalars[1] is the instance
/// stride.
void seed_kernel(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t core = begin; core < end; ++core) {
    auto* mine = reinterpret_cast<float*>(static_cast<std::byte*>(buffers[0]) + core * scalars[1]);
    for (int64_t i = 0; i < scalars[0]; ++i) mine[i] = static_cast<float>(core + 1);
  }
}

/// Copies core c's instance (buffer 1) to row c of the shared buffer 0.
void collect_kernel(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t core = begin; core < end; ++core) {
    const auto* mine = reinterpret_cast<const float*>(static_cast<std::byte*>(buffers[1]) + core * scalars[1]);
    for (int64_t i = 0; i < scalars[0]; ++i) static_cast<float*>(buffers[0])[core * scalars[0] + i] = mine[i];
  }
}

/// Doubles out[i] through scratch memory, to see that scratch is private.
void scratch_kernel(void* const* buffers, const int64_t*, int64_t begin, int64_t end, std::byte* scratch) {
  auto* values = static_cast<float*>(buffers[0]);
  auto* mine = reinterpret_cast<float*>(scratch);
  for (int64_t i = begin; i < end; ++i) {
    for (int k = 0; k < 256; ++k) mine[k] = values[i];
    std::this_thread::yield();
    float sum = 0;
    for (int k = 0; k < 256; ++k) sum += mine[k];
    values[i] = sum / 128;
  }
}

void sleep_kernel(void* const*, const int64_t*, int64_t begin, int64_t end, std::byte*) {
  std::this_thread::sleep_for(std::chrono::milliseconds(5 * (end - begin)));
}

/// y[i] = x[i] + k over n dynamic elements.
Plan add_plan(int64_t grain = 1) {
  Plan plan;
  plan.name = "add";
  plan.slots = {"n", "k"};
  plan.params = {{"x", kFloat32, {BindSlot{0}}, {}, true, false, {}},
                 {"y", kFloat32, {BindSlot{0}}, {}, false, true, {}}};
  plan.scalar_params = {{"k", {kDLInt, 64, 1}, 1}};
  plan.steps = {{Launch{0, "add", P::slot(0), {0, 1}, {P::slot(1)}, 0, grain}}};
  return plan;
}

TEST(Executor, LaunchesOverDynamicExtents) {
  const Executor executor(add_plan(), {add_kernel});
  for (int64_t n : {0, 1, 2, 1000, 100001}) {
    HostTensor x(kFloat32, {n}), y(kFloat32, {n});
    std::iota(x.floats().begin(), x.floats().end(), 0.0f);
    executor.call(std::vector{x.arg(), y.arg()}, std::vector<ScalarArgument>{int64_t{7}});
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(y.floats()[i], static_cast<float>(i + 7));
  }
}

TEST(Executor, AChecksFaultNamesTheValuesOfTheCall) {
  Plan plan = add_plan();
  const P even = P::binary(ScalarOp::Eq, P::binary(ScalarOp::FloorMod, P::slot(0), 2), 0);
  Check check{
      even, {Code::CallCondition, {nullptr, 3, 4, 3, 9}, {{"kernel", "add"}, {"condition", "n % 2 == 0"}}, {}, {}}, {}};
  check.values = {{plan.slots[0], P::slot(0)}, {"half", P::binary(ScalarOp::FloorDiv, P::slot(0), 2)}};
  plan.steps.insert(plan.steps.begin(), {check});
  EXPECT_NE(to_text(plan).find("check (" + plan.slots[0] + " % 2) == 0 else HV0616\n"), std::string::npos)
      << to_text(plan);
  const Executor executor(std::move(plan), {add_kernel});
  for (int64_t n : {0, 4, 5, 7}) {
    HostTensor x(kFloat32, {n}), y(kFloat32, {n});
    std::fill(y.floats().begin(), y.floats().end(), -1.0f);
    const auto call = [&] { executor.call(std::vector{x.arg(), y.arg()}, std::vector<ScalarArgument>{int64_t{7}}); };
    if (n % 2 == 0) {
      EXPECT_NO_THROW(call());
      continue;
    }
    try {
      call();
      FAIL() << "a call that breaks the condition runs";
    } catch (const UserError& error) {
      EXPECT_EQ(error.diagnostic().span.line, 3);
      EXPECT_EQ(error.diagnostic().message(), "'add' needs n % 2 == 0, this call has " + executor.plan().slots[0] +
                                                  "=" + std::to_string(n) + ", half=" + std::to_string(n / 2));
    }
    EXPECT_EQ(y.floats()[0], -1.0f);  // nothing was launched
  }
}

Plan mesh_plan(std::vector<int64_t> mesh, uint64_t axes) {
  Plan plan;
  plan.name = "sums";
  plan.mesh = std::move(mesh);
  plan.mesh_axes = {"x", "y"};
  const int64_t cores = core_count(plan);
  plan.slots = {"w"};
  plan.params = {{"out", kFloat32, {P(cores), BindSlot{0}}, {}, false, true, {}}};
  plan.buffers = {{"part", kFloat32, P::slot(0), true, 64}};
  Collective sum;
  sum.kind = CollectiveKind::AllReduce;
  sum.axes = axes;
  sum.src = sum.dst = 1;
  sum.extents = {P::slot(0)};
  sum.src_strides = sum.dst_strides = {1};
  plan.steps = {{Allocate{1}},
                {Launch{0, "seed", cores, {1}, {P::slot(0)}}},
                {sum},
                {Launch{1, "collect", cores, {0, 1}, {P::slot(0)}}}};
  return plan;
}

TEST(Executor, PerCoreBuffersAndCollectives) {
  for (const auto& mesh : {std::vector<int64_t>{2, 3}, {3, 2}, {1, 1}, {1, 4}}) {
    for (uint64_t axes : {0u, 1u, 2u, 3u}) {
      const Executor executor(mesh_plan(mesh, axes), {seed_kernel, collect_kernel});
      for (int64_t width : {5, 1, 0, 33}) {
        HostTensor out(kFloat32, {mesh[0] * mesh[1], width});
        executor.call(std::vector{out.arg()});
        for (int64_t r = 0; r < mesh[0]; ++r) {
          for (int64_t c = 0; c < mesh[1]; ++c) {
            float expected = 0;
            for (int64_t r2 = 0; r2 < mesh[0]; ++r2) {
              for (int64_t c2 = 0; c2 < mesh[1]; ++c2) {
                if ((r == r2 || (axes & 1)) && (c == c2 || (axes & 2)))
                  expected += static_cast<float>(r2 * mesh[1] + c2 + 1);
              }
            }
            for (int64_t i = 0; i < width; ++i) ASSERT_EQ(out.floats()[(r * mesh[1] + c) * width + i], expected);
          }
        }
      }
    }
  }
}

TEST(Executor, LoopsAndBranches) {
  Plan plan;
  plan.name = "control";
  plan.slots = {"i", "n"};
  plan.params = {{"y", kFloat32, {BindSlot{1}}, {}, true, true, {}}};
  const Step add{Launch{0, "add", P::slot(1), {0, 0}, {P::slot(0)}}};
  const Step add_hundred{Launch{0, "add", P::slot(1), {0, 0}, {100}}};
  const P odd = P::binary(ScalarOp::FloorMod, P::slot(0), 2);
  plan.steps = {{Loop{0, 2, 4, {{Branch{odd, {add}, {add_hundred}}}}}},
                {Loop{0, 0, -3, {add_hundred}}},
                {Loop{0, 0, 0, {add_hundred}}}};
  HostTensor y(kFloat32, {3});
  Executor(plan, {add_kernel}).call(std::vector{y.arg()});
  for (float v : y.floats()) EXPECT_EQ(v, 100 + 3 + 100 + 5);
}

TEST(Executor, ScratchIsPrivateToATask) {
  const int before = num_threads();
  set_num_threads(4);
  Plan plan;
  plan.name = "double";
  plan.slots = {"n"};
  plan.params = {{"y", kFloat32, {BindSlot{0}}, {}, true, true, {}}};
  plan.steps = {{Launch{0, "double", P::slot(0), {0}, {}, 1024, 1}}};
  HostTensor y(kFloat32, {500});
  std::iota(y.floats().begin(), y.floats().end(), 0.0f);
  Executor(plan, {scratch_kernel}).call(std::vector{y.arg()});
  for (int64_t i = 0; i < 500; ++i) ASSERT_EQ(y.floats()[i], static_cast<float>(2 * i));
  set_num_threads(before);
}

TEST(Executor, ConcurrentCallsDoNotMeet) {
  const Executor executor(mesh_plan({2, 2}, 2), {seed_kernel, collect_kernel});
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int64_t t = 0; t < 4; ++t) {
    callers.emplace_back([&, width = 10 + 700 * t] {
      for (int round = 0; round < 100; ++round) {
        HostTensor out(kFloat32, {4, width});
        executor.call(std::vector{out.arg()});
        for (int64_t i = 0; i < 4 * width; ++i) wrong += out.floats()[i] != (i < 2 * width ? 3.0f : 7.0f);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  executor.release_memory();
  HostTensor out(kFloat32, {4, 3});
  executor.call(std::vector{out.arg()});
  EXPECT_EQ(out.floats()[11], 7.0f);
}

TEST(Executor, InterruptEndsACallAndTheNextOneRuns) {
  Plan plan;
  plan.name = "sleep";
  plan.slots = {"i"};
  plan.steps = {{Loop{0, 0, 100000, {{Launch{0, "sleep", 1, {}, {}}}}}}};
  const Executor between(plan, {sleep_kernel});
  plan.steps = {{Launch{0, "sleep", 100000, {}, {}}}};
  const Executor inside(plan, {sleep_kernel});
  int asked = 0;
  InterruptHook hook = [&] { return ++asked >= 3; };
  EXPECT_THROW(between.call({}, {}, {&hook, {}}), Interrupted);
  EXPECT_GE(asked, 3);
  asked = 0;
  EXPECT_THROW(inside.call({}, {}, {&hook, {}}), Interrupted);  // undisturbed, it would sleep for minutes
  EXPECT_GE(asked, 3);
  HostTensor x(kFloat32, {4}), y(kFloat32, {4});
  const Executor add(add_plan(), {add_kernel});
  EXPECT_NO_THROW(add.call(std::vector{x.arg(), y.arg()}, std::vector<ScalarArgument>{int64_t{1}}, {&hook, {}}));
}

class FailingCommunicator final : public Communicator {
 public:
  void run(CollectiveKind, const CollectiveRequest&) override { throw std::runtime_error("link down"); }
};

TEST(Executor, WhatACollectiveThrowsReachesTheCaller) {
  const Executor executor(mesh_plan({1, 2}, 2), {seed_kernel, collect_kernel}, std::make_shared<FailingCommunicator>());
  HostTensor out(kFloat32, {2, 3});
  EXPECT_THROW(executor.call(std::vector{out.arg()}), std::runtime_error);
}

TEST(Executor, UnsoundPlansAreInternalErrors) {
  auto broken = [](auto change) {
    Plan plan = mesh_plan({2, 2}, 2);
    change(plan);
    return plan;
  };
  EXPECT_THROW(Executor(mesh_plan({2, 2}, 2), {seed_kernel}), InternalError);
  EXPECT_THROW(Executor(broken([](Plan& p) { p.steps[0] = {Allocate{0}}; }), {seed_kernel, collect_kernel}),
               InternalError);
  EXPECT_THROW(
      Executor(broken([](Plan& p) { std::get<Launch>(p.steps[1].node).buffers = {2}; }), {seed_kernel, collect_kernel}),
      InternalError);
  EXPECT_THROW(
      Executor(broken([](Plan& p) { std::get<Collective>(p.steps[2].node).axes = 4; }), {seed_kernel, collect_kernel}),
      InternalError);
  for (int64_t slot : {0, 9}) {
    const auto permutes = [&](Plan& p) {
      Collective& step = std::get<Collective>(p.steps[2].node);
      step.kind = CollectiveKind::Permute;
      step.member = slot;
      step.source = P::slot(9 - slot);
    };
    EXPECT_THROW(Executor(broken(permutes), {seed_kernel, collect_kernel}), InternalError);
  }
  EXPECT_THROW(Executor(broken([](Plan& p) { p.slots.clear(); }), {seed_kernel, collect_kernel}), InternalError);
  HostTensor out(kFloat32, {4, 3});
  const Executor early(broken([](Plan& p) { p.steps.erase(p.steps.begin()); }), {seed_kernel, collect_kernel});
  EXPECT_THROW(early.call(std::vector{out.arg()}), InternalError);
  const Executor outside(broken([](Plan& p) { std::get<Collective>(p.steps[2].node).src_offset = 1; }),
                         {seed_kernel, collect_kernel});
  EXPECT_THROW(outside.call(std::vector{out.arg()}), InternalError);
}

/// Leaves n - 1 in element 1 of every core's buffer; the other buffer counts the rounds.
void count_down_kernel(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t c = begin; c < end; ++c) {
    auto* mine = reinterpret_cast<int16_t*>(static_cast<std::byte*>(buffers[0]) + c * scalars[1]);
    mine[1] = static_cast<int16_t>(scalars[0] - 1);
    if (c == 0) static_cast<float*>(buffers[1])[0] += 1;
  }
}

Plan count_down_plan(std::vector<int64_t> mesh) {
  Plan plan;
  plan.name = "count";
  plan.mesh = std::move(mesh);
  plan.mesh_axes = {"x", "y"};
  plan.slots = {"w", "n"};
  plan.params = {{"rounds", kFloat32, {BindSlot{0}}, {}, true, true, {}}};
  plan.buffers = {{"left", {kDLInt, 16, 1}, 2, true, 64}};
  const Read read{1, 1, 1, {kDLInt, 16, 1}};
  const Step down{Launch{0, "down", core_count(plan), {1, 0}, {P::slot(1)}}};
  const ControlValue more{ControlUse::Condition, {read}, P::binary(ScalarOp::Lt, -2, P::slot(1))};
  plan.steps = {{Allocate{1}}, {Loop{1, 5, 1, {down}}}, {Repeat{more, {down}}}};
  return plan;
}

TEST(Executor, RepeatsUntilMemorySaysSo) {
  for (const auto& mesh : {std::vector<int64_t>{2, 3}, {3, 2}, {1, 1}}) {
    const Executor executor(count_down_plan(mesh), {count_down_kernel});
    HostTensor rounds(kFloat32, {1});
    executor.call(std::vector{rounds.arg()});
    EXPECT_EQ(rounds.floats()[0], 7);  // 4, 3, 2, 1, 0, -1, -2
  }
}

/// Leaves in element 1 of every core's buffer the column and whether the row is odd: 10 * column + row % 2.
void number_kernel(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t c = begin; c < end; ++c) {
    auto* mine = reinterpret_cast<int16_t*>(static_cast<std::byte*>(buffers[0]) + c * scalars[1]);
    mine[1] = static_cast<int16_t>(10 * (c % 3) + c / 3 % 2);
  }
}

/// Adds the slot, and 100 for each launch, to the core's element of the parameter.
void count_kernel(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
  for (int64_t c = begin; c < end; ++c) static_cast<float*>(buffers[0])[c] += static_cast<float>(100 + scalars[0]);
}

/// On a mesh of rows of 3: parts by `value` of the number n that number_kernel leaves, with `body` there.
Plan diverging_plan(int64_t rows, ControlValue control, std::vector<Step> body) {
  Plan plan;
  plan.name = "diverging";
  plan.mesh = {rows, 3};
  plan.mesh_axes = {"x", "y"};
  plan.slots = {"n", "answer"};
  plan.params = {{"counts", kFloat32, {rows * 3}, {}, true, true, {}}};
  plan.buffers = {{"number", {kDLInt, 16, 1}, 2, true, 64}};
  control.head.insert(control.head.begin(), Read{1, 1, 0, {kDLInt, 16, 1}});
  plan.steps = {{Allocate{1}},
                {Launch{0, "number", rows * 3, {1}, {0}}},
                {Diverge{std::move(control), 1, std::move(body)}},
                {Launch{1, "count", rows * 3, {0}, {1000}}}};
  return plan;
}

TEST(Executor, CoresThatAgreeGoOnTogether) {
  for (const int64_t rows : {1, 2, 4}) {
    const int64_t cores = rows * 3;
    const Step count{Launch{1, "count", cores, {0}, {P::slot(1)}}};
    const Step twice{Branch{P::binary(ScalarOp::Lt, P::slot(1), 15), {count, count}, {count}}};
    const Executor executor(diverging_plan(rows, {ControlUse::Value, {}, P::slot(0)}, {twice}),
                            {number_kernel, count_kernel});
    HostTensor counts(kFloat32, {cores});
    executor.call(std::vector{counts.arg()});
    executor.call(std::vector{counts.arg()});
    for (int64_t c = 0; c < cores; ++c) {
      const int64_t n = 10 * (c % 3) + c / 3 % 2, launches = n < 15 ? 2 : 1;
      EXPECT_EQ(counts.floats()[c], static_cast<float>(2 * (launches * (100 + n) + 1100))) << "core " << c;
    }
  }
}

TEST(Executor, GroupsThatPartCommunicateApart) {
  const int64_t rows = 4;
  const P row = P::binary(ScalarOp::FloorMod, P::slot(0), 10);
  Collective gather;
  gather.kind = CollectiveKind::AllReduce;
  gather.axes = 2;
  gather.src = gather.dst = 1;
  gather.src_offset = gather.dst_offset = 1;
  gather.extents = {1};
  gather.src_strides = gather.dst_strides = {1};
  gather.dtype = {kDLInt, 16, 1};
  const UniformityCheck check{2, {Code::DivergentCollective, {}, {{"operation", "sum"}, {"axis", "y"}}, {}, {}}};
  const Step count{Launch{1, "count", rows * 3, {0}, {P::slot(1)}}};
  const Step reads{Diverge{{ControlUse::Value, {Read{1, 1, 0, {kDLInt, 16, 1}}}, P::slot(0)}, 1, {count}}};
  const Plan plan = diverging_plan(rows, {ControlUse::Condition, {}, row, {check}},
                                   {{Branch{P::slot(1), {{gather}, reads}, {reads}}}});
  const Executor executor(plan, {number_kernel, count_kernel});
  HostTensor counts(kFloat32, {rows * 3});
  executor.call(std::vector{counts.arg()});
  for (int64_t c = 0; c < rows * 3; ++c) {
    const int64_t n = c / 3 % 2 == 1 ? 33 : 10 * (c % 3);
    EXPECT_EQ(counts.floats()[c], static_cast<float>(100 + n + 1100)) << "core " << c;
  }

  // Along the columns rows 0 and 1 would have to meet.
  Plan apart = plan;
  auto& diverge = std::get<Diverge>(apart.steps[2].node);
  std::get<Collective>(std::get<Branch>(diverge.body[0].node).then_steps[0].node).axes = 1;
  EXPECT_THROW(Executor(apart, {number_kernel, count_kernel}), InternalError);  // no uniformity check over this axis
  diverge.control.checks[0].axes = 1;
  try {
    Executor(apart, {number_kernel, count_kernel}).call(std::vector{counts.arg()});
    FAIL() << "not refused";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().code, Code::DivergentCollective);
    ASSERT_EQ(e.diagnostic().notes.size(), 1u);
    EXPECT_EQ(e.diagnostic().notes[0].text, "the condition is false on core (0, 0) and true on core (1, 0)");
  }
  // The next call has all cores again.
  executor.call(std::vector{counts.arg()});
  EXPECT_EQ(counts.floats()[5], static_cast<float>(2 * (133 + 1100)));
}

TEST(Executor, CoresLeaveARepeatOneByOne) {
  Plan plan = diverging_plan(2, {ControlUse::Value, {}, P::slot(0)}, {});
  const Read read{1, 1, 0, {kDLInt, 16, 1}};
  const Step down{Launch{2, "down", 6, {1}, {0}}};
  const Step count{Launch{1, "count", 6, {0}, {0}}};
  plan.steps[2] = {Repeat{{ControlUse::Condition, {read}, P::binary(ScalarOp::Lt, 0, P::slot(0))}, {count, down}}};
  const auto down_kernel = [](void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end, std::byte*) {
    for (int64_t c = begin; c < end; ++c) {
      --reinterpret_cast<int16_t*>(static_cast<std::byte*>(buffers[0]) + c * scalars[1])[1];
    }
  };
  const Executor executor(plan, {number_kernel, count_kernel, down_kernel});
  HostTensor counts(kFloat32, {6});
  executor.call(std::vector{counts.arg()});
  for (int64_t c = 0; c < 6; ++c) {
    EXPECT_EQ(counts.floats()[c], static_cast<float>(100 * (10 * (c % 3) + c / 3) + 1100)) << "core " << c;
  }
}

TEST(Executor, ReadsStayInsideAndReadIntegers) {
  const auto broken = [](auto&& change) {
    Plan plan = count_down_plan({1, 2});
    change(std::get<Read>(std::get<Repeat>(plan.steps[2].node).control.head[0]));
    return plan;
  };
  EXPECT_THROW(Executor(broken([](Read& r) { r.dtype = kFloat32; }), {count_down_kernel}), InternalError);
  EXPECT_THROW(Executor(broken([](Read& r) { r.slot = 2; }), {count_down_kernel}), InternalError);
  EXPECT_THROW(Executor(broken([](Read& r) { r.buffer = 2; }), {count_down_kernel}), InternalError);
  for (int64_t offset : {-1, 2}) {
    const Executor executor(broken([&](Read& r) { r.offset = offset; }), {count_down_kernel});
    HostTensor rounds(kFloat32, {1});
    EXPECT_THROW(executor.call(std::vector{rounds.arg()}), InternalError);
  }
}

TEST(Plan, TextOfRepeats) {
  const std::string text = to_text(count_down_plan({1, 2}));
  EXPECT_EQ(text.substr(text.find("    repeat:")),
            "    repeat:\n"
            "        read n from left: int16 at 1\n"
            "        leave unless (-2) < n\n"
            "        launch down (kernel 0) blocks 2 buffers [left, rounds] scalars [n]\n");
}

TEST(Plan, Text) {
  Plan plan = mesh_plan({2, 3}, 2);
  plan.params[0].may_alias = {0};
  const Step body = plan.steps[1];
  plan.steps.push_back({Loop{0, 0, 4, {{Branch{P::slot(0), {body}, {{Allocate{1}}}}}}}});
  Collective put;
  put.kind = CollectiveKind::Permute;
  put.src = put.dst = 1;
  put.axes = 3;
  put.source = P::binary(ScalarOp::Sub, P::slot(0), P(1));
  plan.steps.push_back({put});
  Collective gather = put;
  gather.kind = CollectiveKind::Gather;
  gather.root = P(2);
  plan.steps.push_back({gather});
  EXPECT_EQ(to_text(plan), "plan sums on mesh(x: 2, y: 3)\n"
                           "    tensor out: float32[6, ?w] written may_alias(out)\n"
                           "    buffer part: float32[w] per core align 64\n"
                           "    allocate part\n"
                           "    launch seed (kernel 0) blocks 6 buffers [part] scalars [w]\n"
                           "    all_reduce sum over (y) float32 [w]: part + 0 [1] by 0 -> part + 0 [1] by 0\n"
                           "    launch collect (kernel 1) blocks 6 buffers [out, part] scalars [w]\n"
                           "    for w from 0 for 4:\n"
                           "        if w:\n"
                           "            launch seed (kernel 0) blocks 6 buffers [part] scalars [w]\n"
                           "        else:\n"
                           "            allocate part\n"
                           "    permute over (x, y) from w -> w - 1 float32 []: part + 0 [] by 0 -> part + 0 [] by 0\n"
                           "    gather over (x, y) root 2 float32 []: part + 0 [] by 0 -> part + 0 [] by 0\n");
}

}  // namespace
}  // namespace helve::runtime
