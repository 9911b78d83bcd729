"""kesler mail as a command: the pages of its guide, its settings, and where passwords come from."""

import mailbox
import random
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

import pages
from commands import kesler, refused
from kesler import KeslerError
from kesler.durable import Journal
from kesler.mail import passwords
from kesler.mail.accounts import require_own
from kesler.mail.passwords import secret_of
from kesler.mail.settings import SETTINGS, MailSettings, read_settings
from kesler.mail.sorter import model_of
from mailserver import PASSWORD, Dovecot, Person, message, needs_dovecot

WORDS = {
    "Bills": ["invoice", "payment", "due", "account", "euro"],
    "Team": ["lunch", "meeting", "agenda", "minutes", "room"],
    "Work": ["report", "draft", "review", "deadline", "figures"],
}


# ---- the guide ----------------------------------------------------------------------------------


def fill(dovecot):
    """Make the mailbox of the guide."""
    rng = random.Random(0)
    with Person(dovecot, "ann") as person:
        person.create(*WORDS)
        for number in range(60):
            folder = [*WORDS][number % 3]
            words = " ".join(rng.choices(WORDS[folder], k=4))
            person.append(folder, message(number, words, f"{folder}@example.org"))
    dovecot.deliver("ann", message(500, "in the inbox before"))


def acts(dovecot):
    """Yield what others do before each block of commands of the guide."""

    def move(identity, source, target):
        with Person(dovecot, "ann") as person:
            person.move(identity, source, target)

    yield lambda: fill(dovecot)
    yield lambda: None
    yield lambda: dovecot.deliver(
        "ann", message(501, "invoice payment due euro", "Bills@example.org")
    )
    yield lambda: move("<501@example.org>", "INBOX", "Bills")
    yield lambda: [
        dovecot.deliver("ann", message(502, "lunch meeting agenda minutes", "Team@example.org")),
        dovecot.deliver("ann", message(503, "report draft review deadline", "Work@example.org")),
    ]
    yield lambda: move("<502@example.org>", "Team", "Bills")


@needs_dovecot
def test_the_guide_runs_as_printed(tmp_path, monkeypatch):
    pytest.importorskip("imapclient", reason="needs the extra mail")
    monkeypatch.setenv("MAIL_PASSWORD", PASSWORD)
    monkeypatch.setattr(pages, "ROOT", tmp_path)
    source = Path(__file__).parents[1] / "docs/guides/mail.md"
    with TemporaryDirectory(prefix="dc") as folder, Dovecot(Path(folder)) as dovecot:
        own = f"localhost --port {dovecot.tls} --ca-file {folder}/ca.pem"
        text = source.read_text("utf-8").replace("--server imap.example.org", f"--server {own}")
        text = text.replace("imap.example.org", "localhost")
        given = [block for block in pages.blocks(source) if block.language == "console"]
        found = []
        monkeypatch.chdir(tmp_path)
        page = tmp_path / "page.md"
        page.write_text(text, "utf-8")
        own_blocks = [block for block in pages.blocks(page) if block.language == "console"]
        for act, block in zip(acts(dovecot), own_blocks, strict=True):
            act()
            found += pages._console_faults(page, block)
        assert len(given) == 6 and not found, "\n".join(found)
        names = set(re.findall(r"kesler mail (\w+) ", text))
        assert names >= {"setup", "learn", "watch", "status", "explain", "undo", "report"}


# ---- settings -----------------------------------------------------------------------------------


def test_settings_are_read_as_they_were_written(tmp_path):
    rng = random.Random(0)
    odd = ['a"b', "ü\\n", "x#y", "tab\there".replace("\t", " "), "\x7f".join("ab")[:1] + "c"]
    choices = {
        "security": ["tls", "starttls", "plain"],
        "port": [0, 993, 65535],
        "never": [[], odd],
        "action": ["nothing", "keyword", "move"],
        "error": [0.01, 0.5],
        "every": [1, 3600],
        "deleted": ["keep", "forget"],
        "page": ["nothing", "folders", "subjects"],
        "password": ["keyring", "environment:X", 'command:pass "a" | head', "oauth2:token"],
    }
    for _ in range(50):
        names = [name for name in SETTINGS if name != "maildir"]
        values = {name: rng.choice(choices.get(name, odd)) for name in names}
        path = tmp_path / "mail.toml"
        path.write_text(MailSettings(values).text, "utf-8")
        assert dict(read_settings(str(path)).values) == values


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("security", "none"), ("port", -1), ("port", True), ("port", 70000), ("error", 0.0),
        ("error", 2), ("every", 0), ("never", "Trash"), ("never", [1]), ("action", "delete"),
        ("deleted", "yes"), ("password", "secret"), ("password", "command:"), ("server", ""),
        ("user", "a\nb"), ("colour", "red"), ("security", ["tls"]), ("action", {}),
    ],
)  # fmt: skip
def test_settings_that_are_none_are_refused(name, value):
    with pytest.raises(KeslerError, match=name):
        MailSettings({"server": "s", "user": "u", name: value})


