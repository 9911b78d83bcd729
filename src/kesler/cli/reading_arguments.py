"""Arguments of the commands that read rows."""

from __future__ import annotations

from argparse import Action, ArgumentParser, Namespace
from typing import Any

from kesler.cli.values import character, positive, seed, share_up_to_1


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


def add_input(command: ArgumentParser) -> None:
    """Add INPUT."""
    command.add_argument(
        "input", metavar="INPUT", action=Source, help="source of the rows; see above"
    )


def add_reading(command: ArgumentParser) -> None:
    """Add the options that say how INPUT is read."""
    from kesler.cli.names import listed
    from kesler.data.schema.kinds import KINDS, WITH_OPTION
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
    for kind in WITH_OPTION:
        add(
            f"--{kind}",
            metavar="NAMES",
            help=f"columns of {KINDS[kind].listed}, separated by commas; implies --table",
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


class _SkipBad(Action):
    """An option that implies --skip-bad."""

    def __call__(self, _: Any, options: Namespace, values: Any, *__: Any) -> None:
        setattr(options, self.dest, values)
        options.skip_bad = True
