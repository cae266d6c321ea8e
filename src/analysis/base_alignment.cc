// The alignment of bases: the widest access of each buffer.
// What vectors, asynchronous copies and TMA demand of a base stands here once, for code generation and calls.
#include "helve/analysis/base_alignment.h"

#include <algorithm>
#include <unordered_map>

#include "helve/analysis/async_run.h"
#include "helve/analysis/bulk_copy.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

std::vector<int64_t> base_alignments(const Stmt& body, const std::vector<BufferRef>& buffers) {
  std::unordered_map<const Buffer*, int64_t> widest;
  const auto demand = [&](const Buffer& buffer, int64_t bytes) {
    int64_t& known = widest[&buffer];
    known = std::max(known, bytes);
  };
  walk_exprs(body, [&](const Expr& e) {
    const Load* load = as<Load>(e);
    if (load && load->width) demand(buffer_of(load->buffer), load->width);
  });
  walk(body, [&](const Stmt& s) {
    if (const Store* store = as<Store>(s)) demand(*store->buffer, store->width);
    const TileOp* op = as<TileOp>(s);
    if (op && op->op == TileOpcode::CpAsync) {
      const Buffer& src = *op->region(0).buffer;
      demand(src, run_length(*op) * src.dtype.bytes());
    }
    for (const size_t i : {0, 1}) {
      if (op && op->is_by_tma()) demand(*op->region(i).buffer, kBulkUnit);
    }
  });
  std::vector<int64_t> out;
  for (const BufferRef& buffer : buffers) {
    out.push_back(std::max({buffer->dtype.bytes(), int64_t{1}, widest[buffer.get()]}));
  }
  return out;
}

}  // namespace helve
