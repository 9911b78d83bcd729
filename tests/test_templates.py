"""Templates against responses worked out place by place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import correlate2d

from kesler import KeslerError, ShareBoostClassifier
from kesler.dictionaries import Pool, Templates
from kesler.dictionaries.templates import grid_of_masks

SHAPE = (9, 7)


def images(n=40, shape=SHAPE, seed=0):
    return np.random.default_rng(seed).random((n, shape[0] * shape[1]))


def some_templates(**changes):
    settings = {"image_shape": SHAPE, "n_patches": 4, "patch_sizes": (2, 3), "n_masks": 2}
    return Templates(**{**settings, "random_state": 0, **changes})


def response(template, row):
    """Return max_p g_p <w, x_p> / (s(x_p) + c) by correlation, and a loop for the deviations."""
    image = row.reshape(template.image_shape)
    answers = correlate2d(image, template.patch, mode="valid")
    if template.fading is not None:
        rows, columns = template.patch.shape
        for top in range(answers.shape[0]):
            for left in range(answers.shape[1]):
                window = image[top : top + rows, left : left + columns]
                answers[top, left] /= window.std() + template.fading
    return (answers * template.mask).max()


@pytest.mark.parametrize("fading", [0.15, 0, None])
@pytest.mark.parametrize("shape", [(9, 7), (5, 12), (3, 3)])
def test_columns_are_the_largest_weighted_responses(fading, shape):
    X = images(shape=shape)
    templates = some_templates(image_shape=shape, fading=fading).fit(X)
    assert templates.n_candidates_ == 2 * 4 * 4
    everything = np.arange(templates.n_candidates_)
    found = templates.columns(X[:5], everything)
    wanted = [[response(templates.step(j), row) for j in everything] for row in X[:5]]
    np.testing.assert_allclose(found, wanted, atol=2e-5)


@pytest.fixture(scope="module")
def fitted():
    return some_templates().fit(images())


@given(st.lists(st.integers(0, 31), min_size=1, max_size=12))
@settings(deadline=None, max_examples=30)
def test_chosen_columns_are_those_of_all_in_any_order(fitted, candidates):
    found = fitted.columns(images(), np.array(candidates))
    np.testing.assert_allclose(found, fitted.responses(images())[:, candidates], atol=1e-6)


def test_many_patches_and_images_are_worked_out_in_pieces(monkeypatch):
    X = images()
    templates = some_templates().fit(X)
    whole = templates.responses(X)
    monkeypatch.setattr("kesler.dictionaries.templates.N_TOGETHER", 3)
    monkeypatch.setattr("kesler.dictionaries.templates.ROOM", 400)
    np.testing.assert_allclose(templates.responses(X), whole, atol=1e-6)


@pytest.mark.parametrize(("store", "atol"), [("float32", 1e-4), ("uint8", 0.02)])
def test_pools_score_as_columns_do(store, atol):
    X = images(600)
    templates = some_templates(store=store).fit(X)
    residuals = np.random.default_rng(1).normal(size=(600, 3)) / 600
    pool, plain = templates.pool(X), Pool(templates, X)
    found, wanted = (
        np.concatenate([scores for _, scores in each.scores(residuals)]) for each in (pool, plain)
    )
    np.testing.assert_allclose(found, wanted, atol=atol * wanted.max())
    weights = np.random.default_rng(2).random(600)
    for centred in (True, False):
        found, wanted = (
            np.concatenate([s for _, s in each.spreads(weights, centred=centred)])
            for each in (pool, plain)
        )
        np.testing.assert_allclose(found, wanted, rtol=0.02)
    chosen = np.array([7, 0, 31])
    np.testing.assert_allclose(pool.columns(chosen), plain.columns(chosen), atol=1e-6)


def test_patches_have_mean_zero_and_length_one():
    for family in some_templates().fit(images()).families_:
        patches = family.patches.reshape(len(family.patches), -1)
        np.testing.assert_allclose(patches.mean(axis=1), 0, atol=1e-6)
        np.testing.assert_allclose(np.linalg.norm(patches, axis=1), 1, atol=1e-5)


def test_a_planted_stroke_is_found_where_it_stands():
    # Class 1 has a bar anywhere in the upper half, class 0 in the lower one: pixels hardly tell.
    random, X = np.random.default_rng(3), np.zeros((400, 12, 12))
    y = np.arange(400) % 2
    for image, label in zip(X, y, strict=True):
        row, column = random.integers(0, 4) + (0 if label else 7), random.integers(0, 8)
        image[row, column : column + 4] = 1
    X = X.reshape(400, -1)
    templates = Templates(n_patches=8, patch_sizes=(3,), n_masks=3, random_state=0)
    model = ShareBoostClassifier(3, dictionary=templates).fit(X[:300], y[:300])
    assert model.score(X[300:], y[300:]) == 1


def test_masks_are_highest_at_their_centres_and_never_empty():
    for width in (1e-9, 0.1, 10):
        masks = grid_of_masks((7, 5), 3, width)
        assert len(masks) == 9
        for mask in masks:
            assert len(mask.places) and np.isclose(mask.image().max(), mask.weights.max())
    assert np.unravel_index(masks[4].image().argmax(), (7, 5)) == (3, 2)


def test_blank_and_constant_images_answer_nothing():
    templates = some_templates(fading=0).fit(images())
    blank = np.vstack([np.zeros(63), np.ones(63)])
    found = templates.columns(blank, np.arange(templates.n_candidates_))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0], 0)


# ---- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"image_shape": (9, 8)}, "rows of 63 pixels are not images of 9x8"),
        ({"image_shape": None}, "rows of 63 pixels are not square images: set image_shape"),
        ({"patch_sizes": (8,)}, "patch of 8x8 is larger than an image of 9x7"),
        ({"patch_sizes": ()}, "patch_sizes=.* must be a list"),
        ({"patch_sizes": 5}, "patch_sizes=5 must be a list"),
        ({"patch_sizes": (2.5,)}, "each of patch_sizes=2.5 must be an integer"),
        ({"n_patches": 0}, "n_patches=0 must be an integer of 1 or more"),
        ({"n_masks": 0}, "n_masks=0 must be an integer of 1 or more"),
        ({"mask_width": 0}, "mask_width=0 must be a finite number above 0"),
        ({"fading": -1}, "fading=-1 must be a finite number of 0 or more"),
        ({"store": "int4"}, "store='int4' is unknown"),
        ({"n_patches": 10**6}, "1000000 clusters of patches of 2x2 cannot be found"),
    ],
)
def test_what_makes_no_templates_is_refused(changes, message):
    with pytest.raises(KeslerError, match=message):
        some_templates(**changes).fit(images())


def test_blank_images_have_no_patches():
    with pytest.raises(KeslerError, match="that are not flat"):
        some_templates().fit(np.zeros((10, 63)))


def test_sparse_and_nan_rows_are_refused():
    from scipy import sparse

    with pytest.raises(KeslerError, match="templates do not support sparse rows"):
        some_templates().fit(sparse.csr_array(images()))
    X = images()
    X[3, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        ShareBoostClassifier(2, dictionary=some_templates()).fit(X, np.arange(40) % 2)
