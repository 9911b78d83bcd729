"""The mail of seven Enron users as in both papers: words of messages, in the order of time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from scipy import sparse

from kesler.data.rows import Rows, Vocabulary
from kesler.data.texts import WORD
from kesler.datasets import load_enron

USERS = ("beck-s", "farmer-d", "kaminski-v", "kitchen-l", "lokay-m", "sanders-r", "williams-w3")

FIELDS = (
    *("date", "message_id", "from", "to", "cc", "subject"),
    *("x_from", "x_to", "x_cc", "x_origin", "x_filename", "body"),
)
"""Every header of Bekkerman's copy, and the body; without X-Folder, the class."""
EXPORTED = ("x_origin", "x_filename")
ARRIVING = tuple(f for f in FIELDS if f not in ("message_id", *EXPORTED))
"""The fields that a message has when it arrives; Message-IDs count up folder by folder."""


@dataclass(frozen=True, eq=False)
class Mail:
    """The messages of one user.

    Parameters
    ----------
    counts : float32 csr_array of shape (n_messages, n_words)
        The number of occurrences of each word in each message.
    folders : list of str
        The folder of each message.
    """

    counts: sparse.csr_array
    folders: list[str]

    @property
    def binary(self) -> sparse.csr_array:
        """Whether each word occurs in each message."""
        return self.counts.sign()


def read_mail(user: str, fields: Iterable[str] = FIELDS) -> Mail:
    """Return the messages of a user as counts of the words in the given fields."""
    mail, fields = load_enron(user), list(fields)
    texts = (" ".join(record[field] for field in fields) for record in mail.records)
    return Mail(count_words(texts), mail.y)


def count_words(texts: Iterable[str]) -> sparse.csr_array:
    """Return the counts of each word, a run of letters, digits and apostrophes, in each text.

    Examples
    --------
    >>> count_words(["To be", "or not to be or"]).toarray().tolist()
    [[1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 2.0, 1.0]]
    """
    words = Vocabulary()
    counts = (Counter(WORD.findall(text.lower())) for text in texts)
    rows = Rows.from_sparse_rows(list(map(words.learnt, counts)), 0)
    return sparse.csr_array((rows.values, rows.indices, rows.indptr), shape=(len(rows), len(words)))
