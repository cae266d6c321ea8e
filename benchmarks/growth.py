"""How the time of a compile grows with the program: families of programs, sizes doubling, on llvm and in CUDA lowering.

Run it: ``python benchmarks/growth.py [--family NAME ...] [--target llvm cuda] [--limit SECONDS] [--passes]``. A family
is a kind of program with a size; it stops at its largest size or after the first compile longer than the limit. A line
gives the seconds of the front end (text to IR), of helve's own passes with the slowest of them, and of what comes after
helve (LLVM; for CUDA there is nothing, since NVRTC is not called), and at the end of a family the exponent with which
helve's seconds grew over its last doublings: 1 is linear. What the numbers were: docs/performance.md.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import helve
from helve import _core
from helve.target import mesh_shape

ARCH = "sm_90a"
AFTER = ("llvm: optimize", "llvm: generate", "llvm: link")  # the stages that are not helve's
LEAST = 2e-3  # seconds below which a time says nothing about growth


@dataclass(frozen=True)
class Family:
    """`text(n)` is a program of size n; `sizes` are measured from the smallest on."""

    name: str
    text: Callable[[int], str]
    sizes: tuple[int, ...]
    mesh: Callable[[int], helve.Mesh] | None = None


def kernel(body: str, params: str, grid: str = "1", names: str = "b", decorator: str = "", head: str = "") -> str:
    """The text of a function with one kernel around `body`."""
    inside = "\n".join("        " + line for line in body.splitlines())
    return f"{head}@T.prim_func{decorator}\ndef main({params}):\n    with T.Kernel({grid}) as {names}:\n{inside}\n"


def lines(n: int, line: Callable[[int], str]) -> str:
    """`line(0)` to `line(n - 1)`."""
    return "\n".join(line(i) for i in range(n))


def nested(heads: list[str], leaf: str, tails: list[str] | None = None) -> str:
    """Blocks inside each other, `leaf` in the innermost; `tails[d]` ends the block d."""
    out = [" " * d + head for d, head in enumerate(heads)] + [" " * len(heads) + leaf]
    for d in reversed(range(len(tails or []))):
        out.append(" " * (d + 1) + tails[d])
    return "\n".join(out)


def vector(name: str, extent: object, dtype: str = "float32") -> str:
    return f'{name}: T.Tensor(({extent},), "{dtype}")'


def statements(n: int) -> str:
    return kernel(lines(n, lambda k: f"B[{k}] = A[{k}] * 2.0"), f"{vector('A', n)}, {vector('B', n)}")


def loops(n: int) -> str:
    body = lines(n, lambda k: f"for i{k} in T.serial(16):\n    B[{k}, i{k}] = A[{k}, i{k}] * {k + 1}.0")
    return kernel(body, f'A: T.Tensor(({n}, 16), "float32"), B: T.Tensor(({n}, 16), "float32")')


def nest(n: int) -> str:
    heads = [f"for i{d} in T.serial(2):" for d in range(n)]
    return kernel(nested(heads, f"B[i{n - 1}] = B[i{n - 1}] + A[i0]"), f"{vector('A', 2)}, {vector('B', 2)}")


def while_nest(n: int) -> str:
    heads = [f"while C[{d}] > 0:" for d in range(n)]
    body = nested(heads, "B[0] = B[0] + A[0]", [f"C[{d}] = C[{d}] - 1" for d in range(n)])
    return kernel(body, f"{vector('A', 2)}, {vector('B', 2)}, {vector('C', n, 'int32')}")


def conjuncts(n: int) -> str:
    guard = " and ".join(f"i + {k} < M" for k in range(n))
    return kernel(f"for i in T.serial(64):\n    if {guard}:\n        B[i] = A[i] + 1.0",
                  f"{vector('A', 'M')}, {vector('B', 'M')}", head='M = T.dyn("M")\n')


def guarded(conditions: list[str], nested_ifs: bool = False) -> str:
    """One guard of all conditions, or an `if` for each."""
    heads = [f"if {each}:" for each in conditions] if nested_ifs else [f"if {' and '.join(conditions)}:"]
    return kernel(nested(["for i in T.serial(64):", *heads], "B[i] = A[i] + 1.0"),
                  f"{vector('A', 'M')}, {vector('B', 'M')}, {vector('C', 'M', 'int32')}, k: T.index",
                  head='M = T.dyn("M")\n')


def products(n: int) -> list[str]:
    """No two of one shape, and none that follows from the others."""
    return [f"i * k + i * {c + 1} < M + {c * 37 % 101}" for c in range(n)]


def grouped(conditions: list[str]) -> list[str]:
    """Groups of a hundred conditions each."""
    return [f"({' and '.join(conditions[c:c + 100])})" for c in range(0, len(conditions), 100)]


def float_chain(n: int) -> str:
    body = "v0 = A[b]\n" + lines(n, lambda k: f"v{k + 1} = v{k} * v{k} + v{k}") + f"\nB[b] = v{n}"
    return kernel(body, f"{vector('A', 64)}, {vector('B', 64)}", grid="64")


def index_chain(n: int) -> str:
    body = "v0 = b + 0\n" + lines(n, lambda k: f"v{k + 1} = (v{k} * 3 + v{k}) % 64") + f"\nB[b] = A[v{n}]"
    return kernel(body, f"{vector('A', 64)}, {vector('B', 64)}", grid="64")


def rank(n: int) -> str:
    names = ", ".join(f"i{d}" for d in range(n))
    shape = "2, " * n
    return kernel(f"for {names} in T.Parallel({', '.join('2' * n)}):\n    B[{names}] = A[{names}] + 1.0",
                  f'A: T.Tensor(({shape}), "float32"), B: T.Tensor(({shape}), "float32")')


def unroll(n: int) -> str:
    return kernel(f"for i in T.unroll({n}):\n    B[i] = A[i] * 2.0", f"{vector('A', n)}, {vector('B', n)}")


def mesh_size(n: int) -> str:
    tensor = f'T.Tensor(({n}, 64), "float32")'
    body = ('x = T.alloc_shared_tiles((1, 64), "float32")\nT.mesh_tensor_copy(A, x, coord=[0, 0])\n'
            "T.mesh_tensor_copy(x, B, coord=[0, 0])")
    text = kernel(body, f"A: {tensor}, B: {tensor}", grid=f"{n}, 1", names="(r, c)")
    placed = '{"sharding": {"x": 0}, "tiling": [1, 64]}'
    first = f"    T.annotate_mesh_tensor({{A: {placed}, B: {placed}}}, nrows={n}, ncols=1)\n"
    head, rest = text.split("    with", 1)
    return f"{head}{first}    with{rest}"


def buffers(n: int) -> str:
    body = lines(n, lambda k: f'x{k} = T.alloc_shared((32,), "float32")') + "\n"
    for k in range(n):
        value = f"x{k - 1}[i] + x{k - 1}[i]" if k else "A[i]"
        body += f"for i in T.Parallel(32):\n    x{k}[i] = {value} + 1.0\n"
    body += f"for i in T.Parallel(32):\n    B[i] = x{n - 1}[31 - i]"
    return kernel(body, f"{vector('A', 32)}, {vector('B', 32)}")


def doubling(first: int, last: int) -> tuple[int, ...]:
    """first, twice that, ..., ending with `last`."""
    sizes = [first]
    while sizes[-1] * 2 < last:
        sizes.append(sizes[-1] * 2)
    return (*sizes, last)


FAMILIES = (
    Family("statements", statements, doubling(188, 3000)),
    Family("loops", loops, doubling(188, 3000)),
    Family("nest", nest, (8, 12, 16, 18)),
    Family("while nest", while_nest, (6, 8, 10, 14)),
    Family("conjuncts", conjuncts, doubling(8, 64)),
    Family("products", lambda n: guarded(products(n)), doubling(8, 256)),
    Family("nested guards", lambda n: guarded(products(n), nested_ifs=True), doubling(8, 64)),
    Family("groups", lambda n: guarded(grouped([f"i + {c} < M" for c in range(n)])), doubling(94, 3000)),
    Family("groups of multiples", lambda n: guarded(grouped([f"i * {c + 1} < M + {c}" for c in range(n)])),
           doubling(94, 3000)),
    Family("groups that read", lambda n: guarded(grouped([f"C[i] != {c}" for c in range(n)])), doubling(94, 3000)),
    Family("named floats", float_chain, (10, 14, 25, 50, 100)),
    Family("named index values", index_chain, (10, 15, 25, 50, 100)),
    Family("rank", rank, (1, 2, 4, 8)),
    Family("unroll", unroll, doubling(625, 10000)),
    Family("mesh", mesh_size, doubling(256, 4096), lambda n: helve.Mesh((n, 1), ("x", "y"))),
    Family("buffers", buffers, doubling(25, 200)),
)


@dataclass(frozen=True)
class Measured:
    """Seconds of one compile: of the front end, of each of helve's passes, and of what generates code after them."""

    front: float
    passes: dict[str, float]
    after: float

    @property
    def helve(self) -> float:
        return sum(self.passes.values())

    @property
    def slowest(self) -> str:
        name = max(self.passes, key=lambda each: self.passes[each])
        return f"{name} {self.passes[name]:.3f}"


