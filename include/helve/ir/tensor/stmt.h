// Statements of the tensor IR.
// Immutable nodes; a program at any stage, from the user's tile kernel down to flat loops, is built from this one list.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/buffer.h"
#include "helve/ir/tensor/stmt_node.h"
#include "helve/ir/tensor/tile_op.h"

namespace helve {

/// Statements in order. Never holds a Seq directly; may be empty.
struct Seq final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Seq;
  std::vector<Stmt> stmts;
  Seq() : StmtNode(kKind) {}
  static constexpr auto fields() { return std::tuple{field("stmts", &Seq::stmts)}; }
};

/// Defines a buffer until the end of the enclosing sequence. Its contents are undefined.
struct Alloc final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Alloc;
  BufferRef buffer;
  Alloc() : StmtNode(kKind) {}
  static constexpr auto fields() { return std::tuple{definition("buffer", &Alloc::buffer)}; }
};

/// Names what a buffer of the kernel is on another core of the mesh, until the end of the enclosing sequence. Only
/// lowered programs contain it. Other cores read it, and store to it by T.st_async.
struct Peer final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Peer;
  BufferRef source;
  std::vector<Expr> core;  ///< one coordinate for each mesh axis
  BufferRef buffer;  ///< declared as the source
  Peer() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("source", &Peer::source), field("core", &Peer::core), definition("buffer", &Peer::buffer)};
  }
};

/// Names a scalar value until the end of the enclosing sequence.
struct Bind final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Bind;
  Expr value;
  VarRef var;
  Bind() : StmtNode(kKind) {}
  static constexpr auto fields() { return std::tuple{field("value", &Bind::value), definition("var", &Bind::var)}; }
};

/// How a store changes the element: to the value, or to a combination of its previous value with the value, atomically
/// or as an update. An update reads the element and writes it, and conflicts with other accesses as the two do. It says
/// its operator so that a schedule may change the order of updates of one element by one operator, and combine some of
/// their values first; what does not say so keeps their order.
enum class StoreMode { Write, AtomicAdd, AtomicMax, AtomicMin, Add, Mul, Max, Min };
inline constexpr int kStoreModes = 8;
std::string_view to_string(StoreMode mode);
bool is_atomic(StoreMode mode);
bool is_update(StoreMode mode);
/// The operator of an atomic store or an update.
Op combining_operator(StoreMode mode);
/// The mode of an operation with the rule Atomic.
StoreMode atomic_mode(TileOpcode op);

/// May elements of the buffer be updated atomically: can several threads access it, and do machines have such updates
/// for its type?
bool admits_atomics(const Buffer& buffer);

/// Stores one element. Atomic stores of one mode do not conflict and may be in any order; those of two modes, or an
/// atomic store and another access, conflict as any store does. The value has the buffer's dtype; that of an update has
/// the type in which the operator is computed, and only what it gives is rounded to the buffer's (stored_value).
struct Store final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Store;
  StoreMode mode = StoreMode::Write;
  BufferRef buffer;
  std::vector<Expr> indices;
  Expr value;
  /// The lanes of the vectorized loop around it go around the caches, in pieces of so many bytes that begin at
  /// multiples of it; 0: through the caches. Has no effect on results.
  int64_t piece = 0;
  /// The lanes of the vectorized loop around it write their elements, which follow one another, after the last of them
  /// has run, in accesses of so many bytes that begin at multiples of it; 0: each lane its own. Subscripts name nothing
  /// that the loop's body binds.
  int64_t width = 0;
  /// Names what stood in the element before, in the buffer's dtype, until the end of the enclosing sequence. Null where
  /// nobody asks; an atomic store alone may say it.
  VarRef previous;
  Store() : StmtNode(kKind) {}
  bool is_atomic() const { return helve::is_atomic(mode); }
  bool is_update() const { return helve::is_update(mode); }
  static constexpr auto fields() {
    return std::tuple{field("mode", &Store::mode),
                      field("buffer", &Store::buffer),
                      field("indices", &Store::indices),
                      field("value", &Store::value),
                      field("piece", &Store::piece),
                      field("width", &Store::width),
                      definition("previous", &Store::previous)};
  }
};

/// Asks for the part of memory that holds an element, since it is read soon. Has no effect on results; the subscripts
/// may lie outside of the buffer.
struct Prefetch final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Prefetch;
  BufferRef buffer;
  std::vector<Expr> indices;
  Prefetch() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("buffer", &Prefetch::buffer), field("indices", &Prefetch::indices)};
  }
};

