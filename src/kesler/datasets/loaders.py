"""Loading of all real sets by name, and functions for the most common ones."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from kesler.datasets.dataset import Dataset, RecordDataset
from kesler.datasets.fetching import fetch, find
from kesler.datasets.registry import SOURCES, Source
from kesler.errors import KeslerError

# The errors that NumPy, gzip, json and the parsers raise for a file with other content.
UNREADABLE = (OSError, EOFError, LookupError, ValueError, zipfile.BadZipFile, zlib.error)


def names() -> list[str]:
    """Return the names of all real sets.

    Returns
    -------
    list of str
        Names for `load`.

    Examples
    --------
    >>> from kesler.datasets import names
    >>> names()[:4]
    ['letter', 'pendigits', 'landsat', 'mnist']
    """
    return list(SOURCES)


def load(name: str) -> Dataset | RecordDataset:
    """Load a real set by its name.

    The files are searched for in the package, in the folder of the environment variable
    KESLER_DATA, and in the cache (the folder of KESLER_CACHE, by default in the user's cache
    folder). If they are not found, they are downloaded to the cache from a public source.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Dataset or RecordDataset
        Rows of numbers, or records of text, with their targets.

    Raises
    ------
    KeslerError
        If the set does not exist, is not found and cannot be downloaded, or its file is damaged.

    Examples
    --------
    >>> from kesler.datasets import load
    >>> load("letter")
    Dataset(name='letter', n_train=16000)
    """
    if name not in SOURCES:
        near = " or ".join(get_close_matches(name, SOURCES)) or "one of those that names() lists"
        raise KeslerError(f"there is no data set {name!r}: did you mean {near}?")
    source = SOURCES[name]
    paths = _paths(name, source)
    try:
        parsed = source.parse(paths)
    except UNREADABLE as error:
        raise KeslerError(
            f"{paths[0]} is not what the data set {name!r} needs ({error}): replace or remove it"
        ) from error
    return replace(parsed, name=name, description=_description(name, source, parsed))


def load_letter() -> Dataset:
    """Load LETTER, included in Kesler: printed capitals, described by 16 measures of their shape.

    Returns
    -------
    Dataset
        X of shape (20000, 16), integers 0 to 15; y the letters 'A' to 'Z'; in the order of UCI,
        where the first 16000 rows are the usual training part.

    References
    ----------
    Slate (1991); Frey and Slate (1991).

    Examples
    --------
    >>> from kesler.datasets import load_letter
    >>> letter = load_letter()
    >>> letter.X.shape, letter.y[:4].tolist()
    ((20000, 16), ['T', 'I', 'D', 'N'])
    """
    return cast(Dataset, load("letter"))


def load_pendigits() -> Dataset:
    """Load Pendigits, included in Kesler: digits, described by eight points of a pen's path.

    Returns
    -------
    Dataset
        X of shape (10992, 16), integers 0 to 100; y the digits; in the order of UCI, where the
        first 7494 rows are the usual training part (30 writers; 14 others wrote the rest).

    References
    ----------
    Alpaydin and Alimoglu (1996).

    Examples
    --------
    >>> from kesler.datasets import load_pendigits
    >>> pendigits = load_pendigits()
    >>> pendigits.n_train, pendigits.y[:4].tolist()
    (7494, [8, 2, 1, 4])
    """
    return cast(Dataset, load("pendigits"))


def load_landsat() -> Dataset:
    """Load Landsat (satimage), included in Kesler: kinds of ground in satellite images.

    Returns
    -------
    Dataset
        X of shape (6435, 36), nine pixels in four spectral bands, integers 0 to 255; y the codes
        1, 2, 3, 4, 5, 7 of UCI; in the order of UCI, where the first 4435 rows are the usual
        training part.

    References
    ----------
    Srinivasan (1993).

    Examples
    --------
    >>> import numpy as np
    >>> from kesler.datasets import load_landsat
    >>> np.unique(load_landsat().y).tolist()
    [1, 2, 3, 4, 5, 7]
    """
    return cast(Dataset, load("landsat"))


def load_banking77() -> RecordDataset:
    """Load BANKING77, included in Kesler: short questions to a bank, and their intents.

    Returns
    -------
    RecordDataset
        13083 records with the field `text`; y one of 77 intents. The first 10003 records are the
        usual training part. ``load("banking77/stream")`` has the same records in an order in which
        the intents appear one after another in the first half.

    References
    ----------
    Casanueva, Temcinas, Gerz, Henderson and Vulic (2020), "Efficient intent detection with dual
    sentence encoders".

    Examples
    --------
    >>> from kesler.datasets import load_banking77
    >>> banking = load_banking77()
    >>> banking.n_train, banking.records[0]["text"], banking.y[0]
    (10003, 'I am still waiting on my card?', 'card_arrival')
    """
    return cast(RecordDataset, load("banking77"))


def load_mnist() -> Dataset:
    """Load MNIST: handwritten digits of 28 x 28 pixels; downloaded (11 MB) if not found.

    Returns
    -------
    Dataset
        X of shape (70000, 784), grey values 0 to 255; y the digits; the first 60000 rows are for
        training.

    Raises
    ------
    KeslerError
        If the set is not found and cannot be downloaded.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner (1998).
    """
    return cast(Dataset, load("mnist"))


def load_20newsgroups() -> RecordDataset:
    """Load 20 Newsgroups by date, posts with their headers; downloaded (14 MB) if not found.

    Returns
    -------
    RecordDataset
        18846 records of one field, `text`; y the 20 groups; the first 11314 are for training. They
        are sorted by group: shuffle them before online learning.

    Raises
    ------
    KeslerError
        If the set is not found and cannot be downloaded.

    References
    ----------
    Lang (1995).
    """
    return cast(RecordDataset, load("20newsgroups"))


def load_enron(user: str) -> RecordDataset:
    """Load the mail of one Enron user in chronological order; the class is the folder.

    Parameters
    ----------
    user : str
        One of beck-s, farmer-d, kaminski-v, kitchen-l, lokay-m, sanders-r, williams-w3.

    Returns
    -------
    RecordDataset
        The fields are ts (seconds since 1970), date, message_id, from, to, cc, subject, x_from,
        x_to, x_cc, x_origin, x_filename and body; y the folders.

    Raises
    ------
    KeslerError
        If the user is not one of these, or the mail is not found in the folder of KESLER_DATA.

    References
    ----------
    Bekkerman, McCallum and Huang (2004); Fink et al. (2006), Table 1.
    """
    return cast(RecordDataset, load(f"enron/{user}"))


def _paths(name: str, source: Source) -> list[Path]:
    paths = find(source.files)
    if paths is None and source.home is not None:
        fetch(source.home)
        paths = find(source.files)
    if paths is None:
        raise KeslerError(
            f"the data set {name!r} is not found, and no public copy of it has a known checksum: "
            f"it comes from {source.origin}; convert it to {' and '.join(source.files)} "
            "(kesler.datasets.dataset describes their content) and set the environment "
            "variable KESLER_DATA to the folder of these files"
        )
    return paths


def _description(name: str, source: Source, parsed: Dataset | RecordDataset) -> str:
    if isinstance(parsed, Dataset):
        shape = f"X {parsed.X.shape}, y {parsed.y.shape}"
    else:
        shape = f"{len(parsed.records)} records of {len(set(parsed.y))} classes"
    part = f"; the first {parsed.n_train} for training" if parsed.n_train else ""
    return f"{name}: {shape}{part}.\nOrigin: {source.origin}.\nLicence: {source.licence}."
