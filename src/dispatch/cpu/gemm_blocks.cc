// Matrix products on the CPU as register blocks over packed panels.
// A block of C stays in vector registers during the loop over the depth; operands are packed first in the order in
// which the block reads them, which also converts narrow types, undoes transposes and tiles, and pads the last panels
// with zeros.
//
//   for each block of the depth:                     KC deep
//     for each block of columns: pack B              panels (NR columns) of rows: one load a vector
//       for each block of rows: pack A               rows of MR: one broadcast an element
//         for each MR rows of A, for each panel of B: acc[MR, NR] = sum over the depth; C += acc
#include <algorithm>

#include "element_nest.h"
#include "helve/dispatch/reduction.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

// Blocks in elements: MR rows of A stay in the first cache, packed A and B in the second.
constexpr int64_t kDepthBytes = 1024;  // KC elements of the accumulator
constexpr int64_t kPackedRows = 256;  // MC
constexpr int64_t kPackedColumns = 512;  // NC
constexpr int64_t kDepthStep = 32;  // KC is a multiple: the extents of usual tiles
constexpr int64_t kLongestDepth = 4096;  // of a product that may not be split along the depth

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

Stmt serial(const VarRef& var, const Expr& extent, const Stmt& body) {
  return for_loop(LoopKind::Serial, var, extent, body);
}
Stmt parallel(const VarRef& var, const Expr& extent, const Stmt& body) {
  return for_loop(LoopKind::Parallel, var, extent, body);
}

/// The largest block of at most `most` that divides `n` evenly, in multiples of `step`.
int64_t even_block(int64_t n, int64_t most, int64_t step) {
  const int64_t parts = std::max<int64_t>(1, (n + most - 1) / most);
  return std::max(step, round_up((n + parts - 1) / parts, step));
}

/// One step of a blocked dimension: its begin and the remaining extent.
struct Block {
  Expr start;
  Expr extent;
};

class BlockedGemm {
 public:
  BlockedGemm(const TileOp& op, const LoweringContext& context)
      : a_(op.region(0)),
        b_(op.region(1)),
        c_(op.region(2)),
        transpose_a_(op.flag(3)),
        transpose_b_(op.flag(4)),
        clear_(op.flag(5)),
        type_(accumulator(op.region(2).buffer->dtype)),
        rows_(c_.shape()[0]),
        columns_(c_.shape()[1]),
        depth_(a_.shape()[transpose_a_ ? 0 : 1]) {
    choose_registers(context.machine->vector_bytes);
    choose_blocks();
  }

  /// Why this product is left to another schedule; empty if it is not.
  std::string declines() const {
    const int64_t* n = int_value(columns_);
    if (n && *n < 2) return "C has fewer than two columns";
    const int64_t* m = int_value(rows_);
    if (m && *m == 0) return "C has no rows";
    const int64_t* k = int_value(depth_);
    if (type_ != c_.buffer->dtype && !k) return "C rounds its sums and the depth is not constant";
    if (type_ != c_.buffer->dtype && *k > kLongestDepth) return "C rounds its sums and the depth is large";
    return {};
  }

  Stmt lower() {
    VarRef block = make_var("kb");
    const Expr start = Expr(block) * int_imm(kc_);
    VarRef depth = make_var("kc");
    Stmt body = seq({bind(depth, min(int_imm(kc_), depth_ - start)),
                     column_blocks({start, Expr(depth)}, apply(Op::Eq, {Expr(block), int_imm(0)}))});
    // A cleared C is written even if the sum is empty.
    const Expr blocks = ceil_div(depth_, int_imm(kc_));
    return serial(block, clear_ ? max(int_imm(1), blocks) : blocks, body);
  }

 private:
  void choose_registers(int64_t vector_bytes) {
    const bool many = vector_bytes >= 64;  // 32 registers
    lanes_ = vector_bytes / type_.bytes();
    vectors_ = 2;
    if (const int64_t* n = int_value(columns_)) {
      while (lanes_ > 2 && lanes_ / 2 >= *n) lanes_ /= 2;
      if (*n <= lanes_) vectors_ = 1;
    }
    nr_ = lanes_ * vectors_;
    const int64_t most = many ? 14 : vectors_ == 1 ? 12 : 6;
    mr_ = many ? 12 : most;
    if (const int64_t* m = int_value(rows_)) {
      // Padded rows cost as much as real ones; a block costs about one row more than its rows.
      int64_t best = 0;
      for (int64_t r = 1; r <= most; ++r) {
        const int64_t cost = (*m + r - 1) / r * (r + 1);
        if (best == 0 || cost <= best) best = cost, mr_ = r;
      }
    }
  }

