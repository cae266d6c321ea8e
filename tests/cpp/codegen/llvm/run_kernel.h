// Compiling one kernel and calling its entry as the runtime does.
// Tests state buffers and scalars by the objects of the IR; the order of the entry's arguments is looked up here.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "helve/analysis/kernel_interface.h"
#include "helve/codegen/llvm/cpu_module.h"
#include "helve/ir/expr/rounding.h"
#include "helve/support/diagnostic.h"

namespace helve::testing {

inline BufferRef param(const char* name, DType t, std::vector<Expr> shape, std::vector<Expr> strides = {}) {
  return make_buffer(name, t, MemoryScope::Param, std::move(shape), {}, std::move(strides));
}
inline BufferRef local(const char* name, DType t, std::vector<int64_t> shape, MemoryScope scope = MemoryScope::Local) {
  std::vector<Expr> extents;
  for (int64_t e : shape) extents.push_back(int_imm(e));
  return make_buffer(name, t, scope, std::move(extents));
}
inline Expr idx(int64_t v) { return int_imm(v); }
inline Ref<const Kernel> as_kernel(const Stmt& s) { return Ref<const Kernel>(as<Kernel>(s)); }
/// A kernel of one block.
inline Stmt single(Stmt body) { return kernel({make_var("b")}, {idx(1)}, 128, std::move(body)); }

struct Arguments {
  std::map<const Buffer*, void*> buffers;
  std::map<const Var*, int64_t> scalars;
  std::vector<int64_t> instance_strides;
  int64_t begin = 0;
  int64_t end = 1;
};

inline void call(const CpuKernel& compiled, const Kernel& kernel, const Arguments& arguments) {
  const KernelInterface interface = kernel_interface(kernel);
  std::vector<void*> buffers;
  for (const BufferRef& b : interface.buffers) buffers.push_back(arguments.buffers.at(b.get()));
  std::vector<int64_t> scalars;
  for (const VarRef& v : interface.scalars) scalars.push_back(arguments.scalars.at(v.get()));
  scalars.insert(scalars.end(), arguments.instance_strides.begin(), arguments.instance_strides.end());
  const size_t bytes = static_cast<size_t>(compiled.scratch_bytes + 4095) / 4096 * 4096;
  std::unique_ptr<void, decltype(&std::free)> scratch(bytes ? std::aligned_alloc(4096, bytes) : nullptr, &std::free);
  if (bytes) std::memset(scratch.get(), 0xAB, bytes);
  compiled.entry(buffers.data(), scalars.data(), arguments.begin, arguments.end,
                 static_cast<std::byte*>(scratch.get()));
}

/// Compiles and calls; returns the module for further looks.
inline std::shared_ptr<CpuModule> run(const Stmt& s, const Arguments& arguments, bool mesh = false,
                                      CpuOptions options = {}) {
  const std::optional<MeshShape> cores = mesh ? std::optional(MeshShape{{1}, {"x"}}) : std::nullopt;
  auto module = compile_cpu({{"test", as_kernel(s), cores}}, options);
  call(module->kernels()[0], *as<Kernel>(s), arguments);
  return module;
}

/// Elements of any dtype in memory, read and written as double or int64.
class Cells {
 public:
  Cells(DType t, size_t count) : dtype_(t), bytes_(static_cast<size_t>(t.bytes())), memory_(count * bytes_ + 64) {}
  void* data() { return memory_.data(); }
  void set_bits(size_t i, uint64_t bits) { std::memcpy(&memory_[i * bytes_], &bits, bytes_); }
  uint64_t bits(size_t i) const {
    uint64_t out = 0;
    std::memcpy(&out, &memory_[i * bytes_], bytes_);
    return out;
  }
  void set(size_t i, double v) { set_bits(i, float_bits(v, dtype_)); }
  double real(size_t i) const { return float_value(bits(i), dtype_); }
  int64_t integer(size_t i) const { return wrap_to(static_cast<int64_t>(bits(i)), dtype_); }

 private:
  DType dtype_;
  size_t bytes_;
  std::vector<unsigned char> memory_;
};

}  // namespace helve::testing
