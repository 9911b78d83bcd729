"""Arguments of the commands and their help texts."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter
from collections.abc import Callable
from typing import Any

import kesler
from kesler.cli import descriptions
from kesler.cli.former import Former
from kesler.cli.parsing import Command, Parser
from kesler.cli.reading_arguments import add_input, add_reading
from kesler.cli.values import (
    coverage,
    positive,
    seed,
    separator,
    share_of_rows,
)

WRITTEN = "model file written by kesler learn"


def parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    purpose = str(kesler.__doc__).partition("\n")[0]
    root = Parser(
        prog="kesler",
        description=f"{purpose}\n\n{descriptions.ORDER}",
        epilog=descriptions.EXIT,
        formatter_class=RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=f"kesler {kesler.__version__}")
    commands = root.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Command
    )

    for name, summary, add in (
        ("compare", "compare several methods on one stream", _compare),
        ("journal", "verify a journal", _journal),
        ("learn", "learn from a stream and write the model", _learn),
        ("predict", "print the predicted class of each row", _predict),
        ("explain", "print why rows have their class", _explain),
        ("mail", "learn a mailbox, and file what is new in it", _mail),
        ("serve", "serve the models of a journal, and a page", _serve),
        ("share", "select features shared by all classes", _share),
        ("show", "print the contents of a model file", _show),
        ("test", "report what a model gets wrong", _test),
        ("undo", "take back answers of a journal", _undo),
        ("warm-up", "compile everything beforehand", _nothing),
    ):
        key = name.replace("-", "_").upper()
        what, examples = getattr(descriptions, key), getattr(descriptions, f"{key}_EXAMPLES")
        commands.add_parser(name, help=summary, add=add, description=what, epilog=examples)
    return root


def _model(command: ArgumentParser, what: str) -> None:
    command.add_argument("model", metavar="MODEL", help=what)
    order = f"the model is named first: {command.prog} {{}} INPUT"
    command.add_argument("--model", action=Former, now=order)


def _top(add: Callable[..., Any], what: str, **options: Any) -> None:
    add("-n", type=positive, metavar="N", help=what, **options)
    add("--top", action=Former, now="give -n {}")


def _json(command: ArgumentParser, what: str) -> None:
    shown = f"also write {what} to a JSON file; - prints it in place of the text"
    command.add_argument("--json", metavar="FILE", help=shown)


def _compare(command: Command) -> None:
    from kesler.cli.names import HYPOTHESES, listed
    from kesler.evaluation.methods import BASELINES

    command.add_argument("inputs", metavar="INPUT", nargs="+", help="source of the rows; see above")
    command.add_argument(
        "--methods",
        metavar="LIST",
        help="methods separated by commas, each HYPOTHESES[:UPDATE[:C]], where HYPOTHESES is "
        f"{listed(HYPOTHESES)}, several of them joined by +; or default, ensemble or kernel for "
        "the default learner, with that update or an rbf kernel; or a baseline: "
        f"{listed(BASELINES)} (default: see above)",
    )
    _learning(command, "hypotheses", "epochs")
    command.add_argument("-n", action=Former, now="give --top {}")
    command.add_argument(
        "--top",
        type=positive,
        metavar="K",
        help="also print how often the class of a row was among the K of highest score, and the "
        "NDCG of these: the mean of 1 / log2(1 + place)",
    )
    command.add_argument(
        "--delay",
        type=seed,
        default=0,
        metavar="N",
        help="answers arrive N rows late: row t is learnt before row t + N is predicted; prints "
        "how well confidences then hold; a row takes 0.3 ms (texts) to 2 ms (measurements), and "
        "400 bytes of memory for each method",
    )
    command.add_argument(
        "--bounds",
        action="store_true",
        help="print the mistake bound of each method in addition to its mistakes, for the best "
        "competitor found in hindsight; stores all rows in memory and needs about 40 more passes",
    )
    command.add_argument(
        "--plot",
        metavar="FILE",
        help="plot cumulative mistakes by trials (.png, .svg or .pdf; needs kesler[plots])",
    )
    add_reading(command)


def _learn(command: Command) -> None:
    _model(command, "model file to write")
    add_input(command)
    _learning(command, "label_budget")
    command.add_argument(
        "--checkpoint", type=positive, metavar="N", help="also write the model every N rows"
    )
    command.add_argument(
        "--resume",
        action="store_true",
        help="continue learning with the model in MODEL: after the rows of INPUT that it has "
        "learnt, or from the start of an INPUT that is new; without further rows, nothing is done",
    )
    add_reading(command)


def _learning(command: Command, *left_out: str) -> None:
    """Add the options of settings, except those left out, and of a run."""
    from kesler.cli import names
    from kesler.settings.table import SETTINGS

    command.explain(names.formats(), names.parts())
    add = command.add_argument
    for name, setting in SETTINGS.items():
        if setting.read is None or name in left_out:
            continue
        if setting.read is bool:
            add(setting.option, action="store_true", default=None, help=names.help_of(setting))
        else:
            add(
                setting.option,
                type=setting.read,
                metavar=setting.metavar,
                help=names.help_of(setting),
            )
    add(
        "--shuffle",
        type=seed,
        metavar="SEED",
        help="shuffle the rows with this seed; reads all rows into memory first",
    )
    _json(command, "the table and the summary")


def _predict(command: Command) -> None:
    from kesler.cli import names

    command.explain(names.formats())
    _model(command, WRITTEN)
    add_input(command)
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--scores",
        action="store_true",
        help="print the class, then class:score for every class, best first, separated by tabs",
    )
    _top(
        what.add_argument,
        "print the N best classes, best first, separated by tabs; --json-lines and --output "
        "add their scores and probabilities",
    )
    what.add_argument(
        "--coverage",
        type=coverage,
        metavar="SHARE",
        help="print a set of classes, separated by tabs, that contains the right one in this share "
        "of the rows, from 0.8 on, such as 0.9; it may contain (new), and may be empty",
    )
    what.add_argument(
        "--path",
        type=separator,
        metavar="SEPARATOR",
        help="of classes that are paths, such as taxa with ';' between their ranks: print the path "
        "down to the last rank of a probability of at least --min-confidence (default: 0.9); it "
        "may be empty",
    )
    command.add_argument(
        "--min-confidence",
        type=share_of_rows,
        metavar="P",
        help="print an empty field instead of a class that is right with a probability below P",
    )
    command.add_argument(
        "--json-lines",
        action="store_true",
        help='print one JSON object for each row: {"label": ...} with "scores", "top" or "set" and '
        '"may_be_new", or with "nodes", those of the path; "label" is null below '
        '--min-confidence, which adds "confidence"',
    )
    command.add_argument(
        "--output",
        metavar="FILE",
        help="write a table in place of lines: row number, path of a message, class and confidence "
        "of each row, with what --id, --coverage, --scores or -n add (.csv, .parquet or .jsonl)",
    )
    command.add_argument(
        "--id",
        metavar="COLUMN",
        help="column that identifies the rows, or header of mail such as Message-ID, for --output "
        "and --json-lines",
    )
    add_reading(command)


def _journal(command: Command) -> None:
    command.add_argument("action", choices=["verify", "export"], help="what to do")
    _model_of_journal(command)


def _model_of_journal(command: Command) -> None:
    command.add_argument("database", metavar="DATABASE", help="file of the journal")
    command.add_argument("--model", metavar="NAME", help="name of a model (default: the only one)")


def _undo(command: Command) -> None:
    _model_of_journal(command)
    add = command.add_argument
    add("ids", metavar="ID", nargs="*", help="id of a row, a relabel, a rename, a merge or an undo")
    add(
        "-n",
        type=positive,
        default=20,
        metavar="N",
        help="number of events that are printed without an ID (default: %(default)s)",
    )


def _serve(command: Command) -> None:
    command.add_argument("database", metavar="DATABASE", help="file of the journal")
    add = command.add_argument
    add("--host", default="127.0.0.1", metavar="ADDRESS", help="address (default: 127.0.0.1)")
    add("--port", type=seed, default=8000, metavar="N", help="port (default: 8000)")
    add("--token-file", metavar="FILE", help="file of the tokens, one a line; see above")
    add("--no-tokens", action="store_true", help="let everybody on this machine do everything")
    for option, unit, what in (
        ("--max-body", "BYTES", "largest request, and longest line of a stream (default: 1048576)"),
        ("--max-import", "BYTES", "largest file and largest stream (default: 67108864)"),
        ("--max-rows", "N", "most rows of a request, a file or a stream (default: 100000)"),
        (
            "--max-connections",
            "N",
            "most connections; beyond, that which is silent for longest is closed (default: 500)",
        ),
        (
            "--patience",
            "SECONDS",
            "time after which a client that does not go on is left (default: 15)",
        ),
        ("--rate", "N", "most requests a second of each token, or of each address (default: 5000)"),
    ):
        add(option, type=positive, metavar=unit, help=what)


def _test(command: Command) -> None:
    from kesler.cli import names

    command.explain(names.formats())
    _model(command, WRITTEN)
    add_input(command)
    add = command.add_argument
    add(
        "--report",
        metavar="FILE",
        help="also write the report as one page of HTML (needs kesler[report])",
    )
    _json(command, "the report")
    _top(
        add,
        "number of confused pairs and of rows most surely wrong that are listed (default: "
        "%(default)s)",
        default=10,
    )
    add_reading(command)


def _explain(command: Command) -> None:
    from kesler.cli import names

    command.explain(names.formats())
    _model(command, WRITTEN)
    add_input(command)
    command.add_argument(
        "--class",
        dest="explained",
        metavar="LABEL",
        help="class to explain, which is label in Python; --label names a column (default: the "
        "predicted class of each row)",
    )
    command.add_argument(
        "--rival",
        metavar="LABEL",
        help="class that it is compared with (default: the best of the others)",
    )
    _top(
        command.add_argument,
        "number of words, pairs and cells to print; the others are summed (default: %(default)s)",
        default=10,
    )
    command.add_argument(
        "--features", action="store_true", help="print single features, such as runs of characters"
    )
    command.add_argument(
        "--json-lines", action="store_true", help="print one JSON object for each row"
    )
    add_reading(command)


def _mail(command: Command) -> None:
    from kesler.cli.mail_arguments import add_actions

    add_actions(command, Command)


def _nothing(command: Command) -> None:
    """Add no arguments."""


def _show(command: Command) -> None:
    command.add_argument("model", metavar="MODEL", help=f"{WRITTEN} or by save")
    _json(command, "the contents")


def _share(command: Command) -> None:
    from kesler.cli import names
    from kesler.dictionaries.registry import DICTIONARIES
    from kesler.sharing.greedy import RULES
    from kesler.sharing.shareboost import PENALTIES, SCALES

    of_dictionaries = {name: names.summary(each) for name, each in DICTIONARIES.items()}
    command.explain(names.formats(), f"--dictionary:\n{names.table(of_dictionaries)}")
    add_input(command)
    add = command.add_argument
    add(
        "--features",
        type=positive,
        default=10,
        metavar="N",
        help="maximum number of features to select (default: %(default)s)",
    )
    add(
        "--dictionary",
        choices=tuple(DICTIONARIES),
        default="columns",
        metavar="NAME",
        help=f"candidate features: {names.listed(DICTIONARIES)} (default: %(default)s)",
    )
    add(
        "--choice",
        choices=tuple(RULES),
        help="criterion of selection: the largest gradient (default), or the largest decrease "
        "of the loss along the gradient (line), with optimal weights of the candidate (column), or "
        "with all weights optimised again (full, slow)",
    )
    add(
        "--scale",
        choices=tuple(scale or "none" for scale in SCALES),
        help="divide gradients by the spread of each feature, so that the selection does not "
        "depend on units of measurement (default), or do not scale (none)",
    )
    add(
        "--penalty",
        choices=tuple(penalty for penalty in PENALTIES if penalty is not None),
        help="penalty on the weights of selected features: the sum of their squares, of their "
        "absolute values (1-1), of the largest absolute weight of each feature, or of the norm of "
        "each feature (default: none)",
    )
    add("--alpha", type=float, metavar="NUMBER", help="coefficient of the penalty (default: 0.001)")
    held = command.add_mutually_exclusive_group()
    held.add_argument(
        "--valid", metavar="FILE", help="validation rows, read in the same way as INPUT"
    )
    held.add_argument(
        "--holdout",
        type=share_of_rows,
        metavar="SHARE",
        help="hold out this share of the rows, at random, for validation",
    )
    add(
        "--plot",
        metavar="FILE",
        help="plot the validation error, or the loss if there is none, by number of features "
        "(.png, .svg or .pdf; needs kesler[plots])",
    )
    add(
        "--export",
        metavar="FILE",
        help="write a predictor that runs without Kesler: .py (NumPy only), .c (C99) or .onnx "
        "(needs kesler[onnx])",
    )
    _json(command, "the table")
    add_reading(command)
