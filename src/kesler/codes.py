"""The numbers that stand for names in records: by name in Python, as integers in compiled code.

Each enumeration is declared once. Its members have the names of the parameters that users give, in
capitals; compiled modules take their values as integers, since Numba compiles a function again for
each type of its arguments.
"""

from __future__ import annotations

from enum import IntEnum


class NewClass(IntEnum):
    """What happens at the first row of a class, :data:`kesler.learner.classes.OnNewClass`."""

    REGISTER = 0
    LEARN = 1
    INHERIT = 2
    UNSEEN = 3


class Decision(IntEnum):
    """How a prediction follows from scores, :data:`kesler.learner.targets.Decision`."""

    SCORE = 0
    MEDIAN = 1
    F1 = 2
    DISTANCE = 3


class PartKind(IntEnum):
    """How the classes of a part own hypotheses, by the names of its class."""

    PERCLASS = 0
    SHARED = 1
    GROUPED = 2
    ORDERED = 3


class Statistic(IntEnum):
    """The statistics of each class; the last holds what rounding the means to float32 leaves."""

    FIRST = 0
    MEAN = 1
    FREQUENCY = 2
    CONTRAST = 3
    CENTRE = 4
    SHARPNESS = 5
    HEIGHT = 6
    ROUNDED_OFF = 7


class Selection(IntEnum):
    """The constraints that a rule receives, :data:`kesler.parts.constraints.Selection`."""

    PREDICTED = 0
    WORST = 1
    MISTAKEN = 2
    VIOLATED = 3
    ALL = 4
    GROWING = 5
    RIVAL = 6
    ONE_VS_REST = 7
    VIOLATED_VS_REST = 8


class Requirement(IntEnum):
    """What a rule reads of its constraints, :data:`kesler.parts.constraints.Requirement`."""

    LOSSES = 0
    NORMS = 1
    GRAM = 2


class Follows(IntEnum):
    """What the step sizes of a preconditioner are computed from."""

    NOTHING = 0
    GRADIENTS = 1
    EVIDENCE = 2
    FUNCTION = 3
    BETS = 4
    SECOND_MOMENTS = 5


class StepUnit(IntEnum):
    """What the step sizes of a preconditioner are measured in."""

    NONE = 0
    ROWS = 1
    FEATURES = 2


class Combination(IntEnum):
    """How an ensemble combines its members, :data:`kesler.learner.ensemble.Combination`."""

    MAJORITY = 0
    BEST = 1
    MIXTURE = 2
    FIXED_SHARE = 3


class BudgetPolicy(IntEnum):
    """Which support vector leaves, :data:`kesler.budgets.POLICIES`."""

    LEAST_RECENT = 0
    SMALLEST = 1
    FORGETRON = 2
    PROJECTRON = 3
    PROJECTRON_PLUS_PLUS = 4


class Method(IntEnum):
    """How rows are preprocessed one by one; expansions are made of blocks."""

    NONE = 0
    COUNTS = 1
    Z_SCORES = 2
    RANGES = 3


class Feedback(IntEnum):
    """How a rule learns from feedback alone; all others do so by constraints."""

    CONSTRAINTS = 0
    BANDITRON = 1
    SECOND_ORDER = 2


class Showing(IntEnum):
    """How the class to show is drawn, the `kind` of an exploration."""

    GREEDY = 0
    UNIFORM = 1
    INVERSE_GAP = 2


class RowNorm(IntEnum):
    """The norm of the weights of one feature in a mixed norm, by what it measures."""

    LARGEST = 0
    LENGTH = 1
    ABSOLUTE = 2


def code_of(codes: type[IntEnum], name: str) -> int:
    """Return the number of a name.

    Examples
    --------
    >>> code_of(Combination, "fixed-share"), code_of(BudgetPolicy, "projectron++")
    (3, 4)
    """
    return int(codes[name.replace("+", "_plus").replace("-", "_").replace(" ", "_").upper()])
