"""What is particular to each format, in small inputs written by hand."""

import sys

import numpy as np
import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from kesler.data.rows import Vocabulary
from kesler.errors import KeslerError
from kesler.readers import open_stream, tokenize
from kesler.readers.reader import parse_label
from test_readers import entries, read, write

# Tokens and labels


@pytest.mark.parametrize(
    "text, tokens",
    [
        ("Don't PANIC: 42!", ["don't", "panic", "42"]),
        ("e-mail naïve_42", ["e", "mail", "naïve", "42"]),
        ("Ärger в поезде, 東京", ["ärger", "в", "поезде", "東", "京", "東京"]),
        ("", []),
        ("…, -", ["...,", "-"]),
        ("...", ["..."]),
        ("+ -\n*", ["+", "-", "*"]),
    ],
)
def test_tokens(text, tokens):
    assert tokenize(text) == tokens


@given(st.text("abZ07'_ ,.äÉß"))
def test_tokens_of_plain_texts_are_runs_of_letters_digits_and_apostrophes(text):
    def is_allowed(letter):
        return letter.isalnum() or letter == "'"

    tokens, letters = tokenize(text), list(filter(is_allowed, text.casefold()))
    if letters:
        assert all(token and all(map(is_allowed, token)) for token in tokens)
        assert "".join(tokens) == "".join(letters)


@pytest.mark.parametrize(
    "token, label",
    [
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("007", 7),
        ("1.0", 1.0),
        ("1e3", 1000.0),
        (" spam ", "spam"),
        ("1_000", "1_000"),
        ("nan", "nan"),
        ("-inf", "-inf"),
        ("1e999", "1e999"),
        ("9" * 400, "9" * 400),
        ("٣", "٣"),
        ("3rd", "3rd"),
    ],
)
def test_labels(token, label):
    assert (parse_label(token), type(parse_label(token))) == (label, type(label))


@given(st.integers(-(10**18), 10**18) | st.floats(allow_nan=False, allow_infinity=False))
def test_number_labels_are_what_was_written(number):
    assert parse_label(repr(number)) == number
    assert type(parse_label(repr(number))) is type(number)


# svmlight


def test_svmlight(tmp_path):
    content = (
        "# a comment\n+1 qid:7 0:0.5 3:-2e-1 # another\nclass_a 5:1 2:1\n\n1,3 1:2\n-1\n2.5\t4:0\n"
    )
    # Labels of two types are no classes, but a file to predict may hold any.
    assert read(write(tmp_path, "rows.svm", content), require_labels=False) == [
        (1, {0: 0.5, 3: pytest.approx(-0.2)}),
        ("class_a", {5: 1.0, 2: 1.0}),
        ("1,3", {1: 2.0}),
        (-1, {}),
        (2.5, {4: 0.0}),
    ]


# Vowpal Wabbit


def test_vw(tmp_path):
    content = (
        "spam 2 'mail7|body:0.5 free win:3 |from bob\n"
        "1 | a b:2 a:0.5\n"
        "1 0.5 tag|x a |x a:2 |y a\n"
        "'only_a_tag |x a\n"
        "| a\n"
        "7 |x\n"
    )
    path = write(tmp_path, "rows.vw", content)
    assert read(path, require_labels=False) == [
        ("spam", {"body^free": 0.5, "body^win": 1.5, "from^bob": 1.0}),
        (1, {"^a": 1.5, "^b": 2.0}),
        (1, {"x^a": 3.0, "y^a": 1.0}),
        (None, {"x^a": 1.0}),
        (None, {"^a": 1.0}),
        (7, {}),
    ]


def test_vw_weights(tmp_path):
    path = write(tmp_path, "rows.vw", "1 |x a\n2 1 |x a\n1 2.5 |x a\n1 0 |x a\n")
    first, second = open_stream(path, block_rows=2)
    assert first.weights is None
    assert second.weights.dtype == np.float64
    assert second.weights.tolist() == [2.5, 0.0]


# CSV


def test_csv_dense(tmp_path):
    path = write(tmp_path, "rows.csv", "b, kind,a\n1,x,0\n-2.5,y,1e3\n")
    (block,) = open_stream(path, label="kind")
    assert block.rows.dense
    assert block.rows.indices.tolist() == [0, 1, 0, 1]
    assert read(path, label="kind") == [("x", {"b": 1.0, "a": 0.0}), ("y", {"b": -2.5, "a": 1e3})]


