"""CompactMultilabelClassifier: a small model of texts, each of any number of labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from kesler.compact.layout import FRACTION
from kesler.compact.model import CompactModel, Doubles, Numbers


class CompactMultilabelClassifier(CompactModel):
    r"""A classifier of the label sets of texts in a file of kilobytes, which does not learn.

    .. math:: p(r \mid x) = \frac{1}{1 + e^{-z_r}}, \quad
        z_r = b_r + \frac{\beta}{\sqrt n} \sum_i (1 + \ln x_i) \, (w_i + w_i^r)

    with few weights, of few bits each: by how much the feature raises the scores of most labels
    above the threshold, and by how much more that of a label; n is as in
    :class:`CompactClassifier`. The predicted labels are those whose probability exceeds half of the
    F1 of the predictions while the model learnt, as :class:`~kesler.OnlineMultilabelClassifier`
    does. Probabilities of different labels are estimated separately and need not sum to 1.

    Parameters
    ----------
    content : Content
        What the file holds. Use `of` or `load`.

    Examples
    --------
    >>> from kesler import OnlineMultilabelClassifier
    >>> from kesler.compact import CompactMultilabelClassifier
    >>> texts = ["wrong invoice", "cannot log in", "log in to see the invoice", "hello"] * 5
    >>> labels = [["bills"], ["login"], ["bills", "login"], []] * 5
    >>> small = CompactMultilabelClassifier.of(OnlineMultilabelClassifier().fit(texts, labels))
    >>> small.predict_label_sets(["an invoice", "log in"])
    [{'bills'}, {'login'}]
    """

    _made_of: ClassVar[str] = "OnlineMultilabelClassifier"
    _has_sets: ClassVar[bool] = True

    def predict(self, texts: Sequence[str]) -> Numbers:
        """Return the indicator matrix of the labels predicted, of shape (n_texts, n_labels).

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
        Odds are integers, so that C and WebAssembly predict the same labels for every text.
        """
        none = np.empty((0, len(self._content.labels)), dtype=bool)
        offsets = self._content.offsets
        assert offsets is not None and offsets.to_beat is not None
        blocks = [self._odds(*each) > offsets.to_beat for each in self._scored(texts)]
        return np.concatenate([none, *blocks]).astype(np.int64)

    def predict_label_sets(self, texts: Sequence[str]) -> list[set[str]]:
        """Return the predicted label set of each text, see `predict`."""
        labels = self._content.labels
        return [{labels[i] for i in np.flatnonzero(row)} for row in self.predict(texts)]

    def _odds(self, scores: Numbers, squares: Numbers) -> Numbers:
        """Return the logarithm of the odds of each label, as in the file."""
        return self._with_offsets(scores[:, :-1] + scores[:, -1:], squares)

    def _probabilities(self, scores: Numbers, squares: Numbers) -> Doubles:
        odds = self._odds(scores, squares) * (self._content.inverse / FRACTION)
        powers = np.exp(-np.abs(odds))
        found: Doubles = np.where(odds < 0, powers, 1.0) / (1.0 + powers)
        return found
