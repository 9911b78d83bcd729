"""The table of settings: every parameter of the online estimators, described once.

Signatures and docstrings are checked against it; from it follow the options of the command line,
what ensembles hand to their members, and the settings that files, journals and requests hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kesler.data.texts import EARLIEST, LATEST

AUTO = "auto"
"""The value of a setting that is not chosen: it follows from the rows and the other settings."""

Members = Literal["each", "weights", "gradients", "alone", "refused", "estimator"]
"""What an ensemble whose members are not given does with a setting.

each : it applies to each member.
weights : it applies to each member with weights; a kernel has stored rows.
gradients : it applies to each member that steps along gradients, and not to one that has a matrix
    of second moments of all rows.
alone : it chooses another learner, which has no members.
refused : it would have no effect.
estimator : it concerns the estimator, and no learner.
"""

Group = Literal["learner", "classes", "input", "passes", "uncertainty", "memory"]
"""What a setting is about, in the order of the reference.

learner : how scores are made and weights move.
classes : which classes there are, what confusions of them cost, and which are compared.
input : how rows are read and transformed.
passes : how often, and in which order, rows are learnt.
uncertainty : what is estimated beside the class, and which answers are asked for or shown.
memory : how large the model may become.
"""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting.

    Parameters
    ----------
    name : the name of the parameter; its option on the command line has hyphens.
    summary : what it is, in one line of help.
    default : its value if it is not given.
    group : what it is about, see :data:`Group`.
    members : what ensembles do with it, see :data:`Members`.
    choices : function that returns the names that its values may have, None without names.
    read : function that reads its value from the command line; None if it has no option.
    metavar : what the help calls its value.
    resolve : function that returns the part that a name stands for, if the default is a name.
    """

    name: str
    summary: str
    default: Any = AUTO
    group: Group = "learner"
    members: Members = "each"
    choices: Callable[[], Iterable[str]] | None = None
    read: Callable[[str], Any] | None = None
    metavar: str = "NAME"
    resolve: Callable[[Any], Any] | None = None

    @property
    def option(self) -> str:
        """The option of the command line, such as ``--half-life``."""
        return "--" + self.name.replace("_", "-")

    def is_given(self, value: Any) -> bool:
        """Return whether a value differs from the default.

        Examples
        --------
        >>> SETTINGS["half_life"].is_given(None), SETTINGS["half_life"].is_given(100)
        (False, True)
        """
        if value is self.default:
            return False
        if self.resolve is not None:
            return bool(self.resolve(value) != self.resolve(self.default))
        return not (isinstance(value, type(self.default)) and value == self.default)


def _names_of(package: str, registry: str) -> Callable[[], Iterable[str]]:
    def names() -> Iterable[str]:
        from importlib import import_module

        found: Iterable[str] = getattr(import_module(f"kesler.{package}"), registry)
        return found

    return names


def _part_of(package: str, resolver: str) -> Callable[[Any], Any]:
    def part(value: Any) -> Any:
        from importlib import import_module

        return getattr(import_module(f"kesler.{package}"), resolver)(value)

    return part


def _on_new_class() -> Iterable[str]:
    from typing import get_args

    from kesler.learner.classes import OnNewClass

    return get_args(OnNewClass)


def name_or_none(text: str) -> str:
    """Return a name; "none" stands for None, once it is known that the option is given."""
    return text


def truth_or_name(text: str) -> bool | str:
    """Return True or False for "true" and "false", or a name."""
    return {"true": True, "false": False}.get(text, text)


def number_or_name(text: str) -> float | str:
    """Return a number, or a name."""
    try:
        return float(text)
    except ValueError:
        return text


def count_or_name(text: str) -> int | str | None:
    """Return an integer, None for "none", or a name."""
    return int(text) if text.isdecimal() else None if text == "none" else text


