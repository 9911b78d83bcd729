"""Costs of predicting one class where another is right."""

from kesler.parts.costs import Costs, restore_costs

__all__ = [
    "Costs",
    "restore_costs",
]
