"""Ranks of labels that are paths: against learners of cut labels, and a walk by dictionaries."""

import copy
import json
import math
import pickle
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from commands import kesler, write_jsonl
from kesler import NEW, Ensemble, KeslerError, OnlineClassifier, load
from kesler.data import model_file
from kesler.distributed.parameter_mixing import mixable
from kesler.durable import Journal
from kesler.learner.learner import Learner
from kesler.learner.uncertainty import Assessment
from kesler.trees.paths import LEAST, PathNodes

REGULAR = [f"k{i % 2};g{i % 6};s{i}" for i in range(12)]
RAGGED = ["k;p;g;s", "k;p;g;t", "k;p;h", "k;q;g;s", "k;q;g", "m", "m;n; o;", "k;q;i__"]


def stream_of(labels, n_rows, seed=0):
    """Rows whose words tell of the label and of the names on its path."""
    rng = np.random.default_rng(seed)
    y = [labels[i] for i in rng.integers(0, len(labels), n_rows)]
    words = [[*label.split(";"), label, *map(str, rng.integers(0, 9, 3))] for label in y]
    return [dict.fromkeys(rng.permutation(own)[:4], 1.0) for own in words], y


def cut(label, depth):
    names = [name.strip() for name in label.split(";")]
    while not names[-1] or names[-1].endswith("__"):
        names.pop()
    return ";".join(names[:depth])


def contents(learner):
    return {name: array.tobytes() for name, array in learner.arrays().items()}


# ---- learning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("labels", [REGULAR, RAGGED], ids=["regular", "ragged"])
@pytest.mark.parametrize("n_rows", [1, 7, 300])
def test_each_rank_learns_as_a_learner_of_cut_labels_does(labels, n_rows):
    X, y = stream_of(labels, 300)
    model = OnlineClassifier(ranks=";")
    for start in range(0, 300, n_rows):
        model.partial_fit(X[start : start + n_rows], y[start : start + n_rows])
    ranks = model._learner.ranks.learners
    assert len(ranks) == max(len(cut(label, 9).split(";")) for label in labels) - 1
    for depth, each in enumerate(ranks, start=1):
        alone = OnlineClassifier().partial_fit(X, [cut(label, depth) for label in y])
        assert [cut(label, depth) for label in each.classes.labels] == alone._learner.classes.labels
        assert contents(each) == contents(alone._learner)
        assert model.mistakes_of_ranks_[depth - 1] == alone.n_mistakes_
    whole = OnlineClassifier().partial_fit(X, y)
    assert contents(whole._learner) == contents(model._learner)
    assert model.predict_proba(X).tobytes() == whole.predict_proba(X).tobytes()


def test_thousands_of_paths_are_compared_with_candidates_at_each_rank():
    labels = [f"k;g{i // 3};s{i}" for i in range(600)]
    X, y = stream_of(labels, 1500, 2)
    model = OnlineClassifier(ranks=";").partial_fit(X, y)
    first, genus = model._learner.ranks.learners
    assert first.comparing is None and genus.comparing is not None
    alone = OnlineClassifier().partial_fit(X, [cut(label, 2) for label in y])
    assert contents(genus) == contents(alone._learner)


def test_rows_of_weight_are_learnt_with_it_at_each_rank():
    X, y = stream_of(RAGGED, 90)
    weights = np.tile([0.0, 0.5, 2.0], 30)
    model = OnlineClassifier(ranks=";").partial_fit(X, y, sample_weight=weights)
    kept = [i for i in range(90) if weights[i]]
    of_names = [X[i] for i in kept], [cut(y[i], 1) for i in kept]
    alone = OnlineClassifier().partial_fit(*of_names, sample_weight=weights[kept])
    (rows,) = model._input.rows_to_score(model, X[:9])
    found = model._learner.ranks.learners[0].probabilities(rows)
    np.testing.assert_array_equal(
        found, alone._learner.probabilities(*alone._input.rows_to_score(alone, X[:9]))
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda **more: OnlineClassifier(**more),
        lambda **more: OnlineClassifier("multi", update="pa1", **more),
        lambda **more: OnlineClassifier(uncertainty="full", **more),
        lambda **more: OnlineClassifier(update="pa1", kernel="rbf", **more),
        lambda **more: OnlineClassifier(epochs=3, **more),
        lambda **more: OnlineClassifier(uncertainty=False, **more),
    ],
)
def test_measurements_and_other_learners(make):
    rng = np.random.default_rng(4)
    y = [REGULAR[i] for i in rng.integers(0, 12, 240)]
    X = np.array([[REGULAR.index(label) % n for n in (2, 6, 12)] for label in y])
    X = X + rng.normal(size=X.shape, scale=0.4)
    model = make(ranks=";").fit(X, y)
    alone = make().fit(X, [cut(label, 2) for label in y])
    genus = model._learner.ranks.learners[1]
    assert genus.n_mistakes == alone.n_mistakes_ and genus.n_trials == alone.n_trials_
    found = model.predict_path(X, 0)
    assert np.mean([each.path == label for each, label in zip(found, y, strict=True)]) > 1 / 12
    assert model.predict_path_one(X[3], 0) == found[3]
    said_of_new = [*found[3].nodes] if model._learner.uncertainty else []
    assert [*found[3].new] == said_of_new


