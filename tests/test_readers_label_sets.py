"""Lists of labels, which learners of several labels learn from."""

import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from kesler import OnlineMultilabelClassifier
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import open_stream

SETS = [["spam", "money"], [], ["food "], None, ["a"]]
FAULTS = {
    "the label is a str, not a list of labels": "spam",
    "the label 1 is a number, but the first is text": [1],
    "the label is a list, not a string or a number": [["a"]],
}


def write(path, sets):
    """Write rows with these lists of labels."""
    rows = [{"size": float(i), "label": labels} for i, labels in enumerate(sets)]
    if path.suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(rows), path)
    else:
        lines = [json.dumps(row) for row in rows]
        path.write_text("\n".join(lines) if path.suffix == ".jsonl" else f"[{','.join(lines)}]")
    return path


@pytest.mark.parametrize("suffix", ["jsonl", "json", "parquet"])
def test_lists_of_labels_are_read_where_they_are_asked_for(tmp_path, suffix):
    path = write(tmp_path / f"rows.{suffix}", SETS)
    with pytest.warns(ReadingWarning, match="1 row without a label is left out"):
        (block,) = open_stream(path, label="label", label_sets=True)
    assert block.labels == [("spam", "money"), (), ("food",), ("a",)]
    model = OnlineMultilabelClassifier().fit(block.rows, block.labels)
    assert model.classes_.tolist() == ["a", "food", "money", "spam"]
    (block,) = open_stream(path, label="label", label_sets=True, require_labels=False)
    assert block.labels == [("spam", "money"), (), ("food",), None, ("a",)]
    with pytest.raises(KeslerError, match="the label is a list, not a string or a number"):
        list(open_stream(path, label="label"))


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_long_files_have_the_same_lists(tmp_path, suffix):
    sets = [["a", "b"][: i % 3] for i in range(3000)]
    path = write(tmp_path / f"rows.{suffix}", sets)
    stream = open_stream(path, label="label", label_sets=True)
    found = [labels for block in stream for labels in block.labels]
    assert found == [*map(tuple, sets)]


@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_no_list_of_labels_is_refused_with_its_line(tmp_path, fault):
    path = write(tmp_path / "rows.jsonl", [["spam"], FAULTS[fault], ["food"]])
    with pytest.raises(KeslerError, match=f"rows.jsonl, line 2: {fault}"):
        list(open_stream(path, label_sets=True))
    (block,) = open_stream(path, label_sets=True, skip_bad=True)
    assert block.labels == [("spam",), ("food",)]


def test_a_label_that_is_missing_in_a_list_is_said(tmp_path):
    path = write(tmp_path / "rows.jsonl", [["spam"], ["a", None]])
    with pytest.warns(ReadingWarning, match="1 row without a label is left out"):
        (block,) = open_stream(path, label_sets=True)
    assert block.labels == [("spam",)]


def test_csv_has_no_lists_of_labels(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("size,label\n1,spam;money\n")
    with pytest.raises(KeslerError, match="not a list of labels, which JSON and Parquet have"):
        list(open_stream(path, label="label", label_sets=True))
