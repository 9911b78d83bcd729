"""Vectors beside words: columns of vectors, word vectors of files, and functions of texts."""

import gzip
import json
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from commands import kesler
from kesler import Ensemble, KeslerError, OnlineClassifier, load
from kesler.data import model_file
from kesler.data.schema.kinds import listed
from kesler.errors import MismatchWarning
from kesler.preprocessing import ZScores
from kesler.readers.word_vectors import WordVectors, vectors_of
from kesler.service.refusals import Refusal
from kesler.service.registry import estimator_of
from streams import assert_same_bits

WORDS = "invoice refund card lost stolen pin code address move house rate loan".split()
LENGTH = 6
OF_WORD = dict(zip(WORDS, np.random.default_rng(3).normal(size=(len(WORDS), LENGTH)), strict=True))


def vectors(texts):
    """Return the mean vector of the words of each text, NaN where it has none."""
    found = np.full((len(texts), LENGTH), np.nan)
    for i, text in enumerate(texts):
        own = [OF_WORD[word] for word in text.split() if word in OF_WORD]
        if own:
            found[i] = np.mean(own, axis=0) / np.linalg.norm(np.mean(own, axis=0))
    return found


def stream(seed, n=120):
    """Return texts of three classes, which share words."""
    rng = np.random.default_rng(seed)
    texts, labels = [], []
    for _ in range(n):
        topic = int(rng.integers(3))
        words = [WORDS[(4 * topic + int(rng.integers(6))) % len(WORDS)] for _ in range(5)]
        texts.append(" ".join(["please", *words]))
        labels.append(("bank", "cards", "home")[topic])
    return texts, labels


def rows_of(texts, *, with_text=True, seed=0):
    """Return rows with the vectors as lists, beside the texts or beside a number and a category."""
    rng = np.random.default_rng(seed)
    lists = [None if np.isnan(v).any() else v.tolist() for v in vectors(texts)]
    if with_text:
        return [{"body": t, "meaning": v} for t, v in zip(texts, lists, strict=True)]
    return [
        {"meaning": v, "age": float(rng.normal()), "kind": str(rng.choice(["a", "b"]))}
        for v in lists
    ]


def test_a_vector_is_learnt_by_a_member_of_its_own_as_an_array_is():
    texts, labels = stream(0)
    model = OnlineClassifier().partial_fit(rows_of(texts), labels)
    words, mapped = model.resolved_.update
    array = vectors(texts).astype(np.float32)
    alone = OnlineClassifier(**mapped.get_params(deep=False)).partial_fit(array, labels)
    of_words = OnlineClassifier(**words.get_params(deep=False)).partial_fit(
        [{"body": text} for text in texts], labels
    )
    for member, other in zip(model._learner.members, (of_words, alone), strict=True):
        for name, stored in other._learner.arrays().items():
            if not name.startswith("uncertainty"):
                assert_array_equal(member.arrays()[name], stored, err_msg=name)


def test_members_that_expand_rows_read_the_other_columns_alone():
    texts, labels = stream(1)
    rows = rows_of(texts, with_text=False)
    model = OnlineClassifier().partial_fit(rows, labels)
    words, *others, mapped, lines = model.resolved_.update
    assert [each.preprocessing for each in (mapped, lines)] == [ZScores(), ZScores()]
    without = OnlineClassifier(update=[words, *others]).partial_fit(
        [{name: cell for name, cell in row.items() if name != "meaning"} for row in rows], labels
    )
    for member, other in zip(model._learner.members, without._learner.members, strict=False):
        for name, stored in other.arrays().items():
            assert_array_equal(member.arrays()[name], stored, err_msg=name)
    inputs = model._input.columns.known.inputs
    cells = {name: [row[name] for row in rows] for name in rows[0]}
    array = inputs.array(cells, len(rows))
    assert_allclose(array[:, inputs.n_columns :], vectors(texts), atol=1e-6)
    both = Ensemble([mapped, lines]).partial_fit(array, labels)
    for member, other in zip(model._learner.members[-2:], both._learner.members, strict=True):
        for name, stored in other.arrays().items():
            assert_array_equal(member.arrays()[name], stored, err_msg=name)


