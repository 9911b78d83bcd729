"""StructuredLearner: multiclass problems posed as structure, and chains of tags."""

from __future__ import annotations

import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from kesler import KeslerError, OnlineClassifier, StructuredLearner, update_rule
from kesler.updates import RULES, MarginPerceptron
from registry import PLAIN_RULES
from streams import make_stream

K = 4
ALONG_SEVERAL = {"simperc", "conproj", "simproj", "softmax", "logistic"}

# ---- a class is an output, phi(x, r) is x in block r --------------------------------------------


def block(x, r):
    phi = np.zeros((K, len(x)))
    phi[r] = x
    return phi.ravel()


def sparse_block(x, r):
    return sparse.csr_array(block(x, r)[None])


def named_block(x, r):
    return {(r, i): value for i, value in enumerate(x.tolist())}


def block_weights(weights, n):
    """The weights as (class, feature), whatever they are."""
    if isinstance(weights, np.ndarray):
        return weights.reshape(K, n)
    return np.array([[weights[r, i] for i in range(n)] for r in range(K)])


def scores(weights, x):
    return block_weights(weights, len(x)) @ x


def search(weights, x, n=1):
    best = np.argsort(-scores(weights, x), kind="stable").tolist()
    return best[0] if n == 1 else best[:n]


def search_augmented(weights, x, y, n=1):
    augmented = scores(weights, x) + (np.arange(K) != y)
    best = np.argsort(-augmented, kind="stable").tolist()
    return best[0] if n == 1 else best[:n]


def posed(rule, features=block, **more):
    n_best = K if rule in ALONG_SEVERAL else 1
    return StructuredLearner(features, search, search_augmented, update=rule, n_best=n_best, **more)


def with_all_classes_known(seed):
    """A stream that begins with an empty row of each class: they are seen, and nothing moves."""
    stream = make_stream(seed, 60, K, 6)
    X = np.concatenate([np.zeros((K, 6)), stream.X])
    return X, np.concatenate([np.arange(K), stream.y])


@pytest.mark.parametrize("rule", PLAIN_RULES)
@settings(max_examples=5)
@given(seed=st.integers(0, 2**32 - 1))
def test_a_multiclass_problem_is_learnt_as_the_classifier_does(rule, seed):
    X, y = with_all_classes_known(seed)
    flat, online = posed(rule), OnlineClassifier("multi", update=rule)
    flat_says, online_says = [], []
    for x, r in zip(X, y.tolist(), strict=True):
        if flat.n_trials_ > K:
            doubtful = rounding_decides(scores(flat.weights_, x), r)
            # Those that move along all constraints do so whatever is first.
            if doubtful and rule not in ("mira", "softmax", "logistic"):
                break
            flat_says.append(None if doubtful else flat.predict_one(x))
            online_says.append(None if doubtful else online.predict_one(x))
        flat.learn_one(x, r)
        online.learn_one(x, r)
        weights = online._learner.weights[:6, :K].T
        if not np.allclose(weights, block_weights(flat.weights_, 6), atol=2e-3):
            pytest.fail(f"the weights differ after trial {flat.n_trials_}")
    assert flat_says == online_says
    assert flat.n_trials_ > K + 5


def rounding_decides(found, r):
    """Whether scores are so close to each other, or to the margin, that float32 may part them.

    Equal ones are: of classes that nothing has moved, or the same steps.
    """
    gaps = np.concatenate([found[r] - found, found[r] - found - 1, np.diff(np.sort(found))])
    return ((abs(gaps) > 0) & (abs(gaps) < 1e-4)).any()


@pytest.mark.parametrize("rule", PLAIN_RULES)
def test_features_of_every_kind_are_learnt_alike(rule):
    X, y = with_all_classes_known(1)
    learners = [posed(rule, f, averaged=True).fit(X, y) for f in (block, sparse_block, named_block)]
    expected = block_weights(learners[0].weights_, 6)
    assert abs(expected).max() > 0.01
    for learner in learners[1:]:
        np.testing.assert_allclose(block_weights(learner.weights_, 6), expected, atol=1e-6)
        assert learner.n_mistakes_ == learners[0].n_mistakes_ > 0


def test_averaged_weights_are_the_mean_after_each_trial():
    X, y = with_all_classes_known(2)
    plain, averaged = posed("pa1"), posed("pa1", averaged=True)
    after = []
    for x, r in zip(X, y, strict=True):
        after.append(plain.learn_one(x, r).weights_.copy())
        averaged.learn_one(x, r)
    np.testing.assert_allclose(averaged.weights_, np.mean(after, axis=0), atol=1e-12)


