"""Pictures of layouts, as they are drawn: one of each kind.

The texts are in tests/golden/pictures; tests/golden/rewrite.py writes them anew.
"""

import pytest
from golden import GOLDEN, check_golden
from test_viz import PICTURES


@pytest.mark.parametrize("name", PICTURES)
def test_picture(name):
    check_golden(f"pictures/{name}.svg", PICTURES[name]().svg())


def test_every_kept_picture_is_compared():
    assert {path.stem for path in (GOLDEN / "pictures").iterdir()} == set(PICTURES)
