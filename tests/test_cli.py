"""What holds for every command: its help, its exit codes, and one sentence for what is wrong."""

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import get_args

import pandas as pd
import pytest

import kesler as package
from commands import (
    account,
    kesler,
    kesler_process,
    learnt_file,
    messages,
    refused,
    write_csv,
    write_jsonl,
    write_svmlight,
)
from kesler import OnlineClassifier
from kesler.cli.names import HYPOTHESES, PARTS
from kesler.learner.classes import OnNewClass
from kesler.settings.table import SETTINGS

COMMANDS = (
    *"compare learn predict explain journal mail serve share show test undo warm-up".split(),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_and_exit_codes(capsys, command):
    done = kesler(capsys, command, "--help")
    assert done.code == 0 and not done.err
    assert f"examples:\n  kesler {command}" in done.out or "| kesler" in done.out
    assert "exit codes: 0 success; 2" in done.out
    assert max(map(len, done.lines)) <= 84


def test_version(capsys):
    done = kesler(capsys, "--version")
    assert (done.code, done.out) == (0, f"kesler {package.__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["reproduce"],
        ["compare"],
        ["learn", "rows.vw"],
        ["predict", "rows.vw"],
        ["predict", "m", "rows.vw", "--scores", "-n", "2"],
        ["predict", "m", "rows.vw", "-n", "0"],
        ["explain", "m"],
        ["explain", "m", "rows.vw", "-n", "0"],
        ["learn", "m", "rows.vw", "--checkpoint", "-1"],
        ["compare", "rows.vw", "--shuffle", "-1"],
        ["compare", "rows.vw", "--C", "small"],
        ["test", "m"],
        ["test", "m", "rows.vw", "-n", "0"],
    ],
)
def test_wrong_usage(capsys, arguments):
    done = kesler(capsys, *arguments)
    assert done.code == 2 and done.err.startswith("usage: kesler")


@pytest.mark.parametrize(
    "arguments, now",
    [
        ("learn rows.vw --model m.kesler --C 0.1", "kesler learn m.kesler INPUT"),
        ("learn --model=m.kesler rows.vw", "kesler learn m.kesler INPUT"),
        ("predict rows.vw --model m.kesler", "kesler predict m.kesler INPUT"),
        ("explain rows.vw --model m.kesler", "kesler explain m.kesler INPUT"),
        ("predict m.kesler rows.vw --top 3", "-n 3"),
        ("compare rows.vw -n 3", "--top 3"),
        ("test m.kesler rows.vw --json", "--json -"),
        ("show m.kesler --json", "--json -"),
    ],
)
def test_former_spellings_name_those_of_today(capsys, arguments, now):
    refused(kesler(capsys, *arguments.split()), now)


@pytest.mark.parametrize("command", ["predict", "explain", "test", "learn"])
def test_a_model_behind_its_rows_is_told_of_the_order(capsys, model, command):
    rows = model.with_name("old.jsonl")
    before = rows.read_bytes()
    said = f"name the model first, kesler {command} {model} {rows}"
    refused(kesler(capsys, command, rows, model), said)
    if command == "learn":
        refused(kesler(capsys, command, rows, tmp := model.with_name("new")), "no model file")
        assert not tmp.exists()
    assert rows.read_bytes() == before


@pytest.mark.parametrize("command", ["compare", "learn", "share", "show", "test"])
def test_json_is_written_to_a_file_or_printed_alone(capsys, tmp_path, model, command):
    rows = write_csv(tmp_path / "rows.csv", 40)
    named = {"show": [model], "test": [model, model.with_name("old.jsonl")]}
    given = named.get(command, [rows, "--label", "signs"])
    learnt = lambda name: [tmp_path / name, *given] if command == "learn" else given  # noqa: E731
    done = kesler(capsys, command, *learnt("a"), "--json", tmp_path / "out.json")
    assert done.code == 0 and done.out and not done.out.startswith("{")
    printed = kesler(capsys, command, *learnt("b"), "--json", "-")
    assert (
        printed.code == 0
        and json.loads(printed.out).keys() == account(tmp_path / "out.json").keys()
    )
    assert not Path("-").exists()


