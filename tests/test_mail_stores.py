"""Mail as programs keep it: folders, single messages and labels."""

import gzip
import io
import shutil
import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler.errors import KeslerError
from kesler.readers import open_stream
from kesler.readers.mail.mbox import starts
from test_readers import read, write
from test_readers_mail import JANUARY, message

FROM_LINE = b"From ann@example.org Mon Jan  1 10:00:00 2024\n"


def mbox(*subjects, headers=b""):
    return b"".join(
        FROM_LINE + headers + bytes(message(each, JANUARY)) + b"\n" for each in subjects
    )


PIECES = [
    FROM_LINE,
    b"\n",
    b"\r\n",
    b"To: me\n",
    b"From me\n",
    b"Content-Length: 9\n",
    b">",
    b"\xef",
]
STORES = {
    "Maildir with cur alone": {
        ".Team/cur/1.host:2,S": bytes(message("a")),
        ".Entw&APw-rfe/cur/2.host:2,": bytes(message("b")),
        ".Work.Q&-A/cur/3.host:2,": bytes(message("c")),
    },
    "Thunderbird": {
        "Team": mbox("a"),
        "Team.msf": b"// <!-- <mdb:mork:z -->",
        "Entwürfe.sbd/Old": mbox("b"),
        "Entwürfe": b"",
        "Entwürfe.msf": b"//",
        "msgFilterRules.dat": b'version="9"\n',
    },
    "Apple Mail": {
        "Team.mbox/mbox": mbox("a"),
        "Team.mbox/table_of_contents": b"\0\1",
        "Bills.mbox/9F-1/Data/Messages/7.emlx": b"%d\n%s<?xml?>\n<plist/>"
        % (len(bytes(message("b"))), bytes(message("b"))),
        "Bills.mbox/9F-1/Data/Attachments/7/1/plan.txt": b"no mail",
    },
    "exports of Outlook": {
        "Team/a.eml": b"\xef\xbb\xbf" + bytes(message("a")),
        "Bills/b.eml": bytes(message("b")).replace(b"\n", b"\r\n"),
    },
}
FOLDERS = {
    "Maildir with cur alone": {"Team", "Entwürfe", "Work/Q&A"},
    "Thunderbird": {"Team", "Entwürfe/Old"},
    "Apple Mail": {"Team", "Bills"},
    "exports of Outlook": {"Team", "Bills"},
}


@pytest.mark.parametrize("store", STORES)
def test_folders_of_programs_are_classes(tmp_path, store):
    for name, content in STORES[store].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    rows = read(tmp_path)
    assert Counter(label for label, _ in rows) == Counter(FOLDERS[store])
    assert not any("plist" in tokens for _, tokens in rows)


@pytest.mark.parametrize("options", [{"format": "mail"}, {}])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", FROM_LINE])
def test_one_message_comes_from_standard_input_or_a_file(tmp_path, monkeypatch, before, options):
    content = before + bytes(message("lunch"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    rows = read("-", require_labels=False, **options)
    assert [label for label, _ in rows] == [None] and "lunch" in rows[0][1]
    assert read(write(tmp_path, "one.eml", content), require_labels=False) == rows


@pytest.mark.parametrize("begins", [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"!BDN"])
def test_a_file_of_outlook_is_refused_with_what_to_do(tmp_path, begins):
    path = write(tmp_path, "plan.msg", begins + bytes(2000))
    with pytest.raises(KeslerError, match=r"plan\.msg: it is in Outlook's own format: save it as"):
        read(path, require_labels=False)


@settings(max_examples=200, deadline=None)
@given(content=st.binary() | st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_any_bytes_are_messages_without_loss(content):
    found = [*starts(content)]
    before = content[: found[0]].removeprefix(b"\xef\xbb\xbf")
    assert not before.strip() and found == sorted(set(found)) and found[-1] <= len(content)


def test_a_compressed_mbox_is_read(tmp_path):
    path = write(tmp_path, "team.mbox.gz", gzip.compress(mbox("one", "two")))
    assert [label for label, _ in read(path)] == ["team", "team"]


def labelled(*labels):
    return b"".join(mbox(f"s{i}", headers=b"X-Gmail-Labels: %s\n" % each) for i, each in labels)


def test_labels_of_gmail_are_classes(tmp_path, caplog):
    content = labelled(
        (1, b"Inbox,Bills"),
        (2, b"Inbox,Unread"),
        (3, b"=?UTF-8?Q?Opened,B=C3=BCcher,Bills?="),
        (4, b'"Bills, paid",\n Archived'),
    )
    path = write(tmp_path, "all.mbox", content)
    assert [label for label, _ in read(path)] == ["Bills", "Bücher", "Bills, paid"]
    (line,) = caplog.messages
    assert "Inbox (2)" in line and "Unread (1)" in line
    assert "1 messages without another label are left out; 1 have several" in line
    (block,) = open_stream(path, require_labels=False)
    assert block.labels == ["Bills", None, "Bücher", "Bills, paid"]


def program(name):
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not installed")


@program("formail")
def test_formail_writes_an_mbox(tmp_path):
    raw = b"Subject: word1\n\nFrom here on\nFrom ann Mon Jan  1 10:00:00 2024\nSubject: no\n"
    made = b"".join(
        subprocess.run(["formail"], input=raw.replace(b"word1", each), capture_output=True).stdout
        for each in (b"word1", b"word2")
    )
    rows = read(write(tmp_path, "a.mbox", made))
    assert [next(t for t in tokens if t.startswith("word")) for _, tokens in rows] == [
        "word1",
        "word2",
    ]


@program("procmail")
@pytest.mark.parametrize("target", ["team", "team/"])
def test_procmail_delivers_to_an_mbox_or_a_maildir(tmp_path, target):
    box = tmp_path / "mail"
    box.mkdir()
    rules = write(tmp_path, "rules", f"MAILDIR={box}\nDEFAULT={box}/{target}\n")
    rules.chmod(0o600)
    for each in ("one", "two"):
        sent = bytes(message(each, JANUARY))
        command = ["procmail", "-f", "ann@example.org", "-m", str(rules)]
        subprocess.run(command, input=sent, check=True)
    assert [label for label, _ in read(box)] == ["team", "team"]


@program("mutt")
@pytest.mark.parametrize("kind", ["mbox", "Maildir"])
def test_mutt_keeps_copies_in_an_mbox_or_a_maildir(tmp_path, kind):
    (tmp_path / "out").mkdir()
    copies = f"set copy=yes record={tmp_path}/out/Sent mbox_type={kind} sendmail=/bin/true"
    for each in ("one", "Größe"):
        subprocess.run(
            ["mutt", "-n", "-F", "/dev/null", "-e", copies, "-s", each, "ann@example.org"],
            input=b"From here on\n\nFrom ann Mon Jan  1 10:00:00 2024\nTo: me\n",
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
            timeout=20,
            check=True,
        )
    rows = read(tmp_path / "out")
    assert [label for label, _ in rows] == ["Sent", "Sent"]
    assert {"one", "grösse"} <= rows[0][1].keys() | rows[1][1].keys()
