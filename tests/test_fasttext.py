"""fastText's functions and files, compared with the package itself."""

import inspect
import random
import re
import struct
import warnings

import numpy as np
import pytest
from sklearn.metrics import precision_recall_fscore_support

from kesler import OnlineClassifier, OnlineMultilabelClassifier, datasets, fasttext, load
from kesler.errors import KeslerError, MismatchWarning, ReadingWarning
from kesler.readers import open_stream

package = pytest.importorskip("fasttext", reason="needs fasttext-wheel, fastText's package")

ADDED = 1e-5  # in the scores of fastText
ODD = [
    *("", "   ", "xyzzyqwv", "__label__card_arrival my card", "__label__nolabel __label__ a"),
    *("a\tb\fc d\u00a0e", "ünïcode wörter 中文字 ответ 😀", "my</s>card </s> card", "x" * 500),
]
SETTINGS = {
    "words": {},
    "runs of words": {"wordNgrams": 3, "bucket": 3000},
    "subwords": {"minn": 2, "maxn": 5, "bucket": 2000, "wordNgrams": 2},
    "no words": {"minn": 3, "maxn": 3, "bucket": 1, "minCount": 1000},
    "tree": {"loss": "hs", "wordNgrams": 2, "bucket": 1000},
    "one vs. all": {"loss": "ova", "minn": 3, "maxn": 3, "bucket": 1000},
    "negative samples": {"loss": "ns"},
}
QUANTIZED = {
    "words": {},
    "runs of words": {"qnorm": True, "cutoff": 400},
    "subwords": {"qnorm": True, "cutoff": 600, "retrain": True},
    "tree": {"qout": True, "dsub": 4},
}


@pytest.fixture(scope="module")
def texts():
    found = [record["text"] for record in datasets.load("banking77").records]
    return [" ".join(text.split()) for text in found]


@pytest.fixture(scope="module")
def train(texts, tmp_path_factory):
    """A file of lines with 308 labels, enough for fastText to quantize its output matrix."""
    labels = datasets.load("banking77").y
    path = tmp_path_factory.mktemp("fasttext") / "train.txt"
    lines = [
        f"__label__{y}_{i % 4} {text}"
        for i, (y, text) in enumerate(zip(labels, texts, strict=True))
    ]
    path.write_text("\n".join(lines[::3]) + "\n")
    return path


def trained(train, path, settings, quantized=None):
    given = {"dim": 16, "epoch": 2, "lr": 0.2, "thread": 1, "verbose": 0, **settings}
    model = package.train_supervised(str(train), **given)
    if quantized is not None:
        model.quantize(input=str(train), verbose=0, **quantized)
    model.save_model(str(path))
    return package.load_model(str(path))


def predicted(model, text, k, threshold=0.0):
    """Return labels and scores; the package's own method raises with NumPy 2."""
    pairs = model.f.predict(f"{text}\n", k, threshold, "strict")
    return [label for _, label in pairs], [score for score, _ in pairs]


CASES = [(name, None) for name in SETTINGS] + [*QUANTIZED.items()]


@pytest.mark.parametrize(("name", "quantized"), CASES)
def test_models_of_the_package_predict_as_in_the_package(train, texts, tmp_path, name, quantized):
    theirs = trained(train, tmp_path / "model", SETTINGS[name], quantized)
    ours = fasttext.load_model(tmp_path / "model")
    assert (ours.labels, ours.words) == (theirs.labels, theirs.words)
    for text in [*texts[:1000], *ODD]:
        expected, scores = predicted(theirs, text, k=-1)
        labels, found = ours.predict(text, k=-1)
        np.testing.assert_allclose(found, scores, rtol=0, atol=ADDED)
        of_label = dict(zip(expected, scores, strict=True))
        # Labels of equal scores may be exchanged.
        np.testing.assert_allclose([of_label[each] for each in labels], scores, rtol=0, atol=1e-6)
        vector = ours.get_sentence_vector(text)
        np.testing.assert_allclose(vector, theirs.get_sentence_vector(text), atol=1e-5)
    for word in ("card", "unknownword", "</s>"):
        vector = ours.get_word_vector(word)
        np.testing.assert_allclose(vector, theirs.get_word_vector(word), atol=1e-5)


