"""A source: what Kesler knows of one real set before it is loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kesler.datasets.dataset import Dataset, RecordDataset
from kesler.datasets.fetching import Home


@dataclass(frozen=True, slots=True)
class Source:
    """One row of the table of real sets.

    Parameters
    ----------
    files : tuple of str
        Its files: their paths in the package's data, in KESLER_DATA and in the cache alike.
    parse : callable
        From the paths of the files to the data.
    origin : str
        Who made it, when, and where it is public.
    licence : str
        On what terms.
    home : Home or None
        Whence to fetch it; None if no public copy has a checksum that others know too.
    """

    files: tuple[str, ...]
    parse: Callable[[Sequence[Path]], Dataset | RecordDataset]
    origin: str
    licence: str
    home: Home | None = None
