// Assignments of index notation as one function.
// Each tensor has one definition, which all its readers follow, so that the order of statements is the only order.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "helve/notation/index_notation.h"
#include "walk.h"

namespace helve::notation {

namespace {

class Order {
 public:
  void add(const Assignment& a) {
    for (const BufferRef& buffer : buffers_read(a.value)) {
      if (buffer == a.target) throw UserError(Code::SelfReference, span_of_read(a, buffer), {{"tensor", buffer->name}});
      read_.emplace(buffer.get(), span_of_read(a, buffer));
    }
    const Buffer* target = a.target.get();
    if (!a.update) {
      if (const auto first = written_.find(target); first != written_.end()) {
        throw UserError(Code::TensorRedefined, a.span, {{"tensor", target->name}},
                        {{first->second, "it is defined or updated here"}});
      }
      if (const auto first = read_.find(target); first != read_.end()) {
        throw UserError(Code::ReadBeforeDefinition, first->second, {{"tensor", target->name}},
                        {{a.span, "it is defined here"}});
      }
      defined_.insert(target);
    }
    written_.emplace(target, a.span);
  }

  bool defines(const BufferRef& buffer) const { return defined_.contains(buffer.get()); }

 private:
  static Span span_of_read(const Assignment& a, const BufferRef& buffer) {
    Span out = a.span;
    bool found = false;
    walk_all(a.value, [&](const Expr& e) {
      const Load* load = as<Load>(e);
      if (!found && load && load->buffer.get() == buffer.get()) found = true, out = e->span;
    });
    return out.known() ? out : a.span;
  }

  std::unordered_map<const Buffer*, Span> read_, written_;
  std::unordered_set<const Buffer*> defined_;
};

const std::string& name_of(const Param& param) {
  return std::visit([](const auto& each) -> const std::string& { return each->name; }, param);
}

Span span_of(const Param& param) {
  return std::visit([](const auto& each) { return each->span; }, param);
}

/// What statements name, each once, in order of first use.
class Names {
 public:
  void add(const Assignment& a) {
    walk_all(a.value, [&](const Expr& e) {
      if (const Load* load = as<Load>(e)) add(buffer_ref(load->buffer));
      if (const Var* var = as<Var>(e); var && !var->dtype.is_index() && !find_reduction(a.value.reductions, var))
        add(VarRef(var));
    });
    add(a.target);
  }
  /// Each name must be one thing's, also of those that no statement uses: arguments are passed by it.
  void add(const Param& param) {
    if (std::find(all_.begin(), all_.end(), param) != all_.end()) return;
    for (const Param& other : all_) {
      if (name_of(other) == name_of(param)) {
        throw UserError(Code::TensorsShareName, span_of(param), {{"name", name_of(param)}},
                        {{span_of(other), "the other one is here"}});
      }
    }
    all_.push_back(param);
  }
  const std::vector<Param>& all() const { return all_; }

 private:
  std::vector<Param> all_;
};

/// The dynamic extents of parameters, in order of first use.
std::vector<VarRef> dims_of(const std::vector<Param>& params) {
  std::vector<VarRef> out;
  for (const Param& param : params) {
    const BufferRef* buffer = std::get_if<BufferRef>(&param);
    for (const Expr& extent : buffer ? (*buffer)->shape : std::vector<Expr>{}) {
      walk(extent, [&](const Expr& e) {
        const Var* var = as<Var>(e);
        if (var && std::find(out.begin(), out.end(), VarRef(var)) == out.end()) out.push_back(VarRef(var));
      });
    }
  }
  return out;
}

/// Refuses a dynamic extent that no parameter has.
void require_extents(const Assignment& a, const std::vector<VarRef>& dims) {
  std::vector<Index> indices = a.indices;
  for (const Reduction& r : a.value.reductions) indices.insert(indices.end(), r.indices.begin(), r.indices.end());
  const auto check = [&](const Expr& e) {
    const Var* var = as<Var>(e);
    if (!var || !var->dtype.is_index() || find_index(indices, var)) return;
    if (std::find(dims.begin(), dims.end(), VarRef(var)) != dims.end()) return;
    throw UserError(Code::UnboundExtent, a.span, {{"variable", var->name}});
  };
  for (const Expr& extent : a.target->shape) walk(extent, check);
  for (const Index& index : indices) {
    if (index.extent) walk(index.extent, check);
  }
  walk_all(a.value, check);
}

}  // namespace

FunctionRef function(std::string name, const std::vector<Param>& listed, const std::vector<Assignment>& assignments,
                     Span span, Form form) {
  Order order;
  Names names;
  for (const Assignment& a : assignments) order.add(a), names.add(a);
  for (const Param& param : listed) names.add(param);
  const auto is_listed = [&](const Param& p) { return std::find(listed.begin(), listed.end(), p) != listed.end(); };
  Ref<Function> out = make_ref<Function>();
  std::vector<Stmt> body;
  BufferMap temporaries;
  for (const Param& param : names.all()) {
    if (is_listed(param)) continue;
    const BufferRef* buffer = std::get_if<BufferRef>(&param);
    if (!buffer || !order.defines(*buffer)) {
      out->params.push_back(param);
      continue;
    }
    const Buffer& b = **buffer;
    BufferRef temporary = make_buffer(b.name, b.dtype, MemoryScope::Global, b.shape, {}, {}, b.span);
    body.push_back(alloc(temporary, b.span));
    temporaries.emplace(buffer->get(), std::move(temporary));
  }
  out->params.insert(out->params.end(), listed.begin(), listed.end());
  out->dims = dims_of(out->params);
  for (const Assignment& a : assignments) require_extents(a, out->dims);
  for (const Assignment& a : assignments) body.push_back(replace_buffers(lower(a, form), temporaries));
  out->name = std::move(name);
  out->body = seq(std::move(body), span);
  out->span = span;
  FunctionRef function(out);
  verify(function);
  return function;
}

}  // namespace helve::notation
