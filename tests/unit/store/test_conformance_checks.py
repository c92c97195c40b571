"""What checks find of stores that do what they are asked, refuse it, or answer and do nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest
from msgspec import structs

from ssbench.base.errors import ClusterError
from ssbench.scenario.model import SCENARIO_KEYS, Scenario
from ssbench.scenario.operations import OPERATIONS
from ssbench.scenario.scenario_reading import check_scenario_text, read_scenario
from ssbench.scenario.value_rules import PayloadMode
from ssbench.store import conformance_checks
from ssbench.store.conformance_checks import (
    CHECKS,
    Check,
    Finding,
    StoreTrial,
    StoreVerdict,
    find_needed_checks,
)
from ssbench.store.contract import RequestOutcome, StoreReply, StoreRequest
from ssbench.store.swift.dialect import SwiftDialect

ADDRESS = "http://store/v1/AUTH_test"


class PlainStore:
    """Keeps bodies under names, and takes no notice of anything else that a request says.

    ``refuses`` says of which requests it does not carry out, with a status.
    """

    def __init__(self, refuses: Callable[[StoreRequest], int] = lambda request: 0) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self._refuses = refuses

    def perform(
        self, address: str, request: StoreRequest, credentials: str | None = None, prior: object = None
    ) -> RequestOutcome:
        assert address == ADDRESS
        place = request.container, request.name
        status, body = self._refuses(request), b""
        if status:
            pass
        elif not request.name:
            status, body = (200, b"[]") if request.method == "GET" else (204, b"")
        elif request.method == "PUT":
            self.objects[place] = request.body or b""
            status = 201
        elif request.method == "DELETE":
            status = 204 if self.objects.pop(place, None) is not None else 404
        elif request.method in {"POST", "COPY"}:
            status = 202
        else:
            found = self.objects.get(place)
            status, body = (404, b"") if found is None else (200, found)
        size = len(body)
        reply = StoreReply({}, b"" if request.method == "HEAD" else body)
        return RequestOutcome(0, 0.1, 0.1, 1.0, size, reply=reply, status=status)

    def dialect(self, storage_url: str) -> SwiftDialect:
        return SwiftDialect(storage_url)

    def close(self) -> None:
        pass


class Ground:
    """The master's side, which makes any container."""

    def make_container(self, name: str, headers: object) -> None:
        pass

    def sign(self, container: str) -> str:
        return "signed"


def find(store: PlainStore, check: Check) -> Finding:
    return check.run(StoreTrial(store, ADDRESS, "token", "c", Ground()))


