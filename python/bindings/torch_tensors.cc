// Asking PyTorch's tensors by their own methods.
// The names are looked up once and called without arguments, which takes some 30 ns each; torch is never imported here,
// it is there when its tensors are.
#include "torch_tensors.h"

#include "helve/support/diagnostic.h"

namespace helve::python {

namespace py = pybind11;

namespace {

/// A name of Python's, made once and kept.
PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

bool is_true(PyObject* value) {
  if (value == nullptr) throw py::error_already_set();
  const auto owned = py::reinterpret_steal<py::object>(value);
  return value == Py_True;
}

}  // namespace

void check_torch_tensor(const std::string& parameter, py::handle tensor, bool written) {
  static PyObject* const is_neg = interned("is_neg");
  static PyObject* const requires_grad = interned("requires_grad");
  if (is_true(PyObject_CallMethodNoArgs(tensor.ptr(), is_neg))) {
    throw UserError(Code::LazyArgumentView, {},
                    {{"parameter", parameter}, {"pending", "negation"}, {"remedy", "pass tensor.resolve_neg()"}});
  }
  if (!written || !is_true(PyObject_GetAttr(tensor.ptr(), requires_grad))) return;
  if (py::module_::import("torch").attr("is_grad_enabled")().cast<bool>())
    throw UserError(Code::ArgumentRequiresGrad, {}, {{"parameter", parameter}});
}

void count_torch_writes(py::handle tensors) {
  static PyObject* const increment =
      py::object(py::module_::import("torch._C").attr("_increment_version")).release().ptr();
  const auto done = py::reinterpret_steal<py::object>(PyObject_CallOneArg(increment, tensors.ptr()));
  if (!done) throw py::error_already_set();
}

}  // namespace helve::python
