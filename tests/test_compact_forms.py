"""Compact classifiers of texts in a column, and of label sets: Python, C and WebAssembly."""

import json
import random
import re
import struct
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kesler
from compact_programs import InC, InWebAssembly, needs_clang, needs_compiler
from kesler import OnlineClassifier, OnlineMultilabelClassifier, fasttext
from kesler.candidates import Candidates
from kesler.compact import CompactClassifier, CompactMultilabelClassifier
from kesler.compact.c_source import c_source
from kesler.data.schema.terms import entries_of_texts, terms_of
from kesler.data.texts import spaced, tokenize
from kesler.errors import KeslerError
from test_compact import FEW, desk, random_bytes, random_text, require_equal, rows_of, some

FORMER = Path(__file__).parent / "former"
OPTIONS = {
    "words": {"ngrams": 3},
    "subwords": {"ngrams": 2, "subwords": (2, 4)},
    "characters": {"ngrams": 0, "chars": (1, 4)},
    "all": {"ngrams": 3, "chars": (2, 5), "subwords": (1, 8)},
    "beginning": {"ngrams": 2, "chars": (3, 4), "beginning": True},
}
NAMES = pytest.mark.parametrize("name", OPTIONS)
COLUMN = "a:=ß"  # the signs of names, in a name


def made(options, texts, labels, intercept="auto", **given):
    """Return a compact classifier of texts in a column; of label sets if labels are lists."""
    rows, columns = [{COLUMN: text} for text in texts], {COLUMN: {"kind": "text", **options}}
    if isinstance(labels[0], str):
        model = OnlineClassifier(columns=columns, intercept=intercept)
        return CompactClassifier.of(model.fit(rows, labels), **given)
    model = OnlineMultilabelClassifier(columns=columns).fit(rows, labels)
    return CompactMultilabelClassifier.of(model, **given)


def odd_texts(n, seed):
    rng = random.Random(seed)
    return [random_text(rng) for _ in range(n)]


def long_texts(n, seed):
    """Return texts of some 400 characters, with spaces and without."""
    rng, parts = random.Random(seed), odd_texts(500, seed)
    spaces = [rng.choice((" ", "\n", "\r\n\t", "")) for _ in range(n)]
    return [rng.choice((0, 300)) * space + space.join(rng.choices(parts, k=60)) for space in spaces]


@pytest.fixture(scope="module")
def models():
    """Models of texts in any script, for each kind of features, and of label sets."""
    texts, rng = odd_texts(600, 3), random.Random(4)
    labels = [rng.choice("abcde") for _ in texts]
    sets = [sorted({rng.choice("abcde") for _ in range(rng.randrange(4))}) for _ in texts]
    found = {name: made(options, texts, labels) for name, options in OPTIONS.items()}
    for name, intercept in (("intercepts", 0.5), ("no intercepts", 0.0)):
        found[name] = made(OPTIONS["subwords"], texts, labels, intercept)
    for name, each in (("names", [text[:8] for text in texts]), ("long", long_texts(600, 8))):
        found[name] = CompactClassifier.of(OnlineClassifier().fit(each, labels))
    found["sets"] = CompactMultilabelClassifier.of(OnlineMultilabelClassifier().fit(texts, sets))
    found |= {name: CompactClassifier.of(first_of_classes(name)) for name in UNTEMPERED}
    return found | {"sets of terms": made(OPTIONS["subwords"], texts, sets)}


UNTEMPERED = {"first": {}, "first, intercepts": {"intercept": 0.5}, "first, one class": {}}


def first_of_classes(name):
    """Return a model that has learnt the first row of each class, and has no temperature yet."""
    texts, n = odd_texts(9, 3), 1 if name == "first, one class" else 9
    rows = [f"{text} in a text word{i}" for i, text in enumerate(texts[:n])]
    return OnlineClassifier(**UNTEMPERED[name]).partial_fit(rows, [f"c{i}" for i in range(n)])


