"""Data sets: small ones that come with Kesler, others found or fetched, and synthetic ones.

`load(name)` gives a real set, in the order of its source. LETTER, Pendigits and Landsat come with
the package. The others are looked for in the folder that the environment variable KESLER_DATA
names, then in a cache (KESLER_CACHE), and those with a public home whose checksum is known are
fetched into it (with the extra `kesler[datasets]`).

`make_shared`, `make_disjoint` and `make_mixed` make the synthetic sets of Fink et al. (2006);
`deform` makes deformed copies of images.
"""

from kesler.datasets.dataset import Dataset, RecordDataset
from kesler.datasets.deformed import deform
from kesler.datasets.loaders import (
    load,
    load_20newsgroups,
    load_enron,
    load_landsat,
    load_letter,
    load_mnist,
    load_pendigits,
    names,
)
from kesler.datasets.synthetic import make_disjoint, make_mixed, make_shared

__all__ = [
    "Dataset",
    "RecordDataset",
    "deform",
    "load",
    "load_20newsgroups",
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
