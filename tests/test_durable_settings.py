"""Settings of models in journals that name classes, on whose names learning then depends."""

from __future__ import annotations

from functools import partial

import pytest

from histories import file_of, learnt_anew
from kesler import Ensemble, KeslerError, OnlineClassifier, OnlineOrdinalClassifier
from kesler.durable import Journal, replica
from kesler.durable.settings import depends_on_names, labels_in
from kesler.hypotheses import Grouped, PerClass

PA1 = partial(OnlineClassifier, update="pa1")
GROUPS = Grouped({"g": ["a", "b"], "h": ["c"]})
TREE = {"a": "top", "b": "top"}
COSTS = {("a", "b"): 3.0, ("b", "c"): 2.0}
PLAIN = OnlineClassifier("multi", update="pa1")

NAMING = {
    "costs": (partial(OnlineClassifier, update="hinge", costs=COSTS), "abc"),
    "groups": (partial(PA1, [GROUPS]), "abc"),
    "one of several hypotheses": (partial(PA1, [PerClass(), GROUPS]), "abc"),
    "tree": (partial(OnlineClassifier, "multi", update="pa1", tree=TREE), ["a", "b", "top"]),
    "order": (partial(OnlineOrdinalClassifier, order=["a", "b", "c"]), "abc"),
    "a member": (lambda: Ensemble([PLAIN, PA1([GROUPS])]), "abc"),
    "a member of an update": (lambda: OnlineClassifier(update=[PLAIN, PA1([GROUPS])]), "abc"),
}
ROWS = [({f"w{i % 5}": 1.0, f"v{i % 3}": 2.0}, "abc"[i % 3]) for i in range(12)]


@pytest.mark.parametrize("name", NAMING)
def test_classes_that_the_settings_name_keep_their_names(name, tmp_path, monkeypatch):
    """Also in a snapshot, where rows have come in another order than that of the settings."""
    monkeypatch.setattr(replica, "LEAST_SPACING", 5)
    make, named = NAMING[name]
    assert {*labels_in(make())} == {*named} and depends_on_names(make())
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("m", make())
        model.learn_many(ROWS[::-1])
        before = file_of(model, tmp_path)
        for call in (
            lambda: model.rename("a", "z"),
            lambda: model.merge("a", "b"),
            lambda: model.merge("b", "a"),
            lambda: model.forget_class("b"),
        ):
            with pytest.raises(KeslerError, match="the settings of the model name the class"):
                call()
        assert file_of(model, tmp_path) == before and len(model.history(None)) == 12
    with Journal(tmp_path / "desk.db") as journal:
        assert file_of(journal.open("m"), tmp_path) == before


@pytest.mark.parametrize("name", NAMING)
def test_other_classes_are_learnt_again_under_their_new_names(name, tmp_path, monkeypatch):
    """Also where a snapshot is opened, in which the names are those of the time."""
    monkeypatch.setattr(replica, "LEAST_SPACING", 5)
    make, _ = NAMING[name]
    if name == "order":
        make = OnlineOrdinalClassifier
    rows = [(x, {"a": "d"}.get(y, "e")) for x, y in ROWS]
    with Journal(tmp_path / "desk.db") as journal:
        model = journal.open("m", make())
        model.learn_many(rows)
        if name == "order":
            model.rename("d", "z")
            new = {"d": "z", "e": "e"}
        else:
            with pytest.raises(KeslerError, match="the settings of the model name the class 'b'"):
                model.rename("e", "b")
            model.rename("e", "z")
            new = {"d": "d", "e": "z"}
        anew = learnt_anew(make, [(x, new[y]) for x, y in rows])
        assert file_of(model, tmp_path) == file_of(anew, tmp_path)
    with Journal(tmp_path / "desk.db") as journal:
        assert file_of(journal.open("m"), tmp_path) == file_of(anew, tmp_path)


def test_other_learners_depend_on_no_name():
    for make in (OnlineClassifier, lambda: PLAIN, lambda: Ensemble([PLAIN, PLAIN])):
        assert not depends_on_names(make()) and labels_in(make()) == []
    by_costs = OnlineClassifier(update="hinge", costs=lambda right, wrong: 1.0)
    for model in (by_costs, OnlineOrdinalClassifier(), OnlineClassifier(ranks=";")):
        assert depends_on_names(model) and labels_in(model) == []
