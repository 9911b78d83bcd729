"""kesler show: what a model file holds."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kesler import model_file
from kesler.sparse_weights import is_sparse

SHOWN = 10  # of the classes, and of the names of features


def run(options: Namespace) -> None:
    """Print what the file holds, a line each, or as one JSON object."""
    found = account(options.model)
    if options.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    lines = {name.replace("_", " "): _told(name, value) for name, value in found.items()}
    width = max(map(len, lines)) + 2
    for name, line in lines.items():
        if line:
            print(f"{name:{width}}{line}")


def account(path: str) -> dict[str, Any]:
    """Return what a model file holds, as JSON can hold it.

    The file says it all by itself: neither the user's own parts nor compiled code are needed.
    """
    arrays, metadata = model_file.load(path)
    n_trials, n_mistakes = arrays["counters"][:2].tolist()
    intercept = metadata.get("constant", 0.0)
    return {
        "file": path,
        "bytes": Path(path).stat().st_size,
        "estimator": metadata["estimator"],
        "hypotheses": list(map(_hypothesis, metadata["parts"])),
        "update": _spelt(metadata["rule"]),
        "link": _spelt(metadata.get("link")),
        "metric": _spelt(metadata.get("metric")),
        "newcomers": metadata.get("newcomers"),
        "averaged": metadata.get("averaged", False),
        "kernel": _spelt((metadata.get("kernel") or {}).get("part")),
        "costs": metadata.get("costs"),
        "intercept": intercept,
        "conditioning": _conditioning(metadata.get("conditioning"), arrays),
        "half_life": metadata.get("half_life"),
        "sparse_weights": len(arrays["weights.0"]) if is_sparse(arrays) else None,
        "trials": n_trials,
        "mistakes": n_mistakes,
        "features": max(0, metadata["n_features"] - bool(intercept)),
        "feature_names": metadata["names"],
        "sub_experts": metadata.get("n_sub_experts", 0),
        "classes": len(metadata["labels"]),
        "labels": metadata["labels"],
    }


def _hypothesis(part: Mapping[str, Any]) -> str:
    """Return a part as Python writes it."""
    return f"{part['kind']}({_spelt(part['map']) or ''})"


def _conditioning(
    described: Mapping[str, Any] | None, arrays: model_file.Arrays
) -> dict[str, Any] | None:
    """Return what is done to rows, and of how many rows and features it knows."""
    if described is None:
        return None
    n_met = int(arrays["past"].any(axis=1).sum())
    worth = arrays["forgetting"][1] if "forgetting" in arrays else 1.0
    n_rows = (arrays["past_rows"] / worth).item()
    return {"part": _spelt(described), "rows": n_rows, "features": n_met}


def _spelt(described: Mapping[str, Any] | None) -> str | None:
    """Return a part that `kesler.parts` described as Python writes it.

    Examples
    --------
    >>> _spelt({"name": "MIRA", "fields": {"C": 0.5}})
    'MIRA(C=0.5)'
    """
    if described is None:
        return None
    if "custom" in described:
        return f"{described['custom']}({', '.join(map(str, described['parameters']))})"
    fields = [f"{name}={value!r}" for name, value in described["fields"].items()]
    return f"{described['name']}({', '.join(fields)})"


def _told(name: str, value: Any) -> str:
    """Return what a line says, nothing where there is nothing to say."""
    if name == "conditioning" and value is not None:
        kept = f", {value['features']:,} features" if value["features"] else ""
        return f"{value['part']}, over {value['rows']:,.10g} rows{kept}"
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