_TABLE = (
    Setting(
        "hypotheses",
        "how classes share weights, by one of these names or several joined by +",
        choices=_names_of("hypotheses", "NAMED"),
        read=str,
    ),
    Setting(
        "feature_map",
        "feature map of the hypotheses that classes share",
        members="alone",
        choices=_names_of("maps", "MAPS"),
        read=str,
    ),
    Setting(
        "update",
        "update rule, or ensemble for several learners",
        members="alone",
        choices=_names_of("updates", "RULES"),
        read=str,
    ),
    Setting(
        "C",
        "aggressiveness of the rule; smaller values (0.001 to 0.1) are more robust to noise",
        default=None,
        members="alone",
        read=float,
        metavar="NUMBER",
    ),
    Setting(
        "eta",
        "step size of the rule, or its confidence for scw1 and scw2",
        default=None,
        members="alone",
        read=float,
        metavar="NUMBER",
    ),
    Setting(
        "delta",
        "accuracy of the projections of the rule",
        default=None,
        members="alone",
        read=float,
        metavar="NUMBER",
    ),
    Setting(
        "r",
        "regularisation of arow",
        default=None,
        members="alone",
        read=float,
        metavar="NUMBER",
    ),
    Setting(
        "link",
        "link function of the update",
        default="linear",
        members="alone",
        choices=_names_of("links", "LINKS"),
        read=str,
        resolve=_part_of("links", "resolve_link"),
    ),
    Setting(
        "averaged",
        "predict new rows with the mean of the weights after each row, which is more robust to "
        "noise (the errors in the table are those of the last weights)",
        default=False,
        members="refused",
        read=bool,
    ),
    Setting(
        "costs",
        "file of costs of confusions, with lines RIGHT,WRONG,COST; pairs not in it cost 1",
        default=None,
        group="classes",
        members="alone",
        read=str,
        metavar="FILE",
    ),
    Setting(
        "intercept",
        "value of a constant feature of every row, 0 for none",
        read=number_or_name,
        metavar="NUMBER",
    ),
    Setting(
        "kernel",
        "Mercer kernel",
        default=None,
        members="alone",
        choices=_names_of("kernels", "KERNELS"),
        read=str,
    ),
    Setting(
        "sigma",
        "variance of the rbf kernel, exp(-distance^2 / (2 sigma)); auto is 0.04 times the median "
        "squared distance between rows seen so far",
        members="alone",
        read=number_or_name,
        metavar="NUMBER",
    ),
    Setting(
        "budget",
        "maximum number of support vectors; the oldest are removed",
        default=None,
        group="memory",
        members="alone",
        read=int,
        metavar="N",
    ),
    Setting(
        "preconditioner",
        "step size of each weight; auto is that of the rule, or euclidean",
        members="alone",
        choices=_names_of("preconditioners", "PRECONDITIONERS"),
        read=str,
    ),
    Setting(
        "on_new_class",
        "effect of the first row of a class: add the class without an update (register, the "
        "default if an update is named), also learn from the row (learn), or learn with the "
        "weights of a virtual class as initial weights (inherit); unseen requires ratings by "
        "sub-experts",
        group="classes",
        choices=_on_new_class,
        read=str,
    ),
    Setting(
        "preprocessing",
        "transformation of each row, with running statistics of the rows before it; scale is by "
        "the kind of the first rows",
        group="input",
        choices=_names_of("preprocessing", "NAMES"),
        read=name_or_none,
    ),
    Setting(
        "half_life",
        "number of rows after which the influence of a row has decayed by half, for streams with "
        "drift",
        default=None,
        members="weights",
        read=float,
        metavar="ROWS",
    ),
    Setting(
        "replay",
        "number of earlier rows that are learnt again after each row",
        default=0,
        group="passes",
        members="gradients",
        read=int,
        metavar="N",
    ),
    Setting(
        "candidates",
        "number of classes that each row is compared with, of more than so many; auto is 64 of "
        "more than 128, none all",
        group="classes",
        read=count_or_name,
        metavar="N",
        resolve=_part_of("candidates", "resolve_candidates"),
    ),
    Setting(
        "memory_limit",
        "bytes of the model, such as 200MB; beyond it, the features are dropped that rows have "
        "most rarely",
        default=None,
        group="memory",
        members="alone",
        read=str,
        metavar="BYTES",
        resolve=_part_of("learner.memory", "resolve_memory_limit"),
    ),
    Setting(
        "epochs",
        "number of times that all rows are learnt; auto is one",
        group="passes",
        members="estimator",
        read=int,
        metavar="N",
    ),
    Setting(
        "shuffle",
        "whether `fit` learns rows in a random order",
        members="estimator",
        group="passes",
    ),
    Setting("random_state", "seed of this order", default=0, members="estimator", group="passes"),
    Setting(
        "class_weight",
        "weights of the rows of each class",
        default=None,
        members="estimator",
        group="classes",
    ),
    Setting(
        "tree",
        "tree of classes: the separator of their names, such as /, or a file with lines "
        "CHILD,PARENT",
        default=None,
        group="classes",
        members="alone",
        read=str,
        metavar="SEPARATOR",
    ),
    Setting(
        "ranks",
        "separator of the names of labels that are paths, such as ;: each rank is learnt by itself",
        default=None,
        group="classes",
        members="estimator",
        read=str,
        metavar="SEPARATOR",
    ),
    Setting(
        "label_budget",
        "learn only rows whose label is asked for, about this share of them, those about which "
        "the doubt is largest; all rows are predicted and count",
        default=None,
        group="uncertainty",
        members="estimator",
        read=float,
        metavar="SHARE",
    ),
    Setting(
        "vectors",
        "file of word vectors, whose means over the words of each text are learnt beside them",
        default=None,
        group="input",
        members="estimator",
        read=str,
        metavar="FILE",
    ),
    Setting(
        "uncertainty",
        "whether the probability of a new class, confidence and prediction sets are learnt: true, "
        "false, or full, which remembers 1,000 rows besides; auto does so unless an update is "
        "named",
        group="uncertainty",
        members="estimator",
        read=truth_or_name,
    ),
    Setting("columns", "kinds of the columns of a table", members="estimator", group="input"),
    Setting(
        "on_mismatch",
        "effect of a cell that its column cannot hold: missing, where such cells are counted, or "
        "raise",
        default="missing",
        group="input",
        members="estimator",
        choices=lambda: ("missing", "raise"),
        read=str,
    ),
    Setting("decision", "how labels follow from scores", group="classes"),
    Setting("order", "the labels from the lowest to the highest", default=None, group="classes"),
    Setting("learners", "the members of an ensemble", default=None),
    Setting("combine", "how an ensemble combines its members", default="fixed-share"),
    Setting("discount", "discount of earlier losses of the members", default=None),
    Setting("demotion", "factor of the weight of a member that is wrong", default=0.9),
    Setting("share", "share of the weights that members exchange at each row", default=0.003),
    Setting(
        "algorithm",
        "linear-threshold algorithm",
        default="winnow",
        resolve=_part_of("algorithms", "resolve_algorithm"),
    ),
    Setting("classes", "the classes that may be shown", default=(), group="classes"),
    Setting(
        "exploration",
        "how often other classes than the most probable are shown",
        group="uncertainty",
    ),
    Setting(
        "weighted",
        "whether steps are divided by the probability of showing",
        default=False,
        group="uncertainty",
    ),
    Setting("seed", "seed of the draws", default=0, group="uncertainty"),
)

SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _TABLE}
"""The settings by their names."""

OF_ESTIMATOR = tuple(each.name for each in _TABLE if each.members == "estimator")
"""The settings that concern no learner."""


def given_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from their defaults.

    Examples
    --------
    >>> given_of({"half_life": 100, "averaged": False, "intercept": "auto"})
    {'half_life': 100}
    """
    return {name: each for name, each in parameters.items() if SETTINGS[name].is_given(each)}


class FormerAuto(str):
    """What "auto" meant in settings of a format before.

    Words had no intercept before format 3, and texts their first features before format 4, which
    the setting `columns` stands for.
    """

    __slots__ = ()


def version_of_texts(columns: Any) -> int:
    """Return the version of the features of texts, a key of :data:`kesler.data.texts.LIMITS`."""
    return EARLIEST if isinstance(columns, FormerAuto) else LATEST


def as_meant(given: Mapping[str, Any], *, dense: bool) -> Mapping[str, Any]:
    """Return settings for such rows, with what another version called "auto" as it meant it."""
    is_former = isinstance(given.get("intercept"), FormerAuto) and not dense
    return {**given, "intercept": 0.0} if is_former else given
