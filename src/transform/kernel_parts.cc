// Finding the parts of a mesh kernel.
// The tree follows the program's structure, and so does the host body that is made from it.
#include "kernel_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/iteration_scratch.h"
#include "helve/ir/tensor/group_operands.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

const TileOp& first_collective(const Stmt& s) {
  const TileOp* found = nullptr;
  walk(s, [&](const Stmt& inner) {
    const TileOp* op = as<TileOp>(inner);
    if (op && op->row().is_collective() && !found) found = op;
  });
  return *found;
}

[[noreturn]] void refuse_kernel_value(const TileOp& op, const Span& span, std::string note) {
  throw UserError(Code::KernelValueAtCollective, op.span, {{"operation", operation_text(op)}},
                  {{span, std::move(note)}});
}

/// A name of a value from memory.
struct Loaded {
  VarRef var;
  Span span;
  bool fetched = false;  ///< by what updates the memory
};

class Finder {
 public:
  Finder(const Kernel& kernel, const std::unordered_set<const Buffer*>& written) : kernel_(kernel), written_(written) {}

  KernelParts run() {
    Substitution values;
    result_.parts = split(kernel_.body, values);
    link(result_.parts, {}, nullptr);
    return std::move(result_);
  }

 private:
  static std::vector<Stmt> statements(const Stmt& s) {
    if (!s) return {};
    if (const Seq* n = as<Seq>(s)) return n->stmts;
    return {s};
  }

  /// Splits a statement list; `values` are the scalars bound so far.
  std::vector<Part> split(const Stmt& body, Substitution values) {
    std::vector<Part> parts;
    std::vector<Loaded> loaded;  // names of values from memory that stay in the current segment
    for (const Stmt& original : statements(body)) {
      Stmt s = substitute(original, values);
      if (const Alloc* a = as<Alloc>(s)) {
        result_.buffers.push_back(a->buffer);
        result_.depths.emplace(a->buffer.get(), depth_);
        continue;
      }
      if (const Bind* b = as<Bind>(s); b && !has_load(b->value)) {
        values[b->var.get()] = b->value;
        continue;
      }
      if (!has_collective(s)) {
        append(s, parts);
        if (const VarRef var = named_by(s)) loaded.push_back({var, s->span, !as<Bind>(s)});
        continue;
      }
      s = with_controls(s, loaded, parts);
      stale_.insert(stale_.end(), loaded.begin(), loaded.end());
      loaded.clear();
      last_collective_ = &first_collective(s);
      keep_.push_back(s);
      if (const For* loop = as<For>(s); loop && loop->loop == LoopKind::Persistent && !around_) {
        Part part = persistent(*loop, values, parts);
        parts.push_back(std::move(part));
      } else {
        parts.push_back(holding(s, values));
      }
    }
    stale_.insert(stale_.end(), loaded.begin(), loaded.end());
    return parts;
  }

  /// Adds a statement without collectives to the segment at the end of `parts`.
  void append(const Stmt& s, std::vector<Part>& parts) {
    if (parts.empty() || parts.back().kind != Part::Kind::Segment) parts.emplace_back();
    check_fresh(s);
    parts.back().stmts.push_back(s);
  }

