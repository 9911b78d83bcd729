"""kesler compare: what it prints and writes is what progressive validation finds."""

from itertools import pairwise

import numpy as np
import pytest

from commands import account, as_entries, kesler, messages, refused, write_csv, write_jsonl
from kesler import OnlineClassifier, mistake_bound, progressive_validate
from kesler.datasets import load_pendigits
from kesler.online.blocks import learn_rows
from kesler.updates import PassiveAggressive, SimProj

ROWS = messages(200)
LINES = [*(2**k for k in range(8)), 200]
SHARING = ("--methods", "multi,single,hybrid")


def validated(hypotheses, update="pa1", rows=ROWS):
    return progressive_validate(OnlineClassifier(hypotheses, update=update), *as_entries(rows))


@pytest.fixture
def mail(tmp_path):
    return write_jsonl(tmp_path / "mail.jsonl", ROWS)


def test_the_table_and_the_summary(capsys, mail):
    done = kesler(capsys, "compare", mail, *SHARING)
    table = [line.split() for line in done.lines[4:13]]
    results = {name: validated(name) for name in ("multi", "single", "hybrid")}
    assert done.code == 0 and not done.err
    assert max(map(len, done.lines[:13])) <= 100
    assert [int(line[0]) for line in table] == LINES
    for n, line in zip(LINES, table, strict=True):
        errors = [f"{100 * result.curve[n - 1] / n:.2f}" for result in results.values()]
        assert line[2:8:2] == errors
    summary = [line.split() for line in done.lines[-3:]]
    for (name, result), line in zip(results.items(), summary, strict=True):
        assert line[:4] == [name, "200", str(result.n_mistakes), f"{100 * result.error:.2f}"]
    best = min(results, key=lambda name: results[name].n_mistakes)
    assert [line[0] for line in summary if line[-1] == "best"] == [best]
    n_words = len({word for _, words in ROWS for word in words})
    assert f"{mail}: 200 rows, {n_words} features, 3 classes" in done.lines


def test_the_default_is_first_and_baselines_are_last(capsys, mail, tmp_path):
    done = kesler(capsys, "compare", mail, "--json", tmp_path / "run.json")
    learners = {"default": OnlineClassifier(), "ensemble": OnlineClassifier(update="ensemble")}
    X, y = as_entries(ROWS)
    wrong = {name: progressive_validate(each, X, y) for name, each in learners.items()}
    wrong |= {name: validated(name) for name in ("multi", "single", "hybrid")}
    wrong = {name: result.n_mistakes for name, result in wrong.items()}
    found = account(tmp_path / "run.json")["methods"]
    assert list(found) == [*wrong, "most frequent class", "last answer again"]
    assert {name: found[name]["mistakes"] for name in wrong} == wrong
    again = sum(a != b for a, b in pairwise(y)) - 2  # three classes, and a first row
    assert found["last answer again"]["mistakes"] == again
    assert done.lines[2].split() == list(wrong) and max(map(len, done.lines[:13])) <= 100
    last = next(line.split() for line in done.lines if line.split()[:1] == ["200"])
    assert last[2:7] == [f"{100 * n / 200:.2f}" for n in wrong.values()]
    assert done.lines[-1].split()[:5] == ["last", "answer", "again", "200", str(again)]


@pytest.mark.parametrize("width, has_kernel", [(100, True), (101, False)])
def test_a_kernel_is_compared_on_dense_rows_of_few_features(capsys, tmp_path, width, has_kernel):
    values = np.random.default_rng(0).normal(size=(12, width))
    rows = [",".join([*map(str, row), "ab"[row[0] > 0]]) for row in values.tolist()]
    names = ",".join([*(f"x{i}" for i in range(width)), "label"])
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([names, *rows]) + "\n")
    done = kesler(capsys, "compare", path, "--label", "label")
    assert any(line.startswith("  kernel ") for line in done.lines) == has_kernel, done


def test_options_are_those_of_the_ways_of_sharing(capsys, mail, tmp_path):
    options = ("--update", "perceptron", "--json", tmp_path / "run.json")
    assert kesler(capsys, "compare", mail, *options).code == 0
    found = account(tmp_path / "run.json")["methods"]
    default = progressive_validate(OnlineClassifier(), *as_entries(ROWS))
    assert found["default"]["mistakes"] == default.n_mistakes
    assert found["hybrid"]["mistakes"] == validated("hybrid", "perceptron").n_mistakes


