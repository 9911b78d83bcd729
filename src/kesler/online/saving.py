"""Model files: what a fitted estimator stores, and the estimator that is restored from it.

A file holds the settings of the estimator as they were given, the settings in use, which follow
from them and the kind of the first rows, and what has been learnt.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import astuple
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from kesler.data import model_file
from kesler.data.rows import Vocabulary
from kesler.data.texts import EARLIEST, TextLengths
from kesler.errors import KeslerError
from kesler.learner.ensemble import AnyLearner, EnsembleLearner
from kesler.learner.kernel_learner import KernelLearner
from kesler.learner.learner import Learner
from kesler.learner.replaying import PREFIX as KEPT
from kesler.learner.uncertainty import Uncertainty
from kesler.online.contract import unfitted
from kesler.online.metadata import require_members, validated
from kesler.settings.codec import estimator_of, settings_of
from kesler.state.fields import Arrays, damaged, fields_of, is_finite
from kesler.state.records import MOST_ROWS, LearnerRecord, SavedLists
from kesler.state.uncertainty import LARGEST_SCORE

if TYPE_CHECKING:
    from kesler.data.schema.measurements import Inputs

# What inconsistent contents of a file, each of its kind, may raise in the parts made of them.
_INCONSISTENT = (
    *(ArithmeticError, AttributeError, LookupError, MemoryError, TypeError, ValueError),
)
MOST_RESTORED = 1 << 26  # bytes of a file that is restored before it is written
OF_RANK = "rank.{}."  # the beginning of the names of arrays of a rank


# ---- saving ---------------------------------------------------------------------------------


def save(model: Any, path: str | os.PathLike[str], notes: dict[str, Any]) -> None:
    """Write a fitted estimator to a model file.

    A file that is there is replaced only by one that can be loaded: what is to be written is
    restored before, unless it has more than `MOST_RESTORED` bytes.

    Raises
    ------
    KeslerError
        If the labels are neither numbers nor text, or the file cannot be written.
    """
    pieces = model_file.pieces_of(*described(model, path, notes), path)
    if sum(map(len, pieces)) <= MOST_RESTORED:
        _require_restorable(model, path, b"".join(pieces))
    model_file.write(path, pieces)


def _require_restorable(model: Any, path: str | os.PathLike[str], contents: bytes) -> None:
    """Raise an error if the model cannot be restored from what is to be written."""
    try:
        arrays, metadata = model_file.from_bytes(contents, path)
        _model_of(arrays, validated(metadata), unfitted(model), model.resolved_)
    except _INCONSISTENT as error:
        raise KeslerError(
            f"{path}: not written, since it could not be loaded again ({error}): please report "
            "this, with the settings of the model; an earlier file is as it was"
        ) from error


def described(
    model: Any, path: str | os.PathLike[str], notes: dict[str, Any]
) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the metadata of a model file; the path is that of messages."""
    learner: AnyLearner = model._fitted()
    with learner.lock:
        arrays = learner.arrays()
        metadata = {
            "settings": settings_of(model),
            "resolved": settings_of(model.resolved_),
            "dense": all(each.dense for each in _over_kernels(learner)),
            **_described(learner),
            "ranks": [_described(each) for each in _ranks(learner)],
            **_names(model, learner),
        }
        for i, each in enumerate(_ranks(learner)):
            arrays |= {OF_RANK.format(i) + name: array for name, array in each.arrays().items()}
        if _has_budget(model):
            from kesler.online.querying import queries_of

            arrays |= queries_of(model).arrays()
    _require_loadable(path, arrays)
    return arrays, metadata | {"notes": notes}


def _ranks(learner: AnyLearner) -> list[AnyLearner]:
    """Return the learners of the ranks above the labels."""
    return [] if learner.ranks is None else learner.ranks.learners


def _described(learner: AnyLearner) -> dict[str, Any]:
    """Return the names and sizes of what a learner and its members have learnt."""
    return {
        "learners": [_contents(each) for each in learner.members],
        "uncertainty": _uncertainty(learner),
    }


def _has_budget(model: Any) -> bool:
    return model.get_params(deep=False).get("label_budget") is not None


def _over_kernels(learner: AnyLearner) -> list[KernelLearner]:
    return [each for each in learner.members if isinstance(each, KernelLearner)]


def _contents(learner: Learner) -> dict[str, Any]:
    """Return the names and sizes of what a learner has learnt."""
    _require_plain(learner.classes.labels)
    _require_plain([group for groups in learner.groups for group in groups])
    return {
        "labels": list(learner.classes.labels),  # a copy, since labels and groups grow
        "n_features": learner.n_features,
        "n_sub_experts": learner.n_sub_experts,
        "n_inputs": learner.n_inputs,
        "groups": [list(groups) for groups in learner.groups],
        "memberships": [[list(each) for each in of_part] for of_part in learner.memberships],
    }


