"""Mail as programs keep it: folders, single messages and labels."""

import csv
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import warnings
import zipfile
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from pwd import getpwnam, getpwuid
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler import OnlineClassifier, OnlineMultilabelClassifier
from kesler.cli import main
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import open_stream
from kesler.readers.mail.mbox import starts
from kesler.readers.mail.outlook import ARCHIVES, OF_MESSAGE, as_sent
from kesler.readers.reader import BadRow
from outlook import (
    BODY,
    CODEPAGE,
    HEADERS,
    HTML,
    SENDER,
    SENDER_ADDRESS,
    SUBJECT,
    SUBMITTED,
    outlook_message,
)
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
    "KMail": {
        "Work/cur/1.host:2,S": bytes(message("a")),
        ".Work.directory/Team/new/2.host": bytes(message("b")),
        ".Work.directory/.Team.directory/Plans": mbox("c"),
        ".Work.directory/.Team.index": b"# KMail-Index-Version 1506",
    },
    "a Maildir within folders that hold none": {
        ".Archive/.2023/cur/1.host:2,S": bytes(message("a")),
        ".Archive/notes/a": b"no mail",
        ".notmuch/xapian/flintlock": b"no mail",
    },
    "MH": {
        "Team/1": bytes(message("a")),
        "Team/,2": bytes(message("b")),
        "Team/.mh_sequences": b"cur: 1",
        "Bills/7": bytes(message("c")),
        "context": b"Current-Folder: inbox",
    },
    "procmail's files of one message": {
        "Team/msg.xA": FROM_LINE + bytes(message("a")),
        "Bills/msg.b1": FROM_LINE + bytes(message("b")),
        "Bills/old/12": FROM_LINE + bytes(message("c")),
    },
    "mbox files of years": {
        "Team/2023": mbox("a", "b"),
        "Team/2024": mbox("c"),
        "Bills": mbox("d"),
        "Plans7": mbox("e"),
        "Plans7.msf": b"//",
    },
    "exports of Outlook": {
        "Team/a.eml": b"\xef\xbb\xbf" + bytes(message("a")),
        "Bills/b.eml": bytes(message("b")).replace(b"\n", b"\r\n"),
        "Plans/c.msg": outlook_message({SUBJECT: "c", BODY: "a plan"}),
    },
}
FOLDERS = {
    "Maildir with cur alone": {"Team", "Entwürfe", "Work/Q&A"},
    "Thunderbird": {"Team", "Entwürfe/Old"},
    "Apple Mail": {"Team", "Bills"},
    "KMail": {"Work", "Work/Team", "Work/Team/Plans"},
    "a Maildir within folders that hold none": {"Archive/2023"},
    "MH": {"Team", "Bills"},
    "procmail's files of one message": {"Team", "Bills", "Bills/old"},
    "mbox files of years": {"Team/2023", "Team/2024", "Bills", "Plans7"},
    "exports of Outlook": {"Team", "Bills", "Plans"},
}
NO_MAIL = {
    "Bills/cur/.gitkeep": b"",
    "Bills/new/.gitignore": b"*\n",
    "Bills/cur/README": b"Notes: see below\n",
    "Bills/cur/empty": b"",
    "Bills/cur/old/9": b"",
    "README.md": b"# My mail\n",
    "notes.txt": b"From here on: it is mine\n",
    "empty": b"",
    "abook.sqlite": b"SQLite format 3\0" + bytes(99),
    "prefs.js": b'user_pref("mail.to:", "x");\n',
    "MailData/Envelope Index": b"SQLite format 3\0\r",
    "Mail/User Settings/Filters.xml": b"<?xml version='1.0'?>\n<feed>\n",
    "Mail/User Settings/Signature.json": b'{"From": "ann"}\n',
    "Team/plan.pdf": b"%PDF-1.4\nSubject: x\n",
    "Team/lunch.ics": b"BEGIN:VCALENDAR\nVERSION:2.0\nSTATUS:CONFIRMED\n",
    "Team/ann.vcf": b"BEGIN:VCARD\nVERSION:3.0\nX-A:b\n",
    "Team/a.yml": b"version: 1\nname: b\n",
}
IS_HIDDEN = {"Bills/cur/.gitkeep", "Bills/new/.gitignore"}


@pytest.mark.parametrize("store", STORES)
def test_folders_of_programs_are_classes(tmp_path, store):
    for name, content in STORES[store].items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "(?s).*left out", ReadingWarning)
        rows = read(tmp_path)
    assert {label for label, _ in rows} == FOLDERS[store]
    assert len(rows) == len(FOLDERS[store]) + (store == "mbox files of years")
    assert not any("plist" in tokens for _, tokens in rows)


