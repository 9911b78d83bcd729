"""CSV as programs and people write it: every dialect gives the rows of the plain form."""

import bz2
import csv
import gzip
import io
import lzma
import random
import shutil
import sqlite3
import subprocess
import sys
import time
import warnings

import pandas
import polars
import pytest

from commands import kesler, kesler_process
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import open_stream
from kesler.readers.csv_rows import MOST_AGAIN, CsvRows
from kesler.readers.dialects import N_LINES, Dialect, found_in
from office import convert, needs_office
from test_readers import read, write

KINDS = ["Apfel", "Birne", "Pflaume"]
HEADER = ["size", "note", "kind"]
ROWS = [[f"{i * 7 % 50}.5", f"ripe, no {i}", KINDS[i * 5 % 3]] for i in range(60)]


def written(rows=ROWS, header=HEADER, **options):
    """Return a table as the csv module writes it."""
    file = io.StringIO()
    csv.writer(file, **{"lineterminator": "\n", **options}).writerows([header, *rows])
    return file.getvalue()


@pytest.fixture
def plain(tmp_path):
    return read(write(tmp_path, "plain.csv", written()), label="kind")


def rows_of(tmp_path, content, **options):
    return read(write(tmp_path, "rows.csv", content), **{"label": "kind", **options})


def told(tmp_path, content, **options):
    """Return the rows of a table that is read with a warning, and the warning."""
    with pytest.warns(ReadingWarning) as said:
        rows = rows_of(tmp_path, content, **options)
    return rows, str(said[0].message)


# ---- what is found ------------------------------------------------------------------------------

FOUND = {
    "comma": written(),
    "semicolon": written(delimiter=";"),
    "tab": written(delimiter="\t"),
    "bar": written(delimiter="|"),
    "all quoted": written(delimiter=";", quoting=csv.QUOTE_ALL),
    "apostrophes": written(quotechar="'", quoting=csv.QUOTE_ALL),
    "backslashes": written(escapechar="\\", quoting=csv.QUOTE_NONE),
    "spaces": written().replace(',"', ', "'),
    "separator line": "sep=;\r\n" + written(delimiter=";", lineterminator="\r\n"),
    "quoted separator line": '"sep=|"\n' + written(delimiter="|"),
    "separator line of a comma": "sep=,\n" + written(),
    "empty lines": "\n\n" + written().replace("\n", "\n\n"),
    "trailing delimiters": written([[*row, ""] for row in ROWS]),
    "trailing header": written([[*row, "", ""] for row in ROWS], [*HEADER, "", ""]),
    "spaces in trailing cells": written([[*row, "", " "] for row in ROWS], [*HEADER, " ", ""]),
}


@pytest.mark.parametrize("name", FOUND)
def test_a_dialect_is_found_without_a_word(tmp_path, plain, name):
    rows = rows_of(tmp_path, FOUND[name])
    assert rows == plain


def test_decimal_commas_separate_nothing(tmp_path):
    """The header tells that `;` is the delimiter, though each row has a comma or two."""
    rows = [[row[0].replace(".", ","), "1.234,5", row[2]] for row in ROWS]
    found = rows_of(tmp_path, written(rows, ["size, cm", "weight, g", "kind"], delimiter=";"))
    assert found[1] == ("Pflaume", {"size, cm=7,5": 1.0, "weight, g=1.234,5": 1.0})
    stream = open_stream(tmp_path / "rows.csv", require_labels=False)
    list(stream)
    assert "size, cm=7,5" in stream.vocabulary.names


def test_a_header_without_the_delimiter_is_no_title(tmp_path):
    """By commas, the rows have three cells each and the header one, as a title has."""
    text = "size;weight\n" + "".join(f"{i},5;{i * i},25\n" for i in range(30))
    stream = open_stream(write(tmp_path, "rows.csv", text), require_labels=False)
    assert sum(map(len, stream)) == 30 and "size=7,5" in stream.vocabulary.names


def test_a_title_with_another_delimiter_is_a_title(tmp_path):
    text = "Report, May\nsize;weight;kind\n" + "".join(f"{i},5;{i},25;a\n" for i in range(30))
    rows, said = told(tmp_path, text, label=None, require_labels=False)
    assert len(rows) == 30 and "the first 'Report, May'" in said and "kind=a" in rows[0][1]


