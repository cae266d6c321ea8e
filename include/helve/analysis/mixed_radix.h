// Numbers in mixed radix: what equal numbers, or equal digits, say of each other where the radix is no constant.
// isl has no products of two symbols; these facts are consequences of the definition of division, which it can use.
#pragma once

#include <utility>
#include <vector>

#include "helve/analysis/access.h"
#include "helve/ir/expr/visit.h"

namespace helve {

/// e / radix where the radix is a factor of every term of e, else null.
Expr exact_quotient(const Expr& e, const Expr& radix);

/// What follows from `x == y` for each of the pairs of subscripts of `a` and `b`, where variables of `b` are renamed:
/// - q * m + r == p * m + s, with r and s of loops from 0 over m, means q == p and r == s;
/// - u // m == v // m and u % m == v % m together mean u == v.
std::vector<Expr> digits_agree(const Access& a, const Access& b, const Substitution& renamed,
                               const std::vector<std::pair<Expr, Expr>>& equal);

}  // namespace helve
