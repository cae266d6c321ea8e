"""The programs of docs/tutorials/start_processes.md, by each launcher that this machine has."""

import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from test_redistribution_by_nccl import require_gpus

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorials" / "start_processes.md").read_text()
PROGRAMS = {re.match(r"# (\w+\.py): ", text)[1]: text for text in re.findall(r"^```py\n(.*?)^```$", PAGE, re.M | re.S)}
BIN = Path(sys.executable).parent
SECONDS = 240
# What a launcher around the tests may have said is not for these processes.
OURS = re.compile("(RANK|WORLD_SIZE|LOCAL_RANK|MASTER_ADDR|MASTER_PORT|HELVE_ADDRESS)$|"
                  "(OMPI|PMIX|SLURM|TORCHELASTIC)_")


@pytest.fixture
def run(tmp_path):
    for name, text in PROGRAMS.items():
        (tmp_path / name).write_text(text)

    def finished(*command, environment=None):
        as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        own = {name: value for name, value in os.environ.items() if not OURS.match(name)}
        return subprocess.run([str(each) for each in command], cwd=tmp_path, capture_output=True, text=True,
                              timeout=SECONDS, env={**own, **as_root, "HELVE_NUM_THREADS": "1",
                                                    "PYTHONPATH": str(tmp_path), **(environment or {})})

    return finished


def assert_says(done, count):
    assert f"{count} processes, largest error 0.0" in done.stdout, done.stdout + done.stderr


def found(program):
    path = BIN / program if (BIN / program).exists() else shutil.which(program)
    return path or pytest.skip(f"no {program}")


def test_the_page_has_its_programs():
    assert list(PROGRAMS) == ["product.py", "on_ray.py", "on_dask.py"]


def test_mpirun(run):
    assert_says(run(found("mpirun"), "-n", 4, "--oversubscribe", sys.executable, "product.py"), 4)


def test_torchrun(run):
    assert_says(run(found("torchrun"), "--nproc-per-node", 4, "product.py"), 4)


@pytest.mark.parametrize("options", [(), ("--tcp",)], ids=str)
def test_helve_launch(options, run):
    assert_says(run(sys.executable, "-m", "helve", "launch", *options, "-n", 4, "product.py"), 4)


def test_variables(run):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    shared = f"export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port}; "
    start = f"{shared} RANK={{}} {sys.executable} product.py"
    done = run("bash", "-c", f"{start.format(0)} & {start.format(1)}; wait")
    assert_says(done, 2)


def test_slurm(run):
    assert_says(run(found("srun"), "-n", 2, sys.executable, "product.py"), 2)


def test_ray(run):
    pytest.importorskip("ray")
    assert_says(run(sys.executable, "on_ray.py", environment={"RAY_USAGE_STATS_ENABLED": "0"}), 2)


def test_dask(run):
    pytest.importorskip("distributed")
    assert_says(run(sys.executable, "on_dask.py"), 2)


def test_torchrun_on_gpus(run):
    require_gpus(2)
    done = run(found("torchrun"), "--nproc-per-node", 2, "product.py", "cuda", environment={"NCCL_NVLS_ENABLE": "0"})
    assert_says(done, 2)
