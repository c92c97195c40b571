"""Names of containers and objects: made from small numbers or by a template, and read again.

The usual names follow from a size class and a number; a pattern finds the containers. A template such as
``{hash:2}/{class}/{number:06d}`` makes others. A name has to tell of which object it is. So a template has
``{class}`` and ``{number}`` once each, and what is beside ``{number}``, on the side of ``{class}``, is no
digit. All else is as long in every name: without it, a name is the class, a known text, and all digits up to
that. No two objects have one name.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ssbench.scenario.value_rules import MAX_NUMBER, Rule, shorten_value

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

#: A number, or an array of them.
_Number = TypeVar("_Number", int, "npt.NDArray[np.int64]")

#: How the name of a container ends that keeps the versions of its objects.
_VERSIONS_SUFFIX = "_versions"

#: How the name of a container ends in which Swift's s3api keeps the parts of objects.
_PARTS_SUFFIX = "+segments"

#: How a base name ends with which the names of containers have hyphens.
_HYPHEN = "-"

#: How the name of a container ends that has the segments of its objects, as of usual clients.
_SEGMENTS_SUFFIX = "_segments"

#: How the name of an object ends.
OBJECT_NUMBER_FORMAT = "%06d"

#: Bytes of the longest names that a Swift takes unless it is configured otherwise.
MAX_CONTAINER_NAME_BYTES = 256
MAX_OBJECT_NAME_BYTES = 1024

#: Parts of a path that clients and proxies resolve: a request for a container of this name would be for the
#: account, or for what is above it.
_DOT_SEGMENTS = {b".", b".."}


#: What the names of containers begin with, unless a scenario says otherwise.
DEFAULT_CONTAINER_BASE = "ssbench"


def container_stem(base: str) -> str:
    """Return what the names of containers begin with; the number follows.

    That is the base name with an underscore, unless it ends in a hyphen. An S3 store takes no underscore.
    """
    return base if base.endswith(_HYPHEN) else f"{base}_"


def container_name(base: str, number: int, policy: str | None) -> str:
    """Return ``<base>_<six or more digits>``, and ``_<policy>`` after it where one is set.

    With a base name that ends in a hyphen it is ``<base><six or more digits>``, and ``-<policy>``.
    """
    stem = container_stem(base)
    return f"{stem}{number:06d}{stem[-1]}{policy}" if policy else f"{stem}{number:06d}"


def split_container_number(number: _Number, accounts: int) -> tuple[_Number, _Number]:
    """Return the account, and the number there, of a container of operations that use several accounts.

    They take turns, so that objects in all containers by turns are in all accounts by turns too.
    """
    return number % accounts, number // accounts


#: How the names of accounts of our own begin, unless the user names them.
DEFAULT_ACCOUNT_BASE = "ssbench"


def make_account_names(base: str, count: int) -> list[str]:
    """Return the names of accounts, from 1 on, without the prefix of the reseller."""
    return [f"{base}{number}" for number in range(1, count + 1)]


def versioned_container(container: str) -> str:
    """Return the name of the container beside one, which keeps the versions of its objects."""
    return container + _VERSIONS_SUFFIX


def segments_container(container: str) -> str:
    """Return the name of the container beside one, which has the segments of its objects."""
    return container + _SEGMENTS_SUFFIX


def segments_prefix(name: str) -> str:
    """Return what the names of all segments of an object begin with, those of its earlier versions too."""
    return f"{replace_percent_signs(name)}/segments/"


def replace_percent_signs(name: str) -> str:
    """Return a name without ``%``; different names stay different.

    Ceph's gateway decodes the names in a manifest before it deletes the segments, and then does not find
    them.
    """
    return name.replace("=", "=3D").replace("%", "=25")


def container_pattern(base: str, policy: str | None) -> re.Pattern[str]:
    """Match whole names that :func:`container_name` makes for a base name.

    With a policy only those for that policy; without one those for any policy that Swift can have, whose
    name is letters, digits and hyphens, and those for none. The containers beside them, of
    :func:`versioned_container` and :func:`segments_container`, and those in which Swift's s3api keeps parts
    of objects, match too.
    """
    stem = container_stem(base)
    return re.compile(re.escape(stem) + _write_ending_pattern(stem[-1], policy))


def longer_base_pattern(base: str, policy: str | None) -> re.Pattern[str]:
    """Match whole names of containers whose base name begins with this one and a hyphen, and ends in one.

    Such are those of runs over both APIs, and of the rows of a suite. The group ``base`` is their base name.
    """
    beginning = re.escape(base.rstrip(_HYPHEN) + _HYPHEN)
    return re.compile(rf"(?P<base>{beginning}(?:.+?{_HYPHEN})?){_write_ending_pattern(_HYPHEN, policy)}")


def _write_ending_pattern(mark: str, policy: str | None) -> str:
    """Return what matches a name of a container after its stem, which ends in ``mark``."""
    ending = f"{mark}{re.escape(policy)}" if policy else f"({mark}[A-Za-z0-9-]+)?"
    beside = f"{_VERSIONS_SUFFIX}|{_SEGMENTS_SUFFIX}|{re.escape(_PARTS_SUFFIX)}"
    return rf"[0-9]{{6,}}{ending}({beside})?\Z"


def object_name(size_class: str, number: int) -> str:
    """Return ``<size class>_<six or more digits>``."""
    return object_stem(size_class) + OBJECT_NUMBER_FORMAT % number


_NUMBERED_PATTERN = re.compile(r"(.+)_([0-9]{6,})\Z", re.DOTALL)


def parse_object_name(name: str) -> tuple[str, int]:
    """Return what :func:`object_name` made a name of; nothing and 0 where it did not."""
    match = _NUMBERED_PATTERN.match(name)
    if match is None or object_name(match[1], int(match[2])) != name:
        return "", 0
    return match[1], int(match[2])


def object_stem(size_class: str) -> str:
    """Return what the names of a size class begin with; the number follows."""
    return f"{size_class}_"


def run_mark(run_id: int) -> str:
    """``ssb-`` and eight hexadecimal digits: what the transaction ids of a run's requests end in."""
    return f"ssb-{run_id & 0xFFFFFFFF:08x}"


