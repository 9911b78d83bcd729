"""The place of each row's class among those known, and what is made of it: recall and NDCG at k."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import ndcg_score, top_k_accuracy_score

from commands import kesler
from kesler import (
    KeslerError,
    OnlineClassifier,
    OnlineOrdinalClassifier,
    compare,
    progressive_validate,
)
from kesler.learner.places import places_among_candidates
from kesler.metrics import PlaceCounts
from kesler.online.blocks import judged_rows

RNG = np.random.default_rng(5)
WORDS = [f"w{i}" for i in range(60)]


def sparse_rows(n_rows, n_classes, seed=0):
    """Texts whose words depend on their class, and classes that come until the end."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, n_classes, n_rows)
    own = np.random.default_rng(1).integers(0, len(WORDS), (n_classes, 3))
    noise = rng.integers(0, len(WORDS), (n_rows, 2))
    texts = [" ".join(WORDS[i] for i in [*own[c], *more]) for c, more in zip(y, noise, strict=True)]
    return texts, [f"c{c}" for c in y]


def dense_rows(n_rows, n_classes):
    y = RNG.integers(0, n_classes, n_rows)
    return (RNG.normal(size=(n_rows, 4)) + y[:, None] * 0.4).astype(np.float32), y.tolist()


def places_one_by_one(model, X, y):
    """The place of each class by all scores before the row is learnt; of equal ones, the first."""
    found = []
    for row, label in zip(X, y, strict=True):
        known = model.classes_by_code_.tolist() if model.n_known_ else []
        if label in known:
            scores = model._scores([row])[0].tolist()
            ranked = sorted(range(len(known)), key=lambda r: (-scores[r], r))
            found.append(1 + [known[r] for r in ranked].index(label))
        else:
            found.append(0)
        model.partial_fit([row], [label])
    return found


MODELS = {
    "default of texts": (lambda: OnlineClassifier(), sparse_rows, 12),
    "candidates": (lambda: OnlineClassifier(candidates=4), sparse_rows, 150),
    "candidates, no estimates": (
        lambda: OnlineClassifier(candidates=4, uncertainty=False),
        sparse_rows,
        150,
    ),
    "default of numbers": (lambda: OnlineClassifier(), dense_rows, 6),
    "no estimates": (lambda: OnlineClassifier("multi", uncertainty=False), dense_rows, 6),
    "perceptron, with ties": (
        lambda: OnlineClassifier("multi", update="perceptron", uncertainty=False),
        sparse_rows,
        12,
    ),
    "kernel": (lambda: OnlineClassifier(kernel="rbf", sigma=1.0), dense_rows, 4),
    "ranks": (lambda: OnlineOrdinalClassifier(), dense_rows, 5),
}


@pytest.mark.parametrize("name", MODELS)
def test_places_are_those_of_scores_before_each_row(name):
    make, rows, n_classes = MODELS[name]
    X, y = rows(500, n_classes)
    result = progressive_validate(make(), X, y)
    assert result.places.tolist() == places_one_by_one(make(), X, y)
    assert ((result.places == 0) == result.first_seen).all()


@pytest.mark.parametrize("name", ["candidates", "default of numbers", "no estimates"])
def test_a_run_that_continues_has_places_from_the_first_row_on(name):
    make, rows, n_classes = MODELS[name]
    X, y = rows(400, n_classes)
    whole = progressive_validate(make(), X, y).places
    model = make().partial_fit(X[:250], y[:250])
    weights = np.ones(150)
    weights[::7] = 0
    continued = progressive_validate(model, X[250:], y[250:]).places
    assert continued.tolist() == whole[250:].tolist()
    model = make().partial_fit(X[:250], y[:250])
    assert len(progressive_validate(model, X[250:], y[250:], weights).places) == weights.sum()


def test_places_among_candidates_of_equal_scores_are_in_the_order_of_classes():
    """As in `write_scores`, the classes that are no candidates are below and equal."""
    n_rows, n_classes, width = 300, 20, 6
    classes = np.sort([RNG.permutation(n_classes)[:width] for _ in range(n_rows)], axis=1)
    scores = RNG.integers(0, 3, (n_rows, width)).astype(np.float32)
    counts, codes = RNG.integers(1, width + 1, n_rows), RNG.integers(0, n_classes, n_rows)
    expected = []
    for row, own, n, code in zip(classes.tolist(), scores, counts.tolist(), codes, strict=True):
        among = dict(zip(row[:n], own[:n].tolist(), strict=True))
        order = sorted(range(n_classes), key=lambda r: (-among.get(r, -1), r))
        expected.append(1 + order.index(code))
    scores = np.column_stack([scores, np.zeros(n_rows, np.float32)])
    classes = np.column_stack([classes, np.zeros(n_rows, np.int64)])
    arrays = {"classes": classes, "scores": scores, "counts": counts}
    arrays["known"] = np.full(n_rows, n_classes)
    said = SimpleNamespace(arrays=SimpleNamespace(**{n: np.array(a) for n, a in arrays.items()}))
    assert places_among_candidates(said, codes).tolist() == expected


def test_an_ensemble_has_places_of_its_combined_scores():
    X, y = dense_rows(400, 6)
    result = progressive_validate(OnlineClassifier(update="ensemble"), X, y)
    assert ((result.places == 1) == (result.predictions == result.targets))[
        ~result.first_seen
    ].all()
    assert result.recall_at(1) < result.recall_at(3) < result.recall_at(6) == 1


