"""Flows: where gradient descent in infinitely many small steps would lead (Karampatziakis 2011).

Such a step never overshoots, and a row of weight 2 moves as far as the row twice. Plain functions
of numbers, compiled into the rules that call them.
"""
# mypy: disallow_untyped_defs=False, disallow_untyped_calls=False

from __future__ import annotations

import math


def squared_flow(residual, norm, time):
    """Return u with d(residual)/dt = -2 norm residual: residual (1 - exp(-2 norm t)) / norm."""
    decay = 2.0 * norm * time
    if decay < 1e-8:
        return 2.0 * time * residual
    return -math.expm1(-decay) * residual / norm


def hinge_flow(loss, norm, time):
    """Return u of a step along a constraint until its loss is 0, or time is over."""
    if norm * time > loss:
        return loss / norm
    return time


def sigmoid(z):
    """Return 1 / (1 + exp(-z))."""
    if z > 0:
        return 1.0 / (1.0 + math.exp(-z))
    rising = math.exp(z)
    return rising / (1.0 + rising)


def logistic_flow(margin, norm, time):
    """Return u with d(margin)/dt = norm sigmoid(-margin): margin + exp(margin) grows by norm t.

    Newton's method comes from the right, where the function bends the same way all along.
    """
    if margin > 30.0 or norm * time < 1e-8:
        return time * sigmoid(-margin)
    end = margin + math.exp(margin) + norm * time
    z = math.log(end) if end > 1.0 else min(end, 0.0)
    for _ in range(100):
        rise = math.exp(z)
        change = (z + rise - end) / (1.0 + rise)
        z -= change
        if abs(change) <= 1e-12 * (1.0 + abs(z)):
            break
    return max(0.0, (z - margin) / norm)
