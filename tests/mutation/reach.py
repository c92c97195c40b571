"""Which unit tests reach which line, how long each of them takes, and which are best for a mutant."""

from __future__ import annotations

import ast
import json
import marshal
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from marks import marked
from mutants import Mutant
from pytest_runs import Reached, file_of, reached
from separate import Call, Died, results

#: The tests of a mutant take so many seconds of CPU time at most, and a file of them so many to import.
SECONDS_OF_TESTS, SECONDS_OF_FILE = 25.0, 0.1

#: A file of tests that takes longer than this has stopped.
SECONDS_AT_MOST = 600.0


def measure(
    root: Path, sources: Mapping[str, bytes], kept: Mapping[str, Path], folder: Path, processes: int
) -> dict[str, Reached]:
    """Return what each test reaches that passes; run the files of tests whose results are not kept yet."""
    programs = folder / "programs"
    code = {path: compile(marked(source)[0], str(root / path), "exec") for path, source in sources.items()}
    programs.write_bytes(marshal.dumps(code))
    missing = [name for name, path in kept.items() if not path.exists()]
    missing.sort(key=lambda name: -(root / name).stat().st_size)  # at the end none is waited for long
    calls = (Call(name, (name, programs), SECONDS_AT_MOST) for name in missing)
    for name, result in results(reached, calls, processes):
        if isinstance(result, Died):
            print(f"mutation: left out {name}: its process ended, code {result.code}", file=sys.stderr)
        else:
            new = kept[name].with_suffix(".new")
            new.write_text(json.dumps(result))
            new.replace(kept[name])
    return {
        name: Reached(*each)
        for path in kept.values()
        if path.exists()
        for name, each in json.loads(path.read_text()).items()
    }


class Reach:
    """Finds the tests of a mutant from what each of them reaches."""

    def __init__(self, sources: Mapping[str, bytes], tests: Mapping[str, Reached]) -> None:
        self._tests = tests
        self._uses = {path: _Uses(path, source) for path, source in sources.items()}
        #: Tests that are quick and reach little else come first.
        breadth = {
            name: sum(lines.bit_count() for lines in each.lines.values()) for name, each in tests.items()
        }
        self._order = {
            name: place
            for place, name in enumerate(
                sorted(tests, key=lambda name: (breadth[name] * max(tests[name].seconds, 0.02), name))
            )
        }

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests that reach a mutant and then, for what tests share, others of their files."""
        near = self._of_lines(self._lines(mutant))
        if not near and mutant.statement not in self._uses[mutant.path].marked:
            near = self._of_lines({mutant.path: -1})
        files = {*map(file_of, near)}
        others = (name for name in self._tests if file_of(name) in files and name not in near)
        return self._in_time([*self._sorted(near), *self._sorted(others)]) or self._quickest(near)

    def seconds(self, names: Iterable[str]) -> dict[str, float]:
        """Return the CPU time that each of these tests takes."""
        return {name: self._tests[name].seconds for name in names}

    def _lines(self, mutant: Mutant) -> dict[str, int]:
        """Return the lines that show whether a mutant works: its own, or those that use what it defines."""
        own = self._uses[mutant.path]
        if mutant.statement in own.marked:
            return {mutant.path: 1 << mutant.statement}
        names, lines = own.defined.get(mutant.statement, set()), own.body.get(mutant.statement, set())
        found = {mutant.path: _bits(lines)}
        for path, uses in self._uses.items():
            found[path] = found.get(path, 0) | _bits(uses.lines(names))
        return found

    def _of_lines(self, lines: Mapping[str, int]) -> set[str]:
        return {
            name
            for name, each in self._tests.items()
            if any(each.lines.get(path, 0) & wanted for path, wanted in lines.items())
        }

    def _sorted(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=self._order.__getitem__)

    def _in_time(self, names: Iterable[str]) -> list[str]:
        kept, files, left = [], set(), SECONDS_OF_TESTS
        for name in names:
            file = file_of(name)
            cost = self._tests[name].seconds + (0.0 if file in files else SECONDS_OF_FILE)
            if cost <= left:
                kept.append(name)
                files.add(file)
                left -= cost
        return kept

    def _quickest(self, names: Iterable[str]) -> list[str]:
        return sorted(names, key=lambda name: self._tests[name].seconds)[:1]


def _bits(lines: Iterable[int]) -> int:
    return sum(1 << line for line in set(lines))


class _Uses(ast.NodeVisitor):
    """Which lines of functions mention which names, and which names an import defines."""

    def __init__(self, path: str, source: bytes) -> None:
        self.marked = marked(source)[1]
        #: By its line, what a statement outside of functions defines, and the body of a function there.
        self.defined: dict[int, set[str]] = defaultdict(set)
        self.body: dict[int, set[int]] = defaultdict(set)
        self._mentioned: dict[str, set[int]] = defaultdict(set)
        self._derived: dict[str, set[str]] = defaultdict(set)
        self._statement: ast.stmt | None = None
        self._inside = False
        self.visit(ast.parse(source))

    def lines(self, names: Iterable[str]) -> set[int]:
        """Return the lines that mention one of the names, or one that is derived of it."""
        left, seen = [*names], set[str]()
        found = set[int]()
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                found |= self._mentioned.get(name, set[int]())
                left += self._derived.get(name, ())
        return found

    def visit(self, node: ast.AST) -> None:
        outer, inside = self._statement, self._inside
        if isinstance(node, ast.stmt):
            self._statement = node
            if not inside:
                self.defined[node.lineno] |= _targets(node)
                if isinstance(node, ast.FunctionDef):
                    self.body[node.lineno] |= {
                        each.lineno for each in ast.walk(node) if isinstance(each, ast.stmt)
                    }
        if isinstance(node, ast.Name | ast.Attribute):
            self._mention(node.id if isinstance(node, ast.Name) else node.attr)
        if isinstance(node, ast.FunctionDef):
            self._function(node)
        else:
            self.generic_visit(node)
        self._statement, self._inside = outer, inside

    def _function(self, node: ast.FunctionDef) -> None:
        for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
            self.visit(default)
        self._inside = True
        for statement in node.body:
            self.visit(statement)

    def _mention(self, name: str) -> None:
        assert self._statement is not None
        if self._inside:
            self._mentioned[name].add(self._statement.lineno)
        else:
            self._derived[name] |= self.defined[self._statement.lineno]
            self._mentioned[name] |= self.body[self._statement.lineno]


def _targets(node: ast.stmt) -> set[str]:
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    return {each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