def test_backslashes_before_quotes_are_found(tmp_path):
    text = written([["1", 'a "b", c', "x"], ["2", "d\\e", "y"]], escapechar="\\", doublequote=False)
    assert '\\"b\\"' in text
    assert rows_of(tmp_path, text) == [
        ("x", {"size": 1.0, 'note=a "b", c': 1.0}),
        ("y", {"size": 2.0, "note=d\\e": 1.0}),
    ]
    paths = written([["1", "C:\\", "x"], ["2", "D:\\", "y"]], quoting=csv.QUOTE_ALL)
    assert rows_of(tmp_path, paths)[0] == ("x", {"size": 1.0, "note=C:\\": 1.0})


def test_one_column_needs_no_delimiter(tmp_path):
    stream = open_stream(write(tmp_path, "rows.csv", "size\n1\n2\n"), require_labels=False)
    assert [block.rows.values.tolist() for block in stream] == [[1.0, 2.0]]


# ---- where the table begins ---------------------------------------------------------------------

BEFORE = {
    "comments": "# made by a lab tool, v2\n# units: cm, g\n",
    "a title": "Report of May 2024\n\n",
    "a title in a row": "Report of May 2024,,\n",
    "names and values": "Date:,2024-05-01\nUnit:,cm\n\n",
    "names and values in rows": "Date:,2024-05-01,\nUnit:,cm,\n,,\n",
    "a name and a value": "Unit:,cm\n\n",
    "names and values alone": "Unit:,cm\nOwner:,Ann\n",
}


@pytest.mark.parametrize("name", BEFORE)
def test_lines_before_the_header_are_left_out_and_told(tmp_path, plain, name):
    rows, said = told(tmp_path, BEFORE[name] + written())
    assert rows == plain
    first = BEFORE[name].splitlines()
    n_lines = sum(1 for line in first if line)
    what = "1 line" if n_lines == 1 else f"{n_lines} lines"
    assert f"rows.csv has {what} before its table, left out, the first {first[0]!r}" in said
    assert "skip_lines=..." in said
    assert told(tmp_path, BEFORE[name] + written(), require_labels=False)[0] == plain


def test_a_header_that_lacks_one_name_is_no_title(tmp_path):
    """Neither as R writes one, without a name for those of rows, nor above empty cells."""
    text = "size,kind\n" + "".join(f"{i},{i}.5,a\n" for i in range(9))
    stream = open_stream(write(tmp_path, "rows.csv", text), skip_bad=True, require_labels=False)
    with pytest.raises(KeslerError, match=r"holds no rows \(9 are bad\)"):
        list(stream)
    text = "size,kind,,\n" + "".join(f"{i},a,,\n" for i in range(9)) + "1,b,,\n"
    assert len(rows_of(tmp_path, text)) == 10


def test_lines_to_skip_can_be_said(tmp_path, plain):
    text = "a,b,kind\n1,2,3\n" + written()
    assert rows_of(tmp_path, text, skip_lines=2) == plain
    assert len(rows_of(tmp_path, text.replace("1,2,3\n", "1,2,3\n\n"), skip_lines=3)) == 60
    with pytest.raises(KeslerError, match=r"rows\.csv has no column 'kind': it has '0\.5', 'ripe"):
        rows_of(tmp_path, written(), skip_lines=1)
    with pytest.raises(KeslerError, match=r"rows\.csv is empty"):
        rows_of(tmp_path, written(), skip_lines=100)


@pytest.mark.parametrize("sign", ["#", "# ", "##"])
@pytest.mark.parametrize("before", ["", "# made by a lab tool, v2\n", "# units: cm\n\n"])
def test_a_header_behind_the_sign_of_comments_has_names_without_it(tmp_path, plain, sign, before):
    path = write(tmp_path, "rows.csv", before + sign + written())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)  # of the lines before it
        assert read(path, label="kind") == plain
        (block,) = open_stream(path, as_table=True, require_labels=False)
    assert [*block.rows.columns] == HEADER


