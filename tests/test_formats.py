"""Laws over the registry of readers: a format with an example in `EXAMPLES` has all these tests."""

import gzip
import inspect
import io
import json
import sqlite3
import sys
from contextlib import closing

import duckdb
import numpy as np
import openpyxl
import pyarrow
import pytest
from pyarrow import parquet

from commands import kesler
from kesler.data.rows import Vocabulary
from kesler.errors import KeslerError
from kesler.readers import READERS, open_stream
from kesler.readers.compression import SUFFIXES
from kesler.readers.lines import Lines
from kesler.readers.opening import format_of
from kesler.readers.reader import Reader
from test_readers import entries

WORDS = ["apple", "bread", "cheese", "dates"]
TABLE = [
    ("lunch", {"apple", "bread"}),
    ("dinner", {"cheese"}),
    ("lunch", {"bread", "cheese", "dates"}),
    ("dinner", {"apple", "dates"}),
]
"""The rows of every example: a class and the words that it has, each of the value 1."""

# ---- the same table in each format --------------------------------------------------------------


def svmlight():
    numbered = [(y, [f"{WORDS.index(word)}:1" for word in sorted(row)]) for y, row in TABLE]
    return "".join(f"{y} {' '.join(pairs)}\n" for y, pairs in numbered)


def ldf():
    costs = {"lunch": "lunch:0 | a\ndinner:1 | b\n\n", "dinner": "lunch:1 | a\ndinner:0 | b\n\n"}
    return "".join(f"shared | {' '.join(sorted(row))}\n{costs[y]}" for y, row in TABLE)


def csv():
    lines = [",".join([y, *("1" * (word in row) for word in WORDS)]) for y, row in TABLE]
    return "\n".join([",".join(["meal", *WORDS]), *lines, ""])


def jsonl():
    return "".join(json.dumps({"label": y, **dict.fromkeys(row, 1)}) + "\n" for y, row in TABLE)


def fasttext():
    return "".join(f"__label__{y} {' '.join(sorted(row))}\n" for y, row in TABLE)


def pretty_json():
    rows = [{"label": y, **dict.fromkeys(row, 1)} for y, row in TABLE]
    return json.dumps(rows, indent=1) + "\n"


def table_of_numbers():
    return np.array([[float(word in row) for word in WORDS] for _, row in TABLE])


def fasta():
    return "".join(f">{y}\n{' '.join(sorted(row))}\n" for y, row in TABLE)


def fastq():
    rows = [(y, " ".join(sorted(row))) for y, row in TABLE]
    return "".join(f"@{y}\n{words}\n+\n{'I' * len(words)}\n" for y, words in rows)


def write_parquet(path):
    columns = dict(zip(WORDS, table_of_numbers().T, strict=True))
    parquet.write_table(pyarrow.table({"meal": [y for y, _ in TABLE], **columns}), path)


def write_excel(path):
    book = openpyxl.Workbook()
    for row in [["meal", *WORDS], *([y, *(word in row for word in WORDS)] for y, row in TABLE)]:
        book.active.append([int(cell) if isinstance(cell, bool) else cell for cell in row])
    book.save(path)


def write_database(connect, path):
    columns = ", ".join(f"{word} integer" for word in WORDS)
    rows = ", ".join(str((y, *(int(word in row) for word in WORDS))) for y, row in TABLE)
    with closing(connect(str(path))) as connection:
        connection.execute(f"create table meals (meal text, {columns})")
        connection.execute(f"insert into meals values {rows}")
        connection.commit()


def write_npz(path):
    with path.open("wb") as file:
        np.savez(file, X=table_of_numbers(), y=[y for y, _ in TABLE])


def write_mail(path):
    for number, (y, row) in enumerate(TABLE):
        path.joinpath(y).mkdir(parents=True, exist_ok=True)
        date = f"Date: Thu, {number + 1} Jan 2004 12:00:00 +0000"
        path.joinpath(y, str(number)).write_text(f"{date}\n\n{' '.join(sorted(row))}\n")


EXAMPLES = {
    "jsonl": (jsonl, {}),
    "json": (pretty_json, {}),
    "mail": (write_mail, {}),
    "fasta": (fasta, {"label": "header", "text": "sequence"}),
    "fastq": (fastq, {"label": "header", "text": "sequence"}),
    "fasttext": (fasttext, {}),
    "vw-ldf": (ldf, {}),
    "vw": (lambda: "".join(f"{y} |n {' '.join(sorted(row))}\n" for y, row in TABLE), {}),
    "svmlight": (svmlight, {}),
    "csv": (csv, {"label": "meal"}),
    "parquet": (write_parquet, {"label": "meal"}),
    "npz": (write_npz, {}),
    "excel": (write_excel, {"label": "meal"}),
    "sqlite": (lambda path: write_database(sqlite3.connect, path), {"label": "meal"}),
    "duckdb": (lambda path: write_database(duckdb.connect, path), {"label": "meal"}),
}
"""What returns the table as text or, given a path, writes it there; and the options it takes."""

