"""Tables of numbers: every form of them is learnt as an array."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, load_wine

from commands import kesler
from kesler import OnlineClassifier, load
from kesler.errors import MismatchWarning
from kesler.online.reader import Reader

CUTS = (0, 1, 7, 49, 50, 51)


def shuffled(rows_of: Any) -> tuple[Any, list[int]]:
    X, y = rows_of(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    return X[order], y[order].tolist()


def named(X: Any) -> list[dict[str, float]]:
    return [{f"f{i}": float(v) for i, v in enumerate(row) if v == v} for row in X]


@pytest.mark.parametrize("rows_of", [load_iris, load_wine], ids=["iris", "wine"])
@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_every_form_of_the_same_numbers_gives_the_same_model(rows_of, missing):
    X, y = shuffled(rows_of)
    X = np.where(np.random.default_rng(1).random(X.shape) < missing, np.nan, X)
    rows = named(X)
    names = list(dict.fromkeys(name for row in rows for name in row))
    frame = pd.DataFrame(rows, columns=names)
    expected = OnlineClassifier().partial_fit(frame.to_numpy(), y).predict_proba(frame.to_numpy())
    forms: dict[str, tuple[Any, dict[str, Any]]] = {
        "frame": (frame, {}),
        "a table": (rows, {"columns": {}}),
        "a frame as a table": (frame, {"columns": {}}),
        "cells": ([{k: str(v) for k, v in row.items()} for row in rows], {}),
    }
    for form, (given, settings) in forms.items():
        model = OnlineClassifier(**settings).partial_fit(given, y)
        assert_array_equal(model.predict_proba(given), expected, form)
        assert model.predict_one(rows[0]) == model.predict(rows[:1])[0]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("gaps", [False, True])
def test_any_split_with_a_file_between_gives_the_same_model(gaps, cut, tmp_path):
    X, y = shuffled(load_iris)
    X, labels = X[:80], y[:80]
    rows = named(np.where(X == X.max(axis=0), np.nan, X) if gaps else X)
    whole = OnlineClassifier(columns={}).partial_fit(rows, labels).predict_proba(rows)
    pieces = OnlineClassifier(columns={})
    if cut:
        pieces.partial_fit(rows[:cut], labels[:cut]).save(tmp_path / "model")
        pieces = load(tmp_path / "model")
    for row, label in zip(rows[cut : cut + 5], labels[cut : cut + 5], strict=True):
        pieces.learn_one(row, label)
    pieces.partial_fit(rows[cut + 5 :], labels[cut + 5 :])
    assert_array_equal(pieces.predict_proba(rows), whole)


def test_a_name_that_only_later_rows_have_is_left_out_with_a_warning():
    X, y = shuffled(load_iris)
    model = OnlineClassifier(columns={}).partial_fit(named(X), y)
    with pytest.warns(MismatchWarning, match=r"'f9' is in none of the first 50 rows.*columns=None"):
        model.learn_one({**named(X)[0], "f9": 1.0}, y[0])


def test_mappings_in_the_order_of_the_columns_are_read_by_compiled_code(monkeypatch):
    X, y = shuffled(load_iris)
    rows = named(X)
    model = OnlineClassifier(columns={}).partial_fit(rows, y)
    expected = model.predict(rows).tolist()
    monkeypatch.setattr(Reader, "row", None)
    assert [model.predict_one(row) for row in rows] == expected


@pytest.mark.parametrize("gaps", [False, True])
def test_json_lines_and_csv_are_learnt_as_arrays_on_the_command_line(gaps, tmp_path, capsys):
    X, y = shuffled(load_wine)
    if gaps:
        X[3, 2] = X[100, 5] = np.nan
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(X.shape[1])]).assign(kind=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    with open(tmp_path / "rows.jsonl", "w") as file:
        for row, label in zip(named(X), y, strict=True):
            print(json.dumps({**row, "kind": label}), file=file)
    expected = OnlineClassifier().partial_fit(X, y).end_sequence().predict(X).tolist()
    for name in ("rows.csv", "rows.jsonl"):
        source = str(tmp_path / name)
        model = tmp_path / f"{name}.kesler"
        assert kesler(capsys, "learn", source, "--label", "kind", "--model", model).code == 0
        found = kesler(capsys, "predict", source, "--model", model)
        assert found.lines == list(map(str, expected)), name
