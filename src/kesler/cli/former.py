"""Spellings that the commands once had."""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from typing import Any

from kesler.errors import KeslerError


class Former(Action):
    """A spelling that commands once had: a sentence names that of today.

    Parameters
    ----------
    now : what is written in its place, in which {} stands for its value.
    """

    def __init__(self, *, now: str, **options: Any) -> None:
        super().__init__(help=SUPPRESS, **options)
        self._now = now

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, value: Any, option: str | None = None
    ) -> None:
        """Raise an error with what is written today."""
        raise KeslerError(f"{option} is no option of {parser.prog}: {self._now.format(value)}")