/// Says something to whoever runs the program, once for each execution: a fault ends the call with an error, and
/// nothing behind it happens; otherwise a line is printed. Both give the text and the values by their names. It is
/// executed exactly as often as the program says, and keeps the order of the statements around.
struct Report final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Report;
  bool fault = false;
  std::string text;
  std::vector<std::string> names;  ///< of the values
  std::vector<Expr> values;
  int64_t around = 0;  ///< the first so many of them say which block and which iteration it is
  Report() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("fault", &Report::fault), field("text", &Report::text), field("names", &Report::names),
                      field("values", &Report::values), field("around", &Report::around)};
  }
};

/// Stops a run of the interpreter and shows what is in scope. It accesses nothing; other targets leave it out.
struct Breakpoint final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Breakpoint;
  std::vector<std::string> names;  ///< of the values, then of the buffers
  std::vector<Expr> values;
  std::vector<Region> buffers;  ///< each whole
  Breakpoint() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("names", &Breakpoint::names), field("values", &Breakpoint::values),
                      field("buffers", &Breakpoint::buffers)};
  }
};

/// Stores a tile elementwise; all operands are read before anything is written. Legal only in a tile loop.
struct TileStore final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::TileStore;
  BufferRef buffer;
  std::vector<Expr> indices;
  Expr value;
  TileStore() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("buffer", &TileStore::buffer), field("indices", &TileStore::indices),
                      field("value", &TileStore::value)};
  }
};

enum class LoopKind { Serial, Unroll, Vectorized, Parallel, Pipelined, Persistent, Thread };
std::string_view to_string(LoopKind kind);

/// A rectangular loop: vars[d] runs from begins[d] over extents[d] values, the last fastest. Serial, Unroll, Vectorized
/// and Pipelined have one variable. Parallel and Persistent promise independent iterations. Thread is code that each
/// thread of a block runs: from 0 over the number of threads, each iteration on another thread. A negative extent is an
/// empty loop, in lowered code only (from tails); the verifier refuses negative constants.
/// A scheduled loop stays as it is: no pass fuses, divides, unrolls, shifts or copies it to make code faster. What its
/// kind means is still done, by any target: lanes become vectors, elements go to threads, one iteration is its body.
/// A rolled loop is Serial or Parallel, of lowered code: whoever makes machine code of it makes no copies of its body.
struct For final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::For;
  LoopKind loop = LoopKind::Serial;
  std::vector<Expr> begins;
  std::vector<Expr> extents;
  int num_stages = 1;  ///< Pipelined only
  bool scheduled = false;
  bool rolled = false;
  std::vector<VarRef> vars;
  Stmt body;
  For() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("loop", &For::loop),           field("begins", &For::begins),
                      field("extents", &For::extents),     field("num_stages", &For::num_stages),
                      field("scheduled", &For::scheduled), field("rolled", &For::rolled),
                      definition("vars", &For::vars),      field("body", &For::body)};
  }
};

/// A loop over the tiles of `buffer`; one variable per dimension. Inside, subscripts denote tiles.
struct ForTiles final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::ForTiles;
  BufferRef buffer;
  bool parallel = false;
  std::vector<VarRef> vars;
  Stmt body;
  ForTiles() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("buffer", &ForTiles::buffer), field("parallel", &ForTiles::parallel),
                      definition("vars", &ForTiles::vars), field("body", &ForTiles::body)};
  }
};

struct While final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::While;
  Expr condition;
  Stmt body;
  While() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("condition", &While::condition), field("body", &While::body)};
  }
};

struct If final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::If;
  Expr condition;
  Stmt then_body;
  Stmt else_body;  ///< may be null
  If() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("condition", &If::condition), field("then_body", &If::then_body),
                      field("else_body", &If::else_body)};
  }
};

/// A launch over a grid. In a mesh function the grid is the mesh and a block is a core.
struct Kernel final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Kernel;
  std::vector<Expr> extents;
  int64_t threads = 128;
  int64_t cluster = 1;  ///< neighbouring blocks that run at the same time, and may fill each other's memory
  int64_t producers = 0;  ///< threads of the role that fills rings, once there are roles; 0: as the compiler chooses
  std::vector<int64_t> registers;  ///< of a thread of the role that takes and of one that fills; or no budgets
  std::vector<VarRef> vars;
  Stmt body;
  Kernel() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("extents", &Kernel::extents),
                      field("threads", &Kernel::threads),
                      field("cluster", &Kernel::cluster),
                      field("producers", &Kernel::producers),
                      field("registers", &Kernel::registers),
                      definition("vars", &Kernel::vars),
                      field("body", &Kernel::body)};
  }
};

