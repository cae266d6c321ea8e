// Capsules of DLPack: asking for one, and taking what it holds.
// For libraries without a C exchange.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "helve/runtime/dlpack.h"

namespace helve::python {

/// What `__dlpack__` gives. Exporters of before DLPack 1.0 know no `max_version`.
inline pybind11::object capsule_of(pybind11::handle value, const pybind11::dict& asked) {
  try {
    return value.attr("__dlpack__")(pybind11::arg("max_version") = pybind11::make_tuple(1, 0), **asked);
  } catch (pybind11::error_already_set& error) {
    if (!error.matches(PyExc_TypeError)) throw;
  }
  return value.attr("__dlpack__")(**asked);
}

/// What a capsule holds. It is another's to delete from now on, as DLPack demands: whatever code runs before the call,
/// nobody else can take it.
template <class Managed>
std::shared_ptr<Managed> taken(const pybind11::object& capsule, const char* name, const char* used) {
  auto* managed = static_cast<Managed*>(PyCapsule_GetPointer(capsule.ptr(), name));
  if (PyCapsule_SetName(capsule.ptr(), used) != 0) throw pybind11::error_already_set();
  return {managed, [](Managed* each) {
            if (each->deleter != nullptr) each->deleter(each);
          }};
}

}  // namespace helve::python
