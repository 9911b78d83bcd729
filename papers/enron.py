"""The mail of seven Enron users as both papers saw it: words of messages, in the order of time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from kesler.datasets import load_enron
from kesler.readers.tokens import tokenize

USERS = ("beck-s", "farmer-d", "kaminski-v", "kitchen-l", "lokay-m", "sanders-r", "williams-w3")

FIELDS = (
    *("date", "message_id", "from", "to", "cc", "subject"),
    *("x_from", "x_to", "x_cc", "x_origin", "x_filename", "body"),
)
"""Every header that Bekkerman's copy kept, and the body. X-Folder, the class, is not there."""


@dataclass(frozen=True, eq=False)
class Mail:
    """The messages of one user.

    Parameters
    ----------
    counts : float32 csr_array of shape (n_messages, n_words)
        How often each word stands in each message.
    folders : list of str
        Where each message was filed.
    """

    counts: sparse.csr_array
    folders: list[str]

    @property
    def binary(self) -> sparse.csr_array:
        """Which words stand in each message."""
        return self.counts.sign()


def read_mail(user: str, fields: Iterable[str] = FIELDS) -> Mail:
    """Return the messages of a user; a word is a run of letters, digits and apostrophes."""
    mail = load_enron(user)
    fields = list(fields)
    texts = (" ".join(record[field] for field in fields) for record in mail.records)
    words = CountVectorizer(analyzer=tokenize, dtype=np.float32)
    return Mail(sparse.csr_array(words.fit_transform(texts)), mail.y)
