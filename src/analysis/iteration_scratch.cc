// Elements that are written on every path to a place, by their subscripts.
// Subscripts are compared structurally; a loop over a whole dimension covers that dimension of its element.
#include "helve/analysis/iteration_scratch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "helve/analysis/effects.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// The subscripts of elements; null is a whole dimension.
using Element = std::vector<Expr>;
using Elements = std::vector<Element>;

bool is_lazy_operator(const Expr& e) {
  const Apply* apply = as<Apply>(e);
  return apply && (apply->op == Op::Select || apply->op == Op::And || apply->op == Op::Or);
}

bool is_lazy(const Expr& e) {
  bool lazy = false;
  walk(e, [&](const Expr& node) { lazy |= is_lazy_operator(node); });
  return lazy;
}

bool is_empty_or_unknown(const For& loop) {
  return !std::all_of(loop.extents.begin(), loop.extents.end(), [](const Expr& e) {
    const int64_t* extent = int_value(e);
    return extent && *extent > 0;
  });
}

class FirstReads {
 public:
  explicit FirstReads(const Buffer& buffer) : buffer_(buffer) {}

  ReadFirst found() const { return found_; }

  void visit(const Stmt& s, Elements& written) {
    if (!s) return;
    read(s, written);
    switch (s->kind) {
      case StmtKind::Seq:
        for (const Stmt& part : as<Seq>(s)->stmts) visit(part, written);
        return;
      case StmtKind::If: return branches(*as<If>(s), written);
      case StmtKind::For: return loop(*as<For>(s), written);
      case StmtKind::Alloc:
        if (as<Alloc>(s)->buffer.get() == &buffer_) written.push_back(Element(buffer_.rank()));
        return;
      case StmtKind::Store: return store(*as<Store>(s), written);
      case StmtKind::TileOp: return operation(*as<TileOp>(s), written);
      default:
        if (const TileStore* n = as<TileStore>(s)) stored_ |= n->buffer.get() == &buffer_;
        for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { sometimes(part, written); });
    }
  }

  /// Follows the code after `target`; false if it is not in `s`.
  bool after(const Stmt& s, const StmtNode* target, Elements& written) {
    if (!s) return false;
    if (s.get() == target) return true;
    bool found = false;
    if (const Seq* n = as<Seq>(s)) {
      for (const Stmt& part : n->stmts) {
        if (found)
          visit(part, written);
        else
          found = after(part, target, written);
      }
      return found;
    }
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { found = found || after(part, target, written); });
    if (found && turns(s)) sometimes(s, written);
    return found;
  }

  /// From here on only reads of elements that `s` may store are considered.
  void look_for_stores_of(const Stmt& s) {
    bool all = false;
    walk(s, [&](const Stmt& part) {
      if (const Store* n = as<Store>(part)) {
        if (n->buffer.get() == &buffer_) stores_.push_back(n->indices);
      } else {
        for (const RegionAccess& access : direct_accesses(part)) {
          all |= access.write && access.region.buffer.get() == &buffer_;
        }
      }
    });
    if (all) stores_.clear();
  }

 private:
  /// Does an iteration of the loop see what the previous one left? Not in independent loops.
  static bool turns(const Stmt& s) {
    if (const ForTiles* n = as<ForTiles>(s)) return !n->parallel;
    const For* n = as<For>(s);
    return s->kind == StmtKind::While || (n && n->loop != LoopKind::Parallel && n->loop != LoopKind::Vectorized);
  }

  /// May the region contain a relevant element? Not if a subscript of each is a different constant.
  bool counts(const Region& region) const {
    const auto matches = [&](const Element& element) {
      for (size_t d = 0; d < element.size(); ++d) {
        const int64_t *a = int_value(element[d]), *b = int_value(region.ranges[d].begin);
        if (region.ranges[d].point && a && b && *a != *b) return false;
      }
      return true;
    };
    return stores_.empty() || std::any_of(stores_.begin(), stores_.end(), matches);
  }

  /// Code that may or may not run.
  void sometimes(const Stmt& s, const Elements& written) {
    const bool around = std::exchange(certain_, false);
    Elements inside = written;
    visit(s, inside);
    certain_ = around;
  }

  void read(const Stmt& s, const Elements& written) {
    bool lazy = false, first = false;
    for (const RegionAccess& access : direct_accesses(s)) {
      if (access.write || access.region.buffer.get() != &buffer_ || holds(written, access.region)) continue;
      first |= counts(access.region);
    }
    if (!first) return;
    for_each_part(s, [&](const Expr& e) { lazy |= is_lazy(e); }, [](const Stmt&) {});
    // Copying an undefined value to private memory is no fault by itself; it matters where the copy is read.
    const Store* store = as<Store>(s);
    const bool to_own = store && store->buffer->scope == MemoryScope::Local;
    const bool copies = to_own && store->mode == StoreMode::Write && as<Load>(store->value);
    if (certain_ && !stored_ && !lazy && !copies)
      found_ = ReadFirst::Always;
    else if (found_ == ReadFirst::Never)
      found_ = ReadFirst::Maybe;
  }

  bool holds(const Elements& written, const Region& region) const {
    return std::any_of(written.begin(), written.end(), [&](const Element& element) {
      for (size_t d = 0; d < element.size(); ++d) {
        const Range& range = region.ranges[d];
        if (element[d] && !(range.point && same_expr(element[d], range.begin))) return false;
      }
      return true;
    });
  }

  void store(const Store& s, Elements& written) {
    if (s.buffer.get() != &buffer_) return;
    stored_ = true;
    if (s.is_atomic()) return;
    Element element = s.indices;
    for (size_t d = 0; d < element.size(); ++d) {
      const int64_t* extent = int_value(buffer_.shape[d]);
      if (has_load(element[d])) return;
      if (extent && *extent == 1) element[d] = Expr();
    }
    written.push_back(std::move(element));
  }

  void operation(const TileOp& op, Elements& written) {
    for (size_t i = 0; i < op.operands.size(); ++i) {
      const Region* region = std::get_if<Region>(&op.operands[i]);
      if (!region || region->buffer.get() != &buffer_ || !op.row().params[i].writes()) continue;
      stored_ = true;
      if (region->whole() && !keeps_destinations(op)) written.push_back(Element(buffer_.rank()));
    }
  }

  void branches(const If& s, Elements& written) {
    Elements one = written, other = written;
    const bool around = std::exchange(certain_, false);
    visit(s.then_body, one);
    visit(s.else_body, other);
    certain_ = around;
    written.clear();
    for (const Element& element : one) {
      const bool both = std::any_of(other.begin(), other.end(), [&](const Element& each) {
        for (size_t d = 0; d < each.size(); ++d) {
          const bool same = (!each[d] && !element[d]) || (each[d] && element[d] && same_expr(each[d], element[d]));
          if (!same) return false;
        }
        return true;
      });
      if (both) written.push_back(element);
    }
  }

  void loop(const For& s, Elements& written) {
    if (is_empty_or_unknown(s)) return sometimes(s.body, written);
    visit(s.body, written);
    std::erase_if(written, [&](Element& element) { return !leave(s, element); });
  }

  /// The element in terms of variables after the loop: false if that is impossible.
  bool leave(const For& s, Element& element) const {
    for (size_t k = 0; k < s.vars.size(); ++k) {
      const Var* var = s.vars[k].get();
      const auto mentioned = [&](const Expr& e) { return e && mentions(e, var); };
      if (std::count_if(element.begin(), element.end(), mentioned) == 0) continue;
      const auto at = std::find_if(element.begin(), element.end(), mentioned);
      if (std::count_if(element.begin(), element.end(), mentioned) > 1 || as<Var>(*at) != var) return false;
      const int64_t *begin = int_value(s.begins[k]), *extent = int_value(s.extents[k]);
      const int64_t* size = int_value(buffer_.shape[static_cast<size_t>(at - element.begin())]);
      if (!begin || *begin != 0 || !size || *extent != *size) return false;
      *at = Expr();
    }
    return true;
  }

  const Buffer& buffer_;
  Elements stores_;  ///< the only relevant elements; all if empty
  ReadFirst found_ = ReadFirst::Never;
  bool certain_ = true;   ///< this place is reached whenever the code runs
  bool stored_ = false;   ///< an element may have been written before this place
};

