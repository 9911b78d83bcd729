"""Run the command line with ``python -m kesler``."""

import sys

from kesler.cli import main

sys.exit(main())
