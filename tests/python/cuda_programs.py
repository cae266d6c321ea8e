"""Random kernels in thread form: what the emitter of CUDA C is tried on.

A program loads into fragments, computes, exchanges by shuffles and through shared memory, and stores; loads and stores
come as vectors of every width, aligned or not, under guards of every kind. Subscripts are brought into bounds by a
floor modulo.
"""

import random

FLOATS = ["float32", "float64", "float16", "bfloat16", "float8_e4m3", "float8_e5m2"]
INTS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


class RandomKernel:
    """The text of one function, and what a call of it needs."""

    def __init__(self, name, seed):
        self.rng = random.Random(seed)
        pick = self.rng.choice
        self.name = name
        self.threads = pick([32, 64, 96])
        self.blocks = pick([1, 2, 3])
        self.width = pick([1, 2, 3, 4, 8, 16])
        self.floats = self.rng.random() < 0.6
        self.work = pick(["float32", "float64", "bfloat16", "float16"] if self.floats else INTS)
        memory = FLOATS if self.floats else INTS
        self.inputs = [pick([self.work, pick(memory)]) for _ in range(2)]
        self.output = pick([self.work, pick(memory)]) if self.floats else self.work
        self.dynamic = self.rng.random() < 0.3
        self.pad = pick([0, 0, 8, 3])
        self.size = self.blocks * self.threads * self.width
        self.extent = self.size - self.rng.randrange(0, self.threads * self.width) if self.dynamic else self.size
        self.lines = []
        self.depth = 1
        self.text = self._function()

    # The frame.

    def _function(self):
        rows = f'T.Tensor(({self.blocks * self.threads}, {self.width}), "{self.output}"'
        rows += f", strides=({self.width + self.pad}, 1))" if self.pad else ")"
        extent = "M" if self.dynamic else str(self.extent)
        a = f'A: T.Tensor(({extent},), "{self.inputs[0]}")'
        b = f'B: T.Tensor(({self.size},), "{self.inputs[1]}")'
        head = ['M = T.dyn("M")', ""] if self.dynamic else []
        head += ["@T.prim_func", f"def {self.name}({a}, {b}, O: {rows}, n: T.index, s: T.{self.work}):"]
        self.line(f"with T.Kernel({self.blocks}, threads={self.threads}) as bx:")
        self.depth += 1
        shape = f'({self.threads}, {self.width}), "{self.work}"'
        for fragment in "xyz":
            self.line(f"{fragment} = T.alloc_fragment({shape})")
        self.line(f'S = T.alloc_shared(({self.threads * self.width},), "{self.work}")')
        self._load("A", "x", self.inputs[0], extent)
        self._load("B", "y", self.inputs[1], str(self.size))
        for _ in range(self.rng.randrange(1, 5)):
            self.rng.choice([self._compute, self._compute, self._shuffle, self._exchange, self._branch, self._repeat])()
        self._store()
        return "\n".join(head + self.lines) + "\n"

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def threads_loop(self):
        self.line(f"for tx in T.threads({self.threads}):")

    # Parts. Each stands at block scope.

    def _load(self, source, fragment, dtype, extent):
        kind = self.rng.choice(["whole", "whole", "shifted", "reversed", "free", "free", "lane"])
        base = f"(bx * {self.threads} + tx) * {self.width}"
        self.threads_loop()
        self.depth += 1
        if kind == "free" or extent == "M":
            self.line(f"for r in T.unroll({self.width}):")
            self.line(f"    {fragment}[tx, r] = T.cast(3, \"{self.work}\")")
        if extent == "M" and self.rng.random() < 0.5:
            self.line(f"if {base} + {self.width} <= M:")
            self.depth += 1
            kind = "whole"
        self.line(f"for v in T.vectorized({self.width}):")
        self.depth += 1
        place = {
            "whole": f"{base} + v",
            "shifted": f"({base} + v + {self.rng.randrange(1, 9)}) % {self.extent if extent != 'M' else 'T.max(M, 1)'}",
            "reversed": f"{base} + ({self.width - 1} - v)",
            "free": f"{base} + v" if extent == "M" else f"{self._index(['tx', 'v', 'bx', 'n'])} % {extent}",
            "lane": f"{base} + v",
        }[kind]
        if extent == "M":
            self.line(f"if {place} < M:")
            self.depth += 1
        elif kind == "lane":
            self.line(f"if v < n % {self.width + 1}:")
            self.line(f"    {fragment}[tx, v] = T.cast(1, \"{self.work}\")")
            self.line("else:")
            self.depth += 1
        self.line(f"{fragment}[tx, v] = {self._converted(f'{source}[{place}]', dtype)}")
        self.depth = 2

    def _converted(self, value, dtype):
        return value if dtype == self.work else f'T.cast({value}, "{self.work}")'

    def _expression(self, depth=2):
        pick = self.rng.choice
        if depth == 0 or self.rng.random() < 0.2:
            return pick(["x[tx, r]", "y[tx, r]", "s", self._constant()])
        a, b = self._expression(depth - 1), self._expression(depth - 1)
        own = ["T.max({a}, {b})", "T.min({a}, {b})", "({a} + {b})", "({a} - {b})", "({a} * {b})", "T.abs({a})",
               "-({a})",
               "T.if_then_else({a} < {b}, {a}, {b})", "T.if_then_else(r % 2 == 0 and {a} != {b}, {b}, {a})"]
        real = ["T.sqrt(T.abs({a}))", "T.floor({a})", "({a} / {b})", "T.fma({a}, {b}, {a})"]
        whole = ["({a} & {b})", "({a} ^ {b})", "({a} | {b})", "~({a})", "({a} >> %d)" % self.rng.randrange(8),
                 "({a} << %d)" % self.rng.randrange(8), "({a} // %d)" % self.rng.randrange(1, 9),
                 "({a} %% %d)" % self.rng.randrange(1, 9)]
        return pick(own + (real if self.floats else whole)).format(a=a, b=b)

    def _index(self, names, depth=3):
        """An index expression of any sign."""
        pick = self.rng.choice
        if depth == 0 or self.rng.random() < 0.15:
            return pick([*names, str(self.rng.randrange(0, 50))])
        a, b = self._index(names, depth - 1), self._index(names, depth - 1)
        k = self.rng.randrange(1, 9)
        forms = ["({a} + {b})", "({a} - {b})", "({a} * {k})", "({a} // {k})", "({a} % {k})", "({a} // (0 - {k}))",
                 "({a} % (0 - {k}))",
                 "T.min({a}, {b})", "T.max({a}, {b})", "T.abs({a})", "T.if_then_else({a} < {b}, {b}, {a})",
                 "({a} ^ {b})", "({a} & {b})",
                 "({a} | {b})", "(~{a})", "({a} << {k})", "({a} >> {k})", "(-{a})"]
        return pick(forms).format(a=a, b=b, k=k)

    def _constant(self):
        return f'T.cast({self.rng.randrange(0, 7)}, "{self.work}")'

    def _compute(self):
        self.threads_loop()
        self.line(f"    for r in T.{self.rng.choice(['unroll', 'serial'])}({self.width}):")
        if self.rng.random() < 0.5:
            self.line(f"        q = {self._expression()}")
            self.line("        z[tx, r] = q")
        else:
            self.line(f"        z[tx, r] = {self._expression()}")
        self._move("z", "x")

    def _move(self, source, target):
        self.threads_loop()
        self.line(f"    for r in T.unroll({self.width}):")
        self.line(f"        {target}[tx, r] = {source}[tx, r]")

    def _shuffle(self):
        rotating = self.rng.random() < 0.5
        bits = "1 << k" if rotating else str(self.rng.randrange(1, 32))
        if rotating:
            self.line(f"for k in T.unroll({self.rng.randrange(1, 6)}):")
            self.depth += 1
        self.threads_loop()
        self.line(f"    for r in T.unroll({self.width}):")
        self.line(f"        z[tx, r] = x[tx ^ ({bits}), r]")
        self.threads_loop()
        self.line(f"    for r in T.unroll({self.width}):")
        self.line("        x[tx, r] = T.max(x[tx, r], z[tx, r])")
        self.depth = 2

    def _exchange(self):
        total = self.threads * self.width
        self.line("T.sync_threads()")
        self.threads_loop()
        self.line(f"    for v in T.vectorized({self.width}):")
        self.line(f"        S[tx * {self.width} + v] = x[tx, v]")
        self.line("T.sync_threads()")
        self.threads_loop()
        self.line(f"    for v in T.vectorized({self.width}):")
        place = self.rng.choice(
            [
                f"({total} - tx * {self.width} - {self.width}) + v",
                f"(tx * {self.width} + v - {self.rng.randrange(0, 3 * total)}) % {total}",
                f"((tx - {self.rng.randrange(0, 70)}) // {self.rng.randrange(1, 7)} + v) % {total}",
                f"(tx % 8 * {self.width} + v) + 0",
                f"{self._index(['tx', 'v', 'bx', 'n'])} % {total}",
                f"{self._index(['tx', 'v', 'bx'])} % {total}",
            ]
        )
        self.line(f"        y[tx, v] = S[{place}]")

    def _branch(self):
        condition = self.rng.choice(["bx == 0", "n > 3", "bx * 2 < n"])
        self.line(f"if {condition}:")
        self.depth += 1
        self._compute()
        self.depth -= 1
        if self.rng.random() < 0.5:
            self.line("else:")
            self.depth += 1
            self._compute()
            self.depth -= 1

    def _repeat(self):
        self.threads_loop()
        self.line('    L = T.alloc_local((2,), "int32")')
        self.line("    L[0] = T.cast(tx % 5, \"int32\")")
        self.line("    while L[0] > 0:")
        self.line("        L[0] = L[0] - 1")
        self.line(f"        for r in T.serial(T.min(n, {self.width})):")
        self.line("            y[tx, r] = y[tx, r] + s")
        self._compute()

    def _store(self):
        self.threads_loop()
        self.depth += 1
        guard = self.rng.choice([None, None, "n > 2", "(tx + bx) % 3 != 1"])
        if guard:
            self.line(f"if {guard}:")
            self.depth += 1
        value = self.rng.choice(["x[tx, v]", "T.max(x[tx, v], y[tx, v])", "x[tx, v] + y[tx, v]"])
        value = value if self.output == self.work else f'T.cast({value}, "{self.output}")'
        cut = self.rng.choice([0, 0, self.rng.randrange(self.width), self.width // 2])
        for lanes in [str(cut), f"{cut}, {self.width}"] if cut else [str(self.width)]:
            self.line(f"for v in T.vectorized({lanes}):")
            self.line(f"    O[bx * {self.threads} + tx, v] = {value}")
        self.depth = 2
