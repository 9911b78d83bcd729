"""Brackets: who plays whom in single and in m-elimination tournaments of classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Origin = Literal["class", "winner", "loser"]
GameKey = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Seat:
    """A place in a game, and who takes it.

    Parameters
    ----------
    origin : "class", "winner" or "loser"
        The entrant of this number, or who wins or loses the game of this number.
    number : int
    """

    origin: Origin
    number: int


@dataclass(frozen=True, slots=True)
class Game:
    """Two seats, of which one goes on as the winner.

    Parameters
    ----------
    left, right : Seat
    key : (tournament, round, place)
        By which a game is the same one after further classes have joined.
    """

    left: Seat
    right: Seat
    key: GameKey


@dataclass(frozen=True)
class Bracket:
    """The games of a tournament, each after those that its players come from.

    Parameters
    ----------
    games : tuple of Game
    rounds : tuple of tuples of int
        The numbers of the games of each round; none of them waits for another.
    root : Seat
        Who wins it all.

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
        """Return the games among so many classes, each of which is out after so many defeats.

        Those who have lost i games play in tournament i, neighbours against each other; who is left
        over in a round goes on without a game. The winners of all tournaments then play for the
        whole in a single-elimination tournament.
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
        """The most games on a way from the root down to a class."""
        depths: list[int] = []
        for game in self.games:
            below = [depths[s.number] for s in (game.left, game.right) if s.origin != "class"]
            depths.append(1 + max(below, default=0))
        return 0 if self.root.origin == "class" else depths[self.root.number]


def _play_out(
    waiting: list[list[Seat]], games: list[Game], rounds: list[tuple[int, ...]], first: int
) -> None:
    """Add rounds until one seat of each tournament is left, `first` being the first one's number.

    Who loses in a tournament goes on in the next one.
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
                games.append(Game(left, right, (first + i, len(rounds) - n_before, place)))
            waiting[i] += seats[len(seats) // 2 * 2 :]
        rounds.append(tuple(range(n_games, len(games))))
