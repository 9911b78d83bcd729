"""A Maildir as a mailbox; the mailboxes of the standard library are the mail program."""

import gzip
import mailbox as programs
import os
import random
from itertools import count

import pytest

from commands import kesler, refused
from kesler import KeslerError
from kesler.durable import Journal
from kesler.mail import maildir
from kesler.mail.identities import identity_of
from kesler.mail.maildir import Maildir
from kesler.mail.server import RefusedError, ServerError
from kesler.mail.settings import MailSettings, read_settings
from kesler.mail.sorter import Sorter
from mailserver import message

WORDS = {"Bills": "invoice payment due account euro", "Team": "lunch meeting agenda minutes room"}


@pytest.fixture
def box(tmp_path):
    """A Maildir with two folders, as the standard library makes it."""
    found = programs.Maildir(tmp_path / "Maildir")
    for name in WORDS:
        found.add_folder(name)
    return found


def put(folder, number, words="lunch", flags=""):
    made = programs.MaildirMessage(message(number, words))
    made.set_subdir("cur" if flags else "new")
    made.set_flags(flags)
    folder.add(made)
    return f"<{number}@example.org>"


def number_of(store, folder, identity):
    store.open(folder)
    found = store.identities(store.open(folder).numbers)
    return next(number for number, each in found.items() if each == identity)


def test_messages_are_those_that_a_mail_program_sees(box):
    rng = random.Random(0)
    for number in range(60):
        folder = rng.choice([box, *(box.get_folder(name) for name in WORDS)])
        put(folder, number, flags=rng.choice(["", "S", "RS", "FT", "T"]))
    store = Maildir(box._path)
    assert [each.name for each in store.folders()] == ["INBOX", "Bills", "Team"]
    for name in ("INBOX", *WORDS):
        own = box if name == "INBOX" else box.get_folder(name)
        kept = [each for each in own if "T" not in each.get_flags()]
        opened = store.open(name)
        assert store.status(name)[:3] == (opened.validity, 0, len(kept))
        found = store.identities(opened.numbers)
        assert sorted(found.values()) == sorted(each["Message-ID"] for each in kept)
        bodies = dict(store.messages(opened.numbers))
        assert {n: identity_of(body) for n, body in bodies.items()} == found


@pytest.mark.parametrize("flags", ["", "S", "FRS"])
def test_a_move_keeps_the_content_the_flags_and_the_number(box, flags):
    one = put(box, 1, flags=flags)
    (before,) = box
    store = Maildir(box._path)
    number = number_of(store, "INBOX", one)
    assert not store.move("INBOX", number, "<2@example.org>", "Bills")
    assert store.move("INBOX", number, one, "Bills")
    assert not store.move("INBOX", number, one, "Bills") and len(box) == 0
    (after,) = box.get_folder("Bills")
    assert bytes(after) == bytes(before)
    assert (after.get_flags(), after.get_subdir()) == (before.get_flags(), before.get_subdir())
    assert store.open("Bills").numbers == [number]


def test_no_message_is_overwritten(box):
    """A copy keeps the name of its file, as `cp` does."""
    one = put(box, 1, flags="S")
    store = Maildir(box._path)
    number = number_of(store, "INBOX", one)
    path = store._files[number]
    for name, flags in (("Bills", "S"), ("Team", "")):
        copy = path.parents[1] / f".{name}" / "cur" / f"{path.name.partition(':')[0]}:2,{flags}"
        copy.write_bytes(message(2, name))
    for target in ("Bills", "Team"):
        assert store.move("INBOX", number_of(store, "INBOX", one), one, target)
        found = store.identities(store.open(target).numbers)
        assert sorted(found.values()) == [one, "<2@example.org>"]
        assert store.move(target, number_of(store, target, one), one, "INBOX")


def test_a_message_whose_flags_change_meanwhile_is_found(box):
    one = put(box, 1)
    store = Maildir(box._path)
    (number,) = store.open("INBOX").numbers
    path = store._files[number]
    path.rename(path.parents[1] / "cur" / f"{path.name}:2,S")
    assert store.identities([number]) == {number: one}
    assert [n for n, _ in store.messages([number])] == [number]
    assert store.move("INBOX", number, one, "Team")
    store.open("INBOX")
    assert store.identities([number]) == {} and not [*store.messages([number])]


def test_letters_of_keywords_mean_the_same_after_a_move(box, tmp_path):
    root = tmp_path / "Maildir"
    (root / "dovecot-keywords").write_text("0 later\n1 client\n")
    (root / ".Bills" / "dovecot-keywords").write_text("0 client\n")
    (root / "cur" / "1.a:2,FSb").write_bytes(message(1, "known"))
    (root / "cur" / "2.a:2,Sab").write_bytes(message(2, "unknown"))
    store = Maildir(str(root))
    assert store.move(
        "INBOX", number_of(store, "INBOX", "<1@example.org>"), "<1@example.org>", "Bills"
    )
    assert os.listdir(root / ".Bills" / "cur") == ["1.a:2,FSa"]
    number = number_of(store, "INBOX", "<2@example.org>")
    with pytest.raises(RefusedError, match="keywords that Bills does not know"):
        store.move("INBOX", number, "<2@example.org>", "Bills")
    assert os.listdir(root / "cur") == ["2.a:2,Sab"]
    with pytest.raises(KeslerError, match="choose the action nothing or move"):
        store.mark("INBOX", number, "<2@example.org>", "kesler:Bills")


