"""Random nests of loops, and random primitives with arguments that may or may not fit them."""

import random
import re

import helve


# By `observed`: an element, its value, an operator.
FORMS = {
    False: ["{0} = {1}", "{0} = {1}", "{0} = {0} + {1}", "T.update({0}, {1}, '{2}')"],
    True: ["{0} = {1}", *["{0} = {0} * 7 + {1}"] * 4, "T.update({0}, {1}, '{2}')"],
}
OPERATORS = {False: ["add", "add", "mul", "max", "min"], True: ["add", "mul"]}


class Nest:
    """Statements on two tensors, and in every second program on memory of its own, with subscripts that stay inside.

    `size`: of each dimension, and the largest extent of a loop.

    `observed`: little of what statements do is hidden from callers. A tensor C tells what this memory holds at the end,
    and most stores keep what they overwrite, as the odd multiple of a number is the number's alone.
    """

    def __init__(self, seed, observed=False, size=8):
        self.observed = observed
        self.size = size
        self.random = random.Random(seed)
        self.names = iter("ijklmnopqrstuvwxyz")
        self.lines = []
        self.buffers = "AB"

    def index(self, variables):
        if not variables or self.random.random() < 0.1:
            return str(self.random.randrange(self.size))
        name, extent = self.random.choice(variables)
        least = self.random.randrange(self.size - extent + 1)
        forward = f"{name} + {least}" if least else name
        return self.random.choice([forward, forward, f"{least + extent - 1} - {name}"])

    def element(self, variables):
        return f"{self.random.choice(self.buffers)}[{self.index(variables)}, {self.index(variables)}]"

    def memory(self):
        """A buffer, of which every element is computed from the tensors."""
        whole = [("x", self.size), ("y", self.size)]
        self.lines += [f"        X = T.alloc_shared(({self.size}, {self.size}), 'int32')",
                       f"        for x in T.serial({self.size}):", f"            for y in T.serial({self.size}):",
                       f"                X[x, y] = {self.element(whole)} * 5 + {self.element(whole)}"]
        self.names = iter("ijklmnopqrstuvw")
        self.buffers = "ABXXX"

    def reduction(self, variables):
        """A tile operation that combines a part of a row with an element, or with its own result alone."""
        source, target = self.random.sample(sorted(set(self.buffers)), 2)
        extent = self.random.randrange(1, self.size + 1)
        least = self.random.randrange(self.size - extent + 1)
        kind = "sum" if self.observed else self.random.choice(["sum", "max", "min"])
        clear = not self.observed and self.random.random() < 0.3
        return (f"T.reduce_{kind}({source}[{self.index(variables)}, {least}:{least + extent}], "
                f"{target}[{self.index(variables)}, {self.index(variables)}], dim=0, clear={clear})")

    def block(self, depth, variables, indent):
        for _ in range(self.random.choice([1, 1, 2])):
            pad = "    " * indent
            kind = self.random.random()
            if depth and (kind < 0.75 or not variables):
                name, extent = next(self.names), self.random.choice([0, 1, 2, 3, 5, self.size])
                self.lines.append(f"{pad}for {name} in T.serial({extent}):")
                self.block(depth - 1, variables + [(name, extent)] if extent else variables, indent + 1)
            elif depth > 1 and kind < 0.78:
                self.counted(depth, variables, indent)
            elif depth > 1 and kind < 0.82:
                self.independent(variables, indent)
            elif depth and kind < 0.88:
                self.lines.append(f"{pad}if {self.random.choice(variables)[0]} < 2:")
                self.block(depth - 1, variables, indent + 1)
            elif kind > 0.92:
                self.lines.append(pad + self.reduction(variables))
            else:
                value = f"{self.element(variables)} * 3 + {self.random.randrange(9)}"
                element = self.element(variables)
                form, op = self.random.choice(FORMS[self.observed]), self.random.choice(OPERATORS[self.observed])
                self.lines.append(pad + form.format(element, value, op))

    def counted(self, depth, variables, indent):
        """A loop that runs until a counter of its own has a value."""
        pad, count = "    " * indent, f"n_{len(self.lines)}"
        self.lines += [f"{pad}{count} = T.alloc_local((1,), 'int32')", f"{pad}{count}[0] = 0",
                       f"{pad}while {count}[0] < {self.random.choice([0, 1, 2])}:"]
        self.block(depth - 1, variables, indent + 1)
        self.lines.append(f"{pad}    {count}[0] = {count}[0] + 1")

    def independent(self, variables, indent):
        """A loop over two variables without order: each iteration has an element of its own, and reads others."""
        pad, names = "    " * indent, [next(self.names), next(self.names)]
        extents = [self.random.choice([1, 2, 3, self.size]) for _ in names]
        kind = self.random.choice(["Parallel", "Parallel", "Persistent"]) if not variables else "Parallel"
        ranges = ", ".join(map(str, extents))
        ranges = f"[{ranges}]" if kind == "Persistent" else ranges
        target = self.random.choice(self.buffers)
        own = ", ".join(self.random.choice([name, f"{self.size - 1} - {name}", f"{name} + {self.size - extent}"])
                        for name, extent in zip(names, extents))
        others = [name for name in self.buffers if name != target]
        inside = variables + list(zip(names, extents))
        read = f"{self.random.choice(others)}[{self.index(inside)}, {self.index(inside)}]"
        form, op = self.random.choice(FORMS[self.observed]), self.random.choice(OPERATORS[self.observed])
        statement = form.format(f"{target}[{own}]", f"{read} * 3 + {self.random.randrange(9)}", op)
        self.lines += [f"{pad}for {names[0]}, {names[1]} in T.{kind}({ranges}):", f"{pad}    {statement}"]

    def dealt(self):
        """A launch of several blocks, to which loops deal their iterations; some say which block runs them."""
        for _ in range(self.random.choice([1, 1, 2])):
            names = [next(self.names) for _ in range(self.random.choice([1, 1, 2]))]
            extents = [self.random.choice([1, 3, 5, self.size]) for _ in names]
            i, j = names[0], names[-1] if len(names) > 1 else 0
            value = f"B[{i}, {j}] * 3" + self.random.choice(["", "", " + T.cast(b, 'int32')"])
            element = self.random.choice([f"A[{i}, {j}]", f"A[{self.size - 1} - {i}, {j}]"])
            statement = self.random.choice([f"{element} = {value}", f"T.atomic_add(A[0, 0], {value})",
                                            f"if {i} < 2:\n                {element} = {value}"])
            self.lines += [f"        for {', '.join(names)} in T.Persistent({extents}):", f"            {statement}"]
        return self.of_lines("AB", blocks=3)

    def schedule(self):
        if self.random.random() < 0.5:
            self.memory()
        self.block(3, [], 2)
        names = "AB"
        if self.observed and "X" in self.buffers:
            names = "ABC"
            self.lines += [f"        for y in T.serial({self.size}):", f"            for z in T.serial({self.size}):",
                           "                C[y, z] = X[y, z]"]
        return self.of_lines(names, blocks=1)

    def of_lines(self, names, blocks):
        params = ", ".join(f"{name}: T.Tensor(({self.size}, {self.size}), 'int32')" for name in names)
        text = "\n".join([f"@T.prim_func\ndef f({params}):", f"    with T.Kernel({blocks}) as b:", *self.lines, ""])
        return helve.Schedule(helve.parse(text))


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


