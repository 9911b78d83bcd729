"""JSON in any layout: arrays, pretty-printed or not, and objects one after another."""

import json
import random
import tracemalloc
import warnings

import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import kesler
from kesler.errors import KeslerError, ReadingWarning
from kesler.readers import open_stream
from kesler.readers.json_values import JsonValues
from kesler.readers.reader import BadRow
from test_readers import read, write

ROWS = [
    {"label": "cards", "text": 'Ärger: lost card "x" [1]', "n": {"a": -1.5e-3, "in": {"b": [1]}}},
    {"label": "hr", "text": "{late}, pay\n", "n": {"a": 12, "in": {"b": None}}},
    {"label": "cards", "text": "\\ new card 日本 😀", "n": {"a": 0, "in": {}}},
]
LAYOUTS = {
    "array on one line": json.dumps(ROWS),
    "array, not escaped": json.dumps(ROWS, ensure_ascii=False),
    "array, object by line": "[\n" + ",\n".join(map(json.dumps, ROWS)) + "\n]\n",
    "array, pretty": json.dumps(ROWS, indent=2),
    "array, by tabs": "\n\n" + json.dumps(ROWS, indent="\t") + "\n\n",
    "objects, pretty": "\n".join(json.dumps(row, indent=4) for row in ROWS),
    "objects, brace by brace": "".join(map(json.dumps, ROWS)),
    "objects with commas": ",\n".join(map(json.dumps, ROWS)),
    "objects by line": "\r\n".join(map(json.dumps, ROWS)),
    "arrays one after another": "\n".join(json.dumps([row]) for row in ROWS),
    "byte order mark": "\ufeff" + json.dumps(ROWS, indent=1),
}
layouts = pytest.mark.parametrize("content", LAYOUTS.values(), ids=LAYOUTS)


def values(content, size=1 << 18, longest=1 << 20):
    pieces = (content[i : i + size] for i in range(0, len(content), size))
    return [(line, value.content) for line, value in JsonValues(pieces, longest)]


@layouts
@pytest.mark.parametrize("name", ["rows.json", "rows"])
def test_layouts_are_read_as_json_lines(tmp_path, content, name):
    lines = write(tmp_path, "rows.jsonl", "\n".join(map(json.dumps, ROWS)))
    assert read(write(tmp_path, name, content)) == read(lines)
    one, two = (next(open_stream(tmp_path / each, as_table=True)) for each in (name, "rows.jsonl"))
    assert one.labels == two.labels and one.rows.columns == two.rows.columns


scalars = st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False)
nested = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def test_text_sequences_are_read_as_json_lines(tmp_path):
    content = "".join(f"\x1e{json.dumps(row)}\n" for row in ROWS)
    lines = write(tmp_path, "rows.jsonl", "\n".join(map(json.dumps, ROWS)))
    assert read(write(tmp_path, "rows.json", content)) == read(lines)


@given(
    st.lists(nested, max_size=5),
    st.sampled_from([None, 1, "\t"]),
    st.booleans(),
    st.integers(1, 40),
)
def test_values_are_those_of_json(rows, indent, is_array, size):
    if is_array:
        text = json.dumps(rows, indent=indent)
    else:
        rows = [row for row in rows if not isinstance(row, list)]
        text = "\n".join(json.dumps(row, indent=indent) for row in rows)
    found = values(text.encode(), size)
    assert [value for _, value in found] == rows
    lines = [line for line, _ in found]
    assert lines == sorted(lines) and all(1 <= line <= 1 + text.count("\n") for line in lines)


def test_objects_have_the_line_on_which_they_begin():
    content = json.dumps(ROWS, indent=1).encode()
    begins = [n for n, line in enumerate(content.splitlines(), 1) if line == b" {"]
    assert [line for line, _ in values(content, 7)] == begins


# ---- errors -------------------------------------------------------------------------------------

BEFORE, AFTER = '[{"label": "a"},\n', ',\n{"label": "b"}]'
BROKEN = {
    "a word": (f"{BEFORE}{{x: tru}}{AFTER}", 2, "Expecting property name .* on line 2"),
    "pretty": (
        '[\n {\n  "label": "a"\n },\n {\n  "label" "c",\n  "in": [\n   {"label": "no"}\n  ]\n },\n'
        ' {\n  "label": "b"\n }\n]',
        5,
        "Expecting ':' delimiter on line 6",
    ),
    "one line": ('[{"label": "a"}, {"label"}, {"label": "b"}]', 1, "Expecting ':' .* on line 1"),
    "a lost quote": (f'{BEFORE}{{"label": "c}}{AFTER}', 2, "control character"),
    "no object": (f"{BEFORE} 7{AFTER}", 2, "it is a number of JSON, not an object"),
    "objects": ('{"label": "a"}\n{"label": \n}\n{"label": "b"}', 2, "Expecting value on line 3"),
    "a byte": (f'{BEFORE}{{"label": "\udcff"}}{AFTER}', 2, "not UTF-8"),
    "half a pair": (f'{BEFORE}{{"label": "\\ud800"}}{AFTER}', 2, r"escape \\ud800 is half of a"),
    "deep": (f"{BEFORE}{'[' * 99_999}{AFTER}", 2, "recursion"),
    "two values": (
        f'{BEFORE}{{"label": "c", "x": 1, "x": 2}}{AFTER}',
        2,
        "two values of 'x', 1 and 2",
    ),
    "two within": (
        f'{BEFORE}{{"in": {{"x": 1, "x": ""}}}}{AFTER}',
        2,
        "two values of 'x', 1 and ''",
    ),
    "long number": (f'{BEFORE}{{"x": {"9" * 5000}}}{AFTER}', 2, "4300"),
}


