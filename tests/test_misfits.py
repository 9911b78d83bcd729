"""Cells that do not fit their columns: where they are, how many, and the options that help."""

from __future__ import annotations

import random
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from kesler import OnlineClassifier, load
from kesler.cli import main, spoken
from kesler.data.schema.inference import infer
from kesler.errors import KeslerError, MismatchWarning
from kesler.readers import open_stream

Said = tuple[int, str, str]


@pytest.fixture
def run(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> Any:
    """Return a function that runs a command in the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def kesler(*arguments: str) -> Said:
        code = main(arguments)
        said = capsys.readouterr()
        return code, said.out, said.err

    return kesler


def write(path: str, header: str, rows: list[str]) -> None:
    Path(path).write_text("\n".join([header, *rows]) + "\n")


def amounts(n: int, odd: dict[int, str]) -> list[str]:
    """Return rows of a size, a text of several words and a class, with odd sizes in some rows."""
    return [f"{odd.get(i, f'{i * 37 % 100}.5')},message number {i},{'ab'[i % 2]}" for i in range(n)]


ODD = {90: "pending", 95: "broken", 110: "pending"}


def test_the_command_line_names_file_line_and_option(run: Any) -> None:
    write("sizes.csv", "size,note,kind", amounts(120, ODD))
    rows = "sizes.csv", "--label", "kind"
    code, out, err = run("learn", "a.kesler", *rows)
    assert code == 0
    assert "sizes.csv, line 92, column 'size' holds 'pending'" in err  # the header is line 1
    assert "such cells count as missing; --on-mismatch" in err
    assert err.count("kesler:") == 1  # the others are counted
    sentence = "column 'size': 3 of 120 cells were no numbers, missing: 'pending', 'broken'"
    assert sentence in out
    code, _, err = run("learn", "b.kesler", *rows, "--on-mismatch", "raise")
    assert code == 2
    assert "sizes.csv, line 92, column 'size' holds 'pending'" in err
    assert "--category size or --ignore size" in err


def test_lines_of_files_are_right_behind_bad_and_long_rows(run: Any) -> None:
    rows = amounts(120, ODD)
    rows[3] = '3.5,"a text\nof two lines",a'
    rows[10] = "1,2,3,4,5"  # too many
    write("sizes.csv", "size,note,kind", rows)
    code, _, err = run(
        *("learn", "a.kesler", "sizes.csv", "--label", "kind"),
        *("--skip-bad", "--number", "size", "--text", "note"),
    )
    assert code == 0
    assert "sizes.csv, line 93, column 'size' holds 'pending'" in err


@pytest.mark.parametrize(
    ("cells", "odd", "options"),
    [
        (["5", "abc", "12,5"], "abc", {"decimal": ","}),
        (["01/02/2024", "pending", "01/13/2024", "01/14/2024"], "pending", {"format": "%m/%d/%Y"}),
        (["7.383,72", "3,584.39", "6.898,14"], "3,584.39", {"decimal": ","}),
    ],
)
def test_odd_cells_before_a_change_of_notation_are_named(
    run: Any, cells: list[str], odd: str, options: dict[str, str]
) -> None:
    write("first.csv", "x;kind", [f"{cell};{'ab'[i % 2]}" for i, cell in enumerate(cells)])
    named = "--number" if "decimal" in options else "--date"
    code, out, err = run("learn", "a.kesler", "first.csv", "--label", "kind", named, "x")
    assert code == 0 and f"1 of {len(cells)} cells was no" in out
    assert f"first.csv, line {2 + cells.index(odd)}, column 'x' holds '{odd}'" in err
    assert dict(load("a.kesler").schema_["x"].options) == options


def test_kept_rows_of_several_files_are_named_by_file_and_line(run: Any) -> None:
    write("one.csv", "x;kind", ["5;a", "abc;b"])
    write("two.csv", "x;kind", ["7;a", "12,5;b"])
    options = "--label", "kind", "--number", "x"
    assert run("learn", "a.kesler", "one.csv", *options)[0] == 0
    code, _, err = run("learn", "a.kesler", "two.csv", *options, "--resume")
    assert code == 0 and "column 'x' holds 'abc'" in err
    model = OnlineClassifier(columns={"x": "number"})
    for path in ("one.csv", "two.csv"):
        for block in open_stream(path, label="kind", as_table=True):
            with pytest.warns(MismatchWarning, match=r"one\.csv, line 3, column 'x' holds 'abc'"):
                model.partial_fit(block.rows, block.labels)


@pytest.mark.parametrize("command", ["predict", "test"])
def test_other_commands_report_what_does_not_fit(run: Any, command: str) -> None:
    write("sizes.csv", "size,note,kind", amounts(120, {}))
    write("new.csv", "size,note,kind", amounts(70, {5: "soon", 66: "late"}))
    assert run("learn", "a.kesler", "sizes.csv", "--label", "kind")[0] == 0
    before = Path("a.kesler").read_bytes()
    code, _, err = run(command, "a.kesler", "new.csv")
    assert code == 0
    assert "new.csv, line 7, column 'size' holds 'soon'" in err
    assert "column 'size': 2 of 70 cells were no numbers, missing: 'soon', 'late'" in err
    assert err.count("column 'size'") == 2
    assert Path("a.kesler").read_bytes() == before


def postcodes(n: int) -> list[str]:
    """Return rows whose postcodes are of Canada from the middle on."""
    codes = [f"{10000 + 37 * i}" if i < n // 2 else f"K{i % 9}A {i % 9}B6" for i in range(n)]
    return [f"{code},parcel number {i} on its way,{'ab'[i % 2]}" for i, code in enumerate(codes)]


def test_a_column_most_of_which_does_not_fit_is_of_another_kind(run: Any) -> None:
    write("zip.csv", "zip,note,kind", postcodes(140))
    code, out, _ = run("learn", "a.kesler", "zip.csv", "--label", "kind")
    assert code == 0 and "140 trials" in out
    assert "70 of 140 cells were no numbers" in out and "name it: --category zip" in out
    model = load("a.kesler")
    assert model.schema_["zip"].n_cells == 140
    code, out, _ = run(*("learn", "b.kesler", "zip.csv", "--label", "kind", "--category", "zip"))
    assert code == 0 and "no numbers" not in out
    rows = [{"zip": row.split(",")[0], "kind": row[-1]} for row in postcodes(140)]
    y = [row.pop("kind") for row in rows]
    with pytest.warns(MismatchWarning) as warned:
        OnlineClassifier().fit(rows, y)
    assert "columns={'zip': 'category'}" in str(warned[-1].message)


def test_words_for_missing_do_not_end_a_run(run: Any) -> None:
    write("gaps.csv", "size,note,kind", amounts(120, {0: "?", 60: "n/a", 100: "-"}))
    for options in ([], ["--skip-bad"], ["--number", "size", "--text", "note"]):
        Path("a.kesler").unlink(missing_ok=True)
        code, out, err = run(*("learn", "a.kesler", "gaps.csv", "--label", "kind", *options))
        assert (code, err) == (0, "") and "120 trials" in out
        assert load("a.kesler").schema_["size"].n_misfits == 0


def test_ignored_columns_are_listed_and_one_must_be_left(run: Any) -> None:
    write("ids.csv", "id,code,kind", [f"{i},X{i:05},{'ab'[i % 2]}" for i in range(80)])
    code, _, err = run("learn", "a.kesler", "ids.csv", "--label", "kind", "--table")
    assert code == 2 and not Path("a.kesler").exists()
    assert "all columns are ignored" in err and "whole numbers, all different" in err
    assert "--category id" in err
    with pytest.raises(KeslerError, match=r"all columns are ignored.*columns={'id': 'category'}"):
        OnlineClassifier(columns={}).fit([{"id": i} for i in range(60)], ["a", "b"] * 30)
    code, out, _ = run(*("learn", "a.kesler", "ids.csv", "--label", "kind", "--category", "code"))
    assert code == 0 and "id      identifier  whole numbers, all different; ignored" in out


def test_columns_beside_texts_are_listed(run: Any) -> None:
    write("notes.csv", "size,note,kind", amounts(60, {}))
    code, out, _ = run(*("learn", "a.kesler", "notes.csv", "--label", "kind", "--text", "note"))
    assert code == 0 and "left out beside the texts: 'size'; --table learns them as well" in out
    lines = [f'{{"text": "message {i}", "size": {i}, "label": "{"ab"[i % 2]}"}}' for i in range(60)]
    Path("notes.jsonl").write_text("\n".join(lines))
    code, out, _ = run("learn", "b.kesler", "notes.jsonl", "--text", "text")
    assert code == 0 and "left out beside the texts: 'size'" in out


# ---- odd cells among the first ----

ODD_NUMBERS = ["abc", ">5000", "12.5*", "unbekannt", "5 approx", "12O5", "see note", "7-9"]
ODD_DATES = ["offen", "2024-02-30", "31.12.", "Q1 2024", "1", "tomorrow at noon"]


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("first", [12, 50])
@pytest.mark.parametrize("odd", ODD_NUMBERS)
def test_one_odd_cell_among_the_first_does_not_change_the_kind(
    odd: str, first: int, named: bool
) -> None:
    cells = [f"{(i * 7919) % 9000 + 0.25}" for i in range(first)]
    cells[first // 2] = odd
    model = OnlineClassifier(columns={"x": "number"} if named else {})
    with pytest.warns(
        MismatchWarning, match=re.escape(f"row {first // 2}, column 'x' holds '{odd}'")
    ):
        model.fit([{"x": cell} for cell in cells], ["a", "b"] * (first // 2))
    column = model.schema_["x"]
    assert (column.kind, dict(column.options)) == ("number", {})
    assert column.counted_misfits == f"1 of {first} cells was no number, missing: '{odd}'"


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y %H:%M", "%Y%m%d"])
@pytest.mark.parametrize("odd", ODD_DATES)
@pytest.mark.parametrize("at", [0, 7])
def test_one_odd_cell_among_the_first_dates_does_not_change_the_kind(
    odd: str, form: str, at: int
) -> None:
    moments = [datetime(2024, 1, 1) + timedelta(days=5 * i, hours=i % 24) for i in range(40)]
    cells = [f"{moment:{form}}" for moment in moments]
    cells[at] = odd
    model = OnlineClassifier(columns={})
    with pytest.warns(MismatchWarning, match=re.escape(f"column 'x' holds '{odd}'")):
        model.fit([{"x": cell} for cell in cells], ["a", "b"] * 20)
    column = model.schema_["x"]
    assert (column.kind, column.n_misfits) == ("date", 1)
    whole = OnlineClassifier(columns={}).fit([{"x": f"{m:{form}}"} for m in moments], ["a"] * 40)
    assert column.options == whole.schema_["x"].options


def test_more_odd_cells_than_one_in_ten_change_the_kind() -> None:
    for n_odd, kind in ((5, "number"), (6, "identifier")):
        cells = [f"n{i}" if i < n_odd else f"{i}.5" for i in range(50)]
        assert infer({"x": cells}, {})["x"].kind == kind
    assert infer({"x": ["abc", *map(str, range(8))]}, {})["x"].kind != "number"
    mixed = [datetime(2024, 1, 1) + timedelta(days=i) for i in range(20)]
    assert infer({"x": [*mixed, "open"]}, {})["x"].kind == "date"


def test_two_cells_of_a_unit_are_a_unit() -> None:
    cells = [f"{i}.5" for i in range(20)]
    assert infer({"x": [*cells, "4 mg", "5 mg"]}, {})["x"].options == {"unit": "mg"}
    assert infer({"x": [*cells, "4 mg"]}, {})["x"].options == {}
    assert infer({"x": ["4 mg"]}, {})["x"].options == {"unit": "mg"}


# ---- options -----------------------------------------------------------------------------------


def test_dates_are_named_with_their_formats(run: Any) -> None:
    rng, start = random.Random(1), datetime(2025, 1, 1)
    moments = [start + timedelta(minutes=rng.randrange(500_000)) for _ in range(80)]
    forms = '{0:%d/%m/%Y %H:%M};"{0:%b %d, %Y}";{1:.0f};{0.day}. Mai {0.year};{2}'
    rows = [forms.format(m, m.timestamp(), "ab"[i % 2]) for i, m in enumerate(moments)]
    write("dates.csv", "due;at;epoch;mai;kind", rows)
    named = "due:%d/%m/%Y,at:%b %d, %Y,epoch:epoch,mai:%d. %B %Y:de"
    code, _, err = run(*("learn", "a.kesler", "dates.csv", "--label", "kind", "--date", named))
    assert (code, err) == (0, "")
    kinds = {c.name: (c.kind, dict(c.options), c.n_misfits) for c in load("a.kesler").schema_}
    assert kinds == {
        "due": ("date", {"format": "%d/%m/%Y"}, 0),
        "at": ("date", {"format": "%b %d, %Y"}, 0),
        "epoch": ("date", {"format": "epoch"}, 0),
        "mai": ("date", {"format": "%d. %B %Y", "language": "de"}, 0),
    }
    code, _, err = run(*("learn", "b.kesler", "dates.csv", "--label", "kind", "--date", "due:%Q"))
    assert code == 2 and "'format'" in err


def test_the_decimal_sign_of_a_table_is_named(run: Any) -> None:
    rows = [f"{i % 9 + 1}.{100 + i};{i};{'ab'[i % 2]}" for i in range(80)]
    write("sums.csv", "sum;size;kind", rows)
    learn = "learn", "a.kesler", "sums.csv", "--label", "kind"
    for sign, options in (("a", []), (",", ["--decimal", ","]), (".", ["--decimal", "."])):
        Path("a.kesler").unlink(missing_ok=True)
        assert run(*learn, *options, "--table")[0] == 0
        column = load("a.kesler").schema_["sum"]
        assert column.options.get("decimal", ".") == ("," if sign == "," else ".")
        _, mean, _ = load("a.kesler")._input.columns.known.moments.get("sum", (0, 0, 0))
        if mean:
            assert (mean > 1000) == (sign == ",")
    row = {"sum": "1.234", "size": "5"}
    python = OnlineClassifier(columns={"*": {"decimal": ","}})
    python.fit([row, {"sum": "2.345", "size": "6"}], ["a", "b"])
    assert python.schema_ is not None and python.schema_["sum"].options == {"decimal": ","}


def test_all_other_columns_are_named_by_a_star() -> None:
    rows = [{"note": f"text {i}", "size": i, "colour": "red"} for i in range(60)]
    model = OnlineClassifier(columns={"note": "text", "*": "ignore"}).fit(rows, ["a", "b"] * 30)
    assert model.schema_ is not None
    assert {c.name: c.kind for c in model.schema_} == {
        "note": "text",
        "size": "ignore",
        "colour": "ignore",
    }


def test_options_without_a_kind_leave_it_to_the_cells() -> None:
    rows = [{"when": f"01/{1 + i % 12:02}/2024", "sum": f"{i}.500"} for i in range(1, 61)]
    columns = {"when": {"format": "%d/%m/%Y"}, "sum": {"decimal": ","}}
    model = OnlineClassifier(columns=columns).fit(rows, ["a", "b"] * 30)
    assert model.schema_ is not None
    assert [(c.kind, dict(c.options)) for c in model.schema_] == [
        ("date", {"format": "%d/%m/%Y"}),
        ("number", {"decimal": ","}),
    ]
    for name, odd in (("when", "%Y.%m.%d"), ("sum", ";")):
        given = {name: {"format" if name == "when" else "decimal": odd}}
        if name == "when":  # no cell is a date in this format
            found = OnlineClassifier(columns=given).fit(rows, ["a", "b"] * 30).schema_
            assert found is not None and found["when"].kind == "category"
        else:
            with pytest.raises(KeslerError, match="decimal"):
                OnlineClassifier(columns=given).fit(rows, ["a", "b"] * 30)


@pytest.mark.parametrize(
    ("python", "option"),
    [
        ("columns={'zip': 'category'}", "--category zip"),
        ('columns={"a b": "ignore"}', "--ignore 'a b'"),
        (
            "columns={'when': {'kind': 'date', 'format': '%d/%m/%Y'}}",
            "--date when:%d/%m/%Y",
        ),
        ("columns={'x': {'kind': 'number', 'decimal': ','}}", "--number x --decimal ,"),
        ("columns={}", "--table"),
        ("columns={f(x)}", "columns={f(x)}"),
    ],
)
def test_messages_name_options(python: str, option: str) -> None:
    assert spoken(f"name it: {python}.") == f"name it: {option}."


# ---- laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_order_of_the_first_rows_does_not_matter_for_the_kinds(seed: int) -> None:
    rng = random.Random(seed)
    rows: list[dict[str, Any]] = [
        {
            "sum": f"{rng.randrange(1, 9)}.{rng.randrange(100, 999)},{rng.randrange(10, 99)}",
            "when": f"{rng.randrange(1, 13):02}/{rng.randrange(1, 10):02}/2025",
            "unit": f"{rng.random() * 9:.1f} kg" if rng.random() < 0.9 else "?",
            "colour": rng.choice(["red", "blue", None]),
            "note": " ".join(rng.choice(["a", "note", "of", "words"]) for _ in range(9)),
            "tags": rng.choice([["a"], ["a", "b"]]),
        }
        for _ in range(50)
    ]
    found = []
    for _ in range(3):
        model = OnlineClassifier().fit(rows, ["a", "b"] * 25)
        assert model.schema_ is not None
        found.append({c.name: (c.kind, dict(c.options)) for c in model.schema_})
        rng.shuffle(rows)
    assert found[0] == found[1] == found[2]
    assert found[0]["sum"] == ("number", {"decimal": ","})


# ---- tables of numbers alone ---------------------------------------------------------------------


def numbers(n: int, odd: dict[int, str]) -> list[str]:
    """Return rows of two numbers and a class, of which the first number says the class."""
    drawn = random.Random(4)
    sizes = [drawn.gauss(100 + 200 * (i % 2), 40) for i in range(n)]
    return [
        f"{odd.get(i, f'{size:.1f}')},{drawn.gauss(0, 1):.2f},{'ab'[i % 2]}"
        for i, size in enumerate(sizes)
    ]


def test_cells_that_are_no_numbers_are_missing_in_tables_of_numbers(run: Any) -> None:
    write("gaps.csv", "size,age,kind", numbers(300, dict.fromkeys((150, 200, 250), "")))
    write("odd.csv", "size,age,kind", numbers(300, {150: "pending", 200: "n.v.", 250: "pending"}))
    label = "--label", "kind"
    assert run("learn", "gaps.kesler", "gaps.csv", *label)[0] == 0
    code, _, err = run("learn", "odd.kesler", "odd.csv", *label)
    assert code == 0 and err.count("\n") == 1
    assert "odd.csv, column 'size': 3 cells were no numbers, missing: 'pending' (line 152)" in err
    one, other = load("gaps.kesler"), load("odd.kesler")
    assert other.n_trials_ == 300 and other.n_mistakes_ == one.n_mistakes_
    raising = "--on-mismatch", "raise"
    code, _, err = run("learn", "c.kesler", "odd.csv", *raising, *label)
    assert code == 2 and "odd.csv, line 152: 'size' holds 'pending', which is no number" in err
    code, _, err = run("learn", "c.kesler", "odd.csv", *raising, "--skip-bad", *label)
    assert code == 0 and load("c.kesler").n_trials_ == 297


@pytest.mark.parametrize("first", ["pending", '"8,0,5"', "?", ""])
def test_rows_of_odd_cells_are_answered_by_a_model_of_numbers(run: Any, first: str) -> None:
    write("sizes.csv", "size,age,kind", numbers(300, {}))
    assert run("learn", "m.kesler", "sizes.csv", "--label", "kind")[0] == 0
    rows = [f"{first},1,a note", "$300,0.5,7", '"1,300",0,', "100,0,b"]
    write("asked.csv", "size,age,note", rows)
    code, out, err = run("predict", "m.kesler", "asked.csv")
    assert code == 0 and len(out.splitlines()) == 4
    assert out.splitlines()[1:] == ["b", "b", "a"]
    assert ("1 cell was no number" in err) == (first in ("pending", '"8,0,5"'))


def test_objects_of_json_are_answered_by_a_model_of_numbers(run: Any) -> None:
    write("sizes.csv", "size,age,kind", numbers(300, {}))
    assert run("learn", "m.kesler", "sizes.csv", "--label", "kind")[0] == 0
    rows = ['{"age": null, "size": 300}', '{"size": 100}', '{"age": 1, "note": "hi", "size": 301}']
    Path("asked.jsonl").write_text("\n".join(rows))
    assert run("predict", "m.kesler", "asked.jsonl") == (0, "b\na\nb\n", "")
