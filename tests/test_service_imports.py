"""Files that are imported: every format that the readers read, and exports that come back."""

import gzip
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from desks import served
from kesler.durable import Journal
from kesler.service.exports import Kept, as_csv, as_json_lines
from kesler.service.import_options import ImportOptions
from kesler.service.refusals import Refusal
from kesler.service.rows_in import rows_of_file
from kesler.service.uploads import File

# ---- exports ------------------------------------------------------------------------------------

HOSTILE = [
    "", " ", "NA", "null", "NULL", "N/A", "n/a", "None", "nan", "Infinity", "true", "7", "007",
    "1e5", "'in apostrophes'", "'", '"quoted"', '""', "a,b;c\td|e", "=1+1", "#note", "sep=;", "[1]",
    '{"a": 1}', "two\nlines", "cr\rhere", "crlf\r\nhere", "\x0b\x0c\x1c\x85\u2028", "\ufeffbom",
    "\x00", "C:\\dir\\", 'a\\"b', "text,row,label,id,person", "a,,x,1,\r\nb,,x,2,\r\nc,,x,3,\r\n",
    "Subject: hi", "From ann Mon", "می\u200cخواهم", "👨\u200d👩\u200d👧", "\u202egnp", "Cafe\u0301",
    "-", "?", "x" * 200_000,
]  # fmt: skip
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(max_size=30))
CLASSES = TEXTS.map(lambda each: each[:200].strip()).filter(bool)
SETS = st.lists(CLASSES, min_size=1, max_size=3)
LABELS = st.one_of(CLASSES, st.integers(-9, 9), st.booleans(), st.just(1.5), SETS)
MAPPINGS = st.dictionaries(st.text(min_size=1, max_size=5), NUMBERS, min_size=1)
ROWS = st.one_of(TEXTS, MAPPINGS, st.lists(NUMBERS, min_size=1, max_size=4))


@given(st.lists(st.tuples(ROWS, LABELS), min_size=1, max_size=6))
def test_what_is_exported_is_imported_as_it_was(pairs):
    kept = [Kept(*pair, f"m{i}", "ann" if i % 2 else None) for i, pair in enumerate(pairs)]
    found = rows_of_file(File("".join(as_csv(kept)).encode()), 99).rows
    for each, (row, _, id, person) in zip(found, kept, strict=True):
        assert (each.row, each.id, each.subject) == (row, id, person)
    assert found == rows_of_file(File("".join(as_json_lines(kept)).encode()), 99).rows


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_an_export_makes_an_equal_model(tmp_path, ending):
    texts = [each for each in HOSTILE if len(each) < 1000]
    classes = [each.strip() for each in texts if each.strip()]
    with served(tmp_path / "desk.db") as client:
        for name in ("mail", "other"):
            client.post("/api/models", json={"name": name})
        rows = [
            {"row": f"{text} {i % 2}", "answer": classes[i % (7 if i % 3 else len(classes))]}
            for i, text in enumerate(texts * 3)
        ]
        rows[5]["row"] = ""
        outcomes = client.post("/api/models/mail/learn", json={"rows": rows}).json()["outcomes"]
        assert all(each.get("changed") for each in outcomes)
        data = client.get(f"/api/models/mail/export.{ending}").content
        report = client.post("/api/models/other/import", content=data).json()
        assert report["learnt"] == len(rows) and report["refused"] == 0
        one, two = (client.get(f"/api/models/{name}").json() for name in ("mail", "other"))
        assert one["mistakes"] == two["mistakes"] > 0 and one["classes"] == two["classes"]
        assert client.get(f"/api/models/other/export.{ending}").content == data
    with Journal(tmp_path / "desk.db") as journal:
        models = [journal.open(name).estimator for name in ("mail", "other")]
        assert models[0].predict_proba_one("NA word") == models[1].predict_proba_one("NA word")


def test_an_export_that_a_spreadsheet_has_written_anew_is_read():
    kept = [Kept("two; parts", "7", "a", None), Kept({"size": 1.5}, 7, "b", "ann")]
    lines = "".join(as_csv(kept)).encode()
    changed = b'text;row;label;id;person\n"two; parts";;"""7""";a;\n;"{""size"": 1.5}";7;b;ann\n'
    found = rows_of_file(File(changed), 9).rows
    assert found == rows_of_file(File(lines), 9).rows


