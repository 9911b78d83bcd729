"""Suggestions of subjects for documents, compared with Omikuji.

    KESLER_DATA=... python benchmarks/subjects.py [--omikuji PYTHON]

6,980 records of a library, in German and English, with 9,021 subjects, most of them once. Kesler
has nothing chosen. Split: the first 80 % are learnt once, the rest is answered. Stream: each record
from the 101st on is answered before it is learnt; Omikuji is fitted anew at 100, 200, 400, ...
records. Measures are means over records: precision of the first 1, 3 and 5 suggestions, NDCG of the
first 5, and F1 of these 5. Subjects never seen before cannot be suggested: their share bounds
recall.

Omikuji 0.5 learns scikit-learn's TF-IDF with its default settings (Parabel) and as Bonsai (100
clusters that need not be balanced, depth 3), on one thread, in the Python that `--omikuji` names;
it is left out without. Seconds are of the processor, for learning the split; those of Kesler do not
count that loops are compiled. Milliseconds are for the 5 best of one document, one at a time.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from kesler import OnlineMultilabelClassifier
from racing import Race, command_line, table

BEGINNING, N_BEST = 100, 5
MEASURES = ("P@1", "P@3", "P@5", "NDCG@5", "F1@5")
KESLER, COLUMNS = "Kesler", ("learner", *MEASURES, "s to learn", "ms for one")
Suggestions = Sequence[Sequence[str]]


def main() -> int:
    """Run the learners and write the results."""
    arguments = parse()
    folder = Path(os.environ.get("KESLER_DATA", "."))
    path = folder / "subjects" / "tib_core_dev.tsv.gz"
    if not path.exists():
        sys.exit("KESLER_DATA must name a folder with subjects/tib_core_dev.tsv.gz")
    texts, sets = read(path)
    n = 4 * len(texts) // 5
    race = Race("subjects", "Subjects", __doc__, arguments)
    race.clock = "processor"
    split, stream = {KESLER: of_split(race, texts, sets, n)}, {KESLER: of_stream(texts, sets)}
    if arguments.omikuji:
        for name, found in of_omikuji(arguments.omikuji, path).items():
            split[name] = measured(found["split"], sets[n:]) | {"s to learn": found["seconds"]}
            stream[name] = measured(found["stream"], sets[BEGINNING:])
    for title, lines in (("Split", split), ("Stream", stream)):
        race.add(f"**{title}**", table(COLUMNS, (line(*each) for each in lines.items())))
    check(race, split, stream)
    race.runs = {"split": split, "stream": stream}
    return race.write()


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--omikuji", metavar="PYTHON", help="Python with Omikuji and scikit-learn")
    return parser.parse_args()


def line(name: str, found: dict[str, float]) -> list[str]:
    """Return a line of a table."""
    shown = [f"{found[each]:.3f}" for each in MEASURES]
    return [name, *shown, *(f"{found[c]:.1f}" if c in found else "" for c in COLUMNS[-2:])]


def read(path: Path) -> tuple[list[str], list[list[str]]]:
    """Return the texts and their subjects."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [each.rstrip("\n").split("\t") for each in lines]
    return [text for text, _ in rows], [subjects.split() for _, subjects in rows]


def measured(found: Suggestions, sets: Sequence[Sequence[str]]) -> dict[str, float]:
    """Return the means of all measures over documents."""
    gains = 1 / np.log2(np.arange(2, 2 + N_BEST))
    rows = []
    for suggested, own in zip(found, sets, strict=True):
        hits = np.zeros(N_BEST)
        hits[: len(suggested)] = np.isin(suggested, own)
        best = gains[: len(own)].sum()
        f1 = 2 * hits.sum() / (N_BEST + len(own))
        rows.append([hits[0], hits[:3].mean(), hits.mean(), hits @ gains / best if best else 0, f1])
    return dict(zip(MEASURES, np.mean(rows, axis=0).tolist(), strict=True))


def share_unseen(before: Iterable[Sequence[str]], sets: Iterable[Sequence[str]]) -> float:
    """Return the mean share of subjects of a document that none before had."""
    seen = {label for own in before for label in own}
    return float(np.mean([np.mean([label not in seen for label in own]) for own in sets if own]))


def of_split(race: Race, texts: list[str], sets: list[list[str]], n: int) -> dict[str, float]:
    """Learn the first documents and answer the others."""
    OnlineMultilabelClassifier().partial_fit(texts[:200], sets[:200]).predict_top(texts[:2])
    model, start = OnlineMultilabelClassifier(), time.process_time()
    model.partial_fit(texts[:n], sets[:n])
    seconds, found, each = time.process_time() - start, [], []
    for text in texts[n:]:
        start = time.perf_counter()
        found.append([best.label for best in model.predict_top_one(text, N_BEST)])
        each.append(1e3 * (time.perf_counter() - start))
    race.add(
        f"{len(model.classes_):,} subjects learnt; {model.candidate_recall_:.1%} of those known "
        f"were candidates; {share_unseen(sets[:n], sets[n:]):.1%} of those of a document of the "
        "rest were never seen before."
    )
    own = {"s to learn": seconds, "ms for one": median(each)}
    return measured(found, sets[n:]) | own


def of_stream(texts: list[str], sets: list[list[str]]) -> dict[str, float]:
    """Answer each document before it is learnt."""
    model, found = OnlineMultilabelClassifier(), []
    model.partial_fit(texts[:BEGINNING], sets[:BEGINNING])
    for text, own in zip(texts[BEGINNING:], sets[BEGINNING:], strict=True):
        found.append([best.label for best in model.predict_top_one(text, N_BEST)])
        model.learn_one(text, own)
    return measured(found, sets[BEGINNING:])


def of_omikuji(python: str, path: Path) -> dict[str, dict[str, Suggestions]]:
    """Return the suggestions of Omikuji, which another Python runs."""
    script = Path(__file__).with_name("subjects_omikuji.py")
    command = [python, str(script), str(path), str(BEGINNING), str(N_BEST)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    found: dict[str, dict[str, Suggestions]] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(
    race: Race, split: dict[str, dict[str, float]], stream: dict[str, dict[str, float]]
) -> None:
    """Check that suggestions are as good as those of Omikuji, and fast."""
    for title, lines in (("split", split), ("stream", stream)):
        peers = [found for name, found in lines.items() if name != KESLER]
        for name in MEASURES if peers else ():
            most = max(found[name] for found in peers)
            race.at_least(f"{name} of the {title}", lines[KESLER][name], round(most, 4))
    race.at_most("milliseconds for one document", split[KESLER]["ms for one"], 5)


if __name__ == "__main__":
    sys.exit(main())
