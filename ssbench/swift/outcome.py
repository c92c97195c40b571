"""From the attempts of a request to its :class:`~ssbench.store.contract.Outcome`."""

from __future__ import annotations

from time import monotonic

from msgspec import Struct

from ssbench.store.contract import Outcome, Prior
from ssbench.swift.causes import AttemptError, status_cause
from ssbench.swift.http_response import Answer, BodyCheck

_REFUSED = status_cause(401)


class Effort(Struct, gc=False):
    """Running totals of the attempts of a request.

    ``began`` is when the first one began, None before. The others are as in :class:`Outcome`.
    ``unanswered``: a request was sent of which no answer came, so that it may have been carried out. ``name``
    is that of the object where bodies are verified, ``checked`` whether the body of a read is to be
    looked at, ``first`` where in the object a part begins, ``keeps`` how many of its bytes are kept,
    ``etag`` whether a body that is sent is announced with its MD5,
    and ``check`` that of the last answer. ``address`` is that of the last connection, of a host with several.
    """

    retries: int
    began: float | None = None
    retried: dict[str, int] | None = None
    resent: int = 0
    connecting: float = 0.0
    pausing: float = 0.0
    connections: int = 0
    resumed: int = 0
    unanswered: bool = False
    name: bytes = b""
    checked: bool = False
    first: int | None = None
    keeps: int = 0
    etag: bool = False
    check: BodyCheck | None = None
    address: str = ""

    @classmethod
    def after(cls, prior: Prior) -> Effort:
        """Return the totals of a request that begins now, after what was spent on it before.

        What it waited since then, for a token and for its turn, is a pause. Clocks of two hosts err, so
        neither moment can be later than now.
        """
        retries, began, ended, _ = prior
        effort = cls(retries)
        if began is not None:
            now = monotonic()
            effort.began = min(began, now)
            effort.pausing = 0.0 if ended is None else max(0.0, now - ended)
        return effort

    def since(self, now: float) -> float:
        """Return the seconds from the first attempt until now."""
        return now - (now if self.began is None else self.began)

    def success(self, answer: Answer, sent: int | None) -> Outcome:
        """Return the outcome of a request with this answer; ``sent`` is the size of a PUT's body."""
        began = answer.sent_at if self.began is None else self.began
        return Outcome(
            answer.first_byte_at - began if sent is None else None,
            answer.last_byte_at - began,
            answer.last_byte_at,
            answer.size if sent is None else sent,
            self.retries,
            answer.trans_id,
            None,
            "",
            self.retried,
            status=answer.status,
            resent=self.resent,
            connecting=self.connecting,
            pausing=self.pausing,
            last_attempt=answer.last_byte_at - answer.sent_at if self.retries or self.resent else None,
            owner=answer.owner,
            address=self.address,
            connections=self.connections,
            resumed=self.resumed,
        )

    def failure(self, fault: AttemptError) -> Outcome:
        """Return the outcome of a request that ended with this fault."""
        now = monotonic()
        spent = self.since(now)
        unauthorized = fault.cause == _REFUSED
        return Outcome(
            None,
            spent if unauthorized else None,
            now,
            0,
            self.retries,
            fault.trans_id,
            fault.cause,
            str(fault),
            self.retried,
            unauthorized,
            status=fault.status,
            spent=None if self.began is None else spent,
            resent=self.resent,
            connecting=self.connecting,
            pausing=self.pausing,
            address=self.address,
            connections=self.connections,
            resumed=self.resumed,
        )
