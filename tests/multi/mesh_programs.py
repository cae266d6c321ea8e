"""Random programs for a mesh whose cores exchange integers: each core has its own part of every tensor.

The fuzzer's programs write a tensor that all cores share, which processes cannot; these move tiles of annotated tensors
alone, so that one text runs on a mesh of any device.
"""

import random

import numpy as np

HEAD = """@T.prim_func
def main(A: T.Tensor({shape}, "{dtype}"), B: T.Tensor({shape}, "{dtype}")):
    T.annotate_mesh_tensor({{A: {{"sharding": {{"x": 0, "y": 1}}, "tiling": [{rows}, {columns}]}},
                            B: {{"sharding": {{"x": 0, "y": 1}}, "tiling": [{rows}, {columns}]}}}},
                           nrows={nrows}, ncols={ncols})
    with T.Kernel({nrows}, {ncols}) as (r, c):
"""


class Writer:
    """One program: its text in lines, with buffers as they are needed."""

    def __init__(self, seed, mesh):
        self.rng = random.Random(seed)
        self.mesh = mesh
        self.dtype = self.rng.choice(["int32", "int64", "int16", "uint8"])
        count = mesh[0] * mesh[1]
        self.tile = (count * self.rng.randint(1, 2), self.rng.randint(1, 5))
        self.grid = (self.rng.randint(1, 3), self.rng.randint(1, 3))
        self.short = self.rng.choice([0, 0, 1])  # rows that the last core lacks
        self.lines, self.allocs, self.depth = [], [], 3

    def line(self, text):
        self.lines.append("    " * self.depth + text)

    def buffer(self, shape):
        name = f"b{len(self.allocs)}"
        self.allocs.append(f'        {name} = T.alloc_shared({shape}, "{self.dtype}")')
        return name

    def mix(self, term):
        """Every element of the tile takes a term, which may name its subscripts."""
        rows, columns = self.tile
        self.line(f"for i, j in T.Parallel({rows}, {columns}):")
        self.line(f"    tile[i, j] = tile[i, j] * {self.rng.choice([1, 3, 5])} + {term}")

    def members(self, axis):
        return {"x": self.mesh[0], "y": self.mesh[1], "all": self.mesh[0] * self.mesh[1]}[axis]

    def root(self, axis, count):
        """A number, the coordinate along the other axis, or what a tile of work counts."""
        known = ["p", *({"x": "c", "y": "r"}[axis] if axis != "all" else "q")]
        return f"({self.rng.choice(known)} + {self.rng.randrange(3)}) % {count}" if self.rng.random() < 0.5 else (
            self.rng.randrange(count))

    def exchange(self, axes=("x", "y", "all")):
        rng, (rows, columns) = self.rng, self.tile
        axis = rng.choice(axes)
        count, at = self.members(axis), f', axis="{axis}"'
        kind = rng.choice(["gather", "concat", "reduce", "in place", "scatter", "all_to_all", "permute", "broadcast",
                           "put", "barrier", "map", "to root", "concat to root", "from root", "reduce to root"])
        op = rng.choice(["sum", "prod", "max", "min"])
        if kind == "gather":
            other = self.buffer((rows, columns, count))
            self.line(f"T.comm.all_gather(tile, {other}{at})")
            self.mix(f"{other}[i, j, (r + c + {rng.randrange(9)}) % {count}]")
        elif kind == "concat":
            other = self.buffer((count * rows, columns))
            self.line(f"T.comm.all_gather(tile, {other}{at}, dim=0)")
            self.mix(f"{other}[i + {rng.randrange(count) * rows}, j]")
        elif kind == "reduce":
            other = self.buffer((rows, columns))
            self.line(f'T.comm.all_reduce(tile, {other}, op="{op}"{at})')
            self.mix(f"{other}[i, j]")
        elif kind == "in place":
            self.line(f'T.comm.all_reduce(tile, tile, op="{op}"{at})')
        elif kind == "scatter":
            other = self.buffer((rows // count, columns))
            self.line(f'T.comm.reduce_scatter(tile, {other}, op="{op}"{at}, dim=0)')
            self.mix(f"{other}[i % {rows // count}, j]")
        elif kind == "all_to_all":
            other = self.buffer((rows, columns))
            self.line(f"T.comm.all_to_all(tile, {other}{at})")
            self.mix(f"{other}[i, j]")
        elif kind == "permute":
            other = self.buffer((rows, columns))
            self.line(f"T.comm.permute(tile, {other}, shift={rng.randint(-2, 3)}{at})")
            self.mix(f"{other}[i, j]")
        elif kind == "broadcast":
            other = self.buffer((rows, columns))
            self.line(f"T.comm.broadcast(tile, {other}, root={self.root(axis, count)}{at})")
            self.mix(f"{other}[i, j]")
        elif kind == "map":
            other, by = self.buffer((rows, columns)), rng.randint(-2, 2)
            source = rng.choice([f"k + {by}", f"{by} - k", f"(k * 2 + {by}) % {count}", f"k + {by} * (k % 2)"])
            self.line(f"T.fill({other}, 3)")
            self.line(f"T.comm.permute(tile, {other}, source=lambda k: {source}{at})")
            self.mix(f"{other}[i, j]")
        elif kind in ("to root", "concat to root"):
            stacked = kind == "to root"
            other = self.buffer((rows, columns, count) if stacked else (count * rows, columns))
            self.line(f"T.fill({other}, 3)")
            self.line(f"T.comm.gather(tile, {other}, {self.root(axis, count)}{at}{'' if stacked else ', dim=0'})")
            self.mix(f"{other}[i, j, {rng.randrange(count)}]" if stacked else
                     f"{other}[i + {rng.randrange(count) * rows}, j]")
        elif kind == "from root":
            other = self.buffer((rows // count, columns))
            self.line(f"T.comm.scatter(tile, {other}, root={self.root(axis, count)}{at}, dim=0)")
            self.mix(f"{other}[i % {rows // count}, j]")
        elif kind == "reduce to root":
            other = rng.choice(["tile", self.buffer((rows, columns))])
            if other != "tile":
                self.line(f"T.fill({other}, 3)")
            self.line(f'T.comm.reduce(tile, {other}, op="{op}", root={self.root(axis, count)}{at})')
            self.mix(f"{other}[i, j]")
        elif kind == "put" and "all" in axes:
            other = self.buffer((rows, columns))
            self.line(f"T.fill({other}, 3)")
            source, target = ([rng.randrange(n) for n in self.mesh] for _ in range(2))
            self.line(f"T.comm.put(tile, {other}, src_core={source}, dst_core={target})")
            self.mix(f"{other}[i, j]")
        else:
            self.line(f'T.comm.barrier("{axis}")')

    def statement(self):
        kind = self.rng.choice(["exchange"] * 4 + ["loop", "row", "mix"])
        if kind == "loop":
            self.line(f"for k{self.depth} in T.serial({self.rng.randint(1, 2)}):")
            self.inside(lambda: (self.exchange(), self.mix(f"k{self.depth - 1}")))
        elif kind == "row":
            self.line(f"if r == {self.rng.randrange(self.mesh[0])}:")
            self.inside(lambda: self.exchange(("y",)))
        elif kind == "mix":
            self.mix("i * 7 - j + r * 3 + c")
        else:
            self.exchange()

    def inside(self, write):
        self.depth += 1
        write()
        self.depth -= 1

    def text(self):
        (nrows, ncols), (m, n), (rows, columns) = self.mesh, self.grid, self.tile
        shape = (nrows * m * rows - self.short, ncols * n * columns)
        self.shape = shape
        self.line(f"T.mesh_tensor_copy(A, tile, coord=[p, q], pad={self.rng.choice([0, 5])})")
        for _ in range(self.rng.randint(1, 4)):
            self.statement()
        self.line("T.mesh_tensor_copy(tile, B, coord=[p, q])")
        head = HEAD.format(shape=shape, dtype=self.dtype, rows=rows, columns=columns, nrows=nrows, ncols=ncols)
        tile = f'        tile = T.alloc_shared({self.tile}, "{self.dtype}")'
        loop = f"        for p, q in T.Persistent([{m}, {n}]):"
        return head + "\n".join([tile, *self.allocs, loop, *self.lines]) + "\n"


def program(seed, mesh):
    """(the text of a program, its arguments)."""
    writer = Writer(seed, tuple(mesh))
    text = writer.text()
    kind = np.iinfo(writer.dtype)
    values = np.random.default_rng(seed).integers(kind.min, kind.max, writer.shape, dtype=writer.dtype, endpoint=True)
    return text, [values, np.zeros_like(values)]
