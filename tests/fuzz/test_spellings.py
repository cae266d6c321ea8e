"""Random programs in other spellings are the same programs."""

import re
from collections import Counter

import helve
import pytest
import spellings
from generate import generate
import program as p

PARTS = 4


def without_quotes(script):
    """The script without what reports quote of their source: how its expressions are spelled."""
    return re.sub(r'(?m)^(\s*T\.(?:fail|print)\()"(?:[^"\\]|\\.)*"(.*)names=\[.*\](?=, at=)', r"\1\2", script)


@pytest.mark.parametrize("part", range(PARTS))
def test_other_spellings_are_the_same_program(part):
    made = Counter()
    for seed in range(part, 64, PARTS):
        text = p.text(generate(seed))
        other, spelled = spellings.respelled(text, seed)
        try:
            found = helve.parse(other)
        except helve.Error as error:
            raise AssertionError(f"seed {seed}\n{other}\n{error}") from None
        assert without_quotes(found.script()) == without_quotes(helve.parse(text).script()), f"seed {seed}\n{other}"
        made.update(spelled)
    assert set(made) >= {"function", "lambda", "astype", "continue"}, made
