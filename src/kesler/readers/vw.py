"""Vowpal Wabbit's text formats: one line per example, or one line per class of an example.

The label of a line may be the costs of several classes (csoaa)::

    spam:0 work:2.5 | filter:0.9 length:2

An example with a line per class::

    shared | attributes that all classes have in common
    spam:1 | filter:0.9 length:2
    work:0 | filter:0.1

    ...
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kesler.data.ratings import Ratings
from kesler.data.rows import Rows
from kesler.data.sparse_rows import SparseRows
from kesler.readers.features import LARGEST, MOST_UNKNOWN, Density, Names, Renumbering, finite
from kesler.readers.lines import BEYOND, Lines, decode, text_of
from kesler.readers.reader import BadRow, Example, Reader, Scanning, parse_label, parse_number
from kesler.readers.scanner import Labels, LineScanner
from kesler.readers.stream import COSTS

Label = str | int | float

ROOM = 1 << 12  # initial capacity for names
LETTERS = 16  # initial capacity for letters, per name


class NameTable:
    """Names and their numbers, in the order of their first occurrence.

    Attributes
    ----------
    arrays : NamedTuple of arrays
        The form that compiled loops take; see `kesler.compiled.readers.lexing`.

    Examples
    --------
    >>> table = NameTable()
    >>> table.numbers(["^free", "from^bob", "^free"]).tolist(), table.names()
    ([0, 1, 0], ['^free', 'from^bob'])
    """

    def __init__(self) -> None:
        from kesler.compiled.readers import lexing

        self._compiled = lexing
        self.arrays = self._empty(ROOM, LETTERS * ROOM)
        self._names = list[str]()

    def names(self) -> list[str]:
        """Return the names in the order of their numbers, always the same growing list."""
        arrays, n_read = self.arrays, len(self._names)
        n_names = int(arrays.size[0])
        if n_names > n_read:
            start = arrays.ends[n_read - 1] + 1 if n_read else 0
            letters = arrays.letters[start : arrays.size[1] - 1].tobytes()
            self._names.extend(letters.decode(errors="surrogatepass").split("\n"))
        return self._names

    def numbers(self, names: list[str]) -> npt.NDArray[np.int32]:
        """Return the numbers of names, each of which contains a caret and no newline."""
        encoded = [name.encode(errors="surrogatepass") for name in names]
        ends = np.cumsum([len(name) + 1 for name in encoded], dtype=np.int64) - 1
        letters = text_of(b"\n".join([*encoded, b""]))
        numbers = np.empty(len(names), dtype=np.int32)
        n_done = 0
        while (n_done := self._number(letters, ends, n_done, numbers)) < len(names):
            self.grow()
        return numbers

    def grow(self) -> None:
        """Double the capacity."""
        arrays, n_names = self.arrays, int(self.arrays.size[0])
        self.arrays = self._empty(2 * len(arrays.ends), 2 * (len(arrays.letters) - BEYOND))
        numbers = np.empty(n_names, dtype=np.int32)
        self._number(arrays.letters, arrays.ends, 0, numbers)

    def _number(
        self,
        letters: npt.NDArray[np.uint8],
        ends: npt.NDArray[np.int64],
        n_done: int,
        numbers: npt.NDArray[np.int32],
    ) -> int:
        done: int = self._compiled.number_names(letters, ends, n_done, numbers, self.arrays)
        return done

    def _empty(self, n_names: int, n_letters: int) -> Any:
        from kesler.state.capacity import aligned_zeros

        return self._compiled.NameTable(
            aligned_zeros(2 * n_names * self._compiled.SLOT, dtype=np.int64),
            np.empty(n_letters + BEYOND, dtype=np.uint8),
            np.empty(n_names, dtype=np.int64),
            np.zeros(2, dtype=np.int64),
        )


def vw_reader(lines: Lines, names: Names) -> Reader:
    """Read Vowpal Wabbit text, a label and named features a line.

    Features are named ``namespace^name``; the values of a repeated feature are added. As in Vowpal
    Wabbit, a token directly before the first ``|``, without a space, is a tag, not a label. Several
    tokens ``class:cost`` are a label with the cost of each class; after the first such line, one is
    enough.
    """
    scanning = Scanning(lines, partial(VwScanner, names))
    filled = Density(names.width, names).filled
    rows = lines.filled()
    return Reader("line", rows, RowParser(), names.gather, names.vocabulary, scanning, filled)


def begins_vw(line: str) -> bool:
    """Return whether a first line is Vowpal Wabbit text.

    Such a line contains a ``|``, preceded by at most a label, an importance and a tag, or by costs
    of classes. A word directly before it, and another behind, are cells of CSV.
    """
    head, bar, features = line.partition("|")
    tokens = head.split()
    is_short = len(tokens) <= 3 or are_costs(tokens[:-1])
    is_cell = [head] == tokens and not features[:1].isspace()
    return bool(bar) and is_short and not is_cell and not set(head) & set(",;\t")


class VwScanner(LineScanner):
    """A scanner of Vowpal Wabbit lines.

    Parameters
    ----------
    names : Names
        Numbers the features.
    """

    def __init__(self, names: Names) -> None:
        super().__init__()
        from kesler.compiled.readers.vw import TOKEN, scan_vw

        self._scan = scan_vw
        self._names = names
        self._tokens = np.empty((0, TOKEN), dtype=np.int64)
        self._row_values = np.empty(0)
        self._renumbering = Renumbering(names)
        self._begin()

    def expect(self, kind: str) -> None:
        """Set the kind of labels; costs are parsed from the text of all of them."""
        super().expect(kind)
        if kind == COSTS:
            self._label_of = Labels(lambda text: parse_costs(text.split()))

    def _scanned(self, text: npt.NDArray[np.uint8], n_rows: int) -> int:
        if len(self._tokens) < len(self._indices):
            self._tokens = np.empty((len(self._indices), self._tokens.shape[1]), dtype=np.int64)
            self._row_values = np.empty(len(self._indices))
        while True:
            arguments = text, self._is_utf8, n_rows, self._kind, self._at, self._draft
            stop: int = self._scan(*arguments, self._tokens, self._row_values, self._table.arrays)
            if stop != self._lexing.NAMELESS:
                return stop
            self._table.grow()

    def _numbers(self, features: list[Any]) -> npt.NDArray[np.int32]:
        return self._table.numbers(features)

    def _gathering(self, entries: SparseRows) -> Callable[[], Rows]:
        names = self._table.names()
        if len(names) - self._n_known > MOST_UNKNOWN and not self._names.grow:
            self._begin()
        return partial(self._renumbering.rows, entries, names)

    def _begin(self) -> None:
        """Create a table of the names of the vocabulary, up to the first that no line can contain.

        Most names then have the same number in both.
        """
        self._table = NameTable()
        known = list(takewhile(_can_be_written, self._names.vocabulary.names))
        self._n_known = len(known)
        self._table.numbers(known)


def _can_be_written(name: str) -> bool:
    return "^" in name and "\n" not in name


class RowParser:
    """A parser of lines, which knows whether an earlier label was the costs of classes.

    Examples
    --------
    >>> parse = RowParser()
    >>> parse(b"spam:0 work:2.5 | free")
    Example(label={'spam': 0.0, 'work': 2.5}, entry={'^free': 1.0}, weight=1.0, \
id=None, misfits=None)
    >>> parse(b"work:0 | lunch").label
    {'work': 0.0}
    """

    def __init__(self) -> None:
        self._has_costs = False

    def __call__(self, line: bytes) -> Example:
        """Parse one line; raise BadRow if it is unreadable."""
        tokens, entry = parse_line(line)
        self._has_costs = self._has_costs or are_costs(tokens)
        if self._has_costs:
            return Example(parse_costs(tokens) if tokens else None, entry)
        return example_of(tokens, entry)


def are_costs(tokens: Sequence[str]) -> bool:
    """Return whether the tokens before the features are costs of two or more classes."""
    return len(tokens) > 1 and all(map(_is_priced, tokens))


def _is_priced(token: str) -> bool:
    label, _, cost = token.rpartition(":")
    return bool(label) and parse_number(cost) is not None


def parse_costs(tokens: Sequence[str]) -> dict[Label, float]:
    """Return the cost of each class; raise BadRow if a token is not class:cost.

    Examples
    --------
    >>> parse_costs(["1:0", "2:1.5"])
    {1: 0.0, 2: 1.5}
    """
    costs = dict[Label, float]()
    for token in tokens:
        name, _, text = token.rpartition(":")
        cost = parse_number(text)
        if not name or cost is None or not 0 <= cost <= LARGEST:
            raise BadRow(f"{token!r} is not class:cost, the cost a finite number from 0 on")
        label = parse_label(name)
        _require_new(label, costs)
        costs[label] = cost
    return costs


def parse_row(line: bytes) -> Example:
    """Parse one line with a label of one class.

    Examples
    --------
    >>> parse_row(b"spam 2 'mail7|body:0.5 free win:3 |from bob")
    Example(label='spam', entry={'body^free': 0.5, 'body^win': 1.5, 'from^bob': 1.0}, weight=2.0, \
id=None, misfits=None)
    """
    return example_of(*parse_line(line))


def example_of(tokens: Sequence[str], entry: dict[str, float]) -> Example:
    """Return the row with the tokens before its features: a label and an importance."""
    if not tokens:
        return Example(None, entry)
    label, *importance = tokens
    if len(importance) > 1:
        raise BadRow(f"{' '.join(tokens)!r} holds more than a label, an importance and a tag")
    return Example(parse_label(label), entry, _weight(*importance))


def parse_line(line: bytes) -> tuple[list[str], dict[str, float]]:
    """Return the tokens before the first ``|`` of a line, without a tag, and its features.

    Examples
    --------
    >>> parse_line(b"shared | a b:2 a")
    (['shared'], {'^a': 2.0, '^b': 2.0})
    """
    head, *namespaces = decode(line).split("|")
    if not namespaces:
        raise BadRow("there is no '|' before the features")
    tokens = head.split()
    if tokens and (tokens[-1].startswith("'") or not head[-1].isspace()):
        del tokens[-1]
    entry: dict[str, float] = defaultdict(float)
    for namespace in namespaces:
        for name, value in _features(namespace):
            entry[name] += value
    return tokens, finite(dict(entry))


def _weight(token: str = "1") -> float:
    weight = parse_number(token)
    if weight is None or not 0 <= weight <= LARGEST:
        raise BadRow(f"the importance {token!r} is not a finite number from 0 on")
    return weight


def _features(namespace: str) -> Iterator[tuple[str, float]]:
    tokens = namespace.split()
    anonymous = not tokens or namespace[0].isspace()
    prefix, scale = ("", 1.0) if anonymous else _named_value(tokens.pop(0))
    for token in tokens:
        name, value = _named_value(token)
        yield f"{prefix}^{name}", scale * value


def _named_value(token: str) -> tuple[str, float]:
    name, colon, value = token.partition(":")
    number = parse_number(value) if colon else 1.0
    if not name or number is None:
        raise BadRow(f"{token!r} is not name or name:value")
    return name, number


NumberedLine = tuple[int, bytes]

SHARED = ("shared", "***shared***")
DEFINITION = ("label", "***label***")
BEGINNING = re.compile(r"(?:shared|\*\*\*shared\*\*\*|[^\s|,;]+:[-+.0-9e]+)\s+(?:'\S*\s*)?")


class Rated(NamedTuple):
    """The features of an example: those shared by its classes, and those of each class."""

    attributes: dict[str, float]
    ratings: dict[Label, dict[str, float]]


def vw_ldf_reader(lines: Lines, names: Names) -> Reader:
    """Read Vowpal Wabbit's label-dependent features, a line for each class of an example.

    A line is ``class[:cost] ['tag]|namespace features``, and an empty line ends an example. The
    features of a class are its ratings, each by the sub-expert ``namespace^name``; those of a first
    line ``shared |`` are attributes of the example. The label is the class of lowest cost; without
    costs there is no label.
    """

    def gather(entries: Sequence[Rated]) -> Rows:
        rows = names.gather([entry.attributes for entry in entries])
        return replace(rows, ratings=Ratings.from_sparse_rows([entry.ratings for entry in entries]))

    return Reader("line", examples(lines), parse_example, gather, names.vocabulary)


def begins_ldf(line: str) -> bool:
    """Return whether a first line has ``shared`` or ``class:cost`` before a ``|``."""
    head, bar, _ = line.partition("|")
    return bool(bar) and BEGINNING.fullmatch(head) is not None


def examples(lines: Lines) -> Iterator[tuple[int, list[NumberedLine]]]:
    """Yield the lines of each example, with the number of its first line."""
    example = list[NumberedLine]()
    for number, line in lines:
        if line.strip():
            example.append((number, line))
        elif example:
            yield example[0][0], example
            example = []
    if example:
        yield example[0][0], example


def parse_example(lines: Sequence[NumberedLine]) -> Example:
    """Parse the lines of one example.

    Examples
    --------
    >>> parse_example([(1, b"shared |w free"), (2, b"spam:0 | a:0.9"), (3, b"work:1 | a b")])
    Example(label='spam', entry=Rated(attributes={'w^free': 1.0}, ratings={'spam': {'^a': 0.9}, \
'work': {'^a': 1.0, '^b': 1.0}}), weight=1.0, \
id=None, misfits=None)
    """
    (first, _), example, costs = lines[0], Rated({}, {}), dict[Label, float]()
    for number, line in lines:
        try:
            _add(line, example, costs, is_first=number == first)
        except BadRow as fault:
            raise fault if number == first else BadRow(f"in line {number}, {fault}") from None
    return Example(_right(example.ratings, costs), example)


def _add(line: bytes, example: Rated, costs: dict[Label, float], *, is_first: bool) -> None:
    """Add the content of a line to its example."""
    tokens, features = parse_line(line)
    if len(tokens) != 1:
        raise BadRow(
            f"{' '.join(tokens)!r} stands before the features, where 'shared' or a class should, "
            "as in 'class:cost | features'"
        )
    if tokens[0] not in SHARED:
        label, cost = _label_and_cost(tokens[0])
        _require_new(label, example.ratings)
        example.ratings[label] = features
        costs.update({} if cost is None else {label: cost})
    elif is_first:
        example.attributes.update(features)
    else:
        raise BadRow("'shared' is not in the first line of its example")


def _label_and_cost(token: str) -> tuple[Label, float | None]:
    label, colon, cost = token.partition(":")
    number = parse_number(cost) if colon else None
    if not label or (colon and (number is None or not abs(number) <= LARGEST)):
        raise BadRow(f"{token!r} is not class or class:cost, the cost a finite number")
    if label in DEFINITION:
        raise BadRow(
            f"{token!r} begins a definition of labels, which is not supported: list the features"
        )
    return parse_label(label), number


def _require_new(label: Label, known: Mapping[Label, object]) -> None:
    if label in known:
        raise BadRow(f"the class {label!r} occurs twice in its example")
    if any(isinstance(label, str) != isinstance(other, str) for other in known):
        raise BadRow(f"of the class {label!r} and those before, one is text and one a number")


def _right(ratings: Mapping[Label, object], costs: Mapping[Label, float]) -> Label | None:
    """Return the class of lowest cost, None if no class has a cost."""
    if not ratings:
        raise BadRow("the example has no class")
    if not costs:
        return None
    if len(costs) < len(ratings):
        raise BadRow("some classes of the example have a cost, others have none")
    lowest = min(costs.values())
    right = [label for label, cost in costs.items() if cost == lowest]
    if len(right) > 1:
        raise BadRow(f"the classes {right[0]!r} and {right[1]!r} have the same lowest cost")
    return right[0]
