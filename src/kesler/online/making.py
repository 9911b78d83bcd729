"""Maker: how the learner of an estimator follows from the settings of the estimator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kesler.costs import Costs
from kesler.data.inputs import intercept_value
from kesler.data.labels import Label
from kesler.errors import KeslerError
from kesler.hypotheses import (
    Ordered,
    Part,
    Shared,
    over_tree,
    resolve_hypotheses,
    takes_ratings,
    tree_of,
)
from kesler.kernels import resolve_kernel
from kesler.kernels.mercer import MercerKernel
from kesler.learner.classes import ClassTable
from kesler.learner.combinations import require_half_life
from kesler.learner.ensemble import AnyLearner, EnsembleLearner
from kesler.learner.kernel_learner import KernelLearner, goes_by_distance
from kesler.learner.learner import Learner
from kesler.learner.support_vectors import limit_of
from kesler.learner.targets import Decision
from kesler.learner.uncertainty import Uncertainty, require_use
from kesler.links import resolve_link
from kesler.maps import resolve_map
from kesler.online.answers import ClassAnswer
from kesler.online.contract import unfitted
from kesler.online.defaults import has_trees, members_of_default, of_ensemble, resolve
from kesler.parts.constraints import VS_REST
from kesler.preconditioners import EUCLIDEAN, Preconditioner, resolve_preconditioner
from kesler.preprocessing import resolve_preprocessing
from kesler.preprocessing.expansion import Expansion
from kesler.preprocessing.method import Preprocessing
from kesler.preprocessing.replay import resolve_replay
from kesler.settings.table import AUTO, SETTINGS, as_meant, given_of
from kesler.updates.rule import UpdateRule

if TYPE_CHECKING:
    from kesler.candidates import Candidates
    from kesler.data.schema.measurements import Forms, Inputs
    from kesler.learner.memory import Memory
    from kesler.learner.ranks import Ranks
    from kesler.trees.tree import Tree

Settings = Mapping[str, Any]
OF_DEFAULT = (AUTO, "ensemble")
OF_ROWS = ("hypotheses", "preprocessing", "candidates")
"""The settings that follow from the form of the rows."""


class Maker:
    """Makes learners of settings, the parameters of an estimator by name.

    Parameters
    ----------
    answer : the answer of the estimator.
    """

    def __init__(self, answer: ClassAnswer) -> None:
        self.answer = answer

    # ---- learners ---------------------------------------------------------------------------

    def learner(self, given: Settings, *, dense: bool, inputs: Inputs | None = None) -> AnyLearner:
        """Return a new learner for rows that list every feature if `dense`, else non-zeros.

        If a table has inputs, some members of its ensemble read these beside the features.
        """
        members = self.members(given, dense=dense, inputs=inputs)
        if members is None:
            if given.get("vectors") is not None:
                raise KeslerError(
                    f"vectors={given['vectors']!r:.60} are read by members of an ensemble, as the "
                    "default is, and these settings are of a single learner: leave it out, or "
                    "choose no update rule"
                )
            return self.single(given, dense=dense)
        for settings in (given, *(each.get_params(deep=False) for each in members)):
            if settings.get("memory_limit") is not None:
                raise KeslerError(
                    f"memory_limit={settings['memory_limit']!r} does not fit an ensemble, whose "
                    "learners count features each on its own: leave it out, or choose one learner"
                )
            if given_of(settings).get("candidates") is not None:
                raise KeslerError(
                    f"candidates={settings['candidates']!r} has no effect on an ensemble, as the "
                    "default for measurements is: its learners score all classes. Leave it out, "
                    "or use OnlineClassifier() alone on texts or rows that list non-zeros"
                )
        made = [
            each._maker.single(own, dense=dense or not each._maker.takes_sparse_rows(own))
            for each in members
            for own in [each.get_params(deep=False)]
        ]
        names = [type(each).__name__ for each in members]
        ensemble = EnsembleLearner(made, names, **self.combination(given))
        ensemble.n_columns = None if inputs is None else inputs.n_columns
        return ensemble

    def single(self, given: Settings, *, dense: bool) -> Learner:
        """Return a new learner that is no ensemble."""
        chosen = self.chosen(given, dense=dense)
        kernel, parts = self.kernel(given), self.parts(given, dense=dense)
        budget = limit_of(given.get("budget"))
        made_of: dict[str, Any] = {
            "parts": parts,
            "classes": self.classes(given),
            "constant": intercept_value(chosen.get("intercept", 0.0)),
            "answer": self.answer.kind,
            "preprocessing": self.preprocessing(given, dense=dense),
            "half_life": require_half_life(chosen.get("half_life")),
            "replay": resolve_replay(chosen.get("replay")),
            **self.moves(given, chosen),
        }
        made_of["decision"] = chosen.get("decision", self.decision(made_of))
        if kernel is not None:
            made_of |= {"kernel": kernel, "dense": dense, "budget": budget}
        made = self.made(given, made_of, dense=dense)
        made.candidates = self.candidates(given, made)
        if given.get("memory_limit") is not None:
            made.memory = self.memory(given["memory_limit"], made)
        return made

    def memory(self, limit: Any, learner: Learner) -> Memory:
        """Return the limit on the memory of a learner; raise if it cannot drop features."""
        from kesler.learner.memory import Memory, resolve_memory_limit, why_unlimited

        n_bytes, why = resolve_memory_limit(limit), why_unlimited(learner)
        if why is not None or n_bytes is None:
            raise KeslerError(
                f"memory_limit={limit!r} drops features of texts and mappings of names, and "
                f"{why}: leave it out"
            )
        return Memory(n_bytes)

    def candidates(self, given: Settings, learner: Learner) -> Candidates | None:
        """Return how rows are compared with a part of the classes, or None for all classes."""
        from kesler.candidates import resolve_candidates

        choice = resolve_candidates(given.get("candidates"))
        if choice is None or learner.may_compare:
            return choice
        if "candidates" in given_of(given):
            raise KeslerError(
                f"candidates={given['candidates']!r} has no effect on these settings and rows, "
                "which compare each row with all classes: leave it out, or let the default "
                "settings learn texts or rows that list non-zeros"
            )
        return None

    def made(self, given: Settings, made_of: Settings, *, dense: bool) -> Learner:
        """Return the learner of these arguments: of trees, over a kernel or with weights."""
        if "kernel" in made_of:
            return KernelLearner(**made_of)
        if not made_of["rule"].has_trees:
            return Learner(**made_of)
        from kesler.learner.forest_learner import ForestLearner

        return ForestLearner(**made_of)

    def classes(self, given: Settings, declared: Iterable[Label] = ()) -> ClassTable:
        """Return the table of classes before the first row."""
        return ClassTable(n_virtual=self.answer.n_virtual)

    def uncertainty(
        self,
        given: Settings,
        learner: AnyLearner,
        *,
        dense: bool,
        inputs: Inputs | None = None,
    ) -> Uncertainty | None:
        """Return new estimates for a learner, or None if none are asked for.

        Rows are remembered where they list all features, by default if these are vectors.
        """
        use = require_use(given.get("uncertainty", False))
        if use is False or (use == "auto" and not self.names_no_rule(given)):
            return None
        kind = self.answer.kind
        is_full = use == "full" or (use == "auto" and inputs is not None and inputs.has_vectors)
        has_distances = (dense or inputs is not None) and kind != "sets"
        return Uncertainty(kind, learner.n_scored, remembers=is_full and has_distances)

    def ranks(self, given: Settings) -> Ranks | None:
        """Return the ranks of labels that are paths, or None if none are asked for."""
        if given.get("ranks") is None:
            return None
        if given.get("memory_limit") is not None:
            raise KeslerError(
                f"ranks={given['ranks']!r} and memory_limit={given['memory_limit']!r}: features "
                "are dropped by their worth to one learner, and each rank has its own: leave one "
                "out"
            )
        from kesler.learner.ranks import Ranks

        return Ranks(given["ranks"])

    # ---- what is chosen ---------------------------------------------------------------------

    def preprocessing(self, given: Settings, *, dense: bool) -> Preprocessing | None:
        """Return the preprocessing of rows."""
        kernel, parts = self.kernel(given), self.parts(given, dense=dense)
        return resolve_preprocessing(
            self.chosen(given, dense=dense)["preprocessing"],
            dense=dense,
            by_distance=goes_by_distance(kernel, parts, limit_of(given.get("budget"))),
        )

    def names_no_rule(self, given: Settings) -> bool:
        """Return whether no update rule is named."""
        update = given.get("update", AUTO)
        return isinstance(update, (list, tuple)) or _is_default(update)

    def is_default(self, given: Settings) -> bool:
        """Return whether the features of texts follow from the default settings."""
        return _is_default(given.get("update"))

    def chosen(self, given: Settings, *, dense: bool) -> dict[str, Any]:
        """Return the settings, with defaults resolved for the kind of the rows."""
        return resolve(as_meant(given, dense=dense), dense=dense, answer=self.answer.kind)

    def rule(self, given: Settings, update: Any) -> UpdateRule:
        """Return the rule of this name with the parameters that stand beside it."""
        from kesler.online.named_rule import rule_of

        return rule_of(update, given)

    def moves(self, given: Settings, chosen: Settings) -> dict[str, Any]:
        """Return the learner's arguments that define an update: rule, link, preconditioner etc."""
        costs, rule = chosen.get("costs"), self.rule(given, chosen["update"])
        is_single = self.answer.kind in ("class", "costs")
        if costs is None and is_single and (rule.heeds_margin or rule.constraints in VS_REST):
            costs = _tree(given)
        return {
            "rule": rule,
            "preconditioner": resolve_preconditioner(chosen["preconditioner"], rule.preconditioner),
            "on_new_class": chosen["on_new_class"],
            "link": resolve_link(chosen["link"]),
            "averaged": bool(chosen["averaged"]),
            "costs": Costs(costs) if not isinstance(costs, Costs | None) else costs,
        }

    def decision(self, made_of: Settings) -> Decision:
        """Return how classes are predicted: by distances where a tree has no effect on margins."""
        rule, costs = made_of["rule"], made_of.get("costs")
        if self.answer.kind != "class" or rule.heeds_margin or rule.gradient is None:
            return "score"
        tree = tree_of(made_of["parts"]) or (costs and costs.tree)
        return "score" if tree is None else "distance"

    def kernel(self, given: Settings) -> MercerKernel | None:
        """Return the kernel, or None if hypotheses are weight vectors."""
        kernel, budget = given.get("kernel"), limit_of(given.get("budget"))
        if kernel is not None:
            return resolve_kernel(kernel, given["sigma"])
        if "sigma" in given_of(given):
            raise KeslerError(
                f"sigma={given['sigma']!r} is the variance of a kernel, and there is none: omit "
                'sigma=, or set kernel="rbf"'
            )
        if budget is not None:
            raise KeslerError(
                f"budget={budget!r} is a number of support vectors, which exist only with a "
                'kernel: omit budget=, or set a kernel such as kernel="rbf"'
            )
        return None

    def parts(self, given: Settings, *, dense: bool) -> list[Part]:
        """Return the parts of the hypotheses."""
        chosen, tree = self.chosen(given, dense=dense), _tree(given)
        parts = resolve_hypotheses(
            chosen["hypotheses"], lambda: self.shared_part(given, dense=dense)
        )
        # Where each class is learnt against the rest, the classes below a node have contradictory
        # targets: they keep vectors of their own. Labels of one row may be below one node.
        if tree is None or (
            self.answer.kind != "sets" and self.rule(given, chosen["update"]).constraints in VS_REST
        ):
            return parts
        return over_tree(parts, tree)

    def shared_part(self, given: Settings, *, dense: bool) -> Part:
        """Return the part that "single" and "hybrid" use for all classes."""
        with_kernel = given.get("kernel") is not None
        return Shared(resolve_map(given["feature_map"], dense=dense, kernel=with_kernel))

    # ---- members ----------------------------------------------------------------------------

    def forms(self, given: Settings) -> Forms:
        """Return the forms of rows that a learner of these settings reads."""
        from kesler.data.schema.measurements import Forms, Inputs

        members = self.members(given, dense=False, inputs=Inputs.of_numbers(["any"])) or []
        own = {m._maker.takes_sparse_rows(m.get_params(deep=False)) for m in members}
        try:
            gaps = self.learner(given, dense=True).takes_missing
        except KeslerError:  # of settings for rows that list non-zeros
            gaps = False
        return Forms(self.takes_sparse_rows(given), gaps, len(own) > 1)

    def members(
        self, given: Settings, *, dense: bool, inputs: Inputs | None = None
    ) -> list[Any] | None:
        """Return the members if these are settings of an ensemble, else None.

        inputs : those of a table, which some members read; None without any.
        """
        beside = given_of(as_meant(given, dense=dense or inputs is not None))
        update = beside.pop("update", AUTO)
        if self.answer.kind != "class" or "update" not in given:
            return None
        if isinstance(update, (list, tuple)):
            require_only(given, "update")
            return resolve_members(update, dense=dense, inputs=inputs)
        if not isinstance(update, str) or update not in OF_DEFAULT:
            return None
        of_default = members_of_default if update == AUTO else of_ensemble
        members = of_default(dense=dense, inputs=inputs)
        beyond = setting_without_members(members, beside)
        if beyond is None:
            return _classifiers(with_given(members, beside)) or None
        if update == AUTO:
            return None
        raise KeslerError(
            f"{beyond}={beside[beyond]!r} does not fit each member of the default ensemble: omit "
            'it, or name a rule, such as update="softmax"'
        )

    def combination(self, given: Settings) -> dict[str, Any]:
        """Return how an ensemble combines its members, as arguments; {} for the defaults."""
        return {}

    # ---- what settings are ------------------------------------------------------------------

    def in_use(self, given: Settings, learner: AnyLearner) -> dict[str, Any]:
        """Return the settings that a learner was made of."""
        if isinstance(learner, EnsembleLearner):
            return {"update": members_in_use(learner)}
        found: dict[str, Any] = {
            "hypotheses": learner.parts,
            "update": learner.rule,
            "link": learner.link,
            "averaged": learner.averaged,
            "preconditioner": learner.preconditioner,
            "on_new_class": learner.on_new_class,
            "intercept": learner.constant,
            "order": learner.classes.declared,
            "costs": None if learner.costs is None else learner.costs.setting,
            "preprocessing": learner.preprocessing,
            "half_life": learner.half_life,
            "replay": learner.replay or 0,
            "candidates": learner.candidates or given.get("candidates", AUTO),
            "memory_limit": None if learner.memory is None else learner.memory.limit,
            "decision": learner.decision,
        }
        if isinstance(learner, KernelLearner):
            found |= {"kernel": learner.kernel, "budget": learner.budget}
        return found

    def takes_ratings(self, given: Settings) -> bool:
        """Return whether a part of the hypotheses uses ratings of sub-experts."""
        members = self.members(given, dense=False)
        if members is None:
            return takes_ratings(self.parts(given, dense=False))
        return any(each._maker.takes_ratings(each.get_params(deep=False)) for each in members)

    def takes_missing(self, given: Settings) -> bool:
        """Return whether values of rows that list every feature may be missing (NaN)."""
        try:
            members = self.members(given, dense=True)
            if members is not None:
                makers = [(each._maker, each.get_params(deep=False)) for each in members]
                return all(maker.takes_missing(own) for maker, own in makers)
            preprocessing = self.preprocessing(given, dense=True)
        except KeslerError:  # raised when learning, not when reading the tags
            return False
        return has_trees(given) or (preprocessing is not None and preprocessing.takes_missing)

    def takes_sparse_rows(self, given: Settings) -> bool:
        """Return whether rows may list only non-zeros."""
        try:
            members = self.members(given, dense=False)
            if members is not None:
                makers = [(each._maker, each.get_params(deep=False)) for each in members]
                return all(maker.takes_sparse_rows(own) for maker, own in makers)
            parts, kernel = self.parts(given, dense=False), self.kernel(given)
            preprocessing = self.preprocessing(given, dense=False)
            moves = self.moves(given, self.chosen(given, dense=False))
        except KeslerError:  # raised when learning, not when reading the tags
            return True
        if has_trees(given) or (kernel is not None and kernel.of == "vectors"):
            return False
        if moves.get("preconditioner", EUCLIDEAN).is_full:
            return False
        if preprocessing is not None and not preprocessing.zero_at_zero:
            return False
        return all(part.feature_map is None or part.feature_map.zero_at_zero for part in parts)