@pytest.mark.parametrize("content, line, sentence", BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_is_named_or_skipped_alone(tmp_path, content, line, sentence):
    path = write(tmp_path, "rows.json", content.encode(errors="surrogateescape"))
    with pytest.raises(KeslerError, match=rf"rows\.json, line {line}: .*{sentence}"):
        read(path, encoding="utf-8")
    stream = open_stream(path, skip_bad=True, encoding="utf-8")
    assert [label for block in stream for label in block.labels] == ["a", "b"]
    assert stream.n_bad == 1


@pytest.mark.parametrize(
    "content, line, sentence",
    [
        ('[{"label": "a"},\n', 2, "the array does not end"),
        ('[{"label": "a"},\n{"label": ', 2, "Expecting value on line 2"),
        ('[{"label": "a"}\n] x', 2, "Expecting value on line 2"),
        ('[{"label": "a"}\n]\n]', 3, "Expecting value on line 3"),
        ('{"label": "a"}\n"', 2, "Unterminated string"),
    ],
)
def test_what_is_wrong_at_the_end(tmp_path, content, line, sentence):
    path = write(tmp_path, "rows.json", content)
    with pytest.raises(KeslerError, match=rf"rows\.json, line {line}: .*{sentence}"):
        read(path)
    stream = open_stream(path, skip_bad=True)
    assert [label for block in stream for label in block.labels] == ["a"] and stream.n_bad == 1


@pytest.mark.parametrize("content", ["[]", "[\n]", " ", "[[]]"])
def test_nothing_is_no_rows(tmp_path, content):
    with pytest.raises(KeslerError, match=r"rows\.json"):
        read(write(tmp_path, "rows.json", content))


def test_altered_bytes_give_rows_or_a_sentence(tmp_path):
    random.seed(1)
    for content in LAYOUTS.values():
        whole = content.encode()
        for _ in range(60):
            altered = bytearray(whole)
            for _ in range(random.randint(1, 3)):
                altered[random.randrange(len(whole))] = random.choice([*b'{}[]",:\\\n 0e', 0, 255])
            path = write(tmp_path, "rows.json", bytes(altered))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", ReadingWarning)
                    n_rows = len(read(path, skip_bad=True, encoding="utf-8"))
            except KeslerError as error:
                assert "rows.json" in str(error)
            else:
                assert 0 < n_rows <= 12


# ---- memory -------------------------------------------------------------------------------------


def test_memory_is_bounded_by_blocks(tmp_path):
    row = json.dumps({"label": "a", "text": "b " * 500})
    path = write(tmp_path, "rows.json", f"[{', '.join([row] * 5_000)}]")
    tracemalloc.start()
    n_rows = sum(len(block) for block in open_stream(path, max_line=1 << 18, block_rows=10))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert n_rows == 5_000 and peak < path.stat().st_size / 2


def test_a_value_that_is_too_long_is_a_sentence(tmp_path):
    path = write(tmp_path, "rows.json", '[\n{"label": "' + "a" * (1 << 20))
    with pytest.raises(
        KeslerError, match=r"value on line 2 has more than 262,144 bytes: .*max_line"
    ):
        read(path, max_line=1 << 18)


def test_long_values_are_not_scanned_again_and_again():
    text = "a" * (1 << 22)
    content = json.dumps([text] * 2).encode()
    pieces = (content[i : i + 1024] for i in range(0, len(content), 1024))
    found = JsonValues(pieces, 1 << 24)
    scan, n_calls = found._scan, []
    found._scan = lambda *given: n_calls.append(1) or scan(*given)
    assert [value.content for _, value in found] == [text, text] and len(n_calls) < 700


# ---- nested fields and commands -----------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_inner_fields_are_named_by_their_path(tmp_path, suffix):
    rows = [{"ticket": {"team": "hr", "body": {"text": "late pay"}}, "nr": {"id": 7}}]
    path = write(tmp_path, f"rows.{suffix}", json.dumps(rows)[1:-1])
    options = {"label": "ticket.team", "text": "ticket.body.text"}
    assert read(path, **options) == [("hr", {"late": 1.0, "pay": 1.0})]
    (block,) = open_stream(path, label="ticket.team", id="nr.id", as_table=True, origins=True)
    assert block.rows.columns == {"ticket.body.text": ["late pay"], "nr.id": [7]}
    assert [origin.id for origin in block.origins] == [7]
    twice = write(tmp_path, "twice.json", '{"a.b": 1, "a": {"b": 2}}')
    with pytest.raises(KeslerError, match=r"twice\.json, line 1: it has two fields 'a\.b'"):
        read(twice, label="a.b")


@pytest.mark.parametrize("layout", ["array on one line", "array, pretty", "objects, pretty"])
def test_commands_learn_and_predict_any_layout_as_json_lines(tmp_path, capsys, layout):
    rows = [{"label": "ab"[i % 2], "size": {"x": i % 2, "y": 3.5}} for i in range(60)]
    made = {
        "lines": "\n".join(map(json.dumps, rows)),
        "array on one line": json.dumps(rows),
        "array, pretty": json.dumps(rows, indent=2),
        "objects, pretty": "\n".join(json.dumps(row, indent=2) for row in rows),
    }
    answers = []
    for name in ("lines", layout):
        path = write(tmp_path, "rows.jsonl" if name == "lines" else "rows.json", made[name])
        model = tmp_path / f"{name}.kesler"
        learnt = kesler(capsys, "learn", model, path)
        predicted = kesler(capsys, "predict", model, path, "--scores")
        tested = kesler(capsys, "test", model, path, "--json", "-")
        compared = kesler(capsys, "compare", path, "--methods", "default")
        assert [each.code for each in (learnt, predicted, tested, compared)] == [0] * 4
        answers.append((predicted.out, json.loads(tested.out)["error"]))
    assert answers[0] == answers[1]


def test_a_list_within_an_object_is_named(tmp_path):
    path = write(tmp_path / "", "rows.json", json.dumps({"n": 1, "data": [{"label": "a"}]}))
    with pytest.raises(KeslerError, match=r"jq -c '\.\[\"data\"\]\[\]' .*rows\.json"):
        read(path)


def test_faults_are_values():
    ((_, fault),) = values(b'{"a": x}')
    assert isinstance(fault, BadRow)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_a_value_that_is_repeated_is_one_value(tmp_path, suffix):
    path = write(tmp_path, f"rows.{suffix}", '{"label": "a", "x": 2, "label": "a"}')
    assert read(path) == [("a", {"x": 2.0})]


@pytest.mark.parametrize("layout", [*LAYOUTS, "lines with commas"])
def test_a_suffix_of_json_lines_forces_no_layout(tmp_path, layout):
    plain = read(write(tmp_path, "rows.json", json.dumps(ROWS)))
    content = LAYOUTS.get(layout) or "".join(f"{json.dumps(row)},\n" for row in ROWS)
    assert read(write(tmp_path, "rows.jsonl", content)) == plain


@pytest.mark.parametrize(
    "text, what",
    [
        ("[1]", "an array"),
        ('"a"', "a string"),
        ("1.5", "a number"),
        ("true", "a truth value"),
        ("null", "null"),
    ],
)
def test_values_of_json_are_called_by_their_names(tmp_path, text, what):
    path = write(tmp_path, "rows.jsonl", f'{{"label": "a"}}\n{text}\n')
    with pytest.raises(KeslerError, match=f"line 2: it is {what} of JSON, not an object"):
        read(path)


@pytest.mark.parametrize("suffix", ["json", "jsonl"])
@pytest.mark.parametrize("kind", ["abc", "123"])
def test_columns_of_a_frame_are_named(tmp_path, suffix, kind):
    frame = pandas.DataFrame({"x": [1, 2, 3], "label": [*kind]})
    path = tmp_path / f"rows.{suffix}"
    frame.to_json(path)
    with pytest.raises(KeslerError, match=r'holds columns, not rows.*orient="records"'):
        read(path)
    frame.to_json(path, orient="records")
    assert [label for label, _ in read(path)] == [*kind]


def test_objects_within_rows_are_no_columns_of_a_frame(tmp_path):
    rows = [{"label": {"a": 0.0, "b": 1.0}, "x": {"a": 1, "b": i}} for i in range(3)]
    path = write(tmp_path, "rows.jsonl", "\n".join(map(json.dumps, rows)))
    assert [label for label, _ in read(path)] == [{"a": 0.0, "b": 1.0}] * 3


def test_a_first_line_that_is_cut_short_changes_no_layout(tmp_path):
    rows = [json.dumps(row) for row in ROWS]
    path = write(tmp_path, "rows.jsonl", "\n".join(['{"label": ', *rows, "[]", "7", *rows]))
    stream = open_stream(path, skip_bad=True)
    assert sum(map(len, stream)) == 2 * len(ROWS) and stream.n_bad == 3