def test_several_inputs_are_compared_one_after_the_other(capsys, mail, tmp_path):
    other = write_jsonl(tmp_path / "other.jsonl", messages(50, seed=4))
    files = ("--json", tmp_path / "run.json", "--plot", tmp_path / "both.png")
    done = kesler(capsys, "compare", mail, other, "--methods", "multi", *files)
    assert done.code == 0
    both = account(tmp_path / "run.json")
    assert [run["input"] for run in both] == [str(mail), str(other)]
    for run, path in zip(both, (mail, other), strict=True):
        alone = kesler(capsys, "compare", path, "--methods", "multi", *files[:2])
        single = account(tmp_path / "run.json")["methods"]["multi"]
        assert run["methods"]["multi"]["curve"] == single["curve"]
        assert alone.lines[0] in done.lines
    assert (tmp_path / "both.png").read_bytes().startswith(b"\x89PNG")
    refused(kesler(capsys, "compare", mail, other, "--json", other), "same file as INPUT")


def test_the_table_is_printed_while_it_runs(capsys, mail, monkeypatch):
    printed = []

    def noted(*arguments, **options):
        printed.append(capsys.readouterr().out)
        return learn_rows(*arguments, **options)

    monkeypatch.setattr("kesler.evaluation.methods.learn_rows", noted)
    kesler(capsys, "compare", mail, "--methods", "multi")
    assert [out.count("\n") for out in printed] == [0, 5, 1, 1, 1, 1, 1, 1, 1]


def test_json_holds_the_same(capsys, mail, tmp_path):
    assert kesler(capsys, "compare", mail, *SHARING, "--json", tmp_path / "run.json").code == 0
    run = account(tmp_path / "run.json")
    assert (run["rows"], run["bad_rows"], run["classes"]) == (200, 0, 3)
    assert [line["trials"] for line in run["table"]] == LINES
    for name, method in run["methods"].items():
        assert method["curve"]["mistakes"] == validated(name).curve.tolist()


def test_methods_may_carry_an_update_and_its_C(capsys, mail, tmp_path):
    methods = "multi, hybrid:simproj,hybrid:pa1:0.25"
    options = ("--methods", methods, "--update", "perceptron", "--C", "0.5")
    assert kesler(capsys, "compare", mail, *options, "--json", tmp_path / "run.json").code == 0
    expected = {
        "multi": validated("multi", "perceptron"),
        "hybrid:simproj": validated("hybrid", SimProj(C=0.5)),
        "hybrid:pa1:0.25": validated("hybrid", PassiveAggressive(C=0.25)),
    }
    found = account(tmp_path / "run.json")["methods"]
    assert {name: method["mistakes"] for name, method in found.items()} == {
        name: result.n_mistakes for name, result in expected.items()
    }


def test_shuffle_takes_the_rows_in_the_order_of_a_seed(capsys, tmp_path):
    path = write_csv(tmp_path / "signs.csv", 60)
    runs = []
    for seed in ("1", "1", "2"):
        options = ("--label", "signs", "--shuffle", seed, "--json", tmp_path / "run.json", *SHARING)
        assert kesler(capsys, "compare", path, *options).code == 0
        runs.append(account(tmp_path / "run.json")["methods"]["multi"]["curve"])
    assert runs[0] == runs[1] != runs[2]


def test_shuffled_rows_are_the_rows(capsys, tmp_path):
    rows = messages(300, seed=1)
    path = write_jsonl(tmp_path / "mail.jsonl", rows)
    options = ("--methods", "multi", "--shuffle", 7, "--json", tmp_path / "run.json")
    kesler(capsys, "compare", path, *options)
    order = np.random.default_rng(7).permutation(len(rows))
    expected = validated("multi", rows=[rows[i] for i in order])
    found = account(tmp_path / "run.json")["methods"]["multi"]["curve"]["mistakes"]
    assert found == expected.curve.tolist()


def test_shuffled_rows_keep_their_weights(capsys, tmp_path):
    path = tmp_path / "weighted.vw"
    path.write_text("".join(f"{'ab'[i % 2]} {i % 3} | f{i % 5}\n" for i in range(1500)))
    kesler(capsys, "compare", path, *SHARING, "--shuffle", 1, "--json", tmp_path / "run.json")
    run = account(tmp_path / "run.json")
    assert (run["rows"], run["methods"]["multi"]["trials"]) == (1500, 1000)


def test_a_data_set_by_name(capsys, tmp_path):
    options = ("--methods", "single", "--json", tmp_path / "run.json")
    assert kesler(capsys, "compare", "dataset:pendigits", *options).code == 0
    data = load_pendigits()
    expected = progressive_validate(OnlineClassifier("single", update="pa1"), data.X, data.y)
    method = account(tmp_path / "run.json")["methods"]["single"]
    assert method["mistakes"] == expected.n_mistakes
    assert method["curve"]["mistakes"][-1] == expected.n_mistakes
    assert len(method["curve"]["trials"]) <= 2001


