"""The command line: kesler compare | learn | predict | share | show."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from kesler.cli.arguments import parser
from kesler.errors import KeslerError

# What sentences of the library call by the names of its arguments, as the command line has it.
OPTIONS = {
    "skip_bad=True": "--skip-bad",
    "format=...": "--format",
    "label=...": "--label",
    "text=...": "--text",
    "update='": "--update '",
    "feature_map='": "--map '",
    "conditioning='": "--conditioning '",
    "half_life=": "--half-life ",
    "n_features_to_select=": "--features ",
    "alpha=": "--alpha ",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str or None, default None
        The command and its options; None takes those that the process was started with.

    Returns
    -------
    0 if all went well, 2 if a sentence on standard error says what was wrong, 130 if interrupted,
    141 if whoever read the output has gone.
    """
    options = parser().parse_args(arguments)
    try:
        # A command is imported when it is run: the rest of Kesler takes a second to import.
        import_module(f"kesler.cli.{options.command}").run(options)
        sys.stdout.flush()
    except KeslerError as error:
        return _stopped(spoken(str(error)), 2)
    except BrokenPipeError:
        # The interpreter's own last flush must find an open end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except OSError as error:
        return _stopped(f"{error.filename or 'the output'}: {error.strerror}", 2)
    except MemoryError as error:
        return _stopped(f"there is not enough memory ({error})", 2)
    except UnicodeEncodeError as error:
        return _stopped(
            f"the output cannot hold {error.object[error.start]!r}: set PYTHONIOENCODING=utf-8", 2
        )
    except KeyboardInterrupt as stop:
        return _stopped(str(stop) or "stopped", 130)
    return 0


def _stopped(sentence: str, code: int) -> int:
    print(f"kesler: {sentence}", file=sys.stderr)
    return code


def spoken(sentence: str) -> str:
    """Return a sentence of the library as the command line says it."""
    for argument, option in OPTIONS.items():
        sentence = sentence.replace(argument, option)
    return sentence
