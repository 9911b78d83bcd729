"""The model with fastText's methods."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from numbers import Integral
from typing import Any, NamedTuple, Protocol, overload

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError, ReadingWarning, warn
from kesler.fasttext.binary import Floats
from kesler.readers.fasttext import PREFIX

Probabilities = npt.NDArray[np.float64]


class Predictor(Protocol):
    """What a model asks: a classifier of Kesler or the matrices of fastText."""

    @property
    def prefix(self) -> str:
        """The prefix of the labels."""
        ...

    @property
    def labels(self) -> list[str]:
        """The labels, with their prefix."""
        ...

    @property
    def words(self) -> list[str]:
        """The words that the model knows."""
        ...

    def probabilities(self, texts: Sequence[str]) -> Iterator[Probabilities | None]:
        """Yield the probability of each label for each text, None where nothing is known."""
        ...

    def learn(self, texts: list[str], labels: list[Any]) -> None:
        """Learn texts, with labels that have their prefix or not."""
        ...

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file."""
        ...

    def quantized(self, **given: Any) -> Predictor:
        """Return the compact form, see :meth:`kesler.compact.CompactClassifier.of`."""
        ...

    def vector(self, text: str) -> Floats:
        """Return the hidden vector of a text."""
        ...

    def vector_of_word(self, word: str) -> Floats:
        """Return the hidden vector of a word."""
        ...


class Meter(NamedTuple):
    """How often a label was right and predicted, right, and predicted."""

    both: int = 0
    right: int = 0
    predicted: int = 0

    def plus(self, both: int, right: int, predicted: int) -> Meter:
        """Return the sum with further counts."""
        return Meter(self.both + both, self.right + right, self.predicted + predicted)

    @property
    def precision(self) -> float:
        """How often it was right where it was predicted."""
        return self.both / self.predicted if self.predicted else nan

    @property
    def recall(self) -> float:
        """How often it was predicted where it was right."""
        return self.both / self.right if self.right else nan

    @property
    def f1(self) -> float:
        """The harmonic mean of both."""
        n = self.right + self.predicted
        return 2 * self.both / n if n else nan


@dataclass(frozen=True)
class Lines:
    """The texts of a file, and the labels of each with their prefix."""

    texts: list[str]
    labels: list[tuple[str, ...]]


def read_lines(path: str | os.PathLike[str], label: str = PREFIX) -> Lines:
    """Read the lines of a file in fastText's format.

    Those without labels, or that cannot be read, are left out, with a warning at the line that
    called the caller.

    Raises
    ------
    KeslerError
        If the file does not exist, or no line has a label.
    """
    from kesler.readers import open_stream

    stream = open_stream(
        path, format="fasttext", label=label, label_sets=True, as_table=True, skip_bad=True
    )
    texts, labels = list[str](), list[tuple[str, ...]]()
    for block in stream:
        table: Any = block.rows
        texts.extend(text or "" for text in table.columns["text"])
        labels.extend(tuple(f"{label}{each}" for each in found) for found in block.labels)
    losses = stream.losses
    if losses.n_bad:
        rows = (
            f"{losses.n_bad:,} rows that cannot be read are"
            if losses.n_bad > 1
            else "1 row that cannot be read is"
        )
        first = f"the first is {losses.first_bad}"
        warn(f"{path}: {rows} left out; {first}", ReadingWarning)
    return Lines(texts, labels)


