// SHA-256, as defined by FIPS 180-4.
// Cache entries are named by the digest of their inputs; names must not collide by accident or on purpose.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace helve {

using Digest = std::array<uint8_t, 32>;

/// 64 lower-case hexadecimal digits.
std::string to_hex(const Digest& digest);

/// The digest of a sequence of bytes, given in parts.
class Sha256 {
 public:
  void add(std::string_view bytes);

  /// Adds the length of `bytes` (64 bits, little-endian) and then `bytes`, so that the boundaries of fields count.
  void add_field(std::string_view bytes);

  /// The digest of all bytes so far; nothing is added afterwards.
  Digest finish();

 private:
  void compress(const uint8_t* block);

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> block_{};
  size_t filled_ = 0;
  uint64_t bytes_ = 0;
};

Digest sha256(std::string_view bytes);

}  // namespace helve
