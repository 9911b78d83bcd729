"""kesler --text: columns of texts that are named, as if they were the only ones."""

import csv
import io
import json
import sys
from pathlib import Path

import pytest

from commands import kesler
from kesler import OnlineClassifier, load
from kesler.datasets import load as load_stream

SHORT = load_stream("banking77/stream")
N = 400
LETTERS = str.maketrans("0123456789", "bcdfghklmn")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def questions() -> list[dict[str, str]]:
    """Return questions to a bank, with columns of other kinds beside them."""
    pairs = zip(SHORT.records[:N], SHORT.y[:N], strict=True)
    return [
        {"n": i, "question": record["text"], "colour": "red", "label": str(label)}
        for i, (record, label) in enumerate(pairs)
    ]


def write_csv(name: str, names: dict[str, str] | None = None) -> list[dict[str, str]]:
    """Write the questions as CSV, some of whose columns have other names; return the rows."""
    rows = [{(names or {}).get(key, key): each for key, each in row.items()} for row in questions()]
    with open(name, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return rows


def learnt(capsys, source, *options) -> OnlineClassifier:
    """Return the model of a run of ``kesler learn``."""
    Path("a.kesler").unlink(missing_ok=True)
    done = kesler(capsys, "learn", "a.kesler", source, "--label", "label", *options)
    assert done.code == 0, done.err
    return load("a.kesler")


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "-"])
def test_a_named_text_has_the_features_of_one_that_is_inferred(capsys, monkeypatch, name):
    rows, lines = questions(), [json.dumps(row) for row in questions()]
    alone = [{"question": row["question"]} for row in rows]
    expected = OnlineClassifier().partial_fit(alone, [row["label"] for row in rows])
    if name == "rows.csv":
        write_csv(name)
    elif name == "-":
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    else:
        Path(name).write_text("\n".join(lines))
    model = learnt(capsys, name, "--text", "question", *(["--format", "jsonl"] * (name == "-")))
    assert model.schema_["question"] == expected.schema_["question"]
    assert model.schema_["question"].options["chars"]
    assert [each.name for each in model.schema_ if each.kind != "ignore"] == ["question"]
    found = model.decision_function(alone[:20])
    assert found.tolist() == expected.decision_function(alone[:20]).tolist()


def test_several_texts_are_columns_of_their_own(capsys):
    rows = write_csv("rows.csv")
    model = learnt(capsys, "rows.csv", "--text", "question,colour")
    kinds = {each.name: each.kind for each in model.schema_}
    assert kinds == {"n": "ignore", "question": "text", "colour": "text"}
    texts = [{name: row[name] for name in ("question", "colour")} for row in rows]
    expected = OnlineClassifier(columns={"colour": "text"}).partial_fit(
        texts, [r["label"] for r in rows]
    )
    assert model.predict(texts).tolist() == expected.predict(texts).tolist()


def test_texts_may_have_other_names_in_rows_to_predict(capsys):
    write_csv("rows.csv")
    learnt(capsys, "rows.csv", "--text", "question,colour")
    expected = kesler(capsys, "predict", "a.kesler", "rows.csv")
    assert not expected.err and len(expected.lines) == N
    write_csv("new.csv", {"question": "body", "colour": "subject"})
    done = kesler(capsys, "predict", "a.kesler", "new.csv", "--text", "body,subject")
    assert (done.out, done.err) == (expected.out, "")
    tested = kesler(capsys, "test", "a.kesler", "new.csv", "--text", "body,subject")
    assert tested.out == kesler(capsys, "test", "a.kesler", "rows.csv").out
    why = kesler(capsys, "explain", "a.kesler", "new.csv", "--text", "body,subject", "-n", "3")
    assert why.out == kesler(capsys, "explain", "a.kesler", "rows.csv", "-n", "3").out


def test_columns_that_a_file_lacks_are_named(capsys):
    write_csv("rows.csv")
    learnt(capsys, "rows.csv")
    write_csv("new.csv", {"question": "body"})
    done = kesler(capsys, "predict", "a.kesler", "new.csv")
    assert done.code == 0 and len(done.lines) == N
    assert "new.csv lacks 'question', which the model learnt" in done.err
    assert "it has 'n', 'body', 'colour'" in done.err


def test_long_texts_of_json_are_read_with_their_beginnings(capsys):
    lines = [{"body": f"{row['question']} " * 6, "label": row["label"]} for row in questions()]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    model = learnt(capsys, "rows.jsonl", "--text", "body")
    assert model.schema_["body"].options == {"beginning": True}
    assert {"body:card", "body:^card"} <= {*model.vocabulary_.names}


