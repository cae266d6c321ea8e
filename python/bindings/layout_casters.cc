// Arguments of the layout room as they come from Python.
// One place decides what is a number written wrongly and what is no number at all, so that all functions refuse alike.
#include "bindings.h"
#include "layout_casters.h"

namespace helve::python {

namespace py = pybind11;

void refuse_argument(const std::string& value, const std::string& expected, const char* remedy) {
  throw_layout_error(Code::LayoutArgument, {{"value", value}, {"expected", expected}, {"remedy", remedy}});
}

void refuse_argument(py::handle value, const std::string& expected, const char* remedy) {
  constexpr size_t longest = 80;
  auto text = py::repr(value).cast<std::string>();
  refuse_argument(text.size() > longest ? text.substr(0, longest - 3) + "..." : text, expected, remedy);
}

bool written_with_numbers(py::handle source) {
  PyObject* object = source.ptr();
  return PyNumber_Check(object) != 0 || PyTuple_Check(object) || PyList_Check(object);
}

std::optional<int64_t> read_integer(py::handle source) {
  constexpr const char* remedy = "extents, strides, coordinates and factors are whole numbers";
  py::object index;
  if (PyIndex_Check(source.ptr()) != 0) {
    index = py::reinterpret_steal<py::object>(PyNumber_Index(source.ptr()));
    if (!index) PyErr_Clear();  // an array of several
  }
  if (!index) {
    if (written_with_numbers(source)) refuse_argument(source, "integer", remedy);
    return std::nullopt;
  }
  int overflow = 0;
  long long value = PyLong_AsLongLongAndOverflow(index.ptr(), &overflow);
  if (overflow != 0) throw_layout_error(Code::LayoutOverflow, {{"what", py::str(index).cast<std::string>()}});
  return value;
}

std::optional<Displacement> read_displacement(py::handle source) {
  if (py::isinstance<Displacement>(source)) return source.cast<Displacement>();
  if (auto value = read_integer(source)) return Displacement{*value, axes::m()};
  return std::nullopt;
}

namespace {

/// Whether `source` is a sequence other than text. Throws for numbers that are none.
bool is_list(py::handle source, const char* expected, const char* remedy) {
  if (py::isinstance<py::str>(source) || py::isinstance<py::bytes>(source)) return false;
  if (PySequence_Check(source.ptr()) != 0 && PyObject_Size(source.ptr()) >= 0) return true;
  PyErr_Clear();  // an array without dimensions has no size
  if (written_with_numbers(source)) refuse_argument(source, expected, remedy);
  return false;
}

}  // namespace

bool load_integers(Integers& result, py::handle source) {
  result.clear();
  if (!is_list(source, "list of integers", "write a tuple, as (8, 4) or (8,)")) return false;
  for (const py::object item : py::reinterpret_borrow<py::sequence>(source)) {
    const auto value = read_integer(item);
    if (!value) return false;
    result.push_back(*value);
  }
  return true;
}

bool load_lists(IntegerLists& result, py::handle source) {
  result.clear();
  if (!is_list(source, "list of lists of integers", "write a list of tuples, as [(8, 4), (32,)]")) return false;
  for (const py::object item : py::reinterpret_borrow<py::sequence>(source)) {
    if (!load_integers(result.emplace_back(), item)) return false;
  }
  return true;
}

bool load_mode(ModeNumber& result, py::handle source) {
  const auto number = read_integer(source);
  if (number && *number < 0) refuse_argument(std::to_string(*number), "mode", "modes count from 0");
  result.value = static_cast<size_t>(number.value_or(0));
  return number.has_value();
}

bool load_modes(ModeNumbers& result, py::handle source) {
  result.clear();
  if (!is_list(source, "list of modes", "write a tuple of their numbers, as (0, 1) or (0,)")) return false;
  for (const py::object item : py::reinterpret_borrow<py::sequence>(source)) {
    ModeNumber mode;
    if (!load_mode(mode, item)) return false;
    result.push_back(mode);
  }
  return true;
}

size_t read_mode(py::handle source) {
  ModeNumber mode;
  if (!load_mode(mode, source)) throw py::type_error("a mode is a number from 0");
  return mode;
}

namespace {

constexpr const char* kIter = "an iter is (extent, stride), (extent, stride@axis) or (extent, stride, axis)";

}  // namespace

bool load_iter(Iter& result, py::handle source) {
  if (!PyTuple_Check(source.ptr()) && !PyList_Check(source.ptr())) {
    if (written_with_numbers(source)) refuse_argument(source, "iter", kIter);
    return false;
  }
  const auto items = py::reinterpret_borrow<py::sequence>(source);
  const size_t count = items.size();
  if (count != 2 && count != 3) refuse_argument(source, "iter", kIter);
  const auto extent = read_integer(items[0]);
  const auto stride = read_displacement(items[1]);
  if (!extent || !stride) refuse_argument(source, "iter", kIter);
  result = {*extent, stride->value, stride->axis};
  if (count == 2) return true;
  if (!py::isinstance<Axis>(items[2]) || py::isinstance<Displacement>(items[1])) refuse_argument(source, "iter", kIter);
  result.axis = py::object(items[2]).cast<Axis>();
  return true;
}

void check_iters(py::handle source) {
  if (PyNumber_Check(source.ptr()) != 0) refuse_argument(source, "list of iters", kIter);
}

bool load_point(Point& result, py::handle source) {
  constexpr const char* remedy = "a point is a dict from axes to integers, as {laneid: 3}";
  result = Point();
  if (!PyDict_Check(source.ptr())) {
    if (written_with_numbers(source)) refuse_argument(source, "point", remedy);
    return false;
  }
  for (auto [axis, coordinate] : py::reinterpret_borrow<py::dict>(source)) {
    const auto value = read_integer(coordinate);
    if (!py::isinstance<Axis>(axis) || !value) refuse_argument(source, "point", remedy);
    result[axis.cast<Axis>()] = *value;
  }
  return true;
}

}  // namespace helve::python
