// Checks of a call's arguments.
// Codes are those of a compiled kernel's call, so the interpreter refuses what a kernel would refuse.
#include "arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "expr_code.h"
#include "helve/ir/expr/multiprocessors.h"
#include "helve/ir/expr/rounding.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/support/sorted.h"
#include "helve/support/strided_box.h"
#include "helve/support/text.h"

namespace helve::interp {

namespace {

std::string_view name_of(const Param& param) {
  return std::visit([](const auto& p) { return std::string_view(p->name); }, param);
}

bool is_tensor(const Param& param) { return std::holds_alternative<BufferRef>(param); }
bool is_tensor(const Arg& arg) { return std::holds_alternative<TensorArg>(arg); }

template <class List>
int64_t count_tensors(const List& list) {
  return std::count_if(list.begin(), list.end(), [](const auto& item) { return is_tensor(item); });
}

std::string parameter_names(const Function& f, bool tensors) {
  std::vector<std::string> names;
  for (const Param& p : f.params) {
    if (is_tensor(p) == tensors) names.emplace_back(name_of(p));
  }
  return names.empty() ? "none" : join(names, ", ", [](const std::string& n) { return n; });
}

void check_counts(const Function& f, const std::vector<Arg>& args) {
  const int64_t tensors = count_tensors(f.params);
  const int64_t scalars = static_cast<int64_t>(f.params.size()) - tensors;
  const int64_t given = count_tensors(args);
  const int64_t given_scalars = static_cast<int64_t>(args.size()) - given;
  const auto refuse = [&](Code code, int64_t expected, int64_t found, bool of_tensors) {
    throw UserError(
        code, {},
        {{"kernel", f.name}, {"expected", expected}, {"given", found}, {"parameters", parameter_names(f, of_tensors)}});
  };
  if (given != tensors) refuse(Code::ArgumentCount, tensors, given, true);
  if (given_scalars != scalars) refuse(Code::ScalarArgumentCount, scalars, given_scalars, false);
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_tensor(args[i]) == is_tensor(f.params[i])) continue;
    const char* given_kind = is_tensor(args[i]) ? "a tensor" : "a scalar";
    const char* expected_kind = is_tensor(args[i]) ? "a scalar" : "a tensor";
    throw UserError(Code::BadArgument, {},
                    {{"function", f.name},
                     {"value", given_kind},
                     {"parameter", std::string(name_of(f.params[i]))},
                     {"reason", fmt::format("it is {}", expected_kind)},
                     {"remedy", "pass the arguments in the order of the parameters"}});
  }
}

Scalar scalar_value(const Var& param, const ScalarArg& arg) {
  const double* fraction = std::get_if<double>(&arg.value);
  if (param.dtype.is_float()) {
    const auto rounded = [&](auto number) {
      if constexpr (std::is_integral_v<decltype(number)>)
        return float_of(number, param.dtype);
      else
        return round_to(number, param.dtype);
    };
    return of_float(std::visit(rounded, arg.value));
  }
  if (fraction) {
    throw UserError(
        Code::ScalarArgumentType, {},
        {{"parameter", param.name}, {"expected", to_string(param.dtype)}, {"given", float_text(*fraction)}});
  }
  const uint64_t* large = std::get_if<uint64_t>(&arg.value);
  if (large && is_uint64(param.dtype)) return of_int(static_cast<int64_t>(*large));
  const int64_t v = large ? 0 : std::get<int64_t>(arg.value);
  const bool fits = large                    ? false
                    : is_uint64(param.dtype) ? v >= 0
                    : param.dtype.is_bool()  ? v == 0 || v == 1
                                             : wrap_to(v, param.dtype) == v;
  if (!fits) {
    const std::string high =
        is_uint64(param.dtype) ? "18446744073709551615" : fmt::format("{}", extreme_int(param.dtype, false));
    throw UserError(Code::ScalarArgumentRange, {},
                    {{"parameter", param.name},
                     {"expected", to_string(param.dtype)},
                     {"given", large ? fmt::format("{}", *large) : fmt::format("{}", v)},
                     {"low", extreme_int(param.dtype, true)},
                     {"high", high}});
  }
  return of_int(v);
}

