"""The settings of an estimator that has not learnt yet, as JSON, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

from kesler.errors import KeslerError

ESTIMATORS = {
    "OnlineClassifier": "kesler.online.classifier",
    "Ensemble": "kesler.online.ensemble",
    "LinearMax": "kesler.online.linear_max",
    "OnlineMultilabelClassifier": "kesler.online.multilabel",
    "OnlineLabelRanker": "kesler.online.ranking",
    "OnlineOrdinalClassifier": "kesler.online.ordinal",
}
"""The estimators that a journal can hold, and the modules that define them."""

_PARTS = tuple(
    f"kesler.{name}"
    for name in (
        *("algorithms", "budgets", "exploration", "hypotheses", "kernels", "links", "maps"),
        *("preconditioners", "preprocessing", "queries", "trees", "updates"),
    )
)
# Where parts were when journals of Kesler 0.1 were written.
_FORMER = {
    "kesler.parts.trees": "kesler.trees.tree",
    "kesler.parts.replay": "kesler.preprocessing.replay",
}
_FORMS: dict[str, Callable[[Any], Any]] = {
    "estimator": lambda written: estimator_of(written),
    "part": lambda written: _restored_part(written),
    "tuple": lambda written: tuple(map(_restored, written)),
    "mapping": lambda written: {_restored(key): _restored(value) for key, value in written},
}


def settings_of(estimator: Any) -> dict[str, Any]:
    """Return the class and the parameters of an estimator, for `estimator_of`.

    Raises
    ------
    KeslerError
        If the estimator is not one of `ESTIMATORS`, has learnt already, or has a parameter that
        is code, such as a rule of the user.

    Examples
    --------
    >>> from kesler import OnlineClassifier
    >>> found = settings_of(OnlineClassifier("multi", update="pa1", C=0.5))
    >>> found["name"], found["parameters"]["C"]
    ('OnlineClassifier', 0.5)
    """
    name = type(estimator).__name__
    if ESTIMATORS.get(name) != type(estimator).__module__:
        raise KeslerError(
            f"{estimator!r:.60} cannot be kept in a journal: give one of {', '.join(ESTIMATORS)}"
        )
    if "_learner" in vars(estimator):
        raise KeslerError(
            f"this {name} has learnt already, from rows that the journal does not have: give a new "
            "one, and teach it these rows with learn_many"
        )
    _require_rows(estimator)
    if vars(estimator).get("label_budget") is not None:
        raise KeslerError(
            "a journal does not keep which rows have been offered to a label budget: open the "
            "model without label_budget, and offer rows to a copy() of it that has one"
        )
    parameters = estimator.get_params(deep=False)
    return {
        "name": name,
        "parameters": {key: _described(value, key) for key, value in parameters.items()},
    }


def _require_rows(estimator: Any) -> None:
    """Raise if an estimator learns from ratings, or its parameters do not fit each other."""
    if estimator._takes_ratings():
        raise KeslerError(
            f"{estimator!r:.60} learns from ratings by sub-experts, which a journal does not keep: "
            "give hypotheses of features"
        )


def estimator_of(settings: Any) -> Any:
    """Return a new estimator with the settings that `settings_of` returned.

    Raises
    ------
    KeslerError
        If they name an estimator, a part or a parameter that this version does not know.
    """
    try:
        name, parameters = settings["name"], settings["parameters"]
        made = getattr(import_module(ESTIMATORS[name]), name)
        return made(**{key: _restored(value) for key, value in parameters.items()})
    except (AttributeError, ImportError, LookupError, TypeError, ValueError) as error:
        raise KeslerError(
            f"the settings of the model do not fit this version of Kesler ({error}): use the "
            "version that wrote the journal, or a newer one"
        ) from error


def _described(value: Any, parameter: str) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list):
        return [_described(each, parameter) for each in value]
    if isinstance(value, tuple):
        return {"tuple": [_described(each, parameter) for each in value]}
    if isinstance(value, Mapping):
        pairs = [[_described(each, parameter) for each in pair] for pair in value.items()]
        return {"mapping": pairs}
    if type(value).__name__ in ESTIMATORS:
        return {"estimator": settings_of(value)}
    if is_dataclass(value) and not isinstance(value, type):
        return {"part": _described_part(value, parameter)}
    raise _not_kept(parameter, value)


def _described_part(part: Any, parameter: str) -> dict[str, Any]:
    values = {each.name: getattr(part, each.name) for each in fields(part) if each.init}
    is_own = any(isinstance(value, FunctionType) for value in values.values())
    if is_own or not type(part).__module__.startswith(_PARTS):
        raise _not_kept(parameter, part)
    described = {name: _described(value, parameter) for name, value in values.items()}
    return {"module": type(part).__module__, "name": type(part).__name__, "fields": described}


def _not_kept(parameter: str, value: Any) -> KeslerError:
    return KeslerError(
        f"{parameter}={value!r:.60} cannot be kept in a journal, which stores no code: use the "
        "parts of Kesler, by their names or as objects"
    )


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return [_restored(each) for each in value]
    if not isinstance(value, dict):
        return value
    ((form, written),) = value.items()
    return _FORMS[form](written)


def _restored_part(written: dict[str, Any]) -> Any:
    """Return a part; only dataclasses of the package of parts are made."""
    module, name = written["module"], written["name"]
    module = _FORMER.get(module, module.replace("kesler.parts.", "kesler."))
    if not module.startswith(_PARTS):
        raise LookupError(f"{module} defines no part")
    part = getattr(import_module(module), name)
    if not (isinstance(part, type) and is_dataclass(part) and part.__module__ == module):
        raise LookupError(f"{module}.{name} is no part")
    return part(**{key: _restored(value) for key, value in written["fields"].items()})


def labels_in(estimator: Any) -> list[Any]:
    """Return the labels that the parameters of an estimator name."""
    own = vars(estimator)
    costs, order = own.get("costs"), own.get("order")
    found = [label for pair in costs for label in pair] if isinstance(costs, Mapping) else []
    found += [] if order is None else list(order)
    found += [label for groups in _groups_of(estimator) for named in groups for label in named]
    found += [node for tree in _trees_of(estimator) for node in tree.nodes]
    return found + [label for member in _members_of(estimator) for label in labels_in(member)]


def depends_on_names(estimator: Any) -> bool:
    """Return whether what an estimator learns depends on the names of classes.

    Classes have costs, groups and places in a tree by their names, and ranks the order of theirs.
    """
    own = vars(estimator)
    is_by_name = own.get("costs") is not None or "order" in own
    return (
        is_by_name
        or bool(_groups_of(estimator) or _trees_of(estimator))
        or any(map(depends_on_names, _members_of(estimator)))
    )


def _members_of(estimator: Any) -> list[Any]:
    """Return the members of an ensemble that the parameters list."""
    given = vars(estimator).get("learners") or vars(estimator).get("update")
    return list(given) if isinstance(given, (list, tuple)) else []


def _trees_of(estimator: Any) -> list[Any]:
    """Return the tree that is given, and those of the hypotheses."""
    given, parts = vars(estimator).get("tree"), vars(estimator).get("hypotheses")
    each = parts if isinstance(parts, (list, tuple)) else [parts]
    found = [part.tree for part in each if getattr(part, "tree", None) is not None]
    if given is None:
        return found
    from kesler.trees.tree import Tree

    return [Tree(given), *found]


def _groups_of(estimator: Any) -> list[list[list[Any]]]:
    """Return the labels of each group of each of the hypotheses that have groups."""
    parts = vars(estimator).get("hypotheses")
    each = parts if isinstance(parts, (list, tuple)) else [parts]
    groups = [part.groups for part in each if isinstance(getattr(part, "groups", None), Mapping)]
    return [list(mapping.values()) for mapping in groups]
