"""kesler explain: a table or a JSON object for each row."""

import json
import subprocess

import pytest

from commands import (
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
from kesler import OnlineMultilabelClassifier, load

NEW = messages(12, seed=5)


@pytest.fixture
def model(tmp_path):
    return learnt_file(tmp_path, messages(200))


@pytest.fixture
def new(tmp_path):
    return write_jsonl(tmp_path / "new.jsonl", NEW)


def test_a_block_for_each_row_is_what_explain_one_prints(capsys, model, new):
    """Words that the model has not seen have no names in the rows of a reader."""
    done = kesler(capsys, "explain", model, new, "-n", 3)
    assert done.code == 0, done.err
    blocks = done.out.strip().split("\n\n")
    known = load(model)
    assert len(blocks) == len(NEW)
    for block, x in zip(blocks, as_entries(NEW)[0], strict=True):
        seen = {name: value for name, value in x.items() if name in known.vocabulary_.indices}
        why = known.explain_one(x, n=3)
        assert block.splitlines()[0] == why.headline
        if seen == x:
            assert block == str(why)


def test_json_lines_hold_all_of_an_explanation(capsys, model, new):
    done = kesler(capsys, "explain", model, new, "--json-lines", "--class", "team", "--rival",
                  "home", "-n", 2)  # fmt: skip
    found = [json.loads(line) for line in done.lines]
    known = load(model)
    for each, x in zip(found, as_entries(NEW)[0], strict=True):
        why = known.explain_one(x, "team", "home", 2)
        assert (each["label"], each["rival"]) == ("team", "home")
        assert each["score"] == why.score and each["margin"] == why.margin
        parts = [*each["contributions"], each["remainder"], each["intercept"]]
        assert sum(part["margin"] for part in parts) == pytest.approx(why.margin, abs=1e-5)
        assert len(each["contributions"]) == 2


@pytest.mark.parametrize("kind", ["csv", "vw", "svm", "table"])
def test_rows_of_every_kind_are_explained(capsys, tmp_path, kind):
    path, more = tmp_path / "m.kesler", ()
    if kind == "csv":
        rows, more = write_csv(tmp_path / "signs.csv", 60), ("--label", "signs")
    elif kind == "vw":
        rows = write_vw(tmp_path / "rows.vw", messages(60))
    elif kind == "svm":
        rows = write_svmlight(tmp_path / "rows.svm", 60)
    else:
        rows, more = write_csv(tmp_path / "table.csv", 60), ("--label", "signs", "--table")
    learnt = kesler(capsys, "learn", path, rows, *more)
    assert learnt.code == 0, learnt.err
    done = kesler(capsys, "explain", path, rows, "-n", 4)
    assert done.code == 0, done.err
    blocks = done.out.strip().split("\n\n")
    assert len(blocks) == 60 and all(": score " in block.splitlines()[0] for block in blocks)
    name = {"csv": "one", "vw": "^now", "svm": "feature ", "table": "one"}[kind]
    assert any(line.startswith(name) for block in blocks for line in block.splitlines())


def test_labels_that_are_numbers_go_by_how_they_are_written(capsys, tmp_path):
    rows, path = write_svmlight(tmp_path / "rows.svm", 60), tmp_path / "m.kesler"
    kesler(capsys, "learn", path, rows)
    labels = load(path).classes_.tolist()
    done = kesler(capsys, "explain", path, rows, "--class", str(labels[1]), "--json-lines")
    assert done.code == 0, done.err
    assert {json.loads(line)["label"] for line in done.lines} == {labels[1]}


def test_ratings_are_explained_by_sub_experts(capsys, tmp_path):
    rows, path = tmp_path / "rows.ldf", tmp_path / "m.kesler"
    spam = "1:0 | filter:0.9 boss:0.1\n2:1 | filter:0.1 boss:1\n\n"
    work = "1:1 | filter:0.2 boss:0.1\n2:0 | filter:0.1 boss:0.9\n\n"
    rows.write_text((spam + work) * 10)
    hypotheses = ("--hypotheses", "sub-experts")
    learnt = kesler(capsys, "learn", path, rows, *hypotheses)
    assert learnt.code == 0, learnt.err
    done = kesler(capsys, "explain", path, rows)
    assert done.code == 0 and "sub-expert ^boss" in done.out


def test_rows_from_a_pipe_are_answered_one_by_one(model):
    with kesler_process("explain", model, "-", "--format", "jsonl", "--json-lines",
                        stdin=subprocess.PIPE) as process:  # fmt: skip
        for words in ("win cash", "lunch agenda"):
            process.stdin.write(json.dumps({"text": words}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["contributions"]
        process.stdin.close()
        assert process.wait() == 0, process.stderr.read()


def test_bad_requests_are_refused(capsys, model, new, tmp_path):
    refused(kesler(capsys, "explain", model, new, "--class", "zoo"), "--class zoo", "spam")
    refused(kesler(capsys, "explain", model, new, "--rival", "zoo"), "--rival zoo", "spam")
    done = kesler(capsys, "explain", model, new, "--class", "spam", "--rival", "spam")
    refused(done, "--rival spam", "name another one")
    assert kesler(capsys, "explain", model, new, "-n", 0).code == 2
    refused(kesler(capsys, "explain", tmp_path / "none.kesler", new), "none.kesler")
    refused(kesler(capsys, "explain", model, tmp_path / "none.jsonl"), "none.jsonl")
    sets = tmp_path / "sets.kesler"
    OnlineMultilabelClassifier().learn_one({"a": 1}, {"x"}).save(sets)
    refused(kesler(capsys, "explain", sets, new), "OnlineMultilabelClassifier")


def test_a_rival_that_is_predicted_is_refused_by_its_row(capsys, model, tmp_path):
    rows = write_jsonl(tmp_path / "spam.jsonl", [("spam", ["win", "cash", "prize"])])
    refused(kesler(capsys, "explain", model, rows, "--rival", "spam"), "spam", "name another one")


def test_bad_rows_are_counted(capsys, model, new):
    with new.open("a") as file:
        file.write("{oops\n")
    n_rows = len(new.read_text().splitlines())
    done = kesler(capsys, "explain", model, new, "--max-bad", "1")
    assert done.code == 0 and f"kesler: skipped 1 of {n_rows} rows of {new}: " in done.err
