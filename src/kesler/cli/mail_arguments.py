"""Arguments of kesler mail, whose options are the settings of a mailbox."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kesler.cli.descriptions import MAIL_EXAMPLES
from kesler.cli.values import positive

if TYPE_CHECKING:
    from kesler.cli.parsing import Command

ACTIONS = {
    "setup": "check the connection, propose classes, and write the settings",
    "learn": "read the folders in the order of dates, and print the mistakes on the way",
    "watch": "learn what is done in the mailbox, and file what is new",
    "status": "print what is known of the mailbox, without asking its server",
    "report": "print the mistakes by folder, and what would be moved",
    "explain": "print why a message is predicted to be of a class",
    "undo": "take back what was learnt of a message, and the move of it",
    "deliver": "print the folder of a message on standard input, as kesler serve predicts it",
}


def add_actions(command: ArgumentParser, parser: type[Command]) -> None:
    """Add the actions with their arguments.

    Parameters
    ----------
    command : the parser of kesler mail.
    parser : the class of the parsers of actions.
    """
    actions = command.add_subparsers(
        dest="mail_action", required=True, metavar="ACTION", parser_class=parser
    )
    for name, summary in ACTIONS.items():
        add = _ADDED.get(name, _settings)
        said = f"{summary.capitalize()}."
        actions.add_parser(name, help=summary, add=add, description=said, epilog=examples_of(name))


def examples_of(action: str) -> str:
    """Return the examples of kesler mail that set up a mailbox, and those of an action."""
    head, *lines = MAIL_EXAMPLES.splitlines()
    kept = [each for each in lines if "--maildir" in each or f"kesler mail {action} " in each]
    return "\n".join([head, *kept])


def _settings(command: ArgumentParser) -> None:
    command.add_argument("settings", metavar="SETTINGS", help="file of the settings (TOML)")


def _setup(command: ArgumentParser) -> None:
    from kesler.mail.settings import SETTINGS

    _settings(command)
    for name in SETTINGS:
        _setting(command, name)


def _setting(command: ArgumentParser, name: str) -> None:
    """Add the option of a setting; values that are none of it are refused."""
    from kesler.mail.settings import SETTINGS

    setting = SETTINGS[name]
    option, default = f"--{name.replace('_', '-')}", setting.default
    if isinstance(default, list):
        shown = "proposed by special use and name"
        command.add_argument(
            option, action="append", metavar="NAME", help=f"{setting.help} (default: {shown})"
        )
        return
    shown = "" if default in (None, "") else f" (default: {default})"
    command.add_argument(
        option,
        type=_reader(name),
        metavar="VALUE",
        help=f"{setting.help}{shown}",
    )


def _reader(name: str) -> Callable[[str], Any]:
    from kesler.mail.settings import SECRET, SETTINGS

    setting = SETTINGS[name]
    kind = type(setting.default) if isinstance(setting.default, (int, float)) else str

    def read(token: str) -> Any:
        try:
            value = kind(token)
        except ValueError:
            value = None
        if value is None or not setting.check(value):
            given = "its value" if name == SECRET else repr(token)
            raise ArgumentTypeError(f"{given}: give {setting.values}")
        return value

    return read


def _watch(command: ArgumentParser) -> None:
    _settings(command)
    for name in ("action", "error", "every"):
        _setting(command, name)
    command.add_argument("--once", action="store_true", help="look once, and end")


def _status(command: ArgumentParser) -> None:
    _settings(command)
    _number(command, 20, "suggestions")
    command.add_argument(
        "--max-age",
        type=positive,
        metavar="SECONDS",
        help="end with the code 2 if the last look of watch is older, for checks of health; looks "
        "are noted once a minute",
    )


def _number(command: ArgumentParser, default: int, what: str) -> None:
    shown = f"{what} to print (default: {default})"
    command.add_argument("-n", type=positive, default=default, metavar="N", help=shown)


def _message(command: ArgumentParser) -> None:
    _settings(command)
    command.add_argument("message", metavar="MESSAGE-ID", help="Message-ID of the message")


def _explain(command: ArgumentParser) -> None:
    _message(command)
    _number(command, 10, "words and facts")


def _deliver(command: ArgumentParser) -> None:
    from kesler.mail.deliver import add_arguments

    add_arguments(command)


_ADDED = {
    "deliver": _deliver,
    "setup": _setup,
    "watch": _watch,
    "status": _status,
    "explain": _explain,
    "undo": _message,
}
