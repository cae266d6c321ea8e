// CUDA on the CPU: fibers, barriers, copies and products as they are carried out, behind the texts of kernels.
// It is compiled once for all of them.
#include "cuda_on_host.h"

helve_index threadIdx, blockIdx, blockDim;
alignas(1024) unsigned char helve_shared[232448];

namespace host {

int fault = Fine;

constexpr size_t kStack = 64 * 1024;
std::vector<Fiber> fibers;
ucontext_t scheduler;
unsigned running, block_threads, place, together;
long changes;
Barrier cluster;
std::vector<std::unique_ptr<Block>> blocks;
Block& block() { return *blocks[place]; }
Fiber& fiber() { return fibers[place * block_threads + running]; }
void yield() { swapcontext(&fiber().context, &scheduler); }
void (*entry)(void*);
void* entry_argument;

bool Copies::empty() const { return groups.empty() && begun.empty(); }
void Copies::clear() { *this = {}; }
void Copies::commit() {
  groups.push_back({});
  groups.back().swap(begun);
}
void Copies::wait_for_sources(size_t pending) {
  while (groups.size() > pending) {
    landing.push_back({});
    for (const Copy& copy : groups.front()) {
      const auto* from = static_cast<const unsigned char*>(copy.from);
      landing.back().push_back({copy.to, {from, from + copy.read}});
    }
    groups.erase(groups.begin());
  }
}
void Copies::wait(size_t pending) {
  while (!landing.empty() && landing.size() + groups.size() > pending) {
    for (const Read& each : landing.front()) std::memcpy(each.to, each.bytes.data(), each.bytes.size());
    landing.erase(landing.begin());
  }
  while (groups.size() > pending) {
    for (const Copy& copy : groups.front()) copy.run();
    groups.erase(groups.begin());
  }
}

bool Products::empty() const { return groups.empty() && begun.empty(); }
void Products::fence() {
  for (uint32_t* each : named) ordered[each] = *each;
  named.clear();
}
bool Products::may_take(const uint32_t* sum) const {
  if (flying.count(const_cast<uint32_t*>(sum))) return true;
  const auto known = ordered.find(const_cast<uint32_t*>(sum));
  return known != ordered.end() && known->second == *sum;
}
void Products::take(uint32_t* sum) {
  const auto [at, fresh] = flying.emplace(sum, Held{*sum, 0});
  ++at->second.uses;
  *sum = kPoison;
}
uint32_t& Products::held(uint32_t* sum) { return flying.at(sum).value; }
bool Products::leave(uint32_t* sum) {
  const auto at = flying.find(sum);
  if (--at->second.uses) return true;
  const bool untouched = *sum == kPoison;
  *sum = ordered[sum] = at->second.value;
  flying.erase(at);
  return untouched;
}
void Products::begin(std::function<void()> product) { begun.push_back(std::move(product)); }
const uint32_t* Products::words_of(uint32_t a, uint32_t a1, uint32_t a2, uint32_t a3) {
  words.push_back({a, a1, a2, a3});
  return words.back().data();
}
void Products::name(uint32_t* sum) { named.push_back(sum); }
void Products::commit() {
  groups.push_back({});
  groups.back().swap(begun);
}
void Products::wait(size_t pending) {
  while (groups.size() > pending) {
    for (const auto& each : groups.front()) each();
    groups.erase(groups.begin());
  }
}

void Mbarrier::settle() {
  if (missing || bytes) return;
  missing = count;
  ++ended;
  ++changes;
}
void Mbarrier::arrive() {
  if (missing == 0) fault = Unfinished;  // more threads arrive than the phase has
  else --missing;
  ++changes;
  settle();
}

/// Has the phase of this parity ended? If not, and only bytes are missing, they arrive now, as late as they may.
bool has_ended(Mbarrier& barrier, unsigned parity) {
  if ((barrier.ended & 1u) != parity) return true;
  std::vector<Awaited>& all = block().awaited;
  if (barrier.missing == 0) {
    for (size_t i = 0; i < all.size(); ++i) {
      if (all[i].barrier != &barrier) continue;
      const Awaited copy = all[i];
      all.erase(all.begin() + static_cast<std::ptrdiff_t>(i--));
      std::memset(copy.to, 0, copy.bytes);
      if (copy.read) std::memcpy(copy.to, copy.from, copy.read);
      barrier.bytes -= static_cast<int32_t>(copy.bytes);
    }
    barrier.settle();
    if ((barrier.ended & 1u) != parity) return true;
  }
  yield();
  return false;
}

void trampoline() {
  entry(entry_argument);
  if (!fiber().copies.empty() || !fiber().loads.empty() || !fiber().stores.empty()) fault = Unfinished;
  if (!fiber().products.empty()) fault = Unfinished;
  fiber().stores.wait(0);
  fiber().done = true;
  ++changes;
  yield();
}

void wait(Barrier& barrier, int count) {
  const long generation = barrier.generation;
  if (++barrier.arrived == count) {
    barrier.arrived = 0;
    ++barrier.generation;
    ++changes;
    return;
  }
  while (barrier.generation == generation) yield();
}

void begin_copy(unsigned char* to, const void* from, size_t bytes, size_t read) {
  if (reinterpret_cast<uintptr_t>(to) % bytes != 0) fault = Misaligned;
  if (read && reinterpret_cast<uintptr_t>(from) % bytes != 0) fault = Misaligned;
  const Copy copy{to, from, bytes, read};
  if (running % 2) return copy.run();
  fiber().copies.begun.push_back(copy);
}

void commit_copies() { fiber().copies.commit(); }
void wait_for_copies(size_t pending) { fiber().copies.wait(pending); }

bool draw() {
  static uint32_t turn = 1;
  turn = turn * 1664525u + 1013904223u;
  return turn >> 31;
}

void begin_awaited(const std::vector<Copy>& copies, Mbarrier* barrier) {
  if (draw()) {
    for (const Copy& copy : copies) {
      copy.run();
      barrier->bytes -= static_cast<int32_t>(copy.bytes);
    }
    return barrier->settle();
  }
  for (const Copy& copy : copies) block().awaited.push_back({copy.to, copy.from, copy.bytes, copy.read, barrier});
}

unsigned char* memory_of(unsigned b) { return b == place ? helve_shared : blocks[b]->memory.data(); }
Mbarrier* mbarrier_of(unsigned b, const void* barrier) {
  return (Mbarrier*)(memory_of(b) + ((const unsigned char*)barrier - helve_shared));
}

void begin_shared(const std::vector<Copy>& copies, Mbarrier* barrier, unsigned to) {
  for (unsigned b = 0; b < 32; ++b) {
    if (!(to >> b & 1)) continue;
    if (b >= together) {
      fault = Unfinished;
      return;
    }
    const bool at_once = draw();
    for (const Copy& copy : copies) {
      if (!at_once) {
        blocks[b]->awaited.push_back({copy.to, copy.from, copy.bytes, copy.read, barrier});
        continue;
      }
      Copy{memory_of(b) + (copy.to - helve_shared), copy.from, copy.bytes, copy.read}.run();
      mbarrier_of(b, barrier)->bytes -= static_cast<int32_t>(copy.bytes);
    }
    if (at_once) mbarrier_of(b, barrier)->settle();
  }
}

void begin_tma(std::vector<Copy>& begun, const std::vector<Copy>& copies) {
  if (running % 128 != 0) fault = Misaligned;  // else a wait of the first thread of a warpgroup does not count it
  if (draw()) {
    for (const Copy& copy : copies) copy.run();
  } else {
    begun.insert(begun.end(), copies.begin(), copies.end());
  }
}

void require_bulk(const void* to, const void* from, size_t bytes) {
  const uintptr_t places = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  if (places % 16 != 0 || bytes % 16 != 0) fault = Misaligned;
}
void begin_bulk(std::vector<Copy>& begun, void* to, const void* from, size_t bytes) {
  require_bulk(to, from, bytes);
  begin_tma(begun, {{static_cast<unsigned char*>(to), from, bytes, bytes}});
}

std::vector<Copy> copies_of_box(const void* bytes, const int* at, int rank, unsigned char* memory, bool loads) {
  const Map& map = *static_cast<const Map*>(bytes);
  if (rank != map.rank || (memory - helve_shared) % std::max(128, map.swizzle * 8) != 0) fault = Misaligned;
  if (at[rank - 1] * map.element % 16 != 0) fault = Misaligned;
  std::vector<Copy> out;
  int64_t count = 1;
  for (int d = 0; d < rank; ++d) count *= map.box[d];
  for (int64_t i = 0; i < count; ++i) {
    unsigned char* element = map.base;
    bool inside = true;
    int64_t rest = i;
    for (int d = rank; d-- > 0; rest /= map.box[d]) {
      const int64_t place = at[d] + rest % map.box[d];
      inside &= place >= 0 && place < map.extents[d];
      element += place * map.strides[d];
    }
    size_t address = static_cast<size_t>(memory - helve_shared) + static_cast<size_t>(i) * map.element;
    if (map.swizzle) address ^= address >> 3 & (map.swizzle - 16);  // of each unit of 16 bytes, by its row
    const auto size = static_cast<size_t>(map.element);
    if (loads) out.push_back({helve_shared + address, element, size, inside ? size : 0});
    else if (inside) out.push_back({element, helve_shared + address, size, size});
  }
  return out;
}

/// False when the threads that are left wait for one another.
bool run_blocks(unsigned first, unsigned threads, size_t shared) {
  cluster = {};
  for (place = 0; place < together; ++place) {
    block().whole = {};
    for (Barrier& each : block().warps) each = {};
    for (Barrier& each : block().named) each = {};
    block().awaited.clear();
    block().rings.clear();
    block().memory.assign(sizeof(helve_shared), 0xa5);
    for (running = 0; running < threads; ++running) {
      Fiber& f = fiber();
      f.done = false;
      f.copies.clear();
      f.loads.clear();
      f.stores.clear();
      f.products = {};
      getcontext(&f.context);
      f.context.uc_stack.ss_sp = f.stack.get();
      f.context.uc_stack.ss_size = kStack;
      f.context.uc_link = &scheduler;
      makecontext(&f.context, trampoline, 0);
    }
  }
  for (;;) {
    const long before = changes;
    bool all = true;
    for (place = 0; place < together; ++place) {
      blockIdx.x = first + place;
      std::memcpy(helve_shared, block().memory.data(), sizeof(helve_shared));
      for (running = 0; running < threads; ++running) {
        if (fiber().done) continue;
        all = false;
        threadIdx.x = running;
        swapcontext(&scheduler, &fiber().context);
      }
      std::memcpy(block().memory.data(), helve_shared, sizeof(helve_shared));
      for (size_t i = shared; i < sizeof(helve_shared); ++i) {
        if (helve_shared[i] != 0xa5) fault = Redzone;
      }
    }
    for (unsigned b = 0; all && b < together; ++b) {
      if (!blocks[b]->awaited.empty()) fault = Unfinished;
    }
    if (all) return true;
    if (changes == before) return false;
  }
}

int run(void (*body)(void*), void* argument, unsigned count, unsigned threads, size_t shared, unsigned at_once) {
  fault = Fine;
  block_threads = blockDim.x = threads;
  together = at_once;
  while (blocks.size() < together) blocks.push_back(std::make_unique<Block>());
  while (fibers.size() < size_t{threads} * together) {
    fibers.push_back({{}, {}, {}, {}, std::make_unique<char[]>(kStack), false});
  }
  entry = body;
  entry_argument = argument;
  for (unsigned b = 0; b < count && fault == Fine; b += together) {
    if (!run_blocks(b, threads, shared)) fault = Deadlock;
  }
  return fault;
}

double decode(unsigned bits, Format f) {
  const unsigned m = bits & ((1u << f.mantissa) - 1), ones = (1u << f.exponent) - 1, e = bits >> f.mantissa & ones;
  const double sign = bits >> (f.exponent + f.mantissa) & 1 ? -1.0 : 1.0;
  if (e == ones && f.infinite) return m ? std::nan("") : sign * INFINITY;
  if (e == ones && m == (1u << f.mantissa) - 1) return std::nan("");
  return sign * (e == 0 ? std::ldexp(m, 1 - f.bias - f.mantissa)
                        : std::ldexp((1u << f.mantissa) + m, static_cast<int>(e) - f.bias - f.mantissa));
}
unsigned encode(long double x, Format f) {
  const unsigned sign = std::signbit(x) ? 1u << (f.exponent + f.mantissa) : 0;
  const unsigned top = ((1u << f.exponent) - 1) << f.mantissa,
                 nan = top | (f.infinite ? 1u << (f.mantissa - 1) : (1u << f.mantissa) - 1);
  if (x != x) return sign | nan;
  if (x == 0) return sign;
  x = std::fabs(x);
  if (std::isinf(x)) return sign | (f.infinite ? top : nan);
  int e = 0;
  std::frexp(x, &e);
  const int unit = std::max(e - 1, 1 - f.bias) - f.mantissa;
  const long double steps = std::nearbyint(std::ldexp(x, -unit));  // of the unit; may reach the next power of two
  const unsigned code =
      static_cast<unsigned>(steps) + (static_cast<unsigned>(unit + f.mantissa + f.bias - 1) << f.mantissa);
  const unsigned most = f.infinite ? top : nan;
  return sign | (code > most ? most : code);
}

}  // namespace host