@pytest.mark.parametrize("name", NO_MAIL)
def test_what_is_no_mail_is_left_out_and_named(tmp_path, name, recwarn):
    good = {"Bills/cur/1.host:2,S": bytes(message("a")), "Team/2.eml": bytes(message("b"))}
    for each, content in (good | {name: NO_MAIL[name]}).items():
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path, each, content)
    assert sorted(label for label, _ in read(tmp_path)) == ["Bills", "Team"]
    said = [str(each.message) for each in recwarn.list]
    if name in IS_HIDDEN:
        assert not said
        return
    left_out = "Bills/cur/old" if name == "Bills/cur/old/9" else name
    assert said == [f"{tmp_path}: what is no mail is left out (1): {left_out}"]


def test_much_that_is_no_mail_is_counted(tmp_path):
    write(tmp_path, "a.eml", bytes(message("a")))
    for i in range(1, 10):
        write(tmp_path, f"{i}.json", b"{}")
    with pytest.warns(ReadingWarning, match=r"\(9\): 1.json, 2.json, .*, 5.json and 4 more$"):
        assert len(read(tmp_path)) == 1


def test_a_directory_of_one_folder_of_apple_is_that_folder(tmp_path):
    for name, content in STORES["Apple Mail"].items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path, name, content)
    assert [label for label, _ in read(tmp_path / "Team.mbox")] == ["Team"]
    assert [label for label, _ in read(tmp_path / "Bills.mbox")] == ["Bills"]


@pytest.mark.parametrize("options", [{"format": "mail"}, {}])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", FROM_LINE])
def test_one_message_comes_from_standard_input_or_a_file(tmp_path, monkeypatch, before, options):
    content = before + bytes(message("lunch"))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    rows = read("-", require_labels=False, **options)
    assert [label for label, _ in rows] == [None] and "lunch" in rows[0][1]
    assert read(write(tmp_path, "one.eml", content), require_labels=False) == rows


def test_one_message_is_classified_as_a_filter_of_mail_asks(tmp_path, monkeypatch, capsys):
    words = {"Bills": "invoice due", "Team": "lunch agenda"}
    for folder, text in words.items():
        (tmp_path / "mail" / folder).mkdir(parents=True)
        for i in range(9):
            write(tmp_path / "mail" / folder, f"{i}.eml", bytes(message(f"{text} {i}", JANUARY)))
    model = tmp_path / "a.kesler"
    assert main(["learn", str(model), str(tmp_path / "mail")]) == 0
    for folder, text in words.items():
        content = bytes(message(f"the {text}", JANUARY)).replace(b"\n", b"\r\n")
        for source in (write(tmp_path, "one.eml", content), "-"):
            for options in ([], ["--format", "mail"]):
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
                capsys.readouterr()
                assert main(["predict", str(model), str(source), *options]) == 0
                assert capsys.readouterr() == (f"{folder}\n", "")


DRAFT = {
    SUBJECT: "Rechnung für März",
    BODY: "Bitte zahlen.\r\n",
    SENDER: "Ann Lee",
    SENDER_ADDRESS: "ann@example.org",
    SUBMITTED: datetime(2024, 3, 1, 10, 30, tzinfo=UTC),
}
SENT = "From: Ann <ann@example.org>\r\nSubject: a\r\n b\r\nDate: Fri, 1 Mar 2024 10:30:00 +0000\r\n"


def test_a_message_of_outlook_is_read_as_the_one_that_was_sent(tmp_path):
    draft = outlook_message(DRAFT, [("Bob", "bob@example.org")], ["Plan Größe.pdf"])
    words = read(write(tmp_path, "a.msg", draft), require_labels=False)[0][1]
    expected = {"ann", "lee", "bob", "rechnung", "für", "märz", "bitte", "zahlen", "plan", "grösse"}
    assert expected <= set(words) and words == read(tmp_path / "a.msg", require_labels=False)[0][1]
    page = "<p>Grüße</p><style>p {color: red}</style>"
    codes = ((65001, "utf-8"), (1252, "cp1252"), (65001, "latin-1"))
    for code, encoding in codes:
        sent = {HEADERS: SENT, HTML: page.encode(encoding), CODEPAGE: code}
        words = read(write(tmp_path, "b.msg", outlook_message(sent)), require_labels=False)[0][1]
        assert {"grüsse", "ann", "a", "b"} <= set(words) and "color" not in words, encoding