/// What a part of the threads that are launched executes: those from `first` on, as a block of so many threads would.
/// Roles stand side by side at the end of a kernel and run at the same time; rings (ring.h) alone order what one does
/// with what another does. The first has the kernel's own threads; what a compiler adds comes behind them.
struct Role final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Role;
  int64_t first = 0;
  int64_t threads = 0;
  int64_t registers = 0;  ///< that each thread may use from here on; 0: as many as the kernel begins with
  bool elect = false;  ///< the first of the threads executes the body alone
  Stmt body;
  Role() : StmtNode(kKind) {}
  static constexpr auto fields() {
    return std::tuple{field("first", &Role::first), field("threads", &Role::threads),
                      field("registers", &Role::registers), field("elect", &Role::elect), field("body", &Role::body)};
  }
};

/// Statements of a kernel, in lowered code, of which code generation makes a function of their own. What they define
/// ends with them; they stand in no iteration of a parallel loop, and in no other Outline.
struct Outline final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::Outline;
  Stmt body;
  Outline() : StmtNode(kKind) {}
  static constexpr auto fields() { return std::tuple{field("body", &Outline::body)}; }
};

/// One operand of a tile operation, as declared by its row.
using TileOperand = std::variant<Region, Expr, std::vector<Expr>, int64_t, bool, std::string, Layout, IndexMap>;

/// A tile operation of the table with one operand for each declared parameter, in the row's order.
struct TileOp final : StmtNode {
  static constexpr StmtKind kKind = StmtKind::TileOp;
  TileOpcode op = TileOpcode::Fill;
  std::vector<TileOperand> operands;
  std::vector<Span> places;  ///< the location of each operand, unknown for a default; empty: all unknown
  TileOp() : StmtNode(kKind) {}
  static constexpr auto fields() { return std::tuple{field("op", &TileOp::op), field("operands", &TileOp::operands)}; }

  const TileOpRow& row() const { return row_of(op); }
  bool is_region(size_t i) const { return std::holds_alternative<Region>(operands[i]); }
  const Region& region(size_t i) const { return std::get<Region>(operands[i]); }
  const Expr& expr(size_t i) const { return std::get<Expr>(operands[i]); }
  const std::vector<Expr>& exprs(size_t i) const { return std::get<std::vector<Expr>>(operands[i]); }
  int64_t integer(size_t i) const { return std::get<int64_t>(operands[i]); }
  bool flag(size_t i) const { return std::get<bool>(operands[i]); }
  const std::string& text(size_t i) const { return std::get<std::string>(operands[i]); }
  const Layout& layout(size_t i) const { return std::get<Layout>(operands[i]); }

  /// Is the operand given by the program, and not a default?
  bool is_given(size_t i) const { return i < places.size() && places[i].known(); }
  /// The operand's location, or the operation's.
  const Span& place(size_t i) const { return is_given(i) ? places[i] : span; }

  // Parameters with the same meaning in all rows that have them, so that other rooms need no names. InternalError if
  // the row has none.
  int64_t dim() const;
  std::optional<size_t> dimension(size_t rank) const;  ///< named by `dim` among `rank`, negative from the end
  std::optional<size_t> dim_position() const;  ///< of the operand `dim`, if the row has it
  const Expr& root() const;
  const std::vector<Expr>& coord() const;
  bool transposes(size_t matrix) const;  ///< for a product: the first or the second factor
  std::optional<bool> clears() const;  ///< are previous contents of the result ignored? Nothing without such a flag
  const std::string* axis() const;  ///< of a collective; null if it has no groups
  const std::string* combination() const;  ///< the operator of a reducing collective, else null
  const Region* barriers() const;  ///< the mbarriers that it is given; null if none
  int64_t pending() const;  ///< of a wait: how many groups may be unfinished after it
  int64_t warpgroup() const;  ///< whose first thread starts the copy; 0 for others than copies of boxes
  int64_t multicast() const;  ///< the blocks that copy together; 1 for others than copies of boxes
  bool waits_for_sources() const;  ///< is waiting over when the sources have been read?
  /// Does it start a copy that a later wait of its queue completes (copy_queue.h)?
  bool begins_copy() const;
  /// Does it start a product that a later T.wgmma_wait completes?
  bool begins_product() const { return op == TileOpcode::Wgmma; }
  /// Either of them: what it accesses, it accesses until the wait of its queue.
  bool begins() const { return begins_copy() || begins_product(); }
  /// Is it a copy that TMA makes, which program order orders with no thread?
  bool is_by_tma() const;
  /// Is operand `i` a region that a unit beside the threads accesses, TMA or tensor cores, in the asynchronous proxy:
  /// it sees what threads wrote only after a fence?
  bool in_async_proxy(size_t i) const;
  /// Is any operand?
  bool in_async_proxy() const { return is_by_tma() || op == TileOpcode::Wgmma; }
  /// May the region of operand `i` reach past the end of its buffer?
  bool may_pass_end(size_t i) const;
};

