"""Streams of which at least 15 % of the rows are the first of their class, as users have them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import many_classes_streams
import subjects
import taxa
from sets import Stream, by_appearance

MOST_ROWS = 10_000
"""The rows of the streams that have more."""

Given = tuple[Stream, dict[str, Any]]
"""A stream, and the parameters that say what its rows are."""


def of_taxa(name: str) -> Given:
    """Return sequences of DNA and their taxa."""
    found = taxa.loaded(name, None)
    rows = [{"sequence": each} for each in found.sequences]
    return Stream(rows, codes(found.taxa)), {"columns": {"sequence": "sequence"}}


def of_subjects() -> Given:
    """Return records of a library, and the first subject of each."""
    path = Path(os.environ["KESLER_DATA"]) / "subjects" / "tib_core_dev.tsv.gz"
    pairs = [pair for pair in zip(*subjects.read(path), strict=True) if pair[1]]
    return Stream([text for text, _ in pairs], codes([own[0] for _, own in pairs])), {}


def of_many_classes(name: str) -> Given:
    """Return the first texts of a stream of many classes."""
    rows, labels = many_classes_streams.stream(name, MOST_ROWS)
    return Stream(rows, codes(labels)), {}


def codes(labels: list[Any]) -> Any:
    """Return labels by number."""
    return by_appearance(np.array(labels))


FIRST_ROWS: dict[str, Callable[[], Given]] = {
    "subjects": of_subjects,
    "fungi": partial(of_taxa, "fungi_its"),
    "bacteria": partial(of_taxa, "bacteria_16s"),
    "novel bacteria": partial(of_taxa, "novel_16s"),
    "hypernyms": partial(of_many_classes, "wordnet"),
    "regions of places": partial(of_many_classes, "places"),
}
"""The streams by name."""
