"""Run the command line with ``python -m kesler.cli``."""

import sys

from kesler.cli import main

sys.exit(main())
