// CUDA on the CPU, for tests: g++ compiles the text of generated kernels after this file.
// It is precompiled, and cuda_on_host.cc is compiled once, since most of a kernel's time went into them. Threads of a
// block are fibers that stop at barriers and shuffles. The helve_ functions are written here a second time, from their
// definitions, so that the text is judged without the prelude; vector accesses check that they are aligned. With
// HELVE_PRELUDE the prelude itself is compiled, its PTX replaced by the ptx_ functions.
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__

struct helve_index { unsigned x; };
extern helve_index threadIdx, blockIdx, blockDim;
extern unsigned char helve_shared[232448];

namespace host {

enum Fault { Fine = 0, Deadlock = 1, Misaligned = 2, BadShuffle = 3, Redzone = 4, Unfinished = 5, Unfenced = 6 };
extern int fault;

struct Barrier {
  int arrived = 0;
  long generation = 0;
};
/// An mbarrier in shared memory: bytes that are expected less those that have arrived, how many threads arrive in a
/// phase and how many are missing in this one, and the phases that have ended.
struct Mbarrier {
  int32_t bytes;
  uint8_t count, missing;
  uint16_t ended;
  void settle();
  void arrive();
};
static_assert(sizeof(Mbarrier) == 8);
/// A copy that an mbarrier waits for.
struct Awaited {
  unsigned char* to;
  const void* from;
  size_t bytes, read;
  Mbarrier* barrier;
};

/// Blocks of a cluster, or of a cooperative launch, run by turns; the memory of one stands in helve_shared while it
/// runs.
struct Block {
  Barrier whole, warps[32], named[16];
  uint64_t slots[1024];
  std::vector<Awaited> awaited;  // copies of TMA that have not arrived
  std::vector<std::pair<const void*, const void*>> rings;  // their mbarriers
  std::vector<unsigned char> memory;
};
/// A copy that a thread has begun.
struct Copy {
  unsigned char* to;
  const void* from;
  size_t bytes, read;
  void run() const {
    std::memset(to, 0, bytes);
    if (read) std::memcpy(to, from, read);
  }
};
/// What a store has read and not written yet.
struct Read {
  unsigned char* to;
  std::vector<unsigned char> bytes;
};
/// Copies that a thread has begun: groups of which it has waited for the sources alone, groups that it has not waited
/// for, and what belongs to no group yet.
struct Copies {
  std::vector<std::vector<Read>> landing;
  std::vector<std::vector<Copy>> groups;
  std::vector<Copy> begun;
  bool empty() const;
  void clear();
  void commit();
  void wait_for_sources(size_t pending);
  void wait(size_t pending);
};
/// Products of a thread's warpgroup, of each its own sums: groups that are committed, and what belongs to none yet.
/// While a register is in flight it holds a poison, and its value is kept here; what products may take is what a fence
/// or an earlier product has left in the register.
struct Products {
  static constexpr uint32_t kPoison = 0xffc0dead;  // not a number
  struct Held {
    uint32_t value;
    int uses;
  };
  std::vector<std::vector<std::function<void()>>> groups;
  std::vector<std::function<void()>> begun;
  std::map<uint32_t*, Held> flying;
  std::deque<std::array<uint32_t, 4>> words;  // that instructions were given
  std::vector<uint32_t*> named;  // since the last fence
  std::map<uint32_t*, uint32_t> ordered;
  bool empty() const;
  void fence();
  /// May a product take the register: is it in flight, or as a fence or an earlier product has left it?
  bool may_take(const uint32_t* sum) const;
  void take(uint32_t* sum);
  uint32_t& held(uint32_t* sum);
  /// False where the register was accessed in the meantime.
  bool leave(uint32_t* sum);
  void begin(std::function<void()> product);
  const uint32_t* words_of(uint32_t a, uint32_t a1, uint32_t a2, uint32_t a3);
  void name(uint32_t* sum);
  void commit();
  void wait(size_t pending);
};
struct Fiber {
  Copies copies, loads, stores;  // its own, and those of TMA
  ucontext_t context;
  std::unique_ptr<char[]> stack;
  bool done = false;
  Products products;
};
extern unsigned running, block_threads;  // a thread's number in its block
extern unsigned place, together;         // a block's number among those that run at the same time, and how many do
extern long changes;
extern Barrier cluster;
Block& block();
Fiber& fiber();
/// To the next thread.
void yield();

/// Has the phase of this parity ended? If not, and only bytes are missing, they arrive now, as late as they may.
bool has_ended(Mbarrier& barrier, unsigned parity);
void wait(Barrier& barrier, int count);

/// Copies complete at any time up to the wait: those of odd threads at once, those of even ones as late as they may.
void begin_copy(unsigned char* to, const void* from, size_t bytes, size_t read);
void commit_copies();
void wait_for_copies(size_t pending);

/// A copy of TMA that an mbarrier counts: about every other one arrives at once, the rest as late as it may.
void begin_awaited(const std::vector<Copy>& copies, Mbarrier* barrier);

/// The shared memory of a block of the cluster.
unsigned char* memory_of(unsigned b);
Mbarrier* mbarrier_of(unsigned b, const void* barrier);
/// A copy of TMA to several blocks of the cluster, a bit for each, which their own mbarriers count.
void begin_shared(const std::vector<Copy>& copies, Mbarrier* barrier, unsigned to);

/// About every other TMA copy is done at once, the rest as late as allowed: the high bits of a
/// linear congruence say which, so that no program meets one kind of its copies always early.
void begin_tma(std::vector<Copy>& begun, const std::vector<Copy>& copies);
void require_bulk(const void* to, const void* from, size_t bytes);
void begin_bulk(std::vector<Copy>& begun, void* to, const void* from, size_t bytes);

/// A tensor map as the tests write it; extents and strides, in bytes, and the box are row-major.
struct Map {
  unsigned char* base;
  int64_t extents[5], strides[5];
  int16_t box[5], rank, element, swizzle;
};
static_assert(sizeof(Map) <= 128);

/// The copies of one box, element by element: zeros come from outside, and nothing goes there.
std::vector<Copy> copies_of_box(const void* bytes, const int* at, int rank, unsigned char* memory, bool loads);

/// Runs blocks of a kernel by turns, `at_once` together; gives the fault.
int run(void (*body)(void*), void* argument, unsigned count, unsigned threads, size_t shared, unsigned at_once);

template <class F>
static void call(void* f) { (*static_cast<F*>(f))(); }

template <class P>
static P argument(long long slot) {
  if constexpr (std::is_pointer_v<P>) return reinterpret_cast<P>(slot);
  else if constexpr (std::is_class_v<P>) return *reinterpret_cast<const P*>(slot);
  else return static_cast<P>(slot);
}

template <class... P, size_t... I>
static int launch(void (*kernel)(P...), const long long* args, unsigned count, unsigned threads, size_t shared,
                  unsigned at_once, std::index_sequence<I...>) {
  auto body = [&] { kernel(argument<P>(args[I])...); };
  return run(call<decltype(body)>, &body, count, threads, shared, at_once);
}

template <class... P>
static int launch(void (*kernel)(P...), const long long* args, unsigned count, unsigned threads, size_t shared,
                  unsigned at_once) {
  return launch(kernel, args, count, threads, shared, at_once, std::index_sequence_for<P...>());
}

/// The float format of E exponent bits and M of mantissa; `top` is an infinity where it has one.
struct Format {
  int exponent, mantissa, bias;
  bool infinite;
};
double decode(unsigned bits, Format f);
unsigned encode(long double x, Format f);

}  // namespace host