def _uncertainty(learner: AnyLearner) -> dict[str, Any] | None:
    own = learner.uncertainty
    if own is None:
        return None
    return {"remembers": own.remembers, "n_inputs": own.n_inputs, "largest_score": LARGEST_SCORE}


def _names(model: Any, learner: AnyLearner) -> dict[str, Any]:
    """Return the names of features, sub-experts and declared classes, and the table.

    Names that another thread has added for rows that it has yet to learn are left out.
    """
    reader = model._input
    names, lengths, table = reader.names, reader.texts, reader.columns.state
    n_names = learner.n_named_features if reader.width is None else reader.width
    declared, experts = list(model._declared), reader.sub_experts
    _require_plain(declared)
    return {
        "names": None if names is None else names.names[:n_names],
        "sub_experts": None if experts is None else experts.names[: learner.n_sub_experts],
        "width": reader.width,
        "declared": declared,
        "texts": None if lengths is None else [*astuple(lengths)],
        "table": None if table is None else table.to_json(),
    }


def _require_loadable(path: str | os.PathLike[str], arrays: Arrays) -> None:
    """Raise an error if a file of these arrays could not be loaded."""
    for name, array in arrays.items():
        may_lack = name.endswith(_with_missing())
        if array.dtype.kind == "f" and not is_finite(array, or_missing=may_lack):
            raise KeslerError(
                f"{path}: not written, since {name} holds numbers that are not finite: values of "
                "the rows were too large to add; rescale the features and learn again"
            )
        if array.dtype.kind == "i" and array.max(initial=0) > MOST_ROWS:
            raise KeslerError(
                f"{path}: not written, since {name} holds {array.max()}, and the maximum of a "
                f"count is {MOST_ROWS}: the file that the model comes from was changed"
            )


@cache
def _with_missing() -> tuple[str, ...]:
    """Return the ends of the names of arrays in which values may be missing (NaN)."""
    from kesler.learner.trees import FIELDS, PREFIX

    records = (("", fields_of(LearnerRecord)), (KEPT, fields_of(SavedLists)), (PREFIX, FIELDS))
    return tuple(
        start + name for start, fields in records for name, f in fields.items() if f.allows_nan
    )


def _require_plain(names: Iterable[Any]) -> None:
    for name in names:
        if not isinstance(name, (bool, int, float, str)):
            raise KeslerError(
                f"a model file can store labels and groups that are numbers or text, not {name!r} "
                f"({type(name).__name__}): map them to text before learning"
            )


# ---- loading --------------------------------------------------------------------------------


