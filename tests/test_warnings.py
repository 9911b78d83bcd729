"""Warnings of estimators name the line of the user's that called, however deep it is said."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import kesler
from kesler import OnlineClassifier, ShareBoostClassifier, SoftmaxClassifier
from kesler.errors import MismatchWarning, warn
from kesler.fasttext import train_supervised
from kesler.readers import open_stream

ROWS = [{"size": float(i % 7), "age": float(i % 5)} for i in range(60)]
LABELS = ["small" if row["size"] < 3 else "large" for row in ROWS]
FRAME = pd.DataFrame(ROWS).assign(town="Bern")
OF_TABLE = OnlineClassifier(update="pa1").fit(FRAME, LABELS)
LATER = [{**ROWS[0], "weight": 2.0}]


def of_numbers() -> OnlineClassifier:
    return OnlineClassifier(columns={}).partial_fit(ROWS, LABELS)


X = np.random.default_rng(0).normal(size=(60, 3))
Y = X.argmax(axis=1)
ODD = [{"n": str(i) if i % 3 == 0 else f"x{i}", "m": float(i % 2)} for i in range(30)]

CALLS: dict[str, tuple[str, Callable[[], Any]]] = {
    "rows sorted by class": (
        "sorted by class",
        lambda: OnlineClassifier(update="pa1").fit(
            [{"a": 1}] * 20 + [{"b": 1}] * 20, [0] * 20 + [1] * 20
        ),
    ),
    "flat labels": (
        "between two names",
        lambda: OnlineClassifier(ranks="|").fit([{"a": 1}, {"b": 1}], ["k;g", "k;h"]),
    ),
    "a column of another kind": (
        "20 of 30 cells",
        lambda: OnlineClassifier(columns={"n": "number"}).fit(ODD, [0, 1] * 15),
    ),
    "predict": ("X lacks the column", lambda: OF_TABLE.predict(FRAME[["age", "town"]])),
    "scores": ("X lacks the column", lambda: OF_TABLE.decision_function(FRAME[["age", "town"]])),
    "best labels": ("X lacks the column", lambda: OF_TABLE.predict_top(FRAME[["age", "town"]], 1)),
    "a later name": ("in none of the first", lambda: of_numbers().learn_one(LATER[0], "small")),
    "a frame with a cell of another kind": (
        "count as missing",
        lambda: OF_TABLE.predict(FRAME.assign(age="old")),
    ),
    "a method that has learnt": (
        "has learnt 60 rows before",
        lambda: kesler.compare({"before": of_numbers()}, ROWS, LABELS),
    ),
    "too few steps": ("did not converge", lambda: ShareBoostClassifier(1, max_iter=1).fit(X, Y)),
    "too few passes": ("raise max_iter or tol", lambda: SoftmaxClassifier(max_iter=1).fit(X, Y)),
    "later names": ("in none of the first", lambda: of_numbers().partial_fit(LATER, ["small"])),
}


@pytest.mark.parametrize(("words", "call"), CALLS.values(), ids=CALLS)
def test_a_warning_names_the_line_that_called(words, call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert [each.filename for each in caught if words in str(each.message)] == [__file__]


def test_a_warning_of_a_file_names_the_line_that_reads_it(tmp_path):
    table, texts = tmp_path / "rows.csv", tmp_path / "train.txt"
    table.write_bytes("text,label\ncaf\xe9 au lait,drink\nth\xe9,drink\n".encode("latin-1"))
    texts.write_text("__label__a one\n__label__b two\n")
    for words, call in (
        ("is not UTF-8", lambda: [*open_stream(str(table), label="label")]),
        ("thread has no effect", lambda: train_supervised(str(texts), thread=2)),
    ):
        with pytest.warns(UserWarning, match=words) as caught:
            call()
        assert {each.filename for each in caught} == {__file__}


def test_a_warning_of_kesler_itself_is_of_its_caller():
    with pytest.warns(MismatchWarning, match="^odd$") as caught:
        warn("odd", MismatchWarning)
    assert caught[0].filename == __file__