@pytest.mark.parametrize("name", ["words", "tree"])
def test_labels_from_a_threshold_on_are_those_of_the_package(train, texts, tmp_path, name):
    theirs = trained(train, tmp_path / "model", SETTINGS[name])
    ours = fasttext.load_model(tmp_path / "model")
    for k, threshold in ((2, 0.0), (3, 0.03), (-1, 0.01), (5, 0.9)):
        expected = [[*predicted(theirs, text, k, threshold)[0]] for text in texts[:300]]
        labels, _ = ours.predict(texts[:300], k=k, threshold=threshold)
        assert labels == expected


def test_precision_and_recall_are_those_of_the_package_and_of_scikit_learn(train, tmp_path):
    theirs = trained(train, tmp_path / "model", {})
    ours = fasttext.load_model(tmp_path / "model")
    assert ours.test(train, k=2) == pytest.approx(theirs.test(str(train), k=2))
    of_labels = ours.test_label(train)
    lines = train.read_text().splitlines()
    right = [line.split(" ", 1)[0] for line in lines]
    predicted = [labels[0] for labels in ours.predict([line.split(" ", 1)[1] for line in lines])[0]]
    expected = precision_recall_fscore_support(
        right, predicted, labels=ours.labels, zero_division=np.nan
    )
    for i, figure in enumerate(("precision", "recall", "f1score")):
        found = [of_labels[label][figure] for label in ours.labels]
        np.testing.assert_allclose(found, expected[i])


def test_damaged_files_are_refused_or_answer(train, tmp_path):
    """A changed weight, letter or length of a run is not noticed; files have no checksum."""
    generator = random.Random(5)
    trained(train, tmp_path / "good", SETTINGS["subwords"], QUANTIZED["subwords"])
    content = (tmp_path / "good").read_bytes()
    n_refused, path = 0, tmp_path / "bad"
    for case in range(300):
        damaged = bytearray(content)
        if case % 3 == 0:
            damaged = damaged[: generator.randrange(len(damaged))]
        elif case % 3 == 1:
            damaged[generator.randrange(100)] ^= 1 << generator.randrange(8)
        else:
            damaged += bytes(generator.randrange(1, 9))
        path.write_bytes(damaged)
        try:
            fasttext.load_model(path).predict("my card is lost")
        except KeslerError as error:
            n_refused += 1
            assert re.search(r"bad (can't be read|holds word vectors|is a model)|bad", str(error))
        else:
            assert case % 3 == 1, case
    assert n_refused >= 200


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [
        (28, "i", 1 << 20),  # wordNgrams
        (44, "i", 1 << 11),  # minn
        (48, "i", 1 << 11),  # maxn
        (76, "q", 3),  # tokens
    ],
)
def test_arguments_that_no_model_has_are_refused(train, tmp_path, at, form, value):
    trained(train, tmp_path / "model", SETTINGS["subwords"], None)
    content = bytearray((tmp_path / "model").read_bytes())
    struct.pack_into(f"<{form}", content, at, value)
    (tmp_path / "bad").write_bytes(content)
    with pytest.raises(KeslerError, match="can't be read as a model of fastText"):
        fasttext.load_model(tmp_path / "bad")


def test_arguments_that_mean_nothing_are_read(train, texts, tmp_path):
    """Words of the vectors are counted once, whatever `minCount` is."""
    vectors = [f"other{i} 0.5 0.25" for i in range(50)]
    (tmp_path / "small.vec").write_text("\n".join(["50 2", *vectors, ""]))
    given = {"pretrainedVectors": str(tmp_path / "small.vec"), "dim": 2, "minCount": 5, "t": -1.0}
    theirs = trained(train, tmp_path / "model", {**given, "ws": 0, "minn": 5, "maxn": 3})
    ours = fasttext.load_model(tmp_path / "model")
    for text in texts[:50]:
        labels, scores = ours.predict(text, k=3)
        assert (list(labels), list(scores)) == (
            predicted(theirs, text, 3)[0],
            pytest.approx(predicted(theirs, text, 3)[1], abs=1e-5),
        )


def header(n_labels, dim, *, ngrams=1, maxn=0):
    """Return the beginning of a file without words and hashes, whose matrices are quantized."""
    numbers = 793712314, 12, dim, 5, 5, 1, 5, ngrams, 3, 3, 0, 0, maxn, 100
    entries = b"".join(b"__label__%d\0" % i + struct.pack("<qb", 1, 1) for i in range(n_labels))
    sizes = struct.pack("<iiiqq", n_labels, 0, n_labels, n_labels, -1)
    return struct.pack("<14id", *numbers, 1e-4) + sizes + entries


