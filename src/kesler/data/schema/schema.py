"""Schema: the kind of each column of a table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from kesler.data.schema.cells import short
from kesler.data.schema.dates import NAMED, is_format
from kesler.data.schema.kinds import KINDS, NOT_LEARNT, Kind, Options
from kesler.data.schema.languages import is_language
from kesler.data.schema.numerals import ANY_DECIMAL, DECIMALS
from kesler.data.schema.units import is_unit_option
from kesler.data.texts import BEGINNING
from kesler.errors import KeslerError

OF_ARRAY = "x"  # columns of arrays are x0, x1 and so on
OF_TEXTS = "text"  # the column of a list of texts
NAMED_KINDS = ", ".join(kind for kind in KINDS if kind != "any")
OTHERS = "*"  # all columns that are not named
NO_CELLS = "no cells in the first rows"  # the reason of a column of numbers among others
MOST_K = 32  # letters of a run of a sequence
MOST_SHOWN = 3  # cells that a column cannot hold
RUNS = ("chars", "subwords")  # of characters, across words and within them
TEXT_FEATURES: Mapping[str, Options] = {
    "words": KINDS["text"].plain,
    "characters": {"ngrams": 0, "chars": (1, 4)},
    "subwords": {"ngrams": 1, "chars": (3, 5)},
}
"""The options of texts by a name for them."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Other options under which all cells of a column so far can be read.

    Parameters
    ----------
    options : mapping
        The options.
    n_cells : int
        The number of cells learnt that are another value under them.
    """

    options: Options
    n_cells: int = 0

    def __reduce__(self) -> Any:
        return Reading, (dict(self.options), self.n_cells)  # read-only mappings cannot be pickled


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    name : str
        Its name; x0, x1 and so on in arrays, "text" in lists of texts.
    kind : str
        One of the kinds in :data:`kesler.data.schema.kinds.KINDS`.
    options : mapping
        What else is known of it: "ngrams", "chars", "subwords" and "beginning" of a text, "decimal"
        and "unit" of a number, "format" and "language" of a date, "length" of a vector, "k" and
        "reverse_complement" of a sequence.
    reason : str
        Why it is of this kind.
    n_cells : int
        The number of cells learnt that are not missing.
    n_misfits, misfits : int, tuple of str
        The number of them that it could not hold and that count as missing, and the first of them.
    others : tuple of Reading
        What its cells so far can be as well.
    example : str
        A cell that is another value under the first of these, in words; "" if there is none.

    Raises
    ------
    KeslerError
        If the kind or an option is not known.
    """

    name: str
    kind: str
    options: Options = field(default_factory=dict)
    reason: str = field(default="given", compare=False)
    n_cells: int = field(default=0, compare=False)
    n_misfits: int = field(default=0, compare=False)
    misfits: tuple[str, ...] = field(default=(), compare=False)
    others: tuple[Reading, ...] = field(default=(), compare=False)
    example: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise KeslerError(
                f"column {self.name!r} cannot be of the kind {short(self.kind)}: choose one of "
                f"{NAMED_KINDS}"
            )
        for option, value in self.options.items():
            if option not in KINDS[self.kind].options or not _holds(option, value):
                raise KeslerError(
                    f"column {self.name!r}, a {self.kind}, cannot have the option "
                    f"{short(option)}: {short(value)}; {_EXPLAINED}"
                )
        if self.options.get("ngrams") == 0 and not any(each in self.options for each in RUNS):
            raise KeslerError(
                f'column {self.name!r} with "ngrams": 0 needs {" or ".join(RUNS)}: {_EXPLAINED}'
            )
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    @property
    def parser(self) -> Kind:
        """The kind, which parses cells."""
        return KINDS[self.kind]

    def __reduce__(self) -> Any:
        """Return what pickles hold; read-only mappings cannot be pickled."""
        counted = self.n_cells, self.n_misfits, self.misfits, self.others, self.example
        return Column, (self.name, self.kind, dict(self.options), self.reason, *counted)

    def __deepcopy__(self, memo: Any) -> Column:
        return self  # nothing in it changes

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON can hold it."""
        options = {k: list(v) if isinstance(v, tuple) else v for k, v in self.options.items()}
        stored = {"name": self.name, "kind": self.kind, "options": options, "reason": self.reason}
        counted = {"n_misfits": self.n_misfits, "misfits": list(self.misfits)}
        others = [{"options": dict(each.options), "n_cells": each.n_cells} for each in self.others]
        doubt = {"others": others, "example": self.example} if others else {}
        n_cells = {"n_cells": self.n_cells} if self.n_cells else {}
        return {**stored, **n_cells, **(counted if self.n_misfits else {}), **doubt}

    def counted(self, n_cells: int, n: int = 0, found: Sequence[str] = ()) -> Column:
        """Return the column with further cells, n of which it cannot hold, such as found."""
        shown = tuple(dict.fromkeys((*self.misfits, *found)))[:MOST_SHOWN]
        changed = {"n_cells": self.n_cells + n_cells, "n_misfits": self.n_misfits + n}
        return self._with({**changed, "misfits": shown})

    def _with(self, changed: Mapping[str, Any]) -> Column:
        """Return the column with other counts, whose options need no check."""
        found = object.__new__(Column)
        for name in Column.__slots__:
            object.__setattr__(found, name, changed.get(name, getattr(self, name)))
        return found

    def counted_as(self, other: Column) -> Column:
        """Return the column with the cells that another one has counted."""
        read = {_key(each.options): each.n_cells for each in other.others}
        others = tuple(
            replace(each, n_cells=each.n_cells + read.get(_key(each.options), 0))
            for each in self.others
        )
        counted = self.counted(other.n_cells, other.n_misfits, other.misfits)
        return replace(counted, others=others)

    @property
    def is_awaited(self) -> bool:
        """Whether it is a column of numbers that has had no cells so far."""
        return self.reason == NO_CELLS and not self.n_cells

    @property
    def has_names(self) -> bool:
        """Whether it is a text of names, which say little beside categories."""
        return self.kind == "text" and self.options.get("ngrams") == 1

    @property
    def is_wrong(self) -> bool:
        """Whether the column can hold no more than half of its cells."""
        return self.n_misfits > 0 and 2 * self.n_misfits >= self.n_cells

    @property
    def counted_misfits(self) -> str:
        """What the column could not hold, in words; "" if nothing.

        Examples
        --------
        >>> Column("len", "number").counted(20_000, 4, ["'pending'"]).counted_misfits
        "4 of 20,000 cells were no numbers, missing: 'pending', ..."
        """
        if not self.n_misfits:
            return ""
        is_one, what = self.n_misfits == 1, self.parser.what.removeprefix("a ")
        were = "was" if is_one else "were"
        what = what if is_one else re.sub(r"^\w+", r"\g<0>s", what)
        more = ", ..." if self.n_misfits > len(self.misfits) else ""
        cells = f"{self.n_misfits:,} of {self.n_cells:,} cells {were} no {what}, missing"
        return f"{cells}: {', '.join(self.misfits)}{more}"

    @property
    def said_misfits(self) -> str:
        """What the column could not hold, as a sentence."""
        advice = f"columns={{{self.name!r}: 'category'}}"
        wrong = f"; as it seems to be of another kind, name it: {advice}" if self.is_wrong else ""
        return f"column {self.name!r}: {self.counted_misfits}{wrong}"

    def uncounted(self) -> Column:
        """Return the column before it has counted any cell."""
        return self._with({"n_cells": 0, "n_misfits": 0, "misfits": ()})

    @property
    def described(self) -> str:
        """The kind with its options.

        Examples
        --------
        >>> Column("body", "text", {"ngrams": 2}).described
        'text (ngrams=2)'
        """
        shown = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.kind} ({shown})" if shown else self.kind

    @property
    def remedy(self) -> str:
        """The argument that names this column, with options by which nothing of it is inferred.

        Examples
        --------
        >>> Column("body", "text").remedy
        "columns={'body': {'kind': 'text', 'ngrams': 1}}"
        >>> Column("when", "date", {"format": "%d/%m/%Y"}).remedy
        "columns={'when': {'kind': 'date', 'format': '%d/%m/%Y'}}"
        """
        options = self.options or KINDS[self.kind].plain
        given = {"kind": self.kind, **options} if options else self.kind
        return f"columns={{{self.name!r}: {given!r}}}"


def _key(options: Options) -> Any:
    return tuple(sorted(options.items()))


_EXPLAINED = (
    f'a text takes "features" (one of {", ".join(TEXT_FEATURES)}), or "ngrams" (0 to 3: the '
    'longest run of words), "chars" (from, to: the lengths of runs of characters, 1 to 8) and '
    '"subwords" (from, to: those of runs within a word and the spaces around it) and "beginning" '
    f"(True: the words of the first {BEGINNING} characters as features of their own), a "
    'number "decimal" ("." or ",") and "unit" (what follows it; "g|kg" for several), '
    f'a date "format" (one of {", ".join(NAMED)}, or as in strptime, such as "%d/%m/%Y", which any '
    'time may follow) and "language" (such as "de", of names of months), a vector "length", a '
    'sequence "k" (1 to 32: the length of its runs of letters) and "reverse_complement" (True for '
    "DNA of either strand)"
)


def _holds(option: str, value: Any) -> bool:
    """Return whether the value of an option is valid."""
    if option == "format":
        return isinstance(value, str) and is_format(value)
    if option == "language":
        return is_language(value)
    if option == "decimal":
        return isinstance(value, str) and value in (*DECIMALS, ANY_DECIMAL)
    if option == "unit":
        return isinstance(value, str) and is_unit_option(value)
    if option in RUNS:
        pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(map(_whole, value))
        return pair and 1 <= value[0] <= value[1] <= 8
    if option == "ngrams":
        return _whole(value) and 0 <= value <= 3
    if option in ("reverse_complement", "beginning"):
        return isinstance(value, bool)
    if option == "k":
        return _whole(value) and 1 <= value <= MOST_K
    return _whole(value) and 1 <= value <= 1 << 20


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a table, in the order of their first occurrence.

    Parameters
    ----------
    columns : tuple of Column
        Columns with different names.

    Examples
    --------
    >>> print(Schema((Column("body", "text"), Column("hours", "number"))))
    column  kind    reason
    body    text    given
    hours   number  given
    """

    columns: tuple[Column, ...] = ()

    def __iter__(self) -> Iterator[Column]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return any(column.name == name for column in self.columns)

    def __getitem__(self, name: str) -> Column:
        """Return the column of a name; raise KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def counted_as(self, earlier: Schema) -> Schema:
        """Return the schema with the cells that the columns of an earlier one have counted."""
        known = {column.name: column for column in earlier}
        return Schema(tuple(c.counted_as(known[c.name]) if c.name in known else c for c in self))

    def uncounted(self) -> Schema:
        """Return the schema whose columns have counted no cells."""
        return Schema(tuple(column.uncounted() for column in self.columns))

    @property
    def misfits(self) -> list[str]:
        """What the columns could not hold, a sentence for each; and how to name another kind.

        Examples
        --------
        >>> Schema((Column("zip", "number").counted(9, 5, ["'K1A'"]),)).misfits
        ["column 'zip': 5 of 9 cells were no numbers, missing: 'K1A', ...; as it seems to be of \
another kind, name it: columns={'zip': 'category'}"]
        """
        return [column.said_misfits for column in self.columns if column.n_misfits]

    @property
    def wrong_kinds(self) -> list[str]:
        """Those of the `misfits` that are of columns which can hold no more than half of them."""
        return [column.said_misfits for column in self.columns if column.is_wrong]

    def changes(self, earlier: Schema) -> list[str]:
        """Return which columns of an earlier schema are of another kind or gone, a sentence each.

        Examples
        --------
        >>> Schema((Column("a", "text"),)).changes(Schema((Column("a", "category"),)))
        ["column 'a' is text now, no longer category, since the first 50 rows are now others; \
to keep its kind, name it: columns={'a': 'category'}"]
        """
        known = {column.name: column for column in earlier}
        changed = [
            f"column {each.name!r} is {each.described} now, no longer "
            f"{known[each.name].described}, since the first 50 rows are now others; to keep its "
            f"kind, name it: {known[each.name].remedy}"
            for each in self
            if known.get(each.name, each) != each
        ]
        gone = [
            f"column {each.name!r} is not learnt any more, since no row has a cell in it now"
            for each in earlier.learnt
            if each.name not in self
        ]
        return changed + gone

    def require_learnt(self) -> None:
        """Raise if all columns are ignored."""
        if self.columns and not self.learnt:
            listed = "; ".join(f"{c.name!r}: {c.kind}, {c.reason}" for c in self.columns)
            raise KeslerError(
                f"all columns are ignored, so that there is nothing to learn from ({listed}): name "
                f"the kind of one, as in columns={{{self.columns[0].name!r}: 'category'}}"
            )

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def learnt(self) -> list[Column]:
        """The columns that are learnt."""
        return [column for column in self.columns if column.kind not in NOT_LEARNT]

    @property
    def measurements(self) -> list[str]:
        """The names of the columns if all that are learnt are numbers, else none."""
        are_numbers = all(column.kind == "number" for column in self.learnt)
        return [column.name for column in self.learnt] if are_numbers else []

    @property
    def has_texts(self) -> bool:
        """Whether a column has texts of several words, sequences or tags."""
        return any(KINDS[each.kind].has_parts and not each.has_names for each in self.columns)

    def of_kind(self, kind: str) -> list[Column]:
        """Return the columns of a kind."""
        return [column for column in self.columns if column.kind == kind]

    def __str__(self) -> str:
        lines = [("column", "kind", "reason"), *map(_line_of, self.columns)]
        widths = [max(len(line[i]) for line in lines) for i in range(3)]
        padded = (
            "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
            for line in lines
        )
        return "\n".join(line.rstrip() for line in padded)

    def to_json(self) -> list[dict[str, Any]]:
        """Return the schema as JSON can hold it."""
        return [column.to_json() for column in self.columns]

    @staticmethod
    def from_json(stored: Any) -> Schema:
        """Return the schema that `to_json` described.

        Raises
        ------
        KeslerError
            If it describes no schema.
        """
        columns = tuple(map(_column_of_json, stored if isinstance(stored, list) else [None]))
        if len({column.name for column in columns}) < len(columns):
            raise KeslerError("the schema in this file names a column twice")
        return Schema(columns)


def _line_of(column: Column) -> tuple[str, str, str]:
    why = "; ".join(filter(None, (column.reason, column.example, column.counted_misfits)))
    return column.name, column.described, why


def _column_of_json(stored: Any) -> Column:
    entries = stored if isinstance(stored, dict) else {}
    name, kind, reason = (entries.get(key) for key in ("name", "kind", "reason"))
    options = entries.get("options")
    if not all(isinstance(text, str) for text in (name, kind, reason)) or not isinstance(
        options, dict
    ):
        raise KeslerError(f"the schema in this file describes a column as {short(stored)}")
    n_cells, n_misfits = entries.get("n_cells", 0), entries.get("n_misfits", 0)
    misfits = entries.get("misfits", [])
    if not (0 <= _number(n_misfits) and 0 <= _number(n_cells) and isinstance(misfits, list)):
        raise KeslerError(f"the schema in this file describes a column as {short(stored)}")
    column = Column(str(name), str(kind), _tuples(options), str(reason))
    counted = column.counted(n_cells, n_misfits, tuple(map(str, misfits)))
    return replace(counted, **_doubt_of_json(column, entries))


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}


def _number(value: Any) -> int:
    return value if _whole(value) else -1


def _doubt_of_json(column: Column, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other readings of a column, and the example."""
    others = entries.get("others", [])
    if not (isinstance(others, list) and all(isinstance(o, dict) for o in others)):
        raise KeslerError(f"the schema in this file describes a column as {short(entries)}")
    readings = [
        Reading(replace(column, options=_tuples(o["options"])).options, _number(o.get("n_cells")))
        for o in others
        if isinstance(o.get("options"), dict)
    ]
    return {"others": tuple(readings), "example": str(entries.get("example", ""))}


