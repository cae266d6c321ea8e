// How layouts cross into Python.
// An iter is a tuple (extent, stride, axis), a point a dict from axes to integers, and integers are read with their
// overflow named, so that a layout written in Python is refused by the same words as one in C++.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "helve/layout/layout.h"
#include "helve/layout/rearrange.h"

namespace helve::python {

/// `stride@axis` as a value: what `4@laneid` is.
struct Displacement {
  int64_t value;
  Axis axis;
};

/// The one object that stands for `axis` in Python; lives as long as the process.
pybind11::handle axis_object(Axis axis);

/// The integer that `source` holds (anything with `__index__`); none when it is no integer. Throws UnsupportedError
/// beyond 64 bits.
std::optional<int64_t> read_integer(pybind11::handle source);

/// An integer on `m`, or a Displacement.
std::optional<Displacement> read_displacement(pybind11::handle source);

}  // namespace helve::python

namespace pybind11::detail {

/// An axis is one Python object, so that Python compares and hashes axes by identity, as C++ does.
template <>
struct type_caster<helve::Axis> : type_caster_base<helve::Axis> {
  static handle cast(const helve::Axis& source, return_value_policy, handle) {
    return helve::python::axis_object(source).inc_ref();
  }
};

template <>
struct type_caster<helve::Iter> {
  PYBIND11_TYPE_CASTER(helve::Iter, const_name("tuple[int, int, Axis]"));
  bool load(handle source, bool) {
    if (!isinstance<tuple>(source) && !isinstance<list>(source)) return false;
    auto items = reinterpret_borrow<sequence>(source);
    if (items.size() != 2 && items.size() != 3) return false;
    auto extent = helve::python::read_integer(items[0]);
    auto stride = helve::python::read_displacement(items[1]);
    if (!extent || !stride) return false;
    value = {*extent, stride->value, stride->axis};
    if (items.size() == 2) return true;
    if (!isinstance<helve::Axis>(items[2]) || !PyLong_Check(object(items[1]).ptr())) return false;
    value.axis = object(items[2]).cast<helve::Axis>();
    return true;
  }
  static handle cast(const helve::Iter& source, return_value_policy, handle) {
    return make_tuple(source.extent, source.stride, source.axis).release();
  }
};

/// A point is a dict.
template <>
struct type_caster<helve::Point> {
  PYBIND11_TYPE_CASTER(helve::Point, const_name("dict[Axis, int]"));
  bool load(handle source, bool) {
    if (!isinstance<dict>(source)) return false;
    value = helve::Point();
    for (auto [axis, coordinate] : reinterpret_borrow<dict>(source)) {
      if (!isinstance<helve::Axis>(axis)) return false;
      auto number = helve::python::read_integer(coordinate);
      if (!number) return false;
      value[axis.cast<helve::Axis>()] = *number;
    }
    return true;
  }
  static handle cast(const helve::Point& source, return_value_policy, handle) {
    dict result;
    for (const auto& [axis, coordinate] : source) result[helve::python::axis_object(axis)] = pybind11::int_(coordinate);
    return result.release();
  }
};

template <class T, size_t N>
struct type_caster<helve::InlineVector<T, N>> : list_caster<helve::InlineVector<T, N>, T> {};

}  // namespace pybind11::detail
