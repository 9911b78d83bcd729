"""Every learner of the grid, trial by trial beside its NumPy reference on 20 or 100 real rows.

Or refused.

Each trial of the reference begins with the weights that the learner has by then, so that a trial
that rounding decides spoils none after it; such a trial is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import reference_links
from grid import (
    CELLS,
    GEOMETRIES,
    KERNELS,
    PAGE,
    PRECONDITIONERS,
    VIEW,
    C,
    Cell,
    answers_to,
    page,
    real_rows,
    refusal,
)
from kesler.updates import RULES
from reference_learner import ReferenceLearner, State, pairs_of
from reference_preconditioners import AGAINST_REST, OWN_PRECONDITIONER
from registry import SETS, covering
from test_answers import settings_of_oracle

GEOMETRY = {
    **reference_links.LINKS,
    **dict.fromkeys(("averaged", *PRECONDITIONERS), reference_links.linear()),
    "own link": reference_links.RISING,
    "own odd link": reference_links.STRETCHED,
}


ASKS_FOR_NORMS = ("pa", "pa1", "pa2", "conproj", "simproj", "mira", "least-squares")


def expected_refusal(cell: Cell) -> str | None:
    """Return a word of the message for a combination that theory excludes."""
    weights = (*PRECONDITIONERS, *KERNELS, "linear", "averaged")
    against_rest, measured = cell.rule in AGAINST_REST, cell.rule in OWN_PRECONDITIONER
    if measured and cell.geometry == "confidence" and cell.rule != "arow":
        return "brings along"
    if measured and cell.geometry in KERNELS:
        return "matrix of all pairs of support vectors"
    if measured and cell.geometry in PRECONDITIONERS and cell.geometry != "confidence":
        return "brings along"
    if cell.geometry == "coin-betting" and cell.rule in ASKS_FOR_NORMS:
        return "from their norms"
    if cell.rule == "mira" and cell.geometry not in weights:
        return "quadratic program"
    if measured and cell.geometry not in weights:
        return "geometry of the linear link"
    if against_rest and cell.answers == "ranks":
        return "nothing of the order"
    if against_rest and cell.geometry in ("positive", "own link"):
        return "is not odd"
    return None


def oracles_name(preconditioner: Any) -> str:
    """Return a preconditioner in the oracle's words."""
    return preconditioner if isinstance(preconditioner, str) else preconditioner.function.__name__


def reference_of(cell: Cell) -> ReferenceLearner:
    """Return the learner of a cell in the oracle's words."""
    X, digits = real_rows()
    settings = answers_to(cell.answers, digits)
    labels: list[Any] = (
        list(dict.fromkeys(settings)) if cell.answers in ("classes", "ranks") else []
    )
    if labels:
        answers, rest = [{labels.index(d): 0} for d in settings], 1
    else:
        estimator = "sets" if cell.answers == "label sets" else "rankings"
        number: dict[int, int] = {}
        named = [[number.setdefault(d, len(number)) for d in row] for row in settings]
        labels = [None] * (estimator == "sets") + list(number)
        answers, rest = settings_of_oracle(estimator, named)
    return ReferenceLearner(
        cell.parts(),
        cell.rule,
        C,
        answers,
        rest,
        labels,
        {s: [labels.index(d) for d in stored if d in labels] for s, stored in SETS.items()},
        X if cell.answers == "classes" else np.hstack([np.ones((len(X), 1)), X]),
        link=GEOMETRY[cell.geometry],
        preconditioner=oracles_name(PRECONDITIONERS.get(cell.geometry, "euclidean")),
        is_ordinal=cell.answers == "ranks",
    )


WITH_REFERENCE = [cell for cell in CELLS if cell.geometry not in KERNELS]
LONG = covering(
    [cell for cell in WITH_REFERENCE if expected_refusal(cell) is None],
    *("answers", "hypotheses", "rule", "geometry"),
)
"""Every pair of parts once: these cells learn all rows, the others so many of the first."""
N_FIRST = 16


