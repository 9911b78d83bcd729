"""Laws over the registry of dictionaries: a name with settings in `SMALL` has all these tests."""

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from commands import kesler
from kesler import KeslerError, ShareBoostClassifier
from kesler.dictionaries import DICTIONARIES, Dictionary, Pool, resolve_dictionary
from kesler.dictionaries.steps import Step
from kesler.sharing.exports.predictor import CompactPredictor

N_FEATURES = 16

SMALL = {
    "columns": {},
    "stumps": {"n_thresholds": 5},
    "products": {"squares": True},
    "pieces": {"centres": 4, "n_radii": 3, "random_state": 0},
    "templates": {"n_patches": 3, "patch_sizes": (2,), "n_masks": 2, "random_state": 0},
}
"""What to ask of each dictionary so that it has few candidates on rows of 16 features."""

every = pytest.mark.parametrize("name", DICTIONARIES)
every_type = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def rows(n=40, seed=0, dtype=np.float64):
    return np.random.default_rng(seed).random((n, N_FEATURES)).astype(dtype)


def residuals(n=40):
    return np.random.default_rng(1).normal(size=(n, 3)) / n


def small(name):
    return DICTIONARIES[name](**SMALL[name])


def whole(values, n):
    """Return what is yielded by blocks as one array of all candidates."""
    found = np.full(n, np.nan)
    for first, block in values:
        found[first : first + len(block)] = block
    return found


def test_every_dictionary_has_small_settings():
    assert set(SMALL) == set(DICTIONARIES)


# ---- names --------------------------------------------------------------------------------------


@every
def test_a_name_makes_a_new_unfitted_dictionary(name):
    made = resolve_dictionary(name)
    assert type(made) is DICTIONARIES[name] and isinstance(made, Dictionary)
    assert made is not resolve_dictionary(name) and not hasattr(made, "n_candidates_")


@every
def test_a_dictionary_is_taken_with_its_settings_and_left_as_it_is(name):
    given = small(name).fit(rows())
    taken = resolve_dictionary(given)
    assert taken is not given and not hasattr(taken, "n_candidates_")
    assert repr(taken) == repr(clone(given)) == repr(small(name))


def test_an_unknown_name_is_a_sentence_that_names_all():
    with pytest.raises(KeslerError, match=", ".join(map(repr, DICTIONARIES))):
        resolve_dictionary("words")


@every
def test_the_command_line_names_it_and_says_what_it_is(capsys, name):
    said = " ".join(kesler(capsys, "share", "--help").out.split())
    summary = (DICTIONARIES[name].__doc__ or "").partition("\n")[0]
    options = said.partition("candidate features: ")[2].partition("--choice")[0]
    assert f" {name} {summary} " in said and name in options.replace(",", "").split()


# ---- fit, columns and pool ----------------------------------------------------------------------


@every
@every_type
def test_fit_changes_neither_rows_nor_settings(name, dtype):
    X, dictionary = rows(dtype=dtype), small(name)
    before, settings = X.copy(), repr(dictionary)
    assert dictionary.fit(X) is dictionary
    np.testing.assert_array_equal(X, before)
    assert repr(dictionary) == settings and dictionary.n_candidates_ > 0


@every
@every_type
def test_columns_are_as_wide_as_is_said_and_stand_side_by_side(name, dtype):
    X, dictionary = rows(dtype=dtype), small(name).fit(rows(dtype=dtype))
    some = np.array([dictionary.n_candidates_ - 1, 0, 1])
    columns, widths = dictionary.columns(X, some), dictionary.widths(some)
    assert columns.shape == (len(X), widths.sum()) and np.isfinite(columns).all()
    apart = [dictionary.columns(X, some[i : i + 1]) for i in range(3)]
    np.testing.assert_allclose(columns, np.hstack(apart), atol=1e-6)


@every
def test_columns_of_a_row_do_not_depend_on_the_others(name):
    X, dictionary = rows(), small(name).fit(rows())
    everything = np.arange(dictionary.n_candidates_)
    apart = [dictionary.columns(X[i : i + 1], everything) for i in range(5)]
    np.testing.assert_allclose(dictionary.columns(X[:5], everything), np.vstack(apart), atol=1e-6)


@every
@every_type
def test_a_pool_says_what_columns_say(name, dtype):
    X = rows(dtype=dtype)
    dictionary = small(name).fit(X)
    pool, plain, n = dictionary.pool(X), Pool(dictionary, X), dictionary.n_candidates_
    everything = np.arange(n)
    np.testing.assert_array_equal(np.concatenate(list(pool.blocks())), everything)
    columns = dictionary.columns(X, everything)
    np.testing.assert_allclose(pool.columns(everything), columns, atol=1e-6)
    wanted = whole(plain.scores(residuals()), n)
    np.testing.assert_allclose(whole(pool.scores(residuals()), n), wanted, rtol=1e-3, atol=1e-5)
    q = np.full(len(X), 1 / len(X))
    found = whole(pool.spreads(q, centred=True), n)
    lower = np.sqrt(np.add.reduceat(columns.var(axis=0), starts(dictionary, everything)))
    assert (found >= lower * (1 - 1e-3) - 1e-5).all() and np.isfinite(found).all()


def starts(dictionary, candidates):
    return np.cumsum([0, *dictionary.widths(candidates)[:-1]])


@every
def test_a_step_has_a_name_a_cost_and_the_width_of_its_columns(name):
    dictionary = small(name).fit(rows())
    features = [f"f{i}" for i in range(N_FEATURES)]
    for candidate in range(dictionary.n_candidates_):
        step = dictionary.step(candidate)
        assert isinstance(step, Step) and step.cost >= 0 and step.name(features)
        assert step.width == dictionary.widths(np.array([candidate]))[0]


# ---- saving, copies, learning -------------------------------------------------------------------


@every
def test_a_fitted_dictionary_is_the_same_after_pickle(name):
    dictionary, new = small(name).fit(rows()), rows(9, seed=5)
    stored = pickle.loads(pickle.dumps(dictionary))
    everything = np.arange(dictionary.n_candidates_)
    np.testing.assert_array_equal(
        stored.columns(new, everything), dictionary.columns(new, everything)
    )


@every
def test_fitting_twice_gives_the_same(name):
    one, other = small(name).fit(rows()), clone(small(name)).fit(rows())
    everything = np.arange(one.n_candidates_)
    np.testing.assert_array_equal(
        one.columns(rows(), everything), other.columns(rows(), everything)
    )


@every
def test_shareboost_learns_with_it_and_what_is_kept_predicts_the_same(name, tmp_path):
    X = rows(60)
    y = np.argmax(X[:, :3] * X[:, 3:6], axis=1)
    model = ShareBoostClassifier(3, dictionary=small(name)).fit(X, y)
    stored = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(stored.decision_function(X), model.decision_function(X))
    compact = CompactPredictor.of(model)
    np.testing.assert_allclose(compact.scores(X), model.decision_function(X), rtol=1e-4, atol=1e-4)
    model.export(tmp_path / "model.py")
    module: dict[str, Any] = {}
    exec((tmp_path / "model.py").read_text(), module)
    np.testing.assert_allclose(module["scores"](X), compact.scores(X), rtol=1e-4, atol=1e-4)
