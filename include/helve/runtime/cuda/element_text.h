// Elements of a dtype in CUDA C: how they are stored, read, computed with and written.
// All kernels that reduce elements on a GPU say it so, and give the bits that the CPU gives.
#pragma once

#include <string>

#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// How elements of a dtype are stored and computed with. `encode` and `decode` are calls around `$`.
struct ElementType {
  std::string stored, value, decode = "$", encode = "$";
};

/// What a source that uses the types begins with.
const char* element_prelude();

/// `stored` is empty if the dtype has no reductions.
ElementType reduced_type(DLDataType dtype);
/// Of elements that are only moved.
ElementType moved_type(DLDataType dtype);

/// A form with its `$` replaced.
std::string around(const std::string& form, const std::string& inside);

/// The value of `a op b`.
std::string combined_text(const ElementType& type, ReduceOp op);

}  // namespace helve::runtime::cuda
