"""Files as people hold them, through kesler learn and predict: what is read, and what is said."""

import csv
import gzip
import io
import json
import random
import sys
from datetime import date

import pytest

from commands import kesler, refused
from kesler import OnlineClassifier, load

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
        done = kesler(capsys, "learn", tmp_path / "m", path, *options)
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
        done = kesler(capsys, "predict", tmp_path / "m", new, *options)
        assert done.code == 0 and "1 of 2 cells was no number," in done.err, options


def test_a_row_that_was_skipped_has_the_same_keys(capsys, tmp_path, learn):
    learn(lines([["text", "x", "kind"], *table()]), "--label", "kind")
    new, answers = tmp_path / "new.csv", tmp_path / "o.jsonl"
    new.write_text("text,x\ncalm sea,3\nstorm\nstorm,11\n")
    options = "--output", answers, "--skip-bad", "--max-bad", "0.5"
    assert kesler(capsys, "predict", tmp_path / "m", new, *options).code == 0
    records = [json.loads(line) for line in answers.read_text().splitlines()]
    assert [[*record] for record in records] == [["row", "label", "confidence"]] * 3
    assert [record["confidence"] is None for record in records] == [False, True, False]


def test_a_class_with_a_return_is_one_cell(capsys, tmp_path, learn):
    rows = [[text, x, f'"{kind}\rwater"'] for text, x, kind in table()]
    learn(lines([["text", "x", "kind"], *rows]), "--label", "kind")
    new, answers = tmp_path / "rows.csv", tmp_path / "o.csv"
    assert kesler(capsys, "predict", tmp_path / "m", new, "--output", answers).code == 0
    with open(answers, newline="") as file:
        found = [row["label"] for row in csv.DictReader(file)]
    assert len(found) == 90 and {*found} == {f"{kind}\rwater" for kind in KINDS}


# ---- rows that do not fit -----------------------------------------------------------------------


def test_rows_that_are_refused_for_a_cell_are_skipped(capsys, tmp_path, learn):
    rows = table()
    odd = [[*rows[60][:1], "lost", rows[60][2]]]
    options = "--label", "kind", "--on-mismatch", "raise"
    plain, mistakes = learn(lines([["text", "x", "kind"], *rows]), *options)
    text = lines([["text", "x", "kind"], *rows[:70], *odd, *rows[70:]])
    assert kesler(capsys, "learn", tmp_path / "m2", tmp_path / "rows.csv", *options).code == 0
    done, n = learn(text, *options, "--skip-bad")
    assert n == mistakes and columns_of(done) == columns_of(plain) and "90 rows" in done.out
    assert "skipped 1 of 91 rows" in done.err and f"{rows[60][2]} 1" in done.err
    assert "line 72: column 'x' holds 'lost'" in done.err
    done = kesler(capsys, "predict", tmp_path / "m", tmp_path / "rows.csv", "--skip-bad")
    assert len(done.lines) == 91 and done.lines.index("") == 70
    done = kesler(capsys, "learn", tmp_path / "m3", tmp_path / "rows.csv", *options)
    assert done.code == 2 and "line 72, column 'x' holds 'lost'" in done.err


def test_a_run_with_skipped_rows_goes_on_where_it_stopped(capsys, tmp_path, learn):
    rows = table(300)
    rows[80][1] = rows[200][1] = "lost"
    options = "--label", "kind", "--on-mismatch", "raise", "--skip-bad"
    done, _ = learn(lines([["text", "x", "kind"], *rows]), *options)
    assert "skipped 2 of 300 rows" in done.err and load(tmp_path / "m").n_trials_ == 298
    learn(lines([["text", "x", "kind"], *rows[:150]]), *options)
    (tmp_path / "rows.csv").write_text(lines([["text", "x", "kind"], *rows]))
    again = kesler(capsys, "learn", tmp_path / "m", tmp_path / "rows.csv", "--resume", "--skip-bad")
    assert again.code == 0 and load(tmp_path / "m").n_trials_ == 298


# ---- files of categories alone ------------------------------------------------------------------


def categories(n_columns, n=300):
    """Rows of categories, the first two of which tell the kind, and neither of them alone."""
    draw = random.Random(n_columns)
    drawn = [[draw.choice("uv") for _ in range(n_columns)] for _ in range(n)]
    return [[*row, "odd" if row[0] == row[1] else "even"] for row in drawn]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("n_columns", [6, 12, 13])
