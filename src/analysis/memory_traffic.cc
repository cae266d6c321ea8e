// What a kernel could do for the memory system.
// Accesses of equal nests with equal subscripts (element_access.h) are accesses of the same elements.
#include "helve/analysis/memory_traffic.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "helve/analysis/effects.h"
#include "helve/analysis/element_access.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

constexpr int64_t kMostFetched = 128 * 1024;  // bytes an iteration, a part of the second-level cache
constexpr int64_t kCached = 1 << 20;          // bytes of a tensor that stays in a core's cache anyway
constexpr int64_t kLongRow = 16 * 1024;       // bytes of a row that the processor fetches well by itself
constexpr int64_t kAhead = 4096;              // bytes between a read and the fetch
constexpr size_t kMostReads = 256;            // of one buffer that are compared with each other

/// Does every store name all variables around it that take several values there? Names bound on the way count by what
/// they stand for.
class OnceWritten {
 public:
  explicit OnceWritten(const Kernel& kernel) {
    Facts facts;
    for (size_t d = 0; d < kernel.vars.size(); ++d) enter(facts, kernel.vars[d], int_imm(0), kernel.extents[d]);
    visit(kernel.body, facts);
  }
  std::unordered_set<const Buffer*> again;  ///< buffers of which one store may write an element twice

 private:
  void enter(Facts& facts, const VarRef& var, const Expr& begin, const Expr& extent) {
    around_.push_back(var);
    if (!has_load(begin) && !has_load(extent)) facts.bind_loop(var, begin, extent);
  }

  void branch(const If& s, const Facts& facts) {
    const Expr condition = substitute(s.condition, names_);
    for (bool holds : {true, false}) {
      Facts inside = facts;
      if (!has_load(condition)) inside.assume(holds ? condition : apply(Op::Not, {condition}));
      visit(holds ? s.then_body : s.else_body, inside);
    }
  }

  bool once(const Store& s, const Facts& facts) const {
    return !s.is_atomic() && std::all_of(around_.begin(), around_.end(), [&](const VarRef& var) {
      const auto names = [&](const Expr& index) { return mentions(substitute(index, names_), var.get()); };
      return facts.range_of(var.get()).single() || std::any_of(s.indices.begin(), s.indices.end(), names);
    });
  }

  void visit(const Stmt& s, const Facts& facts) {
    if (!s) return;
    if (const If* n = as<If>(s)) return branch(*n, facts);
    if (const Bind* n = as<Bind>(s)) {
      if (!add_value(names_, n->var, n->value)) names_.erase(n->var.get());  // as if it named no variable
    } else if (const Store* n = as<Store>(s)) {
      if (!once(*n, facts)) again.insert(n->buffer.get());
    } else if (as<While>(s)) {
      for (const RegionAccess& access : accesses(s)) again.insert(access.region.buffer.get());
    }
    if (const For* n = as<For>(s)) return loop(*n, facts);
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { visit(part, facts); });
  }

  void loop(const For& s, Facts facts) {
    const size_t depth = around_.size();
    for (size_t d = 0; d < s.vars.size(); ++d) enter(facts, s.vars[d], s.begins[d], s.extents[d]);
    visit(s.body, facts);
    around_.resize(depth);
  }

  std::vector<VarRef> around_;
  Substitution names_;
};

Facts facts_of(const Kernel& kernel) {
  Facts facts;
  for (size_t d = 0; d < kernel.vars.size(); ++d) facts.bind_loop(kernel.vars[d], int_imm(0), kernel.extents[d]);
  return facts;
}

/// The most bytes that one run of the class's nest touches, if it is known.
std::optional<int64_t> bytes_of(const ElementClass& c, DType dtype) {
  int64_t bytes = dtype.bytes();
  for (const NestLoop& loop : c.loops) {
    const std::optional<int64_t> most = interval_of(loop.extent, c.facts).high;
    if (!most || *most > kMostFetched) return {};
    bytes *= std::max<int64_t>(*most, 0);
    if (bytes > kMostFetched) return {};
  }
  return bytes;
}

