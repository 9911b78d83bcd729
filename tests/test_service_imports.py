"""Files that are imported: every format that the readers read, and exports that come back."""

import gzip
import hashlib
import json
import re
import unicodedata
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import kesler
from desks import error_of, exported, served
from kesler import load
from kesler.durable import Journal
from kesler.service import Client
from kesler.service.exports import Kept, as_csv, as_json_lines, records_of_export
from kesler.service.import_options import ImportOptions
from kesler.service.refusals import Refusal
from kesler.service.rows_in import named, rows_of_file
from kesler.service.uploads import File
from serving import Server

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


def in_nfc(label):
    """A label as the library names it."""
    if isinstance(label, list):
        return [*map(in_nfc, label)]
    return unicodedata.normalize("NFC", label) if isinstance(label, str) else label


@given(st.lists(st.tuples(ROWS, LABELS), min_size=1, max_size=6))
def test_what_is_exported_is_imported_as_it_was(pairs):
    kept = [Kept(*pair, f"m{i}", "ann" if i % 2 else None) for i, pair in enumerate(pairs)]
    found = rows_of_file(File("".join(as_csv(kept)).encode()), 99).rows
    for each, (row, label, id, person) in zip(found, kept, strict=True):
        assert (each.row, each.id, each.subject) == (row, id, person)
        assert repr(each.answer) == repr(in_nfc(label))  # 0 is not False
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


def mbox_of(*headers):
    """An mbox of messages with these headers, in the order of their numbers."""
    return b"".join(
        b"From ann@example.org Mon Jan  1 10:00:00 2024\n%sSubject: number %d\n\nhello\n\n"
        % (each, number)
        for number, each in enumerate(headers, 1)
    )


THUNDERBIRD, OF_SERVER = b"X-Mozilla-Status: 0009\n", b"X-Status: AD\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("mark", [THUNDERBIRD, OF_SERVER])
def test_messages_that_are_marked_as_deleted_are_left_out_and_counted(desk, mark, pack):
    bills = b"X-Gmail-Labels: Inbox,bills,home\n"
    content = mbox_of(mark + bills, b"", mark, bills, b"X-Gmail-Labels: " + b"x" * 201 + b"\n")
    report = desk.post(f"{IMPORT}?skip_bad=true", content=pack(content)).json()
    assert [report[each] for each in ("learnt", "added", "refused")] == [1, 1, 1]
    assert report["sentences"][0].startswith("message 5 of the file: ")
    deleted, gmail = report["notes"]
    assert deleted.startswith("the file: 2 of 5 messages are left out, as they are marked as del")
    assert gmail.startswith("the file: the class of a message is its label of Gmail; labels of the")
    assert "Inbox (1)" in gmail and "1 have several, of which the first is the class" in gmail
    (row,) = exported(desk).values()
    assert row["text"].startswith("number 4") and row["label"] == "bills"
    assert desk.get("/api/models/mail/items").json()["items"][0]["row"].startswith("number 2")


def test_mail_of_deleted_messages_alone_is_refused_by_that():
    with pytest.raises(Refusal, match=r"no rows: the file: 2 of 2 messages .* marked as deleted"):
        rows_of_file(File(mbox_of(THUNDERBIRD, OF_SERVER)), 9)


SEQUENCES = {
    "FASTA": b">s1 oak\nACGT\nacgt\n\n>s2 ash\nGGTA\n>s3 elm\nTTTT\n",
    "FASTQ": b"@s1 oak\nACGTacgt\n+\nIIIIIIII\n@s2 ash\nGGTA\n+\nIIII\n@s3 elm\nTTTT\n+\nIIII\n",
}
TAXA = b"Feature ID\tTaxon\ns1\tk__Fungi; s__rust\ns3\tk__Fungi; s__yeast\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("content", SEQUENCES.values(), ids=SEQUENCES)
def test_sequences_are_read_with_labels_beside_or_within(desk, content, pack):
    files = {"file": ("x.txt", pack(content)), "labels": ("taxa.tsv", TAXA)}
    report = desk.post(IMPORT, files=files).json()
    assert (report["learnt"], report["added"]) == (2, 1)
    (note,) = report["notes"]
    assert note.startswith("the file: 1 of 3 identifiers have no label in the file of labels")
    assert [(id, each["row"], each["label"]) for id, each in exported(desk).items()] == [
        ("s1", {"sequence": "ACGTacgt"}, "k__Fungi; s__rust"),
        ("s3", {"sequence": "TTTT"}, "k__Fungi; s__yeast"),
    ]
    (item,) = desk.get("/api/models/mail/items").json()["items"]
    assert (item["id"], item["row"]) == ("s2", {"sequence": "GGTA"})
    found = rows_of_file(File(pack(content)), 9, ImportOptions({"label": "description"}))
    assert [each.answer for each in found.rows] == ["oak", "ash", "elm"] and not found.notes


