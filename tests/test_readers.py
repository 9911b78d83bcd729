"""What holds for the stream of every format: its blocks, its counts, its sources."""

import bz2
import gzip
import io
import json
import lzma
import subprocess
import sys
import textwrap
import tracemalloc

import numpy as np
import pytest

from kesler.data.rows import Vocabulary
from kesler.errors import KeslerError
from kesler.readers import open_stream
from kesler.readers.lines import CHUNK, Lines

# The same three rows in every text format: (name of the file, what it holds, options).
SOURCES = {
    "svmlight": ("rows.svm", "1 0:2 2:0.5\n2 1:1\n1 0:3 1:4\n", {}),
    "vw": ("rows.vw", "1 |f a:2 c:0.5\n2 |f b\n1 |f a:3 b:4\n", {}),
    "csv": ("rows.csv", "y,a,b,c\n1,2,,0.5\n2,,1,\n1,3,4,\n", {"label": "y"}),
    "jsonl": (
        "rows.jsonl",
        '{"label": 1, "a": 2, "b": null, "c": 0.5}\n{"label": 2, "b": 1}\n'
        '{"label": 1, "a": 3, "b": 4}\n',
        {},
    ),
}
COMPRESSED = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
ROWS = [(1, {0: 2.0, 2: 0.5}), (2, {1: 1.0}), (1, {0: 3.0, 1: 4.0})]
NAMED_ROWS = [(1, {"a": 2.0, "c": 0.5}), (2, {"b": 1.0}), (1, {"a": 3.0, "b": 4.0})]

formats = pytest.mark.parametrize("name, content, options", SOURCES.values(), ids=SOURCES.keys())


def entries(stream):
    """Return the rows of a stream as (label, {feature: value}), by name where features have one."""
    found = []
    for block in stream:
        rows = block.rows
        names = stream.vocabulary.names if stream.vocabulary is not None else range(2**31)
        for i, label in enumerate(block.labels):
            span = slice(rows.indptr[i], rows.indptr[i + 1])
            features = [names[index] for index in rows.indices[span].tolist()]
            found.append((label, dict(zip(features, rows.values[span].tolist(), strict=True))))
        assert len(rows) == len(block.labels)
        assert rows.indices.max(initial=-1) < rows.n_features
    return found


def read(path, **options):
    return entries(open_stream(path, **options))


def write(directory, name, content):
    path = directory / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def without_namespace(rows):
    return [
        (label, {str(name).removeprefix("f^"): value for name, value in entry.items()})
        for label, entry in rows
    ]


@formats
def test_the_same_rows_come_out_of_every_text_format(tmp_path, name, content, options):
    found = read(write(tmp_path, name, content), **options)
    if name == "rows.svm":
        assert found == ROWS
    else:
        assert without_namespace(found) == [
            (str(label) if name == "rows.csv" else label, entry) for label, entry in NAMED_ROWS
        ]


@formats
@pytest.mark.parametrize("block_rows", [1, 2, 3])
def test_block_size_changes_no_row(tmp_path, name, content, options, block_rows):
    path = write(tmp_path, name, content)
    stream = open_stream(path, block_rows=block_rows, **options)
    blocks = [len(block.labels) for block in open_stream(path, block_rows=block_rows, **options)]
    assert blocks == {1: [1, 1, 1], 2: [2, 1], 3: [3]}[block_rows]
    assert entries(stream) == read(path, **options)
    assert stream.n_rows == 3


@formats
@pytest.mark.parametrize("suffix, compress", COMPRESSED.items())
def test_compressed_is_plain(tmp_path, name, content, options, suffix, compress):
    plain = write(tmp_path, name, content)
    packed = write(tmp_path, name + suffix, compress(content.encode()))
    assert read(packed, **options) == read(plain, **options)


@formats
def test_skipped_rows_number_their_features(tmp_path, name, content, options):
    path = write(tmp_path, name, content)
    whole, rest = open_stream(path, **options), open_stream(path, skip_rows=2, **options)
    assert entries(rest) == entries(whole)[2:]
    assert rest.n_rows == 1
    (block,) = open_stream(path, skip_rows=2, **options)
    assert block.rows.n_features == 3


@formats
def test_going_on_after_the_last_row_gives_nothing(tmp_path, name, content, options):
    assert read(write(tmp_path, name, content), skip_rows=3, **options) == []


