"""Labels: the same classes from every column, container and file that holds them."""

import itertools
import json
import unicodedata
from enum import Enum, IntEnum, StrEnum
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import kesler
from kesler import KeslerError, OnlineClassifier, OnlineMultilabelClassifier
from kesler.data.inputs import label_list
from kesler.data.labels import MOST_FRACTIONS
from kesler.errors import ReadingWarning
from kesler.readers import open_stream

X = [[0.0], [1.0]] * 5
COLUMNS = {
    "list": list,
    "array of objects": lambda y: np.array(y, dtype=object),
    "array": np.array,
    "pandas": pd.Series,
    "pandas, nullable": lambda y: pd.Series(y).convert_dtypes(),
    "pandas, of Arrow": lambda y: pd.Series(pa.array(y).to_pandas(types_mapper=pd.ArrowDtype)),
    "pandas, an extension array": lambda y: pd.Series(y).convert_dtypes().array,
    "pandas, categories": lambda y: pd.Series(y, dtype="category"),
    "pandas, an index": pd.Index,
    "polars": pl.Series,
    "Arrow": pa.array,
    "Arrow, chunks": lambda y: pa.chunked_array([y[:3], y[3:]]),
    "Arrow, a dictionary": lambda y: pa.array(y).dictionary_encode(),
}
PAIRS = {"integers": [1, 2], "booleans": [False, True], "text": ["007", "7"], "grades": [1.3, 1.7]}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_labels_keep_their_type_in_every_column(column, pair):
    y = column(pair * 5)
    model = OnlineClassifier().fit(X, y)
    assert model.classes_.tolist() == pair and model.predict([[1.0]]).tolist() == pair[1:]
    assert {type(label) for label in model.classes_.tolist()} == {type(pair[0])}
    assert type(model.predict_one([1.0])) is type(pair[0])
    assert model.score(X, y) == 1.0


def test_a_frame_of_one_column_is_a_column():
    for frame in (pd.DataFrame, pl.DataFrame):
        y = frame(
            {"y": pd.array([1, 2] * 5, dtype="Int64") if frame is pd.DataFrame else [1, 2] * 5}
        )
        with pytest.warns(Warning, match="column-vector"):
            model = OnlineClassifier().fit(X, y)
        assert model.classes_.dtype.kind == "i"


MISSING = {
    "None": [1, None],
    "NaN": [1.0, float("nan")],
    "NA of integers": pd.array([1, None], dtype="Int64"),
    "NA of texts": pd.Series(["a", pd.NA], dtype="string"),
    "NaT": [1, pd.NaT],
    "polars": pl.Series([1, None]),
    "Arrow": pa.array(["a", None]),
}


@pytest.mark.parametrize("y", MISSING.values(), ids=MISSING)
def test_a_missing_label_is_refused_with_its_row(y):
    with pytest.raises(KeslerError, match="row 1 of y: label None is no class: leave out rows"):
        OnlineClassifier().fit([[0.0], [1.0]], y)


SPACED = ["spam", " spam", "spam\t", "caf\u00e9", unicodedata.normalize("NFD", " caf\u00e9")]
TRIMMED = ["caf\u00e9", "spam"]


def test_white_space_and_the_form_of_letters_make_no_class(tmp_path):
    rows = [[float(i)] for i in range(5)]
    for y in (SPACED, np.array(SPACED), pl.Series(SPACED)):
        assert OnlineClassifier().fit(rows, y).classes_.tolist() == TRIMMED
    one = OnlineClassifier()
    for row, label in zip(rows, SPACED, strict=True):
        one.learn_one(row, label)
    assert one.classes_.tolist() == TRIMMED and one.score(rows[:3], SPACED[:3]) > 0
    sets = OnlineMultilabelClassifier().learn_one("a", {" x", "x "}).learn_one("b", ["x", " y"])
    assert sets.classes_.tolist() == ["x", "y"]


# ---- files --------------------------------------------------------------------------------------


def write_csv(path, labels):
    pd.DataFrame({"x": range(len(labels)), "label": labels}).to_csv(path, index=False)


def write_jsonl(path, labels):
    lines = [json.dumps({"x": x, "label": label}) for x, label in enumerate(labels)]
    path.write_text("\n".join(lines))


def write_parquet(path, labels):
    parquet.write_table(pa.table({"x": range(len(labels)), "label": labels}), path)


WRITERS = {"csv": write_csv, "jsonl": write_jsonl, "parquet": write_parquet}


def labels_in(path, **options):
    return [
        label for block in open_stream(path, label="label", **options) for label in block.labels
    ]


