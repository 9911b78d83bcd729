"""Progressive validation: every row is predicted before it is learnt, and the score is kept."""

from kesler.progressive.comparison import Comparison, Line, MethodResult
from kesler.progressive.validation import ProgressiveResult, progressive_validate

__all__ = ["Comparison", "Line", "MethodResult", "ProgressiveResult", "progressive_validate"]
