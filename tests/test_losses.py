"""Rows that are left out are counted, by class where it is known, and too many are a failure."""

import json

import pytest

from commands import kesler, refused
from kesler import load
from kesler.readers import open_stream
from test_readers import write

TOWNS = ["Bonn", "Köln", "Berlin"]


def table(n_rows, change):
    """Return a table whose rows are changed by a function of their number and their cells."""
    rows = [[f"{i % 7}", f"w{i % 4} to {TOWNS[i % 3]}", TOWNS[i % 3]] for i in range(n_rows)]
    lines = [b",".join(cell if isinstance(cell, bytes) else cell.encode() for cell in cells)
             for cells in (change(i, row) for i, row in enumerate(rows))]  # fmt: skip
    return b"\n".join([b"x,note,town", *lines, b""])


def lost(tmp_path, content, **options):
    stream = open_stream(
        write(tmp_path, "towns.csv", content),
        label="town",
        skip_bad=True,
        encoding="utf-8",
        **options,
    )
    return sum(map(len, stream)), stream.losses


CHANGES = {
    "one cell too many": lambda i, row: [*row[:2], "and more", row[2]] if i % 4 == 3 else row,
    "one cell too few": lambda i, row: row[1:] if i % 4 == 3 else row,
    "other bytes": lambda i, row: [row[0], b"\xf6", row[2]] if i % 4 == 3 else row,
    "an endless number": lambda i, row: ["1e999", *row[1:]] if i % 4 == 3 else row,
}


@pytest.mark.parametrize("name", CHANGES)
def test_bad_rows_are_counted_by_class(tmp_path, name):
    n_rows, losses = lost(tmp_path, table(40, CHANGES[name]))
    wanted = [TOWNS[i % 3] for i in range(3, 40, 4)]
    assert (n_rows, losses.n_bad) == (30, 10)
    assert losses.of_class == {town: wanted.count(town) for town in TOWNS}
    assert losses.first_bad.startswith("line 5: ")
    assert losses.bad_by_class.startswith("Bonn 4, ")


def test_a_class_of_unreadable_bytes_is_named_as_it_can_be(tmp_path):
    """No class is dropped without a word, even one that is written in another encoding."""

    def change(i, row):
        return [row[0], "ok", "Köln".encode("latin-1") if row[2] == "Köln" else row[2]]

    n_rows, losses = lost(tmp_path, table(40, change))
    assert n_rows == 27 and losses.bad_by_class == "K\ufffdln 13"
    n_rows, losses = lost(tmp_path, b"a,town\n" + b"1,x\n" * 20 + b'2,"y\n')
    assert (n_rows, losses.bad_by_class) == (20, "of unknown class 1")


def test_bad_rows_behind_the_last_block_are_counted(tmp_path):
    path = write(tmp_path, "towns.csv", table(20, lambda i, row: row) + b"1\n2\n")
    stream = open_stream(path, label="town", skip_bad=True, block_rows=10)
    assert [len(block) for block in stream] == [10, 10] and stream.n_bad == 2


def test_json_lines_and_labels_of_another_type_are_counted_by_class(tmp_path):
    rows = [{"label": "a", "x": 1}, {"label": "b", "x": [1]}, {"label": 7, "x": 1}, {"label": "a"}]
    content = "".join(json.dumps(row) + "\n" for row in rows) + "{\n"
    stream = open_stream(write(tmp_path, "rows.jsonl", content), skip_bad=True)
    assert sum(map(len, stream)) == 2
    assert stream.losses.bad_by_class == "b 1, 7 1, of unknown class 1"


def test_many_classes_are_named_in_short(tmp_path):
    content = b"x,town\n" + b"".join(b"1,t%d\n" % i * 9 + b"1,2,t%d\n" % i for i in range(8))
    assert (
        lost(tmp_path, content)[1].bad_by_class == "t0 1, t1 1, t2 1, t3 1, t4 1, 3 other classes"
    )


# ---- the command line ---------------------------------------------------------------------------


def command(capsys, path, *options, model="m.kesler"):
    return kesler(capsys, "learn", path.parent / model, path, "--label", "town", *options)


def test_a_share_of_bad_rows_is_a_success_and_more_are_not(capsys, tmp_path):
    path = write(tmp_path, "towns.csv", table(40, CHANGES["other bytes"]))
    named = "--encoding", "utf-8"
    refused(command(capsys, path, *named), "towns.csv, line 5: ", "--skip-bad", "--encoding")
    done = command(capsys, path, *named, "--skip-bad")
    assert done.code == 3 and load(tmp_path / "m.kesler").n_trials_ == 30
    assert f"kesler: skipped 10 of 40 rows of {path}: Bonn 4, " in done.err
    assert "that is more than a share of 0.1, so the exit code is 3" in done.err
    assert "--max-bad SHARE" in done.err and "10 bad rows skipped" in done.out
    for share, code in (("0.2", 3), ("0.25", 0), ("1", 0)):
        done = command(capsys, path, *named, "--max-bad", share, model=f"{share}.kesler")
        assert done.code == code and "skipped 10 of 40" in done.err
    for share in ("0", "1.5", "some"):
        assert command(capsys, path, "--max-bad", share).code == 2


def test_predict_says_what_it_skipped_and_remains_aligned(capsys, tmp_path):
    good = write(tmp_path, "good.csv", table(40, lambda i, row: row))
    assert command(capsys, good).code == 0
    for name in CHANGES:
        new = write(tmp_path, "new.csv", table(40, CHANGES[name]))
        named = tmp_path / "m.kesler", new, "--encoding", "utf-8"
        done = kesler(capsys, "predict", *named, "--skip-bad")
        n_bad = sum(not line for line in done.lines)
        assert len(done.lines) == 40 and n_bad in (0, 10)  # tables may have a cell of 1e999
        assert [not line for line in done.lines] == [n_bad > 0 and i % 4 == 3 for i in range(40)]
        assert (done.code, "skipped 10 of 40" in done.err) == ((3, True) if n_bad else (0, False))


def test_rows_without_a_label_are_left_for_predict(capsys, tmp_path):
    path = write(tmp_path, "towns.csv", table(40, lambda i, row: [*row[:2], ""] if i > 34 else row))
    done = command(capsys, path, "--json", tmp_path / "learnt.json")
    assert done.code == 0 and load(tmp_path / "m.kesler").n_trials_ == 35
    assert (
        "5 rows without a label are left out; the first is line 37: there is no label" in done.err
    )
    assert json.loads((tmp_path / "learnt.json").read_text())["unlabelled_rows"] == 5
    answers = kesler(capsys, "predict", tmp_path / "m.kesler", path)
    assert len(answers.lines) == 40 and answers.err == ""
    report = kesler(capsys, "test", tmp_path / "m.kesler", path)
    assert report.code == 0 and "5 rows without a label" in report.err


def test_several_passes_say_it_once(capsys, tmp_path):
    path = write(tmp_path, "towns.csv", table(40, CHANGES["one cell too many"]) + b"1,a,\n")
    done = command(capsys, path, "--max-bad", "0.5", "--epochs", "3")
    assert done.code == 0 and done.err.count("skipped 10 of 40") == 1
    assert done.err.count("1 row without a label is left out") == 1


def test_files_that_are_compared_are_named(capsys, tmp_path):
    paths = [
        write(tmp_path, f"{i}.csv", table(40, change))
        for i, change in enumerate([lambda i, row: row, *CHANGES.values()][:3])
    ]
    done = kesler(capsys, "compare", *paths, "--label", "town", "--skip-bad", "--methods", "multi")
    assert done.code == 3 and done.err.count("skipped 10 of 40") == 2