@pytest.mark.parametrize("rule", PLAIN_RULES)
def test_the_mistakes_are_those_of_the_averaged_predictions(rule):
    X, y = with_all_classes_known(4)
    for features in (block, sparse_block, named_block):
        learner, mistakes = posed(rule, features, averaged=True), 0
        for t, (x, r) in enumerate(zip(X, y.tolist(), strict=True)):
            # Without weights, class 0 is predicted, which is the first.
            mistakes += t > 0 and learner.predict_one(x) != r
            learner.learn_one(x, r)
        again = posed(rule, features, averaged=True).fit(X, y)
        assert again.n_mistakes_ == learner.n_mistakes_ == mistakes > 0
        assert block_weights(again.weights_, 6).any()


def test_a_search_reads_averaged_names_in_the_trial_as_after_it():
    """Whatever it asks a mapping for: names with a weight or without, all items, their number."""
    asked = []

    def asking(weights, x):
        others = [weights["new"], weights.get("new"), weights.get("new", 7), "new" in weights]
        asked.append([dict(weights), len(weights), weights.get((0, 0)), *others])
        return search(weights, x)

    X, y = with_all_classes_known(5)
    learner = StructuredLearner(named_block, asking, update="perceptron", averaged=True)
    learner.fit(X, y)
    learner.predict_one(X[0])
    learner.learn_one(X[0], 0)
    after, _, within = asked[-3:]
    assert after == within and abs(np.array(list(after[0].values()))).max() > 0
    assert after[3:] == [0, None, 7, False]


@pytest.mark.parametrize("rule", [rule for rule in PLAIN_RULES if rule not in ALONG_SEVERAL])
def test_rules_of_one_constraint_take_the_first_of_several_outputs(rule):
    X, y = with_all_classes_known(6)
    alone, several = posed(rule).fit(X, y), posed(rule).set_params(n_best=3).fit(X, y)
    np.testing.assert_array_equal(alone.weights_, several.weights_)
    assert alone.n_mistakes_ == several.n_mistakes_ > 0 and alone.weights_.any()


@pytest.mark.parametrize("rule", ["pa1", "hinge"])
def test_the_most_violated_of_several_outputs_may_come_in_any_place(rule):
    X, y = with_all_classes_known(7)
    learner, other = (posed(rule).set_params(n_best=2) for _ in range(2))
    n_turned = 0

    def turned(weights, x, y, n):
        nonlocal n_turned
        first, second = search_augmented(weights, x, y, n)
        said = scores(weights, x) + (np.arange(K) != y)
        is_clear = said[first] > said[second] + 1e-6 and said[second] > said[y] + 1e-6
        n_turned += is_clear
        return [second, first] if is_clear else [first, second]

    other.infer_augmented = turned
    for x, r in zip(X, y.tolist(), strict=True):
        learner.learn_one(x, r)
        np.testing.assert_array_equal(other.learn_one(x, r).weights_, learner.weights_)
    assert n_turned > 5


def test_a_cost_of_0_asks_for_no_margin():
    X, y = with_all_classes_known(8)
    free = posed("pa", cost=lambda y, s: 0.0)
    free.infer_augmented = lambda weights, x, y: search(weights, x)
    assert not free.fit(X, y).weights_.any() and free.n_trials_ == len(y)


def test_costs_are_margins():
    flat = posed("pa", cost=lambda y, s: 3.0 * (y != s))
    flat.infer_augmented = lambda w, x, y: int(np.argmax(scores(w, x) + 3 * (np.arange(K) != y)))
    gap = scores(flat.learn_one(np.ones(2), 1).weights_, np.ones(2))
    assert gap[1] - gap[0] == pytest.approx(3)


# ---- tags of a chain ----------------------------------------------------------------------------

N_TAGS, N_WORDS = 3, 12


def sentences(n, seed):
    """Words that three hidden states emit; more than one state emits each word."""
    rng = np.random.default_rng(seed)
    follows = np.array([[0.1, 0.8, 0.1], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]])
    says = np.full((N_TAGS, N_WORDS), 0.02)
    for tag in range(N_TAGS):
        says[tag, 3 * tag : 3 * tag + 6] = 1
    says /= says.sum(axis=1, keepdims=True)
    texts, tags = [], []
    for _ in range(n):
        chain = [int(rng.integers(N_TAGS))]
        while len(chain) < 8:
            chain.append(int(rng.choice(N_TAGS, p=follows[chain[-1]])))
        texts.append([int(rng.choice(N_WORDS, p=says[tag])) for tag in chain])
        tags.append(chain)
    return texts, tags


