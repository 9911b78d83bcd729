"""Taxa of DNA: ranks learnt beside the species, compared with naive Bayes and the species alone.

    KESLER_DATA=... python benchmarks/taxa.py [--quick] [--sets fungi_its ...]

Sequences of a reference, in an order drawn once, are learnt, and those of other specimens answered
(fold 0 of Bokulich and others, 2018, Microbiome 6:90; other folds are kept aside). "species" and
"genus" are the share in % of the queries whose answer is right down to this rank, whatever its
confidence; of many queries the reference has no species or genus. "ranks" is
`OnlineClassifier(ranks=";", columns={"sequence": "sequence"})` with `predict_path`, "species alone"
the same without `ranks`. Naive Bayes has the settings of the field: runs of 7 letters hashed to
8,192 columns, alpha 0.001, no prior. "nearest" answers with the label of the reference that shares
most runs of 8 letters, by the cosine; it shows what can be told from them, at a cost that grows
with the reference.

P(new) is the mean probability that the path is new down to a rank, beside the share of queries of
which this is so. Of novel taxa, the reference has none of the species: right is an answer that ends
at the genus, precision is of answers down to the genus or further, recall of all queries. Times are
of the processor, on one thread, after an untimed run over 200 rows where loops are compiled.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from racing import Race, command_line, table

SETS = {"fungi_its": "Fungi, ITS", "bacteria_16s": "Bacteria, 16S", "novel_16s": "Novel taxa, 16S"}
NOVEL = "novel_16s"
GENUS, SPECIES = 6, 7
LEASTS = (0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
TARGETS = {"fungi_its": {GENUS: 80, SPECIES: 24}, "bacteria_16s": {GENUS: 92, SPECIES: 80}}
LEAST_F, LEAST_PRECISION, MOST_OFF = 0.30, 0.60, 0.02
N_QUICK = 600
NB_COLUMNS, NB_ALPHA, NB_RUN, NEAREST_RUN = 8192, 0.001, 7, 8


@dataclass(frozen=True)
class Taxa:
    """Sequences and taxa of a reference and of queries."""

    sequences: list[str]
    taxa: list[str]
    queries: list[str]
    targets: list[str]

    def known(self, rank: int) -> set[str]:
        """Return the paths of the reference down to a rank."""
        return {cut(each, rank) for each in self.taxa}


@dataclass
class Found:
    """The answers of a learner, its seconds, and P(new) of each query and rank if it has any."""

    answers: list[str]
    learning: float = 0.0
    answering: float = 0.0
    new: dict[int, float] = field(default_factory=dict)
    sure: dict[float, list[str]] = field(default_factory=dict)


def cut(taxon: str, rank: int) -> str:
    """Return a taxon down to a rank.

    Examples
    --------
    >>> cut("k__Fungi;p__Ascomycota;c__", 2)
    'k__Fungi;p__Ascomycota'
    """
    return ";".join(taxon.split(";")[:rank])


def loaded(name: str, most: int | None) -> Taxa:
    """Return a set, its reference in an order drawn once."""
    parts = []
    for part in ("reference", "query"):
        path = Path(os.environ["KESLER_DATA"]) / "taxa" / f"{name}_{part}.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            parts.append([json.loads(line) for line in lines])
    reference, queries = parts
    order = np.random.default_rng(0).permutation(len(reference))[:most]
    return Taxa(
        [reference[i]["sequence"] for i in order],
        [reference[i]["taxon"] for i in order],
        [each["sequence"] for each in queries[:most]],
        [each["taxon"] for each in queries[:most]],
    )


# ---- learners -----------------------------------------------------------------------------------


def kesler(taxa: Taxa, **settings: Any) -> Found:
    """Learn and answer with our learner."""
    from kesler import OnlineClassifier

    settings = {"columns": {"sequence": "sequence"}, **settings}
    rows, queries = ([{"sequence": s} for s in each] for each in (taxa.sequences, taxa.queries))
    OnlineClassifier(**settings).fit(rows[:200], taxa.taxa[:200]).predict_path(queries[:9])
    model = OnlineClassifier(**settings)
    found, learning = timed(lambda: model.fit(rows, taxa.taxa))
    answers, answering = timed(lambda: found.predict_path(queries, 0.0))
    new = {
        rank: float(
            np.mean([[*each.new.values()][min(rank, len(each.new)) - 1] for each in answers])
        )
        for rank in (GENUS - 1, GENUS, SPECIES)
    }
    sure = {least: [each.path for each in found.predict_path(queries, least)] for least in LEASTS}
    return Found([each.path for each in answers], learning, answering, new, sure)


def naive_bayes(taxa: Taxa) -> Found:
    """Learn and answer with naive Bayes."""
    from sklearn.feature_extraction.text import HashingVectorizer
    from sklearn.naive_bayes import MultinomialNB

    runs = HashingVectorizer(
        analyzer="char_wb",
        ngram_range=(NB_RUN, NB_RUN),
        n_features=NB_COLUMNS,
        alternate_sign=False,
    )
    model = MultinomialNB(alpha=NB_ALPHA, fit_prior=False)
    _, learning = timed(lambda: model.fit(runs.transform(taxa.sequences), taxa.taxa))
    answers, answering = timed(lambda: model.predict(runs.transform(taxa.queries)))
    return Found(answers.tolist(), learning, answering)


def nearest(taxa: Taxa) -> Found:
    """Answer with the label of the nearest sequence."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import Normalizer

    counts = CountVectorizer(
        analyzer="char", ngram_range=(NEAREST_RUN, NEAREST_RUN), lowercase=False, binary=True
    )
    model = make_pipeline(counts, Normalizer(), KNeighborsClassifier(1, n_jobs=1))
    _, learning = timed(lambda: model.fit(taxa.sequences, taxa.taxa))
    answers, answering = timed(lambda: model.predict(taxa.queries))
    return Found(answers.tolist(), learning, answering)


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result of a run, and its seconds of the processor."""
    start = time.process_time()
    return run(), time.process_time() - start


LEARNERS: dict[str, Callable[[Taxa], Found]] = {
    "ranks": lambda taxa: kesler(taxa, ranks=";"),
    "ranks, 3 epochs": lambda taxa: kesler(taxa, ranks=";", epochs=3),
    "species alone": kesler,
    "naive Bayes": naive_bayes,
    "nearest": nearest,
}
OURS = ("ranks", "ranks, 3 epochs")


# ---- results ------------------------------------------------------------------------------------


def right(found: Found, taxa: Taxa, rank: int) -> float:
    """Return the share in % of answers that are right down to a rank."""
    pairs = zip(found.answers, taxa.targets, strict=True)
    return 100 * float(np.mean([cut(a, rank) == cut(t, rank) for a, t in pairs]))


def share_new(taxa: Taxa, rank: int) -> float:
    """Return the share of queries whose path is new down to a rank."""
    known = taxa.known(rank)
    return float(np.mean([cut(each, rank) not in known for each in taxa.targets]))


def novel(answers: Sequence[str], taxa: Taxa) -> tuple[float, float, float]:
    """Return precision, recall and F of answers that are to end at the genus."""
    deep = sum(len(each.split(";")) >= GENUS for each in answers)
    n_right = sum(
        each == cut(target, GENUS) for each, target in zip(answers, taxa.targets, strict=True)
    )
    precision, recall = n_right / max(1, deep), n_right / len(answers)
    return precision, recall, 2 * precision * recall / max(precision + recall, 1e-12)


def run_set(race: Race, name: str) -> dict[str, Found]:
    """Run all learners on a set, and add its tables."""
    taxa = loaded(name, N_QUICK if race.is_quick else None)
    found = {learner: run(taxa) for learner, run in LEARNERS.items()}
    rows = []
    for learner, each in found.items():
        shares = [f"{right(each, taxa, rank):.2f}" for rank in (SPECIES, GENUS, GENUS - 1)]
        new = [f"{each.new[r]:.3f}" if each.new else "-" for r in (SPECIES, GENUS, GENUS - 1)]
        rows.append([learner, f"{each.learning:.1f}", f"{each.answering:.1f}", *shares, *new])
    truth = [f"{share_new(taxa, rank):.3f}" for rank in (SPECIES, GENUS, GENUS - 1)]
    rows.append(["truth", "", "", "", "", "", *truth])
    header = ["learner", "learning, s", "answering, s", "species %", "genus %", "family %"]
    header += ["P(new) species", "genus", "family"]
    sizes = f"{len(taxa.taxa):,} sequences of {len(taxa.known(SPECIES)):,} taxa"
    race.add(f"### {SETS[name]}: {sizes}, {len(taxa.queries):,} queries", table(header, rows))
    if name == NOVEL:
        race.add(table_of_novel(found, taxa))
    race.runs[name] = {
        learner: {
            "learning": each.learning,
            "answering": each.answering,
            "right": {rank: right(each, taxa, rank) for rank in range(1, SPECIES + 1)},
            "new": each.new,
        }
        for learner, each in found.items()
    }
    if not race.is_quick:
        check(race, name, taxa, found)
    return found


def table_of_novel(found: dict[str, Found], taxa: Taxa) -> str:
    """Return the table of answers that stop at a rank."""
    rows = []
    for learner, each in found.items():
        for least, answers in each.sure.items():
            cells = (f"{value:.3f}" for value in novel(answers, taxa))
            rows.append([learner, f"{least}", *cells])
    return table(["learner", "min_confidence", "precision", "recall", "F"], rows)


def check(race: Race, name: str, taxa: Taxa, found: dict[str, Found]) -> None:
    """Check the targets."""
    for rank, least in TARGETS.get(name, {}).items():
        best = max(right(found[each], taxa, rank) for each in OURS)
        race.at_least(f"{name}: {'genus' if rank == GENUS else 'species'} right, %", best, least)
    if name == NOVEL:
        scores = [novel(each, taxa) for ours in OURS for each in found[ours].sure.values()]
        best = max((f for precision, _, f in scores if precision >= LEAST_PRECISION), default=0.0)
        race.at_least(f"{name}: F at a precision of {LEAST_PRECISION}", best, LEAST_F)
    else:
        off = max(abs(found["ranks"].new[r] - share_new(taxa, r)) for r in found["ranks"].new)
        race.at_most(f"{name}: P(new) off at any rank", off, MOST_OFF)
    ours, theirs = (found[each] for each in ("ranks", "naive Bayes"))
    ratio = (ours.learning + ours.answering) / (theirs.learning + theirs.answering)
    race.at_most(f"{name}: time relative to naive Bayes", ratio, 1.0)


def main() -> int:
    """Run all sets and write the results."""
    arguments = parse()
    if not os.environ.get("KESLER_DATA"):
        if arguments.quick:
            return 0
        sys.exit("KESLER_DATA must name a folder with the sets of taxa/")
    race = Race("taxa", "Taxa", __doc__, arguments)
    race.clock = "processor"
    for name in arguments.sets:
        run_set(race, name)
    return race.write()


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = command_line(__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS), help="these")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
