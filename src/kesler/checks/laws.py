"""The laws: each is a function of an unfitted estimator."""

from __future__ import annotations

import copy
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from kesler.checks.subject import (
    LABELS,
    LEAST_ACCURACY,
    LEAST_KEPT,
    MOST_PASSES,
    PROBES,
    LawBroken,
    NotApplicable,
    Subject,
    events_only,
    learns_events,
    learns_rows,
    learnt,
    named,
    params_of,
    params_only,
    require,
    require_refusal,
    require_same,
    rows_only,
    shuffles,
    stream,
)


def batch_equals_stream(estimator: Any) -> None:
    """Require that rows learnt in one call, in pieces or one by one give the same model."""
    rows_only(estimator)
    if shuffles(estimator):
        raise NotApplicable("it shuffles the rows of a call (shuffle=True)")
    X, y = stream()
    whole = Subject(estimator).learn(X, y)
    for name, ends in (("one by one", range(1, 81)), ("in pieces of 7", [*range(7, 80, 7), 80])):
        pieces, start = Subject(estimator), 0
        for end in ends:
            pieces.learn(X[start:end], y[start:end])
            start = end
        require_same(whole, pieces, f"rows {name} do not give the model of one call")


def stream_is_deterministic(estimator: Any) -> None:
    """Require that two copies that learn the same rows give the same predictions."""
    random = params_of(estimator).get("random_state", params_of(estimator).get("seed", 0)) is None
    if random and shuffles(estimator):
        raise NotApplicable("it shuffles rows without a seed (random_state=None)")
    one, other = learnt(estimator), learnt(estimator)
    require_same(one, other, "the same rows give two models")


def _before_a_class_appears(estimator: Any) -> tuple[Subject, Any, Any, Any]:
    """Return a new subject, a stream, and which of its rows are of the last class."""
    subject = Subject(estimator)
    if subject.needs_classes:
        raise NotApplicable("all classes must be given in the first call of partial_fit")
    X, y = stream(160)
    return subject, X, y, y == LABELS[3]


def classes_may_appear(estimator: Any) -> None:
    """Require that a class may appear after others were learnt, and is then predicted."""
    subject, X, y, late = _before_a_class_appears(estimator)
    subject.learn(X[~late], y[~late])
    require(LABELS[3] not in subject.predict(PROBES), "it predicts a class before its first row")
    for _ in range(3):
        subject.learn(X[-80:], y[-80:])
    said = np.array(subject.predict(X[late]))
    require(bool((said == LABELS[3]).any()), "it never predicts a class that appeared later")
    known = getattr(subject.model, "classes_", LABELS)
    require(LABELS[3] in list(known), "classes_ lacks a class that appeared later")


def growth_forgets_nothing(estimator: Any) -> None:
    """Require that rows of the earlier classes are still predicted after a class appears."""
    subject, X, y, late = _before_a_class_appears(estimator)
    early, of_early = X[~late], y[~late]
    subject.learn(early, of_early)
    before = np.mean(np.array(subject.predict(early)) == of_early)
    subject.learn(X[late][:1], y[late][:1])
    after = np.mean(np.array(subject.predict(early)) == of_early)
    require(
        bool(after >= LEAST_KEPT * before),
        f"one row of a new class lowers the accuracy on the others from {before:.2f} to "
        f"{after:.2f}",
    )


def renaming_classes_changes_nothing(estimator: Any) -> None:
    """Require that other names of the classes give the same predictions under these names."""
    X, y = stream()
    # Some estimators seed each class in the order of the names: with shuffling it must stay.
    names = ("p", "q", "r", "s") if shuffles(estimator) else ("z", "m", "x", "c")
    renamed = dict(zip(LABELS, names, strict=True))
    plain = Subject(_seeded(estimator)).learn(X, y)
    other = Subject(_seeded(estimator))
    other.learn(X, np.array([renamed[label] for label in y]), names)
    pairs = zip(plain.predict(PROBES), other.predict(PROBES), strict=True)
    differing = sum(renamed.get(a) != b for a, b in pairs)
    require(not differing, f"renaming changes {differing} of {len(PROBES)} predictions")


