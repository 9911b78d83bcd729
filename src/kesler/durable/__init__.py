"""Learners whose answers are kept in a database: each can be taken back, changed or forgotten.

A :class:`Journal` is an SQLite database of any number of models. What is stored is the history of
each model: the rows with their answers, and what has been done to them since. A model is, at any
time, the learner that has met the *remaining history* in order:

- every row that has been learnt, in the order of learning, except those that have been taken back
  (`undo`) or removed (`forget`, `forget_subject`, `forget_class`);
- each with its current answer: the one given when it was learnt, or by the last `relabel` of it
  that has not been taken back; with every `rename` and `merge` that came after that answer, in
  order, unless taken back, applied to its labels. In label sets and rankings, a label that occurs
  twice after that stays at its first place.

Answers given after a rename are not changed by it: a row of the old name begins a new class.
"""

from kesler.durable.events import Event, Receipt
from kesler.durable.failures import JournalError
from kesler.durable.journal import Journal
from kesler.durable.model import Model

__all__ = ["Event", "Journal", "JournalError", "Model", "Receipt"]
