"""What a scenario would do, in words: operations by kind, bytes, containers, and a guess at the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ssbench.base.text_values import format_bytes as _amount
from ssbench.base.text_values import format_duration
from ssbench.document import units
from ssbench.document.columns import format_plural
from ssbench.document.elements import Document, Item, Items, View
from ssbench.scenario.consistency import explain_idle_arrivals
from ssbench.scenario.forecast import (
    BYTES_PER_SECOND,
    SECONDS_PER_REQUEST,
    Forecast,
    RunsOut,
    forecast_scenario,
)
from ssbench.scenario.key_rules import DEFAULT_MAX_FILE_BYTES
from ssbench.scenario.model import SCENARIO_KEYS, Scenario
from ssbench.scenario.names import (
    format_object_name,
    object_prefix,
    segments_container,
    versioned_container,
)
from ssbench.scenario.operations import hide_secret_value


def make_outlook_document(scenario: Scenario, view: View) -> Document:
    """Return what there is to say, in lines that fit 80 columns if names are short."""
    if scenario.groups:
        return _make_groups_document(scenario, view)
    open_only = all(stage.rate for stage in scenario.plan)
    title = (
        f"{scenario.name}: {'at most ' * open_only}{format_plural(scenario.user_count, 'operation')} at once"
    )
    return Document(title, (Items((*_items(scenario),)),))


def _make_groups_document(scenario: Scenario, view: View) -> Document:
    """Return what each group of users does, one after the other."""
    count = len(scenario.groups)
    users = f"{format_plural(scenario.user_count, 'user')} in all"
    title = f"{scenario.name}: {count} group{'s' * (count > 1)} of users at once, {users}"
    items = [Item(f"the run fails if {condition}") for condition in scenario.fail_if]
    items += _events(scenario)
    for group, part in zip(scenario.groups, scenario.parts, strict=True):
        own = make_outlook_document(part, view).title.removeprefix(part.name)
        items.append(Item(f"{group.name}{own}", (*_items(part, group.name),)))
    return Document(title, (Items(items),))


def _events(scenario: Scenario) -> Iterator[Item]:
    """Yield the commands that the scenario runs, which its user has to know before allowing them."""
    if scenario.events:
        yield _item_with(
            "runs commands on the master's host, with --allow events:", map(str, scenario.events)
        )


def _items(scenario: Scenario, group: str = "") -> Iterator[Item]:
    """Yield what there is to say of a scenario, or of a ``group`` of users of one."""
    everything = sum(each.share for each in scenario.size_classes)
    found = forecast_scenario(scenario)
    yield from _places(scenario, found, group)
    classes = []
    for each in scenario.size_classes:
        sizes = _amount(each.size_min)
        if each.size_max > each.size_min:
            sizes += f" to {_amount(each.size_max)}"
        if each.shape is not None:
            sizes += f" ({each.shape})"
        if each.segment_size:
            sizes += f", {each.segments_words}"
        if each.share or each.initial_files:
            share = each.share / everything
            classes.append(
                f"{each.name}: {format_plural(each.initial_files, 'object')} of {sizes};"
                f" {units.format_share(share)} of operations"
            )
    upload = f"first upload {format_plural(found.uploads, 'object')}, about {_amount(found.upload_bytes)}"
    yield _item_with(f"{upload}, where they are not there yet", classes)
    for each in scenario.size_classes:
        if each.largest_piece > DEFAULT_MAX_FILE_BYTES and (each.share or each.initial_files):
            yield _item_with(
                f"! {each.name}: up to {_amount(each.largest_piece)} in one piece, more than stores take",
                ["their limit is 5 GiB by default; segment_size divides objects"],
            )
    count = scenario.operation_count
    operations = [*_load(scenario)]
    for name, share in found.mix.items():
        times = f"about {units.format_count(round(share * count))} x " if count else ""
        operations.append(f"{times}{name} ({units.format_share(share)}){_settings(scenario, name)}")
    yield _item_with(
        f"then {format_plural(count, 'operation')}:"
        if count
        else f"then operations for {scenario.run_seconds:g} s:",
        operations,
    )
    yield from _running_out(found.runs_out)
    yield from _objects(scenario)
    for name, value in scenario.container_put_headers:
        yield Item(f"containers are made with the header {name}: {hide_secret_value(name, value)}")
    if scenario.delete_after:
        most = f" to {scenario.delete_after_most:,}" if scenario.delete_after_most else ""
        yield Item(f"objects expire {scenario.delete_after:,}{most} s after they were written")
    for condition in scenario.fail_if:
        yield Item(f"the run fails if {condition}")
    yield from _events(scenario)
    sent, received = _amount(found.sent_bytes or 0.0), _amount(found.received_bytes or 0.0)
    yield Item(f"an operation sends {sent} and receives {received} on average")
    first, then = (
        format_duration(max(each, 1.0)) for each in (found.upload_seconds, found.operation_seconds)
    )
    yield _item_with(
        f"estimated time: {first} for the uploads, {then} for the operations",
        [
            f"(with {1000 * SECONDS_PER_REQUEST:g} ms a request, and"
            f" {_amount(BYTES_PER_SECOND)} a second in all)"
        ],
    )


def _places(scenario: Scenario, found: Forecast, group: str) -> Iterator[Item]:
    """Yield where the objects are, and how they are called."""
    beside = [f"initial objects in each: {_format_each(found.uploads, scenario.container_numbers)}"]
    if any(row.beside and found.mix.get(row.name) for row in scenario.operation_table):
        beside.append(f"one more beside each for versions: {versioned_container(found.first_container)}")
    if scenario.has_segments:
        beside.append(f"one more beside each for segments: {segments_container(found.first_container)}")
    yield _item_with(f"containers: {scenario.container_count:,}, {_containers(scenario, found)}", beside)
    if scenario.object_names is not None:
        first = object_prefix(group, scenario.size_classes[0].name)
        example = format_object_name(scenario.object_names, first, 1)
        yield _item_with(f"objects are named {scenario.object_names}", [f"the first one: {example}"])


def _objects(scenario: Scenario) -> Iterator[Item]:
    """Yield what keys with words of their own say: which objects are asked for, and what is in them."""
    for key in SCENARIO_KEYS:
        value = getattr(scenario, key.name) if key.outlook else None
        if value is not None:
            yield Item(key.outlook.format(value))


def _format_each(objects: int, containers: int) -> str:
    least, more = divmod(objects, containers)
    return f"{least:,} or {least + 1:,}" if more else f"{least:,}"


def _item_with(text: str, more: Iterable[str]) -> Item:
    return Item(text, tuple(map(Item, more)))


def _load(scenario: Scenario) -> Iterator[str]:
    """Yield what decides when an operation begins, where that is not only the end of the one before."""
    evenly = {"even": "evenly", "poisson": "at random (Poisson)"}.get(
        scenario.arrivals, f"at random ({scenario.arrivals})"
    )
    if scenario.stages:
        for number, stage in enumerate(scenario.plan, 1):
            low, high = stage.users or (0, 0)
            bound = f", at most {low:,}" + (f" to {high:,}" if high != low else "") + " at once"
            what = f"due {evenly}{bound}" if stage.rate else "in a closed loop"
            yield f"stage {number}, {stage.seconds:g} s: {stage}, {what}"
    elif scenario.rate:
        yield f"due {evenly} at {scenario.rate:g} a second, whatever the store does (open loop)"
    if idle := explain_idle_arrivals(scenario):
        yield f"! {idle}"
    if scenario.think_time:
        yield f"a user waits {scenario.think_time:g} s after each"
    if scenario.warmup:
        yield f"the first {scenario.warmup:g} s are excluded from the report (warm-up)"


def _running_out(found: Sequence[RunsOut]) -> Iterator[Item]:
    """Warn of operations that will have no object to work on."""
    for number, each in enumerate(found, 1):
        when = f"after about {format_plural(each.operations, 'operation')}" if each.operations else "at times"
        left = "no object is left" if each.certain else "no object may be left"
        more = [
            f"{units.format_share(each.deleted)} of its operations delete,"
            f" {units.format_share(each.created)} create"
        ]
        if number == len(found):
            more.append("operations on this class are then skipped")
        yield _item_with(f"! {each.size_class}: {left} {when}:", more)


def _settings(scenario: Scenario, name: str) -> str:
    """What a scenario says of an operation, in words; also what the cluster has to have for it."""
    words = [word for each in scenario.operations if each.name == name for word in each.words]
    needs = scenario.operation_table.named(name).needs
    if needs:
        words.append(f"needs {needs}")
    return ": " + ", ".join(words) if words else ""


def _containers(scenario: Scenario, found: Forecast) -> str:
    names = (found.first_container, found.last_container)
    return (
        " to ".join(dict.fromkeys(names))
        + (f", policy {scenario.policy}" if scenario.policy else ", default policy")
        + (f", in each of {scenario.accounts:,} accounts" if scenario.accounts > 1 else "")
    )