ALL = pytest.mark.parametrize(
    "name",
    [
        *OPTIONS,
        "intercepts",
        "no intercepts",
        "names",
        "long",
        "sets",
        "sets of terms",
        *UNTEMPERED,
    ],
)


# ---- features and files ---------------------------------------------------------------------


def naive_terms(text, ngrams=1, chars=(1, 0), subwords=(1, 0), beginning=False):
    """Count the terms of a text by their definition."""
    words = tokenize(text)
    line, found = f" {' '.join(words)} ", Counter()
    for n in range(1, ngrams + 1):
        found.update(":" + " ".join(words[i : i + n]) for i in range(len(words) - n + 1))
    for n in range(chars[0], chars[1] + 1):
        found.update("~" + line[i : i + n] for i in range(len(line) - n + 1))
    for n in range(subwords[0], subwords[1] + 1):
        for word in (f" {word} " for word in words):
            runs = (word[i : i + n] for i in range(len(word) - n + 1))
            found.update("<" + run for run in runs if run != " ")
    if beginning:
        text = text.lstrip(" \r\n\t")
        cut = re.match(r"(?s).{1,250}(?=[ \r\n\t])|.{250}", text)
        found.update(":^" + word for word in tokenize(text if len(text) <= 250 else cut[0]))
    return found


@NAMES
def test_the_terms_of_a_row_are_those_of_a_table(name):
    texts = [*odd_texts(1000, 1), *long_texts(60, 1), "x" * 300, "ـ", "x ـ y", "مـ"]
    for text, row in zip(texts, entries_of_texts("t", texts, OPTIONS[name]), strict=True):
        one = terms_of("t", text, OPTIONS[name])
        assert {*row} == {*one} == {"t" + term for term in naive_terms(text, **OPTIONS[name])}
        assert np.allclose([row[term] for term in one], [*one.values()])


class Reference:
    """A file of terms read bit by bit, as `kesler.compact.layout` says."""

    def __init__(self, found):
        _, _, k, n, n_names, self.key, bucket, code, flags, *rest = struct.unpack_from(
            "<8sIIIIBBBBIqqdd", found
        )
        assert flags & ~28 == 2
        self.k, self.has_sets, self.inverse, at = k, bool(flags & 4), rest[3], 64
        self.lapse = rest[4]
        levels = struct.unpack_from(f"<{2**code}h", found, at)
        at += 2 * 2**code + n_names
        ngrams, *runs, n_column = struct.unpack_from("<5BH", found, at)
        self.options = {"ngrams": ngrams, "chars": runs[:2], "subwords": runs[2:]}
        self.options["beginning"] = bool(flags & 16)
        self.column, at = found[at + 7 : at + 7 + n_column].decode(), at + 7 + n_column
        if flags & 12:
            numbers = struct.unpack_from(f"<{self.has_sets + k}i", found, at)
            self.to_beat, self.offsets = numbers[0], numbers[self.has_sets :]
            at += 4 * len(numbers)
        starts = struct.unpack_from(f"<{2**bucket + 1}I", found, at)
        bits = int.from_bytes(found[at + 4 * len(starts) :], "little")
        owners = k + self.has_sets
        widths = self.key - bucket, owners.bit_length(), (owners - 1).bit_length(), code
        self.features, place = {}, 0

        def read(width):
            nonlocal place
            place += width
            return bits >> (place - width) & ((1 << width) - 1)

        for b in range(2**bucket):
            assert place == starts[b]
            while place < starts[b + 1]:
                key, count = b << widths[0] | read(widths[0]), read(widths[1])
                self.features[key] = [(read(widths[2]), levels[read(code)]) for _ in range(count)]
        assert len(self.features) == n

    def sums(self, text):
        """Return the sum of levels of each class and of all, and the squared length."""
        totals, square, known = Counter(), 0, Counter()
        for term, n in naive_terms(text, **self.options).items():
            crc = zlib.crc32((self.column + term).encode()) * 0x9E3779B1 & 0xFFFFFFFF
            key = crc >> (32 - self.key)
            if key in self.features:
                known[key] += n
            else:
                square += 256 * n
        for key, n in known.items():
            times = round(16 * (1 + np.log(n)))
            square += times**2
            for owner, level in self.features[key]:
                totals[owner] += times * level
        return [totals[r] for r in range(self.k + 1)], square

    def odds(self, text):
        """Return the logarithm of the odds of each class."""
        sums, square = self.sums(text)
        logs = [self.inverse * (s + sums[-1]) / max(1, square) ** 0.5 for s in sums[:-1]]
        own = [self.inverse * offset / 256 for offset in self.offsets]
        return np.array([a + b for a, b in zip(logs, own, strict=True)])

    def probabilities(self, text):
        """Return the probability of each class, of a set that of each label."""
        odds = self.odds(text)
        if self.has_sets:
            return 1 / (1 + np.exp(-odds))
        shares = np.exp(odds - odds.max())
        return (1 - self.lapse) * shares / shares.sum() + self.lapse / self.k


