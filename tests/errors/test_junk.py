"""Every name below T, called with whatever Python can write, wherever an expression can stand.

Arguments are too few, too many, of the wrong kind, huge, nested, misspelt; each program is either compiled or refused
with a code at a place of its text. The failing program is printed; `HELVE_JUNK=20000 HELVE_JUNK_SEED=7` search further.
"""

import decimal
import fractions
import linecache
import os
import random
import warnings

import helve
import helve.testing
import numpy as np
import pytest
from helve import T
from helve.language.constructs import Construct, DType, Namespace, TileOperation
from call_problems import problem_of

COUNT = int(os.environ.get("HELVE_JUNK", 1200))
SEED = int(os.environ.get("HELVE_JUNK_SEED", 1))
FILENAME = "junk.py"


class Contrary:
    """Breaks what Python promises of every object."""

    def __bool__(self):
        raise ZeroDivisionError("no truth here")

    def __eq__(self, other):
        raise KeyError("no equality here")

    __hash__ = None
    __index__ = __float__ = __len__ = __iter__ = __getitem__ = __bool__

    def __repr__(self):
        raise RuntimeError("no text here")


ENDLESS = [1]
ENDLESS.append(ENDLESS)
OBJECTS = {
    "huge": 10**5000, "minus_huge": -(10**5000), "fraction": fractions.Fraction(10**400, 3),
    "decimal": decimal.Decimal("1e999"), "contrary": Contrary(), "endless": ENDLESS, "array": np.arange(6.0),
    "scalar": np.float32(1.5), "number": np.int64(3), "truth": np.True_, "mesh": helve.Mesh((2, 2)), "np": np,
    "nothing": None, "names": {"a": 1}, "letters": "abc", "layout": helve.Layout(shard=[(8, 1)]), "Contrary": Contrary,
    "outside": T.dyn("outside"), "expression": T.dyn("other") + 1, "typed": T.float32(1.5), "infinite": T.infinity(),
    "generator": iter(()), "code": compile("1", "x", "eval"), "function": len, "long_text": "x" * 5000,
    "kernel": helve.parse("@T.prim_func\ndef kernel(Z: T.Tensor((8,), 'float32'), z: T.int32):\n    pass\n"),
}
VALUES = [
    "A", "B", "A[0]", "I[0]", "C[0]", "A[0:4]", "A[:]", "A[0:2, 0]", "A[n]", "A[1.0]", "A[None]", "A[A]", "A[-1]", "X",
    "X[0]", "X[1:3]", "t", "t[0]", "n", "s", "k", "M", "b", "M * n", "n << 70", "None", "True", "False", "-1", "0", "1",
    "8", "2**31", "2**63", "2**70", "-2**70", "0x" + "f" * 4000, "1e400", "-1e400", "1.5", "1.0", "1j", "b'x'", "...",
    "''", "'x'", "'float32'", "'sum'", "'all'", "()", "(1,)", "(8,)", "((1, 2), (3,))", "[[1], [2, [3]]]", "{}",
    "{A: 1}", "{'a': A}", "{A: {'sharding': {'x': 0}, 'tiling': [4]}}", "T", "T.float32", "T.int4", "T.exp", "T.comm",
    "T.copy", "T.Kernel", "T.Tensor((8,), 'float32')", "T.dyn('K')", "T.infinity()", "T.nan('int8')", "T.exp(A)",
    "T.float32(A[0])", "T.index(I[0])", "A.shape", "A.shape[0]", "A.dtype", "A.foo", "min", "max(A[0], B[0])", "abs",
    "len(A)", "range(3)", "print", "main", "lambda: 1", "[x for x in (1,)]", "f'{A}'", "not A", "-A", "A + 1",
    "A if C[0] else B", "1 < n < 3", "n is None", "A[0] is True", "n in (1, 2)", "C[0] and 5", "(yield)", "*A",
    "(A := 1)",
]
KEYWORDS = ["foo", "dtype", "shape", "dim", "axis", "clear", "dst", "src", "x", "self", "threads", "layout", "op"]
# Where an expression stands; what follows keeps the text a program.
PLACES = [
    "{}", "x = {}", "x, y = {}", "B[0] = {}", "B[{}] = 1.0", "B[0] += {}", "B[{}:] = 1.0", "x: {} = 1.0",
    "for i in {}:\n            B[i] = 1.0", "for i, j in {}:\n            pass", "if {}:\n            pass",
    "while {}:\n            B[0] = 1.0", "with {}:\n            pass", "with {} as q:\n            pass",
    "B[0] = A[0] if {} else 1.0", "B[0] = {} + A[0]", "B[0] = 1.0 < {} < A[0]", "C[0] = C[1] and {}",
    "T.copy({}, B)", "T.fill(B, {})", "for i in T.serial({}):\n            B[i] = 1.0",
    "for i in T.Parallel({}):\n            B[i] = 1.0", "y = T.alloc_shared({}, 'float32')",
    "y = T.alloc_shared((8,), {})", "T.copy(A[{}:8], X)", "T.reduce_max(X, t, dim={})", "B[0] = T.max({}, A[0])",
    "return {}", "del {}", "assert {}", "T.annotate_layout({{X: {}}})", "kernel({}, k)", "x = [{}, 1][0]", "{}[0] = 1",
]
HEAD = (
    "@T.prim_func\n"
    "def main(A: T.Tensor((8,), 'float32'), B: T.Tensor((8,), 'float32'), C: T.Tensor((8,), 'bool'), "
    "I: T.Tensor((M,), 'int32'), s: T.float32, n: T.index, k: T.int32):\n"
)
IN_KERNEL = (
    "    with T.Kernel(1) as b:\n"
    "        X = T.alloc_shared((8,), 'float32')\n        t = T.alloc_fragment((1,), 'float32')\n"
)
IN_HOST = "    if n > 0:\n        G = T.alloc_global((8,), 'float32')\n"
IN_TILES = ("    with T.Kernel(1) as b:\n        Y = T.alloc_shared_tiles((8,), 'float32', tile_size=(4,))\n"
            "        X = Y\n        t = Y\n        for i in T.foreach_tiles(Y):\n         if True:\n")


