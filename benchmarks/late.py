"""Late answers: what errors, confidences and the probability of a new class are where labels lag.

    python benchmarks/late.py

Each answer comes at once, or 30 or 300 rows later (`progressive_validate(delay=)`), over
the mail of three Enron users in the order of time, and over the questions of banking77 and 8,000
letters in orders in which classes start one after the other. Two corrections are tried, as
prototypes outside of the package: a logistic regression on the logit of what was said, learnt from
each answer as it comes (an extended Kalman filter from the identity with variances of .01), and,
for the probability of a new class, its accumulation over the rows without answers. The script
writes benchmarks/results/late.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from kesler import OnlineClassifier, progressive_validate
from kesler.evaluation.results import ProgressiveResult
from kesler.metrics import calibration_error
from sets import Stream
from trust import late, log_loss, stream_of

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from report import Report, table
from script_arguments import folder_of, script_parser

USERS = ("williams-w3", "farmer-d", "beck-s")
STREAMS = (*USERS, "late banking77", "late letter")
DELAYS = (0, 30, 300)
LETTERS, WANTED, VARIANCE = 8000, 0.05, 0.01
Doubles = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Lag:
    """A run with late answers."""

    result: ProgressiveResult

    @property
    def right(self) -> npt.NDArray[np.bool_]:
        """Whether each prediction was right; the first rows of classes are wrong."""
        found: npt.NDArray[np.bool_] = self.result.predictions == self.result.targets
        return found

    @property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """Whether no answer had named the class of each row."""
        return np.isnan(self.result.probabilities[:, 1])

    @property
    def confidence(self) -> Doubles:
        """What was said of each prediction."""
        return required(self.result).confidence

    @property
    def new(self) -> Doubles:
        """The probability of a new class of each row."""
        return required(self.result).new


def required(result: ProgressiveResult):  # type: ignore[no-untyped-def]
    """Return what was said of uncertainty."""
    assert result.uncertainty is not None
    return result.uncertainty


def rows_of(name: str) -> Stream:
    """Return a stream; of letters some rows."""
    if name != "late letter":
        return stream_of(name)
    whole = stream_of("letter")
    return late(Stream(whole.X[:LETTERS], whole.y[:LETTERS]))


@cache
def run_of(name: str, delay: int) -> Lag:
    """Run the default over a stream."""
    stream = rows_of(name)
    return Lag(progressive_validate(OnlineClassifier(), stream.X, stream.y.tolist(), delay=delay))


# ---- corrections --------------------------------------------------------------------------------


def logit(p: Doubles) -> Doubles:
    """Return log(p / (1 - p)), with p kept from 0 and 1 by 1e-4."""
    kept = np.clip(p, 1e-4, 1 - 1e-4)
    found: Doubles = np.log(kept / (1 - kept))
    return found


def logistic(z: float) -> float:
    """Return 1 / (1 + exp(-z))."""
    return float(1 / (1 + np.exp(-np.clip(z, -30, 30))))


def corrected(said: Doubles, happened: npt.NDArray[np.bool_], delay: int) -> Doubles:
    """Return probabilities as a regression corrects them that learns from answers as they come."""
    evidence = np.column_stack([np.ones(len(said)), logit(said)])
    weights, covariance, found = np.array([0.0, 1.0]), np.eye(2) * VARIANCE, np.empty(len(said))
    for t in range(len(said)):
        found[t] = logistic(evidence[t] @ weights)
        if t >= delay - 1:
            x = evidence[t - max(0, delay - 1)]
            p, column = logistic(x @ weights), covariance @ x
            gain = 1 / (1 + p * (1 - p) * (column @ x))
            weights = weights + gain * column * (float(happened[t - max(0, delay - 1)]) - p)
            covariance = covariance - p * (1 - p) * gain * np.outer(column, column)
    return found


def accumulated(new: Doubles, delay: int) -> Doubles:
    """Return the probability that one of the rows without an answer began a class, or this one."""
    found: Doubles = 1 - (1 - new) ** (1 + delay)
    return found


# ---- tables -------------------------------------------------------------------------------------


def add_figures(page: Report) -> None:
    """Add the table of what holds under each delay."""
    head = ["stream", "delay", "wrong", "unknown class", "said", "calibration", "sure",
            "of these wrong", "sets of 90%"]  # fmt: skip
    rows = []
    for name in STREAMS:
        for delay in DELAYS:
            lag = run_of(name, delay)
            told = lag.result.late
            assert told is not None
            shares = (1 - lag.right.mean(), told.unknown, told.probability_of_new)
            rest = (told.calibration_error, told.sure, told.sure_wrong, told.covered)
            rows.append([name, str(delay), *(f"{each:.3f}" for each in (*shares, *rest))])
    page.add("## What holds", FIGURES, table(head, rows))
    worst = max(run_of(name, 300).result.late.sure_wrong for name in STREAMS)  # type: ignore[union-attr]
    page.check(f"of the sure predictions at most {worst:.3f} are wrong at 300 rows", worst <= 0.3)


FIGURES = """\
"wrong" counts the first rows of classes; "unknown class" is the share of rows of classes that no
answer had named, and "said" the mean probability of that; "sure" is the share of rows with a
confidence of at least 0.8. Sets are those of `predict_set`."""


def add_corrections(page: Report) -> None:
    """Add the table of the corrections."""
    head = ["stream", "confidence", "corrected", "log-loss", "corrected", "new: log-loss",
            "corrected", "accumulated"]  # fmt: skip
    rows, gains, losses = [], [], []
    for name in STREAMS:
        lag, delay = run_of(name, DELAYS[-1]), DELAYS[-1]
        sure, new = lag.confidence, lag.new
        by_lag, new_by_lag = corrected(sure, lag.right, delay), corrected(new, lag.unknown, delay)
        errors = [calibration_error(each, lag.right) for each in (sure, by_lag)]
        confident = [log_loss(each, lag.right) for each in (sure, by_lag)]
        unknown = [
            log_loss(each, lag.unknown) for each in (new, new_by_lag, accumulated(new, delay))
        ]
        gains.append(confident[1] - confident[0])
        losses.append(unknown[1] / unknown[0])
        rows.append([name, *(f"{each:.3f}" for each in (*errors, *confident, *unknown))])
    page.add("## Corrections at 300 rows", CORRECTIONS, table(head, rows))
    mean = float(np.mean(gains))
    page.check(f"corrected confidences have no lower log-loss: {mean:+.3f}", mean > -0.01)
    page.check(
        f"that of a new class has {np.mean(losses):.2f} times the log-loss, which is below 1",
        bool(np.mean(losses) < 1),
    )


CORRECTIONS = """\
The calibration error and the log-loss of confidence, as said and as a regression corrects it, and
the log-loss of the probability that the class is unknown."""


def add_thresholds(page: Report) -> None:
    """Add the table of thresholds that are taken from a run without a delay, and with it."""
    head = ["stream", "delay", "answered", "of these wrong", "answered", "of these wrong"]
    rows, kept = [], []
    for name in STREAMS:
        for delay in DELAYS[1:]:
            lag, found = run_of(name, delay), []
            half = len(lag.right) // 2
            for of in (run_of(name, 0), lag):
                least = threshold(of.confidence[:half], of.right[:half])
                answered = lag.confidence[half:] >= least
                wrong = float((~lag.right[half:][answered]).mean()) if answered.any() else 0.0
                found += [float(answered.mean()), wrong]
            kept.append((found[1], found[3]))
            rows.append([name, str(delay), *(f"{each:.3f}" for each in found)])
    page.add("## Thresholds", THRESHOLDS, table(head, rows))
    at_once, with_delay = np.array(kept).T
    n_kept = int((with_delay <= WANTED).sum())
    page.check(
        f"with the delay, at most 5 % are wrong in {n_kept} of {len(kept)} runs", n_kept >= 9
    )
    page.check(
        f"and {with_delay.max():.3f} in the worst, {at_once.max():.3f} without it",
        bool(with_delay.max() < at_once.max()),
    )


THRESHOLDS = """\
The lowest confidence with which at most 5 % of the answers in the first half of a run were wrong,
used in the second half of the run with late answers: taken from a run whose answers come at once,
and in the two last columns from a run with the same delay."""


def threshold(confidence: Doubles, right: npt.NDArray[np.bool_]) -> float:
    """Return the lowest confidence from which on at most 5 % are wrong; 2 if there is none."""
    order = np.argsort(-confidence, kind="stable")
    risk = np.cumsum(~right[order]) / np.arange(1, len(order) + 1)
    held = np.flatnonzero(risk <= WANTED)
    return float(confidence[order][held[-1]]) if len(held) else 2.0


def main(arguments: Iterable[str] | None = None) -> int:
    """Run the study and write its page."""
    parser = script_parser(__doc__, __file__)
    options = parser.parse_args(None if arguments is None else list(arguments))
    page = Report("late", "Late answers", folder_of(parser, options, is_whole=True))
    add_figures(page)
    add_corrections(page)
    add_thresholds(page)
    return page.write()


if __name__ == "__main__":
    sys.exit(main())
