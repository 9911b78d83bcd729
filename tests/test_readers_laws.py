"""Laws over random input: what is written is read back, and nothing makes a reader stumble."""

import csv
import json
import warnings

import numpy as np
import pyarrow
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import parquet
from scipy import sparse

from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import open_stream
from kesler.readers.mail.message import message_tokens
from kesler.readers.reader import BadRow
from test_readers import COMPRESSED, SOURCES, entries, read, write

N_FEATURES = 12

values = st.floats(width=32, allow_nan=False, allow_infinity=False)
# The labels of one source are all numbers or all text.
labels = st.sampled_from(
    [st.integers(-(10**6), 10**6), st.from_regex(r"[a-z][a-z0-9_]{0,5}", fullmatch=True)]
)
entry = st.dictionaries(st.integers(0, N_FEATURES - 1), values)
sparse_rows = labels.flatmap(lambda label: st.lists(st.tuples(label, entry), min_size=1))
dense_rows = st.tuples(labels, st.integers(1, 5)).flatmap(
    lambda kind: st.lists(
        st.tuples(kind[0], st.lists(values, min_size=kind[1], max_size=kind[1])), min_size=1
    )
)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("laws")


def named(rows, prefix):
    return [(label, {f"{prefix}{i}": value for i, value in row.items()}) for label, row in rows]


@given(rows=sparse_rows, block_rows=st.integers(1, 4))
def test_svmlight_reads_back_what_was_written(directory, rows, block_rows):
    lines = [" ".join([str(y), *(f"{i}:{v!r}" for i, v in row.items())]) for y, row in rows]
    path = write(directory, "rows.svm", "\n".join(lines))
    assert read(path, block_rows=block_rows, width=0) == rows


@given(rows=sparse_rows, block_rows=st.integers(1, 4))
def test_vw_reads_back_what_was_written(directory, rows, block_rows):
    lines = [" ".join([f"{y} |n", *(f"f{i}:{v!r}" for i, v in row.items())]) for y, row in rows]
    path = write(directory, "rows.vw", "\n".join(lines))
    assert read(path, block_rows=block_rows, width=0) == named(rows, "n^f")


@given(rows=sparse_rows, block_rows=st.integers(1, 4))
def test_sparse_csv_reads_back_what_was_written(directory, rows, block_rows):
    columns = [f"f{i}" for i in range(N_FEATURES)]
    path = directory / "rows.csv"
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, ["y", *columns, "note"])
        table.writeheader()
        table.writerows({"y": y, "note": "x", **row} for y, row in named(rows, "f"))
    marked = [(str(y), {**row, "note=x": 1.0}) for y, row in named(rows, "f")]
    assert read(path, label="y", block_rows=block_rows) == marked


@given(rows=sparse_rows, block_rows=st.integers(1, 4))
def test_sparse_jsonl_reads_back_what_was_written(directory, rows, block_rows):
    records = [{"label": y, "note": "x", **row} for y, row in named(rows, "f")]
    path = write(directory, "rows.jsonl", "\n".join(map(json.dumps, records)))
    marked = [(y, {**row, "note=x": 1.0}) for y, row in named(rows, "f")]
    assert read(path, block_rows=block_rows) == marked


@given(rows=dense_rows, block_rows=st.integers(1, 4))
def test_dense_rows_are_the_same_from_every_format(directory, rows, block_rows):
    columns = [f"f{i}" for i in range(len(rows[0][1]))]
    X, y = np.array([row for _, row in rows]), [str(label) for label, _ in rows]
    records = [{"y": label, **dict(zip(columns, row, strict=True))} for label, row in rows]
    with (directory / "dense.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, ["y", *columns], delimiter=";")
        table.writeheader()
        table.writerows(records)
    np.savez(directory / "dense.npz", X=X, y=y)
    columns_of = {column: X[:, i] for i, column in enumerate(columns)}
    parquet.write_table(pyarrow.table({"y": y, **columns_of}), directory / "dense.parquet")
    for suffix, options in (
        ("csv", {"label": "y"}),
        ("npz", {}),
        ("parquet", {"label": "y"}),
    ):
        path = directory / f"dense.{suffix}"
        blocks = list(open_stream(path, block_rows=block_rows, **options))
        assert all(block.rows.dense for block in blocks)
        assert [str(label) for block in blocks for label in block.labels] == y
        read_back = [block.rows.values.reshape(-1, len(columns)) for block in blocks]
        assert np.array_equal(np.concatenate(read_back), X.astype(np.float32))


@given(rows=sparse_rows, block_rows=st.integers(1, 4))
def test_npz_reads_back_what_was_written(directory, rows, block_rows):
    matrix = sparse.dok_array((len(rows), N_FEATURES))
    for i, (_, row) in enumerate(rows):
        for j, value in row.items():
            matrix[i, j] = value
    X = matrix.tocsr()
    pieces = {f"X_{name}": getattr(X, name) for name in ("data", "indices", "indptr", "shape")}
    np.savez(directory / "rows.npz", y=[str(y) for y, _ in rows], **pieces)
    nonzero = [(str(y), {i: v for i, v in row.items() if v}) for y, row in rows]
    found = read(directory / "rows.npz", block_rows=block_rows)
    assert [(y, {i: v for i, v in row.items() if v}) for y, row in found] == nonzero


@given(rows=sparse_rows, skip_rows=st.integers(0, 5), block_rows=st.integers(1, 4))
def test_skipping_rows_is_reading_them_and_throwing_them_away(
    directory, rows, skip_rows, block_rows
):
    skip_rows = min(skip_rows, len(rows))
    lines = [" ".join([f"{y} |n", *(f"f{i}:{v!r}" for i, v in row.items())]) for y, row in rows]
    path = write(directory, "rows.vw", "\n".join(lines))
    whole = open_stream(path)
    rest = open_stream(path, skip_rows=skip_rows, block_rows=block_rows)
    assert entries(rest) == entries(whole)[skip_rows:]
    assert rest.vocabulary == whole.vocabulary
    assert rest.n_rows == len(rows) - skip_rows


# Nothing makes a reader stumble

fuzzed = settings(derandomize=True, suppress_health_check=[HealthCheck.too_slow], max_examples=150)


@st.composite
def mutations(draw, content):
    """Change a text at a few places: bytes dropped, put in or doubled."""
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 4)))
        odd = st.sampled_from([b'"', b":", b"|", b"\n", b"\r", b"\0", b"_", b"\x1c", b"{", b"nan"])
        content = content[:start] + draw(odd | st.binary(max_size=3)) + content[end:]
    return content


