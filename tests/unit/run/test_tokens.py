"""Renewing tokens, with a clock that the test moves and attempts that take no time."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

import msgspec
import pytest
from fault_server import FaultServer, Reply
from runs import wait_until

from ssbench.base import interruption
from ssbench.base.errors import AuthenticationBusyError, ClusterError
from ssbench.fleet.worker_state import History
from ssbench.run import tokens
from ssbench.run.tokens import TokenRenewal, TokenSource, WaitingForToken
from ssbench.store.contract import JobResult, RareFields
from ssbench.store.credentials import Credentials, Session


class Service:
    """Gives tokens, or fails while ``fault`` is set. ``asked`` are the times at which it was asked."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.asked: list[float] = []
        self.now = 0.0
        self.waiting: list[Callable[[], None]] = []
        self.renewal = TokenRenewal(self.authenticate, self.waiting.append)

    def authenticate(self) -> str:
        self.asked.append(self.now)
        if self.fault is not None:
            raise self.fault
        return f"token-{len(self.asked)}"

    def until(self, end: float) -> str | None:
        """Let time pass in steps of 0.1 s until a token is there."""
        while self.now < end:
            token = self.renewal.poll(self.now)
            if token is not None:
                return token
            for call in self.waiting:
                call()
            self.waiting.clear()
            self.now = round(self.now + 0.1, 1)
        return None


@pytest.fixture
def service() -> Service:
    return Service()


def test_nothing_is_asked_for_unbidden(service: Service) -> None:
    assert service.until(10) is None
    assert service.asked == []
    assert service.renewal.possible
    assert not service.renewal.under_way


def test_a_token_comes_once(service: Service) -> None:
    service.renewal.start()
    service.renewal.start()
    assert service.renewal.under_way
    assert service.until(10) == "token-1"
    assert not service.renewal.under_way
    assert service.until(10) is None
    assert len(service.asked) == 1


def test_a_token_that_ends_is_renewed_before_and_nothing_waits_for_that(service: Service) -> None:
    service.renewal = TokenRenewal(service.authenticate, service.waiting.append, seconds=20.0)
    assert service.until(19.9) is None
    assert service.asked == []
    service.fault = ClusterError("nobody there")
    assert service.until(25) is None
    assert service.renewal.failures == len(service.asked) > 1
    assert not service.renewal.under_way
    service.fault = None
    first = service.until(120)
    assert first is not None
    assert service.renewal.failures == 0
    renewed = service.now
    assert service.until(200) is not None
    assert service.now - renewed == pytest.approx(20.0, abs=0.3)
    # One that was refused meanwhile begins its time anew.
    service.renewal.start()
    assert service.renewal.under_way
    assert service.until(200) is not None
    renewed = service.now
    assert service.until(300) is not None
    assert service.now - renewed == pytest.approx(20.0, abs=0.3)


