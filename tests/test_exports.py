"""Exports: what is compiled or loaded predicts as the estimator does."""

from __future__ import annotations

import ctypes
import importlib.util
import itertools
import math
import shutil
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from kesler import (
    JointBoostClassifier,
    KeslerError,
    MixedNormClassifier,
    OnlineClassifier,
    ShareBoostClassifier,
    export,
)
from kesler.compact import CompactClassifier
from kesler.datasets import load_pendigits
from kesler.dictionaries import Dictionary
from kesler.dictionaries.steps import Column, Piece, Product, Step, Stump, Template
from kesler.sharing.exports.predictor import CompactPredictor

RNG = np.random.default_rng(6)
CC = shutil.which("cc")
needs_compiler = pytest.mark.skipif(CC is None, reason="there is no C compiler, cc")
STRICT = ("-std=c99", "-O2", "-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion")
COUNTER = itertools.count()

# ---- models -------------------------------------------------------------------------------------


def values_of(step, X):
    """The columns of a step, as its docstring defines them."""
    if isinstance(step, Column):
        return X[:, [step.index]]
    if isinstance(step, Product):
        return X[:, [step.left]] * X[:, [step.right]]
    if isinstance(step, Stump):
        return np.where(X[:, [step.index]] < step.threshold, 1.0, 0.0)
    if isinstance(step, Piece):
        near = [[math.dist(x, step.centre) < step.radius] for x in X]
        return np.where(near, np.hstack([np.ones((len(X), 1)), X - step.centre]), 0.0)
    return largest_response(step, X)[:, None]


def largest_response(step, X):
    (rows, columns), (height, width), p = step.image_shape, step.patch.shape, step.padding
    images = np.zeros((len(X), rows + 2 * p, columns + 2 * p))
    images[:, p : p + rows, p : p + columns] = X.reshape(-1, rows, columns)
    found = []
    for i, j in np.ndindex(step.mask.shape):
        windows = images[:, i : i + height, j : j + width]
        responses = np.einsum("nij,ij->n", windows, step.patch)
        if step.fading is not None:
            responses /= windows.std(axis=(1, 2)) + step.fading
        found.append(responses * step.mask[i, j])
    return np.max(found, axis=0)


class Listed(Dictionary):
    """A dictionary of one's own: steps as they are given."""

    def __init__(self, steps):
        self.steps = steps

    def fit(self, X, y=None):
        self.n_candidates_ = len(self.steps)
        return self

    def widths(self, candidates):
        return np.array([self.steps[i].width for i in candidates])

    def columns(self, X, candidates):
        return np.hstack([values_of(self.steps[i], np.asarray(X)) for i in candidates])

    def step(self, candidate):
        return self.steps[candidate]


def model_of(steps, X, labels=("a", "b", "c"), **attributes):
    """A model with random weights, none of its steps left out, in another order than theirs."""
    model = ShareBoostClassifier()
    order = np.random.default_rng(1).permutation(len(steps))
    model.dictionary_ = Listed(steps).fit(X)
    model.support_ = order
    model.classes_ = np.array(labels)
    model.n_features_in_ = X.shape[1]
    width = sum(steps[i].width for i in order)
    model.coef_ = np.random.default_rng(2).normal(size=(len(labels), width))
    model.intercept_ = np.random.default_rng(3).normal(size=len(labels))
    for name, value in attributes.items():
        setattr(model, name, value)
    return model


def rows(n=1000, n_features=12):
    """Rows of numbers that single precision holds, so that both precisions see the same ones."""
    return RNG.normal(size=(n, n_features)).astype(np.float32).astype(np.float64)


X = rows()
IMAGES = rows(1000, 42)  # 6 x 7


def templates(padding=0, fading=None, shape=(2, 3)):
    """Two patches under three masks: one patch under two of them, one mask over both."""
    places = (6 + 2 * padding - shape[0] + 1, 7 + 2 * padding - shape[1] + 1)
    patches, masks = RNG.normal(size=(2, *shape)), RNG.random(size=(3, *places))
    masks[1][:, 2:] = 0
    masks[2][2:] = masks[2][:, 3:] = masks[2][0, 1] = 0
    pairs = [(0, 0), (1, 1), (0, 1), (1, 2)]
    return [Template((6, 7), patches[p], masks[m], padding, fading) for p, m in pairs]


