"""Mail: folders are classes, the Date headers the order, and no header gives a folder away."""

import mailbox
import os
from email.message import EmailMessage

import pytest

from kesler.errors import KeslerError
from kesler.readers import open_stream
from kesler.readers.mail.message import message_texts, message_tokens
from kesler.readers.reader import BadRow
from test_readers import read, write


def message(subject, date=None, folder="secretfolder"):
    made = EmailMessage()
    made["Subject"] = subject
    made["X-Folder"] = folder
    if date is not None:
        made["Date"] = date
    made.set_content(f"body of {subject}")
    return made


JANUARY = "Mon, 1 Jan 2001 12:00:00 +0000"
FEBRUARY = "Thu, 1 Feb 2001 12:00:00 +0000"
MARCH = "Thu, 1 Mar 2001 12:00:00 +0000"


def subjects(rows, words):
    """Return which of the words, each in one message, come in what order, with their classes."""
    return [(next(word for word in words if word in tokens), label) for label, tokens in rows]


# Where messages are


def make_maildir(path):
    maildir = mailbox.Maildir(path)
    maildir.add(message("second", FEBRUARY))
    seen = mailbox.MaildirMessage(message("first", JANUARY))
    seen.set_subdir("cur")
    maildir.add(seen)
    maildir.add_folder("Work.Old").add(message("third", MARCH))
    (path / "dovecot.index").write_bytes(b"\0\1\2")
    (path / "tmp" / "half").write_bytes(b"Subject: half\n\n")
    return path


def make_tree(path):
    for name, made in {
        "1.": message("first", JANUARY),
        "work/2.eml": message("second", FEBRUARY),
        "work/old/03": message("third", MARCH),
    }.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(bytes(made))
    (path / ".hidden").write_bytes(b"\0")
    (path / ".git" / "hooks").mkdir(parents=True)
    (path / ".git" / "hooks" / "sample").write_bytes(b"\0")
    return path


def make_mboxes(path):
    (path / "work").mkdir(parents=True)
    for name, messages in {
        "Inbox": [message("third", MARCH), message("first", JANUARY)],
        "work/old.mbox": [message("second", FEBRUARY)],
    }.items():
        mbox = mailbox.mbox(path / name)
        for made in messages:
            mbox.add(made)
        mbox.close()
    return path


@pytest.mark.parametrize(
    "make, classes",
    [
        (make_maildir, ["INBOX", "INBOX", "Work/Old"]),
        (make_tree, ["INBOX", "work", "work/old"]),
        (make_mboxes, ["Inbox", "work/old", "Inbox"]),
    ],
)
def test_folders_are_classes_and_dates_the_order(tmp_path, make, classes):
    words = ["first", "second", "third"]
    stream = open_stream(make(tmp_path / "mail"))
    (block,) = stream
    assert block.labels == classes
    rows = read(tmp_path / "mail")
    assert subjects(rows, words) == list(zip(words, classes, strict=True))
    for word, (_, tokens) in zip(words, rows, strict=True):
        assert {"body", "of", word} <= tokens.keys()
        assert (tokens["body"], tokens[word]) == (1.0, 2.0)  # the subject is in the body
    assert "secretfolder" not in stream.vocabulary.indices


def test_one_mbox_is_one_class(tmp_path):
    path = make_mboxes(tmp_path / "mail") / "work" / "old.mbox"
    assert [label for label, _ in read(path)] == ["old"]
    path = path.rename(path.with_name("noname"))
    assert [label for label, _ in read(path)] == ["noname"]


def test_a_file_is_one_message_of_no_folder(tmp_path):
    path = write(tmp_path, "1.eml", bytes(message("lunch")))
    (block,) = open_stream(path, require_labels=False)
    assert block.labels == [None]
    with pytest.raises(KeslerError, match="there is no label"):
        read(path)


def test_a_directory_without_mail_is_a_sentence(tmp_path):
    with pytest.raises(KeslerError, match="holds no rows"):
        read(tmp_path)


def test_from_lines_in_a_text_split_no_message(tmp_path):
    content = (
        "From me Mon Jan  1 00:00:00 2001\nSubject: first\n\n"
        "From the start:\n\nFrom here on\nall is well: yes\n\n"
        "From you Mon Jan  1 00:00:00 2001\nSubject: second\n\nbye\n"
    )
    rows = read(write(tmp_path, "a.mbox", content))
    assert subjects(rows, ["first", "second"]) == [("first", "a"), ("second", "a")]
    assert "well" in rows[0][1]


