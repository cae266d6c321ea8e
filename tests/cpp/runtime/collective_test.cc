// Collectives of the host against a naive oracle written from their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "helve/runtime/communicator.h"
#include "helve/runtime/minifloat.h"
#include "helve/runtime/process_communicator.h"
#include "helve/runtime/thread_pool.h"
#include "helve/support/diagnostic.h"
#include "runtime/thread_carrier.h"

namespace helve::runtime {
namespace {

using Kind = CollectiveKind;
using Index = std::vector<int64_t>;

/// How the oracle sees a dtype: elements as bits, combined by a function of its own.
struct Dtype {
  DLDataType dtype;
  uint64_t (*random)(std::mt19937_64&);
  uint64_t (*combine)(const std::vector<uint64_t>&, ReduceOp);
};

template <class T>
uint64_t to_bits(T value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}
template <class T>
T from_bits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <class A>
A fold(const std::vector<A>& values, ReduceOp op) {
  A result = values[0];
  for (size_t i = 1; i < values.size(); ++i) {
    const A v = values[i];
    switch (op) {
      case ReduceOp::Sum: result = static_cast<A>(result + v); break;
      case ReduceOp::Prod: result = static_cast<A>(result * v); break;
      case ReduceOp::Max: result = result != result ? result : (v != v || v > result) ? v : result; break;
      case ReduceOp::Min: result = result != result ? result : (v != v || v < result) ? v : result; break;
    }
  }
  return result;
}

template <class T>
uint64_t fold_plain(const std::vector<uint64_t>& bits, ReduceOp op) {
  std::vector<T> values;
  for (uint64_t b : bits) values.push_back(from_bits<T>(b));
  return to_bits(fold(values, op));
}
template <class Format>
uint64_t fold_narrow(const std::vector<uint64_t>& bits, ReduceOp op) {
  std::vector<float> values;
  for (uint64_t b : bits) values.push_back(Format::decode(static_cast<uint32_t>(b)));
  return Format::encode(fold(values, op));
}
uint64_t fold_int32(const std::vector<uint64_t>& bits, ReduceOp op) {
  std::vector<int32_t> values;
  for (uint64_t b : bits) values.push_back(from_bits<int32_t>(b));
  if (op == ReduceOp::Max || op == ReduceOp::Min) return to_bits(fold(values, op));
  std::vector<uint32_t> wrapping(values.begin(), values.end());
  return to_bits(fold(wrapping, op));
}
uint64_t fold_bool(const std::vector<uint64_t>& bits, ReduceOp op) {
  bool all = true, any = false;
  for (uint64_t b : bits) all = all && b, any = any || b;
  return op == ReduceOp::Sum || op == ReduceOp::Max ? any : all;
}

template <class T>
uint64_t random_real(std::mt19937_64& rng) {
  return to_bits(static_cast<T>(std::uniform_real_distribution<double>(-4, 4)(rng)));
}
template <class Format>
uint64_t random_narrow(std::mt19937_64& rng) {
  return Format::encode(std::uniform_real_distribution<float>(-4, 4)(rng));
}
template <uint64_t Mask>
uint64_t random_bits(std::mt19937_64& rng) {
  return rng() & Mask;
}

const std::vector<Dtype>& dtypes() {
  static const std::vector<Dtype> list = {
      {{kDLFloat, 32, 1}, random_real<float>, fold_plain<float>},
      {{kDLFloat, 64, 1}, random_real<double>, fold_plain<double>},
      {{kDLFloat, 16, 1}, random_narrow<Float16>, fold_narrow<Float16>},
      {{kDLBfloat, 16, 1}, random_narrow<BFloat16>, fold_narrow<BFloat16>},
      {{kDLFloat8_e4m3fn, 8, 1}, random_narrow<Float8E4M3Fn>, fold_narrow<Float8E4M3Fn>},
      {{kDLFloat8_e5m2, 8, 1}, random_narrow<Float8E5M2>, fold_narrow<Float8E5M2>},
      {{kDLInt, 32, 1}, random_bits<0xffffffff>, fold_int32},
      {{kDLUInt, 8, 1}, random_bits<0xff>, fold_plain<uint8_t>},
      {{kDLUInt, 64, 1}, random_bits<~uint64_t{0}>, fold_plain<uint64_t>},
      {{kDLBool, 8, 1}, random_bits<1>, fold_bool},
  };
  return list;
}

/// A buffer of all cores, elements as bits.
struct Memory {
  int64_t cores, elements, bytes, stride;
  std::vector<std::byte> data;

