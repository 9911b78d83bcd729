"""A small honest estimator of streams, and copies with one planted bug each."""

import itertools

import numpy as np
from sklearn.base import BaseEstimator


class Honest(BaseEstimator):
    """A multiclass Perceptron over arrays or mappings, with a weight vector for each class."""

    def __init__(self, step=1.0):
        self.step = step

    def partial_fit(self, X, y):
        X, y = self._checked(X), np.asarray(y)
        if len(X) != len(y):
            raise ValueError(f"{len(X)} rows have {len(y)} labels")
        for row, label in zip(X, y.tolist(), strict=True):
            self._trial(dict(enumerate(row.tolist())), label)
        self.n_features_in_ = X.shape[1]
        return self

    def fit(self, X, y):
        for name in ("weights_", "n_features_in_"):
            vars(self).pop(name, None)
        return self.partial_fit(X, y)

    def predict(self, X):
        if not vars(self).get("weights_"):
            raise ValueError("the estimator is not fitted")
        return np.array([self.predict_one(dict(enumerate(row))) for row in self._checked(X)])

    def learn_one(self, x, y):
        self._trial(x, y)

    def predict_one(self, x):
        scores = {label: self._score(x, label) for label in self.weights_}
        return max(scores, key=scores.get) if scores else None

    @property
    def classes_(self):
        return np.array(sorted(vars(self).get("weights_", ())))

    def _checked(self, X):
        X = np.asarray(X, dtype=float)
        if X.shape[1] != vars(self).get("n_features_in_", X.shape[1]):
            raise ValueError(f"{X.shape[1]} features, but {self.n_features_in_} were learnt")
        if not np.isfinite(X).all():
            raise ValueError("a value is not finite")
        return X

    def _score(self, x, label):
        weights = self.weights_[label]
        return sum(weights.get(name, 0.0) * value for name, value in sorted(x.items(), key=str))

    def _trial(self, x, label):
        self.weights_ = vars(self).get("weights_", {})
        said = self.predict_one(x)
        self.weights_.setdefault(label, {})
        if said != label:
            self._move(label, x, self.step)
            if said is not None:
                self._move(said, x, -self.step)

    def _move(self, label, x, by):
        weights = self.weights_[label]
        for name, value in x.items():
            weights[name] = weights.get(name, 0.0) + by * value


class LearnsBackwards(Honest):
    def partial_fit(self, X, y):
        return super().partial_fit(X[::-1], y[::-1])


class DrawsWithoutASeed(Honest):
    signs = itertools.cycle((1.0, -1.0))  # two models in turn never draw the same

    def _move(self, label, x, by):
        if "sign_" not in vars(self):
            self.sign_ = next(self.signs)
        super()._move(label, x, by * self.sign_)


class IgnoresLaterClasses(Honest):
    def _trial(self, x, label):
        if len(vars(self).get("weights_", ())) < 3 or label in self.weights_:
            super()._trial(x, label)


class ForgetsWhenClassesAppear(Honest):
    def _trial(self, x, label):
        known = vars(self).get("weights_", {})
        if len(known) == 3 and label not in known:
            for weights in known.values():
                weights.clear()
        super()._trial(x, label)


class PrefersNames(Honest):
    def _score(self, x, label):
        return super()._score(x, label) - 2.0 * (label < "d")


class LearnsFromPredictions(Honest):
    def predict_one(self, x):
        said = super().predict_one(x)
        if said is not None:
            self._move(said, x, 1.0)
        return said


class StandardisesByTheBatch(Honest):
    def predict(self, X):
        return super().predict(self._checked(X) - np.mean(X, axis=0))


class PredictsCodes(Honest):
    def predict(self, X):
        return np.searchsorted(self.classes_, super().predict(X))


class NeverLearns(Honest):
    def _move(self, label, x, by):
        pass


class PicklesHalf(Honest):
    def __getstate__(self):
        state = dict(super().__getstate__())
        state["weights_"] = {label: {} for label in state.get("weights_", ())}
        return state

    def __deepcopy__(self, memo):
        return copy_of(self)


