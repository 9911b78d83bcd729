"""The state of learners that compare candidates: entries for pairs of class and feature that met.

Axes: "feature", "class", as in :mod:`kesler.state.records`; "entry", the places for entries;
"number", what an entry holds; "candidate", the candidates of a row, its own classes and a virtual
one; "two and candidate", two more; "place", the features of the longest row; "copied", their
entries; "own", features by own classes; "trial", the rows of a block.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple

import numpy as np

from kesler.state.fields import Field, Given, record
from kesler.state.records import MOST_ROWS

f4, f8, i4, i8, u1 = np.float32, np.float64, np.int32, np.int64, np.uint8

# Of entries: the places in use, and how many more the last row required.
POOL = record(n_used="i8", n_needed="i8")
# How many classes known before rows had, how many of these were candidates, and the class of most
# rows.
RECALL = record(n_rows="i8", n_found="i8", frequent="i8")
# The discounted share of rows of known classes that were no candidates; of label sets, the share of
# the labels that were no candidates which a row had.
MISSING = record(share="f8")
# Of the row in work: the numbers of candidates, of columns of known classes, of all columns, of its
# own classes, and of entries copied; the last class that its target names.
CHOSEN = record(n="i8", n_filled="i8", n_columns="i8", n_own="i8", n_copied="i8", last="i8")


class Entries(NamedTuple):
    """The classes that each feature met, in blocks of one pool.

    starts, lengths : where the block of a feature begins, and its number of places; counts : the
    number of its entries; owners : the class of each entry, -1 where a place is free; numbers : its
    weight, the evidence of the weight, and the statistics of the feature in the class; spare : the
    first free block of each length.
    """

    starts: Annotated[Any, Field(i8, ("feature",))]
    lengths: Annotated[Any, Field(i4, ("feature",))]
    counts: Annotated[Any, Field(i4, ("feature",))]
    owners: Annotated[Any, Field(i4, ("entry",))]
    numbers: Annotated[Any, Field(f4, ("entry", "number"))]
    spare: Annotated[Any, Field(i8, (128,))]
    pool: Annotated[Any, Field(POOL)]


class SavedEntries(NamedTuple):
    """Entries in a model file: those of each feature, in the order of classes.

    starts : where those of each feature begin; classes, numbers : as in `Entries`.
    """

    starts: Annotated[Any, Field(i8, ("start",), at_least=0, at_most="saved entry")]
    classes: Annotated[Any, Field(i4, ("saved entry",), index_into="class")]
    numbers: Annotated[Any, Field(f4, ("saved entry", "number"))]
    recall: Annotated[Any, Field(RECALL, at_least=0, at_most=MOST_ROWS)]
    missing: Annotated[Any, Field(MISSING, at_least=0.0, at_most=1)]


class Choice(NamedTuple):
    """Scratch arrays of one row, not kept between rows.

    keys : the features of the row that have entries, by the numbers of these; points : how
    much the features of the row speak for each class, 0 between rows; touched : the classes with
    points; classes : the candidates, and the own classes of the row that are none; worth : their
    points; columns : the column of each of them; has_column : whether a class is one of them, 0
    between rows; own, own_columns : the own classes of the row and their columns; own_of : which of
    them a column is of, -1 if of none; places, rows, cells : where each entry that was copied is,
    and the row and column that it was copied to; is_stored : whether a feature has an entry of an
    own class.
    """

    keys: Annotated[Any, Field(i8, ("place",))]
    points: Annotated[Any, Field(f8, ("class",))]
    touched: Annotated[Any, Field(i4, ("class",))]
    columns: Annotated[Any, Field(i4, ("class",))]
    has_column: Annotated[Any, Field(u1, ("class",))]
    classes: Annotated[Any, Field(i4, ("candidate",))]
    worth: Annotated[Any, Field(f8, ("candidate",))]
    own: Annotated[Any, Field(i4, ("candidate",))]
    own_columns: Annotated[Any, Field(i4, ("candidate",))]
    own_of: Annotated[Any, Field(i4, ("candidate",))]
    places: Annotated[Any, Field(i8, ("copied",))]
    rows: Annotated[Any, Field(i4, ("copied",))]
    cells: Annotated[Any, Field(i4, ("copied",))]
    is_stored: Annotated[Any, Field(np.bool_, ("own",))]
    chosen: Annotated[Any, Field(CHOSEN)]


class Compared(NamedTuple):
    """What was said of the rows of a block before they were learnt, of their candidates alone.

    known : the number of known classes; counts : that of candidates; said : the place of the
    predicted class among them; classes, scores : their classes and scores; probabilities :
    those of the predicted class and of the target, then of each candidate; targets : the place of
    the target among them, -1 if its class was new. A target that was no candidate follows them. Of
    label sets, the threshold is the first candidate, there are no targets, and the first two
    probabilities are that of each label that is no candidate and the highest of a label that the
    row does not have.
    """

    known: Annotated[Any, Field(i4, ("trial",))]
    counts: Annotated[Any, Field(i4, ("trial",))]
    said: Annotated[Any, Field(i4, ("trial",))]
    classes: Annotated[Any, Field(i4, ("trial", "candidate"))]
    scores: Annotated[Any, Field(f4, ("trial", "candidate"))]
    probabilities: Annotated[Any, Field(f8, ("trial", "two and candidate"))]
    targets: Annotated[Any, Field(i4, ("trial",))]


class CandidateRecord(NamedTuple):
    """The entries, the scratch arrays, and how candidates are chosen.

    most : the maximum number of candidates; budget : of entries that are visited to find them;
    n_virtual : of classes without rows, which are always candidates and come first.
    """

    entries: Entries
    choice: Choice
    recall: Annotated[Any, Field(RECALL)]
    missing: Annotated[Any, Field(MISSING)]
    most: int
    budget: int
    n_virtual: int
    exponentials: Annotated[Any, Given(f4)]
