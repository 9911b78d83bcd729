"""kesler predict: the classes that the model predicts, in every shape of a line."""

import json
import subprocess
import threading
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

from commands import (
    WORDS,
    as_entries,
    kesler,
    kesler_process,
    learnt_file,
    messages,
    refused,
    write_csv,
    write_jsonl,
    write_svmlight,
    write_vw,
)
from kesler import NEW as NEW_CLASS
from kesler import OnlineClassifier, OnlineOrdinalClassifier, load

NEW = messages(40, seed=5)


@pytest.fixture
def model(tmp_path):
    return learnt_file(tmp_path, messages(200))


@pytest.fixture
def new(tmp_path):
    return write_jsonl(tmp_path / "new.jsonl", NEW)


@pytest.fixture
def scores(model):
    """The score of each class, in the order of `classes_`."""
    return load(model).decision_function(as_entries(NEW)[0])


def test_a_label_a_line(capsys, model, new):
    expected = load(model).predict(as_entries(NEW)[0]).tolist()
    assert kesler(capsys, "predict", model, new).lines == expected


def test_rows_need_no_labels(capsys, model, new, tmp_path):
    bare = tmp_path / "bare.jsonl"
    texts = [{"text": json.loads(line)["text"]} for line in new.read_text().splitlines()]
    bare.write_text("\n".join(map(json.dumps, texts)))
    found = kesler(capsys, "predict", model, bare)
    assert found.lines == kesler(capsys, "predict", model, new).lines


def test_scores_are_in_their_order(capsys, model, new, scores):
    classes = load(model).classes_.tolist()
    lines = kesler(capsys, "predict", model, new, "--scores").lines
    for line, row in zip(lines, scores, strict=True):
        label, *pairs = line.split("\t")
        found = {pair.rpartition(":")[0]: float(pair.rpartition(":")[2]) for pair in pairs}
        assert found == pytest.approx(dict(zip(classes, row.tolist(), strict=True)))
        assert list(found.values()) == sorted(found.values(), reverse=True)
        assert label == next(iter(found))


def test_the_best_classes(capsys, model, new, scores):
    classes = load(model).classes_
    lines = kesler(capsys, "predict", model, new, "-n", "2").lines
    for line, row in zip(lines, scores, strict=True):
        assert sorted(row[np.isin(classes, line.split("\t"))]) == sorted(row)[-2:]
    more = kesler(capsys, "predict", model, new, "-n", "9").lines
    assert {len(line.split("\t")) for line in more} == {3}


@pytest.mark.parametrize("option, keys", [([], 1), (["--scores"], 2), (["-n", "2"], 2)])
def test_json_lines(capsys, model, new, option, keys):
    plain = kesler(capsys, "predict", model, new).lines
    lines = kesler(capsys, "predict", model, new, "--json-lines", *option).lines
    found = [json.loads(line) for line in lines]
    assert [line["label"] for line in found] == plain
    assert {len(line) for line in found} == {keys}
    assert all(line["top"][0]["label"] == line["label"] for line in found if "top" in line)
    assert all(len(line.get("scores", "abc")) == 3 for line in found)


def test_two_classes_have_two_scores(capsys, tmp_path):
    rows = write_jsonl(tmp_path / "two.jsonl", [r for r in messages(90) if r[0] != "home"])
    kesler(capsys, "learn", tmp_path / "two.kesler", rows)
    done = kesler(capsys, "predict", tmp_path / "two.kesler", rows, "--scores")
    assert {len(line.split("\t")) for line in done.lines} == {3}


def test_input_is_read_as_that_of_the_model_was(capsys, tmp_path):
    table, path = write_csv(tmp_path / "signs.csv", 80), tmp_path / "signs.kesler"
    assert kesler(capsys, "learn", path, table, "--label", "signs").code == 0
    columns = np.genfromtxt(table, delimiter=",", names=True, usecols=(0, 1, 3))
    X = [dict(zip(columns.dtype.names, row, strict=True)) for row in columns.tolist()]
    expected = load(path).predict(X).tolist()
    assert kesler(capsys, "predict", path, table).lines == expected
    named = kesler(capsys, "predict", path, table, "--label", "signs")
    assert named.lines == expected


