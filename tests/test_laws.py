"""What is always true, of every learner in the registry."""

from __future__ import annotations

import copy
import decimal
import json
import os
import pickle
import subprocess
import sys
import textwrap
from collections import Counter
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any, get_args

import joblib
import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, assume, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import homemade
import oracle
import reference
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    load,
    progressive_validate,
)
from kesler.learner import state
from kesler.learner.classes import OnNewClass
from kesler.links import LINKS
from kesler.maps import MAPS
from kesler.preconditioners import PRECONDITIONERS
from kesler.preprocessing import PREPROCESSINGS
from kesler.updates import RULES
from registry import CUSTOM, FAMILIES, MOST_CLASSES, ROWS, SETS, Row, covering
from streams import (
    Stream,
    assert_same,
    assert_same_but_declared,
    everything,
    learnt,
    make_stream,
    of_words,
    streams,
    whole_arrays,
)


def examples(n: int) -> Any:
    """Draw n examples; no shrinking, which would take hours where every row of the registry fails.

    A stream is printed as the call that makes it.
    """
    return settings(max_examples=n, phases=[Phase.explicit, Phase.generate])


def weights_for(row: Row, stream: Stream) -> Any:
    return stream.weights if row.takes_weights else np.ones(len(stream))


def every_row(rows: list[Row]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


FEW = covering(ROWS, "on_new_class")
"""For laws on the steps before and after a trial: parameters, names, classes, capacity."""
SOME = covering(ROWS, "on_new_class", "preconditioner")
"""For the ways to pass rows and to save a model: every part with every metric."""
MANY = covering(ROWS, "on_new_class", "preconditioner", "family")
"""For laws of the trial itself: every part also over every way of sharing."""


def chosen(*names: str) -> list[Row]:
    """Return rows by name, for laws on what does not depend on the row."""
    found = [row for row in ROWS if row.name in names]
    assert len(found) == len(names)
    return found


def by_events(row: Row, stream: Stream) -> OnlineClassifier:
    model = row.learner()
    for x, y in zip(stream.X, stream.y, strict=True):
        model.learn_one(x, y)
    return model


@pytest.fixture(autouse=True)
def _rows_of_weights(request, monkeypatch):
    """Let learners of the registry that are to have sparse rows have them from the start."""
    row = getattr(request.node, "callspec", None) and request.node.callspec.params.get("row")
    if isinstance(row, Row) and row.sparse:
        monkeypatch.setattr(state, "LARGEST_TABLE", 0)


def test_every_part_of_the_product_is_in_the_registry():
    assert {row.rule for row in ROWS} == {*RULES, "part_way"}
    assert {row.view for row in ROWS} == {*MAPS, "damped", "closeness", None}
    assert {row.family for row in ROWS} == set(FAMILIES)
    assert {row.link for row in ROWS} == {*LINKS, "bent", "rising"}
    assert any(row.averaged for row in ROWS)
    assert {row.preconditioner for row in ROWS} == {*PRECONDITIONERS, "auto", "slowing"} - {
        "euclidean"
    }
    # "unseen" is for ratings: test_linear_max.py
    assert {row.on_new_class for row in ROWS} == {*get_args(OnNewClass)} - {"unseen"}
    assert {row.preprocessing for row in ROWS} - {None} == set(PREPROCESSINGS)
    assert len({row.name for row in ROWS}) == len(ROWS)
    overlapping = [code for code in range(MOST_CLASSES) if len(homemade.sets_of(code)) > 1]
    alone = [code for code in range(MOST_CLASSES) if not homemade.sets_of(code)]
    assert overlapping and alone and all(SETS.values())


# ---- 1. batches of any size are the same --------------------------------------------------------


@every_row(MANY)
@examples(4)
@given(stream=streams(), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_1_any_split_into_batches_is_the_same(row, stream, cuts):
    whole = row.learner().partial_fit(stream.X, stream.y)
    pieces = row.learner()
    for part in split(stream, cuts):
        pieces.partial_fit(part.X, part.y)
    assert_same(whole, pieces, stream.X)
    assert_same(whole, by_events(row, stream), stream.X)


@every_row(SOME)
@examples(3)
@given(stream=streams(), cuts=st.lists(st.integers(0, 40), max_size=5))
def test_1_any_split_of_weighted_rows_is_the_same(row, stream, cuts):
    whole = row.learner().partial_fit(stream.X, stream.y, sample_weight=weights_for(row, stream))
    pieces = row.learner()
    for part in split(stream, cuts):
        pieces.partial_fit(part.X, part.y, sample_weight=weights_for(row, part))
    assert_same(whole, pieces, stream.X)


def split(stream: Stream, cuts: list[int]) -> list[Stream]:
    ends = sorted({0, *(min(cut, len(stream)) for cut in cuts), len(stream)})
    return [stream[slice(*pair)] for pair in pairwise(ends)]


@every_row(chosen("pa1-multi", "perceptron-hybrid-distance", "mira-grouped-view-product-mean"))
def test_1_rows_of_weight_zero_are_left_out_of_batches_of_any_size(row):
    stream = make_stream(3)
    weights = np.where(np.arange(len(stream)) % 3 == 1, 0.0, stream.weights)
    stored = weights > 0
    without = row.learner().partial_fit(
        stream.X[stored], stream.y[stored], sample_weight=weights[stored]
    )
    whole = row.learner().partial_fit(stream.X, stream.y, sample_weight=weights)
    assert_same(without, whole, stream.X)
    one_by_one = row.learner()
    for x, y, weight in zip(stream.X, stream.y, weights, strict=True):
        one_by_one.partial_fit([x], [y], sample_weight=[weight])
    assert_same(without, one_by_one, stream.X)


@every_row(chosen("pa1-hybrid-distance", "perceptron-all-three-product"))
def test_1_wide_rows_that_are_learnt_in_blocks_are_the_same(row):
    # A block holds 2**20 entries: 30 rows of 40,000 features make two.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 40_000)).astype(np.float32)
    y = np.arange(30) % 4
    assert_same(row.learner().fit(X, y), by_events(row, Stream(X, y, np.ones(30))), X[:3])


# ---- 2. declared classes only add capacity ------------------------------------------------------


@every_row(FEW)
@examples(3)
@given(stream=streams())
def test_2_declaring_classes_changes_nothing(row, stream):
    declared = row.learner().partial_fit(stream.X, stream.y, classes=range(100))
    plain = row.learner().partial_fit(stream.X, stream.y)
    assert_same_but_declared(plain, declared, stream.X)
    assert plain.classes_.tolist() == list(range(stream.n_classes))
    assert declared.classes_.tolist() == list(range(100))
    assert declared.classes_by_code_.tolist() == plain.classes_by_code_.tolist()


@every_row(FEW)
@examples(3)
@given(stream=streams())
def test_2_no_class_is_predicted_before_its_first_row(row, stream):
    declared = row.learner().partial_fit(stream.X[:1], stream.y[:1], classes=range(20))
    result = progressive_validate(declared, stream.X[1:], stream.y[1:])
    for t, label in enumerate(result.predictions, start=1):
        assert label in set(stream.y[:t].tolist())


# ---- 3. labels are names ------------------------------------------------------------------------

NAMINGS: dict[str, list[Any]] = {
    "text": [*"hgfedcbalkji"],
    "text of NumPy": [np.str_(name) for name in "hgfedcbalkji"],
    "text that sorts unlike numbers": [str(number) for number in range(2, 14)],
    "numbers in another order": [7, -3, 0, 12, 5, 1, 99, 4, -8, 2, 6, 3],
    "whole floats": [float(number) for number in (3, 1, 2, 0, 9, 8, 7, 6, 5, 4, 11, 10)],
    "numbers of NumPy": [np.int16(number) for number in (3, 1, 2, 0, 9, 8, 7, 6, 5, 4, 11, 10)],
    "tuples": [(number % 3, -number) for number in range(12)],
    "nested tuples": [("a", (number % 4, number)) for number in range(12)],
    "bytes": [bytes([100 - number]) for number in range(12)],
    "large numbers": [2**70 - number for number in range(12)],
}


def renamed(model: OnlineClassifier, names: list[Any]) -> dict[str, Any]:
    """Return what was learnt, with numbers for labels."""
    found = learnt(model)
    labels = found.pop("labels")
    assert labels == names[: len(labels)]
    return {key: value for key, value in found.items() if key != "types"}


def scores_by_number(model: OnlineClassifier, names: list[Any], X: Any) -> Any:
    order = [model.classes_.tolist().index(name) for name in names[: model.n_known_]]
    return model.decision_function(X)[:, order]


@every_row(FEW)
def test_3_renaming_changes_names_only(row):
    stream = make_stream(11, n_rows=30, n_classes=MOST_CLASSES)
    assert stream.n_classes > 2
    numbers = list(range(MOST_CLASSES))
    plain = row.learner()
    result = progressive_validate(plain, stream.X, stream.y)
    for names in NAMINGS.values():
        model = row.learner(names)
        other = progressive_validate(model, stream.X, [names[code] for code in stream.y])
        assert renamed(model, names) == renamed(plain, numbers)
        assert other.curve.tolist() == result.curve.tolist()
        none = other.no_prediction
        assert result.no_prediction == -1 and none not in names
        predicted = [none if code == -1 else names[code] for code in result.predictions]
        assert other.predictions.tolist() == predicted
        assert model.classes_.tolist() == sorted(names[: stream.n_classes])
        assert model.predict(stream.X).tolist() == [names[c] for c in plain.predict(stream.X)]
        np.testing.assert_array_equal(
            scores_by_number(model, names, stream.X), scores_by_number(plain, numbers, stream.X)
        )


@pytest.mark.parametrize(
    ("dtype", "names"),
    [
        ("object", [*"dbca"]),
        ("<U1", [*"dbca"]),
        ("S1", [b"d", b"b", b"c", b"a"]),
        ("int8", [3, 1, 2, 0]),
        ("uint64", [2**64 - 1, 1, 2, 0]),
        ("float32", [3.0, 1.0, 2.0, 0.0]),
        ("bool", [True, False]),
    ],
)
def test_3_arrays_of_labels_of_any_type(dtype, names):
    stream = make_stream(4, n_classes=len(names))
    plain = OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y)
    y = np.array(names, dtype=dtype)[stream.y]
    events = OnlineClassifier("multi", update="pa1")
    for x, label in zip(stream.X, y, strict=True):
        events.learn_one(x, label)
    for labels in (y, list(y), y.tolist(), y.reshape(-1)[::1]):
        model = OnlineClassifier("multi", update="pa1").fit(stream.X, labels)
        assert model.predict(stream.X).tolist() == [names[c] for c in plain.predict(stream.X)]
        assert_same(model, events, stream.X)
    assert model.classes_.tolist() == sorted(names)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("Series", pd.Series([*"dbca"])),
        ("strings", pd.Series([*"dbca"], dtype="string")),
        ("categories", pd.Series([*"dbca"], dtype="category")),
        ("nullable numbers", pd.Series([3, 1, 2, 0], dtype="Int64")),
    ],
)
def test_3_pandas_series_of_labels(kind, names):
    stream = make_stream(4, n_classes=4)
    y = names.iloc[stream.y].reset_index(drop=True)
    model = OnlineClassifier("multi", update="pa1").fit(stream.X, y)
    assert model.classes_.tolist() == sorted(names.tolist())
    plain = OnlineClassifier("multi", update="pa1").fit(stream.X, stream.y)
    assert renamed(model, names.tolist()) == renamed(plain, list(range(4)))


