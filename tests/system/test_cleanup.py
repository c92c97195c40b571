"""cleanup-containers: everything that ssbench named goes, and nothing else does."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
import swiftclient
from fault_server import FaultServer, Reply
from hypothesis import given
from hypothesis import strategies as st
from json_records import valid
from processes import run_master
from relay import Relay
from runs import wait_until
from said import LISTED_ARE_GONE
from stand_in_account import CONFLICT, GONE, StandInAccount

from ssbench.base.errors import ClusterError
from ssbench.run import account_cleaner
from ssbench.run.account_cleaner import AccountCleaner, CleanUpSettings
from ssbench.scenario.names import container_name, container_pattern
from ssbench.store.contract import StoreAccess
from ssbench.store.credentials import Session
from ssbench.store.swift.containers import find_containers

PROGRAM = [sys.executable, "-m", "ssbench.cli.master"]


def clean(*options: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return run_master(*before, "cleanup-containers", *options)


def at(server: FaultServer) -> list[str]:
    return ["-S", server.url, "-T", "token"]


@pytest.fixture
def stand_in(fault_server) -> StandInAccount:
    fault_server.rule = StandInAccount()
    return fault_server.rule


# Names


@pytest.mark.parametrize(
    ("name", "policy", "matches"),
    [
        ("ssbench_000000", None, True),
        ("ssbench_1234567", None, True),
        ("ssbench_000001_default", None, True),
        ("ssbench_000001_my-policy-2", None, True),
        ("ssbench_000001_gold", "gold", True),
        ("ssbench_000001_default", "gold", False),
        ("ssbench_000001", "gold", False),
        ("ssbench_000001_a.c", "a.c", True),
        ("ssbench_000001_abc", "a.c", False),
        ("ssbench_backup", None, False),
        ("ssbench_000001x", None, False),
        ("ssbench_00001", None, False),
        ("ssbench_000001_", None, False),
        ("ssbench_000001_two_words", None, False),
        ("ssbench_000001\n", None, False),
        ("ssbench_000001_gold\n", "gold", False),
        ("ssbench_٠٠٠٠٠١", None, False),
        ("ssbench2_000001", None, False),
        ("my_ssbench_000001", None, False),
        ("SSBENCH_000001", None, False),
    ],
)
def test_names(name, policy, matches):
    assert bool(container_pattern("ssbench", policy).match(name)) is matches


def test_the_base_is_no_regular_expression():
    assert container_pattern("a.+(b", None).match("a.+(b_000001")
    assert not container_pattern("a.b", None).match("axb_000001")


@given(
    st.text(min_size=1), st.integers(0, 10**9), st.none() | st.from_regex(r"[A-Za-z0-9-]+", fullmatch=True)
)
def test_whatever_ssbench_names_matches(base, number, policy):
    name = container_name(base, number, policy)
    assert container_pattern(base, None).match(name)
    assert container_pattern(base, policy).match(name)
    assert not container_pattern(base + "x", None).match(name)


# A real Swift


def test_deletes_its_own_and_nothing_else(swift_environment, account, container_base, tmp_path):
    own = [
        container_name(container_base, number, policy) for number in range(9) for policy in (None, "silver")
    ]
    others = [
        f"{container_base}_backup",
        f"{container_base}_000001x",
        f"{container_base}_00001",
        f"{container_base}x_000001",
        f"x{container_base}_000001",
    ]
    for name in own + others:
        account.put_container(name, headers={"X-Storage-Policy": "silver"} if "silver" in name else None)
    full = [own[0], own[1], *others]
    with ThreadPoolExecutor(4) as pool:
        for client in pool.map(
            lambda name: fill(swift_environment, name, ["plain", "with space/slash?&%20", "ünïcode"]), full
        ):
            client.close()
    file = tmp_path / "cleanup.json"
    ended = clean("-b", container_base, "-p", "silver", "--json", str(file))
    assert ended.returncode == 0
    report = valid(file.read_text(), "cleanup")
    assert (report["matched"], report["in_use"]) == (9, {})
    deleted = report["deleted"]
    assert (deleted["containers"], deleted["objects"], deleted["failed"]) == (9, 3, 0)
    assert re.fullmatch(
        r"(INFO:Waiting for Swift: .*\n)*"  # where the machine is busy
        r"INFO:Deleted 9 containers and 3 objects in [\d.]+ s: \d+ containers and \d+ objects a second\n"
        rf"INFO:Wrote {file}\n",
        ended.stderr,
    )
    assert ended.stdout == ""
    assert len(account.get_account(prefix=container_base)[1]) == 9 + 4
    ended = clean("-b", container_base, "-c", "3", before=("-q",))
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    left = [row["name"] for row in account.get_account()[1] if container_base in row["name"]]
    assert left == sorted(others)
    assert all(len(account.get_container(name)[1]) == 3 for name in others)
    ended = clean("-b", container_base)
    assert ended.stderr == f"INFO:No matching containers ({container_base}_000000 and so on)\n"
    assert ended.returncode == 0


def fill(swift, container: str, names) -> swiftclient.Connection:
    client = swiftclient.Connection(swift.auth_url, swift.user, swift.key)
    for name in names:
        client.put_object(container, name, b"x")
    return client


def test_many_objects_and_expired_ones(swift_environment, account, container_base):
    name = container_name(container_base, 1, None)
    account.put_container(name)
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda part: fill(
                    swift_environment, name, [f"o{number:06d}" for number in range(part * 20, part * 20 + 20)]
                ).close(),
                range(8),
            )
        )
    account.put_object(name, "expired", b"x", headers={"X-Delete-After": "1"})

    def expired() -> bool:
        with contextlib.suppress(swiftclient.ClientException):
            account.head_object(name, "expired")
            return False
        return True

    wait_until(expired, "the end of an object")
    # Swift lists it as long as its expirer has not run.
    wait_until(lambda: len(account.get_container(name)[1]) == 161, "the whole listing")
    ended = clean("-b", container_base)
    assert ended.returncode == 0
    assert "Deleted 1 container and 161 objects" in ended.stderr
    assert account.get_account(prefix=container_base)[1] == []


@contextlib.contextmanager
def relayed(swift, base: str) -> Iterator[subprocess.Popen[str]]:
    """A clean-up that stands still after some deletes, because no more answers come."""
    address = urlsplit(swift.storage_url)
    with Relay(address.port, most=30) as relay:
        url = address._replace(netloc=f"127.0.0.1:{relay.port}").geturl()
        with subprocess.Popen(
            [*PROGRAM, "cleanup-containers", "-b", base, "-c", "1", "-S", url],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                assert relay.stands.wait(150)  # a busy machine takes seconds for a request
                yield process
            finally:
                process.kill()


def test_killed_in_the_middle_and_run_again(swift_environment, account, container_base):
    names = [container_name(container_base, number, None) for number in range(3)]
    for name in names:
        account.put_container(name)
        count = 50 if name == names[0] else 5
        fill(swift_environment, name, [f"o{number}" for number in range(count)]).close()
    with relayed(swift_environment, container_base) as process:
        wait_until(lambda: len(account.get_container(names[0])[1]) < 50, "deletes")
        process.kill()
    assert account.get_account(prefix=container_base)[1] != []
    assert clean("-b", container_base).returncode == 0
    assert account.get_account(prefix=container_base)[1] == []


def test_ctrl_c_tells_what_was_done(swift_environment, account, container_base):
    name = container_name(container_base, 0, None)
    account.put_container(name)
    fill(swift_environment, name, [f"o{number}" for number in range(50)]).close()
    with relayed(swift_environment, container_base) as process:
        wait_until(lambda: len(account.get_container(name)[1]) < 50, "deletes")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert re.search(r"^INFO:Deleted 0 containers and [1-9]\d* objects", errors, re.MULTILINE)
    assert errors.endswith("ERROR:Interrupted; run it again to delete the rest\n")
    assert "Traceback" not in errors
    assert account.get_container(name)[1] != []


# What only a stand-in can do


def test_more_than_a_page_of_objects(fault_server, stand_in):
    stand_in.page = 2000  # of the 10,000 that are asked for, as a busy machine deletes them in time
    stand_in.hold({"ssbench_000000": [f"o_{number:06d}" for number in range(5_000)], "keep": ["x"]})
    ended = clean(*at(fault_server), "-c", "16")
    assert ended.returncode == 0, ended.stderr
    assert "Deleted 1 container and 5,000 objects" in ended.stderr
    assert stand_in.containers == {"keep": ["x"]}
    assert fault_server.connections < 16 + 16 + 4, "connections are used again"


def test_more_than_a_page_of_containers(fault_server, stand_in):
    names = [container_name("ssbench", number, "gold" if number % 2 else None) for number in range(2_500)]
    stand_in.page = 1000
    stand_in.hold({name: [] for name in [*names, "ssbench_backup", "ssbench_000001x", "t"]})
    ended = clean(*at(fault_server))
    assert ended.returncode == 0, ended.stderr
    assert "Deleted 2,500 containers and 0 objects" in ended.stderr
    assert sorted(stand_in.containers) == ["ssbench_000001x", "ssbench_backup", "t"]


def run_here(server: FaultServer, base: str = "ssbench", **options) -> account_cleaner.CleanUpResult:
    session = Session((server.url,), "token")
    settings = CleanUpSettings(**options)
    return AccountCleaner(session, settings).run(
        list(dict(find_containers(StoreAccess(session, settings.timeouts), base, None)))
    )


def test_small_pages(fault_server, stand_in):
    stand_in.page = 7
    stand_in.hold({f"ssbench_{number:06d}": [f"o{i}" for i in range(number)] for number in range(30)})
    result = run_here(fault_server)
    assert (result.containers, result.objects, result.failed) == (30, sum(range(30)), 0)
    assert stand_in.containers == {}


def test_what_vanishes_meanwhile_is_no_failure(fault_server, stand_in):
    stand_in.hold({f"ssbench_{number:06d}": [f"o{i}" for i in range(20)] for number in range(4)})
    answer = stand_in.answer

    def lose(request, path, query):
        if path == ["ssbench_000001"]:
            return Reply(404)  # listed, and gone
        reply = answer(request, path, query)
        if request.method == "DELETE" and len(path) == 2 and path[0] == "ssbench_000002":
            return Reply(404)  # somebody else was faster
        return reply

    stand_in.answer = lose
    result = run_here(fault_server)
    assert (result.containers, result.failed) == (3, 0)
    assert list(stand_in.containers) == ["ssbench_000001"]


def test_a_container_that_is_not_empty_for_a_while(fault_server, stand_in, monkeypatch):
    monkeypatch.setattr(account_cleaner, "_DELETION_PAUSES", (0.01, 0.01, 0.01))
    stand_in.hold({"ssbench_000000": ["o"], "ssbench_000001": []})
    answer = stand_in.answer
    conflicts = 3

    def lag(request, path, query):
        nonlocal conflicts
        if request.method == "DELETE" and path == ["ssbench_000001"] and conflicts:
            conflicts -= 1
            return CONFLICT
        return answer(request, path, query)

    stand_in.answer = lag
    result = run_here(fault_server)
    assert (result.containers, result.objects, result.failed) == (2, 1, 0)
    stand_in.hold({"ssbench_000001": []})
    conflicts = 10**9
    result = run_here(fault_server)
    assert result.failures == [f"ssbench_000001: HTTP 409 Conflict: not empty, although {LISTED_ARE_GONE}"]


def test_a_listing_that_never_empties_ends(fault_server, stand_in, monkeypatch):
    monkeypatch.setattr(account_cleaner, "_DELETION_PAUSES", (0.01, 0.01, 0.01))
    stand_in.hold({"ssbench_000000": ["o", "p"]})
    answer = stand_in.answer
    stand_in.answer = lambda request, path, query: (
        GONE if request.method == "DELETE" and len(path) == 2 else answer(request, path, query)
    )
    result = run_here(fault_server)
    assert (result.containers, result.failed) == (0, 1)


def test_what_cannot_be_deleted_is_named_and_the_rest_is(fault_server, stand_in):
    stand_in.hold({f"ssbench_{number:06d}": [f"o{i:02}" for i in range(30)] for number in range(12)})
    answer = stand_in.answer

    def forbid(request, path, query):
        if request.method == "DELETE" and path[0] == "ssbench_000003":
            return Reply(403) if len(path) == 2 else CONFLICT
        return answer(request, path, query)

    stand_in.answer = forbid
    ended = clean(*at(fault_server), "--json", "-")
    assert ended.returncode == 1
    report = valid(ended.stdout, "cleanup")
    assert (report["exit_code"], report["matched"], report["deleted"]["failed"]) == (1, 12, 31)
    assert "ssbench_000003/o07: HTTP 403" in report["deleted"]["failures"]
    assert "INFO:Deleted 11 containers and 330 objects" in ended.stderr
    assert "ERROR:ssbench_000003/o07: HTTP 403" in ended.stderr
    assert (
        "ERROR:31 deletes failed, 11 more than these; run it again when the cause is gone\n" in ended.stderr
    )
    assert list(stand_in.containers) == ["ssbench_000003"]


def test_a_cluster_that_goes_away_ends_it_soon(fault_server, stand_in, monkeypatch):
    monkeypatch.setattr(account_cleaner, "_MAX_FAILURES_IN_A_ROW", 5)
    monkeypatch.setattr("ssbench.store.swift.containers._RETRY_PAUSES", (0.01,))
    stand_in.hold({f"ssbench_{number:06d}": [f"o{i}" for i in range(50)] for number in range(500)})
    answer = stand_in.answer
    deletes = 0

    def go_away(request, path, query):
        nonlocal deletes
        deletes += request.method == "DELETE"
        return Reply(500) if deletes > 200 else answer(request, path, query)

    stand_in.answer = go_away
    session = Session((fault_server.url,), "token")
    clean_up = AccountCleaner(session, CleanUpSettings())
    result = clean_up.run(list(dict(find_containers(StoreAccess(session), "ssbench", None))))
    assert clean_up.gave_up
    assert 5 <= result.failed <= 40
    assert deletes < 400


def test_a_new_token_for_an_old_one(fault_server, stand_in):
    stand_in.hold({f"ssbench_{number:06d}": [f"o{i}" for i in range(60)] for number in range(3)})
    answer = stand_in.answer
    valid = "token"
    count = 0

    def expire(request, path, query):
        nonlocal count, valid
        count += 1
        if count in {30, 120}:
            valid = f"token-{count}"
        if request.headers["x-auth-token"] != valid:
            return Reply(401)
        return answer(request, path, query)

    stand_in.answer = expire
    session = Session((fault_server.url,), "token")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ssbench.store.credentials.RENEWAL_INTERVAL", 0)
        clean_up = AccountCleaner(session, CleanUpSettings(), lambda: Session((fault_server.url,), valid))
        result = clean_up.run(list(dict(find_containers(StoreAccess(session), "ssbench", None))))
    assert (result.containers, result.objects, result.failed) == (3, 180, 0)
    assert valid == "token-120"


def test_a_token_that_cannot_be_renewed(fault_server, stand_in, caplog):
    stand_in.hold({"ssbench_000000": []})
    session = Session((fault_server.url,), "token")

    def refuse() -> Session:
        raise ClusterError("no more tokens")

    found = list(dict(find_containers(StoreAccess(session), "ssbench", None)))
    stand_in.answer = lambda *_: Reply(401)
    for renew in (None, refuse):
        result = AccountCleaner(session, CleanUpSettings(), renew).run(found)
        assert result.failures == ["ssbench_000000: HTTP 401 Unauthorized"]
    assert "no more tokens" in caplog.text


JSON = (("Content-Type", "application/json; charset=utf-8"),)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Reply(401), "HTTP 401 Unauthorized"),
        (Reply(500), "HTTP 500 Internal Server Error"),
        (Reply(200, b"{", JSON), "bad response"),
        (Reply(200, b"\xff\xfe", JSON), "bad response"),
        (Reply(200, b"3", JSON), "bad response"),
        (Reply(200, b'[{"count": 1}]', JSON), "bad response"),
        # The same page for ever.
        (Reply(200, b'[{"name": "ssbench_000001"}]', JSON), "a page does not come after 'ssbench_000001'"),
        (Reply(stall=True), "read timeout"),
        (Reply(reset=True), "reset"),
    ],
)
def test_an_account_that_cannot_be_listed(fault_server, reply, message, monkeypatch):
    monkeypatch.setattr("ssbench.store.swift.containers._RETRY_PAUSES", (0.01,))
    fault_server.default = reply
    session = Session((fault_server.url,), "token")
    patience = 0.3 if reply.stall else 60
    with pytest.raises(ClusterError, match=f"containers cannot be listed: {message}"):
        list(find_containers(StoreAccess(session, (10.0, patience)), "ssbench", None))


def test_a_container_that_cannot_be_listed(fault_server, stand_in, monkeypatch):
    monkeypatch.setattr("ssbench.store.swift.containers._RETRY_PAUSES", (0.01,))
    stand_in.hold({"ssbench_000000": ["o"]})
    answer = stand_in.answer
    stand_in.answer = lambda request, path, query: (
        Reply(200, b"3", JSON) if request.method == "GET" and path else answer(request, path, query)
    )
    assert run_here(fault_server).failures == ["ssbench_000000: bad response"]


def test_no_cluster():
    ended = clean("-S", "http://127.0.0.1:1/v1/AUTH_a", "-T", "t")
    assert ended.returncode == 3
    assert re.fullmatch(
        r"ERROR:http://127.0.0.1:1/v1/AUTH_a: containers cannot be listed: .*\n", ended.stderr
    )


def test_help_and_wrong_values():
    ended = clean("--help")
    assert ended.returncode == 0
    assert "--container-base" in ended.stdout
    ended = clean("-c", "0")
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


# On a terminal


@contextlib.contextmanager
def on_a_terminal(*options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    controller, terminal = pty.openpty()
    try:
        process = subprocess.Popen(
            [*PROGRAM, *options],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(terminal)
        try:
            yield process, controller
        finally:
            process.kill()
            process.wait()
    finally:
        os.close(controller)


def read_until(controller: int, text: bytes | None) -> bytes:
    """Read what the terminal shows until a text is there, or to the end."""
    seen = b""
    while text is None or text not in seen:
        assert select.select([controller], [], [], 60)[0], seen
        try:
            seen += os.read(controller, 4096)
        except OSError:  # the other end is closed
            assert text is None, seen
            break
    return seen


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04", b"y\n", b"Yes\n"])
def test_asks_on_a_terminal(fault_server, stand_in, answer):
    stand_in.hold({"ssbench_000000": ["o"], "ssbench_000007": []})
    with on_a_terminal("cleanup-containers", *at(fault_server)) as (process, controller):
        question = read_until(controller, b"[y/N] ")
        assert b"Delete 2 containers of " + fault_server.url.encode() in question
        assert b"(ssbench_000000 ... ssbench_000007)" in question
        assert len(stand_in.containers) == 2
        os.write(controller, answer)
        rest = read_until(controller, None)
        assert process.wait(60) == 0
    yes = answer.lower().startswith(b"y")
    assert (b"Deleted 2 containers and 1 object" in rest) is yes
    assert (b"Nothing was deleted" in rest) is not yes
    assert stand_in.containers == ({} if yes else {"ssbench_000000": ["o"], "ssbench_000007": []})


def test_yes_asks_nothing_and_a_bar_is_drawn(fault_server, stand_in):
    stand_in.hold({"ssbench_000000": [f"o{number}" for number in range(3000)]})
    with on_a_terminal("cleanup-containers", "--yes", *at(fault_server)) as (process, controller):
        shown = read_until(controller, None)
        assert process.wait(60) == 0
    assert b"Delete" not in shown.replace(b"Deleted", b"")
    assert b"Cleaning up" in shown
    assert b"/3001" in shown


def test_quiet_asks_but_draws_nothing(fault_server, stand_in):
    stand_in.hold({"ssbench_000000": [f"o{number}" for number in range(300)]})
    with on_a_terminal("-q", "cleanup-containers", "--yes", *at(fault_server)) as (process, controller):
        shown = read_until(controller, None)
        assert process.wait(60) == 0
    assert shown == b""