# In what order


def dated(tmp_path, dates):
    for name, date in dates.items():
        header = f"Date: {date}\n" if date else ""
        path = write(tmp_path, name, header.encode() + bytes(message(f"word{name}")))
        os.utime(path, (0, 978350400))  # noon on 1 January 2001, UTC
    return [token for _, tokens in read(tmp_path) for token in tokens if token.startswith("word")]


def test_dates_are_taken_to_utc(tmp_path):
    dates = {
        "1": "Mon, 1 Jan 2001 12:00:00 -0800",
        "2": "Mon, 1 Jan 2001 13:00:00 +0000",
        "3": "1 Jan 2001 21:00 +0900",
        "4": "Mon, 1 Jan 2001 12:30:00",
    }
    assert dated(tmp_path, dates) == ["word3", "word4", "word2", "word1"]


def test_messages_of_one_second_stand_in_the_order_of_their_paths(tmp_path):
    assert dated(tmp_path, {"b": JANUARY, "a": JANUARY}) == ["worda", "wordb"]


@pytest.mark.parametrize("date", [None, "soon", "32 Foo 2001", "1 Jan 99999999999 25:61:00"])
def test_an_undated_file_has_the_date_of_its_last_change(tmp_path, date):
    dates = {"1": MARCH, "2": date, "3": "Sun, 31 Dec 2000 12:00:00 +0000"}
    assert dated(tmp_path, dates) == ["word3", "word2", "word1"]


def test_an_undated_message_of_an_mbox_follows_the_one_before_it(tmp_path):
    for name, messages in {
        "a": [message("one", MARCH), message("two"), message("three", JANUARY)],
        "b": [message("four", FEBRUARY)],
    }.items():
        mbox = mailbox.mbox(tmp_path / name)
        for made in messages:
            mbox.add(made)
        mbox.close()
    words = ["one", "two", "three", "four"]
    order = [word for word, _ in subjects(read(tmp_path), words)]
    assert order == ["three", "four", "one", "two"]


def test_the_date_may_go_on_in_the_next_line(tmp_path):
    early = b"Subject: early\nDATE:\r\n\tMon, 1 Jan\r\n 2001 12:00:00 +0000\r\n\r\nDate: never\n"
    write(tmp_path, "2", early)
    write(tmp_path, "1", bytes(message("late", FEBRUARY)))
    order = [word for word, _ in subjects(read(tmp_path), ["early", "late"])]
    assert order == ["early", "late"]


# What the tokens are


@pytest.mark.parametrize(
    "header",
    [
        "X-Folder",
        "x-folder",
        "X-Gmail-Labels",
        "X-Keywords",
        "Keywords",
        "Folder",
        "X-Mozilla-Keys",
        "X-Mozilla-Status2",
        "X-UID",
        "X-Status",
        "Status",
        "X-IMAPbase",
        "Newsgroups",
    ],
)
def test_no_header_gives_the_folder_away(header):
    content = f"{header}: secret\n\thidden\nSubject: Lunch\n\nAt one\n"
    assert set(message_tokens(content.encode())) == {"lunch", "at", "one"}


def test_other_headers_are_read():
    content = b"Received: from relay\n\tby host\nTo: Ann <ann@x.org>\nX-Other: yes\n\nHi\n"
    expected = {"from", "relay", "by", "host", "ann", "x", "org", "yes", "hi"}
    assert set(message_tokens(content)) == expected


def test_parts_and_attachments():
    made = message("lunch")
    made.add_alternative(
        "<style>p {hue: 1}</style>Soup<br>of<p>day&nbsp;one</p><script>run()</script>",
        subtype="html",
    )
    made.add_attachment(b"\x89PNG pixels", maintype="image", subtype="png", filename="map.png")
    made.add_attachment("not read", filename="minutes.txt")
    tokens = message_tokens(bytes(made))
    assert {"soup", "of", "day", "one", "map", "png", "minutes", "txt"} <= tokens.keys()
    assert not {"hue", "style", "p", "br", "run", "pixels", "read"} & tokens.keys()


