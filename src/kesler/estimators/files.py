"""Estimators in model files: saved without pickle, loaded to go on."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler import model_file
from kesler.algorithms import OURS as ALGORITHMS
from kesler.bank_machine import BankMachine
from kesler.classes import ClassTable
from kesler.conditioning import OURS as CONDITIONINGS
from kesler.costs import restore_costs
from kesler.errors import KeslerError
from kesler.estimators.members import unfitted
from kesler.geometry import EUCLIDEAN
from kesler.geometry import OURS as METRICS
from kesler.hypotheses import describe_parts, names_in, restore_parts
from kesler.kernel_machine import KernelMachine
from kesler.kernels import KERNELS, MercerKernel
from kesler.links import OURS as LINKS
from kesler.links import Linear, Link
from kesler.machine import Machine
from kesler.parts import restore
from kesler.rows import Vocabulary
from kesler.updates import OURS as RULES
from kesler.updates import UpdateRule

if TYPE_CHECKING:
    from kesler.estimators.base import AnyMachine, OnlineLearner

LINEAR = Linear().describe()  # what files of the first version leave out


def save(
    model: OnlineLearner, machine: AnyMachine, path: str | os.PathLike[str], notes: dict[str, Any]
) -> None:
    """Write an estimator and its machine."""
    vocabulary, sub_experts = model.vocabulary_, model.sub_experts_
    metadata = {
        "estimator": type(model).__name__,
        **_settings(machine),
        "names": None if vocabulary is None else vocabulary.names,
        "sub_experts": None if sub_experts is None else sub_experts.names,
        "width": getattr(model, "n_features_in_", None),
        "notes": notes,
    }
    model_file.save(path, machine.arrays(), metadata)


def _settings(machine: AnyMachine) -> dict[str, Any]:
    """Return what a file keeps of a machine, or of those of a bank, beside their arrays."""
    if isinstance(machine, BankMachine):
        members = zip(machine.faces, machine.members, strict=True)
        return {
            "combine": machine.combine,
            "discount": machine.discount,
            "demotion": machine.demotion,
            "members": [{"estimator": face, **_settings(member)} for face, member in members],
        }
    _require_plain([*machine.classes.labels, *(machine.classes.declared or ())])
    _require_plain([g for gs in machine.groups for g in gs])
    _require_plain([name for part in machine.parts for name in names_in(part)])
    if machine.costs is not None:
        _require_plain(machine.costs.labels)
    return {
        "parts": describe_parts(machine.parts),
        "rule": machine.rule.describe(),
        "kernel": _described(machine),
        "constant": machine.constant,
        "link": machine.link.describe(),
        "averaged": machine.averaged,
        "metric": machine.metric.describe(),
        "newcomers": machine.newcomers,
        "costs": None if machine.costs is None else machine.costs.describe(),
        "conditioning": machine.conditioning and machine.conditioning.describe(),
        "half_life": machine.half_life,
        "labels": machine.classes.labels,
        "order": machine.classes.declared,
        "n_features": machine.n_features,
        "n_sub_experts": machine.n_sub_experts,
        "groups": [list(groups) for groups in machine.groups],
        "memberships": machine.memberships,
    }


def load(path: str | os.PathLike[str], custom: Iterable[Any] = ()) -> Any:
    """Return the model that was saved in a file, to go on as if it had never stopped.

    Parameters
    ----------
    path : a file written by the `save` of an estimator.
    custom : a list of the user's own rules, maps, kernels, links, algorithms, and functions of
        groups and costs, that the model was made with: the file holds no code, only their names.

    Returns
    -------
    The estimator; what was saved as notes is its `notes_`.

    Raises
    ------
    KeslerError
        If the file is missing, cut off, no model, of a newer version, or names a part that is not
        in `custom`.

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
    arrays, metadata = model_file.load(path)
    if isinstance(custom, (str, bytes, Mapping)) or not isinstance(custom, Iterable):
        raise KeslerError(f"custom={custom!r}: give a list of rules, maps and other parts")
    custom = list(custom)
    if "members" in metadata:
        model = _bank_of(metadata, arrays, custom)
    else:
        model = _learner_of(metadata, arrays, custom)
    _hand_over(model, metadata)
    return model