static void __syncwarp() { host::wait(host::block().warps[host::running / 32], 32); }
static void __threadfence_system() {}
static void __syncthreads() { host::wait(host::block().whole, static_cast<int>(host::block_threads)); }
static void host_sync_cluster() { host::wait(host::cluster, static_cast<int>(host::block_threads * host::together)); }
static void helve_cluster_sync() { host_sync_cluster(); }
template <class T>
static T* helve_peer(T* p, int peer) {
  if (peer == static_cast<int>(host::place)) return p;
  return (T*)(host::memory_of(peer) + ((unsigned char*)p - helve_shared));
}
/// An mbarrier for pushes: bytes that have arrived less those that are expected, whether they are expected yet, and how
/// many phases are complete. A push that comes a phase too early leaves a phase that never completes.
struct Arrivals {
  int32_t bytes;
  uint16_t expected, phases;
};
static void helve_open(unsigned long long* arrivals, int count) {
  for (int i = 0; i < count; ++i) arrivals[i] = 0;
}
static void count_bytes(unsigned long long* arrivals, int bytes, bool expected) {
  Arrivals& a = *(Arrivals*)arrivals;
  a.bytes += bytes;
  a.expected |= expected;
  ++host::changes;
  if (!a.expected || a.bytes != 0) return;
  a.expected = 0;
  ++a.phases;
}
template <class T>
static void helve_push(T* to, T value, int peer, unsigned long long* arrivals) {
  *helve_peer(to, peer) = value;
  count_bytes(helve_peer(arrivals, peer), sizeof(T), false);
}
static void helve_wait_pushed(unsigned long long* arrivals, unsigned phase, unsigned bytes) {
  unsigned long long* here = arrivals + (phase & 1);
  if (host::running == 0) count_bytes(here, -(int)bytes, true);
  while (((Arrivals*)here)->phases < phase / 2 + 1) host::yield();
}
static void helve_group_barrier(unsigned* word, unsigned goal) {
  __syncthreads();
  if (host::running == 0) {
    ++*word;
    ++host::changes;
    while ((int)(*word - goal) < 0) host::yield();
  }
  __syncthreads();
}

template <class T>
static auto __shfl_xor_sync(unsigned mask, T given, int c) {
  auto x = +given;  // CUDA has shuffles of 32 and 64 bits
  typedef decltype(x) V;
  if (mask != 0xffffffffu || c < 0 || c >= 32) host::fault = host::BadShuffle;
  const unsigned me = host::running;
  host::Barrier& warp = host::block().warps[me / 32];
  std::memcpy(&host::block().slots[me], &x, sizeof(V));
  host::wait(warp, 32);
  V r;
  std::memcpy(&r, &host::block().slots[me ^ (c & 31)], sizeof(V));
  host::wait(warp, 32);
  return r;
}

template <class T>
static T __shfl_sync(unsigned mask, T x, int lane) {
  if (mask != 0xffffffffu || lane < 0 || lane >= 32) host::fault = host::BadShuffle;
  const unsigned me = host::running;
  host::Barrier& warp = host::block().warps[me / 32];
  std::memcpy(&host::block().slots[me], &x, sizeof(T));
  host::wait(warp, 32);
  T r;
  std::memcpy(&r, &host::block().slots[me / 32 * 32 + lane], sizeof(T));
  host::wait(warp, 32);
  return r;
}

static int min(int a, int b) { return b < a ? b : a; }
static int max(int a, int b) { return a < b ? b : a; }
static unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }
static long long min(long long a, long long b) { return b < a ? b : a; }
static long long max(long long a, long long b) { return a < b ? b : a; }
static unsigned long long min(unsigned long long a, unsigned long long b) { return b < a ? b : a; }
static unsigned long long max(unsigned long long a, unsigned long long b) { return a < b ? b : a; }
static float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
static double rsqrt(double x) { return 1.0 / std::sqrt(x); }
static float __int_as_float(int i) { float r; std::memcpy(&r, &i, 4); return r; }
static double __longlong_as_double(long long i) { double r; std::memcpy(&r, &i, 8); return r; }

static long long __double_as_longlong(double x) { long long r; std::memcpy(&r, &x, 8); return r; }
static unsigned __float_as_uint(float x) { unsigned r; std::memcpy(&r, &x, 4); return r; }
static int __float_as_int(float x) { int r; std::memcpy(&r, &x, 4); return r; }
static float __uint_as_float(unsigned i) { float r; std::memcpy(&r, &i, 4); return r; }
static float __fadd_rn(float a, float b) { return a + b; }
static float __fmul_rn(float a, float b) { return a * b; }
static float __double2float_rz(double x) {
  const float r = (float)x;
  return std::isinf(x) || std::fabs((double)r) <= std::fabs(x) ? r : std::nextafter(r, 0.0f);
}
/// The float next to x towards 0; long double holds every x.
template <class T> static float host_toward_zero(T x) {
  const float r = (float)x;
  return std::fabs((long double)r) <= std::fabs((long double)x) ? r : std::nextafter(r, 0.0f);
}
static float __ll2float_rz(long long x) { return host_toward_zero(x); }
static float __ull2float_rz(unsigned long long x) { return host_toward_zero(x); }
template <class T> static T atomicAdd(T* p, T x) { const T old = *p; *p = (T)(old + x); return old; }
template <class T> static T atomicMax(T* p, T x) { const T old = *p; *p = old < x ? x : old; return old; }
template <class T> static T atomicMin(T* p, T x) { const T old = *p; *p = x < old ? x : old; return old; }
template <class T> static T atomicCAS(T* p, T seen, T next) {
  const T old = *p;
  *p = old == seen ? next : old;
  return old;
}
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };

