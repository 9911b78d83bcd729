"""kesler share: what it prints and writes is what the estimator finds."""

import importlib.util

import numpy as np
import pytest

from commands import account, kesler, messages, refused, write_csv, write_jsonl, write_svmlight
from kesler import ShareBoostClassifier
from kesler.datasets import load_pendigits

PENS = ("dataset:pendigits", "--features", "4")


@pytest.fixture(scope="module")
def pens():
    return load_pendigits()


def table_of(done):
    """The lines of the table by columns; names of features hold no spaces here."""
    start = next(i for i, line in enumerate(done.lines) if line.lstrip().startswith("n  feature"))
    rows = [line.split() for line in done.lines[start + 1 :]]
    return list(zip(*rows[: rows.index([])], strict=True))


def imported(path):
    spec = importlib.util.spec_from_file_location("exported", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_is_the_path(capsys, pens):
    done = kesler(capsys, *("share", *PENS))
    assert done.code == 0 and not done.err, done
    model = ShareBoostClassifier(4).fit(pens.X, pens.y)
    numbers, names, losses, gradients, errors, seconds = table_of(done)
    assert numbers == ("1", "2", "3", "4")
    assert names == tuple(f"x{i}" for i in model.support_)
    assert losses == tuple(f"{each.loss:.5f}" for each in model.path_)
    assert gradients == tuple(f"{each.gradient_norm:.5f}" for each in model.path_)
    assert set(errors) == {"-"} and all(float(each) >= 0 for each in seconds)
    assert done.lines[0] == "dataset:pendigits: 10,992 rows, 16 features, 10 classes"
    assert "40 multiply-accumulates per instance" in done.lines
    assert max(map(len, done.lines)) <= 84


def test_rows_are_held_out(capsys, pens, tmp_path):
    path = tmp_path / "path.json"
    done = kesler(capsys, "share", *PENS, "--holdout", "0.25", "--json", path)
    found = account(path)
    assert (found["rows"], found["features"], found["classes"]) == (8244, 16, list(range(10)))
    errors = [each["validation_error"] for each in found["path"]]
    assert errors[-1] < errors[0] < 0.9 and errors[-1] < 0.5
    assert table_of(done)[4] == tuple(f"{100 * error:.2f}" for error in errors)
    assert all(round(error * 2748, 6) % 1 == 0 for error in errors)
    again = kesler(capsys, "share", *PENS, "--holdout", "0.25")
    assert table_of(again)[:5] == table_of(done)[:5]


def test_rows_to_take_the_error_on(capsys, tmp_path):
    """Features are known by name, in whatever order; others are passed over."""
    rows = [row for row in messages(200) if row[0] != "home"]
    train = write_jsonl(tmp_path / "train.jsonl", rows)
    valid = write_jsonl(
        tmp_path / "valid.jsonl", [(y, ["unseen", *words[::-1]]) for y, words in rows]
    )
    done = kesler(
        capsys, "share", train, "--features", "3", "--valid", valid, "--json", tmp_path / "path"
    )
    assert done.code == 0, done
    model_errors = [each["validation_error"] for each in account(tmp_path / "path")["path"]]
    words = {each["feature"] for each in account(tmp_path / "path")["path"]}
    assert words <= {"win", "cash", "prize", "lunch", "agenda", "minutes", "now"}
    assert model_errors == sorted(model_errors, reverse=True) and model_errors[-1] < 0.25


@pytest.mark.parametrize("longer", ["train", "valid"])
def test_svmlight_files_of_other_widths(capsys, tmp_path, longer):
    train = write_svmlight(tmp_path / "train.svm", 40 if longer == "train" else 20)
    valid = write_svmlight(tmp_path / "valid.svm", 20 if longer == "train" else 40)
    done = kesler(capsys, "share", train, "--valid", valid, "--features", "3")
    assert done.code == 0 and "-" not in table_of(done)[4], done


def test_an_export_predicts_and_bears_names(capsys, tmp_path):
    table = write_csv(tmp_path / "rows.csv", 200)
    settings = ("--label", "signs", "--features", "2", "--export", tmp_path / "signs.py")
    done = kesler(capsys, "share", table, *settings)
    assert done.code == 0 and f"export: {tmp_path / 'signs.py'}" in done.lines
    assert set(table_of(done)[1]) == {"one", "two"}
    columns = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=(0, 1, 3))
    labels = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=2, dtype=str)
    module = imported(tmp_path / "signs.py")
    assert (module.predict(columns) == labels).mean() > 0.9
    assert "    one\n" in module.__doc__ and "    two\n" in module.__doc__


@pytest.mark.parametrize("suffix", [".py", ".c", ".onnx"])
def test_every_kind_of_export_is_written(capsys, tmp_path, suffix):
    path = tmp_path / f"pens{suffix}"
    assert kesler(capsys, "share", *PENS, "--export", path).code == 0
    assert path.stat().st_size > 500


@pytest.mark.parametrize("more", [(), ("--holdout", "0.2")])
def test_the_path_is_drawn(capsys, tmp_path, more):
    path = tmp_path / "path.png"
    done = kesler(capsys, "share", *PENS, "--plot", path, *more)
    assert done.code == 0 and f"figure: {path}" in done.lines
    assert path.read_bytes().startswith(b"\x89PNG")


