"""Table 1 of Amit et al. (2006): an independent reference, and what its unstated choices change.

    python papers/amit2006_choices.py    # five minutes

This needs KESLER_DATA, and writes papers/results/amit2006_choices.md.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS
from sklearn.preprocessing import normalize

from amit2006 import ORDER, PUBLISHED, SHARED, C, run
from enron import FIELDS, USERS, Mail, count_words, read_mail
from kesler.datasets import load_enron
from kesler.readers import tokenize
from kesler.updates import ConProj, SimPerc, SimProj
from projections import RULES, Choices, mistaken_trials
from report import Report, table
from script_arguments import script_parser

KESLER = {"SimProj": SimProj, "ConProj": ConProj, "SimPerc": SimPerc}
MISTAKE = Choices(first="mistake")

Errors = dict[str, float]
"""The error of each user, in per cent."""


# ---- other words ----------------------------------------------------------------------------


def texts(user: str) -> tuple[list[str], list[str]]:
    """Return the messages of a user as texts, and their folders."""
    mail = load_enron(user)
    return [" ".join(record[field] for field in FIELDS) for record in mail.records], mail.y


def some_words(user: str, holds: Callable[[str], bool]) -> Mail:
    """Return the counts of the words that a test accepts."""
    messages, folders = texts(user)
    kept = (" ".join(filter(holds, tokenize(message))) for message in messages)
    return Mail(count_words(kept), folders)


def letters(user: str) -> Mail:
    """Return the counts of runs of letters and apostrophes."""
    messages, folders = texts(user)
    return Mail(count_words(re.sub("[^a-zA-Z']+", " ", each) for each in messages), folders)


def repeated(user: str) -> Mail:
    """Return the counts of the words that occur in two messages or more."""
    mail = read_mail(user)
    often = np.flatnonzero(np.asarray((mail.counts > 0).sum(axis=0)).ravel() >= 2)
    return Mail(sparse.csr_array(mail.counts[:, often]), mail.folders)


def unit_length(user: str) -> Mail:
    """Return counts scaled to length 1."""
    mail = read_mail(user)
    return Mail(sparse.csr_array(normalize(mail.counts)), mail.folders)


def at_random(user: str) -> Mail:
    """Return the messages in a random order."""
    mail = read_mail(user)
    order = np.random.default_rng(0).permutation(len(mail.folders))
    return Mail(sparse.csr_array(mail.counts[order]), [mail.folders[t] for t in order])


def without(*fields: str) -> Callable[[str], Mail]:
    """Return a reader of the counts without some headers."""
    return lambda user: read_mail(user, [field for field in FIELDS if field not in fields])


HEADERS = tuple(field for field in FIELDS if field.startswith("x_"))
READERS: dict[str, Callable[[str], Mail]] = {
    "runs of letters": letters,
    "words of 3 characters or more": partial(some_words, holds=lambda word: len(word) > 2),
    "without stop words": partial(some_words, holds=lambda word: word not in ENGLISH_STOP_WORDS),
    "words of two messages or more": repeated,
    "without X- headers": without(*HEADERS),
    "without date and number": without("date", "message_id"),
    "subject and body": lambda user: read_mail(user, ("subject", "body")),
    "messages in a random order": at_random,
}


# ---- errors ---------------------------------------------------------------------------------


def by_reference(mails: dict[str, Mail], rule: str, choices: Choices) -> Errors:
    """Return the errors of the NumPy reference."""
    return {
        user: 100 * float(mistaken_trials(mail.counts, mail.folders, rule, choices).mean())
        for user, mail in mails.items()
    }


def by_kesler(mails: dict[str, Mail], rule: str, c: float, *, first: bool = True) -> Errors:
    """Return the errors of Kesler, in which the first message of each folder may count."""
    return {user: error(mail, rule, c, first=first) for user, mail in mails.items()}


def error(mail: Mail, rule: str, c: float, *, first: bool) -> float:
    """Return the mistakes in per cent of the trials."""
    mistakes = int(run(mail.counts, mail.folders, SHARED, KESLER[rule](c))[-1])
    return 100 * (mistakes + first * len(set(mail.folders))) / len(mail.folders)


def distance(errors: Errors, rule: str) -> float:
    """Return the mean distance from the published errors, in points."""
    column = ORDER.index(rule)
    return float(np.mean([abs(errors[user] - PUBLISHED[user][column]) for user in USERS]))


def row(name: str, errors: Errors, rule: str = "SimProj") -> list[str]:
    """Return a row of a table: the errors, and their distance from the published."""
    return [name, *(f"{errors[user]:.1f}" for user in USERS), f"{distance(errors, rule):.2f}"]


# ---- the page -------------------------------------------------------------------------------


def show_reference(report: Report, mails: dict[str, Mail]) -> None:
    """Add the mistakes of Kesler beside those of the reference."""
    rows, equal = [], 0
    for user, mail in mails.items():
        ours = [int(run(mail.counts, mail.folders, SHARED, KESLER[r](C))[-1]) for r in RULES]
        theirs = [mistaken_trials(mail.counts, mail.folders, r, Choices()).sum() for r in RULES]
        equal += sum(abs(a - b) <= 1 for a, b in zip(ours, theirs, strict=True))
        rows.append([user, *(f"{a} / {b}" for a, b in zip(ours, theirs, strict=True))])
    report.add(
        "## Mistakes, Kesler / the reference",
        f"C = {C}. The reference (papers/projections.py) follows Sections 3, 4 and 6 of the paper "
        "in NumPy and float64; Kesler has float32 weights.",
        table(["", *RULES], rows),
    )
    n = len(RULES) * len(USERS)
    report.check(f"Kesler within one mistake of the reference: {equal} of {n}", equal == n)


def show_choices(report: Report, mails: dict[str, Mail]) -> None:
    """Add the errors of SimProj, one choice changed at a time."""
    published = {user: PUBLISHED[user][0] for user in USERS}
    reference = {
        "as in Table 1's page": Choices(),
        "the first message of a folder is a mistake": MISTAKE,
        "the last folder on a tie": Choices(tie="last"),
        "rare: below 2 %, not at most": Choices(rare="below"),
        "rare: of all messages": Choices(rare="all"),
        "all folders known, features 0": Choices(unseen="zero"),
        "all folders known, every word rare": Choices(unseen="rare"),
    }
    rows = [row("published", published)]
    rows += [row(n, by_reference(mails, "SimProj", choice)) for n, choice in reference.items()]
    rows += [row(f"C = {c:g}", by_kesler(mails, "SimProj", c, first=False)) for c in CS]
    for name, read in READERS.items():
        changed = {user: read(user) for user in USERS}
        rows.append(row(name, by_kesler(changed, "SimProj", C, first=False)))
    report.add(
        "## SimProj: one choice at a time",
        f"Mistakes in per cent of the trials, C = {C} where not said; the last column is the mean "
        "distance from the published figures, in points. The paper states none of them.",
        table(["", *USERS, "distance"], rows),
    )


CS = (0.001, 0.003, 0.03, 0.1, 1.0)
READ_TOO = ("runs of letters", "words of 3 characters or more", "without stop words")


def show_together(report: Report, mails: dict[str, Mail]) -> None:
    """Add the distances of all rules if first messages count, alone and with other words."""
    settings = {"counts as they are": mails} | {
        name: {user: READERS[name](user) for user in USERS} for name in READ_TOO
    }
    unit = {user: unit_length(user) for user in USERS}
    rows, nearest = [], {}
    for name, changed in settings.items():
        nearest[name] = [distance(by_kesler(changed, rule, C), rule) for rule in RULES]
        rows.append([f"{name}, C = {C}", *(f"{each:.2f}" for each in nearest[name])])
    long = [distance(by_kesler(unit, rule, 10.0), rule) for rule in RULES]
    rows.append(["length 1, C = 10", *(f"{each:.2f}" for each in long)])
    free = [distance(by_kesler(mails, rule, C, first=False), rule) for rule in RULES]
    rows.insert(0, ["first messages do not count", *(f"{each:.2f}" for each in free)])
    report.add(
        "## First messages count as mistakes",
        "Mean distance from the published figures, in points.",
        table(["", *RULES], rows),
        "In both papers the learner cannot predict a folder before its first message. Fink et al. "
        "do not count these trials, and nor does Kesler; Amit et al. do not say. Counting them "
        "adds 0.7 to 5.1 points, by the number of folders.",
    )
    claim = "the difference of SimProj falls by a fifth if first messages count"
    report.check(f"{claim}: {free[0]:.2f} to {nearest['counts as they are'][0]:.2f}",
                 nearest["counts as they are"][0] <= 0.8 * free[0])  # fmt: skip
    least = min(each[0] for each in (*nearest.values(), long))
    report.check(f"with one more choice it is at most 1.2 points: {least:.2f}", least <= 1.2)


def main() -> int:
    """Run everything, write the page and return the exit code."""
    folder = script_parser(__doc__, __file__).parse_args().results
    title = "Table 1 of Amit et al. (2006): what its unstated choices change"
    report = Report("amit2006_choices", title, folder)
    mails = {user: read_mail(user) for user in USERS}
    show_reference(report, mails)
    show_choices(report, mails)
    show_together(report, mails)
    return report.write()


if __name__ == "__main__":
    sys.exit(main())
