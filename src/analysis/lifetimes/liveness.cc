// Which shared buffers hold values at once.
// A buffer holds a value where it may have been written since its allocation, and may be read before it is written
// wholly or allocated again. Statements are summarised once, from the leaves up; then one walk backwards knows of every
// statement what is read behind it.
#include "liveness.h"

#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/ir/tensor/visit.h"
#include "overwrites.h"

namespace helve::lifetimes {

namespace {

/// What a statement does to the buffers.
struct Summary {
  BufferSet read;  ///< of which it may read what was written before it
  BufferSet ended;  ///< whose values from before it nobody reads behind it: overwritten, or allocated
  BufferSet written;  ///< of which it may write elements
  BufferSet born;  ///< that it allocates
};

bool is_leaf(const Stmt& s) {
  const For* loop = as<For>(s);
  if (loop) return loop->loop == LoopKind::Thread;
  return s->kind != StmtKind::Seq && s->kind != StmtKind::If && s->kind != StmtKind::While &&
         s->kind != StmtKind::ForTiles;
}

class Liveness {
 public:
  Liveness(const std::vector<BufferRef>& buffers, const Numbers& numbers, Interference& interference)
      : buffers_(buffers), numbers_(numbers), interference_(interference) {}

  void run(const Stmt& body) {
    BufferSet before, behind;
    visit(body, before, behind);
  }

 private:
  const Summary& summary(const Stmt& s) {
    const auto found = summaries_.find(s.get());
    if (found != summaries_.end()) return found->second;
    Summary made = summarise(s);
    return summaries_.emplace(s.get(), std::move(made)).first->second;
  }

  Summary summarise(const Stmt& s) {
    Summary out;
    if (const Alloc* n = as<Alloc>(s)) {
      const auto found = numbers_.find(n->buffer.get());
      if (found != numbers_.end()) {
        out.ended.add(found->second);
        out.born.add(found->second);
      }
      return out;
    }
    if (const Seq* n = as<Seq>(s)) {
      for (const Stmt& part : n->stmts) append(out, summary(part));
      return out;
    }
    if (is_leaf(s)) return leaf(s);
    add_reads(direct_accesses(s), out.read);
    const BufferSet condition = out.read;
    for_each_part(
        s, [](const Expr&) {},
        [&](const Stmt& part) {
          const Summary& inside = summary(part);
          out.read.add(inside.read);
          out.written.add(inside.written);
          out.born.add(inside.born);
        });
    if (const If* n = as<If>(s)) end_in_both(*n, out.ended);
    if (const For* n = as<For>(s)) end_in_loop(*n, s, out);
    out.ended.remove(condition);
    return out;
  }

  void end_in_both(const If& n, BufferSet& ended) {
    if (!n.else_body) return;
    const BufferSet one = summary(n.then_body).ended, other = summary(n.else_body).ended;
    one.for_each([&](size_t number) {
      if (other.contains(number)) ended.add(number);
    });
  }

  /// A loop that runs ends what its first iteration ends; one that writes a part in each iteration may write all.
  void end_in_loop(const For& n, const Stmt& s, Summary& out) {
    const bool runs = std::all_of(n.extents.begin(), n.extents.end(), [](const Expr& extent) {
      const int64_t* value = int_value(extent);
      return value && *value > 0;
    });
    if (runs) out.ended.add(summary(n.body).ended);
    out.written.for_each([&](size_t number) {
      const bool may = !out.read.contains(number) && !out.ended.contains(number);
      if (may && overwrites(s, *buffers_[number], engine_)) out.ended.add(number);
    });
  }

  Summary leaf(const Stmt& s) {
    Summary out;
    const std::vector<RegionAccess> list = accesses(s);
    add_reads(list, out.read);
    for (const RegionAccess& access : list) {
      const auto found = numbers_.find(access.region.buffer.get());
      if (found == numbers_.end() || !access.write || out.written.contains(found->second)) continue;
      out.written.add(found->second);
      if (!out.read.contains(found->second) && overwrites(s, *access.region.buffer, engine_)) {
        out.ended.add(found->second);
      }
    }
    return out;
  }

  void add_reads(const std::vector<RegionAccess>& list, BufferSet& read) const {
    for (const RegionAccess& access : list) {
      const auto found = numbers_.find(access.region.buffer.get());
      if (found != numbers_.end() && !access.write) read.add(found->second);
    }
  }

  static void append(Summary& first, const Summary& second) {
    BufferSet read = second.read;
    read.remove(first.ended);
    first.read.add(read);
    first.ended.add(second.ended);
    first.written.remove(second.born);
    first.written.add(second.written);
    first.born.add(second.born);
  }

  /// The buffers that hold values where one part of `s` has run: `behind` are read behind it, `before` may have been
  /// written before it. What `s` writes meets them.
  void visit(const Stmt& s, const BufferSet& before, const BufferSet& behind) {
    if (!s) return;
    if (const Seq* n = as<Seq>(s)) {
      std::vector<BufferSet> defined = {before};
      for (const Stmt& part : n->stmts) defined.push_back(after(part, defined.back()));
      BufferSet live = behind;
      for (size_t i = n->stmts.size(); i-- > 0;) {
        visit(n->stmts[i], defined[i], live);
        live = live_before(n->stmts[i], live);
      }
      return;
    }
    if (is_leaf(s)) {
      const Summary& known = summary(s);
      BufferSet holding, defined = after(s, before);
      behind.for_each([&](size_t number) {
        if (defined.contains(number)) holding.add(number);
      });
      interference_.add(known.written, holding);
      return;
    }
    BufferSet inside = before, live = behind;
    if (s->kind != StmtKind::If) {
      const Summary& known = summary(s);
      inside.add(known.written);
      for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { live.add(summary(part).read); });
      add_reads(direct_accesses(s), live);
    }
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { visit(part, inside, live); });
  }

  BufferSet after(const Stmt& s, const BufferSet& before) {
    const Summary& known = summary(s);
    BufferSet out = before;
    if (s->kind == StmtKind::Alloc) out.remove(known.born);
    out.add(known.written);
    return out;
  }

  BufferSet live_before(const Stmt& s, BufferSet behind) {
    const Summary& known = summary(s);
    behind.remove(known.ended);
    behind.add(known.read);
    return behind;
  }

  const std::vector<BufferRef>& buffers_;
  const Numbers& numbers_;
  Interference& interference_;
  ExactEngine engine_;
  std::unordered_map<const StmtNode*, Summary> summaries_;
};

}  // namespace

void add_live_together(const Kernel& kernel, const std::vector<BufferRef>& buffers, const Numbers& numbers,
                       Interference& interference) {
  Liveness(buffers, numbers, interference).run(kernel.body);
}

}  // namespace helve::lifetimes
