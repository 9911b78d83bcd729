"""Deformed copies of images against maps that are known."""

import numpy as np
import pytest
from scipy.ndimage import affine_transform

from kesler.datasets import deform, synthetic
from kesler.errors import KeslerError

STILL = {"rotation": 0, "scaling": 0, "shear": 0, "displacement": 0}


def images(n=6, shape=(9, 7), seed=0):
    return np.random.default_rng(seed).random((n, shape[0] * shape[1]))


@pytest.mark.parametrize("shape", [(9, 7), (4, 12), (1, 5), (6, 6)])
def test_nothing_moves_where_every_strength_is_zero(shape):
    X = images(shape=shape)
    np.testing.assert_allclose(deform(X, shape, **STILL), X, atol=1e-12)


@pytest.mark.parametrize(
    ("strength", "matrix"),
    [
        ({"rotation": 90}, lambda u: [[np.cos(u), -np.sin(u)], [np.sin(u), np.cos(u)]]),
        ({"shear": 0.8}, lambda u: [[1, u], [0, 1]]),
    ],
)
def test_affine_maps_are_those_of_scipy_about_the_middle(strength, matrix, monkeypatch):
    # Every draw is the upper end of its range.
    monkeypatch.setattr(synthetic.np.random, "default_rng", lambda _: UpperEnds(np.random.PCG64(0)))
    ((name, size),) = strength.items()
    A = np.array(matrix(np.radians(size) if name == "rotation" else size))
    X, middle = images(), np.array([4.0, 3.0])
    found = deform(X, (9, 7), **{**STILL, **strength})
    for row, image in zip(found, X.reshape(-1, 9, 7), strict=True):
        wanted = affine_transform(image, A, middle - A @ middle, order=1, mode="nearest")
        np.testing.assert_allclose(row.reshape(9, 7), wanted, atol=1e-9)


class UpperEnds(np.random.Generator):
    """Draws the upper end of every range."""

    def uniform(self, low, high, size):
        return np.full(size, high)


def test_strengths_are_spread_over_their_range():
    """A ramp across, scaled across by 1 + s, rises 1 + s a pixel; s is even in its range."""
    ramp = np.tile(np.arange(21.0), (400, 21)).reshape(400, -1)
    steps = deform(ramp, **{**STILL, "scaling": 0.2}).reshape(-1, 21, 21)[:, 10, 8:13]
    s = np.diff(steps, axis=1).mean(axis=1) - 1
    assert -0.2 <= s.min() < -0.19 and 0.19 < s.max() <= 0.2
    assert abs(s.mean()) < 0.02 and s.std() == pytest.approx(0.4 / np.sqrt(12), rel=0.08)


@pytest.mark.parametrize("smoothness", [0.005, 0.05, 0.1])
def test_displacements_deviate_as_asked_and_are_smooth(smoothness):
    across = np.tile(np.arange(41.0), (300, 41)).reshape(300, -1)
    moved = deform(across, **{**STILL, "displacement": 0.05, "smoothness": smoothness})
    u = (moved - across).reshape(-1, 41, 41)[:, 15:26, 15:26]
    assert u.std() == pytest.approx(0.05 * 41, rel=0.1)
    neighbours = np.corrcoef(u[:, :, :-1].ravel(), u[:, :, 1:].ravel())[0, 1]
    # White noise smoothed with sigma: neighbours agree by exp(-1 / (4 sigma^2)). A sigma far below
    # a pixel leaves it white.
    sigma = smoothness * 41
    wanted = np.exp(-1 / (4 * sigma**2)) if sigma > 1 else 0
    assert neighbours == pytest.approx(wanted, abs=0.08)


def test_each_copy_differs_and_a_seed_repeats_all():
    X = images(shape=(8, 8))
    twice = deform(np.vstack([X, X]))
    assert (np.abs(twice[: len(X)] - twice[len(X) :]).max(axis=1) > 1e-3).all()
    np.testing.assert_array_equal(deform(X, random_state=3), deform(X, random_state=3))
    assert not np.array_equal(deform(X, random_state=3), deform(X, random_state=4))


def test_images_are_deformed_in_pieces(monkeypatch):
    X = images(n=7)
    monkeypatch.setattr(synthetic, "N_TOGETHER", 3)
    np.testing.assert_allclose(deform(X, (9, 7), **STILL), X, atol=1e-12)
    assert deform(X[:0], (9, 7)).shape == (0, 63)


def test_types():
    X = (255 * images(shape=(8, 8))).astype(np.uint8)
    assert deform(X).dtype == np.float32
    assert deform(X.astype(np.float64)).dtype == np.float64
    assert 0 <= deform(X).min() and deform(X).max() <= 255


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"X": images()}, "rows of 63 pixels are not square images: set image_shape"),
        ({"X": images(), "image_shape": (9, 9)}, "rows of 63 pixels are not images of 9x9"),
        ({"X": images(), "image_shape": (-9, -7)}, "not images of -9x-7"),
        ({"X": np.ones(9)}, "X has 1 dimensions: give one image per row"),
        ({"X": [[1.0, 1, 1, 1], [1, np.nan, 1, 1]]}, "image 1 holds NaN or infinity"),
        ({"rotation": -1}, "rotation=-1 must be a number from 0"),
        ({"displacement": np.inf}, "displacement=inf must be a number from 0"),
        ({"shear": np.nan}, "shear=nan must be a number from 0"),
        ({"scaling": 1}, "scaling=1 must be below 1"),
        ({"smoothness": 0}, "smoothness=0 must be a number above 0"),
    ],
)
def test_bad_input_raises_a_message(change, sentence):
    with pytest.raises(KeslerError, match=sentence):
        deform(**{"X": images(shape=(8, 8)), **change})
