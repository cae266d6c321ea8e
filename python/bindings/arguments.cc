// Reading arrays and scalars of a kernel call.
// The common case, a NumPy array of a plain dtype, is read without a Python call; the checks are the executor's.
#include "arguments.h"

#include <pybind11/numpy.h>

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "dlpack_capsule.h"
#include "helve/codegen/host/host_module.h"
#include "helve/support/diagnostic.h"
#include "helve/support/round_to_odd.h"
#include "helve/support/text.h"
#include "numpy_dtypes.h"
#include "torch_tensors.h"
#include "words.h"

namespace helve::python {

namespace py = pybind11;
using runtime::DLDataType;

namespace {

[[noreturn]] void not_an_array(const Buffer& parameter, py::handle value, const std::string& why) {
  throw UserError(Code::NotAnArray, {},
                  {{"parameter", parameter.name},
                   {"given", kind_of(value)},
                   {"reason", why},
                   {"dtype", parameter.dtype.is_packed() ? "uint8" : to_string(parameter.dtype)}});
}

/// The Python error of a failed exchange, as the reason why the value is no array for helve.
[[noreturn]] void not_exchanged(const Buffer& parameter, py::handle value) {
  const py::error_already_set error;
  if (!error.matches(PyExc_Exception)) throw error;
  const std::string why = text_of(error.value(), "");
  const std::string kind = text_of(error.type().attr("__name__"), "Exception");
  not_an_array(parameter, value, why.empty() ? kind : why.substr(0, why.find('\n')));
}

/// Whether reading a scalar of this type runs code of Python: a class that C defines has methods of C.
bool may_run_python(py::handle value) { return (Py_TYPE(value.ptr())->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0; }

/// Where an error of Python is set, it is what reading the number raised.
[[noreturn]] void not_a_number(const Var& parameter, py::handle value, const std::string& form = {},
                               const std::string& remedy = {}) {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();
  PyErr_Clear();
  throw UserError(Code::NotANumber, {},
                  {{"parameter", parameter.name},
                   {"expected", to_string(parameter.dtype)},
                   {"given", kind_of(value) + form}},
                  {}, remedy.empty() ? std::vector<std::string>{} : std::vector{remedy});
}

/// The integer in digits; one that fills lines, of which Python refuses to write some, by its size.
std::string digits_of(const py::object& number) {
  const auto bits = number.attr("bit_length")().cast<int64_t>();
  return bits <= 256 ? std::string(py::str(number)) : fmt::format("an integer of {} bits", bits);
}

/// Beyond 64 bits: a float64 that rounds to each smaller format as the integer itself does. Nothing where float64 ends.
std::optional<double> rounding_as(const py::object& number, DType to) {
  const double nearest = PyLong_AsDouble(number.ptr());
  if (nearest == -1 && PyErr_Occurred()) {
    PyErr_Clear();
    return std::nullopt;
  }
  if (to.bits == 64) return nearest;
  const auto whole = py::reinterpret_steal<py::object>(PyLong_FromDouble(nearest));
  return round_to_odd(nearest, (whole < number) - (number < whole));
}

/// The least and the greatest number of a type, which its literals need not hold.
std::string lowest(DType t) {
  if (t.is_float()) return fmt::format("{}", std::numeric_limits<double>::lowest());
  if (t.is_bool() || t.code == TypeCode::UInt) return "0";
  const int bits = t.is_index() ? 64 : t.bits;
  return fmt::format("{}", bits == 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (bits - 1)));
}
std::string highest(DType t) {
  if (t.is_float()) return fmt::format("{}", std::numeric_limits<double>::max());
  if (t.is_bool()) return "1";
  const int bits = t.is_index() ? 64 : t.bits;
  return fmt::format("{}", ~uint64_t{0} >> (64 - bits + (t.code == TypeCode::UInt ? 0 : 1)));
}

/// An integer of Python's as the runtime takes it.
runtime::ScalarArgument integer_argument(const Var& parameter, const py::object& number) {
  int overflow = 0;
  const int64_t integer = PyLong_AsLongLongAndOverflow(number.ptr(), &overflow);
  if (!overflow) return integer;
  const bool is_uint64 = parameter.dtype.code == TypeCode::UInt && parameter.dtype.bits == 64;
  if (is_uint64 && overflow > 0) {
    const uint64_t large = PyLong_AsUnsignedLongLong(number.ptr());
    if (!PyErr_Occurred()) return large;
    PyErr_Clear();
  }
  const std::optional<double> real = parameter.dtype.is_float() ? rounding_as(number, parameter.dtype) : std::nullopt;
  if (real) return *real;
  throw UserError(Code::ScalarArgumentRange, {},
                  {{"parameter", parameter.name},
                   {"expected", to_string(parameter.dtype)},
                   {"given", digits_of(number)},
                   {"low", lowest(parameter.dtype)},
                   {"high", highest(parameter.dtype)}});
}

/// The element of an array, tensor or NumPy scalar without dimensions, as Python's number; other objects as they are.
py::object element_of(const Var& parameter, py::handle value) {
  if (!py::hasattr(value, "ndim") || !py::hasattr(value, "item")) return py::reinterpret_borrow<py::object>(value);
  if (exchange_of(Py_TYPE(value.ptr())).is_masked)
    not_a_number(parameter, value, "", "pass x.filled(value) or x.data, without the mask");
  try {
    if (!py::object(value.attr("ndim")).equal(py::int_(0))) {
      const py::list shape(value.attr("shape"));
      const bool one = std::ranges::all_of(shape, [](py::handle extent) { return extent.equal(py::int_(1)); });
      const auto extents = py::reinterpret_steal<py::object>(PyList_AsTuple(shape.ptr()));
      not_a_number(parameter, value, " of shape " + text_of(extents, "?"), one ? "pass its element, x.item()" : "");
    }
    // Elements that are objects may be anything, and times are integers only inside.
    const std::string kind = text_of(py::getattr(py::getattr(value, "dtype", py::none()), "kind", py::str()), "");
    if (kind == "O" || kind == "m" || kind == "M") not_a_number(parameter, value);
    return value.attr("item")();
  } catch (py::error_already_set& error) {
    error.restore();
  }
  not_a_number(parameter, value);
}

/// Is the value a number whose reading runs no code of Python, and neither an array nor complex?
bool is_plain(py::handle value) {
  if (may_run_python(value) || py::isinstance<py::array>(value)) return false;
  return PyIndex_Check(value.ptr()) || exchange_of(Py_TYPE(value.ptr())).is_real;
}

/// The number that a scalar argument is: Python's, one of NumPy's or ml_dtypes', or that of an array without
/// dimensions.
runtime::ScalarArgument read_scalar(const Var& parameter, py::handle value) {
  if (PyFloat_Check(value.ptr())) return PyFloat_AS_DOUBLE(value.ptr());
  if (PyLong_Check(value.ptr())) return integer_argument(parameter, py::reinterpret_borrow<py::object>(value));
  const py::object element =
      is_plain(value) ? py::reinterpret_borrow<py::object>(value) : element_of(parameter, value);
  if (PyIndex_Check(element.ptr())) {
    const auto number = py::reinterpret_steal<py::object>(PyNumber_Index(element.ptr()));
    if (!number) not_a_number(parameter, value);
    return integer_argument(parameter, number);
  }
  const double real = PyFloat_AsDouble(element.ptr());
  if (real == -1 && PyErr_Occurred()) not_a_number(parameter, value);
  return real;
}

}  // namespace

CallArguments::CallArguments(const CompiledKernel& kernel, const py::args& args) : kernel_(kernel), args_(args) {
  const Function& function = *kernel.function();
  if (args.size() != function.params.size()) {
    const auto name_of = [](const Param& p) { return std::visit([](const auto& x) { return x->name; }, p); };
    const std::string names = join(function.params, ", ", name_of);
    std::vector<std::string> fixes;
    if (args.size() < function.params.size()) {
      const auto quoted_name = [&](const Param& p) { return fmt::format("'{}'", name_of(p)); };
      const std::string missing = join(std::span(function.params).subspan(args.size()), ", ", quoted_name);
      fixes.push_back(fmt::format("give {} as well; its parameters are: {}", missing, names));
    }
    throw UserError(Code::CallArgumentCount, {},
                    {{"kernel", function.name},
                     {"expected", static_cast<int64_t>(function.params.size())},
                     {"given", static_cast<int64_t>(args.size())},
                     {"names", names}},
                    {}, std::move(fixes));
  }
  arrays_.reserve(args.size());
  tensors_.reserve(args.size());
  ask_libraries();
  read_in_place();
  if (deferred_.empty()) return;
  read_deferred();
  arrays_.clear();
  tensors_.clear();
  scalars_.clear();
  managed_.clear();
  ask_libraries();
  read_in_place();
}

void CallArguments::ask_libraries() {
  const std::vector<Param>& params = kernel_.function()->params;
  torch_written_ = {};
  size_t tensor = 0;
  for (size_t i = 0; i < params.size(); ++i) {
    const BufferRef* buffer = std::get_if<BufferRef>(&params[i]);
    if (buffer == nullptr) continue;
    const bool written = kernel_.written()[tensor++];
    const py::handle value = PyTuple_GET_ITEM(args_.ptr(), static_cast<py::ssize_t>(i));
    const ExchangeType& type = exchange_of(Py_TYPE(value.ptr()));
    if (type.api != nullptr && !type.borrows) {
      runtime::DLManagedTensorVersioned* managed = nullptr;
      if (type.api->managed_tensor_from_py_object_no_sync(value.ptr(), &managed) != 0) not_exchanged(**buffer, value);
      managed_.push_back({i, std::unique_ptr<runtime::DLManagedTensorVersioned, Release>(managed)});
    }
    if (!type.is_torch) continue;
    check_torch_tensor((*buffer)->name, value, written);
    if (!written) continue;
    if (!torch_written_) torch_written_ = py::list();
    if (PyList_Append(torch_written_.ptr(), value.ptr()) != 0) throw py::error_already_set();
  }
}

void CallArguments::read_in_place() {
  const std::vector<Param>& params = kernel_.function()->params;
  const bool again = !deferred_.empty();
  auto managed = managed_.begin();
  for (size_t i = 0; i < params.size(); ++i) {
    const py::handle value = PyTuple_GET_ITEM(args_.ptr(), static_cast<py::ssize_t>(i));
    if (const BufferRef* buffer = std::get_if<BufferRef>(&params[i])) {
      if (again && exported_[i]) {
        tensors_.push_back(exported_[i]->tensor);
      } else if (managed != managed_.end() && managed->argument == i) {
        add_managed(value, *(managed++)->tensor);
      } else if (!add_tensor(**buffer, value)) {
        if (again) not_an_array(**buffer, value, "it changed while the arguments were read");
        deferred_.push_back(i);
        tensors_.push_back({});
      }
    } else if (again && read_[i]) {
      scalars_.push_back(*read_[i]);
    } else if (may_run_python(value)) {
      deferred_.push_back(i);
    } else {
      scalars_.push_back(read_scalar(*std::get<VarRef>(params[i]), value));
    }
  }
}

void CallArguments::read_deferred() {
  const std::vector<Param>& params = kernel_.function()->params;
  exported_.resize(params.size());
  read_.resize(params.size());
  for (const size_t i : deferred_) {
    const py::handle value = PyTuple_GET_ITEM(args_.ptr(), static_cast<py::ssize_t>(i));
    if (const BufferRef* buffer = std::get_if<BufferRef>(&params[i])) {
      exported_[i] = read_dlpack(**buffer, value);
    } else {
      read_[i] = read_scalar(*std::get<VarRef>(params[i]), value);
    }
  }
}

bool CallArguments::add_tensor(const Buffer& parameter, py::handle value) {
  const ExchangeType& type = exchange_of(Py_TYPE(value.ptr()));
  return add_borrowed(parameter, value, type) || add_numpy(parameter, value, type);
}

void CallArguments::count_writes() const {
  if (torch_written_) count_torch_writes(torch_written_);
}

bool CallArguments::add_borrowed(const Buffer& parameter, py::handle value, const ExchangeType& type) {
  if (!type.borrows) return false;
  Array& out = arrays_.emplace_back();
  if (type.api->dltensor_from_py_object_no_sync(value.ptr(), &out.tensor) != 0) not_exchanged(parameter, value);
  tensors_.push_back({&out.tensor, false});
  find_stream(type, out.tensor.device);
  return true;
}

void CallArguments::add_managed(py::handle value, const runtime::DLManagedTensorVersioned& managed) {
  tensors_.push_back({&managed.dl_tensor, (managed.flags & runtime::DLPACK_FLAG_BITMASK_READ_ONLY) != 0});
  find_stream(exchange_of(Py_TYPE(value.ptr())), managed.dl_tensor.device);
}

void CallArguments::find_stream(const ExchangeType& type, runtime::DLDevice device) {
  if (stream_ || device.device_type != runtime::kDLCUDA) return;
  if (type.api == nullptr || type.api->current_work_stream == nullptr) return;
  void* stream = nullptr;
  if (type.api->current_work_stream(device.device_type, device.device_id, &stream) != 0) throw py::error_already_set();
  stream_ = stream;
}

bool CallArguments::add_numpy(const Buffer& parameter, py::handle value, const ExchangeType& type) {
  if (!py::isinstance<py::array>(value)) return false;
  if (type.is_masked) {
    throw UserError(Code::NotAnArray, {},
                    {{"parameter", parameter.name},
                     {"given", kind_of(value)},
                     {"reason", std::string("a kernel would ignore its mask")}},
                    {}, {"pass x.filled(value), with a value for what is masked, or x.data, without the mask"});
  }
  const auto array = py::reinterpret_borrow<py::array>(value);
  const std::optional<DLDataType> dtype = numpy_dtype(array.dtype());
  if (!dtype) {
    not_an_array(parameter, value, fmt::format("its dtype {} has no counterpart", text_of(array.dtype(), "")));
  }
  const auto rank = static_cast<size_t>(array.ndim());
  const int64_t item = array.itemsize();
  Array& out = arrays_.emplace_back();
  out.extents.resize(2 * rank);
  for (size_t d = 0; d < rank; ++d) {
    const auto dim = static_cast<py::ssize_t>(d);
    out.extents[d] = array.shape(dim);
    const int64_t stride = array.strides(dim);
    if (stride % item != 0 && array.shape(dim) > 1) {
      throw UserError(Code::ArgumentStrides, {},
                      {{"parameter", parameter.name},
                       {"expected", "of whole elements"},
                       {"given", fmt::format("a step of {} bytes", stride)}});
    }
    out.extents[rank + d] = stride / item;
  }
  out.tensor = {};
  out.tensor.data = const_cast<void*>(array.data());
  out.tensor.device = {runtime::kDLCPU, 0};
  out.tensor.ndim = static_cast<int32_t>(rank);
  out.tensor.dtype = *dtype;
  out.tensor.shape = out.extents.data();
  out.tensor.strides = out.extents.data() + rank;
  tensors_.push_back({&out.tensor, !array.writeable()});
  return true;
}

namespace {

/// The type of the device that the array names; 0 where it names none.
int device_type_of(const Buffer& parameter, py::handle value) {
  if (!py::hasattr(value, "__dlpack_device__")) return 0;
  const py::object device = value.attr("__dlpack_device__")();
  int type = 0;
  int number = 0;
  if (!PyTuple_Check(device.ptr()) || !PyArg_ParseTuple(device.ptr(), "ii", &type, &number)) {
    PyErr_Clear();
    not_an_array(parameter, value, "its __dlpack_device__ gives no pair of integers");
  }
  return type;
}

/// `read()`, with what Python code of the array raises as the reason why it is none for helve.
template <class F>
auto or_not_an_array(const Buffer& parameter, py::handle value, F&& read) {
  try {
    return read();
  } catch (py::error_already_set& error) {
    error.restore();
  }
  not_exchanged(parameter, value);
}

}  // namespace

CallArguments::Exported CallArguments::read_dlpack(const Buffer& parameter, py::handle value) {
  return or_not_an_array(parameter, value, [&]() -> Exported {
    if (!py::hasattr(value, "__dlpack__")) not_an_array(parameter, value, "it has no __dlpack__");
    // The exporter of an array on a CUDA device makes it ready on the stream that it is told: 1 is the legacy default.
    py::dict asked;
    if (device_type_of(parameter, value) == runtime::kDLCUDA) {
      if (!stream_) stream_ = current_stream_of(value);
      asked["stream"] = *stream_ == nullptr ? 1 : reinterpret_cast<uintptr_t>(*stream_);
    }
    const py::object capsule = capsule_of(value, asked);
    if (PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned")) {
      const auto* managed =
          static_cast<runtime::DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule.ptr(), "dltensor_versioned"));
      if (managed->version.major != runtime::DLPACK_MAJOR_VERSION)
        not_an_array(parameter, value, "its DLPack capsule is of another major version");
      const bool read_only = (managed->flags & runtime::DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
      auto memory = taken<runtime::DLManagedTensorVersioned>(capsule, "dltensor_versioned", "used_dltensor_versioned");
      return {{&memory->dl_tensor, read_only}, std::move(memory)};
    }
    if (!PyCapsule_IsValid(capsule.ptr(), "dltensor"))
      not_an_array(parameter, value, "its DLPack capsule is of an unknown kind");
    auto memory = taken<runtime::DLManagedTensor>(capsule, "dltensor", "used_dltensor");
    return {{&memory->dl_tensor, false}, std::move(memory)};
  });
}

}  // namespace helve::python