# Labels that are no class, or that do not fit the labels of the model; see `offer`.
REFUSED: dict[str, Any] = {
    "None": None,
    "NaN": float("nan"),
    "NaN of NumPy": np.float32("nan"),
    "infinity": float("-inf"),
    "NA of pandas": pd.NA,
    "NaT of pandas": pd.NaT,
    "NaT of NumPy": np.datetime64("NaT", "D"),
    "NaN decimal": decimal.Decimal("NaN"),
    "list": ["a"],
    "set": {"a"},
    "dict": {"a": 1},
    "tuple of a list": ("a", ["b"]),
    "complex": 1j,
    "object": object(),
}
OTHER_TYPES = {"text": ["a", "b"], "numbers": [1, 2], "tuples": [(1, "a"), (2, "b")]}


@pytest.mark.parametrize("label", REFUSED.values(), ids=REFUSED)
@pytest.mark.parametrize("known", [[], *OTHER_TYPES.values()], ids=["nothing", *OTHER_TYPES])
def test_3_a_label_that_is_no_class_is_refused(label, known):
    for row in chosen("pa1-multi", "pa1-all-three-product", "pa1-born-view-product"):
        if known and row.family == "born-view":
            continue  # its function takes numbers
        refused_everywhere(row, known, label)


@pytest.mark.parametrize(
    ("known", "label"),
    [(["a", "b"], 3), ([1, 2], "a"), ([1, 2], (1,)), ([(1, 2)], "a"), ([b"a"], "a"), (["a"], b"a")],
)
def test_3_a_label_of_another_type_is_refused(known, label):
    for row in chosen("pa1-multi", "pa1-all-three-product"):
        refused_everywhere(row, known, label)
        refused_everywhere(row, known[:1], label)


