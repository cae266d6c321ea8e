// How layouts cross into Python.
// An iter is a tuple (extent, stride, axis), a point a dict from axes to integers. What is written with numbers and is
// not what it should be is a LayoutError that shows it, as a layout written in C++ is refused; an object of another
// class altogether is a TypeError, as everywhere in Python.
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

/// Throws LayoutError "`value` is no `expected`".
[[noreturn]] void refuse_argument(pybind11::handle value, const std::string& expected, const char* remedy);
[[noreturn]] void refuse_argument(const std::string& value, const std::string& expected, const char* remedy);

/// Numbers, arrays, tuples and lists: what stands where numbers are meant.
bool written_with_numbers(pybind11::handle source);

/// The integer that `source` holds (anything with `__index__`); none when it is not written with numbers. Throws
/// LayoutError for other numbers and for several, UnsupportedError beyond 64 bits.
std::optional<int64_t> read_integer(pybind11::handle source);

/// An integer on `m`, or a Displacement. Throws like read_integer.
std::optional<Displacement> read_displacement(pybind11::handle source);

/// An argument that is an integer.
struct Whole {
  int64_t value = 0;
  operator int64_t() const { return value; }
};

/// An argument that is a list of integers: a shape, a coordinate, an order.
struct Integers : std::vector<int64_t> {};
/// Several of them.
struct IntegerLists : std::vector<Integers> {};

/// The number of a mode, from 0.
struct ModeNumber {
  size_t value = 0;
  operator size_t() const { return value; }
};
/// The numbers of modes: one inside the other, or side by side.
struct ModeNumbers : std::vector<size_t> {};

/// The number of a mode in a list of arguments. Throws TypeError for an object of another class.
size_t read_mode(pybind11::handle source);

/// Each reads one kind of argument: false for an object of another class, LayoutError for numbers that are none.
bool load_integers(Integers& result, pybind11::handle source);
bool load_lists(IntegerLists& result, pybind11::handle source);
bool load_mode(ModeNumber& result, pybind11::handle source);
bool load_modes(ModeNumbers& result, pybind11::handle source);
bool load_iter(Iter& result, pybind11::handle source);
bool load_point(Point& result, pybind11::handle source);
/// Throws LayoutError for numbers that are no list of iters.
void check_iters(pybind11::handle source);

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
struct type_caster<helve::python::Whole> {
  PYBIND11_TYPE_CASTER(helve::python::Whole, const_name("int"));
  bool load(handle source, bool) {
    const auto read = helve::python::read_integer(source);
    value.value = read.value_or(0);
    return read.has_value();
  }
  static handle cast(helve::python::Whole source, return_value_policy, handle) {
    return pybind11::int_(source.value).release();
  }
};

template <>
struct type_caster<helve::python::ModeNumber> {
  PYBIND11_TYPE_CASTER(helve::python::ModeNumber, const_name("int"));
  bool load(handle source, bool) { return helve::python::load_mode(value, source); }
};

template <>
struct type_caster<helve::python::ModeNumbers> {
  PYBIND11_TYPE_CASTER(helve::python::ModeNumbers, const_name("Sequence[int]"));
  bool load(handle source, bool) { return helve::python::load_modes(value, source); }
  static handle cast(const helve::python::ModeNumbers& source, return_value_policy, handle) {
    return tuple(pybind11::cast(std::vector<size_t>(source))).release();
  }
};

template <>
struct type_caster<helve::python::Integers> {
  PYBIND11_TYPE_CASTER(helve::python::Integers, const_name("Sequence[int]"));
  bool load(handle source, bool) { return helve::python::load_integers(value, source); }
};

template <>
struct type_caster<helve::python::IntegerLists> {
  PYBIND11_TYPE_CASTER(helve::python::IntegerLists, const_name("Sequence[Sequence[int]]"));
  bool load(handle source, bool) { return helve::python::load_lists(value, source); }
};

template <>
struct type_caster<helve::Iter> {
  PYBIND11_TYPE_CASTER(helve::Iter, const_name("tuple[int, int, Axis]"));
  bool load(handle source, bool) { return helve::python::load_iter(value, source); }
  static handle cast(const helve::Iter& source, return_value_policy, handle) {
    return make_tuple(source.extent, source.stride, source.axis).release();
  }
};

/// Iters are a list of tuples, wherever numbers stand in their place a LayoutError.
template <>
struct type_caster<helve::Iters> : list_caster<helve::Iters, helve::Iter> {
  bool load(handle source, bool convert) {
    helve::python::check_iters(source);
    return list_caster::load(source, convert);
  }
};

/// A point is a dict.
template <>
struct type_caster<helve::Point> {
  PYBIND11_TYPE_CASTER(helve::Point, const_name("dict[Axis, int]"));
  bool load(handle source, bool) { return helve::python::load_point(value, source); }
  static handle cast(const helve::Point& source, return_value_policy, handle) {
    dict result;
    for (const auto& [axis, coordinate] : source) result[helve::python::axis_object(axis)] = pybind11::int_(coordinate);
    return result.release();
  }
};

template <class T, size_t N>
struct type_caster<helve::InlineVector<T, N>> : list_caster<helve::InlineVector<T, N>, T> {};

}  // namespace pybind11::detail
