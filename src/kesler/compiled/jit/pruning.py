"""Removal of branches that the learners of a kernel never take, before they are compiled.

Numba compiles every branch of a helper. What is known of a learner when a kernel is compiled, its
facts, decides many conditions: those that compare its settings with constants, directly or in a
helper that is called. The branches not taken are removed from Numba's intermediate representation
before its types are inferred, so that the helpers that only they call are not compiled either.

Facts only decide conditions; no value is replaced. A learner for which the facts hold computes the
same, bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Any, NamedTuple

from kesler.compiled.jit.numba_internals import (
    PRUNING,
    compute_cfg_from_blocks,
    compute_live_map,
    compute_use_defs,
    definitions_of,
    numba_ir,
    redefine,
    run_frontend,
)
from kesler.compiled.jit.pointers import Facts, Pointed

Values = frozenset[Any]


class ArrayFacts(NamedTuple):
    """What is known of an array, or of its shape: facts by the rest of their names."""

    facts: Facts


class Constant(NamedTuple):
    """A constant that is not a number, such as a function."""

    value: Any


Known = Values | Pointed | ArrayFacts | Constant | None
"""The values that an expression may have, its type or what is known of it; None if nothing is."""

NO_ITEM = object()


def prune(function_ir: Any, arguments: Sequence[Any]) -> bool:
    """Remove the branches that facts decide; return whether there were any.

    Parameters
    ----------
    function_ir : Numba's intermediate representation of a function, which is changed.
    arguments : what is known of each argument, such as its type.
    """
    has_changed = False
    while _decide_branches(function_ir, Reader(function_ir, arguments)):
        has_changed = True
        _remove_dead_code(function_ir)
        redefine(function_ir)
    return has_changed


def _remove_dead_code(function_ir: Any) -> None:
    """Remove blocks that are never reached, and values of ``a or b`` that are never used.

    Both operands are assigned to one variable, the first one before the branch that skips the
    other.
    """
    blocks = function_ir.blocks
    for label in compute_cfg_from_blocks(blocks).dead_nodes():
        del blocks[label]
    graph, uses = compute_cfg_from_blocks(blocks), compute_use_defs(blocks)
    live = compute_live_map(graph, blocks, uses.usemap, uses.defmap)
    for block in blocks.values():
        if isinstance(block.body[-1], numba_ir.Jump):
            needed = live[block.body[-1].target]
            block.body = [each for each in block.body if not _is_unused_phi(each, needed)]


def _is_unused_phi(statement: Any, needed: set[str]) -> bool:
    name = statement.target.name if isinstance(statement, numba_ir.Assign) else ""
    return name.startswith("$phi") and name not in needed


def _decide_branches(function_ir: Any, reader: Reader) -> bool:
    has_changed = False
    for block in function_ir.blocks.values():
        branch = block.body[-1]
        if isinstance(branch, numba_ir.Branch):
            truths = {bool(value) for value in reader.values_of(branch.cond) or (True, False)}
            if len(truths) == 1:
                target = branch.truebr if truths.pop() else branch.falsebr
                block.body[-1] = numba_ir.Jump(target, branch.loc)
                has_changed = True
    return has_changed


@cache
def results_of(function: Callable[..., Any], arguments: tuple[Known, ...]) -> Values | None:
    """Return the values that a function may return for arguments of which this is known."""
    if function.__code__.co_argcount != len(arguments):
        return None
    function_ir = run_frontend(function)
    prune(function_ir, arguments)
    reader, found = Reader(function_ir, arguments), Values()
    for block in function_ir.blocks.values():
        if isinstance(block.body[-1], numba_ir.Return):
            values = reader.values_of(block.body[-1].value)
            if values is None:
                return None
            found |= values
    return found


class Reader:
    """Reads what is known of the variables of a function.

    Parameters
    ----------
    function_ir : Numba's intermediate representation of the function.
    arguments : what is known of each argument.
    """

    def __init__(self, function_ir: Any, arguments: Sequence[Any]) -> None:
        self._definitions_of = definitions_of(function_ir)
        self._arguments = arguments
        self._known: dict[str, Known] = {}

    def values_of(self, variable: Any) -> Values | None:
        """Return the values that a variable may have, None if that is unknown."""
        found = self._of(variable)
        return found if isinstance(found, frozenset) and found else None

    def _of(self, variable: Any) -> Known:
        name = variable.name
        if name not in self._known:
            self._known[name] = None  # unknown to itself: in a loop, a variable depends on itself
            self._known[name] = _joined([self._defined(d) for d in self._definitions_of[name]])
        return self._known[name]

    def _defined(self, definition: Any) -> Known:
        if isinstance(definition, numba_ir.Var):
            return self._of(definition)
        if isinstance(definition, numba_ir.Arg):
            return self._arguments[definition.index]
        if isinstance(definition, (numba_ir.Const, numba_ir.Global, numba_ir.FreeVar)):
            value = definition.value
            return Values([value]) if isinstance(value, (bool, int, float)) else Constant(value)
        read = getattr(self, f"_of_{getattr(definition, 'op', '')}", None)
        return None if read is None else read(definition)

    def _of_cast(self, expression: Any) -> Known:
        return self._of(expression.value)

    def _of_getattr(self, expression: Any) -> Known:
        base, name = self._of(expression.value), expression.attr
        if isinstance(base, Pointed):
            found, values = base.field(name), base.facts.values(name)
            if isinstance(found, Pointed):
                return found
            return ArrayFacts(base.facts.of(name)) if values is None else values
        return ArrayFacts(base.facts.of(name)) if isinstance(base, ArrayFacts) else None

    def _of_static_getitem(self, expression: Any) -> Known:
        return self._item(expression, expression.index)

    def _of_getitem(self, expression: Any) -> Known:
        index = self.values_of(expression.index)
        return self._item(expression, next(iter(index)) if index and len(index) == 1 else NO_ITEM)

    def _item(self, expression: Any, index: Any) -> Known:
        base = self._of(expression.value)
        if not isinstance(base, ArrayFacts):
            return None
        length = base.facts.values(str(index))
        return base.facts.values("each") if length is None else length

    def _of_binop(self, expression: Any) -> Known:
        left, right = self.values_of(expression.lhs), self.values_of(expression.rhs)
        if left is None or right is None:
            return None
        return Values(expression.fn(*pair) for pair in product(left, right))

    def _of_unary(self, expression: Any) -> Known:
        values = self.values_of(expression.value)
        return None if values is None else Values(expression.fn(value) for value in values)

    def _of_pair_second(self, expression: Any) -> Known:
        """Return {False}, the end of a loop, if it is one over a range of length 0."""
        step = self._only(expression.value)
        loop = self._only(getattr(step, "value", None))
        call = self._only(getattr(loop, "value", None))
        if getattr(call, "op", "") != "call" or self._of(call.func) != Constant(range):
            return None
        is_empty = len(call.args) == 1 and self.values_of(call.args[0]) == Values([0])
        return Values([False]) if is_empty else None

    def _only(self, variable: Any) -> Any:
        """Return the only definition of a variable, None if there are several."""
        while isinstance(variable, numba_ir.Var):
            found = self._definitions_of[variable.name]
            variable = found[0] if len(found) == 1 else None
        return variable

    def _of_call(self, expression: Any) -> Known:
        called, known = self._of(expression.func), [self._of(a) for a in expression.args]
        if not isinstance(called, Constant) or not known or expression.kws or expression.vararg:
            return None
        if called.value is bool:
            return Values(map(bool, known[0])) if isinstance(known[0], frozenset) else None
        function = called.value
        if hasattr(function, "choose") and isinstance(known[0], Pointed):
            function = function.choose(known[0])
        body = getattr(function, "py_func", None)
        return None if body is None else _results_of_each(body, known)


def _results_of_each(function: Callable[..., Any], known: list[Known]) -> Values | None:
    """Return the values that a function may return, called with each value of its arguments.

    Values of the same argument that are compared several times are then known to be the same one.
    """
    each = [[Values([v]) for v in k] if isinstance(k, frozenset) else [k] for k in known]
    found = Values()
    for arguments in product(*each):
        values = results_of(function, arguments)
        if values is None:
            return None
        found |= values
    return found


def _joined(found: list[Known]) -> Known:
    """Return what is known of a variable with several definitions."""
    if len(found) == 1:
        return found[0]
    sets = [values for values in found if isinstance(values, frozenset)]
    return Values().union(*sets) if sets and len(sets) == len(found) else None


PRUNING.append(prune)