#: What the names of the marks of runs begin with; no object of a run can have such a name.
MARK_PREFIX = ".ssbench-run-"


def mark_name(run: str) -> str:
    """Return the name of the object that is the mark of a run (:mod:`ssbench.run.run_marks`)."""
    return MARK_PREFIX + run


def object_prefix(group: str, size_class: str) -> str:
    """Return what the names of a size class begin with for the users of a group; empty: there are none."""
    return f"{group}-{size_class}" if group else size_class


def tagged_object_stem(size_class: str, tag: str) -> str:
    """Return what the names of a size class begin with in a run whose names are apart by ``tag``."""
    return f"{size_class}-{tag}" if tag else size_class


def may_be_container(name: bytes) -> bool:
    """Whether a container can have a name, and can be asked for by it."""
    return 0 < len(name) <= MAX_CONTAINER_NAME_BYTES and b"/" not in name and name not in _DOT_SEGMENTS


# -- Names of objects by a template ----------------------------------------------------------------


#: The template by which names are made where there is none.
DEFAULT_TEMPLATE = "{class}_{number:06d}"

#: Bytes of a name that are kept free: for what keeps the objects of two runs apart, and for what operations
#: of several requests append.
_RESERVED_BYTES = 64

#: Characters of a template; digits of a number; hexadecimal digits of all hashes, which are those of an MD5.
_MAX_TEMPLATE_CHARACTERS = 200
_MAX_DIGITS = 20
_MAX_HASH_DIGITS = 32
_HASH_DIGITS = 4

_WORD_PATTERN = re.compile(r"\{([^{}]*)\}")
_NUMBER_PATTERN = re.compile(r"number(?::(?:0([1-9][0-9]?))?d?)?", re.ASCII)
_HASH_PATTERN = re.compile(r"hash(?::([1-9][0-9]?))?", re.ASCII)

_EXPECTED_TEMPLATE = (
    "a text with {class} and {number} once each, or {name} for both, as in {class}/{number:06d} or"
    f" {{hash:2}}/{{name}}, of at most {_MAX_TEMPLATE_CHARACTERS} printable characters"
)


class _TemplatePart(NamedTuple):
    """A part of a template."""

    kind: str  # text, class, number or hash
    text: str = ""
    width: int = 0  # digits: of a number at least, of a hash exactly


class _Template(NamedTuple):
    make: Callable[[str, int], str]
    pattern: re.Pattern[str]


def format_object_name(template: str | None, prefix: str, number: int) -> str:
    """Return the name of an object; ``prefix`` takes the place of ``{class}``.

    Without a template it is that of :func:`~ssbench.scenario.names.object_name`.
    """
    return object_name(prefix, number) if template is None else _read_template(template).make(prefix, number)


def match_object_name(template: str | None, name: str) -> tuple[str, int]:
    """Return what :func:`format_object_name` made a name of; nothing and 0 where it did not."""
    if template is None:
        return parse_object_name(name)
    match = _read_template(template).pattern.fullmatch(name)
    if match is None or format_object_name(template, match["class"], int(match["number"])) != name:
        return "", 0
    return match["class"], int(match["number"])


