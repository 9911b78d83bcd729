"""Model files of ShareBoostClassifier: its settings, its candidates, and the rounds of its fit.

Arrays are stored as they are, so a loaded model computes the same scores bit for bit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from kesler.data import model_file
from kesler.data.model_file import Arrays
from kesler.data.rows import MAX_FEATURES
from kesler.dictionaries.dictionary import Dictionary
from kesler.dictionaries.registry import DICTIONARIES
from kesler.dictionaries.stumps import Thresholds
from kesler.dictionaries.templates import Family, Mask
from kesler.errors import KeslerError
from kesler.online.metadata import is_integer, is_label
from kesler.settings.codec import UNREADABLE, described, restored
from kesler.sharing.exports.predictor import plain_labels
from kesler.sharing.greedy import Round

KIND = "ShareBoostClassifier"
RECORDS = {each.__name__: each for each in (Family, Mask, Thresholds)}
"""What fitted dictionaries consist of, beside arrays and numbers."""


# ---- saving ---------------------------------------------------------------------------------


def save(model: Any, path: str | os.PathLike[str], notes: dict[str, Any]) -> None:
    """Write a fitted ShareBoostClassifier to a model file; see its method `save`."""
    check_is_fitted(model, "support_")
    arrays: Arrays = {f"weights.{i}": each for i, each in enumerate(model._weights)}
    arrays["chosen"] = model._chosen
    settings = model.get_params(deep=False)
    del settings["dictionary"]
    names = getattr(model, "feature_names_in_", None)
    metadata = {
        "classifier": KIND,
        "settings": {name: described(value, name) for name, value in settings.items()},
        "dictionary": _dictionary(model, arrays),
        "labels": plain_labels(model.classes_),
        "labels_dtype": model.classes_.dtype.str,
        "dtype": model.dtype_.str,
        "path": [asdict(each) for each in model.path_],
        **{name: getattr(model, name) for name in ("n_rounds_", "n_iter_", "converged_")},
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else list(map(str, names)),
        "notes": notes,
    }
    model_file.save(path, arrays, metadata)


def _dictionary(model: Any, arrays: Arrays) -> dict[str, Any]:
    """Return the class, the parameters and the candidates of a dictionary, without its arrays."""
    own: Dictionary = model.dictionary_
    name = next((n for n, each in DICTIONARIES.items() if each is type(own)), None)
    if name is None:
        raise KeslerError(
            f"a model file holds no code, so {type(own).__name__}, a dictionary of your own, "
            "cannot be stored: use export, which writes the chosen features as they are computed"
        )
    parameters = own.get_params(deep=False)
    return {
        "name": name,
        "by_name": isinstance(model.dictionary, str),
        "parameters": {key: described(value, key) for key, value in parameters.items()},
        "fitted": {
            key: _packed(value, f"dictionary.{key}", arrays)
            for key, value in vars(own).items()
            if key.endswith("_")
        },
    }


def _packed(value: Any, name: str, arrays: Arrays) -> Any:
    """Return a value as JSON holds it; arrays are added to those of the file under their names."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, (list, tuple)):
        kind = "list" if isinstance(value, list) else "tuple"
        return {kind: [_packed(each, f"{name}.{i}", arrays) for i, each in enumerate(value)]}
    if type(value) not in RECORDS.values():
        return described(value, name)
    parts = {each.name: getattr(value, each.name) for each in fields(value)}
    return {
        "record": type(value).__name__,
        "fields": {key: _packed(each, f"{name}.{key}", arrays) for key, each in parts.items()},
    }


# ---- loading --------------------------------------------------------------------------------


def load(made: type[Any], path: str | os.PathLike[str]) -> Any:
    """Return the fitted ShareBoostClassifier of a model file; see its method `load`."""
    arrays, metadata = model_file.load(path)
    if not isinstance(metadata, dict) or metadata.get("classifier") != KIND:
        raise KeslerError(f"{path} does not hold a {KIND}: load it by kesler.load(path)")
    try:
        return _model_of(made, arrays, metadata)
    except (*UNREADABLE, MemoryError, OverflowError) as error:
        if isinstance(error, KeslerError):
            raise
        raise _inconsistent(f"{type(error).__name__}: {error}") from error


