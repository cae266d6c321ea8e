"""The pages of the site in the order in which they are read, by part.

A page is named by its file in the repository; a test fails when one is missing here.
"""

PARTS = [
    ("Start", ["docs/start.md", "tutorials/00_first_kernel.py", "docs/command.md"]),
    ("From other systems", ["docs/from_triton.md", "docs/from_tilelang.md", "docs/from_cute.md"]),
    ("The language", ["docs/language.md", "docs/notation.md", "docs/proofs.md"]),
    ("Calls", ["docs/calls.md", "docs/bench.md", "docs/autotune.md"]),
    ("Kernels", ["docs/kernels.md", "docs/cuda.md"]),
    (
        "A GPU, step by step",
        [
            "docs/tutorials/gpu_copy.md",
            "docs/tutorials/gpu_softmax.md",
            "docs/tutorials/gpu_product.md",
            "docs/tutorials/gpu_attention.md",
        ],
    ),
    ("Schedules", ["docs/schedule.md", "docs/tutorials/norms.md", "docs/tutorials/gemm_by_loops.md"]),
    (
        "Layouts",
        ["docs/layouts.md", "tutorials/02_layouts.py", "docs/cute.md"],
    ),
    (
        "Meshes",
        [
            "tutorials/01_rms_norm.py",
            "docs/distribution.md",
            "docs/dtensor.md",
            "docs/tutorials/start_processes.md",
            "tutorials/04_processes.py",
        ],
    ),
    ("PyTorch", ["docs/torch.md", "tutorials/03_pytorch.py"]),
    ("C++", ["tutorials/cpp/rms_norm.cc"]),
    ("Reference", ["docs/diagnostics.md", "docs/performance.md"]),
    ("The project", ["docs/architecture.md", "CONTRIBUTING.md", "CHANGELOG.md", "3rdparty/README.md"]),
]
FRONT = "README.md"


def pages() -> list[str]:
    """Every page, the front page first."""
    return [FRONT, *(page for _, listed in PARTS for page in listed)]


def name(page: str) -> str:
    """The name of a page on the site: its path without the suffix and without the folder `docs`."""
    if page == FRONT:
        return "index"
    stem = page.rpartition(".")[0].removeprefix("docs/")
    return "libraries" if stem == "3rdparty/README" else stem
