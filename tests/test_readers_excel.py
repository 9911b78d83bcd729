"""Workbooks of Excel and LibreOffice."""

import datetime as dt
import json
import random
import subprocess
import zipfile

import openpyxl
import pytest

from commands import kesler
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import excel, open_stream
from kesler.readers.lines import Lines
from kesler.readers.opening import format_of
from office import convert, needs_office
from test_readers import read

DAY, MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 8, 30)
TABLE = [
    ["team", "code", "hours", "day", "moment", "time", "urgent", 2024, "took", None],
    ["cards", "007", 1.5, DAY, MOMENT, dt.time(8, 30), True, 3, dt.timedelta(hours=30), None],
    [None] * 10,
    ["hr", "42", None, None, None, None, False, 1e20, dt.timedelta(minutes=2), "x"],
    ["hr", " ä\n", -2, DAY, None, dt.time(0), None, None, None, None],
]
MIDNIGHT = dt.datetime(2024, 2, 29)
COLUMNS = {
    "code": ["007", "42", " ä\n"],
    "hours": [1.5, None, -2],
    "day": [MIDNIGHT, None, MIDNIGHT],
    "moment": [MOMENT, None, None],
    "time": [30_600.0, None, 0.0],
    "urgent": [True, False, None],
    "2024": [3, 1e20, None],
    "took": [108_000.0, 120.0, None],
    "J": [None, "x", None],
}


def write(path, **sheets):
    """Write sheets of rows; a name that begins with an underscore is that of a hidden sheet."""
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name.removeprefix("_"))
        sheet.sheet_state = "hidden" if name.startswith("_") else "visible"
        for row in rows:
            sheet.append(row)
    book.save(path)
    return path


def table_of(path, **options):
    (block,) = open_stream(path, as_table=True, **{"label": "team", **options})
    return block.labels, block.rows.columns


# ---- what is read -------------------------------------------------------------------------------


def test_cells_have_their_types_and_empty_rows_are_left_out(tmp_path):
    path = write(tmp_path / "rows.xlsx", Tickets=TABLE)
    assert table_of(path) == (["cards", "hr", "hr"], COLUMNS)
    whole = [type(cell) for cell in table_of(path)[1]["2024"]]
    assert whole == [int, float, type(None)]


@needs_office
@pytest.mark.parametrize("locale", ["de-DE", "en-US"])
@pytest.mark.parametrize("suffix", [".ods", ".xls", ".xlsx"])
def test_what_libreoffice_saves_is_what_it_opened(tmp_path, suffix, locale):
    path = write(tmp_path / "rows.xlsx", Tickets=TABLE)
    saved = convert(path, suffix[1:], locale, suffix)
    labels, columns = table_of(saved)
    assert labels == ["cards", "hr", "hr"]
    if suffix == ".ods":  # in which calamine reads truth values as numbers
        columns["urgent"] = [None if cell is None else bool(cell) for cell in columns["urgent"]]
    assert columns == COLUMNS


@needs_office
@pytest.mark.parametrize("locale", ["de-DE", "en-US"])
@pytest.mark.parametrize("suffix", [".ods", ".xlsx"])
def test_tables_that_libreoffice_made_of_csv(tmp_path, suffix, locale):
    path = tmp_path / "rows.csv"
    path.write_text('team,price,day,body\ncards,"1,234.5",02/29/2024,"lost, card"\nhr,-3,,Ärger\n')
    labels, columns = table_of(convert(path, suffix[1:], locale, suffix))
    assert labels == ["cards", "hr"]
    assert columns == {
        "price": [1234.5, -3],
        "day": [MIDNIGHT, None],
        "body": ["lost, card", "Ärger"],
    }


