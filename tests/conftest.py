"""What holds for every test of the suite.

Each kernel function that any test builds must survive printing and parsing; tests need not ask for it.
"""

import pytest

import helve.testing
from helve.script.entry import PrimFunc


@pytest.fixture(autouse=True)
def _functions_survive_a_round_trip(monkeypatch):
    """parse(print(f)) == f for all functions built during the test."""
    built = []
    construct = PrimFunc.__init__

    def remember(self, function):
        construct(self, function)
        built.append(function)

    with monkeypatch.context() as patch:
        patch.setattr(PrimFunc, "__init__", remember)
        yield
    for function in built:
        helve.testing.assert_round_trip(function)