@pytest.mark.data
def test_a_data_set_of_records(capsys):
    done = kesler(capsys, "compare", "dataset:enron/williams-w3", "--methods", "hybrid")
    assert done.code == 0 and "dataset:enron/williams-w3: 2,769 rows" in done.out


def test_mail_is_read_in_the_order_of_its_dates(capsys, tmp_path):
    for i, (label, words) in enumerate(ROWS):
        folder = tmp_path / "mail" / label
        folder.mkdir(parents=True, exist_ok=True)
        date = f"Date: Mon, 1 Jan 2024 {i // 60:02}:{i % 60:02}:00 +0000"
        (folder / f"{-i}.eml").write_text(f"{date}\nSubject: {' '.join(words)}\n\n\n")
    asked = ("--methods", "hybrid", "--feature-map", "product")
    done = kesler(capsys, "compare", tmp_path / "mail", *asked)
    assert done.code == 0 and "200 rows" in done.out and "3 classes" in done.out


def test_bounds_stand_beside_the_mistakes(capsys, mail, tmp_path):
    methods = ("--methods", "multi:perceptron,hybrid:simperc,multi:simproj", "--bounds")
    done = kesler(capsys, "compare", mail, *methods, "--json", tmp_path / "run.json")
    found = account(tmp_path / "run.json")["methods"]
    plain = kesler(capsys, "compare", mail, *methods[:2], "--json", tmp_path / "plain.json")
    for name in ("multi:perceptron", "hybrid:simperc"):
        hypotheses, update = name.split(":")
        bound = mistake_bound(validated(hypotheses, update))
        settings = found[name]["bound"]
        assert (settings["theorem"], settings["radius"]) == (
            bound.theorem,
            pytest.approx(bound.radius),
        )
        assert settings["bound"] == pytest.approx(bound.bound, rel=0.05)
        row = next(line.split() for line in done.lines if line.startswith(f"  {name} "))
        assert row[:4] == [name, "200", str(bound.n_mistakes), f"{settings['bound']:,.0f}"]
    assert found["multi:simproj"]["bound"] is None
    assert "multi:simproj: Kesler has no theorem" in done.out
    without = account(tmp_path / "plain.json")["methods"]
    assert {name: each["mistakes"] for name, each in found.items()} == {
        name: each["mistakes"] for name, each in without.items()
    }
    assert "allowed" not in plain.out


def test_the_figure_is_drawn(capsys, mail, tmp_path):
    done = kesler(capsys, "compare", mail, *SHARING, "--plot", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
    assert done.lines[-1] == f"figure: {tmp_path / 'curves.png'}"


@pytest.mark.parametrize(
    "options, words",
    [
        (["--methods", "multi,many"], ["--hypotheses 'many' is not known"]),
        (["--methods", "multi,multi"], ["'multi' is named twice"]),
        (["--methods", "multi:pa1:0.1:7"], ["HYPOTHESES[:UPDATE[:C]]"]),
        (["--methods", "multi:pa1:small"], ["HYPOTHESES[:UPDATE[:C]]"]),
        (["--methods", ""], ["--hypotheses '' is not known"]),
        (["--update", "best"], ["--update 'best' is not known", "simproj"]),
        (["--feature-map", "flat"], ["--feature-map 'flat' is not known", "product-mean"]),
        (["--C", "-1"], ["C must be a finite number above 0"]),
        (["--C", "nan"], ["C must be a finite number above 0"]),
        (["--json", "/no/such/folder/run.json"], ["cannot be written"]),
        (["--plot", "/no/such/folder/run.png"], ["cannot be written"]),
        (["--plot", "curves.doc"], [".png, .svg or .pdf"]),
        (["--format", "xml"], ["there is no format 'xml'"]),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_read(capsys, mail, options, words):
    done = kesler(capsys, "compare", mail, *options)
    refused(done, *words)
    assert not done.out


def test_kernels_are_named_on_the_command_line(capsys, mail):
    options = ("--kernel", "rbf", "--sigma", "2", "--budget", "20")
    done = kesler(capsys, "compare", mail, "--methods", "multi", *options)
    learner = OnlineClassifier("multi", update="pa1", kernel="rbf", sigma=2.0, budget=20)
    result = progressive_validate(learner, *as_entries(ROWS))
    assert done.lines[-1].split()[:3] == ["multi", "200", str(result.n_mistakes)]
    assert result.n_mistakes != validated("multi").n_mistakes


def test_a_kernel_that_is_none_is_refused(capsys, mail):
    none = kesler(capsys, "compare", mail, "--kernel", "rbf", "--sigma", "0")
    refused(none, "sigma must be a finite number from 1e-30 to 1e+30")
    refused(kesler(capsys, "compare", mail, "--kernel", "gauss"), "rbf, polynomial, linear")
