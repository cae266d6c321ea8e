// What a kernel could do for the memory system.
// Accesses of equal nests with equal subscripts (element_access.h) are accesses of the same elements.
#include "helve/analysis/memory_traffic.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "helve/analysis/effects.h"
#include "helve/analysis/element_access.h"
#include "helve/analysis/path_facts.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/address_terms.h"

namespace helve {

namespace {

constexpr int64_t kMaxFetched = 128 * 1024;  // bytes an iteration, a part of the second-level cache
constexpr int64_t kCached = 1 << 20;          // bytes of a tensor that stays in a core's cache anyway
constexpr int64_t kLongRow = 16 * 1024;       // bytes of a row that the processor fetches well by itself
constexpr int64_t kAhead = 4096;              // bytes between a read and the fetch
constexpr size_t kMaxReads = 256;            // of one buffer that are compared with each other

/// Does the access happen once for each element at most? Then it names all variables around it that take several
/// values there.
bool happens_once(const Access& access, PathFacts& facts) {
  if (access.mode != StoreMode::Write) return false;
  const Facts& known = facts.after(access.path);
  return std::all_of(access.path.begin(), access.path.end(), [&](const StepRef& step) {
    if (step->stmt && step->stmt->kind == StmtKind::While) return false;
    if (step->begins.empty()) return true;
    return std::all_of(step->vars.begin(), step->vars.end(), [&](const VarRef& var) {
      const auto names = [&](const Range& range) { return range.point && mentions(range.begin, var.get()); };
      return known.range_of(var.get()).single() || std::any_of(access.ranges.begin(), access.ranges.end(), names);
    });
  });
}

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
    if (!most || *most > kMaxFetched) return {};
    bytes *= std::max<int64_t>(*most, 0);
    if (bytes > kMaxFetched) return {};
  }
  return bytes;
}

/// Has the access subscripts that can be computed ahead of time? What they read may be written until then, and may end.
bool is_known_ahead(const ElementAccess& access) {
  return !access.opaque && std::none_of(access.indices.begin(), access.indices.end(), has_load);
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
  if (reads.size() > kMaxReads) return;
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
    if (seen[first] || !is_known_ahead(a) || a.loops.size() <= outer) continue;
    if (a.loops.back().kind != LoopKind::Vectorized) continue;
    const ElementClass c = class_of(a, outer, facts);
    size_t last = first;
    for (size_t i = first + 1; i < reads.size(); ++i) {
      const ElementAccess& b = reads[i];
      if (seen[i] || !is_known_ahead(b) || !same_class(c, b, outer, facts)) continue;
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
    if (!extent || *extent > kMaxFetched) return {0, 0};
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
  std::set<std::pair<size_t, std::string>> seen;  // vector loop and subscripts
  for (const ElementAccess& a : reads) {
    if (!is_known_ahead(a) || a.loops.empty() || a.indices.size() < 2) continue;
    if (a.loops.back().kind != LoopKind::Vectorized) continue;
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
void add_early_reads(const Kernel& kernel, const Stmt& body, const std::vector<BufferRef>& read,
                     std::vector<EarlyRead>* out) {
  if (const If* n = as<If>(body)) {
    add_early_reads(kernel, n->then_body, read, out);
    return add_early_reads(kernel, n->else_body, read, out);
  }
  if (!body) return;
  const AccessModel model = access_model(body);
  for (const BufferRef& buffer : read) {
    const std::optional<std::vector<ElementAccess>> reads = element_accesses(model, *buffer);
    if (!reads || reads->empty()) continue;
    const size_t before = out->size();
    add_repeated_reads(kernel, buffer, *reads, out);
    if (out->size() == before) add_short_rows(kernel, buffer, *reads, out);
  }
}

}  // namespace

std::unordered_set<const Buffer*> streamed_params(const Kernel& kernel, const std::vector<MayAlias>& may_alias) {
  const AccessModel model = access_model(Stmt(&kernel), may_alias);
  PathFacts facts(model);
  std::unordered_set<const Buffer*> params, others, out;
  for (const Access& access : model.accesses) {
    const Buffer* buffer = access.buffer.get();
    if (buffer->scope != MemoryScope::Param) continue;
    params.insert(buffer);
    if (!others.contains(buffer) && !(access.write && happens_once(access, facts))) others.insert(buffer);
  }
  for (const Buffer* buffer : params) {
    const bool has_other_name = std::any_of(params.begin(), params.end(), [&](const Buffer* other) {
      return other != buffer && may_overlap(may_alias, other, buffer);
    });
    if (!others.contains(buffer) && !has_other_name) out.insert(buffer);
  }
  return out;
}

std::vector<EarlyRead> early_reads(const Kernel& kernel) {
  std::vector<EarlyRead> out;
  std::vector<BufferRef> read;
  for (const BufferEffect& effect : buffer_effects(kernel.body)) {
    if (effect.buffer->scope == MemoryScope::Param && !effect.written) read.push_back(effect.buffer);
  }
  if (!read.empty()) add_early_reads(kernel, kernel.body, read, &out);
  return out;
}

}  // namespace helve