@pytest.mark.parametrize("features", ["words", "characters", "subwords"])
def test_the_features_of_a_text_are_chosen(capsys, features):
    rows = write_csv("rows.csv")
    model = learnt(capsys, "rows.csv", "--text", f"question:{features}")
    given = {"question": {"kind": "text", "features": features}}
    alone = [{"question": row["question"]} for row in rows]
    expected = OnlineClassifier(columns=given).partial_fit(alone, [row["label"] for row in rows])
    assert model.columns == {**given, "*": "ignore"}
    assert model.predict(alone).tolist() == expected.predict(alone).tolist()
    runs = [name for name in model.vocabulary_.names if name.startswith("question~")]
    words = [name for name in model.vocabulary_.names if name.startswith("question:")]
    assert (bool(words), bool(runs)) == (features != "characters", features != "words")
    assert len(kesler(capsys, "predict", "a.kesler", "rows.csv").lines) == N
    done = kesler(capsys, "learn", "b.kesler", "rows.csv", "--label", "label",
                  "--text", "question:letters")  # fmt: skip
    assert done.code == 2 and "question:letters" in done.err


def test_names_that_are_the_only_column_are_learnt_by_their_letters(capsys):
    names = [
        f"{'BKLMRST'[i % 7]}{'aeiou'[i // 7 % 5]}{i:03}".translate(LETTERS) for i in range(210)
    ]
    endings = {"ski": "PL", "sen": "DK", "ini": "IT"}
    rows = [
        (f"{name}{end}", endings[end]) for name, end in zip(names, [*endings] * 70, strict=True)
    ]
    Path("names.csv").write_text("\n".join(["name,label", *(f"{n},{c}" for n, c in rows)]))
    lines = [json.dumps({"text": name, "label": country}) for name, country in rows]
    Path("names.jsonl").write_text("\n".join(lines))
    for source in ("names.csv", "names.jsonl"):
        model = learnt(capsys, source)
        done = kesler(capsys, "compare", source, "--label", "label", "--methods", "default",
                      "--json", "result.json")  # fmt: skip
        assert done.code == 0
        (found,) = json.loads(Path("result.json").read_text())["methods"].values()
        assert found["mistakes"] < 30, source
        column = model.schema_.names[0]
        assert model.predict([{column: "Zilchosen"}]).tolist() == ["DK"]


def test_nothing_is_left_out_of_an_inferred_table(capsys):
    lines = [{**row, "text": row.pop("question")} for row in questions()]
    Path("rows.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = kesler(capsys, "learn", "a.kesler", "rows.jsonl")
    assert done.code == 0 and "left out" not in done.out
    kinds = {each.name: each.kind for each in load("a.kesler").schema_}
    assert kinds["text"] == "text" and kinds["colour"] == "category"


def test_lines_of_fasttext_are_texts_however_few_of_them_differ(capsys, monkeypatch):
    lines = ["__label__billing the invoice is wrong", "__label__support I cannot log in"] * 30
    Path("train.txt").write_text("\n".join(lines))
    from_file = learnt(capsys, "train.txt", "--label", "__label__")
    assert [(each.name, each.kind) for each in from_file.schema_] == [("text", "text")]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\n".join(lines).encode())))
    piped = learnt(capsys, "-", "--label", "__label__")
    assert piped.schema_["text"] == from_file.schema_["text"]


def test_every_line_of_fasttext_is_predicted(capsys, monkeypatch):
    lines = ["__label__billing the invoice is wrong", "__label__support I cannot log in"] * 30
    Path("train.txt").write_text("\n".join(lines))
    assert kesler(capsys, "learn", "a.kesler", "train.txt").code == 0
    asked = ["__label__billing the invoice", "", "__label__support", " \t", "I cannot log in", ""]
    texts = [" ".join(word for word in each.split() if "__" not in word) for each in asked]
    expected = load("a.kesler").predict([{"text": each} for each in texts]).tolist()
    content = "".join(f"{each}\n" for each in asked)
    Path("asked.txt").write_text(content)
    assert kesler(capsys, "predict", "a.kesler", "asked.txt").out.splitlines() == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content.encode())))
    piped = kesler(capsys, "predict", "a.kesler", "-", "--format", "fasttext")
    assert piped.out.splitlines() == expected
    done = kesler(capsys, "predict", "a.kesler", "asked.txt", "--output", "out.jsonl")
    assert done.code == 0
    rows = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [(each["row"], each["label"]) for each in rows] == [*enumerate(expected, 1)]