/// The subscripts of `access` one step later in `var`; empty when that is the same element.
std::vector<Expr> one_step_later(const ElementAccess& access, const VarRef& var) {
  std::vector<Expr> out;
  bool moves = false;
  for (const Expr& index : access.indices) {
    moves |= mentions(index, var.get());
    out.push_back(simplify(substitute(index, {{var.get(), Expr(var) + int_imm(1)}})));
  }
  return moves ? out : std::vector<Expr>{};
}

/// Reads again what the iteration has read before: the last such loop fetches for the next iteration.
void add_repeated_reads(const Kernel& kernel, const BufferRef& buffer, const std::vector<ElementAccess>& reads,
                        std::vector<EarlyRead>* out) {
  if (reads.size() > kMostReads) return;
  const size_t outer = common_loops(reads);
  Facts facts = facts_of(kernel);
  for (size_t k = 0; k < outer; ++k) {
    const NestLoop& loop = reads[0].loops[k];
    facts.bind_loop(loop.var, loop.begin, loop.extent);
  }
  const VarRef& stepped = outer ? reads[0].loops[outer - 1].var : kernel.vars.back();
  std::vector<bool> seen(reads.size(), false);
  for (size_t first = 0; first < reads.size(); ++first) {
    const ElementAccess& a = reads[first];
    if (seen[first] || a.opaque || a.loops.size() <= outer || a.loops.back().kind != LoopKind::Vectorized) continue;
    const ElementClass c = class_of(a, outer, facts);
    size_t last = first;
    for (size_t i = first + 1; i < reads.size(); ++i) {
      const ElementAccess& b = reads[i];
      if (seen[i] || b.opaque || !same_class(c, b, outer, facts)) continue;
      seen[i] = true;
      const bool later = b.loops[outer].visit != a.loops[outer].visit;
      if (later && reads[last].loops.back().visit != b.loops.back().visit) last = i;
    }
    const ElementAccess& again = reads[last];
    if (last == first || !bytes_of(c, buffer->dtype)) continue;
    const std::vector<Expr> indices = one_step_later(again, stepped);
    if (!indices.empty()) out->push_back({again.loops.back().loop, buffer, indices});
  }
}

/// The number of inner loops that walk over neighbouring elements, and how many elements that is. 0 loops when it is
/// not known.
std::pair<size_t, int64_t> run_of(const ElementAccess& a) {
  size_t loops = 0;
  int64_t elements = 1;
  for (size_t k = a.loops.size(); k-- > 0;) {
    const NestLoop& loop = a.loops[k];
    const Expr& last = a.indices.back();
    const Expr next = substitute(last, {{loop.var.get(), Expr(loop.var) + int_imm(1)}});
    const std::optional<int64_t> step = constant_value(simplify(next - last));
    const bool only_last = std::none_of(a.indices.begin(), a.indices.end() - 1,
                                        [&](const Expr& index) { return mentions(index, loop.var.get()); });
    if (!only_last || !step || *step != elements) break;
    const int64_t* extent = int_value(loop.extent);
    if (!extent || *extent > kMostFetched) return {0, 0};
    elements *= *extent;
    if (elements > kLongRow) return {0, 0};
    ++loops;
  }
  return {loops, elements};
}