@pytest.mark.parametrize(
    ("content", "labels", "words"),
    [
        (SEQUENCES["FASTA"], b"s9\toak\n", "no label of any of the 3 identifiers .* 's1'"),
        (SEQUENCES["FASTA"], b"s1 oak\n", "^the file of labels, line 1: it has no label"),
        (SEQUENCES["FASTA"], b"s1\toak\ns1\telm\n", "^the file of labels, line 2: 's1' has the"),
        (SEQUENCES["FASTA"], b"\xff\xfe", "^the file of labels can't be read"),
        (SEQUENCES["FASTA"], b"", "no label of any of the 3"),
        (b">s1\nAC\n>s2\n>s3\nGT\n", TAXA, "line 3 of the file: no sequence is below it; mend"),
        (b"text,label\na,b\n", TAXA, "without labels=@...: leave it out .*fasta, fastq"),
        (MESSAGE, TAXA, "mail is read without labels"),
        ("".join(as_csv([Kept("a", "b", "c", None)])).encode(), TAXA, "without labels"),
    ],
)
def test_files_of_labels_that_do_not_fit_are_refused(desk, content, labels, words):
    answer = desk.post(IMPORT, files={"file": ("x", content), "labels": ("taxa.tsv", labels)})
    assert re.search(words, error_of(answer, answer.status_code))
    assert exported(desk) == {}


def test_the_client_sends_a_file_of_labels(tmp_path):
    path, labels = tmp_path / "x.fasta", tmp_path / "taxa.tsv"
    path.write_bytes(SEQUENCES["FASTA"])
    labels.write_bytes(TAXA)
    with Server(tmp_path / "desk.db") as server:
        mushrooms = Client(server.url, "mushrooms")
        mushrooms.create()
        assert mushrooms.import_file(path, labels=labels)["learnt"] == 2
        assert mushrooms.figures()["classes"] == ["k__Fungi; s__rust", "k__Fungi; s__yeast"]


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


# ---- options ------------------------------------------------------------------------------------

IMPORT = "/api/models/mail/import"


@pytest.fixture
def desk(tmp_path):
    with served(tmp_path / "desk.db") as client:
        client.post("/api/models", json={"name": "mail"})
        yield client


def test_fields_of_a_form_are_options_as_those_of_the_query(desk):
    files = {"file": ("t.csv", b"title,team\nwin cash,spam\n")}
    report = desk.post(IMPORT, files=files, data={"label": "team", "text": "title"}).json()
    assert (report["learnt"], report["ignored"]) == (1, [])
    answer = desk.post(IMPORT, files=files, data={"lable": "team"})
    assert "'lable'" in error_of(answer, 422)
    answer = desk.post(f"{IMPORT}?label=team", files=files, data={"label": "title"})
    assert "label is in the query and another in the form" in error_of(answer, 422)
    answer = desk.post(IMPORT, files=files, data={"label": ["team", "title"]})
    assert "a field twice" in error_of(answer, 400)
    both = desk.post(f"{IMPORT}?label=team", files=files, data={"text": "title", "label": "team"})
    assert both.json()["unchanged"] == 1


def test_a_name_that_is_twice_in_the_query_is_refused(desk):
    answer = desk.post(f"{IMPORT}?label=team&label=title", content=b"title,team\nwin,spam\n")
    assert "the query has a name twice" in error_of(answer, 400)


def read(content, **options):
    return rows_of_file(File(content), 9, ImportOptions.of(options))


COLUMNS_OF_ONE_MEANING = [
    (b"text,team,label\nwin,spam,no\n", {"label": "team"}, ("win", "spam"), ["label"]),
    (b"label,text,team\nno,win,spam\n", {"label": "team"}, ("win", "spam"), ["label"]),
    (
        b'{"text": "win", "team": "spam", "label": "no"}',
        {"label": "team"},
        ("win", "spam"),
        ["label"],
    ),
    (b"text,title,label\nno,win,spam\n", {"text": "title"}, ("win", "spam"), ["text"]),
    (b"Text,text,LABEL,label\nno,win,no,spam\n", {}, ("win", "spam"), ["Text", "LABEL"]),
    (
        b"size,team,label\n1,spam,no\n",
        {"label": "team"},
        ({"size": "1", "label": "no"}, "spam"),
        [],
    ),
]


