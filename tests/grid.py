"""The grid: every way of answering, sharing and moving, in every geometry; what runs and what not.

python tests/grid.py        # writes docs/what-runs.md from the registry
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import homemade
from kesler import (
    KeslerError,
    LinearMax,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
)
from kesler.algorithms import ALGORITHMS
from kesler.datasets import load
from kesler.links import LINKS
from kesler.maps import MAPS
from kesler.updates import RULES
from registry import FAMILIES, ORACLE_MAPS, with_strength

PAGE = Path(__file__).parent.parent / "docs" / "what-runs.md"

ESTIMATORS: dict[str, Any] = {
    "classes": OnlineClassifier,
    "label sets": OnlineMultilabelClassifier,
    "rankings": OnlineLabelRanker,
    "ranks": OnlineOrdinalClassifier,
}
HYPOTHESES = ("multi", "single", "hybrid", "grouped-view")
PRECONDITIONERS = {
    "adagrad": "adagrad",
    "distance-adagrad": "distance-adagrad",
    "confidence": "confidence",
    "coin-betting": "coin-betting",
    "own preconditioner": homemade.slowing,
}
OWN_LINKS = {"own link": homemade.rising, "own odd link": homemade.stretched}
KERNELS = {"kernel": {}, "averaged kernel": {"averaged": True}}
GEOMETRIES = (*LINKS, *OWN_LINKS, "averaged", *PRECONDITIONERS, *KERNELS)
VIEW = "product-mean"
C = 0.2


@dataclass(frozen=True)
class Cell:
    """One learner of the grid, by the names of its parts."""

    answers: str
    hypotheses: str
    rule: str
    geometry: str

    @property
    def name(self) -> str:
        return "-".join([self.answers, self.hypotheses, self.rule, self.geometry])

    def learner(self) -> Any:
        hypotheses: Any = self.hypotheses
        if hypotheses == "grouped-view":
            view = None if self.answers == "ranks" else MAPS[VIEW]()
            hypotheses = FAMILIES[hypotheses].hypotheses(None, view)
        settings: dict[str, Any] = {"update": with_strength(self.rule, C)}
        if self.answers != "ranks":
            settings["feature_map"] = VIEW
        if self.geometry in LINKS:
            settings["link"] = self.geometry
        elif self.geometry in OWN_LINKS:
            settings["link"] = OWN_LINKS[self.geometry]
        elif self.geometry == "averaged":
            settings["averaged"] = True
        elif self.geometry in PRECONDITIONERS:
            settings["preconditioner"] = PRECONDITIONERS[self.geometry]
        else:
            settings |= {"kernel": "rbf", "sigma": 2.0, **KERNELS[self.geometry]}
        return ESTIMATORS[self.answers](hypotheses, **settings)

    def parts(self) -> list[dict[str, Any]]:
        """Return the hypotheses in the oracle's words; "ordered" is one that it does not know."""
        if self.answers == "ranks" and self.hypotheses != "grouped-view":
            kinds = {"multi": ["per_class"], "single": ["ordered"]}
            named = kinds.get(self.hypotheses, ["per_class", "ordered"])
            return [{"kind": kind, "map": None, "groups": []} for kind in named]
        from registry import SETS

        view = None if self.answers == "ranks" else ORACLE_MAPS[VIEW]
        return [
            {"kind": kind, "map": view if mapped else None, "groups": list(SETS.values())}
            for kind, mapped in FAMILIES[self.hypotheses].kinds
        ]


CELLS = [Cell(*names) for names in product(ESTIMATORS, HYPOTHESES, RULES, GEOMETRIES)]


@cache
def real_rows() -> tuple[Any, Any]:
    """100 rows of Pendigits, the digits 0 to 4 in the order of their files, in units of 50."""
    data = load("pendigits")
    stored = np.flatnonzero(np.asarray(data.y).astype(int) < 5)[:100]
    X = (np.asarray(data.X)[stored] - 50) / 50
    return X.astype(np.float32).astype(float), np.asarray(data.y)[stored].astype(int)