/// Lane l names row l % 8 of matrix l / 8, of 16 bytes; it gets the pair l % 4 of row l / 4 of each matrix, or of its
/// transpose.
template <bool LOADS, int COUNT, bool TRANSPOSED, class T>
static void host_move_matrices(T* registers, T* row) {
  const unsigned me = host::running, lane = me % 32;
  host::Barrier& warp = host::block().warps[me / 32];
  if (reinterpret_cast<uintptr_t>(row) % 16) host::fault = host::Misaligned;
  host::block().slots[me] = reinterpret_cast<uint64_t>(row);
  host::wait(warp, 32);
  for (int k = 0; k < COUNT; ++k) {
    for (unsigned e = 0; e < 2; ++e) {
      const unsigned pair = 2 * (lane % 4) + e, other = lane / 4;
      const unsigned owner = me - lane + 8 * k + (TRANSPOSED ? pair : other);
      T* from = reinterpret_cast<T*>(host::block().slots[owner]);
      T& element = from[TRANSPOSED ? other : pair];
      if (LOADS) registers[2 * k + e] = element;
      else element = registers[2 * k + e];
    }
  }
  host::wait(warp, 32);
}
/// The types that tensor cores multiply, by their names in PTX; TensorFloat-32 leaves out the last 13 bits of a float.
template <int BYTES, class SUM>
struct HostFactor {
  static constexpr int bytes = BYTES, packed = 4 / BYTES, depth = 32 / BYTES;
  typedef SUM Sum;
};
static float host_value(uint32_t bits) {
  float out;
  std::memcpy(&out, &bits, 4);
  return out;
}
struct host_f16 : HostFactor<2, float> {
  static float decode(uint32_t bits) { return (float)host::decode(bits, {5, 10, 15, true}); }
};
struct host_bf16 : HostFactor<2, float> {
  static float decode(uint32_t bits) { return (float)host::decode(bits, {8, 7, 127, true}); }
};
struct host_tf32 : HostFactor<4, float> {
  static float decode(uint32_t bits) { return host_value(bits & 0xffffe000u); }
};
struct host_e4m3 : HostFactor<1, float> {
  static float decode(uint32_t bits) { return (float)host::decode(bits, {4, 3, 7, false}); }
};
struct host_e5m2 : HostFactor<1, float> {
  static float decode(uint32_t bits) { return (float)host::decode(bits, {5, 2, 15, true}); }
};
struct host_s8 : HostFactor<1, int> {
  static int decode(uint32_t bits) { return (signed char)bits; }
};
struct host_u8 : HostFactor<1, int> {
  static int decode(uint32_t bits) { return (int)bits; }
};
/// Element e of a word of 32 bits.
template <class F>
static typename F::Sum host_part(uint32_t word, int e) {
  return F::decode(F::packed == 1 ? word : word >> (32 / F::packed * e) & ((1ull << 32 / F::packed) - 1));
}

/// C (16, 8) += A (16, K) @ B (K, 8) of a warp, whose lanes hold 4 sums, 4 words of A and 2 of B: by the tables of
/// mma.m16n8k8, m16n8k16 and m16n8k32 in the PTX ISA.
template <class F>
static void host_multiply(typename F::Sum (&c)[4], const uint32_t (&own)[6]) {
  const unsigned me = host::running, lane = me % 32, first = me - lane;
  host::Barrier& warp = host::block().warps[me / 32];
  host::block().slots[me] = reinterpret_cast<uint64_t>(&own);
  host::wait(warp, 32);
  const auto of = [&](unsigned owner, unsigned word) {
    return reinterpret_cast<const uint32_t*>(host::block().slots[first + owner])[word];
  };
  for (unsigned reg = 0; reg < 4; ++reg) {
    const unsigned row = lane / 4, column = lane % 4 * 2 + reg % 2;
    for (unsigned k = 0; k < F::depth; ++k) {
      const unsigned owner = k % (F::depth / 2) / F::packed, half = k / (F::depth / 2);
      const int e = k % F::packed;
      const typename F::Sum x = host_part<F>(of(row * 4 + owner, reg / 2 + 2 * half), e);
      c[reg] += x * host_part<F>(of(column * 4 + owner, 4 + half), e);
    }
  }
  host::wait(warp, 32);
}

/// The element of a factor of wgmma that a descriptor leads to, by the canonical layouts of the PTX ISA. LINES: rows of
/// the memory are along M or N, else along K.
template <class F, bool LINES>
static typename F::Sum host_described(uint64_t descriptor, int line, int k) {
  static_assert(!LINES || F::bytes == 2, "rows along M or N are of elements of 16 bits");
  const auto field = [&](int begin) { return static_cast<uint32_t>(descriptor >> begin & 0x3fff) << 4; };
  const uint32_t leading = field(16), stride = field(32);
  const unsigned mode = static_cast<unsigned>(descriptor >> 62);
  const int units = mode == 0 ? 1 : mode == 1 ? 8 : mode == 2 ? 4 : 2;  // of 16 bytes, in a row
  const int unit = 16 / F::bytes;  // elements
  const int along = LINES ? line : k, row = LINES ? k : line;
  uint32_t at = field(0) + row % 8 * units * 16 + along % (unit * units) * F::bytes;
  if (mode == 0) {
    at += LINES ? line / unit * stride + k / 8 * leading : line / 8 * stride + k / unit * leading;
  } else {
    at += row / 8 * stride;
    if (LINES) at += line / (unit * units) * leading;
    at ^= (at >> 7 & (units - 1)) << 4;
  }
  if (at + F::bytes > sizeof(helve_shared)) {
    host::fault = host::Redzone;
    return 0;
  }
  uint32_t bits = 0;
  std::memcpy(&bits, helve_shared + at, F::bytes);
  return F::decode(bits);
}
template <class T>
static uint32_t* host_bits(T* c) { return reinterpret_cast<uint32_t*>(c); }
template <class T>
static void host_hold(T& value) { host::fiber().products.name(host_bits(&value)); }

