"""skops writes and reads estimators; what is read goes on as if it had not been written."""

import re
import warnings
from itertools import islice

import pytest

from configurations import _said, saves
from kesler import KeslerError, OnlineClassifier

skops = pytest.importorskip("skops.io", reason="needs skops")

N_SAVED, SEED = 60, 0
PAIRS = "keys must be str"  # what skops says of mappings {(right, wrong): cost}: JSON has none


def read(data):
    """Return the model that is in the file, of types of this package."""
    types = skops.get_untrusted_types(data=data)
    assert all(each.startswith("kesler.") or each == "numpy.dtype" for each in types), types
    return skops.loads(data, trusted=types)


def has_pairs(configuration):
    costs = configuration.settings.get("costs")
    return configuration.estimator == "StructuredLearner" or isinstance(costs, dict)


def fitted(configuration, X, y):
    try:
        model = configuration.learner()
        return (model.partial_fit if configuration.is_online else model.fit)(X, y)
    except KeslerError:
        return None


def test_models_at_random_are_read_as_they_are():
    warnings.simplefilter("ignore")
    kinds = set()
    for each in islice(saves(SEED), N_SAVED):
        X, y, _ = each.rows()
        model = fitted(each, X, y)
        if model is None:
            continue
        if has_pairs(each):
            with pytest.raises(TypeError, match=PAIRS):
                skops.dumps(model)
            continue
        again = read(skops.dumps(model))
        assert _said(again, X) == _said(model, X), each
        if hasattr(model, "partial_fit"):
            model.partial_fit(X, y)
            again.partial_fit(X, y)
            assert _said(again, X) == _said(model, X), f"{each} goes on otherwise"
        kinds.add(each.estimator)
    assert len(kinds) > 12


def test_a_type_that_is_not_trusted_is_named():
    data = skops.dumps(OnlineClassifier().fit(["wrong invoice", "log in"], ["billing", "support"]))
    with pytest.raises(Exception, match=re.escape("kesler.online.classifier.OnlineClassifier")):
        skops.loads(data)
