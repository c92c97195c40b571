"""The mutants of a module: small changes of its source that a test should notice.

Texts, annotations and docstrings stay as they are, and so does what only names things: a change there
is either one of taste or breaks the import of the module, which shows nothing of its tests.
"""

from __future__ import annotations

import ast
import itertools
import re
from typing import NamedTuple

#: Operators and what they are replaced by: their limit, their opposite.
OTHERS: dict[str, tuple[str, ...]] = {
    "<": ("<=", ">="),
    "<=": ("<", ">"),
    ">": (">=", "<="),
    ">=": (">", "<"),
    "==": ("!=",),
    "!=": ("==",),
    "is": ("is not",),
    "is not": ("is",),
    "in": ("not in",),
    "not in": ("in",),
    "and": ("or",),
    "or": ("and",),
    "+": ("-",),
    "-": ("+",),
    "*": ("/",),
    "/": ("*",),
    "//": ("*",),
    "%": ("*",),
    "&": ("|",),
    "|": ("&",),
    "<<": (">>",),
    ">>": ("<<",),
}
SPELLINGS: dict[type[ast.AST], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.And: "and", ast.Or: "or",
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.BitAnd: "&", ast.BitOr: "|", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "any": "all", "all": "any", "minimum": "maximum", "maximum": "minimum",
    "floor": "ceil", "ceil": "floor", "append": "appendleft", "appendleft": "append",
}  # fmt: skip
TEXTS = {"left": "right", "right": "left"}


class Mutant(NamedTuple):
    """A change of one place: bytes ``start`` to ``end`` of the file become ``text``."""

    path: str
    line: int
    #: The line on which its statement begins.
    statement: int
    start: int
    end: int
    text: str

    def apply(self, source: bytes) -> bytes:
        """Return the source with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    def shown(self, source: bytes) -> tuple[str, str]:
        """Return what stands there before and after the change: its whole line, or lines."""
        begin = source.rfind(b"\n", 0, self.start) + 1
        end = source.find(b"\n", self.end)
        changed = source[begin : self.start] + self.text.encode() + source[self.end : end]
        before, after = (" ".join(part.decode().split()) for part in (source[begin:end], changed))
        return before, after


def places(source: bytes, path: str) -> list[list[Mutant]]:
    """Return for each place of a module that can be changed its mutants."""
    maker = _Maker(source, path)
    maker.visit(ast.parse(source))
    return maker.places


def compiles(source: bytes) -> bool:
    """Return whether a change leaves a program at all."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Maker(ast.NodeVisitor):
    def __init__(self, source: bytes, path: str) -> None:
        self._source, self._path = source, path
        self._statement = 0
        lengths = [len(line) for line in source.splitlines(keepends=True)]
        self._lines = [0, *itertools.accumulate(lengths)]
        self.places: list[list[Mutant]] = []

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._lines[node.end_lineno - 1] + node.end_col_offset

    def _change(self, start: int, end: int, *texts: str) -> None:
        line = self._source.count(b"\n", 0, start) + 1
        if texts:
            self.places.append(
                [Mutant(self._path, line, self._statement, start, end, text) for text in texts]
            )

    def _replace(self, node: ast.expr | ast.stmt, *texts: str) -> None:
        self._change(self._start(node), self._end(node), *texts)

    def _operator(self, operator: ast.AST, start: int, end: int) -> None:
        """Replace an operator that stands somewhere between two places, beside brackets perhaps."""
        spelling = SPELLINGS.get(type(operator))
        if spelling is None:
            return
        word = spelling.replace(" ", r"\s+") if spelling[0].isalpha() else re.escape(spelling)
        if found := re.search(word.encode(), self._source[start:end]):
            self._change(start + found.start(), start + found.end(), *OTHERS[spelling])

    def _negate(self, test: ast.expr) -> None:
        text = self._source[self._start(test) : self._end(test)].decode()
        # The opposite of a comparison, and of "not", is a mutant of its own.
        if not isinstance(test, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Constant):
            self._replace(test, f"(not ({text}))")

    def visit(self, node: ast.AST) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom | ast.JoinedStr | ast.Assert):
            return
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            return
        outside = self._statement
        if isinstance(node, ast.stmt):
            self._statement = node.lineno
        if isinstance(node, ast.If | ast.IfExp | ast.While):
            self._negate(node.test)
        for test in getattr(node, "ifs", ()):
            self._negate(test)
        super().visit(node)
        self._statement = outside  # a case after statements has another condition of theirs

    def visit_keyword(self, node: ast.keyword) -> None:
        if node.arg != "strict":  # of zip: no values are there to be lost
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._drop(node, [node.target])
            self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        for statement in node.body:
            self.visit(statement)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if any(ast.unparse(base).startswith(("Protocol", "TypedDict")) for base in node.bases):
            return
        for statement in node.body:
            self.visit(statement)

    # -- expressions ------------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides[:-1], sides[1:], strict=True):
            self._operator(operator, self._end(left), self._start(right))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in itertools.pairwise(node.values):
            self._operator(node.op, self._end(left), self._start(right))
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        texts = (ast.JoinedStr, ast.List, ast.Tuple)
        is_text = any(isinstance(side, texts) or _is_text(side) for side in (node.left, node.right))
        if not is_text:
            self._operator(node.op, self._end(node.left), self._start(node.right))
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self._change(self._start(node), self._start(node.operand), "")
        if isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
            return
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._replace(node, str(not node.value))
        elif isinstance(node.value, int):
            self._replace(node, str(node.value + 1))
        elif isinstance(node.value, float):
            self._replace(node, repr(node.value * 2 if node.value else 1.0))
        elif node.value in TEXTS:
            self._replace(node, repr(TEXTS[node.value]))

    def visit_Call(self, node: ast.Call) -> None:
        function = node.func
        name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if name in NAMES:
            end = self._end(function)
            self._change(end - len(name), end, NAMES[name])
        self.generic_visit(node)

    # -- statements -------------------------------------------------------------------------------

    def _drop(self, node: ast.stmt, targets: list[ast.expr]) -> None:
        """Leave out an assignment that is not to a name: without a name its function could not go on."""
        if all(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
            self._replace(node, "pass")

    def visit_Assign(self, node: ast.Assign) -> None:
        self._drop(node, node.targets)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._operator(node.op, self._end(node.target), self._start(node.value))
        self._replace(node, "pass")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if isinstance(node.value, ast.Call):
            self._replace(node, "pass")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._replace(node, "pass")

    def visit_Raise(self, node: ast.Raise) -> None:
        self._replace(node, "pass")

    def visit_Break(self, node: ast.Break) -> None:
        self._replace(node, "continue")

    def visit_Continue(self, node: ast.Continue) -> None:
        self._replace(node, "break")


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