def summed(rows: list[tuple[str, float]]) -> dict[str, float]:
    """Passes that run more than once stand once."""
    out: dict[str, float] = {}
    for name, seconds in rows:
        out[name] = out.get(name, 0.0) + seconds
    return out


def measure(family: Family, n: int, target: str) -> Measured:
    """Compiles the program of size n once."""
    text = family.text(n)
    start = time.perf_counter()
    function = helve.parse(text)
    front = time.perf_counter() - start
    mesh = family.mesh(n) if family.mesh else None
    if target == "llvm":
        times = dict(summed(helve.compile(function, mesh=mesh)._compiled.times()))
        after = sum(times.pop(name) for name in AFTER if name in times)
        return Measured(front, times, after)
    lowered, times = _core.check_and_lower(function.function, mesh_shape(mesh), "cuda", ARCH)
    start = time.perf_counter()
    _core.cuda_source(lowered)
    return Measured(front, summed([*times, ("cuda: emit", time.perf_counter() - start)]), 0.0)


def exponent(sizes: list[int], seconds: list[float]) -> float | None:
    """The slope of log seconds over log size from the first size, of the last three, whose time can be told from noise.
    """
    points = [(math.log(n), math.log(s)) for n, s in zip(sizes, seconds) if s > LEAST][-3:]
    if len(points) < 2:
        return None
    x = sum(p[0] for p in points) / len(points)
    y = sum(p[1] for p in points) / len(points)
    return sum((p[0] - x) * (p[1] - y) for p in points) / sum((p[0] - x) ** 2 for p in points)


