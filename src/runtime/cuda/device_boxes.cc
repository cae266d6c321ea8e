// The kernels of boxes, and their launches.
// A thread moves one element; where both sides are contiguous and aligned, up to 16 bytes are one.
#include "helve/runtime/cuda/device_boxes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "device_boxes_abi.h"
#include "helve/runtime/cuda/element_text.h"
#include "helve/runtime/cuda/compile.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

namespace {

constexpr int kBoxThreads = 256;
constexpr int64_t kBlocksOfBox = 16;  ///< per multiprocessor at most
constexpr int kWords[] = {1, 2, 4, 8, 16};
constexpr size_t kReduction = std::size(kWords);  ///< its place among the functions

constexpr const char* kBoxPrelude = R"(
struct BoxDim { Int extent, source, target; };
struct CopyBox { const char* source; char* target; Int count; BoxDim dims[6]; };
struct CopyBoxes { Int boxes; CopyBox box[24]; };
struct ReduceBox { char* target; Int count; BoxDim dims[6]; int terms, continues; const char* sources[480]; };
// Indices of 32 bits where the box allows it, since divisions of 64 bits take as long as the memory.
template <class Index, class Body> static __device__ void for_box(Int count, const BoxDim* dims, Body body) {
  const Index step = gridDim.x * blockDim.x;
  for (Index t = blockIdx.x * blockDim.x + threadIdx.x; t < (Index)count; t += step) {
    Index rest = t;
    Int from = 0, to = 0;
#pragma unroll
    for (int d = 5; d >= 0; --d) {
      const Index extent = (Index)dims[d].extent;
      if (extent == 1) continue;
      const Index i = rest % extent;
      rest /= extent;
      from += (Int)i * dims[d].source;
      to += (Int)i * dims[d].target;
    }
    body(from, to);
  }
}
template <class Word> static __device__ void copy_box(const CopyBox& box) {
  const Word* source = (const Word*)box.source;
  Word* target = (Word*)box.target;
  const auto body = [=](Int from, Int to) { target[to] = source[from]; };
  if (box.count < (1ll << 31)) for_box<unsigned>(box.count, box.dims, body);
  else for_box<Int>(box.count, box.dims, body);
}
)";

std::string copies_source() {
  std::string out = element_prelude();
  out += kBoxPrelude;
  const char* words[] = {"unsigned char", "unsigned short", "unsigned", "unsigned long long", "uint4"};
  for (size_t k = 0; k < std::size(kWords); ++k) {
    out += fmt::format("extern \"C\" __global__ void helve_copy_boxes_{}(const __grid_constant__ CopyBoxes all) {{ "
                       "copy_box<{}>(all.box[blockIdx.y]); }}\n",
                       kWords[k], words[k]);
  }
  return out;
}

std::string reduction_name(DLDataType dtype, ReduceOp op) {
  return fmt::format("helve_reduce_box_{}_{}_{}", dtype.code, dtype.bits, static_cast<int>(op));
}

std::string reduction_source(DLDataType dtype, ReduceOp op) {
  const ElementType type = reduced_type(dtype);
  std::string out = element_prelude();
  out += kBoxPrelude;
  out += fmt::format(R"(
template <class Index> static __device__ void reduce_box(const ReduceBox& box) {{
  typedef {stored} E;
  for_box<Index>(box.count, box.dims, [&](Int from, Int to) {{
    E* target = (E*)box.target + to;
    {value} a = {first};
    if (box.continues) a = {target};
    for (int k = !box.continues; k < box.terms; ++k) {{
      const {value} b = {next};
      a = {combined};
    }}
    *target = {encoded};
  }});
}}
extern "C" __global__ void {name}(const __grid_constant__ ReduceBox box) {{
  if (box.count < (1ll << 31)) reduce_box<unsigned>(box); else reduce_box<Int>(box);
}}
)",
                     fmt::arg("stored", type.stored), fmt::arg("value", type.value),
                     fmt::arg("first", around(type.decode, "((const E*)box.sources[0])[from]")),
                     fmt::arg("target", around(type.decode, "(*target)")),
                     fmt::arg("next", around(type.decode, "((const E*)box.sources[k])[from]")),
                     fmt::arg("combined", combined_text(type, op)), fmt::arg("encoded", around(type.encode, "a")),
                     fmt::arg("name", reduction_name(dtype, op)));
  return out;
}

