"""Race with fastText: errors, time and size on seven sets of texts, its settings by its autotune.

    python benchmarks/fasttext_race.py [SET ...] [--autotune SECONDS] [--keep FILE]

This needs KESLER_DATA, the package fasttext-wheel and a C compiler, cc. Both learn the same lines,
in one random order, on one thread, and are asked for the lines that are left out. fastText reads
lines in lower case with spaces around punctuation, as its tutorial recommends, which does not count
as its time, and Kesler the lines as they are. --keep writes the figures of each set to a file as
soon as it was run, and runs the sets that the file lacks.
The script writes benchmarks/results/fasttext_race.md if all sets were run.
"""

from __future__ import annotations

import ctypes
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kesler.compact import CompactClassifier
from kesler.datasets import load
from kesler.fasttext import load_model, train_supervised

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from report import Report, table
from script_arguments import chosen, folder_of, script_parser

MOST_MEAN, MOST = 0.90, 1.02  # errors relative to fastText's: geometric mean, each set
SHARE = 0.25  # of the rows of sets without a split, for the test
TUNED_ON = 0.1  # of the lines to learn, on which the autotune validates
OF_LANGUAGE = 10  # paragraphs of each language to learn
PUNCTUATION = re.compile(r"([^\w\s'])")
CUTOFF = 100_000  # features of a quantized model
MOST_BYTES = 1 << 18  # of a text
LEAST_SHARE, STEPS = 1 / 64, 5  # of the bytes of a .ftz file, and of the search for fewest bytes
OURS, SMALL, EQUAL = "kesler", "kesler, quantized", "kesler, fewest bytes"
THEIRS, TUNED = "fastText", "fastText, tuned"
QUANTIZED = ", quantized"
Rows = list[tuple[str, str]]
Predict = Callable[[list[str]], Sequence[str]]


@dataclass(frozen=True)
class Split:
    """Texts with their labels, to learn and to ask for, and settings of fastText.

    Attributes
    ----------
    firsts : numbers of first lines that Kesler learns besides.
    passes : numbers of passes that fastText makes besides.
    """

    learnt: Rows
    asked: Rows
    settings: dict[str, Any] = field(default_factory=dict)
    firsts: tuple[int, ...] = ()
    passes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Found:
    """The figures of a run: errors in %, seconds to learn, microseconds a text, megabytes."""

    error: float
    seconds: float
    microseconds: float
    megabytes: float


# ---- sets -----------------------------------------------------------------------------------


def with_split(name: str) -> Split:
    """Return a set of kesler.datasets, with its split or a random one."""
    data = load(name)
    texts = [" ".join(each.values()) for each in data.records]
    rows = [(text, str(label)) for text, label in zip(texts, data.y, strict=True)]
    if data.n_train is None:
        return at_random(rows)
    return Split(shuffled(rows[: data.n_train]), rows[data.n_train :])


def shuffled(rows: Rows) -> Rows:
    """Return rows in a random order: of lines ordered by labels fastText learns little."""
    return [rows[i] for i in np.random.default_rng(0).permutation(len(rows)).tolist()]


def at_random(rows: Rows) -> Split:
    """Return rows in a random order, of which the last ones are asked for."""
    n, rows = round(len(rows) * (1 - SHARE)), shuffled(rows)
    return Split(rows[:n], rows[n:])


def records(file: str) -> list[dict[str, Any]]:
    """Return the records of a file of KESLER_DATA."""
    path = Path(os.environ["KESLER_DATA"]) / f"{file}.jsonl.gz"
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def wordnet() -> Split:
    """Return the glosses of WordNet and their hypernyms.

    A pass of fastText's softmax over 20,217 classes takes minutes; its manual has "hs" for many.
    Its autotune chose hidden vectors of a size that took 14 GB and 10 minutes.
    """
    rows = [(r["text"], r["label"]) for r in records("many_classes/wordnet_hypernyms")]
    settings = {"loss": "hs", "dim": 100}
    return replace(at_random(rows), settings=settings, firsts=(12_000, 24_000), passes=(25, 100))


