"""Loops shared by the cores of a cluster: what combines their parts becomes a collective.

Results are judged by the interpreter before and after each step, in all stages, and as machine code; programs that may
not be shared are refused by the checker, which knows collectives by the loops that they mean.
"""

import random

import helve
import helve.testing
import numpy as np
import pytest
from helve import _core


def schedule(body, params="A: T.Tensor((6, 12), 'int32'), B: T.Tensor((6, 12), 'int32')", grid=2, check=True):
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    text = f"@T.prim_func\ndef f({params}):\n    with T.Kernel({grid}) as b:\n{lines}"
    return helve.Schedule(helve.parse(text), check=check)


def body(s):
    lines = s.script().replace(", scheduled=True", "").splitlines()
    start = next(n for n, line in enumerate(lines) if "T.Kernel" in line)
    return "\n".join(line[4:] for line in lines[start:])


def refused(code, step):
    with pytest.raises(helve.Error) as caught:
        step()
    assert caught.value.code == code, str(caught.value)
    return caught.value


def judge(s):
    """The program against its first version, in every stage."""
    args = helve.testing.make_arguments(s.version(0))
    wanted = [np.copy(each) for each in args]
    helve.compile(s.version(0), target="interp")(*wanted)
    for target in ("interp", "llvm"):
        given = [np.copy(each) for each in args]
        helve.compile(s, target=target)(*given)
        for x, y in zip(given, wanted):
            np.testing.assert_array_equal(x, y, err_msg=s.script())
    helve.testing.check_stages(s.function, lambda: [np.copy(each) for each in args], check="all")


ROWS = """\
for r in T.serial(3):
    total = T.alloc_local((1,), "int32")
    part = T.alloc_shared((4,), "int32")
    total[0] = {identity}
    for c in T.serial(4):
        part[c] = {identity}
        for j in T.serial(3):
            T.update(part[c], A[r * 2 + b, c * 3 + j], "{op}")
    for v in T.serial(4):
        T.update(total[0], part[v], "{op}")
    total[0] = total[0] * 2
    for d in T.serial(4):
        for k in T.serial(3):
            B[r * 2 + b, d * 3 + k] = A[r * 2 + b, d * 3 + k] + total[0]"""


def rows(op="add", identity="0"):
    return schedule(ROWS.format(op=op, identity=identity))


def test_cores_share_rows():
    s = rows()
    grid = s.bind("c", to="core", also=["d"])
    assert s.now(grid).text.startswith("with T.Kernel(2, 4) as (b, c)")
    assert body(s) == """\
with T.Kernel(2, 4) as (b, c):
    for r in T.serial(3):
        total = T.alloc_local((1,), "int32")
        part = T.alloc_shared((1,), "int32")
        part[0] = 0
        for j in T.serial(3):
            T.update(part[0], A[r * 2 + b, c * 3 + j], "add")
        total_cores = T.alloc_shared((1,), "int32")
        T.comm.all_reduce(part, total_cores, axis="y")
        total[0] = total_cores[0]
        total[0] = total[0] * 2
        for k in T.serial(3):
            B[r * 2 + b, c * 3 + k] = A[r * 2 + b, c * 3 + k] + total[0]"""
    assert s.report()[0].effect == "equal"
    judge(s)


@pytest.mark.parametrize(("op", "identity", "word"), [
    ("add", "0", None), ("mul", "1", "prod"), ("max", "-2147483648", "max"), ("min", "2147483647", "min")])
def test_every_reduction(op, identity, word):
    s = rows(op, identity)
    s.bind("c", to="core", also=["d"])
    option = f'op="{word}", ' if word else ""
    assert f'T.comm.all_reduce(part, total_cores, {option}axis="y")' in s.script()
    judge(s)


def test_the_meaning_of_cores_is_what_they_do():
    s = rows()
    s.bind("c", to="core", also=["d"])
    function = s.function.function
    meant = _core.print(_core.core_phases(function))
    assert "T.comm" not in meant and "mesh" not in meant
    args = helve.testing.make_arguments(s)
    results = []
    for program in (s, helve.parse(meant)):
        results.append([np.copy(each) for each in args])
        helve.compile(program, target="interp")(*results[-1])
    np.testing.assert_array_equal(results[0][1], results[1][1])


ELEMENTS = """\
total = T.alloc_shared((3, 2), "int32")
part = T.alloc_shared((3, 4), "int32")
if b < 2:
    for e in T.serial(3):
        for f in T.serial(2):
            total[e, f] = 1
    for c in T.serial(4):
        for e in T.serial(3):
            part[e, c] = A[b * 3 + e, c * 3] * 5 + A[b * 3 + e, c * 3 + 1]
    for e in T.serial(3):
        for v in T.serial(4):
            T.update(total[e, 1], part[e, v], "mul")
    for d in T.serial(4):
        for k in T.serial(3):
            B[b * 3 + k, d * 3 + 2 - k] = total[2 - k, 1] + part[k, d]"""