@pytest.mark.parametrize("cell", WITH_REFERENCE, ids=lambda cell: cell.name)
def test_a_cell_equals_its_reference_or_is_refused(cell):
    wanted = expected_refusal(cell)
    if wanted is not None:
        assert wanted in str(refusal(cell))
        return
    reference_learner, model = reference_of(cell), cell.learner()
    linked = GEOMETRY[cell.geometry] is not GEOMETRY["averaged"] and cell.geometry != "linear"
    rows, digits = real_rows()
    rows = rows if cell in LONG else rows[:N_FIRST]
    checked, on_the_way, before = 0, [], None
    for x, wide, named, answer in zip(
        rows,
        reference_learner.X[: len(rows)],
        answers_to(cell.answers, digits[: len(rows)]),
        reference_learner.answers[: len(rows)],
        strict=True,
    ):
        new = max([*answer, -1]) >= len(reference_learner.running)
        if before is not None:
            scores, after, clear = reference_learner.step(wide, answer, before)
            ours = model._scores(x[None])[0]
            if cell.geometry != "averaged":
                assert (abs(ours - scores) <= 1e-4 * max(1.0, abs(scores).max())).all()
        model.learn_one(x, named)
        reference_learner.take_in(wide, answer)
        now = (
            reference_learner.state_of(model, linked=linked) if reference_learner.running else None
        )
        if before is not None and clear and not (new and cell.answers == "ranks"):
            assert_near(now, after, 20 * (cell.rule == "mira") or 1)
            checked += 1
        before = now
        on_the_way.append(model._learner.weights.copy())
    least = len(rows) // (2 if cell in LONG else 5)
    assert checked >= least, f"only {checked} of {len(rows)} trials could be compared"
    # A late threshold inherits the state of the one that it divides.
    if cell.geometry == "averaged" and all(
        part["kind"] != "ordered" for part in reference_learner.parts
    ):
        mean = np.mean(on_the_way, axis=0, dtype=np.float64)
        near = 1e-5 * max(1.0, float(abs(mean).max()))
        model._scores(np.ones((1, rows.shape[1])))  # reads the means of all features
        means = model._learner._predictor.arrays.weights.values
        np.testing.assert_allclose(means, mean, rtol=0, atol=near)


@pytest.mark.parametrize(
    "cell", [c for c in CELLS if c.geometry in KERNELS], ids=lambda cell: cell.name
)
def test_a_linear_kernel_does_what_weights_do(cell):
    """With weights each cell has its reference above.

    The RBF kernel has its own in test_kernels.py and test_kernel_estimators.py.
    """
    wanted = expected_refusal(cell)
    if wanted is not None:
        assert wanted in str(refusal(cell))
        return
    rows, digits = real_rows()
    answers = answers_to(cell.answers, digits)
    geometry = {"kernel": "linear", "averaged kernel": "averaged"}[cell.geometry]
    weights = Cell(cell.answers, cell.hypotheses, cell.rule, geometry).learner()
    kernel = cell.learner().set_params(kernel="linear")
    weights.partial_fit(rows[:60], answers[:60])
    kernel.partial_fit(rows[:60], answers[:60])
    scores, others = weights._scores(rows), kernel._scores(rows)
    near = 1e-2 if cell.rule == "mira" else 2e-3
    close = abs(scores - others) <= near * max(1.0, float(abs(scores).max()))
    # Float32 sums in another order decide a tie otherwise, now and then.
    assert close.all() or weights.n_mistakes_ == pytest.approx(kernel.n_mistakes_, abs=6)
    assert refusal(cell) is None


def assert_near(ours: State, theirs: State, times: float) -> None:
    """Assert that sums and evidence are equal to what float32 leaves of them."""
    for found, expected in pairs_of(ours, theirs):
        assert (abs(found - expected) <= times * 1e-5 * max(1.0, abs(expected).max())).all()


def test_the_page_says_what_happens():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_grid_is_whole():
    assert {cell.geometry for cell in CELLS} == set(GEOMETRIES)
    assert {cell.rule for cell in CELLS} == set(RULES) and VIEW
    assert len(CELLS) == len(RULES) * 4 * 4 * len(GEOMETRIES)
