"""Predictions of models that fastText has saved."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.fasttext.binary import Content, Floats, Loss, read_content
from kesler.fasttext.features import Features
from kesler.readers.fasttext import PREFIX

Probabilities = npt.NDArray[np.float64]

ADDED = 1e-5
"""What fastText adds to a probability before it takes its logarithm, which its scores contain."""
SIGMOID_BOUND, SIGMOID_STEPS = 8, 512


class Matrices:
    r"""A classifier of fastText, which predicts and does not learn.

    The hidden vector of a text is the mean of the rows of its words, parts of words and runs of
    words; the score of label k is a function of its product with row k of the output matrix
    (Joulin et al. 2017).

    Parameters
    ----------
    content : Content
        What the file holds.
    """

    prefix = PREFIX

    def __init__(self, content: Content) -> None:
        self._input = content.input
        self._dim = content.arguments.dim
        self._features = Features(content.arguments, content.dictionary)
        self.words = [*content.dictionary.words]
        self.labels = [*content.dictionary.labels]
        counts = [*content.dictionary.labels.values()]
        loss = content.arguments.loss
        self._paths = _paths(counts) if loss is Loss.HIERARCHICAL_SOFTMAX else None
        self._is_stepped = loss in (Loss.ONE_VS_ALL, Loss.NEGATIVE_SAMPLING)
        self._output = np.ascontiguousarray(content.output.T)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Matrices:
        """Read a file that fastText has saved, see `read_content`."""
        return cls(read_content(path))

    def learn(self, texts: list[str], labels: list[Any]) -> None:
        """Raise KeslerError."""
        raise KeslerError(
            "a model that fastText has trained does not learn: train one on its file of lines "
            "with kesler.fasttext.train_supervised"
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Raise KeslerError."""
        raise KeslerError("a model that fastText has saved is not changed: copy its file")

    def quantized(self, **given: Any) -> NoReturn:
        """Raise KeslerError."""
        raise KeslerError(
            "a model that fastText has trained is quantized by its package: train one on its file "
            "of lines with kesler.fasttext.train_supervised"
        )

    def vector(self, text: str) -> Floats:
        """Return the mean of the rows of a text."""
        return self._mean(self._features.of_text(text))

    def vector_of_word(self, word: str) -> Floats:
        """Return the mean of the rows of a word and its parts."""
        return self._mean([*self._features.of_word(word)])

    def probabilities(self, texts: Sequence[str]) -> Iterator[Probabilities | None]:
        """Yield the score of each label for each text; None for a text without any row."""
        for text in texts:
            rows = self._features.of_text(text)
            yield self._scores(self._mean(rows)) if rows else None

    def _mean(self, rows: list[int]) -> Floats:
        if not rows:
            return np.zeros(self._dim, dtype=np.float32)
        mean: Floats = np.add.reduce(self._input[rows], axis=0) * np.float32(1 / len(rows))
        return mean

    def _scores(self, hidden: Floats) -> Probabilities:
        if self._is_stepped:
            return _sigmoid(_dot(self._output, hidden)) + ADDED
        products = (hidden @ self._output).astype(np.float64)
        if self._paths is not None:
            return _of_leaves(products, self._paths)
        powers = np.exp(products - products.max())
        shares: Probabilities = powers / powers.sum() + ADDED
        return shares


def _dot(by_column: Floats, hidden: Floats) -> Floats:
    """Return products in the order of fastText's sums, for the table of `_sigmoid` has steps."""
    sums: Floats = np.add.reduce(by_column * hidden[:, None], axis=0)
    return sums


def _sigmoid(products: Floats) -> Probabilities:
    """Return the values of fastText's table of the logistic function, which has steps of 1 / 32."""
    bound, n_steps = np.float32(SIGMOID_BOUND), np.float32(SIGMOID_STEPS)
    steps = np.floor((products + bound) * n_steps / bound / np.float32(2)).astype(np.float64)
    points = np.clip(steps, 0, SIGMOID_STEPS) * (2 * SIGMOID_BOUND / SIGMOID_STEPS) - SIGMOID_BOUND
    inside = 1 / (1 + np.exp(-points))
    return np.where(products < -SIGMOID_BOUND, 0, np.where(products > SIGMOID_BOUND, 1, inside))


Paths = tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]


def _paths(counts: list[int]) -> Paths:
    """Return the parent of each node of the Huffman tree of labels, and whether it is its right.

    The leaves are the labels, in the order of their counts; the last node is the root.
    """
    n_leaves = len(counts)
    weights = [*counts, *[0] * (n_leaves - 1)]
    parents = np.full(2 * n_leaves - 1, -1)
    is_right = np.zeros(2 * n_leaves - 1, dtype=bool)
    leaf, inner = n_leaves - 1, n_leaves
    for node in range(n_leaves, 2 * n_leaves - 1):
        for side in (False, True):
            # An inner node that does not exist yet is heavier than any leaf.
            is_leaf = leaf >= 0 and (inner >= node or weights[leaf] < weights[inner])
            child, leaf, inner = (leaf, leaf - 1, inner) if is_leaf else (inner, leaf, inner + 1)
            parents[child], is_right[child] = node, side
            weights[node] += weights[child]
    return parents, is_right


def _of_leaves(products: Probabilities, paths: Paths) -> Probabilities:
    """Return the probabilities of the leaves, the products of those along their paths."""
    parents, is_right = paths
    n_leaves = (len(parents) + 1) // 2
    right = 1 / (1 + np.exp(-products))
    logs = np.zeros(len(parents))
    for node in range(len(parents) - 2, -1, -1):
        parent = parents[node]
        share = right[parent - n_leaves]
        logs[node] = logs[parent] + np.log((share if is_right[node] else 1 - share) + ADDED)
    found: Probabilities = np.exp(logs[:n_leaves])
    return found