/// A of a product: a descriptor, the same in all lanes, or the words of the four lanes that share the thread's rows.
template <class F, bool LINES>
struct HostDescribed {
  uint64_t descriptor;
  typename F::Sum operator()(int row, int, int k) const { return host_described<F, LINES>(descriptor, row, k); }
};
template <class F>
struct HostWords {
  const uint32_t* lanes[4];
  explicit HostWords(const uint32_t* own) {
    const unsigned me = host::running;
    host::Barrier& warp = host::block().warps[me / 32];
    host::block().slots[me] = reinterpret_cast<uint64_t>(own);
    host::wait(warp, 32);
    for (int i = 0; i < 4; ++i) lanes[i] = reinterpret_cast<const uint32_t*>(host::block().slots[me / 4 * 4 + i]);
    host::wait(warp, 32);
  }
  typename F::Sum operator()(int, int lower, int k) const {
    const int half = k / (F::depth / 2), owner = k % (F::depth / 2) / F::packed;
    return host_part<F>(lanes[owner][2 * half + lower], k % F::packed);
  }
};
/// The thread's own sums of C (64, N) += A (64, K) @ B (K, N): at once in odd warps, as late as allowed in even ones.
template <int N, class F, bool B_LINES, class A>
static void host_group_product(typename F::Sum* c, const A& a, uint64_t b, int adds) {
  const unsigned me = host::running;
  if (__shfl_sync(0xffffffffu, b, 0) != b) host::fault = host::BadShuffle;
  host::Products& products = host::fiber().products;
  for (int reg = 0; reg < N / 2; ++reg) {
    if (!products.may_take(host_bits(c + reg))) host::fault = host::Unfenced;
  }
  for (int reg = 0; reg < N / 2; ++reg) products.take(host_bits(c + reg));
  const auto run = [=] {
    host::Products& own = host::fiber().products;
    for (int reg = 0; reg < N / 2; ++reg) {
      const int lower = reg / 2 % 2;
      const int row = me % 128 / 32 * 16 + lower * 8 + me % 32 / 4, column = reg / 4 * 8 + me % 4 * 2 + reg % 2;
      uint32_t& held = own.held(host_bits(c + reg));
      typename F::Sum sum = 0;
      if (adds) std::memcpy(&sum, &held, 4);
      for (int k = 0; k < F::depth; ++k) sum += a(row, lower, k) * host_described<F, B_LINES>(b, column, k);
      std::memcpy(&held, &sum, 4);
    }
    for (int reg = 0; reg < N / 2; ++reg) {
      if (!own.leave(host_bits(c + reg))) host::fault = host::Unfinished;
    }
  };
  if (me / 32 % 2) return run();
  products.begin(run);
}
template <int N, class F, bool A_LINES, bool B_LINES>
static void host_group_product(typename F::Sum* c, uint64_t a, uint64_t b, int adds) {
  if (__shfl_sync(0xffffffffu, a, 0) != a) host::fault = host::BadShuffle;
  host_group_product<N, F, B_LINES>(c, HostDescribed<F, A_LINES>{a}, b, adds);
}
template <int N, class F, bool A_LINES, bool B_LINES>
static void host_group_product(typename F::Sum* c, const uint32_t* a, uint64_t b, int adds) {
  host_group_product<N, F, B_LINES>(c, HostWords<F>(a), b, adds);
}
static void host_fence_products() { host::fiber().products.fence(); }
static void host_commit_products() { host::fiber().products.commit(); }
/// All lanes of a warp wait together: one that goes on may change the registers that products of the others read.
static void host_wait_for_products(int pending) {
  host::fiber().products.wait(pending);
  host::wait(host::block().warps[host::running / 32], 32);
}

#ifdef HELVE_PRELUDE

static void ptx_wgmma_fence_sync_aligned() { host_fence_products(); }
static void ptx_wgmma_commit_group_sync_aligned() { host_commit_products(); }
static void ptx_wgmma_wait_group_sync_aligned(int pending) { host_wait_for_products(pending); }
template <int N, class F, bool A_LINES, bool B_LINES>
static void ptx_wgmma(typename F::Sum& first, uint64_t a, uint64_t b, int adds) {
  host_group_product<N, F, A_LINES, B_LINES>(&first, a, b, adds);
}
template <int N, class F, bool A_LINES, bool B_LINES>
static void ptx_wgmma(typename F::Sum& first, uint32_t a, uint32_t a1, uint32_t a2, uint32_t a3, uint64_t b, int adds) {
  host_group_product<N, F, A_LINES, B_LINES>(&first, host::fiber().products.words_of(a, a1, a2, a3), b, adds);
}
constexpr host::Format kHalf{5, 10, 15, true}, kBrain{8, 7, 127, true};
static float ptx_max_NaN_f32(float a, float b) { return a != a || b != b ? NAN : a < b ? b : a; }
static float ptx_min_NaN_f32(float a, float b) { return a != a || b != b ? NAN : b < a ? b : a; }
static int ptx_bfe_s32(unsigned x) { return (short)x; }  // of the low 16 bits
// One unit in the last place away from the nearest, as the instruction may be.
static float ptx_rcp_approx_ftz_f32(float x) { return std::nextafter(1.0f / x, 0.0f); }
// Of denormal numbers, given or made, zero.
static float ptx_ex2_approx_ftz_f32(float x) {
  const float y = std::exp2(x);
  return y < 1.17549435e-38f ? 0.0f : y;
}
static float ptx_cvt_f32_f16(unsigned short bits) { return (float)host::decode(bits, kHalf); }
static unsigned short ptx_cvt_rn_f16_f32(float x) { return (unsigned short)host::encode(x, kHalf); }
static unsigned short ptx_cvt_rn_bf16_f32(float x) { return (unsigned short)host::encode(x, kBrain); }
static unsigned ptx_cvt_rn_f16x2_f32(float high, float low) {
  return host::encode(high, kHalf) << 16 | host::encode(low, kHalf);
}
static unsigned ptx_cvt_rn_bf16x2_f32(float high, float low) {
  return host::encode(high, kBrain) << 16 | host::encode(low, kBrain);
}
/// Of a float of 16 bits in each half.
static unsigned host_fma_of_halves(unsigned a, unsigned b, unsigned c, host::Format f) {
  const auto half = [&](int at) {
    const auto value = [&](unsigned word) { return (long double)host::decode(word >> at & 0xffff, f); };
    return host::encode(value(a) * value(b) + value(c), f) << at;
  };
  return half(16) | half(0);
}
static unsigned ptx_fma_rn_f16x2(unsigned a, unsigned b, unsigned c) { return host_fma_of_halves(a, b, c, kHalf); }
static unsigned ptx_fma_rn_bf16x2(unsigned a, unsigned b, unsigned c) { return host_fma_of_halves(a, b, c, kBrain); }
static void ptx_mov_b32(unsigned short& low, unsigned short& high, unsigned pair) {
  low = (unsigned short)pair;
  high = (unsigned short)(pair >> 16);
}

