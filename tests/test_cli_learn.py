"""kesler learn: however often it is stopped, the model is that of one run through all rows."""

import json
import os
import re
import signal
import time

import numpy as np
import pytest

from commands import (
    as_entries,
    kesler,
    kesler_process,
    messages,
    refused,
    write_csv,
    write_jsonl,
    write_svmlight,
    write_vw,
)
from kesler import OnlineClassifier, load
from kesler.cli.learn import _of_first_rows
from kesler.evaluation.comparison import Comparison
from kesler.evaluation.tables import Piece, Table
from kesler.online.blocks import learn_rows
from kesler.updates import SimProj
from streams import learnt

ROWS = messages(150)

# A file in each way of identifying features, and how it is read.
INPUTS = {
    "named": (lambda folder: write_jsonl(folder / "rows.jsonl", ROWS), ()),
    "enlarged": (lambda folder: write_vw(folder / "rows.vw", ROWS), ()),
    "positions": (lambda folder: write_svmlight(folder / "rows.svm", 150), ()),
    "columns": (lambda folder: write_csv(folder / "rows.csv", 150), ("--label", "signs")),
    "shuffled": (lambda folder: write_vw(folder / "rows.vw", ROWS), ("--shuffle", "3")),
}
inputs = pytest.mark.parametrize("kind", INPUTS)


def state(path):
    """All that a model file holds."""
    return learnt(load(path)), load(path).notes_


def whole(capsys, folder, kind):
    """Return INPUT, its options, and what an uninterrupted run makes of it."""
    write, options = INPUTS[kind]
    rows = write(folder)
    assert kesler(capsys, "learn", folder / "whole", rows, *options).code == 0
    return rows, options, state(folder / "whole")


def test_the_model_is_the_estimators(capsys, tmp_path):
    rows, path = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "model"
    options = (
        "--hypotheses",
        "single",
        "--update",
        "simproj",
        "--C",
        "0.5",
        "--feature-map",
        "product",
    )
    done = kesler(capsys, "learn", path, rows, *options)
    model = OnlineClassifier("single", "product", SimProj(C=0.5)).fit(*as_entries(ROWS))
    assert learnt(load(path)) == learnt(model)
    assert done.lines[-1] == f"model: {path} (150 trials, 3 classes)"
    assert done.lines[-3].split()[:3] == ["single", "150", str(model.n_mistakes_)]


def test_the_account(capsys, tmp_path):
    rows, path = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "run.json"
    kesler(capsys, "learn", tmp_path / "model", rows, "--json", path)
    run = json.loads(path.read_text("utf-8"))
    assert (run["model"], run["rows"]) == (str(tmp_path / "model"), 150)
    assert list(run["methods"]) == ["default"]


@inputs
@pytest.mark.parametrize("every", ["1", "7", "64", "150", "1000"])
def test_checkpoints_change_nothing(capsys, tmp_path, kind, every):
    rows, options, expected = whole(capsys, tmp_path, kind)
    path = tmp_path / "model"
    done = kesler(capsys, "learn", path, rows, *options, "--checkpoint", every)
    assert done.code == 0 and state(path) == expected


@inputs
@pytest.mark.parametrize("n_pieces, stored", [(0, 0), (5, 0), (7, 20), (8, 40), (9, 60)])
def test_a_stopped_run_goes_on_as_if_never_stopped(
    capsys, tmp_path, monkeypatch, kind, n_pieces, stored
):
    rows, options, expected = whole(capsys, tmp_path, kind)
    path = tmp_path / "model"
    command = ("learn", path, rows, *options, "--checkpoint", "20")
    with monkeypatch.context() as patch:
        interrupt_after(patch, n_pieces)  # they end at rows 1, 2, 4, 8, 16, 20, 32, 40, 60
        done = kesler(capsys, *command)
    assert done.code == 130
    if not stored:
        assert done.err == "kesler: stopped; nothing was written\n" and not path.exists()
        return
    assert done.err == (
        f"kesler: stopped; {path} has learnt {stored} rows: continue with --resume\n"
    )
    assert load(path).n_trials_ == stored
    assert kesler(capsys, *command, "--resume").code == 0
    assert state(path) == expected


def interrupt_after(patch, n_pieces):
    """Press Ctrl-C while a piece of rows is learnt."""
    calls = iter(range(n_pieces))

    def interrupted(*arguments, **options):
        if next(calls, None) is None:
            raise KeyboardInterrupt
        return learn_rows(*arguments, **options)

    patch.setattr("kesler.evaluation.methods.learn_rows", interrupted)


