"""The function that loads an estimator from a model file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from kesler.errors import KeslerError
from kesler.online.classifier import OnlineClassifier
from kesler.online.multilabel import OnlineMultilabelClassifier
from kesler.online.ranking import OnlineLabelRanker
from kesler.online.saving import read, restored

Model = OnlineClassifier | OnlineMultilabelClassifier | OnlineLabelRanker
"""The estimators that are saved; the others derive from :class:`~kesler.OnlineClassifier`."""


def load(path: str | os.PathLike[str], custom: Iterable[Any] = ()) -> Model:
    """Load a model from a file; it continues to learn bit for bit as before it was saved.

    Parameters
    ----------
    path : a file written by the `save` of an estimator.
    custom : a list of the user-defined rules, maps, kernels, links, preconditioners, algorithms,
        and functions of groups and costs that the model uses: the file stores their names, but no
        code.

    Returns
    -------
    The estimator; its `notes_` are the notes passed to `save`.

    Raises
    ------
    KeslerError
        If the file is missing, truncated, not a model, of a newer version, or names a part that is
        not in `custom`.

    Examples
    --------
    >>> import tempfile
    >>> from kesler import OnlineClassifier, load
    >>> path = tempfile.mkdtemp() + "/mail.kesler"
    >>> OnlineClassifier().learn_one({"cash": 1.0}, "spam").save(path, source="inbox")
    >>> model = load(path)
    >>> model.predict_one({"cash": 1.0}), model.notes_
    ('spam', {'source': 'inbox'})
    """
    arrays, metadata = read(path)
    if isinstance(custom, (str, bytes, Mapping)) or not isinstance(custom, Iterable):
        raise KeslerError(f"custom={custom!r}: give a list of rules, maps and other parts")
    model: Model = restored(arrays, metadata, list(custom))
    return model
