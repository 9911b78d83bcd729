"""Metrics: how well predictions, scores and probabilities agree with targets."""

from kesler.evaluation.metrics import (
    calibration_error,
    hamming_loss,
    log_loss,
    mean_absolute_error,
    micro_f1,
    one_error,
    ranking_loss,
)
from kesler.online.label_sets import kendall_tau

__all__ = [
    "calibration_error",
    "hamming_loss",
    "kendall_tau",
    "log_loss",
    "mean_absolute_error",
    "micro_f1",
    "one_error",
    "ranking_loss",
]
