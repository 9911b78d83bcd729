"""The functions that a trial calls for each kind of learner.

Learners differ in how they store their weights: "dense", in a table; "sparse", in rows of non-zero
weights; "kernel", as support vectors. Helpers import the operations below; the function that an
operation calls is chosen when a kernel is compiled. Functions are given by name, not imported,
since most of them call operations themselves; each is imported when the first learner of its kind
runs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any

from kesler.compiled.jit.decorators import always_inlined, chosen_by, class_of, field_of

Function = Callable[..., Any]

PACKAGE = __name__.rpartition(".trial.")[0]  # of this copy of the package
KINDS = {"TableWeights": "dense", "SparseWeights": "sparse", "SupportVectors": "kernel"}


def kind_of(learner: Any) -> str:
    """Return how a learner stores its weights, given the learner or its type in compiled code.

    The weights of an ensemble are an array, for which the functions of "dense" work.
    """
    return KINDS.get(class_of(field_of(learner, "weights")).__name__, "dense")


def by_weights(*, dense: str | Function, **others: str | Function) -> Any:
    """Return an operation whose first argument is a learner, given its function for each kind.

    The name of a function is "package.module.function", below `kesler.compiled`. Kinds that are not
    among `others` have the function of "dense".
    """
    names = dict.fromkeys(KINDS.values(), dense) | others

    @cache
    def function_for(kind: str) -> Function:
        name = names[kind]
        return function_named(name) if isinstance(name, str) else name

    return chosen_by(lambda learner: function_for(kind_of(learner)))


def function_named(name: str) -> Function:
    """Return the function "package.module.function" of compiled code."""
    module, _, function = name.rpartition(".")
    return getattr(import_module(f"{PACKAGE}.{module}"), function)


@always_inlined
def nothing(learner: Any, *arguments: Any) -> None:
    """Do nothing: learners of this kind do not need the operation, or are refused if they do."""


@always_inlined
def no(learner: Any, *arguments: Any) -> bool:
    """Return False: learners of this kind have no individual step sizes, and no units."""
    return False


# ---- before a trial ------------------------------------------------------------------------------

has_capacity = by_weights(
    dense="trial.trial.dense_has_capacity", sparse="weights.sparse_trial.sparse_has_capacity"
)
has_fault = by_weights(
    dense="trial.trial.dense_has_fault", kernel="kernels.kernel_trial.kernel_has_fault"
)
fetch_ahead = by_weights(
    dense="weights.scores.dense_fetch_ahead",
    sparse="weights.sparse_trial.sparse_fetch_ahead",
    kernel=nothing,
)
preprocess_ranges = by_weights(
    dense="trial.preprocessing.dense_condition_ranges",
    kernel="kernels.scores.kernel_condition_ranges",
)
prepare = by_weights(dense="weights.scores.dense_prepare", kernel="kernels.scores.set_sigma")
keep_up = by_weights(dense="weights.scores.dense_keep_up", kernel="kernels.scores.kernel_keep_up")
find_views = by_weights(dense="views.given.dense_find_views", sparse=nothing, kernel=nothing)

# ---- scores and the predicted class --------------------------------------------------------------

is_averaged = by_weights(dense="weights.means.dense_is_averaged", sparse=no)
score_by_means = by_weights(
    dense="weights.means.dense_score_by_means",
    sparse=nothing,
    kernel="kernels.means.kernel_score_by_means",
)
score = by_weights(
    dense="weights.scores.dense_score",
    sparse="weights.sparse_trial.sparse_score",
    kernel="kernels.scores.kernel_score",
)
add_contributions = by_weights(
    dense="weights.contributions.dense_add_contributions",
    sparse="weights.contributions.sparse_add_contributions",
    kernel="kernels.contributions.kernel_add_contributions",
)
finite = by_weights(
    dense="weights.scores.dense_finite", sparse="weights.sparse_trial.sparse_finite"
)
best = by_weights(dense="weights.scores.dense_best", sparse="weights.sparse_trial.sparse_best")
best_but = by_weights(
    dense="weights.scores.dense_best_but", sparse="weights.sparse_trial.sparse_best_but"
)
soften = by_weights(
    dense="trial.calibration.dense_soften", sparse="weights.sparse_trial.sparse_soften"
)
moments = by_weights(
    dense="trial.calibration.dense_moments", sparse="weights.sparse_trial.sparse_moments"
)

# ---- the pairs of classes that are compared ------------------------------------------------------

set_levels = by_weights(
    dense="trial.choices.dense_set_levels", sparse="weights.sparse_trial.sparse_set_levels"
)
judge = by_weights(dense="trial.trial.dense_judge", sparse="weights.sparse_trial.sparse_judge")
choose_loops = by_weights(dense="weights.wide.dense_choose_loops", sparse=nothing, kernel=nothing)

# ---- norms, and step sizes of features -----------------------------------------------------------

has_preconditioner = by_weights(dense="weights.norms.dense_has_metric", sparse=no, kernel=no)
rescale = by_weights(dense="weights.norms.dense_rescale", sparse=no, kernel=no)
gather_gradient = by_weights(
    dense="weights.norms.dense_gather_gradient", sparse=nothing, kernel=nothing
)
measure_preconditioned = by_weights(
    dense="weights.norms.dense_measure_in_metric", sparse=nothing, kernel=nothing
)
pair_norm = by_weights(
    dense="weights.norms.dense_pair_norm",
    sparse="weights.sparse_trial.sparse_pair_norm",
    kernel="kernels.kernel_trial.kernel_pair_norm",
)
gram_column = by_weights(
    dense="weights.norms.dense_gram_column",
    sparse=nothing,
    kernel="kernels.kernel_trial.kernel_gram_column",
)
gram_diagonal = by_weights(
    dense="weights.norms.dense_gram_diagonal",
    sparse=nothing,
    kernel="kernels.kernel_trial.kernel_gram_diagonal",
)
preconditioned_column = by_weights(
    dense="weights.norms.dense_preconditioned_column", sparse=nothing, kernel=nothing
)
keep_pace = by_weights(dense="weights.norms.dense_keep_pace", sparse=nothing, kernel=nothing)
leave_evidence = by_weights(
    dense="weights.norms.dense_leave_evidence", sparse=nothing, kernel=nothing
)

# ---- updates -------------------------------------------------------------------------------------

run_algorithm = by_weights(
    dense="trial.rules.dense_run_algorithm",
    sparse=nothing,
    kernel="kernels.algorithms.kernel_run_algorithm",
)
is_movable = by_weights(
    dense="weights.moves.dense_is_movable",
    sparse="weights.sparse_trial.sparse_is_movable",
    kernel="kernels.kernel_trial.kernel_is_movable",
)
move = by_weights(
    dense="weights.moves.dense_move",
    sparse="weights.sparse_trial.sparse_move",
    kernel="kernels.kernel_trial.kernel_move",
)
project = by_weights(dense=nothing, kernel="kernels.projection.project")
remove_beyond = by_weights(dense=nothing, kernel="kernels.removals.remove_beyond")
shrink_weights = by_weights(
    dense="trial.forgetting.dense_shrink_weights",
    sparse="weights.sparse_trial.sparse_shrink_weights",
    kernel="kernels.kernel_trial.kernel_shrink_weights",
)
settle = by_weights(dense="weights.links.dense_settle", sparse=nothing, kernel=nothing)

# ---- new features and classes --------------------------------------------------------------------

meet_features = by_weights(
    dense="weights.links.dense_meet_features", sparse=nothing, kernel=nothing
)
list_features = by_weights(
    dense="views.statistics.dense_list_features", sparse=nothing, kernel=nothing
)
meet_hypotheses = by_weights(
    dense="weights.links.dense_meet_hypotheses", sparse=nothing, kernel=nothing
)
inherit = by_weights(dense="views.statistics.dense_inherit", sparse=nothing, kernel=nothing)
insert_rank = by_weights(
    dense="weights.ordered.dense_insert_rank",
    sparse=nothing,
    kernel="kernels.ordered.kernel_insert_rank",
)
