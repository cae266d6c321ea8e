// Calls between kernel functions.
// Extents of the callee become those of the arguments; two that must be equal must be so in every call of the caller,
// or the call is refused.
#include "helve/analysis/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "helve/analysis/copy_dimensions.h"
#include "helve/analysis/effects.h"
#include "helve/arith/relation.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/multiprocessors.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/inline.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"

namespace helve {

namespace {

bool surely_equal(const Expr& a, const Expr& b) {
  return !has_load(a) && !has_load(b) && can_prove(apply(Op::Eq, {a, b}));
}

/// "the mesh x=2, y=3".
std::string mesh_text(const std::optional<MeshShape>& mesh) {
  if (!mesh) return "no mesh";
  std::string out;
  for (size_t d = 0; d < mesh->extents.size(); ++d) {
    out += fmt::format("{}{}={}", d == 0 ? "" : ", ", mesh->names[d], mesh->extents[d]);
  }
  return "the mesh " + out;
}

/// Where the elements of a tensor of a mesh function are placed.
std::string placement_text(const Buffer& buffer, const MeshTensor* placement) {
  if (buffer.scope == MemoryScope::Global) return "one buffer a core";
  if (!placement) return "one tensor of all cores";
  const std::string cuts = join(placement->sharding, " and ", [](const auto& cut) {
    return fmt::format("dimension {} over {}", cut.second, cut.first);
  });
  const std::string where = cuts.empty() ? "whole on every core" : "cut in " + cuts;
  return fmt::format("{}, in tiles of {}", where, shape_text(placement->tiling));
}

class Call {
 public:
  Call(const Function& f, const std::vector<CallArgument>& arguments, const Caller& caller, const Span& place)
      : f_(f), arguments_(arguments), caller_(caller), place_(place) {
    HELVE_CHECK(arguments.size() == f.params.size(), fmt::format("'{}' takes {} arguments", f.name, f.params.size()));
  }

  Stmt build() {
    if (f_.mesh != caller_.mesh) {
      throw UserError(Code::CallMesh, place_,
                      {{"function", f_.name}, {"theirs", mesh_text(f_.mesh)}, {"ours", mesh_text(caller_.mesh)}});
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (is_tensor(i)) accept_tensor(i);
    }
    std::vector<Stmt> body;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!is_tensor(i)) accept_scalar(i, body);
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (is_tensor(i)) check_shape(i);
    }
    check_overlap();
    for (const Assumption& each : f_.assumptions) check(each);
    body.push_back(inline_body(f_, std::move(values_), place_));
    return seq(std::move(body), place_);
  }

 private:
  bool is_tensor(size_t i) const { return std::holds_alternative<BufferRef>(f_.params[i]); }
  const Buffer& param(size_t i) const { return *std::get<BufferRef>(f_.params[i]); }
  const BufferRef& argument(size_t i) const {
    const BufferRef* buffer = std::get_if<BufferRef>(&arguments_[i].value);
    HELVE_CHECK(buffer && is_global(**buffer) && !is_tiled(**buffer), "no argument for a tensor parameter");
    return *buffer;
  }

  [[noreturn]] void refuse(Code code, size_t i, DiagnosticArgs args, std::vector<std::string> fixes = {}) const {
    args.push_back({"parameter", param(i).name});
    std::vector<Note> notes = {{param(i).span, fmt::format("'{}' is declared here", param(i).name)}};
    throw UserError(code, arguments_[i].place, std::move(args), std::move(notes), std::move(fixes));
  }

