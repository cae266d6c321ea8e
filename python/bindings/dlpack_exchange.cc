// The exchange tables of types, and streams of libraries without one.
// Asking a type costs more than the exchange itself, so the answers are kept.
#include "dlpack_exchange.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "words.h"

namespace helve::python {

namespace py = pybind11;

namespace {

/// The top package that a type comes from.
std::string package_of(PyTypeObject* type) {
  const py::handle handle(reinterpret_cast<PyObject*>(type));
  if (!py::hasattr(handle, "__module__")) return {};
  const std::string name = text_of(handle.attr("__module__"), "");
  return name.substr(0, name.find('.'));
}

/// The class of this name in the package, or what derives from it.
bool is_or_derives(PyTypeObject* type, std::string_view name, std::string_view package) {
  const py::handle classes(type->tp_mro);
  return std::ranges::any_of(classes, [&](py::handle each) {
    auto* base = reinterpret_cast<PyTypeObject*>(each.ptr());
    return std::string_view(base->tp_name) == name && package_of(base) == package;
  });
}

ExchangeType look_up(PyTypeObject* type) {
  const py::handle handle(reinterpret_cast<PyObject*>(type));
  ExchangeType found;
  found.is_torch = is_or_derives(type, "Tensor", "torch");
  found.is_real = (is_or_derives(type, "numpy.integer", "numpy") || is_or_derives(type, "numpy.floating", "numpy")) &&
                  !is_or_derives(type, "numpy.timedelta64", "numpy");
  found.is_masked = is_or_derives(type, "MaskedArray", "numpy");
  if (!py::hasattr(handle, "__dlpack_c_exchange_api__")) return found;
  const py::object capsule = handle.attr("__dlpack_c_exchange_api__");
  if (!PyCapsule_IsValid(capsule.ptr(), "dlpack_exchange_api")) return found;
  const auto* header =
      static_cast<const DLPackExchangeHeader*>(PyCapsule_GetPointer(capsule.ptr(), "dlpack_exchange_api"));
  while (header != nullptr && header->version.major != runtime::DLPACK_MAJOR_VERSION) header = header->prev_api;
  const auto* api = reinterpret_cast<const DLPackExchange*>(header);
  if (api == nullptr || api->managed_tensor_from_py_object_no_sync == nullptr) return found;
  found.api = api;
  found.borrows = found.is_torch && api->dltensor_from_py_object_no_sync != nullptr;
  return found;
}

}  // namespace

const ExchangeType& exchange_of(PyTypeObject* type) {
  // Guarded by the interpreter lock. A reference to each type keeps its address from being given to another one.
  static std::unordered_map<PyTypeObject*, ExchangeType> known;
  static std::pair<PyTypeObject*, const ExchangeType*> last;  // arguments of a call are mostly of one type
  if (last.first == type) return *last.second;
  if (const auto found = known.find(type); found != known.end()) {
    last = {type, &found->second};
    return found->second;
  }
  const ExchangeType answer = look_up(type);
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  return known.emplace(type, answer).first->second;
}

void* current_stream_of(py::handle value) {
  if (package_of(Py_TYPE(value.ptr())) != "cupy") return nullptr;
  const py::object stream = py::module_::import("cupy").attr("cuda").attr("get_current_stream")();
  return reinterpret_cast<void*>(stream.attr("ptr").cast<uintptr_t>());
}

}  // namespace helve::python
