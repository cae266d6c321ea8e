"""helve.autotune on a device: compiled by processes, timed by events, resumed.

Skips itself where PyTorch finds no device.
"""

import pytest

import helve

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")

from test_autotune import scale  # noqa: E402


def test_the_fastest_is_found_and_remembered(tmp_path, monkeypatch):
    monkeypatch.setenv("HELVE_CACHE_DIR", str(tmp_path))
    a, b = torch.arange(100_000, dtype=torch.float32, device="cuda"), torch.zeros(100_000, device="cuda")
    space = {"tile": [32, 512, 1024], "threads": [64, 128]}
    found = helve.autotune(scale, space, a, b, rounds=5)
    assert found.kernel.target == "cuda" and found.best == found.candidates[0].point
    assert [each.refused for each in found.candidates if each.seconds is None] == ["tile is at most 512, not 1024"] * 2
    b.zero_()
    found.kernel(a, b)
    assert torch.equal(b, 2 * a)
    again = helve.autotune(scale, space, a, b, rounds=5)
    assert all(each.recorded for each in again.candidates if each.seconds is not None) and again.best == found.best
    record, = (tmp_path / "autotune").iterdir()
    assert torch.cuda.get_device_name() in record.read_text()


def test_results_are_compared(tmp_path, monkeypatch):
    monkeypatch.setenv("HELVE_CACHE_DIR", str(tmp_path))
    a = torch.ones(1000, device="cuda")
    with pytest.raises(helve.Error, match="differ from those of factor=2.0"):
        helve.autotune(scale, {"factor": [2.0, 3.0]}, a, torch.zeros_like(a), rounds=2)
