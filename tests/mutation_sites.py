"""Where the source can be mutated, and how: every change is of one span of a file's text."""

from __future__ import annotations

import ast
import hashlib
import io
import random
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

WEIGHTS = {"operator": 7, "constant": 6, "statement": 6, "lock": 1}
"""How often each kind is drawn: by the number of their sites, locks would never be."""

OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "//"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.Not: ("not ", ""),
    ast.USub: ("-", "+"),
    ast.Invert: ("~", ""),
}
SIMPLE = (
    ast.Assign,
    ast.AnnAssign,
    ast.AugAssign,
    ast.Expr,
    ast.Return,
    ast.Raise,
    ast.Delete,
    ast.Assert,
    ast.Break,
    ast.Continue,
)
UNTOUCHED_NAMES = {"__all__", "__slots__", "TYPE_CHECKING"}
LOCK = re.compile(r"(?:^|_)r?lock(?:$|_|ed)", re.IGNORECASE)


@dataclass(frozen=True)
class Mutation:
    """One span of a file and the text that replaces it."""

    path: str
    line: int
    scope: str  # the function around the span as its code object names it, "" for the module
    kind: str
    start: int
    end: int
    before: str
    after: str
    key: str = ""

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    def applied(self, text: str) -> str:
        """Return the file's text with this mutation."""
        if text[self.start : self.end] != self.before:
            raise ValueError(f"{self.where} no longer reads {self.before!r}: draw again")
        return text[: self.start] + self.after + text[self.end :]

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Source:
    """The text of a file, and the positions of its nodes and operators in characters."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = text.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line))

    def offset(self, line: int, byte: int) -> int:
        """Return the place of a position of ast, which counts bytes of UTF-8."""
        prefix = self.lines[line - 1].encode()[:byte] if line <= len(self.lines) else b""
        return self.starts[line - 1] + len(prefix.decode())

    def span(self, node: Any) -> tuple[int, int]:
        start = self.offset(node.lineno, node.col_offset)
        return start, self.offset(node.end_lineno, node.end_col_offset)

    @cached_property
    def tokens(self) -> list[tuple[int, int, str]]:
        read = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [
            (self.starts[each.start[0] - 1] + each.start[1], len(each.string), each.string)
            for each in read
            if each.type in (tokenize.OP, tokenize.NAME)
        ]

    def operator(self, left: ast.AST, right: ast.AST, text: str) -> tuple[int, int] | None:
        """Return the span of an operator between two operands, which parentheses may surround."""
        low, high = self.span(left)[1], self.span(right)[0]
        words = text.split()
        found = [each for each in self.tokens if low <= each[0] < high and each[2] in words]
        if not found:
            return None
        return found[0][0], found[-1][0] + found[-1][1]


class Sites(ast.NodeVisitor):
    """Collect the mutations of one file."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.source = Source(text)
        self.tree = ast.parse(text)
        self.names: list[str] = []
        self.is_function: list[bool] = []
        self.found: list[Mutation] = []
        self.visit(self.tree)

    def add(self, kind: str, span: tuple[int, int] | None, after: str) -> None:
        if span is None:
            return
        start, end = span
        before = self.source.text[start:end]
        line = self.source.text.count("\n", 0, start) + 1
        scope = ".".join(self.names)
        self.found.append(Mutation(self.path, line, scope, kind, start, end, before, after))

    # ---- what is never touched -------------------------------------------------------------------

    def visit_Import(self, node: ast.Import) -> None:
        pass

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        pass

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Python 3.11 gives no true positions inside f-strings, most of which are messages."""

    def visit_arg(self, node: ast.arg) -> None:
        pass

    def visit_If(self, node: ast.If) -> None:
        if "TYPE_CHECKING" in ast.unparse(node.test):
            for each in node.orelse:
                self.visit(each)
        else:
            self.generic_visit(node)

    # ---- scopes ----------------------------------------------------------------------------------

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for each in [*node.decorator_list, node.args]:
            self.visit(each)
        self._visit_body(node, True)

    visit_FunctionDef = _visit_function
    visit_AsyncFunctionDef = _visit_function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for each in [*node.decorator_list, *node.keywords]:
            self.visit(each)
        self._visit_body(node, False)

    def _visit_body(self, node: Any, is_function: bool) -> None:
        outer = list(self.names)
        if self.is_function and self.is_function[-1]:
            self.names.append("<locals>")
        self.names.append(node.name)
        self.is_function.append(is_function)
        for each in node.body:
            self.visit(each)
        self.is_function.pop()
        self.names = outer

    # ---- statements ------------------------------------------------------------------------------

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, SIMPLE) and not self._skipped(node):
            if self.is_function or isinstance(node, ast.Expr):
                self.add("statement", self.source.span(node), "pass")
            self._visit_inside(node)
        elif not isinstance(node, SIMPLE):
            super().visit(node)

    def _skipped(self, node: Any) -> bool:
        """Whether a statement is a docstring, an annotation alone or a list of names."""
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return True
        targets = getattr(node, "targets", [getattr(node, "target", None)])
        return any(isinstance(each, ast.Name) and each.id in UNTOUCHED_NAMES for each in targets)

    def _visit_inside(self, node: Any) -> None:
        if isinstance(node, ast.Raise):
            return  # the message of an error
        if isinstance(node, ast.AugAssign):
            before, after = OPERATORS.get(type(node.op), ("", ""))
            if before:
                span = self.source.operator(node.target, node.value, before + "=")
                self.add("operator", span, after + "=")
        if isinstance(node, ast.AnnAssign):
            self.visit(node.target)
            self.visit(node.value)  # type: ignore[arg-type]
        else:
            self.generic_visit(node)

    def visit_With(self, node: ast.With) -> None:
        item = node.items[0]
        context = item.context_expr
        name = ast.unparse(context).split("(")[0].rsplit(".", 1)[-1]
        if len(node.items) == 1 and item.optional_vars is None and LOCK.search(name):
            start = self.source.span(node)[0]
            end = self.source.text.index(":", self.source.span(context)[1])
            self.add("lock", (start, end), "if True")
        self.generic_visit(node)

    # ---- operators and constants -----------------------------------------------------------------

    def _exchange(self, operator: ast.AST, left: ast.AST, right: ast.AST) -> None:
        before, after = OPERATORS.get(type(operator), ("", ""))
        if before:
            self.add("operator", self.source.operator(left, right, before), after)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for i, operator in enumerate(node.ops):
            self._exchange(operator, operands[i], operands[i + 1])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._exchange(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for i in range(len(node.values) - 1):
            self._exchange(node.op, node.values[i], node.values[i + 1])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        before, after = OPERATORS.get(type(node.op), ("", ""))
        start = self.source.span(node)[0]
        if before and self.source.text.startswith(before, start):
            self.add("operator", (start, start + len(before)), after)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self.add("constant", self.source.span(node), str(not node.value))
        elif isinstance(node.value, (int, float)):
            span = self.source.span(node)
            text = self.source.text[slice(*span)]
            self.add("constant", span, repr(node.value + 1))
            if node.value:
                self.add("constant", span, f"(-{text})")
                self.add("constant", span, "0" if isinstance(node.value, int) else "0.0")


def sites_of(path: str, text: str) -> list[Mutation]:
    """Return every mutation of a file that this script knows, in the order of the file."""
    return Sites(path, text).found


def is_change(text: str, mutation: Mutation) -> bool:
    """Whether the mutated file is Python, and another program than before."""
    try:
        mutated = ast.parse(mutation.applied(text))
    except SyntaxError:
        return False
    return ast.dump(mutated) != ast.dump(ast.parse(text))


def sources(root: Path, folders: Iterable[str]) -> dict[str, str]:
    """Return the text of every Python file in some folders, by its path from the root."""
    files = sorted({file for folder in folders for file in (root / folder).rglob("*.py")})
    return {each.relative_to(root).as_posix(): each.read_text("utf-8") for each in files}


def draw(
    root: Path, n_mutations: int, seed: str, folders: Iterable[str] = ("src",)
) -> list[Mutation]:
    """Draw mutations at random: first the kind, then the place, then what to put there.

    The same tree and seed give the same mutations, and fewer of them are the first of more.
    """
    texts = sources(root, folders)
    drawn = _endless(texts, random.Random(seed))
    return [next(drawn) for _ in range(n_mutations)]


def _endless(texts: dict[str, str], chance: random.Random) -> Iterator[Mutation]:
    places = _places(texts)
    while any(places.values()):
        kinds = [kind for kind in WEIGHTS if places[kind]]
        kind = chance.choices(kinds, [WEIGHTS[each] for each in kinds])[0]
        place = places[kind].pop(chance.randrange(len(places[kind])))
        mutation = chance.choice(place)
        if is_change(texts[mutation.path], mutation):
            yield _keyed(mutation, texts[mutation.path])


def _places(texts: dict[str, str]) -> dict[str, list[list[Mutation]]]:
    """Return what can replace each place, by kind: a number may become one of three."""
    places: dict[str, dict[tuple[str, int], list[Mutation]]] = {kind: {} for kind in WEIGHTS}
    for path, text in texts.items():
        for each in sites_of(path, text):
            places[each.kind].setdefault((path, each.start), []).append(each)
    return {kind: list(found.values()) for kind, found in places.items()}


def _keyed(mutation: Mutation, text: str) -> Mutation:
    """Return the mutation with the name by which the file of explanations knows it."""
    line = text.splitlines()[mutation.line - 1]
    settings = [mutation.path, mutation.scope, line, mutation.before, mutation.after]
    column = mutation.start - (text.rfind("\n", 0, mutation.start) + 1)
    digest = hashlib.sha256("\n".join([*settings, str(column)]).encode()).hexdigest()[:10]
    return Mutation(**{**mutation.as_dict(), "key": digest})
