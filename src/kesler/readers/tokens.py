"""Tokens: what a text is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable

TOKEN = re.compile(r"(?:[^\W_]|')+")


def tokenize(text: str) -> list[str]:
    """Split a text into its runs of letters of any script, digits and apostrophes, in lower case.

    Examples
    --------
    >>> tokenize("Don't panic: 42!")
    ["don't", 'panic', '42']
    >>> tokenize("Ärger, Straße_7")
    ['ärger', 'straße', '7']
    """
    return TOKEN.findall(text.lower())


def presence(texts: Iterable[str]) -> dict[str, float]:
    """Binary features of some texts taken together: each token that occurs, with the value 1.

    Examples
    --------
    >>> presence(["To be", "or not to be"])
    {'to': 1.0, 'be': 1.0, 'or': 1.0, 'not': 1.0}
    """
    return dict.fromkeys(tokenize(" ".join(texts)), 1.0)
