"""Seconds until a new process has its first answer, beside the peers' in the same run.

    python benchmarks/startup.py [--quick] [--repeats 5]

Every run is a process of its own, timed from its start to its end, the interpreter's included. The
first answer is what a learner says of a row after it has learnt four, from dictionaries or from an
array. A warm process finds machine code in Numba's cache. A cold one has an empty cache: with the
kernels that a wheel carries (`python wheels/ship_kernels.py` makes them) it translates these for
its processor; without, as from a fresh clone, it compiles them from Python.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from kesler.compiled.jit.cache import SHIPPED
from racing import Contestant, Figures, Laps, Race, command_line

IMPORT, WARM, COLD = 0.3, 0.8, 5.0
"""The most seconds: of `import kesler` beyond NumPy's, of a first answer warm and cold."""

ROWS = "rows = [({'a': 1.0, 'b': 2.0}, 'x'), ({'c': 1.0}, 'y')] * 2; "
TABLE = "X = [[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]] * 2; y = ['x', 'y'] * 2; "
EVENTS = "[model.learn_one(*row) for row in rows]; answer = model.predict_one(rows[0][0]); "
ARRAYS = "import numpy as np; X = np.array(X); answer = model.fit(X, y).predict(X)[0]; "
KESLER = "from kesler import OnlineClassifier; model = OnlineClassifier({}); "
ANSWERS = {
    "default, dicts": ROWS + KESLER.format("") + EVENTS,
    "PA-I, dicts": ROWS + KESLER.format("'multi', update='pa1'") + EVENTS,
    "default, an array": TABLE + KESLER.format("") + ARRAYS,
    "PA-I, an array": TABLE + KESLER.format("'multi', update='pa1'") + ARRAYS,
}
"""What learns four rows and puts what it says of the first into `answer`, which should be x."""
PEERS = {
    "vowpalwabbit": (
        "from vowpalwabbit import Workspace; model = Workspace('--oaa 2 --quiet'); "
        "[model.learn(row) for row in ['1 | a:1 b:2', '2 | c:1'] * 2]; "
        "answer = 'xy'[model.predict('| a:1 b:2') - 1]; "
    ),
    "river": (
        f"{ROWS}from river import linear_model, multiclass; "
        "model = multiclass.OneVsRestClassifier(linear_model.LogisticRegression()); " + EVENTS
    ),
    "scikit-learn": (
        f"{TABLE}from sklearn.linear_model import SGDClassifier; model = SGDClassifier(); " + ARRAYS
    ),
}
COMMANDS = {
    "kesler compare": ["compare", "{}", "--update", "pa1"],
    "kesler learn": ["learn", "{}", "--model", "{}.kesler"],
}
"""Commands, {} being a small file."""
SMALL_FILE = "x | a:1 b:2\ny | c:1\n" * 50


def started(command: list[str], cache: Path | None = None) -> str:
    """Run Python in a new process, with a cache of its own if told so; return what it printed."""
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    run = [sys.executable, *command]
    return subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout


def answered(code: str, *, cold: bool = False) -> Figures:
    """Have a new process learn and answer."""
    with tempfile.TemporaryDirectory() as empty:
        said = started(["-c", code + "print(answer)"], Path(empty) if cold else None)
    return {"error %": 100.0 * (said.strip() != "x")}


def commanded(words: Iterable[str], folder: str, *, cold: bool = False) -> None:
    """Have a new process run a command on a small file."""
    file, model = Path(folder, "rows.vw"), Path(folder, "rows.vw.kesler")
    file.write_text(SMALL_FILE)
    model.unlink(missing_ok=True)
    arguments = [word.format(file) for word in words]
    with tempfile.TemporaryDirectory() as empty:
        started(["-m", "kesler.cli", *arguments], Path(empty) if cold else None)


def main() -> int:
    """Time imports, warm starts and cold starts; write the figures and the page."""
    race = Race("startup", "Start-up", __doc__, command_line(__doc__).parse_args())
    imports = race.run("Imports", importing(), unit="runs")
    beyond = seconds(race, imports, "kesler") - seconds(race, imports, "NumPy")
    race.at_most("seconds of import kesler beyond NumPy's", beyond, IMPORT)
    with tempfile.TemporaryDirectory() as folder:
        warm = race.run("Warm", [*answering(), *commanding(folder), *peers()], unit="runs")
        hold(race, warm, "warm", WARM)
        shipped = "with" if SHIPPED.exists() else "without"
        heading = f"Cold, {shipped} the kernels that a wheel carries"
        contestants = [*answering(cold=True), *commanding(folder, cold=True)]
        cold = race.run(heading, contestants[:2] if race.is_quick else contestants, unit="runs")
        hold(race, cold, "cold", COLD)
    return race.write()


def importing() -> list[Contestant]:
    """Return what imports NumPy, and Kesler after it."""
    codes = {"NumPy": "import numpy", "kesler": "import numpy, kesler"}
    return [Contestant(name, partial(imported, code)) for name, code in codes.items()]


def imported(code: str) -> None:
    """Have a new process import modules."""
    started(["-c", code])


def answering(*, cold: bool = False) -> list[Contestant]:
    """Return our learners; the first run of each, not timed, fills the cache for warm ones."""
    return [
        Contestant(f"kesler {name}", run, prepare=None if cold else run)
        for name, code in ANSWERS.items()
        for run in [partial(answered, code, cold=cold)]
    ]


def commanding(folder: str, *, cold: bool = False) -> list[Contestant]:
    """Return our commands."""
    return [
        Contestant(name, run, prepare=None if cold else run)
        for name, words in COMMANDS.items()
        for run in [partial(commanded, words, folder, cold=cold)]
    ]


def peers() -> list[Contestant]:
    """Return the peers, each with its own import."""
    return [Contestant(f, partial(answered, code), package=f) for f, code in PEERS.items()]


def hold(race: Race, laps: dict[str, Laps], how: str, most: float) -> None:
    """Check the times of ours."""
    for name in laps:
        if name.startswith("kesler"):
            found = seconds(race, laps, name)
            race.at_most(f"seconds to the first answer, {how}: {name}", found, most)


def seconds(race: Race, laps: dict[str, Laps], name: str) -> float:
    """Return the seconds that a contestant took by the clock of the race."""
    return laps[name].seconds(race.clock)


if __name__ == "__main__":
    sys.exit(main())