def test_a_model_made_elsewhere_predicts_too(capsys, tmp_path):
    model = OnlineClassifier().fit(*as_entries(messages(100)))
    model.save(tmp_path / "own.kesler")
    new = write_jsonl(tmp_path / "new.jsonl", NEW)
    found = kesler(capsys, "predict", tmp_path / "own.kesler", new).lines
    assert found == model.predict(as_entries(NEW)[0]).tolist()


def test_predicting_leaves_the_model_as_it_is(capsys, model, new):
    before = model.read_bytes()
    kesler(capsys, "predict", model, new)
    assert model.read_bytes() == before


def test_rows_of_another_kind_are_refused(capsys, model, tmp_path):
    positions = write_svmlight(tmp_path / "rows.svm", 5)
    refused(kesler(capsys, "predict", model, positions), "positions")
    other = tmp_path / "positions.kesler"
    assert kesler(capsys, "learn", other, positions).code == 0
    rows = write_jsonl(tmp_path / "rows.jsonl", NEW)
    refused(kesler(capsys, "predict", other, rows), "by position")


def test_rows_of_another_width_are_refused(capsys, tmp_path):
    path = tmp_path / "letters.kesler"
    assert kesler(capsys, "learn", path, "dataset:pendigits").code == 0
    np.savez(tmp_path / "narrow.npz", X=np.ones((2, 3)))
    done = kesler(capsys, "predict", path, tmp_path / "narrow.npz")
    refused(done, "have 3 features", "expects 16")


