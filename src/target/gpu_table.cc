// NVIDIA's architectures.
// Limits: CUDA C++ Programming Guide, "Compute Capabilities". Processors, cache, bandwidth and peaks are those of the
// data sheet of one product, named in the row; 0 if unknown.
#include <algorithm>
#include <array>
#include <charconv>

#include "helve/target/machine.h"

namespace helve {

namespace {

constexpr int64_t kKiB = 1024, kMiB = 1024 * kKiB;

struct Row {
  int arch;
  int64_t resident_threads, resident_blocks, shared_bytes, block_shared_bytes, cluster_blocks;
  // Of the product.
  int64_t processors, last_cache;
  double bandwidth, float64, tf32, bits16, bits8;  // bytes and operations per second, in units of 10^12
};

// Architectures before Hopper have no clusters; data-centre GPUs support 16 blocks, 8 is the portable maximum.
constexpr std::array<Row, 10> kRows = {{
    {80, 2048, 32, 164 * kKiB, 163 * kKiB, 1, 108, 40 * kMiB, 2.04, 19.5, 156, 312, 624},    // A100, 80 GB
    {86, 1536, 16, 100 * kKiB, 99 * kKiB, 1, 72, 6 * kMiB, 0.60, 0, 0, 0, 0},                // A10
    {87, 1536, 16, 164 * kKiB, 163 * kKiB, 1, 16, 4 * kMiB, 0.20, 0, 0, 0, 0},               // Orin
    {89, 1536, 24, 100 * kKiB, 99 * kKiB, 1, 142, 96 * kMiB, 0.86, 0, 0, 0, 0},              // L40
    {90, 2048, 32, 228 * kKiB, 227 * kKiB, 16, 132, 50 * kMiB, 3.35, 67, 494.5, 989, 1979},  // H100 SXM
    {100, 2048, 32, 228 * kKiB, 227 * kKiB, 16, 148, 126 * kMiB, 8.0, 0, 0, 0, 0},           // B200
    {103, 2048, 32, 228 * kKiB, 227 * kKiB, 16, 148, 126 * kMiB, 8.0, 0, 0, 0, 0},           // B300
    {110, 1536, 24, 228 * kKiB, 227 * kKiB, 8, 20, 0, 0, 0, 0, 0, 0},                        // Thor
    {120, 1536, 24, 100 * kKiB, 99 * kKiB, 8, 170, 96 * kMiB, 1.79, 0, 0, 0, 0},             // RTX 5090
    {121, 1536, 24, 100 * kKiB, 99 * kKiB, 8, 48, 24 * kMiB, 0.27, 0, 0, 0, 0},              // GB10
}};

Machine machine_of(const Row& row, std::string name) {
  constexpr double kTera = 1e12;
  Machine out;
  out.name = std::move(name);
  out.arch = row.arch;
  out.processors = row.processors;
  out.block_threads = 1024;
  out.resident_threads = row.resident_threads;
  out.resident_blocks = row.resident_blocks;
  out.registers = 65536;
  out.thread_registers = 255;
  out.shared_bytes = row.shared_bytes;
  out.block_shared_bytes = row.block_shared_bytes;
  out.cluster_blocks = row.cluster_blocks;
  out.vector_bytes = 16;
  out.last_cache = row.last_cache;
  out.bandwidth = row.bandwidth * kTera;
  const auto peak = [&](DType type, double operations) {
    if (operations > 0) out.peaks.push_back({type, operations * kTera});
  };
  peak(kFloat64, row.float64);
  peak(kFloat32, row.tf32);
  peak({TypeCode::Float, 16}, row.bits16);
  peak({TypeCode::BFloat, 16}, row.bits16);
  peak({TypeCode::Int, 8}, row.bits8);
  if (row.arch >= 89) {
    peak({TypeCode::Float8E4M3, 8}, row.bits8);
    peak({TypeCode::Float8E5M2, 8}, row.bits8);
  }
  return out;
}

}  // namespace

std::optional<Machine> gpu_machine(std::string_view arch) {
  std::string_view digits = arch;
  if (!digits.starts_with("sm_")) return std::nullopt;
  digits.remove_prefix(3);
  int number = 0;
  const auto [end, fault] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (fault != std::errc()) return std::nullopt;
  digits.remove_prefix(static_cast<size_t>(end - digits.data()));
  if (!digits.empty() && digits != "a" && digits != "f") return std::nullopt;
  if (number < kRows.front().arch || number > kRows.back().arch) return std::nullopt;
  const auto newer = std::find_if(kRows.begin(), kRows.end(), [&](const Row& row) { return row.arch > number; });
  Machine out = machine_of(*(newer - 1), std::string(arch));
  out.arch = number;
  out.group_products = number == 90 && digits == "a";  // no later architecture has them
  return out;
}

int64_t most_cluster_blocks() {
  int64_t most = 1;
  for (const Row& row : kRows) most = std::max(most, row.cluster_blocks);
  return most;
}

std::string known_gpus() {
  std::string out;
  for (const Row& row : kRows) out += (out.empty() ? "sm_" : ", sm_") + std::to_string(row.arch);
  return out;
}

const Machine& any_gpu() {
  static const Machine machine = [] {
    Machine out = machine_of(kRows.front(), "sm_80");
    out.cluster_blocks = 8;
    return out;
  }();
  return machine;
}

}  // namespace helve
