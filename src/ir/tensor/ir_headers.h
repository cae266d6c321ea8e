// The headers of the IR and of what is known of its expressions, precompiled once for the rooms that work on it.
// All are of rooms that these rooms use anyway. A file still includes what it uses: the builds with sanitizers
// precompile nothing.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/function.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/stmt.h"
#include "helve/ir/tensor/tile_op.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
