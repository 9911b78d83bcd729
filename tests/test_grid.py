"""Every learner of the grid, trial by trial beside its NumPy twin on 200 real rows, or refused.

Each trial of the twin begins with the weights that the learner has by then, so that a trial that
rounding decides spoils none after it; such a trial is left out.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import reference
import reference_answers
import reference_links
from grid import CELLS, GEOMETRIES, PAGE, VIEW, C, Cell, answers_to, page, real_rows, refusal
from kesler.updates import RULES
from registry import SETS
from test_answers import told_to_oracle

GEOMETRY = {
    "linear": reference_links.linear(),
    "averaged": reference_links.linear(),
    "exponential": reference_links.balanced(2.0, 1.0),
    "positive": reference_links.exponential(2.0, 1.0),
    "p-norm": reference_links.p_norm(8.0),
    "own link": reference_links.elementwise(lambda v: 0.5 + v + v**3),
}
N_RANKS = 5
ONE_PAIR = ("perceptron", *reference_answers.WORST)


def expected_refusal(cell: Cell) -> str | None:
    """Say from theory what cannot be, in a word of the sentence."""
    linear = cell.geometry in ("linear", "averaged", "kernel")
    if cell.rule == "mira" and not linear:
        return "quadratic program"
    if cell.geometry == "own link" and RULES[cell.rule]().sees == "norms":
        return "in which norm"
    ordered = cell.answers == "ranks" and cell.hypotheses in ("single", "hybrid")
    return "Ordered hypotheses have no" if ordered and not linear else None


class Twin:
    """The trials of one learner in NumPy, each from the sums that the learner has before it."""

    def __init__(self, cell: Cell) -> None:
        X, digits = real_rows()
        self.cell, self.parts, self.link = cell, cell.parts(), GEOMETRY[cell.geometry]
        self.X = X if cell.answers == "classes" else np.hstack([np.ones((len(X), 1)), X])
        self.told = answers_to(cell.answers, digits)
        self.answers, self.rest = self.codes()
        for part in self.parts:
            part["groups"] = [
                [self.labels.index(d) for d in kept if d in self.labels] for kept in SETS.values()
            ]
        self.k: int = 1 + max(r for answer in self.answers for r in answer)
        self.n = self.X.shape[1]
        self.margin = reference.margin_of(cell.rule, C)
        self.past: list[reference.Past] = []
        self.ranks: list[int] = []  # the rank of each class, by its number
        self.seen = np.zeros(self.n, dtype=bool)

    def codes(self) -> tuple[list[dict[int, int]], int]:
        """Return the answers by number: levels of classes in the order of their appearance."""
        if self.cell.answers in ("label sets", "rankings"):
            face = "sets" if self.cell.answers == "label sets" else "rankings"
            number: dict[int, int] = {}
            named = [[number.setdefault(d, len(number)) for d in row] for row in self.told]
            self.labels = [None] * (face == "sets") + list(number)
            return told_to_oracle(face, named)
        self.labels = list(dict.fromkeys(self.told))
        return [{self.labels.index(d): 0} for d in self.told], 1

    # ---- views and weights ------------------------------------------------------------------

    def sizes(self) -> list[int]:
        """How many hypotheses of n weights each part has."""
        return [
            2 if part["kind"] == "ordered" else reference.n_hypotheses(part, self.k)
            for part in self.parts
        ]

    def view(self, x: Any, r: int) -> Any:
        """Return V^r: of ordered parts r's place times x, and -1 for each threshold under it."""
        blocks = []
        for part in self.parts:
            if part["kind"] != "ordered":
                rows = self.past[r] or [(np.zeros(self.n), 1.0)]
                blocks.append(reference.stack(x, r, rows, [part], self.k))
                continue
            here = sorted(self.ranks)
            place = here.index(self.ranks[r])
            block = np.zeros((2, self.n))
            block[0, 1:] = place * x[1:]
            block[1, [1 + rank for rank in here[1 : place + 1]]] = -x[0]
            blocks.append(block.ravel())
        return np.concatenate(blocks)

    def sums_of(self, model: Any) -> Any:
        """Return the learner's own sums, as `view` lays them out."""
        arrays, blocks = model._machine.arrays(), []
        for i, (part, size) in enumerate(zip(self.parts, self.sizes(), strict=True)):
            linked = self.cell.geometry not in ("linear", "averaged")
            table = arrays[f"states.{i}"][0] if linked else arrays[f"weights.{i}"]
            full = np.zeros((size, self.n))
            if part["kind"] == "ordered":
                full[0, 1 : len(table)] = table[1:, 0]
                for code, rank in enumerate(self.ranks):
                    full[1, 1 + rank] = -table[0, 1 + code]
            elif part["kind"] == "grouped":
                columns = model._machine.groups[i]
                for row, name in enumerate(SETS):
                    if name in columns:
                        full[row, : len(table)] = table[:, columns[name]]
            else:
                full[: table.shape[1], : len(table)] = table.T
            blocks.append(full.ravel())
        return np.concatenate(blocks).astype(float)

    def met(self) -> Any:
        """Return which sums the scale of a link is made of."""
        masks = [
            np.ones(2, dtype=bool)
            if part["kind"] == "ordered"
            else reference_links.hypotheses_met(part, len(self.past), self.k)
            for part in self.parts
        ]
        return (np.concatenate(masks)[:, None] & self.seen).ravel()

    # ---- trials -----------------------------------------------------------------------------

    def pairs(self, answer: dict[int, int]) -> list[tuple[int, int]]:
        """Return which class must outscore which: of ranks, neighbours alone."""
        known = len(self.past)
        if self.cell.answers != "ranks":
            return reference_answers.pairs_of(answer, self.rest, known)
        (y,) = answer
        if y >= known:
            return []
        order = sorted(range(known), key=lambda r: self.ranks[r])
        here = order.index(y)
        return [(b, a) if i < here else (a, b) for i, (a, b) in enumerate(pairwise(order))]

    def step(self, x: Any, answer: dict[int, int], v: Any) -> tuple[Any, Any, bool]:
        """Return the scores before, the sums after, and whether rounding decides nothing."""
        w = self.link.weights(v, self.met())
        V = np.array([self.view(x, r) for r in range(len(self.past))])
        scores = np.array([np.sort(row * w).sum() for row in V])
        pairs = self.pairs(answer)
        if not pairs:
            return scores, v, True
        size = float((abs(V) @ abs(w)).max())
        clear = self.is_clear(scores, V * w, pairs, size)
        along = reference_answers.chosen(self.cell.rule, scores, pairs, self.margin)
        moved = reference_links.step(self.cell.rule, V, scores, along, self.margin, self.link, C)
        return scores, v + moved, clear

    def is_clear(self, scores: Any, terms: Any, pairs: Any, size: float) -> bool:
        """Whether no choice of the rule hangs on the last bits of a score."""
        ordered = np.sort(terms, axis=1)
        leads = np.array([scores[r] - scores[s] for r, s in pairs])
        equal = np.array([bool((ordered[r] == ordered[s]).all()) for r, s in pairs])
        close = 1e-5 * size
        tied = (abs(leads) < close) & ~equal
        at_margin = abs(leads - self.margin) < close
        if self.cell.rule in ("softmax", "logistic"):
            return True
        if self.cell.rule not in ONE_PAIR:
            return not (tied.any() or (at_margin.any() and self.cell.rule == "simproj"))
        last = [p for p, lead in zip(pairs, leads, strict=True) if lead < leads.min() + close]
        alike = all((ordered[list(p)] == ordered[list(last[0])]).all() for p in last)
        return (
            alike
            and not at_margin[leads < leads.min() + close].any()
            and not (self.cell.rule == "perceptron" and tied.any())
        )

    def take_in(self, x: Any, answer: dict[int, int]) -> None:
        """Let classes join after the trial, and the row count as an instance of the best."""
        self.seen |= x != 0
        while len(self.past) <= max([*answer, -1]):
            self.past.append([])
            if self.cell.answers == "ranks":
                self.ranks.append(int(self.labels[len(self.past) - 1]))
        for r, level in answer.items():
            if level == 0:
                self.past[r].append((x, 1.0))