def test_forwarded_messages_are_read_with_their_headers():
    made, inner = message("outer"), message("inner")
    inner["From"] = "ann@example.org"
    inner.replace_header("Subject", "about lunch")
    made.add_attachment(inner)
    tokens = message_tokens(bytes(made))
    assert {"outer", "body", "inner", "about", "lunch", "ann"} <= tokens.keys()
    assert "secretfolder" not in tokens


@pytest.mark.parametrize(
    "kind, text",
    [
        ("text/calendar; method=REQUEST", "BEGIN:VCALENDAR\nSUMMARY:soup day\nEND:VCALENDAR\n"),
        ("text/markdown", "# soup day\n"),
        ("text/enriched", "<bold>so<italic>up</italic></bold> day"),
        ("application/xhtml+xml", "<p>soup<br/>day</p>"),
    ],
)
def test_a_text_of_another_type_is_read_where_there_is_no_other(kind, text):
    alone = f"A: \nContent-Type: {kind}\n\n{text}".encode()
    assert {"soup", "day"} <= message_tokens(alone).keys() or "italic" in text
    assert not {"br", "bold", "p"} & message_tokens(alone).keys()
    plain = "--x\nContent-Type: text/plain\n\nlunch\n"
    parts = f"{plain}--x\nContent-Type: {kind}\n\n{text}\n--x--\n"
    both = f"A: \nContent-Type: multipart/alternative; boundary=x\n\n{parts}".encode()
    assert "lunch" in message_tokens(both) and "day" not in message_tokens(both)


@pytest.mark.parametrize("declared", ["", "; boundary=y", '; boundary="'])
def test_parts_with_a_wrong_boundary_are_read(declared):
    parts = "--x\nContent-Type: text/html\n\n<br>soup\n--x\nContent-Type: a/b\n\nno\n--x--\n"
    tokens = message_tokens(f"A: \nContent-Type: multipart/mixed{declared}\n\n{parts}".encode())
    assert "soup" in tokens and not {"br", "no"} & tokens.keys()


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_a_message_may_be_in_utf16(tmp_path, encoding):
    content = f"Subject: Grüße\nDate: {JANUARY}\n\nsoup\n".encode(encoding)
    write(tmp_path, "2.eml", content)
    write(tmp_path, "1.eml", bytes(message("late", FEBRUARY)))
    rows = read(tmp_path)
    assert subjects(rows, ["grüsse", "late"]) == [("grüsse", "INBOX"), ("late", "INBOX")]
    assert {"soup", "12"} <= set(rows[0][1])


