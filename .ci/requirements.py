"""Prints the Python requirements of pyproject.toml, one a line: to build, to run and to test, or those of named extras.

The lists stand there and nowhere else; pip can install the project's own lists only together with the project, which
cannot be built before its build requirements are in.

    python .ci/requirements.py [extra...]      "build" is the list of what builds it
"""

import sys
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    from pip._vendor import tomli as tomllib

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
extras = project["project"]["optional-dependencies"]
if sys.argv[1:]:
    named = {**extras, "build": project["build-system"]["requires"]}
    lists = [named[name] for name in sys.argv[1:]]
else:
    lists = [project["build-system"]["requires"], project["project"]["dependencies"], extras["dev"]]
print("\n".join(requirement for part in lists for requirement in part))
