"""Tables of numbers: every form of them is learnt as an array."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_digits, load_iris, load_wine

from commands import kesler
from kesler import KeslerError, OnlineClassifier, load
from kesler.data.rows import Rows, Vocabulary
from kesler.durable import Journal
from kesler.errors import MismatchWarning
from kesler.online.reader import Reader
from kesler.readers import open_stream

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
        "dictionaries": (rows, {}),
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
@pytest.mark.parametrize("columns", ["auto", {}], ids=["auto", "given"])
def test_any_split_with_a_file_between_gives_the_same_model(columns, gaps, cut, tmp_path):
    X, y = shuffled(load_iris)
    X, labels = X[:80], y[:80]
    rows = named(np.where(X == X.max(axis=0), np.nan, X) if gaps else X)
    whole = OnlineClassifier(columns=columns).partial_fit(rows, labels).predict_proba(rows)
    pieces = OnlineClassifier(columns=columns)
    if cut:
        pieces.partial_fit(rows[:cut], labels[:cut]).save(tmp_path / "model")
        pieces = load(tmp_path / "model")
    for row, label in zip(rows[cut : cut + 5], labels[cut : cut + 5], strict=True):
        pieces.learn_one(row, label)
    pieces.partial_fit(rows[cut + 5 :], labels[cut + 5 :])
    assert_array_equal(pieces.predict_proba(rows), whole)


SETS = {
    "iris": load_iris,
    "wine": load_wine,
    "digits": load_digits,
}


def lines_of_vw(X: Any, y: list[int], *, zeros: bool = True) -> list[str]:
    pairs = [[f"v{i}:{v!r}" for i, v in enumerate(row.tolist()) if v or zeros] for row in X]
    return [f"{label} |f {' '.join(row)}" for label, row in zip(y, pairs, strict=True)]


@pytest.mark.parametrize("name", SETS)
def test_dictionaries_a_journal_and_lines_of_vw_make_the_mistakes_of_the_array(name, tmp_path):
    X, y = shuffled(SETS[name])
    X, y, rows = X[:400], y[:400], named(X[:400])
    expected = OnlineClassifier().partial_fit(X, y).n_mistakes_
    singles = OnlineClassifier()
    for row, label in zip(rows, y, strict=True):
        singles.learn_one(row, label)
    with Journal(tmp_path / "journal.db") as journal:
        kept = journal.open("rows", OnlineClassifier())
        for row, label in zip(rows, y, strict=True):
            kept.learn_one(row, label)
    with Journal(tmp_path / "journal.db") as journal:
        assert journal.open("rows").copy().n_mistakes_ == expected
    (tmp_path / "rows.vw").write_text("\n".join(lines_of_vw(X, y)))
    of_vw = OnlineClassifier()
    for block in open_stream(tmp_path / "rows.vw", block_rows=64):
        of_vw.partial_fit(block.rows, block.labels)
    assert [singles.n_mistakes_, of_vw.n_mistakes_] == [expected] * 2


@pytest.mark.parametrize("value", [bool, int, float, np.int64, np.bool_])
@pytest.mark.parametrize("odd", [None, "unknown"])
def test_a_file_keeps_the_types_of_numbers_until_a_cell_makes_a_table_of_them(value, odd, tmp_path):
    rows = [{"seen": value(i % 2), "size": 0.5 * i} for i in range(70)]
    for row in rows[12::3]:
        row["seen"] = odd
    y = ["ab"[i % 3 > 0] for i in range(70)]
    whole, cut = OnlineClassifier(), OnlineClassifier()
    whole.partial_fit(rows, y)
    cut.partial_fit(rows[:10], y[:10]).save(tmp_path / "model.kesler")
    cut = load(tmp_path / "model.kesler").partial_fit(rows[10:], y[10:])
    assert str(cut.schema_) == str(whole.schema_)
    assert_array_equal(cut.predict_proba(rows), whole.predict_proba(rows))


def test_rows_that_an_array_holds_after_dictionaries_are_the_same_rows():
    X, y = shuffled(load_iris)
    model = OnlineClassifier().partial_fit(named(X), y)
    assert_array_equal(model.predict(X), model.predict(named(X)))
    backwards = pd.DataFrame(named(X))[["f3", "f2", "f1", "f0"]]
    assert_array_equal(model.predict(backwards), model.predict(X))


WORDS = [{"win": 1, "cash": 2}, {"team": 1, "lunch": 3}, {"cash": 2.5, "now": 1}] * 30


@pytest.mark.parametrize(
    "rows",
    [
        WORDS,
        [{"age": 30.5, "size": 2.0, f"colour={i % 3}": 1} for i in range(90)],
        [{f"w{i}": 0.5 + j for j in range(1000 * i, 1000 * i + 1100)} for i in range(3)] * 2,
        [{f"w{i}": 1.5 for i in range(2000)}] * 3,
    ],
    ids=["words", "indicators", "many names", "as many names in each row"],
)
def test_names_that_come_and_go_or_are_many_are_words(rows):
    y = [i % 3 for i in range(len(rows))]
    auto, words = (OnlineClassifier(**s).partial_fit(rows, y) for s in ({}, {"columns": None}))
    singles = OnlineClassifier()
    for row, label in zip(rows, y, strict=True):
        singles.learn_one(row, label)
    expected = words.predict_proba(rows)
    assert auto.schema_ is None and singles.schema_ is None
    assert_array_equal(auto.predict_proba(rows), expected)
    assert_array_equal(singles.predict_proba(rows), expected)


def test_numbers_are_features_of_the_names_that_a_learner_was_given():
    """Names before the first row say that rows are those of a vocabulary, and no measurements."""
    rows, y = [{"a": i % 5 + 0.5, "b": i % 3 + 0.5} for i in range(12)], [0, 1, 2] * 4
    model = OnlineClassifier().name_features(Vocabulary({"b": 0, "never": 1, "a": 2}))
    model.partial_fit(rows, y)
    assert model.vocabulary_.names == ["b", "never", "a"] and model.schema_ is None
    assert len(OnlineClassifier().partial_fit(rows, y).schema_) == 2


@pytest.mark.parametrize("are_words", [False, True], ids=["measurements", "words"])
@pytest.mark.parametrize("start", [0, 1, 2])
def test_rows_by_name_of_weight_0_are_as_if_they_were_not_there(start, are_words, tmp_path):
    X, y = shuffled(load_iris)
    rows = [{"w": 1.0, f"only {i}": 1.0} for i in range(len(y))] if are_words else named(X)
    weights = (start + np.arange(len(y))) % 3
    counted = np.flatnonzero(weights).tolist()
    one = OnlineClassifier().partial_fit(rows, y, sample_weight=weights)
    other = OnlineClassifier().partial_fit(
        [rows[i] for i in counted], [y[i] for i in counted], sample_weight=weights[counted]
    )
    assert one.vocabulary_.names == other.vocabulary_.names
    for name, model in (("one", one), ("other", other)):
        model.save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_texts_are_learnt_along_with_words():
    model = OnlineClassifier().learn_one({"win": 1, "cash": 1}, "spam").learn_one("team", "work")
    assert model.predict(["team", "win cash"]).tolist() == ["work", "spam"]
    assert model.schema_ is None and model.vocabulary_.names[:3] == ["win", "cash", "team"]


def test_a_text_among_numbers_makes_the_first_rows_a_table():
    rows: list[dict[str, Any]] = [{"size": i / 3, "weight": i % 7} for i in range(20)]
    model = OnlineClassifier().partial_fit(rows, [i % 2 for i in range(20)])
    assert [column.kind for column in model.schema_] == ["number", "number"]
    model.learn_one({"size": 1.0, "weight": 2.0, "colour": "red"}, 0)
    assert [column.kind for column in model.schema_] == ["number", "number", "category"]


@pytest.mark.parametrize("value", [float("inf"), 1e39, 10**400])
def test_what_no_float32_holds_is_refused_before_anything_is_learnt(value):
    model = OnlineClassifier()
    with pytest.raises(KeslerError, match="row 1, feature 'b' is NaN, infinity or too large"):
        model.partial_fit([{"a": 0.5, "b": 1.5}, {"a": 0.5, "b": value}], [0, 1])
    assert model.schema_ is None and model.vocabulary_ is None


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1e39])
def test_counts_of_words_are_finite(value):
    """Of measurements, NaN is a missing value; counts of words leave out what is missing."""
    words: list[dict[str, Any]] = [{"w": 1.0, f"only {i}": 1.0} for i in range(6)]
    for n in (0, 1, 5):
        model = OnlineClassifier()
        if n:
            model.partial_fit(words[:n], [0, 1, 0, 1, 0][:n])
        rows = [words[n], {"w": 1.0, "other": value}]
        with pytest.raises(KeslerError, match="row 1, feature 'other' is NaN, infinity or too la"):
            model.partial_fit(rows, [0, 1])
        names = ["w", *(f"only {i}" for i in range(n))] if n else []
        assert getattr(model.vocabulary_, "names", []) == names


def test_whole_numbers_are_measurements_for_a_learner_that_needs_every_feature():
    model = OnlineClassifier(preprocessing="z-scores")
    for i in range(60):
        model.learn_one({"a": 1 + i % 3, "b": 3}, i % 3)
    assert model.predict_one({"a": 2, "b": 3}) == 1
    with pytest.raises(KeslerError, match="not zero at zero"):
        OnlineClassifier(preprocessing="z-scores").partial_fit(WORDS, [0, 1, 2] * 30)


def test_zeros_that_lines_leave_out_are_features_of_measurements(tmp_path):
    X, y = shuffled(load_digits)
    X, y = X[:, 2:6], y
    for name, lines in {
        "rows.vw": lines_of_vw(X, y, zeros=False),
        "rows.svm": [line.replace("|f ", "").replace("v", "") for line in lines_of_vw(X, y)],
    }.items():
        (tmp_path / name).write_text("\n".join(lines))
        rows = Rows.concatenate([block.rows for block in open_stream(tmp_path / name)])
        assert rows.dense and rows.n_features == 4
        order = [int(v.removeprefix("f^v")) for v in open_names(tmp_path / name)] or [0, 1, 2, 3]
        assert_array_equal(rows.values.reshape(-1, 4), X[:, order].astype(np.float32))


def open_names(path: Any) -> list[str]:
    stream = open_stream(path)
    next(stream)
    return [] if stream.vocabulary is None else stream.vocabulary.names


def test_features_that_only_later_lines_name_are_left_out_with_a_warning(tmp_path):
    X, y = shuffled(load_iris)
    lines = lines_of_vw(X, y)
    (tmp_path / "rows.vw").write_text("\n".join([*lines, lines[0] + " new:2.5"]))
    with pytest.warns(MismatchWarning, match="in none of the first 50 rows, whose 4 numbers"):
        rows = [block.rows for block in open_stream(tmp_path / "rows.vw")]
    assert Rows.concatenate(rows).n_features == 4


def test_lines_of_words_remain_sparse(tmp_path):
    lines = [f"{i % 2} |f w{i} w{i + 1} the" for i in range(80)]
    (tmp_path / "rows.vw").write_text("\n".join(lines))
    assert not any(block.rows.dense for block in open_stream(tmp_path / "rows.vw"))
    (tmp_path / "rows.svm").write_text(
        "\n".join(f"{i % 2} {i}:1.5 {2**20 + i}:2" for i in range(80))
    )
    assert not any(block.rows.dense for block in open_stream(tmp_path / "rows.svm"))


def test_a_name_that_only_later_rows_have_is_left_out_with_a_warning():
    X, y = shuffled(load_iris)
    model = OnlineClassifier(columns={}).partial_fit(named(X), y)
    with pytest.warns(MismatchWarning, match=r"'f9' is in none of the first 50 rows.*columns=None"):
        model.learn_one({**named(X)[0], "f9": 1.0}, y[0])
    model.learn_one({**named(X)[0], "f9": 2.0}, y[0])  # the same name is not told of again


LATE = {
    "numbers": (float, {}),
    "amounts": (lambda x: f"{x:.2f}".replace(".", ","), {"decimal": ","}),
}


@pytest.mark.parametrize(("write", "options"), LATE.values(), ids=LATE)
@pytest.mark.parametrize("ends", [[200], range(1, 201), [40, 80, 200]], ids=["one", "rows", "some"])
@pytest.mark.parametrize("n", [1, 60])
def test_columns_of_numbers_may_begin_late(write, options, ends, n):
    drawn = np.random.default_rng(3).uniform(0, 900, 200)
    rows = [{"w": i % 9, "x": None if i < n else write(x)} for i, x in enumerate(drawn)]
    y, start, model = ["low" if x < 450 else "high" for x in drawn], 0, OnlineClassifier()
    for end in ends:
        model.partial_fit(rows[start:end], y[start:end])
        start = end
    assert (model.schema_["x"].kind, dict(model.schema_["x"].options)) == ("number", options)
    assert (model.predict(rows[n:]) != y[n:]).mean() < 0.05
    other = OnlineClassifier().partial_fit(rows, y)
    assert other.decision_function(rows).tolist() == model.decision_function(rows).tolist()


@pytest.mark.parametrize("gap", [None, math.nan])
def test_a_gap_in_the_first_row_is_learnt(gap):
    drawn = np.random.default_rng(3).uniform(0, 900, 200)
    rows = [{"x": gap if i == 0 else float(x), "w": 1 + i % 9} for i, x in enumerate(drawn)]
    y = ["low" if x < 450 else "high" for x in drawn]
    model = OnlineClassifier()
    for row, label in zip(rows, y, strict=True):
        model.learn_one(row, label)
    assert model.schema_.names == ["x", "w"]
    assert (model.predict(rows[1:]) != y[1:]).mean() < 0.05


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
    if not gaps:
        (tmp_path / "rows.vw").write_text("\n".join(lines_of_vw(X, y)))
    for name in ("rows.csv", "rows.jsonl", *(() if gaps else ("rows.vw",))):
        source = str(tmp_path / name)
        model = tmp_path / f"{name}.kesler"
        label = () if name == "rows.vw" else ("--label", "kind")
        assert kesler(capsys, "learn", model, source, *label).code == 0
        found = kesler(capsys, "predict", model, source)
        assert found.lines == list(map(str, expected)), name


@pytest.mark.parametrize("ending", ["csv", "csv of NA", "parquet", "npz"])
def test_gaps_after_the_first_rows_are_missing_values_in_every_file(ending, tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 3)).astype(np.float32)
    y = (X.sum(axis=1) > 0).astype(int)
    X[200:][rng.random((400, 3)) < 0.1] = np.nan
    source, label = tmp_path / f"rows.{ending.split()[0]}", ("--label", "y")
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=y)
    match ending:
        case "npz":
            np.savez(source, X=X, y=y)
            label = ()
        case "parquet":
            frame.to_parquet(source)
        case _:
            frame.to_csv(source, index=False, na_rep="NA" if "NA" in ending else "")
    model = tmp_path / "model.kesler"
    assert kesler(capsys, "learn", model, source, *label).code == 0
    expected = OnlineClassifier().partial_fit(X, y).end_sequence()
    assert load(model).n_mistakes_ == expected.n_mistakes_
    found = kesler(capsys, "predict", model, source)
    assert found.lines == list(map(str, expected.predict(X).tolist()))


def test_a_gap_in_the_first_row_to_predict_is_a_missing_value(tmp_path, capsys):
    X, y = shuffled(load_iris)
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=y)
    frame.to_csv(tmp_path / "rows.csv", index=False)
    model = tmp_path / "model.kesler"
    kesler(capsys, "learn", model, tmp_path / "rows.csv", "--label", "y")
    (tmp_path / "new.csv").write_text("d,c,b,a\n1.5,,2.8,\n,,,\n")
    rows = pd.DataFrame([[np.nan, 2.8, np.nan, 1.5], [np.nan] * 4], columns=["a", "b", "c", "d"])
    expected = load(model).predict(rows)
    found = kesler(capsys, "predict", model, tmp_path / "new.csv")
    assert found.lines == list(map(str, expected.tolist()))


def test_a_learner_that_takes_no_missing_values_refuses_the_line_with_one(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("y,a,b\n" + "p,1.5,2\nn,2,3\n" * 40 + "p,,1\n")
    found = kesler(
        capsys, "learn", tmp_path / "m", tmp_path / "rows.csv", "--label", "y", "--update", "pa1",
        "--preprocessing", "none",
    )  # fmt: skip
    assert found.code == 2 and "rows.csv, line 82: 'a' is missing, and this" in found.err


# ---- learners that take no missing values --------------------------------------------------------

MEMBERS = {
    "a rule": {"hypotheses": "multi", "update": "pa1"},
    "a kernel": {"kernel": "rbf"},
    "z-scores": {"update": "arow", "preprocessing": "z-scores"},
}
OF_ARRAYS = {"update": "softmax", "preprocessing": "z-scores"}


@pytest.mark.parametrize("how", ["fit", "partial_fit", "learn_one"])
@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS)
def test_members_that_read_arrays_alone_learn_dictionaries_as_arrays(member, how):
    X, y = shuffled(load_iris)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(4)])

    def learnt(rows: Any) -> OnlineClassifier:
        members = [OnlineClassifier(**each) for each in (member, OF_ARRAYS)]
        model = OnlineClassifier(update=members)
        if how != "learn_one":
            return getattr(model, how)(rows, y)  # type: ignore[no-any-return]
        for row, label in zip(rows, y, strict=True):
            model.learn_one(row, label)
        return model

    expected = learnt(X).predict_proba(X)
    forms: list[Any] = [named(X)] if how == "learn_one" else [named(X), frame]
    for rows in forms:
        model = learnt(rows)
        assert_array_equal(model.predict_proba(rows), expected)
        assert model.predict_one(named(X)[3]) == model.predict(rows)[3]


@pytest.mark.parametrize("gap", ["absent", "nan", "later name"])
@pytest.mark.parametrize("n", [20, 60])
def test_members_that_take_no_missing_values_refuse_gaps_in_dictionaries(n, gap):
    X, y = shuffled(load_iris)
    rows = named(X)
    members = [OnlineClassifier("multi", update="pa1"), OnlineClassifier(**OF_ARRAYS)]
    model = OnlineClassifier(update=members).partial_fit(rows[:n], y[:n])
    expected = model.predict_proba(rows)
    row = dict(rows[n])
    if gap == "absent":
        del row["f2"]
    else:
        row |= {"f2": math.nan} if gap == "nan" else {"f9": 1.0}
    if gap == "later name" and n > 50:
        with pytest.warns(MismatchWarning, match="'f9' is in none"):
            model.learn_one(row, y[n])
        return
    with pytest.raises(KeslerError, match=r"no missing values|is NaN"):
        model.partial_fit([row], y[n : n + 1])
    assert_array_equal(model.predict_proba(rows), expected)
    assert_array_equal(model.partial_fit(rows[n:], y[n:]).predict_proba(X), OnlineClassifier(
        update=members).partial_fit(X, y).predict_proba(X))  # fmt: skip


@pytest.mark.parametrize(
    ("earlier", "rows", "words"),
    [
        (0, [{"a": 1.5, "b": 2.5}, {"a": 0.5}], "^row 1 has no number named 'b'"),
        (0, [{"a": 1.5}, {"a": 0.5, "b": 2.5}], "^row 0 has no number named 'b'"),
        (2, [{"a": 1.5, "b": 2.5}, {"b": 0.5}], "^row 1 has no number named 'a'"),
        (2, [{"a": 0.5, "b": 2.5, "c": 1.5}], "^an earlier row has no number named 'c'"),
    ],
    ids=str,
)
def test_the_row_that_lacks_a_number_is_named(earlier, rows, words):
    members = [OnlineClassifier("multi", update="pa1"), OnlineClassifier(**OF_ARRAYS)]
    model = OnlineClassifier(update=members)
    if earlier:
        model.partial_fit([{"a": 1.5, "b": 0.5}] * earlier, [0, 1])
    with pytest.raises(KeslerError, match=words):
        model.partial_fit(rows, [0, 1][: len(rows)])


@pytest.mark.parametrize("settings", [{}, {"update": "pa1"}], ids=str)
def test_names_say_nothing_of_the_columns_of_arrays(settings):
    """Rows by name are refused after arrays, and arrays after counts by name."""
    X, y = shuffled(load_iris)
    counts = [{"w": 1.0, f"word {i}": 2.0} for i in range(len(y))]
    of_arrays, of_names = "learnt from arrays without column names", "learns from named features"
    for rows, others, why in (
        (X, named(X), of_arrays),
        (X, counts, of_arrays),
        (X, ["a text"] * len(y), of_arrays),
        (counts, X, of_names),
    ):
        model = OnlineClassifier(**settings).partial_fit(rows, y)
        for method, arguments in (
            ("partial_fit", (others, y)),
            ("learn_one", (others[0], y[0])),
            ("predict", (others,)),
            ("predict_one", (others[0],)),
        ):
            with pytest.raises(KeslerError, match=why):
                getattr(model, method)(*arguments)