def test_a_comment_above_the_header_of_words_is_a_comment(tmp_path):
    text = "# animal, noun\ntown,kind\n" + "Bonn,a\nRome,b\n" * 9
    rows, said = told(tmp_path, text, label=None, require_labels=False)
    assert rows[0][1] == {"town=Bonn": 1.0, "kind=a": 1.0} and "'# animal, noun'" in said
    sign_alone = "#,size,kind\n1,2,a\n2,3,b\n"
    assert rows_of(tmp_path, sign_alone)[0] == ("a", {"#": 1.0, "size": 2.0})


def test_a_first_row_that_is_too_long_is_no_title(tmp_path):
    """Only lines that cannot be a header are left out, however odd the rows below."""
    text = "size,kind\n" + "".join(f"{row[0]},{row[1]},{row[2]}\n" for row in ROWS)
    stream = open_stream(write(tmp_path, "rows.csv", text), skip_bad=True, require_labels=False)
    with pytest.raises(KeslerError, match=r"holds no rows \(60 are bad\)"):
        list(stream)


# ---- without a header ---------------------------------------------------------------------------


def test_columns_without_a_header_are_named_by_their_numbers(tmp_path):
    text = written(header=ROWS[0], rows=ROWS[1:])
    rows = rows_of(tmp_path, text, label="3", header=False)
    assert len(rows) == 60 and rows[1] == ("Pflaume", {"1": 7.5, "2=ripe, no 1": 1.0})
    told_rows, said = told(tmp_path, text, label="3")
    assert told_rows == rows and "without a header, whose columns have the names 1 to 3" in said
    with pytest.raises(KeslerError, match="has no column '3'"):
        rows_of(tmp_path, text, label="3", header=True)


def test_cells_of_rows_are_no_names_of_columns(tmp_path):
    """Wherever a cell holds the number that names the column of labels."""
    rows = [[f"ripe, no {i}", str(i % 9), KINDS[i % 3]] for i in range(60)]
    plain = rows_of(tmp_path, written(rows, ["1", "2", "3"]), label="3")
    for first in range(9):
        text = written(rows[first + 1 :], rows[first])
        found, said = told(tmp_path, text, label="3")
        assert found == plain[first:] and "without a header" in said


def test_numbers_above_numbers_are_names_if_one_is_a_word(tmp_path):
    text = "size,3,kind\n" + "".join(f"{i},{i % 4},{KINDS[i % 3]}\n" for i in range(20))
    found = rows_of(tmp_path, text, label="3")
    assert [label for label, _ in found] == [str(i % 4) for i in range(20)]
    words = "town,kind\n" + "Bonn,a\nRome,b\n" * 9
    with pytest.raises(KeslerError, match=r"no column '2': .* by their numbers with header=False$"):
        rows_of(tmp_path, words, label="2")


def test_a_header_of_numbers_is_a_header(tmp_path):
    text = written(header=["1", "2", "3"])
    assert rows_of(tmp_path, text, label="3")[1] == ("Pflaume", {"1": 7.5, "2=ripe, no 1": 1.0})
    with pytest.raises(KeslerError, match=r"has no column '7': it has 'size', 'note', 'kind'$"):
        rows_of(tmp_path, written(), label="7")


def test_a_missing_column_is_refused_with_what_to_do(tmp_path):
    with pytest.raises(KeslerError, match=r"'0\.5', .*or name columns by .* with header=False$"):
        rows_of(tmp_path, written(header=ROWS[0]))
    with pytest.raises(KeslerError, match=r"it has 'size:kind'; if .* with delimiter=\.\.\.$"):
        rows_of(tmp_path, "size:kind\n1:a\n")


def test_columns_of_the_same_name_are_refused_and_can_be_read_by_number(tmp_path):
    text = written(header=["x", "x", "kind"])
    with pytest.raises(KeslerError, match=r"column 'x': .* by .* header=False, skip_lines=1"):
        rows_of(tmp_path, text)
    rows = rows_of(tmp_path, text, label="3", header=False, skip_lines=1)
    assert rows[1] == ("Pflaume", {"1": 7.5, "2=ripe, no 1": 1.0})


