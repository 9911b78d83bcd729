"""Model: what the parts of an estimator read of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, ClassVar, Protocol

from kesler.data.labels import Label
from kesler.data.rows import Rows
from kesler.learner.classes import ClassTable
from kesler.learner.ensemble import AnyLearner


class Model(Protocol):
    """An estimator as its reader, its trials and its answers see it.

    They are functions of an estimator and of what it has learnt; its class is defined above them.
    """

    columns: Any
    on_mismatch: str
    update: Any
    half_life: float | None
    epochs: int | str
    shuffle: bool | str
    random_state: int
    class_weight: Any
    _balance: Mapping[Label, float] | None
    vectors: Any
    memory_limit: Any
    answer: ClassVar[Any]  # a `ClassAnswer`
    _maker: ClassVar[Any]
    _learner: AnyLearner | None
    _declared: Sequence[Label]

    @property
    def _input(self) -> Any: ...  # a `Reader`

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""
        ...

    def _fitted(self) -> AnyLearner: ...
    def _prepared(self, *, dense: bool) -> AnyLearner: ...
    def _known_classes(self) -> ClassTable: ...
    def _takes_ratings(self) -> bool: ...
    def _between_trials(self) -> AbstractContextManager[Any]: ...
    def _blocks(self, X: Any, y: Any, *given: Any) -> Iterator[Any]: ...
    def rows_again(self) -> AbstractContextManager[None]:
        """Learn rows that have been learnt before."""
        ...

    def _run_trials(self, X: Any, y: Any, *given: Any, **keeping: Any) -> Any: ...
    def _learn(self, rows: Rows, *given: Any, **keeping: Any) -> Any: ...
    def _learn_rows(self, rows: Rows, *given: Any, **keeping: Any) -> Any: ...