def test_a_column_row_is_a_column_unless_the_file_is_an_export():
    found = rows_of_file(File(b"row,text,label\n1,hello,true\n2,ho,007\n"), 9)
    assert [(each.row, each.answer) for each in found.rows] == [("hello", "true"), ("ho", "007")]
    assert found.ignored == ["row"]


# ---- formats ------------------------------------------------------------------------------------

ROWS_OF_FILE = [("Grüße aus Köln", "mail"), ("win cash", "NA"), ("waits for an answer", None)]
OBJECTS = [{"text": text} | ({"label": label} if label else {}) for text, label in ROWS_OF_FILE]
JSON_LINES = "".join(json.dumps(each, ensure_ascii=False) + "\n" for each in OBJECTS)
CSV = "text,label\n" + "".join(f"{text},{label or ''}\n" for text, label in ROWS_OF_FILE)
FILES = {
    "JSON lines": JSON_LINES.encode(),
    "JSON lines in gzip": gzip.compress(JSON_LINES.encode()),
    "JSON lines in UTF-16": JSON_LINES.encode("utf-16"),
    "JSON lines in windows-1252": JSON_LINES.encode("cp1252"),
    "JSON lines that end with CR": JSON_LINES.replace("\n", "\r").encode(),
    "JSON lines with a byte order mark": JSON_LINES.replace("\n", "\r\n").encode("utf-8-sig"),
    "a JSON array": json.dumps(OBJECTS).encode(),
    "a pretty JSON array": json.dumps(OBJECTS, indent=2).encode("utf-8-sig"),
    "pretty objects": "\n".join(json.dumps(each, indent=2) for each in OBJECTS).encode(),
    "CSV": CSV.encode(),
    "CSV in UTF-16": CSV.encode("utf-16"),
    "CSV with semicolons": CSV.replace(",", ";").encode("cp1252"),
    "a table of tabs in gzip": gzip.compress(CSV.replace(",", "\t").encode()),
    "CSV with a title": ("Report of May\n\n" + CSV).encode(),
}


def answers(upload):
    return [(each.row, each.answer) for each in upload.rows]


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
@pytest.mark.parametrize("name", ["", "rows.txt"])
def test_files_are_read_as_the_readers_read_them(content, name):
    assert answers(rows_of_file(File(content, name), 9)) == ROWS_OF_FILE


def test_parquet_and_workbooks_are_read(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pytest.importorskip("python_calamine")
    columns = {"team": [5, 6], "text": [10, 20], "day": ["Monday", None]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "rows.parquet")
    workbook = openpyxl.Workbook()
    for row in [[*columns], *zip(*columns.values(), strict=True)]:
        workbook.active.append(row)
    workbook.save(tmp_path / "rows.xlsx")
    for path in tmp_path.iterdir():
        found = rows_of_file(File(path.read_bytes()), 9, ImportOptions({"label": "team"}))
        assert answers(found) == [("10", 5), ("20", 6)], path.name
        assert found.ignored == ["day"]


MESSAGE = b"From: ann@example.org\nSubject: hello\n\nthere\n"


@pytest.mark.parametrize(
    "content",
    [
        b"From ann@example.org Mon Jan  1 10:00:00 2024\n" + MESSAGE,
        gzip.compress(b"From ann@example.org Mon Jan  1 10:00:00 2024\n" + MESSAGE),
        MESSAGE,
        b"Reply-To: bob@example.org\n" + MESSAGE.replace(b"hello", b"hello, today"),
        b"Content-Type: text/plain; charset=utf-8\nMIME-Version: 1.0\n" + MESSAGE,
    ],
    ids=["mbox", "mbox in gzip", "a message", "Reply-To first", "Content-Type first"],
)
def test_mail_is_read_without_a_name(content):
    (found,) = rows_of_file(File(content), 9).rows
    assert "hello" in found.row and found.row.rstrip().endswith("there")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"%PDF-1.4\nhello, you\n", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR,", "a picture"),
        (b"<html><table><tr><td>text,label</td></tr></table></html>", "HTML"),
        (b"\x7fELF,\x02\x01\0\0\0", "no text"),
        (b"1 |f win cash\n2 |f lunch\n", "vw"),
        (b"1 1:2 2:3\n", "svmlight"),
        (b"hello world\nsecond line\n", "its first line"),
        (b"SQLite format 3\0" + b"\0" * 100, "sqlite|no text"),
    ],
)
def test_what_is_no_table_is_refused_by_what_it_is(content, words):
    for data in (content, gzip.compress(content)):
        with pytest.raises(Refusal, match=words):
            rows_of_file(File(data), 9)