# ---- answers -------------------------------------------------------------------------------------

LABELS = st.lists(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map("/".join),
    min_size=1,
    max_size=9,
    unique=True,
)


def walked(labels, of_ranks):
    """The probability of each path: up from the last rank, then down, by dictionaries."""
    depth = len(of_ranks)

    def above(path, rank):
        return path[:rank]

    paths = [tuple(label.split("/")) for label in labels]
    merged = {}
    for rank in range(depth, 0, -1):
        own, below = defaultdict(float), defaultdict(float)
        for path in paths:
            own[above(path, rank)] += 0.0
        for path, p in of_ranks[rank - 1].items():
            own[path] += p
        for path, p in merged.get(rank + 1, {}).items():
            below[above(path, rank)] += p
        if rank < depth:
            own = {v: math.sqrt(max(p, LEAST) * max(below[v], LEAST)) for v, p in own.items()}
            total = sum(own.values())
            own = {v: p / total for v, p in own.items()}
        merged[rank] = own
    found, current = {(): 1.0}, {(): 1.0}
    for rank in range(1, depth + 1):
        total = defaultdict(float)
        for path, p in merged[rank].items():
            total[above(path, rank - 1)] += p
        current = {
            path: current[above(path, rank - 1)] * p / max(total[above(path, rank - 1)], LEAST)
            for path, p in merged[rank].items()
        }
        found |= {path: p for path, p in current.items() if len(path) == rank}
    return found


@settings(max_examples=150, deadline=None)
@given(labels=LABELS, seed=st.integers(0, 99))
def test_probabilities_of_ranks_are_combined_as_by_dictionaries(labels, seed):
    rng = np.random.default_rng(seed)
    nodes = PathNodes(labels, "/")
    depth = len(nodes.levels) - 1
    ranks, of_rows = [], [[] for _ in range(3)]
    for rank in range(1, depth + 1):
        own = list(dict.fromkeys(tuple(label.split("/"))[:rank] for label in labels))
        rng.shuffle(own)
        own = [tuple(path) for path in own]
        P = rng.dirichlet(np.full(len(own), 0.3), size=3)
        ranks.append((np.array([nodes.number[path] for path in own]), P))
        for of_row, p in zip(of_rows, P.tolist(), strict=True):
            of_row.append(dict(zip(own, p, strict=True)))
    total = nodes.combined(ranks)
    for row, of_ranks in enumerate(of_rows):
        wanted = walked(labels, of_ranks)
        assert dict(zip(nodes.names, total[:, row].tolist(), strict=True)) == pytest.approx(wanted)
    assert (total[1:] <= total[nodes.parent[1:]] + 1e-12).all()


def test_answers_are_those_of_all_ranks():
    X, y = stream_of(RAGGED, 200)
    model = OnlineClassifier(ranks=";").partial_fit(X, y)
    alone = [OnlineClassifier().partial_fit(X, [cut(v, d) for v in y]) for d in (1, 2, 3)]
    labels = list(dict.fromkeys(y))
    paths = {label: tuple(cut(label, 9).split(";")) for label in labels}
    for row, found in zip(X[:30], model.predict_path(X[:30], 0.5), strict=True):
        of_ranks = [
            {tuple(k.split(";")): p for k, p in each.predict_proba_one(row).items()}
            for each in alone
        ]
        last = defaultdict(float)
        for label, p in model.predict_proba_one(row).items():
            last[paths[label]] += p
        total = walked(["/".join(path) for path in paths.values()], [*of_ranks, last])
        new = [each.predict_proba_one(row, new=True)[NEW] for each in (*alone, model)]
        for (node, p), of_rank in zip(
            found.nodes.items(), np.maximum.accumulate(new).tolist(), strict=False
        ):
            assert found.new[node] == pytest.approx(of_rank)
            assert p == pytest.approx(total[tuple(node.split(";"))] * (1 - of_rank), abs=1e-6)
        assert found.nodes and (found.probability >= 0.5 or found.path == "")