CENTRES = 0.3 * RNG.normal(size=(2, 12))
PIECES = [Piece(CENTRES[i], radius) for i, radius in ((0, 3.0), (1, 3.3), (0, 3.6))]
STUMPS = [Stump(j, float(t)) for j, t in ((0, 0.1), (3, np.median(X[:, 3])), (0, X[7, 0]))]
MODELS = {
    "columns": (model_of([Column(3), Column(11), Column(0)], X), X),
    "products": (model_of([Product(0, 1), Product(5, 5), Product(2, 0)], X), X),
    "stumps": (model_of(STUMPS, X), X),
    "pieces": (model_of(PIECES, X), X),
    "templates": (model_of(templates(), IMAGES), IMAGES),
    "padded": (model_of(templates(padding=2, shape=(3, 3)), IMAGES), IMAGES),
    "relative": (model_of(templates(fading=0.5), IMAGES), IMAGES),
    "padded and relative": (model_of(templates(1, 0.01, (4, 1)), IMAGES), IMAGES),
    "all": (
        model_of(
            [
                *(PIECES[0], Column(1), *STUMPS, Product(3, 4), *PIECES[1:], Column(2)),
                Template((3, 4), np.ones((2, 2)), np.ones((2, 3))),
                Template((4, 3), np.eye(2), np.full((3, 2), -1.0), 0, 1.0),
            ],
            X,
        ),
        X,
    ),
    "one": (model_of([Column(4)], X), X),
    "two classes": (model_of([Column(4), Product(1, 2)], X, labels=("no", "yes")), X),
    "numbers": (model_of([Column(4), Stump(1, 0.0)], X, labels=(-3, 7, 1_000_000)), X),
    "reals": (model_of([Column(4), Column(5)], X, labels=(0.5, 2.5)), X),
    "booleans": (model_of([Column(4), Column(5)], X, labels=(False, True)), X),
    "one class": (model_of([Column(4)], X, labels=("all",)), X),
    "odd labels": (
        model_of([Column(4), Column(7)], X, labels=('"q"??/', "back\\slash\n", "é7", "{x}")),
        X,
    ),
}
CASES = pytest.mark.parametrize("case", MODELS)


def scores_of(model, X):
    """The scores of all classes, two of them too."""
    return model.dictionary_.columns(X, model.support_) @ model.coef_.T + model.intercept_


# ---- loading exports ----------------------------------------------------------------------------