def _bank_of(kept: dict[str, Any], arrays: model_file.Arrays, custom: list[Any]) -> Any:
    """Return the bank that a file describes, learners and all."""
    learners = []
    for i, member in enumerate(kept["members"]):
        mark = f"{i}."
        own = {name.removeprefix(mark): a for name, a in arrays.items() if name.startswith(mark)}
        learners.append(_learner_of(member, own, custom))
    faces = [member["estimator"] for member in kept["members"]]
    combination = kept["combine"], kept["discount"], kept["demotion"]
    machine = BankMachine([learner._machine for learner in learners], faces, *combination)
    machine.restore(arrays)
    model = _faces()[kept["estimator"]]._of_bank([unfitted(each) for each in learners], machine)
    model._machine = machine
    return model


def _learner_of(metadata: dict[str, Any], arrays: model_file.Arrays, custom: list[Any]) -> Any:
    """Return the estimator of a single machine that a file describes."""
    face = _faces()[metadata["estimator"]]
    rules = [each for each in custom if isinstance(each, UpdateRule)]
    parts = restore_parts(metadata["parts"], custom)
    rule = restore(metadata["rule"], "update rule", (*RULES, *ALGORITHMS), rules)
    links = [each for each in custom if isinstance(each, Link)]
    link = restore(metadata.get("link", LINEAR), "link", LINKS, links)
    costs = restore_costs(metadata.get("costs"), custom)
    conditioning = metadata.get("conditioning")
    if conditioning is not None:
        conditioning = restore(conditioning, "conditioning", CONDITIONINGS, ())
    constant, averaged = metadata.get("constant", 0.0), metadata.get("averaged", False)
    order = metadata.get("order")
    made_of: dict[str, Any] = {
        "parts": parts,
        "rule": rule,
        "classes": ClassTable(metadata["labels"], face.n_virtual, order),
        "constant": constant,
        "answer": face.answer,
        "link": link,
        "averaged": averaged,
        "costs": costs,
        "metric": restore(metadata.get("metric", EUCLIDEAN.describe()), "metric", METRICS, []),
        "newcomers": metadata.get("newcomers", "wait"),
        "conditioning": conditioning,
        "half_life": metadata.get("half_life"),
    }
    kept = metadata.get("kernel")
    machine = Machine(**made_of) if kept is None else _over_kernel(kept, custom, made_of)
    groups = [{name: i for i, name in enumerate(names)} for names in metadata["groups"]]
    sizes = metadata["n_features"], metadata.get("n_sub_experts", 0)
    machine.restore(arrays, *sizes, groups, metadata["memberships"])
    model = face._of_machine(machine)
    model._machine = machine
    return model


def _described(machine: Machine) -> dict[str, Any] | None:
    """Return what a file keeps of a kernel, None if there is none."""
    if not isinstance(machine, KernelMachine):
        return None
    return {
        "part": machine.kernel.describe(),
        "budget": machine.budget,
        "dense": machine.dense,
    }


def _over_kernel(kept: dict[str, Any], custom: list[Any], made_of: dict[str, Any]) -> KernelMachine:
    """Return a machine over the kernel that a file names."""
    kernels = [each for each in custom if isinstance(each, MercerKernel)]
    kernel = restore(kept["part"], "kernel", KERNELS.values(), kernels)
    return KernelMachine(**made_of, kernel=kernel, dense=kept["dense"], budget=kept["budget"])


def _hand_over(model: Any, metadata: dict[str, Any]) -> None:
    """Give an estimator what it has beside its parameters."""
    names, width = metadata["names"], metadata["width"]
    sub_experts = metadata.get("sub_experts")
    model._vocabulary = None if names is None else Vocabulary.of(names)
    model._sub_experts = None if sub_experts is None else Vocabulary.of(sub_experts)
    if width is not None:
        model.n_features_in_ = width
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
    model.notes_ = metadata["notes"]


def _faces() -> dict[str, Any]:
    """Return the estimators by the names that files keep."""
    from kesler.estimators.bank import Bank
    from kesler.estimators.linear_max import LinearMax
    from kesler.estimators.multilabel import OnlineMultilabelClassifier
    from kesler.estimators.online import OnlineClassifier
    from kesler.estimators.ordinal import OnlineOrdinalClassifier
    from kesler.estimators.ranking import OnlineLabelRanker

    faces = (
        OnlineClassifier,
        LinearMax,
        Bank,
        OnlineMultilabelClassifier,
        OnlineLabelRanker,
        OnlineOrdinalClassifier,
    )
    return {face.__name__: face for face in faces}


def _require_plain(names: Iterable[Any]) -> None:
    for name in names:
        if not isinstance(name, (bool, int, float, str)):
            raise KeslerError(
                f"a model file keeps labels and groups that are numbers or text, not {name!r} "
                f"({type(name).__name__}): map them to text before learning"
            )
