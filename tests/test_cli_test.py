"""kesler test: the report on rows that the model does not learn from."""

import json
import subprocess

import numpy as np
import pytest
from sklearn.metrics import top_k_accuracy_score

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
from kesler import OnlineClassifier, OnlineOrdinalClassifier, load
from kesler.cli import test as command
from kesler.datasets import load as load_stream
from kesler.datasets import load_pendigits

NEW = messages(300, seed=5)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("test")


@pytest.fixture(scope="module")
def model(folder):
    return learnt_file(folder, messages(60))


@pytest.fixture
def new(tmp_path):
    return write_jsonl(tmp_path / "new.jsonl", NEW)


def report_of(capsys, *arguments):
    done = kesler(capsys, "test", *arguments, "--json", "-")
    assert done.code == 0, done.err
    return json.loads(done.out)


def same_as_python(found, model, X, y, top=10):
    """The report says what the model itself predicts, in a loop over rows."""
    confidence = model.confidence(X).tolist()
    said, p = model.predict(X).tolist(), model.predict_proba(X)
    columns = {label: i for i, label in enumerate(model.classes_.tolist())}
    known = [t for t, label in enumerate(y) if label in columns]
    wrong = [t for t in known if said[t] != y[t]]
    assert (found["n_rows"], found["n_mistakes"]) == (len(y), len(wrong))
    assert found["n_first_seen"] == len(y) - len(known)
    assert found["error"] == len(wrong) / len(known)
    assert found["log_loss"] == pytest.approx(
        -np.mean([np.log(p[t, columns[y[t]]]) for t in known]), rel=1e-5
    )
    sure = sorted((-confidence[t], t + 1) for t in wrong)[:top]
    assert [each["confidence"] for each in found["surely_wrong"]] == pytest.approx(
        [-c for c, _ in sure], rel=1e-5
    )
    for each in found["classes"]:
        own = [t for t in known if y[t] == each["label"]]
        right = sum(said[t] == y[t] for t in own)
        assert each["recall"] == (right / len(own) if own else None)


def test_the_report_is_that_of_the_models_predictions(capsys, model, new):
    X, y = as_entries(NEW)
    found = report_of(capsys, model, new)
    assert not found["learns"] and found["ages"] == []
    same_as_python(found, load(model), X, y)
    text = kesler(capsys, "test", model, new).out
    assert text.startswith(f"300 rows of 3 classes: {found['n_mistakes']} mistakes, an error of ")


def test_labels_unknown_to_the_model_are_counted_apart(capsys, model, tmp_path):
    rows = [("new" if i % 4 == 0 else label, words) for i, (label, words) in enumerate(NEW)]
    path = write_jsonl(tmp_path / "rows.jsonl", rows)
    found = report_of(capsys, model, path)
    same_as_python(found, load(model), *as_entries(rows))
    assert found["n_first_seen"] == 75 == sum(each["first_seen"] for each in found["windows"])
    text = kesler(capsys, "test", model, path).out
    assert "75 rows of classes unknown to the model are counted apart" in text


def test_rows_of_unknown_classes_alone_are_reported(capsys, model, tmp_path):
    path = write_jsonl(tmp_path / "rows.jsonl", [("new", ["lunch"])] * 3)
    found = report_of(capsys, model, path)
    assert found["error"] is None and "none could be right" in found["notes"][0]
    page = tmp_path / "page.html"
    assert kesler(capsys, "test", model, path, "--report", page).code == 0
    assert "none could be right" in page.read_text("utf-8")


WRITTEN = {
    "rows.svm": lambda path, n: write_svmlight(path, n, seed=n),
    "rows.csv": lambda path, n: write_csv(path, n, seed=n),
    "rows.vw": lambda path, n: write_vw(path, messages(n, seed=n)),
    "rows.jsonl": lambda path, n: write_jsonl(path, messages(n, seed=n)),
}
LABELS = {
    "rows.svm": lambda lines: [line.split()[0] for line in lines],
    "rows.csv": lambda lines: [line.split(",")[2] for line in lines[1:]],
    "rows.vw": lambda lines: [line.split()[0] for line in lines],
    "rows.jsonl": lambda lines: [json.loads(line)["label"] for line in lines],
}


