"""Tickets: texts, numbers, categories, dates, tags, vectors and identifiers, drawn from a seed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np

N_ROWS = 1200
TEAMS = ("billing", "technics", "access", "sales")
LATE = "legal"
"""A class of which the first row is number 900."""

WORDS = {
    "billing": "invoice refund charged card payment receipt twice amount bank fee".split(),
    "technics": "crash error screen freeze slow update broken log button restart".split(),
    "access": "password login locked reset account code verify expired user denied".split(),
    "sales": "price offer upgrade plan quote trial discount seats contract demo".split(),
    "legal": "contract privacy court letter data deletion consent lawyer claim terms".split(),
}
COMMON = "the a my please is and it for with not can you again since today we our to".split()
HOURS = {"billing": 30.0, "technics": 4.0, "access": 1.0, "sales": 60.0, "legal": 200.0}
PLANS = {"billing": "pro", "technics": "free", "access": "free", "sales": "trial", "legal": "pro"}


def tickets(n_rows: int = N_ROWS, seed: int = 0) -> tuple[list[dict[str, Any]], list[str]]:
    """Return rows with cells of every kind, and the team of each."""
    rng = np.random.default_rng(seed)
    teams = [TEAMS[i] for i in rng.integers(len(TEAMS), size=n_rows)]
    for i in range(900, n_rows, 5):
        teams[i] = LATE
    return [_ticket(i, team, rng) for i, team in enumerate(teams)], teams


def _ticket(number: int, team: str, rng: np.random.Generator) -> dict[str, Any]:
    usual = team if rng.random() > 0.1 else str(rng.choice(TEAMS))
    opened = datetime(2026, 1, 5, 8) + timedelta(hours=3 * number + float(rng.random()))
    return {
        "ticket": f"T-{number:06}",
        "subject": _text(usual, 3, rng),
        "body": _text(team, 12, rng),
        "hours": round(float(HOURS[usual] * rng.lognormal(sigma=0.7)), 2),
        "plan": PLANS[usual] if rng.random() > 0.3 else "pro",
        "opened": opened,
        "tags": [str(tag) for tag in rng.choice([usual[:3], "new", "old", "vip"], size=2)],
        "place": [round(float(v), 3) for v in _centre(team) + 0.8 * rng.normal(size=6)],
    }


def _text(team: str, n_words: int, rng: np.random.Generator) -> str:
    words = [WORDS[team] if rng.random() < 0.25 else COMMON for _ in range(n_words)]
    return " ".join(str(rng.choice(each)) for each in words).capitalize()


def _centre(team: str) -> np.ndarray:
    return np.eye(6)[sorted(WORDS).index(team)]


def select(rows: list[dict[str, Any]], *names: str) -> list[dict[str, Any]]:
    """Return some cells of every row."""
    return [{name: row[name] for name in names} for row in rows]