def _seeded(estimator: Any) -> Any:
    """Return a copy with random_state=0 where it is None, since runs are compared."""
    made = copy.deepcopy(estimator)
    if hasattr(made, "set_params") and params_of(made).get("random_state", 0) is None:
        made.set_params(random_state=0)
    return made


def predict_changes_nothing(estimator: Any) -> None:
    """Require that predictions between the rows do not change what is learnt."""
    X, y = stream()
    silent, asked = Subject(_seeded(estimator)), Subject(_seeded(estimator))
    for start in range(0, 80, 10):
        part = slice(start, start + 10)
        silent.learn(X[part], y[part])
        asked.learn(X[part], y[part])
        asked.predict(PROBES)
        asked.scores(PROBES)
    require_same(silent, asked, "predictions change what is learnt")


def predictions_do_not_depend_on_neighbours(estimator: Any) -> None:
    """Require that the prediction for a row is the same alone and among other rows."""
    rows_only(estimator)
    subject = learnt(estimator)
    alone = [subject.predict(row[None])[0] for row in PROBES]
    same = alone == subject.predict(PROBES)
    require(same, "a row alone is predicted otherwise than with others")


def predictions_are_known_labels(estimator: Any) -> None:
    """Require one prediction for each row, which is a label that was learnt."""
    said = learnt(estimator).predict(PROBES)
    require(len(said) == len(PROBES), f"{len(PROBES)} rows have {len(said)} predictions")
    strange = sorted({repr(label) for label in said if label not in LABELS})
    require(not strange, f"it predicts {', '.join(strange)}, which it did not learn")


def learns(estimator: Any) -> None:
    """Require that rows of classes with one large feature each can be learnt."""
    X, y = stream(160)
    subject, share = Subject(_seeded(estimator)), 0.0
    for _ in range(MOST_PASSES):
        share = float(np.mean(np.array(subject.learn(X, y).predict(X)) == y))
        if share >= LEAST_ACCURACY:
            return
    raise LawBroken(f"it predicts {share:.2f} of rows that it learnt {MOST_PASSES} times")


def pickled_models_resume(estimator: Any) -> None:
    """Require that a model pickled amid the stream resumes as if it had not been."""
    X, y = stream()
    whole, resumed = Subject(_seeded(estimator)), Subject(_seeded(estimator))
    whole.learn(X[:40], y[:40])
    resumed.learn(X[:40], y[:40])
    resumed.model = pickle.loads(pickle.dumps(resumed.model))
    require_same(whole, resumed, "a pickled model predicts otherwise")
    for each in (whole, resumed):
        each.learn(X[40:], y[40:])
    require_same(whole, resumed, "it resumes otherwise")


def saved_models_resume(estimator: Any) -> None:
    """Require that a model saved by its method and loaded resumes as if it had not been."""
    from kesler.online.loading import load

    if not (hasattr(estimator, "save") and type(estimator).__module__.startswith("kesler.")):
        raise NotApplicable("it has no save whose files kesler.load reads")
    X, y = stream()
    whole, resumed = learnt(estimator, 40), learnt(estimator, 40)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.kes")
        resumed.model.save(path)
        resumed.model = load(path, custom=estimator.get_params(deep=False).values())
    for each in (whole, resumed):
        each.learn(X[40:], y[40:])
    require_same(whole, resumed, "it resumes otherwise")


def copies_share_nothing(estimator: Any) -> None:
    """Require that what one copy learns does not change another copy."""
    X, y = stream()
    first, reference = learnt(estimator, 40), learnt(estimator, 40)
    before, second = first.predict(PROBES), copy.deepcopy(first)
    swapped = np.array(LABELS[::-1])[[LABELS.index(label) for label in y]]
    second.learn(X, swapped)
    Subject(estimator).learn(X, swapped)
    require(before == first.predict(PROBES), "a copy that learns changes the original")
    if not shuffles(estimator):
        require_same(first, reference, "copies change one another")


