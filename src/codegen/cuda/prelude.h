// The functions that generated kernels call, in parts.
// A text contains only the parts that it uses, so that a simple kernel fits a page.
#pragma once

#include <set>
#include <string>

namespace helve::cuda {

class Prelude {
 public:
  /// Adds the part and the parts that it uses to the text. InternalError for a name that is not in the table.
  void need(const std::string& part);
  /// The parts in the order of the table.
  std::string text() const;

 private:
  std::set<std::string> parts_;
};

}  // namespace helve::cuda
