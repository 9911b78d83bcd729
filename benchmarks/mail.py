"""Filing mail: rows of messages with their threads, on seven Enron users, and what else is done.

    python benchmarks/mail.py [--nightly USER ...]

This needs KESLER_DATA. Each message is predicted before it is learnt, in the order of dates. The
script writes benchmarks/results/mail.md. The models that are fitted again each night take two
minutes to an hour for a user: `--nightly` runs them, and their mistakes are stored in
benchmarks/results/mail_nightly.json.
"""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect, insort
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kesler import OnlineClassifier, progressive_validate
from kesler.datasets import load, load_enron
from kesler.errors import KeslerError
from kesler.evaluation.confidence import RiskCoverage
from kesler.mail.filing import EVERY, FEWEST, Filing
from kesler.mail.messages import row_of
from kesler.mail.threads import Keys, Threads, keys_of
from kesler.readers.mail.message import parsed_message

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from enron import FIELDS, USERS
from fink2006 import PUBLISHED
from mail_peers import Predictions, naive_bayes, nightly, threads_alone
from report import Report, table
from script_arguments import script_parser

RESULTS = Path(__file__).parent / "results"
NIGHTLY = RESULTS / "mail_nightly.json"
WORDS = tuple(f for f in FIELDS if f not in ("date", "message_id", "x_origin", "x_filename"))
"""The fields that a message has when it arrives, without its date."""
HEADERS = {
    "message_id": "Message-ID",
    "date": "Date",
    "x_cc": "X-cc",
    "x_filename": "X-FileName",
    **{field: field.title().replace("_", "-") for field in ("from", "to", "cc", "subject")},
    **{field: field.title().replace("_", "-") for field in ("x_from", "x_to", "x_origin")},
}
ERROR, MOST_ERROR = 0.02, 0.025
NOT_RUN = -1
Row = dict[str, float]


@dataclass(frozen=True, eq=False)
class Messages:
    """Messages as rows, in the order of learning, and what connects each with others."""

    rows: list[Row]
    keys: list[Keys]
    folders: list[str]


def source(record: dict[str, Any]) -> bytes:
    """Return the message of a record."""
    headers = [f"{name}: {record[field]}\n" for field, name in HEADERS.items() if record[field]]
    typed = "Content-Type: text/plain; charset=iso-8859-1\n\n"
    return "".join([*headers, typed, record["body"]]).encode("latin-1")


def read(sources: Iterable[bytes], folders: list[str]) -> Messages:
    """Return messages as rows, with the threads of those before each."""
    threads, rows, keys = Threads(), [], []
    for message, folder in zip(sources, folders, strict=True):
        rows.append(row_of(message, threads))
        keys.append(keys_of(parsed_message(message)))
        threads.learn(keys[-1], folder)
    return Messages(rows, keys, folders)


@cache
def mail_of(user: str) -> Messages:
    """Return the messages of a user."""
    mail = load_enron(user)
    return read(map(source, mail.records), mail.y)


def texts_of(user: str, fields: Iterable[str]) -> list[str]:
    """Return the messages of a user as the texts of some fields."""
    fields = list(fields)
    return [" ".join(record[field] for field in fields) for record in load_enron(user).records]


def mistakes(X: Any, y: list[str]) -> int:
    """Return the mistakes of the default."""
    return int(progressive_validate(OnlineClassifier(), X, y).n_mistakes)


def wrong(found: Predictions, folders: list[str]) -> int:
    """Return how many predictions are not the folder."""
    return sum(a != b for a, b in zip(found, folders, strict=True))


