// How values of the IR cross into Python.
// Element types and small enumerations are strings there, nodes are counted references; every binding file sees the
// same casters.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <string_view>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/expr.h"
#include "helve/ir/tensor/stmt.h"

namespace pybind11::detail {

template <class T>
struct always_construct_holder<helve::Ref<T>> : always_construct_holder_value<true> {};

/// A node is never None: pybind11 would make a null reference of it, and no function of the core takes one. What may be
/// absent is a std::optional of a node.
template <class T>
class type_caster<helve::Ref<T>> : public type_caster_holder<T, helve::Ref<T>> {
 public:
  bool load(handle source, bool convert) {
    return !source.is_none() && type_caster_holder<T, helve::Ref<T>>::load(source, convert);
  }
};

/// A number is what it is: pybind11 would take None and 2.5 of NumPy for a bool, since both have a truth, and an
/// integer of more than 64 bits for the float that is nearest.
template <>
struct type_caster<helve::Operand> : variant_caster<helve::Operand> {
  bool load(handle source, bool) {
    PyObject* const object = source.ptr();
    if (load_as<helve::Expr>(source, false) || load_as<bool>(source, false)) return true;
    if (PyIndex_Check(object) != 0 && load_as<int64_t>(source, true)) return true;
    if (PyLong_Check(object) != 0) refuse(source);
    const bool real = Py_TYPE(object)->tp_as_number != nullptr && Py_TYPE(object)->tp_as_number->nb_float != nullptr;
    return real && load_as<double>(source, true);
  }

 private:
  [[noreturn]] static void refuse(handle integer) {
    throw helve::UserError(helve::Code::WrongType, {},
                           {{"what", "an integer of " + std::string(str(integer.attr("bit_length")())) + " bits"},
                            {"given", "out of range"},
                            {"expected", "index"}},
                           {}, {"integers have 64 bits at most"});
  }

  template <class T>
  bool load_as(handle source, bool convert) {
    make_caster<T> caster;
    if (!caster.load(source, convert)) return false;
    value = cast_op<T>(caster);
    return true;
  }
};

}  // namespace pybind11::detail

namespace helve::python {

/// The enumerator whose name is `text`, among the first `count` of the enumeration.
template <class E>
std::optional<E> parse_enum(std::string_view text, int count) {
  for (int i = 0; i < count; ++i) {
    if (to_string(static_cast<E>(i)) == text) return static_cast<E>(i);
  }
  return std::nullopt;
}

inline std::optional<MemoryScope> parse_scope(std::string_view text) { return parse_enum<MemoryScope>(text, 5); }
inline std::optional<LoopKind> parse_loop(std::string_view text) { return parse_enum<LoopKind>(text, 7); }
inline std::optional<StoreMode> parse_store_mode(std::string_view text) {
  return parse_enum<StoreMode>(text, kStoreModes);
}
inline std::optional<ArrayPlace> parse_array_place(std::string_view text) {
  return parse_enum<ArrayPlace>(text, kArrayPlaces);
}

}  // namespace helve::python

// A value that is a string in Python: `parse` gives an optional, `text` a string.
#define HELVE_TEXT_CASTER(type, parse, text)                                     \
  template <>                                                                    \
  struct pybind11::detail::type_caster<type> {                                   \
    PYBIND11_TYPE_CASTER(type, const_name("str"));                               \
    bool load(handle source, bool) {                                             \
      if (!isinstance<str>(source)) return false;                                \
      make_caster<std::string> name;                                             \
      if (!name.load(source, false)) return false; /* a lone surrogate */        \
      auto found = parse(cast_op<const std::string&>(name));                     \
      if (!found) return false;                                                  \
      value = *found;                                                            \
      return true;                                                               \
    }                                                                            \
    static handle cast(const type& source, return_value_policy, handle) {        \
      return pybind11::str(std::string(text(source))).release();                 \
    }                                                                            \
  }

HELVE_TEXT_CASTER(helve::DType, helve::parse_dtype, helve::to_string);
HELVE_TEXT_CASTER(helve::MemoryScope, helve::python::parse_scope, helve::to_string);
HELVE_TEXT_CASTER(helve::ArrayPlace, helve::python::parse_array_place, helve::to_string);
HELVE_TEXT_CASTER(helve::LoopKind, helve::python::parse_loop, helve::to_string);
HELVE_TEXT_CASTER(helve::StoreMode, helve::python::parse_store_mode, helve::to_string);
HELVE_TEXT_CASTER(helve::Op, helve::parse_op, [](helve::Op op) { return helve::row_of(op).name; });
HELVE_TEXT_CASTER(helve::TileOpcode, [](const std::string& name) {
  std::optional<helve::TileOpcode> found;
  for (const helve::TileOpRow& row : helve::tile_op_rows()) {
    if (row.name == name) found = row.op;
  }
  return found;
}, [](helve::TileOpcode op) { return helve::row_of(op).name; });

namespace helve::python {

/// Makes node `N` a Python class below `Base` whose read-only properties are the declared fields.
template <class N, class Base>
pybind11::class_<N, Base, Ref<N>> bind_node(pybind11::module_& module, const char* name, const char* documentation) {
  pybind11::class_<N, Base, Ref<N>> node(module, name, documentation);
  pybind11::list names;
  for_each_field<N>([&](const auto& each) {
    node.def_property_readonly(each.name, [member = each.member](const N& self) { return self.*member; });
    names.append(each.name);
  });
  node.attr("fields") = pybind11::tuple(names);
  return node;
}

}  // namespace helve::python
