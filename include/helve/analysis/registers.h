// What threads do with the registers of a fragment.
// The first dimension of a fragment is the thread. A thread reads and writes its own row; it reads the row of another
// lane of its warp, when all lanes of the warp do so together.
#pragma once

#include <optional>
#include <string>

#include "helve/ir/tensor/function.h"

namespace helve {

/// A use of registers that no instruction makes.
struct RegisterFault {
  Span span;
  std::string reason;
  std::string remedy;
};

/// The first such use in a function in thread form.
std::optional<RegisterFault> register_fault(const Function& f);

}  // namespace helve
