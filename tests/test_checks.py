"""Laws of stream estimators: planted bugs are caught, and honest estimators pass."""

import numpy as np
import pytest
from sklearn.linear_model import Perceptron, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.tree import DecisionTreeClassifier

from homemade import part_way
from kesler import KeslerError, OnlineClassifier
from kesler.checks import (
    LAWS,
    LawBroken,
    NotApplicable,
    check_stream_estimator,
    parametrize_with_laws,
)
from planted import PLANTED, Honest, NeverLearns


def by_law(estimator, **options):
    return {each.law: each for each in check_stream_estimator(estimator, **options)}


def test_the_honest_estimator_keeps_all_laws():
    found = by_law(Honest())
    assert list(found) == list(LAWS)
    open_laws = [name for name, each in found.items() if each.status != "holds"]
    assert open_laws == ["saved_models_resume"]


@pytest.mark.parametrize("planted", PLANTED, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_caught_by_its_law(planted):
    found = by_law(planted(), on_fail="report", laws=[PLANTED[planted]])
    assert found[PLANTED[planted]].status == "broken"
    with pytest.raises(LawBroken, match=PLANTED[planted]):
        check_stream_estimator(planted(), laws=[PLANTED[planted]])


def test_all_laws_but_one_catch_a_bug():
    assert set(LAWS) - set(PLANTED.values()) == {"saved_models_resume"}


def test_a_model_that_loses_its_file_is_caught(monkeypatch):
    monkeypatch.setattr("kesler.online.loading.load", lambda path, custom: OnlineClassifier())
    with pytest.raises(LawBroken, match="resumes otherwise"):
        LAWS["saved_models_resume"](OnlineClassifier())


@pytest.mark.parametrize(
    "estimator",
    [
        OnlineClassifier(),
        OnlineClassifier("multi", update="perceptron"),
        OnlineClassifier("multi", update="pa1", averaged=True),
        OnlineClassifier(kernel="rbf"),
        OnlineClassifier("multi", update=part_way),
    ],
    ids=str,
)
def test_learners_of_this_library_keep_all_laws(estimator):
    assert {each.status for each in check_stream_estimator(estimator)} == {"holds"}


@pytest.mark.parametrize(
    "estimator",
    [
        SGDClassifier(),
        SGDClassifier(shuffle=False, loss="log_loss"),
        Perceptron(shuffle=False),
        MultinomialNB(),
        BernoulliNB(),
        MLPClassifier(),
    ],
    ids=str,
)
def test_learners_of_scikit_learn_keep_the_laws_that_apply(estimator):
    found = by_law(estimator)
    assert "first call" in found["classes_may_appear"].reason
    assert sum(each.status == "holds" for each in found.values()) >= 16


def test_a_smoothing_of_each_call_is_found():
    # GaussianNB of scikit-learn smooths by the variance within the rows of the call.
    found = check_stream_estimator(GaussianNB(), on_fail="report")
    assert [each.law for each in found if each.status == "broken"] == ["batch_equals_stream"]


def river_learners():
    river = pytest.importorskip("river")
    from river import linear_model, multiclass, naive_bayes, neighbors, tree

    assert river
    return [
        naive_bayes.GaussianNB(),
        naive_bayes.MultinomialNB(),
        linear_model.SoftmaxRegression(),
        multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
        tree.HoeffdingTreeClassifier(grace_period=10),
        neighbors.KNNClassifier(),
    ]


@pytest.mark.parametrize("i", range(6))
def test_learners_of_river_keep_the_laws_that_apply(i):
    found = by_law(river_learners()[i])
    assert found["classes_may_appear"].status == "holds"
    assert found["batch_equals_stream"].reason == "it has no partial_fit"
    assert sum(each.status == "holds" for each in found.values()) >= 12


def test_an_exemption_says_why():
    [learnt] = by_law(NeverLearns(), exempt={"learns": "by design"}, laws=["learns"]).values()
    assert str(learnt) == "learns: not applicable, by design"


def test_an_error_inside_a_law_is_a_breach_with_its_words():
    class Raises(Honest):
        def predict(self, X):
            raise OSError("the disk is full")

    [found] = check_stream_estimator(Raises(), laws=["learns"], on_fail="report")
    assert found.reason == "it raised OSError: the disk is full"


def test_the_message_names_all_broken_laws():
    with pytest.raises(LawBroken, match=r"breaks \d+ of the laws") as error:
        check_stream_estimator(NeverLearns())
    assert "\n- learns: it predicts" in str(error.value)
    assert isinstance(error.value, AssertionError)


@pytest.mark.parametrize(
    "estimator, options, sentence",
    [
        (DecisionTreeClassifier(), {}, "cannot be checked"),
        (Honest, {}, "Honest cannot be checked: give an instance"),
        (Honest().partial_fit(np.eye(2), ["a", "b"]), {}, "is fitted"),
        (Honest(), {"laws": ["gravity"]}, "names of"),
        (Honest(), {"laws": "learns"}, "give a list"),
        (Honest(), {"exempt": {"gravity": "no"}}, "names no law"),
    ],
)
def test_what_cannot_be_checked_is_refused(estimator, options, sentence):
    with pytest.raises(KeslerError, match=sentence):
        check_stream_estimator(estimator, **options)


def test_the_estimator_is_not_changed():
    estimator = Honest()
    check_stream_estimator(estimator)
    assert vars(estimator) == {"step": 1.0}


@parametrize_with_laws([Honest()])
def test_each_law_is_a_test(estimator, law):
    assert law.__doc__.startswith("Require ")
    try:
        law(estimator)
    except NotApplicable as reason:
        assert law.__name__ == "saved_models_resume" and "save" in str(reason)