@pytest.mark.parametrize("form", ["texts", "column", "beside", "frame"])
def test_a_function_of_texts_is_a_column_of_vectors(form):
    texts, labels = stream(2)
    given = rows_of(texts)
    rows = texts if form == "texts" else [{"body": text} for text in texts]
    if form == "frame":
        rows = pytest.importorskip("pandas").DataFrame(rows)
    if form == "beside":
        rows = [{**row, "n": i} for i, row in enumerate(rows)]
        given = [{**row, "n": i} for i, row in enumerate(given)]
    named = {"columns": {"body": "text"}} if form != "texts" else {}
    model = OnlineClassifier(vectors=vectors, **named).partial_fit(rows, labels)
    other = OnlineClassifier(columns={"body": "text"}).partial_fit(given, labels)
    assert_array_equal(model.predict_proba(rows, new=True), other.predict_proba(given, new=True))
    if form == "texts":
        assert model.predict_one(texts[5]) == other.predict_one(given[5])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("with_text", [True, False])
def test_any_split_and_a_file_in_between_are_the_same(seed, with_text, tmp_path):
    texts, labels = stream(seed)
    texts[7] = "none of these"  # a missing vector
    rows = rows_of(texts, with_text=with_text)
    whole = OnlineClassifier().partial_fit(rows, labels)
    cuts = np.random.default_rng(seed).integers(1, len(rows), 3)
    pieces = OnlineClassifier()
    for start, end in pairwise([0, *sorted({*cuts.tolist()}), len(rows)]):
        pieces.partial_fit(rows[start:end], labels[start:end]).save(tmp_path / "m")
        pieces = load(tmp_path / "m")
    one_by_one = OnlineClassifier()
    for row, label in zip(rows, labels, strict=True):
        one_by_one.learn_one(row, label)
    for other in (pieces, one_by_one):
        assert_same_bits(whole, other)
        assert_array_equal(whole.predict_proba(rows, new=True), other.predict_proba(rows, new=True))


@pytest.mark.parametrize(
    "as_written", [list, np.array, np.float32], ids=["lists", "arrays", "float32"]
)
def test_vectors_that_pandas_writes_to_csv_are_vectors(as_written, tmp_path):
    pandas = pytest.importorskip("pandas")
    texts, labels = stream(6)
    rows = rows_of(texts)
    rows[7]["meaning"], rows[9]["meaning"] = [1.0, 2.0], None  # of another length, and missing
    frame = pandas.DataFrame(rows)
    given = [None if each is None else as_written(each) for each in frame["meaning"]]
    frame.assign(meaning=given).to_csv(tmp_path / "rows.csv", index=False)
    read = pandas.read_csv(tmp_path / "rows.csv")
    assert isinstance(read["meaning"][0], str)
    with pytest.warns(MismatchWarning, match="holds a list of 2 numbers"):
        model = OnlineClassifier().partial_fit(rows, labels)
    with pytest.warns(MismatchWarning, match="holds a list of 2 numbers"):
        of_csv = OnlineClassifier().partial_fit(read, labels)
    for each in (model, of_csv):
        column = each.schema_["meaning"]
        assert (column.kind, column.options["length"], column.n_misfits) == ("vector", LENGTH, 1)
    for cell, row in zip(read["meaning"], rows, strict=True):
        if row["meaning"] is not None:  # NumPy writes eight digits
            assert_allclose(listed(cell), row["meaning"], atol=1e-6)
    if as_written is list:
        assert_array_equal(of_csv.predict_proba(read), model.predict_proba(rows))


def test_lists_of_other_things_remain_tags_and_texts():
    rows = [
        {"tags": ["a", "b"], "sizes": [1.0] * (1 + i % 3), "note": "[sic] 1"} for i in range(60)
    ]
    model = OnlineClassifier().partial_fit(rows, ["x", "y"] * 30)
    kinds = {column.name: column.kind for column in model.schema_}
    assert kinds == {"tags": "tags", "sizes": "tags", "note": "category"}
    named = OnlineClassifier(columns={"v": "vector"}).partial_fit(
        [{"v": "[1 2 3]", "w": "a b c d e f"}, {"v": [4, 5, 6], "w": "g h i j k l"}], ["x", "y"]
    )
    assert named.schema_["v"].options["length"] == 3 and not named.schema_["v"].n_misfits