  Memory(int64_t c, int64_t e, int64_t b)
      : cores(c), elements(e), bytes(b), stride((e * b + 63) / 64 * 64), data(c * stride + 64) {}
  uint64_t get(int64_t core, int64_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, data.data() + core * stride + i * bytes, bytes);
    return bits;
  }
  void set(int64_t core, int64_t i, uint64_t bits) {
    std::memcpy(data.data() + core * stride + i * bytes, &bits, bytes);
  }
};

Index coordinates(const Index& mesh, int64_t core) {
  Index c(mesh.size());
  for (size_t a = mesh.size(); a-- > 0; core /= mesh[a]) c[a] = core % mesh[a];
  return c;
}

/// Members of the group of `core`, by comparing coordinates of all cores.
Index group_of(const Index& mesh, uint64_t axes, int64_t core) {
  int64_t cores = 1;
  for (int64_t e : mesh) cores *= e;
  Index members;
  for (int64_t other = 0; other < cores; ++other) {
    bool same = true;
    for (size_t a = 0; a < mesh.size(); ++a) {
      if ((axes >> a & 1) == 0) same = same && coordinates(mesh, core)[a] == coordinates(mesh, other)[a];
    }
    if (same) members.push_back(other);
  }
  return members;
}

std::vector<Index> box_points(const Index& extents) {
  std::vector<Index> points{{}};
  for (int64_t e : extents) {
    std::vector<Index> next;
    for (const Index& p : points) {
      for (int64_t i = 0; i < e; ++i) {
        next.push_back(p);
        next.back().push_back(i);
      }
    }
    points = std::move(next);
  }
  return points;
}

int64_t dot(const Index& a, const Index& b) {
  int64_t sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

struct Case {
  Kind kind;
  Index mesh;
  uint64_t axes = 0;
  Index extents, src_strides, dst_strides;
  int64_t src_offset = 0, dst_offset = 0, mss = 0, msd = 0, root = 0;
  ReduceOp op = ReduceOp::Sum;
  Index sources = {};
  Index cores = {};  ///< that take part; empty: all

  bool leaves_out(int64_t core) const { return !cores.empty() && !std::ranges::count(cores, core); }
};

void oracle(const Case& c, const Dtype& dtype, const Memory& src, Memory& dst) {
  const int64_t cores = dst.cores;
  std::vector<Index> groups;
  for (int64_t core = 0; core < cores; ++core) groups.push_back(group_of(c.mesh, c.axes, core));
  for (const Index& point : box_points(c.extents)) {
    const int64_t s = c.src_offset + dot(point, c.src_strides), d = c.dst_offset + dot(point, c.dst_strides);
    for (int64_t core = 0; core < cores; ++core) {
      if (c.leaves_out(core)) continue;
      const Index& group = groups[static_cast<size_t>(core)];
      const int64_t me = std::find(group.begin(), group.end(), core) - group.begin();
      std::vector<uint64_t> values;
      for (size_t k = 0; k < group.size(); ++k) {
        const auto member = static_cast<int64_t>(k);
        switch (c.kind) {
          case Kind::Gather:
            if (me != c.root) break;
            [[fallthrough]];
          case Kind::AllGather: dst.set(core, d + member * c.msd, src.get(group[k], s)); break;
          case Kind::AllToAll: dst.set(core, d + member * c.msd, src.get(group[k], s + me * c.mss)); break;
          case Kind::Reduce:
            if (me != c.root) break;
            [[fallthrough]];
          case Kind::AllReduce: values.push_back(src.get(group[k], s)); break;
          case Kind::Scatter:
            if (member == c.root) dst.set(core, d, src.get(group[k], s + me * c.mss));
            break;
          case Kind::Permute:
            if (member == c.sources[static_cast<size_t>(me)]) dst.set(core, d, src.get(group[k], s));
            break;
          case Kind::ReduceScatter: values.push_back(src.get(group[k], s + me * c.mss)); break;
          default: break;
        }
      }
      if (!values.empty()) dst.set(core, d, dtype.combine(values, c.op));
      if (c.kind == Kind::Broadcast) dst.set(core, d, src.get(group[static_cast<size_t>(c.root)], s));
    }
  }
}

void run(Communicator& communicator, const Case& c, const Dtype& dtype, const Memory& src, Memory& dst) {
  CollectiveRequest r;
  r.mesh = c.mesh;
  r.axes = c.axes;
  r.cores = c.cores;
  r.dtype = dtype.dtype;
  r.op = c.op;
  r.src = {const_cast<std::byte*>(src.data.data()), src.stride};
  r.dst = {dst.data.data(), dst.stride};
  r.src_offset = c.src_offset;
  r.dst_offset = c.dst_offset;
  r.extents = c.extents;
  r.src_strides = c.src_strides;
  r.dst_strides = c.dst_strides;
  r.member_stride_src = c.mss;
  r.member_stride_dst = c.msd;
  r.root = c.root;
  r.sources = c.sources;
  communicator.run(c.kind, r);
}

void run(const Case& c, const Dtype& dtype, const Memory& src, Memory& dst) {
  HostCommunicator here;
  run(here, c, dtype, src, dst);
}

/// A thread for each core, which touches the memory of its own core alone.
void run_on_processes(const Case& c, const Dtype& dtype, const Memory& src, Memory& dst) {
  test::Network network(dst.cores);
  const auto faults = test::on_processes(network, {}, [&](ProcessGroup& processes) {
    if (c.leaves_out(processes.rank())) return;
    ProcessCommunicator own(std::shared_ptr<ProcessGroup>(&processes, [](ProcessGroup*) {}), "a plan");
    run(own, c, dtype, src, dst);
  });
  for (const std::exception_ptr& fault : faults) {
    if (fault) std::rethrow_exception(fault);
  }
}

int64_t cores_of(const Index& mesh) {
  int64_t n = 1;
  for (int64_t e : mesh) n *= e;
  return n;
}

void fill(Memory& memory, const Dtype& dtype, uint64_t seed) {
  std::mt19937_64 rng(seed);
  for (int64_t c = 0; c < memory.cores; ++c) {
    for (int64_t i = 0; i < memory.elements; ++i) memory.set(c, i, dtype.random(rng));
  }
}

/// Out of place and with src and dst the same buffer, bytes outside the destination box included.
void expect_like_oracle(const Case& c, const Dtype& dtype, int64_t elements, const std::string& label) {
  const int64_t cores = cores_of(c.mesh);
  Memory src(cores, elements, element_bytes(dtype.dtype)), dst = src;
  fill(src, dtype, 1);
  fill(dst, dtype, 2);
  Memory expected = dst;
  oracle(c, dtype, src, expected);
  run(c, dtype, src, dst);
  EXPECT_EQ(dst.data, expected.data) << label;
  Memory same = src;
  expected = src;
  oracle(c, dtype, src, expected);
  run(c, dtype, same, same);
  EXPECT_EQ(same.data, expected.data) << label << " in place";
}

/// The same between processes.
void expect_like_oracle_on_processes(const Case& c, const Dtype& dtype, int64_t elements) {
  Memory src(cores_of(c.mesh), elements, element_bytes(dtype.dtype)), dst = src;
  fill(src, dtype, 1);
  fill(dst, dtype, 2);
  Memory expected = dst;
  oracle(c, dtype, src, expected);
  run_on_processes(c, dtype, src, dst);
  EXPECT_EQ(dst.data, expected.data) << name_of(c.kind) << " over " << c.axes;
  Memory same = src;
  expected = src;
  oracle(c, dtype, src, expected);
  run_on_processes(c, dtype, same, same);
  EXPECT_EQ(same.data, expected.data) << name_of(c.kind) << " over " << c.axes << " in place";
}

struct Box {
  Index extents, src_strides, dst_strides;
};

/// Each member of a group from the one before it; the first from the last, or from none.
Index ring(int64_t members, bool closed = true) {
  Index sources;
  for (int64_t k = 0; k < members; ++k) sources.push_back(closed ? (k + members - 1) % members : k - 1);
  return sources;
}

const std::vector<Kind> kKinds = {Kind::AllGather, Kind::Gather,        Kind::Broadcast, Kind::Scatter, Kind::AllReduce,
                                  Kind::Reduce,    Kind::ReduceScatter, Kind::AllToAll,  Kind::Permute};

void all_cases(const Index& mesh, const Dtype& dtype, const Box& box, const std::string& label) {
  int64_t reach = 1;
  for (size_t d = 0; d < box.extents.size(); ++d) {
    reach += std::max<int64_t>(box.extents[d] - 1, 0) * std::max(box.src_strides[d], box.dst_strides[d]);
  }
  const int64_t elements = 5 + cores_of(mesh) * reach;
  for (uint64_t axes = 0; axes < uint64_t{1} << mesh.size(); ++axes) {
    const int64_t members = group_size(mesh, axes);
    Case c{Kind::AllGather, mesh, axes, box.extents, box.src_strides, box.dst_strides, 3, 2, reach, reach, members - 1};
    c.sources = ring(members, axes % 2 == 0);
    for (Kind kind : {Kind::AllGather, Kind::Gather, Kind::Broadcast, Kind::Scatter, Kind::AllToAll, Kind::Permute}) {
      c.kind = kind;
      expect_like_oracle(c, dtype, elements,
                         label + " " + std::string(name_of(kind)) + " axes " + std::to_string(axes));
    }
    for (Kind kind : {Kind::AllReduce, Kind::Reduce, Kind::ReduceScatter}) {
      c.kind = kind;
      for (ReduceOp op : {ReduceOp::Sum, ReduceOp::Prod, ReduceOp::Max, ReduceOp::Min}) {
        c.op = op;
        for (int64_t dst_offset : {2, 3}) {  // 3: exactly in place where src and dst are one buffer
          c.dst_offset = dst_offset;
          expect_like_oracle(c, dtype, elements,
                             label + " " + std::string(name_of(kind)) + " " + std::string(name_of(op)));
        }
      }
    }
  }
  const int64_t cores = cores_of(mesh);
  Case put{Kind::Permute, mesh, (uint64_t{1} << mesh.size()) - 1, box.extents, box.src_strides, box.dst_strides, 3, 3};
  put.sources.assign(static_cast<size_t>(cores), -1);
  put.sources.back() = 0;
  expect_like_oracle(put, dtype, elements, label + " put");
  put.sources.assign(static_cast<size_t>(cores), cores);
  expect_like_oracle(put, dtype, elements, label + " from none");
}

const std::vector<Index> kMeshes = {{1, 1}, {1, 4}, {2, 2}, {2, 3}, {3, 2}, {2, 4}, {4}, {2, 3, 2}};

TEST(Collective, EveryKindMeshAxisAndDtype) {
  for (const Index& mesh : kMeshes) {
    for (const Dtype& dtype : dtypes()) all_cases(mesh, dtype, {{2, 3}, {3, 1}, {3, 1}}, to_text(dtype.dtype));
  }
}

TEST(Collective, EveryKindAndAxisBetweenProcesses) {
  for (const Index& mesh : {Index{1}, Index{4}, Index{2, 3}, Index{2, 2, 2}}) {
    for (uint64_t axes = 0; axes < uint64_t{1} << mesh.size(); ++axes) {
      Case c{Kind::AllGather, mesh, axes, {2, 3}, {3, 1}, {4, 1}, 3, 3, 6, 8, group_size(mesh, axes) - 1};
      c.sources = ring(group_size(mesh, axes), axes % 2 == 0);
      for (Kind kind : kKinds) {
        c.kind = kind;
        for (const Dtype& dtype : {dtypes().front(), dtypes().back()}) expect_like_oracle_on_processes(c, dtype, 80);
      }
    }
  }
}

TEST(Collective, ProcessesOfAGroupThatDifferEnd) {
  test::Network network(4);
  const auto faults = test::on_processes(network, {}, [&](ProcessGroup& processes) {
    ProcessCommunicator own(std::shared_ptr<ProcessGroup>(&processes, [](ProcessGroup*) {}), "a plan");
    Memory memory(4, 20, 4);
    const bool differs = processes.rank() == 3;
    const Case c{differs ? Kind::AllReduce : Kind::AllGather, {2, 2}, 2, {2}, {1}, {1}, 0, 4, 2, 2};
    run(own, c, dtypes().front(), memory, memory);
  });
  EXPECT_FALSE(faults[0] || faults[1]);  // the other row goes on
  EXPECT_TRUE(faults[2] && faults[3]);
}

TEST(Collective, ACallThatEndsBetweenItsCollectivesIsNoOtherCall) {
  test::Network network(2);
  const auto faults = test::on_processes(network, {.timeout = 0.3}, [&](ProcessGroup& processes) {
    ProcessCommunicator own(std::shared_ptr<ProcessGroup>(&processes, [](ProcessGroup*) {}), "a plan");
    Memory memory(2, 20, 4);
    const Case c{Kind::AllReduce, {2}, 1, {2}, {1}, {1}, 0, 4, 2, 2};
    const auto call = [&](int64_t collectives, bool is_well) {
      CallOfPlan during(own);
      for (int64_t k = 0; k < collectives; ++k) run(own, c, dtypes().front(), memory, memory);
      if (is_well) during.succeed();
    };
    if (processes.rank() == 0) call(0, false);  // refused before it began: made again
    call(2, true);
    if (processes.rank() == 0) {
      call(1, false);
      EXPECT_TRUE(processes.is_broken());
    }
    call(2, true);
  });
  EXPECT_TRUE(faults[0] && faults[1]);
}

TEST(Collective, GroupsThatDoNotTakePartStayAsTheyAre) {
  for (const Index& mesh : {Index{2, 3}, Index{3, 2}, Index{2, 3, 2}}) {
    for (uint64_t axes = 0; axes + 1 < uint64_t{1} << mesh.size(); ++axes) {
      Case c{Kind::AllGather, mesh, axes, {2, 2}, {2, 1}, {2, 1}, 0, 4, 4, 4, group_size(mesh, axes) - 1};
      c.sources = ring(group_size(mesh, axes));
      for (int64_t core = 0; core < cores_of(mesh); ++core) {
        const Index at = coordinates(mesh, group_of(mesh, axes, core).front());
        if (std::accumulate(at.begin(), at.end(), int64_t{0}) % 2 == 1) c.cores.push_back(core);
      }
      for (Kind kind : kKinds) {
        c.kind = kind;
        expect_like_oracle(c, dtypes()[0], 4 + 4 * cores_of(mesh), std::string(name_of(kind)));
      }
    }
  }
}

TEST(Collective, StridedEmptyAndScalarBoxes) {
  const std::map<std::string, Box> boxes = {
      {"scalar", {{}, {}, {}}},
      {"empty", {{3, 0}, {1, 3}, {1, 3}}},
      {"one", {{1, 1}, {7, 9}, {2, 3}}},
      {"strided", {{3, 4}, {9, 2}, {4, 1}}},
      {"transposed", {{3, 4}, {4, 1}, {1, 3}}},
      {"inner one", {{3, 1, 2}, {5, 77, 2}, {2, 55, 1}}},
      {"cube", {{2, 3, 2}, {6, 2, 1}, {1, 2, 6}}},
  };
  for (const Index& mesh : {Index{2, 3}, Index{3, 2}}) {
    for (size_t d : {0u, 3u, 6u}) {
      for (const auto& [name, box] : boxes) all_cases(mesh, dtypes()[d], box, name + " " + to_text(dtypes()[d].dtype));
    }
  }
}

TEST(Collective, LargeBoxesUseThePool) {
  set_num_threads(3);
  const Index mesh{2, 2};
  for (const Box& box : {Box{{40001}, {1}, {1}}, Box{{201, 203}, {203, 1}, {203, 1}}, Box{{9001, 4}, {4, 1}, {5, 1}}}) {
    const int64_t span = 1 + (box.extents[0] - 1) * box.dst_strides[0] + (box.extents.size() > 1 ? box.extents[1] : 0);
    for (Kind kind : {Kind::AllGather, Kind::AllToAll, Kind::AllReduce, Kind::ReduceScatter}) {
      for (int64_t dst_offset : {0, 1}) {
        Case c{kind, mesh, 2, box.extents, box.src_strides, box.dst_strides, 1, dst_offset, span, span};
        expect_like_oracle(c, dtypes()[0], 2 * span + 2, "large " + std::string(name_of(kind)));
      }
    }
  }
  set_num_threads(2);
}

TEST(Collective, MaxAndMinPropagateNaN) {
  const float nan = std::nanf("");
  for (ReduceOp op : {ReduceOp::Max, ReduceOp::Min}) {
    for (int64_t where = 0; where < 3; ++where) {
      Memory memory(3, 1, 4);
      for (int64_t c = 0; c < 3; ++c) memory.set(c, 0, to_bits(c == where ? nan : static_cast<float>(c)));
      run({Kind::AllReduce, {3}, 1, {1}, {1}, {1}, 0, 0, 0, 0, 0, op, {}}, dtypes()[0], memory, memory);
      for (int64_t c = 0; c < 3; ++c) EXPECT_TRUE(std::isnan(from_bits<float>(memory.get(c, 0)))) << where;
    }
  }
}

TEST(Collective, NarrowSumsRoundOnce) {
  // 256 + 1 + 1 in bfloat16 (8 bits): rounding at each step would lose both ones.
  Memory memory(3, 1, 2);
  for (int64_t c = 0; c < 3; ++c) memory.set(c, 0, BFloat16::encode(c == 0 ? 256.0f : 1.0f));
  run({Kind::AllReduce, {3}, 1, {1}, {1}, {1}}, dtypes()[3], memory, memory);
  for (int64_t c = 0; c < 3; ++c) EXPECT_EQ(BFloat16::decode(static_cast<uint32_t>(memory.get(c, 0))), 258.0f);
}

TEST(Collective, AnElementVisitedTwiceIsReadBeforeItIsWritten) {
  Memory memory(2, 1, 4);
  memory.set(0, 0, to_bits(1.0f));
  memory.set(1, 0, to_bits(2.0f));
  run({Kind::AllReduce, {2}, 1, {3}, {0}, {0}}, dtypes()[0], memory, memory);
  EXPECT_EQ(from_bits<float>(memory.get(0, 0)), 3.0f);
}

TEST(Collective, SixteenByteElementsMove) {
  Memory src(2, 3, 16), dst(2, 6, 16);
  for (size_t i = 0; i < src.data.size(); ++i) src.data[i] = static_cast<std::byte>(i * 7);
  run({Kind::AllGather, {2}, 1, {3}, {1}, {2}, 0, 0, 0, 1}, {{kDLComplex, 128, 1}, nullptr, nullptr}, src, dst);
  for (int64_t core : {0, 1}) {
    for (int64_t k : {0, 1}) {
      for (int64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(0, std::memcmp(dst.data.data() + core * dst.stride + (2 * i + k) * 16,
                                 src.data.data() + k * src.stride + i * 16, 16));
      }
    }
  }
}

TEST(Collective, ReductionsWithoutADtypeAreErrors) {
  Memory memory(1, 1, 16);
  try {
    run({Kind::AllReduce, {1}, 1, {1}, {1}, {1}}, {{kDLComplex, 128, 1}, nullptr, nullptr}, memory, memory);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "error[HV0624]: collectives cannot reduce complex128 by sum\n"
                               "help: reduce in float32 and cast the result");
  }
}

}  // namespace
}  // namespace helve::runtime
