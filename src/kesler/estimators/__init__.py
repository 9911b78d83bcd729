"""Estimators: thin scikit-learn faces of the machines."""

from kesler.estimators.online import OnlineClassifier

__all__ = ["OnlineClassifier"]
