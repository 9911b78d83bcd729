"""Features of one row of a table: those that the code for whole tables makes of it."""

from __future__ import annotations

import math
import random
import threading
import warnings
from collections.abc import Iterator
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from kesler import KeslerError, OnlineClassifier
from kesler.data.schema import features
from kesler.data.schema.features import entries_of
from kesler.data.schema.records import table_of
from kesler.data.schema.row_features import RowPlan
from kesler.data.schema.schema import Column, Schema
from kesler.data.schema.values import parse

WORDS = (
    "top up the card, to be or not to be: la la LA ??? C++ 我想退款 don't ... Straße 42 :-(".split()
)
COLUMNS = (
    Column("title", "text", {"ngrams": 2, "chars": (4, 4)}),
    Column("body", "text"),
    Column("a:b=c", "text", {"ngrams": 0, "chars": (1, 3), "subwords": (1, 4)}),
    Column("kind", "category"),
    Column("team", "category"),
    Column("tags", "tags"),
    Column("place", "vector", {"length": 2}),
    Column("hours", "number"),
    Column("price", "number", {"unit": "kg"}),
    Column("when", "date"),
    Column("due", "date", {"format": "%d.%m.%Y"}),
    Column("id", "identifier"),
)


def texts(rng: random.Random, most: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randrange(most)))


CELLS: dict[str, Any] = {
    "title": lambda rng: texts(rng, 9),
    "body": lambda rng: rng.choice([texts(rng, 40), 7, True]),
    "a:b=c": lambda rng: texts(rng, 5),
    "kind": lambda rng: rng.choice([" red", "green tea, tea", 3, 3.0, True, "x " * 50]),
    "team": lambda rng: rng.choice(["sales", "IT"]),
    "tags": lambda rng: rng.choice(["a; b", "c", "c|c|d"]),
    "place": lambda rng: rng.choice(["[1, 2.5]", "[0 -3]"]),
    "hours": lambda rng: rng.choice([rng.gauss(3, 2), rng.randrange(9), "7.5K", "n/a", math.nan]),
    "price": lambda rng: rng.choice(["3 kg", 4, "12"]),
    "when": lambda rng: rng.choice(
        [datetime(1899, 12, 31, 23, 59, 1, 7), date(2024, 2, 29), "2020-12-31T11:58", "?"]
    ),
    "due": lambda rng: rng.choice(["1.2.2003", "31.12.1969 10:30"]),
    "id": lambda rng: rng.randrange(1000),
}


def rows_of(seed: int, names: list[str], n: int) -> Iterator[dict[str, Any]]:
    """Yield rows, in which some cells are missing and some columns absent, in any order."""
    rng = random.Random(seed)
    for _ in range(n):
        chosen = rng.sample(names, rng.randint(max(1, len(names) - 3), len(names)))
        yield {name: None if rng.random() < 0.1 else CELLS[name](rng) for name in chosen}


