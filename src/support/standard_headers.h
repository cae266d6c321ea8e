// The headers of the standard library and of fmt that most files include, precompiled once for all rooms.
// A file still includes what it uses: the builds with sanitizers precompile nothing.
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