def test_measures_are_those_of_scikit_learn():
    scores = RNG.normal(size=(400, 9))
    y = RNG.integers(0, 9, 400)
    own = np.take_along_axis(scores, y[:, None], axis=1)
    counts = PlaceCounts.of((scores > own).sum(axis=1) + 1, 7)
    halves = [PlaceCounts.of((scores > own)[part].sum(axis=1) + 1, 7) for part in np.split(
        np.arange(400), 2)]  # fmt: skip
    assert (halves[0] + halves[1]).counts.tolist() == counts.counts.tolist()
    relevant = np.arange(9) == y[:, None]
    for k in range(1, 8):
        assert counts.recall(k) == pytest.approx(top_k_accuracy_score(y, scores, k=k))
        assert counts.ndcg(k) == pytest.approx(ndcg_score(relevant, scores, k=k))


def test_rows_of_unknown_classes_do_not_count():
    counts = PlaceCounts.of(np.array([0, 0, 2]), 2)
    assert (counts.recall(1), counts.recall(2)) == (0, 1)
    assert np.isnan(PlaceCounts.of(np.array([0]), 2).ndcg(2))


def test_results_reports_and_tables_say_the_same(capsys, tmp_path):
    X, y = dense_rows(600, 8)
    result = progressive_validate(OnlineClassifier(), X, y)
    recall, ndcg = result.recall_at(3), result.ndcg_at(3)
    assert 0.1 < ndcg < recall < 1
    report = result.report()
    found = {each.k: (each.accuracy, each.ndcg) for each in report.top_accuracy}
    assert found == {k: (result.recall_at(k), result.ndcg_at(k)) for k in (1, 3, 5)}
    text = str(report).replace("\n  ", " ")
    assert f"top-3 accuracy {100 * recall:.2f} %" in text and f"NDCG@3 {ndcg:.3f}" in text
    shown = f"{100 * recall:>13.2f}{ndcg:>13.3f}"
    compared = compare(["default", "last answer again"], X, y, top=3)
    assert shown in str(compared) and "top-3 %       NDCG@3" in str(compared)
    frame = compared.to_frame()
    assert frame["recall_at_3"][0] == recall and np.isnan(frame["ndcg_at_3"][1])
    file, account = tmp_path / "rows.npz", tmp_path / "run.json"
    np.savez(file, X=X, y=y)
    asked = ("--methods", "default,last answer again", "--top", 3, "--json", account)
    assert shown in kesler(capsys, "compare", file, *asked).out
    methods = json.loads(account.read_text())["methods"]
    assert methods["default"]["top"][2] == {"k": 3, "recall": recall, "ndcg": ndcg}
    assert "top" not in methods["last answer again"]


def test_tables_without_top_are_as_they_were(capsys, tmp_path):
    X, y = sparse_rows(60, 4)
    assert "top" not in str(compare("default", X, y))
    assert "recall_at_3" not in compare("default", X, y).to_frame()


def test_what_has_no_places_says_so():
    X, y = sparse_rows(60, 4)
    result = progressive_validate(lambda X, y, x: y[-1], X, y)
    assert result.places is None and result.report().top_accuracy == ()
    with pytest.raises(KeslerError, match="no places of classes"):
        result.recall_at(3)
    for wrong in (0, True, 1.5):
        with pytest.raises(KeslerError, match="1 or more"):
            progressive_validate(OnlineClassifier(), X, y).ndcg_at(wrong)
        with pytest.raises(KeslerError, match="1 or more"):
            compare("default", X, y, top=wrong)


@pytest.mark.parametrize("uncertainty", [True, False])
@pytest.mark.parametrize("name", ["candidates", "default of numbers"])
def test_rows_are_judged_as_by_the_numbers_of_all_classes(name, uncertainty, monkeypatch):
    make, rows, n_classes = MODELS[name]
    X, y = rows(600, n_classes)
    model = make().set_params(uncertainty=uncertainty).partial_fit(X[:500], y[:500])
    labels = model.classes_by_code_.tolist()
    codes = [labels.index(label) if label in labels else len(labels) for label in y[500:]]
    codes[3] = len(labels) + 2  # of a class that is not known
    (read,) = model._input.rows_to_score(model, X[500:])
    monkeypatch.setattr("kesler.data.inputs.BLOCK_ENTRIES", 7 * len(labels))
    found = judged_rows(model, read, np.array(codes, dtype=np.int32))
    scores, p = model._scores(X[500:]), model._fitted().probabilities(read)
    assert [labels[code] for code in found.predictions] == model.predict(X[500:]).tolist()
    if uncertainty:
        assert found.confidences.tolist() == model.confidence(X[500:]).tolist()
    else:
        assert found.confidences == pytest.approx(p.max(axis=1))
    for i, code in enumerate(codes):
        if code >= len(labels):
            assert found.places[i] == 0 and np.isnan(found.of_targets[i])
            continue
        order = sorted(range(len(labels)), key=lambda r, own=scores[i]: (-own[r], r))
        assert found.places[i] == 1 + order.index(code)
        assert found.of_targets[i] == pytest.approx(p[i, code])


def test_rows_with_candidates_are_judged_without_the_numbers_of_all_classes(monkeypatch):
    X, y = sparse_rows(400, 150)
    widths = []
    for name in ("write_scores", "write_probabilities"):
        monkeypatch.setattr(
            f"kesler.learner.compared.{name}", lambda said, found: widths.append(found.shape[1])
        )
    model = OnlineClassifier(candidates=4)
    assert len(progressive_validate(model, X, y).places) == 400
    (read,) = model._input.rows_to_score(model, X)
    codes = np.array([model.classes_by_code_.tolist().index(label) for label in y], np.int32)
    judged_rows(model, read, codes)
    assert max(widths) == 0