def test_a_file_without_a_server_or_of_another_kind_is_refused(tmp_path, capsys):
    path = tmp_path / "mail.toml"
    path.write_text("user = 'ann'\n")
    refused(kesler(capsys, "mail", "status", path), "mail.toml: the setting server is missing")
    path.write_text("nonsense")
    refused(kesler(capsys, "mail", "status", path), "no file of TOML")
    refused(kesler(capsys, "mail", "status", tmp_path / "none.toml"), "with kesler mail setup")
    path.write_text("user = 'ann'\nserver = 'localhost'\n")
    for action in ("status", "report", "watch"):
        refused(kesler(capsys, "mail", action, path), "run kesler mail learn")
    assert not (tmp_path / "mail.db").exists()


@pytest.fixture
def boxes(tmp_path):
    """Two Maildirs, each with a message in a folder."""
    for number, name in enumerate(("ann", "bob")):
        folder = mailbox.Maildir(tmp_path / name).add_folder("Bills")
        folder.add(message(number, "invoice"))
    return tmp_path


def test_two_mailboxes_share_no_account_without_a_word(boxes, capsys):
    settings = {}
    for name in ("ann", "bob"):
        settings[name] = boxes / f"{name}.toml"
        settings[name].write_text(f'maildir = "{boxes / name}"\n')
    assert kesler(capsys, "mail", "learn", settings["ann"]).code == 0
    for action in ("learn", "watch", "status", "setup"):
        done = kesler(capsys, "mail", action, settings["bob"])
        refused(done, f"has learnt the mailbox {boxes / 'ann'}, and not {boxes / 'bob'}: give")
    settings["bob"].write_text(f'maildir = "{boxes / "bob"}"\naccount = "bob"\n')
    assert kesler(capsys, "mail", "learn", settings["bob"]).code == 0
    for each in settings.values():
        assert "learnt: 1" in kesler(capsys, "mail", "status", each).out


def test_mailboxes_are_equal_if_they_are_one_however_they_are_written(tmp_path):
    own, other = tmp_path / "own", tmp_path / "other"
    server = {"server": "localhost", "user": "ann"}
    mailboxes = [
        [({"maildir": each}, own) for each in ("Mail", "./Mail/", "../own/Mail", f"{own}/Mail")],
        [({"maildir": each}, other) for each in ("Mail", f"{other}/Mail")],
        [(server, own), (server | {"server": "LocalHost", "port": 993}, other)],
        [(server | {"security": "plain"}, own), (server | {"security": "starttls"}, other)],
        [(server | {"port": 1143}, own), (server | {"port": 1143, "security": "plain"}, own)],
        [(server | {"port": 1144}, own)],
        [(server | {"user": "bob"}, own)],
    ]
    identities = [{MailSettings(*each).identity for each in one} for one in mailboxes]
    assert [len(each) for each in identities] == [1] * len(mailboxes)
    assert len(set.union(*identities)) == len(mailboxes)


def test_of_two_mailboxes_that_start_together_one_is_refused(tmp_path, monkeypatch):
    ann, bob = (MailSettings({"server": "s", "user": name}) for name in ("ann", "bob"))
    with Journal(tmp_path / "mail.db") as journal, Journal(tmp_path / "mail.db") as other:
        model, faster = model_of(journal, "mail"), model_of(other, "mail")
        kept = model.kept

        def kept_before_another_starts(name):
            found = kept(name)
            monkeypatch.setattr(model, "kept", kept)
            require_own(faster, bob)
            return found

        monkeypatch.setattr(model, "kept", kept_before_another_starts)
        with pytest.raises(KeslerError, match="the mailbox s:993 as bob, and not s:993 as ann"):
            require_own(model, ann)
        require_own(model, bob)