def test_unnamed_columns_with_cells_are_columns(tmp_path):
    text = "size,kind,\n1,a,x\n2,b,\n"
    assert rows_of(tmp_path, text) == [("a", {"size": 1.0, "=x": 1.0}), ("b", {"size": 2.0})]


@pytest.mark.parametrize("row", ["1,a", "1,a,b,c", "1,a,b,,c", '1,a,b,"c"'])
def test_rows_of_other_lengths_are_bad(tmp_path, row):
    text = written([["1", "a", "b"]]) + row + "\n"
    with pytest.raises(KeslerError, match=r"line 3: it has \d fields and the header 3"):
        rows_of(tmp_path, text)
    assert len(rows_of(tmp_path, text, skip_bad=True)) == 1


# ---- options ------------------------------------------------------------------------------------


def test_what_is_given_is_not_found(tmp_path, plain):
    assert rows_of(tmp_path, written(delimiter=":"), delimiter=":") == plain
    assert rows_of(tmp_path, written(quotechar="~"), quote="~") == plain
    text = written(escapechar="^", quoting=csv.QUOTE_NONE)
    assert rows_of(tmp_path, text, escape="^") == plain
    loose = 'size\tnote\tkind\n1\t"a" or b\tx\n2\tc "d\ty\n3\t"e\tx\n'
    assert [label for label, _ in rows_of(tmp_path, loose, quote="")] == ["x", "y", "x"]
    assert rows_of(tmp_path, loose, quote="")[2][1] == {"size": 3.0, 'note="e': 1.0}


@pytest.mark.parametrize(
    "options",
    [{"delimiter": ";;"}, {"delimiter": ""}, {"delimiter": "\n"}, {"quote": "''"}, {"escape": ""}],
)
def test_an_option_that_is_no_character_is_refused(tmp_path, options):
    with pytest.raises(KeslerError, match=r"='?.*: give one character"):
        rows_of(tmp_path, written(), **options)


def test_the_options_are_those_of_csv_alone(tmp_path):
    path = write(tmp_path, "rows.vw", "1 | a\n")
    with pytest.raises(KeslerError, match=r"without delimiter=\.\.\., .*or give format=\"csv\""):
        open_stream(path, delimiter=";")
    with pytest.raises(KeslerError, match="skip_lines=-1: give a number of lines from 0 on"):
        open_stream(path, skip_lines=-1)


# ---- quotes that are not closed -----------------------------------------------------------------


def broken(at, row='1,"ripe and more,Apfel', rows=ROWS):
    lines = written(rows).splitlines(keepends=True)
    return "".join([*lines[:at], row + "\n", *lines[at:]])


@pytest.mark.parametrize("at", [1, 2, 30, 61])
@pytest.mark.parametrize("mode", [{}, {"as_table": True}, {"text": "note"}])
def test_an_unclosed_quote_costs_its_own_row(tmp_path, at, mode):
    path = write(tmp_path, "rows.csv", broken(at))
    with pytest.raises(KeslerError, match=rf"rows\.csv, line {at + 1}: .*quote is opened in it"):
        list(open_stream(path, label="kind", **mode))
    stream = open_stream(path, label="kind", skip_bad=True, **mode)
    labels = [label for block in stream for label in block.labels]
    assert labels == [row[2] for row in ROWS] and stream.n_bad == 1


@pytest.mark.parametrize("small", [-1, 1 << 40])
def test_scanned_rows_below_an_unclosed_quote_are_read(tmp_path, monkeypatch, small):
    """Whether Python or the compiled scanner reads them, and wherever a chunk ends."""
    from kesler.readers import lines

    rows = [[str(i), str(i % 7), KINDS[i % 3]] for i in range(3000)]
    plain = rows_of(tmp_path, written(rows))
    monkeypatch.setattr(lines, "SMALL", small)
    for chunk in (64, 1000, 1 << 18):
        monkeypatch.setattr(lines, "CHUNK", chunk)
        for at in (1, 2, 1500, 3001):
            text = broken(at, '"7,7,Apfel', rows)
            stream = open_stream(write(tmp_path, "rows.csv", text), label="kind", skip_bad=True)
            labels = [label for block in stream for label in block.labels]
            assert (labels, stream.n_bad) == ([label for label, _ in plain], 1)