def udhr() -> Split:
    """Return paragraphs and their languages, ten paragraphs of each to learn."""
    found, n = Split([], []), Counter[str]()
    for r in records("languages/udhr"):
        n[r["language"]] += 1
        part = found.learnt if n[r["language"]] <= OF_LANGUAGE else found.asked
        part.append((r["text"], r["language"]))
    return Split(shuffled(found.learnt), found.asked)


SETS: dict[str, Callable[[], Split]] = {
    "20newsgroups": lambda: with_split("20newsgroups"),
    "banking77": lambda: with_split("banking77"),
    "clinc150": lambda: with_split("clinc150"),
    "r8": lambda: with_split("r8"),
    "ag_news": lambda: with_split("ag_news"),
    "wordnet": wordnet,
    "udhr": udhr,
}


# ---- learners -------------------------------------------------------------------------------


def normalized(text: str) -> str:
    """Return a text in lower case, with spaces around punctuation."""
    return PUNCTUATION.sub(r" \1 ", text.lower())


def write(path: Path, rows: Rows, form: Callable[[str], str]) -> None:
    """Write a file in fastText's format."""
    with path.open("w", encoding="utf-8") as file:
        for text, label in rows:
            name = re.sub(r"\s+", "_", label)
            file.write(f"__label__{name} {' '.join(form(text).split())}\n")


def measured(
    train: Callable[[], Any],
    prepare: Callable[[Any], Predict],
    save: Callable[[Any, str], None],
    asked: Rows,
    folder: Path,
    form: Callable[[str], str] = str,
) -> Found:
    """Train, ask for texts and save, by the time of the processor.

    prepare : returns the function that is asked, from the model; its own time does not count.
    """
    start = time.process_time()
    model = train()
    seconds = time.process_time() - start
    texts = [form(" ".join(text.split())) for text, _ in asked]
    predict = prepare(model)
    start = time.process_time()
    labels = predict(texts)
    each = (time.process_time() - start) / len(texts)
    right = [re.sub(r"\s+", "_", label) for _, label in asked]
    wrong = sum(a != f"__label__{b}" for a, b in zip(labels, right, strict=True))
    path = folder / "model"
    save(model, str(path))
    size = path.stat().st_size
    return Found(100 * wrong / len(asked), seconds, 1e6 * each, size / 1e6)


def run_ours(split: Split, folder: Path, rival: Found) -> dict[str, Found]:
    """Run `train_supervised` of kesler, with no argument, and its model made small, in C.

    rival : fastText's quantized model, which another small model equals with the fewest bytes.
    """
    path, trained = folder / "ours.txt", folder / "trained"

    def prepare(model: Any) -> Predict:
        return lambda texts: [labels[0] for labels in model.predict(texts)[0]]

    def save(model: Any, at: str) -> None:
        model.save_model(at)

    def train() -> Any:
        model = train_supervised(path)
        model.save_model(trained)
        return model

    def whole(n: int) -> Found:
        write(path, split.learnt[:n], str)
        return measured(train, prepare, save, split.asked, folder)

    def small(max_bytes: int | None) -> Found:
        def quantize() -> Any:
            model = load_model(trained)
            model.quantize(max_bytes=max_bytes)
            return model

        return measured(quantize, lambda model: in_c(model, folder), save, split.asked, folder)

    firsts = {f"{OURS}, first {n:,} lines": whole(n) for n in split.firsts}
    found = {OURS: whole(len(split.learnt)), SMALL: small(None), EQUAL: fewest(small, rival)}
    return found | firsts


def fewest(small: Callable[[int], Found], rival: Found) -> Found:
    """Return the model of fewest bytes that errs no more than another, by bisection.

    It begins at half of the other's bytes, and returns that model if it errs more.
    """
    low, high = np.log(LEAST_SHARE * rival.megabytes), np.log(0.5 * rival.megabytes)
    best = small(round(1e6 * np.exp(high)))
    for _ in range(STEPS if best.error <= rival.error else 0):
        middle = (low + high) / 2
        found = small(round(1e6 * np.exp(middle)))
        if found.error <= rival.error:
            best, high = found, middle
        else:
            low = middle
    return best


