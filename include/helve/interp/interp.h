// The reference interpreter: the executable definition of the language.
// It runs a function at every stage, from the source IR to flat loops, so that a pass that changes meaning is found by
// running the function before and after it.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve::interp {

/// A tensor argument. `data` points to element 0; strides count elements, and are compact row-major when absent.
struct TensorArg {
  void* data = nullptr;
  std::vector<int64_t> shape;
  std::vector<int64_t> strides;
};

/// A scalar argument. Integers go to any parameter, floats only to float parameters; a float parameter rounds. uint64_t
/// holds what int64_t does not.
struct ScalarArg {
  std::variant<double, int64_t, uint64_t> value;
};

using Arg = std::variant<TensorArg, ScalarArg>;

/// The checks of a run beyond invalid subscripts. A fault is reported where it happens; nothing else changes.
struct Checks {
  bool uninitialised = false;  ///< uses of elements that were never written (UninitialisedRead)
  bool races = false;  ///< conflicts (RacingIterations, RacingBlocks, RacingCores)
  bool barriers = false;  ///< with `races`: threads of a block, and TMA, are ordered by T.sync_threads alone
  bool fences = false;  ///< with `barriers`: TMA sees what threads wrote before a T.fence_async (UnfencedWrite)
  /// One private memory serves all iterations of a loop that it is allocated outside of, as in machine code: one
  /// iteration finds what another one wrote, which with `races` is a conflict. Without this option each iteration has
  /// its own copy, as the language defines. If threads of a block run the iterations, such memory is Shared: several
  /// may then store to an element of it, whose value is undefined afterwards, as after a loop with private memory.
  bool in_turn = false;

  bool any() const { return uninitialised || races; }
  static Checks all() { return {true, true}; }
};

/// The checks by name: "all", "uninitialised", "races", "in_turn" (all, for a function whose scratch has been made
/// private), "barriers" (in_turn, for a function in thread form whose barriers have been inserted), or "fences"
/// (barriers, for one whose fences have been inserted too); nothing for another name.
std::optional<Checks> parse_checks(const std::string& name);

/// Thrown by a run that has used up its number of steps. What it has written stays.
struct OutOfSteps : std::exception {
  const char* what() const noexcept override { return "the run used up its steps"; }
};

/// What is in scope where the run meets a T.breakpoint.
struct Stop {
  struct Value {
    std::string name;
    std::variant<double, int64_t, uint64_t, bool> value;
  };
  /// A copy of a buffer, row-major; int4 is given as int8, float4_e2m1 as float32.
  struct Array {
    std::string name;
    DType dtype;
    std::vector<int64_t> shape;
    std::vector<std::byte> elements;
  };
  Span span;
  std::string function;
  std::vector<Value> values;
  std::vector<Array> arrays;
};

struct Options {
  /// Subscripts outside a buffer are refused (OutOfBounds). Without it they are undefined behaviour.
  bool check_bounds = true;
  /// A run with checks is several times slower, and its reports name the values of the loop variables.
  Checks check;
  /// How many steps the run may make; 0: any number. A step is an iteration or, in a checked run, an access.
  int64_t steps = 0;
  /// Chooses where tensors begin (T.misalignment): each number puts them elsewhere, 0 at the most even addresses.
  int64_t placement = 0;
  /// In which order the roles of a block run, each until it waits for a ring: 0: the first that can; 1: the last; other
  /// numbers: one that is drawn at each event of a ring.
  int64_t roles = 0;
  /// Called now and then while the function runs; what it throws ends the run.
  std::function<void()> interrupt = {};
  /// Receives each line that the function prints, with its end; without it they go to the standard output.
  std::function<void(const std::string&)> print = {};
  /// Called at each T.breakpoint; what it throws ends the run. Without it none of them does anything.
  std::function<void(const Stop&)> stop = {};
  /// Positions of tensor parameters whose arguments are new arrays: with `check.uninitialised` none of their elements
  /// is written yet, and all of them have to be when the run ends (UnwrittenOutput).
  std::vector<size_t> new_arrays = {};
};

/// Runs `f` on `args`, one for each parameter in order. Dynamic extents are bound from the shapes of the arguments.
/// Blocks of a kernel run one after another; the cores of a mesh run in lockstep between collectives. What the language
/// leaves undefined shows: memory that was never written reads as NaN, the least signed or the greatest unsigned
/// integer, true.
///
/// The checks are exact for the arguments of the run. A copy of an element that was never written makes the copy's
/// target one that was never written; a use in arithmetic, a condition, a subscript or a reduction, and a store to a
/// parameter, are reported, as are elements of new arrays that no statement has written. Two accesses race when they
/// touch one element, one of them writes, and they stand in different iterations of a T.Parallel, T.Persistent or
/// parallel T.foreach_tiles, in different blocks of a launch, or on different cores of a mesh with no collective of
/// both between them; with `barriers` also in different iterations of two T.threads loops of a block with no
/// T.sync_threads between them, or one of them in a copy by TMA. One order of iterations suffices: up to its first race
/// a program of nested parallel loops does the same in every order, so a run that records who accessed what finds a
/// race when any order has one (Feng and Leiserson, "Efficient detection of determinacy races in Cilk programs", 1997).
/// Asynchronous copies are not in the language; they would be accesses whose order begins at their wait.
///
/// Throws UserError: wrong arguments (ArgumentCount, ArgumentRank, ArgumentShape, ArgumentStrides, ...), OutOfBounds,
/// ZeroDivisor, IndexOverflow, NegativeShift, NegativeExtent, ShapeMismatch, CollectiveShape, DivergentCollective,
/// AssertionFailed, and those of the checks.
void run(const FunctionRef& f, const std::vector<Arg>& args, const Options& options = {});

}  // namespace helve::interp
