// The words of messages about Python objects: "a list", "an int", the text of a value.
// Messages name objects and classes that somebody else made: nobody knows their spelling beforehand, nor whether they
// have one.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>

namespace helve::python {

/// By the sound of the beginning: "a uint8" begins like "you", "an ndarray" like "en".
inline std::string with_article(std::string_view noun) {
  const bool vowel = !noun.empty() && std::string_view("aeiouAEIOU").find(noun[0]) != std::string_view::npos;
  const bool an = (vowel && !noun.starts_with("uint")) || noun.starts_with("ndarray");
  return (an ? "an " : "a ") + std::string(noun);
}

/// str(value) in UTF-8, with escapes for what UTF-8 has no bytes for; `otherwise` where it has no text.
inline std::string text_of(pybind11::handle value, std::string_view otherwise) {
  namespace py = pybind11;
  const auto text = py::reinterpret_steal<py::object>(PyObject_Str(value.ptr()));
  const auto bytes = py::reinterpret_steal<py::object>(
      text ? PyUnicode_AsEncodedString(text.ptr(), "utf-8", "backslashreplace") : nullptr);
  if (!bytes) {
    PyErr_Clear();
    return std::string(otherwise);
  }
  return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

/// "None", "a list", "an ndarray".
inline std::string kind_of(pybind11::handle value) {
  if (value.is_none()) return "None";
  return with_article(text_of(pybind11::type::handle_of(value).attr("__name__"), "value"));
}

}  // namespace helve::python
