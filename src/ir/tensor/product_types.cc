// The types that tensor cores multiply, from their table.
// Verifier, schedules and code generation read the same rows, so that none takes a type that another one lacks.
#include "helve/ir/tensor/product_types.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "helve/support/text.h"

namespace helve {

namespace {

const ProductTypes kRows[] = {
#define HELVE_PRODUCT_TYPE(factor, sum, name, sum_name, by_warps, by_groups) \
  {factor, sum, name, sum_name, by_warps, by_groups},
#include "helve/ir/tensor/product_types.inc"
#undef HELVE_PRODUCT_TYPE
};

}  // namespace

const ProductTypes* product_types(DType factor) {
  const auto row =
      std::find_if(std::begin(kRows), std::end(kRows), [&](const ProductTypes& each) { return each.factor == factor; });
  return row == std::end(kRows) ? nullptr : row;
}

std::string factor_types(bool by_groups) {
  std::vector<std::string> names;
  for (const ProductTypes& row : kRows) {
    if (by_groups ? row.by_groups : row.by_warps) names.push_back(to_string(row.factor));
  }
  const std::string last = names.back();
  names.pop_back();
  return join(names, ", ", [](const std::string& name) { return name; }) + " or " + last;
}

}  // namespace helve
