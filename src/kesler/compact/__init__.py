"""Compact predictors: what ShareBoost chose, made to run where nothing else is at hand."""

from kesler.compact.exports import Exportable, export
from kesler.compact.predictor import CompactPredictor

__all__ = ["CompactPredictor", "Exportable", "export"]