@NAMES
def test_files_of_terms_hold_what_a_reader_of_bits_finds(models, name):
    small, texts = models[name], odd_texts(300, 7)
    reference, (scores, squares) = Reference(small.to_bytes()), small._scores(texts)
    for text, row, square in zip(texts, scores.tolist(), squares.tolist(), strict=True):
        assert reference.sums(text) == ([*row, 0], square)


def test_files_of_sets_hold_what_a_reader_of_bits_finds(models):
    small, texts = models["sets of terms"], odd_texts(300, 7)
    reference = Reference(small.to_bytes())
    expected = np.array([reference.probabilities(text) for text in texts])
    found = small.predict_proba(texts)
    assert np.abs(found - expected).max() < 2e-3  # the root is of 256ths
    threshold = 1 / (1 + np.exp(-reference.inverse * reference.to_beat / 256))
    is_clear = np.abs(expected - threshold) > 2e-3
    assert is_clear.mean() > 0.9
    assert (small.predict(texts) == (expected > threshold))[is_clear].all()


def test_files_of_intercepts_hold_what_a_reader_of_bits_finds(models):
    small, texts = models["intercepts"], ["", *odd_texts(300, 7)]
    reference = Reference(small.to_bytes())
    assert len({*reference.offsets}) > 1
    expected = np.array([reference.probabilities(text) for text in texts])
    assert np.abs(small.predict_proba(texts) - expected).max() < 2e-3  # the root is of 256ths
    odds = np.array([reference.odds(text) for text in texts])
    first, second = np.sort(odds)[:, :-3:-1].T
    is_clear = first - second > 2 * reference.inverse / 256
    assert is_clear.mean() > 0.9
    best = np.array(small.classes_)[odds.argmax(axis=1)]
    assert (np.array(small.predict(texts)) == best)[is_clear].all()


@pytest.mark.parametrize("name", UNTEMPERED)
def test_probabilities_are_those_of_a_model_without_a_temperature(name):
    model, texts = first_of_classes(name), [*odd_texts(60, 3), "word1 word4 word4", "word8"]
    small = CompactClassifier.of(model, bits=8, max_bytes=2**30)
    assert small.classes_ == model.classes_.tolist()
    expected = model.predict_proba(texts)
    assert name == "first, one class" or expected.max() > 2 * expected.min()
    # Lengths are of features of equal information, which intercepts are added to.
    assert np.abs(small.predict_proba(texts) - expected).mean() < 0.005
    model.partial_fit(texts[:3], ["c0"] * 3)  # scores have a temperature, if classes are two
    assert (CompactClassifier.of(model)._content.inverse > 0) is (name != "first, one class")


