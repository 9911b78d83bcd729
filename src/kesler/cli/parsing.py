"""The parsers of the command line: how arguments are read, whatever they are."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import Any, NoReturn

from kesler.errors import KeslerError


class Parser(ArgumentParser):
    """A parser that raises an error if its help cannot be written, such as to a full disk."""

    def _print_message(self, message: str, file: Any = None) -> None:
        print(message, end="", file=file or sys.stderr, flush=True)


class Command(Parser):
    """A command whose arguments are added when it is parsed.

    Names of parts come from registries, which are imported only then, since importing all of Kesler
    takes a second.

    Parameters
    ----------
    add : callable (command) -> None
        Adds the arguments.
    options
        Arguments of `ArgumentParser`.
    """

    def __init__(self, *, add: Callable[[Command], None], **options: Any) -> None:
        super().__init__(formatter_class=RawDescriptionHelpFormatter, **options)
        self._add = add
        self._is_complete = False

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Add the arguments at the first call, and parse; options may be between arguments."""
        if self._is_complete:
            return super().parse_known_args(args, namespace)
        self._add(self)
        self._is_complete = True
        # Before Python 3.12.7, parsing in any order takes what follows a leading -- for options.
        in_order = self._subparsers is not None or "--" in (args or ())
        parse = self.parse_known_args if in_order else self.parse_known_intermixed_args
        return parse(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Stop with a message; --json without a file, which once printed, is told of one."""
        if message == "argument --json: expected one argument":
            raise KeslerError(
                "--json takes a file, or - for standard output: give --json FILE or --json -"
            )
        super().error(message)

    def explain(self, *tables: str) -> None:
        """Insert tables of names between the options and the examples."""
        self.epilog = "\n\n".join([*tables, self.epilog or ""])
