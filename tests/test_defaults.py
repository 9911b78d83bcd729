"""The defaults of classifiers, written once more: figures in benchmarks/results are of these."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from kesler import (
    BanditClassifier,
    Ensemble,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
)
from kesler.budgets import Budget
from kesler.forests import ExtraTrees
from kesler.hypotheses import Ordered, PerClass, Shared
from kesler.kernels import RBF
from kesler.maps import Contrast, Distance, Frequency, GaussianRatio
from kesler.preconditioners import AdaGrad, Euclidean, SecondOrder
from kesler.preprocessing import (
    Bins,
    Concatenated,
    Counts,
    Pairs,
    RandomFourier,
    Ranges,
    Replay,
    ZScores,
)
from kesler.updates import (
    AROW,
    Banditron,
    LeastSquares,
    LogisticGradient,
    OneVsRestHinge,
    OneVsRestLogistic,
    OneVsRestSquared,
    PassiveAggressive,
    SoftmaxGradient,
)

RNG = np.random.default_rng(3)
DENSE = RNG.normal(size=(12, 3)).round(2)
WORDS = [{f"w{j}": 1.0 for j in RNG.integers(0, 9, 4)} for _ in range(12)]
TABLE = [{"x": float(x), "y": float(y), "kind": "ab"[i % 2]} for i, (x, y, _) in enumerate(DENSE)]
VECTORS = [{"meaning": row.tolist()} for row in DENSE]
BESIDE = [{**row, "meaning": RNG.normal(size=2).tolist()} for row in TABLE]
LABELS = ["a", "b", "c"] * 4

CONTRASTS = [
    *(Shared(Contrast(), begins_at=0.15), Shared(Contrast(relative=False), begins_at=0.05)),
]
OF_WORDS: dict[str, Any] = {
    "hypotheses": [PerClass(), *CONTRASTS],
    "update": OneVsRestHinge(eta=0.5, invariant=True),
    "preconditioner": AdaGrad(),
    "on_new_class": "inherit",
    "preprocessing": Counts(information=True),
    "intercept": 1.0,
}
LENGTH_FREE = AdaGrad(length_free=True)
BOXES: dict[str, Any] = {
    "hypotheses": [PerClass()],
    "update": SoftmaxGradient(1.5, invariant=True),
    "preconditioner": LENGTH_FREE,
    "on_new_class": "learn",
    "preprocessing": Concatenated((ZScores(), Bins(), Pairs())),
    "intercept": 1.0,
    "replay": Replay(2, size=500, until=500),
}
RIDGE = {
    **BOXES,
    "update": LeastSquares(),
    "preconditioner": SecondOrder(ridge=25.0),
    "preprocessing": RandomFourier(seed=1, information=True),
    "replay": 0,
}
LINES = {
    **BOXES,
    "update": SoftmaxGradient(0.1, invariant=True),
    "preprocessing": Concatenated((ZScores(),)),
    "replay": 0,
}
KERNEL: dict[str, Any] = {
    "hypotheses": [PerClass()],
    "update": PassiveAggressive(1.0, variant=1),
    "kernel": RBF(),
    "budget": Budget(1000, "smallest"),
    "on_new_class": "learn",
    "preprocessing": Ranges(information=True),
    "intercept": 0.0,
}
TREES: dict[str, Any] = {
    "hypotheses": [PerClass()],
    "update": ExtraTrees(),
    "on_new_class": "learn",
    "preprocessing": None,
    "intercept": 0.0,
}
MEASURED = [BOXES, RIDGE, LINES, KERNEL, TREES]
SINGLE = {**BOXES, "preprocessing": Concatenated((ZScores(), Bins(), RandomFourier())), "replay": 0}
DENSITIES = {
    **SINGLE,
    "hypotheses": [PerClass(), Shared(GaussianRatio(), begins_at=0.02)],
    "preprocessing": ZScores(),
}


def judged(settings: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Settings of feedback, from which every row is learnt, and once."""
    none = {"on_new_class", "replay"}
    return {name: value for name, value in settings.items() if name not in none} | changed


SQUARED = OneVsRestSquared(1.5)
LARGE = {**SINGLE, "update": SoftmaxGradient(6.0, invariant=True)}
AROWS = {**OF_WORDS, "update": AROW(), "on_new_class": "learn"}
AROWS.pop("preconditioner")
RARE = {"hypotheses": [PerClass(), CONTRASTS[0]], "preprocessing": Counts(idf=True)}
SOURCE = {
    "hypotheses": [PerClass(), Shared(Distance())],
    "update": PassiveAggressive(1.0, variant=1),
    "on_new_class": "register",
    "preprocessing": None,
    "intercept": 0.0,
}
BANDITRON: dict[str, Any] = {
    "hypotheses": [PerClass()],
    "update": Banditron(),
    "preconditioner": Euclidean(),
    "preprocessing": None,
    "intercept": 0.0,
}
ABC = ["a", "b", "c"]