def bind(s, rng, one, loops):
    """Gives a loop executors, cores sometimes others as well."""
    to = rng.choice(["block", "block", "thread", "core"])
    also = rng.sample(loops, min(len(loops), rng.choice([0, 1, 2]))) if to == "core" else []
    return s.bind(one, to=to, also=[each for each in also if each != one])


def function_of(s, place):
    """A function of the statement alone: buffers become tensors, and variables of loops around it are 0 there."""
    text, script = place.text, s.script()
    for loop in enclosing(s, place):
        for name in re.match(r"for ([\w, ]+) in", loop.text)[1].split(", "):
            text = re.sub(rf"\b{name}\b", "0", text)
    code = re.sub(r'"[^"]*"', "", text)  # layouts have names with brackets as well
    names = sorted(set(re.findall(r"\b([A-Z]\w*)\[", code)) - set(re.findall(r"^ *(\w+) = T\.alloc", code, re.M)))
    shapes = {name: re.search(rf"\b{name}(?:: T\.Tensor| = T\.alloc_\w+)\((\(.*?\))", script)[1] for name in names}
    params = ", ".join(f"{name}: T.Tensor({shape}, 'int32')" for name, shape in shapes.items())
    lines = "".join(f"        {line}\n" for line in text.splitlines())
    return helve.parse(f"@T.prim_func\ndef leaf({params}):\n    with T.Kernel(1) as b:\n{lines}")


def schedule_of(s, place, rng):
    """A schedule of the function of a statement, or of another one where there is no such function."""
    try:
        leaf = helve.Schedule(function_of(s, place))
    except helve.Error:
        return Nest(0).schedule()
    for _ in range(rng.choice([0, 2, 6])):
        try:
            some_step(leaf, rng)()
        except helve.Error as error:
            assert error.code in REFUSALS, f"{error}\n{leaf.script()}"
    return leaf


