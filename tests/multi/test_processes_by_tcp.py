"""Processes that meet by TCP: the programs of those that mpirun starts, bit for bit, and what can go wrong.

What they compute is tested in test_redistribution_by_mpi.py and test_kernels_by_mpi.py, whose programs run here.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest
import test_redistribution_by_mpi as redistribution
from on_ranks import on_ranks

from helve.dist import launchers

OF_REDISTRIBUTION, OF_KERNELS, OF_FAULTS = (
    "test_redistribution_by_mpi", "test_kernels_by_mpi", "test_processes_that_differ")


@pytest.mark.parametrize("mesh", [(2,), (2, 2), (4, 2)], ids=str)
def test_parts_are_those_of_one_process(mesh):
    share = redistribution.SHARE[mesh] * (1 if mesh == (2,) else 7)
    answers = on_ranks(int(np.prod(mesh)), OF_REDISTRIBUTION, "differences", mesh, share, redistribution.SHAPES,
                       ["float32"], by="tcp", timeout=200)
    assert [each["found"] for each in answers] == [[]] * len(answers)
    assert all(each["tried"] > 10 for each in answers)


def test_large_parts_and_other_dtypes():
    answers = on_ranks(4, OF_REDISTRIBUTION, "differences", (4,), 9, [(300, 70), (70001, 1)],
                       ["float32", "float16", "int64"], by="tcp")
    assert [each["found"] for each in answers] == [[]] * 4


def test_every_method_of_a_tensor():
    assert on_ranks(4, OF_REDISTRIBUTION, "ways_of_use", by="tcp") == ["done"] * 4


def test_the_tutorial():
    first, *others = on_ranks(3, OF_REDISTRIBUTION, "tutorial", by="tcp")
    assert "10 x 7 x 50 over 3 processes: largest error " in first and others == ["", ""]


def test_kernels_are_those_of_one_process():
    assert on_ranks(4, OF_KERNELS, "differences", (2, 2), by="tcp") == [[]] * 4


def first_lines(answers):
    return [each and each["text"].splitlines()[0] for each in answers]


def test_a_step_that_differs():
    for rank, text in enumerate(first_lines(on_ranks(3, OF_FAULTS, "moves", 3, 2, "other order", by="tcp"))):
        assert text.startswith("error[HV0419]: process 2 differs from process 0 in step 3, which is "), text
        assert text.endswith(f" on this process, {rank}"), text


def test_a_late_process_is_named_at_the_deadline():
    answers = on_ranks(3, OF_FAULTS, "moves", 3, 1, "stops", by="tcp", environment={"HELVE_COMM_TIMEOUT": "1"})
    for rank in (0, 2):
        assert answers[rank]["error"] == "HV0420" and "process 1 did not reach step 3, the plan from " in answers[rank][
            "text"]


def test_a_dead_process_is_named_at_once():
    begin = time.monotonic()
    answers = on_ranks(4, OF_FAULTS, "moves", 4, 3, "dies", by="tcp", environment={"HELVE_COMM_TIMEOUT": "100"})
    assert time.monotonic() - begin < 60 and answers[3] is None
    for text in first_lines(answers[:3]):
        assert text.startswith("error[HV0421]: process 3 cannot be reached in step 3, the plan from "), text
        assert text.endswith(": process 0 does not reach it"), text


INIT = "import helve, sys; helve.dist.init(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]); print(helve.dist.rank())"


def started(places, address, timeout="5"):
    """What processes of these numbers and sizes say on their error streams, or print."""
    running = [subprocess.Popen([sys.executable, "-c", INIT, str(rank), str(size), address], text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                env={**os.environ, "HELVE_COMM_TIMEOUT": timeout}) for rank, size in places]
    out = []
    for each in running:
        printed, said = each.communicate(timeout=60)
        lines = said.splitlines()
        at = next((k for k, line in enumerate(lines) if "error[HV" in line), None)
        out.append(printed.strip() if at is None else "\n".join(
            [lines[at][lines[at].index("error[HV"):], *(line for line in lines[at:] if line.startswith("help: "))]))
    return out


def an_address():
    return f"127.0.0.1:{launchers.free_port('127.0.0.1')}"


def test_processes_meet_by_the_call():
    assert started([(0, 2), (1, 2)], an_address(), "60") == ["0", "1"]
    assert started([(0, 1)], "") == ["0"]


def test_processes_that_do_not_meet():
    address = an_address()
    text = f"error[HV0426]: process {{}} of {{}} does not meet the others at {address}: "
    assert started([(0, 2), (1, 4)], address, "60") == [
        text.format(rank, size) + "process 1 was started as one of 4, process 0 as one of 2\n"
        "help: start all processes with one size" for rank, size in [(0, 2), (1, 4)]]
    see = ("help: see that all processes are started, with one address; if they only take longer, set "
           "HELVE_COMM_TIMEOUT to more seconds")
    assert started([(0, 3), (2, 3)], address, "2") == [
        text.format(rank, 3) + f"process 1 did not come within 2 s\n{see}" for rank in (0, 2)]
    assert started([(1, 2)], address, "0.5") == [
        text.format(1, 2) + f"process 0 does not answer there within 0.5 s: Connection refused\n{see}"]


def test_a_number_that_two_processes_have():
    """The third says so to the two that are there, whichever come first."""
    answers = started([(0, 3), (1, 3), (1, 3)], an_address(), "60")
    assert all(each.endswith(": two processes have the number 1\nhelp: give each process a number of its own, from 0")
               for each in answers), answers


def test_arguments_of_init():
    say = "import helve\ntry:\n    {}\nexcept helve.Error as e:\n    print(e.code, e.message, e.help, sep='|')"

    def said(code):
        return subprocess.run([sys.executable, "-c", say.format(code)], capture_output=True, text=True).stdout.strip()

    none = 'HV0417|there are no processes for a mesh of device "mpi": '
    assert said("helve.dist.init(0, 2)") == (
        f'{none}init was given rank 0, size 2 and address None|give all of them, init(0, 4, "10.0.0.1:29500"), or none')
    assert said("helve.dist.init(); helve.dist.init(0, 1, '')") == (
        f"{none}this process is connected with others already|call helve.dist.init before the first use of a mesh of "
        "processes, once")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_wait_for_others(number):
    heed = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"  # which jobs of a shell ignore
    with subprocess.Popen([sys.executable, "-c", f"{heed}; print('here', flush=True); {INIT}", "0", "2", an_address()],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as waiting:
        assert waiting.stdout.readline() == "here\n"
        time.sleep(1.5)
        waiting.send_signal(number)
        _, said = waiting.communicate(timeout=20)
    assert waiting.returncode != 0 and (number != signal.SIGINT or "KeyboardInterrupt" in said)


@pytest.mark.parametrize(("nodes", "first"), [
    ("node7", "node7"), ("node7,node9", "node7"), ("node[07-09,12]", "node07"), ("a-b[3,5]", "a-b3"),
    ("gpu[1-2]-ib", "gpu1-ib"), ("c[10],d", "c10")])
def test_the_first_machine_of_slurm(nodes, first):
    assert launchers.first_machine(nodes) == first


def test_what_launchers_say():
    def found(**environment):
        start = launchers.find_start(environment, 1)
        return start and (start.rank, start.size, start.address)

    named = {"RANK": "3", "WORLD_SIZE": "8", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
    assert found() == (0, 1, "")
    assert found(**named) == (3, 8, "10.0.0.1:29500")
    assert found(**named | {"MASTER_ADDR": "fe80::1"}) == (3, 8, "[fe80::1]:29500")
    assert found(**named, HELVE_ADDRESS="here:1") == (3, 8, "here:1")
    assert found(**named | {"WORLD_SIZE": "1", "RANK": "0"}) == (0, 1, "")
    assert found(**named, OMPI_COMM_WORLD_SIZE="2") is None and found(PMI_RANK="0") is None
    slurm = {"SLURM_PROCID": "5", "SLURM_STEP_NUM_TASKS": "16", "SLURM_STEP_NODELIST": "n[01-04]",
             "SLURM_JOB_ID": "1000", "SLURM_STEP_ID": "2"}
    assert found(**slurm) == (5, 16, "n01:24002") and found(**slurm, PMIX_RANK="5") is None
    assert found(SLURM_PROCID="0", SLURM_NTASKS="4") == (0, 1, "")  # the script of a batch, which srun did not start


@pytest.mark.parametrize(("environment", "message"), [
    ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK=x is no number of processes"),
    ({"RANK": "0", "WORLD_SIZE": "-2"}, "WORLD_SIZE=-2 is no number of processes"),
    ({"RANK": "0", "WORLD_SIZE": "2"}, "RANK and WORLD_SIZE are set, and MASTER_ADDR is not")])
def test_what_launchers_say_wrong(environment, message):
    import helve

    with pytest.raises(helve.Error) as caught:
        launchers.find_start(environment, 1)
    assert caught.value.code == "HV0417" and caught.value.message.endswith(message)


def test_torchrun(tmp_path):
    pytest.importorskip("torch.distributed.run")
    program = tmp_path / "program.py"
    program.write_text("import os, torch.distributed, helve\ntorch.distributed.init_process_group('gloo')\n"
                       "ranks = helve.dist.rank(), helve.dist.size(), torch.distributed.get_rank()\n"
                       "os.write(1, ('%d %d %d\\n' % ranks).encode())\n")  # at once: others write there too
    done = subprocess.run([sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port",
                           str(launchers.free_port()), str(program)], capture_output=True, text=True, timeout=120)
    assert sorted(line for line in done.stdout.splitlines() if line[:1].isdigit()) == ["0 2 0", "1 2 1"], done.stderr


def test_launch_says_what_it_did(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import os, sys, helve.dist as d\n"
                       "os.write(1, f'{d.rank()} {d.size()} {sys.argv[1:]}\\n'.encode())\n"
                       "sys.exit(3 if d.rank() == 1 else 0)\n")
    done = subprocess.run([sys.executable, "-m", "helve", "launch", "--tcp", "-n", "3", str(program), "--size", "4"],
                          capture_output=True, text=True)
    assert sorted(done.stdout.splitlines()) == [f"{rank} 3 ['--size', '4']" for rank in range(3)], done.stderr
    assert done.stderr.startswith("helve launch: --tcp is given, so 3 processes meet by TCP at 127.0.0.1:")
    assert done.returncode == 3


def test_a_port_that_is_taken():
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        assert started([(0, 2)], address) == [
            f"error[HV0426]: process 0 of 2 does not meet the others at {address}: process 0 cannot listen there: "
            "Address already in use\nhelp: give a free port of its machine, the same to all processes"]