static size_t __cvta_generic_to_shared(const void* p) { return static_cast<const unsigned char*>(p) - helve_shared; }
static void ptx_cp_async_ca_shared_global(unsigned at, const void* from, int bytes, int read) {
  host::begin_copy(helve_shared + at, from, bytes, read);
}
static void ptx_cp_async_ca_shared_global(unsigned at, const void* from, int bytes) {
  host::begin_copy(helve_shared + at, from, bytes, bytes);
}
static void ptx_cp_async_cg_shared_global(unsigned at, const void* from, int read) {
  host::begin_copy(helve_shared + at, from, 16, read);
}
static void ptx_cp_async_cg_shared_global(unsigned at, const void* from) {
  host::begin_copy(helve_shared + at, from, 16, 16);
}
template <bool TRANSPOSED, class... R>
static void load_matrices(unsigned at, R&... registers) {
  uint16_t halves[2 * sizeof...(R)];
  host_move_matrices<true, sizeof...(R), TRANSPOSED>(halves, reinterpret_cast<uint16_t*>(helve_shared + at));
  const uint16_t* next = halves;
  ((registers = next[0] | unsigned(next[1]) << 16, next += 2), ...);
}
static void ptx_ldmatrix_sync_aligned_m8n8_x1_shared_b16(unsigned& r, unsigned at) { load_matrices<false>(at, r); }
static void ptx_ldmatrix_sync_aligned_m8n8_x1_trans_shared_b16(unsigned& r, unsigned at) { load_matrices<true>(at, r); }
static void ptx_ldmatrix_sync_aligned_m8n8_x2_shared_b16(unsigned& r, unsigned& s, unsigned at) {
  load_matrices<false>(at, r, s);
}
static void ptx_ldmatrix_sync_aligned_m8n8_x2_trans_shared_b16(unsigned& r, unsigned& s, unsigned at) {
  load_matrices<true>(at, r, s);
}
static void ptx_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned& r, unsigned& s, unsigned& t, unsigned& u,
                                                         unsigned at) {
  load_matrices<false>(at, r, s, t, u);
}
static void ptx_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned& r, unsigned& s, unsigned& t, unsigned& u,
                                                               unsigned at) {
  load_matrices<true>(at, r, s, t, u);
}
template <bool TRANSPOSED, class... R>
static void store_matrices(unsigned at, R... registers) {
  uint16_t halves[2 * sizeof...(R)];
  uint16_t* next = halves;
  ((next[0] = (uint16_t)registers, next[1] = (uint16_t)(registers >> 16), next += 2), ...);
  host_move_matrices<false, sizeof...(R), TRANSPOSED>(halves, reinterpret_cast<uint16_t*>(helve_shared + at));
}
#define PTX_STORE_MATRICES(COUNT)                                                                       \
  template <class... R>                                                                                 \
  static void ptx_stmatrix_sync_aligned_m8n8_x##COUNT##_shared_b16(unsigned at, R... registers) {       \
    static_assert(sizeof...(R) == COUNT);                                                               \
    store_matrices<false>(at, registers...);                                                            \
  }                                                                                                     \
  template <class... R>                                                                                 \
  static void ptx_stmatrix_sync_aligned_m8n8_x##COUNT##_trans_shared_b16(unsigned at, R... registers) { \
    static_assert(sizeof...(R) == COUNT);                                                               \
    store_matrices<true>(at, registers...);                                                             \
  }
PTX_STORE_MATRICES(1)
PTX_STORE_MATRICES(2)
PTX_STORE_MATRICES(4)
#undef PTX_STORE_MATRICES
template <class F, class S>
static void multiply(S& c0, S& c1, S& c2, S& c3, const uint32_t (&words)[6]) {
  S c[] = {c0, c1, c2, c3};
  host_multiply<F>(c, words);
  c0 = c[0], c1 = c[1], c2 = c[2], c3 = c[3];
}
#define PTX_PRODUCT(K, TYPE, SUM, S)                                                                                  \
  static void ptx_mma_sync_aligned_m16n8k##K##_row_col_##SUM##_##TYPE##_##TYPE##_##SUM(                               \
      S& c0, S& c1, S& c2, S& c3, uint32_t a, uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b, uint32_t b1) {       \
    multiply<host_##TYPE>(c0, c1, c2, c3, {a, a1, a2, a3, b, b1});                                                    \
  }
PTX_PRODUCT(16, f16, f32, float)
PTX_PRODUCT(16, bf16, f32, float)
PTX_PRODUCT(8, tf32, f32, float)
PTX_PRODUCT(32, s8, s32, int)
PTX_PRODUCT(32, u8, s32, int)
static void ptx_cp_async_commit_group() { host::commit_copies(); }
static void ptx_cp_async_wait_group(int n) { host::wait_for_copies(n); }