@pytest.mark.parametrize("name", WRITTEN)
def test_mistakes_are_those_of_predict_in_each_format(capsys, tmp_path, name):
    old, path = WRITTEN[name](tmp_path / f"old_{name}", 20), WRITTEN[name](tmp_path / name, 80)
    file, page = tmp_path / "m.kesler", tmp_path / "page.html"
    options = ["--label", "signs"] if name == "rows.csv" else []
    learnt = kesler(capsys, "learn", file, old, "--update", "perceptron", *options)
    assert learnt.code == 0
    predicted = kesler(capsys, "predict", file, path).lines
    labels = LABELS[name](path.read_text().splitlines())
    wrong = sum(a != b for a, b in zip(predicted, labels, strict=True))
    assert report_of(capsys, file, path)["n_mistakes"] == wrong
    assert name == "rows.svm" or wrong  # a feature of that is the class
    assert kesler(capsys, "test", file, path, "--report", page).code == 0
    assert ("predicted <strong" in page.read_text("utf-8")) == (wrong > 0)


def test_tables_of_columns(capsys, tmp_path):
    rng = np.random.default_rng(0)
    texts = {"cash": "no cash at all", "card": "the card is gone"}
    rows = [
        {"team": team, "body": f"{texts[team]} {rng.integers(3)}", "hours": int(rng.integers(9))}
        for team in rng.choice(list(texts), 90).tolist()
    ]
    rows[80]["team"] = {"cash": "card", "card": "cash"}[rows[80]["team"]]
    path, file, page = (tmp_path / name for name in ("rows.jsonl", "rows.kesler", "page.html"))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    learnt = kesler(capsys, "learn", file, path, "--label", "team", "--table")
    assert learnt.code == 0, learnt.err
    model = load(file)
    assert model.schema_ is not None
    X = [{name: row[name] for name in ("body", "hours")} for row in rows]
    same_as_python(report_of(capsys, file, path), model, X, [row["team"] for row in rows])
    assert kesler(capsys, "test", file, path, "--report", page).code == 0
    assert f"body: {rows[80]['body']}" in page.read_text("utf-8")


SHORT = ["how do I top up", "my card is lost", "can I top up by card", "what are your fees"]
TOPICS = ["top up", "lost", "top up", "fees"]


@pytest.mark.parametrize("name", ["text.csv", "texts.jsonl", "question.csv"])
def test_a_model_of_short_texts_learnt_in_python_reads_files_as_it_reads_texts(
    capsys, tmp_path, name
):
    model = OnlineClassifier().partial_fit(SHORT * 3, TOPICS * 3)
    model.save(tmp_path / "model.kesler")
    column = name.removesuffix(".csv") if name.endswith("csv") else "text"
    if name.endswith("csv"):
        rows = [f"{text},{topic}" for text, topic in zip(SHORT, TOPICS, strict=True)]
        (tmp_path / name).write_text("\n".join([f"{column},label", *rows]) + "\n")
    else:
        pairs = zip(SHORT, TOPICS, strict=True)
        lines = [json.dumps({"text": text, "label": topic}) for text, topic in pairs]
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    options = ["--label", "label", *(["--text", column] if column != "text" else [])]
    given = ["--scores", "--json-lines", *options]
    done = kesler(capsys, "predict", tmp_path / "model.kesler", tmp_path / name, *given)
    said = [json.loads(line)["scores"] for line in done.lines]
    for scores, row in zip(said, model.decision_function(SHORT), strict=True):
        expected = dict(zip(model.classes_.tolist(), row.tolist(), strict=True))
        assert scores == pytest.approx(expected, rel=1e-5)