def _model_of(made: type[Any], arrays: Arrays, metadata: Mapping[str, Any]) -> Any:
    stored = metadata["dictionary"]
    dictionary = _restored_dictionary(stored, arrays)
    _require_plain(metadata)
    given = stored["name"] if stored["by_name"] else clone(dictionary)
    model = made(dictionary=given, **_values(metadata["settings"]))
    model._begin(dictionary, np.array(metadata["labels"], dtype=metadata["labels_dtype"]))
    model.path_.extend(Round(**each) for each in metadata["path"])
    model._weights = [arrays[f"weights.{i}"] for i in range(len(model.path_) + 1)]
    model._chosen = arrays["chosen"]
    model.dtype_, model.notes_ = np.dtype(metadata["dtype"]), metadata["notes"]
    model.n_iter_, model.converged_ = metadata["n_iter_"], metadata["converged_"]
    model.n_features_in_ = metadata["n_features"]
    if metadata["feature_names"] is not None:
        model.feature_names_in_ = np.array(metadata["feature_names"], dtype=object)
    _require_fit(model)
    model._keep(metadata["n_rounds_"])
    return model


def _values(stored: Mapping[str, Any]) -> dict[str, Any]:
    return {name: restored(value, []) for name, value in stored.items()}


def _restored_dictionary(stored: Mapping[str, Any], arrays: Arrays) -> Dictionary:
    dictionary = DICTIONARIES[stored["name"]](**_values(stored["parameters"]))
    for name, value in stored["fitted"].items():
        setattr(dictionary, name, _unpacked(value, arrays))
    return dictionary


def _unpacked(stored: Any, arrays: Arrays) -> Any:
    """Return what `_packed` was given."""
    if not isinstance(stored, dict):
        return stored
    if "record" in stored:
        parts = {key: _unpacked(each, arrays) for key, each in stored["fields"].items()}
        return RECORDS[stored["record"]](**parts)
    ((form, value),) = stored.items()
    if form == "array":
        return arrays[value]
    if form == "float":
        return float(value)
    return {"list": list, "tuple": tuple}[form](_unpacked(each, arrays) for each in value)


def _require_plain(metadata: Mapping[str, Any]) -> None:
    """Raise if an entry that is not used at once is of another type, or a number out of range."""
    names, n = metadata["feature_names"], metadata["n_features"]
    valid = {
        "n_rounds_": is_integer(k := metadata["n_rounds_"]) and 0 <= k <= len(metadata["path"]),
        "n_iter_": is_integer(metadata["n_iter_"]) and metadata["n_iter_"] > 0,
        "converged_": isinstance(metadata["converged_"], bool),
        "n_features": is_integer(n) and 0 < n <= MAX_FEATURES,
        "feature_names": names is None
        or (len(names) == n and all(isinstance(x, str) for x in names)),
        "dtype": metadata["dtype"] in (np.dtype(np.float64).str, np.dtype(np.float32).str),
        "labels": all(map(is_label, metadata["labels"])) and len(metadata["labels"]) > 1,
    }
    for name, holds in valid.items():
        if not holds:
            raise _inconsistent(f"{name} is {metadata[name]!r:.60}")


def _require_fit(model: Any) -> None:
    """Raise unless the chosen candidates, their weights and the rounds fit each other."""
    chosen: npt.NDArray[np.int64] = model._chosen
    widths = np.concatenate([[1], model.dictionary_.widths(chosen)])
    ends = widths.cumsum()[[0, *(each.n_chosen for each in model.path_)]]
    shapes = [each.shape for each in model._weights]
    if chosen.size and not (0 <= chosen.min() and chosen.max() < model.dictionary_.n_candidates_):
        raise _inconsistent("a chosen candidate is none of the dictionary's")
    if shapes != [(end, len(model.classes_)) for end in ends]:
        raise _inconsistent("weights are not one for each column and class")
    if not all(np.isfinite(each).all() for each in model._weights):
        raise _inconsistent("a weight is not finite")
    found = model.dictionary_.columns(np.zeros((1, model.n_features_in_)), chosen)
    if found.shape != (1, widths[1:].sum()):
        raise _inconsistent("candidates are not of the number of features")


def _inconsistent(reason: str) -> KeslerError:
    return KeslerError(
        f"the parts of the model file do not fit each other ({reason}): the file was changed; take "
        "an earlier copy or fit again"
    )