static host::Mbarrier* mbarrier_at(unsigned at) { return (host::Mbarrier*)(helve_shared + at); }
static void ptx_mbarrier_init_shared_cta_b64(unsigned at, int count = 1) {
  *mbarrier_at(at) = {0, (uint8_t)count, (uint8_t)count, 0};
}
static void ptx_setmaxnreg_inc_sync_aligned_u32(int) {}
static void ptx_setmaxnreg_dec_sync_aligned_u32(int) {}
static void ptx_bar_sync(int id, int threads) { host::wait(host::block().named[id], threads); }
static void ptx_fence_mbarrier_init_release_cluster() {}
static void ptx_mbarrier_expect_tx_relaxed_cta_shared_cta_b64(unsigned at, unsigned bytes) {
  mbarrier_at(at)->bytes += (int32_t)bytes;
}
static void ptx_mbarrier_arrive_shared_cta_b64(unsigned at) { mbarrier_at(at)->arrive(); }
static void ptx_cp_async_bulk_shared_cluster_global_mbarrier_complete_tx_bytes(unsigned at, const void* from,
                                                                              unsigned bytes, unsigned barrier) {
  host::require_bulk(helve_shared + at, from, bytes);
  host::begin_awaited({{helve_shared + at, from, bytes, bytes}}, mbarrier_at(barrier));
}
/// Coordinates come with the last dimension first.
template <int R>
static std::vector<host::Copy> box_of(const void* map, const int (&at)[R], unsigned memory, bool loads) {
  int row_major[R];
  std::reverse_copy(at, at + R, row_major);
  return host::copies_of_box(map, row_major, R, helve_shared + memory, loads);
}
template <int R>
static void load_box(unsigned at, const void* map, unsigned barrier, const int (&begin)[R]) {
  host::begin_awaited(box_of(map, begin, at, true), mbarrier_at(barrier));
}
template <int R>
static void store_box(const void* map, unsigned at, const int (&begin)[R]) {
  host::begin_tma(host::fiber().stores.begun, box_of(map, begin, at, false));
}
#define PTX_BOXES(R)                                                                                              \
  template <class... C>                                                                                           \
  static void ptx_cp_async_bulk_tensor_##R##d_shared_cluster_global_tile_mbarrier_complete_tx_bytes(              \
      unsigned at, const void* map, unsigned barrier, C... begin) {                                               \
    load_box<R>(at, map, barrier, {begin...});                                                                    \
  }                                                                                                               \
  template <class... C>                                                                                           \
  static void ptx_cp_async_bulk_tensor_##R##d_global_shared_cta_tile_bulk_group(const void* map, unsigned at,     \
                                                                                C... begin) {                     \
    store_box<R>(map, at, {begin...});                                                                            \
  }
#define PTX_SHARED_BOXES(R)                                                                                       \
  template <class... C>                                                                                           \
  static void ptx_cp_async_bulk_tensor_##R##d_shared_cluster_global_mbarrier_complete_tx_bytes_multicast_cluster( \
      unsigned at, const void* map, unsigned barrier, unsigned short to, C... begin) {                            \
    host::begin_shared(box_of<R>(map, {begin...}, at, true), mbarrier_at(barrier), to);                           \
  }
PTX_SHARED_BOXES(1) PTX_SHARED_BOXES(2) PTX_SHARED_BOXES(3) PTX_SHARED_BOXES(4) PTX_SHARED_BOXES(5)
/// An address in the shared memory of a block of the cluster: the block stands in the high bits.
static unsigned ptx_mapa_shared_cluster_u32(unsigned at, unsigned b) { return at | (b + 1) << 24; }
static void ptx_mbarrier_arrive_shared_cluster_b64(unsigned at) {
  host::mbarrier_of((at >> 24) - 1, helve_shared + (at & 0xffffff))->arrive();
}
PTX_BOXES(1) PTX_BOXES(2) PTX_BOXES(3) PTX_BOXES(4) PTX_BOXES(5)
static unsigned ptx_mbarrier_try_wait_parity_shared_cta_b64(unsigned at, unsigned parity) {
  return host::has_ended(*mbarrier_at(at), parity);
}
static void ptx_cp_async_bulk_global_shared_cta_bulk_group(void* to, unsigned at, unsigned bytes) {
  host::begin_bulk(host::fiber().stores.begun, to, helve_shared + at, bytes);
}
static void ptx_cp_async_bulk_commit_group() { host::fiber().stores.commit(); }
static void ptx_cp_async_bulk_wait_group(int n) { host::fiber().stores.wait(n); }
static void ptx_cp_async_bulk_wait_group_read(int n) { host::fiber().stores.wait_for_sources(n); }
static void ptx_fence_proxy_async() {}

#else

