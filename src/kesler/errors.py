"""The exception that Kesler raises for errors that a user can correct, and its warnings.

Parameters out of their range, methods and arguments that other estimators have, and pickles that
another version wrote are refused here.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from inspect import currentframe
from numbers import Integral, Rational, Real
from typing import Any


class KeslerError(ValueError):
    """Exception for invalid input, parameters or files.

    Its message is one sentence that says what was wrong, where, and what to do. It derives from
    ``ValueError``, as scikit-learn expects; scikit-learn's own validation raises its own errors.
    The command line prints the message and exits with code 2.

    Examples
    --------
    >>> from kesler.errors import KeslerError
    >>> raise KeslerError("row 3 holds NaN: fill or drop missing values")
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: row 3 holds NaN: fill or drop missing values
    """


def require_choice(name: str, value: Any, choices: Iterable[str | None]) -> None:
    """Raise unless a parameter has one of these values.

    Examples
    --------
    >>> require_choice("loss", "softmax", ("softmax", "margin-softmax"))
    """
    known = [*choices]
    if not isinstance(value, str | None) or value not in known:
        raise KeslerError(f"{name}={value!r} is unknown: use {' or '.join(map(repr, known))}")


def is_flag(value: Any) -> bool:
    """Return whether a value is True or False, of Python or of NumPy.

    Examples
    --------
    >>> is_flag(False), is_flag(0), is_flag("yes")
    (True, False, False)
    """
    is_numpys = str(getattr(value, "dtype", "")) == "bool" and not value.shape
    return isinstance(value, bool) or is_numpys


def require_flag(part: Any, name: str) -> None:
    """Keep a parameter of a part as a bool; raise unless it is True or False."""
    value = getattr(part, name)
    if not is_flag(value):
        raise KeslerError(
            f"{type(part).__name__}({name}={value!r}): give True or False, a truth value"
        )
    object.__setattr__(part, name, bool(value))


def require_weights(part: Any) -> None:
    """Keep the weights of a part as a tuple of floats, or None; raise unless they are valid."""
    if part.weights is None:
        return
    try:
        found = tuple(map(float, part.weights))
    except (TypeError, ValueError):
        found = ()
    if not found or not all(0 <= each < math.inf for each in found) or not any(found):
        raise KeslerError(
            f"{type(part).__name__}(weights={part.weights!r}): give a number of 0 or more for each "
            "input, not all of them 0, or None"
        )
    object.__setattr__(part, "weights", found)


def require_width(part: Any, n_inputs: int) -> None:
    """Raise unless a part has as many weights as rows have inputs."""
    if len(part.weights) != n_inputs:
        raise KeslerError(
            f"{type(part).__name__}(weights=...) has {len(part.weights)} weights, but rows have "
            f"{n_inputs} inputs: give a weight for each"
        )


# ---- ranges of numbers -------------------------------------------------------------------------


def is_integer(value: Any, least: float = -math.inf, most: float = math.inf) -> bool:
    """Return whether a value is an integer in a range, and no truth value.

    Examples
    --------
    >>> is_integer(3, 1, 5), is_integer(3.0), is_integer(True), is_integer(0, 1)
    (True, False, False, False)
    """
    is_whole = isinstance(value, Integral) and not isinstance(value, bool)
    return is_whole and least <= value <= most


def is_number(
    value: Any,
    least: float = -math.inf,
    most: float = math.inf,
    above: float = -math.inf,
    below: float = math.inf,
) -> bool:
    """Return whether a value is a finite number in a range, and no truth value or fraction.

    Examples
    --------
    >>> is_number(0.5, above=0), is_number(0, above=0), is_number(math.nan), is_number(True)
    (True, False, False, False)
    """
    if not isinstance(value, Real) or (isinstance(value, Rational) and not is_integer(value)):
        return False
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the floats
        return False
    return least <= number <= most and above < number < below


def integer_of(name: str, value: Any, least: int, most: float = math.inf, why: str = "") -> int:
    """Return a parameter as an int; raise unless it is an integer in a range.

    Parameters
    ----------
    name, value : the parameter.
    least, most : the range.
    why : what follows in the sentence.

    Examples
    --------
    >>> integer_of("n_trees", 30, 1, 100)
    30
    """
    return _integer(f"{name}={value!r}", value, least, most, why)


def number_of(name: str, value: Any, why: str = "", **limits: float) -> float:
    """Return a parameter as a float; raise unless it is a finite number in a range.

    Parameters
    ----------
    name, value, why : as in `integer_of`.
    limits : `least`, `most`, `above` and `below`, as in `is_number`.

    Examples
    --------
    >>> number_of("share", 2, ": it is a part", above=0, most=1)
    Traceback (most recent call last):
    ...
    kesler.errors.KeslerError: share=2 must be a finite number above 0 and at most 1: it is a part
    """
    return _number(f"{name}={value!r}", value, why, limits)


def keep_integer(
    part: Any, name: str, least: int, most: float = math.inf, *, or_none: bool = False
) -> None:
    """Keep a parameter of a part as an int; raise unless it is an integer in a range.

    With `or_none`, it may be None.
    """
    value = getattr(part, name)
    if not (or_none and value is None):
        object.__setattr__(part, name, _integer(_subject(part, name), value, least, most, ""))


def keep_number(part: Any, name: str, why: str = "", **limits: float) -> None:
    """Keep a parameter of a part as a float; raise unless it is a finite number in a range."""
    value = getattr(part, name)
    object.__setattr__(part, name, _number(_subject(part, name), value, why, limits))


def _subject(part: Any, name: str) -> str:
    return f"{type(part).__name__}({name}={getattr(part, name)!r}): {name}"


def _integer(subject: str, value: Any, least: int, most: float, why: str) -> int:
    if not is_integer(value, least, most):
        limit = f"of {least:,} or more" if most == math.inf else f"from {least:,} to {most:,}"
        raise KeslerError(f"{subject} must be an integer {limit}{why}")
    return int(value)


def _number(subject: str, value: Any, why: str, limits: dict[str, float]) -> float:
    if not is_number(value, **limits):
        raise KeslerError(f"{subject} must be a finite number{_in_words(**limits)}{why}")
    return float(value)


def _in_words(
    least: float | None = None,
    most: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> str:
    """Return limits in words, such as " above 0 and at most 1"."""
    if least is not None and most is not None:
        return f" from {_limit(least)} to {_limit(most)}"
    words = {
        "of {} or more": least,
        "above {}": above,
        "at most {}": most,
        "below {}": below,
    }
    said = [text.format(_limit(limit)) for text, limit in words.items() if limit is not None]
    return " " * bool(said) + " and ".join(said)


# ---- what only some estimators have -------------------------------------------------------------

UNESTIMATED = (
    "does not estimate its uncertainty: use a classifier that does, such as OnlineClassifier()"
)

NO_ESTIMATES = dict.fromkeys(
    ("predict_set", "predict_set_one", "predict_path", "predict_path_one"), f"it {UNESTIMATED}"
)
"""Why an estimator has no methods that need its uncertainty."""

OF_BATCHES = {
    **NO_ESTIMATES,
    **dict.fromkeys(
        ("predict_one", "predict_proba_one", "predict_top_one"),
        "it predicts batches of rows: give the method without _one a batch of one row",
    ),
    **dict.fromkeys(
        ("predict_proba", "predict_log_proba"),
        "its scores stand for no probabilities: use SoftmaxClassifier, or CalibratedClassifierCV "
        "of scikit-learn",
    ),
}
"""Why a classifier of batches has none of these methods, which some classes define."""


def require_unasked(estimator: Any, **asked: Any) -> None:
    """Raise if an argument that needs estimates of uncertainty is given, or a flag is set."""
    for name, value in asked.items():
        is_off = is_flag(value) and not value and name != "min_confidence"
        if value is not None and not is_off:
            raise KeslerError(f"{name}={value!r}: {type(estimator).__name__} {UNESTIMATED}")


def require_present(estimator: Any, name: str) -> None:
    """Raise an AttributeError that says why an estimator has no such method, if it says why."""
    reason = getattr(type(estimator), "_absent", {}).get(name)
    if reason is not None:
        raise AttributeError(f"{type(estimator).__name__} has no {name}, since {reason}")


def absent(estimator: Any, name: str) -> Any:
    """Raise an AttributeError, as `__getattr__` of an estimator does; see `require_present`."""
    require_present(estimator, name)
    return object.__getattribute__(estimator, name)  # raises its own


def _limit(limit: float) -> str:
    return f"{limit:,.0f}" if 1000 <= limit < 1e12 else f"{limit:g}"


def keep_settings(estimator: Any, given: dict[str, Any]) -> None:
    """Set the arguments of a constructor, its `locals()`, as attributes of the same names."""
    for name, value in given.items():
        if name != "self":
            setattr(estimator, name, value)


# ---- pickles ------------------------------------------------------------------------------------


WRITTEN_BY = "written_by"  # what the version is called in a pickle


def signed(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes that a pickle contains, with the version that writes it."""
    from kesler import __version__

    return attributes | {WRITTEN_BY: __version__}


