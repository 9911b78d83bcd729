"""Copies of learners in memory: whatever is added and dropped, each is restored bit for bit."""

from __future__ import annotations

import json
import math
import sys
import threading
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays_of

from histories import file_of
from kesler import KeslerError, OnlineClassifier
from kesler.durable import copies, snapshots
from kesler.durable.contents import from_json, names_and_value, row_to_text
from kesler.durable.copies import Copies, Difference, Whole, difference, joined, restored
from test_durable import MODELS
from test_threads import Contended

KINDS = ["default", "texts", "dense", "ensemble", "kernel", "multilabel", "table"]
LIMITS = {name: getattr(copies, name) for name in ("LEAST_BYTES", "STEP", "BLOCK")}


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    """Hold nearly all arrays apart, and compare them in small blocks."""
    monkeypatch.setattr(copies, "LEAST_BYTES", 64)
    monkeypatch.setattr(copies, "STEP", 5)
    monkeypatch.setattr(copies, "BLOCK", 3)


@pytest.mark.parametrize("name", KINDS)
@settings(max_examples=8)
@given(steps=st.lists(st.integers(0, 9), min_size=5, max_size=30), seed=st.integers(0, 2**32 - 1))
def test_restores_what_was_copied(name, steps, seed, tmp_path_factory):
    make, draw = MODELS[name]
    folder, rng = tmp_path_factory.mktemp("copies"), np.random.default_rng(seed)
    learner, held, files = make(), Copies(), {}
    learner.learn_one(*draw(rng))
    for number, step in enumerate(steps):
        if step < 5:
            learner.learn_one(*draw(rng))
        elif step < 7:
            held.add(number, learner)
            files[number] = file_of(learner, folder)
        elif files:
            chosen = int(rng.choice([*files]))
            if step == 7:
                held.drop([chosen])
                del files[chosen]
            else:  # undo: a restored learner goes on with other rows
                learner = held.restore(chosen)
                later = [at for at in files if at > chosen]
                held.drop(later)
                files = {at: file for at, file in files.items() if at <= chosen}
                learner.learn_one(*draw(rng))
        assert held.numbers == [*files]
    found = {at: file_of(held.restore(at), folder) for at in files}
    assert found == files
    other = Copies()
    other.extend(held)
    assert {at: file_of(other.restore(at), folder) for at in files} == files
    assert held.numbers == [] and other.numbers == [*files]


@pytest.mark.parametrize("gone", [[[1]], [[2]], [[1, 2]], [[1], [2]], [[2], [1]]])
def test_copies_between_two_others_are_dropped(gone, tmp_path):
    """Each has learnt a feature since the one before that the one before had not changed."""
    learner, held, files = OnlineClassifier("multi", update="pa1"), Copies(), {}
    for label, word in product("xy", "abcd"):
        learner.learn_one({word: 1.0}, label)
    for number, word in enumerate("abcd"):
        learner.learn_one({word: 1.0}, "x")
        held.add(number, learner)
        files[number] = file_of(learner, tmp_path)
    for numbers in gone:
        held.drop(numbers)
        for number in numbers:
            del files[number]
    assert {at: file_of(held.restore(at), tmp_path) for at in held.numbers} == files


def test_restored_learners_share_nothing(tmp_path):
    make, draw = MODELS["default"]
    rng, learner, held = np.random.default_rng(0), make(), Copies()
    for _ in range(20):
        learner.learn_one(*draw(rng))
    held.add(1, learner)
    first, before = held.restore(1), file_of(learner, tmp_path)
    for _ in range(20):
        first.learn_one(*draw(rng))
        learner.learn_one({"another": 1}, "z")
    assert file_of(held.restore(1), tmp_path) == before


def test_renames_classes_of_all_copies():
    make, _ = MODELS["default"]
    learner, held = make(), Copies()
    learner.learn_one({"w": 1}, "a").learn_one({"v": 1}, "b")
    held.add(1, learner)
    learner.learn_one({"u": 1}, "c")
    held.add(2, learner)
    held.rename(["x", "y"])
    held.rename(["z"])
    assert held.restore(1).classes_.tolist() == ["y", "z"]
    assert held.restore(2).classes_.tolist() == ["c", "y", "z"]


def test_classes_are_renamed_while_nobody_reads_them():
    learner = MODELS["default"][0]().learn_one({"w": 1}, "a")
    renaming = threading.Thread(target=snapshots.rename_classes, args=(learner, ["x"]))
    with learner._learner.lock:
        renaming.start()
        renaming.join(0.2)
        assert learner.classes_.tolist() == ["a"]
    renaming.join()
    assert learner.classes_.tolist() == ["x"]


@pytest.mark.parametrize("name", ["default", "texts", "dense", "ensemble", "kernel", "multilabel"])
def test_learners_are_copied_while_nobody_teaches_them(name, tmp_path):
    """Another thread gets the lock of the learner just before the copy and just after it."""
    make, draw = MODELS[name]
    learner, held, rng, files = make(), Copies(), np.random.default_rng(0), []

    def teach():
        learner.learn_one(*draw(rng))
        files.append(file_of(learner, tmp_path))

    teach()
    learner._learner.lock = Contended(teach)
    held.add(1, learner)
    assert len(files) > 2 and len({*files}) == len(files)
    assert file_of(held.restore(1), tmp_path) == files[1]


