"""Tables with categories: the inputs of the members for measurements, beside the features."""

import json
import math
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from kesler import (
    Ensemble,
    KeslerError,
    OnlineClassifier,
    OnlineLabelRanker,
    OnlineMultilabelClassifier,
    OnlineOrdinalClassifier,
    load,
    progressive_validate,
)
from kesler.data import model_file
from kesler.data.schema.inference import N_ROWS
from kesler.errors import MismatchWarning
from kesler.preprocessing import RandomFourier
from streams import assert_same_bits

KINDS = {"size": "number", "colour": "category", "when": "date"}


def table(seed, n=130, *, missing=0.1):
    """Return rows with a number, a category that gains values and a date, and their labels."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for i in range(n):
        colours = ["red", "blue", "green", *(["pink"] if i > 70 else [])]
        size, colour = float(rng.normal()), colours[rng.integers(len(colours))]
        when = datetime(2026, 1, 1) + timedelta(hours=int(rng.integers(9000)))
        row = {"size": size, "colour": colour, "when": when}
        rows.append({k: None if rng.random() < missing else v for k, v in row.items()})
        labels.append("warm" if (colour in ("red", "pink")) == (size > 0) else "cold")
    return rows, labels


def by_hand(rows, colours):
    """Return the inputs of rows, from the columns one after another."""
    found = []
    for row in rows:
        size, colour, when = row["size"], row["colour"], row["when"]
        inputs = [math.nan if size is None else size]
        inputs += [math.nan if colour is None else float(colour == each) for each in colours]
        if when is None:
            inputs += [math.nan] * 7
        else:
            hour = when.hour + when.minute / 60
            week = when.weekday() + hour / 24
            year = (when - datetime(when.year, 1, 1)).days
            places = (2 * math.pi * part / of for part, of in ((hour, 24), (week, 7), (year, 366)))
            turns = [turn(place) for place in places for turn in (math.sin, math.cos)]
            inputs += [(when - datetime(1970, 1, 1)) / timedelta(days=1), *turns]
        found.append(inputs)
    return np.array(found, dtype=np.float32)


@pytest.mark.parametrize("how", ["partial_fit", "fit"])
@pytest.mark.parametrize("seed", range(2))
def test_members_learn_the_inputs_as_an_ensemble_learns_an_array_of_them(seed, how):
    rows, labels = table(seed)
    model = getattr(OnlineClassifier(), how)(rows, labels)
    first = [row["colour"] for row in rows[:N_ROWS] if row["colour"] is not None]
    array = by_hand(rows, [*dict.fromkeys(first)])
    inputs = model._input.columns.known.inputs
    cells = {name: [row[name] for row in rows] for name in KINDS}
    assert_allclose(inputs.array(cells, len(rows)), array, atol=2e-3)

    words, *others = model.resolved_.update
    alone = getattr(Ensemble(others), how)(inputs.array(cells, len(rows)), labels)
    for member, own in zip(model._learner.members[1:], alone._learner.members, strict=True):
        for name, stored in own.arrays().items():
            assert_array_equal(member.arrays()[name], stored, err_msg=name)
    shared = ("hypotheses", "preprocessing", "intercept")
    single = OnlineClassifier(**{name: getattr(words, name) for name in shared})
    mistakes = getattr(single, how)(rows, labels).n_mistakes_
    assert model._learner.members[0].n_mistakes == mistakes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("given", [{}, {"half_life": 40.0}, {"uncertainty": False}], ids=str)
def test_any_split_and_a_file_in_between_are_the_same(seed, given, tmp_path):
    rows, labels = table(seed)
    whole = OnlineClassifier(**given).partial_fit(rows, labels)
    cuts = np.random.default_rng(seed).integers(1, len(rows), 4)
    ends = [0, *sorted({*cuts.tolist()}), len(rows)]
    pieces = OnlineClassifier(**given)
    for start, end in pairwise(ends):
        pieces.partial_fit(rows[start:end], labels[start:end]).save(tmp_path / "m")
        pieces = load(tmp_path / "m")
    one_by_one = OnlineClassifier(**given)
    for row, label in zip(rows, labels, strict=True):
        one_by_one.learn_one(row, label)
    for other in (pieces, one_by_one):
        assert_same_bits(whole, other)
        assert_array_equal(whole.predict_proba(rows), other.predict_proba(rows))
    assert whole.predict_one(rows[3]) == whole.predict(rows)[3]


def test_categories_that_come_later_and_cells_that_are_missing_have_an_answer():
    rows, labels = table(7, missing=0.0)
    model = OnlineClassifier().fit(rows, labels)
    odd = [{"colour": "never seen"}, {"size": 0.5}, {"when": datetime(2030, 1, 1)}]
    assert np.isfinite(model.predict_proba(odd)).all()
    inputs = model._input.columns.known.inputs
    (array,) = [inputs.array({"colour": ["never seen"], "size": [1.0]}, 1)]
    n = len(dict.fromkeys(row["colour"] for row in rows[:N_ROWS]))
    assert array[0, 0] == 1 and not array[0, 1 : 1 + n].any() and np.isnan(array[0, 1 + n :]).all()


def test_explanations_are_of_cells_and_add_up():
    rows, labels = table(2, missing=0.0)
    model = OnlineClassifier().fit(rows, labels)
    why = model.explain_one(rows[5])
    named = {each.feature: each.value for each in why.contributions}
    assert named == {"size": pytest.approx(rows[5]["size"]), f"colour={rows[5]['colour']}": None,
                     f"when={rows[5]['when']}": None}  # fmt: skip
    assert sum(each.score for each in why.summands) == pytest.approx(why.score, abs=1e-6)
    without = {name: cell for name, cell in rows[5].items() if name != "when"}
    assert {each.feature for each in model.explain_one(without).contributions} == {
        "size",
        f"colour={rows[5]['colour']}",
    }


def test_texts_and_settings_of_one_learner_have_no_inputs():
    rows, labels = table(3)
    texts = [{**row, "note": f"a note of several words about row {i} here"}
             for i, row in enumerate(rows)]  # fmt: skip
    assert OnlineClassifier().fit(texts, labels)._input.columns.known.inputs is None
    for given in ({"update": "pa1"}, {"candidates": 8}, {"memory_limit": "200 MB"}):
        model = OnlineClassifier(**given).fit(rows, labels)
        assert model._input.columns.known.inputs is None and len(model._learner.members) == 1


FEATURES = {"hypotheses": "multi", "update": "pa1"}, {"hypotheses": "single", "update": "pa1"}
ARRAYS = (
    {**FEATURES[0], "preprocessing": "z-scores"},
    {"kernel": "rbf", "preprocessing": "z-scores"},
)


@pytest.mark.parametrize(
    ("members", "beside", "alone"),
    [(FEATURES, False, False), (ARRAYS, False, True), ((FEATURES[0], ARRAYS[0]), True, False)],
    ids=["features", "arrays", "both"],
)
def test_inputs_are_beside_features_where_members_read_different_forms(members, beside, alone):
    rows = [{"x": i % 5, "y": i % 7, "kind": "ab"[i % 2]} for i in range(12)]
    models = [OnlineClassifier(**settings) for settings in members]
    columns = Ensemble(models).fit(rows, [0, 1, 2] * 4)._input.columns
    found = columns.inputs_beside is not None, columns.inputs_alone is not None
    assert found == (beside, alone)


def test_many_categories_leave_the_numbers_as_inputs():
    rng = np.random.default_rng(0)
    rows = [
        {f"n{j}": float(rng.normal()) for j in range(600)}
        | {f"c{j}": f"v{rng.integers(40)}" for j in range(30)}
        for _ in range(60)
    ]
    model = OnlineClassifier().partial_fit(rows, ["a", "b"] * 30)
    kinds = [each.kind for each in model._input.columns.known.inputs.columns]
    assert kinds.count("number") == 600 and 0 < kinds.count("category") < 30


def test_files_whose_inputs_do_not_fit_are_refused(tmp_path):
    rows, labels = table(4)
    OnlineClassifier().fit(rows, labels).save(tmp_path / "m")
    arrays, metadata = model_file.load(tmp_path / "m")
    for change in (
        lambda stored: stored[1].__setitem__(2, ["red"]),
        lambda stored: stored.pop(),
        lambda stored: stored[0].__setitem__(1, "text"),
        lambda stored: stored.append(stored[0]),
        lambda stored: stored.clear(),
    ):
        altered = json.loads(json.dumps(metadata))
        change(altered["table"]["inputs"])
        model_file.save(tmp_path / "altered", arrays, altered)
        with pytest.raises(KeslerError, match="damaged or was changed"):
            load(tmp_path / "altered")


# ---- inputs in place of features -----------------------------------------------------------------

TARGETS = {
    "ranks": (OnlineOrdinalClassifier, lambda label: {"cold": 1, "warm": 2}[label]),
    "sets": (OnlineMultilabelClassifier, lambda label: [label, "any"]),
    "rankings": (OnlineLabelRanker, lambda label: [label, *({"cold", "warm"} - {label})]),
    "one learner": (lambda: OnlineClassifier(update="softmax", preprocessing="z-scores"), str),
    "members": (lambda: OnlineClassifier(hypotheses="multi"), str),
}
each_target = pytest.mark.parametrize(("make", "target_of"), TARGETS.values(), ids=TARGETS)


@each_target
@pytest.mark.parametrize("seed", range(2))
def test_a_learner_of_measurements_learns_the_inputs_as_an_array(make, target_of, seed):
    rows, labels = table(seed)
    y = [*map(target_of, labels)]
    first = [row["colour"] for row in rows[:N_ROWS] if row["colour"] is not None]
    expected = by_hand(rows, [*dict.fromkeys(first)])
    model = make().partial_fit(rows, y)
    inputs = model._input.columns.inputs_alone
    array = inputs.array({name: [row[name] for row in rows] for name in KINDS}, len(rows))
    assert_allclose(array, expected, atol=2e-3)
    assert_same_bits(model, of_array := make().partial_fit(array, y))
    assert_array_equal(model.decision_function(rows), of_array.decision_function(array))
    assert_array_equal(model.predict_one(rows[7]), of_array.predict_one(array[7]))


@each_target
def test_files_with_other_inputs_than_were_learnt_are_refused(make, target_of, tmp_path):
    rows, labels = table(4)
    make().fit(rows, [*map(target_of, labels)]).save(tmp_path / "m")
    arrays, metadata = model_file.load(tmp_path / "m")
    stored = metadata["table"]["inputs"]
    for other in (stored[1:], stored[:-1], [*stored, ["later", "number", [], 0]]):
        metadata["table"]["inputs"] = other
        model_file.save(tmp_path / "altered", arrays, metadata)
        with pytest.raises(KeslerError, match=r"the model's table has \d+ inputs, and what learns"):
            load(tmp_path / "altered")


@each_target
def test_any_split_and_a_file_in_between_are_the_same_in_place_of_features(
    make, target_of, tmp_path
):
    rows, labels = table(5)
    y = [*map(target_of, labels)]
    whole, one_by_one, pieces = make().partial_fit(rows, y), make(), make()
    for row, target in zip(rows, y, strict=True):
        one_by_one.learn_one(row, target)
    for start, end in pairwise([0, 1, 7, 49, 50, 90, len(rows)]):
        pieces.partial_fit(rows[start:end], y[start:end]).save(tmp_path / "m")
        pieces = load(tmp_path / "m")
    for other in (one_by_one, pieces):
        assert_same_bits(whole, other)
        assert_array_equal(whole.decision_function(rows), other.decision_function(rows))


def test_a_random_column_of_categories_leaves_the_learner_of_measurements():
    rng, n = np.random.default_rng(0), 1000
    X = rng.normal(size=(n, 6))
    y = np.digitize(np.abs(X[:, 0]) + 0.1 * rng.normal(size=n), [0.3, 0.8, 1.2])
    names = [f"n{i}" for i in range(6)]
    rows = [
        {**dict(zip(names, x, strict=True)), "coin": ("no", "yes")[rng.integers(2)]}
        for x in X.tolist()
    ]
    sets = [[f"above {i}" for i in range(1, 4) if each >= i] for each in y]
    for learner, targets, error_of in (
        (OnlineOrdinalClassifier, y, lambda run: run.mean_absolute_error),
        (OnlineMultilabelClassifier, sets, lambda run: 1 - run.micro_f1),
    ):
        alone, with_coin = (progressive_validate(learner(), r, targets) for r in (X, rows))
        assert error_of(with_coin) <= 1.10 * error_of(alone)


def mixed(n_numbers, n_categories, n_values=3):
    """Return rows of so many numbers, and categories of so many different values."""
    rng = np.random.default_rng(0)
    return [
        {f"n{j}": float(rng.normal()) for j in range(n_numbers)}
        | {f"c{j}": f"v{(i + j) % n_values}" for j in range(n_categories)}
        for i in range(60)
    ]


@pytest.mark.parametrize(
    ("shape", "in_place"),
    [((3, 1), True), ((3, 3), True), ((2, 3), False), ((0, 2), False),
     ((3, 1, 25), True), ((3, 1, 26), False), ((3, 0), True)],
    ids=str,
)  # fmt: skip
def test_inputs_take_the_place_of_features_if_few_columns_have_few_categories(shape, in_place):
    rows, y = mixed(*shape), [1, 2] * 30
    columns = OnlineOrdinalClassifier().partial_fit(rows, y)._input.columns
    assert (columns.inputs_alone is not None) == in_place
    assert columns.inputs_beside is None


def test_inputs_in_place_of_features_have_names():
    rows, labels = table(2, missing=0.0)
    model = OnlineOrdinalClassifier().partial_fit(rows, labels)
    colours = [*dict.fromkeys(row["colour"] for row in rows[:N_ROWS])]
    cycles = [f"when.{c}.{p}" for c in ("day", "week", "year") for p in ("sin", "cos")]
    names = ["size", *(f"colour={colour}" for colour in colours), "when", *cycles]
    assert model._input.names.names == names
    why = model.explain_one(rows[5], n=20)
    assert {each.feature for each in why.contributions} <= {*names}
    assert sum(each.score for each in why.summands) == pytest.approx(why.score, abs=1e-5)


def test_columns_that_come_later_are_left_out_and_inputs_are_no_columns():
    rows, labels = table(1, missing=0.0)
    model = OnlineOrdinalClassifier().partial_fit(rows, labels)
    with pytest.warns(MismatchWarning, match=r"'weight' is in none of the first 50 rows.*these$"):
        model.learn_one({**rows[0], "weight": 2.0}, labels[0])
    listed = dict.fromkeys(model._input.names.names, 1.0)
    with pytest.warns(MismatchWarning, match="is in none of the first 50 rows"):
        model.learn_one(listed, labels[0])


@pytest.mark.parametrize("rows", [table(6)[0], mixed(3, 0)], ids=["mixed", "numbers"])
@pytest.mark.parametrize("make", [OnlineClassifier, OnlineOrdinalClassifier])
def test_files_of_before_are_read_as_they_were(make, rows, tmp_path):
    y = ["cold", "warm"] * (len(rows) // 2)
    model = make().partial_fit(rows, y)
    if model._input.columns.inputs_alone and rows[0].keys() == KINDS.keys():
        return  # their features were learnt
    model.save(tmp_path / "m")
    arrays, metadata = model_file.load(tmp_path / "m")
    metadata = json.loads(json.dumps(metadata))
    del metadata["table"]["beside"]
    if not model._input.columns.inputs_beside:
        metadata["table"]["inputs"] = None
    model_file.save(tmp_path / "former", arrays, metadata)
    former = load(tmp_path / "former")
    assert former._input.columns.known.inputs == model._input.columns.known.inputs
    assert_array_equal(former.predict_proba(rows), model.predict_proba(rows))


# ---- weights of random features ------------------------------------------------------------------


def test_weights_scale_the_projections_of_inputs():
    plain, _ = RandomFourier(50, seed=3).draw(4)
    weighed, _ = RandomFourier(50, seed=3, weights=(1.0, 2.0, 0.0, 1.0)).draw(4)
    scales = np.array([1.0, 2.0, 0.0, 1.0]) / math.sqrt(6 / 4)
    assert_allclose(weighed, plain * scales[:, None].astype(np.float32), rtol=1e-5)
    equal, _ = RandomFourier(50, seed=3, weights=[0.3] * 4).draw(4)
    assert_allclose(equal, plain, rtol=1e-6)


@pytest.mark.parametrize("weights", [(), (1.0, -1.0), (0.0, 0.0), ("a",), 3.0, (math.nan,)])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(KeslerError, match="weights"):
        RandomFourier(weights=weights)


def test_weights_are_those_of_all_inputs():
    model = OnlineClassifier(
        "multi", update="softmax", preprocessing=RandomFourier(20, weights=(1.0, 2.0))
    )
    with pytest.raises(KeslerError, match="2 weights, but rows have 3 inputs"):
        model.fit(np.eye(3), [0, 1, 0])
