"""Tensors written around the caches: the same bits as through them, wherever the rows begin."""

import helve
import helve.testing
import numpy as np
import pytest
from differential import check
from helve import T
from helve.kernels import layer_norm, softmax

M = T.dyn("M")


def doubled(columns, dtype, tile):
    """Y = 2 X + 1 in tiles of a row."""

    @T.prim_func
    def main(X: T.Tensor((M, columns), dtype), Y: T.Tensor((M, columns), dtype)):
        with T.Kernel(M, T.ceildiv(columns, tile)) as (r, c):
            x = T.alloc_shared((tile,), dtype)
            T.copy(X[r, c * tile : c * tile + tile], x)
            for i in T.Parallel(tile):
                x[i] = x[i] * 2 + 1
            T.copy(x, Y[r, c * tile : c * tile + tile])

    return main


def two_outputs(columns):
    @T.prim_func
    def main(X: T.Tensor((M, columns), "float32"), Y: T.Tensor((M, columns), "float32"),
             Z: T.Tensor((M, columns), "float32")):
        with T.Kernel(M) as r:
            for j in T.Parallel(columns):
                Y[r, j] = X[r, j] + 1.0
                Z[r, j] = X[r, j] * X[r, j]

    return main


def shifted(columns):
    """Reads at two other places, and by the number of the column."""

    @T.prim_func
    def main(X: T.Tensor((M, columns + 3), "float32"), Y: T.Tensor((M, columns), "float32")):
        with T.Kernel(M) as r:
            for j in T.Parallel(columns):
                Y[r, j] = X[r, j + 3] - X[r, j] + T.cast(j, "float32")

    return main


