"""kesler mail report: mistakes by folder, and what would be moved."""

from __future__ import annotations

from argparse import Namespace
from math import isinf
from typing import TYPE_CHECKING

from kesler.cli.mail import sorter_of

if TYPE_CHECKING:
    from kesler.mail.sorter import Sorter


def run(options: Namespace) -> None:
    """Print the report of what was learnt so far."""
    with sorter_of(options) as sorter:
        print_report(sorter)


def print_report(sorter: Sorter) -> None:
    """Print the mistakes of predictions that were made before their answers were known."""
    from kesler.mail.summary import by_folder

    rows = by_folder(sorter.known.records.values())
    width = max(len("folder"), *(len(row.folder) for row in rows))
    print(f"{'folder':{width}}  learnt  predicted  wrong      %")
    for row in rows:
        share = f"{100 * row.n_wrong / row.n_predicted:.1f}" if row.n_predicted else "-"
        numbers = f"{row.n_learnt:6}  {row.n_predicted:9}  {row.n_wrong:5}  {share:>5}"
        print(f"{row.folder:{width}}  {numbers}")
    print(f"\n{_sureness(sorter, rows[-1].n_predicted)}")


def _sureness(sorter: Sorter, n_predicted: int) -> str:
    """Return a sentence about the predictions that are sure enough for a move."""
    from kesler.mail.summary import sure

    threshold, error = sorter.filing.threshold, sorter.settings.error
    if isinf(threshold):
        return f"no predictions are so sure that at most {error:.1%} are wrong: nothing is moved"
    n, n_wrong = sure(sorter.known.records.values(), threshold)
    return (
        f"{n} of {n_predicted} predictions were sure enough to be moved, and {n_wrong} of these "
        f"wrong (wanted: at most {error:.1%})"
    )