@pytest.mark.parametrize("candidates", [None, Candidates(64, beyond=100)], ids=str)
def test_intercepts_are_those_of_the_model(candidates):
    rng = random.Random(5)
    texts = [f"of{i % 150} word{rng.randrange(40)} and{rng.randrange(9)}" for i in range(1500)]
    labels = [f"c{min(i % 150, rng.randrange(150))}" for i in range(1500)]
    model = OnlineClassifier(intercept=0.5, candidates=candidates).partial_fit(texts, labels)
    assert (model._learner.comparing is None) == (candidates is None)
    small = CompactClassifier.of(model)
    found = small._content.offsets.of_classes * (small._content.inverse / 256)
    inverse, own = model._learner.stored["calibration"][0]["inverse"], model._learner.constant
    table = model._learner.hypothesis_weights()[0]
    first = table[[0]].toarray()[0] if candidates else table[0]
    weights = dict(zip(model._learner.classes.labels, first, strict=False))
    expected = [inverse * own * weights[label] for label in small.classes_]
    np.testing.assert_allclose(found, expected, atol=small._content.inverse / 256)
    assert len({*found.tolist()}) > 20


@ALL
def test_a_saved_form_is_the_same(models, name, tmp_path):
    small, texts = models[name], odd_texts(200, 8)
    small.save(tmp_path / "small")
    loaded = type(small).load(tmp_path / "small")
    assert loaded.to_bytes() == small.to_bytes() and loaded.n_bytes == small.n_bytes
    assert (loaded.predict_proba(texts) == small.predict_proba(texts)).all()


@pytest.mark.parametrize(
    "name", ["all", "no intercepts", "names", "long", "sets of terms", *UNTEMPERED]
)
def test_damaged_and_forged_files_are_refused_or_predict(models, name, tmp_path):
    rng, path, n_refused, kind = random.Random(1), tmp_path / "small", 0, type(models[name])
    given = ["a b c", "b c d"] * 6, ([["a"], []] if name == "sets of terms" else ["a", "b"]) * 6
    intercept = 1.0 if name == "intercepts" else "auto"
    whole = made(OPTIONS["subwords"], *given, intercept=intercept).to_bytes()
    for n in range(0, len(whole), 7):
        path.write_bytes(whole[:n])
        with pytest.raises(KeslerError, match=r"is damaged|is no file of a compact classifier"):
            kind.load(path)
    for _ in range(300):
        forged = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            forged[rng.randrange(12, min(len(whole), 200))] = rng.randrange(256)
        forged[8:12] = struct.pack("<I", zlib.crc32(forged[12:]))
        path.write_bytes(forged)
        try:
            kind.load(path).predict(["a b c", "d"])
        except KeslerError:
            n_refused += 1
    assert n_refused > 50


def test_files_of_before_say_the_same():
    small = CompactClassifier.load(FORMER / "texts.small")
    texts, labels, probabilities = json.loads((FORMER / "texts.small.json").read_text())
    assert small.to_bytes() == (FORMER / "texts.small").read_bytes()
    assert small.predict(texts) == labels
    np.testing.assert_allclose(small.predict_proba(texts), probabilities, rtol=1e-12)


def test_max_bytes_holds_for_all_forms():
    texts, labels = odd_texts(400, 9), [["a"], ["b", "c"], [], ["c"]] * 100
    for max_bytes in (500, 2000, 8000):
        small = made(OPTIONS["subwords"], texts, labels, max_bytes=max_bytes)
        assert 0.9 * max_bytes < small.n_bytes <= max_bytes


# ---- what it keeps --------------------------------------------------------------------------


@pytest.mark.data
@pytest.mark.parametrize("name", ["words", "subwords"])
def test_almost_all_weights_of_terms_predict_as_the_model(name):
    texts, labels = some(*rows_of("banking77"), 4000)
    rows, columns = [{"text": t} for t in texts], {"text": {"kind": "text", **OPTIONS[name]}}
    model = OnlineClassifier(columns=columns).fit(rows[:3000], labels[:3000])
    small = CompactClassifier.of(model, bits=8, max_bytes=2**30)
    assert np.mean(model.predict(rows[3000:]) == small.predict(texts[3000:])) >= 0.98
    found = small.predict_proba(texts[3000:])[:, [small.classes_.index(c) for c in model.classes_]]
    assert np.abs(found - model.predict_proba(rows[3000:])).mean() < 0.01


