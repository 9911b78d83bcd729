"""Schema: the kind of each column of a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from kesler.data.schema.cells import short
from kesler.data.schema.kinds import DATE_FORMATS, KINDS, Kind, Options
from kesler.data.schema.numerals import DECIMALS, LONGEST_UNIT
from kesler.errors import KeslerError

OF_ARRAY = "x"  # columns of arrays are x0, x1 and so on
OF_TEXTS = "text"  # the column of a list of texts
NOT_LEARNT = ("identifier", "ignore")
MOST_SHOWN = 3  # cells that a column cannot hold


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
        What else is known of it: "ngrams" and "chars" of a text, "decimal" and "unit" of a number,
        "format" of a date, "length" of a vector.
    reason : str
        Why it is of this kind.
    n_misfits, misfits : int, tuple of str
        The number of cells that it could not hold and that count as missing, and the first of them.

    Raises
    ------
    KeslerError
        If the kind or an option is not known.
    """

    name: str
    kind: str
    options: Options = field(default_factory=dict)
    reason: str = field(default="given", compare=False)
    n_misfits: int = field(default=0, compare=False)
    misfits: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise KeslerError(
                f"column {self.name!r} cannot be of the kind {short(self.kind)}: choose one of "
                f"{', '.join(KINDS)}"
            )
        for option, value in self.options.items():
            if option not in KINDS[self.kind].options or not _holds(option, value):
                raise KeslerError(
                    f"column {self.name!r}, a {self.kind}, cannot have the option "
                    f"{short(option)}: {short(value)}; {_EXPLAINED}"
                )
        object.__setattr__(self, "options", MappingProxyType(dict(self.options)))

    @property
    def parser(self) -> Kind:
        """The kind, which parses cells."""
        return KINDS[self.kind]

    def __reduce__(self) -> Any:
        """Return what pickles hold; read-only mappings cannot be pickled."""
        counted = self.n_misfits, self.misfits
        return Column, (self.name, self.kind, dict(self.options), self.reason, *counted)

    def __deepcopy__(self, memo: Any) -> Column:
        return self  # nothing in it changes

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON can hold it."""
        options = {k: list(v) if isinstance(v, tuple) else v for k, v in self.options.items()}
        stored = {"name": self.name, "kind": self.kind, "options": options, "reason": self.reason}
        counted = {"n_misfits": self.n_misfits, "misfits": list(self.misfits)}
        return {**stored, **counted} if self.n_misfits else stored

    def with_misfits(self, n: int, found: Sequence[str]) -> Column:
        """Return the column with n more cells that it cannot hold, of which some are found."""
        if not n:
            return self
        shown = tuple(dict.fromkeys((*self.misfits, *found)))[:MOST_SHOWN]
        return replace(self, n_misfits=self.n_misfits + n, misfits=shown)

    @property
    def counted_misfits(self) -> str:
        """What the column could not hold, in words; "" if nothing.

        Examples
        --------
        >>> Column("len", "number").with_misfits(3, ["'pending'"]).counted_misfits
        "3 cells were no number, missing: 'pending', ..."
        """
        if not self.n_misfits:
            return ""
        what = self.parser.what.removeprefix("a ")
        cells = "1 cell was" if self.n_misfits == 1 else f"{self.n_misfits:,} cells were"
        more = ", ..." if self.n_misfits > len(self.misfits) else ""
        return f"{cells} no {what}, missing: {', '.join(self.misfits)}{more}"


_EXPLAINED = (
    'a text takes "ngrams" (1 to 3: the longest run of words) and "chars" (from, to: the lengths '
    'of runs of characters, 1 to 8), a number "decimal" ("." or ",") and "unit" (what follows it), '
    'a date "format" (as in strptime), a vector "length"'
)


def _holds(option: str, value: Any) -> bool:
    """Return whether the value of an option is valid."""
    if option == "format":
        return isinstance(value, str) and (value in DATE_FORMATS or "%" in value)
    if option == "decimal":
        return isinstance(value, str) and value in DECIMALS
    if option == "unit":
        return isinstance(value, str) and 0 < len(value) <= LONGEST_UNIT
    if option == "chars":
        pair = isinstance(value, (list, tuple)) and len(value) == 2 and all(map(_whole, value))
        return pair and 1 <= value[0] <= value[1] <= 8
    return _whole(value) and 1 <= value <= (3 if option == "ngrams" else 1 << 20)


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

    def with_misfits_of(self, earlier: Schema) -> Schema:
        """Return the schema with the cells that did not fit the columns of an earlier one."""
        known = {c.name: (c.n_misfits, c.misfits) for c in earlier if c.n_misfits}
        return Schema(tuple(c.with_misfits(*known[c.name]) if c.name in known else c for c in self))

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return [column.name for column in self.columns]

    @property
    def measurements(self) -> list[str]:
        """The names of the columns if all that are learnt are numbers, else none."""
        learnt = [column for column in self.columns if column.kind not in NOT_LEARNT]
        are_numbers = all(column.kind == "number" for column in learnt)
        return [column.name for column in learnt] if are_numbers else []

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
    shown = ", ".join(f"{name}={value}" for name, value in column.options.items())
    why = "; ".join(filter(None, (column.reason, column.counted_misfits)))
    return column.name, f"{column.kind} ({shown})" if shown else column.kind, why


def _column_of_json(stored: Any) -> Column:
    entries = stored if isinstance(stored, dict) else {}
    name, kind, reason = (entries.get(key) for key in ("name", "kind", "reason"))
    options = entries.get("options")
    if not all(isinstance(text, str) for text in (name, kind, reason)) or not isinstance(
        options, dict
    ):
        raise KeslerError(f"the schema in this file describes a column as {short(stored)}")
    tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    n_misfits, misfits = entries.get("n_misfits", 0), entries.get("misfits", [])
    if not (_whole(n_misfits) and n_misfits >= 0 and isinstance(misfits, list)):
        raise KeslerError(f"the schema in this file describes a column as {short(stored)}")
    return Column(
        str(name), str(kind), tuples, str(reason), n_misfits, tuple(map(str, misfits[:MOST_SHOWN]))
    )


def given_columns(columns: Any) -> dict[str, Column]:
    """Return the columns that a user names: ``{"body": "text"}``, or with options a mapping.

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
            f'kinds, such as {{"body": "text"}}; the kinds are {", ".join(KINDS)}'
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
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in value.items() if k != "kind"}
    return Column(name, value.get("kind", ""), options)
