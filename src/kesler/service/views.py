"""Views: what the pages show of a model, as texts and numbers."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from kesler.data.labels import NEW
from kesler.durable.items import Item
from kesler.errors import KeslerError
from kesler.learner.explanations import MarkedText
from kesler.online.uncertain import assessed_one, require_single
from kesler.service.answers import jsonable, ranked
from kesler.service.marking import SHORT, Piece, clipped, marked
from kesler.service.names import shown_name
from kesler.service.served import Served

if TYPE_CHECKING:
    from kesler.durable import Event

PAGE = 10
EVENTS = 30
LEAST_CHOICES, MOST_CHOICES = 5, 9
LEAST_SHARE = 0.01  # of a choice beyond the first ones
MOST_RANKED = 1000  # items of which those most in doubt are shown first
N_REASONS = 40
COVERAGE = 0.9
NO_BREAK = "\N{NO-BREAK SPACE}"


class Choice(NamedTuple):
    """A class that a key chooses."""

    label: str
    share: str
    is_in_set: bool


class Shown(NamedTuple):
    """An item of the inbox as it is shown."""

    id: str
    pieces: list[Piece]
    pro: list[str]
    contra: list[str]
    subject: str | None
    note: str | None = None
    label: str | None = None
    confidence: str = ""
    may_be_new: bool = False
    choices: tuple[Choice, ...] = ()


# ---- words --------------------------------------------------------------------------------------


def counted(n: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def percent(value: float) -> str:
    """Return a share in %, on one line of a narrow page.

    Examples
    --------
    >>> [percent(each).replace(NO_BREAK, " ") for each in (0.123, 0.004, 0.0, float("nan"))]
    ['12 %', '< 1 %', '0 %', '-']
    """
    if value != value:
        return "-"
    rounded = "< 1" if 0 < value <= 0.005 else f"{100 * value:.0f}"
    return f"{rounded} %".replace(" ", NO_BREAK)


def shown_time(seconds: float) -> str:
    """Return a time in UTC.

    Examples
    --------
    >>> shown_time(0)
    '1970-01-01 00:00'
    """
    return time.strftime("%Y-%m-%d %H:%M", time.gmtime(seconds))


def row_text(row: Any) -> str:
    r"""Return a row as text.

    Examples
    --------
    >>> row_text({"kind": "card", "hours": 3}), row_text([1.0, 2.5])
    ('kind: card\nhours: 3', '1, 2.5')
    """
    row = jsonable(row)
    if isinstance(row, str):
        return row
    if isinstance(row, Mapping):
        return "\n".join(f"{name}: {_cell(value)}" for name, value in row.items())
    return ", ".join(f"{value:g}" for value in row)


def starts_of_texts(row: Any, texts: Iterable[MarkedText]) -> dict[str | None, int]:
    r"""Return where texts of a row begin in it as text; those that it shows otherwise are left out.

    Examples
    --------
    >>> starts_of_texts({"hours": 3, "kind": "card"}, [MarkedText("kind", "card", ())])
    {'kind': 15}
    """
    row = jsonable(row)
    if isinstance(row, str):
        return {each.column: 0 for each in texts if each.text == row}
    found, at, of_columns = dict[str | None, int](), 0, {each.column: each.text for each in texts}
    for name, value in row.items() if isinstance(row, Mapping) else ():
        if of_columns.get(name) == value:
            found[name] = at + len(f"{name}: ")
        at += len(f"{name}: {_cell(value)}\n")
    return found


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


# ---- the inbox ----------------------------------------------------------------------------------


def tiles_of(served: Served) -> list[tuple[str, str]]:
    """Return the most important figures with their names."""
    found = served.figures()
    return [
        ("waiting", f"{found['waiting']:,}"),
        ("filed", f"{found['rows']:,}"),
        ("classes", f"{found['n_classes']:,}"),
        ("error so far", _error_of(found)),
    ]


def _error_of(figures: Mapping[str, Any]) -> str:
    return percent(figures["mistakes"] / figures["rows"]) if figures["rows"] else "-"


def model_line(served: Served) -> dict[str, Any]:
    """Return the figures of a model in the table of all."""
    found = served.figures()
    return found | {"error": _error_of(found)}


def count_line(what: str, n: int, start: int, shown: int, q: str) -> str:
    """Return which items or classes are shown.

    Examples
    --------
    >>> count_line("Items", 37, 10, 10, "")
    'Items 11 to 20 of 37'
    """
    found = f"{what} {start + 1:,} to {start + shown:,} of {n:,}"
    return f"{found} that contain “{clipped(q, SHORT)}”" if q else found


def items_of(served: Served, q: str, order: str, start: int) -> list[Shown]:
    """Return the items of a page.

    Parameters
    ----------
    served : Served
    q : str
        A text that they contain.
    order : "arrival" or "useful"
        As they came, or as a label budget would choose of the first `MOST_RANKED`.
    start : int
        The first of them.
    """
    estimator = served.estimator
    if order == "useful" and start < MOST_RANKED:
        found = served.items.page(served.name, q, 0, MOST_RANKED)
        found = sorted(found, key=lambda item: -_doubt(estimator, item.row))
        found = found[start : start + PAGE]
    else:
        found = served.items.page(served.name, q, start, PAGE)
    return [shown(estimator, item) for item in found]


def _doubt(estimator: Any, row: Any) -> float:
    """Return the doubt about a row, which is largest for rows of another kind than those learnt."""
    from kesler.online.querying import doubt_one

    try:
        return doubt_one(estimator, row)
    except KeslerError:
        return 1.0


def shown(estimator: Any, item: Item) -> Shown:
    """Return an item with what the model says of it."""
    text = clipped(row_text(item.row) if item.title is None else item.title or item.id)
    plain = Shown(item.id, [Piece(text, 0)], [], [], item.subject, item.note)
    if not estimator.n_known_:
        return plain
    try:
        return _decode(estimator, item, text)
    except KeslerError:
        return plain  # a row of another kind than those learnt


def _decode(estimator: Any, item: Item, text: str) -> Shown:
    with estimator._between_trials():
        probable = ranked(estimator, item.row, MOST_CHOICES)
        covered = estimator.predict_set_one(item.row, COVERAGE)
        said = assessed_one(require_single(estimator), item.row)
        why = estimator.explain_one(item.row, n=N_REASONS)
    inside = {shown_name(each) for each in covered if each is not NEW}
    label, confidence = shown_name(why.label), float(said.confidence[0])
    pairs = sorted(
        ((shown_name(name), p) for name, p in probable), key=lambda pair: pair[0] != label
    )
    shares = shares_of_classes([p for _, p in pairs], confidence, float(said.new[0]))
    choices = [
        Choice(name, percent(p), name in inside or i == 0)
        for i, ((name, _), p) in enumerate(zip(pairs, shares, strict=True))
        if i < LEAST_CHOICES or p >= LEAST_SHARE or name in inside
    ]
    if item.title == "":  # reasons would tell of the row
        why = replace(why, contributions=(), marks=None)
    starts = starts_of_texts(item.row, why.texts) if item.title is None else {}
    return Shown(
        item.id,
        *marked(text, why, starts),
        subject=item.subject,
        note=item.note,
        label=label,
        confidence=percent(confidence),
        may_be_new=any(each is NEW for each in covered),
        choices=tuple(choices),
    )


def shares_of_classes(probabilities: Sequence[float], confidence: float, new: float) -> list[float]:
    """Return what is shown beside the classes: the confidence in the first, and the rest of others.

    The others, and a class that is new, share what the confidence leaves as their probabilities do.

    Parameters
    ----------
    probabilities : sequence of float
        Those of classes, the predicted one first; there may be more classes.
    confidence, new : float
        The probabilities that the prediction is right, and that the class is new.

    Examples
    --------
    >>> [round(share, 3) for share in shares_of_classes([0.8, 0.1, 0.1], 0.9, 0.2)]
    [0.9, 0.022, 0.022]
    """
    first, *others = ((1 - new) * p for p in probabilities)
    scale = (1 - confidence) / max(1 - first, sum(others), 1e-12)
    return [confidence, *(scale * p for p in others)]


def last_answer(served: Served, name: str) -> dict[str, str] | None:
    """Return the last answer of somebody that has not been taken back, of the last events."""
    for event in served.history(EVENTS)[0]:
        if event.kind == "learn" and event.by == name and not event.taken_back:
            return {"id": event.id, "answer": shown_name(event.current)}
    return None


# ---- history ------------------------------------------------------------------------------------


def event_of(served: Served, event: Event) -> dict[str, Any]:
    """Return an event as the history shows it, with the row that it is about."""
    about = event
    while about.kind in ("undo", "relabel"):
        found = served.model.find(str(about.target))
        if found is None:
            break
        about = found
    what = _sentence(event, about)
    return {
        "id": event.id,
        "kind": event.kind,
        "what": what,
        "text": clipped(row_text(about.row), SHORT) if about.row is not None else "",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(event.time)),
        "shown": shown_time(event.time),
        "by": event.by,
        "subject": event.subject,
        "is_taken_back": event.taken_back,
        "may_be_undone": not event.taken_back and not event.kind.startswith("forget"),
    }


def _sentence(event: Event, about: Event) -> str:
    """Return what an event did; `about` is the first event that it is about."""
    answer, target = (clipped(shown_name(each), SHORT) for each in (event.answer, event.target))
    if event.kind == "learn":
        now = clipped(shown_name(event.current), SHORT)
        return f"Filed as {answer}" + (f", now {now}" if now != answer else "")
    sentences = {
        "relabel": f"Corrected to {answer}",
        "rename": f"Renamed {target} to {answer}",
        "merge": f"Merged {target} into {answer}",
        "forget": "Forgot rows",
        "forget_class": "Forgot a class",
    }
    if event.kind == "undo":
        return "Took back" if about is event else f"Took back: {_sentence(about, about)}"
    return sentences[event.kind]