def explain_wrong_template(template: str, prefix: str) -> str:
    """Return what is wrong with the names that a template makes for a class; empty where nothing is."""
    for number in (1, MAX_NUMBER):
        name = format_object_name(template, prefix, number)
        if (length := len(name.encode())) > MAX_OBJECT_NAME_BYTES - _RESERVED_BYTES:
            return (
                f"expected names of at most {MAX_OBJECT_NAME_BYTES - _RESERVED_BYTES} bytes "
                f"({MAX_OBJECT_NAME_BYTES} less {_RESERVED_BYTES} for what ssbench appends), but of "
                f"{shorten_value(prefix)} some have {length:,}"
            )
        if {".", ".."} & {*name.split("/")}:
            return (
                f"expected names without the parts . and .., which clients resolve, not {shorten_value(name)}"
            )
        if name.startswith(MARK_PREFIX):
            return f"expected names that do not begin with {MARK_PREFIX}, as those of marks of runs do"
    return ""


@cache
def _read_template(template: str) -> _Template:
    """Return what makes names by a template and finds them; raises ValueError."""
    parts = [*_parse_template(template)]
    _refuse_ambiguous(parts)
    form = pattern = ""
    hashes: dict[str, slice] = {}
    digits = 0
    for kind, text, width in parts:
        match kind:
            case "text":
                form, pattern = form + text.replace("%", "%%"), pattern + re.escape(text)
            case "class":
                form, pattern = f"{form}%(class)s", f"{pattern}(?P<class>.+)"
            case "number":
                form, pattern = f"{form}%(number)0{width}d", f"{pattern}(?P<number>[0-9]{{{width},}})"
            case _:
                hashes[key := f"hash{digits}"] = slice(digits, digits + width)
                form, pattern = f"{form}%({key})s", f"{pattern}[0-9a-f]{{{width}}}"
                digits += width
    if digits > _MAX_HASH_DIGITS:
        raise ValueError(f"expected at most {_MAX_HASH_DIGITS} digits of {{hash}} in all, not {digits}")

    if hashes:
        from hashlib import md5  # noqa: PLC0415 - it loads OpenSSL, which few templates need

    def make(prefix: str, number: int) -> str:
        values: dict[str, object] = {"class": prefix, "number": number}
        if hashes:
            digest = md5(object_name(prefix, number).encode(), usedforsecurity=False).hexdigest()
            values |= {key: digest[place] for key, place in hashes.items()}
        return form % values

    return _Template(make, re.compile(pattern, re.DOTALL))


def _parse_template(template: str) -> list[_TemplatePart]:
    """Return the parts of a template, none of which is empty; raises ValueError."""
    texts = _WORD_PATTERN.split(template.replace("{name}", DEFAULT_TEMPLATE))
    if re.search("[{}]", "".join(texts[::2])):
        raise ValueError(f"expected {_EXPECTED_TEMPLATE}, not {shorten_value(template)}")
    parts = []
    for place, text in enumerate(texts):
        if not place % 2:
            parts += [_TemplatePart("text", text)] if text else []
        elif text == "class":
            parts.append(_TemplatePart("class"))
        elif (found := _NUMBER_PATTERN.fullmatch(text)) and int(found[1] or 1) <= _MAX_DIGITS:
            parts.append(_TemplatePart("number", width=int(found[1] or 1)))
        elif found := _HASH_PATTERN.fullmatch(text):
            parts.append(_TemplatePart("hash", width=int(found[1] or _HASH_DIGITS)))
        else:
            known = "{class}, {number}, {number:06d}, {hash}, {hash:2} or {name}"
            raise ValueError(f"expected {known} in braces, not {{{text}}}")
    return parts


def _refuse_ambiguous(parts: list[_TemplatePart]) -> None:
    """Raise ValueError where two objects might have one name."""
    kinds = [each.kind for each in parts]
    if kinds.count("class") != 1 or kinds.count("number") != 1:
        raise ValueError(
            "expected {class} and {number} once each, or {name} for both: no two objects may have one name"
        )
    number = kinds.index("number")
    after = kinds.index("class") > number
    beside = parts[number + 1 if after else number - 1]
    if beside.kind != "text" or beside.text[0 if after else -1] in "0123456789":
        raise ValueError(
            "expected a character that is no digit between {number} and {class}, beside {number}: no two"
            " objects may have one name"
        )


def _check_template(value: object) -> object:
    """Return a template that is right; what is no text unchanged. Raises ValueError."""
    if isinstance(value, str) and value.isprintable() and len(value) <= _MAX_TEMPLATE_CHARACTERS:
        _read_template(value)
    return value


OBJECT_NAMES_RULE = Rule(
    lambda value: (
        isinstance(value, str) and value.isprintable() and 0 < len(value) <= _MAX_TEMPLATE_CHARACTERS
    ),
    _EXPECTED_TEMPLATE,
    convert=_check_template,
)
