// Rules of what tells the memory system something: alignments, stores around the caches, prefetches.
// What the machine would refuse or split is refused here, so that code generation prints each as one instruction.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "verify_rules.h"

namespace helve::verify_rules {

namespace {

constexpr int64_t kMaxUnit = 4096;  // bytes of a page
constexpr int64_t kMinPiece = 16;   // bytes of the least store around the caches
constexpr int64_t kMaxWidth = 16;   // bytes of the widest access of a thread
constexpr int64_t kMaxPiece = 64;   // of a line of the cache

bool is_power_of_two(int64_t value) { return value > 0 && std::has_single_bit(static_cast<uint64_t>(value)); }

void require_global(const char* function, const char* parameter, const Buffer& buffer, const Span& span) {
  if (is_global(buffer)) return;
  refuse_argument(function, parameter, fmt::format("'{}'", buffer.name), "it is not in global memory",
                  "name a tensor parameter, or a buffer of T.alloc_global", span, {declaration_note(buffer)});
}

}  // namespace

void verify_misalignment(const Buffer& buffer, int64_t unit, const Span& span) {
  require_global("T.misalignment", "tensor", buffer, span);
  if (is_power_of_two(unit) && unit >= 2 && unit <= kMaxUnit) return;
  refuse_argument("T.misalignment", "unit", std::to_string(unit),
                  fmt::format("it is no power of two from 2 to {}", kMaxUnit), "write 64 for a line of the cache",
                  span);
}

void verify_vector_access(const std::string& operation, const char* operand, const Buffer& buffer,
                          const std::vector<Expr>& indices, int64_t width, const For* lanes, const Span& span) {
  const auto refuse = [&](const char* parameter, const std::string& value, const std::string& reason,
                          const char* remedy) { refuse_argument(operation, parameter, value, reason, remedy, span); };
  const std::string element = fmt::format("an element of '{}'", buffer.name);
  const int64_t* extent = lanes ? int_value(lanes->extents[0]) : nullptr;
  if (!extent) {
    refuse(operand, element, "it is not accessed by each lane of a vectorized loop",
           "access it directly in T.vectorized of a constant");
  }
  walk(lanes->body, [&](const Stmt& s) {
    const Bind* bind = as<Bind>(s);
    const auto names = [&](const Expr& index) { return mentions(index, bind->var.get()); };
    if (!bind || std::none_of(indices.begin(), indices.end(), names)) return;
    refuse(operand, element, fmt::format("its subscripts name '{}', which each lane binds", bind->var->name),
           "write the value in its place");
  });
  if (buffer.scope == MemoryScope::Local) {
    refuse(operand, element, "it is local memory, whose elements are accessed one by one", "access it as usual");
  }
  if (!is_power_of_two(width) || width <= buffer.dtype.bytes() || width > kMaxWidth) {
    refuse("width", std::to_string(width),
           fmt::format("it is no power of two above {}, the bytes of an element, and up to {}", buffer.dtype.bytes(),
                       kMaxWidth),
           "write 16 for the widest access");
  }
  if (*extent * buffer.dtype.bytes() % width != 0) {
    refuse("width", std::to_string(width), "the lanes are no whole number of accesses",
           "give the loop more lanes, or write a smaller width");
  }
}

void verify_nontemporal_store(const Store& store, const For* lanes) {
  const Buffer& buffer = *store.buffer;
  const auto refuse = [&](const char* parameter, const std::string& value, const char* reason, const char* remedy) {
    refuse_argument("T.store_nontemporal", parameter, value, reason, remedy, store.span);
  };
  require_global("T.store_nontemporal", "dst", buffer, store.span);
  if (!is_power_of_two(store.piece) || store.piece < kMinPiece || store.piece > kMaxPiece) {
    refuse("piece", std::to_string(store.piece), "pieces have 16, 32 or 64 bytes", "write 64 for a line of the cache");
  }
  const std::string dst = fmt::format("an element of '{}'", buffer.name);
  const int64_t* begin = lanes ? int_value(lanes->begins[0]) : nullptr;
  const int64_t* extent = lanes ? int_value(lanes->extents[0]) : nullptr;
  if (!begin || *begin != 0 || !extent) {
    refuse("dst", dst, "it is not stored by each lane of a vectorized loop from 0",
           "store it directly in T.vectorized of a constant");
  }
  if (*extent * buffer.dtype.bytes() % store.piece != 0) {
    refuse("piece", std::to_string(store.piece), "the lanes are no whole number of pieces",
           "give the loop more lanes, or write smaller pieces");
  }
  const int64_t* stride = buffer.strides.empty() ? nullptr : int_value(buffer.strides.back());
  bool contiguous = !store.indices.empty() && (buffer.strides.empty() || (stride && *stride == 1));
  for (size_t d = 0; contiguous && d + 1 < store.indices.size(); ++d) {
    contiguous = !mentions(store.indices[d], lanes->vars[0].get());
  }
  if (contiguous && coefficient_of(sum_of(store.indices.back()), lanes->vars[0].get()) == 1) return;
  refuse("dst", dst, "the lanes are not next to each other", "add the lane to the last subscript");
}

void verify_prefetch(const Prefetch& prefetch) {
  require_global("T.prefetch", "src", *prefetch.buffer, prefetch.span);
  for (const Expr& index : prefetch.indices) {
    if (!has_load(index)) continue;
    refuse_argument("T.prefetch", "src", fmt::format("an element of '{}'", prefetch.buffer->name),
                    "its subscripts read memory", "prefetch what is known without reading", prefetch.span);
  }
}

}  // namespace helve::verify_rules