ONE: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "words": (OnlineClassifier(), WORDS, OF_WORDS),
    "words, a map": (
        *(OnlineClassifier(feature_map="frequency"), WORDS),
        {**OF_WORDS, "hypotheses": [PerClass(), Shared(Frequency(), begins_at=0.15)]},
    ),
    "one learner of measurements": (OnlineClassifier(preconditioner=LENGTH_FREE), DENSE, SINGLE),
    "measurements, a map": (OnlineClassifier(feature_map="gaussian-ratio"), DENSE, DENSITIES),
    "a kernel": (
        *(OnlineClassifier(kernel="rbf"), DENSE),
        {**KERNEL, "budget": None, "preprocessing": Ranges()},
    ),
    "a rule": (OnlineClassifier(update="pa1"), DENSE, SOURCE),
    "a link": (
        *(OnlineClassifier(link="exponential"), DENSE),
        {**SOURCE, "on_new_class": "learn", "preprocessing": ZScores()},
    ),
    "feedback": (BanditClassifier(ABC), DENSE, judged(SINGLE, update=SQUARED)),
    "feedback, a kernel": (
        *(BanditClassifier(ABC, kernel="rbf"), DENSE),
        judged(KERNEL, update=SQUARED, budget=None, preprocessing=Ranges()),
    ),
    "feedback, words": (BanditClassifier(ABC), WORDS, judged(OF_WORDS)),
    "feedback, a rule": (BanditClassifier(ABC, update="banditron"), DENSE, BANDITRON),
}


def assert_settings(found: Any, expected: dict[str, Any]) -> None:
    assert {name: getattr(found, name) for name in expected} == expected


@pytest.mark.parametrize(("model", "rows", "expected"), ONE.values(), ids=ONE)
def test_one_learner(model, rows, expected):
    assert_settings(model.fit(rows, LABELS).resolved_, expected)


DENSE_MAP = {name: value for name, value in DENSITIES.items() if name != "replay"}
ONE_MAP: dict[str, Any] = {
    **OF_WORDS,
    "hypotheses": [PerClass(), CONTRASTS[0]],
    "on_new_class": "learn",
    "preprocessing": Counts(),
}
SETS, RANKINGS = [[label] for label in LABELS], [["a", "b"], ["b", "c"], ["c", "a"]] * 4
GRADIENT = LogisticGradient(1.0, invariant=True)
OTHERS: dict[str, tuple[Any, Any, Any, dict[str, Any]]] = {
    "label sets": (
        *(OnlineMultilabelClassifier(), DENSE, SETS),
        {**DENSE_MAP, "update": OneVsRestLogistic(1.0), "decision": "f1"},
    ),
    "label sets of words": (
        *(OnlineMultilabelClassifier(), WORDS, SETS),
        {
            **ONE_MAP,
            "update": OneVsRestHinge(),
            "on_new_class": "inherit",
            "preprocessing": Counts(information=True),
            "decision": "f1",
        },
    ),
    "rankings": (
        *(OnlineLabelRanker(), DENSE, RANKINGS),
        {**DENSE_MAP, "hypotheses": [PerClass(), Shared(Distance())], "update": GRADIENT},
    ),
    "rankings by words": (
        *(OnlineLabelRanker(), WORDS, RANKINGS),
        {**ONE_MAP, "hypotheses": [PerClass(), Shared(Contrast())], "update": GRADIENT},
    ),
    **{
        name: (
            *(OnlineOrdinalClassifier(), rows, LABELS),
            {
                **known,
                "hypotheses": [*known["hypotheses"], Ordered()],
                "update": LogisticGradient(1.5, invariant=True),
                "decision": "median",
            },
        )
        for name, rows, known in (("ranks", DENSE, DENSE_MAP), ("ranks by words", WORDS, ONE_MAP))
    },
}


@pytest.mark.parametrize(("model", "rows", "y", "expected"), OTHERS.values(), ids=OTHERS)
def test_one_learner_of_other_answers(model, rows, y, expected):
    assert_settings(model.fit(rows, y).resolved_, expected)


OF_CELLS = {**OF_WORDS, "intercept": 0.0}
OF_TABLE = [OF_CELLS, {**BOXES, "replay": Replay(2)}, RIDGE, LINES, KERNEL, TREES]
SEVERAL: dict[str, tuple[Any, Any, list[dict[str, Any]]]] = {
    "measurements": (OnlineClassifier(), DENSE, MEASURED),
    "measurements, more": (OnlineClassifier(update="ensemble"), DENSE, [*MEASURED, LARGE]),
    "words": (
        *(OnlineClassifier(update="ensemble"), WORDS),
        [OF_WORDS, AROWS, OF_WORDS | RARE, AROWS | RARE],
    ),
    "a table": (OnlineClassifier(), TABLE, OF_TABLE),
    "a table, more": (OnlineClassifier(update="ensemble"), TABLE, [*OF_TABLE, LARGE]),
    "vectors": (OnlineClassifier(), VECTORS, [OF_CELLS, DENSITIES]),
    "vectors beside": (
        *(OnlineClassifier(), BESIDE),
        [*OF_TABLE, DENSITIES, {**SINGLE, "preprocessing": ZScores()}],
    ),
}


@pytest.mark.parametrize(("model", "rows", "expected"), SEVERAL.values(), ids=SEVERAL)
def test_several_learners(model, rows, expected):
    for each, settings in zip(model.fit(rows, LABELS).resolved_.update, expected, strict=True):
        # Of a table, the kinds of columns determine weights.
        if isinstance(each.preprocessing, (RandomFourier, Ranges)):
            each.preprocessing = replace(each.preprocessing, weights=None)
        if isinstance(each.update, ExtraTrees):
            each.update = replace(each.update, weights=None)
        assert_settings(each, settings)


def test_an_ensemble_has_the_learners_of_the_default():
    learners = Ensemble().fit(DENSE, LABELS).resolved_.learners
    for each, settings in zip(learners, [*MEASURED, LARGE], strict=True):
        assert_settings(each, settings)