def set_state(self: Any, state: dict[str, Any]) -> None:
    """Set the attributes that a pickle contains, unless another version has written it.

    Methods and compiled code rely on what they find, and another version may store other things.
    """
    from kesler import __version__

    written_by = state.get(WRITTEN_BY, __version__)  # copies within a process name no version
    if written_by != __version__:
        files = "; files that `save` writes are read by all later versions"
        raise KeslerError(
            f"this {type(self).__name__} was pickled by kesler {written_by}, and this is kesler "
            f"{__version__}, which may store other things: load it with kesler {written_by}"
            f"{files if hasattr(type(self), 'save') else ', or fit it again'}"
        )
    vars(self).update((name, value) for name, value in state.items() if name != WRITTEN_BY)


def state_of(self: Any) -> dict[str, Any]:
    """Return what a pickle contains, as `__getstate__` of an estimator without a lock does."""
    return signed(vars(self))


# ---- cells and files ----------------------------------------------------------------------------


class MismatchError(KeslerError):
    """A cell that its column cannot hold.

    Parameters
    ----------
    sentence : str
        What was wrong, where, and what to do.
    said : str
        What was wrong.
    row : int
        The number of its row in the table, from 0.
    """

    def __init__(self, sentence: str, said: str, row: int) -> None:
        super().__init__(sentence, said, row)
        self.said = said
        self.row = row

    def __str__(self) -> str:
        return str(self.args[0])


class MismatchWarning(UserWarning):
    """A cell does not fit its column and counts as missing, or a setting does not fit labels.

    Or numbers of a column differ in digits that float32 does not hold.
    """


class ReadingWarning(UserWarning):
    """A file was read in a way that was found in it, and that may be wrong."""


def warn(sentence: str, category: type[Warning]) -> None:
    """Warn of the line outside Kesler that called it; Python shows a sentence once for each line.

    Parameters
    ----------
    sentence : what is unusual, and what to do.
    category : the kind of warning.
    """
    frame, level = currentframe(), 1
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "kesler":
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, category, stacklevel=level)
