"""When a refused token is renewed: one policy, whoever sends the requests."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from ssbench.base.errors import ClusterError
from ssbench.store.credentials import Session, SessionInUse, is_sent_again, pause_after_failures

FIRST = Session(("http://swift/v1/a",), "token0")


class Service:
    """Issues tokens; its clock is that of the policy."""

    def __init__(self) -> None:
        self.now = 100.0
        self.asked: list[float] = []
        self.fails = False
        self.session = SessionInUse(FIRST, self.renew, threading.Lock(), self.sleep, lambda: self.now)

    def renew(self) -> Session:
        self.asked.append(self.now)
        if self.fails:
            raise ClusterError("nobody there")
        return replace(FIRST, token=f"token{len(self.asked)}")

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def service() -> Service:
    return Service()


def test_pauses_double_up_to_ten_seconds() -> None:
    assert [pause_after_failures(failures) for failures in (1, 2, 3, 4, 5, 50)] == [
        1.0,
        2.0,
        4.0,
        8.0,
        10.0,
        10.0,
    ]


def test_a_request_is_sent_again_ten_times() -> None:
    assert [refusals for refusals in range(1, 20) if is_sent_again(refusals)] == list(range(1, 11))


def test_all_whose_token_was_refused_share_one_renewal(service: Service) -> None:
    assert all(service.session.renew(FIRST, refusals=1) for _ in range(5))
    assert service.session.session.token == "token1"
    assert service.asked == [100.0]


def test_tokens_that_are_refused_at_once_are_renewed_once_a_second(service: Service) -> None:
    refusals = 1
    while service.session.renew(service.session.session, refusals):
        refusals += 1
    assert service.asked == [100.0 + second for second in range(10)]


def test_while_no_token_can_be_had_requests_fail_and_attempts_have_pauses(service: Service) -> None:
    service.fails = True
    for second in range(8):
        service.now = 100.0 + second
        if second in {0, 1, 3, 7}:
            with pytest.raises(ClusterError, match="nobody there"):
                service.session.renew(FIRST, 1)
        else:
            assert not service.session.renew(FIRST, 1)
    assert service.asked == [100.0, 101.0, 103.0, 107.0]
    service.fails = False
    service.now = 115.0
    assert service.session.renew(FIRST, 1)


def test_a_token_of_the_users_own_is_not_renewed() -> None:
    assert not SessionInUse(FIRST, None, threading.Lock()).renew(FIRST, 1)
