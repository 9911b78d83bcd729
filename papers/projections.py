"""SimProj, ConProj and SimPerc on the class-dependent counts of Amit et al. (2006), in NumPy.

Written from Sections 3, 4 and 6 of the paper, in float64 and without Kesler. What the paper leaves
open is an argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Choices:
    """What the paper does not state; the defaults are those of Kesler.

    Parameters
    ----------
    C : float
        The bound of each step.
    rare : "folder", "below" or "all"
        Whether a word is rare in at most 2 % of the folder's messages, in less than 2 % of them, or
        in less than 2 % of all messages.
    unseen : "unknown", "zero" or "rare"
        Whether a folder is unknown before its first message, or known from the first trial with
        zeros as its features, or with every word rare.
    first : "free" or "mistake"
        Whether the first message of a folder counts as a mistake.
    tie : "first" or "last"
        The folder, by first appearance, that is predicted if scores are equal.
    """

    C: float = 0.01
    rare: Literal["folder", "below", "all"] = "folder"
    unseen: Literal["unknown", "zero", "rare"] = "unknown"
    first: Literal["free", "mistake"] = "free"
    tie: Literal["first", "last"] = "first"


class Past:
    """In how many messages each word occurred, of each folder and of all."""

    def __init__(self, n_words: int, n_folders: int) -> None:
        self.occurred = np.zeros((n_words, n_folders))
        self.messages = np.zeros(n_folders)

    def learn(self, words: Any, folder: int) -> None:
        """Count a message."""
        self.occurred[words, folder] += 1
        self.messages[folder] += 1

    def features(self, words: Any, counts: Floats, choices: Choices) -> Floats:
        """Return the features of the words for each folder: twice the count, minus it, or 0."""
        occurred = self.occurred[words]
        shares = occurred / np.maximum(self.messages, 1)
        compared = shares
        if choices.rare == "all":
            compared = occurred.sum(axis=1, keepdims=True) / max(self.messages.sum(), 1)
        is_rare = compared <= 0.02 if choices.rare == "folder" else compared < 0.02
        factors = np.where(shares >= 0.2, 2.0, np.where(is_rare, -1.0, 0.0))
        if choices.unseen != "rare":
            factors[:, self.messages == 0] = 0
        return factors * counts[:, None]


def sim_proj(losses: Floats, norms: Floats, C: float) -> Floats:
    """Return mu times alpha of the constraints with a loss, each of weight 1 / their number."""
    return np.where(losses > 0, clipped(losses, norms, C) / max((losses > 0).sum(), 1), 0)


def con_proj(losses: Floats, norms: Floats, C: float) -> Floats:
    """Return mu times alpha of the constraints with a margin of 0 or less."""
    return np.where(losses >= 1, clipped(losses, norms, C) / max((losses >= 1).sum(), 1), 0)


def sim_perc(losses: Floats, norms: Floats, C: float) -> Floats:
    """Return C, shared by the constraints with a margin of 0 or less."""
    return np.where(losses >= 1, C / max((losses >= 1).sum(), 1), 0)


def clipped(losses: Floats, norms: Floats, C: float) -> Floats:
    """Return the solution of each reduced problem: the loss by the squared norm, at most C."""
    return np.minimum(C, losses / np.where(norms > 0, norms, np.inf))


RULES = {"SimProj": sim_proj, "ConProj": con_proj, "SimPerc": sim_perc}


def mistaken_trials(counts: Any, folders: list[str], rule: str, choices: Choices) -> Flags:
    """Return whether each trial is a mistake, for a csr matrix of counts in the order of time."""
    names, labels = list(dict.fromkeys(folders)), np.empty(len(folders), dtype=int)
    labels[:] = [names.index(folder) for folder in folders]
    past, weights = Past(counts.shape[1], len(names)), np.zeros(counts.shape[1])
    mistakes = np.zeros(len(folders), dtype=bool)
    for t, label in enumerate(labels):
        row = slice(*counts.indptr[t : t + 2])
        words, is_new = counts.indices[row], past.messages[label] == 0
        known = int(labels[:t].max(initial=-1)) + 1 if choices.unseen == "unknown" else len(names)
        if label < known:
            phi = past.features(words, counts.data[row].astype(float), choices)[:, :known]
            mistakes[t] = predicted(weights[words] @ phi, choices.tie) != label
            weights[words] += step(weights[words], phi, label, rule, choices.C)
        if is_new:
            mistakes[t] = choices.first == "mistake"
        past.learn(words, label)
    return mistakes


def predicted(scores: Floats, tie: str) -> int:
    """Return the folder of the largest score."""
    return int(scores.argmax() if tie == "first" else len(scores) - 1 - scores[::-1].argmax())


def step(weights: Floats, phi: Floats, label: int, rule: str, C: float) -> Floats:
    """Return what the weights of a message's words change by."""
    instances = np.delete(phi[:, [label]] - phi, label, axis=1)
    losses = np.maximum(0, 1 - weights @ instances)
    return np.asarray(instances @ RULES[rule](losses, (instances**2).sum(axis=0), C))
