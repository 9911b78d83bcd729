"""Vowpal Wabbit on the sets of the study, with stored runs, so that none is repeated.

It knows the number of classes, and predicts each row before it learns it. Words are present or
absent, each value of a text category is a feature, and measurements are scaled to [-1, 1] by the
range of the whole set, which is thus known beforehand: on these sets it makes fewer mistakes with
them than with counts and raw measurements.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from fresh import one_hot
from kesler.metrics import calibration_error, log_loss
from sets import Features, Stream, numbers

DEFAULT = ""
LOSSES = ("", "--loss_function logistic", "--loss_function hinge")
RATES = ("", "-l 0.1", "-l 2")
SETTINGS = tuple(f"{loss} {rate}".strip() for loss in LOSSES for rate in RATES)
"""Three losses, squared by default, at three rates, 0.5 by default; the best of the nine is chosen
in hindsight for each set."""

PROBABILITIES = "--loss_function logistic --probabilities"
"""The setting in which it predicts probabilities; they need the logistic loss."""

BITS = 22
"""The bits of the table of weights; no weights collide on these sets."""

Wrong = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int64]
Probabilities = npt.NDArray[np.float64]


def is_installed() -> bool:
    """Return whether Vowpal Wabbit is installed."""
    return importlib.util.find_spec("vowpalwabbit") is not None


@dataclass
class KeptRuns:
    """The wrongly predicted rows of each run, in a JSON file.

    Parameters
    ----------
    path : Path
        The file.
    """

    path: Path

    def __post_init__(self) -> None:
        text = self.path.read_text(encoding="utf-8") if self.path.exists() else "{}"
        self._runs: dict[str, Any] = json.loads(text)

    def get(
        self, name: str, stream: Stream, order: int, settings: Iterable[str]
    ) -> dict[str, Wrong] | None:
        """Return the mistakes with each setting; settings that are not stored are run.

        None if one is not stored and Vowpal Wabbit is not installed.
        """
        keys = {setting: f"{name} | order {order} | {setting}" for setting in settings}
        missing = [setting for setting, key in keys.items() if key not in self._runs]
        if missing and not is_installed():
            return None
        if missing:
            for setting, wrong in run(stream, missing).items():
                self._runs[keys[setting]] = packed(wrong)
            self._write()
        return {setting: unpacked(self._runs[key], len(stream.y)) for setting, key in keys.items()}

    def probabilities(self, name: str, stream: Stream) -> dict[str, float] | None:
        """Return the log-loss and the calibration error of its probabilities; run it if need be.

        None if they are not stored and Vowpal Wabbit is not installed.
        """
        key = f"{name} | {PROBABILITIES}"
        if key not in self._runs:
            if not is_installed():
                return None
            self._runs[key] = judged(run_probabilities(stream), stream.y)
            self._write()
        return dict(self._runs[key])

    def _write(self) -> None:
        self._runs["version"] = version("vowpalwabbit")
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps(self._runs, indent=0) + "\n", encoding="utf-8")

    @property
    def version(self) -> str:
        """The version of Vowpal Wabbit in the runs."""
        return str(self._runs.get("version", "none"))


def packed(wrong: Wrong) -> str:
    """Encode which rows were wrong as a short text.

    Examples
    --------
    >>> unpacked(packed(np.array([True, False, True])), 3).tolist()
    [True, False, True]
    """
    return base64.b85encode(zlib.compress(np.packbits(wrong).tobytes(), 9)).decode()


def unpacked(text: str, n_rows: int) -> Wrong:
    """Decode a text of `packed`."""
    bits = np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype=np.uint8)
    return np.unpackbits(bits, count=n_rows).astype(np.bool_)


def run(stream: Stream, settings: Iterable[str]) -> dict[str, Wrong]:
    """Run Vowpal Wabbit once per setting."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "stream.vw"
        write(data, prepared(stream.X), stream.y)
        return {setting: run_once(data, stream, setting) for setting in settings}


