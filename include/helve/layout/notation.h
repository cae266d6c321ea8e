// The text of layouts.
// One spelling for Python, C++, messages and goldens; what is printed parses back to an equal layout.
//
//   layout  = shard { "+" replica | ("+" | "-") offset } [ "^" swizzle ]
//   shard   = "S[" ints ":" strides "]"            replica = "R[" ints ":" strides "]"
//   ints    = int | "(" [ int { "," int } [","] ] ")"        strides: the same of int [ "@" axis ]
//   offset  = int [ "@" axis ]                     swizzle = "Swizzle(" bits "," base "," shift ")"
//
// The memory axis `m` is not written (but may be). The swizzle's numbers stand in CuTe's order B, M, S. Offsets on one
// axis add. The text is also a Python expression of the same value: '@' binds tighter than '+', and '+' tighter than
// '^'.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// "S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid".
std::string to_string(const Layout& layout);
/// "R[2 : 4@warpid]", what a layout's text adds for its replicas.
std::string replica_text(const Iters& replica);
/// "8:4@laneid".
std::string to_string(const Iter& iter);
/// "4@laneid + 1@warpid + 7"; "0" for the origin.
std::string to_string(const Point& point);
std::string to_string(const Swizzle& swizzle);

/// The layout that `text` spells. Throws LayoutError with the column (from 1) and what was expected there, and whatever
/// the constructor of Layout refuses.
Layout parse_layout(std::string_view text);

}  // namespace helve
