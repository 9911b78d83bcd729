"""Where the messages of an mbox begin, whoever wrote it."""

import pytest

from test_readers import read, write

SENT = "Mon, 1 Jan 2024 10:00:00 +0100"


def one(line, subject, text="hello\n", headers=""):
    return f"{line}\nSubject: {subject}\nDate: {SENT}\n{headers}\n{text}"


FROM_LINES = [
    "From ann@example.org Mon Jan  1 10:00:00 2024",
    "From ann@example.org  Mon Jan  1 10:00 2024",
    "From - Tue Jul 05 18:44:15 2022",
    "From MAILER-DAEMON Fri Jul  8 12:08:34 2011",
    "From 1787654321@xxx Mon Jan 01 10:00:00 +0000 2024",
    "From ann Mon Jan  1 10:00:00 CET 2024",
    "From ann@example.org Mon Jan  1 10:00:00 2024 +0100",
    "From ann@example.org Mon Jan  1 10:00:00 2024 remote from host",
    "From ann@example.org Mon, 1 Jan 2024 10:00:00 +0100",
    "From ann@example.org 2024-01-01T10:00:00Z",
    'From "ann."@example.org Mon Jan  1 10:00:00 2024',
    "From ???@??? Mon Jan 01 10:00:00 2024",
]
SENTENCES = [
    "From then on: we meet at ten.\nAgenda: see below.",
    "From the docs:\nhttps://example.org/x",
    "From Ann Mon Jan 1\nSubject: inner",
    "From next Mon Jan  1 10:00:00 2024",
    ">From ann@example.org Mon Jan  1 10:00:00 2024\nSubject: inner",
    ">>From ann@example.org Mon Jan  1 10:00:00 2024\nSubject: inner",
    "> From ann@example.org Mon Jan  1 10:00:00 2024\nSubject: inner",
    "From: ann@example.org",
]


def classes(tmp_path, content):
    path = write(tmp_path, "a.mbox", content)
    return [next(t for t in tokens if t.startswith("word")) for _, tokens in read(path)]


