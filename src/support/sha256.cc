// SHA-256, as FIPS 180-4 defines it.
// The constants are computed from their definition (roots of primes) at compile time, so that none can be mistyped.
#include "helve/support/sha256.h"

#include <algorithm>
#include <bit>

namespace helve {

namespace {

constexpr bool is_prime(uint32_t n) {
  for (uint32_t d = 2; d * d <= n; ++d) {
    if (n % d == 0) return false;
  }
  return true;
}

/// floor(2^32 * cbrt(n)) modulo 2^32: the first 32 bits of the fractional part of the cube root.
constexpr uint32_t cube_root_bits(uint32_t n) {
  const unsigned __int128 target = static_cast<unsigned __int128>(n) << 96;
  uint64_t root = 0;  // below 2^35, as n < 2^9
  for (int bit = 35; bit-- > 0;) {
    const uint64_t next = root | uint64_t{1} << bit;
    const unsigned __int128 cube = static_cast<unsigned __int128>(next) * next * next;
    if (next <= (uint64_t{1} << 35) && cube <= target) root = next;
  }
  return static_cast<uint32_t>(root);
}

constexpr std::array<uint32_t, 64> round_constants() {
  std::array<uint32_t, 64> out{};
  uint32_t prime = 2;
  for (uint32_t& constant : out) {
    while (!is_prime(prime)) ++prime;
    constant = cube_root_bits(prime++);
  }
  return out;
}

constexpr std::array<uint32_t, 64> kRound = round_constants();
static_assert(kRound[0] == 0x428a2f98 && kRound[63] == 0xc67178f2);

uint32_t big_endian(const uint8_t* bytes) {
  return static_cast<uint32_t>(bytes[0]) << 24 | static_cast<uint32_t>(bytes[1]) << 16 |
         static_cast<uint32_t>(bytes[2]) << 8 | static_cast<uint32_t>(bytes[3]);
}

}  // namespace

void Sha256::compress(const uint8_t* block) {
  std::array<uint32_t, 64> w;
  for (size_t t = 0; t < 16; ++t) w[t] = big_endian(block + 4 * t);
  for (size_t t = 16; t < 64; ++t) {
    const uint32_t low = std::rotr(w[t - 15], 7) ^ std::rotr(w[t - 15], 18) ^ (w[t - 15] >> 3);
    const uint32_t high = std::rotr(w[t - 2], 17) ^ std::rotr(w[t - 2], 19) ^ (w[t - 2] >> 10);
    w[t] = high + w[t - 7] + low + w[t - 16];
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (size_t t = 0; t < 64; ++t) {
    const uint32_t sum_e = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const uint32_t first = h + sum_e + ((e & f) ^ (~e & g)) + kRound[t] + w[t];
    const uint32_t sum_a = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const uint32_t second = sum_a + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + first;
    d = c, c = b, b = a, a = first + second;
  }
  const std::array<uint32_t, 8> worked{a, b, c, d, e, f, g, h};
  for (size_t i = 0; i < 8; ++i) state_[i] += worked[i];
}

void Sha256::add(std::string_view bytes) {
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  size_t left = bytes.size();
  bytes_ += left;
  while (left > 0) {
    if (filled_ == 0 && left >= 64) {
      compress(data);
      data += 64, left -= 64;
      continue;
    }
    const size_t taken = std::min(left, 64 - filled_);
    std::copy_n(data, taken, block_.begin() + static_cast<std::ptrdiff_t>(filled_));
    data += taken, left -= taken, filled_ += taken;
    if (filled_ == 64) {
      compress(block_.data());
      filled_ = 0;
    }
  }
}

void Sha256::add_field(std::string_view bytes) {
  char size[8];
  for (int i = 0; i < 8; ++i) size[i] = static_cast<char>(static_cast<uint64_t>(bytes.size()) >> (8 * i) & 0xff);
  add({size, 8});
  add(bytes);
}

Digest Sha256::finish() {
  const uint64_t bits = 8 * bytes_;
  add(std::string_view("\x80", 1));
  while (filled_ != 56) add(std::string_view("\0", 1));
  char size[8];
  for (int i = 0; i < 8; ++i) size[i] = static_cast<char>(bits >> (56 - 8 * i) & 0xff);
  add({size, 8});
  Digest out;
  for (size_t i = 0; i < 32; ++i) out[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
  return out;
}

Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.add(bytes);
  return hash.finish();
}

std::string to_hex(const Digest& digest) {
  std::string out;
  for (uint8_t byte : digest) {
    out += "0123456789abcdef"[byte >> 4];
    out += "0123456789abcdef"[byte & 15];
  }
  return out;
}

}  // namespace helve