def survives(path, **options):
    for skip_bad in (False, True):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ReadingWarning)
                entries(open_stream(path, skip_bad=skip_bad, **options))
        except KeslerError as refusal:
            assert path.name in str(refusal)


@fuzzed
@given(data=st.data(), whole=st.booleans(), required=st.booleans())
@pytest.mark.parametrize("format", SOURCES)
def test_any_bytes_are_rows_or_a_sentence(directory, format, data, whole, required):
    name, content, options = SOURCES[format]
    damaged = st.binary(max_size=80) if whole else mutations(content.encode())
    path = write(directory, name, data.draw(damaged))
    survives(path, require_labels=required, **options)


@fuzzed
@given(data=st.data())
def test_any_text_fields_are_rows_or_a_sentence(directory, data):
    content = b'label,text\n1,"a b"\n2,c\n'
    path = write(directory, "text.csv", data.draw(mutations(content)))
    survives(path, label="label", text="text")
    content = b'{"label": "x", "text": ["a", "b"]}\n{"label": 2.5, "text": "c\\u00e9"}\n'
    survives(write(directory, "text.jsonl", data.draw(mutations(content))))


@fuzzed
@given(data=st.data())
def test_any_first_line_tells_a_format_or_is_a_sentence(directory, data):
    content = data.draw(st.sampled_from([content for _, content, _ in SOURCES.values()]))
    path = write(directory, "unknown", data.draw(mutations(content.encode())))
    survives(path)


@fuzzed
@given(data=st.data())
def test_any_archive_is_rows_or_a_sentence(directory, data):
    np.savez_compressed(directory / "whole.npz", X=np.eye(3), y=[1, 2, 3])
    whole = (directory / "whole.npz").read_bytes()
    survives(write(directory, "rows.npz", data.draw(mutations(whole))))


@fuzzed
@given(data=st.data())
def test_any_parquet_is_rows_or_a_sentence(directory, data):
    parquet.write_table(pyarrow.table({"y": [1, 2], "a": ["b", "c"]}), directory / "whole.parquet")
    whole = (directory / "whole.parquet").read_bytes()
    survives(write(directory, "rows.parquet", data.draw(mutations(whole))), label="y")


@fuzzed
@given(data=st.data())
@pytest.mark.parametrize("suffix, compress", COMPRESSED.items())
def test_any_compressed_bytes_are_rows_or_a_sentence(directory, suffix, compress, data):
    whole = compress(SOURCES["svmlight"][1].encode() * 20)
    survives(write(directory, f"rows.svm{suffix}", data.draw(mutations(whole))))


MESSAGE = b"""From me Thu Jan  1 00:00:00 1970
From: =?utf-8?q?J=C3=BCrgen?= <j@example.org>
Date: Thu, 4 Jan 2001 12:00:00 +0100
Subject: =?unknown?b?!!?= Lunch
Content-Type: multipart/mixed; boundary="xx"; charset*=utf-8''%e2

--xx
Content-Type: text/html; charset=latin-1
Content-Transfer-Encoding: base64

PGI+SGVsbG8=
--xx
Content-Type: text/html; charset="utf-8"
Content-Disposition: attachment; filename*0="a"; filename*1="b.html"

<p>hidden <![if x]></p>
--xx
Content-Type: text/html
Content-Transfer-Encoding: quoted-printable

<p>caf=C3=A9 <!DOCTYPE a [<!ELEMENT b>]> <![CDATA[x]]> &#99999999;
--xx--

From you Thu Jan  1 00:00:00 1970
Subject: Re: Lunch

At one
"""


@fuzzed
@given(mutations(MESSAGE) | st.binary())
def test_any_bytes_are_a_message_or_a_bad_row(message):
    try:
        tokens = message_tokens(message)
    except BadRow:
        return
    assert all(value >= 1 and value == int(value) for value in tokens.values())


@fuzzed
@given(data=st.data())
def test_any_mbox_is_rows_or_a_sentence(directory, data):
    survives(write(directory, "rows.mbox", data.draw(mutations(MESSAGE))))