static bool helve_begin_fault(long long* fault) { return fault[0] == 0 && (fault[0] = 1); }
static void helve_end_fault(long long* fault) { fault[0] = 2; }
template <int W> static void helve_copy_async(void* to, const void* from, bool inside = true) {
  static_assert(W == 4 || W == 8 || W == 16, "what moves at once");
  host::begin_copy(static_cast<unsigned char*>(to), from, W, inside ? W : 0);
}
static void helve_commit_async() { host::commit_copies(); }
template <int N> static void helve_wait_async() { host::wait_for_copies(N); }
/// Groups complete in their order here, so that the ring's barriers have nothing to count.
static void helve_copy_bulk(void* to, const void* from, unsigned bytes, unsigned long long*) {
  host::begin_bulk(host::fiber().loads.begun, to, from, bytes);
}
template <int S> static void helve_commit_bulk(unsigned long long*, unsigned& begun, unsigned& ended) {
  if (host::running == 0) host::fiber().loads.commit();
  if (++begun - ended == S) ++ended;
}
template <int S> static void helve_wait_bulk(unsigned long long*, unsigned begun, unsigned& ended, unsigned pending) {
  if (host::running == 0) host::fiber().loads.wait(pending);
  if (begun - ended > pending) ended = begun - pending;
}
/// A ring: an mbarrier for the data of each slot, then one for its room.
static void helve_open_ring(unsigned long long* ring, int slots, int takers) {
  if (host::running != 0) return;
  for (int i = 0; i < 2 * slots; ++i) {
    const uint8_t count = i < slots ? 1 : takers;
    ((host::Mbarrier*)ring)[i] = {0, count, count, 0};
  }
  host::block().rings.push_back({ring, ring + 2 * slots});
}
struct helve_place { unsigned at, phase; };
template <int S> static void host_step(helve_place& place) {
  place.phase ^= place.at + 1 == S;
  place.at = (place.at + 1) % S;
}
static void host_await(unsigned long long* barrier, unsigned parity) {
  while (!host::has_ended(*(host::Mbarrier*)barrier, parity)) {
  }
}
template <int S> static void helve_ring_acquire(unsigned long long* ring, const helve_place& place) {
  host_await(ring + S + place.at, place.phase ^ 1);
}
template <int S> static void helve_ring_commit(unsigned long long* ring, helve_place& place) {
  ((host::Mbarrier*)ring)[place.at].arrive();
  host_step<S>(place);
}
template <int S> static unsigned helve_ring_wait(unsigned long long* ring, helve_place& place, unsigned& open) {
  const unsigned slot = place.at;
  host_await(ring + slot, place.phase);
  host_step<S>(place);
  ++open;
  return slot;
}
template <int S>
static void helve_ring_release(unsigned long long* ring, helve_place& freed, unsigned& open, unsigned pending) {
  __syncwarp();
  for (; open > pending; --open) {
    if (host::running % 32 == 0) ((host::Mbarrier*)ring)[S + freed.at].arrive();
    host_step<S>(freed);
  }
}
template <int S, int BLOCKS>
static void helve_ring_release_all(unsigned long long* ring, helve_place& freed, unsigned& open, unsigned pending) {
  __syncwarp();
  for (; open > pending; --open) {
    const unsigned lane = host::running % 32;
    if (lane < BLOCKS) host::mbarrier_of(lane, ring + S + freed.at)->arrive();
    host_step<S>(freed);
  }
}
template <int ID, int THREADS> static void helve_sync_role() { host::wait(host::block().named[ID], THREADS); }
template <int FIRST> static void helve_sync_warpgroup() {
  host::wait(host::block().named[FIRST + host::running / 128], 128);
}
template <int N> static void helve_take_registers() {}
template <int N> static void helve_give_registers() {}
static void helve_store_bulk(void* to, const void* from, unsigned bytes) {
  host::begin_bulk(host::fiber().stores.begun, to, from, bytes);
}
struct alignas(64) helve_tensor_map { unsigned char bytes[128]; };
static int helve_coordinate(long long i) { return (int)std::clamp(i, -0x80000000ll, 0x7ffffe00ll); }
template <int R>
static void helve_load_box(void* to, const helve_tensor_map& map, const int (&at)[R], unsigned bytes,
                           unsigned long long* barrier) {
  const std::vector<host::Copy> copies = host::copies_of_box(&map, at, R, static_cast<unsigned char*>(to), true);
  size_t all = 0;
  for (const host::Copy& copy : copies) all += copy.bytes;
  if (all != bytes) host::fault = host::Unfinished;
  for (const auto& [begin, end] : host::block().rings) {
    if (barrier < begin || barrier >= end) continue;
    host::Mbarrier* const counts = (host::Mbarrier*)barrier;
    counts->bytes += (int32_t)bytes;
    return host::begin_awaited(copies, counts);
  }
  host::begin_tma(host::fiber().loads.begun, copies);
}
template <int R>
static void helve_share_box(void* to, const helve_tensor_map& map, const int (&at)[R], unsigned bytes,
                            unsigned long long* barrier, unsigned short blocks) {
  const std::vector<host::Copy> copies = host::copies_of_box(&map, at, R, static_cast<unsigned char*>(to), true);
  size_t all = 0;
  for (const host::Copy& copy : copies) all += copy.bytes;
  if (all * __builtin_popcount(blocks) != bytes) host::fault = host::Unfinished;
  ((host::Mbarrier*)barrier)->bytes += (int32_t)bytes;
  host::begin_shared(copies, (host::Mbarrier*)barrier, blocks);
}
template <int R>
static void helve_store_box(const helve_tensor_map& map, const int (&at)[R], const void* from) {
  unsigned char* const box = static_cast<unsigned char*>(const_cast<void*>(from));
  host::begin_tma(host::fiber().stores.begun, host::copies_of_box(&map, at, R, box, false));
}
static void helve_commit_stores() {
  if (host::running % 128 == 0) host::fiber().stores.commit();
}
template <int N> static void helve_wait_stores() {
  if (host::running % 128 == 0) host::fiber().stores.wait(N);
}
template <int N> static void helve_wait_sources() {
  if (host::running % 128 == 0) host::fiber().stores.wait_for_sources(N);
}
static void helve_fence_async() {}
static float helve_infinity() { return INFINITY; }
static float helve_nan() { return NAN; }
template <class T> static T helve_min(T a, T b) { return a != a ? a : b != b ? b : b < a ? b : a; }
template <class T> static T helve_max(T a, T b) { return a != a ? a : b != b ? b : a < b ? b : a; }
template <class T> static T helve_exp2_approx(T x) { return std::exp2(x); }
template <class T> static T helve_sigmoid(T x) {
  return x < 0 ? std::exp(x) / (T(1) + std::exp(x)) : T(1) / (T(1) + std::exp(-x));
}

typedef __int128 helve_wide;
template <class T> static T helve_wrap(helve_wide x) { return (T)x; }
template <class T> static T helve_abs(T x) { return (T)(x < 0 ? -(helve_wide)x : (helve_wide)x); }
template <class T> static T helve_floor_div(T a, T b) {
  const helve_wide x = a, y = b;
  helve_wide q = x / y;
  while (q * y > x && y > 0) --q;
  while (q * y < x && y < 0) --q;
  return (T)q;
}
template <class T> static T helve_floor_mod(T a, T b) {
  const helve_wide x = a, y = b;
  const helve_wide r = x % y;
  return (T)(r != 0 && (r < 0) != (y < 0) ? r + y : r);
}
template <class T> static T helve_shift_left(T a, T b) {
  T r = a;
  for (T i = 0; i < b && r != 0; ++i) r = (T)(2 * (unsigned long long)r);
  return r;
}
template <class T> static T helve_shift_right(T a, T b) {
  helve_wide r = a;
  for (T i = 0; i < b && r != 0 && r != -1; ++i) r = r >= 0 ? r / 2 : (r - 1) / 2;
  return (T)r;
}
template <class T, int B, bool S, class F> static T helve_saturate(F x) {
  if (x != x) return 0;
  const long double most = S ? std::ldexp(1.0L, B - 1) - 1 : std::ldexp(1.0L, B) - 1,
                    least = S ? -std::ldexp(1.0L, B - 1) : 0;
  const long double whole = std::trunc((long double)x);
  return whole >= most    ? (T)(~0ull >> (S ? 65 - B : 64 - B))
         : whole <= least ? (T)(S ? -(helve_wide)most - 1 : 0)
                          : (T)whole;
}
template <class T> static long double helve_to_odd(T x) { return x; }

template <int E, int M, int BIAS, bool INF, class W>
struct helve_small {
  W bits;
  static constexpr host::Format format() { return {E, M, BIAS, INF}; }
};
typedef helve_small<5, 10, 15, true, unsigned short> helve_float16;
typedef helve_small<8, 7, 127, true, unsigned short> helve_bfloat16;
typedef helve_small<4, 3, 7, false, unsigned char> helve_float8_e4m3;
typedef helve_small<5, 2, 15, true, unsigned char> helve_float8_e5m2;
template <int E, int M, int BIAS, bool INF, class W>
static float helve_to_float(helve_small<E, M, BIAS, INF, W> x) { return (float)host::decode(x.bits, x.format()); }
template <class T> static T helve_small_of(long double x) {
  T r;
  r.bits = (decltype(r.bits))host::encode(x, T::format());
  return r;
}
static helve_float16 helve_to_float16(long double x) { return helve_small_of<helve_float16>(x); }
static helve_bfloat16 helve_to_bfloat16(long double x) { return helve_small_of<helve_bfloat16>(x); }
static helve_float8_e4m3 helve_to_float8_e4m3(long double x) { return helve_small_of<helve_float8_e4m3>(x); }
static helve_float8_e5m2 helve_to_float8_e5m2(long double x) { return helve_small_of<helve_float8_e5m2>(x); }

