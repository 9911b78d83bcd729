"""Sequences of DNA and proteins: their runs of letters against ones that are written out."""

from __future__ import annotations

import math
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kesler import KeslerError, OnlineClassifier
from kesler.data.schema.inference import infer
from kesler.data.schema.sequences import LENGTH, entries_of_sequences, letters_of

PAIRS = dict(zip("ACGTRYKMBDHVNSW", "TGCAYRMKVHDBNSW", strict=True))
"""The complements of nucleotides, after IUPAC."""


def written_out(sequence: str, k: int, *, both: bool = False) -> dict[str, float]:
    """Return the features of a sequence, run by run."""
    strands = [sequence]
    if both:
        strands.append("".join(PAIRS[letter] for letter in reversed(sequence)))
    counts = Counter(s[i : i + k] for s in strands for i in range(len(s) - k + 1))
    values = {run: 1 + math.log(n) for run, n in counts.items()}
    length = math.hypot(*values.values())
    return {f"dna~{run}": LENGTH * value / length for run, value in values.items()}


sequences = st.lists(st.none() | st.text("".join(PAIRS), max_size=60), max_size=8)


@given(sequences, st.integers(1, 12), st.booleans())
def test_features_are_damped_counts_of_runs(found: list[Any], k: int, both: bool) -> None:
    entries = entries_of_sequences("dna", found, {"k": k, "reverse_complement": both})
    assert len(entries) == len(found)
    for row, sequence in zip(entries, found, strict=True):
        assert row == pytest.approx({} if sequence is None else written_out(sequence, k, both=both))


@given(st.text("ACGT", min_size=9, max_size=60))
def test_both_strands_have_the_same_features(sequence: str) -> None:
    reverse = "".join(PAIRS[letter] for letter in reversed(sequence))
    options = {"k": 8, "reverse_complement": True}
    one, other = entries_of_sequences("dna", [sequence, reverse], options)
    assert one == pytest.approx(other)


def test_cells_are_read_as_letters() -> None:
    assert letters_of(" ac-gu.NN\n") == "ACGTNN"  # RNA, aligned
    assert letters_of("mkuLV*") == "MKULV"  # a protein with selenocysteine


def of_families(n: int, letters: str = "ACGT") -> tuple[list[str], list[str]]:
    """Return sequences that are copies of three others with mutations, and their families."""
    drawn = random.Random(5)
    ancestors = {name: drawn.choices(letters, k=200) for name in ("oak", "elm", "ash")}
    rows, families = [], []
    for _ in range(n):
        family = drawn.choice([*ancestors])
        copy = [drawn.choice(letters) if drawn.random() < 0.1 else a for a in ancestors[family]]
        begin = drawn.randrange(80)
        rows.append("".join(copy[begin : begin + 100]))
        families.append(family)
    return rows, families


@pytest.mark.parametrize(("letters", "k"), [("ACGT", 8), ("ACGU", 8), ("ACDEFGHIKLMNPQRSTVWY", 3)])
def test_sequences_are_learnt(letters: str, k: int) -> None:
    rows, families = of_families(200, letters)
    is_protein = len(letters) > 4
    columns: Any = {"s": "sequence"} if is_protein else "auto"
    model = OnlineClassifier(columns=columns).fit([{"s": row} for row in rows], families)
    assert model.schema_["s"].kind == "sequence" and model.schema_["s"].options["k"] == k
    assert model.n_mistakes_ <= 8
    assert model.predict_one({"s": rows[0].lower()}) == families[0]


def test_either_strand_is_known() -> None:
    rows, families = of_families(200)
    columns = {"s": {"kind": "sequence", "reverse_complement": True}}
    model = OnlineClassifier(columns=columns).fit([{"s": row} for row in rows], families)
    reverse = ["".join(PAIRS[letter] for letter in reversed(row)) for row in rows]
    answers = model.predict([{"s": row} for row in reverse])
    assert sum(answers == families) >= 195


def test_words_are_no_sequences() -> None:
    (column,) = infer({"word": ["cat", "tag", "gattaca"] * 20}, {})
    assert column.kind == "category"


@pytest.mark.parametrize("options", [{"k": 0}, {"k": 33}, {"k": "8"}, {"reverse_complement": 1}])
def test_options_that_are_none_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(KeslerError, match='a sequence "k"'):
        OnlineClassifier(columns={"s": {"kind": "sequence", **options}}).fit([{"s": "ACGT"}], ["a"])
