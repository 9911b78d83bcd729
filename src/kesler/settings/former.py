"""Settings and metadata as versions before wrote them, in the present form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from kesler.settings.table import FormerAuto

Settings = dict[str, Any]

# Where parts were when the journals of Kesler 0.1 were written.
_MOVED = {"kesler.parts.trees": "trees", "kesler.parts.replay": "preprocessing"}

# The estimators that have the setting `uncertainty`.
_ESTIMATED = (
    *("OnlineClassifier", "Ensemble", "OnlineMultilabelClassifier", "OnlineOrdinalClassifier"),
)

_OF_EXPLORATION = ("classes", "exploration", "weighted", "seed")


def settings(written: Mapping[str, Any]) -> Settings:
    """Return the settings of an estimator that a file or a journal of a format before holds."""
    if written.get("format", 1) == 1:
        written = _of_format_1(written)
    parameters, name = {**written["parameters"]}, written["name"]
    is_of_3 = written["format"] == 3
    if parameters.get("intercept") == "auto" and name in _WITHOUT_INTERCEPT and not is_of_3:
        parameters["intercept"] = FormerAuto("auto")
    if parameters.get("columns", "auto") == "auto" and name != "LinearMax":
        parameters["columns"] = FormerAuto("auto")
    return {**written, "parameters": parameters}


# The estimators whose default for words had no intercept.
_WITHOUT_INTERCEPT = ("OnlineClassifier", "BanditClassifier")


def _of_format_1(written: Mapping[str, Any]) -> Settings:
    parameters = {name: _value(each) for name, each in written["parameters"].items()}
    if parameters.get("preprocessing") == "auto":
        parameters["preprocessing"] = "scale"
    if parameters.get("preprocessing") == "none":
        parameters["preprocessing"] = None
    if "sigma" in parameters and parameters.get("kernel") is None:
        parameters["sigma"] = "auto"  # was ignored
    chosen = {name: "auto" if each == "default" else each for name, each in parameters.items()}
    return {"format": 2, "name": written["name"], "parameters": chosen}


def _value(written: Any) -> Any:
    """Return a value of a parameter in the present form."""
    if isinstance(written, list):
        return [_value(each) for each in written]
    if not isinstance(written, dict):
        return written
    ((form, value),) = written.items()
    if form == "estimator":
        return {form: settings(value)}
    if form != "part":
        return {form: _value(value)}
    module = value["module"]
    package = _MOVED.get(module, module.replace("kesler.parts.", "kesler.").split(".")[1:2])
    name = f"{package if isinstance(package, str) else package[0]}.{value['name']}"
    fields = {field: _value(each) for field, each in value["fields"].items()}
    return {form: {"name": name, "fields": fields}}


def metadata(written: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata of a model file of format 1.

    It held what each learner was made of, and no settings: those are the resolved ones.
    """
    single = "members" not in written
    members = [written] if single else written["members"]
    resolved = [_resolved(each) for each in members]
    own = _of_estimator(written)
    if single:
        made = resolved[0]
    else:
        made = _ensemble(written, [{"estimator": each} for each in resolved])
    given = {"format": 2, "name": made["name"], "parameters": {**made["parameters"], **own}}
    kernel = members[0].get("kernel")
    return {
        "settings": given,
        "resolved": given,
        "dense": bool(kernel["dense"]) if kernel else True,
        "learners": [_contents(each) for each in members],
        "table": (written.get("columns") or {}).get("table"),
        **{name: written.get(name) for name in ("names", "sub_experts", "width", "texts")},
        "declared": written.get("declared", []),
        "uncertainty": written.get("uncertainty"),
        "notes": written["notes"],
    }


def ensemble(written: Mapping[str, Any], n_members: int) -> dict[str, Any]:
    """Return the arrays of an ensemble whose pool had one exponent for the mean of its members."""
    exponent = float(written["ensemble.pooling"][0]) / n_members
    return {
        **written,
        "ensemble.exponents": np.full(n_members, exponent),
        "ensemble.slopes": np.ones(n_members),
    }


def _contents(written: Mapping[str, Any]) -> dict[str, Any]:
    sizes = {name: written.get(name, 0) for name in ("n_features", "n_sub_experts", "n_inputs")}
    return {name: written[name] for name in ("labels", "groups", "memberships")} | sizes


def _ensemble(written: Mapping[str, Any], members: list[Any]) -> Settings:
    name = written["estimator"]
    if name != "Ensemble":
        return {"name": name, "parameters": {"update": members}}
    combination = {key: written[key] for key in ("combine", "discount", "demotion")}
    share = written.get("share", 0.003)
    return {"name": name, "parameters": {"learners": members, **combination, "share": share}}


def _of_estimator(written: Mapping[str, Any]) -> Settings:
    """Return the settings that concern no learner, where they differ from the defaults."""
    name = written["estimator"]
    found: Settings = {}
    estimates, columns = written.get("uncertainty"), written.get("columns")
    if name not in (
        "LinearMax",
        "BanditClassifier",
        "CostSensitiveClassifier",
        "OnlineLabelRanker",
    ):
        remembers = estimates is not None and estimates["remembers"]
        found["uncertainty"] = "full" if remembers else estimates is not None
    if written.get("epochs", 1) != 1:
        found["epochs"] = written["epochs"]
    if written.get("label_budget"):
        found["label_budget"] = _part("queries")(written["label_budget"])
    if columns is not None:
        found |= {"columns": _given(columns["given"]), "on_mismatch": columns["on_mismatch"]}
    return found


def _given(columns: Any) -> Any:
    """Return the kinds of columns as settings."""
    if not isinstance(columns, dict):
        return columns
    return {"mapping": [[name, _given(each)] for name, each in columns.items()]}