def test_what_is_no_message_is_left_alone(box, tmp_path):
    root = tmp_path / "Maildir"
    (root / "tmp" / "5.a").write_bytes(message(5, "on its way"))
    (root / "cur" / ".hidden").write_bytes(b"x")
    (root / "cur" / "directory").mkdir()
    (root / "cur" / "link").symlink_to(root / "tmp" / "5.a")
    assert Maildir(str(root)).open("INBOX").numbers == []


def test_compressed_messages_are_refused_with_a_word(box, tmp_path, caplog):
    put(box.get_folder("Team"), 1)
    coded = tmp_path / "Maildir" / ".Bills" / "cur" / "1.a:2,S"
    coded.write_bytes(gzip.compress(message(2, "invoice")))
    settings = MailSettings({"maildir": box._path})
    with Journal(tmp_path / "mail.db") as journal:
        found = [*Sorter(journal, settings).look(Maildir(box._path))]
    assert [each.folder for each in found] == ["Team"]
    assert "a folder cannot be read: a Maildir holds compressed" in caplog.text


def test_directories_within_others_are_folders(tmp_path):
    for name in ("Inbox", "Work/Reports", "Entw&APw-rfe", "..DOVECOT-TRASHED"):
        for part in ("cur", "new", "tmp"):
            (tmp_path / name / part).mkdir(parents=True)
    (tmp_path / "Work" / "notes.txt").write_text("no mail")
    store = Maildir(str(tmp_path))
    assert [each.name for each in store.folders()] == ["Entwürfe", "Inbox", "Work/Reports"]
    assert store.exists("Work/Reports") and not store.exists("Work")


def test_names_that_cannot_be_told_apart_are_left_out_with_a_word(box, tmp_path, caplog):
    for name in (b".Te\xffxt", b".a\nb", b"Bills"):
        for part in (b"cur", b"new"):
            os.makedirs(os.path.join(os.fsencode(tmp_path), b"Maildir", name, part))
    store = Maildir(box._path)
    assert [each.name for each in store.folders()][:2] == ["INBOX", "Bills"]
    assert "2 folders are left out" in caplog.text and caplog.text.count("left out") == 1


def test_a_folder_keeps_its_number_when_it_is_renamed(box, tmp_path):
    store = Maildir(box._path)
    validity = store.status("Bills").validity
    (tmp_path / "Maildir" / ".Bills").rename(tmp_path / "Maildir" / ".Invoices")
    store.folders()
    assert store.status("Invoices").validity == validity != store.status("Team").validity
    with pytest.raises(RefusedError, match="no folder Bills"):
        store.open("Bills")