def called_names():
    """All names below T that can be called, `comm.all_gather` among them."""
    for name, value in T.NAMES.items():
        if isinstance(value, Namespace):
            yield from ((f"{name}.{member}", each) for member, each in value.members.items())
        elif isinstance(value, (Construct, DType)) or name == "prim_func":
            yield name, value


NAMES = dict(called_names())


def junk(rng, depth=0):
    """An expression that may mean something."""
    kind = rng.randrange(12)
    if depth < 2 and kind < 2:
        return call(rng, rng.choice(list(NAMES)), depth + 1)
    if depth < 3 and kind == 2:
        return f"({', '.join(junk(rng, depth + 1) for _ in range(rng.randrange(4)))},)"
    if depth < 3 and kind == 3:
        return f"{junk(rng, depth + 1)} {rng.choice(['+', '-', '*', '//', '<<', '==', 'is', 'and', '@'])} n"
    return rng.choice(VALUES)


def call(rng, name, depth=0):
    """A call of a name, with about as many arguments as it takes."""
    wanted = len(NAMES[name].parameters)
    count = max(0, wanted + rng.choice([0, 0, 0, 0, -1, 1, -2, 2]))
    given = [junk(rng, depth) for _ in range(count)]
    if rng.randrange(3) == 0 and given:  # some by keyword, right or wrong
        known = [parameter.name for parameter in NAMES[name].parameters] + [rng.choice(KEYWORDS)]
        split = rng.randrange(len(given))
        given[split:] = [f"{rng.choice(known)}={value}" for value in given[split:]]
    if rng.randrange(40) == 0:
        given.append(rng.choice(["*A", "**{}", "*(1, 2)", "**{'dim': 0}"]))
    return f"T.{name}({', '.join(given)})"