def test_a_killed_process_goes_on_as_if_never_killed(capsys, tmp_path):
    rows = write_vw(tmp_path / "rows.vw", messages(60_000))
    killed, path = tmp_path / "killed", tmp_path / "whole"
    command = ("learn", killed, rows, "--checkpoint", "1500")
    process = kesler_process(*command)
    while process.poll() is None and not killed.exists():
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    notes = load(killed).notes_["learning"]
    assert process.returncode == -signal.SIGKILL and not notes["finished"]
    assert 0 < notes["n_rows"] < 60_000 and notes["n_rows"] % 1500 == 0
    assert kesler(capsys, *command, "--resume").code == 0
    assert kesler(capsys, "learn", path, rows).code == 0
    assert state(killed) == state(path)


def test_a_bad_row_leaves_the_last_checkpoint(capsys, tmp_path):
    rows, path = write_vw(tmp_path / "rows.vw", messages(1500)), tmp_path / "model"
    good = rows.read_text()
    lines = good.splitlines(keepends=True)
    rows.write_text("".join([*lines[:1400], "no bar\n", *lines[1400:]]))
    command = ("learn", path, rows, "--checkpoint", "500")
    refused(kesler(capsys, *command), "line 1401", "--skip-bad")
    assert load(path).notes_["learning"]["n_rows"] == 1000
    done = kesler(capsys, *command, "--resume", "--skip-bad")
    assert done.code == 0 and "500 rows" in done.out and "1 bad row skipped" in done.out
    rows.write_text(good)
    kesler(capsys, "learn", tmp_path / "whole", rows)
    assert state(path)[0] == state(tmp_path / "whole")[0]


@inputs
@pytest.mark.parametrize("finished", [True, False])
def test_resuming_after_the_last_row_does_nothing_and_says_so(capsys, tmp_path, kind, finished):
    """Also where a run was killed after its last checkpoint, which held every row."""
    rows, options, _ = whole(capsys, tmp_path, kind)
    path = tmp_path / "whole"
    before = path.read_bytes()
    if not finished:
        load(path).save(path, learning={**load(path).notes_["learning"], "finished": False})
    done = kesler(capsys, "learn", path, rows, *options, "--resume")
    assert (done.code, done.out) == (
        0,
        f"model: {path} has learnt all 150 rows of {rows}: nothing was learnt\n",
    )
    assert path.read_bytes() == before


def test_a_file_that_has_grown_is_learnt_from_where_it_ended(capsys, tmp_path):
    rows, path = write_vw(tmp_path / "rows.vw", ROWS[:70]), tmp_path / "model"
    command = ("learn", path, rows, "--resume")
    kesler(capsys, *command[:-1])
    write_vw(rows, ROWS)
    done = kesler(capsys, *command)
    assert done.code == 0 and load(path).notes_["learning"]["n_rows"] == 150
    kesler(capsys, "learn", tmp_path / "whole", rows)
    assert state(path)[0] == state(tmp_path / "whole")[0]
    shuffled = ("--shuffle", "1")
    kesler(capsys, "learn", tmp_path / "shuffled", rows, *shuffled)
    write_vw(rows, ROWS + ROWS[:9])
    done = kesler(capsys, "learn", tmp_path / "shuffled", rows, *shuffled, "--resume")
    refused(done, "has 159 rows", "has learnt 150 in another order")


def test_a_folder_is_learnt_anew_only_if_its_files_have_changed(capsys, tmp_path):
    folder, path = tmp_path / "mail", tmp_path / "model"
    for name in ("in/1", "in/2", "out/1", "out/2"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"Subject: {name}\n\nwords of {name[:-2]}\n")
    command = ("learn", path, folder, "--resume")
    kesler(capsys, *command[:-1])
    assert "nothing was learnt" in kesler(capsys, *command).out
    assert load(path).n_trials_ == 4
    (folder / "in/0").write_text("Subject: a new one\n\nwords of in\n")
    assert kesler(capsys, *command).code == 0
    assert load(path).n_trials_ == 9


def test_a_new_file_of_the_same_name_is_learnt_from_its_start(capsys, tmp_path):
    rows, path = write_vw(tmp_path / "rows.vw", ROWS[:70]), tmp_path / "model"
    command = ("learn", path, rows, "--resume")
    kesler(capsys, *command[:-1])
    write_vw(rows, ROWS[70:])
    assert kesler(capsys, *command).code == 0
    kesler(capsys, "learn", tmp_path / "both", write_vw(tmp_path / "both.vw", ROWS))
    assert state(path)[0] == state(tmp_path / "both")[0]


