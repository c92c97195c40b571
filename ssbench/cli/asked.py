"""What a command was asked: a frozen record of its own, in which each value says where it is from.

:func:`make_asked` makes it of what a parser found, and nothing else sees the parser's namespace. A command's
record is a class beside its options, made of classes that several commands share. Fields have the names of
options; one with a default is not an option of each command.

Options may not go together. :func:`fit_options` goes through a table of such cases (:class:`UnfitOptions`).
What the command line has is refused then. What only a file or a variable sets is left out, because that is
for many commands, and no user can leave it out of one. The record that was passed stays as it is: another run
may have use of what does not fit this one.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

from ssbench.base.errors import UsageError
from ssbench.base.text_values import FieldValues
from ssbench.cli.parser import Origin, ValueSource

_log = logging.getLogger(__name__)

_AnyAsked = TypeVar("_AnyAsked", bound="Asked")
_JudgedAsked_contra = TypeVar("_JudgedAsked_contra", bound="Asked", contravariant=True)
_Subject_contra = TypeVar("_Subject_contra", contravariant=True)


class LeftOut(NamedTuple):
    """An option of a file or a variable that did not fit the others."""

    where: str
    flag: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What each command is asked."""

    verbose: bool = False
    quiet: bool = False
    #: By the names of fields; those that are not there have their defaults. Words may have secrets, and
    #: what is asked in other words is the same.
    sources: Mapping[str, ValueSource] = field(default_factory=dict, repr=False, compare=False)
    left_out: tuple[LeftOut, ...] = ()

    def hide_secrets(self) -> None:
        """Hide what other users of this machine should not see in the command line: nothing, of most."""

    def find_source(self, name: str) -> ValueSource:
        """Return where the value of a field is from."""
        return self.sources.get(name, ValueSource())

    def list_words(self, names: Iterable[str]) -> list[str]:
        """Return the words of a command line that set some options as they are set here."""
        return [word for name in names for word in self.find_source(name).words]

    def is_given(self, *names: str) -> bool:
        """Return whether the command line has one of some options."""
        return any(self.find_source(name).origin is Origin.LINE for name in names)


def make_asked(record: type[_AnyAsked], parsed: Mapping[str, Any]) -> _AnyAsked:
    """Return the record of a command; raises UsageError.

    What is not one option is a field with a function of all that was parsed as ``metadata["read"]``.
    """
    values = {each.name: parsed[each.name] for each in fields(record) if each.name in parsed}
    values |= {each.name: each.metadata["read"](parsed) for each in fields(record) if "read" in each.metadata}
    return record(**values)


def read_more(
    asked: _AnyAsked, parser: argparse.ArgumentParser, words: Sequence[str]
) -> tuple[_AnyAsked, list[str]]:
    """Return a record with what further words say, and those that are no option of the parser.

    The records within it say where values are from, too.
    """
    names = [action.dest for action in parser._actions if _find_path(asked, action.dest)]
    before = {name: get_value(asked, name) for name in names}
    parsed, unknown = parser.parse_known_args(words, argparse.Namespace(**before))
    found = vars(parsed)
    for name, value in before.items():
        if found[name] is not value:
            asked = replace_value(asked, name, found[name])
    within = {each.name: getattr(asked, each.name) for each in fields(asked)}
    changed: dict[str, Any] = {
        name: replace(value, sources={**value.sources, **own})
        for name, value in within.items()
        if isinstance(value, Asked)
        and (own := {each: found["sources"][each] for each in _list_names(value) if each in found["sources"]})
    }
    return replace(asked, sources={**asked.sources, **found["sources"]}, **changed), unknown


# -- Values by the names of their options ----------------------------------------------------------


def _list_names(value: Any) -> Sequence[str]:
    """Return the names of the fields of a record, a dataclass or a struct; none of another value."""
    if is_dataclass(value):
        return [each.name for each in fields(value)]
    names: Sequence[str] = getattr(value, "__struct_fields__", ())
    return names