def test_3_labels_that_cannot_be_ordered_among_each_other_are_refused():
    """Each goes with the first label, but not with one another."""
    refused_everywhere(ROWS[0], [(1, "a"), (2, 3)], (2, "b"))


def refused_everywhere(row: Row, known: list[Any], label: Any) -> None:
    """Whichever way such a label comes, it is refused and the model stays as it was."""
    X = np.eye(4)
    model = row.learner()
    for x, y in zip(X, known, strict=False):
        model.learn_one(x, y)
    before = everything(model)
    both = np.empty(2, dtype=object)
    both[0], both[1] = (known[0] if known else 1), label
    attempts = {
        "learn_one": lambda: model.learn_one(X[3], label),
        "list": lambda: model.partial_fit(X[:2], list(both)),
        "array": lambda: model.partial_fit(X[:2], both),
        "one": lambda: model.partial_fit(X[:1], [label]),
        "progressive": lambda: progressive_validate(model, X[:2], list(both)),
        "named": lambda: model.partial_fit([{"new": 1.0}] * 2, list(both)),
    }
    for attempt in attempts.values():
        with pytest.raises(KeslerError) as caught:
            attempt()
        assert_sentence(caught.value)
        assert everything(model) == before


def assert_sentence(error: KeslerError) -> None:
    """Require a message of one line that a user can act on."""
    text = str(error)
    assert len(text.split()) > 5 and "\n" not in text.strip(), text


@pytest.mark.parametrize(
    "labels",
    [
        [1, "a"],
        ["a", 1.0],
        ["a", float("nan")],
        [True, "a"],
        [1.0, None],
        [(1, 2), 3],
        ["a", b"a"],
    ],
)
def test_3_a_batch_of_labels_of_two_types_is_refused(labels):
    model = OnlineClassifier("multi")
    with pytest.raises(KeslerError) as caught:
        model.fit(np.eye(2), labels)
    assert_sentence(caught.value)
    assert sorted(vars(model)) == sorted(model.get_params(deep=False))