def imported(path):
    spec = importlib.util.spec_from_file_location(f"exported_{next(COUNTER)}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def compiled(tmp_path, source, precision="double", name="model"):
    """The functions of a C export, over arrays."""
    library = tmp_path / f"{name}{next(COUNTER)}.so"
    strict = STRICT if precision == "double" else (*STRICT, "-Wdouble-promotion")
    command = [CC, *strict, "-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = ctypes.CDLL(str(library))
    dtype = np.float64 if precision == "double" else np.float32
    number = np.ctypeslib.ndpointer(dtype, flags="C_CONTIGUOUS")
    predict, scores = getattr(loaded, f"{name}_predict"), getattr(loaded, f"{name}_scores")
    predict.argtypes, scores.argtypes, scores.restype = [number], [number, number], None

    def run(X, n_classes):
        given, found = X.astype(dtype), np.empty((len(X), n_classes), dtype)
        for row, out in zip(given, found, strict=True):
            scores(row, out)
        return np.array([predict(row) for row in given]), found

    return run, loaded


def labels_in(loaded, model, name="model"):
    """The table of labels in a compiled export."""
    kinds = {"U": ctypes.c_char_p, "f": ctypes.c_double}
    kind = kinds.get(model.classes_.dtype.kind, ctypes.c_longlong)
    table = (kind * len(model.classes_)).in_dll(loaded, f"{name}_classes")
    return [label.decode() if isinstance(label, bytes) else label for label in table]


def session(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        path.read_bytes(), options, providers=["CPUExecutionProvider"]
    )


# ---- predictions --------------------------------------------------------------------------------


@CASES
def test_the_predictor_is_the_estimator(case):
    model, X = MODELS[case]
    predictor = CompactPredictor.of(model)
    np.testing.assert_allclose(predictor.scores(X), scores_of(model, X), rtol=1e-9, atol=1e-9)
    assert (predictor.predict(X) == model.predict(X)).all()


@CASES
def test_a_python_module_is_the_estimator(case, tmp_path):
    model, X = MODELS[case]
    export(model, tmp_path / "model.py")
    module = imported(tmp_path / "model.py")
    np.testing.assert_allclose(module.scores(X), scores_of(model, X), rtol=1e-9, atol=1e-9)
    found, expected = module.decision_function(X), model.decision_function(X)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    assert module.predict(X).tolist() == model.predict(X).tolist()


@needs_compiler
@CASES
@pytest.mark.parametrize("precision, tolerance", [("double", 1e-9), ("single", 2e-4)])
def test_c_source_is_the_estimator(case, precision, tolerance, tmp_path):
    model, X = MODELS[case]
    export(model, tmp_path / "model.c", precision=precision)
    run, loaded = compiled(tmp_path, tmp_path / "model.c", precision)
    found, scores = run(X, len(model.classes_))
    expected = scores_of(model, X)
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
    assert labels_in(loaded, model) == model.classes_.tolist()
    assert_alike(model.classes_[found], model, X, tolerance)


@CASES
@pytest.mark.parametrize("precision, tolerance", [("double", 1e-9), ("single", 2e-4)])
def test_onnx_is_the_estimator(case, precision, tolerance, tmp_path):
    model, X = MODELS[case]
    export(model, tmp_path / "model.onnx", precision=precision)
    given = {"X": X.astype(np.float64 if precision == "double" else np.float32)}
    labels, scores = session(tmp_path / "model.onnx").run(["label", "scores"], given)
    if any(isinstance(step, Template) for step in model.dictionary_.steps):
        tolerance = 2e-4
    expected = scores_of(model, X)
    np.testing.assert_allclose(scores, expected, rtol=tolerance, atol=tolerance)
    assert_alike(labels, model, X, tolerance)


def assert_alike(labels, model, X, tolerance):
    """Labels are the estimator's, unless two classes are as near as the precision allows."""
    scores = np.sort(scores_of(model, X), axis=1)
    clear = np.full(len(X), True)
    if scores.shape[1] > 1:
        clear = scores[:, -1] - scores[:, -2] > 10 * tolerance
    assert clear.mean() > 0.99
    assert np.asarray(labels)[clear].tolist() == model.predict(X)[clear].tolist()


def test_pieces_and_stumps_of_the_tests_are_met_by_some_rows_only():
    for case in ("pieces", "stumps"):
        values = MODELS[case][0].dictionary_.columns(X, np.arange(3))
        hit = (values[:, :: values.shape[1] // 3] == 1).mean(axis=0)
        assert ((hit > 0.1) & (hit < 0.9)).all(), hit


@pytest.mark.parametrize("precision", ["double", "single"])
def test_a_stump_at_the_very_value_of_a_row(precision, tmp_path):
    """Below is not at; 0.1 and 0.7 are no numbers of single precision: they round up and down."""
    thresholds = (0.1, 0.7, X[7, 0])
    near = np.float32(thresholds)
    values = np.concatenate([near, np.nextafter(near, np.float32(0))])
    model = model_of([Stump(0, threshold) for threshold in thresholds], X)
    given = np.tile(values.astype(np.float64)[:, None], (1, 12))
    export(model, tmp_path / "m.onnx", precision=precision)
    kind = np.float64 if precision == "double" else np.float32
    expected = scores_of(model, given)
    scores = session(tmp_path / "m.onnx").run(["scores"], {"X": given.astype(kind)})[0]
    np.testing.assert_allclose(scores, expected, atol=1e-5)
    if CC is not None:
        export(model, tmp_path / "model.c", precision=precision)
        run, _ = compiled(tmp_path, tmp_path / "model.c", precision)
        np.testing.assert_allclose(run(given, 3)[1], expected, atol=1e-5)


def test_equal_scores_go_to_the_first_class(tmp_path):
    model = model_of([Column(0)], X, coef_=np.zeros((3, 1)), intercept_=np.array([0.0, 1.0, 1.0]))
    for suffix in (".py", ".onnx", ".c"):
        export(model, tmp_path / f"model{suffix}")
    assert set(imported(tmp_path / "model.py").predict(X[:5])) == {"b"} == set(model.predict(X[:5]))
    assert set(session(tmp_path / "model.onnx").run(["label"], {"X": X[:5]})[0]) == {"b"}
    if CC is not None:
        run, _ = compiled(tmp_path, tmp_path / "model.c")
        assert run(X[:5], 3)[0].tolist() == [1] * 5


def test_a_fitted_model(tmp_path):
    """From fit to export, by the method of the estimator."""
    y = np.array(["north", "south", "east"])[np.argmax(X[:, :3] + 0.1 * X[:, 3:6], axis=1)]
    model = ShareBoostClassifier(4).fit(X, y)
    model.export(tmp_path / "model.py")
    module = imported(tmp_path / "model.py")
    assert (module.predict(X) == model.predict(X)).all() and model.score(X, y) > 0.9
    expected = model.decision_function(X)
    np.testing.assert_allclose(module.decision_function(X), expected, rtol=1e-9, atol=1e-9)
    assert model.cost_ == 4 * 3


@pytest.mark.parametrize("dictionary", ["columns", "products", "stumps", "pieces"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_fitted_dictionaries(dictionary, dtype, tmp_path):
    """Each kind of step as fit leaves it: thresholds and radii lie between rows, not on one."""
    given = X.astype(dtype)
    y = np.array(["north", "south", "east"])[np.argmax(X[:, :3] * X[:, 3:6], axis=1)]
    model = ShareBoostClassifier(5, dictionary=dictionary).fit(given, y)
    for fewer in (model, model.at(2)):
        for suffix in (".py", ".onnx", ".c"):
            fewer.export(tmp_path / f"model{suffix}")
        expected = fewer.predict(given).tolist()
        scores = imported(tmp_path / "model.py").scores(given)
        tolerance = 1e-9 if dtype == np.float64 else 1e-4
        found = fewer.decision_function(given)
        np.testing.assert_allclose(scores, found, rtol=tolerance, atol=tolerance)
        assert imported(tmp_path / "model.py").predict(given).tolist() == expected
        labels = session(tmp_path / "model.onnx").run(["label"], {"X": given})[0]
        assert labels.tolist() == expected
        if CC is not None:
            run, _ = compiled(tmp_path, tmp_path / "model.c")
            assert fewer.classes_[run(X, 3)[0]].tolist() == expected


def test_onnx_takes_the_rows_that_the_loaders_give(tmp_path):
    data = load_pendigits()
    found = {}
    for precision in ("double", "single"):
        model = ShareBoostClassifier(4, dictionary="stumps").fit(data.X[:300], data.y[:300])
        model.export(tmp_path / "model.onnx", precision=precision)
        found[precision] = session(tmp_path / "model.onnx").run(["label", "scores"], {"X": data.X})
        assert found[precision][0].tolist() == model.predict(data.X).tolist()
    assert [scores.dtype for _, scores in found.values()] == [np.float64, np.float32]


# ---- labels -------------------------------------------------------------------------------------

TEXTS = st.text(
    st.one_of(
        st.sampled_from("\"'\\?%/{} \n\r\t0a"),
        st.characters(exclude_characters="\0", codec="utf-8"),
    ),
    max_size=120,
)
WHOLE = st.integers(-(2**63), 2**64 - 1)
MAIN = """#include <stdio.h>
int main(void)
{{
    for (int i = 0; i < {n}; i++) {{
        {say}
        putchar(0);
    }}
    return 0;
}}
"""


def printed(labels, say, folder):
    """What a program prints that is compiled with an export of a model of these labels."""
    model = model_of([Column(0)], X, labels=labels)
    export(model, folder / "model.c")
    source = folder / "main.c"
    source.write_text((folder / "model.c").read_text() + MAIN.format(n=len(labels), say=say))
    program = folder / "main"
    done = subprocess.run(
        [CC, *STRICT, "-O0", "-o", str(program), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    output = subprocess.run([str(program)], capture_output=True, check=True).stdout
    return output.decode().split("\0")[:-1]


@needs_compiler
@settings(max_examples=60)
@example(labels=["very damp grey soil", " " * 200, "very damp grey\nsoil " * 12])
@example(labels=["??/", "??=", "\\", '"', "%s%n", "\\0", "\x01" + "1", "\U0001f600\u200d", ""])
@example(labels=["' " * 2048, "\u00e9" * 2048])  # longer than a string of C99 must be
@given(st.lists(TEXTS, min_size=1, max_size=12, unique=True))
def test_labels_of_any_text_compile_and_print_as_they_are(tmp_path_factory, labels):
    folder = tmp_path_factory.mktemp("labels")
    assert printed(labels, "fputs(model_classes[i], stdout);", folder) == labels


@needs_compiler
@settings(max_examples=20)
@example(numbers=[-(2**63), 2**63 - 1])
@example(numbers=[5, 2**63, 2**64 - 1])
@given(st.lists(WHOLE, min_size=1, max_size=5, unique=True))
def test_labels_of_any_number_compile_and_print_as_they_are(tmp_path_factory, numbers):
    unsigned = max(numbers) >= 2**63
    assume(not unsigned or min(numbers) >= 0)
    labels = np.array(numbers, dtype=np.uint64 if unsigned else np.int64)
    say = f'printf("%{"llu" if unsigned else "lld"}", model_classes[i]);'
    found = printed(labels, say, tmp_path_factory.mktemp("labels"))
    assert found == [str(number) for number in numbers]


def test_a_label_with_the_character_0_is_refused_in_c_alone(tmp_path):
    model = model_of([Column(0)], X, labels=np.array(["a\0", "b"], dtype=object))
    with pytest.raises(KeslerError, match=r"'a\\x00' contains the character 0, at which a text"):
        export(model, tmp_path / "model.c")
    export(model, tmp_path / "model.onnx")
    labels = session(tmp_path / "model.onnx").run(["label"], {"X": X})[0]
    assert labels.tolist() == model.predict(X).tolist() == ["a\0"] * len(X)


@pytest.mark.parametrize("suffix", [".c", ".onnx"])
def test_half_of_a_surrogate_pair_is_refused(suffix, tmp_path):
    model = model_of([Column(0)], X, labels=np.array(["a", "\ud800"], dtype=object))
    with pytest.raises(KeslerError, match=r"'\\ud800' contains half of a surrogate pair"):
        export(model, tmp_path / f"model{suffix}")
    assert not list(tmp_path.iterdir())


# ---- what the files are -------------------------------------------------------------------------


def test_a_python_module_needs_numpy_only(tmp_path):
    export(MODELS["all"][0], tmp_path / "model.py")
    script = (
        "import sys, model\n"
        "model.predict([[0.0] * 12])\n"
        "sys.exit(str({'kesler', 'sklearn', 'scipy'} & set(sys.modules) or ''))"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stderr.strip() == "", done.stderr


def test_a_python_module_refuses_rows_of_another_width(tmp_path):
    export(MODELS["one"][0], tmp_path / "model.py")
    for predictor in (imported(tmp_path / "model.py"), CompactPredictor.of(MODELS["one"][0])):
        with pytest.raises(ValueError, match=r"X is of shape \(2, 3\), not \(n_rows, 12\)"):
            predictor.predict(np.ones((2, 3)))


@needs_compiler
def test_c_reads_only_the_chosen_features(tmp_path):
    model, _ = MODELS["columns"]
    export(model, tmp_path / "model.c")
    run, _ = compiled(tmp_path, tmp_path / "model.c")
    blind = np.full((1, 12), np.nan)
    blind[0, [0, 3, 11]] = X[0, [0, 3, 11]]
    assert "Reads, counting from 0: 0, 3, 11.\n" in (tmp_path / "model.c").read_text()
    np.testing.assert_allclose(run(blind, 3)[1], scores_of(model, X[:1]), rtol=1e-9)


@pytest.mark.parametrize(
    "case, read",
    [("products", [0, 1, 2, 5]), ("stumps", [0, 3]), ("pieces", range(12)), ("padded", range(42))],
)
def test_what_is_read(case, read):
    assert CompactPredictor.of(MODELS[case][0]).reads == list(read)


@pytest.mark.parametrize("stem", ['a"b', "a\\b", "a\nb"])
def test_a_header_that_cannot_be_included_is_refused(tmp_path, stem):
    model = MODELS["two classes"][0]
    path = tmp_path / f"{stem}.c"
    with pytest.raises(KeslerError, match="cannot be the name of a header"):
        export(model, path, header=True)
    assert not path.exists()
    export(model, path)
    assert "int a_b_predict(" in path.read_text()


@needs_compiler
def test_a_header_serves_c_and_its_guard(tmp_path):
    model, _ = MODELS["two classes"]
    export(model, tmp_path / "yes or no.c", header=True)
    main = tmp_path / "main.c"
    main.write_text(
        '#include <stdio.h>\n#include "yes or no.h"\n#include "yes or no.h"\n'
        "int main(void)\n{\n    double x[12] = {0};\n"
        "    puts(yes_or_no_classes[yes_or_no_predict(x)]);\n    return 0;\n}\n"
    )
    files = [str(tmp_path / "yes or no.c"), str(main)]
    subprocess.run([CC, *STRICT, "-o", str(tmp_path / "run"), *files], check=True)
    done = subprocess.run([str(tmp_path / "run")], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == model.predict(np.zeros((1, 12)))[0]


@needs_compiler
def test_names_in_c_are_ones_own_choice_and_hurt_nothing(tmp_path):
    names = np.array([f'f{i} */ int x; /* "??/ \\' for i in range(12)], dtype=object)
    model = model_of([Column(3), Product(1, 2)], X, feature_names_in_=names)
    export(model, tmp_path / "2 net-works.c", name="for ever")
    run, _ = compiled(tmp_path, tmp_path / "2 net-works.c", name="for_ever")
    np.testing.assert_allclose(run(X, 3)[1], scores_of(model, X), rtol=1e-9, atol=1e-9)
    export(model, tmp_path / "model.py")
    np.testing.assert_allclose(imported(tmp_path / "model.py").scores(X), scores_of(model, X))


def test_shared_patches_and_masks_stand_there_once(tmp_path):
    export(MODELS["templates"][0], tmp_path / "model.c")
    source = (tmp_path / "model.c").read_text()
    assert "patch_0[2][6]" in source and "box_0[2][4]" in source and "mask_begin_0[4]" in source
    for case, shared in (("templates", "patch"), ("pieces", "centre")):
        [table] = CompactPredictor.of(MODELS[case][0]).tables
        assert (np.diff(getattr(table, shared)) >= 0).all()  # side by side: one is computed once
    assert "piece_centre[2][12]" in c_text(MODELS["pieces"][0], tmp_path)


def c_text(model, tmp_path):
    export(model, tmp_path / "text.c")
    return (tmp_path / "text.c").read_text()


def test_onnx_is_standard(tmp_path):
    export(MODELS["all"][0], tmp_path / "model.onnx")
    model = onnx.load(tmp_path / "model.onnx")
    onnx.checker.check_model(model, full_check=True)
    assert {node.domain for node in model.graph.node} == {""}


# ---- costs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "case, features",
    [
        ("columns", 0),
        ("products", 3),
        ("stumps", 0),
        ("pieces", 2 * 12),  # two centres, one of them under two radii
    ],
)
def test_cost(case, features):
    model, _ = MODELS[case]
    assert CompactPredictor.of(model).cost == features + model.coef_.size == model.cost_


def test_shared_convolutions_count_once():
    """By counting: a patch is laid on the places from the first to the last that it needs."""
    for fading in (None, 1.0):
        steps = templates(fading=fading)
        needed, weighted = {0: [], 1: []}, 0
        for number, step in zip((0, 1, 0, 1), steps, strict=True):
            places = list(zip(*step.mask.nonzero(), strict=True))
            needed[number] += places
            weighted += len(places)
        spans = [np.ptp(needed[number], axis=0) + 1 for number in (0, 1)]
        assert [span.tolist() for span in spans] == [[5, 5], [5, 3]]
        laid = sum(math.prod(span) for span in spans)
        scaled = 0 if fading is None else 5 * 5
        expected = 6 * laid + weighted + 6 * scaled + 3 * 4
        assert CompactPredictor.of(model_of(steps, IMAGES)).cost == expected
    alone = [CompactPredictor.of(model_of([step], IMAGES)).cost for step in steps]
    assert sum(alone) > expected
    assert alone == [step.cost + 3 for step in steps]


# ---- refusals -----------------------------------------------------------------------------------


class Own(Step):
    cost = 1

    def name(self, features):
        return "own"


class Silent(Listed):
    step = Dictionary.step


@pytest.mark.parametrize("suffix", [".py", ".c", ".onnx"])
def test_an_unfitted_model_is_refused(suffix, tmp_path):
    with pytest.raises(NotFittedError, match="not fitted"):
        export(ShareBoostClassifier(), tmp_path / f"model{suffix}")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "model", [OnlineClassifier().fit(X, X[:, 0] > 0), JointBoostClassifier(), {}, None]
)
def test_what_cannot_be_exported_is_not_called_unfitted(model, tmp_path):
    with pytest.raises(KeslerError, match=f"^{type(model).__name__} cannot be exported"):
        export(model, tmp_path / "model.c")


def test_a_model_of_texts_is_told_its_own_export(tmp_path):
    model = OnlineClassifier().fit(["log in", "an invoice"], ["login", "bills"])
    with pytest.raises(KeslerError, match=r"kesler\.compact\.CompactClassifier\.of\(model\)"):
        export(model, tmp_path / "model.c")
    CompactClassifier.of(model).export(tmp_path / "model.c")


def test_a_mixed_norm_is_exported(tmp_path):
    model = MixedNormClassifier(0.05).fit(X.astype(np.float32), X[:, 0] > 0)
    model.export(tmp_path / "model.onnx")
    labels = session(tmp_path / "model.onnx").run(["label"], {"X": X.astype(np.float32)})[0]
    assert labels.tolist() == model.predict(X).tolist()


def test_a_dictionary_that_tells_no_steps_is_refused(tmp_path):
    model = model_of([Column(0)], X, dictionary_=Silent([Column(0)]))
    with pytest.raises(KeslerError, match=r"Silent does not define .* step\(candidate\)"):
        export(model, tmp_path / "model.c")


def test_a_step_of_ones_own_is_refused(tmp_path):
    model = model_of([Column(0)], X, dictionary_=Listed([Own()]))
    with pytest.raises(KeslerError, match="Own is a custom step"):
        export(model, tmp_path / "model.c")


def test_labels_that_no_file_holds_are_refused(tmp_path):
    model = model_of([Column(0)], X, classes_=np.array([(1, 2), None, 3], dtype=object))
    with pytest.raises(KeslerError, match=r"the label \(1, 2\) is of type tuple, which no file"):
        export(model, tmp_path / "model.py")


@pytest.mark.parametrize(
    "name, options, sentence",
    [
        ("model.java", {}, r"is not a format of exports: use .py, .c or .onnx"),
        ("model", {}, r"is not a format of exports"),
        ("model.c", {"precision": "half"}, "choose 'double' or 'single'"),
        ("model.py", {"precision": "single"}, "double precision"),
        ("model.py", {"name": "m"}, "leave precision and name out"),
        ("model.onnx", {"header": True}, "applies to .c only"),
        ("none/model.c", {}, "cannot be written"),
    ],
)
def test_options_that_do_not_fit_are_refused(name, options, sentence, tmp_path):
    with pytest.raises(KeslerError, match=sentence):
        export(MODELS["one"][0], tmp_path / name, **options)
    assert not list(tmp_path.iterdir())


def test_without_onnx_a_sentence_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(KeslerError, match=r"pip install 'kesler\[onnx\]'"):
        export(MODELS["one"][0], tmp_path / "model.onnx")
