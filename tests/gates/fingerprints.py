"""Fingerprints of every prediction, score, probability and weight, to compare two versions.

    python tests/gates/fingerprints.py before.jsonl           # compiled
    python tests/gates/fingerprints.py after.jsonl --against before.jsonl
    NUMBA_DISABLE_JIT=1 python tests/gates/fingerprints.py quick.jsonl

One line a cell: its name, and the digest of all that a small stream led to. The cells are the rows
of the registries that the tests use, and the learners of the accuracy gate on its sets. With
nothing compiled the streams are shorter and the sets are left out, so that files of the two modes
are not to be compared. With `--against` the cells that differ are printed, and it exits 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from scipy import sparse

import cases
import grid
import kesler
import learners
import registry
import streams
import test_kernels
import test_sub_experts
from kesler.learner.support_vectors import PANEL

IS_COMPILED = os.environ.get("NUMBA_DISABLE_JIT") != "1"
N_ROWS = 60 if IS_COMPILED else 10
"""Rows of each of the pieces in which a learner is given its stream."""
N_PROBES = 12 if IS_COMPILED else 3

RECORDED = ("n_mistakes", "predictions", "probabilities", "scores")
"""What is noted of progressive validation, as far as the answers are of a kind that has it."""

Stream = tuple[Any, list[Any]]


@dataclass(frozen=True)
class Cell:
    """A learner, and what it is to learn.

    Parameters
    ----------
    name : str
    make : function () -> learner
    stream : rows and answers
    in_sparse_rows : bool
        Whether its weights are to stand in sparse rows, however few they are.
    runs : function (learner, rows, answers, digest)
        How it learns and what it is asked.
    """

    name: str
    make: Callable[[], Any]
    stream: Stream
    in_sparse_rows: bool = False
    runs: Callable[[Any, Any, list[Any], Digest], None] | None = None  # by pieces


# ---- what depends on names inside the package ---------------------------------------------------


def weights_of(model: Any) -> list[Any]:
    """Return what was learnt: weights by part, or the vectors and coefficients of a kernel."""
    if not hasattr(model, "_new_learner"):
        return [getattr(model, name) for name in ("coef_", "intercept_") if hasattr(model, name)]
    learner = model._learner
    if hasattr(learner, "members"):
        return [weights for member in learner.members for weights in weights_of_one(member)]
    return weights_of_one(learner)


def weights_of_one(learner: Any) -> list[Any]:
    """Return the weights of one learner, its trees, or its support vectors and coefficients."""
    if learner.grows_trees:
        return [array for _, array in sorted(learner.arrays().items())]
    if not hasattr(learner, "supports"):
        return list(learner.hypothesis_weights())
    return [
        array
        for part in range(len(learner.parts))
        for array in support_vectors(learner.supports, part)
    ]


def support_vectors(supports: Any, part: int) -> list[Any]:
    """Return the support vectors of one part from the first panel in use on, and coefficients."""
    own = {
        n: array[part] for n, array in supports.stored.items() if "recent" not in n and len(array)
    }
    n, first = own["following"], own["oldest"] // PANEL * PANEL
    entries = slice(own["entry_starts"][first], own["entry_starts"][n])
    values = slice(0) if supports.in_panels else slice(own["starts"][first], own["starts"][n])
    return [
        own["panels"][first // PANEL : -(-n // PANEL), : supports.n_features],
        *(own[name][values] for name in ("features", "values")),
        *(own[name][entries] for name in ("owners", "coefficients")),
    ]


@contextmanager
def no_room_for_tables() -> Iterator[None]:
    """Let weights stand in sparse rows from the start."""
    from kesler.learner import state

    largest = state.LARGEST_TABLE
    state.LARGEST_TABLE = 0
    try:
        yield
    finally:
        state.LARGEST_TABLE = largest


# ---- the cells ----------------------------------------------------------------------------------


def cells() -> Iterator[Cell]:
    """Yield every cell but those of the sets."""
    yield from of_grid()
    yield from of_registry()
    yield from of_answers()
    yield from of_kernels()
    yield from of_sub_experts()
    yield from of_ensembles()
    yield from of_other_learners()


def of_grid() -> Iterator[Cell]:
    rows, digits = grid.real_rows()
    n = 3 * N_ROWS + N_PROBES
    for cell in grid.CELLS:
        stream = rows[:n], grid.answers_to(cell.answers, digits[:n])
        yield Cell(f"grid/{cell.name}", cell.learner, stream)
    for algorithm in kesler.algorithms.ALGORITHMS:
        for hypotheses in grid.HYPOTHESES:
            learner = grid.Maxed(algorithm, hypotheses).learner
            yield Cell(f"grid/linear-max-{algorithm}-{hypotheses}", learner, of_classes())


def of_registry() -> Iterator[Cell]:
    for row in registry.ROWS:
        yield Cell(f"registry/{row.name}", row.learner, of_classes(), row.sparse)


def of_answers() -> Iterator[Cell]:
    n = 3 * N_ROWS + N_PROBES
    for case in cases.CASES:
        yield Cell(f"answers/{case.name}", case.learner, cases.some(case.estimator, 3, n))


def of_kernels() -> Iterator[Cell]:
    for case in test_kernels.CASES:
        yield Cell(f"kernels/{case.name}", case.learner, of_classes())


def of_sub_experts() -> Iterator[Cell]:
    council = test_sub_experts.make_council(5, 3 * N_ROWS + N_PROBES)
    for family, rule in product(test_sub_experts.FAMILIES, registry.PLAIN_RULES):
        make = partial(test_sub_experts.learner, family, rule)
        stream = council, council.y.tolist()
        yield Cell(f"sub-experts/{family}-{rule}", make, stream, runs=run_ratings)


def of_ensembles() -> Iterator[Cell]:
    """Yield the ways of combining learners that differ in all that an ensemble must bear."""
    stored = [
        "pa1-multi",
        "softmax-hybrid-product-mean",
        "perceptron-born",
        "linear-max-romma-multi",
    ]
    members = [row for row in registry.ROWS if row.name in stored]
    assert len(members) == len(stored)

    def ensemble(combine: Any) -> Any:
        kernel = kesler.OnlineClassifier("multi", update="pa1", kernel="rbf", sigma=2.0)
        return kesler.Ensemble([*(row.learner() for row in members), kernel], combine)

    for combine in ("mixture", "best", "majority"):
        yield Cell(f"ensembles/{combine}", lambda way=combine: ensemble(way), of_classes())
    yield Cell(
        "ensembles/default", lambda: kesler.OnlineClassifier(update="ensemble"), of_classes()
    )


def of_other_learners() -> Iterator[Cell]:
    """Yield what no registry of the tests has: costs, batch learners and reductions."""
    for name, make in ONLINE.items():
        yield Cell(f"online/{name}", make, of_classes())
    for name, make in BATCH.items():
        yield Cell(f"batch/{name}", make, of_classes(), runs=run_at_once)


def distance(label: Any, other: Any) -> float:
    return 1.0 + abs(label - other)


def _binary() -> Any:
    return kesler.OnlineClassifier("multi", update="pa1")


ONLINE: dict[str, Callable[[], Any]] = {
    "costs": lambda: kesler.OnlineClassifier("hybrid", "distance", "simproj", costs=distance),
    "costs-mira": lambda: kesler.OnlineClassifier("multi", update="mira", costs=distance),
    "costs-kernel": lambda: kesler.OnlineClassifier(update="pa1", kernel="rbf", costs=distance),
    "default-kernel": lambda: kesler.OnlineClassifier(kernel="rbf"),
    "one-vs-rest": lambda: kesler.OneVsRest(_binary()),
    "one-vs-one": lambda: kesler.OneVsOne(_binary()),
    "filter-tree": lambda: kesler.FilterTree(_binary()),
    "tournament": lambda: kesler.ErrorCorrectingTournament(_binary()),
    "codes": lambda: kesler.ErrorCorrectingCode(_binary(), random_state=0),
    "one-against-some": lambda: kesler.OneAgainstSome(_binary()),
}
BATCH: dict[str, Callable[[], Any]] = {
    "label-tree": lambda: kesler.LabelTree(_binary()),
    "kesler-reduction": lambda: kesler.KeslerReduction(),
    "crammer-singer": lambda: kesler.CrammerSingerClassifier(random_state=0),
    "crammer-singer-kernel": lambda: kesler.CrammerSingerClassifier(kernel="rbf", random_state=0),
    "crammer-singer-hybrid": lambda: kesler.CrammerSingerClassifier(
        hypotheses="hybrid", feature_map="difference", random_state=0
    ),
    "softmax": lambda: kesler.SoftmaxClassifier(),
    "mixed-norm": lambda: kesler.MixedNormClassifier(),
    "jointboost": lambda: kesler.JointBoostClassifier(8),
    "shareboost": lambda: kesler.ShareBoostClassifier(4),
    "shareboost-stumps": lambda: kesler.ShareBoostClassifier(4, dictionary="stumps"),
    "shareboost-products": lambda: kesler.ShareBoostClassifier(4, dictionary="products"),
}


def of_classes() -> Stream:
    """Return rows of a class each, whose numbers need not be those of the order."""
    stream = streams.make_stream(7, 3 * N_ROWS + N_PROBES)
    return stream.X, stream.y.tolist()


# ---- what a learner makes of its stream ---------------------------------------------------------


class Digest:
    """A sum over all that is found, in order."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()

    def add(self, name: str, found: Any) -> None:
        """Add an array, bit for bit, or whatever else prints alike if it is alike."""
        self._sum.update(name.encode())
        if sparse.issparse(found):
            found = found.toarray()
        if isinstance(found, np.ndarray) and found.dtype != object:
            self._sum.update(f"{found.dtype.str}{found.shape}".encode())
            self._sum.update(np.ascontiguousarray(found).tobytes())
        else:
            plain = found.tolist() if isinstance(found, np.ndarray) else found
            self._sum.update(repr(plain).encode())

    def __str__(self) -> str:
        return self._sum.hexdigest()[:32]