every = pytest.mark.parametrize("name", READERS)
OF_TEXT = [n for n, each in READERS.items() if each.is_piped and not each.directories]
of_text = pytest.mark.parametrize("name", OF_TEXT)
of_files = pytest.mark.parametrize("name", [n for n, each in READERS.items() if not each.is_piped])


def written(directory, name, file="rows"):
    """Write an example; return its path and the options of `open_stream`."""
    example, options = EXAMPLES[name]
    path = directory / file
    if inspect.signature(example).parameters:
        example(path)
    else:
        path.write_text(example())
    return path, options


def read(source, **options):
    """Return the rows of a stream as (label, words); a header of mail may hold others."""
    return [
        (label, {_word(feature) for feature, value in row.items() if value == 1} & {*WORDS})
        for label, row in entries(open_stream(source, **options))
    ]


def _word(feature):
    return WORDS[feature] if isinstance(feature, int) else feature.rpartition("^")[2]


# ---- what every format does ---------------------------------------------------------------------


def test_every_format_has_an_example():
    assert set(EXAMPLES) == set(READERS)


@every
def test_the_table_is_the_same_from_every_format(tmp_path, name):
    path, options = written(tmp_path, name)
    assert read(path, format=name, **options) == TABLE


@every
@pytest.mark.parametrize("block_rows", [1, 3])
def test_blocks_hold_what_the_whole_holds(tmp_path, name, block_rows):
    path, options = written(tmp_path, name)
    assert read(path, format=name, block_rows=block_rows, **options) == TABLE


@every
def test_rows_can_be_passed_over(tmp_path, name):
    path, options = written(tmp_path, name)
    assert read(path, format=name, skip_rows=3, **options) == TABLE[3:]


@every
def test_a_stream_can_be_read_without_labels_being_required(tmp_path, name):
    path, options = written(tmp_path, name)
    assert read(path, format=name, require_labels=False, **options) == TABLE


@every
def test_features_have_names_if_the_reader_is_given_names(tmp_path, name):
    path, options = written(tmp_path, name)
    stream = open_stream(path, format=name, **options)
    assert (stream.vocabulary is not None) == READERS[name].has_names
    if not READERS[name].has_names:
        with pytest.raises(KeslerError, match=r"rows is read as .* positions, but the vocabulary"):
            open_stream(path, format=name, vocabulary=Vocabulary.of("ab"), **options)


@every
def test_features_that_are_not_known_join_nothing_where_none_may(tmp_path, name):
    path, options = written(tmp_path, name)
    if READERS[name].has_names:
        known = Vocabulary.of(WORDS[:1])
        list(open_stream(path, format=name, vocabulary=known, grow=False, **options))
        assert known.names == WORDS[:1]


# ---- detection of formats -----------------------------------------------------------------------


OF_TWO = {".jsonl", ".ndjson"}
"""Suffixes of JSON of any layout, which the first lines tell apart."""


def test_no_other_suffix_is_of_two_formats_or_of_a_compression():
    suffixes = [suffix for each in READERS.values() for suffix in each.suffixes]
    assert {each for each in suffixes if suffixes.count(each) > 1} == OF_TWO
    assert not set(suffixes) & set(SUFFIXES)


@every
def test_suffixes_determine_the_format(name):
    for suffix in {*READERS[name].suffixes} - OF_TWO:
        for path in (f"rows{suffix}", f"ROWS{suffix}".upper(), f"rows{suffix}.gz"):
            assert format_of(path, Lines(path)) == name


@every
def test_the_first_line_determines_the_format(tmp_path, name):
    path, options = written(tmp_path, name)
    if READERS[name].begins is not None:
        assert read(path, **options) == TABLE
        assert [n for n, each in READERS.items() if tells(each, path)][:1] in ([name], [])


def tells(format, path):
    return path.is_file() and format.begins is not None and format.begins(first_line(path))


def first_line(path):
    return Lines(str(path)).first().decode().strip()


@of_text
def test_standard_input_gives_what_a_file_gives(tmp_path, name, monkeypatch):
    path, options = written(tmp_path, name)
    for settings in ({"format": name}, {}):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        assert read("-", **settings, **options) == TABLE


@pytest.mark.parametrize("name", ["parquet", "sqlite", "duckdb", "excel"])
def test_what_is_no_text_is_refused_on_standard_input_by_its_name(tmp_path, name, monkeypatch):
    path, options = written(tmp_path, name)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
    sentences = {"excel": "standard input is a workbook, which is read by its path: give one"}
    sentence = sentences.get(name, f"{name} can't be read from standard input: give a path")
    with pytest.raises(KeslerError, match=sentence):
        open_stream("-", **options)


