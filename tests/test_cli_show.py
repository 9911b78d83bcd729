"""kesler show, and --conditioning of the other commands."""

from __future__ import annotations

import json

import numpy as np
import pytest

import homemade
from commands import as_entries, kesler, messages, refused, write_csv, write_jsonl
from kesler import Grouped, OnlineClassifier, OnlineMultilabelClassifier, PerClass, load


def test_show_says_what_learn_wrote(capsys, tmp_path):
    rows, model = write_jsonl(tmp_path / "m.jsonl", messages(120)), tmp_path / "m.kesler"
    told = ("--update", "pa1", "--conditioning", "idf", "--C", 0.1)
    done = kesler(capsys, "learn", rows, "--model", model, *told)
    assert done.code == 0, done
    learnt = load(model)
    assert learnt.conditioning_.idf
    shown = kesler(capsys, "show", model)
    assert shown.code == 0 and shown.err == ""
    told = dict(line.split(maxsplit=1) for line in shown.lines if not line.startswith("feature "))
    assert told["file"] == str(model) and told["estimator"] == "OnlineClassifier"
    assert told["bytes"] == f"{model.stat().st_size:,}"
    assert told["hypotheses"] == (
        "PerClass(), Shared(Frequency(common=0.2, rare=0.02, reward=2.0, penalty=-1.0))"
    )
    assert told["update"] == "PassiveAggressive(C=0.1, variant=1)"
    n = learnt._machine.n_features
    part = "Counts(damped=True, idf=True, unit=True)"
    assert told["conditioning"] == f"{part}, over 120 rows, {n} features"
    assert (told["trials"], told["mistakes"]) == ("120", str(learnt.n_mistakes_))
    assert (told["features"], told["classes"]) == (str(n), "3")
    assert told["labels"].split(", ") == learnt.classes_by_code_.tolist()
    assert f"and {n - 10} more" in shown.out
    assert not {"kernel", "averaged", "costs", "intercept", "sub"} & set(told)


def test_show_as_json_holds_all_of_it(capsys, tmp_path):
    path = tmp_path / "model"
    X, y = as_entries(messages(40))
    OnlineMultilabelClassifier(conditioning="counts").fit(X, [[label] for label in y]).save(path)
    found = json.loads(kesler(capsys, "show", path, "--json").out)
    assert found["estimator"] == "OnlineMultilabelClassifier" and found["trials"] == 40
    assert found["features"] == len(found["feature_names"]) and found["intercept"] == 1.0
    assert found["classes"] == len(found["labels"]) == 3
    assert found["conditioning"] == {
        "part": "Counts(damped=True, idf=False, unit=True)",
        "rows": 40.0,
        "features": 0,
    }


def test_show_needs_no_part_of_the_users_own(capsys, tmp_path):
    path, X = tmp_path / "model", np.eye(4)
    parts = [PerClass(homemade.damped), Grouped(homemade.sets_of)]
    OnlineClassifier(parts, update=homemade.part_way, averaged=True).fit(X, range(4)).save(path)
    shown = kesler(capsys, "show", path)
    assert "PerClass(homemade.damped(" in shown.out and "Grouped()" in shown.out
    assert "homemade.part_way(" in shown.out and "conditioning" not in shown.out
    OnlineClassifier("multi", kernel="rbf", sigma=2.0).fit(X, range(4)).save(path)
    assert "RBF(sigma=2.0)" in kesler(capsys, "show", path).out


def test_a_half_life_is_learnt_shown_and_kept(capsys, tmp_path):
    rows, model = write_jsonl(tmp_path / "m.jsonl", messages(120)), tmp_path / "m.kesler"
    asked = ("learn", rows, "--model", model, "--conditioning", "idf", "--half-life")
    refused(kesler(capsys, *asked, 0), "--half-life 0.0 must be a finite number of rows")
    assert kesler(capsys, *asked, 20).code == 0
    assert load(model).half_life == 20
    told = dict(line.split(maxsplit=1) for line in kesler(capsys, "show", model).lines)
    assert told["half"].split() == ["life", "20", "rows"]
    kept = (1 - 2**-6) / (1 - 2 ** (-1 / 20))  # of 120 rows, six half-lives
    assert f"over {kept:,.10g}"[:12] in told["conditioning"]
    again = ("learn", rows, "--model", model, "--resume", "--half-life")
    refused(kesler(capsys, *again, 30), "half")
    assert kesler(capsys, *again, 20).code == 0


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_what_is_no_model_is_refused(capsys, tmp_path, flag):
    refused(kesler(capsys, "show", tmp_path / "none", *flag), "there is no such model file")
    (tmp_path / "text").write_text("no model")
    refused(kesler(capsys, "show", tmp_path / "text", *flag), "not a model file")
    assert kesler(capsys, "show").code == 2


def test_compare_conditions_rows(capsys, tmp_path):
    rows = write_csv(tmp_path / "t.csv", 300)
    read = (rows, "--label", "signs", "--methods", "multi", "--json", tmp_path / "out.json")
    found = {}
    for name in ("none", "auto", "z-scores"):
        assert kesler(capsys, "compare", *read, "--conditioning", name).code == 0
        found[name] = json.loads((tmp_path / "out.json").read_text())["table"]
    for lines in found.values():
        for line in lines:
            line.pop("rows_per_second", None)
    assert found["auto"] == found["z-scores"] != found["none"]


def test_conditionings_that_are_none_are_refused(capsys, tmp_path):
    rows, model = write_jsonl(tmp_path / "m.jsonl", messages(20)), tmp_path / "m.kesler"
    wrong = ("--conditioning", "tfidf")
    refused(kesler(capsys, "compare", rows, *wrong), "tfidf", "auto, none, counts")
    refused(kesler(capsys, "learn", rows, "--model", model, "--conditioning", "z-scores"), "sparse")
    assert not model.exists()


def test_a_model_goes_on_with_the_conditioning_that_it_began_with(capsys, tmp_path):
    messages_ = messages(60)
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    write_jsonl(first, messages_[:30]), write_jsonl(second, messages_[30:])
    model = tmp_path / "m.kesler"
    kesler(capsys, "learn", first, "--model", model, "--conditioning", "idf")
    again = ("learn", second, "--model", model, "--resume")
    refused(kesler(capsys, *again, "--conditioning", "counts"), "--conditioning counts")
    assert kesler(capsys, *again).code == 0
    X, y = as_entries(messages_)
    whole = OnlineClassifier(conditioning="idf").fit(X, y)
    assert load(model).decision_function(X).tolist() == whole.decision_function(X).tolist()