  /// Checks type, rank and placement; extents that the callee leaves open become those of the argument.
  void accept_tensor(size_t i) {
    const Buffer &p = param(i), &a = *argument(i);
    if (a.dtype != p.dtype) {
      refuse(Code::ArgumentDType, i, {{"expected", to_string(p.dtype)}, {"given", to_string(a.dtype)}},
             {fmt::format("pass a tensor of {}", to_string(p.dtype))});
    }
    if (a.rank() != p.rank()) {
      refuse(Code::ArgumentRank, i,
             {{"expected", static_cast<int64_t>(p.rank())}, {"given", static_cast<int64_t>(a.rank())}});
    }
    if (p.sorted && !a.sorted) {
      refuse(Code::UnsortedParameter, i, {{"function", f_.name}, {"argument", a.name}});
    }
    check_placement(i);
    for (size_t d = 0; d < p.rank(); ++d) {
      const Var* dim = as<Var>(p.shape[d]);
      if (!dim || !is_dim(dim) || is_multiprocessors(*dim) || !values_.scalars.emplace(dim, a.shape[d]).second)
        continue;
      origins_.emplace(dim, fmt::format("dimension {} of '{}'", d, p.name));
    }
    values_.buffers.emplace(&p, argument(i));
  }

  bool is_dim(const Var* var) const {
    for (const VarRef& dim : f_.dims) {
      if (dim.get() == var) return true;
    }
    return false;
  }

  void check_placement(size_t i) const {
    if (!f_.mesh) return;
    const Buffer &p = param(i), &a = *argument(i);
    const MeshTensor *expected = f_.mesh_tensor(&p), *given = nullptr;
    for (const MeshTensor& each : caller_.mesh_tensors) {
      if (each.buffer.get() == &a) given = &each;
    }
    const bool alike = expected && given ? expected->sharding == given->sharding && expected->tiling == given->tiling
                                         : expected == given && a.scope == MemoryScope::Param;
    if (alike) return;
    const bool own = a.scope == MemoryScope::Global;
    refuse(Code::CallPlacement, i, {{"expected", placement_text(p, expected)}, {"given", placement_text(a, given)}},
           own ? std::vector<std::string>{"pass a parameter, or allocate the buffer in the function that is called"}
               : std::vector<std::string>{});
  }

  /// Constants and variables are substituted; any other expression is computed once.
  void accept_scalar(size_t i, std::vector<Stmt>& body) {
    const VarRef& p = std::get<VarRef>(f_.params[i]);
    const Expr* given = std::get_if<Expr>(&arguments_[i].value);
    HELVE_CHECK(given, "no argument for a scalar parameter");
    Expr value = convert_for_store(*given, p->dtype, arguments_[i].place);
    if (value->kind != ExprKind::IntImm && value->kind != ExprKind::FloatImm && value->kind != ExprKind::Var) {
      const VarRef var = make_var(p->name, p->dtype, p->span);
      body.push_back(bind(var, value, arguments_[i].place));
      value = Expr(var);
    }
    values_.scalars.emplace(p.get(), value);
  }

  void check_shape(size_t i) const {
    const Buffer &p = param(i), &a = *argument(i);
    for (size_t d = 0; d < p.rank(); ++d) {
      const Expr expected = simplify(substitute(p.shape[d], values_.scalars));
      if (a.shape[d].get() != expected.get() && !is_bound_to(p.shape[d], a.shape[d]) &&
          !surely_equal(expected, a.shape[d])) {
        refuse_extent(i, d, expected);
      }
    }
    if (p.strides.empty() && a.strides.empty()) return;
    std::vector<Expr> expected = strides_of(p);
    const std::vector<Expr> given = strides_of(a);
    bool equal = true;
    for (size_t d = 0; d < expected.size(); ++d) {
      expected[d] = simplify(substitute(expected[d], values_.scalars));
      equal &= surely_equal(expected[d], given[d]);
    }
    if (!equal) {
      refuse(Code::ArgumentStrides, i, {{"expected", shape_text(expected)}, {"given", shape_text(given)}},
             {fmt::format("declare the strides of '{}' as those of the argument, or copy the argument", p.name)});
    }
  }

  /// Must the extent of the parameter be this extent?
  bool is_bound_to(const Expr& declared, const Expr& given) const {
    const Var* dim = as<Var>(declared);
    const auto found = dim ? values_.scalars.find(dim) : values_.scalars.end();
    return found != values_.scalars.end() && found->second == given;
  }

