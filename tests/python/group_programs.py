"""Programs of one collective between groups of cores, and what the groups are.

A group is the cores that differ only on some axes of the mesh; its members count in the order of the mesh.
"""

import itertools

import helve
import numpy as np
from differential import dtype_of

NAMES = ("x", "y", "z")
BEFORE = 7  # what stands in a destination before


def groups_over(mesh, axes):
    """Lists of core coordinates, members in order."""
    chosen = [d for d in range(len(mesh)) if NAMES[d] in axes]
    others = [d for d in range(len(mesh)) if d not in chosen]
    for rest in itertools.product(*(range(mesh[d]) for d in others)):
        group = []
        for member in itertools.product(*(range(mesh[d]) for d in chosen)):
            at = dict(zip(others, rest)) | dict(zip(chosen, member))
            group.append(tuple(at[d] for d in range(len(mesh))))
        yield group


def members_of(mesh, axes):
    return len(next(groups_over(mesh, axes)))


def program_of(mesh, src, dst, dtype, lines, head="", arguments=""):
    at = ", ".join(f"c{d}" for d in range(len(mesh)))
    whole = lambda t: ", ".join([":"] * len(t))  # noqa: E731
    body = "".join(f"        {line}\n" for line in lines)
    return helve.parse(
        f"@T.prim_func(mesh=T.Mesh({mesh}, {NAMES[: len(mesh)]}))\n"
        f'def main(A: T.Tensor({(*mesh, *src)}, "{dtype}"), B: T.Tensor({(*mesh, *dst)}, "{dtype}"){arguments}):\n'
        f"{head}    with T.Kernel{mesh} as ({at}{',' if len(mesh) == 1 else ''}):\n"
        f'        S = T.alloc_shared({tuple(src)}, "{dtype}")\n        D = T.alloc_shared({tuple(dst)}, "{dtype}")\n'
        f"        T.copy(A[{at}, {whole(src)}], S)\n        T.fill(D, {BEFORE})\n{body}"
        f"        T.copy(D, B[{at}, {whole(dst)}])\n")


def wanted_of(a, mesh, axes, dst, dtype, collective):
    out = np.full((*mesh, *dst), BEFORE, dtype_of(dtype))
    for group in groups_over(mesh, axes):
        for core, value in zip(group, collective([a[core] for core in group])):
            if value is not None:
                out[core] = value
    return out
