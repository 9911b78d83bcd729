"""A backend of Annif, which suggests subjects for documents, that learns them one by one.

``python -m kesler.annif`` is the command ``annif`` with the backend "kesler".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import Any

from kesler.errors import KeslerError
from kesler.online.loading import load
from kesler.online.multilabel import OnlineMultilabelClassifier

__all__ = ["create_app", "register"]

MODEL, LOCK = "model.kesler", "tmp-lock"  # Annif takes files "tmp-..." for no part of a model


def register() -> None:
    """Let projects of Annif in this process have ``backend=kesler``.

    The backend is a :class:`~kesler.OnlineMultilabelClassifier` whose labels are the URIs of the
    subjects. ``train`` makes a new one, and ``learn`` goes on with the one there is, if
    ``allow_learn`` is set. Texts are learnt as they are, in the order of the documents; the
    project needs no analyzer. The scores of suggestions are probabilities.

    Raises
    ------
    ImportError
        If Annif is not installed.

    Notes
    -----
    A project has one parameter, ``limit``: the number of suggestions, an integer of 1 or more,
    100 by default. Larger values cost time in proportion.

    ``learn`` costs what the documents cost to learn, and writing the whole model once. Processes
    that share the data of a project read the model anew when one of them has written it.

    Examples
    --------
    >>> import kesler.annif
    >>> kesler.annif.register()  # doctest: +SKIP
    >>> from annif.backend import get_backend  # doctest: +SKIP
    >>> get_backend("kesler").name  # doctest: +SKIP
    'kesler'
    """
    from annif import backend

    # Annif looks for backends there and nowhere else: it has no entry points for them.
    backend._backend_fns[_Backend.name] = _backend_class


def create_app() -> Any:
    """Return Annif's web application, for a server of ASGI, with the backend "kesler".

    Annif's own ``annif:create_app`` does not know the backend.

    Returns
    -------
    connexion.FlaskApp
        The application of ``annif.create_app``.

    Raises
    ------
    ImportError
        If Annif is not installed.

    Examples
    --------
    >>> from kesler.annif import create_app
    >>> app = create_app()  # doctest: +SKIP
    """
    import annif

    register()
    return annif.create_app()


@cache
def _backend_class() -> type[Any]:
    from annif.backend.backend import AnnifLearningBackend

    return type("KeslerBackend", (_Backend, AnnifLearningBackend), {})


class _Backend:
    """The methods that Annif calls; its base class, with the rest, is known when it is used."""

    name = "kesler"
    backend_id: str
    datadir: str
    project: Any
    info: Callable[[str], None]
    warning: Callable[[str], None]
    _model: OnlineMultilabelClassifier | None = None
    _written: int | None = None  # when the file was written that `_model` is in

    def initialize(self, parallel: bool = False) -> None:
        """Read the model, unless it has been read since it was written."""
        from annif.exception import NotInitializedException

        self._read()
        if self._model is None:
            message = f"{self._path} is missing: train the project, or learn documents"
            raise NotInitializedException(message, backend_id=self.backend_id)

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        from annif.exception import NotSupportedException

        if corpus == "cached":
            message = "documents are not kept after training: name them again"
            raise NotSupportedException(message, backend_id=self.backend_id)
        with self._alone():
            self._teach(OnlineMultilabelClassifier(), corpus)

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        with self._alone():
            self._read()
            self._teach(self._model or OnlineMultilabelClassifier(), corpus)

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        from annif.suggestion import SubjectSuggestion, SuggestionBatch

        assert self._model is not None
        subjects = self.project.subjects

        def known(best: list[Any]) -> Iterator[Any]:
            for label in best:
                number = subjects.by_uri(label.label, warnings=False)
                if number is not None:
                    yield SubjectSuggestion(number, label.probability)

        texts = [document.text for document in documents]
        found = self._model.predict_top(texts, self._limit(params))
        return SuggestionBatch.from_sequence([*map(known, found)], subjects)

    def _limit(self, params: dict[str, Any]) -> int:
        """Return the number of suggestions; raise if a project or a caller gives another value."""
        from annif.exception import ConfigurationException

        limit = str(params["limit"]).strip()
        if not limit.isdecimal() or int(limit) < 1:
            message = f"limit={limit}: give the number of suggestions, an integer of 1 or more"
            raise ConfigurationException(message, backend_id=self.backend_id)
        return int(limit)

    # ---- the model and its file ------------------------------------------------------------------

    @property
    def _path(self) -> Path:
        return Path(self.datadir, MODEL)

    def _alone(self) -> AbstractContextManager[Any]:
        """Return a lock: else one of two processes that learn at once undoes the other's work."""
        from filelock import FileLock

        return FileLock(Path(self.datadir, LOCK))

    def _read(self) -> None:
        """Read the model if its file was written since, by this process or another."""
        from annif.exception import OperationFailedException

        written = self._path.stat().st_mtime_ns if self._path.exists() else None
        if written == self._written:
            return
        try:
            model: Any = None if written is None else load(self._path)
        except KeslerError as error:
            raise OperationFailedException(str(error), backend_id=self.backend_id) from error
        self._model, self._written = model, written

    def _teach(self, model: OnlineMultilabelClassifier, corpus: Any) -> None:
        """Teach a model documents, and write it."""
        from annif.exception import NotSupportedException

        uri_of = self.project.subjects
        n_read = n_learnt = 0
        for batch in corpus.doc_batches:
            known = [document for document in batch if document.subject_set]
            n_read, n_learnt = n_read + len(batch), n_learnt + len(known)
            if known:
                sets = [[uri_of[i].uri for i in document.subject_set] for document in known]
                model.partial_fit([document.text for document in known], sets)
        if not n_learnt:
            message = f"none of {n_read} documents has a subject of the vocabulary"
            raise NotSupportedException(message, backend_id=self.backend_id)
        if n_read > n_learnt:
            self.warning(f"{n_read - n_learnt} documents without a subject are left out")
        model.save(self._path)
        self._model, self._written = model, self._path.stat().st_mtime_ns
        self.info(f"{n_learnt} documents learnt; {len(model.classes_)} subjects are known")


def main() -> None:
    """Run Annif's commands."""
    register()
    from annif.cli import cli

    cli(prog_name="annif")


if __name__ == "__main__":
    main()