def placed(shape, dtype, offset, fill=0):
    """An array that begins `offset` elements after a line of the cache, and the memory around it."""
    itemsize = np.dtype(dtype).itemsize
    count = int(np.prod(shape))
    memory = np.full(count + 256, fill, dtype)
    begin = (-memory.ctypes.data // itemsize) % (64 // itemsize) + offset + 64
    return memory[begin : begin + count].reshape(shape), memory


def agrees(function, arrays, shape, dtype, offset, outputs=1):
    """Both forms write the same bits, and nothing beside them."""
    results = []
    for options in ({}, {"stream_bytes": 1}):
        kernel = helve.compile(function, "llvm", **options)
        assert ("nontemporal" in kernel.source("llvm")) or not options
        out = [placed(shape, dtype, offset, 85) for _ in range(outputs)]
        kernel(*arrays, *(array for array, _ in out))
        for array, memory in out:
            results.append(array.copy())
            array[...] = 85
            assert np.all(memory == np.asarray(85, dtype))
    for plain, streamed in zip(results[:outputs], results[outputs:]):
        np.testing.assert_array_equal(plain, streamed)


@pytest.mark.parametrize("seed", range(24))
def test_rows_of_any_length_at_any_place(seed):
    rng = np.random.default_rng(seed)
    dtype = str(rng.choice(["float32", "float16", "float64", "int8", "int32"]))
    rows, columns = int(rng.integers(1, 5)), int(rng.integers(1, 9000 if seed % 2 else 400))
    tile = columns if seed % 3 else int(rng.choice([16, 64, 128, 1000]))
    x = rng.integers(-9, 9, (rows, columns)).astype(dtype)
    function = doubled(columns, dtype, tile)
    if "nontemporal" not in helve.compile(function, "llvm", stream_bytes=1).source("llvm"):
        assert min(columns, tile) < 2 * 64, "rows of two vectors have a line to begin at"
        return
    agrees(function, [x], x.shape, dtype, int(rng.integers(0, 64 // x.itemsize)))


@pytest.mark.parametrize("offset", [0, 1, 7, 12])
@pytest.mark.parametrize("columns", [64, 1000, 4096, 8192])
def test_reductions_and_rows_with_weights(columns, offset):
    rng = np.random.default_rng(columns)
    x, w, b = (rng.standard_normal(shape).astype("float32") for shape in ((3, columns), columns, columns))
    agrees(softmax(columns), [x], x.shape, "float32", offset)
    agrees(layer_norm(columns), [x, w, b], x.shape, "float32", offset)


@pytest.mark.parametrize("offset", [0, 4, 5])
def test_several_outputs_and_values_of_the_column(offset):
    x = np.random.default_rng(0).standard_normal((3, 5000)).astype("float32")
    agrees(two_outputs(5000), [x], x.shape, "float32", offset, outputs=2)
    agrees(shifted(4997), [x], (3, 4997), "float32", offset)


class Part:
    """One output of a block of rows, and how a row of it is written: by vectors of several widths, whole or in halves,
    from its begin or not, under a condition or not."""

    def __init__(self, rng, n, rows):
        self.x, self.y = f"X{n}", f"Y{n}"
        self.dtype = str(rng.choice(["float32", "float64", "int8", "int16", "int32"]))
        self.width = int(rng.choice([8, 16, 32, 64, 96, 128, 129, 130, 200, 1000, int(rng.integers(1, 300))]))
        self.kind = str(rng.choice(["row", "halves", "guarded", "vectors"]))
        self.first = int(rng.integers(0, self.width)) if rng.random() < 0.4 else 0
        self.lanes = int(rng.integers(1, self.width - self.first + 1))
        if rng.random() < 0.5:
            self.lanes = max(1, self.lanes // 16 * 16)
        self.lanes = min(self.lanes, 64)
        self.values = rng.integers(-9, 9, (rows, self.width)).astype(self.dtype)

    def lines(self, row):
        """The statements; `row` is what is written, as text."""

        def store(column):
            return f"{self.y}[{row}, {column}] = {self.x}[{row}, {column}] * 2 + 1"

        half = self.width // 2
        return {
            "row": [f"for j in T.Parallel({self.width}):", "    " + store("j")],
            "halves": ["for h in T.serial(2):", f"    for j in T.Parallel({half}):",
                       "        " + store(f"h * {half} + j")],
            "guarded": [f"if ({row}) % 3 != 1:", f"    for j in T.Parallel({self.width}):", "        " + store("j")],
            "vectors": [f"for j in T.vectorized({self.lanes}):", "    " + store(f"j + {self.first}")],
        }[self.kind]

    def write(self, y):
        """What the statements make of all rows."""
        new = self.values * 2 + 1
        if self.kind == "row":
            y[...] = new
        elif self.kind == "halves":
            y[:, : self.width // 2 * 2] = new[:, : self.width // 2 * 2]
        elif self.kind == "guarded":
            chosen = np.arange(len(y)) % 3 != 1
            y[chosen] = new[chosen]
        else:
            y[:, self.first : self.first + self.lanes] = new[:, self.first : self.first + self.lanes]


@pytest.mark.parametrize("seed", range(60))
def test_several_stores_of_several_widths_in_one_block(seed):
    """Each version of a loop may write so only what its condition has looked at."""
    rng = np.random.default_rng(seed)
    blocks, rows = int(rng.integers(1, 4)), int(rng.choice([1, 3, 4]))
    parts = [Part(rng, n, blocks * rows) for n in range(rng.integers(1, 5))]
    params = ", ".join(f'{name}: T.Tensor(({blocks * rows}, {part.width}), "{part.dtype}")'
                       for part in parts for name in (part.x, part.y))
    nested = rng.random() < 0.5  # a part of its own loop below that of the others
    body = ["for i in T.serial(%d):" % rows]
    for n, part in enumerate(parts):
        deeper = nested and n % 2
        body += ["    for k in T.serial(1):"] if deeper else []
        body += ["    " * (2 if deeper else 1) + line for line in part.lines(f"b * {rows} + i")]
    text = f"@T.prim_func\ndef main({params}):\n    with T.Kernel({blocks}) as b:\n"
    function = helve.parse(text + "\n".join("        " + line for line in body))
    offsets = [int(rng.integers(0, 64 // part.values.itemsize)) * int(rng.integers(0, 2)) for part in parts]
    for options in ({}, {"stream_bytes": 1}):
        kernel = helve.compile(function, "llvm", **options)
        arguments, memories = [], []
        for part, offset in zip(parts, offsets):
            y, memory = placed(part.values.shape, part.dtype, offset, 85)
            arguments += [part.values, y]
            memories.append((part, y, memory))
        kernel(*arguments)
        for part, y, memory in memories:
            expected = np.full(part.values.shape, 85, part.dtype)
            part.write(expected)
            np.testing.assert_array_equal(y, expected)
            y[...] = 85
            assert np.all(memory == np.asarray(85, part.dtype))


def test_rows_of_two_widths_at_every_stage():
    @T.prim_func
    def main(A: T.Tensor((8, 129), "float32"), P: T.Tensor((8, 8), "float32"), Q: T.Tensor((8, 129), "float32")):
        with T.Kernel(2) as b:
            for i in T.Parallel(4):
                for j in T.Parallel(8):
                    P[b * 4 + i, j] = A[b * 4 + i, j]
                for k in T.Parallel(129):
                    Q[b * 4 + i, k] = A[b * 4 + i, k] * 2.0

    a = np.random.default_rng(0).random((8, 129)).astype("float32")
    p, q = np.zeros((8, 8), "float32"), np.zeros((8, 129), "float32")
    check(main, [a, p, q], {1: a[:, :8], 2: a * 2})
    helve.testing.check_stages(main, lambda: [a, p.copy(), q.copy()], target="cuda")


@pytest.mark.parametrize("offset", [0, 1])
def test_tensors_that_are_large_without_an_option(offset):
    """Rows of 8 elements begin at whole vectors, rows of 129 do not."""
    rows = 400_000

    @T.prim_func
    def main(A: T.Tensor((rows, 129), "int16"), P: T.Tensor((rows, 8), "float32"), Q: T.Tensor((rows, 129), "int16")):
        with T.Kernel(rows // 4) as b:
            for i in T.Parallel(4):
                for j in T.Parallel(8):
                    P[b * 4 + i, j] = T.cast(A[b * 4 + i, j], "float32")
                for k in T.Parallel(129):
                    Q[b * 4 + i, k] = A[b * 4 + i, k] * 2

    a = np.random.default_rng(0).integers(-99, 99, (rows, 129)).astype("int16")
    (p, around_p), (q, around_q) = placed((rows, 8), "float32", offset), placed((rows, 129), "int16", offset)
    helve.compile(main)(a, p, q)
    np.testing.assert_array_equal(p, a[:, :8])
    np.testing.assert_array_equal(q, a * 2)
    p[...] = q[...] = 0
    assert not around_p.any() and not around_q.any()


def test_the_option():
    function = doubled(64, "float32", 64)
    for value in (0, -1, True, 1.5, "1", 2**63):
        with pytest.raises(helve.Error) as refused:
            helve.compile(function, "llvm", stream_bytes=value)
        assert refused.value.code == "HV0813"
    with pytest.raises(helve.Error) as refused:
        helve.compile(function, "interp", stream_bytes=1)
    assert "'stream_bytes'" in str(refused.value)