@pytest.mark.parametrize(
    "labels",
    [
        ["a\0", "a"],
        [b"a\0", b"a"],
        [2**53 + 1, 2**53],
        [2**53 + 1, 1.0],
        [2**63 + 1, -1],
        [2**64, 2**64 + 1],
        [np.datetime64("2020-01-01"), np.datetime64("2021-01-01")],
        [np.datetime64("2020-01-01", "ns"), np.datetime64("2021-01-01", "ns")],
        [pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")],
        [0.5, 1.5],
    ],
    ids=str,
)
def test_3_a_label_is_never_silently_anything_else(labels):
    """What is predicted is what was learnt, however it came, or the label is refused."""
    X = np.eye(2)
    made = partial(OnlineClassifier, "multi", update="pa1", on_new_class="learn")
    attempts = {
        "events": lambda: made().learn_one(X[0], labels[0]).learn_one(X[1], labels[1]),
        "list": lambda: made().fit(X, labels),
        "array": lambda: made().fit(X, np.array(labels, dtype=object)),
    }
    accepted = {}
    for way, attempt in attempts.items():
        try:
            model = attempt()
        except KeslerError as error:
            assert_sentence(error)
            accepted[way] = False
            continue
        accepted[way] = True
        assert [model.predict_one(X[0]), *model.classes_.tolist()] == [
            labels[0],
            *sorted(labels),
        ], way
        assert list(model.predict(X[:1])) == labels[:1], way
    assert len(set(accepted.values())) == 1, accepted


# ---- 4. dense, sparse and named rows are the same -----------------------------------------------


def sparse_forms(X: np.ndarray) -> dict[str, Any]:
    """Return the same rows in every form of a sparse matrix."""
    csr = sparse.csr_array(X)
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    full = sparse.csr_array(np.ones_like(X))
    full.data[:] = X.reshape(-1)  # zeros listed
    backwards = sparse.csr_array(X)
    for start, stop in zip(csr.indptr, csr.indptr[1:], strict=False):
        backwards.indices[start:stop] = csr.indices[start:stop][::-1]
        backwards.data[start:stop] = csr.data[start:stop][::-1]
    backwards.has_sorted_indices = False
    doubled = sparse.coo_array(
        (np.concatenate([X[X != 0] * 0.5] * 2), tuple(np.concatenate([i, i]) for i in X.nonzero())),
        shape=X.shape,
    )
    forms = {"csr": csr, "int64": wide, "zeros": full, "backwards": backwards, "doubled": doubled}
    forms["matrix"] = sparse.csr_matrix(X)
    for name in ("csc", "coo", "lil", "dok", "bsr", "dia"):
        forms[name] = csr.asformat(name)
    return forms


def dense_forms(X: np.ndarray) -> dict[str, Any]:
    single = X.astype(np.float32)
    frozen = single.copy()
    frozen.setflags(write=False)
    columns = [f"x{j}" for j in range(X.shape[1])]
    return {
        "float32": single,
        "columns first": np.asfortranarray(X),
        "every second": np.repeat(X, 2, axis=0)[::2],
        "other byte order": X.astype(">f8"),
        "lists": X.tolist(),
        "objects": X.astype(object),
        "read-only": frozen,
        "frame": pd.DataFrame(X, columns=columns),
        "frame of singles": pd.DataFrame(single, columns=columns),
    }


def named_forms(X: np.ndarray) -> dict[str, Any]:
    names = [f"x{j}" for j in range(X.shape[1])]
    rows = [dict(zip(names, x.tolist(), strict=True)) for x in X]
    return {
        "named": rows,
        "named without zeros": [{n: v for n, v in row.items() if v} for row in rows],
        "tuple of named": tuple(rows),
    }


def assert_same_run(row: Row, stream: Stream, forms: dict[str, Any]) -> None:
    """Each form gives the predictions, the mistakes and the weights of the dense rows."""
    plain = row.learner()
    expected = progressive_validate(plain, stream.X, stream.y)
    for name, X in forms.items():
        model = row.learner()
        result = progressive_validate(model, X, stream.y)
        assert result.predictions.tolist() == expected.predictions.tolist(), name
        assert result.curve.tolist() == expected.curve.tolist(), name
        assert_same_weights(row, model, plain)
        scores, others = model.decision_function(X), plain.decision_function(stream.X)
        np.testing.assert_allclose(scores, others, **nearness(row), err_msg=name)


def nearness(row: Row) -> dict[str, float]:
    """Norms and scales are sums over the features, in the order in which they were seen."""
    plain = row.link == "linear" and row.algorithm is None and row.preconditioner == "auto"
    return {"rtol": 0, "atol": 0} if plain else {"rtol": 1e-5, "atol": 1e-7}


def assert_same_weights(row: Row, one: OnlineClassifier, other: OnlineClassifier) -> None:
    arrays, others = by_feature(one, 7), by_feature(other, 7)
    assert arrays.keys() == others.keys()
    for name, array in arrays.items():
        np.testing.assert_allclose(array, others[name], **nearness(row), err_msg=name)


OF_FEATURES = (
    *("weights.", "statistics.sums", "statistics.pooled", "link.is_seen"),
    *("preconditioner.evidence", "preconditioner.scales", "preprocessing.statistics"),
    *("preconditioner.sums", "preconditioner.winnings", "preconditioner.sizes"),
    "statistics.moments",
)
"""The state of each feature."""


def by_feature(model: OnlineClassifier, n_features: int) -> dict[str, Any]:
    """Return the arrays that were learnt, features in the order of the columns x0, x1, ..."""
    vocabulary = model.vocabulary_
    names = [f"x{j}" for j in range(n_features)]
    order = list(range(n_features))
    if vocabulary is not None:
        order = [vocabulary.indices.get(name, len(vocabulary)) for name in names]
    if model._learner.constant != 0:
        order = [0, *(1 + place for place in order)]
    found = {}
    for name, array in whole_arrays(model._learner).items():
        if array.size and name.startswith(OF_FEATURES):
            array = array.transpose(0, 2, 1) if name == "statistics.moments" else array
            array = np.hstack(array) if array.ndim == 3 else array.reshape(len(array), -1)
            # A name that was never seen has learnt nothing.
            array = np.vstack([array, np.zeros((1, array.shape[1]), array.dtype)])[order]
        found[name] = array
    return found


@pytest.mark.parametrize(
    ("row", "whole"),
    [
        (row, whole)
        for rows, whole in [(SOME, True), (FEW, False)]
        for row in rows
        if not row.dense_only
    ],
    ids=lambda value: getattr(value, "name", "whole numbers" if value is True else "continuous"),
)
def test_4_dense_sparse_and_named_rows_are_the_same(row, whole):
    stream = make_stream(21 + whole, density=0.5, whole=whole)
    forms = sparse_forms(stream.X) | dense_forms(stream.X) | named_forms(stream.X)
    if whole:
        forms["integers"] = stream.X.astype(np.int8)
        forms["sparse integers"] = sparse.csr_array(stream.X.astype(np.int64))
        forms["frame of integers"] = pd.DataFrame(stream.X.astype(int)).add_prefix("x")
    assert_same_run(row, stream, forms)


@every_row([row for row in SOME if row.dense_only])
def test_4_dense_rows_of_any_form_are_the_same(row):
    stream = make_stream(23, density=0.7)
    assert_same_run(row, stream, dense_forms(stream.X))


@every_row(SOME)
def test_4_kinds_of_rows_can_follow_one_another(row):
    stream = make_stream(24, density=0.7)
    plain, model = row.learner().fit(stream.X, stream.y), row.learner()
    frame = pd.DataFrame(stream.X).add_prefix("x")
    model.partial_fit(frame[:10], stream.y[:10])
    for x, y in zip(named_forms(stream.X[10:20])["named"], stream.y[10:20], strict=True):
        model.learn_one(x, y)
    model.partial_fit(named_forms(stream.X[20:30])["named without zeros"], stream.y[20:30])
    for x, y in zip(stream.X[30:], stream.y[30:], strict=True):
        model.learn_one(x, y)
    assert_same_weights(row, model, plain)
    assert model.predict(frame).tolist() == plain.predict(stream.X).tolist()
    events = [model.predict_one(x) for x in named_forms(stream.X)["named"]]
    assert events == plain.predict(stream.X).tolist()


@every_row([row for row in ROWS if row.dense_only])
def test_4_maps_that_look_at_zeros_refuse_sparse_rows(row):
    stream = make_stream(25)
    csr, names = sparse.csr_array(stream.X), named_forms(stream.X)["named"]
    fresh, model = row.learner(), row.learner().fit(stream.X, stream.y)
    words = of_words(row.learner())
    anew = [
        (fresh, lambda: fresh.fit(csr, stream.y)),
        (words, lambda: words.partial_fit(names, stream.y)),
        (words, lambda: words.learn_one(names[0], 0)),
    ]
    attempts = [
        *anew,
        (model, lambda: model.partial_fit(csr, stream.y)),
        (model, lambda: model.predict(csr)),
        (model, lambda: model.decision_function(csr)),
    ]
    for learner, attempt in attempts:
        before = everything(learner)
        with pytest.raises(KeslerError, match=r"not zero at zero.*sparse.*dense rows"):
            attempt()
        assert everything(learner) == before


# ---- 5. save, load, go on -----------------------------------------------------------------------


def copies(model: OnlineClassifier, folder: Path) -> dict[str, OnlineClassifier]:
    """Return the model as it comes back from each way of keeping it."""
    model.save(folder / "model")
    joblib.dump(model, folder / "joblib")
    joblib.dump(model, folder / "mapped")
    return {
        "saved": load(folder / "model", custom=CUSTOM),
        "saved twice": resaved(folder / "model"),
        "joblib": joblib.load(folder / "joblib"),
        "memory map": joblib.load(folder / "mapped", mmap_mode="r"),
        "pickle": pickle.loads(pickle.dumps(model)),
        "deepcopy": copy.deepcopy(model),
    }


def resaved(path: Path) -> OnlineClassifier:
    load(path, custom=CUSTOM[::-1]).save(path)
    return load(path, custom=CUSTOM)


@pytest.mark.parametrize(
    ("row", "stop"),
    [*((row, 7) for row in SOME), *product(FEW, [1, 30])],
    ids=lambda value: getattr(value, "name", value),
)
def test_5_save_load_go_on_is_never_stopped(row, stop, tmp_path):
    stream = make_stream(31, n_classes=9)
    never_stopped = row.learner().fit(stream.X, stream.y)
    first, rest = stream[:stop], stream[stop:]
    model = row.learner().fit(first.X, first.y)
    before = learnt(model)
    for way, other in copies(model, tmp_path).items():
        assert learnt(other) == before, way
        other.partial_fit(rest.X, rest.y)
        assert_same(never_stopped, other, stream.X)
    assert learnt(model) == before
    model.partial_fit(rest.X, rest.y)
    assert_same(never_stopped, model, stream.X)


@every_row(FEW)
def test_5_a_clone_begins_anew(row):
    stream = make_stream(32)
    model = row.learner().fit(stream.X, stream.y)
    other = clone(model)
    assert not hasattr(other, "classes_")
    assert_same(model, other.fit(stream.X, stream.y), stream.X)
    assert_same(model, model.fit(stream.X, stream.y), stream.X)


@every_row([row for row in SOME if not row.dense_only])
def test_5_named_rows_go_on_with_new_names(row, tmp_path):
    stream = make_stream(33, density=0.3)
    names = named_forms(stream.X)["named without zeros"]
    never_stopped = row.learner().fit(names, stream.y)
    row.learner().fit(names[:9], stream.y[:9]).save(tmp_path / "model")
    model = load(tmp_path / "model", custom=CUSTOM).partial_fit(names[9:], stream.y[9:])
    assert learnt(model) == learnt(never_stopped)
    assert model.predict(names).tolist() == never_stopped.predict(names).tolist()


@pytest.mark.parametrize("naming", ["text", "numbers in another order", "whole floats"])
def test_5_labels_keep_their_types(naming, tmp_path):
    stream, names = make_stream(34, n_classes=12), NAMINGS[naming]
    model = ROWS[0].learner().fit(stream.X, [names[code] for code in stream.y])
    model.save(tmp_path / "model")
    assert_same(model, load(tmp_path / "model"), stream.X)


def test_5_what_is_kept_is_what_was_learnt_with(tmp_path):
    """Parameters set after learning began wait for the next fit, here and in the file."""
    stream = make_stream(35)
    model = OnlineClassifier("multi", update="perceptron").fit(stream.X[:20], stream.y[:20])
    model.set_params(update="mira", hypotheses="single", feature_map="product")
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model").partial_fit(stream.X[20:], stream.y[20:])
    assert_same(model.partial_fit(stream.X[20:], stream.y[20:]), loaded, stream.X)


def test_5_notes_come_back(tmp_path):
    notes = {"source": "inbox", "rows": 3, "nested": {"a": [1, 2.5, None, "é\0"]}}
    OnlineClassifier().learn_one({"a": 1.0}, "x").save(tmp_path / "model", **notes)
    assert load(tmp_path / "model").notes_ == notes


def saved_bytes(path: Path) -> bytes:
    stream = make_stream(36)
    OnlineClassifier("hybrid", "product-mean", update="pa1").fit(stream.X, stream.y).save(path)
    return path.read_bytes()


def test_5_a_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "model"
    contents = saved_bytes(path)
    for length in [*range(0, len(contents), 10), len(contents) - 1]:
        path.write_bytes(contents[:length])
        with pytest.raises(KeslerError, match=str(path)):
            load(path)


def test_5_a_file_with_one_damaged_byte_is_refused(tmp_path):
    path = tmp_path / "model"
    contents = saved_bytes(path)
    outcomes: Counter[str] = Counter()
    for place in range(len(contents)):
        damaged = bytearray(contents)
        damaged[place] ^= 4
        path.write_bytes(damaged)
        try:
            load(path)
        except Exception as error:
            outcomes[type(error).__name__] += 1
        else:
            outcomes["model"] += 1
    assert set(outcomes) == {"KeslerError"}, outcomes


def header_changed(path: Path, **changes: Any) -> None:
    """Rewrite the header of a model file with other metadata."""
    contents = path.read_bytes()
    end = 8 + int.from_bytes(contents[:8], "little")
    header = json.loads(contents[8:end])
    own = json.loads(header["__metadata__"]["header"]) | changes
    own = {name: value for name, value in own.items() if value is not None}
    header["__metadata__"] = {"header": json.dumps(own)}
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + contents[end:])