def test_two_quotes_far_apart_cost_two_rows(tmp_path):
    lines = written().splitlines()
    lines[40:40] = ['1,"ripe,Apfel', "2,ripe,Birne", "3,ripe,Apfel", '4,ripe",Apfel']
    stream = open_stream(write(tmp_path, "rows.csv", "\n".join(lines)), label="kind", skip_bad=True)
    assert sum(map(len, stream)) == 63 and stream.n_bad == 1


def test_cells_of_several_lines_are_cells(tmp_path):
    letters = ["Dear sir,\nthe card, lost, is\nblack,\n\nyours,\nA", "one\ntwo", 'a "b"\nc,d,e\nf']
    rows = [[str(i), letters[i % 3], KINDS[i % 3]] for i in range(30)]
    found = rows_of(tmp_path, written(rows))
    assert [entry for _, entry in found][:3] == [
        {"size": float(i), f"note={letters[i]}": 1.0} for i in range(3)
    ]
    assert len(found) == 30


def test_the_last_row_may_lack_its_quote(tmp_path):
    text = written() + '1,"ripe,Apfel'
    with pytest.raises(KeslerError, match=r"line 62: it is not CSV \(a quote is opened in it"):
        rows_of(tmp_path, text)
    assert len(rows_of(tmp_path, text, skip_bad=True)) == 60


def test_many_unclosed_quotes_take_linear_time():
    """Each line opens a quote that none of the next thousands closes before its end."""
    content = [b'x","\n'] * 300_000
    rows = CsvRows(iter(enumerate(content, 1)), Dialect(delimiter=",").reader)
    started = time.process_time()
    assert sum(1 for _ in rows) >= len(content) // 2
    assert time.process_time() - started < 30
    assert rows._n_again <= MOST_AGAIN + 6 * rows._n_read


# ---- returns -----------------------------------------------------------------------------------

RETURNS = {
    "in texts first": ("note,kind\n", "ripe\rand red,a\nsoft,b\n"),
    "in texts last": ("kind,note\n", "a,ripe\rand red\nb,soft\n"),
    "of a header": ("note,kind\r", "ripe and red,a\nsoft,b\n"),
    "of a header above others": ("note,kind\r", "ripe\rand red,a\nsoft,b\n"),
    "of some rows": ("note,kind\r\n", "ripe and red,a\rsoft,b\n"),
    "of all rows but one": ("note,kind\r", 'ripe and red,a\rsoft,b\r"x\ny",a\r'),
    "in the header": ("note,\rkind\n", "ripe and red,a\nsoft,b\n"),
}


@pytest.mark.parametrize("small", [-1, 1 << 18])
@pytest.mark.parametrize("name", RETURNS)
def test_returns_end_rows_or_are_spaces(tmp_path, monkeypatch, name, small):
    from kesler.readers import lines

    monkeypatch.setattr(lines, "SMALL", small)
    header, rows = RETURNS[name]
    path = write(tmp_path, "rows.csv", header + rows * 40)
    for options in ({}, {"as_table": True}):
        labels = [
            label for block in open_stream(path, label="kind", **options) for label in block.labels
        ]
        assert labels == [*("aba" if "x\ny" in rows else "ab")] * 40
    (block,) = open_stream(path, label="kind", as_table=True)
    assert [*block.rows.columns] == ["note"]
    assert block.rows.columns["note"][:2] == ["ripe and red", "soft"]


def test_many_returns_take_linear_time():
    content = b"a,b\n" + b'x,"y",z\r' * 300_000 + b"\n"
    rows = CsvRows(
        iter(enumerate(content.splitlines(keepends=False) and content.split(b"\n"), 1)),
        Dialect(delimiter=",").reader,
    )
    started = time.process_time()
    assert sum(1 for _ in rows) == 300_001
    assert time.process_time() - started < 30


def test_lines_of_white_space_are_no_rows(tmp_path, plain):
    assert rows_of(tmp_path, written().replace("\n", "\n \t \n")) == plain


