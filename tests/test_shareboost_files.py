"""Model files of ShareBoost: what is loaded is what was saved, and what fits nothing is refused."""

import json

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from kesler import KeslerError, OnlineClassifier, ShareBoostClassifier, load
from kesler.data import model_file
from kesler.dictionaries import Columns, Pieces, Products, Stumps, Templates

RNG = np.random.default_rng(11)
X = RNG.normal(size=(240, 36))
LABELS = np.array(["north", "south", "east \u00e9\n"])
Y = LABELS[np.argmax(X[:, :3] + 0.3 * X[:, 3:6] * X[:, 6:9], axis=1)]
SETTINGS = {
    "columns": {},
    "one's own columns": {"dictionary": Columns(), "penalty": "frobenius", "bias": False},
    "products": {"dictionary": Products(squares=True)},
    "stumps": {"dictionary": Stumps(n_thresholds=5), "class_weight": {"north": 2.0}},
    "pieces": {"dictionary": "pieces"},
    "given pieces": {"dictionary": Pieces(centres=X[:4], n_radii=3)},
    "templates": {"dictionary": Templates((6, 6), n_patches=4, n_masks=4, patch_sizes=[2, 3])},
    "relative": {
        "dictionary": Templates((6, 6), n_patches=4, n_masks=4, patch_sizes=[2, 3], fading=None)
    },
    "groups": {"groups": np.arange(36) // 3, "choice": "line", "shortlist": 4},
}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "few.kesler"


def fitted(case="columns", dtype=np.float64, y=Y, **options):
    return ShareBoostClassifier(5, **SETTINGS[case]).fit(X.astype(dtype), y, **options)


def comparable(parameters):
    return {name: repr(value) for name, value in parameters.items()}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("case", SETTINGS)
def test_a_loaded_model_is_the_saved_one(case, dtype, path, tmp_path):
    model = fitted(case, dtype)
    model.save(path, source=["lab", 3])
    found = ShareBoostClassifier.load(path)
    assert comparable(found.get_params()) == comparable(model.get_params())
    assert found.notes_ == {"source": ["lab", 3]} and found.path_ == model.path_
    assert found.support_.tolist() == model.support_.tolist()
    assert found.classes_.dtype == model.classes_.dtype and found.dtype_ == dtype
    for one, other in ((model, found), (model.at(2), found.at(2))):
        for rows in (X, X.astype(np.float32)):
            assert (one.decision_function(rows) == other.decision_function(rows)).all()
            assert one.predict(rows).tolist() == other.predict(rows).tolist()
        one.export(tmp_path / "one.c", name="f")
        other.export(tmp_path / "other.c", name="f")
        assert (tmp_path / "one.c").read_bytes() == (tmp_path / "other.c").read_bytes()


@pytest.mark.parametrize("labels", [[3, 1, 7], [True, False], [2**63, 2**64 - 1, 5]])
def test_labels_of_numbers(labels, path):
    dtype = np.uint64 if max(labels) > 2**62 else None
    y = np.array(labels, dtype=dtype)[np.arange(len(X)) % len(labels)]
    model = fitted(y=y)
    model.save(path)
    found = ShareBoostClassifier.load(path).predict(X)
    assert found.dtype == y.dtype and (found == model.predict(X)).all()


def test_a_loaded_model_goes_on(path):
    model = fitted().set_params(warm_start=True)
    model.save(path)
    found = ShareBoostClassifier.load(path)
    for each in (model, found):
        each.set_params(n_features_to_select=8).fit(X, Y)
    assert len(found.path_) == 8
    assert (found.decision_function(X) == model.decision_function(X)).all()


def test_early_stopping_keeps_its_round(path):
    model = ShareBoostClassifier(12, n_rounds_no_change=2)
    model.fit(X[:60], Y[:60], eval_set=(X[60:], Y[60:]))
    assert model.n_rounds_ < len(model.path_)
    model.save(path)
    found = ShareBoostClassifier.load(path)
    assert found.n_rounds_ == model.n_rounds_ and (found.coef_ == model.coef_).all()


def test_names_of_columns_are_kept(path):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=[f"c{i}" for i in range(36)])
    model = ShareBoostClassifier(3).fit(frame, Y)
    model.save(path)
    found = ShareBoostClassifier.load(path)
    names = found.get_feature_names_out().tolist()
    assert names == model.get_feature_names_out().tolist() and names[0].startswith("c")
    assert (found.predict(frame) == model.predict(frame)).all()


# ---- refusals -----------------------------------------------------------------------------------


class Own(Columns):
    """A dictionary of a user's."""


def test_what_cannot_be_stored_is_refused(path):
    with pytest.raises(NotFittedError, match="not fitted"):
        ShareBoostClassifier().save(path)
    with pytest.raises(KeslerError, match=r"Own, a dictionary of your own, .* use export"):
        ShareBoostClassifier(2, dictionary=Own()).fit(X, Y).save(path)
    random = Pieces(3, random_state=np.random.RandomState(0))
    with pytest.raises(KeslerError, match=r"random_state=.* cannot be stored"):
        ShareBoostClassifier(2, dictionary=random).fit(X, Y).save(path)
    assert not path.exists()


def test_each_kind_of_file_names_the_function_that_loads_it(path, tmp_path):
    fitted().save(path)
    with pytest.raises(KeslerError, match=r"ShareBoostClassifier, .* ShareBoostClassifier\.load"):
        load(path)
    OnlineClassifier().fit(X, Y).save(tmp_path / "online")
    with pytest.raises(KeslerError, match=r"does not hold a Share.* by kesler\.load\(path\)"):
        ShareBoostClassifier.load(tmp_path / "online")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(KeslerError, match="cut off or damaged"):
        ShareBoostClassifier.load(path)


def changed(value):
    """Values that stand in the place of another, of its type and of none."""
    return [None, -1, 10**9, "x", [], {}, [value], {"a": value}]


@pytest.mark.parametrize("case", ["columns", "stumps"])
def test_changed_files_are_refused_or_predict(case, path):
    """Each entry in turn has another value: no error but the library's, whatever is done."""
    fitted(case).save(path)
    arrays, metadata = model_file.load(path)
    text = json.dumps(metadata)
    n_refused = 0
    for key, value in [pair for pair in metadata.items() if pair[0] not in ("notes", "n_features")]:
        for other in changed(value):
            model_file.save(path, arrays, {**json.loads(text), key: other})
            try:
                ShareBoostClassifier.load(path).predict(X)
            except KeslerError:
                n_refused += 1
    assert n_refused > 50


@pytest.mark.parametrize("n", [None, -1, 0, 3, True, 2**40, "36"])
def test_a_changed_number_of_features_is_refused(n, path):
    fitted().save(path)
    arrays, metadata = model_file.load(path)
    model_file.save(path, arrays, metadata | {"n_features": n})
    with pytest.raises(KeslerError, match="do not fit each other"):
        ShareBoostClassifier.load(path)


def test_arrays_that_do_not_fit_are_refused(path):
    fitted().save(path)
    arrays, metadata = model_file.load(path)
    last = "weights.5"
    for name, other in [
        (last, arrays[last][1:]),
        (last, np.full_like(arrays[last], np.nan)),
        ("chosen", arrays["chosen"][1:]),
        ("chosen", arrays["chosen"] + 36),
    ]:
        model_file.save(path, {**arrays, name: other}, metadata)
        with pytest.raises(KeslerError, match="do not fit each other"):
            ShareBoostClassifier.load(path)
    del arrays[last]
    model_file.save(path, arrays, metadata)
    with pytest.raises(KeslerError, match="KeyError"):
        ShareBoostClassifier.load(path)