def test_help_imports_nothing_heavy():
    """That of a command asks registries for names, and so imports NumPy."""
    for arguments, heavy in (["--help"], {"numpy", "numba"}), (["compare", "--help"], set()):
        script = (
            "import sys\n"
            "from kesler.cli import main\n"
            "try:\n"
            f"    main({arguments})\n"
            "except SystemExit:\n"
            f"    heavy = {{'sklearn', 'matplotlib', *{heavy or ()}}} & set(sys.modules)\n"
            "    sys.exit(', '.join(heavy) or 0)\n"
        )
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("command", ["compare", "learn"])
def test_help_names_every_part_and_says_what_it_is(capsys, command):
    words = " ".join(kesler(capsys, command, "--help").out.split())
    names = set(words.replace(",", " ").split())
    for option, registry in PARTS.items():
        assert option in names and set(registry) <= names
        for name, make in registry.items():
            part = make()
            settings = getattr(part, "function", None) or type(part)
            assert name == "none" or (settings.__doc__ or "").partition("\n")[0] in words
    assert {*HYPOTHESES, *get_args(OnNewClass)} <= names


@pytest.mark.parametrize("command", ["compare", "learn"])
def test_the_options_are_those_of_the_table_of_settings(capsys, command):
    words = set(kesler(capsys, command, "--help").out.split())
    left_out = {"compare": {"hypotheses", "epochs"}, "learn": {"label_budget"}}[command]
    for name, setting in SETTINGS.items():
        if name == "shuffle":  # the option of a run: a setting of fit has none
            continue
        is_option = setting.read is not None and name not in left_out
        assert (setting.option in words) == is_option, name


