// Element types of NumPy's arrays.
// NumPy's own are told by kind and size, those of ml_dtypes by name: it names them as DLPack does.
#include "numpy_dtypes.h"

#include <string>

#include "helve/codegen/host/host_module.h"
#include "helve/ir/expr/dtype.h"

namespace helve::python {

namespace py = pybind11;
using runtime::DLDataType;

std::optional<DLDataType> numpy_dtype(const py::dtype& dtype) {
  if (!dtype.attr("isnative").cast<bool>()) return std::nullopt;
  const auto bits = static_cast<uint8_t>(dtype.itemsize() * 8);
  switch (dtype.kind()) {
    case 'f':
      if (bits == 8) break;  // float8_e5m2 is of kind 'f', the other small types of ml_dtypes are not
      return DLDataType{runtime::kDLFloat, bits, 1};
    case 'i': return DLDataType{runtime::kDLInt, bits, 1};
    case 'u': return DLDataType{runtime::kDLUInt, bits, 1};
    case 'b': return DLDataType{runtime::kDLBool, 8, 1};
    default: break;
  }
  // ml_dtypes names the types as DLPack does: its float8_e4m3 has infinities and is not the language's.
  std::string name = py::str(dtype.attr("name"));
  if (name == "float8_e4m3") return DLDataType{runtime::kDLFloat8_e4m3, 8, 1};
  if (name == "float8_e4m3fn") name = "float8_e4m3";
  const std::optional<DType> known = parse_dtype(name);
  if (known && known->bits == bits) return to_dlpack(*known);
  return std::nullopt;
}

}  // namespace helve::python
