"""The command line, `kesler`: one module for each command."""

from __future__ import annotations

import os
import re
import sys
import warnings
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from kesler.cli.arguments import parser
from kesler.errors import KeslerError, MismatchWarning, ReadingWarning

# Arguments in messages of the library that are no settings, and the options that replace them.
OPTIONS = {
    ", or set columns=None, which learns names that come and go": "",
    "skip_bad=True": "--skip-bad",
    "max_line=...": "--max-line",
    "max_line=": "--max-line ",
    "format=...": "--format",
    "encoding=...": "--encoding",
    "delimiter=...": "--delimiter",
    "quote=...": "--quote",
    "escape=...": "--escape",
    "skip_lines=...": "--skip-lines",
    "skip_lines=": "--skip-lines ",
    "header=...": "--no-header",
    "header=False": "--no-header",
    'format="csv"': "--format csv",
    "label=...": "--label",
    "text=...": "--text",
    "id=...": "--id",
    "sheet=...": "--sheet",
    "sql=": "--sql ",
    "labels=...": "--labels",
    "n_features_to_select=": "--features ",
    "alpha=": "--alpha ",
    "delay=": "--delay ",
    "look for its id in history()": "without an ID, the last events are listed (-n for more)",
    ", or call check() to see what is wrong": "",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code.

    Parameters
    ----------
    arguments : sequence of str or None, default None
        The command and its options; None means the arguments of the process.

    Returns
    -------
    0 on success, 2 after an error, with a message on standard error, 3 if more rows were skipped
    than --max-bad allows, 130 if interrupted, 141 if the reader of the output has closed it.
    """
    if sys.stderr is None:
        # Messages would be printed among the answers, and the next file opened would be number 2.
        sys.stderr = open(os.devnull, "w")  # open until the process ends
    if sys.stdout is None:
        return _stopped(
            "standard output is closed: open it, or send it to a file or to /dev/null", 2
        )
    try:
        return _in_words(arguments)
    finally:
        _discard_unwritable()


def _in_words(arguments: Sequence[str] | None) -> int:
    """Run a command; say its error in a sentence."""
    try:
        options = parser().parse_args(arguments)
        with warnings.catch_warnings():
            for each in (MismatchWarning, ReadingWarning):
                warnings.simplefilter("default", each)
            warnings.showwarning = lambda message, *_, **__: print(
                f"kesler: {_option_of(options, spoken(str(message)))}", file=sys.stderr
            )
            return _run(options)
    except KeslerError as error:
        return _stopped(spoken(str(error)), 2)
    except BrokenPipeError:
        return 141
    except OSError as error:
        return _stopped(f"{error.filename or 'the output'}: {error.strerror}", 2)
    except MemoryError as error:
        return _stopped(f"there is not enough memory ({error})", 2)
    except UnicodeEncodeError as error:
        return _stopped(
            f"the output cannot encode {error.object[error.start]!r}: set PYTHONIOENCODING=utf-8", 2
        )
    except KeyboardInterrupt as stop:
        return _stopped(str(stop) or "stopped", 130)


def _run(options: Namespace) -> int:
    # A command is imported when it runs, since importing all of Kesler takes a second.
    module = options.command.replace("-", "_")
    from kesler.cli.json_output import json_alone

    options.opened = {}
    with json_alone(options):
        import_module(f"kesler.cli.{module}").run(options)
    sys.stdout.flush()
    _say_what_is_not_compiled()
    return _exit_code(options)


def _say_what_is_not_compiled() -> None:
    """Say on a terminal how to compile the loops that were interpreted."""
    compiler = sys.modules.get("kesler.compiled.jit.background")
    if compiler is not None and compiler.COMPILING.is_busy and sys.stderr.isatty():
        print(
            "kesler: some loops were interpreted, which takes longer; kesler warm-up compiles all, "
            "once on this machine",
            file=sys.stderr,
        )


def _discard_unwritable() -> None:
    """Discard what cannot be written: at its end the interpreter would try it again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _option_of(options: Namespace, sentence: str) -> str:
    """Return a warning without advice to give an option that only commands of learning have."""
    return sentence if hasattr(options, "on_mismatch") else _ON_MISMATCH.sub("", sentence)


_ON_MISMATCH = re.compile(r"; --on-mismatch [^;]*$")


def _exit_code(options: Namespace) -> int:
    """Say which rows were skipped; return 0 unless they are too many."""
    if not options.opened:
        return 0
    from kesler.cli.losses import report

    return report(options.opened.values(), options.max_bad)


def _stopped(sentence: str, code: int) -> int:
    with suppress(OSError):  # the disk of standard error may be full as well
        print(f"kesler: {sentence}", file=sys.stderr)
    return code


def spoken(sentence: str) -> str:
    """Return a message of the library with arguments replaced by options."""
    from kesler.cli.kinds import spoken_kinds
    from kesler.settings.table import SETTINGS

    for name, setting in SETTINGS.items():
        if setting.read is not None:
            sentence = re.sub(rf"(?<![\w.(-]){name}=", f"{setting.option} ", sentence)
    for argument, option in OPTIONS.items():
        sentence = sentence.replace(argument, option)
    return spoken_kinds(sentence)
