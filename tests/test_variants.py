"""Each operation of a trial has one row, with a function for each kind of learner."""

import ast
import inspect
from pathlib import Path

import pytest

import kesler.compiled
from kesler.compiled.jit.decorators import _digest, by_class
from kesler.compiled.trial import variants
from kesler.compiled.trial.variants import KINDS, function_named
from kesler.state.records import EnsembleRecord, SparseWeights, SupportVectors, TableWeights

FILE = Path(variants.__file__)
ROOT = Path(kesler.compiled.__file__).parent
ROWS = {
    ast.unparse(node.targets[0]): {
        each.arg: ast.literal_eval(each.value)
        if isinstance(each.value, ast.Constant)
        else ast.unparse(each.value)
        for each in node.value.keywords
    }
    for node in ast.parse(FILE.read_text()).body
    if isinstance(node, ast.Assign)
    and isinstance(node.value, ast.Call)
    and ast.unparse(node.value.func) == "by_weights"
}


def test_there_are_rows():
    assert len(ROWS) > 30 and "score" in ROWS


def test_each_class_of_weights_is_a_kind():
    weights = TableWeights, SparseWeights, SupportVectors
    assert list(KINDS) == [each.__name__ for each in weights]


@pytest.mark.parametrize("operation", ROWS)
def test_all_functions_of_an_operation_are_there_and_take_the_same(operation):
    named = [name for name in ROWS[operation].values() if "." in name]
    functions = [getattr(f, "py_func", f) for f in map(function_named, named)]
    parameters = {tuple(inspect.signature(f).parameters) for f in functions}
    assert len({len(each) for each in parameters}) == 1


def test_all_functions_for_one_kind_are_in_a_row():
    """A function that is named for a kind and listed nowhere would never run."""
    listed = {name for row in ROWS.values() for name in row.values()}
    strays = [
        f"{dotted(file)}.{node.name}"
        for file in ROOT.rglob("*.py")
        if not dotted(file).endswith(("dual_ascent", "supports"))  # whose names mean other kinds
        for node in ast.parse(file.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith(("dense_", "sparse_", "kernel_"))
        and f"{dotted(file)}.{node.name}" not in listed
    ]
    assert strays == []


def dotted(file: Path) -> str:
    """Return the name of a module below `kesler.compiled`."""
    return ".".join(file.relative_to(ROOT).with_suffix("").parts)


def test_a_function_is_compiled_again_when_a_version_that_it_calls_changes():
    """Its name in the cache tells what it is compiled from."""

    def calls(version):
        chosen = by_class({EnsembleRecord: version})
        return lambda ensemble: chosen(ensemble)

    first, second = calls(lambda ensemble: 1.0), calls(lambda ensemble: 2.0)
    assert _digest(first) == _digest(calls(lambda ensemble: 1.0)) != _digest(second)