def named(name: str) -> Check:
    return next(each for each in CHECKS if each.name == name)


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no check wait."""
    monkeypatch.setattr(conformance_checks, "_EXPIRY_SECONDS", 0.0)


def test_an_object_that_is_gone_in_time_has_expired_though_nothing_said_so() -> None:
    looks: list[str] = []

    def forget(request: StoreRequest) -> int:
        expires = request.method == "HEAD" and request.name.endswith("/b")
        looks.extend(["look"] * expires)
        return 404 if len(looks) > 3 and expires else 0

    assert find(PlainStore(forget), named("delete_after")) == Finding(StoreVerdict.DONE)
    assert len(looks) == 4


def test_a_store_that_takes_no_notice_ignores_all_but_what_is_basic() -> None:
    store = PlainStore()
    found = {check.name: find(store, check).verdict for check in CHECKS}
    done = {name for name, verdict in found.items() if verdict is StoreVerdict.DONE}
    assert done == {
        *("create", "read", "update", "head", "delete"),
        *("head_container", "head_account", "public", "tempurl"),
        *("payload signed", "payload chunked"),
    }
    assert {*found.values()} == {StoreVerdict.DONE, StoreVerdict.IGNORED}
    assert store.objects == {}  # nothing is left


@pytest.mark.parametrize("check", CHECKS, ids=lambda each: each.name)
def test_a_store_that_refuses_everything_is_not_found_to_ignore_anything(check: Check) -> None:
    assert find(PlainStore(lambda request: 403), check) == Finding(StoreVerdict.REFUSED, "403")


def test_a_payload_that_is_not_taken_as_it_is_meant_is_found() -> None:
    def answer(status: int) -> PlainStore:
        return PlainStore(lambda request: status if request.payload == "chunked" else 0)

    for status in (400, 403, 501):
        assert find(answer(status), named("payload chunked")) == Finding(StoreVerdict.REFUSED, f"{status}")
        assert find(answer(status), named("payload signed")).verdict is StoreVerdict.DONE
    # What fails for another reason fails in the run, too.
    assert find(answer(503), named("payload chunked")) == Finding(StoreVerdict.DONE, "not known: 503")

    class KeepsChunks(PlainStore):
        def perform(self, address: str, request: StoreRequest, *more: Any) -> RequestOutcome:
            if request.payload == "chunked":
                request = structs.replace(request, body=b"64\r\n" + (request.body or b""))
            return super().perform(address, request, *more)

    assert find(KeepsChunks(), named("payload chunked")).verdict is StoreVerdict.IGNORED


def test_operations_and_keys_name_checks_that_there_are() -> None:
    values = {"s3_payload": get_args(PayloadMode)[1:]}
    checks = {row.check for row in OPERATIONS} - {""}
    checks |= {key.check.format(each) for key in SCENARIO_KEYS for each in values.get(key.name, [""])} - {""}
    assert len(checks) > 5
    assert checks <= {check.name for check in CHECKS}


def test_a_payload_that_is_asked_for_is_tried() -> None:
    def needed(payload: PayloadMode) -> list[str]:
        scenario = replace(read_scenario("very_small"), s3_payload=payload)
        return [check.name for check in find_needed_checks([scenario]) if check.only_over == "s3"]

    assert [needed(each) for each in get_args(PayloadMode)] == [[], ["payload signed"], ["payload chunked"]]


def test_what_is_refused_is_told_from_what_is_ignored() -> None:
    def refuse(request: StoreRequest) -> int:
        return 501 if dict(request.headers).get("If-None-Match") else 0

    assert find(PlainStore(refuse), named("conditional")) == Finding(StoreVerdict.REFUSED, "501")
    assert find(PlainStore(refuse), named("create_only")) == Finding(StoreVerdict.REFUSED, "501")
    assert find(PlainStore(), named("create_only")) == Finding(
        StoreVerdict.IGNORED, "201: an object that exists is overwritten"
    )

    def obey(request: StoreRequest) -> int:
        exists = bool(store.objects) and request.method == "PUT"
        return 412 if exists and dict(request.headers).get("If-None-Match") else 0

    store = PlainStore(obey)
    assert find(store, named("create_only")) == Finding(StoreVerdict.DONE)


def test_a_request_without_an_answer_and_a_container_that_cannot_be_made_are_refusals() -> None:
    class Silent(PlainStore):
        def perform(self, *arguments: object, **more: object) -> RequestOutcome:
            cause, detail = "connection refused", "nobody listens"
            return RequestOutcome(0, None, None, 1.0, cause=cause, detail=detail)

    assert find(Silent(), named("read")) == Finding(
        StoreVerdict.REFUSED, "connection refused: nobody listens"
    )

    class Strict(Ground):
        def make_container(self, name: str, headers: object) -> None:
            raise ClusterError("no room")

    found = named("versions").run(StoreTrial(PlainStore(), ADDRESS, None, "c", Strict()))
    assert found == Finding(StoreVerdict.REFUSED, "no room")


def text_scenario(steps: str, weight: int = 1) -> Scenario:
    text = (
        "{name: steps, sizes: [{name: tiny, size: 10}], initial_files: {tiny: 3}, operation_count: 1,"
        f" user_count: 1, profile: {{read: 1, both: {weight}}},"
        f" operations: [{{name: both, steps: {steps}}}]}}"
    )
    return check_scenario_text(text, "steps")


def test_runs_need_checks_of_what_they_would_not_notice() -> None:
    plain = read_scenario("very_small")
    assert find_needed_checks([plain]) == []

    def needed(**changes: object) -> set[str]:
        scenario: Scenario = replace(plain, **changes)
        return {each.name for each in find_needed_checks([scenario])}

    assert needed(delete_after=60) == {"delete_after"}
    # Steps of sequences count too, with their settings.
    written = text_scenario("[head, {name: update, etag: true}, post]")
    assert {each.name for each in find_needed_checks([written])} == {"etag", "post"}
    sized = plain.size_classes[0]
    static = replace(sized, segment_size=10), replace(sized, segment_size=10, segments="dynamic")
    assert needed(size_classes=static[:1]) == {"slo manifest"}  # an update reads it
    assert needed(size_classes=static[1:]) == set()
    unused = text_scenario("[head, post]", weight=0)
    assert find_needed_checks([unused]) == []
    assert {each.name for each in find_needed_checks([read_scenario("metadata")])} >= {"post"}
    assert {each.name for each in find_needed_checks([read_scenario("web")])} == {"conditional"}