def test_new_is_the_estimate_of_each_rank_and_never_below_that_above():
    X, y = stream_of(REGULAR, 200)
    model = OnlineClassifier(ranks=";").partial_fit(X, y)
    learners = [*model._learner.ranks.learners, model._learner]
    said = [each.assess(next(iter(model._input.rows_to_score(model, X[:20])))) for each in learners]
    assert all(isinstance(each, Assessment) for each in said)
    wanted = np.maximum.accumulate([each.new for each in said]).T
    found = [[*each.new.values()] for each in model.predict_path(X[:20], 0)]
    np.testing.assert_allclose(found, wanted)


# ---- copies and files ----------------------------------------------------------------------------


def test_copies_go_on_as_the_model_does(tmp_path):
    X, y = stream_of(RAGGED, 160)
    model = OnlineClassifier(ranks=";").partial_fit(X[:80], y[:80])
    model.save(tmp_path / "model")
    copies = [load(tmp_path / "model"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for each in (model, *copies):
        for x, label in zip(X[80:], y[80:], strict=True):
            each.learn_one(x, label)
    wanted = model.predict_path(X)
    for each in copies:
        assert each.predict_path(X) == wanted
        pairs = zip(each._learner.ranks.learners, model._learner.ranks.learners, strict=True)
        assert all(contents(one) == contents(other) for one, other in pairs)


def test_a_journal_undoes_rows_and_opens_its_snapshots(tmp_path, caplog):
    X, y = stream_of(RAGGED, 120)
    journal = Journal(tmp_path / "taxa.db")
    model = journal.open("taxa", OnlineClassifier(ranks=";"))
    for number, (x, label) in enumerate(zip(X, y, strict=True)):
        model.learn_one(x, label, id=str(number))
    model.undo("40")
    journal.close()
    alone = OnlineClassifier(ranks=";")
    for number in range(120):
        alone = alone if number == 40 else alone.learn_one(X[number], y[number])
    reopened = Journal(tmp_path / "taxa.db")
    loaded = reopened.open("taxa")
    found = [loaded.predict_path_one(x) for x in X[:20]]
    reopened.close()
    assert found == alone.predict_path(X[:20])
    assert "learnt again" not in caplog.text


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda m, _: m["ranks"].pop(), "ranks are not those of its labels"),
        (lambda m, _: m["ranks"].reverse(), "labels"),
        (lambda m, _: m["ranks"][0].pop("learners"), r"metadata have no ranks\[0\].learners"),
        (lambda m, _: m["ranks"][0]["learners"].append({}), r"ranks\[0\].learners\[1\]"),
        (lambda m, _: m["ranks"][0]["learners"][0]["labels"].__setitem__(0, "z"), "other nodes"),
        (lambda m, _: m["ranks"][0]["learners"][0]["labels"].__setitem__(0, "; "), "names no rank"),
        (lambda m, _: m.update(ranks=[3]), "ranks is"),
        (lambda m, _: m["settings"]["parameters"].pop("ranks"), "none in the settings"),
        (lambda m, a: a.pop("rank.0.counts"), "counts"),
        (lambda m, a: a.pop("rank.1.statistics.pooled"), "statistics.pooled"),
    ],
)
def test_altered_files_are_refused(change, words, tmp_path):
    X, y = stream_of(REGULAR, 60)
    OnlineClassifier(ranks=";").partial_fit(X, y).save(tmp_path / "model")
    arrays, metadata = model_file.load(tmp_path / "model")
    arrays = dict(arrays)
    change(metadata, arrays)
    model_file.save(tmp_path / "altered", arrays, metadata)
    with pytest.raises(KeslerError, match=words):
        load(tmp_path / "altered")


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [7, "; ", "k__;p__", ("a", "b")])
def test_a_label_that_is_no_path_is_refused_before_anything_is_learnt(label):
    X, y = stream_of(REGULAR, 30)
    model = OnlineClassifier(ranks=";").partial_fit(X, y)
    before = contents(model._learner)
    for learn in (
        lambda: model.partial_fit(X[:2], [y[0], label]),
        lambda: model.learn_one(X[0], label),
    ):
        with pytest.raises(KeslerError, match=r"cannot be ordered|names no rank"):
            learn()
    assert contents(model._learner) == before
    assert model.learn_one({"of a new word": 1}, y[0]).n_trials_ == 31


