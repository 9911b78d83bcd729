"""Compact classifiers: files, C and WebAssembly that predict as the trained classifier does."""

import gzip
import json
import os
import random
import re
import struct
import subprocess
import zlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from compact_programs import CC, STRICT, InC, InWebAssembly, needs_clang, needs_compiler
from kesler import OnlineClassifier, OnlineMultilabelClassifier, datasets
from kesler.compact import CompactClassifier
from kesler.data.texts import counted, with_runs
from kesler.errors import KeslerError
from kesler.preprocessing import Counts

ALPHABET = (
    *(
        "'",
        '"',
        " ",
        ":",
        ";",
        "=",
        "-",
        ")",
        "(",
        "+",
        "#",
        "!",
        "?",
        "<",
        "3",
        ".",
        "_",
        "^",
        ">",
    ),
    *(
        "a",
        "c",
        "Z",
        "d",
        "ß",
        "İ",
        "ʼ",
        "’",
        "é",
        "e\u0301",
        "ﷺ",
        "Ⅷ",
        "ŉ",
        "ΐ",
        "ǰ",
        "ﬃ",
        "ς",
        "Σ",
    ),
    *(
        "\u200d",
        "\u200c",
        "\ufe0f",
        "\xad",
        "👍",
        "🏽",
        "🇩",
        "🇪",
        "❤",
        "\U000e0020",
        "™",
        "𝔸",
        "㍿",
    ),
    *(
        "한",
        "각",
        "가",
        "\u1100",
        "\u1161",
        "\u11a8",
        "ก",
        "ำ",
        "เ",
        "\u1000",
        "\u1039",
        "\u1780\u17d2",
    ),
    *("你", "好", "ア", "ー", "צ", "״", "ה", "\u05b4", "م", "ـ", "\u064e", "ሀ", "ለ", "Ꭰ", "·", "l"),
    *(
        "\u0307",
        "\u0327",
        "\u0323",
        "\u0345",
        "\0",
        "\n",
        "\t",
        "\x1c",
        "\u2028",
        "/",
        "|",
        "@",
        "क",
        "\u094d",
    ),
)


def random_text(rng):
    return "".join(rng.choice(ALPHABET) for _ in range(rng.randrange(14)))


def random_bytes(rng):
    odd = (0xE0, 0xF0, 0xF4, 0xED, 0xA0, 0x80, 0x61, 0xC3, 0xC0)
    return bytes(rng.choice([rng.randrange(256), *odd]) for _ in range(rng.randrange(12)))


def rows_of(name):
    data = datasets.load(name)
    return [" ".join(each.values()) for each in data.records], [str(label) for label in data.y]


def languages():
    path = Path(os.environ["KESLER_DATA"], "languages", "udhr.jsonl.gz")
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines if line.strip()]
    return [row["text"] for row in rows], [row["language"] for row in rows]


def names():
    """Return the first letters of texts in several languages."""
    texts, labels = languages()
    return [text[:12] for text in texts], labels


def some(texts, labels, n, seed=0):
    order = np.random.default_rng(seed).permutation(len(texts))[:n].tolist()
    return [texts[i] for i in order], [labels[i] for i in order]


@pytest.fixture(scope="module")
def models():
    """Models of short texts, of long ones, and of more classes than are compared at once."""
    found = {}
    for name, rows in (
        ("short", rows_of("banking77")),
        ("long", rows_of("r8")),
        ("many", languages()),
        ("names", names()),
    ):
        texts, labels = some(*rows, 6000)
        found[name] = OnlineClassifier().fit(texts[:4000], labels[:4000]), texts, labels
    return found


@pytest.fixture(scope="module")
def compact(models):
    return {name: CompactClassifier.of(model) for name, (model, _, _) in models.items()}


CASES = pytest.mark.parametrize("name", ["short", "long", "many", "names"])
OF_LANGUAGES = ("many", "names")
FEW = ["the invoice is wrong", "I cannot log in", "send an invoice", "log in fails"] * 3


def desk(labels=("bills", "login")):
    return OnlineClassifier().fit(FEW, [labels[0], labels[1]] * 6)


# ---- what it keeps --------------------------------------------------------------------------


@pytest.mark.data
@CASES
def test_almost_all_weights_in_eight_bits_predict_as_the_model(models, name):
    model, texts, _ = models[name]
    small = CompactClassifier.of(model, bits=8, max_bytes=2**30)
    agrees = np.mean(model.predict(texts[4000:]) == small.predict(texts[4000:]))
    assert agrees >= (0.97 if name in OF_LANGUAGES else 0.99)
    if name not in OF_LANGUAGES:
        given, found = (each.predict_proba(texts[4000:]) for each in (model, small))
        order = [small.classes_.index(label) for label in model.classes_]
        assert np.abs(given - found[:, order]).mean() < 0.01