def run_nightly(user: str) -> None:
    """Store the mistakes of models that are fitted each night."""
    mail = load_enron(user)
    days = [int(record["ts"]) // 86400 for record in mail.records]
    n = wrong(nightly(texts_of(user, WORDS), mail.y, days), mail.y)
    stored = json.loads(NIGHTLY.read_text()) if NIGHTLY.exists() else {}
    NIGHTLY.write_text(json.dumps(stored | {user: n}, indent=1, sort_keys=True) + "\n")


# ---- mistakes -------------------------------------------------------------------------------


def add_mistakes(page: Report) -> None:
    """Add the mistakes of all methods on what a message has when it arrives."""
    rows, ours, others, stored = [], [], [], json.loads(NIGHTLY.read_text())
    for user in USERS:
        y, texts, mail = load_enron(user).y, texts_of(user, WORDS), mail_of(user)
        ours.append(mistakes(mail.rows, y))
        others.append(
            (
                mistakes(texts, y),
                wrong(naive_bayes(texts, y), y),
                stored.get(user, NOT_RUN),
                wrong(threads_alone(mail.keys, y), y),
            )
        )
        best = min(PUBLISHED[user])
        figures = (ours[-1], *others[-1], best * len(y) / 100)
        cells = ["not run" if n == NOT_RUN else f"{100 * n / len(y):.2f}" for n in figures]
        rows.append([user, f"{len(y):,}", *cells])
    names = ("words of the same", "naive Bayes", "TF-IDF + LinearSVC", "threads alone", "published")
    page.add(
        "## Mistakes in %", MISTAKES, table(["", "messages", "rows with threads", *names], rows)
    )
    for name, found in zip(names, zip(*others, strict=True), strict=False):
        run = [(a, b) for a, b in zip(ours, found, strict=True) if b != NOT_RUN]
        n = sum(a < b for a, b in run)
        page.check(f"fewer mistakes than {name} on {n} of {len(run)} users", n == len(USERS))
    n = sum(float(row[2]) < float(row[-1]) for row in rows)
    page.check(f"fewer than published on {n} of {len(USERS)} users", n == len(USERS))


MISTAKES = """\
Of what a message has when it arrives: sender, recipients, subject, body and the names beside
addresses, without the headers that the export of this corpus has written (below). "rows with
threads" is the default on the rows of `kesler.mail`, "words of the same" the default on one text of
the same fields. TF-IDF and LinearSVC of scikit-learn are fitted at the start of each day to all
messages before it; naive Bayes is multinomial, on counts, and learns each message. "threads alone"
is the folder of the thread, or of the sender's last message, or the last folder. "published" is the
least of the three in Table 1 of Fink et al. (2006), which has all headers.

Fields, values and the rule of filing were chosen on these seven users, among about 90 kinds of
rows, 8 measures of sureness and 20 rules of thresholds; the figures of ours are therefore
somewhat too good, by an amount that is not known. The others have their default settings."""


def add_all_headers(page: Report) -> None:
    """Add what the headers of the export tell."""
    rows = []
    for user in USERS:
        y = load_enron(user).y
        found = (
            mistakes(mail_of(user).rows, y),
            mistakes(texts_of(user, FIELDS), y),
            mistakes(texts_of(user, [f for f in FIELDS if f != "message_id"]), y),
            nearest_export(user),
        )
        rows.append([user, *(f"{100 * n / len(y):.2f}" for n in found)])
    head = ["", "rows with threads", "all headers", "without Message-ID", "nearest Message-ID"]
    page.add("## The headers of the export", EXPORT, table(head, rows))


def nearest_export(user: str) -> int:
    """Return the mistakes of the folder of the message that was exported next to each."""
    seen, folders, n_wrong = list[int](), dict[int, str](), 0
    for record, folder in zip(load_enron(user).records, load_enron(user).y, strict=True):
        found = re.search(r"\.(\d{13})\.", record["message_id"])
        moment = int(found[1]) if found else 0
        at = bisect(seen, moment)
        near = sorted(seen[max(0, at - 1) : at + 1], key=lambda each: abs(each - moment))
        n_wrong += not near or folders[near[0]] != folder
        insort(seen, moment)
        folders[moment] = folder
    return n_wrong


EXPORT = """\
Mistakes in %. The Message-IDs of this corpus were written when the mail was exported, folder by
folder, and hold the millisecond of that: the folder of the message with the nearest one ("nearest
Message-ID"), of those before, is right more often than any learner. X-FileName and X-Origin name
the file that a message was exported from. No message has these when it arrives, and rows leave them
out. The default on words of all headers reads Message-IDs as whole words and can use little of
that; learners of runs of characters can use it, and their mistakes on all headers say nothing."""


# ---- features -------------------------------------------------------------------------------


def without(kind: str) -> Callable[[Row, dict[str, Any]], Row]:
    """Return a change of rows that leaves out the features of a kind."""
    return lambda row, _: {name: v for name, v in row.items() if not name.startswith(kind)}


def with_moment(kind: str, form: str) -> Callable[[Row, dict[str, Any]], Row]:
    """Return a change of rows that adds a feature of the date."""

    def changed(row: Row, record: dict[str, Any]) -> Row:
        moment = datetime.fromtimestamp(int(record["ts"]), UTC)
        return {**row, f"{kind}:{moment:{form}}": 1.0}

    return changed


def with_recipients(row: Row, record: dict[str, Any]) -> Row:
    """Return a row with each recipient as a feature."""
    found = re.findall(r"[\w.+'-]+@[\w.-]+", f"{record['to']} {record['cc']}".lower())
    return {**row, **{f"to:{each}": 1.0 for each in found}}


CHANGES = {
    "without the subject's words": without("subject:"),
    "without the sender": without("from:"),
    "without its domain": without("domain:"),
    "without threads": without("thread in:"),
    "without people": without("people in:"),
    "without the sender's last folder": without("sender in:"),
    "without any folder": lambda row, _: {k: v for k, v in row.items() if " in:" not in k},
    "with recipients": with_recipients,
    "with the weekday": with_moment("weekday", "%a"),
    "with the hour": with_moment("hour", "%H"),
}


def add_features(page: Report) -> None:
    """Add the mistakes without each kind of feature, and with those that rows do not have."""
    as_they_are = [mistakes(mail_of(user).rows, load_enron(user).y) for user in USERS]
    rows = [["as they are", *map(str, as_they_are), str(sum(as_they_are)), ""]]
    for name, change in CHANGES.items():
        found = []
        for user in USERS:
            mail = load_enron(user)
            changed = map(change, mail_of(user).rows, mail.records)
            found.append(mistakes([*changed], mail.y))
        worse = sum(a > b for a, b in zip(found, as_they_are, strict=True))
        better = sum(a < b for a, b in zip(found, as_they_are, strict=True))
        rows.append([name, *map(str, found), str(sum(found)), f"{worse} / {better}"])
    page.add("## What gains", FEATURES, table(["", *USERS, "sum", "worse / better"], rows))


FEATURES = """\
Mistakes without one kind of feature, or with one that rows do not have, and on how many users that
is worse and better. Lists and attachments cannot be measured, as this mail has none; nor can
In-Reply-To and References, so that threads are found by subjects alone."""


# ---- filing ---------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Filed:
    """Which messages were filed, by `Filing` and by the confidence alone, and which were wrong."""

    ours: npt.NDArray[np.bool_]
    plain: npt.NDArray[np.bool_]
    wrong: npt.NDArray[np.bool_]


def filed_of(mail: Messages) -> Filed:
    """File messages, each threshold chosen from those before."""
    result = progressive_validate(OnlineClassifier(), mail.rows, mail.folders)
    assert result.uncertainty is not None
    confidence = np.nan_to_num(result.uncertainty.confidence)
    is_wrong = result.predictions != result.targets
    filing, threshold = Filing(ERROR), np.inf
    ours, plain = np.zeros_like(is_wrong), np.zeros_like(is_wrong)
    for i, (row, folder) in enumerate(zip(mail.rows, result.predictions.tolist(), strict=True)):
        sure = filing.sureness(float(confidence[i]), folder, row)
        ours[i], plain[i] = filing.files(sure), confidence[i] >= threshold
        filing.learn(sure, folder, not is_wrong[i])
        if i + 1 >= FEWEST and (i + 1) % EVERY == 0:
            threshold = plain_threshold(confidence[: i + 1], is_wrong[: i + 1])
    return Filed(ours, plain, is_wrong)


def plain_threshold(confidence: npt.NDArray[np.float64], is_wrong: npt.NDArray[np.bool_]) -> float:
    """Return the confidence that `threshold_for` chooses, infinite if there is none."""
    try:
        return RiskCoverage.of(confidence, is_wrong).threshold_for(ERROR).confidence
    except KeslerError:
        return np.inf


def share_and_error(filed: npt.NDArray[np.bool_], is_wrong: npt.NDArray[np.bool_]) -> list[str]:
    """Return the cells of a table: the share filed, and the error among these."""
    n, n_wrong = int(filed.sum()), int((filed & is_wrong).sum())
    error = f"{100 * n_wrong / n:.1f} ({n_wrong})" if n else "none filed"
    return [f"{100 * n / len(filed):.1f}", error]


def add_filing(page: Report) -> None:
    """Add how much is filed, and how much of it wrongly."""
    rows, n_good, totals = [], 0, np.zeros(2)
    for user in USERS:
        filed = filed_of(mail_of(user))
        found = [*share_and_error(filed.ours, filed.wrong)]
        rows.append([user, *found, *share_and_error(filed.plain, filed.wrong)])
        n_wrong = (filed.ours & filed.wrong).sum()
        n_good += bool(n_wrong <= MOST_ERROR * filed.ours.sum())
        totals += [n_wrong, filed.ours.sum()]
    head = ["", "filed", "wrong", "by confidence: filed", "wrong"]
    page.add("## Filed without asking, for an error of 2 %", FILING, table(head, rows))
    page.check(f"at most 2.5 % wrong among the filed on {n_good} of 7 users", n_good == len(USERS))
    error = 100 * totals[0] / totals[1]
    page.check(f"at most 2.5 % on all users together: {error:.2f} %", error <= 100 * MOST_ERROR)


FILING = """\
Shares of all messages filed, and of these filed wrongly, in %, with the number of mistakes in
brackets; `kesler.mail.filing.Filing` chooses its threshold from the messages before. "by
confidence" files by the confidence alone, from the threshold that `threshold_for(0.02)` gives for
the messages before. The first message of a new folder cannot be filed rightly, and counts as wrong
if it is filed."""


def add_check(page: Report) -> None:
    """Add the same on posts that nothing was chosen on."""
    posts = load("20newsgroups")
    order = np.random.default_rng(0).permutation(len(posts.y)).tolist()
    texts = [posts.records[i]["text"] for i in order]
    y = [posts.y[i] for i in order]
    mail = read((text.encode("latin-1", "replace") for text in texts), y)
    words = [{k: v for k, v in row.items() if ":" not in k} for row in mail.rows]
    filed = filed_of(mail)
    rows = [
        [
            f"{100 * int(filed.wrong.sum()) / len(y):.2f}",
            f"{100 * mistakes(words, y) / len(y):.2f}",
            *share_and_error(filed.ours, filed.wrong),
            *share_and_error(filed.plain, filed.wrong),
        ]
    ]
    head = ["rows with threads", "words of the same", "filed", "wrong", "by confidence", "wrong"]
    page.add("## Posts that nothing was chosen on", CHECK, table(head, rows))


CHECK = """\
20 newsgroups, 18,846 posts; the class is the group. Nothing was changed after this was run. The
order is random, so that a thread may be known from posts that were written later."""


def main() -> int:
    """Run the study and write its page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--nightly", nargs="+", choices=USERS, default=[], metavar="USER")
    options = parser.parse_args()
    for user in options.nightly:
        run_nightly(user)
    page = Report("mail", "Filing mail", options.results)
    add_mistakes(page)
    add_all_headers(page)
    add_features(page)
    add_filing(page)
    add_check(page)
    return page.write()


if __name__ == "__main__":
    sys.exit(main())