@pytest.mark.parametrize(
    "cell", [c for c in CELLS if c.geometry != "kernel"], ids=lambda cell: cell.name
)
def test_a_cell_equals_its_twin_or_is_refused(cell):
    wanted = expected_refusal(cell)
    if wanted is not None:
        assert wanted in str(refusal(cell))
        return
    twin, model = Twin(cell), cell.learner()
    rows, _ = real_rows()
    checked, on_the_way = 0, []
    for x, wide, told, answer in zip(rows, twin.X, twin.told, twin.answers, strict=True):
        new = max([*answer, -1]) >= len(twin.past)
        before = twin.sums_of(model) if twin.past else None
        if before is not None:
            scores, after, clear = twin.step(wide, answer, before)
            ours = model._scores(x[None])[0]
            if cell.geometry != "averaged":
                near = 1e-4 * max(1.0, float(abs(scores).max()))
                np.testing.assert_allclose(ours, scores, rtol=0, atol=near)
        model.learn_one(x, told)
        twin.take_in(wide, answer)
        if before is not None and clear and not (new and cell.answers == "ranks"):
            near = 2e-4 if cell.rule == "mira" else 1e-5
            near *= max(1.0, float(abs(after).max()))
            np.testing.assert_allclose(twin.sums_of(model), after, rtol=0, atol=near)
            checked += 1
        on_the_way.append(model._machine.weights.copy())
    assert checked >= 120, f"only {checked} of {len(rows)} trials could be compared"
    # A threshold that comes late has the past of the one that it divides, not of its own.
    if cell.geometry == "averaged" and all(part["kind"] != "ordered" for part in twin.parts):
        mean = np.mean(on_the_way, axis=0, dtype=np.float64)
        near = 1e-5 * max(1.0, float(abs(mean).max()))
        np.testing.assert_allclose(model._machine._reader.weights, mean, rtol=0, atol=near)