# What a parameter takes, by its kind or else by its name.
FITTING = {
    "In": "A", "Out": "B", "InOut": "X", "Source": "A[0]", "Value": "1.0", "Integer": "0", "Flag": "True", "Text": "''",
    "Layout": "'S[4 : 1@tx]'", "Coord": "[0]",
    "shape": "(8,)", "dtype": "'float32'", "tile_size": "(4,)", "start": "0", "stop": "8", "step": "2",
    "count": "128", "num_stages": "2", "domain": "[8]", "buffer": "X", "parallel": "True", "threads": "64",
    "annotations": "{A: {'sharding': {'x': 0}, 'tiling': [4]}}", "nrows": "2", "ncols": "1", "layouts": "{X: None}",
    "tensor": "A", "condition": "C[0]", "name": "'K'", "send": "A", "recv": "B", "scope": "'shared.dyn'",
    "layout": "None", "strides": "(1,)", "names": "('x', 'y')", "device": "'host'", "lo": "0.0", "hi": "1.0",
}


def sensible(rng, name):
    """Arguments that fit, with one that may not."""
    construct = NAMES[name]
    given = [FITTING.get(getattr(p, "kind", "") or p.name, "A[0]")
             for p in construct.parameters if p.required or rng.randrange(3) == 0]
    if construct.variadic:
        given = [rng.choice(["4", "A" if construct.variadic == "tensors" else "n"]) for _ in range(rng.randrange(1, 4))]
    if given and rng.randrange(8):
        given[rng.randrange(len(given))] = junk(rng, 1)
    return f"T.{name}({', '.join(given)})"


def natural_places(name):
    """Where a call of the name stands in sound programs."""
    construct = NAMES[name]
    if isinstance(construct, TileOperation) or "allgather" in name:
        return ["{}"]
    if name.startswith("alloc_"):
        return ["y = {}", "y = {}\n        T.clear(y)"]
    if name in ("annotate_layout", "annotate_mesh_tensor", "may_alias"):
        return ["{}"]
    loops = {"Parallel": 2, "Persistent": 2, "foreach_tiles": 2, "foreach_tile": 2, "serial": 1, "range": 1,
             "unroll": 1, "vectorized": 1, "threads": 1, "Pipelined": 1}
    if name in loops:
        return ["for i in {}:\n            B[i] = 1.0", "for i, j in {}:\n            B[j] = A[i]"][: loops[name]]
    if name == "Kernel":
        return ["with {} as q:\n            B[0] = 1.0"]
    return ["B[0] = {}", "B[0] = A[0] + {}", "x = {}", "C[0] = {} == 1", "I[0] = {}", "B[{}] = 1.0",
            "A[0] = B[0] if {} else 1.0"]


def program(rng, name):
    """A program with a call of the name somewhere in it."""
    text = (sensible if rng.randrange(2) else call)(rng, name)
    if rng.randrange(12) == 0:  # a type of a parameter, or an argument of the decorator
        head = rng.choice([
            f"@T.prim_func\ndef main(A: {text}):\n    pass\n",
            f"@T.prim_func\ndef main(A: T.Tensor({junk(rng)})):\n    pass\n",
            f"@T.prim_func(mesh={text})\ndef main():\n    pass\n", f"@T.prim_func\ndef main(A={text}):\n    pass\n",
            f"K = {text}\n@T.prim_func\ndef main(A: T.Tensor((K,), 'int8')):\n    pass\n", f"{text}\n",
        ])
        return head
    return "M = T.dyn('M')\n" + around(rng, name, text)


