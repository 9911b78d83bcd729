"""``python -m kesler.cli`` is ``kesler``."""

import sys

from kesler.cli import main

sys.exit(main())
