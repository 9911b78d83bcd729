"""A client of the server, which needs the standard library only."""

from __future__ import annotations

import json
import os
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

from kesler.errors import KeslerError

RETRIES = 4


class Client:
    """A model of a server.

    Parameters
    ----------
    url : str
        The address of the server, such as ``http://127.0.0.1:8000``.
    model : str
        The name of the model.
    token : str or None, default None
        A token of the server, if it needs one.
    timeout : float, default 30
        The seconds to wait for an answer.

    Raises
    ------
    KeslerError
        By every method: the sentence of the server, or that it cannot be reached.

    Notes
    -----
    A request whose answer was lost is sent again; every row has an id, so that it is learnt once.

    Examples
    --------
    >>> mail = Client("http://127.0.0.1:8000", "mail", token="...")  # doctest: +SKIP
    >>> mail.learn("win cash", "spam", id="m17")  # doctest: +SKIP
    {'id': 'm17', 'changed': True, 'n_rows': 1}
    >>> mail.predict("cash", coverage=0.9)["label"]  # doctest: +SKIP
    'spam'
    """

    def __init__(
        self, url: str, model: str, token: str | None = None, timeout: float = 30.0
    ) -> None:
        if not url.startswith(("http://", "https://")):
            raise KeslerError(f"{url!r} is no address of a server: give http://HOST:PORT")
        self._root, self.timeout = url.rstrip("/"), timeout
        self._path = f"/api/models/{quote(model, safe='')}"
        self.model = model
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def create(self, estimator: str | None = None, **settings: Any) -> Any:
        """Create the model on the server: with an estimator, and settings such as half_life."""
        given = _given(estimator=estimator, settings=settings or None)
        return self._send("POST", "/api/models", {"name": self.model} | given)

    def predict(self, row: Any, **wanted: Any) -> Any:
        """Return what the model says of a row: a dictionary with "label" and "confidence".

        wanted : coverage, probabilities, explain, separator and min_confidence, as the server
        describes them at /api.
        """
        return self._send("POST", f"{self._path}/predict", {"row": row, **wanted})

    def learn(
        self, row: Any, answer: Any, *, id: str | None = None, subject: str | None = None
    ) -> Any:
        """Teach a row; it is on the disk of the server when this returns."""
        body = {"row": row, "answer": answer, "id": id or uuid4().hex}
        return self._send("POST", f"{self._path}/learn", body | _given(subject=subject))

    def learn_many(self, rows: Iterable[tuple[Any, Any]]) -> Any:
        """Teach rows with their answers; return what became of each."""
        listed = [{"row": row, "answer": answer, "id": uuid4().hex} for row, answer in rows]
        return self._send("POST", f"{self._path}/learn", {"rows": listed})["outcomes"]

    def import_file(
        self,
        path: str | os.PathLike[str],
        *,
        labels: str | os.PathLike[str] | None = None,
        **options: Any,
    ) -> Any:
        """File the rows of a file; return how many became what.

        labels : a file of the labels of FASTA and FASTQ, by their identifiers.

        options : text, label, id and person, the columns of these if they have other names;
        skip_bad=True, by which rows that cannot be used are refused alone; and how the file is
        read, such as encoding; as the server describes them at /api.
        """
        file = Path(path)
        given = {"name": file.name} | {
            name: json.dumps(value) if isinstance(value, bool) else value
            for name, value in options.items()
        }
        address = f"{self._path}/import?{urlencode(given)}"
        files = {"file": file} | ({} if labels is None else {"labels": Path(labels)})
        return json.loads(self._sent("POST", address, *_form(files)))

    def undo(self, id: str) -> Any:
        """Take an event back."""
        return self._send("POST", f"{self._path}/undo", {"id": id})

    def undo_many(self, ids: Iterable[str]) -> Any:
        """Take events back; return what became of each."""
        listed = ids if isinstance(ids, str) else [*ids]  # the server refuses a text
        return self._send("POST", f"{self._path}/undo", {"ids": listed})["outcomes"]

    def relabel(self, id: str, answer: Any) -> Any:
        """Change the answer of a row."""
        return self._send("POST", f"{self._path}/relabel", {"id": id, "answer": answer})

    def rename(self, old: Any, new: Any) -> Any:
        """Rename a class."""
        return self._send("POST", f"{self._path}/rename", {"old": old, "new": new})

    def merge(self, source: Any, target: Any) -> Any:
        """Merge a class into another."""
        return self._send("POST", f"{self._path}/merge", {"source": source, "target": target})

    def forget(self, **what: Any) -> Any:
        """Remove a row (id=...), all rows about somebody (subject=...) or a class (label=...)."""
        if "label" in what:
            what["class"] = what.pop("label")
        return self._send("POST", f"{self._path}/forget", what)

    def figures(self) -> Any:
        """Return the sizes and mistakes of the model."""
        return self._send("GET", self._path)

    def history(self) -> Iterator[dict[str, Any]]:
        """Yield all events, the last first."""
        before = 0
        while before is not None:
            page = self._send("GET", f"{self._path}/history?{urlencode({'before': before})}")
            yield from page["events"]
            before = page["before"]

    def export(self) -> Iterator[dict[str, Any]]:
        """Yield the rows with their answers."""
        for line in self._sent("GET", f"{self._path}/export.jsonl", None).splitlines():
            yield json.loads(line)

    def _send(self, method: str, path: str, body: Any = None) -> Any:
        return json.loads(self._sent(method, path, None if body is None else _written(body)))

    def _sent(
        self, method: str, path: str, data: bytes | None, kind: str = "application/json"
    ) -> bytes:
        headers = self._headers | {"Content-Type": kind}
        for attempt in range(RETRIES + 1):
            request = urllib.request.Request(self._root + path, data, headers, method=method)
            try:
                with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                    found: bytes = answer.read()
                    return found
            except urllib.error.HTTPError as error:
                if error.code not in (429, 503) or attempt == RETRIES:
                    raise KeslerError(_sentence(error)) from None
            except (OSError, ValueError) as error:
                if attempt == RETRIES:
                    raise KeslerError(f"{self._root} cannot be reached: {error}") from error
            time.sleep(0.2 * 2**attempt)
        raise AssertionError


def _written(body: Any) -> bytes:
    """Return the body of a request, with arrays and numbers of NumPy as those of Python."""
    try:
        return json.dumps(body, allow_nan=False, default=_of_numpy).encode()
    except (TypeError, ValueError) as error:
        raise KeslerError(
            f"the request cannot be written as JSON ({error}): give texts, numbers, lists and "
            "mappings from texts, dates as texts, and None where a value is missing"
        ) from None


def _of_numpy(value: Any) -> Any:
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"{value!r:.60} is a {type(value).__name__}")


def _form(files: Mapping[str, Path]) -> tuple[bytes, str]:
    """Return the body of a form with files, and its type."""
    boundary = uuid4().hex
    parts = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"'
        "\r\n\r\n".encode()
        + path.read_bytes()
        + b"\r\n"
        for name, path in files.items()
    ]
    ending = f"--{boundary}--\r\n".encode()
    return b"".join([*parts, ending]), f"multipart/form-data; boundary={boundary}"


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _sentence(error: urllib.error.HTTPError) -> str:
    """Return the sentence of a server's answer."""
    try:
        return str(json.loads(error.read())["error"])
    except (OSError, ValueError, KeyError, TypeError):
        return f"the server answered with status {error.code}"