/// The functions of a source, which stay loaded until the process ends.
std::vector<CudaFunction> load_kernels(const std::string& source, const std::vector<std::string>& names,
                                       const Device& device, const std::vector<std::string>& site_packages) {
  const RelaxedCapture relaxed;
  CompileOptions options;
  options.site_packages = site_packages;
  // The library may read the image later.
  static std::map<std::string, Cubin> images;
  const Cubin& image = images[source + device.arch()] = compile_cubin(source, "boxes.cu", device.arch(), options);
  CudaLibrary library = nullptr;
  driver().library_load_data(&library, image.bytes.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  std::vector<CudaFunction> out;
  for (const std::string& name : names) {
    CudaKernel kernel = nullptr;
    driver().library_get_kernel(&kernel, library, name.c_str());
    driver().kernel_get_function(&out.emplace_back(), kernel);
  }
  return out;
}

/// Loaded once for a device.
const std::vector<CudaFunction>& kernels_of(const std::string& source, const std::vector<std::string>& names,
                                            const Device& device, const std::vector<std::string>& site_packages) {
  static std::mutex mutex;
  static std::map<std::pair<int, std::string>, std::vector<CudaFunction>> known;
  const std::lock_guard<std::mutex> lock(mutex);
  const std::pair<int, std::string> key{device.ordinal, names.front()};
  const auto found = known.find(key);
  return found != known.end() ? found->second
                              : known.emplace(key, load_kernels(source, names, device, site_packages)).first->second;
}

unsigned blocks_of(int64_t count, const Device& device) {
  const int64_t wanted = (count + kBoxThreads - 1) / kBoxThreads;
  return static_cast<unsigned>(std::min<int64_t>(wanted, device.multiprocessors * kBlocksOfBox));
}

template <class Parameter>
void launch_boxes(CudaFunction function, unsigned blocks, unsigned boxes, const Parameter& parameter,
                  CudaStream stream) {
  const LaunchConfig config{{blocks, boxes, 1}, {kBoxThreads, 1, 1}, 0, stream, nullptr, 0};
  void* parameters[] = {const_cast<Parameter*>(&parameter)};
  driver().launch(&config, function, parameters, nullptr);
}

bool divides(int64_t word, const void* address) { return reinterpret_cast<uintptr_t>(address) % word == 0; }

}  // namespace

DeviceBoxes::DeviceBoxes(DLDataType dtype, std::optional<ReduceOp> op) : dtype_(dtype), op_(op) {
  if (op && reduced_type(dtype).stored.empty())
    throw UserError(Code::ReductionDType, {}, {{"dtype", to_text(dtype)}, {"operation", std::string(name_of(*op))}});
}

DeviceBoxes::DeviceBoxes(DeviceBoxes&&) noexcept = default;
DeviceBoxes::~DeviceBoxes() = default;

size_t DeviceBoxes::add_box(std::span<const int64_t> extents, std::span<const int64_t> source_strides,
                            std::span<const int64_t> target_strides) {
  std::vector<Dim> dims;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] != 1) dims.push_back({extents[d], source_strides[d], target_strides[d]});
  }
  // The order of a target's memory, so that neighbouring threads write neighbouring elements.
  std::ranges::stable_sort(dims, std::greater<>(),
                           [](const Dim& dim) { return std::pair(std::abs(dim.target), std::abs(dim.source)); });
  std::vector<Dim> merged;
  for (const Dim& dim : dims) {
    if (!merged.empty() && merged.back().source == dim.source * dim.extent &&
        merged.back().target == dim.target * dim.extent) {
      merged.back() = {merged.back().extent * dim.extent, dim.source, dim.target};
    } else {
      merged.push_back(dim);
    }
  }
  boxes_.push_back(std::move(merged));
  return boxes_.size() - 1;
}

void DeviceBoxes::end_move(size_t box) {
  const Move move{box, next_source_, next_target_, sources_.size() - next_source_, targets_.size() - next_target_};
  HELVE_CHECK(op_ ? move.sources > 0 : move.sources == 1, fmt::format("a move of {} sources", move.sources));
  next_source_ = sources_.size();
  next_target_ = targets_.size();
  moves_.push_back(move);
}

namespace {

template <class Dims>
int64_t elements_of(const Dims& dims) {
  int64_t out = 1;
  for (const auto& dim : dims) out *= std::max<int64_t>(dim.extent, 0);
  return out;
}

/// Calls `code(source, target, inner)` for each index of the dimensions before the last `most`.
template <class Dims, class F>
void for_outer(const Dims& dims, size_t most, F&& code) {
  const size_t outer = dims.size() > most ? dims.size() - most : 0;
  const Dims inner(dims.begin() + static_cast<std::ptrdiff_t>(outer), dims.end());
  std::vector<int64_t> index(outer, 0);
  for (;;) {
    int64_t source = 0, target = 0;
    for (size_t d = 0; d < outer; ++d) {
      source += index[d] * dims[d].source;
      target += index[d] * dims[d].target;
    }
    code(source, target, inner);
    size_t d = outer;
    while (d > 0 && ++index[d - 1] == dims[d - 1].extent) index[--d] = 0;
    if (d == 0) return;
  }
}

template <class Box, class Dims>
void fill_dims(Box& box, const Dims& dims) {
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto& dim = dims[d];
    box.dims[kBoxDims - dims.size() + d] = {dim.extent, dim.source, dim.target};
  }
}

}  // namespace