def test_keys_of_the_s3_api_are_renewed_in_a_bench_of_many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers have those of two weeks; each run has renewals of its own."""
    now, day = 1000.0, 86_400.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    given: list[str] = []

    def authenticate(credentials: Credentials) -> Session:
        given.append(f"keys-{len(given)}")
        return Session(credentials.storage_urls, given[-1])

    def poll(renewal: TokenRenewal) -> str | None:
        renewal.poll(now)
        return renewal.poll(now)

    monkeypatch.setattr(tokens, "_on_a_thread", lambda call: call())
    for url, renewed in (("s3+http://h", "keys-1"), ("http://h/v1/a", None)):
        given.clear()
        source = TokenSource(
            [Credentials(version="s3", user="a", key="b", storage_urls=(url,))], (), authenticate
        )
        for _ in range(6):  # a run each day
            (renewal,) = source.renewals()
            assert poll(renewal) is None
            now += day
        (renewal,) = source.renewals()
        assert poll(renewal) is None
        now += 1.5 * day
        assert poll(renewal) == renewed
        assert source.sessions[0].token == (renewed or "keys-0")


def test_tokens_that_are_refused_at_once_are_renewed_once_a_second(service: Service) -> None:
    while service.now < 10:
        service.renewal.start()
        service.until(10)
    assert 9 <= len(service.asked) <= 11


def test_failures_are_counted_and_tried_again_with_growing_pauses(service: Service) -> None:
    service.fault = ClusterError("nobody there")
    service.renewal.start()
    assert service.until(60) is None
    assert service.renewal.under_way
    assert (service.renewal.failures, service.renewal.error) == (len(service.asked), "nobody there")
    pauses = [
        round(later - earlier) for earlier, later in zip(service.asked, service.asked[1:], strict=False)
    ]
    assert pauses == [1, 2, 4, 8, 10, 10, 10, 10]
    service.fault = None
    assert service.until(80) == f"token-{len(service.asked)}"
    assert service.renewal.failures == 0


def test_a_bug_is_not_tried_again(service: Service) -> None:
    service.fault = ZeroDivisionError()
    service.renewal.start()
    with pytest.raises(ZeroDivisionError):
        service.until(10)


def test_a_token_of_the_users_own_cannot_be_renewed() -> None:
    renewal = TokenRenewal(None)
    renewal.start()
    assert not renewal.possible
    assert not renewal.under_way
    assert renewal.poll(0.0) is None


def test_a_thread_of_its_own() -> None:
    renewal = TokenRenewal(lambda: "token")
    renewal.start()
    wait_until(lambda: renewal.poll(0.0) == "token", "the token")


TASK = (1, 0, 0, 7, 0)
ANY = TokenRenewal(lambda: "token")


def refused(retries: int = 0, retried: dict[str, int] | None = None) -> JobResult:
    return JobResult(1, None, 2.0, 0.0, retries=retries, retried=retried, cause="HTTP 401", unauthorized=True)


def test_a_task_waits_for_a_token_with_its_history() -> None:
    waiting = WaitingForToken()
    assert waiting.add(TASK, refused(1, {"HTTP 503": 1}), None, ANY, ended=10.0)
    assert len(waiting) == 1
    ((task, history),) = waiting.take()
    assert (task, history) == (TASK, History(2, 8.0, {"HTTP 503": 1, "HTTP 401": 1}, ended=10.0))
    assert (len(waiting), waiting.take()) == (0, [])


def test_the_first_attempt_counts_however_often_a_token_is_refused() -> None:
    waiting = WaitingForToken()
    history = None
    for turn in range(10):
        result = refused(turn, history.retried if history else None)
        assert waiting.add(TASK, result, history, ANY, ended=10.0 + turn)
        ((_, history),) = waiting.take()
    assert history == History(10, 8.0, {"HTTP 401": 10}, ended=19.0)
    assert not waiting.add(TASK, refused(10, history.retried), history, ANY, ended=30.0)
    assert waiting.take() == []


def test_a_job_that_was_only_handed_back_began_when_it_was_sent_again() -> None:
    waiting = WaitingForToken()
    assert waiting.add(TASK, refused(), History(0, 0.0, {}, due=7.0), ANY, ended=10.0)
    assert waiting.take() == [(TASK, History(1, 8.0, {"HTTP 401": 1}, ended=10.0, due=7.0))]


def test_parts_of_all_attempts_add_up() -> None:
    waiting = WaitingForToken()
    before = msgspec.structs.replace(refused(), rare=RareFields(0.5, 0.25))
    assert waiting.add(TASK, before, None, ANY, ended=10.0)
    ((_, history),) = waiting.take()
    done = history.add_to(JobResult(1, 1.0, 9.0, 16.0, rare=RareFields(0.125, 4.0, 0.5)))
    assert done.rare == RareFields(0.625, 4.25, 0.5)
    assert history.add_to(JobResult(1, 1.0, 9.0, 16.0)).rare == RareFields(0.5, 0.25)


@pytest.mark.parametrize(
    ("before", "in_doubt"),
    [
        ({"retried": {"read timeout": 1}, "retries": 1}, True),
        ({"resent": 1}, True),
        ({"retried": {"HTTP 503": 1}}, False),
    ],
)
def test_what_got_no_answer_before_its_token_was_refused_is_in_doubt(
    before: dict[str, object], in_doubt: bool
) -> None:
    waiting = WaitingForToken()
    assert waiting.add(TASK, msgspec.structs.replace(refused(), **before), None, ANY, ended=10.0)
    ((_, history),) = waiting.take()
    assert history.in_doubt == in_doubt
    assert waiting.add(TASK, refused(2, history.retried), history, ANY, ended=11.0)
    assert waiting.take()[0][1].in_doubt == in_doubt


def test_without_a_way_to_a_token_no_task_waits() -> None:
    assert not WaitingForToken().add(TASK, refused(), None, TokenRenewal(None), ended=10.0)


# A service that is too busy for the first token


def first_token(server: FaultServer) -> TokenSource:
    url = f"{server.url.partition('/v1')[0]}/auth/v1.0"
    return TokenSource([Credentials(version="1.0", auth_url=url, user="u", key="k")])


def test_a_service_that_limits_authentication_is_waited_for(caplog: pytest.LogCaptureFixture) -> None:
    """A 429 ended the run, which is waited for within a run."""
    with FaultServer() as server, caplog.at_level(logging.WARNING):
        fields = (("X-Auth-Token", "AUTH_tk1"), ("X-Storage-Url", server.url))
        server.script(Reply(429, retry_after="1"), Reply(200, headers=fields))
        found = first_token(server)
    assert found.sessions == [Session((server.url,), "AUTH_tk1")]
    assert len(server.requests) == 2
    assert ["HTTP 429 Too Many Requests; trying again in 1 s" in each for each in caplog.messages] == [True]


@pytest.mark.parametrize(
    ("reply", "asked"), [(Reply(429), 3), (Reply(429, retry_after="0"), 5), (Reply(429, retry_after="99"), 1)]
)
def test_it_is_waited_for_a_minute_at_most(reply: Reply, asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr(interruption, "sleep_interruptibly", slept.append)
    monkeypatch.setattr(tokens, "_MOST_BUSY_SECONDS", 60.0 if asked == 1 else 4.0 if asked == 3 else 2.0)
    with FaultServer(default=reply) as server, pytest.raises(AuthenticationBusyError, match="HTTP 429"):
        first_token(server)
    assert len(server.requests) == asked == len(slept) + 1


def test_tls_that_ends_after_authentication_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    found = Session(("http://h/v1/AUTH_a",), "t")
    with caplog.at_level(logging.WARNING):
        for url, own in (
            ("https://h/auth", ()),
            ("http://h/auth", ()),
            ("https://h/auth", found.storage_urls),
        ):
            given = Credentials(version="1.0", auth_url=url, user="u", key="k", storage_urls=own)
            TokenSource([given], authenticate=lambda _: found)
    assert ["if the store has TLS: -S https://h/v1/AUTH_a" in each for each in caplog.messages] == [True]