def test_categories_alone_are_learnt_as_in_python(learn, tmp_path, form, n_columns):
    rows = categories(n_columns)
    names = [*(f"c{i}" for i in range(n_columns)), "kind"]
    records = [dict(zip(names, row, strict=True)) for row in rows]
    text = "\n".join(map(json.dumps, records)) if form == "jsonl" else lines([names, *rows])
    done, mistakes = learn(text, "--label", "kind", name=f"rows.{form}")
    kinds = [record.pop("kind") for record in records]
    alone = OnlineClassifier().partial_fit(records, kinds)
    # The first rows are learnt again where one of them has a new category.
    assert load(tmp_path / "m").n_mistakes_ == alone.n_mistakes_ and "\ncolumn " in done.out
    assert mistakes < (60 if n_columns <= 12 else 80)  # pairs of more columns are inputs alone


def test_words_of_categories_are_learnt_as_in_python(learn, tmp_path):
    draw = random.Random(0)
    rows = [[f"{draw.choice(['mild', 'wild'])} {draw.choice('abcdefgh')}"] for _ in range(200)]
    text = lines([["weather", "kind"], *([cell, cell[0]] for (cell,) in rows)])
    done, mistakes = learn(text, "--label", "kind")
    alone = OnlineClassifier().partial_fit(
        [{"weather": cell} for (cell,) in rows], [cell[0] for (cell,) in rows]
    )
    assert "weather" in columns_of(done) and mistakes <= 1
    assert load(tmp_path / "m").n_mistakes_ == alone.n_mistakes_


# ---- the notation of the file to predict --------------------------------------------------------


