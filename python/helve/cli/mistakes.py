"""A mistake on the command line: what is wrong, and the remedy.

It has no place in a program, so it is no diagnostic with a code; it is told in the same form.
"""

from __future__ import annotations


class Mistake(Exception):
    """What the user gave cannot be used."""

    def __init__(self, message: str, remedy: str):
        super().__init__(f"error: {message}\nhelp: {remedy}")