def around(rng, name, text):
    """A function with the call `text` of a name in its body: in one of four, where it does not belong."""
    astray = rng.randrange(4) == 0
    lines = rng.choice(PLACES if astray else natural_places(name)).format(text)
    head = name in ("annotate_mesh_tensor", "may_alias", "alloc_global", "Kernel") or name.startswith("comm.")
    body = IN_HOST if head else "" if astray else IN_KERNEL
    if not head and rng.randrange(4) == 0:
        body = rng.choice([IN_HOST, IN_TILES])
    if name in ("annotate_mesh_tensor", "may_alias") and not astray:
        body = ""
    if name.startswith("comm.") and rng.randrange(2):
        body = "    T.annotate_mesh_tensor({}, nrows=2, ncols=2)\n" + IN_KERNEL.replace("(1) as b", "(2, 2) as (b, c)")
    lead = " " * 10 if body is IN_TILES else " " * 8 if body else " " * 4
    return HEAD + body + lead + lines.replace("\n        ", f"\n{lead}") + "\n"


def compiled(function, rng, targets):
    """What a function goes through: a target, or the stages towards a GPU."""
    target = rng.choice([*targets, "stages"])
    if target == "stages":
        helve.testing.lowering_stages(function, target="cuda")
    else:
        helve.compile(function, target=target)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_text_is_compiled_or_refused(name, targets):
    rng = random.Random(f"{SEED} {name}")
    for _ in range(max(4, COUNT // len(NAMES))):
        text = program(rng, name)
        problem = problem_of(lambda text=text: compiled(helve.parse(text, filename=FILENAME), rng, targets), text)
        assert problem is None, f"{problem}\n{text}"


def defined(text):
    """The function of a Python program in which objects of all kinds are at hand."""
    lines = text.splitlines(keepends=True)
    linecache.cache[FILENAME] = (len(text), None, lines, FILENAME)
    try:
        space = {"helve": helve, "T": T, "M": T.dyn("M"), "__name__": "junk", **OBJECTS}
        exec(compile(text, FILENAME, "exec"), space)
        return space["main"]
    finally:
        linecache.cache.pop(FILENAME, None)


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_definition_is_compiled_or_refused(name, targets):
    """As above, with objects from around the function among the arguments."""
    rng = random.Random(f"{SEED} objects {name}")
    for _ in range(max(4, COUNT // len(NAMES))):
        text = (sensible if rng.randrange(2) else call)(rng, name)
        for value in rng.sample(VALUES, 12):
            if rng.randrange(2):
                text = text.replace(f"({value},", f"({rng.choice(list(OBJECTS))},").replace(
                    f" {value})", f" {rng.choice(list(OBJECTS))})")
        if rng.randrange(2):
            head, _, rest = text.partition("(")
            text = f"{head}({rng.choice(list(OBJECTS))}{', ' * (rest != ')')}{rest}"
        text = around(rng, name, text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                compile(text, FILENAME, "exec")
        except (SyntaxError, ValueError):
            continue  # Python itself refuses it, before helve sees anything
        problem = problem_of(lambda text=text: compiled(defined(text), rng, targets), text)
        assert problem is None, f"{problem}\n{text}"


@pytest.mark.parametrize("name", sorted(set(NAMES) - {"prim_func"}))
def test_a_call_outside_of_kernels_answers_or_is_refused(name):
    rng = random.Random(f"{SEED} outside {name}")
    pool = [*OBJECTS.values(), 0, -1, 2**70, 1.5, "x", "float32", (), (8,), ((1, 2), 3), {}, {"x": 0}, [[1], 2], T]
    for _ in range(40):
        args = [rng.choice(pool) for _ in range(rng.randrange(4))]
        named = {rng.choice(KEYWORDS): rng.choice(pool) for _ in range(rng.randrange(2))}
        problem = problem_of(lambda args=args, named=named: NAMES[name](*args, **named), "{")
        assert problem is None, f"{problem}\n{name} of {[type(a).__name__ for a in args]} {list(named)}"