def clones_are_unfitted(estimator: Any) -> None:
    """Require that a clone of a fitted estimator learns as a new one does."""
    new, fitted = Subject(_seeded(estimator)), Subject(_seeded(estimator)).learn(*stream())
    cloned = Subject(_clone(fitted.model))
    X, y = stream(seed=2)
    require_same(new.learn(X, y), cloned.learn(X, y), "a clone is not as a new estimator")


def _clone(model: Any) -> Any:
    """Return an unfitted copy, by the method of river or the function of scikit-learn."""
    if callable(getattr(model, "clone", None)):
        return model.clone()
    params_only(model)
    from sklearn.base import clone

    return clone(model)


def parameters_are_kept(estimator: Any) -> None:
    """Require that `set_params` takes what `get_params` returns, and learning changes neither."""
    params_only(estimator)
    subject = Subject(estimator)
    before = {name: repr(value) for name, value in params_of(subject.model).items()}
    subject.model.set_params(**params_of(subject.model))
    same = before == {name: repr(value) for name, value in params_of(subject.model).items()}
    require(same, "set_params(**get_params()) changes parameters")
    subject.learn(*stream())
    after = params_of(subject.model)
    changed = [name for name, text in before.items() if repr(after.get(name)) != text]
    require(not changed, f"learning changes the parameters {', '.join(changed)}")


def learning_returns_the_estimator(estimator: Any) -> None:
    """Require that `partial_fit` returns the estimator itself."""
    rows_only(estimator)
    subject = learnt(estimator)
    returned = subject.model.partial_fit(*stream())
    require(returned is subject.model, f"partial_fit returns {type(returned).__name__}")


def inputs_are_untouched(estimator: Any) -> None:
    """Require that learning and predicting change neither rows nor labels."""
    X, y = stream()
    subject = Subject(estimator)
    if not subject.events:
        subject.learn(X, y).predict(X)
        same = np.array_equal(X, stream()[0]) and np.array_equal(y, stream()[1])
        require(same, "it changes the arrays that it is given")
    if learns_events(estimator):
        model, event = copy.deepcopy(estimator), named(X[0])
        model.learn_one(event, LABELS[0])
        model.predict_one(event)
        require(event == named(stream()[0][0]), "it changes the mapping that it is given")


def order_of_features_changes_nothing(estimator: Any) -> None:
    """Require that the order of the keys of a mapping changes nothing."""
    events_only(estimator)
    plain, turned = Subject(estimator, events=True), Subject(estimator, events=True)
    X, y = stream()
    for t, (row, label) in enumerate(zip(X, y, strict=True)):
        event = named(row)
        plain.model.learn_one(event, label)
        turned.model.learn_one(dict(_turned(event, t)), label)
    said = [turned.model.predict_one(dict(_turned(named(row), 3))) for row in PROBES]
    require(said == plain.predict(PROBES), "another order of the keys changes predictions")


def _turned(event: dict[str, float], by: int) -> list[tuple[str, float]]:
    items = list(event.items())
    return items[by % len(items) :] + items[: by % len(items)]


def unseen_features_are_allowed(estimator: Any) -> None:
    """Require that a new feature may appear in a prediction and in a row to learn."""
    events_only(estimator)
    subject = Subject(estimator, events=True).learn(*stream())
    event = {"f0": 3.0, "unseen": 1.0}
    said = subject.model.predict_one(event)
    require(said in LABELS, f"with an unseen feature it predicts {said!r}")
    subject.model.learn_one(event, LABELS[0])
    said = subject.model.predict_one(event)
    require(said in LABELS, f"after learning an unseen feature it predicts {said!r}")