def answers_to(kind: str, digits: Any) -> list[Any]:
    """Return answers of a kind: the digit; those that divide it; all, by how near they are."""
    if kind == "label sets":
        return [[d for d in range(5) if digit in (d, 2 * d)] for digit in digits]
    if kind == "rankings":
        return [sorted(range(5), key=lambda d: abs(d - digit + 0.1)) for digit in digits]
    return list(digits)


def refusal(cell: Any) -> str | None:
    """Return the sentence with which a learner is refused, None if it runs."""
    X, digits = real_rows()
    kind = cell.answers if isinstance(cell, Cell) else "classes"
    try:
        cell.learner().partial_fit(X[:12], answers_to(kind, digits[:12]))
    except KeslerError as error:
        return str(error)
    return None


# ---- the page -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Maxed:
    """A row of the second table."""

    algorithm: str
    hypotheses: str
    kernel: str | None = None

    def learner(self) -> LinearMax:
        hypotheses = FAMILIES[self.hypotheses].hypotheses(None, MAPS[VIEW]())
        sigma: Any = "auto" if self.kernel is None else 2.0
        return LinearMax(self.algorithm, hypotheses, VIEW, kernel=self.kernel, sigma=sigma)


def page() -> str:
    """Return the page of what runs."""
    notes: list[str] = []

    def mark(sentence: str | None) -> str:
        if sentence is None:
            return "yes"
        if sentence not in notes:
            notes.append(sentence)
        return f"no ({notes.index(sentence) + 1})"

    blocks = [
        "# What runs",
        "Every rule, over every way of sharing hypotheses, for every kind of answer, in every "
        "geometry. What is marked *yes* equals its NumPy reference trial by trial on 20 real rows, "
        "and in a choice that has every pair of parts on 100 (`tests/test_grid.py`), what is "
        "marked *no* raises the sentence of that number. Made by "
        "`python tests/grid.py`; a test compares this page with what happens. `own link` is a "
        "user's f(v) that declares its norm, `own odd link` another with f(-v) = -f(v), "
        "`own preconditioner` a user's f(evidence), `kernel` the RBF kernel, `averaged kernel` the "
        "means of its coefficients.",
    ]
    for kind in ESTIMATORS:
        blocks.append(f"## {kind.capitalize()}: `{ESTIMATORS[kind].__name__}`")
        rows = []
        for rule in RULES:
            found = [
                [mark(refusal(Cell(kind, h, rule, g))) for h in HYPOTHESES] for g in GEOMETRIES
            ]
            rows.append([f"`{rule}`", *(merged(each) for each in found)])
        blocks.append(table(["", *GEOMETRIES], rows))
    blocks.append("## Linear-threshold algorithms: `LinearMax`")
    rows = []
    for a in ALGORITHMS:
        over = merged([mark(refusal(Maxed(a, h, "rbf"))) for h in HYPOTHESES])
        rows.append([f"`{a}`", *(mark(refusal(Maxed(a, h))) for h in HYPOTHESES), over])
    blocks.append(table(["", *HYPOTHESES, "kernel"], rows))
    blocks.append("## Why not")
    blocks.append("\n".join(f"{i}. {note}" for i, note in enumerate(notes, start=1)))
    return "\n\n".join(blocks) + "\n"


def merged(marks: list[str]) -> str:
    """Return one mark where all hypotheses share it, else one for each that differs."""
    if len(set(marks)) == 1:
        return marks[0]
    grouped: dict[str, list[str]] = {}
    for name, each in zip(HYPOTHESES, marks, strict=True):
        grouped.setdefault(each, []).append(name.removesuffix("-view"))
    return "; ".join(f"{', '.join(names)}: {each}" for each, names in grouped.items())


def table(headings: list[str], rows: list[list[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
    print(f"{PAGE} written")
