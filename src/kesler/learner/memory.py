"""Limits on memory: what a learner holds, and which features it drops."""

from __future__ import annotations

import math
import re
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from kesler.errors import KeslerError
from kesler.hypotheses import PerClass, Shared
from kesler.links.link import Linear
from kesler.state.capacity import KEPT_AT_ONCE, SIMD_WIDTH, keep_along, whole_lines
from kesler.state.fields import (
    Arrays,
    allocated,
    array_of,
    checked,
    fields_of,
    put,
    size_of,
)
from kesler.state.memory import Usage

if TYPE_CHECKING:
    from kesler.data.rows import Vocabulary

EVERY = 256
"""The number of rows after which the memory is measured."""

SHARE_KEPT = 3 / 4
"""The share of the limit that is left when features are dropped."""

DISCOUNT = 0.9
"""The factor of all counts of rows when features are dropped."""

LEAST_FEATURES = 256  # that a limit must hold for the known classes

PREFIX = "memory."  # of the names in a model file
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_BINARY = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_WRITTEN = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*")

# Bytes that Python takes for a name without its letters, its number and their place in a mapping;
# of the count of a feature; of where its entries are; of a label; and of the table by which names
# are found fast, for each name and at most.
BYTES_OF_NAME, BYTES_OF_COUNT, BYTES_OF_BLOCK, BYTES_OF_CLASS = 160, 8, 16, 400
BYTES_OF_RECENT, MOST_RECENT = 512, 1 << 25

Numbers = npt.NDArray[np.int64]


def resolve_memory_limit(given: Any) -> int | None:
    """Return the bytes that a parameter stands for; None for no limit.

    Raises
    ------
    KeslerError
        If it is neither a number of bytes above 0 nor a text such as "200 MB".

    Examples
    --------
    >>> resolve_memory_limit("1.5 GB"), resolve_memory_limit("64 MiB"), resolve_memory_limit(None)
    (1500000000, 67108864, None)
    """
    if given is None:
        return None
    n_bytes = 0.0
    if isinstance(given, str) and (found := _WRITTEN.fullmatch(given)):
        n_bytes = float(found[1]) * (_UNITS | _BINARY).get(found[2].upper(), 0)
    elif isinstance(given, Real) and not isinstance(given, bool):
        n_bytes = float(given)
    if not 1 <= n_bytes < 2**62:
        raise KeslerError(
            f"memory_limit={given!r}: give a number of bytes above 0, a text with a unit such as "
            '"200 MB" or "1 GiB", or None for no limit'
        )
    return int(n_bytes)


def why_unlimited(learner: Any) -> str | None:
    """Return why a learner cannot drop features; None if it can."""
    if learner.grows_trees:
        return "trees keep rows, whose number ExtraTrees(n_rows=) limits"
    if not learner.has_weights:
        return "a kernel keeps rows, whose number budget= limits"
    if learner.explores or learner.takes_ratings:
        return "this learner does not take texts or mappings of names alone"
    if not isinstance(learner.link, Linear) or learner.rule.update is not None:
        return "with this link or algorithm a weight depends on all others"
    if learner.preconditioner.is_full:
        return "this preconditioner keeps a matrix of all features"
    if learner.expansion is not None:
        return "this preprocessing takes rows that list every feature"
    if learner.replay is not None:
        return "the rows that replay keeps hold features that would be dropped"
    return None


