"""What word vectors add to words: questions of 150 and of 77 intents, and questions of none.

    python benchmarks/word_vectors.py [--orders 3]

Learners are given the texts of the train part, in random orders, and asked about the test part;
of clinc150 also about its 1,000 questions that belong to no intent, of which the area under the ROC
curve is that of the probability of a new class. The vectors are those of the tokens of WordLlama
(256 numbers, learnt from other texts; packages wordllama, tokenizers and safetensors of PyPI), of
which a text has the mean, of length 1. `partial_fit` learns rows once, in their order, and `fit` in
an order of its own, as often as it chooses. The peers see the same train part at once: logistic
regression over TF-IDF of words and pairs, over the vectors, and over both. Times are microseconds
of processor time for a row, with the vectors of all texts computed beforehand. The script writes
benchmarks/results/word_vectors.md.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
import time
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from kesler import OnlineClassifier

sys.path.append(str(Path(__file__).parents[1] / "papers"))
from report import Report, table
from script_arguments import script_parser

SETS = ("clinc150", "banking77")
LEAST_RIGHT, LEAST_AREA, MOST_TIME = 0.938, 0.965, 4.0
Floats = npt.NDArray[np.float32]


@cache
def tokens() -> tuple[Any, Floats]:
    """Return the tokenizer and the vectors of tokens, of the files of the package WordLlama."""
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    spec = find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise SystemExit("install wordllama, tokenizers and safetensors")
    folder = Path(spec.origin).parent
    (weights,) = load_file(folder / "weights" / "l2_supercat_256.safetensors").values()
    names = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
    return Tokenizer.from_file(str(names)), weights.astype(np.float32)


def computed(texts: Sequence[str]) -> Floats:
    """Return the vectors of texts."""
    tokenizer, vectors = tokens()
    found = []
    for each in tokenizer.encode_batch(list(texts), add_special_tokens=False):
        mean = vectors[each.ids].mean(axis=0) if each.ids else np.zeros(vectors.shape[1])
        found.append(mean / (np.linalg.norm(mean) or 1.0))
    return np.array(found, dtype=np.float32)


class Questions:
    """A set of questions: texts, vectors and labels of its parts."""

    def __init__(self, name: str) -> None:
        path = Path(os.environ["KESLER_DATA"]) / "short_text" / f"{name}.jsonl.gz"
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        self.name, self.labels = name, np.array([row["label"] for row in rows], dtype=object)
        self.texts = [row["text"] for row in rows]
        self.vectors = computed(self.texts)
        self._known = dict(zip(self.texts, self.vectors, strict=True))
        parts = np.array([row["split"] for row in rows])
        self.train, self.test, self.outside = (
            np.flatnonzero(parts == part) for part in ("train", "test", "oos_test")
        )

    def vectors_of(self, texts: list[str]) -> Floats:
        """Return vectors computed beforehand: the function that learners are given."""
        return np.array([self._known.get(text, np.zeros(256)) for text in texts])

    def some(self, rows: npt.NDArray[np.int64]) -> list[str]:
        """Return the texts of rows."""
        return [self.texts[i] for i in rows.tolist()]


def measured(model: Any, how: str, asked: Questions, order: npt.NDArray[np.int64]) -> list[float]:
    """Return the share right, the area under the ROC curve, and microseconds a row."""
    start = time.process_time()
    getattr(model, how)(asked.some(order), asked.labels[order])
    seconds = time.process_time() - start
    inside = model.predict_proba(asked.some(asked.test), new=True)
    right = (model.classes_[inside[:, :-1].argmax(1)] == asked.labels[asked.test]).mean()
    area = np.nan
    if len(asked.outside):
        outside = model.predict_proba(asked.some(asked.outside), new=True)
        is_outside = np.repeat([0, 1], [len(inside), len(outside)])
        area = roc_auc_score(is_outside, np.r_[inside[:, -1], outside[:, -1]])
    return [100 * float(right), float(area), 1e6 * seconds / len(order)]


def of_peers(asked: Questions) -> dict[str, list[float]]:
    """Return what logistic regression makes of words, of vectors and of both."""
    words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True).fit(asked.some(asked.train))
    of_words = words.transform(asked.texts)
    of_vectors = sparse.csr_matrix(asked.vectors)
    found = {}
    for name, X in (
        ("logistic regression, words", of_words),
        ("logistic regression, vectors", of_vectors),
        ("logistic regression, both", sparse.hstack([of_words, of_vectors]).tocsr()),
    ):
        start = time.process_time()
        model = LogisticRegression(C=30.0, max_iter=200).fit(
            X[asked.train], asked.labels[asked.train]
        )
        seconds = time.process_time() - start
        best = model.predict_proba(X[asked.test]).max(axis=1)
        area = np.nan
        if len(asked.outside):
            far = model.predict_proba(X[asked.outside]).max(axis=1)
            is_outside = np.repeat([0, 1], [len(best), len(far)])
            area = roc_auc_score(is_outside, -np.r_[best, far])
        right = 100 * model.score(X[asked.test], asked.labels[asked.test])
        found[name] = [right, area, 1e6 * seconds / len(asked.train)]
    return found


def of_learners(asked: Questions, n_orders: int) -> dict[str, list[float]]:
    """Return what learners make of words, and of words and vectors, the means over orders."""
    found = {}
    for how in ("partial_fit", "fit"):
        for name, given in (("words", {}), ("words and vectors", {"vectors": asked.vectors_of})):
            each = [
                measured(
                    OnlineClassifier(**given),
                    how,
                    asked,
                    np.random.default_rng(seed).permutation(asked.train),
                )
                for seed in range(n_orders)
            ]
            found[f"{name}, `{how}`"] = np.mean(each, axis=0).tolist()
            print(asked.name, name, how, found[f"{name}, `{how}`"], flush=True)
    return found


def main() -> int:
    """Measure, and write the page."""
    parser = script_parser(__doc__, __file__)
    parser.add_argument("--orders", type=int, default=3)
    given = parser.parse_args()
    n_orders = given.orders
    page = Report("word_vectors", "Words and vectors of words", given.results)
    page.add(
        f"`python benchmarks/word_vectors.py`: % of right answers to the test part, the area under "
        f"the ROC curve of questions of no intent, and microseconds of processor time for a row "
        f"that is learnt; means over {n_orders} random orders."
    )
    for name in SETS:
        asked = Questions(name)
        found = of_learners(asked, n_orders)
        rows = [
            [each, f"{right:.2f}", "-" if np.isnan(area) else f"{area:.4f}", f"{us:.0f}"]
            for each, (right, area, us) in {**found, **of_peers(asked)}.items()
        ]
        page.add(f"## {name}", table(["learner", "right", "of none", "us"], rows))
        if name != "clinc150":
            continue
        words, both = found["words, `partial_fit`"], found["words and vectors, `partial_fit`"]
        page.check(f"clinc150: right {both[0]:.2f} %", both[0] >= 100 * LEAST_RIGHT)
        page.check(f"clinc150: area of none {both[1]:.4f}", both[1] >= LEAST_AREA)
        page.check(
            f"clinc150: {both[2] / words[2]:.2f} of the time", both[2] <= MOST_TIME * words[2]
        )
        again = found["words and vectors, `fit`"]
        page.check(f"clinc150, `fit`: right {again[0]:.2f} %", again[0] >= 100 * LEAST_RIGHT)
        page.check(f"clinc150, `fit`: area of none {again[1]:.4f}", again[1] >= LEAST_AREA)
    return page.write()


if __name__ == "__main__":
    sys.exit(main())