@pytest.mark.parametrize("line", FROM_LINES)
@pytest.mark.parametrize("between", ["", "\n", "\n\n"])
@pytest.mark.parametrize("before", ["", "\n", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_from_line_begins_a_message(tmp_path, line, between, before, end):
    content = before + between.join(one(line, f"word{i}") for i in range(3))
    found = classes(tmp_path, content.replace("\n", end).encode())
    assert found == ["word0", "word1", "word2"]


@pytest.mark.parametrize("sentence", SENTENCES)
@pytest.mark.parametrize("empty", ["", "\n"])
def test_a_sentence_begins_none(tmp_path, sentence, empty):
    text = f"Hello\n{empty}{sentence}\n\nbye\n"
    content = "\n".join(one(FROM_LINES[0], f"word{i}", text) for i in range(2))
    assert classes(tmp_path, content) == ["word0", "word1"]


UNUSUAL_LINES = [
    "From ann at example.org  Mon Jan  1 10:00:00 2024",
    "From Ann Bell Mon Jan  1 10:00:00 2024",
    "From Ann Bell <ann@example.org> Mon Jan  1 10:00:00 2024",
    'From "Ann B"@example.org Mon Jan  1 10:00 MET 2024',
    "From ann@example.org Mo Jan  1 10:00:00 2024",
    "From ann@example.org lun. janv.  1 10:00:00 2024",
    "From ann@example.org Mi Mär  6 10:00:00 2024",
    "From ann@example.org пн янв  1 10:00:00 2024",
    "From ann@example.org सोम जनवरी  1 10:00:00 2024",
    "From ann@example.org 01/02/2024 10:00:00",
    "From ann@example.org 2024/02/01",
    "From ann@example.org 1. Januar 2024 10:00",
    "From ann@example.org Mon Jan  1 2024",
    "From ann@example.org",
    "From ",
]


@pytest.mark.parametrize("line", UNUSUAL_LINES)
@pytest.mark.parametrize("between", ["", "\n"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_an_unusual_line_begins_messages_where_it_begins_the_first(tmp_path, line, between, end):
    text = "Hello\nFrom here on: all is well\n\nFrom now on all is well\nand good\n"
    content = between.join(one(line, f"word{i}", text) for i in range(3))
    found = classes(tmp_path, content.replace("\n", end).encode())
    assert found == ["word0", "word1", "word2"]


@pytest.mark.parametrize("line", UNUSUAL_LINES[1:-2])
def test_an_unusual_line_needs_an_empty_one_behind_usual_ones(tmp_path, line):
    parts = [one(FROM_LINES[0], "word0"), one(line, "word1")]
    assert classes(tmp_path, "\n".join(parts)) == ["word0", "word1"]
    assert classes(tmp_path, "".join(parts)) == ["word0"]


ODD_HEADERS = ["X Odd: a\n", " b\n", "Überschrift: c\n", "no colon\n X-A: d\n"]


@pytest.mark.parametrize("odd", ODD_HEADERS)
@pytest.mark.parametrize("between", ["", "\n"])
def test_a_message_may_begin_with_an_odd_header(tmp_path, odd, between):
    first, last = (one(FROM_LINES[0], f"word{i}") for i in (0, 2))
    content = between.join([first, f"{FROM_LINES[0]}\n{odd}Subject: word1\n\nhello\n", last])
    assert classes(tmp_path, content) == ["word0", "word1", "word2"]


def test_a_message_may_have_no_headers_or_nothing_at_all(tmp_path):
    first, last = (one(FROM_LINES[0], f"word{i}") for i in (0, 2))
    for text in ("word1 is here", "word1 is\n\nhere: as ever"):
        content = "\n".join([first, f"{FROM_LINES[0]}\n\n{text}\n", last])
        assert classes(tmp_path, content) == ["word0", "word1", "word2"]
        headless = f"{FROM_LINES[0]}\n\n{text}\n\n{last}"
        assert sorted(classes(tmp_path, headless)) == ["word1", "word2"]
    content = "\n".join([first, f"{FROM_LINES[0]}\n", last, f"{FROM_LINES[0]}\n"])
    assert classes(tmp_path, content) == ["word0", "word2"]


@pytest.mark.parametrize("size", [10, 9000])
def test_lines_may_end_with_returns(tmp_path, size):
    text = "hello\n" * size
    parts = [one(line, f"word{i}", text) for i, line in enumerate(FROM_LINES[:3])]
    content = "\n".join(parts).replace("\n", "\r")
    assert classes(tmp_path, content) == ["word0", "word1", "word2"]
    rows = read(write(tmp_path, "a.mbox", content))
    assert all({"hello", "10", "jan"} <= set(tokens) for _, tokens in rows)


@pytest.mark.parametrize("size", [1, 200_000])
def test_a_content_length_may_count_line_ends_of_one_byte(tmp_path, size):
    quoted = "Look:\n\n" + one(FROM_LINES[0], "inner") + "at home\n" * size
    parts = [
        one(FROM_LINES[0], f"word{i}", quoted, f"Content-Length: {len(quoted)}\n") for i in range(3)
    ]
    content = "\n".join(parts).replace("\n", "\r\n")
    assert classes(tmp_path, content) == ["word0", "word1", "word2"]
    wrong = content.replace(f"Content-Length: {len(quoted)}", f"Content-Length: {len(quoted) - 99}")
    assert len(read(write(tmp_path, "a.mbox", wrong))) == 6


def test_from_lines_without_dates_are_found_where_the_first_has_none(tmp_path):
    parts = [one("From ann", f"word{i}", "From here on\nall is well: yes\n") for i in range(2)]
    assert classes(tmp_path, "\n".join(parts)) == ["word0", "word1"]


def test_a_right_content_length_holds_messages_that_are_quoted(tmp_path):
    quoted = "Look:\n\n" + one(FROM_LINES[0], "inner")
    parts = [
        one(FROM_LINES[0], f"word{i}", quoted, f"Content-Length: {len(quoted)}\n") for i in range(3)
    ]
    for between in ("", "\n"):
        assert classes(tmp_path, between.join(parts)) == ["word0", "word1", "word2"]


@pytest.mark.parametrize("length", [0, 3, 40, 10**6, 10**11, "many", -4])
def test_a_wrong_content_length_is_ignored(tmp_path, length):
    parts = [one(FROM_LINES[0], f"word{i}", headers=f"Content-Length: {length}\n") for i in "123"]
    assert classes(tmp_path, "\n".join(parts)) == ["word1", "word2", "word3"]


def test_lines_that_an_mbox_escapes_read_as_the_text_itself(tmp_path):
    plain, escaped = (one(FROM_LINES[0], "word1", f"{m}From my desk\n") for m in ("", ">"))
    assert read(write(tmp_path, "a.mbox", plain)) == read(write(tmp_path, "a.mbox", escaped))


def test_a_from_line_that_was_escaped_above_the_headers_is_no_text(tmp_path):
    line = f"{FROM_LINES[0]}\n>{FROM_LINES[0]}"
    typed = "Content-Type: text/html; charset=utf-8\n"
    assert "br" not in read(write(tmp_path, "a", one(line, "word1", "a<br>b\n", typed)))[0][1]