class Model:
    r"""A classifier of texts with the methods of fastText's models.

    It is returned by `train_supervised` and `load_model`. Labels begin with ``__label__``, as in
    fastText.

    Parameters
    ----------
    predictor : Predictor
        A classifier of Kesler, which learns, or the matrices of a model of fastText, which does
        not.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kesler import fasttext
    >>> lines = ["__label__bills the invoice is wrong", "__label__login I cannot log in"] * 4
    >>> path = Path(tempfile.mkdtemp(), "train.txt")
    >>> _ = path.write_text("\n".join(lines))
    >>> model = fasttext.train_supervised(path)
    >>> model.predict("a wrong invoice")[0]
    ('__label__bills',)
    >>> model.learn("is there a job for me", "__label__jobs")
    >>> model.labels
    ['__label__bills', '__label__jobs', '__label__login']
    """

    def __init__(self, predictor: Predictor) -> None:
        self._predictor = predictor

    @property
    def labels(self) -> list[str]:
        """The labels, with their prefix; those of a classifier of Kesler in alphabetical order."""
        return self._predictor.labels

    @property
    def words(self) -> list[str]:
        """The words that the model knows."""
        return self._predictor.words

    def get_labels(self) -> list[str]:
        """Return the labels, as `labels`."""
        return self.labels

    def get_words(self) -> list[str]:
        """Return the words, as `words`."""
        return self.words

    @overload
    def predict(
        self, text: str, k: int = ..., threshold: float = ..., on_unicode_error: str = ...
    ) -> tuple[tuple[str, ...], Probabilities]: ...

    @overload
    def predict(
        self, text: list[str], k: int = ..., threshold: float = ..., on_unicode_error: str = ...
    ) -> tuple[list[list[str]], list[Probabilities]]: ...

    def predict(
        self,
        text: str | list[str],
        k: int = 1,
        threshold: float = 0.0,
        on_unicode_error: str = "strict",
    ) -> Any:
        """Return the most probable labels of a text, or of each text of a list.

        Parameters
        ----------
        text : str or list of str
            Texts of one line each.
        k : int, default 1
            The largest number of labels; -1 for all. Fewer are returned if fewer reach the
            threshold.
        threshold : float from 0 to 1, default 0
            The least probability of a label that is returned; larger values return fewer labels.
        on_unicode_error : str
            Ignored: texts of Python have no wrong bytes.

        Returns
        -------
        labels, probabilities
            A tuple and an array for a text; lists of lists and of arrays for a list. Both are empty
            for a text in which nothing is known to a model of fastText.

        Raises
        ------
        KeslerError
            If a text has several lines, or `k` or `threshold` is out of range.

        Notes
        -----
        The scores of models of fastText are theirs, which are 0.00001 above the probability.
        """
        if isinstance(text, str):
            ((labels, found),) = self._best([text], k, threshold)
            return tuple(labels), found
        pairs = [*self._best([text] if isinstance(text, bytes) else text, k, threshold)]
        return [labels for labels, _ in pairs], [found for _, found in pairs]

    def test(
        self, path: str | os.PathLike[str], k: int = 1, threshold: float = 0.0
    ) -> tuple[int, float, float]:
        """Return the number of rows of a file, the precision and the recall of k labels.

        Parameters
        ----------
        path : str or path
            A file of lines with labels.
        k, threshold
            As in `predict`.

        Raises
        ------
        KeslerError
            If the file cannot be read, or no line has a label that the model knows.
        """
        lines = read_lines(path, self._predictor.prefix)
        meters, n_rows = self._meters(path, lines, k, threshold)
        total = Meter(*(sum(each) for each in zip(*meters.values(), strict=True)))
        return n_rows, total.precision, total.recall

    def test_label(
        self, path: str | os.PathLike[str], k: int = 1, threshold: float = 0.0
    ) -> dict[str, dict[str, float]]:
        """Return the precision, the recall and F1 of each label of a file, see `test`.

        A figure is NaN where it is a quotient of zeros. Version 0.9.2 of fastText's package returns
        NaN for every recall and twice the precision as F1.
        """
        lines = read_lines(path, self._predictor.prefix)
        meters, _ = self._meters(path, lines, k, threshold)
        return {
            label: {
                "precision": each.precision,
                "recall": each.recall,
                "f1score": each.f1,
            }
            for label, each in meters.items()
        }

    def learn(self, text: str | list[str], label: Any) -> None:
        """Learn a text, or a list of texts, whose labels may be new.

        Parameters
        ----------
        text : str or list of str
            Texts of one line each.
        label : str, or a list of them
            The label of a text, with its prefix or without; for a model of label sets a list of
            labels. For a list of texts, a list of these.

        Raises
        ------
        KeslerError
            If the model is one of fastText's, which does not learn.
        """
        texts, labels = ([text], [label]) if isinstance(text, str) else (text, label)
        self._predictor.learn(texts, labels)

    def save_model(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file that `load_model` and :func:`kesler.load` read.

        Raises
        ------
        KeslerError
            If the model is one of fastText's: copy its file.
        """
        self._predictor.save(path)

    def quantize(
        self,
        input: object = None,
        *,
        cutoff: int = 0,
        bits: int = 4,
        max_bytes: int | None = None,
        **others: Any,
    ) -> None:
        """Make the model small: few weights of few bits, and hashes in place of words.

        It predicts afterwards, and does not learn. `save_model` writes kilobytes, which
        :meth:`kesler.compact.CompactClassifier.export` turns into C; of label sets, that of
        :class:`~kesler.compact.CompactMultilabelClassifier`.

        Parameters
        ----------
        input : optional
            Has no effect, and warns: nothing is learnt again.
        cutoff : int, 0 or more, default 0
            The most features that are kept, 0 for no such limit. More err less and take more
            bytes.
        bits, max_bytes
            As in :meth:`kesler.compact.CompactClassifier.of`.
        **others
            The other arguments of fastText have no effect, and warn.

        Raises
        ------
        KeslerError
            If the model has been trained with `pretrainedVectors`, is quantized or fastText's, or a
            value is out of its range.
        TypeError
            If an argument is none of fastText's.

        Warns
        -----
        MismatchWarning
            If an argument has no effect, with what there is instead.
        """
        from kesler.fasttext.ignored import OF_QUANTIZE, warn_of

        if input is not None:
            others["input"] = input
        for name in others:
            warn_of(name, OF_QUANTIZE, "quantize")
        n_features = None if cutoff == 0 else cutoff
        given = {"bits": bits, "n_features": n_features, "max_bytes": max_bytes}
        self._predictor = self._predictor.quantized(**given)

    def get_sentence_vector(self, text: str) -> Floats:
        """Return the hidden vector of a text, of a model of fastText.

        Raises
        ------
        KeslerError
            If the model is one of Kesler, which has no hidden vectors.
        """
        return self._predictor.vector(_line(text))

    def get_word_vector(self, word: str) -> Floats:
        """Return the vector of a word, of a model of fastText; see `get_sentence_vector`."""
        return self._predictor.vector_of_word(word)

    def _best(
        self, texts: Sequence[str], k: int, threshold: float
    ) -> Iterator[tuple[list[str], Probabilities]]:
        """Yield the best labels of each text, and their probabilities."""
        if not isinstance(k, Integral) or (k < 1 and k != -1):
            raise KeslerError(f"k={k!r}: give a number of labels, or -1 for all")
        if not 0 <= threshold <= 1:
            raise KeslerError(f"threshold={threshold!r}: give a probability from 0 to 1")
        labels = np.array(self.labels, dtype=object)
        for found in self._predictor.probabilities([_line(text) for text in texts]):
            best = np.empty(0, np.int64) if found is None else _ranked(found, k, threshold)
            yield labels[best].tolist(), np.empty(0) if found is None else found[best]

    def _meters(
        self, path: str | os.PathLike[str], lines: Lines, k: int, threshold: float
    ) -> tuple[dict[str, Meter], int]:
        """Return what was right and predicted of each label, and the number of rows."""
        known = {*self.labels}
        right = [known.intersection(each) for each in lines.labels]
        rows = [row for row, each in enumerate(right) if each]
        _warn_of_unknown(path, {*known.union(*lines.labels)} - known)
        meters = dict.fromkeys(self.labels, Meter())
        n_rows = 0
        texts = [lines.texts[row] for row in rows]
        for row, (best, _) in zip(rows, self._best(texts, k, threshold), strict=True):
            n_rows += 1
            for label in right[row].union(best):
                both = label in right[row] and label in best
                meters[label] = meters[label].plus(both, label in right[row], label in best)
        if not n_rows:
            raise KeslerError(f"no label of {os.fspath(path)} is one of the model: check the file")
        return meters, n_rows


def _line(text: str) -> str:
    """Return a text; raise KeslerError unless it is a string of one line."""
    if not isinstance(text, str):
        raise KeslerError(f"a text is of type {type(text).__name__}: give str, or a list of str")
    if "\n" in text:
        raise KeslerError("a text has several lines: give one line, or a list of them")
    return text


def _ranked(found: Probabilities, k: int, threshold: float) -> npt.NDArray[np.int64]:
    """Return the most probable labels in order; those of equal probability by their numbers."""
    best = np.argsort(-found, kind="stable")[: len(found) if k == -1 else k]
    return best[found[best] >= threshold]


def _warn_of_unknown(path: str | os.PathLike[str], labels: set[str]) -> None:
    if labels:
        warn(
            f"{os.fspath(path)} has {len(labels)} labels that the model does not know, such as "
            f"{min(labels)!r}: they are left out, as in fastText",
            ReadingWarning,
        )
