// The prelude of the text of a call.
// Each piece is printed for a name that the text after it has; pieces use only those before them.
#include "call_prelude.h"

#include <vector>

namespace helve {

namespace {

struct Piece {
  const char* name;  ///< what asks for it, with the sign that follows
  const char* text;
};

constexpr const char* kTry = R"(// Every call returns through this where it fails.
#define TRY(call)                                    \
  do {                                               \
    if (const int fault = failed(call)) return fault; \
  } while (false)

int failed(int fault) { return fault; }
int failed(CUresult result) { return static_cast<int>(result); }
)";

const std::vector<Piece>& pieces() {
  static const std::vector<Piece> all = {
      {"TRY(", kTry},
      {"nccl",
       R"(int failed(ncclResult_t result) { return result == ncclSuccess ? 0 : 10000 + static_cast<int>(result); }
)"},
      {"floor_div(", R"(int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }
)"},
      {"floor_mod(",
       R"(int64_t floor_mod(int64_t a, int64_t b) { return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0); }
)"},
      {"shift_left(",
       R"(int64_t shift_left(int64_t a, int64_t b) {
  return b > 63 ? 0 : static_cast<int64_t>(static_cast<uint64_t>(a) << b);
}
)"},
      {"shift_right(", R"(int64_t shift_right(int64_t a, int64_t b) { return a >> (b > 63 ? 63 : b); }
)"},
      {"least(", R"(int64_t least(int64_t a, int64_t b) { return b < a ? b : a; }
)"},
      {"greatest(", R"(int64_t greatest(int64_t a, int64_t b) { return b > a ? b : a; }
)"},
      {"Exact(",
       R"(// A number of a condition, known where it fits 64 bits. A condition that is not known does not hold.
struct Exact {
  int64_t value;
  bool known;
  Exact(int64_t given, bool is_known = true) : value(given), known(is_known) {}

  friend Exact operator+(Exact a, Exact b) {
    int64_t out = 0;
    const bool fits = !__builtin_add_overflow(a.value, b.value, &out);
    return {out, fits && a.known && b.known};
  }
  friend Exact operator-(Exact a, Exact b) {
    int64_t out = 0;
    const bool fits = !__builtin_sub_overflow(a.value, b.value, &out);
    return {out, fits && a.known && b.known};
  }
  friend Exact operator*(Exact a, Exact b) {
    int64_t out = 0;
    const bool fits = !__builtin_mul_overflow(a.value, b.value, &out);
    return {out, fits && a.known && b.known};
  }
  friend Exact operator&(Exact a, Exact b) { return {a.value & b.value, a.known && b.known}; }
  friend Exact operator|(Exact a, Exact b) { return {a.value | b.value, a.known && b.known}; }
  friend Exact operator^(Exact a, Exact b) { return {a.value ^ b.value, a.known && b.known}; }
  friend Exact operator<(Exact a, Exact b) { return {a.value < b.value, a.known && b.known}; }
  friend Exact operator<=(Exact a, Exact b) { return {a.value <= b.value, a.known && b.known}; }
  friend Exact operator==(Exact a, Exact b) { return {a.value == b.value, a.known && b.known}; }
  friend Exact operator!=(Exact a, Exact b) { return {a.value != b.value, a.known && b.known}; }
  friend Exact operator!(Exact a) { return {a.value == 0, a.known}; }
  friend Exact operator&&(Exact a, Exact b) {
    return a.known && a.value != 0 ? Exact(b.value != 0, b.known) : Exact(0, a.known);
  }
  friend Exact operator||(Exact a, Exact b) {
    return a.known && a.value == 0 ? Exact(b.value != 0, b.known) : Exact(1, a.known);
  }
  friend Exact least_exact(Exact a, Exact b) { return {b.value < a.value ? b.value : a.value, a.known && b.known}; }
  friend Exact greatest_exact(Exact a, Exact b) { return {b.value > a.value ? b.value : a.value, a.known && b.known}; }
  friend Exact select_exact(Exact condition, Exact a, Exact b) {
    return condition.known ? (condition.value != 0 ? a : b) : Exact(0, false);
  }
  friend Exact floor_div_exact(Exact a, Exact b) {
    if (b.value == 0 || (b.value == -1 && a.value == INT64_MIN)) return {0, false};
    const int64_t rest = a.value % b.value;
    return {a.value / b.value - (rest != 0 && (rest < 0) != (b.value < 0)), a.known && b.known};
  }
  friend Exact floor_mod_exact(Exact a, Exact b) {
    if (b.value == 0) return {0, false};
    const int64_t rest = b.value == -1 ? 0 : a.value % b.value;
    return {rest + (rest != 0 && (rest < 0) != (b.value < 0) ? b.value : 0), a.known && b.known};
  }
  friend Exact shift_left_exact(Exact a, Exact b) {
    if (b.value < 0) return {0, false};
    const bool fits = a.value == 0 || (b.value < 63 && (a.value << b.value) >> b.value == a.value);
    return {fits && b.value < 63 ? a.value << b.value : 0, fits && a.known && b.known};
  }
  friend Exact shift_right_exact(Exact a, Exact b) {
    return {a.value >> (b.value < 0 ? 0 : b.value > 63 ? 63 : b.value), b.value >= 0 && a.known && b.known};
  }
};
bool holds(Exact condition) { return condition.known && condition.value != 0; }
)"},
      {"aligned(", R"(int aligned(CUdeviceptr address, uint64_t bytes) {
  return address % bytes == 0 ? 0 : static_cast<int>(CUDA_ERROR_MISALIGNED_ADDRESS);
}
)"},
      {"bits_of(", R"(// The bits of a float, zero-extended: kernels take every number as 64 bits.
template <class Float> int64_t bits_of(Float value) {
  int64_t out = 0;
  std::memcpy(&out, &value, sizeof value);
  return out;
}
)"},
      {"Scratch ", R"(// Memory of the call, allocated and freed in the order of the stream. A larger request moves it.
class Scratch {
 public:
  explicit Scratch(CUstream stream) : stream_(stream) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() { release(); }

  int reserve(int64_t bytes, uint64_t alignment) {
    if (allocated_ != 0 && bytes <= bytes_) return 0;
    release();
    if (bytes < 0) return static_cast<int>(CUDA_ERROR_INVALID_VALUE);
    const uint64_t slack = alignment > 256 ? alignment : 0;  // of every address that the driver returns
    TRY(cuMemAllocAsync(&allocated_, static_cast<size_t>(bytes > 0 ? bytes : 1) + slack, stream_));
    bytes_ = bytes;
    at = (allocated_ + alignment - 1) / alignment * alignment;
    return 0;
  }

  CUdeviceptr at = 0;

 private:
  void release() {
    if (allocated_ != 0) cuMemFreeAsync(allocated_, stream_);
    allocated_ = 0;
  }

  CUstream stream_;
  CUdeviceptr allocated_ = 0;
  int64_t bytes_ = 0;
};
)"},
      {"Shape{",
       R"(// How a kernel is launched. `shared` is its dynamic shared memory in bytes; blocks of a cooperative kernel
// are resident together.
struct Shape {
  int64_t blocks;
  unsigned threads, shared = 0, cluster = 1;
  bool cooperative = false;
};

int launch(CUlibrary kernels, const char* name, const Shape& shape, void** arguments, CUstream stream) {
  if (shape.blocks <= 0) return 0;
  if (shape.blocks > INT32_MAX) return static_cast<int>(CUDA_ERROR_INVALID_VALUE);
  CUkernel kernel = nullptr;
  CUfunction function = nullptr;
  TRY(cuLibraryGetKernel(&kernel, kernels, name));
  TRY(cuKernelGetFunction(&function, kernel));
  int held = 0;
  TRY(cuFuncGetAttribute(&held, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  if (shape.shared + static_cast<unsigned>(held) > 48u << 10)
    TRY(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, static_cast<int>(shape.shared)));
  if (shape.cluster > 8) TRY(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  CUlaunchAttribute attributes[2] = {};
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(shape.blocks);
  config.blockDimX = shape.threads;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.sharedMemBytes = shape.shared;
  config.hStream = stream;
  config.attrs = attributes;
  if (shape.cluster > 1) {
    CUlaunchAttribute& cluster = attributes[config.numAttrs++];
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim.x = shape.cluster;
    cluster.value.clusterDim.y = cluster.value.clusterDim.z = 1;
  }
  if (shape.cooperative) {
    CUlaunchAttribute& together = attributes[config.numAttrs++];
    together.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    together.value.cooperative = 1;
  }
  return failed(cuLaunchKernelEx(&config, function, arguments, nullptr));
}
)"},
      {"read_value<", R"(// An element that the host decides by: it waits for what is before it on the stream.
template <class T> int read_value(CUdeviceptr at, CUstream stream, int64_t* out) {
  T value;
  TRY(cuMemcpyDtoHAsync(&value, at, sizeof value, stream));
  TRY(cuStreamSynchronize(stream));
  *out = static_cast<int64_t>(value);
  return 0;
}
)"},
      {"copy_box(", R"(// Copies a box of elements, each side with a step in elements for each dimension.
int copy_box(CUdeviceptr to, const int64_t* to_steps, CUdeviceptr from, const int64_t* from_steps,
             const int64_t* extents, int rank, int64_t element_bytes, CUstream stream) {
  // Dimensions of which both sides are one piece become one; `run` bytes lie side by side.
  struct Dim {
    int64_t extent, to, from;
  } dims[32];
  int count = 0;
  int64_t run = element_bytes;
  for (int d = rank; d-- > 0;) {
    const Dim dim = {extents[d], to_steps[d] * element_bytes, from_steps[d] * element_bytes};
    if (dim.extent <= 0) return 0;
    if (dim.extent == 1) continue;
    if (count == 0 && dim.to == run && dim.from == run) {
      run *= dim.extent;
    } else if (count > 0 && dim.to == dims[count - 1].extent * dims[count - 1].to &&
               dim.from == dims[count - 1].extent * dims[count - 1].from) {
      dims[count - 1].extent *= dim.extent;
    } else {
      dims[count++] = dim;
    }
  }
  const auto is_pitch = [&](int64_t step) { return step >= run && step <= INT32_MAX; };
  const bool rows = count > 0 && is_pitch(dims[0].to) && is_pitch(dims[0].from);
  int64_t index[32] = {};
  for (;;) {
    if (rows) {
      CUDA_MEMCPY2D copy = {};
      copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
      copy.srcDevice = from;
      copy.dstDevice = to;
      copy.srcPitch = static_cast<size_t>(dims[0].from);
      copy.dstPitch = static_cast<size_t>(dims[0].to);
      copy.WidthInBytes = static_cast<size_t>(run);
      copy.Height = static_cast<size_t>(dims[0].extent);
      TRY(cuMemcpy2DAsync(&copy, stream));
    } else {
      TRY(cuMemcpyDtoDAsync(to, from, static_cast<size_t>(run), stream));
    }
    int d = rows ? 1 : 0;
    for (; d < count; ++d) {
      to += static_cast<CUdeviceptr>(dims[d].to);
      from += static_cast<CUdeviceptr>(dims[d].from);
      if (++index[d] < dims[d].extent) break;
      to -= static_cast<CUdeviceptr>(dims[d].to * dims[d].extent);
      from -= static_cast<CUdeviceptr>(dims[d].from * dims[d].extent);
      index[d] = 0;
    }
    if (d == count) return 0;
  }
}
)"},
      {"padded(", R"(int64_t padded(int64_t bytes) { return (bytes + 255) / 256 * 256; }
)"},
      {"pointer(", R"(void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
)"},
      {"Group ", R"(// Sends and receives of bytes that go together. The first fault is that of all.
class Group {
 public:
  Group(ncclComm_t comm, CUstream stream) : comm_(comm), stream_(stream) { add(ncclGroupStart()); }
  void send(CUdeviceptr from, int64_t bytes, int64_t member) {
    add(ncclSend(pointer(from), static_cast<size_t>(bytes), ncclInt8, static_cast<int>(member), comm_, stream_));
  }
  void receive(CUdeviceptr to, int64_t bytes, int64_t member) {
    add(ncclRecv(pointer(to), static_cast<size_t>(bytes), ncclInt8, static_cast<int>(member), comm_, stream_));
  }
  ncclResult_t end() {
    add(ncclGroupEnd());
    return result_;
  }

 private:
  void add(ncclResult_t result) { result_ = result_ == ncclSuccess ? result : result_; }

  ncclComm_t comm_;
  CUstream stream_;
  ncclResult_t result_ = ncclSuccess;
};
)"},
  };
  return all;
}

}  // namespace

std::string call_prelude(const std::string& body) {
  std::string used = body;
  std::vector<const char*> chosen;
  for (size_t i = pieces().size(); i-- > 0;) {
    const Piece& each = pieces()[i];
    if (used.find(each.name) == std::string::npos) continue;
    chosen.push_back(each.text);
    used += each.text;
  }
  std::string functions;
  for (size_t i = chosen.size(); i-- > 0;) functions += "\n" + std::string(chosen[i]);
  std::string out = "#include <cuda.h>\n";
  if (used.find("nccl") != std::string::npos) out += "#include <nccl.h>\n";
  out += "\n#include <cstdint>\n";
  if (used.find("std::memcpy") != std::string::npos) out += "#include <cstring>\n";
  return out + "\nnamespace {\n" + functions + "\n}  // namespace\n";
}

}  // namespace helve