@pytest.mark.data
@CASES
def test_the_default_is_small_and_errs_hardly_more(models, compact, name, tmp_path):
    model, texts, labels = models[name]
    model.save(tmp_path / "model")
    assert compact[name].n_bytes < (tmp_path / "model").stat().st_size / 20
    right = np.array(labels[4000:])
    errors = [np.mean(each.predict(texts[4000:]) != right) for each in (model, compact[name])]
    assert errors[1] <= errors[0] + (0.05 if name in OF_LANGUAGES else 0.01)


@pytest.mark.data
def test_more_bytes_err_less(models):
    model, texts, labels = models["short"]
    right, errors = np.array(labels[4000:]), []
    for max_bytes in (5_000, 20_000, 80_000, 320_000):
        small = CompactClassifier.of(model, max_bytes=max_bytes)
        assert 0.98 * max_bytes < small.n_bytes <= max_bytes or max_bytes == 320_000
        errors.append(np.mean(small.predict(texts[4000:]) != right))
    assert errors == sorted(errors, reverse=True) or errors[-1] < errors[0] / 3


@pytest.mark.data
def test_of_fewer_candidates_than_classes_at_once(models):
    """The window of a row holds 9 classes here, and the table of a model file more."""
    _, texts, labels = models["short"]
    for intercept in (0.0, "auto"):
        model = OnlineClassifier(candidates=8, intercept=intercept).fit(texts[:2000], labels[:2000])
        small = CompactClassifier.of(model, bits=8, max_bytes=2**30)
        given, found = model.predict(texts[4000:]), np.array(small.predict(texts[4000:]))
        # An intercept also gives those classes their share that the model does not compare.
        assert intercept or np.mean(given == found) >= 0.94
        assert np.mean(found == labels[4000:]) >= np.mean(given == labels[4000:])


def test_labels_are_in_the_order_of_the_model():
    model = desk(("zoo", "ape"))
    small = CompactClassifier.of(model)
    assert small.classes_ == model.classes_.tolist() == ["ape", "zoo"]
    assert small.predict(["invoice"]) == ["zoo"] and small.predict(["log"]) == ["ape"]


@pytest.mark.data
def test_as_many_features_as_asked_for(models):
    model, _, _ = models["short"]
    for bits in (1, 3, 8):
        small = CompactClassifier.of(model, n_features=500, bits=bits)
        assert 480 <= small.n_features_ <= 500


# ---- files ----------------------------------------------------------------------------------


class Reference:
    """A file read bit by bit, as `kesler.compact.layout` says."""

    def __init__(self, found):
        _, _, k, n, n_names, self.key, bucket, code, flags, *rest = struct.unpack_from(
            "<8sIIIIBBBBIqqdd", found
        )
        _, self.n_texts, self.n_characters, self.inverse, self.lapse = rest
        self.words_only, at = flags & 1, 64
        levels = struct.unpack_from(f"<{2**code}h", found, at)
        at += 2 * 2**code
        self.labels = found[at : at + n_names].decode().split("\0")[:-1]
        at += n_names
        assert flags & ~1 == 8 + 16  # with intercepts, and the latest features of texts
        self.offsets = struct.unpack_from(f"<{k}i", found, at)
        at += 4 * k
        starts = struct.unpack_from(f"<{2**bucket + 1}I", found, at)
        bits = int.from_bytes(found[at + 4 * len(starts) :], "little")
        widths = self.key - bucket, k.bit_length(), (k - 1).bit_length(), code
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

    def scores(self, text):
        mean = (self.n_characters + len(text)) / (self.n_texts + 1)
        is_short = not self.words_only and mean <= 200
        if is_short:
            entry = with_runs(text, (1, 4) if mean <= 12 else (4, 4))
        else:
            entry = counted([text])
            first = text if len(text) <= 250 else re.match(r"(?s).{1,250}(?=[ \n\t])", text)[0]
            entry |= {"^" + name: n for name, n in counted([first]).items()}
        totals = Counter()
        for name, value in entry.items():
            crc = zlib.crc32(name.encode()) * 0x9E3779B1 & 0xFFFFFFFF
            times = 16 if is_short else round(16 * (1 + np.log(value)))
            for owner, level in self.features.get(crc >> (32 - self.key), ()):
                totals[owner] += times * level
        return [totals[r] for r in range(len(self.labels))]


@pytest.mark.data
@CASES
def test_files_hold_what_a_reader_of_bits_finds(models, compact, name):
    reference = Reference(compact[name].to_bytes())
    assert reference.labels == compact[name].classes_
    texts = [text for text in models[name][1][4000:4300] if "\u0590" > max(text)]
    found = [reference.scores(text) for text in texts]
    assert compact[name]._scores(texts)[0].tolist() == found
    assert compact[name]._content.offsets.of_classes.tolist() == [*reference.offsets]