def resolve_members(learners: Any, *, dense: bool, inputs: Inputs | None = None) -> list[Any]:
    """Return the members of an ensemble: the given ones, or the default ones.

    "ensemble" and None stand for the default members. What members have learnt is left out.
    Members that list all features read the inputs of a table, if it has any.

    Raises
    ------
    KeslerError
        If the list is empty, or a member is not a single-label classifier or is an ensemble.
    """
    if learners is None or (isinstance(learners, str) and learners == "ensemble"):
        return _classifiers(of_ensemble(dense=dense, inputs=inputs))
    if not isinstance(learners, (list, tuple)) or not learners:
        raise KeslerError(
            f"an ensemble cannot be made of {learners!r}: give a list of learners, such as "
            "OnlineClassifier(), or None for the default ones"
        )
    found: list[Any] = []
    for learner in learners:
        maker = learner._maker if isinstance(learner, _type_of("OnlineClassifier")) else None
        if maker is None or maker.answer.kind != "class" or learner.explores:
            raise KeslerError(
                f"{learner!r} cannot be in an ensemble, whose learners predict one of several "
                "classes: give OnlineClassifier and LinearMax objects"
            )
        given = learner.get_params(deep=False)
        if maker.members(given, dense=False) is not None:
            raise KeslerError(f"{learner!r} is an ensemble itself: give its learners instead")
        # The default for measurements is an ensemble: it stands for its members.
        found += maker.members(given, dense=dense, inputs=inputs) or [unfitted(learner)]
    return found