  [[noreturn]] void refuse_extent(size_t i, size_t d, const Expr& expected) const {
    const Buffer &p = param(i), &a = *argument(i);
    DiagnosticArgs args = {
        {"dim", static_cast<int64_t>(d)}, {"expected", to_text(expected)}, {"given", to_text(a.shape[d])}};
    const bool open = !int_value(expected) || !int_value(a.shape[d]);
    const Var* dim = as<Var>(p.shape[d]);
    const auto origin = dim ? origins_.find(dim) : origins_.end();
    std::vector<std::string> fixes;
    if (open) fixes.push_back("a call needs extents that are equal in every case: write one for both");
    if (origin == origins_.end()) {
      std::vector<Expr> shape;
      for (const Expr& extent : p.shape) shape.push_back(simplify(substitute(extent, values_.scalars)));
      args.push_back({"shape", shape_text(shape)});
      refuse(Code::ArgumentShape, i, std::move(args), std::move(fixes));
    }
    args.push_back({"variable", dim->name});
    args.push_back({"origin", origin->second});
    refuse(Code::InconsistentExtent, i, std::move(args), std::move(fixes));
  }

  /// Two arguments that may share memory, one of them written, must be declared so by the callee.
  void check_overlap() const {
    const std::vector<BufferEffect> effects = param_effects(f_);
    std::vector<size_t> tensors;
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (is_tensor(i)) tensors.push_back(i);
    }
    for (size_t b = 1; b < tensors.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        if (!effects[a].written && !effects[b].written) continue;
        const Buffer &first = param(tensors[a]), &second = param(tensors[b]);
        if (!may_overlap(caller_.may_alias, argument(tensors[a]).get(), argument(tensors[b]).get())) continue;
        if (may_overlap(f_.may_alias, &first, &second)) continue;
        const Buffer& written = effects[b].written ? second : first;
        throw UserError(Code::OverlappingArguments, arguments_[tensors[b]].place,
                        {{"first", first.name}, {"second", second.name}, {"written", written.name}},
                        {{arguments_[tensors[a]].place, fmt::format("the argument of '{}'", first.name)}});
      }
    }
  }

  /// What the callee assumes must follow from what the caller does: arguments are not checked inside of a program.
  void check(const Assumption& assumption) const {
    const Expr needed = substitute(assumption.condition, values_.scalars);
    std::vector<VarRef> vars;
    std::vector<Expr> broken{apply(Op::Not, {needed})};
    const auto add = [&](const Expr& condition) {
      walk(condition, [&](const Expr& e) {
        const Var* var = as<Var>(e);
        if (var && std::find(vars.begin(), vars.end(), VarRef(var)) == vars.end()) vars.emplace_back(var);
      });
    };
    add(needed);
    for (const Assumption& each : caller_.assumptions) {
      add(each.condition);
      broken.push_back(each.condition);
    }
    for (size_t i = 0; i < arguments_.size(); ++i) {
      if (!is_tensor(i)) continue;
      for (const Expr& extent : argument(i)->shape) broken.push_back(apply(Op::Le, {int_imm(0), extent}));
      for (const Expr& extent : argument(i)->shape) add(extent);
    }
    const ExactEngine engine;
    if (IntegerSet(engine, vars, conjunction(broken)).is_empty().verdict == Verdict::Proved) return;
    std::vector<Note> notes;
    if (assumption.span.known()) notes.push_back({assumption.span, "it is assumed here"});
    throw UserError(Code::OpenAssumption, place_, {{"function", f_.name}, {"condition", to_text(simplify(needed))}},
                    std::move(notes));
  }

  const Function& f_;
  const std::vector<CallArgument>& arguments_;
  const Caller& caller_;
  const Span place_;
  ParameterValues values_;
  std::unordered_map<const Var*, std::string> origins_;  ///< what set each extent
};

}  // namespace

Stmt call(const FunctionRef& f, const std::vector<CallArgument>& arguments, const Caller& caller, const Span& place) {
  return Call(*f, arguments, caller, place).build();
}

}  // namespace helve