def test_small_files_of_large_matrices_and_hashes_of_none_are_refused(tmp_path):
    def quantized(n_rows, dim):
        codebook = struct.pack("<iiii", dim, 1, dim, dim) + bytes(4 * 256 * dim)
        head = struct.pack("<?qqi", False, n_rows, dim, n_rows)
        return head + bytes(n_rows) + codebook

    path, (n, dim) = tmp_path / "model.ftz", (300_000, 1000)
    empty = struct.pack("<?qq", False, 0, dim)  # a dense matrix without rows
    path.write_bytes(header(n, dim) + empty + struct.pack("<?", True) + quantized(n, dim))
    with pytest.raises(KeslerError, match="300000 labels with 1000 numbers each are too many"):
        fasttext.load_model(path)
    for more in ({"ngrams": 2}, {"maxn": 3}):
        path.write_bytes(header(3, 4, **more))
        with pytest.raises(KeslerError, match=r"its arguments are none of fastText's"):
            fasttext.load_model(path)


def test_models_of_word_vectors_are_refused(train, tmp_path):
    vectors = package.train_unsupervised(
        str(train), dim=8, epoch=1, thread=1, verbose=0, bucket=100, minCount=50
    )
    vectors.save_model(str(tmp_path / "vectors.bin"))
    with pytest.raises(KeslerError, match="word vectors, not a classifier"):
        fasttext.load_model(tmp_path / "vectors.bin")


def test_a_model_of_the_package_does_not_learn(train, tmp_path):
    trained(train, tmp_path / "model", {})
    model = fasttext.load_model(tmp_path / "model")
    with pytest.raises(KeslerError, match="does not learn: train one"):
        model.learn("my card", "__label__new")
    with pytest.raises(KeslerError, match="copy its file"):
        model.save_model(tmp_path / "copy")


def test_tokens_are_those_of_the_package():
    for text in [*ODD, "a\nb\n", "\n", "a\0b"]:
        assert fasttext.tokenize(text) == package.tokenize(text)


# ---- classifiers of Kesler ----------------------------------------------------------------------


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.txt"
    path.write_text("__label__bill the invoice is wrong\n__label__login I cannot log in\n" * 10)
    return path


def test_a_trained_model_is_the_default_classifier_of_the_same_rows(small, tmp_path):
    model = fasttext.train_supervised(small)
    stream = open_stream(small, format="fasttext", as_table=True)
    (block,) = [*stream]
    expected = OnlineClassifier().fit([*block.rows.columns["text"]], block.labels)
    labels, found = model.predict("the wrong invoice", k=-1)
    assert labels == ("__label__bill", "__label__login")
    np.testing.assert_array_equal(found, expected.predict_proba(["the wrong invoice"])[0])
    model.save_model(tmp_path / "model.kesler")
    again = fasttext.load_model(tmp_path / "model.kesler")
    assert again.predict(["log in", "invoice"]) == (
        [["__label__login"], ["__label__bill"]],
        [*map(pytest.approx, model.predict(["log in", "invoice"])[1])],
    )
    assert load(tmp_path / "model.kesler").classes_.tolist() == ["bill", "login"]
    assert {"invoice", "log"} < {*again.words} and not any(" " in word for word in again.words)


def test_new_labels_are_learnt(small):
    model = fasttext.train_supervised(small)
    model.learn(["is there a job", "I apply for a job"], ["__label__jobs", "jobs"])
    assert model.labels == ["__label__bill", "__label__jobs", "__label__login"]
    assert model.predict("a job")[0] == ("__label__jobs",)


def test_lines_with_several_labels_are_label_sets(tmp_path):
    path = tmp_path / "sets.txt"
    path.write_text("__label__a __label__b both of them\n__label__a only this\n" * 20)
    model = fasttext.train_supervised(path)
    assert {*model.predict("both of them", k=2, threshold=0.5)[0]} == {"__label__a", "__label__b"}
    model.learn("something else", ["__label__c", "__label__a"])
    assert model.labels == ["__label__a", "__label__b", "__label__c"]
    assert isinstance(model._predictor.estimator, OnlineMultilabelClassifier)
    assert model.test(path, k=2, threshold=0.5) == (40, 1.0, 1.0)


