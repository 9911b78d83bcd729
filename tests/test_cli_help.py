"""The examples of the help: each runs as printed, in a folder with the files that they name."""

import gzip
import mailbox
import os
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commands import kesler, messages, write_jsonl, write_svmlight
from kesler import OnlineClassifier
from kesler.cli.arguments import parser
from kesler.cli.mail_arguments import ACTIONS
from kesler.durable import Journal
from mailserver import message

COMMANDS = tuple(
    "compare explain journal learn mail predict serve share show test undo warm-up".split()
)
NOT_RUN = (
    "dataset:",  # takes minutes
    "kesler warm-up",
    "kesler serve",  # ends when it is stopped
    "kesler mail watch mail.toml$",
    "--action move",
    "--server",  # needs one
)
"""What examples contain that are only parsed here; the commands have tests of their own."""


def examples(text):
    """The lines of commands behind examples: in a help."""
    shown = text.partition("\nexamples:\n")[2].partition("\n\n")[0]
    return [line.strip() for line in shown.splitlines()]


def is_run(example):
    return not any(re.search(part, example) for part in NOT_RUN)


def write_maildir(path):
    """Messages of two folders; the first has the Message-ID of the help."""
    box = mailbox.Maildir(path)
    for number in range(1, 41):
        name, words = [("Team", "lunch agenda minutes"), ("Bills", "invoice due euro")][number % 2]
        box.add_folder(name).add(mailbox.MaildirMessage(message(number, words)))


def write_tables(rng):
    """The tables, databases and reads of the help, with columns that show the class."""
    queues = ["network", "printer", "access"]
    drawn = [queues[i] for i in rng.integers(3, size=40)]
    lines = [f"{i},{each},no {each},my {each} fails,{len(each)}" for i, each in enumerate(drawn)]
    for path, label in (("tickets.csv", "queue"), ("new.csv", "team"), ("rows.csv", "kind")):
        Path(path).write_text(f"ticket,{label},subject,body,length\n" + "\n".join(lines) + "\n")
    numbers = [f"{each[0]},{len(each)}.5,{i % 7}" for i, each in enumerate(drawn)]
    Path("rows.csv").write_text("kind,length,day\n" + "\n".join(numbers) + "\n")
    with sqlite3.connect("tickets.db") as connection:
        connection.execute("create table tickets (team text, body text)")
        rows = [(each, f"my {each} fails") for each in drawn]
        connection.executemany("insert into tickets values (?, ?)", rows)
    connection.close()
    reads = [f"@r{i}\n{'ACGT'[i % 4] * 40}\n+\n{'I' * 40}\n" for i in range(8)]
    Path("reads.fastq.gz").write_bytes(gzip.compress("".join(reads).encode()))


def write_models():
    OnlineClassifier().fit([{"now": 1.0, "cash": 1.0}, {"now": 1.0, "lunch": 1.0}] * 9,
                           ["spam", "work"] * 9).save("mail.kesler")  # fmt: skip
    tickets = [{"subject": f"no {name}", "body": f"my {name} fails"} for name in ("access", "net")]
    OnlineClassifier(columns={"*": "text"}).fit(tickets * 9, ["a", "b"] * 9).save("desk.kesler")
    reads = [{"sequence": "A" * 40}, {"sequence": "C" * 40}]
    OnlineClassifier(columns={"sequence": "sequence"}, ranks=";").fit(
        reads * 9, ["fungi;rust", "fungi;smut"] * 9
    ).save("species.kesler")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with every file that an example names, which is the home as well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    rows = [(("spam", "work")[label == "team"], words) for label, words in messages(60)]
    for name in ("mail", "new"):
        write_jsonl(tmp_path / f"{name}.jsonl", rows)
    for name in ("rows", "train", "test"):
        write_svmlight(tmp_path / f"{name}.svm", 60)
    Path("long.vw").write_text("x | a:1 b:2\ny | c:1\n" * 30)
    write_maildir(tmp_path / "Maildir")
    Path("message.eml").write_bytes(message(50, "lunch agenda"))
    write_tables(np.random.default_rng(0))
    write_models()
    with Journal("desk.db") as journal:
        model = journal.open("mail", OnlineClassifier())
        for id in ("m17", "m18"):
            model.learn_one(f"cash {id}", "spam", id=id)
    return tmp_path


def run_as_printed(example, capsys):
    """Run an example; one with more than a command and its arguments is run by a shell."""
    words = shlex.split(example)
    if words[0] == "kesler" and not {"|", ">", "<"} & {*words}:
        done = kesler(capsys, *(os.path.expanduser(word) for word in words[1:]))
        assert done.code == 0, (example, done)
        return
    script = f'kesler() {{ "{sys.executable}" -m kesler "$@"; }}\n{example}'
    shell = subprocess.run(["bash", "-c", script], capture_output=True, text=True)
    assert shell.returncode == 0, (example, shell)


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_run_as_printed(command, folder, capsys):
    found = examples(kesler(capsys, command, "--help").out)
    assert len(found) >= 2 and all(f"kesler {command}" in each for each in found)
    if command == "learn":  # writes new models
        for path in folder.glob("*.kesler"):
            path.unlink()
    for example in found:
        if is_run(example):
            run_as_printed(example.partition("   ")[0], capsys)
        else:
            words = shlex.split(example)
            parser().parse_args(words[words.index("kesler") + 1 :])


def test_what_is_not_run_is_in_the_help(capsys):
    shown = "".join(kesler(capsys, each, "--help").out for each in COMMANDS)
    for part in NOT_RUN:
        assert re.search(part, shown, re.M)


@pytest.mark.parametrize("action", ACTIONS)
def test_actions_of_mail_have_examples(action, capsys):
    shown = "\n".join(examples(kesler(capsys, "mail", action, "--help").out))
    assert f"kesler mail {action}" in shown
