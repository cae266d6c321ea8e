// Roles of a block, and the rings between them.
// A role is a branch of its warps. Its side of a ring is a slot and the parity of the slot's phase, which go on
// together without divisions; the name of a buffer is a pointer to the slot that the role acquired or waited for last,
// so that nothing that accesses the buffer knows of slots.
#include <fmt/format.h>

#include "helve/codegen/c/c_types.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

constexpr PreludePart kRings{"rings", "arrived", R"(
// A ring of S slots: an mbarrier for the data of each, at which one thread and a number of bytes arrive, then one for
// its room, at which each warp that takes the slot arrives.
__device__ __forceinline__ void helve_open_ring(unsigned long long* ring, int slots, int takers) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < 2 * slots; ++i) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(ring + i);
            asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" : : "r"(at), "r"(i < slots ? 1 : takers) : "memory");
        }
        asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
    }
}
// The slot that a side of the ring comes to next, and the parity of its phase.
struct helve_place { unsigned at, phase; };
template <int S>
__device__ __forceinline__ void helve_advance(helve_place& place) {
    if (++place.at == S) {
        place.at = 0;
        place.phase ^= 1;
    }
}
// Waits until the slot has been released, each for the first time at once.
template <int S>
__device__ __forceinline__ void helve_ring_acquire(unsigned long long* ring, const helve_place& place) {
    helve_arrived(ring + S + place.at, place.phase ^ 1);
}
// The bytes that copies wait for arrive later.
template <int S>
__device__ __forceinline__ void helve_ring_commit(unsigned long long* ring, helve_place& place) {
    const unsigned at = (unsigned)__cvta_generic_to_shared(ring + place.at);
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at) : "memory");
    helve_advance<S>(place);
}
// Waits until the slot is filled, and returns it.
template <int S>
__device__ __forceinline__ unsigned helve_ring_wait(unsigned long long* ring, helve_place& place, unsigned& open) {
    const unsigned slot = place.at;
    helve_arrived(ring + slot, place.phase);
    helve_advance<S>(place);
    ++open;
    return slot;
}
// Releases all slots that the warp has taken, the `pending` youngest aside.
template <int S>
__device__ __forceinline__ void helve_ring_release(unsigned long long* ring, helve_place& freed, unsigned& open,
                                                   unsigned pending) {
    __syncwarp();
    while (open > pending) {
        if (threadIdx.x % 32 == 0) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(ring + S + freed.at);
            asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" : : "r"(at) : "memory");
        }
        helve_advance<S>(freed);
        --open;
    }
}
)"};

constexpr PreludePart kSharedRings{"shared_rings", "", R"(
// As helve_ring_release, of a ring that `BLOCKS` blocks fill together: all of them are told.
template <int S, int BLOCKS>
__device__ __forceinline__ void helve_ring_release_all(unsigned long long* ring, helve_place& freed, unsigned& open,
                                                       unsigned pending) {
    __syncwarp();
    while (open > pending) {
        const unsigned block = threadIdx.x % 32;
        if (block < BLOCKS) {
            const unsigned at = (unsigned)__cvta_generic_to_shared(ring + S + freed.at);
            unsigned there;
            asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(at), "r"(block));
            asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" : : "r"(there) : "memory");
        }
        helve_advance<S>(freed);
        --open;
    }
}
)"};

constexpr PreludePart kRoles{"roles", "", R"(
// A barrier of some warps of the block.
template <int ID, int THREADS>
__device__ __forceinline__ void helve_sync_role() {
    asm volatile("bar.sync %0, %1;" : : "n"(ID), "n"(THREADS) : "memory");
}
)"};

constexpr PreludePart kBudgets{"budgets", "", R"(
// The registers of each thread of a warpgroup, from here on.
template <int N>
__device__ __forceinline__ void helve_take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" : : "n"(N) : "memory");
}
template <int N>
__device__ __forceinline__ void helve_give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" : : "n"(N) : "memory");
}
)"};

}  // namespace

void KernelEmitter::slots(const Alloc& s) {
  const Buffer& buffer = *s.buffer;
  HELVE_CHECK(!role_, "slots of a ring belong to the block");
  const std::string type = element_type(buffer), name = names_.fresh(buffer.name + "_slots");
  slots_.emplace(&buffer, name);
  line(fmt::format("{0}* const {1} = ({0}*)(helve_shared + {2});", type, name, *buffer.offset), s.span);
}

void KernelEmitter::open_ring(const TileOp& s) {
  need(kRings);
  const Buffer& ring = *s.barriers()->buffer;
  const int64_t blocks = is_shared_ring(source_.stmt->body, ring) ? source_.stmt->cluster : 1;
  line(fmt::format("helve_open_ring({}, {}, {});", names_.of(&ring, ring.name), ring_slots(ring),
                   source_.stmt->threads / kWarp * blocks),
       s.span);
}