def _resolved(written: Mapping[str, Any]) -> Settings:
    """Return the settings of a learner, of which each is chosen."""
    name = written["estimator"]
    found: Settings = {"hypotheses": [_hypotheses(each) for each in written["parts"]]}
    found["preprocessing"] = _or_none(_preprocessing, written.get("preprocessing"))
    found["on_new_class"] = written.get("on_new_class", "register")
    if name == "LinearMax":
        return {
            "format": 2,
            "name": name,
            "parameters": found | {"algorithm": _algorithm(written)},
        }
    found |= {
        "update": _part(*_packages_of_rule(written["rule"]))(written["rule"]),
        "link": _part("links")(written.get("link", {"name": "Linear", "fields": {}})),
        "averaged": written.get("averaged", False),
        "preconditioner": _part("preconditioners")(
            written.get("preconditioner", {"name": "Euclidean", "fields": {}})
        ),
        "intercept": written.get("constant", 0.0),
        "half_life": written.get("half_life"),
    }
    more: Settings = {
        "costs": _or_none(_costs, written.get("costs")),
        "replay": _or_none(_part("preprocessing"), written.get("replay")) or 0,
        "decision": written.get("decision", "score"),
        "order": written.get("order"),
        **_kernel(written.get("kernel")),
        **_exploration(written),
    }
    found |= {key: value for key, value in more.items() if key in _MORE.get(name, ())}
    if name == "BanditClassifier":
        del found["on_new_class"]
    if name != "OnlineOrdinalClassifier":
        found |= {key: more[key] for key in ("kernel", "budget") if more.get(key) is not None}
    return {"format": 2, "name": name, "parameters": found}


# The settings that some estimators have.
_MORE = {
    "OnlineClassifier": ("costs", "replay"),
    "OnlineMultilabelClassifier": ("decision",),
    "OnlineOrdinalClassifier": ("decision", "order"),
    "BanditClassifier": _OF_EXPLORATION,
}


def _or_none(convert: Callable[[Any], Any], written: Any) -> Any:
    return None if written is None else convert(written)


def _part(*packages: str) -> Callable[[Mapping[str, Any]], Settings]:
    """Return a function that brings the description of a part of one of the packages to a form."""

    def convert(written: Mapping[str, Any]) -> Settings:
        if "custom" in written:
            function = written["custom"].replace("kesler.parts.", "kesler.")
            kind, parameters = _KINDS[packages[0]], written["parameters"]
            return {"custom": {"kind": kind, "function": function, "parameters": parameters}}
        return {
            "part": {"name": f"{packages[0]}.{written['name']}", "fields": dict(written["fields"])}
        }

    return convert


_KINDS = {
    "updates": "update rule",
    "algorithms": "linear-threshold algorithm",
    "links": "link",
    "maps": "feature map",
    "kernels": "Mercer kernel",
    "preconditioners": "preconditioner",
    "queries": "query rule",
}


def _packages_of_rule(written: Mapping[str, Any]) -> tuple[str, ...]:
    from kesler.algorithms import ALGORITHMS

    of_algorithms = {"RivalStep", *(type(make()).__name__ for make in ALGORITHMS.values())}
    return ("algorithms",) if written.get("name") in of_algorithms else ("updates",)


def _algorithm(written: Mapping[str, Any]) -> Settings:
    if written["rule"].get("name") != "RivalStep":
        return _part("algorithms")(written["rule"])
    fields = {"link": _part("links")(written["link"]), "rate": written["rule"]["fields"]["rate"]}
    return {"part": {"name": "algorithms.QuasiAdditive", "fields": fields}}


def _preprocessing(written: Mapping[str, Any]) -> Settings:
    found = _part("preprocessing")(written)
    if written.get("name") == "Concatenated":
        blocks = [_preprocessing(each) for each in written["fields"]["blocks"]]
        found["part"]["fields"] = {"blocks": {"tuple": blocks}}
    return found


def _hypotheses(written: Mapping[str, Any]) -> Settings:
    fields: Settings = {}
    if written["kind"] != "Ordered":
        fields["feature_map"] = _or_none(_part("maps"), written["map"])
    if "begins_at" in written:
        fields["begins_at"] = written["begins_at"]
    if "groups" in written:
        fields["groups"] = _groups(written["groups"])
    return {"part": {"name": f"hypotheses.{written['kind']}", "fields": fields}}


def _groups(written: Any) -> Any:
    if isinstance(written, str):
        return {"function": written}
    return {"mapping": written} if isinstance(written, list) else _tree(written)


def _tree(written: Mapping[str, Any]) -> Settings:
    if "parents" in written:
        given: Any = {"mapping": written["parents"]}
    elif "separator" in written:
        given = written["separator"]
    else:
        given = {"function": written["function"]}
    return {
        "part": {
            "name": "trees.Tree",
            "fields": {"given": given, "hung": {"mapping": written["hung"]}},
        }
    }


def _costs(written: Any) -> Any:
    if isinstance(written, str):
        return {"function": written}
    if isinstance(written, list):
        return {"mapping": [[{"tuple": [right, wrong]}, cost] for right, wrong, cost in written]}
    return _tree(written)


def _kernel(written: Mapping[str, Any] | None) -> Settings:
    if written is None:
        return {}
    budget = written["budget"]
    is_number = budget is None or isinstance(budget, int)
    return {
        "kernel": _part("kernels")(written["part"]),
        "budget": budget if is_number else _part("budgets")(budget),
    }


def _exploration(written: Mapping[str, Any]) -> Settings:
    stored = written.get("bandit")
    if stored is None:
        return {}
    return {
        "classes": written["labels"],
        "exploration": _part("exploration")(stored["exploration"]),
        "weighted": stored["is_weighted"],
        "seed": stored["seed"],
    }