@pytest.mark.parametrize("with_texts", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_the_features_of_a_row_are_those_of_a_table_of_one_row(seed: int, with_texts: bool) -> None:
    columns = COLUMNS if with_texts else COLUMNS[3:5] + COLUMNS[6:]
    schema, decay = Schema(columns), random.Random(seed).choice([1.0, 0.9])
    plan, moments, n_read = RowPlan(schema), {}, 0
    for row in rows_of(seed, schema.names, 150):
        values, schema = parse(table_of(row), schema, {}, "missing", learn=True)
        entries, after = entries_of(values, 1, schema, moments, None, learn=True, decay=decay)
        found = plan.parsed(row, learn=True)
        assert found is not None
        read, own_after = plan.features_of(found[0], moments, learn=True, decay=decay)
        assert list(read.items()) == list(entries[0].items())
        assert own_after == after
        scored, _ = entries_of(values, 1, schema, moments, None, learn=False)
        assert list(plan.features_of(found[0], moments)[0].items()) == list(scored[0].items())
        moments, n_read = after, n_read + len(read)
    assert n_read > 1000


def tickets(seed: int, n: int) -> list[dict[str, Any]]:
    """Return rows of a text and four other kinds of columns, without missing cells."""
    rng = random.Random(seed)
    return [
        {
            "title": " ".join(rng.choices("top up card lost pin bank fee new old".split(), k=8)),
            "kind": rng.choice(["mail", "phone", "chat"]),
            "hours": round(rng.gauss(5, 2), 2),
            "opened": f"2024-{rng.randint(1, 12):02}-{rng.randint(10, 28)} 1{rng.randrange(9)}:30",
            "id": f"case {rng.randrange(3)}",
        }
        for _ in range(n)
    ]


ODD: list[dict[str, Any]] = [
    {"title": "lost card", "hours": "unknown to us"},
    {"title": "lost card", "other": 3.5},
    {"title": "lost card", "kind": {"name": "mail"}},
    {"title": ["lost", "card"], "kind": b"mail"},
    {"title": None, "hours": math.inf},
    {"hours": 2},
    {},
]


@pytest.mark.parametrize("half_life", [None, 20.0])
def test_rows_learnt_alone_give_the_model_of_rows_of_a_table(
    half_life: float | None, tmp_path: Path
) -> None:
    rows, labels = tickets(0, 160) + ODD + tickets(1, 20), [*range(5)] * 40
    one, other = (OnlineClassifier(half_life=half_life) for _ in range(2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row, label in zip(rows, labels, strict=False):
            if one.n_known_:
                assert one.predict_one(row) == other.predict([row])[0]
            one.learn_one(row, label)
            other.partial_fit([row], [label])
    assert str(one.schema_) == str(other.schema_)
    one.save(tmp_path / "one")
    other.save(tmp_path / "other")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def fitted() -> OnlineClassifier:
    return OnlineClassifier().partial_fit(tickets(0, 60), [*range(4)] * 15)


def known(model: OnlineClassifier) -> Any:
    return model._input.columns.known.to_json()


def test_rows_of_plain_cells_are_read_without_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    model, (row, other) = fitted(), tickets(3, 2)
    monkeypatch.setattr("kesler.data.schema.records.table_of", None)
    model.predict_one(row)
    model.learn_one(row, 0)
    with pytest.raises(TypeError):
        model.predict_one({**other, "hours": b"3"})


@pytest.mark.parametrize("at_once", [False, True])
def test_a_row_is_scored_by_the_columns_that_are_known_when_it_comes(at_once: bool) -> None:
    model, rows = fitted(), tickets(3, 12)
    late = {**rows[0], "other": "yes"}
    learnt = [{**row, "other": "yes"} for row in rows[1:]]
    before = model.predict_proba_one(late)
    assert before == model.predict_proba_one(rows[0])
    if at_once:
        model.partial_fit(learnt, [0] * len(learnt))
    else:
        for row in learnt:
            model.learn_one(row, 0)
            model.predict_one(row)
    found = model.predict_proba([late])[0].tolist()
    assert [*model.predict_proba_one(late).values()] == found
    assert [*model.predict_proba_one(rows[0]).values()] != found


def test_a_row_that_is_refused_changes_nothing_that_is_known_of_the_table() -> None:
    model, row = fitted(), {**tickets(3, 1)[0], "title": "words never seen"}
    before, n_names = known(model), len(model.vocabulary_ or ())
    with pytest.raises(KeslerError):
        model.learn_one(row, None)
    assert known(model) == before and len(model.vocabulary_ or ()) == n_names
    model.predict_one(row)
    assert known(model) == before
    model.learn_one(row, 0)
    assert known(model) != before and len(model.vocabulary_ or ()) > n_names


def test_no_cell_is_lost_if_another_thread_learns_a_row_within_a_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model, rows = fitted(), tickets(3, 11)
    n_before = model.schema_["hours"].n_cells
    thread = threading.Thread(target=model.learn_one, args=(rows[10], 1))

    def interrupted(*arguments: Any, **named: Any) -> Any:
        if not thread.ident:
            thread.start()
            thread.join(0.3)  # it waits for the batch
        return entries_of(*arguments, **named)

    monkeypatch.setattr(features, "entries_of", interrupted)
    model.partial_fit(rows[:10], [0] * 10)
    thread.join()
    assert model.schema_["hours"].n_cells == n_before + 11
