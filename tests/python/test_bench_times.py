"""`helve.bench`: what is called and how often, what the figures mean, how they are shown. No time itself is tested."""

import json
import statistics
import sys
import types

import numpy as np
import pytest

import helve
from helve import T
from helve.bench.clocks import CudaClock, CupyEvents, HostClock, TorchEvents
from helve.bench.peaks import Peaks, gpu_peaks
from helve.bench.results import Results, Timing, time_text


N = T.dyn("N")


@T.prim_func
def add(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
    with T.Kernel(A.shape[0]) as i:
        B[i] = A[i] + 1.0


class SmallCaches:
    """A machine whose caches are quickly overwritten."""

    name, bandwidth, peaks, last_cache, second_cache, processors = "small", 0.0, {}, 1 << 16, 1 << 12, 2


@pytest.fixture
def small_caches(monkeypatch):
    monkeypatch.setattr("helve._core.host_machine", SmallCaches)


def test_a_kernel_is_measured_cold_and_warm(small_caches):
    a, b = np.ones(64, "float32"), np.zeros(64, "float32")
    found = helve.bench(helve.compile(add), a, b, bytes=512, rounds=3)
    assert (b == 2).all()
    measured = [(each.name, each.cache, len(each.samples)) for each in found.timings]
    assert measured == [("add", "cold", 3), ("add", "warm", 3)]
    assert all(seconds > 0 for each in found.timings for seconds in each.samples)
    assert found.dtype == "float32" and found.bytes == 512


def test_candidates_alternate(small_caches):
    called = []
    found = helve.bench({"a": lambda: called.append("a"), "b": lambda: called.append("b")}, cache="cold", rounds=2)
    # Twice each until they are ready, one round that does not count, two that do.
    assert called == ["a", "a", "b", "b", *"ab" * 3]
    assert list(found.seconds()) == ["a", "b"]


def test_a_warm_sample_runs_after_the_candidate_itself():
    clock, called = HostClock(cold=False), []
    assert clock.sample(lambda: called.append(1), False, 5)() > 0
    assert len(called) == 6
    assert 1 < clock.begin(lambda: None) <= 10_000


def test_a_cold_sample_overwrites_all_caches(small_caches):
    clock, seen = HostClock(cold=True), []
    assert clock._buffer.nbytes >= 1.25 * ((1 << 16) + 2 * (1 << 12))
    for _ in range(2):
        clock.sample(lambda: seen.append((int(clock._buffer.min()), int(clock._buffer.max()))), True, 7)
    assert seen == [(1, 1), (2, 2)]  # every element is written before the one call


def test_kernels_that_compile_at_the_call_are_measured(small_caches):
    found = helve.bench([helve.jit(add, out="B"), np.abs], np.ones(4, "float32"), rounds=1)
    assert list(found.seconds()) == ["add", "absolute"]


def test_a_fault_of_a_candidate_is_that_of_its_call():
    with pytest.raises(helve.Error) as caught:
        helve.bench(helve.compile(add), np.ones(4, "float32"), rounds=1, cache="warm")
    assert caught.value.code == "HV0630" and caught.value.filename == __file__
    with pytest.raises(ZeroDivisionError):
        helve.bench(lambda: 1 / 0, cache="warm")


def results():
    peaks = Peaks("sm_00", 2e12, {"float16": 1e15})
    timings = (Timing("helve", "cold", (2e-3, 1e-3, 4e-3, 3e-3, 5e-3)), Timing("helve", "warm", (1e-3,)),
               Timing("library", "cold", (6e-3,)), Timing("library", "warm", (0.5e-3,)))
    return Results(timings, 3e9, 1.5e12, "float16", peaks)


def test_the_table():
    assert str(results()) == """\
         cache  median  spread   least         GB/s      TFLOP/s  ratio
helve    cold     3 ms   66.7%    1 ms   1000 (50%)    500 (50%)  1.00x
helve    warm     1 ms    0.0%    1 ms  3000 (150%)  1500 (150%)  1.00x
library  cold     6 ms    0.0%    6 ms    500 (25%)    250 (25%)  0.50x
library  warm   500 us    0.0%  500 us  6000 (300%)  3000 (300%)  2.00x"""
    assert repr(results()) == str(results())
    plain = Results(results().timings[:1], None, 1e9, None, Peaks("cpu"))
    assert str(plain) == """\
       cache  median  spread  least  TFLOP/s
helve  cold     3 ms   66.7%   1 ms   0.3333"""


def test_rows_are_plain_values():
    row = json.loads(json.dumps(results().to_dict()))[0]
    assert row == {"name": "helve", "cache": "cold", "seconds": 3e-3, "least": 1e-3, "rounds": 5, "ratio": 1.0,
                   "spread": pytest.approx(2 / 3), "bytes_per_second": pytest.approx(1e12),
                   "share_of_bandwidth": pytest.approx(0.5), "flops_per_second": pytest.approx(5e14),
                   "share_of_peak": pytest.approx(0.5)}
    unknown = Results(results().timings[:1], 1e6, None, None, Peaks("cpu")).to_dict()[0]
    assert unknown["share_of_bandwidth"] is unknown["flops_per_second"] is unknown["share_of_peak"] is None


def test_timings_by_name():
    found = results()
    assert found.timing() is found.timings[0] and found.timing("library", "warm") is found.timings[3]
    assert found.seconds("warm") == {"helve": 1e-3, "library": 0.5e-3}
    assert found.timing().seconds == statistics.median(found.timing().samples)
    with pytest.raises(helve.Error) as caught:
        found.timing("other")
    assert str(caught.value) == (
        "error[HV0108]: 'Results.timing' cannot take 'other' (None) for 'name': it was not measured\n"
        "help: these were: helve (cold), helve (warm), library (cold), library (warm)")


def test_times_have_units():
    assert [time_text(x) for x in (2.0, 0.0015, 2.5e-6, 3e-9, 0.0)] == ["2 s", "1.5 ms", "2.5 us", "3 ns", "0 ns"]


def test_a_plot(tmp_path):
    pytest.importorskip("matplotlib")
    figure = results().plot(tmp_path / "times.svg")
    assert (tmp_path / "times.svg").read_text().startswith("<?xml")
    (axes,) = figure.axes
    assert [text.get_text() for text in axes.get_yticklabels()] == ["helve", "library"]
    assert sorted(bar.get_width() for bar in axes.patches) == pytest.approx([0.5, 1, 3, 6])
    with pytest.raises(helve.Error, match="HV0588"):
        results().plot(tmp_path / "none" / "times.svg")
    with pytest.raises(helve.Error, match="HV0588"):
        results().plot(tmp_path / "times.xyz")


def test_a_plot_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(helve.Error) as caught:
        results().plot()
    assert str(caught.value) == (
        "error[HV0588]: a picture cannot be saved as 'figure': it is drawn by Matplotlib, which is missing\n"
        'help: install it, as pip install "helve[plot]", or print the table')


class FakeEvents:
    """Events of a device that takes a millisecond for every call since the last one."""

    arch, bandwidth = "sm_90", 0.0

    def __init__(self):
        self.log = []

    def buffer(self, size):
        self.log.append(size)
        return lambda: self.log.append("overwrite")

    def within(self):
        import contextlib
        return contextlib.nullcontext()

    def record(self):
        self.log.append("event")
        return len(self.log)

    def between(self, start, end):
        return float(end - start - 1)

    def synchronize(self):
        self.log.append("synchronize")


def test_samples_on_a_gpu():
    events = FakeEvents()
    clock = CudaClock(events)
    assert events.log == [256 << 20]  # five times the level 2 cache
    events.log.clear()
    call = lambda: events.log.append("call")  # noqa: E731
    assert clock.begin(call) == 1
    assert events.log == ["call", "call", "synchronize"]
    events.log.clear()
    cold = clock.sample(call, True, 1)
    assert events.log == ["overwrite", "event", "call", "event"] and cold() == 1e-3
    events.log.clear()
    clock.sample(call, False, 1)
    assert events.log == ["overwrite", "call", "event", "call", "event"]
    clock.end()
    assert events.log[-1] == "synchronize"


def test_peaks_of_a_gpu():
    events = FakeEvents()
    assert gpu_peaks(events).bandwidth == 3.35e12 and gpu_peaks(events).operations["bfloat16"] == 989e12
    events.bandwidth = 4.9e12  # what the device itself says
    assert gpu_peaks(events).bandwidth == 4.9e12
    events.arch = "sm_10"
    assert gpu_peaks(events) == Peaks("sm_10", 4.9e12)


def fake_cupy():
    """CuPy's names that a clock uses, on a device of compute capability 9.0."""
    class Device:
        compute_capability = "90"
        attributes = {"MemoryClockRate": 1_000_000, "GlobalMemoryBusWidth": 512}

        def __enter__(self):
            return self

        def __exit__(self, *fault):
            pass

        def synchronize(self):
            pass

    class Event:
        def record(self):
            pass

    cuda = types.SimpleNamespace(Device=Device, Event=Event, get_elapsed_time=lambda start, end: 3.0)
    return types.SimpleNamespace(cuda=cuda, empty=lambda size, dtype: np.empty(64, dtype))


def test_events_of_cupy(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    monkeypatch.setitem(sys.modules, "torch", None)
    found = helve.bench({"call": lambda: None}, device="cuda", bytes=1e6, flops=1e9, dtype="float16", rounds=2)
    assert found.peaks.machine == "sm_90" and found.peaks.bandwidth == 1.28e11
    assert found.seconds("cold") == {"call": 3e-3}
    assert found.to_dict()[0]["share_of_peak"] == pytest.approx(1e9 / 3e-3 / 989e12)
    assert CupyEvents(None).arch == "sm_90"


def test_a_machine_without_a_library_for_gpus(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(helve.Error) as caught:
        helve.bench(print, device="cuda")
    assert caught.value.code == "HV0108" and "torch: import of torch halted" in caught.value.message
    assert caught.value.help == ("time on a GPU is measured by PyTorch or CuPy: install one of them for the machine's "
                                 "driver")


def test_arrays_of_other_libraries_on_a_gpu():
    class Array:
        is_cuda = True
        dtype = "float32"

        def __dlpack__(self):
            raise NotImplementedError

    with pytest.raises(helve.Error, match="measure no time on a GPU"):
        helve.bench(print, Array())


def test_torch_events_have_the_names_of_pytorch():
    torch = pytest.importorskip("torch")
    assert hasattr(torch.cuda, "Event") and hasattr(torch.Tensor, "zero_")
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError)):
            TorchEvents(None)
