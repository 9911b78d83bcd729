"""The compiled way through svmlight and Vowpal Wabbit's text against the parsers in Python."""

import gc
import gzip
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kesler.data.rows import Vocabulary
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import lines, open_stream, scanner, stream, vw
from test_readers import write
from test_readers_laws import mutations

NAMES = {"svmlight": "rows.svm", "vw": "rows.vw"}
formats = pytest.mark.parametrize("format", NAMES)


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("scanners")


def read_all(path, small, chunk=1 << 20, vocabulary=(), **options):
    """Return the content of a stream, read in Python up to `small` bytes and in such chunks."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)
        patch.setattr(lines, "SMALL", small)
        patch.setattr(lines, "CHUNK", chunk)
        patch.setattr(scanner, "ROOM", 1)
        patch.setattr(vw, "ROOM", 1)
        known = Vocabulary.of(vocabulary)
        found = []
        try:
            stream = open_stream(path, vocabulary=known, **options)
            for block in stream:
                rows = block.rows
                found.append((repr(block.labels), rows.n_features, rows.dense, len(known)))
                found += [rows.indptr.tolist(), rows.indices.tolist(), rows.values.tobytes()]
                found.append(None if block.weights is None else block.weights.tobytes())
                assert rows.indptr.dtype == np.int64
                assert (rows.indices.dtype, rows.values.dtype) == (np.int32, np.float32)
        except KeslerError as refusal:
            return found, str(refusal), known.names
    return found, stream.n_rows, stream.n_bad, known.names


def same(path, *, small=0, chunk=1 << 20, **options):
    """Require that both ways give the same, and return it."""
    expected = read_all(path, 1 << 40, **options)
    assert read_all(path, small, chunk, **options) == expected
    return expected


plain_numbers = st.sampled_from(["1", "-2", "0.5", "1e-3", "+12.25", "100", "0", "-0.1", "7."])
numbers = st.one_of(
    st.floats(width=32).map(repr),
    st.floats().map(repr),
    st.from_regex(r"[-+]?[0-9]{0,20}\.?[0-9]{0,20}([eE][-+]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["1.", ".5", "-0", "1_0", "inf", "nan", "3.4e38", "3.5e38", "٣", ""]),
    # Halfway between two numbers of type float32, and a little to its side.
    st.sampled_from(["1.00000005960464477539", "1.0000000596046447", "16777217", "16777219"]),
)
plain_words = st.sampled_from(
    ["a", "b", "c", "spam", "free", "12", "é", "日本", "long-word", "a^b"]
)
words = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=9)
odd_blanks = st.sampled_from(["  ", "\t", " \r", "\x0b", "\x0c", "\x1c", "\xa0", "\u2003"])
plain_labels = {"": st.sampled_from(["1", "2", "+1", "1.5", "007"]), "t": st.sampled_from("abé")}
labels = st.sampled_from(["-1", "2nd", "e", "nan", "1e5", "١", "", "3:1", "b"])


def mostly(usual, odd):
    """Draw what is usual, and once in ten times what is odd."""
    return st.integers(0, 9).flatmap(lambda n: odd if n == 0 else usual)


@st.composite
def svmlight_lines(draw, kind):
    indices = draw(st.lists(st.integers(0, 12), max_size=6))
    if draw(st.integers(0, 5)):
        indices = draw(st.permutations(sorted(set(indices))))
    blank = draw(mostly(st.just(" "), odd_blanks))
    index = mostly(st.just(0), st.sampled_from([2**31 - 13, 2**31 - 2, 2**40]))
    tokens = [f"{i + draw(index)}:{draw(mostly(plain_numbers, numbers))}" for i in indices]
    query = draw(st.sampled_from([[], [], [], ["qid:3"], ["qid:"]]))
    comment = draw(st.sampled_from(["", "", "", "# so", " # é", "#1:2", " "]))
    return blank.join([draw(mostly(plain_labels[kind], labels)), *query, *tokens]) + comment


@st.composite
def vw_lines(draw, kind):
    blank = draw(mostly(st.just(" "), odd_blanks))
    head = [draw(mostly(plain_labels[kind], labels))]
    head.append(draw(st.sampled_from(["", "", "", "2", "0.5", "-1", "1e-3"])))
    head.append(draw(st.sampled_from(["", "", "'tag", "tag"])))
    line = blank.join(token for token in head if token) + draw(mostly(st.just(" "), st.just("")))
    spaces = mostly(st.just(""), st.sampled_from(["f", "a^b", "f:2", "f:0.1", "f:1e-30"]))
    colons = st.just("") | mostly(plain_numbers, numbers).map(":{}".format)
    for _ in range(draw(st.integers(0, 2))):
        features = draw(st.lists(st.tuples(mostly(plain_words, words), colons), max_size=5))
        line += "|" + blank.join([draw(spaces), *map("".join, features)])
    return line


written = {"svmlight": svmlight_lines, "vw": vw_lines}


@st.composite
def contents(draw, format):
    """Lines as they may be written, more of them plain than odd, some of them damaged."""
    line = written[format](draw(st.sampled_from(["", "t"])))
    stored = draw(st.lists(mostly(line, st.sampled_from(["", " ", "# a", "1 | a"])), max_size=8))
    end = draw(mostly(st.just("\n"), st.just("\r\n")))
    content = end.join(stored).encode() + draw(st.sampled_from([b"", b"\n"]))
    return draw(mutations(content)) if draw(st.integers(0, 4)) == 0 else content


ways = st.fixed_dictionaries(
    {
        "require_labels": st.booleans(),
        "skip_bad": st.booleans(),
        "block_rows": st.integers(1, 4),
        "skip_rows": st.sampled_from([0, 0, 0, 1, 2, 5]),
        "chunk": st.integers(1, 9) | st.just(1 << 20),
        "small": st.sampled_from([-1, -1, 20, 50]),
    }
)


@settings(max_examples=150)
@given(data=st.data(), way=ways)
def test_svmlight_equals_the_parser(directory, data, way):
    same(write(directory, "rows.svm", data.draw(contents("svmlight"))), **way)


@settings(max_examples=150)
@given(data=st.data(), way=ways, grow=st.booleans(), known=st.booleans())
def test_vw_equals_the_parser(directory, data, way, grow, known):
    vocabulary = ["^b", "f^a", "never"] if known else []
    path = write(directory, "rows.vw", data.draw(contents("vw")))
    same(path, grow=grow, vocabulary=vocabulary, **way)


# The value of a float32 as Python writes it, with 17 significant digits behind a zero.
DOUBLE = "1.5 0:-0.25 2:-0.020899999886751175\r"
PLAIN = {
    "svmlight": ["1 0:1 3:0.5", "2", "-1 7:1e-3 5:2 # x", "007 qid:3 1:+.5\t2:3.", "1.5 0:-0.25\r"],
    "vw": [
        "1 | a b:2 a:-0.5",
        "2 0.5 'tag |f:2 a:3 b |g a^b",
        "-1 |é ü:0.020899999886751175 日本",
        "1.5|f",
        "3 |longer-name-space longer-names-too |b |c\r",
        "2 tag| b a c",
    ],
}


@formats
def test_plain_lines_are_not_left_to_python(directory, format, monkeypatch):
    content = "\n".join(PLAIN[format] * 2)
    path = write(directory, NAMES[format], content.replace("1.5|f", "1.5 |f"))
    read = []
    example = stream.Admission.example
    monkeypatch.setattr(
        stream.Admission, "example", lambda *row: [read.append(row), example(*row)][1]
    )
    expected = read_all(path, 1 << 40)
    n_rows = len(read)
    assert read_all(path, -1) == expected
    assert len(read) == n_rows + 1


def text_rows(format, n_rows, n_words=2000):
    """Lines of random words, many of which come again."""
    generator = np.random.default_rng(7)
    words = np.sort(generator.integers(0, n_words, (n_rows, 20))).tolist()
    bar, value = (" | ", "") if format == "vw" else (" ", ":1.25")
    rows = (dict.fromkeys(row[: i % 21]) for i, row in enumerate(words))
    return "".join(
        f"{i % 7}{bar}{' '.join(f'{word}{value}' for word in row)}\n" for i, row in enumerate(rows)
    ).encode()


@formats
@pytest.mark.parametrize("compressed", [False, True])
def test_long_sources_equal_the_parser(tmp_path, format, compressed):
    content = text_rows(format, 3000)
    name = NAMES[format] + (".gz" if compressed else "")
    path = write(tmp_path, name, gzip.compress(content, 1) if compressed else content)
    same(path, small=1 << 14, block_rows=500, skip_rows=700)
    bad = {"svmlight": b"0:1\n", "vw": b"|f\n"}[format]
    with pytest.warns(ReadingWarning, match=r"line 3001: there is no label"):
        stream = open_stream(write(tmp_path, NAMES[format], content + bad))
        assert sum(map(len, stream)) == 3000


@pytest.mark.parametrize("value", ["", ":1.5"])
def test_names_of_any_length_are_distinguished(tmp_path, value):
    """Windows of bytes end anywhere in them, and long ones differ in a byte only."""
    generator = np.random.default_rng(3)
    names = [stem * 40 for stem in "ab"]
    names = [name[:length] + end for name in names for length in range(30) for end in "xyé"]
    lines = []
    for row in range(300):
        drawn = generator.permutation(len(names))[:9]
        words = [names[i] + value for i in drawn]
        space = names[drawn[0]] if row % 3 else ""
        lines.append(f"{row % 2} |{space} {' '.join(words[:5])} |{' '.join(words[4:])}")
    path = write(tmp_path, "rows.vw", "\n".join(lines))
    *_, vocabulary = same(path, small=-1, chunk=500)
    assert len(vocabulary) > 900
    same(path, small=-1, vocabulary=vocabulary[::-1], grow=False)
    same(path, small=-1, vocabulary=vocabulary[:50])


def test_names_are_numbered_anew_where_others_join_or_leave(tmp_path, monkeypatch):
    """The vocabulary is the truth, however far a scanner is ahead."""
    monkeypatch.setattr(lines, "SMALL", -1)
    path = write(tmp_path, "rows.vw", "1 | a b\n1 | c d\n1 | d a\n1 | e\n")
    vocabulary = Vocabulary()
    stream = open_stream(path, vocabulary=vocabulary, width=0, block_rows=1)
    assert next(stream).rows.indices.tolist() == [0, 1]
    assert next(stream).rows.indices.tolist() == [2, 3]
    vocabulary.forget_from(2)
    vocabulary.add("^other")
    assert next(stream).rows.indices.tolist() == [3, 0]
    assert next(stream).rows.indices.tolist() == [4]
    assert vocabulary.names == ["^a", "^b", "^other", "^d", "^e"]


def test_names_that_never_join_are_not_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(vw, "MOST_UNKNOWN", 5)
    content = "".join(f"1 | {word} {word % 2} known\n" for word in range(40))
    path = write(tmp_path, "rows.vw", content)
    expected = same(path, small=-1, grow=False, vocabulary=["^known"], block_rows=2)
    assert expected[-1] == ["^known"]


# Reading ahead


def reading_threads():
    return [thread for thread in threading.enumerate() if thread.name == stream.NAME]


def test_the_thread_ends_when_the_stream_is_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "SMALL", -1)
    monkeypatch.setattr(lines, "CHUNK", 100)
    stream = open_stream(write(tmp_path, "rows.vw", text_rows("vw", 100)), block_rows=1)
    next(stream), next(stream)
    assert len(reading_threads()) == 2  # of texts, and of rows
    gc.disable()  # dropping is enough
    try:
        del stream
        assert not reading_threads()
    finally:
        gc.enable()


def test_the_threads_end_when_a_row_is_bad(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "SMALL", -1)
    monkeypatch.setattr(lines, "CHUNK", 100)
    good = text_rows("vw", 100)
    path = write(tmp_path, "rows.vw", good + b"1 | a:b:c\n" + good)
    gc.disable()  # no error that is forgotten keeps them
    try:
        with pytest.raises(KeslerError, match="line 101: 'a:b:c' is not"):
            list(open_stream(path))
        assert not reading_threads()
    finally:
        gc.enable()


def test_what_is_raised_ahead_comes_in_its_place():
    def items():
        yield 1
        yield 2
        raise KeyboardInterrupt("now")

    read = stream.read_ahead(items(), 5)
    assert [next(read), next(read)] == [1, 2]
    with pytest.raises(KeyboardInterrupt, match="now"):
        next(read)
    assert not reading_threads()


def test_no_more_is_read_ahead_than_there_is_room_for():
    asked = []
    items = stream.read_ahead((asked.append(i) for i in range(100)), 3)
    next(items)
    items.close()
    assert len(asked) <= 6


@formats
def test_memory_does_not_grow_with_the_file(tmp_path, format):
    def peak(n_rows):
        path = write(tmp_path, NAMES[format], text_rows(format, n_rows, 300))
        tracemalloc.start()
        for _ in open_stream(path, block_rows=64):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines, "SMALL", 1000)
        patch.setattr(lines, "CHUNK", 1 << 14)
        peak(500)
        assert peak(10_000) < 1.3 * peak(1000)