  /// Control flow around a collective, or the collective; conditions, bounds and operands that only the core knows are
  /// replaced by loads of controls.
  Stmt with_controls(const Stmt& s, const std::vector<Loaded>& loaded, std::vector<Part>& parts) {
    std::vector<Stmt> stores;
    const TileOp* op = as<TileOp>(s);
    const auto controlled = [&](const Expr& e) {
      const bool loads = has_load(e) || std::any_of(loaded.begin(), loaded.end(),
                                                    [&](const Loaded& each) { return mentions(e, each.var.get()); });
      if (!loads && !depends_on_core(e)) return e;
      if (!op) note_deciding(e, loads);
      const DType dtype = e->dtype.is_bool() ? kBool : kInt64;
      const BufferRef home = make_buffer("control", dtype, MemoryScope::Global, {int_imm(1)}, {}, {}, e->span);
      result_.controls.push_back(home);
      const bool lasts = is_lasting(e) && !as<While>(s);
      if (lasts) result_.lasting.insert(home.get());
      (lasts ? around_->stores : stores).push_back(store(home, {int_imm(0)}, e, e->span));
      return cast(load(home, {int_imm(0)}, e->span), e->dtype);
    };
    const Stmt out = op ? Stmt(map_of_group(*op, [&](size_t, const Expr& e) { return controlled(e); }))
                        : map_parts(s, controlled, [](const Stmt& part) { return part; });
    for (const Stmt& each : stores) append(each, parts);
    if (stores.empty() || !as<While>(s)) return out;
    return Stmt(copy_with(*as<While>(out), [&](While& loop) { loop.body = seq({loop.body, stores[0]}); }));
  }

  /// Cores may part by the expression, while operands of a collective are the same for cores that wait for each other.
  void note_deciding(const Expr& e, bool loads) {
    result_.memory_decides |= loads;
    for (const VarRef& v : kernel_.vars) {
      if (mentions(e, v.get())) result_.deciding.insert(v.get());
    }
  }

  /// The Persistent loop around the statements that are split, and the stores to controls before it.
  struct Around {
    const For& loop;
    std::unordered_set<const Object*> own;  ///< variables that the loop defines
    std::vector<Stmt> stores;
  };

  /// A Persistent loop; controls that are the same for all iterations are computed only if there is an iteration.
  Part persistent(const For& loop, const Substitution& values, std::vector<Part>& before) {
    Around around{loop, {}, {}};
    walk(Stmt(&loop), [&](const Stmt& s) {
      if (const For* n = as<For>(s)) {
        for (const VarRef& var : n->vars) around.own.insert(var.get());
      }
      if (const VarRef var = named_by(s)) around.own.insert(var.get());
    });
    around_ = &around;
    Part part = holding(Stmt(&loop), values);
    around_ = nullptr;
    Expr runs;
    for (const Expr& extent : loop.extents) {
      const Expr one = less(int_imm(0), extent);
      runs = runs ? logical_and(runs, one) : one;
    }
    if (!around.stores.empty()) append(if_then(runs, seq(std::move(around.stores)), {}, loop.span), before);
    return part;
  }

  /// Does every iteration of the Persistent loop around compute the same value? Only expressions that every iteration
  /// certainly evaluates: others might not even have a value.
  bool is_lasting(const Expr& e) const {
    if (!around_ || nesting_ > 1) return false;
    bool lasting = true;
    walk(e, [&](const Expr& node) {
      if (around_->own.contains(node.get())) lasting = false;
      const Load* load = as<Load>(node);
      if (load && (!is_global(buffer_of(load->buffer)) || written_.contains(&buffer_of(load->buffer)))) lasting = false;
    });
    return lasting;
  }

  bool depends_on_core(const Expr& e) const {
    return std::any_of(kernel_.vars.begin(), kernel_.vars.end(), [&](const VarRef& v) { return mentions(e, v.get()); });
  }

  /// The part of a statement that is or contains a collective.
  Part holding(const Stmt& s, const Substitution& values) {
    Part part;
    part.node = s;
    for_each_part(s, [&](const Expr& e) { check_fresh(e, s->span); }, [](const Stmt&) {});
    if (as<TileOp>(s)) {
      part.kind = Part::Kind::Collective;
      check_regions(*as<TileOp>(s));
      return part;
    }
    part.kind = as<If>(s) ? Part::Kind::Branch : Part::Kind::Loop;
    const bool repeats = part.kind == Part::Kind::Loop && !part.is_persistent();
    if (around_) ++nesting_;
    if (repeats) ++depth_;
    if (const For* loop = as<For>(s)) {
      part.body = split(loop->body, values);
    } else if (const If* branch = as<If>(s)) {
      part.body = split(branch->then_body, values);
      part.otherwise = split(branch->else_body, values);
    } else if (const While* loop = as<While>(s)) {
      part.body = split(loop->body, values);
    } else {
      HELVE_FAIL("a collective in a statement that holds none");
    }
    if (repeats) --depth_;
    if (around_) --nesting_;
    return part;
  }

