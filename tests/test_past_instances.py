"""Algorithms that keep the instances of earlier trials: w := f(w, z_1, ..., z_t)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from extend_page import parts
from kesler import KeslerError, LinearMax, load, threshold_algorithm

KEPT, sub_expert_svm = parts.KEPT, parts.sub_expert_svm
CLASSES, SUB_EXPERTS = ["a", "b", "c"], 5
C = 0.5


def ratings(n_rows: int, seed: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Ratings by sub-experts of which the first two know the class, with errors."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(CLASSES, size=n_rows).tolist()
    rows = []
    for label in labels:
        table = rng.normal(size=(3, SUB_EXPERTS)).astype(np.float32)
        table[CLASSES.index(label), :2] += 1.5
        rows.append(dict(zip(CLASSES, table, strict=True)))
    return rows, labels


def weights_of_svm(Z: Any) -> Any:
    """The weights of a support vector machine of instances of label 1, by its dual."""

    def dual(alpha: Any) -> tuple[float, Any]:
        w = alpha @ Z
        return 0.5 * w @ w - alpha.sum(), Z @ w - 1

    options = {"maxiter": 10_000, "ftol": 1e-15, "gtol": 1e-10}
    bounds = [(0, C)] * len(Z)
    found = minimize(dual, np.zeros(len(Z)), jac=True, bounds=bounds, options=options)
    return found.x @ Z


def by_hand(rows: Any, labels: Any) -> tuple[Any, int]:
    """Mesterharm 2001, Sections 2.3 and 2.4: z = x^rho - x^A, and f reads all z so far."""
    w, past, known, mistakes = np.zeros(SUB_EXPERTS), [], [], 0
    for row, label in zip(rows, labels, strict=True):
        if label in known and len(known) > 1:
            votes = {r: float(w @ row[r].astype(float)) for r in known}
            mistakes += max(known, key=votes.__getitem__) != label
            rival = max((r for r in known if r != label), key=votes.__getitem__)
            z = row[label].astype(float) - row[rival].astype(float)
            if w @ z < 1:
                past.append(z)
                w = weights_of_svm(np.array(past))
        if label not in known:
            known.append(label)
    return w, mistakes


def test_a_support_vector_machine_over_sub_experts_equals_its_definition():
    rows, labels = ratings(120, 0)
    model = LinearMax(sub_expert_svm.with_parameters(C), "sub-experts").partial_fit(rows, labels)
    w, mistakes = by_hand(rows, labels)
    found = model._learner.hypothesis_weights()[0][:SUB_EXPERTS, 0] * model._learner.scale
    np.testing.assert_allclose(found, w, atol=2e-3)
    assert model.n_mistakes_ == mistakes > 0
    assert 10 < model._learner.stored["algorithm.numbers"][8] < KEPT


def test_files_keep_the_instances(tmp_path):
    rows, labels = ratings(100, 1)
    model = LinearMax(sub_expert_svm.with_parameters(C), "sub-experts")
    model.partial_fit(rows[:50], labels[:50])
    model.save(tmp_path / "m")
    again = load(tmp_path / "m", custom=[sub_expert_svm])
    for each in (model, again):
        each.partial_fit(rows[50:], labels[50:])
    kept = [each._learner.stored["algorithm.numbers"] for each in (model, again)]
    np.testing.assert_array_equal(*kept)
    np.testing.assert_array_equal(model._scores(rows), again._scores(rows))


@pytest.mark.parametrize("n_numbers", [7, 2**24 + 1, 8.5, 8.0, True])
def test_what_is_no_number_of_numbers_is_refused(n_numbers):
    with pytest.raises(KeslerError, match="must be an integer from 8 to"):
        threshold_algorithm(n_numbers=n_numbers)(lambda p, i, z, m, w, s, n: None)