def test_a_delimiter_of_two_characters_is_named(tmp_path):
    with pytest.raises(KeslerError, match=r"has '\|\|' between its cells.*sed 's/\|\|/\|/g'"):
        rows_of(tmp_path, written(delimiter="|").replace("|", "||"))


# ---- programs -----------------------------------------------------------------------------------

OFFICE = "csv:Text - txt - csv (StarCalc):{},34,{},1,,0,false,true,false"


@needs_office
@pytest.mark.parametrize("locale", ["de-DE", "en-US"])
def test_what_libreoffice_writes_is_read(tmp_path, locale):
    rows = [[f"{i * 37 % 1000 / 8 + 0.5}", f"für {i}, Köln", KINDS[i % 3]] for i in range(40)]
    path = write(tmp_path, "fruit.csv", written(rows))
    workbook = convert(path, "ods", locale, ".ods")
    mark = "," if locale == "de-DE" else "."
    cells = [
        {"size": f"{float(size):.10g}".replace(".", mark), "note": note} for size, note, _ in rows
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        for delimiter, encoding in ((59, 76), (59, "ANSI"), (9, 65535), (124, 76), (44, 12)):
            found = convert(workbook, OFFICE.format(delimiter, encoding), locale, ".csv")
            blocks = open_stream(found, label="kind", as_table=True)
            tables = [(block.labels, block.rows.columns) for block in blocks]
            ((labels, columns),) = tables
            assert labels == [row[2] for row in rows]
            expected = {name: [row[name] for row in cells] for name in columns}
            assert columns == expected, (delimiter, encoding)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="sqlite3 is not installed")
@pytest.mark.parametrize(
    "options", [["-csv"], ["-separator", ";"], ["-tabs"], ["-csv", "-newline", "\r"]]
)
def test_what_sqlite3_writes_is_read(tmp_path, plain, options):
    with sqlite3.connect(tmp_path / "fruit.db") as database:
        database.execute("create table fruit (size real, note text, kind text)")
        database.executemany("insert into fruit values (?, ?, ?)", ROWS)
    database.close()
    query = [tmp_path / "fruit.db", "select * from fruit"]
    done = subprocess.run(["sqlite3", "-header", *options, *query], capture_output=True, check=True)
    assert rows_of(tmp_path, done.stdout) == plain


def test_what_pandas_and_polars_write_is_read(tmp_path, plain):
    frame = pandas.DataFrame(ROWS, columns=HEADER).astype({"size": float})
    path = tmp_path / "rows.csv"
    for delimiter in ",;\t|":
        frame.to_csv(path, sep=delimiter, index=False)
        assert read(path, label="kind") == plain
        polars.from_pandas(frame).write_csv(path, separator=delimiter, include_bom=True)
        assert read(path, label="kind") == plain
    frame.to_csv(path, sep=";", decimal=",", index=False, encoding="utf-16")
    assert read(path, label="kind")[1][1] == {"size=7,5": 1.0, "note=ripe, no 1": 1.0}
    frame.to_csv(path, index=False, escapechar="\\", doublequote=False, compression="gzip")
    assert read(path, label="kind") == plain
    frame.to_csv(path, header=False, index=False, quoting=csv.QUOTE_NONNUMERIC)
    assert [label for label, _ in read(path, label="3", header=False)] == [y for y, _ in plain]


# ---- all at once --------------------------------------------------------------------------------

