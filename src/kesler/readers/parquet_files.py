"""Parquet files, and folders of them whose directories may state columns (``team=cards``)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from kesler.errors import KeslerError, ReadingWarning, warn
from kesler.readers.reader import readable

# Each of pyarrow's own errors is one of these as well.
DAMAGE = (OSError, ValueError, TypeError, KeyError, NotImplementedError, OverflowError)
BATCH_ROWS = 4096
MAGIC = b"PAR1"
SUFFIX = ".parquet"
WHOLE = re.compile(r"-?(?:0|[1-9][0-9]{0,17})")
MISSING = "__HIVE_DEFAULT_PARTITION__"
"""The name of a directory whose files have no value in its column."""


class Part(NamedTuple):
    """One of the files of a source.

    Parameters
    ----------
    path : str
        Its path.
    name : str
        Its path within the folder.
    batches : callable () -> iterator of pyarrow.RecordBatch
        Returns its rows.
    """

    path: str
    name: str
    batches: Callable[[], Iterator[Any]]


def begins_parquet(start: bytes) -> bool:
    """Return whether first bytes are those of Parquet."""
    return start.startswith(MAGIC)


def holds_parquet(path: str) -> bool:
    """Return whether a path is that of a directory with files of Parquet that is no Maildir."""
    is_maildir = os.path.isdir(os.path.join(path, "cur"))
    return not is_maildir and any(is_parquet for _, is_parquet in _files(Path(path)))


def parquet_parts(path: str) -> tuple[Any, list[Part]]:
    """Return the schema of a Parquet file, or of all those of a folder, and the files.

    Raises
    ------
    KeslerError
        If a folder has no such files, or their columns do not fit together.
    """
    if os.path.isdir(path):
        return _folder(Path(path))
    file = opened(path)
    return file.schema_arrow, [Part(path, path, partial(_batches, file))]


def _batches(file: Any) -> Iterator[Any]:
    with file:
        yield from file.iter_batches(batch_size=BATCH_ROWS)


def opened(path: str) -> Any:
    """Open a Parquet file; pyarrow is imported here because nothing else needs it."""
    try:
        from pyarrow.parquet import ParquetFile
    except ImportError as error:
        raise KeslerError(
            f"reading {path} needs pyarrow: install it with pip install 'kesler[parquet]'"
        ) from error
    return ParquetFile(path)


def _files(root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the files of a folder that are not hidden, and whether each is named as Parquet."""
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(filter(_is_shown, subdirectories))
        for name in sorted(filter(_is_shown, names)):
            yield Path(directory, name), name.lower().endswith(SUFFIX)


def _is_shown(name: str) -> bool:
    """Return whether a name is not hidden, nor one of what writers of Parquet note beside rows."""
    return not name.startswith((".", "_")) or "=" in name


def _folder(root: Path) -> tuple[Any, list[Part]]:
    paths = [path for path, is_parquet in _files(root) if is_parquet]
    if not paths:
        raise KeslerError(f"{root} holds no files *{SUFFIX}: name a folder of such files")
    _warn_of_others(root)
    schema = _schema_of(paths)
    stated = _columns_of_directories(root, paths)
    new = {name: values for name, values in stated.items() if name not in schema.names}
    for name, values in new.items():
        schema = schema.append(_field(name, values))
    parts = []
    for i, path in enumerate(paths):
        batches = partial(_batches_of, path, schema, [values[i] for values in new.values()])
        parts.append(Part(str(path), str(path.relative_to(root)), batches))
    return schema, parts


def _warn_of_others(root: Path) -> None:
    others = [str(path.relative_to(root)) for path, is_parquet in _files(root) if not is_parquet]
    if others:
        more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        warn(
            f"{root}: {', '.join(others[:3])}{more} are no files *{SUFFIX} and are not read",
            ReadingWarning,
        )


def _schema_of(paths: Sequence[Path]) -> Any:
    """Return the schema of all files, with the columns of each and types that hold those of all."""
    from pyarrow import unify_schemas

    unified = None
    for path in paths:
        with readable(str(path), "Parquet", *DAMAGE), opened(str(path)) as file:
            own = file.schema_arrow.remove_metadata()
        try:
            unified = unify_schemas([unified or own, own], promote_options="permissive")
        except (TypeError, ValueError) as error:
            raise KeslerError(
                f"{path} has columns of other types than the files before it ({error}): write all "
                "files of a folder with the same types"
            ) from None
    return unified


def _columns_of_directories(root: Path, paths: Sequence[Path]) -> dict[str, list[Any]]:
    """Return the value of each file in the columns that the names of its directories state.

    They are whole numbers if all of them are written as such, without leading zeros.
    """
    stated = [
        dict(map(_stated, filter(_is_column, path.relative_to(root).parts))) for path in paths
    ]
    names = list(dict.fromkeys(name for each in stated for name in each))
    columns: dict[str, list[Any]] = {name: [each.get(name) for each in stated] for name in names}
    for name, values in columns.items():
        if all(value is None or WHOLE.fullmatch(value) for value in values):
            columns[name] = [value and int(value) for value in values]
    return columns


def _is_column(part: str) -> bool:
    return "=" in part and not part.lower().endswith(SUFFIX)


def _stated(part: str) -> tuple[str, str | None]:
    name, _, value = part.partition("=")
    return unquote(name), None if value == MISSING else unquote(value)


def _field(name: str, values: Sequence[Any]) -> Any:
    from pyarrow import field, int64, string

    return field(name, int64() if any(isinstance(value, int) for value in values) else string())


def _batches_of(path: Path, schema: Any, stated: Sequence[Any]) -> Iterator[Any]:
    """Yield the rows of a file with the columns of a schema, of which the last are stated."""
    from pyarrow import RecordBatch, array
    from pyarrow import schema as schema_of
    from pyarrow.dataset import ParquetFileFormat
    from pyarrow.fs import LocalFileSystem

    fields = [*schema]
    n_own = len(fields) - len(stated)
    fragment = ParquetFileFormat().make_fragment(str(path), LocalFileSystem())
    for batch in fragment.to_batches(schema=schema_of(fields[:n_own]), batch_size=BATCH_ROWS):
        constant = [
            array([value] * len(batch), field.type)
            for value, field in zip(stated, fields[n_own:], strict=True)
        ]
        yield RecordBatch.from_arrays([*batch.columns, *constant], schema=schema)