def some_step(s, rng):
    """A primitive with arguments that may or may not fit."""
    all_places = places(s)
    loops = [each for each in all_places if each.text.startswith("for ")] or all_places
    stores = [each for each in all_places if "\n" not in each.text] or all_places
    one, two, store = rng.choice(loops), rng.choice(loops), rng.choice(stores)
    allocation = rng.choice([each for each in all_places if "T.alloc" in each.text] or all_places)
    several = rng.choice([each for each in loops if re.match(r"for \w+, ", each.text)] or loops)
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
        lambda: s.separate(rng.choice([several, several, one])),
        lambda: s.unswitch(one),
        lambda: s.specialize(rng.choice(all_places), one, rng.choice([-1, 0, 1, 2, 9])),
        lambda: s.reverse(one),
        lambda: s.trim(rng.choice([one, inner])),
        lambda: s.shift(one, rng.choice([-2, 1, 5])),
        lambda: s.skew(one, rng.choice([inner, two]), rng.choice([-1, 1, 2])),
        lambda: s.parallel(one),
        lambda: s.serial(one),
        lambda: s.vectorize(one),
        lambda: s.tensorize(one, rng.choice(["copy", "fill", "gemm", "reduce_sum", "reduce_max"]),
                            rng.choice(["cut", "whole"])),
        lambda: s.lift(allocation, one),
        lambda: s.sink(allocation, one),
        lambda: s.rfactor(one, rng.choice([None, None, two]), rng.choice(["local", "shared", "fragment", "global"])),
        lambda: s.rfactor(inner, rng.choice([None, one]), rng.choice(["local", "shared", "fragment", "global"])),
        lambda: bind(s, rng, one, loops),
        lambda: s.threads(rng.choice(all_places), rng.choice([32, 64, 96, 33])),
        lambda: s.compute_at(rng.choice([one, inner, rng.choice(all_places)]), next_one),
        lambda: s.compute_at(one, rng.choice(loops)),
        lambda: s.reverse_compute_at(next_one, rng.choice(loops)),
        lambda: s.inline(rng.choice(stores)),
        lambda: s.substitute(one, schedule_of(s, one, rng)),
        lambda: s.substitute(inner, schedule_of(s, inner, rng)),
        lambda: s.auto(rng.choice(["llvm", "cuda"])),
        lambda: s.cache_read(rng.choice(all_places), rng.choice("AB"), rng.choice(["local", "shared", "fragment"])),
        lambda: s.precompute(store, rng.choice(values_of(store)), rng.choice([*enclosing(s, store), store]),
                             rng.choice(["local", "shared"])),
        lambda: s.prefetch(one, rng.choice("AB"), rng.choice([1, 3])),
        lambda: s.cache_read(one, rng.choice("AB"), "local", within=rng.sample(stores, 1)),
        lambda: s.split_dimension(rng.choice(["X", "A_local", "B_local", "A_shared"]), rng.choice([0, 1, 2]),
                                  rng.choice([1, 2, 3, 4, 9])),
        lambda: s.set_layout(own_memory(rng), rng.choice([
            "order(1, 0)", "order(0, 1)", "tile(3)", f"tile({rng.choice([1, 2, 9])}, {rng.choice([1, 4, 9])})"])),
        lambda: s.pad(own_memory(rng), rng.choice([0, 1, 1]), rng.choice([1, 3])),
        lambda: s.swizzle(own_memory(rng), *rng.choice([(1, 0, 1), (1, 1, 2), (2, 0, -2)])),
        lambda: s.cache_write(rng.choice(all_places), rng.choice("AB"), rng.choice(["local", "shared", "fragment"])),
    ])


def device_step(s, rng):
    """A primitive that gives work to threads and blocks, or memory of a block or a thread to what they share."""
    all_places = places(s)
    loops = [each for each in all_places if each.text.startswith("for ")] or all_places
    one = rng.choice(loops)
    inner = near(s, one, "{}.body[0]".format, one)
    scope = rng.choice(["local", "shared", "fragment"])
    return rng.choice([
        lambda: s.bind(one, to="block"),
        lambda: s.bind(one, to="block"),
        lambda: s.bind(one, to="thread"),
        lambda: s.bind(one, to="thread"),
        lambda: s.threads(all_places[0], rng.choice([32, 64, 96])),
        lambda: s.parallel(one),
        lambda: s.parallel(one),
        lambda: s.fuse(one, inner),
        lambda: s.split(one, rng.choice([2, 32]), tail=rng.choice(["guard", "cut"])),
        lambda: s.rfactor(one, scope=scope),
        lambda: s.rfactor(inner, one, scope),
        lambda: s.cache_read(rng.choice(all_places), rng.choice("AB"), scope),
        lambda: s.cache_write(rng.choice(all_places), rng.choice("AB"), scope),
    ])


# What a step of any kind may be refused by: nothing found, arguments, form, what is refuted or unknown.
REFUSALS = ("HV1001", "HV1005", "HV1006", "HV1007", "HV1008")
# What a GPU may have no code for: work and local memory beside T.threads that is still to be divided, vectors of a
# scheduled loop.
NOT_ON_DEVICE = ("HV0801", "HV1011")


def for_device(seed, taken=10, tries=150):
    """A random nest that steps have given to threads and blocks of a GPU, where they were accepted."""
    s, rng = Nest(seed, size=32).schedule(), random.Random(seed + 2000)
    for _ in range(tries):
        step = rng.choice([device_step, device_step, some_step])(s, rng)
        try:
            step()
        except helve.Error as error:
            assert error.code in REFUSALS, f"{error}\n{s.script()}"
        if len(s) >= taken or len(s.script()) > 4000:
            break
    return s
