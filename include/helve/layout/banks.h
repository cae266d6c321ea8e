// Bank conflicts of shared memory, and swizzles that avoid them.
// Shared memory has 32 banks of one 4-byte word. A warp's access is served in phases of at most 128 bytes (32 threads
// of 4 bytes or less, 16 of 8, 8 of 16; ldmatrix reads 8 rows of 16 bytes a phase); a phase takes as many steps as its
// fullest bank has different words (CUDA C++ Programming Guide, shared memory).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "helve/layout/layout.h"
#include "helve/layout/warp.h"

namespace helve {

inline constexpr int64_t kBanks = 32;
inline constexpr int64_t kBankBytes = 4;

/// What each thread moves: `width` elements from the flat index `first[t]` on; kInactive moves nothing.
struct BankAccess {
  std::vector<int64_t> first;
  int64_t width = 1;

  static constexpr int64_t kInactive = -1;
};

/// The threads that are served together.
struct BankPhase {
  int64_t first_thread = 0;
  std::vector<std::vector<int64_t>> words;  ///< of each thread, the 4-byte words that it touches, ascending
  int64_t depth = 0;                        ///< different words in the fullest bank; 0 when no thread is active
};

struct BankReport {
  std::vector<BankPhase> phases;

  /// The depth of the worst phase; 1 is free of conflicts.
  int64_t depth() const;
  /// Steps beyond one a phase.
  int64_t extra_steps() const;
};

/// How the access of the threads falls on banks. A word that several threads touch counts once, for reads (broadcast)
/// as for writes. Threads beyond 32 are further warps. Throws ShapeError unless a thread moves 1, 2, 4, 8 or 16 bytes
/// that lie together and aligned, and every index has one address on `m`; BoundsError for an index outside.
BankReport bank_conflicts(const Layout& layout, const BankAccess& access, int64_t element_bytes);

/// One row for each 128 bytes, one column for each bank, with the threads that touch the word; rows from the first to
/// the last that is touched, and the depth. Beyond 256 rows only those that are touched.
std::string bank_table(const BankPhase& phase);

/// How a choice is known to be right.
enum class SwizzleVerdict : int {
  Proved,    ///< by the closed-form rule: free of conflicts for every aligned group of rows and every column
  Searched,  ///< the best of all swizzles that keep vectors together and the tile in its place
  Padding,   ///< the best of all swizzles, and a longer row has fewer conflicts
};
std::string_view to_string(SwizzleVerdict verdict);

struct SwizzleChoice {
  Swizzle swizzle;
  SwizzleVerdict verdict = SwizzleVerdict::Proved;
  int64_t depth = 1;             ///< of the worst phase, swizzled
  int64_t plain_depth = 1;       ///< the same without a swizzle
  int64_t padding = 0;           ///< elements a row by which the best padding lengthens rows
  int64_t padded_depth = 1;      ///< the same with that padding and no swizzle
  int64_t padding_bytes = 0;     ///< what that padding costs
};

/// A swizzle for a row-major tile of `rows` rows, `row_stride` elements apart, of which warps move columns: thread t
/// the `width` elements at row t, from any column that is a multiple of `width`. `others` are further accesses of the
/// same tile, by flat indices row * row_stride + column; with them, and for vectors below 4 bytes, all swizzles are
/// tried. Throws BoundsError for a number below 1, ShapeError unless `width` divides `row_stride`, and like
/// bank_conflicts.
SwizzleChoice choose_swizzle(int64_t rows, int64_t row_stride, int64_t element_bytes, int64_t width,
                             const std::vector<BankAccess>& others = {});

/// The same for these accesses and no others: the best of all swizzles and paddings that keep runs of `width` elements
/// together. Never Proved.
SwizzleChoice search_swizzle(int64_t rows, int64_t row_stride, int64_t element_bytes, int64_t width,
                             const std::vector<BankAccess>& accesses);

/// The closed-form rule alone: for rows `vectors` vectors apart, of which `slots` fill the 32 banks (a power of two), B
/// = min(k, z), S = max(k, z), where slots = 2^k and z are the trailing zeros of `vectors`; M is log2 of `width`.
/// `vectors` is a multiple of 2^B, so the low B slot bits of a column do not change and only the upper k - B walk, once
/// through in 2^(k - B) rows; from one round to the next the address grows by an odd multiple of 2^S slots, so the B
/// bits at S take every value, and the swizzle puts them where nothing changed.
Swizzle column_swizzle(int64_t vectors, int64_t slots, int64_t width);

}  // namespace helve