def test_learning_does_not_import_matplotlib(tmp_path):
    rows = write_jsonl(tmp_path / "rows.jsonl", messages(20))
    script = (
        "import sys\n"
        "from kesler.cli import main\n"
        f"main(['compare', {str(rows)!r}])\n"
        "sys.exit('matplotlib' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# ---- bad input ----------------------------------------------------------------------------------

GOOD = messages(30)
SVM = "1 1:1 2:1\n2 1:1\n"

# The content of a file, how it is read, and the message.
BAD = {
    "nan.svm": (SVM + "1 3:nan\n", (), ["line 3", "not a finite number", "--skip-bad"]),
    "infinity.vw": ("a | x:1\nb | x:inf\n", (), ["line 2", "not a finite number"]),
    "large.csv": ("kind,x\na,1\nb,1e39\n", ("--label", "kind"), ["line 3", "float32"]),
    "width.csv": ("kind,x\na,1\nb,1,2\n", ("--label", "kind"), ["line 3", "3 fields"]),
    "unreadable.jsonl": ('{"label": "a", "x": 1}\nno JSON\n', (), ["line 2", "not JSON"]),
    "unlabelled.jsonl": ('{"x": 1}\n{"x": 1}\n', (), ["line 1", "no label field", "--label"]),
    "empty.vw": ("", (), ["holds no rows"]),
    "empty.csv": ("", ("--label", "kind"), ["is empty"]),
    "mixed.vw": (
        "1 | x\nb | x\n",
        (),
        ["line 2: the label 'b' is text", "of one type"],
    ),
    "list.jsonl": ('{"label": ["a"], "x": 1}\n', (), ["line 1", "the label is a list"]),
    "null.jsonl": ('{"label": null, "x": 1}\n', (), ["line 1", "no label"]),
    "no-column.csv": ("a,b\n1,2\n", ("--label", "kind"), ["no column 'kind'"]),
    "unsaid.csv": ("a,b\n1,2\n", (), ["--label"]),
    "unknown.txt": ("one two three\n", (), ["give --format"]),
    "bytes.vw": (
        b"a | x\n\xff\xfe | y\n",
        ("--encoding", "utf-8"),
        ["line 2", "not UTF-8", "--encoding"],
    ),
    "cut.npz": (b"PK\x03\x04 not all of it", (), ["can't be read"]),
    "cut.vw.gz": (b"\x1f\x8b\x08\x00cut", (), ["can't be read"]),
}


@pytest.fixture
def model(tmp_path):
    return learnt_file(tmp_path, GOOD)


@pytest.fixture(params=BAD)
def bad(request, tmp_path):
    content, options, words = BAD[request.param]
    path = tmp_path / request.param
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path, options, words


def test_bad_input_is_a_sentence(capsys, bad, tmp_path):
    path, options, words = bad
    refused(kesler(capsys, "compare", path, *options), *words)
    refused(kesler(capsys, "share", path, *options), *words)
    refused(kesler(capsys, "learn", tmp_path / "new", path, *options), *words)
    assert not (tmp_path / "new").exists()


def test_bad_input_leaves_the_model_as_it_was(capsys, bad, model):
    path, options, _ = bad
    before = model.read_bytes()
    refused(kesler(capsys, "learn", model, path, *options, "--resume"))
    assert model.read_bytes() == before
    assert [each.name for each in model.parent.glob("*.part")] == []


@pytest.mark.parametrize("name", ["nan.svm", "infinity.vw", "width.csv", "unreadable.jsonl"])
def test_bad_rows_can_be_skipped(capsys, tmp_path, name):
    content, options, _ = BAD[name]
    path = tmp_path / name
    path.write_text(content)
    command = "compare", path, *options, "--methods", "multi"
    done = kesler(capsys, *command, "--skip-bad")
    assert done.code == 3 and "; 1 bad row skipped" in done.out
    n_rows = 2 + (name == "nan.svm")
    assert f"kesler: skipped 1 of {n_rows} rows of {path}: " in done.err
    assert "that is more than a share of 0.1, so the exit code is 3" in done.err
    done = kesler(capsys, *command, "--max-bad", "0.5")
    assert done.code == 0 and done.err.count("\n") == 1


def test_what_is_not_there_is_a_sentence(capsys, tmp_path):
    refused(kesler(capsys, "compare", tmp_path / "none.csv"), "does not exist")
    refused(kesler(capsys, "compare", "dataset:none"), "there is no data set 'none'")
    refused(kesler(capsys, "compare", "dataset:letter", "--label", "x"), "leave them out")
    refused(kesler(capsys, "predict", tmp_path / "none", "-"), "no such model file")
    empty = tmp_path / "folder"
    empty.mkdir()
    refused(kesler(capsys, "compare", empty), "holds no rows")


@pytest.mark.data
def test_sets_of_several_answers_are_refused(capsys):
    refused(kesler(capsys, "compare", "dataset:multilabel/yeast"), "not one class per row")


def newer(contents):
    """The same file, marked as one of the next version."""
    (length,) = struct.unpack("<Q", contents[:8])
    header = json.loads(contents[8 : 8 + length])
    own = json.loads(header["__metadata__"]["header"])
    header["__metadata__"]["header"] = json.dumps(own | {"version": own["version"] + 1})
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + contents[8 + length :]


@pytest.mark.parametrize(
    "spoil, words",
    [
        (lambda contents: contents[: len(contents) // 2], "cut off"),
        (lambda contents: contents[:4], "cut off"),
        (lambda contents: b"", "cut off"),
        (newer, "newer"),
    ],
)
def test_a_model_that_cannot_be_read_is_a_sentence(capsys, model, spoil, words):
    rows = model.with_name("old.jsonl")
    model.write_bytes(spoil(model.read_bytes()))
    before = model.read_bytes()
    refused(kesler(capsys, "predict", model, rows), words)
    refused(kesler(capsys, "learn", model, rows, "--resume"), words)
    assert model.read_bytes() == before


@pytest.mark.parametrize("place", ["/no/such/folder/m", "."])
def test_a_model_that_cannot_be_written_is_refused_at_once(capsys, model, place):
    done = kesler(capsys, "learn", place, model.with_name("old.jsonl"))
    refused(done, "cannot be written")
    assert not done.out


def test_a_full_disk_is_a_sentence(capsys, model, monkeypatch):
    def full(*arguments):
        raise OSError(28, "No space left on device", "run.json")

    monkeypatch.setattr("kesler.cli.compare.write_json", full)
    rows = model.with_name("old.jsonl")
    done = kesler(capsys, "compare", rows, "--json", model.with_name("run.json"))
    refused(done, "run.json: No space left on device")


def test_too_large_a_stream_is_a_sentence(capsys, tmp_path, monkeypatch):
    def crowded(*arguments, **options):
        raise MemoryError("Unable to allocate 128. GiB")

    monkeypatch.setattr("kesler.evaluation.methods.learn_rows", crowded)
    rows = write_svmlight(tmp_path / "rows.svm", 5)
    refused(kesler(capsys, "compare", rows), "not enough memory (Unable to allocate 128. GiB)")


def test_the_dense_map_refuses_sparse_rows(capsys, tmp_path):
    rows = write_svmlight(tmp_path / "rows.svm", 5)
    refused(kesler(capsys, "compare", rows, "--feature-map", "distance"), "not zero at zero")
    asked = ("--label", "signs", "--feature-map", "distance")
    assert kesler(capsys, "compare", write_csv(tmp_path / "rows.csv", 5), *asked).code == 0


@pytest.mark.parametrize("command", ["compare", "learn"])
def test_no_output_overwrites_another_file_of_the_run(capsys, tmp_path, command):
    rows = tmp_path / "rows.svm"
    rows.write_text("1 0:1\n2 1:1\n")
    model = [str(tmp_path / "model")] if command == "learn" else []
    refused(kesler(capsys, command, *model, str(rows), "--json", str(rows)), "INPUT")
    assert rows.read_text() == "1 0:1\n2 1:1\n"
    if model:
        refused(kesler(capsys, command, *model, str(rows), "--json", *model), "MODEL")


# ---- closed standard streams ---------------------------------------------------------------------


def with_closed(redirections, *arguments):
    """Run the command in a process whose standard streams are redirected by a shell."""
    script = f'exec "$@" {redirections}'
    command = ["sh", "-c", script, "sh", sys.executable, "-m", "kesler", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.mark.parametrize("redirections", ["<&-", "2>&-", ">&-", ">&- 2>&-"])
def test_closed_standard_streams_end_in_a_sentence_or_do_no_harm(redirections, tmp_path):
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n9,y\n2,x\n8,y\n")
    model = tmp_path / "model"
    OnlineClassifier().fit(pd.DataFrame({"a": [1.0, 9.0]}), ["x", "y"]).save(model)
    done = with_closed(redirections, "predict", model, tmp_path / "t.csv")
    assert "Traceback" not in done.stderr
    if ">&-" in redirections.split():
        assert (done.returncode, done.stdout) == (2, "")
        said = "kesler: standard output is closed" if redirections == ">&-" else ""
        assert done.stderr.startswith(said)
    else:
        assert done.returncode == 0 and len(done.stdout.splitlines()) == 4


FULL = Path("/dev/full")  # a disk without space, for what is written there


@pytest.mark.skipif(not FULL.exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("is_buffered", [True, False])
def test_a_full_disk_behind_standard_output_is_a_sentence(is_buffered, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONUNBUFFERED", "" if is_buffered else "1")
    (tmp_path / "t.csv").write_text("a,kind\n1,x\n9,y\n2,x\n8,y\n")
    model = tmp_path / "model"
    OnlineClassifier().fit(pd.DataFrame({"a": [1.0, 9.0]}), ["x", "y"]).save(model)
    rows = tmp_path / "t.csv"
    asked = [["--help"], ["learn", "--help"], ["--version"], ["predict", model, rows]]
    for arguments in asked:
        done = with_closed(f"> {FULL}", *arguments)
        said = "kesler: the output: No space left on device\n"
        assert (done.returncode, done.stderr) == (2, said), arguments
    assert with_closed(f"> {FULL} 2> {FULL}", "show", model).returncode == 2


def test_help_that_nobody_reads_ends_as_other_commands_do():
    with kesler_process("--help") as process:
        process.stdout.close()
        assert process.wait() == 141 and process.stderr.read() == ""


def test_closed_standard_input_is_said_where_it_is_read(tmp_path):
    for command in ("predict", "learn"):
        done = with_closed("<&-", command, tmp_path / command, "-", "--format", "csv")
        assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "standard input is closed: pipe rows into it" in done.stderr