class Memory:
    r"""The limit of a learner, and how often each of its named features came.

    The worth of feature i, which n_i rows had since it was first seen, is

    .. math:: n_i \max_r |w_{ir}|,

    and features of least worth are dropped. All n_i are multiplied by 0.9 then, so that words of
    the past give way to those of the present.

    Parameters
    ----------
    limit : the maximum number of bytes.

    Attributes
    ----------
    stored : the arrays of :class:`kesler.state.memory.Usage`.

    Notes
    -----
    With a quarter of the memory, mistakes relative to no limit are 1.10, 1.19 and 1.09 on clinc150,
    languages and WordNet, and 1.00 on languages that come and go. Without the discount they are
    1.08, 1.19, 1.09 and 1.07, and by counts alone 1.12, 1.26, 1.10 and 1.18. The rule was chosen on
    these texts. It does not heed how many bytes the weights of a feature take.

    Counts that decay are those of aging in caches of least frequent use (Robinson and Devarakonda
    1990, "Data cache management using frequency-based replacement").
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.stored = allocated(fields_of(Usage), self, {"feature": 64})
        self._n_measured = self._n_letters = 0  # names so far

    @property
    def n_dropped(self) -> int:
        """How many features were dropped, each as often as it was."""
        return int(self.stored["dropped"]["n_dropped"][0])

    # ---- rows -------------------------------------------------------------------------------

    def count(self, indices: npt.NDArray[np.int32]) -> None:
        """Count the features of rows that were learnt, by their numbers without a constant one."""
        self._reserve(int(indices.max(initial=-1)) + 1)
        np.add.at(self.stored["counts"], indices, 1.0)

    def _reserve(self, n_features: int) -> None:
        n_before = len(self.stored["counts"])
        if n_features > n_before:
            counts = np.zeros(max(n_features, 2 * n_before))
            put(self.stored["counts"], counts)
            self.stored["counts"] = counts

    def keep(self, kept: Numbers, n_before: int) -> None:
        """Forget all but some of the first features, which are numbered from 0."""
        counts = self.stored["counts"]
        keep_along(counts, 0, kept, n_before)
        counts *= DISCOUNT
        self.stored["dropped"]["n_dropped"] += n_before - len(kept)

    # ---- what is dropped --------------------------------------------------------------------

    def kept(self, learner: Any, names: Vocabulary, n_classes: int) -> Numbers | None:
        """Return the named features that are kept, in order; None while the limit holds for all.

        Parameters
        ----------
        learner : the learner of this limit.
        names : the names of its features, and possibly further ones.
        n_classes : the number of classes that it is to know.

        Raises
        ------
        KeslerError
            If the limit is too small for so many classes.
        """
        if self.measured(learner, names, n_classes, most=True) <= self.limit:
            return None
        if self.measured(learner, names, n_classes) <= self.limit:
            return None
        n, (fixed, of_feature) = learner.n_named_features, sizes(learner, n_classes)
        self._reserve(n)
        best, own = self._by_worth(learner, n), names.names[:n]
        of_each = of_feature + letters_of(own) + entry_bytes(learner, n)
        held_by = fixed + np.cumsum(of_each[best]) + of_recent(np.arange(1, n + 1))
        n_kept = int(np.searchsorted(held_by, SHARE_KEPT * self.limit, side="right"))
        if n_kept < LEAST_FEATURES:
            least = held_by[:LEAST_FEATURES].max(initial=fixed) / SHARE_KEPT
            raise KeslerError(
                f"memory_limit={self.limit:,} bytes is too small for {n_classes:,} classes: set "
                f"at least {math.ceil(least):,} bytes, which hold {LEAST_FEATURES} features of them"
            )
        found: Numbers = np.sort(best[:n_kept])
        self._n_measured, self._n_letters = n_kept, int(letters_of(own)[found].sum())
        return found

    def measured(
        self, learner: Any, names: Vocabulary, n_classes: int, *, most: bool = False
    ) -> int:
        """Return the bytes of a learner of so many classes; `most` is as for entries."""
        n = learner.n_named_features
        self._measure_names(names, n)
        return held(learner, n_classes, most=most) + self._n_letters + int(of_recent(n))

    def _measure_names(self, names: Vocabulary, n: int) -> None:
        """Add up the letters of the first n names."""
        new = names.since(self._n_measured)[: n - self._n_measured]
        self._n_letters += int(letters_of(new).sum())
        self._n_measured = n

    def _by_worth(self, learner: Any, n: int) -> Numbers:
        """Return the named features by worth, the largest first; of equal ones, the last first."""
        worth = self.stored["counts"][:n] * largest_weights(learner)[learner.n_features - n :]
        found: Numbers = np.argsort(worth, kind="stable")[::-1]
        return found

    # ---- capacity ---------------------------------------------------------------------------

    def capacity(self, learner: Any, wanted: int, needed: int) -> int:
        """Return a capacity for features, of at most `wanted`, that the limit can use.

        Rows that come before the memory is measured again may need a little more.
        """
        fixed, of_feature = sizes(learner, learner.n_known)
        free = max(0, self.limit - fixed - bytes_of_entries(learner))
        most = whole_lines(free // of_feature)
        return max(whole_lines(needed + needed // 16), min(wanted, most))

    # ---- saving -----------------------------------------------------------------------------

    def arrays(self, n_features: int) -> Arrays:
        """Return what a model file stores of the first named features."""
        self._reserve(n_features)
        return {
            PREFIX + name: array_of(array if name == "dropped" else array[:n_features])
            for name, array in self.stored.items()
        }

    def restore(self, arrays: Arrays, n_features: int) -> None:
        """Restore what `arrays` returned.

        Raises
        ------
        KeslerError
            If the arrays do not fit this many features.
        """
        found = checked(fields_of(Usage), self, {"feature": n_features}, arrays, PREFIX)
        self._reserve(n_features)
        for name, array in found.items():
            put(array, self.stored[name])


def largest_weights(learner: Any) -> npt.NDArray[np.float64]:
    """Return the largest absolute weight of each feature in the hypotheses of classes.

    Where all classes share their hypotheses, these are meant, less the initial weights.
    """
    found = np.zeros(learner.n_features)
    if learner.comparing is not None:
        found[:] = learner.comparing.entries.largest(len(found))
        return found
    of_classes = not all(isinstance(part, Shared) for part in learner.parts)
    for i, part in enumerate(learner.parts):
        if isinstance(part, Shared) and of_classes:
            continue
        columns = learner._columns[i]
        if isinstance(part, PerClass):  # without the virtual class
            columns = slice(columns.start, columns.start + learner.n_known)
        for start in range(0, len(found), KEPT_AT_ONCE):
            some = slice(start, min(len(found), start + KEPT_AT_ONCE))
            weights = np.abs(learner.weights[some, columns] - np.float32(part.begins_at))
            np.maximum(found[some], weights.max(axis=1, initial=0.0), out=found[some])
    return found


# ---- bytes --------------------------------------------------------------------------------------


def sizes(learner: Any, n_classes: int) -> tuple[int, int]:
    """Return the bytes that a learner holds without features, and those of each feature.

    They follow from what a model file holds, so that a loaded model goes on like a saved one: the
    capacity for classes is taken for a power of two.
    """
    n_places = room_for(learner, n_classes)
    width = learner._table_columns(n_places, [_power(len(each)) for each in learner.groups])[1]
    none, one = (
        size_of(learner._fields, learner, learner._lengths(n_places, n, width)) for n in (0, 1)
    )
    of_feature = one - none + BYTES_OF_NAME + BYTES_OF_COUNT
    if learner.comparing is not None:
        of_feature += BYTES_OF_BLOCK
    return none + n_classes * BYTES_OF_CLASS, of_feature


def held(learner: Any, n_classes: int, *, most: bool = False) -> int:
    """Return the bytes of a learner without the letters of names; `most` is as for entries."""
    fixed, of_feature = sizes(learner, n_classes)
    return fixed + int(learner.n_named_features) * of_feature + bytes_of_entries(learner, most=most)


def room_for(learner: Any, n_classes: int) -> int:
    """Return the capacity for so many classes that is counted."""
    return _power(n_classes + learner.n_virtual + learner._n_beside)


def _power(n: int) -> int:
    """Return the least power of two that is n or more, and fills a cache line."""
    return max(SIMD_WIDTH, 1 << (n - 1).bit_length())


def of_recent(n: Any) -> Any:
    """Return the bytes of the table of recent names, if there are n names."""
    return np.minimum(BYTES_OF_RECENT * np.asarray(n), MOST_RECENT)


def letters_of(names: list[str]) -> Numbers:
    """Return the bytes of the letters of each name."""
    lengths = [len(name) if name.isascii() else 2 * len(name) for name in names]
    return np.array(lengths, dtype=np.int64)


def bytes_of_entries(learner: Any, *, most: bool = False) -> int:
    """Return the bytes of all entries; if `most`, a larger number that is found at once."""
    if learner.comparing is None:
        return 0
    entries = learner.comparing.entries
    if most:
        return int(entries.stored["pool"]["n_used"][0]) * int(entries.bytes_of_place)
    return int(entry_bytes(learner, learner.n_features).sum())


def entry_bytes(learner: Any, n_features: int) -> Numbers:
    """Return the bytes of the entries of each feature."""
    if learner.comparing is None:
        return np.zeros(n_features, dtype=np.int64)
    found: Numbers = learner.comparing.entries.block_bytes[:n_features]
    return found
