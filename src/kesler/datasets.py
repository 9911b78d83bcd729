"""Data sets: bundled, read from a data directory or downloaded, and synthetic."""

from kesler.data.datasets.dataset import Dataset, RecordDataset
from kesler.data.datasets.loaders import (
    load,
    load_20newsgroups,
    load_banking77,
    load_enron,
    load_landsat,
    load_letter,
    load_mnist,
    load_pendigits,
    names,
)
from kesler.data.datasets.synthetic import deform, make_disjoint, make_mixed, make_shared

__all__ = [
    "Dataset",
    "RecordDataset",
    "deform",
    "load",
    "load_20newsgroups",
    "load_banking77",
    "load_enron",
    "load_landsat",
    "load_letter",
    "load_mnist",
    "load_pendigits",
    "make_disjoint",
    "make_mixed",
    "make_shared",
    "names",
]
