"""Estimators: thin scikit-learn faces of the machines."""

from kesler.estimators.multilabel import OnlineMultilabelClassifier
from kesler.estimators.online import OnlineClassifier
from kesler.estimators.ranking import OnlineLabelRanker
from kesler.estimators.structured import StructuredLearner

__all__ = [
    "OnlineClassifier",
    "OnlineLabelRanker",
    "OnlineMultilabelClassifier",
    "StructuredLearner",
]
