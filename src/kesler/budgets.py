"""Budgets of support vectors, for learners over Mercer kernels."""

from kesler.parts.budgets import POLICIES, Budget, resolve_budget

__all__ = ["POLICIES", "Budget", "resolve_budget"]