def test_a_relative_path_in_two_folders_names_two_mailboxes(boxes, capsys):
    for name in ("ann", "bob"):
        (boxes / name / "mail.toml").write_text('maildir = "."\ndatabase = "../mail.db"\n')
    assert kesler(capsys, "mail", "learn", boxes / "ann/mail.toml").code == 0
    done = kesler(capsys, "mail", "learn", boxes / "bob/mail.toml")
    refused(done, f"has learnt the mailbox {boxes / 'ann'}, and not {boxes / 'bob'}: give")
    (boxes / "mail.toml").write_text('maildir = "ann"\n')
    assert "learnt: 1" in kesler(capsys, "mail", "status", boxes / "mail.toml").out


def test_an_account_follows_its_mailbox(boxes, capsys):
    settings = boxes / "mail.toml"
    settings.write_text(f'maildir = "{boxes / "ann"}"\n')
    assert kesler(capsys, "mail", "learn", settings).code == 0
    (boxes / "ann").rename(boxes / "moved")
    assert kesler(capsys, "mail", "setup", settings, "--maildir", boxes / "moved").code == 0
    done = kesler(capsys, "mail", "watch", settings, "--once")
    assert (done.code, done.out) == (0, "")
    done = kesler(capsys, "mail", "setup", settings, "--account", "new", "--maildir", boxes / "bob")
    assert done.code == 0
    assert "learnt: 1" not in kesler(capsys, "mail", "status", settings).out


def test_no_account_follows_its_mailbox_without_the_settings(boxes, capsys):
    settings = boxes / f"{'m' * 250}.toml"  # a temporary file beside it would have too long a name
    settings.write_text(f'maildir = "{boxes / "ann"}"\n')
    assert kesler(capsys, "mail", "learn", settings).code == 0
    done = kesler(capsys, "mail", "setup", settings, "--maildir", boxes / "bob")
    refused(done, "cannot be written")
    assert "learnt: 1" in kesler(capsys, "mail", "status", settings).out


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_of_certificates_that_cannot_be_read_is_named(tmp_path, capsys, content):
    pytest.importorskip("imapclient", reason="needs the extra mail")
    if content is not None:
        (tmp_path / "ca.pem").write_text(content)
    given = ("--server", "localhost", "--user", "ann", "--password", "command:echo x")
    done = kesler(capsys, "mail", "setup", tmp_path / "m.toml", *given, "--ca-file", "ca.pem")
    refused(done, f"ca_file = '{tmp_path / 'ca.pem'}' cannot be read")


def test_values_of_options_are_refused_by_the_parser(capsys):
    done = kesler(capsys, "mail", "setup", "x.toml", "--error", "3")
    assert done.code == 2 and "give a number between 0 and 1" in done.err
    done = kesler(capsys, "mail")
    assert done.code == 2 and "ACTION" in done.err


# ---- passwords ----------------------------------------------------------------------------------


def settings(password):
    return MailSettings({"server": "s", "user": "u", "password": password})


def test_passwords_come_from_a_variable_or_a_command(monkeypatch, tmp_path):
    monkeypatch.setenv("MAIL_PASSWORD", "one")
    assert secret_of(settings("environment:MAIL_PASSWORD")) == "one"
    assert secret_of(settings("command:printf 'two words\\nmore'")) == "two words"
    assert secret_of(settings("oauth2:echo token")) == "token"
    monkeypatch.delenv("MAIL_PASSWORD")
    for password in ("environment:MAIL_PASSWORD", "command:false", "command:true", "command:echo"):
        with pytest.raises(KeslerError, match=r"MAIL_PASSWORD|without a password"):
            secret_of(settings(password))
    monkeypatch.setattr(passwords, "SECONDS", 0.1)
    with pytest.raises(KeslerError, match=r"0\.1 seconds"):
        secret_of(settings("command:sleep 5"))


def test_passwords_come_from_the_keyring(monkeypatch):
    keyring = pytest.importorskip("keyring", reason="needs the extra mail")
    known = {("kesler-mail", "u@s"): "three"}
    monkeypatch.setattr(keyring, "get_password", lambda *names: known.get(names))
    assert secret_of(settings("keyring")) == "three"
    known.clear()
    with pytest.raises(KeslerError, match="run keyring set kesler-mail u@s"):
        secret_of(settings("keyring"))

    def locked(*_):
        raise keyring.errors.KeyringLocked("locked")

    monkeypatch.setattr(keyring, "get_password", locked)
    with pytest.raises(KeslerError, match="unlock it"):
        secret_of(settings("keyring"))
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[mail\]'"):
        secret_of(settings("keyring"))