def run(family: Family, target: str, limit: float, all_passes: bool) -> None:
    """Measures a family and prints its lines."""
    sizes: list[int] = []
    totals: list[float] = []
    afters: list[float] = []
    print(f"\n{family.name}, {target}")
    print(f"  {'size':>8}{'front end':>11}{'helve':>9}{'after':>9}  slowest of helve's passes", flush=True)
    for n in family.sizes:
        try:
            measured = measure(family, n, target)
        except helve.Error as refused:
            print(f"  {n:8}  refused: {str(refused).splitlines()[0]}")
            break
        sizes.append(n)
        totals.append(measured.helve)
        afters.append(measured.after)
        seconds = f"{measured.front:11.3f}{measured.helve:9.3f}{measured.after:9.3f}"
        print(f"  {n:8}{seconds}  {measured.slowest}", flush=True)
        if all_passes:
            for name, seconds in sorted(measured.passes.items(), key=lambda row: -row[1]):
                print(f"  {'':37}  {name} {seconds:.4f}")
        if measured.front + measured.helve + measured.after > limit:
            break
    for name, seconds in (("helve", totals), ("after", afters)):
        slope = exponent(sizes, seconds)
        print(f"  {name} grows as n^{slope:.1f}" if slope is not None else f"  {name}: too short to tell")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--family", nargs="*", help=f"of: {', '.join(f.name for f in FAMILIES)}; all by default")
    parser.add_argument("--target", nargs="*", default=["llvm", "cuda"], choices=["llvm", "cuda"])
    parser.add_argument("--limit", type=float, default=10.0, help="seconds after which a family grows no further")
    parser.add_argument("--passes", action="store_true", help="print every pass")
    arguments = parser.parse_args()
    for family in FAMILIES:
        if arguments.family and family.name not in arguments.family:
            continue
        for target in arguments.target:
            run(family, target, arguments.limit, arguments.passes)


if __name__ == "__main__":
    main()