class SharesItsWeights(Honest):
    def __deepcopy__(self, memo):
        made = type(self)(self.step)
        vars(made).update(vars(self))
        return made


class ClonesItsWeights(Honest):
    def clone(self):
        return copy_of(self)


class ChangesItsStep(Honest):
    def partial_fit(self, X, y):
        super().partial_fit(X, y)
        self.step = self.step / 2 if self.step > 0.5 else self.step
        return self


class ReturnsNothing(Honest):
    def partial_fit(self, X, y):
        super().partial_fit(X, y)


class ScalesItsInput(Honest):
    def partial_fit(self, X, y):
        X /= 2.0
        return super().partial_fit(X, y)


class ReadsKeysByPosition(Honest):
    def learn_one(self, x, y):
        super().learn_one(dict(enumerate(x.values())), y)

    def predict_one(self, x):
        return super().predict_one(dict(enumerate(x.values())))


class RaisesAtUnseenFeatures(Honest):
    def _score(self, x, label):
        weights = self.weights_[label]
        return sum(weights[name] * value for name, value in x.items()) if weights else 0.0


class TakesAnyWidth(Honest):
    def _checked(self, X):
        vars(self).pop("n_features_in_", None)
        return super()._checked(X)


class TakesNaN(Honest):
    def _checked(self, X):
        return super()._checked(np.nan_to_num(X))


class LearnsBeforeItRefuses(Honest):
    def partial_fit(self, X, y):
        for row, label in zip(X, y, strict=True):
            super().partial_fit(row[None], [label])
        return self


class CutsToTheShorter(Honest):
    def partial_fit(self, X, y):
        return super().partial_fit(X[: len(y)], y[: len(X)])


class ForgetsAtEmptyBatches(Honest):
    def partial_fit(self, X, y):
        if not len(X):
            self.weights_ = {label: {} for label in self.weights_}
        return super().partial_fit(X, y)


class GuessesUnfitted(Honest):
    def predict(self, X):
        return super().predict(X) if vars(self).get("weights_") else np.array(["ant"] * len(X))


class FitGoesOn(Honest):
    def fit(self, X, y):
        return self.partial_fit(X, y)


def copy_of(model):
    """Return a copy that shares nothing."""
    made = type(model)(model.step)
    vars(made).update(vars(model))
    if "weights_" in vars(model):
        made.weights_ = {label: dict(w) for label, w in model.weights_.items()}
    return made


# The law that must catch each bug; it may break others too.
PLANTED = {
    LearnsBackwards: "batch_equals_stream",
    DrawsWithoutASeed: "stream_is_deterministic",
    IgnoresLaterClasses: "classes_may_appear",
    ForgetsWhenClassesAppear: "growth_forgets_nothing",
    PrefersNames: "renaming_classes_changes_nothing",
    LearnsFromPredictions: "predict_changes_nothing",
    StandardisesByTheBatch: "predictions_do_not_depend_on_neighbours",
    PredictsCodes: "predictions_are_known_labels",
    NeverLearns: "learns",
    PicklesHalf: "pickled_models_resume",
    SharesItsWeights: "copies_share_nothing",
    ClonesItsWeights: "clones_are_unfitted",
    ChangesItsStep: "parameters_are_kept",
    ReturnsNothing: "learning_returns_the_estimator",
    ScalesItsInput: "inputs_are_untouched",
    ReadsKeysByPosition: "order_of_features_changes_nothing",
    RaisesAtUnseenFeatures: "unseen_features_are_allowed",
    TakesAnyWidth: "another_width_is_refused",
    TakesNaN: "missing_values_are_refused",
    LearnsBeforeItRefuses: "missing_values_are_refused",
    CutsToTheShorter: "lengths_must_agree",
    ForgetsAtEmptyBatches: "empty_batches_change_nothing",
    GuessesUnfitted: "unfitted_predictions_are_refused",
    FitGoesOn: "fit_starts_anew",
}