  void choose_blocks() {
    const int64_t* k = int_value(depth_);
    const int64_t most = std::max<int64_t>(kDepthStep, kDepthBytes / type_.bytes());
    kc_ = k ? even_block(*k, type_ != c_.buffer->dtype ? std::max<int64_t>(*k, 1) : most,
                         *k < kDepthStep ? 1 : kDepthStep)
            : most;
    const int64_t* m = int_value(rows_);
    mc_ = m ? even_block(*m, round_up(kPackedRows, mr_), mr_) : round_up(kPackedRows, mr_);
    const int64_t* n = int_value(columns_);
    nc_ = n ? even_block(*n, round_up(kPackedColumns, nr_), nr_) : round_up(kPackedColumns, nr_);
    packed_a_ = transpose_a_ ? make_buffer("A_panels", type_, MemoryScope::Shared, constants({mc_ / mr_, kc_, mr_}))
                             : make_buffer("A_rows", type_, MemoryScope::Shared, constants({mc_, kc_}));
    packed_b_ = make_buffer("B_panels", type_, MemoryScope::Shared, constants({nc_ / nr_, kc_, nr_}));
    acc_ = make_buffer("acc", type_, MemoryScope::Local, constants({mr_, vectors_, lanes_}));
  }

  static std::vector<Expr> constants(std::initializer_list<int64_t> values) {
    std::vector<Expr> out;
    for (int64_t v : values) out.push_back(int_imm(v));
    return out;
  }
  Expr zero() const { return number_imm(0, type_); }

  Expr element(const Region& region, bool transposed, const Expr& first, const Expr& second) const {
    std::vector<Expr> at = transposed ? std::vector<Expr>{second, first} : std::vector<Expr>{first, second};
    return cast(load(region.buffer, region_indices(region, at)), type_);
  }

  Stmt column_blocks(const Block& depth, const Expr& first) {
    VarRef block = make_var("nb");
    VarRef left = make_var("nc");
    const Expr start = Expr(block) * int_imm(nc_);
    const Block columns{start, Expr(left)};
    return serial(block, ceil_div(columns_, int_imm(nc_)),
                  seq({bind(left, min(int_imm(nc_), columns_ - start)), alloc(packed_b_), pack_b(depth, columns),
                       row_blocks(depth, columns, first)}));
  }

  Stmt row_blocks(const Block& depth, const Block& columns, const Expr& first) {
    VarRef block = make_var("mb");
    VarRef left = make_var("mc");
    const Expr start = Expr(block) * int_imm(mc_);
    const Block rows{start, Expr(left)};
    VarRef q = make_var("q");
    VarRef p = make_var("p");
    Stmt panels =
        serial(p, ceil_div(rows.extent, int_imm(mr_)),
               serial(q, ceil_div(columns.extent, int_imm(nr_)), registers(depth, rows, columns, p, q, first)));
    return serial(block, ceil_div(rows_, int_imm(mc_)),
                  seq({bind(left, min(int_imm(mc_), rows_ - start)), alloc(packed_a_), pack_a(depth, rows), panels}));
  }

  /// Rows of A, each contiguous along the depth, as a broadcast needs. If A is transposed, MR columns side by side.
  Stmt pack_a(const Block& depth, const Block& rows) {
    const Expr padded = ceil_div(rows.extent, int_imm(mr_)) * int_imm(mr_);
    if (!transpose_a_) {
      const bool tiled = is_tiled(*a_.buffer);
      const int64_t tile = tiled ? last_tile(a_) : 1;
      Stmt copy = element_nest(
          {{rows.extent, 1}, {depth.extent, kc_ % tile == 0 ? tile : 1}}, [&](const std::vector<Expr>& at) {
            return store(packed_a_, at, element(a_, false, plus(rows.start, at[0]), plus(depth.start, at[1])));
          });
      VarRef r = make_var("r");
      VarRef k = make_var("k");
      Stmt pad = parallel(r, padded - rows.extent,
                          parallel(k, depth.extent, store(packed_a_, {rows.extent + Expr(r), Expr(k)}, zero())));
      return seq({copy, pad});
    }
    return panels_of(rows.extent, mr_, [&](const Expr& p, const Expr& there) {
      VarRef k = make_var("k");
      return serial(k, depth.extent, padded_row(packed_a_, {p, Expr(k)}, there, mr_, [&](const Expr& r) {
                      return element(a_, true, rows.start + (p * int_imm(mr_) + r), plus(depth.start, Expr(k)));
                    }));
    });
  }