def chain_features(words, tags):
    phi = {}
    for name in [
        *product(["says"], zip(tags, words, strict=True)),
        *product(["then"], pairwise(tags)),
    ]:
        phi[name] = phi.get(name, 0) + 1
    return phi


def viterbi(weights, words, bonus=lambda i, tag: 0.0):
    best = [(bonus(0, t) + weights["says", (t, words[0])], [t]) for t in range(N_TAGS)]
    for i, word in enumerate(words[1:], start=1):
        best = [
            max((v + weights["then", (path[-1], t)], path) for v, path in best)
            for t in range(N_TAGS)
        ]
        best = [
            (v + weights["says", (t, word)] + bonus(i, t), [*path, t])
            for t, (v, path) in enumerate(best)
        ]
    return max(best)[1]


def viterbi_augmented(weights, words, tags):
    return viterbi(weights, words, lambda i, tag: float(tag != tags[i]))


def hamming(tags, others):
    return float(sum(a != b for a, b in zip(tags, others, strict=True)))


def tagger(rule, **more):
    return StructuredLearner(
        chain_features, viterbi, viterbi_augmented, hamming, rule, averaged=True, **more
    )


def share_right(predicted, tags):
    return np.mean(np.array(predicted) == np.array(tags))


@pytest.mark.parametrize("rule", ["perceptron", "pa1", "mira", "simperc"])
def test_chains_of_tags_are_learnt(rule):
    texts, tags = sentences(300, seed=0)
    new_texts, new_tags = sentences(200, seed=1)
    update = RULES[rule](C=0.1) if rule in ("pa1", "mira") else rule
    learner = tagger(update).fit(texts, tags)
    right = share_right(learner.predict(new_texts), new_tags)
    # Each word's most frequent tag is right for 65 % of all words, the most probable sequence of
    # the chain that they were drawn from for 86 %.
    assert right > 0.84
    assert learner.score(new_texts, new_tags) == np.mean(
        [p == t for p, t in zip(learner.predict(new_texts), new_tags, strict=True)]
    )


def test_mira_leaves_no_output_more_violated_than_those_that_it_moved_along():
    texts, tags = sentences(30, seed=2)
    learner = tagger(RULES["mira"](C=1e6))
    for words, right in zip(texts, tags, strict=True):
        learner.learn_one(words, right)
        w = learner._space.view()
        truth = sum(w[f] * n for f, n in chain_features(words, right).items())
        for other in product(range(N_TAGS), repeat=8):
            phi = chain_features(words, list(other)).items()
            worst = hamming(right, other) + sum(w[f] * n for f, n in phi) - truth
            assert worst <= 1e-4
        if learner.n_trials_ == 3:
            break


# ---- how it is used -----------------------------------------------------------------------------


def test_pairs_one_by_one_or_in_parts_are_the_same():
    X, y = with_all_classes_known(3)
    whole = posed("mira").partial_fit(X, y)
    parts = posed("mira").partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    np.testing.assert_array_equal(whole.weights_, parts.weights_)
    again = clone(whole).fit(X[:5], y[:5]).fit(X, y)
    np.testing.assert_array_equal(whole.weights_, again.weights_)
    for name in ("n_trials_", "n_mistakes_"):
        assert getattr(whole, name) == getattr(parts, name) == getattr(again, name) > 0
    assert pickle.loads(pickle.dumps(whole)).predict(X) == whole.predict(X)


def test_what_a_search_is_handed_cannot_be_changed():
    def meddling(weights, x):
        weights[0] = 1.0

    X, y = with_all_classes_known(3)
    with pytest.raises(ValueError, match="read-only"):
        StructuredLearner(block, meddling).fit(X, y)
    with pytest.raises(TypeError):
        StructuredLearner(named_block, meddling).fit(X, y)


def test_a_search_that_misses_the_best_output_moves_nothing():
    x = np.ones(2)
    learner = StructuredLearner(block, search).fit([x, x], [0, 1])
    before = learner.weights_.copy()
    assert search(before, x) == 1
    learner.infer = lambda weights, x: 0
    learner.learn_one(x, 1)
    assert learner.n_mistakes_ == 2
    np.testing.assert_array_equal(learner.weights_, before)


@update_rule(constraints="predicted", requires="losses")
def endless(parameters, weight, losses, squared_norms, gram, steps):
    steps[0] = np.inf