def test_options_reach_the_estimator(capsys, pens, tmp_path):
    settings = ("--choice", "line", "--penalty", "frobenius", "--alpha", "0.01")
    done = kesler(capsys, "share", *PENS, *settings)
    model = ShareBoostClassifier(4, choice="line", penalty="frobenius", alpha=0.01)
    model.fit(pens.X, pens.y)
    assert table_of(done)[2] == tuple(f"{each.loss:.5f}" for each in model.path_)
    assert table_of(kesler(capsys, "share", *PENS))[2] != table_of(done)[2]
    done = kesler(capsys, "share", *PENS, "--scale", "none")
    model = ShareBoostClassifier(4, scale=None).fit(pens.X, pens.y)
    assert table_of(done)[1] == tuple(f"x{i}" for i in model.support_)
    assert table_of(done)[3] == tuple(f"{each.gradient_norm:.5f}" for each in model.path_)
    plain = kesler(capsys, "share", *PENS)
    assert table_of(plain)[3] != table_of(done)[3]


@pytest.mark.parametrize("dictionary", ["products", "stumps", "pieces"])
def test_dictionaries_have_names_and_exports(capsys, tmp_path, dictionary):
    table = write_csv(tmp_path / "rows.csv", 150)
    settings = ("--label", "signs", "--features", "3", "--dictionary", dictionary)
    done = kesler(capsys, "share", table, *settings, "--export", tmp_path / "signs.py")
    assert done.code == 0, done
    names = imported(tmp_path / "signs.py").__doc__.splitlines()
    sign = {"products": " * ", "stumps": " < ", "pieces": "within "}[dictionary]
    assert sum(sign in line for line in names) == 3


def test_rows_of_weight(capsys, tmp_path):
    """Vowpal Wabbit's importances: a row of weight 3 is three rows."""
    rows = messages(60)
    once, thrice = tmp_path / "weighted.vw", tmp_path / "repeated.vw"
    once.write_text(
        "".join(f"{y} {1 + 2 * (i % 2)} | {' '.join(w)}\n" for i, (y, w) in enumerate(rows))
    )
    thrice.write_text(
        "".join(f"{y} | {' '.join(w)}\n" * (1 + 2 * (i % 2)) for i, (y, w) in enumerate(rows))
    )
    tables = [table_of(kesler(capsys, "share", each, "--features", "3")) for each in (once, thrice)]
    assert tables[0][:2] == tables[1][:2]
    losses = np.array([[float(each) for each in table[2]] for table in tables])
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-3)


# ---- refusals -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["share"],
        ["share", "rows.csv", "--features", "0"],
        ["share", "rows.csv", "--features", "few"],
        ["share", "rows.csv", "--holdout", "1"],
        ["share", "rows.csv", "--holdout", "half"],
        ["share", "rows.csv", "--holdout", "0.5", "--valid", "other.csv"],
        ["share", "rows.csv", "--dictionary", "words"],
        ["share", "rows.csv", "--choice", "best"],
        ["share", "rows.csv", "--penalty", "l1"],
        ["share", "rows.csv", "--alpha", "small"],
    ],
)
def test_wrong_usage(capsys, arguments):
    done = kesler(capsys, *arguments)
    assert done.code == 2 and done.err.startswith("usage: kesler")


def test_what_is_not_there_or_cannot_be_written_is_a_sentence(capsys, tmp_path):
    rows = write_svmlight(tmp_path / "rows.svm", 20)
    refused(kesler(capsys, "share", tmp_path / "none.csv"), "does not exist")
    refused(kesler(capsys, "share", rows, "--valid", tmp_path / "none.svm"), "does not exist")
    refused(kesler(capsys, "share", rows, "--export", tmp_path / "model"), "use .py")
    refused(kesler(capsys, "share", rows, "--export", "/no/folder/m.c"), "cannot be written")
    refused(kesler(capsys, "share", rows, "--plot", tmp_path / "path.doc"), "use .png")
    refused(kesler(capsys, "share", rows, "--json", rows), "same file as INPUT")
    both = tmp_path / "both.py"
    refused(
        kesler(capsys, "share", rows, "--export", both, "--json", both), "same file as --export"
    )
    refused(kesler(capsys, "share", rows, "--holdout", "0.01"), "give another share")


def test_a_bad_row_is_a_sentence_or_skipped(capsys, tmp_path):
    rows = write_svmlight(tmp_path / "rows.svm", 30)
    rows.write_text(rows.read_text() + "1 3:nan\n")
    refused(kesler(capsys, "share", rows), "line 31", "not a finite number", "--skip-bad")
    done = kesler(capsys, "share", rows, "--skip-bad", "--features", "2")
    assert done.code == 0 and "; 1 bad row skipped" in done.out


def test_rows_to_take_the_error_on_must_be_alike(capsys, tmp_path):
    rng = np.random.default_rng(0)
    for name, width in (("wide", 3), ("narrow", 2)):
        np.savez(tmp_path / f"{name}.npz", X=rng.normal(size=(20, width)), y=np.arange(20) % 2)
    done = kesler(capsys, "share", tmp_path / "wide.npz", "--valid", tmp_path / "narrow.npz")
    refused(done, "narrow.npz have 2 features, those of", "wide.npz 3")


def test_ratings_of_sub_experts_are_refused(capsys, tmp_path):
    rows = tmp_path / "rows.ldf"
    rows.write_text("a:0 | x:1\nb:1 | x:0.5\n\na:1 | x:1\nb:0 | x:0.5\n")
    refused(kesler(capsys, "share", rows), "ratings by sub-experts")


def test_one_class_is_a_sentence(capsys, tmp_path):
    rows = tmp_path / "rows.svm"
    rows.write_text("1 1:1\n1 2:1\n")
    refused(kesler(capsys, "share", rows, "--features", "1"), "rows of one class only")


def test_more_features_than_there_are_are_all_and_a_sentence(capsys, tmp_path):
    table = write_csv(tmp_path / "rows.csv", 60)
    done = kesler(capsys, "share", table, "--label", "signs", "--features", "9")
    assert done.code == 0 and len(table_of(done)[0]) == 3
    assert (
        done.err.startswith("kesler: 3 were chosen, not --features 9") and done.err.count("\n") == 1
    )