/// Short rows: the processor's own prefetching starts anew with each, so that rows to come are asked for some rows
/// ahead; at the end of the loop over rows those of the next iteration around it.
void add_short_rows(const Kernel& kernel, const BufferRef& buffer, const std::vector<ElementAccess>& reads,
                    std::vector<EarlyRead>* out) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(buffer->shape);
  const double element = static_cast<double>(buffer->dtype.bytes());  // a product of extents need not fit an integer
  if (shape && std::accumulate(shape->begin(), shape->end(), element, std::multiplies<>()) < kCached) return;
  std::set<std::pair<int, std::string>> seen;  // vector loop and subscripts
  for (const ElementAccess& a : reads) {
    if (a.opaque || a.loops.empty() || a.indices.size() < 2 || a.loops.back().kind != LoopKind::Vectorized) continue;
    const auto [inner, elements] = run_of(a);
    if (inner == 0 || inner == a.loops.size()) continue;
    const size_t row = a.loops.size() - inner - 1;
    const NestLoop& rows = a.loops[row];
    const int64_t bytes = elements * buffer->dtype.bytes();
    const int64_t* count = int_value(rows.extent);
    const int64_t* begin = int_value(rows.begin);
    if (!count || !begin || *begin != 0 || bytes > kLongRow) continue;
    const int64_t ahead = std::max<int64_t>(1, kAhead / bytes);
    const VarRef& around = row ? a.loops[row - 1].var : kernel.vars.back();
    const auto mentioned = [&](const VarRef& var) {
      return std::any_of(a.indices.begin(), a.indices.end(),
                         [&](const Expr& index) { return mentions(index, var.get()); });
    };
    if (*count < 2 * ahead || !mentioned(rows.var) || !mentioned(around)) continue;
    const Expr later = Expr(rows.var) + int_imm(ahead);
    const Substitution moved = {{rows.var.get(), floor_mod(later, int_imm(*count))},
                                {around.get(), Expr(around) + floor_div(later, int_imm(*count))}};
    EarlyRead read{a.loops.back().loop, buffer, {}};
    std::string text;
    for (const Expr& index : a.indices) {
      read.indices.push_back(substitute(index, moved));
      text += to_text(index) + ",";
    }
    if (seen.emplace(a.loops.back().visit, text).second) out->push_back(std::move(read));
  }
}

/// Of what runs as a whole: branches of the body's own condition are looked at apart.
void add_early_reads(const Kernel& kernel, const Stmt& body, std::vector<EarlyRead>* out) {
  if (const If* n = as<If>(body)) {
    add_early_reads(kernel, n->then_body, out);
    return add_early_reads(kernel, n->else_body, out);
  }
  if (!body) return;
  for (const BufferEffect& effect : buffer_effects(kernel.body)) {
    if (effect.buffer->scope != MemoryScope::Param || !effect.read || effect.written) continue;
    const std::optional<std::vector<ElementAccess>> reads = element_accesses(body, *effect.buffer);
    if (!reads || reads->empty()) continue;
    const size_t before = out->size();
    add_repeated_reads(kernel, effect.buffer, *reads, out);
    if (out->size() == before) add_short_rows(kernel, effect.buffer, *reads, out);
  }
}

}  // namespace

std::unordered_set<const Buffer*> streamed_params(const Kernel& kernel, const std::vector<MayAlias>& may_alias) {
  const OnceWritten written(kernel);
  const std::vector<BufferEffect> effects = buffer_effects(kernel.body);
  std::unordered_set<const Buffer*> out;
  for (const BufferEffect& effect : effects) {
    const Buffer* buffer = effect.buffer.get();
    const bool only_written = effect.written && !effect.read && !written.again.contains(buffer);
    const bool has_other_name = std::any_of(effects.begin(), effects.end(), [&](const BufferEffect& other) {
      return other.buffer != effect.buffer && may_overlap(may_alias, other.buffer.get(), buffer);
    });
    if (buffer->scope == MemoryScope::Param && only_written && !has_other_name) out.insert(buffer);
  }
  return out;
}

Expr flat_address(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr address = int_imm(0);
  Expr pitch = int_imm(1);
  for (size_t d = indices.size(); d-- > 0;) {
    const Expr stride = buffer.strides.empty() ? pitch : buffer.strides[d];
    address = address + indices[d] * stride;
    if (buffer.strides.empty()) pitch = pitch * buffer.shape[d];
  }
  return address;
}

bool starts_aligned(const Expr& index, const Var* lane, int64_t unit) {
  const Sum sum = sum_of(index);
  return sum.constant % unit == 0 && std::all_of(sum.terms.begin(), sum.terms.end(), [&](const Term& term) {
           return term.coefficient % unit == 0 || (term.factors.size() == 1 && term.factors[0].get() == lane);
         });
}

std::vector<EarlyRead> early_reads(const Kernel& kernel) {
  std::vector<EarlyRead> out;
  add_early_reads(kernel, kernel.body, &out);
  return out;
}

}  // namespace helve