@pytest.mark.parametrize(
    "cell", [c for c in CELLS if c.geometry == "kernel"], ids=lambda cell: cell.name
)
def test_a_linear_kernel_does_what_weights_do(cell):
    """With weights each cell has its twin above; the RBF kernel has its own in test_kernels.py."""
    rows, digits = real_rows()
    answers = answers_to(cell.answers, digits)
    weights = Cell(cell.answers, cell.hypotheses, cell.rule, "linear").learner()
    kernel = cell.learner().set_params(kernel="linear")
    weights.partial_fit(rows[:60], answers[:60])
    kernel.partial_fit(rows[:60], answers[:60])
    scores, others = weights._scores(rows), kernel._scores(rows)
    near = 1e-2 if cell.rule == "mira" else 2e-3
    close = abs(scores - others) <= near * max(1.0, float(abs(scores).max()))
    # Float32 sums in another order decide a tie otherwise, now and then.
    assert close.all() or weights.n_mistakes_ == pytest.approx(kernel.n_mistakes_, abs=6)
    assert refusal(cell) is None


def test_the_page_says_what_happens():
    assert PAGE.read_text(encoding="utf-8") == page()


def test_the_grid_is_whole():
    assert {cell.geometry for cell in CELLS} == set(GEOMETRIES)
    assert {cell.rule for cell in CELLS} == set(RULES) and VIEW
    assert len(CELLS) == 3 * 4 * 12 * 7 + 4 * 12 * 6 and N_RANKS == 5
