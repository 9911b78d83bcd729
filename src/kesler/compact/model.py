"""What compact classifiers have in common: how they are made, kept, exported and asked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from kesler.compact.layout import FRACTION, Content, from_bytes, to_bytes
from kesler.compact.names import hashes_of, keys_of
from kesler.data.whole_file import write_whole
from kesler.errors import KeslerError, integer_of

if TYPE_CHECKING:
    from kesler.online.classifier import OnlineClassifier
    from kesler.online.multilabel import OnlineMultilabelClassifier

Doubles = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]
Self = TypeVar("Self", bound="CompactModel")

MOST_TEXTS, MOST_SCORES = 1 << 10, 1 << 18  # that are read and computed at a time
ONE = 16
"""Damped counts are integers, in units of a sixteenth: sums are then exact in any language."""
LEAST_COUNTS = np.array([*(int(np.ceil(np.exp((d - 0.5) / ONE - 1))) for d in range(17, 370))])
"""The least count whose damped value, 1 + ln(count), is rounded to 17, 18, ... sixteenths."""


class CompactModel:
    """A small model of texts.

    Parameters
    ----------
    content : Content
        What the file holds. Use `of` or `load`.
    """

    _made_of: ClassVar[str]
    _has_sets: ClassVar[bool]

    def __init__(self, content: Content) -> None:
        name = type(self).__name__
        if not isinstance(content, Content):
            raise KeslerError(
                f"{name} is not made of {type(content).__name__}: use {name}.of(model) or "
                f"{name}.load(path)"
            )
        self._content = content

    @classmethod
    def of(
        cls: type[Self],
        model: OnlineClassifier | OnlineMultilabelClassifier,
        *,
        bits: int = 4,
        n_features: int | None = None,
        max_bytes: int | None = None,
        prefix: str = "",
    ) -> Self:
        """Return the compact form of a trained classifier.

        Weights are kept in the order of their squares, times the number of rows that had the
        feature.

        Parameters
        ----------
        model : OnlineClassifier, or OnlineMultilabelClassifier for label sets
            A classifier with the default settings, or an `intercept` beside them, that has learnt
            texts, as strings or in one column of a table.
        bits : int from 1 to 8, default 4
            The bits of a weight, one of 2 to the power of `bits` levels. More bits round less, and
            leave room for fewer weights.
        n_features : int, 1 or more, optional
            The most features (words, runs of words, runs of characters) that are kept. More err
            less, up to the error of `model`, and take more bytes.
        max_bytes : int, optional
            The largest size of the file. By default weights are kept that are 99 % of the sum of
            all squares.
        prefix : str, default ""
            What the labels of the compact classifier begin with, before those of `model`.

        Raises
        ------
        NotFittedError
            If the model has learnt nothing.
        KeslerError
            If the model is of another class or has other settings, it has learnt several columns,
            numbers or vectors of words, a parameter is out of its range, or the labels alone take
            more bytes than `max_bytes`.

        Notes
        -----
        O(n k) for n features and k classes, which takes seconds for a hundred classes, and a minute
        or two for thousands.

        A text such as "NA", which a table has in place of a missing cell, is read as words.
        """
        from kesler.compact.making import content_of

        if type(model).__name__ != cls._made_of:
            raise KeslerError(
                f"a model of type {type(model).__name__} has no compact form of type "
                f"{cls.__name__}: give an {cls._made_of} that has learnt texts"
            )
        integer_of("bits", bits, 1, 8)
        for name, value in (("n_features", n_features), ("max_bytes", max_bytes)):
            if value is not None:
                integer_of(name, value, 1, 2**31 - 1)
        return cls(content_of(model, bits, n_features, max_bytes, prefix))

    @classmethod
    def load(cls: type[Self], path: str | os.PathLike[str]) -> Self:
        """Read a file of `save`.

        Parameters
        ----------
        path : str or path
            The file.

        Raises
        ------
        KeslerError
            If it is missing, of another kind, or damaged.
        """
        content = read(path)
        if content.has_sets != cls._has_sets:
            kind = "label sets" if content.has_sets else "one label for each text"
            raise KeslerError(
                f"{os.fspath(path)} holds a compact classifier of {kind}, which is no "
                f"{cls.__name__}: use the other class of kesler.compact"
            )
        return cls(content)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file, which is `n_bytes` long.

        Parameters
        ----------
        path : str or path
            The file; one that exists is replaced.

        Raises
        ------
        KeslerError
            If it cannot be written.
        """
        write_whole(path, self.to_bytes())

    def export(
        self, path: str | os.PathLike[str], *, name: str | None = None, header: bool = False
    ) -> None:
        """Write the classifier as C99, without dependencies or allocations.

        ``NAME_predict`` takes a text in UTF-8 and working memory, of ``NAME_scratch`` bytes, and
        returns the number of the most probable label in ``NAME_labels``; ``NAME_probabilities``
        writes the probability of each. Of label sets, those are predicted whose probability is
        above ``NAME_threshold``. Labels are those of `predict`.

        Parameters
        ----------
        path : str or path
            The file, whose suffix is ``.c``; one that exists is replaced.
        name : str, optional
            The prefix of the names in C; by default the stem of the file name. Runs of characters
            other than ASCII letters and digits become ``_``, and ``model_`` is put before what does
            not begin with a letter then: "2nd-try" becomes ``model_2nd_try``.
        header : bool, default False
            If True, write the declarations to a file with the suffix ``.h``, whose name must not
            contain quotes, backslashes or line ends.

        Raises
        ------
        KeslerError
            If the suffix is another, ``#include`` cannot name the header, or a file cannot be
            written.

        Notes
        -----
        Compiled, the tables of characters take about 150 kB beside the weights. They are those of
        the Python and of the package regex that write the file.

        The working memory is enough for any text of its length. It takes 72 bytes for each byte of
        the text, and a table that rises with the length, to 20 to 36 bytes for each feature: with
        fewer (`n_features`), long texts need less.
        """
        from kesler.compact.c_source import c_header, c_source
        from kesler.sharing.exports.c_source import write_c
        from kesler.sharing.exports.python_module import identifier

        path = Path(path)
        if path.suffix.lower() != ".c":
            raise KeslerError(f"{path}: a compact classifier is exported as C, to a file named .c")
        prefix = identifier(path.stem if name is None else name)
        content = self._content
        write_c(
            path,
            header=header,
            source=lambda included: c_source(content, prefix, included),
            declared=lambda: c_header(content, prefix),
        )

    def to_bytes(self) -> bytes:
        """Return the contents of the file."""
        return to_bytes(self._content)

    @property
    def classes_(self) -> list[str]:
        """The labels, in the order of their numbers; as text, whatever the labels learnt were."""
        return [*self._content.labels]

    @property
    def prefix(self) -> str:
        """What all labels begin with, as `of` was told."""
        return self._content.prefix

    @property
    def n_features_(self) -> int:
        """The number of features."""
        return len(self._content.keys)

    @property
    def n_bytes(self) -> int:
        """The size of the file."""
        return len(self.to_bytes())

    def predict_proba(self, texts: Sequence[str]) -> Doubles:
        """Return the probability of each label, an array of shape (n_texts, n_classes).

        Parameters
        ----------
        texts : sequence of str
            The texts.

        Raises
        ------
        KeslerError
            If one of them is no string.
        """
        none = np.empty((0, len(self._content.labels)))
        return np.concatenate([none, *(self._probabilities(*each) for each in self._scored(texts))])

    def predict_top(self, texts: Sequence[str], n: int = 5) -> list[list[tuple[str, float]]]:
        """Return the most probable labels of each text, with their probabilities.

        Parameters
        ----------
        texts : sequence of str
            The texts.
        n : int, 1 or more, default 5
            The largest number of labels.

        Raises
        ------
        KeslerError
            If a text is no string, or `n` is out of its range.
        """
        integer_of("n", n, 1, 2**31 - 1)
        rows = self.predict_proba(texts)
        best = np.argsort(-rows, axis=1, kind="stable")[:, :n]
        labels = self._content.labels
        return [
            [(labels[i], float(row[i])) for i in order.tolist()]
            for row, order in zip(rows, best, strict=True)
        ]

    def _scored(self, texts: Sequence[str]) -> Iterator[tuple[Numbers, Numbers]]:
        """Yield the sum of levels of each class, and the squared length, for blocks of texts.

        Of label sets, the last sum is that of the levels of all labels.
        """
        is_sequence = hasattr(texts, "__len__") and not isinstance(texts, str)
        if not (is_sequence and all(isinstance(text, str) for text in texts)):
            raise KeslerError("texts must be a sequence of str: give a list of them")
        step = max(1, min(MOST_TEXTS, MOST_SCORES // len(self._content.labels)))
        for start in range(0, len(texts), step):
            yield self._scores(texts[start : start + step])

    def _scores(self, texts: Sequence[str]) -> tuple[Numbers, Numbers]:
        """Return sums in sixteenths, and squared lengths in their squares.

        A feature that is not known counts once for each time it occurs.
        """
        content, n_known = self._content, len(self._content.keys)
        names = [content.features.names_of(text) for text in texts]
        keys = keys_of(hashes_of(chain.from_iterable(names)), content.widths.key)
        rows = np.searchsorted(content.keys, keys)
        is_known = np.searchsorted(content.keys, keys, side="right") > rows
        of_texts = np.repeat(np.arange(len(texts)), [*map(len, names)])
        pairs, counts = np.unique(of_texts[is_known] * n_known + rows[is_known], return_counts=True)
        owners, features = pairs // max(1, n_known), pairs % max(1, n_known)
        damped = self._damped(texts, owners, counts)
        squares = ONE**2 * np.bincount(of_texts[~is_known], minlength=len(texts))
        np.add.at(squares, owners, damped**2)
        return self._added(owners, features, damped, len(texts)), squares

    def _damped(self, texts: Sequence[str], owners: Numbers, counts: Numbers) -> Numbers:
        """Return the damped counts of features; those of short texts count once."""
        is_short = np.array([self._content.features.is_short(text) for text in texts])
        found = ONE + np.searchsorted(LEAST_COUNTS, counts, side="right")
        return np.where(is_short[owners], ONE, found)

    def _added(self, owners: Numbers, features: Numbers, damped: Numbers, n: int) -> Numbers:
        """Return the sum of the weights of the features of each of n texts, for each class."""
        starts, lengths = self._content.starts[features], np.diff(self._content.starts)[features]
        ends = np.cumsum(lengths)
        places = np.repeat(starts - ends + lengths, lengths) + np.arange(lengths.sum())
        scores = np.zeros((n, self._content.n_owners), np.int64)
        owned = np.repeat(owners, lengths), self._content.classes[places]
        np.add.at(scores, owned, self._weights[places] * np.repeat(damped, lengths))
        return scores

    @cached_property
    def _weights(self) -> Numbers:
        """The weight of each entry."""
        return self._content.levels.astype(np.int64)[self._content.codes]

    def _with_offsets(self, sums: Numbers, squares: Numbers) -> Numbers:
        """Return the odds of classes: sums over the lengths of texts, with the offsets."""
        offsets = self._content.offsets
        assert offsets is not None
        lengths = [isqrt(square * FRACTION**2) for square in np.maximum(1, squares).tolist()]
        found: Numbers = sums * FRACTION**2 // np.array(lengths, dtype=np.int64)[:, None]
        return found + offsets.of_classes

    def _probabilities(self, scores: Numbers, squares: Numbers) -> Doubles:
        """Return the probability of each label."""
        raise NotImplementedError


def read(path: str | os.PathLike[str]) -> Content:
    """Return the content of a file of `save`.

    Raises
    ------
    KeslerError
        If it is missing, of another kind, or damaged.
    """
    try:
        found = Path(path).read_bytes()
    except OSError as error:
        raise KeslerError(f"{os.fspath(path)} cannot be read ({error.strerror})") from error
    return from_bytes(found, os.fspath(path))
