"""What an installed wheel must have: the compiler of the CPU, the notices of what it bundles, no library of its build.

Run it with the Python of a bare environment, outside of the source tree.
"""

import importlib.metadata
import re
from pathlib import Path

import numpy as np

import helve
from helve import T


@T.prim_func
def double(A: T.Tensor((100,), "float32"), B: T.Tensor((100,), "float32")):
    with T.Kernel(4) as b:
        for i in T.Parallel(25):
            B[b * 25 + i] = A[b * 25 + i] * 2.0


a = np.arange(100, dtype="float32")
for target in ("llvm", "interp"):
    b = np.zeros_like(a)
    helve.compile(double, target=target)(a, b)
    assert (b == 2 * a).all(), target
files = [str(path) for path in importlib.metadata.files("helve")]
notices = [path for path in files if "/licenses/" in path and "notices/" in path]
assert any(path.endswith("LICENSE") for path in files) and notices, files
package = Path(helve.__file__).parent.parent
loaded = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if ".so" in line}
for name in ("isl", "gmp", "fmt"):
    found = [path for path in loaded if re.search(rf"/lib{name}[.-]", path)]
    assert found and all(Path(path).is_relative_to(package) for path in found), (name, found)
