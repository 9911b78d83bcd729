"""kesler mail deliver: the folder of one message, for programs that deliver mail."""

from __future__ import annotations

import sys
from argparse import Namespace

from kesler.mail import deliver


def run(options: Namespace) -> None:
    """Print the folder, and end with the status that the program of delivery understands."""
    sys.exit(deliver.run(options))