@pytest.mark.parametrize("ranks", ["", 7, True])
def test_what_is_no_separator_is_refused(ranks):
    with pytest.raises(KeslerError, match=f"separator={ranks!r}"):
        OnlineClassifier(ranks=ranks).learn_one({"a": 1}, "a;b")


def test_ranks_have_no_limit_on_memory():
    with pytest.raises(KeslerError, match="leave one out"):
        OnlineClassifier(ranks=";", memory_limit="1 GB").learn_one({"a": 1}, "a;b")


def test_a_separator_that_no_label_has_is_told(tmp_path, capsys):
    with pytest.warns(UserWarning, match=r"ranks='\|': no label has '\|' between two names"):
        OnlineClassifier(ranks="|").fit([{"a": 1}, {"b": 1}], ["k;g", "k;h"])
    data = write_jsonl(tmp_path / "rows.jsonl", [("k;g", ["a"]), ("k;h", ["b"])])
    done = kesler(capsys, "learn", tmp_path / "model", data, "--ranks", "|")
    assert done.code == 0 and "between two names" in done.err
    warned = kesler(capsys, "learn", tmp_path / "other", data, "--ranks", ";").err
    assert "between two names" not in warned


def test_another_separator_than_that_of_the_ranks_is_refused():
    model = OnlineClassifier(ranks="/").learn_one({"a": 1}, "a/b")
    assert model.predict_path_one({"a": 1}, 0).path == "a/b"
    assert model.predict_path_one({"a": 1}, 0, "/").path == "a/b"
    with pytest.raises(KeslerError, match=r"separator=';'.*separated by '/'"):
        model.predict_path([{"a": 1}], separator=";")


def test_ranks_of_members_have_no_effect_and_shards_refuse_them():
    X, y = stream_of(REGULAR, 40)
    members = [OnlineClassifier("multi", update="pa1", ranks=";"), OnlineClassifier()]
    assert Ensemble(members).partial_fit(X, y)._learner.ranks is None
    with pytest.raises(KeslerError, match="ranks=';': shards"):
        mixable(OnlineClassifier(ranks=";"), dense=False)


def test_a_deeper_path_that_could_not_be_learnt_leaves_a_model_that_works(tmp_path, monkeypatch):
    model = OnlineClassifier(ranks=";").partial_fit([{"a": 1}, {"b": 1}], ["k;g", "k;h"])
    wanted = model.predict_path([{"a": 1}])
    with monkeypatch.context() as patch:
        patch.setattr(Learner, "observe", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.partial_fit([{"c": 1}], ["k;g;s"])
    assert model.predict_path([{"a": 1}]) == wanted
    model.save(tmp_path / "model")
    for each in (model, load(tmp_path / "model")):
        assert each.learn_one({"c": 1}, "k;g;s").predict_path_one({"c": 1}, 0).path == "k;g;s"


# ---- the command line ----------------------------------------------------------------------------


def test_the_command_line_learns_ranks_and_answers_with_paths(tmp_path, capsys):
    X, y = stream_of(REGULAR, 200)
    rows = [
        (label, ["x", *(f"w{ord(c)}" for c in "".join(x))]) for x, label in zip(X, y, strict=True)
    ]
    data, model = write_jsonl(tmp_path / "rows.jsonl", rows), tmp_path / "model"
    assert kesler(capsys, "learn", model, data, "--ranks", ";").code == 0
    asked = ("predict", model, data, "--path", ";", "--min-confidence", 0.2)
    loaded = load(model)
    wanted = [
        each.path for each in loaded.predict_path([" ".join(words) for _, words in rows], 0.2)
    ]
    assert kesler(capsys, *asked).lines == wanted
    shown = kesler(capsys, "show", model, "--json", "-").out
    assert json.loads(shown)["mistakes_of_ranks"] == loaded.mistakes_of_ranks_[:-1]
