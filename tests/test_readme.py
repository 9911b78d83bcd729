"""The README's examples in Python run as printed, one after the other."""

import doctest
import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from first_contact.tickets import select, tickets
from kesler.datasets import load_pendigits

README = Path(__file__).parents[1] / "README.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
PENS = load_pendigits()
ROWS = PENS.X[:90].astype(np.float64) / 50 - 1
TICKETS, TEAMS = tickets(100)
LABELS = np.array(["ham", "spam", "work"])[PENS.y[:90] % 3]


def features(words, tags):
    phi = {}
    for name in [*zip(words, tags, strict=True), *pairwise(tags)]:
        phi[name] = phi.get(name, 0) + 1
    return phi


def best(weights, words, cost=lambda tags: 0):
    """Return the best tags of two words, of all four; the cost is added to the score."""

    def score(tags):
        return sum(weights[f] * n for f, n in features(words, tags).items()) + cost(tags)

    return max(("NN", "NV", "VN", "VV"), key=score)


def hamming(one, other):
    return float(sum(a != b for a, b in zip(one, other, strict=True)))


def augmented(weights, words, tags):
    return best(weights, words, lambda other: hamming(tags, other))


GIVEN = {
    "X": ROWS,
    "y": LABELS,
    "Y": np.stack([LABELS == "spam", LABELS != "work"], axis=1).astype(int),
    "ranks": np.argsort(np.random.default_rng(0).random((90, 4)), axis=1) + 1,
    "values": np.random.default_rng(1).random((90, 2, 3)),
    "X_valid": ROWS[:30],
    "y_valid": LABELS[:30],
    "features": features,
    "viterbi": best,
    "viterbi_augmented": augmented,
    "hamming": hamming,
    "sentences": [("fish", "swim"), ("fish", "fish")] * 5,
    "tags": ["NV", "NN"] * 5,
    "new_sentences": [("fish", "swim")],
    "frame": pd.DataFrame(select(TICKETS, "ticket", "body", "hours", "opened")),
    "teams": TEAMS,
}
"""What the text around the examples assumes."""

OF_BLOCK = {
    "OnlineOrdinalClassifier": {"y": np.array(["low", "mid", "high"])[PENS.y[:90] % 3]},
    'LinearMax("wma"': {"y": np.where(LABELS == "ham", "work", LABELS)},
    "StructuredLearner": {"tags": GIVEN["tags"]},
}
"""Names that have other values in the block with a text, and those that a block has changed."""

ON_A_CLUSTER = "kesler.distributed"  # tests/test_distributed.py


def test_every_example_is_found():
    text = README.read_text("utf-8")
    assert text.count("```") == 2 * len(BLOCKS) > 20
    assert sum(ON_A_CLUSTER in block for block in BLOCKS) == 1


def test_the_examples_run_as_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    space = dict(GIVEN)
    for block in BLOCKS:
        if ON_A_CLUSTER in block:
            continue
        own = next((given for text, given in OF_BLOCK.items() if text in block), {})
        run(block, {name: GIVEN.get(name) for name in ("X", "y")} | own, space)
        require_printed(block, capsys.readouterr().out)


def run(block, given, space):
    space.update(given)
    try:
        exec(compile(block, "README.md", "exec"), space)
    except Exception as error:
        pytest.fail(f"{type(error).__name__}: {error}, in\n{block}")


def require_printed(block, out):
    """What is printed is the comment behind `print`, where "..." stands for anything."""
    expected = re.findall(r"^print\(.*\)  # (.*)$", block, re.MULTILINE)
    matches = doctest.OutputChecker().check_output
    assert len(out.splitlines()) == len(expected)
    for line, wanted in zip(out.splitlines(), expected, strict=True):
        assert matches(f"{wanted}\n", f"{line}\n", doctest.ELLIPSIS), (wanted, line)
