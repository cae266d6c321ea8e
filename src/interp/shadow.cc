// The life of watched memory.
// A new life is a later birth: no cell is cleared, so that forgetting costs nothing.
#include "shadow.h"

namespace helve::interp {

void Shadow::begin(int64_t low, int64_t count, const Span& span) {
  low_ = low;
  cells_.resize(static_cast<size_t>(count));
  allocated_ = span;
  forget(nullptr);
}

void Shadow::adopt(int64_t low, int64_t count) {
  begin(low, count, {});
  written_ = true;
}

void Shadow::forget(const Span* loop) {
  born_ = clock_.tick();
  forgotten_ = loop ? *loop : Span{};
}

}  // namespace helve::interp
