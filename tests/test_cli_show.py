"""kesler show, and --preprocessing of the other commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

import homemade
from commands import as_entries, kesler, messages, refused, write_csv, write_jsonl
from kesler import KeslerError, OnlineClassifier, OnlineMultilabelClassifier, load
from kesler.data import model_file
from kesler.hypotheses import Grouped, PerClass


def test_show_says_what_learn_wrote(capsys, tmp_path):
    rows, model = write_jsonl(tmp_path / "m.jsonl", messages(120)), tmp_path / "m.kesler"
    settings = ("--update", "pa1", "--preprocessing", "idf", "--C", 0.1)
    done = kesler(capsys, "learn", model, rows, *settings)
    assert done.code == 0, done
    learnt = load(model)
    assert learnt.preprocessing_.idf
    shown = kesler(capsys, "show", model)
    assert shown.code == 0 and shown.err == ""
    settings = dict(
        line.split(maxsplit=1) for line in shown.lines if not line.startswith("feature ")
    )
    assert settings["file"] == str(model) and settings["estimator"] == "OnlineClassifier"
    assert settings["bytes"] == f"{model.stat().st_size:,}"
    assert settings["hypotheses"] == (
        "PerClass(), Shared(Frequency(common=0.2, rare=0.02, reward=2.0, penalty=-1.0))"
    )
    assert settings["update"] == "PassiveAggressive(C=0.1, variant=1)"
    n = learnt._learner.n_features
    part = "Counts(damped=True, idf=True, unit=True, information=False)"
    assert settings["preprocessing"] == f"{part}, over 120 rows, {n} features"
    assert (settings["trials"], settings["mistakes"]) == ("120", str(learnt.n_mistakes_))
    assert (settings["features"], settings["classes"]) == (str(n), "3")
    assert settings["labels"].split(", ") == learnt.classes_by_code_.tolist()
    assert f"and {n - 10} more" in shown.out
    assert not {"kernel", "averaged", "costs", "intercept", "sub"} & set(settings)


def test_show_as_json_holds_all_of_it(capsys, tmp_path):
    path = tmp_path / "model"
    X, y = as_entries(messages(40))
    OnlineMultilabelClassifier(preprocessing="counts").fit(X, [[label] for label in y]).save(path)
    found = json.loads(kesler(capsys, "show", path, "--json", "-").out)
    assert found["estimator"] == "OnlineMultilabelClassifier" and found["trials"] == 40
    assert found["features"] == len(found["feature_names"]) and found["intercept"] == 1.0
    assert found["classes"] == len(found["labels"]) == 3
    assert found["preprocessing"] == {
        "part": "Counts(damped=True, idf=False, unit=True, information=False)",
        "rows": 40.0,
        "features": 0,
    }


def test_show_needs_no_part_of_the_users_own(capsys, tmp_path):
    path, X = tmp_path / "model", np.eye(4)
    parts = [PerClass(homemade.damped), Grouped(homemade.sets_of)]
    OnlineClassifier(parts, update=homemade.part_way, averaged=True).fit(X, range(4)).save(path)
    shown = kesler(capsys, "show", path)
    assert "PerClass(homemade.damped(" in shown.out and "Grouped()" in shown.out
    assert "homemade.part_way(" in shown.out and "preprocessing" not in shown.out
    OnlineClassifier("multi", kernel="rbf", sigma=2.0).fit(X, range(4)).save(path)
    assert "RBF(sigma=2.0)" in kesler(capsys, "show", path).out


def test_a_half_life_is_learnt_shown_and_saved(capsys, tmp_path):
    rows, model = write_jsonl(tmp_path / "m.jsonl", messages(120)), tmp_path / "m.kesler"
    asked = ("learn", model, rows, "--preprocessing", "idf", "--half-life")
    refused(kesler(capsys, *asked, 0), "--half-life 0.0 must be a finite number of rows")
    assert kesler(capsys, *asked, 20).code == 0
    assert load(model).half_life == 20
    settings = dict(line.split(maxsplit=1) for line in kesler(capsys, "show", model).lines)
    assert settings["half"].split() == ["life", "20", "rows"]
    stored = (1 - 2**-6) / (1 - 2 ** (-1 / 20))  # of 120 rows, six half-lives
    assert f"over {stored:,.10g}"[:12] in settings["preprocessing"]
    again = ("learn", model, rows, "--resume", "--half-life")
    refused(kesler(capsys, *again, 30), "half")
    assert kesler(capsys, *again, 20).code == 0


@pytest.mark.parametrize("flag", [[], ["--json", "-"]])
def test_what_is_no_model_is_refused(capsys, tmp_path, flag):
    refused(kesler(capsys, "show", tmp_path / "none", *flag), "there is no such model file")
    (tmp_path / "text").write_text("no model")
    refused(kesler(capsys, "show", tmp_path / "text", *flag), "not a model file")
    assert kesler(capsys, "show").code == 2


def test_compare_conditions_rows(capsys, tmp_path):
    rows = write_csv(tmp_path / "t.csv", 300)
    read = (rows, "--label", "signs", "--methods", "multi", "--json", tmp_path / "out.json")
    found = {}
    for name in ("none", "scale", "z-scores"):
        assert kesler(capsys, "compare", *read, "--preprocessing", name).code == 0
        found[name] = json.loads((tmp_path / "out.json").read_text())["table"]
    for lines in found.values():
        for line in lines:
            line.pop("rows_per_second", None)
    assert found["scale"] == found["z-scores"] != found["none"]


def test_preprocessings_that_are_none_are_refused(capsys, tmp_path):
    rows, model = write_jsonl(tmp_path / "m.jsonl", messages(20)), tmp_path / "m.kesler"
    wrong = ("--preprocessing", "tfidf")
    refused(kesler(capsys, "compare", rows, *wrong), "tfidf", "scale, counts")
    refused(kesler(capsys, "learn", model, rows, "--preprocessing", "z-scores"), "sparse")
    assert not model.exists()


def test_a_model_goes_on_with_the_preprocessing_that_it_began_with(capsys, tmp_path):
    messages_ = messages(60)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    write_jsonl(first, messages_[:30]), write_jsonl(second, messages_[30:])
    model = tmp_path / "m.kesler"
    kesler(capsys, "learn", model, first, "--preprocessing", "idf")
    again = ("learn", model, second, "--resume")
    refused(kesler(capsys, *again, "--preprocessing", "counts"), "--preprocessing counts")
    assert kesler(capsys, *again).code == 0
    X, y = as_entries(messages_)
    whole = OnlineClassifier(preprocessing="idf").partial_fit(X, y)
    assert load(model).decision_function(X).tolist() == whole.decision_function(X).tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"name": "Nothing"},
        {"parameters": {}},
        {"parameters": {"hypotheses": [{"part": {}}]}},
        {"parameters": {"hypotheses": 3, "update": {"part": {"name": "x"}}}},
        {"parameters": {"update": {"no form": 1}}},
    ],
)
@pytest.mark.parametrize("which", ["settings", "resolved"])
def test_settings_that_are_none_are_refused(capsys, tmp_path, change, which):
    path, X = tmp_path / "model", np.eye(4)
    OnlineClassifier("multi", update="pa1").fit(X, range(4)).save(path)
    arrays, metadata = model_file.load(path)
    model_file.save(path, arrays, metadata | {which: metadata[which] | change})
    shown = kesler(capsys, "show", path)
    assert shown.code == 0 or shown.err.startswith("kesler: ")
    if which == "resolved" or change != {"parameters": {}}:
        with pytest.raises(KeslerError):
            load(path)


def test_settings_that_are_nested_deeply_are_refused(capsys, tmp_path):
    path, X, nested = tmp_path / "model", np.eye(4), 1.0
    OnlineClassifier("multi", update="pa1").fit(X, range(4)).save(path)
    arrays, metadata = model_file.load(path)
    for _ in range(400):
        nested = {"tuple": [nested]}
    metadata["resolved"]["parameters"]["costs"] = nested
    model_file.save(path, arrays, metadata)
    with pytest.raises(KeslerError):
        load(path)