def test_a_change_within_one_tick_of_the_clock_is_noticed(box, tmp_path, monkeypatch):
    """Two changes may have the same time; what was read between them is read again."""
    put(box, 1)
    store = Maildir(box._path)
    new = tmp_path / "Maildir" / "new"
    ticks = count(maildir.time.time_ns())  # of a clock that does not wait for this test
    monkeypatch.setattr(maildir.time, "time_ns", lambda: next(ticks))
    before, times = store.status("INBOX"), new.stat()
    put(box, 2)
    os.utime(new, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert store.status("INBOX") != before
    monkeypatch.setattr(maildir, "QUIET_NS", -(10**12))  # a long time later
    assert store.status("INBOX") == store.status("INBOX")


def test_a_wait_ends_with_a_change(box, monkeypatch):
    store, naps = Maildir(box._path), []

    def sleep(seconds):
        naps.append(seconds)
        if len(naps) == 2:
            put(box.get_folder("Team"), 7)

    monkeypatch.setattr(maildir.time, "sleep", sleep)
    assert store.wait(60) and len(naps) == 2
    monkeypatch.setattr(maildir.time, "sleep", lambda _: None)
    assert not store.wait(0.0)


def test_a_wait_also_ends_with_mail_in_a_folder_that_is_new(box):
    store = Maildir(box._path)
    box.add_folder("Fresh")
    assert store.wait(0.0) and not store.wait(0.0)
    put(box.get_folder("Fresh"), 7)
    assert store.wait(0.0)


@pytest.mark.parametrize("part", ["cur", "new"])
def test_links_are_not_followed(box, tmp_path, part):
    root, outside = tmp_path / "Maildir", tmp_path / "outside"
    outside.mkdir()
    (root / ".Link").mkdir()
    for each in {"cur", "new"} - {part}:
        (root / ".Link" / each).mkdir()
    (root / ".Link" / part).symlink_to(outside)
    identity = put(box, 5, flags="S")
    (name,) = os.listdir(root / "cur")
    taken = root / ".Team" / "cur" / name
    taken.symlink_to(outside / "nothing")
    store = Maildir(box._path)
    assert "Link" not in [each.name for each in store.folders()]
    assert store.move("INBOX", number_of(store, "INBOX", identity), identity, "Team")
    assert taken.is_symlink() and os.listdir(outside) == []


def test_a_directory_that_is_no_maildir_is_refused(tmp_path):
    with pytest.raises(ServerError, match="holds no folder"):
        Maildir(str(tmp_path))
    with pytest.raises(ServerError, match="cannot be read"):
        Maildir(str(tmp_path / "none"))


def test_a_maildir_that_is_not_mounted_is_not_empty(box, tmp_path):
    settings = MailSettings({"maildir": box._path, "deleted": "forget"})
    with Journal(tmp_path / "mail.db") as journal:
        sorter, store = Sorter(journal, settings), Maildir(box._path)
        put(box.get_folder("Bills"), 1)
        assert len([*sorter.look(store)]) == 1
        (tmp_path / "Maildir").rename(tmp_path / "elsewhere")
        (tmp_path / "Maildir").mkdir()
        with pytest.raises(ServerError, match="mount it"):
            [*sorter.look(store)]
        assert sorter.model.classes_.tolist() == ["Bills"]


# ---- commands -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["server", "user", "port", "ca_file", "password", "security"])
def test_settings_of_servers_are_refused(name):
    values = {"port": 143, "password": "keyring", "security": "tls"}
    with pytest.raises(KeslerError, match=f"{name} is of a server"):
        MailSettings({"maildir": "mail", name: values.get(name, "x")})


def test_keywords_are_refused(tmp_path):
    with pytest.raises(KeslerError, match="give nothing or move"):
        MailSettings({"maildir": "mail", "action": "keyword"})


def test_settings_are_read_as_they_were_written(tmp_path):
    values = {"maildir": "mail", "never": ["Trash"], "action": "move"}
    path = tmp_path / "mail.toml"
    path.write_text(MailSettings(values).text, "utf-8")
    read = read_settings(str(path))
    assert {name: getattr(read, name) for name in values} == values
    assert "port =" not in path.read_text() and read.path("maildir") == str(tmp_path / "mail")


def test_commands_on_a_maildir(box, tmp_path, capsys):
    for number in range(60):
        name = [*WORDS][number % 2]
        put(box.get_folder(name), number, WORDS[name], flags="S")
    box.add_folder("Trash")
    settings = tmp_path / "mail.toml"

    def run(*given):
        done = kesler(capsys, "mail", *given)
        assert done.code == 0, done.err
        return done.out

    out = run("setup", settings, "--maildir", tmp_path / "Maildir", "--error", "0.3")
    assert "INBOX        0  inbox" in out and "Trash        0  never touched" in out
    (tmp_path / "Maildir").rename(tmp_path / "away")
    refused(kesler(capsys, "mail", "learn", settings), "give the path of a Maildir")
    refused(kesler(capsys, "mail", "watch", settings, "--once"), "run kesler mail learn")
    (tmp_path / "away").rename(tmp_path / "Maildir")
    assert run("learn", settings).startswith("60 messages learnt")
    one, two = put(box, 501, WORDS["Bills"]), put(box, 502, WORDS["Team"])
    assert run("watch", settings, "--once").startswith(f"suggested\t{one}\tBills")
    assert "suggestions that wait: 2" in run("status", settings) and len(box) == 2
    assert run("explain", settings, "501@example.org").startswith("Bills: score")
    three = put(box, 503, WORDS["Team"])
    lines = run("watch", settings, "--once", "--action", "move").splitlines()
    assert [line.split("\t")[:3] for line in lines] == [
        ["suggested", three, "Team"], ["moved", three, "Team"],
    ]  # fmt: skip
    assert run("watch", settings, "--once", "--action", "move") == ""  # its move is no answer
    for key, each in box.items():
        box.get_folder("Bills").add(each)
        box.remove(key)
    out = run("watch", settings, "--once")
    assert sorted(line.split("\t")[1] for line in out.splitlines()) == [one, two]
    assert run("undo", settings, "503@example.org").startswith(f"taken back\t{three}\tINBOX")
    assert [each["Message-ID"] for each in box] == [three]
    assert run("undo", settings, "503@example.org").startswith("nothing is taken back")
    four = put(box, 504, WORDS["Bills"])
    assert f"moved\t{four}\tBills" in run("watch", settings, "--once", "--action", "move")
    bills = box.get_folder("Bills")
    (gone,) = [key for key, each in bills.items() if each["Message-ID"] == four]
    bills.remove(gone)
    assert run("undo", settings, "504@example.org").startswith("nothing is taken back")
    assert "all         62" in run("report", settings)
    refused(
        kesler(capsys, "mail", "watch", settings, "--action", "keyword"), "give nothing or move"
    )