@pytest.mark.parametrize(("content", "options", "row", "ignored"), COLUMNS_OF_ONE_MEANING)
def test_a_column_that_is_named_wins_over_that_of_the_name(content, options, row, ignored):
    found = read(content, **options)
    assert (answers(found), found.ignored) == ([row], ignored)


def test_columns_that_are_named_as_the_text_are_joined_by_lines():
    csv = b"title,body,label\nwin,cash,spam\n,lunch,work\nalone,,work\n,,work\n"
    json = b'{"title": "win", "body": ["a", "b"], "label": "x"}\n{"title": 7, "label": "y"}\n'
    found = read(csv, text="body, title", skip_bad="true")
    assert answers(found) == [("cash\nwin", "spam"), ("lunch", "work"), ("alone", "work")]
    assert [*map(str, found.refused)] == ["line 5 of the file: it has no text"]
    assert answers(read(json, text="title,body")) == [("win\na\nb", "x"), ("7", "y")]


def test_an_id_that_is_named_wins_over_the_column_id():
    for content in (b"text,ticket,id\na,t1,no\n", b'{"text": "a", "ticket": "t1", "id": "no"}'):
        found = read(content, id="ticket")
        assert (found.rows[0].id, found.ignored) == ("t1", ["id"])


def test_a_file_whose_columns_have_no_label_says_so():
    for content in (b"text,team\nwin,spam\n", b"size,colour\n1,red\n", SEQUENCES["FASTA"]):
        (note,) = read(content).notes
        assert note.startswith("no column is the label") and "label=..." in note
    for content in (b"text\nwin\n", b"text,Label\nwin,\n", b"id,text,person\n1,a,b\n", MESSAGE):
        assert not read(content).notes
    assert not read(b"text,team\nwin,spam\n", label="team").notes


NESTED = b'{"ticket": {"text": "win; cash", "team": "spam"}}\n'


@pytest.mark.parametrize(
    ("content", "options"),
    [
        (b"a|b\nx|y\ntext~label\nwin; cash~spam\n", {"delimiter": "~", "skip_lines": "2"}),
        (b"win; cash\tspam\n", {"delimiter": "tab", "header": "false", "text": "1", "label": "2"}),
        (b"text,label\n'win; cash','spam'\n", {"quote": "'"}),
        (b"text;label\nwin\\; cash;spam\n", {"escape": "\\"}),
        ("text,label\nwin; cash,spam\n".encode("cp037"), {"encoding": "cp037"}),
        (b"\n\ntext,label\nwin; cash,spam\n", {"format": "csv"}),
        (NESTED, {"text": "ticket.text", "label": "ticket.team"}),
        (b'{"title": "win; cash", "team": "spam"}\n', {"text": "title", "label": "team"}),
    ],
)
def test_readers_take_the_options_of_an_import(content, options):
    assert answers(read(content, **options)) == [("win; cash", "spam")]


@pytest.mark.parametrize(
    ("content", "options", "words"),
    [
        (b"text,team\na,x\n", {"label": "Team"}, "'Team': it has 'text', 'team'"),
        (b"text,team\na,x\n", {"text": "body"}, "'body': it has 'text', 'team'"),
        (b'{"text": "a"}\n', {"label": "team"}, "'team': it has 'text'"),
        (b"text,text\na,x\n", {}, "header=false, skip_lines=1"),
        (b"text,label\na,x\n", {"skip_lines": "two"}, "skip_lines=two: give the number of lines"),
        (b"text,label\na,x\n", {"header": "maybe"}, "header=maybe: give false"),
        (b"text,label\na,x\n", {"encoding": "klingon"}, "klingon"),
        (b"text,label\na,x\n", {"delimiter": "ab"}, "one character"),
        (b"text,label\na,x\n", {"format": "vw"}, "no texts and no columns"),
        (b"text,label\na,x\n", {"sheet": "May"}, "sheet=..."),
        (MESSAGE, {"sheet": "May"}, "mail is read without sheet: leave it out"),
        (
            b"hello\nthere\n",
            {},
            "format=... one of csv, jsonl, json, parquet, excel, mail, fasta, fastq",
        ),
    ],
)
def test_advice_has_the_words_of_the_service(content, options, words):
    with pytest.raises(
        Refusal, match=re.escape(words.rstrip("$")) + "$" * words.endswith("$")
    ) as found:
        read(content, **options)
    assert not re.search(r"=True|=False|--\w|open_stream", str(found.value))


