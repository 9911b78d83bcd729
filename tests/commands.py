"""The command line as tests run it, and the files that it reads."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from kesler import OnlineClassifier
from kesler.cli import main
from kesler.durable import Journal

WORDS = {
    "spam": ["win", "cash", "prize", "now"],
    "team": ["lunch", "agenda", "minutes", "now"],
    "home": ["school", "garden", "lunch", "agenda"],
}


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


def kesler(capsys: Any, *arguments: object) -> Done:
    """Run a command in this process."""
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as stop:
        code = int(stop.code or 0)
    captured = capsys.readouterr()
    return Done(code, captured.out, captured.err)


def kesler_process(*arguments: object, **options: Any) -> subprocess.Popen[str]:
    """Start a command in a process of its own."""
    command = [sys.executable, "-W", "error", "-m", "kesler", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    # Where Python writes without a buffer, answers that are not flushed would arrive as well.
    env = {name: each for name, each in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.Popen(command, env=env, **{**pipes, **options})


def learnt_file(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """Learn rows by the command; return the file of the model."""
    path, source = folder / "mail.kesler", write_jsonl(folder / "old.jsonl", rows)
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        assert main(["learn", str(path), str(source)]) == 0
    return path


def account(path: Path) -> Any:
    """Return the JSON that a command has written."""
    return json.loads(path.read_text("utf-8"))


def refused(done: Done, *words: str) -> None:
    """A command was refused: one sentence on standard error, exit code 2."""
    assert done.code == 2, done
    assert done.err.startswith("kesler: ") and done.err.count("\n") == 1, done.err
    for word in words:
        assert word in done.err, (word, done.err)


# ---- files --------------------------------------------------------------------------------------


def messages(n: int, seed: int = 0) -> list[tuple[str, list[str]]]:
    """Labels and different words; new ones come up all along, so that the vocabulary grows."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(list(WORDS), size=n).tolist()
    return [
        (label, [*dict.fromkeys(rng.choice(WORDS[label], size=2).tolist()), f"w{rng.integers(n)}"])
        for label in labels
    ]


def as_entries(rows: list[tuple[str, list[str]]]) -> tuple[list[dict[str, float]], list[str]]:
    """The same rows as an estimator takes them."""
    return [dict.fromkeys(words, 1.0) for _, words in rows], [label for label, _ in rows]


def write_journal(path: Path) -> Path:
    """A journal of a model that has learnt two rows."""
    with Journal(path) as journal:
        mail = journal.open("mail", OnlineClassifier())
        for id, text, folder in [("m1", "win cash", "spam"), ("m2", "team lünch", "work")]:
            mail.learn_one(text, folder, id=id)
    return path


def write_jsonl(path: Path, rows: list[tuple[str, list[str]]]) -> Path:
    records = [{"label": label, "text": " ".join(words)} for label, words in rows]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def write_vw(path: Path, rows: list[tuple[str, list[str]]]) -> Path:
    path.write_text("".join(f"{label} | {' '.join(words)}\n" for label, words in rows))
    return path


def write_svmlight(path: Path, n: int, seed: int = 0) -> Path:
    """Rows whose features grow in number along the file."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        label = int(rng.integers(3))
        pairs = {label: 1.0, 3 + int(rng.integers(5)): 0.5, 8 + i // 3: 2.0}
        lines.append(f"{label} " + " ".join(f"{k}:{v}" for k, v in sorted(pairs.items())))
    path.write_text("\n".join(lines) + "\n")
    return path


def write_csv(path: Path, n: int, seed: int = 0) -> Path:
    """A table of numbers; its label is the sign of the first column and of the second."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 3)).round(3)
    lines = [f"{a},{b},{'+-'[a < 0]}{'+-'[b < 0]},{c}" for a, b, c in values.tolist()]
    path.write_text("one,two,signs,three\n" + "\n".join(lines) + "\n")
    return path