def in_c(model: Any, folder: Path) -> Predict:
    """Return the predictions of a quantized model, exported as C and compiled."""
    path = folder / "small"
    model.save_model(path)
    small = CompactClassifier.load(path)
    source, library = folder / "small.c", folder / f"small{time.time_ns()}.so"
    small.export(source)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
    loaded, labels = ctypes.CDLL(str(library)), small.classes_
    loaded.small_scratch.restype = ctypes.c_size_t
    memory = ctypes.create_string_buffer(loaded.small_scratch(ctypes.c_size_t(MOST_BYTES)))

    def number(text: bytes) -> int:
        assert len(text) <= MOST_BYTES
        found: int = loaded.small_predict(text, ctypes.c_size_t(len(text)), memory, None)
        return found

    return lambda texts: [labels[number(text.encode())] for text in texts]


def run_theirs(split: Split, folder: Path, seconds: int) -> dict[str, Found]:
    """Run fastText with its defaults, and with the settings that its autotune finds."""
    import fasttext

    path, part, rest = (folder / f"{name}.txt" for name in ("theirs", "validation", "tuned"))
    n = max(1, round(len(split.learnt) * TUNED_ON))
    order = np.random.default_rng(1).permutation(len(split.learnt)).tolist()
    write(path, split.learnt, normalized)
    write(part, [split.learnt[i] for i in order[:n]], normalized)
    write(rest, [split.learnt[i] for i in order[n:]], normalized)

    def prepare(model: Any) -> Predict:
        def predict(texts: list[str]) -> list[str]:
            # The layer above `f` fails with NumPy 2.
            found, _ = model.f.multilinePredict([f"{text}\n" for text in texts], 1, 0.0, "strict")
            return [labels[0] if labels else "" for labels in found]

        return predict

    def save(model: Any, at: str) -> None:
        model.save_model(at)

    def found(quantized: bool = False, **settings: Any) -> Found:
        def train() -> Any:
            given = split.settings | settings
            model = fasttext.train_supervised(str(path), thread=1, verbose=0, **given)
            if quantized:
                model.quantize(str(path), qnorm=True, retrain=True, cutoff=CUTOFF, thread=1)
            return model

        return measured(train, prepare, save, split.asked, folder, normalized)

    results = {THEIRS: found(), f"{THEIRS}{QUANTIZED}": found(quantized=True)}
    results |= {f"{THEIRS}, {n} passes": found(epoch=n, lr=1.0) for n in split.passes}
    if seconds:
        tuned = fasttext.train_supervised(
            str(rest),
            autotuneValidationFile=str(part),
            autotuneDuration=seconds,
            thread=1,
            verbose=0,
            **split.settings,
        )
        names = ("lr", "dim", "ws", "epoch", "wordNgrams", "bucket", "minn", "maxn", "loss")
        arguments = tuned.f.getArgs()
        settings = {name: getattr(arguments, name) for name in names}
        del tuned  # which may take gigabytes
        settings["loss"] = settings["loss"].name
        results[TUNED] = found(**settings)
        results[f"{TUNED}{QUANTIZED}"] = found(quantized=True, **settings)
    return results


# ---- page -----------------------------------------------------------------------------------


def run(name: str, seconds: int) -> dict[str, Found]:
    """Run all learners on a set."""
    split = SETS[name]()
    with tempfile.TemporaryDirectory() as folder:
        theirs = run_theirs(split, Path(folder), seconds)
        found = run_ours(split, Path(folder), best_quantized(theirs)) | theirs
    for learner, each in found.items():
        print(f"{name}, {learner}: {each}", flush=True)
    return found


def kept(name: str, seconds: int, path: Path | None) -> dict[str, Found]:
    """Return the figures of a set that a file holds; run it and write them if there are none."""
    sets = json.loads(path.read_text()) if path is not None and path.exists() else {}
    if name in sets:
        return {learner: Found(**each) for learner, each in sets[name].items()}
    found = run(name, seconds)
    if path is not None:
        sets[name] = {learner: asdict(each) for learner, each in found.items()}
        path.write_text(json.dumps(sets))
    return found