def test_elements_are_combined_at_once():
    s = schedule(ELEMENTS)
    s.bind("d", to="core", also=["c"])
    assert """\
        total_cores = T.alloc_shared((3,), "int32")
        T.comm.all_reduce(part, total_cores, op="prod", axis="y")
        for w0 in T.serial(3):
            total[w0, 1] = total_cores[w0]""" in body(s)
    judge(s)


def test_memory_and_names_of_an_iteration_are_a_core_s():
    s = schedule("""\
total = T.alloc_local((1,), "int32")
part = T.alloc_shared((4, 2), "int32")
total[0] = 0
for c in T.serial(4):
    own = T.alloc_local((3,), "int32")
    first = A[b, c * 3]
    for j in T.serial(3):
        own[j] = A[b, c * 3 + j] * first
    part[c, 0] = own[0] + own[2]
    part[c, 1] = own[1]
for v in T.serial(4):
    T.update(total[0], part[v, 1], "add")
for d in T.serial(4):
    last = A[b, d * 3 + 2]
    for k in T.serial(3):
        B[b, d * 3 + k] = (total[0] - part[d, 0]) * last""")
    s.bind("c", to="core", also=["d"])
    assert "part = T.alloc_shared((2,)" in body(s) and "T.comm.all_reduce(part[1], total_cores, axis" in body(s)
    judge(s)


def test_later_steps_keep_the_program_of_a_core():
    s = rows()
    grid = s.bind("c", to="core", also=["d"])
    s.threads(grid, 64)
    s.cache_read(s.loop("r"), "A", "shared")
    s.pipeline("r", 2)
    s.unroll("k")
    assert [each.effect for each in s.report()] == ["equal"] * 5
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    assert str(s.trace()).startswith('s.bind(s.loop("c"), to="core", also=[s.loop("d")])\n')
    judge(s)


def test_a_loop_that_is_not_all_of_its_kernel():
    s = schedule("for i in T.serial(6):\n    for j in T.serial(12):\n        B[i, j] = A[i, j] + 1", grid=1)
    s.bind("j", to="core")
    assert body(s) == "with T.Kernel(1, 12) as (b, j):\n    for i in T.serial(6):\n        B[i, j] = A[i, j] + 1"
    judge(s)


@pytest.mark.parametrize(("old", "new", "message"), [
    ("part[c] = 0", "part[c] = r", None),
    ("T.update(total[0], part[v]", "T.update(total[0], part[3 - v]", "is no reduction of all of them"),
    ("for v in T.serial(4)", "for v in T.serial(3)", "is no reduction of all of them"),
    ("total[0] = 0", "total[0] = 1", "is not filled with the identity"),
    ("B[r * 2 + b, d * 3 + k] = A", "B[r * 2 + b, (3 - d) * 3 + k] = part[d] + A", None),
    ("total[0] = total[0] * 2", "total[0] = total[0] * 2 + part[0]", "is no reduction of all of them"),
    ("total[0] = total[0] * 2", "B[r, 0] = 1", "would run twice"),
    ("+ total[0]", "+ B[r * 2 + b, (d * 3 + k + 11) % 12]", "would"),
    ("+ total[0]", "+ part[3 - d]", "would"),
])
def test_what_cores_may_not_share(old, new, message):
    text = ROWS.format(op="add", identity="0")
    assert old in text
    s = schedule(text.replace(old, new))
    if message is None:
        s.bind("c", to="core", also=["d"])
        judge(s)
        return
    with pytest.raises(helve.Error) as caught:
        s.bind("c", to="core", also=["d"])
    assert caught.value.code in ("HV1006", "HV1007", "HV1008") and message in str(caught.value), str(caught.value)


