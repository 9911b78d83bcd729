"""Laws of estimators that learn from streams, to check your own and those of other libraries.

:func:`check_stream_estimator` checks them all, :func:`parametrize_with_laws` makes a test of each.
Each law is a function of an unfitted estimator, listed in :data:`LAWS`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kesler.checks.laws import LAWS
from kesler.checks.subject import LawBroken, NotApplicable, require_stream_estimator
from kesler.errors import KeslerError

__all__ = [
    "LAWS",
    "LawBroken",
    "LawOutcome",
    "NotApplicable",
    "check_stream_estimator",
    "parametrize_with_laws",
]

Status = Literal["holds", "broken", "not applicable"]


@dataclass(frozen=True, slots=True)
class LawOutcome:
    """What the check of a law found.

    Attributes
    ----------
    law : str
        Name of the law.
    status : {'holds', 'broken', 'not applicable'}
    reason : str
        Why the law is broken or not applicable; empty if it holds.

    Examples
    --------
    >>> from kesler.checks import LawOutcome
    >>> print(LawOutcome("stream_equals_batch", "not applicable", "it has no partial_fit"))
    stream_equals_batch: not applicable, it has no partial_fit
    """

    law: str
    status: Status
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.law}: {self.status}{', ' * bool(self.reason)}{self.reason}"


def check_stream_estimator(
    estimator: Any,
    *,
    laws: Collection[str] | None = None,
    exempt: Mapping[str, str] | None = None,
    on_fail: Literal["raise", "report"] = "raise",
) -> list[LawOutcome]:
    """Check that an estimator keeps the laws of learning from streams.

    Parameters
    ----------
    estimator : object
        An unfitted classifier with one label for each row: with `partial_fit` and `predict`, as in
        scikit-learn, or with `learn_one` and `predict_one`, as in river. It is not changed.
    laws : collection of str, optional
        Names of the laws to check; all of :data:`LAWS` by default.
    exempt : mapping of str to str, optional
        Laws that the estimator is known to break, with the reason; they count as not applicable.
    on_fail : {'raise', 'report'}, default 'raise'
        Whether a broken law raises an error, after all laws were checked, or is only reported.

    Returns
    -------
    list of LawOutcome
        One for each law, in the order of :data:`LAWS`.

    Raises
    ------
    LawBroken
        If a law is broken; the message names all that are.
    KeslerError
        If the estimator has neither interface or is fitted, or a law is unknown.

    Notes
    -----
    Estimators that need all classes in the first call of `partial_fit` are given them, and laws on
    classes that appear later do not apply to them. An estimator with both interfaces is checked
    through `partial_fit`, and by the laws on mappings through `learn_one`.

    Examples
    --------
    >>> from sklearn.linear_model import SGDClassifier
    >>> from kesler.checks import check_stream_estimator
    >>> found = check_stream_estimator(SGDClassifier(shuffle=False, random_state=0))
    >>> print(found[0])
    batch_equals_stream: holds
    >>> print(found[2])
    classes_may_appear: not applicable, all classes must be given in the first call of partial_fit
    """
    chosen = _chosen(laws)
    unknown = set(exempt or ()) - set(LAWS)
    if unknown:
        raise KeslerError(f"exempt names no law: {sorted(unknown)}; choose from {list(LAWS)}")
    require_stream_estimator(estimator)
    found = [_outcome(name, estimator, exempt or {}) for name in chosen]
    broken = [each for each in found if each.status == "broken"]
    if broken and on_fail == "raise":
        lines = "".join(f"\n- {each.law}: {each.reason}" for each in broken)
        raise LawBroken(f"{type(estimator).__name__} breaks {len(broken)} of the laws:{lines}")
    return found


def parametrize_with_laws(estimators: Iterable[Any]) -> Any:
    """Return a pytest decorator that runs a test for each estimator and law.

    The test takes the arguments `estimator` and `law` and calls `law(estimator)`. A law that is not
    applicable raises :class:`NotApplicable`, which the test may turn into a skip.

    Parameters
    ----------
    estimators : iterable of unfitted estimators

    Returns
    -------
    decorator

    Examples
    --------
    >>> import pytest
    >>> from sklearn.naive_bayes import MultinomialNB
    >>> from kesler.checks import NotApplicable, parametrize_with_laws
    >>> @parametrize_with_laws([MultinomialNB()])
    ... def test_laws(estimator, law):
    ...     try:
    ...         law(estimator)
    ...     except NotApplicable as reason:
    ...         pytest.skip(str(reason))
    """
    import pytest

    cases = [
        pytest.param(each, law, id=f"{type(each).__name__}-{name}")
        for each in estimators
        for name, law in LAWS.items()
    ]
    return pytest.mark.parametrize("estimator, law", cases)


def _chosen(laws: Collection[str] | None) -> list[str]:
    """Return the names of the laws to check, in the order of LAWS."""
    unknown = set(laws or ()) - set(LAWS)
    if isinstance(laws, str) or unknown:
        raise KeslerError(f"laws={laws!r}: give a list of names of {list(LAWS)}")
    return [name for name in LAWS if laws is None or name in laws]


def _outcome(name: str, estimator: Any, exempt: Mapping[str, str]) -> LawOutcome:
    if name in exempt:
        return LawOutcome(name, "not applicable", exempt[name])
    try:
        with warnings.catch_warnings():
            # A warning breaks no law, not even where a test makes errors of warnings.
            warnings.simplefilter("ignore")
            LAWS[name](estimator)
    except NotApplicable as reason:
        return LawOutcome(name, "not applicable", str(reason))
    except LawBroken as error:
        return LawOutcome(name, "broken", str(error))
    except Exception as error:  # an estimator may raise anything where the law allows nothing
        return LawOutcome(name, "broken", f"it raised {type(error).__name__}: {error}")
    return LawOutcome(name, "holds")