@pytest.mark.parametrize("suffix", WRITERS)
def test_files_strip_labels_and_keep_leading_zeros(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    WRITERS[suffix](path, ["007", " 007", "7 ", *SPACED])
    found = labels_in(path)
    assert found[:3] == ["007", "007", "7"] and sorted(set(found[3:])) == TRIMMED


@pytest.mark.parametrize("suffix", WRITERS)
def test_grades_in_files_are_classes(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    WRITERS[suffix](path, [1.3, 1.7] * 10)
    model = OnlineClassifier()
    for block in open_stream(path, label="label"):
        model.partial_fit(block.rows, block.labels)
    assert [float(label) for label in model.classes_] == [1.3, 1.7]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_types_of_labels_in_files(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    for labels in ([1, 2, 3], [True, False, True]):
        WRITERS[suffix](path, labels)
        found = labels_in(path)
        assert found == labels and {*map(type, found)} == {type(labels[0])}


NONE_GIVEN = {"csv": ["a", None, "  "], "jsonl": ["a", None, ""], "parquet": ["a", None, " "]}


@pytest.mark.parametrize("suffix", WRITERS)
def test_empty_labels_in_files_are_rows_without_a_label(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    WRITERS[suffix](path, NONE_GIVEN[suffix])
    with pytest.warns(ReadingWarning, match=r"2 rows without a label .* (line|row) [23]: there is"):
        assert labels_in(path) == ["a"]
    assert labels_in(path, require_labels=False) == ["a", None, None]


def test_nan_in_a_parquet_file_is_no_label(tmp_path):
    write_parquet(tmp_path / "rows.parquet", [1.0, float("nan")])
    assert labels_in(tmp_path / "rows.parquet", require_labels=False) == [1.0, None]


def test_measurements_are_no_classes():
    n = MOST_FRACTIONS + 1
    with pytest.raises(KeslerError, match=r"Unknown label type: label .* measurements"):
        OnlineClassifier().fit(np.ones((n, 1)), np.arange(n) + 0.5)
    model = OnlineClassifier()
    for grade in np.arange(n - 1) + 0.5:
        model.learn_one([1.0], grade)
    with pytest.raises(KeslerError, match="Unknown label type"):
        model.learn_one([1.0], 0.25)
    with pytest.raises(KeslerError, match="Unknown label type: label inf"):
        model.learn_one([1.0], float("inf"))


BATCH = (
    "CrammerSingerClassifier JointBoostClassifier MixedNormClassifier ShareBoostClassifier "
    "SoftmaxClassifier"
).split()


FEWER = {"ShareBoostClassifier": {"n_features_to_select": 2}}


@pytest.mark.parametrize("name", [*BATCH, "OnlineClassifier"])
def test_grades_with_fractions_are_classes_of_each_learner(name: str) -> None:
    X = np.random.default_rng(0).normal(size=(60, 4))
    grades = np.where(X[:, 0] > 0, 1.3, np.where(X[:, 1] > 0, 2.7, 3.0))
    texts = grades.astype(str)
    learner = partial(getattr(kesler, name), **FEWER.get(name, {}))
    model, of_texts = learner().fit(X, grades), learner().fit(X, texts)
    assert model.classes_.tolist() == [1.3, 2.7, 3.0]
    assert model.predict(X).astype(str).tolist() == of_texts.predict(X).tolist()
    assert model.score(X, grades) == of_texts.score(X, texts) > 0.9
    weights = (grades == 1.3).astype(float)
    assert model.score(X, grades, sample_weight=weights) == np.mean(
        model.predict(X[grades == 1.3]) == 1.3
    )
    with pytest.raises(KeslerError, match="more than 50 different numbers with fractions"):
        learner().fit(X, X[:, 0])


GRADES = [1.3, 1.7, 2.0, 1.3]


FORMS = ["array", "list", "series", "arrow", "npz", "parquet"]


@pytest.mark.parametrize(
    "form, kind", [("polars", "float32"), *itertools.product(FORMS, ["float16", "float32"])]
)
def test_numbers_of_few_bits_are_the_decimals_that_were_written(tmp_path, form, kind):
    array = np.array(GRADES, dtype=kind)
    forms = {
        "array": lambda: array,
        "list": lambda: [*array],
        "series": lambda: pd.Series(array),
        "arrow": lambda: pa.array(array),
        "polars": lambda: pl.Series(array),
    }
    if form in forms:
        found = label_list(forms[form]())
    else:
        path, options = tmp_path / f"rows.{form}", {}
        if form == "npz":
            np.savez(path, X=np.ones((4, 2)), y=array)
        else:
            options = {"label": "y"}
            parquet.write_table(pa.table({"x": [1.0] * 4, "y": pa.array(array)}), path)
            (block,) = open_stream(path, as_table=True, **options)
            assert block.labels == GRADES
        found = [label for block in open_stream(path, **options) for label in block.labels]
    assert found == GRADES and {*map(type, found)} == {float}


def test_gaps_beside_numbers_of_few_bits_remain(tmp_path):
    path = tmp_path / "rows.parquet"
    y = pa.array([1.3, None, 2.0], pa.float32())
    parquet.write_table(pa.table({"x": [1.0] * 3, "y": y}), path)
    (block,) = open_stream(path, label="y", require_labels=False)
    assert block.labels == [1.3, None, 2.0]


class Kind(Enum):
    SPAM = "spam"
    WORK = "work"


@pytest.mark.parametrize(
    "given, name",
    [
        (pa.scalar("spam"), "spam"),
        (pa.scalar(7), 7),
        (pa.scalar(1.3, pa.float32()), 1.3),
        (pa.scalar(" spam "), "spam"),
        (Kind.SPAM, "spam"),
        (IntEnum("Level", {"LOW": 3}).LOW, 3),
        (StrEnum("Team", {"A": "cards"}).A, "cards"),
    ],
)
def test_scalars_and_members_are_their_values(given, name):
    found = OnlineClassifier().learn_one([1.0], given).classes_.tolist()
    assert found == [name] and type(found[0]) is type(name)
    assert OnlineClassifier().fit([[1.0]] * 2, [given] * 2).classes_.tolist() == [name]


def test_scalars_of_arrow_are_cells():
    table = pa.table({"x": [1.5, 700.0], "text": ["win cash now please", "team lunch at noon"]})
    rows = [{name: table[name][i] for name in table.column_names} for i in range(2)]
    model, plain = OnlineClassifier(), OnlineClassifier()
    for row, values, label in zip(rows, table.to_pylist(), "ab", strict=True):
        model.learn_one(row, label)
        plain.learn_one(values, label)
    assert [each.kind for each in model.schema_] == [each.kind for each in plain.schema_]
    assert model.predict_one(rows[0]) == plain.predict_one(table.to_pylist()[0]) == "a"