@pytest.mark.data
@pytest.mark.parametrize("column", [None, {"kind": "text", "ngrams": 1, "subwords": (3, 4)}])
def test_almost_all_weights_of_sets_predict_as_the_model(column):
    """Each text has its label, and that of all texts that ask for a card."""
    texts, labels = some(*rows_of("banking77"), 4000)
    pairs = zip(texts, labels, strict=True)
    sets = [[label, "card"] if "card" in text else [label] for text, label in pairs]
    rows = texts if column is None else [{"text": text} for text in texts]
    columns = "auto" if column is None else {"text": column}
    model = OnlineMultilabelClassifier(columns=columns).fit(rows[:3000], sets[:3000])
    small = CompactMultilabelClassifier.of(model, bits=8, max_bytes=2**30)
    found = small.predict_proba(texts[3000:])[:, [small.classes_.index(c) for c in model.classes_]]
    assert np.abs(found - model.predict_proba(rows[3000:])).mean() < 0.005
    right, found = model.predict_label_sets(rows[3000:]), small.predict_label_sets(texts[3000:])
    assert np.mean([a == b for a, b in zip(right, found, strict=True)]) > 0.85


# ---- in C and WebAssembly -------------------------------------------------------------------


def any_texts(n):
    rng = random.Random(2)
    texts = odd_texts(n, 5) + long_texts(n // 10, 9)
    return [text.encode() for text in texts] + [random_bytes(rng) for _ in range(n // 2)]


@needs_compiler
@ALL
def test_c_reads_all_forms(models, name, tmp_path):
    require_equal(models[name], InC(models[name], tmp_path), any_texts(1500))


@needs_clang
@pytest.mark.parametrize(
    "name", ["all", "no intercepts", "names", "long", "sets of terms", *UNTEMPERED]
)
def test_webassembly_reads_all_forms(models, name, tmp_path):
    require_equal(models[name], InWebAssembly(models[name], tmp_path), any_texts(600))


@pytest.fixture(scope="module")
def few_in_c(models, tmp_path_factory):
    return [
        (models[name], InC(models[name], tmp_path_factory.mktemp("c")))
        for name in ("all", "intercepts", "long", "names", "sets of terms")
    ]


@needs_compiler
@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_c_reads_any_text_of_a_column(few_in_c, text):
    for small, program in few_in_c:
        require_equal(small, program, [text.encode()])


@needs_compiler
@pytest.mark.parametrize(
    "text",
    [b"", b"\0", b"\xff" * 20_000, b"log in " * 20_000, "ﷺ".encode() * 9000, b"!" * 200_000],
    ids=["nothing", "zero", "wrong", "words", "growing", "signs"],
)
def test_c_reads_long_texts_of_a_column_within_its_memory(few_in_c, text):
    for small, program in few_in_c:
        require_equal(small, program, [text])


@needs_compiler
@pytest.mark.parametrize("first", ["一", "가", "ก"])
def test_c_has_memory_for_texts_whose_features_are_all_known(tmp_path, first):
    """The most features of a character: runs of all lengths, of tokens that overlap."""
    options = {"ngrams": 3, "chars": (1, 8), "subwords": (1, 8)}
    letters = [chr(ord(first) + i) for i in range(400) if chr(ord(first) + i).isalpha()]
    texts = ["".join(random.Random(i).sample(letters, min(40, len(letters)))) for i in range(6)]
    small = made(options, texts, ["a", "b"] * 3, bits=1, max_bytes=2**30)
    assert small.n_features_ > 1500
    require_equal(small, InC(small, tmp_path), [text.encode() for text in texts])


@pytest.mark.parametrize("name", ["strings", "names", "long", *OPTIONS])
def test_c_has_places_for_the_features_of_any_text(models, name):
    """As many as a text has with repetitions, by the letters of its folded line."""
    content = (models | {"strings": CompactClassifier.of(desk())})[name]._content
    most = int(re.search(r"MOST_OF_CHARACTER (\d+)u", c_source(content, "model", None))[1])
    many_of_a_letter = ["ΐ " * 60, "ก" * 90, "กกก " * 30, "가" * 90, "ﷺ" * 20, "a " * 90]
    for text in [*many_of_a_letter, *odd_texts(3000, 7), *long_texts(300, 7)]:
        n_letters = sum(map(len, spaced(text)[1].split()))
        assert len(content.features.names_of(text)) <= most * (n_letters + 1), text


@needs_compiler
def test_the_working_memory_of_a_short_text_takes_kilobytes(tmp_path):
    columns = {"text": {"kind": "text", "ngrams": 2}}
    texts = [f"word{i} text{i}" for i in range(5000)]
    rows = [{"text": text} for text in texts], ["a", "b"] * 2500
    for each in (
        OnlineClassifier().fit(texts, rows[1]),
        OnlineClassifier(columns=columns).fit(*rows),
    ):
        small = CompactClassifier.of(each, max_bytes=2**30)
        assert small.n_features_ > 4000
        assert InC(small, tmp_path).scratch(50) < 50_000


@needs_compiler
def test_c_decides_label_sets_by_its_threshold(models, tmp_path):
    small = models["sets"]
    small.export(tmp_path / "sets.c", header=True)
    header = (tmp_path / "sets.h").read_text()
    assert "extern const double sets_threshold;" in header and "not 1." in header
    source = (tmp_path / "sets.c").read_text()
    threshold = float.fromhex(re.search(r"sets_threshold = (\S+);", source)[1])
    program, texts = InC(small, tmp_path), odd_texts(1000, 6)
    found = np.array([program(text.encode())[2] > threshold for text in texts])
    assert (found == small.predict(texts)).all() and 0 < found.mean() < 1


# ---- label sets -----------------------------------------------------------------------------


def bills_and_login():
    texts = ["wrong invoice", "cannot log in", "log in to see the invoice", "hello there"] * 5
    return OnlineMultilabelClassifier().fit(
        texts, [["bills"], ["login"], ["bills", "login"], []] * 5
    )


def test_label_sets_and_their_probabilities():
    small, texts = CompactMultilabelClassifier.of(bills_and_login()), ["an invoice", "log in", ""]
    assert small.predict(texts).tolist()[:2] == [[1, 0], [0, 1]]
    assert small.predict_label_sets(texts)[:2] == [{"bills"}, {"login"}]
    assert small.predict_proba(texts).shape == (3, 2) and small.predict([]).shape == (0, 2)
    assert small.predict_top(["log in"], n=1)[0][0][0] == "login"


def test_a_file_of_label_sets_is_read_by_its_class(tmp_path):
    CompactMultilabelClassifier.of(bills_and_login()).save(tmp_path / "sets")
    CompactClassifier.of(desk()).save(tmp_path / "one")
    with pytest.raises(KeslerError, match="of label sets, which is no CompactClassifier"):
        CompactClassifier.load(tmp_path / "sets")
    with pytest.raises(KeslerError, match="one label for each text, which is no CompactMultilabel"):
        CompactMultilabelClassifier.load(tmp_path / "one")


def test_kesler_load_says_what_reads_a_compact_file(tmp_path):
    CompactClassifier.of(desk()).save(tmp_path / "small")
    said = r"CompactClassifier\.load, or CompactMultilabelClassifier\.load .*fasttext\.load_model"
    with pytest.raises(KeslerError, match=said):
        kesler.load(tmp_path / "small")


def several_columns():
    rows = [{"text": text, "other": text[::-1]} for text in FEW]
    columns = {"text": {"kind": "text", "ngrams": 2}, "other": {"kind": "text", "ngrams": 1}}
    return OnlineClassifier(columns=columns).fit(rows, [*"ab"] * 6)


def of_categories():
    return OnlineClassifier().fit([{"text": text} for text in FEW * 9], [*"ab"] * 54)


def of_vectors():
    return OnlineClassifier(vectors="words.vec")


def of_candidates():
    labels = [[f"label {i}"] for i in range(200)]
    return OnlineMultilabelClassifier().fit([f"word{i} text" for i in range(200)], labels)


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (several_columns, CompactClassifier, "has learnt several columns of tables"),
        (of_categories, CompactClassifier, "numbers or categories: .* says that it has texts"),
        (of_vectors, CompactClassifier, r"learns vectors of words \(vectors, pretrainedVectors\)"),
        (of_candidates, CompactMultilabelClassifier, "64 candidates of 200 labels"),
        (desk, CompactMultilabelClassifier, "OnlineClassifier has no compact form of type"),
    ],
)
def test_what_has_no_such_form(make, kind, said):
    with pytest.raises(KeslerError, match=said):
        kind.of(make())


# ---- models of fastText's arguments ---------------------------------------------------------


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "train.txt"
    texts = ["the invoice is wrong", "I cannot log in today", "log in to see the invoice"] * 6
    labels = ["__label__bills", "__label__login", "__label__bills __label__login"] * 6
    path.write_text("\n".join(f"{a} {b}" for a, b in zip(labels, texts, strict=True)))
    return path


@pytest.mark.parametrize("given", [{}, {"wordNgrams": 2}, {"minn": 2, "maxn": 4}])
@pytest.mark.parametrize("loss", ["ova", "softmax"])
def test_models_of_train_supervised_are_quantized(lines, tmp_path, given, loss):
    if loss == "softmax":
        lines.write_text("\n".join(lines.read_text().splitlines()[i] for i in (0, 1) * 6))
    whole, small = (fasttext.train_supervised(lines, loss=loss, **given) for _ in range(2))
    small.quantize(bits=8)
    small.save_model(tmp_path / "small")
    loaded = fasttext.load_model(tmp_path / "small")
    for text in ("an invoice", "I log in", "log in to see it"):
        expected = dict(zip(*whole.predict(text, k=-1), strict=True))
        for each in (small, loaded):
            found = dict(zip(*each.predict(text, k=-1), strict=True))
            assert all(abs(expected[label] - p) < 0.1 for label, p in found.items())
            above = tuple(label for label, p in found.items() if p >= 0.3)
            assert each.predict(text, k=-1, threshold=0.3)[0] == above
    assert loaded.labels == whole.labels and loaded.test(lines, k=1)[1] == 1.0


def test_texts_without_words_have_a_compact_form():
    small = CompactClassifier.of(OnlineClassifier().fit([""] * 20, [*"ab"] * 10))
    assert small.n_features_ == 0 and small.predict(["", "a"]) == ["a", "a"]


@pytest.mark.parametrize("column", ["\udcff", "c" * 70_000], ids=["surrogate", "long"])
def test_names_of_columns_that_no_file_holds_are_refused(column):
    rows = [{column: f"word{i % 3} of"} for i in range(20)]
    model = OnlineClassifier(columns={column: {"kind": "text", "ngrams": 1}}).fit(
        rows, [*"ab"] * 10
    )
    with pytest.raises(KeslerError, match="has a name that a compact file cannot hold"):
        CompactClassifier.of(model)


def test_an_iterator_of_texts_is_refused():
    small = CompactClassifier.of(OnlineClassifier().fit(["a b", "c d"] * 9, [*"ab"] * 9))
    with pytest.raises(KeslerError, match="give a list of them"):
        small.predict(iter(["a b"]))