def fingerprint(cell: Cell) -> str:
    """Return the digest of a cell, or "refused" if the learner cannot be made or learns nothing."""
    found = Digest()
    try:
        if cell.in_sparse_rows:
            with no_room_for_tables():
                learn_and_note(cell, found)
        else:
            learn_and_note(cell, found)
    except kesler.KeslerError:
        return "refused"
    return str(found)


def learn_and_note(cell: Cell, found: Digest) -> None:
    """Let the learner have its stream, and note what it says on the way and at the end."""
    (X, y), model = cell.stream, cell.make()
    (cell.runs or run_by_pieces)(model, X, y, found)
    for i, weights in enumerate(weights_of(model)):
        found.add(f"weights {i}", weights)


def run_at_once(model: Any, X: Any, y: list[Any], found: Digest) -> None:
    """Fit a batch learner."""
    model.fit(X[:-N_PROBES], y[: len(X) - N_PROBES])
    note_answers(model, X[-N_PROBES:], found)


def run_ratings(model: Any, council: Any, y: list[Any], found: Digest) -> None:
    """Give what sub-experts say, whole and one by one."""
    n = len(y) - N_PROBES
    first, others, probes = slice(n // 2), range(n // 2, n), slice(n, None)
    note_progressive(model, council.dense(rows=first), y[first], found)
    for i in others:
        model.partial_fit(council.entries(rows=slice(i, i + 1)), y[i : i + 1])
    note_answers(model, council.dense(rows=probes), found)


def run_by_pieces(model: Any, X: Any, y: list[Any], found: Digest) -> None:
    """Give rows by table, weighed by table, sparse by table and one by one."""
    first, second, third, fourth, probes = pieces(len(X))
    if hasattr(model, "learn_one"):
        note_progressive(model, X[first], y[first], found)
    else:
        model.partial_fit(X[first], y[first])
    weights = np.resize([0.5, 1.0, 2.0], len(y[second]))
    given(found, "weighed", lambda: model.partial_fit(X[second], y[second], sample_weight=weights))
    rows = sparse.csr_array(X[third])
    given(found, "sparse", lambda: model.partial_fit(rows, y[third]))
    for x, answer in zip(X[fourth], y[fourth], strict=True):
        if hasattr(model, "learn_one"):
            found.add("one", model.predict_one(x))
            model.learn_one(x, answer)
    note_answers(model, X[probes], found)


def pieces(n: int) -> list[slice]:
    """Return the rows of four pieces, and those that are not learnt."""
    m = n - N_PROBES
    cuts = [0, m // 2, 3 * m // 4, 7 * m // 8, m, n]
    return [slice(*pair) for pair in pairwise(cuts)]


def note_progressive(model: Any, X: Any, y: list[Any], found: Digest) -> None:
    """Let rows be predicted, then learnt."""
    result = kesler.progressive_validate(model, X, y)
    for name in RECORDED:
        found.add(name, getattr(result, name, None))


def given(found: Digest, name: str, learn: Callable[[], Any]) -> None:
    """Let a learner have rows that some refuse, and note whether this one does."""
    try:
        learn()
    except (kesler.KeslerError, TypeError, ValueError) as error:
        found.add(name, f"refused: {type(error).__name__}")


def note_answers(model: Any, probes: Any, found: Digest) -> None:
    """Note what is said of rows that were not learnt."""
    for method in ("predict", "decision_function", "predict_proba"):
        if hasattr(model, method):
            given(found, method, lambda name=method: found.add(name, getattr(model, name)(probes)))
    if hasattr(model, "classes_"):
        found.add("classes", list(np.asarray(model.classes_).tolist()))
    for count in ("n_mistakes_", "n_trials_"):
        if hasattr(model, count):
            found.add(count, int(getattr(model, count)))


def fingerprint_of_set(name: str, learner: str) -> str:
    """Return the digest of predictions and weights on a real set."""
    found = Digest()
    model, result = learners.run(name, learner)
    found.add("predictions", result.predictions)
    found.add("probabilities", result.probabilities)
    for i, weights in enumerate(weights_of(model)):
        found.add(f"weights {i}", weights)
    return str(found)


# ---- files --------------------------------------------------------------------------------------


def all_fingerprints(only: str) -> Iterator[tuple[str, str]]:
    """Yield names of cells that begin in a given way, and their digests."""
    for cell in cells():
        if cell.name.startswith(only):
            yield cell.name, fingerprint(cell)
    named = [(n, learner) for n in learners.NAMES for learner in learners.LEARNERS]
    for set_name, learner in named if IS_COMPILED and os.environ.get("KESLER_DATA") else []:
        name = f"sets/{set_name}/{learner}"
        if name.startswith(only):
            yield name, fingerprint_of_set(set_name, learner)


def read(path: Path) -> dict[str, str]:
    """Read a file of fingerprints."""
    with path.open(encoding="utf-8") as lines:
        return {found["cell"]: found["digest"] for found in map(json.loads, lines)}


def differences(now: dict[str, str], before: dict[str, str], only: str) -> list[str]:
    """Return a sentence for each cell that differs or stands in one file only."""
    sentences = [f"{name} is new" for name in now if name not in before]
    for name, digest in before.items():
        if name.startswith(only) and name not in now:
            sentences.append(f"{name} is missing")
        elif name in now and now[name] != digest:
            sentences.append(f"{name} differs: {digest} before, {now[name]} now")
    return sentences


def main() -> int:
    """Write the fingerprints, and compare them if asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("file", type=Path, help="where to write the fingerprints")
    parser.add_argument("--against", type=Path, help="fingerprints that these must equal")
    parser.add_argument("--only", default="", help="cells whose names begin so, e.g. registry/")
    arguments = parser.parse_args()
    begun, now = time.perf_counter(), {}
    with arguments.file.open("w", encoding="utf-8") as lines:
        for name, digest in all_fingerprints(arguments.only):
            now[name] = digest
            print(json.dumps({"cell": name, "digest": digest}), file=lines, flush=True)
    print(f"{len(now)} cells in {time.perf_counter() - begun:.0f} s, in {arguments.file}")
    if arguments.against is None:
        return 0
    sentences = differences(now, read(arguments.against), arguments.only)
    print(*sentences, f"{len(sentences)} cells differ from {arguments.against}", sep="\n")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
