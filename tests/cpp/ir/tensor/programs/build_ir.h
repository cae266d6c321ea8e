// Short spellings for IR built by hand in tests.
// Tests of several rooms build the same kinds of programs; the noise of construction is taken out once.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve::testing {

inline Expr idx(int64_t v) { return int_imm(v); }
inline Expr f32(double v) { return float_imm(v, kFloat32); }

inline std::vector<Expr> extents(const std::vector<int64_t>& shape) {
  std::vector<Expr> out;
  for (int64_t e : shape) out.push_back(int_imm(e));
  return out;
}

inline BufferRef param(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  return make_buffer(name, dtype, MemoryScope::Param, extents(shape));
}

inline BufferRef shared(const std::string& name, DType dtype, const std::vector<int64_t>& shape,
                        std::vector<int64_t> tile = {}) {
  return make_buffer(name, dtype, MemoryScope::Shared, extents(shape), std::move(tile));
}

/// The region with these (begin, extent) pairs; an extent of -1 is a point.
inline Region box(BufferRef buffer, const std::vector<std::pair<Expr, int64_t>>& ranges) {
  Region r{std::move(buffer), {}};
  for (const auto& [begin, extent] : ranges) {
    r.ranges.push_back({begin, int_imm(extent < 0 ? 1 : extent), extent < 0});
  }
  return r;
}

inline FunctionRef function(std::string name, std::vector<Param> params, Stmt body) {
  Ref<Function> f = make_ref<Function>();
  f->name = std::move(name);
  f->params = std::move(params);
  f->body = std::move(body);
  return FunctionRef(f);
}

inline FunctionRef dynamic_function(std::string name, std::vector<VarRef> dims, std::vector<Param> params, Stmt body) {
  Ref<Function> f = make_ref<Function>();
  f->name = std::move(name);
  f->dims = std::move(dims);
  f->params = std::move(params);
  f->body = std::move(body);
  return FunctionRef(f);
}

inline FunctionRef mesh_function(std::string name, MeshShape mesh, std::vector<MeshTensor> tensors,
                                 std::vector<Param> params, Stmt body) {
  Ref<Function> f = make_ref<Function>();
  f->name = std::move(name);
  f->mesh = std::move(mesh);
  f->mesh_tensors = std::move(tensors);
  f->params = std::move(params);
  f->body = std::move(body);
  return FunctionRef(f);
}

inline MeshShape mesh_xy(int64_t rows, int64_t cols) { return {{rows, cols}, {"x", "y"}}; }

/// A kernel of one block around `body`.
inline Stmt one_block(std::vector<Stmt> body) {
  return kernel({make_var("bx")}, {int_imm(1)}, 128, seq(std::move(body)));
}

/// A serial loop of `extent` over `var` from 0.
inline Stmt serial(const VarRef& var, Expr extent, std::vector<Stmt> body) {
  return for_loop(LoopKind::Serial, var, std::move(extent), seq(std::move(body)));
}

}  // namespace helve::testing
