// Locations in the user's source.
// Every node and every diagnostic has a span, so that an error found late is still reported at the line that caused it.
#pragma once

#include <string>
#include <string_view>

namespace helve {

/// A half-open range of source text. Lines count from 1, columns from 1 (in characters); 0 means unknown. Text of a
/// called function has a location for each call.
struct Span {
  const std::string* file = nullptr;  ///< interned, never freed; null when unknown
  int line = 0;
  int column = 0;
  int end_line = 0;
  int end_column = 0;
  const Span* caller = nullptr;  ///< the call that the text is part of, interned, never freed; null outside of calls

  bool known() const { return file != nullptr && line > 0; }
  bool operator==(const Span&) const = default;
};

/// The one stored copy of a file name. Spans hold a pointer to it, so they stay small and trivially copyable.
const std::string* intern_file(std::string_view name);

/// The location of `inner`, text of a function, in the call of that function at `call`; unknown stays unknown.
Span called_from(Span inner, const Span& call);

}  // namespace helve
