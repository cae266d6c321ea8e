// "a list", "an int": nouns with their indefinite article.
// Messages name the classes of Python objects, of which nobody knows the spelling beforehand.
#pragma once

#include <string>
#include <string_view>

namespace helve::python {

/// By the sound of the beginning: "a uint8" begins like "you", "an ndarray" like "en".
inline std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiouAEIOU").find(noun[0]) != std::string_view::npos;
  const bool an = (vowel && !noun.starts_with("uint")) || noun.starts_with("ndarray");
  return (an ? "an " : "a ") + std::string(noun);
}

}  // namespace helve::python
