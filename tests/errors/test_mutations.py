"""Programs that are wrong in ways nobody thought of.

Valid programs are damaged: a token goes, is doubled, swapped or renamed, a number, a type or an operator changes.
Whatever comes out, helve compiles it or refuses it with a code; it never raises anything else, fails inside, or hangs.
Calls are damaged in the same way. The failing program is printed; `HELVE_MUTATIONS=20000 HELVE_MUTATION_SEED=7` search
further.
"""

import io
import os
import random
import tokenize

import helve
import numpy as np
import pytest
from call_problems import problem_of

COUNT = int(os.environ.get("HELVE_MUTATIONS", 150))
SEED = int(os.environ.get("HELVE_MUTATION_SEED", 1))

PROGRAMS = {
    "elements": '''
M = T.dyn("M")
@T.prim_func
def main(A: T.Tensor((M, 8), "float32"), B: T.Tensor((M, 8), "float32"), s: T.float32, n: T.int32):
    with T.Kernel(T.ceildiv(M, 4), threads=64) as b:
        for i, j in T.Parallel(4, 8):
            if b * 4 + i < M:
                B[b * 4 + i, j] = T.exp(A[b * 4 + i, j]) * s + T.cast(n, "float32")
''',
    "shared": '''
@T.prim_func
def main(A: T.Tensor((64, 48), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(2) as b:
        S = T.alloc_shared((32, 48), "float32")
        R = T.alloc_fragment((32,), "float32")
        T.copy(A[b * 32 : b * 32 + 32, :], S, pad=-T.infinity())
        T.reduce_max(S, R, dim=1)
        for i in T.serial(0, 32, 2):
            R[i] = T.max(R[i], 0.0) if i < 16 else R[i]
        T.copy(R, B[b * 32 : b * 32 + 32])
''',
    "tiles": '''
@T.prim_func
def main(A: T.Tensor((70, 40), "float16"), B: T.Tensor((70, 40), "float16")):
    with T.Kernel(1) as b:
        X = T.alloc_shared_tiles((70, 40), "float32", tile_size=(16, 32))
        V = T.alloc_shared_tiles((70,), "float32", tile_size=(16,))
        T.copy(A, X)
        T.reduce_sum(X, V, dim=-1)
        for i, j in T.foreach_tiles(X, parallel=True):
            X[i, j] = X[i, j] / (V[i] + 1e-6)
        T.copy(X, B)
''',
    "product": '''
@T.prim_func
def main(A: T.Tensor((40, 24), "int8"), B: T.Tensor((24, 32), "int8"), C: T.Tensor((40, 32), "int32")):
    with T.Kernel(2, 2) as (r, c):
        X = T.alloc_shared((20, 24), "int8")
        Y = T.alloc_shared((24, 16), "int8")
        acc = T.alloc_fragment((20, 16), "int32")
        T.clear(acc)
        for k in T.Pipelined(1, num_stages=2):
            T.copy(A[r * 20 : r * 20 + 20, :], X)
            T.copy(B[:, c * 16 : c * 16 + 16], Y)
            T.gemm(X, Y, acc, transpose_A=False)
        T.copy(acc, C[r * 20 : r * 20 + 20, c * 16 : c * 16 + 16])
''',
    "mesh": '''
@T.prim_func
def main(A: T.Tensor((48, 64), "float32"), B: T.Tensor((48,), "float32")):
    T.annotate_mesh_tensor({A: {"sharding": {"x": 0, "y": 1}, "tiling": [16, 16]}}, nrows=2, ncols=2)
    rows, cols = T.get_sharded_shape(A)
    with T.Kernel(2, 2) as (r, c):
        X = T.alloc_shared_tiles((16, 16), "float32")
        acc = T.alloc_shared_tiles((16,), "float32")
        all = T.alloc_shared_tiles((16, 2), "float32")
        for p in T.Persistent([T.ceildiv(rows, 16)]):
            T.clear(acc)
            for q in T.serial(T.ceildiv(cols, 16)):
                T.mesh_tensor_copy(A, X, coord=[p, q])
                T.reduce_sum(X, acc, dim=1, clear=False)
            T.comm.all_gather(acc, all, axis="y")
            T.comm.all_reduce(acc, acc, op="sum", axis="x")
            T.comm.barrier()
''',
    "host": '''
N = T.dyn("N")
@T.prim_func
def main(A: T.Tensor((N, 3), "int32"), k: T.index):
    G = T.alloc_global((N, 3), "int32")
    for t in T.serial(2):
        if k > 1:
            with T.Kernel(N) as i:
                total = A[i, 0] + A[i, 1] // 3 - (A[i, 2] & 7)
                G[i, t] = T.min(total, T.int32(5))
                A[i, 0] = G[i, t] % 4
        else:
            with T.Kernel(1) as j:
                w = T.alloc_local((1,), "int32")
                w[0] = 0
                while w[0] < 4:
                    w[0] += 1
''',
}
NUMBERS = ["0", "1", "-1", "2", "3", "7", "1.5", "1e400", "9223372036854775807", "2**70", "None", "True", '"x"', "()",
           "T"]
