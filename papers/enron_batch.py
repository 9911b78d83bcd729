"""Batch support vector machines with hypotheses shared by all folders, on Enron mail.

The multiclass SVM of Crammer and Singer is trained with three families of hypotheses: one per
folder, one shared by all folders with the map of Fink et al. (2006, Eq. 10), and both, with that
map and with the contrast of word frequencies. The first half of each user's mail, in the order of
time, is for training, the second for testing. C is chosen on the last quarter of the first half.

    python papers/enron_batch.py        # all, into papers/results/enron_batch.md
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from enron import USERS, read_mail
from kesler import CrammerSingerClassifier
from kesler.hypotheses import Part, PerClass, Shared
from kesler.maps import Contrast, Frequency
from report import Report, table
from script_arguments import script_parser

HYPOTHESES: dict[str, list[Part]] = {
    "per class": [PerClass()],
    "shared": [Shared(Frequency())],
    "hybrid": [PerClass(), Shared(Frequency())],
    "hybrid, contrast": [PerClass(), Shared(Contrast())],
}
CAPS = (0.0003, 0.001, 0.003, 0.01, 0.03)
TOL, MOST_PASSES = 1e-2, 1000


def fit(
    parts: list[Part], X: sparse.csr_array, y: npt.NDArray[Any], C: float
) -> CrammerSingerClassifier:
    """Fit a machine to messages."""
    machine = CrammerSingerClassifier(
        C, hypotheses=parts, fit_intercept=False, tol=TOL, max_iter=MOST_PASSES, random_state=0
    )
    return machine.fit(X, y)


def error(machine: CrammerSingerClassifier, X: sparse.csr_array, y: npt.NDArray[Any]) -> float:
    """Return the share in % of messages in other folders than predicted."""
    return 100 * float(np.mean(machine.predict(X) != y))


def choose(parts: list[Part], X: sparse.csr_array, y: npt.NDArray[Any]) -> float:
    """Return the C with the fewest errors on the last quarter, trained on the rest."""
    n = 3 * len(y) // 4
    errors = [error(fit(parts, X[:n], y[:n], C), X[n:], y[n:]) for C in CAPS]
    return CAPS[int(np.argmin(errors))]


def run(user: str) -> dict[str, tuple[float, float]]:
    """Return the test error in % and C of each family, and the unseen share and the folders."""
    mail = read_mail(user)
    words, y = mail.binary, np.array(mail.folders)
    # The validation of scikit-learn requires 32-bit indices.
    indices = words.indices.astype(np.int32), words.indptr.astype(np.int32)
    X = sparse.csr_array((words.data, *indices), shape=words.shape)
    n = len(y) // 2
    found = {}
    for name, parts in HYPOTHESES.items():
        C = choose(parts, X[:n], y[:n])
        found[name] = (error(fit(parts, X[:n], y[:n], C), X[n:], y[n:]), C)
    found["unseen"] = (100 * float(np.mean(~np.isin(y[n:], y[:n]))), len(set(y[:n])))
    return found


def main() -> int:
    """Run everything and write the page."""
    folder = script_parser(__doc__, __file__).parse_args().results
    report = Report(
        "enron_batch", "Batch support vector machines on the mail of seven Enron users", folder
    )
    found = {user: run(user) for user in USERS}
    report.add(
        "Test errors in %. Features are binary words; the first half of each user's mail, in the "
        "order of time, is for training, the second for testing. Messages in folders that the "
        "first half does not have (the column unseen) cannot be predicted correctly, and count as "
        f"errors of all. One slack per message, to a relative duality gap of {TOL:g}; C, in "
        f"brackets, is the best of {', '.join(map(str, CAPS))} on the last quarter of the training "
        "half. The maps use statistics of all training rows, including the row itself. Shared and "
        "hybrid: Frequency(); the last column: Contrast().",
    )
    rows = [
        [
            user,
            f"{each['unseen'][1]:.0f}",
            f"{each['unseen'][0]:.1f}",
            *(f"{each[name][0]:.1f} ({each[name][1]:g})" for name in HYPOTHESES),
        ]
        for user, each in found.items()
    ]
    means = [f"{np.mean([each[name][0] for each in found.values()]):.1f}" for name in HYPOTHESES]
    report.add(
        table(["", "folders", "unseen", *HYPOTHESES], [*rows, ["mean", "", "", *means]]),
    )
    wins = [each["hybrid, contrast"][0] < each["per class"][0] for each in found.values()]
    report.add(
        "The hybrid with contrasts has fewer errors than one hypothesis per folder for "
        f"{sum(wins)} of {len(wins)} users."
    )
    report.check(
        "no machine has fewer errors than there are messages in unseen folders",
        all(each[name][0] >= each["unseen"][0] for each in found.values() for name in HYPOTHESES),
    )
    return report.write()


if __name__ == "__main__":
    sys.exit(main())
