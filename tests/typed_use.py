"""What a type checker sees of the estimators: `make types` fails where a result is Any."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

from kesler import (
    CrammerSingerClassifier,
    Ensemble,
    ErrorCorrectingCode,
    JointBoostClassifier,
    KeslerReduction,
    LinearMax,
    MixedNormClassifier,
    OneVsOne,
    OneVsRest,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    ShareBoostClassifier,
    SoftmaxClassifier,
    StructuredLearner,
    compare,
    load,
    progressive_validate,
)
from kesler.evaluation.comparing import ComparisonResult
from kesler.evaluation.confidence import Threshold
from kesler.evaluation.reports.label_sets import LabelReport
from kesler.evaluation.reports.report import Report
from kesler.evaluation.results import (
    MultilabelResult,
    OrdinalResult,
    ProgressiveResult,
    RankingResult,
)

X, y = [[1.0]], ["a"]


def learning_returns_the_estimator() -> None:
    assert_type(OnlineClassifier().fit(X, y), OnlineClassifier)
    assert_type(OnlineClassifier().partial_fit(X, y), OnlineClassifier)
    assert_type(LinearMax().fit(X, y).partial_fit(X, y), LinearMax)
    assert_type(Ensemble().fit(X, y).partial_fit(X, y), Ensemble)
    ordinal = OnlineOrdinalClassifier()
    assert_type(ordinal.fit(X, y).partial_fit(X, y), OnlineOrdinalClassifier)
    multilabel = OnlineMultilabelClassifier()
    assert_type(multilabel.fit(X, [y]).partial_fit(X, [y]), OnlineMultilabelClassifier)
    assert_type(multilabel.predict_proba(X), npt.NDArray[np.float64])
    assert_type(ordinal.predict_proba(X), npt.NDArray[np.float64])
    assert_type(OnlineLabelRanker().fit(X, [y]).partial_fit(X, [y]), OnlineLabelRanker)


def structured(learner: StructuredLearner) -> None:
    assert_type(learner.fit([X], [y]).partial_fit([X], [y]), StructuredLearner)


def batch_estimators() -> None:
    assert_type(CrammerSingerClassifier().fit(X, y), CrammerSingerClassifier)
    assert_type(SoftmaxClassifier().fit(X, y), SoftmaxClassifier)
    assert_type(ShareBoostClassifier().fit(X, y), ShareBoostClassifier)
    assert_type(MixedNormClassifier().fit(X, y), MixedNormClassifier)
    assert_type(JointBoostClassifier().fit(X, y), JointBoostClassifier)
    assert_type(OneVsRest().fit(X, y).partial_fit(X, y), OneVsRest)
    assert_type(OneVsOne().fit(X, y).partial_fit(X, y), OneVsOne)
    assert_type(ErrorCorrectingCode().fit(X, y).partial_fit(X, y), ErrorCorrectingCode)
    assert_type(KeslerReduction().fit(X, y).partial_fit(X, y), KeslerReduction)


def a_loaded_model() -> None:
    model = load("mail.kesler")
    assert_type(model, OnlineClassifier | OnlineMultilabelClassifier | OnlineLabelRanker)
    assert isinstance(model, OnlineClassifier)
    assert_type(model.predict(X), npt.NDArray[Any])
    assert_type(model.predict_proba(X), npt.NDArray[np.float64])


def results_of_validation(method: Any) -> None:
    assert_type(progressive_validate(OnlineClassifier(), X, y), ProgressiveResult)
    assert_type(progressive_validate(OnlineOrdinalClassifier(), X, y), OrdinalResult)
    assert_type(progressive_validate(OnlineMultilabelClassifier(), X, [y]), MultilabelResult)
    assert_type(progressive_validate(OnlineLabelRanker(), X, [y]), RankingResult)
    assert_type(progressive_validate(len, X, y, refit="doubling"), ProgressiveResult)
    assert_type(compare(None, X, y), ComparisonResult)
    assert_type(compare(["default", method], X, y)["default"], ProgressiveResult)
    result = progressive_validate(OnlineClassifier(), X, y)
    assert_type(result.report(), Report)
    assert_type(result.risk_coverage().area, float)
    assert_type(result.threshold_for(0.1), Threshold)
    labels = progressive_validate(OnlineMultilabelClassifier(), X, [y])
    assert_type(labels.report(), LabelReport)
    assert_type(OnlineClassifier().coef_, npt.NDArray[np.float32])
