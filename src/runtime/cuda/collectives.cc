// Kernels of collectives, and their launches.
// One thread computes one element of one destination; its sources follow from core numbers.
#include "collectives.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/runtime/cuda/element_text.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve::runtime::cuda {

namespace {

constexpr int kThreads = 256;
constexpr int kBlocksPerMultiprocessor = 8;

/// The sources of members of a permutation are parameters of its kernel, of so many members in a launch.
constexpr int64_t kSources = 256;
struct Sources {
  int32_t of[kSources];
};

/// The text of one collective's kernel.
class KernelWriter {
 public:
  KernelWriter(const std::vector<int64_t>& mesh, const Collective& step) : mesh_(mesh), step_(step) {
    type_ = reduces(step.kind) ? reduced_type(step.dtype) : moved_type(step.dtype);
    if (type_.stored.empty()) {
      throw UserError(Code::ReductionDType, {},
                      {{"dtype", to_text(step.dtype)}, {"operation", std::string(name_of(step.op))}});
    }
  }

  std::string write(const std::string& name) {
    groups(name);
    if (step_.kind == CollectiveKind::Permute) {
      out_.line(fmt::format("struct Sources_{} {{ int of[{}]; }};", name, kSources));
    }
    std::string head = fmt::format(
        "extern \"C\" __global__ void {}(const char* src, char* dst, char* packed, Int mode, Int begin, Int "
        "end, Int src_stride, "
        "Int dst_stride, Int src_offset, Int dst_offset, Int member_src, Int member_dst, Int root",
        name);
    for (const char* each : {"n", "s", "d"}) {
      for (size_t d = 0; d < step_.extents.size(); ++d) head += fmt::format(", Int {}{}", each, d);
    }
    if (step_.kind == CollectiveKind::Permute) {
      head += fmt::format(", const __grid_constant__ Sources_{} sources, Int first", name);
    }
    out_.line(head + ") {");
    {
      auto body = out_.indent();
      out_.line(fmt::format("typedef {} E;", type_.stored));
      out_.line("for (Int t = begin + blockIdx.x * (Int)blockDim.x + threadIdx.x; t < end; "
                "t += gridDim.x * (Int)blockDim.x) {");
      element(name);
      out_.line("}");
    }
    out_.line("}");
    return out_.text();
  }

 private:
  /// member_<name>(core, k): core number of member k of the core's group; rank_<name>(core): its own number there.
  void groups(const std::string& name) {
    std::string member, rank = "0";
    int64_t stride = 1;
    for (size_t a = mesh_.size(); a-- > 0; stride *= mesh_[a]) {
      if ((step_.axes >> a & 1) == 0) continue;
      member += fmt::format(" core += (k % {0} - core / {1} % {0}) * {1}; k /= {0};", mesh_[a], stride);
    }
    int64_t inner = 1;
    for (int64_t extent : mesh_) inner *= extent;
    for (size_t a = 0; a < mesh_.size(); ++a) {
      inner /= mesh_[a];
      if (step_.axes >> a & 1) rank = fmt::format("({} * {} + core / {} % {})", rank, mesh_[a], inner, mesh_[a]);
    }
    out_.line(fmt::format("static __device__ Int member_{}(Int core, Int k) {{{} return core; }}", name, member));
    out_.line(fmt::format("static __device__ Int rank_{}(Int core) {{ return {}; }}", name, rank));
  }

  void element(const std::string& name) {
    auto body = out_.indent();
    const int64_t members = group_size(mesh_, step_.axes);
    out_.line("Int rest = t, from = src_offset, to = dst_offset;");
    for (size_t d = step_.extents.size(); d-- > 0;) {
      out_.line(fmt::format("{{ const Int i = rest % n{0}; rest /= n{0}; from += i * s{0}; to += i * d{0}; }}", d));
    }
    if (parts_target(step_.kind)) {
      out_.line(fmt::format("const Int k = rest % {0}; rest /= {0}; to += k * member_dst;", members));
    }
    std::string source = fmt::format("member_{}(core, k)", name);
    out_.line("const Int core = rest;");
    if (step_.kind == CollectiveKind::Permute) {
      out_.line(fmt::format("const Int me = rank_{}(core) - first;", name));
      out_.line(fmt::format("if (me < 0 || me >= {} || sources.of[me] < 0) continue;", kSources));
      source = fmt::format("member_{}(core, sources.of[me])", name);
    } else if (step_.kind == CollectiveKind::Broadcast || step_.kind == CollectiveKind::Scatter) {
      source = fmt::format("member_{}(core, root)", name);
    }
    if (only_root_receives(step_.kind)) out_.line(fmt::format("if (rank_{}(core) != root) continue;", name));
    if (parts_source(step_.kind)) out_.line(fmt::format("from += rank_{}(core) * member_src;", name));
    out_.line("E result;");
    out_.line("if (mode == 2) {");
    out_.line("    result = ((const E*)packed)[t];");
    out_.line("} else {");
    {
      auto inner = out_.indent();
      reduces(step_.kind) ? fold(members, source) : out_.line(fmt::format("result = {};", stored_at(source)));
    }
    out_.line("}");
    out_.line("if (mode == 1) ((E*)packed)[t] = result;");
    out_.line("else ((E*)(dst + core * dst_stride))[to] = result;");
  }

  static std::string stored_at(const std::string& core) {
    return fmt::format("((const E*)(src + {} * src_stride))[from]", core);
  }