@pytest.mark.data
@CASES
def test_a_saved_classifier_is_the_same(models, compact, name, tmp_path):
    compact[name].save(tmp_path / "small")
    assert (tmp_path / "small").stat().st_size == compact[name].n_bytes
    loaded = CompactClassifier.load(tmp_path / "small")
    assert loaded.to_bytes() == compact[name].to_bytes()
    texts = models[name][1][4000:4500]
    assert (loaded.predict_proba(texts) == compact[name].predict_proba(texts)).all()


def test_probabilities_and_the_best_labels():
    model = desk()
    small = CompactClassifier.of(model)
    rows = small.predict_proba(["an invoice", "log in", "", "xyzzy"])
    assert np.allclose(rows.sum(axis=1), 1) and rows.shape == (4, 2)
    assert small.predict(["an invoice", "log in"]) == ["bills", "login"]
    assert small.predict([""]) == model.predict([""]).tolist()
    ((first, p), (second, q)) = small.predict_top(["log in"])[0]
    assert (first, second) == ("login", "bills") and p > q and p == rows[1].max()
    assert small.predict([]) == [] and small.predict_proba([]).shape == (0, 2)


def test_labels_may_be_numbers_and_one_class_is_enough():
    assert CompactClassifier.of(desk((3, 5))).predict(["log in"]) == ["5"]
    one = CompactClassifier.of(OnlineClassifier().fit(FEW, ["all"] * len(FEW)))
    assert one.predict(["log in", ""]) == ["all", "all"] and one.n_features_ == 0


def test_damaged_files_are_refused(tmp_path):
    rng, path = random.Random(0), tmp_path / "small"
    whole = CompactClassifier.of(desk()).to_bytes()
    wrong = [whole[:n] for n in range(0, len(whole), 7)] + [whole + b"\0", b"", b"KSMTEXT1"]
    for _ in range(300):
        place = rng.randrange(len(whole))
        changed = whole[place] ^ 1 << rng.randrange(8)
        wrong.append(whole[:place] + bytes([changed]) + whole[place + 1 :])
    for each in wrong:
        path.write_bytes(each)
        with pytest.raises(KeslerError, match=r"is damaged|is no file of a compact classifier"):
            CompactClassifier.load(path)
    with pytest.raises(KeslerError, match="cannot be read"):
        CompactClassifier.load(tmp_path / "none")


def test_forged_files_are_refused_or_predict(tmp_path):
    """Files with a right checksum and anything else wrong."""
    rng, path, n_refused = random.Random(1), tmp_path / "small", 0
    whole = CompactClassifier.of(desk()).to_bytes()
    for _ in range(600):
        forged = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            forged[rng.randrange(12, len(whole))] = rng.randrange(256)
        forged[8:12] = struct.pack("<I", zlib.crc32(forged[12:]))
        path.write_bytes(forged)
        try:
            CompactClassifier.load(path).predict(["log in", "an invoice"])
        except KeslerError:
            n_refused += 1
    assert n_refused > 100


# ---- what is refused ------------------------------------------------------------------------


def of_sets():
    return OnlineMultilabelClassifier().fit(FEW, [["a"], ["b"]] * 6)


def of_table():
    columns = {"text": {"kind": "text", "ngrams": 2}, "n": "number"}
    rows = [{"text": text, "n": float(n)} for n, text in enumerate(FEW)]
    return OnlineClassifier(columns=columns).fit(rows, ["a", "b"] * 6)


def of_measurements():
    return OnlineClassifier().fit(np.eye(4), list("abcd"))


def of_undamped_counts():
    return OnlineClassifier(preprocessing=Counts(damped=False, information=True)).fit(
        FEW, ["a", "b"] * 6
    )


@pytest.mark.parametrize(
    ("make", "given", "said"),
    [
        (of_sets, {}, "OnlineMultilabelClassifier has no compact form"),
        (of_table, {}, "has learnt several columns of tables, or numbers"),
        (of_measurements, {}, "has learnt several columns of tables, or numbers"),
        (of_measurements, {}, r"For numbers, fit a kesler\.ShareBoostClassifier, which exports C"),
        (lambda: OnlineClassifier("multi", update="pa1").fit(FEW, [*"ab"] * 6), {}, "are not sums"),
        (lambda: OnlineClassifier(update="ensemble").fit(FEW, [*"ab"] * 6), {}, "are not sums"),
        (lambda: OnlineClassifier(half_life=9.0).fit(FEW, [*"ab"] * 6), {}, "are not sums"),
        (of_undamped_counts, {}, "are not sums"),
        (desk, {"bits": 9}, "bits=9 must be an integer from 1 to 8"),
        (desk, {"n_features": 0}, "n_features=0 must be an integer from 1"),
        (desk, {"max_bytes": 20}, "the labels alone take"),
        (lambda: desk(("a\0b", "c")), {}, "has a character that a compact file cannot hold"),
    ],
)
def test_what_has_no_compact_form(make, given, said):
    with pytest.raises(KeslerError, match=said):
        CompactClassifier.of(make(), **given)


