"""Admission: which rows of a source are good, and what becomes of the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kesler.errors import KeslerError
from kesler.readers.faults import BadRow
from kesler.readers.labels import require_label
from kesler.readers.reader import Example, Reader

TEXT, NUMBER = "text", "a number"


@dataclass(slots=True)
class Admission:
    """The one judge of rows, whichever way they are read.

    Parameters
    ----------
    reader : Reader
        Reads a row.
    source : str
        What messages call the source.
    require_labels : bool
        If True, a row without a label is a bad row.
    skip_bad : bool
        If True, bad rows are counted; if False, the first one raises.
    kind : str
        What labels are, `TEXT` or `NUMBER`, as the first says; empty before it, and if none is
        required.
    n_good, n_bad : int
        Rows so far.
    """

    reader: Reader
    source: str
    require_labels: bool
    skip_bad: bool
    kind: str = ""
    n_good: int = 0
    n_bad: int = 0

    def example(self, place: int | str, raw: Any) -> Example | None:
        """Read a row; None if it is bad and skipped."""
        try:
            example = self.reader.parse(raw)
            require_label(example.label, self.require_labels)
            if self.require_labels:
                self._require_same_kind(example.label)
        except BadRow as fault:
            self._refuse(place, fault)
            return None
        return example

    def require_rows(self, skip_rows: int) -> None:
        """Raise KeslerError, at the end of the source, if there were no rows or too few to skip."""
        if self.n_good == 0:
            raise KeslerError(f"{self.source} holds no rows ({self.n_bad} are bad): check it")
        if self.n_good < skip_rows:
            raise KeslerError(
                f"{self.source} holds {self.n_good} rows, fewer than the {skip_rows} to skip: "
                "go on with the source that the run began with"
            )

    def _require_same_kind(self, label: Any) -> None:
        """Raise BadRow if a label is text among numbers, or a number among text."""
        kind = TEXT if isinstance(label, str) else NUMBER
        self.kind = self.kind or kind
        if kind != self.kind:
            raise BadRow(
                f"the label {label!r} is {kind}, but the first is {self.kind}, and classes are of "
                "one type"
            )

    def _refuse(self, place: int | str, fault: BadRow) -> None:
        if not self.skip_bad:
            raise KeslerError(
                f"{self.source}, {self.reader.unit} {place}: {fault}; "
                "mend it, or skip such rows with skip_bad=True"
            ) from None
        self.n_bad += 1
