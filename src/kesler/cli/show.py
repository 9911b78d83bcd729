"""kesler show: contents of a model file."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kesler.cli.files import require_distinct, require_writable
from kesler.cli.json_output import write_json
from kesler.data import model_file
from kesler.errors import KeslerError
from kesler.learner.state import STARTS_OF_ENTRIES
from kesler.learner.weights import WEIGHTS, is_sparse
from kesler.online.saving import OF_RANK, read
from kesler.settings.codec import UNREADABLE, expression
from kesler.state.fields import damaged, fields_of, valid_array
from kesler.state.records import LearnerRecord

INDENT = 20  # column of the values
SHOWN = 10  # maximum number of classes and feature names to print


def run(options: Namespace) -> None:
    """Print the contents of the file as lines, and write them as one JSON object."""
    require_distinct(options, "model", "json")
    require_writable(options.json)
    found = account(options.model)
    lines = {name.replace("_", " "): _line(name, value) for name, value in found.items()}
    for name, line in lines.items():
        if line:
            print(f"{name:{INDENT}}{line}")
    if options.json is not None:
        write_json(options, found)


def account(path: str) -> dict[str, Any]:
    """Return the contents of a model file as a JSON object.

    This needs neither user-defined parts nor compiled code.
    """
    arrays, metadata = read(path)
    try:
        return _account(path, arrays, metadata)
    except UNREADABLE as error:
        if isinstance(error, KeslerError):
            raise
        raise damaged(f"settings are not those of a model ({error})") from error


def _account(path: str, arrays: model_file.Arrays, metadata: Mapping[str, Any]) -> dict[str, Any]:
    contents, resolved = metadata["learners"][0], metadata["resolved"]
    members = _members(resolved["parameters"])
    first = resolved if members is None else members[0]
    intercept = first["parameters"].get("intercept", 0.0)
    return {
        "file": path,
        "bytes": Path(path).stat().st_size,
        "estimator": resolved["name"],
        "settings": expression({"estimator": metadata["settings"]}),
        **(_learnt(resolved, arrays) if members is None else _combined(members, resolved, arrays)),
        "mistakes_of_ranks": _mistakes_of_ranks(metadata["ranks"], members is None, arrays),
        "features": max(0, contents["n_features"] - bool(intercept)),
        "feature_names": metadata["names"],
        "sub_experts": contents["n_sub_experts"],
        "classes": len(contents["labels"]),
        "labels": contents["labels"],
    }


def _members(parameters: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    """Return the settings of the members of an ensemble, None of a single learner."""
    found = parameters.get("learners") or parameters.get("update")
    return [each["estimator"] for each in found] if isinstance(found, list) else None


def _combined(
    members: list[dict[str, Any]], resolved: Mapping[str, Any], arrays: model_file.Arrays
) -> dict[str, Any]:
    """Return what there is to say of an ensemble and its learners."""
    own = resolved["parameters"]
    return {
        "combination": own.get("combine", "fixed-share"),
        "discount": own.get("discount"),
        "learners": [expression({"estimator": member}) for member in members],
        **_counts("ensemble.counts", arrays),
    }


def _counts(name: str, arrays: model_file.Arrays) -> dict[str, int]:
    """Return the numbers of trials and mistakes."""
    counts = valid_array(name, arrays, fields_of(LearnerRecord)["counts"], (), {})
    n_trials, n_mistakes = counts[:2].tolist()
    return {"trials": n_trials, "mistakes": n_mistakes}


def _mistakes_of_ranks(
    ranks: list[Any], is_single: bool, arrays: model_file.Arrays
) -> list[int] | None:
    """Return the number of mistakes at each rank above the labels, None without ranks."""
    name = "counts" if is_single else "ensemble.counts"
    found = [_counts(OF_RANK.format(i) + name, arrays) for i in range(len(ranks))]
    return [each["mistakes"] for each in found] or None


_PARTS = ("link", "preconditioner", "kernel", "costs", "replay")
_VALUES = ("on_new_class", "averaged", "intercept", "half_life", "decision")


def _learnt(resolved: Mapping[str, Any], arrays: model_file.Arrays) -> dict[str, Any]:
    """Return what there is to say of a learner."""
    own = resolved["parameters"]
    rule = own.get("update", own.get("algorithm"))
    return {
        "hypotheses": list(map(_hypothesis, own["hypotheses"])),
        "update": expression(rule),
        **{name: expression(own[name]) if own.get(name) else None for name in _PARTS},
        **{name: own.get(name) for name in _VALUES},
        "preprocessing": _preprocessing(own["preprocessing"], arrays),
        **_entries(arrays),
        **_memory(own, arrays),
        **_counts("counts", arrays),
    }


def _entries(arrays: model_file.Arrays) -> dict[str, Any]:
    """Return the number of weights that are stored alone, and the recall of candidates."""
    if STARTS_OF_ENTRIES in arrays:
        n_rows, n_found, _ = arrays["entries.recall"].tolist()
        recall = round(n_found / n_rows, 4) if n_rows else None
        return {"sparse_weights": np.size(arrays["entries.classes"]), "candidate_recall": recall}
    return {"sparse_weights": np.size(arrays.get(WEIGHTS, ())) if is_sparse(arrays) else None}


def _memory(own: Mapping[str, Any], arrays: model_file.Arrays) -> dict[str, Any]:
    """Return the limit on memory, and how many features were dropped, where there is a limit."""
    limit, dropped = own.get("memory_limit"), arrays.get("memory.dropped")
    if limit is None:
        return {"memory_limit": None, "dropped": None}
    if dropped is None or dropped.size != 1:
        raise damaged("memory.dropped is missing")
    return {"memory_limit": limit, "dropped": int(dropped.item())}


def _hypothesis(written: Mapping[str, Any]) -> str:
    """Return the Python expression of a part of the hypotheses."""
    part = written["part"]
    view = part["fields"].get("feature_map")
    return f"{part['name'].rpartition('.')[2]}({expression(view) if view else ''})"


def _preprocessing(
    described: Mapping[str, Any] | None, arrays: model_file.Arrays
) -> dict[str, Any] | None:
    """Return the preprocessing and the numbers of rows and features in its statistics."""
    if described is None:
        return None
    statistics, seen = (arrays.get(f"preprocessing.{name}") for name in ("statistics", "seen"))
    decay = arrays.get("decay.row", np.ones(1))
    if statistics is None or seen is None or (statistics.ndim, seen.size) != (2, 1):
        raise damaged("statistics of preprocessing are missing")
    n_seen = int(statistics.any(axis=1).sum())
    n_rows = float(seen.item() / max(decay.max(initial=0.0), 1e-300))
    return {"part": expression(described), "rows": n_rows, "features": n_seen}


def _line(name: str, value: Any) -> str:
    """Return the text of a line, empty if the line is omitted."""
    if name == "preprocessing" and value is not None:
        stored = f", {value['features']:,} features" if value["features"] else ""
        return f"{value['part']}, over {value['rows']:,.10g} rows{stored}"
    if name == "half_life" and value is not None:
        return f"{value:,.10g} rows"
    if name == "learners":
        return f"\n{' ' * INDENT}".join(value)
    if name == "hypotheses":
        return ", ".join(value)
    if isinstance(value, list):
        more = f" and {len(value) - SHOWN:,} more" if len(value) > SHOWN else ""
        return ", ".join(map(str, value[:SHOWN])) + more
    if isinstance(value, bool) or value is None:
        return "yes" if value else ""
    if name == "memory_limit":
        return f"{value:,} bytes"
    if name in ("intercept", "sub_experts"):
        return f"{value:,}" if value else ""
    return f"{value:,}" if isinstance(value, int) else str(value)