def test_5_a_file_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "model"
    contents = saved_bytes(path)
    header_changed(path)
    load(path)
    header_changed(path, version=3)
    with pytest.raises(KeslerError, match=r"newer Kesler.*update Kesler"):
        load(path)
    odd = [{"version": each} for each in ("one", "1", True, 1.0, 0, -1, None, [1])]
    for change in (*odd, {"format": None}, {"format": "pt"}, {"checksum": None}):
        path.write_bytes(contents)
        header_changed(path, **change)
        with pytest.raises(KeslerError, match=str(path)):
            load(path)


def test_5_what_is_no_model_file_is_refused(tmp_path):
    from safetensors.numpy import save_file

    other = tmp_path / "other.safetensors"
    save_file({"weights": np.ones(3)}, other)
    text = tmp_path / "notes.txt"
    text.write_text("no model\n")
    for path in (tmp_path / "missing", tmp_path, other, text):
        with pytest.raises(KeslerError, match=str(path)) as caught:
            load(path)
        assert_sentence(caught.value)


@pytest.mark.parametrize("header", ["[]", "1", "{", "[" * 100_000, '"kesler"'])
def test_5_a_file_with_an_odd_header_is_refused(tmp_path, header):
    from safetensors.numpy import save_file

    save_file({"weights": np.ones(3)}, tmp_path / "model", {"header": header})
    with pytest.raises(KeslerError, match="model") as caught:
        load(tmp_path / "model")
    assert_sentence(caught.value)


