"""FilterTree and ErrorCorrectingTournament: elimination tournaments between classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.utils.parallel import delayed

from kesler.decompositions.binary import (
    BinaryProblem,
    Decomposition,
    Examples,
    Mask,
    copy_of,
    fit_binary,
    margins,
    run_all,
    teach_binary,
)
from kesler.errors import integer_of, keep_settings

Origin = Literal["class", "winner", "loser"]


@dataclass(frozen=True, slots=True)
class Seat:
    """A player's position in a game, and where the player comes from.

    Parameters
    ----------
    origin : "class", "winner" or "loser"
        Whether the player is the class of this number, or the winner or loser of the game of this
        number.
    number : int
    """

    origin: Origin
    number: int


@dataclass(frozen=True, slots=True)
class Game:
    """A game between two players.

    Parameters
    ----------
    left, right : Seat
    key : str
        "tournament/round/place", which identifies the game when further classes are added.
    """

    left: Seat
    right: Seat
    key: str


@dataclass(frozen=True)
class Bracket:
    """The games of a tournament, in an order in which each follows those of its players.

    Parameters
    ----------
    games : tuple of Game
    rounds : tuple of tuples of int
        The numbers of the games of each round, which are independent of each other.
    root : Seat
        The winner of the tournament.

    Examples
    --------
    >>> bracket = Bracket.of(5, 1)
    >>> bracket.rounds, bracket.root, bracket.depth
    (((0, 1), (2,), (3,)), Seat(origin='winner', number=3), 3)
    >>> [len(Bracket.of(5, m).games) for m in (1, 2, 3)]
    [4, 8, 11]
    """

    games: tuple[Game, ...]
    rounds: tuple[tuple[int, ...], ...]
    root: Seat

    @staticmethod
    def of(n_classes: int, n_eliminations: int) -> Bracket:
        """Return the bracket in which a class is eliminated after `n_eliminations` defeats.

        Classes that have lost i games play in tournament i, each against its neighbour; a class
        without an opponent advances to the next round. The winners of all tournaments then play a
        single-elimination final.
        """
        games: list[Game] = []
        rounds: list[tuple[int, ...]] = []
        waiting = [[Seat("class", c) for c in range(n_classes)]]
        waiting += [[] for _ in range(n_eliminations - 1)]
        _play_out(waiting, games, rounds, 0)
        final = [[seat for seats in waiting for seat in seats]]
        _play_out(final, games, rounds, n_eliminations)
        return Bracket(tuple(games), tuple(rounds), final[0][0])

    @cached_property
    def depth(self) -> int:
        """Maximum number of games on a path from the root to a class."""
        depths: list[int] = []
        for game in self.games:
            below = [depths[s.number] for s in (game.left, game.right) if s.origin != "class"]
            depths.append(1 + max(below, default=0))
        return 0 if self.root.origin == "class" else depths[self.root.number]


def _play_out(
    waiting: list[list[Seat]], games: list[Game], rounds: list[tuple[int, ...]], first: int
) -> None:
    """Add rounds until one seat of each tournament is left; `first` is the first one's number.

    The loser of a game continues in the next tournament.
    """
    n_before = len(rounds)
    while any(len(seats) > 1 for seats in waiting):
        n_games = len(games)
        seats_now, waiting[:] = waiting[:], [[] for _ in waiting]
        for i, seats in enumerate(seats_now):
            for place in range(len(seats) // 2):
                left, right = seats[2 * place : 2 * place + 2]
                waiting[i].append(Seat("winner", len(games)))
                if i + 1 < len(waiting):
                    waiting[i + 1].append(Seat("loser", len(games)))
                games.append(Game(left, right, f"{first + i}/{len(rounds) - n_before}/{place}"))
            waiting[i] += seats[len(seats) // 2 * 2 :]
        rounds.append(tuple(range(n_games, len(games))))


Numbers = npt.NDArray[np.intp]


class Tournament(Decomposition):
    """Base class of tournaments between classes, in which a binary learner decides each game.

    The learner of a game, its referee, is trained on the rows whose class takes part in the game
    according to the referees of earlier games. A prediction goes in the other direction, from the
    tournament's winner to a class, and evaluates only the referees on this path.
    """

    def _why_unscored(self) -> str:
        return "a prediction evaluates few of the learners"

    def _n_eliminations(self) -> int:
        """Return the number of defeats after which a class is eliminated."""
        return 1

    def _fit(self, examples: Examples) -> None:
        self._referees: dict[str, Any] = {}
        self._hold(examples, learn=_fitted)

    def _teach(self, examples: Examples, n_before: int) -> None:
        self._referees = dict(self._referees) if n_before else {}
        self._hold(examples, learn=_taught)

    def _hold(self, examples: Examples, learn: Any) -> None:
        """Play all rounds, and advance each row's class as the referees decide."""
        self._bracket = Bracket.of(len(self._table), self._n_eliminations())
        at = examples.codes.astype(np.intp) + 2 * len(self._bracket.games)
        for games in self._bracket.rounds:
            present = [self._seated(game, at) for game in games]
            jobs = (
                delayed(learn)(
                    self._referees.get(self._bracket.games[game].key),
                    self._learner(),
                    examples[left | right].problem(left[left | right]),
                )
                for game, (left, right) in zip(games, present, strict=True)
            )
            outcomes = run_all(jobs, len(games), self.n_jobs)
            for game, (left, right), (referee, left_wins) in zip(
                games, present, outcomes, strict=True
            ):
                self._referees[self._bracket.games[game].key] = referee
                rows = np.flatnonzero(left | right)
                wins = left_wins == left[rows]
                at[rows] = np.where(wins, 2 * game, 2 * game + 1)

    def _seated(self, game: int, at: Numbers) -> tuple[Mask, Mask]:
        """Return the rows whose class is the left player of a game, and the right player."""
        left, right = self._bracket.games[game].left, self._bracket.games[game].right
        return at == self._place(left), at == self._place(right)

    def _place(self, seat: Seat) -> int:
        """Return the number of a seat: even for winners, odd for losers, larger for classes."""
        if seat.origin == "class":
            return 2 * len(self._bracket.games) + seat.number
        return 2 * seat.number + (seat.origin == "loser")

    def _winners(self, X: Any) -> Numbers:
        n_games = len(self._bracket.games)
        at = np.full(X.shape[0], self._place(self._bracket.root), dtype=np.intp)
        for game in reversed(range(n_games)):
            rows = np.flatnonzero(at // 2 == game)
            if not len(rows):
                continue
            seats = self._bracket.games[game]
            left_wins = decided(self._referees.get(seats.key), X[rows])
            goes_left = left_wins == (at[rows] % 2 == 0)
            at[rows] = np.where(goes_left, self._place(seats.left), self._place(seats.right))
        return at - 2 * n_games

    @property
    def estimators_(self) -> list[Any]:
        """The binary learners: one for each game that had rows."""
        self._known()
        return list(self._referees.values())

    @property
    def n_evaluations_(self) -> int:
        """Maximum number of games evaluated per prediction."""
        self._known()
        return self._bracket.depth


class FilterTree(Tournament):
    r"""A balanced binary tree of classes with log2 K binary evaluations per prediction.

    The classes play a single-elimination tournament. At a node v with subtrees L and R, whose
    winners for x are :math:`a_L(x)` and :math:`a_R(x)` according to the nodes below, the binary
    learner is trained on the rows for which one of the two is right,

    .. math:: \{(x, [y = a_L(x)]) : y \in \{a_L(x), a_R(x)\}\},

    with the importance :math:`|c(y, a_L) - c(y, a_R)|`, which is 1 if all mistakes cost the same.
    Other rows are filtered out, since the node cannot predict them correctly.

    Parameters
    ----------
    estimator : binary classifier or None, default None
        Any scikit-learn-compatible classifier; None is logistic regression.
    n_jobs : int or None, default None
        Number of games of a round that are trained in parallel, as in joblib.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted. The leaves of the tree have this order, followed by the classes that
        `partial_fit` adds, in the order in which they are seen.
    n_evaluations_ : int
        ceil(log2 K), the depth of the tree.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If all rows are of one class, the learner is not a binary classifier, or weights are given
        that the learner does not accept.

    Notes
    -----
    The regret in mistakes is at most log2 K times the mean regret of the binary learners. Beyond
    that it does not grow with K, unlike the regret of one-vs-rest and of trees trained from the
    root. A row trains at most log2 K learners. A class that appears in `partial_fit` becomes the
    next leaf, and the nodes above it are trained from then on; a game without any row is won by
    the left player.

    Importances for other costs are not implemented: `sample_weight` is passed on unchanged.

    References
    ----------
    Beygelzimer, Langford and Ravikumar (2009), "Error-correcting tournaments".

    Examples
    --------
    >>> from kesler import FilterTree
    >>> X, y = [[i % 2, i // 2 % 2, i // 4 % 2] for i in range(8)] * 3, list("abcdefgh") * 3
    >>> tree = FilterTree().fit(X, y)
    >>> "".join(tree.predict(X[:8])), tree.n_evaluations_
    ('abcdefgh', 3)
    """

    def __init__(self, estimator: Any = None, n_jobs: int | None = None) -> None:
        keep_settings(self, locals())


class ErrorCorrectingTournament(Tournament):
    r"""An m-elimination tournament of the classes, with a final between the m winners.

    Classes that have lost i games play in tournament i; a class is eliminated after m defeats. So
    the right class can lose m - 1 games by wrong decisions and still reach the final between the
    winners of the m tournaments. As in :class:`FilterTree`, the learner of a game is trained on the
    rows whose class plays in it according to earlier games, and predicts whether that class is the
    left player.

    Parameters
    ----------
    estimator : binary classifier or None, default None
        Any scikit-learn-compatible classifier; None is logistic regression.
    n_eliminations : int, 1 or more, default 2
        Number of defeats m after which a class is eliminated. Larger values correct more mistakes
        of the binary learners, but need about m K games and m more evaluations per prediction. 1
        is the filter tree.
    n_jobs : int or None, default None
        Number of games of a round that are trained in parallel, as in joblib.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
        The labels, sorted.
    n_evaluations_ : int
        Maximum number of games on a path from the final to a class: about log2 K + m, plus log2 m.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Raises
    ------
    KeslerError
        If `n_eliminations` is not a whole number above 0, and as :class:`FilterTree`.

    Notes
    -----
    With m of the order of log K, the regret in mistakes is at most a constant times the mean regret
    of the binary learners, independently of K. In the paper, games of the final have larger weights
    the closer they are to the tournaments' winners. These weights are left out: all rows of a game
    would have the same weight, and each game has its own learner here, so they would change only
    the strength of regularisation. When a class appears in `partial_fit`, games keep their places
    in the tournaments and their learners; in tournaments after the first, their players may change.

    References
    ----------
    Beygelzimer, Langford and Ravikumar (2009), "Error-correcting tournaments".

    Examples
    --------
    >>> from kesler import ErrorCorrectingTournament
    >>> X, y = [[i % 2, i // 2 % 2, i // 4 % 2] for i in range(8)] * 3, list("abcdefgh") * 3
    >>> cup = ErrorCorrectingTournament(n_eliminations=3).fit(X, y)
    >>> "".join(cup.predict(X[:8])), cup.n_evaluations_
    ('abcdefgh', 8)
    """

    def __init__(
        self, estimator: Any = None, n_eliminations: int = 2, n_jobs: int | None = None
    ) -> None:
        keep_settings(self, locals())

    def _n_eliminations(self) -> int:
        why = ": the number of defeats after which a class is eliminated"
        return integer_of("n_eliminations", self.n_eliminations, 1, why=why)


def decided(referee: Any, X: Any) -> Mask:
    """Return the rows in which the left player wins; without a referee, all rows."""
    return np.ones(X.shape[0], dtype=np.bool_) if referee is None else margins(referee, X) > 0


def _fitted(_: Any, estimator: Any, problem: BinaryProblem) -> tuple[Any, Mask]:
    """Return a referee fitted to these rows (None without rows), and the rows that left wins."""
    referee = fit_binary(estimator, problem) if len(problem.positive) else None
    return referee, decided(referee, problem.X)


def _taught(referee: Any, estimator: Any, problem: BinaryProblem) -> tuple[Any, Mask]:
    """Return the referee updated with these rows, and the rows that left then wins."""
    if len(problem.positive):
        new = referee is None or isinstance(referee, DummyClassifier)
        learner = clone(estimator) if new else copy_of(referee)
        referee = teach_binary(learner, problem)
    return referee, decided(referee, problem.X)