def test_features_are_those_of_csv(tmp_path):
    rows = [["y", "size", "colour"], ["a", 2, "red"], ["b", None, "blue"], ["a", 4.5, None]]
    path = write(tmp_path / "rows.xlsx", s=rows)
    text = "\n".join(",".join("" if cell is None else str(cell) for cell in row) for row in rows)
    tmp_path.joinpath("rows.csv").write_text(text)
    assert read(path, label="y") == read(tmp_path / "rows.csv", label="y")
    numbers = write(tmp_path / "numbers.xlsx", s=[["y", "a", "b"], [1, 2, 0.5], [2, 3, 1]])
    (block,) = open_stream(numbers, label="y")
    assert block.rows.dense and block.labels == [1, 2]


def test_numbers_and_dates_in_columns_of_texts_are_texts(tmp_path):
    path = write(tmp_path / "rows.xlsx", s=[["y", "t"], ["a", 42], ["b", "Lost"], ["c", None]])
    assert read(path, label="y", text="t") == [("a", {"42": 1}), ("b", {"lost": 1}), ("c", {})]


def test_a_table_may_begin_anywhere(tmp_path):
    book = openpyxl.Workbook()
    for cell, value in {"C3": "y", "D3": "x", "C4": "a", "D4": 1, "C9": None, "E4": 5}.items():
        book.active[cell] = value
    book.save(tmp_path / "rows.xlsx")
    assert table_of(tmp_path / "rows.xlsx", label="y") == (["a"], {"x": [1], "E": [5]})


TITLED = [["Tickets of May"], [], ["team", "x"], ["a", 1], ["b", 2]]


@pytest.mark.parametrize(
    "rows, number",
    [(TITLED, 3), ([["Desk", "May"], *TITLED[2:]], 2), ([["n", 5], ["to", "x"], *TITLED[2:]], 3)],
)
def test_rows_above_the_names_of_columns_are_left_out_and_told(tmp_path, rows, number):
    path = write(tmp_path / "rows.xlsx", May=rows)
    with pytest.warns(ReadingWarning, match=f"sheet 'May' of .*: row {number} names the columns"):
        assert table_of(path) == (["a", "b"], {"x": [1, 2]})


def test_a_table_of_one_column_begins_at_once(tmp_path):
    path = write(tmp_path / "rows.xlsx", s=[["body"], ["lost card"], ["late pay"]])
    (block,) = open_stream(path, text="body", require_labels=False)
    assert len(block) == 2


# ---- sheets -------------------------------------------------------------------------------------

SHEETS = {"_Notes": [["n"]], "Jan": [["team", "x"], ["a", 1]], "Feb": [["team", "x"], ["b", 2]]}


def test_the_first_sheet_that_is_not_hidden_is_read_and_named(tmp_path):
    path = write(tmp_path / "rows.xlsx", **SHEETS)
    sentence = r"sheets 'Notes', 'Jan', 'Feb', of which 'Jan' is read: .* sheet=\.\.\."
    with pytest.warns(ReadingWarning, match=sentence):
        assert table_of(path) == (["a"], {"x": [1]})


def test_a_sheet_is_read_by_its_name(tmp_path):
    path = write(tmp_path / "rows.xlsx", **SHEETS)
    assert table_of(path, sheet="Feb") == (["b"], {"x": [2]})
    notes = write(tmp_path / "notes.xlsx", **{**SHEETS, "_Notes": [["n", "x"], ["c", 3]]})
    assert table_of(notes, sheet="Notes", label="n") == (["c"], {"x": [3]})
    with pytest.raises(KeslerError, match=r"no sheet 'Mar': it has 'Notes', 'Jan', 'Feb'"):
        open_stream(path, sheet="Mar", label="team")
    with pytest.raises(KeslerError, match=r"without sheet=\.\.\.: .* for excel"):
        tmp_path.joinpath("rows.csv").write_text("team,x\na,1\n")
        open_stream(tmp_path / "rows.csv", sheet="Jan", label="team")