def best_quantized(found: dict[str, Found]) -> Found:
    """Return the quantized model of fastText that errs least."""
    theirs = (THEIRS + QUANTIZED, TUNED + QUANTIZED)
    return min((found[name] for name in theirs if name in found), key=lambda each: each.error)


def add_table(page: Report, found: dict[str, dict[str, Found]]) -> None:
    """Add the figures of each set and learner."""
    rows = [
        [
            f"{name}, {learner}",
            *(f"{each.error:.2f}", f"{each.error / of_set[OURS].error:.3f}"),
            *(f"{each.seconds:.2f}", f"{each.microseconds:.1f}", f"{each.megabytes:.3f}"),
        ]
        for name, of_set in found.items()
        for learner, each in of_set.items()
    ]
    head = ["", "error %", "errors / ours", "to learn, s", "a text, us", "file, MB"]
    page.add("## Errors, time of the processor and size", ABOUT, table(head, rows))


def add_checks(page: Report, found: dict[str, dict[str, Found]]) -> None:
    """Check the errors and the time against those of the best fastText of each set."""
    ratios = []
    for name, of_set in found.items():
        theirs = [each for learner, each in of_set.items() if learner.startswith(THEIRS)]
        best = min(theirs, key=lambda each: each.error)
        ratio, slower = of_set[OURS].error / best.error, of_set[OURS].seconds / best.seconds
        page.check(f"{name}: errors {ratio:.3f} of fastText's, at most {MOST}", ratio <= MOST)
        page.check(f"{name}: time {slower:.2f} of fastText's, at most 1", slower <= 1)
        ratios.append(ratio)
        add_checks_of_small(page, name, of_set)
    mean = float(np.exp(np.mean(np.log(ratios))))
    page.check(f"all sets: errors {mean:.3f}, at most {MOST_MEAN}", mean <= MOST_MEAN)


def add_checks_of_small(page: Report, name: str, found: dict[str, Found]) -> None:
    """Check the smallest quantized model that errs no more than fastText's."""
    small, theirs = found[EQUAL], best_quantized(found)
    errors, times = small.error / theirs.error, small.microseconds / theirs.microseconds
    share = small.megabytes / theirs.megabytes
    page.check(
        f"{name}: {share:.3f} of the bytes of .ftz, at most 0.5, and {errors:.3f} of its errors",
        share <= 0.5 and errors <= 1,
    )
    page.check(f"{name}: in C, {times:.2f} of the time of fastText's, at most 1", times <= 1)


ABOUT = """\
"tuned" has the settings that fastText's autotune found in the stated time, on a tenth of the lines
to learn, and learns all of them; its "quantized" model is a .ftz file, retrained with at most
100,000 features. The loss of fastText is softmax, and for WordNet hierarchical softmax over hidden
vectors of 100 numbers. The time to find the settings is not part of its time. Kesler's file holds
all that goes on learning. Its "quantized" model is one of `quantize()`, in C by way of `export`,
and its time to learn is that of making it of the trained one; that of "fewest bytes" errs no more
than the .ftz file that errs least, and has at most half its bytes. Checks compare with the fastText
that errs least on the lines asked for. On WordNet, more passes with the rate of the tuned model do
not make up for its errors, and Kesler's first lines show when it errs no more."""


def main() -> int:
    """Run the race and write its page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("sets", nargs="*", metavar="SET", help=", ".join(SETS))
    parser.add_argument("--autotune", type=int, default=300, metavar="SECONDS", help="0 for none")
    parser.add_argument("--keep", type=Path, metavar="FILE", help="of figures, read and written")
    options = parser.parse_args()
    names = chosen(parser, options.sets, SETS)
    folder = folder_of(parser, options, is_whole=len(names) == len(SETS))
    page = Report("fasttext_race", "Race with fastText", folder)
    found = {name: kept(name, options.autotune, options.keep) for name in names}
    page.add(f"Autotune of {options.autotune} s for each set; one thread.")
    add_table(page, found)
    add_checks(page, found)
    return page.write()


if __name__ == "__main__":
    sys.exit(main())