/// Variables that change during the iteration, and the buffers that it writes.
struct Changing {
  std::vector<const Var*> vars;
  std::vector<const Buffer*> written;

  void collect(const Stmt& s, bool repeats) {
    if (!s) return;
    if (const VarRef var = named_by(s); var && repeats) vars.push_back(var.get());
    if (const For* n = as<For>(s)) {
      for (const VarRef& var : n->vars) vars.push_back(var.get());
    }
    for (const RegionAccess& access : direct_accesses(s)) {
      if (access.write) written.push_back(access.region.buffer.get());
    }
    const bool again = repeats || s->kind == StmtKind::For || s->kind == StmtKind::While;
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { collect(part, again); });
  }
};

bool surely_loads(const Expr& e, const Buffer& buffer) {
  if (const Load* load = as<Load>(e); load && &buffer_of(load->buffer) == &buffer) return true;
  if (is_lazy_operator(e)) return surely_loads(as<Apply>(e)->args[0], buffer);
  bool found = false;
  for_each_child(e, [&](const Expr& child) { found |= surely_loads(child, buffer); });
  return found;
}

}  // namespace

const std::vector<Expr>* only_element(const Stmt& body, const Buffer& buffer, const std::vector<MayAlias>& may_alias) {
  const std::vector<Expr>* element = nullptr;
  bool one = true;
  for (const ElementUse& use : element_uses(body)) {
    if (use.buffer != &buffer) continue;
    if (!element) element = use.indices;
    one &= std::equal(use.indices->begin(), use.indices->end(), element->begin(), element->end(), same_expr);
  }
  walk(body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    for (size_t i = 0; op && i < op->operands.size(); ++i) {
      const Region* region = std::get_if<Region>(&op->operands[i]);
      one &= !region || region->buffer.get() != &buffer;
    }
  });
  if (!element || !one) return nullptr;
  Changing changing;
  changing.collect(body, false);
  const auto changes = [&](const Expr& e) {
    const Load* load = as<Load>(e);
    const Buffer* source = load ? &buffer_of(load->buffer) : nullptr;
    return std::any_of(changing.vars.begin(), changing.vars.end(), [&](const Var* var) { return as<Var>(e) == var; }) ||
           (source && std::any_of(changing.written.begin(), changing.written.end(), [&](const Buffer* written) {
              return written == source || may_overlap(may_alias, written, source);
            }));
  };
  for (const Expr& index : *element) {
    walk(index, [&](const Expr& e) { one &= !changes(e); });
  }
  return one ? element : nullptr;
}

