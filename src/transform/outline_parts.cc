// Long sequences become functions of their own.
// Input: a lowered function. Output: the same; of kernels that are much code, the parts of long sequences that no loop
// repeats are outlined.
// Before:  a sequence of 2000 statements
// After:   with T.outline():
//              its first 170 statements
//          with T.outline(): ...
// The time of register allocation grows with the square of a function, since what does not change in the loop over
// blocks (constants above all) is kept for all of it. Statements that follow one another share little, so a part of a
// few thousand instructions is compiled as well alone; the call costs nothing beside it. Inside a loop statements may
// share registers, and a call would cost each iteration something. A part keeps what it defines to itself: buffers that
// others use as well are allocated before it, and values that others use stand between parts.
#include <algorithm>
#include <unordered_map>

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

constexpr size_t kManyStatements = 64;  // of a sequence that is cut
constexpr int64_t kPart = 1024;  // instructions of a part, at least
constexpr int64_t kMostOfPart = 2048;  // instructions beyond which a part waits for no use of a value
constexpr int64_t kLargeKernel = 4096;  // instructions, beyond which a kernel is cut

/// About the instructions of an operator on one vector or scalar.
int64_t instructions(Op op) {
  switch (op) {
    case Op::FloorDiv:
    case Op::FloorMod: return 4;
    case Op::Exp:
    case Op::Exp2:
    case Op::Exp2Approx:
    case Op::Log:
    case Op::Log2:
    case Op::Tanh:
    case Op::Erf:
    case Op::Sigmoid: return 32;
    default: return 1;  // or a call
  }
}

/// About the instructions of an access: its address and itself.
int64_t instructions(const std::vector<Expr>& indices) {
  int64_t count = 2;
  for (const Expr& index : indices) count += int_value(index) ? 0 : 2;
  return count;
}

/// About the instructions of the statement as a compiler of machine code receives it.
int64_t instructions(const Stmt& s) {
  int64_t count = 0;
  walk(s, [&](const Stmt& each) {
    count += !as<Seq>(each);
    if (const Store* store = as<Store>(each)) count += instructions(store->indices);
    if (const Prefetch* prefetch = as<Prefetch>(each)) count += instructions(prefetch->indices);
    if (const For* loop = as<For>(each)) count += loop->loop == LoopKind::Vectorized ? 0 : 6 * std::ssize(loop->vars);
    if (as<If>(each) || as<While>(each)) count += 3;
  });
  walk_exprs(s, [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) count += instructions(load->indices);
    if (const Apply* apply = as<Apply>(e)) count += instructions(apply->op);
    if (as<Cast>(e)) count += 1;
  });
  return count;
}

bool has_outline(const Stmt& s) {
  bool found = false;
  walk(s, [&](const Stmt& each) { found |= as<Outline>(each) != nullptr; });
  return found;
}

/// A long sequence and what its statements define for those behind them.
class Parts {
 public:
  explicit Parts(const Seq& s) : stmts_(s.stmts), last_use_(s.stmts.size(), 0) {
    std::unordered_map<const Object*, size_t> defined;
    const auto use = [&](const Object* object, size_t at) {
      if (auto it = defined.find(object); it != defined.end()) last_use_[it->second] = at;
    };
    for (size_t i = 0; i < stmts_.size(); ++i) {
      for (const ElementUse& each : element_uses(stmts_[i])) use(each.buffer, i);
      walk(stmts_[i], [&](const Stmt& s) {
        if (const Prefetch* prefetch = as<Prefetch>(s)) use(prefetch->buffer.get(), i);
      });
      walk_exprs(stmts_[i], [&](const Expr& e) { use(e.get(), i); });
      if (const Alloc* n = as<Alloc>(stmts_[i])) defined[n->buffer.get()] = i;
      if (const VarRef var = named_by(stmts_[i])) defined[var.get()] = i;
    }
  }

  Stmt cut(const Span& span) {
    for (size_t first = 0; first < stmts_.size();) first = add_from(first);
    return seq(std::move(out_), span);
  }

 private:
  /// Adds the statements from `first` up to the end of a part, which is returned. A statement of which parts are
  /// outlined already stands between parts: an outlined part holds none.
  size_t add_from(size_t first) {
    if (has_outline(stmts_[first])) {
      out_.push_back(stmts_[first]);
      return first + 1;
    }
    int64_t count = 0;
    size_t end = first, last = first;  // use of what the part binds
    const auto more = [&] { return count < kPart || (last >= end && count < kMostOfPart); };
    while (end < stmts_.size() && more() && !has_outline(stmts_[end])) {
      if (named_by(stmts_[end])) last = std::max(last, last_use_[end]);
      count += instructions(stmts_[end++]);
    }
    for (size_t i = first; i < end; ++i) {
      if (!named_by(stmts_[i]) || last_use_[i] < end) continue;
      out_.insert(out_.end(), stmts_.begin() + static_cast<std::ptrdiff_t>(first),
                  stmts_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      return i + 1;
    }
    std::vector<Stmt> part;
    for (size_t i = first; i < end; ++i) {
      const bool shared = as<Alloc>(stmts_[i]) && last_use_[i] >= end;
      (shared ? out_ : part).push_back(stmts_[i]);
    }
    const bool large = count >= kPart;
    if (large) part = {outline(seq(std::move(part)), stmts_[first]->span)};
    out_.insert(out_.end(), part.begin(), part.end());
    return end;
  }

  const std::vector<Stmt>& stmts_;
  std::vector<size_t> last_use_;  ///< of what the statement defines
  std::vector<Stmt> out_;
};

/// `s` with its long sequences cut that stand in no loop.
Stmt cut(const Stmt& s) {
  if (!s || as<For>(s) || as<While>(s) || as<Outline>(s)) return s;
  const Stmt inside = map_parts(s, [](const Expr& e) { return e; }, cut);
  const Seq* n = as<Seq>(inside);
  return n && n->stmts.size() >= kManyStatements ? Parts(*n).cut(s->span) : inside;
}

}  // namespace

FunctionRef outline_parts(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [](const Stmt& s) {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || instructions(kernel->body) <= kLargeKernel) return s;
                     const Stmt body = cut(kernel->body);
                     return body == kernel->body ? s : Stmt(copy_with(*kernel, [&](Kernel& n) { n.body = body; }));
                   }));
}

}  // namespace helve