  Stmt pack_b(const Block& depth, const Block& columns) {
    return panels_of(columns.extent, nr_, [&](const Expr& q, const Expr& there) {
      auto value = [&](const Expr& k, const Expr& j) {
        return element(b_, transpose_b_, plus(depth.start, k), columns.start + (q * int_imm(nr_) + j));
      };
      if (!transpose_b_) {
        VarRef k = make_var("k");
        return serial(k, depth.extent, padded_row(packed_b_, {q, Expr(k)}, there, nr_, [&](const Expr& j) {
                        return value(Expr(k), j);
                      }));
      }
      // The source's rows run along the depth: read them in order and write across the panel.
      auto column = [&](const Expr& begin, const Expr& extent, bool pad) {
        VarRef j = make_var("j");
        VarRef k = make_var("k");
        const Expr what = pad ? zero() : value(Expr(k), Expr(j));
        Stmt body = serial(k, depth.extent, store(packed_b_, {q, Expr(k), Expr(j)}, what));
        return for_loop(LoopKind::Serial, std::vector<VarRef>{j}, {begin}, {extent}, body);
      };
      Stmt values = column(int_imm(0), there, false);
      return fills(there, nr_) ? values : seq({values, column(there, int_imm(nr_) - there, true)});
    });
  }

  /// `body(panel, width)` for each panel of `width` elements of an extent, and `body(panel, rest)` for the rest.
  static Stmt panels_of(const Expr& extent, int64_t width, const std::function<Stmt(const Expr&, const Expr&)>& body) {
    const Expr whole = floor_div(extent, int_imm(width));
    const Expr rest = floor_mod(extent, int_imm(width));
    VarRef panel = make_var("panel");
    Stmt full = serial(panel, whole, body(Expr(panel), int_imm(width)));
    VarRef last = make_var("panel");
    return seq({full, for_loop(LoopKind::Serial, std::vector<VarRef>{last}, {whole}, {min(int_imm(1), rest)},
                               body(Expr(last), rest))});
  }

  /// Are `there` elements a whole row of `width`, with nothing to pad?
  static bool fills(const Expr& there, int64_t width) {
    const int64_t* count = int_value(there);
    return count && *count == width;
  }

  /// `there` elements of a row of `width`, then zeros.
  Stmt padded_row(const BufferRef& buffer, const std::vector<Expr>& row, const Expr& there, int64_t width,
                  const std::function<Expr(const Expr&)>& value) const {
    auto place = [&](const VarRef& j) {
      std::vector<Expr> at = row;
      at.push_back(Expr(j));
      return at;
    };
    VarRef j = make_var("j");
    Stmt values = parallel(j, there, store(buffer, place(j), value(Expr(j))));
    if (fills(there, width)) return values;
    VarRef pad = make_var("j");
    return seq({values, for_loop(LoopKind::Serial, std::vector<VarRef>{pad}, {there}, {int_imm(width) - there},
                                 store(buffer, place(pad), zero()))});
  }

  /// A statement for each vector of the register block; all its indices but the lane are constants after unrolling.
  Stmt each_vector(const std::function<Stmt(const Expr& r, const Expr& v, const Expr& l)>& body) {
    VarRef r = make_var("r");
    VarRef v = make_var("v");
    VarRef l = make_var("l");
    Stmt lanes = for_loop(LoopKind::Vectorized, l, int_imm(lanes_), body(Expr(r), Expr(v), Expr(l)));
    return for_loop(LoopKind::Unroll, r, int_imm(mr_), for_loop(LoopKind::Unroll, v, int_imm(vectors_), lanes));
  }

