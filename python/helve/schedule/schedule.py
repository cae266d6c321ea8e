"""`helve.Schedule`: a program and the steps that reorder it.

Every step is a primitive of the core's table, proved by the core to keep results; here are the calls that users make,
and the places in their programs where faults are shown.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence

from helve import _core, source
from helve._core import Layout
from helve.errors import Error, error, from_diagnostic, shown
from helve.schedule.arguments import converted, function_of, integer, path_to, refuse_wrong_calls
from helve.schedule.auto import machine_of, order
from helve.schedule.comparison import compare
from helve.schedule.cursor import Cursor, find
from helve.schedule.members import unknown
from helve.schedule.trace import StepReport, Trace, report, step_text
from helve.script.prim_func import PrimFunc
from helve.spellings import architecture_meant, target_meant

Place = Cursor | str


def _call_place() -> _core.Span:
    return source.span_of_call(source.outside(sys._getframe(2))[0])


@functools.partial(refuse_wrong_calls, place_of_call=_call_place)
class Schedule:
    """A function, and the program that a list of steps makes of it. Each step makes a new version; cursors to
    statements of one version are valid in all later ones, unless a step removed the statement.

    Args:
        func: a result of `T.prim_func` or `helve.parse`.
        check: after each step, run the program before it and the one after it in the reference interpreter on
            arguments of several sizes, and refuse the step if results differ (HV1010).

    Raises:
        helve.Error: `func` is no kernel function (HV0806), or not well formed.
    """

    def __init__(self, func: PrimFunc | Schedule | _core.Function, check: bool = False):
        function = function_of(func)
        if function is None:
            raise error("NotAKernel", _call_place(), given=shown(func))
        self._outputs = getattr(func, "outputs", None) or getattr(getattr(func, "function", None), "outputs", ())
        self._versions = [_core.start_schedule(function)]
        self.check = bool(check)

    # The program.

    @property
    def function(self) -> PrimFunc:
        """The program as it is now, for `helve.compile`, which also takes the schedule itself."""
        return PrimFunc(self._now.function, None, self._outputs)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self._now.function.name

    @property
    def _now(self) -> _core.ScheduleVersion:
        return self._versions[-1]

    def __getattr__(self, name: str):
        """Called by Python for a name that is not there (HV1001)."""
        raise unknown(Schedule, name)

    def script(self) -> str:
        """The program as Python text that helve.parse reads back."""
        return _core.print(self._now.function)

    def show(self) -> None:
        """Prints the program."""
        print(self.script(), end="")

    def __len__(self) -> int:
        """The number of steps."""
        return len(self._versions) - 1

    def __repr__(self) -> str:
        return f"<helve.Schedule of {self.name}, {len(self)} steps>"

    def copy(self) -> Schedule:
        """Another schedule with the same steps. Cursors of this one are valid in it."""
        return self.version(len(self))

    def version(self, steps: int) -> Schedule:
        """The schedule after its first `steps` steps.

        Raises:
            helve.Error: it has fewer (HV1005).
        """
        if isinstance(steps, bool) or not isinstance(steps, int) or not 0 <= steps <= len(self):
            raise error("ScheduleArgumentValue", _call_place(), primitive="version", value=shown(steps),
                        parameter="steps", reason=f"the schedule has {len(self)}",
                        fixes=[f"give a whole number from 0 to {len(self)}"])
        out = object.__new__(Schedule)
        out._outputs = self._outputs
        out._versions = self._versions[:steps + 1]
        out.check = self.check
        return out

    def undo(self) -> None:
        """Takes the last step back.

        Raises:
            helve.Error: there is none (HV1005).
        """
        if len(self) == 0:
            raise error("ScheduleArgumentValue", _call_place(), primitive="undo", value="a schedule",
                        parameter="self", reason="it has no steps", fixes=["undo() once for each step"])
        self._versions.pop()

    # Finding statements.

    def loop(self, name: str, index: int | None = None, within: Place | None = None) -> Cursor:
        """The loop, or the grid, with a variable of this name.

        Args:
            name: the name of the variable.
            index: which one of several, from 0, in program order.
            within: a statement around it.

        Raises:
            helve.Error: there is none (HV1001), or there are several and `index` is not given (HV1002).
        """
        return self._find("loop", name, index, within)

    def store(self, name: str, index: int | None = None, within: Place | None = None) -> Cursor:
        """The statement that writes the buffer of this name; `index` and `within` as for `loop`."""
        return self._find("store", name, index, within)

    def text(self, pattern: str, index: int | None = None, within: Place | None = None) -> Cursor:
        """The statement whose first line is `pattern`, as `script` prints it, with `*` for any characters and spaces
        left out; `index` and `within` as for `loop`."""
        return self._find("text", pattern, index, within)

    def line(self, number: int, index: int | None = None, within: Place | None = None) -> Cursor:
        """The statement of this line of the kernel's source; `index` and `within` as for `loop`."""
        return self._find("line", number, index, within)

    def path(self, path: str) -> Cursor:
        """The statement at a path such as "body[0].body[2]", as traces have it for statements without a name."""
        return self._find("path", path, None, None)

    def now(self, cursor: Cursor) -> Cursor:
        """The statement in the program as it is now.

        Raises:
            helve.Error: the cursor is of another schedule (HV1003), or a step removed the statement (HV1004).
        """
        return Cursor(self._now, path_to(self._now, "now", "cursor", cursor, _call_place()))

    def _find(self, kind: str, name: object, index: int | None, within: Place | None) -> Cursor:
        place = _call_place()
        inside = None if within is None else path_to(self._now, kind, "within", within, place)
        if index is not None:
            index = integer(kind, "index", index, place)
        return find(self._now, kind, name, index, inside, place)

    # Steps.

    def _step(self, primitive: str, values: list, unsafe: str | None) -> tuple[Cursor, ...]:
        place = _call_place()
        arguments = converted(self._now, primitive, values, place)
        if unsafe is not None and (not isinstance(unsafe, str) or not unsafe.strip()):
            raise error("ScheduleArgumentValue", place, primitive=primitive, value=shown(unsafe), parameter="unsafe",
                        reason="it is no text", fixes=["say in words why the step keeps results"])
        return self._add(_core.with_step(self._now, primitive, arguments, unsafe, place))

    def _add(self, version: _core.ScheduleVersion) -> tuple[Cursor, ...]:
        if self.check:
            compare(self._now.function, version.function, version.step)
        self._versions.append(version)
        return tuple(Cursor(version, path) for path in version.results)

    def split(self, loop: Place, factor: int, tail: str = "guard", *, unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Divides a loop into blocks of `factor` iterations.

        Args:
            loop: a loop over one variable, or its name.
            factor: iterations of a block, 1 or more.
            tail: what becomes of the last, partial block: "guard" (iterations past the end do nothing), "cut" (a loop
                of its own) or "exact" (there is none: calls whose extents leave one are refused, HV0616).
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The loop over blocks, the loop in a block, and the loop over the rest if there is one.
        """
        return self._step("split", [loop, factor, tail], unsafe)

    def divide(self, loop: Place, parts: int, tail: str = "guard", *,
               unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Divides a loop into `parts` parts of equal size.

        Args:
            loop: a loop over one variable, or its name.
            parts: how many, 1 or more.
            tail: as for `split`; with "guard" the last parts are smaller, or empty.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The loop over parts, the loop in a part, and the loop over the rest if there is one.
        """
        return self._step("divide", [loop, parts, tail], unsafe)

    def cut(self, loop: Place, at: int, *, unsafe: str | None = None) -> tuple[Cursor, Cursor]:
        """Divides a loop into its first `at` iterations and the rest; returns both loops."""
        return self._step("cut", [loop, at], unsafe)

    def unroll(self, loop: Place, *, unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Writes the iterations of a loop of constant extent one after the other; returns their statements."""
        return self._step("unroll", [loop], unsafe)

    def reorder(self, *loops: Place, unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Gives loops of one nest the order in which they are named, outermost first; returns them."""
        return self._step("reorder", [loops], unsafe)

    def fuse(self, outer: Place, inner: Place, *, unsafe: str | None = None) -> Cursor:
        """Makes one loop of two nested ones; returns it."""
        return self._step("fuse", [outer, inner], unsafe)[0]

    def separate(self, loop: Place, *, unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Makes nested loops of one variable each of a loop over several; returns them, outermost first."""
        return self._step("separate", [loop], unsafe)

    def join(self, first: Place, second: Place, *, unsafe: str | None = None) -> Cursor:
        """Makes one loop of two that stand one behind the other; returns it."""
        return self._step("join", [first, second], unsafe)[0]

    def fission(self, before: Cursor, *, unsafe: str | None = None) -> tuple[Cursor, Cursor]:
        """Divides a loop, launch or branch into one with what stands in front of `before` and one with the rest."""
        return self._step("fission", [before], unsafe)

    def unswitch(self, loop: Place, *, unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Takes the branch that a loop consists of out of the loop; returns the loop of each branch."""
        return self._step("unswitch", [loop], unsafe)

    def trim(self, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Ends a loop where the branch that it consists of would do nothing more; returns the loop."""
        return self._step("trim", [loop], unsafe)[0]

    def specialize(self, statement: Place, loop: Place, at: int, *, unsafe: str | None = None) -> tuple[Cursor, Cursor]:
        """Gives the first `at` iterations of a loop a statement of their own, by a branch.

        Args:
            statement: a statement inside of the loop.
            loop: a loop around it, or its name.
            at: how many iterations, at the loop's begin.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The statement of these iterations, and that of the others.

        Raises:
            helve.Error: the statement is in no such loop, or defines a name (HV1006).
        """
        return self._step("specialize", [statement, loop, at], unsafe)

    def cache_read(self, at: Place, buffer: str, scope: str = "local", within: Sequence[Place] = (), *,
                   unsafe: str | None = None) -> tuple[Cursor, Cursor]:
        """Copies the elements of a buffer that a statement reads to memory of their own in front of it, from which
        the statement reads them. The memory has the extents of the least box that holds these elements.

        Args:
            at: a statement or a loop, or the name of a loop.
            buffer: the name of a buffer whose single elements the statement reads.
            scope: "local" (of a thread; registers or stack), "shared" (of a block) or "fragment" (of a block; in
                registers of its threads).
            within: statements below `at` that alone read the copy, which has what they read; by default all do.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The copy (its outermost loop) and the statement.

        Raises:
            helve.Error: the statement uses no such buffer (HV1001), the box has no constant extents (HV1006), or a
                read would see another value (HV1007, HV1008).
        """
        return self._step("cache_read", [at, buffer, scope, within], unsafe)

    def cache_write(self, at: Place, buffer: str, scope: str = "local", *,
                    unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Lets a statement work on a copy of the elements of a buffer that it uses, and copies them back behind it.
        They are copied in as well if the statement reads, or leaves, one that it has not written.

        Args:
            at: a statement or a loop, or the name of a loop.
            buffer: the name of a buffer whose single elements the statement writes.
            scope: "local" (of a thread; registers or stack), "shared" (of a block) or "fragment" (of a block; in
                registers of its threads).
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The copy into the memory if there is one, the statement, and the copy back.

        Raises:
            helve.Error: the statement uses no such buffer (HV1001), the box has no constant extents (HV1006), or a
                read would see another value (HV1007, HV1008).
        """
        return self._step("cache_write", [at, buffer, scope], unsafe)

    def lift(self, allocation: Cursor | str, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Moves an allocation out of a loop around it, to the place in front of the loop, so that all iterations use
        one memory; returns it.

        Args:
            allocation: the statement, or the name of the buffer.
            loop: a loop around it, or its name.
            unsafe: why the step keeps results, if that cannot be proved.

        Raises:
            helve.Error: it stands in no such loop (HV1006), or iterations would disturb each other (HV1007, HV1008).
        """
        return self._step("lift", [self._allocation(allocation), loop], unsafe)[0]

    def sink(self, allocation: Cursor | str, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Moves an allocation into a loop behind it, so that each iteration has memory of its own; returns it.

        Args:
            allocation: the statement, or the name of the buffer.
            loop: a loop that stands behind it in its block, or inside of a statement there, or its name.
            unsafe: why the step keeps results, if that cannot be proved.

        Raises:
            helve.Error: there is no such loop, or the buffer is used outside of it (HV1006), or an iteration reads what
                another one wrote (HV1007, HV1008).
        """
        return self._step("sink", [self._allocation(allocation), loop], unsafe)[0]

    def _allocation(self, buffer: Cursor | str) -> Cursor:
        return self.text(f"{buffer} = T.alloc*") if isinstance(buffer, str) else buffer

    def tensorize(self, loop: Place, operation: str, tail: str = "cut", *, unsafe: str | None = None) -> Cursor:
        """Puts a tile operation in the place of a nest of loops that does what the operation means.

        Args:
            loop: the outermost loop of the nest, or its name. The nest holds one store of an element, in loops and
                branches; subscripts are one variable of the nest each, plus what is fixed. For "gemm" and reductions
                a store that clears the result may stand in front of it, which becomes `clear=True`.
            operation: "gemm" (the store is a T.update by "add" of a product of two elements), "copy", "fill",
                "reduce_sum", "reduce_prod", "reduce_max", "reduce_min" or "reduce_absmax" (a T.update by "add",
                "mul", "max" or "min").
            tail: "cut" (regions end where branches of the nest do) or "whole" (those of the result have all iterations
                of their loops; nothing may read what is computed beyond).
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The operation.

        Raises:
            helve.Error: the nest has no such form (HV1006), or does not do the same (HV1007, HV1008).
        """
        return self._step("tensorize", [loop, operation, tail], unsafe)[0]

    def substitute(self, statement: Place, function: PrimFunc | Schedule, *,
                   unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Puts a function in the place of statements of which it is a call, for some elements of buffers as its
        tensors and some values of its scalars and extents. A schedule of a function stands for its statements as they
        are now: what its steps proved is not proved again.

        Args:
            statement: the first of the statements, for example a loop; in a launch, of which the function is one of
                one block.
            function: a result of `T.prim_func`, or a schedule. A trace holds it as it is at the time of the step.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The statements in their place.

        Raises:
            helve.Error: the statements are no call of the function (HV1006), or results could be others (HV1007,
                HV1008).
        """
        return self._step("substitute", [statement, getattr(function, "_now", function)], unsafe)

    def rfactor(self, loop: Place, around: Place | None = None, scope: str = "local", *,
                unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Lets each iteration of a loop reduce to partial results of its own, which are merged behind the reduction.
        Floats are rounded in another order; the loop may then be vectorized, unrolled or parallel. A partial result of
        one update is what that would add.

        Args:
            loop: a loop of constant extent inside a reduction by T.update, or of integers by `s = s + x`.
            around: the loop around it for whose time the partial results live. If it is not given, the outermost loop
                over which the elements are reduced, as long as nothing else is done with them inside.
            scope: "local" (of a thread; registers or stack), "shared" (of a block), "fragment" (of a block; in
                registers of its threads) or "global" (of the launch, which fission() may then divide).
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The loop that fills the partial results if they have several updates, the loop `around`, and the loop
            that merges them.

        Raises:
            helve.Error: the loop reduces no buffer, or several, or floats in a fixed order (HV1006), or an element is
                used before its partial results are merged (HV1007, HV1008).
        """
        return self._step("rfactor", [loop, [] if around is None else [around], scope], unsafe)

    def compute_at(self, producer: Place, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Moves the computation of a buffer into a loop that reads it. Each iteration then computes the elements that
        it reads, some of them again if iterations read elements in common. The buffer keeps its place and its extents.

        Args:
            producer: a statement that writes the buffer, in front of the loop: a store, with the loops that hold
                nothing else, or a loop with all that it holds.
            loop: a loop that reads the buffer.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The producer's statement (its outermost loop) at its new place.

        Raises:
            helve.Error: the two do not stand so, or the bounds of what is read are not known (HV1006), or a read would
                see another value (HV1007, HV1008).
        """
        return self._step("compute_at", [producer, loop], unsafe)[0]

    def reverse_compute_at(self, consumer: Place, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Moves a computation into a loop that writes what it reads. Each instance runs in the iteration that writes
        the last of the elements that it needs, behind the other statements of the loop.

        Args:
            consumer: a statement that reads what the loop writes, behind the loop: a store, with the loops that hold
                nothing else, or a loop with all that it holds.
            loop: a loop that writes a buffer.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The consumer's statement (its outermost loop) at its new place.

        Raises:
            helve.Error: the two do not stand so, or the bounds of what can run are not known (HV1006), or an instance
                would not run, or too early (HV1007, HV1008).
        """
        return self._step("reverse_compute_at", [consumer, loop], unsafe)[0]

    def inline(self, producer: Place, *, unsafe: str | None = None) -> tuple[Cursor, ...]:
        """Computes the value of a store wherever its buffer is read. The store goes away, and the buffer with it, once
        nothing reads it; the store to a parameter stays.

        Args:
            producer: the store of a value to one element, or a loop that holds nothing else.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The statements that read the buffer before.

        Raises:
            helve.Error: nothing reads the buffer, or which iteration stores an element is not known (HV1006), or a
                read saw another store, or would see another operand (HV1007, HV1008).
        """
        return self._step("inline", [producer], unsafe)

    def precompute(self, statement: Cursor, value: str, at: Place, scope: str = "local", *,
                   unsafe: str | None = None) -> tuple[Cursor, Cursor]:
        """Computes a part of the value that a statement stores in front of a loop around it, for all iterations of
        that loop, in memory from which the statement then reads it.

        Args:
            statement: a store to an element.
            value: the part, as the program's text has it: "B[i, k] * 2".
            at: the loop, or the statement itself. Loops between the two that the value uses have constant extents.
            scope: "local" (of a thread; registers or stack) or "shared" (of a block).
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The loops that compute the value, and the statement at their place before.

        Raises:
            helve.Error: the statement stores no such value (HV1001), an extent is no constant (HV1006), or the value
                would be another one, or is not computed now (HV1007, HV1008).
        """
        return self._step("precompute", [statement, value, at, scope], unsafe)

    def prefetch(self, loop: Place, buffer: str, distance: int, *, unsafe: str | None = None) -> Cursor:
        """Asks, in each iteration of a loop, for the elements of a tensor that the iteration `distance` later reads. It
        changes no result; on a GPU it does nothing. Returns the loop.

        Args:
            loop: a loop over one variable, or its name.
            buffer: the name of a tensor whose single elements statements of the loop read.
            distance: iterations, 1 or more.
            unsafe: not needed, as there is nothing to prove.

        Raises:
            helve.Error: the loop reads no such buffer (HV1001), or all iterations read the same elements, or
                subscripts read memory, or the buffer is no tensor (HV1006).
        """
        return self._step("prefetch", [loop, buffer, distance], unsafe)[0]

    def set_layout(self, buffer: str, layout: Layout | str, *, unsafe: str | None = None) -> Cursor:
        """Says where the elements of a buffer lie in memory. What they hold stays as it is. Returns the allocation.

        Args:
            buffer: the name of a buffer that the function allocates.
            layout: a layout, or its text, as `layout=` of an allocation takes it; or a text that fits every shape,
                "tile(8, 16)" (the elements of each tile of the last dimensions side by side, tiles at the end padded)
                or "order(1, 0)" (the dimensions, the one whose elements lie farthest apart first).
            unsafe: why the step keeps results, if that cannot be proved.

        Raises:
            helve.Error: there is no such buffer (HV1001), the text is no layout (HV1005), or the layout does not fit
                the buffer (HV1006).
        """
        text = str(layout) if isinstance(layout, Layout) else layout
        return self._step("set_layout", [buffer, text], unsafe)[0]

    def pad(self, buffer: str, dim: int, by: int, *, unsafe: str | None = None) -> Cursor:
        """Leaves `by` elements unused behind the last one of a dimension, so that rows do not begin at multiples of a
        power of two. The shape stays, and nobody sees the padding. Returns the allocation.

        Args:
            buffer: the name of a buffer that the function allocates.
            dim: the dimension, from 0; elements of another one lie behind it.
            by: elements, 1 or more.
            unsafe: why the step keeps results, if that cannot be proved.

        Raises:
            helve.Error: there is no such buffer (HV1001) or dimension (HV1005), or nothing lies behind the dimension
                (HV1006).
        """
        return self._step("pad", [buffer, dim, by], unsafe)[0]

    def swizzle(self, buffer: str, bits: int, base: int, shift: int, *, unsafe: str | None = None) -> Cursor:
        """Exchanges `bits` bits of the addresses of shared memory, from bit `base` on, by their exclusive or with those
        `shift` above, so that elements of a column lie in different banks. `helve.layout.choose_swizzle` finds the
        numbers for rows that are read together. Returns the allocation.

        Args:
            buffer: the name of a buffer of scope "shared".
            bits: how many, 1 or more; 2 ** bits rows get addresses of their own.
            base: the lowest bit that changes: 2 ** base elements stay side by side.
            shift: from a bit to the one that changes it; as many as `bits`, or more.
            unsafe: why the step keeps results, if that cannot be proved.

        Raises:
            helve.Error: there is no such buffer (HV1001), no such swizzle (HV1005), the memory is not shared, or its
                size no multiple of 2 ** (bits + base + shift) elements (HV1006).
        """
        return self._step("swizzle", [buffer, bits, base, shift], unsafe)[0]

    def split_dimension(self, buffer: str, dim: int, factor: int, *, unsafe: str | None = None) -> Cursor:
        """Gives a buffer two dimensions in the place of one, for blocks of `factor` elements and the elements of a
        block: W[i] becomes W[i // factor, i % factor], without the division where the program has such an index.

        Args:
            buffer: the name of a buffer that the function allocates and uses by single elements.
            dim: the number of the dimension, from 0. Where the factor does not divide its extent, memory is left over.
            factor: elements of a block.
            unsafe: why the step keeps results, if that cannot be proved.

        Raises:
            helve.Error: there is no such buffer (HV1001), or it has no such dimension, a layout, or other uses
                (HV1006).
        """
        return self._step("split_dimension", [buffer, dim, factor], unsafe)[0]

    def shift(self, loop: Place, by: int, *, unsafe: str | None = None) -> Cursor:
        """Counts a loop from `by` later on; returns it."""
        return self._step("shift", [loop, by], unsafe)[0]

    def skew(self, outer: Place, inner: Place, factor: int, *, unsafe: str | None = None) -> Cursor:
        """Counts an inner loop from `factor` times the outer variable later on; returns it."""
        return self._step("skew", [outer, inner, factor], unsafe)[0]

    def rotate(self, loop: Place, *by: Place, unsafe: str | None = None) -> Cursor:
        """Begins a loop, in each iteration of the loops `by` around it, as many iterations later as their variables
        add up to, and ends it with those left out; returns it. For T.update and independent iterations."""
        return self._step("rotate", [loop, by], unsafe)[0]

    def reverse(self, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Runs the iterations of a loop from the last one to the first; returns it."""
        return self._step("reverse", [loop], unsafe)[0]

    def parallel(self, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Makes a loop T.Parallel; returns it."""
        return self._step("parallel", [loop], unsafe)[0]

    def vectorize(self, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Makes a loop of constant extent T.vectorized; returns it."""
        return self._step("vectorize", [loop], unsafe)[0]

    def serial(self, loop: Place, *, unsafe: str | None = None) -> Cursor:
        """Makes a loop T.serial; returns it."""
        return self._step("serial", [loop], unsafe)[0]

    def pipeline(self, loop: Place, stages: int, *, unsafe: str | None = None) -> Cursor:
        """Makes a loop T.Pipelined, whose copies run up to `stages` - 1 iterations ahead; returns it."""
        return self._step("pipeline", [loop, stages], unsafe)[0]

    def bind(self, loop: Place, to: str = "block", also: Sequence[Place] = (), *, unsafe: str | None = None) -> Cursor:
        """Gives each iteration of a loop an executor of its own.

        Args:
            loop: a loop over one variable, or its name.
            to: "block" (the loop is all of a T.Kernel and becomes a coordinate of its grid), "thread" (it becomes
                T.threads, in blocks of as many threads) or "core" (the last coordinate of the grid, which becomes a
                mesh: its cores are a cluster where the target has such). Cores do what stands around the loop as well.
            also: for cores, further loops of as many iterations; what combines their parts becomes T.comm.all_reduce.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The grid, or the loop over threads.
        """
        return self._step("bind", [loop, to, also], unsafe)[0]

    def threads(self, grid: Place, count: int, *, unsafe: str | None = None) -> Cursor:
        """Gives each block of a grid so many threads, which divide parallel loops, tile operations and fragments among
        them; a CPU ignores it.

        Args:
            grid: the T.Kernel, or the name of a coordinate of its grid.
            count: a multiple of 32, at most 1024.
            unsafe: why the step keeps results, if that cannot be proved.

        Returns:
            The grid.

        Raises:
            helve.Error: there is no such grid, or no block of so many threads (HV1006).
        """
        return self._step("threads", [grid, count], unsafe)[0]

    # Defaults.

    def auto(self, target: str = "llvm", arch: str | None = None) -> None:
        """Gives the program a default order, by steps as above. A step that is not proved is not taken, and small
        programs stay as they are. `print(s.trace())` is the program of what was done, to edit.

        Args:
            target: "llvm": blocks for all cores of this CPU, vectors along rows, tiles of accumulators for reductions
                whose elements share operands, partial results for other ones; "cuda": blocks for all multiprocessors,
                products of tiles in shared memory and registers, rows and columns reduced by the threads of a block.
            arch: for "cuda", the architecture to plan for ("sm_90a"); the oldest one by default.

        Raises:
            helve.Error: there is no such target (HV0802) or architecture (HV1005).
        """
        place = _call_place()
        if target not in ("llvm", "cuda"):
            raise error("UnknownTarget", place, target=shown(target).strip("'\""), known="llvm, cuda",
                        fixes=target_meant(target, ("llvm", "cuda")))
        machine = machine_of(target, arch) if arch is None or isinstance(arch, str) else None
        if machine is None or (arch is not None and target != "cuda"):
            raise error("ScheduleArgumentValue", place, primitive="auto", value=shown(arch), parameter="arch",
                        reason="it is no architecture of a GPU",
                        fixes=architecture_meant(shown(arch).strip("'")) or [
                            'give one such as "sm_90a", with target="cuda"'])
        order(self, self._now, machine)

    # Traces.

    def trace(self) -> Trace:
        """The steps; `print(s.trace())` is a program that makes them."""
        return Trace([version.step for version in self._versions[1:]])

    def replay(self, trace: Trace) -> None:
        """Makes the steps of a trace, of this function or of another one of the same form; none if one is refused.

        Raises:
            helve.Error: a step does not fit; a note names it.
        """
        place = _call_place()
        if not isinstance(trace, Trace):
            raise error("ScheduleTrace", place, reason=f"it is {shown(trace)}")
        before = len(self._versions)
        for number, step in enumerate(trace.steps, 1):
            try:
                self._add(_core.replay_step(self._now, step, place))
            except Error as fault:
                del self._versions[before:]
                known = fault.diagnostic
                note = _core.Note(f"step {number} of the trace: {step_text(step)}")
                fixes = [known.help] if known.help else []
                raise from_diagnostic(_core.Diagnostic(known.name, known.span, known.args, [*known.notes, note],
                                                       fixes)) from None

    def report(self) -> list[StepReport]:
        """What is known of each step: results equal bit for bit, re-associated, or unproved, and what it demands of
        calls."""
        return report(self.trace().steps)

    def proofs(self) -> list[StepReport]:
        """The steps that were taken without a proof, with the reasons that were given."""
        return [each for each in self.report() if each.effect == "unproved"]
