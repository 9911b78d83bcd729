"""Names of classes: how pages show them, which of many are listed, and how others are found."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from kesler.data.labels import name_in_line
from kesler.service.answers import jsonable
from kesler.service.rows_in import UNSHOWN

LISTED = 100
"""The most classes that a page or the figures of a model list; others are asked for by name."""


class Names(NamedTuple):
    """The classes of a model by name.

    Parameters
    ----------
    shown : list of str
        The name of each class, as pages show it, in the order in which the classes were seen.
    labels : dict of str to label
        The class that is shown or written like this.
    """

    shown: list[str]
    labels: dict[str, Any]

    def containing(self, text: str) -> list[int]:
        """Return the numbers of the classes whose names contain a text.

        Those that begin with it are the first; case does not count.

        Examples
        --------
        >>> names_of(("cash", "Cards", "postcards")).containing("card")
        [1, 2]
        """
        wanted = text.casefold()
        folded = [name.casefold() for name in self.shown]
        found = [i for i, name in enumerate(folded) if wanted in name]
        return sorted(found, key=lambda i: not folded[i].startswith(wanted))


@lru_cache(maxsize=8)
def names_of(labels: tuple[Any, ...]) -> Names:
    """Return the names of classes; kept for the next request."""
    shown = [shown_name(each) for each in labels]
    written = {str(each): each for each in labels}
    return Names(shown, written | dict(zip(shown, labels, strict=True)))


def labels_of(estimator: Any) -> Sequence[Any]:
    """Return the known classes in the order in which they were seen."""
    if not estimator.n_known_:
        return ()
    found: Sequence[Any] = estimator._fitted().classes.labels
    return found


def frequent(estimator: Any, most: int = LISTED) -> list[Any]:
    """Return the classes of most rows, at most this many; of equal ones, those seen first.

    They are the classes seen first if the model has no estimates of uncertainty, which count rows.
    """
    labels = labels_of(estimator)
    if not labels:
        return []
    estimates = estimator._fitted().uncertainty
    n_rows = np.zeros(len(labels))
    if estimates is not None and "arrivals.n_rows" in estimates.stored:
        counted = estimates.stored["arrivals.n_rows"][: len(labels)]
        n_rows[: len(counted)] = counted
    return [labels[i] for i in np.argsort(-n_rows, kind="stable")[:most].tolist()]


def shown_name(label: Any) -> str:
    r"""Return the name of a class with escapes in place of characters that cannot be shown.

    These are control characters, ends of lines, and overrides of the direction of text, by which
    one name could look like another. No two classes have the same name on a page.

    Examples
    --------
    >>> print(shown_name("a\nb"), shown_name("\u202egnp"), shown_name(7))
    a\nb \u202egnp 7
    """
    if isinstance(label, str) and label.isascii() and label.isprintable() and "\\" not in label:
        return label
    name = name_in_line(jsonable(label))
    return UNSHOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", name)
