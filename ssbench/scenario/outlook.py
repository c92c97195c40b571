"""What a scenario would do, in words: operations by kind, bytes, containers, and a guess at the time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from ssbench.document import Document, Item, Items, View
from ssbench.names import container_name
from ssbench.operations import OPERATIONS, PART_LENGTH, RANGE
from ssbench.quantities import duration
from ssbench.scenario.model import Scenario, SizeClass
from ssbench.scenario.stock import running_out

#: What the guess at the time takes for granted: seconds a request, and bytes a second in all.
_SECONDS_A_REQUEST = 0.02
_BYTES_A_SECOND = 100e6

#: Longer values of settings are shortened.
_LONGEST_VALUE = 60

_UNITS = ("bytes", "kB", "MB", "GB", "TB", "PB")


def document(scenario: Scenario, _view: View) -> Document:
    """Return what there is to say, in lines that fit 80 columns if names are short."""
    open_only = all(stage.rate for stage in scenario.plan)
    title = f"{scenario.name}: {'at most ' * open_only}{scenario.user_count:,} operations at once"
    return Document(title, (Items((*_items(scenario),)),))


def _items(scenario: Scenario) -> Iterator[Item]:
    initial = sum(each.initial_files for each in scenario.size_classes)
    shares = _shares(scenario)
    uploaded = sum(each.initial_files * _mean_size(each) for each in scenario.size_classes)
    yield Item(f"containers: {scenario.container_count:,}, {_containers(scenario)}")
    classes = []
    for each in scenario.size_classes:
        sizes = _amount(each.size_min)
        if each.size_max > each.size_min:
            sizes += f" to {_amount(each.size_max)}"
        share = each.initial_files / initial
        classes.append(f"{each.name}: {each.initial_files:,} objects of {sizes}; {share:.0%} of operations")
    first = f"first upload {initial:,} objects, about {_amount(uploaded)}, where they are not there yet"
    yield _with(first, classes)
    count = scenario.operation_count
    operations = [*_load(scenario)]
    for name, share in shares.items():
        times = f"about {share * count:,.0f} x " if count else ""
        operations.append(f"{times}{name} ({share:.1%}){_settings(scenario, name)}")
    yield _with(
        f"then {count:,} operations:" if count else f"then operations for {scenario.run_seconds:g} s:",
        operations,
    )
    yield from _running_out(scenario)
    for name, value in scenario.container_put_headers:
        yield Item(f"containers are made with the header {name}: {value}")
    if scenario.delete_after:
        yield Item(f"objects expire {scenario.delete_after:,} s after they were written")
    for condition in scenario.fail_if:
        yield Item(f"the run fails if {condition}")
    sent, received = _moved(scenario)
    yield Item(f"an operation sends {_amount(sent)} and receives {_amount(received)} on average")
    yield _time(scenario, initial, uploaded, sent + received)


def _with(text: str, more: Iterable[str]) -> Item:
    return Item(text, tuple(map(Item, more)))


def _load(scenario: Scenario) -> Iterator[str]:
    """Yield what decides when an operation begins, where that is not only the end of the one before."""
    evenly = {"even": "evenly", "poisson": "at random (Poisson)"}[scenario.arrivals]
    if scenario.stages:
        for number, stage in enumerate(scenario.plan, 1):
            low, high = stage.users or (0, 0)
            bound = f", at most {low:,}" + (f" to {high:,}" if high != low else "") + " at once"
            what = f"due {evenly}{bound}" if stage.rate else "in a closed loop"
            yield f"stage {number}, {stage.seconds:g} s: {stage}, {what}"
    elif scenario.rate:
        yield f"due {evenly} at {scenario.rate:g} a second, whatever the store does (open loop)"
    if scenario.think_time:
        yield f"a user waits {scenario.think_time:g} s after each"
    if scenario.warmup:
        yield f"those of the first {scenario.warmup:g} s are left out of the report (warm-up)"


def _running_out(scenario: Scenario) -> Iterator[Item]:
    """Warn of operations that will have no object to work on."""
    found = list(running_out(scenario))
    for number, each in enumerate(found, 1):
        when = f"after about {each.operations:,} operations" if each.operations else "at times"
        left = "no object is left" if each.certain else "no object may be left"
        more = [f"{each.deleted:.1%} of its operations delete, {each.created:.1%} create"]
        if number == len(found):
            more.append("operations that need an object of such a class are then not sent")
        yield _with(f"! {each.size_class}: {left} {when}:", more)


def _settings(scenario: Scenario, name: str) -> str:
    """What a scenario says of an operation, in words; also what the cluster has to have for it."""
    words = []
    for settings in scenario.operations:
        if settings.name == name:
            if settings.defined:
                words.append(f"{settings.defined[0]} {settings.values['path']}")
            words += [
                f"{key} {_in_words(value)}"
                for key, value in settings.values.items()
                if key != "path" or not settings.defined
            ]
            words += [f"header {field}: {value}" for field, value in settings.headers]
    needs = OPERATIONS.named(name).needs
    if needs:
        words.append(f"needs {needs}")
    return ": " + ", ".join(words) if words else ""


def _in_words(value: object) -> str:
    if isinstance(value, tuple | list):
        return " to ".join(str(each) for each in dict.fromkeys(value))
    return str(value) if len(str(value)) <= _LONGEST_VALUE else f"{str(value)[:_LONGEST_VALUE]}..."


def _mean_size(size_class: SizeClass) -> float:
    return (size_class.size_min + size_class.size_max) / 2


def _kinds(scenario: Scenario) -> Iterator[tuple[str, float, float]]:
    """Yield an operation, its share in all operations and its mean size, for each size class."""
    initial = sum(each.initial_files for each in scenario.size_classes)
    for each in scenario.size_classes:
        total = sum(each.weights.values())
        for name, weight in each.weights.items():
            yield name, each.initial_files / initial * weight / total, _mean_size(each)


def _shares(scenario: Scenario) -> dict[str, float]:
    shares: dict[str, float] = defaultdict(float)
    for name, share, _ in _kinds(scenario):
        if share:
            shares[name] += share
    return {operation.name: shares[operation.name] for operation in OPERATIONS if operation.name in shares}


def _moved(scenario: Scenario) -> tuple[float, float]:
    """Return the mean bytes that an operation sends and receives."""
    sent = received = 0.0
    ranges = [each for each in scenario.operations if each.name == RANGE.name]
    lengths = [each.values.get("length", PART_LENGTH) for each in ranges]
    part = sum((lengths or [PART_LENGTH])[0]) / 2
    for name, share, size in _kinds(scenario):
        operation = OPERATIONS.named(name)
        sent += share * size if operation.sends_body else 0
        received += (
            share * (min(size, part) if operation is RANGE else size) if operation.returns_object else 0
        )
    return sent, received


def _containers(scenario: Scenario) -> str:
    names = [
        container_name(scenario.container_base, number, scenario.policy)
        for number in (0, scenario.container_count - 1)
    ]
    return " to ".join(dict.fromkeys(names)) + (
        f", policy {scenario.policy}" if scenario.policy else ", default policy"
    )


def _time(scenario: Scenario, initial: int, uploaded: float, moved: float) -> Item:
    uploads = _guess(initial, uploaded, scenario.user_count)
    count = scenario.operation_count
    benchmark = _guess(count, count * moved, scenario.user_count) if count else scenario.run_seconds or 0.0
    if count:
        benchmark = max(benchmark, count / (scenario.rate or count))
        benchmark += count / scenario.user_count * scenario.think_time
    first, then = (duration(max(each, 1.0)) for each in (uploads, benchmark))
    speed = _amount(_BYTES_A_SECOND)
    return _with(
        f"time, at a guess: {first} for the uploads, {then} for the operations",
        [f"(with {1000 * _SECONDS_A_REQUEST:g} ms a request, and {speed} a second in all)"],
    )


def _guess(requests: int, size: float, users: int) -> float:
    return max(requests * _SECONDS_A_REQUEST / min(users, requests or 1), size / _BYTES_A_SECOND)


def _amount(size: float) -> str:
    power = 0
    while size >= 999.5 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.3g} {_UNITS[power]}" if size < 999.5 else f"{size:,.0f} {_UNITS[power]}"