def test_csv_sparse(tmp_path):
    content = 'kind,size,colour\n1,2,red\n2,,"light, blue"\n3,4,7\n"4",5, \n'
    path = write(tmp_path, "rows.csv", content)
    (block,) = open_stream(path, label="kind")
    assert not block.rows.dense
    assert read(path, label="kind") == [
        ("1", {"size": 2.0, "colour=red": 1.0}),
        ("2", {"colour=light, blue": 1.0}),
        ("3", {"size": 4.0, "colour": 7.0}),
        ("4", {"size": 5.0}),
    ]


def test_csv_labels_stay_the_text_that_they_are(tmp_path):
    path = write(tmp_path, "rows.csv", "y,a\n007,1\n7,2\n1e3,3\n1000,4\n")
    assert [label for label, _ in read(path, label="y")] == ["007", "7", "1e3", "1000"]


def test_csv_text(tmp_path):
    content = 'kind,title,body,n\nx,2024,"Win\nfree",3\ny,,free,4\n'
    path = write(tmp_path, "rows.csv", content)
    rows = [
        ("x", {"2024": 1.0, "win": 1.0, "free": 1.0}),
        ("y", {"free": 1.0}),
    ]
    assert read(path, label="kind", text="title, body") == rows
    assert read(path, label="kind", text=["title", "body"]) == rows
    assert read(path, label="kind", text="title")[1] == ("y", {})


def test_csv_columns_follow_the_vocabulary(tmp_path):
    path = write(tmp_path, "rows.csv", "y,b,new,a\n1,2,3,4\n")
    for grow, values in ((True, [4.0, 2.0, 3.0]), (False, [4.0, 2.0])):
        vocabulary = Vocabulary.of(["a", "b"])
        (block,) = open_stream(path, label="y", vocabulary=vocabulary, grow=grow)
        assert block.rows.dense
        assert block.rows.indices.tolist() == list(range(len(values)))
        assert block.rows.values.tolist() == values


def test_csv_that_lacks_a_learnt_column_is_refused(tmp_path):
    path = write(tmp_path, "rows.csv", "y,b\n1,2\n")
    vocabulary = Vocabulary.of(["a", "b"])
    with pytest.raises(KeslerError, match=r"rows\.csv lacks 'a', which the vocabulary holds"):
        read(path, label="y", vocabulary=vocabulary, grow=False)


def test_a_numeric_record_of_a_table_that_was_learnt_sparse_stays_sparse(tmp_path):
    path = write(tmp_path, "rows.jsonl", '{"size": 2}\n{"size": 1, "colour": "red"}\n')
    vocabulary = Vocabulary.of(["size", "colour=red"])
    stream = open_stream(path, vocabulary=vocabulary, grow=False, require_labels=False)
    (block,) = stream
    assert not block.rows.dense
    assert block.rows.indices.tolist() == [0, 0, 1]


def test_csv_empty_cells_are_missing_labels(tmp_path):
    path = write(tmp_path, "rows.csv", "y,a\n,2\n 0 ,3\n")
    assert read(path, label="y", require_labels=False) == [(None, {"a": 2.0}), ("0", {"a": 3.0})]


def test_csv_line_numbers_count_lines_in_cells(tmp_path):
    path = write(tmp_path, "rows.csv", '\ny,a\n1,"two\nlines"\n\n2,3,4\n')
    with pytest.raises(KeslerError, match=r"rows\.csv, line 6: it has 3 fields and the header 2"):
        read(path, label="y")


# Parquet


def write_parquet(path, columns):
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_parquet_is_csv_with_types(tmp_path):
    path = write_parquet(
        tmp_path / "rows.parquet",
        {"kind": ["1", "b"], "size": [2, None], "colour": ["red", ""], "new": [True, False]},
    )
    assert read(path, label="kind") == [
        ("1", {"size": 2.0, "colour=red": 1.0, "new": 1.0}),
        ("b", {"new": 0.0}),
    ]


def test_parquet_dense_and_in_batches(tmp_path):
    n_rows = 3000
    columns = {"a": np.arange(n_rows) * 0.5, "y": np.arange(n_rows) % 7}
    path = write_parquet(tmp_path / "rows.parquet", columns)
    stream = open_stream(path, label="y", block_rows=1000)
    blocks = list(stream)
    assert all(block.rows.dense for block in blocks)
    assert np.concatenate([block.rows.values for block in blocks]).tolist() == list(columns["a"])
    assert [label for block in blocks for label in block.labels] == list(columns["y"])
    assert stream.n_rows == n_rows


def test_parquet_text(tmp_path):
    path = write_parquet(
        tmp_path / "rows.parquet", {"y": [1, 2], "words": [["Free", "win"], None], "n": [1, 2]}
    )
    assert read(path, label="y", text="words") == [(1, {"free": 1.0, "win": 1.0}), (2, {})]