def members_in_use(learner: EnsembleLearner) -> list[Any]:
    """Return an unfitted estimator for each member of an ensemble, with the settings in use."""
    found = []
    for name, member in zip(learner.estimators, learner.members, strict=True):
        made = _type_of(name)()
        given = made.get_params(deep=False)
        in_use = made._maker.in_use(given, member).items()
        found.append(made.set_params(**{name: value for name, value in in_use if name in given}))
    return found


def _classifiers(settings: list[dict[str, Any]]) -> list[Any]:
    return [_type_of("OnlineClassifier")(**each) for each in settings]


def _type_of(name: str) -> Any:
    """Return the estimator of this name, which is defined above this module."""
    from kesler.settings.codec import type_of

    return type_of(name)


def _is_default(update: Any) -> bool:
    return isinstance(update, str) and update in OF_DEFAULT


def _tree(given: Settings) -> Tree | None:
    """Return the tree of classes that is asked for, or None."""
    if given.get("tree") is None:
        return None
    from kesler.trees.tree import Tree

    return Tree(given["tree"])


# ---- which settings apply to members ------------------------------------------------------------


def require_only(given: Mapping[str, Any], name: str) -> None:
    """Raise if settings are given beside the members, which have their own."""
    for other in given_of(given):
        if other != name and SETTINGS[other].members != "estimator":
            raise KeslerError(
                f"{other}={given[other]!r} has no effect on an ensemble of given "
                f"learners, which have their own settings: omit it, or set it for the learners in "
                f"{name}=[...]"
            )