def test_further_rows_from_another_file(capsys, tmp_path):
    both = write_jsonl(tmp_path / "both.jsonl", ROWS)
    first = write_jsonl(tmp_path / "first.jsonl", ROWS[:70])
    second = write_jsonl(tmp_path / "second.jsonl", ROWS[70:])
    kesler(capsys, "learn", tmp_path / "both", both)
    kesler(capsys, "learn", tmp_path / "model", first)
    assert kesler(capsys, "learn", tmp_path / "model", second, "--resume").code == 0
    assert state(tmp_path / "model")[0] == state(tmp_path / "both")[0]


def test_a_model_made_elsewhere_goes_on_and_keeps_its_notes(capsys, tmp_path):
    model, path = OnlineClassifier().fit(*as_entries(ROWS[:70])), tmp_path / "model"
    model.save(path, owner="me")
    rows = write_jsonl(tmp_path / "rows.jsonl", ROWS[70:])
    assert kesler(capsys, "learn", path, rows, "--resume").code == 0
    assert learnt(load(path)) == learnt(model.partial_fit(*as_entries(ROWS[70:])))
    assert load(path).notes_["owner"] == "me"


def test_a_table_is_learnt_as_a_data_frame_is(capsys, tmp_path):
    table, path = write_csv(tmp_path / "rows.csv", 50), tmp_path / "model"
    kesler(capsys, "learn", path, table, "--label", "signs")
    model = load(path)
    assert model.n_features_in_ == 3
    assert model.feature_names_in_.tolist() == ["one", "two", "three"]
    assert model.predict_one({"two": -1.0, "one": 1.0, "three": 0.0}) in model.classes_


def test_the_error_on_known_classes_is_named_where_most_rows_are_the_first_of_theirs(
    capsys, tmp_path
):
    rows = [(f"class {i}", ["all", f"word{i}"]) for i in range(6)]
    path = write_jsonl(tmp_path / "rows.jsonl", [*rows, *rows[:2]])
    done = kesler(capsys, "learn", tmp_path / "model", path, "--update", "pa1")
    n_mistakes = load(tmp_path / "model").n_mistakes_
    assert "first rows of classes: 6 of 8, which are no mistakes; of the other 2" in done.out
    assert done.out.split("in %: ")[1].split("\n")[0].endswith(f"{50 * n_mistakes:.2f}")
    path = write_jsonl(tmp_path / "more.jsonl", [*rows, *rows, *rows])
    done = kesler(capsys, "learn", tmp_path / "another", path, "--update", "pa1")
    assert "first rows" not in done.out


@pytest.fixture
def finished(capsys, tmp_path):
    """A model learnt from rows.jsonl, with its bytes."""
    rows, path = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "model"
    assert kesler(capsys, "learn", path, rows, "--update", "pa1").code == 0
    return rows, path, path.read_bytes()


def test_a_column_of_texts_is_read_by_words_whatever_its_name(capsys, tmp_path):
    rows = ["card was lost,cards", "transfer is pending,payments", "my card was stolen,cards"]
    rows += ["a transfer was sent,payments", "lost my card,cards", "pending transfer,payments"]
    models = []
    for name in ("text", "body"):
        path = tmp_path / f"{name}.csv"
        path.write_text("\n".join([f"{name},topic", *rows]) + "\n")
        model = tmp_path / f"{name}.kesler"
        kesler(capsys, "learn", model, path, "--label", "topic")
        models.append(load(model))
    names = [next(iter(model.schema_)).name for model in models]
    assert names == ["text", "body"]
    asked = zip(models, names, strict=True)
    one, other = (model.predict_proba_one({name: "card"}) for model, name in asked)
    assert one == other


def test_a_model_is_never_overwritten(capsys, finished):
    rows, path, before = finished
    refused(kesler(capsys, "learn", path, rows), "exists already", "--resume")
    assert path.read_bytes() == before


def test_there_must_be_a_model_to_resume(capsys, finished):
    rows, path, _ = finished
    done = kesler(capsys, "learn", path.with_name("none"), rows, "--resume")
    refused(done, "there is no such model file")


@pytest.mark.parametrize(
    "option",
    [("--update", "pa2"), ("--C", "0.5"), ("--feature-map", "product"), ("--hypotheses", "multi")],
)
def test_a_model_goes_on_with_its_own_method(capsys, finished, option):
    rows, path, before = finished
    command = ("learn", path, rows, "--resume")
    refused(kesler(capsys, *command, *option), "was not learnt with " + " ".join(option))
    assert path.read_bytes() == before
    assert kesler(capsys, *command, "--update", "pa1", "--C", "1").code == 0