@pytest.mark.parametrize(
    "columns, options, sentence",
    [
        ({"a": [1]}, {"label": "y"}, "rows.parquet has no column 'y': it has 'a'"),
        ({"a": [1]}, {}, "say which column of .* it has 'a'"),
        ({"y": [1], "a": [1]}, {"label": "y", "text": "b"}, "has no column 'b': it has 'y', 'a'"),
        ({"y": [None, None], "a": [1, 2]}, {"label": "y"}, "row 1: there is no label, nor in"),
        ({"y": [np.nan, np.nan], "a": [1, 2]}, {"label": "y"}, "row 1: there is no label, nor in"),
        ({"y": [[1]], "a": [1]}, {"label": "y"}, "row 1: the label is a list"),
        ({"y": [1, 1], "a": [1.0, np.inf]}, {"label": "y"}, "row 2: feature 'a' is inf"),
        ({"y": [1], "a": [["x"]]}, {"label": "y"}, "row 1: 'a' holds a list"),
        ({"y": [], "a": []}, {"label": "y"}, "holds no rows"),
    ],
)
def test_parquet_sentences(tmp_path, columns, options, sentence):
    path = write_parquet(tmp_path / "rows.parquet", columns)
    with pytest.raises(KeslerError, match=sentence):
        read(path, **options)


def test_broken_parquet_is_a_sentence(tmp_path):
    path = write_parquet(tmp_path / "rows.parquet", {"y": [1], "a": [1]})
    broken = write(tmp_path, "broken.parquet", path.read_bytes()[:-20])
    with pytest.raises(KeslerError, match=r"broken\.parquet can't be read as Parquet"):
        read(broken, label="y")


def test_parquet_without_pyarrow_names_the_extra(tmp_path, monkeypatch):
    path = write(tmp_path, "rows.parquet", "")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[parquet\]'"):
        open_stream(path, label="y")


# JSON lines


def test_jsonl_text(tmp_path):
    content = (
        '{"label": 1, "text": "Hello, World", "n": 3}\n'
        '{"label": true, "text": ["two", "Texts"]}\n'
        '{"label": 2.5, "text": null}\n'
    )
    path = write(tmp_path, "rows.jsonl", content)
    assert read(path) == [
        (1, {"hello": 1.0, "world": 1.0}),
        (True, {"two": 1.0, "texts": 1.0}),
        (2.5, {}),
    ]


def test_jsonl_fields_by_name(tmp_path):
    content = (
        '{"folder": "a", "label": "x", "subject": "Hi", "cc": ["Bob"], "text": "no"}\n'
        '{"folder": "b", "subject": "Ho"}\n'
    )
    path = write(tmp_path, "rows.jsonl", content)
    assert read(path, label="folder", text="subject,cc") == [
        ("a", {"hi": 1.0, "bob": 1.0}),
        ("b", {"ho": 1.0}),
    ]


def test_jsonl_table(tmp_path):
    content = (
        '{"label": 1, "size": 2, "new": true, "colour": "red", "code": "12"}\n'
        '{"label": 2, "new": false, "colour": null}\n'
    )
    path = write(tmp_path, "rows.jsonl", content)
    assert read(path) == [
        (1, {"size": 2.0, "new": 1.0, "colour=red": 1.0, "code=12": 1.0}),
        (2, {"new": 0.0}),
    ]


def test_json_objects_of_numbers_need_not_have_the_same_fields(tmp_path):
    content = '{"label": "x", "free": 1, "b": 2.5}\n{"b": 1, "label": "y", "prize": 3}\n'
    path = write(tmp_path, "rows.jsonl", content)
    (block,) = open_stream(path)
    assert not block.rows.dense
    assert read(path) == [("x", {"free": 1.0, "b": 2.5}), ("y", {"b": 1.0, "prize": 3.0})]


def test_the_first_good_row_tells_what_jsonl_holds(tmp_path):
    path = write(tmp_path, "rows.jsonl", 'broken\n{"label": 1, "text": "a b"}\n')
    assert read(path, skip_bad=True) == [(1, {"a": 1.0, "b": 1.0})]


# .npz

X = np.array([[0.0, 2.0, 0.0], [1.0, 0.0, 0.5]])
CSR = sparse.csr_array(X)
PIECES = {"data": CSR.data, "indices": CSR.indices, "indptr": CSR.indptr, "shape": CSR.shape}


def save(directory, **arrays):
    path = directory / "rows.npz"
    np.savez(path, **arrays)
    return path


