"""Targets, architectures and dtypes as users spell them.

People write them as other compilers and tools do; this says what helve calls what they probably mean.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from helve import _core
from helve.errors import suggestion

_TARGETS = {
    "avx512": "llvm", "c": "llvm", "cpu": "llvm", "host": "llvm", "native": "llvm", "x86": "llvm", "x86_64": "llvm",
    "device": "cuda", "gpu": "cuda", "nvcc": "cuda", "nvidia": "cuda", "nvptx": "cuda", "ptx": "cuda",
    "interpreter": "interp", "python": "interp",
}

_BITS = {"f": "float", "float": "float", "fp": "float", "i": "int", "s": "int", "int": "int", "u": "uint",
         "ui": "uint", "uint": "uint", "bf": "bfloat"}
_DTYPES = {"boolean": "bool", "byte": "uint8", "char": "int8", "single": "float32", "size_t": "index"}


def _architecture(text: str) -> str | None:
    """ "sm_90a" for "90a", "compute_90a", "SM90a" or "9.0a"; None if that is no architecture."""
    found = re.fullmatch(r"(?:sm|compute)?[_ -]?(?:(\d{2,3})|(\d{1,2})\.(\d))([af]?)", text.strip().lower())
    if not found:
        return None
    name = f"sm_{found[1] or found[2] + found[3]}{found[4]}"
    return name if _core.gpu_machine(name) else None


def target_meant(target: object, known: Iterable[str]) -> list[str]:
    """What `target`, which is none of the known ones, probably is, as a list of fixes."""
    if not isinstance(target, str):  # an object of another library, such as torch.device("cuda:0")
        kind = getattr(target, "type", None)
        return [f'write target="{kind}"'] if kind in known else target_meant(kind, known) if kind else []
    name, _, rest = target.strip().lower().partition(":")
    arch = _architecture(rest or name.removeprefix("cuda").lstrip("-_ "))
    if arch and "cuda" in known:
        return [f'in helve: target="cuda", arch="{arch}"']
    meant = name if rest and name in known else _TARGETS.get(name)
    return [f'in helve: target="{meant}"'] if meant in known else suggestion(target, known)


def architecture_meant(arch: str) -> list[str]:
    """The architecture that was probably meant, as a list of fixes."""
    name = _architecture(arch)
    if not name or name == arch:
        return []
    whole = _core.gpu_machine(name + "a")
    more = whole is not None and whole.group_products and not _core.gpu_machine(name).group_products
    return [f"did you mean '{name}a', or '{name}', which has no wgmma?" if more else f"did you mean '{name}'?"]


def dtype_meant(name: object) -> list[str]:
    """The dtype that was probably meant by a name that is none, with those that there are, as a list of fixes."""
    known = _core.dtype_names()
    return [f"{fix} dtypes are: {', '.join(known)}" for fix in _dtype_meant(name, known)]


def _dtype_meant(name: object, known: Iterable[str]) -> list[str]:
    if not isinstance(name, str):
        return []
    text = name.strip().lower()
    meant = _DTYPES.get(text)
    if found := re.fullmatch(r"([a-z]+)_?(\d+)(?:_t)?", text):
        meant = f"{_BITS.get(found[1], found[1])}{found[2]}"
    if found := re.fullmatch(r"(?:fp8|f8|float8)?_?(e4m3|e5m2)(?:fn)?", text):
        meant = f"float8_{found[1]}"
    return [f"did you mean '{meant}'?"] if meant in known else suggestion(name, known)