/// "T.comm.all_gather": the operation as a kernel names it.
std::string operation_text(const TileOp& op);

template <class T>
const T* as(const Stmt& s) {
  return s && s->kind == T::kKind ? static_cast<const T*>(s.get()) : nullptr;
}

/// Calls `f` with the node as its own type.
template <class F>
decltype(auto) dispatch(const Stmt& s, F&& f) {
  switch (s->kind) {
#define HELVE_STMT(name) \
  case StmtKind::name: return f(static_cast<const name&>(*s));
#include "helve/ir/tensor/stmt_nodes.inc"
#undef HELVE_STMT
  }
  __builtin_unreachable();
}

/// The scalar that the statement itself names until the end of the enclosing sequence, by a Bind or an atomic store;
/// null if it names none.
VarRef named_by(const Stmt& s);

// Construction. Nested sequences are flattened; invalid nodes are refused with a code.
Stmt seq(std::vector<Stmt> stmts, Span span = {});
Stmt alloc(BufferRef buffer, Span span = {});
/// `buffer` is a new buffer with the declaration of `source` (declare_again).
Stmt peer(BufferRef buffer, BufferRef source, std::vector<Expr> core, Span span = {});
Stmt bind(VarRef var, Expr value, Span span = {});
/// Converts the value to the buffer's dtype (WrongType) and checks the indices. An update takes a value that may be
/// stored (WrongType) and that its operator combines with the element (WrongType, MixedTypes).
Stmt store(BufferRef buffer, std::vector<Expr> indices, Expr value, Span span = {}, StoreMode mode = StoreMode::Write);
/// An atomic store that names what stood in the element before; `previous` has the buffer's dtype.
Stmt fetch(VarRef previous, BufferRef buffer, std::vector<Expr> indices, Expr value, StoreMode mode, Span span = {});
/// An update; a plain number is weak, as an operand of its operator.
Stmt update(BufferRef buffer, std::vector<Expr> indices, const Operand& value, StoreMode mode, Span span = {});
/// A store around the caches, in pieces of so many bytes.
Stmt store_nontemporal(BufferRef buffer, std::vector<Expr> indices, Expr value, int64_t piece, Span span = {});
/// A store of a vector's lanes, in accesses of `width` bytes.
Stmt store_vector(BufferRef buffer, std::vector<Expr> indices, Expr value, int64_t width, Span span = {});
Stmt prefetch(BufferRef buffer, std::vector<Expr> indices, Span span = {});
/// The first `around` values say where the program is. BadArgument for more than kMostReported values.
Stmt report(bool fault, std::string text, std::vector<std::string> names, std::vector<Expr> values, int64_t around,
            Span span = {});
/// One name for each value, then for each buffer.
Stmt breakpoint(std::vector<std::string> names, std::vector<Expr> values, std::vector<BufferRef> buffers,
                Span span = {});
Stmt tile_store(BufferRef buffer, std::vector<Expr> indices, Expr value, Span span = {});
Stmt for_loop(LoopKind kind, std::vector<VarRef> vars, std::vector<Expr> begins, std::vector<Expr> extents, Stmt body,
              int num_stages = 1, Span span = {}, bool scheduled = false);
/// The loop, which is Serial or Parallel, rolled.
Stmt rolled(const Stmt& loop);
/// A one-dimensional loop from 0.
Stmt for_loop(LoopKind kind, VarRef var, Expr extent, Stmt body, Span span = {});
/// The iterations of `loop` in order: a Serial loop for each variable around `body`, scheduled where `loop` is.
Stmt serial_nest(const For& loop, Stmt body);
Stmt for_tiles(BufferRef buffer, std::vector<VarRef> vars, bool parallel, Stmt body, Span span = {});
Stmt while_loop(Expr condition, Stmt body, Span span = {});
Stmt if_then(Expr condition, Stmt then_body, Stmt else_body = {}, Span span = {});
Stmt kernel(std::vector<VarRef> vars, std::vector<Expr> extents, int64_t threads, Stmt body, Span span = {});
Stmt role(int64_t first, int64_t threads, int64_t registers, bool elect, Stmt body, Span span = {});
Stmt outline(Stmt body, Span span = {});
/// Operands as the row declares them; omitted ones take their defaults. The row's rule checks shapes and dtypes.
Stmt tile_op(TileOpcode op, std::vector<TileOperand> operands, Span span = {}, std::vector<Span> places = {});

}  // namespace helve
