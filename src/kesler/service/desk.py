"""The desk: all models of a journal, each served by its own thread that writes."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

from kesler.service.items import Items
from kesler.service.refusals import CONFLICT, NOT_FOUND, Refusal
from kesler.service.rows_in import model_name
from kesler.service.served import Served


class Desk:
    """The models of a database.

    Parameters
    ----------
    path : str or path
        The database, which is made if it does not exist.

    Raises
    ------
    KeslerError
        If the file is no journal, or cannot be used.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from kesler.durable import Journal

        self.path = os.fspath(path)
        self.journal = Journal(self.path)
        self._items = Items(self.path)
        self._lock = Lock()
        self._models: dict[str, Served] = {}
        for name in self.journal.models():
            self._models[name] = Served(name, self.journal.open(name), self._items)
            self._models[name].reconcile()

    def close(self) -> None:
        """Finish what waits to be written, and close the database."""
        for served in self._models.values():
            served.close()
        self._items.close()
        self.journal.close()

    def names(self) -> list[str]:
        """Return the names of the models, sorted."""
        return sorted(self._models)

    def find(self, name: str) -> Served:
        """Return a model; raise a refusal with status 404 if there is none."""
        found = self._models.get(name)
        if found is None:
            raise Refusal(NOT_FOUND, f"there is no model {name[:64]!r}: create it first")
        return found

    def create(self, name: Any) -> Served:
        """Create a model, a classifier with the default settings.

        Raises
        ------
        Refusal
            If it exists, or the name cannot be used.
        """
        from kesler.online.classifier import OnlineClassifier

        name = model_name(name)
        with self._lock:
            if name in self._models:
                raise Refusal(CONFLICT, f"there is a model {name} already: take another name")
            model = self.journal.open(name, OnlineClassifier())
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
