"""What a row counts: numbers of `forgetting`, all 1 if nothing is forgotten."""

from __future__ import annotations

# How many times what the row before counted, what the last one counted, and its root.
GROWTH, WORTH, ROOT = range(3)