TYPES = ["float64", "float16", "bfloat16", "float8_e4m3", "int8", "uint8", "uint64", "int4", "bool", "index", "flaot32"]
OPERATORS = ["+", "-", "*", "/", "//", "%", "<<", "&", "|", "**", "<", "==", "is", "and", "@", ",", ":", "=", "+="]


def tokens_of(text):
    """The tokens as (type, string, start, end), without what has no text."""
    return [t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.string.strip()]


def mutate(text, rng):
    """The text with one to three faults in it."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        try:
            tokens = tokens_of(text)
        except (tokenize.TokenError, SyntaxError):
            return text
        text = replace(text, tokens, rng)
    return text


def replace(text, tokens, rng):
    lines = text.splitlines(keepends=True)
    token = rng.choice(tokens)
    other = rng.choice(tokens)
    kind = rng.randrange(8)
    if kind == 0:
        new = ""
    elif kind == 1:
        new = f"{token.string} {token.string}"
    elif kind == 2:
        line = rng.randrange(len(lines))
        lines[line : line + 1] = rng.choice([[], [lines[line]] * 2, [lines[rng.randrange(len(lines))]]])
        return "".join(lines)
    elif token.type == tokenize.NAME and kind < 6:
        names = [t.string for t in tokens if t.type == tokenize.NAME]
        near = [token.string[:-1], token.string + "s", token.string.upper(), token.string[::-1]]
        new = rng.choice([rng.choice(names)] * 3 + near)
    elif token.type == tokenize.NUMBER:
        new = rng.choice(NUMBERS)
    elif token.type == tokenize.STRING:
        new = rng.choice([f'"{rng.choice(TYPES)}"', "3", "f'{A}'", "None"])
    elif token.type == tokenize.OP and token.string not in "()[]{}:,.@":
        new = rng.choice(OPERATORS)
    else:
        new = other.string
    (row, start), (end_row, end) = token.start, token.end
    if row != end_row:
        return text
    line = lines[row - 1]
    lines[row - 1] = line[:start] + new + line[end:]
    return "".join(lines)


def compile_text(text, target):
    helve.compile(helve.parse(text, filename="mutant.py"), target=target)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_programs_themselves_compile(name, targets):
    for target in targets:
        compile_text(PROGRAMS[name], target)


@pytest.mark.parametrize("name", PROGRAMS)
def test_damaged_programs_are_compiled_or_refused(name, targets):
    rng = random.Random(f"{SEED} {name}")
    refused = 0
    for _ in range(COUNT):
        text = mutate(PROGRAMS[name], rng)
        target = rng.choice(targets)
        problem = problem_of(lambda text=text, target=target: compile_text(text, target), text)
        assert problem is None, f"{problem}\n{text}\nfor target {target}"
        try:
            compile_text(text, target)
        except helve.Error:
            refused += 1
    assert refused > COUNT // 4  # else nothing is damaged


VALUES = [
    lambda: np.zeros((5, 8), "float32"), lambda: np.zeros((5, 8), "float64"), lambda: np.zeros((8, 5), "float32").T,
    lambda: np.zeros((0, 8), "float32"), lambda: np.zeros((5, 8, 1), "float32"), lambda: np.float32(3),
    lambda: np.zeros((5, 16), "float32")[:, ::2], lambda: np.zeros((5, 8), ">f4"), lambda: np.broadcast_to(1.0, (5, 8)),
    lambda: np.zeros((5, 8), object), lambda: np.zeros((5, 8), "complex64"), lambda: memoryview(b"abc"), lambda: None,
    lambda: "A", lambda: 3, lambda: 2**80, lambda: -(2**80), lambda: 1e400, lambda: float("nan"), lambda: True,
    lambda: [1.0], lambda: object(), lambda: np.array(3), lambda: np.zeros(()), lambda: np.int64(7), lambda: 1j,
    lambda: np.datetime64("2020"), lambda: np.zeros((5, 8), "float32").view(np.matrix), lambda: float,
]


def test_damaged_calls_run_or_are_refused(targets):
    rng = random.Random(SEED)
    for target in targets:
        kernel = helve.compile(helve.parse(PROGRAMS["elements"]), target=target)
        for _ in range(COUNT):
            count = rng.choice([4, 4, 4, 4, 3, 5, 0])
            args = [np.zeros((5, 8), "float32"), np.zeros((5, 8), "float32"), 1.5, 2, 0][:count]
            for _ in range(rng.randrange(3)):
                if args:
                    args[rng.randrange(len(args))] = rng.choice(VALUES)()
            split = rng.randrange(len(args) + 1)
            keys = rng.sample(["A", "B", "s", "n", "z", "self", "args"], len(args) - split)
            named = dict(zip(keys, args[split:]))
            problem = problem_of(lambda: kernel(*args[:split], **named), PROGRAMS["elements"])
            assert problem is None, f"{problem}\n{args[:split]} {named}"
