"""Makes the fuzzer's modules importable from its tests.

They are plain modules of this folder, so that `run.py` works as a script as well.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