def test_bad_rows_are_named_or_skipped(capsys, model, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", NEW[:5])
    rows.write_text(rows.read_text() + '{"text": 7}\n')
    refused(kesler(capsys, "predict", model, rows), "line 6", "--skip-bad")
    done = kesler(capsys, "predict", model, rows, "--skip-bad")
    assert done.code == 3 and len(done.lines) == 6 and done.lines[5] == ""
    assert "skipped 1 of 6 rows" in done.err and "the first is line 6: the text field" in done.err


def test_a_skipped_row_has_an_empty_line_and_a_row_without_a_class(capsys, model, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", NEW[:4])
    lines = rows.read_text().splitlines()
    rows.write_text("\n".join(["{", lines[0], "[]", "7", *lines[1:], '{"text": 7}']))
    command = "predict", model, rows, "--skip-bad"
    expected = load(model).predict(as_entries(NEW[:4])[0]).tolist()
    answers = ["", expected[0], "", "", *expected[1:], ""]
    assert kesler(capsys, *command).lines == answers
    found = [json.loads(line) for line in kesler(capsys, *command, "--json-lines").lines]
    assert [each["row"] for each in found] == [*range(1, 9)]
    assert [each["label"] for each in found] == [label or None for label in answers]


NAMES = [
    "line one\nline two",
    "tab\there",
    "back\\slash\\n",
    "a\u2028 \x85 \r\n b",
    "c\x0b\x0c\x1cd",
]


@pytest.fixture
def named(tmp_path):
    """A model whose classes have odd names, and rows of which each is of one."""
    path, rows = tmp_path / "odd.kesler", tmp_path / "odd.csv"
    pairs = [(name, f"word{i}") for i, name in enumerate(NAMES)]
    learner = OnlineClassifier()
    for name, word in pairs * 8:
        learner.learn_one(word, name)
    learner.save(path)
    rows.write_text("id,text\n" + "".join(f"=cmd{word},{word}\n" for _, word in pairs))
    return path, rows


def test_a_name_of_several_lines_is_one_line(capsys, named):
    model, rows = named
    done = kesler(capsys, "predict", model, rows)
    assert done.out.count("\n") == len(done.out.splitlines()) == len(NAMES)
    assert [line.encode().decode("unicode_escape") for line in done.lines] == NAMES
    assert done.lines[2] == "back\\\\slash\\\\n"
    ranked = kesler(capsys, "predict", model, rows, "-n", "3").lines
    assert {line.count("\t") for line in ranked} == {2}
    as_json = kesler(capsys, "predict", model, rows, "--json-lines").out.split("\n")[:-1]
    assert [json.loads(line)["label"] for line in as_json] == NAMES


READERS = {
    "csv": lambda path: pd.read_csv(path).to_dict("records"),
    "parquet": lambda path: parquet.read_table(path).to_pylist(),
    "jsonl": lambda path: [json.loads(line) for line in path.read_text().split("\n")[:-1]],
}


@pytest.mark.parametrize("suffix", READERS)
def test_answers_as_a_table(capsys, named, tmp_path, suffix):
    (model, rows), table = named, tmp_path / f"answers.{suffix}"
    command = "predict", model, rows, "--id", "id", "--output", table
    done = kesler(capsys, *command, "--coverage", "0.9")
    assert done.code == 0 and done.out == ""
    found = READERS[suffix](table)
    assert [each["label"] for each in found] == NAMES
    assert [each["row"] for each in found] == [1, 2, 3, 4, 5]
    guard = "'" if suffix == "csv" else ""  # against formulas of spreadsheets
    assert [each["id"] for each in found] == [f"{guard}=cmdword{i}" for i in range(5)]
    loaded = load(model)
    texts = [f"word{i}" for i in range(5)]
    confidence = loaded.confidence(texts)
    assert [each["confidence"] for each in found] == pytest.approx(confidence.tolist(), abs=1e-6)
    sets = [json.loads(each["set"]) if suffix == "csv" else each["set"] for each in found]
    assert [*map(set, sets)] == [
        {label for label in members if label is not NEW_CLASS}
        for members in loaded.predict_set(texts, 0.9)
    ]


@pytest.mark.parametrize("suffix", READERS)
@pytest.mark.parametrize("option, column", [("--scores", "scores"), ("-n=2", "top")])
def test_tables_with_more_than_the_best_class(capsys, named, tmp_path, suffix, option, column):
    (model, rows), table = named, tmp_path / f"answers.{suffix}"
    assert kesler(capsys, "predict", model, rows, option, "--output", table).code == 0
    given = [each[column] for each in READERS[suffix](table)]
    found = [json.loads(each) if suffix == "csv" else each for each in given]
    assert {len(each) for each in found} == {5 if column == "scores" else 2}
    if column == "top":
        top = load(model).predict_top([f"word{i}" for i in range(5)], 2)
        assert found == [[each._asdict() for each in row] for row in top]


def test_types_of_labels_and_ids_in_parquet(capsys, tmp_path):
    OnlineClassifier().fit([{"a": 1.0}, {"b": 1.0}] * 5, [10, 20] * 5).save(tmp_path / "m.kesler")
    rows = pa.table({"a": [1.0, 0.0], "b": [0.0, 1.0], "ticket": [7, 8]})
    parquet.write_table(rows, tmp_path / "rows.parquet")
    command = "predict", tmp_path / "m.kesler", tmp_path / "rows.parquet"
    kesler(capsys, *command, "--id", "ticket", "--output", tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet")
    assert (found["id"].to_pylist(), found["label"].to_pylist()) == ([7, 8], [10, 20])
    assert found.schema.field("label").type == found.schema.field("id").type == pa.int64()


def test_paths_of_messages_are_in_the_table(capsys, tmp_path):
    for folder, words in (("bills", "pay invoice"), ("team", "lunch today")):
        (tmp_path / "mail" / folder).mkdir(parents=True)
        for i in range(4):
            text = f"Subject: {words}\nDate: Mon, 5 Jan 2026 0{i}:00:00 +0000\n\n{words}\n"
            (tmp_path / "mail" / folder / f"{i}.eml").write_text(text)
    model = tmp_path / "mail.kesler"
    assert kesler(capsys, "learn", model, tmp_path / "mail").code == 0
    table = tmp_path / "answers.csv"
    assert kesler(capsys, "predict", model, tmp_path / "mail", "--output", table).code == 0
    found = pd.read_csv(table)
    assert {Path(path).parent.name for path in found["path"]} == {"bills", "team"}
    assert all(
        Path(p).parent.name == label for p, label in zip(found["path"], found["label"], strict=True)
    )


def test_a_table_is_written_whole_or_not_at_all(capsys, model, tmp_path):
    rows, table = write_jsonl(tmp_path / "rows.jsonl", NEW[:5]), tmp_path / "answers.csv"
    rows.write_text(rows.read_text() + "no json\n")
    refused(kesler(capsys, "predict", model, rows, "--output", table), "line 6")
    assert not table.exists() and not [*tmp_path.glob("*.part")]
    refused(kesler(capsys, "predict", model, rows, "--output", "x.txt"), ".parquet")
    refused(kesler(capsys, "predict", model, rows, "--output", rows), "same file")


def test_whoever_reads_may_go(model, tmp_path):
    many = write_jsonl(tmp_path / "many.jsonl", messages(20_000))
    process = kesler_process("predict", model, many)
    assert process.stdout.readline().strip() in ("spam", "team", "home")
    process.stdout.close()
    assert process.wait() == 141
    assert process.stderr.read() == ""
    process.stderr.close()


def test_standard_input(capsys, model, new):
    expected = kesler(capsys, "predict", model, new).out
    with kesler_process("predict", model, "-", stdin=subprocess.PIPE) as process:
        assert process.communicate(new.read_text()) == (expected, "")


AS_TEXT = {
    "jsonl": lambda words: json.dumps({"text": " ".join(words)}),
    "vw": lambda words: f"| {' '.join(words)}",
}


@pytest.mark.parametrize("options", [[], ["--json-lines"]], ids=["names", "JSON lines"])
@pytest.mark.parametrize("format", AS_TEXT)
def test_each_row_of_a_pipe_is_answered_before_the_next(capsys, tmp_path, format, options):
    path, model = tmp_path / f"rows.{format}", tmp_path / "m"
    {"jsonl": write_jsonl, "vw": write_vw}[format](path, messages(200))
    assert kesler(capsys, "learn", model, path).code == 0
    command = "predict", model, "-", "--format", format, *options
    with kesler_process(*command, stdin=subprocess.PIPE) as process:
        stop = threading.Timer(120, process.kill)  # where an answer waits for further rows
        stop.start()
        for label, words in WORDS.items():
            process.stdin.write(AS_TEXT[format](words[:2]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline().strip()
            assert (json.loads(answer)["label"] if options else answer) == label
        process.stdin.close()
        assert process.wait() == 0
        stop.cancel()


def test_labels_that_the_output_cannot_hold_are_a_sentence(capsys, tmp_path, monkeypatch):
    rows = write_jsonl(tmp_path / "rows.jsonl", [("é", ["a"]), ("é", ["b"])])
    kesler(capsys, "learn", tmp_path / "m", rows)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    with kesler_process("predict", tmp_path / "m", rows) as process:
        out, err = process.communicate()
    assert (process.returncode, out) == (2, "") and "PYTHONIOENCODING=utf-8" in err


def test_unsure_rows_have_an_empty_field(capsys, model, new):
    X, loaded = as_entries(NEW)[0], load(model)
    confidence, predicted = loaded.confidence(X), loaded.predict(X)
    least = float(np.median(confidence))
    lines = kesler(capsys, "predict", model, new, "--min-confidence", least).lines
    expected = [p if c >= least else "" for p, c in zip(predicted, confidence, strict=True)]
    assert lines == expected and "" in lines
    lines = kesler(capsys, "predict", model, new, "--min-confidence", least, "--json-lines").lines
    for line, label, c in zip(lines, expected, confidence.tolist(), strict=True):
        found = json.loads(line)
        assert found["label"] == (label or None)
        assert found["confidence"] == pytest.approx(c, abs=1e-6)


def test_sets_of_classes(capsys, model, new):
    sets = load(model).predict_set(as_entries(NEW)[0], 0.95)
    lines = kesler(capsys, "predict", model, new, "--coverage", "0.95").lines
    assert lines == ["\t".join(map(str, each)) for each in sets]
    lines = kesler(capsys, "predict", model, new, "--coverage", "0.95", "--json-lines").lines
    for line, members in zip(lines, sets, strict=True):
        found = json.loads(line)
        assert found["set"] == [each for each in members if each is not NEW_CLASS]
        assert found["may_be_new"] == (NEW_CLASS in members)


def test_paths_end_where_they_are_sure(capsys, tmp_path):
    reference, taxa, model = (tmp_path / name for name in ("r.fasta", "taxa.tsv", "taxa.kesler"))
    rng = np.random.default_rng(0)
    species = {f"{genus};{s}": rng.choice([*"ACGT"], 80) for genus in "gh" for s in "st"}
    rows = [("".join(species[t]), t) for t in rng.choice([*species], 80)]
    reference.write_text("".join(f">{i}\n{letters}\n" for i, (letters, _) in enumerate(rows)))
    taxa.write_text("".join(f"{i}\t{taxon}\n" for i, (_, taxon) in enumerate(rows)))
    assert kesler(capsys, "learn", model, reference, "--labels", taxa).code == 0
    loaded, reads = load(model), tmp_path / "reads.fasta"
    crossed = [one[:i] + other[i:] for (one, _), (other, _) in pairwise(rows) for i in (10, 40)]
    reads.write_text("".join(f">{i}\n{letters}\n" for i, letters in enumerate(crossed)))
    for options, least, lengths in ((), 0.9, {0, 3}), (("--min-confidence", 0.5), 0.5, {1, 3}):
        command = "predict", model, reads, "--path", ";", *options
        expected = loaded.predict_path([{"sequence": letters} for letters in crossed], least)
        assert {len(each.path) for each in expected} == lengths
        assert kesler(capsys, *command).lines == [each.path for each in expected]
        lines = kesler(capsys, *command, "--json-lines").lines
        for line, each in zip(lines, expected, strict=True):
            assert json.loads(line) == {
                "label": each.path or None,
                "confidence": pytest.approx(each.probability, abs=1e-6),
                "nodes": [
                    {"path": path, "probability": p, "new": each.new[path]}
                    for path, p in each.nodes.items()
                ],
            }
    out = tmp_path / "paths.csv"
    assert kesler(capsys, *command, "--output", out, "--id", "id").code == 0
    frame = pd.read_csv(out, keep_default_na=False)
    assert frame["label"].tolist() == [each.path for each in expected]
    assert json.loads(frame["nodes"][0]) == expected[0].to_list()
    assert kesler(capsys, *command, "--output", out.with_suffix(".parquet")).code == 0
    table = pd.read_parquet(out.with_suffix(".parquet"))
    assert [*table["nodes"][0]] == expected[0].to_list()
    done = kesler(capsys, "predict", model, reads, "--path", "")
    assert done.code == 2 and "give what separates the names" in done.err
    assert kesler(capsys, *command, "-n", "2").code == 2


def test_a_model_without_estimates_has_no_confidence(capsys, new, tmp_path):
    path, rows = tmp_path / "pa.kesler", write_jsonl(tmp_path / "old.jsonl", messages(200))
    learning = "--hypotheses", "multi", "--update", "pa1"
    assert kesler(capsys, "learn", path, rows, *learning).code == 0
    done = kesler(capsys, "predict", path, new, "--min-confidence", "0.5")
    refused(done, "does not estimate its uncertainty")


@pytest.mark.parametrize("share", ["0", "1", "-0.1", "nan", "much"])
@pytest.mark.parametrize("option", ["--coverage", "--min-confidence"])
def test_shares_are_between_0_and_1(capsys, model, new, option, share):
    done = kesler(capsys, "predict", model, new, f"{option}={share}")
    assert done.code == 2 and "share between 0 and 1" in done.err


def test_coverages_begin_at_the_smallest_that_is_tracked(capsys, model, new):
    done = kesler(capsys, "predict", model, new, "--coverage", "0.5")
    assert done.code == 2 and "below 0.8" in done.err


def test_the_median_of_ranks_is_printed(capsys, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    y = np.digitize(X[:, 0] + 0.8 * rng.normal(size=300), [-1.0, 0.0, 1.0])
    path, rows = tmp_path / "ranks.kesler", tmp_path / "rows.npz"
    grades = OnlineOrdinalClassifier().fit(X[:200], y[:200])
    grades.save(path)
    np.savez(rows, X=X[200:], y=y[200:])
    found = kesler(capsys, "predict", path, rows)
    assert (grades.decision_function(X[200:]).argmax(axis=1) != grades.predict(X[200:])).any()
    assert found.lines == [str(each) for each in grades.predict(X[200:])]


@pytest.mark.parametrize("asked", ["--scores", "--coverage 0.9", "--min-confidence 0.9"])
def test_many_classes_are_answered_in_parts(capsys, model, new, tmp_path, monkeypatch, asked):
    """The parts are written one after another, skipped rows between them."""
    lines = new.read_text().splitlines()
    rows = tmp_path / "rows.jsonl"
    rows.write_text("\n".join([*lines[:3], "{", *lines[3:], *lines]))
    out = tmp_path / "answers.csv"
    command = "predict", model, rows, *asked.split(), "--skip-bad", "--max-bad", "1"
    assert kesler(capsys, *command, "--output", out).code == 0
    whole = out.read_text()
    assert len(whole.splitlines()) == 2 * len(lines) + 2
    monkeypatch.setattr("kesler.cli.predict.BLOCK_ENTRIES", 7)  # two rows of three classes
    assert kesler(capsys, *command, "--output", out).code == 0
    assert out.read_text() == whole