  void fold(int64_t members, const std::string& source) {
    const std::string& value = type_.value;
    out_.line("Int k = 0;");
    out_.line(fmt::format("{} a = {};", value, around(type_.decode, stored_at(source))));
    out_.line(fmt::format("for (k = 1; k < {}; ++k) {{", members));
    out_.line(fmt::format("    const {} b = {};", value, around(type_.decode, stored_at(source))));
    out_.line(fmt::format("    a = {};", combined_text(type_, step_.op)));
    out_.line("}");
    out_.line(fmt::format("result = {};", around(type_.encode, "a")));
  }

  const std::vector<int64_t>& mesh_;
  const Collective& step_;
  ElementType type_;
  TextDocument out_{2};
};

/// The bytes between the first and the last element that a side can touch, over all cores.
struct Reach {
  const std::byte* low;
  const std::byte* high;
};

Reach reach_of(const CoreBuffer& buffer, int64_t offset, std::span<const int64_t> extents,
               std::span<const int64_t> strides, int64_t members, int64_t member_stride, int64_t cores, int64_t bytes) {
  int64_t low = offset, high = offset;
  for (size_t d = 0; d < extents.size(); ++d) (strides[d] < 0 ? low : high) += (extents[d] - 1) * strides[d];
  (member_stride < 0 ? low : high) += (members - 1) * member_stride;
  return {buffer.base + low * bytes, buffer.base + (high + 1) * bytes + (cores - 1) * buffer.stride};
}

}  // namespace

std::string collective_name(size_t index) { return fmt::format("collective_{}", index); }

std::string collective_source(const std::vector<int64_t>& mesh, const std::vector<const Collective*>& collectives) {
  std::string out = element_prelude();
  for (size_t c = 0; c < collectives.size(); ++c) {
    out += "\n" + KernelWriter(mesh, *collectives[c]).write(collective_name(c));
  }
  return out;
}

ExchangeSize exchange_size(const Collective& step, const CollectiveRequest& r) {
  int64_t box = 1;
  for (int64_t extent : r.extents) box *= std::max<int64_t>(extent, 0);
  if (box == 0) return {};
  const int64_t cores = group_size(r.mesh, ~uint64_t{0});
  const int64_t members = group_size(r.mesh, r.axes), bytes = element_bytes(r.dtype);
  ExchangeSize out;
  out.target_elements = box * (parts_target(step.kind) ? members : 1);
  std::vector<int64_t> targets;
  for (int64_t target = 0; target < cores; ++target) {
    if (takes_part(r, target)) targets.push_back(target);
  }
  find_ranges(targets, out.targets);
  const Reach from = reach_of(r.src, r.src_offset, r.extents, r.src_strides, parts_source(step.kind) ? members : 1,
                              r.member_stride_src, cores, bytes);
  const Reach to = reach_of(r.dst, r.dst_offset, r.extents, r.dst_strides, parts_target(step.kind) ? members : 1,
                            r.member_stride_dst, cores, bytes);
  if (from.low < to.high && to.low < from.high) out.exchange_bytes = out.target_elements * cores * bytes;
  return out;
}

void launch_collective(const CollectiveRequest& r, const ExchangeSize& size, std::byte* exchange, CudaFunction function,
                       const Device& device, CudaStream stream) {
  const std::byte* src = r.src.base;
  std::byte *dst = r.dst.base, *packed = exchange;
  int64_t mode = 0, begin = 0, end = 0;
  std::vector<int64_t> numbers = {r.src.stride,        r.dst.stride,        r.src_offset, r.dst_offset,
                                  r.member_stride_src, r.member_stride_dst, r.root};
  for (std::span<const int64_t> list : {r.extents, r.src_strides, r.dst_strides}) {
    numbers.insert(numbers.end(), list.begin(), list.end());
  }
  std::vector<void*> parameters = {&src, &dst, &packed, &mode, &begin, &end};
  for (int64_t& number : numbers) parameters.push_back(&number);
  const auto members = static_cast<int64_t>(r.sources.size());
  Sources sources{};
  int64_t first = 0;
  if (members > 0) {
    parameters.push_back(&sources);
    parameters.push_back(&first);
  }
  const int64_t most = int64_t{device.multiprocessors} * kBlocksPerMultiprocessor;
  const bool direct = size.exchange_bytes == 0;
  const auto launch = [&](const BlockRange& range) {
    begin = range.begin * size.target_elements;
    end = range.end * size.target_elements;
    const int64_t wanted = (end - begin + kThreads - 1) / kThreads;
    const LaunchConfig config{
        {static_cast<unsigned>(std::min(wanted, most)), 1, 1}, {kThreads, 1, 1}, 0, stream, nullptr, 0};
    driver().launch(&config, function, parameters.data(), nullptr);
  };
  for (mode = direct ? 0 : 1; mode <= (direct ? 0 : 2); ++mode) {
    for (first = 0; first < std::max<int64_t>(members, 1); first += kSources) {
      for (int64_t me = first; me < std::min(members, first + kSources); ++me) {
        const int64_t source = r.sources[static_cast<size_t>(me)];
        sources.of[me - first] = static_cast<int32_t>(source < 0 || source >= members ? -1 : source);
      }
      for (const BlockRange& range : size.targets) launch(range);
    }
  }
}

}  // namespace helve::runtime::cuda
