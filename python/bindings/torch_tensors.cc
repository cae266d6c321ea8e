// Asking PyTorch about its tensors. A call may take no longer for it, and `tensor.is_neg()` gives up the interpreter
// lock and takes it again: whether a view is negative is read where PyTorch keeps it, at a place that is found by
// looking at tensors whose answer is known, and asked by the method where no such place is found. torch is never
// imported here, it is there when its tensors are.
#include "torch_tensors.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

#include "helve/support/diagnostic.h"

namespace helve::python {

namespace py = pybind11;

namespace {

uint64_t word_at(const void* base, size_t offset) {
  uint64_t word = 0;
  std::memcpy(&word, static_cast<const char*>(base) + offset, sizeof word);
  return word;
}

/// A tensor with what PyTorch says of it: the address of its implementation, and the set of its dispatch keys.
struct Sample {
  py::object tensor;
  uint64_t address = 0;
  uint64_t keys = 0;
};

/// The one offset below `limit` at which every sample has its word; nothing for none or several.
template <class Base, class Word>
std::optional<size_t> common_offset(const std::vector<Sample>& samples, size_t first, size_t limit, Base&& base,
                                    Word&& word) {
  std::optional<size_t> found;
  for (size_t offset = first; offset + sizeof(uint64_t) <= limit; offset += sizeof(uint64_t)) {
    const bool fits = std::all_of(samples.begin(), samples.end(),
                                  [&](const Sample& s) { return word_at(base(s), offset) == word(s); });
    if (fits && found) return std::nullopt;
    if (fits) found = offset;
  }
  return found;
}

/// Where tensors say that they are negative.
struct NegativeBit {
  py::object type;  ///< of tensors that have it there; null where the place is not known
  size_t address = 0;
  size_t keys = 0;
  uint64_t mask = 0;

  bool is_known_for(py::handle tensor) const {
    return type && PyObject_TypeCheck(tensor.ptr(), reinterpret_cast<PyTypeObject*>(type.ptr()));
  }
  bool of(py::handle tensor) const {
    const auto* implementation = reinterpret_cast<const void*>(word_at(tensor.ptr(), address));
    return (word_at(implementation, keys) & mask) != 0;
  }
};

NegativeBit find_negative_bit() {
  constexpr size_t kImplementation = 184;  // no more of it is looked at; no version has had less
  const auto torch = py::module_::import("torch");
  const py::object core = torch.attr("_C"), plain = torch.attr("ones")(4, py::arg("device") = "cpu");
  const py::object conjugate = torch.attr("conj")(
      torch.attr("ones")(2, py::arg("dtype") = torch.attr("complex64"), py::arg("device") = "cpu"));
  std::vector<Sample> samples;
  for (const py::object& tensor : {plain, py::object(torch.attr("_neg_view")(plain)), conjugate,
                                   py::object(torch.attr("empty")(2, py::arg("device") = "meta"))}) {
    samples.push_back({tensor, tensor.attr("_cdata").cast<uint64_t>(),
                       core.attr("_dispatch_keys")(tensor).attr("raw_repr")().cast<uint64_t>()});
  }
  NegativeBit out;
  out.mask = samples[0].keys ^ samples[1].keys;
  const auto address = common_offset(samples, sizeof(PyObject), static_cast<size_t>(Py_TYPE(plain.ptr())->tp_basicsize),
                                     [](const Sample& s) { return static_cast<const void*>(s.tensor.ptr()); },
                                     [](const Sample& s) { return s.address; });
  const auto keys = common_offset(samples, 0, kImplementation,
                                  [](const Sample& s) { return reinterpret_cast<const void*>(s.address); },
                                  [](const Sample& s) { return s.keys; });
  if (!address || !keys || (out.mask & (out.mask - 1)) != 0 || out.mask == 0) return {};
  out.address = *address;
  out.keys = *keys;
  out.type = core.attr("TensorBase");
  return out;
}

/// Looked for once. The interpreter lock guards it: a static's own guard would be held while Python code runs.
const NegativeBit& negative_bit() {
  static const NegativeBit* found = nullptr;
  if (found != nullptr) return *found;
  NegativeBit bit;
  try {
    bit = find_negative_bit();
  } catch (py::error_already_set& fault) {  // another version of PyTorch: its tensors are asked
    if (!fault.matches(PyExc_Exception)) throw;
  } catch (py::cast_error&) {
  }
  found = new NegativeBit(bit);
  return *found;
}

bool is_negative(py::handle tensor) {
  const NegativeBit& bit = negative_bit();
  return bit.is_known_for(tensor) ? bit.of(tensor) : tensor.attr("is_neg")().cast<bool>();
}

bool requires_grad(py::handle tensor) {
  static PyObject* const name = PyUnicode_InternFromString("requires_grad");
  const auto answer = py::reinterpret_steal<py::object>(PyObject_GetAttr(tensor.ptr(), name));
  if (!answer) throw py::error_already_set();
  return answer.ptr() == Py_True;
}

}  // namespace

void check_torch_tensor(const std::string& parameter, py::handle tensor, bool written) {
  if (is_negative(tensor)) {
    throw UserError(Code::LazyArgumentView, {},
                    {{"parameter", parameter}, {"pending", "negation"}, {"remedy", "pass tensor.resolve_neg()"}});
  }
  if (!written || !requires_grad(tensor)) return;
  if (py::module_::import("torch").attr("is_grad_enabled")().cast<bool>())
    throw UserError(Code::ArgumentRequiresGrad, {}, {{"parameter", parameter}});
}

void count_torch_writes(py::handle tensors) {
  static PyObject* increment = nullptr;
  if (increment == nullptr)
    increment = py::object(py::module_::import("torch._C").attr("_increment_version")).release().ptr();
  const auto done = py::reinterpret_steal<py::object>(PyObject_CallOneArg(increment, tensors.ptr()));
  if (!done) throw py::error_already_set();
}

}  // namespace helve::python
