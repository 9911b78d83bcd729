"""Kills at random moments of `kesler learn` under a loop that tries again.

The model at the end is, byte for byte, that of a run which was never stopped.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

N_ROWS, N_WORDS, N_CLASSES = 40_000, 2_000, 12
N_KILLS = 4

Command = list[str]


def prepare(folder: Path) -> Callable[[np.random.Generator], str | None]:
    """Return a function that kills five runs, and compares what was learnt at the end.

    A run that has ended by itself is begun again too, so that kills also strike where nothing is
    left to learn.
    """
    rows = written(folder / "rows.vw")
    started = time.monotonic()
    subprocess.run(learn(rows, folder / "whole"), check=True, capture_output=True)
    seconds = time.monotonic() - started
    whole = (folder / "whole").read_bytes()

    def case(rng: np.random.Generator) -> str | None:
        model = folder / "killed"
        model.unlink(missing_ok=True)
        n_kills = 0
        while n_kills < N_KILLS:
            how = run_until(learn(rows, model), killing_moment(rng, seconds))
            if how not in (0, -signal.SIGKILL):
                return f"after {n_kills} kills the command ended with {how}"
            n_kills += how == -signal.SIGKILL
        subprocess.run(learn(rows, model), check=True, capture_output=True)
        left = [path.name for path in folder.iterdir() if path.name not in KEPT]
        if model.read_bytes() != whole:
            return "the model differs from that of one run"
        return f"temporary files are left: {left}" if left else None

    return case


KEPT = {"rows.vw", "whole", "killed"}


def written(path: Path) -> Path:
    """Write rows of words, whose classes appear as the file goes on."""
    rng = np.random.default_rng(0)
    words = (N_WORDS * rng.random((N_ROWS, 8)) ** 2).astype(int)
    known = 2 + np.arange(N_ROWS) * (N_CLASSES - 2) // N_ROWS
    labels = (words[:, 0] + words[:, 1]) % known
    with path.open("w") as file:
        for label, row in zip(labels, words, strict=True):
            file.write(f"{label + 1} | {' '.join(f'w{word}' for word in row)}\n")
    return path


def learn(rows: Path, model: Path) -> Command:
    command = [sys.executable, "-m", "kesler", "learn", str(model), str(rows)]
    return [*command, "--checkpoint", "1000", *(["--resume"] if model.exists() else [])]


def killing_moment(rng: np.random.Generator, seconds: float) -> float:
    """Return a moment of a run, in half of the cases in its last fifth."""
    return seconds * (rng.uniform(0.8, 1.1) if rng.random() < 0.5 else rng.uniform(0.0, 1.1))


def run_until(command: Command, seconds: float) -> int:
    """Return the status of a command that is killed after some seconds."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()
