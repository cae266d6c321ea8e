"""A product over processes: its terms are computed where the data is, and the sum is derived.

Every process runs this file. Each holds some columns of A and the same rows of B, so that its product is one term of
C = A B; what has to be communicated for C to be cut by rows follows from the two distributions.

Run it: ``helve launch -n 4 tutorials/04_processes.py`` (``pip install 'helve[mpi]'``), or on one process:
``python tutorials/04_processes.py``
"""

import numpy as np

import helve
from helve.dist import DistTensor, distribution


def main(m=96, n=40, k=500):
    # %% One device of the mesh for each process
    mesh = helve.Mesh((helve.dist.size(),), device="mpi")
    rank = helve.dist.rank()
    columns, rows = distribution("m k -> k", (m, k), mesh), distribution("k n -> k", (k, n), mesh)

    # %% What this process holds; others hold other columns, of which the last may be fewer
    a = np.random.default_rng(0).standard_normal((m, k)).astype("float32")
    b = np.random.default_rng(1).standard_normal((k, n)).astype("float32")
    mine_a = DistTensor.from_global(a, columns).shards[(rank,)]
    mine_b = DistTensor.from_global(b, rows).shards[(rank,)]

    # %% The product of its parts is a term of the whole product
    term = helve.einsum("mk,kn->mn", mine_a, mine_b)
    terms = DistTensor.from_local(term, distribution("m n -> +", (m, n), mesh))

    # %% The terms become rows: one reduce_scatter, derived and proved
    plan = terms.plan(distribution("m n -> m", (m, n), mesh))
    product = terms.prepare(plan)().gather()
    if rank == 0:
        print(plan)
        error = np.abs(product - a.astype("float64") @ b.astype("float64")).max()
        print(f"{m} x {n} x {k} over {mesh.size} processes: largest error {error:.1e}")


if __name__ == "__main__":
    main()
