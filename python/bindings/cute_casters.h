// How CuTe layouts, nested tuples and tilers cross into Python.
// Tuples are Python's own tuples, a layout is a small object that remembers its text; calls stay cheap, so there is no
// Python code in between.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "helve/layout/cute/composed.h"
#include "layout_casters.h"

namespace helve::python {

/// A coordinate: a nested tuple in which `None` stands for every value of a mode.
struct Coordinate {
  cute::IntTuple tuple;
};

/// What a Python `Layout` holds: the value, and its text and tuples once they have been asked for.
struct LayoutObject {
  cute::Layout layout;
  pybind11::object text;
  pybind11::object shape;
  pybind11::object stride;
};

/// Appends a nested tuple or list of integers (`None` is kAll if allowed). False when an object of another class stands
/// in it; throws LayoutError for other numbers and for steps along coordinates.
bool append_tuple(cute::IntTuple& result, pybind11::handle source, bool none_allowed, size_t level = 0);
pybind11::object tuple_object(cute::IntCursor tuple);
/// The mode that a subscript names: a negative one counts from the end, one outside is `rank`.
size_t mode_index(int64_t index, size_t rank);
bool load_tiler(cute::Tiler& result, pybind11::handle source, size_t level = 0);

}  // namespace helve::python

namespace pybind11::detail {

template <>
struct type_caster<helve::cute::IntTuple> {
  PYBIND11_TYPE_CASTER(helve::cute::IntTuple, const_name("int | tuple"));
  bool load(handle source, bool) { return helve::python::append_tuple(value, source, false); }
  static handle cast(const helve::cute::IntTuple& source, return_value_policy, handle) {
    return helve::python::tuple_object(source.root()).release();
  }
};

template <>
struct type_caster<helve::python::Coordinate> {
  PYBIND11_TYPE_CASTER(helve::python::Coordinate, const_name("int | tuple | None"));
  bool load(handle source, bool) { return helve::python::append_tuple(value.tuple, source, true); }
  static handle cast(const helve::python::Coordinate& source, return_value_policy, handle) {
    return helve::python::tuple_object(source.tuple.root()).release();
  }
};

template <>
struct type_caster<helve::cute::Tiler> {
  PYBIND11_TYPE_CASTER(helve::cute::Tiler, const_name("Layout | int | tuple | None"));
  bool load(handle source, bool) { return helve::python::load_tiler(value, source); }
};

/// As for any bound class, with its registration looked up once and not by every argument of every call.
template <>
struct type_caster<helve::python::LayoutObject> : type_caster_generic {
  using Object = helve::python::LayoutObject;
  static constexpr auto name = const_name<Object>();
  template <class T>
  using cast_op_type = pybind11::detail::cast_op_type<T>;

  type_caster() : type_caster_generic(registration()) {}
  operator Object*() { return static_cast<Object*>(value); }
  operator Object&() {
    if (value == nullptr) throw reference_cast_error();
    return *static_cast<Object*>(value);
  }
  static handle cast(Object&& made, return_value_policy, handle parent) {
    return type_caster_generic::cast(new Object(std::move(made)), return_value_policy::take_ownership, parent,
                                     registration(), nullptr, nullptr);
  }

 private:
  static const type_info* registration() {
    static const type_info* const found = get_type_info(typeid(Object));
    return found;
  }
};

/// A layout is borrowed from its object; an integer n is n:1.
template <>
struct type_caster<helve::cute::Layout> {
  static constexpr auto name = const_name("Layout");
  template <class T>
  using cast_op_type = const helve::cute::Layout&;

  bool load(handle source, bool) {
    if (PyNumber_Check(source.ptr()) != 0) {
      helve::cute::IntTuple extent;
      if (!helve::python::append_tuple(extent, source, false)) return false;
      made.emplace(extent.leaves[0], 1);
      return true;
    }
    return object.load(source, false);
  }
  operator const helve::cute::Layout&() {
    return made ? *made : static_cast<helve::python::LayoutObject&>(object).layout;
  }
  static handle cast(helve::cute::Layout source, return_value_policy, handle parent) {
    return make_caster<helve::python::LayoutObject>::cast({std::move(source), {}, {}, {}}, return_value_policy::move,
                                                          parent);
  }

  make_caster<helve::python::LayoutObject> object;
  std::optional<helve::cute::Layout> made;
};

}  // namespace pybind11::detail
