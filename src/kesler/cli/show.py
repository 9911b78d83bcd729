"""kesler show: contents of a model file."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kesler.data import model_file
from kesler.learner.weights import WEIGHTS, is_sparse

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
    arrays, metadata = model_file.load(path)
    n_trials, n_mistakes = arrays["counts"][:2].tolist()
    intercept = metadata.get("constant", 0.0)
    return {
        "file": path,
        "bytes": Path(path).stat().st_size,
        "estimator": metadata["estimator"],
        "hypotheses": list(map(_hypothesis, metadata["parts"])),
        "update": _expression(metadata["rule"]),
        "link": _expression(metadata.get("link")),
        "preconditioner": _expression(metadata.get("preconditioner")),
        "on_new_class": metadata.get("on_new_class"),
        "averaged": metadata.get("averaged", False),
        "kernel": _expression((metadata.get("kernel") or {}).get("part")),
        "costs": metadata.get("costs"),
        "intercept": intercept,
        "preprocessing": _preprocessing(metadata.get("preprocessing"), arrays),
        "half_life": metadata.get("half_life"),
        "sparse_weights": len(arrays[WEIGHTS]) if is_sparse(arrays) else None,
        "trials": n_trials,
        "mistakes": n_mistakes,
        "features": max(0, metadata["n_features"] - bool(intercept)),
        "feature_names": metadata["names"],
        "sub_experts": metadata.get("n_sub_experts", 0),
        "classes": len(metadata["labels"]),
        "labels": metadata["labels"],
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
    n_seen = int(arrays["preprocessing.statistics"].any(axis=1).sum())
    decay = arrays["decay.row"][0] if "decay.row" in arrays else 1.0
    n_rows = (arrays["preprocessing.seen"] / decay).item()
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
    if name == "hypotheses":
        return ", ".join(value)
    if isinstance(value, list):
        more = f" and {len(value) - SHOWN:,} more" if len(value) > SHOWN else ""
        return ", ".join(map(str, value[:SHOWN])) + more
    if isinstance(value, bool) or value is None:
        return "yes" if value else ""
    if name in ("intercept", "sub_experts"):
        return f"{value:,}" if value else ""
    return f"{value:,}" if isinstance(value, int) else str(value)