def _find_path(record: Any, name: str) -> tuple[str, ...]:
    """Return the names of the fields that lead to an option: its own, or first that of a record within."""
    names = _list_names(record)
    if name in names:
        return (name,)
    paths = ((own, *_find_path(getattr(record, own), name)) for own in names)
    return next((path for path in paths if len(path) > 1), ())


def get_value(record: Any, name: str) -> Any:
    """Return the value of a field of a record, or of one that it holds; None where there is no such field."""
    path = _find_path(record, name)
    for own in path:
        record = getattr(record, own)
    return record if path else None


def replace_value(record: Any, name: str, value: Any) -> Any:
    """Return a record with another value of a field that it has, or that a record within has."""
    if isinstance(value, FieldValues):
        for each, part in value.items():
            record = replace_value(record, each, part)
        return record
    own, *rest = _find_path(record, name)
    made = replace_value(getattr(record, own), name, value) if rest else value
    if is_dataclass(record):
        return replace(record, **{own: made})  # type: ignore[type-var]
    from msgspec import structs  # here, because it is slow to import and few records have structs

    return structs.replace(record, **{own: made})


# -- Options that do not go together ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UnfitOptions(Generic[_JudgedAsked_contra, _Subject_contra]):
    """A case in which some options (``--html``) do not fit."""

    flags: tuple[str, ...]
    #: Begins the message, as in ``--repeat prints a summary of all runs``.
    why: str
    when: Callable[[_JudgedAsked_contra, _Subject_contra], bool]
    #: The message where the command line has one of them; None: the reason, and which one to leave out.
    refusal: str | None = None
    is_refused: bool = True  # otherwise the command line is heeded, or refused elsewhere
    is_ignored: bool = True  # otherwise what is set elsewhere is no harm
    #: Whether one of the values of an option fits, which can have several; None: no value fits.
    fits: Callable[[_JudgedAsked_contra, Any], bool] | None = None
    origin: Origin = Origin.DEFAULT  # what the value is from where an option is left out


def fit_options(
    asked: _AnyAsked, rows: Sequence[UnfitOptions[_AnyAsked, _Subject_contra]], subject: _Subject_contra
) -> _AnyAsked:
    """Return a record without what does not fit; ``left_out`` says what that is. Logs what it leaves out.

    Raises UsageError for what the command line has. ``subject`` is what rows judge besides the record.
    """
    for row in rows:
        if not row.when(asked, subject):
            continue
        for flag in row.flags if row.is_ignored else ():
            asked = _leave_out(asked, flag, row)
        for flag in row.flags if row.is_refused else ():
            name = name_field(flag)
            value = get_value(asked, name)
            if asked.is_given(name) and value is not None and value != [] and value is not False:
                raise UsageError(row.refusal or f"{row.why}: leave out {flag}")
    return asked


def _leave_out(asked: _AnyAsked, flag: str, row: UnfitOptions[_AnyAsked, Any]) -> _AnyAsked:
    """Return a record with the default of an option that a file or a variable sets."""
    name = name_field(flag)
    source = asked.find_source(name)
    if source.origin not in {Origin.FILE, Origin.VARIABLE} or get_value(asked, name) == source.default:
        return asked
    left = LeftOut(source.where, flag, row.why)
    fitting = [each for each in get_value(asked, name) if row.fits(asked, each)] if row.fits else []
    if left not in asked.left_out:
        what = f"some values of {flag} are" if fitting else f"{flag} is"
        _log.info("%s: %s ignored: %s", left.where, what, left.why)
    made: _AnyAsked = replace_value(asked, name, fitting or source.default)
    sources = asked.sources if fitting else {**asked.sources, name: ValueSource(row.origin)}
    return replace(made, sources=sources, left_out=(*made.left_out, left))


def name_field(flag: str) -> str:
    """Return the name of the field of an option."""
    return flag[2:].replace("-", "_")