def test_5_the_same_model_is_saved_as_the_same_bytes(tmp_path):
    """Also by another process, whose dictionaries are hashed otherwise."""
    code = """
        import sys
        from test_laws import saved_bytes
        from pathlib import Path
        print(saved_bytes(Path(sys.argv[-1])).hex())
    """
    contents = {saved_bytes(tmp_path / str(i)).hex() for i in range(4)}
    contents |= {
        in_another_process(code.replace("sys.argv[-1]", repr(str(tmp_path / f"other{i}")))).strip()
        for i in range(2)
    }
    assert len(contents) == 1


def test_5_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "model"
    contents = saved_bytes(path)
    with pytest.raises(KeslerError, match="numbers or text"):
        OnlineClassifier().learn_one({"a": 1.0}, ("a", "tuple")).save(path)
    with pytest.raises(KeslerError, match="cannot be written"):
        OnlineClassifier().learn_one({"a": 1.0}, 1).save(tmp_path / "no folder" / "model")
    assert path.read_bytes() == contents
    assert [each.name for each in tmp_path.iterdir()] == ["model"]


def test_5_parts_of_the_user_are_asked_for_by_name(tmp_path):
    path, stream = tmp_path / "model", make_stream(37)
    row = Row("part_way", "born-view", "damped")
    row.learner().fit(stream.X, stream.y).save(path)
    used = {"sets_of": homemade.sets_of, "damped": homemade.damped, "part_way": homemade.part_way}
    for missing in used:
        custom = [part for name, part in used.items() if name != missing]
        with pytest.raises(KeslerError, match=rf"homemade\.{missing}.*custom=") as caught:
            load(path, custom=custom)
        assert_sentence(caught.value)
    for custom in (CUSTOM, CUSTOM[::-1], list(used.values())):
        load(path, custom=custom)


# ---- 6. predict changes nothing -----------------------------------------------------------------


def inside(model: OnlineClassifier) -> dict[str, Any]:
    """Return the whole state of a model, with its unused capacity."""
    learner = model._learner
    capacities = (learner._class_capacity, learner._feature_capacity, list(learner._group_capacity))
    rest = {k: v for k, v in vars(model).items() if k not in ("_learner", "_reader")}
    return everything(model) | {
        "bytes": {name: array.tobytes() for name, array in learner.stored.items()},
        "capacities": capacities,
        "rest": repr(sorted(rest.items())),
    }


@every_row(SOME)
def test_6_predicting_changes_nothing(row):
    stream = make_stream(41, n_classes=8)
    model = row.learner().partial_fit(
        stream.X[:30], stream.y[:30], sample_weight=weights_for(row, stream)[:30]
    )
    before, given_rows = inside(model), stream.X.tobytes()
    for _ in range(2):
        model.predict(stream.X)
        model.decision_function(stream.X)
        model.predict_proba(stream.X)
        model.score(stream.X, stream.y)
        for x in stream.X:
            model.predict_one(x)
        repr(model), model.classes_, model.n_mistakes_, model.feature_map_, model.get_params()
    assert inside(model) == before
    assert stream.X.tobytes() == given_rows
    untouched = row.learner().fit(stream.X[:30], stream.y[:30], weights_for(row, stream)[:30])
    assert_same(
        untouched.partial_fit(stream.X[30:], stream.y[30:]),
        model.partial_fit(stream.X[30:], stream.y[30:]),
        stream.X,
    )


@every_row([row for row in SOME if not row.dense_only])
def test_6_predicting_unknown_names_changes_nothing(row):
    stream = make_stream(42)
    model = row.learner().fit(named_forms(stream.X)["named"], stream.y)
    before = inside(model)
    unknown = {"never": 1.0, "satisfied": 2.0}
    x = named_forms(stream.X)["named"][0]
    model.predict_one(x | unknown), model.decision_function([x | unknown, unknown])
    assert inside(model) == before


@every_row(MANY)
def test_6_predict_equals_the_next_trial(row):
    """Bit for bit, with features that were never seen wherever rows may have them."""
    stream = make_stream(43, n_rows=20, density=0.7)
    rows: Any = stream.X[:, None] if row.dense_only else [[x] for x in unforeseen(stream.X)]
    model = row.learner().learn_one(rows[0][0], stream.y[0])
    for x, y in zip(rows[1:], stream.y[1:], strict=True):
        label, scores = model.predict(x), model._scores(x)
        trials = model._run_trials(x, [y], keep_scores=True)
        assert model.classes_by_code_[trials.predictions].tolist() == label.tolist()
        np.testing.assert_array_equal(trials.scores[:, : scores.shape[1]], scores)


def unforeseen(X: np.ndarray) -> list[dict[str, float]]:
    """Rows by name, of which some features have new names every time."""
    return [
        {f"x{j}" if j % 3 else f"x{j} of {t}": value for j, value in enumerate(x) if value}
        for t, x in enumerate(X.tolist())
    ]