template <class T> static T helve_negated(T x) { return (T)(0u - (unsigned int)x); }
template <class T> static T helve_shift_negated(T x, int k) { return (T)((T)(0ull - (unsigned long long)x) >> k); }
template <class T> static T helve_read_indexed(const volatile T& from) {
  T x;
  x.bits = from.bits;
  return x;
}
template <class T> static void helve_write_indexed(volatile T& to, T x) { to.bits = x.bits; }

template <class T> static T helve_shuffle_xor(T x, int c) {
  if constexpr (sizeof(T) < 4) return (T)__shfl_xor_sync(0xffffffffu, (int)x, c);
  else return __shfl_xor_sync(0xffffffffu, x, c);
}
template <class T> static T helve_shuffle_bits_xor(T x, int c) {
  x.bits = (decltype(x.bits))__shfl_xor_sync(0xffffffffu, (unsigned)x.bits, c);
  return x;
}

template <class T> static T helve_shuffle(T x, int lane) {
  if constexpr (sizeof(T) < 4) return (T)__shfl_sync(0xffffffffu, (int)x, lane);
  else return __shfl_sync(0xffffffffu, x, lane);
}
template <class T> static T helve_shuffle_bits(T x, int lane) {
  x.bits = (decltype(x.bits))__shfl_sync(0xffffffffu, (unsigned)x.bits, lane);
  return x;
}

template <int W, int N, class T>
static void helve_move(T* to, const T* from) {
  if (reinterpret_cast<uintptr_t>(to) % W != 0 || reinterpret_cast<uintptr_t>(from) % W != 0) {
    host::fault = host::Misaligned;
  }
  for (int i = 0; i < N; ++i) to[i] = from[i];
}
template <class T, class F> static T helve_atomic(T* p, F f) {
  const T previous = *p;
  *p = f(previous);
  return previous;
}

template <int COUNT, bool TRANSPOSED, class T> static void helve_load_matrices(T* to, const T* row) {
  host_move_matrices<true, COUNT, TRANSPOSED>(to, const_cast<T*>(row));
}
template <int COUNT, bool TRANSPOSED, class T> static void helve_store_matrices(const T* from, T* row) {
  host_move_matrices<false, COUNT, TRANSPOSED>(const_cast<T*>(from), row);
}
template <int LEADING, int STRIDE, int SWIZZLE> static unsigned long long helve_descriptor(const void* tile) {
  const uint64_t at = static_cast<const unsigned char*>(tile) - helve_shared;
  const uint64_t mode = SWIZZLE == 0 ? 0 : SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : 3;
  return at / 16 | uint64_t{LEADING / 16} << 16 | uint64_t{STRIDE / 16} << 32 | mode << 62;
}
static int helve_warpgroup() { return host::running / 128; }
template <int COUNT, class T> static void helve_hold_registers(T* registers) {
  for (int i = 0; i < COUNT; ++i) host_hold(registers[i]);
}
static void helve_fence_products() { host_fence_products(); }
static void helve_commit_products() { host_commit_products(); }
template <int N> static void helve_wait_for_products() { host_wait_for_products(N); }
template <class T> struct HostFactorOf;
template <> struct HostFactorOf<helve_float16> { typedef host_f16 type; };
template <> struct HostFactorOf<helve_bfloat16> { typedef host_bf16 type; };
template <> struct HostFactorOf<helve_float8_e4m3> { typedef host_e4m3 type; };
template <> struct HostFactorOf<helve_float8_e5m2> { typedef host_e5m2 type; };
template <> struct HostFactorOf<float> { typedef host_tf32 type; };
template <> struct HostFactorOf<signed char> { typedef host_s8 type; };
template <> struct HostFactorOf<unsigned char> { typedef host_u8 type; };
template <int COUNT, class T> static void helve_pack_registers(unsigned* words, const T* from) {
  std::memcpy(words, from, 4 * COUNT);
}
template <int N, class T, bool A_LINES, bool B_LINES, class S, class A>
static void helve_group_product(S* c, A a, unsigned long long b, int adds) {
  host_group_product<N, typename HostFactorOf<T>::type, A_LINES, B_LINES>(c, a, b, adds);
}
template <class T, class S> static void helve_matrix_product(S* c, const T* a, const T* b) {
  uint32_t words[6];
  std::memcpy(words, a, 16);
  std::memcpy(words + 4, b, 8);
  host_multiply<typename HostFactorOf<T>::type>(*reinterpret_cast<S(*)[4]>(c), words);
}
template <int W, int N, class T> static void helve_load(T (&to)[N], const T* from) {
  static_assert(N * sizeof(T) % W == 0 && W > sizeof(T), "an access of whole words");
  if (reinterpret_cast<uintptr_t>(from) % W != 0) host::fault = host::Misaligned;
  std::memcpy(to, from, sizeof(to));
}
template <int W, int N, class T> static void helve_store(T* to, const T (&from)[N]) {
  static_assert(N * sizeof(T) % W == 0 && W > sizeof(T), "an access of whole words");
  if (reinterpret_cast<uintptr_t>(to) % W != 0) host::fault = host::Misaligned;
  std::memcpy(to, from, sizeof(from));
}
/// The elements of a byte of int4, times a scale.
template <class T> static void helve_unpack_int4(T* to, unsigned byte, float scale = 1) {
  for (int i = 0; i < 2; ++i) {
    const int code = byte >> 4 * i & 15;
    to[i] = helve_small_of<T>((code < 8 ? code : code - 16) * scale);
  }
}
template <class T> static void helve_unpack_int4(T* to, unsigned byte, T scale) {
  helve_unpack_int4(to, byte, helve_to_float(scale));
}
template <int W, int N, class T> static void helve_store_rounded(T* to, const float (&from)[N]) {
  T rounded[N];
  for (int i = 0; i < N; ++i) rounded[i] = helve_small_of<T>(from[i]);
  helve_store<W>(to, rounded);
}
template <int W, int N, class T> static void helve_keep_rounded(T* to, const float (&from)[N]) {
  helve_store_rounded<W>(to, from);
}

#endif
