"""Data sets: those of :mod:`kesler.datasets` by name, as ``dataset:letter``."""

from __future__ import annotations

from kesler.datasets import Dataset, RecordDataset, load
from kesler.errors import KeslerError
from kesler.readers.arrays import array_reader
from kesler.readers.features import Names
from kesler.readers.reader import Example, Reader
from kesler.readers.tokens import presence

PREFIX = "dataset:"


def dataset_reader(source: str, names: Names) -> Reader:
    """Read a data set; records of text become the tokens of all their fields.

    Raises
    ------
    KeslerError
        If there is no such set, it cannot be had, or its answers are not one class a row.
    """
    dataset = load(source.removeprefix(PREFIX))
    if isinstance(dataset, RecordDataset):
        return _record_reader(dataset, names)
    return array_reader(dataset.X, _classes(source, dataset))


def _record_reader(dataset: RecordDataset, names: Names) -> Reader:
    def parse(pair: tuple[str, dict[str, str]]) -> Example:
        label, record = pair
        return Example(label, presence(record.values()))

    rows = enumerate(zip(dataset.y, dataset.records, strict=True), start=1)
    return Reader("record", rows, parse, names.gather, names.vocabulary)


def _classes(source: str, dataset: Dataset) -> list[int | str]:
    if dataset.y.ndim != 1 or dataset.y.dtype.kind not in "iuU":
        raise KeslerError(
            f"the answers of {source} are not one class a row (their shape is {dataset.y.shape}, "
            f"their type {dataset.y.dtype}): choose a set of classes, dataset:letter for instance"
        )
    classes: list[int | str] = dataset.y.tolist()
    return classes