@pytest.mark.parametrize("x", [[1.0, 2.0, 3.0], [1.0], np.zeros(7)], ids=str)
def test_6_rows_without_names_are_no_rows_of_a_model_of_names(x):
    model = (
        OnlineClassifier("multi", update="pa1")
        .learn_one({"a": 1.0}, "x")
        .learn_one({"b": 1.0}, "y")
    )
    before = inside(model)
    for attempt in (
        lambda: model.predict_one(x),
        lambda: model.predict([x]),
        lambda: model.learn_one(x, "x"),
        lambda: model.partial_fit([x], ["x"]),
    ):
        with pytest.raises(KeslerError, match="named features"):
            attempt()
        assert inside(model) == before


# ---- 7. the compiled trial equals the oracle ----------------------------------------------------


def oracle_weights(row: Row, model: OnlineClassifier) -> list[Any]:
    """Return the weights of each part as the oracle orders them, (hypotheses, features)."""
    learner = model._learner
    found = []
    for i, (kind, _) in enumerate(FAMILIES[row.family].kinds):
        weights = whole_arrays(learner)[f"weights.values.{i}"].T
        if kind == "grouped":
            # The machine numbers groups as their classes come; one that nobody seen has no weights.
            nobody = np.zeros(weights.shape[1], dtype=np.float32)
            columns = learner.groups[i]
            weights = np.array([weights[columns[s]] if s in columns else nobody for s in SETS])
        found.append(weights)
    return found


def compare(row: Row, stream: Stream, C: float, weights: Any, *, exactly: bool) -> None:
    seen = row.seen(stream.X, weights, stream.y)
    run = oracle.Watched(seen, stream.y, row.oracle(), row.rule, C, weights)
    if not exactly and run.doubtful < len(stream):
        assume(run.doubtful >= 8)
        stream, weights = (
            stream[: run.doubtful],
            None if weights is None else weights[: run.doubtful],
        )
        seen = seen[: len(stream)]
        run = oracle.Watched(seen, stream.y, row.oracle(), row.rule, C, weights)
    model = row.learner(C=C)
    result = progressive_validate(model, stream.X, stream.y, weights)
    if not row.averaged:  # the means predict, as tests/test_links.py compares with a loop
        assert result.predictions.tolist() == run.predictions
        assert result.n_mistakes == model.n_mistakes_ == run.mistakes
    assert result.n_first_seen == len(run.first_seen)
    for ours, theirs, near in zip(oracle_weights(row, model), run.W, run.tolerance, strict=True):
        assert (abs(ours - theirs) <= (0 if exactly else near)).all()


# Every rule over every way of sharing is in the grid too.
@every_row(covering([row for row in ROWS if row.is_plain], "family"))
@examples(6)
@given(stream=streams(), C=st.sampled_from([0.02, 0.2, 1.0]), weighted=st.booleans())
def test_7_every_learner_equals_the_oracle(row, stream, C, weighted):
    compare(row, stream, C, stream.weights if weighted else None, exactly=False)


EXACT = [
    row
    for row in ROWS
    if row.rule == "perceptron" and row.is_plain
    if row.view in (None, "product", "frequency")
]


@every_row(EXACT)
@examples(20)
@given(stream=streams(whole=True), weighted=st.booleans())
def test_7_whole_numbers_equal_the_oracle_ties_included(row, stream, weighted):
    """Sums of small whole numbers are exact in float32: nothing is left to rounding."""
    compare(row, stream, 1.0, 2 * stream.weights if weighted else None, exactly=True)


@every_row([row for row in ROWS if row.rule == "mira" and row.is_plain])
@examples(10)
@given(stream=streams(), C=st.sampled_from([0.02, 0.2, 1.0]))
def test_7_each_step_of_mira_is_the_optimum_of_its_trial(row, stream, C):
    """Whatever the steps are, which need not be unique, nothing has a lower objective.

    But for what the solver leaves, and what float32 rounds off views and weights.
    """
    model, parts = row.learner(C=C), row.oracle()
    running: list[reference.Past] = [[] for _ in range(stream.n_classes)]
    seen = row.seen(stream.X, None, stream.y)
    for given_x, x, y in zip(stream.X, seen, stream.y.tolist(), strict=True):
        satisfied = [r for r, rows in enumerate(running) if rows]
        if y in satisfied:
            n_hypotheses = stream.n_classes
            V = np.array(
                [reference.stack(x, r, running[r], parts, n_hypotheses) for r in satisfied]
            )
            before = flat_weights(row, model, n_hypotheses)
            optimum, open_ = optimum_of_mira(V, before, y, C)
            after = flat_weights(row, model.learn_one(given_x, y), n_hypotheses)
            assert objective(after, before, V, y, C) <= objective(optimum, before, V, y, C) + open_
        else:
            model.learn_one(given_x, y)
        running[y].append((x, 1.0))


def optimum_of_mira(V: Any, before: Any, y: int, C: float) -> tuple[Any, float]:
    """Return the optimum of a trial, and how far above it a learner's objective may be.

    The learner's solver goes on while a loss differs by 1e-6 of those it has found, and moves mass
    among them while slopes differ by 1e-7; C is the mass. And two roundings, of a view and of a
    weight, may change each term of a loss, along all the ways that sum up to the weight.
    """
    others = np.delete(np.arange(len(V)), y)
    d = V[y] - V[others]
    losses = 1 - d @ before
    steps = np.zeros(len(others))
    if (losses > 0).any():
        steps = reference.mira(losses, (d * d).sum(axis=1), d @ d.T, C)
    largest = abs(V[y]) + abs(V[others]).max(axis=0, initial=0)
    length = abs(before) + steps.sum() * largest
    return before + steps @ d, C * (1.1e-6 + 2 * 2.0**-24 * float(largest @ length))


def flat_weights(row: Row, model: OnlineClassifier, k: int) -> Any:
    """Return the weights end to end, with columns for k classes, as the oracle stacks its views."""
    found = []
    for weights, (kind, _) in zip(
        oracle_weights(row, model), FAMILIES[row.family].kinds, strict=True
    ):
        capacity = k - len(weights) if kind == "per_class" else 0
        found.append(np.pad(weights.astype(np.float64), ((0, capacity), (0, 0))).ravel())
    return np.concatenate(found)