def test_drops_names_with_the_last_copy_that_has_them():
    make, _ = MODELS["default"]
    learner, held = make(), Copies()
    learner.learn_one({"w": 1}, "a")
    held.add(1, learner)
    learner.learn_one({"secret": 1}, "a")
    held.add(2, learner)
    held.drop([2])
    assert "secret" not in held._copies[0].names[0].numbered
    assert held.restore(1).vocabulary_.names == ["w"]


def test_older_copies_are_small():
    make, _ = MODELS["default"]
    learner, held = make(), Copies()
    for i in range(400):
        learner.learn_one({f"w{10 * i + k}": 1 for k in range(10)}, "ab"[i % 2])
    held.add(1, learner)
    alone = held.nbytes
    learner.learn_one({"w5": 1}, "a")
    held.add(2, learner)
    assert held._copies[0].nbytes < alone / 5
    (names,) = {id(each): each for copy in held._copies for each, *_ in copy.names}.values()
    assert held.nbytes == sum(each.nbytes for each in held._copies) + sys.getsizeof(names)


SHAPES = arrays_of.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=12)
SOME = st.sampled_from([0.0, -0.0, 1.0, float("nan")])


@st.composite
def some_arrays(draw):
    """Three arrays, most of them of like rows and other lengths, with equal parts."""
    shape, dtype = draw(SHAPES), draw(st.sampled_from(["f4", "f8", "?", "i8,f4"]))
    found = []
    for _ in range(3):
        length = draw(st.integers(1, 12))
        axis = max(0, len(shape) - 2)
        own = (*shape[:axis], length, *shape[axis + 1 :])
        if draw(st.integers(0, 5)) == 0:
            own = draw(SHAPES)
        n = math.prod(own)
        flat = draw(st.lists(SOME, min_size=n, max_size=n))
        array = np.zeros(own, dtype)
        array.reshape(-1)[:] = flat if dtype != "i8,f4" else [(x == 1, x) for x in flat]
        found.append(array)
    return found


@settings(max_examples=150)
@given(three=some_arrays())
def test_differences_give_the_bits(three):
    def same(held, array):
        found = copies.array_from(held)
        assert (found.shape, found.dtype) == (array.shape, array.dtype)
        assert found.tobytes() == array.tobytes()

    whole = [copies.whole(each) for each in three]
    for each, array in zip(whole, three, strict=True):
        same(each, array)
    first, second = difference(whole[0], whole[1]), difference(whole[1], whole[2])
    same(restored(first, whole[1]), three[0])
    same(restored(second, whole[2]), three[1])
    same(restored(joined(first, second), whole[2]), three[0])
    assert isinstance(difference(whole[0], None), Whole)


def test_arrays_of_several_steps_give_the_rows_that_differ(monkeypatch):
    """Rows are compared 4096 at a time; after the first 9000 they are zeros of free capacity."""
    for name, value in LIMITS.items():
        monkeypatch.setattr(copies, name, value)
    newer = np.zeros((10_000, 3), dtype=np.float32)
    newer[:9000, :2] = np.random.default_rng(0).normal(size=(9000, 2))
    older, changed = newer.copy(), [0, 4095, 4096, 8191, 8192, 8999]
    older[changed, 1] += 1
    held = copies.whole(older)
    assert held.rows.shape[0] == 9000 and copies.array_from(held).tobytes() == older.tobytes()
    found = difference(held, copies.whole(newer))
    assert isinstance(found, Difference) and found.where.tolist() == changed
    back = copies.array_from(restored(found, copies.whole(newer)))
    assert back.tobytes() == older.tobytes()


def test_equal_bits_are_compared():
    some = np.array([[np.nan, 0.0], [1.0, 2.0], [3.0, 0.0]])
    other = np.array([[np.nan, -0.0], [1.0, 2.0], [3.0, 0.0]])
    found = difference(copies.whole(some), copies.whole(other))
    assert isinstance(found, Difference) and found.where.tolist() == [0]


NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.sampled_from(
    ['"', "\\", '","', '"],', "\n", "\x7f", "é"]
)


@given(row=st.dictionaries(NAMES, st.sampled_from([1, 2.5, True]), max_size=5))
def test_names_are_read_as_by_the_parser(row):
    _, text = row_to_text(row)
    names, value = names_and_value(text)
    assert [names, json.loads(value)] == json.loads(text)
    assert names == [*row]


@pytest.mark.parametrize(
    "text",
    ['[["a"]', '[["a"', '[["a"b"],1]', "[[1],1]", "[1,1]", "7", '[["a"],1', '[["a"],1,2]',
     '[["a"],["b"],1]', '[["a"],["b"],["c"],1]', '[["a"],["b","c"],1]'],
)  # fmt: skip
def test_names_that_no_journal_has_written_are_refused(text):
    with pytest.raises(KeslerError, match="holds what Kesler has not written"):
        from_json(names_and_value(text)[1])