void check_extents(const Buffer& param, const TensorArg& arg) {
  if (arg.shape.size() != param.rank()) {
    throw UserError(Code::ArgumentRank, {},
                    {{"parameter", param.name},
                     {"expected", static_cast<int64_t>(param.rank())},
                     {"given", static_cast<int64_t>(arg.shape.size())}});
  }
  for (size_t d = 0; d < arg.shape.size(); ++d) {
    if (arg.shape[d] >= 0) continue;
    throw UserError(Code::NegativeArgumentExtent, {},
                    {{"dim", static_cast<int64_t>(d)}, {"parameter", param.name}, {"given", arg.shape[d]}});
  }
}

/// Strides of dimensions with one element, or of an empty tensor, are never used.
bool same_strides(const std::vector<int64_t>& shape, const std::vector<int64_t>& a, const std::vector<int64_t>& b) {
  if (a.size() != b.size()) return false;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] != 1 && a[d] != b[d]) return false;
  }
  return true;
}

}  // namespace

Arguments::Arguments(const FunctionRef& f, const std::vector<Arg>& args, Scope& scope) : function_(f), scope_(scope) {
  check_counts(*f, args);
  bind_scalars(args);
  bind_dims(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!is_tensor(args[i])) continue;
    const std::vector<size_t>& fresh = scope.options().new_arrays;
    check_tensor(std::get<BufferRef>(f->params[i]), std::get<TensorArg>(args[i]),
                 std::find(fresh.begin(), fresh.end(), i) != fresh.end());
  }
  for (const Assumption& each : f->assumptions) check_assumption(each);
}

void Arguments::check_assumption(const Assumption& assumption) {
  Frame frame = scope_.make_frame(0);
  for (const auto& [slot, value] : scalars_) frame.vars[slot] = value;
  if (prepare(assumption.condition, scope_)->eval(frame).i != 0) return;
  std::unordered_set<const Var*> seen;
  std::vector<std::string> values;
  walk(assumption.condition, [&](const Expr& e) {
    const Var* var = as<Var>(e);
    if (var && seen.insert(var).second) {
      values.push_back(fmt::format("{}={}", var->name, prepare(e, scope_)->eval(frame).i));
    }
  });
  throw UserError(Code::CallCondition, {},
                  {{"kernel", function_->name},
                   {"condition", to_text(assumption.condition)},
                   {"values", join(values, ", ", [](const std::string& each) { return each; })}});
}

void Arguments::bind_scalars(const std::vector<Arg>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (is_tensor(args[i])) continue;
    const Var& var = *std::get<VarRef>(function_->params[i]);
    scalars_.emplace_back(scope_.slot(var), scalar_value(var, std::get<ScalarArg>(args[i])));
  }
}

void Arguments::bind_dims(const std::vector<Arg>& args) {
  std::unordered_map<const ExprNode*, std::pair<int64_t, std::string>> bound;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!is_tensor(args[i])) continue;
    const Buffer& param = *std::get<BufferRef>(function_->params[i]);
    const TensorArg& arg = std::get<TensorArg>(args[i]);
    check_extents(param, arg);
    for (size_t d = 0; d < arg.shape.size(); ++d) {
      const Expr& extent = param.shape[d];
      const auto is_extent = [&](const VarRef& v) { return v.get() == extent.get() && !is_multiprocessors(*v); };
      if (std::none_of(function_->dims.begin(), function_->dims.end(), is_extent)) continue;
      const auto [at, fresh] = bound.try_emplace(extent.get(), arg.shape[d], param.name);
      const Var& var = static_cast<const Var&>(*extent);
      if (fresh) scalars_.emplace_back(scope_.slot(var), of_int(arg.shape[d]));
      if (at->second.first == arg.shape[d]) continue;
      throw UserError(Code::InconsistentExtent, {},
                      {{"dim", static_cast<int64_t>(d)},
                       {"parameter", param.name},
                       {"variable", var.name},
                       {"origin", "'" + at->second.second + "'"},
                       {"expected", at->second.first},
                       {"given", arg.shape[d]}});
    }
  }
  for (const VarRef& dim : function_->dims) {
    if (is_multiprocessors(*dim)) {
      scalars_.emplace_back(scope_.slot(*dim), of_int(kInterpretedMultiprocessors));
      continue;
    }
    if (!bound.contains(dim.get())) throw UserError(Code::UnboundExtent, dim->span, {{"variable", dim->name}});
  }
}

