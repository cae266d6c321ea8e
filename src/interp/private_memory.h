// Private memory that stands around a loop of independent iterations: each iteration has it for itself.
// One finds what stood there before the loop, what it writes no other one sees, and behind the loop stands what one
// iteration left. Where several leave a value of an element there is none.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "scope.h"

namespace helve::interp {

/// The slots of the private buffers around `body`, the body of an independent loop, that it writes; none where one
/// memory serves all iterations.
std::vector<size_t> private_around(const Stmt& body, const Scope& scope);

/// What one run of a loop does with that memory.
class PrivateMemory {
 public:
  /// Keeps what stands there before the loop, which the frame's trace has entered.
  PrivateMemory(const std::vector<size_t>& slots, Frame& frame);

  /// Takes what the iteration left, and gives back what the next one is to find.
  void end_iteration();
  /// Puts behind the loop what its iterations left there.
  void end_loop();

 private:
  struct Element {
    Scalar value;
    Cell cell;  ///< in a checked run
    bool several = false;
  };
  struct Part {
    Instance* instance;
    std::vector<Element> found;
    std::map<int64_t, Element> left;  ///< by offset
  };

  static Element element_of(const Instance& instance, int64_t offset);
  static void put(Instance& instance, int64_t offset, const Element& element);

  std::vector<Part> parts_;
  Left loop_;
};

}  // namespace helve::interp
