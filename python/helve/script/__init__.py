"""From Python text to IR: source capture, spans, the parser, and how its errors are shown.

The core knows nothing of Python's syntax; this package knows nothing of what programs mean beyond building them.
"""
