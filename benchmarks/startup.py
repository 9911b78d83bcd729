"""Time to the first prediction of a new process, compared with the peers.

    python benchmarks/startup.py [--quick] [--repeats 5]

Each run is a separate process, timed from start to end, with the interpreter's own start. The first
prediction is that of a row after the learner has learnt four rows, from dictionaries or from an
array. A warm process loads machine code from Numba's cache. A cold process has an empty cache: it
translates the kernels in the wheel (made by `python wheels/ship_kernels.py`) for its processor, or,
in a fresh clone, interprets them while another process compiles them from Python.
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
"""The most seconds: of `import kesler` beyond NumPy's, of a warm and of a cold process."""

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
"""Code that learns four rows and assigns the prediction of the first, x, to `answer`."""
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
    "kesler compare": ["compare", "{}", "--methods", "multi,single,hybrid"],
    "kesler learn": ["learn", "{}.kesler", "{}"],
}
"""Commands; {} stands for a small file."""
SMALL_FILE = "x | a:1 b:2\ny | c:1\n" * 50


def started(command: list[str], cache: Path | None = None) -> str:
    """Run Python in a new process, with another Numba cache if given; return its output."""
    environment = os.environ | {"KESLER_COMPILE": "background" if cache else "foreground"}
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    run = [sys.executable, *command]
    return subprocess.run(run, env=environment, check=True, capture_output=True, text=True).stdout


def predict(code: str, *, cold: bool = False) -> Figures:
    """Learn and predict in a new process."""
    with tempfile.TemporaryDirectory() as empty:
        output = started(["-c", code + "print(answer)"], Path(empty) if cold else None)
    return {"error %": 100.0 * (output.strip() != "x")}


def run_command(words: Iterable[str], folder: str, *, cold: bool = False) -> None:
    """Run a command on a small file in a new process."""
    file, model = Path(folder, "rows.vw"), Path(folder, "rows.vw.kesler")
    file.write_text(SMALL_FILE)
    model.unlink(missing_ok=True)
    arguments = [word.format(file) for word in words]
    with tempfile.TemporaryDirectory() as empty:
        started(["-m", "kesler", *arguments], Path(empty) if cold else None)


def main() -> int:
    """Time imports, warm starts and cold starts; write the figures and the page."""
    race = Race("startup", "Start-up", __doc__, command_line(__doc__).parse_args())
    imports = race.run("Imports", imports_of_both(), unit="runs")
    beyond = seconds(race, imports, "kesler") - seconds(race, imports, "NumPy")
    race.at_most("seconds of import kesler beyond NumPy's", beyond, IMPORT)
    with tempfile.TemporaryDirectory() as folder:
        warm = race.run("Warm", [*learners(), *commands(folder), *peers()], unit="runs")
        check_times(race, warm, "warm", WARM)
        shipped = "with" if SHIPPED.exists() else "without"
        heading = f"Cold, {shipped} the kernels of a wheel"
        contestants = [*learners(cold=True), *commands(folder, cold=True)]
        cold = race.run(heading, contestants[:2] if race.is_quick else contestants, unit="runs")
        check_times(race, cold, "cold", COLD)
    return race.write()


def imports_of_both() -> list[Contestant]:
    """Return contestants that import NumPy, and NumPy and Kesler."""
    codes = {"NumPy": "import numpy", "kesler": "import numpy, kesler"}
    return [Contestant(name, partial(import_modules, code)) for name, code in codes.items()]


def import_modules(code: str) -> None:
    """Import modules in a new process."""
    started(["-c", code])


def learners(*, cold: bool = False) -> list[Contestant]:
    """Return our learners; for warm runs, an untimed first run fills the cache."""
    return [
        Contestant(f"kesler {name}", run, prepare=None if cold else run)
        for name, code in ANSWERS.items()
        for run in [partial(predict, code, cold=cold)]
    ]


def commands(folder: str, *, cold: bool = False) -> list[Contestant]:
    """Return our commands."""
    return [
        Contestant(name, run, prepare=None if cold else run)
        for name, words in COMMANDS.items()
        for run in [partial(run_command, words, folder, cold=cold)]
    ]


def peers() -> list[Contestant]:
    """Return the peers, each with the import of its package."""
    return [Contestant(f, partial(predict, code), package=f) for f, code in PEERS.items()]


def check_times(race: Race, laps: dict[str, Laps], how: str, most: float) -> None:
    """Check the times of Kesler."""
    for name in laps:
        if name.startswith("kesler"):
            found = seconds(race, laps, name)
            race.at_most(f"seconds to the first prediction, {how}: {name}", found, most)


def seconds(race: Race, laps: dict[str, Laps], name: str) -> float:
    """Return the seconds that a contestant took by the clock of the race."""
    return laps[name].seconds(race.clock)


if __name__ == "__main__":
    sys.exit(main())
