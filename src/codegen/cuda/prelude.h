// The functions that generated kernels call, cut into parts.
// A text holds only the parts that it uses, so that a simple kernel stays a page.
#pragma once

#include <set>
#include <string>

namespace helve::cuda {

class Prelude {
 public:
  /// The text uses the part; so does all that the part itself uses. InternalError for a name that is not in the table.
  void need(const std::string& part);
  /// The parts in the order of the table.
  std::string text() const;

 private:
  std::set<std::string> parts_;
};

}  // namespace helve::cuda