def test_other_errors(tmp_path):
    with pytest.raises(NotFittedError):
        CompactClassifier.of(OnlineClassifier())
    small = CompactClassifier.of(desk())
    for texts in ("log in", [b"log in"], [None]):
        with pytest.raises(KeslerError, match="give a list of them"):
            small.predict(texts)
    with pytest.raises(KeslerError, match="exported as C, to a file named"):
        small.export(tmp_path / "small.onnx")
    with pytest.raises(KeslerError, match="n=0"):
        small.predict_top(FEW, n=0)


# ---- in C and WebAssembly -------------------------------------------------------------------


def require_equal(small, program, texts):
    """Compare a program, given bytes, with Python, given what they decode to."""
    for start in range(0, len(texts), 500):
        some_texts = texts[start : start + 500]
        expected = small.predict_proba([text.decode("utf-8", "replace") for text in some_texts])
        for text, row in zip(some_texts, expected, strict=True):
            best, probability, shares = program(text)
            assert best == row.argmax(), text
            assert np.abs(shares - row).max() < 1e-12 > abs(probability - row[best]), text


def texts_of_all(models, name):
    """Real texts, of the languages too, and random texts and bytes."""
    rng = random.Random(2)
    real = [*models[name][1][4000:5500], *models["many"][1][::3]]
    found = [text.encode() for text in real]
    found += [random_text(rng).encode() for _ in range(4000)]
    return found + [random_bytes(rng) for _ in range(2000)]


@pytest.mark.data
@needs_compiler
@CASES
def test_c_predicts_the_same(models, compact, name, tmp_path):
    program = InC(compact[name], tmp_path)
    assert program.labels == compact[name].classes_
    require_equal(compact[name], program, texts_of_all(models, name))


@pytest.mark.data
@needs_clang
def test_webassembly_predicts_the_same(models, compact, tmp_path):
    program = InWebAssembly(compact["short"], tmp_path)
    require_equal(compact["short"], program, texts_of_all(models, "short"))


@pytest.fixture(scope="module")
def small_in_c(tmp_path_factory):
    small = CompactClassifier.of(desk())
    return small, InC(small, tmp_path_factory.mktemp("c"))


@needs_compiler
@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_c_reads_any_text_as_python_does(small_in_c, text):
    require_equal(*small_in_c, [text.encode()])


@needs_compiler
@pytest.mark.parametrize(
    "text",
    [b"", b"\0", b"\xff" * 100_000, b"log in " * 150_000, "ﷺ".encode() * 60_000, b"!" * 1_000_000],
    ids=["nothing", "zero", "wrong", "words", "growing", "signs"],
)
def test_c_reads_long_texts_within_its_memory(small_in_c, text):
    require_equal(*small_in_c, [text])


@needs_compiler
def test_c_orders_a_million_bytes_of_marks(small_in_c):
    """Python's own sorting of marks would take minutes for these."""
    _, program = small_in_c
    _, _, shares = program(("a" + "\u0301\u0323" * 250_000).encode())
    assert abs(shares.sum() - 1) < 1e-9


def test_a_header_that_cannot_be_included_is_refused(tmp_path):
    with pytest.raises(KeslerError, match="cannot be the name of a header"):
        CompactClassifier.of(desk(("a", "b"))).export(tmp_path / 'a"b.c', header=True)
    assert not [*tmp_path.iterdir()]


@needs_compiler
def test_any_label_and_a_header(tmp_path):
    labels = ('"q"??/ %d\\', "é\n\u2028{x}")
    small = CompactClassifier.of(desk(labels))
    assert InC(small, tmp_path).labels == small.classes_ and {*small.classes_} == {*labels}
    small.export(tmp_path / "2 desk.c", name="my desk", header=False)
    small.export(tmp_path / "other.c", header=True)
    main = tmp_path / "main.c"
    main.write_text(
        '#include <stdio.h>\n#include <stdlib.h>\n#include "other.h"\nint main(void)\n{\n'
        "    void *memory = malloc(other_scratch(6));\n"
        '    printf("%d", other_predict("log in", 6, memory, NULL));\n    return 0;\n}\n'
    )
    sources = [str(tmp_path / each) for each in ("main.c", "other.c", "2 desk.c")]
    program = str(tmp_path / "main")
    subprocess.run([CC, *STRICT, "-o", program, *sources], check=True)
    assert subprocess.run([program], capture_output=True).stdout == b"%d" % small.classes_.index(
        labels[1]
    )
