"""The files of a set: the folders to search, and downloads that are verified by checksum."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from kesler.errors import KeslerError

SHIPPED = Path(__file__).parent / "data"


def find(files: Sequence[str]) -> list[Path] | None:
    """Return the paths of the files in the first folder that contains all of them, else None.

    Only their existence is checked: users are responsible for the content of their folders.
    """
    for folder in _folders():
        paths = [folder / file for file in files]
        if all(path.exists() for path in paths):
            return paths
    return None


def cache_folder() -> Path:
    """Return the folder for downloaded sets: KESLER_CACHE, or one in the user's cache folder."""
    if named := os.environ.get("KESLER_CACHE"):
        return Path(named).expanduser()
    return _user_caches() / "kesler"


def _folders() -> Iterator[Path]:
    yield SHIPPED
    if named := os.environ.get("KESLER_DATA"):
        yield Path(named).expanduser()
    yield cache_folder()


def _user_caches() -> Path:
    """Return the platform's folder for a user's caches; that of freedesktop.org on Unix."""
    home = Path.home()
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")


@dataclass(frozen=True, slots=True)
class Home:
    """Where a set is published, and how its files are converted to those that Kesler reads.

    Parameters
    ----------
    downloads : tuple of (str, str)
        Address and checksum of each file, the checksum as "sha256:..." or "md5:...".
    convert : callable
        `convert(downloaded, folder)` reads the downloaded files, in the order of `downloads`, and
        writes the files for the cache to the folder, in the layout of KESLER_DATA.
    """

    downloads: tuple[tuple[str, str], ...]
    convert: Callable[[Sequence[Path], Path], None]


def fetch(home: Home) -> None:
    """Download a set to the cache.

    Parameters
    ----------
    home : Home
        Where the set is published, and how it is converted.

    Raises
    ------
    KeslerError
        If pooch is not installed, the server cannot be reached, a file has another checksum, or
        the cache cannot be written; the cache is then unchanged.
    """
    pooch = _pooch()
    cache = cache_folder()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # The temporary folder is in the cache, so that finished files are moved by renaming.
        with TemporaryDirectory(dir=cache, prefix=".fetching-") as temporary:
            finished = Path(temporary) / "finished"
            downloaded = [_download(pooch, *each, Path(temporary)) for each in home.downloads]
            home.convert(downloaded, finished)
            _move(finished, cache)
    except OSError as error:
        raise KeslerError(
            f"the cache {cache} cannot be written ({error}): set KESLER_CACHE to a folder that can"
        ) from error


def _pooch() -> ModuleType:
    try:
        return import_module("pooch")
    except ImportError as error:
        raise KeslerError(
            "this set must be fetched, which needs the library pooch: "
            "run pip install 'kesler[datasets]', or set KESLER_DATA to a folder that holds the set"
        ) from error


def _download(pooch: ModuleType, address: str, checksum: str, folder: Path) -> Path:
    bar = sys.stderr.isatty() and find_spec("tqdm") is not None
    try:
        downloader = pooch.HTTPDownloader(progressbar=bar)
        return Path(pooch.retrieve(address, checksum, path=folder, downloader=downloader))
    except OSError as error:  # errors of requests: no host, no page, no response
        raise KeslerError(
            f"{address} could not be fetched ({type(error).__name__}): check the network, "
            "or set KESLER_DATA to a folder that holds the set"
        ) from error
    except ValueError as error:  # raised by pooch for a wrong checksum
        raise KeslerError(
            f"{address} no longer holds the file whose checksum is {checksum}, and nothing was "
            "kept: set KESLER_DATA to a folder that holds the set"
        ) from error


def _move(source: Path, target: Path) -> None:
    for path in source.rglob("*"):
        if path.is_file():
            destination = target / path.relative_to(source)
            destination.parent.mkdir(parents=True, exist_ok=True)
            os.replace(path, destination)