void Arguments::check_tensor(const BufferRef& param, const TensorArg& arg, bool fresh) {
  Frame frame = scope_.make_frame(0);
  for (const auto& [slot, value] : scalars_) frame.vars[slot] = value;
  const std::vector<int64_t> shape = eval_all(prepare(param->shape, scope_), frame);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == arg.shape[d]) continue;
    throw UserError(Code::ArgumentShape, {},
                    {{"dim", static_cast<int64_t>(d)},
                     {"parameter", param->name},
                     {"expected", shape[d]},
                     {"given", arg.shape[d]},
                     {"shape", shape_text(shape)}});
  }
  const std::vector<int64_t> expected =
      param->strides.empty() ? compact_strides(shape) : eval_all(prepare(param->strides, scope_), frame);
  const std::vector<int64_t> given = arg.strides.empty() ? compact_strides(shape) : arg.strides;
  if (!same_strides(shape, expected, given)) {
    std::vector<std::string> fixes;
    if (!param->strides.empty()) fixes.push_back(strides_remedy(expected, given));
    throw UserError(Code::ArgumentStrides, {},
                    {{"parameter", param->name}, {"expected", shape_text(expected)}, {"given", shape_text(given)}}, {},
                    std::move(fixes));
  }
  int64_t elements = 1;
  for (int64_t extent : shape) elements *= extent;
  if (elements > 0 && !arg.data) {
    throw UserError(Code::MissingData, {}, {{"parameter", param->name}, {"elements", elements}});
  }
  if (param->sorted && elements > 0) {
    const DType dtype = param->dtype;
    const std::optional<int64_t> less =
        first_decrease(arg.data, shape[0], expected[0], dtype.bits / 8, dtype.code == TypeCode::Int);
    if (less) throw UserError(Code::UnsortedArgument, {}, {{"parameter", param->name}, {"index", *less}});
  }
  auto instance = std::make_unique<Instance>(param);
  instance->refer(arg.data, shape, expected, fresh);
  tensors_.emplace_back(scope_.slot(*param), std::move(instance));
}

void Arguments::check_written() const {
  for (const auto& [slot, instance] : tensors_) {
    if (!instance->is_fresh()) continue;
    const auto left = instance->unwritten();
    if (!left) continue;
    int64_t elements = 1;
    for (size_t d = 0; d < instance->rank(); ++d) elements *= instance->extent(d);
    const Buffer& declared = instance->declaration();
    const auto [first, count] = *left;
    const std::string what = count == elements ? "none of its elements is written"
                                               : fmt::format("{} of its {} elements {} not written", count, elements,
                                                             count == 1 ? "is" : "are");
    throw UserError(Code::UnwrittenOutput, declared.span,
                    {{"element", shape_text(instance->element_at(first))}, {"buffer", declared.name}}, {{{}, what}});
  }
}

void Arguments::enter(Frame& frame) const {
  for (const auto& [slot, value] : scalars_) frame.vars[slot] = value;
  for (const auto& [slot, instance] : tensors_) frame.buffers[slot] = instance.get();
}

}  // namespace helve::interp
