"""Random primitives on random nests of loops: what is accepted keeps results, what is refused has a code.

Accepted programs are judged by the interpreter and by machine code, bit for bit unless a step says that it
re-associates.
"""

import random
import re

import helve
import helve.testing
import numpy as np
import pytest


class Nest:
    """Statements on two tensors, and in every second program on memory of its own, with subscripts that stay inside."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.names = iter("ijklmnopqrstuvwxyz")
        self.lines = []
        self.buffers = "AB"

    def index(self, variables):
        if not variables or self.random.random() < 0.1:
            return str(self.random.randrange(8))
        name, extent = self.random.choice(variables)
        least = self.random.randrange(8 - extent + 1)
        forward = f"{name} + {least}" if least else name
        return self.random.choice([forward, forward, f"{least + extent - 1} - {name}"])

    def element(self, variables):
        return f"{self.random.choice(self.buffers)}[{self.index(variables)}, {self.index(variables)}]"

    def memory(self):
        """A buffer, of which every element is computed from the tensors."""
        value = f"{self.element([('x', 8), ('y', 8)])} * 5 + {self.element([('x', 8), ('y', 8)])}"
        self.lines += ["        X = T.alloc_shared((8, 8), 'int32')", "        for x in T.serial(8):",
                       "            for y in T.serial(8):", f"                X[x, y] = {value}"]
        self.names = iter("ijklmnopqrstuvw")
        self.buffers = "ABXXX"

    def block(self, depth, variables, indent):
        for _ in range(self.random.choice([1, 1, 2])):
            pad = "    " * indent
            kind = self.random.random()
            if depth and (kind < 0.75 or not variables):
                name, extent = next(self.names), self.random.choice([0, 1, 2, 3, 5, 8])
                self.lines.append(f"{pad}for {name} in T.serial({extent}):")
                self.block(depth - 1, variables + [(name, extent)] if extent else variables, indent + 1)
            elif depth and kind < 0.85:
                self.lines.append(f"{pad}if {self.random.choice(variables)[0]} < 2:")
                self.block(depth - 1, variables, indent + 1)
            else:
                value = f"{self.element(variables)} * 3 + {self.random.randrange(9)}"
                element = self.element(variables)
                form = self.random.choice(["{0} = {1}", "{0} = {1}", "{0} = {0} + {1}", "T.update({0}, {1}, '{2}')"])
                op = self.random.choice(["add", "add", "mul", "max", "min"])
                self.lines.append(pad + form.format(element, value, op))

    def schedule(self):
        if self.random.random() < 0.5:
            self.memory()
        self.block(3, [], 2)
        return helve.Schedule(helve.parse(
            "@T.prim_func\ndef f(A: T.Tensor((8, 8), 'int32'), B: T.Tensor((8, 8), 'int32')):\n"
            "    with T.Kernel(1) as b:\n" + "\n".join(self.lines) + "\n"))


def places(s):
    """A cursor to each statement."""
    found = []

    def visit(path):
        try:
            cursor = s.path(path)
        except helve.Error:
            return False
        found.append(cursor)
        for field in ("body", "then_body", "else_body"):
            position = 0
            while visit(f"{path}.{field}[{position}]"):
                position += 1
        return True

    visit("body[0]")
    return found


def tensor(cursor):
    """The one that the statement stores to, or its copy."""
    return re.match(r"(?:T\.update\()?([AB])", cursor.text)


def near(s, cursor, change, otherwise):
    """The statement at a path that `change` makes of the cursor's, if there is one."""
    try:
        return s.path(change(str(cursor.path)))
    except helve.Error:
        return otherwise


def behind(path):
    """The place after a path."""
    return re.sub(r"\[(\d+)\]$", lambda found: f"[{int(found.group(1)) + 1}]", path)


def own_memory(rng):
    """The name of a buffer that steps may have made."""
    return rng.choice("AB") + rng.choice(["_shared", "_local"])


def values_of(store):
    """Texts of parts of what a statement stores, by their brackets, and some that are none."""
    _, _, value = store.text.partition(" = ")
    parts = re.findall(r"[AB]\w*\[[^\[\]]*\]", value) + re.findall(r"\(([^()]*)\)", value) + value.split(" + ")
    return [value, *parts, *re.findall(r"[AB]\[[^\[\]]*\] \* \w+", value)]


def enclosing(s, place):
    """The loops around a statement."""
    return [each for each in places(s) if each.text.startswith("for ") and str(place.path).startswith(f"{each.path}.")]


