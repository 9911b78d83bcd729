"""CompactClassifier: a small model of texts, each of one class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from kesler.compact.layout import FRACTION, SPREAD
from kesler.compact.model import CompactModel, Doubles, Numbers


class CompactClassifier(CompactModel):
    r"""A classifier of texts in a file of kilobytes, which predicts and does not learn.

    .. math:: h(x, r) = b^r + \frac{1}{\sqrt n} \sum_i (1 + \ln x_i) \, w_i^r, \quad
        p(r \mid x) = (1 - \epsilon) \frac{e^{\beta h(x, r)}}{\sum_s e^{\beta h(x, s)}}
        + \frac{\epsilon}{k}

    with few weights w, of few bits each, by how much the feature raises the score of a class above
    the median of all classes, n the sum of squared counts, damped, and b the intercept of the
    class, 0 without any. Both parameters of the probabilities are those that the classifier has
    learnt. Instead of names it holds hashes of them.

    Before scores have a temperature, while each row was the first of its class, beta is such that
    the highest and the lowest score of each text are 2 apart.

    Parameters
    ----------
    content : Content
        What the file holds. Use `of` or `load`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kesler import OnlineClassifier
    >>> from kesler.compact import CompactClassifier
    >>> texts = ["the invoice is wrong", "I cannot log in", "send an invoice", "log in fails"] * 3
    >>> model = OnlineClassifier().fit(texts, ["bills", "login", "bills", "login"] * 3)
    >>> small = CompactClassifier.of(model)
    >>> path = Path(tempfile.mkdtemp(), "desk.small")
    >>> small.save(path)
    >>> CompactClassifier.load(path).predict(["a wrong invoice"])
    ['bills']
    """

    _made_of: ClassVar[str] = "OnlineClassifier"
    _has_sets: ClassVar[bool] = False

    def predict(self, texts: Sequence[str]) -> list[str]:
        """Return the label of each text.

        Parameters
        ----------
        texts : sequence of str
            The texts.

        Raises
        ------
        KeslerError
            If one of them is no string.

        Notes
        -----
        A text in which no feature is known has the label of the largest intercept, the first label
        without any. C and WebAssembly predict the same label for every text.
        """
        labels, blocks = self._content.labels, (self._scaled(*each) for each in self._scored(texts))
        return [labels[i] for scores, _ in blocks for i in scores.argmax(axis=1).tolist()]

    def _scaled(self, sums: Numbers, squares: Numbers) -> tuple[Numbers, Doubles]:
        """Return the scores of classes, integers, and their inverse temperature in each text."""
        inverse = self._content.inverse
        if self._content.offsets is None:
            return sums, inverse / np.sqrt(np.maximum(1, squares))
        return self._with_offsets(sums, squares), np.full(len(sums), inverse / FRACTION)

    def _probabilities(self, scores: Numbers, squares: Numbers) -> Doubles:
        lapse, (scores, scales) = self._content.lapse, self._scaled(scores, squares)
        if not self._content.inverse:  # as a model whose scores have no temperature yet
            scales = SPREAD / np.maximum(1, np.ptp(scores, axis=1))
        powers = np.exp((scores - scores.max(axis=1, keepdims=True)) * scales[:, None])
        shares = powers / powers.sum(axis=1, keepdims=True)
        found: Doubles = (1 - lapse) * shares + lapse / scores.shape[1]
        return found
