// Arrays as arguments of interpreted programs.
// Tests hold plain vectors; what they pass on is made here.
#pragma once

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "helve/interp/interp.h"
#include "helve/support/diagnostic.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {

using interp::Arg;
using interp::ScalarArg;
using interp::TensorArg;

template <class T>
Arg tensor(std::vector<T>& data, std::vector<int64_t> shape) {
  return TensorArg{data.data(), std::move(shape), {}};
}

inline Arg scalar(int64_t v) { return ScalarArg{v}; }
inline Arg scalar(double v) { return ScalarArg{v}; }

/// Small integers as T: sums and products of a few hundred are exact in float32.
template <class T>
std::vector<T> small_numbers(size_t n, unsigned seed, int low = -4, int high = 4) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> pick(low, high);
  std::vector<T> out(n);
  for (T& v : out) v = static_cast<T>(pick(random));
  return out;
}

/// The text of the UserError that `f` throws on `args`.
inline std::string error_text(const FunctionRef& f, const std::vector<Arg>& args) {
  try {
    interp::run(f, args);
  } catch (const UserError& e) {
    return e.what();
  }
  return "no error";
}

/// Runs `f` and gives back `n` elements of its only parameter, which start as zero.
template <class T>
std::vector<T> output_of(const FunctionRef& f, const std::vector<int64_t>& shape) {
  size_t n = 1;
  for (int64_t e : shape) n *= static_cast<size_t>(e);
  std::vector<T> out(n);
  interp::run(f, {tensor(out, shape)});
  return out;
}

/// The value of a scalar expression, in memory as T.
template <class T>
T value_of(const Expr& e) {
  const BufferRef out = param("out", e->dtype, {1});
  return output_of<T>(function("main", {out}, one_block({store(out, {idx(0)}, e)})), {1})[0];
}

}  // namespace helve::testing
