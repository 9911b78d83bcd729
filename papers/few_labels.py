"""Few labels, partial answers, trees of classes, budgets: the pages of all four studies.

Selective sampling, bandit feedback, trees of classes and kernels within a budget, each in a file
of its own, which also runs alone.

    python papers/few_labels.py        # into papers/results/few_labels_*.md; about 13 minutes
"""

from __future__ import annotations

import sys

import few_labels_bandits
import few_labels_kernels
import few_labels_queries
import few_labels_trees
from script_arguments import script_parser

PARTS = (few_labels_queries, few_labels_bandits, few_labels_trees, few_labels_kernels)


def main() -> int:
    """Write all pages; return 1 if a check failed in any."""
    script_parser(__doc__, __file__).parse_args()  # the parts read the same arguments
    return max(part.main() for part in PARTS)


if __name__ == "__main__":
    sys.exit(main())
