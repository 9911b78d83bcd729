"""Files as people hold them, through kesler learn and predict: what is read, and what is said."""

import csv
import json

import pytest

from commands import kesler

KINDS = ["low", "mid", "high"]


def table(n=90):
    """Rows of a text, a number and a kind, which both of them tell."""
    words = {"low": "calm sea today", "mid": "light wind here", "high": "storm is near"}
    kinds = [KINDS[i * i % 7 % 3] for i in range(n)]
    return [
        [f"{words[kind]} {i}", f"{KINDS.index(kind) * 10 + i % 9}", kind]
        for i, kind in enumerate(kinds)
    ]


def lines(rows, delimiter=","):
    return "".join(delimiter.join(row) + "\n" for row in rows)


def columns_of(done):
    """Return what is printed of the columns."""
    return done.out[done.out.index("\ncolumn ") :]


@pytest.fixture
def learn(capsys, tmp_path):
    """Learn from a text in a file; return what the command did and the number of mistakes."""

    def run(text, *options, name="rows.csv"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        (tmp_path / "m").unlink(missing_ok=True)
        done = kesler(capsys, "learn", path, "--model", tmp_path / "m", *options)
        assert done.code == 0, done.err
        summary = next(line for line in done.lines if line.startswith("  default"))
        return done, int(summary.split()[2].replace(",", ""))

    return run


def test_lines_above_a_table_do_not_change_how_it_is_learnt(learn):
    text = lines([["text", "x", "kind"], *table()], ";")
    plain, mistakes = learn(text, "--label", "kind")
    assert "text (" in plain.out
    for before in (
        "Account;DE12\nOwner;Meier\n\n",
        "Account;DE12;;\nOwner;Meier;;\n;;;\n",
        "Owner\n",
    ):
        done, n = learn(before + text, "--label", "kind")
        assert n == mistakes and columns_of(done) == columns_of(plain)
        assert "before its table, left out" in done.err


def test_a_label_by_number_needs_no_header(learn):
    _, mistakes = learn(lines(table()), "--label", "3", "--no-header")
    done, n = learn(lines(table()), "--label", "3")
    assert n == mistakes and "90 rows" in done.out and "without a header" in done.err


# ---- the answers of predict ---------------------------------------------------------------------


def test_cells_that_do_not_fit_are_counted_once_in_any_form_of_answer(capsys, tmp_path, learn):
    learn(lines([["text", "x", "kind"], *table()]), "--label", "kind")
    new = tmp_path / "new.csv"
    new.write_text("text,x\ncalm sea,lost\nstorm,11\n")
    for options in ([], ["--output", tmp_path / "o.csv"], ["--coverage", "0.9"]):
        done = kesler(capsys, "predict", new, "--model", tmp_path / "m", *options)
        assert done.code == 0 and "1 of 2 cells was no number," in done.err, options


def test_a_row_that_was_skipped_has_the_same_keys(capsys, tmp_path, learn):
    learn(lines([["text", "x", "kind"], *table()]), "--label", "kind")
    new, answers = tmp_path / "new.csv", tmp_path / "o.jsonl"
    new.write_text("text,x\ncalm sea,3\nstorm\nstorm,11\n")
    options = "--output", answers, "--skip-bad", "--max-bad", "0.5"
    assert kesler(capsys, "predict", new, "--model", tmp_path / "m", *options).code == 0
    records = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [[*record] for record in records] == [["row", "label", "confidence"]] * 3
    assert [record["confidence"] is None for record in records] == [False, True, False]


def test_a_class_with_a_return_is_one_cell(capsys, tmp_path, learn):
    rows = [[text, x, f'"{kind}\rwater"'] for text, x, kind in table()]
    learn(lines([["text", "x", "kind"], *rows]), "--label", "kind")
    new, answers = tmp_path / "rows.csv", tmp_path / "o.csv"
    assert kesler(capsys, "predict", new, "--model", tmp_path / "m", "--output", answers).code == 0
    with open(answers, newline="") as file:
        found = [row["label"] for row in csv.DictReader(file)]
    assert len(found) == 90 and {*found} == {f"{kind}\rwater" for kind in KINDS}