def test_explanations_are_of_columns_and_add_up():
    texts, labels = stream(3)
    model = OnlineClassifier().partial_fit(rows_of(texts), labels)
    why = model.explain_one(rows_of(texts)[4])
    assert {each.feature for each in why.contributions} == {"body", "meaning"}
    assert sum(each.score for each in why.summands) == pytest.approx(why.score, abs=1e-6)


def test_rows_far_from_all_others_are_likelier_of_a_new_class():
    texts, labels = stream(4, n=300)
    model = OnlineClassifier(vectors=vectors).partial_fit(texts, labels)
    assert model.resolved_.uncertainty == "full"
    near = model.predict_proba(texts[:50], new=True)[:, -1]
    words = ["zebra", "yacht", "xylophone"]
    OF_WORD.update({word: 9.0 * np.eye(LENGTH)[i] for i, word in enumerate(words)})
    far = model.predict_proba([f"please {word}" for word in words], new=True)[:, -1]
    assert far.min() > np.quantile(near, 0.9)


# ---- files of word vectors ----------------------------------------------------------------------


def lines(header):
    first = [f"{len(WORDS)} {LENGTH}"] if header else []
    return "\n".join(
        [
            *first,
            *(f"{w} {' '.join(map(repr, v.tolist()))}" for w, v in OF_WORD.items() if w in WORDS),
        ]
    )


def write_npy(path):
    path.with_suffix(".txt").write_text("\n".join(WORDS))
    np.save(path, np.array([OF_WORD[word] for word in WORDS]))


WRITERS = {
    "glove.txt": lambda path: path.write_text(lines(header=False)),
    "fasttext.vec": lambda path: path.write_text(lines(header=True) + "\n"),
    "glove.txt.gz": lambda path: path.write_bytes(gzip.compress(lines(header=False).encode())),
    "words.npz": lambda path: np.savez(
        path, words=np.array(WORDS), vectors=np.array([OF_WORD[word] for word in WORDS])
    ),
    "words.npy": write_npy,
}


@pytest.mark.parametrize("name", WRITERS)
def test_word_vectors_of_a_file_are_those_of_a_function(name, tmp_path):
    path = tmp_path / name
    WRITERS[name](path)
    texts, labels = stream(5)
    assert_allclose(vectors_of(path)(texts), vectors(texts), atol=1e-6)
    assert_array_equal(vectors_of(str(path))(["Invoice!", "nothing"])[1], [np.nan] * LENGTH)
    model = OnlineClassifier(vectors=str(path)).partial_fit(texts, labels)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert_array_equal(model.predict_proba(texts), again.predict_proba(texts))
    path.unlink()
    with pytest.raises(KeslerError, match=r"vectors='.*' cannot be read"):
        load(tmp_path / "model").predict(texts)


def test_lines_as_others_write_them_are_read(tmp_path):
    """Tokens with spaces (GloVe 840B, gensim), a space as a word, and bytes that are no text."""
    path = tmp_path / "glove.txt"
    path.write_bytes(b"card 1 0\n. . . 0 1\nat name@domain.com 1 1 \n\xc2\xa0 1 2\nbad\xff 2 2\n")
    found = vectors_of(path)
    assert [*found.rows][:3] == ["card", ". . .", "at name@domain.com"] and len(found.rows) == 5
    path.write_text("3 1\nhello 1.0\nmy name 2.0\nis Ivan 3.0\n")
    assert [*vectors_of(path).rows] == ["hello", "my name", "is ivan"]
    path.write_text("a 9:0.02 8:1.0\n")
    with pytest.raises(KeslerError, match=r"glove\.txt.*line 1: could not convert"):
        vectors_of(path)


def test_words_with_spaces_and_capitals_are_found():
    found = WordVectors(["New", "new", "York"], [[1.0, 0.0], [5.0, 5.0], [0.0, 2.0]])
    assert_allclose(found(["new YORK"]), [np.array([1.0, 2.0]) / np.sqrt(5)])


