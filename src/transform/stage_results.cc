// Results of tensor cores leave through shared memory: stmatrix, then TMA.
// Input: kernels with tile operations, whose fragments have the layouts that products demand and whose pipelined loops
// have their stages. Output: copies of such fragments to tensors of the call go part by part: matrices are stored to
// one of up to two slots of shared memory, from which TMA stores a box. Elements past the end of the tensor are not
// written, whatever the tile. Warpgroups that have rows of their own store these by themselves. While TMA reads one
// slot, the threads fill the other; what it reads after the last part, it reads while the block goes on, and the next
// result waits for it. Where nothing can be staged, dispatch says why (dispatch/staged_result.h).
//
// Before:  T.copy(c, C[i * 128:i * 128 + 128, :])       # c: (128, 256) float32, C bfloat16
// After:   rounded = T.alloc_fragment((128, 256), "bfloat16", layout=...)
//          T.copy(c, rounded)
//          T.wait_bulk()
//          T.stmatrix(rounded[:, 0:64], staged, layout=...)
//          T.cp_async_bulk_tensor(staged[0:64, :], C[i * 128:i * 128 + 64, 0:64], bulk_group=True)
//          T.cp_async_bulk_tensor(staged[64:128, :], C[i * 128 + 64:i * 128 + 128, 0:64], bulk_group=True, warpgroup=1)
//          T.commit_bulk()
//          T.stmatrix(rounded[:, 64:128], staged_1, layout=...)
//          ...
//          T.wait_bulk(pending=1, sources=True)
//          T.stmatrix(rounded[:, 128:192], staged, layout=...)
//          ...
//          T.wait_bulk(sources=True)                     # at the end of the kernel
//
// Stores to one tensor that follow each other stay in order: the first wait of a result is for all data of those
// before, until relax_waits finds that nothing depends on it.
#include "helve/dispatch/staged_result.h"

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

/// May the copy be staged, by what the program asks for?
bool may_be_staged(const TileOp& op) {
  if (op.op != TileOpcode::Copy) return false;
  const std::string& asked = op.text(op.row().index_of("dispatch"));
  return asked.empty() || asked == kStaged;
}

class Results final : public ScopedRewriter {
 public:
  Results(const Function& f, const PassOptions& options) : ScopedRewriter(f), function_(f), options_(options) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    if (const Kernel* kernel = as<Kernel>(s)) return with_memory(*kernel, s);
    const TileOp* op = as<TileOp>(s);
    if (!op || !may_be_staged(*op) || !enclosing_kernel()) return s;
    LoweringContext context;
    context.function = &function_;
    context.kernel = enclosing_kernel();
    context.facts = &facts;
    context.machine = &options_.machine;
    const Stmt simple =
        map_parts(s, [&](const Expr& e) { return simplify(e, facts); }, [](const Stmt& part) { return part; });
    std::string reason;
    const std::optional<StagedResult> result =
        staged_result(*as<TileOp>(simple), context, options_.kept_shared_bytes + taken_, &reason);
    if (!result) return s;
    if (options_.choices) options_.choices->push_back({operation_text(*op), s->span, std::string(kStaged), {}});
    return staged(*op, *result, facts);
  }

 private:
  Stmt staged(const TileOp& copy, const StagedResult& result, const Facts& facts) {
    const std::vector<BufferRef> slots = memory_for(result, copy.span);
    std::vector<Stmt> out;
    const BufferRef rounded = in_type_of(result, copy.region(0).buffer, copy.span, &out);
    const int64_t count = static_cast<int64_t>(slots.size());
    for (size_t k = 0; k < result.parts.size(); ++k) {
      const StagedResult::Part& part = result.parts[k];
      const Region slot = whole_region(slots[k % slots.size()]);
      if (k == 0) out.push_back(tile_op(TileOpcode::WaitBulk, {}, copy.span));
      if (k >= slots.size()) out.push_back(tile_op(TileOpcode::WaitBulk, {count - 1, true}, copy.span));
      out.push_back(
          tile_op(TileOpcode::StoreMatrix, {result.of_fragment(rounded, part), slot, part.layout}, copy.span));
      const std::vector<StagedResult::Box> boxes = result.boxes_of(part, slots[k % slots.size()], facts);
      for (int64_t group = 0; group < static_cast<int64_t>(boxes.size()); ++group) {
        const auto& [memory, tensor] = boxes[static_cast<size_t>(group)];
        out.push_back(tile_op(TileOpcode::CpAsyncBulkTensor,
                              {memory, tensor, false, false, false, true, int64_t{1}, group}, copy.span));
      }
      out.push_back(tile_op(TileOpcode::CommitBulk, {}, copy.span));
    }
    return seq(std::move(out), copy.span);
  }

  /// The fragment in the type of the tensor, by statements that `out` receives.
  static BufferRef in_type_of(const StagedResult& result, const BufferRef& fragment, const Span& span,
                              std::vector<Stmt>* out) {
    if (fragment->dtype == result.slot->dtype) return fragment;
    const BufferRef plain = make_buffer("rounded", result.slot->dtype, MemoryScope::Fragment, fragment->shape);
    const BufferRef rounded = with_layout(plain, thread_layout_of(*fragment), span);
    out->push_back(alloc(rounded, span));
    out->push_back(tile_op(TileOpcode::Copy, {whole_region(fragment), whole_region(rounded)}, span));
    return rounded;
  }

  /// Slots for the parts; results whose parts have one shape share them.
  std::vector<BufferRef> memory_for(const StagedResult& result, const Span& span) {
    const auto alike = [&](const std::vector<BufferRef>& slots) {
      return static_cast<int64_t>(slots.size()) >= result.slots && slots[0]->dtype == result.slot->dtype &&
             constant_shape(slots[0]->shape) == constant_shape(result.slot->shape);
    };
    const auto known = std::find_if(memory_.begin(), memory_.end(), alike);
    if (known != memory_.end()) return *known;
    memory_.emplace_back();
    for (int64_t k = 0; k < result.slots; ++k) {
      memory_.back().push_back(declare_again(*result.slot));
      begins_.push_back(alloc(memory_.back().back(), span));
      taken_ += shared_size(*result.slot);
    }
    return memory_.back();
  }

  /// The kernel with its slots, which live as long as it does, and with a wait for their last readers.
  Stmt with_memory(const Kernel& kernel, const Stmt& self) {
    memory_.clear();
    taken_ = 0;
    std::vector<Stmt> body = std::exchange(begins_, {});
    if (body.empty()) return self;
    body.push_back(kernel.body);
    body.push_back(tile_op(TileOpcode::WaitBulk, {int64_t{0}, true}, kernel.span));
    return Stmt(copy_with(kernel, [&](Kernel& out) { out.body = seq(std::move(body), kernel.body->span); }));
  }

  const Function& function_;
  const PassOptions& options_;
  // Of the kernel that is being read:
  std::vector<std::vector<BufferRef>> memory_;  ///< slots of one shape
  std::vector<Stmt> begins_;  ///< their allocations
  int64_t taken_ = 0;  ///< their bytes
};

}  // namespace

FunctionRef stage_results(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Results(*f, options).rewrite(f->body));
}

}  // namespace helve