def test_a_model_of_a_data_set_of_short_texts_is_tested_on_it(capsys, tmp_path):
    model, source = tmp_path / "model.kesler", "dataset:banking77/stream"
    rows = load_stream(source.removeprefix("dataset:"))
    texts = [each["text"] for each in rows.records[:300]]
    OnlineClassifier(columns={"text": "text"}).fit([{"text": t} for t in texts], rows.y[:300]).save(
        model
    )
    tested = kesler(capsys, "test", model, source)
    assert tested.code == 0 and tested.out.startswith("13,083 rows of 77 classes"), tested
    explained = kesler(capsys, "explain", model, source, "-n", "1", "--features")
    assert explained.code == 0 and "text~" in explained.out
    OnlineClassifier().partial_fit(texts, rows.y[:300]).save(tmp_path / "strings.kesler")
    of_strings = kesler(capsys, "test", tmp_path / "strings.kesler", source)
    assert of_strings.code == 0 and of_strings.out.startswith("13,083 rows of 77 classes")
    assert not of_strings.err


def test_features_that_are_all_unknown_are_said(capsys, tmp_path):
    rows = [f"{text},{topic}" for text, topic in zip(SHORT, TOPICS, strict=True)] * 5
    (tmp_path / "text.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    OnlineClassifier("multi", update="pa1").partial_fit(SHORT, TOPICS).save(tmp_path / "pa.kesler")
    given = [tmp_path / "pa.kesler", tmp_path / "text.csv", "--label", "label"]
    assert "knows none of the features of the first 20 rows" in kesler(capsys, "test", *given).err
    assert not kesler(capsys, "test", *given, "--text", "text").err


def test_a_model_of_short_texts_goes_on_with_a_file_of_them(capsys, tmp_path):
    model = OnlineClassifier().partial_fit(SHORT * 3, TOPICS * 3)
    model.save(tmp_path / "model.kesler")
    rows = ["how do I pay my fees,fees", "I lost my card on a train,lost"]
    (tmp_path / "more.csv").write_text("\n".join(["text,label", *rows]) + "\n")
    given = [tmp_path / "model.kesler", tmp_path / "more.csv", "--label", "label", "--resume"]
    assert kesler(capsys, "learn", *given).code == 0
    for row in rows:
        model.learn_one(*row.split(","))
    learnt = load(tmp_path / "model.kesler")
    assert learnt.predict_proba(SHORT).tolist() == model.predict_proba(SHORT).tolist()


def test_a_model_of_texts_asks_for_the_column_of_texts(capsys, tmp_path):
    OnlineClassifier().partial_fit(SHORT, TOPICS).save(tmp_path / "model.kesler")
    (tmp_path / "rows.csv").write_text("question,label\nhow do I top up,top up\n")
    done = kesler(
        capsys, "test", tmp_path / "model.kesler", tmp_path / "rows.csv", "--label", "label"
    )
    refused(done, "has no column 'text'", "name the column of the texts (--text)")


def test_rows_of_weight_0_are_skipped(capsys, model, tmp_path):
    lines = [f"{y} {int(i % 3 > 0)} | {' '.join(words)}\n" for i, (y, words) in enumerate(NEW)]
    weighted = tmp_path / "weighted.vw"
    weighted.write_text("".join(lines))
    kept = write_vw(tmp_path / "kept.vw", [row for i, row in enumerate(NEW) if i % 3 > 0])
    assert report_of(capsys, model, weighted) == report_of(capsys, model, kept)
    weighted.write_text("team 0 | lunch\n")
    refused(kesler(capsys, "test", model, weighted), "no row of weight above 0")


@pytest.mark.parametrize("sizes", [(1,) * 30, (7, 1, 22), (30,)])
def test_the_split_into_blocks_has_no_effect(model, sizes):
    from kesler.evaluation.reports.report import Report
    from kesler.readers.stream import Block

    learnt = load(model)
    X, y = as_entries(NEW[:30])
    y[::4] = ["new"] * 8  # unknown to the model, so no mistakes
    rows = learnt._input.named_rows(learnt, X, learn=False)
    scoring, start = command.Scoring(learnt, 3), 0
    for size in sizes:
        scoring.score(Block(rows, y)[start : start + size])
        start += size
    report = Report.of(scoring.scored(), 3)
    same_as_python(report.to_dict(), learnt, X, y, top=3)
    assert sorted(scoring.shown(report)) == sorted(each.row for each in report.surely_wrong)
    for row, event in scoring.shown(report).items():
        assert event.items() <= X[row - 1].items()


def test_ranks_are_tested(capsys, tmp_path):
    pens = load_pendigits()
    X, y = pens.X[:120].astype(np.float64), pens.y[:120] % 3
    file, rows = tmp_path / "ranks.kesler", tmp_path / "rows.npz"
    model = OnlineOrdinalClassifier().fit(X, y)
    model.save(file)
    np.savez(rows, X=X, y=y)
    found = report_of(capsys, file, rows)
    assert found["n_mistakes"] == int((model.predict(X) != y).sum())


@pytest.mark.parametrize("uncertainty", [True, False])
def test_top_accuracies_are_those_of_scikit_learn(capsys, tmp_path, uncertainty):
    pens = load_pendigits()
    X, y = pens.X[:600].astype(np.float64), pens.y[:600]
    file, rows = tmp_path / "pens.kesler", tmp_path / "rows.npz"
    model = OnlineClassifier(uncertainty=uncertainty).fit(X[:60], y[:60])
    model.save(file)
    assert len(model.classes_) == 10
    y[100:110] = 11  # unknown to the model, so left out
    np.savez(rows, X=X, y=y)
    kept = y != 11
    p = model.predict_proba(X[kept])
    expected = {k: top_k_accuracy_score(y[kept], p, k=k) for k in (1, 3, 5)}
    assert model.score(X[kept], y[kept]) < expected[3] < expected[5]
    found = report_of(capsys, file, rows)["top_accuracy"]
    assert {each["k"]: each["accuracy"] for each in found} == pytest.approx(expected)
    page = tmp_path / "page.html"
    text = kesler(capsys, "test", file, rows, "--report", page).out
    for k, accuracy in [*expected.items()][1:]:
        assert f"top-{k} accuracy {100 * accuracy:.2f} %" in text.replace("\n  ", " ")
        assert f"<dt>top-{k} accuracy</dt><dd>{100 * accuracy:.2f} %</dd>" in page.read_text(
            "utf-8"
        )


def test_the_model_stays_as_it_is(capsys, model, new):
    before = model.read_bytes()
    report_of(capsys, model, new)
    assert model.read_bytes() == before


def test_standard_input(capsys, model, new):
    expected = kesler(capsys, "test", model, new).out
    with kesler_process("test", model, "-", stdin=subprocess.PIPE) as process:
        assert process.communicate(new.read_text()) == (expected, "")


def test_top_is_the_number_of_rows_listed(capsys, model, new):
    found = report_of(capsys, model, new, "-n", "2")
    assert len(found["surely_wrong"]) == len(found["confusions"]) == 2
    assert kesler(capsys, "test", model, new, "-n", "0").code == 2


def test_bad_rows_are_named_or_skipped(capsys, model, tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", NEW[:5])
    rows.write_text(rows.read_text() + '{"text": 7, "label": "team"}\n')
    refused(kesler(capsys, "test", model, rows), "line 6", "--skip-bad")
    found = report_of(capsys, model, rows, "--max-bad", "0.2")
    assert found["n_rows"] == 5 and "1 bad row" in found["notes"][0]


def test_files_that_cannot_be_written_are_refused_first(capsys, model, new, tmp_path):
    refused(
        kesler(capsys, "test", model, new, "--report", tmp_path / "no" / "page.html"),
        "cannot be written",
    )
    refused(kesler(capsys, "test", model, new, "--report", new), "is the same file as INPUT")
    refused(kesler(capsys, "test", model, new, "--report", model), "is the same file")
    refused(kesler(capsys, "test", tmp_path / "none.kesler", new), "no such model file")


class Explained:
    """A model that can tell why, as `explain_one` of classifiers."""

    def explain_one(self, x, *, label, rival, n):
        return (x, label, rival, n)


def test_explanations_are_those_of_the_prediction_against_the_label():
    from kesler.evaluation.reports.measures import WrongRow

    row = WrongRow(4, "team", "spam", 0.9, 0.1)
    assert command._explained(Explained(), {"cash": 1.0}, row) == ({"cash": 1.0}, "spam", "team", 5)
