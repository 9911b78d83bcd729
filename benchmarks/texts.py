"""Which features and learners of texts make the fewest mistakes with nothing chosen.

    python benchmarks/texts.py [--sets trec clinc150 ...]

One pass over each set, predicted before learnt; errors are the share in % of wrong predictions
among all rows, without first rows of classes. The thirteen sets of words of `defaults.py` are given
as counts, so that runs of characters play no part, and two sets of short questions as lists of
texts (the train part, shuffled by `numpy.random.default_rng(0)`). One table chooses a learner on
long texts and judges it on short ones, and the reverse; the constants of information, the initial
weights and the lengths of runs were chosen on all of these sets, so that their gain on others may
be smaller. TF-IDF with `LinearSVC` learns words at rows 2, 4, 8 and so on, from all rows before.
The script writes benchmarks/results/texts.md.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer
from sklearn.svm import LinearSVC

from judging import geometric_mean
from kesler import OnlineClassifier, progressive_validate
from kesler.hypotheses import PerClass, Shared
from kesler.maps import Contrast
from kesler.preprocessing import Counts
from kesler.updates import AROW, OneVsRestHinge
from peer import DEFAULT, SETTINGS, KeptRuns
from report import Report, table
from script_arguments import script_parser
from sets import SETS, Stream, by_appearance

RESULTS = Path(__file__).parent / "results"
QUESTIONS = ("clinc150", "banking77")
GROUPS = {
    "long": (
        *("beck-s", "farmer-d", "kaminski-v", "kitchen-l", "lokay-m", "sanders-r"),
        *("williams-w3", "20newsgroups", "r8", "webkb"),
    ),
    "short": ("trec", "ag_news", "cnae9", *QUESTIONS),
}
VW, SVC, BEFORE = "VW default", "TF-IDF, LinearSVC", "one contrast"

RELATIVE = Shared(Contrast(), begins_at=0.15)
PLAIN = Shared(Contrast(relative=False), begins_at=0.05)
Errors = dict[str, float]


def words(**others: Any) -> OnlineClassifier:
    """Return the default of earlier versions for words, with some settings changed."""
    settings = {
        "hypotheses": [PerClass(), RELATIVE],
        "update": OneVsRestHinge(),
        "preconditioner": "adagrad",
        "on_new_class": "inherit",
        "preprocessing": Counts(),
        "intercept": 0.0,
    }
    return OnlineClassifier(**{**settings, **others})


BOTH: dict[str, Any] = {"hypotheses": [PerClass(), RELATIVE, PLAIN]}
INFORMATION: dict[str, Any] = {"preprocessing": Counts(information=True)}
IDF: dict[str, Any] = {"preprocessing": Counts(idf=True)}
CONFIDENT: dict[str, Any] = {
    **{"update": AROW(), "preconditioner": "auto", "on_new_class": "learn"}
}
SINGLE: dict[str, Callable[[], OnlineClassifier]] = {
    BEFORE: words,
    "idf": lambda: words(**IDF),
    "both contrasts": lambda: words(**BOTH),
    "information": lambda: words(**INFORMATION),
    "information, both contrasts": lambda: words(**INFORMATION, **BOTH),
    "information, idf": lambda: words(preprocessing=Counts(idf=True, information=True)),
    "AROW": lambda: words(**CONFIDENT),
    "AROW, idf": lambda: words(**CONFIDENT, **IDF),
    "AROW, information": lambda: words(**CONFIDENT, **INFORMATION),
}
LEARNERS: dict[str, Callable[[], OnlineClassifier]] = {
    **SINGLE,
    "former ensemble": lambda: OnlineClassifier(
        update=[words(), words(on_new_class="learn"), words(**IDF)]
    ),
    "default": OnlineClassifier,
    "ensemble": lambda: OnlineClassifier(update="ensemble"),
}
MOST = {"default": 0.81, "ensemble": 0.81}
MOST_OF_CLINC = {"default": 9.7, "ensemble": 9.4}
MOST_OF_SVC = 0.68
MOST_CALIBRATION_ERROR, LEAST_CALIBRATED = 0.05, 0.9


def main() -> int:
    """Run every learner on every set, and write the page."""
    parser = script_parser(__doc__, __file__)
    names = [name for group in GROUPS.values() for name in group]
    parser.add_argument("--sets", nargs="+", choices=names, default=names, help="only these")
    options = parser.parse_args()
    page = Report("texts", "Texts with nothing chosen", options.results)
    errors: dict[str, Errors] = {name: {} for name in (*LEARNERS, VW, SVC)}
    seconds: dict[str, Errors] = {name: {} for name in LEARNERS}
    calibration: dict[str, Errors] = {name: {} for name in LEARNERS}
    for name in options.sets:
        X, y = read(name)
        for learner, make in LEARNERS.items():
            start = time.process_time()
            result = progressive_validate(make(), X, y)
            seconds[learner][name] = 1e6 * (time.process_time() - start) / len(y)
            errors[learner][name] = percent(np.diff(result.curve, prepend=0) > 0)
            calibration[learner][name] = float(result.calibration_error)
        errors[SVC][name] = percent(refitted(X, y))
        theirs = None if name in QUESTIONS else stored_runs(name, Stream(X, y))
        if theirs is not None:
            errors[VW][name] = percent(theirs)
        print(name, {k: round(v[name], 2) for k, v in errors.items() if name in v}, flush=True)
    return write(page, errors, seconds, calibration)


# ---- sets ---------------------------------------------------------------------------------------


def read(name: str) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return the rows of a set, counts or texts, and their classes by number."""
    if name not in QUESTIONS:
        stream = next(each for each in SETS if each.name == name).stream().in_numbers()
        return stream.X, stream.y
    path = Path(os.environ["KESLER_DATA"]) / "short_text" / f"{name}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        records = [each for each in map(json.loads, lines) if each["split"] == "train"]
    order = np.random.default_rng(0).permutation(len(records))
    labels = np.array([records[i]["label"] for i in order])
    return [records[i]["text"] for i in order], by_appearance(labels)


