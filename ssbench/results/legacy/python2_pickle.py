"""Reads the stat files of ssbench 0.0.1 to 0.2.13: Python 2 pickles of protocol 0.

A stat file is data from outside, and a pickle is a program. So this is an interpreter of its own of
the few instructions of protocol 0, which knows the four names that such files refer to and nothing
else, and hands out the results one by one instead of building the list of them all.

A pickler numbers every object that it writes, a dozen a result, in case it meets it again. A first
pass over the file finds the few numbers that are referred to; only these objects are kept.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ssbench.results.legacy.old_results import OldResultColumns, OldRunResults, make_old_run
from ssbench.results.reading import DamageError, Format, StatFileStream
from ssbench.results.run_description import RunDescription

#: No result and no scenario of such a file is longer than this (bytes).
_MAX_ENTRY_BYTES = 4 * 1024 * 1024
_MAX_STACK = 100_000
_CHUNK_BYTES = 256 * 1024
#: A file may have so many instructions, and beyond that so many for each of its bytes: compressed results
#: have about ten.
_FREE_INSTRUCTIONS = 2_000_000
_INSTRUCTIONS_A_BYTE = 30
_MAX_MEMO = 2**31


class _Mark:
    """Where a list, a dictionary or a tuple begins on the stack."""


class _Global:
    """A name that genuine files refer to; nothing is imported for it."""


class _Instance(dict[Any, Any]):
    """The scenario: what is kept of it is its state."""


_MARK = _Mark()
_RECONSTRUCTOR, _OBJECT, _SCENARIO, _ORDERED_DICT = _Global(), _Global(), _Global(), _Global()
_GLOBALS = {
    b"copy_reg _reconstructor": _RECONSTRUCTOR,
    b"__builtin__ object": _OBJECT,
    b"ssbench.scenario Scenario": _SCENARIO,
    b"ssbench.scenario ScenarioNoop": _SCENARIO,
    b"collections OrderedDict": _ORDERED_DICT,
    b"ssbench.ordered_dict OrderedDict": _ORDERED_DICT,
}
#: All that Python 2's repr makes of bytes.
_REPR_PATTERN = re.compile(rb"(?:[^\\]++|\\[\\'\"tnr]|\\x[0-9a-f]{2})*+")
#: Instructions that have an argument up to the end of the line; that of GLOBAL is two lines.
_LINE_INSTRUCTIONS = frozenset(b"pgSVILFc")


class _Instructions:
    """Cuts the stream into (instruction, argument)."""

    def __init__(self, stream: StatFileStream) -> None:
        self._stream = stream
        self._data = b""
        self._position = 0
        self._before = 0
        self._entry_began = 0
        self._left = _FREE_INSTRUCTIONS + _INSTRUCTIONS_A_BYTE * stream.size

    def entry_read(self) -> None:
        """Say that a result or the scenario is whole, so that what follows is another one."""
        self._entry_began = self.position

    @property
    def entry_bytes(self) -> int:
        """How many bytes the present one has so far."""
        return self.position - self._entry_began

    @property
    def position(self) -> int:
        """How many bytes were taken from the decompressed file."""
        return self._before + self._position

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        left = self._left
        while True:
            left -= 1
            if left < 0:
                raise DamageError("more instructions than a file of its size holds")
            if self._position >= len(self._data):
                self._more()
            code = self._data[self._position]
            self._position += 1
            if code in _LINE_INSTRUCTIONS:
                argument = self._line()
                if code == 99:  # c
                    argument += b" " + self._line()
                yield code, argument
            else:
                yield code, b""

    def _line(self) -> bytes:
        while (end := self._data.find(b"\n", self._position)) < 0:
            if len(self._data) - self._position > _MAX_ENTRY_BYTES:
                raise DamageError("a line that goes on without end")
            self._more()
        line = self._data[self._position : end]
        self._position = end + 1
        return line

    def _more(self) -> None:
        more = self._stream.read_some(_CHUNK_BYTES)
        if not more:
            raise DamageError("the file is cut off")
        self._before += self._position
        self._data = self._data[self._position :] + more
        self._position = 0


class _Memo:
    """Keeps the objects whose numbers are referred to somewhere in the file."""

    def __init__(self, instructions: _Instructions) -> None:
        self._wanted = bytearray()
        self._objects: dict[int, Any] = {}
        try:
            for code, argument in instructions:
                if code == 103:  # g
                    byte, bit = divmod(_memo_number(argument), 8)
                    if byte >= len(self._wanted):
                        if byte > instructions.position:  # each number up to it was put, in order
                            raise DamageError("a reference to what was never put")
                        self._wanted.extend(bytes(byte + 1 - len(self._wanted)))
                    self._wanted[byte] |= 1 << bit
                elif code == 46:  # .
                    return
        except DamageError:
            pass  # the second pass gets as far as this one, and says why it ends

    def put(self, number: int, value: Any) -> None:
        byte, bit = divmod(number, 8)
        if byte < len(self._wanted) and self._wanted[byte] >> bit & 1:
            self._objects[number] = value

    def get(self, number: int) -> Any:
        try:
            return self._objects[number]
        except KeyError:
            raise DamageError("a reference to what was never put") from None


class _Interpreter:
    """Runs a pickle of ``[scenario, results]``, and yields each result when it is whole."""

    def __init__(self, instructions: _Instructions, memo: _Memo) -> None:
        self._instructions = instructions
        self._memo = memo
        self._stack: list[Any] = []
        self._do: dict[int, Callable[[bytes], None]] = {
            ord("("): lambda _: self._stack.append(_MARK),
            ord("N"): lambda _: self._stack.append(None),
            ord("0"): lambda _: self._pop(),
            ord("1"): lambda _: self._items().clear(),
            ord("2"): lambda _: self._stack.append(self._top()),
            ord("l"): lambda _: self._stack.append(self._items()),
            ord("t"): lambda _: self._stack.append(tuple(self._items())),
            ord("d"): self._dictionary,
            ord("p"): lambda line: self._memo.put(_memo_number(line), self._top()),
            ord("g"): lambda line: self._stack.append(self._memo.get(_memo_number(line))),
            ord("S"): lambda line: self._stack.append(_string(line)),
            ord("V"): lambda line: self._stack.append(_unicode(line)),
            ord("I"): lambda line: self._stack.append(_integer(line)),
            ord("L"): lambda line: self._stack.append(_integer(line)),
            ord("F"): lambda line: self._stack.append(float(line)),
            ord("c"): self._global,
            ord("R"): self._reduce,
            ord("b"): self._build,
            ord("s"): self._set_item,
            ord("u"): self._set_items,
            ord("a"): self._append,
            ord("e"): self._append_all,
        }

    def results(self) -> Iterator[Any]:
        """Yield the scenario, then each result; raises DamageError."""
        stack, do = self._stack, self._do
        scenario_came = False
        for code, argument in self._instructions:
            # At the bottom lies the list of both, on it that of the results: what goes into that is a result.
            if code == 97 and len(stack) == 3 and scenario_came:  # a
                yield stack.pop()
                self._instructions.entry_read()
                continue
            if code == 46:  # .
                return
            try:
                do[code](argument)
            except KeyError:
                raise DamageError(f"no pickle of ssbench: instruction {chr(code)!r}{self._where()}") from None
            except (ValueError, TypeError, IndexError, OverflowError) as error:
                raise DamageError(f"no pickle of ssbench: {error}{self._where()}") from None
            if len(stack) > _MAX_STACK:
                raise DamageError(f"no pickle of ssbench: too deep{self._where()}")
            if self._instructions.entry_bytes > _MAX_ENTRY_BYTES:
                raise DamageError(f"an entry that goes on without end{self._where()}")
            if code in (97, 101) and not scenario_came and len(stack) == 1 and stack[0]:  # a, e
                scenario_came = True
                yield stack[0][0]
                self._instructions.entry_read()

    def _where(self) -> str:
        return f" before byte {self._instructions.position:,} of the decompressed file"

    def _top(self) -> Any:
        return self._stack[-1]

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise ValueError("a mark where a value should be")
        return value

    def _items(self) -> list[Any]:
        """Take what stands above the topmost mark, and the mark."""
        items: list[Any] = []
        while (item := self._stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def _dictionary(self, _: bytes) -> None:
        items = self._items()
        self._stack.append(_entries(zip(items[::2], items[1::2], strict=True)))

    def _global(self, name: bytes) -> None:
        if name not in _GLOBALS:
            shown = ascii(name[:80].replace(b" ", b".").decode("latin-1"))[1:-1]
            raise DamageError(
                f"a pickle that names {shown}, which no stat file of ssbench does; it was not run"
            )
        self._stack.append(_GLOBALS[name])

    def _reduce(self, _: bytes) -> None:
        arguments, function = self._pop(), self._pop()
        if function is _RECONSTRUCTOR and arguments == (_SCENARIO, _OBJECT, None):
            self._stack.append(_Instance())
        elif function is _ORDERED_DICT and isinstance(arguments, tuple) and len(arguments) < 2:
            self._stack.append(_entries(*arguments))
        else:
            raise ValueError("a call that no stat file makes")

    def _build(self, _: bytes) -> None:
        state = self._pop()
        if not isinstance(state, dict):
            raise ValueError("a state that is no dictionary")
        if isinstance(self._dict_below(), _Instance):  # of an OrderedDict, its entries are all that matters
            self._top().update(state)

    def _set_item(self, _: bytes) -> None:
        value, key = self._pop(), self._pop()
        self._dict_below()[_key(key)] = value

    def _set_items(self, _: bytes) -> None:
        items = self._items()
        self._dict_below().update(_entries(zip(items[::2], items[1::2], strict=True)))

    def _dict_below(self) -> dict[Any, Any]:
        if not isinstance(self._top(), dict):
            raise ValueError("an entry of what is no dictionary")
        return self._top()  # type: ignore[no-any-return]

    def _append(self, _: bytes) -> None:
        value = self._pop()
        if not isinstance(self._top(), list):
            raise ValueError("an entry of what is no list")
        self._top().append(value)

    def _append_all(self, _: bytes) -> None:
        values = self._items()
        if not isinstance(self._top(), list):
            raise ValueError("entries of what is no list")
        self._top().extend(values)


def _entries(pairs: Iterable[Any] = ()) -> dict[Any, Any]:
    """Return a dictionary; raises ValueError and TypeError for what are no pairs."""
    return {_key(key): value for key, value in pairs}


def _key(value: Any) -> Any:
    """Return what a dictionary has as a key: never a tuple, whose hash takes for ever where it is nested."""
    if not isinstance(value, (str, int, float, type(None))):
        raise ValueError("a key that is no text")
    return value


class PickleResults(OldRunResults):
    """A stat file of ssbench 0.0.1 to 0.2.13."""

    def _read_run(self) -> RunDescription:
        first_pass = self._stream.first_pass()
        memo = _Memo(_Instructions(first_pass))
        first_pass.close()
        self._results = _Interpreter(_Instructions(self._stream), memo).results()
        scenario = next(self._results, None)
        run = make_old_run(scenario) if isinstance(scenario, _Instance) else None
        if run is None:
            raise DamageError("a pickle, but not of ssbench: no scenario in it")
        return run

    def _read_rows(self, columns: OldResultColumns) -> Iterator[None]:
        for result in self._results:
            columns.add(result)
            yield


def _memo_number(line: bytes) -> int:
    try:
        number = int(line)
    except ValueError:
        number = -1
    if not 0 <= number < _MAX_MEMO:
        raise DamageError("an invalid number of an object")
    return number


def _string(line: bytes) -> str:
    """Decode what Python 2's repr made of bytes; they are UTF-8, or else latin-1."""
    if len(line) < 2 or line[:1] != line[-1:] or line[:1] not in (b"'", b'"'):
        raise ValueError("a string without quotes")
    data = line[1:-1]
    if b"\\" in data:
        if not _REPR_PATTERN.fullmatch(data):
            raise ValueError("a string with an escape that Python 2 does not write")
        data, _ = codecs.escape_decode(data)
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _unicode(line: bytes) -> str:
    """Decode a unicode string; a half of a surrogate pair, which no file can hold, is replaced."""
    text = codecs.raw_unicode_escape_decode(line)[0]
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _integer(line: bytes) -> int | bool:
    if line in (b"00", b"01"):
        return line == b"01"
    if len(line) > 4000:
        raise ValueError("a number of thousands of digits")
    return int(line.removesuffix(b"L"))


def _recognises(head: bytes) -> bool:
    """Whether a list is put as the first object of a pickle."""
    return head.startswith((b"(lp", b"(l."))


FORMAT = Format("ssbench 0.0.1 to 0.2.13", _recognises, PickleResults)