@pytest.mark.parametrize(
    "content, tokens",
    [
        (b"Subject: =?utf-8?b?TMO8bmNo?= =?iso-8859-1?q?at=20one?=\n\n", {"lünchat", "one"}),
        (b"Subject: =?nonsense?q?soup?=\n\n", {"soup"}),
        (b"Subject: =?utf-8?b?A?= soup\n\n", {"utf", "8", "b", "a", "soup"}),
        (b"Subject: caf\xe9 soup\n\n", {"café", "soup"}),
        (b"A: \nContent-Type: text/plain; charset=nonsense\n\nsoup \xff\n", {"soup", "ÿ"}),
        (b"A: \nContent-Type: text/plain; charset=hex\n\nsoup\n", {"soup"}),
        (b"A: \nContent-Transfer-Encoding: base64\n\nc291cA==\n", {"soup"}),
        (b"A: \nContent-Transfer-Encoding: base64\n\nc291cCBv\nbmN=l\n", {"soup", "onc"}),
        (b"A: \nContent-Transfer-Encoding: base64\n\nc291cA\nc\n", {"soup"}),
        (b"A: \nContent-Transfer-Encoding: quoted-printable\n\ns=6Fup =ZZ=\n", {"soup", "zz"}),
        (b"A: \nContent-Type: text/html\n\n<p>soup<![nonsense]>\n", {"soup"}),
        (b"A: \nContent-Type: multipart/mixed\n\nsoup\n", {"soup"}),
        (b"A: \nContent-Transfer-Encoding: base64 \n\nc291cA==\n", {"soup"}),
        (b'A: \nContent-Transfer-Encoding: "base64"\n\nc291cA==\n', {"soup"}),
        (b"A: \nContent-Transfer-Encoding: base64 (b)\n\nc291cA==\n", {"b", "soup"}),
        (b"A: \nContent-Transfer-Encoding: quoted-printable;\n\ns=6Fup\n", {"soup"}),
        (b"A: \nContent-Transfer-Encoding: base64\n\nc291\ncA==\nIG9u\nYw==\n", {"soup", "onc"}),
        (b"A: \nContent-Transfer-Encoding: base64\n\nc291cA==\nIG9uY\n", {"soup", "on"}),
        (
            b"A: \nContent-Type: text/html\n\n<p>so<b>u</b>p<td>one</td><td>two",
            {"soup", "one", "two"},
        ),
        (
            b"A: \nContent-Type: text/html\n\n<li>so<li>up<br>on<span x=y>c</span>e",
            {"so", "up", "once"},
        ),
        (
            b'A: \nContent-Type: text/plain; charset="\0"\n'
            b"Content-Transfer-Encoding: base64\n\nc291cA==\xff",
            {"soup"},
        ),
        (b"Subject : soup\nContent-Type : text/html\n\n<br>one", {"soup", "one"}),
        (
            b"soup of day\nSubject: one\nX-Folder: secret\n\ntwo",
            {"soup", "of", "day", "one", "two"},
        ),
        (b"Subject: one\nsoup\nX-Folder: secret\n\ntwo", {"soup", "one", "two"}),
        (b"Subject: one\nsoup\nmore", {"soup", "one", "more"}),
        (b"Subject: =?utf-8?q?so=75p_\n of?= x\n\n", {"soup", "of", "x"}),
        (b"Subject: =?utf-8?b?c291\n cA==?= x\n\n", {"soup", "x"}),
        (b"Subject: x =?utf-8?b?c291cCBvb\n\n", {"soup", "o", "x"}),
        (b"Subject: x =?utf-8?q?so=75p\n\n", {"soup", "x"}),
        (b'Content-Disposition: inline; n*0="a"; n*\n\nsoup\n', {"inline", "n", "0", "a", "soup"}),
    ],
)
def test_broken_messages_are_read_as_well_as_can_be(content, tokens):
    about_content = {"text", "plain", "html", "charset", "nonsense", "hex", "base64", "quoted"}
    found = set(message_tokens(content)) - {*about_content, "printable", "multipart", "mixed"}
    assert found == tokens


@pytest.mark.parametrize("content", [b"\x7fELF\0\n", b"no header here\n"])
def test_what_is_no_message_is_a_bad_row(tmp_path, content):
    write(tmp_path, "good", bytes(message("lunch", JANUARY)))
    path = write(tmp_path, "other.eml", content)
    with pytest.raises(KeslerError, match=f"message {path}: it begins with no header"):
        read(tmp_path)
    stream = open_stream(tmp_path, skip_bad=True)
    assert [block.labels for block in stream] == [["INBOX"]]
    assert stream.n_bad == 1


def test_a_bad_message_of_an_mbox_is_named_by_its_place(tmp_path):
    deep = "".join(f"Content-Type: multipart/mixed; boundary=b{i}\n\n--b{i}\n" for i in range(2000))
    first = "From me Mon Jan  1 00:00:00 2001\nDate: " + JANUARY + "\n\nhi\n\n"
    path = write(tmp_path, "a.mbox", first + "From me Mon Jan  1 00:00:00 2001\n" + deep)
    with pytest.raises(KeslerError, match=rf"a\.mbox at byte {len(first)}: its parts are nested"):
        read(path)
    with pytest.raises(BadRow, match="nested too deeply"):
        message_tokens(deep.encode())


def test_a_message_that_went_away_is_a_bad_row(tmp_path):
    make_tree(tmp_path)
    stream = open_stream(tmp_path, block_rows=1)
    next(stream)
    (tmp_path / "work" / "2.eml").unlink()
    with pytest.raises(KeslerError, match=r"2\.eml: it can't be opened \(No such file"):
        next(stream)


def test_a_header_of_a_part_that_is_read_as_text_may_have_any_letter():
    message = (
        b"Content-Type: multipart/mixed; boundary=\"xx\"; charset*=utf-8''%e2\n\n--xx\n"
        b"Content-Type: text/html\nContent-Transfer-Encoding:\xb9 quoted-printable\n\n"
        b"<p>caf=C3=A9\n--xx--\n"
    )
    assert "caf" in message_texts(message)[-1]