def test_messages_of_outlook_are_in_the_order_of_their_dates(tmp_path):
    of_days = {"late": 9, "early": 1, "middle": 5}
    for word, day in of_days.items():
        values = DRAFT | {BODY: word, SUBMITTED: datetime(2024, 3, day, tzinfo=UTC)}
        sent = {HEADERS: SENT.replace("1 Mar", f"{day} Mar"), BODY: word}
        write(tmp_path, f"{word}.msg", outlook_message(values if day > 1 else sent))
    found = [set(of_days) & set(words) for _, words in read(tmp_path)]
    assert found == [{"early"}, {"middle"}, {"late"}]


def test_files_of_outlook_that_cannot_be_read_are_refused_with_what_to_do(tmp_path, monkeypatch):
    whole = outlook_message(DRAFT)
    for broken in (whole[:700], whole[:512] + bytes(3000), OF_MESSAGE + bytes(2000)):
        path = write(tmp_path, "plan.msg", broken)
        with pytest.raises(KeslerError, match=r"plan\.msg: it cannot be read as a message of"):
            read(path, require_labels=False)
    ways = ("an archive of Outlook: exp", "a folder of Outlook Ex")
    for begin, what in zip(ARCHIVES, ways, strict=True):
        archive = tmp_path / "old" / "plan.pst"
        archive.parent.mkdir(exist_ok=True)
        archive.write_bytes(begin + bytes(2000))
        for each in (archive, archive.parent):
            with pytest.raises(KeslerError, match=rf"plan\.pst: it is {what}"):
                read(each, require_labels=False, format="mail")
    path = write(tmp_path, "plan.msg", broken)
    monkeypatch.setattr("kesler.readers.mail.outlook.find_spec", lambda name: None)
    with pytest.raises(KeslerError, match=r"plan\.msg: .*'kesler\[outlook\]', or save it as .eml"):
        read(path, require_labels=False)


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_altered_messages_of_outlook_are_read_or_refused(data):
    content = bytearray(outlook_message(DRAFT, [("Bob", "bob@example.org")], ["a.pdf"]))
    for _ in range(data.draw(st.integers(1, 6))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        assert as_sent(bytes(content)).isascii()
    except BadRow as fault:
        assert "cannot be read as a message of Outlook" in str(fault)


@settings(max_examples=200, deadline=None)
@given(content=st.binary() | st.lists(st.sampled_from(PIECES)).map(b"".join))
def test_any_bytes_are_messages_without_loss(content):
    found = [*starts(content)]
    before = content[: found[0]].removeprefix(b"\xef\xbb\xbf")
    assert not before.strip() and found == sorted(set(found)) and found[-1] <= len(content)


def test_a_compressed_mbox_is_read(tmp_path):
    path = write(tmp_path, "team.mbox.gz", gzip.compress(mbox("one", "two")))
    assert [label for label, _ in read(path)] == ["team", "team"]


@pytest.mark.parametrize("packing", ["gz", "bz2", "xz"])
def test_an_archive_of_tar_is_refused_with_what_to_do(tmp_path, packing):
    write(tmp_path, "a.eml", bytes(message("a")))
    packed = tmp_path / f"mail.tar.{packing}"
    with tarfile.open(packed, f"w:{packing}") as archive:
        archive.add(tmp_path / "a.eml", "a.eml")
    with pytest.raises(KeslerError, match=r"is an archive of tar: unpack it with tar -xf"):
        read(packed)


def test_an_archive_of_outlook_for_mac_is_refused_with_what_to_do(tmp_path):
    with zipfile.ZipFile(tmp_path / "mail.olm", "w") as archive:
        archive.writestr("Accounts/a/com.microsoft.__Messages/Inbox/message_1.xml", "<emails/>")
    with pytest.raises(KeslerError, match=r"mail\.olm is an archive of Outlook for Mac: export"):
        read(tmp_path / "mail.olm")


def test_a_message_by_itself_is_refused_with_what_to_do(tmp_path, capsys):
    path = write(tmp_path, "one.eml", bytes(message("a")))
    assert main(["learn", str(tmp_path / "a.kesler"), str(path)]) == 2
    said = capsys.readouterr().err
    assert "in no folder, whose name is its class: put it into a directory" in said
    assert "--label" not in said


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


OF_SYSTEM = [  # as they are in the languages of their owners
    "Inbox,Opened,Category Personal,IMAP_$NotJunk",
    'Posteingang,Geöffnet,"Kategorie: ""Soziale Medien"""',
    "Boîte de réception,Non lus,Catégorie Promotions",
    "Archivés,Envoyé,Favoris",
    "Recibidos,No leídos,Importantes",
    "Posta in arrivo,Da leggere",
    "Caixa de entrada,Não lidas",
    "Postvak IN,Ongelezen",
    "Odebrane,Nieprzeczytane",
    "Входящие,Непрочитанные",
    "受信トレイ,未読",
    "收件箱,未读,打开",
    "Caixa de entrada,Importante,Categoria: Atualizações",
    "Входящие,Важные,Архивировано",
    "Inbox,Snoozed,Scheduled",
    "Posteingang,Zurückgestellt,Als gelesen markiert",
    "받은편지함,열어봄,중요편지함",
    "收件匣,已開啟,類別：社交網路",
    "Inkorgen,Öppnat,Kategori: Kampanjer",
    "Indbakke,Åbnet,Vigtigt",
    "Innboks,Åpnet,Ulest",
    "Postilaatikko,Avattu,Tärkeä",
    "Archivováno,Kategorie: Sociální sítě,Nepřečtené",
    "Beérkező levelek,Megnyitva,Fontos",
    "Gelen Kutusu,Açıldı,Önemli",
    "Вхідні,Непрочитані,Архівовано",
    "البريد الوارد,تم الفتح,غير مقروء",
    "דואר נכנס,נפתח,חשוב",
    "Mesaje primite,Deschise,Necitite",
    "Hộp thư đến,Đã mở,Quan trọng",
    "Εισερχόμενα,Μη αναγνωσμένα",
]


@pytest.mark.parametrize("of_system", OF_SYSTEM)
def test_labels_of_the_system_are_known_in_the_language_of_the_owner(tmp_path, of_system):
    path = write(tmp_path, "all.mbox", labelled((1, f"{of_system},Bücher".encode())))
    assert [label for label, _ in read(path)] == ["Bücher"]


def test_a_label_of_the_user_may_be_one_of_the_system_in_another_language(tmp_path, caplog):
    of_user = (b"Inbox,Concept", b"Inbox,Opened,Markiert", b"Concept,Unread")
    path = write(tmp_path, "all.mbox", labelled(*enumerate(of_user)))
    assert [label for label, _ in read(path)] == ["Concept", "Markiert", "Concept"]
    assert "no classes: Inbox (2), Opened (1), Unread (1)" in caplog.messages[-1]


def test_a_label_of_nearly_all_messages_is_no_class_where_others_are(tmp_path, caplog):
    kinds = ["Llibres", "Cotxe", "Casa"]
    labels = [f"Safata,{kinds[i % 3]}".encode() for i in range(18)] + [b"Safata", b"Casa,Cotxe"]
    path = write(tmp_path, "all.mbox", labelled(*enumerate(labels)))
    counts = Counter(label for label, _ in read(path))
    assert counts == {"Llibres": 6, "Cotxe": 6, "Casa": 7, "Safata": 1}
    assert "Safata is the class only without another, as 18 of these have it" in caplog.messages[-1]
    few = [b"Casa,Cotxe", b"Cotxe,Casa", b"Llibres,Casa", b"Llibres,Cotxe"]
    path = write(tmp_path, "few.mbox", labelled(*enumerate(few)))
    assert [label for label, _ in read(path)] == ["Casa", "Cotxe", "Llibres", "Llibres"]
    assert "only without another" not in caplog.messages[-1]


DELETED = {
    "Thunderbird": ("Team", mbox("a", headers=b"X-Mozilla-Status: 0009\n"), True),
    "Thunderbird, forwarded": ("Team", mbox("a", headers=b"X-Mozilla-Status: 1008\n"), True),
    "Thunderbird, read": ("Team", mbox("a", headers=b"X-Mozilla-Status: 0001\n"), False),
    "Thunderbird, other flags": ("Team", mbox("a", headers=b"X-Mozilla-Status: 8017\n"), False),
    "IMAP server": ("Team", mbox("a", headers=b"Status: RO\nX-Status: AD\n"), True),
    "IMAP server, answered": ("Team", mbox("a", headers=b"Status: RO\nX-Status: A\n"), False),
    "Maildir": ("Team/cur/1.host:2,ST", bytes(message("a", JANUARY)), True),
    "Maildir, draft": ("Team/cur/1.host:2,DS", bytes(message("a", JANUARY)), False),
}


@pytest.mark.parametrize("name", DELETED)
def test_messages_that_are_marked_as_deleted_are_not_learnt(tmp_path, name, recwarn):
    path, content, is_deleted = DELETED[name]
    for each, written in ((path, content), ("Bills", mbox("b"))):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        write(tmp_path, each, written)
    assert len(read(tmp_path)) == 2 - is_deleted
    said = [str(each.message) for each in recwarn.list]
    assert len(said) == is_deleted and all("1 of 2 messages are left out" in each for each in said)
    assert len(read(tmp_path, require_labels=False)) == 2 and len(recwarn.list) == is_deleted


def test_labels_of_gmail_are_sets(tmp_path, caplog):
    content = labelled((1, b"Inbox,Bills,House"), (2, b"Unread"), (3, b"Bills"))
    (tmp_path / "Team").mkdir()
    for path in (write(tmp_path, "all.mbox", content), tmp_path):
        (block,) = open_stream(path, label_sets=True)
        assert block.labels == [("Bills", "House"), (), ("Bills",)]
        assert "the labels of a message are those of Gmail" in caplog.messages[-1]
        assert "several" not in caplog.messages[-1]
        model = OnlineMultilabelClassifier().fit(block.rows, block.labels)
        assert model.classes_.tolist() == ["Bills", "House"]
    write(tmp_path, "Team/a.eml", bytes(message("a", JANUARY)))
    (block,) = open_stream(tmp_path, label_sets=True)
    assert ("Team",) in block.labels and len(block) == 4


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


LAYOUTS = {  # the location of mail, and the folder of the inbox
    "Maildir++": ("maildir:{}/mail", "INBOX"),
    "Maildir of directories": ("maildir:{}/mail:LAYOUT=fs", "INBOX"),
    "mbox": ("mbox:{}/mail:INBOX={}/mail/inbox", "inbox"),
}
SETTINGS = """
base_dir = {0}/run
state_dir = {0}
log_path = /dev/stderr
ssl = no
protocols =
mail_location = {1}
mail_uid = {2}
mail_gid = {3}
first_valid_uid = 1
first_valid_gid = 1
"""


@program("doveadm")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dovecot_keeps_folders(layout):
    with TemporaryDirectory() as folder:  # that others than root may enter, which Dovecot requires
        owner = getpwnam("nobody") if os.getuid() == 0 else getpwuid(os.getuid())
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        location, inbox = LAYOUTS[layout]
        given = folder, location.format(folder, folder), owner.pw_uid, owner.pw_gid
        settings = write(Path(folder), "dovecot.conf", SETTINGS.format(*given))
        settings.chmod(0o644)

        def doveadm(*arguments, sent=b""):
            subprocess.run(
                ["doveadm", "-c", str(settings), *arguments],
                input=sent,
                env={"HOME": folder, "USER": owner.pw_name, "PATH": os.environ["PATH"]},
                user=owner.pw_uid if os.getuid() == 0 else None,
                group=owner.pw_gid if os.getuid() == 0 else None,
                timeout=60,
                check=True,
            )

        nested = "Work.Old" if layout == "Maildir++" else "Work/Old"
        for name in ("Entwürfe", nested):
            doveadm("mailbox", "create", name)
        for name in ("INBOX", "Entwürfe", nested):
            sent = bytes(message(name, JANUARY)).replace(b"\n", b"\r\n")
            doveadm("save", "-m", name, sent=sent + b"\r\nFrom here on\r\n")
        rows = read(Path(folder, "mail"))
    words = {inbox: "inbox", "Entwürfe": "entwürfe", "Work/Old": "old"}
    assert sorted(words) == sorted(label for label, _ in rows)
    assert all({words[label], "here"} <= set(tokens) for label, tokens in rows)


def test_a_header_identifies_messages(tmp_path):
    ids = ["<1@a.example>", "=?utf-8?q?Gr=C3=BC=C3=9Fe?=", None]
    for i, each in enumerate(ids):
        headers = b"" if each is None else f"Message-Id: {each}\n".encode()
        write(tmp_path, f"{i}.eml", headers + bytes(message(f"s{i}", JANUARY)))
    (block,) = open_stream(tmp_path, id="Message-ID", origins=True, require_labels=False)
    assert [origin.id for origin in block.origins] == ["<1@a.example>", "Grüße", None]
    model = OnlineClassifier().fit([{"s0": 1.0}, {"s1": 1.0}], ["a", "b"])
    of_model, out = tmp_path.parent / "a.kesler", tmp_path.parent / "answers.csv"
    model.save(of_model)
    given = ["--id", "Message-ID", "--output", str(out)]
    assert main(["predict", str(of_model), str(tmp_path), *given]) == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text("utf-8"))))
    assert [row["id"] for row in rows] == ["<1@a.example>", "Grüße", ""]
    assert [row["label"] for row in rows[:2]] == ["a", "b"]
    with pytest.raises(KeslerError, match=r"no fields for label=..., text=... and id=..."):
        open_stream(tmp_path, id="Message-ID", label="x", format="mail")