@formats
def test_going_on_in_a_shorter_source_is_refused(tmp_path, name, content, options):
    with pytest.raises(KeslerError, match="holds 3 rows, fewer than the 4 to skip"):
        read(write(tmp_path, name, content), skip_rows=4, **options)


@formats
def test_bad_rows_are_skipped_and_counted(tmp_path, name, content, options):
    lines = content.encode().splitlines(keepends=True)
    spoilt = b"".join([*lines[:-1], b"\xff\n", lines[-1], b"\xfe|{,:\n"])
    path = write(tmp_path, name, spoilt)
    options = {**options, "encoding": "utf-8"}
    stream = open_stream(path, skip_bad=True, **options)
    assert entries(stream) == read(write(tmp_path, "good-" + name, content), **options)
    assert (stream.n_rows, stream.n_bad) == (3, 2)
    rest = open_stream(path, skip_bad=True, skip_rows=2, **options)
    assert len(entries(rest)) == 1


@formats
def test_standard_input(tmp_path, monkeypatch, name, content, options):
    for format in (None, open_format(name)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
        stream = open_stream("-", format=format, **options)
        assert stream.source == "standard input"
        assert entries(stream) == read(write(tmp_path, name, content), **options)


def open_format(name):
    return next(format for format, (file, _, _) in SOURCES.items() if file == name)


@formats
def test_a_byte_order_mark_and_windows_lines_change_nothing(tmp_path, name, content, options):
    windows = b"\xef\xbb\xbf" + content.replace("\n", "\r\n").encode()
    path = write(tmp_path, name, content)
    assert read(write(tmp_path, "windows-" + name, windows), **options) == read(path, **options)


@formats
def test_a_missing_newline_at_the_end_changes_nothing(tmp_path, name, content, options):
    path = write(tmp_path, name, content)
    cut = write(tmp_path, "cut-" + name, content.rstrip("\n"))
    assert read(cut, **options) == read(path, **options)


@formats
def test_prediction_without_labels(tmp_path, name, content, options):
    unlabelled = {
        "rows.svm": "0:2 2:0.5\n",
        "rows.vw": "|f a:2 c:0.5\n",
        "rows.csv": "a,b,c\n2,,0.5\n",
        "rows.jsonl": '{"a": 2, "b": null, "c": 0.5}\n',
    }[name]
    path = write(tmp_path, name, unlabelled)
    ((label, entry),) = without_namespace(read(path, require_labels=False, width=0, **options))
    assert label is None
    assert list(entry.values()) == [2.0, 0.5]


@formats
def test_labels_are_read_for_prediction_where_there_are_some(tmp_path, name, content, options):
    path = write(tmp_path, name, content)
    assert read(path, require_labels=False, **options) == read(path, **options)


def test_names_join_the_vocabulary_that_is_given(tmp_path):
    path = write(tmp_path, "rows.vw", "1 |f a b\n")
    vocabulary = Vocabulary()
    stream = open_stream(path, vocabulary=vocabulary)
    list(stream)
    assert stream.vocabulary is vocabulary
    assert vocabulary.names == ["f^a", "f^b"]


@pytest.mark.parametrize(
    "name, content, options",
    [
        ("rows.vw", "1 |f a b\n", {}),
        ("rows.csv", "y,f^a,f^b,t\n1,1,1,\n", {"label": "y"}),
        ("rows.jsonl", '{"label": 1, "text": "a b"}', {}),
        ("dense.csv", "y,f^a,f^b\n1,1,1\n", {"label": "y"}),
    ],
)
def test_without_growth_new_names_do_not_join(tmp_path, name, content, options):
    """They are numbered beyond those known; columns of a dense table are left out."""
    known = "b" if name == "rows.jsonl" else "f^b"
    vocabulary = Vocabulary.of([known])
    path = write(tmp_path, name, content)
    stream = open_stream(path, vocabulary=vocabulary, grow=False, **options)
    (block,) = stream
    found = block.rows.indices.tolist(), block.rows.n_features
    assert found == (([0], 1) if block.rows.dense else ([1, 0], 2))
    assert block.rows.dense == (name == "dense.csv")
    assert vocabulary.names == [known]


def test_positions_number_as_many_features_as_were_seen(tmp_path):
    path = write(tmp_path, "rows.svm", "1 4:1\n1 2:1\n1 9:1\n")
    assert [block.rows.n_features for block in open_stream(path, block_rows=1)] == [5, 5, 10]


@pytest.mark.parametrize(
    "content, format",
    [
        ('{"label": 1, "a": 2}', "jsonl"),
        ("1 2 'tag|f a:1 b", "vw"),
        ("|f a", "vw"),
        ("# written by hand\n\n1 0:2 5:0.5 # and so on", "svmlight"),
        ("1 qid:3 0:2", "svmlight"),
        ("y,a|b\n1,2", "csv"),
        ("y;a\n1;2", "csv"),
        ("y\ta\n1\t2", "csv"),
        ("From me Thu Jan  1 00:00:00 1970\nSubject: hi\n\n", "mail"),
    ],
)
def test_the_first_line_determines_the_format(tmp_path, content, format):
    path = write(tmp_path, "rows.txt", content)
    options = {"label": "y"} if format == "csv" else {}
    settings = {"require_labels": False, **options}
    assert read(path, **settings) == read(path, format=format, **settings)


def test_a_name_tells_more_than_a_line(tmp_path):
    path = write(tmp_path, "rows.2024.csv.gz", gzip.compress(b"1 2:3,y\na,b\n"))
    assert read(path, label="y") == [("b", {"1 2:3=a": 1.0})]


def test_suffixes_may_be_in_capitals(tmp_path):
    path = write(tmp_path, "ROWS.CSV.GZ", gzip.compress(b"y\n1\n"))
    assert read(path, label="y") == [("1", {})]


@pytest.mark.parametrize("content", ["17\n", "some words\n", "[1]\n", "four words and a | bar\n"])
def test_an_unknown_format_is_a_sentence(tmp_path, content):
    with pytest.raises(KeslerError, match=r"neither its name nor its first line .* jsonl, json"):
        open_stream(write(tmp_path, "rows.txt", content))


def test_paths_may_be_strings(tmp_path):
    path = write(tmp_path, "rows.svm", "1 0:1\n")
    assert read(str(path)) == read(path)


@pytest.mark.parametrize("format", ["svm", "CSV"])
def test_an_unknown_format_name_is_a_sentence(tmp_path, format):
    path = write(tmp_path, "rows.txt", "y,a\n1,2\n")
    with pytest.raises(KeslerError, match=rf"there is no format '{format}': choose one of jsonl"):
        open_stream(path, format=format)


@pytest.mark.parametrize(
    "name, options, sentence",
    [
        ("rows.svm", {"label": "y"}, "no fields for label=..., text=... and id=..."),
        ("rows.vw", {"text": "body"}, "no fields for label=..., text=... and id=..."),
        ("rows.svm", {"vocabulary": Vocabulary.of("ab")}, "positions, but the vocabulary"),
        ("rows.svm", {"block_rows": 0}, "block_rows should be at least 1"),
        ("rows.svm", {"skip_rows": -1}, "skip_rows at least 0"),
    ],
)
def test_what_does_not_fit_the_format_is_a_sentence(tmp_path, name, options, sentence):
    with pytest.raises(KeslerError, match=sentence):
        open_stream(write(tmp_path, name, "1 0:1\n"), **options)


@pytest.mark.parametrize("format", ["parquet", "npz"])
def test_what_needs_a_file_is_not_read_from_standard_input(format):
    with pytest.raises(KeslerError, match=f"{format} can't be read from standard input"):
        open_stream("-", format=format)


def test_a_missing_file_is_a_sentence(tmp_path):
    with pytest.raises(KeslerError, match=r"nowhere\.svm does not exist"):
        open_stream(tmp_path / "nowhere.svm")


@pytest.mark.parametrize("format", ["svmlight", "csv", "json", "npz", "excel", "sqlite"])
def test_a_directory_in_place_of_a_file_is_a_sentence(tmp_path, format):
    with pytest.raises(KeslerError, match=f"is a directory.* give a {format} file"):
        open_stream(tmp_path, format=format)


@pytest.mark.parametrize("content", ["", "\n\n"])
@pytest.mark.parametrize("name", ["rows.svm", "rows.vw", "rows.jsonl", "rows.csv", "rows.txt"])
def test_an_empty_file_is_a_sentence(tmp_path, name, content):
    with pytest.raises(KeslerError, match=r"rows\.\w+ (holds no rows|is empty)"):
        read(write(tmp_path, name, content), **({"label": "y"} if name == "rows.csv" else {}))


def test_a_file_of_bad_rows_only_is_a_sentence(tmp_path):
    with pytest.raises(KeslerError, match=r"holds no rows \(2 are bad\)"):
        read(write(tmp_path, "rows.vw", "1 a\n2 b\n"), skip_bad=True)


@pytest.mark.parametrize("suffix, compress", COMPRESSED.items())
def test_a_compressed_file_cut_short_is_a_sentence(tmp_path, suffix, compress):
    lines = "".join(f"1 {i}:{i * i}\n" for i in range(5000)).encode()
    path = write(tmp_path, "rows.svm" + suffix, compress(lines)[:-200])
    with pytest.raises(KeslerError, match=rf"rows\.svm\{suffix} can't be read .* cut short"):
        read(path)
    plain = read(write(tmp_path, "rows.svm", lines))
    assert read(write(tmp_path, "rows.svm" + suffix, lines)) == plain  # the name decides nothing


@pytest.mark.parametrize("suffix, compress", COMPRESSED.items())
def test_a_compressed_file_with_damaged_bytes_is_refused(tmp_path, suffix, compress):
    """Each library has errors of its own, for a checksum and for codes that nothing stands for."""
    packed = compress("".join(f"1 {i}:{i * i}\n" for i in range(5000)).encode())
    for place in range(0, len(packed), len(packed) // 40):
        damaged = bytearray(packed)
        damaged[place : place + 9] = b"\xff" * len(damaged[place : place + 9])
        path = write(tmp_path, "rows.svm" + suffix, bytes(damaged))
        with pytest.raises(KeslerError):
            read(path, encoding="utf-8")


def test_gzip_is_read_where_isal_is_not_installed(tmp_path):
    content = gzip.compress(b"1 1:2\n")
    paths = [str(write(tmp_path, f"{i}.svm.gz", content[: len(content) - i])) for i in range(2)]
    code = f"""
        import sys
        sys.modules["isal"] = None
        from kesler import KeslerError
        from kesler.readers import open_stream
        whole, cut = {paths!r}
        assert len(next(open_stream(whole))) == 1
        try:
            list(open_stream(cut))
        except KeslerError as error:
            assert "cut short" in str(error) and "isal.igzip" not in sys.modules
        else:
            raise SystemExit("nothing was said")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_memory_does_not_grow_with_the_file(tmp_path):
    def peak(n_rows):
        path = tmp_path / f"{n_rows}.jsonl"
        with path.open("w") as file:
            for row in range(n_rows):
                words = " ".join(f"w{(row * k) % 50}" for k in range(20))
                file.write(json.dumps({"label": row % 3, "text": words}) + "\n")
        tracemalloc.start()
        for _ in open_stream(path, block_rows=64):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(100)
    assert peak(4000) < 1.3 * peak(500)


def test_importing_the_readers_imports_neither_pyarrow_nor_numba():
    check = (
        "import sys, kesler.readers;"
        "print([name for name in ('pyarrow', 'numba', 'sklearn') if name in sys.modules])"
    )
    settings = subprocess.run(
        [sys.executable, "-c", check], capture_output=True, text=True, check=True
    )
    assert settings.stdout.strip() == "[]"


def test_blocks_have_the_types_of_rows(tmp_path):
    (block,) = open_stream(write(tmp_path, "rows.svm", "1 0:2\n1\n"))
    rows = block.rows
    assert (rows.indptr.dtype, rows.indices.dtype) == (np.int64, np.int32)
    assert rows.values.dtype == np.float32
    assert (len(rows), rows.dense, block.weights) == (2, False, None)


# What is looked at


@pytest.mark.parametrize("form", ["lines", "pieces"])
@pytest.mark.parametrize("looks", [True, False])
def test_what_is_looked_at_is_read_again(tmp_path, form, looks):
    content = b"\n# pets\n" + b"cat 4, " * 100_000 + b"\nparrot 2"
    path = write(tmp_path, "rows", content)
    lines = Lines(str(path))
    if looks:
        assert content.split(b"\n")[2].startswith(lines.first()) and len(lines.first()) == CHUNK
    if form == "lines":
        assert [*lines] == [*enumerate(content.splitlines(keepends=True), 1)]
    else:
        assert b"".join(lines.pieces()) == content