def given_columns(columns: Any) -> dict[str, Column]:
    """Return the columns that a user names: ``{"body": "text"}``, or with options a mapping.

    The name "*" stands for all others; the kind is inferred where there are only options.

    Raises
    ------
    KeslerError
        If it is no such mapping.

    Examples
    --------
    >>> given_columns({"body": {"kind": "text", "ngrams": 2}})["body"].options["ngrams"]
    2
    """
    if not isinstance(columns, Mapping):
        raise KeslerError(
            f'columns={short(columns)}: give "auto", None, or a mapping of names of columns to '
            f'kinds, such as {{"body": "text"}}; the kinds are {NAMED_KINDS}'
        )
    return {name: _given(name, value) for name, value in columns.items()}


def _given(name: Any, value: Any) -> Column:
    if not isinstance(name, str):
        raise KeslerError(
            f"columns={{{name!r}: ...}}: names are texts; those of the columns of an array are "
            '"x0", "x1" and so on'
        )
    if not isinstance(value, Mapping):
        return Column(name, value)
    options = _tuples({key: each for key, each in value.items() if key != "kind"})
    features = options.pop("features", None)
    if features is not None:
        if not isinstance(features, str) or features not in TEXT_FEATURES or options:
            raise KeslerError(
                f'column {name!r} cannot have "features": {short(features)}: choose one of '
                f"{', '.join(TEXT_FEATURES)}, without other options"
            )
        options = dict(TEXT_FEATURES[features])
    return Column(name, value.get("kind", "any" if features is None else "text"), options)


def named_column(given: Mapping[str, Column], name: str) -> Column | None:
    """Return what a user said of a column, or of all others; None if nothing."""
    found = given.get(name, given.get(OTHERS))
    return found and replace(found, name=name)