# ---- rows that cannot be used -------------------------------------------------------------------

FIRST, LAST = b'{"text": "win", "label": "spam"}', b'{"text": "team", "label": "work"}'
FROM = b"From ann@example.org Mon Jan  1 10:00:00 2024\n"
BAD_ROWS = {
    "an empty text": (b"text,label\nwin,spam\n,spam\nteam,work\n", "line 3"),
    "a long class": (b"text,label\nwin,spam\nlong," + b"x" * 201 + b"\nteam,work\n", "line 3"),
    "too many cells": (b"text,label\nwin,spam\na,b,c\nteam,work\n", "line 3"),
    "an open quote": (b'text,label\nwin,spam\n"a,b\nteam,work\n', "line 3"),
    "no JSON": (FIRST + b'\n\n{"text"\n' + LAST, "line 3"),
    "an object as label": (FIRST + b'\n{"text": "a", "label": {"b": 1}}\n' + LAST, "line 2"),
    "an object as id": (FIRST + b'\n{"text": "a", "id": {"b": 1}}\n' + LAST, "line 2"),
    "a truth value as person": (FIRST + b'\n{"text": "a", "person": true}\n' + LAST, "line 2"),
    "an infinite text": (FIRST + b'\n{"text": 1e999}\n' + LAST, "line 2"),
    "two columns of texts": (FIRST + b'\n{"Text": "a", "TEXT": "b"}\n' + LAST, "line 2"),
    "no object": (b"[" + FIRST + b", 7,\n" + LAST + b"]", "record 2"),
    "a message of messages": (
        FROM + b"X-Gmail-Labels: spam\nSubject: win\n\n\n"
        + FROM + b"Content-Type: message/rfc822\n\n" * 2000 + b"Subject: deep\n\n\n"
        + FROM + b"X-Gmail-Labels: work\nSubject: team\n\n\n", "message 2",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("content", "place"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_refused_alone_where_this_is_asked_for(desk, content, place):
    answer = desk.post(IMPORT, content=content)
    said = error_of(answer, answer.status_code)
    assert said.startswith(f"{place} of the file") and "skip_bad=true" in said
    assert exported(desk) == {}
    report = desk.post(f"{IMPORT}?skip_bad=true", content=content).json()
    assert (report["learnt"], report["refused"]) == (2, 1)
    assert report["sentences"][0].startswith(f"{place} of the file")
    assert [each["label"] for each in exported(desk).values()] == ["spam", "work"]


@pytest.mark.parametrize("label", ["007", 7, 1.5, True])
def test_labels_keep_their_types_in_requests_and_files(desk, label):
    desk.post("/api/models/mail/learn", json={"row": "win cash", "answer": label})
    report = desk.post(IMPORT, content=json.dumps({"text": "win", "label": label})).json()
    assert report["learnt"] == 1
    found = desk.post("/api/models/mail/predict", json={"row": "win"}).json()["label"]
    assert (found, type(found)) == (label, type(label))
    for each in exported(desk).values():
        assert (each["label"], type(each["label"])) == (label, type(label))


@pytest.mark.parametrize("label", [0, 0.0, False, "0", "null", "None", [0], [False, "a"], ["a"]])
def test_an_answer_may_be_nothing_that_is_empty_alone(label):
    for nothing in (None, "", " \n", []):
        lines = [{"text": "a", "label": label}, {"text": "b", "label": nothing}]
        found = read("\n".join(map(json.dumps, lines)).encode())
        assert repr(answers(found)) == repr([("a", label), ("b", None)])


def test_days_and_truth_values_of_parquet_are_answers(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = [
        ([date(2026, 5, 1), None], "2026-05-01"),
        ([datetime(2026, 5, 1, 10, 30), None], "2026-05-01T10:30:00"),
        ([False, None], False),
        ([0, None], 0),
        ([0.0, float("nan")], 0.0),
        ([["b", "a"], []], ["b", "a"]),
    ]
    for column, answer in columns:
        parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": column}), tmp_path / "a")
        found = read((tmp_path / "a").read_bytes())
        assert repr(answers(found)) == repr([("a", answer), ("b", None)])


def test_every_row_is_counted_once(desk):
    content = (
        b"text,label,id\n"
        b"win,spam,1\nteam,work,1\nwin,spam,1\n"  # learnt, of another row, known
        b"waits,,2\nwaits too,,2\nwaits,,2\n"  # added, of another row, known
        b"also,,1\nwin,,1\n"  # of another row that has an answer, known
    )
    report = desk.post(IMPORT, content=content).json()
    counts = [report[name] for name in ("learnt", "added", "unchanged", "refused")]
    assert counts == [1, 1, 3, 3] and sum(counts) == 8
    assert [each.partition(":")[0] for each in report["sentences"]] == [
        f"line {line} of the file" for line in (3, 6, 8)
    ]
    (item,) = desk.get("/api/models/mail/items").json()["items"]
    assert (item["id"], item["row"]) == ("2", "waits")


def test_labels_of_two_types_are_refused_by_their_lines(desk):
    report = desk.post(
        IMPORT, content=b'{"text":"a","label":"x"}\n\n{"text":"b","label":2}\n'
    ).json()
    assert (report["learnt"], report["refused"]) == (1, 1)
    assert report["sentences"][0].startswith("line 3 of the file: label 2")


# ---- the command line ---------------------------------------------------------------------------


def test_the_server_learns_the_labels_that_the_command_line_learns(capsys, tmp_path):
    labels = [each.strip() for each in HOSTILE if each.strip() and len(each) < 100]
    path, model = tmp_path / "rows.jsonl", tmp_path / "mail.kesler"
    rows = [{"text": f"word{i} {label}", "label": label} for i, label in enumerate(labels * 2)]
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    assert kesler(capsys, "learn", model, path).code == 0
    known = load(model)
    with Server(tmp_path / "desk.db") as server:
        mail = Client(server.url, "mail")
        mail.create()
        assert mail.import_file(path)["learnt"] == len(rows)
        assert mail.figures()["classes"] == known.classes_by_code_.tolist()
        label = mail.predict(rows[0]["text"])["label"]
    assert label == known.predict_one(rows[0]["text"])


# ---- ids, places and what is known of a format --------------------------------------------------


def id_of(content):
    """The id of a row without one: what the same file had in every version."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def test_rows_without_an_id_have_one_from_their_content():
    lines = [{"b": 1, "a": "x"}, {"a": "x", "b": 1}, {"a": "x", "b": 2}, {"b": 1, "a": "x"}]
    found = read("".join(json.dumps(each) + "\n" for each in lines).encode()).rows
    one, two = id_of({"a": "x", "b": 1}), id_of({"a": "x", "b": 2})
    assert [each.id for each in found] == [one, f"{one}-2", two, f"{one}-3"]
    found = read("text,id\nschön,\nschön,7\nschön,\n".encode()).rows
    assert [each.id for each in found] == [id_of("schön"), "7", f"{id_of('schön')}-2"]
    (found,) = read(b'{"text": "a", "id": 7, "person": 1.5}').rows
    assert (found.id, found.subject) == ("7", "1.5")


def test_an_export_says_where_its_rows_stand():
    kept = [Kept("one", "a", "1", None), Kept("two\nlines\r\nhere", "b", "2", "ann"),
            Kept("é", ["ä"], "3", None), Kept({"ö": 1}, "c", "4", None)]  # fmt: skip
    data = "".join(as_csv(kept)).encode()
    assert rows_of_file(File(data), 9).places == [f"line {n} of the file" for n in (2, 3, 6, 7)]
    assert "é" in data.decode() and '["ä"]' in data.decode().replace('""', '"')
    assert '{"text": "é", "label": ["ä"], "id": "3"}\n' in [*as_json_lines(kept)]
    # An export that another program has changed is read as any table.
    assert records_of_export(data) is not None
    assert records_of_export(data + b"five,,cells,5\r\n") is None
    assert records_of_export(data + b"a,,b,c,d,e\r\n") is None


def test_an_export_is_read_as_it_was_written_unless_options_say_otherwise():
    data = "".join(as_csv([Kept("a", "7", "1", "ann"), Kept("b", "x", "2", None)])).encode()
    assert [each.answer for each in read(data).rows] == ["7", "x"]
    found = read(data, label="person", skip_bad="true")
    assert answers(found) == [("a", "ann"), ("b", None)]
    found = read(data, skip_lines="1", header="false", text="1", id="4")
    assert [each.id for each in found.rows] == ["1", "2"]
    assert [each.row["3"] for each in read(data, header="false").rows] == ["label", '"7"', "x"]
    line = {"text": "a", "row": "", "label": "7", "id": "1", "person": ""}
    for name in (None, "x.jsonl"):
        (found,) = rows_of_file(File(json.dumps(line).encode(), name or ""), 9).rows
        assert (found.row, found.answer, found.id, found.subject) == ("a", "7", "1", None)


@pytest.mark.parametrize("name", ["rows.eml", "ROWS.EML", "v1.2.eml.gz", "../../rows.eml"])
def test_the_ending_of_a_name_may_tell_the_format(name):
    content = b"Unknown: 1\nSubject: hello\n\nthere\n"
    content = gzip.compress(content) if name.endswith(".gz") else content
    with pytest.raises(Refusal, match="neither its name nor its first line"):
        read(content)
    for file, options in ((File(content, name), {}), (File(content), {"name": name})):
        (found,) = rows_of_file(file, 9, ImportOptions.of(options)).rows
        assert found.row.endswith("hello\nthere\n")


def test_texts_of_a_file_are_long_up_to_a_limit_also_when_they_are_unpacked(monkeypatch):
    monkeypatch.setattr("kesler.service.uploads.MOST_UNPACKED", 200)
    for n in (199, 200, 201):
        lines = f"text,label\n{'x' * (n - 102)},\n{'y' * 100},ab\n".encode()
        mail = FROM + b"Subject: x\n\n"
        mail = gzip.compress(mail + b"x" * (n - len(mail) - 1) + b"\n")
        for content in (lines, gzip.compress(lines), mail):
            if n <= 200:
                assert read(content).rows
            else:
                with pytest.raises(Refusal, match=r"more than 200 (characters|bytes)") as found:
                    read(content)
                assert found.value.status == 413
    assert len(rows_of_file(File(b"text\na\nb\n"), 2).rows) == 2
    with pytest.raises(Refusal, match="more than 1 rows"):
        rows_of_file(File(b"text\na\nb\n"), 1)


def test_a_form_has_one_file_and_at_most_one_of_labels(desk):
    taxa, fasta = ("t.tsv", b"s1\toak\n"), ("x.fasta", b">s1\nACGT\n")
    for files in (
        [("labels", taxa)],
        [("file", fasta), ("labels", taxa), ("labels", taxa)],
        [("file", fasta), ("other", fasta)],
    ):
        assert "send one" in error_of(desk.post(IMPORT, files=files), 400)
    report = desk.post(IMPORT, files=[("file", fasta), ("labels", taxa)]).json()
    assert (report["learnt"], report["notes"]) == (1, [])  # every one has a label


def test_a_file_without_rows_says_what_to_send_or_why():
    with pytest.raises(Refusal, match=r"^the file has no rows: send CSV with a header, or JSON"):
        read(b"text,label\n")
    with pytest.raises(Refusal, match=r"^the file has no rows: the file is not UTF-8"):
        read("täxt,label\n".encode("cp1252"))


def test_a_report_has_the_first_twenty_sentences(desk):
    content = "text,label\n" + ",spam\n" * 25 + "win,spam\n"
    report = desk.post(f"{IMPORT}?skip_bad=true", content=content).json()
    assert (report["learnt"], report["refused"]) == (1, 25)
    assert report["sentences"] == [f"line {n} of the file: it has no text" for n in range(2, 22)]


def test_texts_of_json_may_be_of_any_type():
    texts = [[1, 2], {"a": 1}, True, 7, ["a", "b"], None, [], ["a", 1]]
    lines = "\n".join(json.dumps({"text": each}) for each in texts)
    found = read(lines.encode(), skip_bad="true")
    assert [each.row for each in found.rows] == [[1, 2], {"a": 1}, "true", "7", "a\nb"]
    assert len(found.refused) == 3


@pytest.mark.parametrize("name", ["a\tb", "a\x7fb", "a\x9fb", "a\u2028b", "a\u202eb", "a\u2069b"])
def test_names_that_look_like_others_are_refused(name):
    with pytest.raises(Refusal, match="the class contains characters that cannot be shown"):
        named(name, "the class")


def test_a_name_is_what_a_page_and_a_file_can_hold():
    for name in ("a\u200db", "a\u00a0b", "a\u200eb", "\ue000", "x" * 200):
        assert named(f" {name}\n", "the class") == name
    for half in ("\ud800", "a\udfff"):
        with pytest.raises(Refusal, match="the class contains half a character"):
            named(half, "the class")
    for other in (" ", "x" * 201):
        with pytest.raises(Refusal, match="the class must have 1 to 200 characters"):
            named(other, "the class")