  Stmt registers(const Block& depth, const Block& rows, const Block& columns, const VarRef& p, const VarRef& q,
                 const Expr& first) {
    auto at = [](const Expr& r, const Expr& v, const Expr& l) { return std::vector<Expr>{r, v, l}; };
    auto lane = [&](const Expr& v, const Expr& l) { return v * int_imm(lanes_) + l; };
    Stmt start =
        each_vector([&](const Expr& r, const Expr& v, const Expr& l) { return store(acc_, at(r, v, l), zero()); });
    VarRef k = make_var("k");
    Stmt step = each_vector([&](const Expr& r, const Expr& v, const Expr& l) {
      const Expr x = transpose_a_ ? load(packed_a_, {Expr(p), Expr(k), r})
                                  : load(packed_a_, {Expr(p) * int_imm(mr_) + r, Expr(k)});
      const Expr y = load(packed_b_, {Expr(q), Expr(k), lane(v, l)});
      const Expr sum = load(acc_, at(r, v, l));
      return store(acc_, at(r, v, l), type_.is_float() ? apply(Op::Fma, {x, y, sum}) : sum + x * y);
    });
    const Block here{rows.start + Expr(p) * int_imm(mr_), rows.extent - Expr(p) * int_imm(mr_)};
    const Block beside{columns.start + Expr(q) * int_imm(nr_), columns.extent - Expr(q) * int_imm(nr_)};
    return seq({alloc(acc_), start, serial(k, depth.extent, step), finish(here, beside, first)});
  }

  /// Adds the registers to C, or stores them if this is the first block of a cleared sum.
  Stmt finish(const Block& rows, const Block& columns, const Expr& first) {
    auto put = [&](bool over) {
      return [this, over](const std::vector<Expr>& at, const Expr& sum) {
        const std::vector<Expr> place = region_indices(c_, at);
        const Expr value = over ? sum : cast(load(c_.buffer, place), type_) + sum;
        return store(c_.buffer, place, cast(value, c_.buffer->dtype));
      };
    };
    auto either = [&](const std::function<Stmt(bool)>& body) {
      return clear_ ? if_then(first, body(true), body(false)) : body(false);
    };
    Stmt whole = either([&](bool over) {
      return each_vector([&](const Expr& r, const Expr& v, const Expr& l) {
        return put(over)({rows.start + r, columns.start + (v * int_imm(lanes_) + l)}, load(acc_, {r, v, l}));
      });
    });
    BufferRef edge = make_buffer("edge", type_, MemoryScope::Local, constants({mr_, nr_}));
    Stmt spill = each_vector([&](const Expr& r, const Expr& v, const Expr& l) {
      return store(edge, {r, v * int_imm(lanes_) + l}, load(acc_, {r, v, l}));
    });
    Stmt part = either([&](bool over) {
      VarRef r = make_var("r");
      VarRef j = make_var("j");
      return parallel(
          r, min(int_imm(mr_), rows.extent),
          parallel(j, min(int_imm(nr_), columns.extent),
                   put(over)({rows.start + Expr(r), columns.start + Expr(j)}, load(edge, {Expr(r), Expr(j)}))));
    });
    Stmt pieces = seq({alloc(edge), spill, part});
    if (!side_by_side(c_)) return pieces;
    const Expr full =
        logical_and(apply(Op::Ge, {rows.extent, int_imm(mr_)}), apply(Op::Ge, {columns.extent, int_imm(nr_)}));
    return if_then(full, whole, pieces);
  }

  static int64_t last_tile(const Region& region) { return region.buffer->tile.back(); }

  /// Are the elements of a vector of columns contiguous? In memory with tiles, or a layout, a vector must not
  /// leave a run of neighbours.
  bool side_by_side(const Region& region) const {
    const Buffer& b = *region.buffer;
    if (region.ranges.back().point) return false;
    if (!b.strides.empty()) {
      const int64_t* stride = int_value(b.strides.back());
      if (!stride || *stride != 1) return false;
    }
    if (!is_tiled(b) && !b.layout) return true;
    const int64_t* begin = int_value(region.ranges.back().begin);
    if (b.layout) return begin && *begin % lanes_ == 0 && keeps_runs(b, lanes_);
    return last_tile(region) % lanes_ == 0 && begin && *begin % last_tile(region) == 0;
  }

  const Region& a_;
  const Region& b_;
  const Region& c_;
  bool transpose_a_;
  bool transpose_b_;
  bool clear_;
  DType type_;  ///< of the sums
  Expr rows_;
  Expr columns_;
  Expr depth_;
  int64_t lanes_ = 0;  ///< elements of a vector
  int64_t vectors_ = 0;  ///< vectors of a row of the register block
  int64_t mr_ = 0, nr_ = 0, mc_ = 0, nc_ = 0, kc_ = 0;
  BufferRef packed_a_;
  BufferRef packed_b_;
  BufferRef acc_;
};

}  // namespace

Stmt lower_gemm_blocks(const TileOp& op, const LoweringContext& context, std::string* declined) {
  BlockedGemm gemm(op, context);
  *declined = gemm.declines();
  return declined->empty() ? gemm.lower() : Stmt();
}

}  // namespace helve::cpu
