// Mixing of 64-bit hashes.
// Structural hashes are combined from many small parts; one mixer with good diffusion serves them all.
#pragma once

#include <cstdint>

namespace helve {

/// Mixes `value` into `seed` (the finaliser of SplitMix64).
inline uint64_t hash_mix(uint64_t seed, uint64_t value) {
  uint64_t z = seed + 0x9e3779b97f4a7c15ULL + value;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

}  // namespace helve
