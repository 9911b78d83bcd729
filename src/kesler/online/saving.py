"""Save estimators to model files, without pickle."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.data import model_file
from kesler.errors import KeslerError
from kesler.hypotheses import describe_parts, names_in
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.state.fields import Arrays
from kesler.state.records import MOST_ROWS

if TYPE_CHECKING:
    from kesler.learner.ensemble import AnyLearner


def save(
    model: Any, learner: AnyLearner, path: str | os.PathLike[str], notes: dict[str, Any]
) -> None:
    """Write an estimator and its learner, between two trials, to a model file."""
    model_file.save(path, *described(model, learner, path, notes))


def described(
    model: Any, learner: AnyLearner, path: str | os.PathLike[str], notes: dict[str, Any]
) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the metadata of an estimator's model file."""
    with learner.lock:
        arrays = learner.arrays()
        # A copy, since lists of labels and groups grow.
        metadata = copy.deepcopy(_settings(learner)) | _names(model, learner)
        metadata |= {"columns": _columns(model), "epochs": vars(model).get("epochs", 1)}
        metadata |= {"uncertainty": _uncertainty(learner)}
        queries, rule = _queries(model)
        arrays, metadata = arrays | queries, metadata | {"label_budget": rule}
    _require_loadable(path, arrays)
    metadata |= {"estimator": type(model).__name__, "notes": notes}
    return arrays, metadata


def _require_loadable(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Raise if a number is not finite or a count too large, as no such file is loaded."""
    for name, array in arrays.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise KeslerError(
                f"{path}: not written, since {name} holds numbers that are not finite: values of "
                "the rows were too large to add; rescale the features and learn again"
            )
        if array.dtype.kind == "i" and array.max(initial=0) > MOST_ROWS:
            raise KeslerError(
                f"{path}: not written, since {name} holds {array.max()}, and the maximum of a "
                f"count is {MOST_ROWS}: the file that the model comes from was changed"
            )


def _names(model: Any, learner: AnyLearner) -> dict[str, Any]:
    """Return the metadata on features, sub-experts and declared classes of an estimator."""
    vocabulary, sub_experts = model.vocabulary_, model.sub_experts_
    width = getattr(model, "n_features_in_", None)
    n_names = learner.n_named_features if width is None else width
    declared = list(getattr(model, "_declared", ()))
    _require_plain(declared)
    return {
        "names": None if vocabulary is None else vocabulary.names[:n_names],
        "sub_experts": None if sub_experts is None else sub_experts.names[: learner.n_sub_experts],
        "width": width,
        "declared": declared,
        "texts": _texts(model),
    }


def _texts(model: Any) -> list[int] | None:
    """Return the number of texts learnt and of their characters; None if texts are words alone."""
    lengths = vars(model).get("_texts")
    return None if lengths is None else [lengths.n_texts, lengths.n_characters]


def _uncertainty(learner: AnyLearner) -> dict[str, Any] | None:
    """Return the metadata of the estimates of uncertainty; None if there are none."""
    own = learner.uncertainty
    return None if own is None else {"remembers": own.remembers, "n_inputs": own.n_inputs}


def _queries(model: Any) -> tuple[Arrays, dict[str, Any] | None]:
    """Return the arrays and the description of the rule of asking; none if there is no rule."""
    if vars(model).get("label_budget") is None:
        return {}, None
    from kesler.online.querying import queries_of

    known = queries_of(model)
    return known.arrays(), known.rule.describe()


def _columns(model: Any) -> dict[str, Any] | None:
    """Return the metadata on the columns of a table; None if all is as by default."""
    state, given = model._table_state, vars(model).get("columns", "auto")
    on_mismatch = vars(model).get("on_mismatch", "raise")
    if state is None and given == "auto" and on_mismatch == "raise":
        return None
    return {
        "given": {name: dict(v) if isinstance(v, Mapping) else v for name, v in given.items()}
        if isinstance(given, Mapping)
        else given,
        "on_mismatch": on_mismatch,
        "table": None if state is None else state.to_json(),
    }


def _settings(learner: AnyLearner) -> dict[str, Any]:
    """Return the metadata of a learner, or of the members of an ensemble, without arrays."""
    if isinstance(learner, EnsembleLearner):
        members = zip(learner.estimators, learner.members, strict=True)
        return {
            "combine": learner.combine,
            "discount": learner.discount,
            "demotion": learner.demotion,
            "share": learner.share,
            "members": [
                {"estimator": estimator, **_settings(member)} for estimator, member in members
            ],
        }
    _require_plain([*learner.classes.labels, *(learner.classes.declared or ())])
    _require_plain([g for gs in learner.groups for g in gs])
    _require_plain([name for part in learner.parts for name in names_in(part)])
    if learner.costs is not None:
        _require_plain(learner.costs.labels)
    return {
        "parts": describe_parts(learner.parts),
        "rule": learner.rule.describe(),
        "kernel": _described(learner),
        "constant": learner.constant,
        "link": learner.link.describe(),
        "averaged": learner.averaged,
        "preconditioner": learner.preconditioner.describe(),
        "on_new_class": learner.on_new_class,
        "costs": None if learner.costs is None else learner.costs.describe(),
        "preprocessing": learner.preprocessing and learner.preprocessing.describe(),
        "half_life": learner.half_life,
        "replay": learner.replay and learner.replay.describe(),
        "decision": learner.decision,
        "bandit": _bandit(learner),
        "labels": learner.classes.labels,
        "order": learner.classes.declared,
        "n_features": learner.n_features,
        "n_sub_experts": learner.n_sub_experts,
        "n_inputs": learner.n_inputs,
        "groups": [list(groups) for groups in learner.groups],
        "memberships": learner.memberships,
    }


def _bandit(learner: Learner) -> dict[str, Any] | None:
    """Return the metadata of a learner that explores, None for others."""
    if not learner.explores:
        return None
    own: Any = learner
    return {
        "exploration": own.exploration.describe(),
        "is_weighted": own.is_weighted,
        "seed": own.seed,
    }


def _described(learner: Learner) -> dict[str, Any] | None:
    """Return the metadata of a kernel, None if there is none."""
    if not isinstance(learner, KernelLearner):
        return None
    budget = learner.budget
    return {
        "part": learner.kernel.describe(),
        "budget": budget if budget is None or isinstance(budget, int) else budget.describe(),
        "dense": learner.dense,
    }


def _require_plain(names: Iterable[Any]) -> None:
    for name in names:
        if not isinstance(name, (bool, int, float, str)):
            raise KeslerError(
                f"a model file can store labels and groups that are numbers or text, not {name!r} "
                f"({type(name).__name__}): map them to text before learning"
            )
