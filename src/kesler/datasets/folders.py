"""The folders in which the files of a set are looked for; all have one layout."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

SHIPPED = Path(__file__).parent / "data"


def find(files: Sequence[str]) -> list[Path] | None:
    """Return the paths of the files in the first folder that holds them all, else None.

    Only their existence is checked: whoever names a folder answers for what is in it.
    """
    for folder in _folders():
        paths = [folder / file for file in files]
        if all(path.exists() for path in paths):
            return paths
    return None


def cache_folder() -> Path:
    """Return the folder for fetched sets: KESLER_CACHE, or one in the user's cache folder."""
    if named := os.environ.get("KESLER_CACHE"):
        return Path(named).expanduser()
    return _user_caches() / "kesler"


def _folders() -> Iterator[Path]:
    yield SHIPPED
    if named := os.environ.get("KESLER_DATA"):
        yield Path(named).expanduser()
    yield cache_folder()


def _user_caches() -> Path:
    """Return where the platform wants a user's caches; freedesktop.org's place on Unix."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