class Shared:
    """A random program whose loops over parts cores may share, or may not."""

    def __init__(self, seed):
        self.random = rng = random.Random(seed)
        self.cores, self.width = rng.choice([2, 3, 4]), rng.choice([1, 2, 3])
        self.lines, self.loops, self.names = [], [], iter(f"x{n}" for n in range(99))
        self.elements, self.first = rng.choice([1, 1, 2, 3]), rng.random() < 0.5
        self.op, self.identity = rng.choice([("add", 0), ("mul", 1), ("max", -(2**31)), ("min", 2**31 - 1)])
        indent = 0
        memory = [f'total = T.alloc_{rng.choice(["local", "shared"])}(({self.elements},), "int32")',
                  f'part = T.alloc_shared(({self.shape()},), "int32")']
        outside = rng.random() < 0.3
        if outside:
            self.lines += memory
        if rng.random() < 0.6:
            self.lines.append("for r in T.serial(3):")
            indent = 1
        elif rng.random() < 0.5:
            self.lines.append("if b < 1:")
            indent = 1
        self.row = "r" if "r in" in self.lines[-1:] or "for r" in "".join(self.lines) else "1"
        self.pad = "    " * indent
        if not outside:
            self.add(*memory)
        for step in self.steps():
            step()

    def shape(self):
        return f"{self.cores}, {self.elements}" if self.first else f"{self.elements}, {self.cores}"

    def add(self, *lines):
        self.lines += [self.pad + line for line in lines]

    def at(self, core, element):
        return f"{core}, {element}" if self.first else f"{element}, {core}"

    def steps(self):
        """The phases of a program that may be shared, and often one change."""
        out = [self.fill, self.produce, self.combine, self.consume]
        if self.random.random() < 0.3:
            out.insert(self.random.randrange(5), self.random.choice([self.consume, self.produce, self.alone]))
        if self.random.random() < 0.15:
            i = self.random.randrange(len(out) - 1)
            out[i], out[i + 1] = out[i + 1], out[i]
        return out

    def column(self, core):
        return f"{core} * {self.width} + {self.random.randrange(self.width)}"

    def loop(self):
        name = next(self.names)
        self.loops.append(name)
        return name

    def fill(self):
        e = next(self.names)
        value = self.identity if self.random.random() < 0.9 else 3
        self.add(f"for {e} in T.serial({self.elements}):", f"    total[{e}] = {value}")

    def produce(self):
        c, e = self.loop(), next(self.names)
        core = c if self.random.random() < 0.95 else f"({c} + 1) % {self.cores}"
        self.add(f"for {c} in T.serial({self.cores}):", f"    for {e} in T.serial({self.elements}):",
                 f"        part[{self.at(core, e)}] = A[{self.row} + {e}, {self.column(c)}] * 3 + b")

    def combine(self):
        v, e = next(self.names), next(self.names)
        loops = [f"for {v} in T.serial({self.cores}):", f"for {e} in T.serial({self.elements}):"]
        if self.random.random() < 0.5:
            loops.reverse()
        element = e if self.random.random() < 0.9 else "0"
        self.add(loops[0], f"    {loops[1]}", f'        T.update(total[{element}], part[{self.at(v, e)}], "{self.op}")')

    def consume(self):
        if self.random.random() < 0.3:
            return self.consume_by_memory()
        d = self.loop()
        e = self.random.randrange(self.elements)
        value = self.random.choice([f"total[{e}]", f"total[{e}]", f"part[{self.at(d, e)}]",
                                    f"B[b, {self.row}, {self.column(d)}]"])
        self.add(f"for {d} in T.serial({self.cores}):", f"    B[b, {self.row}, {self.column(d)}] = {value} * 2 + {d}")

    def consume_by_memory(self):
        d, k, own = self.loop(), next(self.names), next(self.names)
        self.add(f"for {d} in T.serial({self.cores}):", f'    {own} = T.alloc_local(({self.width},), "int32")',
                 f"    for {k} in T.serial({self.width}):",
                 f"        {own}[{k}] = A[{self.row}, {d} * {self.width} + {k}] - total[0]",
                 f"    B[b, {self.row}, {self.column(d)}] = {own}[{self.random.randrange(self.width)}]")

    def alone(self):
        e = self.random.randrange(self.elements)
        self.add(self.random.choice([f"total[{e}] = total[{e}] * 3", f"total[{e}] = A[{self.row}, 0]",
                                     f"B[b, {self.row}, 0] = 4"]))

    def schedule(self):
        size = (6, self.cores * self.width)
        return schedule("\n".join(self.lines), f"A: T.Tensor({size}, 'int32'), B: T.Tensor({(2, *size)}, 'int32')")


SEEDS = range(60)


def test_random_loops_are_shared_rightly():
    shared = 0
    for seed in SEEDS:
        program = Shared(seed)
        s = program.schedule()
        first, *also = program.loops
        if also and program.random.random() < 0.1:
            also.pop()
        try:
            s.bind(first, to="core", also=also)
        except helve.Error as error:
            assert error.code in ("HV1006", "HV1007", "HV1008"), f"{error}\n{s.script()}"
            continue
        shared += 1
        try:
            helve.compile(s.version(0), target="interp", check="all")(*helve.testing.make_arguments(s.version(0)))
        except helve.Error as error:
            assert error.code == "HV0704", str(error)  # the program uses what it has not written
            continue
        judge(s)
    assert shared >= len(SEEDS) // 4