def objective(w: Any, before: Any, V: Any, y: int, C: float) -> float:
    """Amit et al. (2006), Eq. 1."""
    losses = 1 - np.delete((V[y] - V) @ w, y)
    return ((w - before) ** 2).sum() / 2 + C * max(0.0, losses.max(initial=0))


# ---- 9. a second call compiles nothing ----------------------------------------------------------


def small_run(row: Row, stream: Stream, dtype: str = "float64") -> None:
    """Learn and predict in every way that the row takes."""
    X = stream.X.astype(dtype)
    model = row.learner()
    model.learn_one(X[0], 0)
    model.fit(X, stream.y).partial_fit(X, stream.y, sample_weight=weights_for(row, stream))
    model.predict(X), model.decision_function(X), model.predict_one(X[0])
    if not row.dense_only:
        model.partial_fit(sparse.csr_array(X), stream.y)
        model.predict(sparse.csr_array(X))
        row.learner().fit(named_forms(X)["named"], stream.y).predict_one({"x1": 1.0})


@every_row(SOME)
def test_9_a_second_learner_compiles_nothing(row):
    from numba.core import event

    small_run(row, make_stream(91))
    others = [
        (make_stream(92, n_rows=80, n_classes=12, n_features=40), "float32"),
        (make_stream(93, n_rows=50, n_classes=2, n_features=1, whole=True), "int64"),
    ]
    # A kernel reports "compile"; so that no callback escapes, count the compiler's passes too.
    with event.install_recorder("numba:compile") as compiled:
        with event.install_recorder("numba:run_pass") as passes:
            for stream, dtype in others:
                small_run(row, stream, dtype)
    assert len(compiled.buffer) == len(passes.buffer) == 0


IN_ANOTHER_PROCESS = """
    from numba.core import event
    from test_laws import run_few

    with event.install_recorder("numba:compile") as compiled:
        with event.install_recorder("numba:run_pass") as passes:
            run_few()
    from kesler.compiled.trial.weight_trial import kernels

    trial = kernels("every")
    hits = sum(trial.learn.stats.cache_hits.values()) + sum(trial.predict.stats.cache_hits.values())
    print(len(compiled.buffer), len(passes.buffer), hits)
"""


def run_few() -> None:
    """Have all compiled that the rows need, where it is not yet."""
    for row in FEW:
        small_run(row, make_stream(94))


def in_another_process(code: str) -> str:
    tests = Path(__file__).parent
    source = Path(sys.modules["kesler"].__file__ or "").parents[1]
    path = os.pathsep.join([str(source), str(tests), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled")
def test_9_another_process_compiles_nothing():
    run_few()
    compiled, passes, hits = map(int, in_another_process(IN_ANOTHER_PROCESS).split())
    assert (compiled, passes) == (0, 0)
    assert hits > 0


def test_9_importing_kesler_imports_nothing_heavy():
    heavy = ["numba", "sklearn", "pandas", "matplotlib", "pyarrow", "scipy", "safetensors"]
    code = f"import sys, kesler; print([name for name in {heavy!r} if name in sys.modules])"
    assert in_another_process(code) == "[]"


# ---- 10. scikit-learn's checks ------------------------------------------------------------------

WEIGHTS_ARE_LENGTHS = (
    "a row of weight 2 is one longer step, which is not two trials, and the order of rows matters"
)
DENSE, SPARSE = (f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse"))
NO_INTERCEPT = "without an intercept, no weight of a class makes it the prediction everywhere"
CLASS_WEIGHT = "check_class_weight_classifiers"
EXPECTED_TO_FAIL = dict.fromkeys([DENSE, SPARSE], WEIGHTS_ARE_LENGTHS)
ESTIMATORS = [
    OnlineClassifier(),
    OnlineClassifier("multi", update="perceptron"),
    OnlineClassifier("single", "product-mean"),
    OnlineClassifier("hybrid", "distance", update="mira"),
    OnlineClassifier("multi", update="mira"),
    OnlineOrdinalClassifier("single", decision="score"),
    OnlineOrdinalClassifier("single", link="exponential"),
    OnlineOrdinalClassifier("multi", update="mira"),
    OnlineOrdinalClassifier(update="perceptron"),
]


@pytest.mark.filterwarnings("ignore:the rows are sorted by class")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=repr)
def test_10_scikit_learn_checks_pass(estimator):
    has_none = type(estimator) is OnlineClassifier and repr(estimator) != repr(ESTIMATORS[0])
    to_fail = EXPECTED_TO_FAIL | ({CLASS_WEIGHT: NO_INTERCEPT} if has_none else {})
    results = check_estimator(estimator, expected_failed_checks=to_fail, on_fail=None, on_skip=None)
    outcomes = {result["check_name"]: result for result in results}
    assert {n: r["exception"] for n, r in outcomes.items() if r["status"] == "failed"} == {}
    expected = {DENSE, SPARSE} if get_tags(estimator).input_tags.sparse else {DENSE}
    expected |= {CLASS_WEIGHT} & set(to_fail)
    assert {n for n, r in outcomes.items() if r["status"] == "xfail"} == expected
    # Only what this machine has not: the array API needs an environment variable of SciPy's.
    assert {n for n, r in outcomes.items() if r["status"] == "skipped"} <= {"check_array_api_input"}
    n_checks = len(list(estimator_checks_generator(estimator)))
    assert len(results) == n_checks
    assert Counter(r["status"] for r in results)["passed"] >= n_checks - 4 >= 58


@pytest.mark.filterwarnings("ignore:the rows are sorted by class")
def test_10_scikit_learn_checks_of_ranks_pass_but_for_their_median():
    results = check_estimator(OnlineOrdinalClassifier(), on_fail=None, on_skip=None)
    failed = {result["check_name"] for result in results if result["status"] == "failed"}
    assert failed <= {DENSE, SPARSE, "check_classifiers_train"}  # which asks for the highest score
