"""kesler mail learn: read the folders, and print the mistakes that were made on the way."""

from __future__ import annotations

from argparse import Namespace

from kesler.cli.mail import connected, sorter_of
from kesler.cli.mail_report import print_report


def run(options: Namespace) -> None:
    """Learn what is in the folders, in the order of dates, and print a report."""
    from kesler.mail.settings import read_settings

    with connected(read_settings(options.settings)) as server:  # before there is a database
        with sorter_of(options, is_new=True) as sorter:
            n_learnt = sum(done.what == "learnt" for done in sorter.look(server, predict=False))
            print(f"{n_learnt} messages learnt\n")
        print_report(sorter)