@pytest.mark.parametrize("name", ["rows.xlsx", "rows.csv", "rows"])
def test_workbooks_are_known_by_their_content(tmp_path, name):
    book = write(tmp_path / "book.xlsx", **{"s": [["team", "x"], ["a", 1]]})
    path = book.rename(tmp_path / name)
    assert format_of(str(path), Lines(str(path))) == "excel"
    assert table_of(path) == (["a"], {"x": [1]})


@pytest.mark.parametrize("name", ["rows.xls", "rows.xlsx", "rows.parquet", "rows.db"])
def test_text_with_the_suffix_of_another_format_is_text(tmp_path, name):
    path = tmp_path / name
    # As some programs write for Excel.
    path.write_text("team\tx\na b\t1\n", encoding="utf-16" if name == "rows.xls" else "utf-8")
    assert format_of(str(path), Lines(str(path))) == "csv"
    assert table_of(path) == (["a b"], {"x": ["1"]})


# ---- errors -------------------------------------------------------------------------------------


def test_a_bad_row_is_named_by_its_sheet_and_number(tmp_path):
    rows = [["team", "x"], ["a", 1], [None, None], [None, 3], ["b", 4]]
    path = write(tmp_path / "rows.xlsx", **{"It's": rows})
    with pytest.warns(ReadingWarning, match=r"rows\.xlsx: .* sheet \"It's\", row 4: there is no"):
        assert read(path, label="team") == [("a", {"x": 1}), ("b", {"x": 4})]


@pytest.mark.parametrize(
    "rows, sentence",
    [
        ([], "the sheet 's' of .* is empty"),
        ([["team", "x"]], "holds no rows"),
        ([["team", "x", "x"], ["a", 1, 2]], "more than one column 'x'"),
        ([["x"], [1]], "has no column 'team': it has 'x'"),
    ],
)
def test_what_is_wrong_is_a_sentence(tmp_path, rows, sentence):
    path = write(tmp_path / "rows.xlsx", s=rows)
    with pytest.raises(KeslerError, match=sentence):
        read(path, label="team")


