"""Arguments of the commands and their help texts."""

from __future__ import annotations

import sys
from argparse import (
    Action,
    ArgumentParser,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Callable
from typing import Any

import kesler
from kesler.cli.descriptions import (
    COMPARE,
    COMPARE_EXAMPLES,
    EXIT,
    EXPLAIN,
    EXPLAIN_EXAMPLES,
    JOURNAL,
    JOURNAL_EXAMPLES,
    LEARN,
    LEARN_EXAMPLES,
    MAIL,
    MAIL_EXAMPLES,
    PREDICT,
    PREDICT_EXAMPLES,
    SERVE,
    SERVE_EXAMPLES,
    SHARE,
    SHARE_EXAMPLES,
    SHOW,
    SHOW_EXAMPLES,
    TEST,
    TEST_EXAMPLES,
    UNDO,
    UNDO_EXAMPLES,
    WARM_UP,
    WARM_UP_EXAMPLES,
)
from kesler.cli.values import (
    character,
    coverage,
    positive,
    seed,
    separator,
    share_of_rows,
    share_up_to_1,
)


def parser() -> ArgumentParser:
    """Return the parser of the whole command line."""
    purpose = str(kesler.__doc__).partition("\n")[0]
    root = Parser(
        prog="kesler", description=purpose, epilog=EXIT, formatter_class=RawDescriptionHelpFormatter
    )
    root.add_argument("--version", action="version", version=f"kesler {kesler.__version__}")
    commands = root.add_subparsers(
        dest="command", required=True, metavar="COMMAND", parser_class=Command
    )

    def command(
        name: str, summary: str, add: Callable[[Command], None], description: str, examples: str
    ) -> None:
        commands.add_parser(name, help=summary, add=add, description=description, epilog=examples)

    command("compare", "compare several methods on one stream", _compare, COMPARE, COMPARE_EXAMPLES)
    command("journal", "verify a journal", _journal, JOURNAL, JOURNAL_EXAMPLES)
    command("learn", "learn from a stream and write the model", _learn, LEARN, LEARN_EXAMPLES)
    command("predict", "print the predicted class of each row", _predict, PREDICT, PREDICT_EXAMPLES)
    command("explain", "print why rows have their class", _explain, EXPLAIN, EXPLAIN_EXAMPLES)
    command(
        "mail",
        "learn a mailbox, and file what is new in it",
        _mail,
        MAIL,
        MAIL_EXAMPLES,
    )
    command("serve", "serve the models of a journal, and a page", _serve, SERVE, SERVE_EXAMPLES)
    command("share", "select features shared by all classes", _share, SHARE, SHARE_EXAMPLES)
    command("show", "print the contents of a model file", _show, SHOW, SHOW_EXAMPLES)
    command("test", "report what a model gets wrong", _test, TEST, TEST_EXAMPLES)
    command("undo", "take back answers of a journal", _undo, UNDO, UNDO_EXAMPLES)
    command("warm-up", "compile everything beforehand", _nothing, WARM_UP, WARM_UP_EXAMPLES)
    return root


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
        """Add the arguments at the first call, and parse."""
        if not self._is_complete:
            self._add(self)
            self._is_complete = True
        return super().parse_known_args(args, namespace)

    def explain(self, *tables: str) -> None:
        """Insert tables of names between the options and the examples."""
        self.epilog = "\n\n".join([*tables, self.epilog or ""])


class Source(Action):
    """INPUT, of which a query behind the path of a database becomes the option --sql."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, value: Any, option: str | None = None
    ) -> None:
        """Set the path, and the query if there is one."""
        from kesler.readers.opening import split_query

        path, query = split_query(value)
        setattr(namespace, self.dest, path)
        if query is not None:
            Query.set(parser, namespace, query)


class Query(Action):
    """The option --sql, which is given once."""

    def __call__(
        self, parser: ArgumentParser, namespace: Namespace, value: Any, option: str | None = None
    ) -> None:
        """Set the query."""
        self.set(parser, namespace, value)

    @staticmethod
    def set(parser: ArgumentParser, namespace: Namespace, query: str) -> None:
        """Set the query; end with a message if there is one already."""
        if namespace.sql is not None:
            parser.error("there are two queries: give one, behind the path or as --sql")
        namespace.sql = query


def _input(command: ArgumentParser) -> None:
    command.add_argument(
        "input", metavar="INPUT", action=Source, help="source of the rows; see above"
    )


def _reading(command: ArgumentParser) -> None:
    from kesler.cli.names import listed
    from kesler.readers.opening import READERS

    add = command.add_argument_group("reading").add_argument
    add(
        "--format",
        metavar="NAME",
        help=f"{listed(READERS)}; default: by the suffix or first line of INPUT",
    )
    add("--label", metavar="NAME", help="column or field of the labels (JSON: label)")
    add(
        "--text",
        metavar="NAMES",
        help="columns or fields of text, separated by commas, each with its features if others "
        "than usual are wanted, such as body:subwords (words, characters or subwords); all other "
        "columns are ignored (JSON: text), unless --table or another kind is given",
    )
    add(
        "--table",
        action="store_true",
        help="learn from all columns of a table, or fields of JSON, each by its kind: text, "
        "category, number, date, list of tags or of numbers; other kinds are inferred from the "
        "first 50 rows, and nearly unique identifiers are ignored (default for rows of which the "
        "first hold a text, a date, a list or an identifier)",
    )
    for kind, what in (
        ("number", "numbers, such as 3.5, 1,200 or 7.85M"),
        ("category", "categories"),
        (
            "date",
            "dates, each with its format if its cells do not tell, such as when:%%d/%%m/%%Y or "
            "when:epoch",
        ),
        (
            "sequence",
            "sequences of DNA or proteins, each with the length of its runs of letters if others "
            "than 8 and 3 are wanted, such as dna:7, or dna:7:both where either strand may be read",
        ),
        ("ignore", "nothing to learn from"),
    ):
        add(
            f"--{kind}",
            metavar="NAMES",
            help=f"columns of {what}, separated by commas; implies --table",
        )
    add(
        "--decimal",
        choices=(".", ","),
        help="decimal sign of the numbers of a table (default: found in each column); implies "
        "--table",
    )
    add(
        "--skip-bad",
        action="store_true",
        help="skip and count rows that cannot be read (default: stop at the first such row)",
    )
    add(
        "--max-bad",
        action=_SkipBad,
        type=share_up_to_1,
        metavar="SHARE",
        help="end with exit code 3 if more than this share of the rows is skipped (default: 0.1); "
        "implies --skip-bad",
    )
    add(
        "--encoding",
        metavar="NAME",
        help="encoding of text, such as windows-1252 (default: by the byte order mark, else utf-8, "
        "else found in the text and named on standard error)",
    )
    add("--sheet", metavar="NAME", help="sheet of a workbook (default: the first)")
    add(
        "--labels",
        metavar="FILE",
        help="labels of fasta and fastq by their identifiers: an identifier, a tab and a label in "
        "each line",
    )
    add(
        "--sql",
        metavar="QUERY",
        action=Query,
        help="query whose rows are read from a database, which may also stand behind INPUT and a "
        "question mark (default: all rows of its only table)",
    )
    add(
        "--delimiter",
        type=character,
        metavar="CHARACTER",
        help="between the cells of csv, such as ';' or tab (default: found in the first rows)",
    )
    add(
        "--quote",
        type=character,
        metavar="CHARACTER",
        help="around cells of csv; none if quotes are letters as others (default: found)",
    )
    add(
        "--escape",
        type=character,
        metavar="CHARACTER",
        help="before letters of csv without their special meaning, such as '\\' (default: found)",
    )
    add(
        "--skip-lines",
        type=seed,
        metavar="N",
        help="lines before the header of csv (default: comments, titles and lines above the first "
        "that names the columns of --label, --text and --id)",
    )
    add(
        "--no-header",
        action="store_true",
        help="the first row of csv names no columns, which are called 1, 2, 3, ... (default only "
        "if --label is such a number and the first row holds numbers)",
    )
    add(
        "--max-line",
        type=positive,
        metavar="BYTES",
        help="refuse a longer line of text, before more memory is taken (default: 67108864)",
    )


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
    command.add_argument(
        "-n",
        "--top",
        type=positive,
        metavar="K",
        help="also print how often the class of a row was among the K of highest score, and the "
        "NDCG of these: the mean of 1 / log2(1 + place)",
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
    _reading(command)


def _learn(command: Command) -> None:
    _input(command)
    command.add_argument("--model", required=True, metavar="FILE", help="model file to write")
    _learning(command, "label_budget")
    command.add_argument(
        "--checkpoint", type=positive, metavar="N", help="also write the model every N rows"
    )
    command.add_argument(
        "--resume",
        action="store_true",
        help="continue learning with the model in FILE: after the rows of INPUT that it has "
        "learnt, or from the start of an INPUT that is new; without further rows, nothing is done",
    )
    _reading(command)


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
    add("--json", metavar="FILE", help="also write the table and the summary to a JSON file")


def _predict(command: Command) -> None:
    from kesler.cli import names

    command.explain(names.formats())
    _input(command)
    command.add_argument(
        "--model", required=True, metavar="FILE", help="model file written by kesler learn"
    )
    what = command.add_mutually_exclusive_group()
    what.add_argument(
        "--scores",
        action="store_true",
        help="print the class, then class:score for every class, best first, separated by tabs",
    )
    what.add_argument(
        "-n",
        "--top",
        dest="n",
        type=positive,
        metavar="K",
        help="print the K best classes, best first, separated by tabs; --json-lines and --output "
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
    _reading(command)


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
    add(
        "--max-body",
        type=positive,
        metavar="BYTES",
        help="largest request, and longest line of a stream (default: 1048576)",
    )
    add(
        "--max-import",
        type=positive,
        metavar="BYTES",
        help="largest file and largest stream (default: 67108864)",
    )
    add(
        "--max-rows",
        type=positive,
        metavar="N",
        help="most rows of a request, a file or a stream (default: 100000)",
    )
    add(
        "--max-connections",
        type=positive,
        metavar="N",
        help="most connections; beyond, that which is silent for longest is closed (default: 500)",
    )
    add(
        "--patience",
        type=positive,
        metavar="SECONDS",
        help="time after which a client that does not go on is left (default: 15)",
    )
    add(
        "--rate",
        type=positive,
        metavar="N",
        help="most requests a second of each token, or of each address (default: 5000)",
    )


def _test(command: Command) -> None:
    from kesler.cli import names

    command.explain(names.formats())
    command.add_argument("model", metavar="MODEL", help="model file written by kesler learn")
    _input(command)
    add = command.add_argument
    add(
        "--report",
        metavar="FILE",
        help="also write the report as one page of HTML (needs kesler[report])",
    )
    add("--json", action="store_true", help="print one JSON object instead")
    add(
        "-n",
        "--top",
        dest="n",
        type=positive,
        default=10,
        metavar="N",
        help="number of confused pairs and of rows most surely wrong that are listed (default: "
        "%(default)s)",
    )
    _reading(command)


def _explain(command: Command) -> None:
    from kesler.cli import names

    command.explain(names.formats())
    command.add_argument("model", metavar="MODEL", help="model file written by kesler learn")
    _input(command)
    command.add_argument(
        "--class",
        dest="explained",
        metavar="LABEL",
        help="class to explain (default: the predicted class of each row)",
    )
    command.add_argument(
        "--rival",
        metavar="LABEL",
        help="class that it is compared with (default: the best of the others)",
    )
    command.add_argument(
        "-n",
        "--top",
        dest="n",
        type=positive,
        default=10,
        metavar="N",
        help="number of features to print; the others are summed (default: %(default)s)",
    )
    command.add_argument(
        "--json-lines", action="store_true", help="print one JSON object for each row"
    )
    _reading(command)


def _mail(command: Command) -> None:
    from kesler.cli.mail_arguments import add_actions

    add_actions(command, Command)


def _nothing(command: Command) -> None:
    """Add no arguments."""


def _show(command: Command) -> None:
    command.add_argument(
        "model", metavar="MODEL", help="model file written by kesler learn or save"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object instead")


def _share(command: Command) -> None:
    from kesler.cli import names
    from kesler.dictionaries.registry import DICTIONARIES
    from kesler.sharing.greedy import RULES
    from kesler.sharing.shareboost import PENALTIES, SCALES

    of_dictionaries = {name: names.summary(each) for name, each in DICTIONARIES.items()}
    command.explain(names.formats(), f"--dictionary:\n{names.table(of_dictionaries)}")
    _input(command)
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
    add("--json", metavar="FILE", help="also write the table to a JSON file")
    _reading(command)


class _SkipBad(Action):
    """An option that implies --skip-bad."""

    def __call__(self, _: Any, options: Namespace, values: Any, *__: Any) -> None:
        setattr(options, self.dest, values)
        options.skip_bad = True
