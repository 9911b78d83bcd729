"""Label-dependent features: examples of several lines, read as ratings, and learnt by command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import kesler, refused
from kesler import KeslerError, OnlineClassifier, load
from kesler.data.rows import Vocabulary
from kesler.readers import open_stream
from kesler.readers.lines import Lines
from kesler.readers.opening import format_of
from streams import learnt
from test_readers import write
from test_readers_laws import fuzzed, mutations, survives

CONTENT = """\
shared |w free now:2
spam:0 |by filter:0.9 | length
work:1 'tagged|by filter:0.1

work:0.5 | filter filter:2
home:-1.5 |by:2 boss:0.5 filter
"""
EXAMPLES = [
    (
        "spam",
        {"w^free": 1.0, "w^now": 2.0},
        {"spam": {"by^filter": 0.9, "^length": 1.0}, "work": {"by^filter": 0.1}},
    ),
    ("home", {}, {"work": {"^filter": 3.0}, "home": {"by^boss": 1.0, "by^filter": 2.0}}),
]


def read(path, **options):
    """Return examples as (label, attributes, ratings)."""
    stream, found = open_stream(path, **options), []
    for block in stream:
        rows, ratings = block.rows, block.rows.ratings
        for i, label in enumerate(block.labels):
            row, places = rows[i : i + 1], range(ratings.starts[i], ratings.starts[i + 1])
            attributes = named(row, stream.vocabulary.names)
            rated = {
                ratings.labels[ratings.rated[j]]: named(ratings.vectors[j : j + 1], ratings.names)
                for j in places
            }
            found.append((label, attributes, rated))
    return found


def named(entries, names):
    pairs = zip(entries.indices.tolist(), entries.values.tolist(), strict=True)
    known = dict(enumerate(names or ()))
    return {known.get(i, i): round(value, 6) for i, value in pairs}


@pytest.mark.parametrize("block_rows", [1, 2])
def test_an_example_is_read_from_its_lines(tmp_path, block_rows):
    path = write(tmp_path, "rows.ldf", CONTENT)
    assert read(path, block_rows=block_rows) == EXAMPLES
    assert read(path, block_rows=block_rows, skip_rows=1) == EXAMPLES[1:]
    assert read(write(tmp_path, "rows.ldf.gz", gzip_of(CONTENT))) == EXAMPLES
    spaced = "\n\n" + CONTENT.replace("\n", "\r\n").replace("\r\n\r\n", "\r\n \r\n\r\n") + "\n\n"
    assert read(write(tmp_path, "spaced.ldf", spaced)) == EXAMPLES


def gzip_of(text):
    import gzip

    return gzip.compress(text.encode())


@pytest.mark.parametrize(
    "first", ["shared | a", "***shared*** |w a", "1:0 | a", "spam:-0.5 't1 | a", "2:1e-3 |w a"]
)
def test_the_first_line_determines_the_format(tmp_path, first):
    path = str(write(tmp_path, "rows.txt", f"{first}\nx1:0 | b\n"))
    assert format_of(path, Lines(path)) == "vw-ldf"


@pytest.mark.parametrize("first", ["1 | a", "spam 2 |w a", "shared| a", "shared 2 | a"])
def test_a_line_that_may_be_a_row_is_one(tmp_path, first):
    path = str(write(tmp_path, "rows.txt", first))
    assert format_of(path, Lines(path)) == "vw"


def test_examples_without_costs_are_for_prediction(tmp_path):
    path = write(tmp_path, "rows.ldf", "a | x\nb | y\n")
    assert read(path, require_labels=False) == [(None, {}, {"a": {"^x": 1.0}, "b": {"^y": 1.0}})]
    with pytest.raises(KeslerError, match="line 1: there is no label"):
        read(path)


BAD = {
    "no bar": ("a:0 x", r"line 3: there is no '\|'"),
    "two tokens": ("a:0 b:1 | x", "line 3: 'a:0 b:1' stands before the features"),
    "no class": ("| x", "line 3: '' stands before the features"),
    "a tag alone": ("a:0| x", "line 3: '' stands before the features"),
    "no cost": ("a: | x", "line 3: 'a:' is not class or class:cost"),
    "no number": ("a:b | x", "line 3: 'a:b' is not class or class:cost"),
    "no finite number": ("a:nan | x", "line 3: 'a:nan' is not class or class:cost"),
    "a definition": ("label:3 | x", "line 3: 'label:3' begins a definition"),
    "a class twice": ("a:0 | x\na:1 | y", "line 3: in line 4, the class 'a' occurs twice"),
    "text and numbers": ("a:0 | x\n1:1 | y", "line 3: in line 4, of the class 1 and those before"),
    "shared later": ("a:0 | x\nshared | y", "line 3: in line 4, 'shared' is not in the"),
    "shared alone": ("shared | y", "line 3: the example has no class"),
    "shared twice": ("shared | y\nshared | y", "line 3: in line 4, 'shared' is not in"),
    "some costs": ("a:0 | x\nb | y", "line 3: some classes of the example have a cost"),
    "equal costs": ("a:0 | x\nb:0 | y", "line 3: the classes 'a' and 'b' have the same lowest"),
    "no feature": ("a:0 | x\nb:1 | y:z", "line 3: in line 4, 'y:z' is not name or name:value"),
    "infinite": ("a:0 | x:1e39", r"line 3: feature '\^x' is 1e\+39"),
    "no text": (b"a:0 | \xff", "line 3: byte 7 is not UTF-8"),
}


@pytest.mark.parametrize(("lines", "said"), BAD.values(), ids=BAD)
def test_a_bad_example_is_named_by_its_line(tmp_path, lines, said):
    lines = lines if isinstance(lines, bytes) else lines.encode()
    path = write(tmp_path, "rows.ldf", b"a:0 | x\n\n" + lines + b"\n\nb:0 | x\n")
    with pytest.raises(KeslerError, match=said):
        read(path, encoding="utf-8")
    assert [label for label, *_ in read(path, skip_bad=True, encoding="utf-8")] == ["a", "b"]


values = st.floats(-1e6, 1e6, width=32)
features = st.dictionaries(st.sampled_from([f"f{i}" for i in range(9)]), values, max_size=5)
lists_of_examples = st.lists(
    st.tuples(features, st.dictionaries(st.sampled_from("abcd"), features, min_size=1)), min_size=1
)


@given(rows=lists_of_examples, block_rows=st.integers(1, 4))
def test_what_is_written_is_read_back(tmp_path_factory, rows, block_rows):
    def line(head, entry):
        return f"{head} |n " + " ".join(f"{name}:{value!r}" for name, value in entry.items())

    def prefixed(entry):
        return {f"n^{name}": pytest.approx(value, abs=1e-6) for name, value in entry.items()}

    examples = [
        "\n".join(
            [line("shared", attributes)]
            + [line(f"{label}:{cost}", entry) for cost, (label, entry) in enumerate(rated.items())]
        )
        for attributes, rated in rows
    ]
    path = write(tmp_path_factory.mktemp("ldf"), "rows.ldf", "\n\n".join(examples))
    assert read(path, block_rows=block_rows) == [
        (next(iter(rated)), prefixed(shared), {y: prefixed(x) for y, x in rated.items()})
        for shared, rated in rows
    ]


@fuzzed
@given(data=st.data(), whole=st.booleans(), required=st.booleans())
def test_any_bytes_are_examples_or_a_sentence(tmp_path_factory, data, whole, required):
    damaged = st.binary(max_size=80) if whole else mutations(CONTENT.encode())
    path = write(tmp_path_factory.mktemp("ldf"), "rows.ldf", data.draw(damaged))
    survives(path, require_labels=required)


# ---- learning -----------------------------------------------------------------------------------


def write_council(path, n=120, seed=0):
    """One sub-expert is right, one wrong; classes and further sub-experts come up all along."""
    rng = np.random.default_rng(seed)
    examples, mappings, labels = [], [], []
    for t in range(n):
        classes = [f"c{i}" for i in range(2 + 4 * t // n)]
        right = str(rng.choice(classes))
        rated = {
            label: {
                "wrong": round(float(rng.random() + (label != right)), 3),
                "right": round(float(rng.random() + (label == right)), 3),
                f"new{t // 10}": 1.0,
            }
            for label in classes
        }
        lines = [
            f"{label}:{int(label != right)} |by " + " ".join(f"{i}:{x}" for i, x in entry.items())
            for label, entry in rated.items()
        ]
        examples.append("\n".join(["shared |w bias", *lines]))
        mappings.append({r: {f"by^{i}": x for i, x in e.items()} for r, e in rated.items()})
        labels.append(right)
    path.write_text("\n\n".join(examples) + "\n")
    return path, mappings, labels


def test_learn_and_predict_by_command(tmp_path, capsys):
    path, mappings, labels = write_council(tmp_path / "rows.ldf")
    model = tmp_path / "model"
    done = kesler(capsys, "learn", model, path, "--hypotheses", "sub-experts")
    assert done.code == 0, done
    expected = OnlineClassifier("sub-experts").fit(mappings, labels)
    found = load(model)
    assert found.sub_experts_.names == expected.sub_experts_.names
    assert found.n_mistakes_ == expected.n_mistakes_
    assert found.predict(mappings).tolist() == expected.predict(mappings).tolist()
    done = kesler(capsys, "predict", model, path)
    assert done.lines == expected.predict(mappings).tolist()
    assert np.mean(np.array(done.lines) == labels) > 0.9


def test_learning_in_two_runs_is_the_same(tmp_path, capsys):
    path, *_ = write_council(tmp_path / "rows.ldf")
    options = ("--hypotheses", "multi+sub-experts", "--update", "simproj")
    assert kesler(capsys, "learn", tmp_path / "whole", path, *options).code == 0
    lines = path.read_text().split("\n\n")
    (tmp_path / "first.ldf").write_text("\n\n".join(lines[:50]))
    (tmp_path / "rest.ldf").write_text("\n\n".join(lines[50:]))
    model = tmp_path / "model"
    first = kesler(capsys, "learn", model, tmp_path / "first.ldf", *options)
    rest = kesler(capsys, "learn", model, tmp_path / "rest.ldf", "--resume")
    assert (first.code, rest.code) == (0, 0), rest
    assert learnt(load(model)) == learnt(load(tmp_path / "whole"))


def test_compare_by_command(tmp_path, capsys):
    path, mappings, labels = write_council(tmp_path / "rows.ldf")
    methods = "sub-experts,multi+sub-experts:perceptron"
    account = tmp_path / "account.json"
    done = kesler(capsys, "compare", path, "--methods", methods, "--json", account)
    assert done.code == 0, done
    result = json.loads(account.read_text())["methods"]["sub-experts"]
    assert result["mistakes"] == OnlineClassifier("sub-experts").fit(mappings, labels).n_mistakes_
    shuffled = kesler(capsys, "compare", path, "--methods", "sub-experts", "--shuffle", "3")
    assert shuffled.code == 0, shuffled


def test_a_method_that_does_not_look_at_ratings_is_refused(tmp_path, capsys):
    path, *_ = write_council(tmp_path / "rows.ldf", n=3)
    refused(kesler(capsys, "compare", path), "no part of this learner reads them")


def test_attributes_keep_the_vocabulary_that_is_given(tmp_path):
    """Those not in it are numbered beyond."""
    vocabulary = Vocabulary.of(["w^now"])
    path = write(tmp_path, "rows.ldf", CONTENT)
    found = read(path, vocabulary=vocabulary, grow=False)
    assert [attributes for _, attributes, _ in found] == [{1: 1.0, "w^now": 2.0}, {}]
