// The parts of helve._core.
// Every part is one function, so that module.cc is the table of contents and files compile side by side.
#pragma once

#include <pybind11/pybind11.h>

#include <utility>

#include "helve/layout/layout.h"

namespace helve::python {

/// A member function for Python. It takes its object by reference, which pybind11 checks; by pointer, as the plain
/// member would, `Class.name(None)` is a call on nothing.
template <class R, class C, class... A>
auto method(R (C::*member)(A...) const) {
  return [member](const C& self, A... args) -> R { return (self.*member)(std::forward<A>(args)...); };
}

/// `diagnostic_rows()`, `Span`, `Diagnostic`, and the translation of C++ exceptions.
void bind_diagnostics(pybind11::module_& module);

/// The operators, tile operations and dtypes as data.
void bind_tables(pybind11::module_& module);

/// `helve.layout`: axes, layouts and their algebra.
void bind_axe(pybind11::module_& module);
/// helve.dist: redistributions.
void bind_plan(pybind11::module_& module);
/// helve.dist: the processes of a mesh.
void bind_processes(pybind11::module_& module);
/// helve.dist: the GPUs of the processes of a mesh; after bind_processes.
void bind_nccl(pybind11::module_& module);
void bind_axe_algebra(pybind11::module_& module, pybind11::class_<Layout>& layout);
void bind_axe_bridges(pybind11::module_& module, pybind11::class_<Layout>& layout);

/// Expression nodes and their builders.
void bind_expr(pybind11::module_& module);

/// Buffers, regions, statements and their builders.
void bind_stmt(pybind11::module_& module);

/// Meshes, functions, structural equality and the verifier.
void bind_function(pybind11::module_& module);

/// Index notation: expressions, statements, `einsum`.
void bind_notation(pybind11::module_& module);

/// Schedules: versions, cursors and steps.
void bind_schedule(pybind11::module_& module);

/// Compiling, calling, and the thread pool.
void bind_driver(pybind11::module_& module);

/// `cuda_source`: the code generator of CUDA C by itself.
void bind_cuda(pybind11::module_& module);
void bind_machine(pybind11::module_& module);

/// `helve.cute`: the classes here, the functions in the submodule `cute`.
void bind_cute(pybind11::module_& module);
void bind_cute_algebra(pybind11::module_& module);

}  // namespace helve::python
