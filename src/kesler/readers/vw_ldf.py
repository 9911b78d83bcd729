"""Vowpal Wabbit's label-dependent features: an example is a line for each class that it may be.

::

    shared | attributes that all classes have in common
    spam:1 | filter:0.9 length:2
    work:0 | filter:0.1

    ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kesler.ratings import Ratings
from kesler.readers.faults import BadRow
from kesler.readers.features import LARGEST, Names
from kesler.readers.labels import parse_label, parse_number
from kesler.readers.lines import Lines
from kesler.readers.reader import Example, Reader
from kesler.readers.vw import parse_line
from kesler.rows import Rows

Label = str | int | float
NumberedLine = tuple[int, bytes]

SHARED = ("shared", "***shared***")
DEFINITION = ("label", "***label***")


class Rated(NamedTuple):
    """The features of an example: those of all its classes, and those of each."""

    attributes: dict[str, float]
    ratings: dict[Label, dict[str, float]]


def vw_ldf_reader(lines: Lines, names: Names) -> Reader:
    """Read examples of several lines, each ``class[:cost] ['tag]|namespace features``.

    An empty line ends an example. The features of a class are the ratings that it gets, each by
    the sub-expert ``namespace^name``; those of a first line ``shared |`` are attributes of the
    example. The right class is the one of lowest cost; without costs there is none.
    """

    def gather(entries: Sequence[Rated]) -> Rows:
        rows = names.gather([entry.attributes for entry in entries])
        return replace(rows, ratings=Ratings.from_entries([entry.ratings for entry in entries]))

    return Reader("line", examples(lines), parse_example, gather, names.vocabulary)


def examples(lines: Lines) -> Iterator[tuple[int, list[NumberedLine]]]:
    """Yield the lines of each example, with the number of its first."""
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
    """Read the lines of one example.

    Examples
    --------
    >>> parse_example([(1, b"shared |w free"), (2, b"spam:0 | a:0.9"), (3, b"work:1 | a b")])
    Example(label='spam', entry=Rated(attributes={'w^free': 1.0}, ratings={'spam': {'^a': 0.9}, \
'work': {'^a': 1.0, '^b': 1.0}}), weight=1.0)
    """
    (first, _), example, costs = lines[0], Rated({}, {}), dict[Label, float]()
    for number, line in lines:
        try:
            _add(line, example, costs, is_first=number == first)
        except BadRow as fault:
            raise fault if number == first else BadRow(f"in line {number}, {fault}") from None
    return Example(_right(example.ratings, costs), example)


def _add(line: bytes, example: Rated, costs: dict[Label, float], *, is_first: bool) -> None:
    """Add what a line says to its example."""
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
        raise BadRow("'shared' does not stand in the first line of its example")


def _label_and_cost(token: str) -> tuple[Label, float | None]:
    label, colon, cost = token.partition(":")
    number = parse_number(cost) if colon else None
    if not label or (colon and (number is None or not abs(number) <= LARGEST)):
        raise BadRow(f"{token!r} is not class or class:cost, the cost a finite number")
    if label in DEFINITION:
        raise BadRow(
            f"{token!r} begins a definition of labels, which are not read: write features out"
        )
    return parse_label(label), number


def _require_new(label: Label, known: Mapping[Label, object]) -> None:
    if label in known:
        raise BadRow(f"the class {label!r} stands twice in its example")
    if any(isinstance(label, str) != isinstance(other, str) for other in known):
        raise BadRow(f"of the class {label!r} and those before, one is text and one a number")


def _right(ratings: Mapping[Label, object], costs: Mapping[Label, float]) -> Label | None:
    """Return the class of lowest cost, None if no class has one."""
    if not ratings:
        raise BadRow("the example has no class")
    if not costs:
        return None
    if len(costs) < len(ratings):
        raise BadRow("some classes of the example have a cost, others none")
    lowest = min(costs.values())
    right = [label for label, cost in costs.items() if cost == lowest]
    if len(right) > 1:
        raise BadRow(f"the classes {right[0]!r} and {right[1]!r} have the same lowest cost")
    return right[0]