@pytest.mark.parametrize("other", [("other.jsonl",), ("rows.jsonl", "--shuffle", "1")])
def test_a_stopped_run_goes_on_with_its_own_input(capsys, finished, tmp_path, other):
    rows, path, _ = finished
    load(path).save(path, learning={**load(path).notes_["learning"], "finished": False})
    before = path.read_bytes()
    write_jsonl(tmp_path / "other.jsonl", ROWS)
    done = kesler(capsys, "learn", path, tmp_path / other[0], *other[1:], "--resume")
    refused(done, "stopped after 150 rows of rows.jsonl")
    assert path.read_bytes() == before
    assert kesler(capsys, "learn", path, rows, "--resume").code == 0
    assert state(path)[1]["learning"]["finished"]


def test_rows_of_another_kind_are_refused(capsys, finished, tmp_path):
    _, path, before = finished
    rows = write_svmlight(tmp_path / "rows.svm", 5)
    refused(kesler(capsys, "learn", path, rows, "--resume"), "positions")
    assert path.read_bytes() == before


def test_rows_of_another_width_are_refused(capsys, tmp_path):
    path = tmp_path / "model"
    kesler(capsys, "learn", path, write_csv(tmp_path / "rows.csv", 50), "--label=signs")
    before = path.read_bytes()
    wide = tmp_path / "wide.csv"
    wide.write_text("one,two,three,four,signs\n1,2,3,4,++\n")
    refused(kesler(capsys, "learn", path, wide, "--resume"), "4 features", "expects 3")
    np.savez(tmp_path / "wide.npz", X=np.ones((2, 4)), y=np.array(["a", "b"]))
    done = kesler(capsys, "learn", path, tmp_path / "wide.npz", "--resume")
    refused(done)
    assert path.read_bytes() == before


def test_rows_of_no_weight_make_no_model(capsys, tmp_path):
    rows = tmp_path / "rows.vw"
    rows.write_text("a 0 | x\nb 0 | y\n")
    done = kesler(capsys, "learn", tmp_path / "model", rows, "--checkpoint", "1")
    refused(done, "no row of weight above 0")
    assert not (tmp_path / "model").exists()
    refused(kesler(capsys, "compare", rows), "no row of weight above 0")


def test_a_line_that_is_too_long_is_refused(capsys, tmp_path):
    path = tmp_path / "rows.vw"
    path.write_text("1 | a\n2 | " + "w" * 300_000 + "\n")
    command = ("learn", tmp_path / "model", path)
    refused(kesler(capsys, *command, "--max-line", "262144"), "line 2", "--max-line")
    assert kesler(capsys, *command).code == 0


def test_a_model_that_did_not_learn_its_first_rows_again_gives_no_such_reason():
    """Two models of as many rows and of other mistakes, in place of a cause that is not known."""
    rows = [{"size": i % 5, "note": "in the office " * 9} for i in range(60)]
    run, model = (OnlineClassifier(update="pa1") for _ in range(2))
    comparison = Comparison({"run": run})
    assert [*comparison.run([Piece(Table.of(rows, [*"ab"] * 30), 0, 60)])]
    model.partial_fit(rows, ["a"] * 60)
    assert run.n_trials_ == model.n_trials_ and run.n_mistakes_ != model.n_mistakes_
    assert _of_first_rows(model, comparison) == ""


def test_the_mistakes_of_a_model_that_learnt_its_first_rows_again_are_said(tmp_path, capsys):
    """The kinds of the columns change on the way; the model is that of all rows at once."""
    rng, notes = np.random.default_rng(8), ["blue pen", "red ink", "a long note on pens"]
    rows = []
    for i in range(60):
        k = int(rng.integers(3))
        note = notes[k] if i < 20 else f"{notes[k]} {i}"  # a category at first, then a text
        size, label = int(rng.integers(9)), "abc"[k if rng.random() < 0.7 else 0]
        rows.append({"note": note, "size": size, "label": label})
    path, model = tmp_path / "rows.jsonl", tmp_path / "model.kesler"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = kesler(capsys, "learn", model, path, "--update", "pa1")
    found = re.search(r"^mistakes: (\d+) on the way, .*; (\d+) of the model", said.out, re.M)
    (in_table,) = re.findall(r"^  \S+ +60 +(\d+) ", said.out, re.M)
    shown = re.search(r"^mistakes +(\d+)$", kesler(capsys, "show", model).out, re.M)
    labels = [row.pop("label") for row in rows]
    at_once = OnlineClassifier(update="pa1").partial_fit(rows, labels)
    assert found[1] == in_table != found[2] == shown[1] == str(at_once.n_mistakes_)
    again = tmp_path / "again.kesler"
    named = kesler(capsys, "learn", again, path, "--update", "pa1", "--text", "note")
    assert "mistakes:" not in named.out
