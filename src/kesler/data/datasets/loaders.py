"""The one way in which every real set is loaded, and shorthands for the most used."""

from __future__ import annotations

import zipfile
import zlib
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from kesler.data.datasets.dataset import Dataset, RecordDataset
from kesler.data.datasets.fetching import fetch, find
from kesler.data.datasets.registry import SOURCES, Source
from kesler.errors import KeslerError

# What NumPy, gzip, json and the parsers raise on a file that is not what it should be.
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

    Its files come with the package; or lie in the folder that the environment variable KESLER_DATA
    names; or in the cache (KESLER_CACHE names it, by default it is in the user's cache folder); or
    are fetched into the cache from the set's public home.

    Parameters
    ----------
    name : str
        One of `names()`.

    Returns
    -------
    Dataset or RecordDataset
        Rows of numbers, or records of text, with their answers.

    Raises
    ------
    KeslerError
        If there is no such set, it is not here and cannot be fetched, or its file is broken.

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
    """Load LETTER, which comes with Kesler: printed capitals, by 16 measures of their shape.

    Returns
    -------
    Dataset
        X of shape (20000, 16), whole numbers 0 to 15; y the letters 'A' to 'Z'; in UCI's order, of
        which the first 16000 rows are the usual training part.

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
    """Load Pendigits, which comes with Kesler: digits, by eight points of a pen's path.

    Returns
    -------
    Dataset
        X of shape (10992, 16), whole numbers 0 to 100; y the digits; in UCI's order, of which the
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
    """Load Landsat (satimage), which comes with Kesler: kinds of ground seen from a satellite.

    Returns
    -------
    Dataset
        X of shape (6435, 36), nine pixels in four spectral bands, whole numbers 0 to 255; y the
        codes 1, 2, 3, 4, 5, 7 of UCI; in UCI's order, of which the first 4435 rows are the usual
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


def load_mnist() -> Dataset:
    """Load MNIST: handwritten digits of 28 x 28 pixels; fetched (11 MB) if it is not here.

    Returns
    -------
    Dataset
        X of shape (70000, 784), grey 0 to 255; y the digits; the first 60000 rows for training.

    Raises
    ------
    KeslerError
        If it is not here and cannot be fetched.

    References
    ----------
    LeCun, Bottou, Bengio and Haffner (1998).
    """
    return cast(Dataset, load("mnist"))


def load_20newsgroups() -> RecordDataset:
    """Load 20 Newsgroups by date, posts with their headers; fetched (14 MB) if it is not here.

    Returns
    -------
    RecordDataset
        18846 records of one field, `text`; y the 20 groups; the first 11314 for training. Sorted
        by group: shuffle it before you learn from it as a stream.

    Raises
    ------
    KeslerError
        If it is not here and cannot be fetched.

    References
    ----------
    Lang (1995).
    """
    return cast(RecordDataset, load("20newsgroups"))


def load_enron(user: str) -> RecordDataset:
    """Load the mail of one Enron user, in the order of time; the class is the folder.

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
        If the user is not one of these, or KESLER_DATA does not hold the mail.

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
            f"the data set {name!r} is not here, and no public copy of it has a known checksum: "
            f"it comes from {source.origin}; make {' and '.join(source.files)} of it "
            "(kesler.data.datasets.dataset says what such files hold) and set the environment "
            "variable "
            "KESLER_DATA to the folder in which they lie"
        )
    return paths


def _description(name: str, source: Source, parsed: Dataset | RecordDataset) -> str:
    if isinstance(parsed, Dataset):
        shape = f"X {parsed.X.shape}, y {parsed.y.shape}"
    else:
        shape = f"{len(parsed.records)} records of {len(set(parsed.y))} classes"
    part = f"; the first {parsed.n_train} for training" if parsed.n_train else ""
    return f"{name}: {shape}{part}.\nOrigin: {source.origin}.\nLicence: {source.licence}."