def some_step(s, rng):
    """A primitive with arguments that may or may not fit."""
    all_places = places(s)
    loops = [each for each in all_places if each.text.startswith("for ")] or all_places
    stores = [each for each in all_places if "\n" not in each.text] or all_places
    one, two, store = rng.choice(loops), rng.choice(loops), rng.choice(stores)
    allocation = rng.choice([each for each in all_places if "T.alloc" in each.text] or all_places)
    inner, next_one = near(s, one, "{}.body[0]".format, two), near(s, one, behind, two)
    return rng.choice([
        lambda: s.split(one, rng.choice([1, 2, 3, 8, 9]), tail=rng.choice(["guard", "cut", "exact"])),
        lambda: s.reorder(*rng.sample(loops, min(len(loops), rng.choice([2, 2, 3])))),
        lambda: s.divide(one, rng.choice([1, 2, 3, 8, 9]), tail=rng.choice(["guard", "cut", "exact"])),
        lambda: s.rotate(inner, one),
        lambda: s.pipeline(one, rng.choice([1, 2, 3])),
        lambda: s.cut(one, rng.choice([0, 1, 3, 9])),
        lambda: s.unroll(one),
        lambda: s.fuse(one, inner),
        lambda: s.join(one, next_one),
        lambda: s.reorder(inner, one),
        lambda: s.fission(rng.choice(all_places)),
        lambda: s.unswitch(one),
        lambda: s.shift(one, rng.choice([-2, 1, 5])),
        lambda: s.skew(one, rng.choice([inner, two]), rng.choice([-1, 1, 2])),
        lambda: s.parallel(one),
        lambda: s.serial(one),
        lambda: s.vectorize(one),
        lambda: s.tensorize(one, rng.choice(["copy", "fill", "gemm", "reduce_sum", "reduce_max"])),
        lambda: s.lift(allocation, one),
        lambda: s.sink(allocation, one),
        lambda: s.rfactor(one, rng.choice([None, None, two]), rng.choice(["local", "shared", "fragment"])),
        lambda: s.rfactor(inner, rng.choice([None, one]), rng.choice(["local", "shared", "fragment"])),
        lambda: s.bind(one, to=rng.choice(["block", "block", "thread", "core"])),
        lambda: s.threads(rng.choice(all_places), rng.choice([32, 64, 96, 33])),
        lambda: s.compute_at(rng.choice([one, inner, rng.choice(all_places)]), next_one),
        lambda: s.compute_at(one, rng.choice(loops)),
        lambda: s.reverse_compute_at(next_one, rng.choice(loops)),
        lambda: s.inline(rng.choice(stores)),
        s.auto,
        lambda: s.cache_read(rng.choice(all_places), rng.choice("AB"), rng.choice(["local", "shared", "fragment"])),
        lambda: s.precompute(store, rng.choice(values_of(store)), rng.choice([*enclosing(s, store), store]),
                             rng.choice(["local", "shared"])),
        lambda: s.prefetch(one, rng.choice("AB"), rng.choice([1, 3])),
        lambda: s.set_layout(own_memory(rng), rng.choice([
            "order(1, 0)", "order(0, 1)", "tile(3)", f"tile({rng.choice([1, 2, 9])}, {rng.choice([1, 4, 9])})"])),
        lambda: s.pad(own_memory(rng), rng.choice([0, 1, 1]), rng.choice([1, 3])),
        lambda: s.swizzle(own_memory(rng), *rng.choice([(1, 0, 1), (1, 1, 2), (2, 0, -2)])),
        lambda: s.cache_write(rng.choice(all_places), rng.choice("AB"), rng.choice(["local", "shared", "fragment"])),
    ])


def run(function):
    args = helve.testing.make_arguments(function)
    helve.testing.interpret(function, *args)
    return args


@pytest.mark.parametrize("seed", range(60))
def test_a_default_order_keeps_results(seed, monkeypatch):
    monkeypatch.setattr("helve.schedule.auto._SMALL", 0)
    s = Nest(seed).schedule()
    wanted = run(s)
    s.auto()
    for a, b in zip(run(s), wanted):
        np.testing.assert_array_equal(a, b, err_msg=f"{s.trace()}\n{s.script()}")
    assert all(step.effect == "equal" for step in s.report())


@pytest.mark.parametrize("seed", range(60))
def test_accepted_steps_keep_results(seed):
    s = Nest(seed).schedule()
    rng = random.Random(seed + 1000)
    wanted = run(s)
    marked = [each for each in places(s) if tensor(each)]
    for _ in range(12):
        if len(s.script()) > 6000:
            break
        steps, step = len(s), some_step(s, rng)
        try:
            step()
        except helve.Error as error:
            assert error.code in ("HV1001", "HV1005", "HV1006", "HV1007", "HV1008"), f"{error}\n{s.script()}"
            assert len(s) == steps
            continue
        got = run(s)
        for a, b in zip(got, wanted):
            np.testing.assert_array_equal(a, b, err_msg=f"{s.version(0).script()}\n{s.trace()}\n{s.script()}")
    for cursor in marked:  # a marked statement still stores to the same tensor, or is gone
        try:
            assert tensor(s.now(cursor))[1] == tensor(cursor)[1], f"{s.version(0).script()}\n{s.trace()}\n{s.script()}"
        except helve.Error as error:
            assert error.code == "HV1004"
    again = s.version(0)
    again.replay(helve.Trace.from_json(s.trace().json()))
    assert again.script() == s.script()
    if seed % 4 == 0:
        args = helve.testing.make_arguments(s)
        try:
            kernel = helve.compile(s)
        except helve.Error as error:
            assert error.code == "HV1011" and "vectorized" in s.script(), f"{error}\n{s.script()}"
            return
        kernel(*args)
        for a, b in zip(args, wanted):
            np.testing.assert_array_equal(a, b, err_msg=f"{s.trace()}\n{s.script()}")