  /// The regions of a collective move to the host body unchanged: they use neither the core's coordinates nor memory.
  void check_regions(const TileOp& op) {
    const auto check = [&](const Expr& e) {
      const Span& span = e->span.known() ? e->span : op.span;
      if (depends_on_core(e)) refuse_kernel_value(op, span, "this value depends on the core");
      if (has_load(e)) refuse_kernel_value(op, span, "this value is loaded from memory");
    };
    for (const TileOperand& operand : op.operands) {
      const Region* region = std::get_if<Region>(&operand);
      if (!region) continue;
      for (const Range& range : region->ranges) {
        check(range.begin);
        check(range.extent);
      }
    }
  }

  /// A scalar that was loaded before a collective cannot be used after it.
  void check_fresh(const Stmt& s) {
    walk(s, [&](const Stmt& inner) {
      for_each_part(inner, [&](const Expr& e) { check_fresh(e, inner->span); }, [](const Stmt&) {});
    });
  }
  void check_fresh(const Expr& e, const Span& span) {
    for (const auto& [var, place, fetched] : stale_) {
      if (!mentions(e, var.get())) continue;
      throw UserError(Code::ValueAcrossCollective, e->span.known() ? e->span : span,
                      {{"name", var->name},
                       {"operation", operation_text(*last_collective_)},
                       {"remedy", fetched ? fmt::format("keep '{}' in a buffer", var->name)
                                          : fmt::format("load '{}' again after the collective, or keep it in a buffer",
                                                        var->name)}},
                      {{place, fetched ? "the value is fetched here" : "the value is loaded here"}});
    }
  }

  /// A segment does not depend on previous contents that it overwrites element by element before it reads them.
  static void drop_scratch(Part& segment) {
    const Stmt whole = seq(segment.stmts);
    std::erase_if(segment.touch.exposed,
                  [&](const Buffer* b) { return reads_before_writing(whole, *b) == ReadFirst::Never; });
  }

  /// Numbers the leaves and sets their enclosing loops. The tree does not move after this.
  void link(std::vector<Part>& parts, std::vector<const Part*> loops, const Part* persistent) {
    for (Part& part : parts) {
      part.loops = loops;
      part.persistent = persistent;
      if (part.kind == Part::Kind::Segment || part.kind == Part::Kind::Collective) {
        part.position = result_.leaves.size();
        part.touch = touch_of(part.kind == Part::Kind::Segment ? part.stmts : std::vector<Stmt>{part.node});
        if (part.kind == Part::Kind::Segment) drop_scratch(part);
        result_.leaves.push_back(&part);
        continue;
      }
      std::vector<const Part*> inside = loops;
      if (part.kind == Part::Kind::Loop && !part.is_persistent()) inside.push_back(&part);
      link(part.body, inside, part.is_persistent() ? &part : persistent);
      link(part.otherwise, inside, persistent);
    }
  }

  const Kernel& kernel_;
  const std::unordered_set<const Buffer*>& written_;
  KernelParts result_;
  Around* around_ = nullptr;
  int nesting_ = 0;  ///< statements with collectives around this one, from the Persistent loop inwards
  size_t depth_ = 0;  ///< host loops around this statement that repeat their body
  std::vector<Loaded> stale_;
  std::vector<Stmt> keep_;  // owns the statements that last_collective_ points into
  const TileOp* last_collective_ = nullptr;
};

}  // namespace

KernelParts parts_of(const Kernel& kernel, const std::unordered_set<const Buffer*>& written) {
  return Finder(kernel, written).run();
}

}  // namespace helve