def read(path: str | os.PathLike[str]) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and the validated metadata of a model file."""
    arrays, metadata = model_file.load(path)
    if isinstance(metadata, dict) and "classifier" in metadata:
        name = metadata["classifier"]
        raise KeslerError(f"{path} holds a {name}, not an online learner: use {name}.load(path)")
    return arrays, validated(metadata)


def restored(arrays: Arrays, metadata: dict[str, Any], custom: list[Any]) -> Any:
    """Return the fitted estimator of these arrays and validated metadata.

    Raises
    ------
    KeslerError
        If they do not fit each other, or a part of a user is not in `custom`.
    """
    try:
        made = (estimator_of(metadata[name], custom) for name in ("settings", "resolved"))
        return _model_of(arrays, metadata, *made)
    except _INCONSISTENT as error:
        if isinstance(error, KeslerError):
            raise
        raise damaged(f"parts do not fit each other ({type(error).__name__}: {error})") from error


def _model_of(arrays: Arrays, metadata: dict[str, Any], model: Any, resolved: Any) -> Any:
    """Return an estimator that is not fitted with what is stored, and the settings in use."""
    if type(model) is not type(resolved):
        raise damaged(f"settings are those of {type(model).__name__}, and in use are others")
    model._learner = learner = _learner_of(resolved, arrays, metadata, metadata)
    learner.ranks = model._maker.ranks(model.get_params(deep=False))
    _restore_ranks(learner, resolved, arrays, metadata)
    if _has_budget(model):
        from kesler.online.querying import queries_of

        queries_of(model).restore(arrays)
    _hand_over(model, metadata)
    return model


def _hand_over(model: Any, metadata: dict[str, Any]) -> None:
    """Give the estimator the names of its features and classes, and its table."""
    reader, width = model._input, metadata["width"]
    names, experts = (
        None if metadata[name] is None else Vocabulary.of(metadata[name])
        for name in ("names", "sub_experts")
    )
    if model._learner.memory is not None and model._learner.n_named_features != len(names or ()):
        raise damaged(f"names are {len(names or ())}, not one for each of its features")
    reader.names, reader.sub_experts, reader.width = names, experts, width
    if width is not None and names is not None and metadata["table"] is None:
        reader.column_names = np.array(metadata["names"], dtype=object)
    if metadata["declared"]:
        model._learner.classes.require_admissible(metadata["declared"])
        model._declared = metadata["declared"]
    if metadata["texts"] is not None:
        n_texts, n_characters, version = [*metadata["texts"], EARLIEST][:3]
        reader.texts = TextLengths(n_texts, n_characters, version)
    if metadata["table"] is not None:
        from kesler.online.columns import given_columns, on_mismatch
        from kesler.online.table_state import restored as restored_table

        if "columns" not in model.get_params(deep=False):
            raise damaged(f"table does not fit {type(model).__name__}")
        given_columns(model), on_mismatch(model)  # raise if they are none
        answer, missing = model.answer, model._learner.takes_missing
        reader.columns.state = restored_table(
            metadata["table"], answer.kind, answer.n_virtual, takes_missing=missing
        )
        _require_inputs(model._learner, reader.columns.known.inputs)
    model.notes_ = metadata["notes"]


def _require_inputs(learner: AnyLearner, inputs: Inputs | None) -> None:
    """Tell an ensemble of the inputs of a table; raise unless what reads arrays reads these."""
    if inputs is None:
        return
    if isinstance(learner, EnsembleLearner):
        learner.n_columns = inputs.n_columns
    for each in (each for each in learner.members if each.lists_all):
        n = len(inputs) if each.has_z_scores else inputs.n_columns
        if (each.n_inputs or n, each.n_features) != (n, each.width_of(n)):
            raise damaged(f"table has {n} inputs, and what learns from it reads others")


def _restore_ranks(
    learner: AnyLearner, resolved: Any, arrays: Arrays, metadata: dict[str, Any]
) -> None:
    described, ranks = metadata["ranks"], learner.ranks
    if ranks is None:
        if described:
            raise damaged(f"ranks are {len(described)}, and there are none in the settings")
        return
    found = []
    for i, contents in enumerate(described):
        start = OF_RANK.format(i)
        own = {n.removeprefix(start): each for n, each in arrays.items() if n.startswith(start)}
        found.append(_learner_of(resolved, own, contents, metadata))
    ranks.put(found)
    ranks.require_fit(learner)


def _learner_of(
    resolved: Any, arrays: Arrays, described: dict[str, Any], metadata: dict[str, Any]
) -> AnyLearner:
    learner: AnyLearner = resolved._new_learner(dense=metadata["dense"])
    singles, contents_of = learner.members, described["learners"]
    if len(singles) != len(contents_of):
        raise damaged(f"learners are {len(contents_of)}, and those in use {len(singles)}")
    for i, (single, contents) in enumerate(zip(singles, contents_of, strict=True)):
        mark = f"{i}." if single is not learner else ""
        own = {n.removeprefix(mark): array for n, array in arrays.items() if n.startswith(mark)}
        _restore(single, own, contents)
    if isinstance(learner, EnsembleLearner):
        if "ensemble.pooling" in arrays:
            from kesler.settings import former

            arrays = former.ensemble(arrays, len(singles))
        learner.restore(arrays)
    width = metadata["width"] or _n_listed(learner)
    _restore_uncertainty(learner, resolved, arrays, described, width)
    return learner


def _n_listed(learner: AnyLearner) -> int | None:
    """Return the number of inputs that members read beside features, None if none does."""
    readers = [each for each in learner.members if each.lists_all]
    found = [each.n_inputs or each.n_features - bool(each.constant) for each in readers]
    return max(found, default=None)


def _restore(learner: Learner, arrays: Arrays, contents: dict[str, Any]) -> None:
    learner.classes.encode(contents["labels"])
    require_members(learner, contents["groups"], contents["memberships"])
    groups = [{name: i for i, name in enumerate(names)} for names in contents["groups"]]
    sizes = contents["n_features"], contents["n_sub_experts"]
    learner.restore(arrays, *sizes, groups, contents["memberships"], contents["n_inputs"])


def _restore_uncertainty(
    learner: AnyLearner,
    resolved: Any,
    arrays: Arrays,
    described: dict[str, Any],
    width: int | None,
) -> None:
    stored = described["uncertainty"]
    if stored is None:
        return
    if "uncertainty" not in resolved.get_params(deep=False):
        raise damaged(f"estimates of uncertainty do not fit {type(resolved).__name__}")
    remembers, n_inputs = stored["remembers"], stored["n_inputs"]
    if n_inputs != (width if remembers else 0):
        raise damaged(
            f"uncertainty has a memory of rows of {n_inputs} features, but its rows have {width}"
        )
    own = Uncertainty(resolved.answer.kind, learner.n_scored, remembers=remembers)
    own.restore(arrays, len(learner.classes), n_inputs)
    if "largest_score" not in stored:
        own.limit_thresholds()
    learner.uncertainty = own