def with_given(members: Sequence[Settings], given: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the settings of members, each with the given ones that apply to it.

    Raises
    ------
    KeslerError
        If a given setting would have no effect.
    """
    for name, value in given.items() if members else ():
        if SETTINGS[name].members == "refused":
            raise KeslerError(
                f"{name}={value!r} has no effect on an ensemble, whose members are combined by "
                "what their last weights predict: omit it, or name an update rule, such as "
                'update="softmax"'
            )
    return [{**member, **_for_member(member, given)} for member in members]


def _for_member(member: Settings, given: Mapping[str, Any]) -> Settings:
    if has_trees(member):
        return {}
    has_kernel = member.get("kernel") is not None
    n_kinds = 1 if has_kernel else 2 if _has_matrix(member) else 3
    kinds = ("each", "weights", "gradients")[:n_kinds]
    inherits = given.get("on_new_class") == "inherit"
    unfit = {"on_new_class"} if has_kernel and inherits else set()
    return {
        name: each
        for name, each in given.items()
        if SETTINGS[name].members in kinds and name not in unfit
    }


def _lists_all(member: Settings) -> bool:
    """Return whether a member reads rows that list every feature."""
    return has_trees(member) or not member["preprocessing"].zero_at_zero


def _differ(members: Sequence[Settings]) -> bool:
    """Return whether some members read all features and others those that are not zero."""
    return len({*map(_lists_all, members)}) > 1


def _has_matrix(member: Settings) -> bool:
    chosen = member["preconditioner"]
    return isinstance(chosen, Preconditioner) and chosen.is_full


def setting_without_members(members: Sequence[Settings], given: Mapping[str, Any]) -> str | None:
    """Return the name of a given setting that a member cannot have, None if there is none.

    A matrix of second moments has one row for each feature of x: no view of a class, and no
    preprocessing that makes many features of one. Members that read rows in different forms have
    parts of their own.
    """
    unfit = OF_ROWS if _differ(members) else ()
    alone = (n for n in given if n in unfit or (SETTINGS[n].members == "alone" and n != "update"))
    of_matrix = any(map(_has_matrix, members))
    return next(alone, next((name for name in _wide(given) if of_matrix), None))


def _wide(given: Mapping[str, Any]) -> list[str]:
    found = []
    if "hypotheses" in given:
        parts = resolve_hypotheses(given["hypotheses"], Ordered)
        found += ["hypotheses"] * any(
            part.feature_map is not None or isinstance(part, Ordered) for part in parts
        )
    if "preprocessing" in given:
        chosen = resolve_preprocessing(given["preprocessing"], dense=True)
        found += ["preprocessing"] * isinstance(chosen, Expansion)
    return found
