"""Load estimators from model files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from kesler.algorithms import ALGORITHMS
from kesler.algorithms.quasi_additive import RivalStep
from kesler.costs import restore_costs
from kesler.data import model_file
from kesler.data.inputs import TextLengths
from kesler.data.rows import Vocabulary
from kesler.errors import KeslerError
from kesler.exploration import require_seed, restore_exploration
from kesler.hypotheses import restore_parts
from kesler.kernels import KERNELS
from kesler.kernels.mercer import MercerKernel
from kesler.learner.bandit import BanditLearner
from kesler.learner.classes import ClassTable
from kesler.learner.ensemble import EnsembleLearner
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.learner.uncertainty import Uncertainty
from kesler.links import LINKS
from kesler.links.link import Link
from kesler.online.bandit import BanditClassifier
from kesler.online.classifier import OnlineClassifier
from kesler.online.contract import unfitted
from kesler.online.ensemble import Ensemble
from kesler.online.linear_max import LinearMax
from kesler.online.metadata import validated
from kesler.online.multilabel import OnlineMultilabelClassifier
from kesler.online.ordinal import OnlineOrdinalClassifier
from kesler.online.ranking import OnlineLabelRanker
from kesler.parts.description import restore
from kesler.preconditioners import PRECONDITIONERS, Preconditioner, SoftConfidence
from kesler.preprocessing import restore_preprocessing
from kesler.preprocessing.replay import restore_replay
from kesler.state.fields import damaged
from kesler.updates import RULES
from kesler.updates.bandit import FEEDBACK_RULES
from kesler.updates.rule import UpdateRule

# What inconsistent contents of a file, each of its kind, may raise in the parts made of them.
_INCONSISTENT = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError),
)


Model = OnlineClassifier | OnlineMultilabelClassifier | OnlineLabelRanker
"""The estimators that are saved; the others derive from :class:`~kesler.OnlineClassifier`."""


def load(path: str | os.PathLike[str], custom: Iterable[Any] = ()) -> Model:
    """Load a model from a file; it continues to learn bit for bit as before it was saved.

    Parameters
    ----------
    path : a file written by the `save` of an estimator.
    custom : a list of the user-defined rules, maps, kernels, links, preconditioners, algorithms,
        and functions of groups and costs that the model uses: the file stores their names, but no
        code.

    Returns
    -------
    The estimator; its `notes_` are the notes passed to `save`.

    Raises
    ------
    KeslerError
        If the file is missing, truncated, not a model, of a newer version, or names a part that is
        not in `custom`.

    Examples
    --------
    >>> import tempfile
    >>> from kesler import OnlineClassifier, load
    >>> path = tempfile.mkdtemp() + "/mail.kesler"
    >>> OnlineClassifier().learn_one({"cash": 1.0}, "spam").save(path, source="inbox")
    >>> model = load(path)
    >>> model.predict_one({"cash": 1.0}), model.notes_
    ('spam', {'source': 'inbox'})
    """
    arrays, metadata = read(path)
    if isinstance(custom, (str, bytes, Mapping)) or not isinstance(custom, Iterable):
        raise KeslerError(f"custom={custom!r}: give a list of rules, maps and other parts")
    return estimator_from(arrays, metadata, list(custom))


def estimator_from(arrays: model_file.Arrays, metadata: dict[str, Any], custom: list[Any]) -> Model:
    """Return the estimator that the arrays and the validated metadata of a file describe."""
    try:
        return _model_of(metadata, arrays, custom)
    except _INCONSISTENT as error:
        if isinstance(error, KeslerError):
            raise
        raise damaged(f"parts do not fit each other ({type(error).__name__}: {error})") from error


def read(path: str | os.PathLike[str]) -> tuple[model_file.Arrays, dict[str, Any]]:
    """Return the arrays and the validated metadata of a model file; no part is made of them."""
    arrays, metadata = model_file.load(path)
    return arrays, validated_metadata(metadata)


def validated_metadata(metadata: Any) -> dict[str, Any]:
    """Return the metadata of a model file, after its validation."""
    n_virtual = {name: each.n_virtual for name, each in _estimators().items()}
    return validated(metadata, {**n_virtual, OF_COSTS: 0})


def _model_of(metadata: dict[str, Any], arrays: model_file.Arrays, custom: list[Any]) -> Model:
    """Return the estimator that validated metadata and arrays describe."""
    if "members" in metadata:
        model = _ensemble_of(metadata, arrays, custom)
    else:
        model = _learner_of(metadata, arrays, custom)
    _restore_uncertainty(model, metadata["uncertainty"], metadata["width"], arrays)
    _restore_queries(model, metadata["label_budget"], arrays, custom)
    _hand_over(model, metadata)
    return model


def _ensemble_of(stored: dict[str, Any], arrays: model_file.Arrays, custom: list[Any]) -> Any:
    """Return the ensemble that a file describes, learners and all."""
    learners = []
    for i, member in enumerate(stored["members"]):
        mark = f"{i}."
        own = {name.removeprefix(mark): a for name, a in arrays.items() if name.startswith(mark)}
        learners.append(_learner_of(member, own, custom))
    estimators = [member["estimator"] for member in stored["members"]]
    combination = [stored[name] for name in ("combine", "discount", "demotion", "share")]
    inner = EnsembleLearner([learner._learner for learner in learners], estimators, *combination)
    inner.restore(arrays)
    model = _estimators()[stored["estimator"]]._of_ensemble(
        [unfitted(each) for each in learners], inner
    )
    model._learner = inner
    return model


def _learner_of(metadata: dict[str, Any], arrays: model_file.Arrays, custom: list[Any]) -> Any:
    """Return the estimator of a single learner that a file describes."""
    estimator = _estimator(metadata["estimator"])
    parts = restore_parts(metadata["parts"], custom)
    rules = *RULES.values(), *ALGORITHMS.values(), RivalStep, *FEEDBACK_RULES.values()
    rule = restore(metadata["rule"], "update rule", UpdateRule, rules, custom)
    link = restore(metadata["link"], "link", Link, LINKS.values(), custom)
    costs = restore_costs(metadata["costs"], custom)
    preprocessing = metadata["preprocessing"]
    if preprocessing is not None:
        preprocessing = restore_preprocessing(preprocessing)
    classes = ClassTable((), estimator.n_virtual, metadata["order"])
    classes.encode(metadata["labels"])
    made_of: dict[str, Any] = {
        "parts": parts,
        "rule": rule,
        "classes": classes,
        "constant": metadata["constant"],
        "answer": estimator.answer,
        "link": link,
        "averaged": metadata["averaged"],
        "costs": costs,
        "preconditioner": restore(
            metadata["preconditioner"],
            "preconditioner",
            Preconditioner,
            (*PRECONDITIONERS.values(), SoftConfidence),
            custom,
        ),
        "on_new_class": metadata["on_new_class"],
        "preprocessing": preprocessing,
        "half_life": metadata["half_life"],
        "replay": restore_replay(metadata["replay"]),
        "decision": metadata["decision"],
    }
    stored = metadata["kernel"]
    if metadata["bandit"] is not None or estimator is BanditClassifier:
        inner = _exploring(metadata, made_of)
    else:
        inner = Learner(**made_of) if stored is None else _over_kernel(stored, custom, made_of)
    groups = [{name: i for i, name in enumerate(names)} for names in metadata["groups"]]
    sizes = metadata["n_features"], metadata["n_sub_experts"]
    inner.restore(arrays, *sizes, groups, metadata["memberships"], metadata["n_inputs"])
    model = estimator._of_learner(inner)
    model._learner = inner
    return model


def _exploring(metadata: dict[str, Any], made_of: dict[str, Any]) -> Learner:
    """Return a learner that explores, as a file describes it."""
    stored = metadata["bandit"]
    if (
        stored is None
        or metadata["estimator"] != BanditClassifier.__name__
        or metadata["kernel"] is not None
    ):
        raise damaged(f"exploration does not fit {metadata['estimator']}")
    return BanditLearner(
        **made_of,
        exploration=restore_exploration(stored["exploration"]),
        is_weighted=stored["is_weighted"],
        seed=require_seed(stored["seed"]),
    )


def _over_kernel(
    stored: dict[str, Any], custom: list[Any], made_of: dict[str, Any]
) -> KernelLearner:
    """Return a learner with the kernel that a file names."""
    kernel = restore(stored["part"], "kernel", MercerKernel, KERNELS.values(), custom)
    budget = stored["budget"]
    if isinstance(budget, Mapping):
        from kesler.budgets import restore_budget

        budget = restore_budget(budget)
    return KernelLearner(**made_of, kernel=kernel, dense=stored["dense"], budget=budget)


def _hand_over(model: Any, metadata: dict[str, Any]) -> None:
    """Restore the attributes of an estimator that are not parameters."""
    names, width = metadata["names"], metadata["width"]
    sub_experts = metadata["sub_experts"]
    model._vocabulary = None if names is None else Vocabulary.of(names)
    model._sub_experts = None if sub_experts is None else Vocabulary.of(sub_experts)
    if width is not None:
        model.n_features_in_ = width
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
    if metadata["declared"]:
        model._learner.classes.require_admissible(metadata["declared"])
        model._declared = metadata["declared"]
    if metadata["texts"] is not None:
        model._texts = TextLengths(*metadata["texts"])
    model.notes_ = metadata["notes"]
    if "epochs" in vars(model):
        model.epochs = metadata["epochs"]
    if metadata["columns"] is not None:
        _restore_columns(model, metadata["columns"])


def _restore_uncertainty(
    model: Any, stored: dict[str, Any] | None, width: int | None, arrays: model_file.Arrays
) -> None:
    """Restore the estimates of uncertainty of a model, if it has any."""
    if "uncertainty" in vars(model):
        model.uncertainty = False
    if stored is None:
        return
    if "uncertainty" not in vars(model):
        raise damaged(f"estimates of uncertainty do not fit {type(model).__name__}")
    learner, remembers = model._learner, stored["remembers"]
    if stored["n_inputs"] != (width if remembers else 0):
        raise damaged(
            f"uncertainty has a memory of rows of {stored['n_inputs']} features, but its rows have "
            f"{width}"
        )
    own = Uncertainty(model.answer, learner.n_scored, remembers=remembers)
    own.restore(arrays, len(learner.classes), stored["n_inputs"])
    model.uncertainty, learner.uncertainty = "full" if remembers else True, own


def _restore_queries(
    model: Any, stored: dict[str, Any] | None, arrays: model_file.Arrays, custom: list[Any]
) -> None:
    """Restore the rule of asking of a model and its state, if it has any."""
    if stored is None:
        return
    if "label_budget" not in vars(model):
        raise damaged(f"a label budget does not fit {type(model).__name__}")
    from kesler.learner.queries import Queries
    from kesler.queries import QUERIES
    from kesler.queries.query import Query

    rule = restore(stored, "query rule", Query, QUERIES.values(), custom)
    model.label_budget, model._queries = rule, Queries(rule)
    model._queries.restore(arrays)


def _restore_columns(model: Any, stored: dict[str, Any]) -> None:
    """Restore what an estimator knows of its table."""
    model.columns, model.on_mismatch = stored["given"], stored["on_mismatch"]
    if stored["table"] is not None:
        from kesler.online.kept_rows import restored

        model._given_columns()
        model._on_mismatch()
        model._table_state = restored(stored["table"], model.answer, model.n_virtual)


OF_COSTS = "CostSensitiveClassifier"
"""The estimator that only its own files import."""


def _estimator(name: str) -> Any:
    """Return the estimator that a file names."""
    if name == OF_COSTS:
        from kesler.online.cost_sensitive import CostSensitiveClassifier

        return CostSensitiveClassifier
    return _estimators()[name]


def _estimators() -> dict[str, Any]:
    """Return the estimators by the names stored in files."""
    estimators = (
        OnlineClassifier,
        BanditClassifier,
        LinearMax,
        Ensemble,
        OnlineMultilabelClassifier,
        OnlineLabelRanker,
        OnlineOrdinalClassifier,
    )
    return {estimator.__name__: estimator for estimator in estimators}
