"""The script of mutations: what it draws, what it leaves alone, and how it goes on."""

import argparse
import ast
import json
import shutil
from pathlib import Path

import pytest

import mutation_runs
import mutations
from mutation_sites import OPERATORS, WEIGHTS, draw, is_change, sites_of

UNTOUCHED = '''"""Words of a file: 1 < 2."""
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from numbers import Number as N
    LIMIT = 3
__all__ = ["f"]
x: int
def f(a: "1 < 2") -> "3 + 4":
    """Return 5 + 6."""
    raise ValueError("no" + f"{7 - 8}", 9)
'''
LOCKED = """def f(self, é):
    with self.lock:
        é = "ü" + é  # a comment: 1 + 1
    with self.blocks:
        return (é) + (
            2)
"""


def replaced(text: str) -> list[tuple[str, str, str]]:
    return [(each.kind, each.before, each.after) for each in sites_of("src/a.py", text)]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "src" / "inner").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text(LOCKED)
    (tmp_path / "src" / "inner" / "b.py").write_text(
        "def g(a, b):\n    c = a * 3 - b\n    return c < 0 or not a\n"
    )
    return tmp_path


def test_docstrings_annotations_imports_names_and_messages_are_left_alone():
    assert replaced(UNTOUCHED) == [
        ("statement", 'raise ValueError("no" + f"{7 - 8}", 9)', "pass"),
    ]


@pytest.mark.parametrize("kind", OPERATORS, ids=lambda each: each.__name__)
def test_each_operator_is_exchanged_for_another(kind):
    before, after = OPERATORS[kind]
    unary = issubclass(kind, ast.unaryop)
    text = f"def f(a, b):\n    return {before}a\n" if unary else f"y = (a) {before} (\n    b)\n"
    found = [each for each in sites_of("src/a.py", text) if each.kind == "operator"]
    assert [(each.before, each.after) for each in found] == [(before, after)]
    assert is_change(text, found[0])


@pytest.mark.parametrize("sign", ["+=", "-=", "*=", "//=", "|="])
def test_operators_that_assign_are_exchanged(sign):
    kinds = [each for each in replaced(f"a {sign} b\n") if each[0] == "operator"]
    assert len(kinds) == 1 and kinds[0][1] == sign and kinds[0][2].endswith("=")


def test_numbers_become_one_more_negative_and_none_at_all():
    assert [each[2] for each in replaced("x = 2.5\n")] == ["3.5", "(-2.5)", "0.0"]
    assert [each[2] for each in replaced("x = 0\n")] == ["1"]
    assert [each[2] for each in replaced("x = True\n")] == ["False"]


def test_locks_are_opened_and_nothing_else_that_sounds_like_them():
    found = [each for each in sites_of("src/a.py", LOCKED) if each.kind == "lock"]
    assert [each.applied(LOCKED) for each in found] == [
        LOCKED.replace("with self.lock:", "if True:")
    ]


def test_every_mutation_changes_its_span_alone():
    for each in sites_of("src/a.py", LOCKED):
        mutated = each.applied(LOCKED)
        assert mutated.startswith(LOCKED[: each.start])
        assert mutated.endswith(LOCKED[each.end :])
        ast.parse(mutated)


def test_the_scope_is_the_name_of_the_code_object():
    text = "class A:\n    def f(self):\n        def g():\n            return 1 + 2\n"
    assert {each.scope for each in sites_of("src/a.py", text)} == {"A.f.<locals>.g"}


def test_the_source_yields_every_kind(tmp_path):
    learner = Path("src", "kesler", "learner")  # all of src takes seconds to read
    shutil.copytree(mutations.ROOT / learner, tmp_path / learner)
    drawn = draw(tmp_path, 60, "a seed")
    assert {each.kind for each in drawn} >= set(WEIGHTS) - {"lock"}
    assert len({each.key for each in drawn}) == 60


def test_a_draw_depends_on_the_seed_and_the_tree_alone(root):
    assert draw(root, 6, "1") == draw(root, 6, "1")
    assert draw(root, 4, "1") == draw(root, 6, "1")[:4]
    assert draw(root, 6, "1") != draw(root, 6, "2")
    assert {each.path for each in draw(root, 3, "1", ["src/inner"])} == {"src/inner/b.py"}


def test_a_text_that_has_changed_since_the_draw_is_refused(root):
    mutation = draw(root, 1, "1")[0]
    with pytest.raises(ValueError, match="draw again"):
        mutation.applied("\n" * 1000)


def test_a_run_goes_on_where_it_was_stopped(root, monkeypatch, capsys):
    class Tried:
        def __init__(self, *_):
            self.n = 0

        def try_out(self, mutation, *_):
            if self.n == 3:
                raise KeyboardInterrupt
            self.n += 1
            caught = mutation.kind != "operator"
            found = {"outcome": "caught" if caught else "survived", "by": "t" if caught else None}
            tried.append(mutation.key)
            return found | {"seconds": 1.0}

    tried: list[str] = []
    monkeypatch.setattr(mutations, "ROOT", root)
    monkeypatch.setattr(mutations, "Copy", Tried)
    settings = argparse.Namespace(
        work=root / "work",
        seed="1",
        number=6,
        folders=["src"],
        workers=1,
        retry=False,
        minutes=1.0,
    )
    with pytest.raises(KeyboardInterrupt):
        mutations.run(settings)
    mutations.run(settings)
    keys = [each.key for each in draw(root, 6, "1")]
    assert tried == keys
    assert "6 of 6 tried" in capsys.readouterr().out

    known = mutations.results(mutations.results_file(settings.work, "1"))
    survivors = [key for key in keys if known[key]["outcome"] == "survived"]
    assert mutations.untried(
        draw(root, 6, "1"), mutations.results_file(settings.work, "1"), True
    ) == [each for each in draw(root, 6, "1") if each.key in survivors]
    explained = {survivors[0]: {"equivalent": True, "why": "The same sum."}}
    assert "1 equivalent" in mutations.summary(draw(root, 6, "1"), known, explained)
    assert "The same sum." in mutations.row(known[survivors[0]], explained)


def test_the_tests_that_run_a_function_come_first(root, tmp_path):
    mutation = next(each for each in draw(root, 6, "1") if each.path == "src/inner/b.py")
    noted = [
        {"test": "tests/test_a.py::t", "seconds": 0.2, "functions": ["src/inner/b.py::g"]},
        {"test": "tests/test_a.py::u", "seconds": 0.1, "functions": ["src/inner/b.py::g"]},
        {"test": "tests/test_b.py::v", "seconds": 0.1, "functions": ["src/inner/b.py::h"]},
    ]
    (tmp_path / "record").mkdir()
    (tmp_path / "record" / "test_a.json").write_text(json.dumps(noted))
    record = mutation_runs.Record.read(tmp_path / "record")
    assert record.covering(mutation) == ["tests/test_a.py::u", "tests/test_a.py::t"]
    assert record.quick(record.covering(mutation), 0.25) == ["tests/test_a.py::u"]