def test_lines_without_labels_are_left_out_with_a_warning(small):
    small.write_text(small.read_text() + "a line without a label\n\n")
    with pytest.warns(ReadingWarning, match="there is no label"):
        model = fasttext.train_supervised(small)
    assert model.labels == ["__label__bill", "__label__login"]


def test_lines_that_cannot_be_read_are_left_out_with_a_warning(small):
    small.write_text(small.read_text() + "__label__ nothing\n")
    with pytest.warns(ReadingWarning, match="1 row that cannot be read is left out; .*stands w"):
        model = fasttext.train_supervised(small)
    assert model.labels == ["__label__bill", "__label__login"]


@pytest.mark.parametrize("method", ["test", "test_label"])
def test_warnings_of_a_file_name_the_line_that_tests_it(small, tmp_path, method):
    model, other = fasttext.train_supervised(small), tmp_path / "other.txt"
    other.write_text("__label__bill the invoice\n__label__unknown the job\n__label__ nothing\n")
    with pytest.warns(ReadingWarning) as found:
        getattr(model, method)(other)
    assert {each.filename for each in found} == {__file__} and len(found) == 2


def test_arguments_of_features_are_columns(small):
    model = fasttext.train_supervised(small, wordNgrams=1, minn=3, maxn=5, epoch=2, seed=1)
    names = model._predictor.estimator.vocabulary_.names
    assert "text<inv" in names and "text< invo" in names and "text<the " in names
    assert "text<e in" not in names and "text:the invoice" not in names
    assert "invoice" in model.words
    with pytest.raises(KeslerError, match="ngrams"):
        fasttext.train_supervised(small, wordNgrams=9)


def test_arguments_without_effect_warn(small):
    with pytest.warns(MismatchWarning, match="lr has no effect: the default needs no step size"):
        fasttext.train_supervised(small, lr=0.5)
    with pytest.warns(MismatchWarning, match="epoch has no effect: label sets"):
        fasttext.train_supervised(small, epoch=3, loss="ova")
    with pytest.warns(MismatchWarning, match="minn has no effect: .* give maxn beside it"):
        model = fasttext.train_supervised(small, minn=3)
    assert model._predictor.estimator.columns == "auto"
    with pytest.raises(TypeError, match="'rate'"):
        fasttext.train_supervised(small, rate=0.5)
    with pytest.raises(KeslerError, match="loss='soft': choose one of softmax"):
        fasttext.train_supervised(small, loss="soft")


def test_every_argument_of_the_package_is_known(small):
    from kesler.fasttext.ignored import OF_QUANTIZE, OF_TRAINING

    own = {*fasttext.train_supervised.__kwdefaults__, "input"}
    source = inspect.getsource(package.FastText.train_supervised)
    theirs = {name for name in package.FastText.unsupervised_default if name in source}
    assert len(theirs) > 20 and theirs <= {*own, *OF_TRAINING}
    of_quantize = inspect.signature(package.FastText._FastText.quantize).parameters
    ours = {*fasttext.Model.quantize.__kwdefaults__, "self"}
    assert {*of_quantize} <= {*ours, *OF_QUANTIZE}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda model: model.predict("a\nb"), "several lines"),
        (lambda model: model.predict("a", k=0), "k=0: give a number of labels"),
        (lambda model: model.predict(b"a"), "of type bytes: give str"),
        (lambda model: model.learn("a", ["b", "c"]), "a text has 2 labels, and this model has one"),
        (lambda model: model.predict("a", threshold=2), "threshold=2: give a probability"),
        (lambda model: model.predict(["a", 3]), "a text is of type int"),
        (lambda model: model.get_sentence_vector("a"), "has no vectors"),
    ],
)
def test_mistakes_of_users_are_sentences(small, wrong, said):
    model = fasttext.train_supervised(small)
    with pytest.raises(KeslerError, match=said):
        wrong(model)


def test_files_that_are_no_models_are_refused(small, tmp_path):
    with pytest.raises(KeslerError, match="is no file"):
        fasttext.load_model(tmp_path / "missing")
    with pytest.raises(KeslerError, match=r"small\.txt"):
        fasttext.load_model(small)
    OnlineClassifier().learn_one("a b", "c").save(tmp_path / "other.kesler")
    with pytest.raises(KeslerError, match=r"none of kesler\.fasttext"):
        fasttext.load_model(tmp_path / "other.kesler")