def test_databases_whose_checksum_holds_a_line_break_are_refused_on_standard_input(monkeypatch):
    for checksum in (b"checksum", b"a\nchecks", b"\nchecksu", b"a,bcde\n\n"):
        file = io.BytesIO(checksum + b"DUCK" + bytes(100))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(file))
        with pytest.raises(KeslerError, match="duckdb can't be read from standard input"):
            open_stream("-")


@pytest.mark.parametrize("name", ["jsonl", "json", "vw", "svmlight", "csv"])
def test_commands_read_standard_input(tmp_path, name, monkeypatch, capsys):
    path, options = written(tmp_path, name)
    given = [f"--{option}={value}" for option, value in options.items()]
    model = tmp_path / "model"

    def run(*arguments):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(path.read_bytes())))
        return kesler(capsys, *arguments)

    learnt = run("learn", model, "-", *given)
    assert learnt.code == 0 and "standard input: 4 rows" in learnt.out
    assert len(run("predict", model, "-").out.splitlines()) == 4
    assert run("test", model, "-").code == run("compare", "-", *given).code == 0


@of_text
def test_a_compressed_file_gives_what_a_file_gives(tmp_path, name):
    path, options = written(tmp_path, name)
    packed = tmp_path / f"packed{READERS[name].suffixes[0]}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed, **options) == TABLE


@every
def test_what_cannot_be_is_a_sentence(tmp_path, name):
    path, _ = written(tmp_path, name)
    if not READERS[name].is_piped:
        with pytest.raises(KeslerError, match=f"{name} can't be read from standard input"):
            open_stream("-", format=name)
    if not READERS[name].directories:
        with pytest.raises(
            KeslerError, match=f"a directory, which only parquet, mail .* a {name} file"
        ):
            open_stream(tmp_path, format=name)
    for option in ("label", "text"):
        if not READERS[name].has_fields:
            with pytest.raises(KeslerError, match=rf"rows is read as {name}, which has no fields"):
                open_stream(path, format=name, **{option: "meal"})


def test_an_unknown_format_is_a_sentence_that_names_all(tmp_path):
    path = tmp_path / "rows"
    path.write_text("some words\n")
    for settings in ({"format": "xml"}, {}):
        with pytest.raises(KeslerError, match=", ".join(READERS)):
            open_stream(path, **settings)


# ---- what is wrong ------------------------------------------------------------------------------


@every
def test_nothing_is_a_sentence_that_names_the_source(tmp_path, name):
    path, options = tmp_path / "rows", EXAMPLES[name][1]
    path.mkdir() if READERS[name].directories else path.write_bytes(b"")
    with pytest.raises(KeslerError, match="rows"):
        read(path, format=name, **options)


# A record of FASTA has several lines, and a bad one spoils it: test_readers_sequences.py.
@pytest.mark.parametrize("name", [each for each in OF_TEXT if each != "fasta"])
def test_a_bad_line_is_named_or_skipped(tmp_path, name):
    path, options = written(tmp_path, name)
    whole = path.read_bytes()
    path.write_bytes(whole + b"\xff\xfe\n")
    n_lines = len(whole.splitlines())
    options = {**options, "format": name, "encoding": "utf-8"}
    with pytest.raises(KeslerError, match=f"rows, line {n_lines + 1}: "):
        read(path, **options)
    stream = open_stream(path, skip_bad=True, **options)
    assert (len(entries(stream)), stream.n_bad) == (len(TABLE), 1)


@of_files
@pytest.mark.parametrize("share", [0.0, 0.5, 0.98])
def test_a_file_cut_short_is_a_sentence_that_names_it(tmp_path, name, share):
    path, options = written(tmp_path, name)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))] + b"\0")
    with pytest.raises(KeslerError, match="rows"):
        read(path, format=name, **options)


# ---- messages -----------------------------------------------------------------------------------


@every
def test_a_format_says_what_it_holds_and_what_it_takes(name):
    assert READERS[name].summary.endswith(".")
    known = {"lines", "path", "fields", "names", "dialect", "width", "require_labels"}
    known |= {"sheet", "sql", "labels", "label_sets", "id"}
    assert set(READERS[name].takes) <= known
    assert {"lines", "path"} & set(READERS[name].takes)
    assert READERS[name].open.__annotations__["return"] in (Reader, "Reader")


def test_help_names_every_format_its_suffixes_and_what_it_holds(capsys):
    said = " ".join(kesler(capsys, "predict", "--help").out.split())
    for name, each in READERS.items():
        assert name in said and each.summary.rstrip(".") in said
        assert all(suffix in said for suffix in each.suffixes)
