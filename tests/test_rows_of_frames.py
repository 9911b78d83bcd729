"""Single rows given as rows of data frames, and as numbers that are objects."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from kesler import KeslerError, OnlineClassifier, load
from kesler.errors import MismatchWarning


def frame_of_numbers(n_rows=120):
    drawn = np.random.default_rng(3)
    frame = pd.DataFrame(
        {"size": 100 * drawn.normal(size=n_rows), "age": drawn.normal(size=n_rows)}
    )
    return frame, ["old" if size > 0 else "new" for size in frame["size"]]


@pytest.mark.parametrize("with_texts", [False, True])
def test_a_row_of_a_frame_is_read_by_its_names(with_texts):
    frame, y = frame_of_numbers()
    if with_texts:
        frame = frame.assign(colour=["red", "blue", None] * (len(frame) // 3))
    models = [OnlineClassifier() for _ in range(3)]
    for i, label in enumerate(y):
        row = frame.iloc[i]
        models[0].learn_one(row.to_dict(), label)
        models[1].learn_one(row, label)
        models[2].learn_one(row[[*reversed(frame.columns)]] if i else row, label)
    for model in models[1:]:
        assert model.n_mistakes_ == models[0].n_mistakes_
        np.testing.assert_array_equal(
            model.decision_function(frame), models[0].decision_function(frame)
        )
        for i in range(9):
            row = frame.iloc[i]
            exchanged = row[[*reversed(frame.columns)]]
            assert model.predict_proba_one(exchanged) == models[0].predict_proba_one(row.to_dict())
            assert model.explain_one(exchanged) == model.explain_one(row)


@pytest.mark.parametrize("with_texts", [False, True])
def test_named_tuples_are_read_by_their_names(with_texts):
    frame, y = frame_of_numbers()
    if with_texts:
        frame = frame.assign(colour=["red", "blue", None] * (len(frame) // 3))
    one, other = OnlineClassifier(), OnlineClassifier()
    rows = zip(frame.itertuples(index=False), frame.to_dict("records"), y, strict=True)
    for named, mapping, label in rows:
        one.learn_one(named, label)
        other.learn_one(mapping, label)
    assert one.n_mistakes_ == other.n_mistakes_
    np.testing.assert_array_equal(one.decision_function(frame), other.decision_function(frame))


def test_a_row_of_a_frame_is_read_by_position_by_a_model_of_arrays():
    frame, y = frame_of_numbers()
    model = OnlineClassifier().fit(frame.to_numpy(), y)
    assert [model.predict_one(frame.iloc[i]) for i in range(9)] == model.predict(
        frame.to_numpy()[:9]
    ).tolist()


@pytest.mark.parametrize("missing", [None, pd.NA, float("nan")], ids=str)
def test_numbers_that_are_objects_are_read(missing):
    model, other = OnlineClassifier(), OnlineClassifier()
    frame, y = frame_of_numbers()
    for row, label in zip(frame.to_numpy(), y, strict=True):
        model.learn_one(np.array(row, dtype=object), label)
        other.learn_one(row, label)
    for row in ([missing, 2.0], (missing, 2), np.array([missing, 2], dtype=object)):
        assert model.predict_proba_one(row) == other.predict_proba_one(np.array([np.nan, 2.0]))
    for cell in ("red", 10**400):
        with pytest.raises(KeslerError, match="a row must hold numbers"):
            model.predict_one(np.array([cell, 2], dtype=object))


@pytest.mark.parametrize("missing", [None, pd.NA, float("nan"), "", pd.NaT], ids=str)
@pytest.mark.parametrize("frame_of", [pd.DataFrame, pl.from_pandas, lambda f: f.convert_dtypes()])
def test_a_cell_of_a_mapping_is_missing_as_in_the_frame(frame_of, missing):
    frame, y = frame_of_numbers()
    frame["age"] = [None if i % 9 == 4 else age for i, age in enumerate(frame["age"])]
    model = OnlineClassifier().fit(frame_of(frame), y)
    expected = model.predict_proba(frame_of(pd.DataFrame({"size": [None, 9.0], "age": [2.0, 1.0]})))
    rows = [{"size": missing, "age": 2}, {"age": Decimal(1), "size": np.float32(9)}]
    np.testing.assert_array_equal(model.predict_proba(rows), expected)
    for row, probabilities in zip(rows, expected, strict=True):
        of_one = model.predict_proba_one(row)
        assert [of_one[label] for label in model.classes_] == probabilities.tolist()
    for cell in ("red", [2.0], 10**400):
        with pytest.raises(KeslerError, match="is not a number that float32 can hold"):
            model.predict_one({"size": cell, "age": 2})


def test_columns_that_a_frame_lacks_are_named():
    frame, y = frame_of_numbers()
    frame = frame.assign(town=["New York", "Bad Köln", None] * (len(frame) // 3))
    model = OnlineClassifier().fit(frame, y)
    with pytest.warns(MismatchWarning, match="X lacks the columns 'size', which the model learnt"):
        lacking = model.predict(frame[["town", "age"]])
    with pytest.warns(MismatchWarning, match="X lacks the columns 'size', 'age', 'town'"):
        model.predict(frame.rename(columns=str.upper))
    rows = frame[["town", "age"]].to_dict("records")
    assert (
        model.predict(rows).tolist() == lacking.tolist()
    )  # mappings may leave out what is missing
    assert (model.predict(frame[frame.columns[::-1]].assign(more=1)) == y).mean() > 0.9


FRAME, _ = frame_of_numbers()
FORMS: dict[str, Any] = {
    "frame": FRAME,
    "another order": FRAME[[*reversed(FRAME.columns)]],
    "other names": FRAME.rename(columns=lambda name: f"other {name}"),
    "categories": FRAME.assign(kind=["red", "blue", "red"] * (len(FRAME) // 3)),
    "array": FRAME.to_numpy(),
    "sparse": sparse.csr_array(FRAME.to_numpy()),
    "mappings": FRAME.to_dict("records"),
    "words": [{f"w{i % 3}": 1.0, "all": 1.0} for i in range(len(FRAME))],
    "texts": [f"w{i % 3} all" for i in range(len(FRAME))],
}


def answer_for(model: Any, form: str) -> Any:
    """What a model says of rows of a form: its scores, or why it has none."""
    try:
        return model.decision_function(FORMS[form]).tolist()
    except ValueError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("update", ["auto", "pa1"])
@pytest.mark.parametrize("form", FORMS)
def test_a_model_from_a_file_reads_rows_of_each_form_as_before(form, update, tmp_path):
    _, y = frame_of_numbers()
    model = OnlineClassifier(update=update).fit(FORMS[form], y)
    model.save(tmp_path / "model")
    other = load(tmp_path / "model")
    names = [getattr(each, "feature_names_in_", None) for each in (model, other)]
    assert repr(names[0]) == repr(names[1])
    assert (names[0] is not None) == (form in ("frame", "another order", "other names"))
    for each in FORMS:
        assert answer_for(other, each) == answer_for(model, each), each


# ---- numbers that float32 cannot tell apart ------------------------------------------------------

TIMES = 1.7e9 + np.arange(120.0)
MERGING = {
    "array": lambda frame: frame.to_numpy(),
    "integers": lambda frame: frame.fillna(0).to_numpy().astype(np.int64),
    "objects": lambda frame: frame.to_numpy().astype(object),
    "frame": lambda frame: frame,
    "table": lambda frame: frame.assign(kind=["a", "b", "c"] * 40),
    "alone": lambda frame: frame.assign(kind=["a", "b", "c"] * 40),
    "dictionaries": lambda frame: frame.to_dict("records"),
}


def warnings_of(learn):
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        learn()
    return [str(each.message) for each in given if "float32" in str(each.message)]


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("form", MERGING)
def test_numbers_that_are_merged_are_said_once(form, gap):
    frame, y = frame_of_numbers()
    frame = frame.assign(at=TIMES)
    if gap and form != "integers":
        frame.loc[5, "at"] = np.nan
    given = {"update": "softmax", "preprocessing": "z-scores"} if form == "alone" else {}
    if form in ("table", "alone"):  # where whole numbers that are all different are identifiers
        given["columns"] = {"at": "number"}
    model, rows = OnlineClassifier(**given), MERGING[form](frame)
    name = "2" if form in ("array", "integers", "objects") else "'at'"
    (said,) = warnings_of(lambda: model.fit(rows, y))
    assert f"column {name} holds different numbers that are equal as float32" in said
    assert not warnings_of(lambda: (model.partial_fit(rows, y), model.predict(rows)))
    assert warnings_of(lambda: model.fit(rows, y)) == [said]  # which has forgotten all
    fine = MERGING[form](frame.assign(at=frame["at"] - TIMES[0]))
    assert not warnings_of(lambda: OnlineClassifier(**given).fit(fine, y))


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(120.0) + 2.0**24 - 119,
        np.arange(120.0) * 2.0**30,
        np.linspace(0, 1, 120) + 1e-9,
        np.full(120, 1234567890.123),
        np.float32(1.7e9) + np.arange(120, dtype=np.float32),
        np.append(1.5 + 1e-9 * np.arange(119), 1e30),
        np.append(np.arange(119) * 2.0**30, 2.0**30 + 1),
    ],
    ids=["exact", "powers", "small", "constant", "float32", "small and one large", "by chance"],
)
def test_of_other_numbers_nothing_is_said(numbers):
    y = ["a", "b"] * 60
    for rows in (numbers[:, None], pd.DataFrame({"n": numbers, "kind": ["x", "y", "z"] * 40})):
        assert not warnings_of(lambda rows=rows: OnlineClassifier().fit(rows, y))


# ---- columns that are lacking --------------------------------------------------------------------


def changed(frame):
    """Return frames of other columns, and of the same in another order."""
    return [frame.drop(columns="age"), frame.assign(more=1.0), frame[["age", "size"]]]


def test_a_frame_of_numbers_alone_is_an_array_unless_columns_are_given():
    frame, y = frame_of_numbers()
    array, table = OnlineClassifier().fit(frame, y), OnlineClassifier(columns={}).fit(frame, y)
    for other in changed(frame):
        with pytest.raises(ValueError, match="feature names should match"):
            array.predict(other)
        is_lacking = "age" not in other
        with pytest.warns(MismatchWarning, match="'age'") if is_lacking else nullcontext():
            found = table.predict(other)
        assert is_lacking or found.tolist() == table.predict(frame).tolist()
    assert array.predict_one({"size": 1.0}) in y
    with pytest.raises(KeslerError, match="names the feature 'more'"):
        array.predict_one({"size": 1.0, "more": 1.0})