LETTERS = [
    "ä",
    "ß",
    "café",
    "Köln",
    "naïve",
    "crème",
    "it's",
    'say "hi"',
    "a b",
    "x,y",
    "1;2",
    "p|q",
]
PACKINGS = {"": bytes, "gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress}


def random_table(rng):
    """Return a header and rows of numbers, words and a label."""
    n_columns = rng.randint(1, 5)
    header = [f"c{i}" for i in range(n_columns)]
    header.insert(rng.randint(0, n_columns), "kind")
    words = [rng.random() < 0.5 for _ in header]

    def row():
        cells = [
            rng.choice(["", *LETTERS]) if of_words else str(rng.randint(0, 99))
            for of_words in words
        ]
        cells[header.index("kind")] = rng.choice(KINDS)
        return cells

    return header, [row() for _ in range(rng.randint(3, 150))]


@pytest.mark.parametrize("seed", range(60))
def test_any_dialect_encoding_line_end_and_compression_gives_the_plain_rows(tmp_path, seed):
    rng = random.Random(seed)
    header, rows = random_table(rng)
    plain = rows_of(tmp_path, written(rows, header), encoding="utf-8", delimiter=",")
    end = rng.choice(["\n", "\r\n", "\r"])
    text = written(
        rows,
        header,
        delimiter=rng.choice(",;\t|"),
        quoting=rng.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
        lineterminator=end,
    )
    text = rng.choice(["", "", "# a comment" + end, end]) + text
    encoding = rng.choice(["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-32", "cp1252"])
    packed = PACKINGS[rng.choice([*PACKINGS])](text.encode(encoding))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        assert rows_of(tmp_path, packed) == plain


# ---- the command line ---------------------------------------------------------------------------


def test_the_command_line_has_an_option_for_each(tmp_path, capsys):
    text = "x\n" + written(ROWS, HEADER, delimiter=":", quotechar="~", escapechar="^")
    path = write(tmp_path, "rows.csv", text)
    options = ("--delimiter", ":", "--quote", "~", "--escape", "^", "--skip-lines", "1")
    done = kesler(capsys, "learn", tmp_path / "m", path, "--label", "kind", *options)
    assert (done.code, done.err) == (0, "") and "60 rows" in done.out
    # The model's own reading is that of predict.
    answers = kesler(capsys, "predict", tmp_path / "m", path).out.split()
    assert len(answers) == 60 and set(answers) <= set(KINDS)


def test_messages_name_options_of_the_command_line(tmp_path, capsys):
    path = write(tmp_path, "rows.csv", "# by a tool\n" + written(rows=ROWS[1:], header=ROWS[0]))
    command = "compare", path, "--methods", "multi", "--label", "3"
    done = kesler(capsys, *command)
    assert (
        done.code == 0
        and "say where with --skip-lines" in done.err
        and "without a header" in done.err
    )
    assert kesler(capsys, *command, "--no-header", "--skip-lines", "1").err == ""
    done = kesler(capsys, *command, "--delimiter", "ab")
    assert done.code == 2


def test_a_model_of_a_table_without_a_header_predicts(tmp_path, capsys):
    path = write(tmp_path, "rows.csv", written(rows=ROWS[1:], header=ROWS[0]))
    model = tmp_path / "m"
    learnt = kesler(capsys, "learn", model, path, "--label", "3", "--no-header")
    assert learnt.code == 0 and "60 rows" in learnt.out
    new = write(
        tmp_path, "new.csv", written(rows=[row[:2] for row in ROWS[1:]], header=ROWS[0][:2])
    )
    assert len(kesler(capsys, "predict", model, new).out.split()) == 60


def test_rows_of_a_pipe_are_answered_as_they_come(tmp_path, capsys):
    path = write(tmp_path, "rows.csv", written(delimiter=";"))
    model = tmp_path / "m"
    assert kesler(capsys, "learn", model, path, "--label", "kind").code == 0
    with kesler_process("predict", model, "-", "--format", "csv", stdin=subprocess.PIPE) as process:
        process.stdin.write("sep=;\n# a comment\n\nsize;note\n")
        for row in ROWS[:3]:
            process.stdin.write(";".join(row[:2]) + "\n")
            process.stdin.flush()
            assert process.stdout.readline().strip() in KINDS
        process.stdin.close()
        assert process.wait(60) == 0


def test_standard_input_is_read_as_a_file(tmp_path, plain, monkeypatch):
    for name in ("semicolon", "bar", "separator line", "trailing header"):
        content = FOUND[name].encode("utf-16")
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read("-", label="kind") == plain


def test_first_lines_decide_alone():
    lines = [b"a,b,kind\n", *[b"1,2,x\n"] * (N_LINES - 1)]
    assert found_in(Dialect(), lines, ["kind"]).delimiter == ","
