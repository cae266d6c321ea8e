// Plain stores that are updates but for the order of their values: `C[i] = C[i] + x`.
// Operations combine in any order, which integers allow and floats only where the program says so.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// What the store becomes if its order is given up, T.update(C[i], x, "add"), or T.max(C[i], x) by "max"; the statement
/// itself if it is no such store.
Stmt plain_update(const Stmt& s);

}  // namespace helve
