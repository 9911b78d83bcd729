"""Vowpal Wabbit on the sets of the study, each run kept in a file so that a second costs nothing.

It is told the number of classes, and predicts each row before it learns it. Words count as present
or absent, and measurements are brought to [-1, 1] by the range of the whole set, which it is thus
told beforehand: on these sets it makes fewer mistakes so than on counts and on raw measurements.
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

from sets import Features, Stream

DEFAULT = ""
LOSSES = ("", "--loss_function logistic", "--loss_function hinge")
RATES = ("", "-l 0.1", "-l 2")
SETTINGS = tuple(f"{loss} {rate}".strip() for loss in LOSSES for rate in RATES)
"""Nine that a user would try, three losses at three rates, 0.5 and squared by default; the best is
chosen in hindsight, a set at a time."""

BITS = 22
"""Of the table of weights: enough that none of these sets has weights that collide."""

Wrong = npt.NDArray[np.bool_]


def is_installed() -> bool:
    """Whether Vowpal Wabbit can be run here."""
    return importlib.util.find_spec("vowpalwabbit") is not None


@dataclass
class KeptRuns:
    """Which rows each run got wrong, in a JSON file.

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
        """Return the mistakes under each setting, running those that are not kept.

        None if one is not kept and Vowpal Wabbit is not installed.
        """
        keys = {setting: f"{name} | order {order} | {setting}" for setting in settings}
        missing = [setting for setting, key in keys.items() if key not in self._runs]
        if missing and not is_installed():
            return None
        if missing:
            for setting, wrong in run(stream, missing).items():
                self._runs[keys[setting]] = packed(wrong)
            self._runs["version"] = version("vowpalwabbit")
            self.path.parent.mkdir(exist_ok=True)
            self.path.write_text(json.dumps(self._runs, indent=0) + "\n", encoding="utf-8")
        return {setting: unpacked(self._runs[key], len(stream.y)) for setting, key in keys.items()}

    @property
    def version(self) -> str:
        """The version that made the runs."""
        return str(self._runs.get("version", "none"))


def packed(wrong: Wrong) -> str:
    """Return which rows were wrong as a short text.

    Examples
    --------
    >>> unpacked(packed(np.array([True, False, True])), 3).tolist()
    [True, False, True]
    """
    return base64.b85encode(zlib.compress(np.packbits(wrong).tobytes(), 9)).decode()


def unpacked(text: str, n_rows: int) -> Wrong:
    """Return what `packed` was given."""
    bits = np.frombuffer(zlib.decompress(base64.b85decode(text)), dtype=np.uint8)
    return np.unpackbits(bits, count=n_rows).astype(np.bool_)


def run(stream: Stream, settings: Iterable[str]) -> dict[str, Wrong]:
    """Run Vowpal Wabbit once a setting."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "stream.vw"
        write(data, as_it_likes(stream.X), stream.y)
        return {setting: run_once(data, stream, setting) for setting in settings}


def run_once(data: Path, stream: Stream, setting: str) -> Wrong:
    """Return the mistakes of one run; the first row of a class is none, whatever was predicted."""
    from vowpalwabbit import Workspace

    settings = data.with_suffix(".out")
    workspace = Workspace(
        f"--oaa {stream.n_classes} -b {BITS} -d {data} -p {settings} --quiet {setting}"
    )
    workspace.finish()
    wrong = np.loadtxt(settings, usecols=0).astype(np.int64) - 1 != stream.y
    wrong[np.unique(stream.y, return_index=True)[1]] = False
    return np.asarray(wrong)


def as_it_likes(X: Features) -> sparse.csr_array:
    """Return words as present or absent, measurements in [-1, 1], 0 left 0 if most are."""
    if sparse.issparse(X):
        return sparse.csr_array(X.sign())
    if np.count_nonzero(X) < X.size / 2:
        return sparse.csr_array(X / np.abs(X).max())
    low, high = X.min(axis=0), X.max(axis=0)
    width = np.where(high > low, high - low, 1)
    return sparse.csr_array(2 * (X - low) / width - 1)


def write(path: Path, X: sparse.csr_array, y: npt.NDArray[np.int64]) -> None:
    """Write rows as Vowpal Wabbit's text, classes from 1."""
    with path.open("w") as file:
        for row, label in enumerate(y):
            entries = slice(X.indptr[row], X.indptr[row + 1])
            pairs = zip(X.indices[entries].tolist(), X.data[entries].tolist(), strict=True)
            file.write(f"{label + 1} | {' '.join(f'{i}:{value:g}' for i, value in pairs)}\n")
