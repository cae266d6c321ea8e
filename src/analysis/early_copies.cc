// Which copies of a loop can begin iterations before the one that uses them.
// All conditions speak of whole buffers, and of regions only that they are the same in every iteration: what is asked
// is whether memory can be given to each of several iterations at once.
#include "helve/analysis/early_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

/// The expressions of an operation's regions and scalars.
std::vector<Expr> expressions(const TileOp& op) {
  std::vector<Expr> out;
  for_each_part(Stmt(make_ref<TileOp>(op)), [&](const Expr& e) { out.push_back(e); }, [](const Stmt&) {});
  return out;
}

class Judge {
 public:
  Judge(const For& loop, const AccessModel& kernel, const std::vector<MayAlias>& may_alias)
      : loop_(loop), kernel_(kernel), may_alias_(may_alias), body_(access_model(loop.body, may_alias)) {
    walk(loop.body, [&](const Stmt& s) {
      if (const Alloc* n = as<Alloc>(s)) own_.insert(n->buffer.get());
      if (const VarRef var = named_by(s)) own_.insert(var.get());
      if (const For* n = as<For>(s)) {
        for (const VarRef& var : n->vars) own_.insert(var.get());
      }
    });
  }

  std::vector<EarlyCopy> run() {
    std::vector<EarlyCopy> out;
    const std::vector<Stmt> body = statements_of(loop_.body);
    Substitution names;
    for (size_t i = 0; i < body.size(); ++i) {
      if (const Bind* n = as<Bind>(body[i]); n && lasts(n->value)) {
        if (!add_value(names, n->var, n->value)) names.erase(n->var.get());  // stays a name of the iteration's own
      }
      const TileOp* op = as<TileOp>(body[i]);
      if (op && op->op == TileOpcode::Copy) {
        const Stmt known = substitute(body[i], names);
        out.push_back({i, Ref<const TileOp>(as<TileOp>(known)), refusal(*as<TileOp>(known))});
      } else {
        walk(body[i], [&](const Stmt& s) {
          const TileOp* inner = as<TileOp>(s);
          if (!inner || inner->op != TileOpcode::Copy || !is_global(*inner->region(0).buffer)) return;
          out.push_back({i, Ref<const TileOp>(inner), "it is under a condition or in a loop of the body"});
        });
      }
    }
    return out;
  }

 private:
  std::string refusal(const TileOp& op) const {
    const Region &src = op.region(0), &dst = op.region(1);
    const std::string &from = src.buffer->name, &to = dst.buffer->name;
    if (!is_global(*src.buffer)) return fmt::format("'{}' is no global tensor", from);
    if (dst.buffer->scope != MemoryScope::Shared) return fmt::format("'{}' is no shared memory", to);
    if (own_.contains(dst.buffer.get())) return fmt::format("'{}' is allocated in the loop", to);
    if (is_written(*src.buffer)) return fmt::format("'{}' is written in the loop", from);
    if (is_exchanged(*dst.buffer)) return fmt::format("cores exchange values of '{}' in the loop", to);
    for (const Expr& e : expressions(op)) {
      if (std::string why = late(e); !why.empty()) return why;
    }
    for (const Range& range : dst.ranges) {
      if (mentions(range.begin, loop_.vars[0].get()) || mentions(range.extent, loop_.vars[0].get())) {
        return fmt::format("iterations fill different places of '{}'", to);
      }
    }
    const std::vector<Access>& all = body_.accesses;
    const auto is_write = [&](const Access& a) { return a.write && a.buffer == dst.buffer; };
    const auto own = std::find_if(all.begin(), all.end(), is_write);
    HELVE_CHECK(own != all.end(), "a copy writes");
    if (std::any_of(own + 1, all.end(), is_write)) return fmt::format("'{}' is written elsewhere in the loop", to);
    if (std::any_of(all.begin(), own, [&](const Access& a) { return a.buffer == dst.buffer; })) {
      return fmt::format("'{}' is used in front of the copy", to);
    }
    if (is_used_outside(*dst.buffer)) return fmt::format("'{}' is used outside of the loop", to);
    return "";
  }

  /// Is the value the same wherever it is read in the loop's iterations, as it reads only memory that they leave alone?
  bool lasts(const Expr& value) const {
    bool out = true;
    walk(value, [&](const Expr& node) {
      const Load* load = as<Load>(node);
      out &= node->kind != ExprKind::TileLoad && !(load && is_written(buffer_of(load->buffer)));
    });
    return out;
  }

  /// Is it an operand of a collective, which other cores may access while an iteration of this one has not begun?
  bool is_exchanged(const Buffer& buffer) const {
    return has_operation(loop_.body, [&](const TileOp& op) {
      if (!op.row().is_collective()) return false;
      for (size_t i = 0; i < op.operands.size(); ++i) {
        if (op.is_region(i) && op.region(i).buffer.get() == &buffer) return true;
      }
      return false;
    });
  }

  bool is_used_outside(const Buffer& buffer) const {
    return std::any_of(kernel_.accesses.begin(), kernel_.accesses.end(), [&](const Access& a) {
      return a.buffer.get() == &buffer && std::none_of(a.path.begin(), a.path.end(), [&](const StepRef& step) {
               return !step->vars.empty() && step->vars[0] == loop_.vars[0];
             });
    });
  }

  /// May the loop write memory of the buffer?
  bool is_written(const Buffer& buffer) const {
    return std::any_of(body_.accesses.begin(), body_.accesses.end(),
                       [&](const Access& a) { return a.write && may_overlap(may_alias_, a.buffer.get(), &buffer); });
  }

  /// Why the expression has no value before the iteration.
  std::string late(const Expr& e) const {
    std::string why;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (var && own_.contains(var)) why = fmt::format("its operands use '{}', which is read in the loop", var->name);
      const Load* load = as<Load>(node);
      if (load && is_written(buffer_of(load->buffer))) {
        why = fmt::format("its operands use '{}', which is written in the loop", load->buffer->name);
      }
    });
    return why;
  }

  const For& loop_;
  const AccessModel& kernel_;
  const std::vector<MayAlias>& may_alias_;
  const AccessModel body_;
  std::unordered_set<const Object*> own_;  ///< variables and buffers that the body defines
};

}  // namespace

std::vector<Stmt> statements_of(const Stmt& body) {
  if (const Seq* several = as<Seq>(body)) return several->stmts;
  return {body};
}

std::vector<EarlyCopy> early_copies(const For& loop, const AccessModel& kernel,
                                    const std::vector<MayAlias>& may_alias) {
  return Judge(loop, kernel, may_alias).run();
}

}  // namespace helve