def test_the_extra_is_named(tmp_path, monkeypatch):
    path = write(tmp_path / "rows.xlsx", s=[["team"], ["a"]])
    monkeypatch.setattr(excel, "find_spec", lambda name: None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[excel\]'"):
        open_stream(path, label="team")


def test_cells_that_are_far_apart_stop_no_process_but_their_own(tmp_path):
    book = openpyxl.Workbook()
    book.active["A1"], book.active["XFD1048576"] = "team", "far"
    book.save(tmp_path / "rows.xlsx")
    with pytest.raises(KeslerError, match=r"rows\.xlsx can't be read as a workbook \(its reader"):
        open_stream(tmp_path / "rows.xlsx", label="team")


def test_the_process_ends_with_the_stream(tmp_path, monkeypatch):
    started = []

    class Noted(subprocess.Popen):
        def __init__(self, *given, **options):
            super().__init__(*given, **options)
            started.append(self)

    monkeypatch.setattr(subprocess, "Popen", Noted)
    rows = [["team", "x"], *(["a", "x" * 50] for _ in range(30_000))]
    path = write(tmp_path / "rows.xlsx", s=rows)
    stream = open_stream(path, label="team")
    next(stream)
    assert started[0].poll() is None
    del stream
    assert started[0].poll() is not None
    assert sum(len(block) for block in open_stream(path, label="team")) == 30_000


def read_or_refused(path, suffix):
    try:
        read(path, label="team", skip_bad=True, format="excel")
    except KeslerError as error:
        assert path.name in str(error)
        return False
    return True


def altered(content, n=1):
    found = bytearray(content)
    for _ in range(n):
        found[random.randrange(len(found))] = random.choice([0, 9, 34, 60, 62, 65, 255])
    return bytes(found)


@pytest.mark.filterwarnings("ignore::kesler.errors.ReadingWarning")
def test_altered_bytes_of_an_archive_are_rows_or_a_sentence(tmp_path):
    random.seed(2)
    content = write(tmp_path / "rows.xlsx", s=TABLE).read_bytes()
    path = tmp_path / "altered.xlsx"
    found = set()
    for i in range(30):
        path.write_bytes(altered(content) if i % 2 else content[: random.randrange(len(content))])
        found.add(read_or_refused(path, ".xlsx"))
    assert found == {True, False}


@pytest.mark.filterwarnings("ignore::kesler.errors.ReadingWarning")
def test_altered_parts_of_a_workbook_are_rows_or_a_sentence(tmp_path):
    random.seed(3)
    path, changed = write(tmp_path / "rows.xlsx", s=TABLE), tmp_path / "altered.xlsx"
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    found = set()
    for _ in range(40):
        which = random.choice([name for name in members if name.startswith("xl/")])
        with zipfile.ZipFile(changed, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, altered(content, 3) if name == which else content)
        found.add(read_or_refused(changed, ".xlsx"))
    assert found == {True, False}


@needs_office
@pytest.mark.filterwarnings("ignore::kesler.errors.ReadingWarning")
@pytest.mark.parametrize("suffix", [".xls", ".ods"])
def test_altered_bytes_of_libreoffice_are_rows_or_a_sentence(tmp_path, suffix):
    random.seed(4)
    path = convert(write(tmp_path / "rows.xlsx", s=TABLE), suffix[1:], "en-US", suffix)
    content = path.read_bytes()
    for _ in range(30):
        path.write_bytes(altered(content, 3))
        read_or_refused(path, suffix)


# ---- commands -----------------------------------------------------------------------------------


def test_commands_take_workbooks_and_remember_the_sheet(tmp_path, capsys):
    rows = [["team", "body"], *(["hr" if i % 2 else "it", f"{i % 2} words"] for i in range(60))]
    path, model = write(tmp_path / "rows.xlsx", Other=[["n"], [1]], Tickets=rows), tmp_path / "m"
    given = ("--label", "team", "--sheet", "Tickets")
    learnt = kesler(capsys, "learn", model, path, *given)
    assert (learnt.code, learnt.err) == (0, "") and "60 rows" in learnt.out
    predicted = kesler(capsys, "predict", model, path)
    assert (predicted.code, predicted.err) == (0, "") and predicted.out.split()[-4:] == [
        "it",
        "hr",
    ] * 2
    tested = kesler(capsys, "test", model, path, "--json", "-")
    assert json.loads(tested.out)["n_rows"] == 60
    again = kesler(capsys, "learn", model, path, "--resume")
    assert "nothing was learnt" in again.out
    compared = kesler(capsys, "compare", path, *given, "--methods", "default")
    assert compared.code == 0
    first = kesler(capsys, "compare", path, "--label", "n", "--methods", "default")
    assert "'Other' is read: name another with --sheet" in first.err


def test_formulas_that_were_never_calculated_are_named(tmp_path):
    """As openpyxl writes them, which calculates nothing; LibreOffice does."""
    rows = [["a", "sum", "team"], *([i, f"=A{i + 2}+1", "xy"[i % 2]] for i in range(20))]
    path = write(tmp_path / "rows.xlsx", Rows=rows)
    with pytest.warns(ReadingWarning, match=r"never calculated.*columns 'sum' have no others"):
        assert table_of(path)[1]["sum"] == [None] * 20
    empty = write(
        tmp_path / "empty.xlsx",
        Rows=[row if i == 0 else [row[0], None, row[2]] for i, row in enumerate(rows)],
    )
    assert table_of(empty)[1]["sum"] == [None] * 20


@needs_office
def test_formulas_that_libreoffice_calculates_are_numbers(tmp_path):
    rows = [["a", "sum", "team"], *([i, f"=A{i + 2}+1", "xy"[i % 2]] for i in range(20))]
    path = convert(write(tmp_path / "rows.xlsx", Rows=rows), "ods", "en-US", ".ods")
    assert table_of(path)[1]["sum"] == [*range(1, 21)]
