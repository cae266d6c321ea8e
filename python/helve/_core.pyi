"""Types of the C++ core, for editors and checkers."""

__version__: str

def diagnostic_rows() -> list[tuple[str, int, str, str, str]]:
    """All diagnostics as (name, number, severity, message, help), in table order."""