void KernelEmitter::role(const Role& s) {
  const int64_t end = s.first + s.threads;
  const std::string warps = s.first == 0             ? fmt::format("tx < {}", end)
                            : end == kernel_.threads ? fmt::format("tx >= {}", s.first)
                                                     : fmt::format("tx >= {} && tx < {}", s.first, end);
  block("if (" + warps + ")", s.span, [&] {
    if (s.registers != 0) {
      need(kBudgets);
      const bool takes = s.registers > machine_.launch_registers(kernel_.threads);
      line(fmt::format("helve_{}_registers<{}>();", takes ? "take" : "give", s.registers), s.span);
    }
    role_ = &s;
    const auto body = [&] {
      for (const BufferRef& ring : rings_of(s.body)) {
        RingPlaces places{names_.of(ring.get(), ring->name),
                          ring_slots(*ring),
                          names_.fresh("next"),
                          names_.fresh("freed"),
                          names_.fresh("open"),
                          is_shared_ring(source_.stmt->body, *ring),
                          buffers_of_ring(source_.stmt->body, *ring)};
        const bool takes = has_operation(s.body, [&](const TileOp& op) {
          return ring_event(op) == RingEvent::Wait && op.barriers()->buffer == ring;
        });
        line(fmt::format("helve_place {} = {{0, 0}};", places.next));
        if (takes) {
          line(fmt::format("helve_place {} = {{0, 0}};", places.freed));
          line(fmt::format("unsigned {} = 0;", places.open));
        }
        for (const BufferRef& buffer : places.buffers) {
          line(fmt::format("{}* {} = {};", element_type(*buffer), names_.define(buffer.get(), buffer->name),
                           slots_.at(buffer.get())));
        }
        ring_places_.emplace(ring.get(), std::move(places));
      }
      stmt(s.body);
    };
    if (s.elect) {
      block(fmt::format("if (tx == {})", s.first), s.span, body);
    } else {
      body();
    }
    ring_places_.clear();
    role_ = nullptr;
  });
}

/// Each role has an id of its own, 0 is that of the whole block; those of warpgroups come behind.
void KernelEmitter::role_barrier(const TileOp& s) {
  HELVE_CHECK(!role_->elect, "a barrier of one thread");
  need(kRoles);
  const int64_t id = role_->first == 0 ? 1 : 2;
  line(fmt::format("helve_sync_role<{}, {}>();", id, role_->threads), s.span);
}

const KernelEmitter::RingPlaces& KernelEmitter::places(const TileOp& s) const {
  const auto at = ring_places_.find(s.barriers()->buffer.get());
  HELVE_CHECK(at != ring_places_.end(), "a ring is filled and taken by roles");
  return at->second;
}

void KernelEmitter::ring_acquire(const TileOp& s) {
  const RingPlaces& ring = places(s);
  line(fmt::format("helve_ring_acquire<{}>({}, {});", ring.slots, ring.name, ring.next), s.span);
  for (const BufferRef& buffer : ring.buffers) {
    line(fmt::format("{} = {} + {}.at * {};", names_.of(buffer.get(), buffer->name), slots_.at(buffer.get()), ring.next,
                     slot_bytes(*buffer) / buffer->dtype.bytes()),
         s.span);
  }
}

void KernelEmitter::ring_commit(const TileOp& s) {
  const RingPlaces& ring = places(s);
  line(fmt::format("helve_ring_commit<{}>({}, {});", ring.slots, ring.name, ring.next), s.span);
}

void KernelEmitter::ring_wait(const TileOp& s) {
  const RingPlaces& ring = places(s);
  const std::string slot = names_.fresh("slot");
  line(fmt::format("const unsigned {} = helve_ring_wait<{}>({}, {}, {});", slot, ring.slots, ring.name, ring.next,
                   ring.open),
       s.span);
  for (const BufferRef& buffer : ring.buffers) {
    line(fmt::format("{} = {} + {} * {};", names_.of(buffer.get(), buffer->name), slots_.at(buffer.get()), slot,
                     slot_bytes(*buffer) / buffer->dtype.bytes()),
         s.span);
  }
}

void KernelEmitter::ring_release(const TileOp& s) {
  const RingPlaces& ring = places(s);
  if (ring.shared) need(kSharedRings);
  const std::string release = ring.shared ? fmt::format("release_all<{}, {}>", ring.slots, source_.stmt->cluster)
                                          : fmt::format("release<{}>", ring.slots);
  line(fmt::format("helve_ring_{}({}, {}, {}, {});", release, ring.name, ring.freed, ring.open, s.pending()), s.span);
}

}  // namespace helve::cuda
