"""kesler show: contents of a model file."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kesler.data import model_file
from kesler.learner.weights import WEIGHTS, is_sparse
from kesler.online.loading import read
from kesler.state.fields import damaged, fields_of, require_valid
from kesler.state.records import LearnerRecord

SHOWN = 10  # maximum number of classes and feature names to print


def run(options: Namespace) -> None:
    """Print the contents of the file as lines, or as one JSON object."""
    found = account(options.model)
    if options.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    lines = {name.replace("_", " "): _line(name, value) for name, value in found.items()}
    width = max(map(len, lines)) + 2
    for name, line in lines.items():
        if line:
            print(f"{name:{width}}{line}")


def account(path: str) -> dict[str, Any]:
    """Return the contents of a model file as a JSON object.

    This needs neither user-defined parts nor compiled code.
    """
    arrays, metadata = read(path)
    members = metadata.get("members")
    first = metadata if members is None else members[0]
    found = _learnt(metadata, arrays) if members is None else _combined(metadata, arrays)
    return {
        "file": path,
        "bytes": Path(path).stat().st_size,
        "estimator": metadata["estimator"],
        **found,
        "features": max(0, first["n_features"] - bool(first["constant"])),
        "feature_names": metadata["names"],
        "sub_experts": first["n_sub_experts"],
        "classes": len(first["labels"]),
        "labels": first["labels"],
    }


def _combined(metadata: Mapping[str, Any], arrays: model_file.Arrays) -> dict[str, Any]:
    """Return what there is to say of an ensemble and its learners."""
    learners = [
        f"{_expression(member['rule'])} over {', '.join(map(_hypothesis, member['parts']))}"
        for member in metadata["members"]
    ]
    return {
        "combination": metadata["combine"],
        "discount": metadata["discount"],
        "learners": learners,
        **_counts("ensemble.counts", arrays),
    }


def _counts(name: str, arrays: model_file.Arrays) -> dict[str, int]:
    """Return the numbers of trials and mistakes."""
    require_valid(name, arrays, fields_of(LearnerRecord)["counts"], (), {})
    n_trials, n_mistakes = arrays[name][:2].tolist()
    return {"trials": n_trials, "mistakes": n_mistakes}


def _learnt(metadata: Mapping[str, Any], arrays: model_file.Arrays) -> dict[str, Any]:
    """Return what there is to say of a learner."""
    return {
        "hypotheses": list(map(_hypothesis, metadata["parts"])),
        "update": _expression(metadata["rule"]),
        "link": _expression(metadata["link"]),
        "preconditioner": _expression(metadata["preconditioner"]),
        "on_new_class": metadata["on_new_class"],
        "averaged": metadata["averaged"],
        "kernel": _expression((metadata["kernel"] or {}).get("part")),
        "costs": metadata["costs"],
        "intercept": metadata["constant"],
        "preprocessing": _preprocessing(metadata["preprocessing"], arrays),
        "half_life": metadata["half_life"],
        "replay": _expression(metadata["replay"]),
        "decision": metadata["decision"],
        "sparse_weights": np.size(arrays.get(WEIGHTS, ())) if is_sparse(arrays) else None,
        **_counts("counts", arrays),
    }


def _hypothesis(part: Mapping[str, Any]) -> str:
    """Return the Python expression of a part of the hypotheses."""
    return f"{part['kind']}({_expression(part['map']) or ''})"


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
    return {"part": _expression(described), "rows": n_rows, "features": n_seen}


def _expression(described: Mapping[str, Any] | None) -> str | None:
    """Return the Python expression of a part described by `kesler.parts.description`.

    Examples
    --------
    >>> _expression({"name": "MIRA", "fields": {"C": 0.5}})
    'MIRA(C=0.5)'
    """
    if described is None:
        return None
    if "custom" in described:
        return f"{described['custom']}({', '.join(map(str, described['parameters']))})"
    fields = [f"{name}={value!r}" for name, value in described["fields"].items()]
    return f"{described['name']}({', '.join(fields)})"


def _line(name: str, value: Any) -> str:
    """Return the text of a line, empty if the line is omitted."""
    if name == "preprocessing" and value is not None:
        stored = f", {value['features']:,} features" if value["features"] else ""
        return f"{value['part']}, over {value['rows']:,.10g} rows{stored}"
    if name == "half_life" and value is not None:
        return f"{value:,.10g} rows"
    if name in ("hypotheses", "learners"):
        return ", ".join(value)
    if isinstance(value, list):
        more = f" and {len(value) - SHOWN:,} more" if len(value) > SHOWN else ""
        return ", ".join(map(str, value[:SHOWN])) + more
    if isinstance(value, bool) or value is None:
        return "yes" if value else ""
    if name in ("intercept", "sub_experts"):
        return f"{value:,}" if value else ""
    return f"{value:,}" if isinstance(value, int) else str(value)