def stored_runs(name: str, stream: Stream) -> npt.NDArray[np.bool_] | None:
    """Return the mistakes of Vowpal Wabbit's default, None if they are not stored."""
    runs = KeptRuns(RESULTS / "vw.json").get(name, stream, 0, SETTINGS)
    return None if runs is None else runs[DEFAULT]


def refitted(X: Any, y: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Return the mistakes of a linear machine that learns all rows so far at every doubling."""
    n, is_text = len(y), isinstance(X, list)
    if not is_text:
        X = sparse.csr_matrix(
            (X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape
        )
    firsts = np.unique(y, return_index=True)[1]
    predictions, start = np.full(n, y[0]), 2
    while start < n:
        stop = min(n, 2 * start)
        weights = TfidfVectorizer() if is_text else TfidfTransformer(sublinear_tf=True)
        before = weights.fit_transform(X[:start])
        if len(set(y[:start])) > 1:
            machine = LinearSVC().fit(before, y[:start])
            predictions[start:stop] = machine.predict(weights.transform(X[start:stop]))
        else:
            predictions[start:stop] = y[0]
        start = stop
    wrong: npt.NDArray[np.bool_] = predictions != y
    wrong[firsts] = False
    return wrong


def percent(wrong: npt.NDArray[np.bool_]) -> float:
    """Return the share of mistakes in %."""
    return 100 * float(np.mean(wrong))


# ---- the page -----------------------------------------------------------------------------------


def write(
    page: Report,
    errors: Mapping[str, Errors],
    seconds: Mapping[str, Errors],
    calibration: Mapping[str, Errors],
) -> int:
    """Write the page; return the exit code."""
    page.add(__doc__.split("\n\n", 2)[2].strip())
    sets = list(errors[BEFORE])
    rows = [[name, *(shown(found.get(name)) for found in errors.values())] for name in sets]
    page.add("## Mistakes in % of rows", table(["set", *errors], rows))
    page.add(
        f'## Mistakes relative to "{BEFORE}", the former default, and costs', gains(errors, seconds)
    )
    page.add("## Learner chosen on the other group", choices(errors))
    judged = ("default", "ensemble")
    rows = [[name, *(f"{calibration[each][name]:.3f}" for each in judged)] for name in sets]
    page.add("## Expected calibration error, 15 bins", table(["set", *judged], rows))
    for learner in judged:
        check(page, learner, errors, calibration)
    return page.write()


def gains(errors: Mapping[str, Errors], seconds: Mapping[str, Errors]) -> str:
    """Return the geometric means by group, the worst set and the cost of each learner."""
    rows = []
    for learner, found in errors.items():
        if learner == VW or not found:
            continue
        shares = {name: found[name] / errors[BEFORE][name] for name in found}
        worst = max(shares, key=lambda name: shares[name])
        by_group = [of_group(found, errors[BEFORE], group) for group in GROUPS.values()]
        means = [*by_group, geometric_mean(found, errors[BEFORE])]
        cost = np.median(list(seconds[learner].values())) if learner in seconds else np.nan
        against = [geometric_mean(found, errors[VW]), geometric_mean(found, errors[SVC])]
        rows.append(
            [
                *(learner, *(f"{mean:.3f}" for mean in means), f"{shares[worst]:.3f} {worst}"),
                *(*(f"{mean:.3f}" for mean in against), f"{cost:.0f}"),
            ]
        )
    header = ["learner", *GROUPS, "all", "worst set", "against VW", "against SVC", "us a row"]
    return table(header, rows)


def of_group(found: Errors, reference: Errors, group: Sequence[str]) -> float:
    """Return the geometric mean over the sets of a group."""
    return geometric_mean({name: found[name] for name in group if name in found}, reference)


def choices(errors: Mapping[str, Errors]) -> str:
    """Return the learner of the fewest mistakes on one group, and its mistakes on the other."""
    rows = []
    for left_out, other in (("long", "short"), ("short", "long")):
        means = {each: of_group(errors[each], errors[BEFORE], GROUPS[other]) for each in SINGLE}
        best = min(means, key=lambda each: means[each])
        there = of_group(errors[best], errors[BEFORE], GROUPS[left_out])
        rows.append([left_out, best, f"{means[best]:.3f}", f"{there:.3f}"])
    return table(["left out", "chosen on the others", "there", "on those left out"], rows)


def check(
    page: Report, learner: str, errors: Mapping[str, Errors], calibration: Mapping[str, Errors]
) -> None:
    """Add the checks of a learner."""
    found = errors[learner]
    mean = geometric_mean(found, errors[VW])
    claim = f"{learner}: geometric mean against VW default at most {MOST[learner]}: {mean:.3f}"
    page.check(claim, not mean > MOST[learner])
    if "clinc150" in found:
        most = MOST_OF_CLINC[learner]
        claim = f"{learner}: clinc150 at most {most} %: {found['clinc150']:.2f}"
        page.check(claim, found["clinc150"] <= most)
    mean = geometric_mean(found, errors[SVC])
    page.check(
        f"{learner}: against LinearSVC at most {MOST_OF_SVC}: {mean:.3f}", mean <= MOST_OF_SVC
    )
    good = np.mean([error < MOST_CALIBRATION_ERROR for error in calibration[learner].values()])
    claim = f"{learner}: calibration error below {MOST_CALIBRATION_ERROR} on {good:.0%} of the sets"
    page.check(f"{claim}, at least {LEAST_CALIBRATED:.0%}", good >= LEAST_CALIBRATED)


def shown(error: float | None) -> str:
    """Return an error as text."""
    return "-" if error is None else f"{error:.2f}"


if __name__ == "__main__":
    sys.exit(main())
