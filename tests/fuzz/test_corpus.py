"""The programs that once failed: all of them agree on every engine now, or fail in the known way that their head names.
"""

import campaign
import corpus
import pytest


@pytest.mark.parametrize("path", corpus.files(), ids=lambda path: path.name.removesuffix(".py-text"))
def test_a_kept_program(path):
    call, note, expected = corpus.read(path)
    failure = campaign.isolated(call)
    if expected is None:
        assert failure is None, f"{note}\n{failure.layer}: {failure.detail}"
    else:
        assert failure is not None, f"{path.name} passes now: take 'expected' out of its head"
        assert failure.layer == expected, f"{note}\n{failure.layer}: {failure.detail}"