@pytest.mark.parametrize("x, y", [("X", "y"), ("X_train", "y_train")])
def test_npz_dense_and_sparse_hold_the_same_rows(tmp_path, x, y):
    labels = np.array(["a", "b"])
    (dense,) = open_stream(save(tmp_path, **{x: X, y: labels}))
    assert dense.rows.dense
    assert dense.rows.values.tolist() == X.ravel().tolist()
    (sparse_,) = open_stream(
        save(tmp_path, **{f"{x}_{piece}": PIECES[piece] for piece in PIECES}, **{y: labels})
    )
    assert not sparse_.rows.dense
    assert sparse_.rows.n_features == 3
    for name in ("indptr", "indices", "values"):
        expected = getattr(dense.rows.without_zeros(), name)
        assert getattr(sparse_.rows, name).tolist() == expected.tolist()
    assert dense.labels == sparse_.labels == ["a", "b"]


def test_npz_labels_keep_their_types(tmp_path):
    for y in ([1, 2], [0.5, 2.0], [True, False], ["a", "b"]):
        (block,) = open_stream(save(tmp_path, X=X, y=np.array(y)))
        assert list(map(type, block.labels)) == list(map(type, y))


def test_npz_in_blocks_without_bad_rows(tmp_path):
    many = np.arange(20.0).reshape(10, 2)
    many[3, 1] = np.inf
    many[7, 0] = 1e300
    stream = open_stream(
        save(tmp_path, X=many, y=np.arange(10)), skip_bad=True, skip_rows=2, block_rows=4
    )
    assert [label for label, _ in entries(stream)] == [2, 4, 5, 6, 8, 9]
    assert stream.n_bad == 2


@pytest.mark.parametrize(
    "arrays, sentence",
    [
        ({"Z": X}, "rows.npz holds neither X nor X_train, whole or in CSR pieces: it has 'Z'"),
        ({"X": X}, r"array y with one label for each of the 2 rows; the file has 'X \(2, 3\)'"),
        ({"X": X, "y": [1, 2, 3]}, "one label for each of the 2 rows"),
        ({"X": X, "y": [[1], [2]]}, "one label for each of the 2 rows"),
        ({"X": X[0], "y": [1]}, r"X has the shape \(3,\)"),
        ({"X": X.astype(str), "y": [1, 2]}, "should hold numbers in two dimensions"),
        (
            {"X": np.maximum(X, [[0], [np.inf]]), "y": [1, 2]},
            "rows.npz, row 2: a value is not a finite",
        ),
        ({"X": X, "y": [np.nan, np.nan]}, "row 1: there is no label, nor in any row"),
        ({"X": np.array([[None]]), "y": [1]}, "can't be read as a .npz file without pickles"),
        ({"X_indptr": [0, 1]}, "can't be read .*X_data"),
        ({"X_indptr": [0], "X_data": [], "X_indices": [], "X_shape": [0, 3], "y": []}, "no rows"),
        (
            {**{f"X_{name}": PIECES[name] for name in PIECES}, "X_indices": [9, 0, 1], "y": [1, 2]},
            "can't be read as a .npz file",
        ),
    ],
)
def test_npz_sentences(tmp_path, arrays, sentence):
    with pytest.raises(KeslerError, match=sentence) as raised:
        read(save(tmp_path, **arrays))
    assert str(raised.value).count("rows.npz") == 1


def test_npz_entries_that_stand_twice_add_up(tmp_path):
    pieces = {"X_indices": [1, 1], "X_indptr": [0, 2], "X_shape": [1, 3], "y": [7]}
    assert read(save(tmp_path, X_data=[2.0, 0.5], **pieces)) == [(7, {1: 2.5})]
    with pytest.raises(KeslerError, match="row 1: a value is not a finite"):
        read(save(tmp_path, X_data=[3e38, 3e38], **pieces))


def test_npz_without_labels(tmp_path):
    assert [label for label, _ in read(save(tmp_path, X=X), require_labels=False)] == [None, None]


def test_broken_npz_is_a_sentence(tmp_path):
    whole = save(tmp_path, X=X, y=[1, 2]).read_bytes()
    np.save(tmp_path / "one.npy", X)
    one_array = (tmp_path / "one.npy").read_bytes()
    flags = whole.index(b"PK\1\2") + 8
    encrypted = whole[:flags] + b"\1" + whole[flags + 1 :]
    for broken in (b"", b"nonsense", one_array, encrypted, whole[:-10], whole[:300]):
        with pytest.raises(KeslerError, match=r"broken\.npz can't be read as a \.npz file"):
            read(write(tmp_path, "broken.npz", broken))
