"""The settings of the table as options: the model that is learnt is that of Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from commands import as_entries, kesler, messages, refused, write_csv, write_jsonl
from kesler import OnlineClassifier, load
from kesler.settings.table import SETTINGS

ROWS = messages(120)
GIVEN: list[tuple[list[str], dict[str, Any]]] = [
    (["--intercept", "2.5"], {"intercept": 2.5}),
    (["--uncertainty", "false"], {"uncertainty": False}),
    (["--uncertainty", "true", "--update", "pa1"], {"uncertainty": True, "update": "pa1"}),
    (["--update", "arow", "--r", "2"], {"update": "arow", "r": 2.0}),
    (["--update", "scw1", "--C", "0.5", "--eta", "0.8"], {"update": "scw1", "C": 0.5, "eta": 0.8}),
    (["--preprocessing", "none"], {"preprocessing": None}),
    (["--on-new-class", "learn"], {"on_new_class": "learn"}),
    (["--epochs", "3", "--update", "pa1"], {"epochs": 3, "update": "pa1"}),
    (["--tree", "-", "--update", "pa1"], {"tree": "-", "update": "pa1"}),
    (["--sigma", "auto", "--half-life", "50"], {"half_life": 50.0}),
    (["--feature-map", "contrast"], {"feature_map": "contrast"}),
]


@pytest.mark.parametrize(("options", "settings"), GIVEN, ids=lambda each: str(each)[:40])
def test_a_model_of_the_command_line_is_that_of_python(capsys, tmp_path, options, settings):
    rows, path = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "model"
    done = kesler(capsys, "learn", path, rows, *options)
    assert done.code == 0, done
    found, (X, y) = load(path), as_entries(ROWS)
    given = OnlineClassifier(**settings)
    for _ in range(settings.get("epochs", 1)):
        given.partial_fit(X, y)
    assert found.get_params(deep=False) == given.get_params(deep=False)
    assert found.n_trials_ == given.n_trials_ == 120 * settings.get("epochs", 1)
    np.testing.assert_array_equal(found.decision_function(X), given.decision_function(X))


def test_costs_are_read_from_a_file(capsys, tmp_path):
    rows, path = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "model"
    labels = sorted({label for label, _ in ROWS})
    file = tmp_path / "costs.csv"
    file.write_text(f'{labels[0]},{labels[1]},4\n\n"{labels[1]}", {labels[2]} ,0.5\n')
    asked = ("learn", path, rows, "--update", "pa1", "--costs", file)
    assert kesler(capsys, *asked).code == 0
    costs = {(labels[0], labels[1]): 4.0, (labels[1], labels[2]): 0.5}
    found, (X, y) = load(path), as_entries(ROWS)
    assert found.costs == costs
    given = OnlineClassifier(update="pa1", costs=costs).partial_fit(X, y)
    np.testing.assert_array_equal(found.decision_function(X), given.decision_function(X))
    assert kesler(capsys, *asked, "--resume").code == 0
    file.write_text(f"{labels[0]},{labels[1]},5\n")
    refused(kesler(capsys, *asked, "--resume"), "was not learnt with --costs")


def test_a_tree_is_read_from_a_file(capsys, tmp_path):
    rows, path = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "model"
    labels = sorted({label for label, _ in ROWS})
    file = tmp_path / "tree.csv"
    file.write_text(
        "".join(f"{label},{'one' if i else 'other'}\n" for i, label in enumerate(labels))
    )
    assert kesler(capsys, "learn", path, rows, "--update", "pa1", "--tree", file).code == 0
    parents = {label: "one" if i else "other" for i, label in enumerate(labels)}
    assert load(path).tree == parents


@pytest.mark.parametrize(
    ("option", "text", "words"),
    [
        ("--costs", "spam,work\n", "line 1: 2 fields in place of RIGHT,WRONG,COST"),
        ("--costs", "spam,work,2\nspam,home,much\n", "line 2: 'much' is no number"),
        ("--tree", "spam,junk\nspam,mail\n", "line 2: 'spam' has the parent 'junk' already"),
        ("--tree", "spam\n", "line 1: 1 fields in place of CHILD,PARENT"),
    ],
)
def test_files_of_classes_that_are_none_are_refused(capsys, tmp_path, option, text, words):
    rows, file = write_jsonl(tmp_path / "rows.jsonl", ROWS), tmp_path / "classes.csv"
    file.write_text(text)
    asked = ("learn", tmp_path / "model", rows, "--update", "pa1", option, file)
    refused(kesler(capsys, *asked), words)


def test_a_file_of_costs_that_is_not_there_is_refused(capsys, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    asked = ("learn", tmp_path / "model", rows, "--update", "pa1", "--costs", "none.csv")
    refused(kesler(capsys, *asked), "none.csv", "cannot be read")


def test_rows_of_measurements_are_learnt_again(capsys, tmp_path):
    table, path = write_csv(tmp_path / "rows.csv", 60), tmp_path / "model"
    asked = ("learn", path, table, "--label", "signs", "--replay", "2")
    assert kesler(capsys, *asked).code == 0
    shown = kesler(capsys, "show", path).out
    assert "replay=2" in shown and "Replay(n_rows=2" in shown


def test_standard_input_is_read_once(capsys, tmp_path, monkeypatch):
    import io

    text = write_jsonl(tmp_path / "rows.jsonl", ROWS).read_text()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    asked = ("learn", tmp_path / "model", "-", "--epochs", "2")
    refused(kesler(capsys, *asked), "standard input can be read once")


def test_a_parameter_that_a_rule_lacks_is_refused_as_an_option(capsys, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    asked = ("learn", tmp_path / "model", rows, "--update", "perceptron")
    for name in ("C", "eta", "delta", "r"):
        refused(kesler(capsys, *asked, SETTINGS[name].option, "0.5"), SETTINGS[name].option)
