"""The process of the command line: ``kesler`` and ``python -m kesler``."""

import gc
import sys

from kesler.cli import main

MANY_OBJECTS = 50_000


def run() -> int:
    """Run the command in the arguments of the process, and return its exit code."""
    # Importing and loading compiled functions create a million objects and hardly any cycle:
    # searching these for cycles every 700 objects takes a tenth of the time of a short command.
    gc.set_threshold(MANY_OBJECTS)
    return main()


if __name__ == "__main__":
    sys.exit(run())