void DeviceBoxes::add_copies(std::vector<Dim> dims, const std::byte* source, std::byte* target) {
  // The widest word of which all runs and steps are multiples, in bytes.
  const int64_t bytes = element_bytes(dtype_);
  for (Dim& dim : dims) {
    dim.source *= bytes;
    dim.target *= bytes;
  }
  const bool is_run = !dims.empty() && dims.back().source == bytes && dims.back().target == bytes;
  const int64_t run = is_run ? dims.back().extent * bytes : bytes;
  if (is_run) dims.pop_back();
  int64_t word = kWords[kReduction - 1];
  const auto fits = [&] {
    return run % word == 0 && divides(word, source) && divides(word, target) &&
           std::ranges::all_of(dims, [&](const Dim& dim) { return dim.source % word == 0 && dim.target % word == 0; });
  };
  while (!fits()) word /= 2;
  for (Dim& dim : dims) {
    dim.source /= word;
    dim.target /= word;
  }
  if (run > word) dims.push_back({run / word, 1, 1});
  for_outer(dims, kBoxDims, [&](int64_t from, int64_t to, const std::vector<Dim>& inner) {
    auto open = std::ranges::find_if(copies_, [&](const auto& each) {
      return each.first == static_cast<int>(word) && each.second.boxes < kCopyBoxes;
    });
    if (open == copies_.end()) open = copies_.insert(open, {static_cast<int>(word), CopyBoxes()});
    CopyBox& box = open->second.box[open->second.boxes++];
    box.source = source + from * word;
    box.target = target + to * word;
    box.count = elements_of(inner);
    fill_dims(box, inner);
  });
}

void DeviceBoxes::add_reduction(const Move& move, const std::vector<Dim>& dims) {
  const int64_t bytes = element_bytes(dtype_);
  for_outer(dims, kBoxDims, [&](int64_t from, int64_t to, const std::vector<Dim>& inner) {
    for (size_t first = 0; first < move.sources; first += kReduceTerms) {
      ReduceBox& box = reductions_.emplace_back();
      box.target = targets_[move.first_target] + to * bytes;
      box.count = elements_of(inner);
      fill_dims(box, inner);
      box.continues = first > 0;
      box.terms = static_cast<int32_t>(std::min<size_t>(kReduceTerms, move.sources - first));
      for (int32_t k = 0; k < box.terms; ++k)
        box.sources[k] = sources_[move.first_source + first + static_cast<size_t>(k)] + from * bytes;
    }
  });
}

void DeviceBoxes::load(const Device& device, const std::vector<std::string>& site_packages) {
  if (!is_planned_) {
    is_planned_ = true;
    for (const Move& move : moves_) {
      const std::vector<Dim>& dims = boxes_[move.box];
      if (elements_of(dims) == 0) continue;
      if (op_) {
        HELVE_CHECK(move.targets == 1, "a reduction of several targets");
        add_reduction(move, dims);
      } else {
        for (size_t k = 0; k < move.targets; ++k)
          add_copies(dims, sources_[move.first_source], targets_[move.first_target + k]);
      }
    }
  }
  if (copies_.empty() && reductions_.empty()) return;
  functions_.assign(kReduction + 1, nullptr);
  if (!copies_.empty()) {
    std::vector<std::string> names;
    for (const int word : kWords) names.push_back(fmt::format("helve_copy_boxes_{}", word));
    std::ranges::copy(kernels_of(copies_source(), names, device, site_packages), functions_.begin());
  }
  if (!reductions_.empty()) {
    functions_[kReduction] =
        kernels_of(reduction_source(dtype_, *op_), {reduction_name(dtype_, *op_)}, device, site_packages).front();
  }
}

void DeviceBoxes::launch(const Device& device, CudaStream stream) const {
  for (const auto& [word, all] : copies_) {
    const auto place = static_cast<size_t>(std::ranges::find(kWords, word) - kWords);
    int64_t most = 0;
    for (int64_t k = 0; k < all.boxes; ++k) most = std::max(most, all.box[k].count);
    launch_boxes(functions_[place], blocks_of(most, device), static_cast<unsigned>(all.boxes), all, stream);
  }
  for (const ReduceBox& box : reductions_)
    launch_boxes(functions_[kReduction], blocks_of(box.count, device), 1, box, stream);
}

}  // namespace helve::runtime::cuda
