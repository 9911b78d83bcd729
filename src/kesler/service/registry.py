"""The registry: all models of a journal, each served by its own thread that writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import ExitStack
from threading import Lock
from typing import Any

from kesler.durable.items import Items
from kesler.errors import KeslerError
from kesler.service.bodies import DEFAULT, KINDS
from kesler.service.lock import ServerLock
from kesler.service.refusals import CONFLICT, NOT_FOUND, NOT_VALID, Refusal
from kesler.service.rows_in import model_name
from kesler.service.served import Served


class ModelRegistry:
    """The models of a database.

    Parameters
    ----------
    path : str or path
        The database, which is made if it does not exist.

    Raises
    ------
    KeslerError
        If the file is no journal, or cannot be used, or another process serves it.

    Notes
    -----
    While it is open, a file beside the database, whose name ends in ``-server``, says which process
    serves it. A process that is killed leaves the file, and keeps nobody from serving the database.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._lock = Lock()
        self._models: dict[str, Served] = {}
        with ExitStack() as opened:
            self._open(opened)
            self._opened = opened.pop_all()

    def _open(self, opened: ExitStack) -> None:
        """Open what `close` closes."""
        from kesler.durable import Journal

        opened.callback(ServerLock(self.path).release)
        self.journal = opened.enter_context(Journal(self.path))
        self._items = Items(self.path)
        opened.callback(self._items.close)
        opened.callback(self._end_threads)
        for name in self.journal.models():
            self._models[name] = Served(name, self.journal.open(name), self._items)
            self._models[name].reconcile()

    def close(self) -> None:
        """Finish what waits to be written, and close the database; a second call does nothing."""
        self._opened.close()

    def _end_threads(self) -> None:
        for served in self._models.values():
            served.close()

    def names(self) -> list[str]:
        """Return the names of the models, sorted."""
        return sorted(self._models)

    def find(self, name: str) -> Served:
        """Return a model; raise a refusal with status 404 if there is none."""
        found = self._models.get(name)
        if found is None:
            raise Refusal(NOT_FOUND, f"there is no model {name[:64]!r}: create it first")
        return found

    def create(
        self,
        name: Any,
        estimator: Any = DEFAULT,
        settings: Any = None,
    ) -> Served:
        """Create a model.

        Parameters
        ----------
        name : str
            Its name.
        estimator : one of `KINDS`, default "OnlineClassifier"
        settings : mapping or None, default None
            Parameters of the estimator whose values JSON can hold, such as
            ``{"half_life": 5000}``; None for the default settings.

        Raises
        ------
        Refusal
            If it exists, or the name, the estimator or a setting cannot be used.
        """
        name = model_name(name)
        made = estimator_of(estimator, {} if settings is None else settings)
        with self._lock:
            if name in self._models:
                raise Refusal(CONFLICT, f"there is a model {name} already: take another name")
            model = self.journal.open(name, made)
            self._models[name] = Served(name, model, self._items)
            return self._models[name]

    def delete(self, name: str) -> None:
        """Delete a model with its inbox and its history for good."""
        with self._lock:
            served = self.find(name)
            del self._models[name]
            served.close()
            self._items.remove_model(name)
            self.journal.delete(name)


def estimator_of(name: Any, settings: Any) -> Any:
    """Return a new estimator; its settings are checked as far as they can be before a row.

    Examples
    --------
    >>> estimator_of("OnlineClassifier", {"half_life": 5000}).half_life
    5000
    >>> estimator_of("OnlineClassifier", {"halflife": 5000})
    Traceback (most recent call last):
    ...
    kesler.service.refusals.Refusal: OnlineClassifier has no setting 'halflife': see its parameters
    """
    from kesler.settings.codec import type_of

    if name not in KINDS:
        raise Refusal(NOT_VALID, f"estimator must be one of {', '.join(KINDS)}")
    if not isinstance(settings, Mapping):
        raise Refusal(NOT_VALID, "settings must be an object of names and values")
    made = type_of(name)()
    for key in settings.keys() - made.get_params(deep=False).keys():
        raise Refusal(NOT_VALID, f"{name} has no setting {key!r}: see its parameters")
    if settings.get("vectors") is not None:
        raise Refusal(NOT_VALID, "vectors names a file of the server, which no request may read")
    made.set_params(**settings)
    try:
        made._new_learner(dense=False)
    except (TypeError, ValueError) as error:
        sentence = str(error) if isinstance(error, KeslerError) else f"they do not fit ({error})"
        raise Refusal(NOT_VALID, f"the settings cannot be used: {sentence}") from error
    return made
