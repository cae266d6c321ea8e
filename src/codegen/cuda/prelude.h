// The functions that generated kernels call, in parts.
// A text contains only the parts that it uses, so that a simple kernel fits a page.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace helve::cuda {

struct PreludePart {
  std::string_view name;
  std::string_view uses;  ///< a part of the table, or empty
  std::string_view text;  ///< begins with a line break
};

class Prelude {
 public:
  /// Adds the part of the table and the parts that it uses to the text. InternalError for a name that is not there.
  void need(const std::string& part);
  /// Adds a part that stands with the only code that calls it; it must outlive the prelude.
  void need(const PreludePart& part);
  /// Adds a part that is made for its caller; equal names have equal texts.
  void need(const std::string& name, const std::string& text);
  /// The parts in the order of the table, then the others by name, then those that were made.
  std::string text() const;

 private:
  std::set<std::string> parts_;
  std::map<std::string_view, const PreludePart*> others_;
  std::map<std::string, std::string> made_;
};

}  // namespace helve::cuda
