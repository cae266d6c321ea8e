// The table of tile operations as data.
// Python function, stub, printer, verifier and documentation follow from a row; the interpreter is a switch over the
// opcodes without a default, so a row without a case does not compile.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

namespace helve {

enum class TileOpcode {
#define HELVE_TILE_OP(name, python, rule, scopes, parameters, documentation) name,
#include "helve/ir/tensor/tile_op_table.inc"
#undef HELVE_TILE_OP
};

enum class TileRule {
  Copy,
  CopyInstruction,
  StAsync,
  Fill,
  Clear,
  Gemm,
  Reduce,
  Scan,
  Atomic,
  MeshTensorCopy,
  Sync,
  Wait,
  Instruction,  ///< on registers: the rules of instruction_rules.cc, by opcode
  CommSame,
  CommPut,
  CommGather,
  CommScatter,
  CommAllToAll,
  CommBarrier
};

/// Where an operation is allowed: in a kernel at block scope; there and in an iteration of an independent loop; a
/// collective in a mesh kernel or, after the kernel was split, in the host body of a mesh function.
enum class OpScope { Block, Iteration, Collective };

/// Index is an index expression, Map a function of one index. Barriers is a whole array of mbarriers in shared memory,
/// which only operations with such a parameter access.
enum class ParamKind { In, Out, InOut, Source, Value, Coord, Index, Map, Integer, Flag, Text, Axes, Layout, Barriers };

struct TileParam {
  ParamKind kind;
  std::string_view name;
  /// No value: required. Barriers and maps that may be left out have the value false.
  std::variant<std::monostate, double, int64_t, bool, std::string_view> fallback;

  bool reads() const { return kind == ParamKind::In || kind == ParamKind::InOut || kind == ParamKind::Source; }
  bool writes() const { return kind == ParamKind::Out || kind == ParamKind::InOut; }
  bool required() const { return std::holds_alternative<std::monostate>(fallback); }
};

struct TileOpRow {
  TileOpcode op;
  std::string_view name;    ///< "ReduceSum"
  std::string_view python;  ///< "reduce_sum", "comm.all_gather"
  TileRule rule;
  OpScope scope;
  std::vector<TileParam> params;
  std::string_view documentation;

  bool is_collective() const { return scope == OpScope::Collective; }
  /// The position of a parameter; an unknown name is an InternalError.
  size_t index_of(std::string_view param) const;
  /// The position of a parameter, if the row has it.
  std::optional<size_t> find(std::string_view param) const;
};

const std::vector<TileOpRow>& tile_op_rows();
inline const TileOpRow& row_of(TileOpcode op) { return tile_op_rows()[static_cast<size_t>(op)]; }

/// The combination of a reduction: for Reduce rows and the `op` text of collectives.
enum class ReduceKind { Sum, Prod, Max, Min, AbsMax, Any, All };
ReduceKind reduce_kind(TileOpcode op);
std::optional<ReduceKind> parse_reduce_kind(std::string_view name);

}  // namespace helve
