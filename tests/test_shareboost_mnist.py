"""What papers/shareboost_mnist.py does, on few images."""

from __future__ import annotations

import json

import numpy as np
import pytest

import shareboost_mnist
from report import Report

FEW = shareboost_mnist.Settings(
    n_images=600, n_patches=(10, 10), n_rounds=(10, 10), n_copies=1, n_tried=300, n_tried_patches=4,
    n_tried_rounds=25, n_aside=200,
)  # fmt: skip


@pytest.mark.data
@pytest.mark.parametrize("expanded", [False, True])
def test_a_few_templates_tell_most_digits(tmp_path, expanded):
    digits = shareboost_mnist.Digits.read(FEW.n_images)
    few = shareboost_mnist.Digits(digits.X, digits.y, digits.X_test[:500], digits.y_test[:500])
    run = shareboost_mnist.Run(FEW, Report("page", "MNIST", tmp_path), few)
    shareboost_mnist.templates(run, expanded=expanded)
    run.write()
    errors = json.loads((tmp_path / "page.json").read_text())["test error in %"]
    assert len(errors) == 10 and errors[-1] < 35 and errors[-1] < errors[0] - 30
    assert len(list(tmp_path.rglob("*.png"))) == 3


def test_settings_are_tried_one_change_at_a_time():
    for changes in shareboost_mnist.TRIED.values():
        model = shareboost_mnist.tried(FEW, changes)
        settings = {**model.dictionary.get_params(), **model.get_params(deep=False)}
        for name, value in changes.items():
            assert settings[name] == (value * FEW.n_tried_patches if name == "n_patches" else value)


def test_copies_stand_behind_the_images_with_their_labels():
    X = np.random.default_rng(0).random((3, 784)).astype(np.float32)
    digits = shareboost_mnist.Digits(X, np.arange(3), X, np.arange(3)).expanded(2)
    assert digits.X.shape == (9, 784) and digits.y.tolist() == [0, 1, 2] * 3
    np.testing.assert_array_equal(digits.X[:3], X)
    assert not np.array_equal(digits.X[3:6], digits.X[6:])