def test_unknown_labels_of_a_file_are_said(small, tmp_path):
    model = fasttext.train_supervised(small)
    other = tmp_path / "other.txt"
    other.write_text("__label__bill the invoice\n__label__unknown the job\n")
    with pytest.warns(ReadingWarning, match="1 labels that the model does not know"):
        assert model.test(other) == (1, 1.0, 1.0)
    other.write_text("__label__unknown the job\n")
    with warnings.catch_warnings(), pytest.raises(KeslerError, match="no label of"):
        warnings.simplefilter("ignore")
        model.test(other)


# ---- the reader ---------------------------------------------------------------------------------


def read(path, **options):
    return [label for block in open_stream(path, **options) for label in block.labels]


def test_labels_stand_anywhere_and_are_strings(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("__label__7 a b\na __label__8 b\n\n")
    assert read(path) == ["7", "8"]
    path.write_text("#7 a b\nc #8\n")
    assert read(path, format="fasttext", label="#") == ["7", "8"]


def test_lines_with_several_labels_are_refused_where_one_is_learnt(tmp_path):
    path = tmp_path / "rows.txt"
    path.write_text("__label__a x\n__label__a __label__b y\n")
    with pytest.raises(KeslerError, match=r"line 2.*2 labels, 'a' and others: learn label sets"):
        read(path)
    assert read(path, label_sets=True) == [("a",), ("a", "b")]
    path.write_text("__label__a x\n__label__ y\n")
    with pytest.raises(KeslerError, match=r"line 2.*without a label behind it"):
        read(path)


# ---- quantized models -----------------------------------------------------------------------


TEXTS_ASKED = ["my card has not arrived", "why is my top up still pending"]


@pytest.fixture
def quantized(train, tmp_path):
    """A model of a few hundred labels that has been quantized, saved and loaded."""
    model = fasttext.train_supervised(train)
    model.save_model(tmp_path / "whole")
    whole = model.predict(TEXTS_ASKED)[0]
    model.quantize()
    model.save_model(tmp_path / "small")
    assert (tmp_path / "small").stat().st_size < (tmp_path / "whole").stat().st_size / 10
    return whole, model, fasttext.load_model(tmp_path / "small")


def test_a_quantized_model_predicts_after_it_was_saved(quantized, train):
    whole, model, loaded = quantized
    assert loaded.labels == model.labels and loaded.labels[0].startswith("__label__")
    assert [each[0].rsplit("_", 1)[0] for each in loaded.predict(TEXTS_ASKED)[0]] == [
        each[0].rsplit("_", 1)[0] for each in whole
    ]
    assert np.allclose(loaded.predict(TEXTS_ASKED, k=3)[1], model.predict(TEXTS_ASKED, k=3)[1])
    n, precision, recall = loaded.test(train)
    assert n > 4000 and precision == recall > 0.5


def test_what_a_quantized_model_cannot_do(quantized, small):
    _, _, loaded = quantized
    for ask, said in (
        (lambda: loaded.learn("a", "b"), "a quantized model does not learn"),
        (lambda: loaded.words, "holds hashes in place of its words"),
        (lambda: loaded.quantize(), "has been quantized"),
        (lambda: loaded.get_word_vector("a"), "has no vectors"),
        (lambda: fasttext.train_supervised(small).quantize(cutoff=-1), "n_features=-1"),
    ):
        with pytest.raises(KeslerError, match=said):
            ask()


def test_arguments_of_quantize(small, train, tmp_path):
    model = fasttext.train_supervised(small)
    with pytest.warns(MismatchWarning, match="qnorm has no effect: weights are rounded"):
        model.quantize(qnorm=True, cutoff=3)
    with pytest.raises(TypeError, match=r"quantize\(\) got an unexpected keyword argument 'depth'"):
        fasttext.train_supervised(small).quantize(depth=3)
    trained(train, tmp_path / "theirs", {})
    with pytest.raises(KeslerError, match="is quantized by its package"):
        fasttext.load_model(tmp_path / "theirs").quantize()


def test_a_prefix_of_ones_own_is_kept(tmp_path):
    path = tmp_path / "train.txt"
    path.write_text("#spam win cash now\n#work see you at work\n" * 4)
    model = fasttext.train_supervised(path, label="#")
    model.quantize()
    model.save_model(tmp_path / "small")
    loaded = fasttext.load_model(tmp_path / "small")
    assert loaded.predict("win cash")[0] == ("#spam",) and loaded.test(path) == (8, 1.0, 1.0)