bool surely_accesses(const Stmt& s, const Buffer& buffer) {
  if (!s) return false;
  const Store* store = as<Store>(s);
  bool found = store && store->buffer.get() == &buffer;
  for_each_part(s, [&](const Expr& e) { found |= surely_loads(e, buffer); }, [](const Stmt&) {});
  if (found) return true;
  if (const Seq* n = as<Seq>(s)) {
    return std::any_of(n->stmts.begin(), n->stmts.end(),
                       [&](const Stmt& part) { return surely_accesses(part, buffer); });
  }
  if (const If* n = as<If>(s)) return surely_accesses(n->then_body, buffer) && surely_accesses(n->else_body, buffer);
  if (const For* n = as<For>(s)) return !is_empty_or_unknown(*n) && surely_accesses(n->body, buffer);
  return false;
}

ReadFirst reads_before_writing(const Stmt& s, const Buffer& buffer) {
  FirstReads reads(buffer);
  Elements written;
  reads.visit(s, written);
  return reads.found();
}

ReadFirst read_after_loop(const Stmt& body, const StmtNode& loop, const Buffer& buffer) {
  FirstReads reads(buffer);
  reads.look_for_stores_of(Stmt(&loop));
  Elements written;
  reads.after(body, &loop, written);
  return reads.found();
}

bool tells_apart(const Expr& index, const Var* var, const std::vector<const Var*>& others) {
  if (has_load(index) || coefficient_of(sum_of(index), var).value_or(0) == 0) return false;
  return std::none_of(others.begin(), others.end(),
                      [&](const Var* other) { return other != var && mentions(index, other); });
}

bool iterations_may_conflict(const For& loop, const Buffer& buffer) {
  std::vector<const Var*> differ;
  for (size_t d = 0; d < loop.vars.size(); ++d) {
    const int64_t* extent = int_value(loop.extents[d]);
    if (!extent || *extent > 1) differ.push_back(loop.vars[d].get());
  }
  const size_t iteration = differ.size();
  std::vector<ElementUse> uses = element_uses(loop.body);
  std::erase_if(uses, [&](const ElementUse& use) { return use.buffer != &buffer; });
  if (std::none_of(uses.begin(), uses.end(), [](const ElementUse& use) { return use.write; })) return false;
  walk(loop.body, [&](const Stmt& s) {
    if (const VarRef var = named_by(s)) differ.push_back(var.get());
    if (const For* n = as<For>(s)) {
      for (const VarRef& var : n->vars) differ.push_back(var.get());
    }
  });
  const auto is_told = [&](const Var* var) {
    for (size_t d = 0; d < buffer.rank(); ++d) {
      const Expr& index = (*uses[0].indices)[d];
      const auto same = [&](const ElementUse& use) { return same_expr((*use.indices)[d], index); };
      if (std::all_of(uses.begin(), uses.end(), same) && tells_apart(index, var, differ)) return true;
    }
    return false;
  };
  return !std::all_of(differ.begin(), differ.begin() + static_cast<std::ptrdiff_t>(iteration), is_told);
}

}  // namespace helve