@pytest.mark.parametrize(
    "changed, words",
    [
        ({"features": lambda x, y: block(x, y) * np.nan}, "NaN or infinite at feature"),
        ({"features": lambda x, y: {"a": np.inf}}, "gave 'a' the value inf"),
        ({"features": lambda x, y: {"a": "b"}}, "must map names to numbers"),
        ({"features": lambda x, y: "text"}, "must return numbers here, not str"),
        ({"features": lambda x, y: [[1.0]]}, "shape"),
        ({"features": lambda x, y: sparse.eye_array(2)}, "must return one row"),
        ({"features": lambda x, y: block(x, y)[: 11 + y]}, "returned 11 numbers, but 12 the first"),
        ({"features": lambda x, y: {"a": 1} if y else [1.0]}, "always the same kind"),
        ({"infer_augmented": lambda w, x, y: 0}, "below the score of y itself"),
        ({"infer_augmented": None}, "needs infer_augmented"),
        ({"cost": lambda y, s: -1.0}, "cost(y, s) returned -1.0"),
        ({"cost": lambda y, s: np.nan}, "cost(y, s) returned nan"),
        ({"cost": lambda y, s: np.inf}, "cost(y, s) returned inf"),
        ({"update": "ovr-hinge"}, "needs separate weights for each class"),
        ({"update": "arow"}, "needs separate weights for each class"),
        ({"update": "best"}, "update='best' is not known"),
        ({"update": endless}, "is not a finite number"),
        ({"update": MarginPerceptron(delta=2.0)}, "cost(y, s) is the margin here"),
        ({"n_best": 0}, "n_best=0 must be an integer of 1 or more"),
        ({"n_best": 1.5}, "n_best=1.5 must be an integer of 1 or more"),
        ({"n_best": 2, "infer": lambda w, x, n: 1}, "must return a list of outputs"),
        ({"n_best": 2, "infer": lambda w, x, n: []}, "must return a list of outputs"),
    ],
)
def test_what_cannot_be_is_refused_with_a_sentence(changed, words):
    x = np.ones(3)
    learner = posed("pa1")
    if "infer_augmented" in changed:
        for _ in range(3):
            learner.learn_one(x, 1)  # so that 0, which the search returns, is far below
        learner.set_params(cost=lambda y, s: 0.1)
    learner.set_params(**changed)
    before, y = learner.n_trials_, 1
    with pytest.raises(KeslerError) as caught:
        learner.learn_one(x, y)
    assert words in str(caught.value) and learner.n_trials_ == before


def test_instances_and_outputs_must_pair_up():
    with pytest.raises(KeslerError, match="1 instances and 2 outputs"):
        posed("pa1").fit([np.ones(2)], [0, 1])
    with pytest.raises(NotFittedError):
        posed("pa1").predict_one(np.ones(2))


def test_lists_and_tuples_are_the_same_output():
    learner = StructuredLearner(
        lambda x, y: dict.fromkeys(enumerate(y), 1.0), lambda w, x: ("a", "b")
    )
    assert learner.fit([0, 1], [["a", "b"], ["a", "b"]]).n_mistakes_ == 0


SAME = [
    (["a", "b"], ("a", "b"), True),
    (["a"], ["a", "b"], False),
    (["a", "b"], ["a"], False),
    (np.array([1, 2]), [1, 2], True),
    ([1, 2], np.array([1, 2]), True),
    (np.array([1, 2]), np.array([1, 3]), False),
    (np.array([1, 2]), np.array([1, 2, 3]), False),
    ([np.array([1]), "a"], (np.array([1]), "a"), True),
    ([np.array([1]), "a"], (np.array([2]), "a"), False),
    ([["a"], "b"], [["a"], "c"], False),
    ("ab", ["a", "b"], False),
]


@pytest.mark.parametrize(("said", "right", "same"), SAME, ids=str)
def test_outputs_are_compared_by_what_is_in_them(said, right, same):
    learner = StructuredLearner(lambda x, y: {str(y): 1.0}, lambda w, x: said)
    assert learner.fit([0], [right]).n_mistakes_ == (not same)
    assert learner.score([0], [right]) == same


def test_the_score_is_a_weighted_mean():
    learner = StructuredLearner(lambda x, y: {y: 1.0}, lambda w, x: x).fit([0], [0])
    assert learner.score([0, 1, 2], [0, 1, 9], [1.0, 2.0, 5.0]) == pytest.approx(3 / 8)
    with pytest.raises(KeslerError, match="2 instances and 1 outputs"):
        learner.score([0, 1], [0])
