"""`python -m helve`: the command without its script.

For environments whose scripts are not on PATH.
"""

import sys

from helve.cli import main

sys.exit(main())