@pytest.mark.parametrize(
    "given, why",
    [
        (5, "give a file of lines"),
        ("missing.vec", "cannot be read"),
        (lambda texts: np.ones(len(texts)), r"shape \(1,\) for 1 texts"),
        (lambda texts: np.full((len(texts), 2), np.inf), "infinite"),
        (lambda texts: np.ones((len(texts) + 1, 2)), r"a row for each"),
        (lambda texts: np.ones((len(texts), 2 + len(texts))), r"for 40 texts: .* of 3 numbers"),
    ],
)
def test_what_is_no_vector_is_refused(given, why):
    texts, labels = stream(6, n=40)
    model = OnlineClassifier(vectors=given)
    with pytest.raises(KeslerError, match=why):
        model.fit(texts, labels)
    assert not model.__sklearn_is_fitted__()


@pytest.mark.parametrize("text", ["a 1 2\nb 1", "a 1 x", "", "2 3\na 1 2", "a nan 1"])
def test_damaged_files_are_refused(text, tmp_path):
    path = tmp_path / "bad.vec"
    path.write_text(text)
    with pytest.raises(KeslerError, match=r"bad\.vec"):
        vectors_of(path)


@pytest.mark.parametrize(
    "rows",
    [np.ones((4, 2)), [{"a": 1.5, "b": 2.0}] * 4, [{"a": "x", "b": 2.0}] * 60],
    ids=["array", "numbers", "categories"],
)
def test_vectors_of_rows_without_texts_are_refused(rows):
    with pytest.raises(KeslerError, match="those of texts, and no row has any"):
        OnlineClassifier(vectors=vectors).fit(rows, ["p", "q"] * (len(rows) // 2))
    with pytest.raises(KeslerError, match="settings are of a single learner"):
        OnlineClassifier(vectors=vectors, update="pa1").fit(["one two", "three"], ["a", "b"])


@pytest.mark.parametrize("name, options", [("rows.csv", ("--text", "body")), ("rows.jsonl", ())])
def test_the_command_line_reads_a_file_of_word_vectors(name, options, capsys, tmp_path):
    texts, labels = stream(9)
    WRITERS["glove.txt"](tmp_path / "glove.txt")
    column = "body" if options else "text"
    written = [
        f"{text},{label}" if options else json.dumps({"text": text, "label": label})
        for text, label in zip(texts, labels, strict=True)
    ]
    (tmp_path / name).write_text("\n".join(["body,label", *written] if options else written))
    model = OnlineClassifier(columns={column: "text"}, vectors=str(tmp_path / "glove.txt"))
    model.partial_fit([{column: text} for text in texts], labels)
    done = kesler(
        *(capsys, "learn", tmp_path / "m", tmp_path / name, "--label", "label"),
        *("--vectors", tmp_path / "glove.txt", *options),
    )
    assert done.code == 0, done.err
    learnt = load(tmp_path / "m")
    model.end_sequence()  # as the command does behind a file
    assert learnt.n_mistakes_ == model.n_mistakes_
    rows = [{column: text} for text in texts]
    assert_array_equal(learnt.predict_proba(rows), model.predict_proba(rows))
    done = kesler(capsys, "predict", tmp_path / "m", tmp_path / name)
    assert done.out.split() == model.predict(rows).tolist()


def test_no_request_of_a_service_names_a_file():
    with pytest.raises(Refusal, match="a file of the server"):
        estimator_of("OnlineClassifier", {"vectors": "/etc/passwd"})


def test_altered_inputs_of_a_file_are_refused(tmp_path):
    texts, labels = stream(8)
    OnlineClassifier().partial_fit(rows_of(texts), labels).save(tmp_path / "m")
    arrays, metadata = model_file.load(tmp_path / "m")
    for length in (0, -1, 5, 7, 1 << 40, "6", 6.0):
        altered = json.loads(json.dumps(metadata))
        altered["table"]["inputs"][0][3] = length
        model_file.save(tmp_path / "other", arrays, altered)
        with pytest.raises(KeslerError):
            load(tmp_path / "other")