def another_width_is_refused(estimator: Any) -> None:
    """Require that rows with fewer features than were learnt are refused."""
    rows_only(estimator)
    subject = learnt(estimator)
    narrow, y = PROBES[:, :3], stream(60)[1]
    require_refusal(lambda: subject.predict(narrow), "it predicts rows with too few features")
    require_refusal(lambda: subject.learn(narrow, y), "it learns rows with too few features")


def missing_values_are_refused(estimator: Any) -> None:
    """Require that NaN is refused, unless the tags allow it; a refused call changes nothing."""
    rows_only(estimator)
    subject, reference = learnt(_seeded(estimator)), learnt(_seeded(estimator))
    X, y = stream(seed=3)
    X[-1, 2] = np.nan
    if _allows_nan(estimator):
        subject.learn(X, y)
        subject.predict(X)
        return
    require_refusal(lambda: subject.predict(X), "it predicts rows with NaN")
    require_refusal(lambda: subject.learn(X, y), "it learns rows with NaN")
    require_same(subject, reference, "a refused call changes the model")


def _allows_nan(estimator: Any) -> bool:
    if not hasattr(estimator, "__sklearn_tags__"):
        return False
    from sklearn.utils import get_tags

    return bool(get_tags(estimator).input_tags.allow_nan)


def lengths_must_agree(estimator: Any) -> None:
    """Require that fewer labels than rows are refused, and change nothing."""
    rows_only(estimator)
    subject, reference = learnt(_seeded(estimator)), learnt(_seeded(estimator))
    X, y = stream(seed=3)
    require_refusal(lambda: subject.learn(X, y[:-1]), "it learns more rows than labels")
    require_same(subject, reference, "a refused call changes the model")


def empty_batches_change_nothing(estimator: Any) -> None:
    """Require that a batch without rows is refused with a ValueError, or changes nothing."""
    rows_only(estimator)
    subject, reference = learnt(_seeded(estimator)), learnt(_seeded(estimator))
    X, y = stream()
    try:
        subject.learn(X[:0], y[:0])
    except ValueError:
        pass
    require_same(subject, reference, "an empty batch changes the model")


def unfitted_predictions_are_refused(estimator: Any) -> None:
    """Require that `predict` before the first row raises an error, such as NotFittedError."""
    rows_only(estimator)
    subject = Subject(estimator)
    try:
        said = subject.predict(PROBES)
    except (ValueError, AttributeError, RuntimeError):
        return
    raise LawBroken(f"before the first row it predicts {said[0]!r}")


def fit_starts_anew(estimator: Any) -> None:
    """Require that `fit` gives the same model whatever was learnt before."""
    if not (learns_rows(estimator) and hasattr(estimator, "fit")):
        raise NotApplicable("it has no fit")
    if params_of(estimator).get("warm_start"):
        raise NotApplicable("warm_start asks fit to go on")
    new, fitted = Subject(_seeded(estimator)), learnt(_seeded(estimator))
    X, y = stream(seed=2)
    for each in (new, fitted):
        each.model.fit(X, y)
    require_same(new, fitted, "fit depends on what was learnt before")


LAWS: dict[str, Callable[[Any], None]] = {
    law.__name__: law
    for law in (
        batch_equals_stream,
        stream_is_deterministic,
        classes_may_appear,
        growth_forgets_nothing,
        renaming_classes_changes_nothing,
        predict_changes_nothing,
        predictions_do_not_depend_on_neighbours,
        predictions_are_known_labels,
        learns,
        pickled_models_resume,
        saved_models_resume,
        copies_share_nothing,
        clones_are_unfitted,
        parameters_are_kept,
        learning_returns_the_estimator,
        inputs_are_untouched,
        order_of_features_changes_nothing,
        unseen_features_are_allowed,
        another_width_is_refused,
        missing_values_are_refused,
        lengths_must_agree,
        empty_batches_change_nothing,
        unfitted_predictions_are_refused,
        fit_starts_anew,
    )
}
"""The laws by name: functions of an unfitted estimator that raise LawBroken or NotApplicable."""
