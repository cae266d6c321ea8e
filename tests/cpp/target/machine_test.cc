// The table of machines against figures of the CUDA C++ Programming Guide.
#include "helve/target/machine.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace helve::testing {
namespace {

TEST(Machine, ArchitecturesAreFoundByTheirNumber) {
  const Machine hopper = *gpu_machine("sm_90a");
  EXPECT_EQ(hopper.name, "sm_90a");
  EXPECT_EQ(hopper.arch, 90);
  EXPECT_EQ(hopper.block_shared_bytes, 232448);
  EXPECT_EQ(hopper.cluster_blocks, 16);
  EXPECT_EQ(gpu_machine("sm_80")->block_shared_bytes, 166912);
  EXPECT_EQ(gpu_machine("sm_80")->cluster_blocks, 1);
}

TEST(Machine, AnUnknownOneBetweenTwoIsTheOlder) {
  const Machine between = *gpu_machine("sm_88");
  EXPECT_EQ(between.arch, 88);
  EXPECT_EQ(between.block_shared_bytes, gpu_machine("sm_87")->block_shared_bytes);
  EXPECT_FALSE(between.group_products);
  EXPECT_EQ(known_gpus().substr(0, 12), "sm_80, sm_86");
}

TEST(Machine, WhatNamesNoArchitectureOfTheTablesRangeIsNone) {
  for (const char* arch : {"", "hopper", "banana90", "sm_", "sm_90b", "sm_90aa", "sm_9 0", "SM_90", "sm_-90", "sm_75",
                           "sm_122", "sm_999", "sm_99999999999999999999", "90", "90a", "compute_90"}) {
    EXPECT_FALSE(gpu_machine(arch)) << arch;
  }
}

TEST(Machine, RegistersOfAThread) {
  EXPECT_EQ(any_gpu().value_registers(128), 231);   // of 255
  EXPECT_EQ(any_gpu().value_registers(1024), 40);   // of 64
}

TEST(Machine, RegistersAreThoseOfAFourthOfAProcessor) {
  const Machine machine = *gpu_machine("sm_90a");
  EXPECT_EQ(machine.launch_registers(128), 255);
  EXPECT_EQ(machine.launch_registers(384), 168);
  EXPECT_EQ(machine.launch_registers(288), 168) << "one fourth has three of the nine warps";
  EXPECT_EQ(machine.launch_registers(416), 128) << "as ptxas says of 384 threads and a warp that copies";
}

/// By NVIDIA's occupancy calculator.
TEST(Machine, BlocksOfAMultiprocessor) {
  const Machine ampere = *gpu_machine("sm_80"), ada = *gpu_machine("sm_89"), hopper = *gpu_machine("sm_90a");
  EXPECT_EQ(ampere.blocks_at_once(256, 32, 0), 8) << "threads";
  EXPECT_EQ(ampere.blocks_at_once(32, 16, 0), 32) << "blocks";
  EXPECT_EQ(ada.blocks_at_once(32, 16, 0), 24);
  EXPECT_EQ(ampere.blocks_at_once(256, 128, 0), 2) << "registers";
  EXPECT_EQ(ampere.blocks_at_once(256, 65, 0), 3) << "given out in units of 8 a thread";
  EXPECT_EQ(ampere.blocks_at_once(32, 46, 0), 32) << "40 warps have room";
  EXPECT_EQ(ampere.blocks_at_once(128, 46, 0), 10);
  EXPECT_EQ(hopper.blocks_at_once(384, 168, 0), 1);
  EXPECT_EQ(hopper.blocks_at_once(128, 32, 75 << 10), 3) << "shared memory, with what the system takes of it";
  EXPECT_EQ(hopper.blocks_at_once(128, 32, 76 << 10), 2);
  EXPECT_EQ(ada.blocks_at_once(1024, 64, 0), 1);
}

TEST(Machine, PeaksAreOfTheTypesThatTensorCoresTake) {
  const auto has = [](const Machine& m, DType type) {
    return std::any_of(m.peaks.begin(), m.peaks.end(), [&](const Peak& each) { return each.type == type; });
  };
  const DType fp8{TypeCode::Float8E4M3, 8}, bf16{TypeCode::BFloat, 16};
  EXPECT_TRUE(has(*gpu_machine("sm_90a"), fp8));
  EXPECT_FALSE(has(*gpu_machine("sm_80"), fp8));
  EXPECT_TRUE(has(*gpu_machine("sm_80"), bf16));
}

TEST(Machine, TheHostHasProcessorsAndVectors) {
  EXPECT_GE(host_machine().processors, 1);
  EXPECT_FALSE(host_machine().is_gpu());
  EXPECT_EQ(host_machine().vector_bytes % 16, 0);
}

}  // namespace
}  // namespace helve::testing