def run_once(data: Path, stream: Stream, setting: str) -> Wrong:
    """Return the mistakes of one run; the first row of a class is never counted as one."""
    predictions = np.loadtxt(predicted(data, stream, setting), usecols=0)
    wrong = predictions.astype(np.int64) - 1 != stream.y
    wrong[first_rows(stream.y)] = False
    return np.asarray(wrong)


def run_probabilities(stream: Stream) -> Probabilities:
    """Return the probability of each class for each row, before the row is learnt."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "stream.vw"
        write(data, prepared(stream.X), stream.y)
        with predicted(data, stream, PROBABILITIES).open() as lines:
            rows = [[pair.partition(":")[2] for pair in line.split()] for line in lines]
    return np.array(rows, dtype=np.float64)


def predicted(data: Path, stream: Stream, setting: str) -> Path:
    """Return the file of the predictions of one run."""
    from vowpalwabbit import Workspace

    predictions = data.with_suffix(".out")
    workspace = Workspace(
        f"--oaa {stream.n_classes} -b {BITS} -d {data} -p {predictions} --quiet {setting}"
    )
    workspace.finish()
    return predictions


def first_rows(y: Codes) -> Codes:
    """Return the first row of each class.

    Examples
    --------
    >>> first_rows(np.array([0, 0, 1, 0, 2])).tolist()
    [0, 2, 4]
    """
    return np.asarray(np.unique(y, return_index=True)[1], dtype=np.int64)


def judged(probabilities: Probabilities, y: Codes) -> dict[str, float]:
    """Return the log-loss and the calibration error, over rows of classes seen before.

    Examples
    --------
    >>> found = judged(np.array([[0.5, 0.5], [0.5, 0.5], [0.75, 0.25]]), np.array([0, 1, 0]))
    >>> {name: round(value, 3) for name, value in found.items()}
    {'log_loss': 0.288, 'calibration_error': 0.25}
    """
    rows = np.delete(np.arange(len(y)), first_rows(y))
    p, answers = probabilities[rows], y[rows]
    right = p.argmax(axis=1) == answers
    return {
        "log_loss": log_loss(p[np.arange(len(rows)), answers]),
        "calibration_error": calibration_error(p.max(axis=1), right),
    }


def prepared(X: Features) -> sparse.csr_array:
    """Return words as present or absent, measurements in [-1, 1]; zeros stay if most are 0."""
    if isinstance(X, list) and not isinstance(X[0], str):
        return prepared_table(*one_hot(X))
    X = numbers(X)
    if sparse.issparse(X):
        return sparse.csr_array(X.sign())
    if np.count_nonzero(X) < X.size / 2:
        return sparse.csr_array(X / np.abs(X).max())
    return sparse.csr_array(ranged(X))


def ranged(X: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Return columns in [-1, 1], by the range of their numbers that are not missing.

    Examples
    --------
    >>> ranged(np.array([[0.0, 7.0], [3.0, 7.0], [np.nan, 7.0]])).tolist()
    [[-1.0, -1.0], [1.0, -1.0], [nan, -1.0]]
    """
    low, high = np.nanmin(X, axis=0), np.nanmax(X, axis=0)
    width = np.where(high > low, high - low, 1)
    return np.asarray(2 * (X - low) / width - 1)


def prepared_table(
    X: npt.NDArray[np.float32], is_number: npt.NDArray[np.bool_]
) -> sparse.csr_array:
    """Return a table with numbers in [-1, 1] and categories as they are; missing cells are absent.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0], [5.0, 1.0], [np.nan, 1.0]], dtype=np.float32)
    >>> prepared_table(X, np.array([True, False])).toarray().tolist()
    [[-1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    """
    X = X.copy()
    X[:, is_number] = ranged(X[:, is_number])
    return sparse.csr_array(np.nan_to_num(X))


def write(path: Path, X: sparse.csr_array, y: npt.NDArray[np.int64]) -> None:
    """Write rows in Vowpal Wabbit's text format, with classes from 1."""
    with path.open("w") as file:
        for row, label in enumerate(y):
            entries = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True)
            file.write(f"{label + 1} | {' '.join(f'{i}:{value:g}' for i, value in pairs)}\n")