def dated(n=90):
    """Rows of a date, an amount and a kind that the amount tells."""
    return [
        [date(2024, 1 + i % 12, 1 + i % 28), i * 7919 % 9000 + 0.25, KINDS[i * 7919 % 9000 // 3000]]
        for i in range(n)
    ]


def german(amount):
    return f"{amount:,.2f}".translate(str.maketrans(",.", ".,"))


def test_predict_reads_the_notation_of_its_own_file(capsys, tmp_path, learn):
    learn(
        lines([["day", "sum", "kind"], *([str(d), str(s), k] for d, s, k in dated())]),
        "--label",
        "kind",
    )
    plain = tmp_path / "plain.csv"
    plain.write_text("day,sum\n" + "".join(f"{d},{s}\n" for d, s, _ in dated()))
    command = "predict", tmp_path / "m", tmp_path / "new.csv"
    expected = kesler(capsys, "predict", tmp_path / "m", plain)
    assert expected.err == ""
    (tmp_path / "new.csv").write_text(
        "day;sum\n" + "".join(f"{d:%d.%m.%Y};{german(s)}\n" for d, s, _ in dated())
    )
    found = kesler(capsys, *command)
    assert found.lines == expected.lines
    assert "'day' is read as a date in the form %d.%m.%Y" in found.err
    assert "'sum' is read as a number with the decimal sign ','" in found.err
    assert "--decimal . or --decimal ," in found.err and "--category" not in found.err
    named = kesler(capsys, *command, "--decimal", ",", "--date", "day:%d.%m.%Y")
    assert (named.lines, named.err) == (expected.lines, "")
    wrong = kesler(capsys, *command, "--decimal", ".")
    assert "column 'sum': 90 of 90 cells were no numbers" in wrong.err and "--decimal" in wrong.err
    assert "--on-mismatch" not in wrong.err and "--category" not in wrong.err
    refused(kesler(capsys, *command, "--number", "day"), "'day' is given as a number", "as a date")


def test_predict_keeps_what_the_model_learnt_where_cells_tell_nothing(capsys, tmp_path, learn):
    learn(
        lines([["day", "sum", "kind"], *([str(d), german(s), k] for d, s, k in dated())], ";"),
        "--label",
        "kind",
    )
    new = tmp_path / "new.csv"
    for amounts, answer in ((["4,071", "8,5"], "low"), (["4,071", "8,500.25"], "mid")):
        new.write_text("day;sum\n" + "".join(f"2024-05-01;{each}\n" for each in amounts))
        done = kesler(capsys, "predict", tmp_path / "m", new)
        assert done.lines[0] == answer, done
        assert ("is read as a number, which" in done.err) is (answer == "mid")


def measured(n=90):
    """Amounts, some without a fraction, and lengths."""
    return [[i * 7919 % 9000 + (i % 3) / 4, i * 37 % 100 + 0.5] for i in range(n)]


@pytest.fixture
def measurements(capsys, tmp_path, learn):
    """Learn from numbers alone; return a command that predicts from a file, and its answers."""
    rows = [["sum", "size", "kind"]]
    rows += [[str(s), str(x), KINDS[int(s) // 3000]] for s, x in measured()]
    learn(lines(rows), "--label", "kind")
    assert load(tmp_path / "m").schema_ is None
    (tmp_path / "plain.csv").write_text(lines([each[:2] for each in rows]))

    def predict(name, *options):
        return kesler(capsys, "predict", tmp_path / "m", name, *options)

    plain = predict(tmp_path / "plain.csv")
    assert plain.err == "" and len(set(plain.lines)) == 3
    return predict, plain.lines


def in_german(s, x):
    return [german(s).removesuffix(",00") + " €", f"{x}".replace(".", ",")]


def test_a_model_of_numbers_alone_reads_the_notation_of_the_file_to_predict(tmp_path, measurements):
    predict, answers = measurements
    new = tmp_path / "new.csv"
    new.write_text(lines([["size", "sum"], *(in_german(*row)[::-1] for row in measured())], ";"))
    found = predict(new)
    assert found.lines == answers
    for name in ("sum", "size"):
        told = f"column '{name}' is read as a number with the decimal sign ',', which its first 50"
        assert told in found.err
    assert found.err.count("kesler:") == 2 and "--decimal . or --decimal ," in found.err
    named = predict(new, "--decimal", ",")
    assert (named.lines, named.err) == (answers, "")
    wrong = predict(new, "--decimal", ".")
    assert "column 'size': 90 cells were no numbers" in wrong.err and wrong.lines != answers
    refused(predict(new, "--category", "size"), "'size' is given as a category", "as a number")
    new.write_text(new.read_text().replace("0,5;", "soon;"))
    odd = predict(new)
    assert "column 'size': 9 cells were no numbers" in odd.err and "'soon' (line 2)" in odd.err


def test_a_model_of_numbers_alone_reads_other_forms_in_their_notation(
    tmp_path, monkeypatch, measurements
):
    predict, answers = measurements
    rows = [in_german(*row) for row in measured()]
    new = tmp_path / "new.jsonl"
    new.write_text("".join(json.dumps({"sum": s, "size": x}) + "\n" for s, x in rows))
    for form in (lines([["sum", "size"], *rows], ";"), new.read_text()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(form.encode())))
        found = predict("-")
        assert found.lines == answers and "'sum' is read as a number with the decimal" in found.err
    assert predict(new).lines == answers


def test_whole_numbers_of_a_model_of_numbers_alone_are_read_as_learnt(tmp_path, measurements):
    predict, _ = measurements
    new = tmp_path / "new.csv"
    for sum_, code in (("4.071", 0), ("4071", 1)):  # 4.071 is as in the file that was learnt
        new.write_text(f"sum,size\n{sum_},3\n")
        assert (predict(new).lines, predict(new).err) == ([["low", "mid"][code]], "")


def test_a_column_that_a_file_lacks_is_named(capsys, tmp_path, learn):
    learn(lines([["text", "x", "kind"], *table()]), "--label", "kind")
    new = tmp_path / "new.csv"
    new.write_text("x\n3\n")
    done = kesler(capsys, "predict", tmp_path / "m", new)
    assert len(done.lines) == 1 and "lacks 'text', which the model learnt" in done.err


# ---- standard input -----------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", ["texts", "dates", "preamble", "json", "json array"])
def test_standard_input_is_learnt_as_a_file(capsys, tmp_path, monkeypatch, form, packed):
    rows = table(2000) if form == "texts" else dated(2000)
    text = lines([["a", "b", "label"], *([*map(str, row)] for row in rows)])
    if form == "preamble":
        text = "Owner,Meier\n\n" + text
    if form.startswith("json"):
        records = [{"a": row[1], "b": row[0].day, "label": row[2]} for row in rows]
        text = (
            json.dumps(records, indent=1)
            if form == "json array"
            else "\n".join(map(json.dumps, records))
        )
    path = tmp_path / ("rows.json" if form.startswith("json") else "rows.csv")
    path.write_text(text)
    models = tmp_path / "file", tmp_path / "pipe"
    assert kesler(capsys, "learn", models[0], path, "--label", "label").code == 0
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed(text.encode()))))
    done = kesler(capsys, "learn", models[1], "-", "--label", "label")
    assert done.code == 0 and "2,000 rows" in done.out and str(tmp_path) not in done.err
    file, pipe = map(load, models)
    assert pipe.n_mistakes_ == file.n_mistakes_ and pipe.schema_ == file.schema_ is not None


def test_nothing_on_standard_input_is_a_sentence(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
    refused(kesler(capsys, "learn", tmp_path / "m", "-"), "standard input holds no rows")
