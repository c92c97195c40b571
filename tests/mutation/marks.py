"""Source with a mark before each statement of its functions, which notes that the statement was reached.

A tracer would slow down all of a process, and tests that look at the clock would fail. This costs some 50 ns
a statement, in the marked modules only, and sees every thread and greenlet.
"""

from __future__ import annotations

import ast

#: The function that a marked module calls with the number of a line; whoever imports it defines it.
REACHED = "__reached__"


def marked(source: bytes) -> tuple[ast.Module, frozenset[int]]:
    """Return the program with its marks, and the lines that have one."""
    marker = _Marker()
    tree = marker.visit(ast.parse(source))
    assert isinstance(tree, ast.Module)
    return ast.fix_missing_locations(tree), frozenset(marker.lines)


class _Marker(ast.NodeTransformer):
    def __init__(self) -> None:
        self.lines: set[int] = set()
        self._inside = False

    def visit(self, node: ast.AST) -> ast.AST | list[ast.stmt]:
        inside = self._inside
        self._inside = inside or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        self.generic_visit(node)
        self._inside = inside
        if not inside or not isinstance(node, ast.stmt) or _is_docstring(node):
            return node
        self.lines.add(node.lineno)
        call = ast.Call(ast.Name(REACHED, ast.Load()), [ast.Constant(node.lineno)], [])
        return [ast.copy_location(ast.Expr(call), node), node]


def _is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
