"""The process of the command line: ``kesler`` and ``python -m kesler``."""

import gc
import sys

MANY_OBJECTS = 50_000


def run() -> int:
    """Run the command in the arguments of the process, and return its exit code."""
    # Importing and loading compiled functions create a million objects and hardly any cycle:
    # searching these for cycles every 700 objects takes a tenth of the time of a short command.
    gc.set_threshold(MANY_OBJECTS)
    if sys.argv[1:3] == ["mail", "deliver"]:
        # Runs once for each message: the command line alone takes longer to import.
        from kesler.mail.deliver import main as deliver

        return deliver(sys.argv[3:])
    from kesler.cli import main

    return main()


if __name__ == "__main__":
    sys.exit(run())
