// Distributions and meshes as text.
// Plans print them, and refusals quote them.
#pragma once

#include <string>
#include <vector>

#include "helve/layout/distribution.h"

namespace helve {

/// "'i j -> i *'"; levels are separated by semicolons.
std::string quoted_notation(const Distribution& distribution);
/// "(x=2, y=4)".
std::string mesh_text(const std::vector<MeshAxis>& mesh);

}  // namespace helve
